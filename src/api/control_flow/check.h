// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/network.h"

namespace tw::api::control_flow {

// A loop or conditional on its own, when the network is built: limits, conditions, next values, types. One without any
// boundary layer does nothing and is left alone.
Result<void> checkComplete(Construct const& c);

} // namespace tw::api::control_flow
