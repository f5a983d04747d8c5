// SPDX-License-Identifier: Apache-2.0
// What importers of operators on quantized tensors with zero points share (composites/quantized.cpp).
#pragma once

#include <optional>
#include <vector>

#include "onnx/importer.h"
#include "onnx/integers.h"

namespace tw::onnx {

// Tensor of the model with the numbers of the node's inputs for it.
struct Quantized
{
    Value q, scale, zero; // zero: null for 0
};

inline bool isUint8(Value const& v)
{
    return v.integers() == Integers::kUint8;
}
// INT8 and UINT8 alone. i: the number of the input.
void checkType(ImportContext& ctx, Value const& v, int i);
// Input i, a zero point, where it is given.
Value zeroPoint(ImportContext& ctx, int i);
// As it stands, since constants of the layers come of it.
Value standing(ImportContext& ctx, Value const& v);
Quantized quantized(ImportContext& ctx, int q, int scale, int zero);

bool isOneNumber(Value const& v);
bool isOneZero(Value const& zero);
int64_t zeroOf(Value const& zero);
// Of the node's attribute, for scales and zero points of tensors like x.
int axisOf(ImportContext& ctx, Value const& x);
// q - z as INT8, where that holds all of a constant; zero points along the axis.
std::optional<Constant> lessZeroPoint(ImportContext& ctx, Value const& q, Value const& zero, int axis);
// What the INT8 form is less than q - z by.
int64_t shiftOf(Value const& q, Value const& zero);
// What is added to a result in front of Q, for the zero point of the operator; by known scale and zero point.
double raiseOf(Quantized const& y, bool isUint8);

// One number, a list along the axis, or one dimension for each of x, to be broadcast to tensors of this rank.
ITensor& spread(ImportContext& ctx, ITensor& x, int rank, int axis);
// q - z in FLOAT.
ITensor& centered(ImportContext& ctx, Quantized const& t, int axis);
// Of kINT8 tensors, by constant scales.
ITensor& dequantize(ImportContext& ctx, ITensor& x, Value const& scale, int axis);
// Q of v / scale: the INT8 form.
Value quantize(ImportContext& ctx, ITensor& v, Value const& scale, bool toUint8);
// clamp(round(x) + zero) in FLOAT.
Value rounded(ImportContext& ctx, ITensor& x, Value const& zero, int axis);

// The numbers that a quantized tensor stands for, in FLOAT; scales and zero points along the axis.
ITensor& realNumbers(ImportContext& ctx, Quantized const& t, int axis);
// And back, to the scale and zero point of y.
Value quantizedNumbers(ImportContext& ctx, ITensor& v, Quantized const& y, int axis);

// x as DynamicQuantizeLinear quantizes it, by its own range.
Quantized quantizedByRange(ImportContext& ctx, ITensor& x);
// a b in FLOAT, of what both stand for; scales of b may be one for each column.
ITensor& productInFloat(ImportContext& ctx, Quantized const& a, Quantized const& b);

// Whole numbers need FLOAT, also where FP16 is allowed.
class InFloat
{
public:
    explicit InFloat(ImportContext& ctx) : ctx_(ctx), first_(ctx.network().getNbLayers()) {}
    void apply() const
    {
        for (int i = first_; i < ctx_.network().getNbLayers(); ++i) {
            nvinfer1::ILayer& layer = *ctx_.network().getLayer(i);
            nvinfer1::LayerType const type = layer.getType();
            bool const isQuantization =
                type == nvinfer1::LayerType::kQUANTIZE || type == nvinfer1::LayerType::kDEQUANTIZE;
            if (!isQuantization && layer.getNbOutputs() == 1 && layer.getOutput(0)->getType() == DataType::kFLOAT)
                layer.setPrecision(DataType::kFLOAT);
        }
    }

private:
    ImportContext& ctx_;
    int first_;
};

} // namespace tw::onnx
