// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/op.h"

#include "families/elementwise/layer_facts.h"
#include "families/elementwise/steps.h"
#include "ir/signs.h"
#include "tactic/broadcast.h"
#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::elementwise {

namespace {

using ir::Dim;
using ir::DimOp;

// One element of shape arithmetic; nothing when the value cannot be told.
std::optional<Dim> combine(ir::InferContext const& ctx, Operation operation, Dim const& a, Dim const& b)
{
    switch (operation) {
    case Operation::kSum:
        return a + b;
    case Operation::kSub:
        return a - b;
    case Operation::kProd:
    case Operation::kAnd:
        return a * b;
    case Operation::kMax:
    case Operation::kOr:
        return max(a, b);
    case Operation::kMin:
        return min(a, b);
    case Operation::kXor:
        return a + b - Dim(2) * a * b;
    case Operation::kEqual:
        return Dim::make(DimOp::kEqual, a, b);
    case Operation::kGreater:
        return Dim::make(DimOp::kLess, b, a);
    case Operation::kLess:
        return Dim::make(DimOp::kLess, a, b);
    case Operation::kDiv:
    case Operation::kFloorDiv: {
        if (b.is(0))
            return Dim(0);
        ir::Range const ra = ctx.range(a), rb = ctx.range(b);
        if (rb.lo <= 0 && rb.hi >= 0)
            return std::nullopt; // the divisor may be 0
        bool const positive = ra.lo >= 0 && rb.lo > 0;
        if (operation == Operation::kFloorDiv || positive)
            return floorDiv(a, b);
        return max(floorDiv(a, b), 0) + min(ceilDiv(a, b), 0); // truncation
    }
    case Operation::kPow:
        break;
    }
    return std::nullopt;
}

void inferContent(ir::InferContext& ctx, Operation operation, ir::Shape const& shape)
{
    auto const *a = ctx.content(0), *b = ctx.content(1);
    if (!a || !b)
        return;
    ContentMap const map = contentMap(ctx, shape, 2);
    if (!map.known)
        return;
    std::vector<Dim> out;
    for (size_t i = 0; i < map.from[0].size(); ++i) {
        size_t const ai = size_t(map.from[0][i]), bi = size_t(map.from[1][i]);
        if (ai >= a->size() || bi >= b->size())
            return;
        auto element = combine(ctx, operation, (*a)[ai], (*b)[bi]);
        if (!element)
            return;
        if (element->isConst()) // as an i32 store does
            element = Dim(int64_t(int32_t(uint32_t(uint64_t(element->value())))));
        out.push_back(std::move(*element));
    }
    ctx.outputContent(0, std::move(out));
}

Result<void> infer(ir::InferContext& ctx)
{
    Operation const operation = ctx.attrs<Attrs>().operation;
    if (int(operation) < 0 || int(operation) >= kOperationCount)
        return ctx.error("there is no element-wise operation {} (allowed: 0..{})", int(operation), kOperationCount - 1);
    std::string const name = kOperationNames[int(operation)];
    DataType const a = ctx.type(0), b = ctx.type(1);
    if (a != b && !(isFloating(a) && isFloating(b)))
        return ctx.error(ctx.describe(0) + " and " + ctx.describe(1) + " must have one type, or be f32 and f16");
    for (int i = 0; i < 2; ++i) {
        DataType const t = ctx.type(i);
        if (isLogic(operation)) {
            if (t != DataType::kBool)
                return ctx.error(ctx.describe(i) + " of operation " + name + " must be b");
        } else if (!isReal(t) && !(t == DataType::kInt32 && operation != Operation::kPow)) {
            return ctx.error(ctx.describe(i) + " of operation " + name + " must be f32, f16" +
                             (operation == Operation::kPow ? " or i8" : ", i8 or i32") +
                             "; convert it with an identity layer");
        }
    }
    TW_ASSIGN(ir::Shape shape, broadcastInputs(ctx, 2));
    DataType type = a == b ? a : DataType::kFloat;
    if (isComparison(operation))
        type = DataType::kBool;
    ctx.output(0, type, shape);
    inferContent(ctx, operation, shape);
    return {};
}

void domain(ir::Node const& node, int i, Domain& d)
{
    DataType const type = node.inputs[0]->type;
    bool const compares = isComparison(node.attrsAs<Attrs>().operation);
    if (isQuantized(type) && !compares)
        d = Domain::all(type);
    else if (isFloating(type) && node.attrsAs<Attrs>().operation == Operation::kPow)
        d = i == 0 ? Domain{0.1, 2, false, false} : Domain{-2, 2, false, false};
    else if (isReal(type) && compares)
        d = Domain{-3, 3, true, false}; // so that equal elements occur
}

void inspect(LayerFacts& facts)
{
    constexpr char const* kNames[kOperationCount] = {"Sum",      "Prod", "Max", "Min", "Sub",   "Div",     "Pow",
                                                     "FloorDiv", "And",  "Or",  "Xor", "Equal", "Greater", "Less"};
    std::string const name = kNames[int(facts.attrs<Attrs>().operation)];
    DataType const type = facts.node.outputs[0]->type;
    if (isFloating(type)) {
        addFunction(facts, name);
    } else { // integers and truth values stay out of expressions
        facts.kind("ElementWise");
        facts.add("Operation", name);
    }
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "elementwise",
    TW_OP_PARTS(Attrs),
    .inputs = {2, 2},
    .domain = domain,
    .isNonNegative =
        [](ir::Node const& n, ir::Signs& signs) {
            std::optional<StepCode> const code = stepOf(n.attrsAs<Attrs>().operation);
            return code && isNonNegative({*code, 0, 1}, signs.areNonNegative(n, 1), signs.isNonNegative(*n.inputs[1]));
        },
    .inspect = inspect,
    .isElementwise = true,
    .isCheap = true,
    .computesShapes = true,
};

} // namespace tw::ops::elementwise
