// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "api/network.h"
#include "ops/scale/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct ScaleLayer final : LayerObject<nvinfer1::IScaleLayer>
{
    nvinfer1::ScaleMode mode = nvinfer1::ScaleMode::kUNIFORM;
    nvinfer1::Weights shift{}, scale{}, power{};
    std::optional<int32_t> channelAxis; // without the batch; unset: the third from the end

    // Data; scale and shift where they are tensors, which 8.5 does not have: as those of batch normalization, of which a
    // refit replaces what they are computed of.
    int maxInputs() const override { return 3; }
    Result<void> onSetInput(int index, TensorObject&) override
    {
        if (index > 0 && (index == 1 ? scale : shift).count != 0)
            return error(std::string(index == 1 ? "scale" : "shift") +
                         " weights are set already; they must be empty when the tensor is an input");
        return {};
    }
    std::vector<nvinfer1::Weights> heldWeights() const override { return {shift, scale, power}; }

    Result<void> lower(LowerContext& ctx) override
    {
        ir::Value* x = ctx.in(0);
        if (x->rank() < 4)
            return error("input '" + inputs[0]->name + "' with shape " + str(x->shape) + " must have at least " +
                         (ctx.implicitBatch() ? "3 dimensions beside the batch" : "4 dimensions"));
        ops::scale::Attrs a(static_cast<ops::scale::Mode>(mode),
                            channelAxis ? *channelAxis + ctx.axisShift() : x->rank() - 3);
        if (a.channelAxis < 0 || a.channelAxis >= x->rank())
            return error("channel axis " + std::to_string(*channelAxis) + " is out of range for input '" +
                         inputs[0]->name + "' with shape " + str(x->shape));
        if (outputTypes[0] == nvinfer1::DataType::kINT8)
            a.outputType = int32_t(DataType::kInt8);
        int64_t count = 1;
        int const last = mode == nvinfer1::ScaleMode::kUNIFORM   ? a.channelAxis
                         : mode == nvinfer1::ScaleMode::kCHANNEL ? a.channelAxis + 1
                                                                 : x->rank();
        for (int i = a.channelAxis; i < last; ++i) {
            if (!x->shape[size_t(i)].isConst())
                return error("dimension " + std::to_string(i - ctx.axisShift()) + " of input '" + inputs[0]->name +
                             "' with shape " + str(x->shape) + " must not be a wildcard: it counts the weights");
            count = ir::mulSat(count, x->shape[size_t(i)].value());
        }
        DataType const type = isFloating(x->type) ? x->type : DataType::kFloat;
        auto make = [&](nvinfer1::Weights const& w, ir::WeightsRole role) -> Result<ir::Value*> {
            return w.count == 0 ? Result<ir::Value*>(nullptr) : ctx.weights(w, {count}, type, role);
        };
        ir::Value *s = ctx.in(1), *b = ctx.in(2);
        if (!s) {
            TW_ASSIGN(s, make(scale, ir::WeightsRole::kScale));
        }
        if (!b) {
            TW_ASSIGN(b, make(shift, ir::WeightsRole::kShift));
        }
        TW_ASSIGN(ir::Value * p, make(power, ir::WeightsRole::kAny));
        TW_ASSIGN(ir::Node * node, ctx.add(ops::scale::def(), std::move(a), {x, s, b, p}));
        ctx.output(0, node->outputs[0]);
        return {};
    }
    void setWeights(nvinfer1::Weights& field, nvinfer1::Weights const& w, char const* what)
    {
        guardedVoid(reporter(), [&]() -> Result<void> {
            TW_TRY(checkWeights(w, "layer '" + name + "': " + what));
            field = w;
            changed();
            return {};
        });
    }
};

