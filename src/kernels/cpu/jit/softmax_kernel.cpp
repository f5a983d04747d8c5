// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/softmax_kernel.h"

#include <iterator>
#include <limits>

#include "kernels/cpu/jit/byte_code.h"
#include "kernels/cpu/jit/row_code.h"
#include "kernels/cpu/jit/vector_math.h"

namespace tw::kernels::jit {

namespace {

using Xbyak::Reg64;
using namespace Xbyak::util;

// 2^f = 1 + f P(f), lowest coefficient first, relative error below 1e-7: for 0 <= f <= 1 and for |f| <= 1/2.
constexpr float kPowerFloor[] = {0.6931512951850891f, 0.24016444385051727f, 0.05579991266131401f, 0.009017029777169228f,
                                 0.0018671301659196615f};
constexpr float kPowerNearest[] = {0.6931470036506653f, 0.24022242426872253f, 0.05550733581185341f,
                                   0.009671512991189957f, 0.001326472614891827f};
constexpr float kBiasedWhole = 12582912.f + 127; // a sum with it has n + 127, the exponent of 2^n, in its lowest bits
constexpr float kLowest = -88.02969f;            // -127 ln 2: exponent 0, the factor is 0 from here on

// A group of rows goes through the passes together: the steps within a row depend on each other, rows do not, and there
// is always another row to work on.
class SoftmaxEmitter
{
public:
    SoftmaxEmitter(VectorCode& code, SoftmaxSpec const& spec) : c(code), s(spec), tail_(code, 15) {}

    void emit()
    {
        // rdi args; r8 x, r9 y, rsi mask, rdx fillWhere or ends, r10 rows left, r11 n; in a pass: r13 x, r14 y, r15
        // mask, rbx row, r12 rows of the group, rbp reciprocals of the group, rax offset, rcx count
        for (Reg64 const& r : kSaved)
            c.push(r);
        c.sub(rsp, 2 * kRowsBytes);
        load(r8, offsetof(SoftmaxArgs, x));
        load(r9, offsetof(SoftmaxArgs, y));
        load(rsi, offsetof(SoftmaxArgs, mask));
        load(rdx, s.ends ? offsetof(SoftmaxArgs, ends) : offsetof(SoftmaxArgs, fillWhere));
        load(r10, offsetof(SoftmaxArgs, rows));
        load(r11, offsetof(SoftmaxArgs, n));
        if (s.deferred)
            load(rbp, offsetof(SoftmaxArgs, reciprocals));
        else
            c.lea(rbp, c.ptr[rsp + kRowsBytes]);
        setTail();
        if (c.avx512())
            for (int i = 0; i < int(std::size(kPowerFloor)) + 2; ++i)
                c.loadConstant(kConstants + i, constantOf(i));
        Xbyak::Label next;
        c.L(next);
        load(r12, offsetof(SoftmaxArgs, group));
        c.cmp(r12, r10);
        c.cmovg(r12, r10);
        highest();
        exponentials();
        if (!s.deferred)
            divisions();
        c.mov(r8, r13);
        c.mov(r9, r14);
        if (s.mask)
            c.mov(rsi, r15);
        if (s.ends)
            c.lea(rdx, c.ptr[rdx + r12 * 8]);
        if (s.deferred)
            c.lea(rbp, c.ptr[rbp + r12 * 4]);
        c.sub(r10, r12);
        c.jnz(next, c.T_NEAR);
        c.vzeroupper();
        c.add(rsp, 2 * kRowsBytes);
        for (int i = int(std::size(kSaved)); i-- > 0;)
            c.pop(kSaved[i]);
        c.ret();
        tail_.table();
    }

private:
    static constexpr int kBlock = 4;                                  // vectors at work at once
    static constexpr int kRowsBytes = 4 * SoftmaxKernel::kGroupRows;  // of one number for each row of a group
    static constexpr int kPower = 4, kWork = 8, kMax = 12, kSum = 13; // 0 .. 3: the vectors at work; 15: tail
    static constexpr int kTemp = 14, kScale = 8, kFill = 9, kLeast = 10, kMost = 11;
    static constexpr int kConstants = 16; // AVX-512: coefficients, 1, log2(e)
    Reg64 const kSaved[6] = {rbx, rbp, r12, r13, r14, r15};

