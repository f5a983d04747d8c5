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

void hostAllocate(void** ptr, std::size_t sizeBytes, unsigned int flags)
{
    constexpr unsigned int kKnown = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    failIf(ptr == nullptr || (flags & ~kKnown) != 0);
    checkUnsafeCall();
    allocate(ptr, sizeBytes, MemoryKind::kHost, flags);
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

void allocate(void** ptr, std::size_t sizeBytes, MemoryKind kind, unsigned int flags, void const* pool, bool fromGraph)
{
    *ptr = nullptr;
    if (sizeBytes == 0)
        return;
    // Linux would promise memory that it does not have; CUDA clients expect the refusal here and not a kill later.
    if (sizeBytes >= kCheckedBytes) {
        MachineMemory const memory = machineMemory();
        failIf(memory.totalBytes != 0 && sizeBytes > memory.freeBytes, cudaErrorMemoryAllocation);
    }
    bool const huge = sizeBytes > kHugePageBytes;
    void* block = nullptr;
    failIf(posix_memalign(&block, huge ? kHugePageBytes : kAlignment, sizeBytes) != 0, cudaErrorMemoryAllocation);
    if (huge)
        madvise(block, sizeBytes, MADV_HUGEPAGE); // advice only: refusal costs speed, nothing else
    Allocation const entry{reinterpret_cast<std::uintptr_t>(block), sizeBytes, kind, flags, pool, fromGraph};
    if (!registry().add(entry)) {
        // A range that the client registered and then gave back to the system without cudaHostUnregister.
        std::free(block);
        fail(cudaErrorHostMemoryAlreadyRegistered);
    }
    *ptr = block;
}

bool release(void* ptr, MemoryKind kind)
{
    bool const isKnown = registry().remove(ptr, kind).has_value();
    if (isKnown)
        std::free(ptr);
    return isKnown;
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
        failIf(freeBytes == nullptr || totalBytes == nullptr);
        MachineMemory const memory = machineMemory();
        *freeBytes = memory.freeBytes;
        *totalBytes = memory.totalBytes;
    });
}

cudaError_t cudaMalloc(void** ptr, size_t sizeBytes)
{
    return call([&] {
        failIf(ptr == nullptr);
        checkUnsafeCall();
        allocate(ptr, sizeBytes, MemoryKind::kDevice, 0);
    });
}

cudaError_t cudaMallocManaged(void** ptr, size_t sizeBytes, unsigned int flags)
{
    return call([&] {
        failIf(ptr == nullptr || sizeBytes == 0 || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost));
        checkUnsafeCall();
        allocate(ptr, sizeBytes, MemoryKind::kManaged, flags);
    });
}

cudaError_t cudaMallocPitch(void** ptr, size_t* pitch, size_t widthBytes, size_t height)
{
    return call([&] {
        failIf(ptr == nullptr || pitch == nullptr);
        std::size_t rowBytes = 0;
        std::size_t sizeBytes = 0;
        failIf(!roundUp(widthBytes, kPitchAlignment, rowBytes) || __builtin_mul_overflow(rowBytes, height, &sizeBytes),
               cudaErrorMemoryAllocation);
        checkUnsafeCall();
        allocate(ptr, sizeBytes, MemoryKind::kDevice, 0);
        *pitch = rowBytes;
    });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent)
{
    return call([&] {
        failIf(pitched == nullptr);
        std::size_t rowBytes = 0;
        std::size_t sizeBytes = 0;
        failIf(!roundUp(extent.width, kPitchAlignment, rowBytes) ||
                   __builtin_mul_overflow(rowBytes, extent.height, &sizeBytes) ||
                   __builtin_mul_overflow(sizeBytes, extent.depth, &sizeBytes),
               cudaErrorMemoryAllocation);
        checkUnsafeCall();
        void* ptr = nullptr;
        allocate(&ptr, sizeBytes, MemoryKind::kDevice, 0);
        *pitched = cudaPitchedPtr{ptr, rowBytes, extent.width, extent.height};
    });
}

cudaError_t cudaFree(void* ptr)
{
    return call([&] {
        if (ptr == nullptr)
            return;
        checkUnsafeCall();
        waitForDevice(); // CUDA frees only what no stream still uses
        failIf(!release(ptr, MemoryKind::kDevice) && !release(ptr, MemoryKind::kManaged));
    });
}

