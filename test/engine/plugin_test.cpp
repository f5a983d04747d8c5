// SPDX-License-Identifier: Apache-2.0
// Plugins of all four interfaces in engines: what is called when, who owns what, shapes, and plugins with bad manners.
#include <thread>

#include "engine/calibrators.h"
#include "engine/plugins.h"

namespace tw::test {

namespace {

template <class Plugin>
struct Plugins : testing::Test
{};
using All = testing::Types<V2Plugin, ExtPlugin, IOExtPlugin, DynamicPlugin>;
TYPED_TEST_SUITE(Plugins, All);

TYPED_TEST(Plugins, RunsThroughAPlanAndOwnsNothingAfterwards)
{
    Behaviour b;
    b.workspace = 1000;
    int living = -1;
    {
        OnePlugin<TypeParam> m(b);
        ASSERT_TRUE(m.layer) << m.errors();
        EXPECT_EQ(list(m.layer->getOutput(0)->getDimensions()), (std::vector<int32_t>{2, 3}));
        EXPECT_EQ(m.layer->getType(), LayerType::kPLUGIN_V2);
        EXPECT_STREQ(m.layer->getPlugin().getPluginType(), "Recorded");
        RecordedCreator<TypeParam> creator(b);
        auto engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        EXPECT_EQ(creator.deserialized, 1);
        Context const c = contextOf(*engine), other = contextOf(*engine);
        std::vector<float> x = ramp(6, -2), y(6), z(6);
        ASSERT_TRUE(run(*c, x, y)) << m.errors();
        ASSERT_TRUE(run(*other, x, z)) << m.errors();
        for (int i = 0; i < 6; ++i)
            EXPECT_EQ(y[size_t(i)], std::max(0.0F, 6 * (float(i) - 2)));
        EXPECT_EQ(y, z);
        living = b.record->living;
    }
    EXPECT_GT(living, 1);
    EXPECT_EQ(b.record->living, 0) << "every clone is destroyed";
}

TYPED_TEST(Plugins, CallsAreInTheOrderOfTheGuide)
{
    Behaviour b;
    OnePlugin<TypeParam> m(b);
    RecordedCreator<TypeParam> creator(b);
    auto plan = m.plan();
    ASSERT_TRUE(plan) << m.errors();
    // Of the one that was serialized: cloned, configured, initialized, then terminated and destroyed.
    Record& r = *b.record;
    int built = -1;
    for (std::string const& call : r.calls)
        if (call.rfind("serialize#", 0) == 0)
            built = std::stoi(call.substr(10));
    EXPECT_EQ(r.of(built), (std::vector<std::string>{"configure", "initialize", "serialize", "terminate", "destroy"}));
    EXPECT_EQ(r.count("initialize"), r.count("terminate"));
    r.calls.clear();

    std::unique_ptr<IRuntime> const runtime(createInferRuntime(m.logger));
    std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    ASSERT_TRUE(engine) << m.errors();
    EXPECT_EQ(r.count("deserialized"), 1);
    EXPECT_EQ(r.count("initialize"), 1);
    EXPECT_EQ(r.count("configure"), 0);
    EXPECT_EQ(r.count("clone"), 0);
    Context a = contextOf(*engine), c = contextOf(*engine);
    bool const isShared = std::is_same_v<TypeParam, V2Plugin>, isDynamic = std::is_same_v<TypeParam, DynamicPlugin>;
    EXPECT_EQ(r.count("clone"), isShared ? 0 : 2);
    EXPECT_EQ(r.count("attach"), isShared ? 0 : 2);
    EXPECT_EQ(r.count("initialize"), 1) << "clones of contexts share what the engine's plugin initialized";
    std::vector<float> x = ramp(6), y(6);
    for (int i = 0; i < 3; ++i)
        ASSERT_TRUE(run(*a, x, y));
    EXPECT_EQ(r.count("enqueue"), 3);
    EXPECT_EQ(r.count("configure"), isDynamic ? 1 : 0) << "once for a shape";
    ASSERT_TRUE(run(*c, x, y));
    engine.reset(); // before its contexts
    EXPECT_EQ(r.count("terminate"), 0);
    ASSERT_TRUE(run(*c, x, y));
    a.reset();
    EXPECT_EQ(r.count("detach"), isShared ? 0 : 1);
    c.reset();
    EXPECT_EQ(r.count("detach"), isShared ? 0 : 2);
    EXPECT_EQ(r.count("terminate"), 1);
    EXPECT_EQ(r.count("destroy"), isShared ? 1 : 3);
}

TYPED_TEST(Plugins, AnEngineOfTheBuilderNeedsNoCreator)
{
    Behaviour b;
    OnePlugin<TypeParam> m(b);
    std::unique_ptr<ICudaEngine> engine(m.builder->buildEngineWithConfig(*m.network, *m.config));
    ASSERT_TRUE(engine) << m.errors();
    Context const c = contextOf(*engine);
    std::vector<float> x = ramp(6), y(6);
    ASSERT_TRUE(run(*c, x, y)) << m.errors();
    EXPECT_EQ(y[5], 30);
}

TYPED_TEST(Plugins, WithoutACreatorAPlanIsRefused)
{
    Behaviour b;
    OnePlugin<TypeParam> m(b);
    EXPECT_FALSE(m.engine());
    EXPECT_TRUE(m.oneError("could not find Plugin Recorded version 1"));
}

TYPED_TEST(Plugins, BadAnswersAreErrorsOfTheLayer)
{
    Behaviour b;
    {
        OnePlugin<TypeParam> m(b);
        b.initializeStatus = 7;
        EXPECT_FALSE(m.plan());
        EXPECT_TRUE(m.oneError("Custom layer custom returned non-zero initialization"));
        b.initializeStatus = 0;
        b.cloneIsNull = true;
        EXPECT_FALSE(m.plan());
        EXPECT_TRUE(m.oneError("layer 'custom'"));
        b.cloneIsNull = false;
        b.workspace = size_t(-1);
        EXPECT_FALSE(m.plan());
        EXPECT_TRUE(m.oneError("getWorkspaceSize()"));
        b.workspace = 0;
        b.takes = [](DataType, TensorFormat) { return false; };
        EXPECT_FALSE(m.plan());
        EXPECT_TRUE(m.oneError("layer 'custom'"));
        b.takes = Behaviour().takes;
        RecordedCreator<TypeParam> creator(b);
        auto engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        Context c = contextOf(*engine);
        std::vector<float> x = ramp(6), y(6);
        b.enqueueStatus = -3;
        EXPECT_FALSE(run(*c, x, y));
        EXPECT_TRUE(contains(m.takeErrors(), "enqueue() gave -3"));
        b.enqueueStatus = 0;
        EXPECT_TRUE(run(*c, x, y)) << "the context can be used on";
        if (!std::is_same_v<TypeParam, V2Plugin>) {
            b.cloneIsNull = true;
            EXPECT_FALSE(engine->createExecutionContext());
            EXPECT_TRUE(contains(m.takeErrors(), "clone() gave a null pointer"));
            b.cloneIsNull = false;
        }
        b.initializeStatus = 1;
        EXPECT_FALSE(m.engine());
        EXPECT_TRUE(contains(m.takeErrors(), "Custom layer custom returned non-zero initialization"));
    }
    EXPECT_EQ(b.record->living, 0);
}

TYPED_TEST(Plugins, BadNetworksAreRefused)
{
    Behaviour b;
    Record& record = *b.record;
    Maker m;
    ITensor* x = m.input("x", {2, 3});
    {
        TypeParam plugin(b, 1);
        ITensor* none = nullptr;
        EXPECT_FALSE(m.network->addPluginV2(&none, 1, plugin));
        EXPECT_TRUE(m.oneError("null pointer"));
        EXPECT_FALSE(m.network->addPluginV2(nullptr, 1, plugin));
        EXPECT_TRUE(m.oneError("addPluginV2"));
        EXPECT_FALSE(m.network->addPluginV2(&x, -1, plugin));
        EXPECT_TRUE(m.oneError("addPluginV2"));
        b.outputs = 0;
        EXPECT_FALSE(m.network->addPluginV2(&x, 1, plugin));
        EXPECT_TRUE(m.oneError("getNbOutputs() gave 0"));
        b.outputs = 1;
        b.cloneIsNull = true;
        EXPECT_FALSE(m.network->addPluginV2(&x, 1, plugin));
        EXPECT_TRUE(m.oneError("null pointer"));
        b.cloneIsNull = false;
    }
    EXPECT_EQ(record.living, 0);
}

TYPED_TEST(Plugins, EqualLayersAreTwo)
{
    Behaviour b;
    Maker m;
    ITensor* x = m.input("x", {2, 3}); // straight from an input to an output, too
    TypeParam three(b, 3), five(b, 5);
    ITensor* a = m.network->addPluginV2(&x, 1, three)->getOutput(0);
    ITensor* c = m.network->addPluginV2(&a, 1, five)->getOutput(0);
    ITensor* d = m.network->addPluginV2(&a, 1, three)->getOutput(0);
    m.output(c, "y");
    m.output(d, "z");
    RecordedCreator<TypeParam> creator(b);
    auto engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    EXPECT_EQ(creator.deserialized, 3);
    Context const context = contextOf(*engine);
    std::vector<float> in = ramp(6), y(6), z(6);
    ASSERT_TRUE(context->setTensorAddress("z", z.data()));
    ASSERT_TRUE(run(*context, in, y)) << m.errors();
    EXPECT_EQ(y, (std::vector<float>{0, 15, 30, 45, 60, 75}));
    EXPECT_EQ(z, (std::vector<float>{0, 9, 18, 27, 36, 45}));
    std::unique_ptr<IEngineInspector> const inspector(engine->createEngineInspector());
    EXPECT_TRUE(contains(inspector->getEngineInformation(LayerInformationFormat::kJSON), "PluginV2"));
}

TYPED_TEST(Plugins, InLoopsAndBranches)
{
    Behaviour b;
    Record& record = *b.record;
    {
        Maker m;
        static int32_t const three = 3;
        ITensor *x = m.input("x", {2, 3}), *c = m.input("c", {}, DataType::kBOOL);
        TypeParam two(b, 2), five(b, 5);
        ILoop* loop = m.network->addLoop();
        ITensor* trips = m.network->addConstant(dims({}), {DataType::kINT32, &three, 1})->getOutput(0);
        loop->addTripLimit(*trips, TripLimit::kCOUNT);
        IRecurrenceLayer* r = loop->addRecurrence(*x);
        ITensor* carried = r->getOutput(0);
        r->setInput(1, *m.network->addPluginV2(&carried, 1, two)->getOutput(0));
        ITensor* eight = loop->addLoopOutput(*carried, LoopOutput::kLAST_VALUE)->getOutput(0);
        IIfConditional* choice = m.network->addIfConditional();
        choice->setCondition(*c);
        ITensor* in = choice->addInput(*eight)->getOutput(0);
        ITensor* forty = m.network->addPluginV2(&in, 1, five)->getOutput(0);
        m.output(choice->addOutput(*forty, *m.relu(in))->getOutput(0), "y");
        RecordedCreator<TypeParam> creator(b);
        auto engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        Context const context = contextOf(*engine);
        std::vector<float> from = ramp(6), y(6);
        for (bool taken : {true, false, true}) {
            context->setTensorAddress("c", &taken);
            int const before = record.count("enqueue");
            ASSERT_TRUE(run(*context, from, y)) << m.errors();
            EXPECT_EQ(y[5], taken ? 200 : 40);
            EXPECT_EQ(record.count("enqueue") - before, taken ? 4 : 3) << "the branch that is not taken does not run";
        }
        EXPECT_EQ(record.count("initialize"), record.count("terminate") + creator.deserialized);
    }
    EXPECT_EQ(record.living, 0);
}

TYPED_TEST(Plugins, ContextsRunInThreads)
{
    Behaviour b;
    OnePlugin<TypeParam> m(b, {4, 33});
    RecordedCreator<TypeParam> creator(b);
    auto engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int round = 0; round < 5; ++round) {
                Context const c = contextOf(*engine);
                std::vector<float> x = ramp(132, float(t)), y(132);
                right += c && run(*c, x, y, cudaStreamPerThread) && y[131] == 6 * x[131];
            }
        });
    for (std::thread& t : threads)
        t.join();
    EXPECT_EQ(right, 20) << m.errors();
}

