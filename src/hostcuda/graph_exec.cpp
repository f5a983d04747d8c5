// SPDX-License-Identifier: Apache-2.0
// Executable graphs: a list of steps in a valid order, run in the thread that launches.
#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <utility>

#include "state.h"

namespace tw::hostcuda {

// A step keeps its closure alive, so the graph that it came from may be destroyed.
struct Step
{
    cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    WorkPtr work;
    std::vector<std::size_t> deps; // places in the list; empty for steps inside child graphs
};

using Steps = std::vector<Step>;

struct Exec
{
    unsigned long long flags = 0;
    std::recursive_mutex order; // held while it runs: CUDA runs an executable graph once at a time
    std::atomic<std::thread::id> runner{};
    std::mutex stepsMutex;
    std::shared_ptr<Steps const> steps;

    std::shared_ptr<Steps const> current()
    {
        std::lock_guard const lock(stepsMutex);
        return steps;
    }
};

namespace {

HandleTable<Exec>& execs()
{
    return state().execs;
}

std::shared_ptr<Steps const> makeSteps(cudaGraph_t handle)
{
    State& s = state();
    std::shared_ptr<Graph> const graph = required(s.graphs.find(handle));
    auto steps = std::make_shared<Steps>();
    std::lock_guard const lock(s.structure);
    for (std::shared_ptr<Capture> const& capture : s.captures)
        failIf(capture->graph == graph); // still being captured
    std::vector<Node const*> order;
    failIf(!flatten(*graph, order)); // a cycle
    std::unordered_map<Node const*, std::size_t> place;
    for (Node const* node : order) {
        Step step{node->type, node->work, {}};
        for (Node const* dep : node->deps)
            if (auto const it = place.find(dep); it != place.end())
                step.deps.push_back(it->second);
        std::ranges::sort(step.deps);
        place[node] = steps->size();
        steps->push_back(std::move(step));
    }
    return steps;
}

void instantiate(cudaGraphExec_t* handle, cudaGraph_t graph, unsigned long long flags)
{
    failIf(handle == nullptr);
    constexpr unsigned long long kKnown = cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUpload |
                                          cudaGraphInstantiateFlagUseNodePriority;
    failIf((flags & cudaGraphInstantiateFlagDeviceLaunch) != 0,
           cudaErrorNotSupported); // there is no device code to launch it from
    failIf((flags & ~kKnown) != 0);
    auto exec = std::make_shared<Exec>();
    exec->flags = flags;
    exec->steps = makeSteps(graph);
    *handle = execs().add<cudaGraphExec_t>(std::move(exec));
}

class ExecTurn
{
public:
    explicit ExecTurn(Exec& exec) : exec_(exec), lock_(exec.order) { exec_.runner = std::this_thread::get_id(); }
    ~ExecTurn() { exec_.runner = std::thread::id{}; }
    ExecTurn(ExecTurn const&) = delete;
    ExecTurn& operator=(ExecTurn const&) = delete;

private:
    Exec& exec_;
    std::lock_guard<std::recursive_mutex> lock_;
};

void launch(cudaGraphExec_t handle, cudaStream_t stream)
{
    failIf(HostFunctionScope::active(), cudaErrorNotPermitted);
    std::shared_ptr<Exec> const exec = required(execs().find(handle));
    failIf(exec->runner.load() == std::this_thread::get_id(),
           cudaErrorIllegalState); // launched by one of its own steps
    // In a capture the launch is a node that runs the steps as they are now.
    submit(stream, cudaGraphNodeTypeGraph, [exec, steps = exec->current()] {
        if (exec->runner.load() == std::this_thread::get_id())
            return;
        ExecTurn const turn(*exec);
        for (Step const& step : *steps)
            if (step.work)
                (*step.work)();
    });
}

void update(cudaGraphExec_t handle, cudaGraph_t graph, cudaGraphExecUpdateResult& result)
{
    result = cudaGraphExecUpdateError;
    std::shared_ptr<Exec> const exec = required(execs().find(handle));
    std::shared_ptr<Steps const> steps = makeSteps(graph);
    auto const old = exec->current();
    result = cudaGraphExecUpdateErrorTopologyChanged;
    failIf(old->size() != steps->size(), cudaErrorGraphExecUpdateFailure);
    for (std::size_t i = 0; i < steps->size(); ++i) {
        failIf((*old)[i].deps != (*steps)[i].deps, cudaErrorGraphExecUpdateFailure);
        if ((*old)[i].type != (*steps)[i].type) {
            result = cudaGraphExecUpdateErrorNodeTypeChanged;
            fail(cudaErrorGraphExecUpdateFailure);
        }
    }
    {
        std::lock_guard const lock(exec->stepsMutex);
        exec->steps = std::move(steps);
    }
    result = cudaGraphExecUpdateSuccess;
}

} // namespace

void forgetExecs()
{
    execs().removeAll();
}

} // namespace tw::hostcuda

using namespace tw::hostcuda;

#if TW_CUDART_MAJOR == 11
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphNode_t* errorNode, char* log,
                                 size_t logBytes)
{
    return call([&] {
        if (errorNode != nullptr)
            *errorNode = nullptr;
        if (log != nullptr && logBytes > 0)
            log[0] = '\0';
        instantiate(exec, graph, 0);
    });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphNode_t* errorNode,
                                cudaGraphExecUpdateResult* result)
{
    return call([&] {
        cudaGraphExecUpdateResult outcome = cudaGraphExecUpdateError;
        cudaError_t const error = errorOf([&] { update(exec, graph, outcome); });
        if (errorNode != nullptr)
            *errorNode = nullptr;
        if (result != nullptr)
            *result = outcome;
        return error;
    });
}
#else
TW_CALL(cudaGraphInstantiate, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
        instantiate(exec, graph, flags))

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphInstantiateParams* params)
{
    return call([&] {
        failIf(params == nullptr);
        params->errNode_out = nullptr;
        cudaError_t const error = errorOf([&] { instantiate(exec, graph, params->flags); });
        params->result_out = error == cudaSuccess ? cudaGraphInstantiateSuccess : cudaGraphInstantiateError;
        return error;
    });
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags)
{
    return call([&] {
        std::shared_ptr<Exec> const object = execs().find(exec);
        failIf(!object || flags == nullptr);
        *flags = object->flags;
    });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info)
{
    return call([&] {
        cudaGraphExecUpdateResult outcome = cudaGraphExecUpdateError;
        cudaError_t const error = errorOf([&] { update(exec, graph, outcome); });
        if (info != nullptr)
            *info = cudaGraphExecUpdateResultInfo{outcome, nullptr, nullptr};
        return error;
    });
}
#endif

TW_CALL(cudaGraphInstantiateWithFlags, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
        instantiate(exec, graph, flags))

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    return call([&] {
        required(execs().find(exec));
        findStream(stream); // nothing to move
    });
}

TW_CALL(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), launch(exec, stream))
TW_CALL(cudaGraphExecDestroy, (cudaGraphExec_t exec), required(execs().remove(exec)))
