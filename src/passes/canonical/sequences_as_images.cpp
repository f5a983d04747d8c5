// SPDX-License-Identifier: Apache-2.0
// Computes what stands between convolutions of sequences on images of one row, as the convolutions themselves are:
//   conv -> [N, C, 1, T] -> reshape to [N, C, T] -> node          ->  reshape to [N, C, 1, T] -> conv
//     ->  conv -> node of [N, C, 1, T] -> conv
// Reshapes move behind the nodes until they meet those that undo them. In between, tensors may lie as convolutions want them
// (channels of a pixel together), which three dimensions cannot; and what other passes know of images holds for sequences.
// Expects Form::kCanonical. Stands before the fusions. Leaves alone: what no convolution or pooling is in front of, nodes
// whose attributes are computed, dimensions that attributes of a reshape cannot say.
#include <algorithm>
#include <unordered_set>

#include "ops/activation/op.h"
#include "ops/concatenation/op.h"
#include "ops/convolution/op.h"
#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "ops/parametric_relu/op.h"
#include "ops/pooling/op.h"
#include "ops/reduce/op.h"
#include "ops/resize/op.h"
#include "ops/scale/op.h"
#include "ops/select/op.h"
#include "ops/slice/op.h"
#include "ops/softmax/op.h"
#include "ops/unary/op.h"
#include "passes/fuse_nodes.h"
#include "passes/lifted_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// How a sequence is written: [N, C, T], or [N, C, T, 1] as 8.5 normalizes it.
enum class Form
{
    kRow,
    kColumn,
};

// The image's dimensions [N, C, 1, T] that those of the sequence are.
int imageAxis(Form form, int axis)
{
    constexpr int kOfRow[] = {0, 1, 3}, kOfColumn[] = {0, 1, 3, 2};
    return form == Form::kRow ? kOfRow[axis] : kOfColumn[axis];
}

// One of each dimension of a sequence becomes one of each of its image; `one`: of the dimension that a row does not have.
template <class List>
List imageOrder(Form form, List const& of, typename List::value_type one)
{
    List out(4, one);
    for (size_t i = 0; i < of.size(); ++i)
        out[size_t(imageAxis(form, int(i)))] = of[i];
    return out;
}

class Lifting
{
public:
    Lifting(ir::Graph& g, PassContext const& ctx) : g_(g), ctx_(ctx) {}

    Result<bool> run()
    {
        return liftEach(g_, ctx_, [&](ir::Node* n) { return lift(n); });
    }

private:
    // A sequence that was an image of one row, of a convolution or of what was lifted behind one.
    struct Sequence
    {
        ir::Value* image = nullptr;
        Form form = Form::kRow;
    };

    bool isOfConvolution(ir::Value const* v) const
    {
        ir::Node const* n = v->producer;
        return n && (n->op == &ops::convolution::def() || n->op == &ops::pooling::def() || lifted_.contains(v));
    }

    Sequence sequenceOf(ir::Value const* v) const
    {
        if (!v || !isReshape(v->producer))
            return {};
        ir::Value* const x = beforeReshapes(v->producer->inputs[0]);
        if (x->rank() != 4 || !x->shape[2].is(1) || !isOfConvolution(x) || v->rank() < 3 || v->rank() > 4)
            return {};
        Form const form = v->rank() == 3 ? Form::kRow : Form::kColumn;
        for (int d = 0; d < v->rank(); ++d)
            if (v->shape[size_t(d)] != x->shape[size_t(imageAxis(form, d))])
                return {};
        return {x, form};
    }

    // The first input that is one, for nodes whose result has its shape.
    Sequence firstSequence(ir::Node const& n) const
    {
        for (ir::Value const* v : n.inputs)
            if (Sequence const s = sequenceOf(v); s.image && v->shape == n.outputs[0]->shape)
                return s;
        return {};
    }

    // `v`, of a sequence's rank, as an image; null: no attributes say its shape.
    Result<ir::Value*> imageOf(ir::Value* v, Form form, ir::Node const& reader)
    {
        if (Sequence const s = sequenceOf(v); s.image && s.form == form)
            return s.image;
        ir::Shape const shape = imageOrder(form, v->shape, ir::Dim(1));
        if (!v->isConstant())
            return addReshape(g_, v, shape, g_.positionOf(&reader));
        Extents dims;
        for (ir::Dim const& d : shape)
            dims.push(d.value());
        return g_.addConstant(v->name, v->type, dims, v->constant);
    }

    // What the node becomes: its inputs and attributes. No inputs: it stays.
    struct Plan
    {
        std::vector<ir::Value*> inputs;
        std::unique_ptr<ir::AttrsBase> attrs;
    };

