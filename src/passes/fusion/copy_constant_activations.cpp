// SPDX-License-Identifier: Apache-2.0
// A constant that a convolution with computed filters reads as its activation becomes a value that a node makes, which can lie in the
// formats that fast kernels read; constants stay linear.
//   before: convolution(const x, w)        after: convolution(identity(x), w)
// Expects Form::kFused: stands after fold_constants, which would undo it and which has computed what is constant altogether.
#include "ops/convolution/op.h"
#include "ops/identity/op.h"
#include "passes/list.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

Result<bool> copyConstantActivations(ir::Graph& g, PassContext const&)
{
    return changeEach(
        g, [](ir::Node const& n) { return n.op == &ops::convolution::def() && n.inputs[0]->isConstant(); },
        [&](ir::Node& n) -> Result<bool> {
            ir::Value* const x = n.inputs[0];
            TW_ASSIGN(ir::Node * copy, g.addNode(ops::identity::def(), std::make_unique<ops::identity::Attrs>(x->type),
                                                 {x}, x->name + " [copied]", {}, g.positionOf(&n)));
            copy->layers = n.layers;
            n.inputs[0] = copy->outputs[0];
            return true;
        });
}

} // namespace tw::passes
