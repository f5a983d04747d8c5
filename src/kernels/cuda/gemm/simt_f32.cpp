// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/simt_f32.h"

#include <algorithm>

#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/common/prelude.h"
#include "kernels/cuda/gemm/tiles.h"

namespace tw::cuda::gemm_f32 {

namespace {

constexpr char const* kLoaders = R"(
struct Params {
    float const *a, *b, *bias, *residual; float* y; i64 m, n, k, lda, ldb; Div tilesM, tilesN; Loop<2> batch;
};
// In shared memory: [row][k], 64 or 128 bytes each, units of 16 bytes placed so that 8 rows that follow each other lie in
// different banks; or [k][row], where SKEWED so that 8 rows of 4 steps of k that follow each other do.
TW_INLINE constexpr int unitAt(int row, int u)
{
    return row * STEP + (u ^ (STEP == 16 ? row >> 1 & 3 : row & 7)) * 4;
}
template <int TILE> TW_INLINE constexpr int placeAt(int k, int row) { return k * TILE + (SKEWED ? row ^ (k & 3) << 3 : row); }
// A thread's part of the copies of one operand's tiles, EACH elements at once.
template <bool ALONG_K, int TILE, int EACH> struct Loader {
    static constexpr int UNITS = (ALONG_K ? STEP : TILE) / EACH, APART = THREADS / UNITS; // stored rows
    static constexpr int COUNT = (TILE * STEP / EACH + THREADS - 1) / THREADS;
    static_assert(THREADS % UNITS == 0, "a thread stays in its column");
    float const* source;
    i64 step, ahead; // elements to this thread's next stored row, and to the next tile
    int stored, other, r, e; // of the tile's stored rows and columns, how many there are from this thread's on
    TW_INLINE void begin(float const* from, i64 ld, int row0, int rows, int k0, int k)
    {
        r = threadIdx.x / UNITS;
        e = threadIdx.x % UNITS * EACH;
        source = ALONG_K ? from + i64(row0 + r) * ld + k0 + e : from + i64(k0 + r) * ld + row0 + e;
        step = APART * ld;
        ahead = ALONG_K ? STEP : STEP * ld;
        stored = (ALONG_K ? rows - row0 : k - k0) - r;
        other = (ALONG_K ? k - k0 : rows - row0) - e;
    }
    TW_INLINE void next(float* to)
    {
        u32 const at = sharedAddress(to);
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            int const row = r + i * APART;
            if (TILE * STEP / EACH % THREADS != 0 && row >= (ALONG_K ? TILE : STEP)) break;
            bool const valid = i * APART < stored && other > 0;
            u32 const target = at + (ALONG_K ? unitAt(row, e / 4) + e % 4 : placeAt<TILE>(row, e)) * 4;
            if constexpr (EACH == 4) copyAsync16(target, source + i * step, valid);
            else copyAsync4(target, source + i * step, valid);
        }
        source += ahead;
        (ALONG_K ? other : stored) -= STEP;
    }
};
)";

