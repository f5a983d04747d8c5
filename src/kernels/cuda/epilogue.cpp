// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/epilogue.h"

#include "kernels/cuda/hopper.h"

namespace tw::cuda {

namespace {

constexpr char const* kRows = R"(
struct Output { f16* y; float const* bias; f16 const* residual; i64 ldy, batchY, ldResidual; i32 m, n; };
constexpr int UNITS = CHUNK / 8, PER_LANE = (16 * UNITS + 31) / 32; // 16 bytes each, of 16 rows of a chunk
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
#pragma unroll
        for (int i = 0; i < PER_LANE; ++i) {
            int const at = lane + i * 32, r = at / UNITS, u = at % UNITS, row = row0 + r, column = c0 + u * 8;
            if ((16 * UNITS >= 32 || r < 16) && row < a.m && column < a.n) {
                Unit const x = loadSharedUnit(stage + (r * UNITS + (u ^ (r & (UNITS - 1)))) * 16);
                f16* to = a.y + base + i64(row) * a.ldy + column;
                if constexpr (ALIGNED) *reinterpret_cast<Unit*>(to) = x;
                else {
#pragma unroll
                    for (int e = 0; e < 8; ++e)
                        if (column + e < a.n) to[e].bits = u16(x.v[e / 2] >> (e % 2 * 16));
                }
            }
        }
        __syncwarp();
    }
}
)";

std::string flag(char const* name, bool value)
{
    return "constexpr bool " + std::string(name) + " = " + (value ? "true" : "false") + ";\n";
}

} // namespace

std::string epilogueConstants(Epilogue const& e, int chunk)
{
    return activationText(e.activation) + "constexpr int CHUNK = " + std::to_string(chunk) + ";\n" +
           flag("BIAS", e.bias) + flag("RESIDUAL", e.residual) + flag("ACTIVATE_LAST", e.activateLast) +
           flag("ALIGNED", e.aligned);
}

std::string rowsText()
{
    return kRows;
}

int chunkOf(int columns)
{
    return columns % 64 == 0 ? 64 : columns % 32 == 0 ? 32 : columns % 16 == 0 ? 16 : 8;
}

} // namespace tw::cuda
