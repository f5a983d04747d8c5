// SPDX-License-Identifier: Apache-2.0
// Networks of FP16 on machines whose kernels are of FP32: what computes does so in f32, and f16 is left where tensors
// enter and leave the graph.
//   before: x f16 -> conv(x, w f16) -> relu -> y f16
//   after:  x f16 -> identity f32 -> conv(., w f32) -> relu -> identity f16 -> y
// Nothing is rounded between: results are those of FP16 with more digits, and what left its range does not; but who reads
// an output of the graph reads what it holds. Constants
// become f32 here, once for all their readers, and keep their layer, role and name.
// Left in f16: what only moves elements of tensors in f16 (rows of an embedding), caches and what is written into them; plugins, loops and conditionals
// (their regions are graphs of their own); conversions to f16 that are read by conversions alone, whose rounding is
// what the network wants of them; constants of products with integer weights, which kernels read as they are.
// Stands in front of all that looks for patterns, so that these see one type. Never changes the type of a graph's input or output.
#include <algorithm>
#include <map>
#include <set>

#include "ir/infer.h"
#include "ir/op_def.h"
#include "ir/shape_values.h"
#include "ops/attention/op.h"
#include "ops/cache_update/op.h"
#include "ops/dequantize/op.h"
#include "ops/fill/op.h"
#include "ops/identity/op.h"
#include "ops/nbit_product/op.h"
#include "ops/plugin/op.h"
#include "ops/scale/op.h"
#include "ops/slice/op.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/precision/precision.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "recipe/recipes.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

bool isHalf(ir::Value const* v)
{
    return v && needsOf(v->type).has(Permission::kHalf); // BF16 has kernels
}

class Widening
{
public:
    Widening(ir::Graph& g, PassContext const& ctx) : g_(g), ctx_(ctx), shapes_(ir::shapeValues(g))
    {
        for (auto const& v : g.values())
            if (v->host)
                shapes_.insert(v.get());
    }

    Result<bool> run()
    {
        auto const nodes = mapped<ir::Node*>(g_.nodes, [](auto const& n) { return n.get(); });
        for (ir::Node* n : nodes)
            TW_TRY(staysHalf(*n) ? keep(*n) : widen(*n));
        TW_TRY(restoreOutputs());
        if (changed_)
            g_.eraseUnusedValues();
        return changed_;
    }

private:
    // Whether input i is FP32 for a node that computes so.
    bool turns(ir::Node const& n, size_t i) const
    {
        ir::Value const* x = n.inputs[i];
        bool const isRead = n.op == &ops::nbit_product::def() && x && x->isConstant();
        return isHalf(x) && !shapes_.contains(x) && !ir::isShapeInput(n, i) && !isRead;
    }

    // Also what is filled up, as caches are where they are too short.
    static bool moves(ir::Node const& n)
    {
        return movesElements(n) || (n.op == &ops::slice::def() && !n.body && hasInput(n, 4) && isHalf(n.inputs[4]));
    }
    bool staysHalf(ir::Node const& n) const
    {
        bool const isShape = std::ranges::any_of(n.outputs, [&](ir::Value const* v) { return shapes_.contains(v); });
        if (isShape || isRounding(n) || wantsHalf(n))
            return true;
        // Of constants alone a constant is made, which is one of FP32 then.
        bool const isMoved = moves(n) && isHalf(n.inputs[0]) &&
                             std::ranges::none_of(n.inputs, [&](ir::Value const* v) { return wide_.contains(v); }) &&
                             !std::ranges::all_of(n.inputs, [](ir::Value const* v) { return !v || v->isConstant(); });
        return isMoved || !takesFloat(n);
    }
    // What is not computed in FP32 although what it reads is.
    bool wantsHalf(ir::Node const& n) const
    {
        if (!n.regions.empty() || n.op == &ops::plugin::def())
            return true;
        if (n.inputs.empty() || n.outputs.empty() || !isHalf(n.inputs[0]) || !isHalf(n.outputs[0]))
            return false;
        // Rows that are written into a cache, or behind it, are as wide as it is. Blocks are those of all sequences, and
        // attention reads a few: they are not converted at each step.
        bool const isCache = n.op == &ops::cache_update::def() || (moves(n) && g_.isOutput(n.outputs[0]));
        return isCache || (n.op == &ops::attention::def() && n.attrsAs<ops::attention::Attrs>().pages);
    }
    // f32 to f16 for nothing that computes.
    bool isRounding(ir::Node const& n) const
    {
        if (!isCast(&n) || !isHalf(n.outputs[0]) || wide_.contains(n.inputs[0]))
            return false;
        return std::ranges::all_of(readersOf(g_, n.outputs[0]),
                                   [&](ir::Node const* r) { return r->op == &ops::identity::def() || wantsHalf(*r); });
    }
    // The attribute that says the type of the result, where there is one.
    static DataType* typeIn(ir::Node& n)
    {
        if (isDequantize(&n))
            return &n.attrsAs<ops::dequantize::Attrs>().outputType;
        return n.op == &ops::fill::def() ? &n.attrsAs<ops::fill::Attrs>().outputType : nullptr;
    }
    static int32_t* typeNumberIn(ir::Node& n)
    {
        if (n.op == &ops::identity::def())
            return &n.attrsAs<ops::identity::Attrs>().outputType;
        return n.op == &ops::scale::def() ? &n.attrsAs<ops::scale::Attrs>().outputType : nullptr;
    }

