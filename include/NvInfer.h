// SPDX-License-Identifier: Apache-2.0
// Everything that defines a network and builds an engine from it: layers, network, calibrators, algorithm selection,
// builder.
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

/// Kind of a layer; names the class to which an ILayer can be cast.
enum class LayerType : int32_t
{
    kCONVOLUTION = 0,         ///< IConvolutionLayer.
    kFULLY_CONNECTED = 1,     ///< IFullyConnectedLayer.
    kACTIVATION = 2,          ///< IActivationLayer.
    kPOOLING = 3,             ///< IPoolingLayer.
    kLRN = 4,                 ///< ILRNLayer.
    kSCALE = 5,               ///< IScaleLayer.
    kSOFTMAX = 6,             ///< ISoftMaxLayer.
    kDECONVOLUTION = 7,       ///< IDeconvolutionLayer.
    kCONCATENATION = 8,       ///< IConcatenationLayer.
    kELEMENTWISE = 9,         ///< IElementWiseLayer.
    kPLUGIN = 10,             ///< No class; plugins of older releases.
    kUNARY = 11,              ///< IUnaryLayer.
    kPADDING = 12,            ///< IPaddingLayer.
    kSHUFFLE = 13,            ///< IShuffleLayer.
    kREDUCE = 14,             ///< IReduceLayer.
    kTOPK = 15,               ///< ITopKLayer.
    kGATHER = 16,             ///< IGatherLayer.
    kMATRIX_MULTIPLY = 17,    ///< IMatrixMultiplyLayer.
    kRAGGED_SOFTMAX = 18,     ///< IRaggedSoftMaxLayer.
    kCONSTANT = 19,           ///< IConstantLayer.
    kRNN_V2 = 20,             ///< IRNNv2Layer.
    kIDENTITY = 21,           ///< IIdentityLayer.
    kPLUGIN_V2 = 22,          ///< IPluginV2Layer.
    kSLICE = 23,              ///< ISliceLayer.
    kSHAPE = 24,              ///< IShapeLayer.
    kPARAMETRIC_RELU = 25,    ///< IParametricReLULayer.
    kRESIZE = 26,             ///< IResizeLayer.
    kTRIP_LIMIT = 27,         ///< ITripLimitLayer.
    kRECURRENCE = 28,         ///< IRecurrenceLayer.
    kITERATOR = 29,           ///< IIteratorLayer.
    kLOOP_OUTPUT = 30,        ///< ILoopOutputLayer.
    kSELECT = 31,             ///< ISelectLayer.
    kFILL = 32,               ///< IFillLayer.
    kQUANTIZE = 33,           ///< IQuantizeLayer.
    kDEQUANTIZE = 34,         ///< IDequantizeLayer.
    kCONDITION = 35,          ///< IConditionLayer.
    kCONDITIONAL_INPUT = 36,  ///< IIfConditionalInputLayer.
    kCONDITIONAL_OUTPUT = 37, ///< IIfConditionalOutputLayer.
    kSCATTER = 38,            ///< IScatterLayer.
    kEINSUM = 39,             ///< IEinsumLayer.
    kASSERTION = 40,          ///< IAssertionLayer.
    kONE_HOT = 41,            ///< IOneHotLayer.
    kNON_ZERO = 42,           ///< INonZeroLayer.
    kGRID_SAMPLE = 43,        ///< IGridSampleLayer.
    kNMS = 44,                ///< INMSLayer.
};

/// Number of values of LayerType.
template <>
constexpr int32_t EnumMax<LayerType>() noexcept
{
    return 45;
}

/// Bit mask: bit i is the TensorFormat of value i.
using TensorFormats = uint32_t;

/// Function of an activation layer; a is alpha, b is beta.
enum class ActivationType : int32_t
{
    kRELU = 0,              ///< max(0, x).
    kSIGMOID = 1,           ///< 1 / (1 + exp(-x)).
    kTANH = 2,              ///< tanh(x).
    kLEAKY_RELU = 3,        ///< x >= 0 ? x : a x.
    kELU = 4,               ///< x >= 0 ? x : a (exp(x) - 1).
    kSELU = 5,              ///< x > 0 ? b x : b (a exp(x) - a).
    kSOFTSIGN = 6,          ///< x / (1 + |x|).
    kSOFTPLUS = 7,          ///< a log(exp(b x) + 1).
    kCLIP = 8,              ///< max(a, min(b, x)).
    kHARD_SIGMOID = 9,      ///< max(0, min(1, a x + b)).
    kSCALED_TANH = 10,      ///< a tanh(b x).
    kTHRESHOLDED_RELU = 11, ///< x > a ? x : 0.
};

/// Number of values of ActivationType.
template <>
constexpr int32_t EnumMax<ActivationType>() noexcept
{
    return 12;
}

/// A value of a network: an input, or an output of a layer. Owned by the network. Its volume is below 2^31 elements.
class TENSORRTAPI ITensor : public INoCopy
{
public:
    /// Name of at most 4096 bytes with the terminator; copied. Inputs and outputs of a network need different names.
    void setName(char const* name) noexcept;
    char const* getName() const noexcept;

    /// New dimensions of a network input; -1 is a wildcard. Of other tensors it has no effect.
    void setDimensions(Dims dimensions) noexcept;

    /// Dimensions, -1 for those that come from a wildcard; nbDims -1 if they cannot be computed.
    Dims getDimensions() const noexcept;

    /// Type of a network input, output or shape output; of other tensors it has no effect.
    void setType(DataType type) noexcept;
    DataType getType() const noexcept;

    /// Range for INT8: the scale is max(|min|, |max|) / 127. False unless both are finite and min <= max.
    bool setDynamicRange(float min, float max) noexcept;

    bool isNetworkInput() const noexcept;

    bool isNetworkOutput() const noexcept;

    /// Whether an input of an implicit batch network is the same for every batch element. No effect with explicit
    /// batch.
    void setBroadcastAcrossBatch(bool broadcastAcrossBatch) noexcept;
    bool getBroadcastAcrossBatch() const noexcept;

    /// Where the elements are at run time.
    TensorLocation getLocation() const noexcept;

    /// kHOST is allowed for the sequence lengths of an RNN only.
    void setLocation(TensorLocation location) noexcept;

    /// Whether setDynamicRange() was called since the last reset.
    bool dynamicRangeIsSet() const noexcept;

    void resetDynamicRange() noexcept;

    /// Lower bound, or quiet NaN while no range is set.
    float getDynamicRangeMin() const noexcept;

    /// Upper bound, or quiet NaN while no range is set.
    float getDynamicRangeMax() const noexcept;

    /// Formats that a network input or output may have. Default all; kLINEAR only for shape tensors.
    void setAllowedFormats(TensorFormats formats) noexcept;
    TensorFormats getAllowedFormats() const noexcept;

    /// Whether the values are needed to compute shapes. Known for certain once the network is complete.
    bool isShapeTensor() const noexcept;

    /// Whether the values are needed on the device. A tensor may be both, or neither if it is not used.
    bool isExecutionTensor() const noexcept;

    /// Name of a dimension of a network input; dimensions of one name must be equal at run time. nullptr or "" takes it
    /// away.
    void setDimensionName(int32_t index, char const* name) noexcept;

    /// The name, or nullptr.
    char const* getDimensionName(int32_t index) const noexcept;

protected:
    virtual ~ITensor() noexcept = default;
};

/// A layer of a network; owned by the network. Casts to the class that getType() names.
class TENSORRTAPI ILayer : public INoCopy
{
public:
    LayerType getType() const noexcept;

    /// Name of at most 4096 bytes with the terminator; copied.
    void setName(char const* name) noexcept;
    char const* getName() const noexcept;

    int32_t getNbInputs() const noexcept;

    /// Input index, or nullptr when out of range or an optional input that is not set.
    ITensor* getInput(int32_t index) const noexcept;

    int32_t getNbOutputs() const noexcept;

    /// Output index, or nullptr when out of range.
    ITensor* getOutput(int32_t index) const noexcept;

    /// Replaces an input. Adds one only for layers with optional inputs, which their classes list; skipped inputs in
    /// between become null.
    void setInput(int32_t index, ITensor& tensor) noexcept;

    /// Wanted type of the computation. BuilderFlag::kOBEY_PRECISION_CONSTRAINTS makes it a demand.
    void setPrecision(DataType dataType) noexcept;

    /// The wanted type, or kFLOAT while none is set.
    DataType getPrecision() const noexcept;

    bool precisionIsSet() const noexcept;

    void resetPrecision() noexcept;

    /// Wanted type of an output as the kernel writes it; the type of a network output is set by ITensor::setType().
    void setOutputType(int32_t index, DataType dataType) noexcept;

    /// The wanted type; kFLOAT while none is set, except for outputs that are kINT32 by nature.
    DataType getOutputType(int32_t index) const noexcept;

    bool outputTypeIsSet(int32_t index) const noexcept;

    void resetOutputType(int32_t index) noexcept;

protected:
    virtual ~ILayer() noexcept = default;
};

/// How padding and output extent of a window follow from the input extent I, the window extent DK (with dilation), the
/// stride S and the paddings before and after B and A. Given for convolution and pooling.
enum class PaddingMode : int32_t
{
    kEXPLICIT_ROUND_DOWN = 0, ///< O = floor((I + B + A - DK) / S) + 1.
    kEXPLICIT_ROUND_UP = 1,   ///< O = ceil((I + B + A - DK) / S) + 1.
    kSAME_UPPER = 2,          ///< O = ceil(I / S); an odd padding element goes after.
    kSAME_LOWER = 3,          ///< O = ceil(I / S); an odd padding element goes before.
    kCAFFE_ROUND_DOWN = 4,    ///< O = floor((I + 2 B - DK) / S) + 1, as Caffe does it.
    kCAFFE_ROUND_UP = 5,      ///< O = ceil((I + 2 B - DK) / S) + 1, as Caffe does it.
};

/// Number of values of PaddingMode.
template <>
constexpr int32_t EnumMax<PaddingMode>() noexcept
{
    return 6;
}

/// Convolution (cross-correlation) over 2 or 3 spatial dimensions.
/// Input [N, C, spatial...], output [N, K, spatial...]. Kernel weights [K, C / groups, window...]. C must be known when
/// the engine is built.
class TENSORRTAPI IConvolutionLayer : public ILayer
{
public:
    /// Replaced by setKernelSizeNd().
    TRT_DEPRECATED void setKernelSize(DimsHW kernelSize) noexcept;
    TRT_DEPRECATED DimsHW getKernelSize() const noexcept;

    /// K, the channels of the output.
    void setNbOutputMaps(int32_t nbOutputMaps) noexcept;
    int32_t getNbOutputMaps() const noexcept;

