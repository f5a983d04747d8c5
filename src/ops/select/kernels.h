// SPDX-License-Identifier: Apache-2.0
// Rows of choices, one table for each instruction set.
#pragma once

#include <cstdint>
#include <type_traits>

namespace tw::ops::select {

// y[i] = c[i] != 0 ? a[i] : b[i] for n elements; an operand that is `one` is its first element for all of them.
struct Row
{
    uint8_t const* c;
    void const *a, *b;
    void* y;
    int64_t n;
    bool cIsOne, aIsOne, bIsOne;
};

struct Kernels
{
    void (*words)(Row const& row); // elements of 4 bytes
    void (*halves)(Row const& row);
    void (*bytes)(Row const& row);
    void (*bools)(Row const& row); // bytes that are not 0 come out as 1
};

} // namespace tw::ops::select

namespace tw::baseline { // that every x86-64 has
extern ops::select::Kernels const kSelect;
}
namespace tw::avx2 {
extern ops::select::Kernels const kSelect;
}
namespace tw::avx512 {
extern ops::select::Kernels const kSelect;
}
