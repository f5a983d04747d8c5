// SPDX-License-Identifier: Apache-2.0
// What importers of all formats share: the table of operators, and nodes whose attributes are another format's.
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "importers/common/node.h"
#include "models.h"

namespace tw::onnx {
void register_composites_normalization(importers::ImporterMap& map);
} // namespace tw::onnx

namespace tw::importers {

namespace {

// A node whose attributes are a plugin's fields.
class FieldsNode final : public ImportContext
{
public:
    FieldsNode(ImportedNetwork& to, std::string const& type, std::vector<nvinfer1::PluginField> fields,
               std::vector<Value> inputs)
        : ImportContext(to, "foreign", type, 1, std::move(inputs), {"y"}), fields_(std::move(fields))
    {}
    bool hasAttr(char const* attr) const override { return find(attr) != nullptr; }
    std::optional<Attribute> attribute(char const* attr) const override
    {
        auto const* const f = find(attr);
        if (!f)
            return {};
        if (f->type == nvinfer1::PluginFieldType::kFLOAT32)
            return *static_cast<float const*>(f->data);
        if (f->type == nvinfer1::PluginFieldType::kINT32)
            return int64_t(*static_cast<int32_t const*>(f->data));
        return Attribute();
    }

private:
    nvinfer1::PluginField const* find(char const* attr) const
    {
        for (auto const& f : fields_)
            if (std::strcmp(f.name, attr) == 0)
                return &f;
        return nullptr;
    }
    std::vector<nvinfer1::PluginField> fields_;
};

void one(ImportContext&) {}
void another(ImportContext&) {}

} // namespace

TEST(ImporterMap, OpsetsAreSplit)
{
    ImporterMap map;
    map.add("Softmax", one, 1, 12);
    map.add("Softmax", another, 13);
    EXPECT_EQ(map.find("Softmax", 12), one);
    EXPECT_EQ(map.find("Softmax", 13), another);
    EXPECT_EQ(map.find("Softmax", 21), another);
    EXPECT_EQ(map.find("Hardmax", 13), nullptr);
    EXPECT_TRUE(map.contains("Softmax"));
}

TEST(ImporterMap, TwoImportersOfOneOpsetAreRefused)
{
    ImporterMap map;
    map.add("Softmax", one, 5, 12);
    for (auto const& [first, last] : {std::pair{12, 12}, {1, 5}, {1, ImporterMap::kNewestOpset}, {6, 7}, {5, 12}})
        try {
            map.add("Softmax", another, first, last);
            ADD_FAILURE() << first << " to " << last << " is taken";
        } catch (std::logic_error const& e) {
            EXPECT_EQ(std::string(e.what()).find("Softmax has two importers for opset "), 0u) << e.what();
        }
    EXPECT_EQ(map.find("Softmax", 12), one);
    EXPECT_EQ(map.find("Softmax", 4), nullptr);
    map.add("Softmax", another, 1, 4);
    EXPECT_EQ(map.find("Softmax", 4), another);
}

TEST(ImporterMap, DomainsHaveOperatorsOfTheSameName)
{
    ImporterMap map;
    map.add("Clip", one);
    map.add("Clip", another, 1, 1, "plugin");
    EXPECT_EQ(map.find("Clip", 17), one);
    EXPECT_EQ(map.find("Clip", 1, "plugin"), another);
    EXPECT_EQ(map.find("Clip", 2, "plugin"), nullptr);
    EXPECT_FALSE(map.contains("Clip", "caffe"));
}

// What makes layers of ONNX's operator makes them of another library's, too, which says the same in fields of a plugin.
TEST(ForeignNode, FieldsOfAPluginAreAttributes)
{
    ImporterMap map;
    onnx::register_composites_normalization(map);
    map.add("InstanceNorm_of_others", map.find("InstanceNormalization", 17), 1, 1, "plugin");

    tw::test::Fixture f;
    Memory memory;
    ImportedNetwork to(*f.network, f.logger, memory, "test");
    std::vector<float> const scale{2, -1}, bias{0.5F, 3};
    auto constant = [](std::vector<float> const& v) {
        Constant c;
        c.dims = Dims{1, {int32_t(v.size())}};
        c.values = v.data();
        c.count = int64_t(v.size());
        return Value(c);
    };
    ITensor* const x = f.network->addInput("x", DataType::kFLOAT, nvinfer1::Dims3{1, 2, 4});
    float const epsilon = 0.25F;
    FieldsNode node(to, "InstanceNorm_of_others", {{"epsilon", &epsilon, nvinfer1::PluginFieldType::kFLOAT32, 1}},
                    {x, constant(scale), constant(bias)});
    map.find("InstanceNorm_of_others", 1, "plugin")(node);
    ITensor& y = node.outputs().at(0).tensor();
    y.setName("y");
    f.network->markOutput(y);
    std::vector<float> const input{1, 2, 3, 6, -1, 0, 0, 5};
    ASSERT_EQ(f.run({{"x", input}, {"y", {}}}), "");
    for (size_t c = 0; c < 2; ++c) {
        double mean = 0, variance = 0;
        for (size_t i = 0; i < 4; ++i)
            mean += input[c * 4 + i] / 4.0;
        for (size_t i = 0; i < 4; ++i)
            variance += (input[c * 4 + i] - mean) * (input[c * 4 + i] - mean) / 4;
        for (size_t i = 0; i < 4; ++i)
            EXPECT_NEAR(f.results["y"][c * 4 + i],
                        (input[c * 4 + i] - mean) / std::sqrt(variance + epsilon) * scale[c] + bias[c], 1e-5);
    }
}

TEST(ForeignNode, AttributesOfAnotherKindAreRefused)
{
    tw::test::Fixture f;
    Memory memory;
    ImportedNetwork to(*f.network, f.logger, memory, "test");
    int32_t const number = 3;
    FieldsNode node(
        to, "Any",
        {{"n", &number, nvinfer1::PluginFieldType::kINT32, 1}, {"text", "abc", nvinfer1::PluginFieldType::kCHAR, 3}},
        {});
    EXPECT_EQ(node.attrInt("n", 7), 3);
    EXPECT_EQ(node.attrInt("absent", 7), 7);
    for (auto const& [call, message] : std::vector<std::pair<std::function<void()>, std::string>>{
             {[&] { node.attrFloat("n", 0); }, "attribute 'n' must be a number"},
             {[&] { node.attrString("text", ""); }, "attribute 'text' must be a string"},
             {[&] { node.requireInts("absent"); }, "attribute 'absent' is missing"},
             {[&] { node.importGraph("n", {}); }, "attribute 'n' must be a graph"},
             {[&] { node.input(0); }, "input 0 is missing"}})
        try {
            call();
            ADD_FAILURE() << message;
        } catch (ImportError const& e) {
            EXPECT_EQ(e.message, message);
        }
}

} // namespace tw::importers
