// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/matrix_copy.h"

#include "kernels/cpu/jit/row_code.h"

namespace tw::kernels::jit {

namespace {

using namespace Xbyak::util;

void emitCopyRows(VectorCode& c)
{
    // rdi args; r8 x, r9 y, r10 rows, r11 n, rsi and rdx strides; rax offset, rcx count
    constexpr int kFactor = 8;
    Tail tail(c, 15);
    auto load = [&](Xbyak::Reg64 const& r, size_t offset) { c.mov(r, c.ptr[rdi + int(offset)]); };
    load(r8, offsetof(CopyRowsArgs, x));
    load(r9, offsetof(CopyRowsArgs, y));
    load(rsi, offsetof(CopyRowsArgs, xStrideBytes));
    load(rdx, offsetof(CopyRowsArgs, yStrideBytes));
    load(r10, offsetof(CopyRowsArgs, rows));
    load(r11, offsetof(CopyRowsArgs, n));
    c.vbroadcastss(c.vec(kFactor), c.ptr[rdi + int(offsetof(CopyRowsArgs, factor))]);
    c.mov(rax, r11);
    c.and_(rax, c.width() - 1);
    tail.set(rax, rcx);
    Xbyak::Label next, noTail;
    c.L(next);
    c.xor_(eax, eax);
    c.mov(rcx, r11);
    c.shr(rcx, c.avx512() ? 4 : 3);
    forVectors(c, rax, rcx, [&](int i) {
        int const at = i * c.vectorBytes();
        c.vmulps(c.vec(i), c.vec(kFactor), c.ptr[r8 + rax + at]);
        c.vmovups(c.ptr[r9 + rax + at], c.vec(i));
    });
    c.test(r11.cvt32(), c.width() - 1);
    c.jz(noTail, c.T_NEAR);
    tail.load(0, c.ptr[r8 + rax]);
    c.vmulps(c.vec(0), c.vec(0), c.vec(kFactor));
    c.zero(1);
    tail.fill(0, 1); // an infinite factor would make NaN of the zeros
    c.vmovups(c.ptr[r9 + rax], c.vec(0));
    c.L(noTail);
    c.add(r8, rsi);
    c.add(r9, rdx);
    c.dec(r10);
    c.jnz(next, c.T_NEAR);
    c.vzeroupper();
    c.ret();
    tail.table();
}

// Pairs of rows, then fours, then lanes of 128 bits are swapped.
void emitTranspose(VectorCode& c)
{
    int const w = c.width();
    // rdi x, rsi its stride, rdx y, rcx its stride
    for (int i = 0; i < w; ++i) {
        c.vmovups(c.vec(i), c.ptr[rdi]);
        if (i + 1 < w)
            c.add(rdi, rsi);
    }
    for (int i = 0; i < w; i += 2) { // t[i] in w + i
        c.vunpcklps(c.vec(w + i), c.vec(i), c.vec(i + 1));
        c.vunpckhps(c.vec(w + i + 1), c.vec(i), c.vec(i + 1));
    }
    for (int i = 0; i < w; i += 4) { // register 4 q + j: in lane l the rows 4 q .. 4 q + 3 of column 4 l + j
        c.vunpcklpd(c.vec(i), c.vec(w + i), c.vec(w + i + 2));
        c.vunpckhpd(c.vec(i + 1), c.vec(w + i), c.vec(w + i + 2));
        c.vunpcklpd(c.vec(i + 2), c.vec(w + i + 1), c.vec(w + i + 3));
        c.vunpckhpd(c.vec(i + 3), c.vec(w + i + 1), c.vec(w + i + 3));
    }
    auto shuffle = [&](int to, int a, int b, int order) {
        c.vshuff32x4(Xbyak::Zmm(to), Xbyak::Zmm(a), Xbyak::Zmm(b), uint8_t(order));
    };
    for (int j = 0; j < 4; ++j) {
        if (c.avx512()) {
            int const t = w + 4 * j; // temporaries of their own for each j
            shuffle(t, j, 4 + j, 0x88);
            shuffle(t + 1, j, 4 + j, 0xdd);
            shuffle(t + 2, 8 + j, 12 + j, 0x88);
            shuffle(t + 3, 8 + j, 12 + j, 0xdd);
            shuffle(j, t, t + 2, 0x88);
            shuffle(4 + j, t + 1, t + 3, 0x88);
            shuffle(8 + j, t, t + 2, 0xdd);
            shuffle(12 + j, t + 1, t + 3, 0xdd);
        } else {
            c.vperm2f128(Xbyak::Ymm(w + j), Xbyak::Ymm(j), Xbyak::Ymm(4 + j), 0x20);
            c.vperm2f128(Xbyak::Ymm(4 + j), Xbyak::Ymm(j), Xbyak::Ymm(4 + j), 0x31);
            c.vmovaps(c.vec(j), c.vec(w + j));
        }
    }
    for (int i = 0; i < w; ++i) {
        c.vmovups(c.ptr[rdx], c.vec(i));
        if (i + 1 < w)
            c.add(rdx, rcx);
    }
    c.vzeroupper();
    c.ret();
}

} // namespace

Result<CopyRowsKernel> CopyRowsKernel::emit(Isa isa)
{
    CopyRowsKernel kernel;
    TW_ASSIGN(kernel.code_, jit::emit(isa, [](VectorCode& c) { emitCopyRows(c); }));
    return kernel;
}

Result<TransposeKernel> TransposeKernel::emit(Isa isa)
{
    TransposeKernel kernel;
    TW_ASSIGN(kernel.code_, jit::emit(isa, [](VectorCode& c) { emitTranspose(c); }));
    return kernel;
}

} // namespace tw::kernels::jit
