// SPDX-License-Identifier: Apache-2.0
#include "api/control_flow/nesting.h"

#include <algorithm>
#include <set>

#include "api/control_flow/layers.h"

namespace tw::api::control_flow {

using nvinfer1::LayerType;
using nvinfer1::TripLimit;

Crossing crossingOf(LayerState const& l, size_t index)
{
    switch (l.type) {
    case LayerType::kRECURRENCE:
        return index == 0 ? Crossing::kEnters : Crossing::kLeaves;
    case LayerType::kLOOP_OUTPUT:
        return index == 0 ? Crossing::kLeaves : Crossing::kEnters;
    case LayerType::kTRIP_LIMIT:
        return static_cast<TripLimitLayer const&>(l).limit == TripLimit::kCOUNT ? Crossing::kEnters : Crossing::kLeaves;
    case LayerType::kCONDITIONAL_OUTPUT:
        return Crossing::kLeaves;
    default:
        return Crossing::kEnters;
    }
}

bool isExit(LayerState const& l)
{
    return l.type == LayerType::kLOOP_OUTPUT || l.type == LayerType::kCONDITIONAL_OUTPUT;
}

TensorObject* alsoNeeds(LayerState const& l)
{
    if (l.type != LayerType::kLOOP_OUTPUT)
        return nullptr;
    auto const& output = static_cast<LoopOutputLayer const&>(l);
    TripLimitLayer const* const count = limitOf(*l.construct, TripLimit::kCOUNT);
    return count && output.stacks() && !output.length() ? count->inputs[0] : nullptr;
}

namespace {

// The count of a loop, as far as shape arithmetic knows it.
struct KnownCount
{
    TensorObject const* tensor = nullptr;    // null: not known
    std::set<TensorObject const*> readByRun; // the inputs that make it data
};

bool isKnownIn(NetworkObject const& network, TensorObject const& t)
{
    ir::Value const* const v = network.valueOf(t);
    return v && isKnown(*v);
}

KnownCount countOf(NetworkObject const& network, Construct const& loop, InputNames const& given)
{
    TripLimitLayer const* const count = limitOf(loop, TripLimit::kCOUNT);
    ir::Value const* const v = count ? network.valueOf(*count->inputs[0]) : nullptr;
    if (!v || !v->content || isKnown(*v))
        return {};
    KnownCount known{count->inputs[0], {}};
    auto const outputs = layersOf<LoopOutputLayer>(loop, LayerType::kLOOP_OUTPUT);
    if (std::ranges::any_of(outputs, [](auto* l) { return alsoNeeds(*l) != nullptr; }))
        return known;
    std::vector<std::string> symbols;
    for (ir::Dim const& element : *v->content)
        element.collectSymbols(symbols);
    for (auto const& t : network.inputs) {
        ir::Value const* const input = network.valueOf(*t);
        bool const decides =
            input && input->content && std::ranges::any_of(*input->content, [&](ir::Dim const& element) {
                return contains(symbols, element.str());
            });
        if (decides && given.contains(t->name))
            return {known.tensor, {}};
        if (decides)
            known.readByRun.insert(t.get());
    }
    return known;
}

} // namespace

std::vector<TensorObject const*> shapeInputs(NetworkObject const& network, InputNames const& given)
{
    std::vector<TensorObject const*> out;
    for (auto const& c : network.constructs) {
        for (LoopOutputLayer const* l : layersOf<LoopOutputLayer>(*c, LayerType::kLOOP_OUTPUT))
            if (l->length() && !isKnownIn(network, *l->length()))
                out.push_back(l->length());
        if (KnownCount const count = countOf(network, *c, given); count.tensor && count.readByRun.empty())
            out.push_back(count.tensor);
    }
    return out;
}

std::set<TensorObject const*> readByRun(NetworkObject const& network, InputNames const& given)
{
    std::set<TensorObject const*> out;
    for (auto const& c : network.constructs)
        out.merge(countOf(network, *c, given).readByRun);
    return out;
}

namespace {

// Numbers of constructs, each bit one.
using Scope = std::vector<bool>;

bool merge(Scope& into, Scope const& from)
{
    bool grew = false;
    for (size_t i = 0; i < from.size(); ++i)
        if (from[i] && !into[i])
            into[i] = grew = true;
    return grew;
}

class Scopes
{
public:
    // Of what network outputs need: dead layers say nothing about nesting.
    Scopes(NetworkObject const& network, std::vector<LayerState*> const& order, Nesting const& nesting)
        : network_(network), nesting_(nesting), around_(network.constructs.size(), empty()),
          why_(network.constructs.size())
    {
        std::ranges::copy_if(order, std::back_inserter(order_), [&](LayerState const* l) { return nesting.live(*l); });
    }

