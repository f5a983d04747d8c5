// SPDX-License-Identifier: Apache-2.0
// IBuilder: from a network and a config to a plan.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "api/builder/config.h"
#include "api/builder/dla.h"
#include "api/builder/parts.h"
#include "api/client_memory.h"
#include "api/engine/engine.h"
#include "api/engine/layer_report.h"
#include "api/host_memory.h"
#include "api/memory_usage.h"
#include "api/network/network.h"
#include "api/network/ranges.h"
#include "api/network/setter.h"
#include "api/object_methods.h"
#include "api/plugin/graph.h"
#include "base/safety.h"
#include "builder/build.h"
#include "builder/sparse_layers.h"
#include "builder/types.h"
#include "device/cpu.h"
#include "device/cuda/kernel_cache.h"
#include "device/thread_pool.h"
#include "ir/shape_values.h"
#include "tactic/cpu_tactic.h"
#include "tune/bench.h"
#include "tune/phases.h"

using namespace tw;
using namespace tw::api;

namespace tw::api {

struct BuilderObject final : nvinfer1::IBuilder
{
    BuilderObject(nvinfer1::ILogger* logger, Environment const& e, std::shared_ptr<cuda::Target const> device)
        : reporter(logger), use(logger), environment(e), gpu(std::move(device)), fingerprint(fingerprintOf(gpu.get()))
    {
        maxMemoryBytes = device::physicalMemoryBytes();
        if (char const* mebibytes = std::getenv("TENSORWRIGHT_MAX_MEMORY_MB"))
            if (int64_t const n = std::strtoll(mebibytes, nullptr, 10); n > 0 && n <= INT64_MAX >> 20)
                maxMemoryBytes = maxMemoryBytes > 0 ? std::min(maxMemoryBytes, n << 20) : n << 20;
    }
    mutable Reporter reporter;
    LoggerUse use;
    Environment environment;
    std::shared_ptr<cuda::Target const> gpu; // null: the CPU
    std::string fingerprint;
    int64_t maxMemoryBytes = 0; // see builder::Options
    int32_t maxBatchSize = 1;
    int32_t maxThreads = 0; // 0: not set, the whole pool
    nvinfer1::IGpuAllocator* allocator = nullptr;
    std::vector<std::unique_ptr<OptimizationProfileObject>> profiles; // live as long as the builder
};
TW_OBJECT(nvinfer1::IBuilder, BuilderObject)

namespace {

using nvinfer1::BuilderFlag;
using nvinfer1::OptProfileSelector;

// Everything that the user may ask for and that later releases bring, as errors; permissions that have no effect yet,
// as warnings.
Result<void> checkSettings(NetworkObject const& n, BuilderConfigObject const& c, bool onGpu, Reporter& log)
{
    if (c.has(BuilderFlag::kREFIT) && c.profiles.size() > 1)
        return invalidState(
            "BuilderFlag::kREFIT: a refittable engine has one optimization profile at most, the configuration has {}",
            c.profiles.size());
    TW_TRY(checkStandalone(n, c));
    TW_TRY(checkPrecisions(n, c, onGpu, log));
    if (c.algorithmSelector && c.timingCache)
        log.warning(
            "an algorithm selector and a timing cache are both set: the selector's choices neither come from the "
            "cache nor go there");
    if (c.has(BuilderFlag::kSPARSE_WEIGHTS) && !c.has(BuilderFlag::kFP16) && !c.has(BuilderFlag::kINT8))
        log.warning("BuilderFlag::kSPARSE_WEIGHTS: sparse math is for FP16 and INT8; set kFP16 or kINT8, too");
    return {};
}

// In implicit batch mode one profile is made: batch 1 .. maximum, optimized for the maximum; `isFixed`: the maximum alone.
plan::Profile batchProfile(NetworkObject const& n, int32_t maxBatch, bool isFixed)
{
    plan::Profile out;
    for (auto const& t : n.inputs) {
        plan::ProfileRange r;
        r.hasShape = true;
        r.min.push(isFixed && !t->broadcastAcrossBatch ? maxBatch : 1);
        r.opt.push(t->broadcastAcrossBatch ? 1 : maxBatch);
        r.max.push(t->broadcastAcrossBatch ? 1 : maxBatch);
        for (int i = 0; i < t->dims.nbDims; ++i)
            for (Extents* e : {&r.min, &r.opt, &r.max})
                e->push(t->dims.d[i]);
        out.inputs[t->name] = r;
    }
    return out;
}

// For looking into a build that went wrong; the library reads these once a build.
//   TENSORWRIGHT_DISABLE_PASSES=a,b   leaves passes out        TENSORWRIGHT_STOP_AFTER_PASS=<number of pass runs>
//   TENSORWRIGHT_DUMP_PASSES=<folder>  writes the graph's text after each pass that changed it
passes::Options passesFromEnvironment(std::string& dumpFolder)
{
    passes::Options options;
    if (char const* disabled = std::getenv("TENSORWRIGHT_DISABLE_PASSES")) {
        std::istringstream list(disabled);
        for (std::string name; std::getline(list, name, ',');)
            options.disabled.push_back(name);
    }
    if (char const* stop = std::getenv("TENSORWRIGHT_STOP_AFTER_PASS"); stop && *stop)
        options.stopAfter = std::atoi(stop);
    if (char const* folder = std::getenv("TENSORWRIGHT_DUMP_PASSES"); folder && *folder) {
        dumpFolder = folder;
        options.dumpFolder = &dumpFolder;
    }
    return options;
}

// Whether a node that is no shape computation reads the input's elements (not its dimensions, nor to decide a shape).
bool isReadAsData(ir::Graph const& g, ir::Value const* input)
{
    auto const shapes = ir::hostValues(g);
    for (auto const& node : g.nodes) {
        bool const host = std::ranges::any_of(node->outputs, [&](ir::Value const* v) { return shapes.contains(v); });
        if (host || node->op->readsDimsOnly)
            continue;
        for (size_t i = 0; i < node->inputs.size(); ++i)
            if (node->inputs[i] == input && !ir::isShapeInput(*node, i))
                return true;
    }
    return false;
}

// Shape tensors among network inputs are vectors or scalars of a known, small size. 8.5 takes INT32 only; numbers of
// other types are converted by the network itself.
Result<void> checkShapeInput(ir::Value const& v, Log& log)
{
    constexpr int64_t kMaxElements = 64;
    std::string const what =
        "network input '" + v.name + "' (" + nameOf(v.type) + str(v.shape) + ") decides the shape of something";
    if (v.rank() > 1 || !isStatic(v.shape) || ir::extentsOf(v.shape).volume() > kMaxElements)
        return invalidArgument("{}, so it must have at most one dimension, which is constant and at most {}", what,
                               kMaxElements);
    if (v.type != DataType::kInt32)
        log.warning("{}; programs that shall run on 8.5 too must make it kINT32", what);
    return {};
}

// Our own tactics are always there; cuBLAS proper has none.
uint32_t sourcesOf(BuilderConfigObject const& c)
{
    bool const external =
        !(c.previewFeatures >> int(nvinfer1::PreviewFeature::kDISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805) & 1);
    auto has = [&](nvinfer1::TacticSource s) { return external && (c.tacticSources >> int(s) & 1) != 0; };
    uint32_t bits = tune::bitOf(ops::Source::kOwn);
    if (has(nvinfer1::TacticSource::kCUBLAS_LT))
        bits |= tune::bitOf(ops::Source::kCublasLt);
    if (has(nvinfer1::TacticSource::kCUDNN))
        bits |= tune::bitOf(ops::Source::kCudnn);
    return bits;
}

Result<std::unique_ptr<ir::Graph>> graphOf(NetworkObject& n, BuilderConfigObject const& c)
{
    return n.toGraph(inputsWithValues(c.profiles), c.has(BuilderFlag::kINT8) && c.int8Calibrator && !isExplicit(n));
}

Result<plan::Contents> toContents(BuilderObject& b, NetworkObject& n, BuilderConfigObject& c, PluginList& plugins,
                                  tune::Phases& phases)
{
    auto importing = std::make_optional<tune::Phases::Scope>(&phases, "network to graph");
    TW_TRY(checkSettings(n, c, b.gpu != nullptr, b.reporter));
    plan::Contents contents;
    TW_ASSIGN(contents.graph, graphOf(n, c));
    TW_TRY(checkExplicitQuantization(n, *contents.graph, c));
    TW_TRY(checkSafety(n, *contents.graph, c, b.reporter));
    bool const isSafety = c.engineCapability == nvinfer1::EngineCapability::kSAFETY;
    if (isSafety)
        TW_TRY(countErrors(*contents.graph));
    auto const services = std::make_shared<PluginServices>(b.reporter, b.gpu, b.allocator, c.tacticSources);
    bool const mayQuantize = c.has(BuilderFlag::kINT8) && !isExplicit(n);
    TW_TRY(settlePlugins(
        *contents.graph, services,
        {c.has(BuilderFlag::kFP16), mayQuantize, mayQuantize && c.int8Calibrator, &n.ranges, &n.openScalesOfPlugins}));
    std::vector<passes::FixedCache> caches;
    if (b.environment.kvPages > 0 && b.environment.kvCapacity == 0)
        return invalidArgument("TENSORWRIGHT_KV_PAGES={} is beside TENSORWRIGHT_KV_CAPACITY, the rows of a sequence",
                               b.environment.kvPages);
    if (b.environment.kvCapacity > 0)
        TW_SET(caches, fixCaches(contents, c, {b.environment.kvCapacity, b.environment.kvPages},
                                 {.target = builder::describe({.cuda = b.gpu.get()}), .permits = b.environment.permits},
                                 b.reporter));
    contents.engineName = n.name;
    for (auto const& l : n.layers)
        if (char const* const plugin = l->pluginName())
            contents.notes[plan::pluginNote(l->name)] = plugin;
    contents.implicitBatch = n.implicitBatch;
    contents.maxBatchSize = b.maxBatchSize;
    contents.profilingVerbosity = static_cast<int32_t>(c.profilingVerbosity);
    contents.engineCapability = static_cast<int32_t>(c.engineCapability);
    contents.tacticSources = c.tacticSources;
    TW_ASSIGN(DlaPlacement const onDla, placeOnDla(n, c, b.maxBatchSize, b.reporter));
    if (!onDla.isEmpty()) {
        contents.dlaModel = onDla.model;
        contents.dlaCore = onDla.core;
        contents.dlaLoadables = int32_t(onDla.loadables.size());
    }
    std::string needsProfile;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
        TensorObject const& t = *n.inputs[i];
        plan::IoTensor io;
        io.name = t.name;
        io.isInput = true;
        io.isShapeTensor = contents.graph->inputs[i]->host;
        io.isExecution = !io.isShapeTensor || isReadAsData(*contents.graph, contents.graph->inputs[i]);
        if (io.isShapeTensor)
            TW_TRY(checkShapeInput(*contents.graph->inputs[i], b.reporter));
        io.broadcastAcrossBatch = t.broadcastAcrossBatch;
        for (auto const& [axis, dimensionName] : t.dimensionNames) {
            io.dimensionNames.resize(std::max(io.dimensionNames.size(), size_t(axis) + 1));
            io.dimensionNames[size_t(axis)] = dimensionName;
        }
        if (needsProfile.empty() && io.isShapeTensor)
            needsProfile = "network input '" + t.name + "' is a shape tensor";
        else if (needsProfile.empty() && !isStatic(contents.graph->inputs[i]->shape))
            needsProfile = "network input '" + t.name + "' with shape " + str(t.dims) + " is dynamic";
        contents.io.push_back(std::move(io));
    }
    for (size_t i = n.inputs.size(); i < contents.graph->inputs.size(); ++i) { // those that the network does not have
        plan::IoTensor io;
        io.name = contents.graph->inputs[i]->name;
        io.isInput = true;
        contents.io.push_back(std::move(io));
    }
    for (ir::Value const* v : contents.graph->outputs) {
        plan::IoTensor io;
        io.name = v->name;
        io.isShapeTensor = v->host;
        io.isExecution = v->name == safety::kErrorsAfter ||
                         std::ranges::any_of(n.outputs, [&](TensorObject const* t) { return t->name == v->name; });
        contents.io.push_back(std::move(io));
    }
    if (n.implicitBatch) {
        contents.profiles.push_back(batchProfile(n, b.maxBatchSize, !onDla.isEmpty()));
    } else if (!needsProfile.empty() && c.profiles.empty()) {
        return invalidState("{}, but no optimization profile has been defined; set its ranges in one "
                            "(IBuilder::createOptimizationProfile(), IBuilderConfig::addOptimizationProfile())",
                            needsProfile);
    } else {
        for (size_t p = 0; p < c.profiles.size(); ++p) {
            TW_ASSIGN(plan::Profile profile, toProfile(n, *contents.graph, *c.profiles[p], p));
            if (!caches.empty())
                TW_TRY(fixProfile(profile, *contents.graph, caches));
            contents.profiles.push_back(std::move(profile));
        }
    }
    if (contents.profiles.empty())
        contents.profiles.emplace_back();
    setPluginRanges(*contents.graph, contents.profiles);

