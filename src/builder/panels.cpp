// SPDX-License-Identifier: Apache-2.0
#include "builder/panels.h"

#include "runtime/engine.h"

namespace tw::builder {

namespace {

constexpr size_t kLeastBytes = 4096; // smaller ones are read for other reasons too, and gain nothing

void countBlobs(ir::Graph const& graph, std::map<void const*, int>& uses)
{
    for (auto const& v : graph.values())
        if (v->isConstant())
            ++uses[v->constant->data->data()];
    for (auto const& node : graph.nodes) {
        for (auto const& region : node->regions)
            countBlobs(*region, uses);
        if (node->body)
            countBlobs(*node->body, uses);
    }
}

} // namespace

runtime::Panels choosePanels(ir::Graph const& graph, runtime::LoadedBlock const& block, plan::Block const& chosen,
                             runtime::Instance const& opt, runtime::Instance const& max, int threads)
{
    constexpr size_t kInput = ops::PanelTactic::kPanelInput;
    runtime::Panels panels;
    for (size_t i = 0; i < block.steps.size() && i < chosen.steps.size(); ++i) {
        runtime::LoadedStep const& step = block.steps[i];
        auto const* reader = dynamic_cast<ops::PanelTactic const*>(step.tactic);
        ir::Value const* const v = step.node->inputs.size() > kInput ? step.node->inputs[kInput] : nullptr;
        if (!reader || !v || !v->isConstant() || v->type != DataType::kFloat ||
            v->constant->data->sizeBytes() <= kLeastBytes)
            continue;
        if (auto order = reader->panelOrder(runtime::problemOf(step, opt, max, threads), chosen.steps[i].choice.config);
            order && order->fits(ir::extentsOf(v->shape).volume()))
            panels.emplace(v, std::move(*order));
    }
    for (ir::Value const* v : runtime::usedElsewhere(graph, panels))
        panels.erase(v);
    std::map<void const*, int> blobs; // of which the file has one copy
    countBlobs(graph, blobs);
    std::erase_if(panels, [&](auto const& p) { return blobs.at(p.first->constant->data->data()) != 1; });
    return panels;
}

} // namespace tw::builder
