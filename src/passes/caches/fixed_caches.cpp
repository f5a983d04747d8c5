// SPDX-License-Identifier: Apache-2.0
#include "passes/caches/fixed_caches.h"

#include <algorithm>
#include <map>
#include <set>

#include "ops/cache_update/op.h"
#include "ops/concatenation/op.h"
#include "ops/identity/op.h"
#include "ops/slice/op.h"
#include "passes/caches/images.h"
#include "passes/caches/merged.h"
#include "passes/caches/pages.h"
#include "passes/caches/static_caches.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

bool isSymbol(ir::Dim const& d)
{
    std::vector<std::string> names;
    d.collectSymbols(names);
    return names.size() == 1 && d == ir::Dim::symbol(names[0]);
}

// The output that `v` is, perhaps behind identities; null: none.
ir::Value* outputOf(ir::Graph const& g, ir::Value* v)
{
    if (g.isOutput(v))
        return v;
    for (ir::Node const* n : readersOf(g, v))
        if (n->op == &ops::identity::def())
            if (ir::Value* const y = outputOf(g, n->outputs[0]))
                return y;
    return nullptr;
}

// The axis along which new rows come behind `past` in a concatenation, or in front of an update of a copy that is longer
// (GroupQueryAttention); -1: `n` is neither.
int axisOfRows(ir::Node const& n, ir::Value const& past)
{
    if (n.op == &ops::concatenation::def() && n.inputs.size() == 2 && n.inputs[0] == &past && n.inputs[1] != &past)
        return int(n.attrsAs<ops::concatenation::Attrs>().axis);
    if (n.op != &ops::slice::def() || n.inputs[0] != &past ||
        n.attrsAs<ops::slice::Attrs>().mode != ops::slice::Mode::kFill)
        return -1;
    int axis = -1;
    for (int d = 0; d < past.rank(); ++d)
        if (!(n.outputs[0]->shape[size_t(d)] == past.shape[size_t(d)]))
            axis = axis < 0 ? d : -1;
    return axis;
}

} // namespace

std::vector<CacheJoin> joinsOf(ir::Graph& g)
{
    std::vector<CacheJoin> joins;
    for (ir::Value* past : g.inputs)
        for (ir::Node* n : readersOf(g, past)) {
            int const axis = past->rank() == 4 ? axisOfRows(*n, *past) : -1;
            if (axis < 1 || axis > 2 || !isSymbol(past->shape[size_t(axis)]))
                continue;
            bool const isUpdate = n->op == &ops::slice::def();
            std::vector<ir::Node*> const next = isUpdate ? readersOf(g, n->outputs[0]) : std::vector<ir::Node*>{n};
            if (next.size() != 1 || (isUpdate && next[0]->op != &ops::cache_update::def()))
                continue;
            if (ir::Value* const present = outputOf(g, next[0]->outputs[0])) {
                joins.push_back({past, present, n, next[0], axis});
                break;
            }
        }
    return joins;
}

