// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_pointwise.h"

#include <algorithm>

#include "base/format.h"
#include "families/elementwise/activate.h"
#include "families/elementwise/cuda_pointwise_params.h"
#include "tactic/broadcast.h"

namespace tw::ops {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kPackBytes = 16;

bool isAligned(void const* p, int64_t bytes)
{
    return cuda::addressOf(p) % uint64_t(bytes) == 0;
}

BroadcastLoop loopOf(Extents const& y, Extents const* in, size_t count)
{
    Extents const* list[kMaxCudaOperands] = {};
    for (size_t k = 0; k < count; ++k)
        list[k] = &in[k];
    return broadcastLoop(y, std::span<Extents const* const>(list, count));
}

// Elements of an operand from image to image, from pixel to pixel, and along the channels (0 or 1).
struct PixelSteps
{
    int64_t image = 0, pixel = 0, unit = 0;
};

// `x`: the operand's dimensions, of y's rank. False: its elements do not lie so, in packs of `pack`.
bool pixelSteps(Extents const& y, Extents const& x, TensorRef const& t, int64_t pack, PixelSteps& steps)
{
    int const axis = y.rank - 3;
    int64_t const pixels = y[axis + 1] * y[axis + 2];
    if (isPixelVectors(t.format)) {
        steps = {pixels * t.pixelStride(), t.pixelStride(), 1};
        return x == y;
    }
    auto is = [&](int from, int to, bool stretched) {
        for (int d = from; d < to; ++d)
            if (x[d] != (stretched ? 1 : y[d]))
                return false;
        return true;
    };
    bool const allImages = is(0, axis, false), onePixel = is(axis + 1, y.rank, true);
    if ((!allImages && !is(0, axis, true)) || (!onePixel && !is(axis + 1, y.rank, false)) ||
        (x[axis] != 1 && (x[axis] != y[axis] || !onePixel)))
        return false;
    bool const alongChannels = x[axis] != 1;
    steps.image = allImages && y.volume(0, axis) > 1 ? x.volume(axis, x.rank) : 0;
    steps.pixel = onePixel ? 0 : 1;
    steps.unit = alongChannels ? 1 : 0;
    return !alongChannels || y[axis] % std::max<int64_t>(pack, 8) == 0; // packs end with the channels
}

// Elements of a pack, of 16 bytes of the widest type that there is more than one number of; at least 8 of i8.
int64_t packOf(Problem const& problem, std::vector<int> const& inputs)
{
    int64_t widest = sizeOf(problem.outputs[0].type);
    for (int i : inputs)
        if (TensorSpec const& x = problem.inputs[size_t(i)]; x.maxDims.volume() != 1)
            widest = std::max(widest, sizeOf(x.type));
    int64_t const pack = kPackBytes / widest;
    return isQuantized(problem.outputs[0].type) ? std::max<int64_t>(pack, 8) : pack;
}

// Dimensions that the loop has at the most.
int rankOf(Problem const& problem, Pointwise const& what)
{
    if (what.views || !isStatic(problem))
        return std::max(problem.outputs[0].dims.rank, what.views ? 3 : 1);
    Extents in[kMaxCudaOperands];
    for (size_t k = 0; k < what.inputs.size(); ++k)
        in[k] = problem.inputs[size_t(what.inputs[k])].dims;
    return loopOf(problem.outputs[0].dims, in, what.inputs.size()).rank;
}

CudaSource sourceOf(Problem const& problem, Pointwise const& what, int64_t pack)
{
    DataType const y = problem.outputs[0].type;
    Format const format = problem.outputs[0].format;
    bool const isPixels = isPixelVectors(format);
    CudaSource out;
    out.wide = isWide(problem) || (isPixels && storageCount(format, y, problem.outputs[0].maxDims) >= INT32_MAX);
    out.isDependent = true;
    out.alignment = isPixels ? kPackBytes : 1;
    out.text = what.text + cuda::constant("RANK", rankOf(problem, what)) +
               cuda::type("ByteNumber", what.takesBytesAsFloats ? "float" : "double") +
               cuda::include("families/elementwise/cuda_pointwise.cuh") + "namespace tw::ops {\n";
    auto add = [&](char const* suffix, char const* body, int64_t width) {
        out.names.push_back(what.name + std::string(suffix));
        std::string const wide = std::to_string(width), storage = cuda::storageOf(y);
        out.text += "TW_KERNEL " + out.names.back() + "(const __grid_constant__ PointwiseParams p) { " + body + "<" +
                    wide + ", " + storage + ">(p";
        for (size_t k = 0; k < what.inputs.size(); ++k)
            out.text += fmt::format(", Operand<{}, {}, {}>()", k,
                                    cuda::storageOf(problem.inputs[size_t(what.inputs[k])].type), wide);
        out.text += "); }\n";
    };
    add("_vector", "compute", pack);
    add("_scalar", "compute", 1);
    add("_pixels", "computePixels", pack);
    out.text += "}\n";
    return out;
}

// What a run needs of the problem.
struct Operands
{
    ir::Node const& node;
    std::vector<int> inputs;
    Pointwise::Views views;
    int64_t pack; // elements