constexpr char const* kText = R"(
constexpr int TY = TILE_M / ROWS, TX = TILE_N / COLUMNS;
constexpr int WARPS_X = TX / 8; // a warp: 4 x 8 threads
constexpr int A_FLOATS = TILE_M * STEP, STAGE_FLOATS = (TILE_M + TILE_N) * STEP;
// Rows of thread t of T: t, t + T, ... where k is contiguous, else fours.
template <bool ALONG_K, int T> TW_INLINE constexpr int rowOf(int t, int i)
{
    return ALONG_K ? t + i * T : t * 4 + i / 4 * (T * 4) + i % 4;
}
// Four steps of k, from 4 u on.
template <bool ALONG_K, int TILE, int R>
TW_INLINE void takeRows(float const* tile, int t, int u, float (&f)[R][4])
{
    constexpr int T = TILE / R;
    if constexpr (ALONG_K) {
#pragma unroll
        for (int i = 0; i < R; ++i) {
            // Eight rows further a unit lies at the same place.
            int const at = T % 8 == 0 ? unitAt(t, u) + i * T * STEP : unitAt(t + i * T, u);
            float4 const v = *reinterpret_cast<float4 const*>(tile + at);
            f[i][0] = v.x; f[i][1] = v.y; f[i][2] = v.z; f[i][3] = v.w;
        }
    } else {
#pragma unroll
        for (int q = 0; q < 4; ++q)
#pragma unroll
            for (int i = 0; i < R; i += 4) {
                float4 const v = *reinterpret_cast<float4 const*>(tile + (u * 4 + q) * TILE + rowOf<false, T>(t, i));
                f[i][q] = v.x; f[i + 1][q] = v.y; f[i + 2][q] = v.z; f[i + 3][q] = v.w;
            }
    }
}
// Four columns of y, from `column` on in steps of 1, or of TX where b's k is contiguous.
constexpr int APART = B_ALONG_K ? TX : 1;
TW_INLINE void finish(Params const& p, idx batch, int row, int column, float (&v)[4])
{
    int const n = int(p.n);
    if (row >= int(p.m) || column >= n) return;
    i64 const at = (i64(batch) * p.m + row) * n + column;
    if constexpr (!B_ALONG_K && PACKS_Y) {
        if constexpr (BIAS) {
#pragma unroll
            for (int e = 0; e < 4; ++e) v[e] += p.bias[column + e];
        }
        if constexpr (RESIDUAL) {
            float4 const r = *reinterpret_cast<float4 const*>(p.residual + at);
            v[0] += r.x; v[1] += r.y; v[2] += r.z; v[3] += r.w;
        }
        *reinterpret_cast<float4*>(p.y + at) = float4{activate(v[0]), activate(v[1]), activate(v[2]), activate(v[3])};
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            if (column + e * APART >= n) break;
            float x = v[e];
            if constexpr (BIAS) x += p.bias[column + e * APART];
            if constexpr (RESIDUAL) x += p.residual[at + e * APART];
            p.y[at + e * APART] = activate(x);
        }
    }
}

