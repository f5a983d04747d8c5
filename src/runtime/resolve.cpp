// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>

#include "interp/interp.h"
#include "ir/op_def.h"
#include "ir/shape_values.h"
#include "plan/memory.h"
#include "runtime/alias.h"
#include "runtime/block.h"
#include "runtime/bounds.h"
#include "runtime/execute_cuda.h"
#include "runtime/regions.h"
#include "runtime/updates.h"

namespace tw::runtime {

namespace {

// Shape tensors are small; anything larger is computed as data.
constexpr int64_t kMaxHostElements = 4096;

TensorRef constantRef(ir::Value const& v)
{
    TensorRef t{v.type, ir::extentsOf(v.shape), nullptr};
    if (int64_t(v.constant->data->sizeBytes()) >= t.sizeBytes()) // else a kernel has packed it and it is gone
        t.data = const_cast<void*>(v.constant->data->data());
    return t;
}

} // namespace

std::unique_ptr<LoadedBlock> outlineBlock(ir::Graph const& graph)
{
    auto block = std::make_unique<LoadedBlock>();
    block->graph = &graph;
    // In an order that a copy of the graph has, too: engines of other weights give values the same indices.
    auto add = [&](ir::Value const* v) {
        block->valueIndex[v] = int(block->values.size());
        block->values.push_back(v);
    };
    for (auto const& v : graph.values())
        if (!v->producer)
            add(v.get());
    for (auto const& n : graph.nodes)
        std::ranges::for_each(n->outputs, add);
    auto const onHost = ir::hostValues(graph);
    for (auto const& n : graph.nodes) {
        LoadedStep step;
        step.node = n.get();
        step.host = n->regions.empty() &&
                    std::ranges::all_of(n->outputs, [&](ir::Value const* v) { return onHost.contains(v); });
        for (size_t i = 0; i < n->inputs.size(); ++i)
            step.inputs.push_back(n->inputs[i]
                                      ? StepInput{block->indexOf(n->inputs[i]), step.host || ir::isShapeInput(*n, i)}
                                      : StepInput{});
        for (ir::Value const* v : n->outputs)
            step.outputs.push_back(block->indexOf(v));
        for (auto const& r : n->regions)
            step.regions.push_back(outlineBlock(*r));
        block->steps.push_back(std::move(step));
    }
    return block;
}

namespace {

// What is known of a node's inputs while shapes are resolved.
struct NodeInputs
{
    std::vector<TensorRef> refs; // null data where contents are not known
    bool known = true, exact = true, haveContents = true;
};

NodeInputs gather(Instance const& inst, ir::Node const& node)
{
    NodeInputs in;
    for (ir::Value const* v : node.inputs) {
        if (!v) {
            in.refs.emplace_back();
            continue;
        }
        ValueState const& s = inst.values[size_t(inst.block->indexOf(v))];
        if (v->isConstant()) {
            in.refs.push_back(constantRef(*v));
            continue;
        }
        TensorRef r{v->type, s.dims, s.hasContents ? s.contents.data() : nullptr};
        in.known = in.known && s.known;
        in.exact = in.exact && s.exact;
        in.haveContents = in.haveContents && s.hasContents;
        in.refs.push_back(r);
    }
    return in;
}

// Whether the elements that infer() needs are there.
bool haveShapeInputs(ir::Node const& node, NodeInputs const& in)
{
    for (size_t i = 0; i < in.refs.size(); ++i)
        if (ir::isShapeInput(node, i) && node.inputs[i] && !in.refs[i].data && in.refs[i].count() > 0)
            return false;
    return true;
}

// Volumes beyond this are not believed.
constexpr int64_t kMaxBound = int64_t(1) << 40;

Extents boundOf(ir::Value const& v, Extents const& known, ir::SymbolTable const& symbols)
{
    Extents bound = known;
    int64_t volume = 1;
    for (int d = 0; d < known.rank && d < v.rank(); ++d) {
        bound[d] = std::max(known[d], v.shape[size_t(d)].range(symbols).hi);
        volume = ir::mulSat(volume, std::max<int64_t>(bound[d], 1));
    }
    return volume > kMaxBound ? known : bound;
}

// A step of which nothing can be said in these shapes.
void boundStep(Instance& inst, size_t index, Instance const& known)
{
    LoadedStep const& step = inst.block->steps[index];
    for (int v : step.outputs) {
        ValueState const& other = known.values[size_t(v)];
        inst.values[size_t(v)].known = other.known;
        if (other.known)
            inst.values[size_t(v)].dims =
                boundOf(*inst.block->values[size_t(v)], other.dims, inst.block->graph->symbols);
    }
}

// Inputs of a region whose shapes only the run decides: as large as they can be, where that is known.
Extents standIn(ir::Value const& v, ir::SymbolTable const& symbols)
{
    Extents dims;
    for (ir::Dim const& d : v.shape)
        dims.push(d.isConst() ? d.value() : d.range(symbols).lo);
    dims = boundOf(v, dims, symbols);
    for (int d = 0; d < dims.rank; ++d)
        dims[d] = std::max<int64_t>(dims[d], 1);
    return dims;
}

InputState stateOf(Instance const& inst, ir::Value const* v)
{
    if (!v)
        return {};
    if (v->isConstant())
        return {ir::extentsOf(v->shape), true, constantRef(*v)};
    ValueState const& s = inst.values[size_t(inst.block->indexOf(v))];
    if (!s.known)
        return {standIn(*v, inst.block->graph->symbols), false, TensorRef{}};
    return {s.dims, s.exact, s.hasContents ? s.contents.ref() : TensorRef{}};
}

// `known`: see resolve().
Result<void> resolveRegions(Instance& inst, size_t index, Instance const* known)
{
    LoadedStep const& step = inst.block->steps[index];
    auto states = mapped<InputState>(step.node->inputs, [&](ir::Value const* v) { return stateOf(inst, v); });
    for (size_t r = 0; r < step.regions.size(); ++r) {
        std::vector<InputState> inputs = regionInputs(*step.node, states);
        Instance const* const knownChild =
            known && r < known->regions[index].size() ? known->regions[index][r].get() : nullptr;
        auto child = resolve(*step.regions[r], inputs, knownChild);
        if (!child.ok()) { // what this region refuses matters only if it runs
            for (InputState& input : inputs)
                input = {input.dims, false, TensorRef{}};
            child = resolve(*step.regions[r], inputs, knownChild);
        }
        if (!child.ok())
            return std::move(child).error();
        inst.regions[index].push_back(std::move(*child));
    }
    return {};
}

Result<void> resolveOutputs(Instance& inst, size_t index, Instance const* known)
{
    LoadedStep const& step = inst.block->steps[index];
    ir::Node const& node = *step.node;
    NodeInputs in = gather(inst, node);
    auto state = [&](ir::Value const* v) -> ValueState& { return inst.values[size_t(inst.block->indexOf(v))]; };
    auto bound = [&]() -> Result<void> {
        if (known)
            boundStep(inst, index, *known);
        return {};
    };
    if (!in.known || !haveShapeInputs(node, in)) // settled while running
        return bound();
    auto shapes = interp::inferConcrete(node, in.refs);
    if (!shapes.ok() && !known && in.exact)
        return std::move(shapes).error();
    if (!shapes.ok())
        return bound();
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        ValueState& s = state(node.outputs[i]);
        s.dims = (*shapes)[i].dims;
        s.known = !(*shapes)[i].unlimited;
        s.exact = in.exact && !(*shapes)[i].bounded;
    }
    bool const dimsOnly = node.op->readsDimsOnly;
    bool const small = std::ranges::all_of(*shapes, [](auto const& s) { return s.dims.volume() <= kMaxHostElements; });
    if (step.host && small && in.exact && (in.haveContents || dimsOnly)) {
        auto out = interp::runNode(node, in.refs);
        if (!out.ok()) {
            if (known)
                return bound();
            return std::move(out).error();
        }
        for (size_t i = 0; i < out->size(); ++i) {
            ValueState& s = state(node.outputs[i]);
            s.contents = std::move((*out)[i]);
            s.dims = s.contents.ref().dims; // where data decides them, infer() had a bound alone
            s.hasContents = s.exact = true;
        }
        inst.skipped[index] = true;
    }
    return {};
}

Result<void> resolveStep(Instance& inst, size_t index, Instance const* known)
{
    TW_TRY(resolveOutputs(inst, index, known));
    TW_TRY(resolveRegions(inst, index, known));
    boundOutputs(inst, index);
    return {};
}

} // namespace

