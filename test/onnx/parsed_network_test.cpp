// SPDX-License-Identifier: Apache-2.0
// What the parser makes of a model: names, outputs, and the layers behind nodes whose meaning has edges.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "models.h"

using namespace tw::test;

namespace {

// The graph's name stays in the file, and nodes without one are named after what they make.
TEST(OnnxParser, NamesOfNetworkAndNodes)
{
    ModelProto m = convModel();
    m.mutable_graph()->mutable_node(0)->clear_name();
    m.mutable_graph()->mutable_node(0)->set_output(0, "t");
    addNode(*m.mutable_graph(), "Relu", {"t"}, {"y"});
    Fixture f;
    ASSERT_TRUE(f.parse(m)) << f.error();
    EXPECT_STREQ(f.network->getName(), "Unnamed Network 0");
    ASSERT_EQ(f.network->getNbLayers(), 2);
    EXPECT_STREQ(f.network->getLayer(0)->getName(), "node_of_t");
    EXPECT_STREQ(f.network->getLayer(1)->getName(), "node_of_y");

    Fixture named;
    named.network->setName("mine");
    ASSERT_TRUE(named.parse(m)) << named.error();
    EXPECT_STREQ(named.network->getName(), "mine");
}

// Outputs that are other tensors' values: each is a tensor of its own, under the model's name. A network cannot have an
// input and an output of one name, so the input takes another.
TEST(OnnxParser, OutputsThatAreOtherTensorsToo)
{
    ModelProto m = convModel();
    GraphProto& g = *m.mutable_graph();
    addNode(g, "Identity", {"y"}, {"z"});
    addNode(g, "Identity", {"x"}, {"same"});
    addNode(g, "Identity", {"w"}, {"weights"});
    std::vector<int64_t> const image{1, 1, 4, 4}, result{1, 1, 2, 2}, kernel{1, 1, 3, 3};
    addValue(*g.add_output(), "x", TensorProto::FLOAT, image);
    addValue(*g.add_output(), "z", TensorProto::FLOAT, result);
    addValue(*g.add_output(), "same", TensorProto::FLOAT, image);
    addValue(*g.add_output(), "w", TensorProto::FLOAT, kernel);
    addValue(*g.add_output(), "weights", TensorProto::FLOAT, kernel);
    addValue(*g.add_output(), "y", TensorProto::FLOAT, result); // once more
    Fixture f;
    ASSERT_TRUE(f.parse(m)) << f.error();
    EXPECT_STREQ(f.network->getInput(0)->getName(), "__x");
    EXPECT_EQ(f.logger.count("'__x'"), 1);
    EXPECT_EQ(f.logger.count("output 'y' is listed twice"), 1);
    std::vector<std::string> names;
    for (int i = 0; i < f.network->getNbOutputs(); ++i)
        names.push_back(f.network->getOutput(i)->getName());
    EXPECT_EQ(names, (std::vector<std::string>{"y", "x", "z", "same", "w", "weights"}));
    EXPECT_EQ(f.run({{"__x", floats(16)}, {"y", {}}, {"x", {}}, {"z", {}}, {"same", {}}, {"w", {}}, {"weights", {}}}),
              "");
    EXPECT_EQ(f.results["x"], floats(16));
    EXPECT_EQ(f.results["same"], floats(16));
    EXPECT_EQ(f.results["w"], floats(9));
    EXPECT_EQ(f.results["weights"], floats(9));
    EXPECT_EQ(f.results["y"].size(), 4u);
    EXPECT_EQ(f.results["y"], f.results["z"]);

    ModelProto taken = m; // the other name is there already
    addValue(*taken.mutable_graph()->add_input(), "__x", TensorProto::FLOAT, image);
    Fixture g2;
    ASSERT_TRUE(g2.parse(taken)) << g2.error();
    EXPECT_STREQ(g2.network->getInput(0)->getName(), "____x");
}

// ---- pools whose last window would begin after the input: it is dropped, whatever the operator set

// y = op(x) with windows of 2 at steps of 2 over x [1,1,1,n], which is padded as `pads` say; rounded up.
ModelProto poolModel(std::string const& op, int opset, int64_t n, std::vector<int64_t> const& pads)
{
    ModelProto m;
    m.set_ir_version(8);
    m.add_opset_import()->set_version(opset);
    GraphProto& g = *m.mutable_graph();
    g.set_name("pool");
    addValue(*g.add_input(), "x", TensorProto::FLOAT, {1, 1, 1, n});
    addValue(*g.add_output(), "y", TensorProto::FLOAT, {});
    NodeProto& node = addNode(g, op, {"x"}, {"y"}, "last");
    addInts(node, "kernel_shape", {1, 2});
    addInts(node, "strides", {1, 2});
    addInts(node, "pads", pads);
    addInt(node, "ceil_mode", 1);
    return m;
}

TEST(OnnxPools, WindowsBehindTheInput)
{
    struct Case
    {
        char const* op;
        int opset;
        int64_t n;
        std::vector<int64_t> pads; // top, left, bottom, right
        std::vector<float> expected;
        int counting = 0; // count_include_pad
    };
    for (Case const& c : std::vector<Case>{
             {"MaxPool", 12, 4, {0, 0, 0, 1}, {1, 3}}, // not the same before and after
             {"MaxPool", 22, 4, {0, 0, 0, 1}, {1, 3}},
             {"MaxPool", 22, 5, {0, 1, 0, 1}, {0, 2, 4}},
             {"MaxPool", 12, 5, {0, 1, 0, 1}, {0, 2, 4}},
             {"MaxPool", 12, 5, {0, 0, 0, 0}, {1, 3, 4}},
             {"AveragePool", 11, 4, {0, 0, 0, 1}, {0.5F, 2.5F}},
             {"AveragePool", 19, 4, {0, 0, 0, 1}, {0.5F, 2.5F}},
             {"AveragePool", 11, 5, {0, 1, 0, 1}, {0, 1.5F, 3.5F}},
             {"AveragePool", 11, 5, {0, 1, 0, 1}, {0, 1.5F, 3.5F}, 1},
             {"AveragePool", 11, 5, {0, 0, 0, 0}, {0.5F, 2.5F, 4}, 1}, // hangs over: what is there counts
             {"AveragePool", 11, 5, {0, 0, 0, 1}, {0.5F, 2.5F, 2}, 1},
             {"LpPool", 18, 3, {0, 0, 0, 0}, {1, 2}},
             {"LpPool", 18, 4, {0, 0, 0, 1}, {1, std::sqrt(13.F)}},
             {"LpPool", 18, 5, {0, 1, 0, 1}, {0, std::sqrt(5.F), 5}},
         }) {
        SCOPED_TRACE(std::string(c.op) + "-" + std::to_string(c.opset) + " of " + std::to_string(c.n) + ", padding " +
                     std::to_string(c.pads[1]) + ", " + std::to_string(c.pads[3]));
        ModelProto m = poolModel(c.op, c.opset, c.n, c.pads);
        if (c.counting)
            addInt(*m.mutable_graph()->mutable_node(0), "count_include_pad", 1);
        Fixture f;
        ASSERT_TRUE(f.parse(m)) << f.error();
        EXPECT_EQ(f.logger.count("node 'last'"), 0);
        ASSERT_EQ(f.run({{"x", floats(int(c.n))}, {"y", {}}}), "");
        ASSERT_EQ(f.results["y"].size(), c.expected.size());
        for (size_t i = 0; i < c.expected.size(); ++i)
            EXPECT_FLOAT_EQ(f.results["y"][i], c.expected[i]) << i;
    }
}

// ONNX Runtime's answer for MaxPool 2x2 by steps of 2 with padding 1 of a 7x7 image: 4x4.
TEST(OnnxPools, WindowsBehindAnImage)
{
    for (int opset : {11, 22}) {
        ModelProto m = poolModel("MaxPool", opset, 7, {1, 1, 1, 1});
        GraphProto& g = *m.mutable_graph();
        g.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(2)->set_dim_value(7);
        for (int i : {0, 1}) {
            auto& list = *g.mutable_node(0)->mutable_attribute(i); // kernel_shape, strides
            list.set_ints(0, 2);
        }
        Fixture f;
        ASSERT_TRUE(f.parse(m)) << f.error();
        ASSERT_EQ(f.run({{"x", floats(49)}, {"y", {}}}), "");
        EXPECT_EQ(f.results["y"], (std::vector<float>{0, 2, 4, 6, 14, 16, 18, 20, 28, 30, 32, 34, 42, 44, 46, 48}));
    }
}

// Constant layers have one dimension less than tensors.
TEST(OnnxParser, InitializersOfTheHighestRank)
{
    ModelProto m = convModel();
    GraphProto& g = *m.mutable_graph();
    std::vector<int64_t> const dims{1, 3, 1, 1, 1, 1, 1, 3};
    TensorProto& w = *g.mutable_initializer(0);
    w.clear_dims();
    for (int64_t d : dims)
        w.add_dims(d);
    g.clear_node();
    g.clear_input();
    addValue(*g.add_input(), "x", TensorProto::FLOAT, dims);
    addNode(g, "Add", {"x", "w"}, {"y"});
    Fixture f;
    ASSERT_TRUE(f.parse(m)) << f.error();
    ASSERT_EQ(f.run({{"x", floats(9)}, {"y", {}}}), "");
    EXPECT_EQ(f.results["y"], (std::vector<float>{0, 2, 4, 6, 8, 10, 12, 14, 16}));
}

// Convolutions of one dimension one after the other: the channels stay known although length and batch are not.
TEST(OnnxParser, ChannelsBehindUnknownLengths)
{
    ModelProto m = convModel();
    GraphProto& g = *m.mutable_graph();
    auto& shape = *g.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
    shape.Clear();
    shape.add_dim()->set_dim_param("batch");
    shape.add_dim()->set_dim_value(1);
    shape.add_dim()->set_dim_param("length");
    TensorProto& w = *g.mutable_initializer(0);
    w.clear_dims();
    for (int d : {3, 1, 3})
        w.add_dims(d);
    g.mutable_node(0)->set_output(0, "t");
    TensorProto& v = *g.add_initializer();
    v = w;
    v.set_name("v");
    v.set_dims(0, 1);
    v.set_dims(1, 3);
    addNode(g, "Conv", {"t", "v"}, {"y"});
    g.mutable_output(0)->clear_type();
    Fixture f;
    ASSERT_TRUE(f.parse(m)) << f.error();
    nvinfer1::Dims const d = f.network->getOutput(0)->getDimensions();
    ASSERT_EQ(d.nbDims, 3);
    EXPECT_EQ(d.d[0], -1);
    EXPECT_EQ(d.d[1], 1);
    EXPECT_EQ(d.d[2], -1);
}

// ---- operators whose meaning changed with the operator set

// y = op(x, more...) with x holding 0, 1, 2, ...; inputs after x are constants, integers or one float.
struct OneNode
{
    ModelProto m;
    NodeProto* node;
    std::vector<int64_t> dims;

