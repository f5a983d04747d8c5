// SPDX-License-Identifier: Apache-2.0
#include "builder/sparse_layers.h"

#include <set>

#include "ops/convolution/op.h"
#include "ops/dequantize/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/quantize/op.h"
#include "tactic/registry.h"
#include "tactic/sparsity.h"

namespace tw::builder {

namespace {

// The constant that the value has its zeros from; null: there is none.
ir::Value const* weightsOf(ir::Value const* v)
{
    while (v && v->producer && (v->producer->op == &ops::quantize::def() || v->producer->op == &ops::dequantize::def()))
        v = v->producer->inputs[0];
    return v && v->isConstant() ? v : nullptr;
}

bool follows(ir::Value const* v, int axis)
{
    return ops::isTwoOfFour({v->type, ir::extentsOf(v->shape), const_cast<void*>(v->constant->data->data())}, axis);
}

// Whether factor 0 or 1 of a product is sparse along k.
bool hasSparseFactor(ir::Node const& n, int factor)
{
    using enum ops::matrix_multiply::MatrixOperation;
    ir::Value const* const w = weightsOf(n.inputs[size_t(factor)]);
    if (!w)
        return false;
    auto const& a = n.attrsAs<ops::matrix_multiply::Attrs>();
    if (a.connected) { // b: [n, k] in any shape of that volume
        if (factor == 0 || w->rank() < 2)
            return false;
        Extents const dims = ir::extentsOf(w->shape);
        return ops::isTwoOfFour(
            {w->type, {dims[0], dims.volume(1, dims.rank)}, const_cast<void*>(w->constant->data->data())}, 1);
    }
    auto const operation = factor == 0 ? a.a : a.b;
    bool const isLast = operation == kVector || (operation == kTranspose) == (factor == 1);
    return follows(w, w->rank() - (isLast ? 1 : 2));
}

bool isSparse(ir::Node const& n)
{
    if (n.op == &ops::convolution::def()) {
        ir::Value const* const w = weightsOf(n.inputs[1]);
        return w && !n.attrsAs<ops::convolution::Attrs>().transposed && follows(w, 1);
    }
    return n.op == &ops::matrix_multiply::def() && (hasSparseFactor(n, 0) || hasSparseFactor(n, 1));
}

void addSparse(ir::Graph const& g, std::vector<std::string>& names)
{
    for (auto const& n : g.nodes) {
        if (isSparse(*n))
            names.push_back(n->name);
        for (auto const& r : n->regions)
            addSparse(*r, names);
    }
}

std::string joined(std::vector<std::string> const& names)
{
    std::string text;
    for (std::string const& name : names)
        text += (text.empty() ? "" : ", ") + name;
    return text;
}

} // namespace

std::vector<std::string> sparseLayers(ir::Graph const& imported)
{
    std::vector<std::string> names;
    addSparse(imported, names);
    return names;
}

namespace {

bool isSparse(ir::Node const& n, plan::Choice const& choice)
{
    for (bool const onGpu : {false, true})
        for (ops::Tactic const* t : n.op->tactics(onGpu))
            if (t->id() == choice.tactic)
                return t->traits().isSparse;
    return false;
}

} // namespace

std::vector<std::string> sparsityLines(std::vector<std::string> const& layers, ir::Graph const& graph,
                                       plan::Block const& chosen)
{
    std::set<std::string> missing(layers.begin(), layers.end());
    std::vector<std::string> eligible, picked;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
        ir::Node const& n = *graph.nodes[i];
        size_t found = missing.erase(n.name);
        for (std::string const& layer : n.layers)
            found += missing.erase(layer);
        if (found == 0)
            continue;
        eligible.push_back(n.name);
        if (i < chosen.steps.size() && isSparse(n, chosen.steps[i].choice))
            picked.push_back(n.name);
    }
    for (std::string const& layer : layers) // of loops and branches, or of a node that goes by another name
        if (missing.contains(layer))
            eligible.push_back(layer);
    return {"(Sparsity) Layers eligible for sparse math: " + joined(eligible),
            "(Sparsity) TRT inference plan picked sparse implementation for layers: " + joined(picked)};
}

} // namespace tw::builder
