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

cudaError_t cudaLaunchKernel(void const*, dim3, dim3, void**, size_t, cudaStream_t)
{
    return notSupported();
}

cudaError_t cudaLaunchCooperativeKernel(void const*, dim3, dim3, void**, size_t, cudaStream_t)
{
    return notSupported();
}

#if TW_CUDART_MAJOR >= 12
cudaError_t cudaLaunchKernelExC(cudaLaunchConfig_t const*, void const*, void**)
{
    return notSupported();
}
#endif

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t*, cudaGraph_t, cudaGraphNode_t const*, size_t,
                                   cudaKernelNodeParams const*)
{
    return notSupported();
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, void const*)
{
    return notSupported();
}

cudaError_t cudaFuncSetAttribute(void const*, cudaFuncAttribute, int)
{
    return notSupported();
}

cudaError_t cudaFuncSetCacheConfig(void const*, cudaFuncCache)
{
    return notSupported();
}

cudaError_t cudaFuncSetSharedMemConfig(void const*, cudaSharedMemConfig)
{
    return notSupported();
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int*, void const*, int, size_t)
{
    return notSupported();
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int*, void const*, int, size_t, unsigned int)
{
    return notSupported();
}

cudaError_t cudaGetSymbolAddress(void**, void const*)
{
    return notSupported();
}

cudaError_t cudaGetSymbolSize(size_t*, void const*)
{
    return notSupported();
}

cudaError_t cudaMemcpyToSymbol(void const*, void const*, size_t, size_t, cudaMemcpyKind)
{
    return notSupported();
}

cudaError_t cudaMemcpyFromSymbol(void*, void const*, size_t, size_t, cudaMemcpyKind)
{
    return notSupported();
}

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

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*)
{
    return notSupported();
}

cudaError_t cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned int)
{
    return notSupported();
}

cudaError_t cudaIpcCloseMemHandle(void*)
{
    return notSupported();
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t*, cudaEvent_t)
{
    return notSupported();
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t*, cudaIpcEventHandle_t)
{
    return notSupported();
}

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
