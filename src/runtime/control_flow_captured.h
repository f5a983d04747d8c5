// SPDX-License-Identifier: Apache-2.0
// Loops and branches whose way the GPU decides, in the CUDA graph that a stream captures: what control_flow.h says, put
// down once, as conditional nodes. Shapes are exact, and stacks have a length: whyNotCaptured() has seen to that.
//
// The machine is that of control_flow.h, and has
//   nodes(), stream()                of the device, of the run
//   guard(error, isWatched)          what becomes other than 0 when the run is this error (loop_guards.h); null: nobody asks
//   onStream(stream)                 what regions and copies do from now on goes there
//   isKnown(place)                   the host has its elements
//   condition(inputs, output)        runs it, for a bool at `output`
#pragma once

#include "device/cuda/conditional_nodes.h"
#include "device/cuda/device.h"
#include "runtime/control_flow.h"
#include "runtime/execute_cuda.h"

namespace tw::runtime {

template <class Machine>
Result<void> captureBranch(Machine& m)
{
    using Place = typename Machine::Place;
    if (m.isKnown(m.inputs()[0]))
        return runBranch(m);
    std::vector<Place> const in(m.inputs().begin() + 1, m.inputs().end());
    auto dims = mapped<Extents>(in, [&](Place const& p) { return m.ref(p).dims; });
    for (size_t r = 0; r < 2; ++r)
        TW_TRY(m.open(r, dims));
    Instance const* const used[] = {&m.instance(0), &m.instance(1)};
    TW_TRY(m.reserve(m.memoryOf(used)));
    std::vector<TensorRef> to(m.node().outputs.size());
    for (size_t i = 0; i < to.size(); ++i)
        TW_SET(to[i], m.output(i, m.outputDims(i)));
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

// Between turns, a carried value lies in the loop's output. Each trip of a turn writes to a place of its own, so that the
// end of the turn can choose: what the last trip gave that the loop makes goes back to the output. What is updated in place
// stays in the output; where a trip writes over a carried value, turns have one trip.
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
        settle(trips);
        TW_TRY(this->open());
        CUstream_st* const stream = m_.stream();
        trips.trip = cuda::addressOf(m_.reserved(memory_.counter));
        TW_ASSIGN(uint64_t const goesOn, begin(stream));
        auto done = m_.nodes().loop(stream, trips, goesOn, [&](CUstream_st* inner) {
            m_.onStream(inner);
            return turn();
        });
        m_.onStream(stream);
        TW_TRY(std::move(done));
        for (size_t i = 0; i < at_.carried; ++i)
            TW_TRY(m_.assign(i, now_[i]));
        return {};
    }

private:
    using Place = typename Machine::Place;
    using Base::at_;
    using Base::body_;
    using Base::carried_;
    using Base::counts_;
    using Base::iterated_;
    using Base::m_;
    using Base::memory_;
    using Base::now_;
    using Base::results_;
    using Base::stacks_;
    using Base::wanted_;

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
    // Where the loop has to end, whatever it says, and what the run is where it would go on.
    void settle(cuda::ConditionalTrips& trips)
    {
        int64_t most = INT32_MAX;
        Error error;
        auto take = [&](int64_t end, auto const& errorOf) {
            if (end >= most)
                return;
            most = end;
            error = errorOf();
        };
        for (size_t s = 0; s < iterated_.size(); ++s) {
            iterated_[s].isView = false;
            take(iterated_[s].extent, [&] { return this->pastTheEnd(s, iterated_[s].extent); });
        }
        for (size_t k = 0; k < stacks_.size(); ++k)
            take(stacks_[k].length, [&] { return this->tooShort(k, stacks_[k].length + 1); });
        int64_t const ofTensors = most;
        if (!this->hasCount_ && !trips.count)
            take(interp::Options().maxTrips, [&] { return this->endless(interp::Options().maxTrips); });
        trips.limit = int32_t(std::min(most, this->limit_));
        if (most < std::min<int64_t>(this->limit_, INT32_MAX)) // no count is above that
            trips.broken = cuda::addressOf(m_.guard(std::move(error), most == ofTensors));
    }
    // Where the first bool lies, 0: there is none.
    Result<uint64_t> begin(CUstream_st* stream)
    {
        for (size_t i = 0; i < at_.carried; ++i) {
            if (carried_[i].isOwn)
                continue;
            TensorRef const first = m_.ref(now_[i]);
            if (first.data != carried_[i].output)
                TW_TRY(m_.copyRows(carried_[i].output, 0, first.data, 0, first.sizeBytes(), 1));
            settleAt(i, carried_[i].output);
        }
        for (auto& stack : stacks_) {
            if (!stack.isReady || stack.isPacked)
                return internalError("a stack without a size is captured");
            stack.isInPlace = false;
            int64_t const bytes = stack.length * stack.partBytes;
            TW_TRY(m_.zeroRows(stack.to, bytes, bytes, 1)); // behind the last trip
        }
        std::vector<cuda::ConditionalMove> slices;
        for (size_t s = 0; s < iterated_.size(); ++s)
            nextSlices(s, slices);
        TW_TRY(m_.nodes().move(stream, slices));
        return condition(0);
    }
    // The host's own copy, where there is one, is that of the first trip.
    void settleAt(size_t i, void* data)
    {
        TensorRef t = m_.ref(now_[i]);
        t.data = data;
        now_[i] = m_.place(t);
    }
    std::byte* written(size_t i, int trip) const
    {
        return carried_[i].stays ? carried_[i].output : carried_[i].spare + trip * memory_.spare[i].pitch;
    }
    std::byte* part(size_t k, int trip) const { return stacks_[k].copy + trip * memory_.part[k].pitch; }
    std::byte* slice(size_t s, int trip) const { return iterated_[s].copy + trip * memory_.slice[s].pitch; }