// ---- shapes

TEST(PluginShapes, ExpressionsFollowTheInputs)
{
    Behaviour b;
    using Op = DimensionOperation;
    b.outputExprs = [](DimsExprs const* in, int32_t, IExprBuilder& e) {
        auto n = [&](int v) { return e.constant(v); };
        IDimensionExpr const &a = *in[0].d[0], &c = *in[0].d[1];
        EXPECT_FALSE(a.isConstant());
        EXPECT_EQ(a.getConstantValue(), INT32_MIN);
        EXPECT_TRUE(c.isConstant());
        EXPECT_EQ(c.getConstantValue(), 5);
        EXPECT_EQ(e.operation(Op(9), a, c), nullptr);
        EXPECT_EQ(e.operation(Op::kFLOOR_DIV, a, *n(0)), nullptr);
        DimsExprs y{8, {}};
        y.d[0] = e.operation(Op::kSUM, a, c);
        y.d[1] = e.operation(Op::kPROD, a, *n(2));
        y.d[2] = e.operation(Op::kMAX, a, *n(4));
        y.d[3] = e.operation(Op::kMIN, a, *n(2));
        y.d[4] = e.operation(Op::kSUB, *n(9), a);
        y.d[5] = e.operation(Op::kSUM, *e.operation(Op::kEQUAL, a, *n(3)), *e.operation(Op::kLESS, a, *n(3)));
        y.d[6] = e.operation(Op::kFLOOR_DIV, a, *n(2));
        y.d[7] = e.operation(Op::kCEIL_DIV, a, *n(2));
        return y;
    };
    b.run = [](std::vector<Dims> const&, void const* const*, void* const*, void*, cudaStream_t) { return 0; };
    Maker m;
    ITensor* x = m.input("x", {-1, 5});
    DynamicPlugin plugin(b, 1);
    IPluginV2Layer* layer = m.network->addPluginV2(&x, 1, plugin);
    ASSERT_TRUE(layer);
    EXPECT_EQ(list(layer->getOutput(0)->getDimensions()), (std::vector<int32_t>(8, -1)));
    m.output(layer->getOutput(0), "y");
    m.profile({{"x", {2, 5}, {3, 5}, {6, 5}}});
    RecordedCreator<DynamicPlugin> creator(b);
    auto engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Context const c = contextOf(*engine);
    m.logger.lines.clear();
    auto shape = [&](int32_t n) {
        EXPECT_TRUE(c->setInputShape("x", dims({n, 5})));
        return list(c->getTensorShape("y"));
    };
    EXPECT_EQ(shape(3), (std::vector<int32_t>{8, 6, 4, 2, 6, 1, 1, 2}));
    EXPECT_EQ(shape(2), (std::vector<int32_t>{7, 4, 4, 2, 7, 1, 1, 1}));
    EXPECT_EQ(shape(6), (std::vector<int32_t>{11, 12, 6, 2, 3, 0, 3, 3}));
    std::vector<float> in(30), out(100000);
    EXPECT_TRUE(run(*c, in, out)) << m.errors(); // no elements
}

