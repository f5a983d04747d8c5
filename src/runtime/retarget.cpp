// SPDX-License-Identifier: Apache-2.0
#include "runtime/retarget.h"

#include <iterator>
#include <limits>

namespace tw::runtime {

namespace {

// A tactic's name ends with the instruction set that it is written for: narrow ones first.
constexpr std::string_view kIsas[] = {"_avx2", "_avx512"};

int isaOf(std::string_view name)
{
    for (int i = int(std::size(kIsas)); i-- > 0;)
        if (name.ends_with(kIsas[i]))
            return i;
    return -1;
}

std::string_view algorithmOf(std::string_view name)
{
    int const isa = isaOf(name);
    return isa < 0 ? name : name.substr(0, name.size() - kIsas[isa].size());
}

struct Expected
{
    ops::Config config;
    double us = std::numeric_limits<double>::infinity(); // unknown: infinite
};

// The config with the lowest estimate; the first where there are none, since the best come first.
std::optional<Expected> fastest(ops::Tactic const& tactic, ops::Problem const& problem)
{
    std::optional<Expected> best;
    for (ops::Config const& config : tactic.configs(problem)) {
        double const us = tactic.estimate(problem, config);
        if (!best || (us > 0 && us < best->us))
            best = Expected{config, us > 0 ? us : Expected().us};
    }
    return best;
}

} // namespace

std::optional<Retargeted> retarget(std::span<ops::Tactic const* const> own, ops::Problem const& problem,
                                   std::string_view planned, ops::Config const& config)
{
    // The last tactic of a list is the plain one: no algorithm that one would want here, too.
    auto const fast = own.first(own.empty() ? 0 : own.size() - 1);
    ops::Tactic const* same = nullptr;
    for (ops::Tactic const* t : fast)
        if (algorithmOf(t->name()) == algorithmOf(planned) && (!same || isaOf(t->name()) > isaOf(same->name())) &&
            ops::supportsFormats(*t, problem).ok)
            same = t;
    if (same && same->name() == planned)
        return Retargeted{same, config, true};
    if (same)
        if (auto expected = fastest(*same, problem))
            return Retargeted{same, std::move(expected->config), true};
    std::optional<Retargeted> best;
    double bestUs = 0;
    for (ops::Tactic const* t : fast) {
        // Nothing that rounds in another way than the plan's choice, whatever that was.
        if (t->rounding() != ops::Rounding::kPlain || !ops::supportsFormats(*t, problem).ok)
            continue;
        auto expected = fastest(*t, problem);
        if (!expected || (best && expected->us >= bestUs))
            continue;
        bestUs = expected->us;
        best = Retargeted{t, std::move(expected->config), false};
    }
    return best;
}

} // namespace tw::runtime
