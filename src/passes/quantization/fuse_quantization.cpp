// SPDX-License-Identifier: Apache-2.0
// Makes nodes of sums compute with integers where both their factors are dequantized ones.
//   y = conv(dequantize(x, s), dequantize(w, t), b; f)       ->  y = conv(x, w, b; f) with scale s t
//   the same behind quantize(y, u) for all readers of y      ->  i8: scale s t / u, bias b / u, or f and then 1 / u
//   residual dequantize(r, v)                                ->  r with its scale v, or v / u
//   f(dequantize(quantize(conv(...), p), p) + dequantize(r, v))  ->  conv(..., r; f) that rounds to steps of p in between
//   the same behind quantize(y[:, a .. b], u), ... for all channels of y (merge_convolutions)  ->  u for each channel
//   quantize(pool(dequantize(x, s)), s)                      ->  pool(x), averages
// Convolutions, transposed or not, matrix products and fully connected layers; w may have a scale for each output channel
// (column). See docs/adr/0012-int8-in-the-graph.md. A sum with a residual in floats has a result in floats, as the guide
// says (the sum's first input decides). What is left of constants behind dequantize becomes a constant. Expects
// Form::kFused, so that the node has its epilogue; stands after quantize_ranges and move_quantization. Leaves alone: norms
// and gates, groups of a transposed convolution whose channels have scales of their own, sums that 32 bits may not hold.
#include <algorithm>

#include "ops/activation/op.h"
#include "ops/concatenation/op.h"
#include "ops/convolution/op.h"
#include "ops/dequantize/op.h"
#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/pooling/op.h"
#include "ops/quantize/op.h"
#include "ops/slice/op.h"
#include "passes/list.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "passes/strided_view.h"
#include "recipe/recipes.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::Epilogue;
using Operation = ops::elementwise::Operation;

// Channels of the output that may have scales of their own, and where the weights have them.
struct Channels
{
    int64_t count = 1;
    int axis = -1;
    int ofOutput = -1; // its dimension; -1: unknown
};

Channels channelsOf(ir::Node const& n)
{
    ir::Value const &w = *n.inputs[1], &y = *n.outputs[0];
    int const axis = channelAxis(n);
    if (n.op == &ops::convolution::def()) {
        int const ofOutput = y.rank() - (w.rank() - 2) - 1;
        return {y.shape[size_t(ofOutput)].value(), axis, ofOutput};
    }
    if (axis < 0 || !w.shape[size_t(axis)].isConst())
        return {};
    bool const connected = n.attrsAs<ops::matrix_multiply::Attrs>().connected;
    return {w.shape[size_t(axis)].value(), axis, connected ? -1 : y.rank() - 1};
}

// Whether a positive factor goes through the activation.
bool isHomogeneous(ops::FusedActivation const& f)
{
    using ops::activation::Kind;
    return !f.any() || Kind(f.kind) == Kind::kRelu || Kind(f.kind) == Kind::kLeakyRelu;
}

ir::Value* inputOf(ir::Node const& n, int i)
{
    return ops::hasInput(n, i) ? n.inputs[size_t(i)] : nullptr;
}

class Fusing
{
public:
    Fusing(ir::Graph& g, PassContext const& ctx) : g_(g), ctx_(ctx) {}

    Result<bool> run()
    {
        if (std::ranges::any_of(g_.nodes, [](auto const& n) { return isQuantize(n.get()) || isDequantize(n.get()); })) {
            TW_ASSIGN(changed_, moveQuantization(g_, ctx_)); // the fusions have brought others together
            if (changed_)
                TW_TRY(removeIdentities(g_, ctx_)); // shuffles, too
        }
        std::vector<ir::Node*> nodes; // each goes when it is replaced, and no other one of them
        for (auto const& n : g_.nodes)
            if (n->outputs.size() == 1 && !isQuantized(n->outputs[0]->type) &&
                (maySumIntegers(*n) || n->op == &ops::pooling::def()))
                nodes.push_back(n.get());
        for (ir::Node* n : nodes)
            TW_TRY(maySumIntegers(*n) ? fuseSum(*n) : fusePooling(*n));
        TW_TRY(foldConstants());
        if (changed_)
            g_.eraseUnusedValues();
        return changed_;
    }

private:
    // The quantize nodes that read y, all of one scale; empty when anybody else reads it.
    std::vector<ir::Node*> quantizersOf(ir::Value const& y)
    {
        if (g_.isOutput(&y))
            return {};
        std::vector<ir::Node*> const readers = readersOf(g_, &y);
        for (ir::Node const* r : readers)
            if (!isQuantize(r) || !isPerTensor(*r) || !r->inputs[1]->isConstant() ||
                !haveSameScale(*r->inputs[1], *readers[0]->inputs[1]))
                return {};
        return readers;
    }

