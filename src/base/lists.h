// SPDX-License-Identifier: Apache-2.0
// Questions about lists that standard algorithms answer in more words.
#pragma once

#include <algorithm>
#include <functional>
#include <type_traits>
#include <vector>

namespace tw {

bool contains(auto const& list, auto const& wanted)
{
    return std::ranges::find(list, wanted) != std::ranges::end(list);
}

// What `of` makes of each element, as a T; void: as it is.
template <class T = void, class List, class Of>
auto mapped(List&& list, Of const& of)
{
    using Made = std::remove_cvref_t<std::invoke_result_t<Of const&, decltype(*std::ranges::begin(list))>>;
    std::vector<std::conditional_t<std::is_void_v<T>, Made, T>> made;
    for (auto&& element : list)
        made.emplace_back(std::invoke(of, element));
    return made;
}

} // namespace tw
