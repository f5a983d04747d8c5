// SPDX-License-Identifier: Apache-2.0
// What every network does, whatever its layers: inputs, outputs, names, changes after a question, wrong use.
#include "api/network/network.h"

#include <vector>

#include <gtest/gtest.h>

#include "api/client.h"

using namespace nvinfer1;
using namespace tw::test;

namespace {

struct Network : testing::Test
{
    KeepingLogger logger;
    CountingRecorder recorder;
    tw::api::Reporter reporter{&logger, &recorder};
    tw::api::NetworkObject object{reporter};
    INetworkDefinition& net = object;
    std::vector<float> numbers = std::vector<float>(4096, 0.5F);

    Weights weights(int64_t n) { return {DataType::kFLOAT, numbers.data(), n}; }
    ITensor* input(char const* name = "x", Dims dims = Dims4(1, 2, 8, 8))
    {
        return net.addInput(name, DataType::kFLOAT, dims);
    }
    // k output maps, 3x3.
    IConvolutionLayer* conv(ITensor& x, int32_t k, int32_t c)
    {
        return net.addConvolutionNd(x, k, Dims2(3, 3), weights(int64_t(k) * c * 9), {DataType::kFLOAT, nullptr, 0});
    }
    static std::string str(Dims d) { return tw::api::str(d); }
};

TEST_F(Network, StartsEmpty)
{
    EXPECT_EQ(net.getNbInputs(), 0);
    EXPECT_EQ(net.getNbOutputs(), 0);
    EXPECT_EQ(net.getNbLayers(), 0);
    EXPECT_EQ(net.getInput(0), nullptr);
    EXPECT_EQ(net.getOutput(-1), nullptr);
    EXPECT_EQ(net.getLayer(0), nullptr);
    EXPECT_FALSE(net.hasImplicitBatchDimension());
    EXPECT_STREQ(net.getName(), "Unnamed Network 0");
    net.setName("it");
    EXPECT_STREQ(net.getName(), "it");
    EXPECT_FALSE(object.toGraph().ok()) << "no output";
}

TEST_F(Network, InputRules)
{
    ITensor* x = input();
    ASSERT_NE(x, nullptr);
    EXPECT_EQ(net.getInput(0), x);
    EXPECT_STREQ(x->getName(), "x");
    EXPECT_TRUE(x->isNetworkInput());
    EXPECT_FALSE(x->isNetworkOutput());
    EXPECT_EQ(str(x->getDimensions()), "[1,2,8,8]");
    EXPECT_EQ(input("x"), nullptr) << "a name twice";
    EXPECT_EQ(input(nullptr), nullptr);
    EXPECT_EQ(input(std::string(4096, 'n').c_str()), nullptr);
    EXPECT_NE(input(std::string(4095, 'n').c_str()), nullptr);
    EXPECT_EQ(input("a", Dims4(1, -2, 8, 8)), nullptr);
    EXPECT_EQ(input("a", Dims{9, {}}), nullptr);
    EXPECT_EQ(input("a", Dims{-1, {}}), nullptr);
    EXPECT_EQ(input("a", Dims3(1 << 11, 1 << 10, 1 << 10)), nullptr) << "2^31 elements";
    EXPECT_EQ(net.addInput("a", static_cast<DataType>(6), Dims2(1, 1)), nullptr);
    EXPECT_EQ(logger.errors(), 8);
    EXPECT_EQ(recorder.getNbErrors(), 8);
    EXPECT_NE(input("dynamic", Dims4(-1, 3, -1, 8)), nullptr);
    EXPECT_NE(input("scalar", Dims{0, {}}), nullptr);
    EXPECT_EQ(net.getNbInputs(), 4);
}

TEST_F(Network, ImplicitBatchInputsHaveNoWildcards)
{
    object.implicitBatch = true;
    EXPECT_EQ(input("a", Dims3(-1, 8, 8)), nullptr);
    EXPECT_NE(input("b", Dims3(3, 8, 8)), nullptr);
    EXPECT_EQ(input("c", Dims{8, {1, 1, 1, 1, 1, 1, 1, 1}}), nullptr) << "the batch is a ninth dimension";
    ITensor* b = net.getInput(0);
    EXPECT_EQ(str(b->getDimensions()), "[3,8,8]");
    b->setBroadcastAcrossBatch(true);
    EXPECT_TRUE(b->getBroadcastAcrossBatch());
}

// Of outputs: by number and kind of the layer. Logs of 8.5 show them so beside layers that have names.
TEST_F(Network, DefaultNamesStay)
{
    IConvolutionLayer* c = conv(*input(), 4, 2);
    ASSERT_NE(c, nullptr);
    EXPECT_EQ(c->getType(), LayerType::kCONVOLUTION);
    EXPECT_STREQ(c->getName(), "(Unnamed Layer* 0) [Convolution]");
    EXPECT_STREQ(c->getOutput(0)->getName(), "(Unnamed Layer* 0) [Convolution]_output");
    c->setName("first");
    EXPECT_STREQ(c->getName(), "first");
    EXPECT_STREQ(c->getOutput(0)->getName(), "(Unnamed Layer* 0) [Convolution]_output");
    c->getOutput(0)->setName("mine");
    c->setName("second");
    EXPECT_STREQ(c->getOutput(0)->getName(), "mine");
    c->setName(nullptr);
    EXPECT_STREQ(c->getName(), "second");
    EXPECT_EQ(logger.errors(), 1);
}

TEST_F(Network, LayerQueriesOutOfRange)
{
    IConvolutionLayer* c = conv(*input(), 4, 2);
    EXPECT_EQ(c->getNbInputs(), 1);
    EXPECT_EQ(c->getNbOutputs(), 1);
    EXPECT_EQ(c->getInput(0), net.getInput(0));
    EXPECT_EQ(c->getInput(1), nullptr);
    EXPECT_EQ(c->getInput(-1), nullptr);
    EXPECT_EQ(c->getOutput(1), nullptr);
    EXPECT_EQ(c->getOutputType(0), DataType::kFLOAT);
    EXPECT_FALSE(c->outputTypeIsSet(0));
    EXPECT_FALSE(c->precisionIsSet());
    c->setPrecision(DataType::kHALF);
    EXPECT_EQ(c->getPrecision(), DataType::kHALF);
    EXPECT_TRUE(c->precisionIsSet());
    c->resetPrecision();
    EXPECT_FALSE(c->precisionIsSet());
    EXPECT_TRUE(logger.lines.empty());
    c->setInput(3, *net.getInput(0));
    c->setInput(-1, *net.getInput(0));
    c->setOutputType(1, DataType::kFLOAT);
    c->setOutputType(0, static_cast<DataType>(9));
    EXPECT_EQ(logger.errors(), 4);
}

TEST_F(Network, ChangesAfterAQuestionAreSeen)
{
    IConvolutionLayer* a = conv(*input(), 4, 2);
    IConvolutionLayer* b = conv(*a->getOutput(0), 3, 4);
    EXPECT_EQ(str(b->getOutput(0)->getDimensions()), "[1,3,4,4]");
    a->setPaddingNd(Dims2(1, 1));
    EXPECT_EQ(str(a->getOutput(0)->getDimensions()), "[1,4,8,8]");
    EXPECT_EQ(str(b->getOutput(0)->getDimensions()), "[1,3,6,6]");
    b->setStrideNd(Dims2(2, 2));
    EXPECT_EQ(str(b->getOutput(0)->getDimensions()), "[1,3,3,3]");
    EXPECT_EQ(str(a->getOutput(0)->getDimensions()), "[1,4,8,8]");
    net.getInput(0)->setDimensions(Dims4(2, 2, 16, 8));
    EXPECT_EQ(str(b->getOutput(0)->getDimensions()), "[2,3,7,3]");
    // The front layer changes while a later one was asked about last.
    IConvolutionLayer* c = conv(*b->getOutput(0), 1, 3);
    EXPECT_EQ(str(c->getOutput(0)->getDimensions()), "[2,1,5,1]");
    a->setPaddingNd(Dims2(2, 2));
    EXPECT_EQ(str(c->getOutput(0)->getDimensions()), "[2,1,6,2]");
    EXPECT_TRUE(logger.lines.empty());
}

TEST_F(Network, ALayerThatBecomesWrongSaysSoAndRecovers)
{
    IConvolutionLayer* a = conv(*input(), 4, 2);
    IConvolutionLayer* b = conv(*a->getOutput(0), 3, 4);
    EXPECT_EQ(str(b->getOutput(0)->getDimensions()), "[1,3,4,4]");
    a->setNbOutputMaps(5); // its weights are for 4
    EXPECT_EQ(b->getOutput(0)->getDimensions().nbDims, -1);
    EXPECT_GT(logger.errors(), 0);
    a->setNbOutputMaps(4);
    EXPECT_EQ(str(b->getOutput(0)->getDimensions()), "[1,3,4,4]");
}

TEST_F(Network, CyclesAreAnError)
{
    IConvolutionLayer* a = conv(*input(), 2, 2);
    IConvolutionLayer* b = conv(*a->getOutput(0), 2, 2);
    b->setInput(0, *b->getOutput(0));
    EXPECT_EQ(b->getOutput(0)->getDimensions().nbDims, -1);
    EXPECT_TRUE(contains(logger.lastError(), "cycle")) << logger.lastError();
    b->setInput(0, *a->getOutput(0));
    a->setInput(0, *b->getOutput(0));
    EXPECT_EQ(a->getOutput(0)->getDimensions().nbDims, -1);
    EXPECT_TRUE(contains(logger.lastError(), "cycle")) << logger.lastError();
    net.markOutput(*b->getOutput(0));
    EXPECT_FALSE(object.toGraph().ok());
    a->setInput(0, *net.getInput(0));
    EXPECT_EQ(str(b->getOutput(0)->getDimensions()), "[1,2,4,4]");
    EXPECT_TRUE(object.toGraph().ok());
}

TEST_F(Network, TensorsOfAnotherNetworkAreRefused)
{
    tw::api::NetworkObject otherObject(reporter);
    INetworkDefinition& other = otherObject;
    ITensor* theirs = other.addInput("y", DataType::kFLOAT, Dims4(1, 2, 8, 8));
    IConvolutionLayer* c = conv(*input(), 4, 2);
    EXPECT_EQ(conv(*theirs, 4, 2), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "another network"));
    c->setInput(0, *theirs);
    net.markOutput(*theirs);
    EXPECT_FALSE(net.markOutputForShapes(*theirs));
    net.unmarkOutput(*theirs);
    net.removeTensor(*theirs);
    EXPECT_EQ(logger.errors(), 6);
    EXPECT_EQ(c->getInput(0), net.getInput(0));
    EXPECT_EQ(net.getNbLayers(), 1);
    EXPECT_EQ(net.getNbOutputs(), 0);
}

