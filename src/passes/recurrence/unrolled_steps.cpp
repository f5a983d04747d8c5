// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "ops/concatenation/op.h"
#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "passes/recurrence/unrolled_cells.h"
#include "passes/rewrite.h"
#include "passes/strided_view.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// How many of the next states are looked at for one that is computed of a state: other chains with the same weights stand
// between.
constexpr size_t kNextStates = 8;
constexpr int kMostAbove = 8; // sums and slices over products

// The operands of a product of one constant: data, then weights; null for other nodes.
std::pair<ir::Value*, ir::Value*> operandsOf(ir::Node const& n)
{
    if (!ops::matrix_multiply::isBare(n) || n.inputs.size() < 2)
        return {};
    ir::Value *const a = n.inputs[0], *const b = n.inputs[1];
    if (a->isConstant() == b->isConstant()) // an initial state may be a constant
        return b->isConstant() ? std::pair(a, b) : std::pair<ir::Value*, ir::Value*>();
    return b->isConstant() ? std::pair(a, b) : std::pair(b, a);
}

} // namespace

UnrolledGraph::UnrolledGraph(ir::Graph const& g) : g_(g)
{
    for (size_t i = 0; i < g.nodes.size(); ++i) {
        positions_[g.nodes[i].get()] = int(i);
        for (ir::Value const* v : g.nodes[i]->inputs)
            if (v && (readers_[v].empty() || readers_[v].back() != g.nodes[i].get()))
                readers_[v].push_back(g.nodes[i].get());
    }
    findChains();
}

ValueSet UnrolledGraph::dependents(ir::Value const* v, int end) const
{
    ValueSet set{v};
    for (int i = positionOf(v) + 1; i < std::min(end, int(g_.nodes.size())); ++i) {
        ir::Node const& n = *g_.nodes[size_t(i)];
        if (std::ranges::any_of(n.inputs, [&](ir::Value const* in) { return set.contains(in); }))
            set.insert(n.outputs.begin(), n.outputs.end());
    }
    return set;
}

std::vector<ir::Node*> const& UnrolledGraph::readersOf(ir::Value const* v) const
{
    static std::vector<ir::Node*> const none;
    auto const at = readers_.find(v);
    return at == readers_.end() ? none : at->second;
}

ir::Value* UnrolledGraph::firstOf(ir::Value* constant) const
{
    return std::ranges::find_if(g_.values(), [&](auto const& v) { return areSame(v.get(), constant); })->get();
}

void UnrolledGraph::addOperands(ir::Value* v, std::vector<ir::Value*>& states)
{
    operands_.insert(v);
    ir::Value* const root = rootOf(v);
    if (root->producer && root->producer->op == &ops::concatenation::def()) {
        for (ir::Value* part : root->producer->inputs)
            addOperands(part, states);
    } else {
        states.push_back(root);
    }
}

void UnrolledGraph::findChains()
{
    // By weights and which part of a row the state is.
    std::map<std::pair<int, size_t>, std::vector<ir::Value*>> lists;
    std::vector<ir::Value const*> known; // weights
    for (auto const& n : g_.nodes) {
        auto const [data, weights] = operandsOf(*n);
        if (!data)
            continue;
        std::vector<ir::Value*> states;
        addOperands(data, states);
        auto const same =
            std::ranges::find_if(known, [&, &weights = weights](auto const* w) { return areSame(w, weights); });
        int const number = int(same - known.begin());
        if (same == known.end())
            known.push_back(weights);
        for (size_t part = 0; part < states.size(); ++part) {
            auto& list = lists[{number, part}];
            if (!tw::contains(list, states[part]))
                list.push_back(states[part]);
        }
    }
    std::set<std::vector<ir::Value*>> found;
    for (auto const& [key, list] : lists) {
        std::set<ir::Value*> taken;
        for (size_t i = 0; i < list.size(); ++i) {
            if (!taken.insert(list[i]).second)
                continue;
            std::vector<ir::Value*> chain{list[i]};
            for (size_t at = i + 1; at < list.size();) {
                size_t const end = std::min(at + kNextStates, list.size());
                int last = 0;
                for (size_t j = at; j < end; ++j)
                    last = std::max(last, positionOf(list[j]));
                ValueSet const of = dependents(chain.back(), last + 1);
                size_t next = at;
                while (next < end && (taken.contains(list[next]) || !of.contains(list[next])))
                    ++next;
                if (next == end)
                    break;
                chain.push_back(list[next]);
                taken.insert(list[next]);
                at = next + 1;
            }
            if (chain.size() > 1 && found.insert(chain).second)
                chains_.push_back(std::move(chain));
        }
    }
}

StepReader::StepReader(UnrolledGraph const& g, CellTerms& terms, Cell const& cell, ir::Value* h, int end)
    : g_(g), cell_(cell), dependents_(g.dependents(h, end)), leaves_{h},
      reader_(terms, cell.rows, cell.type, cell.refit, [this](ir::Value* v) { return leafOf(v); })
{}

std::optional<int> StepReader::sumOf(ir::Value* v)
{
    return hasSize(v) ? reader_.columns(v, 0, cell_.hidden) : std::nullopt;
}

bool StepReader::hasSize(ir::Value const* v) const
{
    return v->type == cell_.type && reader_.widthOf(v->shape) == cell_.hidden;
}

bool StepReader::isLeaf(ir::Value* v) const
{
    return v == leaves_[0] || (!depends(v) && !v->isConstant() && !isSum(v, 0));
}

CellReader::Leaf StepReader::leafOf(ir::Value* v)
{
    using Kind = CellReader::Leaf::Kind;
    if (!isLeaf(v))
        return v->isConstant() ? CellReader::Leaf{Kind::kInvariant, -1, g_.firstOf(v)} : CellReader::Leaf{};
    int const number = int(std::ranges::find(leaves_, v) - leaves_.begin());
    if (size_t(number) == leaves_.size())
        leaves_.push_back(v);
    return {Kind::kColumns, number, nullptr};
}

// What sums can be read of: products of as many rows as there are sequences (those of all steps have more), steps of a
// tensor, sums and columns of these, multiples. Operands of products and steps themselves are leaves.
bool StepReader::isSum(ir::Value* v, int depth) const
{
    ir::Node const* const n = v->producer;
    if (!n || depth > kMostAbove)
        return false;
    if (g_.isOperand(v) || stepOf(v))
        return depth > 0;
    auto const ofInputs = [&](bool constants) {
        bool any = false, all = true;
        for (ir::Value* in : n->inputs) {
            bool const isOne = in && isSum(in, depth + 1);
            any = any || isOne;
            all = all && (!in || isOne || (constants && in->isConstant()));
        }
        return any && all;
    };
    if (n->op == &ops::elementwise::def()) {
        using ops::elementwise::Operation;
        auto const operation = n->attrsAs<ops::elementwise::Attrs>().operation;
        if (operation == Operation::kProd) // a peephole, of a cell state
            return n->inputs[0]->isConstant() || n->inputs[1]->isConstant();
        return (operation == Operation::kSum || operation == Operation::kSub) && ofInputs(true);
    }
    if (n->op == &ops::slice::def() || n->op == &ops::shuffle::def() || n->op == &ops::concatenation::def() ||
        n->op == &ops::identity::def())
        return ofInputs(false);
    auto const [data, weights] = operandsOf(*n);
    auto const width = data ? reader_.widthOf(v->shape) : std::nullopt;
    if (!width)
        return false;
    auto const of = reader_.widthOf(data->shape);
    ir::Dim const all = ir::volume(weights->shape);
    return of && all.isConst() && *of * *width == all.value();
}

} // namespace tw::passes
