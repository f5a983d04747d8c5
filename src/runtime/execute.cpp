// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "interp/interp.h"
#include "ir/op_def.h"
#include "runtime/alias.h"
#include "runtime/block.h"
#include "runtime/control_flow.h"
#include "runtime/execute_cuda.h"
#include "tactic/convert_format.h"

namespace tw::runtime {

namespace {

Error noMemory(ir::Node const& node)
{
    return failedAllocation("layer '" + node.name + "': no memory for a value of data-dependent size");
}

// Runs a block, once or again and again with other addresses of inputs and outputs.
class Runner
{
public:
    // `args`: state, workers and observer; the other members are not looked at.
    Runner(Instance& inst, void* arena, ExecuteArgs const& args)
        : inst_(inst), block_(*inst.block), arena_(arena), args_(args)
    {
        ir::Graph const& g = *block_.graph;
        for (ir::Value const* v : g.inputs)
            inputs_.push_back(size_t(block_.indexOf(v)));
        for (ir::Value const* v : g.outputs)
            outputs_.push_back(size_t(block_.indexOf(v)));
        isExact_ = std::ranges::all_of(inst.values, [](ValueState const& s) { return s.exact; });
    }

    Result<void> run(std::span<TensorRef const> inputs, std::span<TensorRef> outputs)
    {
        inst_.heap.clear();
        if (!isBound_ || !isExact_)
            bindFixed();
        bindGiven(inputs, outputs);
        for (size_t i = 0; i < block_.steps.size(); ++i) {
            if (inst_.skipped[i])
                continue;
            LoadedStep const& step = block_.steps[i];
            if (args_.observer)
                args_.observer->before(step);
            TW_TRY(runStep(i));
            if (args_.observer)
                args_.observer->after(step);
        }
        deliver(outputs);
        return {};
    }

private:
    class Regions;

    // Addresses that every run has: constants, contents, arena slots.
    void bindFixed()
    {
        for (size_t v = 0; v < inst_.values.size(); ++v) {
            ValueState const& s = inst_.values[v];
            TensorRef& r = inst_.refs[v];
            r = inst_.shapeOf(int(v));
            if (block_.values[v]->isConstant())
                r.data = const_cast<void*>(block_.values[v]->constant->data->data());
            else if (s.hasContents)
                r.data = s.contents.data();
            else if (s.offset >= 0)
                r.data = at(arena_, s.offset);
        }
        isBound_ = true;
        parts_.clear();
        for (size_t v = 0; v < inst_.values.size(); ++v)
            if (Storage const s = storageOf(inst_, int(v)); s.root != int(v))
                parts_.push_back({v, size_t(s.root), s.offset});
    }
    // And those of one run: inputs, the caller's outputs, what is a part of something.
    void bindGiven(std::span<TensorRef const> inputs, std::span<TensorRef const> outputs)
    {
        for (size_t i = 0; i < outputs_.size(); ++i)
            if (size_t const v = outputs_[i]; inst_.values[v].external && block_.values[v]->producer && outputs[i].data)
                inst_.refs[v].data = outputs[i].data;
        for (size_t i = 0; i < inputs_.size(); ++i)
            inst_.refs[inputs_[i]] = inputs[i];
        for (Part const& p : parts_)
            inst_.refs[p.value].data = at(inst_.refs[p.root].data, p.offset);
    }

    void collect(LoadedStep const& step)
    {
        inst_.stepInputs.clear();
        for (StepInput const& in : step.inputs)
            inst_.stepInputs.push_back(in.value >= 0 ? inst_.refs[size_t(in.value)] : TensorRef{});
        inst_.stepOutputs.clear();
        for (int v : step.outputs)
            inst_.stepOutputs.push_back(inst_.refs[size_t(v)]);
    }

    // Bytes that a value's place has.
    int64_t capacityOf(size_t v) const
    {
        return inst_.values[v].known && inst_.refs[v].data ? inst_.shapeOf(int(v)).sizeBytes() : -1;
    }

