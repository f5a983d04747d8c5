// SPDX-License-Identifier: Apache-2.0
// Streams: work runs in the calling thread, one piece at a time for each stream.
#include <algorithm>
#include <utility>

#include "state.h"

namespace tw::hostcuda {
namespace {

// CUDA's range on current GPUs: 0 is the lowest priority, -5 the highest. Eager execution has no use for them.
constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

std::shared_ptr<Stream> makeStream(unsigned int flags, int priority)
{
    auto stream = std::make_shared<Stream>();
    stream->flags = flags;
    stream->priority = priority;
    stream->id = state().nextStreamId++;
    return stream;
}

std::shared_ptr<Stream> perThreadStream()
{
    State& s = state();
    std::shared_ptr<Stream>& mine = s.threadStream();
    if (!mine) {
        auto stream = makeStream(cudaStreamDefault, 0);
        stream->handle = cudaStreamPerThread;
        std::lock_guard const lock(s.structure);
        std::erase_if(s.perThread, [](std::weak_ptr<Stream> const& entry) { return entry.expired(); });
        s.perThread.push_back(stream);
        mine = std::move(stream);
    }
    return mine;
}

cudaError_t createStream(cudaStream_t* stream, unsigned int flags, int priority)
{
    if (stream == nullptr || (flags & ~static_cast<unsigned int>(cudaStreamNonBlocking)) != 0)
        return cudaErrorInvalidValue;
    auto object = makeStream(flags, std::clamp(priority, kGreatestPriority, kLeastPriority));
    Stream* const raw = object.get();
    raw->handle = state().streams.add<cudaStream_t>(std::move(object));
    *stream = raw->handle;
    return cudaSuccess;
}

} // namespace

std::shared_ptr<Stream> findStream(cudaStream_t handle)
{
    if (handle == nullptr || handle == cudaStreamLegacy)
        return state().legacy;
    if (handle == cudaStreamPerThread)
        return perThreadStream();
    return state().streams.find(handle);
}

std::vector<std::shared_ptr<Stream>> allStreams()
{
    State& s = state();
    std::vector<std::shared_ptr<Stream>> streams = s.streams.all();
    streams.push_back(s.legacy);
    std::lock_guard const lock(s.structure);
    for (std::weak_ptr<Stream> const& entry : s.perThread)
        if (std::shared_ptr<Stream> stream = entry.lock())
            streams.push_back(std::move(stream));
    return streams;
}

StreamTurn::StreamTurn(Stream& stream) : stream_(stream), owned_(true)
{
    int& workDepth = state().thread().workDepth;
    if (workDepth == 0)
        stream_.order.lock();
    else
        owned_ = stream_.order.try_lock();
    ++workDepth;
}

StreamTurn::~StreamTurn()
{
    --state().thread().workDepth;
    if (owned_)
        stream_.order.unlock();
}

bool insideWork()
{
    return state().thread().workDepth > 0;
}

HostFunctionScope::HostFunctionScope()
{
    ++state().thread().hostFunctionDepth;
}

HostFunctionScope::~HostFunctionScope()
{
    --state().thread().hostFunctionDepth;
}

bool HostFunctionScope::active()
{
    return state().thread().hostFunctionDepth > 0;
}

void waitIdle(Stream& stream)
{
    // Inside work all earlier calls of this thread have returned, so there is nothing to wait for; waiting for another
    // thread's stream from here could be mutual.
    if (insideWork())
        return;
    std::lock_guard const turn(stream.order);
}

void waitForDevice()
{
    if (insideWork())
        return;
    for (std::shared_ptr<Stream> const& stream : allStreams())
        waitIdle(*stream);
}

cudaError_t submit(cudaStream_t handle, cudaGraphNodeType type, Work work)
{
    if (HostFunctionScope::active())
        return cudaErrorNotPermitted;
    std::shared_ptr<Stream> const stream = findStream(handle);
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    WorkPtr const shared = std::make_shared<Work const>(std::move(work));
    CaptureStep step = CaptureStep::kNone;
    if (cudaError_t const error = recordInCapture(*stream, type, shared, nullptr, step); error != cudaSuccess)
        return error;
    if (step == CaptureStep::kNone) {
        StreamTurn const turn(*stream);
        (*shared)();
    }
    return cudaSuccess;
}

} // namespace tw::hostcuda