Result<std::unique_ptr<Instance>> resolve(LoadedBlock const& block, std::vector<InputState> const& inputs,
                                          Instance const* known)
{
    auto inst = std::make_unique<Instance>();
    inst->block = &block;
    inst->values.resize(block.values.size());
    inst->skipped.assign(block.steps.size(), false);
    inst->workspaceOffset.assign(block.steps.size(), -1);
    inst->prepared.resize(block.steps.size());
    inst->kept.resize(block.steps.size());
    inst->regions.resize(block.steps.size());
    for (size_t i = 0; i < block.values.size(); ++i) {
        ValueState& s = inst->values[i];
        s.root = int(i);
        if (block.values[i]->isConstant()) {
            s.dims = ir::extentsOf(block.values[i]->shape);
            s.known = s.exact = s.external = true;
        }
    }
    ir::Graph const& g = *block.graph;
    if (inputs.size() != g.inputs.size())
        return internalError("block '{}' got another number of inputs than it has", g.name);
    for (size_t i = 0; i < inputs.size(); ++i) {
        ValueState& s = inst->values[size_t(block.indexOf(g.inputs[i]))];
        s.dims = inputs[i].dims;
        s.known = s.external = true;
        s.exact = inputs[i].exact;
        if (inputs[i].contents.data && inputs[i].contents.count() <= kMaxHostElements) {
            s.contents = Tensor(inputs[i].contents.type, inputs[i].dims);
            std::memcpy(s.contents.data(), inputs[i].contents.data, size_t(inputs[i].contents.sizeBytes()));
            s.hasContents = true;
        }
    }
    for (size_t i = 0; i < block.steps.size(); ++i)
        TW_TRY(resolveStep(*inst, i, known));
    return inst;
}

