// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv/mma_f16.h"

#include <algorithm>

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"

namespace tw::cuda::conv_f16 {

namespace {

constexpr int kThreads = 256;

constexpr char const* kText = R"(
constexpr int THREADS = 256, WARPS_M = TILE_M / 32, WARPS_N = 8 / WARPS_M, WARP_N = TILE_N / WARPS_N;
constexpr u32 X_BYTES = TILE_M * 64, STAGE_BYTES = (TILE_M + TILE_N) * 64;
struct Args : Output {
    i32 stepsK, inner, middle, outer;
    f16 const *x, *filters;
    i64 imageX, rowX, columnX, channelX;
    i32 h, w, outH, outW, strideH, strideW, padH, padW, dilationH, dilationW, paddedK, groupC;
};
// Rows of 64 bytes; 8 rows at the same k lie in different banks.
TW_INLINE u32 unitAt(int row, int unit) { return row * 64 + (unit ^ (row >> 1 & 3)) * 16; }

// Where k stands, each step 32 further.
struct Taps {
    int inner, middle, outer;
    TW_INLINE void move(Args const& a, int by)
    {
        inner += by;
        while (inner >= a.inner) {
            inner -= a.inner;
            if (++middle == a.middle) { middle = 0; ++outer; }
        }
    }
};
// A pixel's first tap.
struct Pixel { i64 at; int h, w; };
TW_INLINE Pixel pixelAt(Args const& a, int m)
{
    int const row = m / a.outW, image = row / a.outH;
    Pixel p;
    p.h = m < a.m ? (row - image * a.outH) * a.strideH - a.padH : -(1 << 28); // outside: zeros
    p.w = (m - row * a.outW) * a.strideW - a.padW;
    p.at = i64(image) * a.imageX;
    return p;
}
// Whether that tap is inside the image, and where.
TW_INLINE bool tapAt(Args const& a, Pixel const& p, Taps const& t, f16 const* x, f16 const*& from)
{
    int const h = p.h + (PLANAR ? t.middle : t.outer) * a.dilationH, w = p.w + (PLANAR ? t.inner : t.middle) * a.dilationW;
    int const c = PLANAR ? t.outer : t.inner;
    from = x + p.at + h * a.rowX + w * a.columnX + c * a.channelX;
    return u32(h) < u32(a.h) && u32(w) < u32(a.w) && t.outer < a.outer;
}

TW_KERNEL __launch_bounds__(THREADS, BLOCKS_PER_SM) convolve(const __grid_constant__ Args a)
{
    extern __shared__ __align__(128) u8 raw[];
    u32 const base = sharedAddress(raw);
    int const tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    int const m0 = blockIdx.x * TILE_M, n0 = blockIdx.y * TILE_N, group = blockIdx.z;
    f16 const* const x = a.x + i64(group) * a.groupC * a.channelX;
    f16 const* const filters = a.filters + i64(group) * a.n * a.paddedK;
    u32 const biases = base + STAGES * STAGE_BYTES;
    releaseDependents();
    Output y = a;
    if constexpr (BIAS) {
        y.bias += group * a.n;
        BiasPart<TILE_N, THREADS> bias;
        bias.take(y, n0, tid);
        bias.put(biases, tid);
    }

    // x: each thread has one place in k and PIXELS rows.
    constexpr int PER_ROW = 32 / VECTOR, STEP = VECTOR == 1 ? 0 : THREADS / PER_ROW;
    constexpr int PIXELS = VECTOR == 1 ? 1 : TILE_M / (THREADS / PER_ROW), LOADS = VECTOR == 1 ? TILE_M * 32 / THREADS : 1;
    int const row0 = VECTOR == 1 ? tid % TILE_M : tid / PER_ROW, k0 = VECTOR == 1 ? tid / TILE_M * LOADS : tid % PER_ROW * VECTOR;
    Pixel pixel[PIXELS];
#pragma unroll
    for (int i = 0; i < PIXELS; ++i) pixel[i] = pixelAt(a, m0 + row0 + i * STEP);
    Taps taps = {0, 0, 0};
    taps.move(a, k0);

    auto loadFilters = [&](int step, u32 to) {
#pragma unroll
        for (int i = 0; i < (TILE_N * 4 + THREADS - 1) / THREADS; ++i) {
            int const at = tid + i * THREADS, r = at / 4, u = at % 4;
            if (TILE_N * 4 % THREADS == 0 || at < TILE_N * 4)
                copyAsync16(to + unitAt(r, u), filters + i64(n0 + r) * a.paddedK + step * 32 + u * 8, n0 + r < a.n);
        }
    };
    auto copyX = [&](u32 to) { // VECTOR > 1
#pragma unroll
        for (int i = 0; i < PIXELS; ++i) {
            f16 const* from;
            bool const inside = tapAt(a, pixel[i], taps, x, from);
            u32 const at = to + unitAt(row0 + i * STEP, k0 / 8) + k0 % 8 * 2;
            if constexpr (VECTOR == 8) copyAsync16(at, from, inside);
            else if constexpr (VECTOR == 4) copyAsync8(at, from, inside);
            else copyAsync4(at, from, inside);
        }
        taps.move(a, 32);
    };
    u32 held[VECTOR == 1 ? LOADS / 2 : 1] = {};
    auto loadX = [&] { // VECTOR == 1: into registers
        Taps t = taps;
#pragma unroll
        for (int i = 0; i < LOADS; ++i) {
            f16 const* from;
            u32 v = 0;
            if (tapAt(a, pixel[0], t, x, from)) v = from->bits;
            if (i % 2) held[i / 2] |= v << 16;
            else held[i / 2] = v;
            t.move(a, 1);
        }
        taps.move(a, 32);
    };
    auto storeX = [&](u32 to) {
#pragma unroll
        for (int i = 0; i < LOADS / 8; ++i) {
            Unit u;
#pragma unroll
            for (int e = 0; e < 4; ++e) u.v[e] = held[i * 4 + e];
            storeShared(to + unitAt(row0, k0 / 8 + i), u);
        }
    };

    // The first steps; filters are constant, x may belong to the kernel before.
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s)
        if (s < a.stepsK) loadFilters(s, base + s * STAGE_BYTES + X_BYTES);
    waitForPrevious();
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < a.stepsK) {
            if constexpr (VECTOR == 1) { loadX(); storeX(base + s * STAGE_BYTES); }
            else copyX(base + s * STAGE_BYTES);
        }
        copyCommit();
    }

    float d[2][WARP_N / 8 * 4] = {};
    int const warpM = warp % WARPS_M * 32, warpN = warp / WARPS_M * WARP_N;
    int stage = 0, ahead = STAGES - 1;
    for (int step = 0; step < a.stepsK; ++step) {
        copyWait<STAGES - 2>();
        __syncthreads();
        bool const more = step + STAGES - 1 < a.stepsK;
        u32 const next = base + ahead * STAGE_BYTES;
        if (more) {
            loadFilters(step + STAGES - 1, next + X_BYTES);
            if constexpr (VECTOR == 1) loadX();
            else copyX(next);
        }
        copyCommit();
        u32 const xs = base + stage * STAGE_BYTES, fs = xs + X_BYTES;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            u32 fx[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) loadMatrix4(fx[i], xs + unitAt(warpM + i * 16 + lane % 16, k * 2 + lane / 16));
#pragma unroll
            for (int j = 0; j < WARP_N / 16; ++j) {
                u32 b[4];
                loadMatrix4(b, fs + unitAt(warpN + j * 16 + lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2));
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    mma(*reinterpret_cast<float(*)[4]>(&d[i][j * 8]), fx[i], b[0], b[1]);
                    mma(*reinterpret_cast<float(*)[4]>(&d[i][j * 8 + 4]), fx[i], b[2], b[3]);
                }
            }
        }
        if constexpr (VECTOR == 1)
            if (more) storeX(next);
        if (++stage == STAGES) stage = 0;
        if (++ahead == STAGES) ahead = 0;
    }
    copyWait<0>();
    Ahead residual;
    fetchResidual(y, residual, m0 + warpM, n0 + warpN, group, lane);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; ++i)
        writeRows(y, d[i], m0 + warpM + i * 16, n0 + warpN, group, base + warp * (32 * CHUNK), biases + warpN * 4, residual,
                  i == 0 ? m0 + warpM + 16 : -1, lane);
}
)";

} // namespace

