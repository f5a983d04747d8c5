// SPDX-License-Identifier: Apache-2.0
// Text of the parts that make gemm_f16's kernel take LayerNorm of its rows (Spec::norm).
#pragma once

#include <string>

namespace tw::cuda::gemm_f16 {

std::string normText();      // struct Norm, normRows()
std::string normConstants(); // done by the warps that multiply, before their first tile
std::string normFinish();    // of a tile
std::string fillText();      // the kernel in front

} // namespace tw::cuda::gemm_f16