void moveTo(LoadedBlock const& block, Instance& instance)
{
    instance.block = &block;
    for (size_t i = 0; i < instance.regions.size(); ++i)
        for (size_t r = 0; r < instance.regions[i].size(); ++r)
            if (instance.regions[i][r])
                moveTo(*block.steps[i].regions[r], *instance.regions[i][r]);
}

TensorRef Instance::shapeOf(int value) const
{
    ValueState const& s = values[size_t(value)];
    ir::Value const& v = *block->values[size_t(value)];
    return TensorRef{v.type, s.dims, nullptr, v.format, s.stride};
}

namespace {

// Whether kernels see the same tensors.
bool sameShapes(Instance const& a, Instance const& b)
{
    for (size_t v = 0; v < a.values.size(); ++v) {
        ValueState const &x = a.values[v], &y = b.values[v];
        if (x.known != y.known || !(x.dims == y.dims) || x.stride != y.stride)
            return false;
    }
    return a.block == b.block && a.skipped == b.skipped;
}

// A step's tensors, without their addresses.
struct StepTensors
{
    std::vector<TensorRef> in, out;
};

// Those of a step whose kernel runs; none when a size is not known.
std::optional<StepTensors> tensorsOf(Instance const& inst, size_t step)
{
    LoadedStep const& s = inst.block->steps[step];
    if (!s.kernel || inst.skipped[step])
        return std::nullopt;
    StepTensors t;
    for (ir::Value const* v : s.node->inputs) {
        int const i = v ? inst.block->indexOf(v) : -1;
        if (v && !inst.values[size_t(i)].known)
            return std::nullopt;
        t.in.push_back(v ? inst.shapeOf(i) : TensorRef{});
    }
    for (ir::Value const* v : s.node->outputs) {
        int const i = inst.block->indexOf(v);
        if (!inst.values[size_t(i)].known)
            return std::nullopt;
        t.out.push_back(inst.shapeOf(i));
    }
    return t;
}

// What takes part of the arena: a value's storage, or a step's workspace.
using Key = std::pair<int, int>; // value and -1, or -1 and step
struct Place
{
    Key key;
    plan::Buffer buffer;
};

template <class Inst>
auto& offsetOf(Inst& inst, Key key)
{
    return key.first >= 0 ? inst.values[size_t(key.first)].offset : inst.workspaceOffset[size_t(key.second)];
}

// Of an instance whose aliases are realized and whose regions are placed.
std::vector<Place> placesOf(Instance const& inst)
{
    LoadedBlock const& block = *inst.block;
    int const steps = int(block.steps.size());
    std::vector<int> first(inst.values.size(), -1), last(inst.values.size(), -1);
    auto touch = [&](ir::Value const* v, int step) {
        int const r = storageOf(inst, block.indexOf(v)).root;
        if (first[size_t(r)] < 0)
            first[size_t(r)] = step;
        last[size_t(r)] = std::max(last[size_t(r)], step);
    };
    for (int i = 0; i < steps; ++i) {
        for (ir::Value const* v : block.steps[size_t(i)].node->inputs)
            if (v)
                touch(v, i);
        for (ir::Value const* v : block.steps[size_t(i)].node->outputs)
            touch(v, i);
    }
    for (ir::Value const* v : block.graph->outputs)
        touch(v, steps);
    std::vector<Place> places;
    for (size_t v = 0; v < inst.values.size(); ++v) {
        ValueState const& s = inst.values[v];
        if (s.root == int(v) && !s.external && !s.hasContents && s.known && first[v] >= 0)
            places.push_back({{int(v), -1}, {first[v], last[v], inst.shapeOf(int(v)).sizeBytes()}});
    }
    for (int i = 0; i < steps; ++i) {
        LoadedStep const& step = block.steps[size_t(i)];
        int64_t workspace = 0;
        auto regions = mapped<Instance const*>(inst.regions[size_t(i)], [&](auto const& child) { return child.get(); });
        if (!regions.empty())
            workspace = regionMemory(*step.node, regions, tripsOfTurn(inst, size_t(i), regions)).sizeBytes;
        if (auto const t = tensorsOf(inst, size_t(i)))
            workspace = step.kernel->workspaceBytes(t->in, t->out);
        if (workspace > 0)
            places.push_back({{-1, i}, {i, i, workspace}});
    }
    return places;
}

// A step whose kernel can run with these tensors.
struct Ready
{
    size_t step;
    StepTensors tensors;
    std::optional<Error> error;
};

} // namespace

