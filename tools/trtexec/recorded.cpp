// SPDX-License-Identifier: Apache-2.0
#include "recorded.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include <fmt/core.h>
#include <zlib.h>

#include "failure.h"
#include "files.h"

namespace tw::trtexec {

namespace {

// Protobuf messages end at 2 GiB; archives of recorded tensors keep the same limit for each entry.
constexpr size_t kLimitBytes = size_t{1} << 31;

template <class T>
double load(RecordedTensor const& tensor, size_t index)
{
    T value;
    std::memcpy(&value, tensor.data.data() + index * sizeof(T), sizeof(T));
    return static_cast<double>(value);
}

} // namespace

size_t elementSize(ElementKind kind)
{
    switch (kind) {
    case ElementKind::kInt8:
    case ElementKind::kUint8:
    case ElementKind::kBool:
        return 1;
    case ElementKind::kHalf:
    case ElementKind::kInt16:
    case ElementKind::kUint16:
        return 2;
    case ElementKind::kFloat:
    case ElementKind::kInt32:
    case ElementKind::kUint32:
        return 4;
    case ElementKind::kDouble:
    case ElementKind::kInt64:
    case ElementKind::kUint64:
        return 8;
    }
    return 1;
}

double RecordedTensor::at(size_t index) const
{
    switch (kind) {
    case ElementKind::kFloat:
        return load<float>(*this, index);
    case ElementKind::kDouble:
        return load<double>(*this, index);
    case ElementKind::kHalf: {
        uint16_t bits;
        std::memcpy(&bits, data.data() + index * 2, 2);
        return halfToDouble(bits);
    }
    case ElementKind::kInt8:
        return load<int8_t>(*this, index);
    case ElementKind::kInt16:
        return load<int16_t>(*this, index);
    case ElementKind::kInt32:
        return load<int32_t>(*this, index);
    case ElementKind::kInt64:
        return load<int64_t>(*this, index);
    case ElementKind::kUint8:
        return load<uint8_t>(*this, index);
    case ElementKind::kUint16:
        return load<uint16_t>(*this, index);
    case ElementKind::kUint32:
        return load<uint32_t>(*this, index);
    case ElementKind::kUint64:
        return load<uint64_t>(*this, index);
    case ElementKind::kBool:
        return data[index] != std::byte{0} ? 1 : 0;
    }
    return 0;
}

double halfToDouble(uint16_t bits)
{
    int const exponent = bits >> 10 & 31;
    int const fraction = bits & 1023;
    double const sign = bits >> 15 ? -1 : 1;
    if (exponent == 31)
        return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
    if (exponent == 0)
        return sign * std::ldexp(fraction, -24);
    return sign * std::ldexp(1024 + fraction, exponent - 25);
}

uint16_t doubleToHalf(double value)
{
    uint16_t const sign = std::signbit(value) ? 0x8000 : 0;
    if (std::isnan(value))
        return sign | 0x7e00;
    double const magnitude = std::abs(value);
    if (magnitude >= 65520) // halfway between 65504 and the next step
        return sign | 0x7c00;
    // Steps of 2^-24 below 2^-14, else of 2^(exponent - 10); nearbyint rounds ties to even.
    int const exponent = magnitude < 0x1p-14 ? -14 : std::ilogb(magnitude);
    int const steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
    return sign | static_cast<uint16_t>(magnitude < 0x1p-14 ? steps : steps + ((exponent + 14) << 10));
}

size_t checkedCount(std::span<int64_t const> dims, size_t size, std::string const& what)
{
    size_t count = 1;
    bool empty = false;
    for (int64_t const d : dims) {
        if (d < 0)
            throw Failure(fmt::format("{}: negative dimension {}", what, d));
        empty = empty || d == 0;
    }
    if (empty)
        return 0;
    for (int64_t const d : dims) {
        if (static_cast<uint64_t>(d) > kLimitBytes / size / count)
            throw Failure(fmt::format("{}: the dimensions stand for more than {} bytes", what, kLimitBytes));
        count *= static_cast<size_t>(d);
    }
    return count;
}

std::vector<std::byte> inflateAll(std::span<std::byte const> bytes, int windowBits, size_t limitBytes,
                                  std::string const& what)
{
    if (bytes.size() > kLimitBytes)
        throw Failure(fmt::format("{}: more than {} bytes", what, kLimitBytes));
    z_stream stream{};
    if (inflateInit2(&stream, windowBits) != Z_OK)
        throw Failure(what + ": zlib cannot start");
    std::vector<std::byte> out;
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    int state = Z_OK;
    constexpr size_t kChunk = 1 << 18;
    while (state == Z_OK && out.size() <= limitBytes) {
        size_t const done = out.size();
        out.resize(done + kChunk);
        stream.next_out = reinterpret_cast<Bytef*>(out.data() + done);
        stream.avail_out = kChunk;
        state = inflate(&stream, Z_NO_FLUSH);
        out.resize(out.size() - stream.avail_out);
        if (state == Z_OK && stream.avail_in == 0 && stream.avail_out != 0)
            state = Z_BUF_ERROR; // nothing left to read, and no end seen
    }
    inflateEnd(&stream);
    if (out.size() > limitBytes)
        throw Failure(fmt::format("{}: inflates to more than {} bytes", what, limitBytes));
    if (state != Z_STREAM_END)
        throw Failure(what + ": compressed data is damaged or cut off");
    return out;
}

std::vector<RecordedTensor> readRecorded(std::string const& path, std::string const& prefix)
{
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) {
        if (!path.ends_with(".npz"))
            throw Failure("'" + path + "' is neither a folder nor an .npz file");
        return readNpz(readFile(path, 4 * uint64_t{kLimitBytes}), path);
    }
    std::vector<RecordedTensor> tensors;
    while (true) {
        std::string const file = fmt::format("{}/{}_{}.pb", path, prefix, tensors.size());
        if (std::filesystem::exists(file, ignored))
            tensors.push_back(readTensorProto(readFile(file, kLimitBytes), file));
        else if (std::filesystem::exists(file + ".gz", ignored))
            tensors.push_back(
                readTensorProto(inflateAll(readFile(file + ".gz", kLimitBytes), 31, kLimitBytes, file + ".gz"), file));
        else
            break;
    }
    if (tensors.empty())
        throw Failure("folder '" + path + "' has no " + prefix + "_0.pb and no " + prefix + "_0.pb.gz");
    return tensors;
}

std::vector<size_t> matchRecorded(std::span<RecordedTensor const> tensors, std::span<std::string const> names,
                                  std::string const& path)
{
    std::vector<size_t> byName;
    for (std::string const& name : names) {
        auto const it =
            std::find_if(tensors.begin(), tensors.end(), [&](RecordedTensor const& t) { return t.name == name; });
        if (it != tensors.end())
            byName.push_back(static_cast<size_t>(it - tensors.begin()));
    }
    if (byName.size() == names.size())
        return byName;
    if (tensors.size() == names.size() && byName.empty()) {
        for (size_t i = 0; i < names.size(); ++i)
            byName.push_back(i);
        return byName;
    }
    std::string text = fmt::format("'{}' has {} tensor(s):", path, tensors.size());
    for (RecordedTensor const& tensor : tensors)
        text += " '" + tensor.name + "'";
    text += fmt::format("; the engine has {}:", names.size());
    for (std::string const& name : names)
        text += " '" + name + "'";
    throw Failure(text + "; neither the names nor the counts agree");
}

} // namespace tw::trtexec
