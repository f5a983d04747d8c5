// SPDX-License-Identifier: Apache-2.0
#include "precision_search.h"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/core.h>

#include "precision_edit.h"
#include "reference_run.h"
#include "value_syntax.h"

namespace tw::trtexec {

namespace {

constexpr double kWarmUpMs = 50, kMeasureSeconds = 0.2;

class Search
{
public:
    Search(Log& log, LibraryLogger& logger, Options const& options, Workspace& work)
        : log_(log), logger_(logger), options_(options), work_(work)
    {
        if (options_.build.timingCacheMode == TimingCacheMode::kLocal) { // layers are timed once for all engines
            options_.build.timingCacheMode = TimingCacheMode::kGlobal;
            options_.build.timingCacheFile = folder_.path() + "/timing.cache";
        }
        run_ = options_;
        InferenceOptions& inference = run_.inference;
        inference.warmUpMs = kWarmUpMs;
        inference.durationSec = kMeasureSeconds;
        inference.sleepMs = inference.idleMs = 0;
        inference.streams = 1;
        inference.threads = inference.timeRefit = inference.timeDeserialize = false;
        inference.transfers = true;
        result_.maxLoss = *options.build.maxLoss;
    }

    PrecisionSearch run()
    {
        size_t const lowest = trial({}, "lowest precision");
        if (!suffices(lowest)) {
            if (layers_.empty())
                throw Failure(lossText(lowest) + ", and no layer of the network has a choice of precisions (give "
                                                 "--int8, --fp16 or a model with Q/DQ layers)");
            search();
        }
        result_.chosen = fastest_;
        work_.built = std::move(plan_);
        return std::move(result_);
    }

private:
    using Layers = std::vector<std::string>;

    bool suffices(size_t t) const { return result_.trials[t].loss <= result_.maxLoss; }
    std::string lossText(size_t t) const
    {
        return "--maxLoss=" + numberText(result_.maxLoss) + ": the loss is " + numberText(result_.trials[t].loss);
    }

    void search()
    {
        size_t const all = trial(layers_, "FP32");
        if (!suffices(all))
            throw Failure(fmt::format("{} with all {} layers that have a choice in FP32; state a larger one",
                                      lossText(all), layers_.size()));
        std::vector<std::pair<double, std::string>> ranked; // loss without the layer's low precision
        for (std::string const& layer : layers_)
            ranked.emplace_back(result_.trials[trial({layer}, "one layer")].loss, layer);
        std::stable_sort(ranked.begin(), ranked.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
        auto const first = [&](size_t count) {
            Layers list;
            for (size_t i = 0; i < count; ++i)
                list.push_back(ranked[i].second);
            return list;
        };
        // low does not suffice, high does.
        size_t low = 0, high = 1;
        for (; high < layers_.size() && !suffices(trial(first(high), "search"));
             high = std::min(2 * high, layers_.size()))
            low = high;
        while (high - low > 1) {
            size_t const middle = (low + high) / 2;
            (suffices(trial(first(middle), "search")) ? high : low) = middle;
        }
        // What gains least goes first.
        Layers kept = first(high);
        for (size_t i = kept.size(); i-- > 0 && kept.size() > 1;) {
            Layers fewer = kept;
            fewer.erase(fewer.begin() + ptrdiff_t(i));
            if (suffices(trial(fewer, "search")))
                kept = std::move(fewer);
        }
    }

    // Builds and runs the engine with these layers in FP32; the same set is built once.
    size_t trial(Layers layers, char const* purpose)
    {
        std::set<std::string> const kept(layers.begin(), layers.end());
        if (auto const at = tried_.find(kept); at != tried_.end())
            return at->second;
        PrecisionTrial t{std::move(layers), 0, 0, purpose};
        std::unique_ptr<nvinfer1::IHostMemory> plan;
        {
            Quiet const quiet(log_, options_);
            Workspace work;
            work.recordedInputs = work_.recordedInputs;
            buildPlan(log_, logger_, options_, work,
                      [&](nvinfer1::INetworkDefinition& network, nvinfer1::IBuilderConfig& config) {
                          if (layers_.empty())
                              layers_ = layersWithChoice(network, options_.build);
                          keepInFp32(network, config, kept);
                      });
            deserialize(log_, logger_, run_, work);
            Inference inference(log_, work, run_);
            std::vector<double> times;
            for (QueryTimes const& q : measuredQueries(inference.run()))
                times.push_back(q.compute());
            t.milliseconds = statisticsOf(times, {}).median;
            t.loss = lossOf(inference.outputs());
            // Any engine that suffices may be the fastest.
            if (t.loss <= result_.maxLoss && (!plan_ || t.milliseconds < result_.trials[fastest_].milliseconds))
                plan = required(work.engine->serialize(), "Serializing the engine");
        }
        log_.info(fmt::format("  {} layer(s) in FP32: {} ms, loss {} ({})", kept.size(), numberText(t.milliseconds),
                              numberText(t.loss), purpose));
        result_.trials.push_back(std::move(t));
        size_t const index = result_.trials.size() - 1;
        if (plan) {
            plan_ = std::move(plan);
            fastest_ = index;
        }
        return tried_[kept] = index;
    }

    double lossOf(Bindings const& bindings)
    {
        if (references_.empty())
            findReferences(bindings);
        double loss = 0;
        size_t output = 0;
        for (Binding const& b : bindings.all()) {
            if (b.input)
                continue;
            RecordedTensor const& reference = references_[output++];
            RecordedTensor const made = valuesOf(b);
            if (made.count() != reference.count())
                throw Failure(fmt::format("--maxLoss: output '{}' has {} elements, the reference {}", b.name,
                                          made.count(), reference.count()));
            std::vector<double> values(made.count());
            for (size_t i = 0; i < values.size(); ++i)
                values[i] = made.at(i);
            loss = std::max(loss, compareTensors(values, reference, {}).relativeRms());
        }
        return loss;
    }

    void findReferences(Bindings const& bindings)
    {
        std::vector<std::string> names;
        for (Binding const& b : bindings.all())
            if (!b.input)
                names.push_back(b.name);
        std::string const& recorded = options_.reporting.compare;
        if (!recorded.empty()) {
            std::vector<RecordedTensor> const tensors = readRecorded(recorded, "output");
            for (size_t i : matchRecorded(tensors, names, recorded))
                references_.push_back(tensors[i]);
            return;
        }
        ReferenceRun const reference(log_, logger_, options_, inputsOf(bindings), false);
        for (std::string const& name : names) {
            Binding const* const b = reference.find(name);
            if (!b)
                throw Failure("--maxLoss: the network in FP32 has no output '" + name + "'");
            references_.push_back(valuesOf(*b));
        }
    }

    Log& log_;
    LibraryLogger& logger_;
    Options options_; // of the builds
    Options run_;     // and of the runs
    Workspace& work_;
    Layers layers_;
    PrecisionSearch result_;
    std::map<std::set<std::string>, size_t> tried_;
    std::unique_ptr<nvinfer1::IHostMemory> plan_; // of the fastest that suffices
    size_t fastest_ = 0;
    TemporaryFolder folder_;                 // of the timing cache
    std::vector<RecordedTensor> references_; // of each output
};

} // namespace

PrecisionSearch searchPrecisions(Log& log, LibraryLogger& logger, Options const& options, Workspace& work)
{
    log.info("Searching the layers to compute in FP32 for a loss of at most " + numberText(*options.build.maxLoss));
    return Search(log, logger, options, work).run();
}

} // namespace tw::trtexec
