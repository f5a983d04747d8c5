// SPDX-License-Identifier: Apache-2.0
#include "api/network/setter.h"
#include "ops/topk/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct TopKLayer final : LayerObject<nvinfer1::ITopKLayer>
{
    nvinfer1::TopKOperation operation{};
    int32_t k = 1;
    uint32_t axes = 1;

    int outputCount() const override { return 2; }
    nvinfer1::DataType naturalOutputType(int index) const override
    {
        return index == 1 ? nvinfer1::DataType::kINT32 : LayerState::naturalOutputType(index);
    }
    Result<void> lower(LowerContext& ctx) override
    {
        ops::topk::Attrs a;
        a.kind = static_cast<ops::topk::Kind>(operation);
        a.k = k;
        a.axis = axisOfMask(axes) + ctx.axisShift();
        return ctx.lowerTo(ops::topk::def(), std::move(a), {ctx.in(0)});
    }
};

std::string checkTopK(int32_t k)
{
    return checkRange(k, 1, ops::topk::kMaxK, "k");
}

TW_OBJECT(nvinfer1::ITopKLayer, TopKLayer)

} // namespace

namespace nvinfer1 {

ITopKLayer* INetworkDefinition::addTopK(ITensor& input, TopKOperation op, int32_t k, uint32_t reduceAxes) noexcept
{
    return addLayer<TopKLayer>(*this, LayerType::kTOPK, "TopK", {&input}, [&](TopKLayer& l) {
        l.operation = op;
        l.k = k;
        l.axes = reduceAxes;
        return checkAll("addTopK", {checkEnum(op, "top-k operation"), checkTopK(k), checkOneAxis(reduceAxes)});
    });
}

TW_PROPERTY(ITopKLayer, TopKOperation, setOperation, getOperation, operation, checkEnum(value, "top-k operation"))
TW_PROPERTY(ITopKLayer, int32_t, setK, getK, k, checkTopK(value))
TW_PROPERTY(ITopKLayer, uint32_t, setReduceAxes, getReduceAxes, axes, checkOneAxis(value))

} // namespace nvinfer1
