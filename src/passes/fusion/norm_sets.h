// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ir/graph.h"
#include "ops/layer_norm/op.h"

namespace tw::passes {

// The sets of a norm, and the dimensions that gamma and beta have numbers for, as masks of dimensions; and the same seen
// through a reshape: PyTorch joins channels of a group and pixels to normalize them, Keras cuts channels into two dimensions.
struct NormSets
{
    int64_t normalized = 0; // bit i: dimension i
    int64_t weighted = 0;   // of gamma and beta; of dimensions of size 1 at most one
    int64_t groups = 1;     // the normalized dimension `channel` is cut into so many
    int channel = -1;
};

// For x of the shape `outer`, where `sets` are those of a reshaped x; null: no attributes say it.
std::optional<NormSets> throughReshape(NormSets const& sets, ir::Shape const& outer, ir::Shape const& inner);
// The attributes for x of this shape, epsilon and what is optional left as they are; false: there are none.
bool setAttributes(ops::layer_norm::Attrs& a, NormSets const& sets, ir::Shape const& x);

} // namespace tw::passes
