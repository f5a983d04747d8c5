// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/gemm/mma_f16.h"

namespace tw::cuda::gemm_mma_f16 {

namespace {

constexpr char const* kLoaders = R"(
struct Args : Output { f16 const *a, *b; float* sums; i64 lda, ldb, batchA, batchB; i32 k, tilesM, tilesN; };
// A tile in shared memory lies as in memory, [row][k] or [k][row]: stored rows of UNITS times 16 bytes, placed so that 8
// rows that follow each other have the same unit in different banks.
template <int UNITS> TW_INLINE constexpr int unitAt(int row, int unit)
{
    return (row * UNITS + (unit ^ (UNITS >= 8 ? row & 7 : UNITS == 4 ? row >> 1 & 3 : row >> 2 & 1))) * 16;
}
TW_INLINE u32 loadWord(f16 const* from, bool valid)
{
    u32 v;
    asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %2, 0;\nmov.b32 %0, 0;\n@p ld.global.b32 %0, [%1];\n}"
                 : "=&r"(v) : "l"(from), "r"(int(valid)));
    return v;
}
TW_INLINE u32 loadHalf(f16 const* from, bool valid)
{
    u32 v;
    asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %2, 0;\nmov.b32 %0, 0;\n@p ld.global.u16 %0, [%1];\n}"
                 : "=&r"(v) : "l"(from), "r"(int(valid)));
    return v;
}
// A thread's part of the copies of one operand's tiles, EACH elements at once. Where these are pairs that no word holds,
// two loads bring one: the word that has its first number (`odd`: as the high half) and the second number; a pair whose
// second number is outside is a half. Rows of a thread are an even number apart, so all its pairs are alike.
template <bool ALONG_K, int TILE, int VECTOR> struct Loader {
    static constexpr int WIDTH = ALONG_K ? STEP : TILE, STORED = ALONG_K ? TILE : STEP; // of a tile
    static constexpr int EACH = VECTOR == 1 ? 2 : VECTOR, PARTS = WIDTH / EACH, APART = THREADS / PARTS;
    static constexpr int COUNT = (STORED + APART - 1) / APART;
    static_assert(THREADS % PARTS == 0 && (VECTOR > 1 || APART % 2 == 0), "a thread stays in its column");
    f16 const* source;
    i64 step, ahead; // elements to this thread's next stored row, and to the next tile
    int stored, other, r, e; // of the tile's stored rows and columns, how many there are from this thread's on
    u32 words[VECTOR == 1 ? COUNT : 1], halves[VECTOR == 1 ? COUNT : 1], bytes; // on their way; of both, a pair's bytes
    TW_INLINE void begin(f16 const* from, i64 ld, int row0, int rows, int k0, int k)
    {
        r = threadIdx.x / PARTS;
        e = threadIdx.x % PARTS * EACH;
        source = ALONG_K ? from + i64(row0 + r) * ld + k0 + e : from + i64(k0 + r) * ld + row0 + e;
        step = APART * ld;
        ahead = ALONG_K ? STEP : STEP * ld;
        stored = (ALONG_K ? rows - row0 : k - k0) - r;
        other = (ALONG_K ? k - k0 : rows - row0) - e;
    }
    TW_INLINE u32 placeAt(int i) const { return unitAt<WIDTH / 8>(r + i * APART, e / 8) + e % 8 * 2; }
    // The next tile: copies to shared memory begin, or loads to registers, which put() takes there.
    TW_INLINE void fetch(u32 to)
    {
        bool const odd = VECTOR == 1 && (u64(source) & 2) != 0;
        bytes = odd ? 0x5432 : other > 1 ? 0x3210 : 0x7654;
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (STORED % APART != 0 && r + i * APART >= STORED) break;
            f16 const* const from = source + i * step;
            bool const inside = i * APART < stored;
            if constexpr (VECTOR == 1) {
                words[i] = loadWord(from - (odd ? 1 : 0), inside && other > (odd ? 0 : 1));
                halves[i] = loadHalf(from + (odd ? 1 : 0), inside && (odd ? other > 1 : other == 1));
            }
            else if constexpr (VECTOR == 2) copyAsync4(to + placeAt(i), from, inside && other > 0);
            else if constexpr (VECTOR == 4) copyAsync8(to + placeAt(i), from, inside && other > 0);
            else copyAsync16(to + placeAt(i), from, inside && other > 0);
        }
        source += ahead;
        (ALONG_K ? other : stored) -= STEP;
    }
    TW_INLINE void put(u32 to) const
    {
        if constexpr (VECTOR == 1)
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                if (STORED % APART != 0 && r + i * APART >= STORED) break;
                storeShared(to + placeAt(i), __byte_perm(words[i], halves[i], bytes));
            }
    }
};
)";

