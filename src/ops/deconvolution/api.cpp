// SPDX-License-Identifier: Apache-2.0
#include "api/network.h"
#include "ops/deconvolution/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct DeconvolutionLayer final : LayerObject<nvinfer1::IDeconvolutionLayer>
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
        ops::deconvolution::Attrs a;
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
            if (groups < 1 || outputMaps % groups != 0)
                return error("the number of groups " + std::to_string(groups) + " must divide the output maps " +
                             std::to_string(outputMaps));
            Extents shape{x->shape[channelAxis].value(), outputMaps / groups};
            for (int i = 0; i < kernel.nbDims; ++i)
                shape.push(kernel.d[i]);
            TW_ASSIGN(w, ctx.weights(kernelWeights, shape, x->type, ir::WeightsRole::kKernel));
        }
        ir::Value* b = ctx.in(2);
        if (!b && biasWeights.count != 0) {
            TW_ASSIGN(b, ctx.weights(biasWeights, {outputMaps}, x->type, ir::WeightsRole::kBias));
        }
        TW_ASSIGN(ir::Node * node, ctx.add(ops::deconvolution::def(), std::move(a), {x, w, b}));
        ctx.output(0, node->outputs[0]);
        return {};
    }
};

DeconvolutionLayer& self(nvinfer1::IDeconvolutionLayer* l)
{
    return static_cast<DeconvolutionLayer&>(*l);
}
DeconvolutionLayer const& self(nvinfer1::IDeconvolutionLayer const* l)
{
    return static_cast<DeconvolutionLayer const&>(*l);
}
nvinfer1::DimsHW toHW(nvinfer1::Dims const& d)
{
    return d.nbDims == 2 ? nvinfer1::DimsHW(d.d[0], d.d[1]) : nvinfer1::DimsHW();
}

} // namespace

