// SPDX-License-Identifier: Apache-2.0
// Stream capture: calls on a capturing stream become nodes of a graph instead of running. The rules, and which breach
// gives which error, are those of CUDA's programming guide.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "state.h"

namespace tw::hostcuda {
namespace {

// Takes the capture off its streams and out of the list. Structure locked. The graph lives on in the returned pointer.
void detach(std::shared_ptr<Capture> const& capture)
{
    for (std::shared_ptr<Stream> const& member : capture->members) {
        member->capture.reset();
        member->tips.clear();
        member->tipHandles.clear();
    }
    capture->members.clear();
    std::erase(state().captures, capture);
}

// What the legacy stream waits for: all blocking streams. If one captures, that capture cannot go on.
cudaError_t checkLegacyLocked(bool invalidate = true)
{
    bool hit = false;
    for (std::shared_ptr<Capture> const& capture : state().captures)
        for (std::shared_ptr<Stream> const& member : capture->members)
            if ((member->flags & cudaStreamNonBlocking) == 0) {
                capture->invalid = capture->invalid || invalidate;
                hit = true;
            }
    return hit ? cudaErrorStreamCaptureImplicit : cudaSuccess;
}

void addAncestors(Node const* node, std::unordered_set<Node const*>& seen)
{
    std::vector<Node const*> open{node};
    while (!open.empty()) {
        Node const* const next = open.back();
        open.pop_back();
        if (seen.insert(next).second)
            open.insert(open.end(), next->deps.begin(), next->deps.end());
    }
}

// Every stream that joined must have been joined back: its last nodes lie before the origin's.
bool isJoined(Capture const& capture)
{
    std::unordered_set<Node const*> before;
    for (Node const* tip : capture.members.front()->tips)
        addAncestors(tip, before);
    for (std::shared_ptr<Stream> const& member : capture.members)
        for (Node const* tip : member->tips)
            if (!before.contains(tip))
                return false;
    return true;
}

cudaError_t captureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status, unsigned long long* id,
                        cudaGraph_t* graph, cudaGraphNode_t const** deps, std::size_t* numDeps)
{
    if (status == nullptr)
        return cudaErrorInvalidValue;
    std::shared_ptr<Stream> const stream = findStream(handle);
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    State& s = state();
    std::lock_guard const lock(s.structure);
    if (stream->isLegacy)
        if (cudaError_t const error = checkLegacyLocked(false); error != cudaSuccess)
            return error;
    *status = cudaStreamCaptureStatusNone;
    if (!stream->capture)
        return cudaSuccess;
    *status = stream->capture->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
    if (stream->capture->invalid)
        return cudaSuccess;
    if (id != nullptr)
        *id = stream->capture->id;
    if (graph != nullptr)
        *graph = stream->capture->graph->handle;
    stream->tipHandles.clear();
    for (Node const* tip : stream->tips)
        stream->tipHandles.push_back(tip->handle);
    if (deps != nullptr)
        *deps = stream->tipHandles.data();
    if (numDeps != nullptr)
        *numDeps = stream->tipHandles.size();
    return cudaSuccess;
}

} // namespace

