// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/cuda_pixels.h"

#include <algorithm>

#include "ops/resize/op.h"

namespace tw::ops::resize {

namespace {

constexpr int kThreads = 256;

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    uint64_t count = 0;            // threads with work
    cuda::Div vectors, wide, tall; // 16 bytes of channels, columns and rows of y
    int64_t pixelX = 0, pixelY = 0;
    int64_t in[2] = {}, over[2] = {}, under[2] = {}; // rows, columns: size of x, the scale as a fraction
};

// V elements of 16 bytes.
constexpr char const* kHalves = R"(
typedef f16 T;
constexpr int V = 8;
typedef Pack<u32, 4> Unit;
TW_INLINE float valueOf(Unit const& u, int i)
{
    f16 one;
    one.bits = (unsigned short)(i % 2 ? u.v[i / 2] >> 16 : u.v[i / 2]);
    return halfToFloat(one);
}
)";
constexpr char const* kFloats = R"(
typedef float T;
constexpr int V = 4;
typedef Pack<u32, 4> Unit;
TW_INLINE float valueOf(Unit const& u, int i) { return __uint_as_float(u.v[i]); }
)";

// Coordinates are exact fractions.
constexpr char const* kText = R"(
struct Params {
    void const* x; void* y; u64 count; Div vectors, wide, tall; i64 pixelX, pixelY, in[2], over[2], under[2];
};
// Two elements and the second's weight.
struct Taps { int first, second; float weight; };
template <class N> TW_INLINE N floorDiv(N a, N b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
template <class N> TW_INLINE N ceilDiv(N a, N b) { return -floorDiv<N>(-a, b); }
template <class N> struct ScalesOf { N over[2], under[2]; };
template <class N> TW_INLINE Taps tapsOf(Params const& q, int axis, N o, N out)
{
    ScalesOf<N> const p = {{N(q.over[0]), N(q.over[1])}, {N(q.under[0]), N(q.under[1])}};
    N const in = N(q.in[axis]);
    N over, under;
    if (out == 1 && $zeroWhenOne$) { over = 0; under = 1; }
    else { $coordinate$ }
    Taps t;
    if ($nearest$) {
        N const c = $round$;
        t.first = t.second = int(c < 0 ? 0 : c >= in ? in - 1 : c);
        t.weight = 0;
    } else {
        N const base = floorDiv<N>(over, under);
        t.weight = float(double(over - base * under) / double(under));
        t.first = int(base < 0 ? 0 : base >= in ? in - 1 : base);
        t.second = int(base + 1 < 0 ? 0 : base + 1 >= in ? in - 1 : base + 1);
        // Beyond the ends an element counts as absent: the other one stands alone.
        if ($excludeOutside$) {
            if (base < 0) t.first = t.second;
            if (base + 1 >= in) t.second = t.first;
        }
        if (t.weight == 0) t.second = t.first; // an element of weight zero takes no part
    }
    return t;
}
TW_INLINE void unpack(Unit const& u, float (&v)[V])
{
#pragma unroll
    for (int i = 0; i < V; ++i) v[i] = valueOf(u, i);
}
TW_INLINE void mix(float (&a)[V], float const (&b)[V], float weight)
{
#pragma unroll
    for (int i = 0; i < V; ++i) a[i] = a[i] * (1.0f - weight) + b[i] * weight;
}
template <class N> TW_INLINE void resizePixels(Params const& p)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count) return;
    idx const pixels = divide(i, p.vectors), rows = divide(pixels, p.wide), image = divide(rows, p.tall);
    i64 const c = i64(i - pixels * idx(p.vectors.d)) * V;
    Taps const h = tapsOf<N>(p, 0, N(rows - image * idx(p.tall.d)), N(p.tall.d));
    Taps const w = tapsOf<N>(p, 1, N(pixels - rows * idx(p.wide.d)), N(p.wide.d));
    T const* const x = static_cast<T const*>(p.x) + i64(image) * p.in[0] * p.in[1] * p.pixelX + c;
    Unit* const y = reinterpret_cast<Unit*>(static_cast<T*>(p.y) + i64(pixels) * p.pixelY + c);
    auto at = [&](int row, int column) {
        return *reinterpret_cast<Unit const*>(x + (i64(row) * p.in[1] + column) * p.pixelX);
    };
    if constexpr ($nearest$) {
        *y = at(h.first, w.first);
    } else {
        Unit const raw[4] = {at(h.first, w.first), at(h.first, w.second), at(h.second, w.first), at(h.second, w.second)};
        float top[V], bottom[V], other[V];
        unpack(raw[0], top);
        unpack(raw[2], bottom);
        if (w.second != w.first) {
            unpack(raw[1], other);
            mix(top, other, w.weight);
            unpack(raw[3], other);
            mix(bottom, other, w.weight);
        }
        if (h.second != h.first) mix(top, bottom, h.weight);
        Pack<T, V> out;
#pragma unroll
        for (int e = 0; e < V; ++e) out.v[e] = store<T>(top[e]);
        *reinterpret_cast<Pack<T, V>*>(y) = out;
    }
}
TW_KERNEL __launch_bounds__(256) resize(const __grid_constant__ Params p) { resizePixels<int>(p); }
TW_KERNEL __launch_bounds__(256) resize_long(const __grid_constant__ Params p) { resizePixels<i64>(p); }
)";

