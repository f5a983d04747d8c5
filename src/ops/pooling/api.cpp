// SPDX-License-Identifier: Apache-2.0
#include "api/setter.h"
#include "ops/pooling/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct PoolingLayer final : LayerObject<nvinfer1::IPoolingLayer>
{
    nvinfer1::PoolingType kind{};
    nvinfer1::Dims window{}, stride{}, prePadding{}, postPadding{};
    nvinfer1::PaddingMode paddingMode = nvinfer1::PaddingMode::kEXPLICIT_ROUND_DOWN;
    float blendFactor = 0;
    bool excludePadding = true;

    Result<void> setDims(nvinfer1::Dims& field, nvinfer1::Dims const& d, int32_t least, char const* what)
    {
        TW_TRY(checkDims(d, least, "layer '" + name + "': " + what));
        if (d.nbDims != window.nbDims)
            return error(std::string(what) + " " + str(d) + " needs one entry for each of the " +
                         std::to_string(window.nbDims) + " window dimensions");
        field = d;
        changed();
        return {};
    }

    Result<void> lower(LowerContext& ctx) override
    {
        ir::Value* x = ctx.in(0);
        if (x->rank() - ctx.axisShift() < window.nbDims + 1)
            return error("input '" + inputs[0]->name + "' with shape " + str(x->shape) + " needs at least " +
                         std::to_string(window.nbDims + 1) + " dimensions for a window of " +
                         std::to_string(window.nbDims));
        ops::pooling::Attrs a;
        a.kind = static_cast<ops::pooling::Kind>(kind);
        a.window = toVector(window);
        a.strides = toVector(stride);
        a.prePadding = toVector(prePadding);
        a.postPadding = toVector(postPadding);
        a.paddingMode = static_cast<ops::PaddingMode>(paddingMode);
        a.blend = blendFactor;
        a.excludePadding = excludePadding;
        TW_ASSIGN(ir::Node * node, ctx.add(ops::pooling::def(), std::move(a), {x}));
        ctx.output(0, node->outputs[0]);
        return {};
    }
};

PoolingLayer& self(nvinfer1::IPoolingLayer* l)
{
    return static_cast<PoolingLayer&>(*l);
}
PoolingLayer const& self(nvinfer1::IPoolingLayer const* l)
{
    return static_cast<PoolingLayer const&>(*l);
}
std::string checkPoolingType(nvinfer1::PoolingType type)
{
    return checkEnum(type, "pooling type");
}

} // namespace

namespace nvinfer1 {

IPoolingLayer* INetworkDefinition::addPoolingNd(ITensor& input, PoolingType type, Dims windowSize) noexcept
{
    return addLayer<PoolingLayer>(
        *this, LayerType::kPOOLING, "Pooling", {&input}, [&](PoolingLayer& l) -> Result<void> {
            if (std::string why = checkPoolingType(type); !why.empty())
                return invalidArgument("addPoolingNd: " + why);
            TW_TRY(checkDims(windowSize, 1, "addPoolingNd: window size"));
            if (windowSize.nbDims != 2 && windowSize.nbDims != 3)
                return invalidArgument("addPoolingNd: window size " + str(windowSize) + " must have 2 or 3 entries");
            l.kind = type;
            l.window = windowSize;
            l.stride = filledDims(windowSize.nbDims, 1);
            l.prePadding = l.postPadding = filledDims(windowSize.nbDims, 0);
            return {};
        });
}
IPoolingLayer* INetworkDefinition::addPooling(ITensor& input, PoolingType type, DimsHW windowSize) noexcept
{
    return addPoolingNd(input, type, windowSize);
}

void IPoolingLayer::setPoolingType(PoolingType type) noexcept
{
    setField(self(this), self(this).kind, type, checkPoolingType);
}
PoolingType IPoolingLayer::getPoolingType() const noexcept
{
    return self(this).kind;
}
void IPoolingLayer::setBlendFactor(float blendFactor) noexcept
{
    setField(self(this), self(this).blendFactor, blendFactor, [](float v) {
        return v >= 0 && v <= 1 ? std::string() : "blend factor " + std::to_string(v) + " must be in [0, 1]";
    });
}
float IPoolingLayer::getBlendFactor() const noexcept
{
    return self(this).blendFactor;
}
void IPoolingLayer::setAverageCountExcludesPadding(bool exclusive) noexcept
{
    setField(self(this), self(this).excludePadding, exclusive);
}
bool IPoolingLayer::getAverageCountExcludesPadding() const noexcept
{
    return self(this).excludePadding;
}
void IPoolingLayer::setPaddingMode(PaddingMode paddingMode) noexcept
{
    setField(self(this), self(this).paddingMode, paddingMode,
             [](PaddingMode mode) { return checkEnum(mode, "padding mode"); });
}
PaddingMode IPoolingLayer::getPaddingMode() const noexcept
{
    return self(this).paddingMode;
}

void IPoolingLayer::setWindowSizeNd(Dims windowSize) noexcept
{
    guardedVoid(self(this).reporter(),
                [&] { return self(this).setDims(self(this).window, windowSize, 1, "window size"); });
}
Dims IPoolingLayer::getWindowSizeNd() const noexcept
{
    return self(this).window;
}
void IPoolingLayer::setStrideNd(Dims stride) noexcept
{
    guardedVoid(self(this).reporter(), [&] { return self(this).setDims(self(this).stride, stride, 1, "stride"); });
}
Dims IPoolingLayer::getStrideNd() const noexcept
{
    return self(this).stride;
}
void IPoolingLayer::setPrePadding(Dims padding) noexcept
{
    guardedVoid(self(this).reporter(),
                [&] { return self(this).setDims(self(this).prePadding, padding, 0, "pre-padding"); });
}
Dims IPoolingLayer::getPrePadding() const noexcept
{
    return self(this).prePadding;
}
void IPoolingLayer::setPostPadding(Dims padding) noexcept
{
    guardedVoid(self(this).reporter(),
                [&] { return self(this).setDims(self(this).postPadding, padding, 0, "post-padding"); });
}
Dims IPoolingLayer::getPostPadding() const noexcept
{
    return self(this).postPadding;
}
void IPoolingLayer::setPaddingNd(Dims padding) noexcept
{
    setPrePadding(padding);
    setPostPadding(padding);
}
Dims IPoolingLayer::getPaddingNd() const noexcept
{
    return self(this).prePadding;
}

void IPoolingLayer::setWindowSize(DimsHW windowSize) noexcept
{
    setWindowSizeNd(windowSize);
}
DimsHW IPoolingLayer::getWindowSize() const noexcept
{
    return toHW(self(this).window);
}
void IPoolingLayer::setStride(DimsHW stride) noexcept
{
    setStrideNd(stride);
}
DimsHW IPoolingLayer::getStride() const noexcept
{
    return toHW(self(this).stride);
}
void IPoolingLayer::setPadding(DimsHW padding) noexcept
{
    setPaddingNd(padding);
}
DimsHW IPoolingLayer::getPadding() const noexcept
{
    return toHW(self(this).prePadding);
}

} // namespace nvinfer1
