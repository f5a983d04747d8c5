// SPDX-License-Identifier: Apache-2.0
#include "accuracy_report.h"

#include <algorithm>
#include <cstdio>

#include <fmt/core.h>

#include "json_rows.h"

namespace tw::trtexec {

namespace {

constexpr size_t kFirst = 10, kWorst = 5; // lines

std::string textOf(LayerAccuracy const& l)
{
    char numbers[128];
    std::snprintf(numbers, sizeof numbers, "cosine = %.6f, SQNR = %.1f dB, max absolute = %.3g", l.comparison.cosine,
                  l.comparison.sqnrDb(), l.comparison.maxAbsolute);
    std::string layers;
    for (std::string const& name : l.origin)
        layers += (layers.empty() ? "" : " + ") + name;
    return "  " + (layers.empty() ? "network input" : layers) + " (tensor '" + l.tensor + "', " + l.type +
           "): " + numbers;
}

std::string lossText(double share)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.4g %%", 100 * share);
    return text;
}

std::string trialText(PrecisionTrial const& t)
{
    char time[32];
    std::snprintf(time, sizeof time, "%.4g ms", t.milliseconds);
    return fmt::format("{}, loss {}, {} layer(s) in FP32", time, lossText(t.loss), t.layers.size());
}

Json jsonOf(LayerAccuracy const& l)
{
    Json row{{"Layer", l.layer}, {"NetworkLayers", l.origin}, {"Tactic", l.tactic}, {"EngineTensor", l.engineTensor}};
    if (!l.reason.empty()) {
        row["Reason"] = l.reason;
        return row;
    }
    Comparison const& c = l.comparison;
    row["Tensor"] = l.tensor;
    row["Type"] = l.type;
    row["Cosine"] = jsonNumber(c.cosine);
    row["SqnrDb"] = jsonNumber(c.sqnrDb());
    row["MaxAbsolute"] = jsonNumber(c.maxAbsolute);
    row["RelativeRms"] = jsonNumber(c.relativeRms());
    if (l.clippedShare)
        row["ClippedShare"] = jsonNumber(*l.clippedShare);
    row["WithinTolerance"] = c.passed;
    return row;
}

} // namespace

std::vector<std::string> accuracyLines(AccuracyReport const& report)
{
    std::vector<LayerAccuracy const*> beyond;
    size_t compared = 0, left = 0;
    for (LayerAccuracy const& l : report.layers) {
        compared += l.reason.empty();
        left += !l.reason.empty();
        if (l.reason.empty() && !l.comparison.passed)
            beyond.push_back(&l);
    }
    std::vector<std::string> lines{"=== Layers beside FP32 ==="};
    lines.push_back(fmt::format("{} of {} tensors of the engine are beyond the tolerance{}", beyond.size(), compared,
                                left ? fmt::format("; {} have no counterpart in the network", left) : std::string()));
    if (!beyond.empty())
        lines.emplace_back("The first:");
    for (size_t i = 0; i < std::min(kFirst, beyond.size()); ++i)
        lines.push_back(textOf(*beyond[i]));
    if (beyond.size() > kFirst) {
        std::stable_sort(beyond.begin(), beyond.end(), [](LayerAccuracy const* a, LayerAccuracy const* b) {
            return a->comparison.relativeRms() > b->comparison.relativeRms();
        });
        lines.emplace_back("The worst:");
        for (size_t i = 0; i < kWorst; ++i)
            lines.push_back(textOf(*beyond[i]));
    }
    return lines;
}

std::vector<size_t> paretoCurve(std::vector<PrecisionTrial> const& trials)
{
    std::vector<size_t> order(trials.size());
    for (size_t i = 0; i < order.size(); ++i)
        order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return trials[a].milliseconds != trials[b].milliseconds ? trials[a].milliseconds < trials[b].milliseconds
                                                                : trials[a].loss < trials[b].loss;
    });
    std::vector<size_t> curve;
    for (size_t i : order)
        if (curve.empty() || trials[i].loss < trials[curve.back()].loss)
            curve.push_back(i);
    return curve;
}

std::vector<std::string> curveLines(PrecisionSearch const& search)
{
    std::vector<std::string> lines{"=== Time against loss ==="};
    for (size_t i : paretoCurve(search.trials))
        lines.push_back("  " + trialText(search.trials[i]));
    PrecisionTrial const& chosen = search.trials[search.chosen];
    lines.push_back("Chosen for a loss of at most " + lossText(search.maxLoss) + ": " + trialText(chosen));
    for (std::string const& layer : chosen.layers)
        lines.push_back("  FP32: " + layer);
    return lines;
}

std::string accuracyJson(AccuracyReport const& report)
{
    Json json{{"Reference", "FP32"},
              {"Tolerance",
               {{"Absolute", report.tolerance.atol},
                {"Relative", report.tolerance.rtol},
                {"Cosine", report.tolerance.cosine}}}};
    json["Layers"] = Json::array();
    json["NotCompared"] = Json::array();
    for (LayerAccuracy const& l : report.layers)
        json[l.reason.empty() ? "Layers" : "NotCompared"].push_back(jsonOf(l));
    if (report.search) {
        PrecisionSearch const& s = *report.search;
        Json trials = Json::array();
        for (PrecisionTrial const& t : s.trials)
            trials.push_back({{"Purpose", t.purpose},
                              {"Milliseconds", jsonNumber(t.milliseconds)},
                              {"Loss", jsonNumber(t.loss)},
                              {"LayersInFP32", t.layers}});
        json["Search"] = {{"MaxLoss", s.maxLoss},
                          {"Chosen", s.chosen},
                          {"Curve", paretoCurve(s.trials)},
                          {"Trials", std::move(trials)}};
    }
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace tw::trtexec
