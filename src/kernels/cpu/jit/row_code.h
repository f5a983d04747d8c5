// SPDX-License-Identifier: Apache-2.0
// What kernels that go along rows share: the last, partial vector of a row, and joining the lanes of a vector. Includes
// Xbyak: for .cpp files only.
#pragma once

#include <cstddef>

#include "kernels/cpu/jit/vector_code.h"

namespace tw::kernels::jit {

// The first `count` lanes of a vector. AVX-512 keeps them in k1, AVX2 in vector register `reg`.
class Tail
{
public:
    Tail(VectorCode& code, int reg) : c(code), reg_(reg) {}

    // From a register with the number of lanes (0 .. width - 1), which is overwritten like `scratch`.
    void set(Xbyak::Reg64 const& count, Xbyak::Reg64 const& scratch)
    {
        if (c.avx512()) {
            c.mov(scratch.cvt32(), -1);
            c.bzhi(scratch.cvt32(), scratch.cvt32(), count.cvt32());
            c.kmovw(c.k1, scratch.cvt32());
            return;
        }
        c.lea(scratch, c.ptr[Xbyak::util::rip + table_ + 32]);
        c.neg(count);
        c.vmovups(c.vec(reg_), c.ptr[scratch + count * 4]);
    }
    // Lanes outside read as zero.
    void load(int to, Xbyak::Address const& from)
    {
        if (c.avx512())
            c.vmovups(c.vec(to) | c.k1 | Xbyak::util::T_z, from);
        else
            c.vmaskmovps(c.vec(to), c.vec(reg_), from);
    }
    void store(Xbyak::Address const& to, int from)
    {
        if (c.avx512())
            c.vmovups(to | c.k1, c.vec(from));
        else
            c.vmaskmovps(to, c.vec(reg_), c.vec(from));
    }
    // Lanes outside become those of `other`; `x` keeps the rest.
    void fill(int x, int other)
    {
        if (c.avx512()) {
            c.vblendmps(c.vec(x) | c.k1, c.vec(other), c.vec(x));
            return;
        }
        c.vblendvps(c.vec(x), c.vec(other), c.vec(x), c.vec(reg_));
    }
    // After the function's return.
    void table()
    {
        if (c.avx512())
            return;
        c.align(64);
        c.L(table_);
        for (int i = 0; i < 16; ++i)
            c.dd(i < 8 ? 0xffffffffu : 0u);
    }

private:
    VectorCode& c;
    int reg_;
    Xbyak::Label table_;
};

// Every lane of x becomes join(all lanes); `temp` is overwritten. join(to, a, b) emits one instruction on vectors.
template <class Join>
void joinLanes(VectorCode& c, int x, int temp, Join const& join)
{
    if (c.avx512()) {
        c.vshuff32x4(Xbyak::Zmm(temp), Xbyak::Zmm(x), Xbyak::Zmm(x), 0x4e);
        join(c.vec(x), c.vec(x), c.vec(temp));
        c.vshuff32x4(Xbyak::Zmm(temp), Xbyak::Zmm(x), Xbyak::Zmm(x), 0xb1);
    } else {
        c.vperm2f128(Xbyak::Ymm(temp), Xbyak::Ymm(x), Xbyak::Ymm(x), 1);
    }
    join(c.vec(x), c.vec(x), c.vec(temp));
    c.vshufps(c.vec(temp), c.vec(x), c.vec(x), 0x4e);
    join(c.vec(x), c.vec(x), c.vec(temp));
    c.vshufps(c.vec(temp), c.vec(x), c.vec(x), 0xb1);
    join(c.vec(x), c.vec(x), c.vec(temp));
}

// body(bytes) for `count` (a register, overwritten) runs over whole vectors from `at` (advanced) on, four at a time
// while there are four: body(i) handles the vector i behind `at`, i = 0 .. 3.
template <class Body>
void forVectors(VectorCode& c, Xbyak::Reg64 const& at, Xbyak::Reg64 const& count, Body const& body)
{
    Xbyak::Label four, rest, one, done;
    c.L(four);
    c.sub(count, 4);
    c.jl(rest, c.T_NEAR);
    for (int i = 0; i < 4; ++i)
        body(i);
    c.add(at, 4 * c.vectorBytes());
    c.jmp(four, c.T_NEAR);
    c.L(rest);
    c.add(count, 4);
    c.L(one);
    c.dec(count);
    c.jl(done, c.T_NEAR);
    body(0);
    c.add(at, c.vectorBytes());
    c.jmp(one, c.T_NEAR);
    c.L(done);
}

} // namespace tw::kernels::jit
