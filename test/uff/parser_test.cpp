// SPDX-License-Identifier: Apache-2.0
// IUffParser: its calls, what a network is after a parse, and the sentences of refusals.
#include <cstdio>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "uff/files.h"

namespace {

using namespace nvinfer1;
using namespace tw::test;
using nvuffparser::UffInputOrder;

TEST(UffParser, RegistersAndCountsReferences)
{
    CountingRecorder recorder;
    KeepingLogger logger;
    std::unique_ptr<IBuilder> const builder(createInferBuilder(logger));
    nvuffparser::IUffParser* parser = nvuffparser::createUffParser();
    ASSERT_NE(parser, nullptr);
    parser->setErrorRecorder(&recorder);
    EXPECT_EQ(recorder.references, 1);
    EXPECT_EQ(parser->getErrorRecorder(), &recorder);
    EXPECT_EQ(parser->getUffRequiredVersionMajor(), 0);
    EXPECT_EQ(parser->getUffRequiredVersionMinor(), 6);
    EXPECT_EQ(parser->getUffRequiredVersionPatch(), 9);
    EXPECT_TRUE(parser->registerInput("in", Dims3(1, 28, 28), UffInputOrder::kNCHW));
    EXPECT_TRUE(parser->registerOutput("out"));
    parser->setPluginNamespace(nullptr);
    EXPECT_EQ(logger.errors(), 0);
    EXPECT_FALSE(parser->registerInput(nullptr, Dims3(1, 28, 28), UffInputOrder::kNCHW));
    EXPECT_FALSE(parser->registerInput("in", Dims{9, {}}, UffInputOrder::kNCHW));
    EXPECT_FALSE(parser->registerInput("in", Dims3(1, 28, 28), UffInputOrder(3)));
    EXPECT_TRUE(contains(logger.lastError(), "order 3"));
    EXPECT_FALSE(parser->registerOutput(nullptr));
    EXPECT_EQ(logger.errors(), 4);
    EXPECT_EQ(recorder.getNbErrors(), 4);
    EXPECT_EQ(recorder.getErrorCode(0), ErrorCode::kINVALID_ARGUMENT);
    parser->destroy();
    EXPECT_EQ(recorder.references, 0);
    nvuffparser::shutdownProtobufLibrary();
    std::unique_ptr<nvuffparser::IUffParser> const other(
        static_cast<nvuffparser::IUffParser*>(createNvUffParser_INTERNAL()));
    EXPECT_NE(other, nullptr);
}

TEST(UffParser, FieldMapKeepsItsArguments)
{
    int32_t const value[] = {1, 2};
    nvuffparser::FieldMap const map("stride", value, nvuffparser::FieldType::kINT32, 2);
    EXPECT_STREQ(map.name, "stride");
    EXPECT_EQ(map.data, value);
    EXPECT_EQ(map.type, nvuffparser::FieldType::kINT32);
    EXPECT_EQ(map.length, 2);
}

// x [-1, 4, 6] -> relu -> + c -> y
UffFile small()
{
    UffFile file;
    file.node("MarkOutput", "MarkOutput_0", {"y"});
    file.function("Binary", "add", "y", {"relu", "c"});
    file.constant("c", {6});
    file.function("Activation", "relu", "relu", {"x"});
    file.input("x", {-1, 4, 6});
    return file;
}

TEST(UffParser, ReadsAFile)
{
    std::string const path = testing::TempDir() + "uff_" + std::to_string(getpid()) + ".uff";
    std::ofstream(path, std::ios::binary) << small().bytes();
    UffClient client;
    EXPECT_TRUE(client.parser->registerInput("x", Dims2(4, 6), UffInputOrder::kNC));
    EXPECT_TRUE(client.parser->registerOutput("MarkOutput_0"));
    ASSERT_TRUE(client.parser->parse(path.c_str(), *client.network)) << client.logger.lastError();
    EXPECT_EQ(client.network->getNbInputs(), 1);
    ASSERT_EQ(client.network->getNbOutputs(), 1);
    EXPECT_STREQ(client.network->getOutput(0)->getName(), "y");
    EXPECT_EQ(client.network->getOutput(0)->getDimensions().nbDims, 2);
    std::unique_ptr<IBuilderConfig> const config(client.builder->createBuilderConfig());
    std::unique_ptr<IHostMemory> const plan(client.builder->buildSerializedNetwork(*client.network, *config));
    EXPECT_NE(plan, nullptr);

    EXPECT_FALSE(client.parser->parse("/nothing.uff", *client.network));
    EXPECT_TRUE(contains(client.logger.lastError(), "UffParser: file '/nothing.uff' cannot be read"));
    EXPECT_FALSE(client.parser->parse(testing::TempDir().c_str(), *client.network));
    EXPECT_FALSE(client.parser->parse(nullptr, *client.network));
    EXPECT_FALSE(client.parser->parseBuffer(nullptr, 3, *client.network));
    EXPECT_TRUE(contains(client.logger.lastError(), "empty"));
    std::ofstream(path, std::ios::binary) << "\xff\xff\xff";
    EXPECT_FALSE(client.parser->parse(path.c_str(), *client.network));
    EXPECT_TRUE(contains(client.logger.lastError(), "not a UFF model"));
    std::remove(path.c_str());
}

TEST(UffParser, MarksWhatTheGraphMarksWithoutARegistration)
{
    UffClient client;
    ASSERT_TRUE(client.parse(small().bytes())) << client.logger.lastError();
    ASSERT_EQ(client.network->getNbOutputs(), 1);
    EXPECT_STREQ(client.network->getOutput(0)->getName(), "y");
    UffClient without;
    UffFile file;
    file.input("x", {-1, 4});
    EXPECT_TRUE(contains(without.refusal(file.bytes()), "no output was registered"));
}

TEST(UffParser, RefusesOtherNetworksAndWeights)
{
    UffClient client;
    for (DataType const type : {DataType::kINT8, DataType::kINT32, DataType::kBOOL, DataType::kUINT8}) {
        EXPECT_TRUE(contains(client.refusal(small().bytes(), type), "allowed: kFLOAT, kHALF"));
    }
    EXPECT_TRUE(contains(client.refusal(small().bytes(2)), "UffParser: Unsupported number of graph 2"));
    EXPECT_TRUE(contains(client.refusal(small().bytes(0)), "Unsupported number of graph 0"));
    EXPECT_EQ(client.recorder.entries.back().code, ErrorCode::kUNSUPPORTED_STATE);
    client.network.reset(client.builder->createNetworkV2(1));
    EXPECT_TRUE(contains(client.refusal(small().bytes()), "implicit batch"));
    EXPECT_EQ(client.network->getNbLayers(), 0);
}

struct Refused
{
    char const* sentence;
    void (*make)(UffFile& file); // a node "y" on "x" [-1, 4, 6]
};

Refused const kRefused[] = {
    {"Validator error: y: Unsupported operation Fancy", [](UffFile& f) { f.node("Fancy", "y", {"x"}); }},
    {"Validator error: y: Unsupported operation _Fancy", [](UffFile& f) { f.node("_Fancy", "y", {"x"}); }},
    {"Validator error: y: Unsupported operation _", [](UffFile& f) { f.node("_", "y", {"x"}); }},
    {"Parser error: y: input 0 is 'z', which no node", [](UffFile& f) { f.node("Identity", "y", {"z"}); }},
    {"two nodes have the id 'x'", [](UffFile& f) { f.node("Identity", "x", {"y"}); }},
    {"node 'y' has 5000 fields (allowed: 0..4096)",
     [](UffFile& f) {
         tw_uff::Node& n = f.node("Identity", "y", {"x"});
         for (int i = 0; i < 5000; ++i)
             f.field(n, "f" + std::to_string(i)).set_i(i);
     }},
    {"no node 'y'", [](UffFile&) {}},
    {"cycle: 'z' reads 'y' reads 'z'",
     [](UffFile& f) {
         f.node("Identity", "y", {"z"});
         f.node("Identity", "z", {"y"});
     }},
    {"cycle: 'y' reads 'y'", [](UffFile& f) { f.node("Identity", "y", {"y"}); }},
    {"Parser error: y: input 0 is missing", [](UffFile& f) { f.node("Identity", "y"); }},
    {"the referenced data have no 'lost'",
     [](UffFile& f) { f.field(f.node("Activation", "y", {"x"}), "func").set_ref("lost"); }},
    {"are a reference again",
     [](UffFile& f) {
         f.field(f.node("Activation", "y", {"x"}), "func").set_ref("a");
         f.data("a").set_ref("a");
     }},
    {"field 'func' is missing", [](UffFile& f) { f.node("Activation", "y", {"x"}); }},
    {"attribute 'func' must be a string",
     [](UffFile& f) { f.field(f.node("Activation", "y", {"x"}), "func").set_i(1); }},
    {"Unsupported activation op swish", [](UffFile& f) { f.function("Activation", "swish", "y", {"x"}); }},
    {"Unsupported binary op xor",
     [](UffFile& f) {
         f.function("Binary", "xor", "y", {"x", "x"});
     }},
    {"the node has 1 inputs; 2 are needed", [](UffFile& f) { f.function("Binary", "add", "y", {"x"}); }},
    {"constant of shape [2, 4, 6], which does not fit tensors of 2 dimensions",
     [](UffFile& f) {
         f.constant("c", {2, 4, 6});
         f.function("Binary", "add", "y", {"x", "c"});
     }},
    {"the values are 7 bytes; shape [6] of FLOAT32 needs 24",
     [](UffFile& f) {
         f.constant("c", {6}, kFloat32, 7);
         f.function("Binary", "add", "y", {"x", "c"});
     }},
    {"Const 'c' of shape [6] has no values",
     [](UffFile& f) {
         f.constant("c", {6}, kFloat32, 0);
         f.function("Binary", "add", "y", {"x", "c"});
     }},
    {"is too large for the API",
     [](UffFile& f) {
         f.constant("c", {1 << 30, 1 << 30, 1 << 30}, kFloat32, 4);
         f.function("Binary", "add", "y", {"x", "c"});
     }},
    {"the values are 4 bytes; shape [0,",
     [](UffFile& f) {
         f.constant("c", {0, INT32_MAX, INT32_MAX, INT32_MAX}, kFloat32, 4);
         f.function("Binary", "add", "y", {"x", "c"});
     }},
    {"the shape holds -1",
     [](UffFile& f) {
         f.constant("c", {-1, 6}, kFloat32, 24);
         f.function("Binary", "add", "y", {"x", "c"});
     }},
    {"element type 0x40020 cannot be imported",
     [](UffFile& f) {
         f.constant("c", {6}, 0x40020, 24);
         f.function("Binary", "add", "y", {"x", "c"});
     }},
    {"Reshape: -1 dimension specified more than 1 time",
     [](UffFile& f) {
         f.integers("c", {-1, -1, 6});
         f.node("Reshape", "y", {"x", "c"});
     }},
    {"shape [5] does not hold 24 elements",
     [](UffFile& f) {
         f.integers("c", {-1, 5});
         f.node("Reshape", "y", {"x", "c"});
     }},
    {"shape [2147483647, 2147483647] does not hold",
     [](UffFile& f) {
         f.integers("c", {-1, INT32_MAX, INT32_MAX});
         f.node("Reshape", "y", {"x", "c"});
     }},
    {"the shape must begin with the batch",
     [](UffFile& f) {
         f.integers("c", {});
         f.node("Reshape", "y", {"x", "c"});
     }},
    {"the shape (input 1, 'x') must be a Const",
     [](UffFile& f) {
         f.node("Reshape", "y", {"x", "x"});
     }},
    {"y Axis node has op Input, expected Const. The axis must be specified as a Const node.",
     [](UffFile& f) {
         f.node("ArgMax", "y", {"x", "x"});
     }},
    {"axis 0 is the batch", [](UffFile& f) { f.field(f.node("ArgMax", "y", {"x"}), "axis").set_i(0); }},
    {"axis 3 is out of range", [](UffFile& f) { f.field(f.node("ArgMax", "y", {"x"}), "axis").set_i(3); }},
    {"where the batch must stay",
     [](UffFile& f) {
         UffFile::list(f.field(f.node("Transpose", "y", {"x"}), "permutation"), {1, 0, 2});
     }},
    {"names dimension 1 twice",
     [](UffFile& f) {
         UffFile::list(f.field(f.node("Transpose", "y", {"x"}), "permutation"), {0, 1, 1});
     }},
    {"the permutation has 2 entries",
     [](UffFile& f) {
         UffFile::list(f.field(f.node("Transpose", "y", {"x"}), "permutation"), {0, 1});
     }},
    {"a dimension of 4 cannot be taken away",
     [](UffFile& f) { UffFile::list(f.field(f.node("Squeeze", "y", {"x"}), "axes"), {1}); }},
    {"channels and 2 spatial dimensions are needed",
     [](UffFile& f) {
         f.constant("c", {1, 1, 6, 6});
         f.node("Conv", "y", {"x", "c"});
     }},
    {"Order size is not matching the number dimensions of TensorRT",
     [](UffFile& f) {
         f.constant("c", {1, 1, 6, 6});
         auto& orders = *f.field(f.node("Conv", "y", {"x", "c"}), "inputs_orders").mutable_dim_orders_list();
         for (auto const& places : {std::vector<int64_t>{0, 2, 3, 1}, {2, 3, 1, 0}}) {
             auto& entry = *orders.add_val()->add_orders();
             entry.set_key(-1);
             for (int64_t p : places)
                 entry.mutable_value()->add_val(p);
         }
     }},
    {"a part of the batch cannot be taken",
     [](UffFile& f) {
         f.integers("c", {0});
         f.integers("d", {1});
         f.node("StridedSlice", "y", {"x", "c", "d", "d"});
     }},
    {"nothing is left of an axis of 4 elements",
     [](UffFile& f) {
         f.integers("c", {0, 3});
         f.integers("s", {1, 1});
         f.field(f.node("StridedSlice", "y", {"x", "c", "c", "s"}), "end_mask").set_i(1);
     }},
    {"field 'new_axis_mask' cannot be imported",
     [](UffFile& f) {
         f.integers("c", {0});
         f.field(f.node("StridedSlice", "y", {"x", "c", "c", "c"}), "new_axis_mask").set_i(2);
     }},
    {"the stride of axis 1 is 0",
     [](UffFile& f) {
         f.integers("c", {0, 0});
         f.integers("s", {1, 0});
         f.field(f.node("StridedSlice", "y", {"x", "c", "c", "s"}), "end_mask").set_i(1);
     }},
    {"the batch cannot be padded",
     [](UffFile& f) {
         f.integers("c", {0, 1, 0, 0, 0, 0});
         f.node("Pad", "y", {"x", "c"});
     }},
    {"data and indices both have a batch",
     [](UffFile& f) {
         f.field(f.node("GatherV2", "y", {"x", "j"}), "axis").set_i(1);
         f.field(f.node("ArgMax", "j", {"x"}), "axis").set_i(1);
     }},
    {"output 'y_1' does not exist", [](UffFile& f) { f.node("Identity", "y", {"x"}); }},
};

TEST(UffParser, RefusalsNameTheNodeAndTheReason)
{
    for (Refused const& r : kRefused) {
        UffFile file;
        file.input("x", {-1, 4, 6});
        r.make(file);
        UffClient client;
        client.parser->registerOutput(contains(r.sentence, "y_1") ? "y_1" : "y");
        std::string const refusal = client.refusal(file.bytes());
        EXPECT_TRUE(contains(refusal, r.sentence)) << "wanted: " << r.sentence << "\n   got: " << refusal;
        EXPECT_EQ(refusal.rfind("UffParser: ", 0), 0u) << refusal;
    }
}

TEST(UffParser, InputsNeedDimensions)
{
    UffFile file;
    file.input("x", {});
    file.node("MarkOutput", "y", {"x"});
    UffClient client;
    EXPECT_TRUE(contains(client.refusal(file.bytes()), "Parser error: x: Invalid number of Dimensions 0"));
    client.parser->registerInput("x", Dims3(0, -1, 3), UffInputOrder::kNCHW);
    EXPECT_TRUE(contains(client.refusal(file.bytes()), "refused the input of shape [0, -1, 3]"));
    client.parser->registerInput("x", Dims3(2, 1, 3), UffInputOrder::kNCHW);
    client.parser->registerInput("other", Dims3(2, 1, 3), UffInputOrder::kNCHW);
    EXPECT_TRUE(client.parse(file.bytes())) << client.logger.lastError();
    EXPECT_EQ(client.logger.warnings(), 1); // of the input that is not there
}

TEST(UffParser, WrongOrdersAreSaid)
{
    UffFile file;
    file.input("x", {-1, 28, 28, 1});
    file.constant("w", {5, 5, 1, 2});
    tw_uff::Node& conv = file.node("Conv", "y", {"x", "w"});
    auto& orders = *file.field(conv, "inputs_orders").mutable_dim_orders_list();
    for (auto const& places : {std::vector<int64_t>{0, 2, INT32_MAX, 1}, {2, INT32_MAX, 1, 0}}) {
        auto& entry = *orders.add_val()->add_orders();
        entry.set_key(-1);
        for (int64_t p : places)
            entry.mutable_value()->add_val(p);
    }
    UffClient client;
    client.parser->registerOutput("y");
    client.parser->registerInput("x", Dims3(28, 28, 1), UffInputOrder::kNCHW);
    EXPECT_TRUE(contains(client.refusal(file.bytes()), "kernel weights has count 50 but 1400 was expected"));
    client.parser->registerInput("x", Dims4(1, 28, 28, 1), UffInputOrder::kNHWC); // with the batch
    EXPECT_TRUE(contains(client.refusal(file.bytes()), "Order size is not matching the number dimensions of TensorRT"));
}

// Orders as no converter writes them.
TEST(UffParser, StrangeOrdersAreRefused)
{
    std::vector<std::vector<int64_t>> const strange{{},
                                                    {0, 1, 2},
                                                    {0, 1, 2, 3, 4},
                                                    {0, 1, 1, 2},
                                                    {0, -1, 2, 3},
                                                    {INT32_MAX},
                                                    {INT32_MIN, INT32_MIN},
                                                    {0, INT32_MAX, INT32_MAX, 1},
                                                    {1, 2, INT32_MAX, 0, 3, 4, 5},
                                                    {INT64_MAX, INT32_MAX},
                                                    {INT64_MIN, INT32_MIN},
                                                    {1, 0, 2, 3}};
    for (auto const& places : strange) {
        UffFile file;
        file.input("x", {-1, 4, 4, 2});
        tw_uff::Node& pool = file.function("Pool", "max", "y", {"x"});
        UffFile::list(file.field(pool, "kernel"), {2, 2});
        auto& entry = *file.field(pool, "inputs_orders").mutable_dim_orders_list()->add_val()->add_orders();
        entry.set_key(4);
        entry.mutable_value();
        for (int64_t p : places)
            entry.mutable_value()->add_val(p);
        UffClient client;
        client.parser->registerOutput("y");
        std::string const refusal = client.refusal(file.bytes());
        EXPECT_TRUE(contains(refusal, "Order size is not matching") || contains(refusal, "put the batch at place"))
            << refusal;
    }
}

TEST(UffParser, LongGraphs)
{
    constexpr int kNodes = 100000;
    UffFile file;
    for (int i = kNodes; i > 0; --i) // the last first, as converters write
        file.node("Identity", "n" + std::to_string(i), {"n" + std::to_string(i - 1)});
    file.input("n0", {-1, 4});
    for (int i = 0; i < kNodes; ++i) // what no output needs
        file.node("Fancy", "u" + std::to_string(i), {"lost"});
    UffClient client;
    client.parser->registerOutput(("n" + std::to_string(kNodes)).c_str());
    EXPECT_TRUE(client.parse(file.bytes())) << client.logger.lastError();
    EXPECT_EQ(client.network->getNbOutputs(), 1);
    UffFile cycle;
    for (int i = kNodes; i > 0; --i)
        cycle.node("Identity", "n" + std::to_string(i), {"n" + std::to_string(i - 1)});
    cycle.node("Identity", "n0", {"n" + std::to_string(kNodes)});
    EXPECT_TRUE(contains(client.refusal(cycle.bytes()), "... reads "));
}

TEST(UffParser, WeightsOutsideOfHalf)
{
    UffFile file;
    file.input("x", {-1, 2});
    file.constant("w", {2, 1}, kFloat32);
    float const values[] = {1, 1e5F};
    file.data("weights_w")
        .set_blob(std::string(reinterpret_cast<char const*>(values), sizeof values)); // the later one counts
    file.node("FullyConnected", "y", {"x", "w"});
    UffClient client;
    client.parser->registerOutput("y");
    EXPECT_TRUE(contains(client.refusal(file.bytes(), DataType::kHALF), "weight 1 of shape [1, 2] is 100000"));
    EXPECT_TRUE(client.parse(file.bytes(), DataType::kFLOAT)) << client.logger.lastError();
}

} // namespace
