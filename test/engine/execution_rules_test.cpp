// SPDX-License-Identifier: Apache-2.0
// Rules of execution contexts that other tests do not come by: profiles that are switched beside runs and graphs,
// contexts without a profile, which of two settings counts, allocators that refuse, engines without inputs.
#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>

#include <cuda_runtime_api.h>

#include "engine/engines.h"

using namespace tw::test;

namespace {

// y = the rows of relu(x), then those of x + x; z = y once more, softened: x [-1,4] in three profiles. The joins are
// made in place where a profile's sizes allow it.
struct Joined : testing::Test
{
    Maker m;
    std::unique_ptr<ICudaEngine> engine;
    void SetUp() override
    {
        ITensor* x = m.input("x", {-1, 4});
        ITensor* parts[] = {m.relu(x), m.add(x, x)};
        IConcatenationLayer* l = m.network->addConcatenation(parts, 2);
        l->setAxis(0);
        m.output(l->getOutput(0), "y");
        IActivationLayer* z = m.network->addActivation(*l->getOutput(0), ActivationType::kSOFTSIGN);
        m.output(z->getOutput(0), "z");
        m.profile({{"x", {1, 4}, {2, 4}, {4, 4}}});
        m.profile({{"x", {3, 4}, {5, 4}, {9, 4}}});
        m.profile({{"x", {1, 4}, {16, 4}, {64, 4}}});
        engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        m.takeErrors();
    }
    static std::vector<float> joined(std::vector<float> const& x)
    {
        std::vector<float> y;
        for (float v : x)
            y.push_back(std::max(v, 0.0F));
        for (float v : x)
            y.push_back(v + v);
        return y;
    }
    static std::vector<float> softened(std::vector<float> y)
    {
        for (float& v : y)
            v = v / (1 + std::abs(v));
        return y;
    }
    static bool isNear(std::vector<float> const& a, std::vector<float> const& b)
    {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                          [](float u, float v) { return std::abs(u - v) < 1e-5F; });
    }
    // Whether a run of that many rows is done and right.
    static bool run(IExecutionContext& c, int32_t rows, cudaStream_t stream = nullptr)
    {
        std::vector<float> x = ramp(size_t(rows) * 4, -5), y(x.size() * 2, -77), z = y;
        bool const done = c.setInputShape("x", Dims2(rows, 4)) && c.setTensorAddress("x", x.data()) &&
                          c.setTensorAddress("y", y.data()) && c.setTensorAddress("z", z.data()) && c.enqueueV3(stream);
        cudaStreamSynchronize(stream);
        return done && y == joined(x) && isNear(z, softened(joined(x)));
    }
};

TEST_F(Joined, ProfilesAreSwitchedBesideARun)
{
    Context const a = contextOf(*engine), b = contextOf(*engine);
    ASSERT_EQ(a->getOptimizationProfile(), 0);
    ASSERT_TRUE(b->setOptimizationProfileAsync(1, nullptr));
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0}, runs{0};
    std::thread other([&] {
        for (int i = 0; !stop; ++i, ++runs)
            wrong += !run(*a, 1 + i % 4);
    });
    int refused = 0;
    for (int i = 0; i < 40 || runs < 100; ++i) {
        EXPECT_TRUE(b->setOptimizationProfileAsync(2, nullptr));
        EXPECT_TRUE(run(*b, 1 + 9 * (i % 8)));
        refused += !b->setOptimizationProfileAsync(0, nullptr);
        EXPECT_EQ(b->getOptimizationProfile(), 2) << "it keeps the one that it has";
        EXPECT_TRUE(b->setOptimizationProfileAsync(1, nullptr));
        EXPECT_TRUE(run(*b, 3 + i % 7));
    }
    stop = true;
    other.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(m.logger.errors(), refused);
    EXPECT_GE(refused, 40);
    // A profile that a context has left may be another's at once.
    ASSERT_TRUE(a->setOptimizationProfileAsync(2, nullptr));
    EXPECT_TRUE(b->setOptimizationProfileAsync(0, nullptr));
    EXPECT_TRUE(run(*a, 64) && run(*b, 4));
}

