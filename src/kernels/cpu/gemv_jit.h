// SPDX-License-Identifier: Apache-2.0
// Matrix products of few rows by emitted kernels: c[m, n] = f(a[m, k] b[k, n] + bias[n] + residual[m, n]), one
// after the other for several pairs of operands. Float; c and the residual are dense. Every number of b is used as soon
// as it is read, so that the memory decides the time. b is packed before, as GemmJit packs it, or lies in contiguous
// rows or columns.
//
// Up to jit::kGemvMaxRows rows read b once; more go in blocks of rows, panel by panel.
// Packed ones may be of 16 bits, where floats of these values are close enough: half the bytes.
//
// A part is a range of column panels of one product. Of packed ones it reads two at once, the next of each half of its
// range: two streams are what one core needs to draw all it can from memory (0.91 of the time of one on Zen 4).
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/workers.h"
#include "kernels/cpu/gemm_jit.h"
#include "kernels/cpu/jit/gemv_kernel.h"

namespace tw::kernels {

struct GemvJitOptions : jit::SumEnd
{
    jit::Isa isa = jit::Isa::kAvx2;
    int vectors = 2; // width of a panel
    enum B
    {
        kPacked,  // by GemmJit::packB with this width
        kRows,    // its rows are contiguous
        kColumns, // its columns are: `vectors` counts for the epilogue only
    };
    B b = kPacked;
    jit::GemvWeights weights = jit::GemvWeights::kFloat; // others: packed, by narrow()
    int threads = 1;
    bool bias = false, residual = false;
};

class GemvJit
{
public:
    // Code for this shape and these strides.
    static Result<GemvJit> make(GemvJitOptions const& options, GemmShape const& shape,
                                std::vector<GemmOffsets> products);

    // Packed floats in 16 bits, half to even.
    static void narrow(GemvJitOptions const& options, float const* packed, int64_t count, uint16_t* to);

    // b: of the options' weights. Offsets of products count its elements.
    void run(float const* a, void const* b, float const* bias, float const* residual, float* c, Workers& workers) const;

private:
    enum Kind
    {
        kPair,
        kSingle,
        kLast, // panel of a product, narrower than the others
        kKinds
    };

    enum Sum // part of the sum over k
    {
        kOnly,
        kFirst,
        kMiddle,
        kEnd,
        kSums
    };

    Result<void> emit(Kind kind, Sum sum);
    void runPart(int64_t part, float const* a, void const* b, float const* bias, float const* residual, float* c) const;

    GemvJitOptions options_;
    GemmShape shape_;
    std::vector<GemmOffsets> products_;
    int64_t panel_ = 0, panels_ = 0; // columns of a full panel; the last may be narrower
    int64_t groups_ = 1;             // parts of a product
    int64_t rows_ = 0;               // of a block; the last may have fewer
    int64_t kBlock_ = 0;             // products added up before the next panel comes
    // [last block of rows][kind][part of the sum]
    std::array<std::array<std::array<jit::GemvKernel, kSums>, kKinds>, 2> kernels_;
};

} // namespace tw::kernels
