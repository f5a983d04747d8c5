// SPDX-License-Identifier: Apache-2.0
// Of a pass over a refittable graph: other weights, brought in by the recipes, give what the pass would have made of them.
#pragma once

#include <map>

#include "passes/list.h"
#include "recipe/recipes.h"
#include "support/graph_maker.h"

namespace tw::test {

class RefitCheck
{
public:
    // `g`: before the pass.
    explicit RefitCheck(ir::Graph const& g) : before_(g.clone())
    {
        auto const added = recipes.addSources(g);
        EXPECT_TRUE(added.ok()) << added.error().message;
    }
    recipe::Recipes recipes; // for the pass

    // `after` is as it was when this returns.
    void check(ir::Graph& after, ir::Bindings const& sizes, double tolerance)
    {
        auto finished = recipes.finish(after);
        EXPECT_TRUE(finished.ok()) << finished.error().message;
        if (!finished.ok())
            return;
        ir::Graph& made = *finished->recipes;
        joinEqual(made);
        for (auto const& v : made.values())
            if (v->isConstant() && !v->constant->layer.empty() && v->constant->role != ir::WeightsRole::kAny) {
                change(*v, hashText(leaderOf(v->constant->layer)));
                for (auto const& w : before_->values())
                    if (w->isConstant() && w->constant->layer == v->constant->layer &&
                        w->constant->role == v->constant->role)
                        w->constant = withData(*w->constant, v->constant->data);
            }
        auto outputs = recipe::evaluate(made, {});
        EXPECT_TRUE(outputs.ok()) << outputs.error().message;
        if (!outputs.ok())
            return;
        for (size_t i = 0; i < made.outputs.size(); ++i)
            if (made.outputs[i]->type == DataType::kBool) {
                EXPECT_NE(*static_cast<uint8_t const*>((*outputs)[i]->data()), 0) << made.outputs[i]->producer->name;
            }
        std::vector<std::pair<ir::Value*, std::shared_ptr<ir::Constant const>>> old;
        for (auto const& [v, at] : finished->made) {
            old.emplace_back(const_cast<ir::Value*>(v), v->constant);
            old.back().first->constant = withData(*v->constant, (*outputs)[size_t(at)]);
        }
        auto const inputs = randomInputs(*before_, sizes);
        uint64_t state = 1;
        interp::Options options;
        options.randomState = &state;
        auto const want = interp::run(*before_, refsOf(inputs), options);
        state = 1;
        auto const got = interp::run(after, refsOf(inputs), options);
        EXPECT_TRUE(want.ok() && got.ok());
        if (want.ok() && got.ok())
            expectSame(refsOf(*got), *want, tolerance);
        for (auto const& [v, constant] : old)
            v->constant = constant;
    }

private:
    static std::shared_ptr<ir::Constant const> withData(ir::Constant const& c, BlobPtr const& data)
    {
        auto copy = std::make_shared<ir::Constant>(c);
        copy->data = data;
        return copy;
    }
    static void collectSources(ir::Value const& v, std::vector<std::string>& layers)
    {
        if (v.isConstant() && !v.constant->layer.empty())
            layers.push_back(v.constant->layer);
        if (v.producer)
            for (ir::Value const* in : v.producer->inputs)
                collectSources(*in, layers);
    }
    // Scales that the pass relies on being equal change alike: the first of them leads.
    void joinEqual(ir::Graph const& made)
    {
        for (ir::Value const* v : made.outputs)
            if (v->type == DataType::kBool) {
                std::vector<std::string> layers;
                collectSources(*v, layers);
                for (std::string const& layer : layers)
                    if (leaderOf(layer) != leaderOf(layers[0]))
                        leader_[leaderOf(layer)] = leaderOf(layers[0]);
            }
    }
    std::string leaderOf(std::string const& layer) const
    {
        auto const it = leader_.find(layer);
        return it == leader_.end() ? layer : leaderOf(it->second);
    }
    // Each element becomes between a half and one and a half of it: roots and logarithms go on to exist.
    static void change(ir::Value& v, uint64_t seed)
    {
        Tensor t(v.type, ir::extentsOf(v.shape)), factors(DataType::kFloat, ir::extentsOf(v.shape));
        fillRandom(factors.ref(), ops::Domain{0.5, 1.5}, seed);
        TensorRef const old{v.type, t.dims(), const_cast<void*>(v.constant->data->data())};
        for (int64_t i = 0; i < t.count(); ++i)
            t.ref().set(i, old.get(i) * factors.ref().get(i));
        v.constant = withData(*v.constant, Blob::copy(t.data(), size_t(t.ref().sizeBytes())));
    }
    std::unique_ptr<ir::Graph> before_;
    std::map<std::string, std::string> leader_; // of layers
};

} // namespace tw::test
