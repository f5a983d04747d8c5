// SPDX-License-Identifier: Apache-2.0
#include "ops/unary/op.h"

#include "families/elementwise/layer_facts.h"
#include "families/elementwise/steps.h"
#include "ir/signs.h"
#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::unary {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    Operation const operation = ctx.attrs<Attrs>().operation;
    if (int(operation) < 0 || int(operation) >= kOperationCount)
        return ctx.error("there is no unary operation {} (allowed: 0..{})", int(operation), kOperationCount - 1);
    std::string const name = kOperationNames[int(operation)];
    DataType const type = ctx.type(0);
    if (operation == Operation::kNot) {
        if (type != DataType::kBool)
            return ctx.error(ctx.describe(0) + " of operation not must be b");
    } else if (!isReal(type) && !(operation == Operation::kSign && type == DataType::kInt32)) {
        std::string const cure = type != DataType::kInt32       ? "; convert it with an identity layer"
                                 : operation == Operation::kNeg ? "; for i32 use element-wise 0 - x"
                                 : operation == Operation::kAbs ? "; for i32 use element-wise max(x, 0 - x)"
                                                                : "; convert it with an identity layer";
        return ctx.error(ctx.describe(0) + " of operation " + name + " must be f32, f16 or i8" +
                         (operation == Operation::kSign ? " or i32" : "") + cure);
    }
    ctx.output(0, type, ctx.shape(0));
    if (auto const* content = ctx.content(0)) {
        std::vector<ir::Dim> out;
        for (ir::Dim const& x : *content)
            out.push_back(operation == Operation::kNot
                              ? ir::Dim(1) - x
                              : ir::Dim::make(ir::DimOp::kLess, 0, x) - ir::Dim::make(ir::DimOp::kLess, x, 0));
        ctx.outputContent(0, std::move(out));
    }
    return {};
}

void domain(ir::Node const& node, int, Domain& d)
{
    using enum Operation;
    Operation const o = node.attrsAs<Attrs>().operation;
    if (!isFloating(node.inputs[0]->type))
        d = Domain{-128, 127, true, false};
    else if (o == kLog || o == kSqrt || o == kRecip)
        d = Domain{0.1, 4, false, false};
    else if (o == kAcosh)
        d = Domain{1, 5, false, false};
    else if (o == kAtanh) // steep near 1: a half's rounding of x is not the kernel's error, but the output's size is
        d = Domain{-0.95, 0.95, false, false};
    else if (o != kAsin && o != kAcos && o != kTan)
        d = Domain{-4, 4, false, false};
}

void inspect(LayerFacts& facts)
{
    constexpr char const* kNames[kOperationCount] = {
        "Exp",  "Log",  "Sqrt",  "Recip", "Abs",   "Neg",  "Sin",   "Cos", "Tan", "Sinh", "Cosh", "Asin",
        "Acos", "Atan", "Asinh", "Acosh", "Atanh", "Ceil", "Floor", "Erf", "Not", "Sign", "Round"};
    addFunction(facts, kNames[int(facts.attrs<Attrs>().operation)]);
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "unary",
    TW_OP_PARTS(Attrs),
    .domain = domain,
    .isNonNegative =
        [](ir::Node const& n, ir::Signs& signs) {
            std::optional<StepCode> const code = stepOf(n.attrsAs<Attrs>().operation);
            return code && isNonNegative({*code, 0}, ir::ofFirstInput(n, signs), false);
        },
    .inspect = inspect,
    .isElementwise = true,
    .isCheap = true,
    .computesShapes = true,
};

} // namespace tw::ops::unary
