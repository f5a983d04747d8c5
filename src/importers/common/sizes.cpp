// SPDX-License-Identifier: Apache-2.0
// ImportContext: arithmetic on the numbers of shapes, folded where both sides are known.
#include <algorithm>

#include "importers/common/node.h"

namespace tw::importers {

using nvinfer1::ElementWiseOperation;

bool ImportContext::allKnown(Sizes const& sizes)
{
    return std::ranges::all_of(sizes, [](Size const& s) { return s.known(); });
}

Sizes ImportContext::sizesOf(ITensor& x)
{
    Dims const d = x.getDimensions();
    Sizes sizes;
    for (int i = 0; i < d.nbDims; ++i) {
        if (d.d[i] >= 0) {
            sizes.emplace_back(d.d[i]);
            continue;
        }
        ITensor*& shape = shapes_[&x];
        if (!shape)
            shape = &out(added(network().addShape(x)));
        sizes.emplace_back(out(added(network().addSlice(*shape, Dims{1, {i}}, Dims{1, {1}}, Dims{1, {1}}))));
    }
    return sizes;
}

Sizes ImportContext::sizesFrom(Value const& v, Where where)
{
    Sizes sizes;
    if (v.isConstant()) {
        for (int64_t e : v.constant().ints())
            sizes.emplace_back(e);
        return sizes;
    }
    check(v.isTensor(), "a shape is missing", where);
    Dims const d = v.dims();
    if (d.nbDims > 1 || !isStatic(d))
        fail("a tensor of shape " + describe(d) + " cannot be used as a shape: it must be 1-D with a fixed length",
             where);
    check(v.type() == DataType::kINT32, "a shape must be an integer tensor", where);
    ITensor& t = d.nbDims == 0 ? reshape(v.tensor(), Dims{1, {1}}) : v.tensor();
    int const n = d.nbDims == 0 ? 1 : d.d[0];
    constexpr int kMaxShapeElements = 64; // the API's limit for shape tensors
    check(n <= kMaxShapeElements, fmt::format("a shape of {} elements is above the API's limit, 64", n), where);
    if (n == 1)
        return {Size(t)};
    for (int i = 0; i < n; ++i)
        sizes.emplace_back(out(added(network().addSlice(t, Dims{1, {i}}, Dims{1, {1}}, Dims{1, {1}}))));
    return sizes;
}

ITensor& ImportContext::asTensor(Sizes const& sizes)
{
    std::vector<ITensor*> parts;
    std::vector<int64_t> known;
    auto flush = [&] {
        if (!known.empty())
            parts.push_back(&asTensor(Value(intConstant(known))));
        known.clear();
    };
    for (Size const& s : sizes) {
        if (s.known()) {
            known.push_back(s.value);
            continue;
        }
        flush();
        parts.push_back(s.tensor);
    }
    flush();
    if (parts.empty())
        return asTensor(Value(intConstant({})));
    return concat(parts, 0);
}

ITensor& ImportContext::asScalar(Size const& size)
{
    if (size.known())
        return asTensor(Value(intScalar(size.value)));
    return reshape(*size.tensor, Dims{0, {}});
}

Size ImportContext::arithmetic(Size const& a, Size const& b, ElementWiseOperation op)
{
    return Size(elementwise(asTensor(a), asTensor(b), op));
}

namespace {

int64_t saturate(__int128 v)
{
    return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : int64_t(v);
}

} // namespace

Size ImportContext::add(Size const& a, Size const& b)
{
    if (a.known() && b.known())
        return saturate(__int128(a.value) + b.value);
    if (a.known() && a.value == 0)
        return b;
    if (b.known() && b.value == 0)
        return a;
    return arithmetic(a, b, ElementWiseOperation::kSUM);
}

Size ImportContext::sub(Size const& a, Size const& b)
{
    if (a.known() && b.known())
        return saturate(__int128(a.value) - b.value);
    if (b.known() && b.value == 0)
        return a;
    return arithmetic(a, b, ElementWiseOperation::kSUB);
}

Size ImportContext::mul(Size const& a, Size const& b)
{
    if (a.known() && b.known())
        return saturate(__int128(a.value) * b.value);
    if (a.known() && a.value == 1)
        return b;
    if (b.known() && b.value == 1)
        return a;
    return arithmetic(a, b, ElementWiseOperation::kPROD);
}

Size ImportContext::floorDiv(Size const& a, Size const& b)
{
    if (b.known() && b.value == 0)
        invalid("a size is divided by zero");
    if (b.known() && b.value == 1)
        return a;
    if (a.known() && b.known()) {
        __int128 const q = __int128(a.value) / b.value;
        return saturate(q - (a.value != q * b.value && (a.value < 0) != (b.value < 0)));
    }
    return arithmetic(a, b, ElementWiseOperation::kFLOOR_DIV);
}

Size ImportContext::min(Size const& a, Size const& b)
{
    if (a.known() && b.known())
        return std::min(a.value, b.value);
    return arithmetic(a, b, ElementWiseOperation::kMIN);
}

Size ImportContext::max(Size const& a, Size const& b)
{
    if (a.known() && b.known())
        return std::max(a.value, b.value);
    return arithmetic(a, b, ElementWiseOperation::kMAX);
}

Size ImportContext::product(Sizes const& sizes)
{
    Size p(1);
    for (Size const& s : sizes)
        p = mul(p, s);
    return p;
}

} // namespace tw::importers
