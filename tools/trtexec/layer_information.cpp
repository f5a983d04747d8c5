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
    auto const slow = json.find("WithoutFastKernel");
    if (slow == json.end())
        return {};
    std::vector<std::string> lines{"=== Layers without a fast kernel: " + shareText(slow->value("Share", 0.0)) +
                                   " of the time ==="};
    for (Json const& layer : slow->value("Layers", Json::array()))
        lines.push_back(layer.value("Name", "") + ": " + shareText(layer.value("Share", 0.0)) + ": " +
                        layer.value("Reason", ""));
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
