// SPDX-License-Identifier: Apache-2.0
#include "layer_profile.h"

#include "json_rows.h"
#include "log.h"

#include <algorithm>
#include <cstdio>

namespace tw::trtexec {

double LayerProfile::Layer::total() const
{
    double sum = 0;
    for (const double t : times)
        sum += t;
    return sum;
}

double LayerProfile::Layer::median() const
{
    if (times.empty())
        return 0;
    std::vector<double> sorted = times;
    std::sort(sorted.begin(), sorted.end());
    const size_t n = sorted.size();
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

void LayerProfile::add(std::string_view layer, double ms)
{
    const std::lock_guard lock(mutex_);
    const auto [it, fresh] = indexOf_.emplace(layer, layers_.size());
    if (fresh)
        layers_.push_back({std::string(layer), {}});
    layers_[it->second].times.push_back(ms);
}

bool LayerProfile::empty() const
{
    const std::lock_guard lock(mutex_);
    return layers_.empty();
}

double LayerProfile::totalMs() const
{
    double sum = 0;
    for (const Layer& layer : layers_)
        sum += layer.total();
    return sum;
}

void LayerProfile::print(Log& log) const
{
    const std::lock_guard lock(mutex_);
    size_t width = sizeof("Layer") - 1;
    for (const Layer& layer : layers_)
        width = std::max(width, layer.name.size());
    ++width;
    const auto rightAligned = [&](const std::string& name) { return std::string(width - name.size(), ' ') + name; };
    // Each column is as wide as its head.
    const auto row = [&](const std::string& name, double total, double average, double median, double percent) {
        char numbers[160];
        std::snprintf(numbers, sizeof numbers, "%12.2f%17.4f%19.4f%9.1f", total, average, median, percent);
        log.info(rightAligned(name) + numbers);
    };

    const double all = totalMs();
    const double runs = static_cast<double>(std::max<size_t>(iterations(), 1));
    log.info("");
    log.info("=== Profile (" + std::to_string(iterations()) + " iterations ) ===");
    log.info(rightAligned("Layer") + "   Time (ms)   Avg. Time (ms)   Median Time (ms)   Time %");
    double medians = 0;
    for (const Layer& layer : layers_) {
        const double total = layer.total();
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
    const std::lock_guard lock(mutex_);
    const double all = totalMs();
    const double runs = static_cast<double>(std::max<size_t>(iterations(), 1));
    std::vector<Json> rows;
    rows.emplace_back()["count"] = iterations();
    for (const Layer& layer : layers_) {
        const double total = layer.total();
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
