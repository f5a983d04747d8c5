// SPDX-License-Identifier: Apache-2.0
// Gives regions constants of their own for captures that are constants outside.
//   before: loop(..., w) with w a constant        after: loop(...), and w is a constant of the body
// Any form. Stands beside fold_constants, which then folds what the region makes of it; remove_dead takes the capture
// away. The bytes are shared. Captures whose shape the region knows only as symbols stay.
#include "ir/op_def.h"
#include "ops/loop/op.h"
#include "passes/list.h"

namespace tw::passes {

namespace {

bool takeConstant(ir::Graph& region, size_t input, ir::Value const& outer)
{
    ir::Value* const inner = region.inputs[input];
    if (region.useCount(inner) == 0 || !ir::isStatic(inner->shape))
        return false;
    ir::Value* const constant = region.addConstant(outer.name, outer.type, ir::extentsOf(outer.shape), outer.constant);
    constant->quantization = outer.quantization;
    region.replaceAllUses(inner, constant);
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
            for (auto& r : n->regions)
                if (n->inputs[i]->isConstant())
                    changed = takeConstant(*r, i - first + firstOfRegion, *n->inputs[i]) || changed;
    }
    return changed;
}

} // namespace tw::passes
