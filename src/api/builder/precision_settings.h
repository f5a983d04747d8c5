// SPDX-License-Identifier: Apache-2.0
// Reduced precision as a build is asked for it: permissions that have no effect yet are warnings, demands are errors.
#pragma once

#include "api/builder/config.h"
#include "api/network/network.h"
#include "passes/pass.h"

namespace tw::api {

passes::PrecisionConstraints constraintsOf(BuilderConfigObject const& c);
// What the device has no kernels for yet. A GPU has them for FP16: the pass lower_precision answers for each layer.
Result<void> checkPrecisions(NetworkObject const& n, BuilderConfigObject const& c, bool onGpu, Reporter& log);

} // namespace tw::api
