// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/op.h"
#include "ops/layer_norm/op.h"
#include "ops/matrix_multiply/op.h"
#include "pass_test.h"

namespace tw::test {

namespace {

constexpr int64_t kStepWidth = 16, kStepInner = 24;

// A norm, a product with a bias, and a residual behind another product.
struct NormedStep
{
    ir::Dim rows = 1;
    DataType type = DataType::kHalf;
    int64_t axis = 2;
    std::optional<DataType> asked; // for the norm, by the user
};

void makeStep(GraphMaker& m, NormedStep const& o = {})
{
    ir::Value* const x = m.input("x", {1, o.rows, kStepWidth}, o.type);
    auto constant = [&](char const* name, Extents const& dims) { return m.constant(name, dims, {}, o.type); };
    auto apply = [&](ir::Value* a, ir::Value* b, char const* name) {
        return m.add(ops::elementwise::def(), ops::elementwise::Attrs(ops::elementwise::Operation::kSum), {a, b}, name);
    };
    auto product = [&](ir::Value* a, ir::Value* w, char const* name) {
        return m.add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs(), {a, w}, name);
    };
    ops::layer_norm::Attrs a;
    a.axis = o.axis;
    ir::Value* y =
        m.add(ops::layer_norm::def(), a, {x, constant("gamma", {kStepWidth}), constant("beta", {kStepWidth})}, "norm");
    if (o.asked)
        y->producer->precision = {*o.asked, true};
    y = apply(product(y, constant("up", {1, kStepWidth, kStepInner}), "fc"), constant("b", {1, 1, kStepInner}), "bias");
    y = apply(product(y, constant("down", {1, kStepInner, kStepWidth}), "proj"), x, "residual");
    m.output(y, "y");
}

std::string afterPasses(NormedStep const& o, ir::SymbolTable const* firstProfile = nullptr)
{
    GraphMaker m;
    makeStep(m, o);
    if (!o.rows.isConst())
        m.g.symbols["S"].range = {1, 512};
    NullLog log;
    auto const changed =
        passes::run(m.g, {{.target = kGpu, .permits = {Permission::kHalf}, .firstProfile = firstProfile}, log});
    EXPECT_TRUE(changed.ok()) << changed.error().message;
    return nodesOf(m.g);
}

bool isFused(std::string const& nodes)
{
    return nodes.find("norm + fc + bias:matrix_multiply") != std::string::npos;
}

} // namespace

TEST(FuseNormMatmul, InTheWholePipeline)
{
    EXPECT_TRUE(isFused(afterPasses({}))) << afterPasses({});
    EXPECT_TRUE(isFused(afterPasses({.type = DataType::kFloat}))) << "FP32 that may be FP16";
    GraphMaker m;
    makeStep(m, {.rows = 3, .type = DataType::kFloat});
    PassCheck check{.tolerance = 1e-2, .permits = {Permission::kHalf}, .target = kGpu};
    checkPass(m.g, wholePipeline, true, check);
    EXPECT_TRUE(isFused(nodesOf(m.g))) << nodesOf(m.g);
}

// Prompts have hundreds of rows, the steps in front of them one.
TEST(FuseNormMatmul, TheFirstProfileDecides)
{
    NormedStep const step{.rows = ir::Dim::symbol("S")};
    ir::SymbolTable const one{{"S", {.range = {1, 1}}}}, many{{"S", {.range = {1, 17}}}};
    EXPECT_FALSE(isFused(afterPasses(step)));
    EXPECT_TRUE(isFused(afterPasses(step, &one))) << afterPasses(step, &one);
    EXPECT_FALSE(isFused(afterPasses(step, &many)));
}

TEST(FuseNormMatmul, LeavesOthersAlone)
{
    EXPECT_FALSE(isFused(afterPasses({.rows = 17})));
    EXPECT_FALSE(isFused(afterPasses({.axis = 1})));
    EXPECT_FALSE(isFused(afterPasses({.asked = DataType::kFloat})));
}

} // namespace tw::test