namespace nvinfer1 {

IDeconvolutionLayer* INetworkDefinition::addDeconvolutionNd(ITensor& input, int32_t nbOutputMaps, Dims kernelSize,
                                                            Weights kernelWeights, Weights biasWeights) noexcept
{
    return addLayer<DeconvolutionLayer>(
        *this, LayerType::kDECONVOLUTION, "Deconvolution", {&input}, [&](DeconvolutionLayer& l) -> Result<void> {
            TW_TRY(checkDims(kernelSize, 1, "addDeconvolutionNd: kernel size"));
            if (kernelSize.nbDims != 2 && kernelSize.nbDims != 3)
                return invalidArgument("addDeconvolutionNd: kernel size " + str(kernelSize) +
                                       " must have 2 or 3 entries");
            if (nbOutputMaps < 1)
                return invalidArgument("addDeconvolutionNd: the number of output maps " + std::to_string(nbOutputMaps) +
                                       " must be positive");
            TW_TRY(checkWeights(kernelWeights, "addDeconvolutionNd: kernel"));
            TW_TRY(checkWeights(biasWeights, "addDeconvolutionNd: bias"));
            l.outputMaps = nbOutputMaps;
            l.kernel = kernelSize;
            l.stride = l.dilation = filledDims(kernelSize.nbDims, 1);
            l.prePadding = l.postPadding = filledDims(kernelSize.nbDims, 0);
            l.kernelWeights = kernelWeights;
            l.biasWeights = biasWeights;
            return {};
        });
}
IDeconvolutionLayer* INetworkDefinition::addDeconvolution(ITensor& input, int32_t nbOutputMaps, DimsHW kernelSize,
                                                          Weights kernelWeights, Weights biasWeights) noexcept
{
    return addDeconvolutionNd(input, nbOutputMaps, kernelSize, kernelWeights, biasWeights);
}

void IDeconvolutionLayer::setNbOutputMaps(int32_t nbOutputMaps) noexcept
{
    guardedVoid(self(this).reporter(), [&]() -> Result<void> {
        if (nbOutputMaps < 1)
            return self(this).error("the number of output maps " + std::to_string(nbOutputMaps) + " must be positive");
        self(this).outputMaps = nbOutputMaps;
        self(this).changed();
        return {};
    });
}
int32_t IDeconvolutionLayer::getNbOutputMaps() const noexcept
{
    return self(this).outputMaps;
}
void IDeconvolutionLayer::setNbGroups(int32_t nbGroups) noexcept
{
    guardedVoid(self(this).reporter(), [&]() -> Result<void> {
        if (nbGroups < 1)
            return self(this).error("the number of groups " + std::to_string(nbGroups) + " must be at least 1");
        self(this).groups = nbGroups;
        self(this).changed();
        return {};
    });
}
int32_t IDeconvolutionLayer::getNbGroups() const noexcept
{
    return self(this).groups;
}
void IDeconvolutionLayer::setKernelWeights(Weights weights) noexcept
{
    guardedVoid(self(this).reporter(), [&]() -> Result<void> {
        TW_TRY(checkWeights(weights, "kernel"));
        self(this).kernelWeights = weights;
        self(this).changed();
        return {};
    });
}
Weights IDeconvolutionLayer::getKernelWeights() const noexcept
{
    return self(this).kernelWeights;
}
void IDeconvolutionLayer::setBiasWeights(Weights weights) noexcept
{
    guardedVoid(self(this).reporter(), [&]() -> Result<void> {
        TW_TRY(checkWeights(weights, "bias"));
        self(this).biasWeights = weights;
        self(this).changed();
        return {};
    });
}
Weights IDeconvolutionLayer::getBiasWeights() const noexcept
{
    return self(this).biasWeights;
}
void IDeconvolutionLayer::setPaddingMode(PaddingMode paddingMode) noexcept
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
PaddingMode IDeconvolutionLayer::getPaddingMode() const noexcept
{
    return self(this).paddingMode;
}

void IDeconvolutionLayer::setKernelSizeNd(Dims kernelSize) noexcept
{
    guardedVoid(self(this).reporter(),
                [&] { return self(this).setDims(self(this).kernel, kernelSize, 1, "kernel size"); });
}
Dims IDeconvolutionLayer::getKernelSizeNd() const noexcept
{
    return self(this).kernel;
}
void IDeconvolutionLayer::setStrideNd(Dims stride) noexcept
{
    guardedVoid(self(this).reporter(), [&] { return self(this).setDims(self(this).stride, stride, 1, "stride"); });
}
Dims IDeconvolutionLayer::getStrideNd() const noexcept
{
    return self(this).stride;
}
void IDeconvolutionLayer::setDilationNd(Dims dilation) noexcept
{
    guardedVoid(self(this).reporter(),
                [&] { return self(this).setDims(self(this).dilation, dilation, 1, "dilation"); });
}
Dims IDeconvolutionLayer::getDilationNd() const noexcept
{
    return self(this).dilation;
}
void IDeconvolutionLayer::setPrePadding(Dims padding) noexcept
{
    guardedVoid(self(this).reporter(),
                [&] { return self(this).setDims(self(this).prePadding, padding, 0, "pre-padding"); });
}
Dims IDeconvolutionLayer::getPrePadding() const noexcept
{
    return self(this).prePadding;
}
void IDeconvolutionLayer::setPostPadding(Dims padding) noexcept
{
    guardedVoid(self(this).reporter(),
                [&] { return self(this).setDims(self(this).postPadding, padding, 0, "post-padding"); });
}
Dims IDeconvolutionLayer::getPostPadding() const noexcept
{
    return self(this).postPadding;
}
void IDeconvolutionLayer::setPaddingNd(Dims padding) noexcept
{
    setPrePadding(padding);
    setPostPadding(padding);
}
Dims IDeconvolutionLayer::getPaddingNd() const noexcept
{
    return self(this).prePadding;
}

void IDeconvolutionLayer::setKernelSize(DimsHW kernelSize) noexcept
{
    setKernelSizeNd(kernelSize);
}
DimsHW IDeconvolutionLayer::getKernelSize() const noexcept
{
    return toHW(self(this).kernel);
}
void IDeconvolutionLayer::setStride(DimsHW stride) noexcept
{
    setStrideNd(stride);
}
DimsHW IDeconvolutionLayer::getStride() const noexcept
{
    return toHW(self(this).stride);
}
void IDeconvolutionLayer::setPadding(DimsHW padding) noexcept
{
    setPaddingNd(padding);
}
DimsHW IDeconvolutionLayer::getPadding() const noexcept
{
    return toHW(self(this).prePadding);
}

} // namespace nvinfer1
