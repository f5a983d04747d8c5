// SPDX-License-Identifier: Apache-2.0
// Layers of SSD and of Faster R-CNN, which are standard plugins.
#include <list>

#include "parsers/caffe/node.h"

namespace tw::caffe {

using nvinfer1::PluginField;
using nvinfer1::PluginFieldType;

namespace {

// Fields with what they point to.
class Fields
{
public:
    void add(char const* name, std::vector<float> values)
    {
        std::vector<float> const& kept = floats_.emplace_back(std::move(values));
        fields_.emplace_back(name, kept.data(), PluginFieldType::kFLOAT32, int32_t(kept.size()));
    }
    void add(char const* name, std::vector<int32_t> values)
    {
        std::vector<int32_t> const& kept = ints_.emplace_back(std::move(values));
        fields_.emplace_back(name, kept.data(), PluginFieldType::kINT32, int32_t(kept.size()));
    }
    void add(char const* name, float value) { add(name, std::vector<float>{value}); }
    void add(char const* name, int32_t value) { add(name, std::vector<int32_t>{value}); }
    nvinfer1::PluginFieldCollection collection() const { return {int32_t(fields_.size()), fields_.data()}; }

private:
    std::vector<PluginField> fields_;
    std::list<std::vector<float>> floats_;
    std::list<std::vector<int32_t>> ints_;
};

template <class List>
std::vector<float> listOf(List const& list)
{
    return {list.begin(), list.end()};
}

// A plugin of the registry, or of libnvinfer's own where nobody has called initLibNvInferPlugins().
void importPlugin(CaffeNode& node, char const* type, Fields const& fields)
{
    nvinfer1::IPluginRegistry* const registry = getPluginRegistry();
    nvinfer1::IPluginCreator* creator = registry ? registry->getPluginCreator(type, "1", "") : nullptr;
    if (!creator && registry)
        creator = registry->getPluginCreator(type, "1", "tensorwright.standard");
    node.check(creator != nullptr, fmt::format("there is no plugin {}", type));
    nvinfer1::PluginFieldCollection const collection = fields.collection();
    importers::PluginPtr const plugin(creator->createPlugin(node.name().c_str(), &collection));
    node.check(plugin != nullptr, fmt::format("plugin {} refuses the parameters", type));
    auto& layer = node.addPlugin(*plugin);
    if (node.nbOutputs() > layer.getNbOutputs())
        node.invalid(fmt::format("expected {} tops blobs, found {}", layer.getNbOutputs(), node.nbOutputs()));
    node.setTops(layer);
}

void importNormalize(CaffeNode& node)
{
    node.expect(1, 1);
    auto const& p = node.layer().norm_param();
    Dims const d = node.dims();
    node.check(node.caffeRank(0) == 4, "its input is no image of four dimensions");
    int32_t const count = p.channel_shared() ? 1 : d.d[d.nbDims - 3];
    Fields fields;
    fields.add("weights", node.blob(0, "scales", Dims{1, {count}}, Random::normal(1)).floats());
    fields.add("acrossSpatial", int32_t(p.across_spatial()));
    fields.add("channelShared", int32_t(p.channel_shared()));
    fields.add("nbWeights", count);
    fields.add("eps", p.eps());
    importPlugin(node, "Normalize_TRT", fields);
}

void importPriorBox(CaffeNode& node)
{
    node.expect(2, 1);
    auto const& p = node.layer().prior_box_param();
    auto const both = [&](bool has, auto of, auto other) { return has ? of : other; };
    Fields fields;
    fields.add("minSize", listOf(p.min_size()));
    fields.add("maxSize", listOf(p.max_size()));
    fields.add("aspectRatios", listOf(p.aspect_ratio()));
    fields.add("flip", int32_t(p.flip()));
    fields.add("clip", int32_t(p.clip()));
    constexpr float kVariance = 0.1f; // of Caffe, where none is given
    std::vector<float> variance = p.variance_size() == 0 ? std::vector<float>{kVariance} : listOf(p.variance());
    if (variance.size() == 1)
        variance.resize(4, variance[0]);
    fields.add("variance", variance);
    fields.add("imgH", asInt(node, both(p.has_img_h(), p.img_h(), p.img_size()), "img_h"));
    fields.add("imgW", asInt(node, both(p.has_img_w(), p.img_w(), p.img_size()), "img_w"));
    fields.add("stepH", both(p.has_step_h(), p.step_h(), p.step()));
    fields.add("stepW", both(p.has_step_w(), p.step_w(), p.step()));
    fields.add("offset", p.offset());
    importPlugin(node, "PriorBox_TRT", fields);
}

void importDetectionOutput(CaffeNode& node)
{
    node.expect(3, node.nbOutputs());
    auto const& p = node.layer().detection_output_param();
    Fields fields;
    fields.add("shareLocation", int32_t(p.share_location()));
    fields.add("varianceEncodedInTarget", int32_t(p.variance_encoded_in_target()));
    fields.add("backgroundLabelId", p.background_label_id());
    fields.add("numClasses", asInt(node, p.num_classes(), "num_classes", 1));
    fields.add("topK", p.nms_param().top_k());
    fields.add("keepTopK", p.keep_top_k());
    fields.add("confidenceThreshold", p.confidence_threshold());
    fields.add("nmsThreshold", p.nms_param().nms_threshold());
    fields.add("inputOrder", std::vector<int32_t>{0, 1, 2});
    fields.add("confSigmoid", 0);
    fields.add("isNormalized", 1);
    fields.add("codeType", int32_t(p.code_type()) - 1);
    importPlugin(node, "NMS_TRT", fields);
}

void importRproi(CaffeNode& node)
{
    node.expect(4, node.nbOutputs());
    auto const& pooling = node.layer().roi_pooling_param();
    auto const& proposal = node.layer().region_proposal_param();
    Fields fields;
    fields.add("poolingH", asInt(node, pooling.pooled_h(), "pooled_h", 1));
    fields.add("poolingW", asInt(node, pooling.pooled_w(), "pooled_w", 1));
    fields.add("featureStride", asInt(node, proposal.feature_stride(), "feature_stride", 1));
    fields.add("preNmsTop", asInt(node, proposal.prenms_top(), "prenms_top", 1));
    fields.add("nmsMaxOut", asInt(node, proposal.nms_max_out(), "nms_max_out", 1));
    fields.add("anchorsRatioCount", asInt(node, proposal.anchor_ratio_count(), "anchor_ratio_count", 1));
    fields.add("anchorsScaleCount", asInt(node, proposal.anchor_scale_count(), "anchor_scale_count", 1));
    fields.add("iouThreshold", proposal.iou_threshold());
    fields.add("minBoxSize", float(proposal.min_box_size()));
    fields.add("spatialScale", pooling.spatial_scale());
    fields.add("anchorsRatios", listOf(proposal.anchor_ratio()));
    fields.add("anchorsScales", listOf(proposal.anchor_scale()));
    importPlugin(node, "RPROI_TRT", fields);
}

} // namespace

void addDetection(LayerMap& map)
{
    map["Normalize"] = importNormalize;
    map["PriorBox"] = importPriorBox;
    map["DetectionOutput"] = importDetectionOutput;
    map["RPROI"] = importRproi;
}

} // namespace tw::caffe
