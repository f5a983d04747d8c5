// SPDX-License-Identifier: Apache-2.0
#include "ops/activation/op.h"
#include "ops/concatenation/op.h"
#include "ops/convolution/op.h"
#include "ops/elementwise/op.h"
#include "pass_test.h"

namespace tw::test {

namespace {

class ConvolutionMaker : public GraphMaker
{
public:
    ir::Value* const x = input("x", ir::shapeOf({2, 5, 6, 6}));

    ir::Value* convolve(ir::Value* from, std::string const& name, int64_t channels, int64_t window = 1,
                        int64_t stride = 1, bool bias = true)
    {
        ops::convolution::Attrs a = ops::convolution::Attrs::plain(2);
        a.strides.assign(2, stride);
        a.prePadding.assign(2, window / 2);
        a.postPadding.assign(2, window / 2);
        int64_t const c = from->shape[1].value();
        std::vector<ir::Value*> in{from, constant(name + ".w", {channels, c, window, window})};
        if (bias)
            in.push_back(constant(name + ".b", {channels}));
        return add(ops::convolution::def(), a, in, name);
    }
    ir::Value* relu(ir::Value* v, float alpha = 0)
    {
        using ops::activation::Kind;
        return add(ops::activation::def(), ops::activation::Attrs(alpha != 0 ? Kind::kLeakyRelu : Kind::kRelu, alpha),
                   {v}, v->name + ".relu");
    }
};

int64_t convolutionsOf(ir::Graph const& g)
{
    return std::count_if(g.nodes.begin(), g.nodes.end(),
                         [](auto const& n) { return n->op == &ops::convolution::def(); });
}

} // namespace

TEST(MergeConvolutions, WithTheirActivations)
{
    ConvolutionMaker m;
    ir::Value* a = m.relu(m.convolve(m.x, "a", 8));
    ir::Value* b = m.relu(m.convolve(m.x, "b", 16, 1, 1, false));
    m.output(m.convolve(a, "next", 3, 3), "y");
    m.output(m.convolve(b, "other", 4, 3), "z");
    checkPass(m.g, passes::mergeConvolutions, true, kCheckOnGpu);
    EXPECT_EQ(convolutionsOf(m.g), 3);
    EXPECT_EQ(m.g.nodes[0]->outputs[0]->shape[1].value(), 24);
    EXPECT_EQ(m.g.nodes[1]->op, &ops::activation::def());
}

TEST(MergeConvolutions, ThreeWithLargerWindows)
{
    ConvolutionMaker m;
    std::vector<ir::Value*> ends;
    for (std::string name : {"a", "b", "c"})
        ends.push_back(m.convolve(m.convolve(m.x, name, 8, 3, 2), name + ".next", 4));
    for (ir::Value* v : ends)
        m.output(v, v->name);
    checkPass(m.g, passes::mergeConvolutions, true, kCheckOnGpu);
    EXPECT_EQ(convolutionsOf(m.g), 4);
}

TEST(MergeConvolutions, WhatDiffersStaysApart)
{
    auto pair = [](auto make) {
        ConvolutionMaker m;
        ir::Value* const a = m.relu(m.convolve(m.x, "a", 8, 3));
        ir::Value* const b = make(m);
        m.output(m.convolve(a, "next", 4), "y");
        m.output(m.convolve(b, "other", 4), "z");
        checkPass(m.g, passes::mergeConvolutions, false, kCheckOnGpu);
    };
    pair([](ConvolutionMaker& m) { return m.relu(m.convolve(m.x, "b", 8, 1)); });       // the window
    pair([](ConvolutionMaker& m) { return m.relu(m.convolve(m.x, "b", 8, 3, 2)); });    // the stride
    pair([](ConvolutionMaker& m) { return m.relu(m.convolve(m.x, "b", 8, 3), 0.1f); }); // the activation
    pair([](ConvolutionMaker& m) { return m.convolve(m.x, "b", 8, 3); });               // none
    pair([](ConvolutionMaker& m) { return m.relu(m.convolve(m.x, "b", 12, 3)); });      // channels within 16 bytes
    pair([](ConvolutionMaker& m) { return m.relu(m.convolve(m.relu(m.x), "b", 8, 3)); });
}

TEST(MergeConvolutions, WhatTakesTheResultDecides)
{
    {
        ConvolutionMaker m;
        ir::Value* const a = m.convolve(m.x, "a", 8);
        ir::Value* const b = m.convolve(m.x, "b", 8);
        m.output(m.add(ops::concatenation::def(), ops::concatenation::Attrs(1), {a, b}, "joined"), "y");
        checkPass(m.g, passes::mergeConvolutions, false, kCheckOnGpu);
    }
    {
        ConvolutionMaker m;
        ir::Value* const a = m.convolve(m.x, "a", 8);
        ir::Value* const b = m.convolve(m.x, "b", 8);
        m.output(m.add(ops::elementwise::def(), ops::elementwise::Attrs(ops::elementwise::Operation::kSum), {a, b},
                       "residual"),
                 "y");
        checkPass(m.g, passes::mergeConvolutions, false, kCheckOnGpu);
    }
    {
        ConvolutionMaker m; // CPU builds keep them
        m.output(m.convolve(m.convolve(m.x, "a", 8), "next", 4), "y");
        m.output(m.convolve(m.convolve(m.x, "b", 8), "other", 4), "z");
        checkPass(m.g, passes::mergeConvolutions, false);
    }
}

} // namespace tw::test
