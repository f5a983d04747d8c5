// SPDX-License-Identifier: Apache-2.0
// The types that a node is tried in.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "builder/formats.h"
#include "passes/precision/precision.h"
#include "runtime/block.h"
#include "tune/options.h"

namespace tw::builder {

// Of one node, its preferred type first.
struct NodeVariants
{
    std::vector<DataType> types;
    std::vector<passes::PosedNode> posed; // owns what the problems point to; the node may stand for itself
};

struct GraphVariants
{
    std::map<ir::Node const*, NodeVariants> nodes;
    Variants problems;
    Originals originals;
    std::map<ir::Node const*, std::string> whyNotFloat; // nodes that are tried in f16 alone
    int open = 0;                                       // nodes with more than one; 0: none is named above
};

// Nodes that may be in f16 and f32 are tried in f32 where the clock may find that faster: where its estimate is within
// 2x of the best in f16, or a generated kernel exists in f32 only; and cheap nodes between such.
Result<GraphVariants> collectVariants(ir::Graph const& graph, runtime::LoadedBlock const& block,
                                      runtime::Instance const& opt, runtime::Instance const& max,
                                      tune::Options const& options, passes::Precisions const& precisions,
                                      passes::NarrowWeights& weights);

} // namespace tw::builder
