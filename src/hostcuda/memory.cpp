// SPDX-License-Identifier: Apache-2.0
// Allocation: "device" memory is host memory, aligned and, above 2 MiB, on huge pages where the system has them.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>

#include "registry.h"
#include "state.h"

namespace tw::hostcuda {
namespace {

// CUDA promises at least 256 bytes of alignment, which clients rely on; vector kernels here need 64.
constexpr std::size_t kAlignment = 256;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
// Asking the system how much is left costs some 30 us, so only larger requests do.
constexpr std::size_t kCheckedBytes = std::size_t{64} << 20;
// Rows of cudaMallocPitch start at multiples of this; a GPU of compute capability 9.0 uses 512 too.
constexpr std::size_t kPitchAlignment = 512;

// The first number in a file such as /sys/fs/cgroup/memory.max; 0 for "max", an absent file or nonsense.
std::size_t numberIn(char const* path)
{
    std::FILE* file = std::fopen(path, "re");
    if (file == nullptr)
        return 0;
    unsigned long long value = 0;
    int const fields = std::fscanf(file, "%llu", &value);
    std::fclose(file);
    return fields == 1 ? static_cast<std::size_t>(value) : 0;
}

bool roundUp(std::size_t value, std::size_t multiple, std::size_t& result)
{
    if (__builtin_add_overflow(value, multiple - 1, &result))
        return false;
    result -= result % multiple;
    return true;
}

cudaError_t hostAllocate(void** ptr, std::size_t sizeBytes, unsigned int flags)
{
    constexpr unsigned int kKnown = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    if (ptr == nullptr || (flags & ~kKnown) != 0)
        return cudaErrorInvalidValue;
    if (cudaError_t const error = checkUnsafeCall(); error != cudaSuccess)
        return error;
    return allocate(ptr, sizeBytes, MemoryKind::kHost, flags);
}

} // namespace

MachineMemory machineMemory()
{
    MachineMemory memory;
    if (std::FILE* file = std::fopen("/proc/meminfo", "re")) {
        char line[128];
        unsigned long long kib = 0;
        while (std::fgets(line, sizeof(line), file) != nullptr) {
            if (std::sscanf(line, "MemTotal: %llu", &kib) == 1)
                memory.totalBytes = static_cast<std::size_t>(kib) * 1024;
            else if (std::sscanf(line, "MemAvailable: %llu", &kib) == 1)
                memory.freeBytes = static_cast<std::size_t>(kib) * 1024;
        }
        std::fclose(file);
    }
    std::size_t const limit = numberIn("/sys/fs/cgroup/memory.max");
    if (limit != 0 && limit < memory.totalBytes) {
        std::size_t const used = numberIn("/sys/fs/cgroup/memory.current");
        memory.totalBytes = limit;
        std::size_t const left = used < limit ? limit - used : 0;
        if (left < memory.freeBytes)
            memory.freeBytes = left;
    }
    return memory;
}

cudaError_t allocate(void** ptr, std::size_t sizeBytes, MemoryKind kind, unsigned int flags, void const* pool,
                     bool fromGraph)
{
    *ptr = nullptr;
    if (sizeBytes == 0)
        return cudaSuccess;
    // Linux would promise memory that it does not have; CUDA clients expect the refusal here and not a kill later.
    if (sizeBytes >= kCheckedBytes) {
        MachineMemory const memory = machineMemory();
        if (memory.totalBytes != 0 && sizeBytes > memory.freeBytes)
            return cudaErrorMemoryAllocation;
    }
    bool const huge = sizeBytes > kHugePageBytes;
    void* block = nullptr;
    if (posix_memalign(&block, huge ? kHugePageBytes : kAlignment, sizeBytes) != 0)
        return cudaErrorMemoryAllocation;
    if (huge)
        madvise(block, sizeBytes, MADV_HUGEPAGE); // advice only: refusal costs speed, nothing else
    Allocation const entry{reinterpret_cast<std::uintptr_t>(block), sizeBytes, kind, flags, pool, fromGraph};
    if (!registry().add(entry)) {
        // A range that the client registered and then gave back to the system without cudaHostUnregister.
        std::free(block);
        return cudaErrorHostMemoryAlreadyRegistered;
    }
    *ptr = block;
    return cudaSuccess;
}

cudaError_t release(void* ptr, MemoryKind kind)
{
    if (!registry().remove(ptr, kind))
        return cudaErrorInvalidValue;
    std::free(ptr);
    return cudaSuccess;
}

void freeAllMemory()
{
    for (Allocation const& allocation : registry().removeAll())
        if (allocation.kind != MemoryKind::kRegistered)
            std::free(reinterpret_cast<void*>(allocation.base));
}

} // namespace tw::hostcuda

