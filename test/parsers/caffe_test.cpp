// SPDX-License-Identifier: Apache-2.0
// ICaffeParser: its table, errors, buffers, limits, plugin factory, mean files; and files that mean harm.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "NvCaffeParser.h"
#include "NvInfer.h"
#include "api/client.h"
#include "parsers/wire.h"

using namespace nvinfer1;
using namespace tw::test;
using nvcaffeparser1::IBlobNameToTensor;
using nvcaffeparser1::ICaffeParser;

namespace {

using ParserPtr = std::unique_ptr<ICaffeParser>;

std::string const kInput = "input: 'data' input_shape { dim: 1 dim: 2 dim: 4 dim: 4 }\n";

std::string layer(std::string const& name, std::string const& type, std::string const& bottom, std::string const& top,
                  std::string const& more = "")
{
    return "layer { name: '" + name + "' type: '" + type + "' bottom: '" + bottom + "' top: '" + top + "' " + more +
           "}\n";
}

struct Caffe : testing::Test
{
    KeepingLogger logger;
    CountingRecorder recorder;
    std::unique_ptr<IBuilder> builder{createInferBuilder(logger)};
    std::unique_ptr<INetworkDefinition> net{builder->createNetworkV2(0)};
    ParserPtr parser{nvcaffeparser1::createCaffeParser()};

