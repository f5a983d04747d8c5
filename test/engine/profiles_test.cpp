// SPDX-License-Identifier: Apache-2.0
// Optimization profiles at their ends: dimensions that they fix, and shapes that no layer takes.
#include <algorithm>
#include <utility>

#include "engine/engines.h"

using namespace tw::test;

namespace {

// y = a + a over [-1,-1,4] in the three ways that runs are made.
void expectRuns(Maker& m, IExecutionContext& c, ICudaEngine& engine, char const* in, char const* out, size_t count)
{
    std::vector<float> a = ramp(count), y(count + 1, -7);
    std::vector<void*> bindings(size_t(engine.getNbBindings()), nullptr);
    size_t const base = size_t(c.getOptimizationProfile()) * size_t(engine.getNbIOTensors());
    bindings[base] = a.data();
    bindings[base + 1] = y.data();
    auto check = [&](bool done, char const* how) {
        ASSERT_TRUE(done) << how << m.errors();
        for (size_t i = 0; i < count; ++i)
            ASSERT_EQ(y[i], 2 * a[i]) << how;
        ASSERT_EQ(y.back(), -7);
        y.assign(count + 1, -7);
    };
    check(c.executeV2(bindings.data()), "executeV2");
    check(c.enqueueV2(bindings.data(), nullptr, nullptr), "enqueueV2");
    c.setTensorAddress(in, a.data());
    c.setTensorAddress(out, y.data());
    check(c.enqueueV3(nullptr), "enqueueV3");
}

TEST(FixedProfiles, OneShapeIsAStaticEngine)
{
    Maker m;
    ITensor* a = m.input("a", {-1, -1, 4});
    m.output(m.add(a, a), "y");
    m.profile({{"a", {2, 3, 4}, {2, 3, 4}, {2, 3, 4}}});
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    EXPECT_EQ(list(engine->getBindingDimensions(0)), (Shape{2, 3, 4}));
    EXPECT_EQ(list(engine->getBindingDimensions(1)), (Shape{2, 3, 4}));
    EXPECT_EQ(list(engine->getTensorShape("a")), (Shape{2, 3, 4}));
    EXPECT_EQ(list(engine->getTensorShape("y")), (Shape{2, 3, 4}));
    EXPECT_EQ(list(engine->getProfileShape("a", 0, OptProfileSelector::kMIN)), (Shape{2, 3, 4}));
    Context c = contextOf(*engine);
    EXPECT_TRUE(c->allInputDimensionsSpecified());
    EXPECT_EQ(c->inferShapes(0, nullptr), 0);
    EXPECT_EQ(list(c->getTensorShape("y")), (Shape{2, 3, 4}));
    expectRuns(m, *c, *engine, "a", "y", 24);
    // Setting it is no error, setting another is.
    EXPECT_TRUE(c->setInputShape("a", Dims3(2, 3, 4)));
    EXPECT_TRUE(c->setBindingDimensions(0, Dims3(2, 3, 4)));
    EXPECT_EQ(m.takeErrors(), "");
    EXPECT_FALSE(c->setInputShape("a", Dims3(1, 3, 4)));
    EXPECT_TRUE(m.oneError("dimension 0 is 1"));
}

TEST(FixedProfiles, SomeDimensions)
{
    Maker m;
    ITensor* a = m.input("a", {-1, -1, 4});
    m.output(m.add(a, a), "y");
    IShuffleLayer* flat = m.network->addShuffle(*a);
    flat->setReshapeDimensions(Dims2(0, -1));
    m.output(flat->getOutput(0), "z"); // [a0, 4 * a1]
    m.profile({{"a", {1, 3, 4}, {2, 3, 4}, {4, 3, 4}}});
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    EXPECT_EQ(list(engine->getTensorShape("a")), (Shape{-1, 3, 4}));
    EXPECT_EQ(list(engine->getTensorShape("y")), (Shape{-1, 3, 4}));
    EXPECT_EQ(list(engine->getTensorShape("z")), (Shape{-1, 12}));
    Context c = contextOf(*engine);
    EXPECT_FALSE(c->allInputDimensionsSpecified());
    EXPECT_EQ(list(c->getBindingDimensions(0)), (Shape{-1, 3, 4}));
    EXPECT_EQ(list(c->getBindingDimensions(2)), (Shape{-1, 12}));
    EXPECT_FALSE(c->enqueueV3(nullptr));
    m.takeErrors();
    EXPECT_TRUE(c->setInputShape("a", Dims3(4, 3, 4)));
    EXPECT_EQ(list(c->getBindingDimensions(2)), (Shape{4, 12}));
    EXPECT_EQ(m.errors(), "");
}

TEST(FixedProfiles, EachProfileItsOwn)
{
    Maker m;
    ITensor* a = m.input("a", {-1, -1, 4});
    m.output(m.add(a, a), "y");
    m.profile({{"a", {1, 3, 4}, {1, 3, 4}, {1, 3, 4}}});
    m.profile({{"a", {8, 3, 4}, {8, 3, 4}, {8, 3, 4}}});
    m.profile({{"a", {1, 3, 4}, {2, 3, 4}, {9, 3, 4}}});
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    int const batches[] = {1, 8, -1};
    for (int p = 0; p < 3; ++p) {
        EXPECT_EQ(list(engine->getBindingDimensions(2 * p)), (Shape{batches[p], 3, 4}));
        EXPECT_EQ(list(engine->getBindingDimensions(2 * p + 1)), (Shape{batches[p], 3, 4}));
    }
    EXPECT_EQ(list(engine->getTensorShape("a")), (Shape{-1, 3, 4}));
    EXPECT_EQ(list(engine->getTensorShape("y")), (Shape{-1, 3, 4}));
    Context c = contextOf(*engine);
    EXPECT_TRUE(c->allInputDimensionsSpecified());
    expectRuns(m, *c, *engine, "a", "y", 12);
    ASSERT_TRUE(c->setOptimizationProfileAsync(1, nullptr));
    EXPECT_TRUE(c->allInputDimensionsSpecified());
    EXPECT_EQ(list(c->getTensorShape("y")), (Shape{8, 3, 4}));
    expectRuns(m, *c, *engine, "a", "y", 96);
    ASSERT_TRUE(c->setOptimizationProfileAsync(2, nullptr));
    EXPECT_FALSE(c->allInputDimensionsSpecified());
    EXPECT_EQ(list(c->getTensorShape("a")), (Shape{-1, 3, 4}));
    ASSERT_TRUE(c->setInputShape("a", Dims3(9, 3, 4)));
    expectRuns(m, *c, *engine, "a", "y", 108);
    EXPECT_EQ(m.errors(), "");
}

// An equal name is an equal size: fixed in one input, it is in the other.
TEST(FixedProfiles, ThroughEqualNames)
{
    Maker m;
    ITensor *a = m.input("a", {-1, 4}), *b = m.input("b", {-1, 4});
    a->setDimensionName(0, "n");
    b->setDimensionName(0, "n");
    m.output(m.add(a, b), "y");
    m.profile({{"a", {3, 4}, {3, 4}, {3, 4}}, {"b", {1, 4}, {3, 4}, {9, 4}}});
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    EXPECT_EQ(list(engine->getTensorShape("b")), (Shape{3, 4}));
    EXPECT_EQ(list(engine->getTensorShape("y")), (Shape{3, 4}));
}

// p = relu a, q = relu b, over [N,4] both, N by name; -1 or the size that `a` has in the network.
struct EqualNames : testing::Test
{
    Maker m;
    std::unique_ptr<ICudaEngine> build(int size, std::vector<Maker::Range> const& ranges)
    {
        ITensor *a = m.input("a", {size, 4}), *b = m.input("b", {-1, 4});
        a->setDimensionName(0, "N");
        b->setDimensionName(0, "N");
        m.output(m.relu(a), "p");
        m.output(m.relu(b), "q");
        m.profile(ranges);
        return m.engine();
    }
    int warned(char const* text) const
    {
        return int(std::count_if(m.logger.lines.begin(), m.logger.lines.end(), [&](auto const& l) {
            return l.severity == ILogger::Severity::kWARNING && contains(l.text, text);
        }));
    }
};

TEST_F(EqualNames, StaticInOneInputIsStaticInTheOther)
{
    auto const engine = build(3, {{"b", {1, 4}, {3, 4}, {9, 4}}});
    ASSERT_TRUE(engine) << m.errors();
    EXPECT_EQ(warned("kMIN values for profile 0 violate shape constraints"), 1);
    EXPECT_EQ(warned("kMAX values for profile 0 violate shape constraints"), 1);
    EXPECT_EQ(list(engine->getTensorShape("b")), (Shape{3, 4}));
    EXPECT_EQ(list(engine->getTensorShape("q")), (Shape{3, 4}));
    Context c = contextOf(*engine);
    m.takeErrors();
    EXPECT_FALSE(c->setInputShape("b", Dims2(4, 4)));
    EXPECT_TRUE(m.oneError("dimension 0 is 4, the engine has 3"));
}

TEST_F(EqualNames, OptimumOfAnotherSizeThanTheStaticOne)
{
    EXPECT_FALSE(build(3, {{"b", {5, 4}, {6, 4}, {7, 4}}}));
    EXPECT_TRUE(m.oneError("kOPT values for profile 0 violate shape constraints: dimension 0 is 6 in input 'b'"));
}

TEST_F(EqualNames, OptimaThatDiffer)
{
    EXPECT_FALSE(build(-1, {{"a", {2, 4}, {3, 4}, {7, 4}}, {"b", {2, 4}, {6, 4}, {7, 4}}}));
    EXPECT_TRUE(m.oneError("kOPT values for profile 0 violate shape constraints: dimension 'N' is 6 in input 'b' and 3 "
                           "in 'a'"));
}

TEST_F(EqualNames, EndsThatDiffer)
{
    auto const engine = build(-1, {{"a", {1, 4}, {3, 4}, {7, 4}}, {"b", {2, 4}, {3, 4}, {5, 4}}});
    ASSERT_TRUE(engine) << m.errors();
    EXPECT_EQ(warned("kMIN values for profile 0 violate shape constraints: dimension 'N' is 2 in input 'b'"), 1);
    EXPECT_EQ(warned("kMAX values for profile 0 violate shape constraints: dimension 'N' is 5 in input 'b'"), 1);
    Context c = contextOf(*engine);
    std::vector<float> a = ramp(28), b = ramp(28, 5), p(28), q(28);
    float* const memory[] = {a.data(), b.data(), p.data(), q.data()};
    char const* const names[] = {"a", "b", "p", "q"};
    for (int i = 0; i < 4; ++i)
        c->setTensorAddress(names[i], memory[i]);
    for (int rows : {2, 5, 3}) {
        ASSERT_TRUE(c->setInputShape("a", Dims2(rows, 4)) && c->setInputShape("b", Dims2(rows, 4)));
        ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
        for (size_t i = 0; i < size_t(rows) * 4; ++i)
            EXPECT_TRUE(p[i] == a[i] && q[i] == b[i]) << i;
    }
    m.takeErrors();
    ASSERT_TRUE(c->setInputShape("a", Dims2(7, 4)));
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_TRUE(m.oneError("equal names"));
}

// y: five elements of x [-1] from its start.
struct Corner : testing::Test
{
    Maker m;
    std::unique_ptr<ICudaEngine> build(int min, int opt, int max)
    {
        ITensor* x = m.input("x", {-1});
        ISliceLayer* s = m.network->addSlice(*m.relu(x), dims({0}), dims({5}), dims({1}));
        m.output(m.relu(s->getOutput(0)), "y");
        m.profile({{"x", {min}, {opt}, {max}}});
        return m.engine();
    }
    bool run(IExecutionContext& c, int count)
    {
        if (!c.setInputShape("x", dims({count})))
            return false;
        std::vector<float> x = ramp(size_t(std::max(count, 1)), 1), y(6, -7);
        c.setTensorAddress("x", x.data());
        c.setTensorAddress("y", y.data());
        if (!c.enqueueV3(nullptr))
            return false;
        EXPECT_EQ(y, (std::vector<float>{1, 2, 3, 4, 5, -7}));
        return true;
    }
    bool isWarned(char const* text) const
    {
        return std::any_of(m.logger.lines.begin(), m.logger.lines.end(), [&](auto const& l) {
            return l.severity == ILogger::Severity::kWARNING && contains(l.text, text);
        });
    }
};

TEST_F(Corner, MinimumThatNoLayerTakes)
{
    auto const engine = build(1, 8, 16);
    ASSERT_TRUE(engine) << m.errors();
    EXPECT_TRUE(isWarned("kMIN values for profile 0 violate shape constraints"));
    EXPECT_FALSE(isWarned("kMAX"));
    Context c = contextOf(*engine);
    for (int count : {5, 8, 16})
        EXPECT_TRUE(run(*c, count)) << m.errors();
    EXPECT_EQ(m.takeErrors(), "");
    EXPECT_FALSE(run(*c, 4));
    EXPECT_TRUE(m.oneError("slice"));
    EXPECT_TRUE(run(*c, 6)) << m.errors();
}

TEST_F(Corner, OptimumThatNoLayerTakes)
{
    EXPECT_FALSE(build(1, 4, 16));
    EXPECT_TRUE(m.oneError("kOPT values for profile 0 violate shape constraints"));
}

// x [-1, 4] + c [6, 4]: more than six rows do not fit.
TEST(BrokenProfiles, MaximumThatNoLayerTakes)
{
    Maker m;
    ITensor* x = m.input("x", {-1, 4});
    std::vector<float> const c = ramp(24);
    ITensor* known =
        m.network->addConstant(Dims2(6, 4), Weights{DataType::kFLOAT, c.data(), int64_t(c.size())})->getOutput(0);
    m.output(m.relu(m.network->addSoftMax(*m.add(m.relu(x), known))->getOutput(0)), "y");
    m.output(m.add(x, x), "z");
    m.profile({{"x", {1, 4}, {6, 4}, {9, 4}}});
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    int warned = 0;
    for (auto const& l : m.logger.lines)
        warned += contains(l.text, "kMAX values for profile 0 violate shape constraints");
    EXPECT_EQ(warned, 1);
    Context context = contextOf(*engine);
    auto run = [&](int rows) {
        std::vector<float> in = ramp(36, -3), y(36), z(36, -7);
        context->setTensorAddress("x", in.data());
        context->setTensorAddress("y", y.data());
        context->setTensorAddress("z", z.data());
        bool const done = context->setInputShape("x", Dims2(rows, 4)) && context->enqueueV3(nullptr);
        for (int i = 0; done && i < rows * 4; ++i)
            EXPECT_EQ(z[size_t(i)], 2 * in[size_t(i)]);
        return done;
    };
    EXPECT_TRUE(run(6)) << m.errors();
    EXPECT_TRUE(run(1)) << m.errors();
    EXPECT_EQ(m.takeErrors(), "");
    EXPECT_FALSE(run(9));
    EXPECT_FALSE(m.takeErrors().empty());
    EXPECT_TRUE(run(6)) << m.errors();
}

struct Profiler final : IProfiler
{
    std::vector<std::string> layers;
    void reportLayerTime(char const* layer, float) noexcept override { layers.emplace_back(layer); }
};

// Layers are listed, counted and timed under each profile's name.
TEST(Profiles, HaveLayersOfTheirOwn)
{
    Maker m;
    ITensor* x = m.input("x", {-1, 8});
    ILayer* s = m.network->addSoftMax(*x);
    s->setName("soft");
    m.output(s->getOutput(0), "y");
    for (int k : {1, 5, 7})
        m.profile({{"x", {k, 8}, {k, 8}, {k + 1, 8}}});
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    ASSERT_EQ(engine->getNbLayers(), 3);
    std::unique_ptr<IEngineInspector> const inspector(engine->createEngineInspector());
    std::vector<std::string> const names = {"soft", "soft [profile 1]", "soft [profile 2]"};
    for (int p = 0; p < 3; ++p)
        EXPECT_EQ(inspector->getLayerInformation(p, LayerInformationFormat::kONELINE), names[size_t(p)] + "\n");
    EXPECT_EQ(inspector->getLayerInformation(3, LayerInformationFormat::kONELINE), nullptr);
    EXPECT_TRUE(m.oneError("3 layers"));
    std::string const all = inspector->getEngineInformation(LayerInformationFormat::kJSON);
    for (std::string const& name : names)
        EXPECT_TRUE(contains(all, ("\"" + name + "\"").c_str())) << all;
    Context c = contextOf(*engine);
    for (int p = 0; p < 3; ++p) {
        Profiler profiler;
        c->setProfiler(&profiler);
        ASSERT_TRUE(c->setOptimizationProfileAsync(p, nullptr));
        ASSERT_TRUE(c->setInputShape("x", Dims2(p == 0 ? 1 : 3 + 2 * p, 8)));
        std::vector<float> in(64), out(64);
        c->setTensorAddress("x", in.data());
        c->setTensorAddress("y", out.data());
        ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
        EXPECT_EQ(profiler.layers, std::vector<std::string>{names[size_t(p)]});
        c->setEnqueueEmitsProfile(false);
        profiler.layers.clear();
        ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
        ASSERT_TRUE(c->reportToProfiler());
        EXPECT_EQ(profiler.layers, std::vector<std::string>{names[size_t(p)]});
        c->setEnqueueEmitsProfile(true);
        c->setProfiler(nullptr);
    }
    EXPECT_EQ(m.errors(), "");
}

// A run of any profile reports as many layers as the engine has for one: getNbLayers() counts those of all profiles, as
// programs that divide it by their number take for granted.
TEST(Profiles, EachRunReportsTheLayersOfItsOwn)
{
    Maker m;
    ITensor* x = m.input("x", {-1, 8});
    ITensor* y = m.network->addSoftMax(*x)->getOutput(0);
    for (int i = 0; i < 3; ++i) {
        ITopKLayer* t = m.network->addTopK(*y, TopKOperation::kMAX, 8 - i, 2);
        y = m.network->addSoftMax(*t->getOutput(0))->getOutput(0);
    }
    m.output(y, "y");
    for (int k : {1, 4, 16})
        m.profile({{"x", {k, 8}, {k, 8}, {2 * k, 8}}});
    m.config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    ASSERT_EQ(engine->getNbLayers() % 3, 0);
    int const layers = engine->getNbLayers() / 3;
    EXPECT_GT(layers, 3);
    std::unique_ptr<IEngineInspector> const inspector(engine->createEngineInspector());
    for (int p = 0; p < 3; ++p) {
        Profiler counter;
        Context c = contextOf(*engine);
        c->setProfiler(&counter);
        ASSERT_TRUE(c->setOptimizationProfileAsync(p, nullptr));
        ASSERT_TRUE(c->setInputShape("x", Dims2(1 << (2 * p), 8)));
        std::vector<float> in(256), out(256);
        c->setTensorAddress("x", in.data());
        c->setTensorAddress("y", out.data());
        ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
        EXPECT_EQ(int(counter.layers.size()), layers) << "profile " << p;
        auto const told = std::exchange(counter.layers, {});
        c->setEnqueueEmitsProfile(false);
        ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
        EXPECT_TRUE(counter.layers.empty());
        ASSERT_TRUE(c->reportToProfiler());
        EXPECT_EQ(counter.layers, told) << "profile " << p;
        // They are the layers of the list that are the profile's; the tensors have the network's names.
        for (int i = 0; i < layers; ++i) {
            std::string const json = inspector->getLayerInformation(p * layers + i, LayerInformationFormat::kJSON);
            EXPECT_TRUE(contains(json, ("{\"Name\":\"" + told[size_t(i)] + "\",").c_str())) << json;
            EXPECT_EQ(json.rfind(" [profile ") != std::string::npos, p > 0);
            EXPECT_EQ(json.rfind(" [profile "), json.find(" [profile ")) << "not in tensors: " << json;
        }
    }
    EXPECT_EQ(m.errors(), "");
}

// Kernels are made for the largest shapes of all profiles.
TEST(Profiles, ALaterOneMayBeMuchLarger)
{
    Maker m;
    ITensor* x = m.input("x", {-1, -1});
    ISoftMaxLayer* s = m.network->addSoftMax(*x);
    s->setAxes(2);
    m.output(s->getOutput(0), "y");
    m.profile({{"x", {1, 2}, {1, 4}, {1, 8}}});
    m.profile({{"x", {1, 64}, {2, 300}, {3, 5000}}});
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Context c = contextOf(*engine);
    ASSERT_TRUE(c->setOptimizationProfileAsync(1, nullptr));
    ASSERT_TRUE(c->setInputShape("x", Dims2(3, 5000)));
    std::vector<float> in(15000, 0), y(15001, -7);
    c->setTensorAddress("x", in.data());
    c->setTensorAddress("y", y.data());
    ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
    for (size_t i = 0; i < 15000; ++i)
        ASSERT_NEAR(y[i], 1 / 5000.0, 1e-8);
    EXPECT_EQ(y.back(), -7);
}

} // namespace
