// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <utility>

#include "base/element.h"
#include "base/round.h"
#include "kernels/cpu/int8_pixels.h"
#include "kernels/cpu/rows.h"
#include "ops/pooling/op.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::pooling {

namespace {

// The part of window `o` inside the input, and how many positions it has inside the padded input.
struct Part
{
    int64_t begin, end, padded;
};
Part partOf(Geometry const& g, int axis, int64_t o)
{
    int64_t const start = o * g.stride[axis] - g.before[axis], stop = start + g.window[axis];
    int64_t const begin = std::max<int64_t>(start, 0);
    return Part{begin, std::max(std::min(stop, g.in[axis]), begin), std::min(stop, g.in[axis] + g.after[axis]) - start};
}

// A row of outputs in two steps: the input rows of the window are joined element by element into one row, which
// vectorizes, then each output joins its part of that row. Maxima are exact in float for every type; sums are double.
//   sums, maxima: [in[2]], only those that the kind needs
template <class T, bool kMax, bool kAverage>
void pool(Geometry const& g, Attrs const& a, T const* x, T* y, double* sums, float* maxima)
{
    float const lowest = std::is_same_v<T, int8_t> ? -128.0f : -std::numeric_limits<float>::infinity();
    double const blend = a.blend;
    int64_t const width = g.in[2];
    for (int64_t n = 0; n < g.batch; ++n, x += g.in[0] * g.in[1] * width)
        for (int64_t o0 = 0; o0 < g.out[0]; ++o0)
            for (int64_t o1 = 0; o1 < g.out[1]; ++o1) {
                Part const p0 = partOf(g, 0, o0), p1 = partOf(g, 1, o1);
                if (kAverage)
                    std::fill(sums, sums + width, 0.0);
                if (kMax)
                    std::fill(maxima, maxima + width, lowest);
                for (int64_t i0 = p0.begin; i0 < p0.end; ++i0)
                    for (int64_t i1 = p1.begin; i1 < p1.end; ++i1) {
                        T const* row = x + (i0 * g.in[1] + i1) * width;
                        for (int64_t i = 0; i < width; ++i) {
                            float const v = loadElement(row[i]);
                            if (kAverage)
                                sums[i] += double(v);
                            if (kMax)
                                maxima[i] = v > maxima[i] || v != v ? v : maxima[i];
                        }
                    }
                double const rows = double((p0.end - p0.begin) * (p1.end - p1.begin));
                double const paddedRows = double(p0.padded) * double(p1.padded);
                for (int64_t o2 = 0; o2 < g.out[2]; ++o2) {
                    Part const p2 = partOf(g, 2, o2);
                    float largest = lowest;
                    double sum = 0;
                    for (int64_t i = p2.begin; i < p2.end; ++i) {
                        if (kAverage)
                            sum += sums[i];
                        if (kMax)
                            largest = maxima[i] > largest || maxima[i] != maxima[i] ? maxima[i] : largest;
                    }
                    double const inside = rows * double(p2.end - p2.begin);
                    double const average =
                        inside == 0 ? 0 : sum / (a.excludePadding ? inside : paddedRows * double(p2.padded));
                    if (kMax && kAverage)
                        storeElement(*y++, (1 - blend) * double(largest) + blend * average);
                    else
                        storeElement(*y++, kMax ? double(largest) : average);
                }
            }
}

template <class T>
void poolAs(Geometry const& g, Attrs const& a, TensorRef const& x, TensorRef const& y, void* workspace)
{
    auto* sums = static_cast<double*>(workspace);
    auto* maxima = reinterpret_cast<float*>(sums + g.in[2]);
    if (a.kind == Kind::kMax)
        pool<T, true, false>(g, a, x.as<T>(), y.as<T>(), sums, maxima);
    else if (a.kind == Kind::kAverage)
        pool<T, false, true>(g, a, x.as<T>(), y.as<T>(), sums, maxima);
    else
        pool<T, true, true>(g, a, x.as<T>(), y.as<T>(), sums, maxima);
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    Geometry const g = geometryOf(a, x.dims, y.dims);
    withReal(x.type, [&](auto element) { poolAs<decltype(element)>(g, a, x, y, args.workspace); });
    return {};
}

int64_t workspace(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    return in[0].dims[in[0].dims.rank - 1] * int64_t(sizeof(double) + sizeof(float)); // a row of sums, one of maxima
}

constexpr PlainTactic kPlain{"pooling_any_plain_cpu", 1, run, workspace};

// ---- Channels-last: rows of output pixels, all channels of a pixel in vectors.

Support supportsNhwc(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    if (a.kind == Kind::kMaxAverageBlend)
        return Support::no("does not blend maximum and average");
    if (p.inputs[0].dims.rank != int(a.window.size()) + 2)
        return Support::no("needs the window to cover every axis behind the channels");
    return Support::yes();
}

template <class T, class Kernel>
void poolPixels(ir::Node const& node, Kernel const& poolRow, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    Geometry const g = geometryOf(a, x.dims, y.dims);
    int64_t const images = x.dims[0], channels = x.dims[1], xStep = x.pixelStride(), yStep = y.pixelStride();
    // Few rows (global pooling): channels are distributed too.
    constexpr int64_t kChannelBlock = 64;
    int64_t const rows = images * g.out[0] * g.out[1];
    bool const split = rows < 2 * args.workers->count();
    int64_t const blocks = split ? divideUp(channels, kChannelBlock) : 1;
    auto const image = [](TensorRef const& t, int64_t n) { return t.as<T>() + n * pixelsOf(t) * t.pixelStride(); };
    auto const one = [&](int64_t index) {
        int64_t const row = index / blocks, c = index % blocks * kChannelBlock;
        int64_t const o1 = row % g.out[1], o0 = row / g.out[1] % g.out[0], n = row / g.out[1] / g.out[0];
        Part const p0 = partOf(g, 0, o0), p1 = partOf(g, 1, o1);
        kernels::PoolRowOf<T> r;
        r.step = xStep;
        r.step1 = g.in[2] * xStep;
        r.step0 = g.in[1] * r.step1;
        r.x = image(x, n) + p0.begin * r.step0 + p1.begin * r.step1 + c;
        r.rows0 = p0.end - p0.begin;
        r.rows1 = p1.end - p1.begin;
        r.in = g.in[2];
        r.out = g.out[2];
        r.window = g.window[2];
        r.stride = g.stride[2];
        r.before = g.before[2];
        r.after = g.after[2];
        r.channels = split ? std::min(kChannelBlock, channels - c) : channels;
        r.y = image(y, n) + (o0 * g.out[1] + o1) * g.out[2] * yStep + c;
        r.yStep = yStep;
        r.average = a.kind == Kind::kAverage;
        r.excludePadding = a.excludePadding;
        r.paddedRows = float(p0.padded) * float(p1.padded);
        poolRow(r);
    };
    int64_t const bytes = x.sizeBytes() + y.sizeBytes();
    eachInPieces(*args.workers, rows * blocks, bytes, one);
}

Result<void> runNhwc(ir::Node const& node, kernels::ChannelsLastKernels const& k, RunArgs& args)
{
    poolPixels<float>(node, k.poolRow, args);
    return {};
}

Support supportsInt8(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    int64_t positions = 1;
    for (int64_t w : a.window)
        positions = ir::mulSat(positions, w);
    if (positions > kernels::kMostInt8Averaged)
        return Support::no(fmt::format("adds at most {} positions", kernels::kMostInt8Averaged));
    return supportsNhwc(p);
}

template <kernels::Int8PixelKernels const& k>
Result<void> runInt8(ir::Node const& node, kernels::ChannelsLastKernels const&, RunArgs& args)
{
    poolPixels<int8_t>(node, k.poolRow, args);
    return {};
}

// ---- Linear: the input rows of a window joined in vectors, then outputs of the row in vectors too, from the row's
// elements of even and of odd number where windows go by two.

using kernels::Join;
using kernels::RowKernels;
constexpr int64_t kMostColumns = 2048; // of the joined row, on the stack

Support supportsNchw(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    if (a.kind == Kind::kMaxAverageBlend)
        return Support::no("does not blend maximum and average");
    int const rank = p.inputs[0].dims.rank;
    int64_t const width = std::max(p.inputs[0].maxDims[rank - 1], p.inputs[0].dims[rank - 1]);
    if (width > kMostColumns)
        return Support::no(fmt::format("takes rows of {} elements; these have {}", kMostColumns, width));
    return Support::yes();
}

// Elements `first`, first + 2, ... of x.
void everyOther(float const* x, int64_t first, int64_t n, float* y)
{
    for (int64_t i = 0; first + 2 * i < n; ++i)
        y[i] = x[first + 2 * i];
}

// Outputs [begin, end) of a row have their whole window inside.
std::pair<int64_t, int64_t> wholeWindows(Geometry const& g)
{
    int64_t const stride = g.stride[2], begin = std::min(divideUp(g.before[2], stride), g.out[2]);
    int64_t const room = g.in[2] + g.before[2] - g.window[2];
    return {begin, room < 0 ? begin : std::clamp(room / stride + 1, begin, g.out[2])};
}

// One row of outputs from the joined row; the first and last ones, whose windows reach into the padding, by loops.
void poolJoined(RowKernels const& k, Join join, Geometry const& g, float const* row, float* y)
{
    float const lowest = join == Join::kMax ? -std::numeric_limits<float>::infinity() : 0;
    int64_t const stride = g.stride[2], window = g.window[2], before = g.before[2], in = g.in[2], out = g.out[2];
    std::fill_n(y, out, lowest);
    auto const [begin, end] = wholeWindows(g);
    bool const vectors = stride <= 2 && end - begin >= 4;
    auto const slowly = [&](int64_t from, int64_t to) {
        for (int64_t o = from; o < to; ++o) {
            Part const p = partOf(g, 2, o);
            float v = lowest;
            for (int64_t i = p.begin; i < p.end; ++i)
                if (join == Join::kSum)
                    v += row[i];
                else
                    v = row[i] > v || row[i] != row[i] ? row[i] : v;
            y[o] = v;
        }
    };
    if (!vectors)
        return slowly(0, out);
    slowly(0, begin);
    slowly(end, out);
    float halves[2][kMostColumns / 2];
    if (stride == 2)
        for (int64_t first : {0, 1})
            everyOther(row, first, in, halves[first]);
    int64_t const start = begin * stride - before;
    for (int64_t t = 0; t < window; ++t) {
        int64_t const at = start + t;
        float const* from = stride == 1 ? row + at : halves[at % 2] + at / 2;
        k.joinRows[int(join)](from, 0, 1, end - begin, y + begin);
    }
}

template <RowKernels const& k>
Result<void> runNchw(ir::Node const& node, kernels::ChannelsLastKernels const&, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    Geometry const g = geometryOf(a, x.dims, y.dims);
    Join const join = a.kind == Kind::kMax ? Join::kMax : Join::kSum;
    float const lowest = join == Join::kMax ? -std::numeric_limits<float>::infinity() : 0;
    int64_t const width = g.in[2], image = g.in[0] * g.in[1] * width;
    auto const one = [&](int64_t index) {
        int64_t const o1 = index % g.out[1], o0 = index / g.out[1] % g.out[0], n = index / g.out[1] / g.out[0];
        Part const p0 = partOf(g, 0, o0), p1 = partOf(g, 1, o1);
        float row[kMostColumns];
        std::fill_n(row, width, lowest);
        for (int64_t i0 = p0.begin; i0 < p0.end; ++i0)
            k.joinRows[int(join)](x.as<float>() + n * image + (i0 * g.in[1] + p1.begin) * width, width,
                                  p1.end - p1.begin, width, row);
        float* to = y.as<float>() + index * g.out[2];
        poolJoined(k, join, g, row, to);
        if (join == Join::kMax)
            return;
        float const rows = float((p0.end - p0.begin) * (p1.end - p1.begin));
        float const paddedRows = float(p0.padded) * float(p1.padded);
        auto const divisor = [&](int64_t columns, int64_t padded) {
            return a.excludePadding ? rows * float(columns) : paddedRows * float(padded);
        };
        auto const [begin, end] = wholeWindows(g);
        auto const finish = [&](int64_t o) {
            Part const p2 = partOf(g, 2, o);
            to[o] = rows * float(p2.end - p2.begin) == 0 ? 0 : to[o] / divisor(p2.end - p2.begin, p2.padded);
        };
        for (int64_t o = 0; o < begin; ++o)
            finish(o);
        for (int64_t o = end; o < g.out[2]; ++o)
            finish(o);
        float const whole = rows == 0 ? 1 : divisor(g.window[2], g.window[2]);
        for (int64_t o = begin; o < end; ++o)
            to[o] /= whole;
    };
    eachInPieces(*args.workers, g.batch * g.out[0] * g.out[1], x.sizeBytes() + y.sizeBytes(), one);
    return {};
}

using kernels::jit::Isa;
constexpr VectorTactic kAvx512{"pooling_f32_nhwc_avx512", 1, Isa::kAvx512, runNhwc, supportsNhwc, onlyChannelsLast};
constexpr VectorTactic kAvx2{"pooling_f32_nhwc_avx2", 1, Isa::kAvx2, runNhwc, supportsNhwc, onlyChannelsLast};
constexpr VectorTactic kInt8Avx512{
    "pooling_i8_nhwc_avx512", 1,       Isa::kAvx512,   runInt8<avx512::kInt8Pixels>, supportsInt8,
    onlyChannelsLast,         nullptr, DataType::kInt8};
constexpr VectorTactic kInt8Avx2{
    "pooling_i8_nhwc_avx2", 1,       Isa::kAvx2,     runInt8<avx2::kInt8Pixels>, supportsInt8,
    onlyChannelsLast,       nullptr, DataType::kInt8};
constexpr VectorTactic kNchwAvx512{
    "pooling_f32_nchw_avx512", 1, Isa::kAvx512, runNchw<avx512::kRows>, supportsNchw, onlyLinear};
constexpr VectorTactic kNchwAvx2{
    "pooling_f32_nchw_avx2", 1, Isa::kAvx2, runNchw<avx2::kRows>, supportsNchw, onlyLinear};

} // namespace

extern constinit TacticList const cpuTactics =
    kTactics<kAvx512, kAvx2, kInt8Avx512, kInt8Avx2, kNchwAvx512, kNchwAvx2, kPlain>;

} // namespace tw::ops::pooling
