// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/op.h"

#include <cmath>
#include <limits>

#include "tactic/broadcast.h"
#include "tactic/cases.h"
#include "tactic/registry.h"

namespace tw::ops::elementwise {

namespace {

using ir::Dim;
using ir::DimOp;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

char const* const kNames[kOperationCount] = {"sum",       "prod", "max", "min", "sub",   "div",     "pow",
                                             "floor_div", "and",  "or",  "xor", "equal", "greater", "less"};

// One element of shape arithmetic; nothing when the value cannot be told.
std::optional<Dim> combine(ir::InferContext const& ctx, Operation operation, Dim const& a, Dim const& b)
{
    std::optional<Dim> result;
    switch (operation) {
    case Operation::kSum:
        result = a + b;
        break;
    case Operation::kSub:
        result = a - b;
        break;
    case Operation::kProd:
    case Operation::kAnd:
        result = a * b;
        break;
    case Operation::kMax:
    case Operation::kOr:
        result = max(a, b);
        break;
    case Operation::kMin:
        result = min(a, b);
        break;
    case Operation::kXor:
        result = a + b - Dim(2) * a * b;
        break;
    case Operation::kEqual:
        result = Dim::make(DimOp::kEqual, a, b);
        break;
    case Operation::kGreater:
        result = Dim::make(DimOp::kLess, b, a);
        break;
    case Operation::kLess:
        result = Dim::make(DimOp::kLess, a, b);
        break;
    case Operation::kDiv:
    case Operation::kFloorDiv: {
        if (b.is(0)) {
            result = Dim(0);
            break;
        }
        ir::Range const ra = ctx.range(a), rb = ctx.range(b);
        if (rb.lo <= 0 && rb.hi >= 0)
            return std::nullopt; // the divisor may be 0
        bool const positive = ra.lo >= 0 && rb.lo > 0;
        if (operation == Operation::kFloorDiv || positive)
            result = floorDiv(a, b);
        else // truncation
            result = max(floorDiv(a, b), 0) + min(ceilDiv(a, b), 0);
        break;
    }
    case Operation::kPow:
        return std::nullopt;
    }
    if (result->isConst()) // as an i32 store does
        result = Dim(int64_t(int32_t(uint32_t(uint64_t(result->value())))));
    return result;
}

void inferContent(ir::InferContext& ctx, Operation operation, ir::Shape const& shape)
{
    auto const *a = ctx.content(0), *b = ctx.content(1);
    if (!a || !b)
        return;
    ContentMap const map = contentMap(ctx, shape, 2);
    if (!map.known)
        return;
    std::vector<Dim> out;
    for (size_t i = 0; i < map.from[0].size(); ++i) {
        size_t const ai = size_t(map.from[0][i]), bi = size_t(map.from[1][i]);
        if (ai >= a->size() || bi >= b->size())
            return;
        auto element = combine(ctx, operation, (*a)[ai], (*b)[bi]);
        if (!element)
            return;
        out.push_back(std::move(*element));
    }
    ctx.outputContent(0, std::move(out));
}

Result<void> infer(ir::InferContext& ctx)
{
    Operation const operation = ctx.attrs<Attrs>().operation;
    if (int(operation) < 0 || int(operation) >= kOperationCount)
        return ctx.error("there is no element-wise operation " + std::to_string(int(operation)) + " (allowed: 0.." +
                         std::to_string(kOperationCount - 1) + ")");
    std::string const name = kNames[int(operation)];
    DataType const a = ctx.type(0), b = ctx.type(1);
    if (a != b && !(isFloating(a) && isFloating(b)))
        return ctx.error(ctx.describe(0) + " and " + ctx.describe(1) + " must have one type, or be f32 and f16");
    for (int i = 0; i < 2; ++i) {
        DataType const t = ctx.type(i);
        if (isLogic(operation)) {
            if (t != DataType::kBool)
                return ctx.error(ctx.describe(i) + " of operation " + name + " must be b");
        } else if (!isFloating(t) && t != DataType::kInt8 && !(t == DataType::kInt32 && operation != Operation::kPow)) {
            return ctx.error(ctx.describe(i) + " of operation " + name + " must be f32, f16" +
                             (operation == Operation::kPow ? " or i8" : ", i8 or i32") +
                             "; convert it with an identity layer");
        }
    }
    TW_ASSIGN(ir::Shape shape, broadcastInputs(ctx, 2));
    DataType type = a == b ? a : DataType::kFloat;
    if (isComparison(operation))
        type = DataType::kBool;
    ctx.output(0, type, shape);
    inferContent(ctx, operation, shape);
    return {};
}

void domain(ir::Node const& node, int i, Domain& d)
{
    DataType const type = node.inputs[0]->type;
    if (type == DataType::kInt8)
        d = Domain{-128, 127, true, false};
    else if (isFloating(type) && node.attrsAs<Attrs>().operation == Operation::kPow)
        d = i == 0 ? Domain{0.1, 2, false, false} : Domain{-2, 2, false, false};
    else if (isFloating(type) && isComparison(node.attrsAs<Attrs>().operation))
        d = Domain{-3, 3, true, false}; // so that equal elements occur
}

[[gnu::cold]] void cases(CaseList& list)
{
    auto byHand = [&](std::string suffix, DataType type, Operation o, std::vector<double> a, std::vector<double> b,
                      std::vector<double> y) {
        Extents const e{int64_t(a.size())};
        list.add(kNames[int(o)] + suffix, Attrs(o), {input(type, e, std::move(a)), input(type, e, std::move(b))},
                 {std::move(y)});
    };
    using O = Operation;
    auto real = [&](O o, std::vector<double> y) {
        byHand("_by_hand", DataType::kFloat, o, {5, -7, 2, kNan, 1, kInf, -1}, {2, 2, 2, 1, kNan, -kInf, 0},
               std::move(y));
    };
    real(O::kSum, {7, -5, 4, kNan, kNan, kNan, -1});
    real(O::kProd, {10, -14, 4, kNan, kNan, -kInf, 0});
    real(O::kMax, {5, 2, 2, kNan, kNan, kInf, 0});
    real(O::kMin, {2, -7, 2, kNan, kNan, -kInf, -1});
    real(O::kSub, {3, -9, 0, kNan, kNan, kInf, -1});
    real(O::kDiv, {2.5, -3.5, 1, kNan, kNan, kNan, -kInf});
    real(O::kPow, {25, 49, 4, kNan, 1, 0, 1});
    real(O::kFloorDiv, {2, -4, 1, kNan, kNan, kNan, -kInf});
    real(O::kEqual, {0, 0, 1, 0, 0, 0, 0});
    real(O::kGreater, {1, 0, 0, 0, 0, 1, 0});
    real(O::kLess, {0, 1, 0, 0, 0, 0, 1});
    double const lo = -2147483648.0, hi = 2147483647.0;
    auto whole = [&](O o, std::vector<double> y) {
        byHand("_i32_by_hand", DataType::kInt32, o, {7, -7, 7, -7, 5, lo, hi}, {2, 2, -2, -2, 0, -1, 1}, std::move(y));
    };
    whole(O::kSum, {9, -5, 5, -9, 5, hi, lo});
    whole(O::kProd, {14, -14, -14, 14, 0, lo, hi});
    whole(O::kMax, {7, 2, 7, -2, 5, -1, hi});
    whole(O::kMin, {2, -7, -2, -7, 0, lo, 1});
    whole(O::kSub, {5, -9, 9, -5, 5, lo + 1, hi - 1});
    whole(O::kDiv, {3, -3, -3, 3, 0, lo, hi});
    whole(O::kFloorDiv, {3, -4, -4, 3, 0, lo, hi});
    whole(O::kEqual, {0, 0, 0, 0, 0, 0, 0});
    whole(O::kGreater, {1, 0, 1, 0, 1, 0, 1});
    whole(O::kLess, {0, 1, 0, 1, 0, 1, 0});
    auto small = [&](O o, std::vector<double> y) {
        byHand("_i8_by_hand", DataType::kInt8, o, {100, -100, 7, -7, 5, -128, 2}, {50, 50, 2, 2, 0, -1, -1},
               std::move(y));
    };
    small(O::kSum, {127, -50, 9, -5, 5, -128, 1});
    small(O::kProd, {127, -128, 14, -14, 0, 127, -2});
    small(O::kSub, {50, -128, 5, -9, 5, -127, 3});
    small(O::kDiv, {2, -2, 4, -4, 0, 127, -2}); // 3.5 to 4, -3.5 to -4
    small(O::kFloorDiv, {2, -2, 3, -4, 0, 127, -2});
    small(O::kPow, {127, 127, 49, 49, 1, 0, 0});
    for (O o : {O::kAnd, O::kOr, O::kXor}) {
        bool const isAnd = o == O::kAnd, isXor = o == O::kXor;
        byHand("_by_hand", DataType::kBool, o, {0, 0, 1, 1}, {0, 1, 0, 1},
               {0, double(!isAnd), double(!isAnd), double(!isXor)});
    }
    list.add("broadcast_by_hand", Attrs(O::kSub), {f32({2, 1}, {10, 20}), f32({1, 3}, {1, 2, 3})},
             {{9, 8, 7, 19, 18, 17}});
    list.add("mixed_by_hand", Attrs(O::kSum), {f32({2}, {0.25, 1}), input(DataType::kHalf, {2}, {0.5, 2})},
             {{0.75, 3}});
    list.add("mixed_other_way", Attrs(O::kProd), {input(DataType::kHalf, {3, 100}), f32({1, 100})});
    list.add("mixed_less", Attrs(O::kLess), {input(DataType::kHalf, {3, 100}), f32({1, 100})});
    for (int k = 0; k < kOperationCount; ++k) {
        Attrs const a{O(k)};
        std::string const name = kNames[k];
        if (isLogic(a.operation)) {
            list.add(name, a, {input(DataType::kBool, {3, 100}), input(DataType::kBool, {3, 100})});
            list.add(name + "_broadcast", a, {input(DataType::kBool, {3, 100}), input(DataType::kBool, {3, 1})});
            continue;
        }
        for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8, DataType::kInt32}) {
            if (t == DataType::kInt32 && a.operation == O::kPow)
                continue;
            std::string const suffix = std::string("_") + nameOf(t);
            list.add(name + suffix, a, {input(t, {2, 3, 89}), input(t, {2, 3, 89})});
            list.add(name + suffix + "_channel", a, {input(t, {2, 3, 5, 7}), input(t, {1, 3, 1, 1})});
            list.add(name + suffix + "_outer", a, {input(t, {4, 1, 3}), input(t, {1, 5, 3})});
        }
    }
    // Exponents with loops of their own.
    std::pair<double, std::vector<double>> const powers[] = {{2, {9, 0, kInf, 2.25, kNan}},
                                                             {3, {-27, -0.0, -kInf, 3.375, kNan}},
                                                             {1, {-3, -0.0, -kInf, 1.5, kNan}},
                                                             {-1, {-1.0 / 3, -kInf, -0.0, 2.0 / 3, kNan}},
                                                             {0.5, {kNan, 0, kInf, std::sqrt(1.5), kNan}},
                                                             {-0.5, {kNan, kInf, 0, 1 / std::sqrt(1.5), kNan}},
                                                             {1.5, {kNan, 0, kInf, 1.5 * std::sqrt(1.5), kNan}}};
    for (auto const& [e, y] : powers)
        for (DataType t : {DataType::kFloat, DataType::kHalf})
            list.add("pow_" + std::to_string(e) + "_" + nameOf(t), Attrs(O::kPow),
                     {input(t, {5}, {-3, -0.0, -kInf, 1.5, kNan}), input(t, {1}, {e})}, {y});
    list.add("pow_long_row", Attrs(O::kPow), {f32({2, 16400}), f32({1, 1}, {0.5})});
    list.add("pow_many_rows", Attrs(O::kPow), {f32({700, 3}), f32({700, 1})});
    list.add("both_sides", Attrs(O::kSum), {f32({2, 1, 3, 1}), f32({1, 4, 1, 5})});
    list.add("scalar", Attrs(O::kSum), {f32({}), f32({})});
    list.add("ones", Attrs(O::kSum), {f32({1, 1}), f32({1, 1})});
    list.add("empty", Attrs(O::kSum), {f32({2, 0, 3}), f32({1, 1, 3})});
    list.add("empty_by_broadcast", Attrs(O::kMax), {f32({2, 1}), f32({1, 0})});
    // Images in FP16: an operand for each element, channel, pixel, image, and one in all.
    DataType const h = DataType::kHalf;
    for (Extents const& e :
         {Extents{2, 24, 3, 5}, {1, 24, 1, 1}, {2, 24, 1, 1}, {2, 1, 3, 5}, {1, 1, 3, 5}, {2, 1, 1, 1}, {1, 1, 1, 1}})
        list.add("half_image_" + e.str(), Attrs(O::kSum), {input(h, {2, 24, 3, 5}), input(h, e)});
    list.add("half_image_tail", Attrs(O::kProd), {input(h, {2, 19, 3, 5}), input(h, {2, 19, 3, 5})});
    list.add("half_image_tail_stretched", Attrs(O::kProd), {input(h, {2, 19, 3, 5}), input(h, {2, 19, 1, 1})});
    list.add("half_image_constant", Attrs(O::kSub), {input(h, {2, 16, 3, 5}), constant(h, {1, 16, 1, 1})});
    list.add("long_row", Attrs(O::kProd), {input(DataType::kHalf, {2, 700}), input(DataType::kHalf, {2, 1})});
}

} // namespace

ir::OpDef const& def()
{
    static constexpr ir::OpDef kDef{
        .name = "elementwise",
        .minInputs = 2,
        .maxInputs = 2,
        .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<Attrs>()); },
        .infer = infer,
        .reference = reference,
        .domain = domain,
        .cases = cases,
        .cpuTactics = cpuTactics,
        .cudaTactics = cudaTactics,
        .isElementwise = true,
        .isCheap = true,
    };
    return kDef;
}

} // namespace tw::ops::elementwise
