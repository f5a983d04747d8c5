// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "builder/build.h"
#include "builder/chooser.h"
#include "builder/confirm.h"

namespace tw::builder {

// The best of the graphs and assignments of formats that are worth a try, by the time of the whole engine; its tactics
// are chosen and its kernels loaded. `alternatives`: to the contents' graph.
Result<Attempt> makeBestAttempt(plan::Contents const& contents, std::span<passes::Alternative const> alternatives,
                                Options const& options, Chooser& chooser, Log& log);

} // namespace tw::builder
