// SPDX-License-Identifier: Apache-2.0
// Matrix products by emitted micro-kernels: c[m, n] = f(a[m, k] b[k, n] + bias[n] + residual[m, n]), one after the
// other for several pairs of operands. Float; c and the residual are dense. Gated: b has 2 n columns and
// c[m, n] = f(x[m, 0 .. n]) * x[m, n .. 2 n], x = a b + bias.
//
// With factors in pairs of BF16 (bf16.h) the packed operands are: a is rounded while its rows are copied, as they always
// are, b when packB() is called.
//
// Of i8 (Factors of bytes) sums are exact, and what follows them is `integers`. k is never cut: a panel of four vectors
// of columns is 64 k bytes, which L2 holds up to where a sum could leave 32 bits. A packed panel begins with its start
// values.
//
// A tile of c is `rows` x `vectors` vectors of accumulators. Work is cut into parts of a block of rows that stays in L2
// by a group of column panels; within a part each panel of b is used for all rows of the block before the next one
// comes.
#pragma once

#include <array>
#include <vector>

#include "base/workers.h"
#include "kernels/cpu/gemm_parts.h"
#include "kernels/cpu/jit/gemm_kernel.h"

namespace tw::kernels {

struct GemmJitOptions : jit::SumEnd
{
    enum B
    {
        kPackedBefore, // packB() was called when b became known
        kNarrowBefore, // likewise, but what it gave was made numbers of 16 bits; floats again panel by panel, when a part needs them
        kPacked, // panel by panel, when a part needs it
        kDirect, // read as it is: its rows are contiguous
    };

    jit::Isa isa = jit::Isa::kAvx2;
    jit::Factors factors = jit::Factors::kFloat; // pairs: with kPackedBefore; bytes: not with kDirect
    int vectors = 2;                             // width of a tile, 1 .. 4
    B b = kPacked;
    bool bfloat16 = false; // of kNarrowBefore: BF16, else FP16
    // The rows of a part are copied first: where tiles would thrash L1, or columns are not contiguous; of bytes with the
    // offset that VNNI needs, where additions in the kernel cost more (Intel).
    bool packA = false;
    int64_t l2Bytes = 1 << 20;
    int threads = 1;
    bool bias = false, residual = false;
    jit::IntegerEnd integers; // of bytes: all that follows the sums
    bool gated = false;       // one product, with b packed before, and the bias by packBias(); 2 or 4 vectors
};

// Whether the rows of a tile of a, at this stride, fall into too few sets of L1 to stay there.
bool thrashesL1(int64_t rowStrideBytes, int rows, int64_t l1DataBytes);

// What is added to the operands' addresses for one of the products, in numbers; of what was packed before b counts in packed
// numbers.
struct GemmOffsets
{
    int64_t a = 0, b = 0;
};

// Floats from row to row of c and of the residual, where they are parts of wider matrices; 0: they are dense.
struct GemmRows
{
    int64_t c = 0, residual = 0;
};

class GemmJit
{
public:
    // Code for this shape and these strides.
    static Result<GemmJit> make(GemmJitOptions const& options, GemmShape const& shape,
                                std::vector<GemmOffsets> products, GemmRows rows = {});

    // Scratch memory, 64-byte aligned; grows with each of m, n, k.
    static int64_t workspaceBytes(GemmJitOptions const& options, int64_t m, int64_t n, int64_t k);
    static int64_t packedFloats(GemmJitOptions const& options, int64_t n, int64_t k);
    static void packB(GemmJitOptions const& options, GemmShape const& shape, void const* b,
                      float* to); // to: 64-byte aligned
    // Of a gated product, [n]: as columns of its panels lie, packedFloats(options, n, 1) numbers.
    static void packBias(GemmJitOptions const& options, int64_t n, float const* bias, float* to);

    void run(float const* a, float const* b, float const* bias, float const* residual, float* c, void* workspace,
             Workers& workers) const;
    // `first`: c, residual, bias, scale and numbers of the first tile of the first product.
    void run(void const* a, void const* b, jit::GemmArgs const& first, void* workspace, Workers& workers) const;

private:
    enum Part // of the sum over k that a kernel adds
    {
        kOnly,
        kFirst,
        kMiddle,
        kLast,
        kParts
    };

    Result<void> emit(int tall, int tail, Part part);
    // Of gated products with several blocks of k: what is known of both halves' sums in between, [m, packed columns].
    static int64_t sumsBytes(GemmJitOptions const& options, int64_t m, int64_t n, int64_t k);
    void runPart(int64_t index, std::byte const* a, std::byte const* b, jit::GemmArgs const& first, float* sums,
                 std::byte* scratch) const;
    int64_t bodyRuns(int64_t depth) const;

    GemmJitOptions options_;
    GemmShape shape_; // k: elements that are multiplied: numbers, pairs of them, or four bytes
    int64_t kNumbers_ = 0;
    GemmRows rows_; // with the strides of dense ones
    std::vector<GemmOffsets> products_;
    int halves_ = 1;      // of b's columns, whose columns are those of c: 2 where gated
    int64_t columns_ = 0; // of c
    GemmParts parts_;     // of c
    int64_t kBlock_ = 0, kBlocks_ = 0;
    int64_t nextLines_ = 0; // of the next panel that each run of a kernel's loop prefetches
    int unroll_ = 4;        // steps of k in the loop's body
    int64_t step_ = 1;      // elements of k that a step takes
    // [one row more][last panel][part]
    std::array<std::array<std::array<jit::GemmKernel, kParts>, 2>, 2> kernels_;
};

} // namespace tw::kernels