Result<void> placeInArena(Instance& inst, Placing const& placing)
{
    LoadedBlock const& block = *inst.block;
    ir::Graph const& g = *block.graph;
    int const steps = int(block.steps.size());
    for (size_t i = 0; i < g.outputs.size(); ++i) {
        ValueState& s = inst.values[size_t(block.indexOf(g.outputs[i]))];
        if (g.outputs[i]->producer && s.exact && !s.hasContents)
            s.external = true;
    }
    realizeAliases(inst);
    realizeUpdates(inst, placing.carried);

    for (ValueState& s : inst.values)
        s.offset = -1;
    bool const share = placing.like && sameShapes(inst, *placing.like);
    if (share)
        inst.prepared = placing.like->prepared;
    std::vector<Ready> ready;
    for (int i = 0; i < steps; ++i) {
        for (size_t r = 0; r < inst.regions[size_t(i)].size(); ++r) {
            auto& child = inst.regions[size_t(i)][r];
            Instance const* const like = share ? placing.like->regions[size_t(i)][r].get() : nullptr;
            TW_TRY(placeInArena(*child, {like, placing.workers, carriedBy(*block.steps[size_t(i)].node, r)}));
            inst.scratchBytes = std::max(inst.scratchBytes, child->scratchBytes);
        }
        if (auto t = tensorsOf(inst, size_t(i)); t && !share)
            ready.push_back({size_t(i), std::move(*t), std::nullopt});
    }
    realizeFirstValues(inst);
    std::vector<Place> const places = placesOf(inst);
    std::vector<plan::Buffer> buffers;
    for (Place const& p : places) {
        buffers.push_back(p.buffer);
        if (p.key.second >= 0 && block.steps[size_t(p.key.second)].kernel)
            inst.scratchBytes = std::max(inst.scratchBytes, p.buffer.sizeBytes);
    }
    placing.workers->run(int64_t(ready.size()), [&](int64_t i, int) {
        Ready& r = ready[size_t(i)];
        auto prepared = block.steps[r.step].kernel->prepare(r.tensors.in, r.tensors.out);
        if (prepared.ok())
            inst.prepared[r.step] = std::move(*prepared);
        else
            r.error = prepared.error();
    });
    for (Ready const& r : ready)
        if (r.error)
            return *r.error;
    plan::MemoryPlan const p = plan::planMemory(buffers);
    for (size_t i = 0; i < places.size(); ++i)
        offsetOf(inst, places[i].key) = p.offsets[i];
    inst.arenaBytes = p.arenaBytes;
    inst.arenaLowerBound = p.lowerBound;
    inst.refs.resize(inst.values.size());
    size_t most = 0;
    for (LoadedStep const& s : block.steps)
        most = std::max({most, s.node->inputs.size(), s.node->outputs.size()});
    inst.stepInputs.reserve(most);
    inst.stepOutputs.reserve(most);
    return {};
}

bool placeLike(Instance& inst, Instance const& larger)
{
    for (size_t i = 0; i < inst.regions.size(); ++i)
        for (size_t r = 0; r < inst.regions[i].size() && r < larger.regions[i].size(); ++r)
            if (inst.regions[i][r]->arenaBytes > larger.regions[i][r]->arenaBytes)
                placeLike(*inst.regions[i][r], *larger.regions[i][r]);
    std::map<Key, plan::Buffer> theirs;
    for (Place const& p : placesOf(larger))
        theirs[p.key] = p.buffer;
    std::vector<Place> const places = placesOf(inst);
    for (Place const& p : places) {
        auto const it = theirs.find(p.key);
        if (p.buffer.sizeBytes > 0 &&
            (it == theirs.end() || it->second.sizeBytes < p.buffer.sizeBytes ||
             it->second.firstStep > p.buffer.firstStep || it->second.lastStep < p.buffer.lastStep))
            return false;
    }
    for (Place const& p : places)
        offsetOf(inst, p.key) = p.buffer.sizeBytes > 0 ? offsetOf(larger, p.key) : 0;
    inst.arenaBytes = larger.arenaBytes;
    return true;
}

} // namespace tw::runtime
