// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "api/builder/parts.h"
#include "ops/cache_update/op.h"
#include "ops/concatenation/op.h"
#include "ops/convolution/op.h"
#include "ops/dequantize/op.h"
#include "ops/loop/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/quantize/op.h"
#include "ops/shuffle/op.h"
#include "tactic/registry.h"

namespace tw::api {

namespace {

using Readers = std::map<ir::Value const*, std::vector<std::pair<ir::Node const*, size_t>>>;

bool isQuantization(ir::Node const& n)
{
    return n.op == &ops::quantize::def() || n.op == &ops::dequantize::def();
}

int32_t axisOf(ir::Node const& n)
{
    return n.op == &ops::quantize::def() ? n.attrsAs<ops::quantize::Attrs>().axis
                                         : n.attrsAs<ops::dequantize::Attrs>().axis;
}

ir::Node const* findQuantization(ir::Graph const& g)
{
    for (auto const& n : g.nodes) {
        if (isQuantization(*n))
            return n.get();
        for (auto const& r : n->regions)
            if (ir::Node const* inside = findQuantization(*r))
                return inside;
    }
    return nullptr;
}

Error errorAt(ir::Node const& n, std::string const& what)
{
    return invalidArgument("layer '{}' ({}): {}", n.name, n.op->name, what);
}

class Checker
{
public:
    explicit Checker(ir::Graph const& g, bool isRegion) : g_(g), isRegion_(isRegion)
    {
        for (auto const& n : g.nodes)
            for (size_t i = 0; i < n->inputs.size(); ++i)
                if (n->inputs[i])
                    readers_[n->inputs[i]].emplace_back(n.get(), i);
    }

    Result<void> run()
    {
        for (auto const& n : g_.nodes) {
            for (auto const& r : n->regions)
                TW_TRY(Checker(*r, true).run());
            if (isQuantization(*n) && axisOf(*n) >= 0)
                TW_TRY(checkChannels(*n));
            if (n->op == &ops::quantize::def()) {
                TW_TRY(checkFinite(*n, *n->inputs[0]));
                TW_TRY(checkReaders(*n, *n->outputs[0]));
            }
        }
        return {};
    }

private:
    // Computed of constants alone.
    bool isBuildTime(ir::Value const* v) const
    {
        if (v->isConstant())
            return true;
        if (!v->producer)
            return isRegion_ && contains(g_.inputs, v);
        return std::ranges::all_of(v->producer->inputs, [&](ir::Value const* in) { return !in || isBuildTime(in); });
    }

    // A cache of a decoder, [B, heads, rows, size], or new rows for one: 8.5 has none, and scales for each head are ours.
    bool isCache(ir::Value const* v) const
    {
        if (!v->producer)
            return contains(g_.inputs, v);
        bool const isJoin =
            v->producer->op == &ops::concatenation::def() || v->producer->op == &ops::cache_update::def();
        return isJoin && isCache(v->producer->inputs[0]);
    }
    bool isOfHeads(ir::Node const& n) const
    {
        if (axisOf(n) != 1 || n.inputs[0]->rank() != 4)
            return false;
        if (n.op == &ops::dequantize::def())
            return isCache(n.inputs[0]);
        auto const readers = readers_.find(n.outputs[0]);
        return readers != readers_.end() && std::ranges::all_of(readers->second, [&](auto const& r) {
                   return r.second == 1 && isCache(r.first->outputs[0]);
               });
    }

    Result<void> checkChannels(ir::Node const& n) const
    {
        if (isOfHeads(n))
            return {};
        if (!isBuildTime(n.inputs[0]))
            return errorAt(n, "input '" + n.inputs[0]->name +
                                  "' is computed from the network's inputs, so it takes one scale for all elements "
                                  "(axis -1); one for each channel is for weights");
        if (n.op == &ops::dequantize::def())
            return checkWeightReaders(n, *n.outputs[0], axisOf(n));
        return {};
    }

    // Of weights; a NaN would become 0 without a word.
    static Result<void> checkFinite(ir::Node const& q, ir::Value const& v)
    {
        if (!v.isConstant())
            return {};
        TensorRef const w{v.type, ir::extentsOf(v.shape), const_cast<void*>(v.constant->data->data())};
        int64_t const i = firstNotFinite(w);
        if (i < 0)
            return {};
        return errorAt(q,
                       fmt::format("element {} of '{}'{} is {}, which INT8 cannot hold", i, v.name,
                                   v.constant->layer.empty() ? "" : " of layer '" + v.constant->layer + "'", w.get(i)));
    }