// A graph has the shapes, the profile and the addresses of its capture.
TEST_F(Joined, GraphsKeepTheProfileOfTheirCapture)
{
    Context const c = contextOf(*engine);
    cudaStream_t stream{};
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_TRUE(run(*c, 4, stream));
    std::vector<float> x(16), y(32), z(32);
    c->setTensorAddress("x", x.data());
    c->setTensorAddress("y", y.data());
    c->setTensorAddress("z", z.data());
    cudaGraph_t graph{};
    cudaGraphExec_t exec{};
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_TRUE(c->enqueueV3(stream)) << m.errors();
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    for (int32_t profile : {2, 1, 2, 0}) {
        ASSERT_TRUE(c->setOptimizationProfileAsync(profile, stream));
        for (int32_t rows : {3, profile == 2 ? 64 : 4}) {
            EXPECT_TRUE(run(*c, rows, stream)) << m.errors();
            std::vector<float> const next = ramp(16, float(-rows - profile));
            std::copy(next.begin(), next.end(), x.begin()); // where the graph reads
            ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
            ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
            EXPECT_EQ(y, joined(x));
            EXPECT_TRUE(isNear(z, softened(y)));
        }
    }
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    EXPECT_EQ(m.errors(), "");
}

TEST_F(Joined, WithoutAProfileNothingRuns)
{
    Context const a = contextOf(*engine), c = contextOf(*engine);
    ASSERT_EQ(c->getOptimizationProfile(), -1);
    std::vector<float> memory(64);
    for (char const* name : {"x", "y", "z"})
        EXPECT_TRUE(c->setTensorAddress(name, memory.data())) << "addresses are not the profile's";
    EXPECT_EQ(list(c->getTensorShape("x")), (Shape{-1, 4}));
    EXPECT_EQ(list(c->getTensorShape("y")), (Shape{-1, 4}));
    EXPECT_EQ(list(c->getBindingDimensions(3)), (Shape{-1, 4}));
    EXPECT_FALSE(c->allInputDimensionsSpecified());
    char const* missing[1] = {};
    EXPECT_EQ(c->inferShapes(1, missing), 1);
    EXPECT_STREQ(missing[0], "x");
    EXPECT_EQ(m.takeErrors(), "");
    EXPECT_EQ(c->getMaxOutputSize("y"), -1);
    m.takeErrors();
    void* bindings[9] = {};
    std::fill(bindings, bindings + 9, memory.data());
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_TRUE(m.oneError("no optimization profile: call setOptimizationProfileAsync() first, for inputs 'x'"));
    EXPECT_FALSE(c->executeV2(bindings));
    EXPECT_TRUE(m.oneError("no optimization profile: call setOptimizationProfileAsync() first, for inputs 'x'"));
    EXPECT_FALSE(c->enqueueV2(bindings, nullptr, nullptr));
    EXPECT_TRUE(m.oneError("no optimization profile: call setOptimizationProfileAsync() first, for inputs 'x'"));
    EXPECT_FALSE(c->setBindingDimensions(0, Dims2(2, 4)));
    EXPECT_TRUE(m.oneError("profile"));
    // More contexts than profiles: those that are left have none.
    Context const b = contextOf(*engine), d = contextOf(*engine);
    ASSERT_TRUE(b->setOptimizationProfileAsync(1, nullptr));
    ASSERT_TRUE(c->setOptimizationProfileAsync(2, nullptr));
    for (int32_t profile : {0, 1, 2}) {
        EXPECT_FALSE(d->setOptimizationProfileAsync(profile, nullptr));
        EXPECT_TRUE(m.oneError("is in use by another execution context"));
    }
    EXPECT_TRUE(run(*a, 4) && run(*b, 9) && run(*c, 33)) << m.errors();
}

