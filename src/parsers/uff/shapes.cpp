// SPDX-License-Identifier: Apache-2.0
// What gives the same elements in another shape: Identity, Reshape, Flatten, Transpose, Squeeze, ExpandDims; and Shape.
#include <algorithm>

#include "parsers/uff/constants.h"
#include "parsers/uff/node.h"
#include "parsers/uff/operations.h"

namespace tw::uff {

void importIdentity(UffNode& n)
{
    (void)n.in(0);
    for (int i = 0; i < n.count(); ++i) // all outputs of a plugin in front of a MarkOutput
        n.give(n.in(i));
}

namespace {

// `shape` with its -1 put in; `count`: of the elements that it is to hold.
Dims inferred(UffNode const& n, std::vector<int64_t> shape, int64_t count)
{
    if (shape.size() > size_t(Dims::MAX_DIMS))
        n.fail(fmt::format("the shape has {} dimensions, above the highest rank of the API, 8", shape.size()));
    int64_t known = 1;
    for (int64_t d : shape) {
        if (d < -1 || d > INT32_MAX)
            n.invalid(fmt::format("the shape holds {}", d));
        if (d != -1 && __builtin_mul_overflow(known, d, &known))
            n.invalid("the shape has more elements than any tensor");
    }
    for (int64_t& d : shape)
        if (d == -1)
            d = known > 0 && count % known == 0 && count / known <= INT32_MAX ? count / known : 0;
    Dims const dims = makeDims(shape);
    if (volume(dims) != count)
        n.invalid(
            fmt::format("shape {} does not hold {} elements, as many as the input has; the batch cannot be joined "
                        "with other dimensions",
                        describe(dims), count));
    return dims;
}

} // namespace

void importReshape(UffNode& n)
{
    std::vector<int64_t> shape = n.integersOf(1, "the shape");
    if (std::ranges::count(shape, -1) > 1)
        n.invalid("Reshape: -1 dimension specified more than 1 time");
    Value const& x = n.in(0).value;
    if (x.isConstant())
        return n.give(Value(n.reshaped(x.constant(), inferred(n, shape, x.constant().count))));
    if (shape.empty() || (shape[0] < 1 && shape[0] != -1))
        n.invalid("the shape must begin with the batch: -1 or a positive number");
    shape.erase(shape.begin());
    ITensor& t = n.inGraphOrder(0);
    n.give(n.reshape(t, inferred(n, shape, volume(t.getDimensions()))));
}

void importFlatten(UffNode& n)
{
    (void)n.tensorOf(0);
    ITensor& t = n.inGraphOrder(0);
    int64_t const count = volume(t.getDimensions());
    n.check(count <= INT32_MAX, "the input has more than 2^31 - 1 elements");
    n.give(n.reshape(t, Dims{1, {int32_t(count)}}));
}

// Of a tensor it is only written down.
void importTranspose(UffNode& n)
{
    std::vector<int64_t> const permutation =
        n.hasAttr("permutation") || !n.has(1) ? n.integers("permutation") : n.integersOf(1, "the permutation");
    bool const isConstant = n.in(0).value.isConstant();
    Tensor x = isConstant ? n.in(0) : n.tensorOf(0);
    int const rank = x.value.rank() + (isConstant ? 0 : 1);
    if (int(permutation.size()) != rank)
        n.invalid(fmt::format("the permutation has {} entries; the input has {} dimensions{}", permutation.size(), rank,
                              isConstant ? "" : ", the batch included"));
    std::vector<int> const axes = n.axes(permutation, rank, "the permutation");
    if (isConstant)
        return n.give(Value(n.transposed(x.value.constant(), axes)));
    if (axes[0] != 0)
        n.fail(fmt::format("the permutation puts axis {} in front, where the batch must stay", axes[0]));
    std::vector<int> const to = inverse(axes);
    for (int& axis : x.layout.order)
        axis = to[size_t(axis) + 1] - 1;
    x.layout.isTransposed = true;
    n.give(x);
}

void importSqueeze(UffNode& n)
{
    std::vector<int64_t> const asked = n.hasAttr("axes") ? n.integers("axes") : std::vector<int64_t>();
    Tensor const& x = n.in(0).value.isConstant() ? n.in(0) : n.tensorOf(0);
    Dims const dims = x.value.dims();
    std::vector<int> axes;
    if (!asked.empty() && x.value.isConstant()) {
        axes = n.axes(asked, dims.nbDims);
    } else if (!asked.empty()) {
        for (int const a : n.axes(asked, dims.nbDims + 1))
            axes.push_back(n.heldAxis(x, a, "axis"));
    } else {
        for (int i = 0; i < dims.nbDims; ++i)
            if (dims.d[i] == 1)
                axes.push_back(i);
    }
    for (int const a : axes)
        if (dims.d[a] != 1)
            n.invalid(fmt::format("a dimension of {} cannot be taken away; it must be 1", dims.d[a]));
    if (!x.value.isConstant())
        return n.give(n.squeeze(x.value.tensor(), axes), without(x.layout, axes));
    Dims left{0, {}};
    for (int i = 0; i < dims.nbDims; ++i)
        if (!contains(axes, i))
            left.d[left.nbDims++] = dims.d[i];
    n.give(Value(n.reshaped(x.value.constant(), left)));
}

void importExpandDims(UffNode& n)
{
    Tensor const& x = n.in(0).value.isConstant() ? n.in(0) : n.tensorOf(0);
    Dims const dims = x.value.dims();
    int64_t const asked = n.axisOf("the axis");
    if (x.value.isConstant()) {
        if (dims.nbDims == Dims::MAX_DIMS)
            n.fail("the result has 9 dimensions, above the highest rank of the API, 8");
        int const axis = n.axis(asked, dims.nbDims + 1);
        Dims y{dims.nbDims + 1, {}};
        std::copy(dims.d, dims.d + axis, y.d);
        y.d[axis] = 1;
        std::copy(dims.d + axis, dims.d + dims.nbDims, y.d + axis + 1);
        return n.give(Value(n.reshaped(x.value.constant(), y)));
    }
    int const axis = n.axis(asked, dims.nbDims + 2) - 1;
    if (axis < 0)
        n.fail("axis 0 would stand before the batch");
    // In front of the axis that it is in front of in the graph.
    Layout layout = x.layout;
    auto const at = std::ranges::find(layout.order, axis) - layout.order.begin();
    for (int& a : layout.order)
        a += a >= axis;
    layout.order.insert(layout.order.begin() + at, axis);
    n.give(n.unsqueeze(x.value.tensor(), {int(at)}), layout);
}

// Known but for the batch, which stays -1: a Reshape takes it.
void importShape(UffNode& n)
{
    Tensor const& x = n.in(0).value.isConstant() ? n.in(0) : n.tensorOf(0);
    Dims const dims = x.value.dims();
    std::vector<int64_t> shape(size_t(dims.nbDims));
    for (int i = 0; i < dims.nbDims; ++i)
        shape[size_t(x.layout.order[size_t(i)])] = dims.d[i];
    if (x.value.isTensor())
        shape.insert(shape.begin(), -1);
    n.give(Value(n.intConstant(shape)));
}

} // namespace tw::uff
