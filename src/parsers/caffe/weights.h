// SPDX-License-Identifier: Apache-2.0
// The arrays of layers: of the binary model, or random where there is none, as speed needs no others.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "importers/common/node.h"
#include "parsers/caffe/read.h"

namespace tw::caffe {

using importers::Constant;
using importers::ImportContext;
using nvinfer1::DataType;

// How weights without a model are drawn.
struct Random
{
    static Random normal(double deviation) { return {0, deviation, true}; }
    static Random uniform(double low, double high) { return {(low + high) / 2, (high - low) / 2, false}; }
    double centre, spread; // spread: the deviation, or half of the width
    bool isNormal;
};

// An array in FP32 with the shape that its file gives.
struct Blob
{
    std::vector<int64_t> shape; // of 4 where the file gives four numbers; of 1 where it gives none
    std::vector<float> values;
    bool isHalf = false; // in the file
};
// what: for errors, which the numbers' count, a shape that differs from it, or missing numbers are.
Blob numbersOf(std::string_view bytes, std::string const& what);

class WeightSource
{
public:
    // model: the bytes of the binary model, which it points into; nothing: random weights. type: of weights in the network.
    WeightSource(std::optional<std::string_view> model, DataType type);

    bool isRandom() const { return isRandom_; }
    DataType type() const { return type_; }
    // Arrays of a layer; none of one that the model has not, or without a model.
    std::vector<std::string_view> const& blobsOf(std::string const& layer) const;
    // Random numbers into c. Others for each layer and array.
    void draw(Constant& c, Random const& random);

private:
    bool isRandom_;
    DataType type_;
    std::unordered_map<std::string_view, std::vector<std::string_view>> layers_;
    std::vector<float> normal_, uniform_; // drawn once: numbers go round in them
    size_t next_ = 0;
};

} // namespace tw::caffe