cudaError_t recordInCapture(Stream& stream, cudaGraphNodeType type, WorkPtr const& work,
                            std::shared_ptr<Graph> const& child, CaptureStep& step)
{
    step = CaptureStep::kNone;
    State& s = state();
    std::lock_guard const lock(s.structure);
    if (stream.isLegacy)
        return checkLegacyLocked();
    if (!stream.capture)
        return cudaSuccess;
    if (stream.capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
    std::shared_ptr<Node> const node = addNode(stream.capture->graph, type, work, stream.tips);
    node->child = child;
    stream.tips.assign(1, node.get());
    step = CaptureStep::kRecorded;
    return cudaSuccess;
}

cudaError_t joinCapture(std::shared_ptr<Stream> const& stream, Event& event, bool& done)
{
    done = true;
    State& s = state();
    std::lock_guard const lock(s.structure);
    std::shared_ptr<Capture> const target = event.capture.lock();
    bool const active = event.captured && target && !target->members.empty();
    if (stream->capture && stream->capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
    if (!event.captured) {
        if (stream->capture) {
            stream->capture->invalid = true;
            return cudaErrorStreamCaptureIsolation;
        }
        done = false;
        return cudaSuccess;
    }
    if (!active) {
        if (stream->capture)
            stream->capture->invalid = true;
        return cudaErrorCapturedEvent; // its capture is over
    }
    if (target->invalid)
        return cudaErrorStreamCaptureInvalidated;
    if (stream->isLegacy) {
        target->invalid = true;
        return cudaErrorStreamCaptureImplicit;
    }
    if (stream->capture && stream->capture != target) {
        stream->capture->invalid = true;
        target->invalid = true;
        return cudaErrorStreamCaptureMerge;
    }
    if (!stream->capture) {
        target->members.push_back(stream);
        stream->capture = target;
        stream->tips.clear();
    }
    for (Node const* tip : event.tips)
        if (std::find(stream->tips.begin(), stream->tips.end(), tip) == stream->tips.end())
            stream->tips.push_back(tip);
    return cudaSuccess;
}

void endCaptureOf(Stream const& stream)
{
    std::shared_ptr<Capture> capture;
    {
        std::lock_guard const lock(state().structure);
        capture = stream.capture;
        if (!capture || capture->origin != &stream)
            return; // only the origin can end it; a joined stream stays a member until then
        detach(capture);
    }
    forgetGraph(capture->graph);
}

cudaError_t checkUnsafeCall()
{
    State& s = state();
    cudaStreamCaptureMode const threadMode = s.thread().captureMode;
    std::lock_guard const lock(s.structure);
    if (s.captures.empty() || threadMode == cudaStreamCaptureModeRelaxed)
        return cudaSuccess;
    bool hit = false;
    for (std::shared_ptr<Capture> const& capture : s.captures) {
        bool const mine = capture->thread == std::this_thread::get_id();
        bool const forbids =
            mine ? capture->mode != cudaStreamCaptureModeRelaxed
                 : threadMode == cudaStreamCaptureModeGlobal && capture->mode == cudaStreamCaptureModeGlobal;
        if (forbids) {
            capture->invalid = true;
            hit = true;
        }
    }
    return hit ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

cudaError_t checkStreamNotCapturing(Stream const& stream)
{
    {
        std::lock_guard const lock(state().structure);
        if (stream.isLegacy)
            if (cudaError_t const error = checkLegacyLocked(); error != cudaSuccess)
                return error;
        if (stream.capture) {
            stream.capture->invalid = true;
            return cudaErrorStreamCaptureUnsupported;
        }
    }
    return checkUnsafeCall();
}

cudaError_t checkNothingCapturing()
{
    State& s = state();
    std::lock_guard const lock(s.structure);
    for (std::shared_ptr<Capture> const& capture : s.captures)
        capture->invalid = true;
    return s.captures.empty() ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
}

cudaError_t checkLegacyStream()
{
    {
        std::lock_guard const lock(state().structure);
        if (cudaError_t const error = checkLegacyLocked(); error != cudaSuccess)
            return error;
    }
    return checkUnsafeCall();
}

} // namespace tw::hostcuda

using namespace tw::hostcuda;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode)
{
    return call([&] {
        if (static_cast<unsigned>(mode) > static_cast<unsigned>(cudaStreamCaptureModeRelaxed))
            return cudaErrorInvalidValue;
        std::shared_ptr<Stream> const stream = findStream(handle);
        if (!stream)
            return cudaErrorInvalidResourceHandle;
        if (stream->isLegacy)
            return cudaErrorStreamCaptureUnsupported;
        std::shared_ptr<Graph> const graph = makeGraph();
        auto capture = std::make_shared<Capture>();
        capture->mode = mode;
        capture->thread = std::this_thread::get_id();
        capture->origin = stream.get();
        capture->graph = graph;
        capture->members.push_back(stream);
        State& s = state();
        {
            std::lock_guard const lock(s.structure);
            if (!stream->capture) {
                capture->id = s.nextCaptureId++;
                s.captures.push_back(capture);
                stream->capture = std::move(capture);
                stream->tips.clear();
                return cudaSuccess;
            }
        }
        forgetGraph(graph);
        return cudaErrorIllegalState; // it captures already
    });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph)
{
    return call([&] {
        if (graph == nullptr)
            return cudaErrorInvalidValue;
        *graph = nullptr;
        std::shared_ptr<Stream> const stream = findStream(handle);
        if (!stream)
            return cudaErrorInvalidResourceHandle;
        State& s = state();
        std::shared_ptr<Capture> capture; // declared before the lock: dies after it
        cudaError_t error = cudaSuccess;
        {
            std::lock_guard const lock(s.structure);
            capture = stream->capture;
            if (!capture)
                return cudaErrorIllegalState;
            if (capture->origin != stream.get()) {
                capture->invalid = true;
                return cudaErrorStreamCaptureUnmatched;
            }
            if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
                return cudaErrorStreamCaptureWrongThread;
            if (capture->invalid)
                error = cudaErrorStreamCaptureInvalidated;
            else if (!isJoined(*capture))
                error = cudaErrorStreamCaptureUnjoined;
            detach(capture);
        }
        if (error == cudaSuccess && !s.graphs.find(capture->graph->handle))
            error = cudaErrorStreamCaptureInvalidated; // the client destroyed the graph under way
        if (error != cudaSuccess) {
            forgetGraph(capture->graph);
            return error;
        }
        *graph = capture->graph->handle;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status)
{
    return call([&] { return captureInfo(stream, status, nullptr, nullptr, nullptr, nullptr); });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode)
{
    return call([&] {
        if (mode == nullptr || static_cast<unsigned>(*mode) > static_cast<unsigned>(cudaStreamCaptureModeRelaxed))
            return cudaErrorInvalidValue;
        std::swap(*mode, state().thread().captureMode);
        return cudaSuccess;
    });
}

#if TW_CUDART_MAJOR < 13
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id)
{
    return call([&] { return captureInfo(stream, status, id, nullptr, nullptr, nullptr); });
}

cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                        cudaGraph_t* graph, cudaGraphNode_t const** deps, size_t* numDeps)
{
    return call([&] { return captureInfo(stream, status, id, graph, deps, numDeps); });
}
#else
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, cudaGraphNode_t const** deps,
                                     cudaGraphEdgeData const** edgeData, size_t* numDeps)
{
    return call([&] {
        if (edgeData != nullptr)
            *edgeData = nullptr; // every edge is a plain one
        return captureInfo(stream, status, id, graph, deps, numDeps);
    });
}
#endif
