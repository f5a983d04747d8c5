// SPDX-License-Identifier: Apache-2.0
// Control flow whose way is known when the network is built is replaced by what it runs.
//   before: conditional(true, x) { then: relu(x) } { else: ... }        after: relu(x)
//   before: loop(x, count = 1) { body: relu(x) }                        after: relu(x)
// A loop of no trips is replaced by its initial values. Any form; expects inferred shapes. Stands beside fold_constants,
// which finds the constants. Loops that iterate over tensors or stack stay. Results that are outputs of the graph keep
// their names; where a result cannot take a name over (an input, a constant), the node stays.
#include <algorithm>
#include <map>

#include "ir/op_def.h"
#include "ops/loop/op.h"
#include "passes/list.h"
#include "passes/rewrite.h"

namespace tw::passes {

namespace {

// What is run instead: a region on inputs of the node, or nothing, for the inputs themselves.
struct Way
{
    ir::Graph const* region = nullptr;
    std::vector<ir::Value*> inputs;
};

std::optional<int64_t> integerOf(ir::Value const* v)
{
    TensorRef const t = v ? constantOf(v) : TensorRef{};
    return t.data && t.count() == 1 ? std::optional(t.getInt(0)) : std::nullopt;
}

std::optional<Way> wayOf(ir::Node const& n)
{
    if (n.op->regions == ir::RegionKind::kBranch) {
        auto const condition = integerOf(n.inputs[0]);
        if (!condition)
            return std::nullopt;
        return Way{n.regions[*condition != 0 ? 0 : 1].get(), {n.inputs.begin() + 1, n.inputs.end()}};
    }
    auto const& attrs = n.attrsAs<ops::loop::Attrs>();
    ops::loop::Layout const at(attrs);
    auto const count = at.count() < n.inputs.size() ? integerOf(n.inputs[at.count()]) : std::nullopt;
    if (!count || *count > 1 || at.iterated + at.stacked > 0 || !ops::loop::isAlwaysTrue(*n.regions[0]))
        return std::nullopt;
    Way way{*count == 1 ? n.regions[1].get() : nullptr, n.inputs};
    way.inputs.erase(way.inputs.begin() + int64_t(at.count()));
    return way;
}

// Results that the graph gives out need a node that makes them.
bool canReplace(ir::Graph const& g, ir::Node const& n, Way const& way)
{
    std::vector<ir::Value const*> seen;
    for (size_t i = 0; i < n.outputs.size(); ++i) {
        ir::Value const* const result = way.region ? way.region->outputs[i] : way.inputs[i];
        bool const isMade = way.region && result->producer;
        bool const isNew = !contains(seen, result);
        if (g.isOutput(n.outputs[i]) && !(isMade && isNew))
            return false;
        seen.push_back(result);
    }
    return true;
}

Result<void> replace(ir::Graph& g, ir::Node& n, Way const& way)
{
    std::map<ir::Value const*, ir::Value*> to{{nullptr, nullptr}};
    std::vector<ir::Value*> results(way.inputs.begin(), way.inputs.end());
    if (way.region) {
        for (size_t i = 0; i < way.region->inputs.size(); ++i)
            to[way.region->inputs[i]] = way.inputs[i];
        for (auto const& v : way.region->values())
            if (v->isConstant())
                to[v.get()] = g.addConstant(v->name, v->type, ir::extentsOf(v->shape), v->constant);
        for (auto const& inner : way.region->nodes) {
            auto inputs = mapped<ir::Value*>(inner->inputs, [&](ir::Value const* v) { return to.at(v); });
            ir::Node* const copy = g.cloneNode(*inner, std::move(inputs));
            std::rotate(g.nodes.begin() + g.positionOf(&n), g.nodes.end() - 1, g.nodes.end());
            TW_TRY(g.inferNode(*copy));
            for (size_t i = 0; i < inner->outputs.size(); ++i)
                to[inner->outputs[i]] = copy->outputs[i];
        }
        results.clear();
        for (ir::Value const* v : way.region->outputs)
            results.push_back(to.at(v));
    }
    for (size_t i = 0; i < n.outputs.size(); ++i) {
        if (g.isOutput(n.outputs[i]))
            results[i]->name = n.outputs[i]->name;
        g.replaceAllUses(n.outputs[i], results[i]);
    }
    g.eraseNode(&n);
    return {};
}

} // namespace

Result<bool> inlineRegions(ir::Graph& g, PassContext const&)
{
    auto const hasRegions = [](ir::Node const& n) { return !n.regions.empty(); };
    return changeEach(g, hasRegions, [&](ir::Node& n) -> Result<bool> {
        std::optional<Way> const way = wayOf(n);
        if (!way || !canReplace(g, n, *way))
            return false;
        TW_TRY(replace(g, n, *way));
        return true;
    });
}

} // namespace tw::passes
