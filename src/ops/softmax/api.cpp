// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "api/setter.h"
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
        TW_ASSIGN(ir::Node * node, ctx.add(ops::softmax::def(), std::move(a), {ctx.in(0)}));
        ctx.output(0, node->outputs[0]);
        return {};
    }
};

SoftMaxLayer& self(nvinfer1::ISoftMaxLayer* l)
{
    return static_cast<SoftMaxLayer&>(*l);
}
SoftMaxLayer const& self(nvinfer1::ISoftMaxLayer const* l)
{
    return static_cast<SoftMaxLayer const&>(*l);
}

} // namespace

namespace nvinfer1 {

ISoftMaxLayer* INetworkDefinition::addSoftMax(ITensor& input) noexcept
{
    return addLayer<SoftMaxLayer>(*this, LayerType::kSOFTMAX, "SoftMax", {&input},
                                  [](SoftMaxLayer&) -> Result<void> { return {}; });
}

void ISoftMaxLayer::setAxes(uint32_t axes) noexcept
{
    setField(self(this), self(this).axes, std::optional<uint32_t>(axes),
             [](std::optional<uint32_t> const& mask) { return checkOneAxis(*mask); });
}
uint32_t ISoftMaxLayer::getAxes() const noexcept
{
    SoftMaxLayer const& l = self(this);
    return l.axes.value_or(SoftMaxLayer::defaultAxes(l.inputs[0]->getDimensions().nbDims));
}

} // namespace nvinfer1
