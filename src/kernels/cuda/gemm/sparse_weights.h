// SPDX-License-Identifier: Apache-2.0
// Weights that follow 2:4 (tactic/sparsity.h) as the sparse kernels of wgmma_sparse.h read them: of each four
// neighbours along k two elements, and where these stand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tw::cuda::gemm_sparse {

// A block holds 64 rows of one step of k, 128 bytes of dense elements. First the elements that are left, as
// blockDescriptor() (kernels/cuda/common/hopper.cuh) says: those of the step's first instruction, 32 bytes of each row,
// then those of the second. Behind them the places, words for each of 128 threads: 4 bits for four neighbours, the place
// of the first element below that of the second. Of FP16 one word: thread 32 w + 4 g + i knows rows 16 w + g (its low 16
// bits) and 16 w + g + 8 (its high ones) of k from 16 i on. Of i8 one of each instruction, the first's of all threads
// first: rows 16 w + g + 8 (i % 2) of the instruction's k from 32 (i / 2) on.
constexpr int64_t kBlockRows = 64, kStepBytes = 128;
constexpr int64_t kElementBytes = kBlockRows * kStepBytes / 2;
constexpr int64_t blockBytes(int64_t operandBytes) // 1, 2
{
    return kElementBytes + kBlockRows * kStepBytes / operandBytes / 8;
}
constexpr int64_t stepOf(int64_t operandBytes) // elements
{
    return kStepBytes / operandBytes;
}

// Blocks in the order [rows / 64][k / step]; rows of zeros fill the last ones up. `rows` of k elements, k in whole steps.
// Nothing, where a group of four has more than two elements other than zero.
std::optional<std::string> packSparse(uint16_t const* dense, int64_t rows, int64_t k); // FP16
// Of i8. Rows 2 i and 2 i + 1 of each 16 are the block's rows i and i + 8: so a thread has neighbours, whose results go
// side by side.
std::optional<std::string> packSparse(int8_t const* dense, int64_t rows, int64_t k);

} // namespace tw::cuda::gemm_sparse
