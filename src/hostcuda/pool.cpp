// SPDX-License-Identifier: Apache-2.0
// Stream-ordered allocation and memory pools. Work is finished when it is submitted, so allocation in stream order is
// plain allocation; a pool only counts, and keeps no freed memory back.
#include <algorithm>
#include <mutex>
#include <utility>

#include "registry.h"
#include "state.h"

namespace tw::hostcuda {

struct Pool
{
    cudaMemPool_t handle = nullptr;
    std::mutex mutex;
    unsigned long long releaseThreshold = 0;
    int reuse[3] = {1, 1, 1};
    unsigned long long used = 0;
    unsigned long long usedHigh = 0;
};

namespace {

HandleTable<Pool>& pools()
{
    return state().pools;
}

std::shared_ptr<Pool> makePool()
{
    auto pool = std::make_shared<Pool>();
    pool->handle = pools().add<cudaMemPool_t>(pool);
    return pool;
}

std::shared_ptr<Pool> defaultPool()
{
    std::lock_guard const lock(state().defaultPools);
    if (!state().defaultPool)
        state().defaultPool = makePool();
    return state().defaultPool;
}

std::shared_ptr<Pool> currentPool()
{
    {
        std::lock_guard const lock(state().defaultPools);
        if (state().currentPool)
            return state().currentPool;
    }
    return defaultPool();
}

void count(Pool& pool, std::size_t sizeBytes)
{
    std::lock_guard const lock(pool.mutex);
    pool.used += sizeBytes;
    if (pool.used > pool.usedHigh)
        pool.usedHigh = pool.used;
}

// Device memory of whatever pool; the pool may be gone by now.
cudaError_t releaseCounted(void* ptr)
{
    std::optional<Allocation> const known = registry().find(ptr);
    if (cudaError_t const error = release(ptr, MemoryKind::kDevice); error != cudaSuccess)
        return error;
    if (std::shared_ptr<Pool> const pool = known ? pools().find(known->pool) : nullptr) {
        std::lock_guard const lock(pool->mutex);
        pool->used -= std::min<unsigned long long>(pool->used, known->sizeBytes);
    }
    return cudaSuccess;
}

// Memory of a captured allocation: it has one address for all launches and ends with the last graph that holds it.
struct GraphMemory
{
    void* ptr = nullptr;
    ~GraphMemory() { (void)releaseCounted(ptr); }
};

cudaError_t allocateFrom(Pool& pool, void** ptr, std::size_t sizeBytes, cudaStream_t streamHandle)
{
    if (ptr == nullptr || sizeBytes == 0)
        return cudaErrorInvalidValue;
    std::shared_ptr<Stream> const stream = findStream(streamHandle);
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    bool capturing = false;
    {
        std::lock_guard const lock(state().structure);
        capturing = stream->capture != nullptr;
    }
    *ptr = nullptr;
    void* block = nullptr;
    cudaError_t const error = allocate(&block, sizeBytes, MemoryKind::kDevice, 0, pool.handle, capturing);
    if (error != cudaSuccess)
        return error;
    count(pool, sizeBytes);
    Work work = [] {};
    std::shared_ptr<GraphMemory> owner;
    if (capturing) {
        owner = std::make_shared<GraphMemory>();
        owner->ptr = block;
        work = [owner] {};
    }
    cudaError_t const submitted = submit(streamHandle, cudaGraphNodeTypeMemAlloc, std::move(work));
    if (submitted == cudaSuccess)
        *ptr = block;
    else if (!capturing)
        (void)releaseCounted(block);
    return submitted;
}

cudaError_t freeInOrder(void* ptr, cudaStream_t stream)
{
    if (ptr == nullptr)
        return cudaSuccess;
    std::optional<Allocation> const known = registry().find(ptr);
    if (!known || known->base != reinterpret_cast<std::uintptr_t>(ptr) || known->kind != MemoryKind::kDevice)
        return cudaErrorInvalidValue;
    if (known->fromGraph) // the graph owns it; the node marks the place
        return submit(stream, cudaGraphNodeTypeMemFree, [] {});
    return submit(stream, cudaGraphNodeTypeMemFree, [ptr] { (void)releaseCounted(ptr); });
}

cudaError_t setPool(cudaMemPool_t* out, std::shared_ptr<Pool> const& pool, int device)
{
    if (out == nullptr)
        return cudaErrorInvalidValue;
    if (device != 0)
        return cudaErrorInvalidDevice;
    *out = pool->handle;
    return cudaSuccess;
}

} // namespace

void forgetPools()
{
    auto const all = pools().removeAll();
    std::lock_guard const lock(state().defaultPools);
    state().defaultPool.reset();
    state().currentPool.reset();
}

} // namespace tw::hostcuda

