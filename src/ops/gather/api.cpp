// SPDX-License-Identifier: Apache-2.0
#include "api/network.h"
#include "ops/gather/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct GatherLayer final : LayerObject<nvinfer1::IGatherLayer>
{
    int32_t axis = 0;
    nvinfer1::GatherMode mode = nvinfer1::GatherMode::kDEFAULT;
    int32_t elementWiseDims = 0;

    Result<void> lower(LowerContext& ctx) override
    {
        ops::gather::Attrs a;
        a.mode = static_cast<ops::gather::Mode>(mode);
        // Both inputs have the implicit batch: each element of it gathers with its own indices.
        bool const perBatch = ctx.implicitBatch() && mode != nvinfer1::GatherMode::kELEMENT;
        a.axis = int64_t(axis) + ctx.axisShift();
        a.elementWiseDims = int64_t(elementWiseDims) + (perBatch ? 1 : 0);
        std::vector<ir::Value*> in{ctx.in(0), ctx.in(1)};
        TW_TRY(ctx.shareBatch(in));
        TW_ASSIGN(ir::Node * node, ctx.add(ops::gather::def(), std::move(a), std::move(in)));
        ctx.output(0, node->outputs[0]);
        return {};
    }
};

Result<void> checkMode(nvinfer1::GatherMode mode)
{
    int const number = static_cast<int>(mode);
    if (number < 0 || number >= nvinfer1::EnumMax<nvinfer1::GatherMode>())
        return invalidArgument("gather mode " + std::to_string(number) + " does not exist");
    return {};
}

} // namespace

namespace nvinfer1 {

IGatherLayer* INetworkDefinition::addGather(ITensor& data, ITensor& indices, int32_t axis) noexcept
{
    return addLayer<GatherLayer>(*this, LayerType::kGATHER, "Gather", {&data, &indices},
                                 [&](GatherLayer& l) -> Result<void> {
                                     l.axis = axis;
                                     return {};
                                 });
}
IGatherLayer* INetworkDefinition::addGatherV2(ITensor& data, ITensor& indices, GatherMode mode) noexcept
{
    return addLayer<GatherLayer>(*this, LayerType::kGATHER, "Gather", {&data, &indices},
                                 [&](GatherLayer& l) -> Result<void> {
                                     TW_TRY(checkMode(mode));
                                     l.mode = mode;
                                     return {};
                                 });
}

void IGatherLayer::setGatherAxis(int32_t axis) noexcept
{
    auto& l = static_cast<GatherLayer&>(*this);
    guardedVoid(l.reporter(), [&]() -> Result<void> {
        l.axis = axis;
        l.changed();
        return {};
    });
}
int32_t IGatherLayer::getGatherAxis() const noexcept
{
    return static_cast<GatherLayer const&>(*this).axis;
}
void IGatherLayer::setNbElementWiseDims(int32_t elementWiseDims) noexcept
{
    auto& l = static_cast<GatherLayer&>(*this);
    guardedVoid(l.reporter(), [&]() -> Result<void> {
        if (elementWiseDims < 0 || elementWiseDims >= Dims::MAX_DIMS)
            return l.error("the number of element-wise dimensions " + std::to_string(elementWiseDims) +
                           " must be in 0.." + std::to_string(int(Dims::MAX_DIMS) - 1));
        if (l.network->implicitBatch && elementWiseDims != 0)
            return l.error("the number of element-wise dimensions must be 0 with an implicit batch dimension");
        l.elementWiseDims = elementWiseDims;
        l.changed();
        return {};
    });
}
int32_t IGatherLayer::getNbElementWiseDims() const noexcept
{
    return static_cast<GatherLayer const&>(*this).elementWiseDims;
}
void IGatherLayer::setMode(GatherMode mode) noexcept
{
    auto& l = static_cast<GatherLayer&>(*this);
    guardedVoid(l.reporter(), [&]() -> Result<void> {
        TW_TRY(checkMode(mode));
        l.mode = mode;
        l.changed();
        return {};
    });
}
GatherMode IGatherLayer::getMode() const noexcept
{
    return static_cast<GatherLayer const&>(*this).mode;
}

} // namespace nvinfer1
