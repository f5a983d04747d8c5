// SPDX-License-Identifier: Apache-2.0
// Constants of a UFF graph: read from a Const, and computed of others.
#pragma once

#include "parsers/uff/node.h"

namespace tw::uff {

// Element types of files; the low half counts bits.
enum ElementType : int64_t
{
    kInt8 = 0x10008,
    kInt16 = 0x10010,
    kInt32 = 0x10020,
    kInt64 = 0x10040,
    kFloat16 = 0x20010,
    kFloat32 = 0x20020,
};

void importConst(UffNode& n);

std::vector<int64_t> stepsOf(Dims const& dims); // elements between neighbours along each axis
// A constant of these dimensions whose element at p is that of c at first + sum of p[i] steps[i], all of which c has.
Constant picked(UffNode const& n, Constant const& c, Dims const& dims, std::vector<int64_t> const& steps,
                int64_t first);

// What the operators compute when all of their inputs are constants.
Constant joined(UffNode const& n, std::vector<Constant> const& parts, int axis);
Constant computedBinary(UffNode const& n, std::string const& function);
Constant computedUnary(UffNode const& n, std::string const& function);
Constant computedReduce(UffNode const& n, std::string const& function, std::vector<int> const& axes, bool keepDims);

} // namespace tw::uff
