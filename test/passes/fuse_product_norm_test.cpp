// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/op.h"
#include "ops/layer_norm/op.h"
#include "ops/matrix_multiply/op.h"
#include "pass_test.h"

namespace tw::test {

namespace {

constexpr int64_t kRows = 5, kColumns = 256, kInner = 4, kBytes = kRows * kColumns * 2; // of FP16

struct Options
{
    bool shared = false;   // others read what lies between
    bool symbolic = false; // rows are not known
    int64_t axis = 1;
    bool beta = true;
    std::optional<DataType> asked; // for the norm, by the user
};

void make(GraphMaker& m, Options const& o = {})
{
    ir::Dim const rows = o.symbolic ? ir::Dim::symbol("N") : ir::Dim(kRows);
    ir::Value *x = m.input("x", {rows, kInner}), *r = m.input("r", {rows, kColumns});
    ops::elementwise::Attrs const sum(ops::elementwise::Operation::kSum);
    ir::Value* y = m.add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs(),
                         {x, m.constant("w", {kInner, kColumns})}, "mm");
    y = m.add(ops::elementwise::def(), sum, {y, m.constant("b", {1, kColumns})}, "bias");
    y = m.add(ops::elementwise::def(), sum, {y, r}, "residual");
    ops::layer_norm::Attrs a;
    a.axis = o.axis;
    a.hasBeta = o.beta;
    int64_t const n = o.axis == 1 ? kColumns : kRows * kColumns;
    std::vector<ir::Value*> in{y, m.constant("gamma", {n})};
    if (o.beta)
        in.push_back(m.constant("beta", {n}));
    ir::Value* const z = m.add(ops::layer_norm::def(), a, in, "norm");
    if (o.asked)
        z->producer->precision = {*o.asked, true};
    m.output(z, "z");
    if (o.shared)
        m.output(y, "y");
    NullLog log;
    ASSERT_TRUE(passes::fuseActivation(m.g, passes::PassContext{log}).ok());
}

Result<bool> fuseFrom(ir::Graph& g, int64_t bytes, bool half)
{
    NullLog log;
    passes::PassContext ctx{log};
    ctx.half = half;
    ctx.cuda = true;
    ctx.normBytes = bytes;
    return passes::fuseProductNorm(g, ctx);
}

Result<bool> fuse(ir::Graph& g, passes::PassContext const&)
{
    return fuseFrom(g, kBytes - 1, true);
}

} // namespace

TEST(FuseProductNorm, OneNode)
{
    GraphMaker m;
    make(m);
    checkPass(m.g, fuse, true);
    EXPECT_EQ(nodesOf(m.g), "mm + bias + residual + norm:matrix_multiply");
    EXPECT_EQ(m.g.nodes[0]->layers, (std::vector<std::string>{"mm", "bias", "residual", "norm"}));
    EXPECT_EQ(nodesOf(*m.g.nodes[0]->body), "mm + bias + residual:matrix_multiply, norm:layer_norm");
    checkBody(*m.g.nodes[0]);
}

TEST(FuseProductNorm, LeavesOthersAlone)
{
    for (Options const& o : {Options{.shared = true}, Options{.symbolic = true}, Options{.axis = 0},
                             Options{.beta = false}, Options{.asked = DataType::kFloat}}) {
        GraphMaker m;
        make(m, o);
        checkPass(m.g, fuse, false);
    }
}

TEST(FuseProductNorm, OnlyInHalfAndLargeOnes)
{
    for (auto const& [bytes, half] :
         {std::pair{int64_t(0), true}, std::pair{kBytes, true}, std::pair{kBytes - 1, false}}) {
        GraphMaker m;
        make(m);
        auto changed = fuseFrom(m.g, bytes, half);
        ASSERT_TRUE(changed.ok());
        EXPECT_FALSE(*changed) << bytes;
    }
}

} // namespace tw::test
