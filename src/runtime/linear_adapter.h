// SPDX-License-Identifier: Apache-2.0
// Makes a kernel that knows only linear tensors run on others: an engine that was tuned elsewhere runs on plain
// kernels, whatever formats its values have.
#pragma once

#include <memory>

#include "tactic/tactic.h"

namespace tw::runtime {

std::unique_ptr<ops::Kernel> linearAdapter(std::unique_ptr<ops::Kernel> kernel);

} // namespace tw::runtime
