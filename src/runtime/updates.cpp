// SPDX-License-Identifier: Apache-2.0
#include "runtime/updates.h"

#include <algorithm>

#include "ir/op_def.h"
#include "runtime/alias.h"
#include "runtime/regions.h"

namespace tw::runtime {

namespace {

// The values that a carried one has in a trip, from the next one back to the one that the trip begins with.
class Updates
{
public:
    Updates(Instance& body, size_t carried) : inst_(body), block_(*body.block), g_(*body.block->graph), i_(carried) {}

    void run()
    {
        // The loop gives it a place of its own; a capture, or a part of a stack, would be the next trip's to write over.
        ir::Value const* const next = g_.outputs[i_];
        if (!next->producer || std::ranges::count(g_.outputs, next) != 1 || !take(g_.inputs[i_]))
            return;
        chain_.clear();
        if (gather())
            for (int const v : chain_)
                putInPlace(v);
        else
            overwrite();
    }

private:
    void putInPlace(int v)
    {
        int const place = block_.indexOf(g_.inputs[i_]);
        if (inst_.values[size_t(v)].root != v || v == place)
            return;
        inst_.values[size_t(v)].root = place;
        inst_.values[size_t(v)].rootOffset = 0;
    }
    // What is written over the first value, though the next one lies elsewhere.
    void overwrite()
    {
        int const place = block_.indexOf(g_.inputs[i_]);
        for (auto step = block_.steps.begin(); step != block_.steps.end(); ++step) {
            for (ir::InPlace const& p : step->node->op->inPlace) {
                ir::Value const *const x = step->node->inputs[size_t(p.input)], *const y =
                                                                                    step->node
                                                                                        ->outputs[size_t(p.output)];
                chain_ = {place};
                if (rootOf(x) == place && storageOf(inst_, block_.indexOf(x)).offset == 0 && take(y) &&
                    inst_.values[size_t(chain_.back())].root == chain_.back() && !g_.isOutput(y) &&
                    !isReadBehind(p.input, step))
                    putInPlace(chain_.back());
            }
        }
    }
    // Adds a value; false: it cannot lie where the others do.
    bool take(ir::Value const* x)
    {
        int const index = block_.indexOf(x);
        ValueState const& s = inst_.values[size_t(index)];
        chain_.push_back(index);
        return s.exact && !s.hasContents && !x->host && x->format == Format::kLinear &&
               storageOf(inst_, index).offset == 0 &&
               inst_.shapeOf(index).sizeBytes() == inst_.shapeOf(chain_[0]).sizeBytes();
    }
    int rootOf(int v) const { return storageOf(inst_, v).root; }
    int rootOf(ir::Value const* v) const { return rootOf(block_.indexOf(v)); }

    // What `v` is made of, as it is or but for what is written; null: of anything else.
    ir::Value const* before(ir::Value const* v) const
    {
        auto const step = std::ranges::find_if(block_.steps, [&](auto const& s) { return s.node == v->producer; });
        if (step == block_.steps.end() || v->producer->inputs.empty())
            return nullptr;
        ir::Node const& n = *v->producer;
        if (inst_.skipped[size_t(step - block_.steps.begin())]) {
            ir::Value const* const x = n.inputs[0];
            return n.outputs.size() == 1 && x && rootOf(x) == rootOf(v) ? x : nullptr;
        }
        auto const p = std::ranges::find_if(
            n.op->inPlace, [&](ir::InPlace const& pair) { return n.outputs[size_t(pair.output)] == v; });
        if (p == n.op->inPlace.end() || !n.inputs[size_t(p->input)] || isReadBehind(p->input, step))
            return nullptr;
        return n.inputs[size_t(p->input)];
    }
    // Whether the storage of input `written` of a step, which writes over it, is read behind that, or by it as another input.
    bool isReadBehind(int written, std::vector<LoadedStep>::const_iterator writer) const
    {
        auto const& own = writer->node->inputs;
        int const root = rootOf(own[size_t(written)]);
        auto const isOld = [&](ir::Value const* v) { return v && rootOf(v) == root; };
        return std::ranges::any_of(g_.outputs, isOld) || std::ranges::count_if(own, isOld) > 1 ||
               std::any_of(writer + 1, block_.steps.end(),
                           [&](LoadedStep const& s) { return std::ranges::any_of(s.node->inputs, isOld); });
    }
    bool gather()
    {
        ir::Value const* const first = g_.inputs[i_];
        ir::Value const* v = g_.outputs[i_];
        while (v && take(v) && v != first)
            v = v->producer ? before(v) : nullptr;
        // None is a part of anything else.
        return v == first &&
               std::ranges::all_of(chain_, [&](int x) { return std::ranges::find(chain_, rootOf(x)) != chain_.end(); });
    }

    Instance& inst_;
    LoadedBlock const& block_;
    ir::Graph const& g_;
    size_t const i_;
    std::vector<int> chain_;
};

} // namespace

void realizeUpdates(Instance& body, size_t carried)
{
    for (size_t i = 0; i < carried; ++i)
        Updates(body, i).run();
}

void realizeFirstValues(Instance& inst)
{
    LoadedBlock const& block = *inst.block;
    auto const stateOf = [&](int v) -> ValueState& { return inst.values[size_t(v)]; };
    auto const rootOf = [&](ir::Value const* v) { return v ? storageOf(inst, block.indexOf(v)).root : -1; };
    // Whether a step from `loop` on reads what lies there, but for the loop's own input i.
    auto const isReadBehind = [&](int root, size_t loop, size_t i) {
        for (size_t s = loop; s < block.steps.size(); ++s)
            for (size_t k = 0; k < block.steps[s].node->inputs.size(); ++k)
                if ((s != loop || k != i) && rootOf(block.steps[s].node->inputs[k]) == root)
                    return true;
        return std::ranges::any_of(block.graph->outputs, [&](ir::Value const* v) { return rootOf(v) == root; });
    };
    for (size_t s = 0; s < block.steps.size(); ++s)
        for (size_t i = 0; i < carriedBy(*block.steps[s].node, 1); ++i) {
            ir::Node const& loop = *block.steps[s].node;
            int const x = block.indexOf(loop.inputs[i]), y = block.indexOf(loop.outputs[i]);
            ValueState const &first = stateOf(x), &last = stateOf(y);
            if (loop.inputs[i]->producer && first.root == x && last.root == y && !first.external && first.exact &&
                last.exact && !first.hasContents && !last.hasContents && !loop.inputs[i]->host &&
                !loop.outputs[i]->host && loop.inputs[i]->format == Format::kLinear && first.dims == last.dims &&
                isOverwritten(*inst.regions[s][1], i) && !isReadBehind(x, s, i)) {
                stateOf(x).root = y;
                stateOf(x).rootOffset = 0;
            }
        }
}

bool isOverwritten(Instance const& body, size_t i)
{
    LoadedBlock const& block = *body.block;
    int const place = block.indexOf(block.graph->inputs[i]);
    return std::ranges::any_of(block.steps, [&](LoadedStep const& s) {
        return std::ranges::any_of(s.node->op->inPlace, [&](ir::InPlace const& p) {
            return storageOf(body, s.outputs[size_t(p.output)]).root == place;
        });
    });
}

bool isUpdatedInPlace(Instance const& body, size_t i)
{
    ir::Graph const& g = *body.block->graph;
    return g.outputs[i]->producer &&
           storageOf(body, body.block->indexOf(g.outputs[i])).root == body.block->indexOf(g.inputs[i]);
}

} // namespace tw::runtime
