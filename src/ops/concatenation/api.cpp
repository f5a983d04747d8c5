// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "api/network.h"
#include "ops/concatenation/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct ConcatenationLayer final : LayerObject<nvinfer1::IConcatenationLayer>
{
    std::optional<int32_t> axis; // without the batch, as the user counts; unset: the third from the end

    static int32_t defaultAxis(int rank) { return std::max(0, rank - 3); }

    Result<void> lower(LowerContext& ctx) override
    {
        std::vector<ir::Value*> parts;
        for (int i = 0; i < ctx.inputCount(); ++i)
            parts.push_back(ctx.in(i));
        TW_TRY(ctx.shareBatch(parts));
        int const rank = parts[0]->rank() - ctx.axisShift();
        ops::concatenation::Attrs a(axis.value_or(defaultAxis(rank)) + ctx.axisShift());
        TW_ASSIGN(ir::Node * node, ctx.add(ops::concatenation::def(), std::move(a), std::move(parts)));
        ctx.output(0, node->outputs[0]);
        return {};
    }
};

} // namespace

namespace nvinfer1 {

IConcatenationLayer* INetworkDefinition::addConcatenation(ITensor* const* inputs, int32_t nbInputs) noexcept
{
    std::vector<ITensor*> list;
    if (inputs && nbInputs > 0)
        list.assign(inputs, inputs + nbInputs);
    return addLayer<ConcatenationLayer>(
        *this, LayerType::kCONCATENATION, "Concatenation", list, [&](ConcatenationLayer&) -> Result<void> {
            if (!inputs)
                return invalidArgument("addConcatenation: the list of inputs is a null pointer");
            if (nbInputs < 1)
                return invalidArgument("addConcatenation: the number of inputs " + std::to_string(nbInputs) +
                                       " must be at least 1");
            return {};
        });
}

void IConcatenationLayer::setAxis(int32_t axis) noexcept
{
    auto& l = static_cast<ConcatenationLayer&>(*this);
    guardedVoid(l.reporter(), [&]() -> Result<void> {
        if (axis < 0 || axis >= Dims::MAX_DIMS)
            return l.error("axis " + std::to_string(axis) + " is out of range (allowed: 0.." +
                           std::to_string(Dims::MAX_DIMS - 1) + ", and below the inputs' rank)");
        l.axis = axis;
        l.changed();
        return {};
    });
}
int32_t IConcatenationLayer::getAxis() const noexcept
{
    auto const& l = static_cast<ConcatenationLayer const&>(*this);
    return l.axis.value_or(ConcatenationLayer::defaultAxis(l.inputs[0]->getDimensions().nbDims));
}

} // namespace nvinfer1