// Bindings are of a profile by number and by name; tensors have one name for all.
TEST_F(Joined, NamesOfProfiles)
{
    Context const c = contextOf(*engine);
    ASSERT_TRUE(c->setOptimizationProfileAsync(2, nullptr));
    EXPECT_EQ(engine->getBindingIndex("x [profile 2]"), 6);
    ASSERT_TRUE(c->setBindingDimensions(6, Dims2(10, 4)));
    EXPECT_EQ(list(c->getBindingDimensions(engine->getBindingIndex("z [profile 2]"))), (Shape{20, 4}));
    EXPECT_EQ(list(engine->getBindingDimensions(engine->getBindingIndex("z [profile 2]"))), (Shape{-1, 4}));
    EXPECT_EQ(list(engine->getProfileDimensions(6, 2, OptProfileSelector::kMAX)), (Shape{64, 4}));
    EXPECT_EQ(m.takeErrors(), "");
    for (char const* name : {"x [profile 2]", "x [profile 0]"}) {
        EXPECT_FALSE(c->setInputShape(name, Dims2(10, 4)));
        EXPECT_TRUE(m.oneError("no tensor named"));
        EXPECT_FALSE(c->setTensorAddress(name, nullptr));
        EXPECT_TRUE(m.oneError("no tensor named"));
    }
    for (char const* name : {"x [profile 3]", "x [profile 02]", "x[profile 2]", "x [profile 2] ", "x [profile -1]"})
        EXPECT_EQ(engine->getBindingIndex(name), -1) << name;
    std::vector<float> x = ramp(40, -9), y(80), z(80);
    void* bindings[] = {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, x.data(), y.data(), z.data()};
    EXPECT_TRUE(c->executeV2(bindings)) << m.errors();
    EXPECT_EQ(y, joined(x));
}

// A network's own name may look like another's with a suffix.
TEST(Names, ThatLookLikeAProfiles)
{
    Maker m;
    m.output(m.relu(m.input("a", {-1})), "y");
    ITensor* b = m.input("a [profile 1]", {-1});
    m.output(m.add(b, b), "y [profile 1]");
    for (int32_t k : {1, 2})
        m.profile({{"a", {k}, {k}, {4}}, {"a [profile 1]", {k}, {k}, {4}}});
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    ASSERT_EQ(engine->getNbIOTensors(), 4);
    EXPECT_EQ(engine->getNbBindings(), 8);
    Context const c = contextOf(*engine);
    std::vector<float> first = {-1, 2, 3}, second = {5, 6}, y(3), z(2);
    c->setInputShape("a", dims({3}));
    c->setInputShape("a [profile 1]", dims({2}));
    c->setTensorAddress("a", first.data());
    c->setTensorAddress("a [profile 1]", second.data());
    c->setTensorAddress("y", y.data());
    c->setTensorAddress("y [profile 1]", z.data());
    ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
    EXPECT_EQ(y, (std::vector<float>{0, 2, 3}));
    EXPECT_EQ(z, (std::vector<float>{10, 12}));
}

// Without anything that a profile decides every context has profile 0.
TEST(StaticEngines, HaveAProfileForEveryContext)
{
    Maker m;
    m.output(m.relu(m.input("x", {3})), "y");
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    EXPECT_EQ(engine->getNbOptimizationProfiles(), 1);
    std::vector<Context> contexts;
    for (int i = 0; i < 3; ++i) {
        contexts.push_back(contextOf(*engine));
        EXPECT_EQ(contexts.back()->getOptimizationProfile(), 0);
        EXPECT_TRUE(contexts.back()->setOptimizationProfileAsync(0, nullptr));
        EXPECT_TRUE(contexts.back()->allInputDimensionsSpecified());
        EXPECT_EQ(contexts.back()->inferShapes(0, nullptr), 0);
    }
    EXPECT_EQ(m.errors(), "");
    EXPECT_FALSE(contexts[1]->setOptimizationProfileAsync(1, nullptr));
    EXPECT_TRUE(m.oneError("profile 1 does not exist"));
    std::vector<float> x = {-1, 0, 2}, y(3);
    for (Context const& c : contexts) {
        y.assign(3, -7);
        void* bindings[] = {x.data(), y.data()};
        EXPECT_TRUE(c->executeV2(bindings));
        EXPECT_EQ(y, (std::vector<float>{0, 0, 2}));
    }
}

