// SPDX-License-Identifier: Apache-2.0
// Loops and conditionals, the same on every device: which region runs, what it sees and where its results go.
//
// A Machine runs the regions of one step of a block on its device:
//   Place                              where a value lies; ref(place): its shape and the address that kernels see
//   inputs()                           of the step: Place, none where an optional one is missing (has(i))
//   number(i), isTrue(place)           elements that the host has to know, which may have to be waited for
//   open(r, dims), instance(r)         region r for inputs of these shapes
//   memoryOf(regions), reserve(memory) workspace; memory(bytes): more of it, for this run
//   run(r, inputs, outputs, results)   `outputs`: memory to write to, null: results stay where they are
//   runCondition(inputs, output)
//   output(i, dims)                    of the step: gives it these dimensions, and memory
//   assign(i, place)                   the same, with the value that lies there
//   held(i)                            memory that output i has already, and how much
//   copyRows, zeroRows
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "interp/interp.h"
#include "ir/op_def.h"
#include "ops/loop/op.h"
#include "runtime/regions.h"
#include "runtime/updates.h"

namespace tw::runtime {

template <class Machine>
Result<void> runBranch(Machine& m)
{
    using Place = typename Machine::Place;
    TW_ASSIGN(bool const taken, m.isTrue(m.inputs()[0]));
    size_t const r = taken ? 0 : 1;
    std::vector<Place> const in(m.inputs().begin() + 1, m.inputs().end());
    auto dims = mapped<Extents>(in, [&](Place const& p) { return m.ref(p).dims; });
    TW_TRY(m.open(r, dims));
    Instance const& inst = m.instance(r);
    Instance const* used[2] = {};
    used[r] = &inst;
    TW_TRY(m.reserve(m.memoryOf(used)));
    auto const& outputs = inst.block->graph->outputs;
    std::vector<TensorRef> wanted(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i)
        if (ValueState const& s = inst.values[size_t(inst.block->indexOf(outputs[i]))]; s.external && s.exact)
            TW_SET(wanted[i], m.output(i, s.dims));
    std::vector<Place> results(outputs.size());
    TW_TRY(m.run(r, in, wanted, results));
    for (size_t i = 0; i < results.size(); ++i)
        TW_TRY(m.assign(i, results[i]));
    return {};
}

template <class Machine>
class LoopRun
{
public:
    using Place = typename Machine::Place;

    explicit LoopRun(Machine& m)
        : m_(m), attrs_(m.node().template attrsAs<ops::loop::Attrs>()), at_(attrs_), body_(*m.node().regions[1]),
          counts_(ops::loop::isAlwaysTrue(*m.node().regions[0]))
    {}

    Result<void> run()
    {
        TW_TRY(gatherCount());
        TW_TRY(gather());
        if (limit_ > 0) {
            TW_TRY(open());
            TW_TRY(own());
        }
        int64_t trip = 0;
        for (; trip < limit_; ++trip) {
            TW_TRY(slice(trip));
            if (!counts_) {
                TW_ASSIGN(bool const goesOn, m_.runCondition(now_, goesOn_));
                if (!goesOn)
                    break;
            }
            TW_TRY(step(trip));
        }
        return finish(trip);
    }

protected:
    struct Iterated
    {
        TensorRef whole;
        int64_t extent = 0, outer = 0, innerBytes = 0;
        bool isReverse = false, isView = false;
        std::byte* copy = nullptr; // a slice that is no view
        std::byte* at(int64_t i) const
        {
            return static_cast<std::byte*>(whole.data) + (isReverse ? extent - 1 - i : i) * innerBytes;
        }
    };
    // [outer, length, inner]; while the length is not known: [trips, outer, inner].
    struct Stack
    {
        int64_t length = -1; // -1: as many as there are trips
        bool isReady = false, isPacked = false, isInPlace = false, isReverse = false;
        TensorRef part; // of one trip
        int64_t outer = 0, innerBytes = 0, partBytes = 0;
        std::byte *to = nullptr, *copy = nullptr;
        int64_t capacity = 0; // packed: trips
        std::byte* at(int64_t trip) const
        {
            return to + (isPacked ? trip * partBytes : (isReverse ? length - 1 - trip : trip) * innerBytes);
        }
    };
    // How the next value of a carried one comes.
    struct Carried
    {
        std::byte *output = nullptr, *spare = nullptr; // its two places, where it is written in turns
        bool isOwn = false;                            // the body hands it back
        bool stays = false;                            // in the output, where the body writes over it
        int capture = -1;                              // the body gives this input of its own instead
        int stack = -1;                                // it is stacked too
    };