    builder::Options options;
    std::string dumpFolder;
    options.passes = passesFromEnvironment(dumpFolder);
    device::SourceScope const memory(b.allocator && !b.gpu ? std::make_shared<ClientMemory>(*b.allocator) : nullptr);
    options.fingerprint = b.fingerprint;
    TW_ASSIGN(options.cuda, withAllocator(b.gpu, b.allocator));
    options.refittable = c.has(BuilderFlag::kREFIT);
    options.constraints = constraintsOf(c);
    options.log = &b.reporter;
    options.maxMemoryBytes = b.maxMemoryBytes;
    std::map<std::string, dla::Layout> layouts;
    TW_ASSIGN(options.io,
              ioFormatsOf(n, *contents.graph, c.has(BuilderFlag::kDIRECT_IO), dlaTensorsOf(n, c, onDla), &layouts));
    options.tune.phases = &phases;
    options.tune.heuristicOnly = c.has(BuilderFlag::kENABLE_TACTIC_HEURISTIC);
    options.tune.minRounds = std::max(options.tune.minRounds, c.minTimingIterations);
    options.tune.leastRounds = c.minTimingIterations;
    options.tune.runsPerRound = c.avgTimingIterations;
    options.shareTimings = !c.has(BuilderFlag::kDISABLE_TIMING_CACHE);
    options.tune.cacheBytes = device::probeCpu().l2Bytes;
    options.tuningSeconds = b.environment.tuningSeconds;
    options.keepRivals = c.profilingVerbosity == nvinfer1::ProfilingVerbosity::kDETAILED;
    std::shared_ptr<tune::TimingCache> cache;
    if (!c.has(BuilderFlag::kDISABLE_TIMING_CACHE))
        cache = c.timingCache ? c.timingCache->cache : std::make_shared<tune::TimingCache>(options.fingerprint);
    options.tune.cache = cache.get();
    // A limit that nobody set is the device's memory, which arenas are held against.
    if (auto const limit = c.poolLimits[size_t(nvinfer1::MemoryPoolType::kWORKSPACE)])
        options.tune.workspaceBytes = int64_t(std::min(*limit, size_t(INT64_MAX)));
    Permissions& permits = options.tune.permits = b.environment.permits;
    permits.set(Permission::kHalf, c.has(BuilderFlag::kFP16));
    permits.set(Permission::kInt8, c.has(BuilderFlag::kINT8));
    permits.set(Permission::kTf32, b.gpu && c.has(BuilderFlag::kTF32) && permits.has(Permission::kTf32));
    permits.set(Permission::kBf16Factors, !b.gpu && permits.has(Permission::kBf16Factors));
    permits.set(Permission::kHalfWeights, !b.gpu && c.has(BuilderFlag::kFP16));
    permits.set(Permission::kSparse, c.has(BuilderFlag::kSPARSE_WEIGHTS));
    for (int t = 0; c.algorithmSelector && t < kDataTypeCount; ++t) // it is told of 8.5's types alone
        if (!*kNumberTypes[t].published)
            permits.take(needsOf(DataType(t)));
    options.tune.sources = sourcesOf(c);
    device::ThreadPool& pool = device::processThreadPool(b.environment.threads);
    options.tune.workers = &pool.workers();
    options.tune.buildWorkers = b.maxThreads > 0 ? &pool.workers(b.maxThreads) : &pool.workers();
    std::optional<tune::Eviction> eviction;
    if (!b.gpu)
        options.tune.eviction = &eviction.emplace(*options.tune.workers, options.tune.cacheBytes);
    std::unique_ptr<tune::Selector> selector;
    if (c.algorithmSelector)
        selector = adaptSelector(*c.algorithmSelector, c.has(BuilderFlag::kREJECT_EMPTY_ALGORITHMS));
    options.tune.selector = selector.get();
    calibrate::NetworkOptions const calibration{.target = builder::describe(ops::Target()),
                                                .providers = options.tune.providers,
                                                .workers = options.tune.buildWorkers,
                                                .maxMemoryBytes = b.maxMemoryBytes,
                                                .log = &b.reporter};
    importing.emplace(&phases, "ranges of INT8");
    TW_ASSIGN(options.ranges, rangesOf(n, c, contents, calibration, b.gpu.get(), b.reporter));
    importing.reset();
    if (!onDla.isEmpty())
        unifyRanges(onDla, options.ranges);
    TW_TRY(settleScales(*contents.graph, n, options.ranges));
    if (!onDla.isEmpty()) {
        markDla(*contents.graph, n, c, onDla, options.ranges);
        if (options.constraints == passes::PrecisionConstraints::kIgnore)
            options.constraints = passes::PrecisionConstraints::kPrefer;
        TW_TRY(applyLayouts(contents, layouts, options.ranges));
    }
    std::vector<std::string> sparse;
    if (c.has(BuilderFlag::kSPARSE_WEIGHTS))
        sparse = builder::sparseLayers(*contents.graph);
    for (std::string const& line : sparsityLines(onDla, sparse, layouts, options.ranges, c))
        b.reporter.info(line);
    MemoryPeak const peak(options.cuda.get());
    MemoryChange const change(options.cuda.get());
    TW_TRY(builder::build(contents, options));
    TW_ASSIGN(plugins, finishPlugins(contents, services));
    nlohmann::ordered_json sums;
    addSums(sums, *contents.graph, contents.targets.back().root);
    for (std::string const& line : linesOfSums(sums))
        b.reporter.info(line);
    if (c.has(BuilderFlag::kSPARSE_WEIGHTS))
        for (std::string const& line : builder::sparsityLines(sparse, *contents.graph, contents.targets.back().root))
            b.reporter.info(line);
    peak.finish(b.reporter);
    change.finish(b.reporter, "TensorRT-managed allocation in building engine", options.cuda.get());
    return contents;
}

// The bytes of a plan, with what becomes of a network.
Result<std::string> toPlan(BuilderObject& b, NetworkObject& n, BuilderConfigObject& c, PluginList& plugins)
{
    auto const begin = std::chrono::steady_clock::now();
    tune::Phases phases;
    TW_ASSIGN(plan::Contents contents, toContents(b, n, c, plugins, phases));
    auto writing = std::make_optional<tune::Phases::Scope>(&phases, "writing the plan");
    TW_ASSIGN(std::string bytes, plan::write(contents));
    if (contents.engineCapability == int32_t(nvinfer1::EngineCapability::kDLA_STANDALONE))
        TW_SET(bytes, toLoadable(contents, bytes));
    writing.reset();
    std::chrono::duration<double> const seconds = std::chrono::steady_clock::now() - begin;
    b.reporter.verbose("Time of the build by parts, by the clock; kernels are made, checked and timed on all threads:");
    for (std::string const& line : phases.table(seconds.count()))
        b.reporter.verbose(line);
    if (cuda::KernelCache* const kept = b.gpu ? b.gpu->compiler->kept() : nullptr) {
        b.reporter.verbose("{} compiled sources of kernels came from '{}'", kept->foundCount(), kept->folder());
        if (std::string const complaint = kept->takeComplaint(); !complaint.empty())
            b.reporter.warning("The cache of compiled kernels is left aside: {}", complaint);
    }
    return bytes;
}

} // namespace

} // namespace tw::api