// No inputs: nothing has to be set but where the output goes.
TEST(EnginesWithoutInputs, Run)
{
    Maker m;
    static float const values[] = {1, -2, 3};
    ITensor* x = m.network->addConstant(dims({3}), {DataType::kFLOAT, values, 3})->getOutput(0);
    IFillLayer* fill = m.network->addFill(dims({3}), FillOperation::kLINSPACE);
    fill->setAlpha(10);
    fill->setBeta(5);
    m.output(m.add(x, fill->getOutput(0)), "y");
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    EXPECT_EQ(engine->getNbIOTensors(), 1);
    Context const c = contextOf(*engine);
    EXPECT_TRUE(c->allInputDimensionsSpecified() && c->allInputShapesSpecified());
    EXPECT_EQ(c->inferShapes(0, nullptr), 0);
    EXPECT_EQ(list(c->getTensorShape("y")), (Shape{3}));
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_TRUE(m.oneError("'y'"));
    std::vector<float> y(3);
    c->setTensorAddress("y", y.data());
    EXPECT_TRUE(c->enqueueV3(nullptr)) << m.errors();
    EXPECT_EQ(y, (std::vector<float>{11, 13, 23}));
}

// z = x from `start` on, `size` elements; both are read by the host. Two profiles of values; x is static.
struct Values : testing::Test
{
    Maker m;
    std::unique_ptr<ICudaEngine> engine;
    std::vector<float> x = ramp(10), z = std::vector<float>(11, -7);
    void SetUp() override
    {
        ISliceLayer* l = m.network->addSlice(*m.input("x", {10}), dims({0}), dims({1}), dims({1}));
        l->setInput(1, *m.input("start", {1}, DataType::kINT32));
        l->setInput(2, *m.input("size", {1}, DataType::kINT32));
        m.output(l->getOutput(0), "z");
        m.profile({}, {{"start", {0}, {1}, {4}}, {"size", {0}, {2}, {6}}});
        m.profile({}, {{"start", {5}, {5}, {9}}, {"size", {1}, {1}, {3}}});
        engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        ASSERT_EQ(m.takeErrors(), "");
    }
    std::vector<float> expected(int32_t start, int32_t size) const
    {
        std::vector<float> want(11, -7);
        std::copy(x.begin() + start, x.begin() + start + size, want.begin());
        return want;
    }
};

TEST_F(Values, BelongToTheProfile)
{
    EXPECT_EQ(engine->getBindingIndex("size [profile 1]"), 6);
    EXPECT_EQ(*engine->getProfileShapeValues(1, 6, OptProfileSelector::kMAX), 3);
    EXPECT_EQ(*engine->getProfileShapeValues(0, 2, OptProfileSelector::kMAX), 6);
    EXPECT_EQ(*engine->getProfileShapeValues(1, 2, OptProfileSelector::kMIN), 1) << "binding of profile 0";
    EXPECT_EQ(m.takeErrors(), "");
    EXPECT_EQ(engine->getProfileShapeValues(0, 6, OptProfileSelector::kMIN), nullptr);
    EXPECT_TRUE(m.oneError("profile 1"));
    Context const a = contextOf(*engine), b = contextOf(*engine);
    EXPECT_EQ(b->getOptimizationProfile(), -1) << "values are the profile's, though all shapes are static";
    int32_t start = 1, size = 6;
    auto run = [&](IExecutionContext& c) {
        z.assign(11, -7);
        c.setTensorAddress("x", x.data());
        c.setTensorAddress("z", z.data());
        c.setInputTensorAddress("start", &start);
        c.setInputTensorAddress("size", &size);
        return c.enqueueV3(nullptr);
    };
    ASSERT_TRUE(run(*a)) << m.errors();
    EXPECT_EQ(z, expected(1, 6));
    EXPECT_FALSE(run(*b));
    EXPECT_TRUE(m.oneError("no optimization profile"));
    EXPECT_EQ(b->inferShapes(0, nullptr), -1);
    EXPECT_TRUE(m.oneError("no optimization profile"));
    ASSERT_TRUE(b->setOptimizationProfileAsync(1, nullptr));
    EXPECT_FALSE(run(*b));
    EXPECT_TRUE(m.oneError("outside 5..9 of optimization profile 1"));
    start = 7, size = 3;
    ASSERT_TRUE(run(*b)) << m.errors();
    EXPECT_EQ(z, expected(7, 3));
    EXPECT_FALSE(run(*a));
    EXPECT_TRUE(m.oneError("outside 0..4 of optimization profile 0"));
    start = 9, size = 2;
    EXPECT_FALSE(run(*b)) << "past the end of x";
    EXPECT_NE(m.takeErrors(), "");
    start = 4, size = 0;
    ASSERT_TRUE(run(*a)) << m.errors();
    EXPECT_EQ(z, expected(4, 0));
    EXPECT_EQ(list(a->getTensorShape("z")), Shape{0});
}

