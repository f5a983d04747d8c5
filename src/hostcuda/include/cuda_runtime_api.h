/* SPDX-License-Identifier: Apache-2.0 */
/* The C functions of the CUDA runtime that our stand-in for machines without a GPU provides (docs/hostcuda.md).
   Signatures, names and numbers are CUDA's published ones. Device memory is host memory; a stream runs its work in the
   calling thread before the call returns, so asynchronous calls are complete when they return. Every function gives
   cudaSuccess or an error code that cudaGetLastError repeats; none prints, throws or aborts. */
#ifndef TW_HOSTCUDA_CUDA_RUNTIME_API_H
#define TW_HOSTCUDA_CUDA_RUNTIME_API_H

#include "driver_types.h"

/* Programs can tell the stand-in from the real runtime by this macro. */
#define TENSORWRIGHT_HOSTCUDA 1

#if TW_CUDART_MAJOR == 11
#define CUDART_VERSION 11080
#elif TW_CUDART_MAJOR == 12
#define CUDART_VERSION 12040
#else
#define CUDART_VERSION 13000
#endif

#ifdef __cplusplus
#define TW_HC_OR(value) = value
extern "C" {
#else
#define TW_HC_OR(value)
#endif

#if TW_CUDART_MAJOR == 12 && !defined(TW_HOSTCUDA_BUILD)
/* As in CUDA 12, source names mean the second form of the symbol. */
#define cudaGetDeviceProperties cudaGetDeviceProperties_v2
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v2
#endif

/* ---- errors: the last error is kept for each thread ---- */
cudaError_t CUDARTAPI cudaGetLastError(void);    /* returns the last error and clears it */
cudaError_t CUDARTAPI cudaPeekAtLastError(void); /* returns it without clearing */
char const* CUDARTAPI cudaGetErrorName(cudaError_t error);
char const* CUDARTAPI cudaGetErrorString(cudaError_t error);

/* ---- device and versions: there is one device, number 0 ---- */
cudaError_t CUDARTAPI cudaDriverGetVersion(int* driverVersion);
cudaError_t CUDARTAPI cudaRuntimeGetVersion(int* runtimeVersion);
cudaError_t CUDARTAPI cudaGetDeviceCount(int* count);
cudaError_t CUDARTAPI cudaGetDevice(int* device);
cudaError_t CUDARTAPI cudaSetDevice(int device);
cudaError_t CUDARTAPI cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags);
cudaError_t CUDARTAPI cudaSetValidDevices(int* devices, int count);
cudaError_t CUDARTAPI cudaChooseDevice(int* device, struct cudaDeviceProp const* prop);
cudaError_t CUDARTAPI cudaSetDeviceFlags(unsigned int flags);
cudaError_t CUDARTAPI cudaGetDeviceFlags(unsigned int* flags);
cudaError_t CUDARTAPI cudaGetDeviceProperties(struct cudaDeviceProp* prop, int device);
cudaError_t CUDARTAPI cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attr, int device);
cudaError_t CUDARTAPI cudaDeviceGetP2PAttribute(int* value, enum cudaDeviceP2PAttr attr, int src, int dst);
cudaError_t CUDARTAPI cudaDeviceSynchronize(void);
cudaError_t CUDARTAPI cudaDeviceReset(void); /* frees all memory and forgets all handles */
cudaError_t CUDARTAPI cudaDeviceSetLimit(enum cudaLimit limit, size_t value);
cudaError_t CUDARTAPI cudaDeviceGetLimit(size_t* value, enum cudaLimit limit);
cudaError_t CUDARTAPI cudaDeviceSetCacheConfig(enum cudaFuncCache config);
cudaError_t CUDARTAPI cudaDeviceGetCacheConfig(enum cudaFuncCache* config);
cudaError_t CUDARTAPI cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config);
cudaError_t CUDARTAPI cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig* config);
cudaError_t CUDARTAPI cudaDeviceGetStreamPriorityRange(int* leastPriority, int* greatestPriority);
cudaError_t CUDARTAPI cudaDeviceGetPCIBusId(char* busId, int length, int device);
cudaError_t CUDARTAPI cudaDeviceGetByPCIBusId(int* device, char const* busId);
cudaError_t CUDARTAPI cudaDeviceCanAccessPeer(int* canAccess, int device, int peerDevice);
cudaError_t CUDARTAPI cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags);
cudaError_t CUDARTAPI cudaDeviceDisablePeerAccess(int peerDevice);
cudaError_t CUDARTAPI cudaCtxResetPersistingL2Cache(void);
#if TW_CUDART_MAJOR < 13
cudaError_t CUDARTAPI cudaThreadExit(void);
cudaError_t CUDARTAPI cudaThreadSynchronize(void);
#endif
cudaError_t CUDARTAPI cudaProfilerStart(void);
cudaError_t CUDARTAPI cudaProfilerStop(void);

