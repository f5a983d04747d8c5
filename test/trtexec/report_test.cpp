// SPDX-License-Identifier: Apache-2.0
// Labels of the printed report and keys of the JSON files.
#include "report.h"

#include <cmath>
#include <cstdlib>
#include <regex>

#include <gtest/gtest.h>

#include "json_rows.h"
#include "layer_information.h"
#include "layer_profile.h"
#include "log.h"

namespace tw::trtexec {
namespace {

// Runs `print` on a log whose two streams are caught.
template <class F>
std::pair<std::string, std::string> caught(F&& print, Level threshold = Level::kInfo)
{
    char* text[2] = {nullptr, nullptr};
    size_t size[2] = {0, 0};
    std::FILE* files[2] = {open_memstream(&text[0], &size[0]), open_memstream(&text[1], &size[1])};
    {
        Log log(files[0], files[1], threshold);
        print(log);
    }
    std::pair<std::string, std::string> result;
    for (int i = 0; i < 2; ++i) {
        std::fclose(files[i]);
        (i == 0 ? result.first : result.second).assign(text[i], size[i]);
        std::free(text[i]);
    }
    return result;
}

// n queries of 1 ms copy in, 10 ms compute, 2 ms copy out, back to back.
RunTrace steadyTrace(int n, double warmUpMs)
{
    RunTrace trace;
    trace.warmUpMs = warmUpMs;
    for (int i = 0; i < n; ++i) {
        double const t = 13.0 * i;
        trace.queries.push_back({t, t + 13, t, t + 1, t + 1, t + 11, t + 11, t + 13});
    }
    return trace;
}

TEST(Log, LineFormAndStreams)
{
    auto const [out, err] = caught([](Log& log) {
        log.info("hello");
        log.verbose("hidden");
        log.warning("careful");
        log.fromLibrary(Level::kError, "broken");
        log.fromLibrary(Level::kVerbose, "hidden too");
        log.plain("&&&& RUNNING");
        EXPECT_EQ(log.libraryErrors(), 1u);
        EXPECT_EQ(log.lastLibraryMessage(), "hidden too");
    });
    std::string const stamp = R"(\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] )";
    EXPECT_TRUE(std::regex_match(out, std::regex(stamp + R"(\[I\] hello\n&&&& RUNNING\n)"))) << out;
    EXPECT_TRUE(std::regex_match(err, std::regex(stamp + R"(\[W\] careful\n)" + stamp + R"(\[E\] \[TRT\] broken\n)")))
        << err;
}

TEST(Report, PercentileRule)
{
    std::vector<double> values;
    for (int i = 1; i <= 100; ++i)
        values.push_back(101 - i);
    std::vector<double> const p = {0, 50, 90, 99, 100};
    // Index max(n - 1 - floor((1 - p/100) n), 0): 0, 49, 89, 98, 99.
    Statistics const s = statisticsOf(values, p);
    EXPECT_EQ(s.min, 1);
    EXPECT_EQ(s.max, 100);
    EXPECT_EQ(s.mean, 50.5);
    EXPECT_EQ(s.median, 50.5);
    EXPECT_EQ(s.percentiles[0], 1);
    EXPECT_EQ(s.percentiles[1], 50);
    EXPECT_EQ(s.percentiles[2], 90);
    EXPECT_EQ(s.percentiles[3], 99);
    EXPECT_EQ(s.percentiles[4], 100);
    EXPECT_EQ(statisticsOf({7}, p).percentiles, (std::vector<double>{7, 7, 7, 7, 7}));
    EXPECT_EQ(statisticsOf({}, p).mean, 0);
}

TEST(Report, WarmUpIsLeftOut)
{
    // Computes begin at 1, 14, 27, ...
    EXPECT_EQ(measuredQueries(steadyTrace(10, 27)).size(), 8u);
    EXPECT_EQ(measuredQueries(steadyTrace(10, 27.5)).size(), 7u);
    EXPECT_EQ(measuredQueries(steadyTrace(10, 0)).size(), 10u);
}

TEST(Report, LabelsAndNumbers)
{
    auto const [out, err] = caught([](Log& log) { reportPerformance(log, steadyTrace(22, 26), ReportingOptions()); });
    for (char const* text :
         {"Warmup completed 2 queries over 26 ms", "Timing trace has 20 queries over 0.26 s", "=== Trace details ===",
          "Trace averages of 10 runs:", "Average on 10 runs - GPU latency: 10 ms - Host latency: 13 ms (enqueue 13 ms)",
          "=== Performance summary ===", "Throughput: 76.9231 qps",
          "Latency: min = 13 ms, max = 13 ms, mean = 13 ms, median = 13 ms, percentile(90%) = 13 ms, "
          "percentile(95%) = 13 ms, percentile(99%) = 13 ms",
          "Enqueue Time: min = 13 ms", "H2D Latency: min = 1 ms", "GPU Compute Time: min = 10 ms",
          "D2H Latency: min = 2 ms", "Total Host Walltime: 0.26 s", "Total GPU Compute Time: 0.2 s",
          "Explanations of the performance metrics are printed in the verbose logs."})
        EXPECT_NE(out.find(text), std::string::npos) << text << "\n" << out;
    EXPECT_EQ(err, "");
    EXPECT_EQ(out.find("=== Explanations"), std::string::npos);
    auto const verbose =
        caught([](Log& log) { reportPerformance(log, steadyTrace(2, 0), ReportingOptions()); }, Level::kVerbose);
    EXPECT_NE(verbose.first.find("[V] === Explanations of the performance metrics ==="), std::string::npos);
}

TEST(Report, Advice)
{
    RunTrace trace = steadyTrace(10, 0);
    trace.eagerDevice = false;
    for (QueryTimes& q : trace.queries) {
        q.endH2d = q.startH2d + 20;
        q.endD2h = q.startD2h + 20;
    }
    trace.queries[3].endCompute += 5;
    auto const [out, err] = caught([&](Log& log) { reportPerformance(log, trace, ReportingOptions()); });
    for (char const* text : {"[W] * Throughput may be bound by Enqueue Time", "--useCudaGraph",
                             "[W] * Throughput may be bound by host-to-device transfers",
                             "[W] * Throughput may be bound by device-to-host transfers", "--noDataTransfers",
                             "[W] * GPU compute time is unstable, with coefficient of variance = ", "--useSpinWait"})
        EXPECT_NE(err.find(text), std::string::npos) << text << "\n" << err;
}

TEST(Report, NothingMeasured)
{
    auto const [out, err] = caught([](Log& log) { reportPerformance(log, RunTrace(), ReportingOptions()); });
    EXPECT_NE(out.find("Timing trace has 0 queries over 0 s"), std::string::npos);
    EXPECT_NE(err.find("No query was measured"), std::string::npos);
}

TEST(Report, TimesJsonKeys)
{
    RunTrace const trace = steadyTrace(2, 0);
    EXPECT_EQ(timesJson(trace.queries),
              "[\n"
              "  {\"startEnqMs\":0,\"endEnqMs\":13,\"startH2dMs\":0,\"endH2dMs\":1,\"startComputeMs\":1,"
              "\"endComputeMs\":11,\"startD2hMs\":11,\"endD2hMs\":13,\"h2dMs\":1,\"computeMs\":10,"
              "\"d2hMs\":2,\"latencyMs\":13},\n"
              "  {\"startEnqMs\":13,\"endEnqMs\":26,\"startH2dMs\":13,\"endH2dMs\":14,\"startComputeMs\":14,"
              "\"endComputeMs\":24,\"startD2hMs\":24,\"endD2hMs\":26,\"h2dMs\":1,\"computeMs\":10,"
              "\"d2hMs\":2,\"latencyMs\":13}\n"
              "]\n");
    EXPECT_EQ(timesJson({}), "[\n]\n");
}

TEST(Profile, TableAndJson)
{
    LayerProfile profile;
    for (int i = 0; i < 4; ++i) {
        profile.add("conv + relu", 1 + i);
        profile.add("no-op", 0);
        profile.add("fc", 2.5);
    }
    auto const [out, err] = caught([&](Log& log) { profile.print(log); });
    EXPECT_NE(out.find("=== Profile (4 iterations ) ==="), std::string::npos) << out;
    EXPECT_NE(out.find("[I]        Layer   Time (ms)   Avg. Time (ms)   Median Time (ms)   Time %"), std::string::npos)
        << out;
    EXPECT_NE(out.find(" conv + relu       10.00           2.5000             2.5000     50.0"), std::string::npos)
        << out;
    EXPECT_NE(out.find("       Total       20.00           5.0000             5.0000    100.0"), std::string::npos)
        << out;
    EXPECT_EQ(out.find("no-op"), std::string::npos);
    EXPECT_EQ(profile.json(),
              "[\n  {\"count\":4},\n"
              "  {\"name\":\"conv + relu\",\"timeMs\":10,\"averageMs\":2.5,\"medianMs\":2.5,\"percentage\":50},\n"
              "  {\"name\":\"no-op\",\"timeMs\":0,\"averageMs\":0,\"medianMs\":0,\"percentage\":0},\n"
              "  {\"name\":\"fc\",\"timeMs\":10,\"averageMs\":2.5,\"medianMs\":2.5,\"percentage\":50}\n]\n");
}

TEST(Json, StringsAndNumbers)
{
    auto const row = [](Json value) { return jsonRows({Json{{"v", std::move(value)}}}); };
    EXPECT_EQ(row("a\"b\\c\n\x01"), "[\n  {\"v\":\"a\\\"b\\\\c\\n\\u0001\"}\n]\n");
    EXPECT_EQ(row("gr\xc3\xbc\xc3\x9f"), "[\n  {\"v\":\"gr\xc3\xbc\xc3\x9f\"}\n]\n");
    EXPECT_EQ(row("a\xff"), "[\n  {\"v\":\"a\xef\xbf\xbd\"}\n]\n");
    EXPECT_EQ(jsonNumber(2147483647).dump(), "2147483647");
    EXPECT_EQ(jsonNumber(0.1f).dump(), "0.100000001");
    EXPECT_EQ(jsonNumber(1e20).dump(), "1e+20");
    EXPECT_EQ(jsonNumber(std::nan("")).dump(), "null");
    EXPECT_EQ(jsonNumber(-INFINITY).dump(), "null");
    EXPECT_EQ(jsonNumber(-0.0).dump(), "-0.0");
}

TEST(LayerInformation, SlowLayersAreReadNotComputed)
{
    // No times: what the engine says is what is printed.
    std::string const json = R"({"Layers": [{"Name": "a", "LacksFastKernel": "x"}], "Bindings": [], "WithoutFastKernel":
        {"Share": 0.25, "Reasons": [{"Share": 0.2, "Layers": [{"Name": "pool", "Share": 0.15}, {"Name": "p2", "Share": 0.05}],
                                     "Reason": "needs x"},
                                    {"Share": 0.05, "Layers": [{"Name": "lrn", "Share": 0.05}], "Reason": "42 us"}]},
        "Copies": {"Share": 0.1, "Layers": [{"Name": "shuffle", "Share": 0.1}]}})";
    EXPECT_EQ(slowLayerLines(json),
              (std::vector<std::string>{
                  "=== Layers without a fast kernel: 25.0 % of the time ===", "pool and 1 more: 20.0 %: needs x",
                  "lrn: 5.0 %: 42 us", "=== Copies and changes of format: 10.0 % of the time: shuffle ==="}));
    EXPECT_TRUE(slowLayerLines(R"({"Layers": [{"Name": "a", "LacksFastKernel": "x"}]})").empty());
    EXPECT_TRUE(slowLayerLines("{}\n").empty()) << "engines that say nothing of their layers";
    EXPECT_TRUE(slowLayerLines("").empty());
}

TEST(LayerInformation, Types)
{
    EXPECT_EQ(layerTypesLine(R"({"Layers": [{"Precision": {"Type": "FP16"}}, {"Precision": {"Type": "FP32"}},
                                            {"Name": "c"}, {"Precision": {"Type": "FP16"}}]})"),
              "Layers that could have had another type: 2 in FP16, 1 in FP32");
    EXPECT_EQ(layerTypesLine(R"({"Layers": ["names", "alone"]})"), "");
}

} // namespace

} // namespace tw::trtexec
