// SPDX-License-Identifier: Apache-2.0
// A carried value that no trip changes becomes a capture.
//   before: loop(n) { f(n), next n = n }, g(last n)        after: loop(captures n) { f(n) }, g(n)
// tf2onnx carries so what a loop of TensorFlow gets from around it: sizes, weights. Any form. Stands in front of
// hoist_invariants and constants_into_regions, for which a capture is what does not change; remove_dead takes the
// carried value. Leaves alone: what hands on an output of the graph.
#include <algorithm>

#include "ir/op_def.h"
#include "ops/loop/op.h"
#include "passes/list.h"
#include "passes/rewrite.h"
#include "passes/strided_view.h"

namespace tw::passes {

namespace {

bool isUnchanged(ir::Node const& loop, size_t k)
{
    ir::Graph const& body = *loop.regions[1];
    ir::Value* const next = body.outputs[k];
    return rootOf(next) == body.inputs[k] && next->shape == body.inputs[k]->shape;
}

Result<bool> capture(ir::Graph& g, ir::Node& loop, size_t k)
{
    ops::loop::Layout const at(loop.attrsAs<ops::loop::Attrs>());
    ir::Value* const initial = loop.inputs[k];
    auto const& regions = loop.regions;
    if (!isUnchanged(loop, k))
        return false;
    bool const isReadBehind = g.useCount(loop.outputs[k]) != 0;
    bool changed = isReadBehind && replaceValue(g, loop.outputs[k], initial);
    // Its next value reads it once, where there is no node between.
    bool const isRead =
        regions[0]->useCount(regions[0]->inputs[k]) != 0 ||
        regions[1]->useCount(regions[1]->inputs[k]) != (regions[1]->outputs[k] == regions[1]->inputs[k]);
    if (!isRead)
        return changed;
    loop.inputs.resize(std::max(loop.inputs.size(), at.firstCapture()));
    loop.inputs.push_back(initial);
    for (auto const& r : regions) {
        ir::Value* const carried = r->inputs[k];
        r->replaceAllUses(carried, r->addInput(carried->name, carried->type, carried->shape));
    }
    regions[1]->outputs[k] = regions[1]->inputs[k];
    return true;
}

} // namespace

Result<bool> captureCarried(ir::Graph& g, PassContext const&)
{
    return changeEach(g, isLoop, [&](ir::Node& loop) -> Result<bool> {
        bool changed = false;
        for (size_t k = 0; k < size_t(loop.attrsAs<ops::loop::Attrs>().carried); ++k) {
            TW_ASSIGN(bool const captured, capture(g, loop, k));
            changed = changed || captured;
        }
        return changed;
    });
}

} // namespace tw::passes