    // A constant computed by `compute`.
    Result<ir::Value*> constant(std::string const& name, Extents const& dims,
                                std::function<Result<ir::Value*>(recipe::Computation&)> const& compute)
    {
        recipe::Computation c(ctx_.recipes);
        TW_ASSIGN(ir::Value * result, compute(c));
        TW_ASSIGN(BlobPtr data, c.finish(result));
        auto made = std::make_shared<ir::Constant>();
        made->data = std::move(data);
        return g_.addConstant(name, DataType::kFloat, dims, std::move(made));
    }
    static Result<ir::Value*> apply(recipe::Computation& c, Operation op, ir::Value* a, ir::Value* b)
    {
        return c.add(ops::elementwise::def(), ops::elementwise::Attrs(op), {a, b});
    }
    // a, by `unit` where there is one.
    static Result<ir::Value*> inUnits(recipe::Computation& c, ir::Value* a, ir::Value const* unit)
    {
        return unit ? apply(c, Operation::kDiv, a, c.take(*unit, {ir::extentsOf(unit->shape).volume()}))
                    : Result<ir::Value*>(a);
    }

    // The slices that part y, which nobody else reads, along an axis and are each quantized by one scale; in order. Empty:
    // y is not read so.
    std::vector<ir::Node*> partsOf(ir::Value const& y, int axis)
    {
        if (axis < 0 || g_.isOutput(&y) || !ir::isStatic(y.shape))
            return {};
        Extents const dims = ir::extentsOf(y.shape);
        std::vector<ir::Node*> parts = readersOf(g_, &y);
        auto begin = [&](ir::Node const* n) { return n->attrsAs<ops::slice::Attrs>().start[size_t(axis)]; };
        for (ir::Node const* n : parts) {
            if (n->op != &ops::slice::def() || n->inputs.size() != 1)
                return {};
            std::vector<ir::Node*> const quantizers = quantizersOf(*n->outputs[0]);
            auto isKept = [&](ir::Node const* q) { return g_.isOutput(q->outputs[0]); };
            if (quantizers.empty() || std::ranges::any_of(quantizers, isKept))
                return {};
        }
        std::ranges::sort(parts, [&](auto* a, auto* b) { return begin(a) < begin(b); });
        int64_t end = 0;
        for (ir::Node const* n : parts) {
            auto const s = selectionOf(*n);
            if (!s || s->axis != axis || s->step != 1 || s->start != end)
                return {};
            end += s->size;
        }
        return end == dims[axis] ? parts : std::vector<ir::Node*>();
    }
    // Quantizes y by a scale for each channel, and parts it then.
    Result<ir::Node*> quantizeTogether(ir::Value& y, int axis, std::vector<ir::Node*> const& parts)
    {
        auto quantizers =
            mapped<std::vector<ir::Node*>>(parts, [&](ir::Node const* n) { return quantizersOf(*n->outputs[0]); });
        int64_t const channels = y.shape[size_t(axis)].value();
        TW_ASSIGN(ir::Value * steps, constant(y.name + ".steps", {channels}, [&](auto& c) -> Result<ir::Value*> {
                      std::vector<ir::Value*> all;
                      for (size_t i = 0; i < parts.size(); ++i) {
                          Extents const count{parts[i]->outputs[0]->shape[size_t(axis)].value()};
                          TW_ASSIGN(ir::Value * one, apply(c, Operation::kProd, c.literal(DataType::kFloat, count, 1),
                                                           c.take(*quantizers[i][0]->inputs[1], {1})));
                          all.push_back(one);
                      }
                      return c.add(ops::concatenation::def(), ops::concatenation::Attrs(0), std::move(all));
                  }));
        TW_ASSIGN(ir::Node * together,
                  g_.addNode(ops::quantize::def(), std::make_unique<ops::quantize::Attrs>(axis), {&y, steps},
                             quantizers[0][0]->name, {}, g_.positionOf(y.producer) + 1));
        takePlaceOf(*together, *quantizers[0][0]);
        together->outputs[0]->name = y.name + ".integers";
        for (size_t i = 0; i < parts.size(); ++i) {
            ir::Value* const part = parts[i]->outputs[0];
            parts[i]->inputs[0] = together->outputs[0];
            TW_TRY(g_.inferNode(*parts[i]));
            part->name += ".integers";
            for (ir::Node* q : quantizers[i]) {
                if (q != quantizers[0][0])
                    together->layers.insert(together->layers.end(), q->layers.begin(), q->layers.end());
                g_.replaceAllUses(q->outputs[0], part);
                g_.eraseNode(q);
            }
        }
        return together;
    }