    IBlobNameToTensor const* parse(std::string const& text, DataType type = DataType::kFLOAT)
    {
        return parser->parseBuffers(reinterpret_cast<uint8_t const*>(text.data()), text.size(), nullptr, 0, *net, type);
    }
    IBlobNameToTensor const* parse(std::string const& text, std::string const& model, DataType type = DataType::kFLOAT)
    {
        return parser->parseBuffers(reinterpret_cast<uint8_t const*>(text.data()), text.size(),
                                    reinterpret_cast<uint8_t const*>(model.data()), model.size(), *net, type);
    }
    // Refused with an error line that has these words.
    void refuses(std::string const& text, std::string const& words) { refuses(parse(text), words); }
    void refuses(std::string const& text, std::string const& model, std::string const& words)
    {
        refuses(parse(text, model), words);
    }
    void refuses(IBlobNameToTensor const* table, std::string const& words)
    {
        EXPECT_EQ(table, nullptr);
        EXPECT_TRUE(contains(logger.lastError(), words.c_str())) << logger.lastError() << "\nwanted: " << words;
        net.reset(builder->createNetworkV2(0));
    }
    std::string file(std::string const& content)
    {
        files.push_back(testing::TempDir() + "caffe_test_" + std::to_string(getpid()) + "_" +
                        std::to_string(files.size()));
        std::ofstream(files.back(), std::ios::binary) << content;
        return files.back();
    }
    ~Caffe() override
    {
        for (std::string const& f : files)
            std::remove(f.c_str());
    }
    std::vector<std::string> files;
};

TEST_F(Caffe, TheTableHasTheLastWriterOfABlob)
{
    std::string const text =
        kInput + layer("conv", "Convolution", "data", "conv", "convolution_param { num_output: 3 kernel_size: 3 }") +
        layer("relu", "ReLU", "conv", "conv") + layer("drop", "Dropout", "conv", "drop") +
        layer("pool", "Pooling", "drop", "pool", "pooling_param { kernel_size: 2 stride: 2 }");
    IBlobNameToTensor const* table = parse(text);
    ASSERT_NE(table, nullptr) << logger.lastError();
    ASSERT_EQ(net->getNbLayers(), 3);
    EXPECT_EQ(table->find("data"), net->getInput(0));
    EXPECT_EQ(table->find("conv"), net->getLayer(1)->getOutput(0));
    EXPECT_EQ(table->find("drop"), table->find("conv"));
    EXPECT_EQ(table->find("nothing"), nullptr);
    EXPECT_EQ(table->find(nullptr), nullptr);
    EXPECT_STREQ(net->getInput(0)->getName(), "data");
    EXPECT_STREQ(table->find("pool")->getName(), "pool");
    EXPECT_STREQ(table->find("drop")->getName(), "drop");
    EXPECT_STREQ(net->getLayer(0)->getName(), "conv");
    EXPECT_STREQ(net->getLayer(1)->getName(), "relu");
    EXPECT_EQ(net->getLayer(0)->getType(), LayerType::kCONVOLUTION);
    EXPECT_EQ(net->getNbOutputs(), 0);
    EXPECT_EQ(table->find("pool")->getDimensions().nbDims, 3);
    // A second parse leaves the first table as it is.
    std::unique_ptr<INetworkDefinition> other{builder->createNetworkV2(1)};
    net.swap(other);
    IBlobNameToTensor const* second = parse(text);
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(second->find("pool")->getDimensions().nbDims, 4);
    EXPECT_EQ(second->find("pool")->getDimensions().d[0], 1);
    EXPECT_EQ(table->find("data"), other->getInput(0));
}

TEST_F(Caffe, TheLayerThatGivesATopHasTheName)
{
    ASSERT_NE(parse(kInput + layer("p", "PReLU", "data", "p")), nullptr);
    ASSERT_EQ(net->getNbLayers(), 2);
    EXPECT_STREQ(net->getLayer(1)->getName(), "p");
    EXPECT_STREQ(net->getLayer(0)->getName(), "p_1");
}

TEST_F(Caffe, RecordersAndLoggersHearOfErrors)
{
    parser->setErrorRecorder(&recorder);
    EXPECT_EQ(recorder.references, 1);
    EXPECT_EQ(parser->getErrorRecorder(), &recorder);
    EXPECT_EQ(parser->parse("/nowhere/deploy.prototxt", nullptr, *net, DataType::kFLOAT), nullptr);
    EXPECT_TRUE(
        contains(logger.lastError(), "ICaffeParser::parse: deploy file '/nowhere/deploy.prototxt' cannot be opened"));
    EXPECT_EQ(parser->parse(nullptr, nullptr, *net, DataType::kFLOAT), nullptr);
    EXPECT_EQ(parser->parse(file(kInput).c_str(), "/nowhere/m.caffemodel", *net, DataType::kFLOAT), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "model file '/nowhere/m.caffemodel'"));
    EXPECT_EQ(parser->parse("/", nullptr, *net, DataType::kFLOAT), nullptr); // a folder
    EXPECT_EQ(parser->parse("/dev/zero", nullptr, *net, DataType::kFLOAT), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "is larger than"));
    EXPECT_EQ(parser->parseBuffers(nullptr, 7, nullptr, 7, *net, DataType::kFLOAT), nullptr);
    EXPECT_EQ(parser->parseBinaryProto("/nowhere/mean"), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "parseBinaryProto: file '/nowhere/mean' cannot be opened"));
    EXPECT_EQ(parser->parseBinaryProto(nullptr), nullptr);
    EXPECT_EQ(parse(kInput, DataType::kINT8), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "allowed: kFLOAT, kHALF"));
    EXPECT_EQ(parse(kInput + layer("x", "LSTM", "data", "y")), nullptr);
    ASSERT_EQ(recorder.getNbErrors(), 10);
    EXPECT_EQ(logger.errors(), 10);
    EXPECT_EQ(recorder.getErrorCode(0), ErrorCode::kINVALID_ARGUMENT);
    EXPECT_EQ(recorder.getErrorCode(9), ErrorCode::kUNSUPPORTED_STATE);
    EXPECT_TRUE(contains(recorder.getErrorDesc(9), "could not parse layer type LSTM: layer 'x' (index 0)"));
    parser->destroy();
    (void)parser.release();
    EXPECT_EQ(recorder.references, 0);
    nvcaffeparser1::shutdownProtobufLibrary();
    ParserPtr const other(static_cast<ICaffeParser*>(createNvCaffeParser_INTERNAL()));
    EXPECT_NE(other, nullptr);
}

