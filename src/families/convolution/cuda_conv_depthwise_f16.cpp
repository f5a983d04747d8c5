// SPDX-License-Identifier: Apache-2.0
// Of FP16 and of FP32.
#include <algorithm>

#include "families/convolution/cuda_conv_depthwise.h"
#include "kernels/cuda/common/hopper.h"

namespace tw::ops::conv_f16 {

namespace {

constexpr int kThreads = 128;
constexpr int64_t kMostTaps = 49, kMostStep = 4, kMostSeen = 16;
constexpr int64_t kNarrow = 32; // outputs of a row, up to which threads with one each are tried

struct Params
{
    void const *x = nullptr, *filters = nullptr, *bias = nullptr, *residual = nullptr;
    void* y = nullptr;
    uint64_t count = 0;            // threads with work
    cuda::Div vectors, wide, tall; // V channels, COLUMNS outputs of a row, rows
    int64_t pixelX = 0, pixelY = 0, pixelResidual = 0;
    int32_t h = 0, w = 0, outW = 0, padH = 0, padW = 0, strideH = 1, dilationH = 1, pad = 0;
};

// Each thread has V channels of COLUMNS outputs of a row. Of a row of x it holds what those need of it.
constexpr char const* kText = R"(
struct Div { u64 d; u32 m, s; };
struct Params {
    void const *x, *filters, *bias, *residual; void* y; u64 count; Div vectors, wide, tall;
    i64 pixelX, pixelY, pixelResidual; i32 h, w, outW, padH, padW, strideH, dilationH, pad;
};
constexpr int V = $vector$, R = $r$, S = $s$, STRIDE = $stride$, DILATION = $dilation$, COLUMNS = $columns$;
constexpr int SEEN = (COLUMNS - 1) * STRIDE + (S - 1) * DILATION + 1;
TW_INLINE u32 divide(u32 n, Div const& v) { return (__umulhi(n, v.m) + n) >> v.s; }
$element$
TW_INLINE Few take(T const* from) { return *reinterpret_cast<Few const*>(from); }
TW_KERNEL __launch_bounds__($threads$) depthwise(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    u32 const i = blockIdx.x * $threads$ + threadIdx.x;
    if (i >= p.count) return;
    u32 const pixels = divide(i, p.vectors), rows = divide(pixels, p.wide), image = divide(rows, p.tall);
    int const c = int(i - pixels * u32(p.vectors.d)) * V, q0 = int(pixels - rows * u32(p.wide.d)) * COLUMNS;
    int const o = int(rows - image * u32(p.tall.d)), h0 = o * p.strideH - p.padH, w0 = q0 * STRIDE - p.padW;
    T const* const x = static_cast<T const*>(p.x) + i64(image) * p.h * p.w * p.pixelX + c;
    T const* const filters = static_cast<T const*>(p.filters) + c;
    i64 const step = i64(p.vectors.d) * V;
    float4 const* const bias = reinterpret_cast<float4 const*>(static_cast<float const*>(p.bias) + c);
    float sum[COLUMNS][V];
#pragma unroll
    for (int e = 0; e < V; e += 4) {
        float4 const b = bias[e / 4];
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) {
            sum[j][e] = b.x;
            sum[j][e + 1] = b.y;
            sum[j][e + 2] = b.z;
            sum[j][e + 3] = b.w;
        }
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
        int const h = h0 + r * p.dilationH;
        bool const inside = u32(h) < u32(p.h);
        T const* const row = x + i64(h) * p.w * p.pixelX;
        Few raw[SEEN];
#pragma unroll
        for (int j = 0; j < SEEN; ++j) {
            raw[j] = Few{};
            if (inside && u32(w0 + j) < u32(p.w)) raw[j] = take(row + i64(w0 + j) * p.pixelX);
        }
        float seen[SEEN][V];
#pragma unroll
        for (int j = 0; j < SEEN; ++j) unpack(raw[j], seen[j]);
#pragma unroll
        for (int s = 0; s < S; ++s) {
            float f[V];
            unpack(take(filters + (r * S + s) * step), f);
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
                for (int e = 0; e < V; ++e) sum[j][e] = fmaf(seen[j * STRIDE + s * DILATION][e], f[e], sum[j][e]);
        }
    }
    i64 const first = i64(rows) * p.outW + q0;
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
        if (q0 + j >= p.outW) break;
        if constexpr ($residual$) {
            float v[V];
            unpack(take(static_cast<T const*>(p.residual) + (first + j) * p.pixelResidual + c), v);
#pragma unroll
            for (int e = 0; e < V; ++e) sum[j][e] += v[e];
        }
#pragma unroll
        for (int e = 0; e < V; ++e) sum[j][e] = activate(sum[j][e]);
        *reinterpret_cast<Few*>(static_cast<T*>(p.y) + (first + j) * p.pixelY + c) = packed(sum[j]);
    }
}
)";

