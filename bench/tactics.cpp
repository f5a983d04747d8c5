// SPDX-License-Identifier: Apache-2.0
// Times every CPU tactic of an op on shapes that networks really have; items are floating-point operations, so that the
// rate is FLOP/s. Reported with the CPU that ran it: figures of different machines do not compare.
#include <benchmark/benchmark.h>

#include "device/cpu.h"
#include "interp/interp.h"
#include "ops/convolution/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/registry.h"
#include "tune/check.h"

namespace tw {

namespace {

// One node on random inputs, ready to run.
struct Problem
{
    ir::Graph graph;
    std::vector<Tensor> storage;
    std::vector<TensorRef> inputs, outputs;
    ops::Problem problem;
};

std::unique_ptr<Problem> makeProblem(ir::OpDef const& op, std::unique_ptr<ir::AttrsBase> attrs,
                                     std::vector<Extents> const& shapes)
{
    auto p = std::make_unique<Problem>();
    std::vector<ir::Value*> values;
    for (Extents const& e : shapes)
        values.push_back(p->graph.addInput("in" + std::to_string(values.size()), DataType::kFloat, ir::shapeOf(e)));
    ir::Node* node = *p->graph.addNode(op, std::move(attrs), values, op.name);
    p->problem.node = node;
    for (size_t i = 0; i < shapes.size(); ++i) {
        p->storage.emplace_back(DataType::kFloat, shapes[i]);
        p->inputs.push_back(p->storage.back().ref());
        tune::fillRandom(p->inputs.back(), tune::domainOf(*node, int(i)), i + 1);
        p->problem.inputs.push_back(ops::TensorSpec{.dims = shapes[i], .maxDims = shapes[i], .present = true});
    }
    auto const outputs = interp::inferConcrete(*node, p->inputs);
    for (auto const& o : *outputs) {
        p->storage.emplace_back(o.type, o.dims);
        p->outputs.push_back(p->storage.back().ref());
        p->problem.outputs.push_back(
            ops::TensorSpec{.type = o.type, .dims = o.dims, .maxDims = o.dims, .present = true});
    }
    return p;
}

void add(std::string const& name, std::shared_ptr<Problem> p, double operations)
{
    for (ops::Tactic const* tactic : p->problem.node->op->cpuTactics()) {
        if (!tactic->supports(p->problem).ok)
            continue;
        auto run = [p, tactic, operations](benchmark::State& state) {
            auto kernel = tactic->load(p->problem, tactic->configs(p->problem).front(), {});
            Tensor workspace(DataType::kInt8, {(*kernel)->workspaceBytes(p->inputs, p->outputs)});
            std::vector<TensorRef> outputs = p->outputs;
            uint64_t randomState = 1;
            ops::RunArgs args{p->inputs, outputs, workspace.data(), &randomState};
            for (auto _ : state)
                if (!(*kernel)->run(args).ok())
                    state.SkipWithError("the kernel failed");
            state.counters["FLOP/s"] = benchmark::Counter(operations, benchmark::Counter::kIsIterationInvariantRate);
        };
        benchmark::RegisterBenchmark((name + "/" + tactic->name()).c_str(), run);
    }
}

void addConvolution(std::string const& name, int64_t c, int64_t k, int64_t side, int64_t window, int64_t stride)
{
    auto attrs = std::make_unique<ops::convolution::Attrs>(ops::convolution::Attrs::plain(2));
    attrs->strides = {stride, stride};
    attrs->prePadding = attrs->postPadding = {window / 2, window / 2};
    auto p = makeProblem(ops::convolution::def(), std::move(attrs), {{1, c, side, side}, {k, c, window, window}});
    double const operations = 2.0 * double(p->outputs[0].count()) * double(c * window * window);
    add("convolution/" + name, std::shared_ptr<Problem>(std::move(p)), operations);
}

} // namespace

} // namespace tw

int main(int argc, char** argv)
{
    using namespace tw;
    addConvolution("conv1_7x7s2_3x64_224", 3, 64, 224, 7, 2);
    addConvolution("3x3_64x64_56", 64, 64, 56, 3, 1);
    addConvolution("1x1_256x64_56", 256, 64, 56, 1, 1);
    addConvolution("3x3_512x512_7", 512, 512, 7, 3, 1);
    add("matrix_multiply/128x768x768",
        makeProblem(ops::matrix_multiply::def(), std::make_unique<ops::matrix_multiply::Attrs>(),
                    {{128, 768}, {768, 768}}),
        2.0 * 128 * 768 * 768);
    benchmark::AddCustomContext("device", device::probeCpu().fingerprint());
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv))
        return 1;
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
