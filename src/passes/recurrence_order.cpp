// SPDX-License-Identifier: Apache-2.0
#include "passes/recurrence_order.h"

#include <algorithm>

#include "ops/recurrence/op.h"
#include "ops/shuffle/op.h"
#include "passes/node_kinds.h"
#include "passes/recurrence_node.h"
#include "passes/rewrite.h"

namespace tw::passes {

namespace {

using ir::Permutation;
using ops::recurrence::Attrs;

Permutation const kSwap{1, 0, 2};

// What a shuffle that only swaps the first two of three dimensions reads; null for all others.
ir::Value* swapped(ir::Value const* v)
{
    ir::Node const* const n = v ? v->producer : nullptr;
    if (!isShuffle(n) || hasWish(*n))
        return nullptr;
    auto const& a = n->attrsAs<ops::shuffle::Attrs>();
    bool const one = (a.firstTranspose == kSwap && a.secondTranspose.empty()) ||
                     (a.firstTranspose.empty() && a.secondTranspose == kSwap);
    return one && !a.hasReshape ? n->inputs[0] : nullptr;
}

bool isReadByShuffles(ir::Graph const& g, ir::Value const* y)
{
    auto const readers = readersOf(g, y);
    return !g.isOutput(y) && g.useCount(y) == int(readers.size()) &&
           std::all_of(readers.begin(), readers.end(), [](ir::Node const* n) { return n->op == &ops::shuffle::def(); });
}

// Whether a shuffle of [T,N,H] gives [T,1,N,H] by way of [N,T,H] and [N,T,1,H]: what is left of ONNX's order of one
// direction behind a layer that was turned.
bool isReshapeOfStates(ir::Node const& n)
{
    if (!isShuffle(&n) || n.inputs[0]->rank() != 3)
        return false;
    auto const& a = n.attrsAs<ops::shuffle::Attrs>();
    ir::Shape const &x = n.inputs[0]->shape, &y = n.outputs[0]->shape;
    return a.firstTranspose == kSwap && a.hasReshape && a.secondTranspose == Permutation{1, 2, 0, 3} && y[0] == x[0] &&
           y[1].is(1) && y[2] == x[1] && y[3] == x[2];
}

Result<bool> turn(ir::Graph& g, ir::Node& n)
{
    auto attrs = std::make_unique<Attrs>(n.attrsAs<Attrs>());
    ir::Value* const x = n.inputs[0]->rank() == 3 ? swapped(n.inputs[0]) : nullptr;
    if (!x || hasWish(n) || !isReadByShuffles(g, n.outputs[0]))
        return false;
    attrs->batchFirst = !attrs->batchFirst;
    NodeMaker maker(g, n);
    std::vector<ir::Value*> inputs = n.inputs;
    inputs[ops::recurrence::kX] = x;
    for (size_t i : {size_t(ops::recurrence::kH0), size_t(ops::recurrence::kC0)})
        if (i < inputs.size() && inputs[i]) {
            TW_ASSIGN(inputs[i], maker.transposed(inputs[i], kSwap));
        }
    TW_ASSIGN(ir::Node * turned, g.addNode(*n.op, std::move(attrs), std::move(inputs), n.name, {}, g.positionOf(&n)));
    takePlaceOf(*turned, n);
    for (size_t i = 0; i < n.outputs.size(); ++i) {
        turned->outputs[i]->name = n.outputs[i]->name;
        if (g.useCount(n.outputs[i]) == 0)
            continue;
        TW_ASSIGN(ir::Value * back, maker.transposed(turned->outputs[i], kSwap));
        if (!replaceValue(g, n.outputs[i], back))
            return internalError("layer '" + n.name + "': output " + std::to_string(i) + " cannot be replaced");
    }
    g.eraseNode(&n);
    return true;
}

} // namespace

Result<bool> dropTranspositions(ir::Graph& g)
{
    bool changed = false;
    for (size_t i = 0; i < g.nodes.size(); ++i) {
        ir::Node& n = *g.nodes[i];
        if (isReshapeOfStates(n)) {
            auto& a = n.attrsAs<ops::shuffle::Attrs>();
            auto const reshape = reshapeDims(g, n.inputs[0]->shape, n.outputs[0]->shape);
            if (!reshape)
                continue;
            a.firstTranspose.clear();
            a.secondTranspose.clear();
            a.reshape = reshape->dims;
            a.zeroIsPlaceholder = reshape->placeholder;
            changed = true;
        }
        if (n.op != &ops::recurrence::def())
            continue;
        TW_ASSIGN(bool const turned, turn(g, n));
        if (turned)
            i = size_t(-1); // from the start: nodes have moved
        changed = changed || turned;
    }
    return changed;
}

} // namespace tw::passes
