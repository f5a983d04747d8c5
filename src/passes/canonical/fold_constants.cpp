// SPDX-License-Identifier: Apache-2.0
// Computes at build time what does not depend on the network's inputs.
//   before: op(const, const) -> v        after: const v
// A node whose inputs are all constant runs on its reference, or a loop of the same bits (recipe/recipes.h); a node whose
// output elements inference knows (the shape of a tensor of static shape) needs no run. Any form. Stands before the passes that look for constant operands.
// Leaves alone: nodes that make a graph output (it stays the output of a node), nodes with state (random numbers), with
// regions, dequantize (fuse_quantization takes weights as integers and folds what is left), results that are more than kGrowth larger than the inputs (a fill costs less than reading it from the plan),
// work that would hold up the build. What is computed of weights that refit can reach is written down, but for integers,
// which decide too much. Equal nodes with the same constants are run once, and what only gets other dimensions keeps its
// bytes: weights that layers share stay one.
#include <algorithm>
#include <cstring>
#include <map>

#include "interp/interp.h"
#include "ir/infer.h"
#include "ir/op_def.h"
#include "ops/convolution/op.h"
#include "ops/elementwise/op.h"
#include "ops/matrix_multiply/op.h"
#include "passes/list.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "recipe/recipes.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

constexpr int64_t kGrowth = int64_t(1) << 20; // bytes
constexpr int64_t kSumGrowth =
    4 * kGrowth; // of element-wise nodes, which would read their inputs, too (masks of windows)
constexpr int64_t kMaxSum = int64_t(1) << 28; // products, where ops sum

bool isStateful(ir::Node const& n)
{
    return n.op->stateful && n.op->stateful(n);
}

// Outputs of a node that may be folded: read by nodes only.
bool mayFold(ir::Graph const& g, ir::Node const& n)
{
    return n.regions.empty() && !n.outputs.empty() && !isStateful(n) && !isDequantize(&n) &&
           std::ranges::none_of(n.outputs, [&](ir::Value const* v) { return g.isOutput(v); });
}

bool isReached(ir::Node const& n, PassContext const& ctx)
{
    return ctx.recipes &&
           std::ranges::any_of(n.inputs, [&](ir::Value const* v) { return v && ctx.recipes->reaches(*v); });
}

bool hasConstantInputs(ir::Node const& n, PassContext const& ctx)
{
    bool const isWritten = ctx.recipes && isReal(n.outputs[0]->type);
    return std::ranges::all_of(n.inputs, [&](ir::Value const* v) {
        return !v || (v->isConstant() && (isWritten || !refitReaches(*v, ctx.recipes)));
    });
}

// Elements of the output as inference knows them; null data when it does not.
Tensor fromContent(ir::Value const& v)
{
    if (!v.content || !isStatic(v.shape) || ir::extentsOf(v.shape).volume() != int64_t(v.content->size()))
        return {};
    Tensor t(v.type, ir::extentsOf(v.shape));
    for (size_t i = 0; i < v.content->size(); ++i) {
        if (!(*v.content)[i].isConst())
            return {};
        t.ref().setInt(int64_t(i), (*v.content)[i].value());
    }
    return t;
}

// How many elements of its inputs go into one of the output, where that is many.
int64_t termsOf(ir::Node const& n, std::vector<TensorRef> const& in)
{
    if (n.op == &ops::convolution::def()) {
        auto const& a = n.attrsAs<ops::convolution::Attrs>();
        Extents const& w = in[1].dims;
        int64_t const of = w.volume() / std::max<int64_t>(w[a.transposed ? 1 : 0], 1);
        return std::max<int64_t>(of, 1);
    }
    if (n.op == &ops::matrix_multiply::def()) {
        Extents const& a = in[0].dims;
        bool const isTurned =
            n.attrsAs<ops::matrix_multiply::Attrs>().a == ops::matrix_multiply::MatrixOperation::kTranspose;
        int const axis = a.rank - (isTurned && a.rank > 1 ? 2 : 1);
        return axis < 0 ? 1 : a[axis];
    }
    bool const hasWindow = n.op == &ops::pooling::def() || n.op == &ops::lrn::def();
    return hasWindow ? std::max<int64_t>(in[0].count(), 1) : 1;
}

// Whether running the node now is worth it.
bool isSmallWork(ir::Node const& n, std::vector<TensorRef> const& in)
{
    auto shapes = interp::inferConcrete(n, in);
    if (!shapes.ok())
        return false; // the build reports it where the shapes are resolved
    int64_t inBytes = 0, outBytes = 0, outCount = 0;
    for (TensorRef const& t : in)
        inBytes += t.data ? t.sizeBytes() : 0;
    for (auto const& s : *shapes) {
        outBytes = ir::addSat(outBytes, ir::mulSat(s.dims.volume(), sizeOf(s.type)));
        outCount = ir::addSat(outCount, s.dims.volume());
    }
    int64_t const growth = n.op == &ops::elementwise::def() ? kSumGrowth : kGrowth;
    return outBytes <= ir::addSat(inBytes, growth) && ir::mulSat(outCount, termsOf(n, in)) <= kMaxSum;
}

// What an output of a node becomes.
struct Folded
{
    DataType type = DataType::kFloat;
    Extents dims;
    BlobPtr data;
};

