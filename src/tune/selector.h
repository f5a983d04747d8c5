// SPDX-License-Identifier: Apache-2.0
// Lets a client choose among the tactics that a layer could have.
#pragma once

#include <vector>

#include "base/result.h"
#include "plan/plan.h"
#include "tactic/tactic.h"

namespace tw::tune {

// A layer and the smallest shapes of its inputs and outputs, in their order; the problem has the others.
struct SelectorLayer
{
    ops::Problem problem; // its formats count for report() only
    std::vector<Extents> minDims;
};

// A tactic that was checked and timed.
struct Offer
{
    ops::Formats formats;
    uint64_t tactic = 0;
    ops::Config config;
    double microseconds = 0; // 0: the layer is no work, or was not timed
    int64_t workspaceBytes = 0;
};

class Selector
{
public:
    virtual ~Selector() = default;
    // Which of the offers may be used: the builder takes the best of them. Empty: any.
    virtual Result<std::vector<int>> select(SelectorLayer const& layer, std::vector<Offer> const& offers) = 0;
    // Every layer with what was chosen, in execution order; without times and workspaces.
    virtual void report(std::vector<SelectorLayer> const& layers, std::vector<Offer> const& chosen) = 0;
};

} // namespace tw::tune