/* ---- memory ---- */
cudaError_t CUDARTAPI cudaMemGetInfo(size_t* freeBytes, size_t* totalBytes);
cudaError_t CUDARTAPI cudaMalloc(void** ptr, size_t sizeBytes);
cudaError_t CUDARTAPI cudaMallocHost(void** ptr, size_t sizeBytes);
cudaError_t CUDARTAPI cudaMallocManaged(void** ptr, size_t sizeBytes, unsigned int flags TW_HC_OR(cudaMemAttachGlobal));
cudaError_t CUDARTAPI cudaMallocPitch(void** ptr, size_t* pitch, size_t widthBytes, size_t height);
cudaError_t CUDARTAPI cudaMalloc3D(struct cudaPitchedPtr* pitched, struct cudaExtent extent);
cudaError_t CUDARTAPI cudaFree(void* ptr);
cudaError_t CUDARTAPI cudaFreeHost(void* ptr);
cudaError_t CUDARTAPI cudaHostAlloc(void** ptr, size_t sizeBytes, unsigned int flags);
cudaError_t CUDARTAPI cudaHostRegister(void* ptr, size_t sizeBytes, unsigned int flags);
cudaError_t CUDARTAPI cudaHostUnregister(void* ptr);
cudaError_t CUDARTAPI cudaHostGetDevicePointer(void** device, void* host, unsigned int flags);
cudaError_t CUDARTAPI cudaHostGetFlags(unsigned int* flags, void* host);
cudaError_t CUDARTAPI cudaPointerGetAttributes(struct cudaPointerAttributes* attributes, void const* ptr);
cudaError_t CUDARTAPI cudaMallocAsync(void** ptr, size_t sizeBytes, cudaStream_t stream);
cudaError_t CUDARTAPI cudaFreeAsync(void* ptr, cudaStream_t stream);
cudaError_t CUDARTAPI cudaMallocFromPoolAsync(void** ptr, size_t sizeBytes, cudaMemPool_t pool, cudaStream_t stream);
cudaError_t CUDARTAPI cudaMemPoolCreate(cudaMemPool_t* pool, struct cudaMemPoolProps const* props);
cudaError_t CUDARTAPI cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t CUDARTAPI cudaMemPoolTrimTo(cudaMemPool_t pool, size_t minBytesToKeep);
cudaError_t CUDARTAPI cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void* value);
cudaError_t CUDARTAPI cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void* value);
cudaError_t CUDARTAPI cudaMemPoolSetAccess(cudaMemPool_t pool, struct cudaMemAccessDesc const* list, size_t count);
cudaError_t CUDARTAPI cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device);
cudaError_t CUDARTAPI cudaDeviceGetMemPool(cudaMemPool_t* pool, int device);
cudaError_t CUDARTAPI cudaDeviceSetMemPool(int device, cudaMemPool_t pool);
#if TW_CUDART_MAJOR < 13
cudaError_t CUDARTAPI cudaMemPrefetchAsync(void const* ptr, size_t count, int device, cudaStream_t stream TW_HC_OR(0));
cudaError_t CUDARTAPI cudaMemAdvise(void const* ptr, size_t count, enum cudaMemoryAdvise advice, int device);
#else
cudaError_t CUDARTAPI cudaMemPrefetchAsync(void const* ptr, size_t count, struct cudaMemLocation location,
                                           unsigned int flags, cudaStream_t stream TW_HC_OR(0));
