// SPDX-License-Identifier: Apache-2.0
// y = x >= 0 ? x : slope * x; x and slope of equal rank and one type (f32, f16, i8), broadcast either way.
// i8 is the product of the raw integers, saturated.
#pragma once

#include "ir/attrs.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::parametric_relu {

using Attrs = ir::NoAttrs;

} // namespace tw::ops::parametric_relu