// What needs no network can be called before there is a builder, and so a logger.
TEST(CaffeAlone, TheRecorderOfTheRegistryHearsOfErrors)
{
    ASSERT_EQ(getLogger(), nullptr);
    CountingRecorder ofAll, own;
    getPluginRegistry()->setErrorRecorder(&ofAll);
    ParserPtr const parser(nvcaffeparser1::createCaffeParser());
    EXPECT_EQ(parser->parseBinaryProto("mean.binaryproto"), nullptr);
    ASSERT_EQ(ofAll.getNbErrors(), 1);
    EXPECT_TRUE(contains(ofAll.getErrorDesc(0), "mean.binaryproto"));
    parser->setErrorRecorder(&own);
    EXPECT_EQ(parser->parseBinaryProto("mean.binaryproto"), nullptr);
    EXPECT_EQ(own.getNbErrors(), 1);
    EXPECT_EQ(ofAll.getNbErrors(), 1);
    getPluginRegistry()->setErrorRecorder(nullptr);
}

TEST_F(Caffe, MeanFiles)
{
    auto const read = [&](std::string const& content) {
        return std::unique_ptr<nvcaffeparser1::IBinaryProtoBlob>(parser->parseBinaryProto(file(content).c_str()));
    };
    std::vector<float> const six{1, -2, 3, 4.5f, 5, 6};
    std::string const old = wire::integer(1, 1) + wire::integer(2, 3) + wire::integer(3, 1) + wire::integer(4, 2);
    auto blob = read(old + wire::bytes(5, wire::raw(six)));
    ASSERT_NE(blob, nullptr) << logger.lastError();
    EXPECT_EQ(blob->getDataType(), DataType::kFLOAT);
    Dims4 const d = blob->getDimensions();
    EXPECT_TRUE(d.nbDims == 4 && d.d[0] == 1 && d.d[1] == 3 && d.d[2] == 1 && d.d[3] == 2);
    EXPECT_EQ(static_cast<float const*>(blob->getData())[3], 4.5f);

    blob = read(wire::blob({3, 2}, six)); // dimensions stand at the end
    ASSERT_NE(blob, nullptr);
    EXPECT_TRUE(blob->getDimensions().d[1] == 1 && blob->getDimensions().d[2] == 3 && blob->getDimensions().d[3] == 2);

    std::string unpacked = wire::shape({2});
    for (float v : {1.f, 2.f})
        unpacked += wire::varint(5 << 3 | 5) + wire::raw(std::vector<float>{v});
    ASSERT_NE(blob = read(unpacked), nullptr);
    EXPECT_EQ(static_cast<float const*>(blob->getData())[1], 2.f);

    ASSERT_NE(blob = read(wire::shape({2}) + wire::bytes(8, wire::raw(std::vector<double>{0.5, 8}))), nullptr);
    EXPECT_EQ(blob->getDataType(), DataType::kFLOAT);
    EXPECT_EQ(static_cast<float const*>(blob->getData())[1], 8.f);

    // NVIDIA's: bytes of a type. 0x3c00 is 1, 0xc000 -2.
    ASSERT_NE(blob = read(wire::shape({2}) + wire::integer(10, 2) +
                          wire::bytes(12, wire::raw(std::vector<uint16_t>{0x3c00, 0xc000}))),
              nullptr);
    EXPECT_EQ(blob->getDataType(), DataType::kHALF);
    EXPECT_EQ(static_cast<uint16_t const*>(blob->getData())[1], 0xc000);
    ASSERT_NE(blob = read(wire::shape({1}) + wire::integer(10, 0) + wire::bytes(12, wire::raw(std::vector<double>{3}))),
              nullptr);
    EXPECT_EQ(static_cast<float const*>(blob->getData())[0], 3.f);

    int const errors = logger.errors();
    for (std::string const& bad :
         {std::string(), std::string("no array"), old + wire::bytes(5, wire::raw(std::vector<float>{1})),
          wire::blob({7}, six), wire::blob({-6}, six), wire::blob({1, 1, 1, 1, 6}, six),
          wire::blob({int64_t(1) << 32, int64_t(1) << 32, 6}, six),
          wire::shape({3}) + wire::integer(10, 3) + wire::bytes(12, "abc"),
          wire::shape({1}) + wire::integer(10, 1) + wire::bytes(12, "abc")})
        EXPECT_EQ(read(bad), nullptr);
    EXPECT_EQ(logger.errors(), errors + 9);
    parser->setProtobufBufferSize(10);
    EXPECT_EQ(read(wire::blob({6}, six)), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "setProtobufBufferSize"));
}