    // What adds integers to a sum that is rounded to integers first.
    struct Behind
    {
        std::vector<ir::Node*> nodes; // quantize, dequantize, sum, perhaps an activation
        ir::Value* residual = nullptr;

        ir::Value const* step() const { return nodes[0]->inputs[1]; }
        ir::Value* result() const { return nodes.back()->outputs[0]; }
    };
    std::optional<Behind> behind(ir::Node const& n, Epilogue const& epilogue)
    {
        ir::Value const& y = *n.outputs[0];
        ir::Value const* const bias = inputOf(n, Epilogue::kBias);
        if (epilogue.activation.any() || inputOf(n, Epilogue::kResidual) || (bias && !bias->isConstant()))
            return std::nullopt;
        Behind b;
        ir::Node* const q = nextOf(g_, &n);
        ir::Node* const d = isQuantize(q) && isPerTensor(*q) ? nextOf(g_, q) : nullptr;
        auto const again = isDequantize(d) ? dequantizedOf(d->outputs[0]) : std::nullopt;
        if (!again || !again->isPerTensor() || !haveSameScale(*q->inputs[1], *again->scale))
            return std::nullopt;
        ir::Node* const sum = nextOf(g_, d);
        if (!sum || sum->op != &ops::elementwise::def() || sum->inputs[0] == sum->inputs[1] ||
            sum->attrsAs<ops::elementwise::Attrs>().operation != Operation::kSum)
            return std::nullopt;
        b.residual = sum->inputs[sum->inputs[0] == d->outputs[0] ? 1 : 0];
        auto const r = dequantizedOf(b.residual);
        if (!r || !r->isPerTensor() || !r->scale->isConstant() || !(b.residual->shape == y.shape) ||
            sum->outputs[0]->type != y.type || b.residual->type != y.type)
            return std::nullopt;
        b.nodes = {q, d, sum};
        if (ir::Node* const f = nextOf(g_, sum); f && f->op == &ops::activation::def())
            b.nodes.push_back(f);
        for (ir::Node const* node : b.nodes)
            if (!canJoin(n, *node))
                return std::nullopt;
        return b;
    }

