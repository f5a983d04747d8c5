// SPDX-License-Identifier: Apache-2.0
// What most sources begin with, and how types and numbers are spelled in them.
#pragma once

#include <string>

#include "base/types.h"

namespace tw::cuda {

// Types f32 f16 i8 i32 b8 u8 (storage), idx and off (element counts and signed offsets: 32 bits, or 64 when `wide`),
// Div and Loop (params.h), conversions, packs of 16 bytes, reductions over a warp and a block.
std::string prelude(bool wide);

// The storage type's name: "f16".
char const* storageOf(DataType t);
// The type that elements are computed in: float for f32 and f16, double for i8 (exact, then rounded half to even and
// saturated), int for i32, u8 and bool.
char const* computeOf(DataType t);
// Storage of so many bytes (1, 2, 4, 8, 16), for kernels that only move elements.
char const* unitOf(int64_t sizeBytes);

// A float or a double as source that the compiler reads back exactly, infinities and NaN too.
std::string literal(float v);
std::string literal(double v);

// `text` with every $name$ replaced; a name without a value stays, and does not compile.
struct Substitution
{
    char const* name;
    std::string value;
};
std::string expand(std::string text, std::initializer_list<Substitution> list);

// The line that ties the host's struct of parameters to the text's.
template <class Params>
std::string sizeCheck()
{
    return fmt::format("static_assert(sizeof(Params) == {}, \"layout of Params\");\n", sizeof(Params));
}

} // namespace tw::cuda
