// SPDX-License-Identifier: Apache-2.0
// A block has 16 rows: queries of all heads that share a head of keys, row r is query r % sq of their head r / sq. Warps take 16 keys at a time.
// The order of a product's terms is free, so that a thread's part of a fragment is what 16 bytes of a row of keys hold; and columns of values are
// dealt out in the same way.
// Keys and values in bytes become halves in registers; their scales are factors of scores and of the result. Of more than 128 elements queries
// stand in shared memory, and keys and values are loaded where they are used: registers hold the result.
//   int D, DV, WARPS, SPLITS, KEYS = 16; bool TABLE, PAGES, BYTES; what masks.cuh wants
#pragma once

#include "kernels/cuda/attention/masks.cuh"
#include "kernels/cuda/attention/spans.cuh"
#include "kernels/cuda/common/clusters.cuh"
#include "kernels/cuda/common/matrix.cuh"

namespace tw::cuda::attention_few_rows {

constexpr int ROWS = 16, THREADS = WARPS * 32;
constexpr int WIDE = DV % 64 == 0 ? 8 : 4; // neighbouring columns of values that a thread has
constexpr float NONE = -3.4e38f;           // a top of nothing, which can be subtracted

constexpr bool LARGE = D > 128 || DV > 128;
constexpr int PITCH = D + 8; // of queries in shared memory
using Key = ByteOrHalf<BYTES>;

// 8 and WIDE neighbours as they lie in memory.
struct RawUnit
{
    u32 v[BYTES ? 2 : 4];
};
struct RawPart
{
    u32 v[BYTES ? WIDE / 4 : WIDE / 2];
};
struct Part // of a row of values
{
    u32 v[WIDE / 2];
};
TW_INLINE Unit loadUnit(f16 const* at, bool valid)
{
    return valid ? *reinterpret_cast<Unit const*>(at) : Unit{};
}
template <class Raw>
TW_INLINE Raw loadRaw(Key const* at, bool valid)
{
    Raw raw = {};
    if (!valid)
        return raw;
    if constexpr (sizeof(Raw) == 16) {
        Unit const u = *reinterpret_cast<Unit const*>(at);
        for (int i = 0; i < 4; ++i)
            raw.v[i] = u.v[i];
    } else if constexpr (sizeof(Raw) == 8) {
        uint2 const u = *reinterpret_cast<uint2 const*>(at);
        raw.v[0] = u.x;
        raw.v[1] = u.y;
    } else {
        raw.v[0] = *reinterpret_cast<u32 const*>(at);
    }
    return raw;
}
// Two halves of two bytes whose signs are turned: 0x6400 + u is 1024 + u.
TW_INLINE u32 halvesOf(u32 bytes, u32 which)
{
    u32 y;
    asm("sub.f16x2 %0, %1, %2;" : "=r"(y) : "r"(__byte_perm(bytes, 0x64646464, which)), "r"(0x64806480));
    return y;
}
template <class Wide, class Raw>
TW_INLINE Wide widened(Raw const& raw)
{
    Wide w;
    constexpr int COUNT = sizeof(Raw) / 4;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        if constexpr (BYTES) {
            w.v[2 * i] = halvesOf(raw.v[i] ^ 0x80808080, 0x4140);
            w.v[2 * i + 1] = halvesOf(raw.v[i] ^ 0x80808080, 0x4342);
        } else {
            w.v[i] = raw.v[i];
        }
    }
    return w;
}
TW_INLINE u32 joinedHalves(u32 a, u32 b, bool high)
{
    return __byte_perm(a, b, high ? 0x7632 : 0x5410);
}
TW_INLINE float loadCluster(u32 at)
{
    float v;
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(at) : "memory");
    return v;
}

