// SPDX-License-Identifier: Apache-2.0
#include "api/engine/layer_report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include <fmt/core.h>

#include "base/lists.h"
#include "ir/op_def.h"

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

namespace {

constexpr double kWorthSaying = 0.03; // of the time

// Layers with what they take, and what they take together.
struct Group
{
    std::string reason, key;
    double microseconds = 0;
    std::vector<std::pair<std::string, double>> layers;

    void add(std::string const& name, double us)
    {
        microseconds += us;
        layers.emplace_back(name, us);
    }
    Json json(double all) const
    {
        Json list = Json::array();
        for (auto const& [name, us] : layers)
            list.push_back({{"Name", name}, {"Share", us / all}});
        return {{"Share", microseconds / all}, {"Layers", std::move(list)}};
    }
};

// The reason without numbers that stand by themselves: equal for layers that lack the same.
std::string keyOf(std::string const& reason)
{
    auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
    auto isPart = [&](char c) { return isDigit(c) || c == '.' || c == 'e' || c == '+' || c == '-'; };
    std::string key;
    for (size_t i = 0; i < reason.size(); ++i) {
        bool const isNumber =
            isDigit(reason[i]) && (i == 0 || std::string_view(" ([{*/").find(reason[i - 1]) != std::string_view::npos);
        key += isNumber ? '#' : reason[i];
        while (isNumber && i + 1 < reason.size() && isPart(reason[i + 1]))
            ++i;
    }
    return key;
}

// Whether it computes nothing: what it gives is its input, in another order, format or type.
bool isCopy(ir::Node const& node)
{
    static constexpr std::string_view kCopies[] = {"reformat", "identity",      "shuffle",
                                                   "slice",    "concatenation", "padding"};
    return contains(kCopies, std::string_view(node.op->name));
}

bool isLonger(std::pair<std::string, double> const& a, std::pair<std::string, double> const& b)
{
    return a.second > b.second;
}

std::string percent(Json const& share)
{
    return fmt::format("{:.1f} %", 100 * share.get<double>());
}

} // namespace

void addSums(Json& engine, ir::Graph const& graph, plan::Block const& chosen)
{
    double all = 0, without = 0;
    std::vector<Group> groups;
    Group copies;
    for (size_t i = 0; i < chosen.steps.size() && i < graph.nodes.size(); ++i) {
        ir::Node const& node = *graph.nodes[i];
        plan::Choice const& choice = chosen.steps[i].choice;
        double const us = choice.microseconds > 0 ? choice.microseconds : 0; // what a file says may be no number
        all += us;
        if (us > 0 && isCopy(node))
            copies.add(node.name, us);
        if (choice.lack.empty() || us == 0)
            continue;
        without += us;
        std::string const key = keyOf(choice.lack);
        auto group = std::ranges::find(groups, key, &Group::key);
        if (group == groups.end())
            group = groups.insert(group, {"", key, 0, {}});
        if (std::ranges::all_of(group->layers, [&](auto const& layer) { return layer.second < us; }))
            group->reason = choice.lack;
        group->add(node.name, us);
    }
    if (without > kWorthSaying * all) {
        std::ranges::stable_sort(groups, std::greater(), &Group::microseconds);
        Json reasons = Json::array();
        for (Group& g : groups) {
            std::ranges::stable_sort(g.layers, isLonger);
            Json reason = g.json(all);
            reason["Reason"] = g.reason;
            reasons.push_back(std::move(reason));
        }
        engine["WithoutFastKernel"] = {{"Share", without / all}, {"Reasons", std::move(reasons)}};
    }
    std::ranges::stable_sort(copies.layers, isLonger);
    if (copies.microseconds > kWorthSaying * all)
        engine["Copies"] = copies.json(all);
}

std::vector<std::string> linesOfSums(Json const& engine)
{
    std::vector<std::string> lines;
    auto firstOf = [](Json const& layers) {
        std::string const name = layers[0]["Name"].get<std::string>();
        return layers.size() == 1 ? name : fmt::format("{} and {} more", name, layers.size() - 1);
    };
    if (auto const without = engine.find("WithoutFastKernel"); without != engine.end()) {
        lines.push_back("Layers without a fast kernel take " + percent((*without)["Share"]) + " of the time:");
        for (Json const& r : (*without)["Reasons"])
            lines.push_back(
                fmt::format("  {}: {}: {}", firstOf(r["Layers"]), percent(r["Share"]), r["Reason"].get<std::string>()));
    }
    if (auto const copies = engine.find("Copies"); copies != engine.end())
        lines.push_back(fmt::format("Copies and changes of format take {} of the time: {}", percent((*copies)["Share"]),
                                    firstOf((*copies)["Layers"])));
    return lines;
}

} // namespace tw::api
