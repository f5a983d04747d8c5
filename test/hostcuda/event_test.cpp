// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <chrono>
#include <thread>

namespace {

constexpr int kSleepMs = 20;

void nap(void*)
{
    std::this_thread::sleep_for(std::chrono::milliseconds(kSleepMs));
}

TEST(Event, MeasuresWhatLiesBetween)
{
    const TestStream stream;
    const TestEvent start;
    const TestEvent end;
    const auto before = std::chrono::steady_clock::now();
    ASSERT_OK(cudaEventRecord(start, stream));
    ASSERT_OK(cudaLaunchHostFunc(stream, nap, nullptr));
    ASSERT_OK(cudaEventRecord(end, stream));
    const std::chrono::duration<float, std::milli> whole = std::chrono::steady_clock::now() - before;
    float ms = 0;
    ASSERT_OK(cudaEventElapsedTime(&ms, start, end));
    EXPECT_GE(ms, kSleepMs);
    EXPECT_LE(ms, whole.count());
    float back = 0;
    ASSERT_OK(cudaEventElapsedTime(&back, end, start));
    EXPECT_EQ(back, -ms);
    EXPECT_OK(cudaEventQuery(end));
    EXPECT_OK(cudaEventSynchronize(end));
}

TEST(Event, RecordsAgain)
{
    const TestEvent start;
    const TestEvent end;
    ASSERT_OK(cudaEventRecord(end));
    ASSERT_OK(cudaEventRecord(start));
    ASSERT_OK(cudaEventRecord(end));
    float ms = -1;
    ASSERT_OK(cudaEventElapsedTime(&ms, start, end));
    EXPECT_GE(ms, 0);
}

TEST(Event, NeverRecordedIsCompleteButHasNoTime)
{
    const TestEvent a;
    const TestEvent b;
    const TestStream stream;
    float ms = 0;
    EXPECT_OK(cudaEventQuery(a));
    EXPECT_OK(cudaEventSynchronize(a));
    EXPECT_OK(cudaStreamWaitEvent(stream, a));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, a, b));
}

TEST(Event, WithoutTimingHasNoTime)
{
    const TestEvent timed;
    const TestEvent untimed(cudaEventDisableTiming);
    ASSERT_OK(cudaEventRecord(timed));
    ASSERT_OK(cudaEventRecord(untimed));
    float ms = 0;
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, timed, untimed));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaEventElapsedTime(nullptr, timed, timed));
}

TEST(Event, RefusesUnknownFlags)
{
    cudaEvent_t event = nullptr;
    EXPECT_CUDA(cudaErrorInvalidValue, cudaEventCreateWithFlags(&event, 0x40));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaEventCreateWithFlags(&event, cudaEventInterprocess));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaEventCreate(nullptr));
    const TestEvent known;
    EXPECT_CUDA(cudaErrorInvalidValue, cudaEventRecordWithFlags(known, nullptr, 8));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaStreamWaitEvent(nullptr, known, 8));
}

} // namespace
