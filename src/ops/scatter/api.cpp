// SPDX-License-Identifier: Apache-2.0
#include "api/network/setter.h"
#include "ops/scatter/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct ScatterLayer final : LayerObject<nvinfer1::IScatterLayer>
{
    nvinfer1::ScatterMode mode = nvinfer1::ScatterMode::kELEMENT;
    int32_t axis = 0;

    Result<void> lower(LowerContext& ctx) override
    {
        if (ctx.implicitBatch() && mode == nvinfer1::ScatterMode::kND)
            return error("scatter in mode kND needs an explicit batch network: its indices count the batch too");
        ops::scatter::Attrs a;
        a.mode = static_cast<ops::scatter::Mode>(mode);
        a.axis = int64_t(axis) + ctx.axisShift();
        std::vector<ir::Value*> in{ctx.in(0), ctx.in(1), ctx.in(2)};
        TW_TRY(ctx.shareBatch(in));
        return ctx.lowerTo(ops::scatter::def(), std::move(a), std::move(in));
    }
};

TW_OBJECT(nvinfer1::IScatterLayer, ScatterLayer)

} // namespace

namespace nvinfer1 {

IScatterLayer* INetworkDefinition::addScatter(ITensor& data, ITensor& indices, ITensor& updates,
                                              ScatterMode mode) noexcept
{
    return addLayer<ScatterLayer>(*this, LayerType::kSCATTER, "Scatter", {&data, &indices, &updates},
                                  [&](ScatterLayer& l) {
                                      l.mode = mode;
                                      return checkAll("addScatter", {checkEnum(mode, "scatter mode")});
                                  });
}

TW_PROPERTY(IScatterLayer, ScatterMode, setMode, getMode, mode, checkEnum(value, "scatter mode"))
TW_PROPERTY(IScatterLayer, int32_t, setAxis, getAxis, axis)

} // namespace nvinfer1
