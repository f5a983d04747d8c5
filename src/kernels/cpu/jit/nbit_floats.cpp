// SPDX-License-Identifier: Apache-2.0
// For each group and block: parts of up to 32 numbers of all columns become floats on the stack (4 KiB at most, in L1), then rows go
// over them, as many at a time as registers hold sums of; sums wait in memory, which is read and written once a part.
#include "kernels/cpu/jit/nbit_floats.h"

#include <algorithm>

#include "base/round.h"

namespace tw::kernels::jit {

namespace {

class NbitFloatsEmitter
{
public:
    NbitFloatsEmitter(VectorCode& code, NbitForm const& form, int rows)
        : c(code), f(form), rows_(rows), part_(form.block % 32 == 0 ? 32 : 16), perLane_(32 / form.bits)
    {
        int const most = (c.vectorCount() - f.vectors - 1) / f.vectors;
        height_ = int(divideUp(rows, divideUp(rows, most)));
    }

    void emit()
    {
        Xbyak::Label group, adds, block, ends;
        c.push(frame_);
        c.push(xAt_);
        c.mov(frame_, c.rsp);
        c.sub(c.rsp, part_ * rowBytes());
        c.and_(c.rsp, -64);
        c.mov(w_, member(offsetof(NbitArgs, weights)));
        c.mov(sums_, member(offsetof(NbitArgs, sums)));
        c.mov(groups_, member(offsetof(NbitArgs, groups)));
        c.L(group);
        c.mov(x_, member(offsetof(NbitArgs, x)));
        c.mov(blocks_, member(offsetof(NbitArgs, blocks)));
        c.cmp(member(offsetof(NbitArgs, adds)), 0);
        c.jne(adds, c.T_NEAR);
        c.zero(0);
        for (int i = 0; i < rows_ * f.vectors; ++i)
            c.vmovups(c.ptr[sums_ + i * c.vectorBytes()], c.vec(0));
        c.L(adds);
        c.test(blocks_, blocks_);
        c.jz(ends, c.T_NEAR);
        c.align(32);
        c.L(block);
        wholeBlock();
        c.dec(blocks_);
        c.jnz(block, c.T_NEAR);
        c.L(ends);
        c.add(sums_, rows_ * rowBytes());
        c.dec(groups_);
        c.jnz(group, c.T_NEAR);
        c.vzeroupper();
        c.mov(c.rsp, frame_);
        c.pop(xAt_);
        c.pop(frame_);
        c.ret();
    }

private:
    VectorCode& c;
    NbitForm const& f;
    int const rows_, part_, perLane_;
    int height_ = 1; // rows at a time
    Xbyak::Reg64 const args_ = Xbyak::util::rdi, w_ = Xbyak::util::rsi, x_ = Xbyak::util::rdx,
                       blocks_ = Xbyak::util::rcx, parts_ = Xbyak::util::r8, sums_ = Xbyak::util::r9,
                       groups_ = Xbyak::util::r10, words_ = Xbyak::util::r11, at_ = Xbyak::util::rax,
                       xAt_ = Xbyak::util::rbx, frame_ = Xbyak::util::rbp;

    Xbyak::Address member(size_t at) const { return c.qword[args_ + int(at)]; }
    int rowBytes() const { return f.vectors * c.vectorBytes(); } // of a row of sums, floats or words
    int columns() const { return f.vectors * c.width(); }
    int zerosAt() const { return f.scaleBytes() * columns(); }
    int weightsAt() const { return zerosAt() + f.zeroBytes() * columns(); }

    void wholeBlock()
    {
        Xbyak::Label part;
        int const parts = f.block / part_;
        c.lea(words_, c.ptr[w_ + weightsAt()]);
        c.mov(parts_.cvt32(), parts);
        c.L(part);
        for (int v = 0; v < f.vectors; ++v)
            makeFloats(v);
        for (int row = 0; row < rows_; row += height_)
            multiply(row, std::min(height_, rows_ - row));
        c.add(x_, part_ * rows_ * 4);
        if (parts > 1) {
            c.add(words_, part_ / perLane_ * rowBytes());
            c.dec(parts_.cvt32());
            c.jnz(part, c.T_NEAR);
        }
        c.add(w_, f.columnBytes() * columns());
    }

