// SPDX-License-Identifier: Apache-2.0
// Gives regions constants of their own for captures that are constants outside.
//   before: loop(..., w) with w a constant        after: loop(...), and w is a constant of the body
//   the same of w = dequantize(integers, scales), so that the body's products find integers
// Any form. Stands beside fold_constants, which then folds what the region makes of it; remove_dead takes the capture
// away. The bytes are shared. Captures whose shape the region knows only as symbols stay.
#include "ir/op_def.h"
#include "ops/loop/op.h"
#include "passes/list.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"

namespace tw::passes {

namespace {

ir::Value* constantLike(ir::Graph& region, ir::Value const& outer)
{
    return region.addConstant(outer.name, outer.type, ir::extentsOf(outer.shape), outer.constant);
}

Result<bool> takeConstant(ir::Graph& region, size_t input, ir::Value const& outer)
{
    ir::Value* const inner = region.inputs[input];
    if (region.useCount(inner) == 0 || !ir::isStatic(inner->shape))
        return false;
    if (outer.isConstant()) {
        region.replaceAllUses(inner, constantLike(region, outer));
        return true;
    }
    auto const d = dequantizedOf(&outer);
    if (!d || !d->integers->isConstant() || !d->scale->isConstant() || region.isOutput(inner))
        return false;
    TW_ASSIGN(ir::Node * own, region.addNode(*d->node->op, d->node->attrs->clone(),
                                             {constantLike(region, *d->integers), constantLike(region, *d->scale)},
                                             d->node->name, {}, 0));
    takePlaceOf(*own, *d->node);
    own->outputs[0]->name = outer.name;
    region.replaceAllUses(inner, own->outputs[0]);
    return true;
}

} // namespace

Result<bool> constantsIntoRegions(ir::Graph& g, PassContext const&)
{
    bool changed = false;
    for (auto const& n : g.nodes) {
        if (n->regions.empty())
            continue;
        bool const isLoop = n->op->regions == ir::RegionKind::kLoop;
        size_t first = 1, firstOfRegion = 0;
        if (isLoop) {
            ops::loop::Layout const at(n->attrsAs<ops::loop::Attrs>());
            first = at.firstCapture();
            firstOfRegion = at.firstRegionCapture();
        }
        for (size_t i = first; i < n->inputs.size(); ++i)
            for (auto& r : n->regions) {
                TW_ASSIGN(bool const taken, takeConstant(*r, i - first + firstOfRegion, *n->inputs[i]));
                changed = changed || taken;
            }
    }
    return changed;
}

} // namespace tw::passes
