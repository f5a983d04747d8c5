// SPDX-License-Identifier: Apache-2.0
// Computes only what is read, where a slice or a gather of one index reads a part along one axis of what matrix
// products make:
//   x [n, 197, k] -> layer norm -> product -> + x -> slice(axis 1, the first row)
//     ->  slice(x) [n, 1, k] -> layer norm -> product -> + slice(x)
// Classifiers read the first token of their last layer alone: nearly all of that layer's products go. From the part
// that is read, the parts that its makers must give are worked out against the flow, through every node that treats the
// indices of the axis apart; a value that several nodes read is narrowed where all want the same part of it.
// Expects Form::kCanonical, after the canonical passes and before the fusions, which find smaller patterns.
// Leaves alone: graphs where no matrix product becomes smaller, graph outputs, quantized values, parts whose bounds are
// no constants.
#include <algorithm>
#include <map>
#include <optional>

#include "ops/activation/op.h"
#include "ops/concatenation/op.h"
#include "ops/elementwise/op.h"
#include "ops/gather/op.h"
#include "ops/identity/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/reduce/op.h"
#include "ops/select/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "ops/softmax/op.h"
#include "ops/unary/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/rewrite.h"
#include "passes/strided_view.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// Indices begin .. begin + count - 1 of an axis; all of the value where axis is kAll.
struct Part
{
    static constexpr int kAll = -1;
    int axis = kAll;
    int64_t begin = 0, count = 0;
    bool isAll() const { return axis == kAll; }
    bool operator==(Part const&) const = default;
    auto operator<=>(Part const&) const = default; // NOLINT(modernize-use-nullptr): not what is written here
};

// What a slice or gather reads of its input along one axis, when that is all that it does.
std::optional<Part> partReadBy(ir::Node const& n)
{
    auto const s = selectionOf(n);
    bool const isPart = s && s->step == 1 && s->byAttributes && !s->x->shape[size_t(s->axis)].is(s->size);
    return isPart ? std::optional(Part{s->axis, s->start, s->size}) : std::nullopt;
}

// Parts of the inputs that give `part` of the output; nothing: the node needs whole inputs.
std::optional<std::vector<Part>> partsOfInputs(ir::Node const& n, Part part)
{
    using namespace ops;
    ir::Value const& y = *n.outputs[0];
    std::vector<Part> parts(n.inputs.size());
    size_t const axis = size_t(part.axis);
    // By broadcasting: an input has the axis, or 1 there.
    auto broadcast = [&](size_t i, size_t at) {
        ir::Shape const& s = n.inputs[i]->shape;
        if (s[at] == y.shape[axis])
            parts[i] = Part{int(at), part.begin, part.count};
        return s[at] == y.shape[axis] || s[at].is(1);
    };
    if (n.op == &unary::def() || n.op == &activation::def() || n.op == &identity::def()) {
        parts[0] = part;
        return parts;
    }
    if (n.op == &elementwise::def() || n.op == &select::def()) {
        for (size_t i = 0; i < n.inputs.size(); ++i)
            if (n.inputs[i]->rank() != y.rank() || !broadcast(i, axis))
                return {};
        return parts;
    }
    if (n.op == &reduce::def()) {
        auto const& a = n.attrsAs<reduce::Attrs>();
        int at = 0, left = part.axis; // of the input: the axis that is number `left` of those that stay
        for (; at < n.inputs[0]->rank(); ++at)
            if ((a.keepDims || !a.has(at)) && left-- == 0)
                break;
        if (a.has(at))
            return {};
        parts[0] = Part{at, part.begin, part.count};
        return parts;
    }
    if (n.op == &softmax::def()) {
        parts[0] = part;
        return n.attrsAs<softmax::Attrs>().axis == part.axis ? std::nullopt : std::optional(parts);
    }
    if (n.op == &concatenation::def()) {
        std::ranges::fill(parts, part);
        return n.attrsAs<concatenation::Attrs>().axis == part.axis ? std::nullopt : std::optional(parts);
    }
    if (matrix_multiply::isBareProduct(n)) {
        using matrix_multiply::MatrixOperation;
        auto const& a = n.attrsAs<matrix_multiply::Attrs>();
        if (a.a == MatrixOperation::kVector || a.b == MatrixOperation::kVector || part.axis == y.rank() - 1)
            return {};
        if (part.axis == y.rank() - 2) {
            parts[0] = part;
            parts[0].axis += a.a == MatrixOperation::kTranspose;
            return parts;
        }
        return broadcast(0, axis) && broadcast(1, axis) ? std::optional(parts) : std::nullopt;
    }
    if (n.op == &shuffle::def()) {
        for (int at = 0; at < n.inputs[0]->rank(); ++at)
            if (shuffle::dimensionBehind(n, at) == part.axis) {
                parts[0] = Part{at, part.begin, part.count};
                return parts;
            }
        return {};
    }
    if (n.op == &gather::def() && n.attrsAs<gather::Attrs>().isPlain()) {
        int const before = int(n.attrsAs<gather::Attrs>().axis), indices = n.inputs[1]->rank();
        if (part.axis >= before && part.axis < before + indices)
            return {};
        parts[0] = part;
        parts[0].axis += part.axis < before ? 0 : 1 - indices;
        return parts;
    }
    return {};
}

