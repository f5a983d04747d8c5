// SPDX-License-Identifier: Apache-2.0
// Instructions whose operands are as many as the tile has columns, written out.
#pragma once

#include <string>

namespace tw::cuda {

// wgmma(float (&d)[n / 2], u64 descriptorP, u64 descriptorQ, int keep): d = P Q + (keep ? d : 0) for P [64, 16] and
// Q [n, 16] of FP16 in shared memory; an operand's transposed form has its rows, not k, contiguous. n % 8 = 0, n <=
// 256.
std::string wgmmaSource(int n, bool transposedP, bool transposedQ);
// The same name for FP32 operands whose k is contiguous, P [64, 8] and Q [n, 8], of which TF32's bits are read.
std::string wgmmaTf32Source(int n);
// The same name, wgmma(i32 (&d)[n / 2], ..), for i8 whose k is contiguous, P [64, 32] and Q [n, 32]; n: see
// isIntegersColumns().
std::string wgmmaIntegersSource(int n);
constexpr bool isIntegersColumns(int n)
{
    return n % 16 == 0 || n == 8 || n == 24;
}
// template <int SELECTOR> wgmmaSparse(float (&d)[n / 2], u64 descriptorP, u64
// descriptorQ, u32 places, int keep): d = P Q + (keep ? d : 0) for P [64, 32]
// of FP16 that follows 2:4, stored [64, 16], and Q [n, 32], k contiguous in
// both. `places` of the lanes 0 and 1 (SELECTOR 0) or 2 and 3 (1) of each four
// say where in k P's elements stand (kernels/cuda/gemm/sparse_weights.h). Of
// `integers` d is i32, P [64, 64], Q [n, 64], SELECTOR 0 for all lanes, and n:
// see isIntegersColumns().
std::string wgmmaSparseSource(int n, bool integers = false);
// wgmmaFrom(float (&d)[n / 2], u32 const (&p)[4], u64 descriptorQ, int keep): the same with P in registers, laid out as
// the sums of a product are.
std::string wgmmaRegistersSource(int n, bool transposedQ);
// float activate(float v) { return expression; }; an empty expression is v itself.
std::string activationSource(std::string const& expression, char const* name = "activate");

// Expressions for activationSource.
constexpr char const* kRelu = "maximumOf(v, 0.0f)";
constexpr char const* kGeluErf = "geluErfOf(v)";
constexpr char const* kGeluTanh = "geluTanhOf(v)";
constexpr char const* kGeluErfToBytes = "geluErfByExponent(v)"; // for results that become i8
constexpr char const* kGeluTanhToBytes = "geluTanhByExponent(v)";
constexpr char const* kSwish = "v * sigmoidOf(v)";

} // namespace tw::cuda
