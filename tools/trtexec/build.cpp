// SPDX-License-Identifier: Apache-2.0
#include "build.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "calibration.h"
#include "device_memory.h"
#include "output_file.h"
#include "precision_search.h"
#include "progress.h"
#include "stopwatch.h"
#include "value_syntax.h"

namespace tw::trtexec {

namespace {

// The shared timing cache file: read before the build, merged with what others wrote meanwhile after it. A cache that is damaged
// or of another version is replaced; a file that holds something else, perhaps by a slip of the name, stays as it is.
class TimingCacheFile
{
public:
    TimingCacheFile(Log& log, nvinfer1::IBuilderConfig& config, std::string const& path)
        : log_(log), config_(config), path_(path)
    {
        std::vector<std::byte> bytes;
        {
            FileLock const lock(path_);
            bytes = readIfThere();
        }
        isOther_ = isOther(bytes);
        if (isOther_)
            log.warning("'" + path +
                        "' holds no timing cache of this library: the build does without, and the file stays as it is; "
                        "remove it or give another name to have a cache there");
        bool const isRead = !bytes.empty() && !isOther_;
        cache_.reset(isRead ? config.createTimingCache(bytes.data(), bytes.size()) : emptyCache());
        if (!cache_) {
            log.warning("Timing cache '" + path + "' cannot be used; starting with an empty one");
            cache_.reset(emptyCache());
            refused_ = std::move(bytes);
        } else if (isRead) {
            log.info(fmt::format("Loaded {} bytes of timing cache from {}", bytes.size(), path));
        }
        if (!cache_ || !config.setTimingCache(*cache_, false))
            throw Failure("--timingCacheFile: the library does not take a timing cache");
    }

    void save()
    {
        if (isOther_)
            return;
        nvinfer1::ITimingCache const* after = config_.getTimingCache();
        if (!after)
            throw Failure("--timingCacheFile: the builder has no timing cache after the build");
        FileLock const lock(path_);
        std::vector<std::byte> bytes = readIfThere();
        if (bytes == refused_) // said once is enough
            bytes.clear();
        if (isOther(bytes)) {
            log_.warning("'" + path_ + "' holds no timing cache any more: the file stays as it is");
            return;
        }
        std::unique_ptr<nvinfer1::ITimingCache> merged(config_.createTimingCache(bytes.data(), bytes.size()));
        if (!merged)
            merged.reset(emptyCache());
        if (!merged || !merged->combine(*after, false))
            throw Failure("--timingCacheFile: the caches cannot be merged");
        auto const text = required(merged->serialize(), "Serializing the timing cache");
        writeFile(path_, text->data(), text->size());
        log_.info(fmt::format("Saved {} bytes of timing cache to {}", text->size(), path_));
    }

private:
    std::vector<std::byte> readIfThere() const
    {
        return resolveOutput(path_).exists ? readFile(path_) : std::vector<std::byte>(); // devices hold no cache
    }

    nvinfer1::ITimingCache* emptyCache() const { return config_.createTimingCache(nullptr, 0); }

    // Whether a file of these bytes is something else than a cache: caches begin as an empty one does.
    bool isOther(std::vector<std::byte> const& bytes) const
    {
        std::unique_ptr<nvinfer1::ITimingCache> const cache(emptyCache());
        auto const empty = required(cache ? cache->serialize() : nullptr, "Serializing the timing cache");
        size_t const beginning = std::min({kBeginning, bytes.size(), empty->size()});
        return beginning > 0 && std::memcmp(bytes.data(), empty->data(), beginning) != 0;
    }

    static constexpr size_t kBeginning = 8; // bytes that say what a file is

