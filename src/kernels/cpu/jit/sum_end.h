// SPDX-License-Identifier: Apache-2.0
// What kernels of sums do with them, once the bias is added, before they store them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/step_code.h"
#include "base/types.h"
#include "kernels/cpu/jit/emitter.h"

namespace tw::kernels::jit {

// A function of one number that kernels can end with.
struct Activation
{
    ActivationKind kind = ActivationKind::kRelu;
    float alpha = 0, beta = 0;
};

struct SumEnd
{
    std::optional<Activation> activation; // of the sum and the residual
    bool residualLast = false;            // of the sum, to which the residual is added afterwards
    // Or an expression of the sum, value 0, and of the residual, value 1 where there is one.
    std::vector<ExpressionStep> steps;

    bool any() const { return activation || !steps.empty(); }
};

// How a table of 256 bytes is read.
enum class ByteTable
{
    kPermutes, // AVX512-VBMI: it lies in registers
    kBytes,    // one byte after the other, in memory
};
ByteTable byteTableOf(device::CpuInfo const& cpu, Isa isa);

// What becomes of the exact sums of integers, in this order, each step in FP32 and rounded by itself
// (docs/adr/0012-int8-in-the-graph.md):
//   t = float(sum) * scale;  + bias;  rounded to i8 and * innerScale;  + residual (times residualScale where it is i8);
//   activation;  * outputScale;  rounded to the type of C: half to even, i8 clamped to [-128, 127] and 0 for NaN, and looked
//   up in a table
struct IntegerEnd
{
    bool oneScale = false; // scale is one number; else one for each column
    bool bias = false;
    std::optional<DataType> residual; // i8, f16 or f32, as `store`
    std::optional<Activation> activation;
    bool outputScale = false;
    DataType store = DataType::kFloat;
    // What is rounded to i8 is no NaN and lies within 2^31, for certain: nothing but the packing instructions clamps it.
    bool bounded = false;
    bool innerScale = false;
    std::optional<ByteTable> table; // of i8 C

    // Whether ReLU or Clip may hold the bytes against its bounds: rounding and clamping keep the order of numbers.
    bool clipsBytes() const
    {
        return bounded && isQuantized(store) && !outputScale && !table && activation &&
               (activation->kind == ActivationKind::kRelu || activation->kind == ActivationKind::kClip);
    }
};
struct IntegerNumbers
{
    float residualScale = 1, outputScale = 1, innerScale = 1;
    int8_t const* table = nullptr; // [256], of -128 first
};

// Such an expression of what was stored a moment ago, and of the residual: y[i, j] = steps(y[i, j], residual[i, j]).
class StepsKernel
{
public:
    StepsKernel() = default;
    static Result<StepsKernel> emit(Isa isa, std::span<ExpressionStep const> steps, bool residual);
    explicit operator bool() const { return code_.sizeBytes() != 0; }
    void operator()(float* y, int64_t yRowBytes, float const* residual, int64_t residualRowBytes, int64_t rows,
                    int64_t columns) const;

private:
    Code code_;
};

} // namespace tw::kernels::jit
