// SPDX-License-Identifier: Apache-2.0
#include "api/network.h"
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
            return error("input '" + inputs[0]->name + "' has rank " + std::to_string(rank) + "; the limit is " +
                         std::to_string(kMaxUnaryRank));
        ops::unary::Attrs a(static_cast<ops::unary::Operation>(operation));
        TW_ASSIGN(ir::Node * node, ctx.add(ops::unary::def(), std::move(a), {ctx.in(0)}));
        ctx.output(0, node->outputs[0]);
        return {};
    }
};

Result<void> checkOperation(nvinfer1::UnaryOperation operation)
{
    int const number = static_cast<int>(operation);
    if (number < 0 || number >= nvinfer1::EnumMax<nvinfer1::UnaryOperation>())
        return invalidArgument("unary operation " + std::to_string(number) + " does not exist");
    return {};
}

} // namespace

namespace nvinfer1 {

IUnaryLayer* INetworkDefinition::addUnary(ITensor& input, UnaryOperation operation) noexcept
{
    return addLayer<UnaryLayer>(*this, LayerType::kUNARY, "Unary", {&input}, [&](UnaryLayer& l) -> Result<void> {
        TW_TRY(checkOperation(operation));
        l.operation = operation;
        return {};
    });
}

void IUnaryLayer::setOperation(UnaryOperation op) noexcept
{
    auto& l = static_cast<UnaryLayer&>(*this);
    guardedVoid(l.reporter(), [&]() -> Result<void> {
        TW_TRY(checkOperation(op));
        l.operation = op;
        l.changed();
        return {};
    });
}
UnaryOperation IUnaryLayer::getOperation() const noexcept
{
    return static_cast<UnaryLayer const&>(*this).operation;
}

} // namespace nvinfer1
