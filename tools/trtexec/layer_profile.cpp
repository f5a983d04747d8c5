// SPDX-License-Identifier: Apache-2.0
#include "layer_profile.h"

#include <algorithm>
#include <cstdio>

#include <fmt/core.h>

#include "json_rows.h"
#include "log.h"

namespace tw::trtexec {

double LayerProfile::Layer::total() const
{
    double sum = 0;
    for (double const t : times)
        sum += t;
    return sum;
}

double LayerProfile::Layer::median() const
{
    if (times.empty())
        return 0;
    std::vector<double> sorted = times;
    std::sort(sorted.begin(), sorted.end());
    size_t const n = sorted.size();
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

void LayerProfile::add(std::string_view layer, double ms)
{
    std::lock_guard const lock(mutex_);
    auto const [it, fresh] = indexOf_.emplace(layer, layers_.size());
    if (fresh)
        layers_.push_back({std::string(layer), {}});
    layers_[it->second].times.push_back(ms);
}

bool LayerProfile::empty() const
{
    std::lock_guard const lock(mutex_);
    return layers_.empty();
}

double LayerProfile::totalMs() const
{
    double sum = 0;
    for (Layer const& layer : layers_)
        sum += layer.total();
    return sum;
}

void LayerProfile::print(Log& log) const
{
    std::lock_guard const lock(mutex_);
    size_t width = sizeof("Layer") - 1;
    for (Layer const& layer : layers_)
        width = std::max(width, layer.name.size());
    ++width;
    auto const rightAligned = [&](std::string const& name) { return std::string(width - name.size(), ' ') + name; };
    // Each column is as wide as its head.
    auto const row = [&](std::string const& name, double total, double average, double median, double percent) {
        char numbers[160];
        std::snprintf(numbers, sizeof numbers, "%12.2f%17.4f%19.4f%9.1f", total, average, median, percent);
        log.info(rightAligned(name) + numbers);
    };

    double const all = totalMs();
    double const runs = static_cast<double>(std::max<size_t>(iterations(), 1));
    log.info("");
    log.info(fmt::format("=== Profile ({} iterations ) ===", iterations()));
    log.info(rightAligned("Layer") + "   Time (ms)   Avg. Time (ms)   Median Time (ms)   Time %");
    double medians = 0;
    for (Layer const& layer : layers_) {
        double const total = layer.total();
        if (total <= 0)
            continue;
        medians += layer.median();
        row(layer.name, total, total / runs, layer.median(), 100 * total / all);
    }
    row("Total", all, all / runs, medians, 100);
    log.info("");
}

std::string LayerProfile::json() const
{
    std::lock_guard const lock(mutex_);
    double const all = totalMs();
    double const runs = static_cast<double>(std::max<size_t>(iterations(), 1));
    std::vector<Json> rows;
    rows.emplace_back()["count"] = iterations();
    for (Layer const& layer : layers_) {
        double const total = layer.total();
        Json& row = rows.emplace_back();
        row["name"] = layer.name;
        row["timeMs"] = jsonNumber(total);
        row["averageMs"] = jsonNumber(total / runs);
        row["medianMs"] = jsonNumber(layer.median());
        row["percentage"] = jsonNumber(all > 0 ? 100 * total / all : 0);
    }
    return jsonRows(rows);
}

} // namespace tw::trtexec
