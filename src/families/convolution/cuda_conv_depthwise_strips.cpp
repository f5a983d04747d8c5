// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions with small windows, FP16 and FP32: each thread goes down a strip of outputs, with its filters
// and the sums that a row of x is part of in registers. Rows of x come some time ahead, into a part of shared memory
// that is the thread's own, so that no thread waits for another.
#include <algorithm>

#include "families/convolution/cuda_conv_depthwise.h"
#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"

namespace tw::ops::conv_f16 {

namespace {

using cuda::ceilDiv;

constexpr int kThreads = 128;
constexpr int64_t kMostRegisters = 232;    // of a thread, for what registersOf() counts
constexpr int64_t kMostShared = 96 * 1024; // of a block
constexpr int64_t kMostStep = 4;
constexpr int64_t kMostTaps = 9;   // of windows: larger ones are faster in tiles
constexpr int64_t kMostSlice = 32; // threads

// A config's numbers.
enum Place
{
    kColumns, // outputs side by side
    kVector,  // channels of a thread
    kRows,    // outputs, one below the other
    kSlice,   // neighbouring threads with channels of the same pixels
    kAhead,   // rows of x, loaded before they are used
    kBlocks,  // of a multiprocessor, at least
    kPlaces,
};

struct Params
{
    void const *x = nullptr, *filters = nullptr, *bias = nullptr, *residual = nullptr;
    void* y = nullptr;
    uint64_t count = 0;           // threads, idle ones too
    cuda::Div wide, slices, tall; // COLUMNS outputs, SLICE vectors, ROWS outputs
    int64_t pixelX = 0, pixelY = 0, pixelResidual = 0;
    int32_t vectors = 0, h = 0, w = 0, outH = 0, outW = 0, padH = 0, padW = 0, pad = 0;
};

constexpr char const* kText = R"(
struct Div { u64 d; u32 m, s; };
struct Params {
    void const *x, *filters, *bias, *residual; void* y; u64 count; Div wide, slices, tall;
    i64 pixelX, pixelY, pixelResidual; i32 vectors, h, w, outH, outW, padH, padW, pad;
};
constexpr int V = $vector$, R = $r$, S = $s$, STEP_H = $strideH$, STEP_W = $strideW$, DILATION = $dilation$;
constexpr int COLUMNS = $columns$, ROWS = $rows$, SLICE = $slice$, AHEAD = $ahead$;
constexpr int IN = (COLUMNS - 1) * STEP_W + (S - 1) * DILATION + 1; // columns of x
constexpr int RING = (R + STEP_H - 1) / STEP_H;                     // rows of y that a row of x is part of, at most
constexpr int PERIOD = RING * STEP_H, THREADS = $threads$;
TW_INLINE u32 divide(u32 n, Div const& v) { return (__umulhi(n, v.m) + n) >> v.s; }
$element$
TW_INLINE Few take(T const* from) { return *reinterpret_cast<Few const*>(from); }
// Into L1 too: neighbours have most columns in common.
TW_INLINE void copyFew(u32 to, T const* from, bool valid)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 ::"r"(to), "l"(from), "n"(int(sizeof(Few))), "r"(valid ? int(sizeof(Few)) : 0) : "memory");
}
TW_INLINE void takeRow(u32 to, T const* row, i64 pixel, bool inside, bool const (&isColumn)[IN])
{
#pragma unroll
    for (int j = 0; j < IN; ++j) {
        copyFew(to + j * (THREADS * int(sizeof(Few))), row, inside && isColumn[j]);
        row += pixel;
    }
}
TW_KERNEL __launch_bounds__($threads$, $blocks$) depthwise(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    u32 const i = blockIdx.x * $threads$ + threadIdx.x;
    if (i >= p.count) return;
    u32 const pixels = i / SLICE, others = divide(pixels, p.wide), groups = divide(others, p.slices), image = divide(groups, p.tall);
    int const vector = int(others - groups * u32(p.slices.d)) * SLICE + int(i % SLICE), c = vector * V;
    if (vector >= p.vectors) return;
    int const q0 = int(pixels - others * u32(p.wide.d)) * COLUMNS, o0 = int(groups - image * u32(p.tall.d)) * ROWS;
    int const h0 = o0 * STEP_H - p.padH, w0 = q0 * STEP_W - p.padW;
    int const seen = (min(ROWS, p.outH - o0) - 1) * STEP_H + R; // rows of x
    T const* x = static_cast<T const*>(p.x) + ((i64(image) * p.h + h0) * p.w + w0) * p.pixelX + c;
    i64 const rowX = i64(p.w) * p.pixelX;
    i64 const first = (i64(image) * p.outH + o0) * p.outW + q0;
    T* y = static_cast<T*>(p.y) + first * p.pixelY + c;
    i64 const rowY = i64(p.outW) * p.pixelY;
    T const* residual = static_cast<T const*>(p.residual) + first * p.pixelResidual + c;
    bool isColumn[IN];
#pragma unroll
    for (int j = 0; j < IN; ++j) isColumn[j] = u32(w0 + j) < u32(p.w);
    // What a thread copies into shared memory is for itself.
    extern __shared__ __align__(16) unsigned char shared[];
    Few const* const mine = reinterpret_cast<Few const*>(shared) + threadIdx.x;
    u32 const to = sharedAddress(mine);
#pragma unroll
    for (int k = 0; k < AHEAD; ++k) {
        takeRow(to + k * (IN * THREADS * int(sizeof(Few))), x, p.pixelX, u32(h0 + k) < u32(p.h) && k < seen, isColumn);
        copyCommit();
        x += rowX;
    }
    int at = 0; // of the row that comes next
    float f[R * S][V], bias[V];
    {
        T const* const filters = static_cast<T const*>(p.filters) + c;
        float const* const from = static_cast<float const*>(p.bias) + c;
        i64 const step = i64($channels$);
#pragma unroll
        for (int t = 0; t < R * S; ++t) unpack(take(filters + t * step), f[t]);
#pragma unroll
        for (int e = 0; e < V; ++e) bias[e] = from[e];
    }
    float sum[RING][COLUMNS][V];
#pragma unroll
    for (int o = 0; o < RING; ++o)
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
            for (int e = 0; e < V; ++e) sum[o][j][e] = 0;
#pragma unroll 1
    for (int k0 = 0; k0 < seen; k0 += PERIOD) {
#pragma unroll
        for (int m = 0; m < PERIOD; ++m) {
            int const k = k0 + m;
            if (m > 0 && k >= seen) break;
            constexpr int LAST = (R - 1) % STEP_H;
            bool const ends = m % STEP_H == LAST; // a row of y, from the R - 1st on
            Few rest[COLUMNS];
            if constexpr ($residual$)
                if (ends && k >= R - 1) {
#pragma unroll
                    for (int j = 0; j < COLUMNS; ++j)
                        if (q0 + j < p.outW) rest[j] = take(residual + j * p.pixelResidual);
                    residual += i64(p.outW) * p.pixelResidual;
                }
            copyWait<AHEAD - 1>();
            float v[IN][V];
#pragma unroll
            for (int j = 0; j < IN; ++j) unpack(mine[at + j * THREADS], v[j]);
            takeRow(to + at * int(sizeof(Few)), x, p.pixelX, u32(h0 + k + AHEAD) < u32(p.h) && k + AHEAD < seen, isColumn);
            copyCommit();
            at = at == (AHEAD - 1) * (IN * THREADS) ? 0 : at + IN * THREADS;
            x += rowX;
#pragma unroll
            for (int r = R - 1; r >= 0; --r) {
                if ((m - r + PERIOD * 8) % STEP_H != 0) continue;
                int const slot = (m - r + PERIOD * 8) / STEP_H % RING;
#pragma unroll
                for (int s = 0; s < S; ++s)
#pragma unroll
                    for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
                        for (int e = 0; e < V; ++e)
                            sum[slot][j][e] = fmaf(v[j * STEP_W + s * DILATION][e], f[r * S + s][e],
                                                   r == 0 && s == 0 ? bias[e] : sum[slot][j][e]);
                if (r == R - 1 && k >= R - 1) {
#pragma unroll
                    for (int j = 0; j < COLUMNS; ++j)
                        if (j == 0 || q0 + j < p.outW) {
                            float out[V];
#pragma unroll
                            for (int e = 0; e < V; ++e) out[e] = sum[slot][j][e];
                            if constexpr ($residual$) {
                                float more[V];
                                unpack(rest[j], more);
#pragma unroll
                                for (int e = 0; e < V; ++e) out[e] += more[e];
                            }
#pragma unroll
                            for (int e = 0; e < V; ++e) out[e] = activate(out[e]);
                            *reinterpret_cast<Few*>(y + j * p.pixelY) = packed(out);
                        }
                    y += rowY;
                }
            }
        }
    }
}
)";

