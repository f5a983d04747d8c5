// SPDX-License-Identifier: Apache-2.0
#include "calibrate/calibrate.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "calibrate/network.h"
#include "calibrate/threshold.h"

namespace tw::calibrate {

namespace {

using Clock = std::chrono::steady_clock;

std::string secondsSince(Clock::time_point begin)
{
    return fmt::format("{} seconds.", std::chrono::duration<double>(Clock::now() - begin).count());
}

double thresholdOf(Histogram const& h, Settings const& s)
{
    if (!h.isFinite)
        return 0;
    switch (s.algorithm) {
    case Algorithm::kMinMax:
        return largestThreshold(h);
    case Algorithm::kLegacy:
        return quantileThreshold(h, s.quantile, s.cutoff);
    case Algorithm::kEntropy:
    case Algorithm::kEntropy2:
        break;
    }
    return entropyThreshold(h);
}

// Adds what the network computes to the tensors' histograms.
class Observer final : public ValueObserver
{
public:
    Observer(Network const& network, Workers& workers) : tally_(workers)
    {
        std::map<std::string, size_t> places; // tensors of one name have one histogram
        for (ir::Value const* v : network.observed()) {
            auto const [at, isNew] = places.try_emplace(v->name, histograms.size());
            if (isNew)
                histograms.emplace_back(v->name, Histogram());
            places_.push_back(at->second);
        }
    }
    void observe(size_t index, TensorRef const& values) override
    {
        if (values.data && values.count() > 0)
            tally_.add(values, histograms[places_[index]].second);
    }
    NamedHistograms histograms;

private:
    Tally tally_;
    std::vector<size_t> places_; // of histograms, by the network's index
};

Result<void> checkFinite(std::vector<Network::Input> const& inputs, int batch)
{
    for (Network::Input const& in : inputs) {
        TensorRef const r = in.memory.ref();
        for (int64_t i = 0; isFloating(r.type) && i < r.count(); ++i)
            if (double const x = r.get(i); !std::isfinite(x))
                return invalidArgument(
                    "calibration batch {}: element {} of input '{}' is {}; samples must be finite numbers", batch, i,
                    in.name, x);
    }
    return {};
}

Result<NamedHistograms> runBatches(Network& network, BatchSource& source, NetworkOptions const& options, Log& log)
{
    Observer observer(network, *options.workers);
    for (int batch = 0;; ++batch) {
        auto const begin = Clock::now();
        TW_ASSIGN(bool const isThere, source.next(network.inputs()));
        if (!isThere && batch == 0)
            return invalidState("calibration: getBatch() gives no batch at its first call; there is nothing to "
                                "calibrate with");
        if (!isThere)
            return std::move(observer.histograms);
        TW_TRY(checkFinite(network.inputs(), batch));
        if (auto done = network.run(observer); !done.ok())
            return std::move(done).error().in(fmt::format("calibration batch {}", batch));
        log.info("Calibrated batch {} in {}", batch, secondsSince(begin));
    }
}

} // namespace

Table tableOf(NamedHistograms const& histograms, ir::Graph const& graph, Settings const& settings, Workers& workers)
{
    std::vector<double> found(histograms.size());
    workers.run(int64_t(found.size()),
                [&](int64_t i, int) { found[size_t(i)] = thresholdOf(histograms[size_t(i)].second, settings); });
    std::map<std::string, double> thresholds;
    for (size_t i = 0; i < found.size(); ++i)
        thresholds[histograms[i].first] = found[i];
    if (settings.algorithm == Algorithm::kEntropy2)
        shareThresholds(graph, thresholds);
    Table table{settings.version, nameOf(settings.algorithm), {}};
    for (auto const& [name, h] : histograms)
        table.scales.emplace_back(name, scaleOf(thresholds[name]));
    return table;
}

Result<Calibrated> calibrate(ir::Graph const& graph, plan::Profile const& profile, BatchSource& source,
                             Settings const& settings, NetworkOptions const& given,
                             std::optional<NamedHistograms> known)
{
    NullLog quiet;
    Log& log = given.log ? *given.log : quiet;
    NetworkOptions options = given;
    options.isFused = settings.isFused;
    auto const begin = Clock::now();
    log.info("Starting Calibration.");
    TW_ASSIGN(auto network, Network::make(graph, profile, options));
    if (network->hasRegions())
        log.info("Calibration: tensors within loops and conditionals get no scales; layers there stay in floating "
                 "point");
    NamedHistograms histograms;
    if (known) {
        histograms = std::move(*known);
    } else {
        TW_ASSIGN(histograms, runBatches(*network, source, options, log));
    }
    auto const processing = Clock::now();
    Calibrated out;
    out.table = tableOf(histograms, network->graph(), settings, *options.workers);
    for (auto const& [name, h] : histograms)
        if (!h.isFinite)
            out.infinite.push_back(name);
        else if (h.largest == 0)
            out.zero.push_back(name);
    for (size_t i = 0; i < histograms.size(); ++i)
        if (double const share = clippedShare(histograms[i].second, 127.0 * out.table.scales[i].second);
            share > kMostClipped)
            out.clipped.push_back({histograms[i].first, share});
    std::ranges::stable_sort(out.clipped, [](Clipping const& a, Clipping const& b) { return a.share > b.share; });
    if (settings.algorithm == Algorithm::kLegacy)
        out.histograms = writeHistograms(histograms, settings.version);
    log.info("  Post Processing Calibration data in {}", secondsSince(processing));
    log.info("Calibration completed in {}", secondsSince(begin));
    return out;
}

} // namespace tw::calibrate
