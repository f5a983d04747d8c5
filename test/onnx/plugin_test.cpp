// SPDX-License-Identifier: Apache-2.0
// Operators without an importer become plugins: look-up by name, version and namespace, attributes as fields.
#include <cstring>

#include <gtest/gtest.h>

#include "models.h"

namespace onnx_plugins {

using namespace tw::test;
using namespace nvinfer1;

class Copy final : public IPluginV2DynamicExt
{
public:
    explicit Copy(int32_t outputs) : outputs_(outputs) {}
    char const* getPluginType() const noexcept override { return "Strange"; }
    char const* getPluginVersion() const noexcept override { return "1"; }
    int32_t getNbOutputs() const noexcept override { return outputs_; }
    int32_t initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    size_t getSerializationSize() const noexcept override { return 0; }
    void serialize(void*) const noexcept override {}
    void destroy() noexcept override { delete this; }
    void setPluginNamespace(char const*) noexcept override {}
    char const* getPluginNamespace() const noexcept override { return ""; }
    DataType getOutputDataType(int32_t, DataType const* t, int32_t) const noexcept override { return t[0]; }
    DimsExprs getOutputDimensions(int32_t, DimsExprs const* in, int32_t, IExprBuilder&) noexcept override
    {
        return in[0];
    }
    bool supportsFormatCombination(int32_t, PluginTensorDesc const*, int32_t, int32_t) noexcept override
    {
        return true;
    }
    void configurePlugin(DynamicPluginTensorDesc const*, int32_t, DynamicPluginTensorDesc const*,
                         int32_t) noexcept override
    {}
    size_t getWorkspaceSize(PluginTensorDesc const*, int32_t, PluginTensorDesc const*, int32_t) const noexcept override
    {
        return 0;
    }
    int32_t enqueue(PluginTensorDesc const*, PluginTensorDesc const*, void const* const*, void* const*, void*,
                    cudaStream_t) noexcept override
    {
        return 0;
    }
    IPluginV2DynamicExt* clone() const noexcept override { return new Copy(*this); }

private:
    int32_t outputs_;
};

// Keeps what it was given as text: "name=type:values".
class StrangeCreator final : public IPluginCreator
{
public:
    StrangeCreator(char const* version, char const* space) : version_(version)
    {
        getPluginRegistry()->registerCreator(*this, space);
    }
    ~StrangeCreator() noexcept override { getPluginRegistry()->deregisterCreator(*this); }
    char const* getPluginName() const noexcept override { return "Strange"; }
    char const* getPluginVersion() const noexcept override { return version_; }
    PluginFieldCollection const* getFieldNames() noexcept override { return isSilent ? nullptr : &asked_; }
    IPluginV2* createPlugin(char const* name, PluginFieldCollection const* fc) noexcept override
    {
        ++created;
        layer = name;
        for (int32_t i = 0; i < fc->nbFields; ++i) {
            PluginField const& f = fc->fields[i];
            given += std::string(f.name) + "=" + std::to_string(int(f.type)) + ":";
            for (int32_t k = 0; k < f.length; ++k)
                given +=
                    f.type == PluginFieldType::kFLOAT32 ? std::to_string(static_cast<float const*>(f.data)[k]) + ","
                    : f.type == PluginFieldType::kINT32 ? std::to_string(static_cast<int32_t const*>(f.data)[k]) + ","
                                                        : std::string(1, static_cast<char const*>(f.data)[k]);
            given += " ";
        }
        return isBroken ? nullptr : new Copy(outputs);
    }
    IPluginV2* deserializePlugin(char const*, void const*, size_t) noexcept override { return new Copy(outputs); }
    void setPluginNamespace(char const*) noexcept override {}
    char const* getPluginNamespace() const noexcept override { return ""; }
    int created = 0, outputs = 1;
    bool isBroken = false, isSilent = false;
    std::string given, layer;

private:
    char const* version_;
    PluginField names_[7] = {PluginField("f"),  PluginField("i"), PluginField("s"),     PluginField("fs"),
                             PluginField("is"), PluginField("t"), PluginField("absent")};
    PluginFieldCollection asked_{7, names_};
};

tw_onnx::AttributeProto& attribute(NodeProto& n, char const* name, tw_onnx::AttributeProto::AttributeType type)
{
    auto& a = *n.add_attribute();
    a.set_name(name);
    a.set_type(type);
    return a;
}

// Conv, then a node that nobody knows.
ModelProto strangeModel(NodeProto** node)
{
    ModelProto m = convModel();
    GraphProto& g = *m.mutable_graph();
    g.mutable_node(0)->set_output(0, "t");
    addNode(g, "Strange", {"t"}, {"y"}, "odd one");
    *node = g.mutable_node(1);
    return m;
}

TEST(OnnxPlugins, AttributesBecomeFields)
{
    StrangeCreator creator("1", "");
    NodeProto* n = nullptr;
    ModelProto m = strangeModel(&n);
    using A = tw_onnx::AttributeProto;
    attribute(*n, "f", A::FLOAT).set_f(0.5F);
    attribute(*n, "i", A::INT).set_i(int64_t(1) << 40);
    attribute(*n, "s", A::STRING).set_s("text");
    auto& fs = attribute(*n, "fs", A::FLOATS);
    fs.add_floats(1);
    fs.add_floats(-2);
    auto& is = attribute(*n, "is", A::INTS);
    is.add_ints(3);
    is.add_ints(-4);
    auto& t = attribute(*n, "t", A::TENSOR);
    t.mutable_t()->set_data_type(TensorProto::FLOAT);
    t.mutable_t()->add_dims(1);
    t.mutable_t()->add_float_data(7);
    attribute(*n, "not_asked_for", A::INT).set_i(1);
    Fixture f;
    ASSERT_TRUE(f.parse(m)) << f.error();
    EXPECT_EQ(creator.layer, "odd one");
    EXPECT_EQ(creator.given,
              "f=1:0.500000, i=5:2147483647, s=6:text fs=1:1.000000,-2.000000, is=5:3,-4, t=1:7.000000, ");
    ILayer* last = f.network->getLayer(f.network->getNbLayers() - 1);
    EXPECT_EQ(last->getType(), LayerType::kPLUGIN_V2);
    EXPECT_STREQ(last->getName(), "odd one");
    std::unique_ptr<IBuilderConfig> const config(f.builder->createBuilderConfig());
    std::unique_ptr<IHostMemory> const plan(f.builder->buildSerializedNetwork(*f.network, *config));
    EXPECT_TRUE(plan) << f.error();
}

TEST(OnnxPlugins, ACreatorThatListsNoFieldsGetsAll)
{
    StrangeCreator creator("1", "");
    creator.isSilent = true;
    NodeProto* n = nullptr;
    ModelProto m = strangeModel(&n);
    attribute(*n, "any", tw_onnx::AttributeProto::INT).set_i(9);
    Fixture f;
    ASSERT_TRUE(f.parse(m)) << f.error();
    EXPECT_EQ(creator.given, "any=5:9, ");
}

TEST(OnnxPlugins, VersionAndNamespaceAreAttributes)
{
    StrangeCreator plain("1", ""), second("2", ""), mine("2", "mine");
    for (auto const& [version, space, creator] :
         {std::tuple("", "", &plain), {"2", "", &second}, {"2", "mine", &mine}}) {
        NodeProto* n = nullptr;
        ModelProto m = strangeModel(&n);
        if (*version)
            attribute(*n, "plugin_version", tw_onnx::AttributeProto::STRING).set_s(version);
        if (*space)
            attribute(*n, "plugin_namespace", tw_onnx::AttributeProto::STRING).set_s(space);
        n->set_domain("custom.domain");
        Fixture f;
        EXPECT_TRUE(f.parse(m)) << f.error();
        EXPECT_EQ(creator->created, 1);
    }
    NodeProto* n = nullptr;
    ModelProto m = strangeModel(&n);
    attribute(*n, "plugin_version", tw_onnx::AttributeProto::STRING).set_s("3");
    Fixture f;
    EXPECT_FALSE(f.parse(m));
    EXPECT_NE(f.error().find("getPluginCreator() could not find Plugin Strange version 3"), std::string::npos);
}

TEST(OnnxPlugins, WhatCannotBeIsAnErrorOfTheNode)
{
    StrangeCreator creator("1", "");
    NodeProto* n = nullptr;
    ModelProto m = strangeModel(&n);
    creator.isBroken = true;
    Fixture broken;
    EXPECT_FALSE(broken.parse(m));
    EXPECT_NE(broken.error().find("createPlugin()"), std::string::npos);
    creator.isBroken = false;
    n->add_output("second");
    Fixture few;
    EXPECT_FALSE(few.parse(m));
    EXPECT_NE(few.error().find("2 outputs, the plugin 1"), std::string::npos);
    n->mutable_output()->RemoveLast();
    attribute(*n, "s", tw_onnx::AttributeProto::STRINGS).add_strings("a");
    Fixture strings;
    EXPECT_FALSE(strings.parse(m));
    EXPECT_NE(strings.error().find("attribute 's'"), std::string::npos);
}

TEST(OnnxPlugins, SupportsModelKnowsThem)
{
    NodeProto* n = nullptr;
    ModelProto m = strangeModel(&n);
    std::string const bytes = m.SerializeAsString();
    SubGraphCollection_t parts;
    {
        Fixture f;
        EXPECT_FALSE(f.parser->supportsModel(bytes.data(), bytes.size(), parts));
    }
    StrangeCreator creator("1", "");
    Fixture f;
    EXPECT_TRUE(f.parser->supportsModel(bytes.data(), bytes.size(), parts)) << f.error();
    ASSERT_EQ(parts.size(), 1U);
    EXPECT_EQ(parts[0].first.size(), 2U);
}

} // namespace onnx_plugins
