// SPDX-License-Identifier: Apache-2.0
// What the convolution and the deconvolution layer share: they differ in what is transposed and in the order of their
// kernel weights.
#pragma once

#include "api/network/window_layer.h"
#include "ops/convolution/op.h"
#include "tactic/registry.h"

namespace tw::api {

template <class PublicLayer>
struct KernelLayer : WindowLayer<PublicLayer>
{
    int32_t outputMaps = 0;
    nvinfer1::Dims dilation{};
    int32_t groups = 1;
    nvinfer1::Weights kernelWeights{}, biasWeights{};

    virtual bool isTransposed() const = 0;
    // The first two dimensions of the kernel weights, for an input of so many channels.
    virtual Result<Extents> kernelChannels(int64_t inputChannels) const = 0;

    Result<void> init(char const* method, int32_t maps, nvinfer1::Dims const& size, nvinfer1::Weights const& w,
                      nvinfer1::Weights const& b)
    {
        std::string const where = std::string(method) + ": ";
        TW_TRY(this->setWindow(size, where + "kernel size"));
        TW_TRY(checkAll(method, {checkPositive(maps, "the number of output maps")}));
        TW_TRY(checkWeights(w, where + "kernel"));
        TW_TRY(checkWeights(b, where + "bias"));
        outputMaps = maps;
        dilation = this->stride;
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
            return this->error("{} weights are set already; they must be empty when the tensor is an input",
                               index == 1 ? "kernel" : "bias");
        return {};
    }

    Result<void> lower(LowerContext& ctx) override
    {
        ir::Value* x = ctx.in(0);
        nvinfer1::Dims const& kernel = this->window;
        auto a = this->template windowAttrs<ops::convolution::Attrs>();
        a.transposed = isTransposed();
        a.dilations = toVector(dilation);
        a.groups = groups;
        int const channelAxis = x->rank() - kernel.nbDims - 1;
        if (channelAxis < ctx.axisShift() || !x->shape[channelAxis].isConst())
            return this->error("input '{}' with shape {} needs a channel dimension that is no wildcard, and {} spatial "
                               "dimensions after it",
                               this->inputs[0]->name, str(x->shape), kernel.nbDims);
        ir::Value* w = ctx.in(1);
        if (!w) {
            TW_ASSIGN(Extents shape, kernelChannels(x->shape[channelAxis].value()));
            for (int i = 0; i < kernel.nbDims; ++i)
                shape.push(kernel.d[i]);
            TW_ASSIGN(w, ctx.weights(kernelWeights, shape, x->type, ir::WeightsRole::kKernel));
        }
        ir::Value* b = ctx.in(2);
        if (!b && biasWeights.count != 0)
            TW_SET(b, ctx.weights(biasWeights, {outputMaps}, x->type, ir::WeightsRole::kBias));
        return ctx.lowerTo(ops::convolution::def(), std::move(a), {x, w, b});
    }
};

} // namespace tw::api

// Everything that the two public classes have in common, their creators too; stands in namespace nvinfer1.
#define TW_KERNEL_LAYER_METHODS(Public, Layer, addX, type, typeName)                                                   \
    Public* INetworkDefinition::addX##Nd(ITensor& input, int32_t nbOutputMaps, Dims kernelSize, Weights kernelWeights, \
                                         Weights biasWeights) noexcept                                                 \
    {                                                                                                                  \
        return addLayer<Layer>(*this, type, typeName, {&input}, [&](Layer& l) {                                        \
            return l.init(#addX "Nd", nbOutputMaps, kernelSize, kernelWeights, biasWeights);                           \
        });                                                                                                            \
    }                                                                                                                  \
    Public* INetworkDefinition::addX(ITensor& input, int32_t nbOutputMaps, DimsHW kernelSize, Weights kernelWeights,   \
                                     Weights biasWeights) noexcept                                                     \
    {                                                                                                                  \
        return addX##Nd(input, nbOutputMaps, kernelSize, kernelWeights, biasWeights);                                  \
    }                                                                                                                  \
    TW_WINDOW_LAYER_METHODS(Public)                                                                                    \
    TW_WINDOW_PROPERTY(Public, setKernelSize, getKernelSize, window, 1, "kernel size")                                 \
    TW_PROPERTY(Public, int32_t, setNbOutputMaps, getNbOutputMaps, outputMaps,                                         \
                checkPositive(value, "the number of output maps"))                                                     \
    TW_PROPERTY(Public, int32_t, setNbGroups, getNbGroups, groups, checkPositive(value, "the number of groups"))       \
    TW_PROPERTY(Public, Weights, setKernelWeights, getKernelWeights, kernelWeights,                                    \
                checkWeights(value, self.where("kernel")))                                                             \
    TW_PROPERTY(Public, Weights, setBiasWeights, getBiasWeights, biasWeights, checkWeights(value, self.where("bias"))) \
    TW_PROPERTY(Public, Dims, setDilationNd, getDilationNd, dilation, self.checkEntries(value, 1, "dilation"))
