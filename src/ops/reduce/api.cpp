// SPDX-License-Identifier: Apache-2.0
#include "api/setter.h"
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
        TW_ASSIGN(ir::Node * node, ctx.add(ops::reduce::def(), std::move(a), {ctx.in(0)}));
        ctx.output(0, node->outputs[0]);
        return {};
    }
};

ReduceLayer& self(nvinfer1::IReduceLayer* l)
{
    return static_cast<ReduceLayer&>(*l);
}
ReduceLayer const& self(nvinfer1::IReduceLayer const* l)
{
    return static_cast<ReduceLayer const&>(*l);
}
std::string checkReduceOperation(nvinfer1::ReduceOperation op)
{
    return checkEnum(op, "reduce operation");
}

} // namespace

namespace nvinfer1 {

IReduceLayer* INetworkDefinition::addReduce(ITensor& input, ReduceOperation operation, uint32_t reduceAxes,
                                            bool keepDimensions) noexcept
{
    return addLayer<ReduceLayer>(*this, LayerType::kREDUCE, "Reduce", {&input}, [&](ReduceLayer& l) -> Result<void> {
        if (std::string why = checkReduceOperation(operation); !why.empty())
            return invalidArgument("addReduce: " + why);
        l.operation = operation;
        l.axes = reduceAxes;
        l.keepDimensions = keepDimensions;
        return {};
    });
}

void IReduceLayer::setOperation(ReduceOperation op) noexcept
{
    setField(self(this), self(this).operation, op, checkReduceOperation);
}
ReduceOperation IReduceLayer::getOperation() const noexcept
{
    return self(this).operation;
}
void IReduceLayer::setReduceAxes(uint32_t reduceAxes) noexcept
{
    setField(self(this), self(this).axes, reduceAxes);
}
uint32_t IReduceLayer::getReduceAxes() const noexcept
{
    return self(this).axes;
}
void IReduceLayer::setKeepDimensions(bool keepDimensions) noexcept
{
    setField(self(this), self(this).keepDimensions, keepDimensions);
}
bool IReduceLayer::getKeepDimensions() const noexcept
{
    return self(this).keepDimensions;
}

} // namespace nvinfer1