constexpr char const* kText = R"(
constexpr int WM = TILE_M / WARPS_M, WN = TILE_N / WARPS_N, BLOCKS_M = WM / 16, BLOCKS_N = WN / 8;
constexpr u32 A_BYTES = TILE_M * STEP * 2, STAGE_BYTES = (TILE_M + TILE_N) * STEP * 2;
// What a warp multiplies in 16 steps of k.
struct Factors {
    u32 a[BLOCKS_M][4], b[BLOCKS_N / 2][4];
    // aAt and bAt: this lane's places in the tiles, at their first steps of k and the warp's first rows.
    TW_INLINE void take(u32 aAt, u32 bAt, u32 stage, int k)
    {
        u32 const as = stage, bs = stage + A_BYTES;
#pragma unroll
        for (int i = 0; i < BLOCKS_M; ++i) {
            if constexpr (A_ALONG_K) loadMatrix4(a[i], as + (aAt ^ k * 32) + i * (16 * STEP * 2));
            else loadMatrix4Transposed(a[i], as + (aAt ^ i * 32) + k * (16 * TILE_M * 2));
        }
#pragma unroll
        for (int j = 0; j < BLOCKS_N / 2; ++j) {
            if constexpr (B_ALONG_K) loadMatrix4(b[j], bs + (bAt ^ k * 32) + j * (16 * STEP * 2));
            else loadMatrix4Transposed(b[j], bs + (bAt ^ j * 32) + k * (16 * TILE_N * 2));
        }
    }
};

struct Tile { int batch, m0, n0; };
// Blocks at the same time: up to 8 rows of tiles, so that they read the same columns.
TW_INLINE Tile tileAt(Args const& a, int i)
{
    int const tiles = a.tilesM * a.tilesN, batch = i / tiles, inBatch = i % tiles;
    int const band = inBatch / (8 * a.tilesN) * 8, height = min(8, a.tilesM - band), inBand = inBatch - band * a.tilesN;
    return {batch, (band + inBand % height) * TILE_M, inBand / height * TILE_N};
}
// What a thread has of a tile's sums lies in steps of 16 bytes times THREADS, in memory too.
TW_INLINE float* sumsOf(Args const& a, int tile, int rank)
{
    return a.sums + (i64(tile) * SPLIT + rank) * (TILE_M * TILE_N) + threadIdx.x * 4;
}

