// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/layer_facts.h"
#include "ops/unary/op.h"

namespace tw::ops {

void inspect_unary(LayerFacts& facts)
{
    constexpr char const* kNames[unary::kOperationCount] = {
        "Exp",  "Log",  "Sqrt",  "Recip", "Abs",   "Neg",  "Sin",   "Cos", "Tan", "Sinh", "Cosh", "Asin",
        "Acos", "Atan", "Asinh", "Acosh", "Atanh", "Ceil", "Floor", "Erf", "Not", "Sign", "Round"};
    addFunction(facts, kNames[int(facts.attrs<unary::Attrs>().operation)]);
}

} // namespace tw::ops
