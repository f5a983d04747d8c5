// SPDX-License-Identifier: Apache-2.0
// Implicit quantization: puts quantize and dequantize where tensors have ranges (setDynamicRange(), calibration) and INT8
// may be used, so that move_quantization and fuse_quantization find what they know from networks with Q/DQ layers.
//   conv(x, w)  ->  conv(dequantize(quantize(x, s)), dequantize(w', t)), with w' in i8, t for each output channel
// Takes convolutions, transposed or not, fully connected layers and matrix products with constant weights, whose input has
// a range. A tensor that becomes INT8 for one of them is INT8 for the others, for residuals, and for what stands between
// two of them. Weights: t is the largest magnitude of a channel by 127; w / t is rounded, ties to +infinity, into
// [-127, 127]. Leaves alone: layers whose precision the user set to another type; the last of these layers before a network
// output in floats ("smoothing", the guide's rule with its exceptions: INT8 outputs, a plugin in between). The graph
// without it is offered, too: floats win where they are faster. Expects Form::kFused.
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
#include "ops/shuffle/op.h"
#include "ops/unary/op.h"
#include "passes/list.h"
#include "passes/quantization.h"
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

// The weights' dimension that is the output channels.
int channelAxis(ir::Node const& n)
{
    using enum ops::matrix_multiply::MatrixOperation;
    if (n.op == &ops::convolution::def()) {
        auto const& a = n.attrsAs<ops::convolution::Attrs>();
        return !a.transposed ? 0 : a.groups == 1 ? 1 : -1;
    }
    auto const& a = n.attrsAs<ops::matrix_multiply::Attrs>();
    return a.connected ? 0 : a.b == kVector ? -1 : n.inputs[1]->rank() - (a.b == kTranspose ? 2 : 1);
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
        if (sums_.empty())
            return false;
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
        for (ir::Node* n : sums)
            TW_TRY(quantizeWeights(*n));
        g_.eraseUnusedValues();
        ctx_.log.info("INT8: " + std::to_string(sums_.size()) + " layers by dynamic ranges");
        return true;
    }

