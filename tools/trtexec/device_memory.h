// SPDX-License-Identifier: Apache-2.0
// Memory that engines read and write, and copies to and from it: host memory on the CPU device, else the memory of a
// GPU, through the CUDA driver, which is opened and never linked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace tw::trtexec {

// Bytes: what cudaMalloc gives and engines ask of allocators, on every device.
inline constexpr size_t kDeviceAlignment = 256;

// Everything below is about this GPU from now on. Throws a Failure when it cannot be used.
void useGpu(int32_t ordinal);
bool usesGpu();
// Buffers are made in memory that host and GPU share, from now on.
void useManagedMemory();
// GPUs that the driver offers; 0 without a driver.
int32_t countGpus();
// Of the GPU in use.
struct GpuFacts
{
    std::string name;
    int major = 0, minor = 0, multiprocessors = 0, clockKHz = 0, sharedKiB = 0; // shared: of one multiprocessor
    int busBits = 0, memoryClockKHz = 0;
    bool hasEcc = false;
    size_t persistingL2Bytes = 0; // the most that accesses can keep in the L2 cache; 0: it has no such part
};
GpuFacts gpuFacts();
std::string gpuPciBusId(); // of the GPU in use; empty: the driver does not tell
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

// Host memory that copies on a stream can run beside the program from and to: page-locked where there is a GPU.
class HostBuffer
{
public:
    HostBuffer() = default;
    explicit HostBuffer(size_t sizeBytes); // contents are zero
    ~HostBuffer();
    HostBuffer(HostBuffer&& other) noexcept { swap(other); }
    HostBuffer& operator=(HostBuffer&& other) noexcept
    {
        swap(other);
        return *this;
    }

    std::byte* data() const { return data_; }
    size_t size() const { return sizeBytes_; }

private:
    void swap(HostBuffer& other)
    {
        std::swap(data_, other.data_);
        std::swap(sizeBytes_, other.sizeBytes_);
    }
    std::byte* data_ = nullptr;
    size_t sizeBytes_ = 0;
};

// In the order of the stream (a CUstream), from and to a HostBuffer; at once on the CPU device.
void copyToDevice(void* device, void const* host, size_t sizeBytes, void* stream);
void copyFromDevice(void* host, void const* device, size_t sizeBytes, void* stream);

struct DeviceMemoryState
{
    uint64_t freeBytes = 0;
    uint64_t totalBytes = 0;
};
DeviceMemoryState deviceMemoryState();

} // namespace tw::trtexec
