// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/epilogue.h"

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"

namespace tw::cuda {

namespace {

constexpr char const* kOutput = R"(
struct Output { Element* y; float const* bias; Element const* residual; i64 ldy, batchY, ldResidual; i32 m, n; };
constexpr int UNITS = CHUNK / 8; // 16 bytes of FP16
TW_INLINE constexpr int divisorUpTo(int most, int of) { return of % most == 0 ? most : divisorUpTo(most - 1, of); }
)";

constexpr char const* kBiases = R"(
// COUNT biases from column0 on, thread t of THREADS its part, to shared memory: taken before the products, put after them.
template <int COUNT, int OF> struct BiasPart {
    static constexpr int EACH = (COUNT + OF - 1) / OF;
    float v[EACH];
    TW_INLINE void take(Output const& a, int column0, int t)
    {
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            int const c = t + i * OF;
            v[i] = BIAS && c < COUNT && column0 + c < a.n ? a.bias[column0 + c] : 0;
        }
    }
    TW_INLINE void put(u32 to, int t) const
    {
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            if (t + i * OF < COUNT) storeShared(to + (t + i * OF) * 4, __float_as_uint(v[i]));
    }
};
)";

constexpr char const* kHalfRows = R"(
constexpr int PER_LANE = (16 * UNITS + 31) / 32; // units of 16 rows of a chunk
// A residual on its way: of 16 rows and CHUNK columns, as lanes write y.
struct Ahead { Unit x[RESIDUAL ? PER_LANE : 1]; };
TW_INLINE void fetchResidual(Output const& a, Ahead& ahead, int row0, int column0, int batch, int lane)
{
    if constexpr (RESIDUAL) {
#pragma unroll
        for (int i = 0; i < PER_LANE; ++i) {
            int const at = lane + i * 32, r = at / UNITS, u = at % UNITS, row = row0 + r, column = column0 + u * 8;
            Unit x = {};
            f16 const* from = a.residual + i64(batch) * a.batchY + i64(row) * a.ldResidual + column;
            if ((16 * UNITS >= 32 || r < 16) && row < a.m && column < a.n) {
                if constexpr (ALIGNED) x = *reinterpret_cast<Unit const*>(from);
                else {
#pragma unroll
                    for (int e = 0; e < 8; ++e)
                        if (column + e < a.n) x.v[e / 2] |= u32(from[e].bits) << (e % 2 * 16);
                }
            }
            ahead.x[i] = x;
        }
    }
}
// Writes 16 rows and 2 N columns of a warp's sums: v[4 j ..] holds rows g and g + 8 (g = lane / 4) of columns
// 8 j + 2 (lane % 4) and the next. `stage`: 16 * CHUNK halves of the warp's own; `biases`: address of those columns' bias.
// `ahead` holds the residual of the first chunk, then that of the first chunk of the rows from nextRow on, unless < 0.
template <int N> TW_INLINE void writeRows(Output const& a, float (&v)[N], int row0, int column0, int batch, u32 stage,
    u32 biases, Ahead& ahead, int nextRow, int lane)
{
    constexpr int CHUNKS = N * 2 / CHUNK;
    int const g = lane / 4, t = lane % 4;
    i64 const base = i64(batch) * a.batchY;
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        int const c0 = column0 + chunk * CHUNK;
        if constexpr (RESIDUAL) {
#pragma unroll
            for (int i = 0; i < PER_LANE; ++i) {
                int const at = lane + i * 32, r = at / UNITS, u = at % UNITS;
                if (16 * UNITS >= 32 || r < 16) storeShared(stage + (r * UNITS + (u ^ (r & (UNITS - 1)))) * 16, ahead.x[i]);
            }
            __syncwarp();
            if (chunk + 1 < CHUNKS) fetchResidual(a, ahead, row0, c0 + CHUNK, batch, lane);
            else if (nextRow >= 0) fetchResidual(a, ahead, nextRow, column0, batch, lane);
        }
#pragma unroll
        for (int u = 0; u < UNITS; ++u) {
            int const j = chunk * UNITS + u;
            float b0 = 0, b1 = 0;
            if constexpr (BIAS) {
                u32 const at = biases + (chunk * CHUNK + u * 8 + t * 2) * 4;
                b0 = __uint_as_float(loadShared(at));
                b1 = __uint_as_float(loadShared(at + 4));
            }
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                int const r = g + h * 8;
                u32 const at = stage + (r * UNITS + (u ^ (r & (UNITS - 1)))) * 16 + t * 4;
                float x0 = v[j * 4 + h * 2] + b0, x1 = v[j * 4 + h * 2 + 1] + b1;
                if constexpr (!ACTIVATE_LAST) { x0 = activate(x0); x1 = activate(x1); }
                if constexpr (RESIDUAL) {
                    u32 const add = loadShared(at);
                    x0 += lowHalf(add);
                    x1 += highHalf(add);
                }
                if constexpr (ACTIVATE_LAST) { x0 = activate(x0); x1 = activate(x1); }
                storeShared(at, packHalves(x0, x1));
            }
        }
        __syncwarp();
        if constexpr (ALIGNED) {
#pragma unroll
            for (int i = 0; i < PER_LANE; ++i) {
                int const at = lane + i * 32, r = at / UNITS, u = at % UNITS, row = row0 + r, column = c0 + u * 8;
                if ((16 * UNITS >= 32 || r < 16) && row < a.m && column < a.n)
                    *reinterpret_cast<Unit*>(a.y + base + i64(row) * a.ldy + column) =
                        loadSharedUnit(stage + (r * UNITS + (u ^ (r & (UNITS - 1)))) * 16);
            }
        } else { // an element a lane, so that a row's neighbours leave together
#pragma unroll 4
            for (int i = 0; i < CHUNK / 2; ++i) {
                int const at = lane + i * 32, r = at / CHUNK, c = at % CHUNK, row = row0 + r, column = c0 + c;
                u32 const pair = loadShared(stage + (r * UNITS + (c / 8 ^ (r & (UNITS - 1)))) * 16 + c % 8 / 2 * 4);
                if (row < a.m && column < a.n)
                    a.y[base + i64(row) * a.ldy + column].bits = u16(c % 2 ? pair >> 16 : pair);
            }
        }
        __syncwarp();
    }
}
)";

