// SPDX-License-Identifier: Apache-2.0
// Layers that a configuration sends to a DLA: which of them a model of one takes (TENSORWRIGHT_DLA_MODEL; there is no
// device), cut into subgraphs, each a loadable with its memory. They compute on the present device, as DLA would round.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/builder/config.h"
#include "api/builder/parts.h"
#include "api/network/network.h"
#include "dla/limits.h"
#include "dla/partition.h"
#include "plan/plan.h"

namespace tw::api {

// What a subgraph takes of each pool, in bytes.
struct DlaNeed
{
    int64_t sram = 0, local = 0, global = 0;
};

struct DlaLoadable
{
    std::vector<LayerState const*> layers; // in the network's order
    DlaNeed need;
};

struct DlaPlacement
{
    dla::Model model = dla::Model::kNone;
    int32_t core = 0;
    std::vector<DlaLoadable> loadables;
    std::map<LayerState const*, dla::Verdict> verdicts; // of layers on DLA

    bool isEmpty() const { return loadables.empty(); }
    bool has(LayerState const* layer) const { return verdicts.contains(layer); }
};

// What IBuilderConfig::canRunOnDLA() answers, with the reasons.
dla::Verdict verdictOf(nvinfer1::ILayer const& layer, BuilderConfigObject const& c);
// "layer 'conv1' (Convolution) cannot run on DLA (parameters out of range): stride 9x9, allowed are 1 to 8".
std::string wordsOf(nvinfer1::ILayer const& layer, dla::Finding const& finding);

// An error where a layer that was sent to DLA cannot run there and BuilderFlag::kGPU_FALLBACK is not set, one line in the
// log for each such layer; else a warning for each. `maxBatch`: of networks with an implicit batch.
Result<DlaPlacement> placeOnDla(NetworkObject const& n, BuilderConfigObject const& c, int32_t maxBatch, Reporter& log);

// Network inputs and outputs beside layers on DLA, by name.
DlaTensors dlaTensorsOf(NetworkObject const& n, BuilderConfigObject const& c, DlaPlacement const& placement);

// What EngineCapability::kDLA_STANDALONE asks of a configuration.
Result<void> checkStandalone(NetworkObject const& n, BuilderConfigObject const& c);

// One line for each convolution on DLA among `sparse`, layers whose weights follow 2:4: whether DLA makes use of that.
std::vector<std::string> sparsityLines(DlaPlacement const& placement, std::vector<std::string> const& sparse,
                                       std::map<std::string, dla::Layout> const& layouts, passes::Ranges const& ranges,
                                       BuilderConfigObject const& c);

// Ranges of calibration that DLA needs equal become the largest of them.
void unifyRanges(DlaPlacement const& placement, passes::Ranges& ranges);

// Gives nodes their device and, on DLA, their precision.
void markDla(ir::Graph& g, NetworkObject const& n, BuilderConfigObject const& c, DlaPlacement const& placement,
             passes::Ranges const& ranges);

// Inputs and outputs in formats that only DLA has become the memory of these; shapes that profiles fix become static.
Result<void> applyLayouts(plan::Contents& contents, std::map<std::string, dla::Layout> const& layouts,
                          passes::Ranges& ranges);

// The plan of an engine with kDLA_STANDALONE as a loadable.
Result<std::string> toLoadable(plan::Contents const& contents, std::string const& plan);

} // namespace tw::api
