// SPDX-License-Identifier: Apache-2.0
#include "api/control_flow/emit.h"

#include <algorithm>
#include <array>
#include <set>

#include "api/control_flow/layers.h"
#include "ops/conditional/op.h"
#include "ops/loop/op.h"

namespace tw::api::control_flow {

using nvinfer1::LayerType;
using nvinfer1::LoopOutput;
using nvinfer1::TripLimit;

namespace {

// What a region's graph is made of: a layer, or a construct as a whole.
struct Unit
{
    LayerState* layer = nullptr;
    Construct* construct = nullptr;
    bool operator<(Unit const& o) const { return std::pair(layer, construct) < std::pair(o.layer, o.construct); }
};

// The inputs of a region that stand before its captures.
struct RegionInput
{
    TensorObject const* tensor = nullptr; // inside
    ir::Value const* outer = nullptr;
    int axis = -1;
};

class Emitter
{
public:
    Emitter(NetworkObject& network, Nesting const& nesting) : network_(network), nesting_(nesting) {}

    // Emits what these tensors need, everything before its readers; a stack of its own, as networks may be thousands of
    // layers deep.
    Result<void> need(Region const& r, std::vector<TensorObject*> const& wanted)
    {
        for (TensorObject* t : wanted)
            if (t && !r.values->contains(t))
                TW_TRY(needUnit(r, unitOf(r, *t)));
        return {};
    }

    // The layers without outputs in this region. A branch has those that read its layers; both have those that read
    // layers of neither.
    Result<void> needSinks(Region const& r)
    {
        for (auto const& l : network_.layers) {
            if (!isSink(*l) || !nesting_.live(*l) || nesting_.homeOf(*l) != r.construct)
                continue;
            auto const [mine, others] = readsBranches(r, *l);
            if (others && !mine)
                continue;
            inBoth_ = isBranch(r) && !mine;
            TW_TRY(need(r, l->inputs));
            inBoth_ = false;
            TW_TRY(emitLayer(r, *l));
            emittedSinks_.insert(l.get());
        }
        return {};
    }
    // After the last region.
    Result<void> checkSinks() const
    {
        for (auto const& l : network_.layers)
            if (isSink(*l) && nesting_.live(*l) && !emittedSinks_.contains(l.get()))
                return l->error("the layer is inside " + network_.constructs[size_t(nesting_.homeOf(*l))]->describe() +
                                ", but what it reads is in neither branch");
        return {};
    }

private:
    struct Open
    {
        Unit unit;
        std::vector<TensorObject*> needs;
        size_t next = 0;
    };

    bool isBranch(Region const& r) const
    {
        return r.construct >= 0 && !network_.constructs[size_t(r.construct)]->isLoop;
    }
    // Whether a layer of a conditional reads layers of this branch, and of the other.
    std::pair<bool, bool> readsBranches(Region const& r, LayerState const& l) const
    {
        if (!isBranch(r))
            return {false, false};
        std::set<LayerState const*> const read = within(r.construct, l.inputs);
        auto reads = [&](int branch) {
            auto const& layers = branches_.at(r.construct)[size_t(branch)];
            return std::ranges::any_of(read, [&](LayerState const* of) { return layers.contains(of); });
        };
        return {reads(r.branch), reads(1 - r.branch)};
    }
    // What tensors need inside of a conditional, up to its input layers.
    std::set<LayerState const*> within(int construct, std::vector<TensorObject*> const& wanted) const
    {
        std::set<LayerState const*> layers;
        std::vector<TensorObject const*> todo(wanted.begin(), wanted.end());
        while (!todo.empty()) {
            TensorObject const* t = todo.back();
            todo.pop_back();
            LayerState const* l = t ? t->producer : nullptr;
            if (!l || !isInside(nesting_.homeOf(*t), construct) || layers.contains(l) ||
                (l->type == LayerType::kCONDITIONAL_INPUT && l->construct->index == construct))
                continue;
            layers.insert(l);
            todo.insert(todo.end(), l->inputs.begin(), l->inputs.end());
        }
        return layers;
    }
    bool isInside(int home, int construct) const
    {
        while (home >= 0 && home != construct)
            home = nesting_.places[size_t(home)].parent;
        return home == construct;
    }