TW_KERNEL __launch_bounds__(THREADS, BLOCKS_PER_SM) gemm(const __grid_constant__ Params p)
{
    extern __shared__ __align__(16) float tiles[];
    int rank = 0;
    if constexpr (SPLIT > 1) rank = clusterRank();
    idx const block = blockIdx.x / SPLIT, rest = divide(block, p.tilesN), batch = divide(rest, p.tilesM);
    int const m0 = int(rest - batch * idx(p.tilesM.d)) * TILE_M, n0 = int(block - rest * idx(p.tilesN.d)) * TILE_N;
    off at[2];
    locate<8>(p.batch, batch, at);
    float const *const a = p.a + at[0], *const b = p.b + at[1];
    int const m = int(p.m), n = int(p.n), k = int(p.k), all = (k + STEP - 1) / STEP;
    int const begin = all * rank / SPLIT, steps = all * (rank + 1) / SPLIT - begin;
    Loader<A_ALONG_K, TILE_M, PACKS_A ? 4 : 1> loadA;
    Loader<B_ALONG_K, TILE_N, PACKS_B ? 4 : 1> loadB;
    loadA.begin(a, p.lda, m0, m, begin * STEP, k);
    loadB.begin(b, p.ldb, n0, n, begin * STEP, k);
    releaseDependents();
    if constexpr (!EARLY) waitForPrevious();
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s)
        if (s < steps) loadB.next(tiles + s * STAGE_FLOATS + A_FLOATS);
    if constexpr (EARLY) waitForPrevious();
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < steps) loadA.next(tiles + s * STAGE_FLOATS);
        copyCommit();
    }
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int const tx = warp % WARPS_X * 8 + lane % 8, ty = warp / WARPS_X * 4 + lane / 8;
    float sum[ROWS][COLUMNS] = {};
    int now = 0, next = (STAGES - 1) * STAGE_FLOATS; // stages
    for (int step = 0; step < steps; ++step) {
        copyWait<STAGES - 2>();
        __syncthreads();
        if (step + STAGES - 1 < steps) {
            loadA.next(tiles + next);
            loadB.next(tiles + next + A_FLOATS);
        }
        copyCommit();
        float const *const as = tiles + now, *const bs = as + A_FLOATS;
        next = now;
        now = now + STAGE_FLOATS == STAGES * STAGE_FLOATS ? 0 : now + STAGE_FLOATS;
#pragma unroll
        for (int u = 0; u < STEP / 4; ++u) {
            float x[ROWS][4], w[COLUMNS][4];
            takeRows<A_ALONG_K, TILE_M>(as, ty, u, x);
            takeRows<B_ALONG_K, TILE_N>(bs, tx, u, w);
#pragma unroll
            for (int q = 0; q < 4; ++q)
#pragma unroll
                for (int i = 0; i < ROWS; ++i)
#pragma unroll
                    for (int j = 0; j < COLUMNS; ++j) sum[i][j] = fmaf(x[i][q], w[j][q], sum[i][j]);
        }
    }
    if constexpr (SPLIT > 1) {
        // Each block of the cluster gets everybody's sums of its rows, four columns of a thread together, and adds up.
        constexpr int PART = TILE_M / SPLIT, FOURS = TILE_N / 4;
        copyWait<0>();
        clusterSync(); // all stages are read
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            int const row = rowOf<A_ALONG_K, TY>(ty, i);
            u32 const to = addressAt(sharedAddress(tiles + (rank * PART + row % PART) * TILE_N), row / PART);
#pragma unroll
            for (int j = 0; j < COLUMNS; j += 4)
                storeCluster(to + (j / 4 * TX + tx) * 16, sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
        }
        clusterSync();
        for (int s = threadIdx.x; s < PART * FOURS; s += THREADS) {
            int const row = s / FOURS, j = s % FOURS / TX, x = s % TX;
            float v[4] = {};
#pragma unroll
            for (int o = 0; o < SPLIT; ++o) {
                float4 const w = *reinterpret_cast<float4 const*>(tiles + (o * PART + row) * TILE_N + s % FOURS * 4);
                v[0] += w.x; v[1] += w.y; v[2] += w.z; v[3] += w.w;
            }
            finish(p, batch, m0 + rank * PART + row, n0 + rowOf<B_ALONG_K, TX>(x, j * 4), v);
        }
    } else {
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int j = 0; j < COLUMNS; j += 4) {
                float v[4] = {sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]};
                finish(p, batch, m0 + rowOf<A_ALONG_K, TY>(ty, i), n0 + rowOf<B_ALONG_K, TX>(tx, j), v);
            }
    }
}
)";

} // namespace

int64_t Spec::sharedBytes() const
{
    return sharedBytesOf(*this, kStepK);
}

int Spec::blocksPerMultiprocessor() const
{
    int const registers = std::min(rows * columns + 4 * (rows + columns) + (rows * columns < 64 ? 56 : 40),
                                   255); // sums, factors, addresses
    return gemm_f32::blocksPerMultiprocessor(*this, registers);
}

std::string Spec::name() const
{
    return "gemm_f32_" + std::to_string(tileM) + "x" + std::to_string(tileN) + "x" + std::to_string(kStepK) + "_" +
           std::to_string(rows) + "x" + std::to_string(columns) + "_s" + std::to_string(stages) +
           (split > 1 ? "_split" + std::to_string(split) : "") + "_" + (aAlongK ? "t" : "n") + (bAlongK ? "t" : "n");
}

