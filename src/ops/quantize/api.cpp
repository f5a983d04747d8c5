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
        return ctx.lowerTo(ops::quantize::def(), ops::quantize::Attrs(scale.axis), {ctx.in(0), scale.value});
    }
};

TW_OBJECT(nvinfer1::IQuantizeLayer, QuantizeLayer)

} // namespace

namespace nvinfer1 {

IQuantizeLayer* INetworkDefinition::addQuantize(ITensor& input, ITensor& scale) noexcept
{
    return addLayer<QuantizeLayer>(*this, LayerType::kQUANTIZE, "Quantize", {&input, &scale});
}

TW_PROPERTY(IQuantizeLayer, int32_t, setAxis, getAxis, axis, self.checkAxis(value))

} // namespace nvinfer1
