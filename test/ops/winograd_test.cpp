// SPDX-License-Identifier: Apache-2.0
// What Winograd's convolution costs in accuracy: errors of larger layers against the double-precision reference.
#include <cmath>

#include <gtest/gtest.h>

#include "device/thread_pool.h"
#include "families/convolution/tactics.h"
#include "interp/interp.h"
#include "ops/convolution/op.h"
#include "support/op_case.h"
#include "tactic/convert_format.h"
#include "tactic/registry.h"

namespace tw::test {

namespace {

// The largest error over the largest output, of one tactic with one configuration.
double errorOf(ops::Tactic const& tactic, ops::Config const& config, CaseGraph const& g, ops::Problem const& problem,
               Tensor const& want, Workers& workers)
{
    auto kernel = tactic.load(problem, config, {});
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
    Tensor y(DataType::kFloat, want.dims());
    TensorRef const outputs[] = {y.ref()};
    std::vector<Tensor> copies;
    auto in = inFormats(g.nodeInputs, problem.inputs, copies);
    auto out = inFormats(outputs, problem.outputs, copies);
    EXPECT_TRUE(in.ok() && out.ok());
    Tensor workspace(DataType::kInt8, {(*kernel)->workspaceBytes(*in, *out)});
    auto prepared = (*kernel)->prepare(*in, *out);
    EXPECT_TRUE(prepared.ok()) << prepared.error().message;
    ops::RunArgs args{*in, *out, workspace.data()};
    args.prepared = prepared->get();
    args.workers = &workers;
    EXPECT_TRUE((*kernel)->run(args).ok());
    ops::convertFormat((*out)[0], y.ref());
    double error = 0, largest = 0;
    for (int64_t i = 0; i < want.count(); ++i) {
        error = std::max(error, std::fabs(y.ref().get(i) - want.ref().get(i)));
        largest = std::max(largest, std::fabs(want.ref().get(i)));
    }
    return error / largest;
}

} // namespace

// Rounding errors grow somewhat faster with the channels than the outputs do. Measured: 2e-7 to 6e-7 for m = 2 and 6e-7
// to 3e-6 for m = 4 at 16 to 512 channels, relative to the largest output.
TEST(Winograd, ErrorsOfLargeLayersStayWithinBounds)
{
    device::ThreadPool pool(3);
    for (int64_t channels : {16, 64, 512}) {
        ops::Case c;
        c.name = "layer";
        auto attrs = std::make_shared<ops::convolution::Attrs>(ops::convolution::Attrs::plain(2));
        attrs->prePadding = attrs->postPadding = {1, 1};
        c.attrs = attrs;
        c.inputs = {ops::f32({1, channels, 13, 13}), ops::constant(DataType::kFloat, {72, channels, 3, 3})};
        auto made = makeCase(ops::convolution::def(), c);
        ASSERT_TRUE(made.ok()) << made.error().message;
        auto want = interp::runNode(*(*made)->node, (*made)->nodeInputs, {});
        ASSERT_TRUE(want.ok());
        ops::Problem problem;
        problem.node = (*made)->node;
        problem.threads = pool.threads();
        for (size_t i = 0; i < 2; ++i) {
            TensorRef const& t = (*made)->nodeInputs[i];
            ops::TensorSpec spec;
            spec.dims = spec.maxDims = t.dims;
            spec.present = true;
            spec.constant = i == 1 ? (*made)->node->inputs[i]->constant->data.get() : nullptr;
            problem.inputs.push_back(spec);
        }
        ops::TensorSpec y;
        y.dims = y.maxDims = (*want)[0].dims();
        y.present = true;
        problem.outputs.push_back(y);
        for (ops::Tactic const* tactic : *ops::convolution::def().cpuTactics) {
            if (tactic->traits().rounding != ops::Rounding::kWinograd)
                continue;
            ops::setFormats(problem, tactic->formats(problem).front());
            if (ops::Support const s = tactic->supports(problem); !s.ok)
                continue;
            std::vector<ops::Config> configs = tactic->configs(problem);
            for (int64_t how = 0; how < 4; ++how) // several blocks of everything
                for (int64_t m : {2, 4})
                    configs.push_back({m, how, 5, 32, 32});
            for (ops::Config const& config : configs) {
                double const error = errorOf(*tactic, config, **made, problem, (*want)[0], pool.workers());
                EXPECT_GT(error, 0);
                EXPECT_LT(error, config[0] == 2 ? 1e-6 : 4e-6)
                    << tactic->name() << ", F(" << config[0] << ", 3), " << channels << " channels, way " << config[1];
            }
        }
    }
}

} // namespace tw::test