    /// Replaced by setStrideNd().
    TRT_DEPRECATED void setStride(DimsHW stride) noexcept;
    TRT_DEPRECATED DimsHW getStride() const noexcept;

    /// Replaced by setPaddingNd().
    TRT_DEPRECATED void setPadding(DimsHW padding) noexcept;
    TRT_DEPRECATED DimsHW getPadding() const noexcept;

    /// Groups of channels that do not mix; divides C and K. Default 1.
    void setNbGroups(int32_t nbGroups) noexcept;
    int32_t getNbGroups() const noexcept;

    void setKernelWeights(Weights weights) noexcept;
    Weights getKernelWeights() const noexcept;

    /// K values added to each output map, or empty.
    void setBiasWeights(Weights weights) noexcept;
    Weights getBiasWeights() const noexcept;

    /// Replaced by setDilationNd().
    TRT_DEPRECATED void setDilation(DimsHW dilation) noexcept;
    TRT_DEPRECATED DimsHW getDilation() const noexcept;

    /// Zeros before each spatial dimension. Default 0.
    void setPrePadding(Dims padding) noexcept;
    Dims getPrePadding() const noexcept;

    /// Zeros after each spatial dimension. Default 0.
    void setPostPadding(Dims padding) noexcept;
    Dims getPostPadding() const noexcept;

    /// Default kEXPLICIT_ROUND_DOWN; the SAME modes win over explicit paddings.
    void setPaddingMode(PaddingMode paddingMode) noexcept;
    PaddingMode getPaddingMode() const noexcept;

    /// Window extents; 2 or 3 of them choose 2D or 3D.
    void setKernelSizeNd(Dims kernelSize) noexcept;
    Dims getKernelSizeNd() const noexcept;

    /// Default 1 in each dimension.
    void setStrideNd(Dims stride) noexcept;
    Dims getStrideNd() const noexcept;

    /// Sets padding before and after; the getter gives the padding before.
    void setPaddingNd(Dims padding) noexcept;
    Dims getPaddingNd() const noexcept;

    /// Distance of window elements in the input. Default 1.
    void setDilationNd(Dims dilation) noexcept;
    Dims getDilationNd() const noexcept;

    /// Input 0 is the data; optional 1 the kernel, 2 the bias, with the corresponding weights empty.
    using ILayer::setInput;

protected:
    virtual ~IConvolutionLayer() noexcept = default;
};

/// Output [..., K, 1, 1] = kernel [K, V] times input, where V is the product of the last three dimensions. Deprecated:
/// use IMatrixMultiplyLayer.
class TRT_DEPRECATED TENSORRTAPI IFullyConnectedLayer : public ILayer
{
public:
    /// K, the channels of the output.
    void setNbOutputChannels(int32_t nbOutputs) noexcept;
    int32_t getNbOutputChannels() const noexcept;

    /// K * V values, row-major.
    void setKernelWeights(Weights weights) noexcept;
    Weights getKernelWeights() const noexcept;

    /// K values, or empty.
    void setBiasWeights(Weights weights) noexcept;
    Weights getBiasWeights() const noexcept;

    /// Input 0 is the data; optional 1 is a constant kernel behind a dequantize layer.
    using ILayer::setInput;

protected:
    virtual ~IFullyConnectedLayer() noexcept = default;
};

/// Applies a function to each element. Output has the input's shape.
class TENSORRTAPI IActivationLayer : public ILayer
{
public:
    void setActivationType(ActivationType type) noexcept;
    ActivationType getActivationType() const noexcept;

    /// First parameter of those functions that have one; finite. Not set: 0, for kSOFTPLUS 1.
    void setAlpha(float alpha) noexcept;

    /// Second parameter of those functions that have two; finite. Not set: 0, for kSOFTPLUS 1.
    void setBeta(float beta) noexcept;

    float getAlpha() const noexcept;

    float getBeta() const noexcept;

protected:
    virtual ~IActivationLayer() noexcept = default;
};

/// What a pooling layer does in its window.
enum class PoolingType : int32_t
{
    kMAX = 0,               ///< Largest element.
    kAVERAGE = 1,           ///< Mean.
    kMAX_AVERAGE_BLEND = 2, ///< (1 - blend) maximum + blend mean.
};

/// Number of values of PoolingType.
template <>
constexpr int32_t EnumMax<PoolingType>() noexcept
{
    return 3;
}

/// Reduces a window that moves over 2 or 3 spatial dimensions. Input [N, C, spatial...]. Padding counts as -infinity
/// for the maximum and as 0 for the mean.
class TENSORRTAPI IPoolingLayer : public ILayer
{
public:
    void setPoolingType(PoolingType type) noexcept;
    PoolingType getPoolingType() const noexcept;

    /// Replaced by setWindowSizeNd().
    TRT_DEPRECATED void setWindowSize(DimsHW windowSize) noexcept;
    TRT_DEPRECATED DimsHW getWindowSize() const noexcept;

    /// Replaced by setStrideNd().
    TRT_DEPRECATED void setStride(DimsHW stride) noexcept;
    TRT_DEPRECATED DimsHW getStride() const noexcept;

    /// Replaced by setPaddingNd().
    TRT_DEPRECATED void setPadding(DimsHW padding) noexcept;
    TRT_DEPRECATED DimsHW getPadding() const noexcept;

    /// Share of the mean in kMAX_AVERAGE_BLEND, 0 to 1. Default 0.
    void setBlendFactor(float blendFactor) noexcept;
    float getBlendFactor() const noexcept;

    /// Whether the mean divides by the elements inside the input only. Default true.
    void setAverageCountExcludesPadding(bool exclusive) noexcept;
    bool getAverageCountExcludesPadding() const noexcept;

    /// Padding before each spatial dimension. Default 0.
    void setPrePadding(Dims padding) noexcept;
    Dims getPrePadding() const noexcept;

    /// Padding after each spatial dimension. Default 0.
    void setPostPadding(Dims padding) noexcept;
    Dims getPostPadding() const noexcept;

    /// Default kEXPLICIT_ROUND_DOWN.
    void setPaddingMode(PaddingMode paddingMode) noexcept;
    PaddingMode getPaddingMode() const noexcept;

    /// Window extents; 2 or 3 of them choose 2D or 3D.
    void setWindowSizeNd(Dims windowSize) noexcept;
    Dims getWindowSizeNd() const noexcept;

    /// Default 1 in each dimension.
    void setStrideNd(Dims stride) noexcept;
    Dims getStrideNd() const noexcept;

    /// Sets padding before and after; the getter gives the padding before.
    void setPaddingNd(Dims padding) noexcept;
    Dims getPaddingNd() const noexcept;

protected:
    virtual ~IPoolingLayer() noexcept = default;
};

/// Local response normalization across channels: x / (k + alpha / window * sum of squares in the window)^beta.
class TENSORRTAPI ILRNLayer : public ILayer
{
public:
    /// Channels in the window: odd, 1 to 15.
    void setWindowSize(int32_t windowSize) noexcept;
    int32_t getWindowSize() const noexcept;

    /// -1e20 to 1e20.
    void setAlpha(float alpha) noexcept;
    float getAlpha() const noexcept;

    /// 0.01 to 1e5.
    void setBeta(float beta) noexcept;
    float getBeta() const noexcept;

    /// 1e-5 to 1e10.
    void setK(float k) noexcept;
    float getK() const noexcept;

protected:
    virtual ~ILRNLayer() noexcept = default;
};

/// What shares one coefficient of a scale layer.
enum class ScaleMode : int32_t
{
    kUNIFORM = 0,     ///< The whole tensor.
    kCHANNEL = 1,     ///< Each channel.
    kELEMENTWISE = 2, ///< Nothing: one coefficient for each element from the channel axis on.
};

/// Number of values of ScaleMode.
template <>
constexpr int32_t EnumMax<ScaleMode>() noexcept
{
    return 3;
}

/// (x * scale + shift)^power for each element. Empty weights mean scale 1, shift 0, power 1.
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

    /// Dimension of the channels for ScaleMode::kCHANNEL and kELEMENTWISE.
    int32_t getChannelAxis() const noexcept;
    void setChannelAxis(int32_t channelAxis) noexcept;

protected:
    virtual ~IScaleLayer() noexcept = default;
};

/// exp(x) / sum of exp(x) along one dimension. Output has the input's shape.
class TENSORRTAPI ISoftMaxLayer : public ILayer
{
public:
    /// Mask with one bit: the dimension. Default bit max(0, rank - 3), without the batch in implicit batch mode.
    void setAxes(uint32_t axes) noexcept;
    uint32_t getAxes() const noexcept;

protected:
    virtual ~ISoftMaxLayer() noexcept = default;
};

/// Joins tensors along one dimension; all others must be equal.
class TENSORRTAPI IConcatenationLayer : public ILayer
{
public:
    /// Default max(0, rank - 3), without the batch in implicit batch mode.
    void setAxis(int32_t axis) noexcept;
    int32_t getAxis() const noexcept;

protected:
    virtual ~IConcatenationLayer() noexcept = default;
};

/// Transposed convolution over 2 or 3 spatial dimensions: O = (I - 1) stride + window - paddings.
/// Input [N, C, spatial...], output [N, K, spatial...]. Kernel weights [C, K / groups, window...].
class TENSORRTAPI IDeconvolutionLayer : public ILayer
{
public:
    /// Replaced by setKernelSizeNd().
    TRT_DEPRECATED void setKernelSize(DimsHW kernelSize) noexcept;
    TRT_DEPRECATED DimsHW getKernelSize() const noexcept;

    /// K, the channels of the output.
    void setNbOutputMaps(int32_t nbOutputMaps) noexcept;
    int32_t getNbOutputMaps() const noexcept;

    /// Replaced by setStrideNd().
    TRT_DEPRECATED void setStride(DimsHW stride) noexcept;
    TRT_DEPRECATED DimsHW getStride() const noexcept;

    /// Replaced by setPaddingNd().
    TRT_DEPRECATED void setPadding(DimsHW padding) noexcept;
    TRT_DEPRECATED DimsHW getPadding() const noexcept;

    /// Groups of channels that do not mix; divides C and K. Default 1.
    void setNbGroups(int32_t nbGroups) noexcept;
    int32_t getNbGroups() const noexcept;

    void setKernelWeights(Weights weights) noexcept;
    Weights getKernelWeights() const noexcept;

    /// K values added to each output map, or empty.
    void setBiasWeights(Weights weights) noexcept;
    Weights getBiasWeights() const noexcept;

    /// Elements cut from the start of each output dimension; not negative. Default 0.
    void setPrePadding(Dims padding) noexcept;
    Dims getPrePadding() const noexcept;

