// SPDX-License-Identifier: Apache-2.0
// The kernels of steps.h, written once with the compiler's vector types and compiled into each instruction set's
// namespace. For the ISA files alone, which define TW_ISA (the namespace) and TW_FLOATS (in a vector).
#include <immintrin.h>

#include "ops/recurrence/steps.h"

namespace tw::TW_ISA {

namespace {

using ops::recurrence::Step;

constexpr int kFloats = TW_FLOATS;
using V [[gnu::vector_size(TW_FLOATS * 4), gnu::aligned(4), gnu::may_alias]] = float;
using I [[gnu::vector_size(TW_FLOATS * 4)]] = int;

inline V load(float const* p)
{
    return *reinterpret_cast<V const*>(p);
}
inline void store(float* p, V v)
{
    *reinterpret_cast<V*>(p) = v;
}
// sum += a b, in place: the compiler would choose forms that overwrite a factor, and copy sums from register to register.
inline void addProduct(V& sum, V a, V b)
{
    asm("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "vm"(b));
}
#if TW_FLOATS == 16
inline V spread(float v) // of a number in memory: a load, no shuffle
{
    return V(_mm512_set1_ps(v));
}
inline V sumOfProduct(V a, V b, V c) // a b + c
{
    return V(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c)));
}
// NaN of b stays.
inline V largest(V a, V b)
{
    return V(_mm512_mask_max_ps(__m512(a), 0xffff, __m512(a), __m512(b)));
}
inline V smallest(V a, V b)
{
    return V(_mm512_mask_min_ps(__m512(a), 0xffff, __m512(a), __m512(b)));
}
// 14 bits and one step of Newton's; d from 1 to 1e38.
inline V inverse(V d)
{
    V const r = V(_mm512_maskz_rcp14_ps(0xffff, __m512(d)));
    return sumOfProduct(r, sumOfProduct(-d, r, spread(1)), r);
}
#else
inline V spread(float v)
{
    return V(_mm256_set1_ps(v));
}
inline V sumOfProduct(V a, V b, V c)
{
    return V(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
}
inline V largest(V a, V b)
{
    return V(_mm256_max_ps(__m256(a), __m256(b)));
}
inline V smallest(V a, V b)
{
    return V(_mm256_min_ps(__m256(a), __m256(b)));
}
inline V inverse(V d)
{
    return spread(1) / d;
}
#endif

// x = n ln 2 + r, |r| <= ln(2) / 2; Taylor's sum is off by 1.2e-7. |x| is cut at 80.
inline V exponential(V x)
{
    V const v = largest(spread(-80), smallest(spread(80), x));
    V const shifted = sumOfProduct(v, spread(1.44269504F), spread(0x1.8p23F)), n = shifted - spread(0x1.8p23F);
    V const r = sumOfProduct(n, spread(2.12194440e-4F), sumOfProduct(n, spread(-0.693359375F), v));
    constexpr float kTerms[] = {1.F / 120, 1.F / 24, 1.F / 6, 0.5F, 1, 1};
    V sum = spread(1.F / 720);
    for (float term : kTerms)
        sum = sumOfProduct(sum, r, spread(term));
    return sum * V((I(shifted) + 127) << 23);
}
inline V sigmoid(V x)
{
    return inverse(1 + exponential(-x));
}
inline V tanhOf(V x)
{
    V const e = exponential(-2 * x), large = (1 - e) * inverse(1 + e), z = x * x;
    V small = spread(62.F / 2835); // of x^2 <= 0.09: 5e-8
    constexpr float kTerms[] = {-17.F / 315, 2.F / 15, -1.F / 3, 1};
    for (float term : kTerms)
        small = sumOfProduct(small, z, spread(term));
    return z < 0.09F ? x * small : large;
}

// Sums of G gates of R rows.
template <int G, int R>
struct Sums
{
    V v[R][G];
};

// A single row reads each number of the panel once: sums of several k side by side hide the latency.
template <int G>
inline Sums<G, 1> multiplyRow(float const* r, float const* h, int64_t n)
{
    constexpr int kSide = G == 1 ? 8 : G == 2 ? 6 : 4;
    V sum[kSide][G] = {};
    int64_t k = 0;
    for (; k + kSide <= n; k += kSide, r += kSide * G * kFloats) {
#pragma GCC unroll 8
        for (int s = 0; s < kSide; ++s) {
            V const factor = spread(h[k + s]);
#pragma GCC unroll 4
            for (int g = 0; g < G; ++g)
                addProduct(sum[s][g], factor, load(r + (s * G + g) * kFloats));
        }
    }
    for (; k < n; ++k, r += G * kFloats)
        for (int g = 0; g < G; ++g)
            sum[0][g] = sumOfProduct(spread(h[k]), load(r + g * kFloats), sum[0][g]);
    Sums<G, 1> out;
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
#pragma GCC unroll 8
        for (int s = 1; s < kSide; ++s)
            sum[0][g] += sum[s][g];
        out.v[0][g] = sum[0][g];
    }
    return out;
}

template <int G, int R>
inline Sums<G, R> multiply(float const* r, float const* h, int64_t stride, int64_t n)
{
    Sums<G, R> sums = {};
    for (int64_t k = 0; k < n; ++k, r += G * kFloats) {
        V factor[R];
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i)
            factor[i] = spread(h[i * stride + k]);
#pragma GCC unroll 4
        for (int g = 0; g < G; ++g) {
            V const w = load(r + g * kFloats);
#pragma GCC unroll 8
            for (int i = 0; i < R; ++i)
                addProduct(sums.v[i][g], factor[i], w);
        }
    }
    return sums;
}

