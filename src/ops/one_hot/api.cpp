// SPDX-License-Identifier: Apache-2.0
#include "api/network.h"
#include "ops/one_hot/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct OneHotLayer final : LayerObject<nvinfer1::IOneHotLayer>
{
    int32_t axis = -1;

    // A negative axis counts from the end and needs no shift for the batch.
    Result<void> lower(LowerContext& ctx) override
    {
        ops::one_hot::Attrs a(axis < 0 ? axis : axis + ctx.axisShift());
        if (axis < 0 && axis + ctx.in(0)->rank() + 1 < ctx.axisShift())
            return error("axis " + std::to_string(axis) + " would stand before the batch dimension");
        TW_ASSIGN(ir::Node * node, ctx.add(ops::one_hot::def(), std::move(a), {ctx.in(0), ctx.in(1), ctx.in(2)}));
        ctx.output(0, node->outputs[0]);
        return {};
    }
};

Result<void> checkOneHotAxis(int32_t axis)
{
    if (axis < -nvinfer1::Dims::MAX_DIMS || axis >= nvinfer1::Dims::MAX_DIMS)
        return invalidArgument("one-hot axis " + std::to_string(axis) +
                               " is out of range (allowed: " + std::to_string(-nvinfer1::Dims::MAX_DIMS) + ".." +
                               std::to_string(nvinfer1::Dims::MAX_DIMS - 1) + ", and within the output's rank)");
    return {};
}

} // namespace

namespace nvinfer1 {

IOneHotLayer* INetworkDefinition::addOneHot(ITensor& indices, ITensor& values, ITensor& depth, int32_t axis) noexcept
{
    return addLayer<OneHotLayer>(*this, LayerType::kONE_HOT, "OneHot", {&indices, &values, &depth},
                                 [&](OneHotLayer& l) -> Result<void> {
                                     TW_TRY(checkOneHotAxis(axis));
                                     l.axis = axis;
                                     return {};
                                 });
}

void IOneHotLayer::setAxis(int32_t axis) noexcept
{
    auto& l = static_cast<OneHotLayer&>(*this);
    guardedVoid(l.reporter(), [&]() -> Result<void> {
        TW_TRY(checkOneHotAxis(axis));
        l.axis = axis;
        l.changed();
        return {};
    });
}
int32_t IOneHotLayer::getAxis() const noexcept
{
    return static_cast<OneHotLayer const&>(*this).axis;
}

} // namespace nvinfer1