using namespace tw::hostcuda;

cudaError_t cudaMemGetInfo(size_t* freeBytes, size_t* totalBytes)
{
    return call([&] {
        if (freeBytes == nullptr || totalBytes == nullptr)
            return cudaErrorInvalidValue;
        MachineMemory const memory = machineMemory();
        *freeBytes = memory.freeBytes;
        *totalBytes = memory.totalBytes;
        return cudaSuccess;
    });
}

cudaError_t cudaMalloc(void** ptr, size_t sizeBytes)
{
    return call([&] {
        if (ptr == nullptr)
            return cudaErrorInvalidValue;
        if (cudaError_t const error = checkUnsafeCall(); error != cudaSuccess)
            return error;
        return allocate(ptr, sizeBytes, MemoryKind::kDevice, 0);
    });
}

cudaError_t cudaMallocManaged(void** ptr, size_t sizeBytes, unsigned int flags)
{
    return call([&] {
        if (ptr == nullptr || sizeBytes == 0 || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
            return cudaErrorInvalidValue;
        if (cudaError_t const error = checkUnsafeCall(); error != cudaSuccess)
            return error;
        return allocate(ptr, sizeBytes, MemoryKind::kManaged, flags);
    });
}

cudaError_t cudaMallocPitch(void** ptr, size_t* pitch, size_t widthBytes, size_t height)
{
    return call([&] {
        if (ptr == nullptr || pitch == nullptr)
            return cudaErrorInvalidValue;
        std::size_t rowBytes = 0;
        std::size_t sizeBytes = 0;
        if (!roundUp(widthBytes, kPitchAlignment, rowBytes) || __builtin_mul_overflow(rowBytes, height, &sizeBytes))
            return cudaErrorMemoryAllocation;
        if (cudaError_t const error = checkUnsafeCall(); error != cudaSuccess)
            return error;
        cudaError_t const error = allocate(ptr, sizeBytes, MemoryKind::kDevice, 0);
        if (error == cudaSuccess)
            *pitch = rowBytes;
        return error;
    });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent)
{
    return call([&] {
        if (pitched == nullptr)
            return cudaErrorInvalidValue;
        std::size_t rowBytes = 0;
        std::size_t sizeBytes = 0;
        if (!roundUp(extent.width, kPitchAlignment, rowBytes) ||
            __builtin_mul_overflow(rowBytes, extent.height, &sizeBytes) ||
            __builtin_mul_overflow(sizeBytes, extent.depth, &sizeBytes))
            return cudaErrorMemoryAllocation;
        if (cudaError_t const error = checkUnsafeCall(); error != cudaSuccess)
            return error;
        void* ptr = nullptr;
        cudaError_t const error = allocate(&ptr, sizeBytes, MemoryKind::kDevice, 0);
        if (error == cudaSuccess)
            *pitched = cudaPitchedPtr{ptr, rowBytes, extent.width, extent.height};
        return error;
    });
}

cudaError_t cudaFree(void* ptr)
{
    return call([&] {
        if (ptr == nullptr)
            return cudaSuccess;
        if (cudaError_t const error = checkUnsafeCall(); error != cudaSuccess)
            return error;
        waitForDevice(); // CUDA frees only what no stream still uses
        if (release(ptr, MemoryKind::kDevice) == cudaSuccess)
            return cudaSuccess;
        return release(ptr, MemoryKind::kManaged);
    });
}

cudaError_t cudaMallocHost(void** ptr, size_t sizeBytes)
{
    return call([&] { return hostAllocate(ptr, sizeBytes, cudaHostAllocDefault); });
}

cudaError_t cudaHostAlloc(void** ptr, size_t sizeBytes, unsigned int flags)
{
    return call([&] { return hostAllocate(ptr, sizeBytes, flags); });
}

cudaError_t cudaFreeHost(void* ptr)
{
    return call([&] {
        if (ptr == nullptr)
            return cudaSuccess;
        if (cudaError_t const error = checkUnsafeCall(); error != cudaSuccess)
            return error;
        waitForDevice();
        return release(ptr, MemoryKind::kHost);
    });
}

cudaError_t cudaHostRegister(void* ptr, size_t sizeBytes, unsigned int flags)
{
    return call([&] {
        constexpr unsigned int kKnown =
            cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
        std::uintptr_t const base = reinterpret_cast<std::uintptr_t>(ptr);
        std::uintptr_t end = 0;
        if (ptr == nullptr || sizeBytes == 0 || (flags & ~kKnown) != 0 || __builtin_add_overflow(base, sizeBytes, &end))
            return cudaErrorInvalidValue;
        if (cudaError_t const error = checkUnsafeCall(); error != cudaSuccess)
            return error;
        if (!registry().add(Allocation{base, sizeBytes, MemoryKind::kRegistered, flags}))
            return cudaErrorHostMemoryAlreadyRegistered;
        return cudaSuccess;
    });
}

cudaError_t cudaHostUnregister(void* ptr)
{
    return call([&] {
        if (ptr == nullptr)
            return cudaErrorInvalidValue;
        if (cudaError_t const error = checkUnsafeCall(); error != cudaSuccess)
            return error;
        return registry().remove(ptr, MemoryKind::kRegistered) ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
    });
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned int flags)
{
    return call([&] {
        if (device == nullptr || flags != 0)
            return cudaErrorInvalidValue;
        *device = nullptr;
        std::optional<Allocation> const known = registry().find(host);
        if (!known || known->kind == MemoryKind::kDevice)
            return cudaErrorInvalidValue;
        *device = host; // one address space
        return cudaSuccess;
    });
}

cudaError_t cudaHostGetFlags(unsigned int* flags, void* host)
{
    return call([&] {
        std::optional<Allocation> const known = registry().find(host);
        if (flags == nullptr || !known || (known->kind != MemoryKind::kHost && known->kind != MemoryKind::kRegistered))
            return cudaErrorInvalidValue;
        *flags = known->flags | cudaHostAllocMapped; // with one address space all of it is mapped
        return cudaSuccess;
    });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, void const* ptr)
{
    return call([&] {
        if (attributes == nullptr || ptr == nullptr)
            return cudaErrorInvalidValue;
        std::memset(attributes, 0, sizeof(*attributes));
        void* const address = const_cast<void*>(ptr);
        attributes->hostPointer = address;
        attributes->device = cudaInvalidDeviceId;
        std::optional<Allocation> const known = registry().find(ptr);
        if (!known)
            return cudaSuccess; // cudaMemoryTypeUnregistered
        attributes->device = 0;
        attributes->devicePointer = address;
        switch (known->kind) {
        case MemoryKind::kDevice:
            attributes->type = cudaMemoryTypeDevice;
            attributes->hostPointer = nullptr; // as on a GPU, so that programs take the same path as there
            break;
        case MemoryKind::kManaged:
            attributes->type = cudaMemoryTypeManaged;
            break;
        case MemoryKind::kHost:
        case MemoryKind::kRegistered:
            attributes->type = cudaMemoryTypeHost;
            break;
        }
        return cudaSuccess;
    });
}

namespace {

cudaError_t checkRange(void const* ptr, std::size_t count)
{
    std::optional<Allocation> const known = registry().find(ptr);
    if (!known)
        return cudaErrorInvalidValue;
    std::size_t const offset = reinterpret_cast<std::uintptr_t>(ptr) - known->base;
    return count <= known->sizeBytes - offset ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t prefetch(void const* ptr, std::size_t count, int device, cudaStream_t stream)
{
    if (device != 0 && device != cudaCpuDeviceId)
        return cudaErrorInvalidDevice;
    if (cudaError_t const error = checkRange(ptr, count); error != cudaSuccess)
        return error;
    return submit(stream, cudaGraphNodeTypeEmpty, [] {}); // it is where it must be
}

} // namespace

#if TW_CUDART_MAJOR < 13
cudaError_t cudaMemPrefetchAsync(void const* ptr, size_t count, int device, cudaStream_t stream)
{
    return call([&] { return prefetch(ptr, count, device, stream); });
}

cudaError_t cudaMemAdvise(void const* ptr, size_t count, cudaMemoryAdvise, int)
{
    return call([&] { return checkRange(ptr, count); });
}
#else
cudaError_t cudaMemPrefetchAsync(void const* ptr, size_t count, cudaMemLocation location, unsigned int flags,
                                 cudaStream_t stream)
{
    return call([&] {
        if (flags != 0)
            return cudaErrorInvalidValue;
        return prefetch(ptr, count, location.type == cudaMemLocationTypeDevice ? location.id : cudaCpuDeviceId, stream);
    });
}

cudaError_t cudaMemAdvise(void const* ptr, size_t count, cudaMemoryAdvise, cudaMemLocation)
{
    return call([&] { return checkRange(ptr, count); });
}
#endif