namespace nvinfer1 {

IHostMemory* IBuilder::buildSerializedNetwork(INetworkDefinition& network, IBuilderConfig& config) noexcept
{
    return guarded<IHostMemory*>(objectOf(*this), nullptr, [&](BuilderObject& b) -> Result<IHostMemory*> {
        PluginList plugins;
        TW_ASSIGN(std::string bytes, toPlan(b, objectOf(network), objectOf(config), plugins));
        return static_cast<IHostMemory*>(new HostMemoryObject(std::move(bytes)));
    });
}

ICudaEngine* IBuilder::buildEngineWithConfig(INetworkDefinition& network, IBuilderConfig& config) noexcept
{
    return guarded<ICudaEngine*>(objectOf(*this), nullptr, [&](BuilderObject& b) -> Result<ICudaEngine*> {
        if (objectOf(config).engineCapability == EngineCapability::kDLA_STANDALONE)
            return unsupported(
                "EngineCapability::kDLA_STANDALONE: a loadable is no engine; buildSerializedNetwork() makes "
                "it, and cuDLA runs it");
        PluginList plugins;
        // Through the bytes: the engine must not refer to the caller's weights.
        TW_ASSIGN(std::string bytes, toPlan(b, objectOf(network), objectOf(config), plugins));
        TW_ASSIGN(EngineObject * engine, makeEngine(b.reporter, bytes.data(), bytes.size(), b.environment, b.allocator,
                                                    b.gpu, b.maxThreads, plugins));
        return engine;
    });
}

bool IBuilder::isNetworkSupported(INetworkDefinition const& network, IBuilderConfig const& config) const noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](BuilderObject const& b) -> Result<bool> {
        auto& n = const_cast<NetworkObject&>(objectOf(network));
        TW_TRY(checkSettings(n, objectOf(config), b.gpu != nullptr, b.reporter));
        TW_ASSIGN(auto graph, graphOf(n, objectOf(config)));
        TW_TRY(checkExplicitQuantization(n, *graph, objectOf(config)));
        TW_TRY(checkSafety(n, *graph, objectOf(config), b.reporter));
        TW_TRY(ir::verify(*graph));
        TW_ASSIGN(DlaPlacement const onDla, placeOnDla(n, objectOf(config), b.maxBatchSize, b.reporter));
        TW_TRY(ioFormatsOf(n, *graph, false, dlaTensorsOf(n, objectOf(config), onDla)));
        return true;
    });
}

