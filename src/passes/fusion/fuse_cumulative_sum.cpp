// SPDX-License-Identifier: Apache-2.0
// Makes one node of a cumulative sum that is spelled out in sums of neighbours, each window twice as wide as the one
// before. moved(x, d): y[i] = x[i - d] along one axis, 0 outside: a slice that fills.
//   w1 = x + moved(x, 1), w2 = w1 + moved(w1, 2), w4 = w2 + moved(w2, 4), ...    ->  cumulative_sum(x)
//   the same of moved(x, 1)                                                      ->  cumulative_sum(x), exclusive
//   moved the other way                                                          ->  in reverse
// as soon as the window is at least as wide as the axis can be. So CumSum is imported, for which 8.5 has no layer.
// Any form. Stands after simplify_shapes, which takes starts and strides into the slices and makes one of equal shapes,
// and among the canonical passes: remove_dead takes the shape arithmetic that the slices needed. Leaves alone: windows
// that do not reach over the axis, parts that others read, types whose sums saturate.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

#include "ops/cumulative_sum/op.h"
#include "ops/elementwise/op.h"
#include "ops/slice/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

constexpr int64_t kLongest = INT32_MAX; // of any axis

// y[i] = x[i - by] along the axis.
struct Moved
{
    ir::Node* node = nullptr;
    int axis = 0;
    int64_t by = 0;
    ir::Value* x() const { return node->inputs[0]; }
};

std::optional<Moved> movedOf(ir::Value const* v)
{
    ir::Node* const n = v->producer;
    if (!n || n->op != &ops::slice::def())
        return {};
    auto const& a = n->attrsAs<ops::slice::Attrs>();
    ir::Value const* const x = n->inputs[0];
    bool const inputs = std::any_of(n->inputs.begin() + 1, n->inputs.end(), [](ir::Value const* in) { return in; });
    bool const sized = n->inputs.size() == 3 && n->inputs[2] && !n->inputs[1]; // by the shape of x, as it turns out
    if ((inputs && !sized) || a.mode != ops::slice::Mode::kFill || !(v->shape == x->shape) ||
        a.start.size() != x->shape.size() || std::ranges::any_of(a.stride, [](int64_t s) { return s != 1; }))
        return {};
    auto const nonZero = [](int64_t s) { return s != 0; };
    auto const at = std::ranges::find_if(a.start, nonZero);
    if (at == a.start.end() || std::ranges::count_if(a.start, nonZero) != 1)
        return {};
    return Moved{n, int(at - a.start.begin()), -*at};
}

// y[i] is the sum of x[i], x[i - 1], ... x[i - width + 1] (x[i + 1], ... in reverse).
struct Window
{
    ir::Value* x = nullptr;
    int64_t width = 1;
    int axis = 0;
    bool reverse = false;
    std::vector<ir::Node*> nodes; // that make it
};

std::optional<Window> windowOf(ir::Value const* v)
{
    ir::Node* const sum = v->producer;
    if (!is(sum, ops::elementwise::Operation::kSum) || !(isFloating(v->type) || v->type == DataType::kInt32))
        return {};
    for (size_t i = 0; i < 2; ++i) {
        ir::Value* const half = sum->inputs[i];
        auto const other = movedOf(sum->inputs[1 - i]);
        if (!other || other->x() != half || half->type != v->type)
            continue;
        Window w{half, 1, other->axis, other->by < 0, {}};
        if (std::abs(other->by) > 1) {
            auto const inner = windowOf(half);
            if (!inner || inner->axis != w.axis || inner->reverse != w.reverse || inner->width != std::abs(other->by))
                return {};
            w = *inner;
        }
        w.width *= 2;
        w.nodes.push_back(other->node);
        w.nodes.push_back(sum);
        return w;
    }
    return {};
}

Result<bool> fuse(ir::Graph& g, ir::Value const* y)
{
    auto w = windowOf(y);
    if (!w || std::min(y->shape[size_t(w->axis)].range(g.symbols).hi, kLongest) > w->width)
        return false;
    ops::cumulative_sum::Attrs a;
    a.axis = w->axis;
    a.reverse = w->reverse;
    auto const first = movedOf(w->x);
    if (first && first->axis == w->axis && first->by == (w->reverse ? -1 : 1)) {
        auto nodes = w->nodes;
        nodes.push_back(first->node);
        sortNodes(g, nodes);
        if (canFuse(g, nodes)) {
            a.exclusive = true;
            w->x = first->x();
            w->nodes = nodes;
        }
    }
    sortNodes(g, w->nodes);
    if (!canFuse(g, w->nodes))
        return false;
    ir::Node* const last = w->nodes.back();
    TW_ASSIGN(ir::Node * n,
              g.addNode(ops::cumulative_sum::def(), a.clone(), {w->x}, last->name, {}, g.positionOf(last)));
    joinAlike(*n, {w->nodes.begin(), w->nodes.end()});
    n->outputs[0]->host = last->outputs[0]->host;
    if (!replaceValue(g, last->outputs[0], n->outputs[0])) {
        g.eraseNode(n);
        return false;
    }
    for (size_t i = w->nodes.size(); i-- > 0;)
        if (g.useCount(w->nodes[i]->outputs[0]) == 0)
            g.eraseNode(w->nodes[i]);
    return true;
}

} // namespace

Result<bool> fuseCumulativeSum(ir::Graph& g, PassContext const&)
{
    auto const isSum = [](ir::Node const& n) { return is(&n, ops::elementwise::Operation::kSum); };
    // The widest window takes the narrower ones with it.
    return changeEach(
        g, isSum, [&](ir::Node& sum) { return fuse(g, sum.outputs[0]); }, Order::kFromTheEnd);
}

} // namespace tw::passes
