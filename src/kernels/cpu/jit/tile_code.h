// SPDX-License-Identifier: Apache-2.0
// Sums of products of pairs of BF16 by the tiles of AMX. Includes Xbyak: for .cpp files only.
#pragma once

#include "kernels/cpu/jit/gemm_kernel.h"
#include "kernels/cpu/jit/vector_code.h"

namespace tw::kernels::jit {

inline constexpr int kTileSums = 64 * 16; // floats: of the largest kernel, 4 tiles of 16 x 16

// The whole function: sums of `spec`, without its epilogue, to args.c, [rows in sixteens][vectors][16] floats.
void emitTileProducts(VectorCode& c, GemmKernelSpec const& spec);

} // namespace tw::kernels::jit