TEST_F(Network, WeightsMustBeThere)
{
    ITensor* x = input();
    EXPECT_EQ(net.addConvolutionNd(*x, 4, Dims2(3, 3), {DataType::kFLOAT, nullptr, 72}, {}), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "kernel weights has non-zero count but null values"));
    EXPECT_EQ(net.addConvolutionNd(*x, 4, Dims2(3, 3), {DataType::kFLOAT, numbers.data(), 0}, {}), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "kernel weights has zero count but non-null values"));
    EXPECT_EQ(net.addConvolutionNd(*x, 4, Dims2(3, 3), weights(72), {DataType::kFLOAT, nullptr, 4}), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "bias weights has non-zero count but null values"));
    EXPECT_EQ(net.addConvolutionNd(*x, 4, Dims2(3, 3), {DataType::kFLOAT, numbers.data(), -1}, {}), nullptr);
    EXPECT_EQ(net.addConvolutionNd(*x, 4, Dims2(3, 3), {DataType::kBOOL, numbers.data(), 72}, {}), nullptr);
    EXPECT_EQ(net.getNbLayers(), 0);
    // The count is known to be wrong once the input's channels are known.
    IConvolutionLayer* c = net.addConvolutionNd(*x, 4, Dims2(3, 3), weights(70), {});
    ASSERT_NE(c, nullptr);
    c->setName("conv1");
    EXPECT_EQ(c->getOutput(0)->getDimensions().nbDims, -1);
    EXPECT_TRUE(contains(logger.lastError(), "layer 'conv1' (Convolution): kernel weights has count 70 but 72"))
        << logger.lastError();
}

