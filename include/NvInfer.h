// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORWRIGHT_NV_INFER_H
#define TENSORWRIGHT_NV_INFER_H

#include "NvInferLegacyDims.h"
#include "NvInferRuntime.h"

#if defined(__GNUC__)
// Deprecated names are declared with the help of other deprecated names; only uses in client code shall warn.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

class ILoop;
class IIfConditional;

enum class LayerType : int32_t
{
    kCONVOLUTION = 0,
    kFULLY_CONNECTED = 1,
    kACTIVATION = 2,
    kPOOLING = 3,
    kLRN = 4,
    kSCALE = 5,
    kSOFTMAX = 6,
    kDECONVOLUTION = 7,
    kCONCATENATION = 8,
    kELEMENTWISE = 9,
    kPLUGIN = 10,
    kUNARY = 11,
    kPADDING = 12,
    kSHUFFLE = 13,
    kREDUCE = 14,
    kTOPK = 15,
    kGATHER = 16,
    kMATRIX_MULTIPLY = 17,
    kRAGGED_SOFTMAX = 18,
    kCONSTANT = 19,
    kRNN_V2 = 20,
    kIDENTITY = 21,
    kPLUGIN_V2 = 22,
    kSLICE = 23,
    kSHAPE = 24,
    kPARAMETRIC_RELU = 25,
    kRESIZE = 26,
    kTRIP_LIMIT = 27,
    kRECURRENCE = 28,
    kITERATOR = 29,
    kLOOP_OUTPUT = 30,
    kSELECT = 31,
    kFILL = 32,
    kQUANTIZE = 33,
    kDEQUANTIZE = 34,
    kCONDITION = 35,
    kCONDITIONAL_INPUT = 36,
    kCONDITIONAL_OUTPUT = 37,
    kSCATTER = 38,
    kEINSUM = 39,
    kASSERTION = 40,
    kONE_HOT = 41,
    kNON_ZERO = 42,
    kGRID_SAMPLE = 43,
    kNMS = 44,
};

/// Number of values of LayerType.
template <>
constexpr int32_t EnumMax<LayerType>() noexcept
{
    return 45;
}

using TensorFormats = uint32_t;

enum class ActivationType : int32_t
{
    kRELU = 0,
    kSIGMOID = 1,
    kTANH = 2,
    kLEAKY_RELU = 3,
    kELU = 4,
    kSELU = 5,
    kSOFTSIGN = 6,
    kSOFTPLUS = 7,
    kCLIP = 8,
    kHARD_SIGMOID = 9,
    kSCALED_TANH = 10,
    kTHRESHOLDED_RELU = 11,
};

/// Number of values of ActivationType.
template <>
constexpr int32_t EnumMax<ActivationType>() noexcept
{
    return 12;
}

class TENSORRTAPI ITensor : public INoCopy
{
public:
    void setName(const char* name) noexcept;
    const char* getName() const noexcept;

    void setDimensions(Dims dimensions) noexcept;
    Dims getDimensions() const noexcept;

    void setType(DataType type) noexcept;
    DataType getType() const noexcept;

    bool setDynamicRange(float min, float max) noexcept;

    bool isNetworkInput() const noexcept;

    bool isNetworkOutput() const noexcept;

    void setBroadcastAcrossBatch(bool broadcastAcrossBatch) noexcept;
    bool getBroadcastAcrossBatch() const noexcept;

    TensorLocation getLocation() const noexcept;
    void setLocation(TensorLocation location) noexcept;

    bool dynamicRangeIsSet() const noexcept;

    void resetDynamicRange() noexcept;

    float getDynamicRangeMin() const noexcept;

    float getDynamicRangeMax() const noexcept;

    void setAllowedFormats(TensorFormats formats) noexcept;
    TensorFormats getAllowedFormats() const noexcept;

    bool isShapeTensor() const noexcept;

    bool isExecutionTensor() const noexcept;

    void setDimensionName(int32_t index, const char* name) noexcept;
    const char* getDimensionName(int32_t index) const noexcept;

protected:
    virtual ~ITensor() noexcept = default;
};

class TENSORRTAPI ILayer : public INoCopy
{
public:
    LayerType getType() const noexcept;

    void setName(const char* name) noexcept;
    const char* getName() const noexcept;

    int32_t getNbInputs() const noexcept;

    ITensor* getInput(int32_t index) const noexcept;

    int32_t getNbOutputs() const noexcept;

    ITensor* getOutput(int32_t index) const noexcept;

    void setInput(int32_t index, ITensor& tensor) noexcept;

    void setPrecision(DataType dataType) noexcept;
    DataType getPrecision() const noexcept;

    bool precisionIsSet() const noexcept;

    void resetPrecision() noexcept;

    void setOutputType(int32_t index, DataType dataType) noexcept;
    DataType getOutputType(int32_t index) const noexcept;

    bool outputTypeIsSet(int32_t index) const noexcept;

    void resetOutputType(int32_t index) noexcept;

protected:
    virtual ~ILayer() noexcept = default;
};

enum class PaddingMode : int32_t
{
    kEXPLICIT_ROUND_DOWN = 0,
    kEXPLICIT_ROUND_UP = 1,
    kSAME_UPPER = 2,
    kSAME_LOWER = 3,
    kCAFFE_ROUND_DOWN = 4,
    kCAFFE_ROUND_UP = 5,
};

/// Number of values of PaddingMode.
template <>
constexpr int32_t EnumMax<PaddingMode>() noexcept
{
    return 6;
}

class TENSORRTAPI IConvolutionLayer : public ILayer
{
public:
    TRT_DEPRECATED void setKernelSize(DimsHW kernelSize) noexcept;
    TRT_DEPRECATED DimsHW getKernelSize() const noexcept;

    void setNbOutputMaps(int32_t nbOutputMaps) noexcept;
    int32_t getNbOutputMaps() const noexcept;

    TRT_DEPRECATED void setStride(DimsHW stride) noexcept;
    TRT_DEPRECATED DimsHW getStride() const noexcept;

    TRT_DEPRECATED void setPadding(DimsHW padding) noexcept;
    TRT_DEPRECATED DimsHW getPadding() const noexcept;

    void setNbGroups(int32_t nbGroups) noexcept;
    int32_t getNbGroups() const noexcept;

    void setKernelWeights(Weights weights) noexcept;
    Weights getKernelWeights() const noexcept;

    void setBiasWeights(Weights weights) noexcept;
    Weights getBiasWeights() const noexcept;

    TRT_DEPRECATED void setDilation(DimsHW dilation) noexcept;
    TRT_DEPRECATED DimsHW getDilation() const noexcept;

    void setPrePadding(Dims padding) noexcept;
    Dims getPrePadding() const noexcept;

    void setPostPadding(Dims padding) noexcept;
    Dims getPostPadding() const noexcept;

    void setPaddingMode(PaddingMode paddingMode) noexcept;
    PaddingMode getPaddingMode() const noexcept;

