// SPDX-License-Identifier: Apache-2.0
// Handles that are stale, foreign or of another kind give an error and nothing else.
#include <thread>

#include "check.h"

namespace {

TEST(Handle, IsFoundOutAfterItsDestruction)
{
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
    ASSERT_OK(cudaStreamCreate(&stream));
    ASSERT_OK(cudaEventCreate(&event));
    ASSERT_OK(cudaStreamDestroy(stream));
    ASSERT_OK(cudaEventDestroy(event));
    // New handles are new numbers.
    TestStream const other;
    TestEvent const otherEvent;
    EXPECT_NE(other.handle, stream);
    EXPECT_NE(otherEvent.handle, event);
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaStreamDestroy(stream));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaEventDestroy(event));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(stream));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaEventRecord(event, other));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaEventRecord(otherEvent, stream));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaStreamWaitEvent(other, event));
    (void)cudaGetLastError();
}

TEST(Handle, OfAnotherKindIsRefused)
{
    TestStream const stream;
    TestEvent const event;
    int local = 0;
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(event.handle)));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaEventQuery(reinterpret_cast<cudaEvent_t>(stream.handle)));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(&local)));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaEventQuery(nullptr));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaStreamDestroy(nullptr));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaStreamDestroy(cudaStreamPerThread));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaGraphLaunch(nullptr, stream));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaGraphDestroy(reinterpret_cast<cudaGraph_t>(&local)));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaGraphExecDestroy(reinterpret_cast<cudaGraphExec_t>(stream.handle)));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle,
                cudaMemcpyAsync(&local, &local, 4, cudaMemcpyHostToHost, reinterpret_cast<cudaStream_t>(77)));
    (void)cudaGetLastError();
}

TEST(Error, IsKeptForEachThread)
{
    (void)cudaGetLastError();
    EXPECT_CUDA(cudaErrorInvalidDevice, cudaSetDevice(3));
    EXPECT_CUDA(cudaErrorInvalidDevice, cudaPeekAtLastError());
    std::thread([] { EXPECT_OK(cudaPeekAtLastError()); }).join();
    EXPECT_OK(cudaSetDevice(0)); // a success does not clear it
    EXPECT_CUDA(cudaErrorInvalidDevice, cudaGetLastError());
    EXPECT_OK(cudaGetLastError());
}

TEST(Error, HasNameAndText)
{
    EXPECT_STREQ(cudaGetErrorName(cudaSuccess), "cudaSuccess");
    EXPECT_STREQ(cudaGetErrorName(cudaErrorStreamCaptureIsolation), "cudaErrorStreamCaptureIsolation");
    EXPECT_STREQ(cudaGetErrorName(cudaErrorECCUncorrectable), "cudaErrorECCUncorrectable");
    EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    EXPECT_STREQ(cudaGetErrorString(static_cast<cudaError_t>(12345)), "unrecognized error code");
}

} // namespace
