// SPDX-License-Identifier: Apache-2.0
#include "support/run_small.h"

#include <string_view>
#include <vector>

#include "ir/op_def.h"
#include "runtime/constants.h"
#include "runtime/context.h"
#include "runtime/profile_shapes.h"

namespace tw::test {

namespace {

// Larger networks are loaded and not run: a fuzzer wants many short runs.
constexpr int64_t kMaxElements = 8192;

bool hasLoop(ir::Graph const& g)
{
    for (auto const& n : g.nodes) {
        if (std::string_view(n->op->name) == "loop")
            return true;
        for (auto const& r : n->regions)
            if (hasLoop(*r))
                return true;
    }
    return false;
}

} // namespace

void runSmall(std::shared_ptr<runtime::Engine const> engine)
{
    runtime::Context context(engine);
    context.setProfile(0);
    std::vector<Tensor> storage;
    auto shapes = runtime::profileInputs(engine->contents(), 0, runtime::Select::kOpt, storage);
    if (!shapes.ok())
        return;
    std::vector<Tensor> inputs;
    std::vector<TensorRef> refs;
    for (size_t i = 0; i < shapes->size(); ++i) {
        runtime::InputState const& s = (*shapes)[i];
        if (s.dims.volume() > kMaxElements || !context.setInputShape(int(i), s.dims).ok())
            return;
        inputs.emplace_back(engine->graph().inputs[i]->type, s.dims);
        TensorRef const& t = inputs.back().ref();
        for (int64_t k = 0; k < t.count(); ++k)
            s.contents.data ? t.setInt(k, s.contents.getInt(k)) : t.set(k, double(k % 7 - 3));
        if (!context.setInputContents(int(i), t).ok())
            return;
        refs.push_back(t);
    }
    auto instance = context.instance();
    if (!instance.ok())
        return;
    int64_t elements = (*instance)->arenaBytes;
    for (runtime::ValueState const& s : (*instance)->values)
        elements += s.known ? s.dims.volume() : kMaxElements + 1;
    if (elements > 4 * kMaxElements || hasLoop(engine->graph()))
        return;
    Tensor arena(DataType::kInt8, {(*instance)->arenaBytes});
    std::vector<Tensor> results;
    std::vector<TensorRef> outputs;
    for (ir::Value const* v : engine->graph().outputs) {
        results.emplace_back(v->type, (*instance)->values[size_t(engine->block().indexOf(v))].dims);
        outputs.push_back(results.back().ref());
    }
    runtime::ExecuteArgs args;
    args.arena = arena.data();
    args.inputs = refs;
    args.outputs = outputs;
    args.randomState = context.randomState();
    (void)runtime::execute(**instance, args).ok();
}

bool refitSmall(runtime::Engine& engine)
{
    if (!engine.contents().recipes)
        return false;
    ir::Graph& recipes = *engine.contents().recipes;
    int64_t elements = 0;
    for (auto const& v : recipes.values())
        elements += ir::extentsOf(v->shape).volume();
    runtime::NewWeights zeros;
    auto const constants = runtime::constantsOf(recipes);
    for (size_t i = 0; i < constants.size(); ++i)
        if (!constants[i]->constant->layer.empty())
            zeros[i] = Blob::own(std::vector<std::byte>(constants[i]->constant->data->sizeBytes()));
    return !zeros.empty() && elements <= 4 * kMaxElements && engine.refit(zeros, serialWorkers(), nullptr).ok();
}

} // namespace tw::test
