// SPDX-License-Identifier: Apache-2.0
// How long a layer must take at least on a machine, and what to say of a kernel that takes much longer.
#pragma once

#include <string>

#include "plan/plan.h"
#include "tune/rates.h"

namespace tw::tune {

// Microseconds of a kernel that nothing shortens: its launch, or the start of the workers.
double startOf(ops::Backend backend);

// Bytes that the region reads and writes, each tensor once.
double bytesOf(ops::Problem const& problem);
// Of products and sums; 0: the region is a matter of bytes.
double operationsOf(ops::Problem const& problem);

// The larger of bytes / rate of copies and operations / rate of the type that is multiplied, and startOf(). 0: a rate
// is not known.
double limitOf(ops::Problem const& problem, Rates& rates);

// Why the chosen tactic is no fast kernel: it is the plain one that closes a list of several and takes more than kNear
// times its limit, with what stood against the others; or it takes more than kSlow times its limit, unless `isBusy`:
// others used the machine while it was timed. Empty: it is one, or takes less than startOf(). `choice` has its time,
// limit and rivals.
inline constexpr double kNear = 1.5, kSlow = 3;
std::string lackOf(ops::Problem const& problem, plan::Choice const& choice, Options const& options,
                   bool isBusy = false);

} // namespace tw::tune