TEST_F(Network, Outputs)
{
    IConvolutionLayer* a = conv(*input(), 4, 2);
    IConvolutionLayer* b = conv(*a->getOutput(0), 3, 4);
    net.markOutput(*b->getOutput(0));
    net.markOutput(*a->getOutput(0));
    EXPECT_EQ(net.getNbOutputs(), 2);
    EXPECT_EQ(net.getOutput(0), b->getOutput(0));
    EXPECT_TRUE(a->getOutput(0)->isNetworkOutput());
    net.markOutput(*a->getOutput(0));
    EXPECT_EQ(logger.errors(), 1) << "marked twice";
    net.unmarkOutput(*b->getOutput(0));
    net.unmarkOutput(*b->getOutput(0));
    EXPECT_EQ(logger.errors(), 2);
    EXPECT_EQ(net.getNbOutputs(), 1);
    EXPECT_FALSE(net.markOutputForShapes(*b->getOutput(0))) << "kFLOAT of rank 4";
    EXPECT_FALSE(net.unmarkOutputForShapes(*b->getOutput(0)));
    EXPECT_EQ(logger.errors(), 4);

    a->getOutput(0)->setName("out");
    auto graph = object.toGraph();
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    ASSERT_EQ((*graph)->outputs.size(), 1u);
    EXPECT_EQ((*graph)->outputs[0]->name, "out");
    EXPECT_EQ((*graph)->inputs[0]->name, "x");
}

