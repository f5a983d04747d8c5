// SPDX-License-Identifier: Apache-2.0
// A constant that a convolution reads as its activation (its filters are computed then) or adds to its sums (learned positions)
// becomes a value that a node makes, which can lie in the formats that fast kernels read; constants stay linear.
//   before: convolution(const x, w)             after: convolution(identity(x), w)
//   before: convolution(x, w, b, const r)       after: convolution(x, w, b, identity(r))
// Expects Form::kFused: stands after fold_constants, which would undo it and which has computed what is constant altogether.
#include "ops/convolution/op.h"
#include "ops/identity/op.h"
#include "passes/list.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

Result<bool> copyConstantActivations(ir::Graph& g, PassContext const&)
{
    auto const isCopied = [](ir::Node const& n, size_t i) {
        return i < n.inputs.size() && n.inputs[i] && n.inputs[i]->isConstant() && isFloating(n.inputs[i]->type);
    };
    return changeEach(
        g,
        [&](ir::Node const& n) {
            return n.op == &ops::convolution::def() && (isCopied(n, 0) || isCopied(n, ops::Epilogue::kResidual));
        },
        [&](ir::Node& n) -> Result<bool> {
            for (size_t const i : {size_t(0), size_t(ops::Epilogue::kResidual)}) {
                if (!isCopied(n, i))
                    continue;
                ir::Value* const x = n.inputs[i];
                TW_ASSIGN(ir::Node * copy,
                          g.addNode(ops::identity::def(), std::make_unique<ops::identity::Attrs>(x->type), {x},
                                    x->name + " [copied]", {}, g.positionOf(&n)));
                copy->layers = n.layers;
                n.inputs[i] = copy->outputs[0];
            }
            return true;
        });
}

} // namespace tw::passes
