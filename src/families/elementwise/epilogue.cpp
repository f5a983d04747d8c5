// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/epilogue.h"

#include <algorithm>
#include <cmath>

#include "ir/infer.h"
#include "kernels/cpu/jit/pointwise.h"
#include "tactic/blocks.h"
#include "tactic/domain.h"
#include "tactic/reference.h"

namespace tw::ops {

namespace {

// Slope over largest value of activations with bounded results, 0 of others.
double steepness(FusedActivation const& f)
{
    using activation::Kind;
    double const alpha = std::fabs(f.alpha), beta = std::fabs(f.beta);
    switch (Kind(f.kind)) {
    case Kind::kSigmoid:
        return 0.25;
    case Kind::kTanh:
    case Kind::kSoftsign:
        return 1;
    case Kind::kClip:
        return 1 / std::max({alpha, beta, 1e-30});
    case Kind::kHardSigmoid:
        return alpha;
    case Kind::kScaledTanh:
        return beta;
    default:
        return 0;
    }
}

} // namespace

bool hasInput(ir::Node const& node, int input)
{
    return size_t(input) < node.inputs.size() && node.inputs[size_t(input)] != nullptr;
}

bool sumsIntegers(ir::Node const& node)
{
    return isQuantized(node.inputs[0]->type);
}

DataType Epilogue::typeOf(DataType factors) const
{
    if (outputType != kAsFactors)
        return DataType(outputType);
    return isQuantized(factors) ? DataType::kFloat : factors;
}

DataType biasType(ir::InferContext const& ctx)
{
    return isQuantized(ctx.type(0)) ? DataType::kFloat : ctx.type(0);
}

namespace {

std::string nameOfType(int32_t type)
{
    return type >= 0 && type < kDataTypeCount ? nameOf(DataType(type)) : std::to_string(type);
}

bool isOneNumber(ir::Shape const& s)
{
    return s.empty() || (s.size() == 1 && s[0].is(1));
}

// What stands beside sums of integers.
bool isEndType(DataType t)
{
    return isQuantized(t) || isFullFloat(t) || t == DataType::kHalf;
}

Result<void> checkIntegers(ir::InferContext& ctx, Epilogue const& epilogue, ir::Dim const& k)
{
    auto const out = DataType(epilogue.outputType);
    if (epilogue.outputType != Epilogue::kAsFactors && !isEndType(out))
        return ctx.error("output_type " + nameOfType(epilogue.outputType) +
                         " of i8 factors is not possible (allowed: i8, f32, f16)");
    for (int i : {Epilogue::kGamma, Epilogue::kBeta})
        if (ctx.has(i))
            return ctx.error("sums of i8 are not normalized, but there is " + ctx.describe(i));
    if (!ctx.has(Epilogue::kScale))
        return ctx.error("sums of i8 need a scale, input {}", Epilogue::kScale);
    if (k.isConst() && k.value() > kMostIntegerFactors)
        return ctx.error("a sum of {} products of i8 may need more than 32 bits (allowed: up to {} products); compute "
                         "this layer in f32 or f16",
                         k.str(), kMostIntegerFactors);
    return {};
}

constexpr int kScales[] = {Epilogue::kScale, Epilogue::kResidualScale, Epilogue::kOutputScale, Epilogue::kInnerScale};
constexpr int kIntegerInputs[] = {Epilogue::kScale, Epilogue::kResidualScale, Epilogue::kOutputScale,
                                  Epilogue::kInnerScale, Epilogue::kTable};

// Residual and scales of sums of i8.
Result<void> checkIntegerInputs(ir::InferContext& ctx, ir::Dim const& channels)
{
    constexpr int kResidual = Epilogue::kResidual;
    for (int i : kScales) {
        if (!ctx.has(i))
            continue;
        ir::Shape const& s = ctx.shape(i);
        char const* const name = i == Epilogue::kScale           ? "scale "
                                 : i == Epilogue::kResidualScale ? "residual scale "
                                 : i == Epilogue::kInnerScale    ? "inner scale "
                                                                 : "output scale ";
        bool const each = i == Epilogue::kScale && s.size() == 1 && (s[0] == channels || !channels.isConst());
        if (!isFullFloat(ctx.type(i)) || !(isOneNumber(s) || each))
            return ctx.error(name + ctx.describe(i) + " must be f32[1]" +
                             (i == Epilogue::kScale ? " or f32[" + channels.str() + "]" : ""));
    }
    bool const isInteger = ctx.has(kResidual) && isQuantized(ctx.type(kResidual));
    if (isInteger != ctx.has(Epilogue::kResidualScale))
        return ctx.error(
            isInteger
                ? fmt::format("residual {} needs a scale, input {}", ctx.describe(kResidual), Epilogue::kResidualScale)
                : "there is a residual scale, " + ctx.describe(Epilogue::kResidualScale) + ", but no residual of i8");
    DataType const out = ctx.outputs()[0].type;
    if (ctx.has(Epilogue::kTable) && !(isQuantized(out) && isQuantized(ctx.type(Epilogue::kTable)) &&
                                       ctx.rank(Epilogue::kTable) == 1 && ctx.shape(Epilogue::kTable)[0].is(256)))
        return ctx.error("table " + ctx.describe(Epilogue::kTable) + " must be i8[256], and the output i8");
    if (ctx.has(kResidual) && !isInteger && !isEndType(ctx.type(kResidual)))
        return ctx.error("residual " + ctx.describe(kResidual) + " must be i8, f32 or f16");
    if (ctx.has(kResidual) && !isInteger && isFloating(out) && ctx.type(kResidual) != out)
        return ctx.error("residual " + ctx.describe(kResidual) + " must be i8 or, as the output, " + nameOf(out));
    return {};
}

Result<void> checkSteps(ir::InferContext& ctx, Epilogue const& epilogue)
{
    if (std::string const why = checkStepNumbers(epilogue.steps, epilogue.parameters); !why.empty())
        return ctx.error(why);
    if (!epilogue.hasSteps())
        return {};
    if (isQuantized(ctx.type(0)) || epilogue.activation.any() || ctx.has(Epilogue::kGamma) || ctx.has(Epilogue::kBeta))
        return ctx.error("steps follow sums of floats, in place of an activation and without a norm");
    kernels::jit::PointwiseProgram const program{ctx.has(Epilogue::kResidual) ? 2 : 1, epilogue.expression()};
    if (std::string const why = kernels::jit::checkProgram(program); !why.empty())
        return ctx.error(why);
    return {};
}

} // namespace

Result<DataType> inferOutputType(ir::InferContext& ctx, Epilogue const& epilogue, ir::Dim const& k)
{
    DataType const factors = ctx.type(0);
    if (isQuantized(factors)) {
        TW_TRY(checkIntegers(ctx, epilogue, k));
        return epilogue.typeOf(factors);
    }
    if (epilogue.outputType != Epilogue::kAsFactors && epilogue.outputType != int32_t(factors))
        return ctx.error("output_type " + nameOfType(epilogue.outputType) + " must be that of the factors, " +
                         nameOf(factors));
    for (int i : kIntegerInputs)
        if (ctx.has(i))
            return ctx.error("only sums of i8 are scaled, but there is " + ctx.describe(i));
    return factors;
}

Result<void> inferEpilogue(ir::InferContext& ctx, Epilogue const& epilogue, ir::Dim const& channels)
{
    if (std::string const why = epilogue.activation.check(); !why.empty())
        return ctx.error(why);
    TW_TRY(checkSteps(ctx, epilogue));
    bool const integers = isQuantized(ctx.type(0));
    if (integers)
        TW_TRY(checkIntegerInputs(ctx, channels));
    if (!ctx.has(Epilogue::kResidual))
        return {};
    ir::Shape const &y = ctx.outputs()[0].shape, &r = ctx.shape(Epilogue::kResidual);
    bool fits = (integers || ctx.type(Epilogue::kResidual) == ctx.type(0)) && r.size() == y.size();
    for (size_t i = 0; fits && i < y.size(); ++i)
        fits = r[i] == y[i] || !(r[i].isConst() && y[i].isConst());
    return fits ? Result<void>()
                : ctx.error("residual " + ctx.describe(Epilogue::kResidual) + " must have the output's shape " +
                            ir::str(y));
}

Result<void> finishSteps(Epilogue const& epilogue, TensorRef const& y, TensorRef const& residual)
{
    constexpr int64_t kPart = 256;
    std::vector<ExpressionStep> const steps = epilogue.expression();
    std::vector<float> values(steps.size() * size_t(kPart));
    float sums[kPart], others[kPart];
    for (int64_t at = 0; at < y.count(); at += kPart) {
        int64_t const n = std::min(kPart, y.count() - at);
        std::vector<float const*> x{loadFloats(y.type, y.data, at, 1, n, sums)};
        if (residual.data)
            x.push_back(loadFloats(residual.type, residual.data, at, 1, n, others));
        float* const to = floatsAt(y.type, y.data, at, sums);
        TW_TRY(computeSteps(steps, x, to, values.data(), n));
        storeFloats(y.type, y.data, at, n, to);
    }
    return {};
}

void integerDomain(ir::Node const& node, Epilogue const& epilogue, int input, double k, Domain& domain)
{
    if (!sumsIntegers(node))
        return;
    bool const toInteger = isQuantized(epilogue.typeOf(DataType::kInt8));
    // t is near 1, or near 40 where it becomes an integer as it is; a product of two such factors near 5461.
    double const wanted = toInteger && !hasInput(node, Epilogue::kOutputScale) ? 40 : 1;
    // With an inner scale, sums and biases are near 40.
    double const inner = hasInput(node, Epilogue::kInnerScale) ? 40 : wanted;
    auto positive = [&](double about) { domain = {about / 2, about * 1.5, false, false}; };
    switch (input) {
    case 0:
    case 1:
        domain = {-128, 127, true, false};
        break;
    case Epilogue::kBias:
        domain = {-inner, inner, false, false};
        break;
    case Epilogue::kResidual:
        if (isQuantized(node.inputs[size_t(input)]->type))
            domain = {-128, 127, true, false};
        else
            domain = {-wanted, wanted, false, false};
        break;
    case Epilogue::kScale:
        positive(inner / 5461 / std::sqrt(std::max(k, 1.)));
        break;
    case Epilogue::kResidualScale:
        positive(wanted / 100);
        break;
    case Epilogue::kOutputScale:
        positive(toInteger ? 60 : 1);
        break;
    case Epilogue::kInnerScale:
        positive(wanted / 40);
        break;
    case Epilogue::kTable:
        domain = {-128, 127, true, false};
        break;
    default:
        break;
    }
}

namespace {

// By how much errors of sums, relative to the largest sum, are larger relative to the largest result: over sums up to
// `most` and a few residuals.
double amplification(std::vector<ExpressionStep> const& steps, bool residual, double most)
{
    constexpr int kParts = 256;
    if (!(most > 0))
        return 1;
    std::vector<double> values(steps.size());
    double slope = 0, largest = 1e-30;
    for (double r : {-1., -0.25, 0.5, 1.}) {
        double before = 0;
        for (int i = 0; i <= kParts; ++i) {
            double const sum = most * (2. * i / kParts - 1);
            double const* const x[] = {&sum, &r};
            double y = 0;
            if (!computeSteps(steps, std::span(x, residual ? 2 : 1), &y, values.data(), 1).ok() || !std::isfinite(y))
                continue;
            slope = i > 0 ? std::max(slope, std::fabs(y - before) * kParts / (2 * most)) : slope;
            largest = std::max(largest, std::fabs(y));
            before = y;
        }
    }
    return slope * most / largest;
}

} // namespace

bool epilogueIsNonNegative(ir::Node const& node, Epilogue const& epilogue)
{
    if (hasInput(node, Epilogue::kGamma) || hasInput(node, Epilogue::kTable))
        return false;
    std::vector<ExpressionStep> const steps = epilogue.expression();
    return epilogue.hasSteps() ? isNonNegative(steps, 2, [](size_t) { return false; })
                               : isNonNegative(epilogue.activation, false);
}

Tolerance epilogueTolerance(ir::Node const& node, Epilogue const& epilogue, DataType type,
                            std::function<double()> const& largestSquares)
{
    Tolerance t = Tolerance::forType(type);
    if (epilogue.hasSteps()) {
        t = {std::max(t.absolute, 5e-5), std::max(t.relative, 5e-5), t.integers}; // of several steps errors add up
        if (isFullFloat(type))
            t.absolute *= std::clamp(amplification(epilogue.expression(), hasInput(node, Epilogue::kResidual),
                                                   4 * std::sqrt(largestSquares() / 3)),
                                     1., 100.);
        return t;
    }
    double const steep = steepness(epilogue.activation);
    if (steep != 0 && isFullFloat(type))
        t.absolute *= std::clamp(4 * std::sqrt(largestSquares() / 3) * steep, 1., 100.);
    return t;
}

Tolerance integerTolerance(Epilogue const& epilogue, DataType type)
{
    using activation::Kind;
    auto isOne = [&](auto... kinds) { return ((epilogue.activation.kind == int32_t(kinds)) || ...); };
    if (!epilogue.activation.any() || isOne(Kind::kRelu, Kind::kClip, Kind::kLeakyRelu, Kind::kThresholdedRelu))
        return {0, 0};
    Tolerance t = Tolerance::forType(type);
    t.integers = 1;
    return t;
}

ReferenceEnd::ReferenceEnd(RefContext& ctx, Epilogue const& epilogue) : ctx_(ctx), epilogue_(epilogue)
{
    if (sumsIntegers(ctx.node()))
        steps_ = Tensor(DataType::kFloat, ctx.out().dims);
}

double ReferenceEnd::begin(int64_t k) const
{
    return !steps_.data() && ctx_.has(Epilogue::kBias) ? ctx_.in(Epilogue::kBias).get(k) : 0.0;
}

void ReferenceEnd::put(int64_t element, int64_t k, double sum) const
{
    if (steps_.data())
        steps_.ref().set(element, scaled(element, k, sum));
    else
        ctx_.out().set(element, sum);
}

float ReferenceEnd::scaled(int64_t element, int64_t k, double sum) const
{
    TensorRef const& scale = ctx_.in(Epilogue::kScale);
    float t = float(sum) * scale.as<float>()[scale.count() == 1 ? 0 : k];
    if (ctx_.has(Epilogue::kBias))
        t = t + ctx_.in(Epilogue::kBias).as<float>()[k];
    if (ctx_.has(Epilogue::kInnerScale))
        t = (std::isnan(t) ? 0 : std::clamp(std::nearbyint(t), -128.f, 127.f)) *
            ctx_.in(Epilogue::kInnerScale).as<float>()[0];
    if (!ctx_.has(Epilogue::kResidual))
        return t;
    auto r = float(ctx_.in(Epilogue::kResidual).get(element));
    if (ctx_.has(Epilogue::kResidualScale))
        r = r * ctx_.in(Epilogue::kResidualScale).as<float>()[0];
    return t + r;
}

double ReferenceEnd::inTable(double integer) const
{
    return ctx_.has(Epilogue::kTable) ? ctx_.in(Epilogue::kTable).get(int64_t(integer) + 128) : integer;
}

Result<void> ReferenceEnd::finish() const
{
    TensorRef const& y = ctx_.out();
    if (epilogue_.hasSteps()) {
        std::vector<ExpressionStep> const steps = epilogue_.expression();
        std::vector<double> values(steps.size());
        Result<void> done;
        ctx_.forEachWanted([&](int64_t i) {
            double const sum = y.get(i), r = ctx_.has(Epilogue::kResidual) ? ctx_.in(Epilogue::kResidual).get(i) : 0;
            double const* const x[] = {&sum, &r};
            double result = 0;
            if (auto computed =
                    computeSteps(steps, std::span(x, ctx_.has(Epilogue::kResidual) ? 2 : 1), &result, values.data(), 1);
                !computed.ok())
                done = std::move(computed);
            y.set(i, result);
        });
        return done;
    }
    if (!steps_.data()) {
        if (ctx_.has(Epilogue::kResidual))
            ctx_.forEachWanted([&](int64_t i) { y.set(i, y.get(i) + ctx_.in(Epilogue::kResidual).get(i)); });
        return activateReference(epilogue_.activation, y, ctx_.wantedElements());
    }
    TW_TRY(activateReference(epilogue_.activation, steps_.ref(), ctx_.wantedElements()));
    ctx_.forEachWanted([&](int64_t i) {
        float t = steps_.ref().as<float>()[i];
        if (ctx_.has(Epilogue::kOutputScale))
            t = t * ctx_.in(Epilogue::kOutputScale).as<float>()[0];
        if (isQuantized(y.type))
            y.set(i, inTable(std::isnan(t) ? 0 : std::clamp(std::nearbyint(t), -128.f, 127.f)));
        else
            y.set(i, t);
    });
    return {};
}

IntegerEnd::IntegerEnd(Epilogue const& epilogue, std::span<TensorRef const> inputs, TensorRef const& y)
    : activation_(epilogue.activation), y_(y)
{
    auto optional = [&](size_t i) { return i < inputs.size() ? inputs[i] : TensorRef{}; };
    residual_ = optional(Epilogue::kResidual);
    scale_ = inputs[Epilogue::kScale].as<float>();
    isOneScale_ = inputs[Epilogue::kScale].count() == 1;
    bias_ = optional(Epilogue::kBias).as<float>();
    residualScale_ = optional(Epilogue::kResidualScale).as<float>();
    outputScale_ = optional(Epilogue::kOutputScale).as<float>();
    innerScale_ = optional(Epilogue::kInnerScale).as<float>();
    table_ = optional(Epilogue::kTable).as<int8_t>();
}

void IntegerEnd::store(int32_t const* sums, int64_t n, int64_t at, int64_t k, int64_t kStep) const
{
    float buffer[kBlock], residual[kBlock];
    for (int64_t done = 0; done < n; done += kBlock) {
        int64_t const m = std::min(kBlock, n - done), first = k + done * kStep;
        float* const t = floatsAt(y_.type, y_.data, at + done, buffer);
        float const* const scale = scale_ + (isOneScale_ ? 0 : first);
        int64_t const scaleStep = isOneScale_ ? 0 : kStep;
        for (int64_t i = 0; i < m; ++i)
            t[i] = float(sums[done + i]) * scale[i * scaleStep];
        if (bias_)
            for (int64_t i = 0; i < m; ++i)
                t[i] += bias_[first + i * kStep];
        if (innerScale_)
            for (int64_t i = 0; i < m; ++i)
                t[i] = (std::isnan(t[i]) ? 0 : std::clamp(std::nearbyint(t[i]), -128.f, 127.f)) * *innerScale_;
        if (residual_.data) {
            float const* const r = loadFloats(residual_.type, residual_.data, at + done, 1, m, residual);
            float const by = residualScale_ ? *residualScale_ : 1.0f;
            for (int64_t i = 0; i < m; ++i)
                t[i] += r[i] * by;
        }
        if (activation_.any())
            activate(activation_, t, t, m);
        if (outputScale_)
            for (int64_t i = 0; i < m; ++i)
                t[i] *= *outputScale_;
        storeFloats(y_.type, y_.data, at + done, m, t);
        if (table_)
            for (int8_t *y = y_.as<int8_t>() + at + done, *end = y + m; y < end; ++y)
                *y = table_[*y + 128];
    }
}

} // namespace tw::ops
