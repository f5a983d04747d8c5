// SPDX-License-Identifier: Apache-2.0
// Emits how floats become bytes, and bytes go through a table of 256 bytes, that of -128 first. Includes Xbyak: for
// .cpp files only.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/cpu/jit/vector_code.h"

namespace tw::kernels::jit {

// The bytes of register `y`, by AVX512-VBMI; overwrites registers `temp` and temp + 1, and k3. Each permutation chooses
// among 128 bytes by seven bits of an index: one for numbers from 0 on, one for the others.
inline void emitByteTable(VectorCode& c, int y, int temp, Xbyak::Reg64 const& table)
{
    Xbyak::Zmm const bytes(y), half(temp), positive(temp + 1);
    c.vmovdqa64(positive, bytes);
    c.vmovdqu8(half, c.ptr[table + 128]);
    c.vpermi2b(positive, half, c.ptr[table + 192]);
    c.vpmovb2m(c.k3, bytes);
    c.vmovdqu8(half, c.ptr[table]);
    c.vpermi2b(bytes, half, c.ptr[table + 64]);
    c.vpblendmb(bytes | c.k3, positive, bytes);
}

// One byte in memory; overwrites rax.
inline void emitByteTable(VectorCode& c, Xbyak::RegExp const& byte, Xbyak::Reg64 const& table)
{
    c.movsx(c.rax, c.byte[byte]);
    c.mov(c.al, c.byte[table + c.rax + 128]);
    c.mov(c.byte[byte], c.al);
}

// t as i8, in floats, NaN as 0: half to even, into [-128, 127]. Overwrites k3, or register `temp`; `least` and `most`
// hold -128 and 127.
inline void emitRoundToByte(VectorCode& c, int t, int least, int most, int temp)
{
    constexpr uint8_t kHalfToEven = 0, kOrdered = 7;
    Vec const x = c.vec(t);
    if (c.avx512()) {
        c.vcmpps(c.k3, x, x, kOrdered);
        c.vrndscaleps(x | c.k3 | Xbyak::util::T_z, x, kHalfToEven);
    } else {
        c.vcmpps(c.vec(temp), x, x, kOrdered);
        c.vandps(x, x, c.vec(temp));
        c.vroundps(x, x, kHalfToEven);
    }
    c.vminps(x, x, c.vec(most));
    c.vmaxps(x, x, c.vec(least));
}

// Floats to integers that saturating packs make bytes of, half to even. Not `bounded`: NaN becomes 0, and the smaller of
// x and 127 counts, as numbers beyond 2^31 would become INT_MIN; `most` holds 127; overwrites k3, or `temp`.
inline void emitToIntegers(VectorCode& c, Vec const& x, bool bounded, Vec const& most, Vec const& temp)
{
    constexpr uint8_t kOrdered = 7;
    if (bounded) {
        c.vcvtps2dq(x, x);
    } else if (c.avx512()) {
        c.vcmpps(c.k3, x, x, kOrdered);
        c.vminps(x, x, most);
        c.vcvtps2dq(x | c.k3 | Xbyak::util::T_z, x);
    } else {
        c.vcmpps(temp, x, x, kOrdered);
        c.vminps(x, x, most);
        c.vandps(x, x, temp);
        c.vcvtps2dq(x, x);
    }
}

// Every byte of `to` is what v is as i8. Overwrites `scratch`.
inline void emitBytes(VectorCode& c, Vec const& to, float v, Xbyak::Reg64 const& scratch)
{
    c.mov(scratch.cvt32(), 0x01010101u * uint8_t(int8_t(std::clamp(std::nearbyint(v), -128.F, 127.F))));
    c.vmovd(Xbyak::Xmm(to.getIdx()), scratch.cvt32());
    c.vpbroadcastd(to, Xbyak::Xmm(to.getIdx()));
}

} // namespace tw::kernels::jit
