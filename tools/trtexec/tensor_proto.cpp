// SPDX-License-Identifier: Apache-2.0
// Reads an ONNX TensorProto. Only plain tensors are understood; strings, segments and data in other files are refused.
#include <climits>
#include <cstring>

#include <fmt/core.h>

#include "failure.h"
#include "recorded.h"
#include "tw_onnx.pb.h"

namespace tw::trtexec {

namespace {

using tw_onnx::TensorProto;

ElementKind kindOf(TensorProto const& proto, std::string const& what)
{
    switch (proto.data_type()) {
    case TensorProto::FLOAT:
        return ElementKind::kFloat;
    case TensorProto::UINT8:
        return ElementKind::kUint8;
    case TensorProto::INT8:
        return ElementKind::kInt8;
    case TensorProto::UINT16:
        return ElementKind::kUint16;
    case TensorProto::INT16:
        return ElementKind::kInt16;
    case TensorProto::INT32:
        return ElementKind::kInt32;
    case TensorProto::INT64:
        return ElementKind::kInt64;
    case TensorProto::BOOL:
        return ElementKind::kBool;
    case TensorProto::FLOAT16:
        return ElementKind::kHalf;
    case TensorProto::DOUBLE:
        return ElementKind::kDouble;
    case TensorProto::UINT32:
        return ElementKind::kUint32;
    case TensorProto::UINT64:
        return ElementKind::kUint64;
    default:
        throw Failure(fmt::format("{}: tensor element type {} is not supported", what, proto.data_type()));
    }
}

// `size` bytes of each number: little endian, so the low bytes are the element (FP16 stands there as its bits).
template <class Numbers>
std::vector<std::byte> elementsOf(Numbers const& numbers, size_t size)
{
    std::vector<std::byte> data(size_t(numbers.size()) * size);
    for (int i = 0; i < numbers.size(); ++i)
        std::memcpy(data.data() + size_t(i) * size, &numbers[i], size);
    return data;
}

// From the field that is meant for the kind.
std::vector<std::byte> typedData(TensorProto const& proto, ElementKind kind)
{
    size_t const size = elementSize(kind);
    switch (kind) {
    case ElementKind::kFloat:
        return elementsOf(proto.float_data(), size);
    case ElementKind::kDouble:
        return elementsOf(proto.double_data(), size);
    case ElementKind::kInt64:
        return elementsOf(proto.int64_data(), size);
    case ElementKind::kUint32:
    case ElementKind::kUint64:
        return elementsOf(proto.uint64_data(), size);
    default:
        return elementsOf(proto.int32_data(), size);
    }
}

TensorProto parsed(std::span<std::byte const> bytes, std::string const& what)
{
    TensorProto proto;
    if (bytes.size() > size_t(INT_MAX) || !proto.ParseFromArray(bytes.data(), int(bytes.size())))
        throw Failure(what + ": not a tensor: the bytes are no TensorProto");
    if (proto.has_segment())
        throw Failure(what + ": a tensor in segments is not supported");
    if (proto.data_location() == TensorProto::EXTERNAL)
        throw Failure(what + ": data in another file is not supported");
    return proto;
}

} // namespace

RecordedTensor readTensorProto(std::span<std::byte const> bytes, std::string const& what)
{
    TensorProto const proto = parsed(bytes, what);
    RecordedTensor tensor;
    tensor.kind = kindOf(proto, what);
    tensor.name = proto.name();
    tensor.dims.assign(proto.dims().begin(), proto.dims().end());
    size_t const size = elementSize(tensor.kind);
    size_t const count = checkedCount(tensor.dims, size, what);

    if (proto.has_raw_data()) {
        std::string const& raw = proto.raw_data();
        if (raw.size() != count * size)
            throw Failure(fmt::format("{}: {} bytes of data for a tensor of {} bytes", what, raw.size(), count * size));
        auto const* const begin = reinterpret_cast<std::byte const*>(raw.data());
        tensor.data.assign(begin, begin + raw.size());
        return tensor;
    }
    tensor.data = typedData(proto, tensor.kind);
    if (tensor.count() != count)
        throw Failure(fmt::format("{}: {} elements for dimensions of {}", what, tensor.count(), count));
    return tensor;
}

} // namespace tw::trtexec
