// SPDX-License-Identifier: Apache-2.0
// A CUDA driver with one GPU, or several, whose memory is the host's and that runs no kernels: what does not depend on
// device code can be tested with it where no GPU is. Built as libcuda.so.1. Contexts, code and streams:
// fake_contexts.cpp.
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "device/cuda/driver.h"
#include "fake_streams.h"

using namespace tw::cuda;

#define TW_CUDA_DRIVER_NEW(name, symbol, parameters)
#define TW_CUDA_DRIVER(name, symbol, parameters) extern "C" int fake_##name parameters __asm__(symbol);
#include "device/cuda/driver.def"

// What the tests change.
extern "C" {
int twFakeVersion = 12000;
int twFakeCapability = 90;
int twFakeGpus = 1;
}

namespace {

constexpr size_t kAlignment = 256, kMemoryBytes = size_t(1) << 30;
constexpr int kPageableMemoryAccess = 88;
constexpr unsigned char kNobodyWrote = 0xcd; // in new memory

std::mutex mutex;
std::map<uint64_t, size_t> allocated; // address -> bytes
void* host(uint64_t address)
{
    return reinterpret_cast<void*>(uintptr_t(address));
}
int copy(void* to, void const* from, size_t bytes)
{
    std::memcpy(to, from, bytes);
    return kSuccess;
}

} // namespace

int fake_cuInit(unsigned)
{
    return kSuccess;
}
int fake_cuDriverGetVersion(int* version)
{
    *version = twFakeVersion;
    return kSuccess;
}
int fake_cuDeviceGetCount(int* count)
{
    *count = twFakeGpus;
    return kSuccess;
}
int fake_cuDeviceGet(int* device, int ordinal)
{
    *device = ordinal;
    return kSuccess;
}
int fake_cuDeviceGetName(char* name, int sizeBytes, int)
{
    std::strncpy(name, "fake", size_t(sizeBytes));
    return kSuccess;
}
int fake_cuDeviceGetAttribute(int* value, int attribute, int)
{
    *value = attribute == kAttributeMajor             ? twFakeCapability / 10
             : attribute == kAttributeMinor           ? twFakeCapability % 10
             : attribute == kAttributeMultiprocessors ? 4
             : attribute == kAttributeWarpSize        ? 32
             : attribute == kPageableMemoryAccess     ? 0
                                                      : 1 << 16;
    return kSuccess;
}
int fake_cuDeviceTotalMem(size_t* bytes, int)
{
    *bytes = kMemoryBytes;
    return kSuccess;
}
int fake_cuMemGetInfo(size_t* available, size_t* total)
{
    std::lock_guard lock(mutex);
    *available = *total = kMemoryBytes;
    for (auto const& [address, bytes] : allocated)
        *available -= bytes < *available ? bytes : *available;
    return kSuccess;
}
int fake_cuMemAlloc(uint64_t* address, size_t bytes)
{
    size_t const whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* const memory = std::aligned_alloc(kAlignment, whole);
    *address = uint64_t(reinterpret_cast<uintptr_t>(memory));
    if (!memory)
        return 2;
    std::memset(memory, kNobodyWrote, whole);
    std::lock_guard lock(mutex);
    allocated[*address] = whole;
    return kSuccess;
}
int fake_cuMemFree(uint64_t address)
{
    {
        std::lock_guard lock(mutex);
        allocated.erase(address);
    }
    std::free(host(address));
    return kSuccess;
}
int fake_cuPointerGetAttribute(void* value, int attribute, uint64_t address)
{
    std::lock_guard lock(mutex);
    auto it = allocated.upper_bound(address);
    bool const isKnown = it != allocated.begin() && address - (--it)->first < it->second;
    if (!isKnown || attribute != kPointerMemoryType)
        return kErrorInvalidValue;
    *static_cast<unsigned*>(value) = kMemoryTypeDevice;
    return kSuccess;
}
int fake_cuMemAllocHost(void** address, size_t bytes)
{
    *address = std::malloc(bytes ? bytes : 1);
    return *address ? kSuccess : 2;
}
int fake_cuMemFreeHost(void* address)
{
    std::free(address);
    return kSuccess;
}
int fake_cuMemcpyHtoD(uint64_t to, void const* from, size_t bytes)
{
    return copy(host(to), from, bytes);
}
int fake_cuMemcpyHtoDAsync(uint64_t to, void const* from, size_t bytes, CUstream_st* stream)
{
    tw::fake::runOrCapture(stream, [=] { copy(host(to), from, bytes); });
    return kSuccess;
}
int fake_cuMemcpyDtoHAsync(void* to, uint64_t from, size_t bytes, CUstream_st* stream)
{
    tw::fake::runOrCapture(stream, [=] { copy(to, host(from), bytes); });
    return kSuccess;
}
int fake_cuMemcpyDtoDAsync(uint64_t to, uint64_t from, size_t bytes, CUstream_st* stream)
{
    tw::fake::runOrCapture(stream, [=] { copy(host(to), host(from), bytes); });
    return kSuccess;
}
int fake_cuMemcpy2DAsync(CopyRows const* rows, CUstream_st* stream)
{
    tw::fake::runOrCapture(stream, [c = *rows] {
        for (size_t y = 0; y < c.rows; ++y)
            copy(host(c.to + y * c.toPitch), host(c.from + y * c.fromPitch), c.rowBytes);
    });
    return kSuccess;
}
int fake_cuMemsetD8Async(uint64_t address, unsigned char value, size_t bytes, CUstream_st* stream)
{
    tw::fake::runOrCapture(stream, [=] { std::memset(host(address), value, bytes); });
    return kSuccess;
}
int fake_cuMemsetD2D8Async(uint64_t address, size_t pitch, unsigned char value, size_t width, size_t rows,
                           CUstream_st* stream)
{
    tw::fake::runOrCapture(stream, [=] {
        for (size_t y = 0; y < rows; ++y)
            std::memset(host(address + y * pitch), value, width);
    });
    return kSuccess;
}
// An event is the time of its record (fake_contexts.cpp).
int fake_cuEventCreate(CUevent_st** event, unsigned)
{
    *event = reinterpret_cast<CUevent_st*>(new double(0));
    return kSuccess;
}
int fake_cuEventDestroy(CUevent_st* event)
{
    delete reinterpret_cast<double*>(event);
    return kSuccess;
}
int fake_cuEventSynchronize(CUevent_st*)
{
    return kSuccess;
}
int fake_cuEventElapsedTime(float* milliseconds, CUevent_st* begin, CUevent_st* end)
{
    if (*reinterpret_cast<double*>(begin) == 0 || *reinterpret_cast<double*>(end) == 0)
        return 400; // one was never recorded
    *milliseconds = float(*reinterpret_cast<double*>(end) - *reinterpret_cast<double*>(begin));
    return kSuccess;
}
