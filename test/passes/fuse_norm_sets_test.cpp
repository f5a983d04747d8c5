// SPDX-License-Identifier: Apache-2.0
// Norms over other sets than the last dimensions, as exporters write them: group, instance, RMS, channels first.
#include "nodes.h"
#include "ops/layer_norm/op.h"

namespace tw::test {

namespace {

class NormMaker : public NodeMaker
{
public:
    ir::Value* number(double v, int rank, std::string const& name)
    {
        Extents ones;
        for (int i = 0; i < rank; ++i)
            ones.push(1);
        return constant(name, ones, {v});
    }
    // 1 / sqrt(mean(square) + 0.01)
    ir::Value* root(ir::Value* variance)
    {
        return unary(Unary::kSqrt,
                     apply(Operation::kSum, variance, number(0.01, int(variance->rank()), "epsilon"), "epsilon_sum"),
                     "root");
    }
    // (x - mean) / sqrt(variance + 0.01), as PyTorch and the importer of InstanceNormalization write it.
    ir::Value* normal(ir::Value* x, int64_t axes)
    {
        ir::Value* d = apply(Operation::kSub, x, mean(x, "mean", axes), "centred");
        return apply(Operation::kDiv, d, root(mean(apply(Operation::kProd, d, d, "square"), "variance", axes)),
                     "normal");
    }
    ir::Value* scaled(ir::Value* y, Extents const& weights)
    {
        y = apply(Operation::kProd, y, constant("gamma", weights), "scale");
        return apply(Operation::kSum, y, constant("beta", weights), "shift");
    }
    ir::Value* swish(ir::Value* y)
    {
        using ops::activation::Kind;
        return apply(Operation::kProd, y,
                     add(ops::activation::def(), ops::activation::Attrs(Kind::kSigmoid), {y}, "sigmoid"), "swish");
    }
};

// The graph becomes one node with these attributes.
void expectNorm(NormMaker& m, ir::Value* y, ops::layer_norm::Attrs wanted, PassCheck const& check = {})
{
    m.output(y, "y");
    checkPass(m.g, passes::fuseLayerNorm, true, check);
    ASSERT_EQ(m.g.nodes.size(), 1u) << nodesOf(m.g);
    ir::Node const& n = *m.g.nodes[0];
    ASSERT_EQ(n.op->name, std::string("layer_norm"));
    auto const& a = n.attrsAs<ops::layer_norm::Attrs>();
    wanted.epsilon = a.epsilon;
    EXPECT_NEAR(a.epsilon, 0.01, 1e-5);
    EXPECT_TRUE(ir::equalAttrs(*n.attrs, wanted))
        << "axis " << a.axis << " kept " << a.kept << " channel " << a.channel << " groups " << a.groups << " rms "
        << a.rms << " gamma " << a.hasGamma << " beta " << a.hasBeta << " activation " << a.activation.kind;
    checkBody(n);
}

ops::layer_norm::Attrs group(int64_t groups, int64_t channel = 1)
{
    ops::layer_norm::Attrs a;
    a.axis = 1;
    a.channel = channel;
    a.groups = groups;
    return a;
}

ir::Dim const kN = ir::Dim::symbol("N");

} // namespace

TEST(FuseNormSets, GroupNormOfPyTorch)
{
    for (bool activation : {false, true})
        for (int parts = 0; parts < 4; ++parts) {
            NormMaker m;
            ir::Value* y = m.reshape(m.input("x", {kN, 6, 4, 5}), {0, 3, -1}, "in");
            y = m.reshape(m.normal(y, 4), {0, 6, 4, 5}, "out");
            auto wanted = group(3);
            wanted.hasGamma = parts & 1;
            wanted.hasBeta = parts & 2;
            if (parts & 1)
                y = m.apply(Operation::kProd, y, m.constant("gamma", {1, 6, 1, 1}), "scale");
            if (parts & 2)
                y = m.apply(Operation::kSum, y, m.constant("beta", {1, 6, 1, 1}), "shift");
            if (activation) {
                y = m.swish(y);
                wanted.activation = ops::FusedActivation(ops::FusedKind::kSwish);
            }
            expectNorm(m, y, wanted);
        }
}

// Groups as a dimension of their own, one group, and as many as channels.
TEST(FuseNormSets, GroupNormsOfOtherForms)
{
    {
        NormMaker m;
        ir::Value* y = m.reshape(m.input("x", {kN, 6, 4, 5}), {0, 2, 3, 4, 5}, "in");
        expectNorm(m, m.scaled(m.reshape(m.normal(y, 0b11100), {0, 6, 4, 5}, "out"), {1, 6, 1, 1}), group(2));
    }
    {
        NormMaker m;
        ir::Value* y = m.reshape(m.input("x", {kN, 6, 4, 5}), {0, 1, -1}, "in");
        expectNorm(m, m.scaled(m.reshape(m.normal(y, 4), {0, 6, 4, 5}, "out"), {1, 6, 1, 1}), group(1));
    }
    {
        NormMaker m;
        ir::Value* y = m.reshape(m.input("x", {kN, 6, 4, 5}), {0, 6, -1}, "in");
        auto wanted = group(1);
        wanted.axis = 2;
        expectNorm(m, m.scaled(m.reshape(m.normal(y, 4), {0, 6, 4, 5}, "out"), {1, 6, 1, 1}), wanted);
    }
}

// Keras cuts the channels into two dimensions, gamma and beta too, and multiplies the factor with gamma.
TEST(FuseNormSets, GroupNormOfKeras)
{
    NormMaker m;
    ir::Value* x = m.reshape(m.input("x", {kN, 4, 5, 6}), {0, 4, 5, 2, 3}, "in");
    ir::Value* mean = m.mean(x, "mean", 0b10110);
    ir::Value* d = m.apply(Operation::kSub, x, mean, "difference");
    ir::Value* root = m.root(m.mean(m.apply(Operation::kProd, d, d, "square"), "variance", 0b10110));
    ir::Value* r = m.apply(Operation::kProd, m.unary(Unary::kRecip, root, "recip"),
                           m.constant("gamma", {1, 1, 1, 2, 3}), "factor");
    ir::Value* shift = m.apply(Operation::kSub, m.constant("beta", {1, 1, 1, 2, 3}),
                               m.apply(Operation::kProd, mean, r, "shifted"), "shift");
    ir::Value* y = m.apply(Operation::kSum, m.apply(Operation::kProd, x, r, "scaled"), shift, "result");
    expectNorm(m, m.reshape(y, {0, 4, 5, 6}, "out"), group(2, 3));
}

// Flax: the variance is what is left of the mean of squares.
TEST(FuseNormSets, VarianceOfSquares)
{
    for (int kind = 0; kind < 3; ++kind) {
        NormMaker m;
        ir::Value* x = m.input("x", {kN, 5, 12});
        ir::Value* mean = m.mean(x, "mean");
        ir::Value* v = m.apply(Operation::kSub, m.mean(m.apply(Operation::kProd, x, x, "square"), "squares"),
                               m.apply(Operation::kProd, mean, mean, "mean2"), "variance");
        if (kind == 1)
            v = m.apply(Operation::kMax, m.number(0, 3, "zero"), v, "positive");
        if (kind == 2)
            v = m.add(ops::activation::def(), ops::activation::Attrs(ops::activation::Kind::kRelu), {v}, "positive");
        ir::Value* r = m.apply(Operation::kProd, m.unary(Unary::kRecip, m.root(v), "recip"),
                               m.constant("gamma", {1, 1, 12}), "factor");
        ir::Value* y = m.apply(Operation::kProd, m.apply(Operation::kSub, x, mean, "difference"), r, "scaled");
        m.output(m.apply(Operation::kSum, y, m.constant("beta", {1, 1, 12}), "shift"), "y");
        checkPass(m.g, passes::fuseLayerNorm, true);
        ASSERT_EQ(m.g.nodes.size(), 1u) << nodesOf(m.g);
    }
}

TEST(FuseNormSets, InstanceNorm)
{
    for (int rank : {3, 4, 5}) {
        NormMaker m;
        ir::Shape const shape{kN, 6, 4, 5, 3};
        Extents weights{1, 6};
        while (weights.rank < rank)
            weights.push(1);
        auto wanted = group(1);
        wanted.axis = 2;
        ir::Value* x = m.input("x", ir::Shape(shape.begin(), shape.begin() + rank));
        expectNorm(m, m.scaled(m.normal(x, ((1 << rank) - 1) & ~3), weights), wanted);
    }
    NormMaker m; // of NHWC
    auto wanted = group(1, 3);
    wanted.kept = 8;
    expectNorm(m, m.scaled(m.normal(m.input("x", {kN, 4, 5, 6}), 6), {1, 1, 1, 6}), wanted);
    NormMaker one; // of the only channel
    auto single = group(1);
    single.axis = 2;
    expectNorm(one, one.scaled(one.normal(one.input("x", {kN, 1, 5, 6}), 12), {1, 1, 1, 1}), single);
}

TEST(FuseNormSets, ChannelsFirst)
{
    NormMaker m;
    ops::layer_norm::Attrs wanted;
    wanted.axis = 1;
    wanted.kept = 12;
    ir::Value* x = m.input("x", {kN, 6, ir::Dim::symbol("H"), 5});
    expectNorm(m, m.scaled(m.normal(x, 2), {1, 6, 1, 1}), wanted, {.sizes = {{"H", 3}}});
}

// x * (1 / root) * gamma, x / root, gamma on either side, gamma with the factor; and in f32 between conversions.
TEST(FuseNormSets, RmsNorm)
{
    for (int form = 0; form < 5; ++form) {
        NormMaker m;
        bool const half = form == 4;
        ir::Value* in = m.input("x", {kN, 3, 16}, half ? DataType::kHalf : DataType::kFloat);
        ir::Value* x = half ? m.cast(in, DataType::kFloat, "up") : in;
        ir::Value* square = form == 1 ? m.apply(Operation::kPow, x, m.number(2, 3, "two"), "square")
                                      : m.apply(Operation::kProd, x, x, "square");
        ir::Value* root = m.root(m.mean(square, "mean"));
        ir::Value* gamma = m.constant("gamma", {1, 1, 16}, {}, half ? DataType::kHalf : DataType::kFloat);
        ir::Value* y = nullptr;
        if (form == 0) {
            y = m.apply(Operation::kDiv, x, root, "quotient");
        } else if (form == 2) {
            ir::Value* r = m.apply(Operation::kDiv, m.number(1, 3, "one"), root, "recip");
            y = m.apply(Operation::kProd, x, m.apply(Operation::kProd, r, gamma, "factor"), "scaled");
        } else {
            y = m.apply(Operation::kProd, x, m.unary(Unary::kRecip, root, "recip"), "normal");
        }
        if (half)
            y = m.cast(y, DataType::kHalf, "down");
        if (form != 2)
            y = form == 3 ? m.apply(Operation::kProd, gamma, y, "scale") : m.apply(Operation::kProd, y, gamma, "scale");
        ops::layer_norm::Attrs wanted;
        wanted.axis = 2;
        wanted.rms = true;
        wanted.hasBeta = false;
        PassCheck check;
        check.tolerance = half ? 3e-3 : 1e-5;
        expectNorm(m, y, wanted, check);
    }
}

TEST(FuseNormSets, ActivationsBehind)
{
    using ops::activation::Kind;
    for (Kind kind : {Kind::kRelu, Kind::kLeakyRelu, Kind::kTanh}) {
        NormMaker m;
        ir::Value* y = m.scaled(m.normal(m.input("x", {kN, 6, 4, 5}), 12), {1, 6, 1, 1});
        auto wanted = group(1);
        wanted.axis = 2;
        wanted.activation = ops::FusedActivation(kind, 0.25f);
        expectNorm(m, m.add(ops::activation::def(), ops::activation::Attrs(kind, 0.25f), {y}, "f"), wanted);
    }
}

// What stays outside of the node.
TEST(FuseNormSets, OnlyWhatBelongsToIt)
{
    { // the reshaped x is read by others: the norm is one of the reshaped x
        NormMaker m;
        ir::Value* in = m.reshape(m.input("x", {kN, 6, 4, 5}), {0, 3, -1}, "in");
        m.output(m.scaled(m.reshape(m.normal(in, 4), {0, 6, 4, 5}, "out"), {1, 6, 1, 1}), "y");
        m.output(in, "z");
        checkPass(m.g, passes::fuseLayerNorm, true);
        EXPECT_EQ(m.g.nodes.size(), 5u) << nodesOf(m.g);
    }
    { // on to another shape: the norm is one of x all the same
        NormMaker m;
        ir::Value* in = m.reshape(m.input("x", {kN, 6, 4, 5}), {0, 3, -1}, "in");
        m.output(m.reshape(m.normal(in, 4), {0, 6, 5, 4}, "out"), "y");
        checkPass(m.g, passes::fuseLayerNorm, true);
        EXPECT_EQ(m.g.nodes.size(), 2u) << nodesOf(m.g);
    }
    { // gamma with numbers for channels and columns
        NormMaker m;
        m.output(m.scaled(m.normal(m.input("x", {kN, 6, 4, 5}), 12), {1, 6, 1, 5}), "y");
        checkPass(m.g, passes::fuseLayerNorm, true);
        EXPECT_EQ(m.g.nodes.size(), 3u) << nodesOf(m.g);
    }
    { // beta of other dimensions than gamma
        NormMaker m;
        ir::Value* y = m.apply(Operation::kProd, m.normal(m.input("x", {kN, 6, 4, 5}), 12),
                               m.constant("gamma", {1, 6, 1, 1}), "scale");
        m.output(m.apply(Operation::kSum, y, m.constant("beta", {1, 1, 4, 5}), "shift"), "y");
        checkPass(m.g, passes::fuseLayerNorm, true);
        EXPECT_EQ(m.g.nodes.size(), 2u) << nodesOf(m.g);
    }
    { // an activation of which others read the argument
        NormMaker m;
        ir::Value* y = m.scaled(m.normal(m.input("x", {kN, 6, 4, 5}), 12), {1, 6, 1, 1});
        m.output(m.swish(y), "y");
        m.output(y, "z");
        checkPass(m.g, passes::fuseLayerNorm, true);
        EXPECT_EQ(m.g.nodes.size(), 3u) << nodesOf(m.g);
    }
    { // means over different dimensions
        NormMaker m;
        ir::Value* x = m.input("x", {kN, 6, 4});
        ir::Value* d = m.apply(Operation::kSub, x, m.mean(x, "mean"), "centred");
        ir::Value* v = m.mean(m.apply(Operation::kProd, d, d, "square"), "variance", 2);
        m.output(m.apply(Operation::kDiv, x, m.root(v), "y"), "y");
        checkPass(m.g, passes::fuseLayerNorm, false);
    }
}

} // namespace tw::test