constexpr char const* kSingleRows = R"(
// A pair of y's columns is a lane's own: four lanes write 32 bytes of a row.
struct Ahead {};
TW_INLINE void fetchResidual(Output const&, Ahead&, int, int, int, int) {}
TW_INLINE void loadPair(float const* from, bool first, bool second, float (&x)[2])
{
    if constexpr (ALIGNED) {
        float2 const pair = first ? *reinterpret_cast<float2 const*>(from) : float2{0, 0};
        x[0] = pair.x;
        x[1] = pair.y;
    } else {
        x[0] = first ? from[0] : 0;
        x[1] = second ? from[1] : 0;
    }
}

// Writes 16 rows and 2 N columns of a warp's sums: v[4 j ..] holds rows g and g + 8 (g = lane / 4) of columns
// 8 j + 2 (lane % 4) and the next. `biases`: address of those columns' bias.
template <int N> TW_INLINE void writeRows(Output const& a, float (&v)[N], int row0, int column0, int batch, u32, u32 biases,
    Ahead&, int, int lane)
{
    constexpr int BLOCKS_N = N / 4, AHEAD = divisorUpTo(8, BLOCKS_N); // residuals on their way at once
    int const row = row0 + lane / 4, first = lane % 4 * 2;
    i64 const base = i64(batch) * a.batchY + i64(row) * a.ldy, from = i64(batch) * a.batchY + i64(row) * a.ldResidual;
#pragma unroll
    for (int j0 = 0; j0 < BLOCKS_N; j0 += AHEAD) {
        float add[AHEAD][2][2];
        if constexpr (RESIDUAL) {
#pragma unroll
            for (int j = 0; j < AHEAD; ++j)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    int const column = column0 + (j0 + j) * 8 + first;
                    bool const known = row + h * 8 < a.m;
                    loadPair(a.residual + from + h * 8 * a.ldResidual + column, known && column < a.n,
                             known && column + 1 < a.n, add[j][h]);
                }
        }
#pragma unroll
        for (int j = 0; j < AHEAD; ++j) {
            int const at = (j0 + j) * 8 + first, column = column0 + at;
            float b0 = 0, b1 = 0;
            if constexpr (BIAS) {
                b0 = __uint_as_float(loadShared(biases + at * 4));
                b1 = __uint_as_float(loadShared(biases + at * 4 + 4));
            }
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float x0 = v[(j0 + j) * 4 + h * 2] + b0, x1 = v[(j0 + j) * 4 + h * 2 + 1] + b1;
                if constexpr (!ACTIVATE_LAST) { x0 = activate(x0); x1 = activate(x1); }
                if constexpr (RESIDUAL) { x0 += add[j][h][0]; x1 += add[j][h][1]; }
                if constexpr (ACTIVATE_LAST) { x0 = activate(x0); x1 = activate(x1); }
                float* to = a.y + base + h * 8 * a.ldy + column;
                if (row + h * 8 < a.m && column < a.n) {
                    if constexpr (ALIGNED) *reinterpret_cast<float2*>(to) = float2{x0, x1};
                    else {
                        to[0] = x0;
                        if (column + 1 < a.n) to[1] = x1;
                    }
                }
            }
        }
    }
}
)";

