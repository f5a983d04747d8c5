// SPDX-License-Identifier: Apache-2.0
// Makes one matrix product of a gated unit (SwiGLU, GEGLU, GLU, ReGLU and their kin):
//   f(x wg + bg) * (x wu + bu)                     ->  gated(x, [wg wu], [bg bu]; f)
//   y = x w + b:  f(y[.., half]) * y[.., other half]  ->  gated(x, w, b; f), whose gates are its first half
// w and b are constants, a bias may be missing, and f may be none. One kernel instead of two to four, and neither gates
// nor what they let through are written to memory.
// Expects Form::kFused: stands after fuse_activation, which has given the gate's product its bias and activation, and
// before fuse_pointwise, which would take what follows two halves. On GPUs tiles that hold both halves exist for
// capability 9.0 alone, and only there they are made. The op's reference is the oracle: the node has no body.
// Leaves alone: halves or products that others read, wishes of the user that differ, and on CPUs long sums of two
// products, so few rows that kernels for them read the weights at memory's rate, or a number of rows that is not known.
#include <algorithm>

#include "ops/activation/op.h"
#include "ops/elementwise/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/slice/op.h"
#include "passes/fuse_nodes.h"
#include "passes/fusion/match_activation.h"
#include "passes/join_constants.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "passes/strided_view.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::Epilogue;
using ops::matrix_multiply::MatrixOperation;

constexpr int64_t kFewRows = 4; // for which CPUs have kernels of their own
// On CPUs two products become one where a row of weights is no longer: tiles of both halves lose what they save where
// sums come in several parts (Zen 5, one thread, 256 rows: 1024 to 2816 takes 0.98 of the time, 2048 to 5632 1.03). One
// product that is split gains always (1024 rows, 320 to twice 1280: 0.89).
constexpr int64_t kMostSummed = 1024;
constexpr int64_t kUnit = 8; // columns that lie together in tiles of a GPU, and numbers of FP16 in 16 bytes

// Columns of a product's weights, from `first` on.
struct Half
{
    ir::Node* product = nullptr;
    int64_t first = 0;
    std::vector<ir::Node*> nodes; // from the product to the half's last value
    std::vector<ir::Node*> sizes; // what the slice's size is computed by, where it is not known
    ops::FusedActivation activation;
};

struct Unit
{
    Half gate, through;
    ir::Node* last = nullptr;
    int64_t columns = 0;
};

class Finder
{
public:
    Finder(ir::Graph const& g, PassContext const& ctx) : g_(g), ctx_(ctx) {}

    bool find(ir::Node& last, Unit& u) const
    {
        ir::Shape const& y = last.outputs[0]->shape;
        if (y.empty() || !y.back().isConst() || last.inputs[0] == last.inputs[1] || !isFloating(last.outputs[0]->type))
            return false;
        u.columns = y.back().value();
        u.last = &last;
        for (ir::Value const* v : last.inputs)
            if (!(v->shape == y) || v->type != last.outputs[0]->type)
                return false;
        // A factor without an activation is what the other one gates.
        for (int gate : {0, 1}) {
            u.gate = u.through = {};
            if (end(*last.inputs[size_t(gate)], u.columns, u.gate) &&
                end(*last.inputs[size_t(1 - gate)], u.columns, u.through) && !u.through.activation.any() && fits(u))
                return true;
        }
        return false;
    }

private:
    // What ends in `v`: a product, or a slice of one and an activation behind it.
    bool end(ir::Value const& v, int64_t columns, Half& h) const
    {
        ir::Node* n = onlyProducer(g_, &v);
        if (!n)
            return false;
        if (n->op == &ops::matrix_multiply::def()) {
            h.product = n;
            h.nodes = {n};
            h.activation = n->attrsAs<ops::matrix_multiply::Attrs>().epilogue.activation;
            return n->outputs[0]->shape.back().is(columns) && isPlain(*n);
        }
        if (n->op == &ops::slice::def())
            return slice(*n, columns, h);
        return activated(v, columns, h);
    }

    // The first value behind which nothing but an activation leads to `v` is a slice of a product.
    bool activated(ir::Value const& v, int64_t columns, Half& h) const
    {
        for (ir::Node* n : slicesBefore(v)) {
            auto const match = matchActivation(g_, n->outputs[0], ctx_.recipes);
            if (!match || match->nodes.back()->outputs[0] != &v || !slice(*n, columns, h))
                continue;
            h.activation = match->activation;
            h.nodes.insert(h.nodes.end(), match->nodes.begin(), match->nodes.end());
            return true;
        }
        return false;
    }

