// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/cuda_plain_convolution.h"

#include <algorithm>

#include "families/convolution/kernel_window.h"
#include "families/elementwise/cuda_pointwise.h"
#include "ops/convolution/op.h"

namespace tw::ops {

namespace {

constexpr int kThreads = 256, kTile = 64;
constexpr int64_t kTileFrom = 8;                  // channels of y in a group from which tiles pay
constexpr int64_t kWideWindow = int64_t(1) << 29; // attributes from which on coordinates take 64 bits

struct Params
{
    void const *x = nullptr, *w = nullptr, *bias = nullptr, *residual = nullptr;
    void* y = nullptr;
    uint64_t count = 0;                                            // elements of y
    int64_t c = 0, k = 0, groupC = 0, positions = 0;               // positions: batch times those of one plane of y
    cuda::Div groupK, channels, out[3], window[3], tilesK, tilesP; // channels: those of y
    int64_t in[3] = {}, stride[3] = {}, dilation[3] = {}, before[3] = {};
};

constexpr char const* kCommon = R"(
struct Params {
    void const *x, *w, *bias, *residual; void* y; u64 count; i64 c, k, groupC, positions;
    Div groupK, channels, out[3], window[3], tilesK, tilesP; i64 in[3], stride[3], dilation[3], before[3];
};
typedef $t$ T;
// Coordinates of position i of [v0, v1, v2], the last running fastest.
TW_INLINE void split(Div const (&v)[3], idx i, off (&at)[3])
{
    idx const q = divide(i, v[2]), r = divide(q, v[1]);
    at[2] = off(i - q * idx(v[2].d));
    at[1] = off(q - r * idx(v[1].d));
    at[0] = off(r);
}
)";

constexpr char const* kFinish = R"(TW_INLINE void finish$n$(Params const& p, idx i, off k, float v)
{
    if (p.bias) v += load<float>(static_cast<T const*>(p.bias)[k]);
    if (p.residual) v += load<float>(static_cast<T const*>(p.residual)[i]);
    static_cast<T*>(p.y)[i] = store<T>(activate$n$(v));
}
)";

constexpr char const* kConvolution = R"(
TW_KERNEL convolve_direct$n$(const __grid_constant__ Params p)
{
    idx const i = threadIndex();
    if (i >= p.count) return;
    idx const plane = idx(p.out[0].d * p.out[1].d * p.out[2].d);
    idx const q = i / plane, n = divide(q, p.channels);
    off const k = off(q - n * idx(p.channels.d));
    off o[3];
    split(p.out, i - q * plane, o);
    off const c0 = off(divide(idx(k), p.groupK)) * off(p.groupC);
    off const f0n = off(p.window[0].d), f1n = off(p.window[1].d), f2n = off(p.window[2].d);
    T const* w = static_cast<T const*>(p.w) + i64(k) * p.groupC * f0n * f1n * f2n;
    T const* x = static_cast<T const*>(p.x) + (i64(n) * p.c + c0) * p.in[0] * p.in[1] * p.in[2];
    float sum = 0;
    for (i64 c = 0; c < p.groupC; ++c) {
        for (off f0 = 0; f0 < f0n; ++f0) {
            off const i0 = o[0] * off(p.stride[0]) - off(p.before[0]) + f0 * off(p.dilation[0]);
            for (off f1 = 0; f1 < f1n; ++f1) {
                off const i1 = o[1] * off(p.stride[1]) - off(p.before[1]) + f1 * off(p.dilation[1]);
                for (off f2 = 0; f2 < f2n; ++f2, ++w) {
                    off const i2 = o[2] * off(p.stride[2]) - off(p.before[2]) + f2 * off(p.dilation[2]);
                    if (i0 >= 0 && i0 < off(p.in[0]) && i1 >= 0 && i1 < off(p.in[1]) && i2 >= 0 && i2 < off(p.in[2]))
                        sum += load<float>(*w) *
                               load<float>(x[(i0 * off(p.in[1]) + i1) * off(p.in[2]) + i2]);
                }
            }
        }
        x += p.in[0] * p.in[1] * p.in[2];
    }
    finish$n$(p, i, k, sum);
}
TW_KERNEL convolve_tile$n$(const __grid_constant__ Params p)
{
    __shared__ float ws[16][68]; // [reduced, k]
    __shared__ float xs[16][68]; // [reduced, position]
    idx const rest = divide(blockIdx.x, p.tilesP), group = divide(rest, p.tilesK);
    off const k0 = off(rest - group * idx(p.tilesK.d)) * 64;
    idx const p0 = (blockIdx.x - rest * idx(p.tilesP.d)) * 64;
    off const groupK = off(p.groupK.d), groupC = off(p.groupC);
    off const window = off(p.window[0].d * p.window[1].d * p.window[2].d), reduced = groupC * window;
    i64 const inPlane = p.in[0] * p.in[1] * p.in[2];
    idx const plane = idx(p.out[0].d * p.out[1].d * p.out[2].d);
    int const t = threadIdx.x;
    // Of x this thread brings one position, at 4 of the 16 places to reduce over; of w one place at 4 channels.
    idx const position = p0 + t % 64;
    bool const isPosition = position < idx(p.positions);
    idx const n = position / plane;
    off base[3];
    split(p.out, position - n * plane, base);
#pragma unroll
    for (int a = 0; a < 3; ++a) base[a] = base[a] * off(p.stride[a]) - off(p.before[a]);
    T const* const x = static_cast<T const*>(p.x) + (i64(n) * p.c + i64(group) * groupC) * inPlane;
    T const* const w = static_cast<T const*>(p.w) + i64(group) * groupK * reduced;
    int const ty = t / 16 * 4, tx = t % 16 * 4;
    float sum[4][4] = {};
    for (off r0 = 0; r0 < reduced; r0 += 16) {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            int const wr = t % 16, wk = t / 16 + 16 * q;
            ws[wr][wk] = k0 + wk < groupK && r0 + wr < reduced
                             ? load<float>(w[i64(k0 + wk) * reduced + r0 + wr]) : 0;
            int const xr = t / 64 + 4 * q;
            float v = 0;
            if (isPosition && r0 + xr < reduced) {
                idx const r = idx(r0 + xr), f12 = divide(r, p.window[2]), f012 = divide(f12, p.window[1]);
                idx const c = divide(f012, p.window[0]);
                off const i2 = base[2] + off(r - f12 * idx(p.window[2].d)) * off(p.dilation[2]);
                off const i1 = base[1] + off(f12 - f012 * idx(p.window[1].d)) * off(p.dilation[1]);
                off const i0 = base[0] + off(f012 - c * idx(p.window[0].d)) * off(p.dilation[0]);
                if (i0 >= 0 && i0 < off(p.in[0]) && i1 >= 0 && i1 < off(p.in[1]) && i2 >= 0 && i2 < off(p.in[2]))
                    v = load<float>(x[i64(c) * inPlane + (i0 * off(p.in[1]) + i1) * off(p.in[2]) + i2]);
            }
            xs[xr][t % 64] = v;
        }
        __syncthreads();
#pragma unroll
        for (int q = 0; q < 16; ++q) {
            float va[4], vb[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) { va[i] = ws[q][ty + i]; vb[i] = xs[q][tx + i]; }
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) sum[i][j] += va[i] * vb[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        idx const at = p0 + tx + j;
        if (at >= idx(p.positions)) continue;
        idx const image = at / plane;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            off const kg = k0 + ty + i;
            if (kg >= groupK) continue;
            off const k = off(group) * groupK + kg;
            finish$n$(p, (image * idx(p.k) + idx(k)) * plane + (at - image * plane), k, sum[i][j]);
        }
    }
}
)";

