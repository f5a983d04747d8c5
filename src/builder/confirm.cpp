// SPDX-License-Identifier: Apache-2.0
#include "builder/confirm.h"

#include <algorithm>

#include "device/cuda/device.h"
#include "device/cuda/target.h"
#include "runtime/execute_cuda.h"
#include "tune/bench.h"
#include "tune/check.h"
#include "tune/contest.h"

namespace tw::builder {

namespace {

// What a sample takes at least: shorter ones all fall into one mood of the machine.
constexpr double kSampleMicroseconds = 2000;
constexpr int kMostRunsOfSample = 100;

// One attempt, ready to run.
struct Runnable
{
    int runs = 1; // of a sample
    std::unique_ptr<runtime::Instance> instance;
    Tensor arena;
    std::vector<Tensor> storage;
    std::vector<TensorRef> inputs, outputs;
};

Result<TensorRef> allocate(Runnable& r, ir::Value const& v, Extents const& dims)
{
    r.storage.emplace_back(v.type, dims, v.format);
    if (!r.storage.back().data())
        return failedAllocation("no memory to time the engine");
    return r.storage.back().ref();
}

Result<Runnable> prepare(Attempt const& attempt, std::vector<runtime::InputState> const& inputs)
{
    Runnable r;
    TW_ASSIGN(r.instance, runtime::resolve(*attempt.block, inputs));
    TW_TRY(runtime::placeInArena(*r.instance));
    r.arena = Tensor(DataType::kInt8, {r.instance->arenaBytes});
    if (!r.arena.data())
        return failedAllocation("no memory to time the engine");
    for (ir::Value const* v : attempt.graph->outputs) {
        runtime::ValueState const& s = r.instance->values[size_t(attempt.block->indexOf(v))];
        if (!s.exact)
            return unsupported("output '{}' has a size that depends on data", v->name);
        TW_ASSIGN(TensorRef memory, allocate(r, *v, s.dims));
        r.outputs.push_back(memory);
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].contents.data) {
            r.inputs.push_back(inputs[i].contents);
            continue;
        }
        ir::Value const& v = *attempt.graph->inputs[i];
        TW_ASSIGN(TensorRef memory, allocate(r, v, inputs[i].dims));
        // Integers are indices as a rule: 0 and 1 are in range almost everywhere.
        tune::fillRandom(memory, isFloating(v.type) ? ops::Domain{} : ops::Domain{0, 1, true, false}, i);
        r.inputs.push_back(memory);
    }
    return r;
}

} // namespace

Confirmation confirm(std::vector<Attempt> const& attempts, std::vector<runtime::InputState> const& inputs,
                     Workers& workers, double budgetMilliseconds, cuda::Target const* gpu)
{
    std::vector<Runnable> runnables;
    std::vector<std::unique_ptr<CudaRunnable>> onGpu;
    for (Attempt const& a : attempts) {
        if (gpu) {
            auto r = CudaRunnable::make(a, inputs, *gpu);
            if (!r.ok())
                return {};
            onGpu.push_back(std::move(*r));
            continue;
        }
        auto r = prepare(a, inputs);
        if (!r.ok())
            return {};
        runnables.push_back(std::move(*r));
    }
    bool failed = false;
    std::vector<tune::Contestant> contestants;
    for (auto& r : onGpu)
        contestants.push_back(tune::Contestant{[&] {
            Result<double> const us = r->microseconds();
            failed = failed || !us.ok();
            return tune::Sample{us.ok() ? *us : 0, false};
        }});
    for (Runnable& r : runnables)
        contestants.push_back(tune::Contestant{[&] {
            uint64_t state = 1;
            std::vector<TensorRef> outputs = r.outputs;
            runtime::ExecuteArgs args{r.arena.data(), r.inputs, outputs, &state, nullptr, &workers};
            double const begin = tune::microsecondsOf(workers);
            for (int i = 0; i < r.runs; ++i)
                failed = failed || !runtime::execute(*r.instance, args).ok();
            double const us = (tune::microsecondsOf(workers) - begin) / r.runs;
            r.runs = std::clamp(int(kSampleMicroseconds / std::max(us, 1.0)), 1, kMostRunsOfSample);
            return tune::Sample{us, false};
        }});
    tune::ContestRules rules;
    rules.budgetMicroseconds = budgetMilliseconds * 1000;
    tune::ContestResult const result = tune::hold(contestants, 1, rules);
    if (failed)
        return {};
    Confirmation c{result.winners[0], {}};
    for (tune::Standing const& s : result.standings)
        c.microseconds.push_back(s.microseconds);
    return c;
}

namespace {

constexpr int kFirstRuns = 3; // the second is captured as a graph, which the third uploads
constexpr double kBatchMicroseconds = 2000;
constexpr int kMostRuns = 50;

} // namespace

