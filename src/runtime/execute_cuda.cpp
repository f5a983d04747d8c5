// SPDX-License-Identifier: Apache-2.0
// Blocks on a GPU. Kernels are put on the stream and nothing waits for them, unless the data decide: what depends on
// data-dependent sizes, conditions of loops and branches, and the host's shape arithmetic on such values.
#include "runtime/execute_cuda.h"

#include <algorithm>

#include "device/cuda/device.h"
#include "interp/interp.h"
#include "ir/op_def.h"
#include "ir/shape_values.h"
#include "runtime/control_flow_captured.h"
#include "runtime/loop_guards.h"

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
    class Regions;

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
            if (!step.host && step.regions.empty() && r.sizeBytes() > capacity)
                TW_TRY(values_.allocate(r));
        }
        return {};
    }

    Result<void> runStep(size_t index)
    {
        LoadedStep const& step = block_.steps[index];
        bool const exact = std::ranges::all_of(step.outputs, [&](int v) { return inst_.values[size_t(v)].exact; });
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
        if (std::ranges::all_of(inst_.stepOutputs, isAligned))
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

    Result<void> runRegions(size_t index);

    Instance& inst_;
    LoadedBlock const& block_;
    ExecuteArgs const& args_;
    std::shared_ptr<cuda::Device const> const& device_;
    cuda::Driver const& driver_;
    CUstream_st* stream_;
    CudaValues values_;
};

// The machine of control_flow.h.
class CudaRunner::Regions : public OpenRegions
{
public:
    using Place = HostDevice;

    Regions(CudaRunner& parent, size_t index)
        : OpenRegions(parent.inst_, index, parent.args_.arena), p_(parent), args_(parent.args_)
    {
        args_.observer = nullptr;
    }
    cuda::ConditionalNodes const& nodes() const { return *p_.device_->conditionalNodes(); }
    CUstream_st* stream() const { return static_cast<CUstream_st*>(args_.stream); }
    int32_t* guard(Error error, bool isWatched) const
    {
        return args_.guards ? args_.guards->guard(node(), std::move(error), isWatched) : nullptr;
    }
    bool isKnown(Place const& p) const { return p.host.data != nullptr; }
    void onStream(CUstream_st* stream)
    {
        args_.stream = stream;
        makeRunners();
    }
    // What regions read comes to the device; what the host has, it keeps.
    Result<void> gather()
    {
        for (StepInput const& in : step_.inputs) {
            if (in.value < 0) {
                inputs_.emplace_back();
                continue;
            }
            size_t const v = size_t(in.value);
            if (!in.onHost || !p_.inst_.hostRefs[v].data)
                TW_TRY(p_.values_.bringToDevice(v));
            inputs_.push_back(HostDevice{p_.inst_.refs[v], p_.inst_.hostRefs[v]});
        }
        return {};
    }

    std::vector<Place> const& inputs() const { return inputs_; }
    TensorRef& ref(Place& p) const { return p.device; }
    TensorRef const& ref(Place const& p) const { return p.device; }
    Place place(TensorRef const& t) const { return {t, {}}; }
    void move(Place& p, void* to) const { p.device.data = to; }
    bool mayStand(void const* memory, int64_t bytes) const
    {
        return cuda::addressOf(memory) % uint64_t(kPartAlignment) == 0 && bytes % kPartAlignment == 0;
    }
    Result<int64_t> number(size_t i)
    {
        TW_ASSIGN(Tensor const t, p_.values_.elementsOf(inputs_[i]));
        return t.ref().getInt(0);
    }
    Result<bool> isTrue(Place const& p)
    {
        TW_ASSIGN(Tensor const t, p_.values_.elementsOf(p));
        return t.ref().get(0) != 0;
    }

    Result<void> open(size_t r, std::vector<Extents> const& dims)
    {
        TW_ASSIGN(bool const isLate, openFor(r, dims));
        return isLate ? uploadContents(*late_[r], p_.device_) : Result<void>();
    }
    Result<void> reserve(RegionMemory const& memory)
    {
        TW_TRY(reserveBytes(memory.sizeBytes, [&](int64_t bytes) { return this->memory(bytes); }));
        args_.arena = workspace_;
        makeRunners();
        return {};
    }
    Result<void*> memory(int64_t bytes)
    {
        TensorRef t{DataType::kInt8, {bytes}, nullptr};
        TW_TRY(p_.values_.allocate(t));
        return t.data;
    }

    Result<void> run(size_t r, std::vector<Place> const& inputs, std::vector<TensorRef> const& outputs,
                     std::vector<Place>& results)
    {
        wanted_ = outputs;
        TW_TRY(runners_[r]->run(inputs, wanted_));
        TW_TRY(runners_[r]->values().deliver(wanted_));
        std::vector<HostDevice> const there = runners_[r]->values().results();
        std::vector<Tensor> kept; // the region's copies live until it runs again
        for (size_t i = 0; i < results.size(); ++i) {
            results[i] = HostDevice{wanted_[i], {}};
            if (!there[i].host.data)
                continue;
            kept.emplace_back(there[i].host.type, there[i].host.dims);
            std::memcpy(kept.back().data(), there[i].host.data, size_t(there[i].host.sizeBytes()));
            results[i].host = kept.back().ref();
        }
        kept_[1] = std::move(kept_[0]);
        kept_[0] = std::move(kept);
        return {};
    }
    Result<void> condition(std::vector<Place> const& inputs, std::byte* to)
    {
        TensorRef goesOn{DataType::kBool, {}, to};
        TW_TRY(runners_[0]->run(inputs, std::span(&goesOn, 1)));
        return runners_[0]->values().deliver(std::span(&goesOn, 1));
    }
    Result<bool> runCondition(std::vector<Place> const& inputs, std::byte* to)
    {
        TensorRef goesOn{DataType::kBool, {}, to};
        TW_TRY(runners_[0]->run(inputs, std::span(&goesOn, 1)));
        return isTrue(runners_[0]->values().results()[0]);
    }

