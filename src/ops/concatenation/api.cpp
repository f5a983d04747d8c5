// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "api/network/setter.h"
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
        return ctx.lowerTo(ops::concatenation::def(), std::move(a), std::move(parts));
    }
};

TW_OBJECT(nvinfer1::IConcatenationLayer, ConcatenationLayer)

} // namespace

namespace nvinfer1 {

IConcatenationLayer* INetworkDefinition::addConcatenation(ITensor* const* inputs, int32_t nbInputs) noexcept
{
    std::vector<ITensor*> list;
    if (inputs && nbInputs > 0)
        list.assign(inputs, inputs + nbInputs);
    return addLayer<ConcatenationLayer>(
        *this, LayerType::kCONCATENATION, "Concatenation", list, [&](ConcatenationLayer&) {
            return checkAll("addConcatenation", {inputs ? "" : "the list of inputs is a null pointer",
                                                 checkPositive(nbInputs, "the number of inputs")});
        });
}

TW_FIELD_SETTER(IConcatenationLayer, int32_t, setAxis, axis,
                checkRange(value, 0, Dims::MAX_DIMS - 1, "axis", ", and below the inputs' rank"))
TW_GETTER(IConcatenationLayer, int32_t, getAxis,
          self.axis.value_or(self.defaultAxis(self.inputs[0]->getDimensions().nbDims)))

} // namespace nvinfer1