TEST(PluginShapes, DynamicPluginIsConfiguredForEveryNewShape)
{
    Behaviour b;
    Record& record = *b.record;
    Maker m;
    ITensor* x = m.input("x", {-1, -1});
    DynamicPlugin plugin(b, 2);
    m.output(m.network->addPluginV2(&x, 1, plugin)->getOutput(0), "y");
    m.profile({{"x", {0, 1}, {2, 3}, {4, 8}}});
    RecordedCreator<DynamicPlugin> creator(b);
    auto engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Context const c = contextOf(*engine);
    record.calls.clear();
    std::vector<float> in = ramp(32), out(32);
    for (auto const& [rows, columns] : {std::pair(2, 3), {2, 3}, {4, 8}, {0, 5}, {1, 1}, {2, 3}}) {
        ASSERT_TRUE(c->setInputShape("x", dims({rows, columns})));
        ASSERT_TRUE(run(*c, in, out)) << m.errors();
        for (int i = 0; i < rows * columns; ++i)
            ASSERT_EQ(out[size_t(i)], float(2 * i));
    }
    EXPECT_EQ(record.count("configure"), 5);
    EXPECT_EQ(record.count("enqueue"), 6) << "also for the empty tensor";
}

TEST(PluginShapes, PluginsMayHaveNoInputs)
{
    Behaviour b;
    b.outputExprs = [](DimsExprs const*, int32_t n, IExprBuilder& e) {
        EXPECT_EQ(n, 0);
        return DimsExprs{1, {e.constant(4)}};
    };
    b.outputType = int(DataType::kFLOAT);
    b.run = [](std::vector<Dims> const&, void const* const*, void* const* out, void*, cudaStream_t) {
        std::vector<float> const v = ramp(4);
        std::copy(v.begin(), v.end(), static_cast<float*>(out[0]));
        return 0;
    };
    Maker m;
    ITensor* x = m.input("x", {4});
    DynamicPlugin plugin(b, 1);
    m.output(m.add(x, m.network->addPluginV2(nullptr, 0, plugin)->getOutput(0)), "y");
    std::unique_ptr<ICudaEngine> engine(m.builder->buildEngineWithConfig(*m.network, *m.config));
    ASSERT_TRUE(engine) << m.errors();
    Context const c = contextOf(*engine);
    std::vector<float> in = ramp(4), out(4);
    ASSERT_TRUE(run(*c, in, out)) << m.errors();
    EXPECT_EQ(out, (std::vector<float>{0, 2, 4, 6}));
}