    Result<TensorRef> output(size_t i, Extents const& dims)
    {
        size_t const v = size_t(step_.outputs[i]);
        TensorRef& r = p_.inst_.refs[v];
        int64_t const capacity = held(i).second;
        r.dims = dims;
        if (r.sizeBytes() > capacity)
            TW_TRY(p_.values_.allocate(r));
        p_.inst_.hostRefs[v].data = nullptr;
        p_.inst_.stale[v] = false;
        return r;
    }
    std::pair<void*, int64_t> held(size_t i) const
    {
        size_t const v = size_t(step_.outputs[i]);
        TensorRef const& r = p_.inst_.refs[v];
        if (!p_.inst_.values[v].known || !r.data)
            return {nullptr, -1};
        return {r.data, p_.inst_.shapeOf(int(v)).sizeBytes()};
    }
    Extents const& outputDims(size_t i) const { return p_.inst_.refs[size_t(step_.outputs[i])].dims; }
    Result<void> assign(size_t i, Place const& from)
    {
        size_t const v = size_t(step_.outputs[i]);
        if (!from.device.data)
            return p_.values_.assign(v, from);
        TensorRef const& r = p_.inst_.refs[v];
        if (r.data == from.device.data && r.dims == from.device.dims)
            return {};
        TW_ASSIGN(TensorRef const to, output(i, from.device.dims));
        return p_.values_.copyOnDevice(to.data, from.device.data, to.sizeBytes());
    }
    Result<void> copyRows(void* to, int64_t toPitch, void const* from, int64_t fromPitch, int64_t width, int64_t rows)
    {
        if (width == 0 || rows == 0 || to == from)
            return {};
        if (rows == 1 || (toPitch == width && fromPitch == width)) {
            TW_CUDA(p_.driver_,
                    cuMemcpyDtoDAsync(cuda::addressOf(to), cuda::addressOf(from), size_t(width * rows), stream()));
            return {};
        }
        cuda::CopyRows copy;
        copy.from = cuda::addressOf(from);
        copy.fromPitch = size_t(fromPitch);
        copy.to = cuda::addressOf(to);
        copy.toPitch = size_t(toPitch);
        copy.rowBytes = size_t(width);
        copy.rows = size_t(rows);
        TW_CUDA(p_.driver_, cuMemcpy2DAsync(&copy, stream()));
        return {};
    }
    Result<void> zeroRows(void* to, int64_t pitch, int64_t width, int64_t rows)
    {
        if (width == 0 || rows == 0)
            return {};
        TW_CUDA(p_.driver_,
                cuMemsetD2D8Async(cuda::addressOf(to), size_t(pitch), 0, size_t(width), size_t(rows), stream()));
        return {};
    }

private:
    void makeRunners()
    {
        for (size_t r = 0; r < 2; ++r)
            if (instances_[r])
                runners_[r] = std::make_unique<CudaRunner>(*instances_[r], args_);
    }
    CudaRunner& p_;
    ExecuteArgs args_; // of the regions
    std::vector<Place> inputs_;
    std::unique_ptr<CudaRunner> runners_[2];
    std::vector<TensorRef> wanted_;
    std::vector<Tensor> kept_[2]; // results of the last two runs that the host has
};

Result<void> CudaRunner::runRegions(size_t index)
{
    Regions regions(*this, index);
    TW_TRY(regions.gather());
    int capturing = 0;
    bool const isCaptured = isDecidedOnDevice(inst_, index) &&
                            driver_.cuStreamIsCapturing(stream_, &capturing) == cuda::kSuccess && capturing != 0 &&
                            device_->conditionalNodes();
    return isCaptured ? captureControlFlow(regions) : runControlFlow(regions);
}

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
        on.guards = instance.guards.get();
        CudaRunner runner(instance, on);
        TW_TRY(runner.run(inputs, args.outputs));
        TW_TRY(runner.values().deliver(args.outputs));
        return instance.guards ? instance.guards->watch(static_cast<CUstream_st*>(stream), args.late) : Result<void>();
    };
    bool const hasPlaces = std::ranges::all_of(args.outputs, [](TensorRef const& t) { return t.data != nullptr; });
    if (!instance.replayTried) {
        instance.replayTried = true;
        bool const hasNodes = hasDecisionsOnDevice(instance) && (*args.device)->conditionalNodes();
        if (hasNodes)
            TW_SET(instance.guards, LoopGuards::create(*args.device, g));
        if (isWorthCapture(instance, hasNodes))
            instance.replay = std::make_shared<CudaReplay>(*args.device);
    }
    if (instance.guards)
        if (auto before = instance.guards->check(); !before.ok())
            return std::move(before).error().in("in a run before this one");
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
