// SPDX-License-Identifier: Apache-2.0
#include "dla/loadable.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/hash.h"
#include "base/round.h"

namespace tw::dla {

namespace {

constexpr int64_t kAlignment = 256; // of the plan
constexpr uint32_t kMostTensors = 256;

struct Header
{
    char magic[8];
    uint32_t version, model, tensors, reserved;
    uint64_t planOffset, planBytes, fileBytes;
    uint64_t hash; // of all but itself
};
static_assert(sizeof(Header) == 56 && offsetof(Header, hash) == kLoadableHashOffset);

struct Record
{
    char name[kMostNameBytes];
    uint32_t isInput, type, format, reserved;
    uint64_t dims[4]; // n, c, h, w
    uint64_t sizeBytes;
    uint64_t strides[4];
};
static_assert(sizeof(Record) == 168);

Error damaged(std::string const& what)
{
    return failedInitialization("the loadable is damaged or no loadable: " + what);
}

Result<LoadableTensor> tensorOf(Record const& r, uint32_t index)
{
    constexpr uint32_t kTypes = 6, kFormats = 12;
    LoadableTensor t;
    t.name.assign(r.name, strnlen(r.name, sizeof r.name));
    if (t.name.empty() || r.isInput > 1 || r.type >= kTypes || r.format >= kFormats || r.reserved != 0)
        return damaged(fmt::format("tensor {} has no name, or numbers that do not exist", index));
    t.isInput = r.isInput != 0;
    t.type = int32_t(r.type);
    t.format = int32_t(r.format);
    // A plan's tensors have fewer than 2^31 elements of at most 4 bytes, and padding of a row makes at most 64 of one byte.
    constexpr uint64_t kMostDim = INT32_MAX, kMostBytes = uint64_t(1) << 40;
    for (uint64_t d : r.dims)
        if (d == 0 || d > kMostDim)
            return damaged(fmt::format("tensor '{}' has a dimension of {}", t.name, d));
    for (uint64_t s : r.strides)
        if (s > kMostBytes)
            return damaged(fmt::format("tensor '{}' has a stride of {} bytes", t.name, s));
    if (r.sizeBytes == 0 || r.sizeBytes > kMostBytes)
        return damaged(fmt::format("tensor '{}' has {} bytes", t.name, r.sizeBytes));
    t.n = int64_t(r.dims[0]);
    t.c = int64_t(r.dims[1]);
    t.h = int64_t(r.dims[2]);
    t.w = int64_t(r.dims[3]);
    t.sizeBytes = int64_t(r.sizeBytes);
    std::ranges::copy(r.strides, t.strideBytes.begin());
    return t;
}

} // namespace

bool isLoadable(void const* bytes, size_t sizeBytes)
{
    return bytes && sizeBytes >= sizeof kLoadableMagic &&
           std::memcmp(bytes, kLoadableMagic, sizeof kLoadableMagic) == 0;
}

uint64_t loadableHash(void const* bytes, size_t sizeBytes)
{
    auto const* const file = static_cast<char const*>(bytes);
    Hasher h;
    h.bytes(file, kLoadableHashOffset);
    h.bytes(file + sizeof(Header), sizeBytes - sizeof(Header));
    return h.value();
}

Result<std::string> pack(Loadable const& l)
{
    Header h{};
    std::memcpy(h.magic, kLoadableMagic, sizeof h.magic);
    h.version = kLoadableVersion;
    h.model = static_cast<uint32_t>(l.model);
    h.tensors = uint32_t(l.tensors.size());
    h.planOffset = uint64_t(roundUp(int64_t(sizeof h + l.tensors.size() * sizeof(Record)), kAlignment));
    h.planBytes = l.plan.size();
    h.fileBytes = h.planOffset + h.planBytes;
    std::string out(h.fileBytes, '\0');
    for (size_t i = 0; i < l.tensors.size(); ++i) {
        LoadableTensor const& t = l.tensors[i];
        if (t.name.size() > kMostNameBytes)
            return invalidArgument("tensor '{}': its name has {} bytes, those of DLA loadables have at most {}", t.name,
                                   t.name.size(), kMostNameBytes);
        Record r{};
        std::memcpy(r.name, t.name.data(), t.name.size());
        r.isInput = t.isInput;
        r.type = uint32_t(t.type);
        r.format = uint32_t(t.format);
        int64_t const dims[] = {t.n, t.c, t.h, t.w};
        std::ranges::copy(dims, r.dims);
        r.sizeBytes = uint64_t(t.sizeBytes);
        std::ranges::copy(t.strideBytes, r.strides);
        std::memcpy(out.data() + sizeof h + i * sizeof r, &r, sizeof r);
    }
    std::memcpy(out.data() + h.planOffset, l.plan.data(), l.plan.size());
    std::memcpy(out.data(), &h, sizeof h);
    h.hash = loadableHash(out.data(), out.size());
    std::memcpy(out.data(), &h, sizeof h);
    return out;
}

Result<Loadable> unpack(void const* bytes, size_t sizeBytes)
{
    if (!bytes)
        return damaged("it is a null pointer");
    Header h;
    if (sizeBytes < sizeof h)
        return damaged(fmt::format("it has {} bytes, fewer than its header", sizeBytes));
    std::memcpy(&h, bytes, sizeof h);
    if (std::memcmp(h.magic, kLoadableMagic, sizeof h.magic) != 0)
        return damaged("it does not begin with a loadable's magic bytes");
    if (h.version != kLoadableVersion)
        return failedInitialization("the loadable is of format version {}, this library reads {}; build it again",
                                    h.version, kLoadableVersion);
    if (h.fileBytes > sizeBytes)
        return damaged(fmt::format("it is truncated: {} of {} bytes", sizeBytes, h.fileBytes));
    uint64_t const tableEnd = sizeof h + uint64_t(h.tensors) * sizeof(Record);
    if (h.tensors > kMostTensors || h.fileBytes < tableEnd || h.planOffset < tableEnd || h.planOffset > h.fileBytes ||
        h.planOffset % kAlignment != 0 || h.planBytes != h.fileBytes - h.planOffset || h.reserved != 0)
        return damaged("its tables do not fit");
    auto const* const file = static_cast<char const*>(bytes);
    if (loadableHash(file, size_t(h.fileBytes)) != h.hash)
        return damaged("its contents do not match their hash");
    Loadable out;
    if (h.model > INT32_MAX || !isKnown(int32_t(h.model)) || h.model == 0)
        return damaged(fmt::format("it is for DLA model {}, which does not exist", h.model));
    out.model = static_cast<Model>(h.model);
    for (uint32_t i = 0; i < h.tensors; ++i) {
        Record r;
        std::memcpy(&r, file + sizeof h + i * sizeof r, sizeof r);
        TW_ASSIGN(LoadableTensor t, tensorOf(r, i));
        if (!out.tensors.empty() && t.isInput && !out.tensors.back().isInput)
            return damaged("an input stands behind an output");
        out.tensors.push_back(std::move(t));
    }
    out.plan = {file + h.planOffset, size_t(h.planBytes)};
    return out;
}

} // namespace tw::dla
