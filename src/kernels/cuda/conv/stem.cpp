// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv/stem.h"

#include <algorithm>

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"

namespace tw::cuda::stem_f16 {

namespace {

constexpr int kThreads = 256;

constexpr char const* kText = R"(
// Units of 16 bytes. A step of k takes 32 bytes of a filter: two of its rows in FP16, one in FP32.
constexpr bool SINGLE = sizeof(Element) == 4;
constexpr int UNIT = SINGLE ? 4 : 8;
constexpr int THREADS = 256, FILTER_ROWS = CHANNELS * FILTER_H, STEPS = SINGLE ? FILTER_ROWS : (FILTER_ROWS + 1) / 2;
constexpr int PATCH_ROWS = (ROWS - 1) * STRIDE_H + FILTER_H, PITCH = PATCH_UNITS * 16, FILTER_UNITS = STEPS * 2;
constexpr int FILTER_PITCH = FILTER_UNITS * 16 + 16; // an odd number of 16 bytes: no bank conflicts
constexpr int PAIRS = (COLUMNS + 1) / 2;             // of 16 columns, for each row
struct Args : Output { Element const *x, *filters; i32 h, w, outH, padH; };
TW_INLINE u32 rounded(u32 v) { u32 r; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(__uint_as_float(v))); return r; }
TW_INLINE void multiply(float (&d)[4], u32 const (&a)[4], u32 b0, u32 b1)
{
    if constexpr (SINGLE)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else mma(d, a, b0, b1);
}

TW_KERNEL __launch_bounds__(THREADS, __CUDA_ARCH__ >= 900 ? 2 : 1) stem(const __grid_constant__ Args a)
{
    extern __shared__ __align__(128) u8 raw[];
    u32 const filters = sharedAddress(raw), staging = filters + TILE_N * FILTER_PITCH;
    u32 const biases = staging + 8 * 32 * CHUNK, patch = biases + TILE_N * 4;
    int const tid = threadIdx.x, warp = tid / 32, lane = tid % 32, g = lane / 4, t = lane % 4;
    int const blocksH = (a.outH + ROWS - 1) / ROWS, image = blockIdx.y / blocksH;
    int const q0 = blockIdx.x * (COLUMNS * 16), p0 = (blockIdx.y - image * blocksH) * ROWS, n0 = blockIdx.z * TILE_N;
    releaseDependents();
    BiasPart<TILE_N, THREADS> bias;
    bias.take(a, n0, tid);
    bias.put(biases, tid);
    for (int at = tid; at < TILE_N * FILTER_UNITS; at += THREADS) {
        int const r = at / FILTER_UNITS, u = at % FILTER_UNITS;
        copyAsync16(filters + r * FILTER_PITCH + u * 16, a.filters + i64(n0 + r) * (FILTER_UNITS * UNIT) + u * UNIT, n0 + r < a.n);
    }
    waitForPrevious();
    // Pixels from column q0 * 2 - PAD_W - SHIFT, rounded down to 8.
    int const h0 = p0 * STRIDE_H - a.padH, w0 = q0 * 2 - (PAD_W + SHIFT + 7) / 8 * 8;
    Element const* const x = a.x + i64(image) * CHANNELS * a.h * a.w;
    for (int at = tid; at < CHANNELS * PATCH_ROWS * PATCH_UNITS; at += THREADS) {
        int const row = at / PATCH_UNITS, u = at % PATCH_UNITS, c = row / PATCH_ROWS, r = row % PATCH_ROWS;
        int const h = h0 + r, w = w0 + u * UNIT;
        copyAsync16(patch + row * PITCH + u * 16, x + (i64(c) * a.h + h) * a.w + w, u32(h) < u32(a.h) && u32(w) < u32(a.w));
    }
    copyCommit();
    copyWait<0>();
    __syncthreads();

    constexpr int FIRST = (PAD_W + SHIFT + 7) / 8 * 8 - (PAD_W + SHIFT); // of the patch's first 8 columns
    u32 const filterAt = filters + (lane / 16 * 8 + lane % 8) * FILTER_PITCH + lane / 8 % 2 * 16;
    for (int item = warp; item < ROWS * PAIRS; item += 8) {
        int const row = item / PAIRS, column = (item - row * PAIRS) * 32, p = p0 + row;
        if (p >= a.outH || q0 + column >= a.m) continue;
        int const to = q0 + column, batch = image * a.outH + p;
        Ahead ahead;
        fetchResidual(a, ahead, to, n0, batch, lane);
        float d[2][TILE_N / 8 * 4] = {};
        // FP16 in words of two pixels: output column j begins at word j.
        u32 const pixels = patch + row * STRIDE_H * PITCH + (SINGLE ? FIRST + (column + g) * 2 + t : FIRST / 2 + column + g + t) * 4;
#pragma unroll
        for (int k = 0; k < STEPS; ++k) {
            constexpr int LAST = FILTER_ROWS - 1;
            u32 fx[2][4];
            if constexpr (SINGLE) {
                u32 const r0 = pixels + (k / FILTER_H * PATCH_ROWS + k % FILTER_H) * PITCH;
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    bool const there = COLUMNS % 2 == 0 || column + i * 16 < COLUMNS * 16;
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        fx[i][e] = there ? rounded(loadShared(r0 + i * 128 + e % 2 * 64 + e / 2 * 16)) : 0;
                }
            } else {
                u32 const r0 = pixels + (k * 2 / FILTER_H * PATCH_ROWS + k * 2 % FILTER_H) * PITCH;
                u32 const r1 = pixels + ((k * 2 + 1) / FILTER_H * PATCH_ROWS + (k * 2 + 1) % FILTER_H) * PITCH;
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    bool const there = COLUMNS % 2 == 0 || column + i * 16 < COLUMNS * 16;
                    fx[i][0] = there ? loadShared(r0 + i * 64) : 0;
                    fx[i][1] = there ? loadShared(r0 + i * 64 + 32) : 0;
                    fx[i][2] = there && k * 2 < LAST ? loadShared(r1 + i * 64) : 0;
                    fx[i][3] = there && k * 2 < LAST ? loadShared(r1 + i * 64 + 32) : 0;
                }
            }
#pragma unroll
            for (int j = 0; j < TILE_N / 16; ++j) {
                u32 b[4];
                loadMatrix4(b, filterAt + j * 16 * FILTER_PITCH + k * 32);
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    multiply(*reinterpret_cast<float(*)[4]>(&d[i][j * 8]), fx[i], b[0], b[1]);
                    multiply(*reinterpret_cast<float(*)[4]>(&d[i][j * 8 + 4]), fx[i], b[2], b[3]);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < 2; ++i)
            if (COLUMNS % 2 == 0 || column + i * 16 < COLUMNS * 16)
                writeRows(a, d[i], to + i * 16, n0, batch, staging + warp * (32 * CHUNK), biases, ahead, i == 0 ? to + 16 : -1, lane);
    }
}
)";

} // namespace

