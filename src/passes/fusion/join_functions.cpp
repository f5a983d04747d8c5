// SPDX-License-Identifier: Apache-2.0
// Computes a concatenation of functions of one value at once: each function of all of its places.
//   before: concat(x, sin(x * 1), cos(x * 1), sin(x * 2), cos(x * 2), ..) along an axis, of equal pieces
//   after:  u = x * [1, 1, 1, 2, 2, ..] with a dimension for the pieces; select(is cos, cos(u), select(is sin, sin(u), u)), reshaped
// So frameworks write encodings of positions, times and frequencies: dozens of nodes over a few columns each. Expects
// Form::kCanonical; stands before what fuses the nodes that it makes. Leaves alone: pieces that others read, other sizes, fewer than
// four nodes, numbers that a refit may change, wishes of the user.
#include <algorithm>

#include "ops/concatenation/op.h"
#include "ops/elementwise/op.h"
#include "ops/select/op.h"
#include "ops/unary/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using Operation = ops::elementwise::Operation;

constexpr int kLeastNodes = 4;
constexpr int64_t kShortPiece = 64; // elements

// A piece: function(x * factor).
struct Piece
{
    std::optional<ops::unary::Operation> function;
    double factor = 1;
    ir::Value* x = nullptr;
};

class Join
{
public:
    Join(ir::Graph& g, PassContext const& ctx, ir::Node& concat) : g_(g), ctx_(ctx), concat_(concat) {}

    Result<bool> run()
    {
        axis_ = concat_.attrsAs<ops::concatenation::Attrs>().axis;
        if (hasWish(concat_) || concat_.inputs.size() < 2 || concat_.outputs[0]->host || !(read(true) || read(false)))
            return false;
        return rewrite();
    }

private:
    // Whether all pieces are functions of one value; `factors`: those of products count as theirs.
    bool read(bool factors)
    {
        pieces_.clear();
        nodes_.clear();
        for (ir::Value* v : concat_.inputs) {
            Piece p;
            p.x = v;
            if (ir::Node* const n = own(p.x); n && n->op == &ops::unary::def()) {
                p.function = n->attrsAs<ops::unary::Attrs>().operation;
                addNode(*n);
                p.x = n->inputs[0];
            }
            if (ir::Node* const n = factors ? p.x->producer : nullptr; is(n, Operation::kProd) && !hasWish(*n))
                for (size_t i : {size_t(0), size_t(1)})
                    if (auto const number = numberOf(n->inputs[1 - i], ctx_.recipes);
                        number && n->inputs[i]->shape == n->outputs[0]->shape) {
                        p.factor = *number;
                        addNode(*n);
                        p.x = n->inputs[i];
                        break;
                    }
            pieces_.push_back(p);
        }
        ir::Value const* const x = pieces_[0].x;
        return int(nodes_.size()) >= kLeastNodes && isFullFloat(x->type) && !x->isConstant() &&
               std::ranges::all_of(pieces_, [&](Piece const& p) { return p.x == x; });
    }
    ir::Node* own(ir::Value const* v) const
    {
        ir::Node* const n = onlyProducer(g_, v);
        return n && !hasWish(*n) ? n : nullptr;
    }
    void addNode(ir::Node& n)
    {
        if (std::ranges::find(nodes_, &n) == nodes_.end())
            nodes_.push_back(&n);
    }

    template <class A>
    Result<ir::Value*> add(ir::OpDef const& op, A attrs, std::vector<ir::Value*> inputs, char const* part)
    {
        TW_ASSIGN(ir::Node * n, g_.addNode(op, std::make_unique<A>(std::move(attrs)), std::move(inputs),
                                           fmt::format("{} [{}]", concat_.name, part), {}, g_.positionOf(&concat_)));
        n->layers = layers_;
        return n->outputs[0];
    }
    // A constant with an element for each piece, along the new dimension; it is `repeated` for the elements of a piece behind that.
    template <class T, class Of>
    ir::Value* ofPieces(char const* name, DataType type, Of&& of, bool repeated = false)
    {
        ir::Shape const& x = pieces_[0].x->shape;
        Extents dims;
        for (int d = 0; d <= int(x.size()); ++d)
            dims.push(d == axis_ ? int64_t(pieces_.size()) : repeated && d > axis_ ? x[size_t(d) - 1].value() : 1);
        int64_t const each = dims.volume(axis_ + 1, dims.rank);
        std::vector<T> values;
        for (Piece const& p : pieces_)
            values.insert(values.end(), size_t(each), of(p));
        return g_.addConstant(fmt::format("{} [{}]", concat_.name, name), type, dims, values.data());
    }

