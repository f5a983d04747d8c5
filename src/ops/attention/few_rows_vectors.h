// SPDX-License-Identifier: Apache-2.0
// The kernels of few_rows.h, written once for both instruction sets. For the ISA files alone, which define TW_ISA (the namespace) and TW_FLOATS
// (in a vector).
#include "kernels/cpu/float_vectors.h"
#include "ops/attention/few_rows.h"

namespace tw::TW_ISA {

namespace {

using namespace ops::attention;

constexpr float kHidden = -__builtin_inff();

inline V loadKeys(float const* p)
{
    return load(p);
}
inline V loadKeys(uint16_t const* p) // FP16
{
#if TW_FLOATS == 16
    return V(_mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<__m256i const*>(p))));
#else
    return V(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<__m128i const*>(p))));
#endif
}

struct Bfloat // the upper half of a float
{
    uint16_t bits;
};
inline V loadKeys(Bfloat const* p)
{
    using H [[gnu::vector_size(TW_FLOATS * 2)]] = uint16_t;
    H bits;
    __builtin_memcpy(&bits, p, sizeof(H));
    return V(__builtin_convertvector(bits, I) << 16);
}

inline V loadKeys(int8_t const* p)
{
#if TW_FLOATS == 16
    return V(_mm512_maskz_cvtepi32_ps(
        0xffff, _mm512_maskz_cvtepi8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<__m128i const*>(p)))));
#else
    return V(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<__m128i const*>(p)))));
#endif
}

// Lane i of the result: the sum of a[i]'s elements. a is spoilt.
inline V sumsOfAll(V (&a)[kFloats])
{
#if TW_FLOATS == 16
    auto m = [](V v) { return __m512(v); };
    for (int i = 0; i < 8; ++i)
        a[i] = V(_mm512_maskz_shuffle_f32x4(0xffff, m(a[i]), m(a[i + 8]), 0x44)) +
               V(_mm512_maskz_shuffle_f32x4(0xffff, m(a[i]), m(a[i + 8]), 0xee));
    for (int i = 0; i < 4; ++i)
        a[i] = V(_mm512_maskz_shuffle_f32x4(0xffff, m(a[i]), m(a[i + 4]), 0x88)) +
               V(_mm512_maskz_shuffle_f32x4(0xffff, m(a[i]), m(a[i + 4]), 0xdd));
    // Each 128 bits of a[i] hold parts of sums i, i + 8, i + 4, i + 12.
    for (int i = 0; i < 4; i += 2)
        a[i] = V(_mm512_maskz_unpacklo_ps(0xffff, m(a[i]), m(a[i + 1]))) +
               V(_mm512_maskz_unpackhi_ps(0xffff, m(a[i]), m(a[i + 1])));
    V const s = V(_mm512_maskz_shuffle_ps(0xffff, m(a[0]), m(a[2]), 0x44)) +
                V(_mm512_maskz_shuffle_ps(0xffff, m(a[0]), m(a[2]), 0xee));
    return V(_mm512_maskz_shuffle_f32x4(0xffff, m(s), m(s), _MM_SHUFFLE(3, 1, 2, 0)));
#else
    auto m = [](V v) { return __m256(v); };
    auto four = [&](int i) {
        return _mm256_hadd_ps(_mm256_hadd_ps(m(a[i]), m(a[i + 1])), _mm256_hadd_ps(m(a[i + 2]), m(a[i + 3])));
    };
    __m256 const low = four(0), high = four(4);
    return V(_mm256_permute2f128_ps(low, high, 0x20)) + V(_mm256_permute2f128_ps(low, high, 0x31));
#endif
}

// Whose keys they are: of one image, of those that a table names, of blocks that pages name.
enum class Where
{
    kImage,
    kTable,
    kPages
};

