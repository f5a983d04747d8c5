// SPDX-License-Identifier: Apache-2.0
// Building blocks of generated text for compute capability 9.0: barriers in shared memory, the tensor copy engine,
// warpgroup matrix instructions. Inline PTX; the text includes nothing.
#pragma once

#include <string>

namespace tw::cuda {

// Types, conversions, and what sm_80 has too: asynchronous copies, ldmatrix, mma.sync, dependent launch (sm_90).
std::string matrixPrelude();
// Parts of it, behind TW_INLINE and u32: sharedAddress() and asynchronous copies; ldmatrix and mma.sync; clusters
// (capability 9.0).
extern char const *const kAsyncCopies, *const kFragments, *const kClusters;
// Behind kFragments and `constexpr bool EXACT`: Factors<N>, FP32 numbers of a fragment rounded to TF32 and, where
// EXACT, what that left; multiply(d, a, b): d [16, 8] += a [16, 8] b [8, 8], one product or three.
extern char const* const kFactors;
// matrixPrelude() and barriers, tensor copies, clusters.
std::string hopperPrelude();
// wgmma(float (&d)[n / 2], u64 descriptorP, u64 descriptorQ, int keep): d = P Q + (keep ? d : 0) for P [64, 16] and
// Q [n, 16] of FP16 in shared memory; an operand's transposed form has its rows, not k, contiguous. n % 8 = 0, n <=
// 256.
std::string wgmmaText(int n, bool transposedP, bool transposedQ);
// The same name for FP32 operands whose k is contiguous, P [64, 8] and Q [n, 8], of which TF32's bits are read.
std::string wgmmaSingleText(int n);
// wgmmaFrom(float (&d)[n / 2], u32 const (&p)[4], u64 descriptorQ, int keep): the same with P in registers, laid out as
// the sums of a product are.
std::string wgmmaRegistersText(int n, bool transposedQ);
// float activate(float v) { return expression; }; an empty expression is v itself.
std::string activationText(std::string const& expression);

// Expressions for activationText.
extern char const* const kRelu;
extern char const* const kGeluErf;
extern char const* const kGeluTanh;
extern char const* const kSwish;

} // namespace tw::cuda