INetworkDefinition* IBuilder::createNetworkV2(NetworkDefinitionCreationFlags flags) noexcept
{
    return guarded<INetworkDefinition*>(objectOf(*this), nullptr, [&](BuilderObject& b) -> Result<INetworkDefinition*> {
        auto has = [&](NetworkDefinitionCreationFlag f) { return (flags >> static_cast<int>(f) & 1) != 0; };
        if (flags >> EnumMax<NetworkDefinitionCreationFlag>())
            return invalidArgument("createNetworkV2: unknown flags in {}", flags);
        if (has(NetworkDefinitionCreationFlag::kEXPLICIT_PRECISION))
            b.reporter.warning("createNetworkV2: kEXPLICIT_PRECISION is deprecated and has no effect");
        auto n = std::make_unique<NetworkObject>(b.reporter);
        n->implicitBatch = !has(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH);
        n->explicitPrecision = has(NetworkDefinitionCreationFlag::kEXPLICIT_PRECISION);
        return n.release();
    });
}

IBuilderConfig* IBuilder::createBuilderConfig() noexcept
{
    return guarded<IBuilderConfig*>(objectOf(*this), nullptr, [&](BuilderObject& b) -> Result<IBuilderConfig*> {
        return static_cast<IBuilderConfig*>(
            new BuilderConfigObject(b.reporter, ConfigDevice{b.fingerprint, 0, b.environment.dla}));
    });
}

