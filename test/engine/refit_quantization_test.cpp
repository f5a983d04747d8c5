// SPDX-License-Identifier: Apache-2.0
// Refits of scales: what a build has decided by them holds, or the refit is refused and nothing has changed.
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <random>

#include "engine/refits.h"

using namespace tw::test;

namespace {

using Scales = std::map<std::string, float>;

// Q/DQ networks whose scales are constant layers, one for each Q and each DQ, by name.
struct ScaledNet
{
    explicit ScaledNet(Scales s = {}) : scales(std::move(s)) { m.config->setFlag(BuilderFlag::kINT8); }
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

bool set(IRefitter& refitter, std::string const& scale, float value)
{
    // Read by the refit, so it outlives this call.
    static std::deque<float> kept;
    kept.push_back(value);
    return refitter.setWeights((scale + ".scale").c_str(), WeightsRole::kCONSTANT,
                               Weights{DataType::kFLOAT, &kept.back(), 1});
}

// Each with what two scales a rewrite stands on: empty where there is none.
struct ScaledCase
{
    std::function<void(ScaledNet&)> define;
    std::string one, other;
};

std::map<std::string, ScaledCase> const& cases()
{
    static std::map<std::string, ScaledCase> const all = {
        {"convolutions",
         {[](ScaledNet& n) {
              ITensor* x = n.convolution(n.both(n.m.input("x", {2, 4, 8, 8}), "a"), "conv1", 8);
              n.m.output(n.convolution(n.both(n.m.relu(x), "b"), "conv2", 4), "y");
          },
          "", ""}},
        // The DQ goes down through the pool and meets the Q.
        {"pool",
         {[](ScaledNet& n) {
              ITensor* x = n.pool(n.both(n.m.input("x", {2, 4, 8, 8}), "a"), PoolingType::kMAX, "pool");
              n.m.output(n.convolution(n.both(x, "b"), "conv", 4), "y");
          },
          "a.dq", "b.q"}},
        {"average",
         {[](ScaledNet& n) {
              ITensor* x = n.pool(n.both(n.m.input("x", {2, 4, 8, 8}), "a"), PoolingType::kAVERAGE, "pool");
              n.m.output(n.convolution(n.both(x, "b"), "conv", 4), "y");
          },
          "a.dq", "b.q"}},
        {"concatenation",
         {[](ScaledNet& n) {
              ITensor* x = n.m.input("x", {2, 4, 8, 8});
              ITensor* a = n.both(n.convolution(n.both(x, "x"), "conv1", 4), "a");
              ITensor* b = n.both(n.convolution(n.both(x, "z"), "conv23", 8), "b");
              n.m.output(n.convolution(n.joined(a, b), "conv456", 4), "y");
          },
          "a.dq", "b.dq"}},
        // Two readers that quantize alike.
        {"two quantizers",
         {[](ScaledNet& n) {
              ITensor* x = n.m.relu(n.convolution(n.both(n.m.input("x", {2, 4, 8, 8}), "x"), "conv1", 8));
              n.m.output(n.convolution(n.both(x, "a"), "conv23", 4), "y");
              n.m.output(n.convolution(n.both(x, "b"), "conv456", 8), "z");
          },
          "a.q", "b.q"}},
        {"residual",
         {[](ScaledNet& n) {
              ITensor* x = n.both(n.m.input("x", {2, 4, 8, 8}), "x");
              ITensor* y = n.both(n.convolution(x, "conv1", 4), "a");
              n.m.output(n.convolution(n.both(n.m.relu(n.m.add(y, x)), "b"), "conv23", 4), "y");
          },
          "a.q", "a.dq"}},
        {"arithmetic",
         {[](ScaledNet& n) {
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
    ScaledCase const& c = cases().at(GetParam());
    ScaledNet first;
    c.define(first);
    auto const engine = first.build();
    ASSERT_TRUE(engine) << first.m.errors();
    std::vector<float> const before = run(*engine);
    Scales other = first.scales;
    for (auto& [name, s] : other)
        s = name.find(".w.") != std::string::npos ? 0.03F : 0.04F;
    ScaledNet next(other);
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
    ScaledCase const& c = cases().at(GetParam());
    if (c.one.empty())
        return; // nothing was decided by scales: the other test is all there is
    ScaledNet first;
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
    ScaledCase const& c = cases().at(GetParam());
    ScaledNet first;
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

// A chain of what Q/DQ networks are made of, by a seed.
void defineRandom(ScaledNet& n, unsigned seed)
{
    std::mt19937 random(seed);
    auto draw = [&](int count) { return int(random() % unsigned(count)); };
    ITensor* x = n.both(n.m.input("x", {1 + draw(2), 4, 12, 12}), "in");
    int const length = 3 + draw(4);
    for (int i = 0; i < length; ++i) {
        std::string const name = "l" + std::to_string(i);
        int32_t const channels = x->getDimensions().d[1];
        switch (draw(7)) {
        case 0:
            x = n.m.relu(n.convolution(n.both(x, name), name + "c", 4 * (1 + draw(2))));
            break;
        case 1:
            if (x->getDimensions().d[2] > 3)
                x = n.pool(n.both(x, name), draw(2) ? PoolingType::kMAX : PoolingType::kAVERAGE, name + "p");
            break;
        case 2:
            x = n.joined(n.both(x, name + "a"), n.both(n.convolution(n.both(x, name), name + "c", 4), name + "b"));
            break;
        case 3:
            x = n.m.add(n.both(n.convolution(n.both(x, name), name + "c", channels), name + "a"),
                        n.both(x, name + "b"));
            break;
        case 4: {
            IShuffleLayer* l = n.m.network->addShuffle(*n.both(x, name));
            l->setFirstTranspose(Permutation{{0, 1, 3, 2}});
            x = n.both(l->getOutput(0), name + "t");
            break;
        }
        case 5:
            n.m.output(n.convolution(n.both(x, name + "y"), name + "yc", 2), (name + "out").c_str());
            break;
        default:
            x = n.convolution(n.both(x, name), name + "c", 4 * (1 + draw(2)));
        }
    }
    n.m.output(n.convolution(n.both(x, "end"), "endc", 3), "y");
}

// The two names of a refusal.
std::vector<std::string> namesIn(std::string const& text)
{
    std::vector<std::string> names;
    for (size_t at = text.find("ize '"); at != std::string::npos && names.size() < 2; at = text.find("ize '", at + 1))
        names.push_back(text.substr(at + 5, text.find_first_of("' ", at + 5) - at - 5)); // the first of joined ones
    return names;
}

class RefitScalesRandom : public testing::TestWithParam<unsigned>
{};

// Any scales: they are refused, with two that must be equal, or the engine is a build with them.
TEST_P(RefitScalesRandom, AreABuildWithThemOrRefused)
{
    unsigned const seed = GetParam();
    ScaledNet first;
    defineRandom(first, seed);
    auto const engine = first.build();
    ASSERT_TRUE(engine) << first.m.errors();
    std::vector<float> const before = run(*engine);
    Scales other = first.scales;
    std::mt19937 random(seed + 100);
    for (auto& [name, s] : other)
        s = 0.02F + float(random() % 64) / 1024;
    auto const refitter = refitterOf(*engine, first.m.logger);
    bool done = false;
    first.m.takeErrors();
    for (size_t round = 0; round <= other.size() && !done; ++round) {
        for (auto const& [name, s] : other)
            ASSERT_TRUE(set(*refitter, name, s)) << name << " of seed " << seed << first.m.errors();
        done = refitter->refitCudaEngine();
        std::string const errors = first.m.takeErrors();
        if (done)
            break;
        EXPECT_EQ(run(*engine), before);
        std::vector<std::string> const names = namesIn(errors);
        ASSERT_EQ(names.size(), 2U) << errors;
        ASSERT_TRUE(other.contains(names[0]) && other.contains(names[1])) << errors;
        ASSERT_NE(other[names[0]], other[names[1]]) << errors;
        float const was = other[names[1]];
        for (auto& [name, s] : other) // what has been made equal stays so
            s = s == was ? other[names[0]] : s;
    }
    ASSERT_TRUE(done) << "seed " << seed;
    ScaledNet next(other);
    defineRandom(next, seed);
    auto const want = next.build(false);
    ASSERT_TRUE(want) << next.m.errors();
    std::vector<float> const got = run(*engine), wanted = run(*want);
    ASSERT_EQ(got.size(), wanted.size());
    EXPECT_NE(got, before);
    size_t far = 0; // a sum in floats that is half of a step may go either way
    for (size_t i = 0; i < got.size(); ++i)
        far += std::fabs(got[i] - wanted[i]) > 1e-4F * std::max(1.F, std::fabs(wanted[i]));
    EXPECT_LE(far, got.size() / 50) << "seed " << seed;
}
INSTANTIATE_TEST_SUITE_P(Seeds, RefitScalesRandom, testing::Range(0U, 16U));

// A plan keeps the conditions.
TEST(RefitScalesOfPlans, AreHeldToTheSameRules)
{
    ScaledCase const& c = cases().at("pool");
    ScaledNet n;
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

} // namespace