    /// Elements cut from the end of each output dimension; not negative. Default 0.
    void setPostPadding(Dims padding) noexcept;
    Dims getPostPadding() const noexcept;

    /// Default kEXPLICIT_ROUND_DOWN.
    void setPaddingMode(PaddingMode paddingMode) noexcept;
    PaddingMode getPaddingMode() const noexcept;

    /// Window extents; 2 or 3 of them choose 2D or 3D.
    void setKernelSizeNd(Dims kernelSize) noexcept;
    Dims getKernelSizeNd() const noexcept;

    /// Default 1 in each dimension.
    void setStrideNd(Dims stride) noexcept;
    Dims getStrideNd() const noexcept;

    /// Sets what is cut from start and end; the getter gives the start.
    void setPaddingNd(Dims padding) noexcept;
    Dims getPaddingNd() const noexcept;

    /// Input 0 is the data; optional 1 the kernel, 2 the bias, with the corresponding weights empty.
    using ILayer::setInput;

    /// Distance of window elements in the output. Default 1.
    void setDilationNd(Dims dilation) noexcept;
    Dims getDilationNd() const noexcept;

protected:
    virtual ~IDeconvolutionLayer() noexcept = default;
};

/// Operation on two elements a and b.
enum class ElementWiseOperation : int32_t
{
    kSUM = 0,       ///< a + b.
    kPROD = 1,      ///< a * b.
    kMAX = 2,       ///< Larger of both.
    kMIN = 3,       ///< Smaller of both.
    kSUB = 4,       ///< a - b.
    kDIV = 5,       ///< a / b.
    kPOW = 6,       ///< a to the power of b; not for kINT32.
    kFLOOR_DIV = 7, ///< a / b, rounded down.
    kAND = 8,       ///< a and b; kBOOL.
    kOR = 9,        ///< a or b; kBOOL.
    kXOR = 10,      ///< a differs from b; kBOOL.
    kEQUAL = 11,    ///< a == b; gives kBOOL.
    kGREATER = 12,  ///< a > b; gives kBOOL.
    kLESS = 13,     ///< a < b; gives kBOOL.
};

/// Number of values of ElementWiseOperation.
template <>
constexpr int32_t EnumMax<ElementWiseOperation>() noexcept
{
    return 14;
}

/// Combines two tensors of one rank; each dimension is equal in both or 1, which repeats.
class TENSORRTAPI IElementWiseLayer : public ILayer
{
public:
    void setOperation(ElementWiseOperation op) noexcept;
    ElementWiseOperation getOperation() const noexcept;

protected:
    virtual ~IElementWiseLayer() noexcept = default;
};

/// What indices of a gather layer select. r is the rank of data, q that of indices.
enum class GatherMode : int32_t
{
    kDEFAULT = 0, ///< Slices of data along the axis, as ONNX Gather. Rank q + r - 1 - nbElementWiseDims.
    kELEMENT = 1, ///< One element for each index, as ONNX GatherElements. q = r.
    kND = 2,      ///< Slices by index vectors, as ONNX GatherND.
};

/// Number of values of GatherMode.
template <>
constexpr int32_t EnumMax<GatherMode>() noexcept
{
    return 3;
}

/// Picks elements or slices of data (input 0) by indices (input 1, kINT32). An index out of bounds gives 0.
class TENSORRTAPI IGatherLayer : public ILayer
{
public:
    /// Dimension that is indexed, for kDEFAULT and kELEMENT. Default 0.
    void setGatherAxis(int32_t axis) noexcept;
    int32_t getGatherAxis() const noexcept;

    /// Leading dimensions that data and indices share: 0 or 1 for kDEFAULT, 0 to r - 1 for kND, 0 for kELEMENT.
    void setNbElementWiseDims(int32_t elementWiseDims) noexcept;
    int32_t getNbElementWiseDims() const noexcept;

    void setMode(GatherMode mode) noexcept;
    GatherMode getMode() const noexcept;

protected:
    virtual ~IGatherLayer() noexcept = default;
};

/// Cell of a recurrent layer.
enum class RNNOperation : int32_t
{
    kRELU = 0, ///< One gate with max(0, x).
    kTANH = 1, ///< One gate with tanh(x).
    kLSTM = 2, ///< Gates input, forget, output, cell; no peepholes.
    kGRU = 3,  ///< Gates update, reset, hidden; the reset gate acts after the recurrent product and its bias.
};

/// Number of values of RNNOperation.
template <>
constexpr int32_t EnumMax<RNNOperation>() noexcept
{
    return 4;
}

/// Order in which a recurrent layer reads the sequence.
enum class RNNDirection : int32_t
{
    kUNIDIRECTION = 0, ///< First to last.
    kBIDIRECTION = 1,  ///< Both ways, the results joined.
};

/// Number of values of RNNDirection.
template <>
constexpr int32_t EnumMax<RNNDirection>() noexcept
{
    return 2;
}

/// Input of a recurrent layer's first level.
enum class RNNInputMode : int32_t
{
    kLINEAR = 0, ///< Goes through an input matrix.
    kSKIP = 1,   ///< Is used as it is; the data length equals the hidden size.
};

/// Number of values of RNNInputMode.
template <>
constexpr int32_t EnumMax<RNNInputMode>() noexcept
{
    return 2;
}

/// Gate of a recurrent cell.
enum class RNNGateType : int32_t
{
    kINPUT = 0,  ///< Input gate.
    kOUTPUT = 1, ///< Output gate.
    kFORGET = 2, ///< Forget gate.
    kUPDATE = 3, ///< Update gate.
    kRESET = 4,  ///< Reset gate.
    kCELL = 5,   ///< Cell gate.
    kHIDDEN = 6, ///< Hidden gate.
};

/// Number of values of RNNGateType.
template <>
constexpr int32_t EnumMax<RNNGateType>() noexcept
{
    return 7;
}

/// Recurrent network of several levels, implicit batch only. Deprecated: use ILoop.
/// L levels, H hidden size, S longest sequence, E data length. Input [N..., S, E]; outputs [N..., S, H], last hidden
/// state [N..., L, H], for LSTM also last cell state. Both directions double H of output 0 and L.
class TRT_DEPRECATED TENSORRTAPI IRNNv2Layer : public ILayer
{
public:
    /// L.
    int32_t getLayerCount() const noexcept;

    /// H.
    int32_t getHiddenSize() const noexcept;

    /// S.
    int32_t getMaxSeqLength() const noexcept;

    /// E.
    int32_t getDataLength() const noexcept;

    /// Length of each sequence, kINT32 of shape [N...], 1 to S. All are S while it is not set.
    void setSequenceLengths(ITensor& seqLengths) noexcept;
    ITensor* getSequenceLengths() const noexcept;

    void setOperation(RNNOperation op) noexcept;
    RNNOperation getOperation() const noexcept;

    /// Default kLINEAR.
    void setInputMode(RNNInputMode op) noexcept;
    RNNInputMode getInputMode() const noexcept;

    /// Default kUNIDIRECTION.
    void setDirection(RNNDirection op) noexcept;
    RNNDirection getDirection() const noexcept;

    /// Matrix of a gate: of the input if isW, [H, E] or [H, H], else of the recurrence, [H, H]. With both directions,
    /// level 2 i is forward and 2 i + 1 backward.
    void setWeightsForGate(int32_t layerIndex, RNNGateType gate, bool isW, Weights weights) noexcept;
    Weights getWeightsForGate(int32_t layerIndex, RNNGateType gate, bool isW) const noexcept;

    /// H values for a gate, of the input if isW, else of the recurrence.
    void setBiasForGate(int32_t layerIndex, RNNGateType gate, bool isW, Weights bias) noexcept;
    Weights getBiasForGate(int32_t layerIndex, RNNGateType gate, bool isW) const noexcept;

    /// State before the first step, [N..., L, H]; 0 while it is not set.
    void setHiddenState(ITensor& hidden) noexcept;
    ITensor* getHiddenState() const noexcept;

    /// Cell state before the first step, [N..., L, H], LSTM only; 0 while it is not set.
    void setCellState(ITensor& cell) noexcept;
    ITensor* getCellState() const noexcept;

protected:
    virtual ~IRNNv2Layer() noexcept = default;
};

/// A layer whose work a plugin does.
class TENSORRTAPI IPluginV2Layer : public ILayer
{
public:
    /// The network's own clone of the plugin.
    IPluginV2& getPlugin() noexcept;

protected:
    virtual ~IPluginV2Layer() noexcept = default;
};

/// Function of one element.
enum class UnaryOperation : int32_t
{
    kEXP = 0,    ///< e to the x.
    kLOG = 1,    ///< Natural logarithm.
    kSQRT = 2,   ///< Square root.
    kRECIP = 3,  ///< 1 / x.
    kABS = 4,    ///< |x|.
    kNEG = 5,    ///< -x.
    kSIN = 6,    ///< Sine.
    kCOS = 7,    ///< Cosine.
    kTAN = 8,    ///< Tangent.
    kSINH = 9,   ///< Hyperbolic sine.
    kCOSH = 10,  ///< Hyperbolic cosine.
    kASIN = 11,  ///< Inverse sine.
    kACOS = 12,  ///< Inverse cosine.
    kATAN = 13,  ///< Inverse tangent.
    kASINH = 14, ///< Inverse hyperbolic sine.
    kACOSH = 15, ///< Inverse hyperbolic cosine.
    kATANH = 16, ///< Inverse hyperbolic tangent.
    kCEIL = 17,  ///< Rounds up.
    kFLOOR = 18, ///< Rounds down.
    kERF = 19,   ///< Gauss error function.
    kNOT = 20,   ///< Not x; kBOOL.
    kSIGN = 21,  ///< 1, -1 or 0; also for kINT32.
    kROUND = 22, ///< To the nearest integer, halves to even.
};

/// Number of values of UnaryOperation.
template <>
constexpr int32_t EnumMax<UnaryOperation>() noexcept
{
    return 23;
}

/// Applies a function to each element. Output has the input's shape.
class TENSORRTAPI IUnaryLayer : public ILayer
{
public:
    void setOperation(UnaryOperation op) noexcept;
    UnaryOperation getOperation() const noexcept;

protected:
    virtual ~IUnaryLayer() noexcept = default;
};

/// How a reduce layer combines elements.
enum class ReduceOperation : int32_t
{
    kSUM = 0,  ///< Sum; 0 of nothing.
    kPROD = 1, ///< Product; 1 of nothing.
    kMAX = 2,  ///< Maximum; the lowest value of the type of nothing.
    kMIN = 3,  ///< Minimum; the highest value of the type of nothing.
    kAVG = 4,  ///< Mean; NaN of nothing.
};