    // Dimensions of y and of the operands.
    void dimsOf(RunArgs const& args, Extents& y, Extents* in) const
    {
        y = args.outputs[0].dims;
        for (size_t k = 0; k < inputs.size(); ++k)
            in[k] = args.inputs[size_t(inputs[k])].dims;
        if (views)
            views(node, args, y, in);
    }
};

// Images by pixels: one row of packs where all operands are dense, else [images, pixels, packs of channels]. Gaps after
// the last channel, as far as all have them, take part: what lies there is nobody's.
Result<void> runPixels(Operands const& o, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const& out = args.outputs[0];
    Extents y, in[kMaxCudaOperands];
    size_t const count = o.inputs.size();
    o.dimsOf(args, y, in);
    int const axis = y.rank - 3;
    int64_t const images = y.volume(0, axis), pixels = y[axis + 1] * y[axis + 2];
    int64_t stored = pixelStrideOf(out.format, out.type, y[axis]);
    for (int i : o.inputs)
        if (TensorRef const& t = args.inputs[size_t(i)]; isPixelVectors(t.format))
            stored = std::min(stored, pixelStrideOf(t.format, t.type, y[axis]));
    int64_t const packs = stored / o.pack;
    PointwiseParams p;
    p.out = out.data;
    p.yPixel = out.pixelStride();
    p.yImage = pixels * p.yPixel;
    bool isDense = p.yPixel == stored;
    PixelSteps steps[kMaxCudaOperands];
    for (size_t k = 0; k < count; ++k) {
        TensorRef const& t = args.inputs[size_t(o.inputs[k])];
        if (!pixelSteps(y, in[k], t, o.pack, steps[k]))
            return unsupported("operand {} of dimensions {} is not one number for each channel, pixel or image of {}",
                               k, in[k].str(), y.str());
        p.in[k] = t.data;
        p.unit[k] = int32_t(steps[k].unit);
        isDense = isDense && isPixelVectors(t.format) && t.pixelStride() == stored;
    }
    Extents const dims = isDense ? Extents{images * pixels * packs} : Extents{images, pixels, packs};
    p.loop.set(dims);
    for (size_t k = 0; k < count; ++k)
        p.loop.setStrides(int(k),
                          isDense ? Extents{o.pack} : Extents{steps[k].image, steps[k].pixel, steps[k].unit * o.pack});
    p.packs = uint64_t(dims.volume());
    return launch(isDense ? 0 : 2, blocksFor(dims.volume(), kThreads), kThreads, p);
}

Result<void> run(Operands const& o, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const& out = args.outputs[0];
    if (isPixelVectors(out.format))
        return runPixels(o, launch, args);
    Extents y, in[kMaxCudaOperands];
    size_t const count = o.inputs.size();
    o.dimsOf(args, y, in);
    BroadcastLoop const loop = loopOf(y, in, count);
    PointwiseParams p;
    p.out = out.data;
    int64_t const last = loop.rank - 1;
    bool const oneRow = loop.rank == 1;
    bool packs =
        o.pack > 1 && (oneRow || loop.extent[last] % o.pack == 0) && isAligned(out.data, o.pack * sizeOf(out.type));
    for (size_t k = 0; k < count; ++k) {
        TensorRef const& t = args.inputs[size_t(o.inputs[k])];
        p.in[k] = t.data;
        p.unit[k] = int32_t(loop.stride[k][last]);
        bool fits = p.unit[k] == 0 || isAligned(t.data, o.pack * sizeOf(t.type));
        for (int64_t d = 0; d < last && fits && p.unit[k] != 0; ++d)
            fits = loop.stride[k][d] % o.pack == 0;
        packs = packs && fits;
    }
    int64_t const width = packs ? o.pack : 1;
    Extents dims;
    for (int d = 0; d < loop.rank; ++d)
        dims.push(d == last ? (loop.extent[d] + width - 1) / width : loop.extent[d]);
    p.loop.set(dims);
    p.tail = oneRow ? int32_t(loop.extent[0] % width) : 0;
    for (size_t k = 0; k < count; ++k) {
        Extents strides;
        for (int d = 0; d < loop.rank; ++d)
            strides.push(d == last ? loop.stride[k][d] * width : loop.stride[k][d]);
        p.loop.setStrides(int(k), strides);
    }
    p.packs = uint64_t(dims.volume());
    return launch(packs ? 0 : 1, blocksFor(dims.volume(), kThreads), kThreads, p);
}

} // namespace

