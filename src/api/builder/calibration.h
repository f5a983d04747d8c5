// SPDX-License-Identifier: Apache-2.0
// Implicit quantization as a build is asked for it: ranges that clients set on tensors, and calibrators.
#pragma once

#include "api/builder/config.h"
#include "api/network/network.h"
#include "calibrate/network.h"
#include "passes/pass.h"
#include "plan/plan.h"

namespace tw::cuda {
struct Target;
}

namespace tw::api {

// The scale of each tensor that has one, by name: what the calibrator's cache or its batches give, replaced by
// ITensor::setDynamicRange() where that was called. Empty without BuilderFlag::kINT8, and for networks with layers that
// quantize, which say everything themselves. `contents`: before passes, with the build's profiles. `gpu`: where the client's
// batches lie; null: on the host.
Result<passes::Ranges> rangesOf(NetworkObject const& n, BuilderConfigObject const& c, plan::Contents const& contents,
                                calibrate::NetworkOptions const& options, cuda::Target const* gpu, Reporter& log);

} // namespace tw::api
