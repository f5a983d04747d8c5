// SPDX-License-Identifier: Apache-2.0
// Removes what no output of the graph depends on.
//   before: a(x) -> output, b(x)        after: a(x) -> output
// Also outputs of a conditional that nobody reads (in both of its regions), stacks of a loop that nobody reads, carried
// values that nothing needs, and captures of regions that neither region reads. Any form. Stands first, so that no other pass works on dead nodes, and runs again after passes that leave
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
        bool const used =
            std::ranges::any_of(n.regions, [&](auto const& r) { return r->useCount(r->inputs[i - skip]) != 0; });
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

// Which carried values of a loop somebody needs: those read behind it, and those that what is needed is computed from.
std::vector<bool> neededCarried(ir::Graph const& g, ir::Node const& n)
{
    ir::Graph const &condition = *n.regions[0], &body = *n.regions[1];
    ops::loop::Layout const at(n.attrsAs<ops::loop::Attrs>());
    std::vector<bool> needed(at.carried);
    for (size_t i = 0; i < at.carried; ++i)
        needed[i] = g.useCount(n.outputs[i]) != 0 || condition.useCount(condition.inputs[i]) != 0;
    for (bool changed = true; changed;) {
        changed = false;
        std::set<ir::Value const*> from;
        for (size_t i = 0; i < body.outputs.size(); ++i)
            if (i < at.carried ? needed[i] : g.useCount(n.outputs[i]) != 0)
                from.insert(body.outputs[i]);
        for (auto inner = body.nodes.rbegin(); inner != body.nodes.rend(); ++inner)
            if ((*inner)->outputs.empty() ||
                std::ranges::any_of((*inner)->outputs, [&](ir::Value const* v) { return from.contains(v); }))
                from.insert((*inner)->inputs.begin(), (*inner)->inputs.end());
        for (size_t i = 0; i < at.carried; ++i)
            if (!needed[i] && from.contains(body.inputs[i]))
                needed[i] = changed = true;
    }
    return needed;
}

template <class List>
void eraseAt(List& list, size_t i)
{
    if (i < list.size())
        list.erase(list.begin() + int64_t(i));
}

void dropOutput(ir::Node& n, size_t i)
{
    eraseAt(n.outputs, i);
    eraseAt(n.outputTypes, i);
    eraseAt(n.regions[1]->outputs, i);
    for (size_t k = 0; k < n.outputs.size(); ++k)
        n.outputs[k]->producerIndex = int(k);
}

// Stacks that nobody reads, and carried values that nothing needs. One output stays: a node has one.
bool dropUnusedLoopOutputs(ir::Graph const& g, ir::Node& n, PassContext const& ctx)
{
    auto& attrs = n.attrsAs<ops::loop::Attrs>();
    bool changed = false;
    for (size_t k = attrs.stackAxes.size(); k-- > 0;) {
        ops::loop::Layout const at(attrs);
        if (n.outputs.size() == 1 || g.useCount(n.outputs[at.carried + k]) != 0)
            continue;
        dropOutput(n, at.carried + k);
        eraseAt(n.inputs, at.lengthAt(k));
        eraseAt(attrs.stackAxes, k);
        eraseAt(attrs.stackReverse, k);
        changed = true;
    }
    std::vector<bool> const needed = neededCarried(g, n);
    for (size_t i = needed.size(); i-- > 0;) {
        if (needed[i] || n.outputs.size() == 1)
            continue;
        dropOutput(n, i);
        eraseAt(n.inputs, i);
        --attrs.carried;
        for (auto& r : n.regions) { // its other uses were for this value alone
            (void)removeDead(*r, ctx);
            eraseAt(r->inputs, i);
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

Result<bool> removeDead(ir::Graph& g, PassContext const& ctx)
{
    std::set<ir::Value const*> needed(g.outputs.begin(), g.outputs.end());
    std::vector<ir::Node*> dead;
    for (auto n = g.nodes.rbegin(); n != g.nodes.rend(); ++n) {
        ir::Node& node = **n;
        bool const live =
            node.outputs.empty() || std::ranges::any_of(node.outputs, [&](ir::Value* v) { return needed.contains(v); });
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
        if (!conditional)
            changed = dropUnusedLoopOutputs(g, *n, ctx) || changed;
        changed = (conditional ? dropUnusedCaptures(*n, 1, 1) : dropUnusedLoopCaptures(*n)) || changed;
    }
    size_t const values = g.values().size();
    g.eraseUnusedValues();
    return changed || g.values().size() != values;
}

} // namespace tw::passes