TW_KERNEL __launch_bounds__(THREADS, BLOCKS_PER_SM) gemm(const __grid_constant__ Args a)
{
    extern __shared__ __align__(1024) u8 raw[];
    u32 const base = sharedAddress(raw), biases = base + BIAS_AT;
    int rank = 0;
    if constexpr (CLUSTERS) rank = clusterRank();
    else if constexpr (SPLIT > 1) rank = blockIdx.x % SPLIT;
    auto const [batch, m0, n0] = tileAt(a, blockIdx.x / SPLIT);
    int const all = (a.k + STEP - 1) / STEP, begin = all * rank / SPLIT, steps = all * (rank + 1) / SPLIT - begin;
    int const tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    Loader<A_ALONG_K, TILE_M, VECTOR_A> loadA;
    Loader<B_ALONG_K, TILE_N, VECTOR_B> loadB;
    loadA.begin(a.a + batch * a.batchA, a.lda, m0, a.m, begin * STEP, a.k);
    loadB.begin(a.b + batch * a.batchB, a.ldb, n0, a.n, begin * STEP, a.k);
    releaseDependents();
    BiasPart<TILE_N, THREADS> bias;
    if constexpr (FINISHES) bias.take(a, n0, tid);
    if constexpr (!EARLY) waitForPrevious();
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s)
        if (s < steps) {
            loadB.fetch(base + s * STAGE_BYTES + A_BYTES);
            loadB.put(base + s * STAGE_BYTES + A_BYTES);
        }
    if constexpr (EARLY) waitForPrevious();
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < steps) {
            loadA.fetch(base + s * STAGE_BYTES);
            loadA.put(base + s * STAGE_BYTES);
        }
        copyCommit();
    }
    if constexpr (FINISHES) bias.put(biases, tid);
    int const row0 = warp / WARPS_N * WM, column0 = warp % WARPS_N * WN;
    u32 const aAt = A_ALONG_K ? unitAt<STEP / 8>(row0 + lane % 16, lane / 16)
                              : unitAt<TILE_M / 8>(lane / 16 * 8 + lane % 8, row0 / 8 + lane / 8 % 2);
    u32 const bAt = B_ALONG_K ? unitAt<STEP / 8>(column0 + lane / 16 * 8 + lane % 8, lane / 8 % 2)
                              : unitAt<TILE_N / 8>(lane % 16, column0 / 8 + lane / 16);
    float sum[BLOCKS_M][BLOCKS_N * 4] = {};
    u32 now = base, next = base + (STAGES - 1) * STAGE_BYTES; // stages
    Factors f[2];
    copyWait<STAGES - 2>();
    __syncthreads();
    f[0].take(aAt, bAt, now, 0);
    for (int step = 0; step < steps; ++step) {
        bool const more = step + STAGES - 1 < steps;
        u32 const to = next;
#pragma unroll
        for (int k = 0; k < STEP / 16; ++k) {
            // The next factors, from the next stage at the end: then all warps have read this one.
            if (k == STEP / 16 - 1) {
                copyWait<STAGES - 2>();
                __syncthreads();
                next = now;
                now = now + STAGE_BYTES == base + STAGES * STAGE_BYTES ? base : now + STAGE_BYTES;
            }
            f[(k + 1) % 2].take(aAt, bAt, now, (k + 1) % (STEP / 16));
            if (k == 0) {
                if (more) {
                    loadA.fetch(to);
                    loadB.fetch(to + A_BYTES);
                }
                copyCommit();
            }
#pragma unroll
            for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
                for (int j = 0; j < BLOCKS_N / 2; ++j) {
                    u32 const(&b)[4] = f[k % 2].b[j];
                    mma(*reinterpret_cast<float(*)[4]>(&sum[i][j * 8]), f[k % 2].a[i], b[0], b[1]);
                    mma(*reinterpret_cast<float(*)[4]>(&sum[i][j * 8 + 4]), f[k % 2].a[i], b[2], b[3]);
                }
        }
        if (more) { // through registers: before the next barrier but one
            loadA.put(to);
            loadB.put(to + A_BYTES);
        }
    }
    copyWait<0>();
    if constexpr (!FINISHES) { // finish() does
        float* const to = sumsOf(a, blockIdx.x / SPLIT, rank);
#pragma unroll
        for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
            for (int j = 0; j < BLOCKS_N; ++j) {
                float const* const v = &sum[i][j * 4];
                *reinterpret_cast<float4*>(to + (i * BLOCKS_N + j) * (THREADS * 4)) = float4{v[0], v[1], v[2], v[3]};
            }
        return;
    }
    constexpr int COLUMNS = CLUSTERS ? WN / SPLIT : WN;
    int const row = m0 + row0, column = column0 + rank * COLUMNS;
    Ahead residual;
    fetchResidual(a, residual, row, n0 + column, batch, lane);
    u32 const staging = base + STAGING_AT + warp * (32 * CHUNK);
    if constexpr (CLUSTERS) {
        // Each block of the cluster gets everybody's sums of its part of each warp's columns, 16 bytes a thread, and adds
        // them up.
        constexpr int PART = CLUSTERS ? BLOCKS_N / SPLIT : 1;
        clusterSync(); // all stages are read
#pragma unroll
        for (int o = 0; o < SPLIT; ++o) {
            u32 const to = addressAt(base + (rank * BLOCKS_M * PART * THREADS + tid) * 16, o);
#pragma unroll
            for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
                for (int j = 0; j < PART; ++j) {
                    float const* const v = &sum[i][(o * PART + j) * 4];
                    storeCluster(to + (i * PART + j) * (THREADS * 16), v[0], v[1], v[2], v[3]);
                }
        }
        clusterSync();
#pragma unroll
        for (int i = 0; i < BLOCKS_M; ++i) {
            float v[PART * 4] = {};
#pragma unroll
            for (int o = 0; o < SPLIT; ++o)
#pragma unroll
                for (int j = 0; j < PART; ++j) {
                    Unit const x = loadSharedUnit(base + (((o * BLOCKS_M + i) * PART + j) * THREADS + tid) * 16);
#pragma unroll
                    for (int e = 0; e < 4; ++e) v[j * 4 + e] += __uint_as_float(x.v[e]);
                }
            writeRows(a, v, row + i * 16, n0 + column, batch, staging, biases + column * 4, residual,
                      i + 1 < BLOCKS_M ? row + i * 16 + 16 : -1, lane);
        }
    } else {
        __syncthreads(); // all stages are read
#pragma unroll
        for (int i = 0; i < BLOCKS_M; ++i)
            writeRows(a, sum[i], row + i * 16, n0 + column, batch, staging, biases + column * 4, residual,
                      i + 1 < BLOCKS_M ? row + i * 16 + 16 : -1, lane);
    }
}
)";

