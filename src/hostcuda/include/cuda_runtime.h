// SPDX-License-Identifier: Apache-2.0
// cuda_runtime_api.h with the typed C++ forms that the CUDA runtime adds.
#ifndef TW_HOSTCUDA_CUDA_RUNTIME_H
#define TW_HOSTCUDA_CUDA_RUNTIME_H

#include "cuda_runtime_api.h"
#include "driver_functions.h"
#include "library_types.h"

#ifdef __cplusplus
#include "vector_functions.h"

template <class T>
inline cudaError_t cudaMalloc(T** ptr, size_t sizeBytes)
{
    return ::cudaMalloc(reinterpret_cast<void**>(ptr), sizeBytes);
}

template <class T>
inline cudaError_t cudaMallocHost(T** ptr, size_t sizeBytes, unsigned int flags = 0)
{
    return ::cudaHostAlloc(reinterpret_cast<void**>(ptr), sizeBytes, flags);
}

template <class T>
inline cudaError_t cudaHostAlloc(T** ptr, size_t sizeBytes, unsigned int flags)
{
    return ::cudaHostAlloc(reinterpret_cast<void**>(ptr), sizeBytes, flags);
}

template <class T>
inline cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned int flags)
{
    return ::cudaHostGetDevicePointer(reinterpret_cast<void**>(device), host, flags);
}

template <class T>
inline cudaError_t cudaMallocManaged(T** ptr, size_t sizeBytes, unsigned int flags = cudaMemAttachGlobal)
{
    return ::cudaMallocManaged(reinterpret_cast<void**>(ptr), sizeBytes, flags);
}

template <class T>
inline cudaError_t cudaMallocPitch(T** ptr, size_t* pitch, size_t widthBytes, size_t height)
{
    return ::cudaMallocPitch(reinterpret_cast<void**>(ptr), pitch, widthBytes, height);
}

template <class T>
inline cudaError_t cudaMallocAsync(T** ptr, size_t sizeBytes, cudaStream_t stream)
{
    return ::cudaMallocAsync(reinterpret_cast<void**>(ptr), sizeBytes, stream);
}

inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned int flags)
{
    return ::cudaEventCreateWithFlags(event, flags);
}

template <class T>
inline cudaError_t cudaLaunchKernel(T* func, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem = 0,
                                    cudaStream_t stream = nullptr)
{
    return ::cudaLaunchKernel(reinterpret_cast<void const*>(func), gridDim, blockDim, args, sharedMem, stream);
}

template <class T>
inline cudaError_t cudaFuncSetAttribute(T* func, cudaFuncAttribute attr, int value)
{
    return ::cudaFuncSetAttribute(reinterpret_cast<void const*>(func), attr, value);
}

template <class T>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attr, T* func)
{
    return ::cudaFuncGetAttributes(attr, reinterpret_cast<void const*>(func));
}

#endif // __cplusplus

#endif