cudaError_t CUDARTAPI cudaMemAdvise(void const* ptr, size_t count, enum cudaMemoryAdvise advice,
                                    struct cudaMemLocation location);
#endif

/* ---- copies and fills; counts, pitches and widths are bytes ---- */
cudaError_t CUDARTAPI cudaMemcpy(void* dst, void const* src, size_t count, enum cudaMemcpyKind kind);
cudaError_t CUDARTAPI cudaMemcpyAsync(void* dst, void const* src, size_t count, enum cudaMemcpyKind kind,
                                      cudaStream_t stream TW_HC_OR(0));
cudaError_t CUDARTAPI cudaMemcpyPeer(void* dst, int dstDevice, void const* src, int srcDevice, size_t count);
cudaError_t CUDARTAPI cudaMemcpyPeerAsync(void* dst, int dstDevice, void const* src, int srcDevice, size_t count,
                                          cudaStream_t stream TW_HC_OR(0));
cudaError_t CUDARTAPI cudaMemcpy2D(void* dst, size_t dstPitch, void const* src, size_t srcPitch, size_t width,
                                   size_t height, enum cudaMemcpyKind kind);
cudaError_t CUDARTAPI cudaMemcpy2DAsync(void* dst, size_t dstPitch, void const* src, size_t srcPitch, size_t width,
                                        size_t height, enum cudaMemcpyKind kind, cudaStream_t stream TW_HC_OR(0));
cudaError_t CUDARTAPI cudaMemcpy3D(struct cudaMemcpy3DParms const* parms);
cudaError_t CUDARTAPI cudaMemcpy3DAsync(struct cudaMemcpy3DParms const* parms, cudaStream_t stream TW_HC_OR(0));
cudaError_t CUDARTAPI cudaMemset(void* ptr, int value, size_t count);
cudaError_t CUDARTAPI cudaMemsetAsync(void* ptr, int value, size_t count, cudaStream_t stream TW_HC_OR(0));
cudaError_t CUDARTAPI cudaMemset2D(void* ptr, size_t pitch, int value, size_t width, size_t height);
cudaError_t CUDARTAPI cudaMemset2DAsync(void* ptr, size_t pitch, int value, size_t width, size_t height,
                                        cudaStream_t stream TW_HC_OR(0));
cudaError_t CUDARTAPI cudaMemset3D(struct cudaPitchedPtr pitched, int value, struct cudaExtent extent);
cudaError_t CUDARTAPI cudaMemset3DAsync(struct cudaPitchedPtr pitched, int value, struct cudaExtent extent,
                                        cudaStream_t stream TW_HC_OR(0));

/* ---- streams ---- */
cudaError_t CUDARTAPI cudaStreamCreate(cudaStream_t* stream);
cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags);
cudaError_t CUDARTAPI cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority);
cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t stream);
cudaError_t CUDARTAPI cudaStreamGetPriority(cudaStream_t stream, int* priority);
cudaError_t CUDARTAPI cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags);
#if TW_CUDART_MAJOR >= 12
cudaError_t CUDARTAPI cudaStreamGetId(cudaStream_t stream, unsigned long long* id);
#endif
#if TW_CUDART_MAJOR >= 13
cudaError_t CUDARTAPI cudaStreamGetDevice(cudaStream_t stream, int* device);
#endif
cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t stream);
cudaError_t CUDARTAPI cudaStreamQuery(cudaStream_t stream);
cudaError_t CUDARTAPI cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags TW_HC_OR(0));
cudaError_t CUDARTAPI cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* userData,
                                            unsigned int flags);
cudaError_t CUDARTAPI cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* userData);
cudaError_t CUDARTAPI cudaStreamAttachMemAsync(cudaStream_t stream, void* ptr, size_t length TW_HC_OR(0),
                                               unsigned int flags TW_HC_OR(cudaMemAttachSingle));

