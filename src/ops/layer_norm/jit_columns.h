// SPDX-License-Identifier: Apache-2.0
// Sets of any kind that Layout knows, by statistics of columns.
#pragma once

#include "tactic/cpu_tactic.h"

namespace tw::ops::layer_norm {

extern CpuFunctions const kColumnsCpu;

} // namespace tw::ops::layer_norm
