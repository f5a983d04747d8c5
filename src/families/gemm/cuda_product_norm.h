// SPDX-License-Identifier: Apache-2.0
// LayerNorm after a matrix product by a kernel of its own that reads y back: of any product by the plain kernels, and,
// in FP16, a warp for each row after the product of cuda_gemm_wgmma.h.
#pragma once

#include "ops/matrix_multiply/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::product_norm {

// The plain product, and a norm where there is one.
std::unique_ptr<CudaKernels> generatePlain(Problem const& problem, Config const& config);

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config);
Support supports(Problem const& problem, DataType narrow);
std::vector<Config> configs(Problem const& problem);
double estimate(Problem const& problem, Config const& config);

// `narrow`: the type of what is FP16 above.
template <DataType narrow = DataType::kHalf>
constexpr CudaTactic tactic(char const* name)
{
    return CudaTactic(
        name, 1, generate, [](Problem const& p) { return supports(p, narrow); }, configs, nullptr, estimate,
        Traits{.type = narrow});
}

} // namespace tw::ops::product_norm

// The generated plain matrix product y = f(a b + bias + residual), of floats or, with the end of integers, of i8: tiles of
// 64 x 64 in shared memory, any strides.
namespace tw::ops {

// Of a matrix product, without its norm.
std::unique_ptr<CudaKernels> multiplyKernels(Problem const& problem);

} // namespace tw::ops
