// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/op.h"
#include "ops/layer_norm/op.h"
#include "ops/softmax/op.h"
#include "pass_test.h"
#include "quantized.h"

namespace tw::test {

namespace {

// x [N, 5, 24] -> norm -> as many readers as wanted.
struct ResultMaker : GraphMaker
{
    explicit ResultMaker(DataType type = DataType::kHalf, int64_t width = 24)
    {
        ops::layer_norm::Attrs a;
        a.axis = 2;
        x = input("x", {ir::Dim::symbol("N"), 5, width}, type);
        norm = add(ops::layer_norm::def(), a, {x, weight("gamma", type, width), weight("beta", type, width)}, "norm");
    }
    ir::Value* weight(std::string const& name, DataType type, int64_t width)
    {
        return constant(name, {width}, std::vector<double>(size_t(width), name == "gamma" ? 1.5 : 0.25), type);
    }
    ir::Value *x, *norm;
};

} // namespace

TEST(FuseResultQuantization, InPlaceOfTheResult)
{
    ResultMaker m;
    for (std::string const name : {"p", "q"}) // one integer tensor for both
        m.output(dequantized(m, quantized(m, m.norm, 0.125, name), 0.125, "d" + name), "y" + name);
    checkPass(m.g, passes::fuseResultQuantization, true, kCheckOnGpu);
    EXPECT_EQ(nodesOf(m.g), "norm + p + q:layer_norm, dp:dequantize, dq:dequantize");
    EXPECT_EQ(m.g.nodes[0]->outputs.size(), 1u);
}

TEST(FuseResultQuantization, BesideTheResult)
{
    for (bool isOutput : {false, true}) {
        ResultMaker m;
        m.output(dequantized(m, quantized(m, m.norm, 0.125, "q"), 0.125, "d"), "y");
        if (isOutput)
            m.output(m.norm, "floats");
        else
            m.output(m.add(ops::softmax::def(), ops::softmax::Attrs(), {m.norm}, "softmax"), "z");
        checkPass(m.g, passes::fuseResultQuantization, true, kCheckOnGpu);
        EXPECT_EQ(nodesOf(m.g),
                  std::string("norm + q:layer_norm, d:dequantize") + (isOutput ? "" : ", softmax:softmax"));
        ASSERT_EQ(m.g.nodes[0]->outputs.size(), 2u);
        EXPECT_EQ(m.g.nodes[0]->outputs[0]->type, DataType::kHalf);
        EXPECT_EQ(m.g.nodes[0]->outputs[1]->type, DataType::kInt8);
    }
}

// q, k, v [N, 5, 24] of 2 heads, with a mask of keys.
struct Attention : GraphMaker
{
    explicit Attention(DataType type = DataType::kHalf, int64_t size = 12)
    {
        ops::attention::Attrs a;
        a.heads = 2;
        a.size = a.valueSize = a.q.headStride = a.k.headStride = a.v.headStride = size;
        a.scale = 0.25;
        std::vector<ir::Value*> in;
        for (char const* name : {"q", "k", "v"})
            in.push_back(input(name, {ir::Dim::symbol("N"), 5, 2 * size}, type));
        in.push_back(input("mask", {ir::Dim::symbol("N"), 1, 1, 5}, type));
        y = add(ops::attention::def(), a, in, "attention");
    }
    ir::Value* y;
};

TEST(FuseResultQuantization, Attention)
{
    Attention m;
    for (std::string const name : {"p", "q"}) // one integer tensor for both
        m.output(dequantized(m, quantized(m, m.y, 0.125, name), 0.125, "d" + name), "y" + name);
    checkPass(m.g, passes::fuseResultQuantization, true, kCheckOnGpu);
    EXPECT_EQ(nodesOf(m.g), "attention + p + q:attention, dp:dequantize, dq:dequantize");
    ASSERT_EQ(m.g.nodes[0]->outputs.size(), 1u);
    EXPECT_EQ(m.g.nodes[0]->outputs[0]->type, DataType::kInt8);
    EXPECT_EQ(m.g.nodes[0]->inputs.size(), 5u);
}

TEST(FuseResultQuantization, LeavesAttentionAlone)
{
    auto unchanged = [](Attention& m, PassCheck const& check, bool hasReader = false) {
        m.output(dequantized(m, quantized(m, m.y, 0.125, "q"), 0.125, "d"), "y");
        if (hasReader)
            m.output(m.add(ops::softmax::def(), ops::softmax::Attrs(), {m.y}, "softmax"), "z");
        checkPass(m.g, passes::fuseResultQuantization, false, check);
    };
    Attention floats(DataType::kFloat), large(DataType::kHalf, 300), read, cpu;
    unchanged(floats, kCheckOnGpu);
    unchanged(large, kCheckOnGpu);
    unchanged(read, kCheckOnGpu, true);
    PassCheck onCpu = kCheckOnGpu;
    onCpu.target = {};
    unchanged(cpu, onCpu);
}

TEST(FuseResultQuantization, LeavesAlone)
{
    auto unchanged = [](ResultMaker& m, double other = 0.125, PassCheck const& check = kCheckOnGpu) {
        m.output(dequantized(m, quantized(m, m.norm, 0.125, "q"), 0.125, "d"), "y");
        if (other != 0.125)
            m.output(dequantized(m, quantized(m, m.norm, other, "p"), other, "e"), "z");
        checkPass(m.g, passes::fuseResultQuantization, false, check);
    };
    ResultMaker floats(DataType::kFloat), scales, cpu, wide(DataType::kHalf, 16392), integers;
    unchanged(floats);
    unchanged(scales, 0.25);
    PassCheck onCpu = kCheckOnGpu;
    onCpu.target = {};
    unchanged(cpu, 0.125, onCpu);
    unchanged(wide);
    integers.output(quantized(integers, integers.norm, 0.125, "q"), "y"); // a network output of integers
    checkPass(integers.g, passes::fuseResultQuantization, false, kCheckOnGpu);
}

} // namespace tw::test
