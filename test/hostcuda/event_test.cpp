// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <thread>

#include "check.h"

namespace {

constexpr int kSleepMs = 20;

void nap(void*)
{
    std::this_thread::sleep_for(std::chrono::milliseconds(kSleepMs));
}

TEST(Event, MeasuresWhatLiesBetween)
{
    TestStream const stream;
    TestEvent const start;
    TestEvent const end;
    auto const before = std::chrono::steady_clock::now();
    ASSERT_OK(cudaEventRecord(start, stream));
    ASSERT_OK(cudaLaunchHostFunc(stream, nap, nullptr));
    ASSERT_OK(cudaEventRecord(end, stream));
    std::chrono::duration<float, std::milli> const whole = std::chrono::steady_clock::now() - before;
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
    TestEvent const start;
    TestEvent const end;
    ASSERT_OK(cudaEventRecord(end));
    ASSERT_OK(cudaEventRecord(start));
    ASSERT_OK(cudaEventRecord(end));
    float ms = -1;
    ASSERT_OK(cudaEventElapsedTime(&ms, start, end));
    EXPECT_GE(ms, 0);
}

TEST(Event, NeverRecordedIsCompleteButHasNoTime)
{
    TestEvent const a;
    TestEvent const b;
    TestStream const stream;
    float ms = 0;
    EXPECT_OK(cudaEventQuery(a));
    EXPECT_OK(cudaEventSynchronize(a));
    EXPECT_OK(cudaStreamWaitEvent(stream, a));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, a, b));
}

TEST(Event, WithoutTimingHasNoTime)
{
    TestEvent const timed;
    TestEvent const untimed(cudaEventDisableTiming);
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
    TestEvent const known;
    EXPECT_CUDA(cudaErrorInvalidValue, cudaEventRecordWithFlags(known, nullptr, 8));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaStreamWaitEvent(nullptr, known, 8));
}

} // namespace
