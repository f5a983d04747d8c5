// SPDX-License-Identifier: Apache-2.0
// Parameter structs of the plugins in libnvinfer_plugin.
#ifndef TENSORWRIGHT_NV_INFER_PLUGIN_UTILS_H
#define TENSORWRIGHT_NV_INFER_PLUGIN_UTILS_H

#include "NvInferRuntimeCommon.h"

#if defined(__GNUC__)
// Deprecated names are declared with the help of other deprecated names; only uses in client code shall warn.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {
namespace plugin {

/// Four numbers, such as paddings.
struct Quadruple
{
    int32_t data[4]; ///< The numbers.
};

/// Default boxes of SSD (PriorBox_TRT), one set for each cell of a feature map.
struct PriorBoxParameters
{
    float* minSize;          ///< Small box edges in pixels.
    float* maxSize;          ///< Large box edges in pixels, as many as minSize or none.
    float* aspectRatios;     ///< Aspect ratios beside 1.
    int32_t numMinSize;      ///< Entries of minSize.
    int32_t numMaxSize;      ///< Entries of maxSize.
    int32_t numAspectRatios; ///< Entries of aspectRatios.
    bool flip;               ///< Add the reciprocal of each ratio.
    bool clip;               ///< Keep boxes inside the image.
    float variance[4];       ///< Factors of the encoded offsets.
    int32_t imgH;            ///< Image height; 0 takes the input's.
    int32_t imgW;            ///< Image width; 0 takes the input's.
    float stepH;             ///< Pixels between rows of cells; 0 computes it.
    float stepW;             ///< Pixels between columns of cells; 0 computes it.
    float offset;            ///< Centre of a box in its cell.
};

/// Proposal and region pooling of Faster R-CNN (RPROI_TRT).
struct RPROIParams
{
    int32_t poolingH;          ///< Height of a pooled region.
    int32_t poolingW;          ///< Width of a pooled region.
    int32_t featureStride;     ///< Image pixels for each cell of the feature map.
    int32_t preNmsTop;         ///< Best proposals that go into suppression.
    int32_t nmsMaxOut;         ///< Most proposals that come out of suppression.
    int32_t anchorsRatioCount; ///< Number of anchor ratios.
    int32_t anchorsScaleCount; ///< Number of anchor scales.
    float iouThreshold;        ///< Overlap from which a box is suppressed.
    float minBoxSize;          ///< Smallest box edge before scaling.
    float spatialScale;        ///< From image to feature map coordinates.
};

/// Anchors of one feature map (GridAnchor_TRT).
struct GridAnchorParameters
{
    float minSize;           ///< Scale of the finest map, as a share of the image.
    float maxSize;           ///< Scale of the coarsest map, as a share of the image.
    float* aspectRatios;     ///< Aspect ratios of the anchors.
    int32_t numAspectRatios; ///< Entries of aspectRatios.
    int32_t H;               ///< Height of the feature map.
    int32_t W;               ///< Width of the feature map.
    float variance[4];       ///< Factors of the encoded offsets.
};

/// How detection output encodes boxes against priors.
enum class CodeTypeSSD : int32_t
{
    CORNER = 0,      ///< Offsets of the corners.
    CENTER_SIZE = 1, ///< Offset of the centre, logarithm of the size.
    CORNER_SIZE = 2, ///< Offsets of the corners in units of the prior's size.
    TF_CENTER = 3,   ///< As CENTER_SIZE with y before x.
};

/// Decoding and suppression of SSD boxes (NMS_TRT).
struct DetectionOutputParameters
{
    bool shareLocation;           ///< One box for all classes.
    bool varianceEncodedInTarget; ///< Offsets are already scaled by the variance.
    int32_t backgroundLabelId;    ///< Class that is not reported; -1 for none.
    int32_t numClasses;           ///< Classes with the background.
    int32_t topK;                 ///< Best boxes of each class that go into suppression.
    int32_t keepTopK;             ///< Most boxes for each image.
    float confidenceThreshold;    ///< Lowest score considered.
    float nmsThreshold;           ///< Overlap from which a box is suppressed.
    CodeTypeSSD codeType;         ///< Encoding of the boxes.
    int32_t inputOrder[3];        ///< Indices of the inputs location, confidence, priors.
    bool confSigmoid;             ///< Apply the sigmoid to scores.
    bool isNormalized;            ///< Boxes are shares of the image.
    bool isBatchAgnostic = true;  ///< Priors are the same for every batch element.
};

/// Tree of classes for hierarchical softmax in region layers.
struct softmaxTree
{
    int32_t* leaf;        ///< Whether each node is a leaf.
    int32_t n;            ///< Number of nodes.
    int32_t* parent;      ///< Parent of each node.
    int32_t* child;       ///< First child group of each node.
    int32_t* group;       ///< Group of each node.
    char** name;          ///< Name of each node.
    int32_t groups;       ///< Number of groups.
    int32_t* groupSize;   ///< Nodes in each group.
    int32_t* groupOffset; ///< First node of each group.
};

/// Region layer of YOLO v2 (Region_TRT).
struct RegionParameters
{
    int32_t num;         ///< Boxes for each cell.
    int32_t coords;      ///< Numbers for each box's place.
    int32_t classes;     ///< Number of classes.
    softmaxTree* smTree; ///< Tree of classes, or null for an ordinary softmax.
};

/// Suppression of decoded boxes (BatchedNMS_TRT).
struct NMSParameters
{
    bool shareLocation;        ///< One box for all classes.
    int32_t backgroundLabelId; ///< Class that is not reported; -1 for none.
    int32_t numClasses;        ///< Number of classes.
    int32_t topK;              ///< Best boxes of each class that go into suppression.
    int32_t keepTopK;          ///< Most boxes for each image.
    float scoreThreshold;      ///< Lowest score considered.
    float iouThreshold;        ///< Overlap from which a box is suppressed.
    bool isNormalized;         ///< Boxes are shares of the image.
};

} // namespace plugin
} // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
