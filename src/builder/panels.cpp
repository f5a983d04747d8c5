// SPDX-License-Identifier: Apache-2.0
#include "builder/panels.h"

#include "runtime/engine.h"

namespace tw::builder {

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
