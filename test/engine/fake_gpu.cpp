// SPDX-License-Identifier: Apache-2.0
// Engines on fake GPUs (test/cuda/fake_cuda_driver.cpp): kernels do nothing there, but where memory comes
// from, in which context work is done, what a stream gets and what is said when something fails is as on others.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "NvInfer.h"
#include "api/client.h"
#include "engine/plugins.h"

struct CUctx_st;

namespace tw::test {

namespace {

using namespace nvinfer1;

template <class T>
T* onFake(char const* name)
{
    static void* const library = dlopen(TW_FAKE_DRIVER, RTLD_NOW);
    return library ? reinterpret_cast<T*>(dlsym(library, name)) : nullptr;
}
void setCurrent(CUctx_st* context)
{
    onFake<void(CUctx_st*)>("twFakeSetCurrent")(context);
}
CUctx_st* primary(int device)
{
    return onFake<CUctx_st*(int)>("twFakePrimary")(device);
}
CUctx_st* current()
{
    CUctx_st* context = nullptr;
    onFake<int(CUctx_st**)>("cuCtxGetCurrent")(&context);
    return context;
}
// What a test makes and does not give back itself: OnFakes does.
std::vector<void*> ownMemory;
std::vector<cudaStream_t> ownStreams;

cudaStream_t makeStream()
{
    cudaStream_t stream = nullptr;
    EXPECT_EQ(onFake<int(cudaStream_t*, unsigned)>("cuStreamCreate")(&stream, 0), 0);
    ownStreams.push_back(stream);
    return stream;
}
void* allocate(size_t bytes)
{
    uint64_t address = 0;
    EXPECT_EQ(onFake<int(uint64_t*, size_t)>("cuMemAlloc_v2")(&address, bytes), 0);
    return reinterpret_cast<void*>(address);
}
void* allocateOwn(size_t bytes)
{
    ownMemory.push_back(allocate(bytes));
    return ownMemory.back();
}

// Where it was called, and what it gave.
struct Allocator final : IGpuAllocator
{
    std::vector<CUctx_st*> allocations, releases;
    int left = 1000; // allocations before there is no more memory
    void* allocate(uint64_t bytes, uint64_t, AllocatorFlags) noexcept override
    {
        allocations.push_back(current());
        return left-- > 0 ? tw::test::allocate(bytes) : nullptr;
    }
    void free(void* memory) noexcept override
    {
        releases.push_back(current());
        onFake<int(uint64_t)>("cuMemFree_v2")(uint64_t(memory));
    }
    bool isAll(CUctx_st* context) const
    {
        auto const isIt = [&](CUctx_st* c) { return c == context; };
        return std::all_of(allocations.begin(), allocations.end(), isIt) &&
               std::all_of(releases.begin(), releases.end(), isIt);
    }
};

struct OutputOnDevice final : IOutputAllocator
{
    CUctx_st* where = nullptr;
    void* reallocateOutput(char const*, void*, uint64_t bytes, uint64_t) noexcept override
    {
        where = current();
        return allocateOwn(bytes);
    }
    void notifyShape(char const*, Dims const&) noexcept override {}
};

constexpr int kElements = 64;

// A plan of several layers, made on the CPU: on a GPU it runs by plain kernels.
class OnFakes : public testing::Test
{
protected:
    void SetUp() override
    {
        ASSERT_NE(onFake<int>("twFakeGpus"), nullptr) << dlerror();
        *onFake<int>("twFakeGpus") = 2;
        *onFake<int>("twFakeFailure") = 0;
        setCurrent(nullptr);
        setenv("TENSORWRIGHT_DEVICE", "cpu", 1);
        std::unique_ptr<IBuilder> const builder(createInferBuilder(logger));
        std::unique_ptr<INetworkDefinition> const network(builder->createNetworkV2(1U));
        ITensor* const x = network->addInput("x", DataType::kFLOAT, Dims2{-1, 16});
        ITensor* y = network->addActivation(*x, ActivationType::kRELU)->getOutput(0);
        y = network->addPoolingNd(*reshaped(*network, *y), PoolingType::kMAX, DimsHW{1, 1})->getOutput(0);
        y = network->addSoftMax(*y)->getOutput(0);
        y->setName("y");
        network->markOutput(*y);
        IOptimizationProfile* const profile = builder->createOptimizationProfile();
        for (auto const select : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
            profile->setDimensions("x", select, Dims2{select == OptProfileSelector::kMIN ? 1 : 4, 16});
        std::unique_ptr<IBuilderConfig> const config(builder->createBuilderConfig());
        config->addOptimizationProfile(profile);
        plan.reset(builder->buildSerializedNetwork(*network, *config));
        ASSERT_TRUE(plan) << logger.lastError();
        unsetenv("TENSORWRIGHT_DEVICE");
        setenv("TENSORWRIGHT_NVRTC", TW_NVRTC_RECORDER, 1);
        logger.lines.clear();
        runtime.reset(createInferRuntime(logger));
        ASSERT_TRUE(runtime) << logger.lastError();
    }
    void TearDown() override
    {
        runtime.reset();
        for (void* memory : std::exchange(ownMemory, {}))
            onFake<int(uint64_t)>("cuMemFree_v2")(uint64_t(memory));
        for (cudaStream_t stream : std::exchange(ownStreams, {}))
            onFake<int(cudaStream_t)>("cuStreamDestroy_v2")(stream);
    }
    static ITensor* reshaped(INetworkDefinition& network, ITensor& x)
    {
        IShuffleLayer* const s = network.addShuffle(x);
        s->setReshapeDimensions(Dims4{-1, 4, 4, 1});
        return s->getOutput(0);
    }
    std::unique_ptr<ICudaEngine> load()
    {
        std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
        EXPECT_TRUE(engine) << logger.lastError();
        return engine;
    }
    static void give(IExecutionContext& c, int batch = 4)
    {
        EXPECT_TRUE(c.setInputShape("x", Dims2{batch, 16}));
        c.setTensorAddress("x", allocateOwn(kElements * sizeof(float)));
        c.setTensorAddress("y", allocateOwn(kElements * sizeof(float)));
    }
    static int launches() { return *onFake<int>("twFakeLaunches"); }

    KeepingLogger logger;
    std::unique_ptr<IHostMemory> plan;
    std::unique_ptr<IRuntime> runtime;
};

} // namespace

TEST_F(OnFakes, EnginesStayOnTheGpuThatWasCurrentAtTheirLoad)
{
    Allocator allocator;
    runtime->setGpuAllocator(&allocator);
    setCurrent(primary(1));
    {
        auto const engine = load();
        setCurrent(primary(0));
        std::unique_ptr<IExecutionContext> const c(engine->createExecutionContext());
        ASSERT_TRUE(c);
        std::thread([&] { // where nothing is current
            std::unique_ptr<IExecutionContext> const other(engine->createExecutionContext());
            EXPECT_TRUE(other);
        })
            .join();
        give(*c);
        OutputOnDevice output;
        c->setOutputAllocator("y", &output);
        int const before = launches();
        EXPECT_TRUE(c->enqueueV3(nullptr)) << logger.lastError();
        EXPECT_GT(launches(), before);
        EXPECT_EQ(output.where, primary(1));
        EXPECT_EQ(current(), primary(0)) << "what was current is so again";
    }
    EXPECT_GE(allocator.allocations.size(), 3U);
    EXPECT_EQ(allocator.allocations.size(), allocator.releases.size());
    EXPECT_TRUE(allocator.isAll(primary(1)));
    EXPECT_EQ(logger.errors(), 0);
}

// cuCtxCreate: streams and memory of such a context are of no use in the primary one.
TEST_F(OnFakes, ContextsOfTheClientsOwnMaking)
{
    CUctx_st* const own = onFake<CUctx_st*(int)>("twFakeContext")(1);
    int const primaries = *onFake<int>("twFakePrimaries");
    setCurrent(own);
    Allocator allocator;
    runtime->setGpuAllocator(&allocator);
    {
        auto const engine = load();
        std::unique_ptr<IExecutionContext> const c(engine->createExecutionContext());
        give(*c);
        int const before = launches();
        EXPECT_TRUE(c->enqueueV3(makeStream())) << logger.lastError();
        EXPECT_GT(launches(), before);
        setCurrent(nullptr);
        EXPECT_TRUE(c->enqueueV3(nullptr)) << "the engine knows its context";
        // A stream of another context is refused by the driver.
        setCurrent(primary(1));
        EXPECT_FALSE(c->enqueueV3(makeStream()));
        EXPECT_TRUE(contains(logger.lastError(), "cuLaunchKernel")) << logger.lastError();
    }
    EXPECT_TRUE(allocator.isAll(own));
    // A runtime that is made there is of that context, too.
    setCurrent(own);
    runtime.reset();
    runtime.reset(createInferRuntime(logger));
    setCurrent(nullptr);
    {
        auto const engine = load();
        setCurrent(own);
        cudaStream_t const stream = makeStream();
        setCurrent(nullptr);
        std::unique_ptr<IExecutionContext> const c(engine->createExecutionContext());
        give(*c);
        EXPECT_TRUE(c->enqueueV3(stream)) << logger.lastError();
        setCurrent(primary(1));
        auto const other = load(); // where it is current now
        std::unique_ptr<IExecutionContext> const there(other->createExecutionContext());
        give(*there);
        EXPECT_TRUE(there->enqueueV3(makeStream())) << logger.lastError();
        EXPECT_FALSE(there->enqueueV3(stream));
    }
    runtime.reset();
    onFake<void(CUctx_st*)>("twFakeEndContext")(own);
    EXPECT_LE(*onFake<int>("twFakePrimaries"), primaries) << "none is held for clients with contexts of their own";
}

// New weights go to memory of their own; the old one is given back when no context needs it any more, what has not
// changed stays where it is, and all of it in the engine's context.
TEST_F(OnFakes, RefitsGiveTheOldMemoryBack)
{
    constexpr int kWeights = 1024;
    std::vector<float> first(kWeights, 1), second(kWeights, 2), third(16, 3);
    setenv("TENSORWRIGHT_DEVICE", "cpu", 1);
    {
        std::unique_ptr<IBuilder> const builder(createInferBuilder(logger));
        std::unique_ptr<INetworkDefinition> const network(builder->createNetworkV2(1U));
        ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2{4, 16});
        auto constant = [&](char const* name, Dims2 d, std::vector<float> const& v) {
            IConstantLayer* const c =
                network->addConstant(d, Weights{DataType::kFLOAT, v.data(), int64_t(d.d[0]) * d.d[1]});
            c->setName(name);
            return c->getOutput(0);
        };
        x = network
                ->addMatrixMultiply(*x, MatrixOperation::kNONE, *constant("w", Dims2{16, 64}, first),
                                    MatrixOperation::kNONE)
                ->getOutput(0);
        x = network
                ->addMatrixMultiply(*x, MatrixOperation::kNONE, *constant("v", Dims2{64, 16}, second),
                                    MatrixOperation::kNONE)
                ->getOutput(0);
        x = network->addElementWise(*x, *constant("b", Dims2{1, 16}, third), ElementWiseOperation::kSUM)->getOutput(0);
        x->setName("y");
        network->markOutput(*x);
        std::unique_ptr<IBuilderConfig> const config(builder->createBuilderConfig());
        config->setFlag(BuilderFlag::kREFIT);
        plan.reset(builder->buildSerializedNetwork(*network, *config));
        ASSERT_TRUE(plan) << logger.lastError();
    }
    unsetenv("TENSORWRIGHT_DEVICE");
    Allocator allocator;
    runtime->setGpuAllocator(&allocator);
    setCurrent(primary(1));
    {
        auto const engine = load();
        std::unique_ptr<IExecutionContext> const c(engine->createExecutionContext());
        c->setTensorAddress("x", allocateOwn(kElements * sizeof(float)));
        c->setTensorAddress("y", allocateOwn(kElements * sizeof(float)));
        EXPECT_TRUE(c->enqueueV3(nullptr)) << logger.lastError();
        setCurrent(primary(0));
        auto live = [&] { return allocator.allocations.size() - allocator.releases.size(); };
        std::unique_ptr<IRefitter> const refitter(createInferRefitter(*engine, logger));
        ASSERT_TRUE(refitter) << logger.lastError();
        auto refit = [&](char const* layer, std::vector<float> const& v) {
            EXPECT_TRUE(refitter->setWeights(layer, WeightsRole::kCONSTANT,
                                             Weights{DataType::kFLOAT, v.data(), int64_t(v.size())}));
            EXPECT_TRUE(refitter->refitCudaEngine()) << logger.lastError();
            int const before = launches();
            EXPECT_TRUE(c->enqueueV3(nullptr)) << logger.lastError();
            EXPECT_GT(launches(), before);
        };
        refit("w", second);
        refit("v", first);
        refit("b", third);
        size_t const now = live();
        for (int i = 0; i < 4; ++i) {
            refit("w", first);
            refit("v", second);
            refit("b", third);
        }
        EXPECT_EQ(live(), now);
        EXPECT_EQ(current(), primary(0));
        // Without memory nothing changes, and the engine runs on.
        allocator.left = 0;
        EXPECT_TRUE(
            refitter->setWeights("w", WeightsRole::kCONSTANT, Weights{DataType::kFLOAT, first.data(), kWeights}));
        EXPECT_FALSE(refitter->refitCudaEngine());
        EXPECT_EQ(live(), now + 1) << "the one that there was no memory for";
        EXPECT_TRUE(c->enqueueV3(nullptr)) << logger.lastError();
    }
    EXPECT_EQ(allocator.allocations.size(), allocator.releases.size() + 1) << "the one that there was no memory for";
    EXPECT_TRUE(allocator.isAll(primary(1)));
}

TEST_F(OnFakes, FailuresReachTheRecorder)
{
    setCurrent(primary(0));
    auto const engine = load();
    std::unique_ptr<IExecutionContext> const c(engine->createExecutionContext());
    CountingRecorder recorder;
    c->setErrorRecorder(&recorder);
    give(*c);
    *onFake<int>("twFakeFailure") = 719;
    EXPECT_FALSE(c->enqueueV3(nullptr));
    ASSERT_EQ(recorder.getNbErrors(), 1);
    EXPECT_EQ(recorder.getErrorCode(0), nvinfer1::ErrorCode::kFAILED_EXECUTION);
    EXPECT_TRUE(contains(recorder.getErrorDesc(0), "layer '")) << recorder.getErrorDesc(0);
    EXPECT_TRUE(contains(recorder.getErrorDesc(0), "cuLaunchKernel")) << recorder.getErrorDesc(0);
    *onFake<int>("twFakeFailure") = 0;
    EXPECT_TRUE(c->enqueueV3(nullptr)) << "the context can be used on";
    c->setErrorRecorder(nullptr);
}

TEST_F(OnFakes, AllocatorsWithoutMemory)
{
    setCurrent(primary(0));
    for (int left = 0;; ++left) {
        ASSERT_LT(left, 10);
        Allocator allocator;
        allocator.left = left;
        runtime->setGpuAllocator(&allocator);
        logger.lines.clear();
        {
            std::unique_ptr<ICudaEngine> const engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
            std::unique_ptr<IExecutionContext> const c(engine ? engine->createExecutionContext() : nullptr);
            if (c)
                break;
            EXPECT_EQ(logger.errors(), 1);
            EXPECT_TRUE(contains(logger.lastError(), "the IGpuAllocator gave no memory for")) << logger.lastError();
        }
        EXPECT_EQ(allocator.releases.size(), size_t(left)) << "what it gave goes back";
    }
    runtime->setGpuAllocator(nullptr);
}

TEST_F(OnFakes, DeviceMemoryOfTheClient)
{
    setCurrent(primary(0));
    auto const engine = load();
    std::unique_ptr<IExecutionContext> const c(engine->createExecutionContextWithoutDeviceMemory());
    give(*c);
    ASSERT_GT(engine->getDeviceMemorySize(), 0U);
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_TRUE(contains(logger.lastError(), "setDeviceMemory")) << logger.lastError();
    alignas(256) static char onTheHost[1 << 16];
    logger.lines.clear();
    c->setDeviceMemory(onTheHost);
    EXPECT_TRUE(contains(logger.lastError(), "host memory")) << logger.lastError();
    EXPECT_FALSE(c->enqueueV3(nullptr)) << "the kernels would write there";
    c->setDeviceMemory(allocateOwn(engine->getDeviceMemorySize()));
    EXPECT_TRUE(c->enqueueV3(nullptr)) << logger.lastError();
}

TEST_F(OnFakes, ProfilesOfCapturedRuns)
{
    struct Profiler final : IProfiler
    {
        int calls = 0;
        void reportLayerTime(char const*, float ms) noexcept override
        {
            ++calls;
            EXPECT_GE(ms, 0);
        }
    } p;
    setCurrent(primary(0));
    auto const engine = load();
    std::unique_ptr<IExecutionContext> const c(engine->createExecutionContext());
    give(*c);
    cudaStream_t const stream = makeStream();
    auto const capture = [&] {
        onFake<void(cudaStream_t)>("twFakeBeginCapture")(stream);
        EXPECT_TRUE(c->enqueueV3(stream)) << logger.lastError();
        EXPECT_EQ(onFake<int(cudaStream_t)>("twFakeEndCapture")(stream), 0);
    };
    auto const launch = onFake<void(cudaStream_t)>("twFakeLaunchGraph");
    c->setProfiler(&p);
    int const layers = engine->getNbLayers();
    ASSERT_GT(layers, 1);
    ASSERT_TRUE(c->enqueueV3(stream));
    EXPECT_EQ(p.calls, layers);
    EXPECT_TRUE(c->reportToProfiler());
    EXPECT_EQ(p.calls, layers) << "enqueueV3() has told already";
    capture();
    EXPECT_FALSE(c->reportToProfiler()) << "the graph has not run";
    EXPECT_EQ(p.calls, layers);
    launch(stream);
    EXPECT_TRUE(c->reportToProfiler());
    EXPECT_EQ(p.calls, 2 * layers);
    c->setEnqueueEmitsProfile(false);
    ASSERT_TRUE(c->enqueueV3(stream));
    EXPECT_EQ(p.calls, 2 * layers);
    EXPECT_TRUE(c->reportToProfiler());
    EXPECT_EQ(p.calls, 3 * layers);
    // Without a profiler a captured run takes no events along.
    c->setProfiler(nullptr);
    capture();
    EXPECT_FALSE(c->reportToProfiler());
}

// What was captured can be captured, or the client's capture ends with an error.
TEST_F(OnFakes, CapturesThatAreRefused)
{
    setCurrent(primary(0));
    auto const engine = load();
    std::unique_ptr<IExecutionContext> const c(engine->createExecutionContext());
    give(*c);
    cudaStream_t const stream = makeStream();
    char* const odd = static_cast<char*>(allocateOwn((kElements + 4) * sizeof(float))) + sizeof(float);
    c->setTensorAddress("x", odd);
    onFake<void(cudaStream_t)>("twFakeBeginCapture")(stream);
    EXPECT_FALSE(c->enqueueV3(stream));
    EXPECT_TRUE(contains(logger.lastError(), "the address of tensor 'x' is no multiple of 16")) << logger.lastError();
    EXPECT_NE(onFake<int(cudaStream_t)>("twFakeEndCapture")(stream), 0);
    EXPECT_TRUE(c->enqueueV3(stream)) << "outside of it, on a copy";
}

// Kernels that are not in the plan have to be compiled.
TEST_F(OnFakes, PlansOfOtherMachinesNeedTheCompiler)
{
    setCurrent(primary(0));
    setenv("TENSORWRIGHT_NVRTC", "/nowhere/libnvrtc.so", 1);
    runtime.reset(createInferRuntime(logger));
    EXPECT_EQ(runtime->deserializeCudaEngine(plan->data(), plan->size()), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "layer '")) << logger.lastError();
    EXPECT_TRUE(contains(logger.lastError(), "NVRTC, the compiler for CUDA kernels, is not at /nowhere"))
        << logger.lastError();
}

