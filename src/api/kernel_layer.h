// SPDX-License-Identifier: Apache-2.0
// What the convolution and the deconvolution layer share: they differ in what is transposed and in the order of their
// kernel weights.
#pragma once

#include "api/network.h"
#include "ops/convolution/op.h"
#include "tactic/registry.h"

namespace tw::api {

template <class PublicLayer>
struct KernelLayer : LayerObject<PublicLayer>
{
    int32_t outputMaps = 0;
    nvinfer1::Dims kernel{}, stride{}, dilation{}, prePadding{}, postPadding{};
    nvinfer1::PaddingMode paddingMode = nvinfer1::PaddingMode::kEXPLICIT_ROUND_DOWN;
    int32_t groups = 1;
    nvinfer1::Weights kernelWeights{}, biasWeights{};

    virtual bool isTransposed() const = 0;
    // The first two dimensions of the kernel weights, for an input of so many channels.
    virtual Result<Extents> kernelChannels(int64_t inputChannels) const = 0;

    Result<void> init(char const* method, int32_t maps, nvinfer1::Dims const& size, nvinfer1::Weights const& w,
                      nvinfer1::Weights const& b)
    {
        std::string const where = std::string(method) + ": ";
        TW_TRY(checkDims(size, 1, where + "kernel size"));
        if (size.nbDims != 2 && size.nbDims != 3)
            return invalidArgument(where + "kernel size " + str(size) + " must have 2 or 3 entries");
        if (maps < 1)
            return invalidArgument(where + "the number of output maps " + std::to_string(maps) + " must be positive");
        TW_TRY(checkWeights(w, where + "kernel"));
        TW_TRY(checkWeights(b, where + "bias"));
        outputMaps = maps;
        kernel = size;
        stride = dilation = filledDims(size.nbDims, 1);
        prePadding = postPadding = filledDims(size.nbDims, 0);
        kernelWeights = w;
        biasWeights = b;
        return {};
    }

    int maxInputs() const override { return 3; } // data, kernel tensor, bias tensor
    std::vector<nvinfer1::Weights> heldWeights() const override { return {kernelWeights, biasWeights}; }
    Result<void> onSetInput(int index, TensorObject&) override
    {
        nvinfer1::Weights const& w = index == 1 ? kernelWeights : biasWeights;
        if (index > 0 && w.count != 0)
            return this->error(std::string(index == 1 ? "kernel" : "bias") +
                               " weights are set already; they must be empty when the tensor is an input");
        return {};
    }

    void setPositive(int32_t& field, int32_t value, char const* what)
    {
        guardedVoid(this->reporter(), [&]() -> Result<void> {
            if (value < 1)
                return this->error(std::string("the number of ") + what + " " + std::to_string(value) +
                                   " must be at least 1");
            field = value;
            this->changed();
            return {};
        });
    }
    void setWeights(nvinfer1::Weights& field, nvinfer1::Weights const& w, char const* what)
    {
        guardedVoid(this->reporter(), [&]() -> Result<void> {
            TW_TRY(checkWeights(w, what));
            field = w;
            this->changed();
            return {};
        });
    }
    void setDims(nvinfer1::Dims& field, nvinfer1::Dims const& d, int32_t least, char const* what)
    {
        guardedVoid(this->reporter(), [&]() -> Result<void> {
            TW_TRY(checkDims(d, least, "layer '" + this->name + "': " + what));
            if (d.nbDims != kernel.nbDims)
                return this->error(std::string(what) + " " + str(d) + " needs one entry for each of the " +
                                   std::to_string(kernel.nbDims) + " window dimensions");
            field = d;
            this->changed();
            return {};
        });
    }
    void setMode(nvinfer1::PaddingMode mode)
    {
        guardedVoid(this->reporter(), [&]() -> Result<void> {
            int const number = static_cast<int>(mode);
            if (number < 0 || number >= nvinfer1::EnumMax<nvinfer1::PaddingMode>())
                return this->error("padding mode " + std::to_string(number) + " does not exist");
            paddingMode = mode;
            this->changed();
            return {};
        });
    }

