// SPDX-License-Identifier: Apache-2.0
// Compiled once with our headers for each CUDA major and, where there is a CUDA 13 toolkit, with its headers: do
// library and headers agree on structs, numbers and signatures? Guard bytes after each struct show a library that
// writes more than the header's size.
#include <cstddef>
#include <cstdio>
#include <cstring>

#include <cuda_runtime.h>

#if defined(TW_TOOLKIT_HEADERS) && defined(TENSORWRIGHT_HOSTCUDA)
#error "these are not the toolkit's headers"
#endif

namespace {

int failures = 0;

void expect(bool good, char const* what)
{
    if (!good) {
        std::printf("wrong: %s\n", what);
        ++failures;
    }
}

void expectOk(cudaError_t error, char const* what)
{
    expect(error == cudaSuccess, what);
}

#define EXPECT(...) expect(__VA_ARGS__, #__VA_ARGS__)
#define OK(...) expectOk(__VA_ARGS__, #__VA_ARGS__)

template <class T>
struct Guarded
{
    T value;
    unsigned char guard[64];
    Guarded() { std::memset(static_cast<void*>(this), 0xa5, sizeof(*this)); }
    bool intact() const
    {
        for (unsigned char const byte : guard)
            if (byte != 0xa5)
                return false;
        return true;
    }
};

int attribute(cudaDeviceAttr attr)
{
    int value = -99;
    OK(cudaDeviceGetAttribute(&value, attr, 0));
    return value;
}

void properties()
{
    static_assert(CUDART_VERSION / 1000 >= 11, "version");
    constexpr std::size_t kSize = CUDART_VERSION / 1000 == 11 ? 728 : CUDART_VERSION / 1000 == 12 ? 1032 : 1008;
    static_assert(sizeof(cudaDeviceProp) == kSize, "the published size");
    Guarded<cudaDeviceProp> g;
    OK(cudaGetDeviceProperties(&g.value, 0));
    cudaDeviceProp const& p = g.value;
    EXPECT(g.intact());
    // First and last fields, both sides of every field that came or went, and each against its attribute.
    EXPECT(std::strlen(p.name) > 0 && std::strlen(p.name) < sizeof(p.name));
    std::size_t freeBytes = 0;
    std::size_t totalBytes = 0;
    OK(cudaMemGetInfo(&freeBytes, &totalBytes));
    EXPECT(p.totalGlobalMem == totalBytes);
    EXPECT(static_cast<int>(p.sharedMemPerBlock) == attribute(cudaDevAttrMaxSharedMemoryPerBlock));
    EXPECT(p.regsPerBlock == attribute(cudaDevAttrMaxRegistersPerBlock));
    EXPECT(p.warpSize == attribute(cudaDevAttrWarpSize));
    EXPECT(p.maxThreadsDim[2] == attribute(cudaDevAttrMaxBlockDimZ));
    EXPECT(p.maxGridSize[0] == attribute(cudaDevAttrMaxGridDimX));
    EXPECT(p.maxGridSize[2] == attribute(cudaDevAttrMaxGridDimZ));
    EXPECT(static_cast<int>(p.totalConstMem) == attribute(cudaDevAttrTotalConstantMemory));
    EXPECT(p.major == attribute(cudaDevAttrComputeCapabilityMajor) && p.major == 9);
    EXPECT(p.minor == attribute(cudaDevAttrComputeCapabilityMinor) && p.minor == 0);
    EXPECT(static_cast<int>(p.textureAlignment) == attribute(cudaDevAttrTextureAlignment));
    EXPECT(static_cast<int>(p.texturePitchAlignment) == attribute(cudaDevAttrTexturePitchAlignment));
    EXPECT(p.multiProcessorCount == attribute(cudaDevAttrMultiProcessorCount));
    EXPECT(p.integrated == attribute(cudaDevAttrIntegrated) && p.integrated == 1);
    EXPECT(p.canMapHostMemory == attribute(cudaDevAttrCanMapHostMemory) && p.canMapHostMemory == 1);
    EXPECT(p.maxTexture1D == 0 && p.maxSurfaceCubemapLayered[1] == 0);
    EXPECT(static_cast<int>(p.surfaceAlignment) == attribute(cudaDevAttrSurfaceAlignment) && p.surfaceAlignment == 512);
    EXPECT(p.concurrentKernels == 1 && p.ECCEnabled == 0);
    EXPECT(p.unifiedAddressing == attribute(cudaDevAttrUnifiedAddressing) && p.unifiedAddressing == 1);
    EXPECT(p.memoryBusWidth == attribute(cudaDevAttrGlobalMemoryBusWidth));
    EXPECT(p.l2CacheSize == attribute(cudaDevAttrL2CacheSize));
    EXPECT(p.maxThreadsPerMultiProcessor == attribute(cudaDevAttrMaxThreadsPerMultiProcessor));
    EXPECT(static_cast<int>(p.sharedMemPerMultiprocessor) == attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor));
    EXPECT(p.regsPerMultiprocessor == attribute(cudaDevAttrMaxRegistersPerMultiprocessor));
    EXPECT(p.managedMemory == 1 && p.isMultiGpuBoard == 0 && p.hostNativeAtomicSupported == 1);
    EXPECT(p.pageableMemoryAccess == attribute(cudaDevAttrPageableMemoryAccess) && p.pageableMemoryAccess == 1);
    EXPECT(p.canUseHostPointerForRegisteredMem == 1 && p.cooperativeLaunch == 0);
    EXPECT(static_cast<int>(p.sharedMemPerBlockOptin) == attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
    EXPECT(p.directManagedMemAccessFromHost == 1);
    EXPECT(p.maxBlocksPerMultiProcessor == attribute(cudaDevAttrMaxBlocksPerMultiprocessor));
    EXPECT(static_cast<int>(p.reservedSharedMemPerBlock) == attribute(cudaDevAttrReservedSharedMemoryPerBlock));
#if CUDART_VERSION < 13000
    EXPECT(p.clockRate == attribute(cudaDevAttrClockRate));
    EXPECT(p.memoryClockRate == attribute(cudaDevAttrMemoryClockRate));
    EXPECT(p.singleToDoublePrecisionPerfRatio == attribute(cudaDevAttrSingleToDoublePrecisionPerfRatio));
    EXPECT(p.computeMode == cudaComputeModeDefault);
#endif
#if CUDART_VERSION >= 12000
    EXPECT(p.hostRegisterSupported == 1 && p.memoryPoolsSupported == 1 && p.clusterLaunch == 0);
#endif
#if CUDART_VERSION >= 13000
    EXPECT(p.hostNumaId == -1 && p.mpsEnabled == 0);
#endif
    std::printf("cudaDeviceProp: %zu bytes, %s\n", sizeof(p), p.name);
}

void pointers()
{
    void* device = nullptr;
    OK(cudaMalloc(&device, 64));
    Guarded<cudaPointerAttributes> g;
    OK(cudaPointerGetAttributes(&g.value, device));
    EXPECT(g.intact());
    EXPECT(g.value.type == cudaMemoryTypeDevice && g.value.device == 0);
    EXPECT(g.value.devicePointer == device && g.value.hostPointer == nullptr);
    int local = 0;
    OK(cudaPointerGetAttributes(&g.value, &local));
    EXPECT(g.value.type == cudaMemoryTypeUnregistered && g.value.device == cudaInvalidDeviceId);
#if CUDART_VERSION >= 13000
    cudaMemLocation location{};
    location.type = cudaMemLocationTypeDevice;
    location.id = 0;
    OK(cudaMemPrefetchAsync(device, 64, location, 0, nullptr));
    OK(cudaMemAdvise(device, 64, cudaMemAdviseSetReadMostly, location));
#else
    OK(cudaMemPrefetchAsync(device, 64, 0, nullptr));
    OK(cudaMemAdvise(device, 64, cudaMemAdviseSetReadMostly, 0));
#endif
    OK(cudaFree(device));
    cudaMemPool_t pool = nullptr;
    Guarded<cudaMemPoolProps> props;
    std::memset(static_cast<void*>(&props.value), 0, sizeof(props.value));
    props.value.allocType = cudaMemAllocationTypePinned;
    props.value.location.type = cudaMemLocationTypeDevice;
    OK(cudaMemPoolCreate(&pool, &props.value));
    OK(cudaMemPoolDestroy(pool));
}

void graphs()
{
    cudaStream_t stream = nullptr;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    int a = 1;
    int b = 0;
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    OK(cudaMemcpyAsync(&b, &a, sizeof(a), cudaMemcpyHostToHost, stream));
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    cudaGraph_t seen = nullptr;
    cudaGraphNode_t const* deps = nullptr;
    std::size_t numDeps = 99;
#if CUDART_VERSION >= 13000
    cudaGraphEdgeData const* edges = nullptr;
    OK(cudaStreamGetCaptureInfo(stream, &status, &id, &seen, &deps, &edges, &numDeps));
#elif CUDART_VERSION >= 12000
    OK(cudaStreamGetCaptureInfo(stream, &status, &id, &seen, &deps, &numDeps));
#else
    OK(cudaStreamGetCaptureInfo(stream, &status, &id));
    OK(cudaStreamGetCaptureInfo_v2(stream, &status, &id, &seen, &deps, &numDeps));
#endif
    EXPECT(status == cudaStreamCaptureStatusActive && id != 0 && seen != nullptr && numDeps == 1);
    cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    OK(cudaGraphNodeGetType(deps[0], &type));
    EXPECT(type == cudaGraphNodeTypeMemcpy);
    cudaGraph_t graph = nullptr;
    OK(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t exec = nullptr;
#if CUDART_VERSION >= 12000
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphExecDestroy(exec));
    unsigned long long flags = 99;
    OK(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
    OK(cudaGraphExecGetFlags(exec, &flags));
    EXPECT(flags == cudaGraphInstantiateFlagAutoFreeOnLaunch);
    Guarded<cudaGraphExecUpdateResultInfo> info;
    OK(cudaGraphExecUpdate(exec, graph, &info.value));
    EXPECT(info.intact() && info.value.result == cudaGraphExecUpdateSuccess && info.value.errorNode == nullptr);
#else
    cudaGraphNode_t errorNode = deps != nullptr ? reinterpret_cast<cudaGraphNode_t>(1) : nullptr;
    char log[8] = {'x'};
    OK(cudaGraphInstantiate(&exec, graph, &errorNode, log, sizeof(log)));
    EXPECT(errorNode == nullptr && log[0] == '\0');
    cudaGraphExecUpdateResult result = cudaGraphExecUpdateError;
    OK(cudaGraphExecUpdate(exec, graph, &errorNode, &result));
    EXPECT(result == cudaGraphExecUpdateSuccess);
#endif
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    EXPECT(b == 1);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));

