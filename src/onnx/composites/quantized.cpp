// SPDX-License-Identifier: Apache-2.0
// QLinearConv, QLinearMatMul, ConvInteger, MatMulInteger, DynamicQuantizeLinear; QGemm, MatMulIntegerToFloat and DynamicQuantizeMatMul of ONNX Runtime. With q the numbers of a tensor, z its zero point and s its scale, it stands for s (q - z).
//
// Where scales and zero points are constants and w - z of the weights fits INT8, products run on INT8 layers:
//   q - z = i + shift, i the INT8 form of q (integers.h), shift = 128 - z for UINT8, -z for INT8
//   sum over k of (q - z)(w - z_w) = sum i (w - z_w) + shift * sum (w - z_w), where the last sum is a constant
// and a result's zero point goes into the same constant: Q rounds v / s + z. (The operators round v / s first: where that lies
// in the middle between two numbers and z is odd, they may give the other one.) Elsewhere whole numbers are multiplied in
// FLOAT, which is exact up to 2^24.
#include "onnx/quantized.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace tw::onnx {

namespace {

using nvinfer1::ActivationType;
using nvinfer1::PaddingMode;
using nvinfer1::UnaryOperation;
using Op = nvinfer1::ElementWiseOperation;

constexpr double kLargestExact = 1 << 24;

// w - z as INT8, where that holds it.
struct IntegerWeights
{
    Constant w;
    std::vector<double> sums, magnitudes; // for each output: of its weights, of their absolute values
};

// Zero points along `axis`, which is that of the outputs.
std::optional<IntegerWeights> weightsOf(ImportContext& ctx, Quantized const& t, int axis)
{
    if (!t.q.isConstant() || t.q.constant().count == 0)
        return {};
    auto const w = lessZeroPoint(ctx, t.q, t.zero, axis);
    if (!w)
        return {};
    int64_t const outputs = w->dims.d[axis];
    int64_t inner = 1;
    for (int i = axis + 1; i < w->dims.nbDims; ++i)
        inner *= w->dims.d[i];
    IntegerWeights result{*w, std::vector<double>(size_t(outputs)), std::vector<double>(size_t(outputs))};
    for (int64_t i = 0; i < w->count; ++i) {
        double const v = double(w->intAt(i));
        result.sums[size_t(i / inner % outputs)] += v;
        result.magnitudes[size_t(i / inner % outputs)] += std::abs(v);
    }
    return result;
}

double largest(std::vector<double> const& list)
{
    return list.empty() ? 0 : *std::ranges::max_element(list);
}

Value one(ImportContext& ctx)
{
    return Value(ctx.filled(1, DataType::kFLOAT, Dims{0, {}}));
}

// Sums of products of whole numbers become numbers of the result: times scales, rounded.
Value requantized(ImportContext& ctx, ITensor& sums, Value const& a, Value const& b, int axis, Quantized const& y)
{
    int const rank = sums.getDimensions().nbDims;
    ITensor& ofInputs =
        ctx.elementwise(spread(ctx, ctx.asTensor(a), rank, -1), spread(ctx, ctx.asTensor(b), rank, axis), Op::kPROD);
    ITensor& step = ctx.elementwise(ofInputs, spread(ctx, ctx.asTensor(y.scale), rank, -1), Op::kDIV);
    return rounded(ctx, ctx.elementwise(sums, step, Op::kPROD), y.zero, axis);
}

// bound: of the magnitude of sums of whole numbers in FLOAT.
void warnBeyondExact(ImportContext const& ctx, double bound)
{
    if (bound >= kLargestExact)
        ctx.warn(fmt::format("its sums may reach {:.0f}; beyond 2^24 they are rounded to 24 digits", bound));
}

Value asInt32(ImportContext& ctx, ITensor& sums)
{
    return Value(ctx.cast(ctx.unary(sums, UnaryOperation::kROUND), DataType::kINT32));
}

ITensor& plusList(ImportContext& ctx, ITensor& x, std::vector<double> const& list)
{
    if (std::ranges::all_of(list, [](double v) { return v == 0; }))
        return x;
    Dims d = unitDims(std::max(x.getDimensions().nbDims, 1));
    d.d[d.nbDims - 1] = int32_t(list.size());
    return ctx.elementwise(x, ctx.asTensor(Value(ctx.floatConstant({list.begin(), list.end()}, d))), Op::kSUM);
}

// ---- products of matrices

// Weights [k, n] with the vector or matrices a in front of them; else nothing.
std::optional<IntegerWeights> columnsOf(ImportContext& ctx, Quantized const& a, Quantized const& b)
{
    return a.q.rank() >= 2 && b.q.rank() == 2 ? weightsOf(ctx, b, 1) : std::nullopt;
}

int64_t summands(Quantized const& b)
{
    Dims const d = b.q.dims();
    int64_t const k = d.nbDims == 0 ? 1 : d.d[std::max(d.nbDims - 2, 0)];
    return k < 0 ? INT32_MAX : k;
}

ITensor& exactProduct(ImportContext& ctx, Quantized const& a, Quantized const& b)
{
    int const lastA = a.q.rank() - 2, lastB = b.q.rank() - 1;
    return multiplied(ctx, centered(ctx, a, std::max(lastA, 0)), centered(ctx, b, std::max(lastB, 0)));
}

bool isOneOrColumns(Value const& scale, int64_t columns)
{
    return scale.isConstant() && (scale.constant().count == 1 || scale.constant().count == columns);
}

// sums: added to those of the products, in their scale; null where there are none.
Value quantizedProduct(ImportContext& ctx, Quantized const& a, Quantized const& b, Quantized const& y,
                       Value const& sums)
{
    bool const known = isOneNumber(a.scale) && isOneZero(a.zero) && isOneNumber(y.scale) && isOneZero(y.zero) &&
                       (sums.isNull() || sums.isConstant());
    auto const weights = known ? columnsOf(ctx, a, b) : std::nullopt;
    bool const areWeights = weights && isOneOrColumns(b.scale, b.q.dims().d[1]);
    bool const areSymmetric = known && !areWeights && a.q.isTensor() && b.q.isTensor() && isOneNumber(b.scale) &&
                              isOneZero(b.zero) && shiftOf(a.q, a.zero) == 0 && shiftOf(b.q, b.zero) == 0 &&
                              sums.isNull();
    if (areWeights || areSymmetric) {
        ITensor& w = areWeights ? ctx.asTensor(Value(weights->w)) : asInt8(ctx, b.q);
        ITensor& v = multiplied(ctx, dequantize(ctx, asInt8(ctx, a.q), a.scale, 0), dequantize(ctx, w, b.scale, 1));
        std::vector<double> list(areWeights ? weights->sums.size() : 1, raiseOf(y, isUint8(y.zero)));
        for (size_t i = 0; areWeights && i < list.size(); ++i) {
            double sum = double(shiftOf(a.q, a.zero)) * weights->sums[i];
            if (!sums.isNull())
                sum += sums.constant().floatAt(sums.constant().count > 1 ? int64_t(i) : 0);
            list[i] += sum * a.scale.constant().floatAt(0) *
                       b.scale.constant().floatAt(b.scale.constant().count > 1 ? int64_t(i) : 0);
        }
        return quantize(ctx, plusList(ctx, v, list), y.scale, isUint8(y.zero));
    }
    InFloat const inFloat(ctx);
    ITensor* product = &exactProduct(ctx, a, b);
    if (!sums.isNull())
        product = &ctx.elementwise(*product, ctx.cast(ctx.asTensor(sums), DataType::kFLOAT), Op::kSUM);
    int const rank = product->getDimensions().nbDims;
    Value const q = requantized(ctx, *product, a.scale, b.scale, rank - 1, y);
    inFloat.apply();
    return q;
}

void importQLinearMatMul(ImportContext& ctx)
{
    Quantized const a = quantized(ctx, 0, 1, 2), b = quantized(ctx, 3, 4, 5);
    Quantized const y{Value(), standing(ctx, ctx.input(6)), ctx.input(7)};
    checkType(ctx, y.zero, 7);
    ctx.setOutput(0, quantizedProduct(ctx, a, b, y, Value()));
}

Value transposed(ImportContext& ctx, Value const& v)
{
    if (v.rank() != 2)
        ctx.invalid("a factor has shape " + describe(v.dims()) + ", not two dimensions");
    if (!v.isConstant())
        return Value(ctx.transpose(v.type() == DataType::kUINT8 ? wholeFloats(ctx, v) : v.tensor(), {1, 0}),
                     v.integers());
    Constant const& from = v.constant();
    int64_t const rows = from.dims.d[0], columns = from.dims.d[1];
    Constant c = ctx.newConstant(from.type, Dims{2, {int32_t(columns), int32_t(rows)}});
    c.integers = from.integers;
    for (int64_t i = 0; i < c.count; ++i)
        ctx.store(c, i, from.floatAt(i % rows * columns + i / rows));
    return Value(c);
}

// ONNX Runtime's: C has the scale of the products; without a scale of y the result is in FLOAT.
void importQGemm(ImportContext& ctx)
{
    Quantized a = quantized(ctx, 0, 1, 2), b = quantized(ctx, 3, 4, 5);
    ctx.check(ctx.attrFloat("alpha", 1) == 1, "alpha other than 1 cannot be imported");
    if (ctx.attrInt("transA", 0) != 0)
        a.q = transposed(ctx, a.q);
    if (ctx.attrInt("transB", 0) != 0)
        b.q = transposed(ctx, b.q);
    Value const c = ctx.optionalInput(6);
    if (!c.isNull() && c.type() != DataType::kINT32)
        ctx.invalid("C is " + std::string(typeName(c.type())) + ", not INT32");
    ctx.check(c.isNull() || !c.isConstant() || c.rank() <= 1 || c.dims().d[0] == 1,
              "C of shape " + describe(c.dims()) + " cannot be imported: one number for each column can");
    int64_t const columns = b.q.rank() == 2 ? b.q.dims().d[1] : -1;
    if (c.isConstant() && c.constant().count != 1 && c.constant().count != columns)
        ctx.invalid(fmt::format("C has {} numbers for {} columns", c.constant().count, columns));
    if (ctx.hasInput(7)) {
        Quantized const y{Value(), standing(ctx, ctx.input(7)), zeroPoint(ctx, 8)};
        return ctx.setOutput(0, quantizedProduct(ctx, a, b, y, c));
    }
    InFloat const inFloat(ctx);
    ITensor* v = &exactProduct(ctx, a, b);
    if (!c.isNull())
        v = &ctx.elementwise(*v, ctx.cast(ctx.asTensor(c), DataType::kFLOAT), Op::kSUM);
    int const rank = v->getDimensions().nbDims;
    ITensor& step = ctx.elementwise(spread(ctx, ctx.asTensor(a.scale), rank, -1),
                                    spread(ctx, ctx.asTensor(b.scale), rank, 1), Op::kPROD);
    ctx.setOutput(0, ctx.elementwise(*v, step, Op::kPROD));
    inFloat.apply();
}

// sum over k of (q - z)(w - z_w), in FLOAT.
ITensor& sumsOfProducts(ImportContext& ctx, Quantized const& a, Quantized const& b)
{
    auto const weights = columnsOf(ctx, a, b);
    if (!weights) {
        warnBeyondExact(ctx, double(summands(b)) * 255 * 255);
        return exactProduct(ctx, a, b);
    }
    warnBeyondExact(ctx, largest(weights->magnitudes) * 255);
    ITensor& x = dequantize(ctx, asInt8(ctx, a.q), one(ctx), 0);
    ITensor& sums = multiplied(ctx, x, dequantize(ctx, ctx.asTensor(Value(weights->w)), one(ctx), 0));
    if (isOneZero(a.zero)) {
        std::vector<double> list = weights->sums;
        for (double& v : list)
            v *= double(shiftOf(a.q, a.zero));
        return plusList(ctx, sums, list);
    }
    // The run knows the zero point.
    int const rank = sums.getDimensions().nbDims;
    ITensor& zero = spread(ctx, wholeFloats(ctx, a.zero), rank, rank - 2);
    ITensor& shift = ctx.elementwise(ctx.scalarLike(isUint8(a.q) ? 128 : 0, zero), zero, Op::kSUB);
    Dims d{1, {int32_t(weights->sums.size())}};
    ITensor& list = ctx.asTensor(Value(ctx.floatConstant({weights->sums.begin(), weights->sums.end()}, d)));
    return ctx.elementwise(sums, ctx.elementwise(shift, list, Op::kPROD), Op::kSUM);
}

void importMatMulInteger(ImportContext& ctx)
{
    Quantized const a = quantized(ctx, 0, -1, 2), b = quantized(ctx, 1, -1, 3);
    InFloat const inFloat(ctx);
    ctx.setOutput(0, asInt32(ctx, sumsOfProducts(ctx, a, b)));
    inFloat.apply();
}

// ---- convolutions

bool isPadded(WindowAttrs const& window)
{
    auto const isAny = [](std::vector<int64_t> const& list) {
        return std::ranges::any_of(list, [](int64_t v) { return v != 0; });
    };
    return window.mode != PaddingMode::kEXPLICIT_ROUND_DOWN || isAny(window.before) || isAny(window.after);
}

// x with the padding of the window, which has none then.
ITensor& padded(ImportContext& ctx, ITensor& x, WindowAttrs& window, double value)
{
    Sizes sizes = ctx.sizesOf(x), start(sizes.size(), Size(0));
    for (size_t i = 0; i < window.before.size(); ++i) {
        start[i + 2] = Size(-window.before[i]);
        sizes[i + 2] = ctx.add(sizes[i + 2], window.before[i] + window.after[i]);
        window.before[i] = window.after[i] = 0;
    }
    ITensor& fill = ctx.asTensor(Value(ctx.filled(value, x.getType(), Dims{0, {}})));
    return ctx.slice(x, start, sizes, Sizes(sizes.size(), Size(1)), nvinfer1::SliceMode::kFILL, &fill);
}

void checkConvolution(ImportContext& ctx, Quantized const& x, Quantized const& w)
{
    int const rank = x.q.rank();
    ctx.check(rank >= 3 && rank <= 5,
              "input of shape " + describe(x.q.dims()) + " must have 1, 2 or 3 dimensions behind batch and channel");
    if (w.q.rank() != rank)
        ctx.invalid("kernel of shape " + describe(w.q.dims()) + " does not fit input of shape " + describe(x.q.dims()));
    ctx.check(isStatic(w.q.dims()), "the kernel's dimensions must be known, they are " + describe(w.q.dims()));
}

// On INT8 layers; nothing where they cannot have it. scales: of x and w. bias: for each output, added to its sum with
// what the shift gives.
ITensor* convolvedOnInt8(ImportContext& ctx, Quantized const& x, IntegerWeights const& w, Value const& scaleX,
                         Value const& scaleW, std::vector<double> bias)
{
    WindowAttrs window = convolutionWindow(ctx, w.w.dims);
    int64_t const shift = shiftOf(x.q, x.zero);
    bool const isExplicit = window.mode == PaddingMode::kEXPLICIT_ROUND_DOWN;
    if (shift != 0 && isPadded(window) && !isExplicit)
        return nullptr;
    ITensor* q = &asInt8(ctx, x.q);
    if (shift != 0 && isPadded(window))
        q = &padded(ctx, *q, window, double(-shift));
    for (size_t i = 0; i < bias.size(); ++i)
        bias[i] += double(shift) * w.sums[i] * scaleX.constant().floatAt(0) *
                   scaleW.constant().floatAt(scaleW.constant().count > 1 ? int64_t(i) : 0);
    bool const isBiased = std::ranges::any_of(bias, [](double v) { return v != 0; });
    Value const list =
        isBiased ? Value(ctx.floatConstant({bias.begin(), bias.end()}, Dims{1, {int32_t(bias.size())}})) : Value();
    ITensor& weights = dequantize(ctx, ctx.asTensor(Value(w.w)), scaleW, 0);
    return &convolved(ctx, dequantize(ctx, *q, scaleX, 0), Value(weights), list, window);
}

// In FLOAT. The transforms of fast convolutions with windows of 3 round: a column of zeros more makes them others.
ITensor& exactConvolution(ImportContext& ctx, Quantized const& x, Quantized const& w)
{
    WindowAttrs window = convolutionWindow(ctx, w.q.dims());
    ITensor* kernel = &centered(ctx, w, 0);
    if (window.kernel.back() == 3 && window.mode == PaddingMode::kEXPLICIT_ROUND_DOWN) {
        Sizes sizes = ctx.sizesOf(*kernel);
        sizes.back() = ctx.add(sizes.back(), 1);
        kernel = &ctx.slice(*kernel, Sizes(sizes.size(), Size(0)), sizes, Sizes(sizes.size(), Size(1)),
                            nvinfer1::SliceMode::kFILL);
        window.kernel.back() = 4;
        window.after.back() += window.dilations.back();
    }
    return convolved(ctx, centered(ctx, x, -1), Value(*kernel), Value(), window);
}

void importQLinearConv(ImportContext& ctx)
{
    Quantized const x = quantized(ctx, 0, 1, 2), w = quantized(ctx, 3, 4, 5);
    Quantized const y{Value(), standing(ctx, ctx.input(6)), ctx.input(7)};
    checkType(ctx, y.zero, 7);
    checkConvolution(ctx, x, w);
    Value const bias = ctx.optionalInput(8);
    int64_t const outputs = w.q.dims().d[0];
    if (!bias.isNull() && (bias.type() != DataType::kINT32 || bias.rank() != 1 || bias.dims().d[0] != outputs))
        ctx.invalid(
            fmt::format("the bias is {}{}, not INT32[{}]", typeName(bias.type()), describe(bias.dims()), outputs));
    bool const known = isOneNumber(x.scale) && isOneZero(x.zero) && isOneNumber(y.scale) && isOneZero(y.zero) &&
                       isOneOrColumns(w.scale, outputs) && (bias.isNull() || bias.isConstant());
    auto const weights = known ? weightsOf(ctx, w, 0) : std::nullopt;
    if (weights) {
        std::vector<double> list(size_t(outputs), raiseOf(y, isUint8(y.zero)));
        for (size_t i = 0; i < list.size() && !bias.isNull(); ++i)
            list[i] += double(bias.constant().intAt(int64_t(i))) * x.scale.constant().floatAt(0) *
                       w.scale.constant().floatAt(w.scale.constant().count > 1 ? int64_t(i) : 0);
        if (ITensor* const v = convolvedOnInt8(ctx, x, *weights, x.scale, w.scale, list))
            return ctx.setOutput(0, quantize(ctx, *v, y.scale, isUint8(y.zero)));
    }
    InFloat const inFloat(ctx);
    ITensor* sums = &exactConvolution(ctx, x, w);
    int const rank = sums->getDimensions().nbDims;
    if (!bias.isNull())
        sums = &ctx.elementwise(*sums, spread(ctx, ctx.cast(ctx.asTensor(bias), DataType::kFLOAT), rank, 1), Op::kSUM);
    ctx.setOutput(0, requantized(ctx, *sums, x.scale, w.scale, 1, y));
    inFloat.apply();
}

void importConvInteger(ImportContext& ctx)
{
    Quantized const x = quantized(ctx, 0, -1, 2), w = quantized(ctx, 1, -1, 3);
    checkConvolution(ctx, x, w);
    InFloat const inFloat(ctx);
    auto const weights = isOneZero(x.zero) ? weightsOf(ctx, w, 0) : std::nullopt;
    if (weights)
        if (ITensor* const sums =
                convolvedOnInt8(ctx, x, *weights, one(ctx), one(ctx), std::vector<double>(weights->sums.size(), 0))) {
            warnBeyondExact(ctx, largest(weights->magnitudes) * 255);
            ctx.setOutput(0, asInt32(ctx, *sums));
            return inFloat.apply();
        }
    int64_t const outputs = std::max(w.q.dims().d[0], 1);
    warnBeyondExact(ctx,
                    weights ? largest(weights->magnitudes) * 255 : double(volume(w.q.dims()) / outputs) * 255 * 255);
    ctx.setOutput(0, asInt32(ctx, exactConvolution(ctx, x, w)));
    inFloat.apply();
}

void importDynamicQuantizeLinear(ImportContext& ctx)
{
    InFloat const inFloat(ctx);
    Quantized const y = quantizedByRange(ctx, ctx.tensor(0));
    ctx.setOutput(0, y.q);
    ctx.setOutput(1, y.scale);
    ctx.setOutput(2, y.zero);
    inFloat.apply();
}

// ONNX Runtime's: a product of integers times its scales, with a bias.
void importMatMulIntegerToFloat(ImportContext& ctx)
{
    InFloat const inFloat(ctx);
    ITensor& y = productInFloat(ctx, quantized(ctx, 0, 2, 4), quantized(ctx, 1, 3, 5));
    ctx.setOutput(0, ctx.hasInput(6) ? ctx.elementwise(y, ctx.tensor(6), Op::kSUM) : y);
    inFloat.apply();
}

void importDynamicQuantizeMatMul(ImportContext& ctx)
{
    InFloat const inFloat(ctx);
    ITensor& y = productInFloat(ctx, quantizedByRange(ctx, ctx.tensor(0)), quantized(ctx, 1, 2, 3));
    ctx.setOutput(0, ctx.hasInput(4) ? ctx.elementwise(y, ctx.tensor(4), Op::kSUM) : y);
    inFloat.apply();
}

} // namespace

