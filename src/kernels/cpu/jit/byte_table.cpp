// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/byte_table.h"

#include "kernels/cpu/jit/vector_code.h"

namespace tw::kernels::jit {

namespace {

// rdi table, rsi x, rdx y, rcx n

// Registers: bits 0 to 3 of x and the mask of them, then x shifted so that bit 4, 5, 6 or 7 decides a blend; parts of the
// table, each where the last four or fewer wait for their blend.
class ShuffleEmitter
{
public:
    explicit ShuffleEmitter(VectorCode& code) : c(code) {}

    void emit()
    {
        using namespace Xbyak::util;
        constexpr int kBytes = 32; // of a vector
        Xbyak::Label next, tail, byte, end;
        c.mov(eax, 0x0f0f0f0f);
        c.vmovd(xmm1, eax);
        c.vpbroadcastd(ymm1, xmm1);
        c.sub(rcx, kBytes);
        c.jl(tail, Xbyak::CodeGenerator::T_NEAR);
        c.align(32);
        c.L(next);
        c.vmovdqu(ymm(kDeciders + 3), c.ptr[rsi]);
        c.vpand(ymm0, ymm1, ymm(kDeciders + 3));
        for (int bit = 0; bit < 3; ++bit)
            c.vpsllw(ymm(kDeciders + bit), ymm(kDeciders + 3), uint8_t(3 - bit));
        look(3, 0, 0);
        c.vmovdqu(c.ptr[rdx], ymm(kParts));
        c.add(rsi, kBytes);
        c.add(rdx, kBytes);
        c.sub(rcx, kBytes);
        c.jge(next, Xbyak::CodeGenerator::T_NEAR);
        c.L(tail);
        c.add(rcx, kBytes);
        c.jle(end, Xbyak::CodeGenerator::T_NEAR);
        c.L(byte);
        c.movzx(eax, c.byte[rsi]);
        c.mov(al, c.byte[rdi + rax]);
        c.mov(c.byte[rdx], al);
        c.inc(rsi);
        c.inc(rdx);
        c.dec(rcx);
        c.jnz(byte);
        c.L(end);
        c.vzeroupper();
        c.ret();
    }

private:
    static constexpr int kDeciders = 2, kParts = 6, kPartBytes = 16;
    VectorCode& c;

    static Xbyak::Ymm ymm(int i) { return Xbyak::Ymm(i); }
    // To part register `to`: what 2^(level + 1) parts of the table from `first` on say, chosen by bits 4 to 4 + level.
    void look(int level, int first, int to)
    {
        if (level < 0) {
            c.vbroadcasti128(ymm(kParts + to), c.ptr[Xbyak::util::rdi + kPartBytes * first]);
            c.vpshufb(ymm(kParts + to), ymm(kParts + to), ymm(0));
            return;
        }
        look(level - 1, first, to);
        look(level - 1, first + (1 << level), to + 1);
        c.vpblendvb(ymm(kParts + to), ymm(kParts + to), ymm(kParts + to + 1), ymm(kDeciders + level));
    }
};

void emitPermutations(VectorCode& c)
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

Result<ByteTableKernel> ByteTableKernel::emit(Isa isa)
{
    ByteTableKernel kernel;
    TW_ASSIGN(kernel.code_, jit::emit(isa, [&](VectorCode& c) {
                  isa == Isa::kAvx512 ? emitPermutations(c) : ShuffleEmitter(c).emit();
              }));
    return kernel;
}

} // namespace tw::kernels::jit
