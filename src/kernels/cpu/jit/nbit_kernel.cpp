// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/nbit_kernel.h"

#include "kernels/cpu/jit/nbit_floats.h"
#include "kernels/cpu/jit/vector_code.h"

namespace tw::kernels::jit {

namespace {

class NbitEmitter
{
public:
    NbitEmitter(VectorCode& code, Factors factors, NbitForm const& form, int rows)
        : c(code), factors_(factors), f(form), rows_(rows), planes_(8 / form.bits), steps_(form.block * form.bits / 32),
          raw_(rows * form.vectors * (form.limbs + 1))
    {
        // Whole blocks, or equal parts of them, as far as their code stays small.
        constexpr int kMostDots = 192;
        int const dots = planes_ * rows_ * f.vectors * f.limbs;
        unroll_ = steps_;
        for (int parts = 2; unroll_ * dots > kMostDots && parts <= steps_; ++parts)
            if (steps_ % parts == 0)
                unroll_ = steps_ / parts;
    }

    void emit()
    {
        Xbyak::Label group, starts, block, ends;
        c.mov(w_, member(offsetof(NbitArgs, weights)));
        c.mov(sums_, member(offsetof(NbitArgs, sums)));
        c.mov(groups_, member(offsetof(NbitArgs, groups)));
        if (masks())
            fill(mask(), 0x01010101u * ((1u << bitsOfPlane()) - 1));
        if (isPairs() && c.avx512()) {
            fill(ones(), 0x00010001);
            fill(ones() + 1, 0x00100010);
        }
        c.L(group);
        c.mov(x_, member(offsetof(NbitArgs, x)));
        c.mov(blocks_, member(offsetof(NbitArgs, blocks)));
        for (int i = 0; i < totals(); ++i)
            c.zero(i);
        c.cmp(member(offsetof(NbitArgs, adds)), 0);
        c.je(starts);
        for (int i = 0; i < totals(); ++i)
            c.vmovups(c.vec(i), c.ptr[sums_ + i * c.vectorBytes()]);
        c.L(starts);
        c.test(blocks_, blocks_);
        c.jz(ends, c.T_NEAR);
        c.align(32);
        c.L(block);
        for (int i = totals(); i < raw_; ++i)
            c.zero(i);
        products();
        endOfBlock();
        c.dec(blocks_);
        c.jnz(block, c.T_NEAR);
        c.L(ends);
        for (int i = 0; i < totals(); ++i)
            c.vmovups(c.ptr[sums_ + i * c.vectorBytes()], c.vec(i));
        c.add(sums_, totals() * c.vectorBytes());
        c.dec(groups_);
        c.jnz(group, c.T_NEAR);
        c.vzeroupper();
        c.ret();
    }

private:
    VectorCode& c;
    Factors const factors_;
    NbitForm const& f;
    int const rows_, planes_, steps_;
    int unroll_ = 1;
    int const raw_; // behind the sums
    Xbyak::Reg64 const args_ = Xbyak::util::rdi, w_ = Xbyak::util::rsi, x_ = Xbyak::util::rdx,
                       blocks_ = Xbyak::util::rcx, loop_ = Xbyak::util::r8, sums_ = Xbyak::util::r9,
                       groups_ = Xbyak::util::r10;

    Xbyak::Address member(size_t at) const { return c.qword[args_ + int(at)]; }
    int totals() const { return rows_ * f.vectors; }

    bool isPairs() const { return factors_ == Factors::kBytePairs; }
    // Products of pairs are summed in 16 bits, for which weights of 8 are too large: they go in as two of 4.
    bool splits() const { return isPairs() && f.bits == 8; }
    bool masks() const { return f.bits < 8 || splits(); }
    int bitsOfPlane() const { return splits() ? 4 : f.bits; }

    int total(int row, int v) const { return row * f.vectors + v; }
    int sum(int row, int v, int limb) const { return (rows_ + row * f.limbs + limb) * f.vectors + v; }
    int columns() const { return f.vectors * c.width(); }
    int stepBytes() const { return f.vectors * c.vectorBytes(); }
    int plane() const { return raw_ + 1; }
    int mask() const { return raw_ + 2; }
    int element() const { return raw_ + 3; }
    int ones() const { return raw_ + 4; } // and sixteens; AVX-512 alone

    void fill(int v, uint32_t bits)
    {
        c.mov(loop_.cvt32(), bits);
        c.vmovd(Xbyak::Xmm(v), loop_.cvt32());
        c.vpbroadcastd(c.vec(v), Xbyak::Xmm(v));
    }

    int zerosAt() const { return f.scaleBytes() * columns(); }
    int weightsAt() const { return zerosAt() + f.zeroBytes() * columns(); }
    int limbsAt() const { return rows_ * 8; }

    void products()
    {
        int const parts = steps_ / unroll_;
        Xbyak::Label again;
        if (parts > 1) {
            c.mov(loop_.cvt32(), parts);
            c.L(again);
        }
        for (int s = 0; s < unroll_; ++s)
            step(s);
        if (parts > 1) {
            c.add(w_, unroll_ * stepBytes());
            c.add(x_, unroll_ * planes_ * 4);
            c.dec(loop_.cvt32());
            c.jnz(again, c.T_NEAR);
        }
    }

    // Nothing is fetched ahead: one stream is what the CPU itself foresees (Zen 4: 1.06 times the time of a loop that
    // only reads; with fetches of 2 KiB ahead 1.3 times).
    void step(int s)
    {
        for (int v = 0; v < f.vectors; ++v) {
            c.vmovups(c.vec(raw_), c.ptr[w_ + (weightsAt() + s * stepBytes() + v * c.vectorBytes())]);
            for (int p = 0; p < planes_; ++p) {
                int w = raw_;
                if (masks()) {
                    w = plane();
                    part(w, p * f.bits);
                }
                dots(v, w, (s * planes_ + p) * 4, 0);
                if (splits()) {
                    part(w, 4);
                    dots(v, w, (s * planes_ + p) * 4, 1);
                }
            }
        }
    }

