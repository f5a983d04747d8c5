// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution/op.h"
#include "ops/elementwise/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/scale/op.h"
#include "ops/slice/op.h"
#include "pass_test.h"

namespace tw::test {

namespace {

using Operation = ops::elementwise::Operation;
using ops::scale::Mode;

// y [2, 6, ...] of a convolution with two groups.
ir::Value* convolution(GraphMaker& m, bool bias)
{
    auto a = ops::convolution::Attrs::plain(2);
    a.groups = 2;
    std::vector<ir::Value*> in{m.input("x", ir::shapeOf({2, 4, 5, 5})), m.constant("w", {6, 2, 3, 3})};
    if (bias)
        in.push_back(m.constant("b", {6}));
    return m.add(ops::convolution::def(), a, in, "conv");
}

ir::Value* deconvolution(GraphMaker& m, bool bias)
{
    auto a = ops::convolution::Attrs::plain(2, true);
    a.groups = 2;
    a.strides = {2, 2};
    std::vector<ir::Value*> in{m.input("x", ir::shapeOf({2, 4, 5, 5})), m.constant("w", {4, 3, 3, 3})};
    if (bias)
        in.push_back(m.constant("b", {6}));
    return m.add(ops::convolution::def(), a, in, "conv");
}

ir::Value* connected(GraphMaker& m, bool bias)
{
    std::vector<ir::Value*> in{m.input("x", ir::shapeOf({2, 4, 2, 2})), m.constant("w", {6, 16})};
    if (bias)
        in.push_back(m.constant("b", {6}));
    return m.add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs::fullyConnected(), in, "conv");
}

using Make = ir::Value* (*)(GraphMaker&, bool bias);
constexpr Make kLayers[] = {convolution, deconvolution, connected};

} // namespace

TEST(FoldScaleIntoConvolution, ScaleLayers)
{
    for (Make make : kLayers)
        for (bool bias : {false, true})
            for (Mode mode : {Mode::kUniform, Mode::kChannel})
                for (int given = 1; given < 4; ++given) { // scale, shift, both
                    GraphMaker m;
                    int64_t const n = mode == Mode::kUniform ? 1 : 6;
                    ir::Value* y = make(m, bias);
                    std::vector<ir::Value*> in{y, given & 1 ? m.constant("s", {n}) : nullptr,
                                               given & 2 ? m.constant("t", {n}) : nullptr};
                    m.output(m.add(ops::scale::def(), ops::scale::Attrs(mode), in, "bn"), "y");
                    checkPass(m.g, passes::foldScaleIntoConvolution, true);
                    ASSERT_EQ(m.g.nodes.size(), 1u);
                    EXPECT_EQ(m.g.nodes[0]->name, "conv + bn");
                    EXPECT_EQ(m.g.nodes[0]->layers, (std::vector<std::string>{"conv", "bn"}));
                }
}

TEST(FoldScaleIntoConvolution, ElementwiseWithConstants)
{
    for (Make make : kLayers)
        for (Operation o : {Operation::kSum, Operation::kSub, Operation::kProd, Operation::kDiv})
            for (bool first : {false, true})
                for (Extents const& dims : {Extents{1, 6, 1, 1}, Extents{1, 1, 1, 1}}) {
                    GraphMaker m;
                    ir::Value* y = make(m, true);
                    ir::Value* c = m.constant("c", dims, {0.5, -2, 3, 1.5, -0.25, 4});
                    std::vector<ir::Value*> in = first ? std::vector<ir::Value*>{c, y} : std::vector<ir::Value*>{y, c};
                    m.output(m.add(ops::elementwise::def(), ops::elementwise::Attrs(o), in, "e"), "y");
                    bool const can = !(o == Operation::kDiv && first);
                    checkPass(m.g, passes::foldScaleIntoConvolution, can);
                    EXPECT_EQ(m.g.nodes.size(), can ? 1u : 2u);
                }
}

TEST(FoldScaleIntoConvolution, WeightsKeepWhereTheyCameFrom)
{
    for (bool refittable : {false, true}) {
        GraphMaker m;
        ir::Value* y = convolution(m, false);
        auto c = std::make_shared<ir::Constant>(*y->producer->inputs[1]->constant);
        c->layer = "conv";
        c->role = ir::WeightsRole::kKernel;
        y->producer->inputs[1]->constant = c;
        ir::Value* shift = m.constant("t", {6});
        m.output(m.add(ops::scale::def(), ops::scale::Attrs(Mode::kChannel), {y, nullptr, shift}, "bn"), "y");
        PassCheck check;
        check.refittable = refittable;
        checkPass(m.g, passes::foldScaleIntoConvolution, true, check);
        auto const& in = m.g.nodes[0]->inputs;
        EXPECT_EQ(in[1]->constant->layer, "conv");
        EXPECT_EQ(in[1]->constant->role, ir::WeightsRole::kKernel);
        EXPECT_EQ(in[2]->constant->layer, "conv");
        EXPECT_EQ(in[2]->constant->role, ir::WeightsRole::kBias);
    }
}

TEST(FoldScaleIntoConvolution, ReasonsNotTo)
{
    auto scaled = [](auto change) {
        GraphMaker m;
        ir::Value* y = convolution(m, true);
        change(m, y);
        checkPass(m.g, passes::foldScaleIntoConvolution, false);
    };
    auto uniform = ops::scale::Attrs(Mode::kUniform);
    scaled([&](GraphMaker& m, ir::Value* y) { // others read the convolution
        m.output(m.add(ops::scale::def(), uniform, {y, m.constant("s", {1})}, "bn"), "y");
        m.output(y, "z");
    });
    scaled([&](GraphMaker& m, ir::Value* y) { // power
        m.output(m.add(ops::scale::def(), uniform, {y, nullptr, nullptr, m.constant("p", {1}, {2})}, "bn"), "y");
    });
    scaled([&](GraphMaker& m, ir::Value* y) { // not the channel
        m.output(m.add(ops::scale::def(), ops::scale::Attrs(Mode::kChannel, 3), {y, m.constant("s", {3})}, "bn"), "y");
    });
    scaled([&](GraphMaker& m, ir::Value* y) { // no constant
        m.output(m.add(ops::scale::def(), uniform, {y, m.input("s", ir::shapeOf({1}))}, "bn"), "y");
    });
    scaled([&](GraphMaker& m, ir::Value* y) { // a kernel out of range
        y->producer->inputs[1] = m.constant("large", {6, 2, 3, 3}, {2});
        m.output(m.add(ops::scale::def(), uniform, {y, m.constant("s", {1}, {3e38})}, "bn"), "y");
    });
    scaled([&](GraphMaker& m, ir::Value* y) { // after no convolution, but a node with inputs that are not given
        ops::slice::Attrs a;
        a.start = {0, 0, 0, 0};
        a.size = {2, 6, 2, 2};
        a.stride = {1, 1, 1, 1};
        a.mode = ops::slice::Mode::kFill;
        y = m.add(ops::slice::def(), a, {y, nullptr, nullptr, nullptr, m.constant("fill", {1})}, "slice");
        m.output(m.add(ops::scale::def(), uniform, {y, m.constant("s", {1})}, "bn"), "y");
    });
    scaled([&](GraphMaker& m, ir::Value* y) { // wishes differ
        ir::Value* z = m.add(ops::scale::def(), uniform, {y, m.constant("s", {1})}, "bn");
        y->producer->precision = {DataType::kHalf, true};
        z->producer->precision = {DataType::kFloat, true};
        m.output(z, "y");
    });
}

} // namespace tw::test