    OneNode(std::string const& op, int opset, std::vector<int64_t> const& x, int outputs = 1) : dims(x)
    {
        m.set_ir_version(8);
        m.add_opset_import()->set_version(opset);
        GraphProto& g = *m.mutable_graph();
        g.set_name("one");
        addValue(*g.add_input(), "x", TensorProto::FLOAT, x);
        std::vector<std::string> names;
        for (int i = 0; i < outputs; ++i) {
            names.push_back("y" + std::to_string(i));
            addValue(*g.add_output(), names.back(), TensorProto::FLOAT, {});
        }
        node = &addNode(g, op, {"x"}, names);
    }
    TensorProto& add(int type)
    {
        GraphProto& g = *m.mutable_graph();
        TensorProto& t = *g.add_initializer();
        t.set_name("c" + std::to_string(g.initializer_size()));
        t.set_data_type(type);
        node->add_input(t.name());
        return t;
    }
    OneNode& ints(std::vector<int64_t> const& values)
    {
        TensorProto& t = add(TensorProto::INT64);
        t.add_dims(int64_t(values.size()));
        for (int64_t v : values)
            t.add_int64_data(v);
        return *this;
    }
    OneNode& number(float value)
    {
        add(TensorProto::FLOAT).add_float_data(value);
        return *this;
    }
    OneNode& numbers(std::vector<float> const& values)
    {
        TensorProto& t = add(TensorProto::FLOAT);
        t.add_dims(int64_t(values.size()));
        for (float v : values)
            t.add_float_data(v);
        return *this;
    }
    OneNode& integer(char const* name, int64_t value)
    {
        auto& a = *node->add_attribute();
        a.set_name(name);
        a.set_type(tw_onnx::AttributeProto::INT);
        a.set_i(value);
        return *this;
    }
    OneNode& nothing()
    {
        node->add_input("");
        return *this;
    }
    OneNode& text(char const* name, char const* value)
    {
        auto& a = *node->add_attribute();
        a.set_name(name);
        a.set_type(tw_onnx::AttributeProto::STRING);
        a.set_s(value);
        return *this;
    }
    OneNode& list(char const* name, std::vector<int64_t> const& values)
    {
        addInts(*node, name, values);
        return *this;
    }
    // The outputs one after the other; a failure says the error.
    std::vector<float> run()
    {
        Fixture f;
        EXPECT_TRUE(f.parse(m)) << f.error();
        std::map<std::string, std::vector<float>> tensors{{"x", floats(int(dims[0] * dims[1]))}};
        for (std::string const& name : node->output())
            tensors[name];
        EXPECT_EQ(f.run(tensors), "");
        std::vector<float> all;
        for (std::string const& name : node->output())
            all.insert(all.end(), f.results[name].begin(), f.results[name].end());
        return all;
    }
};

TEST(OnnxOpsets, ClipWithCrossedBounds)
{
    EXPECT_EQ(OneNode("Clip", 13, {1, 4}).number(2).number(1).run(), (std::vector<float>{1, 1, 1, 1}));
    EXPECT_EQ(OneNode("Clip", 13, {1, 4}).number(1).number(2).run(), (std::vector<float>{1, 1, 2, 2}));
}

TEST(OnnxOpsets, SplitIntoUnequalParts)
{
    OneNode n("Split", 18, {5, 1}, 3);
    auto& a = *n.node->add_attribute();
    a.set_name("num_outputs");
    a.set_type(tw_onnx::AttributeProto::INT);
    a.set_i(3);
    EXPECT_EQ(n.run(), (std::vector<float>{0, 1, 2, 3, 4}));
    a.set_i(2);
    Fixture f;
    EXPECT_FALSE(f.parse(n.m));
    EXPECT_NE(f.error().find("num_outputs"), std::string::npos) << f.error();
}

TEST(OnnxOpsets, PadOfSomeAxesAndByWrapping)
{
    EXPECT_EQ(OneNode("Pad", 18, {2, 2}).ints({1, 2}).number(9).ints({-1}).run(),
              (std::vector<float>{9, 0, 1, 9, 9, 9, 2, 3, 9, 9}));
    EXPECT_EQ(OneNode("Pad", 19, {2, 2}).ints({0, 1, 1, 1}).text("mode", "wrap").run(),
              (std::vector<float>{1, 0, 1, 0, 3, 2, 3, 2, 1, 0, 1, 0}));
    // Of 0 1 2 3 the last goes first, then 0 1 2 repeats; 1 2 3 is mirrored.
    EXPECT_EQ(OneNode("Pad", 19, {1, 4}).ints({0, 1, 0, -1}).text("mode", "wrap").run(),
              (std::vector<float>{2, 0, 1, 2}));
    EXPECT_EQ(OneNode("Pad", 13, {1, 4}).ints({0, -1, 0, 2}).text("mode", "reflect").run(),
              (std::vector<float>{1, 2, 3, 2, 1}));
}

// Of 0 1 2 3 | 4 5 6 7: two groups of two channels, mean 0.5 and 2.5, ..., variance 0.25. Scale and bias belong to
// groups first, to channels since opset 21.
TEST(OnnxOpsets, GroupNormalization)
{
    auto run = [](int opset, std::vector<float> const& scale, std::vector<float> const& bias) {
        OneNode n("GroupNormalization", opset, {2, 4});
        return n.numbers(scale).numbers(bias).integer("num_groups", 2).run();
    };
    auto near = [](std::vector<float> const& got, std::vector<float> const& want) {
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); ++i)
            EXPECT_NEAR(got[i], want[i], 1e-3) << i;
    };
    near(run(21, {1, 2, 3, 4}, {0, 1, 2, 3}), {-1, 3, -1, 7, -1, 3, -1, 7});
    near(run(18, {1, 2}, {0, 1}), {-1, 1, -1, 3, -1, 1, -1, 3});
    OneNode uneven("GroupNormalization", 21, {2, 4});
    uneven.numbers({1, 1, 1, 1}).numbers({1, 1, 1, 1}).integer("num_groups", 3);
    Fixture f;
    EXPECT_FALSE(f.parse(uneven.m));
    EXPECT_NE(f.error().find("num_groups is 3, the input has 4 channels"), std::string::npos) << f.error();
}

