// SPDX-License-Identifier: Apache-2.0
// A block has 16 rows: queries of all heads that share a head of keys, row r is query r % sq of their head r / sq. Warps take 16 keys at a time.
// The order of a product's terms is free, so that a thread's part of a fragment is what 16 bytes of a row of keys hold; and columns of values are
// dealt out in the same way.
// Keys and values in bytes become halves in registers; their scales are factors of scores and of the result. Of more than 128 elements queries
// stand in shared memory, and keys and values are loaded where they are used: registers hold the result.
// New rows, which the caches do not have yet, are read where they come from; blocks share the work of writing them.
//   int D, DV, WARPS, SPLITS, KEYS = 16; bool TABLE, PAGES, BYTES, APPENDS; what masks.cuh wants, and where APPENDS new_rows.cuh
#pragma once

#include "kernels/cuda/attention/new_rows.cuh"
#include "kernels/cuda/attention/spans.cuh"
#include "kernels/cuda/common/clusters.cuh"
#include "kernels/cuda/common/matrix.cuh"

namespace tw::cuda::attention_few_rows {

constexpr int ROWS = 16, THREADS = WARPS * 32;
constexpr float NONE = -3.4e38f;     // a top of nothing, which can be subtracted
constexpr int COLUMNS = DV / SPLITS; // of the result that a block leaves

TW_INLINE u32 joinedHalves(u32 a, u32 b, bool high)
{
    return __byte_perm(a, b, high ? 0x7632 : 0x5410);
}
// Four neighbours of a row of which COUNT parts were found, `step` floats apart, with their tops and weights, `stepEnds` apart; `end` gets
// those of all.
template <int COUNT>
TW_INLINE float4 joined(float2 const* ends, float const* at, int stepEnds, int step, float2& end)
{
    float2 found[COUNT];
    end = make_float2(NONE, 0);
#pragma unroll
    for (int n = 0; n < COUNT; ++n) {
        found[n] = ends[n * stepEnds];
        end.x = fmaxf(end.x, found[n].x);
    }
    float4 y = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int n = 0; n < COUNT; ++n) {
        float const factor = exp2Of(found[n].x - end.x);
        float4 const part = *reinterpret_cast<float4 const*>(at + n * step);
        end.y += found[n].y * factor;
        y.x += part.x * factor;
        y.y += part.y * factor;
        y.z += part.z * factor;
        y.w += part.w * factor;
    }
    return y;
}

// Brings the rows that a warp begins with into L2 while the kernel in front still runs, which may yet write them: not into L1. Lengths may not be
// what they will be: then these are others.
TW_INLINE void prefetch(Args const& a, int rank, int warp, int lane, int keyHead, int batch)
{
    constexpr int MOST_STEPS = 2;
    if constexpr (TABLE || PAGES)
        return;
    int const to = LENGTHS ? max(min(glanceAt(a.lengths + batch), a.sk), 0) : a.sk;
    int const from = WINDOW ? max(to - a.sq + 1 - a.window, 0) / 16 * 16 : 0;
    int const each = max(to - from + SPLITS * 16 - 1, 0) / (SPLITS * 16) * 16;
    int const begin = from + rank * each, end = min(begin + each, to);
    AttentionStrides const& stride = lane == 0 ? a.kStride : a.vStride;
    int const size = lane == 0 ? D : DV;
    auto const* const rows =
        reinterpret_cast<Key const*>(lane == 0 ? a.k : a.v) + batch * stride.batch + keyHead * stride.head;
    if (lane > 1 || stride.row != size || reinterpret_cast<u64>(rows) % 16 != 0)
        return;
#pragma unroll
    for (int i = 0; i < MOST_STEPS; ++i)
        if (int const key = begin + (i * WARPS + warp) * KEYS; key < end)
            prefetchToL2(rows + i64(key) * size, min(KEYS, end - key) * size * int(sizeof(Key)));
}

