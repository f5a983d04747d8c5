// SPDX-License-Identifier: Apache-2.0
#include "ops/shuffle/op.h"

#include <algorithm>

#include "tactic/cases.h"
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
        return "has " + std::to_string(permutation.size()) + " entries for a tensor of rank " + std::to_string(rank);
    std::vector<bool> seen(rank);
    for (int64_t p : permutation) {
        if (p < 0 || p >= int64_t(rank) || seen[size_t(p)])
            return "is no permutation of 0.." + std::to_string(int64_t(rank) - 1) + ": " + std::to_string(p) +
                   " is out of range or given twice";
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
        std::string const where = "reshape dimension " + std::to_string(i);
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
                return ctx.error(where + " is 0, which copies dimension " + std::to_string(i) + " of the input " +
                                 str(c) + ", but that has rank " + std::to_string(c.size()) +
                                 " (set zeroIsPlaceholder to false for a size of zero)");
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
            return ctx.error("reshape dimensions " + ctx.describe(1) + " are more than " + std::to_string(kMaxRank));
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
            return ctx.error(std::to_string(a.reshape.size()) + " reshape dimensions are given, the limit is " +
                             std::to_string(kMaxRank));
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

uint32_t shapeInputs(ir::Node const&)
{
    return 1u << 1;
}

// Whether a permutation of these dimensions leaves the elements in their order: only dimensions of size 1 move.
bool keepsOrder(Extents const& e, std::vector<int64_t> const& permutation)
{
    int64_t last = -1;
    for (int64_t p : permutation) {
        if (e[int(p)] == 1)
            continue;
        if (p < last)
            return false;
        last = p;
    }
    return true;
}

std::vector<ir::Alias> aliases(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    auto const& a = node.attrsAs<Attrs>();
    if (in[0].format != Format::kLinear || out[0].format != Format::kLinear)
        return {};
    if (!keepsOrder(in[0].dims, a.firstTranspose) ||
        !keepsOrder(unpermuted(out[0].dims, a.secondTranspose), a.secondTranspose))
        return {};
    return {ir::Alias{true, 0, 0}};
}

[[gnu::cold]] void cases(CaseList& list)
{
    auto shuffle = [&](char const* name, CaseInput x, auto change, std::vector<std::vector<double>> expected = {},
                       std::vector<CaseInput> more = {}) {
        Attrs a;
        change(a);
        more.insert(more.begin(), std::move(x));
        list.add(name, a, std::move(more), std::move(expected));
    };
    auto reshape = [](std::vector<int64_t> dims) {
        return [dims](Attrs& a) {
            a.reshape = dims;
            a.hasReshape = true;
        };
    };
    auto first = [](std::vector<int64_t> p) { return [p](Attrs& a) { a.firstTranspose = p; }; };
    shuffle("by_hand_transpose", f32({2, 3}, {1, 2, 3, 4, 5, 6}), first({1, 0}), {{1, 4, 2, 5, 3, 6}});
    // [2,3] -> transposed [3,2]: 1 4 2 5 3 6 -> [2,3]: (1 4 2)(5 3 6) -> transposed [3,2]: 1 5 4 3 2 6
    shuffle("by_hand_all", f32({2, 3}, {1, 2, 3, 4, 5, 6}),
            [](Attrs& a) {
                a.firstTranspose = a.secondTranspose = {1, 0};
                a.reshape = {2, -1};
                a.hasReshape = true;
            },
            {{1, 5, 4, 3, 2, 6}});
    shuffle("nothing", f32({2, 3, 4}), [](Attrs&) {});
    shuffle("scalar_to_1d", f32({}), reshape({1}));
    shuffle("1d_to_scalar", f32({1}), reshape({}));
    shuffle("flatten", f32({2, 3, 4, 5}), reshape({0, -1}));
    shuffle("zeros_copy", f32({2, 3, 4}), reshape({0, 0, 2, 2}));
    shuffle("nhwc", f32({2, 3, 5, 7}), first({0, 2, 3, 1}));
    shuffle("tiles_33x65", f32({2, 33, 65}), first({0, 2, 1}));
    shuffle("middle", f32({3, 4, 5, 6}), first({0, 2, 1, 3}));
    shuffle("reversed", f32({2, 3, 4, 5}), first({3, 2, 1, 0}));
    shuffle("ones", f32({1, 4, 1, 5}), first({3, 2, 1, 0}));
    shuffle("rank_8", f32({2, 1, 2, 3, 1, 2, 2, 2}), first({7, 1, 0, 2, 5, 4, 6, 3}));
    shuffle("heads", f32({2, 5, 12}), [](Attrs& a) {
        a.reshape = {0, 0, 3, 4};
        a.hasReshape = true;
        a.secondTranspose = {0, 2, 1, 3};
    });
    for (DataType t : {DataType::kHalf, DataType::kInt8, DataType::kInt32, DataType::kBool, DataType::kUInt8})
        shuffle((std::string("type_") + nameOf(t)).c_str(), input(t, {4, 3, 5}), [](Attrs& a) {
            a.firstTranspose = {2, 0, 1};
            a.reshape = {10, 6};
            a.hasReshape = true;
            a.secondTranspose = {1, 0};
        });
    for (DataType t : {DataType::kHalf, DataType::kInt8}) {
        shuffle((std::string("tiles_") + nameOf(t)).c_str(), input(t, {2, 33, 65}), first({0, 2, 1}));
        shuffle((std::string("rows_") + nameOf(t)).c_str(), input(t, {2, 4, 3, 32}), first({0, 2, 1, 3}));
    }
    // Axes that change places: rows that begin at packs of 16 bytes or anywhere, several tiles, one axis short.
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8})
        for (auto [a, b] : {std::pair<int64_t, int64_t>{64, 144},
                            {65, 129},
                            {200, 72},
                            {136, 328},
                            {3, 701},
                            {701, 3},
                            {2, 512},
                            {512, 2},
                            {49, 96},
                            {96, 49},
                            {5, 1000},
                            {1000, 6},
                            {47, 15},
                            {270, 24},
                            {311, 203},
                            {600, 77},
                            {129, 320},
                            {1041, 65},
                            {1203, 50},
                            {3, 4512},
                            {4, 2096},
                            {2, 6160},
                            {4512, 3},
                            {2096, 4},
                            {6160, 2}}) {
            std::string const name = "places_" + std::to_string(a) + "x" + std::to_string(b) + "_" + nameOf(t);
            shuffle(name.c_str(), input(t, {2, a, b}), first({0, 2, 1}));
        }
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
        shuffle((std::string("far_") + nameOf(t)).c_str(), input(t, {33, 3, 2, 40}), first({3, 1, 2, 0}));
        shuffle((std::string("far_and_near_") + nameOf(t)).c_str(), input(t, {65, 3, 16, 80}), first({3, 2, 1, 0}));
        shuffle((std::string("scattered_") + nameOf(t)).c_str(), input(t, {7, 3, 5, 6}), first({3, 1, 0, 2}));
        shuffle((std::string("odd_rows_") + nameOf(t)).c_str(), input(t, {3, 5, 4, 7}), first({2, 1, 0, 3}));
    }
    // Rows that change places and begin anywhere: several tiles of either dimension, ends of words and of sectors.
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
        shuffle((std::string("moved_rows_") + nameOf(t)).c_str(), input(t, {2, 37, 12, 65}), first({0, 2, 1, 3}));
        shuffle((std::string("moved_many_rows_") + nameOf(t)).c_str(), input(t, {3, 5, 403, 41}), first({0, 2, 1, 3}));
        shuffle((std::string("moved_far_rows_") + nameOf(t)).c_str(), input(t, {3, 17, 4, 5, 107}),
                first({2, 3, 1, 0, 4}));
    }
    // So many that threads of a GPU move several.
    shuffle("many_rows", f32({270, 19, 113}), first({1, 0, 2}));
    shuffle("many_odd_rows", input(DataType::kInt8, {900, 22, 111}), first({1, 0, 2}));
    // An input of [3,0] with reshape dimensions [0,0]: copied, or sizes of zero.
    shuffle("empty_placeholder", f32({3, 0}), reshape({0, 0}), {{}});
    shuffle("empty_no_placeholder", f32({3, 0}), [](Attrs& a) {
        a.reshape = {0, 0};
        a.hasReshape = true;
        a.zeroIsPlaceholder = false;
    });
    shuffle("empty_transpose", f32({3, 0, 2}), first({1, 2, 0}));
    shuffle("dims_input", f32({2, 6}), [](Attrs&) {}, {}, {constant(DataType::kInt32, {3}, {3, -1, 2})});
    shuffle("dims_input_zero", f32({3, 0}), [](Attrs& a) { a.zeroIsPlaceholder = false; }, {},
            {constant(DataType::kInt32, {3}, {0, 0, 5})});
    shuffle("dims_input_scalar", f32({1, 1}), [](Attrs&) {}, {}, {constant(DataType::kInt32, {0})});
}

} // namespace

Extents permuted(Extents const& e, std::vector<int64_t> const& permutation)
{
    Extents out = e;
    for (size_t i = 0; i < permutation.size(); ++i)
        out[int(i)] = e[int(permutation[i])];
    return out;
}

Extents unpermuted(Extents const& e, std::vector<int64_t> const& permutation)
{
    Extents out = e;
    for (size_t i = 0; i < permutation.size(); ++i)
        out[int(permutation[i])] = e[int(i)];
    return out;
}

ir::OpDef const& def()
{
    static constexpr ir::OpDef kDef{
        .name = "shuffle",
        .minInputs = 1,
        .maxInputs = 2,
        .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<Attrs>()); },
        .infer = infer,
        .shapeInputs = shapeInputs,
        .reference = reference,
        .cases = cases,
        .cpuTactics = cpuTactics,
        .cudaTactics = cudaTactics,
        .aliases = aliases,
        .isCheap = true,
    };
    return kDef;
}

} // namespace tw::ops::shuffle
