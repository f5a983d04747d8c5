// SPDX-License-Identifier: Apache-2.0
#include "api/network.h"
#include "ops/convolution/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct ConvolutionLayer final : LayerObject<nvinfer1::IConvolutionLayer>
{
    int32_t outputMaps = 0;
    nvinfer1::Dims kernel{}, stride{}, dilation{}, prePadding{}, postPadding{};
    nvinfer1::PaddingMode paddingMode = nvinfer1::PaddingMode::kEXPLICIT_ROUND_DOWN;
    int32_t groups = 1;
    nvinfer1::Weights kernelWeights{}, biasWeights{};

    int maxInputs() const override { return 3; } // data, kernel tensor, bias tensor
    Result<void> onSetInput(int index, TensorObject&) override
    {
        nvinfer1::Weights const& w = index == 1 ? kernelWeights : biasWeights;
        if (index > 0 && w.count != 0)
            return error(std::string(index == 1 ? "kernel" : "bias") +
                         " weights are set already; they must be empty when the tensor is an input");
        return {};
    }
    Result<void> setDims(nvinfer1::Dims& field, nvinfer1::Dims const& d, int32_t least, char const* what)
    {
        TW_TRY(checkDims(d, least, "layer '" + name + "': " + what));
        if (d.nbDims != kernel.nbDims)
            return error(std::string(what) + " " + str(d) + " needs one entry for each of the " +
                         std::to_string(kernel.nbDims) + " window dimensions");
        field = d;
        changed();
        return {};
    }

    Result<void> lower(LowerContext& ctx) override
    {
        ir::Value* x = ctx.in(0);
        ops::convolution::Attrs a;
        a.strides = toVector(stride);
        a.dilations = toVector(dilation);
        a.prePadding = toVector(prePadding);
        a.postPadding = toVector(postPadding);
        a.paddingMode = static_cast<ops::PaddingMode>(paddingMode);
        a.groups = groups;
        int const channelAxis = x->rank() - kernel.nbDims - 1;
        if (channelAxis < ctx.axisShift() || !x->shape[channelAxis].isConst())
            return error("input '" + inputs[0]->name + "' with shape " + str(x->shape) +
                         " needs a channel dimension that is no wildcard, and " + std::to_string(kernel.nbDims) +
                         " spatial dimensions after it");
        ir::Value* w = ctx.in(1);
        if (!w) {
            if (groups < 1)
                return error("the number of groups " + std::to_string(groups) + " must be at least 1");
            Extents shape{outputMaps, x->shape[channelAxis].value() / groups};
            for (int i = 0; i < kernel.nbDims; ++i)
                shape.push(kernel.d[i]);
            TW_ASSIGN(w, ctx.weights(kernelWeights, shape, x->type, ir::WeightsRole::kKernel));
        }
        ir::Value* b = ctx.in(2);
        if (!b && biasWeights.count != 0) {
            TW_ASSIGN(b, ctx.weights(biasWeights, {outputMaps}, x->type, ir::WeightsRole::kBias));
        }
        TW_ASSIGN(ir::Node * node, ctx.add(ops::convolution::def(), std::move(a), {x, w, b}));
        ctx.output(0, node->outputs[0]);
        return {};
    }
};

ConvolutionLayer& self(nvinfer1::IConvolutionLayer* l)
{
    return static_cast<ConvolutionLayer&>(*l);
}
ConvolutionLayer const& self(nvinfer1::IConvolutionLayer const* l)
{
    return static_cast<ConvolutionLayer const&>(*l);
}
nvinfer1::DimsHW toHW(nvinfer1::Dims const& d)
{
    return d.nbDims == 2 ? nvinfer1::DimsHW(d.d[0], d.d[1]) : nvinfer1::DimsHW();
}

} // namespace

