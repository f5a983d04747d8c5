// SPDX-License-Identifier: Apache-2.0
// Memory straight from the system in pages of 2 MiB where it has them: one page fault instead of 512, and few misses of
// the TLB. Zero at first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tw::device {

inline constexpr size_t kLargePageBytes = size_t(2) << 20;

// Aligned to a large page; null when there is no memory. What does not fill a large page lies in small ones, so that
// no more becomes resident than was asked for.
void* mapLargePages(size_t sizeBytes);
void unmapLargePages(void* memory, size_t sizeBytes);
// Memory that was reserved and not touched yet: what of it fills large pages comes in such.
void preferLargePages(void const* memory, size_t sizeBytes);

// What a kernel packs when it is loaded. Such blocks lie one after the other, so that those of an engine share large
// pages whatever the size of each. Like the heap, the place where they lie belongs to the process.
class PackedFloats
{
public:
    PackedFloats() = default;
    explicit PackedFloats(int64_t count); // zeros, 64-byte aligned; data() is null when there is no memory
    PackedFloats(PackedFloats&& other) noexcept { *this = std::move(other); }
    PackedFloats& operator=(PackedFloats&& other) noexcept
    {
        std::swap(data_, other.data_);
        std::swap(sizeBytes_, other.sizeBytes_);
        return *this;
    }
    ~PackedFloats();

    float* data() const { return data_; }

private:
    float* data_ = nullptr;
    size_t sizeBytes_ = 0;
};

} // namespace tw::device
