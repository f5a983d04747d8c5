// SPDX-License-Identifier: Apache-2.0
#include "builder/reformats.h"

#include <algorithm>
#include <map>

#include "ir/op_def.h"
#include "ops/identity/op.h"
#include "ops/reformat/op.h"
#include "runtime/retarget.h"
#include "tactic/registry.h"
#include "tune/candidates.h"
#include "tune/pbqp.h"

namespace tw::builder {

namespace {

// A node alone that makes the second carrier of the first, in linear formats.
Result<ops::Problem> problemOf(Reformat const& r, ir::Graph const& g, tune::Options const& options, ir::OpDef const& op,
                               std::unique_ptr<ir::AttrsBase> attrs, ir::Graph& alone)
{
    ir::Value* x = alone.addInput("x", r.from.type, r.value.shape);
    alone.symbols = g.symbols;
    ops::Problem p;
    TW_ASSIGN(p.node, alone.addNode(op, std::move(attrs), {x}, "reformat of '" + r.value.name + "'"));
    ops::TensorSpec spec;
    spec.dims = r.dims;
    spec.maxDims = r.maxDims;
    spec.present = true;
    spec.type = r.from.type;
    p.inputs = {spec};
    spec.type = r.to.type;
    p.outputs = {spec};
    p.threads = options.workers->count();
    p.target = options.target;
    return p;
}

// Unknown among estimates: a few GB/s there and back.
double guess(ops::Problem const& p)
{
    constexpr double kBytesPerMicrosecond = 4000;
    ops::TensorSpec const &x = p.inputs[0], &y = p.outputs[0];
    return double(x.dims.volume() * (sizeOf(x.type) + sizeOf(y.type))) / kBytesPerMicrosecond;
}

// Reformats whose times are a matter of their sizes; empty: it is like no other.
std::string kindOf(Reformat const& r)
{
    constexpr int64_t kWhole = 32; // channels: a multiple of these fills the vectors and rows of all formats
    int const axis = r.dims.rank < 2 ? 0 : 1;
    if (r.dims.rank == 0 || r.dims != r.maxDims || r.dims[axis] % kWhole != 0)
        return {};
    return fmt::format("{} {} {} {}", r.dims.rank, nameOf(r.from.type), nameOf(r.from.format), nameOf(r.to.format));
}

Result<double> castTime(Reformat const& r, ir::Graph const& g, tune::Options const& options, TimesOf const& timesOf,
                        ReformatTimes& known)
{
    ir::Graph alone;
    TW_ASSIGN(ops::Problem p,
              problemOf(r, g, options, ops::identity::def(), ops::identity::Attrs(r.to.type).clone(), alone));
    std::vector<ops::Formats> list;
    for (ops::Tactic const* t : tune::candidates(*p.node, options))
        for (ops::Formats const& f : t->formats(p)) {
            ops::Problem in = p;
            ops::setFormats(in, f);
            if (!contains(list, f) && t->supports(in).ok)
                list.push_back(f);
        }
    std::vector<Result<double>> const times = timesOf(p, list);
    double best = tune::pbqp::kImpossible;
    for (size_t k = 0; k < list.size(); ++k) {
        if (!times[k].ok())
            continue;
        double us = *times[k] > 0 ? *times[k] : guess(p);
        Carrier const read{r.from.type, list[k].inputs[0]}, made{r.to.type, list[k].outputs[0]};
        if (us >= best)
            continue;
        if (!(r.from == read)) {
            TW_ASSIGN(double const before,
                      timeOf({r.value, r.dims, r.maxDims, r.from, read}, g, options, timesOf, known));
            us += before;
        }
        if (!(r.to == made)) {
            TW_ASSIGN(double const after, timeOf({r.value, r.dims, r.maxDims, made, r.to}, g, options, timesOf, known));
            us += after;
        }
        best = std::min(best, us);
    }
    return best;
}

} // namespace

Result<ops::Problem> poseReformat(Reformat const& r, ir::Graph const& g, tune::Options const& options, ir::Graph& alone)
{
    ir::OpDef const& op = ops::reformat::def();
    TW_ASSIGN(ops::Problem p, problemOf(r, g, options, op, op.makeAttrs(), alone));
    p.inputs[0].format = r.from.format;
    p.outputs[0].format = r.to.format;
    return p;
}

std::optional<double> ReformatTimes::between(std::string const& kind, int64_t bytes) const
{
    constexpr int64_t kFarthest = 4; // how much larger the upper neighbour may be than the lower one
    auto const at = times_.find(kind);
    if (at == times_.end())
        return {};
    auto const upper = at->second.lower_bound(bytes);
    if (upper == at->second.end() || (upper == at->second.begin() && upper->first != bytes))
        return {};
    if (upper->first == bytes)
        return upper->second;
    auto const lower = std::prev(upper);
    if (upper->first > kFarthest * lower->first)
        return {};
    double const share = double(bytes - lower->first) / double(upper->first - lower->first);
    return lower->second + share * (upper->second - lower->second);
}

Result<double> timeOf(Reformat const& r, ir::Graph const& g, tune::Options const& options, TimesOf const& timesOf,
                      ReformatTimes& known)
{
    if (r.from.type != r.to.type)
        return castTime(r, g, options, timesOf, known);
    ir::Graph alone;
    TW_ASSIGN(ops::Problem p, poseReformat(r, g, options, alone));
    auto const pairs = ops::reformat::formatPairs(p);
    if (!contains(pairs, ops::formatsOf(p)))
        return tune::pbqp::kImpossible;
    TensorRef const in{r.from.type, r.dims, nullptr, r.from.format}, out{r.to.type, r.dims, nullptr, r.to.format};
    if (!ops::reformat::def().aliases(*p.node, std::span(&in, 1), std::span(&out, 1)).empty())
        return 0.0;
    std::string const kind = options.target.cuda ? kindOf(r) : std::string();
    if (auto const us = kind.empty() ? std::nullopt : known.between(kind, in.sizeBytes()))
        return *us;
    std::vector<Result<double>> const times = timesOf(p, {ops::formatsOf(p)});
    TW_ASSIGN(double const us, times[0]);
    if (!kind.empty() && us > 0)
        known.add(kind, in.sizeBytes(), us);
    return us > 0 ? us : guess(p);
}

Result<double> leastCastTime(ir::Graph const& g, tune::Options const& options, TimesOf const& timesOf)
{
    ir::Graph alone;
    ir::Value const& one = *alone.addInput("one", DataType::kFloat, ir::shapeOf({1}));
    ReformatTimes known;
    Carrier const single{DataType::kFloat, Format::kLinear}, half{DataType::kHalf, Format::kLinear};
    TW_ASSIGN(double const down, castTime({one, {1}, {1}, single, half}, g, options, timesOf, known));
    TW_ASSIGN(double const up, castTime({one, {1}, {1}, half, single}, g, options, timesOf, known));
    return std::min(down, up);
}

int insertReformats(ir::Graph& g, std::span<ops::Formats const> chosen, std::span<Format const> inputs,
                    std::span<Format const> outputs)
{
    int inserted = 0;
    auto insert = [&](ir::Value& v, Format to, int position, std::string const& name) {
        ++inserted;
        return runtime::addReformat(g, v, to, position, "Reformatting CopyNode for " + name);
    };
    // Formats that values exist in; the first is the one they are made in.
    std::map<ir::Value const*, std::vector<std::pair<Format, ir::Value*>>> existing;
    std::map<ir::Value const*, Format> outputFormat;
    for (size_t i = 0; i < inputs.size(); ++i) {
        g.inputs[i]->format = inputs[i];
        existing[g.inputs[i]] = {{inputs[i], g.inputs[i]}};
    }
    for (size_t i = 0; i < outputs.size(); ++i)
        outputFormat[g.outputs[i]] = outputs[i];
    auto order = mapped<ir::Node*>(g.nodes, [&](auto const& n) { return n.get(); });
    for (size_t n = 0; n < order.size(); ++n) {
        ir::Node& node = *order[n];
        ops::Formats const& f = chosen[n];
        for (size_t i = 0; i < node.inputs.size(); ++i) {
            ir::Value* v = node.inputs[i];
            if (!v || v->isConstant())
                continue;
            auto& list = existing[v];
            auto at = std::ranges::find_if(list, [&](auto const& e) { return e.first == f.inputs[i]; });
            if (at == list.end()) {
                ir::Value* copy = insert(*list[0].second, f.inputs[i], g.positionOf(&node),
                                         fmt::format("Input Tensor {} to {}", i, node.name));
                at = list.insert(list.end(), {f.inputs[i], copy});
            }
            node.inputs[i] = at->second;
        }
        for (size_t i = 0; i < node.outputs.size(); ++i) {
            ir::Value* v = node.outputs[i];
            auto const out = outputFormat.find(v);
            if (out == outputFormat.end() || f.outputs[i] == out->second) {
                v->format = f.outputs[i];
                existing[v] = {{v->format, v}};
                continue;
            }
            // The node writes another value, which is copied into the output.
            ir::Value* inner = g.newValue(v->name + " (" + nameOf(f.outputs[i]) + ")", v->type, v->shape);
            inner->format = f.outputs[i];
            inner->producer = &node;
            inner->producerIndex = int(i);
            node.outputs[i] = inner;
            ir::Value* copy = insert(*inner, out->second, g.positionOf(&node) + 1,
                                     fmt::format("Output Tensor {} to {}", i, node.name));
            v->producer = copy->producer;
            v->producerIndex = 0;
            copy->producer->outputs[0] = v;
            copy->producer = nullptr;
            v->format = out->second;
            existing[v] = {{f.outputs[i], inner}, {out->second, v}};
        }
    }
    for (ir::Value*& v : g.outputs) // constants
        if (!v->producer && outputFormat.at(v) != v->format) {
            ir::Value* copy = insert(*v, outputFormat.at(v), -1, "Output Tensor " + v->name);
            std::swap(copy->name, v->name);
            v = copy;
        }
    if (inserted > 0) // else blocks of this graph go on, with the values that they know
        g.eraseUnusedValues();
    return inserted;
}

} // namespace tw::builder
