// SPDX-License-Identifier: Apache-2.0
#include "api/network/network.h"
#include "ops/identity/op.h"

using namespace tw;
using namespace tw::api;

namespace {

// Converts when setOutputType was called; a network output of another type gets its conversion from the network.
struct IdentityLayer final : LayerObject<nvinfer1::IIdentityLayer>
{
    Result<void> lower(LowerContext& ctx) override
    {
        ops::identity::Attrs a;
        // A range says what integers stand for: then INT8 is the wish that other layers have.
        bool const isWish = outputTypes[0] == nvinfer1::DataType::kINT8 && outputs[0]->rangeMin;
        if (outputTypes[0] && !isWish)
            a = ops::identity::Attrs(toCore(*outputTypes[0]));
        return ctx.lowerTo(ops::identity::def(), std::move(a), {ctx.in(0)});
    }
};

} // namespace

namespace nvinfer1 {

IIdentityLayer* INetworkDefinition::addIdentity(ITensor& input) noexcept
{
    return addLayer<IdentityLayer>(*this, LayerType::kIDENTITY, "Identity", {&input});
}

} // namespace nvinfer1