    // Sizes that resolve() could not settle: the inputs are there now. Regions find memory for their results later.
    Result<void> settle(LoadedStep const& step)
    {
        collect(step);
        TW_ASSIGN(auto shapes, interp::inferConcrete(*step.node, inst_.stepInputs));
        for (size_t i = 0; i < step.outputs.size(); ++i) {
            size_t const v = size_t(step.outputs[i]);
            TensorRef& r = inst_.refs[v];
            int64_t const capacity = capacityOf(v);
            r.dims = shapes[i].dims;
            if (r.sizeBytes() > capacity && step.regions.empty()) {
                inst_.heap.emplace_back(r.type, r.dims, r.format);
                r.data = inst_.heap.back().data();
                if (!r.data)
                    return noMemory(*step.node);
            }
        }
        return {};
    }

    Result<void> runStep(size_t index)
    {
        LoadedStep const& step = block_.steps[index];
        bool const exact =
            isExact_ || std::ranges::all_of(step.outputs, [&](int v) { return inst_.values[size_t(v)].exact; });
        if (!exact)
            TW_TRY(settle(step));
        if (!step.regions.empty())
            return runRegions(index);
        collect(step);
        void* workspace = nullptr;
        Tensor late;
        if (inst_.workspaceOffset[index] >= 0) {
            workspace = at(arena_, inst_.workspaceOffset[index]);
        } else if (int64_t const bytes = exact ? 0 : step.kernel->workspaceBytes(inst_.stepInputs, inst_.stepOutputs)) {
            late = Tensor(DataType::kInt8, {bytes});
            workspace = late.data();
            if (!workspace)
                return noMemory(*step.node);
        }
        ops::RunArgs run{inst_.stepInputs, inst_.stepOutputs, workspace, args_.randomState, args_.workers};
        run.prepared = inst_.prepared[index].get();
        run.kept = &inst_.kept[index];
        run.stream = args_.stream;
        std::shared_ptr<ops::Prepared const> latePrepared;
        if (!exact) {
            TW_ASSIGN(latePrepared, step.kernel->prepare(inst_.stepInputs, inst_.stepOutputs));
            run.prepared = latePrepared.get();
        }
        TW_TRY(step.kernel->run(run));
        if (!exact)
            for (size_t i = 0; i < step.outputs.size(); ++i)
                inst_.refs[size_t(step.outputs[i])].dims = inst_.stepOutputs[i].dims;
        return {};
    }

    Result<void> runRegions(size_t index);

    void deliver(std::span<TensorRef> outputs)
    {
        for (size_t i = 0; i < outputs_.size(); ++i) {
            TensorRef const& r = inst_.refs[outputs_[i]];
            TensorRef& out = outputs[i];
            out.type = r.type;
            out.dims = r.dims;
            out.format = r.format;
            if (!out.data)
                out.data = r.data;
            else if (out.data != r.data && r.sizeBytes() > 0)
                std::memmove(out.data, r.data, size_t(r.sizeBytes()));
            ops::zeroGaps(out); // what clients find there
        }
    }

    // A value that lies `offset` bytes into another one.
    struct Part
    {
        size_t value, root;
        int64_t offset;
    };

    Instance& inst_;
    LoadedBlock const& block_;
    void* const arena_;
    ExecuteArgs const& args_;
    std::vector<size_t> inputs_, outputs_; // dense indices
    std::vector<Part> parts_;
    bool isExact_ = false, isBound_ = false;
};

// The machine of control_flow.h.
class Runner::Regions : public OpenRegions
{
public:
    using Place = TensorRef;

    Regions(Runner& parent, size_t index)
        : OpenRegions(parent.inst_, index, parent.arena_), p_(parent), args_(parent.args_)
    {
        args_.observer = nullptr;
        for (StepInput const& in : step_.inputs)
            inputs_.push_back(in.value >= 0 ? p_.inst_.refs[size_t(in.value)] : TensorRef{});
    }

    std::vector<Place> const& inputs() const { return inputs_; }
    TensorRef& ref(Place& p) const { return p; }
    TensorRef const& ref(Place const& p) const { return p; }
    Place place(TensorRef const& t) const { return t; }
    void move(Place& p, void* to) const { p.data = to; }
    bool mayStand(void const*, int64_t) const { return true; }
    Result<int64_t> number(size_t i) const { return inputs_[i].getInt(0); }
    Result<bool> isTrue(Place const& p) const { return p.get(0) != 0; }

