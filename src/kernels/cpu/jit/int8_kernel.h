// SPDX-License-Identifier: Apache-2.0
// The micro-kernel of sums of integers, behind matrix products and direct convolutions of i8. One call computes one tile
//   C[i, j] = epilogue(sum over p < pointers, over the steps of A pointer p, of a dot product of four integers:
//                      sum over u < 4 of A[p][i * lda + step.aBytes + u] * B[...][j][u])
// for i < rows and j < vectors * vectorWidth(isa). The sum is exact (in 32 bits, modulo 2^32). Walking is as in
// gemm_kernel.h:
//
//   for p in 0 .. pointers:  run `body` bodyCount times, then `tail` tailCount times, from A = a[p]
//   each time a loop runs:   all its steps; then A += aAdvance, B += bAdvance bytes (B goes on from pointer to pointer)
//
// A step takes four consecutive bytes of A per row, at any alignment, and one packed row of B: 64-byte aligned,
// [vectors * vectorWidth columns][4] bytes, int8Row(isa, vectors) of them. So a sum over k is packed as
// [k / 4][columns][4]; where the k of a tap is not a multiple of four, its last step has `bytes` < 4: only so many bytes
// of A are read, and B holds zeros for the others. Columns that do not exist are packed as zeros too.
//
// Rows outside of [rowBegin, rowEnd) do not touch their A: it counts as zeros there.
//
// Start values. `vpdpbusd` multiplies bytes without a sign by such with one, so that A goes in as a + 128, and sums begin
// with -128 * sum of B's column over ALL steps of ALL pointers of the call (int8Start), rows that are left out included:
// for those the kernel multiplies 128 by B, which takes their share back. A filter row that lies outside of the image
// has no pointer, its B is not read, and its sums are not in the start values: callers keep start values for each set of
// filter rows in use. Without VNNI start values are zero (int8Start gives zeros), and rows left out cost nothing.
// `offsetA`: A holds bytes a + 128 already (Intel's ports have no room for the addition; Zen 4's have).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/jit/emitter.h"
#include "kernels/cpu/jit/int8_epilogue.h"
#include "kernels/cpu/jit/step_loop.h"

namespace tw::kernels::jit {

// How products of bytes are made.
enum class Dots : int
{
    kWords = 0,    // 16 bits by 16 bits (vpmaddwd): any CPU of the Isa
    kVnni = 1,     // vpdpbusd: AVX512-VNNI with Isa::kAvx512, AVX-VNNI with Isa::kAvx2
    kVnniWide = 2, // Isa::kAvx2's registers, AVX-512's encoding: how tests run kVnni of AVX2 on CPUs without AVX-VNNI
};
// The best one of this CPU.
Dots dotsOf(device::CpuInfo const& cpu, Isa isa);

// Bytes of a packed row of B: four for each column of a tile.
inline int int8Row(Isa isa, int vectors)
{
    return 4 * vectors * vectorWidth(isa);
}
// `unroll` steps over consecutive A and packed rows of B.
StepLoop contiguousInt8Loop(Isa isa, int vectors, int unroll);
// start[j] += the start value of column j for `rows` packed rows of B, [rows][columns][4].
void int8Start(Dots dots, int8_t const* b, int64_t rows, int64_t columns, int32_t* start);

struct Int8KernelSpec
{
    int rows = 1;    // 1 .. int8MaxRows(isa, dots, vectors)
    int vectors = 1; // 1 .. 4
    StepLoop body, tail;
    bool offsetA = false;
    Int8Epilogue epilogue;
    int nextLines = 0;      // cache lines, from args.next on, that each run of `body` prefetches into L2
    bool nextFromA = false; // args.next is a distance in bytes from each pointer of A
    bool prefetchC = false; // the tile's lines of C are fetched for writing before the products
};

struct Int8Args
{
    void const* const* a = nullptr; // [pointers]
    int64_t pointers = 1;
    int64_t ldaBytes = 0;
    void const* b = nullptr;
    int32_t const* start = nullptr; // [vectors * vectorWidth]: the last vector is read whole
    int64_t bodyCount = 0, tailCount = 0;
    Int8Output output;
    void const* next = nullptr; // with nextLines: what the calls after this one will read; need not be readable
};

// Rows of the tallest tile for 1, 2, 3 and 4 vectors. VNNI: AVX-512 28, 14, 9, 6; AVX2 12, 6, 4, 2. Without:
// AVX-512 27, 12, 7, 5; AVX2 11, 4, 2, 1.
int int8MaxRows(Isa isa, Dots dots, int vectors);

class Int8Kernel
{
public:
    Int8Kernel() = default;
    static Result<Int8Kernel> emit(Isa isa, Dots dots, Int8KernelSpec const& spec);
    void operator()(Int8Args const& args) const { code_.entry<void (*)(Int8Args const*)>()(&args); }
    std::span<uint8_t const> code() const { return {code_.entry<uint8_t const*>(), code_.sizeBytes()}; }
    explicit operator bool() const { return code_.sizeBytes() != 0; }

private:
    Code code_;
};

} // namespace tw::kernels::jit
