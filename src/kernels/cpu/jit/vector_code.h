// SPDX-License-Identifier: Apache-2.0
// The assembler of this folder: one source for both instruction sets, registers by number, constants by value.
// Includes Xbyak: for .cpp files only.
#pragma once

#include <exception>
#include <map>
#include <memory>

#include <xbyak/xbyak.h>

#include "kernels/cpu/jit/emitter.h"

namespace tw::kernels::jit {

using Vec = Xbyak::Xmm; // a vector register of the full width; the width travels with the value

namespace detail {
// Before the assembler in memory, because that writes into it from its constructor on.
struct CodeBuffer
{
    static constexpr size_t kBytes = 1 << 20; // pages that are not written cost nothing
    std::unique_ptr<uint8_t[]> bytes{new uint8_t[kBytes]};
};
} // namespace detail

class VectorCode : private detail::CodeBuffer, public Xbyak::CodeGenerator
{
public:
    explicit VectorCode(Isa isa) : Xbyak::CodeGenerator(kBytes, bytes.get()), isa_(isa) {}

    Isa isa() const { return isa_; }
    bool avx512() const { return isa_ == Isa::kAvx512; }
    int width() const { return vectorWidth(isa_); }
    int vectorBytes() const { return 4 * width(); }
    int vectorCount() const { return avx512() ? 32 : 16; }
    // AVX-512 quotients cost no more than two products each when there is other work: AMD's divider takes 6 cycles for
    // a vector (Zen 4), Intel's 16, and a reciprocal made exact by a step of Newton's about four products.
    static bool dividesFast();
    Vec vec(int i) const { return Vec(avx512() ? Xbyak::Operand::ZMM : Xbyak::Operand::YMM, i); }

    // Last operand of an instruction that reads `value` in every lane. 64 bytes after the function's end hold each on
    // AVX2.
    Xbyak::Address constant(float value);
    Xbyak::Address constantBits(uint32_t bits);
    void loadConstant(int v, float value);
    void zero(int v) { vxorps(vec(v), vec(v), vec(v)); }
    // x = max(x, constant) and min; NaN of x goes through. `temp` is overwritten.
    void maxConstant(int x, float value, int temp);
    void minConstant(int x, float value, int temp);
    // y = (a `predicate` b) ? ifTrue : y. AVX-512 uses k7, AVX2 the register `temp`.
    enum Predicate
    {
        kLess = 1,         // false for NaN
        kGreaterEqual = 13 // false for NaN
    };
    void select(int y, int a, Predicate predicate, int b, int ifTrue, int temp);

    // Constants after the code; then the bytes become a function.
    Result<Code> finish();

private:
    Isa isa_;
    std::map<uint32_t, int> offsets_; // of each constant's bits from constants_
    Xbyak::Label constants_;
};

// Runs body(code), which emits a whole function with its return, and makes it executable.
template <class F>
Result<Code> emit(Isa isa, F const& body)
{
    try {
        VectorCode code(isa);
        body(code);
        return code.finish();
    } catch (std::exception const& e) {
        return internalError(std::string("the assembler refused a kernel: ") + e.what());
    }
}

} // namespace tw::kernels::jit
