// SPDX-License-Identifier: Apache-2.0
#include "api/network.h"
#include "ops/elementwise/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct ElementWiseLayer final : LayerObject<nvinfer1::IElementWiseLayer>
{
    nvinfer1::ElementWiseOperation operation = nvinfer1::ElementWiseOperation::kSUM;

    Result<void> lower(LowerContext& ctx) override
    {
        ops::elementwise::Attrs a(static_cast<ops::elementwise::Operation>(operation));
        TW_ASSIGN(ir::Node * node, ctx.add(ops::elementwise::def(), std::move(a), {ctx.in(0), ctx.in(1)}));
        ctx.output(0, node->outputs[0]);
        return {};
    }
};

Result<void> checkOperation(nvinfer1::ElementWiseOperation operation)
{
    int const number = static_cast<int>(operation);
    if (number < 0 || number >= nvinfer1::EnumMax<nvinfer1::ElementWiseOperation>())
        return invalidArgument("element-wise operation " + std::to_string(number) + " does not exist");
    return {};
}

} // namespace

namespace nvinfer1 {

IElementWiseLayer* INetworkDefinition::addElementWise(ITensor& input1, ITensor& input2,
                                                      ElementWiseOperation op) noexcept
{
    return addLayer<ElementWiseLayer>(*this, LayerType::kELEMENTWISE, "ElementWise", {&input1, &input2},
                                      [&](ElementWiseLayer& l) -> Result<void> {
                                          TW_TRY(checkOperation(op));
                                          l.operation = op;
                                          return {};
                                      });
}

void IElementWiseLayer::setOperation(ElementWiseOperation op) noexcept
{
    auto& l = static_cast<ElementWiseLayer&>(*this);
    guardedVoid(l.reporter(), [&]() -> Result<void> {
        TW_TRY(checkOperation(op));
        l.operation = op;
        l.changed();
        return {};
    });
}
ElementWiseOperation IElementWiseLayer::getOperation() const noexcept
{
    return static_cast<ElementWiseLayer const&>(*this).operation;
}

} // namespace nvinfer1
