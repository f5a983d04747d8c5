// SPDX-License-Identifier: Apache-2.0
// Products of matrices of i8 by emitted micro-kernels (jit/gemm_kernel.h): c[m, n] = epilogue(a[m, k] b[k, n]), one after
// the other for several pairs of operands; c and the residual are dense.
//
// Work is cut as in gemm_jit.h, but k never is: a panel of four vectors of columns is 64 k bytes, which L2 holds up to
// where a sum could leave 32 bits.
#pragma once

#include <cstddef>
#include <vector>

#include "base/workers.h"
#include "kernels/cpu/gemm_parts.h"
#include "kernels/cpu/gemm_plain.h"
#include "kernels/cpu/jit/gemm_kernel.h"

namespace tw::kernels {

struct Int8GemmOptions
{
    jit::Isa isa = jit::Isa::kAvx2;
    jit::Factors factors = jit::Factors::kByteWords;
    int vectors = 2;           // width of a tile, 1 .. 4
    bool packedBefore = false; // b, by packB() when it became known; else panel by panel, when a part needs it
    // The rows of a part are copied first, with the offset that VNNI needs: where columns are not contiguous, where
    // tiles would thrash L1, and where additions in the kernel cost more (Intel).
    bool packA = false;
    int64_t l2Bytes = 1 << 20;
    int threads = 1;
    jit::IntegerEnd end;
};

// What is added to the operands' addresses for one of the products, in bytes; b packed before: of what packB() makes.
struct Int8Offsets
{
    int64_t a = 0, b = 0;
};

class Int8Gemm
{
public:
    // Code for this shape and these strides.
    static Result<Int8Gemm> make(Int8GemmOptions const& options, GemmShape const& shape,
                                 std::vector<Int8Offsets> products);

    // Scratch memory, 64-byte aligned; grows with each of m, n, k.
    static int64_t workspaceBytes(Int8GemmOptions const& options, int64_t m, int64_t n, int64_t k);
    static int64_t packedBytes(Int8GemmOptions const& options, int64_t n, int64_t k);
    static void packB(Int8GemmOptions const& options, GemmShape const& shape, int8_t const* b,
                      int8_t* to); // to: 64-byte aligned

    // `first`: c, residual, scale, bias and numbers of the first tile of the first product.
    void run(int8_t const* a, int8_t const* b, jit::GemmArgs const& first, void* workspace, Workers& workers) const;

private:
    Result<void> emit(int tall, int tail);
    void runPart(int64_t index, int8_t const* a, int8_t const* b, jit::GemmArgs const& first, std::byte* scratch) const;

    Int8GemmOptions options_;
    GemmShape shape_;
    std::vector<Int8Offsets> products_;
    GemmParts parts_;
    int64_t nextLines_ = 0;         // of the next panel that each run of a kernel's loop prefetches
    jit::GemmKernel kernels_[2][2]; // [one row more][last panel]
};

} // namespace tw::kernels
