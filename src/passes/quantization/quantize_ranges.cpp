// SPDX-License-Identifier: Apache-2.0
// Implicit quantization: puts quantize and dequantize where tensors have ranges (setDynamicRange(), calibration) and INT8
// may be used, so that move_quantization and fuse_quantization find what they know from networks with Q/DQ layers.
//   conv(x, w)  ->  conv(dequantize(quantize(x, s)), dequantize(w', t)), with w' in i8, t for each output channel
// Takes convolutions, transposed or not, fully connected layers and matrix products with constant weights, whose input has
// a range. A tensor that becomes INT8 for one of them is INT8 for the others, for residuals, and for what stands between
// two of them. Weights: t is the largest magnitude of a channel by 127; w / t is rounded, ties to +infinity (of layers on
// DLA: to zero), into [-127, 127]. Leaves alone: layers whose precision the user set to another type; the last of these layers before a network
// output in floats ("smoothing", the guide's rule with its exceptions: INT8 outputs, a plugin in between); those that the
// builder has found faster in floats (PassContext::floatLayers). The graph without it is offered, too: floats win where they
// are faster.
// Layers that the user wants in INT8, by precision or output type, are heard with kOBEY and kPREFER_PRECISION_CONSTRAINTS:
// then that graph is not offered, pools and elementwise layers become INT8 as well, and what cannot is an error or a
// warning. Expects Form::kFused.
#include <algorithm>
#include <set>

#include "ops/convolution/op.h"
#include "ops/dequantize/op.h"
#include "ops/elementwise/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/pointwise/op.h"
#include "ops/pooling/op.h"
#include "ops/quantize/op.h"
#include "ops/reduce/op.h"
#include "ops/unary/op.h"
#include "passes/list.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "recipe/recipes.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::Epilogue;

// Sums of products, whose rounding errors even out: what the guide calls smoothing layers.
bool isSmoothing(ir::Node const& n)
{
    return n.op == &ops::convolution::def() || n.op == &ops::matrix_multiply::def() || n.op == &ops::attention::def() ||
           n.op == &ops::expanded_depthwise::def();
}

// What works on integers between sums.
bool isLight(ir::Node const& n)
{
    return movesElements(n) || n.op == &ops::pooling::def() || n.op == &ops::pointwise::def() || n.op->isElementwise;
}

bool isProductOfTwo(ir::Node const& n)
{
    return n.op == &ops::convolution::def() || n.op == &ops::matrix_multiply::def();
}

bool asksOutput(ir::Node const& n)
{
    return !n.outputTypes.empty() && n.outputTypes[0].byUser && isQuantized(n.outputTypes[0].value);
}
bool isOnDla(ir::Node const& n)
{
    return n.device.value.kind == ir::DeviceKind::kDla;
}
bool asksInt8(ir::Node const& n)
{
    return (n.precision.byUser && isQuantized(n.precision.value)) || asksOutput(n);
}

class Quantizing
{
public:
    Quantizing(ir::Graph& g, PassContext const& ctx) : g_(g), ctx_(ctx) {}

    Result<bool> run()
    {
        for (auto const& n : g_.nodes)
            if (mayBeIntegers(*n))
                sums_.insert(n.get());
        TW_TRY(hearWishes());
        if (sums_.empty() && asked_.empty() && made_.empty())
            return false;
        for (auto const& n : g_.nodes)
            if (sums_.contains(n.get()))
                TW_TRY(checkWeights(*n));
        chooseValues();
        std::vector<ir::Value*> values;
        for (auto const& v : g_.values())
            if (quantized_.contains(v.get()))
                values.push_back(v.get());
        for (ir::Value* v : values)
            TW_TRY(quantizeValue(v));
        std::vector<ir::Node*> sums;
        for (auto const& n : g_.nodes)
            if (sums_.contains(n.get()))
                sums.push_back(n.get());
        TW_TRY(quantizeWeights(sums));
        g_.eraseUnusedValues();
        ctx_.log.info("INT8: {} layers by dynamic ranges", sums_.size());
        return true;
    }

private:
    // One step of the tensor's integers; 0: it has no range.
    double stepOf(ir::Value const& v) const
    {
        if (!ctx_.ranges)
            return 0;
        auto const found = ctx_.ranges->find(v.name);
        return found == ctx_.ranges->end() ? 0 : found->second;
    }
    bool mayQuantize(ir::Value const* v) const
    {
        return v && isFullFloat(v->type) && !v->host && !v->isConstant() && stepOf(*v) > 0;
    }