/// Number of values of ReduceOperation.
template <>
constexpr int32_t EnumMax<ReduceOperation>() noexcept
{
    return 5;
}

/// Combines the elements along some dimensions.
class TENSORRTAPI IReduceLayer : public ILayer
{
public:
    void setOperation(ReduceOperation op) noexcept;
    ReduceOperation getOperation() const noexcept;

    /// Bit i is dimension i, without the batch in implicit batch mode.
    void setReduceAxes(uint32_t reduceAxes) noexcept;
    uint32_t getReduceAxes() const noexcept;

    /// Whether reduced dimensions stay as 1.
    void setKeepDimensions(bool keepDimensions) noexcept;
    bool getKeepDimensions() const noexcept;

protected:
    virtual ~IReduceLayer() noexcept = default;
};

/// Adds zeros around the two innermost dimensions; negative numbers crop. Use ISliceLayer instead.
class TENSORRTAPI IPaddingLayer : public ILayer
{
public:
    /// Replaced by setPrePaddingNd().
    TRT_DEPRECATED void setPrePadding(DimsHW padding) noexcept;
    TRT_DEPRECATED DimsHW getPrePadding() const noexcept;

    /// Replaced by setPostPaddingNd().
    TRT_DEPRECATED void setPostPadding(DimsHW padding) noexcept;
    TRT_DEPRECATED DimsHW getPostPadding() const noexcept;

    /// Zeros before each of the two dimensions.
    void setPrePaddingNd(Dims padding) noexcept;
    Dims getPrePaddingNd() const noexcept;

    /// Zeros after each of the two dimensions.
    void setPostPaddingNd(Dims padding) noexcept;
    Dims getPostPaddingNd() const noexcept;

protected:
    virtual ~IPaddingLayer() noexcept = default;
};

/// Order of dimensions.
struct Permutation
{
    int32_t order[Dims::MAX_DIMS]; ///< Output dimension i is input dimension order[i]: CHW to HWC is {1, 2, 0}.
};

/// Transposes, reshapes, transposes again.
class TENSORRTAPI IShuffleLayer : public ILayer
{
public:
    /// Order before the reshape. Default identity.
    void setFirstTranspose(Permutation permutation) noexcept;
    Permutation getFirstTranspose() const noexcept;

    /// New dimensions; one may be -1 and is computed. Takes away input 1. The getter gives nbDims -1 while they are
    /// unset or come from input 1.
    void setReshapeDimensions(Dims dimensions) noexcept;
    Dims getReshapeDimensions() const noexcept;

    /// Input 0 is the data; optional 1 the new dimensions, a 1-D kINT32 shape tensor.
    using ILayer::setInput;

    /// Order after the reshape. Default identity.
    void setSecondTranspose(Permutation permutation) noexcept;
    Permutation getSecondTranspose() const noexcept;

    /// Whether 0 in the new dimensions means the input's dimension. Default true.
    void setZeroIsPlaceholder(bool zeroIsPlaceholder) noexcept;
    bool getZeroIsPlaceholder() const noexcept;

protected:
    virtual ~IShuffleLayer() noexcept = default;
};

/// What is read outside a tensor.
enum class SampleMode : int32_t
{
    kSTRICT_BOUNDS = 0,                            ///< Nothing: an error.
    kDEFAULT TRT_DEPRECATED_ENUM = kSTRICT_BOUNDS, ///< Old name of kSTRICT_BOUNDS.
    kWRAP = 1,                                     ///< The tensor repeats.
    kCLAMP = 2,                                    ///< The nearest element.
    kFILL = 3,                                     ///< 0, or the fill value.
    kREFLECT = 4,                                  ///< The tensor mirrored at the centre of its border elements.
};

/// Older name of SampleMode.
using SliceMode = SampleMode;

/// Number of values of SampleMode.
template <>
constexpr int32_t EnumMax<SampleMode>() noexcept
{
    return 5;
}

/// Output element j is input element start + j * stride, for j below size.
class TENSORRTAPI ISliceLayer : public ILayer
{
public:
    /// Takes away input 1; the getter gives nbDims -1 while that input is set.
    void setStart(Dims start) noexcept;
    Dims getStart() const noexcept;

    /// Dimensions of the output. Takes away input 2; the getter gives nbDims -1 while that input is set.
    void setSize(Dims size) noexcept;
    Dims getSize() const noexcept;

    /// May be negative or 0. Takes away input 3; the getter gives nbDims -1 while that input is set.
    void setStride(Dims stride) noexcept;
    Dims getStride() const noexcept;

    /// Default kSTRICT_BOUNDS.
    void setMode(SliceMode mode) noexcept;
    SliceMode getMode() const noexcept;

    /// Input 0 is the data; optional 1 start, 2 size, 3 stride (1-D kINT32 shape tensors), 4 the value for kFILL.
    using ILayer::setInput;

protected:
    virtual ~ISliceLayer() noexcept = default;
};

/// The dimensions of a tensor as a 1-D kINT32 tensor. Explicit batch only.
class TENSORRTAPI IShapeLayer : public ILayer
{
protected:
    virtual ~IShapeLayer() noexcept = default;
};

/// Which elements a top-k layer keeps.
enum class TopKOperation : int32_t
{
    kMAX = 0, ///< The largest, largest first.
    kMIN = 1, ///< The smallest, smallest first.
};

/// Number of values of TopKOperation.
template <>
constexpr int32_t EnumMax<TopKOperation>() noexcept
{
    return 2;
}

/// The k extreme elements along one dimension. Output 0 are the values, output 1 their indices (kINT32).
class TENSORRTAPI ITopKLayer : public ILayer
{
public:
    void setOperation(TopKOperation op) noexcept;
    TopKOperation getOperation() const noexcept;

    /// At most 3840.
    void setK(int32_t k) noexcept;
    int32_t getK() const noexcept;

    /// Mask with one bit: one of the last four dimensions.
    void setReduceAxes(uint32_t reduceAxes) noexcept;
    uint32_t getReduceAxes() const noexcept;

protected:
    virtual ~ITopKLayer() noexcept = default;
};

/// How an input of a matrix product is read.
enum class MatrixOperation : int32_t
{
    kNONE = 0,      ///< The last two dimensions are a matrix.
    kTRANSPOSE = 1, ///< The last two dimensions are a matrix that is transposed.
    kVECTOR = 2,    ///< The last dimension is a vector: a row for input 0, a column for input 1.
};

/// Number of values of MatrixOperation.
template <>
constexpr int32_t EnumMax<MatrixOperation>() noexcept
{
    return 3;
}

/// Matrix product of two tensors. Leading dimensions are equal or 1, which repeats.
class TENSORRTAPI IMatrixMultiplyLayer : public ILayer
{
public:
    /// How input index (0 or 1) is read.
    void setOperation(int32_t index, MatrixOperation op) noexcept;
    MatrixOperation getOperation(int32_t index) const noexcept;

protected:
    virtual ~IMatrixMultiplyLayer() noexcept = default;
};

/// Indices of the elements that are not 0, as columns of a kINT32 tensor [rank, n] in lexical order.
class TENSORRTAPI INonZeroLayer : public ILayer
{
protected:
    virtual ~INonZeroLayer() noexcept = default;
};

/// Softmax over the first bounds[z] elements of each row; the rest becomes 0. Data [Z, S], bounds [Z, 1].
class TENSORRTAPI IRaggedSoftMaxLayer : public ILayer
{
protected:
    virtual ~IRaggedSoftMaxLayer() noexcept = default;
};

/// Copies, and converts between types when the output type is set or the output is a network output.
class TENSORRTAPI IIdentityLayer : public ILayer
{
protected:
    virtual ~IIdentityLayer() noexcept = default;
};

/// A tensor of constants.
class TENSORRTAPI IConstantLayer : public ILayer
{
public:
    /// Values, as many as the dimensions say.
    void setWeights(Weights weights) noexcept;
    Weights getWeights() const noexcept;

    /// Dimensions of the output.
    void setDimensions(Dims dimensions) noexcept;
    Dims getDimensions() const noexcept;

protected:
    virtual ~IConstantLayer() noexcept = default;
};

/// x >= 0 ? x : slope * x. Input 1 is the slope, broadcast to the data.
class TENSORRTAPI IParametricReLULayer : public ILayer
{
protected:
    virtual ~IParametricReLULayer() noexcept = default;
};

/// How values between elements are found.
enum class InterpolationMode : int32_t
{
    kNEAREST = 0, ///< The nearest element.
    kLINEAR = 1,  ///< Linear in 1 to 3 dimensions.
    kCUBIC = 2,   ///< Cubic in 2 dimensions.
};

/// Older name of InterpolationMode.
using ResizeMode = InterpolationMode;

/// Number of values of InterpolationMode.
template <>
constexpr int32_t EnumMax<InterpolationMode>() noexcept
{
    return 3;
}

/// From an output coordinate x to the input. Lin and Lout are the extents.
enum class ResizeCoordinateTransformation : int32_t
{
    kALIGN_CORNERS = 0, ///< x (Lin - 1) / (Lout - 1).
    kASYMMETRIC = 1,    ///< x Lin / Lout.
    kHALF_PIXEL = 2,    ///< (x + 0.5) Lin / Lout - 0.5.
};

/// Number of values of ResizeCoordinateTransformation.
template <>
constexpr int32_t EnumMax<ResizeCoordinateTransformation>() noexcept
{
    return 3;
}

/// Coordinate for an output extent of 1.
enum class ResizeSelector : int32_t
{
    kFORMULA = 0, ///< By the transformation.
    kUPPER = 1,   ///< The first element.
};

/// Number of values of ResizeSelector.
template <>
constexpr int32_t EnumMax<ResizeSelector>() noexcept
{
    return 2;
}

/// Rounding of coordinates for kNEAREST.
enum class ResizeRoundMode : int32_t
{
    kHALF_UP = 0,   ///< Nearest, halves up.
    kHALF_DOWN = 1, ///< Nearest, halves down.
    kFLOOR = 2,     ///< Down.
    kCEIL = 3,      ///< Up.
};

/// Number of values of ResizeRoundMode.
template <>
constexpr int32_t EnumMax<ResizeRoundMode>() noexcept
{
    return 4;
}

/// Resamples a tensor to other extents. kNEAREST resizes up to 8 innermost dimensions, kLINEAR up to 3, kCUBIC 2.
class TENSORRTAPI IResizeLayer : public ILayer
{
public:
    /// Extents of the output. An error once input 1 is set.
    void setOutputDimensions(Dims dimensions) noexcept;
    Dims getOutputDimensions() const noexcept;

    /// One factor for each dimension; the extent is floor(input * scale). An error once input 1 is set.
    void setScales(float const* scales, int32_t nbScales) noexcept;

