// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/conditional_nodes.h"

#include <algorithm>

namespace tw::cuda {

namespace {

constexpr size_t kMostMoves = 32; // of a launch

// What the kernel reads (conditional_nodes_text.cpp).
struct Parameters
{
    uint64_t yes = 0, no = 0, trip = 0, count = 0, broken = 0;
    int32_t limit = INT32_MAX;
    uint32_t lead = 0, trips = 1;
    uint32_t isLast = 0, hasWarps = 0;
    uint32_t moves = 0;
    uint64_t goesOn[kMostTripsOfTurn] = {};
    ConditionalMove list[kMostMoves];
};
static_assert(sizeof(ConditionalMove) == 72 && sizeof(Parameters) == 96 + kMostMoves * 72);

// Captures what a body puts on it.
class BodyStream
{
public:
    explicit BodyStream(Driver const& driver) : driver_(driver) {}
    ~BodyStream()
    {
        void* graph = nullptr;
        if (isCapturing_)
            driver_.cuStreamEndCapture(stream_, &graph);
        if (stream_)
            driver_.cuStreamDestroy(stream_);
    }
    BodyStream(BodyStream const&) = delete;
    BodyStream& operator=(BodyStream const&) = delete;
    Result<void> capture(void* graph, ConditionalNodes::Body body)
    {
        TW_CUDA(driver_, cuStreamCreate(&stream_, kStreamNonBlocking));
        TW_CUDA(driver_, cuStreamBeginCaptureToGraph(stream_, graph, nullptr, nullptr, 0, kCaptureRelaxed));
        isCapturing_ = true;
        TW_TRY(body(stream_));
        isCapturing_ = false;
        void* same = nullptr;
        TW_CUDA(driver_, cuStreamEndCapture(stream_, &same));
        return {};
    }

private:
    Driver const& driver_;
    CUstream_st* stream_ = nullptr;
    bool isCapturing_ = false;
};

} // namespace

void ConditionalMove::setRows(int64_t rowBytes, int64_t count)
{
    uint64_t const all = from | to | uint64_t(fromStep) | uint64_t(toStep) | fromPitch | toPitch | uint64_t(rowBytes);
    unitLog = all % 16 == 0 ? 4 : all % 4 == 0 ? 2 : 0;
    units = uint32_t(rowBytes >> unitLog);
    rows = uint32_t(count);
}

std::unique_ptr<ConditionalNodes const> ConditionalNodes::create(Driver const& d, CUctx_st* context)
{
    if (!d.cuStreamBeginCaptureToGraph || !d.cuStreamGetCaptureInfo || !d.cuStreamUpdateCaptureDependencies ||
        !d.cuGraphConditionalHandleCreate || !d.cuGraphAddNode)
        return nullptr;
    std::unique_ptr<ConditionalNodes> n(new ConditionalNodes(d, context));
    if (d.cuModuleLoadData(&n->module_, kConditionalText) != kSuccess ||
        d.cuModuleGetFunction(&n->advance_, n->module_, "advance") != kSuccess)
        return nullptr;
    return n;
}

ConditionalNodes::~ConditionalNodes()
{
    if (module_)
        driver_.cuModuleUnload(module_);
}

Result<uint64_t> ConditionalNodes::handle(CUstream_st* stream) const
{
    int status = 0;
    uint64_t id = 0, handle = 0;
    void* graph = nullptr;
    TW_CUDA(driver_, cuStreamGetCaptureInfo(stream, &status, &id, &graph, nullptr, nullptr));
    TW_CUDA(driver_, cuGraphConditionalHandleCreate(&handle, graph, context_, 0, 0));
    return handle;
}

Result<void> ConditionalNodes::advance(CUstream_st* stream, Handles handles, ConditionalTrips const& trips,
                                       ConditionalTurn const& turn, bool lead) const
{
    constexpr uint32_t kWarp = 32, kThreads = 128, kMostBlocks = 132;
    constexpr uint64_t kSmall = 2 * kWarp; // pieces that a warp moves in no time
    size_t first = 0;
    do {
        Parameters p;
        size_t const count = std::min(kMostMoves, turn.moves.size() - first);
        std::copy_n(turn.moves.begin() + std::ptrdiff_t(first), count, p.list);
        first += count;
        uint64_t most = 0;
        for (ConditionalMove const& m : p.list)
            most = std::max(most, uint64_t(m.units) * m.rows);
        p.trip = trips.trip;
        p.count = trips.count;
        p.broken = trips.broken;
        p.limit = trips.limit;
        p.lead = lead;
        p.trips = uint32_t(turn.trips);
        p.moves = uint32_t(count);
        std::copy_n(turn.goesOn, turn.trips, p.goesOn);
        p.isLast = first == turn.moves.size() && handles.yes != 0;
        if (p.isLast) {
            p.yes = handles.yes;
            p.no = handles.no;
        }
        // Small ones are a warp's each, of one block, which need not find out whether it is the last one.
        p.hasWarps = most <= kSmall;
        auto const jobs = std::max<uint32_t>(p.moves, 1);
        auto const blocks = uint32_t(std::min<uint64_t>((most + kThreads - 1) / kThreads, kMostBlocks));
        void* parameters[] = {&p};
        TW_CUDA(driver_, cuLaunchKernel(advance_, p.hasWarps ? 1 : blocks, p.hasWarps ? 1 : jobs, 1,
                                        p.hasWarps ? jobs * kWarp : kThreads, 1, 1, 0, stream, parameters, nullptr));
    } while (first < turn.moves.size());
    return {};
}

// The last launch is advance's, on which the node waits.
Result<void> ConditionalNodes::add(CUstream_st* stream, uint64_t handle, int kind, Body body) const
{
    int status = 0;
    uint64_t id = 0;
    void *graph = nullptr, *node = nullptr;
    void* const* before = nullptr;
    size_t count = 0;
    TW_CUDA(driver_, cuStreamGetCaptureInfo(stream, &status, &id, &graph, &before, &count));
    ConditionalNode what;
    what.handle = handle;
    what.kind = kind;
    what.context = context_;
    TW_CUDA(driver_, cuGraphAddNode(&node, graph, before, count, &what));
    TW_TRY(BodyStream(driver_).capture(what.graphs[0], body));
    TW_CUDA(driver_, cuStreamUpdateCaptureDependencies(stream, &node, 1, kCaptureInsteadOf));
    return {};
}

Result<void> ConditionalNodes::branch(CUstream_st* stream, uint64_t condition, Body then, Body otherwise) const
{
    TW_ASSIGN(uint64_t const yes, handle(stream));
    TW_ASSIGN(uint64_t const no, handle(stream));
    ConditionalTurn once;
    once.goesOn[0] = condition;
    TW_TRY(advance(stream, {yes, no}, {}, once, false));
    TW_TRY(add(stream, yes, 0, then));
    return add(stream, no, 0, otherwise);
}

Result<void> ConditionalNodes::loop(CUstream_st* stream, ConditionalTrips const& trips, uint64_t goesOn,
                                    LoopBody body) const
{
    TW_ASSIGN(uint64_t const again, handle(stream));
    TW_CUDA(driver_, cuMemsetD8Async(trips.trip, 0, 2 * sizeof(int32_t), stream));
    ConditionalTurn none;
    none.goesOn[0] = goesOn;
    TW_TRY(advance(stream, {again}, trips, none, false));
    return add(stream, again, 1, [&](CUstream_st* inner) -> Result<void> {
        TW_ASSIGN(ConditionalTurn const turn, body(inner));
        return advance(inner, {again}, trips, turn, true);
    });
}

Result<void> ConditionalNodes::move(CUstream_st* stream, std::span<ConditionalMove const> moves) const
{
    ConditionalTurn none;
    none.moves = moves;
    return moves.empty() ? Result<void>() : advance(stream, {}, {}, none, false);
}

} // namespace tw::cuda