IOptimizationProfile* IBuilder::createOptimizationProfile() noexcept
{
    return guarded<IOptimizationProfile*>(
        objectOf(*this), nullptr, [&](BuilderObject& b) -> Result<IOptimizationProfile*> {
            b.profiles.push_back(std::make_unique<OptimizationProfileObject>(b.reporter));
            return b.profiles.back().get();
        });
}

TW_PROPERTY(IBuilder, int32_t, setMaxBatchSize, getMaxBatchSize, maxBatchSize,
            checkAll("setMaxBatchSize", {value < 1 ? fmt::format("{} must be at least 1", value) : ""}))
TW_GETTER(IBuilder, bool, platformHasFastFp16, self.gpu || device::probeCpu().avx512fp16)
bool IBuilder::platformHasFastInt8() const noexcept
{
    // Where there are kernels for sums of integers; those of AVX2 need no VNNI.
    return objectOf(*this).gpu || device::probeCpu().avx2;
}
TW_GETTER(IBuilder, bool, platformHasTf32, self.gpu != nullptr)
TW_GETTER(IBuilder, int32_t, getMaxDLABatchSize,
          self.environment.dla == dla::Model::kNone ? 0 : int32_t(dla::kMostBatch))
TW_GETTER(IBuilder, int32_t, getNbDLACores, dla::coresOf(self.environment.dla))
TW_SETTER(IBuilder, IGpuAllocator*, setGpuAllocator, self.allocator = value)
void IBuilder::reset() noexcept
{
    BuilderObject& b = objectOf(*this);
    b.maxBatchSize = 1;
    b.maxThreads = 0;
    b.allocator = nullptr;
}
TW_OBJECT_METHODS(IBuilder)

} // namespace nvinfer1

extern "C" void* createInferBuilder_INTERNAL(void* logger, int32_t version) noexcept
{
    return createObject<nvinfer1::IBuilder, BuilderObject>(logger, version, "createInferBuilder");
}