int64_t Spec::sharedBytes() const
{
    return tileN * (paddedK() * elementBytes() + 16) + 8 * 32 * chunkOf(tileN) + tileN * 4 +
           int64_t(channels) * patchRows() * patchUnits() * 16;
}

std::string Spec::name() const
{
    return std::string(single ? "stem_tf32_" : "stem_f16_") + std::to_string(rows) + "x" +
           std::to_string(columns * 16) + "x" + std::to_string(tileN) + "_c" + std::to_string(channels) + "_" +
           std::to_string(filterH) + "x" + std::to_string(filterW) + "_sm80";
}

char const* unsupported(Spec const& s)
{
    if (s.channels < 1 || s.channels > 8 || s.filterH < 1 || s.filterH > 11 || s.filterW < 1 || s.padW < 0 ||
        s.filterW + s.shift() > 8 || s.padW > 8 || s.strideH < 1 || s.strideH > 4)
        return "1 to 8 channels, filters of at most 11 rows and 8 columns with the tap that aligns them";
    if (s.rows < 1 || s.rows > 32 || s.columns < 1 || s.columns > 16 || (s.tileN != 32 && s.tileN != 64))
        return "1 to 32 rows of 16 to 256 columns and 32 or 64 filters";
    if (s.sharedBytes() > 112 * 1024)
        return "the pixels do not fit into shared memory";
    return nullptr;
}

char const* unsupported(Spec const& s, Shape const& g)
{
    if (char const* const why = unsupported(s))
        return why;
    if (g.w * s.elementBytes() % 16)
        return "rows of x are not in steps of 16 bytes";
    int64_t const blocksH = (g.outH + s.rows - 1) / s.rows;
    if (g.n * blocksH > 65535 || g.k > 65535 || g.h > 1 << 24 || g.w > 1 << 24)
        return "more blocks than a launch has";
    if (s.aligned && g.k % 8)
        return "filters are not in steps of 8";
    return nullptr;
}

std::string source(Spec const& s)
{
    return include("kernels/cuda/common/matrix.cuh") + constant("ROWS", s.rows) + constant("COLUMNS", s.columns) +
           constant("TILE_N", s.tileN) + constant("CHANNELS", s.channels) + constant("FILTER_H", s.filterH) +
           constant("STRIDE_H", s.strideH) + constant("PAD_W", s.padW) + constant("SHIFT", s.shift()) +
           constant("PATCH_UNITS", s.patchUnits()) + epilogueConstants(s, chunkOf(s.tileN)) + rowsText(s.single) +
           kText + "static_assert(sizeof(Args) == " + std::to_string(sizeof(Args)) + ", \"layout of Args\");\n";
}

Launch launch(Spec const& s, Shape const& g)
{
    Launch l;
    Args& a = l.args;
    a.m = int32_t(g.outW);
    a.n = int32_t(g.k);
    a.ldy = a.ldResidual = g.k;
    a.batchY = g.k * g.outW; // a row of outputs
    a.h = int32_t(g.h);
    a.w = int32_t(g.w);
    a.outH = int32_t(g.outH);
    a.padH = int32_t(g.padH);
    int64_t const columns = int64_t(s.columns) * 16;
    l.geometry.grid = (g.outW + columns - 1) / columns;
    l.geometry.gridY = g.n * ((g.outH + s.rows - 1) / s.rows);
    l.geometry.gridZ = (g.k + s.tileN - 1) / s.tileN;
    l.geometry.block = kThreads;
    l.geometry.sharedBytes = s.sharedBytes();
    return l;
}

} // namespace tw::cuda::stem_f16
