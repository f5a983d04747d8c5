// SPDX-License-Identifier: Apache-2.0
// Settings and rules of pooling, deconvolution, softmax, reduce, top-k, LRN, padding and resize.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "api/client.h"
#include "api/network/network.h"

using namespace nvinfer1;
using namespace tw::test;

namespace {

struct WindowLayers : testing::Test
{
    KeepingLogger logger;
    CountingRecorder recorder;
    tw::api::Reporter reporter{&logger, &recorder};
    tw::api::NetworkObject object{reporter};
    INetworkDefinition& net = object;
    std::vector<float> numbers = std::vector<float>(4096, 0.5F);
    Weights none{DataType::kFLOAT, nullptr, 0};

    Weights weights(int64_t n) { return {DataType::kFLOAT, numbers.data(), n}; }
    ITensor& input(Dims dims = Dims4(2, 3, 8, 9), DataType type = DataType::kFLOAT)
    {
        return *net.addInput(("x" + std::to_string(net.getNbInputs())).c_str(), type, dims);
    }
    static std::string shapeOf(ILayer* l, int output = 0)
    {
        return l ? tw::api::str(l->getOutput(output)->getDimensions()) : "no layer";
    }
};

TEST_F(WindowLayers, Pooling)
{
    IPoolingLayer* l = net.addPooling(input(), PoolingType::kMAX, DimsHW(2, 3));
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(shapeOf(l), "[2,3,7,7]");
    EXPECT_TRUE(l->getAverageCountExcludesPadding());
    EXPECT_EQ(l->getBlendFactor(), 0.F);
    l->setStrideNd(Dims2(2, 2));
    l->setPaddingMode(PaddingMode::kEXPLICIT_ROUND_UP);
    EXPECT_EQ(shapeOf(l), "[2,3,4,4]");
    l->setPrePadding(Dims2(1, 0));
    l->setPostPadding(Dims2(0, 1));
    EXPECT_EQ(tw::api::str(l->getPaddingNd()), "[1,0]");
    EXPECT_EQ(logger.errors(), 0);
    l->setBlendFactor(1.5F);
    l->setBlendFactor(NAN);
    l->setStrideNd(Dims3(1, 1, 1));
    l->setStrideNd(Dims2(0, 1));
    l->setPaddingNd(Dims2(-1, 0)); // before and after: two errors
    l->setPoolingType(static_cast<PoolingType>(3));
    EXPECT_EQ(logger.errors(), 7);
    EXPECT_EQ(tw::api::str(l->getStrideNd()), "[2,2]");
    EXPECT_EQ(net.addPoolingNd(input(), PoolingType::kMAX, Dims4(1, 1, 1, 1)), nullptr);
    // Padding as wide as the window is refused where the mode says so.
    IPoolingLayer* caffe = net.addPoolingNd(input(), PoolingType::kMAX, Dims2(2, 2));
    caffe->setPaddingNd(Dims2(2, 2));
    caffe->setPaddingMode(PaddingMode::kCAFFE_ROUND_DOWN);
    EXPECT_LT(caffe->getOutput(0)->getDimensions().nbDims, 0);
}

TEST_F(WindowLayers, Deconvolution)
{
    IDeconvolutionLayer* l = net.addDeconvolutionNd(input(), 4, Dims2(3, 3), weights(3 * 4 * 9), weights(4));
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(shapeOf(l), "[2,4,10,11]");
    l->setStrideNd(Dims2(2, 2));
    l->setPaddingNd(Dims2(1, 1));
    l->setDilationNd(Dims2(2, 1));
    EXPECT_EQ(shapeOf(l), "[2,4,17,17]");
    EXPECT_EQ(logger.errors(), 0);
    l->setNbGroups(3); // does not divide the output maps
    EXPECT_LT(l->getOutput(0)->getDimensions().nbDims, 0);
}

TEST_F(WindowLayers, SoftMaxAxes)
{
    EXPECT_EQ(net.addSoftMax(input())->getAxes(), 2U); // rank 4: the channels
    EXPECT_EQ(net.addSoftMax(input(Dims2(3, 4)))->getAxes(), 1U);
    ISoftMaxLayer* l = net.addSoftMax(input());
    l->setAxes(8);
    EXPECT_EQ(l->getAxes(), 8U);
    EXPECT_EQ(shapeOf(l), "[2,3,8,9]");
    EXPECT_EQ(logger.errors(), 0);
    l->setAxes(0);
    l->setAxes(6);
    EXPECT_EQ(logger.errors(), 2);
    l->setAxes(16);
    EXPECT_LT(l->getOutput(0)->getDimensions().nbDims, 0);
    EXPECT_TRUE(contains(logger.lastError(), "out of range")) << logger.lastError();
}

TEST_F(WindowLayers, ReduceAndTopK)
{
    IReduceLayer* r = net.addReduce(input(), ReduceOperation::kAVG, 12, false);
    ASSERT_NE(r, nullptr);
    EXPECT_EQ(shapeOf(r), "[2,3]");
    r->setKeepDimensions(true);
    EXPECT_EQ(shapeOf(r), "[2,3,1,1]");
    r->setReduceAxes(1);
    EXPECT_EQ(shapeOf(r), "[1,3,8,9]");
    ITopKLayer* t = net.addTopK(input(), TopKOperation::kMIN, 2, 2);
    ASSERT_NE(t, nullptr);
    EXPECT_EQ(shapeOf(t, 1), "[2,2,8,9]");
    EXPECT_EQ(t->getOutput(1)->getType(), DataType::kINT32);
    EXPECT_EQ(t->getOutputType(1), DataType::kINT32);
    EXPECT_EQ(logger.errors(), 0);
    t->setK(3841);
    t->setK(0);
    t->setReduceAxes(3);
    EXPECT_EQ(logger.errors(), 3);
    EXPECT_EQ(t->getK(), 2);
    EXPECT_EQ(net.addTopK(input(), TopKOperation::kMAX, 0, 1), nullptr);
    EXPECT_EQ(net.addReduce(input(), static_cast<ReduceOperation>(5), 1, false), nullptr);
}

TEST_F(WindowLayers, LRNLimits)
{
    ILRNLayer* l = net.addLRN(input(), 5, 1e-4F, 0.75F, 1.F);
    ASSERT_NE(l, nullptr);
    l->setBeta(0.01F);
    l->setK(1e-5F);
    l->setAlpha(-1e20F);
    l->setWindowSize(15);
    EXPECT_EQ(shapeOf(l), "[2,3,8,9]");
    EXPECT_EQ(logger.errors(), 0);
    l->setBeta(0.009F);
    l->setK(0.F);
    l->setAlpha(NAN);
    l->setWindowSize(4);
    l->setWindowSize(17);
    EXPECT_EQ(logger.errors(), 5);
    EXPECT_EQ(l->getWindowSize(), 15);
}

TEST_F(WindowLayers, Padding)
{
    IPaddingLayer* l = net.addPaddingNd(input(), Dims2(1, -2), Dims2(0, 3));
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(shapeOf(l), "[2,3,9,10]");
    EXPECT_EQ(l->getPostPadding().w(), 3);
    EXPECT_EQ(net.addPaddingNd(input(), Dims3(1, 1, 1), Dims2(0, 0)), nullptr);
}

TEST_F(WindowLayers, Resize)
{
    IResizeLayer* l = net.addResize(input());
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(l->getScales(0, nullptr), -1);
    EXPECT_EQ(l->getCubicCoeff(), -0.75F);
    EXPECT_EQ(l->getCoordinateTransformation(), ResizeCoordinateTransformation::kASYMMETRIC);
    EXPECT_EQ(l->getNearestRounding(), ResizeRoundMode::kFLOOR);
    float const scales[] = {1.F, 1.F, 0.7F, 1.5F};
    l->setScales(scales, 4);
    EXPECT_EQ(shapeOf(l), "[2,3,5,13]");
    float got[4]{};
    EXPECT_EQ(l->getScales(4, got), 4);
    EXPECT_EQ(got[2], 0.7F);
    l->setOutputDimensions(Dims4(2, 3, 4, 4)); // replaces the scales
    EXPECT_EQ(l->getScales(0, nullptr), -1);
    EXPECT_EQ(shapeOf(l), "[2,3,4,4]");
    l->setAlignCorners(true);
    EXPECT_EQ(l->getCoordinateTransformation(), ResizeCoordinateTransformation::kALIGN_CORNERS);
    EXPECT_EQ(logger.errors(), 0);
    int32_t const dims[] = {2, 3, 6, 7};
    Dims four{};
    four.nbDims = 1;
    four.d[0] = 4;
    l->setInput(1, *net.addConstant(four, {DataType::kINT32, dims, 4})->getOutput(0));
    EXPECT_EQ(shapeOf(l), "[2,3,6,7]");
    EXPECT_EQ(logger.errors(), 0);
    l->setScales(scales, 4); // both refused once input 1 is there
    l->setOutputDimensions(Dims4(2, 3, 4, 4));
    EXPECT_EQ(logger.errors(), 2);
    IResizeLayer* linear = net.addResize(input());
    linear->setResizeMode(ResizeMode::kLINEAR);
    linear->setOutputDimensions(Dims4(4, 3, 8, 9)); // not one of the last three
    EXPECT_LT(linear->getOutput(0)->getDimensions().nbDims, 0);
    float const bad[] = {1.F, 1.F, 0.F, 1.F};
    linear->setScales(bad, 4);
    linear->setScales(nullptr, 4);
    EXPECT_EQ(linear->getScales(0, nullptr), -1);
}

} // namespace