    Result<void> gatherCount()
    {
        if (m_.has(at_.count())) {
            TW_ASSIGN(int64_t const count, m_.number(at_.count()));
            hasCount_ = true;
            limit_ = std::max<int64_t>(count, 0);
        }
        return {};
    }
    Result<void> gather()
    {
        auto const& in = m_.inputs();
        auto whole = mapped<InputState>(in, [&](Place const& p) {
            return InputState{m_.ref(p).dims, true, TensorRef{}};
        });
        for (InputState const& s : regionInputs(m_.node(), whole))
            dims_.push_back(s.dims);
        for (size_t i = 0; at_.inputOf(i) < in.size(); ++i)
            now_.push_back(in[at_.inputOf(i)]);
        for (size_t s = 0; s < at_.iterated; ++s)
            TW_TRY(gatherIterated(s));
        stacks_.resize(at_.stacked);
        for (size_t k = 0; k < at_.stacked; ++k)
            TW_TRY(gatherStack(k));
        return {};
    }
    Result<void> gatherIterated(size_t s)
    {
        Iterated it;
        size_t const input = at_.iteratedAt(s);
        int const axis = int(attrs_.iteratorAxes[s]);
        it.whole = m_.ref(m_.inputs()[input]);
        it.extent = it.whole.dims[axis];
        it.outer = it.whole.dims.volume(0, axis);
        it.innerBytes = it.whole.dims.volume(axis + 1, it.whole.dims.rank) * sizeOf(it.whole.type);
        it.isReverse = attrs_.iteratorReverse[s] != 0;
        it.isView = it.outer == 1 && it.extent > 0 && m_.mayStand(it.whole.data, it.innerBytes);
        iterated_.push_back(it);
        if (counts_ && hasCount_ && limit_ > it.extent)
            return pastTheEnd(s, it.extent);
        return {};
    }
    Error pastTheEnd(size_t s, int64_t trip) const
    {
        size_t const input = at_.iteratedAt(s);
        return failedExecution(
            fmt::format("iteration {} is past the extent {} of the iterated tensor '{}'{}", trip, iterated_[s].extent,
                        m_.node().inputs[input]->name,
                        hasCount_ ? fmt::format("; the count is {}{}", limit_, saidBy(at_.count())) : std::string()));
    }
    Result<void> gatherStack(size_t k)
    {
        Stack& stack = stacks_[k];
        stack.isReverse = attrs_.stackReverse[k] != 0;
        if (m_.has(at_.lengthAt(k))) {
            TW_ASSIGN(stack.length, m_.number(at_.lengthAt(k)));
            if (stack.length < 0)
                return failedExecution(fmt::format("the length {}{} of {} is below 0", stack.length,
                                                   saidBy(at_.lengthAt(k)), stackName(k)));
        }
        stack.isPacked = stack.length < 0 && !(counts_ && hasCount_);
        if (stack.length < 0 && !stack.isPacked)
            stack.length = limit_;
        if (counts_ && hasCount_ && limit_ > stack.length)
            return tooShort(k, limit_);
        return {};
    }
    Error tooShort(size_t k, int64_t trips) const
    {
        return failedExecution(fmt::format(
            "{} has the length {}{}, {} iterations or more are made; a length is at least the number of iterations",
            stackName(k), stacks_[k].length, saidBy(at_.lengthAt(k)), trips));
    }
    std::string stackName(size_t k) const { return "output '" + m_.node().outputs[at_.carried + k]->name + "'"; }
    // The tensor that says a count or a length; nothing where none does.
    std::string saidBy(size_t input) const
    {
        return m_.has(input) ? " (tensor '" + m_.node().inputs[input]->name + "')" : std::string();
    }