// The dimensions of a reshape between shapes of which `part` is left; nothing: attributes cannot say them.
std::optional<ReshapeDims> narrowedReshape(ir::Graph const& g, ir::Node const& n, Part const& partOfInput,
                                           Part const& partOfOutput)
{
    auto const& a = n.attrsAs<ops::shuffle::Attrs>();
    ir::Shape x = n.inputs[0]->shape, y = n.outputs[0]->shape;
    x[size_t(partOfInput.axis)] = partOfInput.count;
    y[size_t(partOfOutput.axis)] = partOfOutput.count;
    return reshapeDims(g, permuted(x, a.firstTranspose), unpermuted(y, a.secondTranspose));
}

// Nodes that move elements at most; a part is read where they have put it as easily as before them.
bool isMovement(ir::Node const& n)
{
    return n.op == &ops::shuffle::def() || n.op == &ops::gather::def() || n.op == &ops::slice::def();
}

class Narrower
{
public:
    explicit Narrower(ir::Graph& g) : g_(g) {}

    Result<bool> run()
    {
        demand();
        settle();
        bool const pays = std::ranges::any_of(
            narrowed_, [](auto const& entry) { return ops::matrix_multiply::isBareProduct(*entry.first); });
        if (!pays || !canBeSaid())
            return false;
        TW_TRY(rewrite());
        return true;
    }

private:
    // Against the flow: what each value must hold, and which nodes can make less.
    void demand()
    {
        for (ir::Value* v : g_.outputs)
            want(v, Part{});
        for (auto n = g_.nodes.rbegin(); n != g_.nodes.rend(); ++n) {
            ir::Node& node = **n;
            if (auto const read = partReadBy(node)) {
                readers_[&node] = *read;
                want(node.inputs[0], *read);
                for (size_t i = 1; i < node.inputs.size(); ++i)
                    want(node.inputs[i], Part{});
                continue;
            }
            std::optional<std::vector<Part>> parts;
            if (node.outputs.size() == 1 && node.regions.empty() && !node.body) {
                auto const at = wanted_.find(node.outputs[0]);
                if (at != wanted_.end() && !at->second.isAll() && isData(*node.outputs[0]))
                    parts = partsOfInputs(node, at->second);
            }
            if (parts)
                narrowed_[&node] = *parts;
            for (size_t i = 0; i < node.inputs.size(); ++i)
                want(node.inputs[i], parts ? (*parts)[i] : Part{});
        }
    }
    static bool isData(ir::Value const& v) { return isFloating(v.type) && !v.host && !v.content; }
    void want(ir::Value const* v, Part const& part)
    {
        if (!v)
            return;
        auto const [at, isNew] = wanted_.try_emplace(v, part);
        if (!isNew && at->second != part)
            at->second = Part{};
    }

    // With the flow: nodes that only move elements stay as they are where their inputs do.
    void settle()
    {
        for (auto const& n : g_.nodes) {
            auto const at = narrowed_.find(n.get());
            if (at == narrowed_.end() || !isMovement(*n))
                continue;
            bool const isInner = std::ranges::any_of(
                n->inputs, [&](ir::Value const* v) { return v && narrowed_.contains(v->producer); });
            if (!isInner)
                narrowed_.erase(at);
        }
    }

