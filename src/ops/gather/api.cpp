// SPDX-License-Identifier: Apache-2.0
#include "api/network/setter.h"
#include "ops/gather/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct GatherLayer final : LayerObject<nvinfer1::IGatherLayer>
{
    int32_t axis = 0;
    nvinfer1::GatherMode mode = nvinfer1::GatherMode::kDEFAULT;
    int32_t elementWiseDims = 0;

    std::string checkElementWiseDims(int32_t n) const
    {
        if (network->implicitBatch && n != 0)
            return "the number of element-wise dimensions must be 0 with an implicit batch dimension";
        return checkRange(n, 0, nvinfer1::Dims::MAX_DIMS - 1, "the number of element-wise dimensions");
    }

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
        return ctx.lowerTo(ops::gather::def(), std::move(a), std::move(in));
    }
};

TW_OBJECT(nvinfer1::IGatherLayer, GatherLayer)

} // namespace

namespace nvinfer1 {

IGatherLayer* INetworkDefinition::addGather(ITensor& data, ITensor& indices, int32_t axis) noexcept
{
    return addLayer<GatherLayer>(*this, LayerType::kGATHER, "Gather", {&data, &indices}, [&](GatherLayer& l) {
        l.axis = axis;
        return Result<void>();
    });
}
IGatherLayer* INetworkDefinition::addGatherV2(ITensor& data, ITensor& indices, GatherMode mode) noexcept
{
    return addLayer<GatherLayer>(*this, LayerType::kGATHER, "Gather", {&data, &indices}, [&](GatherLayer& l) {
        l.mode = mode;
        return checkAll("addGatherV2", {checkEnum(mode, "gather mode")});
    });
}

TW_PROPERTY(IGatherLayer, int32_t, setGatherAxis, getGatherAxis, axis)
TW_PROPERTY(IGatherLayer, int32_t, setNbElementWiseDims, getNbElementWiseDims, elementWiseDims,
            self.checkElementWiseDims(value))
TW_PROPERTY(IGatherLayer, GatherMode, setMode, getMode, mode, checkEnum(value, "gather mode"))

} // namespace nvinfer1
