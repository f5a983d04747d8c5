// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/dim.h"

namespace tw::ir {

constexpr size_t kMaxDimTextBytes = 4096; // of Dim::str(); Dim::parse() reads no more either

char const* nameOf(DimOp op);

} // namespace tw::ir
