// SPDX-License-Identifier: Apache-2.0
// Events: stamps of the steady clock. All work that an event stands after is done when cudaEventRecord returns, so an
// event is always complete; what is left is time, and the part that events play in captures.
#include <utility>

#include "state.h"

namespace tw::hostcuda {
namespace {

void createEvent(cudaEvent_t* event, unsigned int flags)
{
    constexpr unsigned int kKnown = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    bool const shared = (flags & cudaEventInterprocess) != 0;
    failIf(event == nullptr || (flags & ~kKnown) != 0 || (shared && (flags & cudaEventDisableTiming) == 0));
    auto object = std::make_shared<Event>();
    object->flags = flags;
    *event = state().events.add<cudaEvent_t>(std::move(object));
}

// An event whose last record is part of a capture stands for no real moment. Asking spoils the capture.
void checkNotCaptured(Event& event)
{
    std::lock_guard const lock(state().structure);
    if (!event.captured)
        return;
    if (std::shared_ptr<Capture> const capture = event.capture.lock())
        capture->invalid = true;
    fail(cudaErrorCapturedEvent);
}

// Events are complete.
void askFor(cudaEvent_t handle)
{
    checkNotCaptured(*required(state().events.find(handle), cudaErrorInvalidResourceHandle));
    checkUnsafeCall();
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

void recordEvent(cudaEvent_t handle, cudaStream_t streamHandle, unsigned int flags)
{
    failIf((flags & ~static_cast<unsigned int>(cudaEventRecordExternal)) != 0);
    State& s = state();
    std::shared_ptr<Event> const event = required(s.events.find(handle), cudaErrorInvalidResourceHandle);
    std::shared_ptr<Stream> const stream = findStream(streamHandle);
    if ((flags & cudaEventRecordExternal) == 0) {
        failIf(HostFunctionScope::active(), cudaErrorNotPermitted);
        std::lock_guard const lock(s.structure);
        if (stream->capture) {
            failIf(stream->capture->invalid, cudaErrorStreamCaptureInvalidated);
            event->captured = true;
            event->recorded = false;
            event->capture = stream->capture;
            event->tips = stream->tips;
            return;
        }
    }
    submit(streamHandle, cudaGraphNodeTypeEventRecord, makeStamp(event));
}

void waitEvent(cudaStream_t streamHandle, cudaEvent_t handle, unsigned int flags)
{
    failIf((flags & ~static_cast<unsigned int>(cudaEventWaitExternal)) != 0);
    std::shared_ptr<Event> const event = required(state().events.find(handle), cudaErrorInvalidResourceHandle);
    std::shared_ptr<Stream> const stream = findStream(streamHandle);
    if ((flags & cudaEventWaitExternal) == 0 && joinCapture(stream, *event))
        return;
    // The event is complete, so only the place in a graph is left to mark.
    submit(streamHandle, cudaGraphNodeTypeWaitEvent, [] {});
}

} // namespace tw::hostcuda

using namespace tw::hostcuda;

TW_CALL(cudaEventCreate, (cudaEvent_t * event), createEvent(event, cudaEventDefault))
TW_CALL(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned int flags), createEvent(event, flags))
TW_CALL(cudaEventDestroy, (cudaEvent_t event), required(state().events.remove(event), cudaErrorInvalidResourceHandle))
TW_CALL(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), recordEvent(event, stream, cudaEventRecordDefault))
TW_CALL(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned int flags),
        recordEvent(event, stream, flags))
TW_CALL(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
        waitEvent(stream, event, flags))
TW_CALL(cudaEventQuery, (cudaEvent_t event), askFor(event))

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return call([&] {
        failIf(HostFunctionScope::active(), cudaErrorNotPermitted);
        askFor(event);
    });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end)
{
    return call([&] {
        failIf(ms == nullptr);
        State& s = state();
        std::shared_ptr<Event> const first = s.events.find(start);
        std::shared_ptr<Event> const second = s.events.find(end);
        failIf(!first || !second || ((first->flags | second->flags) & cudaEventDisableTiming) != 0,
               cudaErrorInvalidResourceHandle);
        for (Event* event : {first.get(), second.get()})
            checkNotCaptured(*event);
        std::lock_guard const lock(s.structure);
        failIf(!first->recorded || !second->recorded, cudaErrorInvalidResourceHandle);
        *ms = std::chrono::duration<float, std::milli>(second->stamp - first->stamp).count();
    });
}
