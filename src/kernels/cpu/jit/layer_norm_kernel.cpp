// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/layer_norm_kernel.h"

#include "kernels/cpu/jit/row_code.h"
#include "kernels/cpu/jit/vector_math.h"

namespace tw::kernels::jit {

namespace {

using Xbyak::Reg64;
using namespace Xbyak::util;

class LayerNormEmitter
{
public:
    LayerNormEmitter(VectorCode& code, LayerNormForm const& form) : c(code), form_(form), tail_(code, 15) {}

    void emit()
    {
        // rdi args; r8 x, r9 y, rsi gamma, rdx beta, r10 rows, r11 whole vectors; rax offset, rcx count
        auto load = [&](Reg64 const& r, size_t offset) { c.mov(r, c.ptr[rdi + int(offset)]); };
        load(r8, offsetof(LayerNormArgs, x));
        load(r9, offsetof(LayerNormArgs, y));
        load(rsi, offsetof(LayerNormArgs, gamma));
        load(rdx, offsetof(LayerNormArgs, beta));
        load(r10, offsetof(LayerNormArgs, rows));
        load(r11, offsetof(LayerNormArgs, n));
        c.mov(rax, r11);
        c.and_(rax, c.width() - 1);
        tail_.set(rax, rcx);
        Xbyak::Label next;
        c.L(next);
        row();
        c.add(r8, c.ptr[rdi + int(offsetof(LayerNormArgs, xStride))]);
        c.add(r9, c.ptr[rdi + int(offsetof(LayerNormArgs, yStride))]);
        c.dec(r10);
        c.jnz(next, c.T_NEAR);
        c.vzeroupper();
        c.ret();
        tail_.table();
    }

private:
    static constexpr int kSum = 0, kMean = 4, kFactor = 5, kTemp = 6; // sums in 0 .. 3

    VectorCode& c;
    LayerNormForm form_;
    Tail tail_;

    // body(i, masked): vector i after rax.
    template <class Body>
    void vectors(Body const& body)
    {
        Xbyak::Label noTail;
        c.xor_(eax, eax);
        c.mov(rcx, r11);
        c.shr(rcx, c.avx512() ? 4 : 3);
        forVectors(c, rax, rcx, [&](int i) { body(i, false); });
        c.test(r11.cvt32(), c.width() - 1);
        c.jz(noTail, c.T_NEAR);
        body(0, true);
        c.L(noTail);
    }
    Xbyak::Address at(Reg64 const& base, int i) { return c.ptr[base + rax + i * c.vectorBytes()]; }
    void load(int to, Xbyak::Address const& from, bool masked)
    {
        if (masked)
            tail_.load(to, from);
        else
            c.vmovups(c.vec(to), from);
    }
    void clearSums()
    {
        for (int i = 0; i < 4; ++i)
            c.zero(kSum + i);
    }
    // Register 0 becomes the sum of the sums' lanes divided by n, in every lane.
    void joinSums()
    {
        c.vaddps(c.vec(0), c.vec(0), c.vec(1));
        c.vaddps(c.vec(2), c.vec(2), c.vec(3));
        c.vaddps(c.vec(0), c.vec(0), c.vec(2));
        joinLanes(c, 0, kTemp, [&](Vec const& to, Vec const& a, Vec const& b) { c.vaddps(to, a, b); });
        c.vbroadcastss(c.vec(kTemp), c.ptr[rdi + int(offsetof(LayerNormArgs, inverseN))]);
        c.vmulps(c.vec(0), c.vec(0), c.vec(kTemp));
    }

    void mean()
    {
        clearSums();
        vectors([&](int i, bool masked) {
            if (masked) {
                tail_.load(kTemp, at(r8, i));
                c.vaddps(c.vec(kSum + i), c.vec(kSum + i), c.vec(kTemp));
            } else {
                c.vaddps(c.vec(kSum + i), c.vec(kSum + i), at(r8, i));
            }
        });
        joinSums();
        c.vmovaps(c.vec(kMean), c.vec(0));
    }

    void row()
    {
        if (!form_.rms)
            mean();
        clearSums();
        vectors([&](int i, bool masked) {
            int const d = kTemp + i;
            load(d, at(r8, i), masked);
            if (masked && !form_.rms)
                tail_.fill(d, kMean);
            if (!form_.rms)
                c.vsubps(c.vec(d), c.vec(d), c.vec(kMean));
            c.vfmadd231ps(c.vec(kSum + i), c.vec(d), c.vec(d));
        });
        joinSums();
        c.vbroadcastss(c.vec(kTemp), c.ptr[rdi + int(offsetof(LayerNormArgs, epsilon))]);
        c.vaddps(c.vec(0), c.vec(0), c.vec(kTemp));
        c.vsqrtps(c.vec(0), c.vec(0));
        c.loadConstant(kFactor, 1.f);
        c.vdivps(c.vec(kFactor), c.vec(kFactor), c.vec(0));
        vectors([&](int i, bool masked) { result(i, masked); });
    }

    void result(int i, bool masked)
    {
        // An activation has the registers after its vector to itself.
        int const d = form_.activation ? kTemp : kTemp + 2 * i, b = d + 1;
        load(d, at(r8, i), masked);
        if (form_.gamma)
            load(b, at(rsi, i), masked);
        if (!form_.rms)
            c.vsubps(c.vec(d), c.vec(d), c.vec(kMean));
        c.vmulps(c.vec(d), c.vec(d), c.vec(kFactor));
        if (form_.gamma)
            c.vmulps(c.vec(d), c.vec(d), c.vec(b));
        if (form_.beta) {
            load(b, at(rdx, i), masked);
            c.vaddps(c.vec(d), c.vec(d), c.vec(b));
        }
        if (form_.activation)
            emitActivation(c, *form_.activation, d, b);
        if (masked)
            tail_.store(at(r9, i), d);
        else
            c.vmovups(at(r9, i), c.vec(d));
    }
};

} // namespace

Result<LayerNormKernel> LayerNormKernel::emit(Isa isa, LayerNormForm const& form)
{
    LayerNormKernel kernel;
    TW_ASSIGN(kernel.code_, jit::emit(isa, [&](VectorCode& c) { LayerNormEmitter(c, form).emit(); }));
    return kernel;
}

} // namespace tw::kernels::jit
