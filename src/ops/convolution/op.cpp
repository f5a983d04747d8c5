// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution/op.h"

#include <algorithm>

#include "families/convolution/layer_facts.h"
#include "ir/signs.h"
#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::convolution {

namespace {

// The channels of y, from the input's and the kernel's.
Result<int64_t> outputChannels(ir::InferContext& ctx, Attrs const& a, int64_t c)
{
    ir::Shape const& w = ctx.shape(1);
    if (a.transposed) {
        if (a.groups < 1 || a.groups > INT32_MAX || c % a.groups != 0)
            return ctx.error("groups {} must divide the input channels {}", a.groups, c);
        if (w[0].value() != c)
            return ctx.error("kernel {} is for {} input channels, the input has {}", ctx.describe(1), w[0].str(), c);
        return ir::mulSat(w[1].value(), a.groups);
    }
    int64_t const k = w[0].value();
    if (a.groups < 1 || c % a.groups != 0 || k % a.groups != 0)
        return ctx.error("groups {} must divide the input channels {} and the output maps {}", a.groups, c, k);
    if (w[1].value() != c / a.groups)
        return ctx.error("kernel {} has {} channels in a group, the input has {} channels in {} groups",
                         ctx.describe(1), w[1].str(), c, a.groups);
    return k;
}

// How many products each sum has at most: input channels of a group and the window, which are known.
ir::Dim factorsOf(Attrs const& a, ir::Shape const& w)
{
    int64_t k = a.transposed ? w[0].value() / a.groups : w[1].value();
    for (size_t i = 2; i < w.size(); ++i)
        k = ir::mulSat(k, w[i].value());
    return ir::Dim(k);
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    int const windowRank = ctx.rank(1) - 2;
    if (windowRank != 2 && windowRank != 3)
        return ctx.error("kernel " + ctx.describe(1) + " must have rank 4 (2-D) or 5 (3-D)");
    if (ctx.rank(0) < windowRank + 2)
        return ctx.error("{} must have at least {} dimensions", ctx.describe(0), windowRank + 2);
    if (!isReal(ctx.type(0)))
        return ctx.error(ctx.describe(0) + " must be f32, f16 or i8");
    if (ctx.type(1) != ctx.type(0) || (ctx.has(2) && ctx.type(2) != biasType(ctx)))
        return ctx.error("input, kernel and bias must have one type (the bias of i8: f32), but they are " +
                         ctx.describe(0) + ", " + ctx.describe(1) + (ctx.has(2) ? ", " + ctx.describe(2) : ""));
    for (int i : {Epilogue::kGamma, Epilogue::kBeta})
        if (ctx.has(i))
            return ctx.error("a convolution takes no norm, but there is " + ctx.describe(i));
    for (auto const* list : {&a.strides, &a.dilations, &a.prePadding, &a.postPadding})
        if (int(list->size()) != windowRank)
            return ctx.error("strides, dilations and paddings need {} entries", windowRank);
    ir::Shape const &x = ctx.shape(0), &w = ctx.shape(1);
    size_t const channelAxis = x.size() - size_t(windowRank) - 1;
    if (!x[channelAxis].isConst())
        return ctx.error("the channel dimension of " + ctx.describe(0) + " must not be a wildcard");
    if (!w[0].isConst() || !w[1].isConst())
        return ctx.error("the channel dimensions of kernel " + ctx.describe(1) + " must not be wildcards");
    TW_ASSIGN(int64_t const k, outputChannels(ctx, a, x[channelAxis].value()));
    if (ctx.has(2) && !(ctx.rank(2) == 1 && ctx.shape(2)[0].is(k)))
        return ctx.error("bias {} must have shape [{}]", ctx.describe(2), k);
    ir::Shape y(x.begin(), x.begin() + int64_t(channelAxis));
    y.emplace_back(k);
    for (int i = 0; i < windowRank; ++i) {
        if (!w[2 + i].isConst())
            return ctx.error("the window of kernel " + ctx.describe(1) + " must not have wildcards");
        WindowParams const p = a.window(i, w[2 + i].value());
        if (std::string why = checkWindow(a.kind(), a.paddingMode, p); !why.empty())
            return ctx.error("window axis {}: {}", i, why);
        ir::Dim const out = windowOutput(a.kind(), a.paddingMode, x[channelAxis + 1 + i], p);
        if (std::string why = windowMisfit(a.kind(), x[channelAxis + 1 + i], out, p); !why.empty())
            return ctx.error("window axis {}: {}", i, why);
        y.push_back(out);
    }
    TW_ASSIGN(DataType const type, inferOutputType(ctx, a.epilogue, factorsOf(a, w)));
    ctx.output(0, type, std::move(y));
    return inferEpilogue(ctx, a.epilogue, ir::Dim(k));
}

Tolerance tolerance(ir::Node const& node, DataType type)
{
    auto const& a = node.attrsAs<Attrs>();
    ir::Value const& w = *node.inputs[1];
    if (sumsIntegers(node))
        return integerTolerance(a.epilogue, type);
    if (a.transposed || !w.constant)
        return epilogueTolerance(node, a.epilogue, type, [] { return 0.; });
    return epilogueTolerance(node, a.epilogue, type, [&] {
        int64_t const count = int64_t(w.constant->data->sizeBytes()) / sizeOf(w.type), filters = w.shape[0].value();
        TensorRef const values{w.type, {count}, const_cast<void*>(w.constant->data->data())};
        double largest = 0;
        for (int64_t k = 0; k < filters; ++k) {
            double squares = 0;
            for (int64_t i = k * count / filters; i < (k + 1) * count / filters; ++i)
                squares += values.get(i) * values.get(i);
            largest = std::max(largest, squares);
        }
        return largest;
    });
}

void domain(ir::Node const& node, int input, Domain& domain)
{
    auto const& a = node.attrsAs<Attrs>();
    integerDomain(node, a.epilogue, input, double(factorsOf(a, node.inputs[1]->shape).value()), domain);
}

// Every element of y sums over the channels of its group and the window; transposed, every element of x goes there.
double operations(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    TensorRef const& weights = in[1];
    TensorRef const& each = node.attrsAs<Attrs>().transposed ? in[0] : out[0];
    return 2.0 * double(each.count()) * double(weights.count()) / double(std::max<int64_t>(weights.dims[0], 1));
}

} // namespace

bool isBare(ir::Node const& node)
{
    return node.op == &def() && !node.attrsAs<Attrs>().epilogue.activation.any() &&
           !node.attrsAs<Attrs>().epilogue.hasSteps() && !hasInput(node, Epilogue::kResidual) && !node.body;
}

bool isBareForward(ir::Node const& node)
{
    return isBare(node) && !node.attrsAs<Attrs>().transposed;
}

namespace {

void inspect(LayerFacts& facts)
{
    auto const& a = facts.attrs<Attrs>();
    addConvolution(facts, a.kind(), a, a.epilogue);
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "convolution",
    TW_OP_PARTS(Attrs),
    .inputs = {2, Epilogue::kEnd},
    .domain = domain,
    .tolerance = tolerance,
    .isNonNegative = [](ir::Node const& n,
                        ir::Signs&) { return epilogueIsNonNegative(n, n.attrsAs<Attrs>().epilogue); },
    .inspect = inspect,
    .operations = operations,
};

} // namespace tw::ops::convolution