/* ---- events: stamps of a steady clock ---- */
cudaError_t CUDARTAPI cudaEventCreate(cudaEvent_t* event);
cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags);
cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t event);
cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t event, cudaStream_t stream TW_HC_OR(0));
cudaError_t CUDARTAPI cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream TW_HC_OR(0),
                                               unsigned int flags TW_HC_OR(0));
cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t event);
cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t event);
cudaError_t CUDARTAPI cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end);

/* ---- capture ---- */
cudaError_t CUDARTAPI cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t CUDARTAPI cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t CUDARTAPI cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* status);
cudaError_t CUDARTAPI cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode);
#if TW_CUDART_MAJOR == 11 || (TW_CUDART_MAJOR == 12 && defined(TW_HOSTCUDA_BUILD))
cudaError_t CUDARTAPI cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus* status,
                                               unsigned long long* id);
#endif
#if TW_CUDART_MAJOR < 13
cudaError_t CUDARTAPI cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus* status,
                                                  unsigned long long* id TW_HC_OR(0), cudaGraph_t* graph TW_HC_OR(0),
                                                  cudaGraphNode_t const** dependencies TW_HC_OR(0),
                                                  size_t* numDependencies TW_HC_OR(0));
#else
cudaError_t CUDARTAPI cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus* status,
                                               unsigned long long* id TW_HC_OR(0), cudaGraph_t* graph TW_HC_OR(0),
                                               cudaGraphNode_t const** dependencies TW_HC_OR(0),
                                               cudaGraphEdgeData const** edgeData TW_HC_OR(0),
                                               size_t* numDependencies TW_HC_OR(0));
#endif

/* ---- graphs ---- */
cudaError_t CUDARTAPI cudaGraphCreate(cudaGraph_t* graph, unsigned int flags);
cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t graph);
cudaError_t CUDARTAPI cudaGraphClone(cudaGraph_t* clone, cudaGraph_t original);
cudaError_t CUDARTAPI cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, cudaGraphNode_t const* deps,
                                            size_t numDeps);
cudaError_t CUDARTAPI cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, cudaGraphNode_t const* deps,
                                           size_t numDeps, struct cudaHostNodeParams const* params);
cudaError_t CUDARTAPI cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, cudaGraphNode_t const* deps,
                                             size_t numDeps, struct cudaMemcpy3DParms const* params);
cudaError_t CUDARTAPI cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, cudaGraphNode_t const* deps,
                                               size_t numDeps, void* dst, void const* src, size_t count,
                                               enum cudaMemcpyKind kind);
cudaError_t CUDARTAPI cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, cudaGraphNode_t const* deps,
                                             size_t numDeps, struct cudaMemsetParams const* params);
cudaError_t CUDARTAPI cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, cudaGraphNode_t const* deps,
                                                 size_t numDeps, cudaGraph_t child);
cudaError_t CUDARTAPI cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph, cudaGraphNode_t const* deps,
                                                  size_t numDeps, cudaEvent_t event);
cudaError_t CUDARTAPI cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph, cudaGraphNode_t const* deps,
                                                size_t numDeps, cudaEvent_t event);
cudaError_t CUDARTAPI cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, cudaGraphNode_t const* deps,
                                             size_t numDeps, struct cudaKernelNodeParams const* params);
cudaError_t CUDARTAPI cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* numNodes);
cudaError_t CUDARTAPI cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* numNodes);
cudaError_t CUDARTAPI cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType* type);
cudaError_t CUDARTAPI cudaGraphDebugDotPrint(cudaGraph_t graph, char const* path, unsigned int flags);
#if TW_CUDART_MAJOR < 13
cudaError_t CUDARTAPI cudaGraphAddDependencies(cudaGraph_t graph, cudaGraphNode_t const* from,
                                               cudaGraphNode_t const* to, size_t numDeps);
cudaError_t CUDARTAPI cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* deps, size_t* numDeps);
#else
cudaError_t CUDARTAPI cudaGraphAddDependencies(cudaGraph_t graph, cudaGraphNode_t const* from,
                                               cudaGraphNode_t const* to, cudaGraphEdgeData const* edgeData,
                                               size_t numDeps);
cudaError_t CUDARTAPI cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* deps,
                                                   cudaGraphEdgeData* edgeData, size_t* numDeps);
