// SPDX-License-Identifier: Apache-2.0
// What CUDA's programming guide forbids during capture: the error of each breach, and that it spoils the capture.
#include <functional>
#include <thread>

#include "check.h"

namespace {

void nothing(void*) {}

// Begins a capture, does something that CUDA forbids, and expects its error and the capture's end by it.
void expectInvalidated(cudaError_t wanted, std::function<cudaError_t(cudaStream_t)> const& breach,
                       unsigned int streamFlags = cudaStreamNonBlocking,
                       cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal)
{
    TestStream const stream(streamFlags);
    ASSERT_OK(cudaStreamBeginCapture(stream, mode));
    ASSERT_OK(cudaLaunchHostFunc(stream, nothing, nullptr));
    EXPECT_CUDA(wanted, breach(stream));
    EXPECT_CUDA(wanted, cudaGetLastError());
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    EXPECT_OK(cudaStreamIsCapturing(stream, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated);
    EXPECT_CUDA(cudaErrorStreamCaptureInvalidated, cudaLaunchHostFunc(stream, nothing, nullptr));
    cudaGraph_t graph = reinterpret_cast<cudaGraph_t>(1);
    EXPECT_CUDA(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    EXPECT_EQ(graph, nullptr);
    EXPECT_OK(cudaLaunchHostFunc(stream, nothing, nullptr)); // the stream is usable again
    (void)cudaGetLastError();
}

TEST(CaptureError, WaitingForAnythingCaptured)
{
    expectInvalidated(cudaErrorStreamCaptureUnsupported, [](cudaStream_t s) { return cudaStreamSynchronize(s); });
    expectInvalidated(cudaErrorStreamCaptureUnsupported, [](cudaStream_t s) { return cudaStreamQuery(s); });
    expectInvalidated(cudaErrorStreamCaptureUnsupported, [](cudaStream_t) { return cudaDeviceSynchronize(); });
    expectInvalidated(cudaErrorStreamCaptureUnsupported, [](cudaStream_t s) {
        return cudaStreamAddCallback(
            s, [](cudaStream_t, cudaError_t, void*) {}, nullptr, 0);
    });
    TestEvent const event;
    expectInvalidated(cudaErrorCapturedEvent, [&](cudaStream_t s) {
        EXPECT_OK(cudaEventRecord(event, s));
        return cudaEventSynchronize(event);
    });
    EXPECT_OK(cudaEventRecord(event));
}

TEST(CaptureError, UnsafeCallsFollowTheMode)
{
    void* ptr = nullptr;
    expectInvalidated(cudaErrorStreamCaptureUnsupported, [&](cudaStream_t) { return cudaMalloc(&ptr, 8); });
    expectInvalidated(
        cudaErrorStreamCaptureUnsupported, [&](cudaStream_t) { return cudaMallocHost(&ptr, 8); }, cudaStreamNonBlocking,
        cudaStreamCaptureModeThreadLocal);

    // Relaxed: allowed.
    TestStream const stream;
    cudaGraph_t graph = nullptr;
    ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    EXPECT_OK(cudaMalloc(&ptr, 8));
    EXPECT_OK(cudaFree(ptr));
    ASSERT_OK(cudaStreamEndCapture(stream, &graph));
    ASSERT_OK(cudaGraphDestroy(graph));

    // Thread-local: other threads are free; global: they are not, unless they exchanged their mode.
    auto const elsewhere = [](bool relax) {
        cudaError_t error = cudaSuccess;
        std::thread([&] {
            cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
            if (relax) {
                EXPECT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
                EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
            }
            void* mine = nullptr;
            error = cudaMalloc(&mine, 8);
            if (error == cudaSuccess) {
                EXPECT_OK(cudaFree(mine));
            }
        }).join();
        return error;
    };
    ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    EXPECT_OK(elsewhere(false));
    ASSERT_OK(cudaStreamEndCapture(stream, &graph));
    ASSERT_OK(cudaGraphDestroy(graph));
    ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    EXPECT_OK(elsewhere(true));
    EXPECT_CUDA(cudaErrorStreamCaptureUnsupported, elsewhere(false));
    EXPECT_CUDA(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    (void)cudaGetLastError();
}

TEST(CaptureError, LegacyStreamBesideABlockingOne)
{
    int a = 0;
    int b = 0;
    expectInvalidated(
        cudaErrorStreamCaptureImplicit,
        [&](cudaStream_t) { return cudaMemcpyAsync(&a, &b, 4, cudaMemcpyHostToHost, nullptr); }, cudaStreamDefault);
    expectInvalidated(
        cudaErrorStreamCaptureImplicit, [&](cudaStream_t) { return cudaMemset(&a, 0, 4); }, cudaStreamDefault,
        cudaStreamCaptureModeRelaxed);
    // A non-blocking stream has nothing to do with the legacy stream.
    TestStream const stream;
    cudaGraph_t graph = nullptr;
    ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    EXPECT_OK(cudaMemcpyAsync(&a, &b, 4, cudaMemcpyHostToHost, nullptr));
    EXPECT_OK(cudaMemcpy(&a, &b, 4, cudaMemcpyHostToHost));
    ASSERT_OK(cudaStreamEndCapture(stream, &graph));
    ASSERT_OK(cudaGraphDestroy(graph));
    EXPECT_CUDA(cudaErrorStreamCaptureUnsupported, cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
    (void)cudaGetLastError();
}

TEST(CaptureError, DependenceOnWorkOutside)
{
    TestEvent const outside;
    ASSERT_OK(cudaEventRecord(outside));
    expectInvalidated(cudaErrorStreamCaptureIsolation, [&](cudaStream_t s) { return cudaStreamWaitEvent(s, outside); });
    TestEvent const inside;
    expectInvalidated(cudaErrorStreamCaptureImplicit, [&](cudaStream_t s) {
        EXPECT_OK(cudaEventRecord(inside, s));
        return cudaStreamWaitEvent(nullptr, inside);
    });
}

TEST(CaptureError, TwoCapturesMeet)
{
    TestStream const other;
    TestEvent const event;
    ASSERT_OK(cudaStreamBeginCapture(other, cudaStreamCaptureModeRelaxed));
    ASSERT_OK(cudaEventRecord(event, other));
    expectInvalidated(cudaErrorStreamCaptureMerge, [&](cudaStream_t s) { return cudaStreamWaitEvent(s, event); });
    cudaGraph_t graph = nullptr;
    EXPECT_CUDA(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(other, &graph));
    EXPECT_CUDA(cudaErrorCapturedEvent, cudaStreamWaitEvent(other, event)); // of a capture that is over
    (void)cudaGetLastError();
}

TEST(CaptureError, AStreamIsNotJoinedBack)
{
    TestStream const first;
    TestStream const second;
    TestEvent const fork;
    cudaGraph_t graph = nullptr;
    ASSERT_OK(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
    ASSERT_OK(cudaEventRecord(fork, first));
    ASSERT_OK(cudaStreamWaitEvent(second, fork));
    ASSERT_OK(cudaLaunchHostFunc(second, nothing, nullptr));
    EXPECT_CUDA(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(first, &graph));
    EXPECT_EQ(graph, nullptr);
    EXPECT_OK(cudaStreamSynchronize(second));

    ASSERT_OK(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
    ASSERT_OK(cudaEventRecord(fork, first));
    ASSERT_OK(cudaStreamWaitEvent(second, fork));
    EXPECT_CUDA(cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture(second, &graph));
    EXPECT_CUDA(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(first, &graph));
    (void)cudaGetLastError();
}

TEST(CaptureError, WrongStateOrThread)
{
    TestStream const stream;
    cudaGraph_t graph = nullptr;
    EXPECT_CUDA(cudaErrorIllegalState, cudaStreamEndCapture(stream, &graph));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaStreamEndCapture(stream, nullptr));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaStreamBeginCapture(stream, static_cast<cudaStreamCaptureMode>(7)));
    ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    EXPECT_CUDA(cudaErrorIllegalState, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    std::thread([&] {
        cudaGraph_t mine = nullptr;
        EXPECT_CUDA(cudaErrorStreamCaptureWrongThread, cudaStreamEndCapture(stream, &mine));
    }).join();
    EXPECT_OK(cudaStreamEndCapture(stream, &graph));
    EXPECT_OK(cudaGraphDestroy(graph));
    (void)cudaGetLastError();
}

TEST(CaptureError, StreamDestroyedUnderWay)
{
    cudaStream_t first = nullptr;
    cudaStream_t second = nullptr;
    TestEvent const fork;
    ASSERT_OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    ASSERT_OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    ASSERT_OK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
    ASSERT_OK(cudaEventRecord(fork, first));
    ASSERT_OK(cudaStreamWaitEvent(second, fork));
    ASSERT_OK(cudaStreamDestroy(first));
    EXPECT_OK(cudaStreamSynchronize(second)); // out of the capture, which is gone
    EXPECT_OK(cudaDeviceSynchronize());
    ASSERT_OK(cudaStreamDestroy(second));
}

} // namespace
