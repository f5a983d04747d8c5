// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/epilogue_params.h"
#include "kernels/cuda/common/params.h"

namespace tw::cuda::gemm_f16 {

constexpr int kBandRows = 16;
// The kernel's last parameter, after the tensor maps of P and Q and, where it copies, those of y and of the residual,
// if it has one.
template <class Element>
struct ArgsOf : OutputOf<Element>
{
    i32 steps = 0;                           // of k
    i32 tilesP = 0, tilesQ = 0, batches = 1; // tilesP: of multicast pairs
    Div band;                                // of units: kBandRows rows of tiles, fewer where these are pairs
    i32 batchP = 0, batchQ = 0;              // 1: has batches
    i32 stepsC = 1, filterW = 1, outW = 1, outH = 1;
    i32 strideW = 1, strideH = 1, padW = 0, padH = 0, dilationW = 1, dilationH = 1;
    // Of sums of i8. The residual's steps are ldResidual and batchY of its own elements.
    IntegerEndArgs end;
    i32 channels = 0; // columns that have scale, bias and residual; what n has more of is nobody's
};

// Parameter of a kernel that takes LayerNorm, y = (x - mean) / sqrt(variance + epsilon) gamma + beta, before Args.
struct Norm
{
    float const *gamma = nullptr, *beta = nullptr; // [n]
    // [norm][rows up to whole tiles]: what blocks tell each other. A kernel before it has filled it with ones, all
    // bits: normParts() numbers of 8 bytes.
    u64* parts = nullptr;
    i32 rows = 0;
    float epsilon = 0;
};

constexpr int kFirstRows = 16;
// Parameter of a kernel that normalizes the rows of a first (wgmma_first_norm.cuh), before Args.
struct FirstNorm
{
    void const* a = nullptr;
    float const* sums = nullptr; // of b's columns, in the order that these have; null where means are 0
    i64 lda = 0;                 // elements, whole 16 bytes
    i32 rows = 0, k = 0;         // rows: up to kFirstRows
    i32 columns = 0;             // of b
    float epsilon = 0;
};

// Parameter of a kernel of images of three axes, before Args: what the first of them adds to that.
struct Volume
{
    i32 filterH = 1, outD = 1, strideD = 1, padD = 0, dilationD = 1;
};

constexpr int kMostPhases = 16;
// One axis of a transposed image: position q of phase p is y's pixel q * phases + p, and reads taps[p] pixels of x, the first of
// them shift[p] behind where the tile's position lies.
struct PhaseAxis
{
    i32 phases = 1, out = 1; // out: pixels of y
    i32 shift[kMostPhases] = {}, taps[kMostPhases] = {1};
};
// The last parameter of kernels of transposed images, whose batches are phases, of either axis; b has rows for each of them.
template <class Element>
struct PhasedArgsOf : ArgsOf<Element>
{
    PhaseAxis axisH, axisW;
    i32 filters = 0; // rows of b of a phase
};

struct FillArgs
{
    u64* parts = nullptr;
    i64 count = 0;
};

struct SplitArgs
{
    void const* a = nullptr;
    void* to = nullptr;
    i64 lda = 0;
    i32 rows = 0, k = 0, padded = 0; // padded: half of splitRow(k)
};

struct PadRows
{
    void const* from = nullptr;
    void* to = nullptr;
    i64 rows = 0;
    i32 columns = 0, padded = 0; // elements; padded % 8 = 0
};

struct PadArgs
{
    PadRows a, b;
};

} // namespace tw::cuda::gemm_f16

namespace tw::cuda::gemm_sparse {

// The kernel's last parameter, after the tensor maps of pixels, of y and of the residual, if it has one. tilesP counts
// tiles of filters (multicast: pairs of them), tilesQ those of pixels.
template <class Element>
struct ArgsOf : gemm_f16::ArgsOf<Element>
{
    void const* weights = nullptr; // packSparse()
    i32 blocks = 0;                // of 64 filters
};

} // namespace tw::cuda::gemm_sparse
