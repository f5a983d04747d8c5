// SPDX-License-Identifier: Apache-2.0
// A fake driver that has CUDA graphs and conditional nodes: streams are captured and replayed in the order of capture,
// and the kernel that ends the turns of loops (device/cuda/conditional_nodes_text.cpp) is done here, by what its comment
// says.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>

#include "device/cuda/driver.h"
#include "fake_streams.h"

using namespace tw::cuda;
using namespace tw::fake;

extern "C" {
int twFakeTurns = 0; // of loops' nodes
}

namespace {

constexpr int kMostTurns = 1'000'000;

struct Graph
{
    Work work;
    Graph* bodies[1] = {}; // of the node that is the graph's
};
std::deque<Graph> graphs;     // of the process
std::deque<unsigned> handles; // what conditional nodes ask, by handle - 1

void run(Graph const& g)
{
    for (auto const& work : g.work)
        work();
}
[[noreturn]] void fail(char const* what)
{
    std::fprintf(stderr, "fake driver: %s\n", what);
    std::abort();
}

struct Move
{
    uint64_t from, to;
    int64_t fromStep, toStep;
    uint64_t fromPitch, toPitch;
    uint32_t units, rows;
    int32_t shift, most;
    uint32_t unitLog, of;
};
struct Parameters
{
    uint64_t yes, no, trip, count, broken;
    int32_t limit;
    uint32_t lead, trips, isLast, hasWarps, moves;
    uint64_t goesOn[4];
    Move list[32];
};
static_assert(sizeof(Parameters) == kAdvanceBytes);

template <class T>
T& number(uint64_t address)
{
    return *reinterpret_cast<T*>(uintptr_t(address));
}

struct Bytes
{
    uint64_t begin, end;
    bool meets(Bytes const& other) const { return begin < other.end && other.begin < end; }
};

// Rows of one move: no two of a launch may depend on each other's order.
void moveAll(Parameters const& p, int made, std::vector<Bytes> read)
{
    std::vector<Bytes> written;
    for (uint32_t i = 0; i < p.moves; ++i) {
        Move const& m = p.list[i];
        int const trip = p.trip ? number<int32_t>(p.trip) : 0;
        if (m.of == 1 && m.shift >= made)
            continue;
        int const n = std::min((m.of == 0 ? 0 : trip) + (m.of == 1 ? 0 : made) + m.shift, m.most);
        for (uint32_t row = 0; row < m.rows; ++row) {
            uint64_t const bytes = uint64_t(m.units) << m.unitLog;
            uint64_t const from = m.from + uint64_t(n * m.fromStep) + row * m.fromPitch;
            uint64_t const to = m.to + uint64_t(n * m.toStep) + row * m.toPitch;
            if (((from | to) & ((1U << m.unitLog) - 1)) != 0)
                fail("a move is not aligned");
            read.push_back({from, from + bytes});
            written.push_back({to, to + bytes});
            std::memcpy(&number<char>(to), &number<char>(from), size_t(bytes));
        }
    }
    for (size_t i = 0; i < written.size(); ++i) {
        for (Bytes const& r : read)
            if (r.meets(written[i]))
                fail("a move writes what the launch reads");
        for (size_t j = 0; j < i; ++j)
            if (written[j].meets(written[i]))
                fail("two moves write the same");
    }
}

void advanceTurn(void const* parameters)
{
    Parameters p;
    std::memcpy(&p, parameters, sizeof(p));
    int const begin = p.trip ? number<int32_t>(p.trip) : 0;
    if (p.trip && number<int32_t>(p.trip + 4) != 0)
        fail("the blocks of a launch are counted from something else than 0");
    int n = 0, made = 0;
    bool goesOn = true;
    std::vector<Bytes> read;
    for (uint32_t i = 0; i < p.trips && goesOn; ++i) {
        made = int(p.lead + i);
        n = begin + made;
        goesOn = (!p.goesOn[i] || number<char>(p.goesOn[i]) != 0) && (!p.count || n < number<int32_t>(p.count));
        if (p.goesOn[i])
            read.push_back({p.goesOn[i], p.goesOn[i] + 1});
        if (goesOn && n >= p.limit) {
            goesOn = false;
            if (p.broken && p.isLast)
                number<int32_t>(p.broken) = n + 1;
        }
    }
    moveAll(p, made, std::move(read));
    if (!p.isLast)
        return;
    if (p.trip)
        number<int32_t>(p.trip) = n;
    handles.at(p.yes - 1) = goesOn;
    if (p.no)
        handles.at(p.no - 1) = !goesOn;
}

bool const isThere = [] {
    advance = advanceTurn;
    return true;
}();

} // namespace