    Log& log_;
    nvinfer1::IBuilderConfig& config_;
    std::string path_;
    std::unique_ptr<nvinfer1::ITimingCache> cache_;
    std::vector<std::byte> refused_; // what the file held, where that was a damaged cache
    bool isOther_ = false;
};

std::string gib(uint64_t bytes)
{
    return numberText(static_cast<double>(bytes) / (1 << 30)) + " GiB";
}

} // namespace

void buildPlan(Log& log, LibraryLogger& logger, Options const& options, Workspace& work, NetworkEdit const& edit)
{
    Stopwatch const watch;
    work.builder = required(nvinfer1::createInferBuilder(logger), "Creating the builder");
    auto const explicitBatch = 1u << static_cast<uint32_t>(nvinfer1::NetworkDefinitionCreationFlag::kEXPLICIT_BATCH);
    work.parsed.network = required(work.builder->createNetworkV2(options.build.explicitBatch() ? explicitBatch : 0),
                                   "Creating a network");
    parseModel(log, logger, options.model, work.parsed);
    applyIoFormats(*work.parsed.network, options.build);

    auto const config = required(work.builder->createBuilderConfig(), "Creating a builder configuration");
    applyBuildOptions(log, work.parsed, *work.builder, *config, options.build, options.system);
    if (edit)
        edit(*work.parsed.network, *config);
    applyProfiles(log, *work.parsed.network, *work.builder, *config, options, work.recordedInputs);
    std::unique_ptr<CalibrationCache> calibration;
    if (options.build.int8 && !options.build.calibration.empty()) {
        calibration = std::make_unique<CalibrationCache>(options.build.calibration);
        librarySupports(log, "--calib", [&] { config->setInt8Calibrator(calibration.get()); });
    }
    std::unique_ptr<TimingCacheFile> cache;
    if (options.build.timingCacheMode == TimingCacheMode::kGlobal)
        cache = std::make_unique<TimingCacheFile>(log, *config, options.build.timingCacheFile);

    {
        Progress const progress(log, "Building");
        work.built = required(work.builder->buildSerializedNetwork(*work.parsed.network, *config), "The build");
    }
    if (cache)
        cache->save();
    log.info("Engine built in " + numberText(watch.seconds()) + " sec.");
}

void obtainPlan(Log& log, LibraryLogger& logger, Options const& options, Workspace& work)
{
    if (!options.inference.inputFolder.empty())
        work.recordedInputs = readRecorded(options.inference.inputFolder, "input");
    if (options.build.loadEngine.empty()) {
        if (options.build.maxLoss)
            work.search = searchPrecisions(log, logger, options, work);
        else
            buildPlan(log, logger, options, work);
        if (!options.build.saveEngine.empty()) {
            writeFile(options.build.saveEngine, work.built->data(), work.built->size());
            log.verbose(fmt::format("Saved {} bytes to {}", work.built->size(), options.build.saveEngine));
        }
        return;
    }
    Stopwatch const watch;
    work.loaded = std::make_unique<MappedFile>(options.build.loadEngine);
    log.info("Engine loaded in " + numberText(watch.seconds()) + " sec.");
}

void deserialize(Log& log, LibraryLogger& logger, Options const& options, Workspace& work)
{
    // Only a refit needs the network. The model goes before the engine comes: large ones need the memory.
    if (!options.inference.timeRefit) {
        work.parsed.network.reset();
        work.parsed = {};
        work.builder.reset();
    }
    Stopwatch const watch;
    work.runtime = required(nvinfer1::createInferRuntime(logger), "Creating the runtime");
    if (options.system.dlaCore >= 0)
        libraryStep(log, "--useDLACore", [&] {
            checkDlaCore(options.system, work.runtime->getNbDLACores());
            work.runtime->setDLACore(options.system.dlaCore);
        });
    work.engine =
        required(work.runtime->deserializeCudaEngine(work.planData(), work.planSize()), "Deserializing the engine");
    log.info("Engine deserialized in " + numberText(watch.seconds()) + " sec.");
    // The engine keeps nothing of the plan's bytes.
    work.built.reset();
    work.loaded.reset();
}

bool timeDeserialization(Log& log, LibraryLogger& logger, Workspace const& work)
{
    constexpr int kWarmUps = 2;
    constexpr int kRuns = 20;
    constexpr double kTolerance = 2;
    auto const runtime = required(nvinfer1::createInferRuntime(logger), "Creating the runtime");
    auto const once = [&] {
        Stopwatch const watch;
        auto const engine =
            required(runtime->deserializeCudaEngine(work.planData(), work.planSize()), "Deserializing the engine");
        return watch.seconds() * 1000;
    };
    log.info("Begin deserialization warmup...");
    for (int i = 0; i < kWarmUps; ++i)
        once();
    log.info("Begin deserialization engine timing...");
    double const first = once();
    log.info("First deserialization time = " + numberText(first) + " milliseconds");
    auto const reportMemory = [&](uint64_t before) {
        DeviceMemoryState const now = deviceMemoryState();
        std::string const grown =
            before > now.freeBytes ? ", newly allocated GPU memory = " + gib(before - now.freeBytes) : std::string();
        log.info("Free GPU memory = " + gib(now.freeBytes) + grown + ", total GPU memory = " + gib(now.totalBytes));
        return now.freeBytes;
    };
    uint64_t const freeBefore = reportMemory(0);
    double total = 0;
    for (int i = 0; i < kRuns; ++i)
        total += once();
    double const average = total / kRuns;
    log.info(fmt::format("Total deserialization time = {} milliseconds in {} iterations, average time = {} "
                         "milliseconds, first time = {} milliseconds.",
                         numberText(total), kRuns, numberText(average), numberText(first)));
    log.info("Deserialization Bandwidth = " + numberText(static_cast<double>(work.planSize()) / 1e6 / average) +
             " GB/s");
    reportMemory(freeBefore);
    double const ratio = first / average;
    if (ratio <= kTolerance)
        return true;
    log.warning("First deserialization time divided by average time is " + numberText(ratio) +
                ". Exceeds tolerance of 2x.");
    return false;
}

} // namespace tw::trtexec
