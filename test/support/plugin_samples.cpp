// SPDX-License-Identifier: Apache-2.0
#include "support/plugin_samples.h"

#include <random>
#include <sstream>

namespace tw::test {

using nvinfer1::PluginFieldType;

namespace {

#define TW_BATCHED                                                                                                     \
    "shareLocation=1 backgroundLabelId=-1 numClasses=3 topK=10 keepTopK=8 scoreThreshold=0.3 iouThreshold=0.5",        \
        "t2x20x1x4 t2x20x3"
#define TW_SSD                                                                                                         \
    "shareLocation=1 varianceEncodedInTarget=0 backgroundLabelId=0 numClasses=3 topK=25 keepTopK=10 "                  \
    "confidenceThreshold=0.2 nmsThreshold=0.45 inputOrder=0,1,2 confSigmoid=0 isNormalized=1 codeType=1"
#define TW_TF                                                                                                          \
    "max_output_size_per_class=3 max_total_size=8 iou_threshold=0.5 score_threshold=0.2 pad_per_class=0 clip_boxes=1", \
        "t2x20x4 t2x20x3"
#define TW_EMBEDDINGS                                                                                                  \
    "bert_embeddings_layernorm_beta=w8 bert_embeddings_layernorm_gamma=w8 bert_embeddings_word_embeddings=w160 "       \
    "bert_embeddings_token_type_embeddings=w16 bert_embeddings_position_embeddings=w128 output_fp16=0 "
#define TW_DETECTED "num_classes=3 keep_topk=6 score_threshold=0.2 iou_threshold=0.5"
#define TW_GRID "minSize=0.2 maxSize=0.9 aspectRatios=1.,2.,0.5 variance=0.1,0.1,0.2,0.2 numLayers=2 "
#define TW_INSTANCES "epsilon=0.00001 scales=1.,2.,3. bias=0.,-1.,0.5 relu=1 alpha=0.1", "t2x3x4x5*1"
#define TW_PROPOSAL                                                                                                    \
    "input_height=80 input_width=128 rpn_stride=16 roi_min_size=0. nms_iou_threshold=0.6 pre_nms_top_n=50 "            \
    "post_nms_top_n=20 anchor_sizes=16.,40. anchor_ratios=0.5,1.,2.",                                                  \
        "t2x6x5x8 t2x24x5x8*0.7"

constexpr PluginSample kSamples[] = {
    {"BatchedNMSDynamic_TRT", "1", TW_BATCHED},
    {"BatchedNMS_TRT", "1", TW_BATCHED},
    {"BatchTilePlugin_TRT", "1", "", "t3x2 t1x2x3x4"},
    {"BeamStep", "1", "cache_indirection=1",
     "t6x9*1 i2x3x5<9 i2=2,3 i2=1,2 f2x3 i2=0,0 i2x3x5<9 i2x3<3 f2x3 f2x7*1 i2x10<9 i2<9 i2x2x4<5 i2x3x5<3"},
    {"CachedAttention", "1", "window=3 softcap=2. has_sinks=1 has_slopes=1",
     "t2x4x3x16*1 t2x2x7x16*1 t2x2x7x16*1 i2=7,4 t4*1 t4*0.1"},
    {"Clip_TRT", "1", "clipMin=-0.5 clipMax=0.5", "t2x3x4*1"},
    {"CoordConvAC", "1", "", "t2x3x4x6*1"},
    {"CropAndResize", "1", "crop_width=3 crop_height=4", "t2x3x6x7*1 t2x5x4x1"},
    {"CropAndResizeDynamic", "1", "crop_width=3 crop_height=4", "t2x3x6x7*1 t2x5x4x1"},
    {"CustomEmbLayerNormPluginDynamic", "1", TW_EMBEDDINGS "full_mask=0 mha_type_id=0", "i7x3<20 i7x3<2 i7x3<2"},
    {"CustomEmbLayerNormPluginDynamic", "2", TW_EMBEDDINGS, "i11<20 i11<2 i4=0,4,5,11 i6<2"},
    {"CustomEmbLayerNormPluginDynamic", "3", TW_EMBEDDINGS, "i11<20 i11<2 i4=0,4,5,11 i6<2"},
    {"CustomFCPluginDynamic", "1", "out_dims=4 type_id=0 W=w24", "t3x2x6x1x1*1"},
    {"CustomGeluPluginDynamic", "1", "type_id=0 bias=w8", "t3x2x8*2"},
    {"CustomQKVToContextPluginDynamic", "1", "type_id=0 hidden_size=8 num_heads=2 has_mask=1 dq_probs=0.008",
     "t7x3x24x1x1*1 i3=7,3,1"},
    {"CustomQKVToContextPluginDynamic", "2", "type_id=0 hidden_size=8 num_heads=2 has_mask=1 var_seqlen=1",
     "t11x24x1x1*1 t4x1 i4=0,4,5,11 i6<2"},
    {"CustomQKVToContextPluginDynamic", "3", "hidden_size=8 num_heads=2", "t1x24x11x1*1 i4=0,4,5,11 i6<2"},
    {"CustomSkipLayerNormPluginDynamic", "1", "type_id=0 ld=8 beta=w8 gamma=w8 bias=w8", "t5x2x8*1 t5x2x8*1"},
    {"CustomSkipLayerNormPluginDynamic", "2", "type_id=0 beta=w8 gamma=w8", "t9x8x1x1*1 t9x8x1x1*1"},
    {"CustomSkipLayerNormPluginDynamic", "3", "beta=w8 gamma=w8", "t1x8x9x1*1 t1x8x9x1*1"},
    {"CustomSkipLayerNormPluginDynamic", "4", "beta=w8 gamma=w8", "t1x8x9x1*1 t1x8x9x1*1"},
    {"DecodeBbox3DPlugin", "1",
     "point_cloud_range=-4.,-3.,-2.,4.,3.,2. anchors=1.,2.,1.5,0.,1.,2.,1.5,1.57 anchor_bottom_height=-1. "
     "dir_offset=0.78 dir_limit_offset=0. num_dir_bins=2 score_thresh=0.6",
     "f2x3x4x2*2 f2x3x4x14*1 f2x3x4x4*1"},
    {"DetectionLayer_TRT", "1", TW_DETECTED, "t2x20x12x1x1*1 t2x20x3x1x1 t2x20x4"},
    {"DisentangledAttention_TRT", "1", "span=4 factor=0.25", "t3x12x12*1 t3x12x8*1 t3x12x8*1"},
    {"EfficientNMS_Explicit_TF_TRT", "1", TW_TF},
    {"EfficientNMS_Implicit_TF_TRT", "1", TW_TF},
    {"EfficientNMS_ONNX_TRT", "1",
     "score_threshold=0.2 iou_threshold=0.5 max_output_boxes_per_class=6 center_point_box=0", "t2x20x4 t2x20x3"},
    {"EfficientNMS_TRT", "1",
     "score_threshold=0.2 iou_threshold=0.5 max_output_boxes=8 background_class=-1 score_activation=0 box_coding=0",
     "t2x20x4 t2x20x3"},
    {"FlattenConcat_TRT", "1", "axis=1 ignoreBatch=0", "t2x3x4x5*1 t2x1x2x2*1"},
    {"fMHA_V2", "1", "", "t2x9x3x3x8*1"},
    {"fMHCA", "1", "", "t2x9x3x8*1 t2x5x3x2x8*1"},
    {"GenerateDetection_TRT", "1", TW_DETECTED " image_size=3,80,100", "t2x20x12x1x1*1 t2x20x3x1x1 t2x20x4*60"},
    {"GenerateSample", "1", "", "t3x9*1 i3x6<9 i3=2,3,4 i3=1,2,2 f3x6*1 i3x10<9 i2<9 i3x2x4<5 i3x2x4<5"},
    {"GridAnchor_TRT", "1", TW_GRID "featureMapShapes=4,2", ""},
    {"GridAnchorRect_TRT", "1", TW_GRID "featureMapShapes=4,5,2,3", ""},
    {"GroupNorm", "1", "epsilon=0.00001 bSwish=1", "t2x64x3x4*1 f64*1 f64*1"},
    {"GroupNormalizationPlugin", "1", "eps=0.00001 num_groups=3", "f2x6x3x4*1 f6*1 f6*1"},
    {"InstanceNormalization_TRT", "1", TW_INSTANCES},
    {"InstanceNormalization_TRT", "2", TW_INSTANCES},
    {"LayerNorm", "1", "epsilon=0.00001 axis=-1", "t2x3x8*1 t8*1 t8*1"},
    {"LReLU_TRT", "1", "negSlope=0.1", "t2x3x4*1"},
    {"MatMulNBits", "1", "K=64 bits=4 block_size=32 zero_points=1 g_idx=0 bias=1",
     "t2x3x64*1 i5x2x4<2147483647 f5x2 f5x2*1 t5*1"},
    {"MultilevelCropAndResize_TRT", "1", "pooled_size=3 image_size=3,64,96",
     "t2x12x4*80 t2x3x16x24 t2x3x8x12 t2x3x4x6 t2x3x2x3 t2x3x1x2"},
    {"MultilevelProposeROI_TRT", "1",
     "prenms_topk=30 keep_topk=10 fg_threshold=0.1 iou_threshold=0.5 image_size=3,64,64",
     "t2x768x4x1*1 t2x768x1x1 t2x192x4x1*1 t2x192x1x1 t2x48x4x1*1 t2x48x1x1 t2x12x4x1*1 t2x12x1x1 t2x3x4x1*1 "
     "t2x3x1x1"},
    {"MultiscaleDeformableAttnPlugin_TRT", "1", "", "t2x60x3x8*1 i2x2=6,8,3,4 i2=0,48 t2x7x3x2x4x2 t2x7x3x2x4"},
    {"NMS_TRT", "1", TW_SSD, "t2x80x1x1*1 t2x60x1x1 t2x2x80x1"},
    {"NMSDynamic_TRT", "1", TW_SSD, "t2x80x1x1*1 t2x60x1x1 t1x2x80x1"},
    {"Normalize_TRT", "1", "weights=1.,2.,3. acrossSpatial=0 channelShared=0 nbWeights=3 eps=0.00001", "t2x3x4x5*1"},
    {"PillarScatterPlugin", "1", "dense_shape=5,7", "t2x6x4*1 i2x6x4<7 i2=6,3"},
    {"PriorBox_TRT", "1",
     "minSize=30. maxSize=60. aspectRatios=2. flip=1 clip=0 variance=0.1,0.1,0.2,0.2 imgH=0 imgW=0 stepH=0. stepW=0. "
     "offset=0.5",
     "t2x5x3x4 t2x3x30x40"},
    {"Proposal", "1", TW_PROPOSAL},
    {"ProposalDynamic", "1", TW_PROPOSAL},
    {"ProposalLayer_TRT", "1", "prenms_topk=50 keep_topk=20 iou_threshold=0.7 image_size=3,64,64",
     "t2x1023x2x1 t2x1023x4x1*1"},
    {"PyramidROIAlign_TRT", "1", "fpn_scale=50 pooled_size=3 image_size=128,96 roi_coords_absolute=0",
     "t2x8x4 t2x3x32x24*1 t2x3x16x12*1 t2x3x8x6*1 t2x3x4x3*1"},
    {"Region_TRT", "1", "num=3 coords=4 classes=5", "t2x30x4x4*1"},
    {"Reorg_TRT", "1", "stride=2", "t2x8x4x6*1"},
    {"ResizeNearest_TRT", "1", "scale=1.5", "t2x3x4x6*1"},
    {"ROIAlign_TRT", "1", "output_height=3 output_width=4 sampling_ratio=2 spatial_scale=0.5",
     "t2x3x8x8*1 t6x4*12 i6<2"},
    {"RPROI_TRT", "1",
     "poolingH=3 poolingW=2 featureStride=16 preNmsTop=50 nmsMaxOut=10 anchorsRatioCount=3 anchorsScaleCount=3 "
     "iouThreshold=0.7 minBoxSize=16. spatialScale=0.0625 anchorsRatios=0.5,1.,2. anchorsScales=1.,2.,4.",
     "t2x18x5x7 t2x36x5x7*0.5 t2x4x5x7*1 t2x3=80,112,1"},
    {"ScatterND", "1", "", "t4x5x3*1 i2x2=0,4,3,1 t2x3*1"},
    {"SeqLen2Spatial", "1", "", "t2x12x5*1 t5*1 t2x12x5*1 f2x5x3x4"},
    {"SpecialSlice_TRT", "1", "", "t2x5x6*1"},
    {"Split", "1", "axis=1 lengths=2,3", "t2x5x3*1"},
    {"SplitGeLU", "1", "", "t2x3x16*1"},
    {"TensorScatter", "1", "axis=-2", "t2x3x5x4*1 t2x3x2x4*1 i2=1,3"},
    {"VoxelGeneratorPlugin", "1",
     "max_num_points_per_voxel=3 max_voxels=12 point_cloud_range=-2.,-2.,-3.,2.,2.,1. voxel_feature_num=9 "
     "voxel_size=0.5,0.5,4.",
     "f2x50x4*2 i2=50,30"},
};

std::vector<std::string> partsOf(std::string const& text, char separator)
{
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, separator);)
        if (!part.empty())
            parts.push_back(part);
    return parts;
}

