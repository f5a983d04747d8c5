// SPDX-License-Identifier: Apache-2.0
// Each limit of layers with a window just inside and just outside, and what holds for all layers.
#include "dla/dla_maker.h"

using namespace tw::test;

namespace {

// A layer as a number decides it, with the numbers that DLA takes and those that it does not.
struct Limit
{
    char const* name; // and what the reason says beside the number
    std::function<ILayer*(DlaMaker&, int)> layer;
    std::vector<int> inside, outside;
    char const* model = "orin";
    char const* kind = "parameters out of range";
};

void check(std::vector<Limit> const& limits)
{
    for (Limit const& l : limits)
        for (bool const isInside : {true, false})
            for (int v : isInside ? l.inside : l.outside) {
                DlaMaker m(l.model);
                ILayer* const layer = l.layer(m, v);
                ASSERT_NE(layer, nullptr) << l.name << ' ' << v << m.errors();
                layer->setName("the layer");
                EXPECT_EQ(m.canRun(layer), isInside) << l.name << ' ' << v << ": " << m.reason() << m.errors();
                if (isInside)
                    continue;
                std::string const why = m.reason();
                EXPECT_TRUE(contains(why, "layer 'the layer' (") && contains(why, l.kind) && contains(why, l.name) &&
                            contains(why, std::to_string(v).c_str()))
                    << l.name << ' ' << v << ": " << why;
            }
}

ILayer* convolution(DlaMaker& m, std::vector<int> const& shape, int maps, DimsHW kernel, DimsHW stride = {1, 1},
                    DimsHW padding = {0, 0}, DimsHW dilation = {1, 1}, int groups = 1)
{
    auto* l = m.convolution(m.input("x", shape), maps, kernel, groups);
    l->setStrideNd(stride);
    l->setPaddingNd(padding);
    l->setDilationNd(dilation);
    return l;
}

TEST(DlaLimits, Convolution)
{
    check({
        {"kernel size",
         [](DlaMaker& m, int v) {
             return convolution(m, {1, 4, 80, 40}, 4, {v, 2});
         },
         {1, 32},
         {33, 64}},
        {"kernel size",
         [](DlaMaker& m, int v) {
             return convolution(m, {1, 4, 40, 80}, 4, {2, v});
         },
         {1, 32},
         {33}},
        {"stride",
         [](DlaMaker& m, int v) {
             return convolution(m, {1, 4, 40, 40}, 4, {2, 2}, {v, 1});
         },
         {1, 8},
         {9, 16}},
        {"stride",
         [](DlaMaker& m, int v) {
             return convolution(m, {1, 4, 40, 40}, 4, {2, 2}, {1, v});
         },
         {8},
         {9}},
        {"padding",
         [](DlaMaker& m, int v) {
             return convolution(m, {1, 4, 40, 40}, 4, {32, 32}, {1, 1}, {v, 1});
         },
         {0, 31},
         {32}},
        {"less than the kernel size",
         [](DlaMaker& m, int v) {
             return convolution(m, {1, 4, 40, 40}, 4, {3, 5}, {1, 1}, {v, 4});
         },
         {2},
         {3, 4}},
        {"dilation",
         [](DlaMaker& m, int v) {
             return convolution(m, {1, 4, 80, 40}, 4, {2, 2}, {1, 1}, {0, 0}, {v, 1});
         },
         {1, 32},
         {33}},
        {"channels",
         [](DlaMaker& m, int v) {
             return convolution(m, {1, 1, 4, 4}, v, {1, 1});
         },
         {1, 8192},
         {8193}},
        {"convolution buffer",
         [](DlaMaker& m, int v) {
             return convolution(m, {1, 16, 40, v}, 4, {3, 3});
         },
         {3, 5120}, // 3 rows of 32-byte pixels in 15 banks of 32 KiB
         {5122}},
    });
    // Groups have as many maps at least, so that they are limited together.
    check({{"channels",
            [](DlaMaker& m, int v) {
                return convolution(m, {1, v, 4, 4}, v, {1, 1}, {1, 1}, {0, 0}, {1, 1}, v);
            },
            {1, 8192},
            {8193}}});
}

TEST(DlaLimits, PaddingOfModes)
{
    // 40 in, stride 8, kernel 5: no padding before kSAME's 0 and 0; kernel 32 with stride 1: 15 and 16, less than 31.
    for (auto mode : {PaddingMode::kSAME_UPPER, PaddingMode::kSAME_LOWER}) {
        DlaMaker m;
        auto* l = m.convolution(m.input("x", {1, 4, 40, 40}), 4, {32, 32});
        l->setPaddingMode(mode);
        EXPECT_TRUE(m.canRun(l)) << m.reason();
        l->setStrideNd(DimsHW(9, 1));
        EXPECT_FALSE(m.canRun(l));
    }
    DlaMaker m;
    auto* l = m.network->addPoolingNd(*m.input("x", {1, 4, 40, 40}), PoolingType::kMAX, DimsHW(8, 8));
    l->setPrePadding(DimsHW(0, 0));
    l->setPostPadding(DimsHW(0, 7));
    EXPECT_TRUE(m.canRun(l)) << m.reason();
    l->setPaddingMode(PaddingMode::kSAME_UPPER);
    EXPECT_TRUE(m.canRun(l)) << m.reason();
}

TEST(DlaLimits, Volumes)
{
    DlaMaker m;
    ITensor* x = m.input("x", {1, 2, 4, 4, 4});
    auto* c = m.network->addConvolutionNd(*x, 2, Dims3(1, 1, 1), m.weights(4), m.weights(2));
    EXPECT_FALSE(m.canRun(c));
    EXPECT_TRUE(contains(m.reason(), "3 spatial dimensions")) << m.reason();
    auto* d = m.network->addDeconvolutionNd(*x, 2, Dims3(1, 1, 1), m.weights(4), m.weights(2));
    EXPECT_FALSE(m.canRun(d));
    auto* p = m.network->addPoolingNd(*x, PoolingType::kMAX, Dims3(1, 1, 1));
    EXPECT_FALSE(m.canRun(p));
}

ILayer* deconvolution(DlaMaker& m, DimsHW kernel, DimsHW stride,
                      std::function<void(IDeconvolutionLayer&)> const& set = {})
{
    ITensor* x = m.input("x", {1, 4, 2, 2});
    auto* l = m.network->addDeconvolutionNd(*x, 4, kernel, m.weights(16 * kernel.h() * kernel.w()), m.weights(4));
    l->setStrideNd(stride);
    if (set)
        set(*l);
    return l;
}

TEST(DlaLimits, Deconvolution)
{
    check({
        {"kernel size",
         [](DlaMaker& m, int v) {
             return deconvolution(m, {v, 2}, {1, 1});
         },
         {1, 32},
         {33, 64, 128}},
        {"kernel size",
         [](DlaMaker& m, int v) {
             return deconvolution(m, {1, v}, {1, 1});
         },
         {32, 64, 96, 128},
         {33, 63, 127}},
        {"kernel size",
         [](DlaMaker& m, int v) {
             return deconvolution(m, {v, 1}, {1, 1});
         },
         {64, 96, 128},
         {65}},
        {"squares of 23 to 32",
         [](DlaMaker& m, int v) {
             return deconvolution(m, {v, v}, {1, 1});
         },
         {1, 22},
         {23, 32}},
        {"stride",
         [](DlaMaker& m, int v) {
             return deconvolution(m, {2, 2}, {v, 1});
         },
         {1, 32, 64, 96, 128},
         {33, 65}},
        {"stride",
         [](DlaMaker& m, int v) {
             return deconvolution(m, {2, 2}, {v, v});
         },
         {2, 22},
         {23, 32}},
        {"padding",
         [](DlaMaker& m, int v) {
             return deconvolution(m, {3, 3}, {1, 1}, [v](auto& l) { l.setPaddingNd(DimsHW(0, v)); });
         },
         {0},
         {1}},
        {"dilation",
         [](DlaMaker& m, int v) {
             return deconvolution(m, {2, 2}, {1, 1}, [v](auto& l) { l.setDilationNd(DimsHW(v, 1)); });
         },
         {1},
         {2}},
        {"groups",
         [](DlaMaker& m, int v) {
             auto* l = m.network->addDeconvolutionNd(*m.input("x", {1, 4, 2, 2}), 4, DimsHW(1, 1), m.weights(16 / v),
                                                     m.weights(4));
             l->setNbGroups(v);
             return l;
         },
         {1},
         {2}},
        {"output channels",
         [](DlaMaker& m, int v) {
             return m.network->addDeconvolutionNd(*m.input("x", {1, 1, 2, 2}), v, DimsHW(1, 1), m.weights(v),
                                                  m.weights(v));
         },
         {1},
         {}},
    });
    DlaMaker m; // the output has the channels, so that what holds for all tensors is told
    auto* l = m.network->addDeconvolutionNd(*m.input("x", {1, 1, 2, 2}), 8193, DimsHW(1, 1), m.weights(8193),
                                            m.weights(8193));
    EXPECT_FALSE(m.canRun(l));
    EXPECT_TRUE(contains(m.reason(), "channels 8193")) << m.reason();
}

TEST(DlaLimits, FullyConnected)
{
    auto make = [](std::vector<int> const& shape, int64_t inputs) {
        return [=](DlaMaker& m, int v) {
            return m.network->addFullyConnected(*m.input("x", shape), v, m.weights(inputs * v), m.weights(v));
        };
    };
    check({{"8193", make({2, 3, 1, 1}, 3), {1, 8192}, {8193}}});
    check({{"height",
            [](DlaMaker& m, int v) {
                return m.network->addFullyConnected(*m.input("x", {1, 1, v, 2}), 2, m.weights(4 * v), m.weights(2));
            },
            {1, 32},
            {33}}});
}

ILayer* pooling(DlaMaker& m, PoolingType type, DimsHW window, DimsHW stride = {1, 1}, DimsHW padding = {0, 0})
{
    auto* l = m.network->addPoolingNd(*m.input("x", {1, 4, 40, 40}), type, window);
    l->setStrideNd(stride);
    l->setPaddingNd(padding);
    return l;
}

TEST(DlaLimits, Pooling)
{
    constexpr auto kMax = PoolingType::kMAX;
    check({
        {"window size",
         [](DlaMaker& m, int v) {
             return pooling(m, kMax, {v, 1});
         },
         {1, 8},
         {9}},
        {"window size",
         [](DlaMaker& m, int v) {
             return pooling(m, PoolingType::kAVERAGE, {1, v});
         },
         {1, 8},
         {9}},
        {"stride",
         [](DlaMaker& m, int v) {
             return pooling(m, kMax, {2, 2}, {1, v});
         },
         {1, 16},
         {17}},
        {"padding",
         [](DlaMaker& m, int v) {
             return pooling(m, kMax, {8, 8}, {1, 1}, {v, 0});
         },
         {0, 7},
         {}},
    });
    DlaMaker m;
    EXPECT_FALSE(m.canRun(pooling(m, PoolingType::kMAX_AVERAGE_BLEND, {2, 2})));
    EXPECT_TRUE(contains(m.reason(), "not supported on DLA")) << m.reason();
    for (char const* model : {"orin", "xavier"})
        for (bool const excludes : {false, true})
            for (PoolingType const type : {kMax, PoolingType::kAVERAGE}) {
                DlaMaker one(model);
                auto* l = static_cast<IPoolingLayer*>(pooling(one, type, {2, 2}, {1, 1}, {1, 1}));
                l->setAverageCountExcludesPadding(excludes);
                bool const isOut = excludes && type == PoolingType::kAVERAGE && std::string(model) == "xavier";
                EXPECT_EQ(one.canRun(l), !isOut) << model << excludes << one.reason();
            }
}

// ---- what holds for all layers

ILayer* reluOf(DlaMaker& m, std::vector<int> const& shape)
{
    return m.network->addActivation(*m.input("x", shape), ActivationType::kRELU);
}

TEST(DlaLimits, SizesOfTensors)
{
    check({
        {"channels",
         [](DlaMaker& m, int v) {
             return reluOf(m, {1, v, 2, 2});
         },
         {1, 8192},
         {8193}},
        {"height",
         [](DlaMaker& m, int v) {
             return reluOf(m, {1, 2, v, 2});
         },
         {1, 8192},
         {8193}},
        {"width",
         [](DlaMaker& m, int v) {
             return reluOf(m, {1, 2, 2, v});
         },
         {1, 8192},
         {8193}},
        {"batch",
         [](DlaMaker& m, int v) {
             return reluOf(m, {v, 2, 2, 2});
         },
         {1, 4096},
         {4097},
         "orin",
         "batch too large"},
        {"at least 3 are needed",
         [](DlaMaker& m, int v) { return reluOf(m, std::vector<int>(size_t(v), 2)); },
         {3, 4, 5},
         {1, 2}},
    });
    // All dimensions in front count together.
    for (auto const& [n, p, good] : {std::tuple(64, 64, true), {64, 65, false}, {4097, 1, false}}) {
        DlaMaker m;
        EXPECT_EQ(m.canRun(reluOf(m, {n, p, 2, 2, 2})), good) << n << ' ' << p << m.reason();
    }
}

TEST(DlaLimits, Wildcards)
{
    DlaMaker m;
    ILayer* l = reluOf(m, {-1, 2, 3, 4});
    EXPECT_TRUE(m.canRun(l)) << m.reason();
    m.profile({{"x", {5, 2, 3, 4}, {5, 2, 3, 4}, {5, 2, 3, 4}}});
    EXPECT_TRUE(m.canRun(l)) << m.reason();
    m.profile({{"x", {4, 2, 3, 4}, {5, 2, 3, 4}, {5, 2, 3, 4}}});
    EXPECT_FALSE(m.canRun(l));
    EXPECT_TRUE(contains(m.reason(), "optimization profile 1 gives network input 'x' a range")) << m.reason();
    DlaMaker large;
    l = reluOf(large, {-1, 2, 3, 4});
    large.profile({{"x", {4097, 2, 3, 4}, {4097, 2, 3, 4}, {4097, 2, 3, 4}}});
    EXPECT_FALSE(large.canRun(l));
    EXPECT_TRUE(contains(large.reason(), "batch 4097")) << large.reason();
    DlaMaker inner;
    EXPECT_FALSE(inner.canRun(reluOf(inner, {1, 2, -1, 4})));
    EXPECT_TRUE(contains(inner.reason(), "dimension 2 is a wildcard")) << inner.reason();
    DlaMaker two; // of one size each, but not the same
    l = reluOf(two, {-1, 2, 3, 4});
    two.profile({{"x", {2, 2, 3, 4}, {2, 2, 3, 4}, {2, 2, 3, 4}}});
    two.profile({{"x", {3, 2, 3, 4}, {3, 2, 3, 4}, {3, 2, 3, 4}}});
    EXPECT_FALSE(two.canRun(l));
    EXPECT_TRUE(contains(two.reason(), "another batch")) << two.reason();
}

TEST(DlaLimits, Precisions)
{
    DlaMaker m;
    ILayer* l = reluOf(m, {1, 2, 3, 4});
    m.config->clearFlag(BuilderFlag::kFP16);
    EXPECT_FALSE(m.canRun(l));
    EXPECT_TRUE(contains(m.reason(), "set BuilderFlag::kFP16 or kINT8")) << m.reason();
    m.config->setFlag(BuilderFlag::kINT8);
    EXPECT_FALSE(m.canRun(l));
    EXPECT_TRUE(contains(m.reason(), "'x' has no dynamic range")) << m.reason();
    l->getInput(0)->setDynamicRange(-1, 1);
    EXPECT_FALSE(m.canRun(l)); // the output's
    l->getOutput(0)->setDynamicRange(-1, 1);
    EXPECT_TRUE(m.canRun(l)) << m.reason();
    // A precision is a wish until a flag makes it more.
    l->setPrecision(DataType::kFLOAT);
    EXPECT_TRUE(m.canRun(l)) << m.reason();
    m.config->setFlag(BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
    EXPECT_FALSE(m.canRun(l));
    EXPECT_TRUE(contains(m.reason(), "precision is set")) << m.reason();
    l->setPrecision(DataType::kINT8);
    EXPECT_TRUE(m.canRun(l)) << m.reason();
    l->setPrecision(DataType::kHALF);
    EXPECT_FALSE(m.canRun(l)); // kFP16 is not set
    m.config->setFlag(BuilderFlag::kFP16);
    EXPECT_TRUE(m.canRun(l)) << m.reason();
}

TEST(DlaLimits, OfTheWholeNetwork)
{
    DlaMaker m;
    ILayer* l = reluOf(m, {1, 2, 3, 4});
    float const one = 1;
    ITensor* scale = m.network->addConstant(dims({}), {DataType::kFLOAT, &one, 1})->getOutput(0);
    m.network->addQuantize(*l->getOutput(0), *scale);
    EXPECT_FALSE(m.canRun(l));
    EXPECT_TRUE(contains(m.reason(), "quantize or dequantize")) << m.reason();
    DlaMaker none(nullptr);
    EXPECT_FALSE(none.canRun(reluOf(none, {1, 2, 3, 4})));
    EXPECT_FALSE(none.config->canRunOnDLA(nullptr));
    DlaMaker integers;
    ITensor* i = integers.input("i", {1, 2, 3, 4}, DataType::kINT32);
    EXPECT_FALSE(integers.canRun(integers.network->addElementWise(*i, *i, ElementWiseOperation::kSUM)));
    EXPECT_TRUE(contains(integers.reason(), "neither FP32, FP16 nor INT8")) << integers.reason();
}

TEST(DlaLimits, CoresAndPools)
{
    for (auto const& [model, sram] :
         {std::pair<char const*, size_t>{"orin", size_t(512) << 10}, {"xavier", size_t(1) << 20}}) {
        DlaMaker m(model);
        EXPECT_EQ(m.builder->getNbDLACores(), 2);
        EXPECT_EQ(m.builder->getMaxDLABatchSize(), 4096);
        EXPECT_EQ(m.config->getMemoryPoolLimit(MemoryPoolType::kDLA_MANAGED_SRAM), sram);
        EXPECT_EQ(m.config->getMemoryPoolLimit(MemoryPoolType::kDLA_LOCAL_DRAM), size_t(1) << 30);
        EXPECT_EQ(m.config->getMemoryPoolLimit(MemoryPoolType::kDLA_GLOBAL_DRAM), size_t(512) << 20);
        for (int core : {0, 1, -1}) {
            m.config->setDLACore(core);
            EXPECT_EQ(m.config->getDLACore(), core);
        }
        m.config->setDLACore(1);
        for (int core : {2, -2}) {
            m.config->setDLACore(core);
            EXPECT_TRUE(m.oneError("does not exist"));
            EXPECT_EQ(m.config->getDLACore(), 1);
        }
        std::unique_ptr<IRuntime> const runtime(createInferRuntime(m.logger));
        EXPECT_EQ(runtime->getNbDLACores(), 2);
        EXPECT_EQ(runtime->getDLACore(), 0);
        runtime->setDLACore(1);
        EXPECT_EQ(runtime->getDLACore(), 1);
        runtime->setDLACore(2);
        EXPECT_TRUE(m.oneError("does not exist"));
    }
    DlaMaker none(nullptr);
    EXPECT_EQ(none.builder->getNbDLACores(), 0);
    EXPECT_EQ(none.builder->getMaxDLABatchSize(), 0);
    none.config->setDLACore(1);
    EXPECT_EQ(none.config->getDLACore(), -1);
    std::unique_ptr<IRuntime> const runtime(createInferRuntime(none.logger));
    runtime->setDLACore(1);
    EXPECT_EQ(runtime->getDLACore(), 0);
    EXPECT_EQ(none.errors(), "");
    DlaModel const wrong("thor");
    KeepingLogger logger;
    EXPECT_EQ(createInferBuilder(logger), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "TENSORWRIGHT_DLA_MODEL: 'thor'")) << logger.lastError();
}

TEST(DlaLimits, DeviceTypesOfLayers)
{
    DlaMaker m;
    ILayer* l = reluOf(m, {1, 2, 3, 4});
    m.config->setDefaultDeviceType(DeviceType::kGPU);
    EXPECT_EQ(m.config->getDeviceType(l), DeviceType::kGPU);
    EXPECT_FALSE(m.config->isDeviceTypeSet(l));
    m.config->setDeviceType(l, DeviceType::kDLA);
    EXPECT_TRUE(m.config->isDeviceTypeSet(l));
    EXPECT_EQ(m.config->getDeviceType(l), DeviceType::kDLA);
    m.config->resetDeviceType(l);
    EXPECT_EQ(m.config->getDeviceType(l), DeviceType::kGPU);
    m.config->setDefaultDeviceType(DeviceType::kDLA);
    EXPECT_EQ(m.config->getDeviceType(l), DeviceType::kDLA);
    m.config->reset();
    EXPECT_EQ(m.config->getDeviceType(l), DeviceType::kGPU);
}

} // namespace
