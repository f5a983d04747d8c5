// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "ir/graph.h"
#include "ir/infer.h"
#include "ir/op_def.h"

namespace tw::ir {

namespace {

constexpr int kMaxNesting = 64;

Error bad(Graph const& g, std::string const& what)
{
    return internalError("graph '{}': {}", g.name, what);
}

// Inference again on the node as it stands must give the types and shapes that its output values carry.
Result<void> verifyInference(Graph const& g, Node const& n)
{
    auto infos = mapped<ValueInfo>(n.inputs, [&](Value const* v) { return v ? infoOf(*v) : ValueInfo{}; });
    InferContext ctx(n, std::move(infos), false);
    ctx.setSymbols(&g.symbols);
    TW_TRY(n.op->infer(ctx));
    if (ctx.outputs().size() != n.outputs.size())
        return bad(g, fmt::format("node '{}' has {} outputs, inference gives {}", n.name, n.outputs.size(),
                                  ctx.outputs().size()));
    for (size_t i = 0; i < n.outputs.size(); ++i) {
        Value const& v = *n.outputs[i];
        ValueInfo const& o = ctx.outputs()[i];
        if (v.type != o.type || v.shape.size() != o.shape.size())
            return bad(g, fmt::format("output {} of node '{}' is {}{}, inference gives {}{}", i, n.name, nameOf(v.type),
                                      str(v.shape), nameOf(o.type), str(o.shape)));
        for (size_t d = 0; d < v.shape.size(); ++d)
            if (v.shape[d].isConst() && o.shape[d].isConst() && !(v.shape[d] == o.shape[d]))
                return bad(g, fmt::format("output {} of node '{}' has shape {}, inference gives {}", i, n.name,
                                          str(v.shape), str(o.shape)));
    }
    return {};
}

// Ranks, dimensions and element counts within what the API allows, so that later arithmetic on them cannot overflow.
Result<void> verifyLimits(Graph const& g, Value const& v)
{
    if (v.rank() > kMaxRank)
        return bad(g, fmt::format("value '{}' has rank {}, the limit is {}", v.name, v.rank(), kMaxRank));
    int64_t elements = 1;
    for (Dim const& d : v.shape) {
        if (!d.isConst())
            continue;
        if (d.value() < 0 || d.value() > INT32_MAX)
            return bad(g, fmt::format("value '{}' has dimension {} in {} (allowed: 0..2^31 - 1)", v.name, d.value(),
                                      str(v.shape)));
        elements = mulSat(elements, d.value());
    }
    if (isStatic(v.shape) && elements > INT32_MAX)
        return bad(g, "value '" + v.name + "' with shape " + str(v.shape) +
                          " has 2^31 elements or more; the limit is 2^31 - 1");
    bool const mayPack = fitsRank(v.format, v.rank()) && !v.host && !v.isConstant();
    if (!isKnown(v.format) || (v.format != Format::kLinear && !mayPack))
        return bad(g, fmt::format("value '{}' cannot be in format {}: that is for tensors of rank {} and up that are "
                                  "computed on the device",
                                  v.name, nameOf(v.format), leastRankOf(v.format)));
    if (v.content && int64_t(v.content->size()) > kMaxContent)
        return bad(g, "value '" + v.name + "' has more contents than shape arithmetic keeps");
    if (v.content && isStatic(v.shape) && int64_t(v.content->size()) != elements)
        return bad(g,
                   fmt::format("value '{}' of {} elements has contents for {}", v.name, elements, v.content->size()));
    return {};
}

// Clients see the network's inputs and outputs; those of regions and bodies are linear.
Result<void> verifyBoundary(Graph const& g, Value const& v, char const* what, int depth)
{
    if (v.format == Format::kLinear || (depth == 0 && v.format != Format::kChannelsLast))
        return {};
    return bad(g, fmt::format("{} '{}' cannot be in format {}{}", what, v.name, nameOf(v.format),
                              depth == 0 ? ", which is internal" : ": inside regions and bodies it must be linear"));
}

Result<void> verifyGraph(Graph const& g, int depth)
{
    if (depth > kMaxNesting)
        return bad(g, fmt::format("nested deeper than {} regions", kMaxNesting));
    std::set<Value const*> owned, ready;
    for (auto const& v : g.values()) {
        owned.insert(v.get());
        TW_TRY(verifyLimits(g, *v));
        if (v->isConstant()) {
            if (!isStatic(v->shape) || int(v->shape.size()) > kMaxRank)
                return bad(g, "constant '" + v->name + "' has no static shape");
            int64_t bytes = sizeOf(v->type);
            for (Dim const& d : v->shape)
                bytes = d.value() < 0 ? INT64_MAX : mulSat(bytes, d.value());
            if (!v->constant->data || int64_t(v->constant->data->sizeBytes()) < bytes)
                return bad(g, fmt::format("constant '{}' needs {} bytes, it has fewer", v->name, bytes));
            ready.insert(v.get());
        }
    }
    for (Value const* v : g.inputs) {
        if (!owned.contains(v) || v->producer || v->isConstant())
            return bad(g, "input list names a value that is no input");
        TW_TRY(verifyBoundary(g, *v, "input", depth));
        if (!ready.insert(v).second)
            return bad(g, "input list names '" + v->name + "' twice");
    }
    for (auto const& n : g.nodes) {
        if (!n->op || !n->attrs)
            return bad(g, "node '" + n->name + "' has no op");
        int const count = int(n->inputs.size());
        if (count < n->op->inputs.least || (n->op->inputs.most >= 0 && count > n->op->inputs.most))
            return bad(g, fmt::format("node '{}' ({}) has {} inputs", n->name, n->op->name, count));
        for (int i = 0; i < count; ++i) {
            Value const* v = n->inputs[i];
            if (!v && i < n->op->inputs.least)
                return bad(g, fmt::format("node '{}' misses input {}", n->name, i));
            if (v && !ready.contains(v))
                return bad(g, "node '" + n->name + "' uses a value before it is made (a cycle, or another graph's)");
        }
        if (int(n->regions.size()) != n->op->regionCount)
            return bad(g, fmt::format("node '{}' has {} regions", n->name, n->regions.size()));
        for (auto const& r : n->regions)
            TW_TRY(verifyGraph(*r, depth + 1));
        if (n->body) {
            if (n->body->inputs.size() != n->inputs.size() || n->body->outputs.size() != n->outputs.size())
                return bad(g, "the body of node '" + n->name + "' has other inputs or outputs than the node");
            TW_TRY(verifyGraph(*n->body, depth + 1));
        }
        TW_TRY(verifyInference(g, *n));
        for (Value const* v : n->outputs) {
            if (!owned.contains(v) || v->producer != n.get() || !ready.insert(v).second)
                return bad(g, "node '" + n->name + "' has an output that it does not own");
        }
    }
    for (Value const* v : g.outputs)
        if (!ready.contains(v))
            return bad(g, "output list names a value that nothing makes");
    for (Value const* v : g.outputs)
        TW_TRY(verifyBoundary(g, *v, "output", depth));
    return {};
}

} // namespace

Result<void> verify(Graph const& g)
{
    return verifyGraph(g, 0);
}

} // namespace tw::ir
