// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "json_rows.h"
#include "log.h"
#include "value_syntax.h"

namespace tw::trtexec {

namespace {

constexpr double kEnqueueBoundShare = 0.8;
constexpr double kUnstablePercent = 1.0;

std::string ms(double value)
{
    return numberText(value) + " ms";
}

std::string statisticsText(Statistics const& s, std::span<double const> percentiles)
{
    std::string text =
        "min = " + ms(s.min) + ", max = " + ms(s.max) + ", mean = " + ms(s.mean) + ", median = " + ms(s.median);
    for (size_t i = 0; i < percentiles.size(); ++i)
        text += ", percentile(" + numberText(percentiles[i]) + "%) = " + ms(s.percentiles[i]);
    return text;
}

void reportAverages(Log& log, std::span<QueryTimes const> queries, int32_t runs)
{
    log.info("");
    log.info("=== Trace details ===");
    log.info(fmt::format("Trace averages of {} runs:", runs));
    auto const group = static_cast<size_t>(runs);
    for (size_t at = 0; at + group <= queries.size(); at += group) {
        double compute = 0;
        double latency = 0;
        double enqueue = 0;
        for (QueryTimes const& q : queries.subspan(at, group)) {
            compute += q.compute();
            latency += q.latency();
            enqueue += q.enqueue();
        }
        log.info(fmt::format("Average on {} runs - GPU latency: {} - Host latency: {} (enqueue {})", runs,
                             ms(compute / runs), ms(latency / runs), ms(enqueue / runs)));
    }
}

void explainMetrics(Log& log)
{
    log.verbose("");
    log.verbose("=== Explanations of the performance metrics ===");
    log.verbose(
        "Total Host Walltime: time on the host's clock from the first measured query's start to the last one's end.");
    log.verbose(
        "GPU Compute Time: time the device computes for one query (on the CPU device: time inside the enqueue call).");
    log.verbose("Total GPU Compute Time: sum of the compute times; far below the walltime, the device was waiting.");
    log.verbose("Throughput: measured queries (times the batch of an implicit batch engine) per second of walltime.");
    log.verbose("Enqueue Time: time the host takes to issue one query; as long as compute, it is the bottleneck.");
    log.verbose("H2D Latency: time to copy the inputs of one query from host to device.");
    log.verbose("D2H Latency: time to copy the outputs of one query from device to host.");
    log.verbose("Latency: H2D Latency + GPU Compute Time + D2H Latency of one query.");
}

struct Columns
{
    std::vector<double> latency, enqueue, h2d, compute, d2h;
};

Columns columnsOf(std::span<QueryTimes const> queries)
{
    Columns c;
    for (QueryTimes const& q : queries) {
        c.latency.push_back(q.latency());
        c.enqueue.push_back(q.enqueue());
        c.h2d.push_back(q.h2d());
        c.compute.push_back(q.compute());
        c.d2h.push_back(q.d2h());
    }
    return c;
}

} // namespace

Statistics statisticsOf(std::vector<double> values, std::span<double const> percentiles)
{
    Statistics s;
    s.percentiles.resize(percentiles.size());
    if (values.empty())
        return s;
    std::sort(values.begin(), values.end());
    size_t const n = values.size();
    s.min = values.front();
    s.max = values.back();
    s.median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
    for (double const v : values)
        s.mean += v;
    s.mean /= static_cast<double>(n);
    double squares = 0;
    for (double const v : values)
        squares += (v - s.mean) * (v - s.mean);
    if (s.mean > 0)
        s.variationPercent = 100 * std::sqrt(squares / static_cast<double>(n)) / s.mean;
    for (size_t i = 0; i < percentiles.size(); ++i) {
        auto const excluded = static_cast<int64_t>(std::floor((100 - percentiles[i]) * static_cast<double>(n) / 100));
        int64_t const index = std::max<int64_t>(static_cast<int64_t>(n) - 1 - excluded, 0);
        s.percentiles[i] = values[static_cast<size_t>(index)];
    }
    return s;
}

std::vector<QueryTimes> measuredQueries(RunTrace const& trace)
{
    std::vector<QueryTimes> measured;
    for (QueryTimes const& q : trace.queries)
        if (q.startCompute >= trace.warmUpMs)
            measured.push_back(q);
    std::stable_sort(measured.begin(), measured.end(),
                     [](QueryTimes const& a, QueryTimes const& b) { return a.startH2d < b.startH2d; });
    return measured;
}

MeasuredTime measuredTime(std::span<QueryTimes const> measured)
{
    MeasuredTime time;
    if (measured.empty())
        return time;
    time.beginMs = measured.front().startH2d;
    for (QueryTimes const& q : measured)
        time.endMs = std::max(time.endMs, q.endD2h);
    return time;
}

void reportPerformance(Log& log, RunTrace const& trace, ReportingOptions const& options)
{
    std::vector<QueryTimes> const queries = measuredQueries(trace);
    double const count = static_cast<double>(queries.size());
    double const wallMs = measuredTime(queries).ms();
    log.info(
        fmt::format("Warmup completed {} queries over {}", trace.queries.size() - queries.size(), ms(trace.warmUpMs)));
    log.info(fmt::format("Timing trace has {} queries over {} s", queries.size(), numberText(wallMs / 1000)));
    if (queries.empty()) {
        log.warning("No query was measured: raise --iterations or --duration");
        return;
    }
    reportAverages(log, queries, options.avgRuns);

    Columns const columns = columnsOf(queries);
    std::span<double const> const p = options.percentiles;
    Statistics const latency = statisticsOf(columns.latency, p);
    Statistics const enqueue = statisticsOf(columns.enqueue, p);
    Statistics const h2d = statisticsOf(columns.h2d, p);
    Statistics const compute = statisticsOf(columns.compute, p);
    Statistics const d2h = statisticsOf(columns.d2h, p);

    log.info("");
    log.info("=== Performance summary ===");
    double const perSecond = wallMs > 0 ? 1000 * trace.batch * count / wallMs : 0;
    log.info("Throughput: " + numberText(perSecond) + " qps");
    log.info("Latency: " + statisticsText(latency, p));
    log.info("Enqueue Time: " + statisticsText(enqueue, p));
    log.info("H2D Latency: " + statisticsText(h2d, p));
    log.info("GPU Compute Time: " + statisticsText(compute, p));
    log.info("D2H Latency: " + statisticsText(d2h, p));
    log.info("Total Host Walltime: " + numberText(wallMs / 1000) + " s");
    log.info("Total GPU Compute Time: " + numberText(compute.mean * count / 1000) + " s");

    if (!trace.eagerDevice && enqueue.median > kEnqueueBoundShare * compute.median) {
        log.warning("* Throughput may be bound by Enqueue Time rather than by the computation.");
        log.warning("  --useCudaGraph may raise it.");
    }
    if (h2d.median >= compute.median) {
        log.warning(
            "* Throughput may be bound by host-to-device transfers of the inputs rather than by the computation.");
        log.warning("  --noDataTransfers leaves them out of the measurement.");
    }
    if (d2h.median >= compute.median) {
        log.warning(
            "* Throughput may be bound by device-to-host transfers of the outputs rather than by the computation.");
        log.warning("  --noDataTransfers leaves them out of the measurement.");
    }
    if (compute.variationPercent > kUnstablePercent) {
        log.warning("* GPU compute time is unstable, with coefficient of variance = " +
                    numberText(compute.variationPercent) + "%.");
        log.warning("  A locked clock and an idle machine steady it; --useSpinWait may, too.");
    }
    log.info("Explanations of the performance metrics are printed in the verbose logs.");
    explainMetrics(log);
    log.info("");
}

std::string timesJson(std::span<QueryTimes const> measured)
{
    std::vector<Json> rows;
    for (QueryTimes const& q : measured) {
        Json& row = rows.emplace_back();
        row["startEnqMs"] = jsonNumber(q.startEnq);
        row["endEnqMs"] = jsonNumber(q.endEnq);
        row["startH2dMs"] = jsonNumber(q.startH2d);
        row["endH2dMs"] = jsonNumber(q.endH2d);
        row["startComputeMs"] = jsonNumber(q.startCompute);
        row["endComputeMs"] = jsonNumber(q.endCompute);
        row["startD2hMs"] = jsonNumber(q.startD2h);
        row["endD2hMs"] = jsonNumber(q.endD2h);
        row["h2dMs"] = jsonNumber(q.h2d());
        row["computeMs"] = jsonNumber(q.compute());
        row["d2hMs"] = jsonNumber(q.d2h());
        row["latencyMs"] = jsonNumber(q.latency());
    }
    return jsonRows(rows);
}

} // namespace tw::trtexec
