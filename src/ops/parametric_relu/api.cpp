// SPDX-License-Identifier: Apache-2.0
#include "api/network/network.h"
#include "ops/parametric_relu/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct ParametricReLULayer final : LayerObject<nvinfer1::IParametricReLULayer>
{
    Result<void> lower(LowerContext& ctx) override
    {
        return ctx.lowerTo(ops::parametric_relu::def(), ops::parametric_relu::Attrs(), {ctx.in(0), ctx.in(1)});
    }
};

} // namespace

namespace nvinfer1 {

IParametricReLULayer* INetworkDefinition::addParametricReLU(ITensor& input, ITensor& slope) noexcept
{
    return addLayer<ParametricReLULayer>(*this, LayerType::kPARAMETRIC_RELU, "ParametricReLU", {&input, &slope});
}

} // namespace nvinfer1
