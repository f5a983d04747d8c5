// SPDX-License-Identifier: Apache-2.0
#include "device/large_pages.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include <sys/mman.h>

#include "base/sanitizers.h"
#include "device/memory_source.h"

namespace tw::device {

namespace {

constexpr size_t kPageBytes = 4096; // of x86-64
constexpr size_t kAlignment = 64;
// A block of another source (memory_source.h) has this bit in its size, which is a multiple of kAlignment, and in front of
// it, in as many bytes as the source's memory is aligned to, whose it is.
constexpr size_t kOfSource = 1, kSourceAlignment = 256;
using SourcePtr = std::shared_ptr<MemorySource>;
static_assert(sizeof(SourcePtr) <= kSourceAlignment);
// Smaller blocks lie on the heap; with the sanitizer, which sees overruns there only, all do.
constexpr size_t kLeastBytes = kAddressSanitizer ? SIZE_MAX : 256 << 10;
// Of address space, pages come as they are written. Each chunk leaves a part of its last large page over.
constexpr size_t kChunkBytes = 512 * kLargePageBytes, kSmallChunkBytes = 32 * kLargePageBytes;

uintptr_t alignedUp(uintptr_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

// Chunks are filled from the front. Pages of a freed block go back to the system at once, a chunk when its last block
// is freed: blocks of one engine come and go together.
class Chunks
{
public:
    std::byte* allocate(size_t sizeBytes)
    {
        std::lock_guard const lock(mutex_);
        auto best = chunks_.end();
        for (auto c = chunks_.begin(); c != chunks_.end(); ++c)
            if (c->sizeBytes - c->used >= sizeBytes && (best == chunks_.end() || c->used > best->used))
                best = c;
        if (best == chunks_.end()) {
            // Where address space is limited, a chunk is what there is.
            size_t const least = alignedUp(sizeBytes, kLargePageBytes);
            for (size_t size : {kChunkBytes, kSmallChunkBytes, least}) {
                size = std::max(size, least);
                if (auto* const memory = static_cast<std::byte*>(mapLargePages(size))) {
                    best = chunks_.insert(chunks_.end(), Chunk{memory, size, 0, 0});
                    break;
                }
            }
            if (best == chunks_.end())
                return nullptr;
        }
        std::byte* const block = best->memory + best->used;
        best->used += sizeBytes;
        ++best->blocks;
        return block;
    }
    void free(std::byte* block, size_t sizeBytes)
    {
        std::lock_guard const lock(mutex_);
        auto const c = std::find_if(chunks_.begin(), chunks_.end(), [&](Chunk const& k) {
            return block >= k.memory && block < k.memory + k.sizeBytes;
        });
        if (--c->blocks == 0) {
            unmapLargePages(c->memory, c->sizeBytes);
            chunks_.erase(c);
            return;
        }
        auto const begin = alignedUp(reinterpret_cast<uintptr_t>(block), kPageBytes);
        auto const end = (reinterpret_cast<uintptr_t>(block) + sizeBytes) / kPageBytes * kPageBytes;
        if (end > begin)
            (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }

private:
    struct Chunk
    {
        std::byte* memory;
        size_t sizeBytes, used, blocks;
    };
    std::mutex mutex_;
    std::vector<Chunk> chunks_;
};

Chunks& chunks()
{
    static Chunks* const all = new Chunks; // never destroyed: engines may be static objects of the client
    return *all;
}

} // namespace

void* mapLargePages(size_t sizeBytes)
{
    if (sizeBytes == 0 || sizeBytes > SIZE_MAX / 2)
        return nullptr;
    size_t const kept = alignedUp(sizeBytes, kPageBytes), reserved = kept + kLargePageBytes;
    void* const p =
        ::mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return nullptr;
    auto const begin = reinterpret_cast<uintptr_t>(p), memory = alignedUp(begin, kLargePageBytes);
    if (memory > begin)
        ::munmap(p, memory - begin);
    ::munmap(reinterpret_cast<void*>(memory + kept), begin + reserved - memory - kept);
    if (size_t const whole = sizeBytes / kLargePageBytes * kLargePageBytes; whole > 0)
        (void)::madvise(reinterpret_cast<void*>(memory), whole, MADV_HUGEPAGE); // refusal costs speed, nothing else
    return reinterpret_cast<void*>(memory);
}

void unmapLargePages(void* memory, size_t sizeBytes)
{
    if (memory)
        ::munmap(memory, alignedUp(sizeBytes, kPageBytes));
}

void preferLargePages(void const* memory, size_t sizeBytes)
{
    auto const begin = alignedUp(reinterpret_cast<uintptr_t>(memory), kLargePageBytes);
    auto const end = (reinterpret_cast<uintptr_t>(memory) + sizeBytes) / kLargePageBytes * kLargePageBytes;
    if (begin < end)
        madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE); // a wish: nothing depends on it
}

PackedFloats::PackedFloats(int64_t count)
{
    constexpr int64_t kMost = INT64_MAX / 8;
    if (count < 0 || count > kMost)
        return;
    sizeBytes_ =
        alignedUp(std::max<size_t>(size_t(count) * sizeof(float), 1), kAlignment); // an empty one has an address
    if (SourcePtr const& source = SourceScope::current()) {
        auto* const begin = static_cast<std::byte*>(source->allocate(sizeBytes_ + kSourceAlignment, kSourceAlignment));
        if (!begin)
            return;
        new (begin) SourcePtr(source);
        data_ = reinterpret_cast<float*>(begin + kSourceAlignment);
        std::memset(data_, 0, sizeBytes_);
        sizeBytes_ |= kOfSource;
        return;
    }
    if (sizeBytes_ >= kLeastBytes) {
        data_ = reinterpret_cast<float*>(chunks().allocate(sizeBytes_));
        return;
    }
    data_ = static_cast<float*>(std::aligned_alloc(kAlignment, sizeBytes_));
    if (data_)
        std::memset(data_, 0, sizeBytes_);
}

PackedFloats::~PackedFloats()
{
    if (data_ && (sizeBytes_ & kOfSource) != 0) {
        std::byte* const begin = reinterpret_cast<std::byte*>(data_) - kSourceAlignment;
        auto* const held = std::launder(reinterpret_cast<SourcePtr*>(begin));
        SourcePtr const source = std::move(*held);
        held->~SourcePtr();
        source->free(begin);
        return;
    }
    if (data_ && sizeBytes_ >= kLeastBytes)
        chunks().free(reinterpret_cast<std::byte*>(data_), sizeBytes_);
    else
        std::free(data_);
}

} // namespace tw::device