    // To a fixed point: what is inside of what only grows, at most to the depth of the nest.
    Result<void> settle()
    {
        do
            for (LayerState* l : order_)
                placeOutputs(*l);
        while (placeConstructs());
        return check();
    }

    // Fills parents and homes; every scope must be a chain.
    Result<void> chain(Nesting& nesting)
    {
        for (auto const& c : network_.constructs)
            TW_SET(nesting.places[size_t(c->index)].parent, innermost(around_[size_t(c->index)], c->describe()));
        for (auto const& [t, scope] : inside_) {
            TW_ASSIGN(int const home, innermost(scope, describe(*t)));
            if (home >= 0)
                nesting.homes[t] = home;
        }
        return {};
    }

private:
    Scope empty() const { return Scope(network_.constructs.size(), false); }
    Scope const& scopeOf(TensorObject const& t)
    {
        auto const it = inside_.find(&t);
        return it == inside_.end() ? none_ = empty() : it->second;
    }
    static std::string describe(TensorObject const& t)
    {
        return t.producer ? "layer '" + t.producer->name + "' (" + t.producer->typeName + ")"
                          : "network input '" + t.name + "'";
    }

    void placeOutputs(LayerState& l)
    {
        Scope s = empty();
        if (l.construct) {
            s = around_[size_t(l.construct->index)];
            if (!isExit(l))
                s[size_t(l.construct->index)] = true;
        } else {
            for (TensorObject const* t : l.inputs)
                if (t)
                    merge(s, scopeOf(*t));
        }
        if (!contains(s, true))
            return;
        for (auto const& out : l.outputs)
            inside_[out.get()] = s;
    }

    // What is around a construct: what its boundary layers' inputs are inside of, and what is around that.
    bool placeConstructs()
    {
        bool grew = false;
        for (auto const& c : network_.constructs) {
            Scope& around = around_[size_t(c->index)];
            for (LayerState* l : c->layers)
                for (size_t i = 0; i < l->inputs.size() && nesting_.live(*l); ++i)
                    if (TensorObject const* t = l->inputs[i]) {
                        Scope s = scopeOf(*t);
                        if (crossingOf(*l, i) == Crossing::kLeaves)
                            s[size_t(c->index)] = false;
                        grew = note(*c, around, s, *l, *t) || grew;
                    }
            for (size_t a = 0; a < around.size(); ++a)
                if (around[a] && a != size_t(c->index))
                    grew = merge(around, around_[a]) || grew;
        }
        return grew;
    }
    bool note(Construct const& c, Scope& around, Scope const& s, LayerState const& l, TensorObject const& t)
    {
        for (size_t a = 0; a < s.size(); ++a)
            if (s[a] && !around[a])
                why_[size_t(c.index)].try_emplace(int(a), &l, &t);
        return merge(around, s);
    }

    Result<void> check()
    {
        for (auto const& c : network_.constructs) {
            size_t const self = size_t(c->index);
            TW_TRY(checkEntries(*c));
            for (size_t a = 0; a < around_.size(); ++a)
                if (a != self && around_[self][a] && around_[a][self])
                    return crossing(*c, *network_.constructs[a]);
            if (around_[self][self])
                return invalidArgument("{} would be inside itself: what goes in depends on its values", c->describe());
        }
        return {};
    }

