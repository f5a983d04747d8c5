// SPDX-License-Identifier: Apache-2.0
// CUDA tactics that run another library's kernels: whether it is there.
#pragma once

#include "device/cuda/libraries.h"
#include "device/cuda/target.h"
#include "tactic/tactic.h"

namespace tw::ops {

char const* nameOf(Source source);

// The library of a source, opened for a GPU: an error that says why it cannot be used. kOwn needs none.
Result<void> openLibrary(Source source, cuda::Target const& target);

// "cuDNN 91900", or "cuDNN none": what choices among its kernels and others depend on.
std::string versionOf(Source source, cuda::Target const& target);

// What every tactic of the library asks first.
Support supportsLibrary(Source source, Problem const& problem);

} // namespace tw::ops
