// SPDX-License-Identifier: Apache-2.0
// Folds a constant scale and shift per channel after a convolution into its kernel and bias.
//   before: y = conv(x, w, b) -> scale(y, s, t)      after: conv(x, s w, s b + t)
// The scale may be a scale layer (uniform, or by channel of the convolution; no power), as batch normalization imports,
// or a sum, difference, product or quotient with a constant that has the channel's or no dimension. Convolution,
// transposed or not, and fully connected. Expects Form::kCanonical. Stands before fuse_activation, which then finds the
// activation right after the convolution. New weights are computed in double and rounded once; they keep layer and
// role of the old ones. Leaves alone: a convolution that others read too, weights that refit can reach, factors that
// are not finite or leave the type's range.
#include <cmath>

#include "ops/convolution/op.h"
#include "ops/elementwise/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/scale/op.h"
#include "passes/list.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// y[k] = factor[k] * x[k] + shift[k] for channel k.
struct Affine
{
    std::vector<double> factor, shift;
};

// A convolution-like node with constant weights.
struct Target
{
    ir::Node* node = nullptr;
    int64_t channels = 0; // of the output
    int channelAxis = 0;
};

std::optional<Target> targetOf(ir::Node* n, bool refittable)
{
    bool const connected = n && ops::matrix_multiply::isBareConnected(*n);
    if (!connected && !(n && ops::convolution::isBare(*n)))
        return std::nullopt;
    ir::Value const *w = n->inputs[1], *b = n->inputs.size() > 2 ? n->inputs[2] : nullptr;
    if (!w->isConstant() || (b && !b->isConstant()) || w->quantization ||
        (refittable && (refitReaches(*w) || (b && refitReaches(*b)))))
        return std::nullopt;
    int const windowRank = connected ? 2 : w->rank() - 2;
    Target t{n, 0, n->outputs[0]->rank() - windowRank - 1};
    ir::Dim const& k = n->outputs[0]->shape[size_t(t.channelAxis)];
    if (!k.isConst())
        return std::nullopt;
    t.channels = k.value();
    return t;
}

// Element for channel k of a coefficient with one element or one for each channel; `otherwise` where it is not given.
double coefficient(ir::Value const* v, int64_t k, double otherwise)
{
    if (!v)
        return otherwise;
    TensorRef const t = constantOf(v);
    return t.get(t.count() == 1 ? 0 : k);
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
    Affine f;
    for (int64_t k = 0; k < t.channels; ++k) {
        f.factor.push_back(coefficient(in[1], k, 1));
        f.shift.push_back(coefficient(in[2], k, 0));
    }
    return f;
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
    Affine f;
    for (int64_t k = 0; k < t.channels; ++k) {
        double const v = coefficient(c, k, 0);
        f.factor.push_back(op == kProd ? v : op == kDiv ? 1 / v : op == kSub && !first ? -1 : 1);
        f.shift.push_back(op == kSum ? v : op == kSub ? (first ? -v : v) : 0);
    }
    return f;
}

// Channel of the output that element `at` of the kernel belongs to.
int64_t channelOf(Target const& t, Extents const& w, int64_t at)
{
    bool const isConvolution = t.node->op == &ops::convolution::def();
    if (!isConvolution || !t.node->attrsAs<ops::convolution::Attrs>().transposed)
        return at / w.volume(1, w.rank);
    // [C, K/G, window]: input channels of group g give output channels g K/G ...
    int64_t const groups = t.node->attrsAs<ops::convolution::Attrs>().groups, window = w.volume(2, w.rank);
    int64_t const c = at / (window * w[1]), inGroup = at / window % w[1];
    return c / (w[0] / groups) * w[1] + inGroup;
}

ir::Value* rounded(ir::Graph& g, ir::Value const& like, Extents const& dims, std::vector<double> const& values,
                   ir::Constant const& origin)
{
    Tensor t(like.type, dims);
    for (size_t i = 0; i < values.size(); ++i) {
        t.ref().set(int64_t(i), values[i]);
        if (!std::isfinite(t.ref().get(int64_t(i))))
            return nullptr;
    }
    auto c = std::make_shared<ir::Constant>(origin);
    c->data = Blob::copy(t.data(), size_t(t.ref().sizeBytes()));
    return g.addConstant(like.name, like.type, dims, std::move(c));
}

