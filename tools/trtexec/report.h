// SPDX-License-Identifier: Apache-2.0
// From the time stamps of the queries to the printed summary and the exported trace.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "options.h"

namespace tw::trtexec {

class Log;

// Milliseconds since the start of the run.
struct QueryTimes
{
    double startEnq = 0;
    double endEnq = 0;
    double startH2d = 0;
    double endH2d = 0;
    double startCompute = 0;
    double endCompute = 0;
    double startD2h = 0;
    double endD2h = 0;

    double enqueue() const { return endEnq - startEnq; }
    double h2d() const { return endH2d - startH2d; }
    double compute() const { return endCompute - startCompute; }
    double d2h() const { return endD2h - startD2h; }
    double latency() const { return h2d() + compute() + d2h(); }
};

struct Statistics
{
    double min = 0;
    double max = 0;
    double mean = 0;
    double median = 0;
    double variationPercent = 0; // standard deviation / mean
    std::vector<double> percentiles;
};

// Percentile p of n sorted values is the one at max(n - 1 - floor((1 - p/100) * n), 0).
Statistics statisticsOf(std::vector<double> values, std::span<double const> percentiles);

struct RunTrace
{
    std::vector<QueryTimes> queries; // of all streams
    std::chrono::steady_clock::time_point start;
    double warmUpMs = 0;
    int32_t batch = 1; // queries count this often
    // The device computes in the calling thread, so that enqueueing takes as long as computing:
    // advice that compares the two would be wrong.
    bool eagerDevice = true;
};

// The measured queries in the order in which they started; a query whose compute began in the warm-up time is left out.
std::vector<QueryTimes> measuredQueries(RunTrace const& trace);

// When the first measured query began and the last one ended, in milliseconds since the start.
struct MeasuredTime
{
    double beginMs = 0, endMs = 0;
    double ms() const { return endMs - beginMs; }
};
MeasuredTime measuredTime(std::span<QueryTimes const> measured);

void reportPerformance(Log& log, RunTrace const& trace, ReportingOptions const& options);
std::string timesJson(std::span<QueryTimes const> measured);

} // namespace tw::trtexec
