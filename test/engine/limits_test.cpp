// SPDX-License-Identifier: Apache-2.0
// Memory pools and their limits, memory of several profiles, temporary memory, preview features, and the settings of a
// context that change nothing on a CPU.
#include <algorithm>
#include <limits>

#include <cuda_runtime_api.h>

#include "engine/engines.h"

using namespace tw::test;

namespace {

// y = relu(conv(x)): x [-1,2,6,6]; profiles of small and of large batches.
struct Images : testing::Test
{
    Maker m;
    std::vector<float> filters = ramp(4 * 2 * 9, -30);
    std::unique_ptr<ICudaEngine> engine;
    void SetUp() override
    {
        ITensor* x = m.input("x", {-1, 2, 6, 6});
        IConvolutionLayer* first =
            m.network->addConvolutionNd(*x, 4, Dims2(3, 3), {DataType::kFLOAT, filters.data(), int64_t(filters.size())},
                                        {DataType::kFLOAT, nullptr, 0});
        ISoftMaxLayer* y = m.network->addSoftMax(*m.relu(first->getOutput(0)));
        m.output(y->getOutput(0), "y");
        m.profile({{"x", {1, 2, 6, 6}, {1, 2, 6, 6}, {2, 2, 6, 6}}});
        m.profile({{"x", {1, 2, 6, 6}, {16, 2, 6, 6}, {64, 2, 6, 6}}});
    }
    std::vector<float> run(IExecutionContext& c, int32_t batch, cudaStream_t stream = nullptr)
    {
        std::vector<float> x = ramp(size_t(batch) * 72, -40), y(size_t(batch) * 64, -7);
        for (float& v : x)
            v = v * 0.001F;
        EXPECT_TRUE(c.setInputShape("x", Dims4(batch, 2, 6, 6)));
        c.setTensorAddress("x", x.data());
        c.setTensorAddress("y", y.data());
        EXPECT_TRUE(c.enqueueV3(stream)) << m.errors();
        cudaStreamSynchronize(stream);
        return y;
    }
    // Equal but for what another order of sums does.
    static void expectNear(std::vector<float> const& a, std::vector<float> const& b)
    {
        ASSERT_EQ(a.size(), b.size());
        for (size_t i = 0; i < a.size(); ++i)
            ASSERT_NEAR(a[i], b[i], 1e-6);
    }
};

// One memory serves every profile: its size is that of the largest.
TEST_F(Images, MemoryOfTheClientIsEnoughForEveryProfile)
{
    engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Context const own = contextOf(*engine);
    ASSERT_TRUE(own->setOptimizationProfileAsync(1, nullptr));
    std::vector<float> const many = run(*own, 64), few = run(*own, 2);
    constexpr size_t kGuard = 256;
    size_t const size = engine->getDeviceMemorySize();
    char* memory = nullptr;
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory), size + kGuard), cudaSuccess);
    std::memset(memory, 0x5a, size + kGuard);
    Context const c(engine->createExecutionContextWithoutDeviceMemory());
    ASSERT_TRUE(c);
    ASSERT_TRUE(c->setOptimizationProfileAsync(0, nullptr)) << "the other context has profile 1";
    c->setDeviceMemory(memory);
    expectNear(run(*c, 2), few);
    own->setOptimizationProfileAsync(0, nullptr);
    EXPECT_TRUE(m.oneError("profile 0 is in use"));
    std::unique_ptr<IExecutionContext> third(engine->createExecutionContextWithoutDeviceMemory());
    EXPECT_FALSE(third->setOptimizationProfileAsync(1, nullptr));
    EXPECT_TRUE(m.oneError("profile 1 is in use"));
    third->setDeviceMemory(memory);
    EXPECT_EQ(third->getOptimizationProfile(), -1);
    const_cast<Context&>(own).reset();
    ASSERT_TRUE(third->setOptimizationProfileAsync(1, nullptr));
    expectNear(run(*third, 64), many);
    for (size_t i = size; i < size + kGuard; ++i)
        ASSERT_EQ(memory[i], 0x5a) << "written past getDeviceMemorySize()";
    third.reset();
    cudaFree(memory);
}

