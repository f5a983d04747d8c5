// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

// Names instead of numbers in failures.
inline ::testing::AssertionResult is(cudaError_t wanted, cudaError_t got)
{
    if (wanted == got)
        return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "wanted " << cudaGetErrorName(wanted) << ", got " << cudaGetErrorName(got);
}

#define EXPECT_CUDA(wanted, call) EXPECT_TRUE(is(wanted, call))
#define ASSERT_CUDA(wanted, call) ASSERT_TRUE(is(wanted, call))
#define EXPECT_OK(call) EXPECT_CUDA(cudaSuccess, call)
#define ASSERT_OK(call) ASSERT_CUDA(cudaSuccess, call)

// A stream, gone at the end of the scope.
struct TestStream
{
    cudaStream_t handle = nullptr;
    explicit TestStream(unsigned int flags = cudaStreamNonBlocking)
    {
        EXPECT_OK(cudaStreamCreateWithFlags(&handle, flags));
    }
    ~TestStream() { EXPECT_OK(cudaStreamDestroy(handle)); }
    operator cudaStream_t() const { return handle; }
};

struct TestEvent
{
    cudaEvent_t handle = nullptr;
    explicit TestEvent(unsigned int flags = cudaEventDefault) { EXPECT_OK(cudaEventCreateWithFlags(&handle, flags)); }
    ~TestEvent() { EXPECT_OK(cudaEventDestroy(handle)); }
    operator cudaEvent_t() const { return handle; }
};
