// SPDX-License-Identifier: Apache-2.0
// The kernel's text.
#include "kernels/cuda/common/epilogue.h"
#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/common/prelude.h"
#include "kernels/cuda/gemm/wgmma.h"
#include "kernels/cuda/gemm/wgmma_norm.h"

namespace tw::cuda::gemm_f16 {

namespace {

constexpr char const* kText = R"(
constexpr int ROWS = PING_PONG ? TILE_P : TILE_P / GROUPS, BLOCKS = ROWS / 64; // of a tile, for one group
constexpr u32 P_BYTES = TILE_P * 128, STAGE_BYTES = (TILE_P + TILE_Q) * 128;
constexpr int COLUMNS = TILE_Q / SPLIT, NEIGHBOURS = NORM ? NORM : SPLIT * MULTICAST; // blocks of a unit
// OWN_SUMS: what a split adds up has room beside the stages.
constexpr bool OWN_SUMS = SUMS_BYTES > 0;
// LATE: no registers are left to hold the residual during the products.
struct Args : Output {
    i32 steps, tilesP, tilesQ, batches, batchP, batchQ;
    i32 stepsC, filterW, outW, outH, strideW, strideH, padW, padH, dilationW, dilationH;
};
struct Tile { int p, q, batch; }; // first row, first column

// Tiles run down groups of 16 rows of tiles, so that those in flight share both operands in L2.
TW_INLINE Tile tileAt(Args const& a, int unit, int rank)
{
    int const each = a.tilesP * a.tilesQ, batch = unit / each, at = unit - batch * each;
    if constexpr (NORM) return {at * TILE_P, rank * TILE_Q, batch};
    constexpr int HIGH = 16 / MULTICAST;
    int const group = at / (HIGH * a.tilesQ), first = group * HIGH, rest = at - group * HIGH * a.tilesQ;
    int const high = min(HIGH, a.tilesP - first);
    Tile t;
    t.p = ((first + rest % high) * MULTICAST + (MULTICAST > 1 ? rank : 0)) * TILE_P;
    t.q = rest / high * TILE_Q;
    t.batch = batch;
    return t;
}

// What the copying thread walks along: k, and for an image the tap and where the tile's first pixel begins.
struct Cursor {
    int k, p, q, zp, zq; // elements
    int c, tap, r, s, w, h, n; // EXACT: tap counts the walks along k
    TW_INLINE void begin(Args const& a, Tile const& t, int step)
    {
        k = step * STEP_K;
        p = t.p;
        q = t.q;
        zp = t.batch * a.batchP;
        zq = t.batch * a.batchQ;
        if constexpr (EXACT) {
            tap = step / a.stepsC;
            c = (step - tap * a.stepsC) * STEP_K;
        }
        if constexpr (IMAGE) {
            tap = step / a.stepsC;
            c = (step - tap * a.stepsC) * STEP_K;
            r = tap / a.filterW;
            s = tap - r * a.filterW;
            int const row = t.p / a.outW;
            n = row / a.outH;
            w = (t.p - row * a.outW) * a.strideW - a.padW;
            h = (row - n * a.outH) * a.strideH - a.padH;
        }
    }
    TW_INLINE void next(Args const& a)
    {
        k += STEP_K;
        if constexpr (EXACT) {
            c += STEP_K;
            if (c == a.stepsC * STEP_K) { c = 0; ++tap; }
        }
        if constexpr (IMAGE) {
            c += STEP_K;
            if (c == a.stepsC * STEP_K) {
                c = 0;
                ++tap;
                if (++s == a.filterW) { s = 0; ++r; }
            }
        }
    }
};

// Where an operand is read: a's low part in the first walk, b's in the second.
TW_INLINE int columnOf(Args const& a, Cursor const& at, bool isB)
{
    if constexpr (EXACT) return at.c + (at.tap == int(isB) ? a.stepsC * STEP_K : 0);
    return at.k;
}
TW_INLINE void loadP(TensorMap const* map, Args const& a, u32 to, u32 bar, Cursor const& at)
{
    if constexpr (IMAGE) {
        copyPixels(to, map, bar, at.c, at.w, at.h, at.n, u16(at.s * a.dilationW), u16(at.r * a.dilationH));
    } else if constexpr (P_ALONG_K) {
        copyTile(to, map, bar, columnOf(a, at, SWAP), at.p, at.zp);
    } else {
#pragma unroll
        for (int i = 0; i < TILE_P / 64; ++i) copyTile(to + i * 8192, map, bar, at.p + i * 64, at.k, at.zp);
    }
}
TW_INLINE void loadQ(TensorMap const* map, Args const& a, u32 to, u32 bar, Cursor const& at, int rank)
{
    constexpr u16 ALL = (1 << MULTICAST) - 1;
    if constexpr (Q_ALONG_K) {
        constexpr int PART = TILE_Q / MULTICAST;
        int const first = MULTICAST > 1 ? rank * PART : 0, row = at.q + first;
        int const c0 = IMAGE ? at.c : columnOf(a, at, !SWAP), c1 = IMAGE ? at.tap : row, c2 = IMAGE ? row : at.zq;
        if constexpr (MULTICAST > 1) copyTileTo(to + first * 128, map, bar, c0, c1, c2, ALL);
        else copyTile(to, map, bar, c0, c1, c2);
    } else {
        constexpr int PART = TILE_Q / 64 / MULTICAST;
#pragma unroll
        for (int i = 0; i < PART; ++i) {
            int const block = MULTICAST > 1 ? rank * PART + i : i;
            if constexpr (MULTICAST > 1) copyTileTo(to + block * 8192, map, bar, at.q + block * 64, at.k, at.zq, ALL);
            else copyTile(to + block * 8192, map, bar, at.q + block * 64, at.k, at.zq);
        }
    }
}

// COPIES: each warp's part of a tile, chunks of 16 rows and 64 columns, lies in shared memory as the copy engine wants
// it. It brings the residual during the products and takes y away during those of the next tile.
constexpr int CHUNK_BYTES = 16 * CHUNK * 2, WARP_BYTES = COPIES ? BLOCKS * (TILE_Q / CHUNK) * CHUNK_BYTES : CHUNK_BYTES;
TW_INLINE void fetchChunks(TensorMap const* map, u32 stage, u32 bar, int row0, int column0, int batch)
{
    bulkWaitRead(); // y of the tile before has left
    barrierExpect(bar, WARP_BYTES);
#pragma unroll
    for (int b = 0; b < BLOCKS; ++b)
#pragma unroll
        for (int c = 0; c < TILE_Q / CHUNK; ++c)
            copyTile(stage + (b * (TILE_Q / CHUNK) + c) * CHUNK_BYTES, map, bar, column0 + c * CHUNK, row0 + b * 64, batch);
}
template <int N>
TW_INLINE void copyRows(TensorMap const* map, float (&v)[N], int row0, int column0, int batch, u32 stage, u32 biases, int lane)
{
    // Four 8 x 8 blocks at once: rows 0 and 8 of unit u, then of unit u + 1; each lane names a row of one.
    u32 const rowAt = (lane / 8 % 2 * 8 + lane % 8) * 128;
    int const t = lane % 4;
#pragma unroll
    for (int chunk = 0; chunk < N * 2 / CHUNK; ++chunk) {
        u32 const to = stage + chunk * CHUNK_BYTES;
        // All at once: loads do not overtake the stores below.
        u32 add[UNITS / 2][4];
        float bias[UNITS][2] = {};
#pragma unroll
        for (int u = 0; u < UNITS; ++u) {
            if constexpr (RESIDUAL)
                if (u % 2 == 0) loadMatrix4(add[u / 2], to + rowAt + ((u + lane / 16) ^ lane % 8) * 16);
            if constexpr (BIAS) loadShared(biases + (chunk * CHUNK + u * 8 + t * 2) * 4, bias[u][0], bias[u][1]);
        }
#pragma unroll
        for (int u = 0; u < UNITS; u += 2) {
            u32 const at = to + rowAt + ((u + lane / 16) ^ lane % 8) * 16;
            u32 out[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                int const j = chunk * UNITS + u + i / 2, h = i % 2;
                float x0 = v[j * 4 + h * 2] + bias[u + i / 2][0], x1 = v[j * 4 + h * 2 + 1] + bias[u + i / 2][1];
                if constexpr (!ACTIVATE_LAST) { x0 = activate(x0); x1 = activate(x1); }
                if constexpr (RESIDUAL) {
                    x0 += lowHalf(add[u / 2][i]);
                    x1 += highHalf(add[u / 2][i]);
                }
                if constexpr (ACTIVATE_LAST) { x0 = activate(x0); x1 = activate(x1); }
                out[i] = packHalves(x0, x1);
            }
            storeMatrix4(at, out);
        }
        sharedFence();
        __syncwarp();
        if (lane == 0) {
            storeTile(map, to, column0 + chunk * CHUNK, row0, batch);
            bulkCommit();
        }
    }
}
$norm$
TW_KERNEL __launch_bounds__(THREADS, BLOCKS_PER_SM) gemm(const __grid_constant__ TensorMap mapP,
    const __grid_constant__ TensorMap mapQ, $parameters$const __grid_constant__ Args a)
{
    TensorMap const *const residualMap = $residual$, *const yMap = $y$;
    extern __shared__ u8 raw[];
    constexpr bool CLUSTERED = MULTICAST > 1;
    u32 const base = (sharedAddress(raw) + 1023) & ~1023u, staging = base + STAGES * STAGE_BYTES;
    u32 const biases = staging + STAGING_BYTES; // [group][2][COLUMNS]: this tile's and the next one's; NORM: see there
    u32 const sums = biases + BIAS_BYTES; // OWN_SUMS: [block of the cluster][its part of this block's columns]
    u32 const full = sums + SUMS_BYTES, empty = full + STAGES * 8, arrived = empty + STAGES * 8; // residual of each warp
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int const rank = NORM ? blockIdx.x % NEIGHBOURS : SPLIT * MULTICAST > 1 ? clusterRank() : 0;
    int const units = a.tilesP * a.tilesQ * a.batches;
    int const firstUnit = blockIdx.x / NEIGHBOURS, unitStep = gridDim.x / NEIGHBOURS;
    int const begin = SPLIT > 1 ? a.steps * rank / SPLIT : 0, end = SPLIT > 1 ? a.steps * (rank + 1) / SPLIT : a.steps;
    if (threadIdx.x == 0) {
#pragma unroll
        for (int s = 0; s < STAGES; ++s) {
            barrierInit(full + s * 8, 1);
            barrierInit(empty + s * 8, (PING_PONG ? 1 : GROUPS) * MULTICAST);
        }
        if constexpr (COPIES && RESIDUAL)
#pragma unroll
            for (int w = 0; w < GROUPS * 4; ++w) barrierInit(arrived + w * 8, 1);
        barrierInitFence();
    }
    if (warp == GROUPS * 4 && lane == 0) {
        prefetchMap(&mapP);
        prefetchMap(&mapQ);
    }
    if constexpr (CLUSTERED) clusterSync();
    else __syncthreads();
    if constexpr (SPLIT > 1 && OWN_SUMS) clusterArrive();
    releaseDependents();

    if (warp >= GROUPS * 4) {
        if constexpr (REDISTRIBUTE) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(IMAGE ? 56 : 40));
        if (warp == GROUPS * 4 && lane == 0) {
            int s = 0;
            u32 parity = 1;
            bool first = true;
            for (int unit = firstUnit; unit < units; unit += unitStep) {
                Tile const t = tileAt(a, unit, rank);
                Cursor at;
                at.begin(a, t, begin);
                int step = begin;
                if (first) {
                    int const early = EARLY ? min(STAGES, end - begin) : 0;
                    Cursor ahead = at;
                    for (int i = 0; i < early; ++i, ahead.next(a)) {
                        u32 const to = base + i * STAGE_BYTES;
                        barrierExpect(full + i * 8, STAGE_BYTES);
                        if constexpr (SWAP) loadP(&mapP, a, to, full + i * 8, ahead);
                        else loadQ(&mapQ, a, to + P_BYTES, full + i * 8, ahead, rank);
                    }
                    waitForPrevious();
                    for (int i = 0; i < early; ++i, at.next(a)) {
                        u32 const to = base + i * STAGE_BYTES;
                        if constexpr (SWAP) loadQ(&mapQ, a, to + P_BYTES, full + i * 8, at, rank);
                        else loadP(&mapP, a, to, full + i * 8, at);
                    }
                    step += early;
                    s = early % STAGES;
                    parity = early == STAGES ? 0 : 1;
                    first = false;
                }
                for (; step < end; ++step, at.next(a)) {
                    barrierWait(empty + s * 8, parity);
                    barrierExpect(full + s * 8, STAGE_BYTES);
                    u32 const to = base + s * STAGE_BYTES;
                    loadP(&mapP, a, to, full + s * 8, at);
                    loadQ(&mapQ, a, to + P_BYTES, full + s * 8, at, rank);
                    if (++s == STAGES) { s = 0; parity ^= 1; }
                }
            }
        }
        __syncwarp();
        if constexpr (SPLIT > 1) {
            if constexpr (!OWN_SUMS) clusterArrive();
            clusterWait();
            clusterSync();
        }
        // The other of the pair arrives at this block's barriers until here.
        if constexpr (MULTICAST > 1) clusterSync();
    } else {
        if constexpr (REDISTRIBUTE) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(IMAGE ? 224 : 232));
        int const group = warp / 4, inGroup = threadIdx.x % 128;
        u32 const stage = staging + warp * WARP_BYTES;
        u32 done = 0; // steps of this block before this tile
        int turn = 0;
        $constants$
        waitForPrevious(); // y and residual belong to it
        if constexpr (PING_PONG)
            if (group == 1 && firstUnit < units) groupArrive(2, 256);
        for (int unit = firstUnit; unit < units; unit += unitStep, ++turn) {
            if (PING_PONG && turn % 2 != group) {
                done += end - begin;
                continue;
            }
            Tile const t = tileAt(a, unit, rank);
            int const row0 = t.p + (PING_PONG ? 0 : group * ROWS) + warp % 4 * 16;
            int const column0 = t.q + (SPLIT > 1 ? rank * COLUMNS : 0);
            u32 const biasAt = biases + (group * 2 + (PING_PONG ? turn / 2 : turn) % 2) * COLUMNS * 4;
            BiasPart<SWAP ? 1 : COLUMNS, 128> bias;
            float rowBias[SWAP ? BLOCKS : 1][2] = {};
            if constexpr (SWAP && BIAS)
#pragma unroll
                for (int b = 0; b < BLOCKS; ++b)
#pragma unroll
                    for (int h = 0; h < 2; ++h) {
                        int const n = row0 + b * 64 + lane / 4 + h * 8;
                        rowBias[b][h] = n < a.n ? a.bias[n] : 0;
                    }
            Ahead ahead;
            if constexpr (!SWAP && !NORM) bias.take(a, column0, inGroup);
            if constexpr (!SWAP && !COPIES && !LATE) fetchResidual(a, ahead, row0, column0, t.batch, lane);
            float d[BLOCKS][TILE_Q / 2];
            int s = done % STAGES;
            u32 parity = done / STAGES & 1;
            if constexpr (PING_PONG) groupSync(2 + group, 256);
            int last = -1, held = 0;
            float total[EXACT ? BLOCKS : 1][EXACT ? TILE_Q / 2 : 1] = {};
            // Two steps on, the copy engine has read all of the tile before.
            int const fetchStep = min(begin + 2, end - 1);
            for (int step = begin; step < end; ++step) {
                if constexpr (COPIES && RESIDUAL) {
                    if (step == fetchStep && lane == 0) fetchChunks(residualMap, stage, arrived + warp * 8, row0, column0, t.batch);
                    __syncwarp();
                }
                barrierWait(full + s * 8, parity);
                u32 const p = base + s * STAGE_BYTES + (PING_PONG ? 0 : group * ROWS * 128);
                u32 const q = base + s * STAGE_BYTES + P_BYTES;
                wgmmaFence();
#pragma unroll
                for (int k = 0; k < 4; ++k)
#pragma unroll
                    for (int b = 0; b < BLOCKS; ++b)
                        wgmma(d[b], descriptor(p + b * 8192 + k * (P_ALONG_K ? 32 : 2048), 8192),
                              descriptor(q + k * (Q_ALONG_K ? 32 : 2048), 8192), (EXACT ? held > 0 : step > begin) || k > 0);
                wgmmaCommit();
                wgmmaWait<1>();
                if (last >= 0) { // its operands are read
                    if constexpr (MULTICAST > 1) {
                        if (inGroup < MULTICAST) barrierArriveAt(empty + last * 8, inGroup);
                    } else if (inGroup == 0)
                        barrierArrive(empty + last * 8);
                }
                last = s;
                if (++s == STAGES) { s = 0; parity ^= 1; }
                if constexpr (EXACT) {
                    if (++held == KEPT_STEPS || step + 1 == end) {
                        wgmmaWait<0>();
                        held = 0;
#pragma unroll
                        for (int b = 0; b < BLOCKS; ++b)
#pragma unroll
                            for (int i = 0; i < TILE_Q / 2; ++i) {
                                asm volatile("" : "+f"(d[b][i])); // not before they are there
                                total[b][i] += d[b][i];
                            }
                    }
                }
            }
            if constexpr (PING_PONG)
                if (unit + unitStep < units) groupArrive(2 + (group ^ 1), 256);
            if constexpr (!SWAP && !COPIES && LATE) fetchResidual(a, ahead, row0, column0, t.batch, lane);
            wgmmaWait<0>();
            if (last >= 0) {
                if constexpr (MULTICAST > 1) {
                    if (inGroup < MULTICAST) barrierArriveAt(empty + last * 8, inGroup);
                } else if (inGroup == 0)
                    barrierArrive(empty + last * 8);
            }
            if constexpr (EXACT)
#pragma unroll
                for (int b = 0; b < BLOCKS; ++b)
#pragma unroll
                    for (int i = 0; i < TILE_Q / 2; ++i) d[b][i] = total[b][i];
            done += end - begin;
            // All warps of the group have left the tile before: its biases are read.
            if constexpr (BIAS && !SWAP && !NORM) {
                bias.put(biasAt, inGroup);
                groupSync(4 + group, 128);
            }
            if constexpr (SPLIT > 1) {
                // Each block gets everybody's sums of its columns, 16 bytes a thread, and adds them up.
                constexpr int ALL = GROUPS * 128, UNIT_BYTES = ALL * 16, PART_BYTES = COLUMNS / 8 * UNIT_BYTES;
                if constexpr (OWN_SUMS) {
                    clusterWait(); // all blocks have begun
                } else {
                    if constexpr (GROUPS > 1) groupSync(1, ALL);
                    clusterSync(); // all stages are read
                }
                u32 const sumsAt = (OWN_SUMS ? sums : base) + threadIdx.x * 16;
#pragma unroll
                for (int o = 0; o < SPLIT; ++o) {
                    u32 const to = addressAt(sumsAt + rank * (BLOCKS * PART_BYTES), o);
#pragma unroll
                    for (int b = 0; b < BLOCKS; ++b)
#pragma unroll
                        for (int j = 0; j < COLUMNS / 8; ++j) {
                            int const at = (o * (COLUMNS / 8) + j) * 4;
                            storeCluster(to + b * PART_BYTES + j * UNIT_BYTES, d[b][at], d[b][at + 1], d[b][at + 2],
                                         d[b][at + 3]);
                        }
                }
                clusterSync();
#pragma unroll
                for (int b = 0; b < BLOCKS; ++b) {
                    float v[COLUMNS / 8 * 4] = {};
#pragma unroll
                    for (int o = 0; o < SPLIT; ++o)
#pragma unroll
                        for (int j = 0; j < COLUMNS / 8; ++j) {
                            float x[4];
                            loadShared(x, sumsAt + (o * BLOCKS + b) * PART_BYTES + j * UNIT_BYTES);
#pragma unroll
                            for (int e = 0; e < 4; ++e) v[j * 4 + e] += x[e];
                        }
                    if constexpr (!SWAP && LATE)
                        if (b > 0) fetchResidual(a, ahead, row0 + b * 64, column0, t.batch, lane);
                    if constexpr (SWAP) writeColumns(a, v, rowBias[b], row0 + b * 64, column0, t.batch, lane);
                    else
                        writeRows(a, v, row0 + b * 64, column0, t.batch, stage, biasAt, ahead,
                                  !LATE && b + 1 < BLOCKS ? row0 + b * 64 + 64 : -1, lane);
                }
            } else if constexpr (COPIES) {
                if constexpr (RESIDUAL) barrierWait(arrived + warp * 8, (PING_PONG ? turn / 2 : turn) & 1);
                else if (lane == 0) bulkWaitRead();
                __syncwarp();
$finish$            } else {
#pragma unroll
                for (int b = 0; b < BLOCKS; ++b) {
                    if constexpr (!SWAP && LATE)
                        if (b > 0) fetchResidual(a, ahead, row0 + b * 64, column0, t.batch, lane);
                    if constexpr (SWAP) writeColumns(a, d[b], rowBias[b], row0 + b * 64, column0, t.batch, lane);
                    else
                        writeRows(a, d[b], row0 + b * 64, column0, t.batch, stage, biasAt, ahead,
                                  !LATE && b + 1 < BLOCKS ? row0 + b * 64 + 64 : -1, lane);
                }
            }
        }
        if constexpr (COPIES)
            if (lane == 0) bulkWaitRead();
        if constexpr (MULTICAST > 1) clusterSync();
    }
}
)";

