// SPDX-License-Identifier: Apache-2.0
// Folds a constant scale and shift per channel after a convolution into its kernel and bias.
//   before: y = conv(x, w, b) -> scale(y, s, t)      after: conv(x, s w, s b + t)
//   a kernel behind dequantize with scale u          ->     that has scale s u, and the integers stay
// The scale may be a scale layer (uniform, or by channel of the convolution; no power), as batch normalization imports,
// or a sum, difference, product or quotient with a constant that has the channel's or no dimension. Convolution,
// transposed or not, and fully connected. Expects Form::kCanonical. Stands before fuse_activation, which then finds the
// activation right after the convolution. New weights keep layer and role of the old ones. Leaves alone: a convolution
// that others read too, factors that are not finite or leave the type's range.
#include <cmath>

#include "ops/convolution/op.h"
#include "ops/dequantize/op.h"
#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/scale/op.h"
#include "passes/list.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "recipe/recipes.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// y[k] = x[k] * factor[k] + shift[k] for channel k; or divided by it. Constants of one element or one for each channel.
struct Affine
{
    ir::Value const *factor = nullptr, *shift = nullptr;
    bool divides = false, negatesX = false, negatesShift = false;
};

// A convolution-like node with constant weights.
struct Target
{
    ir::Node* node = nullptr;
    ir::Node* dequantize = nullptr; // that makes its kernel of constants, for it alone
    int64_t channels = 0;           // of the output
    int channelAxis = 0;
};

// The node that dequantizes constant weights with one scale, or one for each output channel; else null.
ir::Node* integersOf(ir::Node const& n)
{
    auto const d = dequantizedOf(n.inputs[1]);
    if (!d || !d->integers->isConstant() || !d->scale->isConstant())
        return nullptr;
    int const axis = channelAxis(n);
    return axis >= 0 && (d->isPerTensor() || d->axis == axis) ? d->node : nullptr;
}

std::optional<Target> targetOf(ir::Node* n)
{
    bool const connected = n && ops::matrix_multiply::isBareConnected(*n);
    if (!connected && !(n && ops::convolution::isBare(*n)))
        return std::nullopt;
    ir::Value const *w = n->inputs[1], *b = n->inputs.size() > 2 ? n->inputs[2] : nullptr;
    ir::Node* const dequantize = integersOf(*n);
    if ((!w->isConstant() && !dequantize) || (b && !b->isConstant()))
        return std::nullopt;
    int const windowRank = connected ? 2 : w->rank() - 2;
    Target t{n, dequantize, 0, n->outputs[0]->rank() - windowRank - 1};
    ir::Dim const& k = n->outputs[0]->shape[size_t(t.channelAxis)];
    if (!k.isConst() || k.value() < 1)
        return std::nullopt;
    t.channels = k.value();
    return t;
}

std::optional<Affine> affineOfScale(ir::Node const& s, Target const& t)
{
    auto const& a = s.attrsAs<ops::scale::Attrs>();
    ir::Value const* in[4]{};
    for (size_t i = 0; i < s.inputs.size(); ++i)
        in[i] = s.inputs[i];
    for (int i = 1; i < 4; ++i)
        if (in[i] && !in[i]->isConstant())
            return std::nullopt;
    bool const byChannel = a.mode == ops::scale::Mode::kChannel && a.channelAxis == t.channelAxis;
    if ((a.mode != ops::scale::Mode::kUniform && !byChannel) || !allEqual(in[3], 1) ||
        s.outputs[0]->type != s.inputs[0]->type)
        return std::nullopt;
    return Affine{.factor = in[1], .shift = in[2]};
}

// Whether a constant of this shape stretches over `t`'s output with nothing but the channel's dimension.
bool isPerChannel(ir::Value const& v, Target const& t)
{
    if (!v.isConstant() || v.rank() != t.node->outputs[0]->rank())
        return false;
    for (int i = 0; i < v.rank(); ++i)
        if (!v.shape[size_t(i)].is(1) && !(i == t.channelAxis && v.shape[size_t(i)].is(t.channels)))
            return false;
    return true;
}

std::optional<Affine> affineOfElementwise(ir::Node const& e, Target const& t)
{
    using enum ops::elementwise::Operation;
    auto const op = e.attrsAs<ops::elementwise::Attrs>().operation;
    bool const first = e.inputs[0] == t.node->outputs[0];
    ir::Value const* c = e.inputs[first ? 1 : 0];
    if (!isPerChannel(*c, t) || e.outputs[0]->type != t.node->outputs[0]->type ||
        (op != kSum && op != kSub && op != kProd && !(op == kDiv && first)))
        return std::nullopt;
    bool const scales = op == kProd || op == kDiv;
    return Affine{.factor = scales ? c : nullptr,
                  .shift = scales ? nullptr : c,
                  .divides = op == kDiv,
                  .negatesX = op == kSub && !first,
                  .negatesShift = op == kSub && first};
}

