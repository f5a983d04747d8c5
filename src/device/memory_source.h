// SPDX-License-Identifier: Apache-2.0
// Memory that a client wants to give itself: through its IGpuAllocator, on the CPU as on a GPU.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace tw::device {

class MemorySource
{
public:
    virtual ~MemorySource() = default;
    // Null when there is none. Threads take turns.
    void* allocate(size_t sizeBytes, size_t alignment);
    void free(void* memory);
    // Of the first allocation that failed since the last call; 0: none has.
    uint64_t takeFailure() { return failed_.exchange(0); }

private:
    virtual void* get(size_t sizeBytes, size_t alignment) = 0;
    virtual void giveBack(void* memory) = 0;

    std::mutex mutex_;
    std::atomic<uint64_t> failed_{0};
};

// As long as it lives, what kernels pack in this thread (PackedFloats), and plans that are copied, lie in memory of
// `source`; null: of the process. Kernels are packed deep within load(), for one client at a time.
class SourceScope
{
public:
    explicit SourceScope(std::shared_ptr<MemorySource> source);
    ~SourceScope();
    SourceScope(SourceScope const&) = delete;
    SourceScope& operator=(SourceScope const&) = delete;
    static std::shared_ptr<MemorySource> const& current();

private:
    std::shared_ptr<MemorySource> before_;
};

} // namespace tw::device
