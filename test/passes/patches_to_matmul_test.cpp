// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution/op.h"
#include "ops/shuffle/op.h"
#include "pass_test.h"
#include "quantized.h"

namespace tw::test {

namespace {

// x [N, 3, 6, 8] -> patches of 2 x 4 -> [N, 5, 3, 2] -> tokens [N, 6, 5].
struct PatchMaker : GraphMaker
{
    ops::convolution::Attrs window = ops::convolution::Attrs::plain(2);
    ops::shuffle::Attrs tokens;
    int64_t height = 6;
    bool bias = true;
    ir::Value* image = nullptr;

    PatchMaker()
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

} // namespace

TEST(PatchesToMatmul, WithAndWithoutBias)
{
    for (bool bias : {false, true}) {
        PatchMaker m;
        m.bias = bias;
        m.make();
        checkPass(m.g, passes::patchesToMatmul, true, kCheckOnGpu);
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
        PatchMaker const attrs;
        ir::Value* x = faked(m, m.input("x", {ir::Dim::symbol("N"), 3, 6, 8}), 0.125, "a");
        std::vector<ir::Value*> const in{x, weights(m, {5, 3, 2, 4}, axis, "w"), m.constant("b", {5})};
        ir::Value* const image = m.add(ops::convolution::def(), attrs.window, in, "conv");
        m.output(m.add(ops::shuffle::def(), attrs.tokens, {image}, "tokens"), "y");
        checkPass(m.g, passes::patchesToMatmul, true, kCheckOnGpu);
        checkPass(m.g, passes::fuseActivation, true, kCheckOnGpu);
        checkPass(m.g, passes::fuseQuantization, true, kCheckOnGpu);
        EXPECT_EQ(nodesOf(m.g), "a.q:quantize, conv.patches:shuffle, conv.patches.rows:shuffle, "
                                "conv + conv.bias + tokens:matrix_multiply");
        EXPECT_EQ(m.g.nodes.back()->inputs[0]->type, DataType::kInt8);
    }
}

TEST(PatchesToMatmul, LeavesAlone)
{
    auto unchanged = [](auto change, PassCheck const& check = kCheckOnGpu) {
        PatchMaker m;
        change(m);
        m.make();
        checkPass(m.g, passes::patchesToMatmul, false, check);
    };
    PassCheck cpu = kCheckOnGpu;
    cpu.target = {};
    unchanged([](PatchMaker&) {}, cpu);
    unchanged([](PatchMaker& m) { m.window.strides = {2, 2}; });                                   // overlap
    unchanged([](PatchMaker& m) { m.height = 7; });                                                // a row is left out
    unchanged([](PatchMaker& m) { m.height = 5, m.window.prePadding[0] = 1; });                    // padding
    unchanged([](PatchMaker& m) { m.tokens.reshape = {0, 6, 5}, m.tokens.secondTranspose = {}; }); // other elements
    PatchMaker shared;
    shared.make();
    shared.output(shared.image, "image");
    checkPass(shared.g, passes::patchesToMatmul, false, kCheckOnGpu);
}

} // namespace tw::test
