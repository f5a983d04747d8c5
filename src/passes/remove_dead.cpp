// SPDX-License-Identifier: Apache-2.0
// Removes what no output of the graph depends on.
//   before: a(x) -> output, b(x)        after: a(x) -> output
// Also outputs of a conditional that nobody reads (in both of its regions), and captures of regions that neither region
// reads. Any form. Stands first, so that no other pass works on dead nodes, and runs again after passes that leave
// some. Never removes inputs of the graph, nor nodes without outputs (assertions).
#include <algorithm>
#include <set>

#include "ir/op_def.h"
#include "ops/loop/op.h"
#include "passes/list.h"

namespace tw::passes {

namespace {

bool isConditional(ir::Node const& n)
{
    return n.op->regions == ir::RegionKind::kBranch;
}

bool dropUnusedOutputs(ir::Graph const& g, ir::Node& n)
{
    bool changed = false;
    for (size_t i = n.outputs.size(); i-- > 0;) {
        if (n.outputs.size() == 1 || g.useCount(n.outputs[i]) != 0)
            continue;
        n.outputs.erase(n.outputs.begin() + int64_t(i));
        n.outputTypes.erase(n.outputTypes.begin() + int64_t(i));
        for (auto& r : n.regions)
            r->outputs.erase(r->outputs.begin() + int64_t(i));
        changed = true;
    }
    for (size_t i = 0; i < n.outputs.size(); ++i)
        n.outputs[i]->producerIndex = int(i);
    return changed;
}

// Inputs of the node before `firstCapture` are the condition, or a loop's own. Region input k is bound to the node's
// input k + skip.
bool dropUnusedCaptures(ir::Node& n, size_t firstCapture, size_t skip)
{
    bool changed = false;
    for (size_t i = n.inputs.size(); i-- > firstCapture;) {
        bool const used = std::any_of(n.regions.begin(), n.regions.end(),
                                      [&](auto const& r) { return r->useCount(r->inputs[i - skip]) != 0; });
        if (used)
            continue;
        n.inputs.erase(n.inputs.begin() + int64_t(i));
        for (auto& r : n.regions) {
            r->inputs.erase(r->inputs.begin() + int64_t(i - skip));
            r->eraseUnusedValues();
        }
        changed = true;
    }
    return changed;
}

bool dropUnusedLoopCaptures(ir::Node& n)
{
    ops::loop::Layout const at(n.attrsAs<ops::loop::Attrs>());
    return dropUnusedCaptures(n, at.firstCapture(), at.firstCapture() - at.firstRegionCapture());
}

} // namespace

Result<bool> removeDead(ir::Graph& g, PassContext const&)
{
    std::set<ir::Value const*> needed(g.outputs.begin(), g.outputs.end());
    std::vector<ir::Node*> dead;
    for (auto n = g.nodes.rbegin(); n != g.nodes.rend(); ++n) {
        ir::Node& node = **n;
        bool const live = node.outputs.empty() || std::any_of(node.outputs.begin(), node.outputs.end(),
                                                              [&](ir::Value* v) { return needed.contains(v); });
        if (live)
            needed.insert(node.inputs.begin(), node.inputs.end());
        else
            dead.push_back(&node);
    }
    bool changed = !dead.empty();
    for (ir::Node* n : dead) // users before what they use
        g.eraseNode(n);
    for (auto& n : g.nodes) {
        if (n->regions.empty())
            continue;
        bool const conditional = isConditional(*n);
        if (conditional)
            changed = dropUnusedOutputs(g, *n) || changed;
        changed = (conditional ? dropUnusedCaptures(*n, 1, 1) : dropUnusedLoopCaptures(*n)) || changed;
    }
    size_t const values = g.values().size();
    g.eraseUnusedValues();
    return changed || g.values().size() != values;
}

} // namespace tw::passes
