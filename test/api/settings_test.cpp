// SPDX-License-Identifier: Apache-2.0
// Settings of layers: what they are before anybody sets them, by which of several methods they are set and read, and
// what a refused setter leaves.
#include <vector>

#include <gtest/gtest.h>

#include "api/client.h"
#include "api/network/network.h"

using namespace nvinfer1;
using namespace tw::test;

namespace {

struct Settings : testing::Test
{
    KeepingLogger logger;
    tw::api::Reporter reporter{&logger, nullptr};
    tw::api::NetworkObject object{reporter};
    INetworkDefinition& net = object;
    std::vector<float> numbers = std::vector<float>(4096, 0.5F);
    Weights none{DataType::kFLOAT, nullptr, 0};

    Weights weights(int64_t n) { return {DataType::kFLOAT, numbers.data(), n}; }
    ITensor& input(Dims dims = Dims4(2, 4, 8, 9), DataType type = DataType::kFLOAT)
    {
        return *net.addInput(("x" + std::to_string(net.getNbInputs())).c_str(), type, dims);
    }
    static std::string str(Dims d) { return tw::api::str(d); }
    static std::string shapeOf(ILayer* l) { return l ? str(l->getOutput(0)->getDimensions()) : "no layer"; }

    // What the three layers with windows have in common; `window` is what the layer calls it.
    template <class Layer>
    void expectWindowSettings(Layer* l)
    {
        ASSERT_NE(l, nullptr);
        EXPECT_EQ(str(l->getStrideNd()), "[1,1]");
        EXPECT_EQ(str(l->getStride()), "[1,1]");
        for (Dims const& d : {l->getPaddingNd(), l->getPrePadding(), l->getPostPadding(), Dims(l->getPadding())})
            EXPECT_EQ(str(d), "[0,0]");
        EXPECT_EQ(l->getPaddingMode(), PaddingMode::kEXPLICIT_ROUND_DOWN);
        l->setStride(DimsHW(2, 3));
        EXPECT_EQ(str(l->getStrideNd()), "[2,3]");
        l->setStrideNd(Dims2(3, 2));
        EXPECT_EQ(l->getStride().h(), 3);
        EXPECT_EQ(l->getStride().w(), 2);
        l->setPadding(DimsHW(1, 0));
        EXPECT_EQ(str(l->getPrePadding()), "[1,0]");
        EXPECT_EQ(str(l->getPostPadding()), "[1,0]");
        l->setPostPadding(Dims2(0, 1));
        EXPECT_EQ(str(l->getPaddingNd()), "[1,0]") << "that before, where they differ";
        EXPECT_EQ(str(l->getPadding()), "[1,0]");
        l->setPaddingNd(Dims2(1, 1));
        EXPECT_EQ(str(l->getPostPadding()), "[1,1]") << "both sides";
        l->setPrePadding(Dims2(0, 1));
        EXPECT_EQ(str(l->getPadding()), "[0,1]");
        for (int mode = 0; mode < EnumMax<PaddingMode>(); ++mode) {
            l->setPaddingMode(static_cast<PaddingMode>(mode));
            EXPECT_EQ(l->getPaddingMode(), static_cast<PaddingMode>(mode));
        }
        EXPECT_EQ(logger.errors(), 0);
        l->setPaddingMode(static_cast<PaddingMode>(6));
        l->setStride(DimsHW(0, 1));
        l->setPrePadding(Dims3(0, 0, 0));
        EXPECT_EQ(logger.errors(), 3);
        EXPECT_EQ(l->getPaddingMode(), PaddingMode::kCAFFE_ROUND_UP);
        EXPECT_EQ(str(l->getStride()), "[3,2]");
        EXPECT_EQ(str(l->getPrePadding()), "[0,1]");
    }
    template <class Layer>
    void expectFilterSettings(Layer* l)
    {
        EXPECT_EQ(l->getNbGroups(), 1);
        EXPECT_EQ(l->getNbOutputMaps(), 4);
        EXPECT_EQ(str(l->getDilationNd()), "[1,1]");
        EXPECT_EQ(str(l->getKernelSize()), "[3,3]");
        EXPECT_EQ(l->getKernelWeights().count, 144);
        EXPECT_EQ(l->getBiasWeights().count, 0);
        l->setKernelSize(DimsHW(1, 3));
        EXPECT_EQ(str(l->getKernelSizeNd()), "[1,3]");
        l->setKernelSizeNd(Dims2(3, 1));
        EXPECT_EQ(str(l->getKernelSize()), "[3,1]");
        l->setNbGroups(2);
        l->setDilationNd(Dims2(2, 1));
        l->setNbOutputMaps(6);
        l->setKernelWeights(weights(36));
        l->setBiasWeights(weights(6));
        EXPECT_EQ(l->getNbGroups(), 2);
        EXPECT_EQ(str(l->getDilationNd()), "[2,1]");
        EXPECT_EQ(l->getNbOutputMaps(), 6);
        EXPECT_EQ(l->getBiasWeights().count, 6);
        EXPECT_EQ(logger.errors(), 0);
        l->setNbGroups(0);
        l->setDilationNd(Dims2(0, 1));
        l->setNbOutputMaps(0);
        l->setKernelSize(DimsHW(-1, 1));
        EXPECT_EQ(logger.errors(), 4);
        EXPECT_EQ(l->getNbGroups(), 2);
        EXPECT_EQ(l->getNbOutputMaps(), 6);
        EXPECT_EQ(str(l->getKernelSizeNd()), "[3,1]");
    }
};

TEST_F(Settings, Convolution)
{
    IConvolutionLayer* l = net.addConvolution(input(), 4, DimsHW(3, 3), weights(144), none);
    EXPECT_EQ(str(l->getDilation()), "[1,1]");
    expectFilterSettings(l);
    EXPECT_EQ(str(l->getDilation()), "[2,1]");
    EXPECT_EQ(shapeOf(l), "[2,6,4,9]") << "windows that reach over 5 rows, groups of 2 and of 3 channels";
    l->setDilation(DimsHW(1, 1));
    EXPECT_EQ(str(l->getDilationNd()), "[1,1]");
    logger.lines.clear();
    expectWindowSettings(net.addConvolution(input(), 4, DimsHW(3, 3), weights(144), none));
}

TEST_F(Settings, Deconvolution)
{
    IDeconvolutionLayer* l = net.addDeconvolution(input(), 4, DimsHW(3, 3), weights(144), none);
    expectFilterSettings(l);
    EXPECT_EQ(shapeOf(l), "[2,6,12,9]");
    logger.lines.clear();
    expectWindowSettings(net.addDeconvolution(input(), 4, DimsHW(3, 3), weights(144), none));
}

TEST_F(Settings, Pooling)
{
    expectWindowSettings(net.addPooling(input(), PoolingType::kMAX, DimsHW(3, 3)));
    logger.lines.clear();
    IPoolingLayer* l = net.addPooling(input(), PoolingType::kMAX, DimsHW(3, 2));
    EXPECT_EQ(str(l->getWindowSizeNd()), "[3,2]");
    l->setWindowSizeNd(Dims2(2, 2));
    EXPECT_EQ(str(l->getWindowSize()), "[2,2]");
    l->setWindowSize(DimsHW(4, 2));
    EXPECT_EQ(str(l->getWindowSizeNd()), "[4,2]");
    l->setPoolingType(PoolingType::kMAX_AVERAGE_BLEND);
    EXPECT_EQ(l->getPoolingType(), PoolingType::kMAX_AVERAGE_BLEND);
    EXPECT_EQ(shapeOf(l), "[2,4,5,8]");
    EXPECT_EQ(logger.errors(), 0);
}

TEST_F(Settings, Padding)
{
    IPaddingLayer* l = net.addPadding(input(), DimsHW(1, 2), DimsHW(0, -1));
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(str(l->getPrePaddingNd()), "[1,2]");
    EXPECT_EQ(str(l->getPostPaddingNd()), "[0,-1]");
    l->setPrePadding(DimsHW(-2, 0));
    l->setPostPadding(DimsHW(3, 1));
    EXPECT_EQ(str(l->getPrePaddingNd()), "[-2,0]");
    EXPECT_EQ(shapeOf(l), "[2,4,9,10]");
    l->setPrePaddingNd(Dims2(0, 1));
    l->setPostPaddingNd(Dims2(1, 0));
    EXPECT_EQ(str(l->getPrePadding()), "[0,1]");
    EXPECT_EQ(str(l->getPostPadding()), "[1,0]");
    EXPECT_EQ(shapeOf(l), "[2,4,9,10]");
    EXPECT_EQ(logger.errors(), 0);
    l->setPrePaddingNd(Dims2(-8, 0));
    l->setPostPaddingNd(Dims2(-1, 0));
    EXPECT_LT(l->getOutput(0)->getDimensions().nbDims, 0) << "more is cropped than there is";
    EXPECT_EQ(logger.errors(), 1);
}

TEST_F(Settings, Resize)
{
    IResizeLayer* l = net.addResize(input());
    EXPECT_EQ(l->getResizeMode(), ResizeMode::kNEAREST);
    EXPECT_EQ(l->getSelectorForSinglePixel(), ResizeSelector::kFORMULA);
    EXPECT_FALSE(l->getExcludeOutside());
    EXPECT_FALSE(l->getAlignCorners());
    EXPECT_EQ(l->getOutputDimensions().nbDims, -1);
    for (int v = 0; v < EnumMax<ResizeMode>(); ++v) {
        l->setResizeMode(static_cast<ResizeMode>(v));
        EXPECT_EQ(l->getResizeMode(), static_cast<ResizeMode>(v));
    }
    l->setCubicCoeff(-0.5F);
    l->setExcludeOutside(true);
    l->setSelectorForSinglePixel(ResizeSelector::kUPPER);
    l->setNearestRounding(ResizeRoundMode::kCEIL);
    l->setAlignCorners(true);
    EXPECT_EQ(l->getCubicCoeff(), -0.5F);
    EXPECT_TRUE(l->getExcludeOutside());
    EXPECT_TRUE(l->getAlignCorners());
    EXPECT_EQ(l->getSelectorForSinglePixel(), ResizeSelector::kUPPER);
    EXPECT_EQ(l->getNearestRounding(), ResizeRoundMode::kCEIL);
    l->setAlignCorners(false);
    EXPECT_EQ(l->getCoordinateTransformation(), ResizeCoordinateTransformation::kASYMMETRIC);
    l->setCoordinateTransformation(ResizeCoordinateTransformation::kHALF_PIXEL);
    l->setAlignCorners(false);
    EXPECT_EQ(l->getCoordinateTransformation(), ResizeCoordinateTransformation::kHALF_PIXEL);
    EXPECT_EQ(logger.errors(), 0);
    l->setResizeMode(static_cast<ResizeMode>(3));
    l->setSelectorForSinglePixel(static_cast<ResizeSelector>(2));
    l->setNearestRounding(static_cast<ResizeRoundMode>(4));
    l->setCoordinateTransformation(static_cast<ResizeCoordinateTransformation>(3));
    EXPECT_EQ(logger.errors(), 4);
    EXPECT_EQ(l->getResizeMode(), ResizeMode::kCUBIC);
}

// Dimensions come from what was set, until a tensor takes its place; a setter takes the tensor away again.
TEST_F(Settings, SlicesByValueOrTensor)
{
    static int32_t const ones[] = {1, 1};
    ITensor& two = *net.addConstant(Dims{1, {2}}, {DataType::kINT32, ones, 2})->getOutput(0);
    ISliceLayer* l = net.addSlice(input(Dims2(5, 6)), Dims2(0, 1), Dims2(2, 3), Dims2(2, 1));
    EXPECT_EQ(str(l->getStart()), "[0,1]");
    EXPECT_EQ(str(l->getSize()), "[2,3]");
    EXPECT_EQ(str(l->getStride()), "[2,1]");
    EXPECT_EQ(l->getMode(), SliceMode::kSTRICT_BOUNDS);
    EXPECT_EQ(l->getNbInputs(), 1);
    l->setInput(3, two);
    EXPECT_EQ(l->getNbInputs(), 4);
    EXPECT_EQ(l->getInput(1), nullptr) << "skipped";
    EXPECT_EQ(l->getInput(2), nullptr);
    EXPECT_EQ(l->getInput(3), &two);
    EXPECT_EQ(l->getInput(4), nullptr);
    EXPECT_EQ(l->getInput(-1), nullptr);
    EXPECT_EQ(l->getStride().nbDims, -1);
    EXPECT_EQ(str(l->getStart()), "[0,1]");
    l->setInput(1, two);
    l->setInput(2, two);
    EXPECT_EQ(l->getStart().nbDims, -1);
    EXPECT_EQ(l->getSize().nbDims, -1);
    EXPECT_EQ(shapeOf(l), "[1,1]");
    l->setStart(Dims2(3, 0));
    l->setSize(Dims2(2, 2));
    EXPECT_EQ(l->getInput(1), nullptr);
    EXPECT_EQ(l->getInput(2), nullptr);
    EXPECT_EQ(shapeOf(l), "[2,2]");
    EXPECT_EQ(logger.errors(), 0);
    l->setInput(5, two);
    l->setMode(static_cast<SliceMode>(5));
    l->setSize(Dims2(-1, 2));
    EXPECT_EQ(logger.errors(), 3);
    EXPECT_EQ(shapeOf(l), "[2,2]");
}

TEST_F(Settings, AxesOfReductions)
{
    IReduceLayer* r = net.addReduce(input(), ReduceOperation::kSUM, 6, true);
    EXPECT_EQ(r->getReduceAxes(), 6U);
    EXPECT_TRUE(r->getKeepDimensions());
    EXPECT_EQ(r->getOperation(), ReduceOperation::kSUM);
    r->setKeepDimensions(false);
    r->setReduceAxes(1);
    EXPECT_FALSE(r->getKeepDimensions());
    EXPECT_EQ(r->getReduceAxes(), 1U);
    ITopKLayer* t = net.addTopK(input(), TopKOperation::kMAX, 3, 4);
    EXPECT_EQ(t->getReduceAxes(), 4U);
    EXPECT_EQ(t->getOperation(), TopKOperation::kMAX);
    t->setReduceAxes(8);
    t->setOperation(TopKOperation::kMIN);
    EXPECT_EQ(t->getReduceAxes(), 8U);
    EXPECT_EQ(t->getOperation(), TopKOperation::kMIN);
    EXPECT_EQ(shapeOf(t), "[2,4,8,3]");
    EXPECT_EQ(logger.errors(), 0);
    // One of the last four dimensions.
    ITopKLayer* early = net.addTopK(input(Dims{6, {2, 3, 1, 1, 1, 2}}), TopKOperation::kMAX, 2, 2);
    EXPECT_TRUE(!early || early->getOutput(0)->getDimensions().nbDims < 0);
    EXPECT_EQ(logger.errors(), 1);
}

TEST_F(Settings, ChannelAxisOfAScale)
{
    IScaleLayer* l = net.addScaleNd(input(), ScaleMode::kCHANNEL, none, weights(4), none, 1);
    EXPECT_EQ(l->getChannelAxis(), 1);
    l->setChannelAxis(3);
    EXPECT_EQ(l->getChannelAxis(), 3);
    EXPECT_LT(l->getOutput(0)->getDimensions().nbDims, 0) << "four factors for nine places";
    l->setScale(weights(9));
    EXPECT_EQ(shapeOf(l), "[2,4,8,9]");
}

// Types of outputs: a wish that can be asked for and taken back.
TEST_F(Settings, TypesOfOutputs)
{
    ILayer* l = net.addUnary(input(), UnaryOperation::kEXP);
    EXPECT_FALSE(l->outputTypeIsSet(0));
    EXPECT_FALSE(l->precisionIsSet());
    EXPECT_EQ(l->getOutputType(0), DataType::kFLOAT);
    l->setOutputType(0, DataType::kHALF);
    l->setPrecision(DataType::kHALF);
    EXPECT_TRUE(l->outputTypeIsSet(0));
    EXPECT_TRUE(l->precisionIsSet());
    EXPECT_EQ(l->getOutputType(0), DataType::kHALF);
    EXPECT_EQ(l->getPrecision(), DataType::kHALF);
    l->resetOutputType(0);
    l->resetPrecision();
    EXPECT_FALSE(l->outputTypeIsSet(0));
    EXPECT_FALSE(l->precisionIsSet());
    EXPECT_EQ(l->getOutputType(0), DataType::kFLOAT);
    EXPECT_EQ(logger.errors(), 0);
    // Those that are INT32 by nature.
    IShapeLayer* shape = net.addShape(input());
    ITopKLayer* most = net.addTopK(input(), TopKOperation::kMAX, 1, 2);
    shape->setOutputType(0, DataType::kFLOAT);
    most->setOutputType(1, DataType::kHALF);
    EXPECT_EQ(logger.errors(), 2);
    EXPECT_EQ(shape->getOutputType(0), DataType::kINT32);
    EXPECT_EQ(most->getOutputType(1), DataType::kINT32);
    shape->setOutputType(0, DataType::kINT32);
    l->setOutputType(1, DataType::kHALF);
    l->setOutputType(0, static_cast<DataType>(6));
    l->setPrecision(static_cast<DataType>(-1));
    EXPECT_EQ(logger.errors(), 5);
    EXPECT_FALSE(l->outputTypeIsSet(1));
}

// Names are copied, and have 4096 bytes with the null behind them.
TEST_F(Settings, LengthsOfNames)
{
    ILayer* l = net.addUnary(input(), UnaryOperation::kEXP);
    std::string name(4095, 'n');
    l->setName(name.c_str());
    l->getOutput(0)->setName(name.c_str());
    EXPECT_EQ(logger.errors(), 0);
    std::string const kept = name;
    name.assign(name.size(), 'm');
    EXPECT_EQ(l->getName(), kept);
    EXPECT_EQ(l->getOutput(0)->getName(), kept);
    name.push_back('m');
    l->setName(name.c_str());
    l->getOutput(0)->setName(name.c_str());
    EXPECT_EQ(net.addInput(name.c_str(), DataType::kFLOAT, Dims2(1, 1)), nullptr);
    EXPECT_EQ(logger.errors(), 3);
    EXPECT_EQ(l->getName(), kept);
}

} // namespace
