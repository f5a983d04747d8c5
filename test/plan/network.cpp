// SPDX-License-Identifier: Apache-2.0
#include "plan/network.h"

#include <cstdio>
#include <fstream>

#include "builder/build.h"
#include "interp/interp.h"
#include "ops/activation/op.h"
#include "ops/convolution/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/pooling/op.h"
#include "ops/shuffle/op.h"
#include "ops/softmax/op.h"
#include "plan/memory.h"
#include "runtime/context.h"
#include "tactic/convert_format.h"
#include "tactic/registry.h"

namespace tw::test {

namespace {

// Any CPU: the fingerprint says nothing of the machine.
constexpr char const* kFingerprint = "test";

ir::Value* constant(ir::Graph& g, std::string const& name, Extents const& dims, int salt)
{
    Tensor t(DataType::kFloat, dims);
    for (int64_t i = 0; i < t.count(); ++i)
        t.ref().set(i, double((i * 37 + salt * 11) % 64 - 32) / 64);
    return g.addConstant(name, DataType::kFloat, dims, t.data());
}

template <class A>
ir::Value* add(ir::Graph& g, ir::OpDef const& op, A attrs, std::vector<ir::Value*> inputs, std::string const& name)
{
    auto node = g.addNode(op, std::make_unique<A>(std::move(attrs)), std::move(inputs), name);
    return node.ok() ? (*node)->outputs[0] : nullptr;
}

} // namespace

plan::Contents contentsOf(ir::Graph const& graph)
{
    plan::Contents c;
    c.engineName = graph.name;
    c.graph = graph.clone();
    for (ir::Value const* v : c.graph->inputs)
        c.io.push_back(plan::IoTensor{v->name, true});
    for (ir::Value const* v : c.graph->outputs)
        c.io.push_back(plan::IoTensor{v->name, false});
    c.profiles.emplace_back();
    return c;
}

Result<void> buildContents(plan::Contents& contents, tune::TimingCache* cache, builder::IoFormats io)
{
    builder::Options options;
    options.fingerprint = kFingerprint;
    options.tune.heuristicOnly = cache == nullptr;
    options.tune.cache = cache;
    options.io = std::move(io);
    options.refittable = contents.refittable;
    return builder::build(contents, options);
}

plan::Contents smallNetwork()
{
    ir::Graph g;
    g.name = "small";
    g.symbols["N"] = ir::Symbol{ir::Range{1, 4}, false};
    ir::Value* x = g.addInput("x", DataType::kFloat, {ir::Dim::symbol("N"), 1, 8, 8});
    auto conv = ops::convolution::Attrs::plain(2);
    conv.prePadding = conv.postPadding = {1, 1};
    x = add(g, ops::convolution::def(), conv,
            {x, constant(g, "conv.w", {4, 1, 3, 3}, 1), constant(g, "conv.b", {4}, 2)}, "conv");
    x = add(g, ops::activation::def(), ops::activation::Attrs(ops::activation::Kind::kRelu), {x}, "relu");
    auto pool = ops::pooling::Attrs::plain(ops::pooling::Kind::kMax, {2, 2});
    pool.strides = {2, 2};
    x = add(g, ops::pooling::def(), pool, {x}, "pool");
    ops::shuffle::Attrs flat;
    flat.hasReshape = true;
    flat.reshape = {0, -1};
    x = add(g, ops::shuffle::def(), flat, {x}, "flatten");
    x = add(g, ops::matrix_multiply::def(), ops::matrix_multiply::Attrs(), {x, constant(g, "fc.w", {64, 10}, 3)}, "fc");
    ops::softmax::Attrs softmax;
    softmax.axis = 1;
    x = add(g, ops::softmax::def(), softmax, {x}, "softmax");
    x->name = "y";
    g.outputs = {x};
    plan::Contents c = contentsOf(g);
    plan::ProfileRange r;
    r.hasShape = true;
    r.min = {1, 1, 8, 8};
    r.opt = {2, 1, 8, 8};
    r.max = {4, 1, 8, 8};
    c.profiles[0].inputs["x"] = r;
    c.notes["made by"] = "test_plan";
    return c;
}

plan::Contents refittableNetwork()
{
    plan::Contents c = smallNetwork();
    c.refittable = true;
    for (auto const& v : c.graph->values())
        if (v->isConstant()) {
            auto named = std::make_shared<ir::Constant>(*v->constant);
            named->layer = v->name.substr(0, v->name.find('.'));
            named->role = v->name.ends_with(".b") ? ir::WeightsRole::kBias : ir::WeightsRole::kKernel;
            v->constant = std::move(named);
        }
    return c;
}

Tensor smallNetworkInput(int64_t batch)
{
    Tensor t(DataType::kFloat, {batch, 1, 8, 8});
    for (int64_t i = 0; i < t.count(); ++i)
        t.ref().set(i, double((i * 29 + 7) % 50 - 25) / 32);
    return t;
}

Result<std::shared_ptr<runtime::Engine>> loadEngine(plan::Contents contents)
{
    return runtime::Engine::load(std::move(contents), runtime::LoadOptions{{}, kFingerprint, nullptr});
}

Result<std::vector<Tensor>> runEngine(std::shared_ptr<runtime::Engine const> engine,
                                      std::vector<TensorRef> const& inputs, int profile)
{
    runtime::Context context(engine);
    context.setProfile(profile);
    for (size_t i = 0; i < inputs.size(); ++i) {
        TW_TRY(context.setInputShape(int(i), inputs[i].dims));
        TW_TRY(context.setInputContents(int(i), inputs[i]));
    }
    TW_ASSIGN(auto instance, context.instance());
    Tensor arena(DataType::kInt8, {instance->arenaBytes});
    if (!arena.data())
        return Error{ErrorCode::kFailedAllocation, "no memory for the arena"};
    // As clients bring them: in the engine's formats.
    std::vector<TensorRef> given = inputs;
    std::vector<Tensor> packed;
    for (size_t i = 0; i < inputs.size(); ++i)
        if (Format const f = engine->graph().inputs[i]->format; f != Format::kLinear) {
            packed.emplace_back(inputs[i].type, inputs[i].dims, f);
            given[i] = packed.back().ref();
            if (!given[i].data)
                return Error{ErrorCode::kFailedAllocation, "no memory for an input"};
            ops::convertFormat(inputs[i], given[i]);
        }
    std::vector<TensorRef> outputs(engine->graph().outputs.size());
    std::vector<Tensor> results;
    for (size_t i = 0; i < outputs.size(); ++i) {
        ir::Value const* v = engine->graph().outputs[i];
        runtime::ValueState const& s = instance->values[size_t(engine->block().indexOf(v))];
        results.emplace_back(v->type, s.known ? s.dims : Extents{0}, s.known ? v->format : Format::kLinear);
        if (s.known)
            outputs[i] = results.back().ref();
    }
    runtime::ExecuteArgs args;
    args.arena = arena.data();
    args.inputs = given;
    args.outputs = outputs;
    args.randomState = context.randomState();
    TW_TRY(runtime::execute(*instance, args));
    for (size_t i = 0; i < outputs.size(); ++i) {
        bool const isLinear = outputs[i].format == Format::kLinear;
        if (outputs[i].data == results[i].data() && outputs[i].dims == results[i].dims() && isLinear)
            continue;
        Tensor exact(outputs[i].type, outputs[i].dims); // its size came with the data
        ops::convertFormat(outputs[i], exact.ref());
        results[i] = std::move(exact);
    }
    return results;
}

void addPlainProfile(plan::Contents& c)
{
    c.profiles.push_back(c.profiles[0]);
    for (plan::Target& t : c.targets) {
        plan::Block own;
        for (plan::Step const& step : t.root.steps) {
            own.steps.push_back({step.node, {}, {}});
            ops::Tactic const& plain = *c.graph->nodes[size_t(step.node)]->op->cpuTactics->back();
            if (&step == &t.root.steps.back())
                own.steps.back().choice = {plain.id(), plain.name(), plain.version(), {}, {}};
        }
        t.others.push_back(std::move(own));
    }
}

Result<void> writeSaved(std::string const& stem)
{
    plan::Contents c = refittableNetwork();
    Tensor const x = smallNetworkInput(2);
    TW_ASSIGN(auto want, interp::run(*c.graph, {x.ref()}));
    TW_TRY(buildContents(c, nullptr, {{"x", {{Format::kCHW32}}}}));
    auto const constant = [&](char const* name) {
        for (auto const& v : c.graph->values())
            if (v->name == name)
                return v.get();
        return static_cast<ir::Value*>(nullptr);
    };
    ir::Value const *conv = constant("conv.w"), *fc = constant("fc.w");
    if (!conv || !fc)
        return internalError("the small network has lost its weights");
    // Whatever kernels want: any reader can undo it. Two constants share one range.
    ir::Value const* const again =
        c.graph->addConstant("fc.w again", DataType::kFloat, ir::extentsOf(fc->shape), fc->constant);
    c.panels[conv] = {{1, 3}, 1, 3, 3, 1, false};
    c.panels[fc] = c.panels[again] = {{4, 6}, 64, 1, 1, 1, true};
    addPlainProfile(c);
    TW_ASSIGN(std::string bytes, plan::write(c));
    std::ofstream(stem + ".plan", std::ios::binary) << bytes;
    std::ofstream text(stem + ".txt");
    for (int64_t i = 0; i < want[0].count(); ++i) {
        char line[40];
        std::snprintf(line, sizeof line, "%.9g\n", want[0].ref().get(i));
        text << line;
    }
    return text.flush() ? Result<void>() : invalidArgument("cannot write " + stem);
}

std::vector<NamedCase> const& opCases()
{
    static std::vector<NamedCase> const list = [] {
        std::vector<NamedCase> out;
        for (ir::OpDef const* op : ops::all()) {
            for (ops::CaseList const list = ops::casesOf(op->name); ops::Case const& c : list.cases)
                if (auto made = makeCase(*op, c); made.ok())
                    out.push_back({std::string(op->name) + "." + c.name, std::move(*made)});
        }
        return out;
    }();
    return list;
}

} // namespace tw::test
