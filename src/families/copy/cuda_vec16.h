// SPDX-License-Identifier: Apache-2.0
// Kernels (cuda_words.cuh) that write a dense tensor in aligned words of 16 bytes whatever its rows are pieced together
// from: spans of elements that may begin anywhere.
#pragma once

#include <cstdint>

#include "families/copy/copy_params.h"

namespace tw::ops {

// Bytes of an average segment from which words of one segment are what counts; of an element up to which joining them
// beats reading elements one by one.
constexpr int64_t kLeastSegmentBytes = 96, kMostJoinedBytes = 2;
constexpr int kVec16Threads = 256;
constexpr int64_t kVec16Bytes = 16;

ContiguousSpan contiguousSpan(void const* x, int64_t low, int64_t high, int64_t unitBytes);

} // namespace tw::ops
