// SPDX-License-Identifier: Apache-2.0
#include "layer_information.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>

#include <fmt/core.h>

#include "json_rows.h"

namespace tw::trtexec {

namespace {

std::string shareText(double share)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
    return text;
}

Json parsed(std::string const& text)
{
    Json json = Json::parse(text, nullptr, false);
    return json.is_object() ? json : Json::object();
}

} // namespace

std::string busyLine()
{
    double load = 0;
    unsigned const cpus = std::thread::hardware_concurrency();
    constexpr double kOdds = 0.5; // what a quiet machine does on the side
    if (getloadavg(&load, 1) != 1 || cpus == 0 || load <= double(cpus) + kOdds)
        return {};
    char text[160];
    std::snprintf(text, sizeof text,
                  "This machine is busy (load %.1f on %u CPUs): shares of time are not those of a quiet one.", load,
                  cpus);
    return text;
}

std::vector<std::string> slowLayerLines(std::string const& engineJson)
{
    Json const json = parsed(engineJson);
    auto textOf = [](Json const& part) {
        Json const layers = part.value("Layers", Json::array());
        std::string const more = layers.size() > 1 ? fmt::format(" and {} more", layers.size() - 1) : "";
        return layers.empty() ? more : layers[0].value("Name", "") + more;
    };
    std::vector<std::string> lines;
    if (auto const slow = json.find("WithoutFastKernel"); slow != json.end()) {
        lines.push_back("=== Layers without a fast kernel: " + shareText(slow->value("Share", 0.0)) +
                        " of the time ===");
        for (Json const& reason : slow->value("Reasons", Json::array()))
            lines.push_back(textOf(reason) + ": " + shareText(reason.value("Share", 0.0)) + ": " +
                            reason.value("Reason", ""));
    }
    if (auto const copies = json.find("Copies"); copies != json.end())
        lines.push_back("=== Copies and changes of format: " + shareText(copies->value("Share", 0.0)) +
                        " of the time: " + textOf(*copies) + " ===");
    return lines;
}

std::string layerTypesLine(std::string const& engineJson)
{
    Json const json = parsed(engineJson);
    std::map<std::string, int> counts;
    for (Json const& layer : json.value("Layers", Json::array()))
        if (layer.is_object() && layer.contains("Precision"))
            ++counts[layer["Precision"].value("Type", "")];
    std::string line;
    for (auto const& [type, count] : counts)
        line +=
            fmt::format("{}{} in {}", line.empty() ? "Layers that could have had another type: " : ", ", count, type);
    return line;
}

} // namespace tw::trtexec