    Result<void> lower(LowerContext& ctx) override
    {
        ir::Value* x = ctx.in(0);
        ops::convolution::Attrs a;
        a.transposed = isTransposed();
        a.strides = toVector(stride);
        a.dilations = toVector(dilation);
        a.prePadding = toVector(prePadding);
        a.postPadding = toVector(postPadding);
        a.paddingMode = static_cast<ops::PaddingMode>(paddingMode);
        a.groups = groups;
        int const channelAxis = x->rank() - kernel.nbDims - 1;
        if (channelAxis < ctx.axisShift() || !x->shape[channelAxis].isConst())
            return this->error("input '" + this->inputs[0]->name + "' with shape " + str(x->shape) +
                               " needs a channel dimension that is no wildcard, and " + std::to_string(kernel.nbDims) +
                               " spatial dimensions after it");
        ir::Value* w = ctx.in(1);
        if (!w) {
            TW_ASSIGN(Extents shape, kernelChannels(x->shape[channelAxis].value()));
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

} // namespace tw::api

// One setter and getter of a public layer class, on the KernelLayer `Layer` after it.
#define TW_KERNEL_PROPERTY(Public, Layer, Type, Set, Get, setter, value)                                               \
    void Public::Set(Type v) noexcept                                                                                  \
    {                                                                                                                  \
        [[maybe_unused]] auto& l = static_cast<Layer&>(*this);                                                         \
        setter;                                                                                                        \
    }                                                                                                                  \
    Type Public::Get() const noexcept                                                                                  \
    {                                                                                                                  \
        [[maybe_unused]] auto const& l = static_cast<Layer const&>(*this);                                             \
        return value;                                                                                                  \
    }

// Everything that the two public classes have in common; stands in namespace nvinfer1.
#define TW_KERNEL_LAYER_METHODS(Public, Layer)                                                                         \
    TW_KERNEL_PROPERTY(Public, Layer, int32_t, setNbOutputMaps, getNbOutputMaps,                                       \
                       l.setPositive(l.outputMaps, v, "output maps"), l.outputMaps)                                    \
    TW_KERNEL_PROPERTY(Public, Layer, int32_t, setNbGroups, getNbGroups, l.setPositive(l.groups, v, "groups"),         \
                       l.groups)                                                                                       \
    TW_KERNEL_PROPERTY(Public, Layer, Weights, setKernelWeights, getKernelWeights,                                     \
                       l.setWeights(l.kernelWeights, v, "kernel"), l.kernelWeights)                                    \
    TW_KERNEL_PROPERTY(Public, Layer, Weights, setBiasWeights, getBiasWeights, l.setWeights(l.biasWeights, v, "bias"), \
                       l.biasWeights)                                                                                  \
    TW_KERNEL_PROPERTY(Public, Layer, PaddingMode, setPaddingMode, getPaddingMode, l.setMode(v), l.paddingMode)        \
    TW_KERNEL_PROPERTY(Public, Layer, Dims, setKernelSizeNd, getKernelSizeNd,                                          \
                       l.setDims(l.kernel, v, 1, "kernel size"), l.kernel)                                             \
    TW_KERNEL_PROPERTY(Public, Layer, Dims, setStrideNd, getStrideNd, l.setDims(l.stride, v, 1, "stride"), l.stride)   \
    TW_KERNEL_PROPERTY(Public, Layer, Dims, setDilationNd, getDilationNd, l.setDims(l.dilation, v, 1, "dilation"),     \
                       l.dilation)                                                                                     \
    TW_KERNEL_PROPERTY(Public, Layer, Dims, setPrePadding, getPrePadding,                                              \
                       l.setDims(l.prePadding, v, 0, "pre-padding"), l.prePadding)                                     \
    TW_KERNEL_PROPERTY(Public, Layer, Dims, setPostPadding, getPostPadding,                                            \
                       l.setDims(l.postPadding, v, 0, "post-padding"), l.postPadding)                                  \
    TW_KERNEL_PROPERTY(Public, Layer, Dims, setPaddingNd, getPaddingNd, setPrePadding(v);                              \
                       setPostPadding(v), l.prePadding)                                                                \
    TW_KERNEL_PROPERTY(Public, Layer, DimsHW, setKernelSize, getKernelSize, setKernelSizeNd(v), toHW(l.kernel))        \
    TW_KERNEL_PROPERTY(Public, Layer, DimsHW, setStride, getStride, setStrideNd(v), toHW(l.stride))                    \
    TW_KERNEL_PROPERTY(Public, Layer, DimsHW, setPadding, getPadding, setPaddingNd(v), toHW(l.prePadding))
