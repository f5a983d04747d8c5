// SPDX-License-Identifier: Apache-2.0
// Blocks on a GPU. Kernels are put on the stream and nothing waits for them, unless the data decide: what depends on
// data-dependent sizes, conditions of loops and branches, and the host's shape arithmetic on such values.
#include "runtime/execute_cuda.h"

#include <algorithm>

#include "device/cuda/device.h"
#include "interp/interp.h"
#include "ir/op_def.h"
#include "ir/shape_values.h"
#include "runtime/replay_cuda.h"
#include "runtime/values_cuda.h"

namespace tw::runtime {

namespace {

class CudaRunner
{
public:
    CudaRunner(Instance& inst, ExecuteArgs const& args)
        : inst_(inst), block_(*inst.block), args_(args), device_(*args.device), driver_(args.device->get()->driver()),
          stream_(static_cast<CUstream_st*>(args.stream)), values_(inst, args)
    {}

    // `inputs` in the graph's order; `outputs`: memory to write to, null data: it stays in the arena.
    Result<void> run(std::vector<HostDevice> const& inputs, std::span<TensorRef> outputs)
    {
        inst_.heap.clear();
        TW_TRY(freeHeap());
        values_.bind(inputs, outputs);
        for (size_t i = 0; i < block_.steps.size(); ++i) {
            if (inst_.skipped[i])
                continue;
            LoadedStep const& step = block_.steps[i];
            if (args_.observer)
                args_.observer->before(step);
            if (auto done = runStep(i); !done.ok())
                return std::move(done).error().in("layer '" + step.node->name + "'");
            if (args_.observer)
                args_.observer->after(step);
        }
        return {};
    }

    CudaValues& values() { return values_; }

private:
    // The driver waits for what still uses memory before it frees it; the client's allocator may hand it out at once.
    Result<void> freeHeap()
    {
        int capturing = 0;
        if (inst_.deviceHeap.empty())
            return {};
        if (device_->allocator()) {
            if (driver_.cuStreamIsCapturing(stream_, &capturing) == cuda::kSuccess && capturing)
                return {}; // nothing may be waited for: the next run frees it
            TW_CUDA(driver_, cuCtxSynchronize());
        }
        inst_.deviceHeap.clear();
        return {};
    }

    // Inputs of a kernel: shape tensors on the host, the others on the device (all on the host for the host's steps).
    Result<void> collect(LoadedStep const& step)
    {
        inst_.stepInputs.clear();
        for (StepInput const& in : step.inputs) {
            size_t const v = size_t(in.value);
            if (in.value < 0) {
                inst_.stepInputs.emplace_back();
            } else if (in.onHost) {
                TW_TRY(values_.bringToHost(v));
                inst_.stepInputs.push_back(inst_.hostRefs[v]);
            } else {
                // Constants that are nowhere are packed by every kernel that reads them.
                if (inst_.refs[v].data || !block_.values[v]->isConstant())
                    TW_TRY(values_.bringToDevice(v));
                inst_.stepInputs.push_back(inst_.refs[v]);
            }
        }
        return {};
    }

    // Sizes that resolve() could not settle: the inputs are there now.
    Result<void> settle(LoadedStep const& step)
    {
        ir::Node const& node = *step.node;
        std::vector<TensorRef> in;
        for (size_t i = 0; i < node.inputs.size(); ++i) {
            if (!node.inputs[i]) {
                in.emplace_back();
                continue;
            }
            size_t const v = size_t(step.inputs[i].value);
            if (ir::isShapeInput(node, i))
                TW_TRY(values_.bringToHost(v));
            bool const isOnHost = inst_.hostRefs[v].data != nullptr;
            in.push_back(isOnHost ? inst_.hostRefs[v] : inst_.refs[v]);
            if (!isOnHost)
                in.back().data = nullptr;
        }
        TW_ASSIGN(auto shapes, interp::inferConcrete(node, in));
        for (size_t i = 0; i < step.outputs.size(); ++i) {
            size_t const v = size_t(step.outputs[i]);
            TensorRef& r = inst_.refs[v];
            int64_t const capacity = inst_.values[v].known && r.data ? inst_.shapeOf(int(v)).sizeBytes() : -1;
            r.dims = shapes[i].dims;
            if (!step.host && r.sizeBytes() > capacity)
                TW_TRY(values_.allocate(r));
        }
        return {};
    }

