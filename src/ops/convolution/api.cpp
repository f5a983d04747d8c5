// SPDX-License-Identifier: Apache-2.0
#include "api/network/kernel_layer.h"

using namespace tw;
using namespace tw::api;

namespace {

struct ConvolutionLayer final : KernelLayer<nvinfer1::IConvolutionLayer>
{
    bool isTransposed() const override { return false; }
    Result<Extents> kernelChannels(int64_t inputChannels) const override
    {
        return Extents{outputMaps, inputChannels / groups};
    }
};

struct DeconvolutionLayer final : KernelLayer<nvinfer1::IDeconvolutionLayer>
{
    bool isTransposed() const override { return true; }
    Result<Extents> kernelChannels(int64_t inputChannels) const override
    {
        if (outputMaps % groups != 0)
            return error("the number of groups {} must divide the output maps {}", groups, outputMaps);
        return Extents{inputChannels, outputMaps / groups};
    }
};

TW_OBJECT(nvinfer1::IConvolutionLayer, ConvolutionLayer)
TW_OBJECT(nvinfer1::IDeconvolutionLayer, DeconvolutionLayer)

} // namespace

namespace nvinfer1 {

TW_KERNEL_LAYER_METHODS(IConvolutionLayer, ConvolutionLayer, addConvolution, LayerType::kCONVOLUTION, "Convolution")
TW_SETTER(IConvolutionLayer, DimsHW, setDilation, setDilationNd(value))
TW_GETTER(IConvolutionLayer, DimsHW, getDilation, toHW(self.dilation))
TW_KERNEL_LAYER_METHODS(IDeconvolutionLayer, DeconvolutionLayer, addDeconvolution, LayerType::kDECONVOLUTION,
                        "Deconvolution")

} // namespace nvinfer1
