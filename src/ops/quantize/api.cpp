// SPDX-License-Identifier: Apache-2.0
#include "ops/quantize/api.h"

#include "ops/quantize/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct QuantizeLayer final : QuantizationLayer<nvinfer1::IQuantizeLayer>
{
    nvinfer1::DataType naturalOutputType(int) const override { return nvinfer1::DataType::kINT8; }
    Result<void> lower(LowerContext& ctx) override
    {
        if (outputTypes[0] && *outputTypes[0] != nvinfer1::DataType::kINT8)
            return error(std::string("its output is i8 and cannot be ") + nameOf(toCore(*outputTypes[0])));
        TW_ASSIGN(Scale const scale, scaleOf(ctx));
        TW_ASSIGN(ir::Node * node,
                  ctx.add(ops::quantize::def(), ops::quantize::Attrs(scale.axis), {ctx.in(0), scale.value}));
        ctx.output(0, node->outputs[0]);
        return {};
    }
};

} // namespace

namespace nvinfer1 {

IQuantizeLayer* INetworkDefinition::addQuantize(ITensor& input, ITensor& scale) noexcept
{
    return addLayer<QuantizeLayer>(*this, LayerType::kQUANTIZE, "Quantize", {&input, &scale},
                                   [](QuantizeLayer&) -> Result<void> { return {}; });
}
void IQuantizeLayer::setAxis(int32_t axis) noexcept
{
    static_cast<QuantizeLayer&>(*this).setAxis(axis);
}
int32_t IQuantizeLayer::getAxis() const noexcept
{
    return static_cast<QuantizeLayer const&>(*this).axis;
}

} // namespace nvinfer1