    Result<void> open()
    {
        TW_TRY(m_.open(1, dims_));
        if (!counts_)
            TW_TRY(m_.open(0, dims_));
        Instance const* const regions[] = {counts_ ? nullptr : &m_.instance(0), &m_.instance(1)};
        memory_ = m_.memoryOf(regions);
        TW_TRY(m_.reserve(memory_));
        goesOn_ = m_.reserved(memory_.goesOn.at);
        for (size_t s = 0; s < at_.iterated; ++s) {
            Iterated& it = iterated_[s];
            it.copy = m_.reserved(memory_.slice[s].at);
            TensorRef const part{it.whole.type, dims_[at_.carried + s], it.isView ? it.whole.data : it.copy};
            now_[at_.carried + s] = m_.place(part);
            if (it.extent == 0)
                TW_TRY(m_.zeroRows(it.copy, part.sizeBytes(), part.sizeBytes(), 1));
        }
        for (size_t i = 0; i < at_.carried; ++i)
            TW_TRY(openCarried(i, m_.reserved(memory_.spare[i].at)));
        for (size_t k = 0; k < at_.stacked; ++k) {
            stacks_[k].copy = m_.reserved(memory_.part[k].at);
            ValueState const& s = stateOf(body_.outputs[at_.carried + k]);
            if (s.exact)
                TW_TRY(readyStack(k, s.dims));
        }
        wanted_.resize(body_.outputs.size());
        results_.resize(body_.outputs.size());
        return {};
    }
    ValueState const& stateOf(ir::Value const* v) const
    {
        Instance const& inst = m_.instance(1);
        return inst.values[size_t(inst.block->indexOf(v))];
    }
    Result<void> openCarried(size_t i, std::byte* spare)
    {
        Carried c;
        TW_ASSIGN(TensorRef const output, m_.output(i, dims_[i]));
        c.output = static_cast<std::byte*>(output.data);
        c.spare = spare;
        ir::Value const* const next = body_.outputs[i];
        c.isOwn = next == body_.inputs[i];
        c.stays = isUpdatedInPlace(m_.instance(1), i);
        for (size_t k = at_.firstRegionCapture(); k < body_.inputs.size(); ++k)
            c.capture = next == body_.inputs[k] ? int(k) : c.capture;
        for (size_t k = 0; k < at_.stacked; ++k)
            c.stack = next == body_.outputs[at_.carried + k] ? int(k) : c.stack;
        carried_.push_back(c);
        return {};
    }
    // What the trips write over becomes the loop's own.
    Result<void> own()
    {
        for (size_t i = 0; i < at_.carried; ++i) {
            if (!isOverwritten(m_.instance(1), i))
                continue;
            Carried const& c = carried_[i];
            std::byte* const to = c.stays || target(i, 0) != c.output ? c.output : c.spare;
            TensorRef const first = m_.ref(now_[i]);
            if (first.data == to)
                continue;
            TW_TRY(m_.copyRows(to, 0, first.data, 0, first.sizeBytes(), 1));
            m_.move(now_[i], to);
        }
        return {};
    }
    Result<void> readyStack(size_t k, Extents const& part)
    {
        Stack& stack = stacks_[k];
        int const axis = int(attrs_.stackAxes[k]);
        stack.isReady = true;
        stack.part = {body_.outputs[at_.carried + k]->type, part, nullptr};
        stack.outer = part.volume(0, axis);
        stack.innerBytes = part.volume(axis, part.rank) * sizeOf(stack.part.type);
        stack.partBytes = stack.part.sizeBytes();
        if (!stack.isPacked) {
            TW_ASSIGN(TensorRef const output, m_.output(at_.carried + k, stackDims(k, stack.length)));
            stack.to = static_cast<std::byte*>(output.data);
        } else if (auto const [memory, bytes] = m_.held(at_.carried + k); stack.outer == 1 && !stack.isReverse) {
            stack.to = static_cast<std::byte*>(memory);
            stack.capacity = stack.partBytes > 0 ? bytes / stack.partBytes : 0;
        }
        stack.isInPlace = (stack.isPacked || stack.outer == 1) && m_.mayStand(stack.to, stack.partBytes);
        return {};
    }
    Extents stackDims(size_t k, int64_t length) const
    {
        Extents const& part = stacks_[k].part.dims;
        Extents y;
        for (int d = 0; d <= part.rank; ++d) {
            if (d == attrs_.stackAxes[k])
                y.push(length);
            if (d < part.rank)
                y.push(part[d]);
        }
        return y;
    }
    // A stack whose length only the last trip tells.
    Result<void> grow(Stack& stack, int64_t trip)
    {
        constexpr int64_t kLeast = 16;
        if (trip < stack.capacity)
            return {};
        int64_t const capacity = std::max(kLeast, 2 * stack.capacity);
        TW_ASSIGN(void* const memory, m_.memory(capacity * stack.partBytes));
        TW_TRY(m_.copyRows(memory, 0, stack.to, 0, trip * stack.partBytes, 1));
        stack.to = static_cast<std::byte*>(memory);
        stack.capacity = capacity;
        return {};
    }

