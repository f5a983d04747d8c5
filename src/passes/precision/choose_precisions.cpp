// SPDX-License-Identifier: Apache-2.0
// Which types are allowed for each node, and which is preferred where no clock is asked. f16 for everything whose op
// takes it, but
//   what the user pinned to FP32 (setPrecision, setOutputType), and regions with their captures and results;
//   what leaves FP16's range or digits for ordinary inputs and costs little: powers, exp, log, roots and reciprocals
//     (of a variance plus 1e-12, say), sines of large angles, random numbers and ramps, products and long sums over an
//     axis, averages of squares; softmax, layer_norm, attention and activations are not among these: they compute in
//     float whatever they read;
//   cheap nodes with only such readers, so that a chain like x^2 -> average -> + 1e-6 -> root stays together, and those
//     that add or multiply a constant which FP16 would flush.
// Comparisons, conversions and pointwise nodes read both types, so they ask for no conversion; where they would rather
// have f32 (comparisons, conversions to integers), cheap nodes before them stay in f32.
// With setPrecision or setOutputType kHALF a node that could keep FP32 for its range becomes f16 all the same; f32 is
// allowed beside it where these are hints (neither kOBEY nor kPREFER_PRECISION_CONSTRAINTS), as for all others in f16.
#include <algorithm>

#include "ir/op_def.h"
#include "ir/shape_values.h"
#include "ops/cumulative_sum/op.h"
#include "ops/detection/op.h"
#include "ops/elementwise/op.h"
#include "ops/fill/op.h"
#include "ops/grid_sample/op.h"
#include "ops/identity/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/pointwise/op.h"
#include "ops/proposals/op.h"
#include "ops/reduce/op.h"
#include "ops/roi_align/op.h"
#include "ops/scale/op.h"
#include "ops/softmax/op.h"
#include "ops/unary/op.h"
#include "passes/node_kinds.h"
#include "passes/precision/precision.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::elementwise::Operation;
using Code = StepCode;

constexpr int64_t kLongSum = 64; // of values up to 1000 it stays within 65504

bool isComparison(ir::Node const& n)
{
    return n.op == &ops::elementwise::def() &&
           ops::elementwise::isComparison(n.attrsAs<ops::elementwise::Attrs>().operation);
}

bool isWide(Code code)
{
    return code == Code::kExp || code == Code::kLog || code == Code::kSqrt || code == Code::kReciprocal;
}

bool isWide(ops::unary::Operation operation)
{
    using enum ops::unary::Operation;
    constexpr ops::unary::Operation kWide[] = {kExp, kLog,  kSqrt, kRecip, kSin,  kCos,
                                               kTan, kSinh, kCosh, kAcosh, kAtanh};
    return contains(kWide, operation);
}

std::vector<Code> codesOf(ir::Node const& pointwise)
{
    auto const& steps = pointwise.attrsAs<ops::pointwise::Attrs>().steps;
    std::vector<Code> codes;
    for (size_t i = 0; i < steps.size(); i += ops::kNumbersOfStep)
        codes.push_back(Code(steps[i]));
    return codes;
}

bool mayBeSquare(ir::Node const* n)
{
    if (!n)
        return false;
    if (is(n, Operation::kProd))
        return n->inputs[0] == n->inputs[1];
    if (n->op != &ops::pointwise::def())
        return is(n, Operation::kPow);
    auto const& steps = n->attrsAs<ops::pointwise::Attrs>().steps;
    int64_t const* last = &steps[steps.size() - ops::kNumbersOfStep];
    return Code(last[0]) == Code::kSquare || (Code(last[0]) == Code::kMul && last[1] == last[2]);
}

// x * x, x * x * x: what expand_powers makes of powers.
bool isLonePower(ir::Node const& n)
{
    if (!is(&n, Operation::kProd))
        return false;
    ir::Node const* square = n.inputs[0]->producer;
    return n.inputs[0] == n.inputs[1] ||
           (is(square, Operation::kProd) && square->inputs[0] == n.inputs[1] && mayBeSquare(square));
}

bool isLongReduction(ir::Node const& n)
{
    auto const& a = n.attrsAs<ops::reduce::Attrs>();
    ir::Value const& x = *n.inputs[0];
    if (a.kind == ops::reduce::Kind::kProd || a.before == ops::reduce::Before::kSquare ||
        a.after != ops::reduce::After::kNothing)
        return true;
    if (a.kind == ops::reduce::Kind::kAvg)
        return mayBeSquare(x.producer);
    if (a.kind != ops::reduce::Kind::kSum)
        return false;
    ir::Dim extent = 1;
    for (int i = 0; i < x.rank(); ++i)
        if (a.has(i))
            extent = extent * x.shape[size_t(i)];
    return !extent.isConst() || extent.value() > kLongSum || mayBeSquare(x.producer);
}

