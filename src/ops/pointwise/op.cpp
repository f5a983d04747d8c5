// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/op.h"

#include <algorithm>

#include "families/elementwise/activate.h"
#include "families/elementwise/layer_facts.h"
#include "ir/signs.h"
#include "ops/pointwise/jit_program.h"
#include "tactic/broadcast.h"
#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::pointwise {

static_assert(kMaxInputs == kernels::jit::kMaxPointwiseInputs);

PointwiseSpec specOf(Attrs const& a)
{
    PointwiseSpec spec;
    for (size_t i = 0; i < a.inputs.size() / kNumbersOfInput; ++i) {
        auto const kind = InputKind(a.inputs[i * kNumbersOfInput]);
        using K = PointwiseInput::Kind;
        spec.inputs.push_back({int(i),
                               kind == InputKind::kScalar    ? K::kScalar
                               : kind == InputKind::kChannel ? K::kChannel
                                                             : K::kBroadcast,
                               int(a.inputs[i * kNumbersOfInput + 1])});
    }
    spec.program.inputs = int(spec.inputs.size());
    spec.program.steps = stepsOf(a.steps, a.parameters);
    return spec;
}

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    int const inputs = ctx.inputCount();
    if (std::string why = checkStepNumbers(a.steps, a.parameters); !why.empty())
        return ctx.error(why);
    if (a.inputs.size() != size_t(inputs) * kNumbersOfInput)
        return ctx.error("the list of inputs ({} numbers) does not fit the node's {} inputs", a.inputs.size(), inputs);
    int broadcast = 0;
    for (int i = 0; i < inputs; ++i) {
        int64_t const kind = a.inputs[size_t(i) * kNumbersOfInput];
        if (kind < 0 || kind > int64_t(InputKind::kChannel))
            return ctx.error("input {} has kind {} (allowed: 0..2)", i, kind);
        if (!ctx.has(i))
            return ctx.error("input {} is not given", i);
        if (!isReal(ctx.type(i)))
            return ctx.error(ctx.describe(i) + " must be f32, f16 or i8");
        if (kind == int64_t(InputKind::kBroadcast) && broadcast++ != i)
            return ctx.error("inputs that are broadcast must come first; input {} does not", i);
    }
    if (!isReal(a.outputType))
        return ctx.error("output type {} is not possible (allowed: 0, f32, 1, f16, and 2, i8)", int(a.outputType));
    if (broadcast == 0)
        return ctx.error("no input is broadcast: nothing gives the shape");
    if (std::string why = checkExpression(a); !why.empty())
        return ctx.error(why);
    TW_ASSIGN(ir::Shape y, broadcastInputs(ctx, broadcast));
    for (int i = broadcast; i < inputs; ++i) {
        bool const scalar = a.inputs[size_t(i) * kNumbersOfInput] == int64_t(InputKind::kScalar);
        int64_t const axis = a.inputs[size_t(i) * kNumbersOfInput + 1];
        if (!scalar && (axis < 0 || axis >= int64_t(y.size())))
            return ctx.error("axis {} of {} is out of range (allowed: 0..{})", axis, ctx.describe(i),
                             int64_t(y.size()) - 1);
        ir::Dim const count = ir::volume(ctx.shape(i)), want = scalar ? ir::Dim(1) : y[size_t(axis)];
        if (count.isConst() && want.isConst() && !(count == want))
            return ctx.error(ctx.describe(i) + " has " + count.str() + " elements; the expression needs " + want.str());
    }
    ctx.output(0, a.outputType, std::move(y));
    return {};
}

void domain(ir::Node const& node, int input, Domain& d)
{
    DataType const type = node.inputs[size_t(input)]->type;
    d = isQuantized(type) ? Domain::all(type) : Domain{-3, 3, false, false};
}

} // namespace

std::string checkExpression(Attrs const& a)
{
    return kernels::jit::checkProgram(specOf(a).program);
}

bool isQuantized(ir::Node const& node)
{
    auto is8 = [](ir::Value const* v) { return v && isQuantized(v->type); };
    return std::any_of(node.inputs.begin(), node.inputs.end(), is8) || is8(node.outputs[0]);
}

namespace {

void inspect(LayerFacts& facts)
{
    auto const& a = facts.attrs<Attrs>();
    size_t const inputs = a.inputs.size() / kNumbersOfInput;
    std::vector<std::string> literals;
    std::vector<std::string> const operations = operationsOf(stepsOf(a.steps, a.parameters), inputs, &literals);
    addExpression(facts, inputs, operations, literals);
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "pointwise",
    TW_OP_PARTS(Attrs),
    .inputs = {1, kMaxInputs},
    .domain = domain,
    // Rounding errors of several steps add up.
    .tolerance =
        [](ir::Node const&, DataType type) {
            return isNarrowFloat(type) ? Tolerance::forType(type) : Tolerance{5e-5, 5e-5};
        },
    .isNonNegative =
        [](ir::Node const& n, ir::Signs& signs) {
            auto const& a = n.attrsAs<Attrs>();
            return isNonNegative(stepsOf(a.steps, a.parameters), n.inputs.size(),
                                 [&](size_t i) { return signs.isNonNegative(*n.inputs[i]); });
        },
    .inspect = inspect,
    .isCheap = true,
    .mixesFloats = true,
    .computesShapes = true,
};

} // namespace tw::ops::pointwise