int64_t Spec::sharedBytes() const
{
    return int64_t(stages) * (tileM + tileN) * 64 + tileN * 4;
}

std::string Spec::name() const
{
    return "conv_f16_" + std::to_string(tileM) + "x" + std::to_string(tileN) + "x" + std::to_string(kConvStepK) + "_s" +
           std::to_string(stages) + "_v" + std::to_string(vector) + (planar ? "_nchw" : "") + "_sm80";
}

char const* unsupported(Spec const& s)
{
    if ((s.tileM != 64 && s.tileM != 128) || (s.tileN != 32 && s.tileN != 64 && s.tileN != 128) ||
        s.tileN / (256 / s.tileM) < 16)
        return "tiles have 64 or 128 pixels and 32, 64 or 128 filters, 16 or more for each warp";
    if (s.stages < 2 || s.stages > 6 || s.sharedBytes() > 160 * 1024)
        return "2 to 6 stages";
    if (s.vector != 1 && s.vector != 2 && s.vector != 4 && s.vector != 8)
        return "copies of 1, 2, 4 or 8 elements";
    return nullptr;
}

char const* unsupported(Spec const& s, ConvShape const& g)
{
    if (char const* const why = unsupported(s))
        return why;
    if (char const* const why = unsupportedSizes(g, s.tileN))
        return why;
    if (s.vector > vectorOf(g, s.planar, kMostVector))
        return "x has fewer elements in a row than the copies take";
    if (s.aligned && (g.k % 8 || g.k / g.groups % 8))
        return "filters of a group are not in steps of 8";
    return nullptr;
}

