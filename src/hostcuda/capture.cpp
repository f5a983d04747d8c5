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
void checkLegacyLocked(bool invalidate = true)
{
    bool hit = false;
    for (std::shared_ptr<Capture> const& capture : state().captures)
        for (std::shared_ptr<Stream> const& member : capture->members)
            if ((member->flags & cudaStreamNonBlocking) == 0) {
                capture->invalid = capture->invalid || invalidate;
                hit = true;
            }
    failIf(hit, cudaErrorStreamCaptureImplicit);
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

void captureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph,
                 cudaGraphNode_t const** deps, std::size_t* numDeps)
{
    failIf(status == nullptr);
    std::shared_ptr<Stream> const stream = findStream(handle);
    State& s = state();
    std::lock_guard const lock(s.structure);
    if (stream->isLegacy)
        checkLegacyLocked(false);
    *status = cudaStreamCaptureStatusNone;
    if (!stream->capture)
        return;
    *status = stream->capture->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
    if (stream->capture->invalid)
        return;
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
}

} // namespace

bool recordInCapture(Stream& stream, cudaGraphNodeType type, WorkPtr const& work)
{
    std::lock_guard const lock(state().structure);
    if (stream.isLegacy)
        checkLegacyLocked();
    if (stream.isLegacy || !stream.capture)
        return false;
    failIf(stream.capture->invalid, cudaErrorStreamCaptureInvalidated);
    stream.tips = {addNode(stream.capture->graph, type, work, stream.tips).get()};
    return true;
}

bool joinCapture(std::shared_ptr<Stream> const& stream, Event& event)
{
    std::lock_guard const lock(state().structure);
    std::shared_ptr<Capture> const target = event.capture.lock();
    bool const active = event.captured && target && !target->members.empty();
    failIf(stream->capture && stream->capture->invalid, cudaErrorStreamCaptureInvalidated);
    if (!event.captured && !stream->capture)
        return false;
    bool const isOther = stream->capture && stream->capture != target;
    if (isOther && !active)
        stream->capture->invalid = true;
    failIf(!event.captured, cudaErrorStreamCaptureIsolation);
    failIf(!active, cudaErrorCapturedEvent); // its capture is over
    failIf(target->invalid, cudaErrorStreamCaptureInvalidated);
    target->invalid = stream->isLegacy || isOther;
    failIf(stream->isLegacy, cudaErrorStreamCaptureImplicit);
    if (isOther) {
        stream->capture->invalid = true;
        fail(cudaErrorStreamCaptureMerge);
    }
    if (!stream->capture) {
        target->members.push_back(stream);
        stream->capture = target;
        stream->tips.clear();
    }
    for (Node const* tip : event.tips)
        if (std::ranges::find(stream->tips, tip) == stream->tips.end())
            stream->tips.push_back(tip);
    return true;
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

void checkUnsafeCall()
{
    State& s = state();
    cudaStreamCaptureMode const threadMode = s.thread().captureMode;
    std::lock_guard const lock(s.structure);
    if (s.captures.empty() || threadMode == cudaStreamCaptureModeRelaxed)
        return;
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
    failIf(hit, cudaErrorStreamCaptureUnsupported);
}

void checkStreamNotCapturing(Stream const& stream)
{
    {
        std::lock_guard const lock(state().structure);
        if (stream.isLegacy)
            checkLegacyLocked();
        if (stream.capture) {
            stream.capture->invalid = true;
            fail(cudaErrorStreamCaptureUnsupported);
        }
    }
    checkUnsafeCall();
}

bool invalidateCaptures()
{
    State& s = state();
    std::lock_guard const lock(s.structure);
    for (std::shared_ptr<Capture> const& capture : s.captures)
        capture->invalid = true;
    return !s.captures.empty();
}

void checkLegacyStream()
{
    {
        std::lock_guard const lock(state().structure);
        checkLegacyLocked();
    }
    checkUnsafeCall();
}

} // namespace tw::hostcuda

using namespace tw::hostcuda;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode)
{
    return call([&] {
        failIf(static_cast<unsigned>(mode) > static_cast<unsigned>(cudaStreamCaptureModeRelaxed));
        std::shared_ptr<Stream> const stream = findStream(handle);
        failIf(stream->isLegacy, cudaErrorStreamCaptureUnsupported);
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
                return;
            }
        }
        forgetGraph(graph);
        fail(cudaErrorIllegalState); // it captures already
    });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph)
{
    return call([&] {
        failIf(graph == nullptr);
        *graph = nullptr;
        std::shared_ptr<Stream> const stream = findStream(handle);
        State& s = state();
        std::shared_ptr<Capture> capture; // declared before the lock: dies after it
        cudaError_t error = cudaSuccess;
        {
            std::lock_guard const lock(s.structure);
            capture = stream->capture;
            failIf(!capture, cudaErrorIllegalState);
            capture->invalid = capture->invalid || capture->origin != stream.get();
            failIf(capture->origin != stream.get(), cudaErrorStreamCaptureUnmatched);
            failIf(capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id(),
                   cudaErrorStreamCaptureWrongThread);
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
            fail(error);
        }
        *graph = capture->graph->handle;
    });
}

TW_CALL(cudaStreamIsCapturing, (cudaStream_t stream, cudaStreamCaptureStatus* status),
        captureInfo(stream, status, nullptr, nullptr, nullptr, nullptr))

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode)
{
    return call([&] {
        failIf(mode == nullptr || static_cast<unsigned>(*mode) > static_cast<unsigned>(cudaStreamCaptureModeRelaxed));
        std::swap(*mode, state().thread().captureMode);
    });
}

#if TW_CUDART_MAJOR < 13
TW_CALL(cudaStreamGetCaptureInfo, (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id),
        captureInfo(stream, status, id, nullptr, nullptr, nullptr))
TW_CALL(cudaStreamGetCaptureInfo_v2,
        (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph,
         cudaGraphNode_t const** deps, size_t* numDeps),
        captureInfo(stream, status, id, graph, deps, numDeps))
#else
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, cudaGraphNode_t const** deps,
                                     cudaGraphEdgeData const** edgeData, size_t* numDeps)
{
    return call([&] {
        if (edgeData != nullptr)
            *edgeData = nullptr; // every edge is a plain one
        captureInfo(stream, status, id, graph, deps, numDeps);
    });
}
#endif
