// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/masks.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "kernels/cuda/common/generate.h"

namespace tw::cuda {

namespace {

constexpr float kLog2E = 1.44269504f;

// Two neighbours of a mask.
constexpr char const* kHalfPairs = R"(
typedef f16 Element;
typedef u32 MaskPair; // the first one low
TW_INLINE MaskPair maskPair(f16 const* at, int key, int sk)
{
    if (key >= sk) return 0;
    if constexpr (PAIRS) return *reinterpret_cast<u32 const*>(at + key);
    return u32(at[key].bits) | (key + 1 < sk ? u32(at[key + 1].bits) << 16 : 0);
}
TW_INLINE float lowOf(MaskPair v) { return lowHalf(v); }
TW_INLINE float highOf(MaskPair v) { return highHalf(v); }
)";
constexpr char const* kSinglePairs = R"(
typedef float Element;
typedef float2 MaskPair;
TW_INLINE MaskPair maskPair(float const* at, int key, int sk)
{
    if (key >= sk) return float2{0, 0};
    if constexpr (PAIRS) return *reinterpret_cast<float2 const*>(at + key);
    return float2{at[key], key + 1 < sk ? at[key + 1] : 0};
}
TW_INLINE float lowOf(MaskPair v) { return v.x; }
TW_INLINE float highOf(MaskPair v) { return v.y; }
)";

// A thread holds rows `row` and row + 8, and of them keys 8 n + 2 t and the next; the sum's layout of mma and wgmma.
constexpr char const* kText = R"(
#define INFINITY_F __int_as_float(0x7f800000)
struct Strides { i64 batch, head, row; };
struct Args {
    Element const *q, *k, *v, *mask; u8 const* keep; Element* y; Strides qs, ks, vs, ms, keeps, ys; i32 sq, sk; float scale, fill;
};
TW_INLINE float exp2Of(float v) { float r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v)); return r; }
TW_INLINE float quadMax(float v)
{
    v = fmaxf(v, __shfl_xor_sync(~0u, v, 1));
    return fmaxf(v, __shfl_xor_sync(~0u, v, 2));
}
TW_INLINE float quadSum(float v)
{
    v += __shfl_xor_sync(~0u, v, 1);
    return v + __shfl_xor_sync(~0u, v, 2);
}
// Two neighbours, the first one low.
TW_INLINE u32 keepPair(u8 const* at, int key, int sk)
{
    if (key >= sk) return 0;
    if constexpr (PAIRS) return *reinterpret_cast<u16 const*>(at + key);
    return u32(at[key]) | (key + 1 < sk ? u32(at[key + 1]) << 8 : 0);
}
// Masks of one head; those that all queries share are read a step ahead.
struct Masks {
    Element const* mask;
    u8 const* keep;
    MaskPair adds[MASK && !MASK_ROWS ? KEYS / 8 : 1];
    u32 keeps[KEEP && !KEEP_ROWS ? KEYS / 8 : 1];

    TW_INLINE void at(Args const& a, int batch, int head)
    {
        if constexpr (MASK) mask = a.mask + batch * a.ms.batch + head * a.ms.head;
        if constexpr (KEEP) keep = a.keep + batch * a.keeps.batch + head * a.keeps.head;
    }
    TW_INLINE void fetch(Args const& a, int key0, int t)
    {
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n) {
            if constexpr (MASK && !MASK_ROWS) adds[n] = maskPair(mask, key0 + n * 8 + t * 2, a.sk);
            if constexpr (KEEP && !KEEP_ROWS) keeps[n] = keepPair(keep, key0 + n * 8 + t * 2, a.sk);
        }
    }
    // s0, s1: scores of query r and keys key0 + 8 n + 2 t and the next.
    TW_INLINE void apply(Args const& a, int r, int key0, int n, int t, float& s0, float& s1) const
    {
        int const key = key0 + n * 8 + t * 2, known = min(r, a.sq - 1);
        float add0 = 0, add1 = 0;
        if constexpr (MASK) {
            MaskPair pair;
            if constexpr (MASK_ROWS) pair = maskPair(mask + i64(known) * a.ms.row, key, a.sk);
            else pair = adds[n];
            add0 = lowOf(pair) * LOG2E;
            add1 = highOf(pair) * LOG2E;
        }
        s0 = fmaf(s0, a.scale, add0);
        s1 = fmaf(s1, a.scale, add1);
        if constexpr (KEEP) {
            u32 pair;
            if constexpr (KEEP_ROWS) pair = keepPair(keep + i64(known) * a.keeps.row, key, a.sk);
            else pair = keeps[n];
            if (((pair & 255) == 0) != INVERTED) s0 = a.fill + add0;
            if ((pair >> 8 == 0) != INVERTED) s1 = a.fill + add1;
        }
    }
};
)";

