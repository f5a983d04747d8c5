// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear and DequantizeLinear of what layers on INT8 do not have: scales for blocks of an axis (opset 21), integers of
// 2, 4 and 16 bits, and initializers of any type, which are decompressed at import.
//   y = (x - zero) scale and y = clamp(round(x / scale) + zero); of index i along the axis scale and zero are those of i / block
#include <algorithm>

#include "onnx/few_bits.h"
#include "onnx/integers.h"
#include "onnx/quantized.h"
#include "onnx/weights.h"
#include "tw_onnx.pb.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;
using tw_onnx::TensorProto;

struct Steps
{
    Value scale, zero; // zero: null for 0
    int axis = -1;     // -1: one for all
    int64_t block = 1; // indices along the axis that share one
    bool inBlocks = false;
};

// Of a node's inputs 1 and 2, for tensors of shape `x`.
Steps stepsOf(ImportContext& ctx, Dims const& x)
{
    Steps s{ctx.input(1), ctx.optionalInput(2)};
    Dims const d = s.scale.dims();
    if (!isFloating(s.scale.type()))
        ctx.invalid(fmt::format("its scale is {}, not FLOAT or HALF", typeName(s.scale.type())));
    if (!s.zero.isNull() && toVector(s.zero.dims()) != toVector(d) && !(volume(s.zero.dims()) == 1 && volume(d) == 1))
        ctx.invalid(fmt::format("its scale has shape {}, its zero point {}", describe(d), describe(s.zero.dims())));
    int64_t const block = ctx.attrInt("block_size", 0);
    if (block < 0 || block > INT32_MAX)
        ctx.invalid(fmt::format("block_size is {}", block));
    if (block == 0) {
        if (volume(d) == 1)
            return s;
        if (d.nbDims != 1)
            ctx.invalid("its scale has the shape " + describe(d) +
                        "; without block_size a scalar or one dimension is possible");
        s.axis = ctx.axis(ctx.attrInt("axis", 1), x.nbDims);
        if (d.d[0] >= 0 && x.d[s.axis] >= 0 && d.d[0] != x.d[s.axis])
            ctx.invalid(fmt::format("it has {} scales for dimension {} of {}", d.d[0], s.axis, describe(x)));
        return s;
    }
    s.axis = ctx.axis(ctx.attrInt("axis", 1), x.nbDims);
    s.block = block;
    s.inBlocks = true;
    bool fits = d.nbDims == x.nbDims;
    for (int i = 0; fits && i < d.nbDims; ++i)
        fits = x.d[i] < 0 || d.d[i] < 0 || d.d[i] == (i == s.axis ? (x.d[i] + block - 1) / block : x.d[i]);
    if (!fits)
        ctx.invalid(fmt::format("scales of shape {} do not fit block_size {} along axis {} of {}", describe(d), block,
                                s.axis, describe(x)));
    return s;
}

// Where the scale of element i of a tensor stands.
class Places
{
public:
    Places(Steps const& s, Dims const& x) : axis_(s.axis), block_(s.block), inBlocks_(s.inBlocks)
    {
        if (axis_ < 0)
            return;
        length_ = std::max(x.d[axis_], 1);
        for (int i = axis_ + 1; i < x.nbDims; ++i)
            inner_ *= std::max(x.d[i], 1);
    }
    int64_t operator()(int64_t i) const
    {
        if (axis_ < 0)
            return 0;
        int64_t const at = i / inner_ % length_;
        if (!inBlocks_)
            return at;
        int64_t const blocks = (length_ + block_ - 1) / block_;
        return (i / inner_ / length_ * blocks + at / block_) * inner_ + i % inner_;
    }

private:
    int axis_;
    int64_t block_, length_ = 1, inner_ = 1;
    bool inBlocks_;
};

