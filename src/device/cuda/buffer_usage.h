// SPDX-License-Identifier: Apache-2.0
// How much memory of GPUs this process holds in Buffers, builds and engines together: for the log.
#pragma once

#include <cstdint>

namespace tw::cuda {

// The most at one time since the last forgetMostBytesInBuffers().
int64_t mostBytesInBuffers();
void forgetMostBytesInBuffers();

} // namespace tw::cuda
