// SPDX-License-Identifier: Apache-2.0
#include "ops/layer_norm/op.h"
#include "ops/softmax/op.h"
#include "pass_test.h"
#include "quantized.h"

namespace tw::test {

namespace {

// x [N, 5, 24] -> norm -> as many readers as wanted.
struct Maker : GraphMaker
{
    explicit Maker(DataType type = DataType::kHalf, int64_t width = 24)
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

PassCheck onGpu()
{
    PassCheck check{{{"N", 2}}};
    check.target = kGpu;
    return check;
}

} // namespace

TEST(FuseNormQuantization, InPlaceOfTheResult)
{
    Maker m;
    for (std::string const name : {"p", "q"}) // one integer tensor for both
        m.output(dequantized(m, quantized(m, m.norm, 0.125, name), 0.125, "d" + name), "y" + name);
    checkPass(m.g, passes::fuseNormQuantization, true, onGpu());
    EXPECT_EQ(nodesOf(m.g), "norm + p + q:layer_norm, dp:dequantize, dq:dequantize");
    EXPECT_EQ(m.g.nodes[0]->outputs.size(), 1u);
}

TEST(FuseNormQuantization, BesideTheResult)
{
    for (bool isOutput : {false, true}) {
        Maker m;
        m.output(dequantized(m, quantized(m, m.norm, 0.125, "q"), 0.125, "d"), "y");
        if (isOutput)
            m.output(m.norm, "floats");
        else
            m.output(m.add(ops::softmax::def(), ops::softmax::Attrs(), {m.norm}, "softmax"), "z");
        checkPass(m.g, passes::fuseNormQuantization, true, onGpu());
        EXPECT_EQ(nodesOf(m.g),
                  std::string("norm + q:layer_norm, d:dequantize") + (isOutput ? "" : ", softmax:softmax"));
        ASSERT_EQ(m.g.nodes[0]->outputs.size(), 2u);
        EXPECT_EQ(m.g.nodes[0]->outputs[0]->type, DataType::kHalf);
        EXPECT_EQ(m.g.nodes[0]->outputs[1]->type, DataType::kInt8);
    }
}

TEST(FuseNormQuantization, LeavesAlone)
{
    auto unchanged = [](Maker& m, double other = 0.125, PassCheck const& check = onGpu()) {
        m.output(dequantized(m, quantized(m, m.norm, 0.125, "q"), 0.125, "d"), "y");
        if (other != 0.125)
            m.output(dequantized(m, quantized(m, m.norm, other, "p"), other, "e"), "z");
        checkPass(m.g, passes::fuseNormQuantization, false, check);
    };
    Maker floats(DataType::kFloat), scales, cpu, wide(DataType::kHalf, 16392), integers;
    unchanged(floats);
    unchanged(scales, 0.25);
    PassCheck onCpu = onGpu();
    onCpu.target = {};
    unchanged(cpu, 0.125, onCpu);
    unchanged(wide);
    integers.output(quantized(integers, integers.norm, 0.125, "q"), "y"); // a network output of integers
    checkPass(integers.g, passes::fuseNormQuantization, false, onGpu());
}

} // namespace tw::test
