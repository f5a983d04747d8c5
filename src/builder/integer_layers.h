// SPDX-License-Identifier: Apache-2.0
// Which layers of a network with ranges are INT8. Two engines are there: with quantize_ranges and without it. Their layers'
// times and what conversions between integers and floats take say which mixture of both is the fastest.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "builder/confirm.h"
#include "passes/pass.h"

namespace tw::builder {

// What a conversion takes beside the layers.
struct ConversionCost
{
    double bytesPerMicrosecond = 0; // read and written
    double perLaunch = 0;           // microseconds
};

// The layers of sums (by PassContext::floatLayers' names) that are INT8 in `integers` and are better left in floating point;
// empty: none. `graph`: what `floats` was made of, before types and formats; `opt`: its sizes.
std::set<std::string> layersInFloat(ir::Graph const& graph, runtime::Instance const& opt, Attempt const& integers,
                                    Attempt const& floats, ConversionCost const& cost);

// The layers of sums in `graph` as bits, in the order of its nodes, for a timing cache; and back. Bits of what is no layer
// of sums are ignored.
std::vector<int64_t> asBits(ir::Graph const& graph, std::set<std::string> const& layers);
std::set<std::string> fromBits(ir::Graph const& graph, std::span<int64_t const> bits);

} // namespace tw::builder