TW_CALL(cudaMallocHost, (void** ptr, size_t sizeBytes), hostAllocate(ptr, sizeBytes, cudaHostAllocDefault))
TW_CALL(cudaHostAlloc, (void** ptr, size_t sizeBytes, unsigned int flags), hostAllocate(ptr, sizeBytes, flags))

cudaError_t cudaFreeHost(void* ptr)
{
    return call([&] {
        if (ptr == nullptr)
            return;
        checkUnsafeCall();
        waitForDevice();
        failIf(!release(ptr, MemoryKind::kHost));
    });
}

cudaError_t cudaHostRegister(void* ptr, size_t sizeBytes, unsigned int flags)
{
    return call([&] {
        constexpr unsigned int kKnown =
            cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
        std::uintptr_t const base = reinterpret_cast<std::uintptr_t>(ptr);
        std::uintptr_t end = 0;
        failIf(ptr == nullptr || sizeBytes == 0 || (flags & ~kKnown) != 0 ||
               __builtin_add_overflow(base, sizeBytes, &end));
        checkUnsafeCall();
        failIf(!registry().add(Allocation{base, sizeBytes, MemoryKind::kRegistered, flags}),
               cudaErrorHostMemoryAlreadyRegistered);
    });
}

cudaError_t cudaHostUnregister(void* ptr)
{
    return call([&] {
        failIf(ptr == nullptr);
        checkUnsafeCall();
        failIf(!registry().remove(ptr, MemoryKind::kRegistered), cudaErrorHostMemoryNotRegistered);
    });
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned int flags)
{
    return call([&] {
        failIf(device == nullptr || flags != 0);
        *device = nullptr;
        std::optional<Allocation> const known = registry().find(host);
        failIf(!known || known->kind == MemoryKind::kDevice);
        *device = host; // one address space
    });
}

cudaError_t cudaHostGetFlags(unsigned int* flags, void* host)
{
    return call([&] {
        std::optional<Allocation> const known = registry().find(host);
        failIf(flags == nullptr || !known ||
               (known->kind != MemoryKind::kHost && known->kind != MemoryKind::kRegistered));
        *flags = known->flags | cudaHostAllocMapped; // with one address space all of it is mapped
    });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, void const* ptr)
{
    return call([&] {
        failIf(attributes == nullptr || ptr == nullptr);
        std::memset(attributes, 0, sizeof(*attributes));
        void* const address = const_cast<void*>(ptr);
        attributes->hostPointer = address;
        attributes->device = cudaInvalidDeviceId;
        std::optional<Allocation> const known = registry().find(ptr);
        if (!known)
            return; // cudaMemoryTypeUnregistered
        attributes->device = 0;
        attributes->devicePointer = address;
        attributes->type = known->kind == MemoryKind::kDevice    ? cudaMemoryTypeDevice
                           : known->kind == MemoryKind::kManaged ? cudaMemoryTypeManaged
                                                                 : cudaMemoryTypeHost;
        if (known->kind == MemoryKind::kDevice)
            attributes->hostPointer = nullptr; // as on a GPU, so that programs take the same path as there
    });
}

namespace {

void checkRange(void const* ptr, std::size_t count)
{
    std::optional<Allocation> const known = registry().find(ptr);
    failIf(!known);
    failIf(count > known->base + known->sizeBytes - reinterpret_cast<std::uintptr_t>(ptr));
}

void prefetch(void const* ptr, std::size_t count, int device, cudaStream_t stream)
{
    failIf(device != 0 && device != cudaCpuDeviceId, cudaErrorInvalidDevice);
    checkRange(ptr, count);
    submit(stream, cudaGraphNodeTypeEmpty, [] {}); // it is where it must be
}

} // namespace

#if TW_CUDART_MAJOR < 13
TW_CALL(cudaMemPrefetchAsync, (void const* ptr, size_t count, int device, cudaStream_t stream),
        prefetch(ptr, count, device, stream))
TW_CALL(cudaMemAdvise, (void const* ptr, size_t count, cudaMemoryAdvise, int), checkRange(ptr, count))
#else
cudaError_t cudaMemPrefetchAsync(void const* ptr, size_t count, cudaMemLocation location, unsigned int flags,
                                 cudaStream_t stream)
{
    return call([&] {
        failIf(flags != 0);
        prefetch(ptr, count, location.type == cudaMemLocationTypeDevice ? location.id : cudaCpuDeviceId, stream);
    });
}

TW_CALL(cudaMemAdvise, (void const* ptr, size_t count, cudaMemoryAdvise, cudaMemLocation), checkRange(ptr, count))
#endif