int64_t columnsOf(Geometry const& g, int64_t columns)
{
    return (columns - 1) * g.stride[2] + (g.window[2] - 1) * g.dilation[2] + 1;
}

// Registers that a thread needs, about.
int64_t registersOf(Geometry const& g, Config const& c)
{
    int64_t const in = columnsOf(g, c[kColumns]), ring = ceilDiv(g.window[1], g.stride[1]);
    return 24 + c[kVector] * (g.window[1] * g.window[2] + 1 + ring * c[kColumns] + in);
}

int64_t sharedBytes(Geometry const& g, Config const& c, bool isHalf)
{
    return c[kAhead] * columnsOf(g, c[kColumns]) * kThreads * c[kVector] * (isHalf ? 2 : 4);
}

bool isVector(int64_t v, bool isHalf)
{
    return v == 2 || v == 4 || (v == 8 && isHalf);
}

// Why a config does not fit; null when it does.
char const* misfit(Geometry const& g, Config const& c, bool isHalf)
{
    if (!isConfig(c, kPlaces, 1, 64) || c[kColumns] > 8 || !isVector(c[kVector], isHalf) || c[kAhead] > 8 ||
        c[kBlocks] > 8)
        return "a config has other numbers";
    if (sharedBytes(g, c, isHalf) > kMostShared)
        return "a block has too little shared memory";
    return registersOf(g, c) > kMostRegisters ? "a thread has too few registers" : nullptr;
}

