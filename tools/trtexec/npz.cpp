// SPDX-License-Identifier: Apache-2.0
// NumPy archives: a zip of .npy files, stored or deflated. Only what NumPy itself writes is read:
// one disk, no encryption, entries and offsets below 4 GiB.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include <fmt/core.h>
#include <zlib.h>

#include "failure.h"
#include "recorded.h"

namespace tw::trtexec {

namespace {

using Bytes = std::span<std::byte const>;

// Little-endian field of `size` bytes at `offset`; the caller checked the range.
uint32_t field(Bytes bytes, size_t offset, size_t size)
{
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i)
        value |= std::to_integer<uint32_t>(bytes[offset + i]) << (8 * i);
    return value;
}

Bytes part(Bytes bytes, size_t offset, size_t size, std::string const& what)
{
    if (offset > bytes.size() || size > bytes.size() - offset)
        throw Failure(what + ": an entry reaches past the end of the file");
    return bytes.subspan(offset, size);
}

std::string_view asText(Bytes bytes)
{
    return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

// Offset of the end-of-central-directory record: 22 bytes and a comment of up to 65535.
size_t findEnd(Bytes bytes, std::string const& what)
{
    constexpr size_t kRecord = 22;
    size_t const lowest = bytes.size() > kRecord + 65535 ? bytes.size() - kRecord - 65535 : 0;
    for (size_t at = bytes.size() < kRecord ? 0 : bytes.size() - kRecord + 1; at-- > lowest;)
        if (field(bytes, at, 4) == 0x06054b50)
            return at;
    throw Failure(what + ": not a zip archive, or cut off");
}

// Text after `key` and a colon in the header's dictionary.
std::string_view dictionaryValue(std::string_view header, std::string_view key, std::string const& what)
{
    size_t const at = header.find("'" + std::string(key) + "'");
    if (at == std::string_view::npos)
        throw Failure(what + ": the header has no '" + std::string(key) + "'");
    header.remove_prefix(at + key.size() + 2);
    size_t const start = header.find_first_not_of(" :");
    return start == std::string_view::npos ? std::string_view() : header.substr(start);
}

ElementKind kindOf(std::string_view descr, std::string const& what)
{
    constexpr std::pair<std::string_view, ElementKind> kKinds[] = {
        {"'<f4'", ElementKind::kFloat},  {"'<f8'", ElementKind::kDouble}, {"'<f2'", ElementKind::kHalf},
        {"'|i1'", ElementKind::kInt8},   {"'<i2'", ElementKind::kInt16},  {"'<i4'", ElementKind::kInt32},
        {"'<i8'", ElementKind::kInt64},  {"'|u1'", ElementKind::kUint8},  {"'<u2'", ElementKind::kUint16},
        {"'<u4'", ElementKind::kUint32}, {"'<u8'", ElementKind::kUint64}, {"'|b1'", ElementKind::kBool}};
    for (auto const& [text, kind] : kKinds)
        if (descr.starts_with(text))
            return kind;
    throw Failure(what + ": element type " + std::string(descr.substr(0, descr.find(','))) + " is not supported");
}

std::vector<int64_t> shapeOf(std::string_view text, std::string const& what)
{
    size_t const close = text.find(')');
    if (!text.starts_with('(') || close == std::string_view::npos)
        throw Failure(what + ": the header's shape is damaged");
    text = text.substr(1, close - 1);
    std::vector<int64_t> dims;
    while (true) {
        size_t const start = text.find_first_not_of(" ,");
        if (start == std::string_view::npos)
            return dims;
        text.remove_prefix(start);
        int64_t value = 0;
        auto const [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc())
            throw Failure(what + ": the header's shape is damaged");
        text.remove_prefix(static_cast<size_t>(stop - text.data()));
        dims.push_back(value);
    }
}

} // namespace

RecordedTensor readNpy(Bytes bytes, std::string const& what)
{
    if (!asText(bytes).starts_with("\x93NUMPY") || bytes.size() < 10)
        throw Failure(what + ": not an .npy array");
    uint32_t const major = field(bytes, 6, 1);
    if (major < 1 || major > 3)
        throw Failure(fmt::format("{}: .npy version {} is not supported (known: 1 to 3)", what, major));
    size_t const lengthSize = major == 1 ? 2 : 4;
    part(bytes, 8, lengthSize, what);
    size_t const headerSize = field(bytes, 8, lengthSize);
    std::string_view const header = asText(part(bytes, 8 + lengthSize, headerSize, what));

    RecordedTensor tensor;
    tensor.kind = kindOf(dictionaryValue(header, "descr", what), what);
    tensor.dims = shapeOf(dictionaryValue(header, "shape", what), what);
    size_t const size = elementSize(tensor.kind);
    size_t const sizeBytes = checkedCount(tensor.dims, size, what) * size;
    if (!dictionaryValue(header, "fortran_order", what).starts_with("False") && tensor.dims.size() > 1)
        throw Failure(what + ": column-major arrays are not supported; save numpy.ascontiguousarray(a)");
    Bytes const data = bytes.subspan(8 + lengthSize + headerSize);
    if (data.size() != sizeBytes)
        throw Failure(fmt::format("{}: {} bytes of data for an array of {} bytes", what, data.size(), sizeBytes));
    tensor.data.assign(data.begin(), data.end());
    return tensor;
}

std::vector<RecordedTensor> readNpz(Bytes bytes, std::string const& what)
{
    size_t const end = findEnd(bytes, what);
    uint32_t const entries = field(bytes, end + 10, 2);
    size_t at = field(bytes, end + 16, 4);
    std::vector<RecordedTensor> tensors;
    for (uint32_t i = 0; i < entries; ++i) {
        Bytes const central = part(bytes, at, 46, what);
        if (field(central, 0, 4) != 0x02014b50)
            throw Failure(what + ": the zip directory is damaged");
        uint32_t const flags = field(central, 8, 2);
        uint32_t const method = field(central, 10, 2);
        uint32_t const crc = field(central, 16, 4);
        size_t const packedSize = field(central, 20, 4);
        size_t const fullSize = field(central, 24, 4);
        size_t const nameSize = field(central, 28, 2);
        size_t const localAt = field(central, 42, 4);
        std::string name(asText(part(bytes, at + 46, nameSize, what)));
        at += 46 + nameSize + field(central, 30, 2) + field(central, 32, 2);

        std::string const entryName = what + " entry '" + name + "'";
        if (packedSize == 0xffffffff || fullSize == 0xffffffff || localAt == 0xffffffff)
            throw Failure(entryName + ": 4 GiB and more are not supported");
        if (flags & 1)
            throw Failure(entryName + ": is encrypted");
        Bytes const local = part(bytes, localAt, 30, entryName);
        if (field(local, 0, 4) != 0x04034b50)
            throw Failure(entryName + ": its zip header is damaged");
        Bytes const packed =
            part(bytes, localAt + 30 + field(local, 26, 2) + field(local, 28, 2), packedSize, entryName);

        std::vector<std::byte> inflated;
        Bytes data = packed;
        if (method == 8) {
            inflated = inflateAll(packed, -15, fullSize, entryName);
            data = inflated;
        } else if (method != 0) {
            throw Failure(fmt::format("{}: zip method {} is not supported", entryName, method));
        }
        if (data.size() != fullSize)
            throw Failure(fmt::format("{}: {} bytes in place of {}", entryName, data.size(), fullSize));
        if (crc32_z(0, reinterpret_cast<Bytef const*>(data.data()), data.size()) != crc)
            throw Failure(entryName + ": the checksum does not match");
        RecordedTensor tensor = readNpy(data, entryName);
        tensor.name = name.ends_with(".npy") ? name.substr(0, name.size() - 4) : name;
        tensors.push_back(std::move(tensor));
    }
    return tensors;
}

} // namespace tw::trtexec