std::vector<double> numbersOf(std::string const& text)
{
    std::vector<double> numbers;
    for (std::string const& n : partsOf(text, ','))
        numbers.push_back(std::stod(n));
    return numbers;
}

} // namespace

std::span<PluginSample const> pluginSamples()
{
    return kSamples;
}

nvinfer1::PluginField SampleField::field() const
{
    if (type == PluginFieldType::kINT32)
        return {name.c_str(), integers.data(), type, int32_t(integers.size())};
    return {name.c_str(), floats.data(), type, int32_t(floats.size())};
}

std::vector<SampleField> fieldsOf(PluginSample const& sample)
{
    std::vector<SampleField> fields;
    std::mt19937 random(1);
    for (std::string const& part : partsOf(sample.fields, ' ')) {
        size_t const at = part.find('=');
        std::string const value = part.substr(at + 1);
        SampleField f{part.substr(0, at), PluginFieldType::kFLOAT32, {}, {}};
        if (value[0] == 'w') {
            f.floats.resize(size_t(std::stoi(value.substr(1))));
            for (float& v : f.floats)
                v = std::uniform_real_distribution<float>(-1, 1)(random);
        } else if (value.find('.') != std::string::npos) {
            for (double v : numbersOf(value))
                f.floats.push_back(float(v));
        } else {
            f.type = PluginFieldType::kINT32;
            for (double v : numbersOf(value))
                f.integers.push_back(int32_t(v));
        }
        fields.push_back(std::move(f));
    }
    return fields;
}

