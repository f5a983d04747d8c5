// SPDX-License-Identifier: Apache-2.0
#include "tune/phases.h"

#include <algorithm>
#include <cstdio>

namespace tw::tune {

void Phases::enter(char const* name)
{
    count();
    auto at = std::ranges::find_if(seconds_, [&](auto const& s) { return s.first == name; });
    if (at == seconds_.end())
        at = seconds_.insert(at, {name, 0.0});
    open_.push_back(size_t(at - seconds_.begin()));
}

void Phases::leave()
{
    count();
    open_.pop_back();
}

void Phases::count()
{
    auto const now = Clock::now();
    if (!open_.empty())
        seconds_[open_.back()].second += std::chrono::duration<double>(now - last_).count();
    last_ = now;
}

std::string Phases::str() const
{
    std::string text;
    for (auto const& [name, seconds] : seconds_) {
        char number[40];
        std::snprintf(number, sizeof number, " %.3f s", seconds);
        text += (text.empty() ? "" : ", ") + name + number;
    }
    return text;
}

} // namespace tw::tune
