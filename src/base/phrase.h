// SPDX-License-Identifier: Apache-2.0
// What people read: words and numbers, one behind the other.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

namespace tw {

template <class T>
concept Word = std::is_arithmetic_v<T> || std::is_convertible_v<T const&, std::string_view>;

std::string phrase(Word auto const&... parts)
{
    std::string all;
    auto const add = [&]<class Part>(Part const& part) {
        if constexpr (std::is_arithmetic_v<Part> && !std::is_same_v<Part, char>)
            all += std::to_string(part);
        else
            all += part;
    };
    (add(parts), ...);
    return all;
}

} // namespace tw
