// SPDX-License-Identifier: Apache-2.0
// The function of dots.h, written once with the compiler's vector types. For the ISA files alone, which define TW_ISA
// (the namespace) and TW_FLOATS (in a vector).
#include "kernels/cpu/dots.h"
#include "kernels/cpu/float_vectors.h"

namespace tw::TW_ISA {

namespace {

using kernels::Dots;

inline __m256 folded(V v)
{
#if TW_FLOATS == 16
    return reinterpret_cast<__m256>(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7)) +
           reinterpret_cast<__m256>(__builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
#else
    return reinterpret_cast<__m256>(v);
#endif
}

// The sums of the elements of four vectors.
inline __m128 sumsOf(V const* v)
{
    __m256 const s =
        _mm256_hadd_ps(_mm256_hadd_ps(folded(v[0]), folded(v[1])), _mm256_hadd_ps(folded(v[2]), folded(v[3])));
    return _mm256_castps256_ps128(s) + _mm256_extractf128_ps(s, 1);
}

// kColumns rows of b are streams of memory; every number of them is used for kRows rows of a. kSets sums for each, or
// they would wait for each other.
template <int kRows, int kColumns, int kSets>
void tile(Dots const& d, int64_t j)
{
    V sum[kSets][kRows][kColumns] = {};
    int64_t k = 0;
    for (; k + kSets * kFloats <= d.k; k += kSets * kFloats)
        for (int s = 0; s < kSets; ++s)
            for (int c = 0; c < kColumns; ++c) {
                V const b = load(d.b + (j + c) * d.ldb + k + s * kFloats);
                for (int r = 0; r < kRows; ++r)
                    sum[s][r][c] += load(d.a + r * d.lda + k + s * kFloats) * b;
            }
    for (; k + kFloats <= d.k; k += kFloats)
        for (int c = 0; c < kColumns; ++c) {
            V const b = load(d.b + (j + c) * d.ldb + k);
            for (int r = 0; r < kRows; ++r)
                sum[0][r][c] += load(d.a + r * d.lda + k) * b;
        }
    constexpr int kSums = kRows * kColumns, kFours = (kSums + 3) / 4;
    V all[kFours * 4] = {};
    for (int i = 0; i < kSums; ++i) {
        all[i] = sum[0][i / kColumns][i % kColumns];
        for (int s = 1; s < kSets; ++s)
            all[i] += sum[s][i / kColumns][i % kColumns];
    }
    float total[kFours * 4];
    for (int i = 0; i < kFours; ++i)
        _mm_storeu_ps(total + 4 * i, sumsOf(all + 4 * i));
    for (int r = 0; r < kRows; ++r)
        for (int c = 0; c < kColumns; ++c) {
            float t = total[r * kColumns + c];
            for (int64_t i = k; i < d.k; ++i)
                t += d.a[r * d.lda + i] * d.b[(j + c) * d.ldb + i];
            d.c[r * d.ldc + j + c] = t;
        }
}

template <int kRows, int kColumns, int kSets>
void allColumns(Dots const& d)
{
    int64_t j = 0;
    for (; j + kColumns <= d.columns; j += kColumns)
        tile<kRows, kColumns, kSets>(d, j);
    for (; j < d.columns; ++j)
        tile<kRows, 1, kSets>(d, j);
}

} // namespace

void dots(Dots const& d)
{
    switch (d.rows) {
    case 1:
        return allColumns<1, 4, 2>(d);
    case 2:
        return allColumns<2, 4, 1>(d);
    case 3:
        return allColumns<3, 2, 1>(d);
    case 4:
        return allColumns<4, 2, 1>(d);
    }
}

} // namespace tw::TW_ISA