    bool mayBeIntegers(ir::Node const& n)
    {
        if (!maySumIntegers(n) || !isFullFloat(n.outputs[0]->type) || !mayQuantize(n.inputs[0]) || isPinned(n) ||
            isSlower(n))
            return false;
        ir::Value const& w = *n.inputs[1];
        if (!w.isConstant() || !isFullFloat(w.type) || ir::extentsOf(w.shape).volume() == 0)
            return false;
        if (!isLastSum(n))
            return true;
        ctx_.log.verbose("FP32: '{}' ({}): the last one before a network output", n.name, n.op->name);
        return false;
    }
    // The type of the output counts where there is no precision: sums of integers may well be floats.
    bool isPinned(ir::Node const& n) const
    {
        auto pins = [&](auto const& wish) { return wish.byUser && !isQuantized(wish.value); };
        return ctx_.constraints != PrecisionConstraints::kIgnore &&
               (n.precision.byUser ? pins(n.precision) : !n.outputTypes.empty() && pins(n.outputTypes[0]));
    }

    bool isSlower(ir::Node const& n) const
    {
        return ctx_.floatLayers &&
               std::ranges::any_of(n.layers, [&](auto const& layer) { return ctx_.floatLayers->contains(layer); });
    }

    // Takes the layers that the user wants in INT8, or says what each of them lacks.
    Result<void> hearWishes()
    {
        if (ctx_.constraints == PrecisionConstraints::kIgnore)
            return {};
        for (auto const& n : g_.nodes) {
            if (!asksInt8(*n) || n->outputs.empty() || !n->regions.empty() || n->outputs[0]->host ||
                !isFloating(n->outputs[0]->type))
                continue;
            bool const computes = !n->precision.byUser || isQuantized(n->precision.value);
            bool const isSum = sums_.contains(n.get());
            std::string lacks = !computes || isSum ? "" : whyNoIntegers(*n);
            // What is no sum of products has integers on both sides, or no use of them.
            bool const makes = asksOutput(*n) || (computes && !isSum);
            if (lacks.empty() && makes)
                lacks = whyNoRange(*n->outputs[0]);
            if (!lacks.empty()) {
                std::string const what = "layer '" + n->name + "' (" + n->op->name + ") asks for INT8: " + lacks;
                if (isOnDla(*n)) { // the wish is of the model: this device computes on wider numbers
                    ctx_.log.verbose("{}; it runs in floating point", what);
                    continue;
                }
                if (ctx_.constraints == PrecisionConstraints::kObey)
                    return unsupported("{}; BuilderFlag::kPREFER_PRECISION_CONSTRAINTS would run it in FP32", what);
                ctx_.log.warning("{}; it runs in floating point", what);
                continue;
            }
            if (computes && !isSum)
                asked_.insert(n.get());
            if (makes)
                made_.insert(n->outputs[0]);
        }
        return {};
    }
    std::string whyNoRange(ir::Value const& v) const
    {
        if (!isFullFloat(v.type))
            return "tensor '" + v.name + "' is " + nameOf(v.type) + ", only FP32 tensors become INT8";
        return stepOf(v) > 0
                   ? std::string()
                   : "tensor '" + v.name + "' has no range (ITensor::setDynamicRange() or a calibrator gives it one)";
    }
    // A layer of a kind without INT8 kernels computes in floating point between the integers that it reads and makes.
    std::string whyNoIntegers(ir::Node const& n) const
    {
        for (ir::Value const* x : n.inputs)
            if (x && !x->host && !x->isConstant() && isFloating(x->type))
                if (std::string why = whyNoRange(*x); !why.empty())
                    return why;
        return isProductOfTwo(n) && n.inputs[1]->isConstant()
                   ? "there is no INT8 kernel for its weights " + str(n.inputs[1]->shape)
                   : std::string();
    }
    // Whether a float output of the network is reached without another such layer; nodes in between that ask for INT8 and
    // plugins end the search.
    bool isLastSum(ir::Node const& n)
    {
        if (asksInt8(n))
            return false;
        std::vector<ir::Value const*> open{n.outputs[0]};
        std::set<ir::Value const*> seen;
        while (!open.empty()) {
            ir::Value const* v = open.back();
            open.pop_back();
            if (!seen.insert(v).second)
                continue;
            if (g_.isOutput(v) && !isQuantized(v->type))
                return true;
            for (ir::Node const* r : readersOf(g_, v))
                if (!isSmoothing(*r) && !asksInt8(*r) && r->op != &ops::plugin::def())
                    for (ir::Value const* y : r->outputs)
                        open.push_back(y);
        }
        return false;
    }