template <class All>
TW_INLINE void attend(All const& a)
{
    extern __shared__ __align__(16) u8 raw[];
    float* const sums = reinterpret_cast<float*>(raw); // [WARPS][ROWS][DV]
    float* const parts = sums + WARPS * ROWS * DV;     // [SPLITS][ROWS][COLUMNS], where there are blocks
    float* const behind = parts + (SPLITS > 1 ? ROWS * DV : 0);
    float2* const ends = reinterpret_cast<float2*>(behind);             // [WARPS][ROWS]: tops and weights
    float2* const partEnds = ends + WARPS * ROWS;                       // [SPLITS][ROWS]
    f16* const kept = reinterpret_cast<f16*>(partEnds + SPLITS * ROWS); // [ROWS][PITCH]: queries, where LARGE
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int const rank = SPLITS > 1 ? int(blockIdx.x) % SPLITS : 0, r0 = int(blockIdx.x) / SPLITS * ROWS;
    int const keyHead = blockIdx.y, batch = blockIdx.z, rows = a.headsPerKey * a.sq;
    releaseDependents();
    if constexpr (SPLITS > 1)
        clusterArrive();
    prefetch(a, rank, warp, lane, keyHead, batch);
    waitForPrevious();
    int const known = LENGTHS ? max(min(a.lengths[batch], a.sk), 0) : a.sk, shift = known - a.sq;
    int row[2], head[2]; // query, and head, of this thread's rows g and g + 8
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        int const r = min(r0 + g + h * 8, rows - 1);
        head[h] = keyHead * a.headsPerKey + r / a.sq;
        row[h] = r % a.sq;
    }
    Append<All> const append{a, batch, keyHead};
    // On their way before lengths are waited for.
    auto queryAt = [&](f16 const* q, int i, int e) {
        if constexpr (TURNS)
            return append.turned(q, i, e);
        else
            return loadUnit(q + e, true);
    };
    u32 queries[LARGE ? 2 : D / 16][4];
    auto setQueries = [&](int c, int h, Unit const& u) { // of 32 elements
        queries[2 * c][h] = u.v[0];
        queries[2 * c][h + 2] = u.v[1];
        queries[2 * c + 1][h] = u.v[2];
        queries[2 * c + 1][h + 2] = u.v[3];
    };
    if constexpr (LARGE) {
        for (int i = threadIdx.x; i < ROWS * (D / 8); i += THREADS) {
            int const of = i / (D / 8), at = i % (D / 8) * 8, r = min(r0 + of, rows - 1);
            f16 const* const q = a.q + batch * a.qStride.batch + (keyHead * a.headsPerKey + r / a.sq) * a.qStride.head +
                                 i64(r % a.sq) * a.qStride.row;
            *reinterpret_cast<Unit*>(kept + of * PITCH + at) = queryAt(q, r % a.sq, at);
        }
        __syncthreads();
    } else {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            f16 const* const q = a.q + batch * a.qStride.batch + head[h] * a.qStride.head + i64(row[h]) * a.qStride.row;
#pragma unroll
            for (int c = 0; c < D / 32; ++c)
                setQueries(c, h, queryAt(q, row[h], c * 32 + t * 8));
        }
    }
    // Queries of the tile: of one head they are neighbours.
    int const last = min(r0 + ROWS, rows) - 1;
    bool const ofOne = r0 / a.sq == last / a.sq;
    int const lowest = ofOne ? r0 % a.sq : 0, highest = ofOne ? last % a.sq : a.sq - 1;
    Span const span{lowest, highest + 1, WINDOW ? max(lowest + shift + 1 - a.window, 0) / 16 * 16 : 0, known, shift};
    int const to = CAUSAL ? min(known, highest + shift + 1) : known;
    int const each = max(to - span.from + SPLITS * 16 - 1, 0) / (SPLITS * 16) * 16;
    int const begin = span.from + rank * each, end = min(begin + each, to);

    int const image = PAGES ? 0 : batch; // of keys and values
    Key const* const k = reinterpret_cast<Key const*>(a.k) + image * a.kStride.batch + keyHead * a.kStride.head;
    Key const* const v = reinterpret_cast<Key const*>(a.v) + image * a.vStride.batch + keyHead * a.vStride.head;
    // The block of the 16 keys from key0 on, which are all that a warp takes at a time; it is looked up a step ahead.
    auto pageAt = [&](int key0) {
        if constexpr (!PAGES)
            return 0;
        return key0 < end ? max(min(a.pages[i64(batch) * (a.sk / KEYS) + key0 / KEYS], a.blocks - 1), 0) : 0;
    };
    auto rowAt = [&](int key, int key0, int page, AttentionStrides const& s) {
        return PAGES ? page * s.batch + i64(key - key0) * s.row : i64(key) * s.row;
    };
    float const keyScale = BYTES ? a.keyScales[keyHead] : 1, valueScale = BYTES ? a.valueScales[keyHead] : 1;
    float const scale = a.scale * keyScale, capIn = a.capIn * keyScale;
    RawUnit keys[2][LARGE ? 1 : D / 32];
    RawPart values[4][LARGE ? 1 : DV / (8 * WIDE)];
    // Elements from this image to the one whose key it is; behind the last key nothing is read.
    auto imageAt = [&](int key, AttentionStrides const& s) {
        if constexpr (!TABLE)
            return i64(0);
        if (key >= end)
            return i64(0);
        int const own = batch % a.sharing;
        return (max(min(a.table[i64(batch) * a.sk + key], a.sharing - 1), 0) - own) * s.batch;
    };
    // isNew: some of the warp's keys may be.
    auto keyAt = [&](int key0, int page, int n, int c, bool isNew) {
        int const key = key0 + n * 8 + g;
        if constexpr (APPENDS)
            if (isNew && key < end && append.has(key))
                return append.key(key - append.first, c * 32 + t * 8);
        return loadRaw<RawUnit>(k + rowAt(key, key0, page, a.kStride) + imageAt(key, a.kStride) + c * 32 + t * 8,
                                key < end);
    };
    auto valueAt = [&](int key0, int page, int n, int c, bool isNew) {
        int const key = key0 + n / 2 * 8 + t * 2 + n % 2;
        if constexpr (APPENDS)
            if (isNew && key < end && append.has(key))
                return loadRaw<RawPart>(append.valueRow(key - append.first) + c * 8 * WIDE + g * WIDE, true);
        return loadRaw<RawPart>(
            v + rowAt(key, key0, page, a.vStride) + imageAt(key, a.vStride) + c * 8 * WIDE + g * WIDE, key < end);
    };
    // Each in two texts, so that a warp without new keys does not ask for each key.
    auto loadKeysOf = [&](int key0, int page, bool isNew) {
#pragma unroll
        for (int n = 0; n < 2; ++n)
#pragma unroll
            for (int c = 0; c < D / 32; ++c)
                keys[n][c] = keyAt(key0, page, n, c, isNew);
    };
    auto loadValuesOf = [&](int key0, int page, bool isNew) {
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
            for (int c = 0; c < DV / (8 * WIDE); ++c)
                values[n][c] = valueAt(key0, page, n, c, isNew);
    };
    auto loadKeys = [&](int key0, int page) {
        if constexpr (!LARGE) {
            if (append.hasAny(key0))
                loadKeysOf(key0, page, true);
            else
                loadKeysOf(key0, page, false);
        }
    };
    auto loadValues = [&](int key0, int page) {
        if constexpr (!LARGE) {
            if (append.hasAny(key0))
                loadValuesOf(key0, page, true);
            else
                loadValuesOf(key0, page, false);
        }
    };
    int key0 = begin + warp * KEYS, page = pageAt(key0), next = pageAt(key0 + WARPS * KEYS);
    if (key0 < end)
        loadKeys(key0, page);
    // The first of the units that this thread writes is on its way before keys are waited for.
    constexpr int WRITERS = SPLITS * THREADS;
    int const writes = r0 == 0 ? append.units() : 0; // of all tiles of queries the first one
    int unit = rank * THREADS + threadIdx.x;
    RawUnit written = {};
    if constexpr (APPENDS)
        if (unit < writes)
            written = append.fetch(unit);
    float slope[2] = {};
    if constexpr (SLOPES)
        for (int h = 0; h < 2; ++h)
            slope[h] = a.slopes[head[h]] * LOG2E;
    float out[DV / 8][4] = {}, top[2] = {NONE, NONE}, sum[2] = {};
    for (; key0 < end; key0 += WARPS * KEYS, page = next, next = pageAt(key0 + WARPS * KEYS)) {
        loadValues(key0, page);
        float s[2][4] = {};
        auto scoresOf = [&](int n, int c, RawUnit const& raw) {
            Unit const key = widened<Unit>(raw);
            mma(s[n], queries[2 * c], key.v[0], key.v[1]);
            mma(s[n], queries[2 * c + 1], key.v[2], key.v[3]);
        };
        if constexpr (LARGE) {
#pragma unroll 4
            for (int c = 0; c < D / 32; ++c) {
                for (int h = 0; h < 2; ++h)
                    setQueries(0, h, *reinterpret_cast<Unit const*>(kept + (g + h * 8) * PITCH + c * 32 + t * 8));
                for (int n = 0; n < 2; ++n)
                    scoresOf(n, 0, keyAt(key0, page, n, c, append.hasAny(key0)));
            }
        } else {
#pragma unroll
            for (int n = 0; n < 2; ++n)
#pragma unroll
                for (int c = 0; c < D / 32; ++c)
                    scoresOf(n, c, keys[n][c]);
        }
        if (key0 + WARPS * KEYS < end)
            loadKeys(key0 + WARPS * KEYS, next);
        bool const edge = hidesSome<0>(a, span, key0, KEYS) || key0 + KEYS > end || CAUSAL || WINDOW;
#pragma unroll
        for (int n = 0; n < 2; ++n)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                int const h = e / 2, key = key0 + n * 8 + t * 2 + e % 2;
                float x = SOFTCAP ? tanhByExponent(s[n][e] * capIn) * a.capOut : s[n][e] * scale;
                if constexpr (KEEP)
                    if (key < a.sk && (a.keep[batch * a.keepStride.batch + head[h] * a.keepStride.head +
                                              row[h] * a.keepStride.row + key] == 0) != INVERTED)
                        x = a.fill;
                if constexpr (MASK)
                    if (key < a.sk)
                        x += addOf(valueOf(a.mask[batch * a.maskStride.batch + head[h] * a.maskStride.head +
                                                  row[h] * a.maskStride.row + key]));
                if constexpr (SLOPES)
                    x += slope[h] * float(key - row[h] - shift);
                if (edge && (key >= end || hides(a, span, row[h], key)))
                    x = -__int_as_float(0x7f800000);
                s[n][e] = x;
            }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float high = fmaxf(fmaxf(s[0][h * 2], s[0][h * 2 + 1]), fmaxf(s[1][h * 2], s[1][h * 2 + 1]));
            high = fmaxf(top[h], quadMax(high)); // never -infinity
            float const shrink = exp2Of(top[h] - high);
            top[h] = high;
            float part = 0;
