// SPDX-License-Identifier: Apache-2.0
// The door that libnvinfer uses.
#include <dlfcn.h>

#include "check.h"
#include "hostcuda/host_cuda_table.h"

namespace {

TwHostCudaTable const& table()
{
    static auto const* found = static_cast<TwHostCudaTable const*>(dlsym(RTLD_DEFAULT, "twHostCuda"));
    EXPECT_NE(found, nullptr);
    return *found;
}

struct Job
{
    int runs = 0;
    int destroyed = 0;
    cudaStream_t stream = nullptr;
    char* to = nullptr;
};

void run(void* arg)
{
    auto* job = static_cast<Job*>(arg);
    ++job->runs;
    // What a plugin may do in its enqueue.
    if (job->to != nullptr) {
        EXPECT_OK(cudaMemsetAsync(job->to, 5, 1, job->stream));
        EXPECT_OK(cudaStreamSynchronize(job->stream));
        EXPECT_OK(cudaDeviceSynchronize());
    }
}

void destroy(void* arg)
{
    ++static_cast<Job*>(arg)->destroyed;
}

TEST(Table, SaysItsVersionAndSize)
{
    EXPECT_EQ(table().version, static_cast<std::uint32_t>(kTwHostCudaVersion));
    EXPECT_EQ(table().sizeBytes, sizeof(TwHostCudaTable));
}

TEST(Table, RunsWorkAtOnce)
{
    TestStream const stream;
    char byte = 0;
    Job job;
    job.stream = stream;
    job.to = &byte;
    EXPECT_EQ(table().enqueue(stream, run, &job, destroy), 0);
    EXPECT_EQ(job.runs, 1);
    EXPECT_EQ(job.destroyed, 1);
    EXPECT_EQ(byte, 5);
    int capturing = -1;
    EXPECT_EQ(table().isCapturing(stream, &capturing), 0);
    EXPECT_EQ(capturing, 0);
    EXPECT_EQ(table().synchronize(stream), 0);
    EXPECT_EQ(table().enqueue(stream, run, &job, nullptr), 0);
    EXPECT_EQ(job.runs, 2);
}

TEST(Table, RecordsWorkIntoACaptureAndOwnsItsArgument)
{
    TestStream const stream;
    Job job;
    ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    EXPECT_EQ(table().enqueue(stream, run, &job, destroy), 0);
    int capturing = -1;
    EXPECT_EQ(table().isCapturing(stream, &capturing), 0);
    EXPECT_EQ(capturing, 1);
    cudaGraph_t graph = nullptr;
    ASSERT_OK(cudaStreamEndCapture(stream, &graph));
    EXPECT_EQ(job.runs, 0);
    cudaGraphExec_t exec = nullptr;
    ASSERT_OK(cudaGraphInstantiate(&exec, graph, 0));
    ASSERT_OK(cudaGraphLaunch(exec, stream));
    ASSERT_OK(cudaGraphLaunch(exec, nullptr));
    EXPECT_EQ(job.runs, 2);
    ASSERT_OK(cudaGraphExecDestroy(exec));
    EXPECT_EQ(job.destroyed, 0); // the graph still holds it
    ASSERT_OK(cudaGraphDestroy(graph));
    EXPECT_EQ(job.destroyed, 1);
}

TEST(Table, GivesTheArgumentBackWhenItFails)
{
    (void)cudaGetLastError();
    Job job;
    EXPECT_EQ(table().enqueue(reinterpret_cast<cudaStream_t>(99), run, &job, destroy), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(job.destroyed, 1);
    EXPECT_EQ(table().enqueue(nullptr, nullptr, &job, destroy), cudaErrorInvalidValue);
    EXPECT_EQ(job.destroyed, 2);
    EXPECT_EQ(job.runs, 0);

    TestStream const stream;
    ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    EXPECT_EQ(table().synchronize(stream), cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(table().enqueue(stream, run, &job, destroy), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(job.destroyed, 3);
    EXPECT_OK(cudaPeekAtLastError()); // the client sees nothing of it
    cudaGraph_t graph = nullptr;
    EXPECT_CUDA(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    (void)cudaGetLastError();
}

TEST(Table, DropsWorkOfAnAbandonedCapture)
{
    Job job;
    {
        TestStream const stream;
        ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
        EXPECT_EQ(table().enqueue(stream, run, &job, destroy), 0);
    }
    EXPECT_EQ(job.runs, 0);
    EXPECT_EQ(job.destroyed, 1);
}

TEST(Table, RecordsEventsAndKnowsPointers)
{
    TestStream const stream;
    TestEvent const start;
    TestEvent const end;
    EXPECT_EQ(table().recordEvent(start, stream), 0);
    EXPECT_EQ(table().waitEvent(stream, start), 0);
    EXPECT_EQ(table().recordEvent(end, stream), 0);
    float ms = -1;
    EXPECT_OK(cudaEventElapsedTime(&ms, start, end));
    EXPECT_EQ(table().recordEvent(nullptr, stream), cudaErrorInvalidResourceHandle);

    char* device = nullptr;
    ASSERT_OK(cudaMalloc(&device, 100));
    TwHostCudaPointer info{};
    EXPECT_EQ(table().pointerInfo(device + 40, &info), 0);
    EXPECT_EQ(info.memory, kTwHostCudaDevice);
    EXPECT_EQ(info.base, device);
    EXPECT_EQ(info.sizeBytes, 100u);
    EXPECT_EQ(table().pointerInfo(&info, &info), 0);
    EXPECT_EQ(info.memory, kTwHostCudaUnknown);
    EXPECT_EQ(info.base, nullptr);
    EXPECT_EQ(table().pointerInfo(device, nullptr), cudaErrorInvalidValue);
    ASSERT_OK(cudaFree(device));
}

struct SelfLaunch
{
    cudaGraphExec_t exec = nullptr;
    cudaStream_t stream = nullptr;
    cudaError_t inner = cudaSuccess;
};

TEST(Table, WorkCannotLaunchTheGraphThatRunsIt)
{
    TestStream const stream;
    SelfLaunch self;
    self.stream = stream;
    ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    EXPECT_EQ(table().enqueue(
                  stream,
                  [](void* arg) {
                      auto* s = static_cast<SelfLaunch*>(arg);
                      s->inner = cudaGraphLaunch(s->exec, s->stream);
                  },
                  &self, nullptr),
              0);
    cudaGraph_t graph = nullptr;
    ASSERT_OK(cudaStreamEndCapture(stream, &graph));
    ASSERT_OK(cudaGraphInstantiate(&self.exec, graph, 0));
    EXPECT_OK(cudaGraphLaunch(self.exec, stream));
    EXPECT_CUDA(cudaErrorIllegalState, self.inner);
    ASSERT_OK(cudaGraphExecDestroy(self.exec));
    ASSERT_OK(cudaGraphDestroy(graph));
    (void)cudaGetLastError();
}

} // namespace