inline int64_t within(int64_t i, int64_t count)
{
    return i < 0 ? 0 : i >= count ? count - 1 : i;
}
// Where key j is behind that of image 0: of the image that the table names.
inline int64_t imageAt(FewRows const& f, int64_t j, int64_t stride)
{
    return within(f.images[j], f.sharing) * stride;
}
// Where the page of key j begins.
inline int64_t pageAt(FewRows const& f, int64_t j, int64_t stride)
{
    return within(f.pages[j / kRowsOfPage], f.blocks) * stride;
}

// Where element 0 of key j is behind `base`, which is of the first image, or block.
template <Where kWhere>
inline int64_t placeOf(FewRows const& f, int64_t j, int64_t stride, int64_t image)
{
    if constexpr (kWhere == Where::kPages)
        return pageAt(f, j, image) + j % kRowsOfPage * stride;
    return j * stride;
}

// Memory looks ahead in one stream at a time and no further than 4 KiB, and blocks of keys and values take turns, of pages that lie anywhere: while the
// queries of a block are gone through, four at a time, they fetch the next block's keys and values, or the first ones of the head that comes behind, each
// four their share of runs of kRowsOfPage rows. To L2: L1 has no room for two blocks. Null: it is not this four's, there is nothing, or a table says key by
// key where they are.
template <class Element, Where kWhere>
inline Element const* ahead(FewRows const& f, int64_t row, int64_t j, void const* now, void const* next, int64_t stride,
                            int64_t image)
{
    int64_t const fours = (f.count + 3) / 4;
    if (kWhere == Where::kTable || j / kRowsOfPage % fours != row / 4)
        return nullptr;
    if (j + kKeyBlock < f.to)
        return static_cast<Element const*>(now) + placeOf<kWhere>(f, j + kKeyBlock, stride, image);
    return next ? static_cast<Element const*>(next) +
                      placeOf<kWhere>(f, f.from + (j - f.from) % kKeyBlock, stride, image)
                : nullptr;
}
template <class Element, Where kWhere>
inline Element const* keysAhead(FewRows const& f, int64_t row, int64_t j)
{
    return ahead<Element, kWhere>(f, row, j, f.k, f.kNext, f.kStride, f.kImage);
}
template <class Element, Where kWhere>
inline Element const* valuesAhead(FewRows const& f, int64_t row, int64_t j)
{
    return ahead<Element, kWhere>(f, row, j, f.v, f.vNext, f.vStride, f.vImage);
}
inline void fetch(void const* p)
{
    __builtin_prefetch(p, 0, 2);
}

// Scores of kRows queries and the keys of a block, kFloats of them at once, which are of one page.
template <int kRows, class Element, Where kWhere>
void scoresOf(FewRows const& f, int64_t row, int64_t first, int64_t n)
{
    constexpr int kKeys = int(kFloats) / kRows;
    static_assert(kRowsOfPage % kKeys == 0 && kKeyBlock % kRowsOfPage == 0);
    auto const* k = static_cast<Element const*>(f.k) + (kWhere == Where::kPages ? 0 : first * f.kStride);
    float const* const q = f.q + row * f.size;
    for (int64_t j = 0; j < n; j += kKeys) {
        Element const* key[kKeys];
        if constexpr (kWhere == Where::kPages)
            k = static_cast<Element const*>(f.k) + pageAt(f, first + j, f.kImage) -
                j / kRowsOfPage * kRowsOfPage * f.kStride;
        for (int c = 0; c < kKeys; ++c) {
            int64_t const at = j + c < n ? j + c : n - 1;
            key[c] = k + at * f.kStride;
            if constexpr (kWhere == Where::kTable)
                key[c] += imageAt(f, first + at, f.kImage);
        }
        auto const* const later = keysAhead<Element, kWhere>(f, row, first + j);
        V sum[kFloats] = {};
        for (int64_t d = 0; d < f.size; d += kFloats) {
            V of[kRows];
            for (int r = 0; r < kRows; ++r)
                of[r] = load(q + r * f.size + d);
            if (later)
                for (int c = 0; c < kKeys; ++c)
                    fetch(later + c * f.kStride + d);
            for (int c = 0; c < kKeys; ++c) {
                V const x = loadKeys(key[c] + d);
                for (int r = 0; r < kRows; ++r)
                    sum[r * kKeys + c] = sumOfProduct(of[r], x, sum[r * kKeys + c]);
            }
        }
        V const all = sumsOfAll(sum);
        float lanes[kFloats];
        store(lanes, all);
        for (int r = 0; r < kRows; ++r) // behind the last key of the block there is room
            __builtin_memcpy(f.scores + (row + r) * kKeyBlock + j, lanes + r * kKeys, kKeys * sizeof(float));
    }
}