    Result<void> fuseSum(ir::Node& n)
    {
        auto const x = dequantizedOf(n.inputs[0]), w = dequantizedOf(n.inputs[1]);
        Channels const channels = channelsOf(n);
        if (!x || !w || !x->isPerTensor() || (!w->isPerTensor() && w->axis != channels.axis) ||
            !x->scale->isConstant() || !w->scale->isConstant() || !isQuantized(w->integers->type))
            return {};
        std::unique_ptr<ir::AttrsBase> attrs = n.attrs->clone();
        Epilogue& epilogue = epilogueOf(*attrs, n);
        auto const more = behind(n, epilogue);
        if (more && more->nodes.size() > 3)
            epilogue.activation = ops::FusedActivation(more->nodes[3]->attrsAs<ops::activation::Attrs>());
        ir::Value* const y = more ? more->result() : n.outputs[0];
        ir::Value const* const bias = inputOf(n, Epilogue::kBias);
        ir::Value* const residual = more ? more->residual : inputOf(n, Epilogue::kResidual);
        auto const r = dequantizedOf(residual);
        bool const isWholeResidual = r && r->isPerTensor() && r->scale->isConstant();
        std::vector<ir::Node*> quantizers = residual && !isWholeResidual ? std::vector<ir::Node*>() : quantizersOf(*y);
        bool const mayPart = !residual && isHomogeneous(epilogue.activation) && (!bias || bias->isConstant());
        if (auto const parts = mayPart ? partsOf(*y, channels.ofOutput) : std::vector<ir::Node*>(); !parts.empty()) {
            TW_ASSIGN(ir::Node * together, quantizeTogether(*y, channels.ofOutput, parts));
            quantizers = {together};
        }
        // The unit of what the epilogue computes: the output's step, or 1.
        ir::Value const* const step = quantizers.empty() ? nullptr : quantizers[0]->inputs[1];
        ir::Value const* const unit =
            step && isHomogeneous(epilogue.activation) && (!bias || bias->isConstant()) ? step : nullptr;
        ir::Value const* const sumUnit = more ? more->step() : unit;
        std::vector<ir::Value*> inputs = n.inputs;
        inputs.resize(Epilogue::kEnd);
        inputs[0] = x->integers;
        inputs[1] = w->integers;
        bool const isOneStep = !step || ir::extentsOf(step->shape).volume() == 1;
        Extents const scales{w->isPerTensor() && isOneStep ? 1 : channels.count},
            wScales{w->isPerTensor() ? 1 : channels.count};
        TW_ASSIGN(inputs[Epilogue::kScale], constant(n.name + ".scale", scales, [&](auto& c) -> Result<ir::Value*> {
                      TW_ASSIGN(ir::Value * product,
                                apply(c, Operation::kProd, c.take(*w->scale, wScales), c.take(*x->scale, {1})));
                      return inUnits(c, product, sumUnit);
                  }));
        if (bias && (sumUnit || !isFullFloat(bias->type))) {
            if (!bias->isConstant())
                return {}; // f16, which nobody makes beside integers
            TW_ASSIGN(inputs[Epilogue::kBias],
                      constant(bias->name, ir::extentsOf(bias->shape), [&](auto& c) -> Result<ir::Value*> {
                          ir::Value* b = c.take(*bias);
                          if (!isFullFloat(bias->type))
                              TW_SET(b, c.add(ops::identity::def(), ops::identity::Attrs(DataType::kFloat), {b}));
                          return inUnits(c, b, sumUnit);
                      }));
        }
        if (isWholeResidual) {
            inputs[Epilogue::kResidual] = r->integers;
            TW_ASSIGN(inputs[Epilogue::kResidualScale], constant(n.name + ".residual_scale", {1}, [&](auto& c) {
                          return inUnits(c, c.take(*r->scale, {1}), unit);
                      }));
        }
        if (more) {
            TW_ASSIGN(inputs[Epilogue::kInnerScale], constant(n.name + ".inner_scale", {1}, [&](auto& c) {
                          return inUnits(c, c.take(*more->step(), {1}), unit);
                      }));
        }
        if (step && !unit) {
            TW_ASSIGN(inputs[Epilogue::kOutputScale], constant(n.name + ".output_scale", {1}, [&](auto& c) {
                          return inUnits(c, c.literal(DataType::kFloat, {1}, 1), step);
                      }));
        }
        while (!inputs.back())
            inputs.pop_back();
        epilogue.outputType = int32_t(step ? DataType::kInt8 : y->type);
        std::vector<ir::Value*> const read{n.inputs[0], n.inputs[1], residual};
        std::vector<ir::Node*> nodes{&n};
        if (more) {
            TW_TRY(relyOnEqualScales(*more->nodes[0], *more->nodes[1], ctx_));
            nodes.insert(nodes.end(), more->nodes.begin(), more->nodes.end());
        }
        return replace(nodes, std::move(attrs), std::move(inputs), quantizers, read);
    }

    // An average of integers by their own step.
    Result<void> fusePooling(ir::Node& n)
    {
        auto const x = dequantizedOf(n.inputs[0]);
        if (!x || !x->isPerTensor() || n.body || n.attrsAs<ops::pooling::Attrs>().kind == ops::pooling::Kind::kMax)
            return {};
        std::vector<ir::Node*> const quantizers = quantizersOf(*n.outputs[0]);
        if (quantizers.empty() || !haveSameScale(*x->scale, *quantizers[0]->inputs[1]))
            return {};
        TW_TRY(relyOnEqualScales(*x->node, *quantizers[0], ctx_));
        return replace({&n}, n.attrs->clone(), {x->integers}, quantizers, {n.inputs[0]});
    }

