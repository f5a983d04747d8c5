// SPDX-License-Identifier: Apache-2.0
#include "api/engine/layer_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tw::api {

namespace {

using Json = nlohmann::ordered_json;

// What plan::Choice says of a time.
void addTime(Json& j, double microseconds)
{
    if (microseconds != 0)
        j[microseconds > 0 ? "TimeMicroseconds" : "EstimateMicroseconds"] = std::abs(microseconds);
}

// Rivals are tactics, and types that the layer could have had.
bool isType(plan::Rival const& r)
{
    return std::ranges::any_of(kNumberTypes, [&](NumberType const& t) { return r.name == t.shown; });
}

Json rivalJson(char const* key, plan::Rival const& r)
{
    Json rival{{key, r.name}};
    addTime(rival, r.microseconds);
    rival["Reason"] = r.reason;
    return rival;
}

} // namespace

char const* typeText(DataType t)
{
    return numberType(t).shown;
}

void addReport(Json& layer, ir::Node const& node, plan::Choice const& choice)
{
    addTime(layer, choice.microseconds);
    if (choice.limitMicroseconds > 0)
        layer["LimitMicroseconds"] = choice.limitMicroseconds;
    if (!choice.lack.empty())
        layer["LacksFastKernel"] = choice.lack;
    if (!choice.config.empty())
        layer["TacticConfig"] = choice.config;
    Json types = Json::array();
    for (plan::Rival const& r : choice.rivals) {
        if (isType(r))
            types.push_back(rivalJson("Type", r));
        else
            layer["RunnersUp"].push_back(rivalJson("TacticName", r));
    }
    if (!types.empty())
        layer["Precision"] = {{"Type", typeText(node.outputs[0]->type)}, {"Others", types}};
}

Json withoutFastKernel(Json const& layers)
{
    constexpr double kWorthSaying = 0.03; // of the time
    double all = 0, without = 0;
    std::vector<Json> list;
    for (Json const& layer : layers) {
        double const us = layer.value("TimeMicroseconds", 0.0);
        all += us;
        if (!layer.contains("LacksFastKernel"))
            continue;
        without += us;
        list.push_back({{"Name", layer["Name"]}, {"Share", us}, {"Reason", layer["LacksFastKernel"]}});
    }
    if (without <= kWorthSaying * all)
        return nullptr;
    std::ranges::stable_sort(list, [](Json const& a, Json const& b) { return a["Share"] > b["Share"]; });
    for (Json& l : list)
        l["Share"] = l["Share"].get<double>() / all;
    return {{"Share", without / all}, {"Layers", list}};
}

Json withoutFastKernel(ir::Graph const& graph, plan::Block const& chosen)
{
    Json layers = Json::array();
    for (size_t i = 0; i < chosen.steps.size() && i < graph.nodes.size(); ++i) {
        layers.push_back({{"Name", graph.nodes[i]->name}});
        addReport(layers.back(), *graph.nodes[i], chosen.steps[i].choice);
    }
    return withoutFastKernel(layers);
}

std::vector<std::string> linesOf(Json const& without)
{
    if (without.is_null())
        return {};
    auto percent = [](Json const& share) {
        char text[32];
        std::snprintf(text, sizeof text, "%.1f %%", 100 * share.get<double>());
        return std::string(text);
    };
    std::vector<std::string> lines{"Layers without a fast kernel take " + percent(without["Share"]) + " of the time:"};
    for (Json const& l : without["Layers"])
        lines.push_back("  " + l["Name"].get<std::string>() + ": " + percent(l["Share"]) + ": " +
                        l["Reason"].get<std::string>());
    return lines;
}

} // namespace tw::api