namespace {

// What an error says of an input that might be a cache.
std::string nearestTo(ir::Graph const& g)
{
    for (ir::Value const* v : g.inputs)
        for (ir::Node const* n : readersOf(g, v))
            if (v->rank() == 4 && !n->op->readsDimsOnly && (isSymbol(v->shape[1]) || isSymbol(v->shape[2])))
                return fmt::format("; input '{}' is read by layer '{}' ({})", v->name, n->name, n->op->name);
    return "";
}

// Shapes and contents, by value.
std::vector<std::vector<ir::Dim>> dimsOf(ir::Graph const& g)
{
    return mapped<std::vector<ir::Dim>>(g.values(), [](auto const& v) {
        std::vector<ir::Dim> dims = v->shape;
        if (v->content)
            dims.insert(dims.end(), v->content->begin(), v->content->end());
        return dims;
    });
}

// Of nothing there is no run, and old and new rows are no more than the capacity N: with that, what exporters write for broadcasts and for
// slices of tables is no max(1, s), no min(P + s, rows of the table). Ranges of two symbols do not say that of their sum. So small ranges are
// set, and what inference makes of them is compared to what it makes of all P and s up to N, wherever P + s <= N.
Result<void> boundRows(ir::Graph& g, CacheJoin const& join, ir::Dim const& added, int64_t capacity)
{
    constexpr int64_t kLeastRows = 4, kMostRows = 16; // of few numbers broadcasts are other expressions
    ir::Dim const batch = join.past->shape[0], past = join.past->shape[size_t(join.axis)];
    auto bind = [&](ir::Dim const& d, ir::Range range) {
        std::vector<std::string> names;
        d.collectSymbols(names);
        for (std::string const& name : names)
            g.symbols[name].range = range;
    };
    auto infer = [&](int64_t most) -> Result<std::vector<std::vector<ir::Dim>>> {
        bind(added, {1, most});
        bind(batch, {1, INT32_MAX});
        bind(past, {0, most});
        TW_TRY(g.inferAll());
        return dimsOf(g);
    };
    TW_ASSIGN(auto const all, infer(std::max(capacity, kLeastRows)));
    TW_ASSIGN(auto const small, infer(std::clamp(capacity / 2, kLeastRows, kMostRows)));
    // What differs; contents may be known in one of the two alone.
    std::vector<std::pair<ir::Dim, ir::Dim>> pairs;
    for (size_t i = 0; i < all.size(); ++i)
        for (size_t d = 0; d < std::min(all[i].size(), small[i].size()); ++d)
            if (!(all[i][d] == small[i][d]))
                pairs.emplace_back(all[i][d], small[i][d]);
    ir::Bindings at;
    for (auto const& [name, symbol] : g.symbols)
        at[name] = std::clamp<int64_t>(3, symbol.range.lo, symbol.range.hi);
    auto set = [&](ir::Dim const& d, int64_t n) {
        if (!d.isConst())
            at[d.str()] = n;
    };
    // Everything is linear between numbers that stand in the network; a few hundred pairs find where two of them part.
    int64_t const step = std::max<int64_t>(1, capacity / 16);
    for (int64_t rows = 0; rows < capacity;
         rows = rows + 1 == capacity ? capacity : std::min(rows + step, capacity - 1))
        for (int64_t total = rows + 1; total <= capacity;
             total = total == capacity ? total + 1 : std::min(total + step, capacity)) {
            set(past, rows);
            set(added, total - rows);
            for (auto const& [of, taken] : pairs) {
                auto const wanted = of.eval(at), found = taken.eval(at);
                if (wanted.ok() && found.ok() && *wanted != *found)
                    return invalidArgument(
                        "a capacity of {} for caches: behind {} rows the model reckons with {}, which "
                        "is not {} then; it is for fewer rows, or does not look at all of them",
                        capacity, total, of.str(), taken.str());
            }
        }
    return {};
}

bool isCalled(ir::Value const* v, char const* part)
{
    return v->name.find(part) != std::string::npos;
}

// New rows: where places are computed of a mask of any length, they are as many as tokens or what the mask has more than there are old rows,
// which are the same.
ir::Dim newRows(ir::Graph const& g, CacheJoin const& join)
{
    std::vector<std::string> names;
    join.rows().collectSymbols(names);
    std::set<std::string> ofInputs;
    for (ir::Value const* v : g.inputs)
        for (ir::Dim const& d : v->shape)
            if (!isCalled(v, "mask") && v->rank() == 2 && contains(names, d.str()))
                ofInputs.insert(d.str());
    return ofInputs.size() == 1 ? ir::Dim::symbol(*ofInputs.begin()) : join.rows();
}

// One symbol of sequences, one of old rows and one of new ones, where inputs have no names of dimensions that say so; masks over old
// and new rows are as long as both.
Result<void> unifyRows(ir::Graph& g, std::vector<CacheJoin> const& joins, int64_t capacity)
{
    auto rowsOf = [](CacheJoin const& j) -> ir::Dim& { return j.past->shape[size_t(j.axis)]; };
    std::set<std::string> names;
    for (CacheJoin const& j : joins)
        names.insert(rowsOf(j).str());
    ir::Dim const past = rowsOf(joins[0]), added = newRows(g, joins[0]), batch = joins[0].past->shape[0];
    std::map<std::string, int> uses; // in inputs
    for (ir::Value* v : g.inputs)
        for (ir::Dim& d : v->shape) {
            if (names.contains(d.str()))
                d = past;
            if (isSymbol(d))
                ++uses[d.str()];
        }
    auto isLone = [&](ir::Dim const& d) { return isSymbol(d) && uses[d.str()] == 1; };
    for (ir::Value* v : g.inputs) {
        if (v->rank() < 2)
            continue;
        if (isLone(v->shape[0]))
            v->shape[0] = batch;
        if (isCalled(v, "position") && v->rank() == 2 && isLone(v->shape[1]))
            v->shape[1] = added;
    }
    std::set<std::string> known; // to inputs that are no masks
    for (ir::Value const* v : g.inputs)
        for (ir::Dim const& d : v->shape)
            if (!isCalled(v, "mask"))
                known.insert(d.str());
    for (ir::Value* v : g.inputs)
        if (isCalled(v, "mask") && v->rank() >= 2 && isSymbol(v->shape.back()) &&
            !known.contains(v->shape.back().str()))
            v->shape.back() = past + added;
    return boundRows(g, joins[0], added, capacity);
}

} // namespace

