// SPDX-License-Identifier: Apache-2.0

#include "base/tensor.h"
#include "device/large_pages.h"
#include "runtime/constants.h"

namespace tw::runtime {

namespace {

struct Count
{
    int steps = 0, others = 0; // others: where no kernel of the plan's steps takes it
};
using Uses = std::map<ir::Value const*, Count>;

void countUses(ir::Graph const& graph, bool isWithin, Uses& uses)
{
    for (auto const& node : graph.nodes) {
        bool const isStep = !isWithin && node->regions.empty() && node->outputs.size() > 0 && !node->outputs[0]->host;
        for (ir::Value const* v : node->inputs)
            if (auto it = uses.find(v); it != uses.end())
                ++(isStep ? it->second.steps : it->second.others);
        for (auto const& region : node->regions)
            countUses(*region, true, uses);
        if (node->body)
            countUses(*node->body, true, uses);
    }
    for (ir::Value const* v : graph.outputs)
        if (auto it = uses.find(v); it != uses.end())
            ++it->second.others;
}

} // namespace

Result<BlobPtr> unfolded(Blob const& inPanels, ops::PanelOrder const& order, ops::PackedConstants& packed)
{
    return packed.get<Blob>(inPanels, ops::recipeOf(order), [&]() -> Result<Blob> {
        auto const plain =
            std::make_shared<device::PackedFloats>(int64_t((inPanels.sizeBytes() + sizeof(float) - 1) / sizeof(float)));
        if (!plain->data())
            return failedAllocation("no memory for weights of {} bytes", inPanels.sizeBytes());
        ops::fromPanels(order, inPanels.as<float>(), plain->data());
        return Blob(plain->data(), inPanels.sizeBytes(), plain);
    });
}

void setData(ir::Value& value, BlobPtr data)
{
    auto constant = std::make_shared<ir::Constant>(*value.constant);
    constant->data = std::move(data);
    value.constant = std::move(constant);
}

std::vector<ir::Value*> usedElsewhere(ir::Graph const& graph, Panels const& panels)
{
    Uses uses;
    for (auto const& [value, order] : panels)
        uses[value] = {};
    countUses(graph, false, uses);
    std::vector<ir::Value*> out;
    for (auto const& v : graph.values())
        if (auto it = uses.find(v.get()); it != uses.end() && (it->second.steps == 0 || it->second.others > 0))
            out.push_back(v.get());
    return out;
}

Result<void> unfoldOtherPanels(ir::Graph& graph, Panels& panels, bool all, ops::PackedConstants& packed)
{
    std::vector<ir::Value*> list = usedElsewhere(graph, panels);
    if (all) {
        list.clear();
        for (auto const& v : graph.values())
            if (panels.contains(v.get()))
                list.push_back(v.get());
    }
    for (ir::Value* v : list) {
        TW_ASSIGN(BlobPtr plain, unfolded(*v->constant->data, panels.at(v), packed));
        setData(*v, std::move(plain));
        panels.erase(v);
    }
    return {};
}

} // namespace tw::runtime
