// SPDX-License-Identifier: Apache-2.0
#include "plan/file.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/hash.h"
#include "device/large_pages.h"

namespace tw::plan {

namespace {

uint64_t aligned(uint64_t v)
{
    return (v + kAlignment - 1) / kAlignment * kAlignment;
}

std::string text(uint32_t const* v)
{
    return std::to_string(v[0]) + "." + std::to_string(v[1]) + "." + std::to_string(v[2]) + "." + std::to_string(v[3]);
}

Error damaged(std::string const& what)
{
    return Error{ErrorCode::kFailedInitialization, "the plan is damaged or no plan: " + what};
}

} // namespace

namespace {

constexpr size_t kPieceBytes = size_t(1) << 20;
constexpr size_t kLanes = 4, kStep = kLanes * sizeof(uint64_t);

struct PieceHash
{
    uint64_t lanes[kLanes];
};

// Of `count` pieces of `steps` whole steps each, kPieceBytes apart: twice the lanes keep the multipliers busy.
template <size_t count>
void hashPieces(char const* p, size_t steps, PieceHash* out)
{
    Hasher lanes[count][kLanes];
    for (size_t s = 0; s < steps; ++s, p += kStep)
        for (size_t k = 0; k < count; ++k) {
            uint64_t words[kLanes];
            std::memcpy(words, p + k * kPieceBytes, kStep);
            for (size_t i = 0; i < kLanes; ++i)
                lanes[k][i].number(words[i]);
        }
    for (size_t k = 0; k < count; ++k)
        for (size_t i = 0; i < kLanes; ++i)
            out[k].lanes[i] = lanes[k][i].value();
}

} // namespace

uint64_t fileHash(void const* bytes, size_t sizeBytes, uint16_t minor, PageKeeper const* pages, Workers& workers)
{
    auto const* p = static_cast<char const*>(bytes);
    Hasher h;
    h.bytes(p, offsetof(FileHeader, hash));
    p += sizeof(FileHeader);
    sizeBytes -= sizeof(FileHeader);
    if (minor == 0) {
        h.bytes(p, sizeBytes);
        return h.value();
    }
    size_t const whole = sizeBytes / kPieceBytes, rest = sizeBytes % kPieceBytes;
    std::vector<PieceHash> pieces(whole + 1);
    workers.run(int64_t(whole / 2), [&](int64_t pair, int) {
        size_t const first = size_t(pair) * 2;
        hashPieces<2>(p + first * kPieceBytes, kPieceBytes / kStep, &pieces[first]);
        if (pages)
            pages->done(p + first * kPieceBytes, 2 * kPieceBytes);
    });
    if (whole % 2 != 0)
        hashPieces<1>(p + (whole - 1) * kPieceBytes, kPieceBytes / kStep, &pieces[whole - 1]);
    hashPieces<1>(p + whole * kPieceBytes, rest / kStep, &pieces[whole]);
    for (size_t i = 0; i < whole + (rest > 0); ++i) {
        for (uint64_t lane : pieces[i].lanes)
            h.number(lane);
        size_t const tail = i < whole ? 0 : rest % kStep;
        h.bytes(p + std::min((i + 1) * kPieceBytes, sizeBytes) - tail, tail);
    }
    if (size_t const last = whole / 2 * 2 * kPieceBytes; pages)
        pages->done(p + last, sizeBytes - last);
    return h.value();
}

std::string packFile(std::vector<Section> const& sections)
{
    uint64_t at = aligned(sizeof(FileHeader) + sections.size() * sizeof(SectionEntry));
    std::vector<SectionEntry> table;
    for (Section const& s : sections) {
        table.push_back(SectionEntry{static_cast<uint32_t>(s.kind), 0, at, s.sizeBytes});
        at = aligned(at + s.sizeBytes);
    }
    std::string out;
    out.reserve(size_t(at));
    device::preferLargePages(out.data(), size_t(at));
    out.resize(size_t(at));
    FileHeader h{};
    std::memcpy(h.magic, kMagic, sizeof kMagic);
    h.major = kMajor;
    h.minor = kMinor;
    std::memcpy(h.library, kLibraryVersion, sizeof h.library);
    h.sectionCount = uint32_t(sections.size());
    h.fileBytes = at;
    std::memcpy(out.data() + sizeof h, table.data(), table.size() * sizeof(SectionEntry));
    for (size_t i = 0; i < sections.size(); ++i)
        if (sections[i].sizeBytes > 0)
            std::memcpy(out.data() + table[i].offset, sections[i].data, size_t(sections[i].sizeBytes));
    std::memcpy(out.data(), &h, sizeof h);
    h.hash = fileHash(out.data(), out.size(), h.minor);
    std::memcpy(out.data(), &h, sizeof h);
    return out;
}

Result<std::vector<Section>> unpackFile(void const* bytes, size_t sizeBytes, bool strictVersion,
                                        PageKeeper const* pages, Workers& workers)
{
    auto const* p = static_cast<char const*>(bytes);
    FileHeader h;
    if (!bytes)
        return damaged("it is a null pointer");
    if (sizeBytes < sizeof h)
        return damaged("it has " + std::to_string(sizeBytes) + " bytes, fewer than its header");
    std::memcpy(&h, p, sizeof h);
    if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0)
        return damaged("it does not begin with a plan's magic bytes");
    if (h.major != kMajor || h.minor > kMinor)
        return Error{ErrorCode::kFailedInitialization,
                     "the plan is not compatible with this version of TensorRT, expecting format version " +
                         std::to_string(kMajor) + "." + std::to_string(kMinor) + " got " + std::to_string(h.major) +
                         "." + std::to_string(h.minor) + ", please rebuild"};
    if (strictVersion && std::memcmp(h.library, kLibraryVersion, sizeof h.library) != 0)
        return Error{ErrorCode::kFailedInitialization,
                     "the plan is not compatible with this version of TensorRT, expecting library version " +
                         text(kLibraryVersion) + " got " + text(h.library) + ", please rebuild"};
    if (h.fileBytes > sizeBytes)
        return damaged("it is truncated: " + std::to_string(sizeBytes) + " of " + std::to_string(h.fileBytes) +
                       " bytes");
    if (h.sectionCount > kMaxSections)
        return damaged("it lists " + std::to_string(h.sectionCount) + " sections");
    uint64_t const tableEnd = sizeof h + uint64_t(h.sectionCount) * sizeof(SectionEntry);
    if (h.fileBytes < tableEnd)
        return damaged("its section table does not fit");
    if (fileHash(p, size_t(h.fileBytes), h.minor, pages, workers) != h.hash)
        return damaged("its contents do not match their hash");
    std::vector<Section> sections;
    for (uint32_t i = 0; i < h.sectionCount; ++i) {
        SectionEntry e;
        std::memcpy(&e, p + sizeof h + i * sizeof e, sizeof e);
        if (e.offset < tableEnd || e.offset > h.fileBytes || e.sizeBytes > h.fileBytes - e.offset ||
            e.offset % kAlignment != 0)
            return damaged("section " + std::to_string(i) + " lies outside the file");
        bool const oneOf =
            e.kind >= static_cast<uint32_t>(SectionKind::kMeta) && e.kind < static_cast<uint32_t>(SectionKind::kTarget);
        if ((!oneOf && e.kind != static_cast<uint32_t>(SectionKind::kTarget)) || e.reserved != 0)
            return damaged("section " + std::to_string(i) + " is of the unknown kind " + std::to_string(e.kind));
        for (Section const& s : sections)
            if (oneOf && static_cast<uint32_t>(s.kind) == e.kind)
                return damaged("section " + std::to_string(i) + " repeats kind " + std::to_string(e.kind));
        sections.push_back(Section{static_cast<SectionKind>(e.kind), p + e.offset, e.sizeBytes});
    }
    return sections;
}

} // namespace tw::plan
