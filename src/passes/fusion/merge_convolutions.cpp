// SPDX-License-Identifier: Apache-2.0
// Makes one convolution of those that read the same tensor through the same window, and slices of its channels:
//   a = relu(conv(x, wa)), b = relu(conv(x, wb))
//     ->  m = relu(conv(x, [wa; wb])), a = m[:, :k], b = m[:, k:]
// Kernel and bias are constants, the activation is the same or none. One launch instead of two or more, and x is read
// once; slices of channels cost nothing where pixels lie together. For GPU builds, whose batches of 1 are bound by
// launches.
// Expects Form::kCanonical. Stands after fold_scale_into_convolution and before fuse_activation. Leaves alone:
// channels that are no multiple of 8, groups, results that a concatenation takes (which would have to be copied there)
// or an element-wise node (which belongs into its own convolution), graph outputs, batches that are no constant,
// wishes of the user that differ.
#include <algorithm>

#include "ops/activation/op.h"
#include "ops/concatenation/op.h"
#include "ops/convolution/op.h"
#include "ops/elementwise/op.h"
#include "ops/scale/op.h"
#include "ops/slice/op.h"
#include "ops/unary/op.h"
#include "passes/join_constants.h"
#include "passes/list.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

constexpr int64_t kChannelStep = 8; // of a pixel's 16 bytes in FP16: where a part of it may begin

struct Branch
{
    ir::Node *convolution = nullptr, *activation = nullptr; // activation: null without
    int64_t channels = 0;
    ir::Node* last() const { return activation ? activation : convolution; }
    ir::Value* result() const { return last()->outputs[0]; }
    ir::Value* kernel() const { return convolution->inputs[1]; }
    ir::Value* bias() const { return convolution->inputs.size() > 2 ? convolution->inputs[2] : nullptr; }
};

std::vector<ir::Node const*> of(std::vector<Branch> const& group, ir::Node* Branch::*which)
{
    auto nodes = mapped<ir::Node const*>(group, [&](Branch const& b) { return b.*which; });
    return nodes;
}

class ConvolutionMerger
{
public:
    ConvolutionMerger(ir::Graph& g, PassContext const& ctx) : g_(g), ctx_(ctx) {}

    // Of branches of which `n` is the first.
    Result<bool> run(ir::Node& n)
    {
        std::vector<Branch> const group = groupOf(n);
        if (group.size() < 2)
            return false;
        TW_TRY(merge(group));
        return true;
    }

private:
    // The first of them is `n`; those before it have been looked at.
    std::vector<Branch> groupOf(ir::Node& n) const
    {
        std::vector<Branch> group;
        Branch first;
        if (!isBranch(n, first))
            return group;
        group.push_back(first);
        for (size_t i = size_t(g_.positionOf(&n)) + 1; i < g_.nodes.size(); ++i) {
            Branch other;
            if (g_.nodes[i]->op == n.op && g_.nodes[i]->inputs[0] == n.inputs[0] && isBranch(*g_.nodes[i], other) &&
                fits(first, other))
                group.push_back(other);
        }
        return group;
    }

    bool isBranch(ir::Node& n, Branch& b) const
    {
        if (!ops::convolution::isBareForward(n) || n.attrsAs<ops::convolution::Attrs>().groups != 1)
            return false;
        b.convolution = &n;
        for (ir::Value const* v : {b.kernel(), b.bias()})
            if (v && !v->isConstant())
                return false;
        ir::Value const* y = n.outputs[0];
        if (!ir::isStatic(y->shape) || y->rank() != 4)
            return false;
        b.channels = y->shape[1].value();
        if (b.channels % kChannelStep != 0)
            return false;
        if (ir::Node* const next = nextOf(g_, &n); next && next->op == &ops::activation::def() && canJoin(n, *next))
            b.activation = next;
        y = b.result();
        if (g_.isOutput(y))
            return false;
        auto const last = readersOf(g_, y);
        return !last.empty() && std::ranges::none_of(last, [](ir::Node const* r) {
            return r->op == &ops::concatenation::def() || r->op == &ops::elementwise::def() ||
                   r->op == &ops::unary::def() || r->op == &ops::activation::def() || r->op == &ops::scale::def();
        });
    }