    // The layer in this region, or the construct in it, that the tensor comes out of.
    Unit unitOf(Region const& r, TensorObject const& t) const
    {
        LayerState* l = t.producer;
        if (l && l->construct && l->construct->index != r.construct)
            return Unit{nullptr, l->construct};
        return Unit{l, nullptr};
    }
    std::vector<TensorObject*> needsOf(Unit const& u) const
    {
        if (!u.construct)
            return u.layer->inputs;
        Place const& place = nesting_.places[size_t(u.construct->index)];
        std::vector<TensorObject*> needs = place.entries;
        needs.insert(needs.end(), place.captures.begin(), place.captures.end());
        return needs;
    }

    Result<void> needUnit(Region const& r, Unit first)
    {
        if (!first.layer && !first.construct)
            return internalError("a tensor of a loop or conditional has no layer");
        std::vector<Open> stack{{first, needsOf(first)}};
        std::set<Unit> open{first};
        while (!stack.empty()) {
            Open& top = stack.back();
            while (top.next < top.needs.size() && (!top.needs[top.next] || r.values->contains(top.needs[top.next])))
                ++top.next;
            if (top.next == top.needs.size()) {
                Unit const done = top.unit;
                TW_TRY(done.construct ? emitConstruct(r, *done.construct) : emitLayer(r, *done.layer));
                open.erase(done);
                stack.pop_back();
                continue;
            }
            TensorObject const& missing = *top.needs[top.next];
            Unit const u = unitOf(r, missing);
            if (!u.layer && !u.construct)
                return internalError("tensor '{}' is not there where it is used", missing.name);
            if (!open.insert(u).second)
                return cycle(u, missing);
            stack.push_back({u, needsOf(u)});
        }
        return {};
    }
    static Error cycle(Unit const& u, TensorObject const& t)
    {
        if (u.construct)
            return invalidArgument("what goes into {} depends on its own result '{}': the network has a cycle",
                                   u.construct->describe(), t.name);
        return u.layer->error("the layer depends on its own output: the network has a cycle");
    }

    Result<void> emitLayer(Region const& r, LayerState& l)
    {
        if (!isSink(l))
            TW_TRY(checkBranch(r, Unit{&l, nullptr}));
        auto in = mapped<ir::Value*>(l.inputs, [&](TensorObject* t) { return t ? r.values->at(t) : nullptr; });
        TW_ASSIGN(auto const out, lowerInto(network_, l, *r.graph, std::move(in)));
        for (size_t i = 0; i < out.size(); ++i)
            (*r.values)[l.outputs[i].get()] = out[i];
        return {};
    }
    // A layer of a conditional belongs to one of its branches.
    Result<void> checkBranch(Region const& r, Unit const& u)
    {
        if (!isBranch(r) || inBoth_)
            return {};
        auto const [it, isNew] = branchOf_.try_emplace(u, r.branch);
        if (isNew || it->second == r.branch)
            return {};
        return invalidArgument("{} is in both branches of {}; no value of one branch may be used in the other: compute "
                               "it in each of them, or outside",
                               u.construct ? u.construct->describe()
                                           : "layer '" + u.layer->name + "' (" + u.layer->typeName + ")",
                               network_.constructs[size_t(r.construct)]->describe());
    }

    Result<void> emitConstruct(Region const& r, Construct& c)
    {
        TW_TRY(checkBranch(r, Unit{nullptr, &c}));
        auto done = c.isLoop ? emitLoop(r, c) : emitConditional(r, static_cast<ConditionalObject&>(c));
        if (!done.ok())
            return std::move(done).error().in(c.describe());
        return {};
    }

    // The values around that become inputs of a construct's regions, behind those of its own kind.
    std::vector<ir::Value*> captured(Region const& around, Construct const& c) const
    {
        std::vector<ir::Value*> out;
        ir::Graph scratch;
        for (TensorObject const* t : nesting_.places[size_t(c.index)].captures)
            if (ir::Value* v = around.values->at(t); !asConstant(scratch, *v))
                out.push_back(v);
        return out;
    }

