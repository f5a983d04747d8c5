// SPDX-License-Identifier: Apache-2.0
#include "tactic/expected_time.h"

#include <algorithm>
#include <string_view>

namespace tw::ops {

namespace {

struct Measured
{
    std::string_view tactic;
    double begin, factor;
};
constexpr Measured kMeasured[] = {
#define TW_ESTIMATE(tactic, begin, factor) {#tactic, begin, factor},
#include "tactic/estimates.def"
#undef TW_ESTIMATE
};
static_assert(std::ranges::is_sorted(kMeasured, {}, &Measured::tactic));

// The least share of factor * estimate that is expected: a line through large kernels may begin below 0. Also in
// bench/estimates.py.
constexpr double kFloor = 0.5;

} // namespace

double expectedTime(Tactic const& tactic, Problem const& problem, Config const& config)
{
    double const estimate = tactic.estimate(problem, config);
    auto const m = std::ranges::lower_bound(kMeasured, std::string_view(tactic.name()), {}, &Measured::tactic);
    if (estimate <= 0 || m == std::end(kMeasured) || m->tactic != tactic.name())
        return estimate;
    return std::max(m->begin + m->factor * estimate, kFloor * m->factor * estimate);
}

} // namespace tw::ops
