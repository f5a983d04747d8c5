// SPDX-License-Identifier: Apache-2.0
// The kernels of rows.h, written once with the compiler's vector types and compiled into each instruction set's
// namespace. For the ISA files alone, which define TW_ISA (the namespace) and TW_FLOATS (in a vector).
#include "kernels/cpu/float_vectors.h"
#include "kernels/cpu/rows.h"

namespace tw::TW_ISA {

namespace {

using Half [[gnu::vector_size(TW_FLOATS * 2)]] = float;
using Doubles [[gnu::vector_size(TW_FLOATS * 4)]] = double; // as many as Half has

// Maxima and minima as the instruction gives them, which loses NaN of `a`: pairs of vectors are looked at for it.
#if TW_FLOATS == 16
using Mask = __mmask16;
inline V largest(V a, V b) // masked: the plain one makes GCC 12 warn of its own header
{
    return V(_mm512_mask_max_ps(__m512(a), 0xffff, __m512(a), __m512(b)));
}
inline V smallest(V a, V b)
{
    return V(_mm512_mask_min_ps(__m512(a), 0xffff, __m512(a), __m512(b)));
}
inline Mask anyNan(V a, V b)
{
    return _mm512_cmp_ps_mask(__m512(a), __m512(b), _CMP_UNORD_Q);
}
inline bool isSet(Mask m)
{
    return m != 0;
}
inline V withNan(V v, Mask m)
{
    return V(_mm512_mask_mov_ps(__m512(v), m, _mm512_set1_ps(__builtin_nanf(""))));
}
#else
using Mask = __m256;
inline V largest(V a, V b)
{
    return V(_mm256_max_ps(__m256(a), __m256(b)));
}
inline V smallest(V a, V b)
{
    return V(_mm256_min_ps(__m256(a), __m256(b)));
}
inline Mask anyNan(V a, V b)
{
    return _mm256_cmp_ps(__m256(a), __m256(b), _CMP_UNORD_Q);
}
inline bool isSet(Mask m)
{
    return _mm256_movemask_ps(m) != 0;
}
inline V withNan(V v, Mask m) // ones are a NaN
{
    return V(_mm256_or_ps(__m256(v), m));
}
#endif
inline Mask either(Mask a, Mask b)
{
#if TW_FLOATS == 16
    return Mask(a | b);
#else
    return _mm256_or_ps(a, b);
#endif
}

// T: a vector or one float. choose: of numbers alone. enter: what is joined, where that is not the element.
struct Sum
{
    static constexpr float kFirst = 0;
    template <class T>
    static T enter(T v)
    {
        return v;
    }
    template <class T>
    static T join(T a, T b)
    {
        return a + b;
    }
};
struct Max
{
    static constexpr float kFirst = -__builtin_inff();
    template <class T>
    static T enter(T v)
    {
        return v;
    }
    static V choose(V a, V b) { return largest(a, b); }
    template <class T>
    static T join(T a, T b)
    {
        T const m = b > a ? b : a; // a NaN of a stays
        return b != b ? b : m;
    }
};
struct Min
{
    static constexpr float kFirst = __builtin_inff();
    template <class T>
    static T enter(T v)
    {
        return v;
    }
    static V choose(V a, V b) { return smallest(a, b); }
    template <class T>
    static T join(T a, T b)
    {
        T const m = b < a ? b : a;
        return b != b ? b : m;
    }
};

struct SumAbs : Sum
{
    template <class T>
    static T enter(T v)
    {
        return v < 0 ? -v : v; // -0 is 0 in a sum
    }
};
struct SumSquares : Sum
{
    template <class T>
    static T enter(T v)
    {
        return v * v;
    }
};
struct MaxAbs
{
    static constexpr float kFirst = 0;
    template <class T>
    static T enter(T v)
    {
        return v < 0 ? -v : v;
    }
    template <class T>
    static T join(T a, T b)
    {
        return Max::join(a, b);
    }
};

template <class Op>
float joinRow(float const* x, int64_t n)
{
    V acc[4];
    for (V& a : acc)
        a = V{} + Op::kFirst;
    int64_t i = 0;
    for (; i + 4 * kFloats <= n; i += 4 * kFloats)
        for (int k = 0; k < 4; ++k)
            acc[k] = Op::join(acc[k], Op::enter(load(x + i + k * kFloats)));
    for (; i + kFloats <= n; i += kFloats)
        acc[0] = Op::join(acc[0], Op::enter(load(x + i)));
    V const v = Op::join(Op::join(acc[0], acc[1]), Op::join(acc[2], acc[3]));
    float lanes[TW_FLOATS];
    store(lanes, v);
    for (int width = TW_FLOATS / 2; width > 0; width /= 2)
        for (int k = 0; k < width; ++k)
            lanes[k] = Op::join(lanes[k], lanes[k + width]);
    float joined = lanes[0];
    for (; i < n; ++i)
        joined = Op::join(joined, Op::enter(x[i]));
    return joined;
}

template <class Op>
float extremeOfRow(float const* x, int64_t n)
{
    constexpr int64_t kStep = 4 * kFloats;
    if (n < kStep)
        return joinRow<Op>(x, n);
    V acc[4];
    for (int k = 0; k < 4; ++k)
        acc[k] = load(x + k * kFloats);
    Mask nan = either(anyNan(acc[0], acc[1]), anyNan(acc[2], acc[3]));
    for (int64_t i = kStep; i < n; i += kStep) {
        int64_t const at = i + kStep <= n ? i : n - kStep; // the last ones once more
        V v[4];
        for (int k = 0; k < 4; ++k) {
            v[k] = load(x + at + k * kFloats);
            acc[k] = Op::choose(acc[k], v[k]);
        }
        nan = either(nan, either(anyNan(v[0], v[1]), anyNan(v[2], v[3])));
    }
    if (isSet(nan))
        return __builtin_nanf("");
    float lanes[TW_FLOATS];
    store(lanes, Op::choose(Op::choose(acc[0], acc[1]), Op::choose(acc[2], acc[3])));
    for (int width = TW_FLOATS / 2; width > 0; width /= 2)
        for (int k = 0; k < width; ++k)
            lanes[k] = Op::join(lanes[k], lanes[k + width]);
    return lanes[0];
}

// kRows rows as a tree, then joined with y: the rows come as streams, y stays in L1.
template <class Op, int kRows, class T>
void joinGroup(float const* x, int64_t step, float* y)
{
    T r[kRows];
    for (int k = 0; k < kRows; ++k)
        r[k] = load<T>(x + k * step);
    for (int k = 0; k < kRows; ++k)
        r[k] = Op::enter(r[k]);
    for (int width = kRows / 2; width > 0; width /= 2)
        for (int k = 0; k < width; ++k)
            r[k] = Op::join(r[k], r[k + width]);
    T const to = Op::join(load<T>(y), r[0]);
    __builtin_memcpy(y, &to, sizeof(T));
}

// The same of rows of numbers, with a look for NaN.
template <class Op, int kRows>
void chooseGroup(float const* x, int64_t step, float* y)
{
    V r[kRows];
    for (int k = 0; k < kRows; ++k)
        r[k] = load(x + k * step);
    V const old = load(y);
    Mask nan = anyNan(old, r[0]);
    for (int k = 0; k + 1 < kRows; k += 2)
        nan = either(nan, anyNan(r[k], r[k + 1]));
    for (int width = kRows / 2; width > 0; width /= 2)
        for (int k = 0; k < width; ++k)
            r[k] = Op::choose(r[k], r[k + width]);
    store(y, withNan(Op::choose(r[0], old), nan));
}

template <class Op, int kRows>
void joinGroups(float const* x, int64_t step, int64_t n, float* y)
{
    int64_t i = 0;
    for (; i + kFloats <= n; i += kFloats)
        if constexpr (Op::kFirst != 0)
            chooseGroup<Op, kRows>(x + i, step, y + i);
        else
            joinGroup<Op, kRows, V>(x + i, step, y + i);
    if (i + kFloats / 2 <= n) {
        joinGroup<Op, kRows, Half>(x + i, step, y + i);
        i += kFloats / 2;
    }
    for (; i < n; ++i)
        joinGroup<Op, kRows, float>(x + i, step, y + i);
}

template <class Op>
void joinRows(float const* x, int64_t step, int64_t rows, int64_t n, float* y)
{
    int64_t r = 0;
    for (; r + 8 <= rows; r += 8)
        joinGroups<Op, 8>(x + r * step, step, n, y);
    for (; r + 4 <= rows; r += 4)
        joinGroups<Op, 4>(x + r * step, step, n, y);
    for (; r + 2 <= rows; r += 2)
        joinGroups<Op, 2>(x + r * step, step, n, y);
    if (r < rows)
        joinGroups<Op, 1>(x + r * step, step, n, y);
}

double productRow(float const* x, int64_t n)
{
    constexpr int64_t kWidth = TW_FLOATS / 2;
    Doubles acc[4];
    for (Doubles& a : acc)
        a = Doubles{} + 1.0;
    int64_t i = 0;
    for (; i + 4 * kWidth <= n; i += 4 * kWidth)
        for (int k = 0; k < 4; ++k)
            acc[k] *= __builtin_convertvector(load<Half>(x + i + k * kWidth), Doubles);
    Doubles const v = (acc[0] * acc[1]) * (acc[2] * acc[3]);
    double product = 1;
    for (int k = 0; k < kWidth; ++k)
        product *= v[k];
    for (; i < n; ++i)
        product *= double(x[i]);
    return product;
}

// n numbers of a vector, and `other` behind them.
V loadSome(float const* p, int64_t n, float other)
{
    float v[TW_FLOATS];
    for (int64_t i = 0; i < kFloats; ++i)
        v[i] = i < n ? p[i] : other;
    return load(v);
}
float sumOfPowers(float const* x, int64_t n, float m)
{
    V acc[4] = {};
    int64_t i = 0;
    for (; i + 4 * kFloats <= n; i += 4 * kFloats)
        for (int k = 0; k < 4; ++k)
            acc[k] += powerOf(load(x + i + k * kFloats) - m);
    for (; i + kFloats <= n; i += kFloats)
        acc[0] += powerOf(load(x + i) - m);
    if (i < n)
        acc[1] += powerOf(loadSome(x + i, n - i, -__builtin_inff()) - m);
    float lanes[TW_FLOATS], sum = 0;
    store(lanes, (acc[0] + acc[1]) + (acc[2] + acc[3]));
    for (float const lane : lanes)
        sum += lane;
    return sum;
}
void addPowers(float const* x, int64_t step, int64_t rows, int64_t n, float const* m, float* y)
{
    for (int64_t i = 0; i < n; i += kFloats) {
        bool const whole = i + kFloats <= n;
        V const most = whole ? load(m + i) : loadSome(m + i, n - i, 0);
        V sum = whole ? load(y + i) : loadSome(y + i, n - i, 0);
        for (int64_t r = 0; r < rows; ++r) {
            float const* from = x + r * step + i;
            sum += powerOf((whole ? load(from) : loadSome(from, n - i, 0)) - most);
        }
        if (whole) {
            store(y + i, sum);
            continue;
        }
        float lanes[TW_FLOATS];
        store(lanes, sum);
        for (int64_t k = 0; k < n - i; ++k)
            y[i + k] = lanes[k];
    }
}
void lessTwo(float const* x, int64_t n, float m, float l, float* y)
{
    int64_t i = 0;
    for (; i + kFloats <= n; i += kFloats)
        store(y + i, (load(x + i) - m) - l);
    for (; i < n; ++i)
        y[i] = (x[i] - m) - l;
}
void lessTwoRows(float const* x, int64_t n, float const* m, float const* l, float* y)
{
    int64_t i = 0;
    for (; i + kFloats <= n; i += kFloats)
        store(y + i, (load(x + i) - load(m + i)) - load(l + i));
    for (; i < n; ++i)
        y[i] = (x[i] - m[i]) - l[i];
}

} // namespace

extern kernels::RowKernels const kRows = {
    {joinRow<Sum>, extremeOfRow<Max>, extremeOfRow<Min>, joinRow<SumAbs>, joinRow<SumSquares>, joinRow<MaxAbs>},
    {joinRows<Sum>, joinRows<Max>, joinRows<Min>, joinRows<SumAbs>, joinRows<SumSquares>, joinRows<MaxAbs>},
    productRow,
    sumOfPowers,
    addPowers,
    lessTwo,
    lessTwoRows};

} // namespace tw::TW_ISA