TEST(PluginShapes, AnEmptyTensorCarriesAShape)
{
    Behaviour b;
    b.outputExprs = [](DimsExprs const* in, int32_t, IExprBuilder&) { return DimsExprs{2, {in[1].d[1], in[1].d[2]}}; };
    b.run = [](std::vector<Dims> const& d, void const* const* in, void* const* out, void*, cudaStream_t) {
        EXPECT_TRUE(in[1]) << "an address all the same";
        for (int i = 0; i < d[1].d[0] * d[1].d[1]; ++i)
            static_cast<float*>(out[0])[i] = static_cast<float const*>(in[0])[0] + float(i);
        return 0;
    };
    Maker m;
    ITensor* x[] = {m.input("x", {1}), m.input("size", {0, -1, -1})};
    DynamicPlugin plugin(b, 1);
    m.output(m.network->addPluginV2(x, 2, plugin)->getOutput(0), "y");
    m.profile({{"size", {0, 1, 1}, {0, 2, 3}, {0, 4, 4}}});
    RecordedCreator<DynamicPlugin> creator(b);
    auto engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Context const c = contextOf(*engine);
    ASSERT_TRUE(c->setInputShape("size", dims({0, 2, 3})));
    EXPECT_EQ(list(c->getTensorShape("y")), (std::vector<int32_t>{2, 3}));
    std::vector<float> in{7}, out(6);
    char nothing = 0;
    ASSERT_TRUE(c->setTensorAddress("size", &nothing));
    ASSERT_TRUE(run(*c, in, out)) << m.errors();
    EXPECT_EQ(out, ramp(6, 7));
}

