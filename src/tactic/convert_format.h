// SPDX-License-Identifier: Apache-2.0
// The same elements in another format, plainly: for checks, plain kernels and the op that does nothing else.
#pragma once

#include <vector>

#include "base/tensor.h"
#include "base/workers.h"

namespace tw::ops {

// to := from; types and dims agree, and the dimension that is the channels, where neither is linear. Gaps of `to` are
// left as they are.
void convertFormat(TensorRef const& from, TensorRef const& to, Workers& workers = serialWorkers());

// Elements of a tensor's storage that are none of the tensor's: `rows` pieces of `width` elements, `pitch` apart.
struct Gap
{
    int64_t begin, width, pitch, rows;
};
std::vector<Gap> gapsOf(TensorRef const& t);
void zeroGaps(TensorRef const& t);

} // namespace tw::ops