// A scale or zero point for each element of x, or to be broadcast to it.
ITensor& spreadOver(ImportContext& ctx, ITensor& t, ITensor& x, Steps const& s)
{
    int const rank = x.getDimensions().nbDims;
    if (!s.inBlocks)
        return spread(ctx, t, rank, s.axis);
    size_t const axis = size_t(s.axis);
    Sizes const of = ctx.sizesOf(t), whole = ctx.sizesOf(x);
    Sizes apart = of, joined = of;
    apart.insert(apart.begin() + s.axis + 1, Size(s.block));
    joined[axis] = ctx.mul(of[axis], s.block);
    ITensor& each = ctx.reshape(ctx.expand(ctx.unsqueeze(t, {s.axis + 1}), apart), joined);
    if (joined[axis].known() && whole[axis].known() && joined[axis].value == whole[axis].value)
        return each;
    Sizes size = joined;
    size[axis] = whole[axis];
    return ctx.slice(each, Sizes(size.size(), Size(0)), size, Sizes(size.size(), Size(1)));
}

// The type that attribute output_dtype asks for, where it is there.
DataType typeOfResult(ImportContext& ctx, DataType ofScale)
{
    int64_t const asked = ctx.attrInt("output_dtype", 0);
    if (auto const type = floatingType(asked, ofScale))
        return *type;
    ctx.fail(fmt::format("attribute 'output_dtype' asks for {}; FLOAT and FLOAT16 can be had",
                         onnxTypeName(int(std::clamp<int64_t>(asked, -1, INT32_MAX)))));
}

Constant decompressed(ImportContext& ctx)
{
    Constant const& x = ctx.input(0).constant();
    Steps const s = stepsOf(ctx, x.dims);
    DataType const type = typeOfResult(ctx, s.scale.type());
    for (Value const& v : {ctx.input(0), s.scale, s.zero})
        ctx.decideBy(v);
    Constant const& scale = s.scale.constant();
    Places const places(s, x.dims);
    ctx.allowComputed(x.count * sizeOf(type)); // the model holds them, in fewer bytes
    Constant y = ctx.newConstant(type, x.dims);
    for (int64_t i = 0; i < y.count; ++i) {
        int64_t const at = places(i);
        double const zero = s.zero.isNull() ? 0 : s.zero.constant().floatAt(at);
        double const q = x.later ? x.later->integers.at(i) : x.floatAt(i);
        ctx.store(y, i, (q - zero) * scale.floatAt(at));
    }
    return y;
}

bool isZero(Value const& v)
{
    if (v.isNull())
        return true;
    if (!v.isConstant())
        return false;
    for (int64_t i = 0; i < v.constant().count; ++i)
        if (v.constant().floatAt(i) != 0)
            return false;
    return true;
}

// Numbers that wait for a node that reads them: a product takes the integers themselves.
Constant asMatrix(ImportContext& ctx, Steps const& s, DataType type)
{
    Constant y;
    y.type = type;
    y.dims = ctx.input(0).dims();
    y.count = ctx.input(0).constant().count;
    auto later = std::make_shared<Later>();
    later->made = ctx.later(decompressed);
    later->matrix = std::make_shared<QuantizedMatrix>(
        QuantizedMatrix{ctx.input(0), s.scale, isZero(s.zero) ? Value() : s.zero, s.axis, s.block, s.inBlocks});
    y.later = std::move(later);
    return y;
}

// Of integers that the layers on INT8 do not have.
bool isOtherKind(Value const& v)
{
    switch (v.integers()) {
    case Integers::kInt2:
    case Integers::kUint2:
    case Integers::kInt4:
    case Integers::kUint4:
    case Integers::kInt16:
    case Integers::kUint16:
        return true;
    default:
        return false;
    }
}

// What QuantizeLinear makes.
Integers kindOfResult(ImportContext& ctx)
{
    if (int64_t const asked = ctx.attrInt("output_dtype", 0)) {
        int const type = int(std::clamp<int64_t>(asked, -1, INT32_MAX));
        Integers const kind = type == TensorProto::INT8 ? Integers::kInt8 : integersOf(type);
        ctx.check(kind != Integers::kOfType && rangeOf(kind).bits <= 16,
                  "attribute 'output_dtype' asks for " + onnxTypeName(type) +
                      "; quantization is to INT8, and as arithmetic to other integers of up to 16 bits");
        return kind;
    }
    Value const zero = ctx.optionalInput(2);
    if (zero.isNull())
        return Integers::kUint8;
    ctx.check(!isFloating(zero.type()), "its zero point is of a FLOAT8 or FLOAT4 type; quantization is to integers");
    return zero.type() == DataType::kINT8 ? Integers::kInt8 : zero.integers();
}

} // namespace