    // Nodes that take all inputs element by element, or join them.
    Result<Plan> ofAll(ir::Node const& n, Sequence const& s, std::unique_ptr<ir::AttrsBase> attrs)
    {
        Plan plan{{}, std::move(attrs)};
        for (ir::Value* v : n.inputs) {
            if (v->rank() != (s.form == Form::kRow ? 3 : 4))
                return Plan();
            TW_ASSIGN(ir::Value * image, imageOf(v, s.form, n));
            if (!image)
                return Plan();
            plan.inputs.push_back(image);
        }
        return plan;
    }

    Result<Plan> planOf(ir::Node const& n)
    {
        using namespace ops;
        Sequence s = sequenceOf(n.inputs[0]);
        auto const ofFirst = [&](std::unique_ptr<ir::AttrsBase> attrs) {
            Plan plan{n.inputs, std::move(attrs)};
            plan.inputs[0] = s.image;
            return plan;
        };
        if (n.op == &elementwise::def() || n.op == &parametric_relu::def() || n.op == &select::def()) {
            s = firstSequence(n);
            return s.image ? ofAll(n, s, n.attrs->clone()) : Plan();
        }
        if (n.op == &concatenation::def()) {
            for (size_t i = 0; i < n.inputs.size() && !s.image; ++i)
                s = sequenceOf(n.inputs[i]);
            if (!s.image)
                return Plan();
            auto attrs = std::make_unique<concatenation::Attrs>(n.attrsAs<concatenation::Attrs>());
            attrs->axis = imageAxis(s.form, attrs->axis);
            return ofAll(n, s, std::move(attrs));
        }
        if (!s.image)
            return Plan();
        if (n.op == &activation::def() || n.op == &unary::def() || n.op == &identity::def())
            return ofFirst(n.attrs->clone());
        if (n.op == &scale::def()) {
            auto const& a = n.attrsAs<scale::Attrs>();
            bool const isByChannel = a.mode == scale::Mode::kChannel && a.channelAxis == 1;
            return isByChannel || a.mode == scale::Mode::kUniform ? ofFirst(n.attrs->clone()) : Plan();
        }
        if (n.op == &softmax::def()) {
            auto attrs = std::make_unique<softmax::Attrs>(n.attrsAs<softmax::Attrs>());
            attrs->axis = imageAxis(s.form, int(attrs->axis));
            return ofFirst(std::move(attrs));
        }
        if (n.op == &reduce::def())
            return ofFirst(reduceAttrs(n, s.form));
        if (n.op == &slice::def() && !hasInput(n, 1) && !hasInput(n, 2) && !hasInput(n, 3)) {
            auto attrs = std::make_unique<slice::Attrs>(n.attrsAs<slice::Attrs>());
            attrs->start = imageOrder(s.form, attrs->start, 0);
            attrs->size = imageOrder(s.form, attrs->size, 1);
            attrs->stride = imageOrder(s.form, attrs->stride, 1);
            return ofFirst(std::move(attrs));
        }
        if (n.op == &resize::def() && !hasInput(n, 1)) {
            auto attrs = std::make_unique<resize::Attrs>(n.attrsAs<resize::Attrs>());
            if (!attrs->outputDims.empty())
                attrs->outputDims = imageOrder(s.form, attrs->outputDims, 1);
            if (!attrs->scales.empty())
                attrs->scales = imageOrder(s.form, attrs->scales, 1);
            return ofFirst(std::move(attrs));
        }
        return Plan();
    }

    // Dimensions stay until the reshape behind the node. The row's one goes with its columns, as those of an image go together.
    static std::unique_ptr<ir::AttrsBase> reduceAttrs(ir::Node const& n, Form form)
    {
        auto attrs = std::make_unique<ops::reduce::Attrs>(n.attrsAs<ops::reduce::Attrs>());
        int64_t axes = 0;
        for (int d = 0; d < n.inputs[0]->rank(); ++d)
            if (attrs->has(d))
                axes |= int64_t(1) << imageAxis(form, d);
        attrs->axes = axes >> 3 & 1 ? axes | 1 << 2 : axes;
        attrs->keepDims = true;
        return attrs;
    }

    Result<bool> lift(ir::Node* n)
    {
        if (n->outputs.size() != 1 || n->inputs.empty() || !n->regions.empty())
            return false;
        TW_ASSIGN(Plan plan, planOf(*n));
        if (plan.inputs.empty())
            return false;
        TW_ASSIGN(ir::Value * image, liftNode(g_, n, std::move(plan.attrs), plan.inputs, ".image"));
        if (image)
            lifted_.insert(image);
        return image != nullptr;
    }

    ir::Graph& g_;
    PassContext const& ctx_;
    std::unordered_set<ir::Value const*> lifted_;
};

} // namespace

Result<bool> sequencesAsImages(ir::Graph& g, PassContext const& ctx)
{
    return Lifting(g, ctx).run();
}

} // namespace tw::passes
