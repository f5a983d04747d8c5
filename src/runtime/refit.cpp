// SPDX-License-Identifier: Apache-2.0
// The next generation of an engine: recipes run again with new weights, then the kernels that read what came of it.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "recipe/recipes.h"
#include "runtime/constants.h"
#include "runtime/engine.h"
#include "runtime/generation.h"

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

// The first element for which `isWrong`, or the first of all, as text.
template <class F>
std::string numberIn(ir::Value const& v, Blob const& data, F const& isWrong)
{
    TensorRef const t{v.type, ir::extentsOf(v.shape), const_cast<void*>(data.data())};
    int64_t at = 0;
    while (at + 1 < t.count() && !isWrong(t.get(at)))
        ++at;
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", t.count() > 0 ? t.get(at) : 0.0);
    return text;
}

// Conditions of the build are outputs of type BOOL: all that their nodes make is true, or the weights are refused.
Result<void> checkConditions(ir::Graph const& recipes, std::vector<BlobPtr> const& made)
{
    for (size_t i = 0; i < recipes.outputs.size(); ++i) {
        ir::Value const& v = *recipes.outputs[i];
        if (v.type != DataType::kBool || !v.producer || !made[i])
            continue;
        auto const* const holds = static_cast<uint8_t const*>(made[i]->data());
        if (std::all_of(holds, holds + made[i]->sizeBytes(), [](uint8_t b) { return b != 0; }))
            continue;
        // What was compared, for the message.
        std::string numbers;
        std::unique_ptr<ir::Graph> const again = recipes.clone();
        ir::Node const* n = again->outputs[i]->producer;
        bool const isRule = !n->inputs.empty() && n->inputs[0]->type == DataType::kBool && n->inputs[0]->producer;
        if (isRule)
            n = n->inputs[0]->producer;
        again->outputs = n->inputs;
        std::erase(again->outputs, nullptr);
        TW_ASSIGN(std::vector<BlobPtr> const compared, recipe::evaluate(*again, {}));
        for (size_t k = 0; k < (isRule ? 1 : compared.size()); ++k)
            numbers += (k > 0 ? " and " : "") + numberIn(*again->outputs[k], *compared[k],
                                                         [](double x) { return !(x > 0 && std::isfinite(x)); });
        return invalidArgument("the new weights are refused, and the engine stays as it is: {}{}{}{}", v.producer->name,
                               isRule ? ", and would be " : "; they would be ", numbers,
                               isRule ? "" : ". Set both to one number, or build the engine anew");
    }
    return {};
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
    TW_TRY(checkConditions(*next->recipes, next->made));
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
    options.keepsGraph = graph;
    TW_ASSIGN(Loaded const kernels, loadGeneration(*next, now.get(), *graph, options));
    if (log && kernels.refused > 0 && !planned_->root.steps.empty())
        log->warning(kernels.inOtherPlaces("with the new weights"));
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
