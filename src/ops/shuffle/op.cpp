// SPDX-License-Identifier: Apache-2.0
#include "ops/shuffle/op.h"

#include <algorithm>
#include <optional>

#include "ir/signs.h"
#include "tactic/layer_facts.h"
#include "tactic/registry.h"

namespace tw::ops::shuffle {

namespace {

using ir::Dim;
using ir::Shape;

std::string checkPermutation(std::vector<int64_t> const& permutation, size_t rank)
{
    if (permutation.empty())
        return {};
    if (permutation.size() != rank)
        return fmt::format("has {} entries for a tensor of rank {}", permutation.size(), rank);
    std::vector<bool> seen(rank);
    for (int64_t p : permutation) {
        if (p < 0 || p >= int64_t(rank) || seen[size_t(p)])
            return fmt::format("is no permutation of 0..{}: {} is out of range or given twice", int64_t(rank) - 1, p);
        seen[size_t(p)] = true;
    }
    return {};
}

template <class T>
std::vector<T> permute(std::vector<T> const& v, std::vector<int64_t> const& permutation)
{
    if (permutation.empty())
        return v;
    std::vector<T> out;
    for (int64_t p : permutation)
        out.push_back(v[size_t(p)]);
    return out;
}

// The product of `others` times the unknown dimension is `total`.
Result<Dim> solveWildcard(ir::InferContext& ctx, Dim const& total, Dim const& others, Shape const& from)
{
    if (others.is(0))
        return ctx.error(
            "the dimension -1 cannot be inferred: the other reshape dimensions have volume 0 (the input has " +
            str(from) + "); give the dimension itself");
    if (others.isConst() && total.isConst() && total.value() % others.value() != 0)
        return ctx.error("the dimension -1 cannot be inferred: volume " + total.str() + " of the input " + str(from) +
                         " is no multiple of " + others.str() + ", the volume of the other reshape dimensions");
    return floorDiv(total, others);
}

// A reshape dimension that nobody knows: any size up to the volume.
Dim unknownDim(ir::InferContext& ctx, Dim const& total)
{
    return ctx.freshSymbol({0, std::clamp<int64_t>(ctx.range(total).hi, 1, INT32_MAX)});
}

Result<Shape> reshapeTo(ir::InferContext& ctx, Shape const& c, std::vector<Dim> const& wanted)
{
    Dim const total = volume(c);
    bool const placeholder = ctx.attrs<Attrs>().zeroIsPlaceholder;
    Shape r;
    int wildcard = -1;
    Dim others = 1;
    for (size_t i = 0; i < wanted.size(); ++i) {
        Dim d = wanted[i];
        ir::Range const range = ctx.range(d);
        std::string const where = fmt::format("reshape dimension {}", i);
        if (d.is(-1)) {
            if (wildcard >= 0)
                return ctx.error(where + " is the second -1 (one is allowed)");
            wildcard = int(i);
            r.emplace_back(0);
            continue;
        }
        if (range.hi < -1 || range.lo > INT32_MAX)
            return ctx.error(where + " is " + d.str() + " (allowed: -1, 0 and sizes up to 2^31 - 1)");
        if (d.is(0) && placeholder) {
            if (i >= c.size())
                return ctx.error("{} is 0, which copies dimension {} of the input {}, but that has rank {} (set "
                                 "zeroIsPlaceholder to false for a size of zero)",
                                 where, i, str(c), c.size());
            d = c[i];
        } else if (!d.isConst() && range.lo < 0 && std::find(c.begin(), c.end(), d) == c.end()) {
            d = unknownDim(ctx, total); // may turn out to be -1, unlike the input's dimensions, whatever their formulas
        } else if (placeholder && range.lo <= 0 && range.hi < INT32_MAX && i < c.size() && !(d == c[i])) {
            // May turn out to be 0 and then copies. (Without a real upper bound no profile has set the range yet; sizes
            // are taken as positive until then.)
            d = d + Dim::make(ir::DimOp::kEqual, d, 0) * c[i];
        }
        others = others * d;
        r.push_back(d);
    }
    if (wildcard >= 0) {
        TW_ASSIGN(r[size_t(wildcard)], solveWildcard(ctx, total, others, c));
    } else if (total.isConst() && others.isConst() && !(total == others)) {
        return ctx.error("cannot reshape " + str(c) + " (volume " + total.str() + ") to " + str(r) + " (volume " +
                         others.str() + ")");
    }
    return r;
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    Shape const& x = ctx.shape(0);
    if (std::string why = checkPermutation(a.firstTranspose, x.size()); !why.empty())
        return ctx.error("the first transpose of " + ctx.describe(0) + " " + why);
    Shape const c = permute(x, a.firstTranspose);
    Shape r = c;
    if (ctx.has(1)) {
        if (ctx.type(1) != DataType::kInt32 || ctx.rank(1) != 1 || !ctx.shape(1)[0].isConst())
            return ctx.error("reshape dimensions " + ctx.describe(1) +
                             " must be an i32 tensor of one dimension with known size");
        int64_t const rank = ctx.shape(1)[0].value();
        if (rank > kMaxRank)
            return ctx.error("reshape dimensions {} are more than {}", ctx.describe(1), kMaxRank);
        if (auto const* wanted = ctx.content(1)) {
            TW_ASSIGN(r, reshapeTo(ctx, c, *wanted));
        } else if (ctx.concrete()) {
            return ctx.error("the elements of reshape dimensions " + ctx.describe(1) + " are not known");
        } else {
            r.clear();
            for (int64_t i = 0; i < rank; ++i)
                r.push_back(unknownDim(ctx, volume(c)));
        }
    } else if (a.hasReshape) {
        if (a.reshape.size() > size_t(kMaxRank))
            return ctx.error("{} reshape dimensions are given, the limit is {}", a.reshape.size(), kMaxRank);
        TW_ASSIGN(r, reshapeTo(ctx, c, std::vector<Dim>(a.reshape.begin(), a.reshape.end())));
    }
    if (std::string why = checkPermutation(a.secondTranspose, r.size()); !why.empty())
        return ctx.error("the second transpose " + why);
    bool const fixed = isStatic(x) && isStatic(r);
    ctx.output(0, ctx.type(0), permute(r, a.secondTranspose));
    auto const* content = ctx.content(0);
    if (!content)
        return {};
    if (a.firstTranspose.empty() && a.secondTranspose.empty()) {
        ctx.outputContent(0, *content);
    } else if (fixed && volume(r).is(int64_t(content->size()))) {
        auto move = [](std::vector<Dim> const& from, Extents const& dims, std::vector<int64_t> const& permutation) {
            if (permutation.empty() || from.empty())
                return from;
            Extents const strides = stridesOf(dims);
            Extents reordered;
            for (int64_t p : permutation)
                reordered.push(strides[int(p)]);
            std::vector<Dim> to;
            Counter at(permuted(dims, permutation));
            do
                to.push_back(from[size_t(at.offset(reordered))]);
            while (at.next());
            return to;
        };
        std::vector<Dim> const reshaped = move(*content, extentsOf(x), a.firstTranspose);
        ctx.outputContent(0, move(reshaped, extentsOf(r), a.secondTranspose));
    }
    return {};
}

// Whether a permutation of these dimensions leaves the elements in their order: only dimensions of size 1 move.
template <class Dims>
bool keepsOrder(Dims const& from, std::vector<int64_t> const& permutation)
{
    int64_t last = -1;
    for (int64_t p : permutation) {
        if (from[size_t(p)] == 1)
            continue;
        if (p < last)
            return false;
        last = p;
    }
    return true;
}

// Of a tensor whose elements lie without gaps, or with those that another has, too: its dimensions, the outermost in memory first.
std::optional<std::vector<int>> orderInMemory(TensorRef const& t, bool mayHaveGaps)
{
    std::vector<int> order;
    bool const byPixel = t.format == Format::kChannelsLast;
    if ((!byPixel && t.format != Format::kLinear) ||
        (byPixel && (t.dims.rank < 3 || (!mayHaveGaps && t.pixelStride() != t.dims[1]))))
        return {};
    for (int d = 0; d < t.dims.rank; ++d)
        if (!byPixel || d != 1)
            order.push_back(d);
    if (byPixel)
        order.push_back(1);
    return order;
}

// What a reshape takes apart and puts together, in order: each is a factor of one dimension before it and of one after it.
struct Factor
{
    int before, after;
};
std::optional<std::vector<Factor>> factorsOf(Extents const& before, Extents const& after)
{
    std::vector<Factor> list;
    int i = 0, j = 0;
    int64_t left = 1, right = 1; // what remains of dimensions i - 1 and j - 1
    while (true) {
        while (left == 1 && i < before.rank)
            left = before[i++];
        while (right == 1 && j < after.rank)
            right = after[j++];
        if (left == 1 && right == 1)
            return list;
        int64_t const size = std::min(left, right);
        if (size <= 1 || left % size != 0 || right % size != 0)
            return {};
        list.push_back({i - 1, j - 1});
        left /= size;
        right /= size;
    }
}

std::vector<ir::Alias> aliases(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    auto const& a = node.attrsAs<Attrs>();
    if (in[0].format != Format::kLinear || out[0].format != Format::kLinear)
        return isView(a, in[0], out[0]) ? std::vector<ir::Alias>{{true, 0, 0}} : std::vector<ir::Alias>();
    if (!keepsOrder(in[0].dims, a.firstTranspose) ||
        !keepsOrder(unpermuted(out[0].dims, a.secondTranspose), a.secondTranspose))
        return {};
    return {ir::Alias{true, 0, 0}};
}

} // namespace

bool isView(Attrs const& attrs, TensorRef const& x, TensorRef const& y)
{
    bool const sameGaps = x.format == Format::kChannelsLast && y.format == Format::kChannelsLast && x.dims.rank >= 3 &&
                          y.dims.rank >= 3 && x.dims[1] == y.dims[1] && x.pixelStride() == y.pixelStride();
    auto const xOrder = orderInMemory(x, sameGaps), yOrder = orderInMemory(y, sameGaps);
    auto const factors = factorsOf(permuted(x.dims, attrs.firstTranspose), unpermuted(y.dims, attrs.secondTranspose));
    if (!xOrder || !yOrder || !factors)
        return false;
    std::vector<int> before, after; // factors as they lie in memory
    for (int const d : *xOrder) {
        auto const& p = attrs.firstTranspose;
        auto const at = p.empty() ? d : int(std::find(p.begin(), p.end(), d) - p.begin());
        for (size_t f = 0; f < factors->size(); ++f)
            if ((*factors)[f].before == at)
                before.push_back(int(f));
    }
    for (int const d : *yOrder) {
        int const at = attrs.secondTranspose.empty() ? d : int(attrs.secondTranspose[size_t(d)]);
        for (size_t f = 0; f < factors->size(); ++f)
            if ((*factors)[f].after == at)
                after.push_back(int(f));
    }
    return before == after;
}

bool keepsOrder(ir::Node const& node)
{
    auto const& a = node.attrsAs<Attrs>();
    return keepsOrder(node.inputs[0]->shape, a.firstTranspose) &&
           keepsOrder(unpermuted(node.outputs[0]->shape, a.secondTranspose), a.secondTranspose);
}

int dimensionBehind(ir::Node const& node, int axis)
{
    auto const& a = node.attrsAs<Attrs>();
    ir::Shape const &x = node.inputs[0]->shape, &y = node.outputs[0]->shape;
    if (node.inputs.size() > 1 && node.inputs[1])
        return -1;
    auto placeOf = [](std::vector<int64_t> const& permutation, int d) {
        auto const at = std::find(permutation.begin(), permutation.end(), d);
        return permutation.empty() ? d : int(at - permutation.begin());
    };
    auto inFront = [](ir::Shape const& s, int d) { return ir::volume(ir::Shape(s.begin(), s.begin() + d)); };
    ir::Shape const before = permuted(x, a.firstTranspose), after = unpermuted(y, a.secondTranspose);
    int const from = placeOf(a.firstTranspose, axis);
    for (int d = 0; d < int(after.size()); ++d)
        if (after[size_t(d)] == before[size_t(from)] && inFront(after, d) == inFront(before, from))
            return placeOf(a.secondTranspose, d);
    return -1;
}

namespace {

std::vector<int64_t> written(std::vector<int64_t> permutation, size_t rank)
{
    for (size_t i = permutation.size(); i < rank; ++i)
        permutation.push_back(int64_t(i)); // empty: identity
    return permutation;
}

void inspect(LayerFacts& facts)
{
    auto const& a = facts.attrs<Attrs>();
    std::vector<int64_t> const y = numbersOf(facts.node.outputs[0]->shape);
    std::vector<int64_t> const second = written(a.secondTranspose, y.size());
    facts.kind("Shuffle");
    facts.add("FirstTranspose", written(a.firstTranspose, facts.input(0)->shape.size()));
    if (facts.input(1)) { // run-time dimensions: as far as the output tells
        std::vector<int64_t> reshape(y.size());
        for (size_t i = 0; i < y.size(); ++i)
            reshape[size_t(second[i])] = y[i];
        facts.add("Reshape", reshape);
    } else if (a.hasReshape) {
        facts.add("Reshape", a.reshape);
    } else {
        facts.add("Reshape", "nbDims=-1");
    }
    facts.add("SecondTranspose", second);
    facts.addFlag("ZeroIsPlaceholder", a.zeroIsPlaceholder);
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "shuffle",
    TW_OP_PARTS(Attrs),
    .inputs = {1, 2},
    .isShapeInput = [](ir::Node const&, size_t i) { return i == 1; },
    .isNonNegative = ir::ofFirstInput,
    .inspect = inspect,
    .aliases = aliases,
    .isCheap = true,
    .computesShapes = true,
};

} // namespace tw::ops::shuffle
