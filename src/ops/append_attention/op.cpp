// SPDX-License-Identifier: Apache-2.0
#include "ops/append_attention/op.h"

#include <cmath>

#include "tactic/domain.h"
#include "tactic/layer_facts.h"
#include "tactic/registry.h"

namespace tw::ops::append_attention {

namespace {

using ir::ValueInfo;

// The outputs of a part, by its own inference.
Result<ValueInfo> inferred(ir::InferContext const& ctx, Part part, std::vector<ValueInfo> in)
{
    ir::Node node = nodeOf(ctx.attrs<Attrs>(), part);
    node.name = ctx.node().name;
    ir::InferContext own(node, std::move(in), ctx.concrete());
    TW_TRY(node.op->infer(own));
    return own.outputs()[0];
}

Result<void> checkTurned(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (ctx.rank(kQueries) != 3 || ctx.has(kNewKeys) || !ctx.has(kCosines) || !ctx.has(kSines))
        return ctx.error("a rotation of {} elements wants queries and new keys in {}, cosines and sines", a.rotarySize,
                         ctx.describe(kQueries));
    for (int i : {kCosines, kSines})
        if (ctx.rank(i) != 4 || !ctx.shape(i)[2].is(1))
            return ctx.error("{} must have rank 4 and a third dimension of 1", ctx.describe(i));
    if (a.attention.q.headStride != a.attention.size || a.attention.q.offset < 0 || a.attention.q.offset > INT32_MAX)
        return ctx.error("heads that are turned lie {} columns apart, they have {} elements", a.attention.q.headStride,
                         a.attention.size);
    return {};
}

// How many rows there are to write, packed or by heads.
ir::Dim newRows(ir::Shape const& u)
{
    return u.size() == 3 ? u[1] : u[size_t(kRowsAxis)];
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    for (int i :
         {kQueries, kKeyCache, kValueCache, kNewValues, kIndex}) // new keys and a rotation go without each other
        if (!ctx.has(i))
            return ctx.error("input {} is not given", i);
    for (int i = kOthers; i < ctx.inputCount(); ++i)
        if (!ctx.has(i))
            return ctx.error("input {} is not given (leave it out of the list)", i);
    int64_t const sizes[] = {a.attention.heads, a.attention.size, a.attention.headsPerKey};
    if (std::ranges::any_of(sizes, [](int64_t n) { return n < 1 || n > INT16_MAX; }))
        return ctx.error("{} heads of {} elements, {} on those of keys, are out of range (allowed: 1..32767)",
                         a.attention.heads, a.attention.size, a.attention.headsPerKey);
    if (a.attention.segments || a.attention.pages || a.attention.rowsFirst || ctx.rank(kKeyCache) != 4 ||
        ctx.rank(kValueCache) != 4)
        return ctx.error("the caches {} and {} must have rank 4 and rows of their own, behind a batch",
                         ctx.describe(kKeyCache), ctx.describe(kValueCache));
    auto const info = [&](int i) { return ValueInfo{ctx.type(i), ctx.shape(i), {}, true}; };
    ValueInfo rows = info(kQueries);
    if (a.isTurned()) {
        TW_TRY(checkTurned(ctx));
        TW_ASSIGN(rows, inferred(ctx, Part::kRotation, {rows, info(kCosines), info(kSines)}));
        rows.shape = {rows.shape[0], rows.shape[1], a.turnedWidth()};
        rows.present = true;
    } else if (!ctx.has(kNewKeys) || a.rotarySize < 0) {
        return ctx.error("new keys are not given, and a rotary size of {} has none", a.rotarySize);
    }
    TW_ASSIGN(ValueInfo keys,
              inferred(ctx, Part::kKeyUpdate, {info(kKeyCache), a.isTurned() ? rows : info(kNewKeys), info(kIndex)}));
    TW_ASSIGN(ValueInfo values, inferred(ctx, Part::kValueUpdate, {info(kValueCache), info(kNewValues), info(kIndex)}));
    keys.present = values.present = true;
    ir::Dim const keyRows = newRows(a.isTurned() ? rows.shape : ctx.shape(kNewKeys)),
                  valueRows = newRows(ctx.shape(kNewValues));
    if (keyRows.isConst() && valueRows.isConst() && !(keyRows == valueRows))
        return ctx.error("{} new rows of keys and {} of values must be as many", keyRows.str(), valueRows.str());
    std::vector<ValueInfo> all{rows, keys, values};
    for (int i = kOthers; i < ctx.inputCount(); ++i)
        all.push_back(info(i));
    TW_ASSIGN(ValueInfo const y, inferred(ctx, Part::kAttention, std::move(all)));
    ctx.output(0, y.type, y.shape);
    ctx.output(1, keys.type, keys.shape);
    ctx.output(2, values.type, values.shape);
    return {};
}

// Rows go where they fit; the rest as attention has it.
void domain(ir::Node const& node, int input, Domain& d)
{
    auto const& a = node.attrsAs<Attrs>();
    ir::Dim const& capacity = node.inputs[kKeyCache]->shape[2];
    if (input == kIndex) {
        d = {-1, capacity.isConst() ? double(capacity.value()) : 4, true};
        return;
    }
    bool const isCache = input == kKeyCache || input == kValueCache || input == kNewKeys || input == kNewValues;
    if (isCache && a.attention.scales) {
        d = {-127, 127, true};
        return;
    }
    ir::Node part = nodeOf(a, Part::kAttention);
    part.inputs = {node.inputs[kQueries], node.inputs[kKeyCache], node.inputs[kValueCache]};
    part.inputs.insert(part.inputs.end(), node.inputs.begin() + kOthers, node.inputs.end());
    if (input >= kOthers)
        part.op->domain(part, input - kOthers + kAttentionOthers, d);
    else if (input == kQueries || isCache)
        part.op->domain(part, 0, d);
}

Tolerance tolerance(ir::Node const& node, DataType type)
{
    auto const& a = node.attrsAs<Attrs>();
    ir::Node const part = nodeOf(a, Part::kAttention);
    Tolerance t = part.op->tolerance(part, type);
    // Turned queries and keys are numbers of the tensors' type, or those that it rounds: each product of a score differs.
    if (a.isTurned() && isNarrowFloat(type))
        t.absolute += 2 * std::fabs(a.attention.scale) * std::sqrt(double(a.attention.size)) *
                      std::ldexp(1.0, -numberType(type).mantissaBits - 1);
    return t;
}

double operations(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    ir::Node const part = nodeOf(node.attrsAs<Attrs>(), Part::kAttention);
    std::vector<TensorRef> all{in[kQueries], in[kKeyCache], in[kValueCache]};
    all.insert(all.end(), in.begin() + kOthers, in.end());
    return part.op->operations(part, all, out);
}

constexpr ir::InPlace kInPlace[] = {{kKeyCache, 1}, {kValueCache, 2}};

} // namespace

rotary::Attrs Attrs::rotation() const
{
    rotary::Attrs r;
    r.size = rotarySize;
    r.interleaved = interleaved;
    r.heads = turnedHeads();
    r.offset = attention.q.offset;
    r.rowSize = attention.size;
    return r;
}

cache_update::Attrs Attrs::keyUpdate() const
{
    cache_update::Attrs u;
    u.axis = kRowsAxis;
    u.offset = isTurned() ? attention.heads * attention.size : keyOffset;
    u.headStride = isTurned() ? attention.size : keyHeadStride;
    return u;
}

cache_update::Attrs Attrs::valueUpdate() const
{
    cache_update::Attrs u;
    u.axis = kRowsAxis;
    u.offset = valueOffset;
    u.headStride = valueHeadStride;
    return u;
}

attention::Attrs Attrs::attending() const
{
    attention::Attrs of = attention;
    if (isTurned())
        of.q.offset = 0;
    return of;
}

ir::Node nodeOf(Attrs const& a, Part part)
{
    ir::Node n;
    auto const set = [&](ir::OpDef const& op, ir::AttrsBase const& attrs) {
        n.op = &op;
        n.attrs = attrs.clone();
    };
    switch (part) {
    case Part::kRotation:
        set(rotary::def(), a.rotation());
        break;
    case Part::kKeyUpdate:
        set(cache_update::def(), a.keyUpdate());
        break;
    case Part::kValueUpdate:
        set(cache_update::def(), a.valueUpdate());
        break;
    case Part::kAttention:
        set(attention::def(), a.attending());
    }
    return n;
}

constinit ir::OpDef const kDef{
    .name = "append_attention",
    TW_OP_PARTS(Attrs),
    .inputs = {kNewKeys, kMostInputs},
    .domain = domain,
    .tolerance = tolerance,
    // 8.5 gives such a subgraph to another compiler, whose layers have no kind of their own.
    .inspect = [](LayerFacts& facts) { facts.kind("Myelin", ""); },
    .operations = operations,
    .inPlace = kInPlace,
};

} // namespace tw::ops::append_attention
