// SPDX-License-Identifier: Apache-2.0
// Which weights follow 2:4, which layers have such weights, and what the log says of them.
#include "tactic/sparsity.h"

#include <limits>

#include <gtest/gtest.h>

#include "builder/sparse_layers.h"
#include "ops/convolution/op.h"
#include "ops/dequantize/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/quantize/op.h"
#include "support/graph_maker.h"

namespace tw::test {

namespace {

using ops::isTwoOfFour;

// Random numbers with the pattern along `axis`: of each four the elements `i` and `j` stay.
Tensor sparse(DataType type, Extents const& dims, int axis, int i = 1, int j = 3)
{
    Tensor t(type, dims);
    fillRandom(t.ref(), ops::Domain{}, 7);
    int64_t const inner = dims.volume(axis + 1, dims.rank);
    for (int64_t e = 0; e < t.ref().count(); ++e) {
        int64_t const place = e / inner % dims[axis] % 4;
        if (place != i && place != j)
            t.ref().set(e, 0);
        else if (t.ref().get(e) == 0)
            t.ref().set(e, 1);
    }
    return t;
}

TEST(Sparsity, PatternAlongEveryAxisAndType)
{
    for (DataType type : {DataType::kFloat, DataType::kHalf, DataType::kInt8, DataType::kInt32})
        for (int axis = 0; axis < 3; ++axis)
            for (int i = 0; i < 4; ++i)
                for (int j = i; j < 4; ++j) {
                    Tensor t = sparse(type, {8, 4, 12}, axis, i, j);
                    EXPECT_TRUE(isTwoOfFour(t.ref(), axis));
                    // One more in any group is too much where two are there.
                    int64_t const inner = Extents{8, 4, 12}.volume(axis + 1, 3);
                    int const other = i != 0 && j != 0 ? 0 : i != 2 && j != 2 ? 2 : 1;
                    t.ref().set(t.ref().count() - 1 - (3 - other) * inner, 1);
                    EXPECT_EQ(isTwoOfFour(t.ref(), axis), i == j) << axis << " " << i << " " << j;
                }
}

TEST(Sparsity, PatternOfAnotherAxisDoesNotCount)
{
    Tensor const t = sparse(DataType::kFloat, {8, 8, 8}, 1);
    EXPECT_TRUE(isTwoOfFour(t.ref(), 1));
    EXPECT_FALSE(isTwoOfFour(t.ref(), 0));
    EXPECT_FALSE(isTwoOfFour(t.ref(), 2));
    EXPECT_FALSE(isTwoOfFour(t.ref(), 3));
    EXPECT_FALSE(isTwoOfFour(t.ref(), -1));
}

TEST(Sparsity, SizesAndSpecialNumbers)
{
    EXPECT_FALSE(isTwoOfFour(Tensor(DataType::kFloat, {2, 6}).ref(), 1)); // zeros, but no multiple of four
    EXPECT_FALSE(isTwoOfFour(Tensor(DataType::kFloat, {2, 0}).ref(), 1));
    EXPECT_FALSE(isTwoOfFour(Tensor(DataType::kFloat, {}).ref(), 0));
    for (DataType type : {DataType::kFloat, DataType::kHalf}) {
        Tensor t(type, {4});
        for (int i = 0; i < 4; ++i)
            t.ref().set(i, -0.0);
        EXPECT_TRUE(isTwoOfFour(t.ref(), 0));
        t.ref().set(0, std::numeric_limits<double>::quiet_NaN());
        t.ref().set(1, std::numeric_limits<double>::infinity());
        EXPECT_TRUE(isTwoOfFour(t.ref(), 0));
        t.ref().set(3, 1e-7); // a subnormal half
        EXPECT_FALSE(isTwoOfFour(t.ref(), 0));
    }
}

// A convolution and two products, one of them with the constant on the left, and what is not eligible: a dense one, one
// with three channels, one of two variables, a transposed convolution. The first one's weights are quantized.
struct Layers : GraphMaker
{
    ir::Value* weights(std::string const& name, Extents const& dims, int axis)
    {
        return g.addConstant(name, DataType::kFloat, dims, sparse(DataType::kFloat, dims, axis).data());
    }
    Layers()
    {
        using ops::convolution::Attrs;
        namespace mm = ops::matrix_multiply;
        using enum mm::MatrixOperation;
        ir::Value* x = input("x", {1, 8, 6, 6});
        ir::Value* const step = constant("step", {}, {0.01});
        ir::Value* const q =
            add(ops::quantize::def(), ops::quantize::Attrs(), {weights("w1", {8, 8, 3, 3}, 1), step}, "q");
        ir::Value* const w1 = add(ops::dequantize::def(), ops::dequantize::Attrs(), {q, step}, "dq");
        x = add(ops::convolution::def(), Attrs::plain(2), {x, w1}, "conv1");
        x = add(ops::convolution::def(), Attrs::plain(2), {x, constant("w2", {3, 8, 1, 1})}, "dense");
        x = add(ops::convolution::def(), Attrs::plain(2), {x, constant("w3", {8, 3, 1, 1}, std::vector<double>(24))},
                "three_channels");
        x = add(ops::convolution::def(), Attrs::plain(2, true), {x, weights("w4", {8, 8, 1, 1}, 1)}, "transposed");
        ir::Value* const a =
            add(mm::def(), mm::Attrs(kNone, kTranspose), {x, weights("w5", {1, 1, 12, 4}, 3)}, "right");
        ir::Value* const b = add(mm::def(), mm::Attrs(kTranspose, kNone), {weights("w6", {1, 1, 4, 4}, 2), x}, "left");
        output(add(mm::def(), mm::Attrs(kTranspose, kTranspose), {a, b}, "variables"), "y");
    }
};

TEST(Sparsity, LayersWithSparseWeights)
{
    Layers m;
    EXPECT_EQ(builder::sparseLayers(m.g), (std::vector<std::string>{"conv1", "right", "left"}));
}

TEST(Sparsity, Lines)
{
    Layers m;
    std::vector<std::string> const layers{"conv1", "right", "inLoop"};
    plan::Block block;
    for (auto const& n : m.g.nodes) {
        n->layers = {n->name};
        block.steps.emplace_back();
        if (n->name == "conv1") {
            n->layers = {"q", "conv1"};
            n->name = "conv1 + relu1";
        }
        for (ops::Tactic const* t : *n->op->cudaTactics)
            if (t->traits().isSparse == (n->name == "right"))
                block.steps.back().choice.tactic = t->id();
    }
    std::vector<std::string> const lines = builder::sparsityLines(layers, m.g, block);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0], "(Sparsity) Layers eligible for sparse math: conv1 + relu1, right, inLoop");
    EXPECT_EQ(lines[1], "(Sparsity) TRT inference plan picked sparse implementation for layers: right");
    EXPECT_EQ(builder::sparsityLines({}, m.g, block)[0], "(Sparsity) Layers eligible for sparse math: ");
}

} // namespace

} // namespace tw::test
