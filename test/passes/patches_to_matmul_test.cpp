// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution/op.h"
#include "ops/shuffle/op.h"
#include "pass_test.h"
#include "quantized.h"

namespace tw::test {

namespace {

// x [N, 3, 6, 8] -> patches of 2 x 4 -> [N, 5, 3, 2] -> tokens [N, 6, 5].
struct Maker : GraphMaker
{
    ops::convolution::Attrs window = ops::convolution::Attrs::plain(2);
    ops::shuffle::Attrs tokens;
    int64_t height = 6;
    bool bias = true;
    ir::Value* image = nullptr;

    Maker()
    {
        window.strides = {2, 4};
        tokens.hasReshape = true;
        tokens.reshape = {0, 5, -1};
        tokens.secondTranspose = {0, 2, 1};
    }
    void make()
    {
        std::vector<ir::Value*> in{input("x", {ir::Dim::symbol("N"), 3, height, 8}), constant("w", {5, 3, 2, 4})};
        if (bias)
            in.push_back(constant("b", {5}));
        image = add(ops::convolution::def(), window, in, "conv");
        output(add(ops::shuffle::def(), tokens, {image}, "tokens"), "y");
    }
};

PassCheck onGpu()
{
    PassCheck check{{{"N", 2}}};
    check.target = kGpu;
    return check;
}

} // namespace

TEST(PatchesToMatmul, WithAndWithoutBias)
{
    for (bool bias : {false, true}) {
        Maker m;
        m.bias = bias;
        m.make();
        checkPass(m.g, passes::patchesToMatmul, true, onGpu());
        EXPECT_EQ(nodesOf(m.g), bias
                                    ? "conv.patches:shuffle, conv.patches.rows:shuffle, conv:matrix_multiply, "
                                      "conv.bias + tokens:elementwise"
                                    : "conv.patches:shuffle, conv.patches.rows:shuffle, conv + tokens:matrix_multiply");
        EXPECT_EQ(m.g.nodes.back()->layers, (std::vector<std::string>{"conv", "tokens"}));
    }
}

TEST(PatchesToMatmul, Quantized)
{
    for (int axis : {-1, 0}) {
        GraphMaker m;
        Maker const attrs;
        ir::Value* x = faked(m, m.input("x", {ir::Dim::symbol("N"), 3, 6, 8}), 0.125, "a");
        std::vector<ir::Value*> const in{x, weights(m, {5, 3, 2, 4}, axis, "w"), m.constant("b", {5})};
        ir::Value* const image = m.add(ops::convolution::def(), attrs.window, in, "conv");
        m.output(m.add(ops::shuffle::def(), attrs.tokens, {image}, "tokens"), "y");
        checkPass(m.g, passes::patchesToMatmul, true, onGpu());
        checkPass(m.g, passes::fuseActivation, true, onGpu());
        checkPass(m.g, passes::fuseQuantization, true, onGpu());
        EXPECT_EQ(nodesOf(m.g), "a.q:quantize, conv.patches:shuffle, conv.patches.rows:shuffle, "
                                "conv + conv.bias + tokens:matrix_multiply");
        EXPECT_EQ(m.g.nodes.back()->inputs[0]->type, DataType::kInt8);
    }
}

TEST(PatchesToMatmul, LeavesAlone)
{
    auto unchanged = [](auto change, PassCheck const& check = onGpu()) {
        Maker m;
        change(m);
        m.make();
        checkPass(m.g, passes::patchesToMatmul, false, check);
    };
    PassCheck cpu = onGpu();
    cpu.target = {};
    unchanged([](Maker&) {}, cpu);
    unchanged([](Maker& m) { m.window.strides = {2, 2}; });                                   // overlap
    unchanged([](Maker& m) { m.height = 7; });                                                // a row is left out
    unchanged([](Maker& m) { m.height = 5, m.window.prePadding[0] = 1; });                    // padding
    unchanged([](Maker& m) { m.tokens.reshape = {0, 6, 5}, m.tokens.secondTranspose = {}; }); // other elements
    Maker shared;
    shared.make();
    shared.output(shared.image, "image");
    checkPass(shared.g, passes::patchesToMatmul, false, onGpu());
}

} // namespace tw::test