char const* unsupported(Spec const& s)
{
    auto isPart = [](int v) { return v == 4 || v == 8; };
    if (!isPart(s.rows) || (!isPart(s.columns) && (s.columns != 16 || s.rows != 8)))
        return "a thread has 4 or 8 rows and columns, or 8 rows of 16 columns";
    if (s.tileM < 16 || s.tileN < 32 || s.tileM > 256 || s.tileN > 256 || s.tileM % (4 * s.rows) ||
        s.tileN % (8 * s.columns))
        return "tiles have 16 to 256 rows and 32 to 256 columns, of whole warps of 4 x 8 threads";
    if ((!s.packsA && !s.aAlongK && s.tileM > s.threads()) || (!s.packsB && !s.bAlongK && s.tileN > s.threads()))
        return "a thread copies one column of a tile";
    if (s.threads() > 512 || s.stages < 2 || s.stages > 8 || s.sharedBytes() > kSharedLimit)
        return "at most 512 threads, 2 to 8 stages that fit into shared memory";
    if ((s.split != 1 && s.split != 2 && s.split != 4 && s.split != 8) || s.tileM % s.split)
        return "split is 1, 2, 4 or 8";
    return nullptr;
}

std::string loaderText(Operands const& o, int step, int threads, bool skewed)
{
    return include("kernels/cuda/common/async_copies.cuh") + include("kernels/cuda/common/clusters.cuh") +
           o.activation + constant("STEP", step) + constant("THREADS", threads) + flag("SKEWED", skewed) +
           flag("A_ALONG_K", o.aAlongK) + flag("B_ALONG_K", o.bAlongK) + flag("PACKS_A", o.packsA) +
           flag("PACKS_B", o.packsB) + flag("PACKS_Y", o.packsY) + flag("EARLY", o.constantB) + flag("BIAS", o.bias) +
           flag("RESIDUAL", o.residual) + kLoaders + sizeCheck<Params>();
}

std::string source(Spec const& s)
{
    return loaderText(s, kStepK, s.threads(), false) + constant("TILE_M", s.tileM) + constant("TILE_N", s.tileN) +
           constant("ROWS", s.rows) + constant("COLUMNS", s.columns) + constant("STAGES", s.stages) +
           constant("SPLIT", s.split) + constant("BLOCKS_PER_SM", s.blocksPerMultiprocessor()) + kText;
}

LaunchGeometry launch(Spec const& s, Params& p, int64_t batches)
{
    return launchTiles(s, p, batches);
}

double estimateUs(Spec const& s, int64_t m, int64_t n, int64_t k, int64_t batches, int multiprocessors)
{
    return estimateTiles(s, {m, n, k, batches, multiprocessors}, kStepK, 700, [&](int64_t atOnce) {
        // 128 products a clock; few warps, and few products for each factor that is read, reach less.
        double const warps = double(atOnce * s.threads()) / 32;
        double const share = (s.rows * s.columns >= 64   ? 0.85
                              : s.rows * s.columns == 32 ? 0.7
                                                         : 0.5) *
                             std::min(1.0, 0.3 + warps / 16);
        return double(s.tileM) * s.tileN * kStepK / 128 / share;
    });
}

std::vector<Spec> candidates(Spec const& base, int64_t m, int64_t n, int64_t k, int64_t batches, int multiprocessors,
                             bool clusters, size_t most)
{
    struct Tile
    {
        int m, n, rows, columns, stages;
    };
    static constexpr Tile kTiles[] = {{128, 128, 8, 16, 4}, {64, 128, 8, 16, 4}, {128, 64, 8, 8, 4},
                                      {64, 64, 8, 8, 4},    {64, 64, 8, 4, 4},   {64, 64, 4, 4, 4},
                                      {64, 32, 4, 4, 5},    {32, 64, 8, 4, 5},   {16, 64, 4, 4, 6}};
    auto set = [](Spec& s, Tile const& t) {
        s.tileM = t.m;
        s.tileN = t.n;
        s.rows = t.rows;
        s.columns = t.columns;
        s.stages = t.stages;
    };
    return rankTiles(kTiles, base, set, {m, n, k, batches, multiprocessors}, kStepK, clusters, most);
}

} // namespace tw::cuda::gemm_f32
