// SPDX-License-Identifier: Apache-2.0
// Operations that begin with an underscore: the creator, what it gets, and the outputs of its plugin.
#include <cstring>

#include <gtest/gtest.h>

#include "uff/files.h"

namespace {

using namespace nvinfer1;
using namespace tw::test;

// Copies its first input to each of its outputs.
class Fan final : public IPluginV2Ext
{
public:
    explicit Fan(int32_t outputs) : outputs_(outputs) {}
    char const* getPluginType() const noexcept override { return "Fan"; }
    char const* getPluginVersion() const noexcept override { return "1"; }
    int32_t getNbOutputs() const noexcept override { return outputs_; }
    Dims getOutputDimensions(int32_t, Dims const* in, int32_t) noexcept override { return in[0]; }
    int32_t initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    size_t getWorkspaceSize(int32_t) const noexcept override { return 0; }
    int32_t enqueue(int32_t, void const* const*, void* const*, void*, cudaStream_t) noexcept override { return 0; }
    size_t getSerializationSize() const noexcept override { return 0; }
    void serialize(void*) const noexcept override {}
    void destroy() noexcept override { delete this; }
    void setPluginNamespace(char const*) noexcept override {}
    char const* getPluginNamespace() const noexcept override { return ""; }
    DataType getOutputDataType(int32_t, DataType const*, int32_t) const noexcept override { return DataType::kFLOAT; }
    bool isOutputBroadcastAcrossBatch(int32_t, bool const*, int32_t) const noexcept override { return false; }
    bool canBroadcastInputAcrossBatch(int32_t) const noexcept override { return false; }
    bool supportsFormat(DataType type, PluginFormat format) const noexcept override
    {
        return type == DataType::kFLOAT && format == PluginFormat::kLINEAR;
    }
    void configurePlugin(Dims const*, int32_t, Dims const*, int32_t, DataType const*, DataType const*, bool const*,
                         bool const*, PluginFormat, int32_t) noexcept override
    {}
    IPluginV2Ext* clone() const noexcept override { return new Fan(*this); }

private:
    int32_t outputs_;
};

// Keeps fields as text: "name=type:values ".
class FanCreator final : public IPluginCreator
{
public:
    explicit FanCreator(char const* space, char const* version = "1") : version_(version)
    {
        getPluginRegistry()->registerCreator(*this, space);
    }
    ~FanCreator() noexcept override { getPluginRegistry()->deregisterCreator(*this); }
    char const* getPluginName() const noexcept override { return "Fan"; }
    char const* getPluginVersion() const noexcept override { return version_; }
    PluginFieldCollection const* getFieldNames() noexcept override { return &listed_; }
    IPluginV2* createPlugin(char const* name, PluginFieldCollection const* fields) noexcept override
    {
        layer = name;
        given.clear();
        int32_t outputs = 1;
        for (int32_t i = 0; i < fields->nbFields; ++i) {
            PluginField const& f = fields->fields[i];
            given += std::string(f.name) + "=" + std::to_string(int(f.type)) + ":";
            for (int32_t k = 0; k < f.length; ++k)
                given += f.type == PluginFieldType::kFLOAT32
                             ? std::to_string(static_cast<float const*>(f.data)[k]) + ","
                         : f.type == PluginFieldType::kINT32
                             ? std::to_string(static_cast<int32_t const*>(f.data)[k]) + ","
                             : std::to_string(int(static_cast<char const*>(f.data)[k])) + ",";
            given += " ";
            if (std::string(f.name) == "outputs")
                outputs = *static_cast<int32_t const*>(f.data);
        }
        return outputs > 0 ? new Fan(outputs) : nullptr;
    }
    IPluginV2* deserializePlugin(char const*, void const*, size_t) noexcept override { return new Fan(1); }
    void setPluginNamespace(char const* space) noexcept override { space_ = space; }
    char const* getPluginNamespace() const noexcept override { return space_.c_str(); }

