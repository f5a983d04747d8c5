// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/resize/cuda_lanes.h"
#include "ops/resize/cuda_pixels.h"
#include "ops/resize/cuda_planes.h"
#include "ops/resize/cuda_rows.h"
#include "ops/resize/cuda_strips.h"
#include "ops/resize/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::resize {

namespace {

constexpr int kThreads = 256;

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    uint64_t count = 0;
    cuda::Div dim[kMaxRank]; // of y, the last running fastest
    int64_t in[kMaxRank] = {}, stride[kMaxRank] = {};
    int64_t over[kMaxRank] = {}, under[kMaxRank] = {}; // the scale as a fraction
};

// Coordinates are exact fractions, weights doubles: plain. Only the last three axes mix elements.
constexpr char const* kText = R"(
struct Params {
    void const* x; void* y; u64 count; Div dim[8]; i64 in[8], stride[8], over[8], under[8];
};
struct Taps { int count; i64 index[4]; double weight[4]; };
TW_INLINE i64 floorDiv(i64 a, i64 b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
TW_INLINE i64 ceilDiv(i64 a, i64 b) { return -floorDiv(-a, b); }
TW_INLINE double cubicWeight(double distance)
{
    double const a = $cubic$, x = fabs(distance);
    if (x == 1) return 0;
    if (x < 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
    if (x < 2) return a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a;
    return 0;
}
TW_INLINE Taps tapsOf(Params const& p, int axis, i64 o)
{
    i64 const in = p.in[axis], out = i64(p.dim[axis].d);
    i64 over, under;
    if (out == 1 && $zeroWhenOne$) { over = 0; under = 1; }
    else { $coordinate$ }
    Taps taps;
    taps.count = 0;
#if $nearest$
    i64 const c = $round$;
    taps.index[0] = c < 0 ? 0 : c >= in ? in - 1 : c;
    taps.weight[0] = 1;
    taps.count = 1;
#else
    i64 const base = floorDiv(over, under);
    double const rest = double(over - base * under) / double(under);
    double sum = 0;
    for (int k = $first$; k <= $last$; ++k) {
        i64 const at = base + k;
        bool const outside = at < 0 || at >= in;
        double const w = $weight$;
        if ($excludeOutside$ && outside) continue;
        sum += w;
        if (w == 0) continue;
        taps.index[taps.count] = at < 0 ? 0 : at >= in ? in - 1 : at;
        taps.weight[taps.count++] = w;
    }
    if ($excludeOutside$)
        for (int k = 0; k < taps.count; ++k) taps.weight[k] /= sum;
#endif
    return taps;
}
TW_KERNEL resize(const __grid_constant__ Params p)
{
    idx const i = threadIndex();
    if (i >= p.count) return;
    idx rest = i;
    off base = 0;
    Taps taps[3];
#pragma unroll
    for (int r = 7; r >= 0; --r) {
        idx const q = divide(rest, p.dim[r]);
        Taps const t = tapsOf(p, r, i64(rest - q * idx(p.dim[r].d)));
        if (r >= 5) taps[r - 5] = t;
        else base += off(t.index[0] * p.stride[r]);
        rest = q;
    }
    $t$ const* const x = static_cast<$t$ const*>(p.x) + base;
    double v = 0;
    for (int a = 0; a < taps[0].count; ++a) {
        double va = 0;
        for (int b = 0; b < taps[1].count; ++b) {
            double vb = 0;
            for (int c = 0; c < taps[2].count; ++c)
                vb += taps[2].weight[c] * load<double>(x[taps[0].index[a] * p.stride[5] +
                                                         taps[1].index[b] * p.stride[6] +
                                                         taps[2].index[c] * p.stride[7]]);
            va += taps[1].weight[b] * vb;
        }
        v += taps[0].weight[a] * va;
    }
#if $isSmall$ // to 2^-20 first, so that the order of the sum does not decide at a half
    v = rint(v * 1048576.0) / 1048576.0;
#endif
    static_cast<$t$*>(p.y)[i] = store<$t$>(v);
}
)";

Result<void> run(Attrs const& a, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    Extents const strides = stridesOf(x.dims);
    Params p;
    p.x = x.data;
    p.y = y.data;
    p.count = uint64_t(y.count());
    for (int r = 0; r < kMaxRank; ++r)
        p.in[r] = p.over[r] = p.under[r] = 1;
    for (int d = 0, to = kMaxRank - y.dims.rank; d < y.dims.rank; ++d, ++to) {
        Axis const axis = axisOf(a, x.dims, y.dims, d);
        p.dim[to] = cuda::divBy(axis.out);
        p.in[to] = axis.in;
        p.stride[to] = strides[d];
        p.over[to] = axis.scale.over;
        p.under[to] = axis.scale.under;
    }
    return launch(0, blocksFor(y.count(), kThreads), kThreads, p);
}

CudaKernels generate(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    DataType const t = problem.outputs[0].type;
    bool const cubic = a.mode == Mode::kCubic;
    CudaKernels out;
    out.wide = isWide(problem);
    out.names = {"resize"};
    out.source =
        cuda::expand(
            kText, {{"cubic", cuda::literal(double(a.cubicCoeff))},
                    {"zeroWhenOne",
                     a.selector == Selector::kUpper || a.coordinates == Coordinates::kAlignCorners ? "true" : "false"},
                    {"coordinate", coordinateText(a.coordinates)},
                    {"nearest", a.mode == Mode::kNearest ? "1" : "0"},
                    {"round", roundingText(a.rounding)},
                    {"first", cubic ? "-1" : "0"},
                    {"last", cubic ? "2" : "1"},
                    {"weight", cubic ? "cubicWeight(rest - k)" : "k == 0 ? 1 - rest : rest"},
                    {"excludeOutside", a.excludeOutside ? "true" : "false"},
                    {"isSmall", t == DataType::kInt8 ? "1" : "0"},
                    {"t", cuda::storageOf(t)}}) +
        cuda::sizeCheck<Params>();
    out.run = [&a](CudaLaunch const& launch, RunArgs& args) { return run(a, launch, args); };
    return out;
}

constexpr CudaTactic kPixels{"resize_f16_pixels", 1, generatePixels, supportsPixels, nullptr, formatsOfPixels};
constexpr CudaTactic kPixels32{"resize_f32_pixels", 1, generatePixels, supportsPixels32, nullptr, formatsOfPixels};
constexpr CudaTactic kRows{"resize_rows_cuda", 1, generateRows, supportsRows, configsOfRows, formatsOfRows};
constexpr CudaTactic kPlanes{"resize_planes_cuda", 1, generatePlanes, supportsPlanes, configsOfPlanes, formatsOfPlanes};
constexpr CudaTactic kLanes{"resize_lanes_cuda", 1, generateLanes, supportsLanes, configsOfLanes, formatsOfLanes};
constexpr CudaTactic kStrips{"resize_strips_cuda", 1, generateStrips, supportsStrips, configsOfStrips, formatsOfStrips};
constexpr CudaTactic kPlain{"resize_plain_cuda", 1, generate};

} // namespace

char const* coordinateText(Coordinates c)
{
    switch (c) {
    case Coordinates::kAlignCorners:
        return "over = o * (in - 1); under = out - 1;";
    case Coordinates::kAsymmetric:
        return "over = o * p.under[axis]; under = p.over[axis];";
    case Coordinates::kHalfPixel:
        return "over = (2 * o + 1) * p.under[axis] - p.over[axis]; under = 2 * p.over[axis];";
    }
    return "";
}

char const* roundingText(Rounding r)
{
    switch (r) {
    case Rounding::kHalfUp:
        return "floorDiv(2 * over + under, 2 * under)";
    case Rounding::kHalfDown:
        return "ceilDiv(2 * over - under, 2 * under)";
    case Rounding::kFloor:
        return "floorDiv(over, under)";
    case Rounding::kCeil:
        return "ceilDiv(over, under)";
    }
    return "";
}

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kLanes, &kPlanes, &kStrips, &kRows, &kPixels, &kPixels32, &kPlain};
    return kList;
}

} // namespace tw::ops::resize
