// SPDX-License-Identifier: Apache-2.0
// Programs of the CUDA 11 days on the headers of CUDA 13: put this folder in front of the toolkit's on the include path
// (-I<prefix>/include/cuda13compat). With older toolkits it changes nothing.
//
// - cudaDeviceProp has the fields again that CUDA 13 took away; cudaGetDeviceProperties() fills them by
//   cudaDeviceGetAttribute().
// - __half and the integers no longer convert into each other without a cast on the host: with these conversions,
//   `stream << half` and `half == 0` are ambiguous. Programs that live by them (OpenCV's headers do) define
//   TENSORWRIGHT_KEEP_HALF_CONVERSIONS before the first CUDA header.
#ifndef TENSORWRIGHT_CUDA13COMPAT_CUDA_RUNTIME_API_H
#define TENSORWRIGHT_CUDA13COMPAT_CUDA_RUNTIME_API_H

#if defined(__GNUC__)
#pragma GCC system_header // include_next is an extension
#endif

#if !defined(TENSORWRIGHT_KEEP_HALF_CONVERSIONS) &&                                                                    \
    !defined(__CUDA_FP16_DISABLE_IMPLICIT_INTEGER_CONVERTS_FOR_HOST_COMPILERS__)
#define __CUDA_FP16_DISABLE_IMPLICIT_INTEGER_CONVERTS_FOR_HOST_COMPILERS__
#endif

#include_next <cuda_runtime_api.h>

#if defined(__cplusplus) && defined(CUDART_VERSION) && CUDART_VERSION >= 13000

// Where CUDA's own structure is expected, this one can stand.
struct TensorwrightCudaDeviceProp : cudaDeviceProp
{
    int clockRate;       // kHz
    int memoryClockRate; // kHz
    int deviceOverlap;   // copies and kernels at once
    int kernelExecTimeoutEnabled;
    int computeMode; // cudaComputeMode
    int maxTexture1DLinear;
    int singleToDoublePrecisionPerfRatio;
    int cooperativeMultiDeviceLaunch; // CUDA 13 has no such launches: 0
};

inline cudaError_t cudaGetDeviceProperties(TensorwrightCudaDeviceProp* prop, int device)
{
    cudaError_t status = cudaGetDeviceProperties(static_cast<cudaDeviceProp*>(prop), device);
    struct Field
    {
        int* value;
        cudaDeviceAttr attribute;
    };
    Field const fields[] = {
        {&prop->clockRate, cudaDevAttrClockRate},
        {&prop->memoryClockRate, cudaDevAttrMemoryClockRate},
        {&prop->deviceOverlap, cudaDevAttrGpuOverlap},
        {&prop->kernelExecTimeoutEnabled, cudaDevAttrKernelExecTimeout},
        {&prop->computeMode, cudaDevAttrComputeMode},
        {&prop->maxTexture1DLinear, cudaDevAttrMaxTexture1DLinearWidth},
        {&prop->singleToDoublePrecisionPerfRatio, cudaDevAttrSingleToDoublePrecisionPerfRatio},
    };
    prop->cooperativeMultiDeviceLaunch = 0;
    for (unsigned i = 0; i < sizeof fields / sizeof fields[0]; ++i) {
        *fields[i].value = 0;
        if (status == cudaSuccess)
            status = cudaDeviceGetAttribute(fields[i].value, fields[i].attribute, device);
    }
    return status;
}

#define cudaDeviceProp TensorwrightCudaDeviceProp

#endif
#endif
