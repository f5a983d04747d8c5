// SPDX-License-Identifier: Apache-2.0
#include "passes/caches/static_caches.h"

#include <algorithm>
#include <map>
#include <set>

#include "ops/attention/op.h"
#include "ops/cache_update/op.h"
#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "ops/scatter/op.h"
#include "ops/slice/op.h"
#include "passes/caches/pages.h"
#include "passes/caches/written_rows.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// Where `v` comes from, through what changes no element.
ir::Value* sourceOf(ir::Value* v)
{
    while (v->producer && (v->producer->op == &ops::identity::def() || isReshape(v->producer)))
        v = v->producer->inputs[0];
    return v;
}

// An update that begins at one place for all sequences.
bool isOfOnePlace(ir::Node const& n)
{
    if (n.op != &ops::cache_update::def() || !hasInput(n, 2) || !n.attrsAs<ops::cache_update::Attrs>().circular)
        return false;
    ir::Node const* const index = n.inputs[2]->producer;
    return n.inputs[2]->shape[0].is(1) ||
           (index && index->op == &ops::slice::def() && index->inputs[0]->shape[0].is(1));
}

// A scatter to places that are an input.
std::optional<WrittenRows> scatterToInput(ir::Graph const& g, ir::Node& n)
{
    auto rows = writtenRows(g, n);
    if (!rows || !contains(g.inputs, rows->cache) || !contains(g.inputs, sourceOf(rows->places)))
        return std::nullopt;
    return rows;
}

bool isCache(ir::Graph const& g, ir::Value const* v, int64_t axis)
{
    return contains(g.inputs, v) && v->rank() == 4 && axis == 2;
}

struct Found
{
    std::vector<ir::Node*> updates;
    std::vector<WrittenRows> scatters;

    ir::Value* first() const { return updates.empty() ? scatters[0].cache : updates[0]->inputs[0]; }
    bool isEmpty() const { return updates.empty() && scatters.empty(); }
};

Found findIn(ir::Graph const& g)
{
    Found found;
    for (auto const& n : g.nodes) {
        if (isOfOnePlace(*n) && isCache(g, n->inputs[0], n->attrsAs<ops::cache_update::Attrs>().axis))
            found.updates.push_back(n.get());
        else if (auto rows = scatterToInput(g, *n); rows && isCache(g, rows->cache, rows->axis))
            found.scatters.push_back(*rows);
    }
    return found;
}

// Lengths of caches, and of masks over them, that the file leaves open.
void setCapacity(ir::Graph& g, Found const& found, int64_t capacity)
{
    std::set<std::string> open;
    auto note = [&](ir::Value const* cache) {
        if (!cache->shape[2].isConst())
            open.insert(cache->shape[2].str());
    };
    for (ir::Node const* n : found.updates)
        note(n->inputs[0]);
    for (WrittenRows const& rows : found.scatters)
        note(rows.cache);
    std::map<std::string, int> uses;
    for (ir::Value const* v : g.inputs)
        for (ir::Dim const& d : v->shape)
            ++uses[d.str()];
    for (ir::Value* v : g.inputs)
        for (size_t d = 0; d < v->shape.size(); ++d) {
            bool const isMask = v->name.find("mask") != std::string::npos && d > 0 && d + 1 == v->shape.size() &&
                                !v->shape[d].isConst() && uses[v->shape[d].str()] == 1;
            if (open.contains(v->shape[d].str()) || (isMask && !open.empty()))
                v->shape[d] = capacity;
        }
}

Result<void> writeByLengths(ir::Graph& g, Found const& found, ir::Value* lengths)
{
    for (ir::Node* n : found.updates) {
        n->inputs[2] = lengths;
        n->attrsAs<ops::cache_update::Attrs>().circular = false;
    }
    for (WrittenRows const& rows : found.scatters) {
        std::string const name = rows.scatter->name;
        TW_ASSIGN(bool const isDone, toUpdate(g, rows, lengths, false));
        if (!isDone)
            return unsupported("layer '{}' writes into the cache '{}' in a way that is not understood", name,
                               rows.cache->name);
    }
    return g.inferAll();
}

// Attentions to a cache, through what moves nothing.
void findAttentions(ir::Graph const& g, ir::Value* v, std::vector<ir::Node*>& found)
{
    for (ir::Node* n : readersOf(g, v)) {
        if (keepsBlocks(*n) && n->inputs[0] == v)
            findAttentions(g, n->outputs[0], found);
        else if (n->op == &ops::attention::def() && (n->inputs[1] == v || n->inputs[2] == v) && !contains(found, n))
            found.push_back(n);
    }
}

// What said the place for all sequences: an input, of which nothing else may be computed but what says where the next run begins.
Result<void> checkPlaces(ir::Graph const& g, std::vector<ir::Value*> reached)
{
    for (size_t i = 0; i < reached.size(); ++i)
        for (ir::Node* n : readersOf(g, reached[i])) {
            bool const isCount = n->op == &ops::identity::def() || n->op == &ops::elementwise::def() || isReshape(n);
            if (!isCount || n->outputs[0]->rank() > 1 || n->outputs[0]->type != DataType::kInt32)
                return unsupported(
                    "layer '{}' ({}) reads where all sequences write to their caches ('{}'); of sequences "
                    "of different lengths each has a place of its own",
                    n->name, n->op->name, reached[0]->name);
            if (!contains(reached, n->outputs[0]))
                reached.push_back(n->outputs[0]);
        }
    return {};
}