TEST(PluginShapes, BadExpressionsAndDimensionsAreErrors)
{
    Behaviour b;
    Maker m;
    ITensor* x = m.input("x", {2, 3});
    DynamicPlugin dynamic(b, 1);
    auto refuses = [&](IPluginV2& plugin, char const* part) {
        Maker one;
        ITensor* t = one.input("x", {2, 3});
        IPluginV2Layer* layer = one.network->addPluginV2(&t, 1, plugin);
        EXPECT_TRUE(layer);
        one.output(layer->getOutput(0), "y");
        EXPECT_FALSE(one.plan());
        EXPECT_TRUE(contains(one.takeErrors(), part)) << part;
    };
    b.outputExprs = [](DimsExprs const*, int32_t, IExprBuilder&) { return DimsExprs{1, {nullptr}}; };
    refuses(dynamic, "is a null pointer");
    b.outputExprs = [](DimsExprs const*, int32_t, IExprBuilder&) { return DimsExprs{9, {}}; };
    refuses(dynamic, "gave 9 dimensions");
    b.outputExprs = [](DimsExprs const*, int32_t, IExprBuilder& e) { return DimsExprs{1, {e.constant(-4)}}; };
    refuses(dynamic, "is -4");
    b.outputDims = [](Dims const&) { return Dims{1, {-1}}; };
    ExtPlugin ext(b, 1);
    refuses(ext, "must be at least 0");
    b.outputDims = [](Dims const&) { return Dims{-1, {}}; };
    refuses(ext, "nbDims -1");
    b.outputDims = nullptr;
    b.outputType = 77;
    refuses(ext, "which is no data type");
    (void)x;
}

