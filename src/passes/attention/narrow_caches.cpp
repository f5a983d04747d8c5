// SPDX-License-Identifier: Apache-2.0
// Attention over caches in INT8 or FP16 reads these, of integers with scales of heads beside them:
//   attention(q, dequantize(k, s), dequantize(v, s'), .., lengths, ..)  ->  attention(q, k, v, .., lengths, .., s, s')
//   attention(q, f32(k), f32(v), ..)                                    ->  attention(q, k, v, ..)      (on CPUs)
// k and v are inputs, what cache_update writes, or, of FP16, what only moves elements of those; integers [B, heads, S, size], s and s' one number for
// each of their heads, or one constant for all.
// Expects Form::kCanonical. Stands behind fuse_attention, and before passes that move quantization. Leaves alone: of integers, attention without
// lengths, whose products may be of integers themselves, and scales along other dimensions; of FP16, heads that are no whole vectors.
#include "ops/attention/op.h"
#include "ops/cache_update/op.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using Attrs = ops::attention::Attrs;

// Integers of a cache that `v` is made of by scales of heads.
std::optional<Dequantized> cacheBehind(ir::Graph const& g, ir::Value const* v)
{
    auto const d = dequantizedOf(v);
    if (!d || v->rank() != 4 || (d->axis != 1 && !d->isPerTensor()) || hasWish(*d->node) ||
        !isQuantized(d->integers->type) || (d->isPerTensor() && !constantOf(d->scale).data))
        return std::nullopt;
    ir::Node const* const from = d->integers->producer;
    bool const isCache = from ? from->op == &ops::cache_update::def() : contains(g.inputs, d->integers);
    return isCache ? d : std::nullopt;
}

// One number for each head.
ir::Value* scalesOf(ir::Graph& g, Dequantized const& d, int64_t heads)
{
    if (!d.isPerTensor())
        return d.scale;
    Tensor all(DataType::kFloat, {heads});
    for (int64_t h = 0; h < heads; ++h)
        all.ref().set(h, constantOf(d.scale).get(0));
    return g.addConstant(d.scale->name + ".of_heads", DataType::kFloat, {heads}, all.data());
}

bool readIntegers(ir::Graph& g, ir::Node& n)
{
    auto& a = n.attrsAs<Attrs>();
    if (n.body || !a.lengths || a.scales || a.integers || hasWish(n))
        return false;
    auto const k = cacheBehind(g, n.inputs[1]), v = cacheBehind(g, n.inputs[2]);
    if (!k || !v)
        return false;
    n.inputs[1] = k->integers;
    n.inputs[2] = v->integers;
    a.scales = true;
    auto const at = n.inputs.begin() + a.scalesInput(n.inputs.size() + 2);
    n.inputs.insert(at, {scalesOf(g, *k, a.keyHeads()), scalesOf(g, *v, a.keyHeads())});
    return true;
}

// A cache in FP16, or BF16, that `v` is made of. What it was written by is of no account: it is the same numbers.
ir::Value* halvesBehind(ir::Graph const& g, ir::Value const* v)
{
    if (!isCast(v->producer) || hasWish(*v->producer) || !isFullFloat(v->type))
        return nullptr;
    ir::Value* const halves = v->producer->inputs[0];
    ir::Node const* const from = halves->producer;
    bool const isCache =
        from ? from->op == &ops::cache_update::def() || movesElements(*from) : contains(g.inputs, halves);
    return isCache && isNarrowFloat(halves->type) ? halves : nullptr;
}

bool readHalves(ir::Graph const& g, ir::Node& n)
{
    constexpr int64_t kVector = 8; // elements, at least
    auto const& a = n.attrsAs<Attrs>();
    bool const fits =
        a.size % kVector == 0 && a.valueSize % kVector == 0 && !a.segments && !a.roundsScores() && a.weightStep == 0;
    if (n.body || !fits || a.scales || a.integers || hasWish(n) || !isFullFloat(n.inputs[0]->type))
        return false;
    ir::Value *const k = halvesBehind(g, n.inputs[1]), *const v = halvesBehind(g, n.inputs[2]);
    if (!k || !v)
        return false;
    n.inputs[1] = k;
    n.inputs[2] = v;
    return true;
}

} // namespace

Result<bool> narrowCaches(ir::Graph& g, PassContext const& ctx)
{
    TW_ASSIGN(bool const changed, changeEach(
                                      g, [](ir::Node const& n) { return n.op == &ops::attention::def(); },
                                      [&](ir::Node& n) -> Result<bool> {
                                          return readIntegers(g, n) || (!ctx.target.computesHalf() && readHalves(g, n));
                                      }));
    if (changed)
        TW_TRY(removeDead(g, ctx));
    return changed;
}

} // namespace tw::passes