// Rows of tiles in shared memory. Copies move UNIT elements; the text in front defines UNIT, THREADS and PITCH.
constexpr char const* kRows = R"(
// R rows of HEAD elements, columns from there to D (whole 16 bytes) and rows from `rows` on are zero.
template <int R, int HEAD, int D> TW_INLINE void loadTile(u32 to, Element const* from, i64 rowStride, int row0, int rows)
{
    constexpr int BYTES = UNIT * int(sizeof(Element)), STEP = BYTES < 4 ? 2 : UNIT, UNITS = D / STEP;
#pragma unroll 4
    for (int i = 0; i < (R * UNITS + THREADS - 1) / THREADS; ++i) {
        int const at = threadIdx.x + i * THREADS, r = at / UNITS, u = at % UNITS;
        if (R * UNITS % THREADS == 0 || at < R * UNITS) {
            u32 const place = to + r * PITCH + u * STEP * int(sizeof(Element));
            Element const* const x = from + i64(row0 + r) * rowStride + u * STEP;
            bool const valid = row0 + r < rows && u * STEP < HEAD;
            if constexpr (BYTES == 16) copyAsync16(place, x, valid);
            else if constexpr (BYTES == 8) copyAsync8(place, x, valid);
            else if constexpr (BYTES == 4) copyAsync4(place, x, valid);
            else { // halves one by one: too few bytes for an asynchronous copy
                u16 const* const bits = reinterpret_cast<u16 const*>(x);
                u32 const low = valid ? bits[0] : 0, high = valid && u * STEP + 1 < HEAD ? bits[1] : 0;
                storeShared(place, low | high << 16);
            }
        }
    }
}
)";

} // namespace

int AttentionMasks::registers(int keys) const
{
    return keys / 8 * ((mask && !maskRows) * (single ? 2 : 1) + (keep && !keepRows));
}

std::string AttentionMasks::name() const
{
    std::string s;
    if (mask)
        s += maskRows ? "_mask" : "_mask_of_keys";
    if (keep)
        s += std::string(keepRows ? "_keep" : "_keep_of_keys") + (inverted ? "_inverted" : "");
    return s + (any() && pairs ? "_pairs" : "") + (causal ? "_causal" : "");
}

AttentionArgs forKernel(AttentionArgs args)
{
    args.scale *= kLog2E;
    // An infinity stays one, a finite number must not become one: a row of nothing else has equal weights.
    if (std::abs(args.fill) <= FLT_MAX)
        args.fill = float(std::clamp(double(args.fill) * double(kLog2E), -double(FLT_MAX), double(FLT_MAX)));
    return args;
}

int attentionUnit(int bytesOfElement, std::initializer_list<int64_t> places)
{
    int64_t unit = 16 / bytesOfElement;
    for (int64_t p : places)
        while (p % unit != 0)
            unit /= 2;
    return int(unit);
}

std::string attentionRows()
{
    return kRows;
}

std::string attentionText(AttentionMasks const& m)
{
    return flag("MASK", m.mask) + flag("MASK_ROWS", m.maskRows) + flag("KEEP", m.keep) + flag("KEEP_ROWS", m.keepRows) +
           flag("INVERTED", m.inverted) + flag("PAIRS", m.pairs) + flag("CAUSAL", m.causal) + flag("MASKED", m.any()) +
           "constexpr float LOG2E = 1.44269504f;\n" + (m.single ? kSinglePairs : kHalfPairs) + kText +
           "static_assert(sizeof(Args) == " + std::to_string(sizeof(AttentionArgs)) + ", \"layout of Args\");\n";
}

} // namespace tw::cuda