    VectorCode& c;
    SoftmaxSpec const& s;
    Tail tail_;

    void load(Reg64 const& r, size_t offset) { c.mov(r, c.ptr[rdi + int(offset)]); }
    Xbyak::Address argument(size_t offset) { return c.ptr[rdi + int(offset)]; }
    Xbyak::Address at(Reg64 const& base, int i) { return c.ptr[base + rax + i * c.vectorBytes()]; }
    // Whether t is written down; where only a mask is added, that is done again instead.
    bool rounds() const { return s.scoreStep > 0 || s.sumStep > 0; }
    bool keepsT() const { return s.scale || s.fill || rounds(); }
    static float constantOf(int i)
    {
        int const n = int(std::size(kPowerFloor));
        return i < n ? kPowerFloor[i] : i == n ? 1.f : kLog2e;
    }

    // body(count, masked) for `count` vectors from rax on, of the n numbers of a row.
    template <class Body>
    void vectors(Body const& body)
    {
        Xbyak::Label block, rest, one, last, done;
        c.xor_(eax, eax);
        c.mov(rcx, r11);
        c.shr(rcx, c.avx512() ? 4 : 3);
        c.L(block);
        c.sub(rcx, kBlock);
        c.jl(rest, c.T_NEAR);
        body(kBlock, false);
        c.add(rax, kBlock * c.vectorBytes());
        c.jmp(block, c.T_NEAR);
        c.L(rest);
        c.add(rcx, kBlock);
        c.L(one);
        c.dec(rcx);
        c.jl(last, c.T_NEAR);
        body(1, false);
        c.add(rax, c.vectorBytes());
        c.jmp(one, c.T_NEAR);
        c.L(last);
        c.test(r11.cvt32(), c.width() - 1);
        c.jz(done, c.T_NEAR);
        body(1, true);
        c.L(done);
    }
    // body() for each row of the group.
    template <class Body>
    void rows(Body const& body)
    {
        Xbyak::Label next;
        c.mov(r13, r8);
        c.mov(r14, r9);
        if (s.mask)
            c.mov(r15, rsi);
        c.xor_(ebx, ebx);
        c.L(next);
        if (s.ends) {
            c.mov(r11, c.ptr[rdx + rbx * 8]);
            setTail();
        }
        body();
        c.add(r13, argument(offsetof(SoftmaxArgs, xStrideBytes)));
        c.add(r14, argument(offsetof(SoftmaxArgs, yStrideBytes)));
        if (s.mask)
            c.add(r15, argument(offsetof(SoftmaxArgs, maskStrideBytes)));
        c.inc(rbx);
        c.cmp(rbx, r12);
        c.jl(next, c.T_NEAR);
    }
    void setTail()
    {
        c.mov(rax, r11);
        c.and_(rax, c.width() - 1);
        tail_.set(rax, rcx);
    }
    // Zeros after the numbers of a row, from the next vector on.
    void zeroRest()
    {
        Xbyak::Label next, done, whole;
        c.test(r11.cvt32(), c.width() - 1);
        c.jz(whole);
        c.add(rax, c.vectorBytes());
        c.L(whole);
        load(rcx, offsetof(SoftmaxArgs, n));
        c.shl(rcx, 2);
        c.zero(kTemp);
        c.L(next);
        c.cmp(rax, rcx);
        c.jge(done);
        c.vmovups(at(r14, 0), c.vec(kTemp));
        c.add(rax, c.vectorBytes());
        c.jmp(next);
        c.L(done);
    }
    void addMask(int i, bool masked)
    {
        if (!masked) {
            c.vaddps(c.vec(i), c.vec(i), at(r15, i));
            return;
        }
        tail_.load(kTemp, at(r15, i));
        c.vaddps(c.vec(i), c.vec(i), c.vec(kTemp));
    }
    void read(int to, Xbyak::Address const& from, bool masked)
    {
        if (masked)
            tail_.load(to, from);
        else
            c.vmovups(c.vec(to), from);
    }
    void write(Xbyak::Address const& to, int from, bool masked)
    {
        if (masked)
            tail_.store(to, from);
        else
            c.vmovups(to, c.vec(from));
    }

