// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/conditional_nodes.h"

#include <algorithm>

namespace tw::cuda {

namespace {

constexpr size_t kMostMoves = 16; // of a launch: what its parameters hold

struct Moves
{
    ConditionalMove list[kMostMoves];
};
static_assert(sizeof(ConditionalMove) == 72);

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
        d.cuModuleGetFunction(&n->decide_, n->module_, "decide") != kSuccess ||
        d.cuModuleGetFunction(&n->move_, n->module_, "move") != kSuccess)
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

Result<void> ConditionalNodes::decide(CUstream_st* stream, uint64_t handle, uint64_t otherwise,
                                      ConditionalTrips const& trips, uint32_t bump) const
{
    ConditionalTrips t = trips;
    void* parameters[] = {&handle, &otherwise, &t.goesOn, &t.trip, &t.count, &t.broken, &t.limit, &bump};
    TW_CUDA(driver_, cuLaunchKernel(decide_, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
    return {};
}

// The last launch is decide's, on which the node waits.
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
    ConditionalTrips once;
    once.goesOn = condition;
    TW_TRY(decide(stream, yes, no, once, 0));
    TW_TRY(add(stream, yes, 0, then));
    return add(stream, no, 0, otherwise);
}

Result<void> ConditionalNodes::loop(CUstream_st* stream, ConditionalTrips const& trips, int atOnce, Body body) const
{
    TW_ASSIGN(uint64_t const again, handle(stream));
    TW_CUDA(driver_, cuMemsetD8Async(trips.trip, 0, sizeof(int32_t), stream));
    TW_TRY(decide(stream, again, 0, trips, 0));
    return add(stream, again, 1, [&](CUstream_st* inner) -> Result<void> {
        for (int i = 1; i < atOnce; ++i) {
            TW_TRY(body(inner));
            TW_TRY(decide(inner, 0, 0, trips, 1));
        }
        TW_TRY(body(inner));
        return decide(inner, again, 0, trips, 1);
    });
}

Result<void> ConditionalNodes::move(CUstream_st* stream, uint64_t trip, std::span<ConditionalMove const> moves) const
{
    constexpr uint32_t kThreads = 128, kMostBlocks = 132;
    for (size_t first = 0; first < moves.size(); first += kMostMoves) {
        Moves some{};
        size_t const count = std::min(kMostMoves, moves.size() - first);
        std::copy_n(moves.begin() + std::ptrdiff_t(first), count, some.list);
        uint64_t most = 1;
        for (ConditionalMove const& m : some.list)
            most = std::max(most, uint64_t(m.units) * m.rows);
        auto const blocks = uint32_t(std::min<uint64_t>((most + kThreads - 1) / kThreads, kMostBlocks));
        void* parameters[] = {&trip, &some};
        TW_CUDA(driver_,
                cuLaunchKernel(move_, blocks, uint32_t(count), 1, kThreads, 1, 1, 0, stream, parameters, nullptr));
    }
    return {};
}

} // namespace tw::cuda
