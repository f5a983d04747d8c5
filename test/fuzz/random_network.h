// SPDX-License-Identifier: Apache-2.0
// A network that untrusted bytes describe: layers, loops, conditionals, recurrences, plugins, Q/DQ pairs, constants that a
// refit may reach. Numbers are small integers, and what could grow is clipped, so that every order of sums gives the same.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "NvInfer.h"

namespace tw::fuzz {

// Decisions, one for each byte; zeros behind the last.
class Bytes
{
public:
    Bytes(uint8_t const* data, size_t size) : at_(data), end_(data + size) {}
    int upTo(int most) { return at_ < end_ ? *at_++ % (most + 1) : 0; }
    bool flip() { return upTo(1) != 0; }
    bool isEmpty() const { return at_ == end_; }

private:
    uint8_t const *at_, *end_;
};

class RandomNetwork
{
public:
    // `plugin`: y = 2 x + 1; null: spelled out in layers.
    RandomNetwork(nvinfer1::INetworkDefinition& network, nvinfer1::IPluginV2Ext* plugin)
        : net_(network), plugin_(plugin)
    {}
    // Inputs x (float, two dimensions of which the first may be dynamic), s (INT32 scalar, a shape tensor where it counts) and
    // at most three outputs. False when a layer was refused.
    bool make(Bytes& bytes);

    bool hasDynamicRows() const { return isDynamic_; }
    bool hasPairs() const { return hasPairs_; } // of quantize and dequantize layers
    // Weights by layer and role, which the network reads until it is built.
    std::map<std::pair<std::string, nvinfer1::WeightsRole>, std::vector<float>*> const& weights() const
    {
        return weights_;
    }

private:
    using ITensor = nvinfer1::ITensor;
    using Scope = std::vector<ITensor*>;

    Scope block(Scope scope, int results, int depth);
    void statement(Scope& scope, int depth);
    ITensor* layer(Scope const& scope, int kind);
    ITensor* movement(Scope const& scope, int kind);
    ITensor* choosing(Scope const& scope, int kind);
    ITensor* weighted(Scope const& scope, int kind);
    ITensor* quantized(Scope const& scope, int kind);
    ITensor* pair(ITensor* x, int axis = -1, int count = 1);
    void loop(Scope& scope, int depth);
    void conditional(Scope& scope, int depth);

    ITensor* pick(Scope const& scope);
    ITensor* pickOfRank(Scope const& scope, int rank);
    // Sizes that the run decides are not known here: only a few layers may make more of them.
    bool mayGrow(ITensor* x);
    ITensor* partnerOf(ITensor* x, Scope const& scope); // that it broadcasts with, but for a few
    ITensor* out(nvinfer1::ILayer* layer, int i = 0);
    ITensor* clip(ITensor* x);
    ITensor* cast(ITensor* x, nvinfer1::DataType type);
    ITensor* binary(ITensor* a, ITensor* b, nvinfer1::ElementWiseOperation op);
    ITensor* total(ITensor* x); // of rank 0
    ITensor* integers(std::vector<int32_t> const& shape, std::vector<int32_t> const& values);
    ITensor* constant(std::vector<int32_t> const& shape);
    nvinfer1::Weights drawn(std::string const& name, nvinfer1::WeightsRole role, int64_t count);
    void add(Scope& scope, ITensor* t);

    nvinfer1::INetworkDefinition& net_;
    nvinfer1::IPluginV2Ext* plugin_;
    Bytes* bytes_ = nullptr;
    ITensor* s_ = nullptr;
    int budget_ = 24, growth_ = 6, constants_ = 0;
    bool isDynamic_ = false, isRefused_ = false, hasPairs_ = false;
    std::list<std::vector<float>> floats_;
    std::list<std::vector<int32_t>> integers_;
    std::map<std::pair<std::string, nvinfer1::WeightsRole>, std::vector<float>*> weights_;
};

} // namespace tw::fuzz
