// SPDX-License-Identifier: Apache-2.0
#include "api/control_flow/layers.h"

namespace tw::api::control_flow {

using nvinfer1::LayerType;
using nvinfer1::TripLimit;

namespace {

Error incomplete(Construct const& c, std::string const& what)
{
    return invalidState("{} {}", c.describe(), what);
}

std::string describe(TensorObject const& t, ir::Value const& v)
{
    return "'" + t.name + "' (" + nameOf(v.type) + str(v.shape) + ")";
}

Result<void> checkScalar(LayerState const& l, DataType type, char const* what)
{
    ir::Value const* const v = l.network->valueOf(*l.inputs[0]);
    if (v && v->type == type && v->rank() == 0)
        return {};
    return l.error("{} {} must be a {} scalar of rank 0", what, v ? describe(*l.inputs[0], *v) : "",
                   type == DataType::kBool ? "kBOOL" : "kINT32");
}

Result<void> checkRecurrence(RecurrenceLayer const& l)
{
    if (l.inputs.size() < 2 || !l.inputs[1])
        return l.error("the next value (input 1) is not set; call setInput(1, ...)");
    ir::Value const *first = l.network->valueOf(*l.inputs[0]), *next = l.network->valueOf(*l.inputs[1]);
    if (!first || !next)
        return {};
    bool equal = first->type == next->type && first->rank() == next->rank();
    for (size_t d = 0; equal && d < first->shape.size(); ++d)
        equal = !first->shape[d].isConst() || !next->shape[d].isConst() || first->shape[d] == next->shape[d];
    if (!equal)
        return l.error("the initial value " + describe(*l.inputs[0], *first) + " and the next value " +
                       describe(*l.inputs[1], *next) + " must have the same type and dimensions");
    return {};
}

Result<void> checkLoop(Construct const& c)
{
    TripLimitLayer const *count = limitOf(c, TripLimit::kCOUNT), *condition = limitOf(c, TripLimit::kWHILE);
    if (!count && !condition)
        return incomplete(c, "has no trip limit; call ILoop::addTripLimit()");
    if (count)
        TW_TRY(checkScalar(*count, DataType::kInt32, "the count"));
    if (condition)
        TW_TRY(checkScalar(*condition, DataType::kBool, "the condition"));
    for (RecurrenceLayer* l : layersOf<RecurrenceLayer>(c, LayerType::kRECURRENCE))
        TW_TRY(checkRecurrence(*l));
    for (IteratorLayer* l : layersOf<IteratorLayer>(c, LayerType::kITERATOR))
        if (l->reverse && !count)
            return l->error("a reversed iterator needs a trip limit kCOUNT, and " + c.describe() + " has none");
    return {};
}

} // namespace

Result<void> checkComplete(Construct const& c)
{
    if (c.layers.empty())
        return {};
    if (c.isLoop)
        return checkLoop(c);
    LayerState const* const condition = static_cast<ConditionalObject const&>(c).condition();
    if (!condition)
        return incomplete(c, "has no condition; call IIfConditional::setCondition()");
    TW_TRY(checkScalar(*condition, DataType::kBool, "the condition"));
    if (layersOf<LayerState>(c, LayerType::kCONDITIONAL_OUTPUT).empty())
        return incomplete(c, "has no output; call IIfConditional::addOutput()");
    return {};
}

} // namespace tw::api::control_flow
