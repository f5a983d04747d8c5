// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "check.h"

namespace {

constexpr int kThreads = 4;

template <class Body>
void inThreads(Body body)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&body, i] { body(i); });
    for (std::thread& thread : threads)
        thread.join();
}

struct Shared
{
    std::atomic<int> inside{0};
    std::atomic<int> overlaps{0};
    int count = 0; // guarded by the stream's order alone
};

void visit(void* data)
{
    auto* shared = static_cast<Shared*>(data);
    if (shared->inside++ != 0)
        ++shared->overlaps;
    ++shared->count;
    --shared->inside;
}

TEST(Thread, WorkOfOneStreamNeverOverlaps)
{
    TestStream const stream;
    Shared shared;
    inThreads([&](int) {
        for (int i = 0; i < 2000; ++i)
            EXPECT_OK(cudaLaunchHostFunc(stream, visit, &shared));
    });
    EXPECT_EQ(shared.overlaps, 0);
    EXPECT_EQ(shared.count, kThreads * 2000);
}

TEST(Thread, OneExecutableGraphRunsOnceAtATime)
{
    Shared shared;
    cudaGraphExec_t exec = nullptr;
    {
        TestStream const stream;
        cudaGraph_t graph = nullptr;
        ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
        ASSERT_OK(cudaLaunchHostFunc(stream, visit, &shared));
        ASSERT_OK(cudaStreamEndCapture(stream, &graph));
        ASSERT_OK(cudaGraphInstantiate(&exec, graph, 0));
        ASSERT_OK(cudaGraphDestroy(graph));
    }
    inThreads([&](int) {
        TestStream const mine;
        for (int i = 0; i < 1000; ++i)
            EXPECT_OK(cudaGraphLaunch(exec, mine));
    });
    EXPECT_EQ(shared.overlaps, 0);
    EXPECT_EQ(shared.count, kThreads * 1000);
    ASSERT_OK(cudaGraphExecDestroy(exec));
}

TEST(Thread, EverythingAtOnce)
{
    // Own streams, events, memory and captures in each thread, and one that asks about all of it.
    std::atomic<bool> stop{false};
    std::thread watcher([&] {
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
        EXPECT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
        while (!stop) {
            std::size_t freeBytes = 0;
            std::size_t totalBytes = 0;
            EXPECT_OK(cudaMemGetInfo(&freeBytes, &totalBytes));
            cudaPointerAttributes attributes;
            EXPECT_OK(cudaPointerGetAttributes(&attributes, &stop));
            EXPECT_OK(cudaStreamQuery(cudaStreamPerThread));
        }
    });
    inThreads([&](int id) {
        for (int i = 0; i < 200; ++i) {
            TestStream const stream;
            TestEvent const event;
            int* device = nullptr;
            int value = id * 1000 + i;
            int result = -1;
            EXPECT_OK(cudaMallocAsync(&device, sizeof(int), stream));
            EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
            EXPECT_OK(cudaMemcpyAsync(device, &value, sizeof(int), cudaMemcpyHostToDevice, stream));
            EXPECT_OK(cudaMemcpyAsync(&result, device, sizeof(int), cudaMemcpyDeviceToHost, stream));
            cudaGraph_t graph = nullptr;
            cudaGraphExec_t exec = nullptr;
            EXPECT_OK(cudaStreamEndCapture(stream, &graph));
            EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
            EXPECT_OK(cudaGraphLaunch(exec, stream));
            EXPECT_OK(cudaEventRecord(event, stream));
            EXPECT_OK(cudaEventSynchronize(event));
            EXPECT_EQ(result, value);
            EXPECT_OK(cudaGraphExecDestroy(exec));
            EXPECT_OK(cudaGraphDestroy(graph));
            EXPECT_OK(cudaFreeAsync(device, stream));
        }
    });
    stop = true;
    watcher.join();
}

struct Gate
{
    std::atomic<bool> entered{false};
    std::atomic<bool> open{false};
};

void waitAtGate(void* data)
{
    auto* gate = static_cast<Gate*>(data);
    gate->entered = true;
    while (!gate->open)
        std::this_thread::yield();
}

TEST(Thread, QueryTellsOfAnotherThreadsWork)
{
    TestStream const stream;
    Gate gate;
    std::thread worker([&] { EXPECT_OK(cudaLaunchHostFunc(stream, waitAtGate, &gate)); });
    while (!gate.entered)
        std::this_thread::yield();
    EXPECT_CUDA(cudaErrorNotReady, cudaStreamQuery(stream));
    gate.open = true;
    EXPECT_OK(cudaStreamSynchronize(stream));
    EXPECT_OK(cudaStreamQuery(stream));
    worker.join();
    (void)cudaGetLastError();
}

} // namespace
