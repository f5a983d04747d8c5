// SPDX-License-Identifier: Apache-2.0
// Sets of any kind that Layout knows, by statistics of columns.
#pragma once

#include "tactic/tactic.h"

namespace tw::ops::layer_norm {

Tactic const& columnsAvx512();
Tactic const& columnsAvx2();

} // namespace tw::ops::layer_norm
