// SPDX-License-Identifier: Apache-2.0
// Rows of rotary positions in FP32, for each instruction set. y does not overlap what is read.
#pragma once

#include <cstdint>

namespace tw::ops::rotary {

struct Row
{
    float const *x, *c, *s;
    float* y;
    int64_t size, n;
};

struct Kernels
{
    void (*halves)(Row const&);       // c, s: a number for each element
    void (*halvesByPair)(Row const&); // for each pair
    void (*neighbours)(Row const&);   // neighbours are pairs
    void (*neighboursByPair)(Row const&);
};

} // namespace tw::ops::rotary

namespace tw::avx2 {
extern ops::rotary::Kernels const kRotary;
}
namespace tw::avx512 {
extern ops::rotary::Kernels const kRotary;
}