bool quantizedAsNumbers(ImportContext& ctx)
{
    if (!ctx.hasInput(0) || !ctx.hasInput(1))
        return false;
    Integers const kind = kindOfResult(ctx);
    bool const isOfByte = kind == Integers::kInt8 || kind == Integers::kUint8 || kind == Integers::kOfType;
    if (ctx.attrInt("block_size", 0) == 0 && isOfByte)
        return false;
    if (kind == Integers::kOfType)
        ctx.invalid("its zero point is INT32, a type that nothing is quantized to");
    ITensor& input = ctx.tensor(0);
    ctx.check(isFloating(input.getType()),
              "its input is " + std::string(typeName(input.getType())) + ", not FLOAT or HALF");
    ITensor& x = ctx.cast(input, DataType::kFLOAT);
    Steps const s = stepsOf(ctx, x.getDimensions());
    InFloat const inFloat(ctx);
    ITensor& scale = spreadOver(ctx, ctx.cast(ctx.asTensor(s.scale), DataType::kFLOAT), x, s);
    ITensor* y = &ctx.unary(ctx.elementwise(x, scale, Op::kDIV), nvinfer1::UnaryOperation::kROUND);
    if (!s.zero.isNull())
        y = &ctx.elementwise(*y, spreadOver(ctx, wholeFloats(ctx, s.zero), x, s), Op::kSUM);
    IntegerRange const r = rangeOf(kind);
    y = &ctx.activation(*y, nvinfer1::ActivationType::kCLIP, float(r.lowest), float(r.largest));
    inFloat.apply();
    ctx.setOutput(0, Value(isOfByte ? *y : ctx.cast(*y, DataType::kINT32), kind));
    return true;
}

bool dequantizedAsNumbers(ImportContext& ctx)
{
    if (!ctx.hasInput(0) || !ctx.hasInput(1))
        return false;
    Value const x = ctx.input(0), zero = ctx.optionalInput(2);
    bool const inBlocks = ctx.attrInt("block_size", 0) != 0;
    bool const isFloat = x.isConstant() && isFloating(x.type()); // FLOAT8 and the like
    bool const isKnown = x.isConstant() && ctx.input(1).isConstant() && (zero.isNull() || zero.isConstant());
    bool const isByte = x.type() == DataType::kINT8 || x.integers() == Integers::kUint8;
    bool const isAsymmetric = isKnown && isByte && !inBlocks && (x.type() != DataType::kINT8 || !isZero(zero));
    if (!inBlocks && !isOtherKind(x) && !isFloat && !isAsymmetric) {
        ctx.withValues(0);
        return false;
    }
    ctx.check(!isFloating(x.type()) || isFloat || x.integers() != Integers::kOfType,
              "its input is " + std::string(typeName(x.type())) + "; integers can be dequantized");
    Steps const s = stepsOf(ctx, x.dims());
    DataType const type = typeOfResult(ctx, s.scale.type());
    if (isKnown) {
        bool const isNarrow = x.type() == DataType::kINT8 || x.constant().later;
        ctx.setOutput(0, isNarrow && x.rank() == 2 ? asMatrix(ctx, s, type) : decompressed(ctx));
        return true;
    }
    ctx.withValues(0);
    InFloat const inFloat(ctx);
    ITensor* y = &wholeFloats(ctx, ctx.input(0));
    ITensor& like = *y;
    if (!isZero(s.zero))
        y = &ctx.elementwise(*y, spreadOver(ctx, wholeFloats(ctx, s.zero), like, s), Op::kSUB);
    ITensor& scale = spreadOver(ctx, ctx.cast(ctx.asTensor(s.scale), DataType::kFLOAT), like, s);
    y = &ctx.elementwise(*y, scale, Op::kPROD);
    inFloat.apply();
    ctx.setOutput(0, ctx.cast(*y, type));
    return true;
}

} // namespace tw::onnx
