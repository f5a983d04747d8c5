// SPDX-License-Identifier: Apache-2.0
// The matrix micro-kernel behind matrix products and direct convolutions. One call computes one tile
//   C[i, j] = epilogue(sum over p < pointers, over the steps of A pointer p, of A[p][i * lda + step.aBytes] * B[..., j])
// for i < rows and j < vectors * vectorWidth(isa). A is read one element at a time, B one packed panel after the other:
//
//   for p in 0 .. pointers:  run `body` bodyCount times, then `tail` tailCount times, from A = a[p]
//   each time a loop runs:   all its steps; then A += aAdvance, B += bAdvance bytes (B goes on from pointer to pointer)
//
// A step adds the product of one A element per row and one packed row of B (vectors * vectorWidth floats, 64-byte
// aligned) to the rows rowBegin <= i < rowEnd; other rows do not touch their A. Examples:
//   matrix product, K = 4 q + r  one pointer; body: 4 steps (aBytes 0, 4, 8, 12), bodyCount q; tail: 1 step,
//                                tailCount r
//   3x3 channels-last conv       a pointer per filter row that lies in the image; rows are output columns
//                                (lda = stride * C * 4); body: for s in 0..3, for u in 0..4:
//                                aBytes = (s * dilation * C + u) * 4; bodyCount C / 4. B is packed in that order:
//                                [r][C / 4][s][u][columns]. At the left and right border the steps of a tap leave
//                                out the rows for which it falls off the image.
//   first conv on NCHW           a pointer per (channel, filter row); lda = stride * 4; body: S steps, bodyCount 1
// Offsets and row ranges are fixed when the kernel is emitted, strides and counts are arguments.
//
// Factors in BF16 (Factors): each 32-bit element of A and B is a pair of numbers (kernels/cpu/casts.h), a step adds the two
// products of each. With tiles a step takes 16 elements of A, and 16 packed rows of B, at once.
//
// Factors of bytes: the sum is exact (in 32 bits, modulo 2^32). Each element of A, at any alignment, and of B is four
// bytes, and a step adds their products: a sum over k is packed as [k / 4][columns][4]. Where the k of a tap is not a
// multiple of four, its last step has `bytes` < 4: only so many bytes of A are read, and B holds zeros for the others.
// Columns that do not exist are packed as zeros too. Rows outside of [rowBegin, rowEnd) count as zeros.
//
// Start values of those sums. `vpdpbusd` multiplies bytes without a sign by such with one, so that A goes in as a + 128,
// and sums begin with -128 * sum of B's column over ALL steps of ALL pointers of the call (integerStart), rows that are
// left out included: for those the kernel multiplies 128 by B, which takes their share back. A filter row that lies
// outside of the image has no pointer, its B is not read, and its sums are not in the start values: callers keep start
// values for each set of filter rows in use. By words and pairs start values are zero (integerStart gives zeros), and
// rows left out cost nothing. With signs each row has a start value, the sum of -a over its negative a.
// Pairs of words: A and B hold numbers as 16 bits, and a step takes two of them from each (sums over k are packed as
// [k / 2][columns][2] words); as by words start values are zero.
// `preparedA`: A holds a + 128 already, or with signs for four bytes of it eight: |a|, and ones where a is negative
// (Intel's ports have no room for making them; Zen 4's have some).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/round.h"
#include "kernels/cpu/jit/emitter.h"
#include "kernels/cpu/jit/factors.h"
#include "kernels/cpu/jit/step_loop.h"
#include "kernels/cpu/jit/sum_end.h"

namespace tw::kernels::jit {

// `unroll` steps over consecutive A elements and packed B rows.
StepLoop contiguousLoop(Isa isa, int vectors, int unroll, Factors factors = Factors::kFloat);
// Of bytes: start[j] += the start value of column j for `rows` packed rows of B, [rows][columns][4].
void integerStart(Factors factors, int8_t const* b, int64_t rows, int64_t columns, int32_t* start);

struct EpilogueOp
{
    enum Kind
    {
        kAddC,       // + what C holds (an earlier part of the sum)
        kBias,       // + bias[j]
        kScale,      // * scale[j]
        kRowScale,   // * rowScale[i]
        kResidual,   // + residual[i, j], that of i8 * numbers.residualScale
        kActivation, // of the sum so far
        // Of sums of integers.
        kOneScale,    // * scale[0]
        kToByte,      // rounded to i8, * numbers.innerScale
        kOutputScale, // * numbers.outputScale
    };
    static constexpr int kKinds = kOutputScale + 1;
    Kind kind = kBias;
    Activation activation;

