// SPDX-License-Identifier: Apache-2.0
// Reads the protobuf wire form of an ONNX TensorProto. Only the fields of plain tensors are understood;
// strings, segments and data in other files are refused.
#include "failure.h"
#include "recorded.h"

#include <cstring>

namespace tw::trtexec {

namespace {

// Cursor over the wire form. Every read is checked against the end.
class Wire
{
public:
    Wire(std::span<const std::byte> bytes, const std::string& what) : bytes_(bytes), what_(what) {}

    bool atEnd() const { return bytes_.empty(); }

    uint64_t varint()
    {
        uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            if (bytes_.empty())
                fail("cut off inside a number");
            const auto b = std::to_integer<uint64_t>(bytes_[0]);
            bytes_ = bytes_.subspan(1);
            value |= (b & 0x7f) << shift;
            if (b < 0x80)
                return value;
        }
        fail("a number is longer than ten bytes");
    }

    std::span<const std::byte> block(uint64_t size)
    {
        if (size > bytes_.size())
            fail("a field of " + std::to_string(size) + " bytes reaches past the end");
        const auto part = bytes_.first(size);
        bytes_ = bytes_.subspan(size);
        return part;
    }

    std::span<const std::byte> lengthDelimited() { return block(varint()); }

    void skip(uint32_t wireType)
    {
        switch (wireType) {
        case 0:
            varint();
            return;
        case 1:
            block(8);
            return;
        case 2:
            lengthDelimited();
            return;
        case 5:
            block(4);
            return;
        default:
            fail("wire type " + std::to_string(wireType) + " is not allowed");
        }
    }

    [[noreturn]] void fail(const std::string& reason) const { throw Failure(what_ + ": not a tensor: " + reason); }

private:
    std::span<const std::byte> bytes_;
    const std::string& what_;
};

// Numbers of TensorProto.DataType.
ElementKind kindOf(uint64_t type, const std::string& what)
{
    switch (type) {
    case 1:
        return ElementKind::kFloat;
    case 2:
        return ElementKind::kUint8;
    case 3:
        return ElementKind::kInt8;
    case 4:
        return ElementKind::kUint16;
    case 5:
        return ElementKind::kInt16;
    case 6:
        return ElementKind::kInt32;
    case 7:
        return ElementKind::kInt64;
    case 9:
        return ElementKind::kBool;
    case 10:
        return ElementKind::kHalf;
    case 11:
        return ElementKind::kDouble;
    case 12:
        return ElementKind::kUint32;
    case 13:
        return ElementKind::kUint64;
    default:
        throw Failure(what + ": tensor element type " + std::to_string(type) + " is not supported");
    }
}

void append(std::vector<std::byte>& data, const void* value, size_t size)
{
    const auto* bytes = static_cast<const std::byte*>(value);
    data.insert(data.end(), bytes, bytes + size);
}

struct Fields
{
    std::vector<int64_t> dims;
    uint64_t type = 0;
    bool hasRaw = false;
    std::span<const std::byte> raw;
    std::vector<std::byte> floats;  // float_data as it is on the wire
    std::vector<std::byte> doubles; // double_data
    std::vector<uint64_t> integers; // int32_data, int64_data or uint64_data
    std::string name;
};

void readIntegers(Wire& wire, uint32_t wireType, std::vector<uint64_t>& out, const std::string& what)
{
    if (wireType == 0) {
        out.push_back(wire.varint());
        return;
    }
    if (wireType != 2)
        wire.fail("integers of wire type " + std::to_string(wireType));
    Wire packed(wire.lengthDelimited(), what);
    while (!packed.atEnd())
        out.push_back(packed.varint());
}

// Floats or doubles, packed or one by one (fixedType: 5 or 1).
void readFixed(Wire& wire, uint32_t wireType, uint32_t fixedType, size_t size, std::vector<std::byte>& out)
{
    if (wireType != 2 && wireType != fixedType)
        wire.fail("numbers of wire type " + std::to_string(wireType));
    const auto part = wireType == 2 ? wire.lengthDelimited() : wire.block(size);
    if (part.size() % size != 0)
        wire.fail("packed numbers end inside an element");
    append(out, part.data(), part.size());
}

Fields readFields(std::span<const std::byte> bytes, const std::string& what)
{
    Fields fields;
    Wire wire(bytes, what);
    while (!wire.atEnd()) {
        const uint64_t tag = wire.varint();
        const uint64_t field = tag >> 3;
        const auto wireType = static_cast<uint32_t>(tag & 7);
        if (field == 0)
            wire.fail("field number 0");
        switch (field) {
        case 1: {
            std::vector<uint64_t> dims;
            readIntegers(wire, wireType, dims, what);
            for (const uint64_t d : dims)
                fields.dims.push_back(static_cast<int64_t>(d));
            break;
        }
        case 2:
            if (wireType != 0)
                wire.fail("element type of wire type " + std::to_string(wireType));
            fields.type = wire.varint();
            break;
        case 3:
            wire.fail("segments are not supported");
        case 4:
            readFixed(wire, wireType, 5, 4, fields.floats);
            break;
        case 5:
        case 7:
        case 11:
            readIntegers(wire, wireType, fields.integers, what);
            break;
        case 8:
        case 9: {
            if (wireType != 2)
                wire.fail("bytes of wire type " + std::to_string(wireType));
            const auto part = wire.lengthDelimited();
            if (field == 8) {
                fields.name.assign(reinterpret_cast<const char*>(part.data()), part.size());
            } else {
                fields.raw = part;
                fields.hasRaw = true;
            }
            break;
        }
        case 10:
            readFixed(wire, wireType, 1, 8, fields.doubles);
            break;
        case 14:
            if (wireType != 0 || wire.varint() != 0)
                wire.fail("data in another file is not supported");
            break;
        default:
            wire.skip(wireType);
        }
    }
    return fields;
}

} // namespace

RecordedTensor readTensorProto(std::span<const std::byte> bytes, const std::string& what)
{
    Fields fields = readFields(bytes, what);
    RecordedTensor tensor;
    tensor.kind = kindOf(fields.type, what);
    tensor.name = std::move(fields.name);
    tensor.dims = std::move(fields.dims);
    const size_t size = elementSize(tensor.kind);
    const size_t count = checkedCount(tensor.dims, size, what);

    size_t have = 0;
    if (fields.hasRaw) {
        have = fields.raw.size() / size;
        if (fields.raw.size() != count * size)
            throw Failure(what + ": " + std::to_string(fields.raw.size()) + " bytes of data for a tensor of " +
                          std::to_string(count * size) + " bytes");
        append(tensor.data, fields.raw.data(), fields.raw.size());
    } else if (tensor.kind == ElementKind::kFloat) {
        tensor.data = std::move(fields.floats);
        have = tensor.data.size() / size;
    } else if (tensor.kind == ElementKind::kDouble) {
        tensor.data = std::move(fields.doubles);
        have = tensor.data.size() / size;
    } else {
        // Little endian: the low bytes of the number are the element (FP16 stands there as its bits).
        have = fields.integers.size();
        for (const uint64_t value : fields.integers)
            append(tensor.data, &value, size);
    }
    if (have != count)
        throw Failure(what + ": " + std::to_string(have) + " elements for dimensions of " + std::to_string(count));
    return tensor;
}

} // namespace tw::trtexec
