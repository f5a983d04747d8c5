// SPDX-License-Identifier: Apache-2.0
// Loops and branches whose way the GPU decides, in the CUDA graph that a stream captures: what control_flow.h says, put
// down once, as conditional nodes. Shapes are exact, and stacks have a length: whyNotCaptured() has seen to that.
//
// The machine is that of control_flow.h, and has
//   nodes(), stream(), broken()      of the device, of the run
//   onStream(stream)                 what regions and copies do from now on goes there
//   isKnown(place)                   the host has its elements
//   condition(inputs, output)        runs it: where the bool lies
#pragma once

#include "device/cuda/conditional_nodes.h"
#include "device/cuda/device.h"
#include "runtime/capture_cuda.h"
#include "runtime/control_flow.h"

namespace tw::runtime {

template <class Machine>
Result<void> captureBranch(Machine& m)
{
    using Place = typename Machine::Place;
    if (m.isKnown(m.inputs()[0]))
        return runBranch(m);
    std::vector<Place> const in(m.inputs().begin() + 1, m.inputs().end());
    std::vector<Extents> dims;
    for (Place const& p : in)
        dims.push_back(m.ref(p).dims);
    for (size_t r = 0; r < 2; ++r)
        TW_TRY(m.open(r, dims));
    Instance const* const used[] = {&m.instance(0), &m.instance(1)};
    TW_TRY(m.reserve(regionMemory(m.node(), used)));
    std::vector<TensorRef> to(m.node().outputs.size());
    for (size_t i = 0; i < to.size(); ++i) {
        TW_ASSIGN(to[i], m.output(i, m.outputDims(i)));
    }
    CUstream_st* const stream = m.stream();
    auto runRegion = [&](size_t r, CUstream_st* inner) -> Result<void> {
        m.onStream(inner);
        Instance const& inst = m.instance(r);
        auto const& outputs = inst.block->graph->outputs;
        std::vector<TensorRef> wanted(outputs.size());
        for (size_t i = 0; i < outputs.size(); ++i)
            if (inst.values[size_t(inst.block->indexOf(outputs[i]))].external)
                wanted[i] = to[i];
        std::vector<Place> results(outputs.size());
        TW_TRY(m.run(r, in, wanted, results));
        for (size_t i = 0; i < results.size(); ++i)
            if (TensorRef const& result = m.ref(results[i]); result.data != to[i].data)
                TW_TRY(m.copyRows(to[i].data, 0, result.data, 0, to[i].sizeBytes(), 1));
        return {};
    };
    auto done = m.nodes().branch(
        stream, cuda::addressOf(m.ref(m.inputs()[0]).data), [&](CUstream_st* s) { return runRegion(0, s); },
        [&](CUstream_st* s) { return runRegion(1, s); });
    m.onStream(stream);
    return done;
}

// Each carried value has one place between trips, the loop's output; what a trip gives goes to the other one first.
template <class Machine>
class CapturedLoop : private LoopRun<Machine>
{
public:
    using Base = LoopRun<Machine>;
    using Base::Base;

    Result<void> run()
    {
        cuda::ConditionalTrips trips;
        TW_TRY(count(trips));
        TW_TRY(this->gather());
        TW_TRY(settle(trips));
        TW_TRY(this->open());
        CUstream_st* const stream = m_.stream();
        TW_TRY(begin(trips));
        auto done = m_.nodes().loop(stream, trips, atOnce(), [&](CUstream_st* inner) -> Result<void> {
            m_.onStream(inner);
            return trip(trips, inner);
        });
        m_.onStream(stream);
        TW_TRY(std::move(done));
        for (size_t i = 0; i < at_.carried; ++i)
            TW_TRY(m_.assign(i, now_[i]));
        return {};
    }

private:
    using Base::at_;
    using Base::body_;
    using Base::carried_;
    using Base::counts_;
    using Base::iterated_;
    using Base::m_;
    using Base::now_;
    using Base::results_;
    using Base::stacks_;
    using Base::wanted_;

    // A node takes about 4 us from trip to trip. Short trips share one, though some of them may be for nothing.
    int atOnce() const
    {
        constexpr int kMostAtOnce = 4;
        constexpr int64_t kShort = 8; // launches
        int64_t const own = launchesOf(m_.instance(1)) + (counts_ ? 0 : launchesOf(m_.instance(0)));
        return own <= kShort && !isStateful(body_) ? kMostAtOnce : 1;
    }
    Result<void> count(cuda::ConditionalTrips& trips)
    {
        if (!m_.has(at_.count()))
            return {};
        auto const& place = m_.inputs()[at_.count()];
        if (m_.isKnown(place))
            return this->gatherCount();
        trips.count = cuda::addressOf(m_.ref(place).data);
        return {};
    }
    // Where the loop has to end, whatever it says.
    Result<void> settle(cuda::ConditionalTrips& trips)
    {
        int64_t most = this->hasCount_ || trips.count ? INT32_MAX : interp::Options().maxTrips;
        for (auto& it : iterated_) {
            it.isView = false;
            most = std::min(most, it.extent);
        }
        for (auto const& stack : stacks_)
            most = std::min(most, stack.length);
        trips.limit = int32_t(std::min(most, this->limit_));
        if (most < this->limit_)
            trips.broken = cuda::addressOf(m_.broken());
        return {};
    }
    Result<void> begin(cuda::ConditionalTrips& trips)
    {
        trips.trip = cuda::addressOf(this->goesOn_ + kTripOffset);
        for (size_t i = 0; i < at_.carried; ++i) {
            if (carried_[i].isOwn)
                continue;
            TensorRef const& first = m_.ref(now_[i]);
            if (first.data != carried_[i].output)
                TW_TRY(m_.copyRows(carried_[i].output, 0, first.data, 0, first.sizeBytes(), 1));
            m_.move(now_[i], carried_[i].output);
        }
        TW_TRY(this->slice(0));
        for (auto& stack : stacks_) {
            if (!stack.isReady || stack.isPacked)
                return internalError("a stack without a size is captured");
            stack.isInPlace = false;
            int64_t const bytes = stack.length * stack.partBytes;
            TW_TRY(m_.zeroRows(stack.to, bytes, bytes, 1)); // behind the last trip
        }
        if (!counts_) {
            TW_ASSIGN(trips.goesOn, condition());
        }
        return {};
    }
    Result<uint64_t> condition()
    {
        TW_ASSIGN(auto const place, m_.condition(now_, this->goesOn_));
        return cuda::addressOf(m_.ref(place).data);
    }