// Why a node's results need f32 rather than `type`; empty: they do not.
std::string wideResult(ir::Node const& n, DataType type)
{
    using namespace ops;
    std::string const name = numberType(type).shown;
    if (n.op == &unary::def() && isWide(n.attrsAs<unary::Attrs>().operation))
        return "its results leave the range or the digits of " + name;
    // What only leaves the range.
    bool const hasRange = numberType(type).leastNormal <= numberType(DataType::kFloat).leastNormal;
    if (!hasRange && (is(&n, Operation::kPow) || is(&n, Operation::kFloorDiv) || isLonePower(n) ||
                      (n.op == &scale::def() && hasInput(n, 3))))
        return "powers leave the range of " + name;
    if (n.op == &pointwise::def() && isWide(codesOf(n).back()))
        return "its results leave the range or the digits of " + name;
    if (!hasRange && n.op == &reduce::def() && isLongReduction(n))
        return "sums and products over an axis leave the range of " + name;
    if (n.op == &softmax::def() && n.attrsAs<softmax::Attrs>().log)
        return "its results leave the range or the digits of " + name;
    if (n.op == &cumulative_sum::def())
        return "sums along an axis leave the range and the digits of " + name;
    if (n.op == &fill::def())
        return "its numbers may be indices";
    if (n.op == &detection::def())
        return "coordinates need the digits of FP32";
    bool const keepsConstants = n.op == &elementwise::def() || n.op == &scale::def();
    for (ir::Value const* v : n.inputs)
        if (keepsConstants && v && v->isConstant() && isFullFloat(v->type) && !fits(*v, type))
            return name + " would flush its constant";
    return {};
}

// As a reader, a node that would rather have f32.
bool wantsFloat(ir::Node const& n)
{
    if (n.op == &ops::pointwise::def()) {
        auto const codes = codesOf(n);
        return std::ranges::any_of(codes, [](Code c) { return isWide(c); });
    }
    return isComparison(n) || (n.op == &ops::identity::def() && !isFloating(n.outputs[0]->type));
}

class Chooser
{
public:
    Chooser(ir::Graph const& g, PassContext const& ctx) : g_(g), ctx_(ctx)
    {
        p_.type = narrowType(ctx.permits, ctx.target).value_or(p_.type);
        p_.shapes = ir::shapeValues(g);
        for (auto const& v : g.values())
            if (v->host)
                p_.shapes.insert(v.get());
        for (auto const& n : g.nodes)
            for (ir::Value const* v : n->inputs)
                readers_[v].push_back(n.get());
    }

    Result<Precisions> run()
    {
        for (auto const& n : g_.nodes)
            if (makesFloat(*n))
                TW_TRY(choose(*n));
        for (auto n = g_.nodes.rbegin(); n != g_.nodes.rend(); ++n)
            if (p_.narrow.contains(n->get()) && !asked_.contains(n->get()) && staysWithReaders(**n))
                keep(**n, "only layers in FP32 read it");
        return std::move(p_);
    }

private:
    bool isOpen(ir::Value const* v) const { return p_.isOpen(v); }
    bool makesFloat(ir::Node const& n) const
    {
        return std::ranges::any_of(n.outputs, [&](ir::Value const* v) { return isOpen(v); });
    }
    void keep(ir::Node const& n, std::string const& why)
    {
        p_.narrow.erase(&n);
        p_.bound.erase(&n);
        p_.kept[&n] = why;
    }

    // Whether the op's own rules give narrow outputs for narrow inputs.
    bool takesNarrow(ir::Node const& n) const
    {
        if (!n.regions.empty())
            return false;
        if (n.op == &ops::identity::def() || n.op == &ops::pointwise::def() || isDequantize(&n) || sumsIntegers(n))
            return true; // an attribute says the type
        std::vector<ir::ValueInfo> infos;
        bool any = false;
        for (size_t i = 0; i < n.inputs.size(); ++i) {
            infos.push_back(n.inputs[i] ? ir::infoOf(*n.inputs[i]) : ir::ValueInfo{});
            if (isOpen(n.inputs[i]) && !ir::isShapeInput(n, i)) {
                infos.back().type = p_.type;
                any = true;
            }
        }
        ir::InferContext ctx(n, std::move(infos), false);
        ctx.setSymbols(&g_.symbols);
        if (!any || !n.op->infer(ctx).ok())
            return false;
        for (size_t i = 0; i < n.outputs.size(); ++i)
            if (isOpen(n.outputs[i]) && ctx.outputs()[i].type != p_.type)
                return false;
        return true;
    }