inline void storePart(float* to, V v, int64_t count)
{
    if (count >= kFloats)
        return store(to, v);
    for (int64_t i = 0; i < count; ++i)
        to[i] = v[i];
}

// What a cell makes of the sums of one row: the new state. first: unit of the block; at: there, in the row; x: there.
struct Tanh
{
    static constexpr int kGates = 1;
    static V next(Step const&, V const* sums, float const* x, int64_t, int64_t) { return tanhOf(sums[0] + load(x)); }
};
struct Relu
{
    static constexpr int kGates = 1;
    static V next(Step const&, V const* sums, float const* x, int64_t, int64_t)
    {
        return largest(V{}, sums[0] + load(x));
    }
};
struct Lstm
{
    static constexpr int kGates = 4;
    static V next(Step const& s, V const* sums, float const* x, int64_t at, int64_t)
    {
        V const in = sigmoid(sums[0] + load(x)), out = sigmoid(sums[1] + load(x + s.stride));
        V const forget = sigmoid(sums[2] + load(x + 2 * s.stride)), cell = tanhOf(sums[3] + load(x + 3 * s.stride));
        V const c = sumOfProduct(forget, load(s.c + at), in * cell);
        store(s.c + at, c);
        return out * tanhOf(c);
    }
};
inline V mixed(V z, V n, V h) // (1 - z) n + z h
{
    return sumOfProduct(z, h - n, n);
}
struct GruLinear
{
    static constexpr int kGates = 3;
    static V next(Step const& s, V const* sums, float const* x, int64_t at, int64_t first)
    {
        V const z = sigmoid(sums[0] + load(x)), r = sigmoid(sums[1] + load(x + s.stride));
        V const fromState = sums[2] + load(s.bias + first);
        return mixed(z, tanhOf(sumOfProduct(r, fromState, load(x + 2 * s.stride))), load(s.before + at));
    }
};
struct GruGates
{
    static constexpr int kGates = 2;
    static V next(Step const& s, V const* sums, float const* x, int64_t at, int64_t)
    {
        store(s.z + at, sigmoid(sums[0] + load(x)));
        return sigmoid(sums[1] + load(x + s.stride)) * load(s.before + at);
    }
};
struct GruState
{
    static constexpr int kGates = 1;
    static V next(Step const& s, V const* sums, float const* x, int64_t at, int64_t)
    {
        return mixed(load(s.z + at), tanhOf(sums[0] + load(x)), load(s.before + at));
    }
};

template <class Cell>
inline void finishRow(Step const& s, V const* sums, int64_t n, int64_t block)
{
    int64_t const first = block * kFloats, at = n * s.stride + first;
    bool const inside = s.x[n] != nullptr;
    V const v = inside ? Cell::next(s, sums, s.x[n] + first, at, first) : load(s.before + at);
    store(s.to + at, v);
    if (Cell::kGates != 2)
        storePart(s.y[n] + first, inside ? v : V{}, s.hidden - first);
}

// Sums of several rows go through memory: the cells of all of them side by side would need more registers than there
// are.
template <class Cell, int R>
inline void finish(Step const& s, Sums<Cell::kGates, R> const& sums, int64_t row, int64_t block)
{
    constexpr int kGates = Cell::kGates;
    if constexpr (R == 1)
        return finishRow<Cell>(s, sums.v[0], row, block);
    alignas(64) float kept[R * kGates * kFloats];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
        for (int g = 0; g < kGates; ++g)
            store(kept + (i * kGates + g) * kFloats, sums.v[i][g]);
    asm volatile("" : : "r"(kept) : "memory");
#pragma GCC unroll 1
    for (int i = 0; i < R; ++i) {
        V ofRow[kGates];
#pragma GCC unroll 4
        for (int g = 0; g < kGates; ++g)
            ofRow[g] = load(kept + (i * kGates + g) * kFloats);
        finishRow<Cell>(s, ofRow, row + i, block);
    }
}

template <class Cell, int R>
inline void rowsOf(Step const& s, int64_t row, int64_t rows, int64_t block)
{
    constexpr int kGates = Cell::kGates;
    float const *panel = s.r + block * s.hidden * kGates * kFloats, *h = s.h + row * s.stride;
    if (rows == R) {
        if constexpr (R == 1)
            finish<Cell, R>(s, multiplyRow<kGates>(panel, h, s.hidden), row, block);
        else
            finish<Cell, R>(s, multiply<kGates, R>(panel, h, s.stride, s.hidden), row, block);
    } else if constexpr (R > 1) {
        rowsOf<Cell, R - 1>(s, row, rows, block);
    }
}

// Rows at once: their sums and factors and a vector of weights fill the registers.
template <class Cell>
constexpr int kMostRows = TW_FLOATS == 16     ? (Cell::kGates == 4   ? 6
                                                 : Cell::kGates == 3 ? 7
                                                                     : 8)
                          : Cell::kGates >= 3 ? 3
                          : Cell::kGates == 2 ? 4
                                              : 6;

template <class Cell>
void step(Step const& s)
{
    constexpr int64_t kRows = kMostRows<Cell>;
    for (int64_t block = s.begin; block < s.end; ++block)
        for (int64_t row = 0, parts = (s.rows + kRows - 1) / kRows; parts > 0; --parts) {
            int64_t const rows = (s.rows - row + parts - 1) / parts; // about equal
            rowsOf<Cell, kMostRows<Cell>>(s, row, rows, block);
            row += rows;
        }
}

} // namespace

constinit ops::recurrence::StepKernels const kSteps{kFloats,         step<Tanh>,     step<Relu>,    step<Lstm>,
                                                    step<GruLinear>, step<GruGates>, step<GruState>};

} // namespace tw::TW_ISA
