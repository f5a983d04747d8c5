// SPDX-License-Identifier: Apache-2.0
#include "ops/quantize/api.h"

#include "ops/dequantize/op.h"

using namespace tw;
using namespace tw::api;

namespace {

// FP16 where setOutputType() asks for it.
struct DequantizeLayer final : QuantizationLayer<nvinfer1::IDequantizeLayer>
{
    Result<void> lower(LowerContext& ctx) override
    {
        DataType const type = outputTypes[0] ? toCore(*outputTypes[0]) : DataType::kFloat;
        if (!isFloating(type))
            return error(std::string("its output is f32 or f16 and cannot be ") + nameOf(type));
        TW_ASSIGN(Scale const scale, scaleOf(ctx));
        return ctx.lowerTo(ops::dequantize::def(), ops::dequantize::Attrs(scale.axis, type), {ctx.in(0), scale.value});
    }
};

TW_OBJECT(nvinfer1::IDequantizeLayer, DequantizeLayer)

} // namespace

namespace nvinfer1 {

IDequantizeLayer* INetworkDefinition::addDequantize(ITensor& input, ITensor& scale) noexcept
{
    return addLayer<DequantizeLayer>(*this, LayerType::kDEQUANTIZE, "Dequantize", {&input, &scale});
}

TW_PROPERTY(IDequantizeLayer, int32_t, setAxis, getAxis, axis, self.checkAxis(value))

} // namespace nvinfer1