using namespace tw::hostcuda;

cudaError_t cudaMallocAsync(void** ptr, size_t sizeBytes, cudaStream_t stream)
{
    return call([&] { return allocateFrom(*currentPool(), ptr, sizeBytes, stream); });
}

cudaError_t cudaMallocFromPoolAsync(void** ptr, size_t sizeBytes, cudaMemPool_t pool, cudaStream_t stream)
{
    return call([&] {
        std::shared_ptr<Pool> const object = pools().find(pool);
        return object ? allocateFrom(*object, ptr, sizeBytes, stream) : cudaErrorInvalidValue;
    });
}

cudaError_t cudaFreeAsync(void* ptr, cudaStream_t stream)
{
    return call([&] { return freeInOrder(ptr, stream); });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, cudaMemPoolProps const* props)
{
    return call([&] {
        if (pool == nullptr || props == nullptr || props->allocType != cudaMemAllocationTypePinned)
            return cudaErrorInvalidValue;
        if (props->handleTypes != cudaMemHandleTypeNone)
            return cudaErrorNotSupported; // no sharing between processes
        *pool = makePool()->handle;
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    return call([&] {
        if (pool == defaultPool()->handle)
            return cudaErrorInvalidValue;
        std::shared_ptr<Pool> const object = pools().remove(pool);
        if (!object)
            return cudaErrorInvalidValue;
        std::lock_guard const lock(state().defaultPools);
        if (state().currentPool == object)
            state().currentPool.reset();
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t)
{
    return call([&] { return pools().find(pool) ? cudaSuccess : cudaErrorInvalidValue; });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void* value)
{
    return call([&] {
        std::shared_ptr<Pool> const object = pools().find(pool);
        if (!object || value == nullptr)
            return cudaErrorInvalidValue;
        std::lock_guard const lock(object->mutex);
        switch (attr) {
        case cudaMemPoolReuseFollowEventDependencies:
        case cudaMemPoolReuseAllowOpportunistic:
        case cudaMemPoolReuseAllowInternalDependencies:
            object->reuse[attr - cudaMemPoolReuseFollowEventDependencies] = *static_cast<int const*>(value);
            return cudaSuccess;
        case cudaMemPoolAttrReleaseThreshold:
            object->releaseThreshold = *static_cast<unsigned long long const*>(value);
            return cudaSuccess;
        case cudaMemPoolAttrUsedMemHigh:
        case cudaMemPoolAttrReservedMemHigh:
            if (*static_cast<unsigned long long const*>(value) != 0)
                return cudaErrorInvalidValue; // a high mark can only be reset
            object->usedHigh = object->used;
            return cudaSuccess;
        default:
            return cudaErrorInvalidValue;
        }
    });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void* value)
{
    return call([&] {
        std::shared_ptr<Pool> const object = pools().find(pool);
        if (!object || value == nullptr)
            return cudaErrorInvalidValue;
        std::lock_guard const lock(object->mutex);
        switch (attr) {
        case cudaMemPoolReuseFollowEventDependencies:
        case cudaMemPoolReuseAllowOpportunistic:
        case cudaMemPoolReuseAllowInternalDependencies:
            *static_cast<int*>(value) = object->reuse[attr - cudaMemPoolReuseFollowEventDependencies];
            return cudaSuccess;
        case cudaMemPoolAttrReleaseThreshold:
            *static_cast<unsigned long long*>(value) = object->releaseThreshold;
            return cudaSuccess;
        case cudaMemPoolAttrReservedMemCurrent:
        case cudaMemPoolAttrUsedMemCurrent:
            *static_cast<unsigned long long*>(value) = object->used;
            return cudaSuccess;
        case cudaMemPoolAttrReservedMemHigh:
        case cudaMemPoolAttrUsedMemHigh:
            *static_cast<unsigned long long*>(value) = object->usedHigh;
            return cudaSuccess;
        default:
            return cudaErrorInvalidValue;
        }
    });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, cudaMemAccessDesc const* list, size_t numEntries)
{
    return call([&] {
        bool const valid = pools().find(pool) != nullptr && (list != nullptr || numEntries == 0);
        return valid ? cudaSuccess : cudaErrorInvalidValue; // host and device see the same memory anyway
    });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device)
{
    return call([&] { return setPool(pool, defaultPool(), device); });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device)
{
    return call([&] { return setPool(pool, currentPool(), device); });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
    return call([&] {
        if (device != 0)
            return cudaErrorInvalidDevice;
        std::shared_ptr<Pool> const object = pools().find(pool);
        if (!object)
            return cudaErrorInvalidValue;
        std::lock_guard const lock(state().defaultPools);
        state().currentPool = object;
        return cudaSuccess;
    });
}