    void round(int i, float step)
    {
        c.vdivps(c.vec(i), c.vec(i), c.constant(step));
        emitRoundToByte(c, i, kLeast, kMost, kTemp);
        c.vmulps(c.vec(i), c.vec(i), c.constant(step));
    }

    // The highest t of each row, to the stack; t to y where it is not x.
    void highest()
    {
        if (s.scale)
            c.vbroadcastss(c.vec(kScale), argument(offsetof(SoftmaxArgs, scale)));
        if (s.fill)
            c.vbroadcastss(c.vec(kFill), argument(offsetof(SoftmaxArgs, fill)));
        if (rounds()) {
            c.loadConstant(kLeast, -128.f);
            c.loadConstant(kMost, 127.f);
        }
        c.loadConstant(kSum, -std::numeric_limits<float>::infinity());
        rows([&] {
            c.vmovaps(c.vec(kMax), c.vec(kSum));
            vectors([&](int count, bool masked) {
                for (int i = 0; i < count; ++i) {
                    int const temp = kPower + i;
                    read(i, at(r13, i), masked);
                    if (s.scale)
                        c.vmulps(c.vec(i), c.vec(i), c.vec(kScale));
                    if (s.scoreStep > 0)
                        round(i, s.scoreStep);
                    if (s.fill) {
                        read(temp, at(rdx, i), masked);
                        if (c.avx512()) {
                            c.vpmovd2m(c.k2, c.vec(temp));
                            c.vblendmps(c.vec(i) | c.k2, c.vec(i), c.vec(kFill));
                        } else {
                            c.vblendvps(c.vec(i), c.vec(i), c.vec(kFill), c.vec(temp));
                        }
                    }
                    if (s.mask)
                        addMask(i, masked);
                    if (s.sumStep > 0)
                        round(i, s.sumStep);
                    if (keepsT())
                        write(at(r14, i), i, masked);
                    if (masked)
                        tail_.fill(i, kSum);
                    c.vmaxps(c.vec(kMax), c.vec(kMax), c.vec(i)); // passes over NaN: the sum finds it
                }
            });
            joinLanes(c, kMax, kTemp, [&](Vec const& to, Vec const& a, Vec const& b) { c.vmaxps(to, a, b); });
            c.vmovss(c.ptr[rsp + rbx * 4], Xbyak::Xmm(kMax));
            if (s.fill)
                c.add(rdx, argument(offsetof(SoftmaxArgs, fillStrideBytes)));
        });
    }

    // exp(t - m) to y, 1 / (their sum) to the reciprocals.
    void exponentials()
    {
        rows([&] {
            c.vbroadcastss(c.vec(kMax), c.ptr[rsp + rbx * 4]);
            c.zero(kSum);
            vectors([&](int count, bool masked) {
                for (int i = 0; i < count; ++i) {
                    read(i, at(keepsT() ? r14 : r13, i), masked);
                    if (s.mask && !keepsT())
                        addMask(i, masked);
                    c.vsubps(c.vec(i), c.vec(i), c.vec(kMax));
                }
                c.avx512() ? power512(count) : power256(count);
                for (int i = 0; i < count; ++i) {
                    if (masked) {
                        c.zero(kTemp);
                        tail_.fill(kPower + i, kTemp);
                    }
                    write(at(r14, i), kPower + i, masked && !s.ends);
                    c.vaddps(c.vec(kSum), c.vec(kSum), c.vec(kPower + i));
                }
            });
            if (s.ends)
                zeroRest();
            joinLanes(c, kSum, kTemp, [&](Vec const& to, Vec const& a, Vec const& b) { c.vaddps(to, a, b); });
            c.loadConstant(kTemp, 1.f);
            c.vdivss(Xbyak::Xmm(kTemp), Xbyak::Xmm(kTemp), Xbyak::Xmm(kSum));
            c.vmovss(c.ptr[rbp + rbx * 4], Xbyak::Xmm(kTemp));
        });
    }