// The kernel's dimensions with one that is its output channels alone.
struct ByChannel
{
    Extents dims;
    int axis = 0;
    int groupAxis = -1; // of a transposed convolution: channels are those of one group, after this
    int64_t groups = 1;
};
ByChannel byChannel(Target const& t, Extents const& w)
{
    bool const isConvolution = t.node->op == &ops::convolution::def();
    if (!isConvolution || !t.node->attrsAs<ops::convolution::Attrs>().transposed)
        return {{t.channels, w.volume() / t.channels}, 0};
    // [C, K/G, window]: input channels of group g give output channels g K/G ...
    int64_t const groups = t.node->attrsAs<ops::convolution::Attrs>().groups;
    return {{groups, w[0] / groups, w[1], w.volume(2, w.rank)}, 2, 0, groups};
}

class Folding
{
public:
    Folding(Target const& t, Affine const& f, recipe::Recipes* recipes) : t_(t), f_(f), recipes_(recipes) {}

    Result<BlobPtr> kernel(ir::Value const& w) const
    {
        recipe::Computation c(recipes_);
        ByChannel const by = byChannel(t_, ir::extentsOf(w.shape));
        Extents coefficients;
        for (int d = 0; d < by.dims.rank; ++d)
            coefficients.push(d == by.axis || d == by.groupAxis ? by.dims[d] : 1);
        TW_ASSIGN(ir::Value * y, scaled(c, c.take(w, by.dims), coefficients));
        return c.finish(y);
    }
    // The kernel's scale: one number, or one for each channel as there are then `count`.
    Result<BlobPtr> steps(ir::Value const& scale, int64_t& count) const
    {
        recipe::Computation c(recipes_);
        TW_ASSIGN(ir::Value * y, scaled(c, c.take(scale, {ir::extentsOf(scale.shape).volume()}), {t_.channels}));
        count = ir::extentsOf(y->shape).volume();
        return c.finish(y);
    }
    // `b`: the old one, or null.
    Result<BlobPtr> bias(ir::Value const* b, DataType type) const
    {
        recipe::Computation c(recipes_);
        Extents const dims{t_.channels};
        ir::Value* y = c.literal(type, dims, 0);
        if (b)
            TW_SET(y, scaled(c, c.take(*b, dims), dims));
        if (f_.shift) {
            TW_ASSIGN(ir::Value * shift, coefficient(c, *f_.shift, dims, type));
            auto const op = f_.negatesShift ? Operation::kSub : Operation::kSum;
            TW_ASSIGN(y, c.add(ops::elementwise::def(), ops::elementwise::Attrs(op), {y, shift}));
        }
        return c.finish(y);
    }

private:
    using Operation = ops::elementwise::Operation;

    // In dimensions that stretch over `dims`, or in as many ones.
    static Result<ir::Value*> coefficient(recipe::Computation& c, ir::Value const& v, Extents const& dims,
                                          DataType type)
    {
        bool const isAll = ir::extentsOf(v.shape).volume() == dims.volume();
        ir::Value* const x = c.take(v, isAll ? dims : Extents::ones(dims.rank));
        return v.type == type ? x : c.add(ops::identity::def(), ops::identity::Attrs(type), {x});
    }
    Result<ir::Value*> scaled(recipe::Computation& c, ir::Value* x, Extents const& coefficients) const
    {
        auto apply = [&](Operation op, ir::Value* by) {
            return c.add(ops::elementwise::def(), ops::elementwise::Attrs(op), {x, by});
        };
        if (f_.negatesX)
            return apply(Operation::kProd, c.literal(x->type, Extents::ones(coefficients.rank), -1));
        if (!f_.factor)
            return x;
        TW_ASSIGN(ir::Value * by, coefficient(c, *f_.factor, coefficients, x->type));
        return apply(f_.divides ? Operation::kDiv : Operation::kProd, by);
    }

    Target const& t_;
    Affine const& f_;
    recipe::Recipes* recipes_;
};

bool isFinite(DataType type, Blob const& data)
{
    int64_t const count = int64_t(data.sizeBytes()) / sizeOf(type);
    TensorRef const t{type, {count}, const_cast<void*>(data.data())};
    if (!isFullFloat(type)) {
        for (int64_t i = 0; i < count; ++i)
            if (!std::isfinite(t.get(i)))
                return false;
        return true;
    }
    bool finite = true; // without a way out, so that the compiler makes vectors of it
    for (int64_t i = 0; i < count; ++i)
        finite = finite & std::isfinite(t.as<float>()[i]);
    return finite;
}

