// SPDX-License-Identifier: Apache-2.0
// Stream-ordered allocation and memory pools. Work is finished when it is submitted, so allocation in stream order is
// plain allocation; a pool only counts, and keeps no freed memory back.
#include <algorithm>
#include <mutex>

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
void releaseCounted(void* ptr)
{
    std::optional<Allocation> const known = registry().find(ptr);
    if (!release(ptr, MemoryKind::kDevice))
        return;
    if (std::shared_ptr<Pool> const pool = known ? pools().find(known->pool) : nullptr) {
        std::lock_guard const lock(pool->mutex);
        pool->used -= std::min<unsigned long long>(pool->used, known->sizeBytes);
    }
}

// Memory of a captured allocation: it has one address for all launches and ends with the last graph that holds it.
struct GraphMemory
{
    void* ptr = nullptr;
    ~GraphMemory() { releaseCounted(ptr); }
};

void allocateFrom(Pool& pool, void** ptr, std::size_t sizeBytes, cudaStream_t streamHandle)
{
    failIf(ptr == nullptr || sizeBytes == 0);
    std::shared_ptr<Stream> const stream = findStream(streamHandle);
    bool capturing = false;
    {
        std::lock_guard const lock(state().structure);
        capturing = stream->capture != nullptr;
    }
    *ptr = nullptr;
    auto const owner = std::make_shared<GraphMemory>();
    allocate(&owner->ptr, sizeBytes, MemoryKind::kDevice, 0, pool.handle, capturing);
    count(pool, sizeBytes);
    submit(streamHandle, cudaGraphNodeTypeMemAlloc, [owner] {});
    *ptr = owner->ptr;
    if (!capturing)
        owner->ptr = nullptr; // the client's
}

void freeInOrder(void* ptr, cudaStream_t stream)
{
    if (ptr == nullptr)
        return;
    std::optional<Allocation> const known = registry().find(ptr);
    failIf(!known || known->base != reinterpret_cast<std::uintptr_t>(ptr) || known->kind != MemoryKind::kDevice);
    submit(stream, cudaGraphNodeTypeMemFree, [ptr, fromGraph = known->fromGraph] {
        if (!fromGraph) // else the graph owns it; the node marks the place
            releaseCounted(ptr);
    });
}

void setPool(cudaMemPool_t* out, std::shared_ptr<Pool> const& pool, int device)
{
    failIf(out == nullptr);
    failIf(device != 0, cudaErrorInvalidDevice);
    *out = pool->handle;
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

TW_CALL(cudaMallocAsync, (void** ptr, size_t sizeBytes, cudaStream_t stream),
        allocateFrom(*currentPool(), ptr, sizeBytes, stream))
TW_CALL(cudaMallocFromPoolAsync, (void** ptr, size_t sizeBytes, cudaMemPool_t pool, cudaStream_t stream),
        allocateFrom(*required(pools().find(pool)), ptr, sizeBytes, stream))
TW_CALL(cudaFreeAsync, (void* ptr, cudaStream_t stream), freeInOrder(ptr, stream))

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, cudaMemPoolProps const* props)
{
    return call([&] {
        failIf(pool == nullptr || props == nullptr || props->allocType != cudaMemAllocationTypePinned);
        failIf(props->handleTypes != cudaMemHandleTypeNone, cudaErrorNotSupported); // no sharing between processes
        *pool = makePool()->handle;
    });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    return call([&] {
        failIf(pool == defaultPool()->handle);
        std::shared_ptr<Pool> const object = required(pools().remove(pool));
        std::lock_guard const lock(state().defaultPools);
        if (state().currentPool == object)
            state().currentPool.reset();
    });
}

TW_CALL(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t), required(pools().find(pool)))

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void* value)
{
    return call([&] {
        std::shared_ptr<Pool> const object = pools().find(pool);
        failIf(!object || value == nullptr);
        std::lock_guard const lock(object->mutex);
        switch (attr) {
        case cudaMemPoolReuseFollowEventDependencies:
        case cudaMemPoolReuseAllowOpportunistic:
        case cudaMemPoolReuseAllowInternalDependencies:
            object->reuse[attr - cudaMemPoolReuseFollowEventDependencies] = *static_cast<int const*>(value);
            break;
        case cudaMemPoolAttrReleaseThreshold:
            object->releaseThreshold = *static_cast<unsigned long long const*>(value);
            break;
        case cudaMemPoolAttrUsedMemHigh:
        case cudaMemPoolAttrReservedMemHigh:
            failIf(*static_cast<unsigned long long const*>(value) != 0); // a high mark can only be reset
            object->usedHigh = object->used;
            break;
        default:
            fail(cudaErrorInvalidValue);
        }
    });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void* value)
{
    return call([&] {
        std::shared_ptr<Pool> const object = pools().find(pool);
        failIf(!object || value == nullptr);
        std::lock_guard const lock(object->mutex);
        switch (attr) {
        case cudaMemPoolReuseFollowEventDependencies:
        case cudaMemPoolReuseAllowOpportunistic:
        case cudaMemPoolReuseAllowInternalDependencies:
            *static_cast<int*>(value) = object->reuse[attr - cudaMemPoolReuseFollowEventDependencies];
            break;
        case cudaMemPoolAttrReleaseThreshold:
            *static_cast<unsigned long long*>(value) = object->releaseThreshold;
            break;
        case cudaMemPoolAttrReservedMemCurrent:
        case cudaMemPoolAttrUsedMemCurrent:
            *static_cast<unsigned long long*>(value) = object->used;
            break;
        case cudaMemPoolAttrReservedMemHigh:
        case cudaMemPoolAttrUsedMemHigh:
            *static_cast<unsigned long long*>(value) = object->usedHigh;
            break;
        default:
            fail(cudaErrorInvalidValue);
        }
    });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, cudaMemAccessDesc const* list, size_t numEntries)
{
    return call([&] {
        required(pools().find(pool));
        failIf(list == nullptr && numEntries != 0); // host and device see the same memory anyway
    });
}

TW_CALL(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device), setPool(pool, defaultPool(), device))
TW_CALL(cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device), setPool(pool, currentPool(), device))

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
    return call([&] {
        failIf(device != 0, cudaErrorInvalidDevice);
        std::shared_ptr<Pool> const object = required(pools().find(pool));
        std::lock_guard const lock(state().defaultPools);
        state().currentPool = object;
    });
}