TEST_F(Caffe, TheBufferSizeLimitsTheModel)
{
    std::string const text = kInput + layer("s", "Scale", "data", "s");
    std::string const model = wire::layer("s", {wire::blob({2}, {2, 3})});
    ASSERT_NE(parse(text, model), nullptr) << logger.lastError();
    parser->setProtobufBufferSize(model.size() - 1);
    refuses(text, model, "setProtobufBufferSize");
    refuses(parser->parse(file(text).c_str(), file(model).c_str(), *net, DataType::kFLOAT), "setProtobufBufferSize");
    parser->setProtobufBufferSize(model.size());
    EXPECT_NE(parser->parse(file(text).c_str(), file(model).c_str(), *net, DataType::kFLOAT), nullptr);
}

TEST_F(Caffe, WeightsOfTheModel)
{
    std::string const text = kInput + layer("s", "Scale", "data", "s");
    auto const scaleOf = [&](std::string const& model, DataType type = DataType::kFLOAT) {
        net.reset(builder->createNetworkV2(0));
        EXPECT_NE(parse(text, model, type), nullptr) << logger.lastError();
        Weights const w = static_cast<IScaleLayer*>(net->getLayer(0))->getScale();
        net.reset(builder->createNetworkV2(0)); // the parser has the numbers
        return w;
    };
    Weights w = scaleOf(wire::layer("s", {wire::blob({2}, {2, 3})}));
    ASSERT_EQ(w.count, 2);
    EXPECT_EQ(w.type, DataType::kFLOAT);
    EXPECT_EQ(static_cast<float const*>(w.values)[1], 3.f);
    w = scaleOf(wire::layer("s", {wire::blob({2}, {1, -2})}), DataType::kHALF);
    EXPECT_EQ(w.type, DataType::kHALF);
    EXPECT_EQ(static_cast<uint16_t const*>(w.values)[1], 0xc000);
    // The form until 2015: the list, the name and the arrays have other numbers.
    w = scaleOf(wire::bytes(2, wire::bytes(4, "s") + wire::bytes(6, wire::blob({2}, {5, 6}))));
    EXPECT_EQ(static_cast<float const*>(w.values)[0], 5.f);
    // Fields that nobody knows, between those of the file.
    w = scaleOf(wire::integer(77, 5) + wire::bytes(1, "a network") +
                wire::bytes(100, wire::bytes(203, "abc") + wire::integer(9999, 1) + wire::bytes(1, "s") +
                                     wire::bytes(7, wire::blob({2}, {7, 8}))));
    EXPECT_EQ(static_cast<float const*>(w.values)[0], 7.f);

    refuses(text, wire::layer("s", {wire::blob({3}, {1, 2, 3})}),
            "scale (blob 0) has 3 numbers in the model, 2 are needed");
    refuses(text, wire::layer("s", {wire::blob({2}, {1, NAN})}), "Nan detected in weights");
    refuses(text, wire::layer("s", {wire::shape({0})}), "has no numbers");
    refuses(text, wire::layer("s", {wire::blob({4}, {1, 2})}), "has 2 numbers, but its shape is [4]");
    refuses(text, wire::layer("s", {"\xff\xff\xff"}), "is no array of Caffe");
    refuses(text, wire::layer("s", {}), "the model has no arrays for it");
    refuses(text, wire::layer("t", {wire::blob({2}, {2, 3})}), "the model has no arrays for it");
    refuses(text, std::string(), "the model has no arrays for it");
    refuses(text, "layer { name: 's' }", "are no binary Caffe model");
    refuses(text, wire::bytes(100, "\xff"), "layer 0 cannot be read");
    refuses(text, wire::bytes(2, wire::bytes(1, wire::bytes(1, "s"))), "first form (2013)");
    EXPECT_EQ(parse(text, wire::layer("s", {wire::blob({2}, {1, 7e4f})}), DataType::kHALF), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "Error: Weight 70000 is outside of [-65504, 65504]"))
        << logger.lastError();
}