    Result<void> runStep(size_t index)
    {
        LoadedStep const& step = block_.steps[index];
        bool const exact =
            std::all_of(step.outputs.begin(), step.outputs.end(), [&](int v) { return inst_.values[size_t(v)].exact; });
        if (!exact)
            TW_TRY(settle(step));
        if (!step.regions.empty())
            return runRegions(index);
        TW_TRY(collect(step));
        if (step.host)
            return runOnHost(step);
        inst_.stepOutputs.clear();
        for (int v : step.outputs)
            inst_.stepOutputs.push_back(inst_.refs[size_t(v)]);
        void* workspace = nullptr;
        cuda::Buffer late;
        if (inst_.workspaceOffset[index] >= 0) {
            workspace = at(args_.arena, inst_.workspaceOffset[index]);
        } else if (int64_t const bytes = exact ? 0 : step.kernel->workspaceBytes(inst_.stepInputs, inst_.stepOutputs)) {
            TW_ASSIGN(late, cuda::Buffer::allocate(device_, bytes));
            workspace = late.data();
        }
        ops::RunArgs run{inst_.stepInputs, inst_.stepOutputs, workspace, args_.randomState};
        run.stream = args_.stream;
        TW_ASSIGN(std::vector<void*> const places, align(step));
        run.prepared = inst_.prepared[index].get();
        run.kept = &inst_.kept[index];
        std::shared_ptr<ops::Prepared const> latePrepared;
        if (!exact) {
            TW_ASSIGN(latePrepared, step.kernel->prepare(inst_.stepInputs, inst_.stepOutputs));
            run.prepared = latePrepared.get();
        }
        TW_TRY(step.kernel->run(run));
        for (size_t i = 0; i < places.size(); ++i)
            TW_TRY(values_.copyOnDevice(places[i], inst_.stepOutputs[i].data, inst_.stepOutputs[i].sizeBytes()));
        for (size_t i = 0; i < step.outputs.size(); ++i) {
            size_t const v = size_t(step.outputs[i]);
            inst_.stale[v] = false;
            if (!exact) {
                inst_.refs[v].dims = inst_.stepOutputs[i].dims;
                inst_.hostRefs[v].data = nullptr;
            }
        }
        return {};
    }

    // The caller's memory may begin anywhere: kernels that want more work on copies. Where the outputs belong then;
    // empty: nothing was moved there.
    Result<std::vector<void*>> align(LoadedStep const& step)
    {
        uint64_t const alignment = uint64_t(step.kernel->alignment());
        auto isAligned = [&](TensorRef const& t) { return cuda::addressOf(t.data) % alignment == 0; };
        for (size_t i = 0; i < inst_.stepInputs.size(); ++i) {
            TensorRef& t = inst_.stepInputs[i];
            if (isAligned(t) || step.inputs[i].onHost)
                continue;
            TensorRef copy = t;
            TW_TRY(values_.allocate(copy));
            TW_TRY(values_.copyOnDevice(copy.data, t.data, t.sizeBytes()));
            t.data = copy.data;
        }
        std::vector<void*> places;
        if (std::all_of(inst_.stepOutputs.begin(), inst_.stepOutputs.end(), isAligned))
            return places;
        for (TensorRef& t : inst_.stepOutputs) {
            places.push_back(t.data);
            if (!isAligned(t))
                TW_TRY(values_.allocate(t));
        }
        return places;
    }