Result<void> checkMode(nvinfer1::ScaleMode mode)
{
    int const number = static_cast<int>(mode);
    if (number < 0 || number >= nvinfer1::EnumMax<nvinfer1::ScaleMode>())
        return invalidArgument("Invalid scale mode: " + std::to_string(number) + " does not exist");
    return {};
}
Result<void> checkChannelAxis(int32_t axis)
{
    if (axis < 0 || axis >= nvinfer1::Dims::MAX_DIMS)
        return invalidArgument("channel axis " + std::to_string(axis) + " is out of range (allowed: 0.." +
                               std::to_string(nvinfer1::Dims::MAX_DIMS - 1) + ", and below the input's rank)");
    return {};
}
ScaleLayer& self(nvinfer1::IScaleLayer* l)
{
    return static_cast<ScaleLayer&>(*l);
}
ScaleLayer const& self(nvinfer1::IScaleLayer const* l)
{
    return static_cast<ScaleLayer const&>(*l);
}

nvinfer1::IScaleLayer* makeScale(nvinfer1::INetworkDefinition& network, nvinfer1::ITensor& input,
                                 nvinfer1::ScaleMode mode, nvinfer1::Weights shift, nvinfer1::Weights scale,
                                 nvinfer1::Weights power, std::optional<int32_t> axis, char const* creator)
{
    return addLayer<ScaleLayer>(network, nvinfer1::LayerType::kSCALE, "Scale", {&input},
                                [&](ScaleLayer& l) -> Result<void> {
                                    std::string const where = std::string(creator) + ": ";
                                    TW_TRY(checkMode(mode));
                                    TW_TRY(checkWeights(shift, where + "shift"));
                                    TW_TRY(checkWeights(scale, where + "scale"));
                                    TW_TRY(checkWeights(power, where + "power"));
                                    if (axis)
                                        TW_TRY(checkChannelAxis(*axis));
                                    l.mode = mode;
                                    l.shift = shift;
                                    l.scale = scale;
                                    l.power = power;
                                    l.channelAxis = axis;
                                    return {};
                                });
}

} // namespace

namespace nvinfer1 {

IScaleLayer* INetworkDefinition::addScale(ITensor& input, ScaleMode mode, Weights shift, Weights scale,
                                          Weights power) noexcept
{
    return makeScale(*this, input, mode, shift, scale, power, std::nullopt, "addScale");
}
IScaleLayer* INetworkDefinition::addScaleNd(ITensor& input, ScaleMode mode, Weights shift, Weights scale, Weights power,
                                            int32_t channelAxis) noexcept
{
    return makeScale(*this, input, mode, shift, scale, power, channelAxis, "addScaleNd");
}

void IScaleLayer::setMode(ScaleMode mode) noexcept
{
    guardedVoid(self(this).reporter(), [&]() -> Result<void> {
        TW_TRY(checkMode(mode));
        self(this).mode = mode;
        self(this).changed();
        return {};
    });
}
ScaleMode IScaleLayer::getMode() const noexcept
{
    return self(this).mode;
}
void IScaleLayer::setShift(Weights shift) noexcept
{
    self(this).setWeights(self(this).shift, shift, "shift");
}
Weights IScaleLayer::getShift() const noexcept
{
    return self(this).shift;
}
void IScaleLayer::setScale(Weights scale) noexcept
{
    self(this).setWeights(self(this).scale, scale, "scale");
}
Weights IScaleLayer::getScale() const noexcept
{
    return self(this).scale;
}
void IScaleLayer::setPower(Weights power) noexcept
{
    self(this).setWeights(self(this).power, power, "power");
}
Weights IScaleLayer::getPower() const noexcept
{
    return self(this).power;
}
int32_t IScaleLayer::getChannelAxis() const noexcept
{
    return self(this).channelAxis ? *self(this).channelAxis : self(this).inputs[0]->getDimensions().nbDims - 3;
}
void IScaleLayer::setChannelAxis(int32_t channelAxis) noexcept
{
    guardedVoid(self(this).reporter(), [&]() -> Result<void> {
        TW_TRY(checkChannelAxis(channelAxis));
        self(this).channelAxis = channelAxis;
        self(this).changed();
        return {};
    });
}

} // namespace nvinfer1