    // Vectors kPower + i = exp(vectors i), which are <= 0 or NaN. Each step for all vectors before the next one.
    void power512(int count)
    {
        constexpr int kTerms = int(std::size(kPowerFloor)), kOne = kConstants + kTerms, kScaleToTwo = kOne + 1;
        auto each = [&](auto const& step) {
            for (int i = 0; i < count; ++i)
                step(c.vec(i), c.vec(kPower + i), c.vec(kWork + i));
        };
        each([&](Vec x, Vec, Vec) { c.vmulps(x, x, c.vec(kScaleToTwo)); });
        each([&](Vec x, Vec, Vec f) { c.vreduceps(f, x, 1); }); // x less the whole number below it; 0 for -infinity
        each([&](Vec, Vec p, Vec) { c.vmovaps(p, c.vec(kConstants + kTerms - 1)); });
        for (int term = kTerms - 1; term >= 0; --term) {
            int const constant = term > 0 ? kConstants + term - 1 : kOne;
            each([&](Vec, Vec p, Vec f) { c.vfmadd213ps(p, f, c.vec(constant)); });
        }
        each([&](Vec x, Vec p, Vec) { c.vscalefps(p, p, x); }); // rounds x down itself
    }

    void power256(int count)
    {
        constexpr int kTerms = int(std::size(kPowerNearest));
        auto each = [&](auto const& step) {
            for (int i = 0; i < count; ++i)
                step(c.vec(i), c.vec(kPower + i), c.vec(kWork + i));
        };
        c.loadConstant(kTemp, kLowest);
        each([&](Vec x, Vec, Vec) { c.vmaxps(x, c.vec(kTemp), x); }); // NaN goes through
        each([&](Vec, Vec p, Vec) { c.loadConstant(p.getIdx(), kBiasedWhole); });
        each([&](Vec x, Vec p, Vec) { c.vfmadd231ps(p, x, c.constant(kLog2e)); });
        each([&](Vec, Vec p, Vec f) { c.vsubps(f, p, c.constant(kBiasedWhole)); });
        each([&](Vec x, Vec, Vec f) { c.vfmsub132ps(x, f, c.constant(kLog2e)); });
        each([&](Vec, Vec p, Vec) { c.vpslld(p, p, 23); });
        each([&](Vec, Vec, Vec f) { c.loadConstant(f.getIdx(), kPowerNearest[kTerms - 1]); });
        for (int term = kTerms - 1; term >= 0; --term) {
            float const constant = term > 0 ? kPowerNearest[term - 1] : 1.f;
            each([&](Vec x, Vec, Vec f) { c.vfmadd213ps(f, x, c.constant(constant)); });
        }
        each([&](Vec, Vec p, Vec f) { c.vmulps(p, p, f); }); // a product: NaN stays
    }

    void divisions()
    {
        rows([&] {
            c.vbroadcastss(c.vec(kSum), c.ptr[rbp + rbx * 4]);
            vectors([&](int count, bool masked) {
                for (int i = 0; i < count; ++i) {
                    read(i, at(r14, i), masked);
                    c.vmulps(c.vec(i), c.vec(i), c.vec(kSum));
                    write(at(r14, i), i, masked);
                }
            });
        });
    }
};

} // namespace

Result<SoftmaxKernel> SoftmaxKernel::emit(Isa isa, SoftmaxSpec const& spec)
{
    SoftmaxKernel kernel;
    TW_ASSIGN(kernel.code_, jit::emit(isa, [&](VectorCode& c) { SoftmaxEmitter(c, spec).emit(); }));
    return kernel;
}

} // namespace tw::kernels::jit
