// SPDX-License-Identifier: Apache-2.0
// The problem that a tactic sees for an op's case.
#pragma once

#include <vector>

#include "interp/interp.h"
#include "ir/shape_values.h"
#include "support/op_case.h"
#include "tactic/tactic.h"

namespace tw::test {

// `outputs`: what the reference made.
inline ops::Problem caseProblem(CaseGraph const& g, std::vector<Tensor> const& outputs)
{
    ops::Problem p;
    p.node = g.node;
    for (size_t i = 0; i < g.nodeInputs.size(); ++i) {
        TensorRef const& t = g.nodeInputs[i];
        ir::Value const* v = g.node->inputs[i];
        ops::TensorSpec spec;
        spec.type = t.type;
        spec.dims = spec.maxDims = t.dims;
        spec.constant = v && v->constant ? v->constant->data.get() : nullptr;
        if (ir::isShapeInput(*g.node, i))
            spec.contents = t;
        spec.present = t.data != nullptr;
        p.inputs.push_back(spec);
    }
    for (Tensor const& t : outputs) {
        ops::TensorSpec spec;
        spec.type = t.type();
        spec.dims = spec.maxDims = t.dims();
        spec.present = true;
        p.outputs.push_back(spec);
    }
    return p;
}

// With outputs as the op infers them.
inline Result<ops::Problem> caseProblem(CaseGraph const& g)
{
    ops::Problem p = caseProblem(g, {});
    TW_ASSIGN(auto const shapes, interp::inferConcrete(*g.node, g.nodeInputs));
    for (auto const& s : shapes) {
        ops::TensorSpec spec;
        spec.type = s.type;
        spec.dims = spec.maxDims = s.dims;
        spec.present = true;
        p.outputs.push_back(spec);
    }
    return p;
}

} // namespace tw::test
