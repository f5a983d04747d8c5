// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "builder/formats.h"
#include "ir/op_def.h"
#include "runtime/engine.h"
#include "tune/candidates.h"
#include "tune/pbqp.h"

namespace tw::builder {

namespace {

using tune::pbqp::kImpossible;

// Whether values of this kind may be in the formats; the verifier demands it.
bool isAllowed(ir::Node const& node, ops::Formats const& f)
{
    auto fits = [](ir::Value const* v, Format format) {
        return format == Format::kLinear || (v && v->rank() >= 3 && !v->host && !v->isConstant());
    };
    for (size_t i = 0; i < node.inputs.size(); ++i)
        if (!fits(node.inputs[i], f.inputs[i]))
            return false;
    for (size_t i = 0; i < node.outputs.size(); ++i)
        if (!fits(node.outputs[i], f.outputs[i]))
            return false;
    return true;
}

void addLabels(Labels& l, size_t variant, tune::Options const& options)
{
    ops::Problem const& problem = l.variants[variant];
    auto isKnown = [&](ops::Formats const& f) {
        return std::ranges::any_of(l.list,
                                   [&](Label const& other) { return other.variant == variant && other.formats == f; });
    };
    for (ops::Tactic const* t : tune::candidates(*problem.node, options))
        for (ops::Formats const& f : t->formats(problem)) {
            if (isKnown(f) || !isAllowed(*l.node, f))
                continue;
            ops::Problem in = problem;
            ops::setFormats(in, f);
            if (t->supports(in).ok)
                l.list.push_back({variant, f});
        }
}

// A region without work in these formats: its output is a part of its input, or the other way round.
bool isAliased(ir::Node const& node, ops::Problem const& problem, ops::Formats const& formats,
               runtime::LoadedBlock const& block, runtime::Instance const& opt)
{
    if (!node.op->aliases || node.outputs.size() != 1)
        return false;
    auto refOf = [&](ir::Value const* v, ops::TensorSpec const& spec, Format format) {
        TensorRef r = v ? opt.shapeOf(block.indexOf(v)) : TensorRef{};
        r.type = spec.type;
        r.format = format;
        if (v && v->isConstant())
            r.data = const_cast<void*>(spec.constant->data());
        else if (v && opt.values[size_t(block.indexOf(v))].hasContents)
            r.data = opt.values[size_t(block.indexOf(v))].contents.data();
        return r;
    };
    std::vector<TensorRef> in, out{refOf(node.outputs[0], problem.outputs[0], formats.outputs[0])};
    for (size_t i = 0; i < node.inputs.size(); ++i)
        in.push_back(refOf(node.inputs[i], problem.inputs[i], formats.inputs[i]));
    return !node.op->aliases(*problem.node, in, out).empty();
}

} // namespace

Labels collectLabels(runtime::LoadedBlock const& block, size_t i, runtime::Instance const& opt,
                     runtime::Instance const& max, tune::Options const& options, std::vector<ops::Problem> const* posed)
{
    runtime::LoadedStep const& step = block.steps[i];
    Labels l;
    l.node = step.node;
    auto known = [&](ir::Value const* v) { return !v || opt.values[size_t(block.indexOf(v))].known; };
    bool const canChoose = !step.host && step.regions.empty() && !opt.skipped[i] &&
                           std::ranges::all_of(l.node->inputs, known) && std::ranges::all_of(l.node->outputs, known);
    if (posed)
        l.variants = *posed;
    else
        l.variants.push_back(runtime::problemOf(step, opt, max, options.workers->count(), options.target.cuda));
    for (size_t v = 0; v < l.variants.size(); ++v) {
        l.list.push_back({v, ops::linearFormats(l.variants[v])});
        if (canChoose)
            addLabels(l, v, options);
    }
    l.costs.assign(l.list.size(), 0);
    return l;
}

void timeLabels(Labels& l, size_t variant, runtime::LoadedBlock const& block, runtime::Instance const& opt,
                TimesOf const& timesOf)
{
    ops::Problem const& problem = l.variants[variant];
    std::vector<ops::Formats> timed;
    std::vector<size_t> places;
    for (size_t k = 0; k < l.list.size(); ++k)
        if (l.list[k].variant == variant && !isAliased(*l.node, problem, l.list[k].formats, block, opt)) {
            timed.push_back(l.list[k].formats);
            places.push_back(k);
        }
    if (timed.empty())
        return;
    std::vector<Result<double>> const times = timesOf(problem, timed);
    for (size_t t = 0; t < timed.size(); ++t)
        l.costs[places[t]] = times[t].ok() ? *times[t] : kImpossible;
}

void guessUnknown(Labels& l)
{
    constexpr double kSlower = 10;
    double most = 0;
    for (double c : l.costs)
        most = c == kImpossible ? most : std::max(most, c);
    for (double& c : l.costs)
        c = c > 0 ? c : kSlower * most;
}

void keepFirstVariant(Labels& l)
{
    size_t const kept = size_t(std::ranges::count_if(l.list, [](Label const& k) { return k.variant == 0; }));
    l.list.resize(kept); // labels stand variant by variant
    l.costs.resize(kept);
    l.variants.resize(1);
}

} // namespace tw::builder
