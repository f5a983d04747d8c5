// SPDX-License-Identifier: Apache-2.0
#include "api/control_flow/layers.h"
#include "api/setter.h"
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
    return layer.error(
        "axis " + std::to_string(axis) + " is out of range for tensor '" + layer.inputs[0]->name + "' of rank " +
        std::to_string(rank) +
        (most < 0 ? "; a scalar cannot be iterated over" : " (allowed: 0.." + std::to_string(most) + ")"));
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
            return error("tensor '" + inputs[0]->name + "' has rank " + std::to_string(x.rank()) +
                         ", and stacked it would have more than " + std::to_string(int(nvinfer1::Dims::MAX_DIMS)) +
                         " dimensions");
        std::optional<std::vector<ir::Dim>> content;
        if (ir::Value const* y = ctx.in(1)) {
            if (y->type != tw::DataType::kInt32 || y->rank() != 0)
                return error("the length (input 1, '" + inputs[1]->name + "') is " + nameOf(y->type) + str(y->shape) +
                             "; it must be a kINT32 scalar of rank 0");
            content = ir::infoOf(*y).content;
        }
        ir::Dim const size = content ? content->front() : tripsOf(ctx, *construct, "$trips." + std::to_string(id));
        if (size.isConst() && size.value() < 0)
            return error("the length (input 1, '" + inputs[1]->name + "') is " + std::to_string(size.value()) +
                         "; it must not be negative");
        shape.insert(shape.begin() + axis, size);
    }
    ctx.output(0, ctx.graph().newValue(outputs[0]->name, x.type, std::move(shape)));
    return {};
}

} // namespace tw::api::control_flow

namespace nvinfer1 {

namespace {

LoopObject& self(ILoop* l)
{
    return static_cast<LoopObject&>(*l);
}
std::string checkAxis(int32_t axis)
{
    return axis >= 0 && axis < Dims::MAX_DIMS ? ""
                                              : "axis " + std::to_string(axis) + " is out of range (allowed: 0..7)";
}
Result<void> checkNewAxis(LayerState const& layer, int32_t axis)
{
    if (std::string why = checkAxis(axis); !why.empty())
        return invalidArgument(layer.construct->describe() + ": " + why);
    return {};
}

} // namespace

ILoop* INetworkDefinition::addLoop() noexcept
{
    NetworkObject& n = objectOf(*this);
    return guarded<ILoop*>(n.reporter, nullptr, [&]() -> Result<ILoop*> {
        if (n.implicitBatch)
            return invalidState("addLoop: loops need an explicit batch network");
        return addConstruct<LoopObject>(n, true);
    });
}

ILoop* ILoopBoundaryLayer::getLoop() const noexcept
{
    return static_cast<LoopObject*>(stateOf(*this).construct);
}

IRecurrenceLayer* ILoop::addRecurrence(ITensor& initialValue) noexcept
{
    return addBoundary<RecurrenceLayer>(self(this), LayerType::kRECURRENCE, "Recurrence", {&initialValue},
                                        [](RecurrenceLayer&) { return Result<void>(); });
}

ITripLimitLayer* ILoop::addTripLimit(ITensor& tensor, TripLimit limit) noexcept
{
    return addBoundary<TripLimitLayer>(self(this), LayerType::kTRIP_LIMIT, "TripLimit", {&tensor},
                                       [&](TripLimitLayer& l) -> Result<void> {
                                           if (std::string why = checkEnum(limit, "trip limit"); !why.empty())
                                               return invalidArgument(l.construct->describe() + ": " + why);
                                           if (limitOf(*l.construct, limit))
                                               return invalidState(l.construct->describe() + " has a trip limit " +
                                                                   (limit == TripLimit::kCOUNT ? "kCOUNT" : "kWHILE") +
                                                                   " already; one of each kind is possible");
                                           l.limit = limit;
                                           return {};
                                       });
}

IIteratorLayer* ILoop::addIterator(ITensor& tensor, int32_t axis, bool reverse) noexcept
{
    return addBoundary<IteratorLayer>(self(this), LayerType::kITERATOR, "Iterator", {&tensor},
                                      [&](IteratorLayer& l) -> Result<void> {
                                          TW_TRY(checkNewAxis(l, axis));
                                          l.axis = axis;
                                          l.reverse = reverse;
                                          return {};
                                      });
}

ILoopOutputLayer* ILoop::addLoopOutput(ITensor& tensor, LoopOutput outputKind, int32_t axis) noexcept
{
    return addBoundary<LoopOutputLayer>(self(this), LayerType::kLOOP_OUTPUT, "LoopOutput", {&tensor},
                                        [&](LoopOutputLayer& l) -> Result<void> {
                                            if (std::string why = checkEnum(outputKind, "loop output"); !why.empty())
                                                return invalidArgument(l.construct->describe() + ": " + why);
                                            TW_TRY(checkNewAxis(l, axis));
                                            l.kind = outputKind;
                                            l.axis = axis;
                                            return {};
                                        });
}

void ILoop::setName(char const* name) noexcept
{
    LoopObject& l = self(this);
    guardedVoid(l.network->reporter, [&]() -> Result<void> {
        TW_ASSIGN(l.name, checkName(name, l.describe()));
        return {};
    });
}
char const* ILoop::getName() const noexcept
{
    return static_cast<LoopObject const&>(*this).name.c_str();
}

LoopOutput ILoopOutputLayer::getLoopOutput() const noexcept
{
    return static_cast<LoopOutputLayer const&>(*this).kind;
}
void ILoopOutputLayer::setAxis(int32_t axis) noexcept
{
    auto& l = static_cast<LoopOutputLayer&>(*this);
    setField(l, l.axis, axis, checkAxis);
}
int32_t ILoopOutputLayer::getAxis() const noexcept
{
    return static_cast<LoopOutputLayer const&>(*this).axis;
}

TripLimit ITripLimitLayer::getTripLimit() const noexcept
{
    return static_cast<TripLimitLayer const&>(*this).limit;
}

void IIteratorLayer::setAxis(int32_t axis) noexcept
{
    auto& l = static_cast<IteratorLayer&>(*this);
    setField(l, l.axis, axis, checkAxis);
}
int32_t IIteratorLayer::getAxis() const noexcept
{
    return static_cast<IteratorLayer const&>(*this).axis;
}
void IIteratorLayer::setReverse(bool reverse) noexcept
{
    auto& l = static_cast<IteratorLayer&>(*this);
    setField(l, l.reverse, reverse);
}
bool IIteratorLayer::getReverse() const noexcept
{
    return static_cast<IteratorLayer const&>(*this).reverse;
}

} // namespace nvinfer1
