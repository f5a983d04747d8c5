// SPDX-License-Identifier: Apache-2.0
// The objects behind the handles and what all of the stand-in's files share.
//
// Locks: `State::structure` guards captures, the capture fields of streams and events, and the node lists of graphs. It
// is held for moments only; no callback runs and no closure dies under it. `Stream::order` and `Exec::order` are held
// while work runs. Lock order: Stream::order, Exec::order, structure, then the locks inside tables.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <type_traits>
#include <vector>

#include "cuda_runtime_api.h"
#include "handles.h"
#include "registry.h"

namespace tw::hostcuda {

// One step of a stream. Shared between a graph, its clones and its executables: the last owner destroys what it holds.
using Work = std::function<void()>;
using WorkPtr = std::shared_ptr<Work const>;

struct Graph;

struct Node
{
    cudaGraphNode_t handle = nullptr;
    cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    WorkPtr work;                  // null: nothing to run
    std::shared_ptr<Graph> child;  // of a cudaGraphNodeTypeGraph
    std::vector<Node const*> deps; // nodes of the same graph
    std::weak_ptr<Graph> graph;
};

struct Graph
{
    cudaGraph_t handle = nullptr;
    std::vector<std::shared_ptr<Node>> nodes; // in the order of their making
    int nesting = 0;                          // of a child graph: 1 + the deepest of its own children
};

struct Stream;

struct Capture
{
    unsigned long long id = 0;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    std::thread::id thread;
    Stream const* origin = nullptr;
    bool invalid = false;
    std::shared_ptr<Graph> graph;
    std::vector<std::shared_ptr<Stream>> members; // origin first; others join by waiting for a captured event
};

struct Stream
{
    cudaStream_t handle = nullptr;
    unsigned int flags = 0;
    int priority = 0;
    unsigned long long id = 0;
    bool isLegacy = false;
    std::recursive_mutex order; // held while the stream's work runs

    std::shared_ptr<Capture> capture;        // guarded by State::structure
    std::vector<Node const*> tips;           // what the next captured node depends on; the same guard
    std::vector<cudaGraphNode_t> tipHandles; // the last answer of cudaStreamGetCaptureInfo
};

struct Event
{
    unsigned int flags = 0;
    // All guarded by State::structure.
    bool recorded = false;
    bool captured = false; // last recorded into a capture
    std::chrono::steady_clock::time_point stamp{};
    std::weak_ptr<Capture> capture;
    std::vector<Node const*> tips;
};

struct Exec; // graph_exec.cpp
struct Pool; // pool.cpp

struct ThreadState
{
    cudaError_t lastError = cudaSuccess;
    cudaStreamCaptureMode captureMode = cudaStreamCaptureModeGlobal;
    int workDepth = 0;
    int hostFunctionDepth = 0;
};

// All that the stand-ins of a process remember, whichever of them is called: a handle of one is good in the others.
struct State
{
    // Of the calling thread; in the module that made the state.
    ThreadState& (*thread)();
    std::shared_ptr<Stream>& (*threadStream)(); // its cudaStreamPerThread; null before the first use

    std::mutex structure;
    std::vector<std::shared_ptr<Capture>> captures; // those under way
    std::vector<std::weak_ptr<Stream>> perThread;   // the cudaStreamPerThread of each thread that used one
    unsigned long long nextCaptureId = 1;
    std::atomic<unsigned long long> nextStreamId{1};
    std::shared_ptr<Stream> legacy;
    HandleTable<Stream> streams{HandleKind::kStream};
    HandleTable<Event> events{HandleKind::kEvent};
    HandleTable<Graph> graphs{HandleKind::kGraph};
    HandleTable<Node> nodes{HandleKind::kNode};
    HandleTable<Exec> execs{HandleKind::kExec};
    HandleTable<Pool> pools{HandleKind::kPool};
    std::mutex defaultPools; // guards the next two
    std::shared_ptr<Pool> defaultPool, currentPool;
    Registry registry;

    std::atomic<unsigned int> deviceFlags{0};
    // What cudaDeviceSetLimit keeps for cudaDeviceGetLimit; the defaults are CUDA's.
    std::atomic<std::size_t> limits[7] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0};

    State();
};

// Lives until the process ends, so that calls from destructors of static objects still find it.
State& state();

// ---- errors (error.cpp) ----

cudaError_t& lastError();