    // Of what the regions see now, into bool `trip`. A bool that is carried or captured stays where it is.
    Result<uint64_t> condition(int trip)
    {
        if (counts_)
            return uint64_t(0);
        ir::Graph const& g = *m_.node().regions[0];
        for (size_t i = 0; i < g.inputs.size(); ++i)
            if (bool const isIterated = i >= at_.carried && i < at_.firstRegionCapture();
                g.outputs[0] == g.inputs[i] && !isIterated && m_.ref(now_[i]).data)
                return cuda::addressOf(m_.ref(now_[i]).data);
        std::byte* const to = this->goesOn_ + trip * memory_.goesOn.pitch;
        TW_TRY(m_.condition(now_, to));
        return cuda::addressOf(to);
    }

    Result<cuda::ConditionalTurn> turn()
    {
        cuda::ConditionalTurn turn;
        turn.trips = memory_.trips;
        moves_.clear();
        for (int trip = 0; trip < turn.trips; ++trip) {
            TW_TRY(oneTrip(trip));
            TW_ASSIGN(turn.goesOn[trip], condition(trip));
        }
        for (size_t i = 0; i < at_.carried; ++i)
            if (!carried_[i].isOwn && !carried_[i].stays)
                keepCarried(i);
        for (size_t s = 0; s < iterated_.size(); ++s) {
            m_.move(now_[at_.carried + s], slice(s, 0));
            nextSlices(s, moves_);
        }
        turn.moves = moves_;
        return turn;
    }
    Result<void> oneTrip(int trip)
    {
        for (size_t i = 0; i < at_.carried; ++i)
            wanted_[i].data = this->isWritten(i) ? written(i, trip) : nullptr;
        for (size_t k = 0; k < at_.stacked; ++k)
            wanted_[at_.carried + k].data = part(k, trip);
        TW_TRY(m_.run(1, now_, wanted_, results_));
        for (size_t i = 0; i < wanted_.size(); ++i)
            if (wanted_[i].data && m_.ref(results_[i]).data != wanted_[i].data)
                return internalError("a trip leaves result {} where the next one writes", i);
        for (size_t i = 0; i < at_.carried; ++i)
            if (!carried_[i].isOwn)
                settleAt(i, m_.ref(results_[i]).data);
        for (size_t k = 0; k < at_.stacked; ++k)
            keepPart(k, trip);
        for (size_t s = 0; s < iterated_.size(); ++s)
            if (trip + 1 < slices(s))
                m_.move(now_[at_.carried + s], slice(s, trip + 1));
        return {};
    }
    void keepCarried(size_t i)
    {
        cuda::ConditionalMove move;
        move.from = cuda::addressOf(m_.ref(now_[i]).data);
        move.to = cuda::addressOf(carried_[i].output);
        if (this->isWritten(i)) { // else it is a capture
            move.fromStep = memory_.spare[i].pitch;
            move.from = cuda::addressOf(carried_[i].spare) - uint64_t(move.fromStep);
        }
        int64_t const bytes = m_.ref(now_[i]).sizeBytes();
        move.setRows(bytes, 1);
        if (bytes > 0)
            moves_.push_back(move);
        settleAt(i, carried_[i].output);
    }
    void keepPart(size_t k, int trip)
    {
        auto const& stack = stacks_[k];
        if (stack.partBytes == 0 || stack.length == 0)
            return;
        cuda::ConditionalMove move;
        move.of = cuda::ConditionalMove::kTrip;
        move.shift = trip;
        move.from = cuda::addressOf(part(k, trip));
        move.to = cuda::addressOf(stack.at(0));
        move.toStep = stack.isReverse ? -stack.innerBytes : stack.innerBytes;
        move.fromPitch = uint64_t(stack.innerBytes);
        move.toPitch = uint64_t(stack.length * stack.innerBytes);
        move.setRows(stack.innerBytes, stack.outer);
        moves_.push_back(move);
    }
    int slices(size_t s) const { return memory_.trips + int(conditionSees(m_.node(), s)); }
    // Of the trips of a turn, and for the condition behind its last one. Behind the tensor's end it is the last again.
    void nextSlices(size_t s, std::vector<cuda::ConditionalMove>& moves) const
    {
        auto const& it = iterated_[s];
        if (it.extent == 0 || it.innerBytes * it.outer == 0)
            return;
        for (int trip = 0; trip < slices(s); ++trip) {
            cuda::ConditionalMove move;
            move.of = cuda::ConditionalMove::kNext;
            move.shift = trip;
            move.most = int32_t(std::min<int64_t>(it.extent - 1, INT32_MAX));
            move.from = cuda::addressOf(it.at(0));
            move.fromStep = it.isReverse ? -it.innerBytes : it.innerBytes;
            move.to = cuda::addressOf(slice(s, trip));
            move.fromPitch = uint64_t(it.extent * it.innerBytes);
            move.toPitch = uint64_t(it.innerBytes);
            move.setRows(it.innerBytes, it.outer);
            moves.push_back(move);
        }
    }

    std::vector<cuda::ConditionalMove> moves_; // of a turn
};

template <class Machine>
Result<void> captureControlFlow(Machine& m)
{
    return m.node().op->regions == ir::RegionKind::kBranch ? captureBranch(m) : CapturedLoop<Machine>(m).run();
}

} // namespace tw::runtime
