// SPDX-License-Identifier: Apache-2.0
#include "nodes.h"

namespace tw::test {

namespace {

ir::Value* unary(GraphMaker& m, Unary u, ir::Value* x)
{
    return m.add(ops::unary::def(), ops::unary::Attrs(u), {x}, "before");
}

ir::Value* power(GraphMaker& m, ir::Value* x, double exponent, DataType type = DataType::kFloat)
{
    return m.add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kPow),
                 {x, m.constant("e", {1, 1}, {exponent}, type)}, "pow");
}

std::string after(double exponent, Unary before, bool changes = true, DataType type = DataType::kFloat)
{
    GraphMaker m;
    ir::Value* x = m.input("x", {ir::Dim::symbol("N"), 9}, type);
    m.output(power(m, unary(m, before, x), exponent, type), "y");
    checkPass(m.g, passes::expandPowers, changes, {.tolerance = type == DataType::kHalf ? 2e-3 : 1e-5});
    for (auto const& n : m.g.nodes)
        if (n->name != "before") {
            EXPECT_EQ(n->layers, (std::vector<std::string>{"pow"}));
        }
    return nodesOf(m.g).substr(std::string("before:unary, ").size());
}

} // namespace

TEST(ExpandPowers, IntoProductsRootsAndReciprocals)
{
    EXPECT_EQ(after(2, Unary::kNeg), "pow:elementwise");
    EXPECT_EQ(after(3, Unary::kNeg), "pow.square:elementwise, pow:elementwise");
    EXPECT_EQ(after(-1, Unary::kNeg), "pow:unary");
    EXPECT_EQ(after(0.5, Unary::kAbs), "pow:unary");
    EXPECT_EQ(after(-0.5, Unary::kExp), "pow.root:unary, pow:unary");
    EXPECT_EQ(after(2, Unary::kNeg, true, DataType::kHalf), "pow:elementwise");
}

TEST(ExpandPowers, LeavesOthersAlone)
{
    for (double e : {1.5, 4.0, 0.0, -2.0})
        EXPECT_EQ(after(e, Unary::kAbs, false), "pow:elementwise");
    // The roots of -0 and -infinity are not their powers.
    EXPECT_EQ(after(0.5, Unary::kNeg, false), "pow:elementwise");
    EXPECT_EQ(after(-0.5, Unary::kNeg, false), "pow:elementwise");
    EXPECT_EQ(after(3, Unary::kNeg, false, DataType::kHalf), "pow:elementwise");
}

TEST(ExpandPowers, RootsOfVariances)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({4, 9}));
    auto sum = [&](ir::Value* a, double b) {
        return m.add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kSum),
                     {a, m.constant("b", {1, 1}, {b})}, "sum");
    };
    m.output(power(m, sum(power(m, x, 2), 1e-3), 0.5), "y");
    m.output(power(m, sum(power(m, x, 2), -1e-3), 0.5), "z"); // may be below zero
    checkPass(m.g, passes::expandPowers, true);
    EXPECT_EQ(nodesOf(m.g), "pow:elementwise, sum:elementwise, pow:unary, pow:elementwise, sum:elementwise, "
                            "pow:elementwise");
}

TEST(ExpandPowers, ExponentsThatRefitChangesStay)
{
    for (bool refittable : {false, true}) {
        GraphMaker m;
        ir::Value* x = m.input("x", ir::shapeOf({4, 9}));
        ir::Value* y = power(m, x, 2);
        auto named = std::make_shared<ir::Constant>(*y->producer->inputs[1]->constant);
        named->layer = named->weightsName = "exponent";
        named->role = ir::WeightsRole::kScale; // numbers of constant layers are what patterns ask for
        y->producer->inputs[1]->constant = named;
        m.output(y, "y");
        checkPass(m.g, passes::expandPowers, !refittable, {.refittable = refittable});
    }
}

TEST(ExpandPowers, WiderExponentsStay)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({1, 9}));
    m.output(m.add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kPow),
                   {x, m.constant("e", {4, 1}, {2, 2, 2, 2})}, "pow"),
             "y");
    checkPass(m.g, passes::expandPowers, false);
}

TEST(ExpandPowers, FirstPowerIsNothing)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({4, 9}));
    m.output(power(m, unary(m, Unary::kNeg, x), 1), "y");
    checkPass(m.g, passes::removeIdentities, true);
    EXPECT_EQ(nodesOf(m.g), "before:unary");
}

} // namespace tw::test
