// SPDX-License-Identifier: Apache-2.0
#include "nodes.h"
#include "ops/layer_norm/op.h"

namespace tw::test {

namespace {

class LayerNormMaker : public NodeMaker
{
public:
    ir::Value* number(std::string const& name, double v) { return constant(name, {1, 1, 1}, {v}); }
    ir::Value* image() { return input("x", {ir::Dim::symbol("N"), 3, 10}); }
    // sqrt(mean((x - mean)^2) + e), and the difference.
    ir::Value* root(ir::Value* x, ir::Value*& difference, bool power)
    {
        difference = apply(Operation::kSub, x, mean(x, "mean"), "difference");
        ir::Value* square = power ? apply(Operation::kPow, difference, number("two", 2), "square")
                                  : apply(Operation::kProd, difference, difference, "square");
        return unary(Unary::kSqrt, apply(Operation::kSum, mean(square, "variance"), number("epsilon", 0.01), "sum"),
                     "root");
    }
};

} // namespace

TEST(FuseLayerNorm, FormsOfPyTorch)
{
    for (bool power : {false, true})
        for (int turned = 0; turned < 3; ++turned)
            for (int parts = 0; parts < 4; ++parts) { // gamma, beta
                LayerNormMaker m;
                ir::Value* difference = nullptr;
                ir::Value* y = m.root(m.image(), difference, power);
                if (turned == 0)
                    y = m.apply(Operation::kDiv, difference, y, "quotient");
                else if (turned == 1)
                    y = m.apply(Operation::kProd, m.unary(Unary::kRecip, y, "r"), difference, "p");
                else
                    y = m.apply(Operation::kProd, difference, m.apply(Operation::kDiv, m.number("one", 1), y, "r"),
                                "p");
                if (parts & 1)
                    y = m.apply(Operation::kProd, m.constant("gamma", {1, 1, 10}), y, "scale");
                if (parts & 2)
                    y = m.apply(Operation::kSum, y, m.constant("beta", {1, 1, 10}), "shift");
                m.output(y, "y");
                checkPass(m.g, passes::fuseLayerNorm, true);
                ASSERT_EQ(m.g.nodes.size(), 1u) << nodesOf(m.g);
                EXPECT_EQ(m.g.nodes[0]->op->name, std::string("layer_norm"));
                EXPECT_EQ(m.g.nodes[0]->layers.size(), m.g.nodes[0]->body->nodes.size() -
                                                           size_t((parts & 1) + (parts >> 1))); // reshapes of the rows
                checkBody(*m.g.nodes[0]);
            }
}

// What is left of an epsilon of 1e-12 in FP16.
TEST(FuseLayerNorm, NoEpsilon)
{
    for (DataType type : {DataType::kFloat, DataType::kHalf}) {
        LayerNormMaker m;
        ir::Value* x = m.input("x", {ir::Dim::symbol("N"), 3, 10}, type);
        ir::Value* difference = m.apply(Operation::kSub, x, m.mean(x, "mean"), "difference");
        ir::Value* square = m.apply(Operation::kProd, difference, difference, "square");
        ir::Value* root = m.unary(Unary::kSqrt, m.mean(square, "variance"), "root");
        ir::Value* y = m.apply(Operation::kDiv, difference, root, "quotient");
        m.output(m.apply(Operation::kProd, y, m.constant("gamma", {1, 1, 10}, {}, type), "scale"), "y");
        PassCheck check;
        check.tolerance = type == DataType::kHalf ? 5e-3 : 1e-5;
        checkPass(m.g, passes::fuseLayerNorm, true, check);
        ASSERT_EQ(m.g.nodes.size(), 1u) << nodesOf(m.g);
        EXPECT_EQ(m.g.nodes[0]->attrsAs<ops::layer_norm::Attrs>().epsilon, 0);
    }
}

TEST(FuseLayerNorm, FormOfTensorFlow)
{
    LayerNormMaker m;
    ir::Value* x = m.image();
    ir::Value* mean = m.mean(x, "mean");
    ir::Value* d = m.apply(Operation::kSub, x, mean, "difference");
    ir::Value* v = m.mean(m.apply(Operation::kProd, d, d, "square"), "variance");
    ir::Value* root = m.unary(Unary::kSqrt, m.apply(Operation::kSum, v, m.number("epsilon", 0.1), "sum"), "root");
    ir::Value* r =
        m.apply(Operation::kProd, m.unary(Unary::kRecip, root, "recip"), m.constant("gamma", {1, 1, 10}), "factor");
    ir::Value* shift = m.apply(Operation::kSub, m.constant("beta", {1, 1, 10}),
                               m.apply(Operation::kProd, r, mean, "shifted"), "shift");
    m.output(m.apply(Operation::kSum, m.apply(Operation::kProd, x, r, "scaled"), shift, "result"), "y");
    checkPass(m.g, passes::fuseLayerNorm, true);
    ASSERT_EQ(m.g.nodes.size(), 1u) << nodesOf(m.g);
    EXPECT_EQ(m.g.nodes[0]->op->name, std::string("layer_norm"));
    checkBody(*m.g.nodes[0]);
}

TEST(FuseLayerNorm, DifferenceComputedTwiceAndTwoAxes)
{
    LayerNormMaker m;
    ir::Value* x = m.input("x", {ir::Dim::symbol("N"), 3, 10});
    ir::Value* d = m.apply(Operation::kSub, x, m.mean(x, "mean", 6), "difference");
    ir::Value* again = m.apply(Operation::kSub, x, m.mean(x, "mean2", 6), "difference2");
    ir::Value* v = m.mean(m.apply(Operation::kProd, d, d, "square"), "variance", 6);
    ir::Value* root = m.unary(Unary::kSqrt, m.apply(Operation::kSum, m.number("epsilon", 0.1), v, "sum"), "root");
    ir::Value* y = m.apply(Operation::kDiv, again, root, "quotient");
    m.output(m.apply(Operation::kProd, y, m.constant("gamma", {1, 3, 10}), "scale"), "y");
    checkPass(m.g, passes::fuseLayerNorm, true);
    ASSERT_EQ(m.g.nodes.size(), 1u) << nodesOf(m.g);
    EXPECT_EQ(m.g.nodes[0]->attrsAs<ops::layer_norm::Attrs>().axis, 1);
}

TEST(FuseLayerNorm, ReasonsNotTo)
{
    auto with = [](auto change) {
        LayerNormMaker m;
        ir::Value* difference = nullptr;
        ir::Value* root = m.root(m.image(), difference, true);
        change(m, difference, root);
        checkPass(m.g, passes::fuseLayerNorm, false);
    };
    with([](LayerNormMaker& m, ir::Value* d, ir::Value* root) { // others read the difference
        m.output(m.apply(Operation::kDiv, d, root, "quotient"), "y");
        m.output(d, "z");
    });
    with([](LayerNormMaker& m, ir::Value* d, ir::Value* root) { // turned over
        m.output(m.apply(Operation::kDiv, root, d, "quotient"), "y");
    });
    with([](LayerNormMaker& m, ir::Value* d, ir::Value* root) { // wishes differ
        m.output(m.apply(Operation::kDiv, d, root, "quotient"), "y");
        d->producer->precision = {DataType::kHalf, true};
        root->producer->precision = {DataType::kFloat, true};
    });
}

} // namespace tw::test