ir::Value* replaced(ir::Graph& g, std::string const& name, DataType type, Extents const& dims,
                    ir::Constant const& origin, BlobPtr data)
{
    auto c = std::make_shared<ir::Constant>(origin);
    c->data = std::move(data);
    return g.addConstant(name, type, dims, std::move(c));
}

// The kernel's integers get another scale. False when one is not finite.
Result<bool> applyToSteps(ir::Graph& g, Target const& t, Folding const& folding)
{
    ir::Node const& old = *t.dequantize;
    ir::Value const& scale = *old.inputs[1];
    int64_t count = 1;
    TW_ASSIGN(BlobPtr newScale, folding.steps(scale, count));
    if (!isFinite(scale.type, *newScale))
        return false;
    int const axis = t.node->op == &ops::convolution::def() && t.node->attrsAs<ops::convolution::Attrs>().transposed;
    ir::Value* const s = replaced(g, scale.name, scale.type, {count}, *scale.constant, std::move(newScale));
    TW_ASSIGN(ir::Node * made,
              g.addNode(ops::dequantize::def(),
                        std::make_unique<ops::dequantize::Attrs>(count > 1 ? axis : -1, old.outputs[0]->type),
                        {old.inputs[0], s}, old.name, {}, g.positionOf(t.node)));
    takePlaceOf(*made, old);
    made->outputs[0]->name = old.outputs[0]->name;
    t.node->inputs[1] = made->outputs[0];
    if (g.useCount(old.outputs[0]) == 0)
        g.eraseNode(t.dequantize);
    return true;
}

// False when a new weight is not finite in its type.
Result<bool> apply(ir::Graph& g, Target const& t, Affine const& f, recipe::Recipes* recipes)
{
    ir::Node& n = *t.node;
    ir::Value const& w = *n.inputs[1];
    ir::Value const* b = n.inputs.size() > 2 ? n.inputs[2] : nullptr;
    Folding const folding(t, f, recipes);
    bool const mayChange = recipes && f.shift && recipes->reaches(*f.shift);
    BlobPtr newBias;
    if (b || (f.shift && (mayChange || !allEqual(f.shift, 0))))
        TW_SET(newBias, folding.bias(b, w.type));
    if (t.dequantize) {
        std::string const name = b ? b->name : w.name + ".bias"; // w may be gone in a moment
        DataType const type = w.type;
        TW_ASSIGN(bool const applied, applyToSteps(g, t, folding));
        if (!applied)
            return false;
        if (newBias) {
            auto origin = std::make_shared<ir::Constant>();
            if (b)
                *origin = *b->constant;
            origin->role = ir::WeightsRole::kBias;
            n.inputs.resize(2);
            n.inputs.push_back(replaced(g, name, type, {t.channels}, *origin, std::move(newBias)));
        }
        return true;
    }
    TW_ASSIGN(BlobPtr newKernel, folding.kernel(w));
    if (!isFinite(w.type, *newKernel) || (newBias && !isFinite(w.type, *newBias)))
        return false;
    ir::Constant biasOrigin = b ? *b->constant : *w.constant;
    biasOrigin.role = ir::WeightsRole::kBias;
    if (!b)
        biasOrigin.weightsName.clear();
    n.inputs.resize(2);
    n.inputs[1] = replaced(g, w.name, w.type, ir::extentsOf(w.shape), *w.constant, std::move(newKernel));
    if (newBias)
        n.inputs.push_back(
            replaced(g, b ? b->name : w.name + ".bias", w.type, {t.channels}, biasOrigin, std::move(newBias)));
    return true;
}

} // namespace

Result<bool> foldScaleIntoConvolution(ir::Graph& g, PassContext const& ctx)
{
    auto const isAffine = [](ir::Node const& n) {
        return n.op == &ops::scale::def() || n.op == &ops::elementwise::def();
    };
    return rewriteEach(g, isAffine, [&](ir::Node& s) -> Result<bool> {
        bool const isScale = s.op == &ops::scale::def();
        ir::Value* const y = s.inputs[!isScale && s.inputs[0]->isConstant() ? 1 : 0];
        auto const target = targetOf(onlyProducer(g, y));
        if (!target || !canJoin(*target->node, s))
            return false;
        auto const affine = isScale ? affineOfScale(s, *target) : affineOfElementwise(s, *target);
        if (!affine)
            return false;
        TW_ASSIGN(bool const applied, apply(g, *target, *affine, ctx.recipes));
        if (!applied)
            return false;
        ctx.log.info("folded '{}' into '{}'", s.name, target->node->name);
        joinOrigins(*target->node, *target->node, s);
        // The node that is left makes what the scale made, by its tensor's name.
        ir::Value* out = s.outputs[0];
        y->name = out->name;
        g.replaceAllUses(out, y);
        g.eraseNode(&s);
        return true;
    });
}

} // namespace tw::passes
