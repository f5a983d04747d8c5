// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/pointwise.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/jit/vector_math.h"

namespace tw::kernels::jit {

namespace {

constexpr int kRegisters = 16 - kMathTemps - 1; // values alive at once on AVX2; one register is the mask of the tail

// For each value the last step that reads it (its own where nobody does).
std::vector<int> lastUses(PointwiseProgram const& p)
{
    std::vector<int> last(size_t(p.inputs) + p.steps.size(), -1);
    for (size_t s = 0; s < p.steps.size(); ++s) {
        int const operands = operandsOf(p.steps[s].code);
        last[size_t(p.inputs) + s] = int(s);
        if (operands > 0)
            last[size_t(p.steps[s].a)] = int(s);
        if (operands > 1)
            last[size_t(p.steps[s].b)] = int(s);
    }
    return last;
}

class PointwiseEmitter
{
public:
    PointwiseEmitter(VectorCode& c, PointwiseProgram const& p, std::vector<bool> const& spread, bool stream)
        : c_(c), p_(p), spread_(spread), stream_(stream), last_(lastUses(p)),
          values_(c.vectorCount() - kMathTemps - (c.avx512() ? 0 : 1)), temp_(values_), mask_(c.vectorCount() - 1)
    {}

    void run()
    {
        using namespace Xbyak;
        Reg64 const saved[] = {c_.rbx, c_.rbp, c_.r12, c_.r13, c_.r14, c_.r15};
        for (Reg64 const& r : saved)
            c_.push(r);
        for (int i = 0; i < p_.inputs; ++i)
            c_.mov(x(i), c_.ptr[args() + int(offsetof(PointwiseArgs, x)) + 8 * i]);
        c_.mov(y(), c_.ptr[args() + int(offsetof(PointwiseArgs, y))]);
        c_.mov(rows(), c_.ptr[args() + int(offsetof(PointwiseArgs, rows))]);
        Label row, done;
        c_.test(rows(), rows());
        c_.jle(done, CodeGenerator::T_NEAR);
        c_.L(row);
        oneRow();
        for (int i = 0; i < p_.inputs; ++i)
            c_.add(x(i), c_.ptr[args() + int(offsetof(PointwiseArgs, rowBytes)) + 8 * i]);
        c_.add(y(), c_.ptr[args() + int(offsetof(PointwiseArgs, yRowBytes))]);
        c_.dec(rows());
        c_.jnz(row, CodeGenerator::T_NEAR);
        c_.L(done);
        if (stream_)
            c_.sfence();
        for (size_t i = std::size(saved); i-- > 0;)
            c_.pop(saved[i]);
        c_.vzeroupper();
        c_.ret();
        if (!c_.avx512()) { // eight lanes on, eight off: the mask of k lanes begins 8 - k words in
            c_.align(32);
            c_.L(lanes_);
            for (int i = 0; i < 16; ++i)
                c_.dd(i < 8 ? 0xffffffffu : 0);
        }
    }

private:
    // Arguments come in rdi.
    Xbyak::Reg64 args() const { return c_.rdi; }
    Xbyak::Reg64 at() const { return c_.rax; } // elements into the row
    Xbyak::Reg64 rest() const { return c_.rcx; }
    Xbyak::Reg64 rows() const { return c_.rdx; }
    Xbyak::Reg64 y() const { return c_.rsi; }
    Xbyak::Reg64 x(int i) const
    {
        Xbyak::Reg64 const list[kMaxPointwiseInputs] = {c_.r8, c_.r9, c_.r10, c_.r11, c_.rbx, c_.rbp, c_.r12, c_.r13};
        return list[i];
    }