    static bool fits(Branch const& a, Branch const& b)
    {
        ir::Shape const &x = a.kernel()->shape, &y = b.kernel()->shape;
        bool const sameTail = !a.activation == !b.activation &&
                              (!a.activation || (ir::equalAttrs(*a.activation->attrs, *b.activation->attrs) &&
                                                 canJoin(*a.activation, *b.activation)));
        return sameTail && x.size() == y.size() && std::equal(x.begin() + 1, x.end(), y.begin() + 1) &&
               a.kernel()->type == b.kernel()->type && ir::equalAttrs(*a.convolution->attrs, *b.convolution->attrs) &&
               canJoin(*a.convolution, *b.convolution) && canJoin(*b.convolution, *a.convolution);
    }

    Result<void> merge(std::vector<Branch> const& group)
    {
        ir::Node& first = *group[0].convolution;
        int64_t channels = 0;
        bool biased = false;
        for (Branch const& b : group) {
            channels += b.channels;
            biased = biased || b.bias();
        }
        std::vector<ir::Value*> inputs{first.inputs[0]};
        TW_ASSIGN(ir::Value * kernel, joined(group, channels, false));
        inputs.push_back(kernel);
        if (biased) {
            TW_ASSIGN(ir::Value * bias, joined(group, channels, true));
            inputs.push_back(bias);
        }
        int position = g_.positionOf(&first);
        TW_ASSIGN(ir::Node * whole, g_.addNode(*first.op, first.attrs->clone(), inputs, first.name, {}, position++));
        joinAlike(*whole, of(group, &Branch::convolution));
        if (group[0].activation) {
            TW_ASSIGN(ir::Node * activated, g_.addNode(*group[0].activation->op, group[0].activation->attrs->clone(),
                                                       {whole->outputs[0]}, group[0].activation->name, {}, position++));
            joinAlike(*activated, of(group, &Branch::activation));
            whole = activated;
        }
        whole->outputs[0]->name = group[0].result()->name + ".merged";
        int64_t begin = 0;
        std::string names;
        for (Branch const& b : group) {
            auto const a = ops::slice::partOf(b.result()->shape, 1, begin, b.channels);
            TW_ASSIGN(ir::Node * part, g_.addNode(ops::slice::def(), a.clone(), {whole->outputs[0]},
                                                  b.last()->name + ".channels", {}, position++));
            part->layers = b.last()->layers;
            part->outputs[0]->name = b.result()->name;
            g_.replaceAllUses(b.result(), part->outputs[0]);
            begin += b.channels;
            names += (names.empty() ? "" : ", ") + b.convolution->name;
        }
        for (Branch const& b : group) {
            if (b.activation)
                g_.eraseNode(b.activation);
            g_.eraseNode(b.convolution);
        }
        ctx_.log.info("merged {}", names);
        return {};
    }

    // Kernels or biases one after the other; zeros for a bias that is missing.
    Result<ir::Value*> joined(std::vector<Branch> const& group, int64_t channels, bool bias)
    {
        ir::Value const& one = *group[0].kernel();
        Extents dims = bias ? Extents{channels} : ir::extentsOf(one.shape);
        dims[0] = channels;
        int64_t const width = dims.volume(1, dims.rank);
        auto parts = mapped(group, [&](Branch const& b) {
            return RowPart{bias ? b.bias() : b.kernel(), 0, b.channels * width};
        });
        return joinConstants(g_, ctx_.recipes, one.name + (bias ? ".bias" : "") + ".merged", one.type, dims, 1, parts);
    }

    ir::Graph& g_;
    PassContext const& ctx_;
};

} // namespace

Result<bool> mergeConvolutions(ir::Graph& g, PassContext const& ctx)
{
    if (!ctx.target.gpu())
        return false;
    return rewriteEach(g, ops::convolution::isBareForward,
                       [&](ir::Node& n) { return ConvolutionMerger(g, ctx).run(n); });
}

} // namespace tw::passes
