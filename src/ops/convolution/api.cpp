// SPDX-License-Identifier: Apache-2.0
#include "api/kernel_layer.h"

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

} // namespace

namespace nvinfer1 {

IConvolutionLayer* INetworkDefinition::addConvolutionNd(ITensor& input, int32_t nbOutputMaps, Dims kernelSize,
                                                        Weights kernelWeights, Weights biasWeights) noexcept
{
    return addLayer<ConvolutionLayer>(
        *this, LayerType::kCONVOLUTION, "Convolution", {&input}, [&](ConvolutionLayer& l) -> Result<void> {
            return l.init("addConvolutionNd", nbOutputMaps, kernelSize, kernelWeights, biasWeights);
        });
}
IConvolutionLayer* INetworkDefinition::addConvolution(ITensor& input, int32_t nbOutputMaps, DimsHW kernelSize,
                                                      Weights kernelWeights, Weights biasWeights) noexcept
{
    return addConvolutionNd(input, nbOutputMaps, kernelSize, kernelWeights, biasWeights);
}

TW_KERNEL_LAYER_METHODS(IConvolutionLayer, ConvolutionLayer)
TW_KERNEL_PROPERTY(IConvolutionLayer, ConvolutionLayer, DimsHW, setDilation, getDilation, setDilationNd(v),
                   toHW(l.dilation))

} // namespace nvinfer1
