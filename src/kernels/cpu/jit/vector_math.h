// SPDX-License-Identifier: Apache-2.0
// Functions of vectors, emitted in place: x = f(x) on register number x; registers temp .. temp + kMathTemps - 1 (and
// k7) are overwritten, everything else stays. Relative error below 1e-6 (float rounding included) unless said; NaN
// gives NaN, infinities their limits, results too small for a normal float may be zero. Includes Xbyak: for .cpp files
// only.
#pragma once

#include "kernels/cpu/jit/sum_end.h"
#include "kernels/cpu/jit/vector_code.h"

namespace tw::kernels::jit {

inline constexpr int kMathTemps = 6;
inline constexpr float kLog2e = 1.44269504f;

void emitExp(VectorCode& c, int x, int temp);
void emitExpm1(VectorCode& c, int x, int temp);   // exp(x) - 1, x <= 88 (larger x count as 88)
void emitLog(VectorCode& c, int x, int temp);     // -inf at 0, NaN below
void emitSigmoid(VectorCode& c, int x, int temp); // 1 / (1 + exp(-x))
void emitSwish(VectorCode& c, int x, int temp);   // x sigmoid(x); absolute error below 1e-10 where x < -10
void emitTanh(VectorCode& c, int x, int temp);
void emitErf(VectorCode& c, int x, int temp);
// log(1 + t) for 0 <= t <= 1.
void emitLog1pUnit(VectorCode& c, int t, int temp);

// Any activation. GELUs lose relative accuracy where they are tiny: absolute error below 2e-7 there.
void emitActivation(VectorCode& c, Activation const& a, int x, int temp);
// Up to thirty instructions and four temporaries: worth emitting once per register. The others belong in a loop.
bool isShort(ActivationKind kind);
// Of the registers 0 .. count - 1, each for itself; what ReLU and Clip compare with is loaded once.
void emitEach(VectorCode& c, Activation const& a, int count, int temp);
// The same; long functions in a loop over registers on the stack, where every vector register is free for the function;
// those below `held` are kept, those behind overwritten. `stack`, `at` and `left` are overwritten.
void emitActivations(VectorCode& c, Activation const& a, int count, int held, Xbyak::Reg64 const& stack,
                     Xbyak::Reg64 const& at, Xbyak::Reg64 const& left);

} // namespace tw::kernels::jit
