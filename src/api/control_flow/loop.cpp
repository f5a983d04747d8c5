// SPDX-License-Identifier: Apache-2.0
#include "api/control_flow/layers.h"
#include "api/network/setter.h"
#include "ir/infer.h"

using namespace tw;
using namespace tw::api;
using namespace tw::api::control_flow;

namespace tw::api::control_flow {

using nvinfer1::LayerType;
using nvinfer1::TripLimit;

namespace {

Error badAxis(LayerState const& layer, int32_t axis, int rank, int most)
{
    return layer.error("axis {} is out of range for tensor '{}' of rank {}{}", axis, layer.inputs[0]->name, rank,
                       most < 0 ? "; a scalar cannot be iterated over" : fmt::format(" (allowed: 0..{})", most));
}

// How many iterations a loop makes, as far as shapes know.
ir::Dim tripsOf(LowerContext& ctx, Construct const& loop, std::string const& symbol)
{
    TripLimitLayer const* const count = limitOf(loop, TripLimit::kCOUNT);
    if (count && !limitOf(loop, TripLimit::kWHILE)) {
        ir::Value const* const v = loop.network->valueOf(*count->inputs[0]);
        auto const content = v ? ir::infoOf(*v).content : std::nullopt;
        if (content && content->size() == 1)
            return ir::max(content->front(), 0);
    }
    ctx.graph().symbols[symbol] = ir::Symbol{ir::Range{0, INT32_MAX}, false};
    return ir::Dim::symbol(symbol);
}

} // namespace

TripLimitLayer const* limitOf(Construct const& loop, TripLimit kind)
{
    for (TripLimitLayer* l : layersOf<TripLimitLayer>(loop, LayerType::kTRIP_LIMIT))
        if (l->limit == kind)
            return l;
    return nullptr;
}

Result<void> RecurrenceLayer::lower(LowerContext& ctx)
{
    ir::Value const& first = *ctx.in(0);
    ctx.output(0, ctx.graph().newValue(outputs[0]->name, first.type, first.shape));
    return {};
}

nvinfer1::DataType RecurrenceLayer::naturalOutputType(int) const
{
    ir::Value const* const v = network->valueOf(*outputs[0]);
    return v ? toPublic(v->type) : nvinfer1::DataType::kFLOAT;
}

Result<void> IteratorLayer::lower(LowerContext& ctx)
{
    ir::Value const& x = *ctx.in(0);
    if (axis >= x.rank())
        return badAxis(*this, axis, x.rank(), x.rank() - 1);
    ir::Shape slice = x.shape;
    slice.erase(slice.begin() + axis);
    ctx.output(0, ctx.graph().newValue(outputs[0]->name, x.type, std::move(slice)));
    return {};
}

Result<void> LoopOutputLayer::onSetInput(int index, TensorObject&)
{
    if (index == 1 && !stacks())
        return error("a kLAST_VALUE output takes no length (input 1); kCONCATENATE and kREVERSE do");
    return {};
}

Result<void> LoopOutputLayer::lower(LowerContext& ctx)
{
    ir::Value const& x = *ctx.in(0);
    ir::Shape shape = x.shape;
    if (!stacks()) {
        LayerState const* const from = inputs[0]->producer;
        if (!from || from->type != LayerType::kRECURRENCE || from->construct != construct)
            return error("kLAST_VALUE takes the output of a recurrence of its own " + construct->describe() +
                         ", and tensor '" + inputs[0]->name + "' is none");
    } else {
        if (axis > x.rank())
            return badAxis(*this, axis, x.rank(), x.rank());
        if (x.rank() >= nvinfer1::Dims::MAX_DIMS)
            return error("tensor '{}' has rank {}, and stacked it would have more than {} dimensions", inputs[0]->name,
                         x.rank(), int(nvinfer1::Dims::MAX_DIMS));
        std::optional<std::vector<ir::Dim>> content;
        if (ir::Value const* y = ctx.in(1)) {
            if (y->type != tw::DataType::kInt32 || y->rank() != 0)
                return error("the length (input 1, '" + inputs[1]->name + "') is " + nameOf(y->type) + str(y->shape) +
                             "; it must be a kINT32 scalar of rank 0");
            content = ir::infoOf(*y).content;
        }
        ir::Dim const size = content ? content->front() : tripsOf(ctx, *construct, fmt::format("$trips.{}", id));
        if (size.isConst() && size.value() < 0)
            return error("the length (input 1, '{}') is {}; it must not be negative", inputs[1]->name, size.value());
        shape.insert(shape.begin() + axis, size);
    }
    ctx.output(0, ctx.graph().newValue(outputs[0]->name, x.type, std::move(shape)));
    return {};
}

} // namespace tw::api::control_flow