std::unique_ptr<CudaKernels> pointwiseKernels(Problem const& problem, Pointwise const& what)
{
    int64_t const pack = packOf(problem, what.inputs);
    return kernelsOf(sourceOf(problem, what, pack),
                     [o = Operands{*problem.node, what.inputs, what.views, pack}](
                         CudaLaunch const& launch, RunArgs& args) { return run(o, launch, args); });
}

std::vector<Formats> pointwiseFormats(Problem const& p, std::vector<int> const& inputs, Pointwise::Views views)
{
    Formats f = linearFormats(p);
    std::vector<Formats> list{f};
    TensorSpec const& out = p.outputs[0];
    if (!isReal(out.type) || out.dims.rank < 3 || inputs.size() > size_t(kMaxCudaOperands))
        return list;
    ir::Shape const& shape = p.node->outputs[0]->shape;
    f.outputs[0] = pixelVectorsOf(out.type);
    bool anyPixels = false;
    for (int i : inputs) {
        ir::Value const* v = p.node->inputs[size_t(i)];
        if (!v || v->isConstant() || !isReal(v->type) || !(v->shape == shape))
            continue;
        f.inputs[size_t(i)] = pixelVectorsOf(v->type);
        anyPixels = true;
    }
    if (!anyPixels)
        return list;
    // The others, at the optimum and at the maximum.
    for (bool atMaximum : {false, true}) {
        auto refOf = [&](TensorSpec const& t, Format format) {
            TensorRef r{t.type, atMaximum ? t.maxDims : t.dims, nullptr, format};
            r.data = t.present ? const_cast<TensorSpec*>(&t) : nullptr; // only whether it is there
            return r;
        };
        std::vector<TensorRef> in, y{refOf(out, f.outputs[0])};
        for (size_t i = 0; i < p.inputs.size(); ++i)
            in.push_back(refOf(p.inputs[i], f.inputs[i]));
        RunArgs args{in, y};
        Extents dims = y[0].dims, operands[kMaxCudaOperands];
        for (size_t k = 0; k < inputs.size(); ++k)
            operands[k] = in[size_t(inputs[k])].dims;
        if (views)
            views(*p.node, args, dims, operands);
        for (size_t k = 0; k < inputs.size(); ++k) {
            PixelSteps steps;
            if (operands[k].rank != dims.rank ||
                !pixelSteps(dims, operands[k], in[size_t(inputs[k])], packOf(p, inputs), steps))
                return list;
        }
    }
    list.push_back(f);
    return list;
}

