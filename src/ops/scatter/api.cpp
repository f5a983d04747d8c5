// SPDX-License-Identifier: Apache-2.0
#include "api/network.h"
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
        TW_ASSIGN(ir::Node * node, ctx.add(ops::scatter::def(), std::move(a), std::move(in)));
        ctx.output(0, node->outputs[0]);
        return {};
    }
};

Result<void> checkMode(nvinfer1::ScatterMode mode)
{
    int const number = static_cast<int>(mode);
    if (number < 0 || number >= nvinfer1::EnumMax<nvinfer1::ScatterMode>())
        return invalidArgument("scatter mode " + std::to_string(number) + " does not exist");
    return {};
}

} // namespace

namespace nvinfer1 {

IScatterLayer* INetworkDefinition::addScatter(ITensor& data, ITensor& indices, ITensor& updates,
                                              ScatterMode mode) noexcept
{
    return addLayer<ScatterLayer>(*this, LayerType::kSCATTER, "Scatter", {&data, &indices, &updates},
                                  [&](ScatterLayer& l) -> Result<void> {
                                      TW_TRY(checkMode(mode));
                                      l.mode = mode;
                                      return {};
                                  });
}

void IScatterLayer::setMode(ScatterMode mode) noexcept
{
    auto& l = static_cast<ScatterLayer&>(*this);
    guardedVoid(l.reporter(), [&]() -> Result<void> {
        TW_TRY(checkMode(mode));
        l.mode = mode;
        l.changed();
        return {};
    });
}
ScatterMode IScatterLayer::getMode() const noexcept
{
    return static_cast<ScatterLayer const&>(*this).mode;
}
void IScatterLayer::setAxis(int32_t axis) noexcept
{
    auto& l = static_cast<ScatterLayer&>(*this);
    guardedVoid(l.reporter(), [&]() -> Result<void> {
        l.axis = axis;
        l.changed();
        return {};
    });
}
int32_t IScatterLayer::getAxis() const noexcept
{
    return static_cast<ScatterLayer const&>(*this).axis;
}

} // namespace nvinfer1
