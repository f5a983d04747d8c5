// SPDX-License-Identifier: Apache-2.0
#include "ops/activation/op.h"
#include "ops/elementwise/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/shuffle/op.h"
#include "pass_test.h"

namespace tw::test {

namespace {

using Operation = ops::elementwise::Operation;

class Maker : public GraphMaker
{
public:
    ir::Value* reshape(ir::Value* x, std::vector<int64_t> dims, std::string const& name)
    {
        ops::shuffle::Attrs a;
        a.hasReshape = true;
        a.reshape = std::move(dims);
        return add(ops::shuffle::def(), a, {x}, name);
    }
    ir::Value* sum(ir::Value* a, ir::Value* b, std::string const& name)
    {
        return add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kSum), {a, b}, name);
    }
    ir::Value* multiply(ir::Value* a, ir::Value* b, std::string const& name)
    {
        return add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs{}, {a, b}, name);
    }
};

PassCheck const kCheck{{{"N", 2}}, false, 1e-5};

} // namespace

TEST(SinkReshapes, ThroughAProductToTheReshapeBack)
{
    for (bool symbolic : {false, true}) {
        Maker m;
        ir::Value* x = m.input("x", {symbolic ? ir::Dim::symbol("N") : ir::Dim(2), 3, 4});
        ir::Value* y = m.multiply(m.reshape(x, {-1, 4}, "flat"), m.constant("w", {4, 5}), "mm");
        y = m.sum(y, m.constant("bias", {1, 5}), "add");
        y = m.add(ops::activation::def(), ops::activation::Attrs(ops::activation::Kind::kTanh), {y}, "tanh");
        y = m.reshape(y, {-1, 3, 5}, "back");
        m.output(m.sum(y, m.input("r", {symbolic ? ir::Dim::symbol("N") : ir::Dim(2), 3, 5}), "plus"), "y");
        checkPass(m.g, passes::sinkReshapes, true, kCheck);
        if (!symbolic) {
            EXPECT_EQ(nodesOf(m.g), "mm:matrix_multiply, add:elementwise, tanh:activation, plus:elementwise");
        }
    }
}

TEST(SinkReshapes, StopsAtTheOutput)
{
    Maker m;
    ir::Value* x = m.input("x", ir::shapeOf({2, 3, 4}));
    m.output(m.multiply(m.reshape(x, {6, 4}, "flat"), m.constant("w", {4, 5}), "mm"), "y");
    checkPass(m.g, passes::sinkReshapes, true);
    ASSERT_EQ(m.g.nodes.size(), 2u);
    EXPECT_EQ(m.g.nodes[0]->name, "mm");
    EXPECT_EQ(m.g.outputs[0]->shape, ir::shapeOf({6, 5}));
}

TEST(SinkReshapes, ReasonsNotTo)
{
    auto with = [](auto change) {
        Maker m;
        change(m, m.input("x", ir::shapeOf({2, 3, 4})));
        checkPass(m.g, passes::sinkReshapes, false);
    };
    with([](Maker& m, ir::Value* x) { // the last dimension changes
        m.output(m.multiply(m.reshape(x, {2, 12}, "flat"), m.constant("w", {12, 5}), "mm"), "y");
    });
    with([](Maker& m, ir::Value* x) { // the matrix is no constant
        m.output(m.multiply(m.reshape(x, {6, 4}, "flat"), m.input("w", ir::shapeOf({4, 5})), "mm"), "y");
    });
    with([](Maker& m, ir::Value* x) { // a column
        m.output(m.sum(m.reshape(x, {6, 4}, "flat"), m.constant("c", {6, 1}), "add"), "y");
    });
}

} // namespace tw::test
