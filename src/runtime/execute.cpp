// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "interp/interp.h"
#include "ir/op_def.h"
#include "runtime/block.h"
#include "runtime/execute_cuda.h"
#include "tactic/convert_format.h"

namespace tw::runtime {

namespace {

Error noMemory(ir::Node const& node)
{
    return Error{ErrorCode::kFailedAllocation,
                 "layer '" + node.name + "': no memory for a value of data-dependent size"};
}

class Runner
{
public:
    Runner(Instance& inst, ExecuteArgs& args) : inst_(inst), block_(*inst.block), args_(args) {}

    Result<void> run()
    {
        inst_.heap.clear();
        bindFixed();
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
        return deliver();
    }

private:
    // Addresses that do not depend on what runs: inputs, constants, contents, arena slots, the caller's outputs.
    void bindFixed()
    {
        ir::Graph const& g = *block_.graph;
        for (size_t v = 0; v < inst_.values.size(); ++v) {
            ValueState const& s = inst_.values[v];
            TensorRef& r = inst_.refs[v];
            r = inst_.shapeOf(int(v));
            if (block_.values[v]->isConstant())
                r.data = const_cast<void*>(block_.values[v]->constant->data->data());
            else if (s.hasContents)
                r.data = s.contents.data();
            else if (s.offset >= 0)
                r.data = at(args_.arena, s.offset);
        }
        for (size_t i = 0; i < g.outputs.size(); ++i) {
            size_t const v = size_t(block_.indexOf(g.outputs[i]));
            if (inst_.values[v].external && g.outputs[i]->producer && args_.outputs[i].data)
                inst_.refs[v].data = args_.outputs[i].data;
        }
        for (size_t i = 0; i < g.inputs.size(); ++i)
            inst_.refs[size_t(block_.indexOf(g.inputs[i]))] = args_.inputs[i];
        for (size_t v = 0; v < inst_.values.size(); ++v)
            bindAlias(v);
    }
    void bindAlias(size_t v)
    {
        int root = int(v);
        int64_t offset = 0;
        while (inst_.values[size_t(root)].root != root) {
            offset += inst_.values[size_t(root)].rootOffset;
            root = inst_.values[size_t(root)].root;
        }
        if (root != int(v))
            inst_.refs[v].data = at(inst_.refs[size_t(root)].data, offset);
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

    // Sizes that resolve() could not settle: the inputs are there now.
    Result<void> settle(LoadedStep const& step)
    {
        collect(step);
        TW_ASSIGN(auto shapes, interp::inferConcrete(*step.node, inst_.stepInputs));
        for (size_t i = 0; i < step.outputs.size(); ++i) {
            size_t const v = size_t(step.outputs[i]);
            ValueState const& s = inst_.values[v];
            TensorRef& r = inst_.refs[v];
            int64_t const capacity = s.known && r.data ? inst_.shapeOf(int(v)).sizeBytes() : -1;
            r.dims = shapes[i].dims;
            if (r.sizeBytes() > capacity) {
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
            std::all_of(step.outputs.begin(), step.outputs.end(), [&](int v) { return inst_.values[size_t(v)].exact; });
        if (!exact)
            TW_TRY(settle(step));
        if (!step.regions.empty())
            return runRegions(index);
        collect(step);
        void* workspace = nullptr;
        Tensor late;
        if (inst_.workspaceOffset[index] >= 0) {
            workspace = at(args_.arena, inst_.workspaceOffset[index]);
        } else if (int64_t const bytes = exact ? 0 : step.kernel->workspaceBytes(inst_.stepInputs, inst_.stepOutputs)) {
            late = Tensor(DataType::kInt8, {bytes});
            workspace = late.data();
            if (!workspace)
                return noMemory(*step.node);
        }
        ops::RunArgs run{inst_.stepInputs, inst_.stepOutputs, workspace, args_.randomState, args_.workers};
        run.prepared = inst_.prepared[index].get();
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

    // Runs region r on `inputs`; its outputs stay in its arena (or on its heap) until it runs again.
    Result<std::vector<TensorRef>> runRegion(size_t index, size_t r, std::vector<TensorRef> const& inputs)
    {
        LoadedStep const& step = block_.steps[index];
        Instance* child = r < inst_.regions[index].size() ? inst_.regions[index][r].get() : nullptr;
        bool fits = child != nullptr;
        for (size_t i = 0; fits && i < inputs.size(); ++i) {
            ValueState const& s = child->values[size_t(child->block->indexOf(child->block->graph->inputs[i]))];
            fits = s.exact && s.dims == inputs[i].dims;
        }
        void* arena =
            fits && inst_.workspaceOffset[index] >= 0 ? at(args_.arena, inst_.workspaceOffset[index]) : nullptr;
        if (!fits) { // shapes that were not known when the parent was resolved
            std::vector<InputState> states;
            for (TensorRef const& t : inputs)
                states.push_back(InputState{t.dims, true, {}});
            TW_ASSIGN(late_[r], resolve(*step.regions[r], states));
            child = late_[r].get();
            TW_TRY(placeInArena(*child, {.outputsInArena = true}));
            lateArena_[r] = Tensor(DataType::kInt8, {child->arenaBytes});
            arena = lateArena_[r].data();
            if (!arena)
                return noMemory(*step.node);
        }
        std::vector<TensorRef> outputs(child->block->graph->outputs.size());
        ExecuteArgs args{arena, inputs, outputs, args_.randomState, nullptr, args_.workers};
        TW_TRY(execute(*child, args));
        return outputs;
    }

    void assign(int to, TensorRef const& from)
    {
        TensorRef& r = inst_.refs[size_t(to)];
        ValueState const& s = inst_.values[size_t(to)];
        r.dims = from.dims;
        int64_t const capacity = s.known && r.data ? inst_.shapeOf(to).sizeBytes() : -1;
        if (r.sizeBytes() > capacity) {
            inst_.heap.emplace_back(r.type, r.dims);
            r.data = inst_.heap.back().data();
        }
        if (r.data && from.sizeBytes() > 0 && r.data != from.data)
            std::memmove(r.data, from.data, size_t(from.sizeBytes()));
    }

    Result<void> runRegions(size_t index)
    {
        LoadedStep const& step = block_.steps[index];
        ir::Node const& node = *step.node;
        collect(step);
        std::vector<TensorRef> in = inst_.stepInputs;
        late_.clear();
        late_.resize(step.regions.size());
        lateArena_.clear();
        lateArena_.resize(step.regions.size());
        if (node.op->regions == ir::RegionKind::kBranch) {
            bool const taken = in[0].get(0) != 0;
            in.erase(in.begin());
            TW_ASSIGN(auto out, runRegion(index, taken ? 0 : 1, in));
            for (size_t i = 0; i < out.size(); ++i)
                assign(step.outputs[i], out[i]);
            return {};
        }
        // while_loop: outputs hold the carried values.
        size_t const carried = step.outputs.size();
        for (size_t i = 0; i < carried; ++i) {
            assign(step.outputs[i], in[i]);
            in[i] = inst_.refs[size_t(step.outputs[i])];
        }
        for (int64_t trip = 0;; ++trip) {
            TW_ASSIGN(auto condition, runRegion(index, 0, in));
            if (condition[0].get(0) == 0)
                return {};
            if (trip >= interp::Options().maxTrips)
                return Error{ErrorCode::kFailedExecution, "layer '" + node.name + "': the loop did not end after " +
                                                              std::to_string(trip) + " iterations"};
            TW_ASSIGN(auto next, runRegion(index, 1, in));
            // A result may be (a part of) another carried value: set it aside before that one is overwritten.
            std::vector<Tensor> aside;
            for (size_t i = 0; i < carried; ++i) {
                auto const* begin = static_cast<std::byte const*>(next[i].data);
                for (size_t j = 0; j < i; ++j) {
                    auto const* other = static_cast<std::byte const*>(in[j].data);
                    if (begin + next[i].sizeBytes() <= other || other + in[j].sizeBytes() <= begin)
                        continue;
                    aside.emplace_back(next[i].type, next[i].dims);
                    std::memcpy(aside.back().data(), next[i].data, size_t(next[i].sizeBytes()));
                    next[i].data = aside.back().data();
                    break;
                }
            }
            for (size_t i = 0; i < carried; ++i) {
                assign(step.outputs[i], next[i]);
                in[i] = inst_.refs[size_t(step.outputs[i])];
            }
        }
    }

    Result<void> deliver()
    {
        ir::Graph const& g = *block_.graph;
        for (size_t i = 0; i < g.outputs.size(); ++i) {
            TensorRef const& r = inst_.refs[size_t(block_.indexOf(g.outputs[i]))];
            TensorRef& out = args_.outputs[i];
            out.type = r.type;
            out.dims = r.dims;
            out.format = r.format;
            if (!out.data)
                out.data = r.data;
            else if (out.data != r.data && r.sizeBytes() > 0)
                std::memmove(out.data, r.data, size_t(r.sizeBytes()));
            ops::zeroGaps(out); // what clients find there
        }
        return {};
    }

    Instance& inst_;
    LoadedBlock const& block_;
    ExecuteArgs& args_;
    std::vector<std::unique_ptr<Instance>> late_;
    std::vector<Tensor> lateArena_;
};

} // namespace

Result<void> execute(Instance& instance, ExecuteArgs& args)
{
    if (args.device)
        return executeCuda(instance, args);
    return Runner(instance, args).run();
}

} // namespace tw::runtime
