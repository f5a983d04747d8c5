// SPDX-License-Identifier: Apache-2.0
// Transpose, reshape, transpose:   c[I] = x[I permuted by first]: dimension i of c is dimension first[i] of x;
// r holds the elements of c in the same order under new dimensions; y is r permuted by second in the same way.
//   x: any type, any rank. Input 1 (optional): the reshape dimensions, i32 [rank of r], instead of the attribute.
//   A reshape dimension of -1 (at most one) takes what the others leave; 0 copies dimension i of c while
//   zeroIsPlaceholder, else it is a size of zero.
#pragma once

#include "base/extents.h"
#include "base/tensor.h"
#include "ir/attrs.h"
#include "ir/op_def.h"
#include "ir/permutation.h"

namespace tw::ops::shuffle {

struct Attrs : ir::AttrsOf<Attrs>
{
    std::vector<int64_t> firstTranspose, secondTranspose; // empty: identity
    std::vector<int64_t> reshape;                         // used when hasReshape and input 1 is not given
    bool hasReshape = false;
    bool zeroIsPlaceholder = true;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "first_transpose", firstTranspose);
        v.field(2, "reshape", reshape);
        v.field(3, "has_reshape", hasReshape);
        v.field(4, "second_transpose", secondTranspose);
        v.field(5, "zero_is_placeholder", zeroIsPlaceholder);
    }
};

using ir::isIdentity, ir::permuted, ir::unpermuted;

// Whether elements stay in their order: but for dimensions of 1 nothing is transposed.
bool keepsOrder(ir::Node const& node);
// Whether x and y, each in its format (linear, or channels-last without padding), hold the same elements at the same places: as where
// rows of channels become channels-last pixels.
bool isView(Attrs const& attrs, TensorRef const& x, TensorRef const& y);
// The dimension of y that holds what dimension `axis` of x does, in the same order; -1: there is none, or an input says
// the shape.
int dimensionBehind(ir::Node const& node, int axis);

} // namespace tw::ops::shuffle