std::vector<Formats> pointwiseFormatsOfAll(Problem const& p)
{
    std::vector<int> inputs;
    for (size_t i = 0; i < p.inputs.size(); ++i)
        inputs.push_back(int(i));
    return pointwiseFormats(p, inputs);
}

namespace {

// y of x, alpha and beta; `half`, of half_math.cuh: null where the plain expression is cheap, or exact. Comparisons are
// turned so that NaN goes through.
struct ActivationText
{
    int kind;
    char const* text;
    char const* half = nullptr;
};
using activation::Kind;
constexpr ActivationText kActivationTexts[] = {
    {int(FusedKind::kSwish), "x / (1 + exp(-x))", "x * halfSigmoid(x)"},
    {int(FusedKind::kHardSwish), "x * ((alpha * x + beta > 1 ? T(1) : alpha * x + beta) < 0 ? T(0) : "
                                 "(alpha * x + beta > 1 ? T(1) : alpha * x + beta))"},
    {int(FusedKind::kGeluErf), "T(0.5) * x * (1 + erf(x * T(0.70710678118654752)))", "halfGelu(x)"},
    // 1 + tanh u = 2 / (1 + exp(-2 u))
    {int(FusedKind::kGeluTanh), "T(0.5) * x * (1 + tanh(T(0.79788456080286536) * (x + T(0.044715) * x * x * x)))",
     "x * halfSigmoid(1.59576912f * (x + 0.044715f * x * x * x))"},
    {int(Kind::kRelu), "x < 0 ? T(0) : x"},
    {int(Kind::kSigmoid), "1 / (1 + exp(-x))", "halfSigmoid(x)"},
    {int(Kind::kTanh), "tanh(x)", "halfTanh(x)"},
    {int(Kind::kLeakyRelu), "x >= 0 ? x : alpha * x"},
    {int(Kind::kElu), "x >= 0 ? x : alpha * expm1(x)", "x >= 0 ? x : alpha * halfExpm1(x)"},
    {int(Kind::kSelu), "x > 0 ? beta * x : beta * (alpha * expm1(x))",
     "x > 0 ? beta * x : beta * (alpha * halfExpm1(x))"},
    {int(Kind::kSoftsign), "x / (1 + fabs(x))", "x * halfRecip(1 + fabs(x))"},
    {int(Kind::kSoftplus), "alpha * ((beta * x < 0 ? T(0) : beta * x) + log1p(exp(-fabs(beta * x))))",
     "alpha * halfSoftplus(beta * x)"},
    {int(Kind::kClip), "(x > beta ? beta : x) < alpha ? alpha : (x > beta ? beta : x)"},
    {int(Kind::kHardSigmoid), "(alpha * x + beta > 1 ? T(1) : alpha * x + beta) < 0 ? T(0) : "
                              "(alpha * x + beta > 1 ? T(1) : alpha * x + beta)"},
    {int(Kind::kScaledTanh), "alpha * tanh(beta * x)", "alpha * halfTanh(beta * x)"},
    {int(Kind::kThresholdedRelu), "x > alpha ? x : T(0)"},
};

} // namespace

std::string activationSource(char const* name, int kind, float alpha, float beta, bool isHalf)
{
    auto const* const found = std::find_if(std::begin(kActivationTexts), std::end(kActivationTexts),
                                           [&](ActivationText const& a) { return a.kind == kind; });
    std::string const body = found == std::end(kActivationTexts) ? "x"
                             : isHalf && found->half             ? found->half
                                                                 : found->text;
    return std::string("template <class T> TW_INLINE T ") + name +
           "(T x)\n{\n    T const alpha = " + cuda::literal(alpha) + ", beta = " + cuda::literal(beta) +
           ";\n    (void)alpha; (void)beta;\n    return " + body + ";\n}\n";
}

} // namespace tw::ops
