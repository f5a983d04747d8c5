// SPDX-License-Identifier: Apache-2.0
#include "device/memory_source.h"

namespace tw::device {

namespace {

// Kernels are packed deep within load(); the thread knows for whom.
thread_local std::shared_ptr<MemorySource> ofThread;

} // namespace

void* MemorySource::allocate(size_t sizeBytes, size_t alignment)
{
    std::lock_guard const lock(mutex_);
    void* const memory = get(sizeBytes, alignment);
    uint64_t none = 0;
    if (!memory)
        failed_.compare_exchange_strong(none, sizeBytes);
    return memory;
}

void MemorySource::free(void* memory)
{
    std::lock_guard const lock(mutex_);
    giveBack(memory);
}

SourceScope::SourceScope(std::shared_ptr<MemorySource> source) : before_(std::move(source))
{
    ofThread.swap(before_);
}

SourceScope::~SourceScope()
{
    ofThread.swap(before_);
}

std::shared_ptr<MemorySource> const& SourceScope::current()
{
    return ofThread;
}

} // namespace tw::device
