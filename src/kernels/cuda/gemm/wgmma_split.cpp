// SPDX-License-Identifier: Apache-2.0
// Operands that are rewritten before a product: FP32 as two TF32 numbers for each of theirs, FP16 with rows of
// whole 16 bytes.
#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/gemm/wgmma.h"

namespace tw::cuda::gemm_f16 {

namespace {

// A warp copies 512 numbers of a row, and zeros after the row's last, in words: lanes of a row that begins inside one
// take halves of two, the second from the next lane.
constexpr int64_t kPadColumns = 512, kPadWarps = 8;

} // namespace

int64_t padBlocks(PadArgs const& p)
{
    int64_t const a = p.a.rows * ceilDiv(p.a.padded, kPadColumns), b = p.b.rows * ceilDiv(p.b.padded, kPadColumns);
    return ceilDiv(a + b, kPadWarps);
}

std::string padSource()
{
    return include("kernels/cuda/gemm/wgmma_pad.cuh");
}

int64_t splitRow(int64_t k)
{
    return ceilDiv(k, kStepBytes / 4) * (kStepBytes / 4) * 2;
}

int64_t splitBlocks(SplitArgs const& a)
{
    return ceilDiv(int64_t(a.rows) * a.padded, 256 * 4);
}

std::string splitSource()
{
    return include("kernels/cuda/gemm/wgmma_split.cuh");
}

} // namespace tw::cuda::gemm_f16