    void oneRow()
    {
        using namespace Xbyak;
        Label vectors, tail, end;
        c_.xor_(at(), at());
        c_.mov(rest(), c_.ptr[args() + int(offsetof(PointwiseArgs, n))]);
        c_.sub(rest(), c_.width());
        c_.jl(tail, CodeGenerator::T_NEAR);
        c_.align(32);
        c_.L(vectors);
        body(Part::kVector);
        c_.add(at(), c_.width());
        c_.sub(rest(), c_.width());
        c_.jge(vectors, CodeGenerator::T_NEAR);
        c_.L(tail);
        c_.add(rest(), c_.width());
        c_.jz(end, CodeGenerator::T_NEAR);
        if (!c_.avx512() && !p_.isFloat()) { // no masks for bytes
            Label one;
            c_.L(one);
            body(Part::kOne);
            c_.inc(at());
            c_.dec(rest());
            c_.jnz(one, CodeGenerator::T_NEAR);
            c_.L(end);
            return;
        }
        if (c_.avx512()) { // ones below bit `rest`
            c_.mov(c_.r14d, -1);
            c_.bzhi(c_.r14d, c_.r14d, rest().cvt32());
            c_.kmovw(c_.k1, c_.r14d);
        } else {
            c_.lea(c_.r14, c_.ptr[c_.rip + lanes_]);
            c_.neg(rest());
            c_.vmovups(c_.vec(mask_), c_.ptr[c_.r14 + rest() * 4 + 32]);
        }
        body(Part::kTail);
        c_.L(end);
    }

    // What a pass of the body makes: a vector, the part of one below a mask, or one element.
    enum class Part
    {
        kVector,
        kTail,
        kOne,
    };

    int take()
    {
        for (int r = 0; r < values_; ++r)
            if (std::find(place_.begin(), place_.end(), r) == place_.end())
                return r;
        throw std::runtime_error("a pointwise expression needs more registers than there are");
    }
    // The register of a value; inputs are loaded at their first use.
    int fetch(int value, Part part)
    {
        if (place_[size_t(value)] >= 0)
            return place_[size_t(value)];
        int const r = take();
        place_[size_t(value)] = r;
        if (isQuantized(p_.x[value]))
            loadBytes(r, value, part);
        else if (p_.x[value] == DataType::kBf16)
            loadBf16(r, value, part);
        else if (spread_[size_t(value)])
            c_.vbroadcastss(c_.vec(r), c_.ptr[x(value)]);
        else if (auto const from = c_.ptr[x(value) + at() * 4]; part == Part::kVector)
            c_.vmovups(c_.vec(r), from);
        else if (part == Part::kOne)
            c_.vmovss(Xbyak::Xmm(r), from);
        else if (c_.avx512())
            c_.vmovups(c_.vec(r) | c_.k1 | Xbyak::util::T_z, from);
        else
            c_.vmaskmovps(Xbyak::Ymm(r), Xbyak::Ymm(mask_), from);
        return r;
    }
    void loadBytes(int r, int value, Part part)
    {
        bool const spread = spread_[size_t(value)];
        auto const from = c_.ptr[x(value) + at()];
        if (spread || part == Part::kOne) {
            if (spread)
                c_.movsx(c_.r14d, c_.byte[x(value)]);
            else
                c_.movsx(c_.r14d, c_.byte[x(value) + at()]);
            c_.vmovd(Xbyak::Xmm(r), c_.r14d);
            c_.vcvtdq2ps(Xbyak::Xmm(r), Xbyak::Xmm(r));
            if (spread)
                c_.vbroadcastss(c_.vec(r), Xbyak::Xmm(r));
            return;
        }
        if (part == Part::kTail)
            c_.vpmovsxbd(c_.vec(r) | c_.k1 | Xbyak::util::T_z, from);
        else
            c_.vpmovsxbd(c_.vec(r), from);
        c_.vcvtdq2ps(c_.vec(r), c_.vec(r));
    }

    // The upper halves of floats.
    void loadBf16(int r, int value, Part part)
    {
        if (spread_[size_t(value)] || part == Part::kOne) {
            if (spread_[size_t(value)])
                c_.movzx(c_.r14d, c_.word[x(value)]);
            else
                c_.movzx(c_.r14d, c_.word[x(value) + at() * 2]);
            c_.shl(c_.r14d, 16);
            c_.vmovd(Xbyak::Xmm(r), c_.r14d);
            if (spread_[size_t(value)])
                c_.vbroadcastss(c_.vec(r), Xbyak::Xmm(r));
            return;
        }
        auto const from = c_.ptr[x(value) + at() * 2];
        if (part == Part::kTail)
            c_.vpmovzxwd(c_.vec(r) | c_.k1 | Xbyak::util::T_z, from);
        else
            c_.vpmovzxwd(c_.vec(r), from);
        c_.vpslld(c_.vec(r), c_.vec(r), 16);
    }