private:
    // One step of the tensor's integers; 0: it has no range.
    double stepOf(ir::Value const& v) const
    {
        auto const found = ctx_.ranges->find(v.name);
        return found == ctx_.ranges->end() ? 0 : found->second;
    }
    bool mayQuantize(ir::Value const* v) const
    {
        return v && v->type == DataType::kFloat && !v->host && !v->isConstant() && stepOf(*v) > 0;
    }

    bool mayBeIntegers(ir::Node const& n)
    {
        if (!maySumIntegers(n) || n.outputs[0]->type != DataType::kFloat || !mayQuantize(n.inputs[0]) || isPinned(n))
            return false;
        ir::Value const& w = *n.inputs[1];
        if (!w.isConstant() || w.type != DataType::kFloat || ir::extentsOf(w.shape).volume() == 0)
            return false;
        if (!isLastSum(n))
            return true;
        ctx_.log.verbose("FP32: '" + n.name + "' (" + n.op->name + "): the last one before a network output");
        return false;
    }
    bool isPinned(ir::Node const& n) const
    {
        bool const isHeard = ctx_.constraints != PrecisionConstraints::kIgnore;
        auto pins = [&](auto const& wish) { return isHeard && wish.byUser && wish.value != DataType::kInt8; };
        return pins(n.precision) || (!n.outputTypes.empty() && pins(n.outputTypes[0]));
    }
    static bool asksInt8(ir::Node const& n)
    {
        return (n.precision.byUser && n.precision.value == DataType::kInt8) ||
               (!n.outputTypes.empty() && n.outputTypes[0].byUser && n.outputTypes[0].value == DataType::kInt8);
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
            if (g_.isOutput(v) && v->type != DataType::kInt8)
                return true;
            for (ir::Node const* r : readersOf(g_, v))
                if (!isSmoothing(*r) && !asksInt8(*r) && r->op != &ops::plugin::def())
                    for (ir::Value const* y : r->outputs)
                        open.push_back(y);
        }
        return false;
    }

    // Values that become integers: what sums read, and the residuals of sums whose result does.
    void chooseValues()
    {
        for (ir::Node const* n : sums_)
            quantized_.insert(n->inputs[0]);
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
        if (sums_.contains(&r))
            return true;
        bool const isLight =
            movesElements(r) || r.op == &ops::pooling::def() || r.op == &ops::pointwise::def() || r.op->isElementwise;
        return isLight && r.outputs.size() == 1 && isRead(*r.outputs[0]);
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
        for (ir::Node* r : readersOf(g_, v))
            if (readsIntegers(*r))
                readers.push_back(r);
        if (readers.empty())
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
            std::replace(r->inputs.begin(), r->inputs.end(), v, d->outputs[0]);
        return {};
    }

    Result<void> quantizeWeights(ir::Node& n)
    {
        using Operation = ops::elementwise::Operation;
        ir::Value const& w = *n.inputs[1];
        Extents const dims = ir::extentsOf(w.shape);
        int const axis = channelAxis(n);
        Extents channels; // dimensions that stretch over the weights
        for (int d = 0; d < dims.rank; ++d)
            channels.push(d == axis ? dims[d] : 1);
        auto apply = [](recipe::Computation& c, Operation op, ir::Value* a, ir::Value* b) {
            return c.add(ops::elementwise::def(), ops::elementwise::Attrs(op), {a, b});
        };
        auto steps = [&](recipe::Computation& c) -> Result<ir::Value*> {
            ops::unary::Attrs magnitude;
            magnitude.operation = ops::unary::Operation::kAbs;
            TW_ASSIGN(ir::Value * a, c.add(ops::unary::def(), magnitude, {c.take(w)}));
            ops::reduce::Attrs largest;
            largest.kind = ops::reduce::Kind::kMax;
            largest.keepDims = true;
            for (int d = 0; d < dims.rank; ++d)
                largest.axes |= d == axis ? 0 : int64_t(1) << d;
            TW_ASSIGN(ir::Value * m, c.add(ops::reduce::def(), largest, {a}));
            Extents ones;
            for (int d = 0; d < dims.rank; ++d)
                ones.push(1);
            return apply(c, Operation::kDiv, m, c.literal(DataType::kFloat, ones, 127));
        };
        recipe::Computation scales(ctx_.recipes);
        TW_ASSIGN(ir::Value * t, steps(scales));
        TW_ASSIGN(BlobPtr scaleData, scales.finish(t));
        recipe::Computation numbers(ctx_.recipes);
        TW_ASSIGN(ir::Value * divisor, steps(numbers));
        TW_ASSIGN(ir::Value * q, apply(numbers, Operation::kDiv, numbers.take(w), divisor));
        Extents ones;
        for (int d = 0; d < dims.rank; ++d)
            ones.push(1);
        auto literal = [&](double v) { return numbers.literal(DataType::kFloat, ones, v); };
        TW_ASSIGN(q, apply(numbers, Operation::kSum, q, literal(0.5)));
        ops::unary::Attrs floor;
        floor.operation = ops::unary::Operation::kFloor;
        TW_ASSIGN(q, numbers.add(ops::unary::def(), floor, {q}));
        TW_ASSIGN(q, apply(numbers, Operation::kMax, q, literal(-127)));
        TW_ASSIGN(q, apply(numbers, Operation::kMin, q, literal(127)));
        TW_ASSIGN(q, numbers.add(ops::quantize::def(), ops::quantize::Attrs(),
                                 {q, numbers.literal(DataType::kFloat, {1}, 1)}));
        auto integers = std::make_shared<ir::Constant>(*w.constant), scale = std::make_shared<ir::Constant>();
        TW_ASSIGN(integers->data, numbers.finish(q));
        scale->data = std::move(scaleData);
        ir::Value* const i8 = g_.addConstant(w.name + ".int8", DataType::kInt8, dims, std::move(integers));
        ir::Value* const s = g_.addConstant(w.name + ".steps", DataType::kFloat,
                                            axis < 0 ? Extents{} : Extents{dims[axis]}, std::move(scale));
        TW_ASSIGN(ir::Node * d, g_.addNode(ops::dequantize::def(), std::make_unique<ops::dequantize::Attrs>(axis),
                                           {i8, s}, w.name + " from INT8", {}, g_.positionOf(&n)));
        n.inputs[1] = d->outputs[0];
        return {};
    }

    ir::Graph& g_;
    PassContext const& ctx_;
    std::set<ir::Node const*> sums_;
    std::set<ir::Value const*> quantized_;
};

} // namespace

Result<bool> quantizeRanges(ir::Graph& g, PassContext const& ctx)
{
    if (!ctx.int8 || !ctx.ranges)
        return false;
    return Quantizing(g, ctx).run();
}

} // namespace tw::passes