// The kernel times the factors of its output channels; null when a product is not finite.
ir::Value* scaled(ir::Graph& g, ir::Value const& w, Target const& t, Affine const& f)
{
    TensorRef const old = constantOf(&w);
    if (old.type != DataType::kFloat) {
        std::vector<double> values(size_t(old.count()));
        for (int64_t i = 0; i < old.count(); ++i)
            values[size_t(i)] = old.get(i) * f.factor[size_t(channelOf(t, old.dims, i))];
        return rounded(g, w, old.dims, values, *w.constant);
    }
    // One factor for each window, or more: rows of elements that the compiler makes vectors of.
    int64_t const window = old.dims.volume(2, old.dims.rank);
    std::shared_ptr<float[]> const elements(new float[size_t(old.count())]); // zeros first would cost as much again
    auto const* from = old.as<float>();
    float* const to = elements.get();
    bool finite = true;
    for (int64_t row = 0; row < old.count(); row += window) {
        double const factor = f.factor[size_t(channelOf(t, old.dims, row))];
        for (int64_t i = row; i < row + window; ++i) {
            to[i] = float(from[i] * factor);
            finite = finite && std::isfinite(to[i]);
        }
    }
    if (!finite)
        return nullptr;
    auto c = std::make_shared<ir::Constant>(*w.constant);
    c->data = std::make_shared<Blob const>(to, size_t(old.sizeBytes()), elements);
    return g.addConstant(w.name, w.type, old.dims, std::move(c));
}

// False when a new weight is not finite in its type.
bool apply(ir::Graph& g, Target const& t, Affine const& f)
{
    ir::Node& n = *t.node;
    ir::Value const& w = *n.inputs[1];
    ir::Value const* b = n.inputs.size() > 2 ? n.inputs[2] : nullptr;
    std::vector<double> bias(size_t(t.channels));
    bool anyBias = b != nullptr;
    for (int64_t k = 0; k < t.channels; ++k) {
        bias[size_t(k)] = (b ? constantOf(b).get(k) : 0) * f.factor[size_t(k)] + f.shift[size_t(k)];
        anyBias = anyBias || bias[size_t(k)] != 0;
    }
    ir::Constant biasOrigin = b ? *b->constant : *w.constant;
    biasOrigin.role = ir::WeightsRole::kBias;
    if (!b)
        biasOrigin.weightsName.clear();
    ir::Value biasLike;
    biasLike.name = b ? b->name : w.name + ".bias";
    biasLike.type = w.type;
    ir::Value* newKernel = scaled(g, w, t, f);
    ir::Value* newBias = anyBias ? rounded(g, biasLike, {t.channels}, bias, biasOrigin) : nullptr;
    if (!newKernel || (anyBias && !newBias))
        return false;
    n.inputs.resize(2);
    n.inputs[1] = newKernel;
    if (newBias)
        n.inputs.push_back(newBias);
    return true;
}

} // namespace

Result<bool> foldScaleIntoConvolution(ir::Graph& g, PassContext const& ctx)
{
    bool changed = false;
    for (size_t i = 0; i < g.nodes.size(); ++i) {
        ir::Node* s = g.nodes[i].get();
        bool const isScale = s->op == &ops::scale::def(), isElementwise = s->op == &ops::elementwise::def();
        if (!isScale && !isElementwise)
            continue;
        ir::Value* y = s->inputs[0];
        if (isElementwise && y->isConstant())
            y = s->inputs[1];
        auto const target = targetOf(onlyProducer(g, y), ctx.refittable);
        if (!target || !canJoin(*target->node, *s))
            continue;
        auto const affine = isScale ? affineOfScale(*s, *target) : affineOfElementwise(*s, *target);
        if (!affine || !apply(g, *target, *affine))
            continue;
        ctx.log.info("folded '" + s->name + "' into '" + target->node->name + "'");
        joinOrigins(*target->node, *target->node, *s);
        // The node that is left makes what the scale made: its tensor's name, and its quantization.
        ir::Value* out = s->outputs[0];
        y->name = out->name;
        y->quantization = out->quantization;
        g.replaceAllUses(out, y);
        g.eraseNode(s);
        --i;
        changed = true;
    }
    if (changed)
        g.eraseUnusedValues();
    return changed;
}

} // namespace tw::passes