constexpr char const* kDeconvolution = R"(
// The input that window position f brings to output o, or -1.
TW_INLINE off source(Params const& p, int axis, off o, off f)
{
    off const scaled = o + off(p.before[axis]) - f * off(p.dilation[axis]), s = off(p.stride[axis]);
    return scaled < 0 || scaled % s != 0 || scaled / s >= off(p.in[axis]) ? -1 : scaled / s;
}
TW_KERNEL deconvolve(const __grid_constant__ Params p)
{
    idx const i = threadIndex();
    if (i >= p.count) return;
    idx const plane = idx(p.out[0].d * p.out[1].d * p.out[2].d);
    idx const q = i / plane, n = divide(q, p.channels);
    off const k = off(q - n * idx(p.channels.d));
    off o[3];
    split(p.out, i - q * plane, o);
    idx const group = divide(idx(k), p.groupK);
    off const groupK = off(p.groupK.d), kg = k - off(group) * groupK;
    off const f0n = off(p.window[0].d), f1n = off(p.window[1].d), f2n = off(p.window[2].d);
    i64 const inPlane = p.in[0] * p.in[1] * p.in[2], window = i64(f0n) * f1n * f2n;
    T const* const x = static_cast<T const*>(p.x) + (i64(n) * p.c + i64(group) * p.groupC) * inPlane;
    T const* const w = static_cast<T const*>(p.w) + (i64(group) * p.groupC * groupK + kg) * window;
    float sum = 0;
    for (off f0 = 0; f0 < f0n; ++f0) {
        off const i0 = source(p, 0, o[0], f0);
        for (off f1 = 0; f1 < f1n && i0 >= 0; ++f1) {
            off const i1 = source(p, 1, o[1], f1);
            for (off f2 = 0; f2 < f2n && i1 >= 0; ++f2) {
                off const i2 = source(p, 2, o[2], f2);
                if (i2 < 0) continue;
                T const* xc = x + (i0 * off(p.in[1]) + i1) * off(p.in[2]) + i2;
                T const* wc = w + (f0 * f1n + f1) * f2n + f2;
                for (i64 c = 0; c < p.groupC; ++c, xc += inPlane, wc += i64(groupK) * window)
                    sum += load<float>(*xc) * load<float>(*wc);
            }
        }
    }
    finish$n$(p, i, k, sum);
}
)";