    Result<void> open(size_t r, std::vector<Extents> const& dims)
    {
        TW_TRY(openFor(r, dims));
        return {};
    }
    Result<void> reserve(RegionMemory const& memory)
    {
        TW_TRY(reserveBytes(memory.sizeBytes, [&](int64_t bytes) { return this->memory(bytes); }));
        for (size_t r = 0; r < 2; ++r)
            if (instances_[r])
                runners_[r].emplace(*instances_[r], workspace_, args_);
        return {};
    }
    Result<void*> memory(int64_t bytes)
    {
        memory_.emplace_back(DataType::kInt8, Extents{bytes});
        if (!memory_.back().data())
            return failedAllocation("no memory for values of its regions");
        return memory_.back().data();
    }

    Result<void> run(size_t r, std::vector<Place> const& inputs, std::vector<TensorRef> const& outputs,
                     std::vector<Place>& results)
    {
        results = outputs;
        return runners_[r]->run(inputs, results);
    }
    Result<bool> runCondition(std::vector<Place> const& inputs, std::byte* to)
    {
        TensorRef goesOn;
        goesOn.data = to;
        TW_TRY(runners_[0]->run(inputs, std::span(&goesOn, 1)));
        return goesOn.get(0) != 0;
    }

    Result<TensorRef> output(size_t i, Extents const& dims)
    {
        size_t const v = size_t(step_.outputs[i]);
        TensorRef& r = p_.inst_.refs[v];
        int64_t const capacity = p_.capacityOf(v);
        r.dims = dims;
        if (r.sizeBytes() <= capacity)
            return r;
        p_.inst_.heap.emplace_back(r.type, r.dims);
        r.data = p_.inst_.heap.back().data();
        if (!r.data)
            return noMemory(node());
        return r;
    }
    std::pair<void*, int64_t> held(size_t i) const
    {
        size_t const v = size_t(step_.outputs[i]);
        int64_t const capacity = p_.capacityOf(v);
        return {capacity > 0 ? p_.inst_.refs[v].data : nullptr, std::max<int64_t>(capacity, 0)};
    }
    Extents const& outputDims(size_t i) const { return p_.inst_.refs[size_t(step_.outputs[i])].dims; }
    Result<void> assign(size_t i, Place const& from)
    {
        TensorRef const& r = p_.inst_.refs[size_t(step_.outputs[i])];
        if (r.data == from.data && r.dims == from.dims)
            return {};
        TW_ASSIGN(TensorRef const to, output(i, from.dims));
        return copyRows(to.data, 0, from.data, 0, from.sizeBytes(), 1);
    }
    Result<void> copyRows(void* to, int64_t toPitch, void const* from, int64_t fromPitch, int64_t width,
                          int64_t rows) const
    {
        for (int64_t row = 0; row < rows && width > 0; ++row)
            std::memmove(at(to, row * toPitch), static_cast<std::byte const*>(from) + row * fromPitch, size_t(width));
        return {};
    }
    Result<void> zeroRows(void* to, int64_t pitch, int64_t width, int64_t rows) const
    {
        for (int64_t row = 0; row < rows && width > 0; ++row)
            std::memset(at(to, row * pitch), 0, size_t(width));
        return {};
    }

private:
    Runner& p_;
    ExecuteArgs args_;
    std::vector<Place> inputs_;
    std::optional<Runner> runners_[2];
    std::vector<Tensor> memory_;
};

Result<void> Runner::runRegions(size_t index)
{
    Regions regions(*this, index);
    if (auto done = runControlFlow(regions); !done.ok())
        return std::move(done).error().in("layer '" + block_.steps[index].node->name + "'");
    return {};
}

} // namespace

Result<void> execute(Instance& instance, ExecuteArgs& args)
{
    if (args.device)
        return executeCuda(instance, args);
    return Runner(instance, args.arena, args).run(args.inputs, args.outputs);
}

} // namespace tw::runtime
