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

void createStream(cudaStream_t* stream, unsigned int flags, int priority)
{
    failIf(stream == nullptr || (flags & ~static_cast<unsigned int>(cudaStreamNonBlocking)) != 0);
    auto object = makeStream(flags, std::clamp(priority, kGreatestPriority, kLeastPriority));
    Stream* const raw = object.get();
    raw->handle = state().streams.add<cudaStream_t>(std::move(object));
    *stream = raw->handle;
}

} // namespace

std::shared_ptr<Stream> findStream(cudaStream_t handle)
{
    if (handle == nullptr || handle == cudaStreamLegacy)
        return state().legacy;
    if (handle == cudaStreamPerThread)
        return perThreadStream();
    return required(state().streams.find(handle), cudaErrorInvalidResourceHandle);
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

void submit(cudaStream_t handle, cudaGraphNodeType type, Work work)
{
    failIf(HostFunctionScope::active(), cudaErrorNotPermitted);
    std::shared_ptr<Stream> const stream = findStream(handle);
    WorkPtr const shared = std::make_shared<Work const>(std::move(work));
    if (recordInCapture(*stream, type, shared))
        return;
    StreamTurn const turn(*stream);
    (*shared)();
}

} // namespace tw::hostcuda

using namespace tw::hostcuda;

// What a stream has, to where a getter's caller wants it.
template <class T>
static cudaError_t getOf(cudaStream_t stream, T Stream::*field, T* to)
{
    return call([&] { give(to, (*findStream(stream)).*field); });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* leastPriority, int* greatestPriority)
{
    return call([&] {
        if (leastPriority != nullptr)
            *leastPriority = kLeastPriority;
        if (greatestPriority != nullptr)
            *greatestPriority = kGreatestPriority;
    });
}

TW_CALL(cudaStreamCreate, (cudaStream_t * stream), createStream(stream, cudaStreamDefault, 0))
TW_CALL(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned int flags), createStream(stream, flags, 0))
TW_CALL(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned int flags, int priority),
        createStream(stream, flags, priority))

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return call([&] {
        State& s = state();
        // The default streams are in no table, so they cannot be destroyed.
        std::shared_ptr<Stream> const object = required(s.streams.remove(stream), cudaErrorInvalidResourceHandle);
        {
            std::lock_guard const lock(s.structure);
            if (object->capture)
                object->capture->invalid = true;
        }
        endCaptureOf(*object);
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
        findStream(stream);
        give(device, 0);
    });
}
#endif

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return call([&] {
        failIf(HostFunctionScope::active(), cudaErrorNotPermitted);
        std::shared_ptr<Stream> const object = findStream(stream);
        checkStreamNotCapturing(*object);
        waitIdle(*object);
    });
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return call([&] {
        std::shared_ptr<Stream> const object = findStream(stream);
        checkStreamNotCapturing(*object);
        if (!object->order.try_lock())
            return cudaErrorNotReady; // another thread runs work on it
        object->order.unlock();
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSynchronize()
{
    return call([&] {
        failIf(HostFunctionScope::active(), cudaErrorNotPermitted);
        failIf(invalidateCaptures(), cudaErrorStreamCaptureUnsupported);
        waitForDevice();
    });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* userData,
                                  unsigned int flags)
{
    return call([&] {
        failIf(callback == nullptr || flags != 0);
        std::shared_ptr<Stream> const object = findStream(stream);
        checkStreamNotCapturing(*object); // CUDA has no graph node for these callbacks
        submit(stream, cudaGraphNodeTypeHost, [=] {
            HostFunctionScope const scope;
            callback(stream, cudaSuccess, userData);
        });
    });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* userData)
{
    return call([&] {
        failIf(fn == nullptr);
        submit(stream, cudaGraphNodeTypeHost, [=] {
            HostFunctionScope const scope;
            fn(userData);
        });
    });
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* ptr, size_t, unsigned int flags)
{
    return call([&] {
        failIf(ptr == nullptr ||
               (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost && flags != cudaMemAttachSingle));
        submit(stream, cudaGraphNodeTypeEmpty, [] {});
    });
}
