// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/element.h"
#include "ops/pooling/op.h"
#include "ops/vector_tactic.h"

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
    if (x.type == DataType::kFloat)
        poolAs<float>(g, a, x, y, args.workspace);
    else if (x.type == DataType::kHalf)
        poolAs<uint16_t>(g, a, x, y, args.workspace);
    else
        poolAs<int8_t>(g, a, x, y, args.workspace);
    return {};
}

int64_t workspace(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    return in[0].dims[in[0].dims.rank - 1] * int64_t(sizeof(double) + sizeof(float)); // a row of sums, one of maxima
}

constexpr PlainTactic kPlain{"pooling_plain", 1, run, workspace};

// ---- Channels-last: rows of output pixels, all channels of a pixel in vectors.

Support supportsPixels(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    if (a.kind == Kind::kMaxAverageBlend)
        return Support::no("does not blend maximum and average");
    if (p.inputs[0].dims.rank != int(a.window.size()) + 2)
        return Support::no("needs the window to cover every axis behind the channels");
    return Support::yes();
}

Result<void> runPixels(ir::Node const& node, kernels::ChannelsLastKernels const& k, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    Geometry const g = geometryOf(a, x.dims, y.dims);
    int64_t const images = x.dims[0], channels = x.dims[1], xStep = x.pixelStride(), yStep = y.pixelStride();
    // Few rows (global pooling): channels are shared out too.
    constexpr int64_t kChannelBlock = 64;
    int64_t const rows = images * g.out[0] * g.out[1];
    bool const split = rows < 2 * args.workers->count();
    int64_t const blocks = split ? (channels + kChannelBlock - 1) / kChannelBlock : 1;
    auto const one = [&](int64_t index) {
        int64_t const row = index / blocks, c = index % blocks * kChannelBlock;
        int64_t const o1 = row % g.out[1], o0 = row / g.out[1] % g.out[0], n = row / g.out[1] / g.out[0];
        Part const p0 = partOf(g, 0, o0), p1 = partOf(g, 1, o1);
        kernels::PoolRow r;
        r.step = xStep;
        r.step1 = g.in[2] * xStep;
        r.step0 = g.in[1] * r.step1;
        r.x = imageOf(x, n) + p0.begin * r.step0 + p1.begin * r.step1 + c;
        r.rows0 = p0.end - p0.begin;
        r.rows1 = p1.end - p1.begin;
        r.in = g.in[2];
        r.out = g.out[2];
        r.window = g.window[2];
        r.stride = g.stride[2];
        r.before = g.before[2];
        r.after = g.after[2];
        r.channels = split ? std::min(kChannelBlock, channels - c) : channels;
        r.y = imageOf(y, n) + (o0 * g.out[1] + o1) * g.out[2] * yStep + c;
        r.yStep = yStep;
        r.average = a.kind == Kind::kAverage;
        r.excludePadding = a.excludePadding;
        r.paddedRows = float(p0.padded) * float(p1.padded);
        k.poolRow(r);
    };
    int64_t const bytes = x.sizeBytes() + y.sizeBytes();
    inPieces(*args.workers, rows * blocks, bytes, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            one(i);
    });
    return {};
}

using kernels::jit::Isa;
constexpr VectorTactic kAvx512{
    "pooling_f32_pixels_avx512", 1, Isa::kAvx512, runPixels, supportsPixels, onlyChannelsLast};
constexpr VectorTactic kAvx2{"pooling_f32_pixels_avx2", 1, Isa::kAvx2, runPixels, supportsPixels, onlyChannelsLast};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kAvx512, &kAvx2, &kPlain};
    return kList;
}

} // namespace tw::ops::pooling
