// SPDX-License-Identifier: Apache-2.0
// Polynomials are weighted least-maximum fits made for this file (iterated reweighted least squares on Chebyshev
// nodes); the comment of each names its interval and the relative error of the fit.
#include "kernels/cpu/jit/vector_math.h"

#include <cmath>
#include <limits>
#include <span>

namespace tw::kernels::jit {

namespace {

// ln 2 in two parts: n * kLn2High is exact for |n| < 2^9. Both positive, or an infinite n would make NaN of log.
constexpr float kLn2High = 0.693145751953125f, kLn2Low = 1.42860682e-6f;
constexpr uint32_t kAbsMask = 0x7fffffffu, kSignMask = 0x80000000u;

// exp(r) - 1 = r + r^2 Q(r), |r| <= ln(2) / 2: 1.4e-8.
constexpr float kExpm1[] = {0.49999998149611347f, 0.166665434241751f, 0.041667200714714456f, 0.008366547140270743f,
                            0.0013882516255231366f};
// 2^t = (t^2 + base + slope t) / (t^2 + base - slope t), |t| <= 1/2: 4.4e-7.
constexpr float kExp2Slope = 8.677823351414194f, kExp2Base = 25.039061659469837f;
// GELU(x) = x sigmoid(u) with u = -ln 2 x G(x^2); in |x| <= 5.5, beyond which GELU is x, or 0 within 1.1e-7. By the
// error function: u = log(F / (1 - F)) with F the normal distribution, 7e-8 absolute in GELU; by tanh: exact.
constexpr float kGeluEnd = 5.5f;
constexpr float kGeluErf[] = {-2.3022072315216064f,    -0.10483857989311218f,    9.559279715176672e-05f,
                              0.00015938944125082344f, -1.1452434591774363e-05f, 3.8504529698002443e-07f,
                              -5.209915165949042e-09f};
constexpr float kGeluTanh[] = {-2.302208185195923f, -0.10294324159622192f}; // 2 sqrt(2 / pi), 0.044715 of it
// log(1 + f) = f - f^2/2 + f^3 P(f), -1/4 <= f <= 1/2: 5e-9.
constexpr float kLog[] = {0.33333449113473673f, -0.2500009584173656f,  0.19990861190871792f, -0.16647312120738683f,
                          0.14478395406033504f, -0.13161194595513714f, 0.10463022005966285f, -0.045074787613646757f};
// log(1 + t) = t R(t), 0 <= t <= 1: 3e-8.
constexpr float kLog1p[] = {0.9999999698793589f,   -0.4999949313793215f,   0.3331909675444339f,
                            -0.24842981790996257f, 0.19106005106535429f,   -0.13663242276493684f,
                            0.07822591040079341f,  -0.029505213305649716f, 0.005232687907581701f};
// erf(x) = x P(x^2) / Q(x^2), |x| <= 3.93: 2e-8. 1 - erf(3.92) is below half a unit of float at 1.
constexpr float kErfP[] = {1.1283791453845247f,    0.1907815423939961f,   0.05278999744325096f,
                           0.0037795163731534223f, 0.000284807369979232f, 2.0419982343764505e-06f};
constexpr float kErfQ[] = {1.f,
                           0.5024084596283184f,
                           0.11425658945722744f,
                           0.014997248949645135f,
                           0.0011651919228098263f,
                           3.80042984264352e-05f};
constexpr float kErfOne = 3.92f;

// y = polynomial in x, lowest coefficient first.
void horner(VectorCode& c, int y, int x, std::span<float const> p)
{
    c.loadConstant(y, p.back());
    for (size_t i = p.size() - 1; i-- > 0;)
        c.vfmadd213ps(c.vec(y), c.vec(x), c.constant(p[i]));
}

void roundToEven(VectorCode& c, int y, int x)
{
    if (c.avx512())
        c.vrndscaleps(c.vec(y), c.vec(x), 0);
    else
        c.vroundps(Xbyak::Ymm(y), Xbyak::Ymm(x), 0);
}

// n = round(x / ln 2), x = x - n ln 2.
void reduceExp(VectorCode& c, int x, int n)
{
    c.vmulps(c.vec(n), c.vec(x), c.constant(kLog2e));
    roundToEven(c, n, n);
    c.vfnmadd231ps(c.vec(x), c.vec(n), c.constant(kLn2High));
    c.vfnmadd231ps(c.vec(x), c.vec(n), c.constant(kLn2Low));
}

// y = 2^n for -126 <= n <= 127 (n: whole numbers in float, overwritten).
void powerOfTwo(VectorCode& c, int y, int n)
{
    if (c.avx512()) {
        c.loadConstant(y, 1.f);
        c.vscalefps(c.vec(y), c.vec(y), c.vec(n));
        return;
    }
    c.vcvtps2dq(c.vec(y), c.vec(n));
    c.vpslld(c.vec(y), c.vec(y), 23);
    c.vpaddd(c.vec(y), c.vec(y), c.constant(1.f));
}

void divide(VectorCode& c, int y, int x)
{
    c.vdivps(c.vec(y), c.vec(y), c.vec(x));
}

} // namespace

void emitExp(VectorCode& c, int x, int temp)
{
    int const n = temp, q = temp + 1, s = temp + 2;
    // Beyond these exp is infinity and zero in float.
    c.minConstant(x, 89.f, n);
    c.maxConstant(x, -104.f, n);
    reduceExp(c, x, n);
    horner(c, q, x, kExpm1);
    c.vfmadd213ps(c.vec(q), c.vec(x), c.constant(1.f)); // 1 + r Q
    c.vfmadd213ps(c.vec(x), c.vec(q), c.constant(1.f)); // 1 + r (1 + r Q)
    if (c.avx512()) {
        c.vscalefps(c.vec(x), c.vec(x), c.vec(n));
        return;
    }
    // 2^n in two factors: n reaches from -150 to 128.
    c.vcvtps2dq(c.vec(n), c.vec(n));
    c.vpsrad(c.vec(q), c.vec(n), 1);
    c.vpsubd(c.vec(n), c.vec(n), c.vec(q));
    for (int part : {q, n}) {
        c.vpslld(c.vec(s), c.vec(part), 23);
        c.vpaddd(c.vec(s), c.vec(s), c.constant(1.f));
        c.vmulps(c.vec(x), c.vec(x), c.vec(s));
    }
}

void emitExpm1(VectorCode& c, int x, int temp)
{
    int const n = temp, q = temp + 1, s = temp + 2;
    c.minConstant(x, 88.f, n);
    c.maxConstant(x, -87.f, n);
    reduceExp(c, x, n);
    horner(c, q, x, kExpm1);
    c.vmulps(c.vec(s), c.vec(x), c.vec(x));
    c.vfmadd231ps(c.vec(x), c.vec(s), c.vec(q)); // expm1(r)
    powerOfTwo(c, s, n);
    c.vsubps(c.vec(n), c.vec(s), c.constant(1.f));
    c.vfmadd213ps(c.vec(x), c.vec(s), c.vec(n)); // 2^n expm1(r) + (2^n - 1)
}

void emitLog(VectorCode& c, int x, int temp)
{
    int const e = temp, f2 = temp + 1, p = temp + 2, old = temp + 3, t = temp + 4, u = temp + 5;
    if (c.avx512()) {
        c.vgetexpps(c.vec(e), c.vec(x));
        c.vgetmantps(c.vec(x), c.vec(x), 0x0b); // in [3/4, 3/2); NaN for x < 0
        c.vgetexpps(c.vec(p), c.vec(x));
        c.vsubps(c.vec(e), c.vec(e), c.vec(p));
    } else {
        c.vmovaps(c.vec(old), c.vec(x));
        // Denormals first times 2^23.
        c.zero(e);
        c.vmulps(c.vec(p), c.vec(x), c.constant(8388608.f));
        c.loadConstant(f2, std::numeric_limits<float>::min());
        c.vcmpps(c.vec(t), c.vec(x), c.vec(f2), 17);
        c.vblendvps(c.vec(x), c.vec(x), c.vec(p), c.vec(t));
        c.vandps(c.vec(u), c.vec(t), c.constant(23.f));
        // e = floor(log2(x / 0.75)); the mantissa then lies in [3/4, 3/2).
        c.vpsubd(c.vec(e), c.vec(x), c.constant(0.75f));
        c.vpsrad(c.vec(e), c.vec(e), 23);
        c.vpslld(c.vec(p), c.vec(e), 23);
        c.vpsubd(c.vec(x), c.vec(x), c.vec(p));
        c.vcvtdq2ps(c.vec(e), c.vec(e));
        c.vsubps(c.vec(e), c.vec(e), c.vec(u));
    }
    c.vsubps(c.vec(x), c.vec(x), c.constant(1.f));
    horner(c, p, x, kLog);
    c.vmulps(c.vec(f2), c.vec(x), c.vec(x));
    c.vmulps(c.vec(t), c.vec(f2), c.vec(x));
    c.vmulps(c.vec(p), c.vec(p), c.vec(t));
    c.vfmadd231ps(c.vec(p), c.vec(e), c.constant(kLn2Low));
    c.vfmadd231ps(c.vec(p), c.vec(f2), c.constant(-0.5f));
    c.vaddps(c.vec(x), c.vec(x), c.vec(p));
    c.vfmadd231ps(c.vec(x), c.vec(e), c.constant(kLn2High));
    if (c.avx512())
        return; // getexp and getmant brought zero, infinity and NaN through
    float const inf = std::numeric_limits<float>::infinity();
    c.loadConstant(t, inf);
    c.vcmpps(c.vec(p), c.vec(old), c.vec(t), 0);
    c.vblendvps(c.vec(x), c.vec(x), c.vec(t), c.vec(p));
    c.zero(t);
    c.vcmpps(c.vec(p), c.vec(old), c.vec(t), 0);
    c.loadConstant(u, -inf);
    c.vblendvps(c.vec(x), c.vec(x), c.vec(u), c.vec(p));
    c.vcmpps(c.vec(p), c.vec(old), c.vec(t), 25); // not >= 0: negative or NaN; a mask of ones is a NaN
    c.vorps(c.vec(x), c.vec(x), c.vec(p));
}

void emitSigmoid(VectorCode& c, int x, int temp)
{
    c.vxorps(c.vec(x), c.vec(x), c.constantBits(kSignMask));
    emitExp(c, x, temp);
    c.vaddps(c.vec(x), c.vec(x), c.constant(1.f));
    c.loadConstant(temp, 1.f);
    c.vdivps(c.vec(x), c.vec(temp), c.vec(x));
}

// x sigmoid(u) = x B / (B + 2^n A) with 1/2 - u / ln 2 = n + 1/2 + f, |f| <= 1/2 and 2^f = A / B: as many steps for the
// units that multiply as for those that add. Each ends the job with four temporaries:
constexpr float kWhole = 12582912.f; // a sum with it has the nearest whole number in its lowest bits

// AVX2: n = kWhole - u / ln 2 rounded, f = -u / ln 2 less that whole number, which lies from -124 to 116.
void timesSigmoid256(VectorCode& c, int x, int n, int f, int a, int b)
{
    c.vpslld(c.vec(n), c.vec(n), 23);
    c.vmulps(c.vec(b), c.vec(f), c.constant(kExp2Slope));
    c.vfmadd213ps(c.vec(f), c.vec(f), c.constant(kExp2Base));
    c.vaddps(c.vec(a), c.vec(f), c.vec(b));
    c.vsubps(c.vec(b), c.vec(f), c.vec(b));
    c.vpaddd(c.vec(a), c.vec(a), c.vec(n)); // 16 <= A < 32: the exponent stays in its bits
    c.vaddps(c.vec(a), c.vec(a), c.vec(b));
    divide(c, b, a);
    c.vmulps(c.vec(x), c.vec(x), c.vec(b));
}

// AVX-512: n = 1/2 - u / ln 2.
void timesSigmoid512(VectorCode& c, int x, int n, int f, int a, int b)
{
    c.vreduceps(c.vec(f), c.vec(n), 1); // n less the whole number below it: f + 1/2; 0 for infinities
    c.vaddps(c.vec(a), c.vec(f), c.constant(kExp2Slope - 1.f));
    c.vaddps(c.vec(b), c.vec(f), c.constant(-kExp2Slope - 1.f));
    c.vfmadd213ps(c.vec(a), c.vec(f), c.constant(kExp2Base + 0.25f - kExp2Slope / 2));
    c.vfmadd213ps(c.vec(b), c.vec(f), c.constant(kExp2Base + 0.25f + kExp2Slope / 2));
    c.vscalefps(c.vec(a), c.vec(a), c.vec(n)); // rounds n down itself
    c.vaddps(c.vec(a), c.vec(a), c.vec(b));
    if (c.dividesFast()) {
        divide(c, b, a);
    } else {
        c.vrcp14ps(c.vec(n), c.vec(a));
        c.vmulps(c.vec(b), c.vec(b), c.vec(n));
        c.vfnmadd213ps(c.vec(a), c.vec(n), c.constant(2.f));
        c.vmulps(c.vec(b), c.vec(b), c.vec(a));
    }
    c.vmulps(c.vec(x), c.vec(x), c.vec(b));
}

// Relative error below 1e-6 for x > -10, absolute 1e-10 below; NaN or 0 for -infinity.
void emitSwish(VectorCode& c, int x, int temp)
{
    int const n = temp, f = temp + 1, a = temp + 2, b = temp + 3;
    if (!c.avx512()) {
        c.maxConstant(x, -80.f, a); // NaN stays; the product of -80 and its sigmoid is as good as zero
        c.vminps(c.vec(f), c.vec(x), c.constant(86.f));
        c.loadConstant(n, kWhole);
        c.vfnmadd231ps(c.vec(n), c.vec(f), c.constant(kLog2e));
        c.vsubps(c.vec(a), c.vec(n), c.constant(kWhole));
        c.vfmsub132ps(c.vec(f), c.vec(a), c.constant(-kLog2e));
        return timesSigmoid256(c, x, n, f, a, b);
    }
    if (!c.dividesFast())
        c.maxConstant(x, -80.f, a); // Newton's step would make NaN of a sum that is infinite
    c.loadConstant(n, 0.5f);
    c.vfnmadd231ps(c.vec(n), c.vec(x), c.constant(kLog2e));
    timesSigmoid512(c, x, n, f, a, b);
}

// `g`: the coefficients of G, lowest first.
void emitGelu(VectorCode& c, int x, int temp, std::span<float const> g)
{
    int const end = temp, square = temp + 1, u = temp + 2, last = temp + 3;
    c.maxConstant(x, -kGeluEnd, end);
    c.vminps(c.vec(end), c.vec(x), c.constant(kGeluEnd)); // NaN stays in x
    c.vmulps(c.vec(square), c.vec(end), c.vec(end));
    horner(c, u, square, g);
    if (c.avx512()) {
        c.vfmadd213ps(c.vec(u), c.vec(end), c.constant(0.5f));
        return timesSigmoid512(c, x, u, end, square, last);
    }
    c.vmulps(c.vec(end), c.vec(end), c.vec(u));
    c.vaddps(c.vec(square), c.vec(end), c.constant(kWhole));
    c.vsubps(c.vec(u), c.vec(square), c.constant(kWhole));
    c.vsubps(c.vec(end), c.vec(end), c.vec(u));
    timesSigmoid256(c, x, square, end, u, last);
}

// With e = exp(2|x|) - 1: tanh |x| = e / (e + 2).
void emitTanh(VectorCode& c, int x, int temp)
{
    int const old = temp + 3;
    c.vmovaps(c.vec(old), c.vec(x));
    c.vandps(c.vec(x), c.vec(x), c.constantBits(kAbsMask));
    c.minConstant(x, 10.f, temp); // tanh(9.02) is 1 in float
    c.vaddps(c.vec(x), c.vec(x), c.vec(x));
    emitExpm1(c, x, temp);
    c.vaddps(c.vec(temp), c.vec(x), c.constant(2.f));
    divide(c, x, temp);
    c.vandps(c.vec(old), c.vec(old), c.constantBits(kSignMask));
    c.vorps(c.vec(x), c.vec(x), c.vec(old));
}

void emitErf(VectorCode& c, int x, int temp)
{
    int const z = temp, p = temp + 1, q = temp + 2, old = temp + 3, t = temp + 4;
    c.vmovaps(c.vec(old), c.vec(x));
    c.vandps(c.vec(x), c.vec(x), c.constantBits(kAbsMask));
    c.minConstant(x, kErfOne, z);
    c.vmulps(c.vec(z), c.vec(x), c.vec(x));
    horner(c, p, z, kErfP);
    horner(c, q, z, kErfQ);
    c.vmulps(c.vec(p), c.vec(p), c.vec(x));
    c.vdivps(c.vec(p), c.vec(p), c.vec(q));
    // Exactly 1 from kErfOne on, or 1 + erf(-big) would not vanish.
    c.loadConstant(q, kErfOne);
    c.loadConstant(z, 1.f);
    c.select(p, x, VectorCode::kGreaterEqual, q, z, t);
    c.vandps(c.vec(old), c.vec(old), c.constantBits(kSignMask));
    c.vorps(c.vec(x), c.vec(p), c.vec(old));
}

void emitLog1pUnit(VectorCode& c, int t, int temp)
{
    horner(c, temp, t, kLog1p);
    c.vmulps(c.vec(t), c.vec(t), c.vec(temp));
}

bool isShort(ActivationKind kind)
{
    switch (kind) {
    case ActivationKind::kRelu:
    case ActivationKind::kLeakyRelu:
    case ActivationKind::kClip:
    case ActivationKind::kHardSigmoid:
    case ActivationKind::kHardSwish:
    case ActivationKind::kThresholdedRelu:
    case ActivationKind::kSwish:
    case ActivationKind::kGeluErf:
    case ActivationKind::kGeluTanh:
        return true;
    default:
        return false;
    }
}

void emitActivation(VectorCode& c, Activation const& a, int x, int temp)
{
    int const t = temp, u = temp + 1, old = temp + 3;
    switch (a.kind) {
    case ActivationKind::kRelu:
        c.zero(t);
        c.vmaxps(c.vec(x), c.vec(t), c.vec(x));
        return;
    case ActivationKind::kSigmoid:
        return emitSigmoid(c, x, temp);
    case ActivationKind::kTanh:
        return emitTanh(c, x, temp);
    case ActivationKind::kLeakyRelu:
        c.vmulps(c.vec(t), c.vec(x), c.constant(a.alpha));
        c.zero(u);
        c.select(x, x, VectorCode::kLess, u, t, u + 1);
        return;
    case ActivationKind::kElu:
    case ActivationKind::kSelu: {
        c.vmovaps(c.vec(old), c.vec(x));
        emitExpm1(c, x, temp);
        float const scale = a.kind == ActivationKind::kSelu ? a.beta : 1.f;
        c.vmulps(c.vec(x), c.vec(x), c.constant(scale * a.alpha));
        c.zero(t);
        c.vmulps(c.vec(u), c.vec(old), c.constant(scale));
        c.select(x, old, VectorCode::kGreaterEqual, t, u, u + 1);
        return;
    }
    case ActivationKind::kSoftsign:
        c.vandps(c.vec(t), c.vec(x), c.constantBits(kAbsMask));
        c.vaddps(c.vec(t), c.vec(t), c.constant(1.f));
        return divide(c, x, t);
    case ActivationKind::kSoftplus: // alpha (max(u, 0) + log(1 + exp(-|u|))), u = beta x
        c.vmulps(c.vec(x), c.vec(x), c.constant(a.beta));
        c.vmovaps(c.vec(old), c.vec(x));
        c.vorps(c.vec(x), c.vec(x), c.constantBits(kSignMask));
        emitExp(c, x, temp);
        emitLog1pUnit(c, x, temp);
        c.zero(t);
        c.vmaxps(c.vec(old), c.vec(t), c.vec(old));
        c.vaddps(c.vec(x), c.vec(x), c.vec(old));
        c.vmulps(c.vec(x), c.vec(x), c.constant(a.alpha));
        return;
    case ActivationKind::kClip:
        c.minConstant(x, a.beta, t);
        c.maxConstant(x, a.alpha, t);
        return;
    case ActivationKind::kHardSigmoid:
    case ActivationKind::kHardSwish: {
        bool const swish = a.kind == ActivationKind::kHardSwish;
        int const y = swish ? u : x;
        c.loadConstant(t, a.alpha);
        if (swish)
            c.vmovaps(c.vec(y), c.vec(x));
        c.vfmadd213ps(c.vec(y), c.vec(t), c.constant(a.beta));
        c.minConstant(y, 1.f, t);
        c.maxConstant(y, 0.f, t);
        if (swish)
            c.vmulps(c.vec(x), c.vec(x), c.vec(y));
        return;
    }
    case ActivationKind::kScaledTanh:
        c.vmulps(c.vec(x), c.vec(x), c.constant(a.beta));
        emitTanh(c, x, temp);
        c.vmulps(c.vec(x), c.vec(x), c.constant(a.alpha));
        return;
    case ActivationKind::kThresholdedRelu: // NaN gives 0
        c.loadConstant(t, a.alpha);
        if (c.avx512()) {
            c.vcmpps(c.k7, c.vec(t), c.vec(x), 17);
            c.vmovaps(c.vec(x) | c.k7 | Xbyak::util::T_z, c.vec(x));
        } else {
            c.vcmpps(c.vec(t), c.vec(t), c.vec(x), 17);
            c.vandps(c.vec(x), c.vec(x), c.vec(t));
        }
        return;
    case ActivationKind::kSwish:
        emitSwish(c, x, temp);
        return;
    case ActivationKind::kGeluErf:
        return emitGelu(c, x, temp, kGeluErf);
    case ActivationKind::kGeluTanh: // (1 + tanh u) / 2 = sigmoid(2u)
        return emitGelu(c, x, temp, kGeluTanh);
    }
}

void emitEach(VectorCode& c, Activation const& a, int count, int temp)
{
    bool const clip = a.kind == ActivationKind::kClip;
    if (clip || a.kind == ActivationKind::kRelu) { // NaN goes through
        c.loadConstant(temp, clip ? a.alpha : 0);
        if (clip)
            c.loadConstant(temp + 1, a.beta);
        for (int i = 0; i < count; ++i) {
            if (clip)
                c.vminps(c.vec(i), c.vec(temp + 1), c.vec(i));
            c.vmaxps(c.vec(i), c.vec(temp), c.vec(i));
        }
        return;
    }
    for (int i = 0; i < count; ++i)
        emitActivation(c, a, i, temp);
}

void emitActivations(VectorCode& c, Activation const& a, int count, int held, Xbyak::Reg64 const& stack,
                     Xbyak::Reg64 const& at, Xbyak::Reg64 const& left)
{
    if (isShort(a.kind))
        return emitEach(c, a, count, held);
    int const bytes = c.vectorBytes();
    c.mov(stack, c.rsp);
    c.sub(c.rsp, held * bytes);
    c.and_(c.rsp, -64);
    for (int i = 0; i < held; ++i)
        c.vmovaps(c.ptr[c.rsp + i * bytes], c.vec(i));
    Xbyak::Label again;
    c.mov(at, c.rsp);
    c.mov(left.cvt32(), count);
    c.L(again);
    c.vmovaps(c.vec(0), c.ptr[at]);
    emitActivation(c, a, 0, 1);
    c.vmovaps(c.ptr[at], c.vec(0));
    c.add(at, bytes);
    c.dec(left.cvt32());
    c.jnz(again, c.T_NEAR);
    for (int i = 0; i < held; ++i)
        c.vmovaps(c.vec(i), c.ptr[c.rsp + i * bytes]);
    c.mov(c.rsp, stack);
}

} // namespace tw::kernels::jit
