/* SPDX-License-Identifier: Apache-2.0 */
/* A plain C program: copies through the device, times it with events, captures and replays, asks for the door that
   libnvinfer looks for. */
#define _GNU_SOURCE
#include <cuda.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <stdio.h>

static int failures = 0;

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        if (error_ != cudaSuccess) {                                                                                   \
            printf("%s: %s\n", #call, cudaGetErrorName(error_));                                                       \
            ++failures;                                                                                                \
        }                                                                                                              \
    } while (0)

int main(void)
{
    int in = 7, out = 0;
    float ms = -1.0f;
    void* device = NULL;
    cudaStream_t stream = NULL;
    cudaEvent_t start = NULL, end = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    struct cudaDeviceProp prop;
    CHECK(cudaProfilerStart());
    CHECK(cudaGetDeviceProperties(&prop, 0));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaMalloc(&device, sizeof(int)));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaMemcpyAsync(device, &in, sizeof(int), cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpyAsync(&out, device, sizeof(int), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaEventRecord(start, stream));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaEventElapsedTime(&ms, start, end));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaFree(device));
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(end));
    CHECK(cudaStreamDestroy(stream));
    if (out != 7 || ms < 0.0f || prop.major != 9 || prop.clockRate < 0) {
        printf("out %d, %f ms, capability %d\n", out, ms, prop.major);
        ++failures;
    }
    printf("%s: %d failures\n", prop.name, failures);
    return failures == 0 ? 0 : 1;
}
