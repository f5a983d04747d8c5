// SPDX-License-Identifier: Apache-2.0
#include "parsers/uff/layout.h"

#include <algorithm>
#include <cstdint>

#include "tw_uff.pb.h"

namespace tw::uff {

Tensor asInGraph(Value const& value)
{
    return {value, {.order = allAxes(value.rank())}, ""};
}

bool isInOrder(std::vector<int> const& order)
{
    return order == allAxes(int(order.size()));
}

std::vector<int> inverse(std::vector<int> const& permutation)
{
    std::vector<int> result(permutation.size());
    for (size_t i = 0; i < permutation.size(); ++i)
        result[size_t(permutation[i])] = int(i);
    return result;
}

std::vector<int> between(std::vector<int> const& from, std::vector<int> const& to)
{
    std::vector<int> const at = inverse(from);
    return mapped(to, [&](int axis) { return at[size_t(axis)]; });
}

Layout without(Layout const& layout, std::vector<int> const& axes)
{
    Layout left{{}, layout.isTransposed, layout.units, false};
    for (int i = 0; i < int(layout.order.size()); ++i) {
        int axis = layout.order[size_t(i)];
        for (int gone : axes)
            axis -= layout.order[size_t(gone)] < layout.order[size_t(i)];
        if (!contains(axes, i))
            left.order.push_back(axis);
    }
    return left;
}

std::vector<int> placesOf(tw_uff::DimensionOrders const& orders, int rank)
{
    tw_uff::ListInt64 const* marks = nullptr;
    for (auto const& entry : orders.orders())
        if (entry.key() == rank || (entry.key() == -1 && !marks))
            marks = &entry.value();
    if (!marks || rank > Dims::MAX_DIMS)
        return {};
    // A mark says that the axes from the one in front of it on count up or down; there may be no such axis at all.
    std::vector<int64_t> places;
    for (int i = 0; i < marks->val_size() && i <= rank + 1; ++i) {
        int64_t const mark = marks->val(i);
        if (mark != INT32_MAX && mark != INT32_MIN) {
            places.push_back(mark);
            continue;
        }
        int const count = rank - (marks->val_size() - 2); // together with the one in front
        if (places.empty() || count < 0)
            return {};
        int64_t const first = places.back();
        places.pop_back();
        for (int k = 0; k < count; ++k)
            places.push_back(first + (mark > 0 ? k : -k));
    }
    if (int(places.size()) != rank)
        return {};
    std::vector<int64_t> sorted = places;
    std::ranges::sort(sorted);
    for (int i = 0; i < rank; ++i)
        if (sorted[size_t(i)] != i)
            return {};
    return {places.begin(), places.end()};
}

} // namespace tw::uff