// Profiles are switched on the stream that the runs are on; what is set for one of them is forgotten by the next.
TEST_F(Images, SwitchingProfilesOnAStream)
{
    engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Context const c = contextOf(*engine);
    cudaStream_t stream{};
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    std::vector<float> const two = run(*c, 2, stream);
    for (int round = 0; round < 3; ++round) {
        ASSERT_TRUE(c->setOptimizationProfileAsync(1, stream));
        EXPECT_EQ(c->getOptimizationProfile(), 1);
        EXPECT_FALSE(c->allInputDimensionsSpecified());
        EXPECT_FALSE(c->enqueueV3(stream));
        EXPECT_TRUE(m.oneError("'x'"));
        std::vector<float> const many = run(*c, 64, stream);
        expectNear({many.begin(), many.begin() + 128}, two);
        ASSERT_TRUE(c->setOptimizationProfileAsync(0, stream));
        EXPECT_FALSE(c->setInputShape("x", Dims4(3, 2, 6, 6)));
        EXPECT_TRUE(m.oneError("outside 1..2 of optimization profile 0"));
        EXPECT_EQ(run(*c, 2, stream), two);
        ASSERT_TRUE(c->setOptimizationProfileAsync(0, stream)) << "the one that it has";
    }
    cudaStreamDestroy(stream);
    EXPECT_EQ(m.errors(), "");
}

// A limit excludes kernels, with a line that says so, and the plain one remains.
TEST_F(Images, WorkspaceOfTheClient)
{
    m.config->setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, 0);
    engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    std::vector<float> const without = run(*contextOf(*engine), 2);
    m.config->setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, size_t(1) << 30);
    engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    expectNear(run(*contextOf(*engine), 2), without);
    EXPECT_EQ(m.errors(), "");
}

TEST_F(Images, PoolsOfDevicesThatAreNotThereSayNothing)
{
    m.config->setMemoryPoolLimit(MemoryPoolType::kDLA_MANAGED_SRAM, 4096);
    m.config->setMemoryPoolLimit(MemoryPoolType::kDLA_LOCAL_DRAM, 4096);
    m.config->setMemoryPoolLimit(MemoryPoolType::kDLA_GLOBAL_DRAM, 4096);
    m.config->setFlag(BuilderFlag::kGPU_FALLBACK);
    engine = m.engine();
    EXPECT_TRUE(engine) << m.errors();
    EXPECT_EQ(m.errors(), "");
}

TEST_F(Images, PreviewFeaturesGiveTheSameNumbers)
{
    engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    std::vector<float> const plain = run(*contextOf(*engine), 2);
    PreviewFeature const all[] = {PreviewFeature::kFASTER_DYNAMIC_SHAPES_0805,
                                  PreviewFeature::kDISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805};
    for (PreviewFeature const feature : all) {
        m.config->setPreviewFeature(feature, true);
        engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        expectNear(run(*contextOf(*engine), 2), plain);
    }
    EXPECT_EQ(m.errors(), "");
}

TEST_F(Images, SettingsOfAContext)
{
    engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Context const c = contextOf(*engine);
    std::vector<float> const plain = run(*c, 1);
    EXPECT_FALSE(c->getDebugSync());
    c->setDebugSync(true);
    EXPECT_TRUE(c->getDebugSync());
    EXPECT_EQ(run(*c, 1), plain);
    EXPECT_TRUE(c->getEnqueueEmitsProfile());
    EXPECT_STREQ(c->getName(), "");
    c->setName("context of images");
    EXPECT_STREQ(c->getName(), "context of images");
    EXPECT_EQ(&c->getEngine(), engine.get());
    EXPECT_EQ(m.errors(), "");
}

