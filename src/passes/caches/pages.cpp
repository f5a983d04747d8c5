// SPDX-License-Identifier: Apache-2.0
#include "passes/caches/pages.h"

#include "ops/attention/op.h"
#include "ops/cache_update/op.h"
#include "ops/concatenation/op.h"
#include "ops/dequantize/op.h"
#include "ops/identity/op.h"
#include "ops/slice/op.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::cache_update::kPageRows;

struct Readers
{
    std::vector<ir::Node*> attentions;
    ir::Value const* output = nullptr;
};

Result<void> findReaders(ir::Graph const& g, ir::Value* v, std::string const& cache, Readers& found)
{
    if (g.isOutput(v) && !found.output)
        found.output = v;
    for (ir::Node* n : readersOf(g, v)) {
        if (keepsBlocks(*n) && n->inputs[0] == v) {
            TW_TRY(findReaders(g, n->outputs[0], cache, found));
            continue;
        }
        bool isAttention = n->op == &ops::attention::def() && !n->body;
        if (isAttention) {
            auto const& a = n->attrsAs<ops::attention::Attrs>();
            isAttention = a.lengths && !a.table && !a.integers;
        }
        for (size_t i = 0; i < n->inputs.size(); ++i)
            isAttention = isAttention && (n->inputs[i] != v || i == 1 || i == 2);
        if (!isAttention)
            return unsupported(
                "layer '{}' ({}) reads the cache '{}', whose rows are in pages, otherwise than attention "
                "with lengths does",
                n->name, n->op->name, cache);
        if (!contains(found.attentions, n))
            found.attentions.push_back(n);
    }
    return {};
}

// The dimensions that a cache had before it was in pages: [images, heads, rows, size].
Result<void> dimsOfRows(ir::Graph& g, ir::Node& n, ir::Value* pages)
{
    ir::Shape const& shape = n.inputs[0]->shape;
    if (!shape[1].isConst() || !shape[3].isConst())
        return unsupported("layer '{}' reads the dimensions of the cache '{}', which are not known", n.name,
                           n.inputs[0]->name);
    auto add = [&](ir::OpDef const& op, ir::AttrsBase const& a, std::vector<ir::Value*> inputs) -> Result<ir::Value*> {
        TW_ASSIGN(ir::Node * m, g.addNode(op, a.clone(), std::move(inputs), n.name, {}, g.positionOf(&n)));
        takePlaceOf(*m, n);
        return m->outputs[0];
    };
    int32_t const known[] = {int32_t(shape[1].value()), int32_t(shape[2].value()), int32_t(shape[3].value())};
    ir::Value* const rest = g.addConstant(n.name + ".rest", DataType::kInt32, {3}, known);
    rest->content.emplace(std::begin(known), std::end(known));
    TW_ASSIGN(ir::Value * images, add(ops::shape::def(), ir::NoAttrs(), {pages}));
    TW_SET(images, add(ops::slice::def(), ops::slice::partOf(images->shape, 0, 0, 1), {images}));
    TW_ASSIGN(ir::Value * dims, add(ops::concatenation::def(), ops::concatenation::Attrs(0), {images, rest}));
    g.replaceAllUses(n.outputs[0], dims);
    g.eraseNode(&n);
    return {};
}

} // namespace

bool keepsBlocks(ir::Node const& n)
{
    return n.op == &ops::identity::def() || n.op == &ops::dequantize::def();
}

Result<ir::Value*> addPages(ir::Graph& g, ir::Dim const& batch, ir::Dim const& pages)
{
    for (ir::Value const* v : g.inputs)
        if (v->name == kCachePages)
            return invalidArgument("the network has an input '{}' already", kCachePages);
    return g.addInput(kCachePages, DataType::kInt32, {batch, pages});
}

std::vector<ir::Node*> cachesInPlace(ir::Graph& g)
{
    std::vector<ir::Node*> list;
    for (auto const& n : g.nodes)
        if (n->op == &ops::cache_update::def() && contains(g.inputs, n->inputs[0]) && n->inputs[0]->rank() == 4 &&
            n->inputs[0]->shape[2].isConst())
            list.push_back(n.get());
    return list;
}

Result<std::vector<FixedCache>> pageCaches(ir::Graph& g, std::vector<ir::Node*> const& updates, int64_t blocks)
{
    std::vector<FixedCache> caches;
    std::vector<ir::Node*> attentions;
    ir::Dim const rows = updates[0]->inputs[0]->shape[2], batch = updates[0]->inputs[1]->shape[0];
    for (ir::Node* n : updates) {
        auto const& a = n->attrsAs<ops::cache_update::Attrs>();
        ir::Value* const past = n->inputs[0];
        if (a.axis != 2 || a.circular || n->inputs.size() < 3 || !n->inputs[2])
            return unsupported("cache '{}' is written in a way that pages do not have", past->name);
        if (!(past->shape[2] == rows) || rows.value() % kPageRows != 0)
            return unsupported("cache '{}' has {} rows; in pages all caches have as many, a multiple of {}", past->name,
                               past->shape[2].str(), kPageRows);
        for (ir::Node const* m : readersOf(g, past))
            if (m != n && m->op != &ops::shape::def())
                return unsupported("cache '{}', whose rows are in pages, is read by layer '{}' ({}) beside what writes "
                                   "to it",
                                   past->name, m->name, m->op->name);
        Readers found;
        TW_TRY(findReaders(g, n->outputs[0], past->name, found));
        if (!found.output)
            return unsupported("cache '{}' is no output of the network", past->name);
        for (ir::Node* m : found.attentions)
            if (!contains(attentions, m))
                attentions.push_back(m);
        caches.push_back({past->name, found.output->name, 2, n->inputs[1]->shape[a.isPacked() ? 1 : 2]});
    }
    TW_ASSIGN(ir::Value * pages, addPages(g, batch, rows.value() / kPageRows));
    for (ir::Node* n : updates)
        for (ir::Node* m : readersOf(g, n->inputs[0]))
            if (m->op == &ops::shape::def())
                TW_TRY(dimsOfRows(g, *m, pages));
    for (ir::Node* n : updates) {
        ir::Value* const past = n->inputs[0];
        past->shape = {blocks, past->shape[1], kPageRows, past->shape[3]};
        n->attrsAs<ops::cache_update::Attrs>().pages = true;
        n->inputs.push_back(pages);
    }
    for (ir::Node* n : attentions) {
        auto& a = n->attrsAs<ops::attention::Attrs>();
        a.pages = true;
        n->inputs.insert(n->inputs.begin() + a.pagesInput(n->inputs.size() + 1), pages);
    }
    TW_TRY(g.inferAll());
    return caches;
}

} // namespace tw::passes
