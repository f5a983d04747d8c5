// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/byte_table.h"

#include "kernels/cpu/jit/vector_code.h"

namespace tw::kernels::jit {

namespace {

// rdi table, rsi x, rdx y, rcx n
void emitTable(VectorCode& c)
{
    using namespace Xbyak;
    using namespace Xbyak::util;
    constexpr int kBytes = 64; // of a vector
    for (int i = 0; i < 4; ++i)
        c.vmovdqu64(Zmm(i), c.ptr[rdi + kBytes * i]);
    // Each permutation takes the low seven bits of x; the eighth says which of the two counts.
    auto const look = [&] {
        c.vpmovb2m(k1, zmm4);
        c.vmovdqa64(zmm5, zmm4);
        c.vpermi2b(zmm5, zmm0, zmm1);
        c.vpermi2b(zmm4, zmm2, zmm3);
        c.vpblendmb(zmm5 | k1, zmm5, zmm4);
    };
    Label next, tail, end;
    c.sub(rcx, kBytes);
    c.jl(tail, CodeGenerator::T_NEAR);
    c.align(32);
    c.L(next);
    c.vmovdqu8(zmm4, c.ptr[rsi]);
    look();
    c.vmovdqu8(c.ptr[rdx], zmm5);
    c.add(rsi, kBytes);
    c.add(rdx, kBytes);
    c.sub(rcx, kBytes);
    c.jge(next, CodeGenerator::T_NEAR);
    c.L(tail);
    c.add(rcx, kBytes);
    c.jle(end, CodeGenerator::T_NEAR);
    c.mov(rax, -1);
    c.bzhi(rax, rax, rcx);
    c.kmovq(k2, rax);
    c.vmovdqu8(zmm4 | k2 | T_z, c.ptr[rsi]);
    look();
    c.vmovdqu8(c.ptr[rdx] | k2, zmm5);
    c.L(end);
    c.vzeroupper();
    c.ret();
}

} // namespace

Result<ByteTableKernel> ByteTableKernel::emit()
{
    ByteTableKernel kernel;
    TW_ASSIGN(kernel.code_, jit::emit(Isa::kAvx512, emitTable));
    return kernel;
}

} // namespace tw::kernels::jit
