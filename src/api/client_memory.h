// SPDX-License-Identifier: Apache-2.0
// Memory of the client's IGpuAllocator for engines on the CPU; those on a GPU have theirs through their device (gpu.h).
#pragma once

#include "NvInferRuntime.h"
#include "device/memory_source.h"

namespace tw::api {

class ClientMemory final : public device::MemorySource
{
public:
    explicit ClientMemory(nvinfer1::IGpuAllocator& client) : client_(client) {}

private:
    void* get(size_t sizeBytes, size_t alignment) override
    {
        void* const memory = client_.allocate(sizeBytes, alignment, 0);
        if (reinterpret_cast<uintptr_t>(memory) % alignment == 0)
            return memory;
        client_.deallocate(memory);
        return nullptr;
    }
    void giveBack(void* memory) override { client_.deallocate(memory); }

    nvinfer1::IGpuAllocator& client_; // lives longer than what it allocates, as 8.5 demands
};

} // namespace tw::api