// Values come by address or by binding: what was set last counts, and null takes it back.
TEST_F(Values, TheLastSettingCounts)
{
    Context const c = contextOf(*engine);
    int32_t start = 1, size = 2, read = -1;
    c->setTensorAddress("x", x.data());
    c->setTensorAddress("z", z.data());
    c->setTensorAddress("start", &start);
    c->setTensorAddress("size", &size);
    ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
    EXPECT_EQ(z, expected(1, 2));
    ASSERT_TRUE(c->getShapeBinding(1, &read)) << m.errors();
    EXPECT_EQ(read, 1) << "values at an address can be asked for by binding";
    start = 3;
    ASSERT_TRUE(c->getShapeBinding(1, &read)) << m.errors();
    EXPECT_EQ(read, 3);
    int32_t const four = 4;
    ASSERT_TRUE(c->setInputShapeBinding(2, &four));
    EXPECT_EQ(list(c->getBindingDimensions(3)), Shape{4});
    z.assign(11, -7);
    ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
    EXPECT_EQ(z, expected(3, 4));
    size = 1;
    ASSERT_TRUE(c->setTensorAddress("size", &size));
    z.assign(11, -7);
    ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
    EXPECT_EQ(z, expected(3, 1));
    ASSERT_TRUE(c->setTensorAddress("size", nullptr));
    EXPECT_FALSE(c->allInputShapesSpecified());
    char const* missing[1] = {};
    EXPECT_EQ(c->inferShapes(1, missing), 1);
    EXPECT_STREQ(missing[0], "size");
    EXPECT_EQ(m.takeErrors(), "");
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_TRUE(m.oneError("'size'"));
}

// Addresses that are taken back are missing again.
TEST_F(Joined, NullIsNoAddress)
{
    Context const c = contextOf(*engine);
    ASSERT_TRUE(run(*c, 2)) << m.errors();
    std::vector<float> memory(64);
    for (char const* name : {"x", "y", "z"})
        c->setTensorAddress(name, memory.data());
    for (char const* name : {"x", "y", "z"}) {
        ASSERT_TRUE(c->setTensorAddress(name, nullptr));
        EXPECT_EQ(c->getTensorAddress(name), nullptr);
        EXPECT_FALSE(c->enqueueV3(nullptr));
        EXPECT_TRUE(m.oneError(("'" + std::string(name) + "'").c_str()));
        c->setTensorAddress(name, memory.data());
    }
    EXPECT_EQ(c->getOutputTensorAddress("y"), memory.data());
    EXPECT_EQ(c->getOutputTensorAddress("x"), nullptr);
    EXPECT_TRUE(m.oneError("'x' is an input"));
}

