// SPDX-License-Identifier: Apache-2.0
// Takes shape arithmetic out of the graph where inference knows what it gives.
//   reshape(x, const [0, -1])            ->  shuffle(x) with the dimensions as attributes; slice, resize, fill likewise
//   reshape(x, [shape(x)[0], 8, rest])   ->  shuffle(x) with dimensions [0, 8, -1]
//   reshape(transpose(reshape(x [b,8,t,4], [-1,t,4]), [0,2,1]), [b,8,4,t])  ->  transpose(x, [0,1,3,2])
//   slice(x [n,8], [n,4]), whose sizes are known or x's own  ->  slice(x) with sizes as attributes
//   expand(x [n,1], [n,4]), whose strides say where n is 1  ->  slice(x) with strides as attributes
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
#include "passes/strided_view.h"
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

// A shuffle to sizes that attributes cannot say, behind others: a transposition of what these read. So torch.export writes that of keys whose
// sequences and heads are one dimension meanwhile.
bool takeTransposition(ir::Node& n)
{
    constexpr int kDepth = 4;
    for (int depth = 2; depth <= kDepth; ++depth) {
        StridedView const view = viewOf(n.outputs[0], depth, true);
        ir::Shape const &x = view.source->shape, &y = n.outputs[0]->shape;
        if (int(view.nodes.size()) < depth || view.offset != 0 || x.size() != y.size())
            continue;
        std::vector<int64_t> permutation(y.size(), -1);
        ir::Dim stride = 1;
        for (size_t d = x.size(); d-- > 0; stride = stride * x[d])
            for (size_t i = 0; i < y.size(); ++i)
                if (permutation[i] < 0 && y[i] == x[d] && (x[d].is(1) || view.stride(i) == stride)) {
                    permutation[i] = int64_t(d);
                    break;
                }
        if (std::ranges::count(permutation, -1) > 0)
            continue;
        auto& a = n.attrsAs<ops::shuffle::Attrs>();
        a = {};
        a.firstTranspose = permutation;
        n.inputs[0] = view.source;
        dropInput(n, 1);
        return true;
    }
    return false;
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
        return n.inputs[1]->content && takeTransposition(n);
    a.reshape = dims->dims;
    a.zeroIsPlaceholder = dims->placeholder;
    a.hasReshape = true;
    dropInput(n, 1);
    return true;
}

// Sizes that are known or those of the input.
bool takeSizes(ir::Node& n)
{
    if (!hasInput(n, 2) || !n.inputs[2]->content)
        return false;
    std::vector<int64_t> sizes;
    for (size_t d = 0; d < n.inputs[2]->content->size(); ++d) {
        ir::Dim const& size = (*n.inputs[2]->content)[d];
        if (!size.isConst() && !(size == n.inputs[0]->shape[d]))
            return false;
        sizes.push_back(size.isConst() ? size.value() : ops::slice::kWhole);
    }
    n.attrsAs<ops::slice::Attrs>().size = std::move(sizes);
    dropInput(n, 2);
    return true;
}

// Strides of an expansion: 0 where the dimension is 1. Of a result that is as long as the input that is 1 as well.
bool takeStrides(ir::Graph const& g, ir::Node& n)
{
    if (!hasInput(n, 3) || !n.inputs[3]->content)
        return false;
    std::vector<int64_t> strides;
    for (size_t d = 0; d < n.inputs[3]->content->size(); ++d) {
        ir::Dim const &stride = (*n.inputs[3]->content)[d], &x = n.inputs[0]->shape[d];
        bool const isOfExpansion = n.outputs[0]->shape[d] == x && stride == min(x - 1, 1).within(g.symbols);
        if (!stride.isConst() && !isOfExpansion)
            return false;
        strides.push_back(stride.isConst() ? stride.value() : 1);
    }
    n.attrsAs<ops::slice::Attrs>().stride = std::move(strides);
    dropInput(n, 3);
    return true;
}

bool simplifySlice(ir::Graph const& g, ir::Node& n)
{
    auto& a = n.attrsAs<ops::slice::Attrs>();
    bool changed = takeIn(n, 1, a.start);
    changed = takeIn(n, 2, a.size) || takeSizes(n) || changed;
    return takeIn(n, 3, a.stride) || takeStrides(g, n) || changed;
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
        return simplifySlice(g, n);
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
