// SPDX-License-Identifier: Apache-2.0
// The door for libnvinfer.
#include "host_cuda_table.h"
#include "registry.h"
#include "state.h"

namespace tw::hostcuda {
namespace {

// Like call(), without touching the client's last error.
int quietly(auto&& body) noexcept
{
    return static_cast<int>(errorOf(body));
}

int enqueue(CUstream_st* stream, void (*fn)(void*), void* arg, void (*destroyArg)(void*))
{
    return quietly([&] {
        // Whoever drops the last reference gives the argument back; so does a failure to make the first.
        std::shared_ptr<void> const owned(arg, [destroyArg](void* a) {
            if (destroyArg != nullptr)
                destroyArg(a);
        });
        failIf(fn == nullptr);
        // The graph shows it as a host node, the nearest of CUDA's kinds.
        submit(stream, cudaGraphNodeTypeHost, [fn, owned] { fn(owned.get()); });
    });
}

int isCapturing(CUstream_st* stream, int* capturing)
{
    return quietly([&] {
        failIf(capturing == nullptr);
        std::shared_ptr<Stream> const object = findStream(stream);
        std::lock_guard const lock(state().structure);
        *capturing = object->capture ? 1 : 0;
    });
}

int recordEventQuietly(CUevent_st* event, CUstream_st* stream)
{
    return quietly([&] { recordEvent(event, stream, cudaEventRecordDefault); });
}

int waitEventQuietly(CUstream_st* stream, CUevent_st* event)
{
    return quietly([&] { waitEvent(stream, event, cudaEventWaitDefault); });
}

int synchronize(CUstream_st* stream)
{
    return quietly([&] {
        std::shared_ptr<Stream> const object = findStream(stream);
        checkStreamNotCapturing(*object);
        waitIdle(*object);
    });
}

int pointerInfo(void const* ptr, TwHostCudaPointer* info)
{
    return quietly([&] {
        failIf(info == nullptr);
        *info = TwHostCudaPointer{kTwHostCudaUnknown, 0, nullptr, 0};
        std::optional<Allocation> const known = registry().find(ptr);
        if (!known)
            return;
        info->base = reinterpret_cast<void*>(known->base);
        info->sizeBytes = known->sizeBytes;
        info->memory = known->kind == MemoryKind::kDevice    ? kTwHostCudaDevice
                       : known->kind == MemoryKind::kManaged ? kTwHostCudaManaged
                                                             : kTwHostCudaHost;
    });
}

} // namespace
} // namespace tw::hostcuda

using namespace tw::hostcuda;

extern "C" __attribute__((visibility("default"))) const TwHostCudaTable twHostCuda = {
    kTwHostCudaVersion, sizeof(TwHostCudaTable), enqueue,     isCapturing,
    recordEventQuietly, waitEventQuietly,        synchronize, pointerInfo,
};
