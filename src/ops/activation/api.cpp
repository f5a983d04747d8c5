// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>

#include "api/network.h"
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
        TW_ASSIGN(ir::Node * node, ctx.add(ops::activation::def(), std::move(a), {ctx.in(0)}));
        ctx.output(0, node->outputs[0]);
        return {};
    }
    void set(std::optional<float>& field, float value, char const* what)
    {
        guardedVoid(reporter(), [&]() -> Result<void> {
            if (!std::isfinite(value))
                return error(std::string(what) + " " + std::to_string(value) + " must be finite");
            field = value;
            changed();
            return {};
        });
    }
};

Result<void> checkKind(nvinfer1::ActivationType kind)
{
    int const number = static_cast<int>(kind);
    if (number < 0 || number >= nvinfer1::EnumMax<nvinfer1::ActivationType>())
        return invalidArgument("activation type " + std::to_string(number) + " does not exist");
    return {};
}
ActivationLayer& self(nvinfer1::IActivationLayer* l)
{
    return static_cast<ActivationLayer&>(*l);
}
ActivationLayer const& self(nvinfer1::IActivationLayer const* l)
{
    return static_cast<ActivationLayer const&>(*l);
}

} // namespace

namespace nvinfer1 {

IActivationLayer* INetworkDefinition::addActivation(ITensor& input, ActivationType type) noexcept
{
    return addLayer<ActivationLayer>(*this, LayerType::kACTIVATION, "Activation", {&input},
                                     [&](ActivationLayer& l) -> Result<void> {
                                         TW_TRY(checkKind(type));
                                         l.kind = type;
                                         return {};
                                     });
}

void IActivationLayer::setActivationType(ActivationType type) noexcept
{
    guardedVoid(self(this).reporter(), [&]() -> Result<void> {
        TW_TRY(checkKind(type));
        self(this).kind = type;
        self(this).changed();
        return {};
    });
}
ActivationType IActivationLayer::getActivationType() const noexcept
{
    return self(this).kind;
}
void IActivationLayer::setAlpha(float alpha) noexcept
{
    self(this).set(self(this).alpha, alpha, "alpha");
}
void IActivationLayer::setBeta(float beta) noexcept
{
    self(this).set(self(this).beta, beta, "beta");
}
float IActivationLayer::getAlpha() const noexcept
{
    return self(this).alpha.value_or(self(this).whenUnset());
}
float IActivationLayer::getBeta() const noexcept
{
    return self(this).beta.value_or(self(this).whenUnset());
}

} // namespace nvinfer1
