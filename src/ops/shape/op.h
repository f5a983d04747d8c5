// SPDX-License-Identifier: Apache-2.0
// y[i] = size of dimension i of x.   x: any type and shape; y: i32 [rank of x].
#pragma once

#include "ir/attrs.h"

namespace tw::ops::shape {} // namespace tw::ops::shape