TEST_F(Network, InputsAreNoOutputs)
{
    ITensor* x = input("x");
    net.markOutput(*x);
    auto const refused = object.toGraph();
    ASSERT_FALSE(refused.ok());
    EXPECT_TRUE(contains(refused.error().message, "network input 'x' cannot be an output")) << refused.error().message;
    net.unmarkOutput(*x);
    net.markOutput(*net.addIdentity(*x)->getOutput(0));
    EXPECT_TRUE(object.toGraph().ok());
}

TEST_F(Network, DuplicateNamesOfInputsAndOutputsAreRefusedAtTheBuild)
{
    IConvolutionLayer* a = conv(*input(), 4, 2);
    IConvolutionLayer* b = conv(*a->getOutput(0), 3, 4);
    net.markOutput(*a->getOutput(0));
    net.markOutput(*b->getOutput(0));
    a->getOutput(0)->setName("same");
    b->getOutput(0)->setName("same");
    auto graph = object.toGraph();
    ASSERT_FALSE(graph.ok());
    EXPECT_TRUE(contains(graph.error().message, "'same'")) << graph.error().message;
    b->getOutput(0)->setName("x");
    EXPECT_FALSE(object.toGraph().ok()) << "an input's name";
    b->getOutput(0)->setName("other");
    EXPECT_TRUE(object.toGraph().ok());
}

TEST_F(Network, TheSameGraphTwice)
{
    IConvolutionLayer* a = conv(*input(), 4, 2);
    net.markOutput(*a->getOutput(0));
    auto first = object.toGraph(), second = object.toGraph();
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ((*first)->nodes.size(), (*second)->nodes.size());
    // The network goes on after a build.
    a->setPaddingNd(Dims2(1, 1));
    auto third = object.toGraph();
    ASSERT_TRUE(third.ok());
    EXPECT_EQ((*third)->outputs[0]->shape[2].value(), 8);
    EXPECT_EQ((*first)->outputs[0]->shape[2].value(), 6);
}

