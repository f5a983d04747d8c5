// SPDX-License-Identifier: Apache-2.0
// Refits of scales and ranges: what a build has decided by them holds, or the refit is refused and nothing has changed.
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <random>

#include "engine/engines.h"

using namespace tw::test;

namespace {

using Scales = std::map<std::string, float>;

// Q/DQ networks whose scales are constant layers, one for each Q and each DQ, by name.
struct Net
{
    explicit Net(Scales s = {}) : scales(std::move(s)) { m.config->setFlag(BuilderFlag::kINT8); }
    Maker m;
    Scales scales; // asked for by name; what is not there is 0.05
    std::deque<std::vector<float>> memory;

    ITensor& constant(std::string const& name, std::vector<int32_t> const& shape, std::vector<float> v)
    {
        memory.push_back(std::move(v));
        std::vector<float> const& last = memory.back();
        IConstantLayer* l =
            m.network->addConstant(dims(shape), Weights{DataType::kFLOAT, last.data(), int64_t(last.size())});
        l->setName(name.c_str());
        return *l->getOutput(0);
    }
    ITensor& scale(std::string const& name)
    {
        return constant(name + ".scale", {}, {scales.emplace(name, 0.05F).first->second});
    }
    ITensor* q(ITensor* x, std::string const& name)
    {
        ILayer* l = m.network->addQuantize(*x, scale(name));
        l->setName(name.c_str());
        return l->getOutput(0);
    }
    ITensor* dq(ITensor* x, std::string const& name)
    {
        ILayer* l = m.network->addDequantize(*x, scale(name));
        l->setName(name.c_str());
        return l->getOutput(0);
    }
    ITensor* both(ITensor* x, std::string const& name) { return dq(q(x, name + ".q"), name + ".dq"); }
    std::vector<float> drawn(size_t count, unsigned seed)
    {
        std::mt19937 random(seed);
        std::uniform_real_distribution<float> number(-1, 1);
        std::vector<float> v(count);
        for (float& x : v)
            x = number(random);
        return v;
    }
    ITensor* convolution(ITensor* x, std::string const& name, int32_t maps)
    {
        int32_t const channels = x->getDimensions().d[1];
        ITensor* w = both(
            &constant(name + ".w", {maps, channels, 3, 3}, drawn(size_t(maps * channels * 9), unsigned(name.size()))),
            name + ".w");
        memory.push_back(drawn(size_t(maps), 9));
        IConvolutionLayer* l = m.network->addConvolutionNd(*x, maps, Dims2(3, 3), Weights{DataType::kFLOAT, nullptr, 0},
                                                           Weights{DataType::kFLOAT, memory.back().data(), maps});
        l->setInput(1, *w);
        l->setPaddingNd(Dims2(1, 1));
        l->setName(name.c_str());
        return l->getOutput(0);
    }
    ITensor* pool(ITensor* x, PoolingType type, std::string const& name)
    {
        IPoolingLayer* l = m.network->addPoolingNd(*x, type, Dims2(2, 2));
        l->setStrideNd(Dims2(2, 2));
        l->setName(name.c_str());
        return l->getOutput(0);
    }
    ITensor* joined(ITensor* a, ITensor* b)
    {
        ITensor* const parts[] = {a, b};
        IConcatenationLayer* l = m.network->addConcatenation(parts, 2);
        l->setAxis(1);
        return l->getOutput(0);
    }
    std::unique_ptr<ICudaEngine> build(bool refittable = true)
    {
        if (refittable)
            m.config->setFlag(BuilderFlag::kREFIT);
        return m.engine();
    }
};

std::vector<float> run(ICudaEngine& e)
{
    Context const c = contextOf(e);
    std::vector<std::vector<float>> memory(size_t(e.getNbIOTensors()));
    std::vector<float> out;
    for (int i = 0; i < e.getNbIOTensors(); ++i) {
        char const* name = e.getIOTensorName(i);
        size_t count = 1;
        for (int32_t d : list(c->getTensorShape(name)))
            count *= size_t(d);
        memory[size_t(i)].resize(count);
        for (size_t k = 0; k < count; ++k)
            memory[size_t(i)][k] = float(int(k * 37 % 101) - 50) / 25;
        c->setTensorAddress(name, memory[size_t(i)].data());
    }
    EXPECT_TRUE(c->enqueueV3(nullptr));
    for (int i = 0; i < e.getNbIOTensors(); ++i)
        if (e.getTensorIOMode(e.getIOTensorName(i)) == TensorIOMode::kOUTPUT)
            out.insert(out.end(), memory[size_t(i)].begin(), memory[size_t(i)].end());
    return out;
}

std::unique_ptr<IRefitter> refitterOf(ICudaEngine& engine, ILogger& logger)
{
    return std::unique_ptr<IRefitter>(createInferRefitter(engine, logger));
}

bool set(IRefitter& refitter, std::string const& scale, float value)
{
    // Read by the refit, so it outlives this call.
    static std::deque<float> kept;
    kept.push_back(value);
    return refitter.setWeights((scale + ".scale").c_str(), WeightsRole::kCONSTANT,
                               Weights{DataType::kFLOAT, &kept.back(), 1});
}

using Define = std::function<void(Net&)>;

// Each with what two scales a rewrite stands on: empty where there is none.
struct Case
{
    Define define;
    std::string one, other;
};

std::map<std::string, Case> const& cases()
{
    static std::map<std::string, Case> const all = {
        {"convolutions",
         {[](Net& n) {
              ITensor* x = n.convolution(n.both(n.m.input("x", {2, 4, 8, 8}), "a"), "conv1", 8);
              n.m.output(n.convolution(n.both(n.m.relu(x), "b"), "conv2", 4), "y");
          },
          "", ""}},
        // The DQ goes down through the pool and meets the Q.
        {"pool",
         {[](Net& n) {
              ITensor* x = n.pool(n.both(n.m.input("x", {2, 4, 8, 8}), "a"), PoolingType::kMAX, "pool");
              n.m.output(n.convolution(n.both(x, "b"), "conv", 4), "y");
          },
          "a.dq", "b.q"}},
        {"average",
         {[](Net& n) {
              ITensor* x = n.pool(n.both(n.m.input("x", {2, 4, 8, 8}), "a"), PoolingType::kAVERAGE, "pool");
              n.m.output(n.convolution(n.both(x, "b"), "conv", 4), "y");
          },
          "a.dq", "b.q"}},
        {"concatenation",
         {[](Net& n) {
              ITensor* x = n.m.input("x", {2, 4, 8, 8});
              ITensor* a = n.both(n.convolution(n.both(x, "x"), "conv1", 4), "a");
              ITensor* b = n.both(n.convolution(n.both(x, "z"), "conv23", 8), "b");
              n.m.output(n.convolution(n.joined(a, b), "conv456", 4), "y");
          },
          "a.dq", "b.dq"}},
        // Two readers that quantize alike.
        {"two quantizers",
         {[](Net& n) {
              ITensor* x = n.m.relu(n.convolution(n.both(n.m.input("x", {2, 4, 8, 8}), "x"), "conv1", 8));
              n.m.output(n.convolution(n.both(x, "a"), "conv23", 4), "y");
              n.m.output(n.convolution(n.both(x, "b"), "conv456", 8), "z");
          },
          "a.q", "b.q"}},
        {"residual",
         {[](Net& n) {
              ITensor* x = n.both(n.m.input("x", {2, 4, 8, 8}), "x");
              ITensor* y = n.both(n.convolution(x, "conv1", 4), "a");
              n.m.output(n.convolution(n.both(n.m.relu(n.m.add(y, x)), "b"), "conv23", 4), "y");
          },
          "a.q", "a.dq"}},
        {"arithmetic",
         {[](Net& n) {
              ITensor* x = n.both(n.m.input("x", {2, 4, 8, 8}), "x");
              x = n.m.network->addActivation(*x, ActivationType::kSIGMOID)->getOutput(0);
              n.m.output(n.both(x, "a"), "y");
          },
          "", ""}},
    };
    return all;
}

struct RefitScales : testing::TestWithParam<std::string>
{};

// All scales by the same factor, which no rewrite minds; then weights of the same sizes.
TEST_P(RefitScales, ThatStayEqualAreABuildWithThem)
{
    Case const& c = cases().at(GetParam());
    Net first;
    c.define(first);
    auto const engine = first.build();
    ASSERT_TRUE(engine) << first.m.errors();
    std::vector<float> const before = run(*engine);
    Scales other = first.scales;
    for (auto& [name, s] : other)
        s = name.find(".w.") != std::string::npos ? 0.03F : 0.04F;
    Net next(other);
    c.define(next);
    auto const want = next.build(false);
    ASSERT_TRUE(want) << next.m.errors();
    auto const refitter = refitterOf(*engine, first.m.logger);
    ASSERT_TRUE(refitter);
    EXPECT_EQ(size_t(refitter->getAll(0, nullptr, nullptr)), first.memory.size()) << "weights that cannot be refitted";
    for (auto const& [name, s] : other)
        EXPECT_TRUE(set(*refitter, name, s)) << first.m.errors();
    ASSERT_TRUE(refitter->refitCudaEngine()) << first.m.errors();
    std::vector<float> const got = run(*engine), wanted = run(*want);
    ASSERT_EQ(got.size(), wanted.size());
    EXPECT_NE(wanted, before);
    size_t far = 0;
    for (size_t i = 0; i < got.size(); ++i)
        far += std::fabs(got[i] - wanted[i]) > 1e-4F * std::max(1.F, std::fabs(wanted[i]));
    EXPECT_EQ(far, 0U);
}

TEST_P(RefitScales, ThatBreakARewriteAreRefused)
{
    Case const& c = cases().at(GetParam());
    if (c.one.empty())
        return; // nothing was decided by scales: the other test is all there is
    Net first;
    c.define(first);
    auto const engine = first.build();
    ASSERT_TRUE(engine) << first.m.errors();
    std::vector<float> const before = run(*engine);
    auto const refitter = refitterOf(*engine, first.m.logger);
    for (std::string const& changed : {c.one, c.other}) {
        ASSERT_TRUE(set(*refitter, changed, 0.0625F)) << first.m.errors();
        EXPECT_FALSE(refitter->refitCudaEngine());
        std::string const errors = first.m.errors();
        EXPECT_TRUE(first.m.oneError("refused"));
        for (std::string const& part : {"'" + c.one + "'", "'" + c.other + "'", std::string("0.0625")})
            EXPECT_TRUE(contains(errors, part.c_str())) << part << " is missing: " << errors;
        EXPECT_EQ(run(*engine), before);
        // What was set stays set: the client puts the other one right, or this one back.
        ASSERT_TRUE(set(*refitter, changed, 0.05F));
        EXPECT_TRUE(refitter->refitCudaEngine()) << first.m.errors();
        EXPECT_EQ(run(*engine), before);
    }
}

TEST_P(RefitScales, MustBePositiveAndFinite)
{
    Case const& c = cases().at(GetParam());
    Net first;
    c.define(first);
    auto const engine = first.build();
    ASSERT_TRUE(engine) << first.m.errors();
    std::vector<float> const before = run(*engine);
    float const nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
    for (auto const& [name, was] : first.scales)
        for (float bad : {0.F, -0.05F, nan, infinity}) {
            auto const refitter = refitterOf(*engine, first.m.logger);
            // Its partners, too: a condition of equality alone would not do.
            for (auto const& [each, s] : first.scales)
                ASSERT_TRUE(set(*refitter, each, each == name || name.find(".w.") == std::string::npos ? bad : s));
            EXPECT_FALSE(refitter->refitCudaEngine()) << name << " " << bad;
            EXPECT_TRUE(first.m.oneError("refused"));
        }
    EXPECT_EQ(run(*engine), before);
}

std::vector<std::string> namesOfCases()
{
    std::vector<std::string> names;
    for (auto const& [name, c] : cases())
        names.push_back(name);
    return names;
}
INSTANTIATE_TEST_SUITE_P(Networks, RefitScales, testing::ValuesIn(namesOfCases()), [](auto const& info) {
    std::string name = info.param;
    for (char& c : name)
        c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return name;
});

// A plan keeps the conditions.
TEST(RefitScalesOfPlans, AreHeldToTheSameRules)
{
    Case const& c = cases().at("pool");
    Net n;
    c.define(n);
    auto const engine = n.build();
    ASSERT_TRUE(engine);
    std::unique_ptr<IHostMemory> const plan(engine->serialize());
    std::unique_ptr<IRuntime> const runtime(createInferRuntime(n.m.logger));
    std::unique_ptr<ICudaEngine> const again(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    ASSERT_TRUE(again);
    auto const refitter = refitterOf(*again, n.m.logger);
    ASSERT_TRUE(set(*refitter, "b.q", 0.1F));
    EXPECT_FALSE(refitter->refitCudaEngine());
    EXPECT_TRUE(n.m.oneError("'a.dq' and quantize 'b.q'"));
    for (char const* name : {"a.q", "a.dq", "b.q", "b.dq"})
        ASSERT_TRUE(set(*refitter, name, 0.1F));
    EXPECT_TRUE(refitter->refitCudaEngine()) << n.m.errors();
    EXPECT_NE(run(*again), run(*engine));
}

// x -> conv1 -> relu -> conv2 -> conv3 with ranges.
struct Ranged : Maker
{
    explicit Ranged(float range, bool refittable = true)
    {
        config->setFlag(BuilderFlag::kINT8);
        if (refittable)
            config->setFlag(BuilderFlag::kREFIT);
        std::mt19937 random(3);
        std::normal_distribution<float> normal;
        for (float& w : weights)
            w = normal(random) / 16;
        ITensor* x = input("x", {1, 64, 16, 16});
        x->setDynamicRange(-2, 2);
        for (int i = 1; i <= 3; ++i) {
            IConvolutionLayer* l =
                network->addConvolutionNd(*x, 64, Dims2(3, 3), Weights{DataType::kFLOAT, weights.data(), 64 * 64 * 9},
                                          Weights{DataType::kFLOAT, nullptr, 0});
            l->setPaddingNd(Dims2(1, 1));
            l->setName(("conv" + std::to_string(i)).c_str());
            x = l->getOutput(0);
            x->setName(("c" + std::to_string(i)).c_str());
            x->setDynamicRange(-range, range);
            if (i == 1) {
                x = relu(x);
                x->setName("r");
                x->setDynamicRange(-range, range);
            }
        }
        output(x, "y");
    }
    std::vector<float> weights = std::vector<float>(64 * 64 * 9);
};

std::vector<std::string> rangesOf(IRefitter const& r)
{
    std::vector<char const*> names(size_t(r.getTensorsWithDynamicRange(0, nullptr)));
    EXPECT_EQ(r.getTensorsWithDynamicRange(int32_t(names.size()), names.data()), int32_t(names.size()));
    return {names.begin(), names.end()};
}

// Which type wins is the clock's: where FP32 does, there are no ranges (test/passes/refit_ranges_test.cpp has no clock).
TEST(RefitRanges, AreABuildWithThem)
{
    Ranged first(4), next(8);
    auto const engine = first.engine(), want = next.engine();
    ASSERT_TRUE(engine && want) << first.errors() << next.errors();
    auto const refitter = refitterOf(*engine, first.logger), other = refitterOf(*want, next.logger);
    ASSERT_TRUE(refitter && other);
    std::vector<std::string> const names = rangesOf(*refitter);
    if (names.empty() || rangesOf(*other) != names)
        GTEST_SKIP() << "FP32 was faster in one of the builds";
    std::vector<float> const before = run(*engine);
    EXPECT_FLOAT_EQ(refitter->getDynamicRangeMax("x"), 2);
    EXPECT_FLOAT_EQ(refitter->getDynamicRangeMin("x"), -2);
    EXPECT_EQ(refitter->getMissing(0, nullptr, nullptr), 0);
    for (std::string const& name : names)
        if (name != "x") {
            EXPECT_FLOAT_EQ(refitter->getDynamicRangeMax(name.c_str()), 4);
            EXPECT_TRUE(refitter->setDynamicRange(name.c_str(), -8, 3)) << first.errors();
            EXPECT_EQ(refitter->getDynamicRangeMax(name.c_str()), 8);
            EXPECT_EQ(refitter->getDynamicRangeMin(name.c_str()), -8);
        }
    EXPECT_EQ(run(*engine), before) << "nothing happens before the refit";
    ASSERT_TRUE(refitter->refitCudaEngine()) << first.errors();
    for (std::string const& name : names)
        EXPECT_FLOAT_EQ(refitter->getDynamicRangeMax(name.c_str()), name == "x" ? 2 : 8);
    std::vector<float> const got = run(*engine), wanted = run(*want);
    EXPECT_NE(got, before);
    for (size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], wanted[i], 1e-4) << i;
    EXPECT_EQ(first.errors(), "");
}

TEST(RefitRanges, WhatIsNoRangeIsRefused)
{
    Ranged n(4);
    auto const engine = n.engine();
    ASSERT_TRUE(engine) << n.errors();
    auto const refitter = refitterOf(*engine, n.logger);
    n.takeErrors();
    for (char const* name : {"nobody", "y", "", static_cast<char const*>(nullptr)}) {
        EXPECT_FALSE(refitter->setDynamicRange(name, -1, 1));
        EXPECT_TRUE(n.oneError("getTensorsWithDynamicRange"));
        EXPECT_TRUE(std::isnan(refitter->getDynamicRangeMin(name)));
        EXPECT_TRUE(n.oneError("getDynamicRangeMin"));
        EXPECT_TRUE(std::isnan(refitter->getDynamicRangeMax(name)));
        EXPECT_TRUE(n.oneError("getDynamicRangeMax"));
    }
    EXPECT_EQ(refitter->getTensorsWithDynamicRange(-1, nullptr), 0);
    EXPECT_TRUE(n.oneError("negative"));
    std::vector<std::string> const names = rangesOf(*refitter);
    float const nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
    for (std::string const& name : names) {
        for (auto const& [min, max] : std::vector<std::pair<float, float>>{
                 {1, -1}, {0, 0}, {nan, 1}, {-1, nan}, {-infinity, 1}, {-1, infinity}, {-1e-40F, 1e-40F}}) {
            EXPECT_FALSE(refitter->setDynamicRange(name.c_str(), min, max)) << min << " " << max;
            EXPECT_TRUE(n.oneError(("'" + name + "'").c_str()));
        }
    }
    EXPECT_TRUE(refitter->refitCudaEngine());
}

// Ranges of INT8 inputs and outputs of the network are always there.
TEST(RefitRanges, OfInputsAndOutputsInInt8)
{
    auto define = [](Maker& m, float in, float out) {
        m.config->setFlag(BuilderFlag::kINT8);
        m.config->setFlag(BuilderFlag::kREFIT);
        ITensor* x = m.input("x", {2, 5}, DataType::kINT8);
        x->setDynamicRange(-in, in);
        ITensor* y = m.network->addUnary(*x, UnaryOperation::kABS)->getOutput(0);
        m.output(y, "y");
        y->setDynamicRange(-out, out);
        y->setType(DataType::kINT8);
    };
    auto runBytes = [](ICudaEngine& e) {
        std::vector<int8_t> in{0, 1, -1, 5, -5, 100, -100, 127, -128, 64}, out(10);
        void* bindings[] = {in.data(), out.data()};
        EXPECT_TRUE(contextOf(e)->executeV2(bindings));
        return out;
    };
    Maker first, next;
    define(first, 4, 4);
    define(next, 2, 8);
    auto const engine = first.engine(), want = next.engine();
    ASSERT_TRUE(engine && want) << first.errors() << next.errors();
    auto const refitter = refitterOf(*engine, first.logger);
    EXPECT_EQ(rangesOf(*refitter), (std::vector<std::string>{"x", "y"}));
    EXPECT_EQ(refitter->getAll(0, nullptr, nullptr), 0) << "ranges are no weights";
    ASSERT_TRUE(refitter->setDynamicRange("x", -2, 2));
    ASSERT_TRUE(refitter->setDynamicRange("y", -8, 8));
    EXPECT_NE(runBytes(*engine), runBytes(*want));
    ASSERT_TRUE(refitter->refitCudaEngine()) << first.errors();
    EXPECT_EQ(runBytes(*engine), runBytes(*want));
    EXPECT_EQ(refitter->getDynamicRangeMax("x"), 2);
    EXPECT_EQ(refitter->getDynamicRangeMin("y"), -8);
}

} // namespace