    // A piece of few neighbours, which would be rows of their own for whoever reads one number for all of them.
    bool hasShortPieces() const
    {
        int64_t each = 1;
        ir::Shape const& x = pieces_[0].x->shape;
        for (size_t d = size_t(axis_); d < x.size(); ++d)
            if (!x[d].isConst() || (each *= x[d].value()) > kShortPiece || each < 1)
                return false;
        return true;
    }

    Result<bool> rewrite()
    {
        ir::Value* const x = pieces_[0].x;
        ir::Shape shape = x->shape;
        shape.insert(shape.begin() + axis_, ir::Dim(1));
        TW_ASSIGN(ir::Value * u, addReshape(g_, x, shape, g_.positionOf(&concat_)));
        if (!u)
            return false;
        std::vector<ir::Node const*> origins{&concat_};
        for (ir::Node const* n : nodes_)
            origins.push_back(n);
        for (ir::Node const* n : origins)
            for (std::string const& layer : n->layers)
                if (std::ranges::find(layers_, layer) == layers_.end())
                    layers_.push_back(layer);
        TW_SET(u, add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kProd),
                      {u, ofPieces<float>("factors", DataType::kFloat, [](Piece const& p) { return float(p.factor); })},
                      "products"));
        std::vector<std::optional<ops::unary::Operation>> functions;
        for (Piece const& p : pieces_)
            if (std::ranges::find(functions, p.function) == functions.end())
                functions.push_back(p.function);
        ir::Value* y = nullptr;
        for (auto const& f : functions) {
            ir::Value* v = u;
            if (f)
                TW_SET(v, add(ops::unary::def(), ops::unary::Attrs(*f), {u}, ops::unary::kOperationNames[int(*f)]));
            if (!y) {
                y = v;
                continue;
            }
            auto const isPlace = [&](Piece const& p) { return uint8_t(p.function == f); };
            ir::Value* const where = ofPieces<uint8_t>("places", DataType::kBool, isPlace, hasShortPieces());
            TW_SET(y, add(ops::select::def(), ops::select::Attrs(), {where, v, y}, "choice"));
        }
        TW_ASSIGN(ir::Value * joined, addReshape(g_, y, concat_.outputs[0]->shape, g_.positionOf(&concat_)));
        if (!joined || !replaceValue(g_, concat_.outputs[0], joined))
            return false; // what was made is read by nobody
        std::vector<ir::Node*> old = nodes_;
        g_.eraseNode(&concat_);
        std::ranges::sort(old, [&](ir::Node* a, ir::Node* b) { return g_.positionOf(a) > g_.positionOf(b); });
        for (ir::Node* n : old) // from the end: readers first
            if (g_.useCount(n->outputs[0]) == 0)
                g_.eraseNode(n);
        return true;
    }

    ir::Graph& g_;
    PassContext const& ctx_;
    ir::Node& concat_;
    int axis_ = 0;
    std::vector<Piece> pieces_;
    std::vector<ir::Node*> nodes_; // that go, in order
    std::vector<std::string> layers_;
};

} // namespace

Result<bool> joinFunctions(ir::Graph& g, PassContext const& ctx)
{
    return rewriteEach(
        g, [](ir::Node const& n) { return n.op == &ops::concatenation::def(); },
        [&](ir::Node& n) { return Join(g, ctx, n).run(); });
}

} // namespace tw::passes
