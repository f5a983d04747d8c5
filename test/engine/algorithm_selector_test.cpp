// SPDX-License-Identifier: Apache-2.0
// IAlgorithmSelector: asked for every layer, obeyed, told what was chosen; a build can be repeated from what it was
// told.
#include <cmath>
#include <functional>
#include <map>

#include "engines.h"

using namespace tw::test;

namespace {

struct Asked
{
    std::string layer;
    int32_t inputs, outputs, choices;
    Dims minimum, optimum, maximum;
    std::vector<std::pair<int64_t, int64_t>> variants;
    std::vector<float> milliseconds;
};

struct Selector final : IAlgorithmSelector
{
    std::function<int32_t(Asked const&, int32_t*)> answer;
    std::vector<Asked> asked;
    std::map<std::string, std::pair<int64_t, int64_t>> reported;
    int reports = 0;
    bool isReportTimed = false;

    int32_t selectAlgorithms(IAlgorithmContext const& c, IAlgorithm const* const* choices, int32_t n,
                             int32_t* selection) noexcept override
    {
        Asked a{c.getName(),
                c.getNbInputs(),
                c.getNbOutputs(),
                n,
                c.getDimensions(0, OptProfileSelector::kMIN),
                c.getDimensions(0, OptProfileSelector::kOPT),
                c.getDimensions(0, OptProfileSelector::kMAX),
                {},
                {}};
        for (int32_t i = 0; i < n; ++i) {
            IAlgorithmVariant const& v = choices[i]->getAlgorithmVariant();
            a.variants.emplace_back(v.getImplementation(), v.getTactic());
            a.milliseconds.push_back(choices[i]->getTimingMSec());
            IAlgorithmIOInfo const* io = choices[i]->getAlgorithmIOInfoByIndex(0);
            EXPECT_NE(io, nullptr);
            EXPECT_EQ(io->getDataType(), DataType::kFLOAT);
            EXPECT_EQ(io->getStrides().nbDims, a.optimum.nbDims);
            EXPECT_EQ(choices[i]->getAlgorithmIOInfoByIndex(a.inputs + a.outputs), nullptr);
            EXPECT_EQ(choices[i]->getAlgorithmIOInfoByIndex(-1), nullptr);
        }
        EXPECT_EQ(c.getDimensions(a.inputs + a.outputs, OptProfileSelector::kOPT).nbDims, -1);
        asked.push_back(a);
        return answer ? answer(a, selection) : 0;
    }
    void reportAlgorithms(IAlgorithmContext const* const* contexts, IAlgorithm const* const* choices,
                          int32_t n) noexcept override
    {
        ++reports;
        for (int32_t i = 0; i < n; ++i) {
            IAlgorithmVariant const& v = choices[i]->getAlgorithmVariant();
            reported[contexts[i]->getName()] = {v.getImplementation(), v.getTactic()};
            isReportTimed = isReportTimed || choices[i]->getTimingMSec() != 0 || choices[i]->getWorkspaceSize() != 0;
        }
    }
};

// Convolution, activation and a softmax; the batch is 1 to 4.
struct SoftMaxNet : Maker
{
    std::vector<float> numbers = std::vector<float>(8 * 8 * 9, 0.1F);
    SoftMaxNet()
    {
        ITensor* x = input("x", {-1, 8, 10, 10});
        Weights const w{DataType::kFLOAT, numbers.data(), int64_t(numbers.size())};
        ILayer* c = network->addConvolutionNd(*x, 8, Dims2(3, 3), w, Weights{DataType::kFLOAT, nullptr, 0});
        c->setName("conv");
        ILayer* s = network->addSoftMax(*c->getOutput(0));
        s->setName("softmax");
        output(s->getOutput(0), "y");
        profile({{"x", {1, 8, 10, 10}, {2, 8, 10, 10}, {4, 8, 10, 10}}});
    }
    std::unique_ptr<IHostMemory> plan(Selector& s)
    {
        config->setAlgorithmSelector(&s);
        return std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config));
    }
};

TEST(AlgorithmSelector, IsAskedAndTold)
{
    SoftMaxNet net;
    Selector any;
    ASSERT_TRUE(net.plan(any)) << net.logger.lastError();
    ASSERT_FALSE(any.asked.empty());
    EXPECT_EQ(any.reports, 1);
    EXPECT_FALSE(any.isReportTimed);
    bool sawConvolution = false;
    for (Asked const& a : any.asked) {
        EXPECT_TRUE(any.reported.contains(a.layer)) << a.layer;
        EXPECT_GE(a.choices, 1);
        if (a.layer.find("conv") != 0)
            continue;
        sawConvolution = true;
        EXPECT_EQ(a.inputs, 1);
        EXPECT_EQ(a.outputs, 1);
        EXPECT_EQ(list(a.minimum), (std::vector<int32_t>{1, 8, 10, 10}));
        EXPECT_EQ(list(a.optimum), (std::vector<int32_t>{2, 8, 10, 10}));
        EXPECT_EQ(list(a.maximum), (std::vector<int32_t>{4, 8, 10, 10}));
        EXPECT_GT(a.milliseconds[0], 0);
    }
    EXPECT_TRUE(sawConvolution);
}