Support supports(Problem const& p, DataType type)
{
    auto const& a = p.node->attrsAs<Attrs>();
    TensorSpec const &x = p.inputs[0], &y = p.outputs[0];
    if (x.type != type)
        return Support::no(std::string("takes ") + nameOf(type) + " only");
    if (a.mode == Mode::kCubic)
        return Support::no("does not mix by cubic weights");
    int const rank = x.dims.rank;
    if (rank < 3)
        return Support::no("resizes images");
    for (int d = 0; d < rank - 2; ++d)
        if (!(p.node->inputs[0]->shape[size_t(d)] == p.node->outputs[0]->shape[size_t(d)]))
            return Support::no("resizes the two axes behind the channels only");
    for (int d = 0; d < rank - 2; ++d) {
        Fraction const scale = axisOf(a, x.maxDims, y.maxDims, d).scale;
        if (scale.over != scale.under)
            return Support::no("resizes the two axes behind the channels only");
    }
    if (isWide(p) || storageCount(Format::kHWC8, y.type, y.maxDims) >= INT32_MAX)
        return Support::no("counts in 32 bits");
    return Support::yes();
}

} // namespace

Support supportsPixels(Problem const& p)
{
    return supports(p, DataType::kHalf);
}
Support supportsPixels32(Problem const& p)
{
    return supports(p, DataType::kFloat);
}

std::vector<Formats> formatsOfPixels(Problem const& p)
{
    if (p.outputs[0].dims.rank < 3 || p.inputs[0].constant)
        return {};
    Formats f = linearFormats(p);
    f.inputs[0] = f.outputs[0] = Format::kHWC8;
    return {f};
}

CudaKernels generatePixels(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    CudaKernels out;
    out.isDependent = true;
    out.alignment = 16;
    out.names = {"resize", "resize_long"};
    bool const isHalf = problem.inputs[0].type == DataType::kHalf;
    out.source =
        (isHalf ? kHalves : kFloats) +
        cuda::expand(
            kText, {{"zeroWhenOne",
                     a.selector == Selector::kUpper || a.coordinates == Coordinates::kAlignCorners ? "true" : "false"},
                    {"coordinate", coordinateText(a.coordinates)},
                    {"nearest", a.mode == Mode::kNearest ? "true" : "false"},
                    {"round", roundingText(a.rounding)},
                    {"excludeOutside", a.excludeOutside ? "true" : "false"}}) +
        cuda::sizeCheck<Params>();
    out.run = [&a, channels = isHalf ? 8 : 4](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        int const axis = y.dims.rank - 3;
        Params p;
        p.x = x.data;
        p.y = y.data;
        int64_t const vectors = (y.dims[axis] + channels - 1) / channels, tall = y.dims[axis + 1],
                      wide = y.dims[axis + 2];
        p.vectors = cuda::divBy(vectors);
        p.wide = cuda::divBy(wide);
        p.tall = cuda::divBy(tall);
        p.count = uint64_t(y.dims.volume(0, axis) * tall * wide * vectors);
        p.pixelX = x.pixelStride();
        p.pixelY = y.pixelStride();
        bool isLong = false; // coordinates take 64 bits
        for (int i = 0; i < 2; ++i) {
            Axis const of = axisOf(a, x.dims, y.dims, axis + 1 + i);
            isLong = isLong || (std::max(of.in, of.out) + 1) * std::max(of.scale.over, of.scale.under) > INT32_MAX / 8;
            p.in[i] = of.in;
            p.over[i] = of.scale.over;
            p.under[i] = of.scale.under;
        }
        return launch(isLong ? 1 : 0, blocksFor(int64_t(p.count), kThreads), kThreads, p);
    };
    return out;
}

} // namespace tw::ops::resize
