// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear and DequantizeLinear: their forms in each operator set, and what is refused.
#include <cmath>

#include <gtest/gtest.h>

#include "models.h"

using namespace tw::test;

namespace {

// y = DequantizeLinear(QuantizeLinear(x, s, z), s, z) with x [2,3]; s and z are added by the test, "" leaves z out.
ModelProto pairModel(int opset, std::string const& zero = "z")
{
    ModelProto m;
    m.set_ir_version(8);
    m.add_opset_import()->set_version(opset);
    GraphProto& g = *m.mutable_graph();
    g.set_name("pair");
    addValue(*g.add_input(), "x", TensorProto::FLOAT, {2, 3});
    addValue(*g.add_output(), "y", TensorProto::FLOAT, {2, 3});
    std::vector<std::string> const tail =
        zero.empty() ? std::vector<std::string>{"s"} : std::vector<std::string>{"s", zero};
    std::vector<std::string> q{"x"}, dq{"q"};
    q.insert(q.end(), tail.begin(), tail.end());
    dq.insert(dq.end(), tail.begin(), tail.end());
    addNode(g, "QuantizeLinear", q, {"q"}, "quantize");
    addNode(g, "DequantizeLinear", dq, {"y"}, "dequantize");
    return m;
}

std::string errorOf(ModelProto const& m)
{
    Fixture f;
    return f.parse(m) ? "accepted" : f.error();
}
#define EXPECT_ERROR(model, part) EXPECT_NE(errorOf(model).find(part), std::string::npos) << errorOf(model)

TEST(OnnxQuantization, PairsOfEachOperatorSet)
{
    for (int opset : {10, 13, 19, 21})
        for (bool zero : {false, true})
            for (bool isList : {false, true}) {
                ModelProto m = pairModel(opset, zero ? "z" : "");
                std::vector<int64_t> const dims = isList ? std::vector<int64_t>{1} : std::vector<int64_t>{};
                addFloats(*m.mutable_graph(), "s", dims, {0.5F});
                if (zero)
                    addIntegers(*m.mutable_graph(), "z", dims, {0}, TensorProto::INT8);
                Fixture f;
                f.int8 = true;
                ASSERT_TRUE(f.parse(m)) << f.error();
                EXPECT_EQ(f.logger.count("has no zero point"), zero ? 0 : 1);
                EXPECT_EQ(f.network->getLayer(1)->getType(), nvinfer1::LayerType::kQUANTIZE);
                EXPECT_EQ(f.run({{"x", {0.25F, 0.75F, -0.3F, 100, -100, 1}}, {"y", {}}}), "");
                EXPECT_EQ(f.results["y"], (std::vector<float>{0, 1, -0.5F, 63.5F, -64, 1}));
            }
}

// y = x w + b, as ONNX Runtime's quantizer writes it: INT8 weights with a scale for each column, an INT32 bias.
ModelProto productModel(int64_t axis)
{
    ModelProto m;
    m.set_ir_version(8);
    m.add_opset_import()->set_version(13);
    GraphProto& g = *m.mutable_graph();
    g.set_name("product");
    addValue(*g.add_input(), "x", TensorProto::FLOAT, {1, 2});
    addValue(*g.add_output(), "y", TensorProto::FLOAT, {1, 3});
    addIntegers(g, "w", {2, 3}, {1, 2, 3, 4, 5, -6}, TensorProto::INT8);
    addFloats(g, "ws", {3}, {1, 0.5F, 2});
    addIntegers(g, "wz", {3}, {0, 0, 0}, TensorProto::INT8);
    addIntegers(g, "b", {3}, {100, -100, 70000}, kInt32);
    addFloats(g, "bs", {3}, {0.25F, 0.5F, 0.001F});
    auto& a = *addNode(g, "DequantizeLinear", {"w", "ws", "wz"}, {"wf"}).add_attribute();
    a.set_name("axis");
    a.set_type(tw_onnx::AttributeProto::INT);
    a.set_i(axis);
    auto& b = *addNode(g, "DequantizeLinear", {"b", "bs"}, {"bf"}).add_attribute();
    b.set_name("axis");
    b.set_type(tw_onnx::AttributeProto::INT);
    b.set_i(0);
    addNode(g, "Gemm", {"x", "wf", "bf"}, {"y"});
    return m;
}

TEST(OnnxQuantization, InitializersThatAreIntegers)
{
    for (int64_t axis : {1, -1}) {
        Fixture f;
        f.int8 = true;
        ASSERT_TRUE(f.parse(productModel(axis))) << f.error();
        EXPECT_EQ(f.run({{"x", {1, 2}}, {"y", {}}}), "");
        EXPECT_EQ(f.results["y"], (std::vector<float>{9 + 25, 6 - 50, -18 + 70}));
    }
    ModelProto wrong = productModel(0);
    EXPECT_ERROR(wrong, "it has 3 scales for dimension 0 of");
    EXPECT_ERROR(productModel(2), "axis");
}

TEST(OnnxQuantization, WhatIsNotSymmetricIsRefused)
{
    auto with = [](int type, int32_t zero) {
        ModelProto m = pairModel(13);
        addFloats(*m.mutable_graph(), "s", {}, {0.5F});
        addIntegers(*m.mutable_graph(), "z", {}, {zero}, type);
        return m;
    };
    EXPECT_ERROR(with(TensorProto::UINT8, 0), "its zero point is UINT8");
    EXPECT_ERROR(with(TensorProto::INT8, -3), "its zero point is -3");
    EXPECT_ERROR(with(TensorProto::INT32, 0), "its zero point is INT32, not INT8");
    EXPECT_EQ(errorOf(with(TensorProto::INT8, 0)), "accepted");
}

TEST(OnnxQuantization, ScalesThatAreRefused)
{
    for (float bad : {0.F, -1.F, INFINITY, NAN}) {
        ModelProto m = pairModel(13, "");
        addFloats(*m.mutable_graph(), "s", {}, {bad});
        EXPECT_ERROR(m, "scales must be positive and finite");
    }
    ModelProto computed = pairModel(13, "");
    addValue(*computed.mutable_graph()->add_input(), "s", TensorProto::FLOAT, {});
    EXPECT_ERROR(computed, "scale must be an initializer!");
    ModelProto old = pairModel(10, "");
    addFloats(*old.mutable_graph(), "s", {3}, {1, 2, 3});
    EXPECT_ERROR(old, "need opset 13");
    ModelProto blocks = pairModel(21, "");
    addFloats(*blocks.mutable_graph(), "s", {2, 3}, {1, 2, 3, 4, 5, 6});
    EXPECT_ERROR(blocks, "a scalar or one dimension is possible");
    ModelProto size = pairModel(21, "");
    addFloats(*size.mutable_graph(), "s", {3}, {1, 2, 3});
    auto& a = *size.mutable_graph()->mutable_node(0)->add_attribute();
    a.set_name("block_size");
    a.set_type(tw_onnx::AttributeProto::INT);
    a.set_i(16);
    EXPECT_ERROR(size, "block_size");
    ModelProto integers = pairModel(13, "");
    addIntegers(*integers.mutable_graph(), "s", {}, {1}, kInt32);
    EXPECT_ERROR(integers, "its scale is INT32");
}

TEST(OnnxQuantization, OtherFormsAreRefusedByName)
{
    for (char const* op : {"QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger", "DynamicQuantizeLinear"}) {
        ModelProto m = pairModel(13, "");
        addFloats(*m.mutable_graph(), "s", {}, {1});
        m.mutable_graph()->mutable_node(0)->set_op_type(op);
        EXPECT_ERROR(m, op);
    }
    ModelProto m = pairModel(13, "");
    addFloats(*m.mutable_graph(), "s", {}, {1});
    m.mutable_graph()->mutable_node(0)->set_op_type("Identity");
    m.mutable_graph()->mutable_node(0)->mutable_input()->RemoveLast();
    EXPECT_ERROR(m, "its input is FLOAT; INT8 tensors can be dequantized");
}

} // namespace