// An allocator for what the run decides: it is asked when the size is known, with one byte for none, and may refuse.
TEST(Allocators, OfSizesThatDataDecide)
{
    struct Allocator final : IOutputAllocator
    {
        void* reallocateOutput(char const*, void* current, uint64_t size, uint64_t) noexcept override
        {
            asked.push_back(size);
            had = current;
            return size > most ? nullptr : memory.data();
        }
        void notifyShape(char const*, Dims const& d) noexcept override { shape = list(d); }
        std::vector<uint64_t> asked;
        uint64_t most = 1000;
        void* had = nullptr;
        Shape shape;
        std::vector<int32_t> memory = std::vector<int32_t>(250);
    } allocator;
    Maker m;
    m.output(m.network->addNonZero(*m.input("x", {6}))->getOutput(0), "places");
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Context const c = contextOf(*engine);
    ASSERT_TRUE(c->setOutputAllocator("places", &allocator));
    EXPECT_EQ(c->getMaxOutputSize("places"), 6 * 4);
    std::vector<float> x(6, 0);
    auto run = [&] {
        allocator.asked.clear();
        allocator.shape = {-7};
        c->setTensorAddress("x", x.data());
        return c->enqueueV3(nullptr);
    };
    ASSERT_TRUE(run()) << m.errors();
    EXPECT_EQ(allocator.asked, std::vector<uint64_t>{1});
    EXPECT_EQ(allocator.shape, (Shape{1, 0}));
    x = {0, 1, 0, 2, 3, 0};
    allocator.most = 8;
    EXPECT_FALSE(run());
    EXPECT_TRUE(m.oneError("output 'places': its IOutputAllocator gave no memory for 12 bytes (shape [1,3])"));
    EXPECT_EQ(allocator.shape, Shape{-7});
    allocator.most = 12;
    ASSERT_TRUE(run()) << m.errors();
    EXPECT_EQ(allocator.had, allocator.memory.data()) << "what it gave the last time";
    EXPECT_EQ(allocator.shape, (Shape{1, 3}));
    EXPECT_EQ((std::vector<int32_t>{allocator.memory.begin(), allocator.memory.begin() + 3}), (Shape{1, 3, 4}));
    EXPECT_EQ(list(c->getTensorShape("places")), (Shape{1, -1})) << "a size of that run alone";
    // Memory of the client's, as large as getMaxOutputSize() says, is enough for any run.
    std::vector<int32_t> all(7, -7);
    c->setOutputAllocator("places", nullptr);
    EXPECT_FALSE(run());
    EXPECT_TRUE(m.oneError("'places'"));
    c->setTensorAddress("places", all.data());
    x = {1, 1, 1, 1, 1, 1};
    ASSERT_TRUE(run()) << m.errors();
    EXPECT_EQ(all, (Shape{0, 1, 2, 3, 4, 5, -7}));
}

// Limits beyond what the machine has are the client's to set; no tactic source is needed here.
TEST_F(Joined, LimitsThatLimitNothing)
{
    m.config->setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, std::numeric_limits<size_t>::max());
    EXPECT_EQ(m.config->getMemoryPoolLimit(MemoryPoolType::kWORKSPACE), std::numeric_limits<size_t>::max());
    ASSERT_TRUE(m.config->setTacticSources(0));
    EXPECT_EQ(m.config->getTacticSources(), 0U);
    auto const other = m.engine();
    ASSERT_TRUE(other) << m.errors();
    EXPECT_TRUE(run(*contextOf(*other), 3)) << m.errors();
    EXPECT_EQ(m.errors(), "");
}

// Memory for one context's activations, of which z here needs some: the client's, or an error at each run.
TEST_F(Joined, MemoryOfTheClientComesBeforeRuns)
{
    size_t const size = engine->getDeviceMemorySize();
    Context const c(engine->createExecutionContextWithoutDeviceMemory());
    ASSERT_TRUE(c);
    EXPECT_EQ(c->getOptimizationProfile(), 0) << "the first context";
    if (size == 0) {
        EXPECT_TRUE(run(*c, 2)) << m.errors();
        return;
    }
    EXPECT_FALSE(run(*c, 2));
    EXPECT_TRUE(m.oneError("setDeviceMemory"));
    std::vector<char> odd(size + 512);
    auto* const aligned = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(odd.data()) + 255) / 256 * 256);
    for (int shift : {1, 16, 128}) {
        c->setDeviceMemory(aligned + shift);
        EXPECT_TRUE(m.oneError("multiple of 256"));
        EXPECT_FALSE(run(*c, 2)) << "what was refused is not used";
        EXPECT_TRUE(m.oneError("setDeviceMemory"));
    }
    c->setDeviceMemory(aligned);
    for (int32_t profile : {2, 0, 1}) {
        ASSERT_TRUE(c->setOptimizationProfileAsync(profile, nullptr));
        EXPECT_TRUE(run(*c, profile == 2 ? 64 : 4)) << "memory is not the profile's: " << m.errors();
    }
}

} // namespace
