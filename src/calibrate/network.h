// SPDX-License-Identifier: Apache-2.0
// A network that runs on the CPU for the values of its tensors: in FP32, at one set of shapes.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "base/workers.h"
#include "builder/formats.h"
#include "ir/graph.h"
#include "passes/target_info.h"
#include "plan/plan.h"
#include "runtime/block.h"

namespace tw::calibrate {

struct NetworkOptions
{
    bool isFused = false; // after the float fusions, in whose tensors older calibrators are interested
    passes::TargetInfo target;
    std::span<ops::TacticProvider const* const> providers;
    Workers* workers = &serialWorkers();
    int64_t maxMemoryBytes = 0; // for all activations; 0: no limit
    Log* log = nullptr;
};

// Told of tensors while the network runs.
struct ValueObserver
{
    virtual ~ValueObserver() = default;
    // A value of Network::observed(), complete, in any format. It changes when the call returns.
    virtual void observe(size_t index, TensorRef const& values) = 0;
};

class Network
{
public:
    // `graph` as the builder gets it; the shapes, and the elements of shape tensors, are the optimum of the profile.
    static Result<std::unique_ptr<Network>> make(ir::Graph const& graph, plan::Profile const& profile,
                                                 NetworkOptions const& options);

    struct Input
    {
        std::string name;
        bool isShapeTensor = false; // its elements are those of the profile
        Tensor memory;
    };
    std::vector<Input>& inputs() { return inputs_; }
    // Tensors of the network that are computed in floating point, in execution order; those within loops and
    // conditionals are not among them.
    std::vector<ir::Value const*> const& observed() const { return observed_; }
    bool hasRegions() const { return hasRegions_; }
    // Its layers, before formats were chosen.
    ir::Graph const& graph() const { return *graph_; }

    // On what the inputs' memory holds.
    Result<void> run(ValueObserver& observer);

private:
    Network() = default;
    Result<void> allocate(NetworkOptions const& options);
    std::unique_ptr<ir::Graph> graph_;
    plan::Contents contents_; // what runs
    std::unique_ptr<runtime::LoadedBlock> block_;
    std::unique_ptr<runtime::Instance> instance_;
    Tensor arena_;
    std::vector<Input> inputs_;
    std::vector<Tensor> outputs_;
    std::vector<ir::Value const*> observed_;
    Workers* workers_ = nullptr;
    bool hasRegions_ = false;
    uint64_t randomState_ = 1;
};

// Tensors that have one scale under Entropy2: a concatenation's inputs and output, and the two sides of a pool.

// Thresholds by tensor name. Inputs of a concatenation follow its output, the output of a pool follows its input: the
// threshold of all that hang together is the largest of those that follow nobody. Tensors without a threshold have no
// part in it.
void shareThresholds(ir::Graph const& g, std::map<std::string, double>& thresholds);

// Formats and tactics by a fixed rule, never by time, so that sums have one order in every build on this kind of CPU: of
// the tactics that compute in the tensors' own types without transforms (ops::Rounding::kPlain) the one with the least
// estimate for one thread, ties to the first in the op's list; one without an estimate where there is no other.

// Gives values the formats with the least estimate and puts reformats in; network inputs and outputs stay linear.
// `block` and `shapes` belong to the graph as it is, and are stale where the summary says that something changed.
Result<builder::FormatSummary> assignFixedFormats(ir::Graph& g, runtime::LoadedBlock const& block,
                                                  runtime::Instance const& shapes,
                                                  std::span<ops::TacticProvider const* const> providers);

// For each step, in the formats that its tensors have.
plan::Block chooseFixed(runtime::LoadedBlock const& block, runtime::Instance const& shapes,
                        std::span<ops::TacticProvider const* const> providers);

} // namespace tw::calibrate
