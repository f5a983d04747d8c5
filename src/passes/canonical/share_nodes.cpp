// SPDX-License-Identifier: Apache-2.0
// Computes integers and booleans once that several nodes compute alike: masks, positions and sizes, which networks make
// anew for each layer.
//   before: a = greater(m, 0.5), b = greater(m, 0.5), select(a, x, ·), select(b, y, ·)
//   after:  a = greater(m, 0.5), select(a, x, ·), select(a, y, ·)
// The first of them stays and has the layers of all. Nodes with floating results are left alone, as the fusions know patterns
// by results that one node reads; but not rows that are looked up in a constant table, cosines and sines of positions, and
// their reshapes. Left alone as well: nodes with state or regions, those whose result is a graph output,
// those with wishes of the user. Constants are the same by their elements, but those that refit reaches. Any form; stands
// in front of what makes shapes and identities simple, which gets less to do.
#include <algorithm>
#include <map>

#include "base/hash.h"
#include "ir/op_def.h"
#include "ops/gather/op.h"
#include "ops/shuffle/op.h"
#include "passes/list.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

class Sharing
{
public:
    Sharing(ir::Graph& g, PassContext const& ctx) : g_(g), ctx_(ctx) {}

    bool run()
    {
        std::multimap<uint64_t, ir::Node*> known; // by op, attributes and inputs that are no constants
        std::vector<ir::Node*> twins;
        for (auto const& n : g_.nodes) {
            if (!mayBeShared(*n))
                continue;
            uint64_t const key = keyOf(*n);
            auto const [begin, end] = known.equal_range(key); // in the order they were put there
            auto const first = std::find_if(begin, end, [&](auto const& k) { return areAlike(*k.second, *n); });
            if (first == end || hasOutput(*n)) {
                known.emplace(key, n.get());
                continue;
            }
            ir::Node& kept = *first->second;
            for (std::string const& layer : n->layers)
                if (!contains(kept.layers, layer))
                    kept.layers.push_back(layer);
            for (size_t i = 0; i < n->outputs.size(); ++i)
                g_.replaceAllUses(n->outputs[i], kept.outputs[i]);
            twins.push_back(n.get());
        }
        for (ir::Node* n : twins)
            g_.eraseNode(n);
        if (!twins.empty())
            g_.eraseUnusedValues();
        return !twins.empty();
    }

private:
    static bool mayBeShared(ir::Node const& n)
    {
        return n.regions.empty() && !n.body && !n.outputs.empty() && !(n.op->stateful && n.op->stateful(n)) &&
               !hasWish(n) &&
               (isLookup(n) || std::ranges::none_of(n.outputs, [](ir::Value const* v) { return isReal(v->type); }));
    }
    static bool isLookup(ir::Node const& n)
    {
        ir::Node const* from = &n;
        if (n.op == &ops::shuffle::def() && ops::shuffle::keepsOrder(n))
            from = n.inputs[0]->producer;
        return from && from->op == &ops::gather::def() && from->inputs[0]->isConstant() &&
               !from->inputs[1]->isConstant();
    }
    bool hasOutput(ir::Node const& n) const
    {
        return std::ranges::any_of(n.outputs, [&](ir::Value const* v) { return g_.isOutput(v); });
    }
    static uint64_t keyOf(ir::Node const& n)
    {
        Hasher h;
        h.text(n.op->name);
        h.number(ir::hashAttrs(*n.attrs));
        for (ir::Value const* v : n.inputs)
            h.number(uint64_t(!v ? -1 : v->isConstant() ? -2 : v->id));
        return h.value();
    }
    bool areAlike(ir::Node const& a, ir::Node const& b) const
    {
        if (a.op != b.op || a.inputs.size() != b.inputs.size() || !ir::equalAttrs(*a.attrs, *b.attrs))
            return false;
        for (size_t i = 0; i < a.inputs.size(); ++i) {
            ir::Value const *x = a.inputs[i], *y = b.inputs[i];
            if (x != y &&
                (!x || !y || refitReaches(*x, ctx_.recipes) || refitReaches(*y, ctx_.recipes) || !areSame(x, y)))
                return false;
        }
        for (size_t i = 0; i < a.outputs.size(); ++i)
            if (a.outputs[i]->type != b.outputs[i]->type || !(a.outputs[i]->shape == b.outputs[i]->shape) ||
                a.outputs[i]->host != b.outputs[i]->host)
                return false;
        return true;
    }

    ir::Graph& g_;
    PassContext const& ctx_;
};

} // namespace

Result<bool> shareNodes(ir::Graph& g, PassContext const& ctx)
{
    return Sharing(g, ctx).run();
}

} // namespace tw::passes