// s = (max(0, largest) - min(0, least)) / 255 (1 where that is 0, as ONNX Runtime has it), z = -min(0, least) / s.
Quantized quantizedByRange(ImportContext& ctx, ITensor& x)
{
    if (x.getType() != DataType::kFLOAT)
        ctx.invalid("its input is " + std::string(typeName(x.getType())) + ", not FLOAT");
    std::vector<int> const all = allAxes(x.getDimensions().nbDims);
    ITensor& none = ctx.scalar(0, DataType::kFLOAT, 0);
    ITensor& low = ctx.elementwise(ctx.reduce(x, nvinfer1::ReduceOperation::kMIN, all, false), none, Op::kMIN);
    ITensor& high = ctx.elementwise(ctx.reduce(x, nvinfer1::ReduceOperation::kMAX, all, false), none, Op::kMAX);
    ITensor& step =
        ctx.elementwise(ctx.elementwise(high, low, Op::kSUB), ctx.scalar(255, DataType::kFLOAT, 0), Op::kDIV);
    ITensor& scale = ctx.select(ctx.elementwise(step, none, Op::kEQUAL), ctx.scalar(1, DataType::kFLOAT, 0), step);
    ITensor& down = ctx.elementwise(none, low, Op::kSUB);
    Value const zero = rounded(ctx, ctx.elementwise(down, scale, Op::kDIV), Value(), -1);
    return {rounded(ctx, ctx.elementwise(x, scale, Op::kDIV), zero, -1), Value(scale), zero};
}