// Rows 0 1 and 2 3: means of squares 0.5 and 6.5.
TEST(OnnxOpsets, RmsNormalization)
{
    for (char const* op : {"RMSNormalization", "SimplifiedLayerNormalization"}) {
        OneNode n(op, 23, {2, 2});
        auto const y = n.numbers({1, 2}).integer("axis", -1).run();
        std::vector<float> const want{0, 2 / std::sqrt(0.5f), 2 / std::sqrt(6.5f), 6 / std::sqrt(6.5f)};
        ASSERT_EQ(y.size(), want.size());
        for (size_t i = 0; i < y.size(); ++i)
            EXPECT_NEAR(y[i], want[i], 1e-3) << op << i;
    }
}

// 0 1 2 / 3 4 5.
TEST(OnnxOpsets, CumSumAlongAnAxis)
{
    EXPECT_EQ(OneNode("CumSum", 14, {2, 3}).ints({-1}).run(), (std::vector<float>{0, 1, 3, 3, 7, 12}));
    EXPECT_EQ(OneNode("CumSum", 11, {2, 3}).ints({0}).run(), (std::vector<float>{0, 1, 2, 3, 5, 7}));
    OneNode axes("CumSum", 14, {2, 3}), behind("CumSum", 14, {2, 3});
    for (auto const& [n, part] : {std::pair(&axes.ints({0, 1}), "axis has 2 elements"),
                                  std::pair(&behind.ints({2}), "axis 2 is out of range")}) {
        Fixture f;
        EXPECT_FALSE(f.parse(n->m));
        EXPECT_NE(f.error().find(part), std::string::npos) << f.error();
    }
}