// Memory that only some shapes need may come from elsewhere.
TEST_F(Images, TemporaryMemory)
{
    struct Temporary final : IGpuAllocator
    {
        void* allocate(uint64_t size, uint64_t alignment, AllocatorFlags) noexcept override
        {
            ++live;
            return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
        }
        void free(void* memory) noexcept override
        {
            live -= memory != nullptr;
            std::free(memory);
        }
        int live = 0;
    } temporary, other;
    engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    {
        Context const c = contextOf(*engine);
        EXPECT_EQ(c->getTemporaryStorageAllocator(), nullptr);
        std::vector<float> const plain = run(*c, 2);
        ASSERT_TRUE(c->setTemporaryStorageAllocator(&temporary));
        EXPECT_EQ(c->getTemporaryStorageAllocator(), &temporary);
        EXPECT_EQ(run(*c, 2), plain);
        EXPECT_EQ(run(*c, 1).size(), 64U);
        ASSERT_TRUE(c->setTemporaryStorageAllocator(&other));
        EXPECT_EQ(temporary.live, 0) << "given back when another takes its place";
        EXPECT_EQ(run(*c, 1).size(), 64U);
        ASSERT_TRUE(c->setTemporaryStorageAllocator(nullptr));
        EXPECT_EQ(c->getTemporaryStorageAllocator(), nullptr);
        EXPECT_EQ(other.live, 0);
        EXPECT_EQ(run(*c, 2), plain);
    }
    EXPECT_EQ(m.errors(), "");
}

// ---- numbers that layers take

TEST(LayerLimits, MostElementsOfATopK)
{
    for (int32_t k : {3840, 3841}) {
        Maker m;
        ITensor* x = m.input("x", {1, 4000});
        ITopKLayer* l = m.network->addTopK(*x, TopKOperation::kMAX, k, 2);
        if (l)
            m.output(l->getOutput(0), "y");
        auto const engine = l ? m.engine() : nullptr;
        EXPECT_EQ(engine != nullptr, k == 3840);
        if (!engine) {
            EXPECT_TRUE(contains(m.errors(), "3841") && contains(m.errors(), "3840")) << m.errors();
        }
    }
}

TEST(LayerLimits, WindowsOfLrn)
{
    for (int32_t window : {1, 15, 16, 17, 2, 0, -1}) {
        Maker m;
        ILRNLayer* l = m.network->addLRN(*m.input("x", {1, 4, 2, 2}), window, 1, 1, 1);
        if (l)
            m.output(l->getOutput(0), "y");
        auto const engine = l ? m.engine() : nullptr;
        EXPECT_EQ(engine != nullptr, window == 1 || window == 15) << window;
        if (!engine) {
            EXPECT_TRUE(contains(m.errors(), "15")) << m.errors();
        }
    }
}

// A shape tensor has 64 elements at most; a sum of more is data, like any other.
TEST(ShapeValues, AsManyAsAShapeTensorHas)
{
    for (int32_t count : {64, 65}) {
        Maker m;
        std::vector<int32_t> const twos(size_t(count), 2), threes(size_t(count), 3);
        ITensor* s = m.input("s", {count}, DataType::kINT32);
        // y has as many elements as s in sum.
        IReduceLayer* sum = m.network->addReduce(*s, ReduceOperation::kSUM, 1, true);
        IFillLayer* y = m.network->addFill(dims({1}), FillOperation::kRANDOM_UNIFORM);
        y->setInput(0, *sum->getOutput(0));
        m.output(y->getOutput(0), "y");
        EXPECT_EQ(s->isShapeTensor(), count == 64);
        IOptimizationProfile* p = m.profile({}, {{"s", twos, twos, threes}});
        EXPECT_EQ(p->getNbShapeValues("s"), count == 64 ? 64 : -1);
        EXPECT_EQ(contains(m.takeErrors(), "a shape tensor has 0 to 64 elements"), count == 65);
        auto const engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        EXPECT_EQ(engine->isShapeInferenceIO("s"), count == 64);
        Context const c = contextOf(*engine);
        std::vector<int32_t> values = twos;
        values.back() = 3;
        std::vector<float> out(256, -7);
        c->setTensorAddress("s", values.data());
        c->setTensorAddress("y", out.data());
        EXPECT_EQ(list(c->getTensorShape("y")), count == 64 ? (Shape{129}) : (Shape{-1})) << m.errors();
        ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
        EXPECT_GE(out[size_t(2 * count)], 0);
        EXPECT_EQ(out[size_t(2 * count + 1)], -7);
    }
}

