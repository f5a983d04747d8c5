// SPDX-License-Identifier: Apache-2.0
// Settings and rules of the public layers that work element by element, of concatenation, fill, one-hot and constants.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "api/client.h"
#include "api/network/network.h"

using namespace nvinfer1;
using namespace tw::test;

namespace {

struct PointwiseLayers : testing::Test
{
    KeepingLogger logger;
    CountingRecorder recorder;
    tw::api::Reporter reporter{&logger, &recorder};
    tw::api::NetworkObject object{reporter};
    INetworkDefinition& net = object;
    std::vector<float> numbers = std::vector<float>(4096, 0.5F);
    std::vector<int32_t> integers = std::vector<int32_t>(64, 2);
    Weights none{DataType::kFLOAT, nullptr, 0};

    Weights weights(int64_t n) { return {DataType::kFLOAT, numbers.data(), n}; }
    ITensor& input(Dims dims = Dims4(2, 3, 4, 5), DataType type = DataType::kFLOAT)
    {
        return *net.addInput(("x" + std::to_string(net.getNbInputs())).c_str(), type, dims);
    }
    ITensor& shapeTensor(Dims dims)
    {
        return *net.addConstant(dims,
                                {DataType::kINT32, integers.data(), tw::api::toVector(dims).empty() ? 1 : dims.d[0]})
                    ->getOutput(0);
    }
    static std::string str(Dims d) { return tw::api::str(d); }
    static std::string shapeOf(ILayer* l) { return l ? str(l->getOutput(0)->getDimensions()) : "no layer"; }
};

TEST_F(PointwiseLayers, Activation)
{
    IActivationLayer* l = net.addActivation(input(), ActivationType::kELU);
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(l->getType(), LayerType::kACTIVATION);
    EXPECT_EQ(l->getActivationType(), ActivationType::kELU);
    l->setAlpha(0.25F);
    l->setBeta(2.F);
    EXPECT_EQ(l->getAlpha(), 0.25F);
    EXPECT_EQ(l->getBeta(), 2.F);
    l->setActivationType(ActivationType::kSELU);
    EXPECT_EQ(l->getActivationType(), ActivationType::kSELU);
    EXPECT_EQ(shapeOf(l), "[2,3,4,5]");
    EXPECT_EQ(logger.errors(), 0);
    l->setAlpha(INFINITY);
    l->setBeta(NAN);
    l->setActivationType(static_cast<ActivationType>(12));
    EXPECT_EQ(net.addActivation(input(), static_cast<ActivationType>(-1)), nullptr);
    EXPECT_EQ(logger.errors(), 4);
    EXPECT_EQ(l->getAlpha(), 0.25F);
    EXPECT_EQ(l->getActivationType(), ActivationType::kSELU);
}

// What a client gets who sets neither alpha nor beta, or one of them.
TEST_F(PointwiseLayers, ActivationDefaults)
{
    for (int kind = 0; kind < EnumMax<ActivationType>(); ++kind) {
        IActivationLayer* l = net.addActivation(input(), static_cast<ActivationType>(kind));
        float const expected = l->getActivationType() == ActivationType::kSOFTPLUS ? 1.F : 0.F;
        EXPECT_EQ(l->getAlpha(), expected) << kind;
        EXPECT_EQ(l->getBeta(), expected) << kind;
    }
    IActivationLayer* l = net.addActivation(input(), ActivationType::kRELU);
    l->setActivationType(ActivationType::kSOFTPLUS);
    l->setAlpha(0.F);
    EXPECT_EQ(l->getAlpha(), 0.F);
    EXPECT_EQ(l->getBeta(), 1.F);
    l->setActivationType(ActivationType::kCLIP);
    EXPECT_EQ(l->getBeta(), 0.F);
    EXPECT_EQ(logger.errors(), 0);
}

TEST_F(PointwiseLayers, UnaryAndElementWise)
{
    ITensor &x = input(), &row = input(Dims4(1, 3, 1, 5));
    IUnaryLayer* u = net.addUnary(x, UnaryOperation::kEXP);
    u->setOperation(UnaryOperation::kROUND);
    EXPECT_EQ(u->getOperation(), UnaryOperation::kROUND);
    IElementWiseLayer* e = net.addElementWise(row, x, ElementWiseOperation::kSUM);
    EXPECT_EQ(shapeOf(e), "[2,3,4,5]");
    EXPECT_EQ(e->getOutput(0)->getType(), DataType::kFLOAT);
    e->setOperation(ElementWiseOperation::kLESS);
    EXPECT_EQ(e->getOperation(), ElementWiseOperation::kLESS);
    EXPECT_EQ(e->getOutput(0)->getType(), DataType::kBOOL);
    EXPECT_EQ(logger.errors(), 0);
    u->setOperation(static_cast<UnaryOperation>(23));
    e->setOperation(static_cast<ElementWiseOperation>(14));
    EXPECT_EQ(net.addUnary(x, static_cast<UnaryOperation>(-1)), nullptr);
    EXPECT_EQ(net.addElementWise(x, x, static_cast<ElementWiseOperation>(-1)), nullptr);
    EXPECT_EQ(logger.errors(), 4);
    EXPECT_LT(net.addUnary(x, UnaryOperation::kNOT)->getOutput(0)->getDimensions().nbDims, 0);
    EXPECT_TRUE(contains(logger.lastError(), "must be b")) << logger.lastError();
}

TEST_F(PointwiseLayers, SelectAndIdentity)
{
    ITensor &c = input(Dims2(1, 5), DataType::kBOOL), &a = input(Dims2(4, 1)), &b = input(Dims2(1, 1));
    ISelectLayer* s = net.addSelect(c, a, b);
    EXPECT_EQ(shapeOf(s), "[4,5]");
    IIdentityLayer* i = net.addIdentity(a);
    EXPECT_EQ(i->getOutput(0)->getType(), DataType::kFLOAT);
    i->setOutputType(0, DataType::kINT32);
    EXPECT_EQ(i->getOutput(0)->getType(), DataType::kINT32);
    i->setOutputType(0, DataType::kINT8);
    EXPECT_LT(i->getOutput(0)->getDimensions().nbDims, 0);
    EXPECT_GT(logger.errors(), 0);
}

TEST_F(PointwiseLayers, Scale)
{
    IScaleLayer* l = net.addScale(input(), ScaleMode::kCHANNEL, weights(3), weights(3), none);
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(l->getMode(), ScaleMode::kCHANNEL);
    EXPECT_EQ(l->getChannelAxis(), 1);
    EXPECT_EQ(l->getShift().count, 3);
    EXPECT_EQ(l->getPower().count, 0);
    EXPECT_EQ(shapeOf(l), "[2,3,4,5]");
    l->setMode(ScaleMode::kELEMENTWISE);
    l->setShift(weights(60));
    l->setScale(weights(60));
    l->setPower(weights(60));
    EXPECT_EQ(shapeOf(l), "[2,3,4,5]");
    EXPECT_EQ(shapeOf(net.addScaleNd(input(), ScaleMode::kCHANNEL, none, weights(5), none, 3)), "[2,3,4,5]");
    EXPECT_EQ(shapeOf(net.addScaleNd(input(dims({1, 2, 3, 4, 5})), ScaleMode::kUNIFORM, none, weights(1), none, 1)),
              "[1,2,3,4,5]");
    EXPECT_EQ(logger.errors(), 0);
    l->setScale(weights(59));
    EXPECT_LT(l->getOutput(0)->getDimensions().nbDims, 0);
    EXPECT_TRUE(contains(logger.lastError(), "59")) << logger.lastError();
    EXPECT_LT(net.addScale(input(Dims3(2, 3, 4)), ScaleMode::kUNIFORM, none, weights(1), none)
                  ->getOutput(0)
                  ->getDimensions()
                  .nbDims,
              0)
        << "three dimensions";
    EXPECT_EQ(net.addScale(input(), static_cast<ScaleMode>(3), none, none, none), nullptr);
    EXPECT_EQ(net.addScaleNd(input(), ScaleMode::kUNIFORM, none, none, none, -1), nullptr);
}

TEST_F(PointwiseLayers, ScaleQuantizesToInt8)
{
    IScaleLayer* l = net.addScale(input(), ScaleMode::kUNIFORM, none, weights(1), none);
    l->setOutputType(0, DataType::kINT8);
    EXPECT_EQ(l->getOutput(0)->getType(), DataType::kINT8);
}

TEST_F(PointwiseLayers, Concatenation)
{
    ITensor* parts[] = {&input(Dims4(2, 3, 4, 5)), &input(Dims4(2, 1, 4, 5))};
    IConcatenationLayer* l = net.addConcatenation(parts, 2);
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(l->getAxis(), 1) << "the third from the end";
    EXPECT_EQ(shapeOf(l), "[2,4,4,5]");
    l->setAxis(0);
    EXPECT_EQ(l->getAxis(), 0);
    EXPECT_LT(l->getOutput(0)->getDimensions().nbDims, 0);
    EXPECT_EQ(net.addConcatenation(nullptr, 1), nullptr);
    EXPECT_EQ(net.addConcatenation(parts, 0), nullptr);
    parts[1] = nullptr;
    EXPECT_EQ(net.addConcatenation(parts, 2), nullptr);
    l->setAxis(8);
    EXPECT_EQ(l->getAxis(), 0);
    EXPECT_GE(logger.errors(), 5);
}

TEST_F(PointwiseLayers, ParametricReluAndOneHot)
{
    EXPECT_EQ(shapeOf(net.addParametricReLU(input(), input(Dims4(1, 3, 1, 1)))), "[2,3,4,5]");
    ITensor &indices = input(Dims2(4, 5), DataType::kINT32), &values = input(dims({2}));
    ITensor& depth = shapeTensor(dims({}));
    IOneHotLayer* l = net.addOneHot(indices, values, depth, 1);
    EXPECT_EQ(l->getAxis(), 1);
    EXPECT_EQ(shapeOf(l), "[4,2,5]");
    l->setAxis(-1);
    EXPECT_EQ(shapeOf(l), "[4,5,2]");
    l->setAxis(3);
    EXPECT_LT(l->getOutput(0)->getDimensions().nbDims, 0);
    EXPECT_EQ(net.addOneHot(indices, values, depth, 100), nullptr);
}

TEST_F(PointwiseLayers, Fill)
{
    IFillLayer* l = net.addFill(dims({6}), FillOperation::kLINSPACE);
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(l->getAlpha(), 0.0);
    EXPECT_EQ(l->getBeta(), 1.0);
    EXPECT_EQ(str(l->getDimensions()), "[6]");
    EXPECT_EQ(shapeOf(l), "[6]");
    l->setInput(0, shapeTensor(dims({1})));
    EXPECT_EQ(l->getDimensions().nbDims, -1);
    EXPECT_EQ(shapeOf(l), "[2]");
    l->setInput(1, input(dims({})));
    l->setInput(2, input(dims({1})));
    EXPECT_EQ(l->getAlpha(), -1.0);
    EXPECT_EQ(l->getBeta(), -1.0);
    EXPECT_EQ(shapeOf(l), "[2]");
    l->setDimensions(dims({7}));
    EXPECT_EQ(l->getInput(0), nullptr) << "taken away by the setter";
    EXPECT_EQ(shapeOf(l), "[7]");
    l->setAlpha(3);
    l->setBeta(4);
    EXPECT_EQ(l->getInput(1), nullptr);
    EXPECT_EQ(l->getInput(2), nullptr);
    EXPECT_EQ(l->getAlpha(), 3.0);
    l->setOperation(FillOperation::kRANDOM_NORMAL);
    l->setDimensions(dims({7, 2}));
    EXPECT_EQ(l->getOperation(), FillOperation::kRANDOM_NORMAL);
    EXPECT_EQ(shapeOf(l), "[7,2]");
    EXPECT_EQ(logger.errors(), 0);
    l->setOperation(FillOperation::kLINSPACE);
    EXPECT_LT(l->getOutput(0)->getDimensions().nbDims, 0) << "two dimensions, one step";
    l->setAlpha(NAN);
    l->setDimensions(dims({-1}));
    EXPECT_EQ(net.addFill(dims({1}), static_cast<FillOperation>(3)), nullptr);
    EXPECT_EQ(net.addFill(Dims{9, {}}, FillOperation::kLINSPACE), nullptr);
    EXPECT_EQ(logger.errors(), 5);
}

TEST_F(PointwiseLayers, Constant)
{
    IConstantLayer* l = net.addConstant(Dims2(2, 3), weights(6));
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(shapeOf(l), "[2,3]");
    EXPECT_EQ(l->getWeights().count, 6);
    EXPECT_EQ(l->getOutputType(0), DataType::kFLOAT);
    l->setDimensions(Dims2(-1, 2));
    EXPECT_EQ(str(l->getDimensions()), "[-1,2]");
    EXPECT_EQ(shapeOf(l), "[3,2]") << "the wildcard takes what the weights leave";
    l->setWeights({DataType::kINT32, integers.data(), 4});
    EXPECT_EQ(shapeOf(l), "[2,2]");
    EXPECT_EQ(l->getOutput(0)->getType(), DataType::kINT32);
    EXPECT_EQ(l->getOutputType(0), DataType::kINT32);
    EXPECT_EQ(shapeOf(net.addConstant(dims({}), weights(1))), "[]");
    EXPECT_EQ(shapeOf(net.addConstant(dims({1, 1, 1, 1, 1, 1, 2}), weights(2))), "[1,1,1,1,1,1,2]");
    EXPECT_EQ(shapeOf(net.addConstant(dims({0, 3}), none)), "[0,3]");
    EXPECT_EQ(logger.errors(), 0);
    l->setWeights({DataType::kINT32, integers.data(), 5});
    EXPECT_LT(l->getOutput(0)->getDimensions().nbDims, 0);
    EXPECT_EQ(net.addConstant(dims({1, 1, 1, 1, 1, 1, 1, 2}), weights(2)), nullptr);
    EXPECT_EQ(net.addConstant(Dims2(1, 1), {DataType::kBOOL, numbers.data(), 1}), nullptr);
    EXPECT_EQ(net.addConstant(Dims2(1, 1), {DataType::kFLOAT, nullptr, 1}), nullptr);
    EXPECT_EQ(net.addConstant(Dims2(-2, 1), weights(1)), nullptr);
    EXPECT_GE(logger.errors(), 4);
}

TEST_F(PointwiseLayers, ImplicitBatchCountsWithoutTheBatch)
{
    object.implicitBatch = true;
    ITensor &x = input(Dims3(3, 4, 5)), &y = input(Dims3(2, 4, 5));
    ITensor* parts[] = {&x, &y};
    IConcatenationLayer* concat = net.addConcatenation(parts, 2);
    EXPECT_EQ(concat->getAxis(), 0);
    EXPECT_EQ(shapeOf(concat), "[5,4,5]");
    IScaleLayer* scale = net.addScale(x, ScaleMode::kCHANNEL, none, weights(3), none);
    EXPECT_EQ(scale->getChannelAxis(), 0);
    EXPECT_EQ(shapeOf(scale), "[3,4,5]");
    EXPECT_EQ(shapeOf(net.addScaleNd(x, ScaleMode::kCHANNEL, none, weights(4), none, 1)), "[3,4,5]");
    IConstantLayer* constant = net.addConstant(Dims3(3, 1, 1), weights(3));
    EXPECT_EQ(shapeOf(constant), "[3,1,1]");
    EXPECT_EQ(shapeOf(net.addElementWise(x, *constant->getOutput(0), ElementWiseOperation::kPROD)), "[3,4,5]");
    EXPECT_EQ(logger.errors(), 0);
    EXPECT_EQ(net.addFill(dims({3}), FillOperation::kLINSPACE), nullptr);
    EXPECT_EQ(net.addSelect(x, x, x), nullptr);
    EXPECT_EQ(logger.errors(), 2);
}

// A refusal names the layer or the creator, the value and what is allowed, and the setting stays as it was.
TEST_F(PointwiseLayers, RefusalsSayWhereAndWhat)
{
    IActivationLayer* l = net.addActivation(input(), ActivationType::kELU);
    l->setName("act");
    auto says = [&](char const* what) { return contains(logger.lastError(), what); };
    l->setActivationType(static_cast<ActivationType>(12));
    EXPECT_TRUE(says("layer 'act' (Activation): activation type 12 does not exist (allowed: 0..11)"));
    l->setBeta(NAN);
    EXPECT_TRUE(says("layer 'act' (Activation): beta nan must be finite"));
    EXPECT_EQ(l->getActivationType(), ActivationType::kELU);
    EXPECT_EQ(net.addActivation(input(), static_cast<ActivationType>(-1)), nullptr);
    EXPECT_TRUE(says("addActivation: activation type -1 does not exist (allowed: 0..11)"));
    IScaleLayer* scale = net.addScale(input(), ScaleMode::kUNIFORM, none, none, none);
    scale->setName("s");
    scale->setShift({DataType::kFLOAT, nullptr, 2});
    EXPECT_TRUE(says("layer 's': shift weights has non-zero count but null values"));
    scale->setChannelAxis(8);
    EXPECT_TRUE(says("layer 's' (Scale): channel axis 8 is out of range (allowed: 0..7, and below the input's rank)"));
    EXPECT_EQ(logger.errors(), 5);
}

} // namespace