// The length comes with the input.
TEST(OnnxOpsets, CumSumOfAnUnknownLength)
{
    OneNode n("CumSum", 14, {2, 3});
    n.ints({1});
    n.m.mutable_graph()
        ->mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(1)
        ->set_dim_param("N");
    Fixture f;
    ASSERT_TRUE(f.parse(n.m)) << f.error();
    auto* const profile = f.builder->createOptimizationProfile();
    using Select = nvinfer1::OptProfileSelector;
    for (auto [which, length] : {std::pair(Select::kMIN, 1), std::pair(Select::kOPT, 3), std::pair(Select::kMAX, 300)})
        profile->setDimensions("x", which, nvinfer1::Dims2(2, length));
    std::unique_ptr<nvinfer1::IBuilderConfig> config{f.builder->createBuilderConfig()};
    config->addOptimizationProfile(profile);
    std::unique_ptr<nvinfer1::ICudaEngine> engine{f.builder->buildEngineWithConfig(*f.network, *config)};
    ASSERT_TRUE(engine);
    std::unique_ptr<nvinfer1::IExecutionContext> context{engine->createExecutionContext()};
    for (int length : {1, 3, 256, 300}) {
        std::vector<float> x(size_t(2 * length), 1), y(x.size());
        context->setInputShape("x", nvinfer1::Dims2(2, length));
        context->setTensorAddress("x", x.data());
        context->setTensorAddress("y0", y.data());
        ASSERT_TRUE(context->enqueueV3(nullptr));
        for (int i = 0; i < 2 * length; ++i)
            ASSERT_EQ(y[size_t(i)], float(i % length + 1)) << length << ": " << i;
    }
    std::unique_ptr<nvinfer1::IEngineInspector> inspector{engine->createEngineInspector()};
    EXPECT_EQ(engine->getNbLayers(), 1) << inspector->getEngineInformation(nvinfer1::LayerInformationFormat::kONELINE);
}