// Values may be negative and as large as an INT32; one of the points is what the run has to be between.
TEST(ShapeValues, AnyIntegers)
{
    constexpr int32_t kLow = std::numeric_limits<int32_t>::min(), kHigh = std::numeric_limits<int32_t>::max();
    Maker m;
    ITensor* x = m.input("x", {8});
    ITensor* start = m.input("start", {1}, DataType::kINT32);
    ISliceLayer* y = m.network->addSlice(*x, dims({0}), dims({4}), dims({1}));
    y->setInput(1, *start);
    y->setMode(SliceMode::kCLAMP);
    m.output(y->getOutput(0), "y");
    m.profile({}, {{"start", {kLow}, {-1}, {kHigh}}});
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    int32_t const* highest =
        engine->getProfileShapeValues(0, engine->getBindingIndex("start"), OptProfileSelector::kMAX);
    ASSERT_TRUE(highest);
    EXPECT_EQ(*highest, kHigh);
    Context const c = contextOf(*engine);
    std::vector<float> in = ramp(8), out(4);
    int32_t at = 0;
    c->setTensorAddress("x", in.data());
    c->setTensorAddress("y", out.data());
    c->setInputTensorAddress("start", &at);
    for (auto const& [value, expected] : std::vector<std::pair<int32_t, std::vector<float>>>{
             {2, {2, 3, 4, 5}}, {-2, {0, 0, 0, 1}}, {6, {6, 7, 7, 7}}, {kLow, {0, 0, 0, 0}}, {kHigh, {7, 7, 7, 7}}}) {
        at = value;
        ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
        EXPECT_EQ(out, expected) << value;
    }
}

// The state of random numbers belongs to the context and goes on with each run.
TEST(RandomFills, GoOnInEachContext)
{
    Maker m;
    IFillLayer* fill = m.network->addFill(dims({16}), FillOperation::kRANDOM_UNIFORM);
    m.output(fill->getOutput(0), "y");
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Context const a = contextOf(*engine), b = contextOf(*engine);
    auto run = [&](IExecutionContext& c) {
        std::vector<float> y(16, -7);
        c.setTensorAddress("y", y.data());
        EXPECT_TRUE(c.enqueueV3(nullptr)) << m.errors();
        for (float v : y)
            EXPECT_TRUE(v >= 0 && v < 1) << v;
        return y;
    };
    std::vector<float> const first = run(*a), second = run(*a);
    EXPECT_NE(first, second);
    EXPECT_EQ(run(*b), first) << "one context's runs do not move another's numbers";
    EXPECT_EQ(run(*b), second);
    EXPECT_NE(run(*a), second);
}

// Tensors become shape tensors when a layer that needs a shape is put behind them.
TEST(ShapeTensorsOfANetwork, ChangeAsItGrows)
{
    Maker m;
    ITensor* a = m.input("a", {2}, DataType::kINT32);
    ITensor* b = m.input("b", {2}, DataType::kINT32);
    ITensor* sum = m.add(a, b);
    for (ITensor const* t : {a, b, sum}) {
        EXPECT_FALSE(t->isShapeTensor());
        EXPECT_TRUE(t->isExecutionTensor());
    }
    IShuffleLayer* l = m.network->addShuffle(*m.input("x", {-1, -1}));
    l->setInput(1, *sum);
    for (ITensor const* t : {a, b, sum})
        EXPECT_TRUE(t->isShapeTensor());
    EXPECT_FALSE(l->getOutput(0)->isShapeTensor());
    EXPECT_TRUE(l->getOutput(0)->isExecutionTensor());
}

// What the network gives for a scalar's shape: a vector of no elements.
TEST(ShapeTensorsOfANetwork, ShapeOfAScalar)
{
    Maker m;
    ITensor* shape = m.network->addShape(*m.input("x", {}))->getOutput(0);
    EXPECT_EQ(list(shape->getDimensions()), (Shape{0}));
    shape->setName("shape");
    ASSERT_TRUE(m.network->markOutputForShapes(*shape)) << m.errors();
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Context const c = contextOf(*engine);
    EXPECT_EQ(list(c->getTensorShape("shape")), (Shape{0}));
    float x = 1;
    int32_t none = -7;
    c->setTensorAddress("x", &x);
    c->setTensorAddress("shape", &none);
    EXPECT_TRUE(c->enqueueV3(nullptr)) << m.errors();
    EXPECT_EQ(none, -7);
}

} // namespace
