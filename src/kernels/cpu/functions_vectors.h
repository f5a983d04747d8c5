// SPDX-License-Identifier: Apache-2.0
// The functions of functions.h, written once with the compiler's vector types and compiled into each instruction set's
// namespace. For the ISA files alone, which define TW_ISA (the namespace) and TW_DOUBLES (in a vector). Polynomials are
// Taylor's, or least-maximum fits made for this file; the relative error stands beside each.
#include <immintrin.h>

#include "kernels/cpu/functions.h"

namespace tw::TW_ISA {

namespace {

constexpr int64_t kDoubles = TW_DOUBLES;
using D [[gnu::vector_size(TW_DOUBLES * 8)]] = double;
using L [[gnu::vector_size(TW_DOUBLES * 8)]] = long long;
using F [[gnu::vector_size(TW_DOUBLES * 4), gnu::aligned(4), gnu::may_alias]] = float;

constexpr double kPi = 3.14159265358979324, kHalfPi = kPi / 2, kLn2 = 0.693147180559945309;
constexpr double kInf = __builtin_inf();
constexpr double kWhole = 0x1.8p52; // a sum with it has the nearest whole number in its lowest bits

inline D spread(double v)
{
    return D{} + v;
}
inline D root(D x)
{
#if TW_DOUBLES == 8
    return D(_mm512_maskz_sqrt_pd(0xff, __m512d(x)));
#else
    return D(_mm256_sqrt_pd(__m256d(x)));
#endif
}
inline D magnitude(D x)
{
    return D(L(x) & 0x7fffffffffffffffll);
}
// `a` (>= 0) with the sign of x.
inline D withSign(D a, D x)
{
    return D(L(a) | (L(x) & (-0x7fffffffffffffffll - 1)));
}
// Lowest coefficient first.
template <int kTerms>
inline D polynomial(D x, double const (&c)[kTerms])
{
    D y = spread(c[kTerms - 1]);
    for (int i = kTerms - 2; i >= 0; --i)
        y = y * x + c[i];
    return y;
}

// ---- Of angles: x = n pi / 2 + r, |r| <= pi / 4.

constexpr double kMostTurns = 1e6; // n stays below 2^20, its product with kHalfPiHigh is exact
constexpr double kHalfPiHigh = 0x1.921fb544p0, kHalfPiLow = 0x1.0b4611a626331p-34;

constexpr double kSin[] = {1, -1. / 6, 1. / 120, -1. / 5040, 1. / 362880, -1. / 39916800}; // of r^2, 1e-11
constexpr double kCos[] = {1, -1. / 2, 1. / 24, -1. / 720, 1. / 40320, -1. / 3628800};     // of r^2, 2e-10

struct Angle
{
    L n;
    D sin, cos; // of r
};
inline Angle reduced(D x)
{
    D const shifted = x * (1 / kHalfPi) + kWhole, n = shifted - kWhole;
    D const r = (x - n * kHalfPiHigh) - n * kHalfPiLow, z = r * r;
    return Angle{L(shifted), r * polynomial(z, kSin), polynomial(z, kCos)};
}
inline D ofQuarter(Angle const& a, L quarter)
{
    D const v = (quarter & 1) != 0 ? a.cos : a.sin;
    return D(L(v) ^ ((quarter & 2) << 62));
}

struct Sin
{
    static constexpr double kMost = kMostTurns;
    static D of(D x)
    {
        Angle const a = reduced(x);
        return x == 0 ? x : ofQuarter(a, a.n); // -0 stays
    }
};
struct Cos
{
    static constexpr double kMost = kMostTurns;
    static D of(D x)
    {
        Angle const a = reduced(x);
        return ofQuarter(a, a.n + 1);
    }
};
struct Tan
{
    static constexpr double kMost = kMostTurns;
    static D of(D x)
    {
        Angle const a = reduced(x);
        D const t = ((a.n & 1) != 0 ? -a.cos : a.sin) / ((a.n & 1) != 0 ? a.sin : a.cos);
        return x == 0 ? x : t;
    }
};

// ---- Hyperbolic, from exp: x = n ln 2 + r, |r| <= ln(2) / 2; 2e-10.

constexpr double kExp[] = {1, 1, 1. / 2, 1. / 6, 1. / 24, 1. / 120, 1. / 720, 1. / 5040, 1. / 40320};
constexpr double kMostExp = 700; // far beyond float, its result and the inverse of that within double

inline D exponential(D x) // |x| <= kMostExp
{
    D const shifted = x * (1 / kLn2) + kWhole, n = shifted - kWhole;
    return polynomial(x - n * kLn2, kExp) * D((L(shifted) + 1023) << 52);
}

constexpr double kSinh[] = {1, 1. / 6, 1. / 120, 1. / 5040}; // of x^2, |x| <= 1/8: 2e-13

struct Sinh
{
    static constexpr double kMost = kInf;
    static D of(D x)
    {
        D const a = magnitude(x), e = exponential(a < kMostExp ? a : spread(kMostExp));
        D const y = a < 0.125 ? x * polynomial(x * x, kSinh) : withSign((e - 1 / e) * 0.5, x);
        return x != x ? x : y;
    }
};
struct Cosh
{
    static constexpr double kMost = kInf;
    static D of(D x)
    {
        D const a = magnitude(x), e = exponential(a < kMostExp ? a : spread(kMostExp));
        return x != x ? x : (e + 1 / e) * 0.5;
    }
};

// ---- Their inverses, from log: x = 2^e m, m in [3/4, 3/2), log m = 2 s Q(s^2) with s = (m - 1) / (m + 1); 5e-11.

constexpr double kLog[] = {2, 2. / 3, 2. / 5, 2. / 7, 2. / 9, 2. / 11, 2. / 13};

inline D logarithm(D x) // a positive, normal number
{
    constexpr long long kThreeQuarters = 0x3fe8000000000000ll;
    L const e = (L(x) - kThreeQuarters) & -0x10000000000000ll; // in the place of the exponent
    D const m = D(L(x) - e), s = (m - 1) / (m + 1);
    // The exponent as a number: its bits below those of kWhole. The sign comes along by the sum.
    D const n = D(L(spread(kWhole)) + ((e >> 52))) - kWhole;
    return n * kLn2 + s * polynomial(s * s, kLog);
}

constexpr double kAsinh[] = {1, -1. / 6, 3. / 40, -15. / 336}; // of x^2, |x| <= 1/20: 1e-12
constexpr double kAtanh[] = {1, 1. / 3, 1. / 5, 1. / 7};

struct Asinh
{
    static constexpr double kMost = kInf;
    static D of(D x)
    {
        D const a = magnitude(x), finite = a < kInf ? a : spread(1);
        D const y =
            a < 0.05 ? x * polynomial(x * x, kAsinh) : withSign(logarithm(finite + root(finite * finite + 1)), x);
        return a < kInf ? y : x; // infinities and NaN
    }
};
struct Acosh
{
    static constexpr double kMost = kInf;
    static D of(D x)
    {
        D const inside = (x >= 1) & (x < kInf) ? x : spread(1);
        D const y = logarithm(inside + root(inside * inside - 1));
        return x == kInf ? x : x >= 1 ? y : spread(__builtin_nan(""));
    }
};
struct Atanh
{
    static constexpr double kMost = kInf;
    static D of(D x)
    {
        D const a = magnitude(x), inside = a < 1 ? a : spread(0);
        D const y =
            a < 0.05 ? x * polynomial(x * x, kAtanh) : withSign(0.5 * logarithm((1 + inside) / (1 - inside)), x);
        return a < 1 ? y : a == 1 ? withSign(spread(kInf), x) : spread(__builtin_nan(""));
    }
};

// ---- Inverses of functions of angles.

constexpr double kAsin[] = {1.0000000002545968,  0.1666665694495803,  0.07500604094536334, 0.04450308733470131,
                            0.03190079832522416, 0.01413951299950851, 0.03788555330339311}; // of x^2 <= 1/4: 3e-10
constexpr double kAtan[] = {0.9999999993963232,   -0.3333330761375108, 0.1999821629118672,
                            -0.14240070783605513, 0.10573388305574306, -0.06034553561193264}; // x^2 <= 0.1716: 6e-10

// asin a for a <= 1/2; asin of the root of (1 - a) / 2 for others.
inline D halfAsin(D a)
{
    D const z = a > 0.5 ? (1 - a) * 0.5 : a * a;
    return (a > 0.5 ? root(z) : a) * polynomial(z, kAsin);
}
struct Asin
{
    static constexpr double kMost = kInf;
    static D of(D x)
    {
        D const a = magnitude(x), h = halfAsin(a);
        D const y = withSign(a > 0.5 ? kHalfPi - 2 * h : h, x);
        return a <= 1 ? y : spread(__builtin_nan(""));
    }
};
struct Acos
{
    static constexpr double kMost = kInf;
    static D of(D x)
    {
        D const a = magnitude(x), h = halfAsin(a);
        D const y = a > 0.5 ? (x > 0 ? 2 * h : kPi - 2 * h) : kHalfPi - withSign(h, x);
        return a <= 1 ? y : spread(__builtin_nan(""));
    }
};
struct Atan
{
    static constexpr double kMost = kInf;
    static D of(D x)
    {
        constexpr double kLow = 0.41421356237309503, kHigh = 2.41421356237309505; // tangents of pi / 8, 3 pi / 8
        D const a = magnitude(x);
        D const over = a > kHigh ? spread(-1) : a > kLow ? a - 1 : a;
        D const under = a > kHigh ? a : a > kLow ? a + 1 : spread(1), t = over / under;
        D const base = a > kHigh ? spread(kHalfPi) : a > kLow ? spread(kPi / 4) : spread(0);
        return x != x ? x : withSign(base + t * polynomial(t * t, kAtan), x);
    }
};

template <class Function>
inline bool vector(float const* x, float* y)
{
    D const v = __builtin_convertvector(*reinterpret_cast<F const*>(x), D);
    *reinterpret_cast<F*>(y) = __builtin_convertvector(Function::of(v), F);
    if constexpr (Function::kMost < kInf) {
        L const large = magnitude(v) > Function::kMost;
#if TW_DOUBLES == 8
        return _mm512_movepi64_mask(__m512i(large)) == 0;
#else
        return _mm256_movemask_pd(__m256d(large)) == 0;
#endif
    }
    return true;
}

template <class Function>
bool row(float const* x, float* y, int64_t n)
{
    bool ok = true;
    int64_t i = 0;
    for (; i + kDoubles <= n; i += kDoubles)
        ok = vector<Function>(x + i, y + i) && ok;
    if (i < n) {
        float in[TW_DOUBLES]{}, out[TW_DOUBLES];
        for (int64_t k = i; k < n; ++k)
            in[k - i] = x[k];
        ok = vector<Function>(in, out) && ok;
        for (int64_t k = i; k < n; ++k)
            y[k] = out[k - i];
    }
    return ok;
}

} // namespace

extern kernels::RowFunctions const kFunctions = {row<Sin>,  row<Cos>,  row<Tan>,   row<Sinh>,  row<Cosh>, row<Asin>,
                                                 row<Acos>, row<Atan>, row<Asinh>, row<Acosh>, row<Atanh>};

} // namespace tw::TW_ISA