    // A NaN would become 0 without a word, and an infinity makes its channel's step one.
    static Result<void> checkWeights(ir::Node const& n)
    {
        for (size_t i : {size_t(1), size_t(Epilogue::kBias)}) {
            if (i >= n.inputs.size() || !n.inputs[i] || !n.inputs[i]->isConstant())
                continue;
            TensorRef const w = elementsOf(n.inputs[i]);
            if (int64_t const k = firstNotFinite(w); k >= 0)
                return invalidArgument("layer '{}' ({}) is to run in INT8, and element {} of its {} '{}' is {}, which "
                                       "INT8 cannot hold; correct it, or keep the layer in floating point "
                                       "(setPrecision(kFLOAT) with kOBEY_PRECISION_CONSTRAINTS)",
                                       n.name, n.op->name, k, i == 1 ? "weights" : "bias", n.inputs[i]->name, w.get(k));
        }
        return {};
    }

    // Values that become integers: what sums read, and the residuals of sums whose result does.
    void chooseValues()
    {
        for (ir::Node const* n : sums_)
            quantized_.insert(n->inputs[0]);
        for (ir::Node const* n : asked_)
            for (ir::Value* v : n->inputs)
                if (mayQuantize(v))
                    quantized_.insert(v);
        quantized_.insert(made_.begin(), made_.end());
        for (bool again = true; again;) {
            again = false;
            for (ir::Node const* n : sums_) {
                bool const hasResidual = ops::hasInput(*n, Epilogue::kResidual);
                if (hasResidual && isRead(*n->outputs[0]) && mayQuantize(n->inputs[Epilogue::kResidual]))
                    again = quantized_.insert(n->inputs[Epilogue::kResidual]).second || again;
            }
        }
    }
    // Whether somebody reads the value's integers, perhaps behind nodes that move elements.
    bool isRead(ir::Value const& v) const
    {
        if (quantized_.contains(&v))
            return true;
        for (ir::Node const* r : readersOf(g_, &v))
            if (movesElements(*r) && isRead(*r->outputs[0]))
                return true;
        return false;
    }
    bool readsIntegers(ir::Node const& r) const
    {
        if (sums_.contains(&r) || asked_.contains(&r))
            return true;
        return isLight(r) && r.outputs.size() == 1 && isRead(*r.outputs[0]);
    }

    Result<ir::Value*> scaleConstant(std::string const& name, double step)
    {
        auto const scale = static_cast<float>(step);
        auto made = std::make_shared<ir::Constant>();
        made->data = Blob::copy(&scale, sizeof scale);
        if (ctx_.recipes)
            TW_TRY(ctx_.recipes->addRange(name, made->data));
        return g_.addConstant(name + ".range", DataType::kFloat, Extents{}, std::move(made));
    }

