// SPDX-License-Identifier: Apache-2.0
// y of given dimensions, made from alpha and beta.
//   linspace        y[i0, i1, ..] = alpha + sum over d of beta[d] i_d    (f32, f16, i32; i32 in integers, wraps)
//   random_uniform  alpha + u (beta - alpha), u uniform in [0, 1)        (f32, f16)
//   random_normal   alpha + beta z, z of mean 0 and deviation 1          (f32, f16)
//   input 0: dimensions, 1-D i32, decides the shape; else the attribute `dims`.
//   inputs 1, 2 (both or neither, one type: that of y): alpha a scalar; beta a scalar, for linspace one step for each
//   dimension, [rank] (a scalar will do for rank 1); else the attributes alpha and beta, which make linspace 1-D.
// Random values come from a counter: value k of a run is a function of state + k, and a run moves the state on by the
// numbers it took, so that a context never repeats itself and equal states give equal tensors on every device. Without
// a state it counts from 0.
#pragma once

#include "ir/attrs.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::fill {

enum class Operation : int32_t // same numbers as nvinfer1::FillOperation
{
    kLinspace = 0,
    kRandomUniform = 1,
    kRandomNormal = 2,
};

struct Attrs : ir::AttrsOf<Attrs>
{
    Operation operation = Operation::kLinspace;
    std::vector<int64_t> dims;              // unused with input 0
    double alpha = 0, beta = 1;             // unused with inputs 1, 2
    DataType outputType = DataType::kFloat; // unused with inputs 1, 2

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "operation", operation);
        v.field(2, "dims", dims);
        v.field(3, "alpha", alpha);
        v.field(4, "beta", beta);
        v.field(5, "output_type", outputType);
    }
};

// The definition of the random numbers: 64 well-mixed bits for each counter value (the output function of SplitMix64).
inline uint64_t randomBits(uint64_t counter)
{
    uint64_t z = (counter + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
// In [0, 1), a multiple of 2^-24: exact in float.
inline double uniformAt(uint64_t counter)
{
    return double(randomBits(counter) >> 40) * 0x1p-24;
}
// In (0, 1]: its logarithm is finite.
inline double positiveAt(uint64_t counter)
{
    return double((randomBits(counter) >> 11) + 1) * 0x1p-53;
}

} // namespace tw::ops::fill