// Inputs that a place is computed of.
void placesOf(ir::Graph const& g, ir::Value* v, std::vector<ir::Value*>& found)
{
    if (contains(g.inputs, v) && v->rank() <= 1 && v->type == DataType::kInt32 && !contains(found, v))
        found.push_back(v);
    if (v->producer && v->producer->op != &ops::shape::def())
        for (ir::Value* x : v->producer->inputs)
            if (x)
                placesOf(g, x, found);
}

// kv_lengths + s, in front of all: of a dimension of an input.
Result<ir::Value*> endsOf(ir::Graph& g, ir::Value* lengths, ir::Dim const& added)
{
    int position = 0;
    auto add = [&](ir::OpDef const& op, ir::AttrsBase const& a, std::vector<ir::Value*> inputs) -> Result<ir::Value*> {
        TW_ASSIGN(ir::Node * n, g.addNode(op, a.clone(), std::move(inputs), kCacheLengths, {}, position++));
        return n->outputs[0];
    };
    ir::Value* rows = nullptr;
    if (added.isConst()) {
        int32_t const count = int32_t(added.value());
        rows = g.addConstant("rows", DataType::kInt32, {1}, &count);
    }
    for (size_t i = 0; i < g.inputs.size() && !rows; ++i) {
        ir::Value* const v = g.inputs[i];
        auto const at = std::ranges::find(v->shape, added);
        if (at == v->shape.end())
            continue;
        TW_ASSIGN(ir::Value * dims, add(ops::shape::def(), ir::NoAttrs(), {v}));
        TW_SET(rows, add(ops::slice::def(), ops::slice::partOf(dims->shape, 0, at - v->shape.begin(), 1), {dims}));
    }
    if (!rows)
        return unsupported("the {} new rows of caches are no dimension of an input", added.str());
    return add(ops::elementwise::def(), ops::elementwise::Attrs(ops::elementwise::Operation::kSum), {lengths, rows});
}

// Attention reads the rows that there are.
Result<void> readByLengths(ir::Graph& g, std::vector<ir::Node*> const& updates, ir::Value* lengths)
{
    std::vector<ir::Node*> attentions;
    for (ir::Node* n : updates)
        findAttentions(g, n->outputs[0], attentions);
    ir::Value* ends = nullptr;
    for (ir::Node* n : attentions) {
        auto a = n->attrsAs<ops::attention::Attrs>();
        if (a.lengths || a.segments || a.integers)
            continue;
        if (!ends) {
            ir::Node const& first = *updates[0];
            size_t const axis = first.attrsAs<ops::cache_update::Attrs>().isPacked() ? 1 : 2;
            TW_SET(ends, endsOf(g, lengths, first.inputs[1]->shape[axis]));
        }
        std::vector<ir::Value*> inputs = n->inputs;
        inputs.insert(inputs.begin() + a.masksEnd(inputs.size()), ends);
        a.lengths = true;
        TW_ASSIGN(ir::Node * m,
                  g.addNode(ops::attention::def(), a.clone(), std::move(inputs), n->name, {}, g.positionOf(n)));
        takePlaceOf(*m, *n);
        m->outputs[0]->name = n->outputs[0]->name;
        g.replaceAllUses(n->outputs[0], m->outputs[0]);
        g.eraseNode(n);
    }
    return {};
}

} // namespace

Result<std::vector<FixedCache>> fixStaticCaches(ir::Graph& g, CacheSizes const& sizes, Options const& options,
                                                PassContext const& ctx)
{
    Options early = options;
    early.stopBefore = "remove_dead_rows";
    TW_TRY(run(g, ctx, early));
    Found const found = findIn(g);
    if (found.isEmpty())
        return std::vector<FixedCache>();
    ir::Dim const batch = found.first()->shape[0];
    setCapacity(g, found, sizes.capacity);
    if (std::ranges::find(g.inputs, kCacheLengths, &ir::Value::name) != g.inputs.end())
        return invalidArgument("the network has an input '{}' already", kCacheLengths);
    std::vector<ir::Value*> places;
    for (ir::Node const* n : found.updates)
        placesOf(g, n->inputs[2], places);
    for (WrittenRows const& rows : found.scatters)
        placesOf(g, rows.places, places);
    ir::Value* const lengths = g.addInput(kCacheLengths, DataType::kInt32, {batch});
    TW_TRY(writeByLengths(g, found, lengths));
    TW_TRY(run(g, ctx, options));
    for (ir::Value* v : places)
        if (!batch.is(1))
            TW_TRY(checkPlaces(g, {v}));
    auto const updates = cachesInPlace(g);
    if (updates.empty())
        return unsupported("static caches: the length of '{}' is not known", found.first()->name);
    TW_TRY(readByLengths(g, updates, lengths));
    if (sizes.blocks > 0)
        return pageCaches(g, updates, sizes.blocks);
    std::vector<FixedCache> caches;
    for (ir::Node const* n : updates)
        for (ir::Value const* y : g.outputs)
            if (y == n->outputs[0] ||
                (y->producer && y->producer->inputs[0] == n->outputs[0] && keepsBlocks(*y->producer)))
                caches.push_back({n->inputs[0]->name, y->name, 2, n->inputs[1]->shape[2]});
    return caches;
}

} // namespace tw::passes