    /// Writes up to size factors and gives their number, or -1 when none are set.
    int32_t getScales(int32_t size, float* scales) const noexcept;

    /// Default kNEAREST.
    void setResizeMode(ResizeMode resizeMode) noexcept;
    ResizeMode getResizeMode() const noexcept;

    /// Replaced by setCoordinateTransformation(). Default false.
    TRT_DEPRECATED void setAlignCorners(bool alignCorners) noexcept;
    TRT_DEPRECATED bool getAlignCorners() const noexcept;

    /// Input 0 is the data; optional 1 the output dimensions, a 1-D kINT32 shape tensor.
    using ILayer::setInput;

    /// Default kASYMMETRIC.
    void setCoordinateTransformation(ResizeCoordinateTransformation coordTransform) noexcept;
    ResizeCoordinateTransformation getCoordinateTransformation() const noexcept;

    /// Default kFORMULA.
    void setSelectorForSinglePixel(ResizeSelector selector) noexcept;
    ResizeSelector getSelectorForSinglePixel() const noexcept;

    /// Default kFLOOR.
    void setNearestRounding(ResizeRoundMode value) noexcept;
    ResizeRoundMode getNearestRounding() const noexcept;

    /// Coefficient of the cubic weights. Default -0.75.
    void setCubicCoeff(float A) noexcept;
    float getCubicCoeff() const noexcept;

    /// Whether weights outside the input are dropped and the rest scaled to sum 1. Default false.
    void setExcludeOutside(bool excludeFlag) noexcept;
    bool getExcludeOutside() const noexcept;

protected:
    virtual ~IResizeLayer() noexcept = default;
};

/// What a loop output collects.
enum class LoopOutput : int32_t
{
    kLAST_VALUE = 0,  ///< The value after the last iteration.
    kCONCATENATE = 1, ///< All values, joined in order along the axis.
    kREVERSE = 2,     ///< All values, joined from last to first along the axis.
};

/// Number of values of LoopOutput.
template <>
constexpr int32_t EnumMax<LoopOutput>() noexcept
{
    return 3;
}

/// What ends a loop.
enum class TripLimit : int32_t
{
    kCOUNT = 0, ///< A number of iterations, known before the loop (kINT32 scalar).
    kWHILE = 1, ///< A condition computed in the loop (kBOOL scalar), false ends it.
};

/// Number of values of TripLimit.
template <>
constexpr int32_t EnumMax<TripLimit>() noexcept
{
    return 2;
}

/// Base of the layers through which values enter, leave and control a loop.
class TENSORRTAPI ILoopBoundaryLayer : public ILayer
{
public:
    /// The loop that the layer belongs to.
    ILoop* getLoop() const noexcept;

protected:
    virtual ~ILoopBoundaryLayer() noexcept = default;
};

/// Base of the layers through which values enter, leave and control a conditional.
class TENSORRTAPI IIfConditionalBoundaryLayer : public ILayer
{
public:
    /// The conditional that the layer belongs to.
    IIfConditional* getConditional() const noexcept;

protected:
    virtual ~IIfConditionalBoundaryLayer() noexcept = default;
};

/// The condition of a conditional: a kBOOL scalar.
class TENSORRTAPI IConditionLayer : public IIfConditionalBoundaryLayer
{
protected:
    virtual ~IConditionLayer() noexcept = default;
};

/// Selects between the values of both branches: input 0 when the condition holds, else input 1. Same type and shape.
class TENSORRTAPI IIfConditionalOutputLayer : public IIfConditionalBoundaryLayer
{
protected:
    virtual ~IIfConditionalOutputLayer() noexcept = default;
};

/// A value that enters a conditional.
class TENSORRTAPI IIfConditionalInputLayer : public IIfConditionalBoundaryLayer
{
protected:
    virtual ~IIfConditionalInputLayer() noexcept = default;
};

/// if / else on layers: what only one branch needs runs only when the condition selects it. Owned by the network.
class TENSORRTAPI IIfConditional : public INoCopy
{
public:
    /// The kBOOL scalar that decides; once for each conditional.
    IConditionLayer* setCondition(ITensor& condition) noexcept;

    /// A result, from a value of each branch.
    IIfConditionalOutputLayer* addOutput(ITensor& trueSubgraphOutput, ITensor& falseSubgraphOutput) noexcept;

    /// A value from outside for use in the branches.
    IIfConditionalInputLayer* addInput(ITensor& input) noexcept;

    void setName(char const* name) noexcept;
    char const* getName() const noexcept;

protected:
    virtual ~IIfConditional() noexcept = default;
};

/// A value carried from one iteration to the next.
class TENSORRTAPI IRecurrenceLayer : public ILoopBoundaryLayer
{
public:
    /// Input 0 is the first value, from outside the loop; input 1 the next value, of the same shape, to be set before
    /// building.
    using ILayer::setInput;

protected:
    virtual ~IRecurrenceLayer() noexcept = default;
};

/// A result of a loop.
class TENSORRTAPI ILoopOutputLayer : public ILoopBoundaryLayer
{
public:
    LoopOutput getLoopOutput() const noexcept;

    /// Dimension that kCONCATENATE and kREVERSE insert. Default 0.
    void setAxis(int32_t axis) noexcept;
    int32_t getAxis() const noexcept;

    /// Input 0 is the value in the loop; input 1 the number of slots for kCONCATENATE and kREVERSE, a 0-D kINT32 shape
    /// tensor from outside.
    using ILayer::setInput;

protected:
    virtual ~ILoopOutputLayer() noexcept = default;
};

/// What ends a loop. One of each kind at most, one at least.
class TENSORRTAPI ITripLimitLayer : public ILoopBoundaryLayer
{
public:
    TripLimit getTripLimit() const noexcept;

protected:
    virtual ~ITripLimitLayer() noexcept = default;
};

/// One slice of a tensor for each iteration, one dimension less.
class TENSORRTAPI IIteratorLayer : public ILoopBoundaryLayer
{
public:
    /// Dimension that is walked. Default 0.
    void setAxis(int32_t axis) noexcept;
    int32_t getAxis() const noexcept;

    /// From last to first; needs a kCOUNT limit. Default false.
    void setReverse(bool reverse) noexcept;
    bool getReverse() const noexcept;

protected:
    virtual ~IIteratorLayer() noexcept = default;
};

/// A loop on layers. Owned by the network.
class TENSORRTAPI ILoop : public INoCopy
{
public:
    /// A carried value that starts with initialValue; the next value is set by setInput(1, ...).
    IRecurrenceLayer* addRecurrence(ITensor& initialValue) noexcept;

    /// What ends the loop.
    ITripLimitLayer* addTripLimit(ITensor& tensor, TripLimit limit) noexcept;

    /// One slice of tensor for each iteration.
    IIteratorLayer* addIterator(ITensor& tensor, int32_t axis = 0, bool reverse = false) noexcept;

    /// A result of the loop.
    ILoopOutputLayer* addLoopOutput(ITensor& tensor, LoopOutput outputKind, int32_t axis = 0) noexcept;

    void setName(char const* name) noexcept;
    char const* getName() const noexcept;

protected:
    virtual ~ILoop() noexcept = default;
};

/// condition ? then : else for each element. Same rank; each dimension equal or 1, which repeats.
class TENSORRTAPI ISelectLayer : public ILayer
{
protected:
    virtual ~ISelectLayer() noexcept = default;
};

/// Fails the build when the condition (kBOOL shape tensor) is provably false, and the run when it is false.
class TENSORRTAPI IAssertionLayer : public ILayer
{
public:
    /// Text of the error; copied.
    void setMessage(char const* message) noexcept;
    char const* getMessage() const noexcept;

protected:
    virtual ~IAssertionLayer() noexcept = default;
};

/// What a fill layer writes. a is alpha, b is beta.
enum class FillOperation : int32_t
{
    kLINSPACE = 0,       ///< a + index * b.
    kRANDOM_UNIFORM = 1, ///< Uniform between a and b.
    kRANDOM_NORMAL = 2,  ///< Normal with mean a and standard deviation b.
};

/// Number of values of FillOperation.
template <>
constexpr int32_t EnumMax<FillOperation>() noexcept
{
    return 3;
}

/// A tensor of generated values. Explicit batch only.
class TENSORRTAPI IFillLayer : public ILayer
{
public:
    /// Dimensions of the output. Takes away input 0.
    void setDimensions(Dims dimensions) noexcept;
    Dims getDimensions() const noexcept;

    void setOperation(FillOperation op) noexcept;
    FillOperation getOperation() const noexcept;

    /// Default 0. The getter gives -1 while input 1 is set.
    void setAlpha(double alpha) noexcept;
    double getAlpha() const noexcept;

    /// Default 1. The getter gives -1 while input 2 is set.
    void setBeta(double beta) noexcept;
    double getBeta() const noexcept;

    /// Optional inputs: 0 the dimensions (1-D kINT32 shape tensor), 1 alpha, 2 beta; for kLINSPACE beta has one step
    /// for each dimension.
    using ILayer::setInput;

protected:
    virtual ~IFillLayer() noexcept = default;
};

/// clamp(round(x / scale) + zero point, -128, 127), halves to even. Input 1 is the scale, optional input 2 the zero
/// point, which must be 0.
class TENSORRTAPI IQuantizeLayer : public ILayer
{
public:
    /// Dimension that the elements of the scale belong to; -1, the default, for one scale for all.
    int32_t getAxis() const noexcept;
    void setAxis(int32_t axis) noexcept;

protected:
    virtual ~IQuantizeLayer() noexcept = default;
};

/// (x - zero point) * scale. Inputs as for IQuantizeLayer.
class TENSORRTAPI IDequantizeLayer : public ILayer
{
public:
    /// Dimension that the elements of the scale belong to; -1, the default, for one scale for all.
    int32_t getAxis() const noexcept;
    void setAxis(int32_t axis) noexcept;

protected:
    virtual ~IDequantizeLayer() noexcept = default;
};

/// Sum of products by an equation with one letter for each dimension, such as "bij,bjk->bik". At most two inputs.
class TENSORRTAPI IEinsumLayer : public ILayer
{
public:
    /// Lower-case letters, commas, optional "->"; no ellipsis, no letter twice in one input. False when it cannot be
    /// read.
    bool setEquation(char const* equation) noexcept;
    char const* getEquation() const noexcept;

protected:
    virtual ~IEinsumLayer() noexcept = default;
};

/// How indices of a scatter layer address data.
enum class ScatterMode : int32_t
{
    kELEMENT = 0, ///< One element for each index along the axis, as ONNX ScatterElements.
    kND = 1,      ///< Slices by index vectors, as ONNX ScatterND.
};

