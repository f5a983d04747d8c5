// SPDX-License-Identifier: Apache-2.0
#include "nodes.h"
#include "ops/dequantize/op.h"
#include "ops/parametric_relu/op.h"
#include "ops/pointwise/op.h"
#include "ops/scale/op.h"

namespace tw::test {

namespace {

ir::Value* unary(GraphMaker& m, Unary operation, ir::Value* x, std::string const& name)
{
    return m.add(ops::unary::def(), ops::unary::Attrs(operation), {x}, name);
}

} // namespace

TEST(FusePointwise, ScaleAndActivation)
{
    for (auto mode : {ops::scale::Mode::kUniform, ops::scale::Mode::kChannel}) {
        GraphMaker m;
        int64_t const n = mode == ops::scale::Mode::kUniform ? 1 : 3;
        ir::Value* y = m.add(ops::scale::def(), ops::scale::Attrs(mode),
                             {image(m), m.constant("s", {n}), m.constant("b", {n})}, "bn");
        m.output(activation(m, y, "relu"), "y");
        checkPass(m.g, passes::fusePointwise, true);
        EXPECT_EQ(nodesOf(m.g), "bn + relu:pointwise");
        EXPECT_EQ(m.g.nodes[0]->layers, (std::vector<std::string>{"bn", "relu"}));
        EXPECT_EQ(nodesOf(*m.g.nodes[0]->body), "bn:scale, relu:activation");
        checkBody(*m.g.nodes[0]);
    }
}

TEST(FusePointwise, Diamond)
{
    GraphMaker m;
    ir::Value *x = image(m), *gate = m.input("gate", {ir::Dim::symbol("N"), 3, 1, 1});
    ir::Value* s = activation(m, x, "sigmoid", Kind::kSigmoid);
    ir::Value* swish = binary(m, Operation::kProd, x, s, "swish");
    ir::Value* shifted = binary(m, Operation::kSum, number(m, "two", 2), unary(m, Unary::kExp, swish, "exp"), "shift");
    ir::Value* y = binary(m, Operation::kMax, binary(m, Operation::kProd, shifted, gate, "gated"), swish, "max");
    m.output(binary(m, Operation::kPow, y, number(m, "square", 2), "pow"), "y");
    checkPass(m.g, passes::fusePointwise, true);
    EXPECT_EQ(nodesOf(m.g), "sigmoid + swish + exp + shift + gated + max + pow:pointwise");
    EXPECT_EQ(m.g.nodes[0]->inputs.size(), 2u);
    checkBody(*m.g.nodes[0]);
}

TEST(FusePointwise, ParametricRelu)
{
    GraphMaker m;
    ir::Value* y = m.add(ops::scale::def(), ops::scale::Attrs(ops::scale::Mode::kChannel),
                         {image(m), m.constant("s", {3}), m.constant("b", {3})}, "bn");
    y = m.add(ops::parametric_relu::def(), ops::parametric_relu::Attrs(), {y, m.constant("slope", {1, 3, 1, 1})},
              "prelu");
    m.output(binary(m, Operation::kSum, y, image(m, "skip"), "sum"), "y");
    checkPass(m.g, passes::fusePointwise, true);
    EXPECT_EQ(nodesOf(m.g), "bn + prelu + sum:pointwise");
    checkBody(*m.g.nodes[0]);
}

TEST(FusePointwise, Halves)
{
    GraphMaker m;
    ir::Value* x = image(m, "x", DataType::kHalf);
    ir::Value* y = binary(m, Operation::kProd, x, m.constant("half", {1, 1, 1, 1}, {0.5}, DataType::kHalf), "scaled");
    m.output(binary(m, Operation::kSum, unary(m, Unary::kAbs, y, "abs"), x, "sum"), "y");
    PassCheck check;
    check.tolerance = 2e-3;
    checkPass(m.g, passes::fusePointwise, true, check);
    EXPECT_EQ(nodesOf(m.g), "scaled + abs + sum:pointwise");
    EXPECT_EQ(m.g.nodes[0]->outputs[0]->type, DataType::kHalf);
}

TEST(FusePointwise, IntegersBecomeHalves)
{
    GraphMaker m;
    ir::Value* slope = m.constant("slope", {1, 3, 1, 1}, {0.25, 0.5, -0.5}, DataType::kHalf);
    ir::Value* scale = m.constant("scale", {}, {0.125});
    ir::Value* x = image(m, "x", DataType::kInt8);
    ir::Value* f = m.add(ops::dequantize::def(), ops::dequantize::Attrs(-1, DataType::kHalf), {x, scale}, "dq");
    ir::Value* y = m.add(ops::parametric_relu::def(), ops::parametric_relu::Attrs(), {f, slope}, "prelu");
    m.output(binary(m, Operation::kSum, y, image(m, "skip", DataType::kHalf), "sum"), "y");
    PassCheck check;
    check.tolerance = 2e-3;
    checkPass(m.g, passes::fusePointwise, true, check);
    EXPECT_EQ(nodesOf(m.g), "dq + prelu + sum:pointwise");
    checkBody(*m.g.nodes[0]);
}

TEST(FusePointwise, OneFeedsTheOther)
{
    GraphMaker m;
    ir::Value* a = activation(m, unary(m, Unary::kAbs, image(m), "abs"), "relu");
    m.output(a, "mid");
    m.output(activation(m, unary(m, Unary::kNeg, a, "neg"), "tanh", Kind::kTanh), "y");
    checkPass(m.g, passes::fusePointwise, true);
    EXPECT_EQ(nodesOf(m.g), "abs + relu:pointwise, neg + tanh:pointwise");
}

TEST(FusePointwise, TooManyInputsMakeTwo)
{
    GraphMaker m;
    ir::Value* y = image(m, "x0");
    for (int i = 1; i < 12; ++i)
        y = binary(m, Operation::kSum, y, image(m, "x" + std::to_string(i)), "add" + std::to_string(i));
    m.output(y, "y");
    checkPass(m.g, passes::fusePointwise, true);
    ASSERT_EQ(m.g.nodes.size(), 2u) << nodesOf(m.g);
    for (auto const& n : m.g.nodes)
        checkBody(*n);
}

TEST(FusePointwise, ReasonsNotTo)
{
    NullLog log;
    auto with = [&](auto change) {
        GraphMaker m;
        change(m, activation(m, image(m), "first"));
        ASSERT_TRUE(passes::removeDead(m.g, passes::PassContext{{}, log}).ok());
        checkPass(m.g, passes::fusePointwise, false);
    };
    with([](GraphMaker& m, ir::Value* y) { // an output between them
        m.output(y, "z");
        m.output(activation(m, y, "relu"), "y");
    });
    with([](GraphMaker& m, ir::Value* y) { // wishes differ
        ir::Value* z = activation(m, y, "relu");
        y->producer->precision = {DataType::kHalf, true};
        z->producer->precision = {DataType::kFloat, true};
        m.output(z, "y");
    });
    with([](GraphMaker& m, ir::Value* y) { m.output(unary(m, Unary::kSin, y, "sin"), "y"); }); // has no code
    with([](GraphMaker& m, ir::Value*) { // broadcast by the second
        ir::Value* gate = activation(m, m.input("gate", {ir::Dim::symbol("N"), 3, 1, 1}), "relu");
        m.output(binary(m, Operation::kProd, image(m, "wide"), gate, "mul"), "y");
    });
}

} // namespace tw::test