    // Slices that `v` is computed of by up to as many nodes as an activation has.
    std::vector<ir::Node*> slicesBefore(ir::Value const& v) const
    {
        constexpr size_t kMostNodes = 12;
        std::vector<ir::Node*> seen{v.producer}, slices;
        for (size_t i = 0; i < seen.size() && seen.size() <= kMostNodes; ++i) {
            if (seen[i]->op == &ops::slice::def()) {
                slices.push_back(seen[i]);
                continue;
            }
            for (ir::Value const* in : seen[i]->inputs)
                if (in && in->producer && !contains(seen, in->producer))
                    seen.push_back(in->producer);
        }
        return slices;
    }

    // One half of the columns of a product.
    static bool slice(ir::Node& n, int64_t columns, Half& h)
    {
        auto const part = selectionOf(n);
        ir::Node* const product = n.inputs[0]->producer;
        if (!product || product->op != &ops::matrix_multiply::def() || !part || part->step != 1 ||
            part->axis != part->x->rank() - 1 || part->size != columns || !part->x->shape.back().is(2 * columns) ||
            part->start % columns != 0)
            return false;
        h.product = product;
        h.first = part->start;
        h.nodes = {product, &n};
        std::vector<ir::Node const*> readers{&n};
        for (size_t i = 0; i < readers.size(); ++i)
            for (size_t in = readers[i] == &n ? 1 : 0; in < readers[i]->inputs.size(); ++in)
                if (ir::Value const* const v = readers[i]->inputs[in]; v && v->producer && v->producer != product)
                    if (!contains(readers, v->producer)) {
                        readers.push_back(v->producer);
                        h.sizes.push_back(v->producer);
                    }
        return isPlain(*product) && !product->attrsAs<ops::matrix_multiply::Attrs>().epilogue.activation.any();
    }

    // x times one constant matrix, with a bias and an activation at most.
    static bool isPlain(ir::Node const& n)
    {
        auto const& a = n.attrsAs<ops::matrix_multiply::Attrs>();
        return !a.gated && !a.connected && a.b != MatrixOperation::kVector && a.a == MatrixOperation::kNone &&
               !ops::hasInput(n, Epilogue::kResidual) && !ops::matrix_multiply::hasNorm(n) &&
               isConstantOf(*n.inputs[1], 2) &&
               (!ops::hasInput(n, Epilogue::kBias) || n.inputs[Epilogue::kBias]->isConstant());
    }

    bool fits(Unit const& u) const
    {
        ir::Node const &p = *u.gate.product, &q = *u.through.product;
        auto const &a = p.attrsAs<ops::matrix_multiply::Attrs>(), &b = q.attrsAs<ops::matrix_multiply::Attrs>();
        bool const same = &p == &q;
        if (same ? u.gate.first == u.through.first
                 : u.gate.nodes.size() + u.through.nodes.size() != 2 || p.inputs[0] != q.inputs[0] || a.b != b.b ||
                       p.inputs[1]->type != q.inputs[1]->type || p.inputs[1]->rank() != q.inputs[1]->rank())
            return false;
        // What reads the product's shape goes with it, sizes that are computed of something else need not.
        std::vector<ir::Node*> all = nodesOf(g_, u);
        for (ir::Node* n : sizesOf(g_, u))
            if (std::ranges::any_of(n->inputs,
                                    [&](ir::Value const* v) { return v && v->producer && contains(all, v->producer); }))
                all.push_back(n);
        sortNodes(g_, all);
        return canFuse(g_, all) && pays(p, u.columns, same);
    }

    bool pays(ir::Node const& product, int64_t columns, bool isSplit) const
    {
        ir::Shape const& x = product.inputs[0]->shape;
        if (auto const* gpu = ctx_.target.gpu())
            return gpu->capability == 90 && columns % kUnit == 0 && x.back().isConst() && x.back().value() % kUnit == 0;
        int64_t rows = 1;
        for (size_t d = 0; d + 1 < x.size(); ++d)
            rows = x[d].isConst() ? rows * x[d].value() : 0;
        return ctx_.target.cpu()->isa != TargetInfo::Isa::kBaseline && rows > kFewRows &&
               (isSplit || (x.back().isConst() && x.back().value() <= kMostSummed)) &&
               isFullFloat(product.outputs[0]->type);
    }

public:
    static std::vector<ir::Node*> nodesOf(ir::Graph const& g, Unit const& u)
    {
        std::vector<ir::Node*> nodes = u.gate.nodes;
        for (ir::Node* n : u.through.nodes)
            if (n != u.gate.product)
                nodes.push_back(n);
        nodes.push_back(u.last);
        sortNodes(g, nodes);
        return nodes;
    }
    static std::vector<ir::Node*> sizesOf(ir::Graph const& g, Unit const& u)
    {
        std::vector<ir::Node*> nodes = u.gate.sizes;
        nodes.insert(nodes.end(), u.through.sizes.begin(), u.through.sizes.end());
        sortNodes(g, nodes);
        return nodes;
    }

private:
    ir::Graph const& g_;
    PassContext const& ctx_;
};

