// SPDX-License-Identifier: Apache-2.0
// If. Tensors from around enter a branch through an input layer, so that the branch runs only when it is taken; with a
// condition that is known at import the branch becomes part of the graph around.
#include "onnx/importer.h"
#include "onnx/integers.h"

namespace tw::onnx {

namespace {

constexpr char const* kBranches[] = {"then_branch", "else_branch"};

void checkBranches(ImportContext const& ctx)
{
    for (char const* attr : kBranches) {
        if (ctx.nbGraphInputs(attr) != 0)
            ctx.invalid(fmt::format("graph '{}' must have no inputs, it has {}", attr, ctx.nbGraphInputs(attr)));
        if (ctx.nbGraphOutputs(attr) < ctx.nbOutputs())
            ctx.invalid(fmt::format("graph '{}' gives {} outputs, the node has {}", attr, ctx.nbGraphOutputs(attr),
                                    ctx.nbOutputs()));
    }
}

void importTaken(ImportContext& ctx, bool condition)
{
    auto const outputs = ctx.importGraph(kBranches[condition ? 0 : 1], {});
    for (int i = 0; i < ctx.nbOutputs(); ++i)
        ctx.setOutput(i, outputs[size_t(i)]);
}

bool mayBeEqual(Dims const& a, Dims const& b)
{
    bool equal = a.nbDims == b.nbDims;
    for (int i = 0; equal && i < a.nbDims; ++i)
        equal = a.d[i] == b.d[i] || a.d[i] < 0 || b.d[i] < 0;
    return equal;
}

void importIf(ImportContext& ctx)
{
    checkBranches(ctx);
    if (ctx.isConstant(0))
        return importTaken(ctx, ctx.input(0).constant().intAt(0) != 0);
    ITensor& condition = ctx.asScalar(ctx.tensor(0));
    if (condition.getType() != DataType::kBOOL)
        ctx.invalid("the condition is " + std::string(typeName(condition.getType())) + ", it must be BOOL");
    nvinfer1::IIfConditional* made = ctx.network().addIfConditional();
    if (!made)
        ctx.refused("the network refused a conditional");
    made->setName(ctx.name().c_str());
    ctx.added(made->setCondition(condition));
    auto enter = [&](ITensor& t) -> ITensor& { return ctx.out(ctx.added(made->addInput(t))); };
    auto const then = ctx.importGraph(kBranches[0], {}, enter), otherwise = ctx.importGraph(kBranches[1], {}, enter);
    for (int i = 0; i < ctx.nbOutputs(); ++i) {
        if (!ctx.wantsOutput(i))
            continue;
        ctx.check(then[size_t(i)].isOneTensor() && otherwise[size_t(i)].isOneTensor(),
                  "its condition must be an initializer! (Branches give sequences or optional values.)");
        ITensor &a = plainTensor(ctx, then[size_t(i)]), &b = plainTensor(ctx, otherwise[size_t(i)]);
        if (a.getType() != b.getType() || !mayBeEqual(a.getDimensions(), b.getDimensions()))
            ctx.fail(
                fmt::format("output {} is {}{} in then_branch and {}{} in else_branch; type and shape must be equal", i,
                            typeName(a.getType()), describe(a.getDimensions()), typeName(b.getType()),
                            describe(b.getDimensions())));
        ctx.setOutput(i, Value(ctx.out(ctx.added(made->addOutput(a, b))), then[size_t(i)].integers()));
    }
}

} // namespace

void register_conditional(ImporterMap& map)
{
    map.add("If", importIf);
}

} // namespace tw::onnx