    // What is taken from around a construct must not be inside it.
    Result<void> checkEntries(Construct const& c)
    {
        for (LayerState* l : c.layers)
            for (size_t i = 0; i < l->inputs.size(); ++i) {
                TensorObject const* t = l->inputs[i];
                if (t && crossingOf(*l, i) == Crossing::kEnters && scopeOf(*t)[size_t(c.index)])
                    return l->error("input {} ('{}') is computed inside {}; it must come from outside", i, t->name,
                                    c.describe());
            }
        return {};
    }

    Error crossing(Construct const& a, Construct const& b) const
    {
        auto evidence = [&](Construct const& x, Construct const& y) {
            auto const it = why_[size_t(x.index)].find(y.index);
            return it == why_[size_t(x.index)].end()
                       ? std::string()
                       : ": layer '" + it->second.first->name + "' of " + x.describe() + " takes '" +
                             it->second.second->name + "', which is inside " + y.describe();
        };
        return invalidArgument("{} and {} do not nest: each uses values of the other{}{}. Values leave {}{}{}",
                               a.describe(), b.describe(), evidence(a, b), evidence(b, a),
                               a.isLoop || b.isLoop ? "a loop through addLoopOutput()" : "",
                               a.isLoop && b.isLoop ? "" : (a.isLoop || b.isLoop ? ", " : ""),
                               a.isLoop && b.isLoop ? "" : "a conditional through addOutput()");
    }

    // The construct in `s` that is inside all others in it.
    Result<int> innermost(Scope const& s, std::string const& what)
    {
        size_t const depth = size_t(std::ranges::count(s, true));
        if (depth == 0)
            return -1;
        for (size_t c = 0; c < s.size(); ++c)
            if (s[c] && size_t(std::ranges::count(around_[c], true)) + 1 == depth) {
                Scope with = around_[c];
                with[c] = true;
                if (with == s)
                    return int(c);
            }
        std::string names;
        for (size_t c = 0; c < s.size(); ++c)
            if (s[c])
                names += (names.empty() ? "" : " and ") + network_.constructs[c]->describe();
        return invalidArgument("{} uses values inside {}, of which none is inside the other; values leave a loop "
                               "through addLoopOutput() and a conditional through addOutput()",
                               what, names);
    }

    NetworkObject const& network_;
    Nesting const& nesting_;
    std::vector<LayerState*> order_;
    std::map<TensorObject const*, Scope> inside_;
    std::vector<Scope> around_;
    std::vector<std::map<int, std::pair<LayerState const*, TensorObject const*>>> why_;
    Scope none_;
};

// What network outputs depend on, and layers without outputs in constructs that are needed.
class Liveness
{
public:
    Liveness(NetworkObject const& network, Nesting& nesting) : nesting_(nesting)
    {
        for (TensorObject const* t : network.allOutputs())
            need(t->producer);
        settle();
        for (auto const& l : network.layers)
            if (isSink(*l) && !readsDead(*l)) {
                need(l.get());
                settle();
            }
    }

private:
    void settle()
    {
        while (!todo_.empty()) {
            LayerState* l = todo_.back();
            todo_.pop_back();
            for (TensorObject const* t : l->inputs)
                if (t)
                    need(t->producer);
            if (l->construct && !nesting_.places[size_t(l->construct->index)].isLive)
                needConstruct(*l->construct);
        }
    }
    // Whether the layer is inside a construct that nothing needs.
    bool readsDead(LayerState const& sink) const
    {
        std::set<LayerState const*> seen{&sink};
        std::vector<LayerState const*> todo{&sink};
        while (!todo.empty()) {
            LayerState const* l = todo.back();
            todo.pop_back();
            if (l->construct && !isExit(*l) && !nesting_.places[size_t(l->construct->index)].isLive)
                return true;
            for (TensorObject const* t : l->inputs)
                if (t && t->producer && seen.insert(t->producer).second)
                    todo.push_back(t->producer);
        }
        return false;
    }
    void need(LayerState* l)
    {
        if (l && nesting_.liveLayers.insert(l).second)
            todo_.push_back(l);
    }
    // What decides about the construct.
    void needConstruct(Construct const& c)
    {
        nesting_.places[size_t(c.index)].isLive = true;
        for (LayerState* l : c.layers)
            if (l->type == LayerType::kTRIP_LIMIT || l->type == LayerType::kCONDITION)
                need(l);
    }

