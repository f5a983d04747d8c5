// SPDX-License-Identifier: Apache-2.0
// What a loop's body or condition computes from captures and constants alone is computed once, in front of the loop.
//   before: loop(x, w) { y = x + tanh(w) }        after: t = tanh(w), loop(x, w, t) { y = x + t }
// Any form; expects inferred shapes. Stands among the canonical passes, so that what is hoisted meets the passes of the
// graph around, and remove_dead takes captures that are left without readers. A loop may make no trip, and then its body
// must not fail: what could (nodes without outputs, shapes out of elements that only the run knows) stays, and so do
// nodes that keep state, nodes with regions and results whose size data decide.
#include <algorithm>

#include "ir/op_def.h"
#include "ir/shape_values.h"
#include "ops/loop/op.h"
#include "passes/list.h"
#include "passes/rewrite.h"

namespace tw::passes {

namespace {

class Hoister
{
public:
    Hoister(ir::Graph& g, ir::Node& loop, ir::Graph& region)
        : g_(g), loop_(loop), region_(region), at_(loop.attrsAs<ops::loop::Attrs>())
    {}

    Result<bool> run()
    {
        bool changed = false;
        for (size_t i = 0; i < region_.nodes.size();) {
            ir::Node& n = *region_.nodes[i];
            if (!canLeave(n)) {
                ++i;
                continue;
            }
            TW_TRY(hoist(n));
            changed = true;
        }
        return changed;
    }

private:
    bool isFixed(ir::Value const* v) const
    {
        auto const first = region_.inputs.begin() + int64_t(at_.firstRegionCapture());
        return !v || v->isConstant() || std::find(first, region_.inputs.end(), v) != region_.inputs.end();
    }
    bool hasOwnSize(ir::Value const& v) const
    {
        std::vector<std::string> names;
        for (ir::Dim const& d : v.shape)
            d.collectSymbols(names);
        return std::ranges::any_of(names, [&](std::string const& name) {
            auto const it = region_.symbols.find(name);
            return it != region_.symbols.end() && it->second.boundByNode;
        });
    }
    bool canLeave(ir::Node const& n) const
    {
        if (n.outputs.empty() || !n.regions.empty() || (n.op->stateful && n.op->stateful(n)))
            return false;
        for (size_t i = 0; i < n.inputs.size(); ++i)
            if (ir::isShapeInput(n, i) && n.inputs[i] && !n.inputs[i]->isConstant())
                return false;
        bool const readsCapture =
            std::ranges::any_of(n.inputs, [](ir::Value const* v) { return v && !v->isConstant(); });
        return readsCapture && // else it is for fold_constants
               std::ranges::all_of(n.inputs, [&](ir::Value const* v) { return isFixed(v); }) &&
               std::ranges::none_of(n.outputs, [&](ir::Value const* v) { return hasOwnSize(*v); });
    }
    ir::Value* outside(ir::Value const* v)
    {
        if (!v)
            return nullptr;
        if (v->isConstant())
            return g_.addConstant(v->name, v->type, ir::extentsOf(v->shape), v->constant);
        size_t const i = size_t(std::ranges::find(region_.inputs, v) - region_.inputs.begin());
        return loop_.inputs[at_.inputOf(i)];
    }
    Result<void> hoist(ir::Node& n)
    {
        auto inputs = mapped<ir::Value*>(n.inputs, [&](ir::Value const* v) { return outside(v); });
        ir::Node* const copy = g_.cloneNode(n, std::move(inputs));
        std::rotate(g_.nodes.begin() + g_.positionOf(&loop_), g_.nodes.end() - 1, g_.nodes.end());
        TW_TRY(g_.inferNode(*copy));
        loop_.inputs.resize(std::max(loop_.inputs.size(), at_.firstCapture()));
        for (size_t i = 0; i < n.outputs.size(); ++i) {
            ir::Value const& v = *n.outputs[i];
            loop_.inputs.push_back(copy->outputs[i]);
            for (auto& r : loop_.regions)
                r->addInput(v.name, v.type, v.shape);
            region_.replaceAllUses(n.outputs[i], region_.inputs.back());
        }
        region_.eraseNode(&n);
        return {};
    }

    ir::Graph& g_;
    ir::Node& loop_;
    ir::Graph& region_;
    ops::loop::Layout const at_;
};

} // namespace

Result<bool> hoistInvariants(ir::Graph& g, PassContext const&)
{
    return changeEach(g, isLoop, [&](ir::Node& loop) -> Result<bool> {
        bool changed = false;
        for (auto const& region : loop.regions) {
            TW_ASSIGN(bool const hoisted, Hoister(g, loop, *region).run());
            changed = changed || hoisted;
        }
        return changed;
    });
}

} // namespace tw::passes
