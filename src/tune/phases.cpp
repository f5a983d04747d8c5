// SPDX-License-Identifier: Apache-2.0
#include "tune/phases.h"

#include <algorithm>
#include <functional>

#include <fmt/core.h>

#include "base/lists.h"

namespace tw::tune {

namespace {

constexpr double kWorthALine = 0.0005; // seconds, which are printed to three digits

} // namespace

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

std::vector<std::string> Phases::table(double seconds) const
{
    auto rows = seconds_;
    for (auto const& [name, part] : seconds_)
        seconds -= part;
    rows.emplace_back("the rest", std::max(seconds, 0.0));
    double sum = 0;
    for (auto const& [name, part] : rows)
        sum += part;
    std::ranges::stable_sort(rows.begin(), rows.end() - 1, std::greater(), &std::pair<std::string, double>::second);
    std::erase_if(rows, [](auto const& row) { return row.second < kWorthALine; });
    rows.emplace_back("all", sum);
    auto const lines = mapped<std::string>(rows, [&](auto const& row) {
        return fmt::format("  {:<22}{:>9.3f} s {:>6.1f} %", row.first, row.second,
                           sum > 0 ? 100 * row.second / sum : 0.0);
    });
    return lines;
}

} // namespace tw::tune