std::string source(Spec const& s)
{
    int const warpN = s.tileN / (256 / s.tileM), sums = 2 * warpN / 2;
    return include("kernels/cuda/common/matrix.cuh") + constant("TILE_M", s.tileM) + constant("TILE_N", s.tileN) +
           constant("STAGES", s.stages) + constant("VECTOR", s.vector) + constant("BLOCKS_PER_SM", sums > 32 ? 1 : 2) +
           flag("PLANAR", s.planar) + epilogueConstants(s, chunkOf(warpN)) + rowsText() + kText +
           "static_assert(sizeof(Args) == " + std::to_string(sizeof(Args)) + ", \"layout of Args\");\n";
}

Launch launch(Spec const& s, ConvShape const& g)
{
    Launch l;
    Args& a = l.args;
    int64_t const groupC = g.c / g.groups, groupK = g.k / g.groups;
    a.m = int32_t(g.n * g.outH * g.outW);
    a.n = int32_t(groupK);
    a.ldy = a.ldResidual = g.k;
    a.batchY = groupK; // a group's filters are neighbours
    a.paddedK = int32_t(paddedK(g));
    a.stepsK = a.paddedK / kConvStepK;
    a.inner = int32_t(s.planar ? g.s : groupC);
    a.middle = int32_t(s.planar ? g.r : g.s);
    a.outer = int32_t(s.planar ? groupC : g.r);
    a.imageX = g.h * g.w * g.c;
    a.channelX = s.planar ? g.h * g.w : 1;
    a.columnX = s.planar ? 1 : g.c;
    a.rowX = a.columnX * g.w;
    a.h = int32_t(g.h);
    a.w = int32_t(g.w);
    a.outH = int32_t(g.outH);
    a.outW = int32_t(g.outW);
    a.strideH = g.strideH;
    a.strideW = g.strideW;
    a.padH = g.padH;
    a.padW = g.padW;
    a.dilationH = g.dilationH;
    a.dilationW = g.dilationW;
    a.groupC = int32_t(groupC);
    l.geometry.grid = (a.m + s.tileM - 1) / s.tileM;
    l.geometry.gridY = (groupK + s.tileN - 1) / s.tileN;
    l.geometry.gridZ = g.groups;
    l.geometry.block = kThreads;
    l.geometry.sharedBytes = s.sharedBytes();
    return l;
}

} // namespace tw::cuda::conv_f16
