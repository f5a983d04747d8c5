// SPDX-License-Identifier: Apache-2.0
// y = condition ? a : b, element by element; equal rank, each dimension equal or 1 (broadcast of all three).
//   condition b; a, b of one type (f32, f16, i8, i32, b), y of that type.
#pragma once

#include "ir/attrs.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::select {

using Attrs = ir::NoAttrs;

} // namespace tw::ops::select
