// SPDX-License-Identifier: Apache-2.0
#include "api/network/setter.h"
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
        return ctx.lowerTo(ops::elementwise::def(), std::move(a), {ctx.in(0), ctx.in(1)});
    }
};

TW_OBJECT(nvinfer1::IElementWiseLayer, ElementWiseLayer)

} // namespace

namespace nvinfer1 {

IElementWiseLayer* INetworkDefinition::addElementWise(ITensor& input1, ITensor& input2,
                                                      ElementWiseOperation op) noexcept
{
    return addLayer<ElementWiseLayer>(*this, LayerType::kELEMENTWISE, "ElementWise", {&input1, &input2},
                                      [&](ElementWiseLayer& l) {
                                          l.operation = op;
                                          return checkAll("addElementWise", {checkEnum(op, "element-wise operation")});
                                      });
}

TW_PROPERTY(IElementWiseLayer, ElementWiseOperation, setOperation, getOperation, operation,
            checkEnum(value, "element-wise operation"))

} // namespace nvinfer1
