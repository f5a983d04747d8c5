// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop_guards.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "device/cuda/device.h"
#include "ir/graph.h"
#include "ir/op_def.h"

namespace tw::runtime {

namespace {

size_t loopsIn(ir::Graph const& g)
{
    size_t loops = 0;
    for (auto const& n : g.nodes) {
        loops += n->op->regions == ir::RegionKind::kLoop;
        for (auto const& region : n->regions)
            loops += loopsIn(*region);
    }
    return loops;
}

} // namespace

// What a graph that a client has captured may ask for when everything else is gone.
struct LoopGuards::State
{
    struct Loop
    {
        ir::Node const* node;
        Error error;
        bool isWatched;
    };
    std::mutex mutex;
    std::vector<Loop> loops;  // word i is that of loop i
    int32_t* words = nullptr; // null: gone
    size_t capacity = 0;
    std::shared_ptr<Report const> report;
    uintptr_t number = 0; // in the list of all; 0: nobody watches

    // Of loops that went on, watched ones or the others; their words are as before then.
    std::vector<Error> take(bool watched)
    {
        std::vector<Error> errors;
        for (size_t i = 0; words && i < loops.size(); ++i)
            if ((loops[i].isWatched && report) == watched && std::atomic_ref(words[i]).exchange(0) != 0)
                errors.push_back(loops[i].error);
        return errors;
    }
};

// Functions of graphs know their guards by number: graphs of clients may be launched when those are gone.
struct LoopGuards::Watched
{
    std::mutex mutex;
    uintptr_t last = 0;
    std::map<uintptr_t, std::weak_ptr<State>> states;

    // Never freed: a thread of the driver may ask at the end of the process.
    static Watched& all()
    {
        static auto* const list = new Watched;
        return *list;
    }
};

Result<std::unique_ptr<LoopGuards>> LoopGuards::create(std::shared_ptr<cuda::Device const> device,
                                                       ir::Graph const& graph)
{
    auto state = std::make_shared<State>();
    state->capacity = loopsIn(graph);
    if (state->capacity > 0) {
        cuda::Current const current(*device);
        void* memory = nullptr;
        TW_CUDA(device->driver(), cuMemAllocHost(&memory, state->capacity * sizeof(int32_t)));
        state->words = static_cast<int32_t*>(memory);
        std::fill_n(state->words, state->capacity, 0);
    }
    return std::unique_ptr<LoopGuards>(new LoopGuards(std::move(device), std::move(state)));
}

LoopGuards::~LoopGuards()
{
    void* words = nullptr;
    uintptr_t number = 0;
    {
        std::lock_guard const lock(state_->mutex);
        words = std::exchange(state_->words, nullptr);
        number = state_->number;
    }
    if (number != 0) {
        auto& all = Watched::all();
        std::lock_guard const lock(all.mutex);
        all.states.erase(number);
    }
    if (words) {
        cuda::Current const current(*device_);
        device_->driver().cuMemFreeHost(words);
    }
}

int32_t* LoopGuards::guard(ir::Node const& loop, Error error, bool isWatched)
{
    std::lock_guard const lock(state_->mutex);
    auto& loops = state_->loops;
    auto it = std::ranges::find_if(loops, [&](State::Loop const& l) { return l.node == &loop; });
    if (it == loops.end()) {
        if (!state_->words || loops.size() == state_->capacity)
            return nullptr;
        it = loops.insert(loops.end(), State::Loop{&loop, {}, false});
    }
    it->isWatched = it->isWatched || isWatched;
    it->error = std::move(error).in("layer '" + loop.name + "'");
    return state_->words + (it - loops.begin());
}

Result<void> LoopGuards::watch(CUstream_st* stream, std::shared_ptr<Report const> report)
{
    cuda::Driver const& driver = device_->driver();
    int capturing = 0;
    uintptr_t number = 0;
    if (driver.cuStreamIsCapturing(stream, &capturing) != cuda::kSuccess || !capturing)
        return {};
    {
        std::lock_guard const lock(state_->mutex);
        if (std::ranges::none_of(state_->loops, [](auto const& l) { return l.isWatched; }) || !report ||
            !driver.cuLaunchHostFunc)
            return {};
        state_->report = std::move(report);
        if (state_->number == 0) {
            auto& all = Watched::all();
            std::lock_guard const lockAll(all.mutex);
            state_->number = ++all.last;
            all.states[state_->number] = state_;
        }
        number = state_->number;
    }
    TW_CUDA(driver, cuLaunchHostFunc(stream, tell, reinterpret_cast<void*>(number)));
    return {};
}

void LoopGuards::tell(void* number)
{
    std::shared_ptr<State> state;
    {
        auto& all = Watched::all();
        std::lock_guard const lock(all.mutex);
        auto const it = all.states.find(reinterpret_cast<uintptr_t>(number));
        state = it == all.states.end() ? nullptr : it->second.lock();
    }
    if (!state)
        return;
    std::vector<Error> errors;
    std::shared_ptr<Report const> report;
    {
        std::lock_guard const lock(state->mutex);
        errors = state->take(true);
        report = state->report;
    }
    for (Error const& e : errors)
        (*report)(e);
}

Result<void> LoopGuards::check()
{
    std::lock_guard const lock(state_->mutex);
    std::vector<Error> errors = state_->take(false);
    return errors.empty() ? Result<void>() : Result<void>(std::move(errors.front()));
}

} // namespace tw::runtime
