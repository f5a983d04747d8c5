// SPDX-License-Identifier: Apache-2.0
// Operators beyond those of 8.5's parser, with arguments that the network computes.
#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "models.h"

using namespace tw::test;

namespace {

// A model whose inputs have unknown dimensions (-1; 1, 4 and 9 in the profile, where nothing else is said), and runs of its
// engine.
struct Model
{
    ModelProto model;
    GraphProto& g = *model.mutable_graph();
    Fixture f;
    std::unique_ptr<nvinfer1::ICudaEngine> engine;

    explicit Model(int opset = 18)
    {
        model.set_ir_version(8);
        model.add_opset_import()->set_version(opset);
        g.set_name("g");
        addValue(*g.add_output(), "y", kFloat, {});
        g.mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
    }
    std::map<std::string, int> most;                        // of unknown dimensions
    std::map<std::string, std::pair<int, int>> shapeValues; // bounds of the one element of a shape tensor
    void input(std::string const& name, std::vector<int64_t> const& dims, int largest = 9)
    {
        most[name] = largest;
        auto& v = *g.add_input();
        addValue(v, name, kFloat, dims);
        int number = 0;
        for (auto& d : *v.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
            if (d.dim_value() < 0)
                d.set_dim_param(name + std::to_string(number++));
    }
    void integers(std::string const& name, std::vector<int64_t> const& values, int type = kInt64)
    {
        addIntegers(g, name, {int64_t(values.size())}, values, type);
    }
    static NodeProto& number(NodeProto& n, char const* name, int64_t value)
    {
        auto& a = *n.add_attribute();
        a.set_name(name);
        a.set_type(tw_onnx::AttributeProto::INT);
        a.set_i(value);
        return n;
    }
    static NodeProto& text(NodeProto& n, char const* name, char const* value)
    {
        auto& a = *n.add_attribute();
        a.set_name(name);
        a.set_type(tw_onnx::AttributeProto::STRING);
        a.set_s(value);
        return n;
    }
    void cast(std::string const& from, std::string const& to, int type)
    {
        number(addNode(g, "Cast", {from}, {to}), "to", type);
    }
    std::string build()
    {
        if (!f.parse(model))
            return f.error();
        using nvinfer1::OptProfileSelector;
        std::unique_ptr<nvinfer1::IBuilderConfig> const config{f.builder->createBuilderConfig()};
        nvinfer1::IOptimizationProfile* profile = f.builder->createOptimizationProfile();
        for (int i = 0; i < f.network->getNbInputs(); ++i) {
            nvinfer1::ITensor const& t = *f.network->getInput(i);
            for (auto [at, size] : {std::pair{OptProfileSelector::kMIN, 1},
                                    {OptProfileSelector::kOPT, 4},
                                    {OptProfileSelector::kMAX, INT32_MAX}}) {
                nvinfer1::Dims d = t.getDimensions();
                for (int k = 0; k < d.nbDims; ++k)
                    d.d[k] = d.d[k] < 0 ? std::min(size, most[t.getName()]) : d.d[k];
                profile->setDimensions(t.getName(), at, d);
                if (auto const v = shapeValues.find(t.getName()); v != shapeValues.end())
                    profile->setShapeValues(t.getName(), at, size == 1 ? &v->second.first : &v->second.second, 1);
            }
        }
        config->addOptimizationProfile(profile);
        engine.reset(f.builder->buildEngineWithConfig(*f.network, *config));
        return engine ? "" : f.logger.errors.empty() ? "no engine" : f.logger.errors[0];
    }
    struct Tensor
    {
        std::vector<int32_t> shape;
        std::vector<float> values;
    };
    // Output y, or the first error.
    Tensor y;
    std::string run(std::map<std::string, Tensor> inputs)
    {
        struct Output final : nvinfer1::IOutputAllocator
        {
            void* reallocateOutput(char const*, void*, uint64_t size, uint64_t) noexcept override
            {
                bytes.resize(size);
                return bytes.data();
            }
            void notifyShape(char const*, nvinfer1::Dims const& d) noexcept override
            {
                shape.assign(d.d, d.d + d.nbDims);
            }
            std::vector<char> bytes;
            std::vector<int32_t> shape;
        } out;
        std::unique_ptr<nvinfer1::IExecutionContext> const context{engine->createExecutionContext()};
        context->setOutputAllocator("y", &out);
        for (auto& [name, t] : inputs) {
            nvinfer1::Dims d{int32_t(t.shape.size()), {}};
            std::copy(t.shape.begin(), t.shape.end(), d.d);
            context->setInputShape(name.c_str(), d);
            context->setTensorAddress(name.c_str(), t.values.data());
        }
        f.logger.errors.clear();
        if (!context->enqueueV3(nullptr))
            return f.logger.errors.empty() ? "no run" : f.logger.errors[0];
        int64_t count = 1;
        for (int32_t d : out.shape)
            count *= d;
        y.shape = out.shape;
        y.values.resize(size_t(count));
        std::memcpy(y.values.data(), out.bytes.data(), size_t(count) * sizeof(float));
        return "";
    }
};

using Shape = std::vector<int32_t>;
using Values = std::vector<float>;

// Axes that the shape of another input gives: -1, 0 or 1 of two.
TEST(OnnxOperators, ReductionAlongComputedAxes)
{
    for (int keepDims : {0, 1})
        for (char const* op : {"ReduceSum", "ReduceMax"}) {
            Model m;
            m.input("x", {-1, -1});
            m.input("n", {-1}, 3);
            m.integers("two", {2});
            addNode(m.g, "Shape", {"n"}, {"length"});
            addNode(m.g, "Sub", {"length", "two"}, {"axes"});
            Model::number(addNode(m.g, op, {"x", "axes"}, {"y"}), "keepdims", keepDims);
            ASSERT_EQ(m.build(), "");
            bool const isSum = std::string(op) == "ReduceSum";
            Model::Tensor const x{{2, 3}, {1, 2, 3, 4, 5, 6}};
            for (int axis : {-1, 0, 1}) {
                ASSERT_EQ(m.run({{"x", x}, {"n", {{axis + 2}, Values(9)}}}), "");
                if (axis == 0) {
                    EXPECT_EQ(m.y.shape, keepDims ? (Shape{1, 3}) : (Shape{3}));
                    EXPECT_EQ(m.y.values, isSum ? (Values{5, 7, 9}) : (Values{4, 5, 6}));
                } else {
                    EXPECT_EQ(m.y.shape, keepDims ? (Shape{2, 1}) : (Shape{2}));
                    EXPECT_EQ(m.y.values, isSum ? (Values{6, 15}) : (Values{3, 6}));
                }
            }
        }
}

TEST(OnnxOperators, AxesThatAreAnInputMustBeAnInitializer)
{
    Model m;
    m.input("x", {-1, -1});
    addValue(*m.g.add_input(), "axes", kInt64, {1});
    addNode(m.g, "ReduceSum", {"x", "axes"}, {"y"});
    EXPECT_NE(m.build().find("axes must be an initializer!"), std::string::npos) << m.f.error();
}

// Scales that are the quotient of two shapes, as old exporters write a resize to a size.
TEST(OnnxOperators, ResizeByComputedScales)
{
    Model m(13);
    m.input("x", {-1});
    m.input("like", {-1}, 31);
    for (std::string const name : {"x", "like"}) {
        addNode(m.g, "Shape", {name}, {name + "_shape"});
        m.cast(name + "_shape", name + "_size", kFloat);
    }
    addNode(m.g, "Div", {"like_size", "x_size"}, {"scales"});
    Model::text(addNode(m.g, "Resize", {"x", "", "scales"}, {"y"}), "coordinate_transformation_mode", "asymmetric");
    ASSERT_EQ(m.build(), "");
    ASSERT_EQ(m.run({{"x", {{3}, {1, 2, 3}}}, {"like", {{6}, Values(9)}}}), "");
    EXPECT_EQ(m.y.values, (Values{1, 1, 2, 2, 3, 3}));
    for (int from = 1; from <= 9; ++from) // a rounded quotient times its divisor is not always the dividend: 31 of 7
        for (int to : {1, 2, 3, 4, 5, 6, 7, 8, 9, 31}) {
            ASSERT_EQ(m.run({{"x", {{from}, floats(9)}}, {"like", {{to}, Values(31)}}}), "");
            EXPECT_EQ(m.y.shape, (Shape{to}));
        }
}

// Sizes are rounded down; the numbers are ONNX Runtime's for a resize to these sizes, of which coordinates are the quotient.
TEST(OnnxOperators, ComputedScalesToPartsOfAnElement)
{
    for (int opset : {9, 13}) {
        Model m(opset);
        m.input("x", {-1});
        m.input("like", {-1});
        addNode(m.g, "Shape", {"like"}, {"shape"});
        m.cast("shape", "size", kFloat);
        addFloats(m.g, "two", {1}, {2});
        addNode(m.g, "Div", {"size", "two"}, {"scales"});
        if (opset == 9)
            addNode(m.g, "Upsample", {"x", "scales"}, {"y"});
        else
            Model::text(addNode(m.g, "Resize", {"x", "", "scales"}, {"y"}), "mode", "linear");
        ASSERT_EQ(m.build(), "");
        EXPECT_EQ(m.f.logger.count("floor(size * scale)"), 1);
        ASSERT_EQ(m.run({{"x", {{3}, floats(9)}}, {"like", {{4}, Values(9)}}}), "");
        EXPECT_EQ(m.y.shape, (Shape{6}));
        ASSERT_EQ(m.run({{"x", {{3}, floats(9)}}, {"like", {{3}, Values(9)}}}), ""); // 3 * 1.5
        EXPECT_EQ(m.y.values, opset == 9 ? (Values{0, 0, 1, 2}) : (Values{0, 0.625F, 1.375F, 2}));
        ASSERT_EQ(m.run({{"x", {{9}, floats(9)}}, {"like", {{1}, Values(9)}}}), ""); // 9 * 0.5
        EXPECT_EQ(m.y.shape, (Shape{4}));
    }
}

// Scales that the network's client gives: a shape tensor.
TEST(OnnxOperators, ResizeByScalesThatAreAnInput)
{
    Model m(13);
    m.input("x", {5});
    m.input("scales", {1});
    Model::text(addNode(m.g, "Resize", {"x", "", "scales"}, {"y"}), "coordinate_transformation_mode", "asymmetric");
    m.shapeValues["scales"] = {1, 4};
    ASSERT_EQ(m.build(), "");
    ASSERT_EQ(m.run({{"x", {{5}, floats(5)}}, {"scales", {{1}, {2}}}}), "");
    EXPECT_EQ(m.y.values, (Values{0, 0, 1, 1, 2, 2, 3, 3, 4, 4}));
    ASSERT_EQ(m.run({{"x", {{5}, floats(5)}}, {"scales", {{1}, {1.5F}}}}), ""); // 7 elements, of 7.5
    EXPECT_EQ(m.y.values, (Values{0, 1, 1, 2, 3, 4, 4}));
    ASSERT_EQ(m.run({{"x", {{5}, floats(5)}}, {"scales", {{1}, {2.6F}}}}), ""); // a bit less than 13 / 5
    EXPECT_EQ(m.y.shape, (Shape{13}));
}

// Each box has as many samples as its bins have pixels; where they are two, it is sampling_ratio 2.
TEST(OnnxOperators, RoiAlignCountsSamplesByTheBox)
{
    auto make = [](Model& m, int ratio) {
        m.input("x", {1, 2, 8, 8});
        m.input("boxes", {2, 4});
        m.integers("images", {0, 0});
        NodeProto& n = addNode(m.g, "RoiAlign", {"x", "boxes", "images"}, {"y"});
        Model::number(n, "output_height", 2);
        Model::number(n, "output_width", 3);
        Model::number(n, "sampling_ratio", ratio);
        return m.build();
    };
    Model ofBox, one, two;
    ASSERT_EQ(make(ofBox, 0), "");
    ASSERT_EQ(make(one, 1), "");
    ASSERT_EQ(make(two, 2), "");
    Values x(128);
    for (size_t i = 0; i < x.size(); ++i)
        x[i] = float(i * i % 37);
    // Bins of 2 x 2 pixels and of 0.9 x 0.6.
    Model::Tensor const image{{1, 2, 8, 8}, x}, boxes{{2, 4}, {1, 1, 7, 5, 2, 3, 3.8F, 4.8F}};
    for (Model* m : {&ofBox, &one, &two})
        ASSERT_EQ(m->run({{"x", image}, {"boxes", boxes}}), "");
    ASSERT_EQ(ofBox.y.shape, (Shape{2, 2, 2, 3}));
    for (size_t i = 0; i < 24; ++i)
        EXPECT_NEAR(ofBox.y.values[i], i < 12 ? two.y.values[i] : one.y.values[i], 1e-4) << i;
    EXPECT_NE(one.y.values, two.y.values);
}

// Mode max: the largest of the four weighted pixels around a sample, not of their sums. ONNX Runtime's numbers.
TEST(OnnxOperators, RoiAlignOfTheLargestParts)
{
    Values x(32);
    for (size_t i = 0; i < x.size(); ++i)
        x[i] = float(i * i % 37) - 5;
    Model::Tensor const image{{1, 2, 4, 4}, x}, boxes{{2, 4}, {0.3F, 0.7F, 2.6F, 3.4F, -1.5F, 1, 0.5F, 4.5F}};
    struct Case
    {
        int opset, ratio;
        Values expected;
    };
    for (Case const& c : {
             Case{10, 0, {23.372707F, 10.933333F, 19.073542F, 15.033334F, 15.125F, 28, 14.0625F, 2}},
             {10, 2, {29.091566F, 14, 24.423437F, 19.25F, 15.125F, 28, 14.0625F, 2}},
             {16, 0, {17.495625F, 15.945415F, 21.695621F, 23.607498F, 17.875F, 28, 23.4375F, 5}},
             {16, 2, {12.816558F, 12.203124F, 12.304686F, 11.803752F, 17.875F, 28, 23.4375F, 5}},
         })
        for (bool isKnown : {true, false}) {
            Model m(c.opset);
            m.input("x", isKnown ? std::vector<int64_t>{1, 2, 4, 4} : std::vector<int64_t>{-1, -1, -1, -1});
            m.input("boxes", {2, 4});
            m.integers("images", {0, 0});
            NodeProto& n = addNode(m.g, "RoiAlign", {"x", "boxes", "images"}, {"y"});
            Model::text(n, "mode", "max");
            Model::number(n, "output_height", 2);
            Model::number(n, "sampling_ratio", c.ratio);
            ASSERT_EQ(m.build(), "");
            if (isKnown) {
                nvinfer1::Dims const d = m.f.network->getOutput(0)->getDimensions();
                EXPECT_EQ(std::vector<int32_t>(d.d, d.d + d.nbDims), (Shape{2, 2, 2, 1})) << c.ratio;
            }
            ASSERT_EQ(m.run({{"x", image}, {"boxes", boxes}}), "");
            ASSERT_EQ(m.y.values.size(), c.expected.size());
            for (size_t i = 0; i < c.expected.size(); ++i)
                EXPECT_NEAR(m.y.values[i], c.expected[i], 1e-4) << c.opset << " " << c.ratio << " " << i;
        }
}

TEST(OnnxOperators, BitwiseOperators)
{
    std::vector<int32_t> const a{0, 1, -1, 12345, INT32_MIN, INT32_MAX, -77, 6}, b{5, 3, 255, -9, -1, 7, 1 << 30, 1};
    for (char const* op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"}) {
        Model m;
        m.g.mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(kInt32);
        addValue(*m.g.add_input(), "x", kInt32, {8});
        m.integers("b", {b.begin(), b.end()}, kInt32);
        std::string const name = op;
        addNode(m.g, op, name == "BitwiseNot" ? std::vector<std::string>{"x"} : std::vector<std::string>{"x", "b"},
                {"y"});
        ASSERT_EQ(m.build(), "");
        Values bits(8);
        std::memcpy(bits.data(), a.data(), 32);
        ASSERT_EQ(m.run({{"x", {{8}, bits}}}), "");
        std::vector<int32_t> y(8), expected;
        std::memcpy(y.data(), m.y.values.data(), 32);
        for (size_t i = 0; i < 8; ++i)
            expected.push_back(name == "BitwiseAnd"   ? a[i] & b[i]
                               : name == "BitwiseOr"  ? a[i] | b[i]
                               : name == "BitwiseXor" ? a[i] ^ b[i]
                                                      : ~a[i]);
        EXPECT_EQ(y, expected) << op;
    }
}

// Of equal elements the first counts, whatever the order of storage.
TEST(OnnxOperators, PlacesOfMaxima)
{
    for (int columnsFirst : {0, 1}) {
        Model m(12);
        m.g.mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(kInt64);
        m.input("x", {-1, 1, 2, 3});
        NodeProto& n = addNode(m.g, "MaxPool", {"x"}, {"largest", "y"});
        addInts(n, "kernel_shape", {2, 2});
        addInts(n, "pads", {0, 0, 0, 1});
        Model::number(n, "storage_order", columnsFirst);
        ASSERT_EQ(m.build(), "");
        ASSERT_EQ(m.run({{"x", {{2, 1, 2, 3}, {1, 2, 3, 2, 0, 3, 5, 5, 5, 5, 5, 5}}}}), "");
        std::vector<int32_t> y(6);
        std::memcpy(y.data(), m.y.values.data(), 24);
        // [[1 2 3] [2 0 3]]: 2 at (0,1), 3 at (0,2), 3 at (0,2); then all equal.
        EXPECT_EQ(y,
                  columnsFirst ? (std::vector<int32_t>{2, 4, 4, 6, 8, 10}) : (std::vector<int32_t>{1, 2, 2, 6, 7, 8}));
    }
}

} // namespace