/// Number of values of ScatterMode.
template <>
constexpr int32_t EnumMax<ScatterMode>() noexcept
{
    return 2;
}

/// Copy of data (input 0) with updates (input 2) written at indices (input 1, kINT32). Writing one element twice has no
/// defined result.
class TENSORRTAPI IScatterLayer : public ILayer
{
public:
    void setMode(ScatterMode mode) noexcept;
    ScatterMode getMode() const noexcept;

    /// Dimension that is indexed, kELEMENT only. Default 0.
    void setAxis(int32_t axis) noexcept;
    int32_t getAxis() const noexcept;

protected:
    virtual ~IScatterLayer() noexcept = default;
};

/// values[1] where an index equals the position along the axis, else values[0]. Inputs: indices, values [off, on],
/// depth (0-D kINT32 shape tensor).
class TENSORRTAPI IOneHotLayer : public ILayer
{
public:
    /// Where the new dimension goes, -rank - 1 to rank; -1 is last.
    void setAxis(int32_t axis) noexcept;
    int32_t getAxis() const noexcept;
};

/// Output [N, C, Ho, Wo] reads data [N, C, H, W] at the points of grid [N, Ho, Wo, 2], whose x and y run from -1 to 1.
class TENSORRTAPI IGridSampleLayer : public ILayer
{
public:
    /// Default kLINEAR.
    void setInterpolationMode(InterpolationMode mode) noexcept;
    InterpolationMode getInterpolationMode() const noexcept;

    /// Whether -1 and 1 are the centres of the border elements, not their outer edges. Default false.
    void setAlignCorners(bool alignCorners) noexcept;
    bool getAlignCorners() const noexcept;

    /// kFILL (default), kCLAMP or kREFLECT; false for others.
    bool setSampleMode(SampleMode mode) noexcept;
    SampleMode getSampleMode() const noexcept;

protected:
    virtual ~IGridSampleLayer() noexcept = default;
};

/// Meaning of a box's four numbers.
enum class BoundingBoxFormat : int32_t
{
    kCORNER_PAIRS = 0, ///< Two diagonal corners, in any order: x1, y1, x2, y2.
    kCENTER_SIZES = 1, ///< Centre x, centre y, width, height.
};

/// Number of values of BoundingBoxFormat.
template <>
constexpr int32_t EnumMax<BoundingBoxFormat>() noexcept
{
    return 2;
}

/// Non-maximum suppression for each class. Boxes [N, B, C, 4] or [N, B, 4], scores [N, B, C], at most max boxes for
/// each class (kINT32 scalar).
/// Output 0: kINT32 [n, 3], batch, class and box, by batch and falling score. Output 1: n, a kINT32 scalar.
class TENSORRTAPI INMSLayer : public ILayer
{
public:
    /// Default kCORNER_PAIRS.
    void setBoundingBoxFormat(BoundingBoxFormat fmt) noexcept;
    BoundingBoxFormat getBoundingBoxFormat() const noexcept;

    /// Best boxes of each class and batch element that are considered at all. Default 5000, which is also the most.
    void setTopKBoxLimit(int32_t limit) noexcept;
    int32_t getTopKBoxLimit() const noexcept;

    /// Inputs 0 boxes, 1 scores, 2 most boxes for each class; optional 3 IoU threshold in [0, 1], 4 score threshold,
    /// kFLOAT scalars, default 0.
    using ILayer::setInput;

protected:
    virtual ~INMSLayer() noexcept = default;
};

/// A network under construction. Owns its tensors and layers; the creators give nullptr on failure. Weights are not
/// copied and must live until the engine is built.
class TENSORRTAPI INetworkDefinition : public INoCopy
{
public:
    virtual ~INetworkDefinition() noexcept = default;

    /// An input; -1 in dimensions is a wildcard. The name must be new.
    ITensor* addInput(char const* name, DataType type, Dims dimensions) noexcept;

    /// Makes a tensor an output of the network.
    void markOutput(ITensor& tensor) noexcept;

    /// Replaced by addConvolutionNd().
    TRT_DEPRECATED IConvolutionLayer* addConvolution(ITensor& input, int32_t nbOutputMaps, DimsHW kernelSize,
                                                     Weights kernelWeights, Weights biasWeights) noexcept;

    /// Replaced by addMatrixMultiply().
    TRT_DEPRECATED IFullyConnectedLayer* addFullyConnected(ITensor& input, int32_t nbOutputs, Weights kernelWeights,
                                                           Weights biasWeights) noexcept;

    IActivationLayer* addActivation(ITensor& input, ActivationType type) noexcept;

    /// Replaced by addPoolingNd().
    TRT_DEPRECATED IPoolingLayer* addPooling(ITensor& input, PoolingType type, DimsHW windowSize) noexcept;

    ILRNLayer* addLRN(ITensor& input, int32_t window, float alpha, float beta, float k) noexcept;

    /// Channels are dimension rank - 3.
    IScaleLayer* addScale(ITensor& input, ScaleMode mode, Weights shift, Weights scale, Weights power) noexcept;

    ISoftMaxLayer* addSoftMax(ITensor& input) noexcept;

    IConcatenationLayer* addConcatenation(ITensor* const* inputs, int32_t nbInputs) noexcept;

    /// Replaced by addDeconvolutionNd().
    TRT_DEPRECATED IDeconvolutionLayer* addDeconvolution(ITensor& input, int32_t nbOutputMaps, DimsHW kernelSize,
                                                         Weights kernelWeights, Weights biasWeights) noexcept;

    IElementWiseLayer* addElementWise(ITensor& input1, ITensor& input2, ElementWiseOperation op) noexcept;

    IUnaryLayer* addUnary(ITensor& input, UnaryOperation operation) noexcept;

    /// Replaced by addSlice().
    TRT_DEPRECATED IPaddingLayer* addPadding(ITensor& input, DimsHW prePadding, DimsHW postPadding) noexcept;

    IShuffleLayer* addShuffle(ITensor& input) noexcept;

    /// See IOneHotLayer for the inputs.
    IOneHotLayer* addOneHot(ITensor& indices, ITensor& values, ITensor& depth, int32_t axis) noexcept;

    int32_t getNbLayers() const noexcept;

    /// Layer index in order of creation, or nullptr.
    ILayer* getLayer(int32_t index) const noexcept;

    int32_t getNbInputs() const noexcept;

    /// Input index in order of creation, or nullptr.
    ITensor* getInput(int32_t index) const noexcept;

    int32_t getNbOutputs() const noexcept;

    /// Output index in order of marking, or nullptr.
    ITensor* getOutput(int32_t index) const noexcept;

    /// Deletes the object; delete does the same.
    TRT_DEPRECATED void destroy() noexcept { delete this; }

    IReduceLayer* addReduce(ITensor& input, ReduceOperation operation, uint32_t reduceAxes,
                            bool keepDimensions) noexcept;

    ITopKLayer* addTopK(ITensor& input, TopKOperation op, int32_t k, uint32_t reduceAxes) noexcept;

    /// A gather layer of mode kDEFAULT.
    IGatherLayer* addGather(ITensor& data, ITensor& indices, int32_t axis) noexcept;

    /// A gather layer with axis 0.
    IGatherLayer* addGatherV2(ITensor& data, ITensor& indices, GatherMode mode) noexcept;

    IRaggedSoftMaxLayer* addRaggedSoftMax(ITensor& input, ITensor& bounds) noexcept;

    IMatrixMultiplyLayer* addMatrixMultiply(ITensor& input0, MatrixOperation op0, ITensor& input1,
                                            MatrixOperation op1) noexcept;

    INonZeroLayer* addNonZero(ITensor& input) noexcept;

    /// weights.count must equal the volume of dimensions.
    IConstantLayer* addConstant(Dims dimensions, Weights weights) noexcept;

    /// Replaced by addLoop().
    TRT_DEPRECATED IRNNv2Layer* addRNNv2(ITensor& input, int32_t layerCount, int32_t hiddenSize, int32_t maxSeqLen,
                                         RNNOperation op) noexcept;

    IIdentityLayer* addIdentity(ITensor& input) noexcept;

    /// Takes a tensor out; it must not be in use as an input of a layer.
    void removeTensor(ITensor& tensor) noexcept;

    void unmarkOutput(ITensor& tensor) noexcept;

    /// The plugin is cloned.
    IPluginV2Layer* addPluginV2(ITensor* const* inputs, int32_t nbInputs, IPluginV2& plugin) noexcept;

    ISliceLayer* addSlice(ITensor& input, Dims start, Dims size, Dims stride) noexcept;

    /// Name that the engine will have; copied.
    void setName(char const* name) noexcept;
    char const* getName() const noexcept;

    IShapeLayer* addShape(ITensor& input) noexcept;

    /// Whether tensors have a batch dimension that shapes leave out.
    bool hasImplicitBatchDimension() const noexcept;

    /// Makes the values of a kINT32 tensor of rank 0 or 1 with constant dimensions an output. False if that cannot be.
    bool markOutputForShapes(ITensor& tensor) noexcept;

    /// Takes the mark away; false if there is none.
    bool unmarkOutputForShapes(ITensor& tensor) noexcept;

    IParametricReLULayer* addParametricReLU(ITensor& input, ITensor& slope) noexcept;

    /// 2D or 3D by the rank of kernelSize. Empty biasWeights mean no bias.
    IConvolutionLayer* addConvolutionNd(ITensor& input, int32_t nbOutputMaps, Dims kernelSize, Weights kernelWeights,
                                        Weights biasWeights) noexcept;

    /// 2D or 3D by the rank of windowSize.
    IPoolingLayer* addPoolingNd(ITensor& input, PoolingType type, Dims windowSize) noexcept;

    /// 2D or 3D by the rank of kernelSize. Empty biasWeights mean no bias.
    IDeconvolutionLayer* addDeconvolutionNd(ITensor& input, int32_t nbOutputMaps, Dims kernelSize,
                                            Weights kernelWeights, Weights biasWeights) noexcept;

    /// addScale() with a choice of the channel dimension.
    IScaleLayer* addScaleNd(ITensor& input, ScaleMode mode, Weights shift, Weights scale, Weights power,
                            int32_t channelAxis) noexcept;

    IResizeLayer* addResize(ITensor& input) noexcept;

    /// Of older releases: always false.
    TRT_DEPRECATED bool hasExplicitPrecision() const noexcept;

    /// A new loop; nullptr for an implicit batch network.
    ILoop* addLoop() noexcept;

    ISelectLayer* addSelect(ITensor& condition, ITensor& thenInput, ITensor& elseInput) noexcept;

    IAssertionLayer* addAssertion(ITensor& condition, char const* message) noexcept;

