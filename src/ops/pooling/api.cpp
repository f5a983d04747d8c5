// SPDX-License-Identifier: Apache-2.0
#include "api/network/window_layer.h"
#include "ops/pooling/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct PoolingLayer final : WindowLayer<nvinfer1::IPoolingLayer>
{
    nvinfer1::PoolingType kind{};
    float blendFactor = 0;
    bool excludePadding = true;

    Result<void> lower(LowerContext& ctx) override
    {
        ir::Value* x = ctx.in(0);
        if (x->rank() - ctx.axisShift() < window.nbDims + 1)
            return error("input '{}' with shape {} needs at least {} dimensions for a window of {}", inputs[0]->name,
                         str(x->shape), window.nbDims + 1, window.nbDims);
        auto a = windowAttrs<ops::pooling::Attrs>();
        a.kind = static_cast<ops::pooling::Kind>(kind);
        a.window = toVector(window);
        a.blend = blendFactor;
        a.excludePadding = excludePadding;
        return ctx.lowerTo(ops::pooling::def(), std::move(a), {x});
    }
};

std::string checkBlend(float v)
{
    return v >= 0 && v <= 1 ? "" : fmt::format("blend factor {} must be in [0, 1]", v);
}

TW_OBJECT(nvinfer1::IPoolingLayer, PoolingLayer)

} // namespace

namespace nvinfer1 {

IPoolingLayer* INetworkDefinition::addPoolingNd(ITensor& input, PoolingType type, Dims windowSize) noexcept
{
    return addLayer<PoolingLayer>(*this, LayerType::kPOOLING, "Pooling", {&input},
                                  [&](PoolingLayer& l) -> Result<void> {
                                      TW_TRY(checkAll("addPoolingNd", {checkEnum(type, "pooling type")}));
                                      l.kind = type;
                                      return l.setWindow(windowSize, "addPoolingNd: window size");
                                  });
}
IPoolingLayer* INetworkDefinition::addPooling(ITensor& input, PoolingType type, DimsHW windowSize) noexcept
{
    return addPoolingNd(input, type, windowSize);
}

TW_WINDOW_LAYER_METHODS(IPoolingLayer)
TW_WINDOW_PROPERTY(IPoolingLayer, setWindowSize, getWindowSize, window, 1, "window size")
TW_PROPERTY(IPoolingLayer, PoolingType, setPoolingType, getPoolingType, kind, checkEnum(value, "pooling type"))
TW_PROPERTY(IPoolingLayer, float, setBlendFactor, getBlendFactor, blendFactor, checkBlend(value))
TW_PROPERTY(IPoolingLayer, bool, setAverageCountExcludesPadding, getAverageCountExcludesPadding, excludePadding)

} // namespace nvinfer1