// tanh from exp(-2 |x|); scores are far from needing its last digits near 0.
inline V capped(V s, float cap)
{
    V const x = s / cap, a = x < 0 ? x : -x, e = powerOf(2 * a), t = (1 - e) / (1 + e);
    return cap * (x < 0 ? -t : t);
}

void adjustScores(Scores const& s, FewRow const& row, ScoreRules const& rules)
{
    if (rules.softcap > 0)
        for (int64_t j = 0; j < s.n; j += kFloats) { // whole vectors have room
            V const x = load(s.t + j);
            store(s.t + j, capped(x, rules.softcap));
        }
    if (row.keep)
        for (int64_t j = 0; j < s.n; ++j)
            s.t[j] = (row.keep[s.first + j] != 0) != rules.keepInverted ? s.t[j] : rules.fill;
    if (row.mask)
        for (int64_t j = 0; j < s.n; ++j)
            s.t[j] += row.mask[s.first + j];
    if (row.slope != 0)
        for (int64_t j = 0; j < s.n; ++j)
            s.t[j] += row.slope * float(s.first + j - row.position);
    for (int64_t j = 0, end = row.from - s.first < s.n ? row.from - s.first : s.n; j < end; ++j)
        s.t[j] = kHidden;
    for (int64_t j = row.to > s.first ? row.to - s.first : 0; j < s.n; ++j)
        s.t[j] = kHidden;
}

// Scores become weights in units of the largest score so far; what the sums before are worth in them.
inline float weigh(float* t, int64_t n, FewRow& row)
{
    for (int64_t j = n; j % kFloats != 0; ++j)
        t[j] = kHidden;
    V top = V{} + row.highest;
    for (int64_t j = 0; j < n; j += kFloats) {
        V const x = load(t + j);
        top = x > top ? x : top; // passes over NaN: the sum finds it
    }
    float lanes[kFloats], highest = row.highest;
    store(lanes, top);
    for (float const lane : lanes)
        highest = lane > highest ? lane : highest;
    float const origin = highest == kHidden ? 0 : highest; // nothing to be seen yet, or nothing but NaN
    V sum = {};
    for (int64_t j = 0; j < n; j += kFloats) {
        V const x = load(t + j), hidden = V{} + kHidden, w = x == hidden ? V{} : powerOf(x - origin);
        sum += w;
        store(t + j, w);
    }
    float const shrink = row.highest == kHidden ? 0 : powerOf(V{} + (row.highest - origin))[0];
    store(lanes, sum);
    float total = 0;
    for (float const lane : lanes)
        total += lane;
    row.sum = row.sum * shrink + total;
    if (highest != kHidden || total != 0)
        row.highest = origin;
    return shrink;
}