    void body(Part part)
    {
        place_.assign(size_t(p_.inputs) + p_.steps.size(), -1);
        for (size_t s = 0; s < p_.steps.size(); ++s)
            step(s, part);
        if (isQuantized(p_.y))
            return storeBytes(place_.back(), part);
        if (p_.y == DataType::kBf16)
            return storeBf16(place_.back(), part);
        auto const r = c_.vec(place_.back());
        auto const to = c_.ptr[y() + at() * 4];
        if (part == Part::kVector && stream_)
            c_.vmovntps(to, r);
        else if (part == Part::kVector)
            c_.vmovups(to, r);
        else if (part == Part::kOne)
            c_.vmovss(to, Xbyak::Xmm(place_.back()));
        else if (c_.avx512())
            c_.vmovups(to | c_.k1, r);
        else
            c_.vmaskmovps(to, Xbyak::Ymm(mask_), Xbyak::Ymm(place_.back()));
    }
    // Half to even; bounds come first, as what does not fit an i32 has no order any more.
    void storeBytes(int value, Part part)
    {
        auto const r = c_.vec(value);
        auto const to = c_.ptr[y() + at()];
        if (c_.avx512()) {
            c_.vcmpps(c_.k7, r, r, 7); // false for NaN
            c_.vmaxps(r | c_.k7 | Xbyak::util::T_z, r, c_.constant(-128));
        } else {
            c_.vcmpps(c_.vec(temp_), r, r, 7);
            c_.vandps(r, r, c_.vec(temp_));
            c_.vmaxps(r, r, c_.constant(-128));
        }
        c_.vminps(r, r, c_.constant(127));
        c_.vcvtps2dq(r, r);
        if (part == Part::kOne) {
            c_.vmovd(c_.r14d, Xbyak::Xmm(value));
            c_.mov(c_.byte[y() + at()], c_.r14b);
        } else if (c_.avx512() && part == Part::kTail) {
            c_.vpmovdb(to | c_.k1, Xbyak::Zmm(value));
        } else if (c_.avx512()) {
            c_.vpmovdb(to, Xbyak::Zmm(value));
        } else {
            Xbyak::Xmm const low(value), high(temp_);
            c_.vextracti128(high, Xbyak::Ymm(value), 1);
            c_.vpackssdw(low, low, high);
            c_.vpacksswb(low, low, low);
            c_.vmovq(to, low);
        }
    }

    // Adding half a step, less a bit where the last bit that stays is even, rounds half to even; of a NaN, whose bits
    // could wrap, the bit is set that keeps it one.
    void storeBf16(int value, Part part)
    {
        auto const r = c_.vec(value), t = c_.vec(temp_), quiet = c_.vec(temp_ + 1);
        auto const to = c_.ptr[y() + at() * 2];
        c_.vpsrld(t, r, 16);
        if (c_.avx512()) {
            c_.vcmpps(c_.k7, r, r, 3); // true for NaN
            c_.vpord(quiet, r, c_.constantBits(0x400000u));
            c_.vpandd(t, t, c_.constantBits(1));
        } else {
            c_.vcmpps(c_.vec(temp_ + 2), r, r, 3);
            c_.vorps(quiet, r, c_.constantBits(0x400000u));
            c_.vpand(t, t, c_.constantBits(1));
        }
        c_.vpaddd(t, t, c_.constantBits(0x7fffu));
        c_.vpaddd(r, r, t);
        if (c_.avx512())
            c_.vmovaps(r | c_.k7, quiet);
        else
            c_.vblendvps(Xbyak::Ymm(value), Xbyak::Ymm(value), Xbyak::Ymm(temp_ + 1), Xbyak::Ymm(temp_ + 2));
        c_.vpsrld(r, r, 16);
        if (part == Part::kOne) {
            c_.vmovd(c_.r14d, Xbyak::Xmm(value));
            c_.mov(c_.word[y() + at() * 2], c_.r14w);
        } else if (c_.avx512() && part == Part::kTail) {
            c_.vpmovdw(to | c_.k1, Xbyak::Zmm(value));
        } else if (c_.avx512()) {
            c_.vpmovdw(to, Xbyak::Zmm(value));
        } else {
            Xbyak::Xmm const low(value), high(temp_);
            c_.vextracti128(high, Xbyak::Ymm(value), 1);
            c_.vpackusdw(low, low, high);
            c_.vmovdqu(to, low);
        }
    }

