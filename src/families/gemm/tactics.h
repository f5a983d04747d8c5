// SPDX-License-Identifier: Apache-2.0
// Tactics of matrix products: f(a b + bias + residual) by emitted kernels, one tactic for each instruction set and each way
// in which factors are multiplied.
#pragma once

#include "device/large_pages.h"
#include "families/elementwise/activate.h"
#include "kernels/cpu/gemm_jit.h"
#include "kernels/cpu/jit/factors.h"
#include "kernels/cpu/jit/gemv_kernel.h"
#include "ops/matrix_multiply/op.h"
#include "tactic/cpu_tactic.h"

namespace tw::ops {

// The geometry of a product; of several a's with one b, whose rows follow each other at one distance, that of one tall
// product.
matrix_multiply::Geometry mergedGeometry(ir::Node const& node, Extents const& a, Extents const& b);
kernels::GemmShape shapeOf(matrix_multiply::Geometry const& g);
// Where the products begin; packedFloats: of a packed matrix of b, 0 where b is read as it is.
std::vector<kernels::GemmOffsets> offsetsOf(matrix_multiply::Geometry const& g, int64_t packedFloats);
// Refuses what emitted products cannot do: other types, norms, tensors whose offsets do not fit.
Support supportsProducts(Problem const& problem);

// Matrices of a known b, packed once.
struct PackedMatrices
{
    device::PackedFloats floats;
    int64_t each = 0; // floats of one
};
using PackedMatricesPtr = std::shared_ptr<PackedMatrices const>;
Result<PackedMatricesPtr> packMatrices(kernels::GemmJitOptions const& options, matrix_multiply::Geometry const& g,
                                       Blob const& b, PackedConstants& packed);
// The same in 16 bits.
Result<PackedMatricesPtr> packNarrow(kernels::GemmJitOptions const& options, kernels::jit::GemvWeights weights,
                                     matrix_multiply::Geometry const& g, Blob const& b, PackedConstants& packed);
// Whether all weights are numbers of such 16 bits; their floats are the same again after they have been made such.
bool isHeldBy(Blob const& weights, kernels::jit::Isa isa, kernels::jit::GemvWeights type);
// Large weights that 16 bits hold are kept as these, in one layout, which products of few rows and of many read: a reason where they would be
// kept otherwise. as: what a tactic keeps.
Support supportsKept(CpuTactic const& t, Problem const& p, kernels::jit::GemvWeights as);

// The config is {vectors of a tile}. Variant: kernels::jit::Factors.
extern CpuFunctions const kGemm;
// Of floats by weights that 16 bits hold, in which they are kept. Variant: kernels::jit::GemvWeights.
extern CpuFunctions const kNarrowGemm;
// kGemm, but where kNarrowGemm has less to keep.
extern CpuFunctions const kFloatGemm;

// For products of up to four rows: bound by reading b, which they do once, at the speed of memory; packed when it is known,
// else as it lies. The config is {vectors of a panel of columns}. Variant: kernels::jit::GemvWeights, as which known second
// operands are read: half the bytes, in FP32 arithmetic.
extern CpuFunctions const kGemv;

// Of i8. The config is {vectors of a tile, whether rows of a are copied}. Variant: kernels::jit::Factors.
extern CpuFunctions const kInt8Gemm;

// The plain matrix product with all that may stand after it, in f32 or f16.
int64_t multiplyPlainWorkspaceBytes(ir::Node const& node, std::span<TensorRef const> in,
                                    std::span<TensorRef const> out);
Result<void> multiplyPlain(ir::Node const& node, RunArgs& args);

} // namespace tw::ops
