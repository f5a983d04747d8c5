// SPDX-License-Identifier: Apache-2.0
#include "builder/confirm.h"

#include <algorithm>

#include "builder/confirm_cuda.h"
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
        return Error{ErrorCode::kFailedAllocation, "no memory to time the engine"};
    return r.storage.back().ref();
}

Result<Runnable> prepare(Attempt const& attempt, std::vector<runtime::InputState> const& inputs)
{
    Runnable r;
    TW_ASSIGN(r.instance, runtime::resolve(*attempt.block, inputs));
    TW_TRY(runtime::placeInArena(*r.instance));
    r.arena = Tensor(DataType::kInt8, {r.instance->arenaBytes});
    if (!r.arena.data())
        return Error{ErrorCode::kFailedAllocation, "no memory to time the engine"};
    for (ir::Value const* v : attempt.graph->outputs) {
        runtime::ValueState const& s = r.instance->values[size_t(attempt.block->indexOf(v))];
        if (!s.exact)
            return unsupported("output '" + v->name + "' has a size that depends on data");
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
            double const begin = tune::nowMicroseconds();
            for (int i = 0; i < r.runs; ++i)
                failed = failed || !runtime::execute(*r.instance, args).ok();
            double const us = (tune::nowMicroseconds() - begin) / r.runs;
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

} // namespace tw::builder
