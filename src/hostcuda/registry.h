// SPDX-License-Identifier: Apache-2.0
// Which addresses the stand-in knows, by whom they were made, and how many bytes lie there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "cuda_runtime_api.h"

namespace tw::hostcuda {

enum class MemoryKind
{
    kDevice,
    kHost,
    kManaged,
    kRegistered
};

struct Allocation
{
    std::uintptr_t base = 0;
    std::size_t sizeBytes = 0;
    MemoryKind kind = MemoryKind::kDevice;
    unsigned int flags = 0;
    void const* pool = nullptr; // handle of the pool that it came from
    bool fromGraph = false;     // made by a cudaMallocAsync that was captured
};

class Registry
{
public:
    // False if the range touches a known one.
    bool add(Allocation const& allocation);
    // The allocation that starts at ptr, if it is of this kind, is removed and returned.
    std::optional<Allocation> remove(void const* ptr, MemoryKind kind);
    // The allocation that holds the address.
    std::optional<Allocation> find(void const* ptr) const;
    std::vector<Allocation> removeAll();

private:
    mutable std::shared_mutex mutex_;
    std::map<std::uintptr_t, Allocation> byBase_;
};

Registry& registry();

// Allocation and release without capture checks. Zero bytes give a null pointer. False: there is no such memory.
void allocate(void** ptr, std::size_t sizeBytes, MemoryKind kind, unsigned int flags, void const* pool = nullptr,
              bool fromGraph = false);
bool release(void* ptr, MemoryKind kind);

struct MachineMemory
{
    std::size_t freeBytes = 0;
    std::size_t totalBytes = 0;
};
// What this process can have: the machine's memory, or less where a control group says so.
MachineMemory machineMemory();

} // namespace tw::hostcuda