    void setKernelSizeNd(Dims kernelSize) noexcept;
    Dims getKernelSizeNd() const noexcept;

    void setStrideNd(Dims stride) noexcept;
    Dims getStrideNd() const noexcept;

    void setPaddingNd(Dims padding) noexcept;
    Dims getPaddingNd() const noexcept;

    void setDilationNd(Dims dilation) noexcept;
    Dims getDilationNd() const noexcept;

    using ILayer::setInput;

protected:
    virtual ~IConvolutionLayer() noexcept = default;
};

class TRT_DEPRECATED TENSORRTAPI IFullyConnectedLayer : public ILayer
{
public:
    void setNbOutputChannels(int32_t nbOutputs) noexcept;
    int32_t getNbOutputChannels() const noexcept;

    void setKernelWeights(Weights weights) noexcept;
    Weights getKernelWeights() const noexcept;

    void setBiasWeights(Weights weights) noexcept;
    Weights getBiasWeights() const noexcept;

    using ILayer::setInput;

protected:
    virtual ~IFullyConnectedLayer() noexcept = default;
};

class TENSORRTAPI IActivationLayer : public ILayer
{
public:
    void setActivationType(ActivationType type) noexcept;
    ActivationType getActivationType() const noexcept;

    void setAlpha(float alpha) noexcept;

    void setBeta(float beta) noexcept;

    float getAlpha() const noexcept;

    float getBeta() const noexcept;

protected:
    virtual ~IActivationLayer() noexcept = default;
};

enum class PoolingType : int32_t
{
    kMAX = 0,
    kAVERAGE = 1,
    kMAX_AVERAGE_BLEND = 2,
};

/// Number of values of PoolingType.
template <>
constexpr int32_t EnumMax<PoolingType>() noexcept
{
    return 3;
}

class TENSORRTAPI IPoolingLayer : public ILayer
{
public:
    void setPoolingType(PoolingType type) noexcept;
    PoolingType getPoolingType() const noexcept;

    TRT_DEPRECATED void setWindowSize(DimsHW windowSize) noexcept;
    TRT_DEPRECATED DimsHW getWindowSize() const noexcept;

    TRT_DEPRECATED void setStride(DimsHW stride) noexcept;
    TRT_DEPRECATED DimsHW getStride() const noexcept;

    TRT_DEPRECATED void setPadding(DimsHW padding) noexcept;
    TRT_DEPRECATED DimsHW getPadding() const noexcept;

    void setBlendFactor(float blendFactor) noexcept;
    float getBlendFactor() const noexcept;

    void setAverageCountExcludesPadding(bool exclusive) noexcept;
    bool getAverageCountExcludesPadding() const noexcept;

    void setPrePadding(Dims padding) noexcept;
    Dims getPrePadding() const noexcept;

    void setPostPadding(Dims padding) noexcept;
    Dims getPostPadding() const noexcept;

    void setPaddingMode(PaddingMode paddingMode) noexcept;
    PaddingMode getPaddingMode() const noexcept;

    void setWindowSizeNd(Dims windowSize) noexcept;
    Dims getWindowSizeNd() const noexcept;

    void setStrideNd(Dims stride) noexcept;
    Dims getStrideNd() const noexcept;

    void setPaddingNd(Dims padding) noexcept;
    Dims getPaddingNd() const noexcept;

protected:
    virtual ~IPoolingLayer() noexcept = default;
};

class TENSORRTAPI ILRNLayer : public ILayer
{
public:
    void setWindowSize(int32_t windowSize) noexcept;
    int32_t getWindowSize() const noexcept;

    void setAlpha(float alpha) noexcept;
    float getAlpha() const noexcept;

    void setBeta(float beta) noexcept;
    float getBeta() const noexcept;

    void setK(float k) noexcept;
    float getK() const noexcept;

protected:
    virtual ~ILRNLayer() noexcept = default;
};

enum class ScaleMode : int32_t
{
    kUNIFORM = 0,
    kCHANNEL = 1,
    kELEMENTWISE = 2,
};

/// Number of values of ScaleMode.
template <>
constexpr int32_t EnumMax<ScaleMode>() noexcept
{
    return 3;
}

class TENSORRTAPI IScaleLayer : public ILayer
{
public:
    void setMode(ScaleMode mode) noexcept;
    ScaleMode getMode() const noexcept;

    void setShift(Weights shift) noexcept;
    Weights getShift() const noexcept;

    void setScale(Weights scale) noexcept;
    Weights getScale() const noexcept;

    void setPower(Weights power) noexcept;
    Weights getPower() const noexcept;

    int32_t getChannelAxis() const noexcept;
    void setChannelAxis(int32_t channelAxis) noexcept;

protected:
    virtual ~IScaleLayer() noexcept = default;
};

class TENSORRTAPI ISoftMaxLayer : public ILayer
{
public:
    void setAxes(uint32_t axes) noexcept;
    uint32_t getAxes() const noexcept;

protected:
    virtual ~ISoftMaxLayer() noexcept = default;
};

class TENSORRTAPI IConcatenationLayer : public ILayer
{
public:
    void setAxis(int32_t axis) noexcept;
    int32_t getAxis() const noexcept;

protected:
    virtual ~IConcatenationLayer() noexcept = default;
};

class TENSORRTAPI IDeconvolutionLayer : public ILayer
{
public:
    TRT_DEPRECATED void setKernelSize(DimsHW kernelSize) noexcept;
    TRT_DEPRECATED DimsHW getKernelSize() const noexcept;

    void setNbOutputMaps(int32_t nbOutputMaps) noexcept;
    int32_t getNbOutputMaps() const noexcept;

    TRT_DEPRECATED void setStride(DimsHW stride) noexcept;
    TRT_DEPRECATED DimsHW getStride() const noexcept;

    TRT_DEPRECATED void setPadding(DimsHW padding) noexcept;
    TRT_DEPRECATED DimsHW getPadding() const noexcept;

    void setNbGroups(int32_t nbGroups) noexcept;
    int32_t getNbGroups() const noexcept;

    void setKernelWeights(Weights weights) noexcept;
    Weights getKernelWeights() const noexcept;

    void setBiasWeights(Weights weights) noexcept;
    Weights getBiasWeights() const noexcept;

    void setPrePadding(Dims padding) noexcept;
    Dims getPrePadding() const noexcept;

    void setPostPadding(Dims padding) noexcept;
    Dims getPostPadding() const noexcept;

    void setPaddingMode(PaddingMode paddingMode) noexcept;
    PaddingMode getPaddingMode() const noexcept;

    void setKernelSizeNd(Dims kernelSize) noexcept;
    Dims getKernelSizeNd() const noexcept;

    void setStrideNd(Dims stride) noexcept;
    Dims getStrideNd() const noexcept;

    void setPaddingNd(Dims padding) noexcept;
    Dims getPaddingNd() const noexcept;

    using ILayer::setInput;