namespace nvinfer1 {

IConvolutionLayer* INetworkDefinition::addConvolutionNd(ITensor& input, int32_t nbOutputMaps, Dims kernelSize,
                                                        Weights kernelWeights, Weights biasWeights) noexcept
{
    return addLayer<ConvolutionLayer>(
        *this, LayerType::kCONVOLUTION, "Convolution", {&input}, [&](ConvolutionLayer& l) -> Result<void> {
            TW_TRY(checkDims(kernelSize, 1, "addConvolutionNd: kernel size"));
            if (kernelSize.nbDims != 2 && kernelSize.nbDims != 3)
                return invalidArgument("addConvolutionNd: kernel size " + str(kernelSize) +
                                       " must have 2 or 3 entries");
            if (nbOutputMaps < 1)
                return invalidArgument("addConvolutionNd: the number of output maps " + std::to_string(nbOutputMaps) +
                                       " must be positive");
            TW_TRY(checkWeights(kernelWeights, "addConvolutionNd: kernel"));
            TW_TRY(checkWeights(biasWeights, "addConvolutionNd: bias"));
            l.outputMaps = nbOutputMaps;
            l.kernel = kernelSize;
            l.stride = l.dilation = filledDims(kernelSize.nbDims, 1);
            l.prePadding = l.postPadding = filledDims(kernelSize.nbDims, 0);
            l.kernelWeights = kernelWeights;
            l.biasWeights = biasWeights;
            return {};
        });
}
IConvolutionLayer* INetworkDefinition::addConvolution(ITensor& input, int32_t nbOutputMaps, DimsHW kernelSize,
                                                      Weights kernelWeights, Weights biasWeights) noexcept
{
    return addConvolutionNd(input, nbOutputMaps, kernelSize, kernelWeights, biasWeights);
}

void IConvolutionLayer::setNbOutputMaps(int32_t nbOutputMaps) noexcept
{
    guardedVoid(self(this).reporter(), [&]() -> Result<void> {
        if (nbOutputMaps < 1)
            return self(this).error("the number of output maps " + std::to_string(nbOutputMaps) + " must be positive");
        self(this).outputMaps = nbOutputMaps;
        self(this).changed();
        return {};
    });
}
int32_t IConvolutionLayer::getNbOutputMaps() const noexcept
{
    return self(this).outputMaps;
}
void IConvolutionLayer::setNbGroups(int32_t nbGroups) noexcept
{
    guardedVoid(self(this).reporter(), [&]() -> Result<void> {
        if (nbGroups < 1)
            return self(this).error("the number of groups " + std::to_string(nbGroups) + " must be at least 1");
        self(this).groups = nbGroups;
        self(this).changed();
        return {};
    });
}
int32_t IConvolutionLayer::getNbGroups() const noexcept
{
    return self(this).groups;
}
void IConvolutionLayer::setKernelWeights(Weights weights) noexcept
{
    guardedVoid(self(this).reporter(), [&]() -> Result<void> {
        TW_TRY(checkWeights(weights, "kernel"));
        self(this).kernelWeights = weights;
        self(this).changed();
        return {};
    });
}
Weights IConvolutionLayer::getKernelWeights() const noexcept
{
    return self(this).kernelWeights;
}
void IConvolutionLayer::setBiasWeights(Weights weights) noexcept
{
    guardedVoid(self(this).reporter(), [&]() -> Result<void> {
        TW_TRY(checkWeights(weights, "bias"));
        self(this).biasWeights = weights;
        self(this).changed();
        return {};
    });
}
Weights IConvolutionLayer::getBiasWeights() const noexcept
{
    return self(this).biasWeights;
}
void IConvolutionLayer::setPaddingMode(PaddingMode paddingMode) noexcept
{
    guardedVoid(self(this).reporter(), [&]() -> Result<void> {
        int const number = static_cast<int>(paddingMode);
        if (number < 0 || number >= EnumMax<PaddingMode>())
            return self(this).error("padding mode " + std::to_string(number) + " does not exist");
        self(this).paddingMode = paddingMode;
        self(this).changed();
        return {};
    });
}
PaddingMode IConvolutionLayer::getPaddingMode() const noexcept
{
    return self(this).paddingMode;
}

void IConvolutionLayer::setKernelSizeNd(Dims kernelSize) noexcept
{
    guardedVoid(self(this).reporter(),
                [&] { return self(this).setDims(self(this).kernel, kernelSize, 1, "kernel size"); });
}
Dims IConvolutionLayer::getKernelSizeNd() const noexcept
{
    return self(this).kernel;
}
void IConvolutionLayer::setStrideNd(Dims stride) noexcept
{
    guardedVoid(self(this).reporter(), [&] { return self(this).setDims(self(this).stride, stride, 1, "stride"); });
}
Dims IConvolutionLayer::getStrideNd() const noexcept
{
    return self(this).stride;
}
void IConvolutionLayer::setDilationNd(Dims dilation) noexcept
{
    guardedVoid(self(this).reporter(),
                [&] { return self(this).setDims(self(this).dilation, dilation, 1, "dilation"); });
}
Dims IConvolutionLayer::getDilationNd() const noexcept
{
    return self(this).dilation;
}
void IConvolutionLayer::setPrePadding(Dims padding) noexcept
{
    guardedVoid(self(this).reporter(),
                [&] { return self(this).setDims(self(this).prePadding, padding, 0, "pre-padding"); });
}
Dims IConvolutionLayer::getPrePadding() const noexcept
{
    return self(this).prePadding;
}
void IConvolutionLayer::setPostPadding(Dims padding) noexcept
{
    guardedVoid(self(this).reporter(),
                [&] { return self(this).setDims(self(this).postPadding, padding, 0, "post-padding"); });
}
Dims IConvolutionLayer::getPostPadding() const noexcept
{
    return self(this).postPadding;
}
void IConvolutionLayer::setPaddingNd(Dims padding) noexcept
{
    setPrePadding(padding);
    setPostPadding(padding);
}
Dims IConvolutionLayer::getPaddingNd() const noexcept
{
    return self(this).prePadding;
}

void IConvolutionLayer::setKernelSize(DimsHW kernelSize) noexcept
{
    setKernelSizeNd(kernelSize);
}
DimsHW IConvolutionLayer::getKernelSize() const noexcept
{
    return toHW(self(this).kernel);
}
void IConvolutionLayer::setStride(DimsHW stride) noexcept
{
    setStrideNd(stride);
}
DimsHW IConvolutionLayer::getStride() const noexcept
{
    return toHW(self(this).stride);
}
void IConvolutionLayer::setPadding(DimsHW padding) noexcept
{
    setPaddingNd(padding);
}
DimsHW IConvolutionLayer::getPadding() const noexcept
{
    return toHW(self(this).prePadding);
}
void IConvolutionLayer::setDilation(DimsHW dilation) noexcept
{
    setDilationNd(dilation);
}
DimsHW IConvolutionLayer::getDilation() const noexcept
{
    return toHW(self(this).dilation);
}

} // namespace nvinfer1