namespace nvinfer1 {

namespace {

std::string checkAxis(int32_t axis)
{
    return checkRange(axis, 0, Dims::MAX_DIMS - 1, "axis");
}

} // namespace

ILoop* INetworkDefinition::addLoop() noexcept
{
    return guarded<ILoop*>(objectOf(*this), nullptr, [&](NetworkObject& n) -> Result<ILoop*> {
        if (n.implicitBatch)
            return invalidState("addLoop: loops need an explicit batch network");
        return addConstruct<LoopObject>(n, true);
    });
}

ILoop* ILoopBoundaryLayer::getLoop() const noexcept
{
    return static_cast<LoopObject*>(objectOf(*this).construct);
}

IRecurrenceLayer* ILoop::addRecurrence(ITensor& initialValue) noexcept
{
    return addBoundary<RecurrenceLayer>(objectOf(*this), LayerType::kRECURRENCE, "Recurrence", {&initialValue});
}

ITripLimitLayer* ILoop::addTripLimit(ITensor& tensor, TripLimit limit) noexcept
{
    return addBoundary<TripLimitLayer>(
        objectOf(*this), LayerType::kTRIP_LIMIT, "TripLimit", {&tensor}, [&](TripLimitLayer& l) -> Result<void> {
            TW_TRY(checkAll(l.construct->describe(), {checkEnum(limit, "trip limit")}));
            if (limitOf(*l.construct, limit))
                return invalidState("{} has a trip limit {} already; one of each kind is possible",
                                    l.construct->describe(), limit == TripLimit::kCOUNT ? "kCOUNT" : "kWHILE");
            l.limit = limit;
            return {};
        });
}

IIteratorLayer* ILoop::addIterator(ITensor& tensor, int32_t axis, bool reverse) noexcept
{
    return addBoundary<IteratorLayer>(objectOf(*this), LayerType::kITERATOR, "Iterator", {&tensor},
                                      [&](IteratorLayer& l) {
                                          l.axis = axis;
                                          l.reverse = reverse;
                                          return checkAll(l.construct->describe(), {checkAxis(axis)});
                                      });
}

ILoopOutputLayer* ILoop::addLoopOutput(ITensor& tensor, LoopOutput outputKind, int32_t axis) noexcept
{
    return addBoundary<LoopOutputLayer>(
        objectOf(*this), LayerType::kLOOP_OUTPUT, "LoopOutput", {&tensor}, [&](LoopOutputLayer& l) {
            l.kind = outputKind;
            l.axis = axis;
            return checkAll(l.construct->describe(), {checkEnum(outputKind, "loop output"), checkAxis(axis)});
        });
}

void ILoop::setName(char const* name) noexcept
{
    guardedVoid(objectOf(*this), [&](LoopObject& l) -> Result<void> {
        TW_ASSIGN(l.name, checkName(name, l.describe()));
        return {};
    });
}
TW_GETTER(ILoop, char const*, getName, self.name.c_str())

TW_GETTER(ILoopOutputLayer, LoopOutput, getLoopOutput, self.kind)
TW_PROPERTY(ILoopOutputLayer, int32_t, setAxis, getAxis, axis, checkAxis(value))
TW_GETTER(ITripLimitLayer, TripLimit, getTripLimit, self.limit)
TW_PROPERTY(IIteratorLayer, int32_t, setAxis, getAxis, axis, checkAxis(value))
TW_PROPERTY(IIteratorLayer, bool, setReverse, getReverse, reverse)

} // namespace nvinfer1
