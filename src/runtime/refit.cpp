// SPDX-License-Identifier: Apache-2.0
// The next generation of an engine: recipes run again with new weights, then the kernels that read what came of it.
#include "runtime/refit.h"

#include "recipe/evaluate.h"
#include "runtime/constants_of.h"
#include "runtime/engine.h"
#include "runtime/unfold_panels.h"

namespace tw::runtime {

namespace {

// The recipes with new elements of their sources; `changed`: which they are among the values.
std::shared_ptr<ir::Graph const> withSources(ir::Graph const& recipes, NewWeights const& weights,
                                             std::vector<bool>& changed)
{
    std::unique_ptr<ir::Graph> next = recipes.clone();
    std::vector<ir::Value*> const constants = constantsOf(*next);
    std::map<ir::Value const*, bool> isNew;
    for (auto const& [at, data] : weights) {
        setData(*constants.at(at), data);
        isNew[constants.at(at)] = true;
    }
    for (auto const& v : next->values())
        changed.push_back(isNew.contains(v.get()));
    return next;
}

} // namespace

Result<void> Engine::refit(NewWeights const& weights, Workers& workers, Log* log)
{
    std::lock_guard const one(refitting_);
    auto const now = generation();
    if (!contents_.refittable || !contents_.recipes)
        return invalidState("the engine was built without BuilderFlag::kREFIT");
    if (weights.empty())
        return {};
    auto next = std::make_shared<Generation>();
    std::vector<bool> changed;
    next->recipes = withSources(now->recipes ? *now->recipes : *contents_.recipes, weights, changed);
    TW_ASSIGN(next->made, recipe::evaluate(*next->recipes, changed, workers));
    for (size_t i = 0; i < now->made.size(); ++i)
        if (!next->made[i])
            next->made[i] = now->made[i];
    // The constants that follow, in a graph of its own.
    std::shared_ptr<ir::Graph> graph = contents_.graph->clone();
    std::vector<ir::Value*> const from = constantsOf(*contents_.graph), to = constantsOf(*graph);
    for (size_t i = 0; i < from.size(); ++i)
        if (auto const made = contents_.made.find(from[i]); made != contents_.made.end())
            if (BlobPtr const& data = next->made[size_t(made->second)])
                setData(*to[i], data);
    next->graph = graph;
    LoadOptions options = again_;
    options.log = log;
    options.workers = &workers;
    options.like = now->block.get();
    options.keepsGraph = graph;
    TW_ASSIGN(Loaded const kernels, loadGeneration(*next, *graph, options));
    if (log && kernels.refused > 0 && !planned_->steps.empty())
        log->warning(std::to_string(kernels.refused) +
                     " kernels of the plan cannot run with the new weights, and plain ones take their place");
    std::lock_guard const lock(mutex_);
    generation_ = std::move(next);
    return {};
}

void takeWeights(plan::Contents& contents, Generation const& now)
{
    for (auto const& [v, at] : contents.made)
        if (now.made[size_t(at)])
            setData(const_cast<ir::Value&>(*v), now.made[size_t(at)]);
    std::vector<ir::Value*> const from = constantsOf(const_cast<ir::Graph&>(*now.recipes)),
                                  to = constantsOf(*contents.recipes);
    for (size_t i = 0; i < from.size(); ++i)
        setData(*to[i], from[i]->constant->data);
}

} // namespace tw::runtime