ITensor& productInFloat(ImportContext& ctx, Quantized const& a, Quantized const& b)
{
    ITensor& sums = sumsOfProducts(ctx, a, b);
    int const rank = sums.getDimensions().nbDims;
    ITensor& step = ctx.elementwise(spread(ctx, ctx.asTensor(a.scale), rank, std::max(rank - 2, 0)),
                                    spread(ctx, ctx.asTensor(b.scale), rank, std::max(rank - 1, 0)), Op::kPROD);
    return ctx.elementwise(sums, step, Op::kPROD);
}

void register_composites_quantized(ImporterMap& map)
{
    map.add("QGemm", importQGemm, 1, ImporterMap::kNewestOpset, kMicrosoft);
    map.add("MatMulIntegerToFloat", importMatMulIntegerToFloat, 1, ImporterMap::kNewestOpset, kMicrosoft);
    map.add("DynamicQuantizeMatMul", importDynamicQuantizeMatMul, 1, ImporterMap::kNewestOpset, kMicrosoft);
    map.add("QLinearConv", importQLinearConv);
    map.add("QLinearMatMul", importQLinearMatMul);
    map.add("MatMulInteger", importMatMulInteger);
    map.add("ConvInteger", importConvInteger);
    map.add("DynamicQuantizeLinear", importDynamicQuantizeLinear);
}

} // namespace tw::onnx
