// SPDX-License-Identifier: Apache-2.0
#include "accuracy_report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tw::trtexec {
namespace {

LayerAccuracy layer(std::string name, double noise, bool passed)
{
    LayerAccuracy l;
    l.layer = name;
    l.origin = {name};
    l.tensor = name + ".out";
    l.type = "INT8";
    l.comparison.signal = 100;
    l.comparison.noise = noise;
    l.comparison.passed = passed;
    return l;
}

TEST(AccuracyReport, NamesTheFirstAndTheWorst)
{
    AccuracyReport report;
    report.layers.push_back(layer("good", 0, true));
    for (int i = 0; i < 12; ++i)
        report.layers.push_back(layer("bad" + std::to_string(i), i == 11 ? 1 : 0.01, false));
    report.layers.emplace_back().reason = "made by a fusion";
    std::vector<std::string> const lines = accuracyLines(report);
    ASSERT_EQ(lines.size(), 2u + 1 + 10 + 1 + 5);
    EXPECT_EQ(lines[1],
              "12 of 13 tensors of the engine are beyond the tolerance; 1 have no counterpart in the network");
    EXPECT_EQ(lines[3], "  bad0 (tensor 'bad0.out', INT8): cosine = 1.000000, SQNR = 40.0 dB, max absolute = 0");
    EXPECT_EQ(lines[14], "  bad11 (tensor 'bad11.out', INT8): cosine = 1.000000, SQNR = 20.0 dB, max absolute = 0");

    // The network's layers, not what the engine calls its own.
    report.layers = {layer("x to INT8", 1, false), layer("a + b + [reformat]", 1, false)};
    report.layers[0].origin.clear();
    report.layers[1].origin = {"a", "b"};
    EXPECT_EQ(accuracyLines(report)[3].find("  network input (tensor 'x to INT8.out'"), 0u);
    EXPECT_EQ(accuracyLines(report)[4].find("  a + b (tensor "), 0u);

    report.layers = {layer("good", 0, true)};
    EXPECT_EQ(accuracyLines(report).size(), 2u);
    report.layers.clear();
    EXPECT_EQ(accuracyLines(report)[1], "0 of 0 tensors of the engine are beyond the tolerance");
}

TEST(AccuracyReport, CurveHasWhatNothingBeats)
{
    std::vector<PrecisionTrial> const trials = {{{}, 1.0, 0.5, ""},
                                                {{"a"}, 1.2, 0.1, ""},
                                                {{"b"}, 1.3, 0.4, ""},
                                                {{"a", "b"}, 2, 0, ""},
                                                {{"c"}, 1.2, 0.2, ""}};
    EXPECT_EQ(paretoCurve(trials), (std::vector<size_t>{0, 1, 3}));
    EXPECT_EQ(paretoCurve({}), std::vector<size_t>());
    PrecisionSearch const search{0.3, trials, 1};
    std::vector<std::string> const lines = curveLines(search);
    ASSERT_EQ(lines.size(), 6u);
    EXPECT_EQ(lines[2], "  1.2 ms, loss 10 %, 1 layer(s) in FP32");
    EXPECT_EQ(lines[4], "Chosen for a loss of at most 30 %: 1.2 ms, loss 10 %, 1 layer(s) in FP32");
    EXPECT_EQ(lines[5], "  FP32: a");
}

TEST(AccuracyReport, Json)
{
    AccuracyReport report;
    report.layers = {layer("bad", 1, false), layer("same", 0, true)};
    report.layers.emplace_back().reason = "made by a fusion";
    report.layers.back().layer = "broken \xff name";
    report.search = PrecisionSearch{0.3, {{{"a"}, 1.5, 0.25, "search"}}, 0};
    auto const json = nlohmann::json::parse(accuracyJson(report));
    ASSERT_EQ(json["Layers"].size(), 2u);
    EXPECT_EQ(json["Layers"][0]["Layer"], "bad");
    EXPECT_EQ(json["Layers"][0]["SqnrDb"], 20);
    EXPECT_EQ(json["Layers"][0]["RelativeRms"], 0.1);
    EXPECT_EQ(json["Layers"][0]["WithinTolerance"], false);
    EXPECT_TRUE(json["Layers"][1]["SqnrDb"].is_null());
    ASSERT_EQ(json["NotCompared"].size(), 1u);
    EXPECT_EQ(json["NotCompared"][0]["Reason"], "made by a fusion");
    EXPECT_EQ(json["Search"]["Trials"][0]["LayersInFP32"][0], "a");
    EXPECT_EQ(json["Search"]["Curve"], std::vector<int>{0});
    report.search.reset();
    EXPECT_FALSE(nlohmann::json::parse(accuracyJson(report)).contains("Search"));
}

} // namespace
} // namespace tw::trtexec
