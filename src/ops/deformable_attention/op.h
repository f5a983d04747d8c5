// SPDX-License-Identifier: Apache-2.0
// Attention to some places of several images, as Deformable DETR has it:
//   y[n,q,m,d] = sum over l, p of weights[n,q,m,l,p] * image_l[n,m,d] at locations[n,q,m,l,p]
// Image l has shapes[l] = (h, w) rows and columns, which lie in value from row starts[l] on. A location (x, y) is the
// place (x w - 1/2, y h - 1/2): a linear mix of the four pixels around it, of which those outside count as 0.
//   inputs: 0 value [N, S, M, D]   1 shapes i32 [L, 2]   2 starts i32 [L]   3 locations [N, Q, M, L, P, 2]
//           4 weights [N, Q, M, L, P];  all but 1 and 2 f32 or f16, one type
// A row that value does not have counts as 0.
#pragma once

#include "ir/attrs.h"
#include "ir/op_def.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::deformable_attention {

using Attrs = ir::NoAttrs;

enum Input
{
    kValue,
    kShapes,
    kStarts,
    kLocations,
    kWeights,
};

} // namespace tw::ops::deformable_attention
