// SPDX-License-Identifier: Apache-2.0
// The door for libnvinfer.
#include "host_cuda_table.h"
#include "registry.h"
#include "state.h"

namespace tw::hostcuda {
namespace {

// Like call(), without touching the client's last error.
template <class Body>
int quietly(Body&& body) noexcept
{
    try {
        return static_cast<int>(body());
    } catch (std::bad_alloc const&) {
        return static_cast<int>(cudaErrorMemoryAllocation);
    } catch (...) {
        return static_cast<int>(cudaErrorUnknown);
    }
}

// Foreign work: whoever drops the last reference gives the argument back.
class Foreign
{
public:
    Foreign(void (*fn)(void*), void* arg, void (*destroyArg)(void*)) : fn_(fn), arg_(arg), destroyArg_(destroyArg) {}
    ~Foreign()
    {
        if (destroyArg_ != nullptr)
            destroyArg_(arg_);
    }
    Foreign(Foreign const&) = delete;
    Foreign& operator=(Foreign const&) = delete;
    void run() const { fn_(arg_); }

private:
    void (*fn_)(void*);
    void* arg_;
    void (*destroyArg_)(void*);
};

int enqueue(CUstream_st* stream, void (*fn)(void*), void* arg, void (*destroyArg)(void*))
{
    std::shared_ptr<Foreign const> work;
    int const made = quietly([&] {
        work = std::make_shared<Foreign const>(fn, arg, destroyArg);
        return cudaSuccess;
    });
    if (made != cudaSuccess) {
        if (destroyArg != nullptr)
            destroyArg(arg);
        return made;
    }
    return quietly([&] {
        if (fn == nullptr)
            return cudaErrorInvalidValue;
        // The graph shows it as a host node, the nearest of CUDA's kinds.
        return submit(stream, cudaGraphNodeTypeHost, [work] { work->run(); });
    });
}

int isCapturing(CUstream_st* stream, int* capturing)
{
    return quietly([&] {
        if (capturing == nullptr)
            return cudaErrorInvalidValue;
        std::shared_ptr<Stream> const object = findStream(stream);
        if (!object)
            return cudaErrorInvalidResourceHandle;
        std::lock_guard const lock(state().structure);
        *capturing = object->capture ? 1 : 0;
        return cudaSuccess;
    });
}

int recordEventQuietly(CUevent_st* event, CUstream_st* stream)
{
    return quietly([&] { return recordEvent(event, stream, cudaEventRecordDefault); });
}

int waitEventQuietly(CUstream_st* stream, CUevent_st* event)
{
    return quietly([&] { return waitEvent(stream, event, cudaEventWaitDefault); });
}

int synchronize(CUstream_st* stream)
{
    return quietly([&] {
        std::shared_ptr<Stream> const object = findStream(stream);
        if (!object)
            return cudaErrorInvalidResourceHandle;
        cudaError_t const error = checkStreamNotCapturing(*object);
        if (error == cudaSuccess)
            waitIdle(*object);
        return error;
    });
}

int pointerInfo(void const* ptr, TwHostCudaPointer* info)
{
    return quietly([&] {
        if (info == nullptr)
            return cudaErrorInvalidValue;
        *info = TwHostCudaPointer{kTwHostCudaUnknown, 0, nullptr, 0};
        std::optional<Allocation> const known = registry().find(ptr);
        if (!known)
            return cudaSuccess;
        info->base = reinterpret_cast<void*>(known->base);
        info->sizeBytes = known->sizeBytes;
        switch (known->kind) {
        case MemoryKind::kDevice:
            info->memory = kTwHostCudaDevice;
            break;
        case MemoryKind::kManaged:
            info->memory = kTwHostCudaManaged;
            break;
        case MemoryKind::kHost:
        case MemoryKind::kRegistered:
            info->memory = kTwHostCudaHost;
            break;
        }
        return cudaSuccess;
    });
}

} // namespace
} // namespace tw::hostcuda

using namespace tw::hostcuda;

extern "C" __attribute__((visibility("default"))) const TwHostCudaTable twHostCuda = {
    kTwHostCudaVersion, sizeof(TwHostCudaTable), enqueue,     isCapturing,
    recordEventQuietly, waitEventQuietly,        synchronize, pointerInfo,
};
