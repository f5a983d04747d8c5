// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/layer_facts.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops {

void inspect_matrix_multiply(LayerFacts& facts)
{
    auto const& a = facts.attrs<matrix_multiply::Attrs>();
    if (matrix_multiply::hasNorm(facts.node) || a.gated)
        facts.kind("Myelin", ""); // 8.5 gives such a subgraph to another compiler
    else if (a.connected)
        addFullyConnected(facts, a.epilogue);
    else
        addProduct(facts, a);
}

} // namespace tw::ops
