// SPDX-License-Identifier: Apache-2.0
#include "api/network/setter.h"
#include "ops/reduce/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct ReduceLayer final : LayerObject<nvinfer1::IReduceLayer>
{
    nvinfer1::ReduceOperation operation{};
    uint32_t axes = 0;
    bool keepDimensions = false;

    Result<void> lower(LowerContext& ctx) override
    {
        ops::reduce::Attrs a;
        a.kind = static_cast<ops::reduce::Kind>(operation);
        a.axes = int64_t(axes) << ctx.axisShift();
        a.keepDims = keepDimensions;
        return ctx.lowerTo(ops::reduce::def(), std::move(a), {ctx.in(0)});
    }
};

TW_OBJECT(nvinfer1::IReduceLayer, ReduceLayer)

} // namespace

namespace nvinfer1 {

IReduceLayer* INetworkDefinition::addReduce(ITensor& input, ReduceOperation operation, uint32_t reduceAxes,
                                            bool keepDimensions) noexcept
{
    return addLayer<ReduceLayer>(*this, LayerType::kREDUCE, "Reduce", {&input}, [&](ReduceLayer& l) {
        l.operation = operation;
        l.axes = reduceAxes;
        l.keepDimensions = keepDimensions;
        return checkAll("addReduce", {checkEnum(operation, "reduce operation")});
    });
}

TW_PROPERTY(IReduceLayer, ReduceOperation, setOperation, getOperation, operation, checkEnum(value, "reduce operation"))
TW_PROPERTY(IReduceLayer, uint32_t, setReduceAxes, getReduceAxes, axes)
TW_PROPERTY(IReduceLayer, bool, setKeepDimensions, getKeepDimensions, keepDimensions)

} // namespace nvinfer1