// Op, attributes and constants by address: nodes of equal keys give equal values while these constants are there.
// Weights that refit replaces are not equal because their bytes are.
std::string keyOf(ir::Node const& n, PassContext const& ctx)
{
    std::string key = n.op->name;
    auto add = [&](auto const& numbers) {
        key += fmt::format("|{}|", numbers.size());
        key.append(reinterpret_cast<char const*>(numbers.data()), numbers.size() * sizeof(numbers[0]));
    };
    for (ir::FieldValue const& f : ir::fieldsOf(*n.attrs)) {
        add(std::vector<int>{f.number, int(f.kind)});
        add(f.integers);
        add(f.reals);
        add(f.text);
    }
    for (ir::Value const* v : n.inputs) {
        add(std::vector<void const*>{v ? v->constant->data->data() : nullptr});
        if (v && ctx.recipes && ctx.recipes->reaches(*v))
            add(std::vector<void const*>{v->constant->data.get()});
        if (v)
            key += nameOf(v->type) + str(v->shape);
    }
    return key;
}

// The bytes of an input that has the same, unless that is for today only.
std::vector<Folded> foldedOf(ir::Node const& n, std::vector<Tensor> values, bool isReached)
{
    std::vector<Folded> out;
    for (Tensor& t : values) {
        auto const owner = std::make_shared<Tensor>(std::move(t));
        Folded f{owner->type(), owner->dims(), nullptr};
        size_t const bytes = size_t(owner->ref().sizeBytes());
        for (ir::Value const* v : n.inputs)
            if (!isReached && !f.data && v && v->isConstant() && v->constant->data->sizeBytes() == bytes &&
                std::memcmp(v->constant->data->data(), owner->data(), bytes) == 0)
                f.data = v->constant->data;
        if (!f.data)
            f.data = std::make_shared<Blob const>(owner->data(), bytes, owner);
        out.push_back(std::move(f));
    }
    return out;
}

// Writes down how the results are computed; integers are what they are from here on.
Result<void> record(ir::Node const& n, std::vector<Folded> const& values, PassContext const& ctx)
{
    recipe::Recipes& recipes = *ctx.recipes;
    if (isQuantize(&n))
        TW_TRY(relyOnPositiveScale(n, ctx));
    ir::Graph alone;
    auto in = mapped<ir::Value*>(n.inputs, [&](ir::Value const* v) {
        return v ? alone.addConstant(v->name, v->type, ir::extentsOf(v->shape), v->constant) : nullptr;
    });
    ir::Node const* const copy = alone.cloneNode(n, std::move(in));
    for (size_t i = 0; i < values.size(); ++i) {
        copy->outputs[i]->shape = ir::Shape(values[i].dims.begin(), values[i].dims.end());
        copy->outputs[i]->content.reset();
        alone.outputs = {copy->outputs[i]};
        if (isReal(values[i].type)) {
            TW_TRY(recipes.record(alone, values[i].data));
            continue;
        }
        for (ir::Value const* v : n.inputs)
            if (v)
                recipes.fix(*v->constant->data);
    }
    return {};
}

void toConstants(ir::Graph& g, ir::Node* n, std::vector<Folded> const& values)
{
    for (size_t i = 0; i < n->outputs.size(); ++i) {
        ir::Value* out = n->outputs[i];
        auto made = std::make_shared<ir::Constant>();
        made->data = values[i].data;
        ir::Value* c = g.addConstant(out->name, values[i].type, values[i].dims, std::move(made));
        c->host = out->host;
        g.replaceAllUses(out, c);
    }
    g.eraseNode(n);
}

} // namespace

Result<bool> foldConstants(ir::Graph& g, PassContext const& ctx)
{
    bool changed = false, sizesFound = false;
    std::map<std::string, std::vector<Folded>> known;
    for (size_t i = 0; i < g.nodes.size(); ++i) {
        ir::Node* n = g.nodes[i].get();
        if (!mayFold(g, *n))
            continue;
        std::vector<Folded> values;
        if (hasConstantInputs(*n, ctx)) {
            std::vector<Folded>& folded = known[keyOf(*n, ctx)];
            auto in = mapped<TensorRef>(n->inputs, [&](ir::Value const* v) { return elementsOf(v); });
            if (folded.empty()) {
                if (!isSmallWork(*n, in))
                    continue;
                auto ran = recipe::evaluateNode(*n, in);
                if (!ran.ok())
                    return std::move(ran).error();
                bool const reached = isReached(*n, ctx);
                folded = foldedOf(*n, std::move(*ran), reached);
                if (reached)
                    TW_TRY(record(*n, folded, ctx));
            }
            values = folded;
        } else if (n->outputs.size() == 1) {
            Tensor content = fromContent(*n->outputs[0]);
            if (!content.data())
                continue;
            std::vector<Tensor> list;
            list.push_back(std::move(content));
            values = foldedOf(*n, std::move(list), false);
        } else {
            continue;
        }
        for (ir::Value const* v : n->outputs)
            sizesFound = sizesFound || !isStatic(v->shape);
        ctx.log.verbose("folded '{}' ({}) into a constant", n->name, n->op->name);
        toConstants(g, n, values);
        --i;
        changed = true;
    }
    if (changed) {
        g.eraseUnusedValues();
        if (sizesFound)
            TW_TRY(g.inferAll());
    }
    return changed;
}

} // namespace tw::passes
