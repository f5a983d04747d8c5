// SPDX-License-Identifier: Apache-2.0
// CUDA tactics of matrix products, y = f(a b + bias + residual), and what they share: collections of matrices as rows,
// batches and launches.
#pragma once

#include "families/elementwise/activate.h"
#include "ops/matrix_multiply/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops {

enum class GemmAlgorithm : int
{
    kHalf,    // FP16; what is no constant and has rows that are not whole 16 bytes is copied first
    kHalfMma, // FP16 by mma.sync
    kTf32,    // FP32, factors rounded to TF32
    kNorm,    // FP16, and LayerNorm of the rows by clusters of blocks that hold whole ones
    kInt8,    // i8, with the end that such sums have
    kTf32x3,  // FP32, 3xTF32: each factor as two TF32 numbers
    kFloat,   // FP32, exact
    kFirst,   // kHalf, of rows that are normalized first
};

// What tactics have in common that compute by the same kernels.
struct GemmTactics
{
    Support (*supports)(Problem const& problem, GemmAlgorithm algorithm);
    std::vector<Config> (*configs)(Problem const& problem, GemmAlgorithm algorithm);
    double (*estimate)(Problem const& problem, Config const& config, GemmAlgorithm algorithm);
    std::unique_ptr<CudaKernels> (*generate)(Problem const& problem, Config const& config, GemmAlgorithm algorithm);
};

// By the kernel of kernels/cuda/gemm/wgmma.h (compute capability 9.0), or, kHalfMma, by that of mma.h beside it (8.0 and
// later, operands that lie in any way). kFirst: up to 16 rows. kInt8: b that is constant may lie in any way, else k is contiguous in rows of whole
// 16 bytes. kTf32x3: b is constant, and a is split by a kernel of its own. The config is the kernel's tile: {tileP, tileQ,
// stages, groups, pingPong, split, multicast, swap, copies}, and norm where rows are normalized, or stepBytes and ahead of
// i8; or {tileM, tileN, warpsM, warpsN, stages, split, whether operands are copied first}. But kFloat.
extern GemmTactics const kCudaGemm;
// The product itself, where no norm is wanted of `algorithm`.
namespace gemm_f16 {
Support supports(Problem const& problem, GemmAlgorithm algorithm);
}
// FP32 for operands that lie in any way: by the kernels of kernels/cuda/gemm/f32.h. The config is the kernel's tile: {tileM,
// tileN, shareM, shareN, stages, split}. kTf32, kTf32x3, kFloat.
extern GemmTactics const kCudaGemmF32;
// i8 for compute capability 8.0 and later: the kernels of kernels/cuda/gemm/mma.h, which take operands that lie in any way.
// The config is the tile: {tileM, tileN, warpsM, warpsN, stages, split}.
extern GemmTactics const kCudaGemmI8;
// Few rows of i8: kernels/cuda/gemm/gemv_i8.h. The config: {rows, columns, warps that share k}.
extern GemmTactics const kCudaGemvI8;
// Few rows of FP16, normalized first or not: kernels/cuda/gemm/gemv_f16.h. The config: {tiles, warps, units}.
extern GemmTactics const kCudaGemvF16;
// kHalf, or kInt8, whose constant b follows 2:4 along the summed dimension (tactic/sparsity.h), by the kernel of
// kernels/cuda/gemm/wgmma_sparse.h. The config is its tile: {tileP, tileQ, stages, multicast}.
extern GemmTactics const kCudaGemmSparse;
// The other way round: rows that are normalized first by a kernel of their own, and kHalf or kHalfMma of kCudaGemm.
extern GemmTactics const kCudaNormThenGemm;
// kHalf of kCudaGemm, and LayerNorm after it by a kernel of its own that reads y back, a warp for each row.
extern GemmTactics const kCudaGemmThenNorm;
// The generated plain matrix product, of floats or, with the end of integers, of i8: tiles of 64 x 64 in shared memory, any
// strides. Norms, where there are any, by kernels of their own.
std::unique_ptr<CudaKernels> plainGemm(Problem const& problem, Config const& config);

// `narrow`: the type of what is FP16 above.
template <GemmTactics const& tactics, GemmAlgorithm algorithm, DataType narrow = DataType::kHalf>
constexpr CudaTactic gemmTactic(char const* name, int version = 1)
{
    return CudaTactic(
        name, version, [](Problem const& p, Config const& c) { return tactics.generate(p, c, algorithm); },
        [](Problem const& p) {
            Support const s = tactics.supports(p, algorithm);
            return s.ok && isNarrowFloat(p.inputs[0].type) ? takesOnly(narrow, p) : s;
        },
        [](Problem const& p) { return tactics.configs(p, algorithm); }, nullptr,
        [](Problem const& p, Config const& c) { return tactics.estimate(p, c, algorithm); },
        Traits{.rounding = algorithm == GemmAlgorithm::kTf32 ? Rounding::kTf32 : Rounding::kPlain,
               .isSparse = &tactics == &kCudaGemmSparse,
               .type = narrow});
}

// --- what they share ---

bool isPresent(Problem const& problem, int input);
// Whether that dimension of `v`, counted from the last one, is known when the engine is built.
bool isKnown(ir::Value const& v, size_t fromEnd);
// No where rows are normalized, or (`wanted`) where they are not; and where those of a are first.
Support supportsNorm(Problem const& problem, bool wanted);
// No where the rows of a are not normalized first.
Support supportsFirstNorm(Problem const& problem);
// Refuses gated products, and norms.
Support supportsProductAlone(Problem const& problem);
matrix_multiply::Geometry geometryOf(Problem const& problem, bool atMaximum);
// Of a run whose shapes its kernel cannot do.
Error wrongShapes(ir::Node const& node, RunArgs const& args, char const* why);

// Collections of a that follow each other as rows do are rows, where all have the same b. Strides in elements.
struct ProductRows
{
    int64_t m = 0, lda = 0, ldb = 0; // ld: from one stored row to the next
    Extents batch, aBatch, bBatch;   // what is left of the collections, the first dimension outermost
};
// `alongK`: stored with the summed dimension as the inner one.
ProductRows rowsOf(matrix_multiply::Geometry const& g, bool aAlongK, bool bAlongK);

// What is left of collections, as one step from matrix to matrix, and launches of their own where it takes more.
struct ProductBatches
{
    int64_t batch = 1, batchA = 0, batchB = 0;
    Extents outer, aOuter, bOuter; // the first dimension outermost
};
ProductBatches batchesOf(Extents const& batch, Extents const& a, Extents const& b);
constexpr int64_t kMostProductLaunches = 64;

} // namespace tw::ops
