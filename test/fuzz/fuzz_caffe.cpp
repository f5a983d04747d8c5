// SPDX-License-Identifier: Apache-2.0
// The Caffe parser on untrusted files, through the public API: no crash, and every refusal has a reason. The first byte says how:
// bit 0: with an implicit batch; bit 1: FP16 weights; bit 2: the other bytes are decisions of which a network is made, else they are
// a text and, behind a zero byte, a binary model.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "NvCaffeParser.h"
#include "fuzz/onnx_client.h"
#include "parsers/wire.h"

namespace {

using namespace tw::test;

struct Parameters
{
    char const* message;
    std::vector<char const*> fields; // "name:" and what values: # a number, ? true or false, else the words themselves
};
std::vector<Parameters> const& parameters()
{
    static std::vector<Parameters> const all{
        {"convolution_param",
         {"num_output: #", "kernel_size: #", "kernel_size: #", "stride: #", "pad: #", "dilation: #", "group: #",
          "bias_term: ?", "kernel_h: #", "kernel_w: #", "stride_w: #", "pad_h: #"}},
        {"pooling_param",
         {"pool: AVE", "pool: MAX", "kernel_size: #", "stride: #", "pad: #", "global_pooling: ?", "kernel_h: #",
          "round_mode: FLOOR", "torch_pooling: ?", "pool: STOCHASTIC"}},
        {"inner_product_param", {"num_output: #", "axis: #", "transpose: ?", "bias_term: ?"}},
        {"lrn_param", {"local_size: #", "norm_region: WITHIN_CHANNEL", "beta: #", "alpha: #", "k: #"}},
        {"scale_param", {"axis: #", "num_axes: #", "bias_term: ?"}},
        {"bias_param", {"axis: #", "num_axes: #"}},
        {"batch_norm_param", {"eps: #", "scale_bias: ?"}},
        {"eltwise_param", {"operation: PROD", "operation: MAX", "coeff: #", "coeff: #", "coeff: -1"}},
        {"concat_param", {"axis: #", "concat_dim: #"}},
        {"slice_param", {"axis: #", "slice_point: #", "slice_point: #", "slice_dim: #"}},
        {"crop_param", {"axis: #", "offset: #", "offset: #"}},
        {"reduction_param", {"operation: ASUM", "operation: SUMSQ", "operation: MEAN", "axis: #", "coeff: #"}},
        {"reshape_param",
         {"axis: #", "num_axes: #", "shape { dim: 0 dim: # dim: -1 }", "shape { dim: # dim: # dim: # }"}},
        {"flatten_param", {"axis: #", "end_axis: #"}},
        {"permute_param", {"order: 0", "order: #", "order: #", "order: #"}},
        {"softmax_param", {"axis: #"}},
        {"tile_param", {"axis: #", "tiles: #"}},
        {"argmax_param", {"axis: #", "top_k: #", "out_max_val: ?"}},
        {"power_param", {"power: #", "scale: #", "shift: #"}},
        {"exp_param", {"base: #", "scale: #", "shift: #"}},
        {"log_param", {"base: #", "scale: #", "shift: #"}},
        {"prelu_param", {"channel_shared: ?"}},
        {"relu_param", {"negative_slope: #"}},
        {"clip_param", {"min: #", "max: #"}},
        {"mvn_param", {"normalize_variance: ?", "across_channels: ?"}},
        {"norm_param", {"across_spatial: ?", "channel_shared: ?"}},
        {"embed_param", {"num_output: #", "input_dim: #", "bias_term: ?"}},
        {"interp_param", {"height: #", "width: #", "zoom_factor: #", "shrink_factor: #"}},
        {"upsample_param", {"scale: #", "scale_h: #", "upsample_w: #"}},
        {"shuffle_channel_param", {"group: #"}},
        {"prior_box_param",
         {"min_size: #", "max_size: #", "aspect_ratio: #", "flip: ?", "clip: ?", "variance: #", "img_size: #",
          "step: #"}},
        {"detection_output_param",
         {"num_classes: #", "keep_top_k: #", "code_type: CENTER_SIZE", "nms_param { top_k: # }", "share_location: ?"}},
        {"region_proposal_param",
         {"prenms_top: #", "nms_max_out: #", "feature_stride: #", "anchor_ratio_count: 1", "anchor_scale_count: 1",
          "anchor_ratio: #", "anchor_scale: #", "min_box_size: #"}},
        {"roi_pooling_param", {"pooled_h: #", "pooled_w: #"}},
    };
    return all;
}

struct Kind
{
    char const* type;
    int bottoms, tops;
    char const* message; // of its parameters; nullptr: it has none
};
constexpr Kind kKinds[] = {{"Convolution", 1, 1, "convolution_param"},
                           {"Deconvolution", 1, 1, "convolution_param"},
                           {"DepthwiseConvolution", 1, 1, "convolution_param"},
                           {"Pooling", 1, 1, "pooling_param"},
                           {"InnerProduct", 1, 1, "inner_product_param"},
                           {"LRN", 1, 1, "lrn_param"},
                           {"Scale", 1, 1, "scale_param"},
                           {"Scale", 2, 1, "scale_param"},
                           {"Bias", 1, 1, "bias_param"},
                           {"Bias", 2, 1, "bias_param"},
                           {"BatchNorm", 1, 1, "batch_norm_param"},
                           {"Eltwise", 2, 1, "eltwise_param"},
                           {"Eltwise", 3, 1, "eltwise_param"},
                           {"Axpy", 3, 1, nullptr},
                           {"Concat", 2, 1, "concat_param"},
                           {"Slice", 1, 2, "slice_param"},
                           {"Crop", 2, 1, "crop_param"},
                           {"Reduction", 1, 1, "reduction_param"},
                           {"Reshape", 1, 1, "reshape_param"},
                           {"Flatten", 1, 1, "flatten_param"},
                           {"Permute", 1, 1, "permute_param"},
                           {"Softmax", 1, 1, "softmax_param"},
                           {"Tile", 1, 1, "tile_param"},
                           {"ArgMax", 1, 1, "argmax_param"},
                           {"Power", 1, 1, "power_param"},
                           {"Exp", 1, 1, "exp_param"},
                           {"Log", 1, 1, "log_param"},
                           {"PReLU", 1, 1, "prelu_param"},
                           {"ReLU", 1, 1, "relu_param"},
                           {"Clip", 1, 1, "clip_param"},
                           {"MVN", 1, 1, "mvn_param"},
                           {"Normalize", 1, 1, "norm_param"},
                           {"Embed", 1, 1, "embed_param"},
                           {"Interp", 1, 1, "interp_param"},
                           {"Upsample", 1, 1, "upsample_param"},
                           {"ShuffleChannel", 1, 1, "shuffle_channel_param"},
                           {"PriorBox", 2, 1, "prior_box_param"},
                           {"DetectionOutput", 3, 2, "detection_output_param"},
                           {"RPROI", 4, 2, "region_proposal_param"},
                           {"Split", 1, 2, nullptr},
                           {"Silence", 1, 0, nullptr},
                           {"Dropout", 1, 1, nullptr},
                           {"Sigmoid", 1, 1, nullptr},
                           {"Threshold", 1, 1, nullptr},
                           {"BNLL", 1, 1, nullptr}};

// A network of decisions: each byte is one; behind the last all are 0.
class Network
{
public:
    Network(uint8_t const* data, size_t size) : data_(data), size_(size) { make(); }
    std::string text, model;

private:
    size_t below(size_t n) { return (at_ < size_ ? data_[at_++] : 0) % n; }
    std::string number()
    {
        constexpr char const* kNumbers[] = {
            "1",  "2",   "3",  "1",  "2",   "0",    "4",     "-1",         "5",          "6",           "7",    "8",
            "-2", "0.5", "10", "16", "100", "1000", "65536", "2147483647", "4294967295", "-2147483648", "1e30", "inf"};
        return kNumbers[below(below(8) ? 12 : std::size(kNumbers))];
    }
    std::string blob() { return names_[names_.size() - 1 - below(std::min<size_t>(names_.size(), 6))]; }
    void addParameters(char const* message)
    {
        for (Parameters const& p : parameters()) {
            if (std::string_view(p.message) != message)
                continue;
            text += " " + std::string(message) + " {";
            for (char const* field : p.fields) {
                if (below(3) == 0)
                    continue;
                text += ' ';
                for (char const c : std::string_view(field))
                    text += c == '#' ? number() : c == '?' ? (below(2) ? "true" : "false") : std::string(1, c);
            }
            text += " }";
        }
    }
    void addArrays(std::string const& name)
    {
        std::vector<std::string> blobs;
        for (size_t n = below(6); n > 0; --n) {
            std::vector<float> values(1 + below(40), 0.5f);
            blobs.push_back(below(4) ? wire::blob({int64_t(values.size())}, values)
                                     : wire::bytes(5, wire::raw(values)));
        }
        model += wire::layer(name, blobs);
    }
    void make()
    {
        for (size_t i = 0, n = 1 + below(3); i < n; ++i) {
            names_.push_back("x" + std::to_string(i));
            text += "input: '" + names_.back() + "' input_shape { dim: 1";
            for (int d = 0; d < 3; ++d)
                text += " dim: " + std::to_string(1 + below(12));
            text += " }\n";
        }
        for (int layers = 0; at_ < size_ && layers < 40; ++layers) {
            Kind const& kind = kKinds[below(std::size(kKinds))];
            std::string const name = "l" + std::to_string(layers);
            text += "layer { name: '" + name + "' type: '" + kind.type + "'";
            bool const isInPlace = below(8) == 0;
            std::string const first = blob();
            for (int i = 0; i < kind.bottoms; ++i)
                text += " bottom: '" + (i == 0 ? first : blob()) + "'";
            for (int i = 0; i < kind.tops; ++i) {
                std::string const top = isInPlace && i == 0 ? first : name + "_" + std::to_string(i);
                text += " top: '" + top + "'";
                made_.push_back(top);
            }
            if (kind.message)
                addParameters(kind.message);
            if (std::string_view(kind.type) == "RPROI")
                addParameters("roi_pooling_param");
            text += " }\n";
            addArrays(name);
            names_.insert(names_.end(), made_.begin(), made_.end());
            made_.clear();
        }
    }

