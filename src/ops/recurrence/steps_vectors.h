// SPDX-License-Identifier: Apache-2.0
// The kernels of steps.h, written once with the compiler's vector types and compiled into each instruction set's
// namespace. For the ISA files alone, which define TW_ISA (the namespace) and TW_FLOATS (in a vector).
#include "kernels/cpu/float_vectors.h"
#include "ops/recurrence/steps.h"

namespace tw::TW_ISA {

namespace {

using ops::recurrence::Step;

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

// 1 + e^-x. With t = -x log2(e) = n + r, |r| <= 1/2: e^-x = 2^n 2^r, 2^r a sum that is off by 9e-8 (best in the largest
// relative error). -x is cut at 80.
inline V onePlusExponential(V x)
{
    constexpr float kLog2E = 1.44269504F, kShift = 0x1.8p23F + 127; // n + 127 in the lowest bits
    V const v = largest(spread(-80), smallest(spread(80), x));
    V const shifted = sumOfProduct(v, spread(-kLog2E), spread(kShift)), n = shifted - spread(kShift);
    V const r = sumOfProduct(v, spread(-kLog2E), -n);
    constexpr float kTerms[] = {0.009671513F, 0.055507336F, 0.24022242F, 0.693147F, 1};
    V sum = spread(0.0013264727F);
    for (float term : kTerms)
        sum = sumOfProduct(sum, r, spread(term));
    return sumOfProduct(sum, V(I(shifted) << 23), spread(1));
}
inline V sigmoid(V x)
{
    return inverse(onePlusExponential(x));
}

// p / q, q from 1 to 422.
struct Quotient
{
    V p, q;
    V value() const { return p * inverse(q); }
};
// x P(x^2) / Q(x^2), best in the largest relative error: 4e-7 with the roundings. At |x| = 9.02 tanh rounds to 1.
inline Quotient tanhOf(V x)
{
    V const v = largest(spread(-9.02F), smallest(spread(9.02F), x)), z = v * v;
    constexpr float kP[] = {2.0583553e-05F, 0.0034940394F, 0.13379723F, 1};
    constexpr float kQ[] = {0.00032831004F, 0.025871092F, 0.46713036F, 1};
    V p = spread(1.3319155e-08F), q = spread(7.762057e-07F);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        p = sumOfProduct(p, z, spread(kP[i]));
        q = sumOfProduct(q, z, spread(kQ[i]));
    }
    return {v * p, q};
}
// sigmoid(x) times the quotient, with one division.
inline V sigmoidTimes(V x, Quotient y)
{
    return y.p * inverse(onePlusExponential(x) * y.q);
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

// Adds the products of n states of R rows. Prefetches as many vectors from `next`.
template <int G, int R>
inline void multiply(Sums<G, R>& sums, float const* r, float const* h, int64_t stride, int64_t n, float const* next)
{
    for (int64_t k = 0; k < n; ++k, r += G * kFloats, next += kFloats) {
        __builtin_prefetch(next);
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
}

inline void storePart(float* to, V v, int64_t count)
{
    if (count >= kFloats)
        return store(to, v);
    for (int64_t i = 0; i < count; ++i)
        to[i] = v[i];
}

// What a cell makes of the sums of one row: the new state. first: unit of the block; at: there, in the row; x: there.
// kOptions: with clip, inputForget and peepholes.
template <bool kOptions>
inline V clipped(Step const& s, V v)
{
    return kOptions ? largest(spread(-s.clip), smallest(spread(s.clip), v)) : v;
}
template <bool kOptions>
struct Tanh
{
    static constexpr int kGates = 1;
    static V next(Step const& s, V const* sums, float const* x, int64_t, int64_t)
    {
        return tanhOf(clipped<kOptions>(s, sums[0] + load(x))).value();
    }
};
template <bool kOptions>
struct Relu
{
    static constexpr int kGates = 1;
    static V next(Step const& s, V const* sums, float const* x, int64_t, int64_t)
    {
        return largest(V{}, clipped<kOptions>(s, sums[0] + load(x)));
    }
};
template <bool kOptions>
struct Lstm
{
    static constexpr int kGates = 4;
    static V next(Step const& s, V const* sums, float const* x, int64_t at, int64_t)
    {
        V const forget = sigmoid(sums[2] + load(x + 2 * s.gate));
        V const added = sigmoidTimes(sums[0] + load(x), tanhOf(sums[3] + load(x + 3 * s.gate)));
        V const c = sumOfProduct(forget, load(s.c + at), added);
        store(s.c + at, c);
        return sigmoidTimes(sums[1] + load(x + s.gate), tanhOf(c));
    }
};
template <>
struct Lstm<true>
{
    static constexpr int kGates = 4;
    // i, o, f
    static V gate(Step const& s, V const* sums, float const* x, int which, V c, int64_t first)
    {
        V v = sums[which] + load(x + which * s.gate);
        if (s.peepholes)
            v = sumOfProduct(load(s.peepholes + which * s.peepholeRow + first), c, v);
        return clipped<true>(s, v);
    }
    static V next(Step const& s, V const* sums, float const* x, int64_t at, int64_t first)
    {
        V const before = load(s.c + at), in = sigmoid(gate(s, sums, x, 0, before, first));
        V const forget = s.inputForget ? spread(1) - in : sigmoid(gate(s, sums, x, 2, before, first));
        V const added = in * tanhOf(clipped<true>(s, sums[3] + load(x + 3 * s.gate))).value();
        V const c = sumOfProduct(forget, before, added);
        store(s.c + at, c);
        return sigmoidTimes(gate(s, sums, x, 1, c, first), tanhOf(c));
    }
};
inline V mixed(V z, V n, V h) // (1 - z) n + z h
{
    return sumOfProduct(z, h - n, n);
}
template <bool kOptions>
struct GruLinear
{
    static constexpr int kGates = 3;
    static V next(Step const& s, V const* sums, float const* x, int64_t at, int64_t first)
    {
        V const z = sigmoid(clipped<kOptions>(s, sums[0] + load(x)));
        V const r = sigmoid(clipped<kOptions>(s, sums[1] + load(x + s.gate)));
        V const n = sumOfProduct(r, sums[2] + load(s.bias + first), load(x + 2 * s.gate));
        return mixed(z, tanhOf(clipped<kOptions>(s, n)).value(), load(s.before + at));
    }
};
template <bool kOptions>
struct GruGates
{
    static constexpr int kGates = 2;
    static V next(Step const& s, V const* sums, float const* x, int64_t at, int64_t)
    {
        store(s.z + at, sigmoid(clipped<kOptions>(s, sums[0] + load(x))));
        return sigmoid(clipped<kOptions>(s, sums[1] + load(x + s.gate))) * load(s.before + at);
    }
};
template <bool kOptions>
struct GruState
{
    static constexpr int kGates = 1;
    static V next(Step const& s, V const* sums, float const* x, int64_t at, int64_t)
    {
        V const n = tanhOf(clipped<kOptions>(s, sums[0] + load(x))).value();
        return mixed(load(s.z + at), n, load(s.before + at));
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

// Sums of some rows, [row][gate][V].
template <int G, int R>
inline void keep(Sums<G, R> const& sums, float* to)
{
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
        for (int g = 0; g < G; ++g)
            store(to + (i * G + g) * kFloats, sums.v[i][g]);
}
template <int G, int R>
inline Sums<G, R> kept(float const* from)
{
    Sums<G, R> sums;
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
        for (int g = 0; g < G; ++g)
            sums.v[i][g] = load(from + (i * G + g) * kFloats);
    return sums;
}

// Sums went through memory: the cells of all rows side by side would need more registers than there are.
template <class Cell>
[[gnu::noinline]] void finishRows(Step const& s, float const* sums, int64_t row, int64_t count, int64_t block)
{
    constexpr int kGates = Cell::kGates;
#pragma GCC unroll 1
    for (int64_t i = 0; i < count; ++i) {
        Sums<kGates, 1> const one = kept<kGates, 1>(sums + i * kGates * kFloats);
        finishRow<Cell>(s, one.v[0], row + i, block);
    }
}

// What rows have in common: their part of the panel, of states [k, k + count) of all, and what comes after it.
struct Part
{
    float const *panel, *next;
    int64_t block, k, count;
};

template <class Cell, int R>
inline void rowsOf(Step const& s, Part const& p, int64_t row, int64_t rows, int64_t tile, float* sums)
{
    constexpr int kGates = Cell::kGates;
    if (rows == R) {
        Sums<kGates, R> now = {};
        if (p.k)
            now = kept<kGates, R>(sums);
        multiply<kGates, R>(now, p.panel, s.h + row * s.stride + p.k, s.stride, p.count,
                            p.next + (tile < kGates ? tile : 0) * p.count * kFloats);
        keep<kGates, R>(now, sums);
        if (p.k + p.count < s.hidden)
            return;
        finishRows<Cell>(s, sums, row, R, p.block);
    } else if constexpr (R > 1) {
        rowsOf<Cell, R - 1>(s, p, row, rows, tile, sums);
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

// Parts of a panel that stay in the L1 cache while all tiles of rows pass.
constexpr int64_t kPanelFloats = TW_FLOATS == 16 ? 6144 : 4096; // of 48 KiB and of 32
constexpr int64_t kGroupRows = 48;                              // whose sums stay there too

template <class Cell>
inline void groupOf(Step const& s, int64_t block, int64_t begin, int64_t end)
{
    constexpr int64_t kRows = kMostRows<Cell>, kWidth = Cell::kGates * kFloats;
    alignas(64) float sums[kGroupRows * kWidth];
    int64_t const tiles = (end - begin + kRows - 1) / kRows;
    int64_t const most = tiles > 1 ? kPanelFloats / kWidth : s.hidden, parts = (s.hidden + most - 1) / most;
    Part p{s.r + block * s.hidden * kWidth, nullptr, block, 0, 0};
    for (int64_t part = 0; part < parts; ++part, p.k += p.count, p.panel = p.next) {
        p.count = (s.hidden - p.k) / (parts - part);
        p.next = p.panel + p.count * kWidth;
        int64_t row = begin;
        for (int64_t tile = 0; tile < tiles; ++tile) {
            int64_t const rows = (end - row + tiles - tile - 1) / (tiles - tile); // about equal
            rowsOf<Cell, kMostRows<Cell>>(s, p, row, rows, tile, sums + (row - begin) * kWidth);
            row += rows;
        }
    }
}

template <class Cell>
void step(Step const& s)
{
    constexpr int kGates = Cell::kGates;
    for (int64_t i = s.begin; i < s.end; ++i) {
        int64_t const block = s.backwards ? s.begin + s.end - 1 - i : i;
        if (s.rows == 1) {
            auto const sums = multiplyRow<kGates>(s.r + block * s.hidden * kGates * kFloats, s.h, s.hidden);
            finishRow<Cell>(s, sums.v[0], 0, block);
            continue;
        }
        for (int64_t row = 0; row < s.rows; row += kGroupRows)
            groupOf<Cell>(s, block, row, row + kGroupRows < s.rows ? row + kGroupRows : s.rows);
    }
}

template <class Cell>
void cells(Step const& s)
{
    for (int64_t n = 0; n < s.rows; ++n)
        for (int64_t block = 0; block < s.end; ++block) {
            V sums[Cell::kGates];
#pragma GCC unroll 4
            for (int g = 0; g < Cell::kGates; ++g)
                sums[g] = load(s.sums + n * s.sumsRow + g * s.gate + block * kFloats);
            finishRow<Cell>(s, sums, n, block);
        }
}

} // namespace

constinit ops::recurrence::StepKernels const kSteps{
    kFloats,
    {{step<Tanh<false>>, step<Relu<false>>, step<Lstm<false>>, step<GruLinear<false>>, step<GruGates<false>>,
      step<GruState<false>>},
     {step<Tanh<true>>, step<Relu<true>>, step<Lstm<true>>, step<GruLinear<true>>, step<GruGates<true>>,
      step<GruState<true>>}},
    {{cells<Tanh<false>>, cells<Relu<false>>, cells<Lstm<false>>, cells<GruLinear<false>>, cells<GruGates<false>>,
      cells<GruState<false>>},
     {cells<Tanh<true>>, cells<Relu<true>>, cells<Lstm<true>>, cells<GruLinear<true>>, cells<GruGates<true>>,
      cells<GruState<true>>}}};

} // namespace tw::TW_ISA
