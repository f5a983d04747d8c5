// SPDX-License-Identifier: Apache-2.0
#include "layer_information.h"

#include "json_rows.h"

#include <cstdio>
#include <map>

namespace tw::trtexec {

namespace {

std::string percent(double share)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
    return text;
}

Json parsed(const std::string& text)
{
    Json json = Json::parse(text, nullptr, false);
    return json.is_object() ? json : Json::object();
}

} // namespace

std::vector<std::string> slowLayerLines(const std::string& engineJson)
{
    const Json json = parsed(engineJson);
    const auto slow = json.find("WithoutFastKernel");
    if (slow == json.end())
        return {};
    std::vector<std::string> lines{"=== Layers without a fast kernel: " + percent(slow->value("Share", 0.0)) +
                                   " of the time ==="};
    for (const Json& layer : slow->value("Layers", Json::array()))
        lines.push_back(layer.value("Name", "") + ": " + percent(layer.value("Share", 0.0)) + ": " +
                        layer.value("Reason", ""));
    return lines;
}

std::string layerTypesLine(const std::string& engineJson)
{
    const Json json = parsed(engineJson);
    std::map<std::string, int> counts;
    for (const Json& layer : json.value("Layers", Json::array()))
        if (layer.is_object() && layer.contains("Precision"))
            ++counts[layer["Precision"].value("Type", "")];
    std::string line;
    for (const auto& [type, count] : counts)
        line +=
            (line.empty() ? "Layers that could have had another type: " : ", ") + std::to_string(count) + " in " + type;
    return line;
}

} // namespace tw::trtexec