    cudaPitchedPtr box{};
    OK(cudaMalloc3D(&box, make_cudaExtent(4, 2, 2)));
    char host[16];
    for (int i = 0; i < 16; ++i)
        host[i] = static_cast<char>(i);
    Guarded<cudaMemcpy3DParms> parms;
    std::memset(static_cast<void*>(&parms.value), 0, sizeof(parms.value));
    parms.value.srcPtr = make_cudaPitchedPtr(host, 4, 4, 2);
    parms.value.dstPtr = box;
    parms.value.extent = make_cudaExtent(4, 2, 2);
    parms.value.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&parms.value));
    EXPECT(static_cast<char*>(box.ptr)[box.pitch * 3 + 3] == 15);
    OK(cudaFree(box.ptr));
    OK(cudaStreamDestroy(stream));
}

void versions()
{
    int version = 0;
    OK(cudaRuntimeGetVersion(&version));
    EXPECT(version / 1000 == CUDART_VERSION / 1000);
    void* fn = nullptr;
#if CUDART_VERSION >= 13000
    EXPECT(cudaLaunchKernel(reinterpret_cast<void const*>(&fn), dim3(1), dim3(1), nullptr, 0, nullptr) ==
           cudaErrorNotSupported);
#endif
    EXPECT(cudaSetDevice(9) == cudaErrorInvalidDevice);
    EXPECT(std::strcmp(cudaGetErrorName(cudaErrorStreamCaptureImplicit), "cudaErrorStreamCaptureImplicit") == 0);
    EXPECT(fn == nullptr);
}

} // namespace

int main()
{
    properties();
    pointers();
    graphs();
    versions();
    std::printf("CUDA %d headers: %d failures\n", CUDART_VERSION, failures);
    return failures == 0 ? 0 : 1;
}
