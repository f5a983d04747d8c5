// SPDX-License-Identifier: Apache-2.0
// What needs device code, a driver or a second process. Each call says cudaErrorNotSupported. The registration
// functions that compiled CUDA objects call before main are here too, so that such programs load and can be told.
#include "state.h"

using namespace tw::hostcuda;

namespace {

cudaError_t notSupported() noexcept
{
    return call([] { return cudaErrorNotSupported; });
}

} // namespace

#define TW_UNSUPPORTED(name, ...)                                                                                      \
    cudaError_t name(__VA_ARGS__)                                                                                      \
    {                                                                                                                  \
        return notSupported();                                                                                         \
    }

TW_UNSUPPORTED(cudaLaunchKernel, void const*, dim3, dim3, void**, size_t, cudaStream_t)
TW_UNSUPPORTED(cudaLaunchCooperativeKernel, void const*, dim3, dim3, void**, size_t, cudaStream_t)

#if TW_CUDART_MAJOR >= 12
TW_UNSUPPORTED(cudaLaunchKernelExC, cudaLaunchConfig_t const*, void const*, void**)
#endif

TW_UNSUPPORTED(cudaGraphAddKernelNode, cudaGraphNode_t*, cudaGraph_t, cudaGraphNode_t const*, size_t,
               cudaKernelNodeParams const*)
TW_UNSUPPORTED(cudaFuncGetAttributes, cudaFuncAttributes*, void const*)
TW_UNSUPPORTED(cudaFuncSetAttribute, void const*, cudaFuncAttribute, int)
TW_UNSUPPORTED(cudaFuncSetCacheConfig, void const*, cudaFuncCache)
TW_UNSUPPORTED(cudaFuncSetSharedMemConfig, void const*, cudaSharedMemConfig)
TW_UNSUPPORTED(cudaOccupancyMaxActiveBlocksPerMultiprocessor, int*, void const*, int, size_t)
TW_UNSUPPORTED(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int*, void const*, int, size_t, unsigned int)
TW_UNSUPPORTED(cudaGetSymbolAddress, void**, void const*)
TW_UNSUPPORTED(cudaGetSymbolSize, size_t*, void const*)
TW_UNSUPPORTED(cudaMemcpyToSymbol, void const*, void const*, size_t, size_t, cudaMemcpyKind)
TW_UNSUPPORTED(cudaMemcpyFromSymbol, void*, void const*, size_t, size_t, cudaMemcpyKind)

#if TW_CUDART_MAJOR == 11
cudaError_t cudaGetDriverEntryPoint(char const*, void** fn, unsigned long long)
{
    if (fn != nullptr)
        *fn = nullptr;
    return notSupported();
}
#else
cudaError_t cudaGetDriverEntryPoint(char const*, void** fn, unsigned long long, cudaDriverEntryPointQueryResult* status)
{
    if (fn != nullptr)
        *fn = nullptr;
    if (status != nullptr)
        *status = cudaDriverEntryPointSymbolNotFound;
    return notSupported();
}
#endif

TW_UNSUPPORTED(cudaIpcGetMemHandle, cudaIpcMemHandle_t*, void*)
TW_UNSUPPORTED(cudaIpcOpenMemHandle, void**, cudaIpcMemHandle_t, unsigned int)
TW_UNSUPPORTED(cudaIpcCloseMemHandle, void*)
TW_UNSUPPORTED(cudaIpcGetEventHandle, cudaIpcEventHandle_t*, cudaEvent_t)
TW_UNSUPPORTED(cudaIpcOpenEventHandle, cudaEvent_t*, cudaIpcEventHandle_t)

extern "C" {

// A handle must not be null; nothing reads it.
void** __cudaRegisterFatBinary(void*)
{
    static void* handle = nullptr;
    return &handle;
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void**, char const*, char*, char const*, int, uint3*, uint3*, dim3*, dim3*, int*) {}

void __cudaRegisterVar(void**, char*, char*, char const*, int, size_t, int, int) {}

void __cudaRegisterManagedVar(void**, void**, char*, char const*, int, size_t, int, int) {}

char __cudaInitModule(void**)
{
    return 0;
}

// kernel<<<...>>>() pushes its shape, then the stub pops it and launches. A failed pop makes the stub return at once.
unsigned int __cudaPushCallConfiguration(dim3, dim3, size_t, void*)
{
    return static_cast<unsigned int>(notSupported());
}

cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*)
{
    return notSupported();
}

} // extern "C"
