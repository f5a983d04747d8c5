// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <vector>

#include "check.h"

namespace {

void increment(void* data)
{
    ++*static_cast<int*>(data);
}

cudaGraphExec_t finish(cudaStream_t stream)
{
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    EXPECT_OK(cudaStreamEndCapture(stream, &graph));
    EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
    EXPECT_OK(cudaGraphDestroy(graph)); // the executable graph stands alone
    return exec;
}

TEST(Capture, RecordsAndReplays)
{
    TestStream const stream;
    int input = 1;
    int output = 0;
    int calls = 0;
    int* device = nullptr;
    ASSERT_OK(cudaMalloc(&device, 2 * sizeof(int)));
    ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    ASSERT_OK(cudaMemsetAsync(device, 0, 2 * sizeof(int), stream));
    ASSERT_OK(cudaMemcpyAsync(device, &input, sizeof(int), cudaMemcpyHostToDevice, stream));
    ASSERT_OK(cudaLaunchHostFunc(stream, increment, &calls));
    ASSERT_OK(cudaMemcpyAsync(&output, device, sizeof(int), cudaMemcpyDeviceToHost, stream));
    EXPECT_EQ(calls, 0);
    EXPECT_EQ(output, 0);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    ASSERT_OK(cudaStreamIsCapturing(stream, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    cudaGraphExec_t const exec = finish(stream);
    ASSERT_OK(cudaStreamIsCapturing(stream, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
    for (int i = 1; i <= 3; ++i) {
        input = 10 * i;
        ASSERT_OK(cudaGraphLaunch(exec, stream));
        ASSERT_OK(cudaStreamSynchronize(stream));
        EXPECT_EQ(output, 10 * i);
        EXPECT_EQ(calls, i);
    }
    ASSERT_OK(cudaGraphExecDestroy(exec));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaGraphLaunch(exec, stream));
    ASSERT_OK(cudaFree(device));
    (void)cudaGetLastError();
}

TEST(Capture, ForksAndJoinsThroughEvents)
{
    TestStream const first;
    TestStream const second;
    TestEvent const fork;
    TestEvent const join;
    int a = 0;
    int b = 0;
    ASSERT_OK(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
    ASSERT_OK(cudaLaunchHostFunc(first, increment, &a));
    ASSERT_OK(cudaEventRecord(fork, first));
    ASSERT_OK(cudaStreamWaitEvent(second, fork));
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    ASSERT_OK(cudaStreamIsCapturing(second, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    ASSERT_OK(cudaLaunchHostFunc(second, increment, &b));
    ASSERT_OK(cudaLaunchHostFunc(first, increment, &a));
    ASSERT_OK(cudaEventRecord(join, second));
    ASSERT_OK(cudaStreamWaitEvent(first, join));
    ASSERT_OK(cudaLaunchHostFunc(first, increment, &a));
    cudaGraphExec_t const exec = finish(first);
    ASSERT_OK(cudaStreamIsCapturing(second, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
    ASSERT_OK(cudaGraphLaunch(exec, second));
    EXPECT_EQ(a, 3);
    EXPECT_EQ(b, 1);
    ASSERT_OK(cudaGraphExecDestroy(exec));
}

TEST(Capture, ShowsItsGraph)
{
    TestStream const stream;
    int calls = 0;
    ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    ASSERT_OK(cudaLaunchHostFunc(stream, increment, &calls));
    ASSERT_OK(cudaMemsetAsync(&calls, 0, sizeof(calls), stream));
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    cudaGraph_t seen = nullptr;
    cudaGraphNode_t const* deps = nullptr;
    std::size_t numDeps = 0;
    ASSERT_OK(cudaStreamGetCaptureInfo(stream, &status, &id, &seen, &deps, &numDeps));
    EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    EXPECT_NE(id, 0u);
    ASSERT_EQ(numDeps, 1u);
    cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    ASSERT_OK(cudaGraphNodeGetType(deps[0], &type));
    EXPECT_EQ(type, cudaGraphNodeTypeMemset);
    cudaGraphExec_t early = nullptr;
    EXPECT_CUDA(cudaErrorInvalidValue, cudaGraphInstantiate(&early, seen, 0)); // still growing
    cudaGraph_t graph = nullptr;
    ASSERT_OK(cudaStreamEndCapture(stream, &graph));
    EXPECT_EQ(graph, seen);
    std::size_t count = 0;
    ASSERT_OK(cudaGraphGetNodes(graph, nullptr, &count));
    ASSERT_EQ(count, 2u);
    std::vector<cudaGraphNode_t> nodes(4);
    std::size_t room = nodes.size();
    ASSERT_OK(cudaGraphGetNodes(graph, nodes.data(), &room));
    EXPECT_EQ(room, 2u);
    EXPECT_EQ(nodes[2], nullptr);
    std::size_t roots = 0;
    ASSERT_OK(cudaGraphGetRootNodes(graph, nullptr, &roots));
    EXPECT_EQ(roots, 1u);
    std::size_t before = 1;
    cudaGraphNode_t dep = nullptr;
    ASSERT_OK(cudaGraphNodeGetDependencies(nodes[1], &dep, &before));
    EXPECT_EQ(before, 1u);
    EXPECT_EQ(dep, nodes[0]);
    ASSERT_OK(cudaGraphDestroy(graph));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaGraphDestroy(graph));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaGraphNodeGetType(nodes[0], &type));
    (void)cudaGetLastError();
}

TEST(Capture, EventsMarkPlacesAndExternalOnesAreStamped)
{
    TestStream const stream;
    TestEvent const inside;
    TestEvent const start;
    TestEvent const end;
    ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    ASSERT_OK(cudaEventRecordWithFlags(start, stream, cudaEventRecordExternal));
    ASSERT_OK(cudaEventRecord(inside, stream));
    ASSERT_OK(cudaEventRecordWithFlags(end, stream, cudaEventRecordExternal));
    cudaGraphExec_t const exec = finish(stream);
    float ms = -1;
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, start, end)); // not launched yet
    ASSERT_OK(cudaGraphLaunch(exec, stream));
    EXPECT_OK(cudaEventElapsedTime(&ms, start, end));
    EXPECT_GE(ms, 0);
    EXPECT_CUDA(cudaErrorCapturedEvent, cudaEventQuery(inside));
    EXPECT_CUDA(cudaErrorCapturedEvent, cudaEventSynchronize(inside));
    EXPECT_OK(cudaEventRecord(inside, stream)); // a plain record makes it usable again
    EXPECT_OK(cudaEventQuery(inside));
    ASSERT_OK(cudaGraphExecDestroy(exec));
    (void)cudaGetLastError();
}

TEST(Capture, TakesGraphLaunchesAsChildren)
{
    TestStream const stream;
    int calls = 0;
    ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    ASSERT_OK(cudaLaunchHostFunc(stream, increment, &calls));
    cudaGraphExec_t const inner = finish(stream);
    ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    ASSERT_OK(cudaGraphLaunch(inner, stream));
    ASSERT_OK(cudaGraphLaunch(inner, stream));
    EXPECT_EQ(calls, 0);
    cudaGraphExec_t const outer = finish(stream);
    ASSERT_OK(cudaGraphExecDestroy(inner)); // held by the outer one
    ASSERT_OK(cudaGraphLaunch(outer, stream));
    EXPECT_EQ(calls, 2);
    ASSERT_OK(cudaGraphExecDestroy(outer));
}

TEST(Capture, KeepsMemoryOfCapturedAllocations)
{
    TestStream const stream;
    int* scratch = nullptr;
    int input = 5;
    int output = 0;
    ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    ASSERT_OK(cudaMallocAsync(&scratch, sizeof(int), stream));
    ASSERT_OK(cudaMemcpyAsync(scratch, &input, sizeof(int), cudaMemcpyHostToDevice, stream));
    ASSERT_OK(cudaMemcpyAsync(&output, scratch, sizeof(int), cudaMemcpyDeviceToHost, stream));
    ASSERT_OK(cudaFreeAsync(scratch, stream));
    cudaGraphExec_t const exec = finish(stream);
    for (int i = 0; i < 3; ++i) {
        input = i;
        ASSERT_OK(cudaGraphLaunch(exec, stream));
        EXPECT_EQ(output, i);
    }
    ASSERT_OK(cudaGraphExecDestroy(exec));
    cudaPointerAttributes attributes;
    ASSERT_OK(cudaPointerGetAttributes(&attributes, scratch));
    EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
}

} // namespace
