// SPDX-License-Identifier: Apache-2.0
// Unique: of n elements, or of n slices along an axis, those that differ. Each is compared with each, so that n is bounded.
//   before[i, j] = (slice i in front of slice j), same[i, j] = (they are equal)
//   isFirst[i] = there is no j < i with same[i, j]; the unique ones are those with isFirst, in their order
//   rank[i] = number of j with isFirst[j] that come before i: in sorted order, or with j < first(i) in the order of the input
#include <algorithm>

#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using nvinfer1::GatherMode;
using nvinfer1::ReduceOperation;
using Op = nvinfer1::ElementWiseOperation;

constexpr int64_t kMostCompared = int64_t(1) << 24; // numbers of the comparison of all with all

ITensor& asInt(ImportContext& ctx, ITensor& truth)
{
    return ctx.cast(truth, DataType::kINT32);
}

struct Comparison
{
    ITensor *same, *before; // [n, n]: 0 or 1
};

// x [n, m]. Rows are compared as words are: m minus the first place where they differ is the largest number among
// [differ at k] (m - k), and there the sign of the difference says which comes first.
Comparison compare(ImportContext& ctx, ITensor& x, int64_t m)
{
    ITensor &a = ctx.unsqueeze(x, {1}), &b = ctx.unsqueeze(x, {0}); // [n, 1, m], [1, n, m]
    ITensor* less = &asInt(ctx, ctx.elementwise(a, b, Op::kLESS));
    ITensor* equal = &asInt(ctx, ctx.elementwise(a, b, Op::kEQUAL));
    if (isFloating(x.getType())) { // NaN is equal to NaN and behind all numbers
        auto isNan = [&](ITensor& t) -> ITensor& {
            return asInt(ctx, ctx.unary(ctx.elementwise(t, t, Op::kEQUAL), nvinfer1::UnaryOperation::kNOT));
        };
        ITensor &nanB = isNan(b), &both = ctx.elementwise(isNan(a), nanB, Op::kPROD);
        less = &ctx.elementwise(*less, ctx.elementwise(nanB, both, Op::kSUB), Op::kSUM);
        equal = &ctx.elementwise(*equal, both, Op::kSUM);
    }
    ITensor& differs = ctx.elementwise(ctx.scalarLike(1, *equal), *equal, Op::kSUB);
    std::vector<int64_t> weights;
    for (int64_t k = 0; k < m; ++k)
        weights.push_back(m - k);
    ITensor& weight = ctx.asTensor(Value(ctx.reshaped(ctx.intConstant(weights), Dims{3, {1, 1, int32_t(m)}})));
    auto largest = [&](ITensor& t) -> ITensor& {
        return ctx.reduce(ctx.elementwise(t, weight, Op::kPROD), ReduceOperation::kMAX, {2}, false);
    };
    ITensor &first = largest(differs), &firstLess = largest(*less);
    ITensor& none = ctx.scalarLike(0, first);
    ITensor& isLess = ctx.elementwise(ctx.elementwise(first, firstLess, Op::kEQUAL),
                                      ctx.elementwise(first, none, Op::kGREATER), Op::kAND);
    return {&asInt(ctx, ctx.elementwise(first, none, Op::kEQUAL)), &asInt(ctx, isLess)};
}