    void step(size_t s, Part part)
    {
        ExpressionStep const& step = p_.steps[s];
        int const operands = operandsOf(step.code), self = p_.inputs + int(s);
        int const a = operands > 0 ? fetch(step.a, part) : -1, b = operands > 1 ? fetch(step.b, part) : -1;
        auto dies = [&](int value) { return last_[size_t(value)] == int(s); };
        // Results go where an operand dies. Minimum, maximum and the like read a once more at their end.
        int to = -1;
        if (operands > 0 && dies(step.a) && !reads2(step.code))
            to = a;
        else if (operands > 1 && dies(step.b) && step.b != step.a && !reads2(step.code))
            to = b;
        if (to < 0)
            to = take();
        compute(step, to, a, b);
        if (operands > 0 && dies(step.a))
            place_[size_t(step.a)] = -1;
        if (operands > 1 && dies(step.b))
            place_[size_t(step.b)] = -1;
        place_[size_t(self)] = to;
    }
    static bool reads2(StepCode code)
    {
        return (code >= StepCode::kMax && code <= StepCode::kParametricRelu) || code == StepCode::kSign;
    }

    void compute(ExpressionStep const& step, int to, int a, int b)
    {
        using C = StepCode;
        auto const y = c_.vec(to);
        auto const va = a >= 0 ? c_.vec(a) : y, vb = b >= 0 ? c_.vec(b) : y;
        auto const inPlace = [&] {
            if (to != a)
                c_.vmovaps(y, va);
        };
        switch (step.code) {
        case C::kConstant:
            return c_.loadConstant(to, step.alpha);
        case C::kAdd:
            return c_.vaddps(y, va, vb);
        case C::kSub:
            return c_.vsubps(y, va, vb);
        case C::kMul:
            return c_.vmulps(y, va, vb);
        case C::kDiv:
            return c_.vdivps(y, va, vb);
        case C::kMax:
        case C::kMin:
            // The instruction gives b when one is NaN: a NaN of a is put back.
            if (step.code == C::kMax)
                c_.vmaxps(y, va, vb);
            else
                c_.vminps(y, va, vb);
            if (c_.avx512()) {
                c_.vcmpps(c_.k7, va, va, 3);
                c_.vmovaps(y | c_.k7, va);
            } else {
                c_.vcmpps(c_.vec(temp_), va, va, 3);
                c_.vblendvps(Xbyak::Ymm(to), Xbyak::Ymm(to), Xbyak::Ymm(a), Xbyak::Ymm(temp_));
            }
            return;
        case C::kParametricRelu:
            c_.vmulps(y, va, vb);
            c_.zero(temp_);
            return c_.select(to, a, VectorCode::kGreaterEqual, temp_, a, temp_ + 1);
        case C::kSqrt:
            return c_.vsqrtps(y, va);
        case C::kReciprocal:
            c_.loadConstant(temp_, 1.f);
            return c_.vdivps(y, c_.vec(temp_), va);
        case C::kAbs:
            return c_.vandps(y, va, c_.constantBits(0x7fffffffu));
        case C::kNegate:
            return c_.vxorps(y, va, c_.constantBits(0x80000000u));
        case C::kSquare:
            return c_.vmulps(y, va, va);
        case C::kSign: // 17: less, false for NaN
            c_.zero(temp_);
            if (c_.avx512()) {
                c_.loadConstant(temp_ + 1, 1);
                c_.loadConstant(temp_ + 2, -1);
                c_.vcmpps(c_.k7, c_.vec(temp_), va, 17);
                c_.vmovaps(y | c_.k7 | Xbyak::util::T_z, c_.vec(temp_ + 1));
                c_.vcmpps(c_.k7, va, c_.vec(temp_), 17);
                c_.vmovaps(y | c_.k7, c_.vec(temp_ + 2));
            } else {
                c_.vcmpps(y, c_.vec(temp_), va, 17);
                c_.vcmpps(c_.vec(temp_), va, c_.vec(temp_), 17);
                c_.vandps(y, y, c_.constant(1));
                c_.vandps(c_.vec(temp_), c_.vec(temp_), c_.constant(1));
                c_.vsubps(y, y, c_.vec(temp_));
            }
            return;
        case C::kCeil:
            return round(to, a, 2);
        case C::kFloor:
            return round(to, a, 1);
        case C::kRound:
            return round(to, a, 0);
        case C::kExp:
            inPlace();
            return emitExp(c_, to, temp_);
        case C::kLog:
            inPlace();
            return emitLog(c_, to, temp_);
        case C::kErf:
            inPlace();
            return emitErf(c_, to, temp_);
        case C::kActivation:
            inPlace();
            return emitActivation(c_, Activation{step.kind, step.alpha, step.beta}, to, temp_);
        }
    }
    void round(int to, int a, int mode)
    {
        if (c_.avx512())
            c_.vrndscaleps(c_.vec(to), c_.vec(a), uint8_t(mode));
        else
            c_.vroundps(Xbyak::Ymm(to), Xbyak::Ymm(a), uint8_t(mode));
    }

