// SPDX-License-Identifier: Apache-2.0
#include "ops/nbit_product/op.h"

#include <algorithm>
#include <cmath>

#include "ir/infer.h"
#include "tactic/domain.h"
#include "tactic/layer_facts.h"
#include "tactic/registry.h"

namespace tw::ops::nbit_product {

namespace {

using ir::Dim;

constexpr int64_t kMostWidth = int64_t(1) << 31;

// Input i has these dimensions where they are known.
Result<void> checkShape(ir::InferContext& ctx, int i, std::initializer_list<Dim> dims, char const* form)
{
    ir::Shape const& shape = ctx.shape(i);
    bool fits = shape.size() == dims.size();
    for (size_t d = 0; fits && d < dims.size(); ++d) {
        Dim const &is = shape[d], &wanted = dims.begin()[d];
        fits = !is.isConst() || !wanted.isConst() || is.value() == wanted.value();
    }
    return fits ? Result<void>() : ctx.error("{} must be {}", ctx.describe(i), form);
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (a.bits != 2 && a.bits != 4 && a.bits != 8)
        return ctx.error("weights of {} bits are not known (allowed: 2, 4, 8)", a.bits);
    if (a.k < 1 || a.k > kMostWidth || a.block < 16 || a.block > kMostWidth || a.block % 16 != 0)
        return ctx.error("blocks of {} of {} products; a block must be a multiple of 16, and there must be products",
                         a.block, a.k);
    if (!isFloating(ctx.type(kX)) || ctx.rank(kX) < 1)
        return ctx.error("{} must be f32 or f16 with at least one dimension", ctx.describe(kX));
    if (Dim const& k = ctx.shape(kX).back(); k.isConst() && k.value() != a.k)
        return ctx.error("rows of {} must have {} numbers", ctx.describe(kX), a.k);
    if (ctx.type(kWeights) != DataType::kInt32)
        return ctx.error("weights {} must be i32", ctx.describe(kWeights));
    if (!isFloating(ctx.type(kScales)) || ctx.rank(kScales) != 2)
        return ctx.error("scales {} must be f32 or f16 [n, {}]", ctx.describe(kScales), a.blocks());
    Dim const n = ctx.shape(kScales)[0];
    TW_TRY(checkShape(ctx, kScales, {n, a.blocks()}, "[n, blocks]"));
    TW_TRY(checkShape(ctx, kWeights, {n, a.blocks(), a.words()}, "[n, blocks, block * bits / 32], n as of the scales"));
    if (ctx.has(kZeros)) {
        TW_TRY(checkShape(ctx, kZeros, {n, a.blocks()}, "[n, blocks], as the scales"));
        if (ctx.type(kZeros) != ctx.type(kScales))
            return ctx.error("zeros {} must have the type of the scales", ctx.describe(kZeros));
    }
    if (ctx.has(kBias)) {
        TW_TRY(checkShape(ctx, kBias, {n}, "[n], n as of the scales"));
        if (ctx.type(kBias) != ctx.type(kX))
            return ctx.error("bias {} must have the type of {}", ctx.describe(kBias), ctx.describe(kX));
    }
    if (ctx.has(kGroups)) {
        TW_TRY(checkShape(ctx, kGroups, {a.k}, "[k]"));
        if (ctx.type(kGroups) != DataType::kInt32)
            return ctx.error("groups {} must be i32", ctx.describe(kGroups));
    }
    ir::Shape y = ctx.shape(kX);
    y.back() = n;
    ctx.output(0, ctx.type(kX), std::move(y));
    return {};
}

// Weights have any bits, zeros are numbers that weights may have.
void domain(ir::Node const& node, int input, Domain& d)
{
    auto const& a = node.attrsAs<Attrs>();
    if (input == kWeights)
        d = Domain::all(DataType::kInt32);
    else if (input == kScales)
        d = {1. / 64, 1. / 8};
    else if (input == kZeros)
        d = {0, 2 * a.middle() - 1, true};
    else if (input == kGroups)
        d = {0, double(a.blocks() - 1), true};
}

// Of x in 8 bits each number is wrong by 1/254 of the largest of its block at most, by 0.4 % of a usual one: so are sums, of which the worst of many
// is five times as bad. Those that came out small are so beside usual ones.
Tolerance tolerance(ir::Node const& node, DataType type)
{
    auto const& a = node.attrsAs<Attrs>();
    Tolerance t = Tolerance::forType(type);
    if (!a.roundsX)
        return t;
    double largest = 1. / 8; // of scales that are not known
    if (ir::Value const& scales = *node.inputs[kScales]; scales.constant) {
        int64_t const count = int64_t(scales.constant->data->sizeBytes()) / sizeOf(scales.type);
        TensorRef const values{scales.type, {count}, const_cast<void*>(scales.constant->data->data())};
        largest = 0;
        for (int64_t i = 0; i < count; ++i)
            largest = std::max(largest, std::fabs(values.get(i)));
    }
    constexpr double kLost = 0.02;
    t.absolute = std::max(t.absolute, kLost);
    t.scale = largest * a.middle() * std::sqrt(double(a.k)) /
              3; // x and weights have variances of a third of their squared range
    return t;
}

double operations(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    return 2. * double(in[kX].count()) * double(in[kScales].dims[0]);
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "nbit_product",
    TW_OP_PARTS(Attrs),
    .inputs = {kZeros, kInputs},
    .domain = domain,
    .tolerance = tolerance,
    .inspect = [](LayerFacts& facts) { facts.kind("Myelin", ""); }, // of which 8.5 has no layer
    .operations = operations,
};

} // namespace tw::ops::nbit_product