    // `axis`: the dimension of v that the scales of `dq` belong to.
    Result<void> checkWeightReaders(ir::Node const& dq, ir::Value const& v, int axis) const
    {
        static constexpr char const* kAllowed =
            "scales for each channel are for the output channels of the weights of convolutions, deconvolutions, fully "
            "connected layers and products of matrices";
        auto const readers = readers_.find(&v);
        if (readers == readers_.end())
            return {};
        for (auto const& [n, i] : readers->second) {
            if (n->op == &ops::shuffle::def() && i == 0) {
                TW_TRY(checkWeightReaders(dq, *n->outputs[0], axis < 0 ? -1 : ops::shuffle::dimensionBehind(*n, axis)));
                continue;
            }
            if (n->op == &ops::identity::def()) {
                TW_TRY(checkWeightReaders(dq, *n->outputs[0], axis));
                continue;
            }
            if (n->op->readsDimsOnly)
                continue;
            if (size_t const first = firstCapture(*n); !n->regions.empty() && i >= first) {
                for (auto const& r : n->regions)
                    TW_TRY(Checker(*r, true).checkWeightReaders(dq, *r->inputs[i - first + firstOfRegion(*n)], axis));
                continue;
            }
            int const want = outputChannels(*n, i);
            if (want < 0)
                return errorAt(dq, std::string(kAllowed) + "; layer '" + n->name + "' (" + n->op->name +
                                       ") reads them otherwise");
            if (axis != want)
                return errorAt(
                    dq, fmt::format("{}; those of layer '{}' ({}) are dimension {} of '{}' {}, the scales belong to {}",
                                    kAllowed, n->name, n->op->name, want, v.name, str(v.shape),
                                    axis < 0 ? "no single dimension of it" : fmt::format("dimension {}", axis)));
        }
        return {};
    }

    // Captures are the last inputs of a loop or conditional, and of its regions.
    static size_t firstCapture(ir::Node const& n)
    {
        bool const isLoop = n.op == &ops::loop::def();
        return isLoop ? ops::loop::Layout(n.attrsAs<ops::loop::Attrs>()).firstCapture() : 1;
    }
    static size_t firstOfRegion(ir::Node const& n)
    {
        bool const isLoop = n.op == &ops::loop::def();
        return isLoop ? ops::loop::Layout(n.attrsAs<ops::loop::Attrs>()).firstRegionCapture() : 0;
    }

    // Of input i of a node, as weights; -1: it is none.
    static int outputChannels(ir::Node const& n, size_t i)
    {
        if (i != 1)
            return -1;
        if (n.op == &ops::convolution::def())
            return n.attrsAs<ops::convolution::Attrs>().transposed ? 1 : 0;
        if (n.op != &ops::matrix_multiply::def())
            return -1;
        auto const& a = n.attrsAs<ops::matrix_multiply::Attrs>();
        ir::Shape const& b = n.inputs[1]->shape;
        if (a.connected)
            return 0;
        bool const isMatrix = a.b != ops::matrix_multiply::MatrixOperation::kVector && b.size() >= 2 &&
                              std::all_of(b.begin(), b.end() - 2, [](ir::Dim const& d) { return d.is(1); });
        if (!isMatrix)
            return -1;
        return int(b.size()) - (a.b == ops::matrix_multiply::MatrixOperation::kTranspose ? 2 : 1);
    }

    // Layers that take INT8 from a quantize layer as it is.
    static bool takesInt8(ir::Node const& n)
    {
        ir::OpDef const* const kOps[] = {
            &ops::dequantize::def(),    &ops::identity::def(), &ops::shuffle::def(), &ops::slice::def(),
            &ops::concatenation::def(), &ops::gather::def(),   &ops::padding::def(), &ops::resize::def(),
            &ops::select::def(),        &ops::pooling::def(),  &ops::plugin::def(),  &ops::conditional::def(),
            &ops::loop::def(),
        };
        return n.op->readsDimsOnly || contains(kOps, n.op);
    }
    Result<void> checkReaders(ir::Node const& q, ir::Value const& v)
    {
        auto const readers = readers_.find(&v);
        if (readers == readers_.end() || !checked_.insert(&v).second)
            return {};
        for (auto const& [n, i] : readers->second) {
            if (!takesInt8(*n))
                return errorAt(*n, "it reads the INT8 tensor '" + v.name + "' of quantize layer '" + q.name +
                                       "', which has no meaning for a layer of this kind; put a dequantize layer "
                                       "before it (and a quantize layer behind it, so that it may run in INT8)");
            for (ir::Value const* y : n->outputs)
                if (isQuantized(y->type))
                    TW_TRY(checkReaders(q, *y));
        }
        return {};
    }

    ir::Graph const& g_;
    bool const isRegion_;
    Readers readers_;
    std::set<ir::Value const*> checked_;
};

} // namespace

bool isExplicit(NetworkObject const& n)
{
    using nvinfer1::LayerType;
    return std::ranges::any_of(
        n.layers, [](auto const& l) { return l->type == LayerType::kQUANTIZE || l->type == LayerType::kDEQUANTIZE; });
}

Result<void> checkExplicitQuantization(NetworkObject const& n, ir::Graph const& g, BuilderConfigObject const& c)
{
    ir::Node const* const found = isExplicit(n) ? findQuantization(g) : nullptr;
    if (!found)
        return {};
    if (!c.has(nvinfer1::BuilderFlag::kINT8))
        return errorAt(*found, "a network with quantize and dequantize layers needs BuilderFlag::kINT8");
    using nvinfer1::LayerType;
    for (auto const& l : n.layers) {
        if (l->type == LayerType::kQUANTIZE || l->type == LayerType::kDEQUANTIZE || l->type == LayerType::kCONSTANT)
            continue;
        auto asks = [](auto const& type) { return type == nvinfer1::DataType::kINT8; };
        if (asks(l->precision) || std::ranges::any_of(l->outputTypes, asks))
            return l->error("{} kINT8 is not possible in a network with quantize and dequantize layers, such as '{}': "
                            "put these around the layer instead",
                            asks(l->precision) ? "precision" : "output type", found->name);
    }
    return Checker(g, false).run();
}

} // namespace tw::api