    void setDilationNd(Dims dilation) noexcept;
    Dims getDilationNd() const noexcept;

protected:
    virtual ~IDeconvolutionLayer() noexcept = default;
};

enum class ElementWiseOperation : int32_t
{
    kSUM = 0,
    kPROD = 1,
    kMAX = 2,
    kMIN = 3,
    kSUB = 4,
    kDIV = 5,
    kPOW = 6,
    kFLOOR_DIV = 7,
    kAND = 8,
    kOR = 9,
    kXOR = 10,
    kEQUAL = 11,
    kGREATER = 12,
    kLESS = 13,
};

/// Number of values of ElementWiseOperation.
template <>
constexpr int32_t EnumMax<ElementWiseOperation>() noexcept
{
    return 14;
}

class TENSORRTAPI IElementWiseLayer : public ILayer
{
public:
    void setOperation(ElementWiseOperation op) noexcept;
    ElementWiseOperation getOperation() const noexcept;

protected:
    virtual ~IElementWiseLayer() noexcept = default;
};

enum class GatherMode : int32_t
{
    kDEFAULT = 0,
    kELEMENT = 1,
    kND = 2,
};

/// Number of values of GatherMode.
template <>
constexpr int32_t EnumMax<GatherMode>() noexcept
{
    return 3;
}

class TENSORRTAPI IGatherLayer : public ILayer
{
public:
    void setGatherAxis(int32_t axis) noexcept;
    int32_t getGatherAxis() const noexcept;

    void setNbElementWiseDims(int32_t elementWiseDims) noexcept;
    int32_t getNbElementWiseDims() const noexcept;

    void setMode(GatherMode mode) noexcept;
    GatherMode getMode() const noexcept;

protected:
    virtual ~IGatherLayer() noexcept = default;
};

enum class RNNOperation : int32_t
{
    kRELU = 0,
    kTANH = 1,
    kLSTM = 2,
    kGRU = 3,
};

/// Number of values of RNNOperation.
template <>
constexpr int32_t EnumMax<RNNOperation>() noexcept
{
    return 4;
}

enum class RNNDirection : int32_t
{
    kUNIDIRECTION = 0,
    kBIDIRECTION = 1,
};

/// Number of values of RNNDirection.
template <>
constexpr int32_t EnumMax<RNNDirection>() noexcept
{
    return 2;
}

enum class RNNInputMode : int32_t
{
    kLINEAR = 0,
    kSKIP = 1,
};

/// Number of values of RNNInputMode.
template <>
constexpr int32_t EnumMax<RNNInputMode>() noexcept
{
    return 2;
}

enum class RNNGateType : int32_t
{
    kINPUT = 0,
    kOUTPUT = 1,
    kFORGET = 2,
    kUPDATE = 3,
    kRESET = 4,
    kCELL = 5,
    kHIDDEN = 6,
};

/// Number of values of RNNGateType.
template <>
constexpr int32_t EnumMax<RNNGateType>() noexcept
{
    return 7;
}

class TRT_DEPRECATED TENSORRTAPI IRNNv2Layer : public ILayer
{
public:
    int32_t getLayerCount() const noexcept;

    int32_t getHiddenSize() const noexcept;

    int32_t getMaxSeqLength() const noexcept;

    int32_t getDataLength() const noexcept;

    void setSequenceLengths(ITensor& seqLengths) noexcept;
    ITensor* getSequenceLengths() const noexcept;

    void setOperation(RNNOperation op) noexcept;
    RNNOperation getOperation() const noexcept;

    void setInputMode(RNNInputMode op) noexcept;
    RNNInputMode getInputMode() const noexcept;

    void setDirection(RNNDirection op) noexcept;
    RNNDirection getDirection() const noexcept;

    void setWeightsForGate(int32_t layerIndex, RNNGateType gate, bool isW, Weights weights) noexcept;
    Weights getWeightsForGate(int32_t layerIndex, RNNGateType gate, bool isW) const noexcept;

    void setBiasForGate(int32_t layerIndex, RNNGateType gate, bool isW, Weights bias) noexcept;
    Weights getBiasForGate(int32_t layerIndex, RNNGateType gate, bool isW) const noexcept;

    void setHiddenState(ITensor& hidden) noexcept;
    ITensor* getHiddenState() const noexcept;

    void setCellState(ITensor& cell) noexcept;
    ITensor* getCellState() const noexcept;

protected:
    virtual ~IRNNv2Layer() noexcept = default;
};

class TENSORRTAPI IPluginV2Layer : public ILayer
{
public:
    IPluginV2& getPlugin() noexcept;

protected:
    virtual ~IPluginV2Layer() noexcept = default;
};

enum class UnaryOperation : int32_t
{
    kEXP = 0,
    kLOG = 1,
    kSQRT = 2,
    kRECIP = 3,
    kABS = 4,
    kNEG = 5,
    kSIN = 6,
    kCOS = 7,
    kTAN = 8,
    kSINH = 9,
    kCOSH = 10,
    kASIN = 11,
    kACOS = 12,
    kATAN = 13,
    kASINH = 14,
    kACOSH = 15,
    kATANH = 16,
    kCEIL = 17,
    kFLOOR = 18,
    kERF = 19,
    kNOT = 20,
    kSIGN = 21,
    kROUND = 22,
};

/// Number of values of UnaryOperation.
template <>
constexpr int32_t EnumMax<UnaryOperation>() noexcept
{
    return 23;
}

class TENSORRTAPI IUnaryLayer : public ILayer
{
public:
    void setOperation(UnaryOperation op) noexcept;
    UnaryOperation getOperation() const noexcept;

protected:
    virtual ~IUnaryLayer() noexcept = default;
};

enum class ReduceOperation : int32_t
{
    kSUM = 0,
    kPROD = 1,
    kMAX = 2,
    kMIN = 3,
    kAVG = 4,
};

/// Number of values of ReduceOperation.
template <>
constexpr int32_t EnumMax<ReduceOperation>() noexcept
{
    return 5;
}

class TENSORRTAPI IReduceLayer : public ILayer
{
public:
    void setOperation(ReduceOperation op) noexcept;
    ReduceOperation getOperation() const noexcept;

    void setReduceAxes(uint32_t reduceAxes) noexcept;
    uint32_t getReduceAxes() const noexcept;

    void setKeepDimensions(bool keepDimensions) noexcept;
    bool getKeepDimensions() const noexcept;

protected:
    virtual ~IReduceLayer() noexcept = default;
};

class TENSORRTAPI IPaddingLayer : public ILayer
{
public:
    TRT_DEPRECATED void setPrePadding(DimsHW padding) noexcept;
    TRT_DEPRECATED DimsHW getPrePadding() const noexcept;

    TRT_DEPRECATED void setPostPadding(DimsHW padding) noexcept;
    TRT_DEPRECATED DimsHW getPostPadding() const noexcept;

    void setPrePaddingNd(Dims padding) noexcept;
    Dims getPrePaddingNd() const noexcept;

