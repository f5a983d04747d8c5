// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "tune/options.h"

namespace tw::tune {

// What identifies a region: op, exact attributes, types, sizes, which of them are known when kernels are made,
// and the nodes that it stands for. Constants count by their size.
std::string regionKey(ops::Problem const& problem, std::string const& device);

// Where else its kernels are checked; empty for no points.
std::string pointsKey(std::span<Point const> points);

// regionKey and which of the candidates support the problem in its formats: what tactics ask of the contents of constants (their
// range, 2:4) tells layers apart by this alone. Libraries ask nothing of them, and are slow to say what they support.
std::string choiceKey(ops::Problem const& problem, Options const& options);

// What identifies a region in the timing cache: choiceKey and what else decides between tactics. Which there are and
// are allowed, where they are checked, and on GPUs the versions of driver, compiler and of the libraries whose kernels
// are candidates (a library that is not there yet may be tomorrow).
std::string cacheKey(ops::Problem const& problem, Options const& options);

} // namespace tw::tune
