// SPDX-License-Identifier: Apache-2.0
#include "calibrate/sharing.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "ir/op_def.h"
#include "ops/concatenation/op.h"
#include "ops/pooling/op.h"
#include "tactic/registry.h"

namespace tw::calibrate {

namespace {

// Sets of tensors that become larger.
class Groups
{
public:
    explicit Groups(size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), size_t(0)); }
    size_t of(size_t i)
    {
        while (parent_[i] != i)
            i = parent_[i] = parent_[parent_[i]];
        return i;
    }
    void join(size_t a, size_t b) { parent_[of(a)] = of(b); }

private:
    std::vector<size_t> parent_;
};

} // namespace

void shareThresholds(ir::Graph const& g, std::map<std::string, double>& thresholds)
{
    std::map<std::string, size_t> places;
    for (auto const& [name, threshold] : thresholds)
        places.emplace(name, places.size());
    Groups groups(places.size());
    std::vector<bool> follows(places.size(), false);
    auto link = [&](ir::Value const* follower, ir::Value const* leader) {
        auto const f = places.find(follower->name), l = places.find(leader->name);
        if (f == places.end() || l == places.end() || follower->isConstant() || leader->isConstant())
            return;
        groups.join(f->second, l->second);
        follows[f->second] = true;
    };
    for (auto const& n : g.nodes) {
        if (n->op == &ops::concatenation::def())
            for (ir::Value const* in : n->inputs)
                link(in, n->outputs[0]);
        if (n->op == &ops::pooling::def())
            link(n->outputs[0], n->inputs[0]);
    }
    std::vector<double> largest(places.size(), 0);
    for (auto const& [name, i] : places)
        if (!follows[i])
            largest[groups.of(i)] = std::max(largest[groups.of(i)], thresholds[name]);
    for (auto const& [name, i] : places)
        if (largest[groups.of(i)] > 0)
            thresholds[name] = largest[groups.of(i)];
}

} // namespace tw::calibrate
