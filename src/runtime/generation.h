// SPDX-License-Identifier: Apache-2.0
// What an engine runs with one state of its weights: graph, kernels, and constants in memory. Immutable; a refit makes
// the next one, which shares the kernels that read nothing new. Runs keep the one that they have begun with.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/blob.h"
#include "plan/plan.h"
#include "runtime/block.h"

namespace tw::runtime {

struct Generation
{
    std::shared_ptr<ir::Graph const> graph; // null: that of the engine's contents
    // With the kernels of each optimization profile, which share what they have in common; one: for all profiles.
    std::vector<std::unique_ptr<LoadedBlock>> blocks;
    std::unique_ptr<Instance const> example; // with the shapes of static inputs, placed; null when there are others
    // By profile, placed, where shapes are dynamic: the largest that are known to run, without what kernels prepare.
    std::vector<std::unique_ptr<Instance const>> largest;
    int64_t arenaBytes = 0; // of a context's arena, for every shape of every profile
    bool usesPanels = false;
    // Of a refittable engine: recipes with the weights of now, and what they give; null: as in the plan.
    std::shared_ptr<ir::Graph const> recipes;
    std::vector<BlobPtr> made;

    // -1: no profile is chosen yet.
    LoadedBlock& block(int profile = 0) const
    {
        return *blocks[profile > 0 && profile < int(blocks.size()) ? size_t(profile) : 0];
    }
};

// New elements of sources, by position among the constants of the recipes (constants.h).
using NewWeights = std::map<size_t, BlobPtr>;

// Gives the contents of the plan that an engine was loaded from the weights that it has now.
void takeWeights(plan::Contents& contents, Generation const& now);

} // namespace tw::runtime
