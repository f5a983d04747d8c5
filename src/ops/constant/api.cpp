// SPDX-License-Identifier: Apache-2.0
// Constants are values of the graph, not nodes: there is no op beside this file. In implicit batch mode a constant has
// a batch dimension of 1, which broadcasts.
#include "api/network/setter.h"

using namespace tw;
using namespace tw::api;

namespace {

struct ConstantLayer final : LayerObject<nvinfer1::IConstantLayer>
{
    nvinfer1::Dims dims{};
    nvinfer1::Weights weights{};

    std::vector<nvinfer1::Weights> heldWeights() const override { return {weights}; }
    nvinfer1::DataType naturalOutputType(int) const override
    {
        return weights.type == nvinfer1::DataType::kINT32 ? nvinfer1::DataType::kINT32 : nvinfer1::DataType::kFLOAT;
    }

    // One wildcard takes what the number of weights leaves for it.
    Result<void> lower(LowerContext& ctx) override
    {
        Extents shape;
        if (ctx.implicitBatch())
            shape.push(1);
        if (shape.rank + dims.nbDims > kMaxRank)
            return error("dimensions {} are too many beside the batch (limit {})", str(dims), kMaxRank);
        int wildcard = -1;
        int64_t rest = 1;
        for (int i = 0; i < dims.nbDims; ++i) {
            if (dims.d[i] < 0 && wildcard >= 0)
                return error("dimensions " + str(dims) + " have more than one wildcard");
            if (dims.d[i] < 0)
                wildcard = shape.rank;
            else
                rest = ir::mulSat(rest, dims.d[i]);
            shape.push(dims.d[i]);
        }
        if (wildcard >= 0) {
            if (rest == 0 || weights.count % rest != 0)
                return error("dimensions {} do not divide the {} weights", str(dims), weights.count);
            shape[wildcard] = weights.count / rest;
        }
        TW_ASSIGN(ir::Value * v, ctx.weights(weights, shape, toCore(weights.type), ir::WeightsRole::kConstant));
        ctx.output(0, v);
        return {};
    }
};

Result<void> check(nvinfer1::Dims const& dims, nvinfer1::Weights const& weights, char const* what)
{
    constexpr int kMostDims = 7; // of the layer, not of tensors
    TW_TRY(checkDims(dims, -1, std::string(what) + ": dimensions"));
    if (dims.nbDims > kMostDims)
        return invalidArgument(
            "{}: dimensions {} are {}, a constant has at most {}; give it fewer and reshape it with a shuffle layer",
            what, str(dims), dims.nbDims, kMostDims);
    return checkWeights(weights, std::string(what) + ": constant");
}

TW_OBJECT(nvinfer1::IConstantLayer, ConstantLayer)

} // namespace

namespace nvinfer1 {

IConstantLayer* INetworkDefinition::addConstant(Dims dimensions, Weights weights) noexcept
{
    return addLayer<ConstantLayer>(*this, LayerType::kCONSTANT, "Constant", {}, [&](ConstantLayer& l) {
        l.dims = dimensions;
        l.weights = weights;
        return check(dimensions, weights, "addConstant");
    });
}

TW_PROPERTY(IConstantLayer, Weights, setWeights, getWeights, weights, check(self.dims, value, "setWeights"))
TW_PROPERTY(IConstantLayer, Dims, setDimensions, getDimensions, dims, check(value, self.weights, "setDimensions"))

} // namespace nvinfer1
