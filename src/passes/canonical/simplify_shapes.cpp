// SPDX-License-Identifier: Apache-2.0
// Takes shape arithmetic out of the graph where inference knows what it gives.
//   reshape(x, const [0, -1])            ->  shuffle(x) with the dimensions as attributes; slice, resize, fill likewise
//   reshape(x, [shape(x)[0], 8, rest])   ->  shuffle(x) with dimensions [0, 8, -1]
//   slice(x, size = [shape(x)[0], 8])    ->  slice(x) with sizes [all, 8], where it takes a part of what is known
//   two shape tensors of equal elements  ->  one
// Any form; expects inferred shapes. Stands after fold_constants, whose constants it takes, and before remove_dead,
// which takes the arithmetic that is left without users. Never changes a shape.
#include <algorithm>

#include "ops/fill/op.h"
#include "ops/resize/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

std::vector<int64_t> elementsOf(TensorRef const& t)
{
    std::vector<int64_t> v;
    for (int64_t i = 0; i < t.count(); ++i)
        v.push_back(t.getInt(i));
    return v;
}

void dropInput(ir::Node& n, size_t i)
{
    n.inputs[i] = nullptr;
    while (!n.inputs.empty() && !n.inputs.back() && int(n.inputs.size()) > n.op->inputs.least)
        n.inputs.pop_back();
}

// Moves constant input i into the attribute field.
bool takeIn(ir::Node& n, size_t i, std::vector<int64_t>& field)
{
    if (!hasInput(n, i))
        return false;
    TensorRef const t = constantOf(n.inputs[i]);
    if (!t.data)
        return false;
    field = elementsOf(t);
    dropInput(n, i);
    return true;
}

bool simplifyShuffle(ir::Graph const& g, ir::Node& n)
{
    auto& a = n.attrsAs<ops::shuffle::Attrs>();
    if (!hasInput(n, 1))
        return false;
    if (takeIn(n, 1, a.reshape)) {
        a.hasReshape = true;
        return true;
    }
    ir::Shape const c = permuted(n.inputs[0]->shape, a.firstTranspose),
                    r = unpermuted(n.outputs[0]->shape, a.secondTranspose);
    // Static dimensions that come from unknown elements are checked when these are known; keep that.
    auto const dims = n.inputs[1]->content ? reshapeDims(g, c, r) : std::nullopt;
    if (!dims)
        return false;
    a.reshape = dims->dims;
    a.zeroIsPlaceholder = dims->placeholder;
    a.hasReshape = true;
    dropInput(n, 1);
    return true;
}

// Sizes of the input's own dimensions, and others that are known.
bool takeWholeSizes(ir::Node& n)
{
    auto& a = n.attrsAs<ops::slice::Attrs>();
    ir::Shape const &x = n.inputs[0]->shape, &y = n.outputs[0]->shape;
    if (!hasInput(n, 2) || hasInput(n, 1) || hasInput(n, 3) || !n.inputs[2]->content)
        return false;
    std::vector<int64_t> sizes;
    for (size_t d = 0; d < x.size(); ++d) {
        bool const isWhole = y[d] == x[d] && a.start[d] == 0 && a.stride[d] == 1;
        // Bounds that are seen to when the input's size is known stay so; those of known sizes are seen to now.
        if (!isWhole && (!y[d].isConst() || !x[d].isConst()))
            return false;
        sizes.push_back(isWhole ? ops::slice::kWhole : y[d].value());
    }
    a.size = sizes;
    dropInput(n, 2);
    return true;
}

bool simplifySlice(ir::Node& n)
{
    auto& a = n.attrsAs<ops::slice::Attrs>();
    bool changed = takeIn(n, 1, a.start);
    changed = takeIn(n, 2, a.size) || changed;
    changed = takeIn(n, 3, a.stride) || changed;
    return takeWholeSizes(n) || changed;
}

bool simplifyResize(ir::Node& n)
{
    return takeIn(n, 1, n.attrsAs<ops::resize::Attrs>().outputDims);
}

bool simplifyFill(ir::Node& n)
{
    return takeIn(n, 0, n.attrsAs<ops::fill::Attrs>().dims);
}

bool simplifyNode(ir::Graph const& g, ir::Node& n)
{
    if (n.op == &ops::shuffle::def())
        return simplifyShuffle(g, n);
    if (n.op == &ops::slice::def())
        return simplifySlice(n);
    if (n.op == &ops::resize::def())
        return simplifyResize(n);
    if (n.op == &ops::fill::def())
        return simplifyFill(n);
    return false;
}

bool equalElements(ir::Value const& a, ir::Value const& b)
{
    return a.type == b.type && a.shape == b.shape && *a.content == *b.content;
}

} // namespace

Result<bool> simplifyShapes(ir::Graph& g, PassContext const&)
{
    bool changed = false;
    std::vector<ir::Value*> known; // with elements that are expressions, in order of execution
    for (ir::Value* v : g.inputs)
        if (v->content)
            known.push_back(v);
    for (auto& n : g.nodes) {
        if (simplifyNode(g, *n)) {
            TW_TRY(g.inferNode(*n));
            changed = true;
        }
        for (ir::Value* v : n->outputs) {
            if (!v->content)
                continue;
            auto same = std::ranges::find_if(known, [&](ir::Value* k) { return equalElements(*k, *v); });
            if (same == known.end())
                known.push_back(v);
            else if (g.useCount(v) != 0 && !g.isOutput(v))
                changed = replaceValue(g, v, *same) || changed;
        }
    }
    return changed;
}

} // namespace tw::passes