TEST_F(Network, DynamicDimensions)
{
    ITensor* x = input("x", Dims4(-1, 2, -1, 8));
    x->setDimensionName(0, "batch");
    EXPECT_STREQ(x->getDimensionName(0), "batch");
    EXPECT_EQ(x->getDimensionName(1), nullptr);
    x->setDimensionName(7, "none");
    EXPECT_EQ(logger.errors(), 1);
    IConvolutionLayer* c = conv(*x, 4, 2);
    EXPECT_EQ(str(c->getOutput(0)->getDimensions()), "[-1,4,-1,6]");
    x->setDimensionName(0, nullptr);
    EXPECT_EQ(x->getDimensionName(0), nullptr);
    ITensor* wild = input("wild", Dims4(1, -1, 8, 8));
    IConvolutionLayer* bad = conv(*wild, 4, 2);
    ASSERT_NE(bad, nullptr);
    EXPECT_EQ(bad->getOutput(0)->getDimensions().nbDims, -1) << "channels may not be a wildcard";
}

TEST_F(Network, DynamicRangeAndFormats)
{
    ITensor* x = input();
    EXPECT_FALSE(x->dynamicRangeIsSet());
    EXPECT_NE(x->getDynamicRangeMin(), x->getDynamicRangeMin()) << "not a number";
    EXPECT_TRUE(x->setDynamicRange(-2, 3));
    EXPECT_FALSE(x->setDynamicRange(3, 2));
    EXPECT_FALSE(x->setDynamicRange(0, INFINITY));
    EXPECT_EQ(x->getDynamicRangeMax(), 3);
    x->resetDynamicRange();
    EXPECT_FALSE(x->dynamicRangeIsSet());
    TensorFormats const all = x->getAllowedFormats();
    EXPECT_TRUE(all & 1u << int(TensorFormat::kCHW32));
    x->setAllowedFormats(0);
    EXPECT_EQ(x->getAllowedFormats(), all);
    x->setAllowedFormats(1u << int(TensorFormat::kLINEAR));
    EXPECT_EQ(x->getAllowedFormats(), 1u);
    x->setType(static_cast<DataType>(-1));
    EXPECT_EQ(x->getType(), DataType::kFLOAT);
    EXPECT_EQ(logger.errors(), 4);
}

TEST_F(Network, RemoveTensor)
{
    input("x");
    input("unused");
    conv(*net.getInput(0), 4, 2);
    net.removeTensor(*net.getInput(0));
    EXPECT_EQ(logger.errors(), 1) << "still an input of a layer";
    EXPECT_EQ(net.getNbInputs(), 2);
    net.removeTensor(*net.getInput(1));
    EXPECT_EQ(net.getNbInputs(), 1);
    EXPECT_EQ(str(net.getLayer(0)->getOutput(0)->getDimensions()), "[1,4,6,6]");
    // What is removed is no output, of either kind.
    ITensor* sizes = net.addInput("sizes", DataType::kINT32, Dims{1, {2}});
    net.markOutput(*sizes);
    EXPECT_TRUE(net.markOutputForShapes(*sizes));
    EXPECT_EQ(net.getNbOutputs(), 1) << "one tensor";
    net.removeTensor(*sizes);
    EXPECT_EQ(net.getNbOutputs(), 0);
    net.markOutput(*net.getLayer(0)->getOutput(0));
    EXPECT_TRUE(object.toGraph().ok());
}

TEST_F(Network, WeightsNames)
{
    Weights const a = weights(10), b = {DataType::kFLOAT, numbers.data() + 100, 10};
    EXPECT_FALSE(net.setWeightsName(a, "kernel")) << "of no layer";
    for (Weights const& w : {a, b})
        net.addConstant(Dims2(2, 5), w);
    EXPECT_FALSE(net.setWeightsName(weights(9), "kernel")) << "another count";
    EXPECT_FALSE(net.setWeightsName({DataType::kINT32, a.values, 10}, "kernel")) << "another type";
    EXPECT_FALSE(net.setWeightsName({DataType::kFLOAT, nullptr, 0}, "kernel"));
    EXPECT_TRUE(net.setWeightsName(a, "kernel"));
    EXPECT_FALSE(net.setWeightsName(b, "kernel")) << "in use";
    EXPECT_TRUE(net.setWeightsName(b, "bias"));
    EXPECT_TRUE(net.setWeightsName(a, nullptr));
    EXPECT_TRUE(net.setWeightsName(b, "kernel"));
    // Every layer that has weights.
    ITensor* x = net.addInput("x", DataType::kFLOAT, Dims4(1, 2, 4, 4));
    auto at = [&](int offset, int count) { return Weights{DataType::kFLOAT, numbers.data() + offset, count}; };
    net.addConvolutionNd(*x, 3, Dims2(1, 1), at(0, 6), at(1, 3));
    net.addDeconvolutionNd(*x, 3, Dims2(1, 1), at(2, 6), at(3, 3));
    net.addFullyConnected(*x, 2, at(4, 64), at(5, 2));
    net.addScale(*x, ScaleMode::kCHANNEL, at(6, 2), at(7, 2), at(8, 2));
    int const counts[] = {6, 3, 6, 3, 64, 2, 2, 2, 2};
    for (int i = 0; i < 9; ++i)
        EXPECT_TRUE(net.setWeightsName(at(i, counts[i]), ("w" + std::to_string(i)).c_str())) << i;
    EXPECT_FALSE(net.setWeightsName(at(9, 2), "w9"));
    EXPECT_EQ(logger.errors(), 0);
}

