// SPDX-License-Identifier: Apache-2.0
// What becomes of the exact sums of integers, in this order, each step in FP32 and rounded by itself
// (docs/adr/0012-int8-in-the-graph.md):
//   t = float(sum) * scale;  + bias;  rounded to i8 and * innerScale;  + residual (times residualScale where it is i8);
//   activation;  * outputScale;  rounded to the type of C: half to even, i8 clamped to [-128, 127] and 0 for NaN, and looked
//   up in a table
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/cpu/jit/activation.h"
#include "kernels/cpu/jit/emitter.h"

namespace tw::kernels::jit {

enum class Int8Type // of C and of the residual
{
    kFloat,
    kHalf,
    kInt8,
};
inline int bytesOf(Int8Type t)
{
    return t == Int8Type::kFloat ? 4 : t == Int8Type::kHalf ? 2 : 1;
}

// How a table of 256 bytes is read.
enum class ByteTable
{
    kPermutes, // AVX512-VBMI: it lies in registers
    kBytes,    // one byte after the other, in memory
};
ByteTable byteTableOf(device::CpuInfo const& cpu, Isa isa);

struct Int8Epilogue
{
    bool oneScale = false; // scale is one number; else one for each column
    bool bias = false;
    std::optional<Int8Type> residual;
    std::optional<Activation> activation;
    bool outputScale = false;
    Int8Type store = Int8Type::kFloat;
    // Of the last vector only `lastColumns` columns exist in C, residual, bias and scale; the others are neither read
    // nor written. Without it all of these reach to the end of the last vector.
    bool masked = false;
    // What is rounded to i8 is no NaN and lies within 2^31, for certain: nothing but the packing instructions clamps it.
    bool bounded = false;
    bool innerScale = false;
    std::optional<ByteTable> table; // of i8 C
    // Empty, or what is wrong with it.
    std::string refusal() const;
};

// Its arguments, of one tile.
struct Int8Output
{
    void* c = nullptr;
    int64_t ldcBytes = 0;
    float const* scale = nullptr;
    float const* bias = nullptr;
    void const* residual = nullptr;
    int64_t ldrBytes = 0;
    float residualScale = 1, outputScale = 1, innerScale = 1;
    int8_t const* table = nullptr; // [256], of -128 first
    int64_t lastColumns = 0;       // masked: 1 .. vectorWidth
};

} // namespace tw::kernels::jit
