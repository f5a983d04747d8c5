// SPDX-License-Identifier: Apache-2.0
// y = condition ? then(captures) : otherwise(captures)   inputs: condition (bool, one element), captures...
// Regions: 0 then, 1 else; each takes the captures in order, and only the one taken runs. Outputs have the type that
// both regions give, and their shape; where the two differ, a dimension is bound at run time, up to the larger one.
#pragma once

#include "ir/attrs.h"
