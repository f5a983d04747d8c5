// SPDX-License-Identifier: Apache-2.0
// mma.sync of i8 with exact sums (sm_80): factors from shared memory, and the way of sums to y. After
// integerEndSource().
//   bool ALIGNED
//
// Of 16 rows of a factor mma.sync takes 8 as its first and 8 as its second half; here these are the even and the odd
// ones. Then a thread has four neighbouring columns of y, and bytes that lie [k, rows] come apart as pairs of rows:
// ldmatrix transposes pairs of bytes.
#pragma once

#include "kernels/cuda/common/integer_fours.cuh"
#include "kernels/cuda/common/matrix.cuh"

namespace tw::cuda {

// d [16, 8] += a [16, 32] b [32, 8]
TW_INLINE void mma(i32 (&d)[4], u32 const (&a)[4], u32 b0, u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Where a lane finds its part of 16 rows and 32 bytes of k.
//   along k:   stored rows are rows; 16 bytes of k are a unit
//   otherwise: stored rows are k; 16 rows are a unit
TW_INLINE int factorRow(int lane)
{
    return lane % 8 * 2 + lane / 8 % 2;
}
TW_INLINE int factorStep(int lane)
{
    return lane % 8 / 2 * 4 + lane % 2 + lane / 8 % 2 * 2 + lane / 16 * 16;
}
// Even and odd rows of the first 16 bytes of k, then of the others: a whole first factor, two second ones (0 and 2, 1
// and 3).
template <bool ALONG_K>
TW_INLINE void loadFactors(u32 (&r)[4], u32 at)
{
    if constexpr (ALONG_K) {
        loadMatrix4(r, at);
    } else {
        u32 pairs[4];
        loadMatrix4Transposed(pairs, at);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            r[half * 2] = __byte_perm(pairs[half * 2], pairs[half * 2 + 1], 0x6420);
            r[half * 2 + 1] = __byte_perm(pairs[half * 2], pairs[half * 2 + 1], 0x7531);
        }
    }
}
// Sums of 16 rows and 16 columns: of even columns, of odd ones.
struct Sums16
{
    i32 d[2][4];
    TW_INLINE void clear()
    {
#pragma unroll
        for (int e = 0; e < 4; ++e)
            d[0][e] = d[1][e] = 0;
    }
    TW_INLINE void add(u32 const (&a)[4], u32 const (&b)[4])
    {
        mma(d[0], a, b[0], b[2]);
        mma(d[1], a, b[1], b[3]);
    }
    // Of row 2 (lane / 4) + h, columns 4 (lane % 4) and the next.
    TW_INLINE void row(i32 (&v)[4], int h) const
    {
        v[0] = d[0][h * 2];
        v[1] = d[1][h * 2];
        v[2] = d[0][h * 2 + 1];
        v[3] = d[1][h * 2 + 1];
    }
};

// The ends of GROUPS times 16 columns, GROUPS 1 or 2: a thread has columns 4 (lane % 4) and the next of each 16. Where
// ALIGNED, rows come in steps of 8 columns.
template <int GROUPS>
struct EndColumns
{
    float scale[GROUPS][4], bias[GROUPS][4];

    // `left`: columns that have a scale, from `channel` on.
    TW_INLINE void take(IntegerEndArgs const& e, int channel, int left, int lane)
    {
#pragma unroll
        for (int g = 0; g < GROUPS; ++g)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                int const c = g * 16 + lane % 4 * 4 + i;
                scale[g][i] = c < left ? endScale(e, channel + c) : 0;
                bias[g][i] = c < left ? endBias(e, channel + c) : 0;
            }
    }
    // The same from shared memory, where the first of these columns has its scale, and its bias.
    TW_INLINE void takeShared(u32 scales, u32 biases, int lane)
    {
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) {
            u32 const at = (g * 16 + lane % 4 * 4) * 4;
            Unit const s = loadSharedUnit(scales + at), b = END_BIAS ? loadSharedUnit(biases + at) : Unit{};
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                scale[g][i] = __uint_as_float(s.v[i]);
                bias[g][i] = __uint_as_float(b.v[i]);
            }
        }
    }
    // Of one row, all lanes at once. y and residual: the first of these columns; left <= 0: there is no such row.
    TW_INLINE void put(i32 const (&sum)[GROUPS][4], EndNumbers const& numbers, i8 const* table, EndElement* y,
                       EndResidual const* residual, int left, int lane) const
    {
        int const t = lane % 4 * 4;
        float v[GROUPS][4];
#pragma unroll
        for (int g = 0; g < GROUPS; ++g)
            endFour(v[g], sum[g], scale[g], bias[g], numbers, residual + g * 16 + t, left - g * 16 - t);
        if constexpr (ALIGNED && GROUPS == 2 && sizeof(EndElement) == 1) {
            // Lanes side by side change words, so that 32 bytes of a row leave together.
            u32 const word[2] = {packFour(v[0], table), packFour(v[1], table)};
            bool const odd = lane % 2 != 0;
            u32 const other = __shfl_xor_sync(0xffffffffu, odd ? word[0] : word[1], 1);
            int const c = odd ? 16 + t - 4 : t;
            if (c < left)
                *reinterpret_cast<uint2*>(y + c) = odd ? make_uint2(other, word[1]) : make_uint2(word[0], other);
        } else {
#pragma unroll
            for (int g = 0; g < GROUPS; ++g)
                putFour(y + g * 16 + t, v[g], table, left - g * 16 - t);
        }
    }
};

} // namespace tw::cuda