    std::string layer, given;

private:
    PluginField const fields_[2] = {{"reals", nullptr, PluginFieldType::kFLOAT32, 1},
                                    {"truth", nullptr, PluginFieldType::kCHAR, 1}};
    PluginFieldCollection const listed_{2, fields_};
    char const* version_;
    std::string space_;
};

TEST(UffPlugins, FieldsInTheirTypes)
{
    FanCreator creator("");
    UffFile file;
    file.input("x", {-1, 4});
    tw_uff::Node& n = file.node("_Fan", "fan", {"x"});
    file.field(n, "i").set_i(int64_t(1) << 40);
    UffFile::list(file.field(n, "list_u_ilist"), {3, -4});
    file.field(n, "d_u_float").set_d(0.5);
    file.field(n, "ds_u_flist").mutable_d_list()->add_val(0.25);
    file.field(n, "s_u_str").set_s("ab");
    file.field(n, "b_u_bool").set_b(true);
    file.field(n, "truth").set_b(true);
    file.field(n, "t").set_dtype(kFloat32);
    file.field(n, "t2").set_dtype(kInt32);
    UffFile::list(file.field(n, "reals"), {7, 8}); // which the creator lists as floats
    file.field(n, "shared_u_int").set_ref("five");
    file.data("five").set_i(5);
    file.field(n, "empty").mutable_d_list();
    file.field(n, "inputs").mutable_s_list()->add_val("no type");
    UffClient client;
    client.parser->registerOutput("fan");
    ASSERT_TRUE(client.parse(file.bytes())) << client.logger.lastError();
    EXPECT_EQ(creator.layer, "fan");
    auto const type = [](PluginFieldType t) { return "=" + std::to_string(int(t)) + ":"; };
    std::string const whole = type(PluginFieldType::kINT32), real = type(PluginFieldType::kFLOAT32),
                      text = type(PluginFieldType::kCHAR);
    EXPECT_EQ(creator.given, "i" + whole + "2147483647, list" + whole + "3,-4, d" + real + "0.500000, ds" + real +
                                 "0.250000, s" + text + "97,98, b" + whole + "1, truth" + text + "1, t" + whole +
                                 "0, t2" + whole + "3, reals" + real + "7.000000,8.000000, shared" + whole +
                                 "5, empty" + real + " ");
}

TEST(UffPlugins, NamespaceAndVersion)
{
    FanCreator mine("mine"), second("", "2");
    UffFile file;
    file.input("x", {-1, 4});
    file.node("_Fan", "fan", {"x"});
    UffClient client;
    client.parser->registerOutput("fan");
    client.parser->setPluginNamespace("mine");
    ASSERT_TRUE(client.parse(file.bytes())) << client.logger.lastError();
    EXPECT_EQ(mine.layer, "fan");
    EXPECT_EQ(second.layer, "");
    UffClient other; // version 2 where there is no version 1
    other.parser->registerOutput("fan");
    ASSERT_TRUE(other.parse(file.bytes())) << other.logger.lastError();
    EXPECT_EQ(second.layer, "fan");
}

TEST(UffPlugins, OutputsHaveNumbers)
{
    FanCreator creator("");
    UffFile file;
    file.input("x", {-1, 4});
    file.field(file.node("_Fan", "fan", {"x"}), "outputs").set_i(3);
    file.node("MarkOutput", "MarkOutput_0", {"fan"});
    file.field(file.node("Concat", "all", {"fan"}), "axis").set_i(1);
    file.field(file.node("Concat", "each", {"fan", "fan", "fan"}), "axis").set_i(1);
    file.field(file.node("Concat", "two", {"fan", "fan_2", "fan:1"}), "axis").set_i(1);
    file.node("Identity", "third", {"fan_2"});
    UffClient client;
    for (char const* output : {"MarkOutput_0", "all", "each", "two", "fan_1"})
        client.parser->registerOutput(output);
    ASSERT_TRUE(client.parse(file.bytes())) << client.logger.lastError();
    std::string names;
    for (int i = 0; i < client.network->getNbOutputs(); ++i) {
        ITensor const& t = *client.network->getOutput(i);
        names += std::string(t.getName()) + "[" + std::to_string(t.getDimensions().d[0]) + "] ";
    }
    EXPECT_EQ(names, "fan[4] fan_1[4] fan_2[4] all[12] each[12] two[20] ");
    client.parser->registerOutput("fan_3");
    EXPECT_TRUE(contains(client.refusal(file.bytes()), "output 'fan_3' does not exist: the node has 3"));
    UffClient far;
    file.node("Identity", "fourth", {"fan_3"});
    far.parser->registerOutput("fourth");
    EXPECT_TRUE(contains(far.refusal(file.bytes()), "input 'fan_3': node 'fan' has 3 outputs"));
}

TEST(UffPlugins, Refusals)
{
    FanCreator creator("");
    UffFile file;
    file.input("x", {-1, 4});
    file.field(file.node("_Fan", "fan", {"x"}), "outputs").set_i(0);
    UffClient client;
    client.parser->registerOutput("fan");
    EXPECT_TRUE(
        contains(client.refusal(file.bytes()), "Parser error: fan: createPlugin() of plugin 'Fan' gave a null"));
}

// Constants that feed a plugin are tensors; images are channels first.
TEST(UffPlugins, InputsAsTheyAre)
{
    FanCreator creator("");
    UffFile file;
    file.input("x", {-1, 5, 6, 2});
    file.constant("c", {7, 3});
    file.node("_Fan", "fan", {"x", "c"});
    UffClient client;
    client.parser->registerInput("x", Dims3(5, 6, 2), nvuffparser::UffInputOrder::kNHWC);
    client.parser->registerOutput("fan");
    ASSERT_TRUE(client.parse(file.bytes())) << client.logger.lastError();
    ILayer* const layer = client.network->getLayer(client.network->getNbLayers() - 1);
    ASSERT_EQ(layer->getNbInputs(), 2);
    EXPECT_EQ(layer->getInput(0)->getDimensions().d[0], 2);
    EXPECT_EQ(layer->getInput(1)->getDimensions().d[0], 7);
    EXPECT_EQ(layer->getInput(1)->getDimensions().nbDims, 2);
}

} // namespace
