// SPDX-License-Identifier: Apache-2.0
#include "passes/caches/merged.h"

#include <algorithm>

#include "ir/op_def.h"
#include "passes/list.h"
#include "passes/rewrite.h"

namespace tw::passes {

namespace {

// The region that has caches, which are inputs of the graph; -1: none, or both.
int regionWithPast(ir::Graph const& g, ir::Node const& n)
{
    int found = -1;
    for (int r : {0, 1}) {
        ir::Graph& region = *n.regions[size_t(r)];
        auto const joins = joinsOf(region);
        bool const isOne = !joins.empty() && std::ranges::all_of(joins, [&](CacheJoin const& j) {
            auto const at = std::ranges::find(region.inputs, j.past) - region.inputs.begin();
            return contains(g.inputs, n.inputs[size_t(at) + 1]);
        });
        if (isOne && found >= 0)
            return -1;
        found = isOne ? r : found;
    }
    return found;
}

// Whether a value is an input of the graph, but for its shape.
bool isGiven(ir::Graph const& g, ir::Value const* v)
{
    while (v->producer && v->producer->inputs.size() == 1 && volume(v->shape).is(1))
        v = v->producer->inputs[0];
    return contains(g.inputs, v);
}

// "past_key_values.0.encoder.key" and "present.0.encoder.key" are one.
std::string withoutPast(std::string name)
{
    for (char const* word : {"past_key_values", "past", "present_key_values", "present"})
        if (auto const at = name.find(word); at != std::string::npos)
            return name.replace(at, std::string(word).size(), "*");
    return name;
}

// Which input of the region gives its output `i` again, or would, if it were not given out empty; -1: none.
int againOf(ir::Node const& n, ir::Graph const& region, size_t i)
{
    ir::Value const* const y = region.outputs[i];
    for (size_t c = 0; c < region.inputs.size(); ++c) {
        ir::Value const* const outer = n.inputs[c + 1];
        bool const isCalled =
            outer->name != n.outputs[i]->name && withoutPast(outer->name) == withoutPast(n.outputs[i]->name);
        if (region.inputs[c] == y || (y->isConstant() && isCalled && outer->rank() == 4 && y->rank() == 4))
            return int(c);
    }
    return -1;
}

// What one region gives again and the other one makes is of a conditional of its own, in front, which `n` reads.
Result<void> splitAgain(ir::Graph& g, ir::Node& n, size_t taken)
{
    std::vector<std::pair<size_t, size_t>> again; // outputs, inputs of the region
    for (size_t i = 0; i < n.outputs.size(); ++i)
        if (int const c = againOf(n, *n.regions[taken], i); c >= 0 && g.isOutput(n.outputs[i]))
            again.emplace_back(i, size_t(c));
    if (again.empty())
        return {};
    ir::Node* const m = g.cloneNode(n, n.inputs);
    std::rotate(g.nodes.begin() + g.positionOf(&n), g.nodes.end() - 1, g.nodes.end());
    for (auto const& [i, c] : again)
        m->regions[taken]->outputs[i] = m->regions[taken]->inputs[c];
    TW_TRY(g.inferNode(*m));
    for (auto const& [i, c] : again) {
        m->outputs[i]->name = n.outputs[i]->name;
        g.replaceAllUses(n.outputs[i], m->outputs[i]);
        n.inputs[c + 1] = m->outputs[i];
    }
    return {};
}

} // namespace

Result<bool> takeDecoderWithPast(ir::Graph& g, PassContext const& ctx)
{
    for (auto const& node : g.nodes) {
        ir::Node& n = *node;
        if (n.op->regions != ir::RegionKind::kBranch || !isGiven(g, n.inputs[0]))
            continue;
        int const taken = regionWithPast(g, n);
        if (taken < 0)
            continue;
        TW_TRY(splitAgain(g, n, size_t(taken)));
        bool const condition = taken == 0;
        n.inputs[0] = g.addConstant(n.inputs[0]->name + ".past", DataType::kBool, {}, &condition);
        TW_ASSIGN(bool const isDone, inlineRegions(g, ctx));
        return isDone;
    }
    return false;
}

} // namespace tw::passes