    void setPostPaddingNd(Dims padding) noexcept;
    Dims getPostPaddingNd() const noexcept;

protected:
    virtual ~IPaddingLayer() noexcept = default;
};

struct Permutation
{
    int32_t order[Dims::MAX_DIMS];
};

class TENSORRTAPI IShuffleLayer : public ILayer
{
public:
    void setFirstTranspose(Permutation permutation) noexcept;
    Permutation getFirstTranspose() const noexcept;

    void setReshapeDimensions(Dims dimensions) noexcept;
    Dims getReshapeDimensions() const noexcept;

    using ILayer::setInput;

    void setSecondTranspose(Permutation permutation) noexcept;
    Permutation getSecondTranspose() const noexcept;

    void setZeroIsPlaceholder(bool zeroIsPlaceholder) noexcept;
    bool getZeroIsPlaceholder() const noexcept;

protected:
    virtual ~IShuffleLayer() noexcept = default;
};

enum class SampleMode : int32_t
{
    kSTRICT_BOUNDS = 0,
    kDEFAULT TRT_DEPRECATED_ENUM = kSTRICT_BOUNDS, ///< Old name of kSTRICT_BOUNDS.
    kWRAP = 1,
    kCLAMP = 2,
    kFILL = 3,
    kREFLECT = 4,
};

using SliceMode = SampleMode;

/// Number of values of SampleMode.
template <>
constexpr int32_t EnumMax<SampleMode>() noexcept
{
    return 5;
}

class TENSORRTAPI ISliceLayer : public ILayer
{
public:
    void setStart(Dims start) noexcept;
    Dims getStart() const noexcept;

    void setSize(Dims size) noexcept;
    Dims getSize() const noexcept;

    void setStride(Dims stride) noexcept;
    Dims getStride() const noexcept;

    void setMode(SliceMode mode) noexcept;
    SliceMode getMode() const noexcept;

    using ILayer::setInput;

protected:
    virtual ~ISliceLayer() noexcept = default;
};

class TENSORRTAPI IShapeLayer : public ILayer
{
protected:
    virtual ~IShapeLayer() noexcept = default;
};

enum class TopKOperation : int32_t
{
    kMAX = 0,
    kMIN = 1,
};

/// Number of values of TopKOperation.
template <>
constexpr int32_t EnumMax<TopKOperation>() noexcept
{
    return 2;
}

class TENSORRTAPI ITopKLayer : public ILayer
{
public:
    void setOperation(TopKOperation op) noexcept;
    TopKOperation getOperation() const noexcept;

    void setK(int32_t k) noexcept;
    int32_t getK() const noexcept;

    void setReduceAxes(uint32_t reduceAxes) noexcept;
    uint32_t getReduceAxes() const noexcept;

protected:
    virtual ~ITopKLayer() noexcept = default;
};

enum class MatrixOperation : int32_t
{
    kNONE = 0,
    kTRANSPOSE = 1,
    kVECTOR = 2,
};

/// Number of values of MatrixOperation.
template <>
constexpr int32_t EnumMax<MatrixOperation>() noexcept
{
    return 3;
}

class TENSORRTAPI IMatrixMultiplyLayer : public ILayer
{
public:
    void setOperation(int32_t index, MatrixOperation op) noexcept;
    MatrixOperation getOperation(int32_t index) const noexcept;

protected:
    virtual ~IMatrixMultiplyLayer() noexcept = default;
};

class TENSORRTAPI INonZeroLayer : public ILayer
{
protected:
    virtual ~INonZeroLayer() noexcept = default;
};

class TENSORRTAPI IRaggedSoftMaxLayer : public ILayer
{
protected:
    virtual ~IRaggedSoftMaxLayer() noexcept = default;
};

class TENSORRTAPI IIdentityLayer : public ILayer
{
protected:
    virtual ~IIdentityLayer() noexcept = default;
};

class TENSORRTAPI IConstantLayer : public ILayer
{
public:
    void setWeights(Weights weights) noexcept;
    Weights getWeights() const noexcept;

    void setDimensions(Dims dimensions) noexcept;
    Dims getDimensions() const noexcept;

protected:
    virtual ~IConstantLayer() noexcept = default;
};

class TENSORRTAPI IParametricReLULayer : public ILayer
{
protected:
    virtual ~IParametricReLULayer() noexcept = default;
};

enum class InterpolationMode : int32_t
{
    kNEAREST = 0,
    kLINEAR = 1,
    kCUBIC = 2,
};

using ResizeMode = InterpolationMode;

/// Number of values of InterpolationMode.
template <>
constexpr int32_t EnumMax<InterpolationMode>() noexcept
{
    return 3;
}

enum class ResizeCoordinateTransformation : int32_t
{
    kALIGN_CORNERS = 0,
    kASYMMETRIC = 1,
    kHALF_PIXEL = 2,
};

/// Number of values of ResizeCoordinateTransformation.
template <>
constexpr int32_t EnumMax<ResizeCoordinateTransformation>() noexcept
{
    return 3;
}

enum class ResizeSelector : int32_t
{
    kFORMULA = 0,
    kUPPER = 1,
};

/// Number of values of ResizeSelector.
template <>
constexpr int32_t EnumMax<ResizeSelector>() noexcept
{
    return 2;
}

enum class ResizeRoundMode : int32_t
{
    kHALF_UP = 0,
    kHALF_DOWN = 1,
    kFLOOR = 2,
    kCEIL = 3,
};

/// Number of values of ResizeRoundMode.
template <>
constexpr int32_t EnumMax<ResizeRoundMode>() noexcept
{
    return 4;
}

class TENSORRTAPI IResizeLayer : public ILayer
{
public:
    void setOutputDimensions(Dims dimensions) noexcept;
    Dims getOutputDimensions() const noexcept;

    void setScales(const float* scales, int32_t nbScales) noexcept;
    int32_t getScales(int32_t size, float* scales) const noexcept;

    void setResizeMode(ResizeMode resizeMode) noexcept;
    ResizeMode getResizeMode() const noexcept;

    TRT_DEPRECATED void setAlignCorners(bool alignCorners) noexcept;
    TRT_DEPRECATED bool getAlignCorners() const noexcept;

    using ILayer::setInput;

    void setCoordinateTransformation(ResizeCoordinateTransformation coordTransform) noexcept;
    ResizeCoordinateTransformation getCoordinateTransformation() const noexcept;

    void setSelectorForSinglePixel(ResizeSelector selector) noexcept;
    ResizeSelector getSelectorForSinglePixel() const noexcept;

    void setNearestRounding(ResizeRoundMode value) noexcept;
    ResizeRoundMode getNearestRounding() const noexcept;

    void setCubicCoeff(float A) noexcept;
    float getCubicCoeff() const noexcept;

    void setExcludeOutside(bool excludeFlag) noexcept;
    bool getExcludeOutside() const noexcept;

protected:
    virtual ~IResizeLayer() noexcept = default;
};

