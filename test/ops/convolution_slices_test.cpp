// SPDX-License-Identifier: Apache-2.0
// Convolutions between channel slices of wider tensors, as concatenations without copies make them, with work shared
// out in a strange order: what lies in the other channels is neither read nor written.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "interp/interp.h"
#include "ops/convolution/op.h"
#include "support/op_case.h"
#include "tactic/convert_format.h"
#include "tactic/cpu_tactic.h"
#include "tactic/registry.h"
#include "tactic/rounded_factors.h"

namespace tw::test {

namespace {

// Parts from the last to the first, workers in turn.
class BackwardWorkers final : public Workers
{
public:
    int count() const override { return 3; }
    void run(int64_t parts, FunctionRef<void(int64_t, int)> body) override
    {
        for (int64_t p = parts; p-- > 0;)
            body(p, int(p % 3));
    }
};

constexpr int64_t kBefore = 16, kAfter = 32; // channels of the wider tensor on either side

// Channels-last storage of a wider tensor, NaN everywhere, and its slice.
struct Slice
{
    std::vector<float> storage;
    TensorRef part;

    Slice(Extents const& dims)
    {
        part.dims = dims;
        part.format = Format::kChannelsLast;
        part.stride = pixelStrideOf(Format::kChannelsLast, DataType::kFloat, kBefore + dims[1] + kAfter);
        int64_t const count = dims[0] * dims.volume(2, dims.rank) * part.stride;
        storage.assign(size_t(count + 16), NAN);
        auto const at = reinterpret_cast<uintptr_t>(storage.data());
        part.data = reinterpret_cast<float*>((at + 63) / 64 * 64) + kBefore;
    }
    // Elements that are no NaN any more, in all.
    int64_t written() const
    {
        int64_t n = 0;
        for (float v : storage)
            n += !std::isnan(v);
        return n;
    }
};

void runSliced(ir::OpDef const& op, ops::Case const& c)
{
    SCOPED_TRACE(std::string(op.name) + "." + c.name);
    auto made = makeCase(op, c);
    ASSERT_TRUE(made.ok()) << made.error().message;
    CaseGraph& g = **made;
    uint64_t randomState = 1;
    interp::Options options;
    options.randomState = &randomState;
    auto want = interp::runNode(*g.node, g.nodeInputs, options);
    ASSERT_TRUE(want.ok()) << want.error().message;
    ops::Problem problem;
    problem.node = g.node;
    problem.threads = 3;
    for (size_t i = 0; i < g.nodeInputs.size(); ++i) {
        ops::TensorSpec spec;
        spec.dims = spec.maxDims = g.nodeInputs[i].dims;
        spec.constant = g.node->inputs[i]->constant ? g.node->inputs[i]->constant->data.get() : nullptr;
        spec.present = true;
        problem.inputs.push_back(spec);
    }
    ops::TensorSpec y;
    y.dims = y.maxDims = (*want)[0].dims();
    y.present = true;
    problem.outputs.push_back(y);
    int ran = 0;
    for (ops::Tactic const* tactic : *op.cpuTactics)
        for (ops::Formats const& f : tactic->formats(problem)) {
            ops::setFormats(problem, f);
            if (f.outputs[0] != Format::kChannelsLast || !ops::supportsFormats(*tactic, problem).ok)
                continue;
            for (ops::Config const& config : tactic->configs(problem)) {
                SCOPED_TRACE(tactic->name());
                std::vector<std::unique_ptr<Slice>> slices;
                std::vector<TensorRef> inputs = g.nodeInputs;
                for (size_t i = 0; i < inputs.size(); ++i)
                    if (f.inputs[i] == Format::kChannelsLast) {
                        slices.push_back(std::make_unique<Slice>(inputs[i].dims));
                        ops::convertFormat(inputs[i], slices.back()->part);
                        inputs[i] = slices.back()->part;
                    }
                Slice out((*want)[0].dims());
                std::vector<TensorRef> outputs{out.part};
                auto kernel = tactic->load(problem, config, {});
                ASSERT_TRUE(kernel.ok()) << kernel.error().message;
                Tensor workspace(DataType::kInt8, {(*kernel)->workspaceBytes(inputs, outputs)});
                auto prepared = (*kernel)->prepare(inputs, outputs);
                ASSERT_TRUE(prepared.ok()) << prepared.error().message;
                BackwardWorkers workers;
                ops::RunArgs args{inputs, outputs, workspace.data()};
                args.workers = &workers;
                args.prepared = prepared->get();
                ASSERT_TRUE((*kernel)->run(args).ok());
                Tensor linear(DataType::kFloat, (*want)[0].dims());
                ops::convertFormat(out.part, linear.ref());
                ops::Tolerance const tolerance =
                    ops::toleranceFor(tactic->traits().rounding, toleranceOf(*g.node, DataType::kFloat));
                EXPECT_EQ(compare(linear.ref(), (*want)[0].ref(), tolerance), "");
                EXPECT_EQ(out.written(), (*want)[0].count()) << "wrote into other channels";
                ++ran;
            }
        }
    EXPECT_GT(ran, 0) << "no tactic took it";
}

} // namespace

TEST(ConvolutionSlices, NothingElseIsTouched)
{
    using ops::activation::Kind;
    using Attrs = ops::convolution::Attrs;
    if (!ops::supportsIsa(ops::thisCpu(), kernels::jit::Isa::kAvx2).ok)
        GTEST_SKIP() << "this CPU runs plain kernels only";
    auto weights = [](Extents const& e) { return ops::constant(DataType::kFloat, e); };
    auto add = [&](char const* name, Extents const& x, Extents const& w, auto change, bool residual = false) {
        ops::convolution::Attrs a = ops::convolution::Attrs::plain(2);
        change(a);
        ops::Case c;
        c.name = name;
        c.attrs = std::make_shared<Attrs>(a, ops::FusedActivation(Kind::kRelu));
        c.inputs = {ops::f32(x), weights(w), weights({w[0]})};
        if (residual)
            c.inputs.push_back(ops::f32({x[0], w[0], x[2], x[3]}));
        runSliced(ops::convolution::def(), c);
    };
    auto same = [](ops::convolution::Attrs& a) { a.prePadding = a.postPadding = {1, 1}; };
    auto none = [](ops::convolution::Attrs&) {};
    add("1x1", {2, 32, 5, 9}, {48, 32, 1, 1}, none);
    add("1x1_residual", {1, 16, 9, 7}, {80, 16, 1, 1}, none, true);
    add("3x3", {1, 16, 9, 17}, {64, 16, 3, 3}, same);
    add("3x3_residual", {2, 48, 4, 5}, {16, 48, 3, 3}, same, true);
    add("3x3_stride2", {1, 16, 9, 17}, {32, 16, 3, 3}, [](ops::convolution::Attrs& a) {
        a.prePadding = a.postPadding = {1, 1};
        a.strides = {2, 2};
    });
    add("first", {1, 3, 9, 17}, {32, 3, 3, 3}, same);
    auto depthwise = [](ops::convolution::Attrs& a) {
        a.prePadding = a.postPadding = {1, 1};
        a.groups = 48;
    };
    add("depthwise", {1, 48, 9, 17}, {48, 1, 3, 3}, depthwise);
    add("depthwise_residual", {2, 48, 3, 30}, {48, 1, 3, 3}, depthwise, true);

    Attrs up = Attrs::plain(2, true);
    up.strides = {2, 2};
    ops::Case c;
    c.name = "2x2_stride2";
    c.attrs = std::make_shared<Attrs>(up, ops::FusedActivation(Kind::kRelu), true);
    c.inputs = {ops::f32({1, 32, 5, 9}), weights({32, 48, 2, 2}), weights({48})};
    runSliced(ops::convolution::def(), c);
}

} // namespace tw::test
