// SPDX-License-Identifier: Apache-2.0
// Runs: the five ways to start one, what must be given before, whose memory they use.
#include <cuda_runtime_api.h>

#include "engine/engines.h"

using namespace tw::test;

namespace {

// y = relu(relu(x) + x) and so on: enough steps that the arena is not empty. x: [4,8].
struct Runs : testing::Test
{
    Maker m;
    std::unique_ptr<ICudaEngine> engine;
    std::vector<float> x = ramp(32, -10), y = std::vector<float>(32, -1), expected;
    // Chain of matrix products with [8,8] matrices of ones / 8, so that nothing is fused away: every step gives the
    // mean of the row.
    std::vector<float> ones = std::vector<float>(64, 0.125F);
    void SetUp() override
    {
        ITensor* t = m.input("x", {4, 8});
        for (int i = 0; i < 3; ++i) {
            ITensor* w = m.network->addConstant(Dims2(8, 8), {DataType::kFLOAT, ones.data(), 64})->getOutput(0);
            t = m.network->addMatrixMultiply(*t, MatrixOperation::kNONE, *w, MatrixOperation::kNONE)->getOutput(0);
        }
        m.output(t, "y");
        engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        for (int r = 0; r < 4; ++r)
            for (int c = 0; c < 8; ++c)
                expected.push_back(-10.0F + float(r) * 8 + 3.5F);
    }
};

TEST_F(Runs, ExecuteV2)
{
    Context c = contextOf(*engine);
    void* bindings[] = {x.data(), y.data()};
    EXPECT_TRUE(c->executeV2(bindings));
    EXPECT_EQ(y, expected);
    EXPECT_FALSE(c->executeV2(nullptr));
    EXPECT_TRUE(m.oneError("bindings"));
    void* missing[] = {x.data(), nullptr};
    EXPECT_FALSE(c->executeV2(missing));
    EXPECT_TRUE(m.oneError("'y'"));
    missing[0] = nullptr;
    EXPECT_FALSE(c->executeV2(missing));
    EXPECT_TRUE(m.oneError("'x'"));
    EXPECT_FALSE(c->execute(1, bindings));
    EXPECT_TRUE(m.oneError("explicit batch"));
    EXPECT_FALSE(c->enqueue(1, bindings, nullptr, nullptr));
    EXPECT_TRUE(m.oneError("explicit batch"));
}

TEST_F(Runs, EnqueueV2RecordsTheEvent)
{
    Context c = contextOf(*engine);
    cudaStream_t stream{};
    cudaEvent_t event{};
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
    void* bindings[] = {x.data(), y.data()};
    EXPECT_TRUE(c->enqueueV2(bindings, stream, &event));
    cudaEvent_t late{};
    cudaEventCreate(&late);
    cudaEventRecord(late, stream);
    EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
    float ms = -1;
    EXPECT_EQ(cudaEventElapsedTime(&ms, event, late), cudaSuccess) << "it was recorded";
    EXPECT_GE(ms, 0);
    cudaStreamSynchronize(stream);
    EXPECT_EQ(y, expected);
    EXPECT_TRUE(c->enqueueV2(bindings, nullptr, nullptr));
    cudaEvent_t none = nullptr;
    EXPECT_TRUE(c->enqueueV2(bindings, stream, &none));
    EXPECT_EQ(m.takeErrors(), "");
    cudaEvent_t gone = event;
    cudaEventDestroy(event);
    EXPECT_FALSE(c->enqueueV2(bindings, stream, &gone));
    EXPECT_TRUE(m.oneError("event"));
    cudaEventDestroy(late);
    cudaStreamDestroy(stream);
    EXPECT_FALSE(c->enqueueV2(bindings, stream, nullptr));
    EXPECT_TRUE(m.oneError("stream"));
}

TEST_F(Runs, EnqueueV3)
{
    Context c = contextOf(*engine);
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_TRUE(m.oneError("'x'"));
    EXPECT_EQ(c->getTensorAddress("x"), nullptr);
    EXPECT_TRUE(c->setInputTensorAddress("x", x.data()));
    EXPECT_EQ(c->getTensorAddress("x"), x.data());
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_TRUE(m.oneError("'y'"));
    EXPECT_TRUE(c->setTensorAddress("y", y.data()));
    EXPECT_EQ(c->getOutputTensorAddress("y"), y.data());
    cudaEvent_t event{};
    cudaEventCreate(&event);
    EXPECT_EQ(c->getInputConsumedEvent(), nullptr);
    EXPECT_TRUE(c->setInputConsumedEvent(event));
    EXPECT_EQ(c->getInputConsumedEvent(), event);
    cudaStream_t stream{};
    cudaStreamCreate(&stream);
    EXPECT_TRUE(c->enqueueV3(stream));
    EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
    cudaStreamSynchronize(stream);
    EXPECT_EQ(y, expected);
    EXPECT_TRUE(c->setInputConsumedEvent(nullptr));
    EXPECT_TRUE(c->setTensorAddress("y", nullptr));
    EXPECT_FALSE(c->enqueueV3(stream));
    EXPECT_TRUE(m.oneError("'y'"));

    EXPECT_FALSE(c->setTensorAddress("z", y.data()));
    EXPECT_TRUE(m.oneError("'z'"));
    EXPECT_FALSE(c->setTensorAddress(nullptr, y.data()));
    EXPECT_TRUE(m.oneError("(null)"));
    EXPECT_FALSE(c->setInputTensorAddress("y", y.data()));
    EXPECT_TRUE(m.oneError("'y' is no input"));
    EXPECT_EQ(c->getOutputTensorAddress("x"), nullptr);
    EXPECT_TRUE(m.oneError("'x' is an input"));
    EXPECT_EQ(c->getTensorAddress("z"), nullptr);
    EXPECT_TRUE(m.oneError("'z'"));
    cudaEventDestroy(event);
    cudaStreamDestroy(stream);
}

// A limit of something that a CPU does not have: kept, and without effect.
TEST_F(Runs, PersistentCacheLimit)
{
    Context c(engine->createExecutionContext());
    ASSERT_TRUE(c);
    EXPECT_EQ(c->getPersistentCacheLimit(), 0U);
    for (size_t limit : {size_t(1) << 20, ~size_t(0), size_t(0)}) {
        c->setPersistentCacheLimit(limit);
        EXPECT_EQ(c->getPersistentCacheLimit(), limit);
        void* bindings[] = {x.data(), y.data()};
        EXPECT_TRUE(c->executeV2(bindings));
        EXPECT_EQ(y, expected);
    }
    Context other(engine->createExecutionContext());
    c->setPersistentCacheLimit(5);
    EXPECT_EQ(other->getPersistentCacheLimit(), 0U) << "each context has its own";
}

TEST_F(Runs, MemoryOfTheClient)
{
    size_t const size = engine->getDeviceMemorySize();
    ASSERT_GT(size, 0U);
    Context c(engine->createExecutionContextWithoutDeviceMemory());
    ASSERT_TRUE(c);
    void* bindings[] = {x.data(), y.data()};
    EXPECT_FALSE(c->executeV2(bindings));
    EXPECT_TRUE(m.oneError("setDeviceMemory"));
    void* memory = nullptr;
    constexpr size_t kGuard = 256;
    ASSERT_EQ(cudaMalloc(&memory, size + kGuard), cudaSuccess);
    std::memset(memory, 0x5a, size + kGuard);
    c->setDeviceMemory(static_cast<char*>(memory) + 16);
    EXPECT_TRUE(m.oneError("multiple of 256"));
    c->setDeviceMemory(memory);
    EXPECT_TRUE(c->executeV2(bindings));
    EXPECT_EQ(y, expected);
    for (size_t i = size; i < size + kGuard; ++i)
        ASSERT_EQ(static_cast<unsigned char*>(memory)[i], 0x5a) << "written past getDeviceMemorySize()";
    c->setDeviceMemory(nullptr);
    EXPECT_FALSE(c->executeV2(bindings));
    EXPECT_TRUE(m.oneError("setDeviceMemory"));
    // Two contexts may share it when they do not run at the same time.
    Context other(engine->createExecutionContextWithoutDeviceMemory());
    other->setDeviceMemory(memory);
    c->setDeviceMemory(memory);
    EXPECT_TRUE(other->executeV2(bindings));
    EXPECT_TRUE(c->executeV2(bindings));
    Context own = contextOf(*engine);
    own->setDeviceMemory(memory);
    EXPECT_TRUE(m.oneError("createExecutionContextWithoutDeviceMemory"));
    EXPECT_TRUE(own->executeV2(bindings));
    c.reset();
    other.reset();
    cudaFree(memory);
}

class CountingAllocator final : public IGpuAllocator
{
public:
    void* allocate(uint64_t size, uint64_t alignment, AllocatorFlags) noexcept override
    {
        if (refuse)
            return nullptr;
        EXPECT_EQ(alignment & (alignment - 1), 0U);
        EXPECT_GT(size, 0U);
        ++live;
        ++calls;
        bytes += size;
        auto* p = static_cast<char*>(std::aligned_alloc(4096, (size + 4095 + 4096) / 4096 * 4096));
        return p + offset;
    }
    void free(void* memory) noexcept override
    {
        if (memory) {
            --live;
            std::free(static_cast<char*>(memory) - offset);
        }
    }
    int live = 0, calls = 0;
    uint64_t bytes = 0;
    size_t offset = 0;
    bool refuse = false;
};

TEST_F(Runs, AllocatorOfTheRuntimeAndTheBuilder)
{
    std::unique_ptr<IHostMemory> const plan = m.plan();
    CountingAllocator a;
    {
        std::unique_ptr<IRuntime> runtime(createInferRuntime(m.logger));
        runtime->setGpuAllocator(&a);
        std::unique_ptr<ICudaEngine> e(runtime->deserializeCudaEngine(plan->data(), plan->size()));
        ASSERT_TRUE(e);
        runtime.reset();
        int const before = a.live;
        {
            Context c = contextOf(*e);
            EXPECT_EQ(a.live, before + 1);
            EXPECT_GE(a.bytes, e->getDeviceMemorySize());
            void* bindings[] = {x.data(), y.data()};
            int const calls = a.calls;
            EXPECT_TRUE(c->executeV2(bindings));
            EXPECT_TRUE(c->executeV2(bindings));
            EXPECT_EQ(a.calls, calls) << "a run allocates nothing";
            EXPECT_EQ(y, expected);
        }
        EXPECT_EQ(a.live, before);
        a.refuse = true;
        EXPECT_EQ(e->createExecutionContext(), nullptr);
        EXPECT_TRUE(m.oneError("IGpuAllocator gave no memory"));
        Context without(e->createExecutionContextWithoutDeviceMemory());
        EXPECT_TRUE(without);
        a.refuse = false;
        a.offset = 8;
        EXPECT_EQ(e->createExecutionContext(), nullptr);
        EXPECT_TRUE(m.oneError("not aligned"));
        EXPECT_EQ(a.live, before);
        a.offset = 0;
    }
    EXPECT_EQ(a.live, 0);
    m.builder->setGpuAllocator(&a);
    int const calls = a.calls;
    {
        std::unique_ptr<ICudaEngine> e(m.builder->buildEngineWithConfig(*m.network, *m.config));
        ASSERT_TRUE(e) << m.errors();
        Context c = contextOf(*e);
        EXPECT_GT(a.calls, calls);
    }
    EXPECT_EQ(a.live, 0);
    m.builder->setGpuAllocator(nullptr);
}

TEST(EmptyTensors, RunAndNeedAnAddress)
{
    Maker m;
    m.output(m.relu(m.input("x", {-1, 3})), "y");
    m.profile({{"x", {0, 3}, {1, 3}, {2, 3}}});
    std::unique_ptr<ICudaEngine> engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Context c = contextOf(*engine);
    ASSERT_TRUE(c->setInputShape("x", Dims2(0, 3)));
    EXPECT_EQ(list(c->getTensorShape("y")), (std::vector<int32_t>{0, 3}));
    EXPECT_EQ(c->getMaxOutputSize("y"), 0);
    char xByte = 1, yByte = 2;
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_TRUE(m.oneError("'x'"));
    c->setTensorAddress("x", &xByte);
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_TRUE(m.oneError("'y'"));
    c->setTensorAddress("y", &yByte);
    EXPECT_TRUE(c->enqueueV3(nullptr));
    EXPECT_EQ(yByte, 2);
    void* bindings[] = {&xByte, &yByte};
    EXPECT_TRUE(c->executeV2(bindings));
    bindings[0] = nullptr;
    EXPECT_FALSE(c->executeV2(bindings));
    EXPECT_TRUE(m.oneError("empty tensors need an address"));
}

} // namespace