void importUnique(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    Dims const d = x.getDimensions();
    ctx.check(isStatic(d), "input of shape " + describe(d) + ": its sizes must be known");
    ctx.check(x.getType() != DataType::kBOOL, "truth values cannot be imported");
    bool const hasAxis = ctx.hasAttr("axis");
    if (hasAxis && d.nbDims == 0)
        ctx.invalid("a scalar has no axis");
    int const axis = hasAxis ? ctx.axis(ctx.attrInt("axis", 0), d.nbDims) : 0;
    int64_t const all = volume(d), n = hasAxis ? d.d[axis] : all, m = n == 0 ? 0 : all / n;
    ctx.check(n > 0 && m > 0, "input of shape " + describe(d) + " has no elements");
    ctx.check(
        n <= 4096 && n * n <= kMostCompared / m,
        fmt::format(
            "{} {} of {} numbers are more than are compared, each with each: at most 4096, and 2^24 numbers in all", n,
            hasAxis ? "slices" : "elements", m));
    ITensor* rows = &x;
    std::vector<int> perm = allAxes(d.nbDims);
    if (hasAxis) {
        std::rotate(perm.begin(), perm.begin() + axis, perm.begin() + axis + 1);
        rows = &ctx.transpose(x, perm);
    }
    rows = &ctx.reshape(*rows, Dims{2, {int32_t(n), int32_t(m)}});
    Comparison const c = compare(ctx, *rows, m);

    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < n; ++i)
        numbers.push_back(i);
    ITensor& index = ctx.asTensor(Value(ctx.intConstant(numbers))); // [n]
    ITensor& column = ctx.reshape(index, Dims{2, {int32_t(n), 1}});
    ITensor& row = ctx.reshape(index, Dims{2, {1, int32_t(n)}});
    auto sums = [&](ITensor& t, int over) -> ITensor& { return ctx.reduce(t, ReduceOperation::kSUM, {over}, false); };
    auto both = [&](ITensor& a, ITensor& b) -> ITensor& { return ctx.elementwise(a, b, Op::kPROD); };
    // The place of the first equal one, which is what comes later than nothing equal.
    ITensor& isEarlier = asInt(ctx, ctx.elementwise(row, column, Op::kLESS)); // j < i
    ITensor& earlier = sums(both(*c.same, isEarlier), 1);
    ITensor& isFirst = ctx.elementwise(earlier, ctx.scalarLike(0, earlier), Op::kEQUAL); // [n]
    ITensor& firstRow = ctx.reshape(asInt(ctx, isFirst), Dims{2, {1, int32_t(n)}});
    bool const sorted = ctx.attrInt("sorted", 1) != 0;
    ITensor* rank = nullptr;
    if (sorted) {
        rank = &sums(both(ctx.transpose(*c.before, {1, 0}), firstRow), 1); // j before i
    } else {
        ITensor& beyond = ctx.scalarLike(double(n), *c.same);
        ITensor& places = ctx.select(ctx.elementwise(*c.same, ctx.scalarLike(0, *c.same), Op::kGREATER),
                                     ctx.expand(row, Sizes{n, n}), ctx.expand(beyond, Sizes{n, n}));
        ITensor& first = ctx.reduce(places, ReduceOperation::kMIN, {1}, true);               // [n, 1]
        rank = &sums(both(asInt(ctx, ctx.elementwise(row, first, Op::kLESS)), firstRow), 1); // firsts in front of i's
    }
    // What the run finds: the firsts, [u], and which of them stands at each place of the result.
    ITensor& firsts = ctx.squeeze(ctx.out(ctx.added(ctx.network().addNonZero(isFirst))), {0});
    ITensor* order = &firsts;
    if (sorted) {
        ITensor& ranks = ctx.gather(*rank, firsts, GatherMode::kDEFAULT, 0);
        order = &ctx.out(ctx.added(ctx.network().addScatter(firsts, ranks, firsts, nvinfer1::ScatterMode::kELEMENT)));
    }
    ITensor& y = ctx.gather(hasAxis ? x : *rows, *order, GatherMode::kDEFAULT, hasAxis ? axis : 0);
    ctx.setOutput(0, Value(hasAxis ? y : ctx.squeeze(y, {1}), ctx.input(0).integers()));
    ctx.setOutput(1, *order);
    ctx.setOutput(2, *rank);
    ctx.setOutput(3, ctx.gather(sums(*c.same, 1), *order, GatherMode::kDEFAULT, 0));
}

} // namespace

void register_composites_unique(ImporterMap& map)
{
    map.add("Unique", importUnique);
}

} // namespace tw::onnx