    // What this trip sees of the iterated tensors; behind the end, where only the condition looks, the last slice.
    Result<void> slice(int64_t trip)
    {
        for (size_t s = 0; s < at_.iterated; ++s) {
            Iterated const& it = iterated_[s];
            if (it.extent == 0)
                continue;
            std::byte* const from = it.at(std::min(trip, it.extent - 1));
            if (it.isView)
                m_.move(now_[at_.carried + s], from);
            else if (trip < it.extent)
                TW_TRY(m_.copyRows(it.copy, it.innerBytes, from, it.extent * it.innerBytes, it.innerBytes, it.outer));
        }
        return {};
    }

    static Error endless(int64_t trips)
    {
        return failedExecution(fmt::format("the loop did not end after {} iterations", trips));
    }
    Result<void> step(int64_t trip)
    {
        if (!hasCount_ && trip >= interp::Options().maxTrips)
            return endless(trip);
        for (size_t s = 0; s < at_.iterated; ++s)
            if (trip >= iterated_[s].extent)
                return pastTheEnd(s, trip);
        for (size_t k = 0; k < at_.stacked; ++k)
            TW_TRY(aimStack(k, trip));
        for (size_t i = 0; i < at_.carried; ++i)
            wanted_[i].data = isWritten(i) ? target(i, trip) : nullptr;
        TW_TRY(m_.run(1, now_, wanted_, results_));
        for (size_t k = 0; k < at_.stacked; ++k)
            TW_TRY(takePart(k, trip));
        for (size_t i = 0; i < at_.carried; ++i)
            TW_TRY(takeNext(i, trip));
        return {};
    }
    bool isStacked(Carried const& c) const { return c.stack >= 0 && stacks_[size_t(c.stack)].isInPlace; }
    // Whether the body writes the next value where we say.
    bool isWritten(size_t i) const
    {
        Carried const& c = carried_[i];
        return !c.isOwn && c.capture < 0 && !isStacked(c) &&
               (!body_.outputs[i]->producer || stateOf(body_.outputs[i]).exact);
    }
    // Not where the value lies now, unless it stays there; the last of a known number of trips writes to the output.
    std::byte* target(size_t i, int64_t trip) const
    {
        if (carried_[i].stays)
            return carried_[i].output;
        int64_t const left = counts_ && hasCount_ ? limit_ - 1 - trip : trip;
        return left % 2 == 0 ? carried_[i].output : carried_[i].spare;
    }
    Result<void> aimStack(size_t k, int64_t trip)
    {
        Stack& stack = stacks_[k];
        TensorRef& to = wanted_[at_.carried + k];
        to.data = nullptr;
        if (!stack.isPacked && trip >= stack.length)
            return tooShort(k, trip + 1);
        if (stack.isReady && stack.isPacked)
            TW_TRY(grow(stack, trip));
        if (stack.isReady && stateOf(body_.outputs[at_.carried + k]).exact) // else a part may be larger than its place
            to.data = stack.isInPlace ? stack.at(trip) : stack.copy;
        return {};
    }
    Result<void> takePart(size_t k, int64_t trip)
    {
        Stack& stack = stacks_[k];
        TensorRef const& part = m_.ref(results_[at_.carried + k]);
        if (!stack.isReady) {
            TW_TRY(readyStack(k, part.dims));
            if (stack.isPacked)
                TW_TRY(grow(stack, trip));
        }
        if (!(part.dims == stack.part.dims))
            return failedExecution(fmt::format("the value of output {} ('{}') had shape {}, iteration {} gives {}",
                                               at_.carried + k, body_.outputs[at_.carried + k]->name,
                                               stack.part.dims.str(), trip, part.dims.str()));
        std::byte* const to = stack.at(trip);
        if (part.data == to)
            return {};
        return stack.isPacked ? m_.copyRows(to, 0, part.data, 0, stack.partBytes, 1)
                              : m_.copyRows(to, stack.length * stack.innerBytes, part.data, stack.innerBytes,
                                            stack.innerBytes, stack.outer);
    }
    Result<void> takeNext(size_t i, int64_t trip)
    {
        Carried const& c = carried_[i];
        TensorRef const& next = m_.ref(results_[i]);
        if (!(next.dims == dims_[i]))
            return failedExecution(
                fmt::format("carried value {} ('{}') had shape {}, iteration {} gives {} ('{}'); values keep their "
                            "shape from trip to trip: stack what grows, or fill it up to its largest size",
                            i, body_.inputs[i]->name, dims_[i].str(), trip, next.dims.str(), body_.outputs[i]->name));
        if (c.isOwn)
            return {};
        if (c.capture >= 0) {
            now_[i] = now_[size_t(c.capture)];
            return {};
        }
        std::byte* const to = isStacked(c) ? stacks_[size_t(c.stack)].at(trip) : target(i, trip);
        if (next.data != to && !isStacked(c))
            TW_TRY(m_.copyRows(to, 0, next.data, 0, next.sizeBytes(), 1));
        now_[i] = results_[i];
        m_.move(now_[i], to);
        return {};
    }

