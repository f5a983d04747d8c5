// SPDX-License-Identifier: Apache-2.0
#include "recipe/recipes.h"

#include <algorithm>

#include "base/tensor.h"
#include "ops/dequantize/op.h"
#include "ops/quantize/op.h"
#include "tactic/registry.h"

namespace tw::recipe {

namespace {

// Calls f(value) for the constants of a graph and of its regions, bodies left out.
template <class F>
void forConstants(ir::Graph const& g, F const& f)
{
    for (auto const& v : g.values())
        if (v->isConstant())
            f(*v);
    for (auto const& n : g.nodes)
        for (auto const& r : n->regions)
            forConstants(*r, f);
}

template <class F>
void forBodies(ir::Graph const& g, F const& f)
{
    for (auto const& n : g.nodes) {
        for (auto const& r : n->regions)
            forBodies(*r, f);
        if (n->body) {
            f(*n->body);
            forBodies(*n->body, f);
        }
    }
}

bool mayBeSource(ir::Value const& v)
{
    return isFloating(v.type) && !v.constant->layer.empty() && v.constant->role != ir::WeightsRole::kAny;
}

// Calls f(value) for each time that a node reads a constant as the scale of quantize or dequantize, g(value) for each
// other time.
template <class F, class G>
void forScales(ir::Graph const& graph, F const& f, G const& g)
{
    for (ir::Value const* v : graph.outputs)
        g(v);
    for (auto const& n : graph.nodes) {
        bool const hasScale = n->op == &ops::quantize::def() || n->op == &ops::dequantize::def();
        for (size_t i = 0; i < n->inputs.size(); ++i)
            if (ir::Value const* v = n->inputs[i]; v && v->isConstant())
                hasScale&& i == 1 ? f(v) : g(v);
        for (auto const& r : n->regions)
            forScales(*r, f, g);
    }
}

// Nodes that no output needs, and what only they read.
void removeUnused(ir::Graph& g)
{
    for (size_t i = g.nodes.size(); i-- > 0;) {
        auto const& outputs = g.nodes[i]->outputs;
        if (std::ranges::all_of(outputs, [&](ir::Value const* v) { return g.useCount(v) == 0; }))
            g.eraseNode(g.nodes[i].get());
    }
    g.eraseUnusedValues();
}

} // namespace

Result<void> Recipes::addSources(ir::Graph const& g)
{
    std::map<std::tuple<std::string, ir::WeightsRole, std::string>, std::vector<ir::Value const*>> byName;
    std::vector<ir::Value const*> all;
    forConstants(g, [&](ir::Value const& v) {
        if (!mayBeSource(v) || known_.contains(v.constant->data.get()))
            return;
        all.push_back(&v);
        byName[{v.constant->layer, v.constant->role, v.constant->weightsName}].push_back(&v);
    });
    for (ir::Value const* v : all) {
        auto const& alike = byName[{v->constant->layer, v->constant->role, v->constant->weightsName}];
        bool const isOne = !v->constant->weightsName.empty() || std::ranges::all_of(alike, [&](ir::Value const* other) {
            return other->constant->data == v->constant->data;
        });
        Known& known = known_[v->constant->data.get()];
        if (!isOne || known.value)
            continue;
        known.data = v->constant->data;
        known.value = graph_->addConstant(v->name, v->type, ir::extentsOf(v->shape), v->constant);
        known.sources = {known.value};
    }
    std::erase_if(known_, [](auto const& k) { return !k.second.value; });
    auto sourceOf = [&](ir::Value const* v) {
        auto const it = v->isConstant() ? known_.find(v->constant->data.get()) : known_.end();
        return it == known_.end() ? nullptr : it->second.value;
    };
    Sources others;
    std::vector<ir::Value const*> ranges;
    forScales(
        g,
        [&](ir::Value const* v) {
            scales_.insert(sourceOf(v));
            if (v->constant->role == ir::WeightsRole::kAny && !v->constant->layer.empty())
                ranges.push_back(v);
        },
        [&](ir::Value const* v) { others.insert(sourceOf(v)); });
    for (ir::Value const* v : others)
        scales_.erase(v);
    for (ir::Value const* v : ranges)
        TW_TRY(addRange(v->constant->layer, v->constant->data));
    return {};
}

// Passes may have asked for the elements.
bool Recipes::mayBeUsed(ir::Value const& source) const
{
    return source.constant->role == ir::WeightsRole::kConstant && !scales_.contains(&source) &&
           ir::extentsOf(source.shape).volume() == 1;
}

bool Recipes::protects(ir::Value const& constant) const
{
    auto const it = constant.isConstant() ? known_.find(constant.constant->data.get()) : known_.end();
    if (it == known_.end())
        return false;
    auto const& sources = it->second.sources;
    return std::ranges::any_of(sources, [&](ir::Value const* s) {
        return !fixed_.contains(s) &&
               (s->constant->role != ir::WeightsRole::kConstant || ir::extentsOf(s->shape).volume() != 1);
    });
}

bool Recipes::isLive(Known const& k) const
{
    return std::ranges::any_of(k.sources, [&](ir::Value const* s) { return !fixed_.contains(s); });
}

bool Recipes::reaches(ir::Value const& constant) const
{
    auto const it = constant.isConstant() ? known_.find(constant.constant->data.get()) : known_.end();
    return it != known_.end() && isLive(it->second);
}

Result<ir::Value*> Recipes::valueOf(ir::Value const& constant, Sources& sources)
{
    Extents const dims = ir::extentsOf(constant.shape);
    auto const it = known_.find(constant.constant->data.get());
    if (it != known_.end()) {
        Known const& k = it->second;
        sources.insert(k.sources.begin(), k.sources.end());
        if (k.value->type != constant.type)
            return internalError("constant '{}' has another type than its recipe", constant.name);
        if (ir::extentsOf(k.value->shape) == dims)
            return k.value;
    }
    ir::Value*& view = views_[{constant.constant->data.get(), constant.type, dims.str()}];
    if (!view && it != known_.end()) {
        TW_ASSIGN(view, reshaped(*graph_, it->second.value, dims));
    } else if (!view) {
        auto literal = std::make_shared<ir::Constant>(); // keeps the bytes, so that no address comes back
        literal->data = constant.constant->data;
        view = graph_->addConstant(constant.name, constant.type, dims, std::move(literal));
    }
    return view;
}

Result<void> Recipes::record(ir::Graph const& computation, BlobPtr const& made)
{
    bool isReached = false;
    forConstants(computation, [&](ir::Value const& v) { isReached = isReached || reaches(v); });
    if (!isReached || known_.contains(made.get()))
        return {};
    Known k{made, nullptr, {}};
    std::map<ir::Value const*, ir::Value*> to{{nullptr, nullptr}};
    auto take = [&](ir::Value const* v) -> Result<ir::Value*> {
        if (v && v->isConstant() && !to.contains(v))
            TW_SET(to[v], valueOf(*v, k.sources));
        return to.at(v);
    };
    for (auto const& n : computation.nodes) {
        std::vector<ir::Value*> in;
        for (ir::Value const* v : n->inputs) {
            TW_ASSIGN(ir::Value * mine, take(v));
            in.push_back(mine);
        }
        ir::Node const* copy = graph_->cloneNode(*n, std::move(in));
        for (size_t i = 0; i < n->outputs.size(); ++i)
            to[n->outputs[i]] = copy->outputs[i];
    }
    TW_ASSIGN(k.value, take(computation.outputs[0]));
    known_[made.get()] = std::move(k);
    return {};
}

void Recipes::fix(Blob const& blob)
{
    if (auto const it = known_.find(&blob); it != known_.end())
        fixed_.insert(it->second.sources.begin(), it->second.sources.end());
}

namespace {

thread_local Recipes::Watch* watching = nullptr;

}

Recipes::Watch::Watch(Recipes* recipes, ir::Graph const& g) : recipes_(recipes), g_(g), outer_(watching)
{
    watching = this;
    if (recipes_)
        collectReaders(g_, before_);
}

Recipes::Watch::~Watch()
{
    watching = outer_;
}

void Recipes::Watch::see(ir::Value const& constant)
{
    if (watching && watching->recipes_ && constant.isConstant())
        watching->seen_.insert(constant.constant->data.get());
}

void Recipes::Watch::collectReaders(ir::Graph const& g, Readers& readers) const
{
    auto add = [&](ir::Value const* v, ir::Node const* n, size_t i) {
        if (v && v->isConstant() && recipes_->known_.contains(v->constant->data.get()))
            readers[v->constant->data.get()].emplace(n, n ? n->op : nullptr, i);
    };
    for (size_t i = 0; i < g.outputs.size(); ++i)
        add(g.outputs[i], nullptr, i);
    for (auto const& n : g.nodes) {
        for (size_t i = 0; i < n->inputs.size(); ++i)
            add(n->inputs[i], n.get(), i);
        for (auto const& r : n->regions)
            collectReaders(*r, readers);
    }
}

void Recipes::Watch::finish()
{
    if (!recipes_ || seen_.empty())
        return;
    Readers after;
    collectReaders(g_, after);
    for (Blob const* blob : seen_) {
        auto const at = before_.find(blob);
        if (at == before_.end())
            continue;
        auto const &was = at->second, &is = after[blob];
        if (!std::includes(is.begin(), is.end(), was.begin(), was.end()))
            for (ir::Value const* s : recipes_->known_.at(blob).sources)
                if (recipes_->mayBeUsed(*s))
                    recipes_->fixed_.insert(s);
    }
}

// One name stands for all weights that have it, parts of an array too: what is fixed in one layer cannot change in another.
void Recipes::fixNamesakes()
{
    auto const nameOf = [](ir::Value const& source) {
        return source.constant->weightsName.substr(0, source.constant->weightsName.find(kPartMark));
    };
    std::set<std::string> names;
    for (ir::Value const* s : fixed_)
        names.insert(nameOf(*s));
    names.erase("");
    for (auto const& v : graph_->values())
        if (v->isConstant() && names.contains(nameOf(*v)))
            fixed_.insert(v.get());
}

Result<Recipes::Finished> Recipes::finish(ir::Graph const& g)
{
    // What is inside of a fused node has become part of its kernel.
    forBodies(g,
              [&](ir::Graph const& body) { forConstants(body, [&](ir::Value const& v) { fix(*v.constant->data); }); });
    fixNamesakes();
    for (auto const& v : graph_->values())
        if (v->isConstant() && fixed_.contains(v.get())) {
            auto literal = std::make_shared<ir::Constant>();
            literal->data = v->constant->data;
            v->constant = std::move(literal);
        }
    Finished out;
    Sources used;
    forConstants(g, [&](ir::Value const& v) {
        if (!reaches(v))
            return;
        Known const& known = known_.at(v.constant->data.get());
        used.insert(known.sources.begin(), known.sources.end());
        ir::Value* const value = known.value;
        auto& list = graph_->outputs;
        auto const at = std::ranges::find(list, value);
        out.made[&v] = int32_t(at - list.begin());
        if (at == list.end())
            list.push_back(value);
    });
    keepConditions(used);
    removeUnused(*graph_);
    TW_TRY(ir::verify(*graph_));
    out.recipes = std::move(graph_);
    graph_ = std::make_unique<ir::Graph>();
    return out;
}

ir::Value* Computation::take(ir::Value const& constant)
{
    return take(constant, ir::extentsOf(constant.shape));
}

ir::Value* Computation::take(ir::Value const& constant, Extents const& dims)
{
    return graph_.addConstant(constant.name, constant.type, dims, constant.constant);
}

ir::Value* Computation::literal(DataType type, Extents const& dims, double value)
{
    Tensor t(type, dims);
    for (int64_t i = 0; i < t.count(); ++i)
        t.ref().set(i, value);
    return graph_.addConstant("literal", type, dims, t.data());
}

Result<ir::Value*> Computation::add(ir::OpDef const& op, ir::AttrsBase const& attrs, std::vector<ir::Value*> inputs)
{
    std::string const name = inputs[0]->name + "." + op.name;
    TW_ASSIGN(ir::Node * n, graph_.addNode(op, attrs.clone(), std::move(inputs), name));
    return n->outputs[0];
}

Result<BlobPtr> Computation::finish(ir::Value* result)
{
    std::vector<Open> one;
    one.push_back({std::move(*this), result});
    TW_ASSIGN(std::vector<BlobPtr> const made, finishAll(one, serialWorkers()));
    return made[0];
}

Result<std::vector<BlobPtr>> Computation::finishAll(std::vector<Open>& list, Workers& workers)
{
    std::vector<std::optional<Result<std::vector<BlobPtr>>>> done(list.size());
    workers.run(int64_t(list.size()), [&](int64_t i, int) {
        Open& o = list[size_t(i)];
        o.computation.graph_.outputs = {o.result};
        done[size_t(i)] = evaluate(o.computation.graph_, {});
    });
    std::vector<BlobPtr> out;
    for (size_t i = 0; i < list.size(); ++i) {
        TW_TRY(*done[i]);
        Computation const& c = list[i].computation;
        out.push_back((*done[i])->front());
        if (c.recipes_)
            TW_TRY(c.recipes_->record(c.graph_, out.back()));
    }
    return out;
}

} // namespace tw::recipe