// Constants are scattered while the model is read: what comes out may be a shape.
TEST(OnnxOpsets, ScatterOfConstants)
{
    for (char const* op : {"ScatterND", "ScatterElements", "Scatter"}) {
        OneNode n("Reshape", op == std::string("Scatter") ? 10 : 16, {2, 3});
        bool const nd = op == std::string("ScatterND");
        OneNode parts(op, 16, {1, 1});
        parts.ints({2, 1, 7}).ints({-1, 0}).ints({1, 6});
        GraphProto& g = *n.m.mutable_graph();
        std::vector<std::string> names;
        for (TensorProto const& t : parts.m.graph().initializer()) {
            *g.add_initializer() = t;
            names.push_back(t.name());
        }
        if (nd)
            g.mutable_initializer(1)->add_dims(1);
        addNode(g, op, names, {"shape"});
        n.node = g.mutable_node(0);
        n.node->add_input("shape");
        EXPECT_EQ(n.run(), floats(6)) << op;
        Fixture f;
        ASSERT_TRUE(f.parse(n.m)) << f.error();
        nvinfer1::Dims const d = f.network->getOutput(0)->getDimensions();
        EXPECT_EQ(std::vector<int>(d.d, d.d + d.nbDims), (std::vector<int>{6, 1, 1})) << op;
    }
}

