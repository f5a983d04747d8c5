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
    return internalError("graph '", g.name, "': ", what);
}

// Inference again on the node as it stands must give the types and shapes that its output values carry.
Result<void> verifyInference(Graph const& g, Node const& n)
{
    auto infos = mapped<ValueInfo>(n.inputs, [&](Value const* v) { return v ? infoOf(*v) : ValueInfo{}; });
    InferContext ctx(n, std::move(infos), false);
    ctx.setSymbols(&g.symbols);
    TW_TRY(n.op->infer(ctx));
    if (ctx.outputs().size() != n.outputs.size())
        return bad(g, phrase("node '", n.name, "' has ", n.outputs.size(), " outputs, inference gives ",
                             ctx.outputs().size()));
    for (size_t i = 0; i < n.outputs.size(); ++i) {
        Value const& v = *n.outputs[i];
        ValueInfo const& o = ctx.outputs()[i];
        if (v.type != o.type || v.shape.size() != o.shape.size())
            return bad(g, phrase("output ", i, " of node '", n.name, "' is ", nameOf(v.type), str(v.shape),
                                 ", inference gives ", nameOf(o.type), str(o.shape)));
        for (size_t d = 0; d < v.shape.size(); ++d)
            if (v.shape[d].isConst() && o.shape[d].isConst() && !(v.shape[d] == o.shape[d]))
                return bad(g, phrase("output ", i, " of node '", n.name, "' has shape ", str(v.shape),
                                     ", inference gives ", str(o.shape)));
    }
    return {};
}

// Ranks, dimensions and element counts within what the API allows, so that later arithmetic on them cannot overflow.
Result<void> verifyLimits(Graph const& g, Value const& v)
{
    if (v.rank() > kMaxRank)
        return bad(g, phrase("value '", v.name, "' has rank ", v.rank(), ", the limit is ", kMaxRank));
    int64_t elements = 1;
    for (Dim const& d : v.shape) {
        if (!d.isConst())
            continue;
        if (d.value() < 0 || d.value() > INT32_MAX)
            return bad(g, phrase("value '", v.name, "' has dimension ", d.value(), " in ", str(v.shape),
                                 " (allowed: 0..2^31 - 1)"));
        elements = mulSat(elements, d.value());
    }
    if (isStatic(v.shape) && elements > INT32_MAX)
        return bad(g, "value '" + v.name + "' with shape " + str(v.shape) +
                          " has 2^31 elements or more; the limit is 2^31 - 1");
    bool const mayPack = fitsRank(v.format, v.rank()) && !v.host && !v.isConstant();
    if (!isKnown(v.format) || (v.format != Format::kLinear && !mayPack))
        return bad(g, phrase("value '", v.name, "' cannot be in format ", nameOf(v.format),
                             ": that is for tensors of rank ", leastRankOf(v.format),
                             " and up that are computed on the device"));
    if (v.content && int64_t(v.content->size()) > kMaxContent)
        return bad(g, "value '" + v.name + "' has more contents than shape arithmetic keeps");
    if (v.content && isStatic(v.shape) && int64_t(v.content->size()) != elements)
        return bad(g, phrase("value '", v.name, "' of ", elements, " elements has contents for ", v.content->size()));
    return {};
}

// Clients see the network's inputs and outputs; those of regions and bodies are linear.
Result<void> verifyBoundary(Graph const& g, Value const& v, char const* what, int depth)
{
    if (v.format == Format::kLinear || (depth == 0 && v.format != Format::kChannelsLast))
        return {};
    return bad(g, phrase(what, " '", v.name, "' cannot be in format ", nameOf(v.format),
                         depth == 0 ? ", which is internal" : ": inside regions and bodies it must be linear"));
}

Result<void> verifyGraph(Graph const& g, int depth)
{
    if (depth > kMaxNesting)
        return bad(g, phrase("nested deeper than ", kMaxNesting, " regions"));
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
                return bad(g, phrase("constant '", v->name, "' needs ", bytes, " bytes, it has fewer"));
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
            return bad(g, phrase("node '", n->name, "' (", n->op->name, ") has ", count, " inputs"));
        for (int i = 0; i < count; ++i) {
            Value const* v = n->inputs[i];
            if (!v && i < n->op->inputs.least)
                return bad(g, phrase("node '", n->name, "' misses input ", i));
            if (v && !ready.contains(v))
                return bad(g, "node '" + n->name + "' uses a value before it is made (a cycle, or another graph's)");
        }
        if (int(n->regions.size()) != n->op->regionCount)
            return bad(g, phrase("node '", n->name, "' has ", n->regions.size(), " regions"));
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
