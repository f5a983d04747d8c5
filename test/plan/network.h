// SPDX-License-Identifier: Apache-2.0
// Contents of plans for the tests: of one op's case, and of a small convolutional network; and running a loaded plan.
#pragma once

#include <string>
#include <vector>

#include "builder/formats.h"
#include "plan/plan.h"
#include "runtime/engine.h"
#include "support/op_case.h"
#include "tune/timing_cache.h"

namespace tw::test {

// As a builder gets it: graph, io, one empty profile.
plan::Contents contentsOf(ir::Graph const& graph);
// Passes, tactics (by estimates unless there is a cache to keep the times) and memory.
Result<void> buildContents(plan::Contents& contents, tune::TimingCache* cache = nullptr, builder::IoFormats io = {});

// x f32[N,1,8,8] -> conv 3x3 -> relu -> max pool 2x2 -> flatten -> matrix product -> softmax -> y f32[N,10], N 1..4.
plan::Contents smallNetwork();
// The same, whose weights can be refitted.
plan::Contents refittableNetwork();
Tensor smallNetworkInput(int64_t batch);

Result<std::shared_ptr<runtime::Engine>> loadEngine(plan::Contents contents);
// Inputs in the order of the graph's.
Result<std::vector<Tensor>> runEngine(std::shared_ptr<runtime::Engine const> engine,
                                      std::vector<TensorRef> const& inputs, int profile = 0);

// A second profile with the ranges of the first, whose last step runs the plain kernel.
void addPlainProfile(plan::Contents& contents);

// Writes <stem>.plan and <stem>.txt (the outputs of the reference for batch 2).
Result<void> writeSaved(std::string const& stem);

// Every case of every op whose graph can be made.
struct NamedCase
{
    std::string name;
    std::unique_ptr<CaseGraph> graph;
};
std::vector<NamedCase> const& opCases();

} // namespace tw::test
