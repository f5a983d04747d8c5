// SPDX-License-Identifier: Apache-2.0
#include "runtime/retarget.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace tw::runtime {

namespace {

constexpr std::string_view kIsas[] = {"", "avx2", "avx512"}; // narrow ones first

// The place of a tactic's instruction set in kIsas.
ptrdiff_t width(ops::Tactic const& t)
{
    return std::find(std::begin(kIsas), std::end(kIsas), t.traits().isa) - std::begin(kIsas);
}

// The name without the instruction set: what tactics for several of them have in common.
std::string_view algorithmOf(ops::Tactic const& t)
{
    std::string_view const name = t.name(), isa = t.traits().isa;
    return isa.empty() || !name.ends_with(isa) ? name : name.substr(0, name.size() - isa.size());
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
    auto const known =
        std::find_if(fast.begin(), fast.end(), [&](ops::Tactic const* t) { return t->name() == planned; });
    ops::Tactic const* same = nullptr;
    for (ops::Tactic const* t : known == fast.end() ? fast.first(0) : fast)
        if (algorithmOf(*t) == algorithmOf(**known) && (!same || width(*t) > width(*same)) &&
            ops::supportsFormats(*t, problem).ok)
            same = t;
    if (same && same->name() == planned)
        return Retargeted{same, config, true};
    if (same)
        if (auto expected = fastest(*same, problem))
            return Retargeted{same, std::move(expected->config), true};
    return bestByEstimate(own, problem);
}

std::optional<Retargeted> bestByEstimate(std::span<ops::Tactic const* const> own, ops::Problem const& problem)
{
    std::optional<Retargeted> best;
    double bestUs = 0;
    for (ops::Tactic const* t : own.first(own.empty() ? 0 : own.size() - 1)) {
        // Nothing that rounds in another way than the plan's choice, whatever that was.
        if (t->traits().rounding != ops::Rounding::kPlain || !ops::supportsFormats(*t, problem).ok)
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