    VectorCode& c_;
    PointwiseProgram const& p_;
    std::vector<bool> const& spread_;
    bool stream_;
    std::vector<int> last_;
    int values_; // registers 0 .. values_ - 1 hold values
    int temp_, mask_;
    std::vector<int> place_; // register of each value that is alive
    Xbyak::Label lanes_;
};

} // namespace

std::string checkProgram(PointwiseProgram const& p)
{
    if (p.inputs < 1 || p.inputs > kMaxPointwiseInputs)
        return fmt::format("the expression has {} inputs (allowed: 1..{})", p.inputs, kMaxPointwiseInputs);
    if (p.steps.empty() || int(p.steps.size()) > kMaxExpressionSteps)
        return fmt::format("the expression has {} steps (allowed: 1..{})", p.steps.size(), kMaxExpressionSteps);
    std::vector<bool> read(size_t(p.inputs) + p.steps.size(), false);
    for (size_t s = 0; s < p.steps.size(); ++s) {
        ExpressionStep const& step = p.steps[s];
        std::string const where = fmt::format("step {} of the expression ", s);
        if (!isKnown(step.code))
            return fmt::format("{}has code {}, which does not exist", where, int(step.code));
        if (step.code == StepCode::kActivation && (int(step.kind) < 0 || int(step.kind) >= kActivationKinds))
            return fmt::format("{}has activation kind {} (allowed: 0..{})", where, int(step.kind),
                               kActivationKinds - 1);
        if (std::isnan(step.alpha) || std::isnan(step.beta))
            return where + "has a parameter that is no number";
        int const operands[] = {step.a, step.b};
        for (int i = 0; i < operandsOf(step.code); ++i) {
            if (operands[i] < 0 || operands[i] >= p.inputs + int(s))
                return fmt::format("{}reads value {} (there are {})", where, operands[i], p.inputs + int(s));
            read[size_t(operands[i])] = true;
        }
    }
    for (size_t v = 0; v + 1 < read.size(); ++v)
        if (!read[v])
            return fmt::format("value {} of the expression is never read", v);
    // Alive at each step: inputs from their first use on, results from their step on; one more for the result.
    std::vector<int> const last = lastUses(p);
    std::vector<int> first(read.size(), -1);
    for (size_t s = 0; s < p.steps.size(); ++s) {
        first[size_t(p.inputs) + s] = int(s);
        int const operands[] = {p.steps[s].a, p.steps[s].b};
        for (int i = 0; i < operandsOf(p.steps[s].code); ++i)
            if (int& f = first[size_t(operands[i])]; f < 0)
                f = int(s);
    }
    for (int s = 0; s < int(p.steps.size()); ++s) {
        int alive = 0;
        for (size_t v = 0; v < read.size(); ++v)
            alive += first[v] <= s && last[v] >= s;
        if (alive > kRegisters)
            return fmt::format("the expression keeps {} values at step {} (allowed: {})", alive, s, kRegisters);
    }
    return {};
}

Result<Code> emitPointwise(Isa isa, PointwiseProgram const& program, std::vector<bool> const& spread, bool stream)
{
    if (std::string why = checkProgram(program); !why.empty())
        return internalError(why);
    if (spread.size() != size_t(program.inputs))
        return internalError("an expression needs to know the shape of each input");
    return emit(isa, [&](VectorCode& c) { PointwiseEmitter(c, program, spread, stream).run(); });
}

} // namespace tw::kernels::jit