    // scale q - scale zero, of a part's numbers of a vector of columns.
    void makeFloats(int v)
    {
        int const scale = 0, offset = 1, mask = 2, words = 3, number = 4; // and the next three, in turn
        scaleAndOffset(v, scale, offset);
        c.mov(at_.cvt32(), (1U << f.bits) - 1);
        c.vmovd(Xbyak::Xmm(mask), at_.cvt32());
        c.vpbroadcastd(c.vec(mask), Xbyak::Xmm(mask));
        for (int k = 0; k < part_; ++k) {
            int const in = k % perLane_, to = number + k % 4;
            if (in == 0)
                c.vmovups(c.vec(words), c.ptr[words_ + k / perLane_ * rowBytes() + v * c.vectorBytes()]);
            // Byte in % 4, from bit bits (in / 4) on.
            if (int const shift = 8 * (in % 4) + f.bits * (in / 4); shift > 0)
                c.vpsrld(c.vec(to), c.vec(words), uint8_t(shift));
            else
                c.vmovaps(c.vec(to), c.vec(words));
            c.avx512() ? c.vpandd(c.vec(to), c.vec(to), c.vec(mask)) : c.vpand(c.vec(to), c.vec(to), c.vec(mask));
            c.vcvtdq2ps(c.vec(to), c.vec(to));
            c.vfmadd213ps(c.vec(to), c.vec(scale), c.vec(offset));
            c.vmovaps(c.ptr[c.rsp + k * rowBytes() + v * c.vectorBytes()], c.vec(to));
        }
    }

    void scaleAndOffset(int v, int scale, int offset)
    {
        Xbyak::Address const scales = c.ptr[w_ + v * c.width() * f.scaleBytes()],
                             zeros = c.ptr[w_ + zerosAt() + v * c.width() * f.zeroBytes()];
        f.halfScales ? c.vcvtph2ps(c.vec(scale), scales) : c.vmovups(c.vec(scale), scales);
        if (f.zeros == NbitForm::kMiddle) {
            c.vmulps(c.vec(offset), c.vec(scale), c.constant(-float(1 << (f.bits - 1))));
            return;
        }
        if (f.zeros == NbitForm::kBytes) {
            c.vpmovzxbd(c.vec(offset), zeros);
            c.vcvtdq2ps(c.vec(offset), c.vec(offset));
        } else {
            c.vmovups(c.vec(offset), zeros);
        }
        c.vmulps(c.vec(offset), c.vec(offset), c.vec(scale));
        c.vmulps(c.vec(offset), c.vec(offset), c.constant(-1));
    }

    // Sums of rows from `first` on += a part.
    void multiply(int first, int height)
    {
        constexpr int kUnroll = 8;
        Xbyak::Label again;
        auto const sum = [&](int row, int v) { return row * f.vectors + v; };
        auto const memory = [&](int row, int v) {
            return c.ptr[sums_ + (first + row) * rowBytes() + v * c.vectorBytes()];
        };
        for (int row = 0; row < height; ++row)
            for (int v = 0; v < f.vectors; ++v)
                c.vmovups(c.vec(sum(row, v)), memory(row, v));
        c.lea(xAt_, c.ptr[x_ + first * 4]);
        c.xor_(at_.cvt32(), at_.cvt32());
        c.L(again);
        for (int k = 0; k < kUnroll; ++k)
            multiplyBy(k, height);
        c.add(xAt_, kUnroll * rows_ * 4);
        c.add(at_.cvt32(), kUnroll * rowBytes());
        c.cmp(at_.cvt32(), part_ * rowBytes());
        c.jb(again, c.T_NEAR);
        for (int row = 0; row < height; ++row)
            for (int v = 0; v < f.vectors; ++v)
                c.vmovups(memory(row, v), c.vec(sum(row, v)));
    }

    void multiplyBy(int k, int height)
    {
        int const w = height * f.vectors, x = w + f.vectors;
        for (int v = 0; v < f.vectors; ++v)
            c.vmovaps(c.vec(w + v), c.ptr[c.rsp + at_ + k * rowBytes() + v * c.vectorBytes()]);
        for (int row = 0; row < height; ++row) {
            c.vbroadcastss(c.vec(x), c.ptr[xAt_ + (k * rows_ + row) * 4]);
            for (int v = 0; v < f.vectors; ++v)
                c.vfmadd231ps(c.vec(row * f.vectors + v), c.vec(x), c.vec(w + v));
        }
    }
};

} // namespace

void emitNbitFloats(VectorCode& code, NbitForm const& form, int rows)
{
    NbitFloatsEmitter(code, form, rows).emit();
}

} // namespace tw::kernels::jit