constexpr char const* kFinish = R"(
#pragma unroll
                for (int b = 0; b < BLOCKS; ++b)
                    copyRows(yMap, d[b], row0 + b * 64, column0, t.batch, stage + b * (TILE_Q / CHUNK) * CHUNK_BYTES, biasAt,
                             lane);
)";

} // namespace

std::string source(Spec const& s)
{
    bool const early = s.constantB;
    std::string text = include("kernels/cuda/common/hopper.cuh") +
                       (s.single ? wgmmaSingleText(s.tileQ) : wgmmaText(s.tileQ, !s.pAlongK(), !s.qAlongK()));
    text += constant("TILE_P", s.tileP) + constant("TILE_Q", s.tileQ) + constant("STAGES", s.stages) +
            constant("GROUPS", s.groups) + constant("SPLIT", s.split) + constant("MULTICAST", s.multicast) +
            constant("NORM", s.norm) + constant("THREADS", s.threads()) +
            constant("BLOCKS_PER_SM", s.blocksPerMultiprocessor()) + constant("BIAS_BYTES", s.biasBytes()) +
            constant("STAGING_BYTES", s.stagingBytes()) + constant("SUMS_BYTES", s.sumsBytes()) +
            constant("STEP_K", s.stepK()) + constant("KEPT_STEPS", kKeptSteps) + flag("EXACT", s.exact);
    text += flag("PING_PONG", s.pingPong) + flag("SWAP", s.swap) + flag("P_ALONG_K", s.pAlongK()) +
            flag("Q_ALONG_K", s.qAlongK()) + flag("COPIES", s.copies) + flag("IMAGE", s.image) +
            flag("REDISTRIBUTE", s.redistributes()) + flag("LATE", s.sums() > 96 || s.split > 1) +
            flag("EARLY", early) + epilogueConstants(s, s.chunk());
    bool const fetches = s.copies && s.residual;
    std::string const kernel =
        expand(kText, {{"parameters", std::string(s.copies ? "const __grid_constant__ TensorMap mapY, " : "") +
                                          (fetches ? "const __grid_constant__ TensorMap mapResidual, " : "") +
                                          (s.norm ? "const __grid_constant__ Norm norm, " : "")},
                       {"norm", s.norm ? normText() : ""},
                       {"constants", s.norm ? normConstants() : ""},
                       {"finish", s.norm ? normFinish() : kFinish},
                       {"y", s.copies ? "&mapY" : "nullptr"},
                       {"residual", fetches ? "&mapResidual" : "nullptr"}});
    return text + rowsText(s.single) + columnsText(s.single) + kernel + (s.norm ? fillText() : "") +
           "static_assert(sizeof(Args) == " + std::to_string(sizeof(Args)) + ", \"layout of Args\");\n";
}

} // namespace tw::cuda::gemm_f16