TEST(PluginShapes, OnlyDynamicPluginsTakeWildcardsBehindTheBatch)
{
    Behaviour b;
    Maker m;
    ITensor* x = m.input("x", {-1, -1});
    IOExtPlugin plugin(b, 1);
    m.output(m.network->addPluginV2(&x, 1, plugin)->getOutput(0), "y");
    m.profile({{"x", {1, 1}, {2, 3}, {4, 8}}});
    EXPECT_FALSE(m.plan());
    EXPECT_TRUE(contains(m.takeErrors(), "only IPluginV2DynamicExt plugins take dimensions that vary"));
}

} // namespace

namespace {

// Of a plugin that takes INT8 alone: it halves integers.
Behaviour halving()
{
    Behaviour b;
    b.takes = [](DataType t, TensorFormat f) { return t == DataType::kINT8 && f == TensorFormat::kLINEAR; };
    b.run = [](std::vector<Dims> const& dims, void const* const* in, void* const* out, void*, cudaStream_t) {
        int64_t count = 1;
        for (int32_t d = 0; d < dims[0].nbDims; ++d)
            count *= dims[0].d[d];
        for (int64_t i = 0; i < count; ++i)
            static_cast<int8_t*>(out[0])[i] = int8_t(static_cast<int8_t const*>(in[0])[i] / 2);
        return 0;
    };
    return b;
}

} // namespace

// The ranges of a plugin's tensors say what its integers stand for, whoever gives them.
TEST(PluginInIntegers, BetweenRanges)
{
    for (bool isCached : {false, true}) {
        Behaviour b = halving();
        OnePlugin<DynamicPlugin> m(b);
        ITensor* const twice = m.network->getLayer(0)->getOutput(0);
        twice->setName("twice");
        m.layer->getOutput(0)->setName("halves");
        EXPECT_FALSE(m.plan());
        EXPECT_TRUE(contains(m.errors(), "BuilderFlag::kINT8")) << m.errors();
        m.takeErrors();
        m.config->setFlag(BuilderFlag::kINT8);
        EXPECT_FALSE(m.plan());
        EXPECT_TRUE(contains(m.errors(), "give ranges to 'twice', 'halves'")) << m.errors();
        m.takeErrors();
        MinMaxCalibrator c;
        c.fill("x", 6, 1);
        if (isCached) {
            m.config->setInt8Calibrator(&c);
            EXPECT_FALSE(m.plan()); // which calibration cannot run
            EXPECT_TRUE(contains(m.errors(), "give a calibration cache")) << m.errors();
            m.takeErrors();
            c.cache = "TRT-8503-MinMaxCalibration\ntwice: 3f000000\nhalves: 3e800000\n"; // 1/2, 1/4
        } else {
            twice->setDynamicRange(-63.5F, 63.5F);
            m.layer->getOutput(0)->setDynamicRange(-31.75F, 31.75F);
        }
        RecordedCreator<DynamicPlugin> creator(b);
        auto const engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        std::vector<float> x{1, 2, 3, -4, 10, 31}, y(6);
        ASSERT_TRUE(run(*contextOf(*engine), x, y));
        EXPECT_EQ(y, (std::vector<float>{0.5F, 1, 1.5F, 0, 5, 15.5F})) << isCached;
        EXPECT_EQ(b.record->scales, (std::vector<float>{0.5F, 0.25F})) << isCached;
    }
}

} // namespace tw::test