    // Shape arithmetic on values that only the run knows.
    Result<void> runOnHost(LoadedStep const& step)
    {
        inst_.stepOutputs.clear();
        for (int v : step.outputs) {
            TensorRef const& r = inst_.refs[size_t(v)];
            inst_.heap.emplace_back(r.type, r.dims);
            inst_.stepOutputs.push_back(inst_.heap.back().ref());
        }
        Tensor workspace(DataType::kInt8, {step.kernel->workspaceBytes(inst_.stepInputs, inst_.stepOutputs)});
        TW_ASSIGN(auto prepared, step.kernel->prepare(inst_.stepInputs, inst_.stepOutputs));
        ops::RunArgs run{inst_.stepInputs, inst_.stepOutputs, workspace.data(), args_.randomState};
        run.prepared = prepared.get();
        TW_TRY(step.kernel->run(run));
        for (size_t i = 0; i < step.outputs.size(); ++i) {
            size_t const v = size_t(step.outputs[i]);
            inst_.hostRefs[v] = inst_.stepOutputs[i];
            inst_.refs[v].dims = inst_.stepOutputs[i].dims;
            inst_.stale[v] = true;
        }
        return {};
    }

    // Runs region r; its outputs stay in its arena (or on its heap) until it runs again.
    Result<std::vector<HostDevice>> runRegion(size_t index, size_t r, std::vector<HostDevice> const& inputs)
    {
        LoadedStep const& step = block_.steps[index];
        Instance* child = r < inst_.regions[index].size() ? inst_.regions[index][r].get() : nullptr;
        auto dimsOf = [](HostDevice const& p) -> Extents const& { return p.device.data ? p.device.dims : p.host.dims; };
        bool fits = child != nullptr;
        for (size_t i = 0; fits && i < inputs.size(); ++i) {
            ValueState const& s = child->values[size_t(child->block->indexOf(child->block->graph->inputs[i]))];
            fits = s.exact && s.dims == dimsOf(inputs[i]);
        }
        void* arena =
            fits && inst_.workspaceOffset[index] >= 0 ? at(args_.arena, inst_.workspaceOffset[index]) : nullptr;
        if (!fits) { // shapes that were not known when the parent was resolved
            std::vector<InputState> states;
            for (HostDevice const& p : inputs)
                states.push_back(InputState{dimsOf(p), true, {}});
            TW_ASSIGN(late_[r], resolve(*step.regions[r], states));
            child = late_[r].get();
            TW_TRY(placeInArena(*child, {.outputsInArena = true}));
            TW_TRY(uploadContents(*child, device_));
            TW_ASSIGN(lateArena_[r], cuda::Buffer::allocate(device_, child->arenaBytes));
            arena = lateArena_[r].data();
        }
        ExecuteArgs args = args_;
        args.arena = arena;
        args.observer = nullptr;
        CudaRunner runner(*child, args);
        TW_TRY(runner.run(inputs, {}));
        return runner.values().results();
    }

    Result<bool> isTrue(HostDevice const& p)
    {
        if (p.host.data)
            return p.host.get(0) != 0;
        Tensor one(p.device.type, p.device.dims);
        TW_CUDA(driver_,
                cuMemcpyDtoHAsync(one.data(), cuda::addressOf(p.device.data), size_t(one.ref().sizeBytes()), stream_));
        TW_CUDA(driver_, cuStreamSynchronize(stream_));
        return one.ref().get(0) != 0;
    }

