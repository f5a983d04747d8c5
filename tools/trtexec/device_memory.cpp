// SPDX-License-Identifier: Apache-2.0
#include "device_memory.h"

#include "failure.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace tw::trtexec {

DeviceBuffer::DeviceBuffer(size_t sizeBytes) : sizeBytes_(sizeBytes)
{
    constexpr size_t kLargest = ~size_t{0} / 2;
    const size_t rounded = sizeBytes <= kLargest ? (sizeBytes / kDeviceAlignment + 1) * kDeviceAlignment : 0;
    data_ = rounded ? std::aligned_alloc(kDeviceAlignment, rounded) : nullptr;
    if (!data_)
        throw Failure("cannot allocate a buffer of " + std::to_string(sizeBytes) + " bytes");
    std::memset(data_, 0, rounded);
}

DeviceBuffer::~DeviceBuffer()
{
    std::free(data_);
}

void copyToDevice(void* device, const void* host, size_t sizeBytes)
{
    if (sizeBytes > 0)
        std::memcpy(device, host, sizeBytes);
}

void copyFromDevice(void* host, const void* device, size_t sizeBytes)
{
    if (sizeBytes > 0)
        std::memcpy(host, device, sizeBytes);
}

DeviceMemoryState deviceMemoryState()
{
    DeviceMemoryState state;
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