enum class LoopOutput : int32_t
{
    kLAST_VALUE = 0,
    kCONCATENATE = 1,
    kREVERSE = 2,
};

/// Number of values of LoopOutput.
template <>
constexpr int32_t EnumMax<LoopOutput>() noexcept
{
    return 3;
}

enum class TripLimit : int32_t
{
    kCOUNT = 0,
    kWHILE = 1,
};

/// Number of values of TripLimit.
template <>
constexpr int32_t EnumMax<TripLimit>() noexcept
{
    return 2;
}

class TENSORRTAPI ILoopBoundaryLayer : public ILayer
{
public:
    ILoop* getLoop() const noexcept;

protected:
    virtual ~ILoopBoundaryLayer() noexcept = default;
};

class TENSORRTAPI IIfConditionalBoundaryLayer : public ILayer
{
public:
    IIfConditional* getConditional() const noexcept;

protected:
    virtual ~IIfConditionalBoundaryLayer() noexcept = default;
};

class TENSORRTAPI IConditionLayer : public IIfConditionalBoundaryLayer
{
protected:
    virtual ~IConditionLayer() noexcept = default;
};

class TENSORRTAPI IIfConditionalOutputLayer : public IIfConditionalBoundaryLayer
{
protected:
    virtual ~IIfConditionalOutputLayer() noexcept = default;
};

class TENSORRTAPI IIfConditionalInputLayer : public IIfConditionalBoundaryLayer
{
protected:
    virtual ~IIfConditionalInputLayer() noexcept = default;
};

class TENSORRTAPI IIfConditional : public INoCopy
{
public:
    IConditionLayer* setCondition(ITensor& condition) noexcept;

    IIfConditionalOutputLayer* addOutput(ITensor& trueSubgraphOutput, ITensor& falseSubgraphOutput) noexcept;

    IIfConditionalInputLayer* addInput(ITensor& input) noexcept;

    void setName(const char* name) noexcept;
    const char* getName() const noexcept;

protected:
    virtual ~IIfConditional() noexcept = default;
};

class TENSORRTAPI IRecurrenceLayer : public ILoopBoundaryLayer
{
public:
    using ILayer::setInput;

protected:
    virtual ~IRecurrenceLayer() noexcept = default;
};

class TENSORRTAPI ILoopOutputLayer : public ILoopBoundaryLayer
{
public:
    LoopOutput getLoopOutput() const noexcept;

    void setAxis(int32_t axis) noexcept;
    int32_t getAxis() const noexcept;

    using ILayer::setInput;

protected:
    virtual ~ILoopOutputLayer() noexcept = default;
};

class TENSORRTAPI ITripLimitLayer : public ILoopBoundaryLayer
{
public:
    TripLimit getTripLimit() const noexcept;

protected:
    virtual ~ITripLimitLayer() noexcept = default;
};

class TENSORRTAPI IIteratorLayer : public ILoopBoundaryLayer
{
public:
    void setAxis(int32_t axis) noexcept;
    int32_t getAxis() const noexcept;

    void setReverse(bool reverse) noexcept;
    bool getReverse() const noexcept;

protected:
    virtual ~IIteratorLayer() noexcept = default;
};

class TENSORRTAPI ILoop : public INoCopy
{
public:
    IRecurrenceLayer* addRecurrence(ITensor& initialValue) noexcept;

    ITripLimitLayer* addTripLimit(ITensor& tensor, TripLimit limit) noexcept;

    IIteratorLayer* addIterator(ITensor& tensor, int32_t axis = 0, bool reverse = false) noexcept;

    ILoopOutputLayer* addLoopOutput(ITensor& tensor, LoopOutput outputKind, int32_t axis = 0) noexcept;

    void setName(const char* name) noexcept;
    const char* getName() const noexcept;

protected:
    virtual ~ILoop() noexcept = default;
};

class TENSORRTAPI ISelectLayer : public ILayer
{
protected:
    virtual ~ISelectLayer() noexcept = default;
};

class TENSORRTAPI IAssertionLayer : public ILayer
{
public:
    void setMessage(const char* message) noexcept;
    const char* getMessage() const noexcept;

protected:
    virtual ~IAssertionLayer() noexcept = default;
};

enum class FillOperation : int32_t
{
    kLINSPACE = 0,
    kRANDOM_UNIFORM = 1,
    kRANDOM_NORMAL = 2,
};

/// Number of values of FillOperation.
template <>
constexpr int32_t EnumMax<FillOperation>() noexcept
{
    return 3;
}

class TENSORRTAPI IFillLayer : public ILayer
{
public:
    void setDimensions(Dims dimensions) noexcept;
    Dims getDimensions() const noexcept;

    void setOperation(FillOperation op) noexcept;
    FillOperation getOperation() const noexcept;

    void setAlpha(double alpha) noexcept;
    double getAlpha() const noexcept;

    void setBeta(double beta) noexcept;
    double getBeta() const noexcept;

    using ILayer::setInput;

protected:
    virtual ~IFillLayer() noexcept = default;
};

class TENSORRTAPI IQuantizeLayer : public ILayer
{
public:
    int32_t getAxis() const noexcept;
    void setAxis(int32_t axis) noexcept;

protected:
    virtual ~IQuantizeLayer() noexcept = default;
};

class TENSORRTAPI IDequantizeLayer : public ILayer
{
public:
    int32_t getAxis() const noexcept;
    void setAxis(int32_t axis) noexcept;

protected:
    virtual ~IDequantizeLayer() noexcept = default;
};

class TENSORRTAPI IEinsumLayer : public ILayer
{
public:
    bool setEquation(const char* equation) noexcept;
    const char* getEquation() const noexcept;

protected:
    virtual ~IEinsumLayer() noexcept = default;
};

enum class ScatterMode : int32_t
{
    kELEMENT = 0,
    kND = 1,
};

/// Number of values of ScatterMode.
template <>
constexpr int32_t EnumMax<ScatterMode>() noexcept
{
    return 2;
}

class TENSORRTAPI IScatterLayer : public ILayer
{
public:
    void setMode(ScatterMode mode) noexcept;
    ScatterMode getMode() const noexcept;

    void setAxis(int32_t axis) noexcept;
    int32_t getAxis() const noexcept;

protected:
    virtual ~IScatterLayer() noexcept = default;
};

class TENSORRTAPI IOneHotLayer : public ILayer
{
public:
    void setAxis(int32_t axis) noexcept;
    int32_t getAxis() const noexcept;
};

class TENSORRTAPI IGridSampleLayer : public ILayer
{
public:
    void setInterpolationMode(InterpolationMode mode) noexcept;
    InterpolationMode getInterpolationMode() const noexcept;

    void setAlignCorners(bool alignCorners) noexcept;
    bool getAlignCorners() const noexcept;

    bool setSampleMode(SampleMode mode) noexcept;
    SampleMode getSampleMode() const noexcept;

protected:
    virtual ~IGridSampleLayer() noexcept = default;
};

