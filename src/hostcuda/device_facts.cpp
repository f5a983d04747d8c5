// SPDX-License-Identifier: Apache-2.0
// The machine's CPU, described in the words that CUDA has for a GPU.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <string>

#include <sched.h>

#include "copy.h"
#include "registry.h"

namespace tw::hostcuda {
namespace {

// Clients choose features by compute capability; 9.0 has all that TensorRT 8.5 knows. The limits of a block and a grid
// are those of that capability, for programs that compute launch shapes although nothing can be launched.
constexpr int kMajor = 9;
constexpr int kMinor = 0;
constexpr int kWarpSize = 32;
constexpr int kMaxThreadsPerBlock = 1024;
constexpr int kMaxBlockDim[3] = {1024, 1024, 64};
constexpr int kMaxGridDim[3] = {2147483647, 65535, 65535};
constexpr int kSharedPerBlock = 48 << 10;
constexpr int kSharedPerBlockOptin = 227 << 10;
constexpr int kSharedPerMultiprocessor = 228 << 10;
constexpr int kRegisters = 65536;
constexpr int kConstantBytes = 64 << 10;
constexpr int kMaxPitch = 2147483647;

struct Facts
{
    std::string name = "CPU";
    int cores = 1;
    int clockKhz = 0;
    int l2Bytes = 0;
    std::size_t memoryBytes = 0;
};

int readInt(char const* path)
{
    int value = 0;
    if (std::FILE* file = std::fopen(path, "re")) {
        if (std::fscanf(file, "%d", &value) != 1)
            value = 0;
        std::fclose(file);
    }
    return value;
}

// The value after "key : value" in /proc/cpuinfo, or null.
char const* valueOf(char const* line, char const* key)
{
    std::size_t const length = std::strlen(key);
    if (std::strncmp(line, key, length) != 0)
        return nullptr;
    char const* colon = std::strchr(line, ':');
    return colon != nullptr && colon[1] == ' ' ? colon + 2 : nullptr;
}

Facts readFacts()
{
    Facts facts;
    double mhz = 0;
    if (std::FILE* file = std::fopen("/proc/cpuinfo", "re")) {
        char line[512];
        bool named = false;
        while (std::fgets(line, sizeof(line), file) != nullptr) {
            if (char const* value = valueOf(line, "model name"); value != nullptr && !named) {
                facts.name.assign(value, std::strcspn(value, "\n"));
                named = true;
            } else if (char const* clock = valueOf(line, "cpu MHz"); clock != nullptr && mhz == 0) {
                if (std::sscanf(clock, "%lf", &mhz) != 1)
                    mhz = 0;
            }
        }
        std::fclose(file);
    }
    facts.clockKhz = readInt("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
    if (facts.clockKhz == 0)
        facts.clockKhz = static_cast<int>(mhz * 1000);
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        facts.cores = std::max(1, CPU_COUNT(&set));
    facts.l2Bytes = readInt("/sys/devices/system/cpu/cpu0/cache/index2/size") * 1024; // "2048K"
    facts.memoryBytes = machineMemory().totalBytes;
    return facts;
}

Facts const& facts()
{
    static Facts const& instance = *new Facts(readFacts());
    return instance;
}

} // namespace

cudaDeviceProp propertiesOf(int device)
{
    failIf(device != 0, cudaErrorInvalidDevice);
    Facts const& f = facts();
    cudaDeviceProp prop;
    std::memset(&prop, 0, sizeof(prop));
    std::snprintf(prop.name, sizeof(prop.name), "%s", f.name.c_str());
    // The same machine gives the same id: FNV-1a of the name, twice.
    unsigned long long hash = 14695981039346656037ull;
    for (std::size_t i = 0; i < sizeof(prop.uuid.bytes); ++i) {
        for (char const c : f.name)
            hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
        prop.uuid.bytes[i] = static_cast<char>(hash >> 56);
    }
    prop.totalGlobalMem = f.memoryBytes;
    prop.sharedMemPerBlock = kSharedPerBlock;
    prop.regsPerBlock = kRegisters;
    prop.warpSize = kWarpSize;
    prop.memPitch = kMaxPitch;
    prop.maxThreadsPerBlock = kMaxThreadsPerBlock;
    std::ranges::copy(kMaxBlockDim, prop.maxThreadsDim);
    std::ranges::copy(kMaxGridDim, prop.maxGridSize);
    prop.totalConstMem = kConstantBytes;
    prop.major = kMajor;
    prop.minor = kMinor;
    prop.textureAlignment = 512;
    prop.texturePitchAlignment = 32;
    prop.surfaceAlignment = 512;
    prop.multiProcessorCount = f.cores;
    prop.integrated = 1; // it shares the host's memory
    prop.canMapHostMemory = 1;
    prop.concurrentKernels = 1;
    prop.asyncEngineCount = 1;
    prop.unifiedAddressing = 1;
    prop.l2CacheSize = f.l2Bytes;
    prop.maxThreadsPerMultiProcessor = 2048;
    prop.streamPrioritiesSupported = 1;
    prop.globalL1CacheSupported = 1;
    prop.localL1CacheSupported = 1;
    prop.sharedMemPerMultiprocessor = kSharedPerMultiprocessor;
    prop.regsPerMultiprocessor = kRegisters;
    prop.managedMemory = 1;
    prop.hostNativeAtomicSupported = 1;
    prop.pageableMemoryAccess = 1;
    prop.concurrentManagedAccess = 1;
    prop.canUseHostPointerForRegisteredMem = 1;
    prop.sharedMemPerBlockOptin = kSharedPerBlockOptin;
    prop.pageableMemoryAccessUsesHostPageTables = 1;
    prop.directManagedMemAccessFromHost = 1;
    prop.maxBlocksPerMultiProcessor = 32;
    prop.reservedSharedMemPerBlock = 1024;
#if TW_CUDART_MAJOR < 13
    prop.clockRate = f.clockKhz;
    prop.singleToDoublePrecisionPerfRatio = 2;
#endif
#if TW_CUDART_MAJOR >= 12
    prop.hostRegisterSupported = 1;
    prop.hostRegisterReadOnlySupported = 1;
    prop.memoryPoolsSupported = 1;
#endif
#if TW_CUDART_MAJOR >= 13
    prop.deviceNumaId = -1;
    prop.hostNumaId = -1;
#endif
    return prop;
}

int attributeOf(cudaDeviceAttr attr)
{
    failIf(attr < cudaDevAttrMaxThreadsPerBlock || attr >= cudaDevAttrMax);
    static std::map<cudaDeviceAttr, int> const& known = *new std::map<cudaDeviceAttr, int>{
        {cudaDevAttrMaxThreadsPerBlock, kMaxThreadsPerBlock},
        {cudaDevAttrMaxBlockDimX, kMaxBlockDim[0]},
        {cudaDevAttrMaxBlockDimY, kMaxBlockDim[1]},
        {cudaDevAttrMaxBlockDimZ, kMaxBlockDim[2]},
        {cudaDevAttrMaxGridDimX, kMaxGridDim[0]},
        {cudaDevAttrMaxGridDimY, kMaxGridDim[1]},
        {cudaDevAttrMaxGridDimZ, kMaxGridDim[2]},
        {cudaDevAttrMaxSharedMemoryPerBlock, kSharedPerBlock},
        {cudaDevAttrTotalConstantMemory, kConstantBytes},
        {cudaDevAttrWarpSize, kWarpSize},
        {cudaDevAttrMaxPitch, kMaxPitch},
        {cudaDevAttrMaxRegistersPerBlock, kRegisters},
        {cudaDevAttrClockRate, facts().clockKhz},
        {cudaDevAttrTextureAlignment, 512},
        {cudaDevAttrTexturePitchAlignment, 32},
        {cudaDevAttrSurfaceAlignment, 512},
        {cudaDevAttrMultiProcessorCount, facts().cores},
        {cudaDevAttrL2CacheSize, facts().l2Bytes},
        {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
        {cudaDevAttrComputeCapabilityMajor, kMajor},
        {cudaDevAttrComputeCapabilityMinor, kMinor},
        {cudaDevAttrMaxSharedMemoryPerMultiprocessor, kSharedPerMultiprocessor},
        {cudaDevAttrMaxRegistersPerMultiprocessor, kRegisters},
        {cudaDevAttrSingleToDoublePrecisionPerfRatio, 2},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, kSharedPerBlockOptin},
        {cudaDevAttrMaxBlocksPerMultiprocessor, 32},
        {cudaDevAttrReservedSharedMemoryPerBlock, 1024},
        {cudaDevAttrIntegrated, 1},
        {cudaDevAttrCanMapHostMemory, 1},
        {cudaDevAttrConcurrentKernels, 1},
        {cudaDevAttrAsyncEngineCount, 1},
        {cudaDevAttrUnifiedAddressing, 1},
        {cudaDevAttrStreamPrioritiesSupported, 1},
        {cudaDevAttrGlobalL1CacheSupported, 1},
        {cudaDevAttrLocalL1CacheSupported, 1},
        {cudaDevAttrManagedMemory, 1},
        {cudaDevAttrHostNativeAtomicSupported, 1},
        {cudaDevAttrPageableMemoryAccess, 1},
        {cudaDevAttrConcurrentManagedAccess, 1},
        {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
        {cudaDevAttrHostRegisterSupported, 1},
        {cudaDevAttrPageableMemoryAccessUsesHostPageTables, 1},
        {cudaDevAttrDirectManagedMemAccessFromHost, 1},
        {cudaDevAttrHostRegisterReadOnlySupported, 1},
        {cudaDevAttrMemoryPoolsSupported, 1},
        {cudaDevAttrNumaId, -1},
        {cudaDevAttrHostNumaId, -1},
    };
    auto const found = known.find(attr);
    return found == known.end() ? 0 : found->second;
}

} // namespace tw::hostcuda