    // Makes one region: its inputs, then what `wanted` needs, which become its outputs.
    Result<std::unique_ptr<ir::Graph>> emitRegion(Region const& around, Construct const& c, int branch,
                                                  char const* name, std::vector<RegionInput> const& inputs,
                                                  std::vector<TensorObject*> const& wanted, bool withSinks = true)
    {
        auto graph = std::make_unique<ir::Graph>();
        graph->name = name;
        Values values;
        for (RegionInput const& in : inputs)
            values[in.tensor] = addRegionInput(*graph, *around.graph, *in.outer, in.axis, false);
        for (TensorObject const* t : nesting_.places[size_t(c.index)].captures) {
            ir::Value const& outer = *around.values->at(t);
            ir::Value* constant = asConstant(*graph, outer);
            values[t] = constant ? constant : addRegionInput(*graph, *around.graph, outer, -1, true);
        }
        for (LayerState const* l : layersOf<LayerState>(c, LayerType::kCONDITIONAL_INPUT))
            if (nesting_.live(*l))
                values[l->outputs[0].get()] = values.at(l->inputs[0]);
        Region const region{c.index, branch, graph.get(), &values};
        TW_TRY(need(region, wanted));
        if (withSinks)
            TW_TRY(needSinks(region));
        nameInner(values);
        for (TensorObject const* t : wanted)
            graph->outputs.push_back(values.at(t));
        return graph;
    }
    // Inputs of conditionals share the value that they pass on; its name stays.
    void nameInner(Values const& values)
    {
        Values own;
        for (auto const& [t, v] : values)
            if (v->producer || !t->producer || !t->producer->construct)
                own.emplace(t, v);
        nameValues(own);
        addRanges(own, network_.ranges);
    }

    Result<void> emitConditional(Region const& r, ConditionalObject& c)
    {
        std::vector<TensorObject*> wanted[2];
        std::vector<LayerState*> outputs;
        for (LayerState* l : layersOf<LayerState>(c, LayerType::kCONDITIONAL_OUTPUT)) {
            if (!nesting_.live(*l))
                continue;
            outputs.push_back(l);
            wanted[0].push_back(l->inputs[0]);
            wanted[1].push_back(l->inputs[1]);
        }
        branches_[c.index] = {within(c.index, wanted[0]), within(c.index, wanted[1])};
        std::vector<ir::Value*> inputs{r.values->at(c.condition()->inputs[0])};
        auto const captures = captured(r, c);
        inputs.insert(inputs.end(), captures.begin(), captures.end());
        std::vector<std::unique_ptr<ir::Graph>> regions(2);
        TW_ASSIGN(regions[0], emitRegion(r, c, 0, "then", {}, wanted[0]));
        TW_ASSIGN(regions[1], emitRegion(r, c, 1, "else", {}, wanted[1]));
        TW_ASSIGN(ir::Node * node, r.graph->addNode(ops::conditional::def(), ir::NoAttrs().clone(), std::move(inputs),
                                                    c.name, std::move(regions)));
        for (size_t i = 0; i < outputs.size(); ++i)
            (*r.values)[outputs[i]->outputs[0].get()] = node->outputs[i];
        return {};
    }

    // The live boundary layers of a loop, in the order in which the node has their values.
    struct LoopParts
    {
        std::vector<RecurrenceLayer*> carried;
        std::vector<IteratorLayer*> iterators;
        std::vector<LoopOutputLayer*> last, stacked;
    };
    LoopParts partsOf(Construct const& c) const
    {
        LoopParts p;
        auto live = [&](LayerState const* l) { return nesting_.live(*l); };
        std::ranges::copy_if(layersOf<RecurrenceLayer>(c, LayerType::kRECURRENCE), std::back_inserter(p.carried), live);
        std::ranges::copy_if(layersOf<IteratorLayer>(c, LayerType::kITERATOR), std::back_inserter(p.iterators), live);
        for (LoopOutputLayer* l : layersOf<LoopOutputLayer>(c, LayerType::kLOOP_OUTPUT))
            if (live(l))
                (l->stacks() ? p.stacked : p.last).push_back(l);
        return p;
    }
    static ops::loop::Attrs attrsOf(LoopParts const& p)
    {
        ops::loop::Attrs a;
        a.carried = int64_t(p.carried.size());
        for (IteratorLayer const* l : p.iterators) {
            a.iteratorAxes.push_back(l->axis);
            a.iteratorReverse.push_back(l->reverse);
        }
        for (LoopOutputLayer const* l : p.stacked) {
            a.stackAxes.push_back(l->axis);
            a.stackReverse.push_back(l->kind == LoopOutput::kREVERSE);
        }
        return a;
    }