// Adds up what the blocks that share k have left in memory.
constexpr char const* kFinish = R"(
TW_KERNEL __launch_bounds__(THREADS) finish(const __grid_constant__ Args a)
{
    extern __shared__ __align__(1024) u8 raw[];
    u32 const base = sharedAddress(raw), biases = base + FINISH_BIAS_AT;
    auto const [batch, m0, n0] = tileAt(a, blockIdx.x);
    int const tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    int const row = m0 + warp / WARPS_N * WM, column = warp % WARPS_N * WN;
    releaseDependents();
    BiasPart<TILE_N, THREADS> bias;
    bias.take(a, n0, tid);
    bias.put(biases, tid);
    __syncthreads();
    waitForPrevious();
    Ahead residual;
    fetchResidual(a, residual, row, n0 + column, batch, lane);
#pragma unroll
    for (int i = 0; i < BLOCKS_M; ++i) {
        float v[BLOCKS_N * 4] = {};
#pragma unroll
        for (int o = 0; o < SPLIT; ++o) {
            float const* const from = sumsOf(a, blockIdx.x, o) + i * BLOCKS_N * (THREADS * 4);
#pragma unroll
            for (int j = 0; j < BLOCKS_N; ++j) {
                float4 const x = *reinterpret_cast<float4 const*>(from + j * (THREADS * 4));
                v[j * 4] += x.x;
                v[j * 4 + 1] += x.y;
                v[j * 4 + 2] += x.z;
                v[j * 4 + 3] += x.w;
            }
        }
        writeRows(a, v, row + i * 16, n0 + column, batch, base + warp * (32 * CHUNK), biases + column * 4, residual,
                  i + 1 < BLOCKS_M ? row + i * 16 + 16 : -1, lane);
    }
}
)";

} // namespace

std::string source(Spec const& s)
{
    bool const clusters = s.split > 1 && s.clusters;
    return include("kernels/cuda/common/matrix.cuh") + include("kernels/cuda/common/clusters.cuh") +
           constant("TILE_M", s.tileM) + constant("TILE_N", s.tileN) + constant("WARPS_M", s.warpsM) +
           constant("WARPS_N", s.warpsN) + constant("STAGES", s.stages) + constant("SPLIT", s.split) +
           flag("CLUSTERS", clusters) + flag("FINISHES", !s.sumsInMemory()) + constant("STEP", kStepK) +
           constant("THREADS", s.threads()) + constant("BLOCKS_PER_SM", s.blocksPerMultiprocessor()) +
           constant("BIAS_AT", s.sharedBytes() - s.biasBytes()) +
           (s.sumsInMemory() ? constant("FINISH_BIAS_AT", s.stagingBytes()) : "") +
           constant("STAGING_AT", clusters ? s.tileBytes() : 0) + constant("VECTOR_A", s.vectorA) +
           constant("VECTOR_B", s.vectorB) + flag("A_ALONG_K", s.aAlongK) + flag("B_ALONG_K", s.bAlongK) +
           flag("EARLY", s.constantB) + epilogueConstants(s, s.chunk()) + rowsText() + kLoaders + kText +
           (s.sumsInMemory() ? kFinish : "") + "static_assert(sizeof(Args) == " + std::to_string(sizeof(Args)) +
           ", \"layout of Args\");\n";
}

} // namespace tw::cuda::gemm_mma_f16
