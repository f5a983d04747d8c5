// SPDX-License-Identifier: Apache-2.0
#include "nodes.h"

namespace tw::test {

TEST(SinkReshapes, ThroughAProductToTheReshapeBack)
{
    for (bool symbolic : {false, true}) {
        NodeMaker m;
        ir::Value* x = m.input("x", {symbolic ? ir::Dim::symbol("N") : ir::Dim(2), 3, 4});
        ir::Value* y = m.product(m.reshape(x, {-1, 4}, "flat"), m.constant("w", {4, 5}), "mm");
        y = sum(m, y, m.constant("bias", {1, 5}), "add");
        y = m.add(ops::activation::def(), ops::activation::Attrs(ops::activation::Kind::kTanh), {y}, "tanh");
        y = m.reshape(y, {-1, 3, 5}, "back");
        m.output(sum(m, y, m.input("r", {symbolic ? ir::Dim::symbol("N") : ir::Dim(2), 3, 5}), "plus"), "y");
        checkPass(m.g, passes::sinkReshapes, true, kCheck);
        if (!symbolic) {
            EXPECT_EQ(nodesOf(m.g), "mm:matrix_multiply, add:elementwise, tanh:activation, plus:elementwise");
        }
    }
}

TEST(SinkReshapes, StopsAtTheOutput)
{
    NodeMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({2, 3, 4}));
    m.output(m.product(m.reshape(x, {6, 4}, "flat"), m.constant("w", {4, 5}), "mm"), "y");
    checkPass(m.g, passes::sinkReshapes, true);
    ASSERT_EQ(m.g.nodes.size(), 2u);
    EXPECT_EQ(m.g.nodes[0]->name, "mm");
    EXPECT_EQ(m.g.outputs[0]->shape, ir::shapeOf({6, 5}));
}

TEST(SinkReshapes, ReasonsNotTo)
{
    auto with = [](auto change) {
        NodeMaker m;
        change(m, m.input("x", ir::shapeOf({2, 3, 4})));
        checkPass(m.g, passes::sinkReshapes, false);
    };
    with([](NodeMaker& m, ir::Value* x) { // the last dimension changes
        m.output(m.product(m.reshape(x, {2, 12}, "flat"), m.constant("w", {12, 5}), "mm"), "y");
    });
    with([](NodeMaker& m, ir::Value* x) { // the matrix is no constant
        m.output(m.product(m.reshape(x, {6, 4}, "flat"), m.input("w", ir::shapeOf({4, 5})), "mm"), "y");
    });
    with([](NodeMaker& m, ir::Value* x) { // a column
        m.output(sum(m, m.reshape(x, {6, 4}, "flat"), m.constant("c", {6, 1}), "add"), "y");
    });
}

} // namespace tw::test
