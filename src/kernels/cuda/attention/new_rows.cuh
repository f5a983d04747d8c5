// SPDX-License-Identifier: Apache-2.0
// Rows that are not in the caches yet, as few_rows.cuh reads and writes them.
//   int D, ROTARY (elements that are turned; 0: none); bool INTERLEAVED, COSINES_BY_PAIR, SINES_BY_PAIR
#pragma once

#include "kernels/cuda/attention/few_rows_params.h"
#include "kernels/cuda/attention/few_rows_units.cuh"

namespace tw::cuda::attention_few_rows {

TW_INLINE Unit unitAt(f16 const* at)
{
    return *reinterpret_cast<Unit const*>(at);
}
// The factors of 8 neighbours from e on.
template <bool BY_PAIR>
TW_INLINE Unit factorsAt(f16 const* row, int e)
{
    if constexpr (!BY_PAIR) {
        return unitAt(row + e);
    } else if constexpr (INTERLEAVED) { // each one twice
        uint2 const four = *reinterpret_cast<uint2 const*>(row + e / 2);
        return {{__byte_perm(four.x, 0, 0x1010), __byte_perm(four.x, 0, 0x3232), __byte_perm(four.y, 0, 0x1010),
                 __byte_perm(four.y, 0, 0x3232)}};
    } else {
        return unitAt(row + (e < ROTARY / 2 ? e : e - ROTARY / 2));
    }
}
// 8 neighbours of a row from e on, turned; cosines and sines: those of the row.
TW_INLINE Unit turnedAt(f16 const* row, int e, f16 const* cosines, f16 const* sines)
{
    Unit const own = unitAt(row + e);
    if constexpr (ROTARY < D)
        if (e >= ROTARY)
            return own;
    Unit const c = factorsAt<COSINES_BY_PAIR>(cosines, e), s = factorsAt<SINES_BY_PAIR>(sines, e);
    bool const isFirst = e < ROTARY / 2;
    Unit const other = INTERLEAVED ? own : unitAt(isFirst ? row + e + ROTARY / 2 : row + e - ROTARY / 2);
    Unit y;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        float const low = lowHalf(own.v[i]), high = highHalf(own.v[i]);
        float const lowOther = INTERLEAVED ? -high : isFirst ? -lowHalf(other.v[i]) : lowHalf(other.v[i]);
        float const highOther = INTERLEAVED ? low : isFirst ? -highHalf(other.v[i]) : highHalf(other.v[i]);
        y.v[i] = packHalves(low * lowHalf(c.v[i]) + lowOther * lowHalf(s.v[i]),
                            high * highHalf(c.v[i]) + highOther * highHalf(s.v[i]));
    }
    return y;
}

template <bool APPENDING>
struct Kinds
{
    using All = Args;
};
template <>
struct Kinds<true>
{
    using All = AppendingArgsOf<Key, Element>;
};

// The rows that a block writes into the caches: 8 elements a thread, of keys and behind them of values.
template <class All>
struct Append
{
    static constexpr int UNITS = (D + DV) / 8; // of a row
    All const& a;
    int batch, keyHead, first; // first: where new rows begin

    TW_INLINE Append(All const& all, int image, int head) : a(all), batch(image), keyHead(head)
    {
        if constexpr (APPENDS)
            first = a.fresh.index[batch];
    }
    TW_INLINE int units() const
    {
        if constexpr (APPENDS)
            return a.fresh.rows * UNITS;
        return 0;
    }
    TW_INLINE bool has(int key) const { return u32(key) - u32(first) < u32(a.fresh.rows); }
    TW_INLINE bool hasAny(int key0) const // of KEYS
    {
        if constexpr (APPENDS)
            return u32(key0) + u32(KEYS - 1) - u32(first) < u32(a.fresh.rows + KEYS - 1);
        return false;
    }
    TW_INLINE Key const* keyRow(int i) const
    {
        return a.fresh.k + batch * a.fresh.kStride.batch + keyHead * a.fresh.kStride.head + i * a.fresh.kStride.row;
    }
    TW_INLINE Key const* valueRow(int i) const
    {
        return a.fresh.v + batch * a.fresh.vStride.batch + keyHead * a.fresh.vStride.head + i * a.fresh.vStride.row;
    }
    TW_INLINE Unit turned(f16 const* row, int i, int e) const
    {
        return turnedAt(row, e, a.fresh.cosines + batch * a.fresh.cosineBatch + i * a.fresh.cosineRow,
                        a.fresh.sines + batch * a.fresh.sineBatch + i * a.fresh.sineRow);
    }
    TW_INLINE RawUnit key(int i, int e) const
    {
        if constexpr (TURNS) {
            Unit const u = turned(reinterpret_cast<f16 const*>(keyRow(i)), i, e);
            return {{u.v[0], u.v[1], u.v[2], u.v[3]}};
        } else {
            return loadRaw<RawUnit>(keyRow(i) + e, true);
        }
    }
    TW_INLINE RawUnit fetch(int unit) const
    {
        int const i = unit / UNITS, e = unit % UNITS * 8;
        return e < D ? key(i, e) : loadRaw<RawUnit>(valueRow(i) + e - D, true);
    }
    TW_INLINE void put(int unit, RawUnit const& what) const
    {
        u32 const at = u32(first) + u32(unit / UNITS);
        if (at >= u32(a.sk))
            return;
        int const e = unit % UNITS * 8;
        bool const isKey = e < D;
        AttentionStrides const& to = isKey ? a.kStride : a.vStride;
        Key const* const cache = reinterpret_cast<Key const*>(isKey ? a.k : a.v);
        auto* const y =
            const_cast<Key*>(cache + batch * to.batch + keyHead * to.head + at * to.row + (isKey ? e : e - D));
        *reinterpret_cast<RawUnit*>(y) = what;
    }
};

} // namespace tw::cuda::attention_few_rows
