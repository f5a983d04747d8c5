// SPDX-License-Identifier: Apache-2.0
// Graphs on a GPU's double, whose memory is the host's: each node runs its reference there, now or where the stream is
// captured when the graph is launched.
#pragma once

#include <functional>

#include <dlfcn.h>

#include "cuda/fake_target.h"
#include "ir/shape_values.h"
#include "ir/text.h"
#include "runtime/cuda_run.h"
#include "runtime/execute_cuda.h"
#include "support/graph_maker.h"
#include "support/op_case.h"

namespace tw::test {

#ifdef TW_FAKE_GRAPHS
constexpr bool kHasNodes = true; // conditional ones
#else
constexpr bool kHasNodes = false;
#endif

class ReferenceKernel final : public ops::Kernel
{
public:
    ReferenceKernel(ir::Node const& node, cuda::Driver const& driver) : driver_(driver), node_(node) {}
    int64_t alignment() const override { return 16; }
    Result<void> run(ops::RunArgs& args) const override
    {
        std::vector<TensorRef> inputs;
        for (TensorRef const& x : args.inputs) {
            EXPECT_EQ(cuda::addressOf(x.data) % 16, 0U);
            inputs.push_back(x);
        }
        auto* const stream = static_cast<CUstream_st*>(args.stream);
        int capturing = 0;
        TW_CUDA(driver_, cuStreamIsCapturing(stream, &capturing));
        if (!capturing)
            return compute(inputs, args.outputs);
        std::vector<TensorRef> outputs(args.outputs.begin(), args.outputs.end());
        std::function<void()> const work = [this, inputs, outputs]() mutable {
            auto const done = compute(inputs, outputs);
            EXPECT_TRUE(done.ok()) << done.error().message;
        };
        return driver_.check(put()(stream, &work), "twFakePut");
    }

private:
    using Put = int (*)(CUstream_st* stream, std::function<void()> const* work);
    static Put put()
    {
        static void* const library = dlopen(TW_FAKE_DRIVER, RTLD_NOW);
        return reinterpret_cast<Put>(dlsym(library, "twFakePut"));
    }
    Result<void> compute(std::vector<TensorRef> const& inputs, std::span<TensorRef> outputs) const
    {
        TW_ASSIGN(std::vector<Tensor> const results, interp::runNode(node_, inputs));
        for (size_t i = 0; i < results.size(); ++i) {
            outputs[i].dims = results[i].dims();
            std::memcpy(outputs[i].data, results[i].data(), size_t(results[i].ref().sizeBytes()));
        }
        return {};
    }

    cuda::Driver const& driver_;
    ir::Node const& node_;
};

inline void giveKernels(runtime::LoadedBlock& block, cuda::Driver const& driver)
{
    for (runtime::LoadedStep& step : block.steps) {
        for (auto& region : step.regions)
            giveKernels(*region, driver);
        if (step.regions.empty())
            step.kernel = std::make_unique<ReferenceKernel>(*step.node, driver);
    }
}

struct Ran
{
    std::vector<TensorRef> outputs;
    std::vector<Tensor> storage;
    int64_t hostWaits = 0;
    std::string whyNotCaptured;
};

inline Result<Ran> runOnDouble(ir::Graph const& g, std::vector<TensorRef> const& inputs)
{
    TW_ASSIGN(auto target, fakeTarget());
    auto block = runtime::outlineBlock(g);
    giveKernels(*block, target->device->driver());
    std::vector<runtime::InputState> states;
    for (TensorRef const& t : inputs) // what a context would be told of shape tensors
        states.push_back({t.dims, true, t.type == DataType::kInt32 && t.count() == 1 ? t : TensorRef{}});
    auto shapes = ir::shapeValues(g);
    for (size_t i = 0; i < inputs.size(); ++i)
        if (!shapes.contains(g.inputs[i]))
            states[i].contents = TensorRef{};
    TW_ASSIGN(auto instance, runtime::resolve(*block, states));
    TW_TRY(runtime::placeInArena(*instance));
    TW_TRY(runtime::uploadConstants(*block, nullptr, target->device));
    TW_TRY(runtime::uploadContents(*instance, target->device));
    Ran ran;
    ran.whyNotCaptured = runtime::whyNotCaptured(*instance);
    for (ir::Value const* v : g.outputs) {
        runtime::ValueState const& s = instance->values[size_t(block->indexOf(v))];
        TensorRef out{v->type, s.dims, nullptr, v->format};
        if (s.exact) {
            ran.storage.emplace_back(v->type, s.dims);
            out = ran.storage.back().ref();
        }
        ran.outputs.push_back(out);
    }
    for (int run = 0; run < 2; ++run) {
        uint64_t state = 0;
        runtime::ExecuteArgs args{nullptr, inputs, ran.outputs, &state, nullptr};
        args.hostWaits = &ran.hostWaits;
        ran.hostWaits = 0;
        TW_TRY(executeOnGpu(*target, *instance, args, ran.outputs, ran.storage));
    }
    return ran;
}

inline Result<Ran> runText(std::string const& text, std::vector<Tensor> const& inputs)
{
    TW_ASSIGN(auto g, ir::parse(text, ops::find));
    return runOnDouble(*g, refsOf(inputs));
}

inline Tensor one(DataType type, double v)
{
    Tensor t(type, {});
    t.ref().set(0, v);
    return t;
}

} // namespace tw::test