enum class BoundingBoxFormat : int32_t
{
    kCORNER_PAIRS = 0,
    kCENTER_SIZES = 1,
};

/// Number of values of BoundingBoxFormat.
template <>
constexpr int32_t EnumMax<BoundingBoxFormat>() noexcept
{
    return 2;
}

class TENSORRTAPI INMSLayer : public ILayer
{
public:
    void setBoundingBoxFormat(BoundingBoxFormat fmt) noexcept;
    BoundingBoxFormat getBoundingBoxFormat() const noexcept;

    void setTopKBoxLimit(int32_t limit) noexcept;
    int32_t getTopKBoxLimit() const noexcept;

    using ILayer::setInput;

protected:
    virtual ~INMSLayer() noexcept = default;
};

class TENSORRTAPI INetworkDefinition : public INoCopy
{
public:
    virtual ~INetworkDefinition() noexcept = default;

    ITensor* addInput(const char* name, DataType type, Dims dimensions) noexcept;

    void markOutput(ITensor& tensor) noexcept;

    TRT_DEPRECATED IConvolutionLayer* addConvolution(ITensor& input, int32_t nbOutputMaps, DimsHW kernelSize,
                                                     Weights kernelWeights, Weights biasWeights) noexcept;

    TRT_DEPRECATED IFullyConnectedLayer* addFullyConnected(ITensor& input, int32_t nbOutputs, Weights kernelWeights,
                                                           Weights biasWeights) noexcept;

    IActivationLayer* addActivation(ITensor& input, ActivationType type) noexcept;

    TRT_DEPRECATED IPoolingLayer* addPooling(ITensor& input, PoolingType type, DimsHW windowSize) noexcept;

    ILRNLayer* addLRN(ITensor& input, int32_t window, float alpha, float beta, float k) noexcept;

    IScaleLayer* addScale(ITensor& input, ScaleMode mode, Weights shift, Weights scale, Weights power) noexcept;

    ISoftMaxLayer* addSoftMax(ITensor& input) noexcept;

    IConcatenationLayer* addConcatenation(ITensor* const* inputs, int32_t nbInputs) noexcept;

    TRT_DEPRECATED IDeconvolutionLayer* addDeconvolution(ITensor& input, int32_t nbOutputMaps, DimsHW kernelSize,
                                                         Weights kernelWeights, Weights biasWeights) noexcept;

    IElementWiseLayer* addElementWise(ITensor& input1, ITensor& input2, ElementWiseOperation op) noexcept;

    IUnaryLayer* addUnary(ITensor& input, UnaryOperation operation) noexcept;

    TRT_DEPRECATED IPaddingLayer* addPadding(ITensor& input, DimsHW prePadding, DimsHW postPadding) noexcept;

    IShuffleLayer* addShuffle(ITensor& input) noexcept;

    IOneHotLayer* addOneHot(ITensor& indices, ITensor& values, ITensor& depth, int32_t axis) noexcept;

    int32_t getNbLayers() const noexcept;

    ILayer* getLayer(int32_t index) const noexcept;

    int32_t getNbInputs() const noexcept;

    ITensor* getInput(int32_t index) const noexcept;

    int32_t getNbOutputs() const noexcept;

    ITensor* getOutput(int32_t index) const noexcept;

    TRT_DEPRECATED void destroy() noexcept { delete this; }

    IReduceLayer* addReduce(ITensor& input, ReduceOperation operation, uint32_t reduceAxes,
                            bool keepDimensions) noexcept;

    ITopKLayer* addTopK(ITensor& input, TopKOperation op, int32_t k, uint32_t reduceAxes) noexcept;

    IGatherLayer* addGather(ITensor& data, ITensor& indices, int32_t axis) noexcept;

    IGatherLayer* addGatherV2(ITensor& data, ITensor& indices, GatherMode mode) noexcept;

    IRaggedSoftMaxLayer* addRaggedSoftMax(ITensor& input, ITensor& bounds) noexcept;

    IMatrixMultiplyLayer* addMatrixMultiply(ITensor& input0, MatrixOperation op0, ITensor& input1,
                                            MatrixOperation op1) noexcept;

    INonZeroLayer* addNonZero(ITensor& input) noexcept;

    IConstantLayer* addConstant(Dims dimensions, Weights weights) noexcept;

    TRT_DEPRECATED IRNNv2Layer* addRNNv2(ITensor& input, int32_t layerCount, int32_t hiddenSize, int32_t maxSeqLen,
                                         RNNOperation op) noexcept;

    IIdentityLayer* addIdentity(ITensor& input) noexcept;

    void removeTensor(ITensor& tensor) noexcept;

    void unmarkOutput(ITensor& tensor) noexcept;

    IPluginV2Layer* addPluginV2(ITensor* const* inputs, int32_t nbInputs, IPluginV2& plugin) noexcept;

    ISliceLayer* addSlice(ITensor& input, Dims start, Dims size, Dims stride) noexcept;

    void setName(const char* name) noexcept;
    const char* getName() const noexcept;

    IShapeLayer* addShape(ITensor& input) noexcept;

    bool hasImplicitBatchDimension() const noexcept;

    bool markOutputForShapes(ITensor& tensor) noexcept;

    bool unmarkOutputForShapes(ITensor& tensor) noexcept;

    IParametricReLULayer* addParametricReLU(ITensor& input, ITensor& slope) noexcept;

    IConvolutionLayer* addConvolutionNd(ITensor& input, int32_t nbOutputMaps, Dims kernelSize, Weights kernelWeights,
                                        Weights biasWeights) noexcept;

    IPoolingLayer* addPoolingNd(ITensor& input, PoolingType type, Dims windowSize) noexcept;

    IDeconvolutionLayer* addDeconvolutionNd(ITensor& input, int32_t nbOutputMaps, Dims kernelSize,
                                            Weights kernelWeights, Weights biasWeights) noexcept;

    IScaleLayer* addScaleNd(ITensor& input, ScaleMode mode, Weights shift, Weights scale, Weights power,
                            int32_t channelAxis) noexcept;

    IResizeLayer* addResize(ITensor& input) noexcept;

    TRT_DEPRECATED bool hasExplicitPrecision() const noexcept;

    ILoop* addLoop() noexcept;

    ISelectLayer* addSelect(ITensor& condition, ITensor& thenInput, ITensor& elseInput) noexcept;

    IAssertionLayer* addAssertion(ITensor& condition, const char* message) noexcept;

    IFillLayer* addFill(Dims dimensions, FillOperation op) noexcept;

    TRT_DEPRECATED IPaddingLayer* addPaddingNd(ITensor& input, Dims prePadding, Dims postPadding) noexcept;

    bool setWeightsName(Weights weights, const char* name) noexcept;

    void setErrorRecorder(IErrorRecorder* recorder) noexcept;
    IErrorRecorder* getErrorRecorder() const noexcept;

    IDequantizeLayer* addDequantize(ITensor& input, ITensor& scale) noexcept;

