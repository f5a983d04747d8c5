// SPDX-License-Identifier: Apache-2.0
// Memory that engines read and write, and copies to and from it. On the CPU device that is host memory; a GPU needs
// other bodies for these functions and nothing else of the tool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tw::trtexec {

// Widest vector register and cache line of the CPUs.
inline constexpr size_t kDeviceAlignment = 64;

class DeviceBuffer
{
public:
    DeviceBuffer() = default;
    explicit DeviceBuffer(size_t sizeBytes); // contents are zero; size 0 still has an address of its own
    ~DeviceBuffer();
    DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept
    {
        swap(other);
        return *this;
    }

    void* data() const { return data_; }
    size_t size() const { return sizeBytes_; }

private:
    void swap(DeviceBuffer& other)
    {
        std::swap(data_, other.data_);
        std::swap(sizeBytes_, other.sizeBytes_);
    }
    void* data_ = nullptr;
    size_t sizeBytes_ = 0;
};

void copyToDevice(void* device, const void* host, size_t sizeBytes);
void copyFromDevice(void* host, const void* device, size_t sizeBytes);

struct DeviceMemoryState
{
    uint64_t freeBytes = 0;
    uint64_t totalBytes = 0;
};
DeviceMemoryState deviceMemoryState();

} // namespace tw::trtexec