    // Bits from `shift` on of each byte.
    void part(int to, int shift)
    {
        Vec from = c.vec(raw_);
        if (shift > 0) {
            c.vpsrld(c.vec(to), from, uint8_t(shift));
            from = c.vec(to);
        }
        c.avx512() ? c.vpandd(c.vec(to), from, c.vec(mask())) : c.vpand(c.vec(to), from, c.vec(mask()));
    }

    // isUpper: w counts sixteen times.
    void dots(int v, int w, int k, int isUpper)
    {
        for (int row = 0; row < rows_; ++row)
            for (int limb = 0; limb < f.limbs; ++limb) {
                int const at = limbsAt() + (row * f.limbs + limb) * f.block + k;
                dot(sum(row, v, limb), w, at, isUpper);
            }
    }

    void dot(int to, int w, int at, int isUpper)
    {
        if (!isPairs() && c.avx512()) {
            c.vpdpbusd(c.vec(to), c.vec(w), c.ptr_b[x_ + at], Xbyak::EvexEncoding);
            return;
        }
        Vec const e = c.vec(element());
        c.vpbroadcastd(e, c.ptr[x_ + at]);
        if (!isPairs()) {
            c.vpdpbusd(c.vec(to), c.vec(w), e,
                       factors_ == Factors::kByteDotsWide ? Xbyak::EvexEncoding : Xbyak::VexEncoding);
            return;
        }
        c.vpmaddubsw(e, c.vec(w), e);
        c.avx512() ? c.vpmaddwd(e, e, c.vec(ones() + isUpper))
                   : c.vpmaddwd(e, e, c.constantBits(isUpper ? 0x00100010 : 0x00010001));
        c.vpaddd(c.vec(to), c.vec(to), e);
    }

    void endOfBlock()
    {
        int const parts = steps_ / unroll_;
        int const w0 = parts > 1 ? -steps_ * stepBytes() : 0, x0 = parts > 1 ? -f.block : 0;
        for (int v = 0; v < f.vectors; ++v)
            endOfBlock(v, w0, x0);
        c.add(w_, w0 + f.columnBytes() * columns());
        c.add(x_, x0 + f.rowBytes() * rows_);
    }

    // total += scale (s sums + zero (-s sum(q)))
    void endOfBlock(int v, int w0, int x0)
    {
        int const scale = raw_, zero = plane(), number = element();
        int const scaleAt = w0 + v * c.width() * f.scaleBytes(),
                  zeroAt = w0 + zerosAt() + v * c.width() * f.zeroBytes();
        if (f.halfScales)
            c.vcvtph2ps(c.vec(scale), c.ptr[w_ + scaleAt]);
        else
            c.vmovups(c.vec(scale), c.ptr[w_ + scaleAt]);
        if (f.zeros == NbitForm::kBytes) {
            c.vpmovzxbd(c.vec(zero), c.ptr[w_ + zeroAt]);
            c.vcvtdq2ps(c.vec(zero), c.vec(zero));
        } else if (f.zeros == NbitForm::kFloats) {
            c.vmovups(c.vec(zero), c.ptr[w_ + zeroAt]);
        }
        for (int row = 0; row < rows_; ++row) {
            int const t = sum(row, v, 0), pair = x0 + row * 8;
            for (int limb = 0; limb < f.limbs; ++limb)
                c.vcvtdq2ps(c.vec(sum(row, v, limb)), c.vec(sum(row, v, limb)));
            for (int limb = 1; limb < f.limbs; ++limb)
                c.vfmadd132ps(c.vec(t), c.vec(sum(row, v, limb)), c.constant(256));
            c.vbroadcastss(c.vec(number), c.ptr[x_ + pair]);
            if (f.zeros == NbitForm::kMiddle) {
                c.vbroadcastss(c.vec(zero), c.ptr[x_ + (pair + 4)]);
                c.vfmadd213ps(c.vec(t), c.vec(number), c.vec(zero));
            } else {
                c.vmulps(c.vec(t), c.vec(t), c.vec(number));
                c.vbroadcastss(c.vec(number), c.ptr[x_ + (pair + 4)]);
                c.vfmadd231ps(c.vec(t), c.vec(number), c.vec(zero));
            }
            c.vfmadd231ps(c.vec(total(row, v)), c.vec(t), c.vec(scale));
        }
    }
};

} // namespace

int NbitKernel::mostRows(Isa isa, Factors factors, NbitForm const& form)
{
    if (form.limbs == 0)
        return kMostRowsOfFloats;
    bool const isWide = isa == Isa::kAvx512;
    int const others = 4 + (isWide && factors == Factors::kBytePairs ? 2 : 0);
    return ((isWide ? 32 : 16) - others) / (form.vectors * (form.limbs + 1));
}

Result<NbitKernel> NbitKernel::emit(Isa isa, Factors factors, NbitForm const& form, int rows)
{
    if (rows < 1 || form.vectors < 1 || rows > mostRows(isa, factors, form) || form.block < 16 || form.block > 256 ||
        form.block % 16 != 0)
        return internalError("a kernel for weights of {} bits was asked for {} rows and blocks of {}", form.bits, rows,
                             form.block);
    NbitKernel kernel;
    TW_ASSIGN(kernel.code_, jit::emit(isa, [&](VectorCode& c) {
                  form.limbs == 0 ? emitNbitFloats(c, form, rows) : NbitEmitter(c, factors, form, rows).emit();
              }));
    return kernel;
}

} // namespace tw::kernels::jit
