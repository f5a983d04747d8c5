// SPDX-License-Identifier: Apache-2.0
// Turns quotients by powers of two into products.
//   x / 8  ->  x * 0.125        each element of the constant for itself
// The result is the same number: both are rounded once from what is exactly the same. Other divisors stay. Exponents go from
// -14 to 14, which FP16 has both ways.
// Expects Form::kFused. Stands behind the fusions that know quotients by their spelling, before fuse_pointwise. Leaves alone:
// integers, constants that refit reaches, products of which an element would be no power of two.
#include <optional>

#include "base/round.h"
#include "ops/elementwise/op.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "recipe/recipes.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using Operation = ops::elementwise::Operation;

constexpr int kMostHalfExponent = 14;

// Of the constant's elements; nothing where one is no power of two.
std::optional<Tensor> reciprocalsOf(ir::Value const& v)
{
    TensorRef const t = constantOf(&v);
    if (!t.data || t.count() == 0)
        return std::nullopt;
    for (int64_t i = 0; i < t.count(); ++i)
        if (!isPowerOfTwo(t.get(i), kMostHalfExponent))
            return std::nullopt;
    Tensor out(v.type, t.dims);
    for (int64_t i = 0; i < t.count(); ++i)
        out.ref().set(i, 1 / t.get(i));
    return out;
}

} // namespace

Result<bool> multiplyByReciprocals(ir::Graph& g, PassContext const& ctx)
{
    auto const isQuotient = [](ir::Node const& n) {
        return is(&n, Operation::kDiv) && !n.body && isFloating(n.outputs[0]->type);
    };
    return rewriteEach(g, isQuotient, [&](ir::Node& n) -> Result<bool> {
        ir::Value const& divisor = *n.inputs[1];
        auto const factors = ctx.recipes && ctx.recipes->reaches(divisor) ? std::nullopt : reciprocalsOf(divisor);
        if (!factors)
            return false;
        n.attrs = ops::elementwise::Attrs(Operation::kProd).clone();
        n.inputs[1] = g.addConstant(divisor.name + ".reciprocal", divisor.type, factors->dims(), factors->data());
        return true;
    });
}

} // namespace tw::passes
