// SPDX-License-Identifier: Apache-2.0
#include "runtime/unfold_panels.h"

#include <algorithm>

namespace tw::runtime {

namespace {

using Uses = std::map<ir::Value const*, int>;

void countUses(ir::Graph const& graph, bool isWithin, Uses& uses)
{
    constexpr int kSomewhereElse = 2; // where no kernel of the plan's steps takes it
    for (auto const& node : graph.nodes) {
        bool const isStep = !isWithin && node->regions.empty() && node->outputs.size() > 0 && !node->outputs[0]->host;
        for (ir::Value const* v : node->inputs)
            if (auto it = uses.find(v); it != uses.end())
                it->second += isStep ? 1 : kSomewhereElse;
        for (auto const& region : node->regions)
            countUses(*region, true, uses);
        if (node->body)
            countUses(*node->body, true, uses);
    }
    for (ir::Value const* v : graph.outputs)
        if (auto it = uses.find(v); it != uses.end())
            it->second += kSomewhereElse;
}

} // namespace

void unfoldPanels(ir::Value& value, ops::PanelOrder const& order)
{
    auto constant = std::make_shared<ir::Constant>(*value.constant);
    std::vector<std::byte> plain(constant->data->sizeBytes());
    ops::fromPanels(order, constant->data->as<float>(), reinterpret_cast<float*>(plain.data()));
    constant->data = Blob::own(std::move(plain));
    value.constant = std::move(constant);
}

std::vector<ir::Value*> usedElsewhere(ir::Graph const& graph, Panels const& panels)
{
    Uses uses;
    for (auto const& [value, order] : panels)
        uses[value] = 0;
    countUses(graph, false, uses);
    std::vector<ir::Value*> out;
    for (auto const& v : graph.values())
        if (auto it = uses.find(v.get()); it != uses.end() && it->second != 1)
            out.push_back(v.get());
    return out;
}

void unfoldOtherPanels(ir::Graph& graph, Panels& panels, bool all)
{
    std::vector<ir::Value*> list = usedElsewhere(graph, panels);
    if (all) {
        list.clear();
        for (auto const& v : graph.values())
            if (panels.contains(v.get()))
                list.push_back(v.get());
    }
    for (ir::Value* v : list) {
        unfoldPanels(*v, panels.at(v));
        panels.erase(v);
    }
}

} // namespace tw::runtime