    // A node like the first of `nodes`, with these attributes and inputs, takes the place of them all and of those that
    // quantize the last one's result. What only they read goes.
    Result<void> replace(std::vector<ir::Node*> const& nodes, std::unique_ptr<ir::AttrsBase> attrs,
                         std::vector<ir::Value*> inputs, std::vector<ir::Node*> const& quantizers,
                         std::vector<ir::Value*> const& read)
    {
        ir::Node const& head = *nodes[0];
        ir::Node const& last = *nodes.back();
        TW_ASSIGN(ir::Node * made,
                  g_.addNode(*head.op, std::move(attrs), std::move(inputs), head.name, {}, g_.positionOf(&last)));
        takePlaceOf(*made, head);
        made->outputTypes.assign(1, {});
        for (size_t i = 1; i < nodes.size(); ++i)
            joinOrigins(*made, *made, *nodes[i]);
        ir::Value* const y = made->outputs[0];
        y->name = quantizers.empty() ? last.outputs[0]->name : quantizers[0]->outputs[0]->name;
        if (quantizers.empty()) {
            made->outputTypes = last.outputTypes;
            g_.replaceAllUses(last.outputs[0], y);
        }
        for (ir::Node const* q : quantizers)
            TW_TRY(relyOnEqualScales(*quantizers[0], *q, ctx_));
        for (ir::Node* q : quantizers) {
            if (!q->layers.empty()) // else it is of a range, and no layer of the network
                joinOrigins(*made, *made, *q);
            if (!replaceValue(g_, q->outputs[0], y)) { // a second output of the network: one value has one name
                TW_ASSIGN(ir::Node * copy, g_.addNode(ops::identity::def(), ops::identity::Attrs(y->type).clone(), {y},
                                                      q->outputs[0]->name + " [output]", {}, g_.positionOf(q)));
                copy->layers = q->layers;
                copy->outputs[0]->name = q->outputs[0]->name;
                g_.replaceAllUses(q->outputs[0], copy->outputs[0]);
            }
            g_.eraseNode(q);
        }
        made->outputTypes.resize(1);
        for (size_t i = nodes.size(); i-- > 0;)
            g_.eraseNode(nodes[i]);
        for (size_t i = 0; i < read.size(); ++i) {
            ir::Value* const v = read[i];
            bool const isSeen = std::find(read.begin(), read.begin() + int64_t(i), v) != read.begin() + int64_t(i);
            if (v && !isSeen && isDequantize(v->producer) && g_.useCount(v) == 0) {
                made->layers.insert(made->layers.end(), v->producer->layers.begin(), v->producer->layers.end());
                g_.eraseNode(v->producer); // and v
            }
        }
        std::string const to = isQuantized(y->type) ? "" : ", to " + std::string(nameOf(y->type));
        ctx_.log.verbose("INT8: '{}'{}", made->name, to);
        changed_ = true;
        return {};
    }

    // dequantize(constant) that nobody takes as integers.
    Result<void> foldConstants()
    {
        for (size_t i = 0; i < g_.nodes.size(); ++i) {
            ir::Node* const n = g_.nodes[i].get();
            if (!isDequantize(n) || !n->inputs[0]->isConstant() || !n->inputs[1]->isConstant() ||
                g_.isOutput(n->outputs[0]))
                continue;
            recipe::Computation c(ctx_.recipes);
            TW_ASSIGN(ir::Value * y, c.add(*n->op, *n->attrs, {c.take(*n->inputs[0]), c.take(*n->inputs[1])}));
            auto made = std::make_shared<ir::Constant>();
            TW_ASSIGN(made->data, c.finish(y));
            ir::Value* const v = n->outputs[0];
            g_.replaceAllUses(v, g_.addConstant(v->name, v->type, ir::extentsOf(v->shape), std::move(made)));
            g_.eraseNode(n);
            --i;
            changed_ = true;
        }
        return {};
    }

    ir::Graph& g_;
    PassContext const& ctx_;
    bool changed_ = false;
};

} // namespace

Result<bool> fuseQuantization(ir::Graph& g, PassContext const& ctx)
{
    return Fusing(g, ctx).run();
}

} // namespace tw::passes
