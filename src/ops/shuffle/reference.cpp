// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include "ops/shuffle/op.h"

namespace tw::ops::shuffle {

namespace {

// Position in a tensor of `dims` of the element that stands at position `i` of the permuted tensor.
int64_t sourceOf(int64_t i, Extents const& dims, std::vector<int64_t> const& permutation)
{
    if (permutation.empty())
        return i;
    Extents const to = permuted(dims, permutation), strides = stridesOf(dims);
    int64_t from = 0;
    for (int axis = to.rank - 1; axis >= 0; --axis) {
        from += i % to[axis] * strides[int(permutation[size_t(axis)])];
        i /= to[axis];
    }
    return from;
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &x = ctx.in(0), &y = ctx.out();
    Extents const reshaped = unpermuted(y.dims, a.secondTranspose);
    for (int64_t i = 0; i < y.count(); ++i) {
        int64_t const from = sourceOf(sourceOf(i, reshaped, a.secondTranspose), x.dims, a.firstTranspose);
        if (isFloating(y.type))
            y.set(i, x.get(from));
        else
            y.setInt(i, x.getInt(from));
    }
    return {};
}

} // namespace tw::ops::shuffle
