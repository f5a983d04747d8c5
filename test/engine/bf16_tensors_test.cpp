// SPDX-License-Identifier: Apache-2.0
// TENSORWRIGHT_BF16_TENSORS: engines whose tensors are BF16 give what FP32 gives, within seven bits; inputs and outputs stay
// FP32.
#include <cmath>
#include <memory>
#include <vector>

#include "engine/engines.h"

using namespace tw::test;

namespace {

struct NarrowNetwork : Maker
{
    std::vector<std::unique_ptr<std::vector<float>>> kept;

    Weights weights(int64_t count, float scale, float from = 0)
    {
        auto& v = *kept.emplace_back(std::make_unique<std::vector<float>>(size_t(count)));
        for (size_t i = 0; i < v.size(); ++i)
            v[i] = from + scale * float(int(i * 37 % 101) - 50) / 50;
        return {DataType::kFLOAT, v.data(), count};
    }
    ITensor* convolution(ITensor* x, int from, int to, int window, int stride, int groups = 1)
    {
        IConvolutionLayer* c = network->addConvolutionNd(*x, to, Dims2(window, window),
                                                         weights(int64_t(to) * (from / groups) * window * window, 0.3F),
                                                         weights(to, 0.1F));
        c->setStrideNd(Dims2(stride, stride));
        c->setPaddingNd(Dims2(window / 2, window / 2));
        c->setNbGroups(groups);
        return relu(c->getOutput(0));
    }
    void addCnn()
    {
        ITensor* x = input("x", {2, 3, 20, 20});
        x = convolution(x, 3, 16, 3, 2);
        ITensor* y = convolution(x, 16, 16, 3, 1, 16);
        x = add(x, convolution(y, 16, 16, 1, 1));
        IPoolingLayer* pool = network->addPoolingNd(*x, PoolingType::kMAX, Dims2(2, 2));
        pool->setStrideNd(Dims2(2, 2));
        x = network->addScale(*pool->getOutput(0), ScaleMode::kCHANNEL, weights(16, 0.2F), weights(16, 0.5F, 1), {})
                ->getOutput(0);
        x = network->addReduce(*x, ReduceOperation::kAVG, 12, false)->getOutput(0);
        output(x, "y");
    }
    void addMlp()
    {
        ITensor* x = input("x", {7, 40});
        for (auto const& [from, to] : {std::pair{40, 96}, {96, 33}, {33, 10}}) {
            ITensor* w = network->addConstant(dims({from, to}), weights(int64_t(from) * to, 0.2F))->getOutput(0);
            ITensor* b = network->addConstant(dims({1, to}), weights(to, 0.1F))->getOutput(0);
            x = network->addMatrixMultiply(*x, MatrixOperation::kNONE, *w, MatrixOperation::kNONE)->getOutput(0);
            x = add(x, b);
            x = network->addActivation(*x, ActivationType::kTANH)->getOutput(0);
        }
        output(network->addSoftMax(*x)->getOutput(0), "y");
    }
};

struct NarrowRun
{
    std::vector<float> y;
    std::string layers; // what the inspector says
};

NarrowRun runNarrow(bool isCnn, bool byClock)
{
    NarrowNetwork m;
    isCnn ? m.addCnn() : m.addMlp();
    m.config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    if (!byClock)
        m.config->setFlag(
            BuilderFlag::kENABLE_TACTIC_HEURISTIC); // types without a clock: the narrow one wherever it may be
    std::unique_ptr<ICudaEngine> const e = m.engine();
    EXPECT_TRUE(e) << m.errors();
    if (!e)
        return {};
    EXPECT_EQ(e->getBindingDataType(0), DataType::kFLOAT);
    EXPECT_EQ(e->getBindingDataType(1), DataType::kFLOAT);
    std::vector<float> x(size_t(volume(list(e->getBindingDimensions(0)))));
    for (size_t i = 0; i < x.size(); ++i)
        x[i] = std::sin(float(i));
    NarrowRun r;
    r.y.resize(size_t(volume(list(e->getBindingDimensions(1)))));
    void* bindings[] = {x.data(), r.y.data()};
    EXPECT_TRUE(contextOf(*e)->executeV2(bindings));
    std::unique_ptr<IEngineInspector> const inspector(e->createEngineInspector());
    r.layers = inspector->getEngineInformation(LayerInformationFormat::kJSON);
    return r;
}

class Bf16Tensors : public testing::TestWithParam<bool>
{};

TEST_P(Bf16Tensors, AreAsNearAsTheirDigits)
{
    NarrowRun const single = runNarrow(GetParam(), false);
    EXPECT_FALSE(contains(single.layers, "linear BF16"));
    Variable v("TENSORWRIGHT_BF16_TENSORS", "1");
    NarrowRun const narrow = runNarrow(GetParam(), false);
    EXPECT_TRUE(contains(narrow.layers, "linear BF16")) << narrow.layers;
    EXPECT_TRUE(contains(narrow.layers, "_bf16_")) << narrow.layers;
    ASSERT_EQ(single.y.size(), narrow.y.size());
    float most = 0;
    for (float y : single.y)
        most = std::max(most, std::fabs(y));
    EXPECT_GT(most, 0.05F);
    bool anyDiffers = false;
    for (size_t i = 0; i < single.y.size(); ++i) {
        EXPECT_NEAR(single.y[i], narrow.y[i], most * 0.03F) << i;
        anyDiffers = anyDiffers || single.y[i] != narrow.y[i];
    }
    EXPECT_TRUE(anyDiffers) << "nothing was rounded";
}

TEST_P(Bf16Tensors, AreTimed)
{
    Variable v("TENSORWRIGHT_BF16_TENSORS", "1");
    NarrowRun const r = runNarrow(GetParam(), true);
    EXPECT_TRUE(contains(r.layers, "BF16")) << "neither chosen nor named as what lost: " << r.layers;
}

INSTANTIATE_TEST_SUITE_P(Networks, Bf16Tensors, testing::Bool(),
                         [](auto const& i) { return std::string(i.param ? "Cnn" : "Mlp"); });

// A selector is told of 8.5's types alone.
struct TypeWatcher final : IAlgorithmSelector
{
    int32_t selectAlgorithms(IAlgorithmContext const&, IAlgorithm const* const* choices, int32_t count,
                             int32_t* selection) noexcept override
    {
        for (int32_t i = 0; i < count; ++i) {
            selection[i] = i;
            for (int32_t k = 0; k < 2; ++k)
                if (IAlgorithmIOInfo const* io = choices[i]->getAlgorithmIOInfoByIndex(k))
                    isKnown = isKnown && int32_t(io->getDataType()) <= int32_t(DataType::kUINT8);
        }
        return count;
    }
    void reportAlgorithms(IAlgorithmContext const* const*, IAlgorithm const* const*, int32_t) noexcept override {}
    bool isKnown = true;
};

TEST(Bf16Tensors, AreNothingForSelectors)
{
    Variable v("TENSORWRIGHT_BF16_TENSORS", "1");
    NarrowNetwork m;
    m.addMlp();
    TypeWatcher selector;
    m.config->setAlgorithmSelector(&selector);
    EXPECT_TRUE(m.plan()) << m.errors();
    EXPECT_TRUE(selector.isKnown);
}

} // namespace