Result<std::vector<FixedCache>> fixCaches(std::unique_ptr<ir::Graph>& g, CacheSizes const& sizes,
                                          PassContext const& ctx)
{
    int64_t const capacity = sizes.capacity;
    if (sizes.blocks > 0 && capacity % ops::cache_update::kPageRows != 0)
        return invalidArgument("caches in pages of {} rows have a capacity of a multiple of that, not {}",
                               ops::cache_update::kPageRows, capacity);
    auto early = joinsOf(*g);
    if (early.empty()) {
        TW_ASSIGN(bool const isMerged, takeDecoderWithPast(*g, ctx));
        if (isMerged)
            early = joinsOf(*g);
    }
    Options options;
    options.stopBefore = "narrow_caches";
    options.disabled = {"fuse_layer_norm", "fuse_rotary", "widen_half"}; // caches of FP16 are joined as they are
    if (sizes.blocks > 0) // what is dequantized before it is moved is read by attention without the moves
        options.disabled.push_back("move_quantization");
    options.givesAlternatives = false;
    if (early.empty()) {
        TW_ASSIGN(auto const caches, fixStaticCaches(*g, sizes, options, ctx));
        if (!caches.empty())
            return caches;
    }
    if (early.empty() && sizes.blocks > 0) {
        TW_TRY(run(*g, ctx, options));
        if (auto const caches = cachesInPlace(*g); !caches.empty())
            return pageCaches(*g, caches, sizes.blocks);
    }
    if (early.empty())
        return invalidArgument(
            "a capacity of {} for caches: the network has none that get longer (an input of four dimensions, one of "
            "them open, that is an output with new rows concatenated behind it){}",
            capacity, nearestTo(*g));
    TW_TRY(unifyRows(*g, early, capacity));
    TW_TRY(run(*g, ctx, options));
    auto const joins = joinsOf(*g);
    for (CacheJoin const& j : early)
        if (std::ranges::none_of(joins, [&](CacheJoin const& k) { return k.past->name == j.past->name; }))
            return unsupported("the cache '{}' is not joined with its new rows in a way that is understood",
                               j.past->name);
    auto const caches = mapped<FixedCache>(joins, [&](CacheJoin const& j) {
        return FixedCache{j.past->name, j.present->name, j.axis, joins[0].rows()};
    });
    if (auto const fixed = withImages(g, joins, sizes); !fixed.ok())
        return Error(fixed.error()).in(fmt::format("caches of capacity {}", capacity));
    return caches;
}

} // namespace tw::passes
