// SPDX-License-Identifier: Apache-2.0
// Runs an engine of a plan that may be untrusted, at the optimum of its first profile, if it is small.
#pragma once

#include <memory>

#include "runtime/engine.h"

namespace tw::test {

// Errors are fine; so is not running (large tensors, loops, sizes that only data decides).
void runSmall(std::shared_ptr<runtime::Engine const> engine);

// Gives all weights that can be refitted zeros, if there are few; false: there are none, or it is not possible.
bool refitSmall(runtime::Engine& engine);

} // namespace tw::test
