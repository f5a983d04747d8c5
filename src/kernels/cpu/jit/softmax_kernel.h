// SPDX-License-Identifier: Apache-2.0
// y[j] = exp(t[j] - m) / s with m = max over j of t[j], s = sum over j of exp(t[j] - m), for rows of n numbers, where
//   t[j] = scale * x[j];  rounded to multiples of scoreStep;  `fill` instead where fillWhere[j] has its highest bit;
//   + mask[j];  rounded to multiples of sumStep
// (each part only where the spec has it). `deferred`: y[j] = exp(t[j] - m), and 1 / s goes to reciprocals[row].
// `ends`: row r has ends[r] numbers, 1 .. n; y is 0 after them, up to the end of the vector in which n lies.
// A row that holds NaN or +inf, or nothing but -inf, is NaN throughout.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/jit/emitter.h"

namespace tw::kernels::jit {

struct SoftmaxSpec
{
    bool scale = false;
    bool fill = false;
    bool mask = false;
    bool deferred = false;
    bool ends = false;                // not together with fill
    float scoreStep = 0, sumStep = 0; // of a quantize and a dequantize: -128 to 127 steps; 0: not rounded
};

struct SoftmaxArgs
{
    float const* x = nullptr;
    float* y = nullptr; // may be x
    int64_t xStrideBytes = 0, yStrideBytes = 0;
    int64_t rows = 0, n = 0; // n >= 1
    float const* mask = nullptr;
    int64_t maskStrideBytes = 0;
    uint32_t const* fillWhere = nullptr;
    int64_t fillStrideBytes = 0;
    float scale = 1, fill = 0;
    float* reciprocals = nullptr;  // [rows], deferred only
    int64_t const* ends = nullptr; // [rows]
    int64_t group = 1;             // set by the call: rows that go through one pass after the other
};

class SoftmaxKernel
{
public:
    static Result<SoftmaxKernel> emit(Isa isa, SoftmaxSpec const& spec);
    void operator()(SoftmaxArgs args) const
    {
        if (args.rows <= 0)
            return;
        args.group = std::clamp<int64_t>(kGroupFloats / args.n, 1, kGroupRows);
        code_.entry<void (*)(SoftmaxArgs const*)>()(&args);
    }

    // Rows in a pass do not wait for each other; together they stay in half of the smallest L1.
    static constexpr int64_t kGroupRows = 16, kGroupFloats = 4096;

private:
    Code code_;
};

} // namespace tw::kernels::jit