// A plugin of the client that keeps what it was made of.
class Factory final : public nvcaffeparser1::IPluginFactoryV2
{
public:
    bool isPluginV2(char const* name) noexcept override
    {
        asked.push_back(name);
        return std::string(name) == "mine";
    }
    IPluginV2* createPlugin(char const* name, Weights const* weights, int32_t count,
                            char const* space) noexcept override
    {
        EXPECT_STREQ(name, "mine");
        given = {weights, weights + count};
        isNull = weights == nullptr;
        libNamespace = space;
        if (!creator)
            return nullptr;
        float const slope = 0.5f;
        PluginField const field("negSlope", &slope, PluginFieldType::kFLOAT32, 1);
        PluginFieldCollection const fields{1, &field};
        plugin.reset(creator->createPlugin(name, &fields));
        return plugin.get();
    }
    struct Destroy
    {
        void operator()(IPluginV2* p) const { p->destroy(); }
    };
    IPluginCreator* creator = getPluginRegistry()->getPluginCreator("LReLU_TRT", "1", "tensorwright.standard");
    std::vector<std::string> asked;
    std::vector<Weights> given;
    bool isNull = false;
    std::string libNamespace;
    std::unique_ptr<IPluginV2, Destroy> plugin;
};

TEST_F(Caffe, PluginsOfAFactory)
{
    Factory factory;
    ASSERT_NE(factory.creator, nullptr);
    parser->setPluginFactoryV2(&factory);
    parser->setPluginNamespace("space");
    std::string const text = kInput + layer("relu", "ReLU", "data", "relu") + layer("mine", "Unheard", "relu", "out");
    std::string const model = wire::layer("mine", {wire::blob({2}, {1, 2}), wire::blob({1}, {3})});
    // Arrays are FP32 whatever the weights are.
    IBlobNameToTensor const* table = parse(text, model, DataType::kHALF);
    ASSERT_NE(table, nullptr) << logger.lastError();
    EXPECT_EQ(factory.asked, (std::vector<std::string>{"relu", "mine"}));
    ASSERT_EQ(factory.given.size(), 2u);
    EXPECT_EQ(factory.given[0].type, DataType::kFLOAT);
    EXPECT_EQ(factory.given[0].count, 2);
    EXPECT_EQ(static_cast<float const*>(factory.given[1].values)[0], 3.f);
    EXPECT_EQ(factory.libNamespace, "space");
    EXPECT_EQ(net->getLayer(1)->getType(), LayerType::kPLUGIN_V2);
    EXPECT_STREQ(net->getLayer(1)->getName(), "mine");
    EXPECT_EQ(table->find("out"), net->getLayer(1)->getOutput(0));

    net.reset(builder->createNetworkV2(0));
    parser->setPluginNamespace(nullptr);
    EXPECT_NE(parse(text), nullptr); // without a model there are no arrays
    EXPECT_TRUE(factory.isNull && factory.given.empty());
    EXPECT_EQ(factory.libNamespace, "");
    factory.creator = nullptr;
    net.reset(builder->createNetworkV2(0));
    refuses(text, "the plugin factory gave no plugin");
    parser->setPluginFactoryV2(nullptr);
    refuses(text, "could not parse layer type Unheard");
}