TW_KERNEL __launch_bounds__(THREADS) attention(const __grid_constant__ Args a)
{
    extern __shared__ __align__(16) u8 raw[];
    float* const sums = reinterpret_cast<float*>(raw);           // [WARPS][ROWS][DV]
    float* const tops = sums + WARPS * ROWS * DV;                // [WARPS][ROWS]
    float* const weights = tops + WARPS * ROWS;                  // the same
    float* const joined = weights + WARPS * ROWS;                // [2][ROWS]: the block's tops and weights
    f16* const kept = reinterpret_cast<f16*>(joined + 2 * ROWS); // [ROWS][PITCH]: queries, where LARGE
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int const rank = SPLITS > 1 ? int(blockIdx.x) % SPLITS : 0, r0 = int(blockIdx.x) / SPLITS * ROWS;
    int const keyHead = blockIdx.y, batch = blockIdx.z, rows = a.headsPerKey * a.sq;
    releaseDependents();
    waitForPrevious();
    int const known = LENGTHS ? max(min(a.lengths[batch], a.sk), 0) : a.sk, shift = known - a.sq;
    int row[2], head[2]; // query, and head, of this thread's rows g and g + 8
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        int const r = min(r0 + g + h * 8, rows - 1);
        head[h] = keyHead * a.headsPerKey + r / a.sq;
        row[h] = r % a.sq;
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
    auto keyAt = [&](int key0, int page, int n, int c) {
        int const key = key0 + n * 8 + g;
        return loadRaw<RawUnit>(k + rowAt(key, key0, page, a.kStride) + imageAt(key, a.kStride) + c * 32 + t * 8,
                                key < end);
    };
    auto valueAt = [&](int key0, int page, int n, int c) {
        int const key = key0 + n / 2 * 8 + t * 2 + n % 2;
        return loadRaw<RawPart>(
            v + rowAt(key, key0, page, a.vStride) + imageAt(key, a.vStride) + c * 8 * WIDE + g * WIDE, key < end);
    };
    auto loadKeys = [&](int key0, int page) {
        if constexpr (!LARGE)
#pragma unroll
            for (int n = 0; n < 2; ++n)
#pragma unroll
                for (int c = 0; c < D / 32; ++c)
                    keys[n][c] = keyAt(key0, page, n, c);
    };
    auto loadValues = [&](int key0, int page) {
        if constexpr (!LARGE)
#pragma unroll
            for (int n = 0; n < 4; ++n)
#pragma unroll
                for (int c = 0; c < DV / (8 * WIDE); ++c)
                    values[n][c] = valueAt(key0, page, n, c);
    };
    int key0 = begin + warp * KEYS, page = pageAt(key0), next = pageAt(key0 + WARPS * KEYS);
    if (key0 < end)
        loadKeys(key0, page);
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
            *reinterpret_cast<Unit*>(kept + of * PITCH + at) = loadUnit(q + at, true);
        }
        __syncthreads();
    } else {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            f16 const* const q = a.q + batch * a.qStride.batch + head[h] * a.qStride.head + i64(row[h]) * a.qStride.row;
#pragma unroll
            for (int c = 0; c < D / 32; ++c)
                setQueries(c, h, loadUnit(q + c * 32 + t * 8, true));
        }
    }
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
                    scoresOf(n, 0, keyAt(key0, page, n, c));
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
                    of[n] = widened<Part>(valueAt(key0, page, n, c));
                else
                    of[n] = widened<Part>(values[n][c]);
            }
#pragma unroll
            for (int j = 0; j < WIDE; ++j)
                mma(out[c * WIDE + j], p, joinedHalves(of[0].v[j / 2], of[1].v[j / 2], j % 2),
                    joinedHalves(of[2].v[j / 2], of[3].v[j / 2], j % 2));
        }
    }
    // A row's numbers of all warps, then of all blocks.
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float const all = quadSum(sum[h]);
        int const at = warp * ROWS + g + h * 8;
        if (t == 0) {
            tops[at] = top[h];
            weights[at] = all;
        }
#pragma unroll
        for (int d = 0; d < DV / 8; ++d)
#pragma unroll
            for (int e = 0; e < 2; ++e)
                sums[at * DV + d / WIDE * 8 * WIDE + (t * 2 + e) * WIDE + d % WIDE] = out[d][h * 2 + e];
    }
    __syncthreads();
    int const real = last + 1 - r0; // rows
    if constexpr (WARPS > 1 || SPLITS > 1) {
        for (int i = threadIdx.x; i < real * DV; i += THREADS) {
            int const r = i / DV;
            float high = NONE, all = 0, y = 0;
#pragma unroll
            for (int w = 0; w < WARPS; ++w)
                high = fmaxf(high, tops[w * ROWS + r]);
#pragma unroll
            for (int w = 0; w < WARPS; ++w) {
                float const factor = exp2Of(tops[w * ROWS + r] - high);
                all += weights[w * ROWS + r] * factor;
                y += sums[w * ROWS * DV + i] * factor;
            }
            sums[i] = y;
            if (i % DV == 0) {
                joined[r] = high;
                joined[ROWS + r] = all;
            }
        }
    } else {
        for (int i = threadIdx.x; i < 2 * ROWS; i += THREADS)
            joined[i] = tops[i]; // weights lie behind them
    }
    __syncwarp(); // the barrier wants all lanes at once
    if constexpr (SPLITS > 1)
        clusterSync();
    else
        __syncthreads();
    u32 const sumsAt = sharedAddress(sums), joinedAt = sharedAddress(joined);
    for (int i = rank * THREADS + threadIdx.x; i < real * DV; i += SPLITS * THREADS) {
        int const r = i / DV, of = (r0 + r) % a.sq, ofHead = keyHead * a.headsPerKey + (r0 + r) / a.sq;
        float high = NONE, all = 0, y = 0;
        if constexpr (SPLITS > 1) {
            float highs[SPLITS];
#pragma unroll
            for (int b = 0; b < SPLITS; ++b)
                high = fmaxf(high, highs[b] = loadCluster(addressAt(joinedAt + r * 4, b)));
#pragma unroll
            for (int b = 0; b < SPLITS; ++b) {
                float const factor = exp2Of(highs[b] - high);
                all += loadCluster(addressAt(joinedAt + (ROWS + r) * 4, b)) * factor;
                y += loadCluster(addressAt(sumsAt + i * 4, b)) * factor;
            }
        } else {
            high = joined[r];
            all = joined[ROWS + r];
            y = sums[i];
        }
        float const result = seesNone(a, span, of) ? 0 : y * valueScale / withSink(a, ofHead, all, high);
        f16* const to = a.y + batch * a.yStride.batch + ofHead * a.yStride.head + i64(of) * a.yStride.row + i % DV;
        to->bits = u16(packHalves(result, 0));
    }
    __syncwarp();
    if constexpr (SPLITS > 1)
        clusterSync(); // nobody leaves while others read
}

} // namespace tw::cuda::attention_few_rows