// The last choice of every layer is as good as any other if the client says so; from the report the same build comes
// again.
TEST(AlgorithmSelector, IsObeyedAndReproducible)
{
    SoftMaxNet net;
    Selector last;
    std::map<std::string, std::pair<int64_t, int64_t>> wanted;
    last.answer = [&](Asked const& a, int32_t* selection) {
        selection[0] = a.choices - 1;
        wanted[a.layer] = a.variants.back();
        return 1;
    };
    auto const first = net.plan(last);
    ASSERT_TRUE(first) << net.logger.lastError();
    for (auto const& [layer, variant] : wanted)
        EXPECT_EQ(last.reported[layer], variant) << layer;

    SoftMaxNet again;
    Selector same;
    same.answer = [&](Asked const& a, int32_t* selection) {
        int32_t n = 0;
        for (int32_t i = 0; i < a.choices; ++i)
            if (last.reported.contains(a.layer) && a.variants[size_t(i)] == last.reported[a.layer])
                selection[n++] = i;
        return n;
    };
    ASSERT_TRUE(again.plan(same)) << again.logger.lastError();
    EXPECT_EQ(same.reported, last.reported);
}

// Picks one algorithm of each layer, always the same, whatever the clock says: that of the least numbers and strides.
int32_t pickByNumber(IAlgorithm const* const* choices, int32_t n, int32_t tensors)
{
    auto keyOf = [&](int32_t i) {
        IAlgorithmVariant const& v = choices[i]->getAlgorithmVariant();
        std::vector<int64_t> key{v.getImplementation(), v.getTactic()};
        for (int32_t t = 0; t < tensors; ++t)
            for (int32_t s : list(choices[i]->getAlgorithmIOInfoByIndex(t)->getStrides()))
                key.push_back(s);
        return key;
    };
    int32_t best = 0;
    for (int32_t i = 1; i < n; ++i)
        if (keyOf(i) < keyOf(best))
            best = i;
    return best;
}

TEST(AlgorithmSelector, EqualChoicesGiveEqualPlans)
{
    struct ByNumber final : IAlgorithmSelector
    {
        int32_t selectAlgorithms(IAlgorithmContext const& c, IAlgorithm const* const* choices, int32_t n,
                                 int32_t* selection) noexcept override
        {
            selection[0] = pickByNumber(choices, n, c.getNbInputs() + c.getNbOutputs());
            return 1;
        }
        void reportAlgorithms(IAlgorithmContext const* const*, IAlgorithm const* const*, int32_t) noexcept override {}
    };
    for (ProfilingVerbosity const verbosity : {ProfilingVerbosity::kLAYER_NAMES_ONLY, ProfilingVerbosity::kDETAILED}) {
        std::vector<std::string> plans;
        for (int build = 0; build < 3; ++build) {
            SoftMaxNet net;
            ByNumber selector;
            net.config->setProfilingVerbosity(verbosity);
            net.config->setAlgorithmSelector(&selector);
            std::unique_ptr<IHostMemory> const plan(net.builder->buildSerializedNetwork(*net.network, *net.config));
            ASSERT_TRUE(plan) << net.logger.lastError();
            plans.emplace_back(static_cast<char const*>(plan->data()), plan->size());
        }
        EXPECT_TRUE(plans[0] == plans[1] && plans[0] == plans[2]) << "verbosity " << int(verbosity);
    }
}

TEST(AlgorithmSelector, ATimingCacheBesideItIsAWarning)
{
    SoftMaxNet net;
    std::unique_ptr<ITimingCache> const cache(net.config->createTimingCache(nullptr, 0));
    ASSERT_TRUE(net.config->setTimingCache(*cache, false));
    Selector any;
    ASSERT_TRUE(net.plan(any)) << net.logger.lastError();
    EXPECT_EQ(net.logger.warnings(), 1);
    net.config->setAlgorithmSelector(nullptr);
    EXPECT_TRUE(std::unique_ptr<IHostMemory>(net.builder->buildSerializedNetwork(*net.network, *net.config)));
    EXPECT_EQ(net.logger.warnings(), 1);
}

TEST(AlgorithmSelector, WrongAnswersFailTheBuild)
{
    Selector s;
    {
        SoftMaxNet net;
        s.answer = [](Asked const&, int32_t*) { return 0; };
        net.config->setFlag(BuilderFlag::kREJECT_EMPTY_ALGORITHMS);
        EXPECT_FALSE(net.plan(s));
        EXPECT_TRUE(contains(net.logger.lastError(), "kREJECT_EMPTY_ALGORITHMS")) << net.logger.lastError();
    }
    {
        SoftMaxNet net;
        s.answer = [](Asked const& a, int32_t* selection) {
            selection[0] = a.choices;
            return 1;
        };
        EXPECT_FALSE(net.plan(s));
        EXPECT_TRUE(contains(net.logger.lastError(), "chose number")) << net.logger.lastError();
    }
    {
        SoftMaxNet net;
        s.answer = [](Asked const& a, int32_t*) { return a.choices + 1; };
        EXPECT_FALSE(net.plan(s));
        EXPECT_TRUE(contains(net.logger.lastError(), "selectAlgorithms returned")) << net.logger.lastError();
    }
}

} // namespace
