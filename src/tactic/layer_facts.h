// SPDX-License-Identifier: Apache-2.0
// What the inspector says of a layer under the names that 8.5 publishes, which readers of exported layer information
// look for. Each op says its own (OpDef::inspect), from its attributes; an op without that is told by its name alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/graph.h"

namespace tw::ops {

// Weights as published: Float, Half, Int8, Int32, and how many.
struct WeightsFact
{
    char const* type = "Float";
    int64_t count = 0;
};

using Fact = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                          std::vector<std::string>, WeightsFact>;

struct LayerFacts
{
    ir::Node const& node;
    std::string_view tactic; // its name; empty where there is none

    std::string layerType;     // kind of kernel: CaskConvolution
    std::string parameterType; // kind of layer: Convolution; empty for what has no published one
    std::vector<std::pair<std::string, Fact>> parameters;

    template <class Attrs>
    Attrs const& attrs() const
    {
        return static_cast<Attrs const&>(*node.attrs);
    }
    // The input, or null where the node has none there.
    ir::Value const* input(size_t i) const { return i < node.inputs.size() ? node.inputs[i] : nullptr; }
    bool tacticHas(std::string_view word) const { return tactic.find(word) != std::string_view::npos; }

    // Both kinds at once.
    void kind(std::string const& type)
    {
        layerType = type;
        parameterType = type;
    }
    void kind(std::string const& layer, std::string const& parameter)
    {
        layerType = layer;
        parameterType = parameter;
    }
    void add(char const* key, Fact value) { parameters.emplace_back(key, std::move(value)); }
    void addFlag(char const* key, bool value) { add(key, int64_t(value)); }
    // Type and count of a constant; nothing for null and for what is computed.
    void addWeights(char const* key, ir::Value const* v);
};

// The dimensions, -1 where they are not known.
std::vector<int64_t> numbersOf(ir::Shape const& shape);

LayerFacts factsOf(ir::Node const& node, std::string_view tactic);

} // namespace tw::ops
