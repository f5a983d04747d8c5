// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <optional>

#include "api/engine/engine.h"
#include "base/round.h"
#include "device/large_pages.h"

namespace tw::api {

Result<void> DeviceMemory::allocate(int64_t sizeBytes, nvinfer1::IGpuAllocator* allocator, cuda::Target const* gpu)
{
    reset();
    if (sizeBytes <= 0)
        return {};
    if (sizeBytes > INT64_MAX - int64_t(kDeviceAlignment))
        return failedAllocation("activations of {} bytes cannot be", sizeBytes);
    uint64_t const rounded = uint64_t(roundUp(sizeBytes, kDeviceAlignment));
    std::string const what = fmt::format("{} bytes of activations", rounded);
    if (!allocator && gpu) {
        TW_ASSIGN(buffer_, cuda::Buffer::allocate(gpu->device, int64_t(rounded)));
        data_ = buffer_.data();
    } else if (!allocator) {
        large_ = rounded >= device::kLargePageBytes;
        data_ = large_ ? device::mapLargePages(rounded) : std::aligned_alloc(kDeviceAlignment, rounded);
        if (!data_)
            return failedAllocation("no memory for " + what);
    } else {
        std::optional<cuda::Current> current; // clients allocate where they are
        if (gpu)
            current.emplace(*gpu->device);
        device_ = gpu ? gpu->device : nullptr;
        void* const given = allocator->allocate(rounded, kDeviceAlignment, 0);
        if (!given)
            return failedAllocation("the IGpuAllocator gave no memory for " + what);
        if (reinterpret_cast<uintptr_t>(given) % kDeviceAlignment != 0) {
            allocator->deallocate(given);
            return failedAllocation("the IGpuAllocator gave memory for {} that is not aligned to {}", what,
                                    kDeviceAlignment);
        }
        data_ = given;
    }
    allocator_ = allocator;
    size_ = sizeBytes;
    return {};
}

void DeviceMemory::reset()
{
    if (data_ && allocator_) {
        std::optional<cuda::Current> current;
        if (device_)
            current.emplace(*device_);
        allocator_->deallocate(data_);
    } else if (buffer_.data()) {
        buffer_.reset();
    } else if (large_) {
        device::unmapLargePages(data_, size_t(size_));
    } else {
        std::free(data_);
    }
    device_.reset();
    data_ = nullptr;
    large_ = false;
    size_ = 0;
}

} // namespace tw::api