#endif
#if TW_CUDART_MAJOR == 11
cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphNode_t* errorNode,
                                           char* log, size_t logBytes);
cudaError_t CUDARTAPI cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphNode_t* errorNode,
                                          enum cudaGraphExecUpdateResult* result);
#else
cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                           unsigned long long flags TW_HC_OR(0));
cudaError_t CUDARTAPI cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                     cudaGraphInstantiateParams* params);
cudaError_t CUDARTAPI cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags);
cudaError_t CUDARTAPI cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info);
#endif
cudaError_t CUDARTAPI cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                    unsigned long long flags TW_HC_OR(0));
cudaError_t CUDARTAPI cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t exec);

/* ---- device code: there is none to run, so these return cudaErrorNotSupported ---- */
cudaError_t CUDARTAPI cudaLaunchKernel(void const* func, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem,
                                       cudaStream_t stream);
cudaError_t CUDARTAPI cudaLaunchCooperativeKernel(void const* func, dim3 gridDim, dim3 blockDim, void** args,
                                                  size_t sharedMem, cudaStream_t stream);
#if TW_CUDART_MAJOR >= 12
cudaError_t CUDARTAPI cudaLaunchKernelExC(cudaLaunchConfig_t const* config, void const* func, void** args);
#endif
cudaError_t CUDARTAPI cudaFuncGetAttributes(struct cudaFuncAttributes* attr, void const* func);
cudaError_t CUDARTAPI cudaFuncSetAttribute(void const* func, enum cudaFuncAttribute attr, int value);
cudaError_t CUDARTAPI cudaFuncSetCacheConfig(void const* func, enum cudaFuncCache config);
cudaError_t CUDARTAPI cudaFuncSetSharedMemConfig(void const* func, enum cudaSharedMemConfig config);
cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, void const* func, int blockSize,
                                                                    size_t dynamicSmemBytes);
cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, void const* func,
                                                                             int blockSize, size_t dynamicSmemBytes,
                                                                             unsigned int flags);
cudaError_t CUDARTAPI cudaGetSymbolAddress(void** ptr, void const* symbol);
cudaError_t CUDARTAPI cudaGetSymbolSize(size_t* sizeBytes, void const* symbol);
cudaError_t CUDARTAPI cudaMemcpyToSymbol(void const* symbol, void const* src, size_t count, size_t offset TW_HC_OR(0),
                                         enum cudaMemcpyKind kind TW_HC_OR(cudaMemcpyHostToDevice));
cudaError_t CUDARTAPI cudaMemcpyFromSymbol(void* dst, void const* symbol, size_t count, size_t offset TW_HC_OR(0),
                                           enum cudaMemcpyKind kind TW_HC_OR(cudaMemcpyDeviceToHost));
#if TW_CUDART_MAJOR == 11
cudaError_t CUDARTAPI cudaGetDriverEntryPoint(char const* symbol, void** fn, unsigned long long flags);
#else
cudaError_t CUDARTAPI cudaGetDriverEntryPoint(char const* symbol, void** fn, unsigned long long flags,
                                              enum cudaDriverEntryPointQueryResult* status TW_HC_OR(0));
#endif
cudaError_t CUDARTAPI cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* ptr);
cudaError_t CUDARTAPI cudaIpcOpenMemHandle(void** ptr, cudaIpcMemHandle_t handle, unsigned int flags);
cudaError_t CUDARTAPI cudaIpcCloseMemHandle(void* ptr);
cudaError_t CUDARTAPI cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event);
cudaError_t CUDARTAPI cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle);

#ifdef __cplusplus
} // extern "C"

#if TW_CUDART_MAJOR >= 12
// The form of CUDA 11, which programs of that time still call, those too that include this header alone.
extern "C++" inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                     cudaGraphNode_t* errorNode, char* log, size_t logBytes)
{
    if (errorNode != nullptr)
        *errorNode = nullptr;
    if (log != nullptr && logBytes > 0)
        log[0] = '\0';
    return ::cudaGraphInstantiate(exec, graph, 0);
}
#endif
#endif
#undef TW_HC_OR

#endif
