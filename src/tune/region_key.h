// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tune/options.h"

namespace tw::tune {

// What identifies a region in the timing cache: op, attributes, types, shapes.
std::string regionKey(ops::Problem const& problem, std::string const& device);

// regionKey and what else decides between tactics: which are allowed, and on GPUs the versions of driver, compiler and
// of the libraries whose kernels are candidates (a library that is not there yet may be tomorrow).
std::string cacheKey(ops::Problem const& problem, Options const& options);

} // namespace tw::tune
