// SPDX-License-Identifier: Apache-2.0
// Refit: an engine with new weights is the engine that would have been built with them, whatever the build has made of
// the old ones, and with no layer more than an engine that is not refittable.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <sstream>
#include <thread>

#include "engine/refits.h"

using namespace tw::test;

namespace {

using Key = std::pair<std::string, WeightsRole>;
using WeightsOf = std::map<Key, std::vector<float>>;

// A network whose weights are drawn by layer and role; those in `other` come from another seed.
class Net
{
public:
    explicit Net(int seed = 1, std::function<bool(Key const&)> other = nullptr) : seed_(seed), other_(std::move(other))
    {}
    Maker m;
    WeightsOf drawn;

    Weights weights(std::string const& layer, WeightsRole role, int64_t count, float from = -1, float to = 1)
    {
        Key const key{layer, role};
        bool const isOther = other_ && other_(key);
        std::mt19937 random(
            uint32_t(std::hash<std::string>()(layer) * 31 + size_t(role) * 7 + size_t(seed_) + (isOther ? 1000 : 0)));
        std::uniform_real_distribution<float> number(from, to);
        std::vector<float>& v = drawn[key];
        v.resize(size_t(count));
        for (float& x : v)
            x = number(random);
        return Weights{DataType::kFLOAT, v.data(), count};
    }
    ITensor* convolution(ITensor* x, std::string const& name, int maps, int window, bool biased, int groups = 1)
    {
        int64_t const inputs = x->getDimensions().d[1] / groups;
        Weights const none{DataType::kFLOAT, nullptr, 0};
        IConvolutionLayer* l =
            m.network->addConvolutionNd(*x, maps, Dims2(window, window),
                                        weights(name, WeightsRole::kKERNEL, int64_t(maps) * inputs * window * window),
                                        biased ? weights(name, WeightsRole::kBIAS, maps) : none);
        l->setPaddingNd(Dims2(window / 2, window / 2));
        l->setNbGroups(groups);
        l->setName(name.c_str());
        return l->getOutput(0);
    }
    ITensor* deconvolution(ITensor* x, std::string const& name, int maps, int groups)
    {
        int64_t const inputs = x->getDimensions().d[1];
        IDeconvolutionLayer* l = m.network->addDeconvolutionNd(
            *x, maps, Dims2(2, 2), weights(name, WeightsRole::kKERNEL, inputs * maps / groups * 4),
            weights(name, WeightsRole::kBIAS, maps));
        l->setStrideNd(Dims2(2, 2));
        l->setNbGroups(groups);
        l->setName(name.c_str());
        return l->getOutput(0);
    }
    ITensor* scale(ITensor* x, std::string const& name, ScaleMode mode)
    {
        int64_t const count = mode == ScaleMode::kUNIFORM ? 1 : x->getDimensions().d[1];
        IScaleLayer* l = m.network->addScale(*x, mode, weights(name, WeightsRole::kSHIFT, count),
                                             weights(name, WeightsRole::kSCALE, count, 0.5F, 2),
                                             Weights{DataType::kFLOAT, nullptr, 0});
        l->setName(name.c_str());
        return l->getOutput(0);
    }
    ITensor* constant(std::string const& name, std::vector<int32_t> const& shape, float from = -1, float to = 1)
    {
        IConstantLayer* l =
            m.network->addConstant(dims(shape), weights(name, WeightsRole::kCONSTANT, volume(shape), from, to));
        l->setName(name.c_str());
        return l->getOutput(0);
    }
    ITensor* with(ITensor* a, ITensor* b, ElementWiseOperation o)
    {
        return m.network->addElementWise(*a, *b, o)->getOutput(0);
    }
    ITensor* product(ITensor* a, ITensor* b, bool transposed = false)
    {
        return m.network
            ->addMatrixMultiply(*a, MatrixOperation::kNONE, *b,
                                transposed ? MatrixOperation::kTRANSPOSE : MatrixOperation::kNONE)
            ->getOutput(0);
    }
    ITensor* shuffled(ITensor* x, std::vector<int32_t> const& order, std::vector<int32_t> const& shape)
    {
        IShuffleLayer* l = m.network->addShuffle(*x);
        if (!order.empty()) {
            Permutation p{};
            std::copy(order.begin(), order.end(), p.order);
            l->setFirstTranspose(p);
        }
        if (!shape.empty())
            l->setReshapeDimensions(dims(shape));
        return l->getOutput(0);
    }
    std::unique_ptr<ICudaEngine> build(bool refittable = true)
    {
        if (refittable)
            m.config->setFlag(BuilderFlag::kREFIT);
        return m.engine();
    }

private:
    int seed_;
    std::function<bool(Key const&)> other_;
};

void expectNear(std::vector<float> const& got, std::vector<float> const& want, std::string const& what)
{
    ASSERT_EQ(got.size(), want.size());
    float largest = 1e-3F, far = 0;
    for (size_t i = 0; i < got.size(); ++i) {
        largest = std::max(largest, std::fabs(want[i]));
        far = std::max(far, std::isfinite(got[i]) ? std::fabs(got[i] - want[i]) : INFINITY);
    }
    EXPECT_LE(far, 2e-5F * largest) << what;
}

using Define = std::function<void(Net&)>;

std::map<std::string, Define> const& networks()
{
    static std::map<std::string, Define> const all = {
        {"convolution, scale, relu",
         [](Net& n) {
             ITensor* x = n.m.input("x", {2, 8, 9, 9});
             x = n.m.relu(n.scale(n.convolution(x, "conv1", 16, 3, false), "bn1", ScaleMode::kCHANNEL));
             x = n.scale(n.convolution(x, "conv2", 8, 1, true), "bn2", ScaleMode::kUNIFORM);
             n.m.output(n.m.relu(n.convolution(x, "conv3", 8, 3, true, 8)), "y");
         }},
        {"arithmetic behind convolutions",
         [](Net& n) {
             ITensor* x = n.m.input("x", {1, 6, 7, 5});
             x = n.with(n.convolution(x, "conv1", 6, 3, true), n.constant("c1", {1, 6, 1, 1}),
                        ElementWiseOperation::kPROD);
             x = n.with(n.convolution(x, "conv2", 6, 3, false), n.constant("c2", {1, 6, 1, 1}, 1, 2),
                        ElementWiseOperation::kDIV);
             x = n.with(n.constant("c3", {1, 6, 1, 1}), n.convolution(x, "conv3", 6, 1, true),
                        ElementWiseOperation::kSUB);
             x = n.with(n.convolution(x, "conv4", 6, 1, true, 2), n.constant("c4", {1, 6, 1, 1}),
                        ElementWiseOperation::kSUB);
             n.m.output(n.with(n.convolution(x, "conv5", 4, 1, false), n.constant("c5", {1, 1, 1, 1}, 2, 3),
                               ElementWiseOperation::kSUM),
                        "y");
         }},
        {"deconvolutions",
         [](Net& n) {
             ITensor* x = n.m.input("x", {1, 4, 5, 5});
             x = n.scale(n.deconvolution(x, "up1", 6, 1), "bn1", ScaleMode::kCHANNEL);
             n.m.output(n.scale(n.deconvolution(n.m.relu(x), "up2", 4, 2), "bn2", ScaleMode::kCHANNEL), "y");
         }},
        {"fully connected",
         [](Net& n) {
             ITensor* x = n.m.input("x", {3, 4, 2, 2});
             IFullyConnectedLayer* l = n.m.network->addFullyConnected(
                 *x, 10, n.weights("fc", WeightsRole::kKERNEL, 160), n.weights("fc", WeightsRole::kBIAS, 10));
             l->setName("fc");
             n.m.output(n.scale(l->getOutput(0), "bn", ScaleMode::kCHANNEL), "y");
         }},
        {"constants computed of constants",
         [](Net& n) {
             ITensor* x = n.m.input("x", {5, 12});
             ITensor* w = n.shuffled(n.constant("w", {2, 8, 6}), {1, 0, 2}, {8, 12});
             x = n.product(x, n.shuffled(w, {1, 0}, {}));
             ITensor* b = n.with(n.constant("b", {1, 8}), n.constant("c", {1, 8}), ElementWiseOperation::kPROD);
             x = n.m.add(x, n.m.network->addUnary(*b, UnaryOperation::kEXP)->getOutput(0));
             n.m.output(n.product(x, n.constant("v", {4, 8}), true), "y");
         }},
        {"gate",
         [](Net& n) {
             ITensor* x = n.m.input("x", {16, 32});
             ITensor* gate = n.product(x, n.constant("gate", {32, 48}));
             gate = n.with(gate, n.m.network->addActivation(*gate, ActivationType::kSIGMOID)->getOutput(0),
                           ElementWiseOperation::kPROD);
             x = n.with(gate, n.product(x, n.constant("up", {32, 48})), ElementWiseOperation::kPROD);
             n.m.output(n.product(x, n.constant("down", {48, 32})), "y");
         }},
        {"pointwise constants",
         [](Net& n) {
             ITensor* x = n.m.input("x", {2, 3, 8});
             x = n.m.relu(n.with(x, n.constant("a", {1, 3, 8}), ElementWiseOperation::kPROD));
             x = n.with(n.m.add(x, n.constant("b", {1, 1, 8})), n.constant("c", {1, 1, 1}, 2, 3),
                        ElementWiseOperation::kDIV);
             n.m.output(n.m.network->addActivation(*x, ActivationType::kTANH)->getOutput(0), "y");
         }},
    };
    return all;
}

std::vector<Key> allOf(IRefitter& refitter)
{
    int32_t const count = refitter.getAll(0, nullptr, nullptr);
    std::vector<char const*> layers(static_cast<size_t>(count));
    std::vector<WeightsRole> roles(static_cast<size_t>(count));
    EXPECT_EQ(refitter.getAll(count, layers.data(), roles.data()), count);
    std::vector<Key> all;
    for (size_t i = 0; i < layers.size(); ++i)
        all.emplace_back(layers[i], roles[i]);
    return all;
}

bool set(IRefitter& refitter, Key const& key, std::vector<float> const& v)
{
    return refitter.setWeights(key.first.c_str(), key.second, Weights{DataType::kFLOAT, v.data(), int64_t(v.size())});
}

// Without conversions of formats, of which the clock decides.
std::string layersOf(ICudaEngine& engine)
{
    std::unique_ptr<IEngineInspector> const inspector(engine.createEngineInspector());
    std::istringstream all(inspector->getEngineInformation(LayerInformationFormat::kONELINE));
    std::string layers;
    for (std::string line; std::getline(all, line);)
        if (!contains(line, "Reformatting"))
            layers += line + "\n";
    return layers;
}

class Refit : public testing::TestWithParam<std::string>
{};

// All weights, then parts of them, one refit after the other in one engine and one context.
TEST_P(Refit, IsABuildWithOtherWeights)
{
    Define const& define = networks().at(GetParam());
    Net first;
    define(first);
    auto const engine = first.build();
    ASSERT_TRUE(engine) << first.m.errors();
    EXPECT_TRUE(engine->isRefittable());
    auto const refitter = refitterOf(*engine, first.m.logger);
    ASSERT_TRUE(refitter) << first.m.errors();
    std::vector<Key> const keys = allOf(*refitter);
    EXPECT_EQ(keys.size(), first.drawn.size()) << "weights that cannot be refitted";
    auto const context = contextOf(*engine);
    std::vector<float> const before = run(*context);
    WeightsOf now = first.drawn;
    for (int round = 0; round < 4; ++round) {
        auto const isOther = [&](Key const& k) {
            return round == 0 ||
                   (round < 3 && (std::hash<std::string>()(k.first) + size_t(k.second)) % 2 == size_t(round - 1));
        };
        Net next(1, isOther);
        define(next);
        for (auto const& [key, v] : next.drawn)
            if (now.at(key) != v) {
                EXPECT_TRUE(set(*refitter, key, v)) << key.first << " " << int(key.second) << first.m.errors();
            }
        EXPECT_EQ(refitter->getMissing(0, nullptr, nullptr), 0);
        ASSERT_TRUE(refitter->refitCudaEngine()) << first.m.errors();
        now = next.drawn;
        auto const built = next.build();
        ASSERT_TRUE(built) << next.m.errors();
        std::vector<float> const want = run(*built);
        expectNear(run(*context), want, "round " + std::to_string(round) + ", the context that was there");
        expectNear(run(*engine), want, "round " + std::to_string(round) + ", a new context");
        if (round == 0) {
            float far = 0;
            for (size_t i = 0; i < want.size(); ++i)
                far = std::max(far, std::fabs(want[i] - before[i]));
            EXPECT_GT(far, 1e-2F) << "equal outputs prove nothing";
        }
    }
    EXPECT_EQ(first.m.errors(), "");
    // What is serialized now has the weights of now.
    std::unique_ptr<IHostMemory> const plan(engine->serialize());
    ASSERT_TRUE(plan);
    std::unique_ptr<IRuntime> const runtime(createInferRuntime(first.m.logger));
    std::unique_ptr<ICudaEngine> const again(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    ASSERT_TRUE(again) << first.m.errors();
    EXPECT_EQ(run(*again), run(*engine));
    EXPECT_EQ(allOf(*refitterOf(*again, first.m.logger)), keys);
}

TEST_P(Refit, KeepsTheLayers)
{
    std::string layers[2];
    for (bool refittable : {false, true}) {
        Net n;
        networks().at(GetParam())(n);
        auto const engine = n.build(refittable);
        ASSERT_TRUE(engine) << n.m.errors();
        layers[refittable] = layersOf(*engine);
    }
    EXPECT_EQ(layers[0], layers[1]);
}

std::vector<std::string> namesOfNetworks()
{
    std::vector<std::string> names;
    for (auto const& [name, define] : networks())
        names.push_back(name);
    return names;
}
INSTANTIATE_TEST_SUITE_P(Networks, Refit, testing::ValuesIn(namesOfNetworks()), [](auto const& info) {
    std::string name = info.param;
    for (char& c : name)
        c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return name;
});

// A chain of what networks are made of, by a seed.
void defineRandom(Net& n, unsigned seed, int32_t batch)
{
    std::mt19937 random(seed);
    auto draw = [&](int count) { return int(random() % unsigned(count)); };
    ITensor* x = n.m.input("x", {batch, 4 * (1 + draw(2)), 8, 8});
    if (batch < 0)
        n.m.profile({{"x",
                      {1, list(x->getDimensions())[1], 8, 8},
                      {2, list(x->getDimensions())[1], 8, 8},
                      {4, list(x->getDimensions())[1], 8, 8}}});
    int const length = 3 + draw(4);
    for (int i = 0; i < length; ++i) {
        std::string const name = "l" + std::to_string(i);
        int32_t const channels = x->getDimensions().d[1];
        switch (draw(9)) {
        case 0:
            x = n.convolution(x, name, 4 * (1 + draw(3)), 1 + 2 * draw(2), draw(2));
            break;
        case 1:
            x = n.scale(x, name, draw(2) ? ScaleMode::kCHANNEL : ScaleMode::kUNIFORM);
            break;
        case 2:
            x = n.with(x, n.constant(name, {1, draw(2) ? channels : 1, 1, 1}, 1, 2),
                       std::array{ElementWiseOperation::kSUM, ElementWiseOperation::kPROD, ElementWiseOperation::kSUB,
                                  ElementWiseOperation::kDIV}[size_t(draw(4))]);
            break;
        case 3:
            x = n.m.relu(x);
            break;
        case 4:
            x = n.m.add(x, n.convolution(x, name, channels, 3, draw(2)));
            break;
        case 5: {
            ITensor* const parts[] = {n.convolution(x, name + "a", 4, 1, true),
                                      n.convolution(x, name + "b", 8, 1, false)};
            x = n.m.network->addConcatenation(parts, 2)->getOutput(0);
            static_cast<IConcatenationLayer*>(n.m.network->getLayer(n.m.network->getNbLayers() - 1))->setAxis(1);
            break;
        }
        case 6:
            x = n.with(n.constant(name, {1, channels, 1, 1}), n.convolution(x, name + "c", channels, 1, true),
                       ElementWiseOperation::kSUB);
            break;
        case 7:
            x = n.convolution(x, name, channels, 3, true, channels);
            break;
        default: {
            ITensor* w = n.shuffled(n.constant(name, {8, 8}), {1, 0}, {1, 1, 8, 8});
            x = n.product(x, w, draw(2));
        }
        }
    }
    n.m.output(x, "y");
}

std::vector<float> runOf(ICudaEngine& engine, int32_t batch)
{
    auto const context = contextOf(engine);
    if (batch < 0) {
        Dims d = engine.getTensorShape("x");
        d.d[0] = 3;
        EXPECT_TRUE(context->setInputShape("x", d));
    }
    return run(*context);
}

class RefitRandom : public testing::TestWithParam<unsigned>
{};

TEST_P(RefitRandom, IsABuildWithOtherWeights)
{
    unsigned const seed = GetParam();
    int32_t const batch = seed % 3 == 0 ? -1 : int32_t(seed % 3);
    Net first, next(1, [&](Key const&k) { return (std::hash<std::string>()(k.first) + seed) % 3 != 0; });
    defineRandom(first, seed, batch);
    defineRandom(next, seed, batch);
    auto const engine = first.build(), want = next.build();
    ASSERT_TRUE(engine && want) << first.m.errors() << next.m.errors();
    auto const refitter = refitterOf(*engine, first.m.logger);
    ASSERT_TRUE(refitter);
    std::vector<Key> const keys = allOf(*refitter);
    for (auto const& [key, v] : next.drawn) {
        bool const isThere = std::find(keys.begin(), keys.end(), key) != keys.end();
        EXPECT_TRUE(isThere) << key.first << " of seed " << seed;
        if (isThere && v != first.drawn.at(key)) {
            EXPECT_TRUE(set(*refitter, key, v));
        }
    }
    ASSERT_TRUE(refitter->refitCudaEngine()) << first.m.errors();
    expectNear(runOf(*engine, batch), runOf(*want, batch), "seed " + std::to_string(seed));
}
INSTANTIATE_TEST_SUITE_P(Seeds, RefitRandom, testing::Range(0U, 24U));

struct RefitRules : testing::Test
{
    Net n;
    std::unique_ptr<ICudaEngine> engine;
    std::unique_ptr<IRefitter> refitter;
    std::vector<float> kernel = std::vector<float>(8 * 4 * 9, 0.5F), bias = std::vector<float>(8, 0.25F);
    void SetUp() override
    {
        ITensor* x = n.m.input("x", {1, 4, 6, 6});
        x = n.convolution(x, "conv", 8, 3, true);
        EXPECT_TRUE(n.m.network->setWeightsName(
            Weights{DataType::kFLOAT, n.drawn.at({"conv", WeightsRole::kKERNEL}).data(), 8 * 4 * 9}, "conv.weight"));
        n.m.output(n.m.relu(x), "y");
        engine = n.build();
        ASSERT_TRUE(engine) << n.m.errors();
        refitter = refitterOf(*engine, n.m.logger);
        ASSERT_TRUE(refitter) << n.m.errors();
    }
    Weights of(std::vector<float> const& v) { return Weights{DataType::kFLOAT, v.data(), int64_t(v.size())}; }
};

TEST_F(RefitRules, WhatDoesNotFitIsRefused)
{
    EXPECT_FALSE(refitter->setWeights("nobody", WeightsRole::kKERNEL, of(kernel)));
    EXPECT_TRUE(n.m.oneError("'nobody'"));
    EXPECT_FALSE(refitter->setWeights(nullptr, WeightsRole::kKERNEL, of(kernel)));
    EXPECT_TRUE(n.m.oneError("null"));
    EXPECT_FALSE(refitter->setWeights("conv", WeightsRole::kSCALE, of(kernel)));
    EXPECT_TRUE(n.m.oneError("scale"));
    EXPECT_FALSE(refitter->setWeights("conv", static_cast<WeightsRole>(77), of(kernel)));
    EXPECT_TRUE(n.m.oneError("'conv'"));
    EXPECT_FALSE(refitter->setWeights("conv", WeightsRole::kKERNEL, of(bias)));
    EXPECT_TRUE(n.m.oneError("288 elements, 8 are given"));
    EXPECT_FALSE(refitter->setWeights("conv", WeightsRole::kBIAS, Weights{DataType::kINT32, bias.data(), 8}));
    EXPECT_TRUE(n.m.oneError("of type"));
    EXPECT_FALSE(refitter->setWeights("conv", WeightsRole::kBIAS, Weights{static_cast<DataType>(9), bias.data(), 8}));
    EXPECT_TRUE(n.m.oneError("of type"));
    EXPECT_FALSE(refitter->setWeights("conv", WeightsRole::kBIAS, Weights{DataType::kFLOAT, nullptr, 8}));
    EXPECT_TRUE(n.m.oneError("null pointer"));
    for (char const* name : {"nobody", "", static_cast<char const*>(nullptr)}) {
        EXPECT_FALSE(refitter->setNamedWeights(name, of(kernel)));
        EXPECT_TRUE(n.m.oneError("setNamedWeights"));
    }
    EXPECT_FALSE(refitter->setNamedWeights("conv.weight", of(bias)));
    EXPECT_TRUE(n.m.oneError("288"));
    std::vector<float> const before = run(*engine);
    EXPECT_TRUE(refitter->refitCudaEngine()) << "nothing is set";
    EXPECT_EQ(run(*engine), before);
}

TEST_F(RefitRules, ListsAndNames)
{
    EXPECT_EQ(allOf(*refitter), (std::vector<Key>{{"conv", WeightsRole::kKERNEL}, {"conv", WeightsRole::kBIAS}}));
    char const* one = nullptr;
    EXPECT_EQ(refitter->getAll(1, &one, nullptr), 2);
    EXPECT_STREQ(one, "conv");
    ASSERT_EQ(refitter->getAllWeights(0, nullptr), 1);
    EXPECT_EQ(refitter->getAllWeights(1, &one), 1);
    EXPECT_STREQ(one, "conv.weight");
    refitter.reset();
    EXPECT_STREQ(one, "conv.weight") << "texts are the engine's";
    refitter = refitterOf(*engine, n.m.logger);
    EXPECT_TRUE(refitter->setNamedWeights("conv.weight", of(kernel)));
    EXPECT_TRUE(refitter->setWeights("conv", WeightsRole::kBIAS, of(bias)));
    EXPECT_EQ(refitter->getMissing(0, nullptr, nullptr), 0);
    EXPECT_EQ(refitter->getMissingWeights(0, nullptr), 0);
    std::fill(bias.begin(), bias.end(), 100.0F); // read by the refit
    ASSERT_TRUE(refitter->refitCudaEngine());
    std::vector<float> const y = run(*engine);
    EXPECT_GT(*std::min_element(y.begin(), y.end()), 50.0F);
    EXPECT_EQ(refitter->getAll(-1, nullptr, nullptr), 0);
    EXPECT_TRUE(n.m.oneError("negative"));
}

TEST_F(RefitRules, Settings)
{
    EXPECT_EQ(refitter->getLogger(), &n.m.logger);
    EXPECT_EQ(refitter->getErrorRecorder(), nullptr);
    EXPECT_EQ(refitter->getMaxThreads(), 1);
    EXPECT_TRUE(refitter->setMaxThreads(3));
    EXPECT_EQ(refitter->getMaxThreads(), 3);
    EXPECT_FALSE(refitter->setMaxThreads(0));
    EXPECT_TRUE(n.m.oneError("at least 1"));
    EXPECT_EQ(refitter->getTensorsWithDynamicRange(0, nullptr), 0);
    EXPECT_FALSE(refitter->setDynamicRange("x", -1, 1));
    EXPECT_TRUE(n.m.oneError("'x'"));
}

TEST(RefitBuild, OtherEnginesHaveNone)
{
    Net n;
    n.m.output(n.convolution(n.m.input("x", {1, 4, 6, 6}), "conv", 8, 3, true), "y");
    auto const engine = n.build(false);
    ASSERT_TRUE(engine);
    EXPECT_FALSE(engine->isRefittable());
    EXPECT_EQ(createInferRefitter(*engine, n.m.logger), nullptr);
    EXPECT_TRUE(n.m.oneError("kREFIT"));
}

TEST(RefitBuild, OneProfileAtMost)
{
    Net n;
    n.m.output(n.convolution(n.m.input("x", {-1, 4, 6, 6}), "conv", 8, 3, true), "y");
    n.m.profile({{"x", {1, 4, 6, 6}, {2, 4, 6, 6}, {4, 4, 6, 6}}});
    n.m.profile({{"x", {1, 4, 6, 6}, {3, 4, 6, 6}, {4, 4, 6, 6}}});
    EXPECT_EQ(n.build(), nullptr);
    EXPECT_TRUE(n.m.oneError("one optimization profile at most"));
}

// Both layers have one memory at first; that does not make them one.
TEST(RefitBuild, OneMemoryForTwoLayers)
{
    auto const define = [](Net& n, bool isShared) {
        ITensor* x = n.m.input("x", {1, 4, 6, 6});
        x = n.convolution(n.m.relu(n.convolution(x, "conv1", 4, 3, false)), "conv2", 4, 3, false);
        if (isShared) {
            auto* last = static_cast<IConvolutionLayer*>(n.m.network->getLayer(2));
            last->setKernelWeights(static_cast<IConvolutionLayer*>(n.m.network->getLayer(0))->getKernelWeights());
        }
        n.m.output(x, "y");
    };
    Net shared, apart;
    define(shared, true);
    define(apart, false);
    auto const engine = shared.build(), want = apart.build();
    ASSERT_TRUE(engine && want) << shared.m.errors() << apart.m.errors();
    auto const refitter = refitterOf(*engine, shared.m.logger);
    Key const key{"conv2", WeightsRole::kKERNEL};
    ASSERT_TRUE(set(*refitter, key, apart.drawn.at(key))) << shared.m.errors();
    ASSERT_TRUE(refitter->refitCudaEngine()) << shared.m.errors();
    expectNear(run(*engine), run(*want), "only the second layer has new weights");
}

// Two layers read weights of one name: they get new ones together.
TEST(RefitBuild, OneNameForTwoLayers)
{
    auto const define = [](Net& n) {
        ITensor* x = n.m.input("x", {1, 4, 6, 6});
        x = n.convolution(n.m.relu(n.convolution(x, "conv1", 4, 3, false)), "conv2", 4, 3, false);
        Weights const shared = static_cast<IConvolutionLayer*>(n.m.network->getLayer(0))->getKernelWeights();
        static_cast<IConvolutionLayer*>(n.m.network->getLayer(2))->setKernelWeights(shared);
        EXPECT_TRUE(n.m.network->setWeightsName(shared, "shared"));
        n.m.output(x, "y");
    };
    Net one, other(2);
    define(one);
    define(other);
    auto const engine = one.build(), want = other.build();
    ASSERT_TRUE(engine && want) << one.m.errors() << other.m.errors();
    auto const refitter = refitterOf(*engine, one.m.logger);
    EXPECT_EQ(refitter->getAllWeights(0, nullptr), 1);
    std::vector<float> const& v = other.drawn.at({"conv1", WeightsRole::kKERNEL});
    ASSERT_TRUE(refitter->setNamedWeights("shared", Weights{DataType::kFLOAT, v.data(), int64_t(v.size())}));
    ASSERT_TRUE(refitter->refitCudaEngine()) << one.m.errors();
    expectNear(run(*engine), run(*want), "both layers");
}

// A power of two has become a product, so nobody can make another power of it; the engine says so instead of going on. A
// factor of one is a factor still.
TEST(RefitBuild, WhatTheBuildHasUsedIsFixed)
{
    Net n;
    ITensor* x = n.m.input("x", {1, 4, 6, 6});
    x = n.with(x, n.constant("power", {1, 1, 1, 1}, 2, 2), ElementWiseOperation::kPOW);
    x = n.with(x, n.constant("one", {1, 1, 1, 1}, 1, 1), ElementWiseOperation::kPROD);
    n.m.output(n.convolution(x, "conv", 8, 3, true), "y");
    auto const engine = n.build();
    ASSERT_TRUE(engine);
    auto const refitter = refitterOf(*engine, n.m.logger);
    EXPECT_EQ(allOf(*refitter).size(), 3u);
    float const three = 3;
    EXPECT_TRUE(refitter->setWeights("one", WeightsRole::kCONSTANT, Weights{DataType::kFLOAT, &three, 1}));
    EXPECT_FALSE(refitter->setWeights("power", WeightsRole::kCONSTANT, Weights{DataType::kFLOAT, &three, 1}));
    EXPECT_TRUE(n.m.oneError("'power'"));
}

// Refits flip all weights there and back while contexts run: each run has the weights of one refit.
TEST(RefitBesideRuns, OldOrNewButNeverBoth)
{
    auto const define = [](Net& n) {
        ITensor* x = n.m.input("x", {1, 8, 10, 10});
        for (int i = 0; i < 4; ++i)
            x = n.m.relu(n.scale(n.convolution(x, "conv" + std::to_string(i), 8, 3, true), "bn" + std::to_string(i),
                                 ScaleMode::kCHANNEL));
        n.m.output(x, "y");
    };
    Net one, two(1, [](Key const&) { return true; });
    define(one);
    define(two);
    auto const engine = one.build();
    ASSERT_TRUE(engine) << one.m.errors();
    auto const refit = [&](Net const& from) {
        auto const refitter = refitterOf(*engine, one.m.logger);
        for (auto const& [key, v] : from.drawn)
            EXPECT_TRUE(set(*refitter, key, v));
        EXPECT_TRUE(refitter->refitCudaEngine());
    };
    refit(two);
    std::vector<float> const b = run(*engine);
    refit(one);
    std::vector<float> const a = run(*engine);
    ASSERT_NE(a, b);
    std::atomic<bool> stop = false;
    std::atomic<int> seen[2] = {0, 0}, mixed = 0;
    std::vector<std::thread> runners;
    std::deque<Context> contexts;
    for (int i = 0; i < 3; ++i)
        contexts.push_back(contextOf(*engine));
    for (Context& c : contexts)
        runners.emplace_back([&] {
            while (!stop) {
                std::vector<float> const y = run(*c);
                ++(y == a ? seen[0] : y == b ? seen[1] : mixed);
            }
        });
    for (int i = 0; i < 200 && (i < 20 || !seen[0] || !seen[1]); ++i)
        refit(i % 2 ? one : two);
    stop = true;
    for (std::thread& t : runners)
        t.join();
    EXPECT_EQ(mixed, 0);
    EXPECT_GT(seen[0], 0);
    EXPECT_GT(seen[1], 0);
}

} // namespace