std::vector<SampleInput> inputsOf(PluginSample const& sample, unsigned seed)
{
    std::vector<SampleInput> inputs;
    std::mt19937 random(seed);
    for (std::string const& part : partsOf(sample.inputs, ' ')) {
        size_t const at = std::min(part.find_first_of("*<="), part.size());
        char const how = at < part.size() ? part[at] : '*';
        std::vector<double> const numbers = at < part.size() ? numbersOf(part.substr(at + 1)) : std::vector<double>{1};
        SampleInput in{part[0], {}, {}};
        size_t count = 1;
        for (std::string const& d : partsOf(part.substr(1, at - 1), 'x')) {
            in.shape.push_back(std::stoi(d));
            count *= size_t(in.shape.back());
        }
        double const low = at < part.size() ? -numbers[0] : 0;
        for (size_t i = 0; i < count; ++i)
            in.values.push_back(how == '='   ? numbers[i % numbers.size()]
                                : how == '<' ? double(random() % unsigned(numbers[0]))
                                             : std::uniform_real_distribution<double>(low, numbers[0])(random));
        inputs.push_back(std::move(in));
    }
    return inputs;
}

nvinfer1::IPluginV2* makePlugin(nvinfer1::IPluginCreator& creator, std::vector<SampleField> const& fields)
{
    std::string const name = creator.getPluginName();
    if (name == "Split") {
        std::string bytes = "tensorwright Split 1\n";
        auto const number = [&](uint64_t v) { bytes.append(reinterpret_cast<char const*>(&v), sizeof v); };
        number(fields.size());
        for (SampleField const& f : fields) {
            number(f.name.size());
            bytes += f.name;
            number(uint64_t(f.type));
            number(f.integers.size() * sizeof(int32_t));
            bytes.append(reinterpret_cast<char const*>(f.integers.data()), f.integers.size() * sizeof(int32_t));
        }
        return creator.deserializePlugin("layer", bytes.data(), bytes.size());
    }
    std::vector<nvinfer1::PluginField> list;
    for (SampleField const& f : fields)
        list.push_back(f.field());
    nvinfer1::PluginFieldCollection const given{int32_t(list.size()), list.data()};
    return creator.createPlugin("layer", &given);
}

} // namespace tw::test