TEST_F(Caffe, TextsOfNetworks)
{
    // Everything that the text form allows.
    std::string const text = R"(# a comment with { and "
name: "net" input: "da" 'ta', input_shape: { dim: [1, 2,
4, 4] };
layer { name: "p" type: "Pooling" bottom: "data" top: "p"
  pooling_param < pool: 1 kernel_size: 0x2; stride: 2, > param { lr_mult: 1.0f } param { lr_mult: 2 decay_mult: 0 } }
layer { name: "s" type: "Scale" bottom: "p" top: "s" scale_param { bias_term: t filler { value: -1e-3 } } unheard_param { a: [1, 2] b { c: "x" } } }
)";
    IBlobNameToTensor const* table = parse(text);
    ASSERT_NE(table, nullptr) << logger.lastError();
    EXPECT_EQ(table->find("s")->getDimensions().d[1], 2);
    EXPECT_EQ(static_cast<IPoolingLayer*>(net->getLayer(0))->getPoolingType(), PoolingType::kAVERAGE);
    EXPECT_EQ(static_cast<IScaleLayer*>(net->getLayer(1))->getShift().count, 2);
    ASSERT_EQ(logger.warnings(), 1); // what is of training says nothing
    bool isTold = false;
    for (auto const& l : logger.lines)
        isTold = isTold || contains(l.text, "field 'unheard_param' is not known");
    EXPECT_TRUE(isTold);
    net.reset(builder->createNetworkV2(0));

    refuses("", "has no input");
    refuses("layer {", "Could not parse deploy file: line 1");
    refuses("name: \"abc", "Could not parse deploy file");
    refuses(std::string("\0\1\2", 3), "Could not parse deploy file");
    refuses(kInput + "layer { name: 'x' type: 3 }", "Could not parse deploy file: line 2");
    refuses(kInput + layer("p", "Pooling", "data", "p", "pooling_param { pool: SOME }"), "Could not parse deploy file");
    refuses("input: 'data' input_shape { dim: 1 dim: 3 }", "TensorRT only supports 4 dimensional input");
    refuses("input: 'data'", "TensorRT only supports 4 dimensional input");
    refuses("input: 'data' input_dim: 1 input_dim: 3 input_dim: 0 input_dim: 2", "each must be in 1..");
    refuses("input: 'data' input_dim: 1 input_dim: 3 input_dim: 4 input_dim: 5 input: 'b' input_dim: 1",
            "input 'b' has 1 dimensions");
    refuses("layer { name: 'd' type: 'Input' top: 'a' top: 'b' input_param { } }", "2 tops and 0 shapes");
    refuses(kInput + "input: 'data' input_shape { dim: 1 dim: 1 dim: 1 dim: 1 }", "input 'data' was refused");
    refuses(kInput + layer("r", "ReLU", "data", "data"),
            "TensorRT does not support in-place operations on input tensors in a prototxt file.");
    refuses(kInput + layer("a", "ReLU", "b", "c") + layer("b", "ReLU", "c", "b"), "bottom 'b' is neither");
    refuses(kInput + "layer { name: 'e' type: 'ReLU' top: 'e' }", "e: expected 1 bottom blobs, found 0");
    refuses(kInput + "layer { name: 'e' type: 'ReLU' bottom: 'data' }", "e: expected 1 tops blobs, found 0");
    refuses(kInput + "layer { name: 'e' type: 'Silence' bottom: 'data' top: 'x' }", "top 0 ('x') is not computed");
    refuses(kInput + layer("d", "Data", "data", "x"), "data layers belong to training");
    refuses(kInput + layer("d", "Accuracy", "data", "x"), "deploy form");
    refuses(kInput + "layers { layer { name: 'v0' type: 'conv' } }", "first form (2013)");
    refuses(kInput + layer("a", "ReLU", "data", "c") + "layers { name: 'b' type: RELU }", "both 'layer' and 'layers'");
    // Errors of layers say where.
    refuses(kInput + layer("c", "Convolution", "data", "c", "convolution_param { num_output: 3 }"),
            "error parsing layer type Convolution index 0: c: kernel_size is 0");
}

TEST_F(Caffe, LayersOfTraining)
{
    std::string const text =
        kInput + layer("train", "Unheard", "data", "t", "include { phase: TRAIN } ") +
        layer("own", "Unheard", "data", "t", "phase: TEST ") +
        layer("not", "Unheard", "data", "t", "exclude { phase: TEST } ") +
        layer("stage", "Unheard", "data", "t", "include { stage: 'fit' } ") +
        layer("level", "Unheard", "data", "t", "include { min_level: 2 } ") +
        layer("test", "ReLU", "data", "r", "include { phase: TEST } ") +
        layer("other", "ReLU", "r", "s", "include { not_stage: 'fit' max_level: 3 } exclude { phase: TRAIN } ");
    ASSERT_NE(parse(text), nullptr) << logger.lastError();
    EXPECT_EQ(net->getNbLayers(), 2);
    net.reset(builder->createNetworkV2(0));
    refuses("state { stage: 'fit' } " + text, "could not parse layer type Unheard: layer 'stage'");
    refuses("state { level: 2 } " + text, "could not parse layer type Unheard: layer 'level'");
}