// Equal names are equal sizes, in one input and in several.
TEST_F(Network, DimensionNames)
{
    ITensor *a = net.addInput("a", DataType::kFLOAT, Dims2(3, 4)),
            *b = net.addInput("b", DataType::kFLOAT, Dims2(3, -1));
    for (ITensor* t : {a, b}) {
        t->setDimensionName(0, "rows");
        t->setDimensionName(1, "columns"); // 4, and not said
        net.markOutput(*net.addIdentity(*t)->getOutput(0));
    }
    EXPECT_TRUE(object.toGraph().ok());
    b->setDimensions(Dims2(5, -1));
    auto const refused = object.toGraph();
    ASSERT_FALSE(refused.ok());
    EXPECT_TRUE(contains(refused.error().message, "dimension 'rows' is 5 in network input 'b' and 3 in 'a'"))
        << refused.error().message;
    b->setDimensions(Dims2(3, 5));
    EXPECT_FALSE(object.toGraph().ok());
    b->setDimensionName(1, nullptr);
    EXPECT_TRUE(object.toGraph().ok());
    a->setDimensionName(1, "rows");
    EXPECT_FALSE(object.toGraph().ok());
}

TEST_F(Network, RecorderTextsAreShortTheLogHasItAll)
{
    std::string name;
    for (int i = 0; i < 50; ++i)
        name += "h\u00fc"; // three bytes: the limit falls into some character
    for (char const* front : {"", "-", "--"}) {
        std::string const full = front + name;
        input(full.c_str());
        input(full.c_str());
        std::string const text = recorder.entries.back().text;
        EXPECT_LE(text.size(), IErrorRecorder::kMAX_DESC_LENGTH);
        EXPECT_GE(text.size(), IErrorRecorder::kMAX_DESC_LENGTH - 2);
        EXPECT_TRUE(text.back() == 'h' || static_cast<unsigned char>(text.back()) == 0xbc) << "a whole character";
        EXPECT_TRUE(contains(logger.lastError(), full.c_str()));
    }
}

TEST_F(Network, RecorderIsCounted)
{
    CountingRecorder other;
    int32_t const before = recorder.references;
    net.setErrorRecorder(&other);
    EXPECT_EQ(recorder.references, before - 1);
    EXPECT_EQ(other.references, 1);
    EXPECT_EQ(net.getErrorRecorder(), &other);
    net.addInput(nullptr, DataType::kFLOAT, Dims2(1, 1));
    EXPECT_EQ(other.getNbErrors(), 1);
    EXPECT_EQ(recorder.getNbErrors(), 0);
    net.setErrorRecorder(&other);
    EXPECT_EQ(other.references, 1) << "the same one again";
    net.setErrorRecorder(nullptr);
    EXPECT_EQ(other.references, 0);
    {
        tw::api::Reporter r(&logger, &other);
        auto* n = new tw::api::NetworkObject(r);
        EXPECT_EQ(other.references, 2);
        static_cast<INetworkDefinition*>(n)->destroy();
        EXPECT_EQ(other.references, 1);
    }
    EXPECT_EQ(other.references, 0);
}

} // namespace
