// SPDX-License-Identifier: Apache-2.0
#include "api/setter.h"
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
        TW_ASSIGN(ir::Node * node, ctx.add(ops::topk::def(), std::move(a), {ctx.in(0)}));
        ctx.output(0, node->outputs[0]);
        ctx.output(1, node->outputs[1]);
        return {};
    }
};

TopKLayer& self(nvinfer1::ITopKLayer* l)
{
    return static_cast<TopKLayer&>(*l);
}
TopKLayer const& self(nvinfer1::ITopKLayer const* l)
{
    return static_cast<TopKLayer const&>(*l);
}
std::string checkTopKOperation(nvinfer1::TopKOperation op)
{
    return checkEnum(op, "top-k operation");
}
std::string checkTopK(int32_t k)
{
    if (k >= 1 && k <= ops::topk::kMaxK)
        return {};
    return "k " + std::to_string(k) + " is out of range (allowed: 1.." + std::to_string(ops::topk::kMaxK) + ")";
}

} // namespace

namespace nvinfer1 {

ITopKLayer* INetworkDefinition::addTopK(ITensor& input, TopKOperation op, int32_t k, uint32_t reduceAxes) noexcept
{
    return addLayer<TopKLayer>(*this, LayerType::kTOPK, "TopK", {&input}, [&](TopKLayer& l) -> Result<void> {
        for (std::string const& why : {checkTopKOperation(op), checkTopK(k), checkOneAxis(reduceAxes)})
            if (!why.empty())
                return invalidArgument("addTopK: " + why);
        l.operation = op;
        l.k = k;
        l.axes = reduceAxes;
        return {};
    });
}

void ITopKLayer::setOperation(TopKOperation op) noexcept
{
    setField(self(this), self(this).operation, op, checkTopKOperation);
}
TopKOperation ITopKLayer::getOperation() const noexcept
{
    return self(this).operation;
}
void ITopKLayer::setK(int32_t k) noexcept
{
    setField(self(this), self(this).k, k, checkTopK);
}
int32_t ITopKLayer::getK() const noexcept
{
    return self(this).k;
}
void ITopKLayer::setReduceAxes(uint32_t reduceAxes) noexcept
{
    setField(self(this), self(this).axes, reduceAxes, checkOneAxis);
}
uint32_t ITopKLayer::getReduceAxes() const noexcept
{
    return self(this).axes;
}

} // namespace nvinfer1