    Result<void> runRegions(size_t index)
    {
        LoadedStep const& step = block_.steps[index];
        std::vector<HostDevice> in;
        for (StepInput const& input : step.inputs) {
            size_t const v = size_t(input.value);
            TW_TRY(values_.bringToDevice(v));
            in.push_back(HostDevice{inst_.refs[v], inst_.hostRefs[v]});
        }
        late_.clear();
        late_.resize(step.regions.size());
        lateArena_.clear();
        lateArena_.resize(step.regions.size());
        if (step.node->op->regions == ir::RegionKind::kBranch) {
            TW_ASSIGN(bool const taken, isTrue(in[0]));
            in.erase(in.begin());
            TW_ASSIGN(auto out, runRegion(index, taken ? 0 : 1, in));
            for (size_t i = 0; i < out.size(); ++i)
                TW_TRY(values_.assign(size_t(step.outputs[i]), out[i]));
            return {};
        }
        // while_loop: outputs hold the carried values.
        size_t const carried = step.outputs.size();
        auto take = [&](std::vector<HostDevice> const& from) -> Result<void> {
            for (size_t i = 0; i < carried; ++i) {
                TW_TRY(values_.assign(size_t(step.outputs[i]), from[i]));
                in[i] = HostDevice{inst_.refs[size_t(step.outputs[i])], {}};
            }
            return {};
        };
        TW_TRY(take(std::vector<HostDevice>(in)));
        for (int64_t trip = 0;; ++trip) {
            TW_ASSIGN(auto condition, runRegion(index, 0, in));
            TW_ASSIGN(bool const goesOn, isTrue(condition[0]));
            if (!goesOn)
                return {};
            if (trip >= interp::Options().maxTrips)
                return Error{ErrorCode::kFailedExecution,
                             "the loop did not end after " + std::to_string(trip) + " iterations"};
            TW_ASSIGN(auto next, runRegion(index, 1, in));
            // A result may be (a part of) another carried value: set it aside before that one is overwritten.
            std::vector<cuda::Buffer> aside;
            for (size_t i = 0; i < carried; ++i) {
                auto const* begin = static_cast<std::byte const*>(next[i].device.data);
                for (size_t j = 0; begin && j < i; ++j) {
                    auto const* other = static_cast<std::byte const*>(in[j].device.data);
                    if (begin + next[i].device.sizeBytes() <= other || other + in[j].device.sizeBytes() <= begin)
                        continue;
                    TW_ASSIGN(cuda::Buffer copy, cuda::Buffer::allocate(device_, next[i].device.sizeBytes()));
                    TW_TRY(values_.copyOnDevice(copy.data(), begin, next[i].device.sizeBytes()));
                    next[i].device.data = copy.data();
                    aside.push_back(std::move(copy));
                    break;
                }
            }
            TW_TRY(take(next));
        }
    }

    Instance& inst_;
    LoadedBlock const& block_;
    ExecuteArgs const& args_;
    std::shared_ptr<cuda::Device const> const& device_;
    cuda::Driver const& driver_;
    CUstream_st* stream_;
    CudaValues values_;
    std::vector<std::unique_ptr<Instance>> late_;
    std::vector<cuda::Buffer> lateArena_;
};

// So that no kernel works on copies that live no longer than the run.
bool isAligned(ir::Graph const& g, ExecuteArgs const& args)
{
    constexpr uint64_t kMostAlignment = 16;
    auto fits = [](std::vector<ir::Value*> const& values, std::span<TensorRef const> list) {
        for (size_t i = 0; i < list.size(); ++i)
            if (!values[i]->host && cuda::addressOf(list[i].data) % kMostAlignment != 0)
                return false;
        return true;
    };
    return fits(g.inputs, args.inputs) && fits(g.outputs, args.outputs);
}

} // namespace

Result<void> executeCuda(Instance& instance, ExecuteArgs& args)
{
    cuda::Current const current(**args.device);
    std::vector<HostDevice> inputs;
    ir::Graph const& g = *instance.block->graph;
    for (size_t i = 0; i < g.inputs.size(); ++i)
        inputs.push_back(g.inputs[i]->host ? HostDevice{{}, args.inputs[i]} : HostDevice{args.inputs[i], {}});
    auto runOn = [&](void* stream) -> Result<void> {
        ExecuteArgs on = args;
        on.stream = stream;
        CudaRunner runner(instance, on);
        TW_TRY(runner.run(inputs, args.outputs));
        return runner.values().deliver(args.outputs);
    };
    bool const hasPlaces =
        std::all_of(args.outputs.begin(), args.outputs.end(), [](TensorRef const& t) { return t.data != nullptr; });
    if (!instance.replayTried) {
        instance.replayTried = true;
        if (CudaReplay::fits(instance))
            instance.replay = std::make_shared<CudaReplay>(*args.device);
    }
    if (!instance.replay || args.observer || !hasPlaces || !isAligned(g, args))
        return runOn(args.stream);
    TW_TRY(instance.replay->execute(args, runOn));
    for (size_t i = 0; i < args.outputs.size(); ++i) {
        TensorRef const shape = instance.shapeOf(instance.block->indexOf(g.outputs[i]));
        args.outputs[i].type = shape.type;
        args.outputs[i].dims = shape.dims;
    }
    return {};
}

} // namespace tw::runtime