// A constant of `rows` rows, to each of which the gates give their columns first, of `width` elements each; zeros where
// a bias is missing.
Result<ir::Value*> joined(ir::Graph& g, PassContext const& ctx, Unit const& u, size_t input, Extents const& dims,
                          int64_t rows, int64_t width)
{
    auto of = [&](Half const& h) { return input < h.product->inputs.size() ? h.product->inputs[input] : nullptr; };
    ir::Value const& one = *(of(u.gate) ? of(u.gate) : of(u.through));
    std::vector<RowPart> parts;
    for (Half const* h : {&u.gate, &u.through})
        parts.push_back({of(*h), h->first * width, u.columns * width});
    return joinConstants(g, ctx.recipes, one.name + ".gated", one.type, dims, rows, parts);
}

Result<void> fuse(ir::Graph& g, PassContext const& ctx, Unit const& u)
{
    ir::Node const& p = *u.gate.product;
    bool const inPlace = &p == u.through.product && u.gate.first == 0;
    std::vector<ir::Value*> inputs = p.inputs;
    if (!inPlace) {
        Extents dims = ir::extentsOf(inputs[1]->shape);
        bool const transposed = p.attrsAs<ops::matrix_multiply::Attrs>().b == MatrixOperation::kTranspose;
        int64_t const k = dims[dims.rank - (transposed ? 1 : 2)];
        dims[dims.rank - (transposed ? 2 : 1)] = 2 * u.columns;
        TW_ASSIGN(ir::Value * weights, joined(g, ctx, u, 1, dims, transposed ? 1 : k, transposed ? k : 1));
        inputs = {p.inputs[0], weights};
        if (ops::hasInput(p, Epilogue::kBias) || ops::hasInput(*u.through.product, Epilogue::kBias)) {
            TW_ASSIGN(ir::Value * bias, joined(g, ctx, u, Epilogue::kBias, {2 * u.columns}, 1, 1));
            inputs.push_back(bias);
        }
    }
    std::vector<ir::Node*> const nodes = Finder::nodesOf(g, u), sizes = Finder::sizesOf(g, u);
    auto attrs = std::make_unique<ops::matrix_multiply::Attrs>(p.attrsAs<ops::matrix_multiply::Attrs>());
    attrs->epilogue.activation = u.gate.activation;
    attrs->gated = true;
    TW_ASSIGN(ir::Node * fused, g.addNode(ops::matrix_multiply::def(), std::move(attrs), inputs, nodes[0]->name, {},
                                          g.positionOf(u.last)));
    takeOver(g, *fused, nodes);
    // From the end on, sizes before the product whose shape they read.
    for (size_t i = nodes.size(); i-- > 0;)
        if (&p != u.through.product || nodes[i] != &p)
            g.eraseNode(nodes[i]);
    for (size_t i = sizes.size(); i-- > 0;)
        if (std::ranges::all_of(sizes[i]->outputs, [&](ir::Value const* v) { return g.useCount(v) == 0; }))
            g.eraseNode(sizes[i]);
    if (&p == u.through.product)
        g.eraseNode(u.gate.product);
    return {};
}

} // namespace

Result<bool> fuseGate(ir::Graph& g, PassContext const& ctx)
{
    auto const isProduct = [](ir::Node const& n) { return is(&n, ops::elementwise::Operation::kProd); };
    auto const fuseBefore = [&](ir::Node& product) -> Result<bool> {
        Unit u;
        if (!Finder(g, ctx).find(product, u))
            return false;
        ctx.log.info("fused {}", namesOf(Finder::nodesOf(g, u)));
        TW_TRY(fuse(g, ctx, u));
        return true;
    };
    // The product inside of a SiLU is no gate's.
    return rewriteEach(g, isProduct, fuseBefore, Order::kFromTheEnd);
}

} // namespace tw::passes
