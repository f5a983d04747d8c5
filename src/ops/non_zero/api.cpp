// SPDX-License-Identifier: Apache-2.0
#include "api/network/network.h"
#include "ops/non_zero/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct NonZeroLayer final : LayerObject<nvinfer1::INonZeroLayer>
{
    Result<void> lower(LowerContext& ctx) override
    {
        if (ctx.implicitBatch())
            return error("non-zero needs an explicit batch network: its result has no batch dimension");
        DataType const t = ctx.in(0)->type;
        if (!isFloating(t) && t != DataType::kInt32 && t != DataType::kBool)
            return error("input '" + inputs[0]->name + "' is " + nameOf(t) + " (allowed: f32, f16, i32, bool)");
        return ctx.lowerTo(ops::non_zero::def(), ir::NoAttrs(), {ctx.in(0)});
    }
    nvinfer1::DataType naturalOutputType(int) const override { return nvinfer1::DataType::kINT32; }
};

} // namespace

namespace nvinfer1 {

INonZeroLayer* INetworkDefinition::addNonZero(ITensor& input) noexcept
{
    return addLayer<NonZeroLayer>(*this, LayerType::kNON_ZERO, "NonZero", {&input});
}

} // namespace nvinfer1