struct CudaRunnable::State
{
    std::shared_ptr<cuda::Device const> device;
    runtime::LoadedBlock* block = nullptr;
    std::unique_ptr<runtime::Instance> instance;
    std::vector<cuda::Buffer> memory;
    std::vector<TensorRef> inputs, outputs;
    void* arena = nullptr;
    std::unique_ptr<cuda::Stream> stream;
    std::unique_ptr<cuda::Timer> timer;
    int runs = 0; // between two events; 0: not known yet
    uint64_t random = 1;

    Result<void*> allocate(int64_t bytes)
    {
        TW_ASSIGN(cuda::Buffer b, cuda::Buffer::allocate(device, bytes));
        memory.push_back(std::move(b));
        return memory.back().data();
    }
    Result<void> takeInput(ir::Value const& v, runtime::InputState const& in, size_t i)
    {
        inputs.push_back(in.contents);
        if (in.contents.data)
            return {};
        Tensor const random_(v.type, in.dims, v.format);
        if (!random_.data())
            return failedAllocation("no memory to time the engine");
        // Integers are indices as a rule: 0 and 1 are in range almost everywhere.
        tune::fillRandom(random_.ref(), isFloating(v.type) ? ops::Domain{} : ops::Domain{0, 1, true, false}, i);
        TensorRef t = random_.ref();
        TW_ASSIGN(t.data, allocate(t.sizeBytes()));
        inputs.back() = t;
        return cuda::upload(device->driver(), t.data, random_.data(), size_t(t.sizeBytes()));
    }
    Result<void> takeOutput(ir::Value const& v)
    {
        runtime::ValueState const& s = instance->values[size_t(block->indexOf(&v))];
        if (v.host || !s.exact)
            return unsupported("output '{}' is on the host or has a size that depends on data", v.name);
        TensorRef t{v.type, s.dims, nullptr, v.format};
        TW_ASSIGN(t.data, allocate(t.sizeBytes()));
        outputs.push_back(t);
        return {};
    }
    Result<double> timeRuns(int count)
    {
        TW_TRY(timer->begin(stream->handle()));
        for (int i = 0; i < count; ++i) {
            std::vector<TensorRef> out = outputs;
            runtime::ExecuteArgs args{arena, inputs, out, &random};
            args.device = &device;
            args.stream = stream->handle();
            TW_TRY(runtime::execute(*instance, args));
        }
        TW_TRY(timer->end(stream->handle()));
        TW_ASSIGN(double const ms, timer->milliseconds());
        return ms * 1000 / count;
    }
};

CudaRunnable::CudaRunnable() : state_(std::make_unique<State>()) {}

CudaRunnable::~CudaRunnable()
{
    if (!state_->block)
        return;
    if (state_->stream)
        (void)state_->stream->synchronize().ok();
    state_->block->deviceConstants.clear(); // they go with this
    state_->block->constantMemory.clear();
}

Result<std::unique_ptr<CudaRunnable>>
CudaRunnable::make(Attempt const& attempt, std::vector<runtime::InputState> const& inputs, cuda::Target const& target)
{
    std::unique_ptr<CudaRunnable> r(new CudaRunnable);
    State& s = *r->state_;
    s.device = target.device;
    s.block = attempt.block.get();
    cuda::Current const current(*s.device);
    TW_TRY(runtime::uploadConstants(*s.block, nullptr, s.device));
    TW_ASSIGN(s.instance, runtime::resolve(*s.block, inputs));
    TW_TRY(runtime::placeInArena(*s.instance));
    TW_TRY(runtime::uploadContents(*s.instance, s.device));
    TW_ASSIGN(s.arena, s.allocate(s.instance->arenaBytes));
    for (ir::Value const* v : attempt.graph->outputs)
        TW_TRY(s.takeOutput(*v));
    for (size_t i = 0; i < inputs.size(); ++i)
        TW_TRY(s.takeInput(*attempt.graph->inputs[i], inputs[i], i));
    TW_ASSIGN(s.stream, cuda::Stream::create(s.device));
    TW_ASSIGN(s.timer, cuda::Timer::create(s.device));
    return r;
}

Result<double> CudaRunnable::microseconds()
{
    State& s = *state_;
    cuda::Current const current(*s.device);
    if (s.runs == 0) {
        double one = 0;
        for (int i = 0; i < kFirstRuns; ++i)
            TW_SET(one, s.timeRuns(1));
        s.runs = std::clamp(int(kBatchMicroseconds / std::max(one, 1.0)), 1, kMostRuns);
    }
    return s.timeRuns(s.runs);
}

} // namespace tw::builder
