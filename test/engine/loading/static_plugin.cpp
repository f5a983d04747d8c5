// SPDX-License-Identifier: Apache-2.0
// A plugin library with the static CUDA runtime inside and nothing of it among its exports.
#include <cuda_runtime_api.h>

#define TW_EXPORTED extern "C" __attribute__((visibility("default")))

TW_EXPORTED int pluginStreamCreate(cudaStream_t* stream)
{
    return cudaStreamCreate(stream);
}

TW_EXPORTED int pluginStreamSynchronize(cudaStream_t stream)
{
    return cudaStreamSynchronize(stream);
}

TW_EXPORTED int pluginStreamDestroy(cudaStream_t stream)
{
    return cudaStreamDestroy(stream);
}

TW_EXPORTED int pluginMalloc(void** memory, size_t sizeBytes)
{
    return cudaMalloc(memory, sizeBytes);
}

TW_EXPORTED int pluginFree(void* memory)
{
    return cudaFree(memory);
}

TW_EXPORTED int pluginMemcpyAsync(void* to, void const* from, size_t sizeBytes, cudaMemcpyKind kind,
                                  cudaStream_t stream)
{
    return cudaMemcpyAsync(to, from, sizeBytes, kind, stream);
}

TW_EXPORTED int pluginEventCreate(cudaEvent_t* event)
{
    return cudaEventCreate(event);
}

TW_EXPORTED int pluginEventQuery(cudaEvent_t event)
{
    return cudaEventQuery(event);
}

TW_EXPORTED int pluginStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    return cudaStreamBeginCapture(stream, mode);
}

TW_EXPORTED int pluginStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph)
{
    return cudaStreamEndCapture(stream, graph);
}

TW_EXPORTED int pluginGraphDestroy(cudaGraph_t graph)
{
    return cudaGraphDestroy(graph);
}