extern "C" int cuStreamBeginCapture_v2(CUstream_st* stream, int)
{
    graphs.emplace_back();
    streamOf(stream)->graph = &graphs.back().work;
    streamOf(stream)->isCapturing = isThere;
    streamOf(stream)->isInvalid = false;
    return kSuccess;
}
extern "C" int cuStreamBeginCaptureToGraph(CUstream_st* stream, void* graph, void* const*, void const*, size_t, int)
{
    streamOf(stream)->graph = &static_cast<Graph*>(graph)->work;
    streamOf(stream)->isCapturing = true;
    streamOf(stream)->isInvalid = false;
    return kSuccess;
}
extern "C" int cuStreamEndCapture(CUstream_st* stream, void** graph)
{
    Stream& s = *streamOf(stream);
    s.isCapturing = false;
    *graph = s.isInvalid ? nullptr : s.graph; // the address of a graph is that of its work
    s.graph = nullptr;
    return s.isInvalid ? 901 : kSuccess;
}
extern "C" int cuStreamGetCaptureInfo_v2(CUstream_st* stream, int* status, uint64_t* id, void** graph,
                                         void* const** dependencies, size_t* count)
{
    *status = streamOf(stream)->isCapturing;
    *id = 1;
    *graph = streamOf(stream)->graph;
    if (dependencies)
        *dependencies = nullptr;
    if (count)
        *count = 0;
    return kSuccess;
}
extern "C" int cuStreamUpdateCaptureDependencies(CUstream_st*, void**, size_t, unsigned)
{
    return kSuccess;
}
extern "C" int cuGraphConditionalHandleCreate(uint64_t* handle, void*, CUctx_st*, unsigned, unsigned)
{
    handles.push_back(0);
    *handle = handles.size();
    return kSuccess;
}
extern "C" int cuGraphAddNode(void** node, void* graph, void* const*, size_t, ConditionalNode* what)
{
    graphs.emplace_back();
    Graph* const body = &graphs.back();
    body->bodies[0] = body;
    what->graphs = reinterpret_cast<void**>(body->bodies);
    *node = body;
    auto turns = [body, handle = what->handle - 1, isLoop = what->kind == 1] {
        for (int turn = 0; handles.at(handle) != 0; ++turn) {
            if (turn > kMostTurns)
                fail("a loop does not end");
            run(*body);
            if (!isLoop)
                return;
            ++twFakeTurns;
        }
    };
    static_cast<Graph*>(graph)->work.push_back(turns);
    return kSuccess;
}
extern "C" int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long)
{
    *executable = graph;
    return kSuccess;
}
extern "C" int cuGraphDestroy(void*)
{
    return kSuccess;
}
extern "C" int cuGraphExecDestroy(void*)
{
    return kSuccess;
}
extern "C" int cuLaunchHostFunc(CUstream_st* stream, void (*function)(void*), void* data)
{
    runOrCapture(stream, [=] { function(data); });
    return kSuccess;
}
extern "C" int cuGraphLaunch(void* executable, CUstream_st*)
{
    run(*static_cast<Graph*>(executable));
    return kSuccess;
}
