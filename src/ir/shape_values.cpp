// SPDX-License-Identifier: Apache-2.0
#include "ir/shape_values.h"

#include <algorithm>

#include "ir/infer.h"
#include "ir/op_def.h"

namespace tw::ir {

namespace {

// At most 64 elements, as the guide says; what comes from outside with more than one dimension is data.
bool mayBeShape(Value const* v)
{
    return !v || (isStatic(v->shape) && extentsOf(v->shape).volume() <= kMaxContent &&
                  (v->producer || v->isConstant() || v->rank() <= 1));
}

// The nodes that the host computes where a shape wants their outputs.
std::set<Node const*> shapeNodes(Graph const& g)
{
    std::set<Node const*> nodes;
    std::set<Value const*> fromDims; // no element of a network input is in these
    for (auto const& n : g.nodes) {
        auto isFromDims = [&](Value const* v) { return !v || v->isConstant() || fromDims.contains(v); };
        bool const stateful = n->op->stateful && n->op->stateful(*n);
        bool const known =
            n->op->readsDimsOnly || (n->regions.empty() && !stateful && std::ranges::all_of(n->inputs, isFromDims));
        if (known)
            fromDims.insert(n->outputs.begin(), n->outputs.end());
        if (known || (n->op->computesShapes && std::ranges::all_of(n->inputs, mayBeShape)))
            nodes.insert(n.get());
    }
    return nodes;
}

// What shapes inside of the node's regions are made of.
void needInside(Node const& node, std::set<Value const*>& needed)
{
    size_t const firstCapture = node.op->firstCapture ? node.op->firstCapture(node) : 0;
    for (auto const& region : node.regions) {
        std::set<Value const*> const inner = shapeValues(*region);
        size_t const before = node.inputs.size() - std::min(node.inputs.size(), region->inputs.size());
        for (size_t i = firstCapture; i < region->inputs.size() && before + i < node.inputs.size(); ++i)
            if (inner.contains(region->inputs[i]) && node.inputs[before + i])
                needed.insert(node.inputs[before + i]);
    }
}

std::set<Value const*> shapeValues(Graph const& g, std::set<Node const*> const& computing)
{
    std::set<Value const*> needed;
    for (Value const* v : g.outputs)
        if (v->host)
            needed.insert(v);
    for (auto n = g.nodes.rbegin(); n != g.nodes.rend(); ++n) {
        Node const& node = **n;
        bool const makesNeeded = std::ranges::any_of(node.outputs, [&](Value const* v) { return needed.contains(v); });
        bool const wantsElements = makesNeeded && computing.contains(&node) && !node.op->readsDimsOnly;
        for (size_t i = 0; i < node.inputs.size(); ++i)
            if (node.inputs[i] && (wantsElements || isShapeInput(node, i)))
                needed.insert(node.inputs[i]);
        needInside(node, needed);
    }
    return needed;
}

} // namespace

bool isShapeInput(Node const& node, size_t i)
{
    return node.op->isShapeInput && node.op->isShapeInput(node, i);
}

bool isOnHost(Node const& node)
{
    return node.outputs.empty() || node.outputs[0]->host;
}

std::set<Value const*> shapeValues(Graph const& g)
{
    return shapeValues(g, shapeNodes(g));
}

std::set<Value const*> hostValues(Graph const& g)
{
    std::set<Node const*> const computing = shapeNodes(g);
    std::set<Value const*> values = shapeValues(g, computing);
    std::erase_if(values, [&](Value const* v) { return v->producer && !computing.contains(v->producer); });
    return values;
}

namespace {

// Contents of a region's captures are those of what is captured.
Result<void> inferAnew(Graph& g)
{
    for (auto& node : g.nodes) {
        size_t const firstCapture = node->op->firstCapture ? node->op->firstCapture(*node) : 0;
        for (auto& region : node->regions) {
            size_t const before = node->inputs.size() - std::min(node->inputs.size(), region->inputs.size());
            for (size_t i = firstCapture; i < region->inputs.size() && before + i < node->inputs.size(); ++i)
                if (Value const* const outer = node->inputs[before + i]; !outer || !infoOf(*outer).content)
                    region->inputs[i]->content.reset();
            TW_TRY(inferAnew(*region));
        }
        TW_TRY(g.inferNode(*node));
    }
    return {};
}

} // namespace

Result<void> forgetContentsOfData(Graph& g)
{
    bool changed = false;
    for (Value* v : g.inputs) {
        changed = changed || (v->content && !v->host);
        if (!v->host)
            v->content.reset();
    }
    return changed ? inferAnew(g) : Result<void>();
}

} // namespace tw::ir
