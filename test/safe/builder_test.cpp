// SPDX-License-Identifier: Apache-2.0
// Each limit of safety restricted mode, just inside and just outside.
#include "safe/safe.h"

namespace tw::test {

namespace {

using Make = std::function<void(Maker&)>;

// Whether a network is taken, by a build for the safe runtime and by a standard one that keeps to the scope.
void expect(char const* error, Make const& make)
{
    for (auto const capability : {EngineCapability::kSAFETY, EngineCapability::kSTANDARD}) {
        Maker m(capability);
        m.config->setFlag(BuilderFlag::kSAFETY_SCOPE);
        make(m);
        bool const isSupported = m.builder->isNetworkSupported(*m.network, *m.config);
        EXPECT_EQ(isSupported, !error) << m.errors();
        EXPECT_EQ(m.plan().empty(), error != nullptr) << m.errors();
        if (error)
            EXPECT_NE(m.errors().find(error), std::string::npos) << m.errors();
        else
            EXPECT_EQ(m.errors(), "");
        EXPECT_GT(m.logger.warnings(), 0) << "nothing says that it is not certified";
    }
}
void taken(Make const& make)
{
    expect(nullptr, make);
}

Make reluOf(std::vector<int32_t> const& shape, DataType type = DataType::kFLOAT)
{
    return [=](Maker& m) { m.output(m.relu(m.input(shape, type))); };
}

struct Window
{
    int32_t kernel = 1, padding = 0, stride = 1, dilation = 1, groups = 1;
};
Make convolution(Window const& w, bool half)
{
    return [=](Maker& m) {
        static std::vector<float> const weights(4096, 0.1F);
        if (!half)
            m.config->clearFlag(BuilderFlag::kFP16);
        nvinfer1::IConvolutionLayer& c =
            *m.network->addConvolutionNd(m.input({1, 4, 8, 8}), 4, nvinfer1::Dims2(w.kernel, w.kernel),
                                         {DataType::kFLOAT, weights.data(), 4 * (4 / w.groups) * w.kernel * w.kernel},
                                         {DataType::kFLOAT, nullptr, 0});
        c.setPaddingNd(nvinfer1::Dims2(w.padding, w.padding));
        c.setStrideNd(nvinfer1::Dims2(w.stride, w.stride));
        c.setDilationNd(nvinfer1::Dims2(w.dilation, w.dilation));
        c.setNbGroups(w.groups);
        c.setName("conv");
        m.output(*c.getOutput(0));
    };
}

} // namespace

TEST(SafetyScope, Sizes)
{
    taken(reluOf({16, 1, 2, 2}));
    expect("batch of 17", reluOf({17, 1, 2, 2}));
    taken(reluOf({1, 4096, 1, 1}));
    expect("channels of 4097 in shape [1,4097,1,1], at most 4096", reluOf({1, 4097, 1, 1}));
    taken(reluOf({1, 1, 4096, 1}));
    taken(reluOf({1, 1, 1, 4096}));
    expect("height of 4097", reluOf({1, 1, 4097, 1}));
    expect("width of 4097", reluOf({1, 1, 1, 4097}));
    taken(reluOf({17, 5000})); // no image
}

TEST(SafetyScope, LayersInsideAreMeasuredToo)
{
    expect("layer 'wide' (Shuffle) is not supported in safety restricted mode: output 'w': channels of 5000",
           [](Maker& m) {
               auto* wide = m.network->addShuffle(m.input({1, 1000, 5, 1}));
               wide->setReshapeDimensions(dims({1, 5000, 1, 1}));
               wide->setName("wide");
               wide->getOutput(0)->setName("w");
               auto* back = m.network->addShuffle(m.relu(*wide->getOutput(0)));
               back->setReshapeDimensions(dims({1, 1000, 5, 1}));
               m.output(*back->getOutput(0));
           });
}

TEST(SafetyScope, ShapesAndBatches)
{
    expect("shape [x.0,3] is dynamic", [](Maker& m) {
        m.output(m.relu(m.input({-1, 3})));
        auto* p = m.builder->createOptimizationProfile();
        for (auto which : {nvinfer1::OptProfileSelector::kMIN, nvinfer1::OptProfileSelector::kOPT,
                           nvinfer1::OptProfileSelector::kMAX})
            p->setDimensions("x", which, dims({2, 3}));
        m.config->addOptimizationProfile(p);
    });
    expect("the network has an implicit batch dimension", [](Maker& m) {
        m.network.reset(m.builder->createNetworkV2(0));
        m.output(m.relu(m.input({3, 4, 4})));
    });
}

TEST(SafetyScope, TypesAndFormats)
{
    taken(reluOf({1, 2, 2, 2}, DataType::kHALF));
    expect("network input 'x' is i32: inputs and outputs in safety restricted mode are kFLOAT, kHALF or kINT8",
           [](Maker& m) {
               ITensor& x = m.input({4}, DataType::kINT32);
               m.output(*m.network->addElementWise(x, x, nvinfer1::ElementWiseOperation::kSUM)->getOutput(0));
           });
    auto const withFormat = [](nvinfer1::TensorFormat f) {
        return [f](Maker& m) {
            ITensor& x = m.input({1, 8, 2, 2}, DataType::kHALF);
            x.setAllowedFormats(1U << int(f));
            m.output(m.relu(x));
        };
    };
    using Format = nvinfer1::TensorFormat;
    for (Format f : {Format::kLINEAR, Format::kCHW2, Format::kHWC8, Format::kCHW4, Format::kCHW16})
        taken(withFormat(f));
    expect("network input 'x' is allowed none of the formats", withFormat(Format::kHWC));
    expect("network input 'x' is allowed none of the formats", withFormat(Format::kHWC16));
}

TEST(SafetyScope, WhatComputesInFloats)
{
    taken(convolution({}, false));
    for (Window const& w :
         {Window{.kernel = 3}, Window{.padding = 1}, Window{.stride = 2}, Window{.dilation = 2}, Window{.groups = 2}}) {
        taken(convolution(w, true));
        expect("layer 'conv' (Convolution) is not supported in safety restricted mode: a convolution in FP32",
               convolution(w, false));
    }
    expect("it would compute in FP32", [](Maker& m) {
        m.config->clearFlag(BuilderFlag::kFP16);
        m.output(m.relu(m.input({1, 2, 2, 2})));
    });
    expect("it would compute in FP32", [](Maker& m) {
        ITensor& y = m.relu(m.input({1, 2, 2, 2}));
        m.network->getLayer(0)->setPrecision(DataType::kFLOAT);
        m.config->setFlag(BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
        m.output(y);
    });
    taken([](Maker& m) { // nothing is computed
        m.config->clearFlag(BuilderFlag::kFP16);
        auto* shuffle = m.network->addShuffle(m.input({1, 2, 3, 4}));
        shuffle->setFirstTranspose({0, 2, 1, 3});
        m.output(*shuffle->getOutput(0));
    });
}

TEST(SafetyScope, LoopsAndSizesOfData)
{
    expect("is a part of loop", [](Maker& m) {
        ITensor& x = m.input({1, 2, 2, 2});
        nvinfer1::ILoop* loop = m.network->addLoop();
        static int32_t const trips = 3;
        loop->addTripLimit(*m.network->addConstant(nvinfer1::Dims{0, {}}, {DataType::kINT32, &trips, 1})->getOutput(0),
                           nvinfer1::TripLimit::kCOUNT);
        nvinfer1::IRecurrenceLayer* carried = loop->addRecurrence(x);
        carried->setInput(1, m.relu(*carried->getOutput(0)));
        m.output(*loop->addLoopOutput(*carried->getOutput(0), nvinfer1::LoopOutput::kLAST_VALUE)->getOutput(0));
    });
}

TEST(SafetyScope, AllFindingsAreTold)
{
    Maker m;
    m.output(m.relu(m.input({17, 1, 2, 5000})));
    EXPECT_EQ(m.plan(), "");
    EXPECT_NE(m.errors().find("the network is outside of safety restricted mode in 3 places"), std::string::npos)
        << m.errors();
}

TEST(SafetyScope, OnlySafetyEnginesCannotBeRefitted)
{
    for (auto const capability : {EngineCapability::kSAFETY, EngineCapability::kSTANDARD}) {
        Maker m(capability);
        m.config->setFlag(BuilderFlag::kSAFETY_SCOPE);
        m.config->setFlag(BuilderFlag::kREFIT);
        m.output(m.relu(m.input({1, 2, 2, 2})));
        EXPECT_EQ(m.plan().empty(), capability == EngineCapability::kSAFETY) << m.errors();
    }
}

TEST(SafetyScope, CapabilityAndFlagAreKept)
{
    Maker m(EngineCapability::kSTANDARD);
    EXPECT_EQ(m.config->getEngineCapability(), EngineCapability::kSTANDARD);
    m.config->setFlag(BuilderFlag::kSAFETY_SCOPE);
    EXPECT_TRUE(m.config->getFlag(BuilderFlag::kSAFETY_SCOPE));
    m.config->setEngineCapability(EngineCapability::kSAFETY);
    EXPECT_EQ(m.config->getEngineCapability(), EngineCapability::kSAFETY);
    EXPECT_EQ(m.errors(), "");
}

} // namespace tw::test