using namespace tw::hostcuda;

// What a stream has, to where a getter's caller wants it.
template <class T>
static cudaError_t getOf(cudaStream_t stream, T Stream::*field, T* to)
{
    return call([&] {
        std::shared_ptr<Stream> const object = findStream(stream);
        if (!object)
            return cudaErrorInvalidResourceHandle;
        if (to == nullptr)
            return cudaErrorInvalidValue;
        *to = (*object).*field;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* leastPriority, int* greatestPriority)
{
    return call([&] {
        if (leastPriority != nullptr)
            *leastPriority = kLeastPriority;
        if (greatestPriority != nullptr)
            *greatestPriority = kGreatestPriority;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamCreate(cudaStream_t* stream)
{
    return call([&] { return createStream(stream, cudaStreamDefault, 0); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags)
{
    return call([&] { return createStream(stream, flags, 0); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority)
{
    return call([&] { return createStream(stream, flags, priority); });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return call([&] {
        State& s = state();
        // The default streams are in no table, so they cannot be destroyed.
        std::shared_ptr<Stream> const object = s.streams.remove(stream);
        if (!object)
            return cudaErrorInvalidResourceHandle;
        {
            std::lock_guard const lock(s.structure);
            if (object->capture)
                object->capture->invalid = true;
        }
        endCaptureOf(*object);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority)
{
    return getOf(stream, &Stream::priority, priority);
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags)
{
    return getOf(stream, &Stream::flags, flags);
}

#if TW_CUDART_MAJOR >= 12
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id)
{
    return getOf(stream, &Stream::id, id);
}
#endif

#if TW_CUDART_MAJOR >= 13
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device)
{
    return call([&] {
        if (!findStream(stream))
            return cudaErrorInvalidResourceHandle;
        if (device == nullptr)
            return cudaErrorInvalidValue;
        *device = 0;
        return cudaSuccess;
    });
}
#endif

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return call([&] {
        if (HostFunctionScope::active())
            return cudaErrorNotPermitted;
        std::shared_ptr<Stream> const object = findStream(stream);
        if (!object)
            return cudaErrorInvalidResourceHandle;
        if (cudaError_t const error = checkStreamNotCapturing(*object); error != cudaSuccess)
            return error;
        waitIdle(*object);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return call([&] {
        std::shared_ptr<Stream> const object = findStream(stream);
        if (!object)
            return cudaErrorInvalidResourceHandle;
        if (cudaError_t const error = checkStreamNotCapturing(*object); error != cudaSuccess)
            return error;
        if (!object->order.try_lock())
            return cudaErrorNotReady; // another thread runs work on it
        object->order.unlock();
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSynchronize()
{
    return call([&] {
        if (HostFunctionScope::active())
            return cudaErrorNotPermitted;
        if (cudaError_t const error = checkNothingCapturing(); error != cudaSuccess)
            return error;
        waitForDevice();
        return cudaSuccess;
    });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* userData,
                                  unsigned int flags)
{
    return call([&] {
        if (callback == nullptr || flags != 0)
            return cudaErrorInvalidValue;
        std::shared_ptr<Stream> const object = findStream(stream);
        if (!object)
            return cudaErrorInvalidResourceHandle;
        if (cudaError_t const error = checkStreamNotCapturing(*object); error != cudaSuccess)
            return error; // CUDA has no graph node for these callbacks
        return submit(stream, cudaGraphNodeTypeHost, [=] {
            HostFunctionScope const scope;
            callback(stream, cudaSuccess, userData);
        });
    });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* userData)
{
    return call([&] {
        if (fn == nullptr)
            return cudaErrorInvalidValue;
        return submit(stream, cudaGraphNodeTypeHost, [=] {
            HostFunctionScope const scope;
            fn(userData);
        });
    });
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* ptr, size_t, unsigned int flags)
{
    return call([&] {
        if (ptr == nullptr ||
            (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost && flags != cudaMemAttachSingle))
            return cudaErrorInvalidValue;
        return submit(stream, cudaGraphNodeTypeEmpty, [] {});
    });
}