    uint8_t const* data_;
    size_t size_, at_ = 0;
    std::vector<std::string> names_, made_;
};

// Weights of a text that names large sizes take long to draw, and tell nothing more.
bool hasLongNumber(std::string const& text)
{
    int digits = 0;
    for (char const c : text)
        if ((digits = c >= '0' && c <= '9' ? digits + 1 : 0) > 4)
            return true;
    return false;
}

void parse(std::string const& text, std::string const* model, bool isImplicit, nvinfer1::DataType type)
{
    tw::fuzz::QuietLogger logger;
    std::unique_ptr<nvinfer1::IBuilder> const builder(nvinfer1::createInferBuilder(logger));
    std::unique_ptr<nvinfer1::INetworkDefinition> const network(builder->createNetworkV2(isImplicit ? 0 : 1));
    std::unique_ptr<nvcaffeparser1::ICaffeParser> const parser(nvcaffeparser1::createCaffeParser());
    auto const bytes = [](std::string const& s) { return reinterpret_cast<uint8_t const*>(s.data()); };
    auto const* const table = parser->parseBuffers(bytes(text), text.size(), model ? bytes(*model) : nullptr,
                                                   model ? model->size() : 0, *network, type);
    if (!table && logger.errors == 0)
        logger.finding("a refusal without a reason");
    // Whatever stands in the network can be asked for its types and shapes, and has its place in the table.
    for (int i = 0; i < network->getNbLayers(); ++i) {
        nvinfer1::ILayer& layer = *network->getLayer(i);
        for (int k = 0; k < layer.getNbOutputs(); ++k) {
            nvinfer1::ITensor* const t = layer.getOutput(k);
            if (!t || t->getDimensions().nbDims > nvinfer1::Dims::MAX_DIMS)
                logger.finding("a layer without an output, or one of too many dimensions");
            if (table && t->getDimensions().nbDims < 0)
                logger.finding("a layer whose output has no dimensions");
            if (nvinfer1::ITensor const* const found = table ? table->find(t->getName()) : nullptr; found && found != t)
                logger.finding("a tensor with the name of another blob");
        }
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(uint8_t const* data, size_t size)
{
    if (size < 1)
        return 0;
    uint8_t const how = data[0];
    bool const isImplicit = how & 1;
    auto const type = how & 2 ? nvinfer1::DataType::kHALF : nvinfer1::DataType::kFLOAT;
    if (how & 4) {
        Network const network(data + 1, size - 1);
        if (!hasLongNumber(network.text))
            parse(network.text, nullptr, isImplicit, type);
        parse(network.text, &network.model, isImplicit, type);
        return 0;
    }
    std::string const all(reinterpret_cast<char const*>(data + 1), size - 1);
    size_t const end = all.find('\0');
    std::string const text = all.substr(0, end);
    if (end != std::string::npos) {
        std::string const model = all.substr(end + 1);
        parse(text, &model, isImplicit, type);
    } else if (!hasLongNumber(text)) {
        parse(text, nullptr, isImplicit, type);
    }
    return 0;
}