    EpilogueOp(Kind k) : kind(k) {}
    EpilogueOp(Activation const& a) : kind(kActivation), activation(a) {}
};

// What C holds: i8 and f16 of sums of integers alone. On the CPU FP16 is a permission without effect (docs/compat.md), FP16
// products take the plain tactics.
struct StoredAs
{
    DataType type = DataType::kFloat;
    bool bounded = false;           // as IntegerEnd has it
    std::optional<Activation> clip; // ReLU or Clip, of bytes
    std::optional<ByteTable> table; // of bytes
};

struct GemmKernelSpec
{
    int rows = 1;    // 1 .. gemmMaxRows(isa, vectors)
    int vectors = 1; // 1 .. 4
    StepLoop body, tail;
    std::vector<EpilogueOp> epilogue; // in this order, each kind but kActivation at most once
    // After them, of what they make; with `stepsResidual` the residual is theirs, and not the epilogue's. Not gated.
    std::vector<ExpressionStep> steps;
    bool stepsResidual = false;
    DataType residualType = DataType::kFloat; // sums of integers: i8, f16, f32
    StoredAs store;
    // Of the last vector only `lastColumns` columns exist in C, residual, bias and scale; the others are neither read
    // nor written. Without it all of these reach to the end of the last vector (channels-last tensors with padded
    // pixels).
    bool masked = false;
    // Nor are the other columns of B's last vector read: B is a plain matrix, whose row stride is in the steps.
    bool maskedB = false;
    int prefetchBytes = 0;  // > 0: B is prefetched into L1 this far ahead
    int nextLines = 0;      // cache lines, from args.next on, that each run of `body` prefetches into L2
    bool nextFromA = false; // args.next is a distance in bytes from each pointer of A
    // The first half of the vectors, behind the epilogue's activation, times the second half is what is stored. The
    // epilogue has a residual, a bias and an activation at most; residual and bias reach to the ends of both halves.
    bool gated = false;
    bool prefetchC = false; // the tile's lines of C are fetched for writing before the products
    int rowsPerRun = 0;     // or by each run of `body`, so many rows of C and of the residual
    Factors factors = Factors::kFloat;
    bool preparedA = false; // of kByteDots and kByteSigns
    // No products: the sums are those at args.b, [rows][vectors of the Isa], 64-byte aligned. The end of tiles.
    bool fromSums = false;
    // Sums of integers, without an end, are stored as they are: int32.
    bool storesSums = false;
};

// What stands behind the bias.
void addEnd(GemmKernelSpec& spec, SumEnd const& end, bool residual);
// What stands behind sums of integers.
void addEnd(GemmKernelSpec& spec, IntegerEnd const& end);

struct GemmArgs
{
    void const* const* a = nullptr; // [pointers]
    int64_t pointers = 1;
    int64_t ldaBytes = 0;
    void const* b = nullptr;
    int64_t bodyCount = 0, tailCount = 0;
    void* c = nullptr;
    int64_t ldcBytes = 0;
    float const* bias = nullptr;
    float const* scale = nullptr;
    float const* rowScale = nullptr;
    void const* residual = nullptr;
    int64_t ldrBytes = 0;
    void const* next = nullptr; // with nextLines: what the calls after this one will read; need not be readable
    int64_t lastColumns = 0;    // masked and maskedB kernels: 1 .. vectorWidth
    // Of sums of integers.
    int32_t const* start = nullptr;    // [vectors * vectorWidth]: the last vector is read whole
    int32_t const* rowStart = nullptr; // [rows]: with Factors::kByteSigns, in place of `start`
    IntegerNumbers numbers;
};

// Rows of the tallest tile that leaves the registers that steps and epilogues need: AVX-512 28, 14, 9, 6; AVX2 12, 6,
// 4, 2. Pairs by shifts: 28, 13, 8, 5; 12, 5, 2, 1. Tiles: 32, 32, 16, 16. Bytes by words: 27, 12, 7, 5; 11, 4, 2, 1;
// by pairs: 28, 13, 8, 6; 12, 5, 3, 2, with signs 11, 5, 3, 2; as pairs of words: 28, 14, 9, 6; 12, 6, 3, 2.
int gemmMaxRows(Isa isa, int vectors, Factors factors = Factors::kFloat);
// Rows of A that a kernel with tiles reads: those behind a tile's last must be readable, whatever they hold.
inline int gemmRowsRead(Factors factors, int rows)
{
    return factors == Factors::kBf16Tiles ? int(roundUp(rows, 16)) : rows;
}

class GemmKernel
{
public:
    GemmKernel() = default;
    static Result<GemmKernel> emit(Isa isa, GemmKernelSpec const& spec);
    void operator()(GemmArgs const& args) const
    {
        tileEnd_ ? runTiles(args) : code_.entry<void (*)(GemmArgs const*)>()(&args);
        if (steps_)
            steps_(static_cast<float*>(args.c), args.ldcBytes, static_cast<float const*>(args.residual), args.ldrBytes,
                   rows_, isMasked_ ? columns_ + args.lastColumns : columns_);
    }
    explicit operator bool() const { return code_.sizeBytes() != 0; }
    std::span<uint8_t const> code() const { return {code_.entry<uint8_t const*>(), code_.sizeBytes()}; }

private:
    struct TileEnd; // what stands behind the sums of tiles
    static Result<std::shared_ptr<TileEnd const>> emitTileEnd(Isa isa, GemmKernelSpec const& spec);
    void runTiles(GemmArgs const& args) const;

    Code code_;
    std::shared_ptr<TileEnd const> tileEnd_;
    StepsKernel steps_;
    int64_t rows_ = 0, columns_ = 0; // of a tile; a masked one's without its last vector
    bool isMasked_ = false;
};

} // namespace tw::kernels::jit
