// SPDX-License-Identifier: Apache-2.0
// Events: stamps of the steady clock. All work that an event stands after is done when cudaEventRecord returns, so an
// event is always complete; what is left is time, and the part that events play in captures.
#include <utility>

#include "state.h"

namespace tw::hostcuda {
namespace {

cudaError_t createEvent(cudaEvent_t* event, unsigned int flags)
{
    constexpr unsigned int kKnown = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    bool const shared = (flags & cudaEventInterprocess) != 0;
    if (event == nullptr || (flags & ~kKnown) != 0 || (shared && (flags & cudaEventDisableTiming) == 0))
        return cudaErrorInvalidValue;
    auto object = std::make_shared<Event>();
    object->flags = flags;
    *event = state().events.add<cudaEvent_t>(std::move(object));
    return cudaSuccess;
}

// An event whose last record is part of a capture stands for no real moment. Asking spoils the capture.
cudaError_t checkNotCaptured(Event& event)
{
    std::lock_guard const lock(state().structure);
    if (!event.captured)
        return cudaSuccess;
    if (std::shared_ptr<Capture> const capture = event.capture.lock())
        capture->invalid = true;
    return cudaErrorCapturedEvent;
}

} // namespace

Work makeStamp(std::shared_ptr<Event> const& event)
{
    return [event] {
        std::lock_guard const lock(state().structure);
        event->recorded = true;
        event->captured = false;
        event->capture.reset();
        event->tips.clear();
        event->stamp = std::chrono::steady_clock::now();
    };
}

cudaError_t recordEvent(cudaEvent_t handle, cudaStream_t streamHandle, unsigned int flags)
{
    if ((flags & ~static_cast<unsigned int>(cudaEventRecordExternal)) != 0)
        return cudaErrorInvalidValue;
    State& s = state();
    std::shared_ptr<Event> const event = s.events.find(handle);
    std::shared_ptr<Stream> const stream = findStream(streamHandle);
    if (!event || !stream)
        return cudaErrorInvalidResourceHandle;
    if ((flags & cudaEventRecordExternal) == 0) {
        if (HostFunctionScope::active())
            return cudaErrorNotPermitted;
        std::lock_guard const lock(s.structure);
        if (stream->capture) {
            if (stream->capture->invalid)
                return cudaErrorStreamCaptureInvalidated;
            event->captured = true;
            event->recorded = false;
            event->capture = stream->capture;
            event->tips = stream->tips;
            return cudaSuccess;
        }
    }
    return submit(streamHandle, cudaGraphNodeTypeEventRecord, makeStamp(event));
}

cudaError_t waitEvent(cudaStream_t streamHandle, cudaEvent_t handle, unsigned int flags)
{
    if ((flags & ~static_cast<unsigned int>(cudaEventWaitExternal)) != 0)
        return cudaErrorInvalidValue;
    std::shared_ptr<Event> const event = state().events.find(handle);
    std::shared_ptr<Stream> const stream = findStream(streamHandle);
    if (!event || !stream)
        return cudaErrorInvalidResourceHandle;
    if ((flags & cudaEventWaitExternal) == 0) {
        bool done = false;
        cudaError_t const error = joinCapture(stream, *event, done);
        if (error != cudaSuccess || done)
            return error;
    }
    // The event is complete, so only the place in a graph is left to mark.
    return submit(streamHandle, cudaGraphNodeTypeWaitEvent, [] {});
}

} // namespace tw::hostcuda

using namespace tw::hostcuda;

cudaError_t cudaEventCreate(cudaEvent_t* event)
{
    return call([&] { return createEvent(event, cudaEventDefault); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags)
{
    return call([&] { return createEvent(event, flags); });
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    return call([&] { return state().events.remove(event) ? cudaSuccess : cudaErrorInvalidResourceHandle; });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return call([&] { return recordEvent(event, stream, cudaEventRecordDefault); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
    return call([&] { return recordEvent(event, stream, flags); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    return call([&] { return waitEvent(stream, event, flags); });
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return call([&] {
        std::shared_ptr<Event> const object = state().events.find(event);
        if (!object)
            return cudaErrorInvalidResourceHandle;
        cudaError_t const error = checkNotCaptured(*object);
        return error != cudaSuccess ? error : checkUnsafeCall();
    });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return call([&] {
        if (HostFunctionScope::active())
            return cudaErrorNotPermitted;
        std::shared_ptr<Event> const object = state().events.find(event);
        if (!object)
            return cudaErrorInvalidResourceHandle;
        cudaError_t const error = checkNotCaptured(*object);
        return error != cudaSuccess ? error : checkUnsafeCall();
    });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end)
{
    return call([&] {
        if (ms == nullptr)
            return cudaErrorInvalidValue;
        State& s = state();
        std::shared_ptr<Event> const first = s.events.find(start);
        std::shared_ptr<Event> const second = s.events.find(end);
        if (!first || !second || ((first->flags | second->flags) & cudaEventDisableTiming) != 0)
            return cudaErrorInvalidResourceHandle;
        for (Event* event : {first.get(), second.get()})
            if (cudaError_t const error = checkNotCaptured(*event); error != cudaSuccess)
                return error;
        std::lock_guard const lock(s.structure);
        if (!first->recorded || !second->recorded)
            return cudaErrorInvalidResourceHandle;
        *ms = std::chrono::duration<float, std::milli>(second->stamp - first->stamp).count();
        return cudaSuccess;
    });
}