    Result<void> trip(cuda::ConditionalTrips const& trips, CUstream_st* stream)
    {
        for (size_t i = 0; i < at_.carried; ++i)
            wanted_[i].data = this->isWritten(i) ? carried_[i].spare : nullptr;
        for (size_t k = 0; k < at_.stacked; ++k)
            wanted_[at_.carried + k].data = stacks_[k].copy;
        TW_TRY(m_.run(1, now_, wanted_, results_));
        std::vector<cuda::ConditionalMove> moves;
        for (size_t i = 0; i < at_.carried; ++i)
            if (!carried_[i].isOwn)
                TW_TRY(keepCarried(i, moves));
        for (size_t k = 0; k < at_.stacked; ++k)
            TW_TRY(keepPart(k, moves));
        for (auto const& it : iterated_)
            nextSlice(it, moves);
        TW_TRY(m_.nodes().move(stream, trips.trip, moves));
        if (counts_)
            return {};
        TW_ASSIGN(uint64_t const goesOn, condition());
        return goesOn == trips.goesOn ? Result<void>() : Result<void>(internalError("a condition changes its place"));
    }
    // What a trip gave, out of the way of what the moves overwrite.
    Result<void const*> settled(TensorRef const& result, std::byte* spare)
    {
        auto lies = [&](void const* at, int64_t bytes) {
            uint64_t const from = cuda::addressOf(result.data), place = cuda::addressOf(at);
            return from < place + uint64_t(bytes) && place < from + uint64_t(result.sizeBytes());
        };
        bool isLive = false;
        for (size_t i = 0; i < at_.carried; ++i)
            isLive = isLive || (!carried_[i].isOwn && lies(carried_[i].output, m_.ref(now_[i]).sizeBytes()));
        for (auto const& it : iterated_)
            isLive = isLive || lies(it.copy, it.outer * it.innerBytes);
        if (!isLive || result.data == spare)
            return static_cast<void const*>(result.data);
        TW_TRY(m_.copyRows(spare, 0, result.data, 0, result.sizeBytes(), 1));
        return static_cast<void const*>(spare);
    }
    Result<void> keepCarried(size_t i, std::vector<cuda::ConditionalMove>& moves)
    {
        TensorRef const& result = m_.ref(results_[i]);
        TW_ASSIGN(void const* const from, settled(result, carried_[i].spare));
        add(moves, from, carried_[i].output, result.sizeBytes());
        return {};
    }
    static void add(std::vector<cuda::ConditionalMove>& moves, void const* from, void const* to, int64_t bytes)
    {
        cuda::ConditionalMove move;
        move.from = cuda::addressOf(from);
        move.to = cuda::addressOf(to);
        move.setRows(bytes, 1);
        if (bytes > 0)
            moves.push_back(move);
    }
    Result<void> keepPart(size_t k, std::vector<cuda::ConditionalMove>& moves)
    {
        auto const& stack = stacks_[k];
        if (stack.partBytes == 0 || stack.length == 0)
            return {};
        TW_ASSIGN(void const* const from, settled(m_.ref(results_[at_.carried + k]), stack.copy));
        cuda::ConditionalMove move;
        move.from = cuda::addressOf(from);
        move.to = cuda::addressOf(stack.at(0));
        move.toStep = stack.isReverse ? -stack.innerBytes : stack.innerBytes;
        move.fromPitch = uint64_t(stack.innerBytes);
        move.toPitch = uint64_t(stack.length * stack.innerBytes);
        move.setRows(stack.innerBytes, stack.outer);
        moves.push_back(move);
        return {};
    }
    static void nextSlice(typename Base::Iterated const& it, std::vector<cuda::ConditionalMove>& moves)
    {
        if (it.extent == 0 || it.innerBytes * it.outer == 0)
            return;
        cuda::ConditionalMove move;
        move.from = cuda::addressOf(it.at(0));
        move.fromStep = it.isReverse ? -it.innerBytes : it.innerBytes;
        move.to = cuda::addressOf(it.copy);
        move.fromPitch = uint64_t(it.extent * it.innerBytes);
        move.toPitch = uint64_t(it.innerBytes);
        move.setRows(it.innerBytes, it.outer);
        move.shift = 1;
        move.most = int32_t(it.extent - 1);
        moves.push_back(move);
    }
};

template <class Machine>
Result<void> captureControlFlow(Machine& m)
{
    return m.node().op->regions == ir::RegionKind::kBranch ? captureBranch(m) : CapturedLoop<Machine>(m).run();
}

} // namespace tw::runtime
