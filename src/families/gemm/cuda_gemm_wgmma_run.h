// SPDX-License-Identifier: Apache-2.0
// Between the files of kCudaGemm (cuda_gemm.h): what was resolved when a tactic was chosen, and a run of it.
#pragma once

#include <memory>
#include <string>

#include "base/blob.h"
#include "base/round.h"
#include "families/gemm/cuda_gemm.h"
#include "kernels/cuda/gemm/mma.h"
#include "kernels/cuda/gemm/wgmma.h"

namespace tw::ops::gemm_f16 {

namespace kernel = cuda::gemm_f16;
namespace matrix = cuda::gemm_mma;

// What does not depend on the sizes of a run.
struct Resolved
{
    ir::Node const* node = nullptr;
    kernel::Spec spec; // all but the tile, until a config is given
    bool isMma = false;
    matrix::Spec mma; // if isMma; the same of it
    // Of b as stored, and of the copy that is packed: 16 bytes or a multiple, and k contiguous where FP32 wants it.
    // paddedB = 0: b is read in place.
    int64_t rowsB = 0, columnsB = 0, paddedB = 0;
    bool transposesB = false;
    // Rows of a, and of a copy that each run makes of it, in FP16; of b too where padsB. paddedA = 0: read in place.
    int64_t columnsA = 0, paddedA = 0;
    bool padsB = false;
    bool canPad = false; // row lengths are known when the engine is built
    // Among the packed constants; beta is behind gamma; sums: of b's columns.
    int biasAt = -1, gammaAt = -1, sumsAt = -1, packedBAt = -1;
    bool normalizes = false;
    double epsilon = 0; // of the norm, or of the first one

    bool pads() const { return paddedA || padsB; }
};

// The part of a run that one launch does, and the launches: each at offsets of its own.
struct Product : ProductBatches
{
    kernel::Shape shape;
};
Product productOf(Resolved const& resolved, matrix_multiply::Geometry const& geometry);
// Null, or why the kernel cannot do that shape.
char const* unsupported(Resolved const& resolved, kernel::Shape const& shape);
// Those of what was resolved, with its tile.
std::unique_ptr<CudaKernels> kernelsOf(Resolved const& resolved);

// Constant second operands as the kernels of kCudaGemm want them.

struct PackedMatrices
{
    int64_t rows = 0, columns = 0; // of each matrix as stored, one or more
    int64_t padded = 0;            // elements of a packed row
    int64_t size = 2;              // bytes of an element: i8, FP16, FP32
    bool transposes = false;       // packed rows are stored columns
    // The columns of a gated product, in groups of 8 gates and the 8 columns that they let through.
    enum class Gated
    {
        kNot,
        kRows,    // are packed rows
        kColumns, // are columns of packed rows
    };
    Gated gated = Gated::kNot;
    bool tf32x3 = false; // FP32: high parts in a packed row's first half, low ones in its second
};

// Zeros after each row.
std::string packMatrices(Blob const& matrices, PackedMatrices const& how);

// The sum of each column of b, a float; `alongK`: columns are b's rows as stored, of `columns` elements each.
std::string packColumnSums(TensorSpec const& b, int64_t rows, int64_t columns, bool alongK);

// n floats, biases of a gated product, in that order.
void packGatedBias(std::string& bias);

} // namespace tw::ops::gemm_f16