std::vector<Config> configsOf(Problem const& p, bool isHalf)
{
    Geometry const g = geometryOf(p, false), largest = geometryOf(p, true);
    std::vector<Config> list;
    auto add = [&](int64_t columns, int64_t vector, int64_t wanted, int64_t ahead, int64_t blocks) {
        int64_t const vectors = std::max<int64_t>(roundUp8(g.c) / vector, 1), tall = std::max<int64_t>(g.out[1], 1),
                      rows = ceilDiv(tall, ceilDiv(tall, wanted)); // as many each
        // What leaves the fewest threads idle, whole 64 bytes before others, wide first.
        int64_t slice = 1, best = INT64_MAX;
        for (int64_t s = std::min(vectors, kMostSlice); s >= std::min(vectors, kMostSlice / 4); --s)
            if (int64_t const idle = ceilDiv(vectors, s) * s * 2 + (s % 8 != 0); idle < best) {
                best = idle;
                slice = s;
            }
        Config c{columns, vector, rows, slice, ahead, blocks};
        c[kBlocks] = std::clamp<int64_t>(512 / ceilDiv(registersOf(largest, c), 8) / 8, 1, blocks);
        if (columns <= g.out[2] && !misfit(largest, c, isHalf) && std::find(list.begin(), list.end(), c) == list.end())
            list.push_back(c);
    };
    add(4, 4, 14, 3, 3);
    add(7, 4, 14, 4, 2);
    add(2, 4, 8, 4, 4);
    add(4, 4, 28, 3, 3);
    if (list.empty())
        add(1, 4, 8, 4, 4);
    return list;
}

