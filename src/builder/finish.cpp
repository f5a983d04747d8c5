// SPDX-License-Identifier: Apache-2.0
#include "builder/finish.h"

#include <cmath>

#include "ir/shape_values.h"
#include "ops/reformat/op.h"
#include "passes/quantization/quantization.h"
#include "runtime/engine.h"
#include "tactic/registry.h"
#include "tune/limit.h"

namespace tw::builder {

namespace {

void addTo(plan::Block& block, runtime::LoadedBlock const& loaded, runtime::Instance const& opt,
           runtime::Instance const& max, Options const& options, tune::Rates& rates, bool isBusy)
{
    for (size_t i = 0; i < block.steps.size(); ++i) {
        plan::Step& step = block.steps[i];
        runtime::LoadedStep const& from = loaded.steps[i];
        for (size_t r = 0; r < step.regions.size() && r < opt.regions[i].size() && r < max.regions[i].size(); ++r)
            addTo(step.regions[r], *from.regions[r], *opt.regions[i][r], *max.regions[i][r], options, rates, isBusy);
        bool const isSkipped = opt.skipped[i] || max.skipped[i]; // views: of what has been placed
        if (isSkipped)
            step.choice.microseconds = 0;
        if (!step.regions.empty() || isSkipped || ir::isOnHost(*from.node))
            continue;
        ops::Problem const problem =
            runtime::problemOf(from, opt, max, options.tune.workers->count(), options.cuda.get());
        if (options.cuda && !problem.target.cuda)
            continue; // on the host, where no clock was asked
        step.choice.limitMicroseconds = tune::limitOf(problem, rates);
        step.choice.lack = tune::lackOf(problem, step.choice, options.tune, isBusy);
    }
}

} // namespace

void addLimits(plan::Block& block, runtime::LoadedBlock const& loaded, runtime::Instance const& opt,
               runtime::Instance const& max, Options const& options, bool isBusy)
{
    if (options.tune.heuristicOnly)
        return;
    tune::Rates rates(options.tune);
    addTo(block, loaded, opt, max, options, rates, isBusy);
}

namespace {

// NaN: not one number that is known.
double scaleOf(ir::Value const& scale)
{
    if (!scale.isConstant() || ir::extentsOf(scale.shape).volume() != 1)
        return std::nan("");
    return TensorRef{scale.type, {1}, const_cast<void*>(scale.constant->data->data())}.get(0);
}

bool moves(ir::Node const& n)
{
    return passes::movesElements(n) || n.op == &ops::reformat::def();
}

} // namespace

passes::Ranges stepsOf(ir::Graph const& imported, passes::Ranges const& ranges)
{
    passes::Ranges steps;
    for (auto const& [name, step] : ranges)
        steps[name + ".int8"] = step;
    for (auto const& n : imported.nodes) {
        if (!passes::isQuantize(n.get()))
            continue;
        double const step = passes::isPerTensor(*n) ? scaleOf(*n->inputs[1]) : std::nan("");
        auto const [at, isNew] = steps.emplace(n->outputs[0]->name, step);
        if (!isNew && at->second != step)
            at->second = std::nan("");
    }
    return steps;
}

std::map<ir::Value const*, double> scalesOf(ir::Graph const& graph, passes::Ranges const& steps)
{
    std::map<ir::Value const*, double> scales;
    auto label = [&](ir::Value const* v, double step) {
        if (isQuantized(v->type) && !v->isConstant() && !std::isnan(step))
            scales.try_emplace(v, step);
    };
    auto stepOf = [&](ir::Value const* v) {
        auto const at = scales.find(v);
        return at == scales.end() ? std::nan("") : at->second;
    };
    for (auto const& n : graph.nodes) {
        if (passes::isDequantize(n.get()))
            label(n->inputs[0], scaleOf(*n->inputs[1]));
        if (passes::isQuantize(n.get()))
            label(n->outputs[0], scaleOf(*n->inputs[1]));
        for (ir::Value const* v : n->outputs)
            if (auto const at = steps.find(v->name); at != steps.end())
                label(v, at->second);
        if (moves(*n))
            label(n->outputs[0], stepOf(n->inputs[0]));
    }
    for (size_t i = graph.nodes.size(); i-- > 0;)
        if (ir::Node const& n = *graph.nodes[i]; moves(n))
            for (size_t k = 0; k < (n.op == &ops::reformat::def() ? 1 : passes::movedInputs(n)); ++k)
                label(n.inputs[k], stepOf(n.outputs[0]));
    return scales;
}

namespace {

constexpr size_t kLeastBytes = 4096; // smaller ones are read for other reasons too, and gain nothing

// The order that a step reads its weights in; none: that of their shape.
std::optional<ops::PanelOrder> orderOf(runtime::LoadedStep const& step, plan::Choice const& choice,
                                       runtime::Instance const& opt, runtime::Instance const& max, int threads)
{
    auto const* reader = dynamic_cast<ops::PanelTactic const*>(step.tactic);
    ir::Value const& v = *step.node->inputs[ops::PanelTactic::kPanelInput];
    if (!reader || !isFullFloat(v.type) || v.constant->data->sizeBytes() <= kLeastBytes)
        return std::nullopt;
    auto order = reader->panelOrder(runtime::problemOf(step, opt, max, threads), choice.config);
    return order && order->fits(ir::extentsOf(v.shape).volume()) ? order : std::nullopt;
}

// The file has one copy of the bytes that constants share: what all that read them want of it.
class Wishes
{
public:
    void add(ir::Value const& v, std::optional<ops::PanelOrder> const& order)
    {
        auto const [it, isFirst] = orders_.try_emplace(v.constant->data->data(), order);
        if (!isFirst && it->second != order)
            it->second.reset();
    }
    void addPlain(ir::Value const* v)
    {
        if (v && v->isConstant())
            add(*v, std::nullopt);
    }
    // Readers within regions and bodies.
    void addInner(ir::Graph const& graph)
    {
        for (auto const& node : graph.nodes) {
            for (auto const& region : node->regions)
                addAll(*region);
            if (node->body)
                addAll(*node->body);
        }
    }
    std::optional<ops::PanelOrder> orderOf(ir::Value const& v) const
    {
        auto const it = orders_.find(v.constant->data->data());
        return it == orders_.end() ? std::nullopt : it->second;
    }

private:
    void addAll(ir::Graph const& graph)
    {
        for (auto const& v : graph.values())
            addPlain(v.get());
        addInner(graph);
    }
    std::map<void const*, std::optional<ops::PanelOrder>> orders_; // by address
};

} // namespace

runtime::Panels choosePanels(ir::Graph const& graph, runtime::LoadedBlock const& block, plan::Block const& chosen,
                             runtime::Instance const& opt, runtime::Instance const& max, int threads)
{
    constexpr size_t kInput = ops::PanelTactic::kPanelInput;
    Wishes wishes;
    for (size_t i = 0; i < block.steps.size() && i < chosen.steps.size(); ++i) {
        runtime::LoadedStep const& step = block.steps[i];
        for (size_t k = 0; k < step.node->inputs.size(); ++k) {
            ir::Value const* const v = step.node->inputs[k];
            if (k == kInput && v && v->isConstant())
                wishes.add(*v, orderOf(step, chosen.steps[i].choice, opt, max, threads));
            else
                wishes.addPlain(v);
        }
    }
    for (ir::Value const* v : graph.outputs)
        wishes.addPlain(v);
    wishes.addInner(graph);
    runtime::Panels panels;
    for (auto const& v : graph.values())
        if (v->isConstant())
            if (auto order = wishes.orderOf(*v))
                panels.emplace(v.get(), std::move(*order));
    for (ir::Value const* v : runtime::usedElsewhere(graph, panels)) // with all that share its bytes
        wishes.addPlain(v);
    std::erase_if(panels, [&](auto const& p) { return !wishes.orderOf(*p.first); });
    return panels;
}

} // namespace tw::builder