    Result<void> emitLoop(Region const& r, Construct& c)
    {
        LoopParts const p = partsOf(c);
        auto value = [&](TensorObject const* t) { return t ? r.values->at(t) : nullptr; };
        auto number = [&](TensorObject const* t) { // what is known (k - k) asks nothing of the network's inputs
            ir::Value* const v = value(t);
            return v && isKnown(*v) ? asConstant(*r.graph, *v) : v;
        };
        std::vector<ir::Value*> inputs;
        std::vector<RegionInput> inner;
        std::vector<TensorObject*> next;
        for (RecurrenceLayer const* l : p.carried) {
            inputs.push_back(value(l->inputs[0]));
            inner.push_back({l->outputs[0].get(), inputs.back(), -1});
            next.push_back(l->inputs[1]);
        }
        TripLimitLayer const* const count = limitOf(c, TripLimit::kCOUNT);
        inputs.push_back(count ? number(count->inputs[0]) : nullptr);
        for (IteratorLayer const* l : p.iterators) {
            inputs.push_back(value(l->inputs[0]));
            inner.push_back({l->outputs[0].get(), inputs.back(), l->axis});
        }
        for (LoopOutputLayer const* l : p.stacked) {
            inputs.push_back(number(l->length()));
            next.push_back(l->inputs[0]);
        }
        auto const captures = captured(r, c);
        inputs.insert(inputs.end(), captures.begin(), captures.end());
        std::vector<std::unique_ptr<ir::Graph>> regions(2);
        TW_ASSIGN(regions[0], emitCondition(r, c, inner));
        TW_ASSIGN(regions[1], emitRegion(r, c, 0, "body", inner, next));
        TW_ASSIGN(ir::Node * node, r.graph->addNode(ops::loop::def(), attrsOf(p).clone(), std::move(inputs), c.name,
                                                    std::move(regions)));
        for (size_t k = 0; k < p.stacked.size(); ++k)
            (*r.values)[p.stacked[k]->outputs[0].get()] = node->outputs[p.carried.size() + k];
        for (LoopOutputLayer const* l : p.last) {
            auto const it = std::ranges::find(p.carried, l->inputs[0]->producer);
            (*r.values)[l->outputs[0].get()] = node->outputs[size_t(it - p.carried.begin())];
        }
        return {};
    }
    // A loop that only a count ends has a condition that is true whatever it sees.
    Result<std::unique_ptr<ir::Graph>> emitCondition(Region const& r, Construct const& c,
                                                     std::vector<RegionInput> const& inner)
    {
        TripLimitLayer const* const condition = limitOf(c, TripLimit::kWHILE);
        std::vector<TensorObject*> wanted;
        if (condition)
            wanted.push_back(condition->inputs[0]);
        TW_ASSIGN(auto graph, emitRegion(r, c, 0, "condition", inner, wanted, false));
        bool const yes = true;
        if (!condition)
            graph->outputs.push_back(graph->addConstant("true", DataType::kBool, {}, &yes));
        return graph;
    }

    NetworkObject& network_;
    Nesting const& nesting_;
    std::map<Unit, int> branchOf_;
    std::map<int, std::array<std::set<LayerState const*>, 2>> branches_; // layers of each conditional's
    bool inBoth_ = false;                                                // what is emitted now belongs to no branch
    std::set<LayerState const*> emittedSinks_;
};

} // namespace

Result<void> emit(NetworkObject& network, Nesting const& nesting, ir::Graph& graph,
                  std::map<TensorObject const*, ir::Value*>& values)
{
    Emitter emitter(network, nesting);
    Region const top{-1, 0, &graph, &values};
    TW_TRY(emitter.need(top, network.allOutputs()));
    TW_TRY(emitter.needSinks(top));
    return emitter.checkSinks();
}

} // namespace tw::api::control_flow