    IScatterLayer* addScatter(ITensor& data, ITensor& indices, ITensor& updates, ScatterMode mode) noexcept;

    IQuantizeLayer* addQuantize(ITensor& input, ITensor& scale) noexcept;

    IIfConditional* addIfConditional() noexcept;

    IEinsumLayer* addEinsum(ITensor* const* inputs, int32_t nbInputs, const char* equation) noexcept;

    IGridSampleLayer* addGridSample(ITensor& input, ITensor& grid) noexcept;

    INMSLayer* addNMS(ITensor& boxes, ITensor& scores, ITensor& maxOutputBoxesPerClass) noexcept;
};

enum class CalibrationAlgoType : int32_t
{
    kLEGACY_CALIBRATION = 0,
    kENTROPY_CALIBRATION = 1,
    kENTROPY_CALIBRATION_2 = 2,
    kMINMAX_CALIBRATION = 3,
};

/// Number of values of CalibrationAlgoType.
template <>
constexpr int32_t EnumMax<CalibrationAlgoType>() noexcept
{
    return 4;
}

class TENSORRTAPI IInt8Calibrator
{
public:
    virtual int32_t getBatchSize() const noexcept = 0;

    virtual bool getBatch(void** bindings, const char** names, int32_t nbBindings) noexcept = 0;

    virtual const void* readCalibrationCache(std::size_t& length) noexcept = 0;

    virtual void writeCalibrationCache(const void* ptr, std::size_t length) noexcept = 0;

    virtual CalibrationAlgoType getAlgorithm() noexcept = 0;

    virtual ~IInt8Calibrator() noexcept = default;
};

class TENSORRTAPI IInt8EntropyCalibrator : public IInt8Calibrator
{
public:
    CalibrationAlgoType getAlgorithm() noexcept override { return CalibrationAlgoType::kENTROPY_CALIBRATION; }

    virtual ~IInt8EntropyCalibrator() noexcept = default;
};

class TENSORRTAPI IInt8EntropyCalibrator2 : public IInt8Calibrator
{
public:
    CalibrationAlgoType getAlgorithm() noexcept override { return CalibrationAlgoType::kENTROPY_CALIBRATION_2; }

    virtual ~IInt8EntropyCalibrator2() noexcept = default;
};

class TENSORRTAPI IInt8MinMaxCalibrator : public IInt8Calibrator
{
public:
    CalibrationAlgoType getAlgorithm() noexcept override { return CalibrationAlgoType::kMINMAX_CALIBRATION; }

    virtual ~IInt8MinMaxCalibrator() noexcept = default;
};

class TENSORRTAPI IInt8LegacyCalibrator : public IInt8Calibrator
{
public:
    CalibrationAlgoType getAlgorithm() noexcept override { return CalibrationAlgoType::kLEGACY_CALIBRATION; }

    virtual double getQuantile() const noexcept = 0;

    virtual double getRegressionCutoff() const noexcept = 0;

    virtual const void* readHistogramCache(std::size_t& length) noexcept = 0;

    virtual void writeHistogramCache(const void* ptr, std::size_t length) noexcept = 0;

    virtual ~IInt8LegacyCalibrator() noexcept = default;
};

class TENSORRTAPI IAlgorithmIOInfo : public INoCopy
{
public:
    TensorFormat getTensorFormat() const noexcept;

    DataType getDataType() const noexcept;

    Dims getStrides() const noexcept;

protected:
    virtual ~IAlgorithmIOInfo() noexcept = default;
};

class TENSORRTAPI IAlgorithmVariant : public INoCopy
{
public:
    int64_t getImplementation() const noexcept;

    int64_t getTactic() const noexcept;

protected:
    virtual ~IAlgorithmVariant() noexcept = default;
};

class TENSORRTAPI IAlgorithmContext : public INoCopy
{
public:
    const char* getName() const noexcept;

    Dims getDimensions(int32_t index, OptProfileSelector select) const noexcept;

    int32_t getNbInputs() const noexcept;

    int32_t getNbOutputs() const noexcept;

protected:
    virtual ~IAlgorithmContext() noexcept = default;
};

class TENSORRTAPI IAlgorithm : public INoCopy
{
public:
    TRT_DEPRECATED const IAlgorithmIOInfo& getAlgorithmIOInfo(int32_t index) const noexcept;

    const IAlgorithmVariant& getAlgorithmVariant() const noexcept;

    float getTimingMSec() const noexcept;

    std::size_t getWorkspaceSize() const noexcept;

    const IAlgorithmIOInfo* getAlgorithmIOInfoByIndex(int32_t index) const noexcept;

protected:
    virtual ~IAlgorithm() noexcept = default;
};

class TENSORRTAPI IAlgorithmSelector
{
public:
    virtual int32_t selectAlgorithms(const IAlgorithmContext& context, const IAlgorithm* const* choices,
                                     int32_t nbChoices, int32_t* selection) noexcept = 0;

    virtual void reportAlgorithms(const IAlgorithmContext* const* algoContexts, const IAlgorithm* const* algoChoices,
                                  int32_t nbAlgorithms) noexcept = 0;

    virtual ~IAlgorithmSelector() noexcept = default;
};

using QuantizationFlags = uint32_t;

enum class QuantizationFlag : int32_t
{
    kCALIBRATE_BEFORE_FUSION = 0,
};

/// Number of values of QuantizationFlag.
template <>
constexpr int32_t EnumMax<QuantizationFlag>() noexcept
{
    return 1;
}

using BuilderFlags = uint32_t;

enum class BuilderFlag : int32_t
{
    kFP16 = 0,
    kINT8 = 1,
    kDEBUG = 2,
    kGPU_FALLBACK = 3,
    kSTRICT_TYPES TRT_DEPRECATED_ENUM = 4,
    kREFIT = 5,
    kDISABLE_TIMING_CACHE = 6,
    kTF32 = 7,
    kSPARSE_WEIGHTS = 8,
    kSAFETY_SCOPE = 9,
    kOBEY_PRECISION_CONSTRAINTS = 10,
    kPREFER_PRECISION_CONSTRAINTS = 11,
    kDIRECT_IO = 12,
    kREJECT_EMPTY_ALGORITHMS = 13,
    kENABLE_TACTIC_HEURISTIC = 14,
};

/// Number of values of BuilderFlag.
template <>
constexpr int32_t EnumMax<BuilderFlag>() noexcept
{
    return 15;
}

class TENSORRTAPI ITimingCache : public INoCopy
{
public:
    virtual ~ITimingCache() noexcept = default;

    IHostMemory* serialize() const noexcept;

    bool combine(const ITimingCache& inputCache, bool ignoreMismatch) noexcept;
    bool reset() noexcept;
};

enum class MemoryPoolType : int32_t
{
    kWORKSPACE = 0,
    kDLA_MANAGED_SRAM = 1,
    kDLA_LOCAL_DRAM = 2,
    kDLA_GLOBAL_DRAM = 3,
};

