// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "api/network/setter.h"
#include "ops/softmax/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct SoftMaxLayer final : LayerObject<nvinfer1::ISoftMaxLayer>
{
    std::optional<uint32_t> axes; // unset: the default, which follows the input's rank

    static uint32_t defaultAxes(int rank) { return 1u << std::max(0, rank - 3); }

    Result<void> lower(LowerContext& ctx) override
    {
        ops::softmax::Attrs a;
        int const rank = ctx.in(0)->rank() - ctx.axisShift();
        int const axis = axisOfMask(axes.value_or(defaultAxes(rank)));
        if (axis >= rank)
            return error("axis " + std::to_string(axis) + " is out of range for input '" + inputs[0]->name +
                         "' of rank " + std::to_string(rank));
        a.axis = axis + ctx.axisShift();
        return ctx.lowerTo(ops::softmax::def(), std::move(a), {ctx.in(0)});
    }
};

TW_OBJECT(nvinfer1::ISoftMaxLayer, SoftMaxLayer)

} // namespace

namespace nvinfer1 {

ISoftMaxLayer* INetworkDefinition::addSoftMax(ITensor& input) noexcept
{
    return addLayer<SoftMaxLayer>(*this, LayerType::kSOFTMAX, "SoftMax", {&input});
}

TW_FIELD_SETTER(ISoftMaxLayer, uint32_t, setAxes, axes, checkOneAxis(value))
TW_GETTER(ISoftMaxLayer, uint32_t, getAxes,
          self.axes.value_or(self.defaultAxes(self.inputs[0]->getDimensions().nbDims)))

} // namespace nvinfer1