#pragma unroll
            for (int n = 0; n < 2; ++n)
#pragma unroll
                for (int e = 0; e < 2; ++e)
                    part += s[n][h * 2 + e] = exp2Of(s[n][h * 2 + e] - high);
            sum[h] = sum[h] * shrink + part;
#pragma unroll
            for (int d = 0; d < DV / 8; ++d) {
                out[d][h * 2] *= shrink;
                out[d][h * 2 + 1] *= shrink;
            }
        }
        u32 const p[4] = {packHalves(s[0][0], s[0][1]), packHalves(s[0][2], s[0][3]), packHalves(s[1][0], s[1][1]),
                          packHalves(s[1][2], s[1][3])};
#pragma unroll
        for (int c = 0; c < DV / (8 * WIDE); ++c) {
            Part of[4];
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                if constexpr (LARGE)
                    of[n] = widened<Part>(valueAt(key0, page, n, c, append.hasAny(key0)));
                else
                    of[n] = widened<Part>(values[n][c]);
            }
#pragma unroll
            for (int j = 0; j < WIDE; ++j)
                mma(out[c * WIDE + j], p, joinedHalves(of[0].v[j / 2], of[1].v[j / 2], j % 2),
                    joinedHalves(of[2].v[j / 2], of[3].v[j / 2], j % 2));
        }
    }
    if constexpr (APPENDS)
        for (; unit < writes; unit += WRITERS) {
            append.put(unit, written);
            if (unit + WRITERS < writes)
                written = append.fetch(unit + WRITERS);
        }
    __syncwarp();                   // barriers want all lanes at once
    int const real = last + 1 - r0; // rows
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float const all = quadSum(sum[h]);
        int const r = g + h * 8, at = warp * ROWS + r;
        if (r >= real)
            continue;
        if (t == 0)
            ends[at] = make_float2(top[h], all);
