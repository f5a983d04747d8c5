// SPDX-License-Identifier: Apache-2.0
// The coordinates of the elements of x that are not zero, in lexical order: column i of y [m, n] (i32) is the
// coordinate of the i-th of them.   x: f32, f16, i32, i8, u8 or bool, rank m; n depends on the data, at most x's
// volume. NaN is not zero, -0 is.
#pragma once

#include "ir/attrs.h"

namespace tw::ops::non_zero {} // namespace tw::ops::non_zero
