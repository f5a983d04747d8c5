// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/vector_code.h"

#include <bit>

#include <xbyak/xbyak_util.h>

namespace tw::kernels::jit {

bool VectorCode::dividesFast()
{
    static bool const fast = Xbyak::util::Cpu().has(Xbyak::util::Cpu::tAMD);
    return fast;
}

Xbyak::Address VectorCode::constantBits(uint32_t bits)
{
    int const each = avx512() ? 4 : vectorBytes(); // AVX-512 instructions broadcast an element of memory themselves
    int const offset = offsets_.try_emplace(bits, int(offsets_.size()) * each).first->second;
    if (avx512())
        return ptr_b[rip + constants_ + offset];
    return ptr[rip + constants_ + offset];
}

Xbyak::Address VectorCode::constant(float value)
{
    return constantBits(std::bit_cast<uint32_t>(value));
}

void VectorCode::loadConstant(int v, float value)
{
    uint32_t const bits = std::bit_cast<uint32_t>(value);
    int const each = avx512() ? 4 : vectorBytes();
    int const offset = offsets_.try_emplace(bits, int(offsets_.size()) * each).first->second;
    vbroadcastss(vec(v), ptr[rip + constants_ + offset]);
}

// The instructions return their second source when either is NaN.
void VectorCode::maxConstant(int x, float value, int temp)
{
    loadConstant(temp, value);
    vmaxps(vec(x), vec(temp), vec(x));
}

void VectorCode::minConstant(int x, float value, int temp)
{
    loadConstant(temp, value);
    vminps(vec(x), vec(temp), vec(x));
}

void VectorCode::select(int y, int a, Predicate predicate, int b, int ifTrue, int temp)
{
    // 17 and 29 are the quiet forms of "less" and "greater or equal".
    int const quiet = predicate == kLess ? 17 : 29;
    if (avx512()) {
        vcmpps(k7, vec(a), vec(b), uint8_t(quiet));
        vmovaps(vec(y) | k7, vec(ifTrue));
    } else {
        vcmpps(vec(temp), vec(a), vec(b), uint8_t(quiet));
        vblendvps(vec(y), vec(y), vec(ifTrue), vec(temp));
    }
}

Result<Code> VectorCode::finish()
{
    align(64);
    L(constants_);
    std::map<int, uint32_t> byOffset;
    for (auto const& [bits, offset] : offsets_)
        byOffset[offset] = bits;
    for (auto const& [offset, bits] : byOffset)
        for (int i = 0; i < (avx512() ? 1 : width()); ++i)
            dd(bits);
    if (hasUndefinedLabel())
        return internalError("an emitted function jumps to nowhere");
    return Code::make(getCode(), getSize());
}

} // namespace tw::kernels::jit
