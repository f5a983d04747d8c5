// SPDX-License-Identifier: Apache-2.0
#include "api/network/setter.h"
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
            return error("axis {} would stand before the batch dimension", axis);
        return ctx.lowerTo(ops::one_hot::def(), std::move(a), {ctx.in(0), ctx.in(1), ctx.in(2)});
    }
};

std::string checkOneHotAxis(int32_t axis)
{
    constexpr int32_t kMost = nvinfer1::Dims::MAX_DIMS;
    return checkRange(axis, -kMost, kMost - 1, "one-hot axis", ", and within the output's rank");
}

TW_OBJECT(nvinfer1::IOneHotLayer, OneHotLayer)

} // namespace

namespace nvinfer1 {

IOneHotLayer* INetworkDefinition::addOneHot(ITensor& indices, ITensor& values, ITensor& depth, int32_t axis) noexcept
{
    return addLayer<OneHotLayer>(*this, LayerType::kONE_HOT, "OneHot", {&indices, &values, &depth},
                                 [&](OneHotLayer& l) {
                                     l.axis = axis;
                                     return checkAll("addOneHot", {checkOneHotAxis(axis)});
                                 });
}

TW_PROPERTY(IOneHotLayer, int32_t, setAxis, getAxis, axis, checkOneHotAxis(value))

} // namespace nvinfer1