    Result<void> quantizeValue(ir::Value* v)
    {
        std::vector<ir::Node*> readers;
        bool const isMade = made_.contains(v); // it is nothing but integers
        for (ir::Node* r : readersOf(g_, v))
            if (isMade || readsIntegers(*r))
                readers.push_back(r);
        if (readers.empty() && !isMade)
            return {};
        TW_ASSIGN(ir::Value * scale, scaleConstant(v->name, stepOf(*v)));
        int const position = v->producer ? g_.positionOf(v->producer) + 1 : 0;
        TW_ASSIGN(ir::Node * q, g_.addNode(ops::quantize::def(), std::make_unique<ops::quantize::Attrs>(), {v, scale},
                                           v->name + " to INT8", {}, position));
        TW_ASSIGN(ir::Node * d, g_.addNode(ops::dequantize::def(), std::make_unique<ops::dequantize::Attrs>(),
                                           {q->outputs[0], scale}, v->name + " from INT8", {}, position + 1));
        q->layers.clear();
        d->layers.clear();
        q->outputs[0]->name = v->name + ".int8";
        d->outputs[0]->name = v->name + ".float";
        for (ir::Node* r : readers)
            std::ranges::replace(r->inputs, v, d->outputs[0]);
        if (isMade && g_.isOutput(v)) {
            std::swap(v->name, d->outputs[0]->name);
            std::ranges::replace(g_.outputs, v, d->outputs[0]);
        }
        return {};
    }

