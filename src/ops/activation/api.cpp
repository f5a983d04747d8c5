// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "api/network/setter.h"
#include "ops/activation/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct ActivationLayer final : LayerObject<nvinfer1::IActivationLayer>
{
    nvinfer1::ActivationType kind = nvinfer1::ActivationType::kRELU;
    std::optional<float> alpha, beta; // as the client set them

    // Clients set the parameters of every other kind; softplus is log(exp x + 1) for those who set none.
    float whenUnset() const { return kind == nvinfer1::ActivationType::kSOFTPLUS ? 1 : 0; }
    Result<void> lower(LowerContext& ctx) override
    {
        ops::activation::Attrs a(static_cast<ops::activation::Kind>(kind), alpha.value_or(whenUnset()),
                                 beta.value_or(whenUnset()));
        return ctx.lowerTo(ops::activation::def(), std::move(a), {ctx.in(0)});
    }
};

TW_OBJECT(nvinfer1::IActivationLayer, ActivationLayer)

} // namespace

namespace nvinfer1 {

IActivationLayer* INetworkDefinition::addActivation(ITensor& input, ActivationType type) noexcept
{
    return addLayer<ActivationLayer>(*this, LayerType::kACTIVATION, "Activation", {&input}, [&](ActivationLayer& l) {
        l.kind = type;
        return checkAll("addActivation", {checkEnum(type, "activation type")});
    });
}

TW_PROPERTY(IActivationLayer, ActivationType, setActivationType, getActivationType, kind,
            checkEnum(value, "activation type"))
TW_FIELD_SETTER(IActivationLayer, float, setAlpha, alpha, checkFinite(value, "alpha"))
TW_GETTER(IActivationLayer, float, getAlpha, self.alpha.value_or(self.whenUnset()))
TW_FIELD_SETTER(IActivationLayer, float, setBeta, beta, checkFinite(value, "beta"))
TW_GETTER(IActivationLayer, float, getBeta, self.beta.value_or(self.whenUnset()))

} // namespace nvinfer1
