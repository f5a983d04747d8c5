// SPDX-License-Identifier: Apache-2.0
#include "api/network.h"
#include "ops/matrix_multiply/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct FullyConnectedLayer final : LayerObject<nvinfer1::IFullyConnectedLayer>
{
    int32_t outputChannels = 0;
    nvinfer1::Weights kernelWeights{}, biasWeights{};

    int maxInputs() const override { return 2; } // data, kernel tensor
    std::vector<nvinfer1::Weights> heldWeights() const override { return {kernelWeights, biasWeights}; }
    Result<void> onSetInput(int index, TensorObject&) override
    {
        if (index == 1 && kernelWeights.count != 0)
            return error("kernel weights are set already; they must be empty when the tensor is an input");
        return {};
    }

    Result<void> lower(LowerContext& ctx) override
    {
        ir::Value* x = ctx.in(0);
        if (x->rank() - ctx.axisShift() < 3)
            return error("input '" + inputs[0]->name + "' with shape " + str(x->shape) +
                         " needs at least 3 dimensions besides the batch");
        int64_t volume = 1;
        for (size_t i = x->shape.size() - 3; i < x->shape.size(); ++i) {
            if (!x->shape[i].isConst())
                return error("the last three dimensions of input '" + inputs[0]->name + "' with shape " +
                             str(x->shape) + " must not be wildcards");
            volume = ir::mulSat(volume, x->shape[i].value());
        }
        if (volume > INT32_MAX)
            return error("the last three dimensions of input '" + inputs[0]->name + "' with shape " + str(x->shape) +
                         " have 2^31 elements or more");
        ir::Value* w = ctx.in(1);
        if (!w) {
            TW_ASSIGN(w, ctx.weights(kernelWeights, {outputChannels, volume}, x->type, ir::WeightsRole::kKernel));
        }
        ir::Value* b = nullptr;
        if (biasWeights.count != 0) {
            TW_ASSIGN(b, ctx.weights(biasWeights, {outputChannels}, x->type, ir::WeightsRole::kBias));
        }
        TW_ASSIGN(ir::Node * node,
                  ctx.add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs::fullyConnected(), {x, w, b}));
        ctx.output(0, node->outputs[0]);
        return {};
    }
};

FullyConnectedLayer& self(nvinfer1::IFullyConnectedLayer* l)
{
    return static_cast<FullyConnectedLayer&>(*l);
}
FullyConnectedLayer const& self(nvinfer1::IFullyConnectedLayer const* l)
{
    return static_cast<FullyConnectedLayer const&>(*l);
}

Result<void> checkChannels(int32_t n)
{
    if (n < 1)
        return invalidArgument("fully connected: the number of output channels " + std::to_string(n) +
                               " must be positive");
    return {};
}

} // namespace

namespace nvinfer1 {

IFullyConnectedLayer* INetworkDefinition::addFullyConnected(ITensor& input, int32_t nbOutputs, Weights kernelWeights,
                                                            Weights biasWeights) noexcept
{
    return addLayer<FullyConnectedLayer>(*this, LayerType::kFULLY_CONNECTED, "Fully Connected", {&input},
                                         [&](FullyConnectedLayer& l) -> Result<void> {
                                             TW_TRY(checkChannels(nbOutputs));
                                             TW_TRY(checkWeights(kernelWeights, "addFullyConnected: kernel"));
                                             TW_TRY(checkWeights(biasWeights, "addFullyConnected: bias"));
                                             l.outputChannels = nbOutputs;
                                             l.kernelWeights = kernelWeights;
                                             l.biasWeights = biasWeights;
                                             return {};
                                         });
}

void IFullyConnectedLayer::setNbOutputChannels(int32_t nbOutputs) noexcept
{
    guardedVoid(self(this).reporter(), [&]() -> Result<void> {
        TW_TRY(checkChannels(nbOutputs));
        self(this).outputChannels = nbOutputs;
        self(this).changed();
        return {};
    });
}
int32_t IFullyConnectedLayer::getNbOutputChannels() const noexcept
{
    return self(this).outputChannels;
}
void IFullyConnectedLayer::setKernelWeights(Weights weights) noexcept
{
    guardedVoid(self(this).reporter(), [&]() -> Result<void> {
        TW_TRY(checkWeights(weights, "kernel"));
        self(this).kernelWeights = weights;
        self(this).changed();
        return {};
    });
}
Weights IFullyConnectedLayer::getKernelWeights() const noexcept
{
    return self(this).kernelWeights;
}
void IFullyConnectedLayer::setBiasWeights(Weights weights) noexcept
{
    guardedVoid(self(this).reporter(), [&]() -> Result<void> {
        TW_TRY(checkWeights(weights, "bias"));
        self(this).biasWeights = weights;
        self(this).changed();
        return {};
    });
}
Weights IFullyConnectedLayer::getBiasWeights() const noexcept
{
    return self(this).biasWeights;
}

} // namespace nvinfer1
