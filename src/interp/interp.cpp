// SPDX-License-Identifier: Apache-2.0
#include "interp/interp.h"

#include "ir/infer.h"
#include "ir/op_def.h"
#include "tactic/reference.h"

namespace tw::interp {

namespace {

using ir::Dim;

ir::ValueInfo infoOf(TensorRef const& t, bool wantContent)
{
    ir::ValueInfo info;
    info.type = t.type;
    info.shape = ir::shapeOf(t.dims);
    info.present = true;
    // Without elements there is no memory either, and nothing unknown.
    if (wantContent && (t.data || t.count() == 0) && (t.type == DataType::kInt32 || t.type == DataType::kBool) &&
        t.count() <= ir::kMaxContent) {
        std::vector<Dim> content;
        for (int64_t i = 0; i < t.count(); ++i)
            content.emplace_back(t.getInt(i));
        info.content = std::move(content);
    }
    return info;
}

Result<Tensor> copyAs(DataType type, TensorRef const& from)
{
    Tensor to(type, from.dims);
    if (!to.data())
        return failedAllocation("no memory for a copy of shape " + from.dims.str());
    copyElements(from, to.ref());
    return to;
}

// Symbols of a graph input's shape that are plain names take the input's sizes; every other dimension is compared.
Result<void> bindInput(ir::Graph const& g, ir::Value const& v, TensorRef const& t, Options const& options,
                       ir::Bindings& bindings)
{
    std::string const where = "graph '" + g.name + "': input '" + v.name + "'";
    if (t.type != v.type)
        return invalidArgument(where + " is " + nameOf(t.type) + ", the graph declares " + nameOf(v.type));
    if (t.dims.rank != v.rank())
        return invalidArgument(where + " has shape " + t.dims.str() + ", the graph declares " + str(v.shape));
    for (int i = 0; i < v.rank(); ++i) {
        Dim const& d = v.shape[i];
        int64_t want = t.dims[i];
        if (d.isConst()) {
            want = d.value();
        } else if (auto known = d.eval(bindings); known.ok()) {
            want = *known;
        } else {
            std::vector<std::string> names;
            d.collectSymbols(names);
            if (names.size() == 1 && d == Dim::symbol(names[0]))
                bindings[names[0]] = t.dims[i];
        }
        if (want != t.dims[i] && !(i == 0 && options.takesAnyBatch))
            return invalidArgument("{} has shape {}; dimension {} must be {}", where, t.dims.str(), i, want);
    }
    return {};
}

} // namespace

Result<std::vector<ConcreteOutput>> inferConcrete(ir::Node const& node, std::vector<TensorRef> const& inputs)
{
    std::vector<ir::ValueInfo> infos;
    for (size_t i = 0; i < inputs.size(); ++i)
        infos.push_back(node.inputs[i] ? infoOf(inputs[i], true) : ir::ValueInfo{});
    ir::InferContext ctx(node, std::move(infos), true);
    TW_TRY(node.op->infer(ctx));
    std::vector<ConcreteOutput> outputs;
    for (size_t i = 0; i < ctx.outputs().size(); ++i) {
        ir::ValueInfo const& o = ctx.outputs()[i];
        ConcreteOutput out{o.type, {}, false};
        int64_t elements = 1;
        if (int(o.shape.size()) > kMaxRank)
            return ctx.error("output rank {} is above {}", o.shape.size(), kMaxRank);
        for (Dim const& d : o.shape) {
            int64_t size = d.value();
            if (!d.isConst()) {
                out.bounded = true;
                size = d.range(ctx.freshSymbols()).hi;
                bool const isOpen = size >= INT32_MAX; // the largest dimension there is says nothing
                out.unlimited = out.unlimited || isOpen;
                size = isOpen ? 0 : size;
            }
            if (size < 0)
                return ctx.error("output {} would have the negative dimension {} in {}", i, size, str(o.shape));
            elements = ir::mulSat(elements, size);
            out.dims.push(size);
        }
        if (elements > INT32_MAX)
            return ctx.error("output {} with shape {} has 2^31 elements or more", i, str(o.shape));
        outputs.push_back(out);
    }
    return outputs;
}

namespace {

Result<std::vector<Tensor>> allocate(ir::Node const& node, std::vector<ConcreteOutput> const& shapes)
{
    std::vector<Tensor> outputs;
    for (ConcreteOutput const& s : shapes) {
        outputs.emplace_back(s.type, s.dims);
        if (!outputs.back().data())
            return failedAllocation("node '" + node.name + "': no memory for an output of shape " + s.dims.str());
    }
    return outputs;
}

// Whether an output without a bound has become larger than its memory; its shape is the real one then.
bool growUnlimited(std::vector<ConcreteOutput>& shapes, ops::RefContext const& ctx)
{
    bool grown = false;
    for (size_t i = 0; i < shapes.size(); ++i) {
        Extents const& dims = ctx.out(int(i)).dims;
        if (!shapes[i].unlimited || dims.volume() <= shapes[i].dims.volume())
            continue;
        shapes[i].dims = dims;
        grown = true;
    }
    return grown;
}

} // namespace

Result<std::vector<Tensor>> runNode(ir::Node const& node, std::vector<TensorRef> const& inputs, Options const& options)
{
    TW_ASSIGN(auto shapes, inferConcrete(node, inputs));
    for (ConcreteOutput& s : shapes)
        if (options.widensHalf && isNarrowFloat(s.type))
            s.type = DataType::kFloat;
    if (!node.op->reference && node.body)
        return run(*node.body, inputs, options);
    uint64_t const randomState = options.randomState ? *options.randomState : 0;
    for (;;) {
        TW_ASSIGN(std::vector<Tensor> outputs, allocate(node, shapes));
        std::vector<TensorRef> refs;
        for (Tensor const& t : outputs)
            refs.push_back(t.ref());
        ops::RefContext ctx(node, inputs, refs);
        ctx.randomState = options.randomState;
        ctx.maxTrips = options.maxTrips;
        if (!options.wanted.empty() && !refs.empty() && refs[0].count() == int64_t(options.wanted.size()))
            ctx.setWanted(options.wanted);
        ctx.setRegionRunner(
            [&](ir::Graph const& region, std::vector<TensorRef> const& in) { return run(region, in, options); });
        TW_TRY(node.op->reference(ctx));
        if (growUnlimited(shapes, ctx)) { // once more, with memory
            if (options.randomState)
                *options.randomState = randomState;
            continue;
        }
        for (size_t i = 0; i < outputs.size(); ++i) {
            if (!shapes[i].bounded || ctx.out(int(i)).dims == shapes[i].dims)
                continue;
            TensorRef const& small = ctx.out(int(i));
            if (small.dims.volume() > shapes[i].dims.volume())
                return internalError("node '{}': output {} has shape {}, above its bound {}", node.name, i,
                                     small.dims.str(), shapes[i].dims.str());
            Tensor exact(small.type, small.dims);
            std::memcpy(exact.data(), small.data, size_t(small.sizeBytes()));
            outputs[i] = std::move(exact);
        }
        return outputs;
    }
}

Result<std::vector<Tensor>> run(ir::Graph const& graph, std::vector<TensorRef> const& inputs, Options const& options)
{
    if (inputs.size() != graph.inputs.size())
        return invalidArgument("graph '{}': {} inputs given, {} expected", graph.name, inputs.size(),
                               graph.inputs.size());
    ir::Bindings bindings;
    std::map<ir::Value const*, TensorRef> known;
    std::map<ir::Value const*, Tensor> owned;
    std::map<ir::Value const*, int> uses;
    for (auto const& n : graph.nodes)
        for (ir::Value const* v : n->inputs)
            ++uses[v];
    for (ir::Value const* v : graph.outputs)
        ++uses[v];
    auto keep = [&](ir::Value const* v, TensorRef const& t) -> Result<void> {
        known[v] = t;
        if (!options.widensHalf || !isNarrowFloat(t.type) || !t.data)
            return {};
        TW_ASSIGN(owned[v], copyAs(DataType::kFloat, t));
        known[v] = owned[v].ref();
        return {};
    };
    for (size_t i = 0; i < inputs.size(); ++i) {
        TensorRef declared = inputs[i];
        if (options.widensHalf && isFullFloat(declared.type))
            declared.type = graph.inputs[i]->type; // of a graph within a wider one
        TW_TRY(bindInput(graph, *graph.inputs[i], declared, options, bindings));
        TW_TRY(keep(graph.inputs[i], inputs[i]));
    }
    for (auto const& v : graph.values())
        if (v->isConstant())
            TW_TRY(keep(v.get(),
                        TensorRef{v->type, ir::extentsOf(v->shape), const_cast<void*>(v->constant->data->data())}));
    for (auto const& n : graph.nodes) {
        std::vector<TensorRef> in;
        for (ir::Value const* v : n->inputs)
            in.push_back(v ? known.at(v) : TensorRef{});
        TW_ASSIGN(auto out, runNode(*n, in, options));
        for (size_t i = 0; i < out.size(); ++i) {
            ir::Value const* v = n->outputs[i];
            known[v] = out[i].ref();
            owned[v] = std::move(out[i]);
            if (options.observe)
                options.observe(*v, known[v]);
        }
        for (ir::Value const* v : n->inputs)
            if (v && --uses[v] == 0)
                owned.erase(v);
    }
    std::vector<Tensor> results;
    for (ir::Value const* v : graph.outputs) {
        TensorRef const& r = known.at(v);
        if (r.type != v->type) { // it was widened
            TW_ASSIGN(Tensor narrow, copyAs(v->type, r));
            results.push_back(std::move(narrow));
            continue;
        }
        Tensor t(r.type, r.dims);
        if (r.sizeBytes() > 0)
            std::memcpy(t.data(), r.data, size_t(r.sizeBytes()));
        results.push_back(std::move(t));
    }
    return results;
}

} // namespace tw::interp
