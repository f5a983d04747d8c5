// SPDX-License-Identifier: Apache-2.0
#include "parsers/uff/node.h"

#include <algorithm>
#include <cmath>

#include "parsers/uff/constants.h"
#include "parsers/uff/model.h"
#include "tw_uff.pb.h"

namespace tw::uff {

std::string shown(std::string const& text)
{
    constexpr size_t kMost = 200;
    std::string const clean = cleanName(text);
    return clean.size() > kMost ? clean.substr(0, kMost) + "..." : clean;
}

UffNode::UffNode(Model& model, tw_uff::Node const& node, std::vector<Tensor> inputs)
    : ImportContext(model, node.id(), node.operation(), 1, {}, {}), model_(model), node_(node), in_(std::move(inputs))
{}

// ---- fields

tw_uff::Data const* UffNode::field(std::string const& name) const
{
    return model_.fieldOf(node_, name);
}

std::optional<Attribute> UffNode::attribute(char const* attr) const
{
    tw_uff::Data const* const d = field(attr);
    if (!d)
        return {};
    switch (d->data_case()) {
    case tw_uff::Data::kS:
        return d->s();
    case tw_uff::Data::kD:
        return float(d->d());
    case tw_uff::Data::kB:
        return int64_t(d->b());
    case tw_uff::Data::kI:
        return d->i();
    case tw_uff::Data::kDtype:
        return int64_t(d->dtype());
    default:
        return listAttribute(*d);
    }
}

std::optional<Attribute> UffNode::listAttribute(tw_uff::Data const& d) const
{
    switch (d.data_case()) {
    case tw_uff::Data::kSList:
        return std::vector<std::string>(d.s_list().val().begin(), d.s_list().val().end());
    case tw_uff::Data::kDList:
        return mapped(d.d_list().val(), [](double v) { return float(v); });
    case tw_uff::Data::kBList:
        return mapped(d.b_list().val(), [](bool v) { return int64_t(v); });
    case tw_uff::Data::kIList:
        return std::vector<int64_t>(d.i_list().val().begin(), d.i_list().val().end());
    case tw_uff::Data::kDtypeList:
        return mapped(d.dtype_list().val(), [](int32_t v) { return int64_t(v); });
    default: // bytes, orders, nothing
        return Attribute();
    }
}

std::vector<int64_t> UffNode::integers(char const* name) const
{
    tw_uff::Data const* const d = field(name);
    return d && d->has_i() ? std::vector<int64_t>{d->i()} : requireInts(name);
}

std::vector<int64_t> UffNode::window(char const* name, size_t count, int64_t absent, int64_t least) const
{
    std::vector<int64_t> const v = hasAttr(name) ? integers(name) : std::vector<int64_t>(count, absent);
    if (v.size() != count)
        invalid(fmt::format("field '{}' has {} entries; {} are needed, one for each spatial dimension", name, v.size(),
                            count));
    for (int64_t e : v)
        if (e < least || e > INT32_MAX)
            invalid(fmt::format("field '{}' holds {} (allowed: {}..{})", name, e, least, INT32_MAX));
    return v;
}

std::string UffNode::requireText(char const* name) const
{
    if (!hasAttr(name))
        invalid(fmt::format("field '{}' is missing", name));
    return shown(attrString(name, ""));
}

// ---- inputs

Tensor const& UffNode::in(int i) const
{
    if (!has(i))
        invalid(fmt::format("input {} is missing: the node has {}", i, count()));
    Tensor const& t = in_[size_t(i)];
    if (t.value.isNull())
        invalid(t.missing);
    return t;
}

bool UffNode::allConstant() const
{
    return std::ranges::all_of(in_, [](Tensor const& t) { return !t.value.isTensor(); });
}

Constant const& UffNode::constantOf(int i, char const* what) const
{
    Value const& v = in(i).value;
    if (!v.isConstant())
        fail(fmt::format("{} (input {}, '{}') must be a Const or computed of some, it is a tensor of shape {}", what, i,
                         shown(node_.inputs(i)), describe(v.dims())));
    return v.constant();
}

std::vector<int64_t> UffNode::integersOf(int i, char const* what) const
{
    Constant const& c = constantOf(i, what);
    constexpr int64_t kMost = 1 << 16; // more than any list of axes or sizes has
    if (isFloating(c.type) || c.count > kMost)
        invalid(
            fmt::format("{} (input {}) must hold integers, it has {} of type {}", what, i, c.count, typeName(c.type)));
    return c.ints();
}

Tensor const& UffNode::held(int i) const
{
    Tensor const& t = in(i);
    if (!t.value.isTensor())
        fail(fmt::format("input {} is a constant of shape {}; {} takes one only where it can be computed at once", i,
                         describe(t.value.dims()), opType()));
    return t;
}

Tensor const& UffNode::tensorOf(int i)
{
    (void)held(i);
    Tensor& t = in_[size_t(i)];
    if (t.layout.units > 0) {
        Dims dims = t.value.dims();
        dims.nbDims -= t.layout.units;
        t.value = Value(reshape(t.value.tensor(), dims));
        t.layout.units = 0;
    }
    return t;
}

ITensor& UffNode::beside(int i, Layout const& layout, DataType type)
{
    int const rank = int(layout.order.size());
    if (in(i).value.isTensor()) {
        Tensor const& t = layout.units > 0 ? in(i) : tensorOf(i);
        if (int(t.layout.order.size()) != rank)
            fail(fmt::format("input {} has {} dimensions behind the batch, another one {}", i, t.layout.order.size(),
                             rank));
        return layout.units > 0 ? t.value.tensor() : inOrder(t, layout.order);
    }
    Constant const& c = in(i).value.constant();
    bool const hasBatch = c.dims.nbDims == rank + 1 && c.dims.d[0] == 1;
    if (c.dims.nbDims > rank && !hasBatch)
        invalid(
            fmt::format("input {} is a constant of shape {}, which does not fit tensors of {} dimensions behind the "
                        "batch",
                        i, describe(c.dims), rank));
    Dims dims{rank, {}};
    int const missing = std::max(rank - c.dims.nbDims, 0);
    std::fill_n(dims.d, missing, 1);
    std::copy(c.dims.d + (hasBatch ? 1 : 0), c.dims.d + c.dims.nbDims, dims.d + missing);
    Constant y = transposed(reshaped(converted(c, type), dims), layout.order);
    for (int k = 0; k < layout.units; ++k)
        y.dims.d[y.dims.nbDims++] = 1;
    return asTensor(y);
}

Layout UffNode::commonLayout()
{
    Layout const* first = nullptr;
    Layout common;
    bool isSame = true, sameUnits = true;
    for (int i = 0; i < count(); ++i) {
        Tensor const& t = in(i);
        if (!t.value.isTensor())
            continue;
        first = first ? first : &t.layout;
        isSame = isSame && t.layout.order == first->order;
        sameUnits = sameUnits && t.layout.units == first->units;
        common.isTransposed = common.isTransposed || t.layout.isTransposed;
        common.isImage = common.isImage || t.layout.isImage;
    }
    common.order = first->order;
    common.units = sameUnits ? first->units : 0;
    if (isSame)
        return common;
    for (Tensor const& t : in_)
        if (t.value.isTensor() && !t.layout.isTransposed && !isInOrder(t.layout.order))
            return {.order = t.layout.order, .isImage = t.layout.isImage};
    return {.order = allAxes(int(first->order.size()))};
}

void UffNode::alongChannels(Layout const& layout, Dims const& image)
{
    constexpr int kChannel = 3; // from the end
    if (!isInOrder(layout.order) || layout.units > 0 || image.nbDims < kChannel)
        return;
    int const channels = image.d[image.nbDims - kChannel];
    bool const couldBeLast = image.d[image.nbDims - 1] == channels;
    for (Tensor& t : in_)
        if (t.value.isConstant() && t.value.rank() == 1 && channels > 1 && t.value.constant().count == channels &&
            (layout.isImage || !couldBeLast))
            t.value = Value(reshaped(t.value.constant(), Dims{kChannel, {channels, 1, 1}}));
}

int64_t UffNode::axisOf(char const* what) const
{
    if (hasAttr("axis"))
        return attrInt("axis", 0);
    if (!has(1))
        invalid("field 'axis' is missing");
    if (in(1).value.isTensor())
        fail(fmt::format("{} Axis node has op {}, expected Const. The axis must be specified as a Const node.",
                         shown(name()), shown(model_.operationOf(node_.inputs(1)))));
    std::vector<int64_t> const v = integersOf(1, what);
    if (v.size() != 1)
        invalid(fmt::format("{} (input 1) has {} elements, it must have one", what, v.size()));
    return v[0];
}

ITensor& UffNode::inOrder(Tensor const& t, std::vector<int> const& order)
{
    return transpose(t.value.tensor(), between(t.layout.order, order));
}

ITensor& UffNode::inGraphOrder(int i)
{
    Tensor const& t = tensorOf(i);
    return inOrder(t, allAxes(t.value.rank()));
}

Tensor UffNode::asItIs(Tensor const& t)
{
    if (!t.layout.isTransposed)
        return t;
    return asInGraph(inOrder(t, allAxes(t.value.rank())));
}

std::vector<int> UffNode::places(int i, int rank) const
{
    tw_uff::Data const* const d = field("inputs_orders");
    if (!d || !d->has_dim_orders_list())
        invalid("field 'inputs_orders' must be a list of orders");
    auto const& list = d->dim_orders_list().val();
    std::vector<int> const places = i < list.size() ? placesOf(list[i], rank) : std::vector<int>();
    if (places.empty())
        invalid(fmt::format("Order size is not matching the number dimensions of TensorRT: input {} has {} dimensions, "
                            "the batch included",
                            i, rank));
    return places;
}

Image UffNode::image(int i)
{
    Tensor const& t = tensorOf(i);
    if (!hasOrders()) {
        Tensor const held = asItIs(t);
        return {held.value.tensor(), held.layout};
    }
    std::vector<int> order = inverse(places(i, t.value.rank() + 1));
    if (order[0] != 0)
        invalid(fmt::format("the orders of input {} put the batch at place {}; it must stay in front", i, order[0]));
    order.erase(order.begin());
    for (int& axis : order)
        --axis;
    ITensor& tensor = inOrder(t, order);
    return {tensor, {.order = std::move(order), .isImage = true}};
}

Constant UffNode::canonical(int i, char const* what, std::vector<int> const& otherwise)
{
    Constant const& c = constantOf(i, what);
    if (c.dims.nbDims != int(otherwise.size()))
        invalid(
            fmt::format("Order size is not matching the number dimensions of TensorRT: {} (input {}) has shape {}, {} "
                        "dimensions are needed; registered dimensions are without the batch",
                        what, i, describe(c.dims), otherwise.size()));
    return transposed(c, inverse(hasOrders() ? places(i, c.dims.nbDims) : otherwise));
}

int UffNode::heldAxis(Tensor const& t, int64_t graphAxis, char const* what) const
{
    int const a = axis(graphAxis, int(t.layout.order.size()) + 1, what);
    if (a == 0)
        fail(fmt::format("{} {} is the batch, which a network with an implicit batch cannot change", what, graphAxis));
    return int(std::ranges::find(t.layout.order, a - 1) - t.layout.order.begin());
}

// ---- weights

Constant UffNode::weights(Constant const& c) const
{
    DataType const wanted = model_.weightsType();
    if (wanted == DataType::kHALF && c.type != DataType::kHALF) {
        constexpr double kMost = 65504;
        for (int64_t i = 0; i < c.count; ++i)
            if (double const v = c.floatAt(i); std::isfinite(v) && std::fabs(v) > kMost)
                fail(fmt::format("weight {} of shape {} is {}, outside of FP16's [-65504, 65504]; parse with "
                                 "DataType::kFLOAT",
                                 i, describe(c.dims), v));
    }
    return converted(c, wanted);
}

Constant UffNode::transposed(Constant const& c, std::vector<int> const& order) const
{
    if (isInOrder(order))
        return c;
    Dims dims{c.dims.nbDims, {}};
    std::vector<int64_t> steps;
    std::vector<int64_t> const own = stepsOf(c.dims);
    for (size_t i = 0; i < order.size(); ++i) {
        dims.d[i] = c.dims.d[order[i]];
        steps.push_back(own[size_t(order[i])]);
    }
    return picked(*this, c, dims, steps, 0);
}

} // namespace tw::uff
