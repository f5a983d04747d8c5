// SPDX-License-Identifier: Apache-2.0
#include "ops/gather/op.h"
#include "ops/slice/op.h"
#include "transformer_block.h"

namespace tw::test {

namespace {

ir::Value* row(GraphMaker& m, ir::Value* x, int64_t axis, double index)
{
    ops::gather::Attrs a;
    a.axis = axis;
    return m.add(ops::gather::def(), a, {x, m.constant("index", {}, {index}, DataType::kInt32)}, "row");
}

ir::Value* slice(GraphMaker& m, ir::Value* x, std::vector<int64_t> start, std::vector<int64_t> size, std::string name)
{
    ops::slice::Attrs a;
    a.stride.assign(start.size(), 1);
    a.start = std::move(start);
    a.size = std::move(size);
    return m.add(ops::slice::def(), a, {x}, std::move(name));
}

ir::Value* product(GraphMaker& m, ir::Value* x, std::string const& name, int64_t k, int64_t n)
{
    return m.add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs{}, {x, m.constant(name + ".w", {1, k, n})},
                 name);
}

// Dimension 1 of the first output of the node.
int64_t rowsOf(ir::Graph const& g, std::string const& name)
{
    for (auto const& n : g.nodes)
        if (n->name == name)
            return n->outputs[0]->shape[1].value();
    ADD_FAILURE() << name << " is not there";
    return 0;
}

} // namespace

TEST(RemoveDeadRows, ATransformerBlockWhoseFirstTokenIsRead)
{
    TransformerBlock m;
    m.make();
    ir::Value* const y = m.g.outputs[0];
    m.g.outputs.clear();
    y->name = "all";
    m.output(row(m, y, 1, 0), "y");
    checkPass(m.g, passes::removeDeadRows, true, kCheck);
    // Keys and values need every token, all else one.
    for (auto const& n : m.g.nodes)
        if (n->op == &ops::matrix_multiply::def() && n->outputs[0]->rank() == 3) {
            EXPECT_EQ(n->outputs[0]->shape[1].value(), n->name == "k" || n->name == "v" ? -1 : 1) << n->name;
        }
}

TEST(RemoveDeadRows, ProductsOfTheRowsThatASliceReads)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({2, 6, 4}));
    ir::Value* h = sum(m, product(m, x, "first", 4, 3), m.constant("bias", {1, 1, 3}), "biased");
    h = sum(m, product(m, h, "second", 3, 4), x, "residual");
    m.output(slice(m, h, {0, 2, 0}, {2, 3, 4}, "read"), "y");
    checkPass(m.g, passes::removeDeadRows, true);
    EXPECT_EQ(nodesOf(m.g), "x.read:slice, first:matrix_multiply, biased:elementwise, second:matrix_multiply, "
                            "residual:elementwise");
    EXPECT_EQ(rowsOf(m.g, "first"), 3);
}

TEST(RemoveDeadRows, BatchesAndLastIndices)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({5, 6, 4}));
    m.output(row(m, product(m, x, "mm", 4, 3), 0, -1), "y");
    checkPass(m.g, passes::removeDeadRows, true);
    EXPECT_EQ(m.g.nodes[1]->outputs[0]->shape[0].value(), 1);
}

TEST(RemoveDeadRows, WhatOthersReadStays)
{
    {
        GraphMaker m; // all rows are an output
        ir::Value* x = m.input("x", ir::shapeOf({1, 6, 4}));
        ir::Value* h = product(m, x, "mm", 4, 3);
        m.output(h, "h");
        m.output(slice(m, h, {0, 0, 0}, {1, 2, 3}, "read"), "y");
        checkPass(m.g, passes::removeDeadRows, false);
    }
    {
        GraphMaker m; // two parts
        ir::Value* h = product(m, m.input("x", ir::shapeOf({1, 6, 4})), "mm", 4, 3);
        m.output(slice(m, h, {0, 0, 0}, {1, 2, 3}, "one"), "y");
        m.output(slice(m, h, {0, 1, 0}, {1, 2, 3}, "two"), "z");
        checkPass(m.g, passes::removeDeadRows, false);
    }
    {
        GraphMaker m; // columns
        ir::Value* h = product(m, m.input("x", ir::shapeOf({1, 6, 4})), "mm", 4, 3);
        m.output(slice(m, h, {0, 0, 1}, {1, 6, 2}, "read"), "y");
        checkPass(m.g, passes::removeDeadRows, false);
    }
    {
        GraphMaker m; // the axis that the softmax sums over
        ops::softmax::Attrs a;
        a.axis = 1;
        ir::Value* h = product(m, m.input("x", ir::shapeOf({1, 6, 4})), "mm", 4, 3);
        m.output(slice(m, m.add(ops::softmax::def(), a, {h}, "softmax"), {0, 0, 0}, {1, 1, 3}, "read"), "y");
        checkPass(m.g, passes::removeDeadRows, false);
    }
    {
        GraphMaker m; // nothing but sums
        ir::Value* x = m.input("x", ir::shapeOf({1, 6, 4}));
        m.output(slice(m, sum(m, x, x, "double"), {0, 0, 0}, {1, 1, 4}, "read"), "y");
        checkPass(m.g, passes::removeDeadRows, false);
    }
}

TEST(RemoveDeadRows, TwoReadersOfTheSamePart)
{
    GraphMaker m;
    ir::Value* h = product(m, m.input("x", ir::shapeOf({1, 6, 4})), "mm", 4, 3);
    m.output(slice(m, h, {0, 1, 0}, {1, 2, 3}, "one"), "y");
    m.output(slice(m, h, {0, 1, 0}, {1, 2, 3}, "two"), "z");
    checkPass(m.g, passes::removeDeadRows, true);
    EXPECT_EQ(rowsOf(m.g, "mm"), 2);
}

} // namespace tw::test