    // Whether the op's own rules give FP32 for FP32.
    bool takesFloat(ir::Node const& n) const
    {
        bool const isFilled = n.op == &ops::fill::def() && !hasInput(n, 1); // by numbers that are attributes
        if (n.op == &ops::identity::def() || n.op == &ops::scale::def() || isFilled || isDequantize(&n))
            return true;
        std::vector<ir::ValueInfo> infos;
        for (size_t i = 0; i < n.inputs.size(); ++i) {
            infos.push_back(n.inputs[i] ? ir::infoOf(*n.inputs[i]) : ir::ValueInfo{});
            if (turns(n, i))
                infos.back().type = DataType::kFloat;
        }
        ir::InferContext ctx(n, std::move(infos), false);
        ctx.setSymbols(&g_.symbols);
        if (!n.op->infer(ctx).ok())
            return false;
        for (size_t i = 0; i < n.outputs.size(); ++i)
            if (isHalf(n.outputs[i]) && !isFullFloat(ctx.outputs()[i].type))
                return false;
        return true;
    }

    Result<void> widen(ir::Node& n)
    {
        for (size_t i = 0; i < n.inputs.size(); ++i)
            if (turns(n, i) && n.op != &ops::identity::def())
                TW_SET(n.inputs[i], inFloat(n.inputs[i], n));
        if (std::ranges::none_of(n.outputs, isHalf))
            return {};
        if (DataType* const type = typeIn(n); type && needsOf(*type).has(Permission::kHalf))
            *type = DataType::kFloat;
        if (int32_t* const type = typeNumberIn(n))
            *type = int32_t(DataType::kFloat);
        for (ir::Value* y : n.outputs) {
            if (!isHalf(y))
                continue;
            y->type = DataType::kFloat;
            wide_.insert(y);
            changed_ = true;
        }
        return n.body ? fitBody(n) : Result<void>();
    }

    // What was f16 for this node stays so.
    Result<void> keep(ir::Node& n)
    {
        for (ir::Value*& x : n.inputs)
            if (wide_.contains(x))
                TW_SET(x, inHalf(x, g_.positionOf(&n)));
        return {};
    }

    Result<ir::Value*> inFloat(ir::Value* v, ir::Node const& reader)
    {
        changed_ = true;
        ir::Value*& known = floats_[v];
        if (known)
            return known;
        if (!v->isConstant()) {
            TW_SET(known, addCast(g_, v, DataType::kFloat, g_.positionOf(&reader)));
            return known;
        }
        BlobPtr& data = widened_[{v->constant->data.get(), ir::extentsOf(v->shape).volume()}];
        if (!data) {
            recipe::Computation c(ctx_.recipes && ctx_.recipes->reaches(*v) ? ctx_.recipes : nullptr);
            TW_ASSIGN(ir::Value * x, c.add(ops::identity::def(), ops::identity::Attrs(DataType::kFloat), {c.take(*v)}));
            TW_SET(data, c.finish(x));
        }
        auto constant = std::make_shared<ir::Constant>(*v->constant);
        constant->data = data;
        known = g_.addConstant(v->name, DataType::kFloat, ir::extentsOf(v->shape), std::move(constant));
        return known;
    }
    Result<ir::Value*> inHalf(ir::Value* v, int position)
    {
        ir::Value*& known = halves_[v];
        if (!known)
            TW_SET(known, addCast(g_, v, DataType::kHalf, position));
        return known;
    }

    // Who reads an output reads what it holds: how many of its numbers are infinite, say.
    Result<ir::Value*> inHalfForAll(ir::Value* x)
    {
        TW_ASSIGN(ir::Value * back, roundForAll(g_, x));
        ir::Value* const half = back->producer->inputs[0];
        std::ranges::replace(g_.outputs, back, half);
        return half;
    }

    Result<void> restoreOutputs()
    {
        for (ir::Value*& y : g_.outputs) {
            if (!wide_.contains(y))
                continue;
            ir::Value* const x = y;
            TW_SET(y, readersOf(g_, x).empty() ? inHalf(x, -1) : inHalfForAll(x));
            std::string const name = std::exchange(x->name, x->name + " [f32]");
            y->name = name;
        }
        return {};
    }

    ir::Graph& g_;
    PassContext const& ctx_;
    std::set<ir::Value const*> shapes_, wide_; // wide_: were f16
    std::map<ir::Value const*, ir::Value*> floats_, halves_;
    std::map<std::pair<Blob const*, int64_t>, BlobPtr> widened_;
    bool changed_ = false;
};

} // namespace

Result<bool> widenHalf(ir::Graph& g, PassContext const& ctx)
{
    if (ctx.target.computesHalf())
        return false;
    return Widening(g, ctx).run();
}

} // namespace tw::passes
