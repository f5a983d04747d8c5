// SPDX-License-Identifier: Apache-2.0
#include "api/control_flow/layers.h"

using namespace tw;
using namespace tw::api;
using namespace tw::api::control_flow;

namespace tw::api::control_flow {

LayerState const* ConditionalObject::condition() const
{
    auto const found = layersOf<LayerState>(*this, nvinfer1::LayerType::kCONDITION);
    return found.empty() ? nullptr : found.front();
}

Result<void> ConditionalInputLayer::lower(LowerContext& ctx)
{
    ir::Value const& x = *ctx.in(0);
    ir::Value* y = ctx.graph().newValue(outputs[0]->name, x.type, x.shape);
    y->content = x.content;
    ctx.output(0, y);
    return {};
}

Result<void> ConditionalOutputLayer::lower(LowerContext& ctx)
{
    ir::Value const &a = *ctx.in(0), &b = *ctx.in(1);
    bool equal = a.type == b.type && a.rank() == b.rank();
    ir::Shape shape;
    for (size_t d = 0; equal && d < a.shape.size(); ++d) {
        ir::Dim const &x = a.shape[d], &y = b.shape[d];
        if (x == y || !y.isConst()) {
            shape.push_back(x.isConst() && !(x == y) ? y : x); // a size that is not known yet stays so
            continue;
        }
        equal = !x.isConst();
        shape.push_back(x);
    }
    if (!equal)
        return error("output of " + construct->describe() + ": tensor '" + inputs[0]->name +
                     "' of the true branch is " + nameOf(a.type) + str(a.shape) + ", '" + inputs[1]->name +
                     "' of the false branch is " + nameOf(b.type) + str(b.shape) + "; type and shape must be equal");
    ctx.output(0, ctx.graph().newValue(outputs[0]->name, a.type, std::move(shape)));
    return {};
}

} // namespace tw::api::control_flow

namespace nvinfer1 {

IIfConditional* INetworkDefinition::addIfConditional() noexcept
{
    return guarded<IIfConditional*>(objectOf(*this), nullptr, [&](NetworkObject& n) -> Result<IIfConditional*> {
        if (n.implicitBatch)
            return invalidState("addIfConditional: conditionals need an explicit batch network");
        return addConstruct<ConditionalObject>(n, false);
    });
}

IIfConditional* IIfConditionalBoundaryLayer::getConditional() const noexcept
{
    return static_cast<ConditionalObject*>(objectOf(*this).construct);
}

IConditionLayer* IIfConditional::setCondition(ITensor& condition) noexcept
{
    return addBoundary<ConditionLayer>(
        objectOf(*this), LayerType::kCONDITION, "Condition", {&condition}, [](ConditionLayer& l) -> Result<void> {
            if (static_cast<ConditionalObject*>(l.construct)->condition())
                return invalidState("{} has a condition already; its layer's setInput(0, ...) takes another tensor",
                                    l.construct->describe());
            return {};
        });
}

IIfConditionalOutputLayer* IIfConditional::addOutput(ITensor& trueSubgraphOutput, ITensor& falseSubgraphOutput) noexcept
{
    return addBoundary<ConditionalOutputLayer>(objectOf(*this), LayerType::kCONDITIONAL_OUTPUT, "ConditionalOutput",
                                               {&trueSubgraphOutput, &falseSubgraphOutput});
}

IIfConditionalInputLayer* IIfConditional::addInput(ITensor& input) noexcept
{
    return addBoundary<ConditionalInputLayer>(objectOf(*this), LayerType::kCONDITIONAL_INPUT, "ConditionalInput",
                                              {&input});
}

void IIfConditional::setName(char const* name) noexcept
{
    guardedVoid(objectOf(*this), [&](ConditionalObject& c) -> Result<void> {
        TW_ASSIGN(c.name, checkName(name, c.describe()));
        return {};
    });
}
TW_GETTER(IIfConditional, char const*, getName, self.name.c_str())

} // namespace nvinfer1