// `first`: position of the first kernel.
Result<void> run(KernelWindowAttrs const& a, WindowKind kind, CudaLaunch const& launch,
                 std::span<TensorRef const> inputs, TensorRef const& y, int first)
{
    TensorRef const &x = inputs[0], &w = inputs[1];
    KernelWindowGeometry const g = geometryOf(kind, a, x.dims, w.dims, y.dims);
    auto optional = [&](size_t i) { return i < inputs.size() ? inputs[i].data : nullptr; };
    int64_t const groupK = g.k / g.groups, plane = g.out[0] * g.out[1] * g.out[2];
    Params p;
    p.x = x.data;
    p.w = w.data;
    p.bias = optional(2);
    p.residual = optional(3);
    p.y = y.data;
    p.count = uint64_t(y.count());
    p.c = g.c;
    p.k = g.k;
    p.groupC = g.c / g.groups;
    p.positions = g.batch * plane;
    p.groupK = cuda::divBy(groupK);
    p.channels = cuda::divBy(g.k);
    for (int i = 0; i < 3; ++i) {
        p.out[i] = cuda::divBy(g.out[i]);
        p.window[i] = cuda::divBy(g.window[i]);
        p.in[i] = g.in[i];
        p.stride[i] = g.stride[i];
        p.dilation[i] = g.dilation[i];
        p.before[i] = g.before[i];
    }
    if (kind == WindowKind::kDeconvolution || groupK < kTileFrom)
        return launch(first, blocksFor(y.count(), kThreads), kThreads, p);
    int64_t const tilesK = blocksFor(groupK, kTile), tilesP = blocksFor(p.positions, kTile);
    p.tilesK = cuda::divBy(tilesK);
    p.tilesP = cuda::divBy(tilesP);
    return launch(first + 1, tilesK * tilesP * g.groups, kThreads, p);
}

// Kernels of one problem have names of their own by `suffix`.
std::string textOf(char const* kernels, FusedActivation const& f, char const* suffix, DataType type)
{
    return activationText((std::string("activate") + suffix).c_str(), f.kind, f.alpha, f.beta) +
           cuda::expand(std::string(*suffix ? "" : kCommon) + kFinish + kernels,
                        {{"t", cuda::storageOf(type)}, {"n", suffix}});
}

bool hasWideWindow(KernelWindowAttrs const& a)
{
    for (auto const* list : {&a.strides, &a.dilations, &a.prePadding, &a.postPadding})
        for (int64_t v : *list)
            if (v >= kWideWindow)
                return true;
    return false;
}

Extents expandedDims(Extents const& x, Extents const& y)
{
    return {y[0], y[1], x[2], x[3]};
}

} // namespace

CudaKernels convolveKernels(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<convolution::Attrs>();
    CudaKernels out;
    out.wide = isWide(problem) || hasWideWindow(a);
    bool const forward = !a.transposed;
    out.names =
        forward ? std::vector<std::string>{"convolve_direct", "convolve_tile"} : std::vector<std::string>{"deconvolve"};
    out.source = textOf(forward ? kConvolution : kDeconvolution, a.epilogue.activation, "", problem.outputs[0].type) +
                 cuda::sizeCheck<Params>();
    out.run = [&a](CudaLaunch const& launch, RunArgs& args) {
        return run(a, a.kind(), launch, args.inputs, args.outputs[0], 0);
    };
    return out;
}

CudaKernels convolveTwiceKernels(Problem const& problem, FusedActivation const& inner, FusedActivation const& outer)
{
    auto const& a = problem.node->attrsAs<KernelWindowAttrs>();
    DataType const type = problem.outputs[0].type;
    CudaKernels out;
    out.wide = isWide(problem) || hasWideWindow(a) ||
               expandedDims(problem.inputs[0].maxDims, problem.outputs[0].maxDims).volume() >= INT32_MAX;
    out.names = {"convolve_direct", "convolve_tile", "convolve_direct_2", "convolve_tile_2"};
    out.source =
        textOf(kConvolution, inner, "", type) + textOf(kConvolution, outer, "_2", type) + cuda::sizeCheck<Params>();
    out.workspace = [](std::span<TensorRef const> in, std::span<TensorRef const> results) {
        return TensorRef{results[0].type, expandedDims(in[0].dims, results[0].dims), nullptr}.sizeBytes();
    };
    out.run = [&a](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        TensorRef const z{y.type, expandedDims(x.dims, y.dims), args.workspace};
        TensorRef const second[] = {z, args.inputs[3], args.inputs[4]};
        KernelWindowAttrs const one = KernelWindowAttrs::plain(2);
        TW_TRY(run(one, WindowKind::kConvolution, launch, args.inputs.first(3), z, 0));
        return run(a, WindowKind::kConvolution, launch, second, y, 2);
    };
    return out;
}

} // namespace tw::ops
