// SPDX-License-Identifier: Apache-2.0
#include "api/kernel_layer.h"

using namespace tw;
using namespace tw::api;

namespace {

struct DeconvolutionLayer final : KernelLayer<nvinfer1::IDeconvolutionLayer>
{
    bool isTransposed() const override { return true; }
    Result<Extents> kernelChannels(int64_t inputChannels) const override
    {
        if (outputMaps % groups != 0)
            return error("the number of groups " + std::to_string(groups) + " must divide the output maps " +
                         std::to_string(outputMaps));
        return Extents{inputChannels, outputMaps / groups};
    }
};

} // namespace

namespace nvinfer1 {

IDeconvolutionLayer* INetworkDefinition::addDeconvolutionNd(ITensor& input, int32_t nbOutputMaps, Dims kernelSize,
                                                            Weights kernelWeights, Weights biasWeights) noexcept
{
    return addLayer<DeconvolutionLayer>(
        *this, LayerType::kDECONVOLUTION, "Deconvolution", {&input}, [&](DeconvolutionLayer& l) -> Result<void> {
            return l.init("addDeconvolutionNd", nbOutputMaps, kernelSize, kernelWeights, biasWeights);
        });
}
IDeconvolutionLayer* INetworkDefinition::addDeconvolution(ITensor& input, int32_t nbOutputMaps, DimsHW kernelSize,
                                                          Weights kernelWeights, Weights biasWeights) noexcept
{
    return addDeconvolutionNd(input, nbOutputMaps, kernelSize, kernelWeights, biasWeights);
}

TW_KERNEL_LAYER_METHODS(IDeconvolutionLayer, DeconvolutionLayer)

} // namespace nvinfer1