// Few bytes that ask for much: each is refused, or done in little time and memory.
TEST_F(Caffe, FilesThatMeanHarm)
{
    auto const repeated = [](std::string const& s, int n) {
        std::string all;
        for (int i = 0; i < n; ++i)
            all += s;
        return all;
    };
    refuses(kInput + repeated("a {", 1'000'000), "messages");
    refuses(kInput + repeated("layer {} ", 1'000'000), "has more than 400000 messages");
    refuses(kInput + repeated("layers: [<", 100'000), "deep");
    refuses(kInput + repeated("unheard { ", 60), "more than 50 deep");
    refuses(std::string(size_t(65) << 20, ' '), "the network's text has");
    refuses(kInput + layer("c", "Convolution", "data", "c",
                           "convolution_param { num_output: 2000000000 kernel_size: 2000000000 }"),
            "c:");
    refuses(kInput +
                layer("c", "Convolution", "data", "c", "convolution_param { num_output: 4000000000 kernel_size: 1 }"),
            "num_output is 4000000000");
    refuses(kInput +
                layer("c", "Convolution", "data", "c", "convolution_param { num_output: 1000 kernel_size: [1, 2, 3] }"),
            "has 3 numbers");
    refuses(kInput +
                layer("c", "Convolution", "data", "c", "convolution_param { num_output: 3 kernel_size: 1 group: 7 }"),
            "group 7");
    refuses(kInput + layer("i", "InnerProduct", "data", "c", "inner_product_param { num_output: 2000000000 }"), "i:");
    refuses(kInput + layer("t", "Tile", "data", "t", "tile_param { tiles: 2000000000 }"), "t:");
    refuses(kInput + layer("r", "Reshape", "data", "t", "reshape_param { shape { dim: 0 dim: -1 dim: -1 } }"),
            "-1 stands twice");
    refuses(kInput +
                layer("r", "Reshape", "data", "t", "reshape_param { shape { dim: 0 " + repeated("dim: 1 ", 20) + "} }"),
            "rank");
    refuses(kInput + layer("r", "Reshape", "data", "t", "reshape_param { axis: 1 num_axes: 2000000000 }"), "num_axes");
    refuses(kInput + layer("s", "Scale", "data", "t", "scale_param { axis: 2 num_axes: 2147483647 }"),
            "num_axes 2147483647");
    refuses(kInput + layer("r", "Reshape", "data", "t", "reshape_param { axis: 2 num_axes: 2147483647 }"),
            "num_axes 2147483647");
    refuses(kInput + layer("s", "Slice", "data", "t", "slice_param { slice_point: 4000000000 }"), "slice_point");
    refuses(kInput + layer("s", "Softmax", "data", "t", "softmax_param { axis: -2147483648 }"), "axis");
    refuses(kInput + layer("p", "Permute", "data", "t", "permute_param { order: 0 order: 4000000000 }"), "order");
    // A model whose sizes say more than it holds.
    refuses(kInput + layer("s", "Scale", "data", "s"),
            wire::bytes(100, "") + wire::varint(100 << 3 | 2) + wire::varint(uint64_t(1) << 31) + "ab",
            "are no binary Caffe model");
    refuses(kInput + layer("s", "Scale", "data", "s"), repeated(wire::bytes(100, ""), 1'500'000),
            "more than 1000000 layers");
    refuses(kInput + layer("s", "Scale", "data", "s"), wire::bytes(100, repeated(wire::bytes(7, ""), 1'500'000)),
            "more than 1000000 layers");
    // Of many bottoms and tops each is looked at once.
    refuses(kInput + "layer { name: 'x' type: 'ReLU' " + repeated("bottom: 'data' top: 'a' ", 1'000'000) + "}",
            "expected 1 bottom blobs, found 1000000");
    std::string const many = wire::layer("s", std::vector<std::string>(100'000, wire::blob({2}, {1, 2})));
    refuses(kInput + layer("p", "PReLU", "data", "s") + layer("s", "Nothing", "s", "u"), many, "no arrays");
}

// The library has descriptors that can be registered once: it stays when it is closed.
TEST(CaffeAlone, TheLibraryCanBeOpenedAgain)
{
    for (int i = 0; i < 3; ++i) {
        void* const library = dlopen(std::getenv("TW_PARSERS_LIBRARY"), RTLD_NOW);
        ASSERT_NE(library, nullptr) << dlerror();
        EXPECT_NE(dlsym(library, "createNvCaffeParser_INTERNAL"), nullptr);
        dlclose(library);
    }
}

} // namespace