constexpr char const* kHalfColumns = R"(
// Swapped: rows are y's columns. v[4 j ..] holds n = row0 + g, + 8 of m = column0 + 8 j + 2 (lane % 4) and the next;
// bias is that of those n. y and the residual move as 8 x 8 blocks the other way round: lane holds m = column0 + 8 j + g
// of n = row0 + 2 (lane % 4) and the next.
TW_INLINE u32 transposed(u32 v)
{
    u32 out;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(v));
    return out;
}
template <int N>
TW_INLINE void writeColumns(Output const& a, float (&v)[N], float const (&bias)[2], int row0, int column0, int batch, int lane)
{
    constexpr int BLOCKS_Q = N / 4, AHEAD = divisorUpTo(13, BLOCKS_Q); // residuals on their way at once
    int const g = lane / 4, t = lane % 4;
    i64 const base = i64(batch) * a.batchY + row0 + t * 2;
#pragma unroll
    for (int first = 0; first < BLOCKS_Q; first += AHEAD) {
        u32 add[AHEAD][2];
        if constexpr (RESIDUAL) {
#pragma unroll
            for (int j = 0; j < AHEAD; ++j)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    int const row = column0 + (first + j) * 8 + g, n = row0 + t * 2 + h * 8;
                    f16 const* from = a.residual + base + i64(row) * a.ldResidual + h * 8;
                    u32 x = 0;
                    if (row < a.m && n < a.n) {
                        if constexpr (ALIGNED) x = *reinterpret_cast<u32 const*>(from);
                        else x = from[0].bits | (n + 1 < a.n ? u32(from[1].bits) << 16 : 0u);
                    }
                    add[j][h] = x;
                }
        }
#pragma unroll
        for (int j = 0; j < AHEAD; ++j)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                int const at = (first + j) * 4 + h * 2;
                float x0 = v[at] + bias[h], x1 = v[at + 1] + bias[h];
                if constexpr (!ACTIVATE_LAST) { x0 = activate(x0); x1 = activate(x1); }
                if constexpr (RESIDUAL) {
                    u32 const r = transposed(add[j][h]);
                    x0 += lowHalf(r);
                    x1 += highHalf(r);
                }
                if constexpr (ACTIVATE_LAST) { x0 = activate(x0); x1 = activate(x1); }
                u32 const out = transposed(packHalves(x0, x1));
                int const row = column0 + (first + j) * 8 + g, n = row0 + t * 2 + h * 8;
                if (row < a.m && n < a.n) {
                    f16* to = a.y + base + i64(row) * a.ldy + h * 8;
                    if constexpr (ALIGNED) *reinterpret_cast<u32*>(to) = out;
                    else {
                        to[0].bits = u16(out);
                        if (n + 1 < a.n) to[1].bits = u16(out >> 16);
                    }
                }
            }
    }
}
)";

constexpr char const* kSingleColumns = R"(
// Swapped: rows are y's columns. v[4 j ..] holds n = row0 + g, + 8 of m = column0 + 8 j + 2 (lane % 4) and the next;
// bias is that of those n. Eight lanes write 32 bytes of a row.
template <int N>
TW_INLINE void writeColumns(Output const& a, float (&v)[N], float const (&bias)[2], int row0, int column0, int batch, int lane)
{
    constexpr int BLOCKS_Q = N / 4, AHEAD = divisorUpTo(8, BLOCKS_Q); // residuals on their way at once
    int const n = row0 + lane / 4, m = column0 + lane % 4 * 2;
    i64 const base = i64(batch) * a.batchY + n;
#pragma unroll
    for (int first = 0; first < BLOCKS_Q; first += AHEAD) {
        float add[AHEAD][4];
        if constexpr (RESIDUAL) {
#pragma unroll
            for (int j = 0; j < AHEAD; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    int const row = m + (first + j) * 8 + e % 2, h = e / 2 * 8;
                    add[j][e] = row < a.m && n + h < a.n ? a.residual[base + i64(row) * a.ldResidual + h] : 0;
                }
        }
#pragma unroll
        for (int j = 0; j < AHEAD; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                float x = v[(first + j) * 4 + e] + bias[e / 2];
                if constexpr (!ACTIVATE_LAST) x = activate(x);
                if constexpr (RESIDUAL) x += add[j][e];
                if constexpr (ACTIVATE_LAST) x = activate(x);
                int const row = m + (first + j) * 8 + e % 2, h = e / 2 * 8;
                if (row < a.m && n + h < a.n) a.y[base + i64(row) * a.ldy + h] = x;
            }
    }
}
)";

} // namespace

std::string epilogueConstants(Epilogue const& e, int chunk)
{
    return activationText(e.activation) + "typedef " + (e.single ? "float" : "f16") +
           " Element;\nconstexpr int CHUNK = " + std::to_string(chunk) + ";\n" + flag("BIAS", e.bias) +
           flag("RESIDUAL", e.residual) + flag("ACTIVATE_LAST", e.activateLast) + flag("ALIGNED", e.aligned);
}

std::string rowsText(bool single)
{
    return std::string(kOutput) + kBiases + (single ? kSingleRows : kHalfRows);
}

std::string columnsText(bool single)
{
    return single ? kSingleColumns : kHalfColumns;
}

int chunkOf(int columns)
{
    return columns % 64 == 0 ? 64 : columns % 32 == 0 ? 32 : columns % 16 == 0 ? 16 : 8;
}

} // namespace tw::cuda
