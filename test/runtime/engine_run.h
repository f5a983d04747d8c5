// SPDX-License-Identifier: Apache-2.0
// A graph all the way to its outputs: build, write, read, load, one context, run.
#pragma once

#include <map>

#include "builder/build.h"
#include "cuda_run.h"
#include "ops/activation/op.h"
#include "runtime/context.h"
#include "runtime/execute_cuda.h"
#include "support/graph_maker.h"

namespace tw::test {

inline ir::Value* activation(GraphMaker& m, ir::Value* x, std::string const& name,
                             ops::activation::Kind kind = ops::activation::Kind::kTanh)
{
    return m.add(ops::activation::def(), ops::activation::Attrs(kind), {x}, name);
}

struct EngineUnderTest
{
    std::unique_ptr<ir::Graph> imported; // what the interpreter runs
    std::string planBytes;
    std::shared_ptr<runtime::Engine> engine;
};

// Sizes of the symbols at minimum, optimum and maximum.
using SymbolSizes = std::map<std::string, std::array<int64_t, 3>>;

inline plan::Profile profileOf(ir::Graph const& g, SymbolSizes const& sizes)
{
    plan::Profile profile;
    for (ir::Value const* v : g.inputs) {
        plan::ProfileRange r;
        r.hasShape = true;
        for (size_t end = 0; end < 3; ++end) {
            ir::Bindings at;
            for (auto const& [name, size] : sizes)
                at[name] = size[end];
            for (ir::Dim const& d : v->shape)
                (end == 0 ? r.min : end == 1 ? r.opt : r.max).push(*d.eval(at));
        }
        profile.inputs[v->name] = r;
    }
    return profile;
}

inline Result<plan::Contents> buildContents(ir::Graph const& g, std::vector<SymbolSizes> const& profiles,
                                            passes::Options const& passOptions = {},
                                            builder::FormatPolicy formats = builder::FormatPolicy::kLeastTime,
                                            builder::IoFormats io = {})
{
    plan::Contents c;
    c.graph = g.clone();
    for (ir::Value const* v : g.inputs)
        c.io.push_back(plan::IoTensor{v->name, true, v->host, true, false, {}});
    for (ir::Value const* v : g.outputs)
        c.io.push_back(plan::IoTensor{v->name, false, false, true, false, {}});
    for (SymbolSizes const& s : profiles)
        c.profiles.push_back(profileOf(g, s));
    builder::Options options;
    options.fingerprint = "test";
    options.tune.heuristicOnly = true;
    options.passes = passOptions;
    options.formats = formats;
    options.io = std::move(io);
    TW_ASSIGN(options.cuda, testGpu());
    TW_TRY(builder::build(c, options));
    return c;
}

inline Result<EngineUnderTest> makeEngine(GraphMaker& m, std::vector<SymbolSizes> const& profiles = {{}},
                                          passes::Options const& passOptions = {},
                                          builder::FormatPolicy formats = builder::FormatPolicy::kLeastTime)
{
    EngineUnderTest e;
    e.imported = m.take();
    TW_ASSIGN(plan::Contents built, buildContents(*e.imported, profiles, passOptions, formats));
    TW_ASSIGN(e.planBytes, plan::write(built));
    TW_ASSIGN(plan::Contents loaded, plan::read(e.planBytes.data(), e.planBytes.size()));
    runtime::LoadOptions options;
    options.fingerprint = "test";
    TW_ASSIGN(options.cuda, testGpu());
    TW_ASSIGN(e.engine, runtime::Engine::load(std::move(loaded), options));
    return e;
}

struct RunResult
{
    std::shared_ptr<runtime::Instance> instance;
    Tensor arena;
    std::vector<Tensor> storage; // of outputs
    std::vector<TensorRef> outputs;
    int skipped() const { return int(std::count(instance->skipped.begin(), instance->skipped.end(), true)); }
};

// The arena and the outputs start with garbage.
inline Result<RunResult> runEngine(runtime::Context& context, std::vector<TensorRef> const& inputs)
{
    for (size_t i = 0; i < inputs.size(); ++i) {
        TW_TRY(context.setInputShape(int(i), inputs[i].dims));
        if (context.needsContents(int(i)))
            TW_TRY(context.setInputContents(int(i), inputs[i]));
    }
    RunResult r;
    TW_ASSIGN(r.instance, context.instance());
    r.arena = Tensor(DataType::kInt8, {r.instance->arenaBytes});
    std::memset(r.arena.data(), 0xcd, size_t(r.instance->arenaBytes));
    ir::Graph const& g = context.engine().graph();
    for (ir::Value const* v : g.outputs) {
        runtime::ValueState const& s = r.instance->values[size_t(r.instance->block->indexOf(v))];
        TensorRef out{v->type, s.dims, nullptr, v->format};
        if (s.exact) {
            r.storage.emplace_back(v->type, s.dims, v->format);
            out = r.storage.back().ref();
            std::memset(out.data, 0xcd, size_t(out.sizeBytes()));
        }
        r.outputs.push_back(out);
    }
    uint64_t state = 0;
    runtime::ExecuteArgs args{r.arena.data(), inputs, r.outputs, &state, nullptr};
    if (cuda::Target const* gpu = context.engine().cuda())
        TW_TRY(executeOnGpu(*gpu, *r.instance, args, r.outputs, r.storage));
    else
        TW_TRY(runtime::execute(*r.instance, args));
    return r;
}

// Runs engine and interpreter on the same inputs.
inline void checkRun(EngineUnderTest const& e, runtime::Context& context, std::vector<Tensor> const& inputs,
                     double tolerance = 1e-5)
{
    auto want = interp::run(*e.imported, refsOf(inputs));
    ASSERT_TRUE(want.ok()) << want.error().message;
    auto got = runEngine(context, refsOf(inputs));
    ASSERT_TRUE(got.ok()) << got.error().message;
    expectSame(got->outputs, *want, tolerance);
}

// Twice in the same context.
inline void checkTwice(EngineUnderTest const& e, std::vector<Tensor> const& inputs)
{
    ASSERT_NE(e.engine, nullptr);
    runtime::Context context(e.engine);
    context.setProfile(0);
    checkRun(e, context, inputs);
    checkRun(e, context, inputs);
}

// Why a run on these inputs cannot be captured in a CUDA graph; what decides is the same on every device.
inline std::string whyNotCaptured(EngineUnderTest const& e, std::vector<Tensor> const& inputs)
{
    runtime::Context context(e.engine);
    context.setProfile(0);
    auto got = runEngine(context, refsOf(inputs));
    return got.ok() ? runtime::whyNotCaptured(*got->instance) : "error: " + got.error().message;
}

inline void checkEngine(GraphMaker& m, std::vector<Tensor> const& inputs)
{
    auto e = makeEngine(m);
    ASSERT_TRUE(e.ok()) << e.error().message;
    runtime::Context context(e->engine);
    context.setProfile(0);
    checkRun(*e, context, inputs);
}

} // namespace tw::test