// x counts from 0; two updates of one element, one from the end.
TEST(OnnxOpsets, ScatterThatCombines)
{
    auto combined = [](char const* reduction, int opset = 18) {
        OneNode n("ScatterElements", opset, {1, 4});
        n.ints({1, -1, 1}).numbers({5, -7, 2}).integer("axis", 1).text("reduction", reduction);
        for (TensorProto& t : *n.m.mutable_graph()->mutable_initializer()) {
            t.set_dims(0, 1);
            t.add_dims(3);
        }
        return n.run();
    };
    EXPECT_EQ(combined("add", 16), (std::vector<float>{0, 8, 2, -4}));
    EXPECT_EQ(combined("mul", 16), (std::vector<float>{0, 10, 2, -21}));
    EXPECT_EQ(combined("max"), (std::vector<float>{0, 5, 2, 3}));
    EXPECT_EQ(combined("min"), (std::vector<float>{0, 1, 2, -7}));
    OneNode n("ScatterElements", 18, {4});
    n.ints({1, -1, 1}).numbers({5, -7, 2}).text("reduction", "average");
    Fixture f;
    EXPECT_FALSE(f.parse(n.m));
    EXPECT_EQ(f.code(), ErrorCode::kINVALID_NODE);
    EXPECT_NE(f.error().find("reduction 'average'"), std::string::npos) << f.error();
}

TEST(OnnxOpsets, ResizeOfSomeAxes)
{
    std::vector<float> const twice{0, 0, 1, 1, 2, 2, 3, 3};
    EXPECT_EQ(OneNode("Resize", 18, {2, 2}).nothing().nothing().ints({4}).list("axes", {-1}).run(), twice);
    EXPECT_EQ(OneNode("Resize", 19, {2, 2})
                  .nothing()
                  .nothing()
                  .ints({2, 4})
                  .text("coordinate_transformation_mode", "half_pixel_symmetric")
                  .run(),
              twice);
}

} // namespace
