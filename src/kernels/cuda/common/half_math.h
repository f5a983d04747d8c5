// SPDX-License-Identifier: Apache-2.0
// Text of functions whose results are rounded to FP16: float to float, within a tenth of what that rounding may change
// (where results are small, gelu within 1.3e-5), in few enough instructions that memory stays the limit. For types and
// macros of either prelude.
#pragma once

namespace tw::cuda {

// halfExp, halfLog, halfSqrt, halfRecip, halfSin, halfCos, halfTan (three for |x| < 10^7), halfSinh, halfCosh,
// halfTanh, halfAsin, halfAcos, halfAtan, halfAsinh, halfAcosh, halfAtanh, halfErf, halfExpm1, halfSigmoid,
// halfSoftplus, halfGelu
extern char const* const kHalfMath;

} // namespace tw::cuda
