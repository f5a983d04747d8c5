// SPDX-License-Identifier: Apache-2.0
// One layer of a Caffe network. Caffe counts axes with the batch; tensors of a network with an implicit batch have none.
//
// Tensors may have more dimensions than Caffe's blobs: what fully connected layers, reductions and Flatten give ends in 1s
// here, [n, k, 1, 1], as layers behind them want it. `rank` is Caffe's number of dimensions, by which axes below 0 count.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "parsers/caffe/weights.h"
#include "tw_caffe.pb.h"

namespace tw::caffe {

using importers::ImportedNetwork;
using importers::Size;
using importers::Sizes;
using nvinfer1::Dims;
using nvinfer1::ITensor;

struct BlobTensor
{
    ITensor* tensor = nullptr;
    int rank = 0; // of Caffe's blob, with the batch
};

class CaffeNode final : public ImportContext
{
public:
    CaffeNode(ImportedNetwork& to, tw_caffe::LayerParameter const& layer, WeightSource& weights,
              std::vector<BlobTensor> bottoms);

    tw_caffe::LayerParameter const& layer() const { return layer_; }
    // Its parameters are messages: there are no attributes.
    bool hasAttr(char const*) const override { return false; }
    std::optional<importers::Attribute> attribute(char const*) const override { return {}; }

    bool isImplicit() const { return shift_ == 1; }
    // Caffe's axis of bottom i, counted from the end where negative, as that of its tensor. The batch's is an error with an
    // implicit batch.
    int axisOf(int64_t axis, int i = 0) const;
    // Axis 1 of images; of more dimensions, as regions of interest have, the third from the end, as in 8.5.
    int channelAxis(int i = 0) const;
    int caffeRank(int i) const { return bottoms_[size_t(i)].rank; }
    ITensor& x(int i = 0) const { return *bottoms_[size_t(i)].tensor; }
    Dims dims(int i = 0) const { return x(i).getDimensions(); }
    int shift() const { return shift_; } // Caffe's axis less the tensor's
    // x in at least n dimensions behind the batch, by 1s at the end.
    ITensor& atLeast(ITensor& x, int n);
    // Keeps the first dimensions; -1 among the others is what is left.
    ITensor& shaped(ITensor& x, int kept, std::vector<int64_t> const& others);

    // Sizes of x with its batch as x has it when the engine is built: an explicit batch of 1 may become another one.
    Sizes sizesWithBatch(ITensor& x);

    // "<layer>: expected <n> bottom blobs, found <m>"
    void expect(int bottoms, int tops) const;
    void setTop(int i, ITensor& y, int rank);
    void setTop(ITensor& y) { setTop(0, y, caffeRank(0)); }
    std::vector<BlobTensor> const& tops() const { return tops_; }
    // A plugin of all bottoms; its outputs become the tops, of which it may not have fewer.
    nvinfer1::IPluginV2Layer& addPlugin(nvinfer1::IPluginV2& plugin);
    void setTops(nvinfer1::IPluginV2Layer& layer);

    // ---- weights
    WeightSource& source() const { return weights_; }
    int nbBlobs() const { return int(weights_.blobsOf(layer_.name()).size()); }
    // Array i of dims.volume() numbers; what: for errors. FP32, finite or infinite.
    Constant blob(int i, char const* what, Dims const& dims, Random const& random);
    // Array i as it is in the file.
    Blob blob(int i, char const* what) const;
    // The same if the layer has one: with a model that has it, without a model where `wanted`. Of one that is wanted and
    // missing an error is logged, as in 8.5, and the layer does without.
    std::optional<Constant> optionalBlob(int i, bool wanted, char const* what, Dims const& dims, Random const& random);
    // In the type of weights that the caller of the parser chose; an error where FP16 does not hold a number.
    nvinfer1::Weights stored(Constant const& c) const;
    nvinfer1::Weights stored(std::optional<Constant> const& c) const;

    // x scale + shift, a number or one for each index of the axis, to a power.
    ITensor& scaled(ITensor& x, double scale, double shift, double power = 1);
    ITensor& scaled(ITensor& x, int axis, Constant const* scale, Constant const* shift);
    // c, of the extent of one axis of x, as a tensor of the rank of x.
    ITensor& along(ITensor& x, int axis, Constant const& c);

private:
    tw_caffe::LayerParameter const& layer_;
    WeightSource& weights_;
    std::vector<BlobTensor> bottoms_, tops_;
    int shift_;
};

// A number of a text that becomes one of the API's, which are of 32 bits with a sign.
int32_t asInt(CaffeNode const& node, uint32_t value, char const* what, uint32_t least = 0);

using Import = void (*)(CaffeNode& node);
using LayerMap = std::map<std::string_view, Import>;

// What each file of layers/ brings.
void addActivations(LayerMap& map);
void addArithmetic(LayerMap& map);
void addConvolutions(LayerMap& map);
void addDetection(LayerMap& map);
void addNormalizations(LayerMap& map);
void addPooling(LayerMap& map);
void addResizing(LayerMap& map);
void addShapes(LayerMap& map);

} // namespace tw::caffe
