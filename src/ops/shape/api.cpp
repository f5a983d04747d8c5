// SPDX-License-Identifier: Apache-2.0
#include "api/network/network.h"
#include "ops/shape/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct ShapeLayer final : LayerObject<nvinfer1::IShapeLayer>
{
    nvinfer1::DataType naturalOutputType(int) const override { return nvinfer1::DataType::kINT32; }
    Result<void> lower(LowerContext& ctx) override
    {
        return ctx.lowerTo(ops::shape::def(), ir::NoAttrs(), {ctx.in(0)});
    }
};

} // namespace

namespace nvinfer1 {

IShapeLayer* INetworkDefinition::addShape(ITensor& input) noexcept
{
    return addLayer<ShapeLayer>(*this, LayerType::kSHAPE, "Shape", {&input}, [&](ShapeLayer& l) -> Result<void> {
        if (l.network->implicitBatch)
            return invalidArgument("addShape: networks with an implicit batch dimension have no shape layer");
        return {};
    });
}

} // namespace nvinfer1