    /// For kLINSPACE with given dimensions the rank is 1.
    IFillLayer* addFill(Dims dimensions, FillOperation op) noexcept;

    /// Replaced by addSlice().
    TRT_DEPRECATED IPaddingLayer* addPaddingNd(ITensor& input, Dims prePadding, Dims postPadding) noexcept;

    /// Name of weights for the refitter; they must be in use by a layer. False for other weights or a name in use.
    bool setWeightsName(Weights weights, char const* name) noexcept;

    /// Recorder of the errors of this object; its reference count is raised until it is replaced. nullptr takes it
    /// away.
    void setErrorRecorder(IErrorRecorder* recorder) noexcept;
    IErrorRecorder* getErrorRecorder() const noexcept;

    /// scale is a scalar or 1-D.
    IDequantizeLayer* addDequantize(ITensor& input, ITensor& scale) noexcept;

    IScatterLayer* addScatter(ITensor& data, ITensor& indices, ITensor& updates, ScatterMode mode) noexcept;

    /// scale is a scalar or 1-D.
    IQuantizeLayer* addQuantize(ITensor& input, ITensor& scale) noexcept;

    /// A new conditional; nullptr for an implicit batch network.
    IIfConditional* addIfConditional() noexcept;

    IEinsumLayer* addEinsum(ITensor* const* inputs, int32_t nbInputs, char const* equation) noexcept;

    IGridSampleLayer* addGridSample(ITensor& input, ITensor& grid) noexcept;

    /// See INMSLayer for the inputs.
    INMSLayer* addNMS(ITensor& boxes, ITensor& scores, ITensor& maxOutputBoxesPerClass) noexcept;
};

/// How a calibrator's data become ranges for INT8.
enum class CalibrationAlgoType : int32_t
{
    kLEGACY_CALIBRATION = 0,    ///< By quantile and regression cutoff.
    kENTROPY_CALIBRATION = 1,   ///< By information content, for each layer.
    kENTROPY_CALIBRATION_2 = 2, ///< By information content, for each tensor.
    kMINMAX_CALIBRATION = 3,    ///< By the largest absolute value.
};

/// Number of values of CalibrationAlgoType.
template <>
constexpr int32_t EnumMax<CalibrationAlgoType>() noexcept
{
    return 4;
}

/// Feeds sample batches to the builder, which measures ranges for INT8. Implement one of the derived classes.
class TENSORRTAPI IInt8Calibrator
{
public:
    /// Batch size of the samples.
    virtual int32_t getBatchSize() const noexcept = 0;

    /// Writes the device address of each input named in names to bindings; false when there are no more batches.
    virtual bool getBatch(void** bindings, char const** names, int32_t nbBindings) noexcept = 0;

    /// Bytes of an earlier writeCalibrationCache(), which make samples unnecessary, or nullptr. length becomes their
    /// number.
    virtual void const* readCalibrationCache(std::size_t& length) noexcept = 0;

    /// Receives the result of a calibration for later builds.
    virtual void writeCalibrationCache(void const* ptr, std::size_t length) noexcept = 0;

    virtual CalibrationAlgoType getAlgorithm() noexcept = 0;

    virtual ~IInt8Calibrator() noexcept = default;
};

/// Calibration of type kENTROPY_CALIBRATION.
class TENSORRTAPI IInt8EntropyCalibrator : public IInt8Calibrator
{
public:
    CalibrationAlgoType getAlgorithm() noexcept override { return CalibrationAlgoType::kENTROPY_CALIBRATION; }

    virtual ~IInt8EntropyCalibrator() noexcept = default;
};

/// Calibration of type kENTROPY_CALIBRATION_2; the usual choice.
class TENSORRTAPI IInt8EntropyCalibrator2 : public IInt8Calibrator
{
public:
    CalibrationAlgoType getAlgorithm() noexcept override { return CalibrationAlgoType::kENTROPY_CALIBRATION_2; }

    virtual ~IInt8EntropyCalibrator2() noexcept = default;
};

/// Calibration of type kMINMAX_CALIBRATION.
class TENSORRTAPI IInt8MinMaxCalibrator : public IInt8Calibrator
{
public:
    CalibrationAlgoType getAlgorithm() noexcept override { return CalibrationAlgoType::kMINMAX_CALIBRATION; }

    virtual ~IInt8MinMaxCalibrator() noexcept = default;
};

/// Calibration of type kLEGACY_CALIBRATION.
class TENSORRTAPI IInt8LegacyCalibrator : public IInt8Calibrator
{
public:
    CalibrationAlgoType getAlgorithm() noexcept override { return CalibrationAlgoType::kLEGACY_CALIBRATION; }

    /// Share of the values, 0 to 1, that must lie within the range.
    virtual double getQuantile() const noexcept = 0;

    /// Share of the largest value, 0 to 1, at which regression stops.
    virtual double getRegressionCutoff() const noexcept = 0;

    /// Bytes of an earlier writeHistogramCache(), or nullptr. length becomes their number.
    virtual void const* readHistogramCache(std::size_t& length) noexcept = 0;

    /// Receives the histograms for later calibrations.
    virtual void writeHistogramCache(void const* ptr, std::size_t length) noexcept = 0;

    virtual ~IInt8LegacyCalibrator() noexcept = default;
};

/// Type, format and strides of one input or output of an algorithm.
class TENSORRTAPI IAlgorithmIOInfo : public INoCopy
{
public:
    TensorFormat getTensorFormat() const noexcept;

    DataType getDataType() const noexcept;

    /// Strides in elements, or in vectors for vectorized formats.
    Dims getStrides() const noexcept;

protected:
    virtual ~IAlgorithmIOInfo() noexcept = default;
};

/// Identity of an algorithm: the same pair in the same release means the same code.
class TENSORRTAPI IAlgorithmVariant : public INoCopy
{
public:
    int64_t getImplementation() const noexcept;

    int64_t getTactic() const noexcept;

protected:
    virtual ~IAlgorithmVariant() noexcept = default;
};

/// The layer, after optimization, for which an algorithm is chosen.
class TENSORRTAPI IAlgorithmContext : public INoCopy
{
public:
    /// Name of the layer.
    char const* getName() const noexcept;

    /// Dimensions of input or output index, inputs first, at a point of the profile.
    Dims getDimensions(int32_t index, OptProfileSelector select) const noexcept;

    int32_t getNbInputs() const noexcept;

    int32_t getNbOutputs() const noexcept;

protected:
    virtual ~IAlgorithmContext() noexcept = default;
};

/// One way to run a layer.
class TENSORRTAPI IAlgorithm : public INoCopy
{
public:
    /// Replaced by getAlgorithmIOInfoByIndex().
    TRT_DEPRECATED IAlgorithmIOInfo const& getAlgorithmIOInfo(int32_t index) const noexcept;

    IAlgorithmVariant const& getAlgorithmVariant() const noexcept;

    /// Measured time in milliseconds.
    float getTimingMSec() const noexcept;

    /// Scratch memory in bytes.
    std::size_t getWorkspaceSize() const noexcept;

    /// Input or output index, inputs first; nullptr out of range.
    IAlgorithmIOInfo const* getAlgorithmIOInfoByIndex(int32_t index) const noexcept;

protected:
    virtual ~IAlgorithm() noexcept = default;
};

/// Lets the application choose the algorithm of each layer.
class TENSORRTAPI IAlgorithmSelector
{
public:
    /// Writes the indices of the acceptable choices to selection and gives their number; nbChoices entries fit. 0
    /// leaves none, which fails the build unless the builder may go on without.
    virtual int32_t selectAlgorithms(IAlgorithmContext const& context, IAlgorithm const* const* choices,
                                     int32_t nbChoices, int32_t* selection) noexcept = 0;

    /// Receives the final choice for all layers.
    virtual void reportAlgorithms(IAlgorithmContext const* const* algoContexts, IAlgorithm const* const* algoChoices,
                                  int32_t nbAlgorithms) noexcept = 0;

    virtual ~IAlgorithmSelector() noexcept = default;
};

/// Bit mask: bit i is the QuantizationFlag of value i.
using QuantizationFlags = uint32_t;

/// Option of INT8 building.
enum class QuantizationFlag : int32_t
{
    kCALIBRATE_BEFORE_FUSION = 0, ///< Calibrate the network as defined, before layers are fused.
};

/// Number of values of QuantizationFlag.
template <>
constexpr int32_t EnumMax<QuantizationFlag>() noexcept
{
    return 1;
}

/// Bit mask: bit i is the BuilderFlag of value i.
using BuilderFlags = uint32_t;

/// Option of building.
enum class BuilderFlag : int32_t
{
    kFP16 = 0,                             ///< Allow kHALF kernels.
    kINT8 = 1,                             ///< Allow kINT8 kernels.
    kDEBUG = 2,                            ///< Wait after each layer while building.
    kGPU_FALLBACK = 3,                     ///< Run on the main device what DLA cannot run.
    kSTRICT_TYPES TRT_DEPRECATED_ENUM = 4, ///< Old request for wanted types, formats and no other algorithms.
    kREFIT = 5,                            ///< Keep weights replaceable.
    kDISABLE_TIMING_CACHE = 6,             ///< Time equal layers each time.
    kTF32 = 7,           ///< Allow kFLOAT inputs rounded to 10 mantissa bits in tensor cores. On by default.
    kSPARSE_WEIGHTS = 8, ///< Use kernels for weights with 2 zeros in each 4.
    kSAFETY_SCOPE = 9,   ///< Allow only what EngineCapability::kSAFETY allows, with a standard engine.
    kOBEY_PRECISION_CONSTRAINTS = 10,   ///< Wanted types are demands: fail if they cannot be met.
    kPREFER_PRECISION_CONSTRAINTS = 11, ///< Wanted types are met where possible, with a warning where not.
    kDIRECT_IO = 12,                    ///< No conversion at network inputs and outputs: fail if that cannot be.
    kREJECT_EMPTY_ALGORITHMS = 13,      ///< Fail if the algorithm selector leaves no choice.
    kENABLE_TACTIC_HEURISTIC = 14,      ///< Time fewer candidates, chosen by estimates.
};

/// Number of values of BuilderFlag.
template <>
constexpr int32_t EnumMax<BuilderFlag>() noexcept
{
    return 15;
}

/// Measured times of kernels, kept over builds. Deleted by the client, after the builds that use it.
class TENSORRTAPI ITimingCache : public INoCopy
{
public:
    virtual ~ITimingCache() noexcept = default;

    /// The cache as bytes for IBuilderConfig::createTimingCache(). The caller deletes the memory.
    IHostMemory* serialize() const noexcept;

    /// Adds the entries of another cache. False if it is of another device, unless ignoreMismatch.
    bool combine(ITimingCache const& inputCache, bool ignoreMismatch) noexcept;

