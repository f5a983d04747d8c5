// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "api/network/setter.h"
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
            return error("channel axis {} is out of range for input '{}' with shape {}", *channelAxis, inputs[0]->name,
                         str(x->shape));
        // A range says what integers stand for: then this is the wish that other layers have.
        if (outputTypes[0] == nvinfer1::DataType::kINT8 && !outputs[0]->rangeMin)
            a.outputType = int32_t(DataType::kInt8);
        int64_t count = 1;
        int const last = mode == nvinfer1::ScaleMode::kUNIFORM   ? a.channelAxis
                         : mode == nvinfer1::ScaleMode::kCHANNEL ? a.channelAxis + 1
                                                                 : x->rank();
        for (int i = a.channelAxis; i < last; ++i) {
            if (!x->shape[size_t(i)].isConst())
                return error("dimension {} of input '{}' with shape {} must not be a wildcard: it counts the weights",
                             i - ctx.axisShift(), inputs[0]->name, str(x->shape));
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
        return ctx.lowerTo(ops::scale::def(), std::move(a), {x, s, b, p});
    }
};

std::string checkScaleMode(nvinfer1::ScaleMode mode)
{
    return checkEnum(mode, "scale mode");
}
std::string checkChannelAxis(int32_t axis)
{
    return checkRange(axis, 0, nvinfer1::Dims::MAX_DIMS - 1, "channel axis", ", and below the input's rank");
}

TW_OBJECT(nvinfer1::IScaleLayer, ScaleLayer)

nvinfer1::IScaleLayer* makeScale(nvinfer1::INetworkDefinition& network, nvinfer1::ITensor& input,
                                 nvinfer1::ScaleMode mode, nvinfer1::Weights shift, nvinfer1::Weights scale,
                                 nvinfer1::Weights power, std::optional<int32_t> axis, char const* creator)
{
    return addLayer<ScaleLayer>(
        network, nvinfer1::LayerType::kSCALE, "Scale", {&input}, [&](ScaleLayer& l) -> Result<void> {
            std::string const where = std::string(creator) + ": ";
            TW_TRY(checkAll(creator, {checkScaleMode(mode), checkChannelAxis(axis.value_or(0))}));
            TW_TRY(checkWeights(shift, where + "shift"));
            TW_TRY(checkWeights(scale, where + "scale"));
            TW_TRY(checkWeights(power, where + "power"));
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

TW_PROPERTY(IScaleLayer, ScaleMode, setMode, getMode, mode, checkScaleMode(value))
TW_PROPERTY(IScaleLayer, Weights, setShift, getShift, shift, checkWeights(value, self.where("shift")))
TW_PROPERTY(IScaleLayer, Weights, setScale, getScale, scale, checkWeights(value, self.where("scale")))
TW_PROPERTY(IScaleLayer, Weights, setPower, getPower, power, checkWeights(value, self.where("power")))
TW_FIELD_SETTER(IScaleLayer, int32_t, setChannelAxis, channelAxis, checkChannelAxis(value))
TW_GETTER(IScaleLayer, int32_t, getChannelAxis,
          self.channelAxis ? *self.channelAxis : self.inputs[0]->getDimensions().nbDims - 3)

} // namespace nvinfer1
