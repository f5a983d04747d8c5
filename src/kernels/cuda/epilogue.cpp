// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/epilogue.h"

#include "kernels/cuda/hopper.h"

namespace tw::cuda {

namespace {

constexpr char const* kRows = R"(
struct Output { f16* y; float const* bias; f16 const* residual; i64 ldy, batchY; i32 m, n; };
// Writes 16 rows and 2 N columns of a warp's sums: v[4 j ..] holds rows g and g + 8 (g = lane / 4) of columns
// 8 j + 2 (lane % 4) and the next. `stage`: 16 * CHUNK halves of the warp's own.
template <int N> TW_INLINE void writeRows(Output const& a, float (&v)[N], int row0, int column0, int batch, u32 stage, int lane)
{
    constexpr int CHUNKS = N * 2 / CHUNK, UNITS = CHUNK / 8, PER_LANE = (16 * UNITS + 31) / 32;
    int const g = lane / 4, t = lane % 4;
    i64 const base = i64(batch) * a.batchY;
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        int const c0 = column0 + chunk * CHUNK;
        if constexpr (RESIDUAL) {
#pragma unroll
            for (int i = 0; i < PER_LANE; ++i) {
                int const at = lane + i * 32, r = at / UNITS, u = at % UNITS, row = row0 + r, column = c0 + u * 8;
                if (16 * UNITS >= 32 || r < 16) {
                    Unit x = {};
                    f16 const* from = a.residual + base + i64(row) * a.ldy + column;
                    if (row < a.m && column < a.n) {
                        if constexpr (ALIGNED) x = *reinterpret_cast<Unit const*>(from);
                        else {
#pragma unroll
                            for (int e = 0; e < 8; ++e)
                                if (column + e < a.n) x.v[e / 2] |= u32(from[e].bits) << (e % 2 * 16);
                        }
                    }
                    storeShared(stage + (r * UNITS + (u ^ (r & (UNITS - 1)))) * 16, x);
                }
            }
            __syncwarp();
        }
#pragma unroll
        for (int u = 0; u < UNITS; ++u) {
            int const j = chunk * UNITS + u, column = c0 + u * 8 + t * 2;
            float b0 = 0, b1 = 0;
            if constexpr (BIAS) {
                b0 = column < a.n ? a.bias[column] : 0;
                b1 = column + 1 < a.n ? a.bias[column + 1] : 0;
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