Support supports(Problem const& p, Arithmetic a)
{
    if (Support const s = supportsCommon(p, typeOf(a)); !s.ok)
        return s;
    Geometry const g = geometryOf(p, true);
    if (g.groups != g.c || g.k != g.c)
        return Support::no("takes one filter for each channel");
    if (g.window[1] * g.window[2] > kMostTaps || g.stride[2] > kMostStep || g.dilation[2] > kMostStep)
        return Support::no("takes windows of at most " + std::to_string(kMostTaps) + " positions and steps of " +
                           std::to_string(kMostStep) + " columns");
    return isWide(p) ? Support::no("counts in 32 bits") : Support::yes();
}

struct Part
{
    int64_t columns, channels; // of a thread: fewer channels, more threads that hide each other's waiting
};

std::vector<Config> configs(Problem const& p, Arithmetic a)
{
    static constexpr Part kHalfParts[] = {{4, 4}, {2, 8}, {4, 8}, {2, 4}, {1, 8}},
                          kFloatParts[] = {{4, 4}, {2, 4}, {1, 4}};
    Geometry const g = geometryOf(p, false);
    std::vector<Config> list;
    for (auto const& [columns, vector] : a == Arithmetic::kHalf ? std::span<Part const>(kHalfParts) : kFloatParts) {
        bool const fits =
            columns <= g.out[2] && (columns - 1) * g.stride[2] + (g.window[2] - 1) * g.dilation[2] < kMostSeen;
        if (columns == 1 ? list.empty() || g.out[2] < kNarrow : fits)
            list.push_back({columns, vector});
    }
    return list;
}

CudaKernels generate(Problem const& p, Config const& config, Arithmetic arithmetic)
{
    bool const isHalf = arithmetic == Arithmetic::kHalf;
    if (config.size() != 2 || config[0] < 1 || config[0] > 8 || (config[1] != 4 && !(config[1] == 8 && isHalf)))
        return noKernels(unsupported("a config has other numbers"));
    int64_t const columns = config[0], vector = config[1];
    Geometry const largest = geometryOf(p, true);
    auto text = [](int64_t v) { return std::to_string(v); };
    std::string source = cuda::include("kernels/cuda/common/matrix.cuh") + activationText(p, isHalf) +
                         cuda::expand(kText, {{"element", fewText(isHalf)},
                                              {"r", text(largest.window[1])},
                                              {"s", text(largest.window[2])},
                                              {"stride", text(largest.stride[2])},
                                              {"dilation", text(largest.dilation[2])},
                                              {"columns", text(columns)},
                                              {"vector", text(vector)},
                                              {"residual", hasResidual(p) ? "true" : "false"},
                                              {"threads", text(kThreads)}}) +
                         cuda::sizeCheck<Params>();
    CudaKernels out = depthwiseKernels(p, std::move(source), 0);
    out.run = [columns, vector, node = p.node](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Geometry const g = geometryOf(*node, args);
        Params a;
        setImages(a, launch, args, g);
        int64_t const vectors = roundUp8(g.c) / vector, wide = (g.out[2] + columns - 1) / columns;
        a.vectors = cuda::divBy(vectors);
        a.wide = cuda::divBy(wide);
        a.tall = cuda::divBy(g.out[1]);
        a.count = uint64_t(g.batch * g.out[1] * wide * vectors);
        a.strideH = int32_t(g.stride[1]);
        a.dilationH = int32_t(g.dilation[1]);
        return launch(0, blocksFor(int64_t(a.count), kThreads), kThreads, a);
    };
    return out;
}

} // namespace

constinit Way const kDepthwise{Format::kHWC8, supports, configs,
                               [](Problem const& p, Config const&, Arithmetic) { return estimateUs(p, 20); }, generate};

} // namespace tw::ops::conv_f16
