// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/element.h"
#include "kernels/cpu/gemm_parts.h"

namespace tw::kernels {

namespace {

// c is computed in blocks of kM x kN floats (128 KiB) from panels of b of kK x kN floats (256 KiB): both stay in L2. A
// tile of kTileM x kTileN sums fits the 16 vector registers that every x86-64 has.
constexpr int64_t kM = 128, kN = 256, kK = 256;
constexpr int kTileM = 4, kTileN = 8;

// sums[r][j] += sum over p of a[p][r] * b[p][j] for R rows and n columns; a [k][R], b [k][ldb], sums [R][kN].
template <int R>
void strip(int64_t k, int64_t n, float const* __restrict a, float const* __restrict b, int64_t ldb,
           float* __restrict sums)
{
    int64_t j = 0;
    for (; j + kTileN <= n; j += kTileN) {
        float t[R][kTileN] = {};
        for (int64_t p = 0; p < k; ++p)
            for (int r = 0; r < R; ++r)
                for (int l = 0; l < kTileN; ++l)
                    t[r][l] += a[p * R + r] * b[p * ldb + j + l];
        for (int r = 0; r < R; ++r)
            for (int l = 0; l < kTileN; ++l)
                sums[r * kN + j + l] += t[r][l];
    }
    for (; j < n; ++j) {
        float t[R] = {};
        for (int64_t p = 0; p < k; ++p)
            for (int r = 0; r < R; ++r)
                t[r] += a[p * R + r] * b[p * ldb + j];
        for (int r = 0; r < R; ++r)
            sums[r * kN + j] += t[r];
    }
}

template <int R, class T>
void packAndRun(GemmShape const& s, T const* a, int64_t k, int64_t n, float const* b, int64_t ldb, float* sums)
{
    float packed[kK * R];
    for (int64_t p = 0; p < k; ++p)
        for (int r = 0; r < R; ++r)
            packed[p * R + r] = loadElement(a[r * s.aRow + p * s.aColumn]);
    strip<R>(k, n, packed, b, ldb, sums);
}

template <class T>
void packPanel(T const* b, GemmShape const& s, int64_t k, int64_t n, float* to)
{
    if (s.bColumn == 1) {
        for (int64_t p = 0; p < k; ++p)
            for (int64_t j = 0; j < n; ++j)
                to[p * kN + j] = loadElement(b[p * s.bRow + j]);
    } else {
        constexpr int64_t kTile = 16; // square tiles, so that the strided side stays in cache
        for (int64_t p0 = 0; p0 < k; p0 += kTile)
            for (int64_t j0 = 0; j0 < n; j0 += kTile)
                for (int64_t j = j0; j < std::min(j0 + kTile, n); ++j)
                    for (int64_t p = p0; p < std::min(p0 + kTile, k); ++p)
                        to[p * kN + j] = loadElement(b[p * s.bRow + j * s.bColumn]);
    }
}

// Few rows or columns: dot products of contiguous rows of a and columns of b, with enough partial sums to vectorize.
template <class T>
void dots(GemmShape const& s, T const* a, T const* b, T const* bias, T* c)
{
    constexpr int kLanes = 16;
    for (int64_t i = 0; i < s.m; ++i) {
        for (int64_t j = 0; j < s.n; ++j) {
            T const *pa = a + i * s.aRow, *pb = b + j * s.bColumn;
            float lanes[kLanes] = {};
            int64_t p = 0;
            for (; p + kLanes <= s.k; p += kLanes)
                for (int l = 0; l < kLanes; ++l)
                    lanes[l] += loadElement(pa[p + l]) * loadElement(pb[p + l]);
            float sum = 0;
            for (; p < s.k; ++p)
                sum += loadElement(pa[p]) * loadElement(pb[p]);
            for (float v : lanes)
                sum += v;
            storeElement(c[i * s.n + j], bias ? sum + loadElement(bias[j]) : sum);
        }
    }
}

template <class T>
void gemm(GemmShape const& s, T const* a, T const* b, T const* bias, T* c, void* workspace)
{
    if (s.aColumn == 1 && s.bRow == 1 && (s.m <= 2 || s.n <= 2))
        return dots(s, a, b, bias, c);
    auto* sums = static_cast<float*>(workspace); // [kM][kN]
    float* panel = sums + std::min(s.m, kM) * kN;
    for (int64_t j = 0; j < s.n; j += kN) {
        int64_t const n = std::min(kN, s.n - j);
        for (int64_t i = 0; i < s.m; i += kM) {
            int64_t const m = std::min(kM, s.m - i);
            for (int64_t r = 0; r < m; ++r)
                for (int64_t l = 0; l < n; ++l)
                    sums[r * kN + l] = bias ? loadElement(bias[j + l]) : 0.0f;
            for (int64_t p = 0; p < s.k; p += kK) {
                int64_t const k = std::min(kK, s.k - p);
                T const* bAt = b + p * s.bRow + j * s.bColumn;
                packPanel(bAt, s, k, n, panel);
                T const* aAt = a + i * s.aRow + p * s.aColumn;
                int64_t r = 0;
                for (; r + kTileM <= m; r += kTileM)
                    packAndRun<kTileM>(s, aAt + r * s.aRow, k, n, panel, kN, sums + r * kN);
                for (; r < m; ++r)
                    packAndRun<1>(s, aAt + r * s.aRow, k, n, panel, kN, sums + r * kN);
            }
            for (int64_t r = 0; r < m; ++r)
                for (int64_t l = 0; l < n; ++l)
                    storeElement(c[(i + r) * s.n + j + l], sums[r * kN + l]);
        }
    }
}

} // namespace

int64_t gemmPlainWorkspaceBytes(int64_t m, int64_t, int64_t k)
{
    return (std::min(m, kM) + std::min(k, kK)) * kN * int64_t(sizeof(float));
}

void gemmPlain(DataType type, GemmShape const& s, void const* a, void const* b, void const* bias, void* c,
               void* workspace)
{
    withFloat(type, [&](auto element) {
        using T = decltype(element);
        gemm(s, static_cast<T const*>(a), static_cast<T const*>(b), static_cast<T const*>(bias), static_cast<T*>(c),
             workspace);
    });
}

} // namespace tw::kernels