#pragma unroll
        for (int c = 0; c < DV / (8 * WIDE); ++c)
#pragma unroll
            for (int e = 0; e < 2; ++e)
#pragma unroll
                for (int j = 0; j < WIDE; j += 4) {
                    int const d = c * WIDE + j, x = h * 2 + e;
                    *reinterpret_cast<float4*>(sums + at * DV + c * 8 * WIDE + (t * 2 + e) * WIDE + j) =
                        make_float4(out[d][x], out[d + 1][x], out[d + 2][x], out[d + 3][x]);
                }
    }
    auto leave = [&](int r, int column, float4 const& y, float2 const& end) {
        int const of = (r0 + r) % a.sq, ofHead = keyHead * a.headsPerKey + (r0 + r) / a.sq;
        float const factor = seesNone(a, span, of) ? 0 : valueScale / withSink(a, ofHead, end.y, end.x);
        f16* const to = a.y + batch * a.yStride.batch + ofHead * a.yStride.head + i64(of) * a.yStride.row + column;
        bool const none = factor == 0; // of nothing, whatever it is
        *reinterpret_cast<uint2*>(to) = make_uint2(packHalves(none ? 0 : y.x * factor, none ? 0 : y.y * factor),
                                                   packHalves(none ? 0 : y.z * factor, none ? 0 : y.w * factor));
    };
    if constexpr (SPLITS > 1)
        clusterWait(); // all have begun
    __syncthreads();
    // A row's numbers of all warps go to the blocks of the cluster, which share the columns of the result.
    for (int i = threadIdx.x; i < real * (DV / 4); i += THREADS) {
        int const r = i / (DV / 4), column = i % (DV / 4) * 4;
        float2 end;
        float4 const y = joined<WARPS>(ends + r, sums + r * DV + column, ROWS, ROWS * DV, end);
        if constexpr (SPLITS == 1) {
            leave(r, column, y, end);
        } else {
            int const at = rank * ROWS + r;
            storeCluster(addressAt(sharedAddress(parts + at * COLUMNS + column % COLUMNS), column / COLUMNS), y.x, y.y,
                         y.z, y.w);
            if (column / 4 < SPLITS)
                storeCluster(addressAt(sharedAddress(partEnds + at), column / 4), end.x, end.y);
        }
    }
    if constexpr (SPLITS > 1) {
        __syncwarp();
        clusterSync();
        for (int i = threadIdx.x; i < real * (COLUMNS / 4); i += THREADS) {
            int const r = i / (COLUMNS / 4), column = i % (COLUMNS / 4) * 4;
            float2 end;
            float4 const y = joined<SPLITS>(partEnds + r, parts + r * COLUMNS + column, ROWS, ROWS * COLUMNS, end);
            leave(r, rank * COLUMNS + column, y, end);
        }
    }
}

TW_KERNEL __launch_bounds__(THREADS) attention(const __grid_constant__ Kinds<APPENDS>::All a)
{
    attend(a);
}

} // namespace tw::cuda::attention_few_rows