    /// Forgets all entries.
    bool reset() noexcept;
};

/// A kind of memory that the builder may limit.
enum class MemoryPoolType : int32_t
{
    kWORKSPACE = 0,        ///< Scratch memory of layers. Default: all of the device's memory.
    kDLA_MANAGED_SRAM = 1, ///< Fast memory of a DLA core. Default 1 MiB.
    kDLA_LOCAL_DRAM = 2,   ///< Memory for values inside a DLA loadable. Default 1 GiB.
    kDLA_GLOBAL_DRAM = 3,  ///< Memory for weights and metadata of a DLA loadable. Default 512 MiB.
};

/// Number of values of MemoryPoolType.
template <>
constexpr int32_t EnumMax<MemoryPoolType>() noexcept
{
    return 4;
}

/// A feature that may be turned on before it becomes the default.
enum class PreviewFeature : int32_t
{
    kFASTER_DYNAMIC_SHAPES_0805 = 0,                    ///< Code generation that treats dynamic shapes better.
    kDISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805 = 1, ///< No cuBLAS, cuBLASLt and cuDNN for the library's own layers.
};

/// Number of values of PreviewFeature.
template <>
constexpr int32_t EnumMax<PreviewFeature>() noexcept
{
    return 2;
}

/// All settings of one build. Deleted by the client.
class TENSORRTAPI IBuilderConfig : public INoCopy
{
public:
    virtual ~IBuilderConfig() noexcept = default;

    /// Replaced by setAvgTimingIterations(). Default 1.
    TRT_DEPRECATED virtual void setMinTimingIterations(int32_t minTiming) noexcept;
    TRT_DEPRECATED virtual int32_t getMinTimingIterations() const noexcept;

    /// Runs over which a candidate's time is averaged. Default 1.
    virtual void setAvgTimingIterations(int32_t avgTiming) noexcept;
    int32_t getAvgTimingIterations() const noexcept;

    /// Default kSTANDARD.
    void setEngineCapability(EngineCapability capability) noexcept;
    EngineCapability getEngineCapability() const noexcept;

    /// Not owned; must outlive the build.
    void setInt8Calibrator(IInt8Calibrator* calibrator) noexcept;
    IInt8Calibrator* getInt8Calibrator() const noexcept;

    /// Replaced by setMemoryPoolLimit(kWORKSPACE).
    TRT_DEPRECATED void setMaxWorkspaceSize(std::size_t workspaceSize) noexcept;
    TRT_DEPRECATED std::size_t getMaxWorkspaceSize() const noexcept;

    /// Replaces all flags; bit i is the BuilderFlag of value i.
    void setFlags(BuilderFlags builderFlags) noexcept;
    BuilderFlags getFlags() const noexcept;

    void clearFlag(BuilderFlag builderFlag) noexcept;

    void setFlag(BuilderFlag builderFlag) noexcept;
    bool getFlag(BuilderFlag builderFlag) const noexcept;

    /// Device of one layer, instead of the default device.
    void setDeviceType(ILayer const* layer, DeviceType deviceType) noexcept;
    DeviceType getDeviceType(ILayer const* layer) const noexcept;

    bool isDeviceTypeSet(ILayer const* layer) const noexcept;

    void resetDeviceType(ILayer const* layer) noexcept;

    /// Whether DLA can run this layer with these settings.
    bool canRunOnDLA(ILayer const* layer) const noexcept;

    /// DLA core for the engine. Default -1: none chosen.
    void setDLACore(int32_t dlaCore) noexcept;
    int32_t getDLACore() const noexcept;

    /// Device of layers without their own. Default kGPU.
    void setDefaultDeviceType(DeviceType deviceType) noexcept;
    DeviceType getDefaultDeviceType() const noexcept;

    /// Back to the defaults.
    void reset() noexcept;

    /// Deletes the object; delete does the same.
    TRT_DEPRECATED void destroy() noexcept { delete this; }

    /// Stream on which candidates are timed. Default null.
    void setProfileStream(cudaStream_t stream) noexcept;
    cudaStream_t getProfileStream() const noexcept;

    /// Adds a profile made by IBuilder::createOptimizationProfile() and gives its index, or -1 if it is not valid.
    int32_t addOptimizationProfile(IOptimizationProfile const* profile) noexcept;

    int32_t getNbOptimizationProfiles() const noexcept;

    /// Default kLAYER_NAMES_ONLY.
    void setProfilingVerbosity(ProfilingVerbosity verbosity) noexcept;
    ProfilingVerbosity getProfilingVerbosity() const noexcept;

    /// Not owned; must outlive the build.
    void setAlgorithmSelector(IAlgorithmSelector* selector) noexcept;
    IAlgorithmSelector* getAlgorithmSelector() const noexcept;

    /// Profile whose kOPT shapes calibration uses; false if it is not valid.
    bool setCalibrationProfile(IOptimizationProfile const* profile) noexcept;
    IOptimizationProfile const* getCalibrationProfile() noexcept;

    /// Replaces all flags; bit i is the QuantizationFlag of value i.
    void setQuantizationFlags(QuantizationFlags flags) noexcept;
    QuantizationFlags getQuantizationFlags() const noexcept;

    void clearQuantizationFlag(QuantizationFlag flag) noexcept;

    void setQuantizationFlag(QuantizationFlag flag) noexcept;
    bool getQuantizationFlag(QuantizationFlag flag) const noexcept;

    /// Replaces the mask of allowed sources; false for unknown bits.
    bool setTacticSources(TacticSources tacticSources) noexcept;
    TacticSources getTacticSources() const noexcept;

    /// A cache from the bytes of ITimingCache::serialize(), or an empty one for size 0. nullptr if the bytes are
    /// damaged.
    ITimingCache* createTimingCache(void const* blob, std::size_t size) const noexcept;

    /// Cache to read and extend; it must outlive the build. False if it is of another device, unless ignoreMismatch.
    bool setTimingCache(ITimingCache const& cache, bool ignoreMismatch) noexcept;
    ITimingCache const* getTimingCache() const noexcept;

    /// Limit in bytes. DLA pools: powers of two of at least 4 KiB.
    void setMemoryPoolLimit(MemoryPoolType pool, std::size_t poolSize) noexcept;
    std::size_t getMemoryPoolLimit(MemoryPoolType pool) const noexcept;

    /// Turns a feature on or off.
    void setPreviewFeature(PreviewFeature feature, bool enable) noexcept;
    bool getPreviewFeature(PreviewFeature feature) const noexcept;
};

/// Bit mask: bit i is the NetworkDefinitionCreationFlag of value i.
using NetworkDefinitionCreationFlags = uint32_t;

/// Property of a new network.
enum class NetworkDefinitionCreationFlag : int32_t
{
    kEXPLICIT_BATCH = 0,                         ///< The batch is an ordinary dimension, wildcards are allowed.
    kEXPLICIT_PRECISION TRT_DEPRECATED_ENUM = 1, ///< Of older releases; no effect.
};

/// Number of values of NetworkDefinitionCreationFlag.
template <>
constexpr int32_t EnumMax<NetworkDefinitionCreationFlag>() noexcept
{
    return 2;
}

/// Makes networks and settings, and builds engines from them. Deleted by the client, after the networks and settings.
class TENSORRTAPI IBuilder : public INoCopy
{
public:
    virtual ~IBuilder() noexcept = default;

    /// Largest batch of implicit batch networks. No effect with explicit batch.
    TRT_DEPRECATED void setMaxBatchSize(int32_t batchSize) noexcept;
    TRT_DEPRECATED int32_t getMaxBatchSize() const noexcept;

    /// Whether the device computes kHALF faster than kFLOAT.
    bool platformHasFastFp16() const noexcept;

    /// Whether the device computes kINT8 faster than kHALF or kFLOAT.
    bool platformHasFastInt8() const noexcept;

    /// Deletes the object; delete does the same.
    TRT_DEPRECATED void destroy() noexcept { delete this; }

    /// Largest batch of a DLA core; 0 without DLA.
    int32_t getMaxDLABatchSize() const noexcept;

    int32_t getNbDLACores() const noexcept;

    /// Source of device memory while building; nullptr restores the default.
    void setGpuAllocator(IGpuAllocator* allocator) noexcept;

    /// New settings, which the caller deletes.
    IBuilderConfig* createBuilderConfig() noexcept;

    /// Replaced by buildSerializedNetwork() and IRuntime::deserializeCudaEngine().
    TRT_DEPRECATED ICudaEngine* buildEngineWithConfig(INetworkDefinition& network, IBuilderConfig& config) noexcept;

    /// A new network, which the caller deletes; bit i of flags is the NetworkDefinitionCreationFlag of value i.
    INetworkDefinition* createNetworkV2(NetworkDefinitionCreationFlags flags) noexcept;

    /// A new profile, owned by the builder.
    IOptimizationProfile* createOptimizationProfile() noexcept;

    /// Recorder of the errors of this object; its reference count is raised until it is replaced. nullptr takes it
    /// away.
    void setErrorRecorder(IErrorRecorder* recorder) noexcept;
    IErrorRecorder* getErrorRecorder() const noexcept;

    /// Back to the defaults.
    void reset() noexcept;

    /// Whether the device has TF32 arithmetic.
    bool platformHasTf32() const noexcept;

    /// The engine as bytes, which the caller deletes; nullptr with a logged reason.
    IHostMemory* buildSerializedNetwork(INetworkDefinition& network, IBuilderConfig& config) noexcept;

    /// Whether the network fits the restrictions of the settings, such as engine capability and device; faults are
    /// logged.
    bool isNetworkSupported(INetworkDefinition const& network, IBuilderConfig const& config) const noexcept;

    ILogger* getLogger() const noexcept;

    /// Most threads that building may use, the calling one included; false below 1. Default 1.
    bool setMaxThreads(int32_t maxThreads) noexcept;
    int32_t getMaxThreads() const noexcept;
};

} // namespace nvinfer1

/// Exported side of createInferBuilder().
extern "C" TENSORRTAPI void* createInferBuilder_INTERNAL(void* logger, int32_t version) noexcept;

namespace nvinfer1 {

namespace {

/// A builder, or nullptr. The caller deletes it; logger must outlive it.
inline IBuilder* createInferBuilder(ILogger& logger) noexcept
{
    return static_cast<IBuilder*>(createInferBuilder_INTERNAL(&logger, NV_TENSORRT_VERSION + tensorwright_abi_8_5));
}

} // namespace

/// The registry that a builder uses for engines of this capability.
extern "C" TENSORRTAPI IPluginRegistry* getBuilderPluginRegistry(EngineCapability capability) noexcept;

} // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
