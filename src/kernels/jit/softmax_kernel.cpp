// SPDX-License-Identifier: Apache-2.0
#include "kernels/jit/softmax_kernel.h"

#include <limits>

#include "kernels/jit/row_code.h"
#include "kernels/jit/vector_math.h"

namespace tw::kernels::jit {

namespace {

using Xbyak::Reg64;
using namespace Xbyak::util;

class SoftmaxEmitter
{
public:
    SoftmaxEmitter(VectorCode& code, SoftmaxSpec const& spec) : c(code), s(spec), tail_(code, 15) {}

    void emit()
    {
        // rdi args; r8 x, r9 y, rsi mask, rdx fillWhere, r10 rows, r11 n; rax offset, rcx count
        load(r8, offsetof(SoftmaxArgs, x));
        load(r9, offsetof(SoftmaxArgs, y));
        load(rsi, offsetof(SoftmaxArgs, mask));
        load(rdx, offsetof(SoftmaxArgs, fillWhere));
        load(r10, offsetof(SoftmaxArgs, rows));
        load(r11, offsetof(SoftmaxArgs, n));
        c.mov(rax, r11);
        c.and_(rax, c.width() - 1);
        tail_.set(rax, rcx);
        if (s.scale)
            c.vbroadcastss(c.vec(kScale), argument(offsetof(SoftmaxArgs, scale)));
        if (s.fill)
            c.vbroadcastss(c.vec(kFill), argument(offsetof(SoftmaxArgs, fill)));
        c.loadConstant(kLow, -std::numeric_limits<float>::infinity());
        Xbyak::Label next;
        c.L(next);
        row();
        c.add(r8, c.ptr[rdi + int(offsetof(SoftmaxArgs, xStrideBytes))]);
        c.add(r9, c.ptr[rdi + int(offsetof(SoftmaxArgs, yStrideBytes))]);
        c.add(rsi, c.ptr[rdi + int(offsetof(SoftmaxArgs, maskStrideBytes))]);
        c.add(rdx, c.ptr[rdi + int(offsetof(SoftmaxArgs, fillStrideBytes))]);
        c.dec(r10);
        c.jnz(next, c.T_NEAR);
        c.vzeroupper();
        c.ret();
        tail_.table();
    }

private:
    // 0: the vector at work, 1 .. 6: temporaries of exp
    static constexpr int kTemp = 1, kMax = 7, kSum = 8, kScale = 9, kFill = 10, kLow = 11;

    VectorCode& c;
    SoftmaxSpec const& s;
    Tail tail_;

    void load(Reg64 const& r, size_t offset) { c.mov(r, c.ptr[rdi + int(offset)]); }
    Xbyak::Address argument(size_t offset) { return c.ptr[rdi + int(offset)]; }
    Xbyak::Address at(Reg64 const& base) { return c.ptr[base + rax]; }
    bool changes() const { return s.scale || s.fill || s.mask; }

    template <class Body>
    void vectors(Body const& body)
    {
        Xbyak::Label again, rest, noTail;
        c.xor_(eax, eax);
        c.mov(rcx, r11);
        c.shr(rcx, c.avx512() ? 4 : 3);
        c.jz(rest, c.T_NEAR);
        c.L(again);
        body(false);
        c.add(rax, c.vectorBytes());
        c.dec(rcx);
        c.jnz(again, c.T_NEAR);
        c.L(rest);
        c.test(r11.cvt32(), c.width() - 1);
        c.jz(noTail, c.T_NEAR);
        body(true);
        c.L(noTail);
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

    void row()
    {
        c.vmovaps(c.vec(kMax), c.vec(kLow));
        vectors([&](bool masked) {
            read(0, at(r8), masked);
            if (s.scale)
                c.vmulps(c.vec(0), c.vec(0), c.vec(kScale));
            if (s.fill) {
                read(kTemp, at(rdx), masked);
                if (c.avx512()) {
                    c.vpmovd2m(c.k2, c.vec(kTemp));
                    c.vblendmps(c.vec(0) | c.k2, c.vec(0), c.vec(kFill));
                } else {
                    c.vblendvps(c.vec(0), c.vec(0), c.vec(kFill), c.vec(kTemp));
                }
            }
            if (s.mask) {
                read(kTemp, at(rsi), masked);
                c.vaddps(c.vec(0), c.vec(0), c.vec(kTemp));
            }
            if (changes())
                write(at(r9), 0, masked);
            if (masked)
                tail_.fill(0, kLow);
            c.vmaxps(c.vec(kMax), c.vec(kMax), c.vec(0)); // passes over NaN: the sum finds it
        });
        joinLanes(c, kMax, kTemp, [&](Vec const& to, Vec const& a, Vec const& b) { c.vmaxps(to, a, b); });
        c.zero(kSum);
        vectors([&](bool masked) {
            read(0, at(changes() ? r9 : r8), masked);
            c.vsubps(c.vec(0), c.vec(0), c.vec(kMax));
            emitExp(c, 0, kTemp);
            write(at(r9), 0, masked);
            if (masked) {
                c.zero(kTemp);
                tail_.fill(0, kTemp);
            }
            c.vaddps(c.vec(kSum), c.vec(kSum), c.vec(0));
        });
        joinLanes(c, kSum, kTemp, [&](Vec const& to, Vec const& a, Vec const& b) { c.vaddps(to, a, b); });
        c.loadConstant(kTemp, 1.f);
        c.vdivps(c.vec(kSum), c.vec(kTemp), c.vec(kSum));
        vectors([&](bool masked) {
            read(0, at(r9), masked);
            c.vmulps(c.vec(0), c.vec(0), c.vec(kSum));
            write(at(r9), 0, masked);
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
