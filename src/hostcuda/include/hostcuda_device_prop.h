/* SPDX-License-Identifier: Apache-2.0 */
/* cudaDeviceProp; a part of driver_types.h, which every client includes instead. */
#ifndef TW_HOSTCUDA_DEVICE_PROP_H
#define TW_HOSTCUDA_DEVICE_PROP_H

#include "driver_types.h"

/* Properties of a device. CUDA 13 took the clock rates and a few modes out, CUDA 12 added everything after
   reservedSharedMemPerBlock; the three layouts are 728, 1032 and 1008 bytes. */
struct cudaDeviceProp
{
    char name[256];
    cudaUUID_t uuid;
    char luid[8];
    unsigned int luidDeviceNodeMask;
    size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize;
    size_t memPitch;
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
#if TW_CUDART_MAJOR < 13
    int clockRate; /* kHz */
#endif
    size_t totalConstMem;
    int major, minor;
    size_t textureAlignment, texturePitchAlignment;
#if TW_CUDART_MAJOR < 13
    int deviceOverlap;
#endif
    int multiProcessorCount;
#if TW_CUDART_MAJOR < 13
    int kernelExecTimeoutEnabled;
#endif
    int integrated, canMapHostMemory;
#if TW_CUDART_MAJOR < 13
    int computeMode;
#endif
    int maxTexture1D, maxTexture1DMipmap;
#if TW_CUDART_MAJOR < 13
    int maxTexture1DLinear;
#endif
    int maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2], maxTexture3D[3];
    int maxTexture3DAlt[3], maxTextureCubemap, maxTexture1DLayered[2], maxTexture2DLayered[3];
    int maxTextureCubemapLayered[2], maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2];
    int maxSurface2DLayered[3], maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
    size_t surfaceAlignment;
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount;
    int unifiedAddressing;
#if TW_CUDART_MAJOR < 13
    int memoryClockRate; /* kHz */
#endif
    int memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor;
    int streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomicSupported;
#if TW_CUDART_MAJOR < 13
    int singleToDoublePrecisionPerfRatio;
#endif
    int pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported;
    int canUseHostPointerForRegisteredMem, cooperativeLaunch;
#if TW_CUDART_MAJOR < 13
    int cooperativeMultiDeviceLaunch;
#endif
    size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost, maxBlocksPerMultiProcessor;
    int accessPolicyMaxWindowSize;
    size_t reservedSharedMemPerBlock;
#if TW_CUDART_MAJOR >= 12
    int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported;
    int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
    unsigned int gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMAWritesOrdering;
    unsigned int memoryPoolSupportedHandleTypes;
    int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers;
#endif
#if TW_CUDART_MAJOR == 12
    int reserved2[2], reserved1[1], reserved[60];
#elif TW_CUDART_MAJOR >= 13
    int deviceNumaConfig, deviceNumaId, mpsEnabled, hostNumaId;
    unsigned int gpuPciDeviceID, gpuPciSubsystemID;
    int hostNumaMultinodeIpcSupported, reserved[56];
#endif
};

#endif
