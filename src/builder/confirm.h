// SPDX-License-Identifier: Apache-2.0
// The last word on formats and types: whole engines, each with another assignment, timed against each other. Layers timed one by
// one do not feel what their neighbours leave in the caches.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "builder/formats.h"
#include "builder/types.h"
#include "plan/plan.h"
#include "runtime/block.h"

namespace tw::builder {

// A graph with formats, tactics and loaded kernels.
struct Attempt
{
    FormatChoice formats;
    TypeSummary types;
    std::unique_ptr<ir::Graph> graph;
    std::unique_ptr<runtime::LoadedBlock> block;
    plan::Block root;
    FormatSummary summary;
    // Of the profiles behind the first, where these run other kernels; as plan::Target::others.
    std::vector<std::unique_ptr<runtime::LoadedBlock>> otherBlocks;
    std::vector<plan::Block> others;
};

// Position of the fastest, ties to the earlier; 0 when they cannot be timed (sizes that depend on data, no memory,
// random inputs that a layer refuses). `inputs`: states at the optimum, for each attempt the same.
struct Confirmation
{
    int fastest = 0;
    std::vector<double> microseconds; // of each, empty when not timed
};
Confirmation confirm(std::vector<Attempt> const& attempts, std::vector<runtime::InputState> const& inputs,
                     Workers& workers, double budgetMilliseconds, cuda::Target const* gpu = nullptr);

// An attempt on a GPU, ready to run; it outlives this.
class CudaRunnable
{
public:
    ~CudaRunnable();
    // An error when it cannot be timed: no memory, outputs on the host or of sizes that depend on data.
    static Result<std::unique_ptr<CudaRunnable>>
    make(Attempt const& attempt, std::vector<runtime::InputState> const& inputs, cuda::Target const& target);
    // Of one run, from events round several.
    Result<double> microseconds();

private:
    CudaRunnable();
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace tw::builder
