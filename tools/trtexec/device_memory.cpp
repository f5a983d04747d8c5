// SPDX-License-Identifier: Apache-2.0
#include "device_memory.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include <fmt/core.h>

#include "cuda_driver.h"
#include "failure.h"

namespace tw::trtexec {

namespace {

uint64_t address(void const* p)
{
    return reinterpret_cast<uintptr_t>(p);
}

} // namespace

int32_t countGpus()
{
    int count = 0;
    return gpu().isComplete && gpu().getCount(&count) == 0 && count > 0 ? count : 0;
}

void useGpu(int32_t ordinal)
{
    checkDriver(gpu().getDevice(&gpu().device, ordinal), "finding the GPU");
    checkDriver(gpu().retain(&gpu().context, gpu().device), "starting the GPU");
    checkDriver(gpu().setCurrent(gpu().context), "starting the GPU");
}

void useManagedMemory()
{
    gpu().allocatesManaged = true;
}

GpuFacts gpuFacts()
{
    auto const attribute = [](int number) { // the driver's numbers
        int value = 0;
        return gpu().getAttribute(&value, number, gpu().device) == 0 ? value : 0;
    };
    GpuFacts f;
    char name[256] = {};
    if (gpu().getName(name, sizeof(name) - 1, gpu().device) == 0)
        f.name = name;
    f.clockKHz = attribute(13);
    f.multiprocessors = attribute(16);
    f.hasEcc = attribute(32) != 0;
    f.memoryClockKHz = attribute(36);
    f.busBits = attribute(37);
    f.major = attribute(75);
    f.minor = attribute(76);
    f.sharedKiB = attribute(81) / 1024;
    f.persistingL2Bytes = static_cast<size_t>(attribute(108));
    return f;
}

std::string gpuPciBusId()
{
    char text[64] = {};
    bool const told = gpu().getPciBusId && gpu().getPciBusId(text, sizeof(text) - 1, gpu().device) == 0;
    return told ? text : "";
}

bool usesGpu()
{
    return gpu().context != nullptr;
}

DeviceBuffer::DeviceBuffer(size_t sizeBytes) : sizeBytes_(sizeBytes)
{
    if (usesGpu()) {
        uint64_t at = 0;
        useGpuHere();
        constexpr unsigned kByAnyStream = 1;
        size_t const bytes = sizeBytes > 0 ? sizeBytes : 1;
        checkDriver(gpu().allocatesManaged ? gpu().allocateManaged(&at, bytes, kByAnyStream)
                                           : gpu().allocate(&at, bytes),
                    "allocating GPU memory");
        data_ = reinterpret_cast<void*>(static_cast<uintptr_t>(at));
        checkDriver(gpu().clear(at, 0, sizeBytes > 0 ? sizeBytes : 1), "clearing GPU memory");
        checkDriver(gpu().synchronize(nullptr), "clearing GPU memory");
        return;
    }
    constexpr size_t kLargest = ~size_t{0} / 2;
    size_t const rounded = sizeBytes <= kLargest ? (sizeBytes / kDeviceAlignment + 1) * kDeviceAlignment : 0;
    data_ = rounded ? std::aligned_alloc(kDeviceAlignment, rounded) : nullptr;
    if (!data_)
        throw Failure(fmt::format("cannot allocate a buffer of {} bytes", sizeBytes));
    std::memset(data_, 0, rounded);
}

DeviceBuffer::~DeviceBuffer()
{
    if (data_ && usesGpu()) {
        gpu().setCurrent(gpu().context);
        gpu().release(address(data_));
    } else {
        std::free(data_);
    }
}

HostBuffer::HostBuffer(size_t sizeBytes) : sizeBytes_(sizeBytes)
{
    if (sizeBytes == 0)
        return;
    if (usesGpu()) {
        constexpr unsigned kForAllContexts = 1;
        void* memory = nullptr;
        useGpuHere();
        checkDriver(gpu().allocateHost(&memory, sizeBytes, kForAllContexts), "allocating page-locked memory");
        data_ = static_cast<std::byte*>(memory);
    } else {
        data_ = static_cast<std::byte*>(std::malloc(sizeBytes));
        if (!data_)
            throw Failure(fmt::format("cannot allocate a buffer of {} bytes", sizeBytes));
    }
    std::memset(data_, 0, sizeBytes);
}

HostBuffer::~HostBuffer()
{
    if (data_ && usesGpu()) {
        gpu().setCurrent(gpu().context);
        gpu().releaseHost(data_);
    } else {
        std::free(data_);
    }
}

void copyToDevice(void* device, void const* host, size_t sizeBytes, void* stream)
{
    if (sizeBytes == 0)
        return;
    if (usesGpu())
        checkDriver(gpu().toDevice(address(device), host, sizeBytes, stream), "copying to the GPU");
    else
        std::memcpy(device, host, sizeBytes);
}

void copyFromDevice(void* host, void const* device, size_t sizeBytes, void* stream)
{
    if (sizeBytes == 0)
        return;
    if (usesGpu())
        checkDriver(gpu().toHost(host, address(device), sizeBytes, stream), "copying from the GPU");
    else
        std::memcpy(host, device, sizeBytes);
}

DeviceMemoryState deviceMemoryState()
{
    DeviceMemoryState state;
    if (usesGpu()) {
        size_t available = 0, total = 0;
        if (gpu().setCurrent(gpu().context) == 0 && gpu().memoryInfo(&available, &total) == 0) {
            state.freeBytes = available;
            state.totalBytes = total;
        }
        return state;
    }
    std::ifstream file("/proc/meminfo");
    std::string key;
    uint64_t kib = 0;
    std::string unit;
    while (file >> key >> kib && std::getline(file, unit)) {
        if (key == "MemTotal:")
            state.totalBytes = kib * 1024;
        if (key == "MemAvailable:")
            state.freeBytes = kib * 1024;
    }
    return state;
}

} // namespace tw::trtexec