// What a call fails with is thrown inside of the stand-in.
struct Failure
{
    cudaError_t code;
};
[[noreturn]] inline void fail(cudaError_t code)
{
    throw Failure{code};
}
inline void failIf(bool failed, cudaError_t code = cudaErrorInvalidValue)
{
    if (failed)
        fail(code);
}
// What a table knows, or not.
template <class T>
std::shared_ptr<T> required(std::shared_ptr<T> object, cudaError_t otherwise = cudaErrorInvalidValue)
{
    failIf(!object, otherwise);
    return object;
}
// To where a getter's caller wants it.
template <class T>
void give(T* to, std::type_identity_t<T> value)
{
    failIf(to == nullptr);
    *to = value;
}
// Runs a body, which returns nothing or its error, and lets no exception out.
template <class Body>
cudaError_t errorOf(Body&& body) noexcept
{
    try {
        if constexpr (!std::is_void_v<decltype(body())>)
            return body();
        else
            body();
        return cudaSuccess;
    } catch (Failure const& failure) {
        return failure.code;
    } catch (std::bad_alloc const&) {
        return cudaErrorMemoryAllocation;
    } catch (...) {
        return cudaErrorUnknown;
    }
}
// Body of every cuda* function: keeps the error for cudaGetLastError.
template <class Body>
cudaError_t call(Body&& body) noexcept
{
    cudaError_t const error = errorOf(body);
    if (error != cudaSuccess)
        lastError() = error;
    return error;
}

// A cuda* function of one statement.
#define TW_CALL(name, parameters, ...)                                                                                 \
    cudaError_t name parameters                                                                                        \
    {                                                                                                                  \
        return call([&] { __VA_ARGS__; });                                                                             \
    }

// ---- streams (stream.cpp) ----

// Knows the handles of the default streams.
std::shared_ptr<Stream> findStream(cudaStream_t handle);
std::vector<std::shared_ptr<Stream>> allStreams();

// Runs the work now, or records it as a node of this type if the stream is capturing.
void submit(cudaStream_t handle, cudaGraphNodeType type, Work work);

// The calling thread's turn on a stream. Inside work, another stream that is busy in another thread is entered without
// waiting: two threads in each other's streams would wait for ever.
class StreamTurn
{
public:
    explicit StreamTurn(Stream& stream);
    ~StreamTurn();
    StreamTurn(StreamTurn const&) = delete;
    StreamTurn& operator=(StreamTurn const&) = delete;

private:
    Stream& stream_;
    bool owned_;
};

bool insideWork();

// True while a cudaLaunchHostFunc or cudaStreamAddCallback function runs in this thread: CUDA forbids calls there.
class HostFunctionScope
{
public:
    HostFunctionScope();
    ~HostFunctionScope();
    HostFunctionScope(HostFunctionScope const&) = delete;
    HostFunctionScope& operator=(HostFunctionScope const&) = delete;
    static bool active();
};

// Waits until no other thread runs work on the stream.
void waitIdle(Stream& stream);

// ---- capture (capture.cpp) ----

// Whether the stream captures and now holds the node; else the work is to run now. Errors: the capture is invalid, or the
// legacy stream is used beside a capturing blocking stream.
bool recordInCapture(Stream& stream, cudaGraphNodeType type, WorkPtr const& work);

// cudaStreamWaitEvent as far as captures go: the stream joins the event's capture or the call is refused. False: neither
// side captures.
bool joinCapture(std::shared_ptr<Stream> const& stream, Event& event);

// Drops the capture that began on this stream, if any: the stream is being destroyed.
void endCaptureOf(Stream const& stream);

// A call that may touch other threads' streams (allocation, query, synchronous copy): refused while a capture forbids
// it, which invalidates that capture.
void checkUnsafeCall();
// A call that waits for or asks about this stream.
void checkStreamNotCapturing(Stream const& stream);
// A call that waits for the whole device may not: captures end invalid. Whether there were any.
bool invalidateCaptures();
// A synchronous call on the legacy stream.
void checkLegacyStream();

// ---- events (event.cpp) ----

void recordEvent(cudaEvent_t event, cudaStream_t stream, unsigned int flags);
void waitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags);
Work makeStamp(std::shared_ptr<Event> const& event);

// ---- graphs (graph.cpp) ----

std::shared_ptr<Graph> makeGraph();
// Appends to a graph; structure must be locked.
std::shared_ptr<Node> addNode(std::shared_ptr<Graph> const& graph, cudaGraphNodeType type, WorkPtr work,
                              std::vector<Node const*> deps);
// Takes the graph's and its nodes' handles out of the tables; the objects stay with their owners.
void forgetGraph(std::shared_ptr<Graph> const& graph);
// The steps in an order that respects the dependencies, child graphs unrolled; false for a cycle. Structure locked.
bool flatten(Graph const& graph, std::vector<Node const*>& order);
void forgetExecs();

// ---- memory (memory.cpp, registry.cpp) ----

void freeAllMemory();
void forgetPools();
void waitForDevice();

} // namespace tw::hostcuda
