// SPDX-License-Identifier: Apache-2.0
#include "api/network/setter.h"
#include "ops/unary/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct UnaryLayer final : LayerObject<nvinfer1::IUnaryLayer>
{
    nvinfer1::UnaryOperation operation = nvinfer1::UnaryOperation::kEXP;

    Result<void> lower(LowerContext& ctx) override
    {
        constexpr int kMaxUnaryRank = 7; // the API's limit
        if (int const rank = ctx.in(0)->rank() - ctx.axisShift(); rank > kMaxUnaryRank)
            return error("input '{}' has rank {}; the limit is {}", inputs[0]->name, rank, kMaxUnaryRank);
        ops::unary::Attrs a(static_cast<ops::unary::Operation>(operation));
        return ctx.lowerTo(ops::unary::def(), std::move(a), {ctx.in(0)});
    }
};

TW_OBJECT(nvinfer1::IUnaryLayer, UnaryLayer)

} // namespace

namespace nvinfer1 {

IUnaryLayer* INetworkDefinition::addUnary(ITensor& input, UnaryOperation operation) noexcept
{
    return addLayer<UnaryLayer>(*this, LayerType::kUNARY, "Unary", {&input}, [&](UnaryLayer& l) {
        l.operation = operation;
        return checkAll("addUnary", {checkEnum(operation, "unary operation")});
    });
}

TW_PROPERTY(IUnaryLayer, UnaryOperation, setOperation, getOperation, operation, checkEnum(value, "unary operation"))

} // namespace nvinfer1