    Nesting& nesting_;
    std::vector<LayerState*> todo_;
};

// What crosses the borders of constructs.
class Borders
{
public:
    explicit Borders(Nesting& nesting) : nesting_(nesting) {}

    Result<void> run(NetworkObject const& network)
    {
        for (TensorObject const* t : network.allOutputs())
            if (int const home = nesting_.homeOf(*t); home >= 0)
                return isInside(*t, *network.constructs[size_t(home)]);
        for (auto const& l : network.layers)
            if (nesting_.live(*l))
                l->construct ? boundary(*l) : captureAll(*l);
        return {};
    }

private:
    static Error isInside(TensorObject const& t, Construct const& c)
    {
        return invalidArgument("network output '{}' is inside {}; only what leaves it can be an output ({}", t.name,
                               c.describe(), c.isLoop ? "ILoop::addLoopOutput)" : "IIfConditional::addOutput)");
    }
    void captureAll(LayerState const& l)
    {
        for (TensorObject* t : l.inputs)
            if (t)
                capture(*t, nesting_.homeOf(l));
    }
    void boundary(LayerState const& l)
    {
        int const self = l.construct->index, parent = nesting_.places[size_t(self)].parent;
        for (size_t i = 0; i < l.inputs.size(); ++i) {
            TensorObject* t = l.inputs[i];
            if (!t)
                continue;
            bool const isInput = l.type == LayerType::kCONDITIONAL_INPUT;
            if (crossingOf(l, i) == Crossing::kLeaves || isInput) {
                capture(*t, self);
                continue;
            }
            if (entries_.insert({self, t}).second)
                nesting_.places[size_t(self)].entries.push_back(t);
            capture(*t, parent);
        }
    }
    // A layer in `user` reads the tensor: all constructs on the way from its home take it in.
    void capture(TensorObject& t, int user)
    {
        int const home = nesting_.homeOf(t);
        for (int c = user; c >= 0 && c != home; c = nesting_.places[size_t(c)].parent)
            if (captured_.insert({c, &t}).second)
                nesting_.places[size_t(c)].captures.push_back(&t);
    }

    Nesting& nesting_;
    std::set<std::pair<int, TensorObject const*>> captured_, entries_;
};

} // namespace

int Nesting::homeOf(LayerState const& l) const
{
    if (!l.outputs.empty())
        return homeOf(*l.outputs[0]);
    auto depth = [&](int c) {
        int n = 0;
        for (; c >= 0; c = places[size_t(c)].parent)
            ++n;
        return n;
    };
    int home = -1;
    for (TensorObject const* t : l.inputs)
        if (t && depth(homeOf(*t)) > depth(home))
            home = homeOf(*t);
    return home;
}

Result<Nesting> findNesting(NetworkObject const& network, std::vector<LayerState*> const& order)
{
    for (auto const& c : network.constructs)
        TW_TRY(checkComplete(*c));
    Nesting nesting;
    nesting.places.resize(network.constructs.size());
    Liveness const live(network, nesting);
    Scopes scopes(network, order, nesting);
    TW_TRY(scopes.settle());
    TW_TRY(scopes.chain(nesting));
    TW_TRY(Borders(nesting).run(network));
    return nesting;
}

} // namespace tw::api::control_flow
