// SPDX-License-Identifier: Apache-2.0
// Emitted kernels for products of few rows, which are bound by reading B: c[rows, columns] = f(a b + bias + residual)
// for one panel of columns, or for two at once, each a stream of memory of its own.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/cpu/jit/emitter.h"
#include "kernels/cpu/jit/sum_end.h"

namespace tw::kernels::jit {

// Of what B's elements are; all are multiplied as floats.
enum class GemvWeights : int
{
    kFloat,
    kHalf,     // FP16, with the instruction of F16C
    kBfloat16, // BF16
};
inline int sizeOf(GemvWeights w)
{
    return w == GemvWeights::kFloat ? 4 : 2;
}

struct GemvKernelSpec : SumEnd
{
    int rows = 1;
    int vectors = 1; // of a panel
    int streams = 1; // panels at once: 1 or 2
    GemvWeights weights = GemvWeights::kFloat;
    int32_t aStepBytes = 4, bStepBytes = 0; // from one k to the next
    bool addC = false;                      // what C holds, an earlier part of the sum
    bool bias = false, residual = false;
    // Of the last vector only `lastColumns` columns exist in C, residual and bias; with one stream only.
    bool masked = false;
    bool maskedB = false; // nor are the others read in B, of floats
};

struct GemvArgs
{
    float const* a = nullptr;
    int64_t ldaBytes = 0;
    void const* b = nullptr;
    int64_t streamBytes = 0; // from the first stream's B to the second's
    int64_t k = 0;
    float* c = nullptr;
    int64_t ldcBytes = 0;
    float const* bias = nullptr;
    float const* residual = nullptr; // rows as far apart as those of c
    int64_t columnBytes = 0;         // from the first stream's columns of c, bias and residual to the second's
    int64_t lastColumns = 0;         // masked kernels: 1 .. vectorWidth
};

inline constexpr int kGemvMaxRows = 4;
// Whether registers suffice for sums, what the steps need and epilogues.
bool gemvFits(Isa isa, int rows, int vectors, int streams, bool masked, GemvWeights weights = GemvWeights::kFloat);

class GemvKernel
{
public:
    GemvKernel() = default;
    static Result<GemvKernel> emit(Isa isa, GemvKernelSpec const& spec);
    void operator()(GemvArgs const& args) const
    {
        code_.entry<void (*)(GemvArgs const*)>()(&args);
        if (steps_)
            runSteps(args);
    }
    explicit operator bool() const { return code_.sizeBytes() != 0; }

private:
    void runSteps(GemvArgs const& args) const;
    Code code_;
    StepsKernel steps_;
    int64_t rows_ = 0, columns_ = 0, streams_ = 0; // columns of a stream; a masked one's without its last vector
    bool isMasked_ = false;
};

} // namespace tw::kernels::jit