    Result<void> choose(ir::Node const& n)
    {
        // The output type of a conversion or a fill says what it computes, not how.
        bool const saysWhat = n.op == &ops::identity::def() || n.op == &ops::fill::def();
        auto anyOutput = [&](DataType t) {
            return !saysWhat &&
                   std::ranges::any_of(n.outputTypes, [&](auto const& w) { return w.byUser && w.value == t; });
        };
        auto asks = [&](DataType t) { return n.precision.byUser && n.precision.value == t; };
        bool const asksFloat = asks(DataType::kFloat) || anyOutput(DataType::kFloat);
        bool const asksHalf = !asksFloat && (asks(DataType::kHalf) || anyOutput(DataType::kHalf));
        // Where no type is narrower, all kinds are FP32 alike, and what is asked for is rounded (round_to_half).
        bool const takes = !narrowType(ctx_.permits, ctx_.target) || takesNarrow(n);
        if (asksHalf)
            asked_.insert(&n);
        if (asksHalf && !takes) {
            std::string const what =
                "layer '" + n.name + "' asks for FP16, which a layer of this kind (" + n.op->name + ") does not take";
            if (ctx_.constraints == PrecisionConstraints::kObey)
                return unsupported("{}; BuilderFlag::kPREFER_PRECISION_CONSTRAINTS would run it in FP32", what);
            if (ctx_.constraints == PrecisionConstraints::kPrefer)
                ctx_.log.warning("{}: it runs in FP32", what);
        }
        std::string const why = asksFloat  ? "the network asks for FP32"
                                : !takes   ? std::string("its kind does not take ") + numberType(p_.type).shown
                                : asksHalf ? std::string()
                                           : wideResult(n, p_.type);
        if (!why.empty())
            keep(n, why);
        else
            p_.narrow.insert(&n);
        if (asksHalf && why.empty() && ctx_.constraints != PrecisionConstraints::kIgnore)
            p_.bound.insert(&n);
        return {};
    }

    bool staysInFloat(ir::Node const& n) const { return makesFloat(n) ? !p_.narrow.contains(&n) : wantsFloat(n); }

    bool staysWithReaders(ir::Node const& n) const
    {
        bool const isFree = readsAnyFloat(n);
        if (!isCheap(n))
            return false;
        bool anyReader = false;
        for (ir::Value const* v : n.outputs) {
            if (!isOpen(v))
                continue;
            bool const isOutput = g_.isOutput(v);
            if (isOutput && !isFree)
                return false;
            anyReader = anyReader || isOutput;
            auto const readers = readers_.find(v);
            if (readers == readers_.end())
                continue;
            for (ir::Node const* r : readers->second) {
                if (r->op->readsDimsOnly)
                    continue; // reads dimensions only
                bool const wants = wantsFloat(*r) && r->op == &ops::pointwise::def();
                if (!staysInFloat(*r) && !wants && !readsCoordinates(*r, v))
                    return false;
                anyReader = true;
            }
        }
        return anyReader;
    }

    ir::Graph const& g_;
    PassContext const& ctx_;
    Precisions p_;
    std::set<ir::Node const*> asked_; // for f16, by the user
    std::map<ir::Value const*, std::vector<ir::Node const*>> readers_;
};

} // namespace

bool readsAnyFloat(ir::Node const& n)
{
    bool const makesIntegers = sumsIntegers(n) && isQuantized(n.outputs[0]->type);
    return n.op->mixesFloats || isComparison(n) || makesIntegers;
}

bool readsCoordinates(ir::Node const& n, ir::Value const* x)
{
    auto const isOnly = [&](size_t i) {
        return n.inputs[i] == x && std::count(n.inputs.begin(), n.inputs.end(), x) == 1;
    };
    return n.op == &ops::nms::def() || n.op == &ops::proposals::def() ||
           (n.op == &ops::grid_sample::def() && isOnly(1)) ||
           (n.op == &ops::roi_align::def() && isOnly(ops::roi_align::kRois));
}

bool isCheap(ir::Node const& n)
{
    if (n.op->isCheap)
        return true;
    if (!ops::matrix_multiply::isBareProduct(n))
        return false;
    auto const& a = n.attrsAs<ops::matrix_multiply::Attrs>();
    ir::Shape const& x = n.inputs[0]->shape;
    return a.a != ops::matrix_multiply::MatrixOperation::kTranspose && !x.empty() && x.back().is(1);
}

Result<Precisions> choosePrecisions(ir::Graph const& g, PassContext const& ctx)
{
    return Chooser(g, ctx).run();
}

} // namespace tw::passes