    using Operation = ops::elementwise::Operation;
    static Result<ir::Value*> apply(recipe::Computation& c, Operation op, ir::Value* a, ir::Value* b)
    {
        return c.add(ops::elementwise::def(), ops::elementwise::Attrs(op), {a, b});
    }
    // What one step of the integers is for each channel of the weights: the largest of them is 127 steps.
    static Result<recipe::Computation::Open> stepsOf(recipe::Recipes* recipes, ir::Node const& n)
    {
        ir::Value const& w = *n.inputs[1];
        int const rank = int(w.rank()), axis = channelAxis(n);
        recipe::Computation c(recipes);
        ops::unary::Attrs magnitude;
        magnitude.operation = ops::unary::Operation::kAbs;
        TW_ASSIGN(ir::Value * a, c.add(ops::unary::def(), magnitude, {c.take(w)}));
        ops::reduce::Attrs largest;
        largest.kind = ops::reduce::Kind::kMax;
        largest.keepDims = true;
        for (int d = 0; d < rank; ++d)
            largest.axes |= d == axis ? 0 : int64_t(1) << d;
        TW_ASSIGN(ir::Value * m, c.add(ops::reduce::def(), largest, {a}));
        TW_ASSIGN(ir::Value * steps,
                  apply(c, Operation::kDiv, m, c.literal(DataType::kFloat, Extents::ones(rank), 127)));
        return recipe::Computation::Open{std::move(c), steps};
    }
    static Result<recipe::Computation::Open> integersOf(recipe::Recipes* recipes, ir::Node const& n,
                                                        ir::Value const& steps)
    {
        ir::Value const& w = *n.inputs[1];
        int const axis = channelAxis(n);
        Extents const dims = ir::extentsOf(w.shape), ones = Extents::ones(dims.rank);
        Extents along = ones;
        if (axis >= 0)
            along[axis] = dims[axis];
        recipe::Computation c(recipes);
        TW_ASSIGN(ir::Value * q, apply(c, Operation::kDiv, c.take(w), c.take(steps, along)));
        auto literal = [&](double v) { return c.literal(DataType::kFloat, ones, v); };
        auto round = [&](double shift, ops::unary::Operation to) -> Result<ir::Value*> {
            TW_ASSIGN(ir::Value * shifted, apply(c, Operation::kSum, q, literal(shift)));
            return c.add(ops::unary::def(), ops::unary::Attrs(to), {shifted});
        };
        if (isOnDla(n)) { // ties to zero: each half from its own side
            TW_ASSIGN(ir::Value * up, round(-0.5, ops::unary::Operation::kCeil));
            TW_SET(up, apply(c, Operation::kMax, up, literal(0)));
            TW_ASSIGN(ir::Value * down, round(0.5, ops::unary::Operation::kFloor));
            TW_SET(down, apply(c, Operation::kMin, down, literal(0)));
            TW_SET(q, apply(c, Operation::kSum, up, down));
        } else {
            TW_SET(q, round(0.5, ops::unary::Operation::kFloor));
        }
        TW_SET(q, apply(c, Operation::kMax, q, literal(-127)));
        TW_SET(q, apply(c, Operation::kMin, q, literal(127)));
        TW_SET(q, c.add(ops::quantize::def(), ops::quantize::Attrs(), {q, c.literal(DataType::kFloat, {1}, 1)}));
        return recipe::Computation::Open{std::move(c), q};
    }
    // Large weights take long: all layers are computed at a time.
    Result<void> quantizeWeights(std::vector<ir::Node*> const& sums)
    {
        std::vector<recipe::Computation::Open> list;
        for (ir::Node const* n : sums) {
            TW_ASSIGN(auto steps, stepsOf(ctx_.recipes, *n));
            list.push_back(std::move(steps));
        }
        TW_ASSIGN(std::vector<BlobPtr> const stepData, recipe::Computation::finishAll(list, *ctx_.workers));
        list.clear();
        std::vector<ir::Value*> steps;
        for (size_t i = 0; i < sums.size(); ++i) {
            ir::Value const& w = *sums[i]->inputs[1];
            int const axis = channelAxis(*sums[i]);
            auto scale = std::make_shared<ir::Constant>();
            scale->data = stepData[i];
            steps.push_back(g_.addConstant(w.name + ".steps", DataType::kFloat,
                                           axis < 0 ? Extents{} : Extents{ir::extentsOf(w.shape)[axis]},
                                           std::move(scale)));
            TW_ASSIGN(auto integers, integersOf(ctx_.recipes, *sums[i], *steps[i]));
            list.push_back(std::move(integers));
        }
        TW_ASSIGN(std::vector<BlobPtr> const data, recipe::Computation::finishAll(list, *ctx_.workers));
        for (size_t i = 0; i < sums.size(); ++i) {
            ir::Node& n = *sums[i];
            ir::Value const& w = *n.inputs[1];
            auto integers = std::make_shared<ir::Constant>(*w.constant);
            integers->data = data[i];
            ir::Value* const i8 =
                g_.addConstant(w.name + ".int8", DataType::kInt8, ir::extentsOf(w.shape), std::move(integers));
            TW_ASSIGN(ir::Node * d,
                      g_.addNode(ops::dequantize::def(), std::make_unique<ops::dequantize::Attrs>(channelAxis(n)),
                                 {i8, steps[i]}, w.name + " from INT8", {}, g_.positionOf(&n)));
            n.inputs[1] = d->outputs[0];
        }
        return {};
    }

    ir::Graph& g_;
    PassContext const& ctx_;
    std::set<ir::Node const*> sums_;
    std::set<ir::Node const*> asked_; // no sums: the user wants them in INT8
    std::set<ir::Value const*> made_; // the user wants them in INT8, whoever reads them
    std::set<ir::Value const*> quantized_;
};

bool asksAnywhere(ir::Graph const& g)
{
    return std::ranges::any_of(g.nodes, [](auto const& n) {
        return asksInt8(*n) || std::ranges::any_of(n->regions, [](auto const& r) { return asksAnywhere(*r); });
    });
}

} // namespace

Result<bool> quantizeRanges(ir::Graph& g, PassContext const& ctx)
{
    if (!ctx.permits.has(Permission::kInt8))
        return false; // the builder has said so where a layer asks for INT8
    return Quantizing(g, ctx).run();
}

bool wantsIntegers(ir::Graph const& g, PassContext const& ctx)
{
    return ctx.permits.has(Permission::kInt8) && ctx.constraints != PrecisionConstraints::kIgnore && asksAnywhere(g);
}

} // namespace tw::passes
