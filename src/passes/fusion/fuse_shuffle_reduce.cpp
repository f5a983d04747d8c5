// SPDX-License-Identifier: Apache-2.0
// Reduces in front of a shuffle what was reduced behind it:
//   transpose(x) -> reduce      ->  reduce(x) over other axes, where what is left has the same order
//   transpose(x) -> reduce      ->  reduce(x) -> transpose, of what is left, where it has not
//   reshape(x) -> reduce        ->  reduce(x), where dimensions of x are reduced as a whole
// so that x is not moved, and a convolution's channels may stay last. A reshape follows where the result has other
// dimensions. Expects Form::kCanonical. Stands after fuse_layer_norm, which knows reshapes in front of means; fuse_reduce
// and this pass make work for each other. Leaves alone: transpositions that others read, channels moved to the end to
// be reduced there (of channels-last tensors that is no movement), reshapes by a tensor, reshapes that split what is
// reduced from what is not, wishes of the user that differ.
#include <algorithm>
#include <numeric>

#include "ops/reduce/op.h"
#include "ops/shuffle/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "passes/strided_view.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ir::Permutation;

// Dimension i of the shuffle's result is dimension p[i] of its input.
Permutation transpositionOf(ops::shuffle::Attrs const& a, int rank)
{
    Permutation identity(size_t(rank), 0);
    std::iota(identity.begin(), identity.end(), 0);
    return ir::composed(ir::composed(identity, a.firstTranspose), a.secondTranspose);
}

bool isReduced(int64_t axes, int64_t dimension)
{
    return axes >> dimension & 1;
}

// The axes of x that a reduction over `axes` of its reshape reduces; 0: dimensions of x would be split.
int64_t axesInFront(ir::Shape const& x, ir::Shape const& y, int64_t axes)
{
    int64_t result = 0;
    for (auto const& [from, to] : reshapeGroups(x, y).value_or(std::vector<ReshapeGroup>())) {
        auto const count = std::ranges::count_if(to, [&](size_t d) { return isReduced(axes, int64_t(d)); });
        if (count != 0 && size_t(count) != to.size())
            return 0;
        for (size_t d = from.front(); count != 0 && d <= from.back(); ++d)
            result |= int64_t(1) << d;
    }
    return result;
}

class ShuffleReduceFuser
{
public:
    ShuffleReduceFuser(ir::Graph& g, PassContext const& ctx, ir::Node* shuffle, ir::Node* sum)
        : g_(g), ctx_(ctx), shuffle_(shuffle), sum_(sum), x_(shuffle->inputs[0]), attrs_(sum->attrsAs<Attrs>())
    {}

    Result<bool> run()
    {
        auto const& a = shuffle_->attrsAs<ops::shuffle::Attrs>();
        if (!a.hasReshape)
            return transposed(transpositionOf(a, x_->rank()));
        if (!a.firstTranspose.empty() || !a.secondTranspose.empty())
            return false;
        attrs_.axes = axesInFront(x_->shape, shuffle_->outputs[0]->shape, attrs_.axes);
        attrs_.keepDims = false;
        return attrs_.axes != 0 ? replace({}) : Result<bool>(false);
    }

private:
    using Attrs = ops::reduce::Attrs;

    Result<bool> transposed(Permutation const& p)
    {
        int64_t const axes = attrs_.axes, rank = int64_t(p.size());
        if (rank >= 3 && axes == int64_t(1) << (rank - 1) && p.back() == 1 && std::is_sorted(p.begin(), p.end() - 1))
            return false;
        attrs_.axes = 0;
        Permutation kept; // dimensions of x in the order of the result; those of 1 may stand anywhere
        for (int64_t i = 0; i < rank; ++i)
            if (isReduced(axes, i))
                attrs_.axes |= int64_t(1) << p[size_t(i)];
            else if (!x_->shape[size_t(p[size_t(i)])].is(1))
                kept.push_back(p[size_t(i)]);
        if (std::ranges::is_sorted(kept))
            return replace({});
        if (attrs_.keepDims)
            return replace(p);
        Permutation all, behind; // places among all dimensions that are kept
        for (int64_t i = 0; i < rank; ++i)
            if (!isReduced(axes, i))
                all.push_back(p[size_t(i)]);
        for (int64_t d : all)
            behind.push_back(std::ranges::count_if(all, [&](int64_t other) { return other < d; }));
        return replace(behind);
    }

    // `behind`: how what is left is transposed; empty: it is not.
    Result<bool> replace(Permutation behind)
    {
        int const position = g_.positionOf(sum_);
        TW_ASSIGN(ir::Node * fused, g_.addNode(ops::reduce::def(), attrs_.clone(), {x_}, sum_->name, {}, position));
        ir::Value *from = sum_->outputs[0], *to = fused->outputs[0];
        takePlaceOf(*fused, behind.empty() ? *shuffle_ : *sum_);
        if (behind.empty()) {
            fused->name = shuffle_->name;
            joinOrigins(*fused, *fused, *sum_);
            TW_ASSIGN(to, to->shape == from->shape ? Result<ir::Value*>(to)
                                                   : addReshape(g_, to, from->shape, position + 1));
            if (!to) {
                g_.eraseNode(fused);
                return false;
            }
        } else {
            ops::shuffle::Attrs a;
            a.firstTranspose = std::move(behind);
            TW_ASSIGN(ir::Node * moved,
                      g_.addNode(ops::shuffle::def(), a.clone(), {to}, shuffle_->name, {}, position + 1));
            takePlaceOf(*moved, *shuffle_);
            to->name = from->name + ".reduced";
            to = moved->outputs[0];
        }
        to->name = from->name;
        to->host = from->host;
        ctx_.log.info("fused {} + {}", shuffle_->name, sum_->name);
        g_.replaceAllUses(from, to);
        g_.eraseNode(sum_);
        g_.eraseNode(shuffle_);
        return true;
    }

    ir::Graph& g_;
    PassContext const& ctx_;
    ir::Node *shuffle_, *sum_;
    ir::Value* x_;
    Attrs attrs_;
};

} // namespace

Result<bool> fuseShuffleReduce(ir::Graph& g, PassContext const& ctx)
{
    auto const isSum = [](ir::Node const& n) {
        return n.op == &ops::reduce::def() && n.attrsAs<ops::reduce::Attrs>().axes != 0 && !n.outputs[0]->host;
    };
    return rewriteEach(g, isSum, [&](ir::Node& sum) {
        ir::Node* const shuffle = onlyProducer(g, sum.inputs[0]);
        bool const fits = isShuffle(shuffle) && canJoin(*shuffle, sum) && !shuffle->inputs[0]->host;
        return fits ? ShuffleReduceFuser(g, ctx, shuffle, &sum).run() : Result<bool>(false);
    });
}

} // namespace tw::passes