template <int kRows, int kVectors, class Element, Where kWhere>
void addValues(FewRows const& f, int64_t row, int64_t first, int64_t n, int64_t d, float const* shrink)
{
    auto const* v = static_cast<Element const*>(f.v) + (kWhere == Where::kPages ? 0 : first * f.vStride) + d;
    float const* const w = f.scores + row * kKeyBlock;
    float* const y = f.y + row * f.valueSize + d;
    V sum[kRows][kVectors];
    for (int r = 0; r < kRows; ++r)
        for (int i = 0; i < kVectors; ++i)
            sum[r][i] = load(y + r * f.valueSize + i * kFloats) * shrink[r];
    auto add = [&](Element const* of, int64_t j) {
        for (int i = 0; i < kVectors; ++i) {
            V const x = loadKeys(of + i * kFloats);
            for (int r = 0; r < kRows; ++r)
                sum[r][i] = sumOfProduct(V{} + w[r * kKeyBlock + j], x, sum[r][i]);
        }
    };
    if constexpr (kWhere == Where::kTable)
        for (int64_t j = 0; j < n; ++j, v += f.vStride)
            add(v + imageAt(f, first + j, f.vImage), j);
    else
        for (int64_t j = 0; j < n;) {
            auto const* of = kWhere == Where::kPages ? v + pageAt(f, first + j, f.vImage) : v + j * f.vStride;
            auto const* later = valuesAhead<Element, kWhere>(f, row, first + j);
            for (int64_t const end = j + kRowsOfPage < n ? j + kRowsOfPage : n; j < end; ++j, of += f.vStride) {
                add(of, j);
                if (!later)
                    continue;
                for (int i = 0; i < kVectors; ++i)
                    fetch(later + d + i * kFloats);
                later += f.vStride;
            }
        }
    for (int r = 0; r < kRows; ++r)
        for (int i = 0; i < kVectors; ++i)
            store(y + r * f.valueSize + i * kFloats, sum[r][i]);
}

template <int kRows, class Element, Where kWhere>
void blockOf(FewRows const& f, int64_t row, int64_t first, int64_t n)
{
    constexpr int kWide = kRows == 1 ? 8 : kRows == 2 ? 4 : TW_FLOATS == 16 ? 4 : 2;
    scoresOf<kRows, Element, kWhere>(f, row, first, n);
    float shrink[kRows];
    for (int r = 0; r < kRows; ++r) {
        FewRow& of = f.rows[row + r];
        float* const t = f.scores + (row + r) * kKeyBlock;
        if (f.rules.softcap > 0 || of.keep || of.mask || of.slope != 0 || of.from > first || of.to < first + n)
            adjustScores({t, first, n}, of, f.rules);
        shrink[r] = weigh(t, n, of);
    }
    int64_t d = 0;
    for (; d + kWide * kFloats <= f.valueSize; d += kWide * kFloats)
        addValues<kRows, kWide, Element, kWhere>(f, row, first, n, d, shrink);
    if constexpr (kWide > 4)
        for (; d + 4 * kFloats <= f.valueSize; d += 4 * kFloats)
            addValues<kRows, 4, Element, kWhere>(f, row, first, n, d, shrink);
    for (; d < f.valueSize; d += kFloats)
        addValues<kRows, 1, Element, kWhere>(f, row, first, n, d, shrink);
}

template <class Element, Where kWhere>
void attendBlocks(FewRows const& f)
{
    for (int64_t first = f.from; first < f.to; first += kKeyBlock) {
        int64_t const n = f.to - first < kKeyBlock ? f.to - first : kKeyBlock;
        int64_t row = 0;
        for (; row + 4 <= f.count; row += 4)
            blockOf<4, Element, kWhere>(f, row, first, n);
        for (; row + 2 <= f.count; row += 2)
            blockOf<2, Element, kWhere>(f, row, first, n);
        if (row < f.count)
            blockOf<1, Element, kWhere>(f, row, first, n);
    }
}
template <class Element>
void attend(FewRows const& f)
{
    f.images  ? attendBlocks<Element, Where::kTable>(f)
    : f.pages ? attendBlocks<Element, Where::kPages>(f)
              : attendBlocks<Element, Where::kImage>(f);
}

} // namespace

FewRowsKernels const kFewRows{attend<float>, attend<uint16_t>, attend<Bfloat>, attend<int8_t>, adjustScores};

} // namespace tw::TW_ISA