// A plugin gets the stream, addresses of the GPU, and the context of the engine's GPU in every call.
TEST_F(OnFakes, PluginsWorkOnTheGpu)
{
    Behaviour b;
    Record& record = *b.record;
    std::vector<CUctx_st*> where;
    cudaStream_t given = nullptr;
    std::vector<void const*> addresses;
    b.run = [&](std::vector<Dims> const&, void const* const* in, void* const* out, void*, cudaStream_t stream) {
        addresses = {in[0], out[0]};
        given = stream;
        return 0;
    };
    b.onCall = [&] { where.push_back(current()); };
    RecordedCreator<DynamicPlugin> creator(b);
    setenv("TENSORWRIGHT_DEVICE", "cpu", 1);
    {
        Maker m;
        ITensor* x = m.input("x", {4, 16});
        DynamicPlugin plugin(b, 1);
        m.output(m.network->addPluginV2(&x, 1, plugin)->getOutput(0), "y");
        plan = m.plan();
        ASSERT_TRUE(plan) << m.errors();
    }
    unsetenv("TENSORWRIGHT_DEVICE");
    setCurrent(primary(1));
    where.clear();
    record.calls.clear();
    auto engine = load();
    ASSERT_TRUE(engine);
    cudaStream_t const stream = makeStream();
    void *const in = allocateOwn(kElements * sizeof(float)), *const out = allocateOwn(kElements * sizeof(float));
    setCurrent(nullptr);
    std::unique_ptr<IExecutionContext> c(engine->createExecutionContext());
    ASSERT_TRUE(c) << logger.lastError();
    ASSERT_TRUE(c->setTensorAddress("x", in) && c->setTensorAddress("y", out));
    for (int i = 0; i < 3; ++i)
        ASSERT_TRUE(c->enqueueV3(stream)) << logger.lastError();
    EXPECT_EQ(given, stream);
    EXPECT_EQ(addresses, (std::vector<void const*>{in, out}));
    EXPECT_EQ(record.count("enqueue"), 3) << "each run: none is replayed";
    c.reset();
    engine.reset();
    EXPECT_EQ(current(), nullptr);
    ASSERT_FALSE(where.empty());
    for (CUctx_st* at : where)
        EXPECT_EQ(at, primary(1));
    EXPECT_EQ(record.living, 0);
}

} // namespace tw::test