/// Number of values of MemoryPoolType.
template <>
constexpr int32_t EnumMax<MemoryPoolType>() noexcept
{
    return 4;
}

enum class PreviewFeature : int32_t
{
    kFASTER_DYNAMIC_SHAPES_0805 = 0,
    kDISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805 = 1,
};

/// Number of values of PreviewFeature.
template <>
constexpr int32_t EnumMax<PreviewFeature>() noexcept
{
    return 2;
}

class TENSORRTAPI IBuilderConfig : public INoCopy
{
public:
    virtual ~IBuilderConfig() noexcept = default;

    TRT_DEPRECATED virtual void setMinTimingIterations(int32_t minTiming) noexcept;
    TRT_DEPRECATED virtual int32_t getMinTimingIterations() const noexcept;

    virtual void setAvgTimingIterations(int32_t avgTiming) noexcept;
    int32_t getAvgTimingIterations() const noexcept;

    void setEngineCapability(EngineCapability capability) noexcept;
    EngineCapability getEngineCapability() const noexcept;

    void setInt8Calibrator(IInt8Calibrator* calibrator) noexcept;
    IInt8Calibrator* getInt8Calibrator() const noexcept;

    TRT_DEPRECATED void setMaxWorkspaceSize(std::size_t workspaceSize) noexcept;
    TRT_DEPRECATED std::size_t getMaxWorkspaceSize() const noexcept;

    void setFlags(BuilderFlags builderFlags) noexcept;
    BuilderFlags getFlags() const noexcept;

    void clearFlag(BuilderFlag builderFlag) noexcept;

    void setFlag(BuilderFlag builderFlag) noexcept;
    bool getFlag(BuilderFlag builderFlag) const noexcept;

    void setDeviceType(const ILayer* layer, DeviceType deviceType) noexcept;
    DeviceType getDeviceType(const ILayer* layer) const noexcept;

    bool isDeviceTypeSet(const ILayer* layer) const noexcept;

    void resetDeviceType(const ILayer* layer) noexcept;

    bool canRunOnDLA(const ILayer* layer) const noexcept;

    void setDLACore(int32_t dlaCore) noexcept;
    int32_t getDLACore() const noexcept;

    void setDefaultDeviceType(DeviceType deviceType) noexcept;
    DeviceType getDefaultDeviceType() const noexcept;
    void reset() noexcept;

    TRT_DEPRECATED void destroy() noexcept { delete this; }

    void setProfileStream(cudaStream_t stream) noexcept;
    cudaStream_t getProfileStream() const noexcept;

    int32_t addOptimizationProfile(const IOptimizationProfile* profile) noexcept;

    int32_t getNbOptimizationProfiles() const noexcept;

    void setProfilingVerbosity(ProfilingVerbosity verbosity) noexcept;
    ProfilingVerbosity getProfilingVerbosity() const noexcept;

    void setAlgorithmSelector(IAlgorithmSelector* selector) noexcept;
    IAlgorithmSelector* getAlgorithmSelector() const noexcept;

    bool setCalibrationProfile(const IOptimizationProfile* profile) noexcept;
    const IOptimizationProfile* getCalibrationProfile() noexcept;

    void setQuantizationFlags(QuantizationFlags flags) noexcept;
    QuantizationFlags getQuantizationFlags() const noexcept;

    void clearQuantizationFlag(QuantizationFlag flag) noexcept;

    void setQuantizationFlag(QuantizationFlag flag) noexcept;
    bool getQuantizationFlag(QuantizationFlag flag) const noexcept;

    bool setTacticSources(TacticSources tacticSources) noexcept;
    TacticSources getTacticSources() const noexcept;

    ITimingCache* createTimingCache(const void* blob, std::size_t size) const noexcept;

    bool setTimingCache(const ITimingCache& cache, bool ignoreMismatch) noexcept;
    const ITimingCache* getTimingCache() const noexcept;

    void setMemoryPoolLimit(MemoryPoolType pool, std::size_t poolSize) noexcept;
    std::size_t getMemoryPoolLimit(MemoryPoolType pool) const noexcept;

    void setPreviewFeature(PreviewFeature feature, bool enable) noexcept;
    bool getPreviewFeature(PreviewFeature feature) const noexcept;
};

using NetworkDefinitionCreationFlags = uint32_t;

enum class NetworkDefinitionCreationFlag : int32_t
{
    kEXPLICIT_BATCH = 0,
    kEXPLICIT_PRECISION TRT_DEPRECATED_ENUM = 1,
};

/// Number of values of NetworkDefinitionCreationFlag.
template <>
constexpr int32_t EnumMax<NetworkDefinitionCreationFlag>() noexcept
{
    return 2;
}

class TENSORRTAPI IBuilder : public INoCopy
{
public:
    virtual ~IBuilder() noexcept = default;

    TRT_DEPRECATED void setMaxBatchSize(int32_t batchSize) noexcept;
    TRT_DEPRECATED int32_t getMaxBatchSize() const noexcept;

    bool platformHasFastFp16() const noexcept;

    bool platformHasFastInt8() const noexcept;

    TRT_DEPRECATED void destroy() noexcept { delete this; }

    int32_t getMaxDLABatchSize() const noexcept;

    int32_t getNbDLACores() const noexcept;

    void setGpuAllocator(IGpuAllocator* allocator) noexcept;

    IBuilderConfig* createBuilderConfig() noexcept;

    TRT_DEPRECATED ICudaEngine* buildEngineWithConfig(INetworkDefinition& network, IBuilderConfig& config) noexcept;

    INetworkDefinition* createNetworkV2(NetworkDefinitionCreationFlags flags) noexcept;

    IOptimizationProfile* createOptimizationProfile() noexcept;

    void setErrorRecorder(IErrorRecorder* recorder) noexcept;
    IErrorRecorder* getErrorRecorder() const noexcept;
    void reset() noexcept;

    bool platformHasTf32() const noexcept;

    IHostMemory* buildSerializedNetwork(INetworkDefinition& network, IBuilderConfig& config) noexcept;

    bool isNetworkSupported(const INetworkDefinition& network, const IBuilderConfig& config) const noexcept;

    ILogger* getLogger() const noexcept;

    bool setMaxThreads(int32_t maxThreads) noexcept;
    int32_t getMaxThreads() const noexcept;
};

} // namespace nvinfer1

extern "C" TENSORRTAPI void* createInferBuilder_INTERNAL(void* logger, int32_t version) noexcept;

namespace nvinfer1 {

namespace {

inline IBuilder* createInferBuilder(ILogger& logger) noexcept
{
    return static_cast<IBuilder*>(createInferBuilder_INTERNAL(&logger, NV_TENSORRT_VERSION + tensorwright_abi_8_5));
}

} // namespace

extern "C" TENSORRTAPI IPluginRegistry* getBuilderPluginRegistry(EngineCapability capability) noexcept;

} // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
