// SPDX-License-Identifier: Apache-2.0
// Makes one node of an attention over caches and what writes its keys and values into them, as a step of a decoder does:
//   k' = cache_update(k, new keys, i), v' = cache_update(v, new values, i), y = attention(q, k', v', ..)
//     ->  y, k', v' = append_attention(q, k, v, new keys, new values, i, ..)
// and, where queries and new keys are the heads of one rotation, of that too. For GPUs, whose kernel reads new rows where they come from; kernels
// that each write a few rows take as long as attention itself. Stands behind lower_precision: FP16 alone. Leaves alone: caches that anybody else reads
// behind the update, in pages, more queries on a head of keys than that kernel takes (in all profiles), circular caches, wishes of the user.
#include "ops/append_attention/op.h"
#include "ops/attention_guard/op.h"
#include "ops/shuffle/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

namespace append = ops::append_attention;
using UpdateAttrs = ops::cache_update::Attrs;

constexpr int kCapability = 80;
constexpr DataType kType = DataType::kHalf;
constexpr int64_t kMostRows = 64; // queries on a head of keys, of the smallest run

// The update that makes a cache for `attention` alone; outputs of the graph it may be.
ir::Node* updateFor(ir::Graph const& g, ir::Value const* cache, ir::Node const& attention)
{
    ir::Node* const n = cache->producer;
    if (!n || n->op != &ops::cache_update::def() || hasWish(*n) || !hasInput(*n, 2))
        return nullptr;
    auto const& a = n->attrsAs<UpdateAttrs>();
    int readers = g.useCount(cache) - int(std::ranges::count(g.outputs, cache));
    for (ir::Node const* r :
         readersOf(g, attention.outputs[0])) // what guards the result stands behind it, and seldom reads values
        readers -= r->op == &ops::attention_guard::def() && r->inputs[1] == cache;
    bool const isOnly = readers == 1 && std::ranges::count(attention.inputs, cache) == 1;
    return isOnly && a.axis == 2 && !a.circular && !a.pages && cache->rank() == 4 ? n : nullptr;
}

bool isFew(ir::Graph const& g, ir::Node const& n)
{
    auto const& a = n.attrsAs<ops::attention::Attrs>();
    auto const isSize = [](int64_t size) { return size % 32 == 0 && size <= 256; };
    if (!a.lengths || a.table || a.pages || a.integers || a.segments || a.rowsFirst || !isSize(a.size) ||
        !isSize(a.valueSize))
        return false;
    ir::Value const& q = *n.inputs[0];
    return q.type == kType && q.shape[size_t(a.q.rowsAxis(q.rank()))].range(g.symbols).lo * a.headsPerKey <= kMostRows;
}

// The rotation whose heads are the queries and behind them the new keys, and nothing else.
struct Rotation
{
    ir::Node* node = nullptr;
    std::vector<ir::Node*> reshapes;
};
std::optional<Rotation> rotationOf(ir::Graph const& g, ir::Node const& attention, ir::Node const& update)
{
    Rotation r;
    for (ir::Value* v : {attention.inputs[0], update.inputs[1]}) {
        ir::Node* const reshape = v->producer;
        if (v->rank() != 3 || !isReshape(reshape))
            return std::nullopt;
        ir::Node* const n = reshape->inputs[0]->producer;
        if (!n || n->op != &ops::rotary::def() || (r.node && n != r.node))
            return std::nullopt;
        r.node = n;
        if (!contains(r.reshapes, reshape))
            r.reshapes.push_back(reshape);
    }
    auto const& of = r.node->attrsAs<ops::rotary::Attrs>();
    auto const& a = attention.attrsAs<ops::attention::Attrs>();
    auto const& u = update.attrsAs<UpdateAttrs>();
    int64_t const heads = a.heads + a.keyHeads();
    bool const fits = of.isPacked() && of.heads == heads && of.rowSize == a.size && a.q.offset == 0 &&
                      a.q.headStride == a.size && u.offset == a.heads * a.size &&
                      (u.headStride == a.size || a.keyHeads() == 1);
    int readers = 0;
    for (ir::Node const* reshape : r.reshapes)
        readers += g.useCount(reshape->outputs[0]);
    if (!fits || readers != 2 || g.useCount(r.node->outputs[0]) != int(r.reshapes.size()) || hasWish(*r.node))
        return std::nullopt;
    for (size_t i : {1, 2})
        if (!r.node->inputs[i]->shape[2].is(1))
            return std::nullopt;
    return r;
}

Result<bool> fuse(ir::Graph& g, ir::Node& n, PassContext const& ctx)
{
    ir::Node *const keys = updateFor(g, n.inputs[1], n), *const values = updateFor(g, n.inputs[2], n);
    if (!keys || !values || keys == values || keys->inputs[2] != values->inputs[2] || hasWish(n) || !isFew(g, n))
        return false;
    append::Attrs a;
    a.attention = n.attrsAs<ops::attention::Attrs>();
    auto const &k = keys->attrsAs<UpdateAttrs>(), &v = values->attrsAs<UpdateAttrs>();
    a.valueOffset = v.offset;
    a.valueHeadStride = v.headStride;
    std::vector<ir::Value*> in{n.inputs[0],       keys->inputs[0], values->inputs[0], keys->inputs[1],
                               values->inputs[1], keys->inputs[2], nullptr,           nullptr};
    std::vector<ir::Node*> nodes{keys, values, &n};
    if (auto const rotation = rotationOf(g, n, *keys)) {
        auto const& of = rotation->node->attrsAs<ops::rotary::Attrs>();
        a.rotarySize = of.size;
        a.interleaved = of.interleaved;
        a.attention.q.offset = of.offset;
        in[append::kQueries] = rotation->node->inputs[0];
        in[append::kNewKeys] = nullptr;
        in[append::kCosines] = rotation->node->inputs[1];
        in[append::kSines] = rotation->node->inputs[2];
        nodes.insert(nodes.begin(), rotation->node);
    } else {
        a.keyOffset = k.offset;
        a.keyHeadStride = k.headStride;
    }
    in.insert(in.end(), n.inputs.begin() + append::kAttentionOthers, n.inputs.end());
    TW_ASSIGN(ir::Node * fused, g.addNode(append::def(), a.clone(), std::move(in), n.name, {}, g.positionOf(&n)));
    ctx.log.info("fused {}", namesOf(nodes));
    joinAlike(*fused, {nodes.begin(), nodes.end()});
    ir::Value* const from[] = {n.outputs[0], n.inputs[1], n.inputs[2]};
    for (size_t i = 0; i < 3; ++i) {
        fused->outputs[i]->name = from[i]->name;
        fused->outputs[i]->host = from[i]->host;
        g.replaceAllUses(from[i], fused->outputs[i]);
    }
    for (ir::Node* gone : {&n, keys, values})
        g.eraseNode(gone);
    return true;
}

} // namespace

Result<bool> fuseAppendAttention(ir::Graph& g, PassContext const& ctx)
{
    if (!ctx.target.gpu() || ctx.target.gpu()->capability < kCapability)
        return false;
    TW_ASSIGN(bool const changed, changeEach(
                                      g, [](ir::Node const& n) { return n.op == &ops::attention::def(); },
                                      [&](ir::Node& n) { return fuse(g, n, ctx); }));
    if (changed)
        TW_TRY(removeDead(g, ctx));
    return changed;
}

} // namespace tw::passes
