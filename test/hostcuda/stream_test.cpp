// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "check.h"

namespace {

struct Log
{
    std::vector<int> values;
    struct Entry
    {
        Log* log;
        int value;
    };
    std::vector<Entry> entries;
    Log() { entries.reserve(64); }
    Entry* entry(int value)
    {
        entries.push_back({this, value});
        return &entries.back();
    }
};

void append(void* data)
{
    auto const* entry = static_cast<Log::Entry*>(data);
    entry->log->values.push_back(entry->value);
}

void appendCallback(cudaStream_t, cudaError_t status, void* data)
{
    EXPECT_OK(status);
    append(data);
}

TEST(Stream, RunsInOrderBeforeTheCallReturns)
{
    TestStream const stream;
    Log log;
    ASSERT_OK(cudaLaunchHostFunc(stream, append, log.entry(1)));
    EXPECT_EQ(log.values.size(), 1u);
    ASSERT_OK(cudaStreamAddCallback(stream, appendCallback, log.entry(2), 0));
    ASSERT_OK(cudaLaunchHostFunc(nullptr, append, log.entry(3)));
    ASSERT_OK(cudaLaunchHostFunc(cudaStreamLegacy, append, log.entry(4)));
    ASSERT_OK(cudaLaunchHostFunc(cudaStreamPerThread, append, log.entry(5)));
    EXPECT_EQ(log.values, (std::vector<int>{1, 2, 3, 4, 5}));
    EXPECT_OK(cudaStreamQuery(stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
    EXPECT_OK(cudaStreamSynchronize(nullptr));
    EXPECT_OK(cudaStreamSynchronize(cudaStreamPerThread));
    EXPECT_OK(cudaDeviceSynchronize());
}

TEST(Stream, OrdersCopiesAmongStreamsThroughEvents)
{
    TestStream const first;
    TestStream const second;
    TestEvent const ready;
    int const source = 42;
    int* device = nullptr;
    int result = 0;
    ASSERT_OK(cudaMalloc(&device, sizeof(int)));
    ASSERT_OK(cudaMemcpyAsync(device, &source, sizeof(int), cudaMemcpyHostToDevice, first));
    ASSERT_OK(cudaEventRecord(ready, first));
    ASSERT_OK(cudaStreamWaitEvent(second, ready));
    ASSERT_OK(cudaMemcpyAsync(&result, device, sizeof(int), cudaMemcpyDeviceToHost, second));
    EXPECT_EQ(result, 42);
    ASSERT_OK(cudaFree(device));
}

TEST(Stream, KeepsFlagsAndPriority)
{
    int least = -1;
    int greatest = -1;
    ASSERT_OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT_LT(greatest, least);
    cudaStream_t stream = nullptr;
    ASSERT_OK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest - 10));
    int priority = 0;
    unsigned int flags = 0;
    unsigned long long id = 0;
    EXPECT_OK(cudaStreamGetPriority(stream, &priority));
    EXPECT_EQ(priority, greatest); // clamped
    EXPECT_OK(cudaStreamGetFlags(stream, &flags));
    EXPECT_EQ(flags, static_cast<unsigned>(cudaStreamNonBlocking));
    EXPECT_OK(cudaStreamGetId(stream, &id));
    EXPECT_NE(id, 0u);
    EXPECT_OK(cudaStreamDestroy(stream));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&stream, 2));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaStreamCreate(nullptr));
}

void callsCuda(void* data)
{
    // CUDA forbids calls that wait or submit in a host function.
    auto* results = static_cast<std::vector<cudaError_t>*>(data);
    results->push_back(cudaStreamSynchronize(nullptr));
    results->push_back(cudaLaunchHostFunc(nullptr, callsCuda, data));
    results->push_back(cudaDeviceSynchronize());
    (void)cudaGetLastError();
}

TEST(Stream, RefusesCallsInsideHostFunctions)
{
    TestStream const stream;
    std::vector<cudaError_t> results;
    ASSERT_OK(cudaLaunchHostFunc(stream, callsCuda, &results));
    EXPECT_EQ(results, (std::vector<cudaError_t>(3, cudaErrorNotPermitted)));
}

void throws(void*)
{
    throw 1;
}

TEST(Stream, LetsNoExceptionOut)
{
    TestStream const stream;
    EXPECT_CUDA(cudaErrorUnknown, cudaLaunchHostFunc(stream, throws, nullptr));
    EXPECT_CUDA(cudaErrorUnknown, cudaGetLastError());
    EXPECT_OK(cudaStreamSynchronize(stream)); // the turn was given back
    Log log;
    EXPECT_OK(cudaLaunchHostFunc(stream, append, log.entry(1)));
    EXPECT_EQ(log.values.size(), 1u);
}

} // namespace
