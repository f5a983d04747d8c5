// SPDX-License-Identifier: Apache-2.0
#include "ir/text.h"
#include "ops/elementwise/op.h"
#include "ops/layer_norm/op.h"
#include "ops/matrix_multiply/op.h"
#include "pass_test.h"

namespace tw::test {

namespace {

// Of FP16 one row more than 12 MiB.
constexpr int64_t kNormColumns = 256, kInner = 2, kMostRows = (12 << 20) / (kNormColumns * 2);

struct NormedProduct
{
    bool shared = false;   // others read what lies between
    bool symbolic = false; // rows are not known
    int64_t rows = kMostRows + 1;
    DataType type = DataType::kHalf;
    int64_t axis = 1;
    bool beta = true;
    std::optional<DataType> asked; // for the norm, by the user
};

void makeProduct(GraphMaker& m, NormedProduct const& o = {})
{
    ir::Dim const rows = o.symbolic ? ir::Dim::symbol("N") : ir::Dim(o.rows);
    ir::Value *x = m.input("x", {rows, kInner}, o.type), *r = m.input("r", {rows, kNormColumns}, o.type);
    auto constant = [&](char const* name, Extents const& dims) { return m.constant(name, dims, {}, o.type); };
    ops::elementwise::Attrs const sum(ops::elementwise::Operation::kSum);
    ir::Value* y = m.add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs(),
                         {x, constant("w", {kInner, kNormColumns})}, "mm");
    y = m.add(ops::elementwise::def(), sum, {y, constant("b", {1, kNormColumns})}, "bias");
    y = m.add(ops::elementwise::def(), sum, {y, r}, "residual");
    ops::layer_norm::Attrs a;
    a.axis = o.axis;
    a.hasBeta = o.beta;
    int64_t const n = o.axis == 1 ? kNormColumns : o.rows * kNormColumns;
    std::vector<ir::Value*> in{y, constant("gamma", {n})};
    if (o.beta)
        in.push_back(constant("beta", {n}));
    ir::Value* const z = m.add(ops::layer_norm::def(), a, in, "norm");
    if (o.asked)
        z->producer->precision = {*o.asked, true};
    m.output(z, "z");
    if (o.shared)
        m.output(y, "y");
    NullLog log;
    ASSERT_TRUE(passes::fuseActivation(m.g, passes::PassContext{{}, log}).ok());
}

// The graph is large: it is computed once only, where the pass does something.
void checkUnchanged(NormedProduct const& o, passes::TargetInfo const& target = kGpu)
{
    GraphMaker m;
    makeProduct(m, o);
    std::string const before = ir::print(m.g);
    NullLog log;
    auto changed = passes::fuseMatmulNorm(m.g, {{.target = target, .permits = {Permission::kHalf}}, log});
    ASSERT_TRUE(changed.ok()) << changed.error().message;
    EXPECT_FALSE(*changed);
    EXPECT_EQ(ir::print(m.g), before);
}

} // namespace

TEST(FuseMatmulNorm, OneNode)
{
    GraphMaker m;
    makeProduct(m);
    PassCheck check;
    check.target = kGpu;
    check.tolerance = 4e-3;
    checkPass(m.g, passes::fuseMatmulNorm, true, check);
    EXPECT_EQ(nodesOf(m.g), "mm + bias + residual + norm:matrix_multiply");
    EXPECT_EQ(m.g.nodes[0]->layers, (std::vector<std::string>{"mm", "bias", "residual", "norm"}));
    std::string const body = nodesOf(*m.g.nodes[0]->body); // in f32, between conversions
    EXPECT_NE(body.find("mm + bias + residual:matrix_multiply, norm:layer_norm, z [f16]:identity"), std::string::npos)
        << body;
    ir::Node const& product = *m.g.nodes[0]->body->nodes[6];
    ASSERT_NE(product.body, nullptr);
    EXPECT_EQ(product.body->inputs[0]->type, DataType::kFloat); // as the product's there
    EXPECT_EQ(product.body->outputs[0]->type, DataType::kFloat);
}

TEST(FuseMatmulNorm, LeavesOthersAlone)
{
    for (NormedProduct const& o :
         {NormedProduct{.shared = true}, NormedProduct{.symbolic = true}, NormedProduct{.axis = 0},
          NormedProduct{.beta = false}, NormedProduct{.asked = DataType::kFloat}})
        checkUnchanged(o);
}

// What FP32 is, is not to be FP16 later: types are known here, whatever is permitted.
TEST(FuseMatmulNorm, OnlyInHalfLargeOnesAndOnOneKindOfGpu)
{
    checkUnchanged({.rows = kMostRows});
    checkUnchanged({.type = DataType::kFloat});
    checkUnchanged({}, {passes::TargetInfo::Gpu{.capability = 80, .multiprocessors = 108}});
    checkUnchanged({}, {passes::TargetInfo::Cpu{.isa = passes::TargetInfo::Isa::kAvx512}});
}

} // namespace tw::test