    // Whether attributes can say every slice and reshape.
    bool canBeSaid() const
    {
        for (auto const& [n, parts] : narrowed_)
            for (size_t i = 0; i < parts.size(); ++i) {
                if (parts[i].isAll() || !n->inputs[i])
                    continue;
                if (!narrowed_.contains(n->inputs[i]->producer) && parts[i].count != 1 &&
                    !ir::isStatic(n->inputs[i]->shape))
                    return false;
                if (n->op == &ops::shuffle::def() && n->attrsAs<ops::shuffle::Attrs>().hasReshape &&
                    !narrowedReshape(g_, *n, parts[i], wanted_.at(n->outputs[0])))
                    return false;
            }
        return true;
    }

    Result<void> rewrite()
    {
        auto order = mapped<ir::Node*>(g_.nodes, [&](auto const& n) { return n.get(); });
        for (ir::Node* n : order) {
            if (auto const at = narrowed_.find(n); at != narrowed_.end())
                TW_TRY(narrow(*n, at->second));
            else if (auto const reader = readers_.find(n); reader != readers_.end())
                TW_TRY(readNarrowed(*n, reader->second));
        }
        for (auto n = order.rbegin(); n != order.rend(); ++n)
            if ((narrowed_.contains(*n) || readers_.contains(*n)) && g_.useCount((*n)->outputs[0]) == 0)
                g_.eraseNode(*n);
        return {};
    }

    // The part of a value: what was narrowed, or a slice before the reader.
    Result<ir::Value*> partOf(ir::Value* v, Part const& part, ir::Node const& reader)
    {
        ir::Value*& made = made_[{v, part}];
        if (made)
            return made;
        std::string const name = v->name + ".read";
        int const position = g_.positionOf(&reader);
        auto const a = ops::slice::partOf(v->shape, part.axis, part.begin, part.count);
        TW_ASSIGN(ir::Node * n, g_.addNode(ops::slice::def(), a.clone(), {v}, name, {}, position));
        made = n->outputs[0];
        made->name = name;
        return made;
    }

    Result<void> narrow(ir::Node& n, std::vector<Part> const& parts)
    {
        std::vector<ir::Value*> inputs = n.inputs;
        for (size_t i = 0; i < inputs.size(); ++i)
            if (inputs[i] && !parts[i].isAll())
                TW_SET(inputs[i], partOf(n.inputs[i], parts[i], n));
        Part const part = wanted_.at(n.outputs[0]);
        auto attrs = n.attrs->clone();
        if (n.op == &ops::shuffle::def()) {
            auto& a = static_cast<ops::shuffle::Attrs&>(*attrs);
            if (auto const dims = a.hasReshape ? narrowedReshape(g_, n, parts[0], part) : std::nullopt) {
                a.reshape = dims->dims;
                a.zeroIsPlaceholder = dims->placeholder;
            }
        }
        TW_ASSIGN(ir::Node * made, g_.addNode(*n.op, std::move(attrs), inputs, n.name, {}, g_.positionOf(&n)));
        takePlaceOf(*made, n);
        made->outputs[0]->name = n.outputs[0]->name;
        made_[{n.outputs[0], part}] = made->outputs[0];
        return {};
    }

    // A slice or gather of a value that has been narrowed to what it reads.
    Result<void> readNarrowed(ir::Node& n, Part const& part)
    {
        auto const at = made_.find({n.inputs[0], part});
        if (at == made_.end() || !narrowed_.contains(n.inputs[0]->producer))
            return {};
        ir::Value* all = at->second;
        if (n.op == &ops::gather::def())
            TW_SET(all, addReshape(g_, all, n.outputs[0]->shape, g_.positionOf(&n)));
        if (all && replaceValue(g_, n.outputs[0], all))
            return {};
        // Its node stays, and reads from the first index on.
        n.inputs[0] = at->second;
        if (n.op == &ops::slice::def()) {
            n.attrsAs<ops::slice::Attrs>().start[size_t(part.axis)] = 0;
        } else {
            ir::Value const& index = *n.inputs[1];
            int64_t const zero = 0; // as wide as any index
            n.inputs[1] = g_.addConstant(index.name + ".first", index.type, ir::extentsOf(index.shape), &zero);
        }
        return {};
    }

    ir::Graph& g_;
    std::map<ir::Value const*, Part> wanted_;
    std::map<ir::Node const*, Part> readers_;
    std::map<ir::Node const*, std::vector<Part>> narrowed_; // parts of its inputs
    std::map<std::pair<ir::Value const*, Part>, ir::Value*> made_;
};

} // namespace

Result<bool> removeDeadRows(ir::Graph& g, PassContext const&)
{
    return Narrower(g).run();
}

} // namespace tw::passes
