// SPDX-License-Identifier: Apache-2.0
#include "nodes.h"
#include "ops/fill/op.h"
#include "ops/gather/op.h"

namespace tw::test {

TEST(FoldConstants, ChainOfConstants)
{
    GraphMaker m;
    ir::Value* sum = binary(m, Operation::kSum, m.constant("a", {2, 3}), m.constant("b", {2, 3}), "sum");
    ir::Value* product = binary(m, Operation::kProd, sum, m.constant("c", {2, 3}), "product");
    m.output(binary(m, Operation::kSub, m.input("x", ir::shapeOf({2, 3})), product, "difference"), "y");
    checkPass(m.g, passes::foldConstants, true);
    EXPECT_EQ(nodesOf(m.g), "difference:elementwise");
}

TEST(FoldConstants, ElementsThatInferenceKnows)
{
    GraphMaker m;
    ir::Value* x = m.input("x", {ir::Dim::symbol("N"), 3});
    ir::Value* shape = m.add(ops::shape::def(), {x}, "shape");
    ir::Value* second = m.add(ops::gather::def(), ops::gather::Attrs{}, {shape, m.i32("one", {1})}, "second");
    ir::Value* z = m.input("z", ir::shapeOf({1}), DataType::kInt32);
    m.output(binary(m, Operation::kSum, z, second, "sum"), "y");
    checkPass(m.g, passes::foldConstants, true);
    EXPECT_EQ(nodesOf(m.g), "shape:shape, sum:elementwise"); // remove_dead takes the shape
}

TEST(FoldConstants, OutputsStayNodes)
{
    GraphMaker m;
    m.output(binary(m, Operation::kSum, m.constant("a", {2}), m.constant("b", {2}), "sum"), "y");
    checkPass(m.g, passes::foldConstants, false);
}

TEST(FoldConstants, NothingThatGrows)
{
    GraphMaker m;
    ops::fill::Attrs zeros;
    zeros.dims = {1 << 19};
    ops::fill::Attrs few;
    few.dims = {8};
    ir::Value* x = m.input("x", ir::shapeOf({1}));
    ir::Value* large = m.add(ops::fill::def(), zeros, {}, "large"); // 2 MiB
    ir::Value* small = m.add(ops::fill::def(), few, {}, "small");
    m.output(binary(m, Operation::kSum, x, large, "with_large"), "y");
    m.output(binary(m, Operation::kSum, x, small, "with_small"), "z");
    checkPass(m.g, passes::foldConstants, true);
    EXPECT_EQ(nodesOf(m.g), "large:fill, with_large:elementwise, with_small:elementwise");
}

TEST(FoldConstants, NothingRandom)
{
    GraphMaker m;
    ops::fill::Attrs a;
    a.operation = ops::fill::Operation::kRandomUniform;
    a.dims = {4};
    ir::Value* noise = m.add(ops::fill::def(), a, {}, "noise");
    m.output(binary(m, Operation::kSum, m.input("x", ir::shapeOf({4})), noise, "sum"), "y");
    checkPass(m.g, passes::foldConstants, false);
}

TEST(FoldConstants, SizesThatDependOnConstants)
{
    GraphMaker m;
    ir::Value* where = m.add(ops::non_zero::def(), {m.constant("mask", {4}, {0, 1, 0, 1})}, "where"); // [1, 2]
    ir::Value* x = m.input("x", ir::shapeOf({1, 2}), DataType::kInt32);
    ir::Value* y = binary(m, Operation::kSum, x, where, "sum");
    m.output(y, "y");
    checkPass(m.g, passes::foldConstants, true);
    EXPECT_EQ(nodesOf(m.g), "sum:elementwise");
    EXPECT_EQ(str(y->shape), "[1,2]");
}

// Two layers that transpose and reshape the same weights.
TEST(FoldConstants, SharedWeightsStayOne)
{
    GraphMaker m;
    ir::Value* shared = m.constant("w", {6, 4});
    auto const bytesOf = [](ir::Value const* v) { return v->constant->data->data(); };
    void const* const original = bytesOf(shared);
    std::vector<ir::Value*> sums[3];
    for (std::string const layer : {"1", "2"}) {
        ops::shuffle::Attrs reshaped, transposed, both;
        reshaped.hasReshape = both.hasReshape = true;
        reshaped.reshape = {1, 6, 4};
        transposed.firstTranspose = {1, 0};
        both.firstTranspose = {1, 0};
        both.reshape = {2, 2, 6};
        int i = 0;
        for (auto const& a : {reshaped, transposed, both}) {
            std::string const name = layer + "." + std::to_string(i);
            ir::Value* w = m.add(ops::shuffle::def(), a, {shared}, "w" + name);
            ir::Value* x = m.input("x" + name, w->shape);
            sums[i++].push_back(binary(m, Operation::kSum, x, w, name.c_str()));
            m.output(sums[i - 1].back(), "y" + name);
        }
    }
    checkPass(m.g, passes::foldConstants, true);
    auto const folded = [&](int i, size_t layer) { return bytesOf(sums[i][layer]->producer->inputs[1]); };
    EXPECT_EQ(folded(0, 0), original) << "only its dimensions change";
    EXPECT_EQ(folded(0, 1), original);
    EXPECT_NE(folded(1, 0), original);
    EXPECT_EQ(folded(1, 0), folded(1, 1));
    EXPECT_EQ(folded(2, 0), folded(2, 1));
}

TEST(FoldConstants, RefitFollows)
{
    for (bool refittable : {false, true}) {
        GraphMaker m;
        Tensor const w(DataType::kFloat, {2});
        auto c = std::make_shared<ir::Constant>();
        c->data = Blob::copy(w.data(), 8);
        c->layer = "scale1";
        c->role = ir::WeightsRole::kScale;
        ir::Value* weights = m.g.addConstant("w", DataType::kFloat, {2}, c);
        ir::Value* sum = binary(m, Operation::kSum, weights, m.constant("b", {2}), "sum");
        m.output(binary(m, Operation::kProd, m.input("x", ir::shapeOf({2})), sum, "product"), "y");
        PassCheck check;
        check.refittable = refittable;
        checkPass(m.g, passes::foldConstants, true, check);
    }
}

} // namespace tw::test
