// SPDX-License-Identifier: Apache-2.0
// Describes machines to passes: the one place where what the device layers know becomes a passes::TargetInfo.
#pragma once

#include "passes/target_info.h"

namespace tw::device {
struct CpuInfo;
}
namespace tw::cuda {
struct Target;
}

namespace tw::builder {

passes::TargetInfo describe(device::CpuInfo const& cpu);
passes::TargetInfo describe(cuda::Target const& gpu);

} // namespace tw::builder