Support supportsStrips(Problem const& p, DataType type)
{
    if (Support const s = supportsAlone(p, type); !s.ok)
        return s;
    Geometry const g = geometryOf(p, true);
    if (g.window[1] * g.window[2] > kMostTaps || g.stride[1] > g.window[1] ||
        std::max({g.stride[1], g.stride[2], g.dilation[2]}) > kMostStep || (g.dilation[1] > 1 && g.window[1] > 1))
        return Support::no("takes windows of at most " + std::to_string(kMostTaps) +
                           " positions, whose rows follow each other and overlap or touch, and steps of " +
                           std::to_string(kMostStep));
    if (isWide(p))
        return Support::no("counts in 32 bits");
    return configsOf(p, type == DataType::kHalf).empty() ? Support::no("a thread has too few registers")
                                                         : Support::yes();
}

CudaKernels generateStrips(Problem const& p, Config const& config, DataType type)
{
    bool const isHalf = type == DataType::kHalf;
    Geometry const largest = geometryOf(p, true);
    if (char const* const why = misfit(largest, config, isHalf))
        return noKernels(unsupported(why));
    int64_t const bytes = sharedBytes(largest, config, isHalf);
    auto text = [](int64_t v) { return std::to_string(v); };
    std::string source = cuda::include("kernels/cuda/common/matrix.cuh") + activationText(p, isHalf) +
                         cuda::expand(kText, {{"element", fewText(isHalf)},
                                              {"r", text(largest.window[1])},
                                              {"s", text(largest.window[2])},
                                              {"strideH", text(largest.stride[1])},
                                              {"strideW", text(largest.stride[2])},
                                              {"dilation", text(largest.dilation[2])},
                                              {"columns", text(config[kColumns])},
                                              {"vector", text(config[kVector])},
                                              {"rows", text(config[kRows])},
                                              {"slice", text(config[kSlice])},
                                              {"ahead", text(config[kAhead])},
                                              {"blocks", text(config[kBlocks])},
                                              {"channels", text(roundUp8(largest.c))},
                                              {"residual", hasResidual(p) ? "true" : "false"},
                                              {"threads", text(kThreads)}}) +
                         cuda::sizeCheck<Params>();
    CudaKernels out = depthwiseKernels(p, std::move(source), bytes);
    out.run = [config, bytes, node = p.node](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Geometry const g = geometryOf(*node, args);
        Params a;
        setImages(a, launch, args, g);
        a.vectors = int32_t(roundUp8(g.c) / config[kVector]);
        int64_t const wide = ceilDiv(g.out[2], config[kColumns]), tall = ceilDiv(g.out[1], config[kRows]),
                      slices = ceilDiv(a.vectors, config[kSlice]);
        a.wide = cuda::divBy(wide);
        a.slices = cuda::divBy(slices);
        a.tall = cuda::divBy(tall);
        a.count = uint64_t(g.batch * tall * slices * wide * config[kSlice]);
        a.outH = int32_t(g.out[1]);
        return launch(0, blocksFor(int64_t(a.count), kThreads), kThreads, a, bytes);
    };
    return out;
}

} // namespace

constinit Way const kDepthwiseStrips{
    Format::kHWC8, [](Problem const& p, Arithmetic a) { return supportsStrips(p, typeOf(a)); },
    [](Problem const& p, Arithmetic a) { return configsOf(p, a == Arithmetic::kHalf); },
    [](Problem const& p, Config const&, Arithmetic) { return estimateUs(p, 20); },
    [](Problem const& p, Config const& c, Arithmetic a) { return generateStrips(p, c, typeOf(a)); }};

} // namespace tw::ops::conv_f16