    Result<void> finish(int64_t trips)
    {
        for (size_t i = 0; i < at_.carried; ++i)
            TW_TRY(m_.assign(i, now_[i]));
        for (size_t k = 0; k < at_.stacked; ++k)
            TW_TRY(finishStack(k, trips));
        return {};
    }
    Result<void> finishStack(size_t k, int64_t trips)
    {
        Stack& stack = stacks_[k];
        if (!stack.isReady) { // no trip: the shape is what is known of it
            int const axis = int(attrs_.stackAxes[k]);
            Extents part;
            Extents const y = m_.outputDims(at_.carried + k);
            for (int d = 0; d < y.rank; ++d)
                if (d != axis)
                    part.push(y[d]);
            TW_TRY(readyStack(k, part));
        }
        if (stack.isPacked) {
            Stack const packed = stack;
            stack.isPacked = false;
            stack.length = trips;
            TW_ASSIGN(TensorRef const output, m_.output(at_.carried + k, stackDims(k, trips)));
            stack.to = static_cast<std::byte*>(output.data);
            if (stack.outer == 1 && !stack.isReverse)
                return m_.copyRows(stack.to, 0, packed.to, 0, trips * stack.partBytes, 1);
            for (int64_t i = 0; i < trips; ++i)
                TW_TRY(m_.copyRows(stack.at(i), trips * stack.innerBytes, packed.at(i), stack.innerBytes,
                                   stack.innerBytes, stack.outer));
        }
        int64_t const rest = stack.length - trips;
        std::byte* const gap = stack.to + (stack.isReverse ? 0 : trips) * stack.innerBytes;
        return m_.zeroRows(gap, stack.length * stack.innerBytes, rest * stack.innerBytes, stack.outer);
    }

    Machine& m_;
    ops::loop::Attrs const& attrs_;
    ops::loop::Layout const at_;
    ir::Graph const& body_;
    bool const counts_; // the condition is always true
    bool hasCount_ = false;
    int64_t limit_ = INT64_MAX;
    std::vector<Extents> dims_; // of the regions' inputs
    std::vector<Place> now_;    // what the regions see
    std::vector<Iterated> iterated_;
    std::vector<Stack> stacks_;
    std::vector<Carried> carried_;
    RegionMemory memory_;
    std::byte* goesOn_ = nullptr;
    std::vector<TensorRef> wanted_;
    std::vector<Place> results_;
};

template <class Machine>
Result<void> runControlFlow(Machine& m)
{
    return m.node().op->regions == ir::RegionKind::kBranch ? runBranch(m) : LoopRun<Machine>(m).run();
}

} // namespace tw::runtime
