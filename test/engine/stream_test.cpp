// SPDX-License-Identifier: Apache-2.0
// Runs in the client's streams: order with copies, events between streams, capture and replay in a CUDA graph.
#include <cuda_runtime_api.h>

#include "engine/engines.h"

using namespace tw::test;

namespace {

// y = x + x, x: [-1,4].
struct Streams : testing::Test
{
    Maker m;
    std::unique_ptr<ICudaEngine> engine;
    Context c;
    cudaStream_t stream{};
    float *x = nullptr, *y = nullptr;
    void SetUp() override
    {
        ITensor* t = m.input("x", {-1, 4});
        m.output(m.add(t, t), "y");
        m.profile({{"x", {1, 4}, {2, 4}, {4, 4}}});
        engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        c = contextOf(*engine);
        ASSERT_TRUE(c->setInputShape("x", Dims2(2, 4)));
        ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
        ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&x), 64), cudaSuccess);
        ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&y), 64), cudaSuccess);
        c->setTensorAddress("x", x);
        c->setTensorAddress("y", y);
    }
    void TearDown() override
    {
        c.reset();
        cudaFree(x);
        cudaFree(y);
        cudaStreamDestroy(stream);
    }
    // In place: a graph keeps the address.
    static void fill(std::vector<float>& v, float from)
    {
        for (size_t i = 0; i < v.size(); ++i)
            v[i] = from + float(i);
    }
    static std::vector<float> doubled(std::vector<float> v)
    {
        for (float& f : v)
            f *= 2;
        return v;
    }
};

TEST_F(Streams, OrderWithCopies)
{
    std::vector<float> result(8);
    for (int round = 0; round < 10; ++round) {
        std::vector<float> const in = ramp(8, float(round));
        cudaMemcpyAsync(x, in.data(), 32, cudaMemcpyHostToDevice, stream);
        ASSERT_TRUE(c->enqueueV3(stream));
        cudaMemcpyAsync(result.data(), y, 32, cudaMemcpyDeviceToHost, stream);
        cudaMemsetAsync(x, 0, 32, stream);
        ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        ASSERT_EQ(result, doubled(in));
    }
}

TEST_F(Streams, CaptureAndReplay)
{
    ASSERT_TRUE(c->enqueueV3(stream));
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    std::vector<float> in(8), out(8, -1);
    std::fill(y, y + 8, -5.0F);
    cudaGraph_t graph{};
    cudaGraphExec_t exec{};
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    cudaMemcpyAsync(x, in.data(), 32, cudaMemcpyHostToDevice, stream);
    EXPECT_TRUE(c->enqueueV3(stream)) << m.errors();
    cudaMemcpyAsync(out.data(), y, 32, cudaMemcpyDeviceToHost, stream);
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    EXPECT_EQ(y[0], -5) << "a capture runs nothing";
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    for (int round = 0; round < 5; ++round) {
        fill(in, float(10 * round));
        ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
        ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        ASSERT_EQ(out, doubled(in)) << round;
    }
    // Other shapes and addresses of the context are nothing to the graph.
    std::vector<float> otherX = ramp(16), otherY(16);
    ASSERT_TRUE(c->setInputShape("x", Dims2(4, 4)));
    c->setTensorAddress("x", otherX.data());
    c->setTensorAddress("y", otherY.data());
    ASSERT_TRUE(c->enqueueV3(stream));
    EXPECT_EQ(otherY, doubled(otherX));
    fill(in, 3);
    ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(out, doubled(in));
    EXPECT_EQ(otherY, doubled(otherX));
    // The client must keep the context; a launch after it is gone computes nothing and does no harm.
    c.reset();
    engine.reset();
    std::fill(y, y + 8, -5.0F);
    ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(y[0], -5);
    ASSERT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    EXPECT_EQ(m.errors(), "");
}

TEST_F(Streams, ProfilesUnderCapture)
{
    struct Profiler final : IProfiler
    {
        int calls = 0;
        void reportLayerTime(char const*, float) noexcept override { ++calls; }
    } p;
    c->setProfiler(&p);
    c->setEnqueueEmitsProfile(false);
    cudaGraph_t graph{};
    cudaGraphExec_t exec{};
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_TRUE(c->enqueueV3(stream));
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    EXPECT_FALSE(c->reportToProfiler()) << "nothing has run";
    ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(p.calls, 0);
    EXPECT_TRUE(c->reportToProfiler());
    EXPECT_EQ(p.calls, engine->getNbLayers());
    c->setProfiler(nullptr);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
}

TEST_F(Streams, EventsBetweenStreams)
{
    cudaStream_t other{};
    cudaEvent_t copied{}, consumed{};
    cudaStreamCreate(&other);
    cudaEventCreate(&copied);
    cudaEventCreate(&consumed);
    std::vector<float> const in = ramp(8, 7);
    cudaMemcpyAsync(x, in.data(), 32, cudaMemcpyHostToDevice, other);
    cudaEventRecord(copied, other);
    cudaStreamWaitEvent(stream, copied, 0);
    c->setInputConsumedEvent(consumed);
    ASSERT_TRUE(c->enqueueV3(stream));
    cudaStreamWaitEvent(other, consumed, 0);
    cudaMemsetAsync(x, 0, 32, other);
    cudaStreamSynchronize(stream);
    cudaStreamSynchronize(other);
    EXPECT_EQ(std::vector<float>(y, y + 8), doubled(in));
    // The event takes part in a capture.
    cudaGraph_t graph{};
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_TRUE(c->enqueueV3(stream)) << m.errors();
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaGraphDestroy(graph);
    c->setInputConsumedEvent(nullptr);
    cudaEventDestroy(copied);
    cudaEventDestroy(consumed);
    cudaStreamDestroy(other);
}

TEST_F(Streams, NullStreamIsRefusedDuringAGlobalCapture)
{
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    void* bindings[] = {x, y};
    EXPECT_FALSE(c->executeV2(bindings));
    EXPECT_TRUE(m.oneError("captured"));
    cudaGraph_t graph{};
    cudaStreamEndCapture(stream, &graph);
    cudaGetLastError();
    if (graph)
        cudaGraphDestroy(graph);
    EXPECT_TRUE(c->executeV2(bindings)) << "usable again: " << m.errors();
}

} // namespace
