// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <malloc.h>

#include "api/builder/parts.h"
#include "api/client_memory.h"
#include "api/engine/engine.h"
#include "api/memory_usage.h"
#include "api/object_methods.h"
#include "api/plugin/graph.h"
#include "device/thread_pool.h"
#include "dla/loadable.h"
#include "runtime/profile_shapes.h"

using namespace tw;
using namespace tw::api;

namespace tw::api {

namespace {

// Bytes of a plan from which on loading leaves so much behind that giving it back is worth a walk through the heap.
constexpr size_t kWorthTrimming = 1 << 20;

} // namespace

bool EngineState::isDynamic() const
{
    for (ir::Value const* v : core->graph().inputs)
        if (!isStatic(v->shape) || v->host)
            return !core->contents().implicitBatch;
    return false;
}

nvinfer1::Dims EngineState::dimsOf(int io, int profile) const
{
    ir::Value const& v = core->ioValue(io);
    if (isLayout(io)) // one shape in all profiles
        return toPublic(core->contents().io[size_t(io)].dlaDims, core->contents().implicitBatch ? 1 : 0);
    nvinfer1::Dims d{};
    if (profile >= 0) {
        for (size_t i = core->contents().implicitBatch ? 1 : 0; i < v.shape.size(); ++i)
            d.d[d.nbDims++] = int32_t(runtime::fixedDim(v.shape[i], ranges[size_t(profile)]).value());
        return d;
    }
    d = dimsOf(io, 0);
    for (int p = 1; p < int(ranges.size()); ++p) {
        nvinfer1::Dims const other = dimsOf(io, p);
        for (int i = 0; i < d.nbDims; ++i)
            d.d[i] = d.d[i] == other.d[i] ? d.d[i] : -1;
    }
    return d;
}

namespace {

// A safety engine runs in libnvinfer_safe, and nothing else does.
Result<void> checkPurpose(plan::Contents const& contents, safety::Purpose purpose)
{
    bool const isSafety = contents.engineCapability == int32_t(nvinfer1::EngineCapability::kSAFETY);
    if (purpose == safety::Purpose::kStandard && isSafety)
        return invalidState("deserializeCudaEngine: the engine was built with EngineCapability::kSAFETY; load it with "
                            "nvinfer1::safe::createInferRuntime() of libnvinfer_safe");
    if (purpose != safety::Purpose::kStandard && !isSafety)
        return invalidState(
            "deserializeCudaEngine: the engine was built with engine capability {}, and the safe runtime takes "
            "those of EngineCapability::kSAFETY alone",
            contents.engineCapability);
    return {};
}

// A model of a DLA is the user's choice, here as in the build.
Result<void> checkDla(plan::Contents const& c, dla::Model here, Log& log)
{
    if (c.dlaModel == dla::Model::kNone)
        return {};
    if (c.dlaModel != here)
        return failedInitialization("the plan has {} loadables for the model of the DLA of {}, and {}; set "
                                    "TENSORWRIGHT_DLA_MODEL={}",
                                    c.dlaLoadables, dla::nameOf(c.dlaModel),
                                    here == dla::Model::kNone ? std::string("this machine has 0 DLA cores")
                                                              : fmt::format("the model here is {}", dla::nameOf(here)),
                                    dla::nameOf(c.dlaModel));
    log.info("DLA: {} loadables of the model of {} run on the present device ({})", c.dlaLoadables,
             dla::nameOf(c.dlaModel), dla::kNotTheDevice);
    return {};
}

std::string dlaFormatWords(dla::Layout layout, std::string const& type)
{
    return layout == dla::Layout::kHwc4
               ? "DLA image " + type + " format, pixels of 1 or 4 channels, rows padded (kDLA_HWC4)"
               : "DLA planar " + type + " format, rows padded to 64 bytes (kDLA_LINEAR)";
}

} // namespace

Result<EngineObject*> makeEngine(Reporter const& reporter, void const* plan, size_t sizeBytes,
                                 Environment const& environment, nvinfer1::IGpuAllocator* allocator,
                                 std::shared_ptr<cuda::Target const> gpu, int maxThreads,
                                 std::vector<std::shared_ptr<PluginObject>> const& plugins,
                                 std::optional<safety::Purpose> purpose)
{
    MemoryChange const change(gpu.get());
    device::SourceScope const memory(allocator && !gpu ? std::make_shared<ClientMemory>(*allocator) : nullptr);
    TW_ASSIGN(auto source, PlanSource::of(plan, sizeBytes, environment.copyPlan));
    Reporter log(reporter);
    runtime::LoadOptions options;
    options.fingerprint = fingerprintOf(gpu.get());
    TW_ASSIGN(options.cuda, withAllocator(std::move(gpu), allocator));
    options.strictDevice = environment.strictPlan;
    options.log = &log;
    options.pages = source.get();
    options.keep = [&](Blob const& table) { return source->keep(table, source); };
    device::ThreadPool& pool = device::processThreadPool(environment.threads);
    options.threads = pool.threads();
    options.workers = maxThreads > 0 ? &pool.workers(maxThreads) : &pool.workers();
    TW_ASSIGN(plan::Contents contents,
              plan::read(source->data(), sizeBytes,
                         {source, source.get(), options.workers, options.cuda == nullptr, environment.strictPlan}));
    if (purpose)
        TW_TRY(checkPurpose(contents, *purpose));
    TW_TRY(checkDla(contents, environment.dla, log));
    auto const services = std::make_shared<PluginServices>(reporter, options.cuda, allocator, contents.tacticSources);
    services->checksPlugins = purpose == safety::Purpose::kCheck;
    TW_TRY(revivePlugins(contents, services, plugins));
    TW_ASSIGN(std::shared_ptr<runtime::Engine> core, runtime::Engine::load(std::move(contents), options));
    auto state = std::make_shared<EngineState>();
    state->core = core;
    state->allocator = allocator;
    std::string why;
    state->nvtx = device::processNvtx(environment.nvtxInjection, why);
    if (!why.empty())
        log.warning("NVTX_INJECTION64_PATH: no ranges for the profiler: {}", why);
    state->recordFolder = environment.recordFolder;
    if (!state->recordFolder.empty() &&
        core->contents().profilingVerbosity == static_cast<int>(nvinfer1::ProfilingVerbosity::kNONE))
        return invalidState(
            "TENSORWRIGHT_RECORD_TENSORS: the engine keeps nothing of its layers; build it with another "
            "profiling verbosity than kNONE");
    size_t const profiles = std::max<size_t>(core->contents().profiles.size(), 1);
    for (plan::Profile const& p : core->contents().profiles)
        state->ranges.push_back(runtime::symbolRanges(core->graph(), p));
    state->ranges.resize(profiles);
    for (size_t p = 0; p < profiles; ++p)
        for (plan::IoTensor const& t : core->contents().io)
            state->bindingNames.push_back(EngineState::ofProfile(t.name, int(p)));
    for (int i = 0; i < state->ioCount(); ++i) {
        ir::Value const& v = core->ioValue(i);
        constexpr char const* kTypes[] = {"FP32", "FP16", "INT8", "INT32", "BOOL", "UINT8"}; // by number
        if (state->isLayout(i)) {
            state->formatTexts.push_back(dlaFormatWords(core->contents().io[size_t(i)].dlaLayout, kTypes[int(v.type)]));
            continue;
        }
        state->formatTexts.push_back(formatWords(v.format, kTypes[int(v.type)]) + " (" + publicNameOf(v.format) + ")");
    }
    auto engine = std::make_unique<EngineObject>(reporter, std::move(state));
    if (!core->borrowsPlan())
        source->close();
    if (sizeBytes >= kWorthTrimming)
        malloc_trim(0); // of what loading took and gave back
    engine->plan = std::move(source);
    log.info("Loaded engine size: {} MiB", sizeBytes >> 20);
    change.finish(log, "TensorRT-managed allocation in engine deserialization", core->cuda());
    return engine.release();
}

} // namespace tw::api

namespace nvinfer1 {

ICudaEngine* IRuntime::deserializeCudaEngine(void const* blob, std::size_t size) noexcept
{
    return guarded<ICudaEngine*>(objectOf(*this), nullptr, [&](RuntimeObject& r) -> Result<ICudaEngine*> {
        if (!blob)
            return invalidArgument("deserializeCudaEngine: the plan is a null pointer");
        if (dla::isLoadable(blob, size))
            return invalidArgument(
                "deserializeCudaEngine: this is a DLA loadable (EngineCapability::kDLA_STANDALONE), no "
                "engine; cuDLA (libcudla) runs it");
        TW_ASSIGN(auto gpu, currentGpu(r.gpu, r.environment));
        TW_ASSIGN(EngineObject * engine, makeEngine(r.reporter, blob, size, r.environment, r.allocator, std::move(gpu),
                                                    r.maxThreads, {}, r.purpose));
        return engine;
    });
}
ICudaEngine* IRuntime::deserializeCudaEngine(void const* blob, std::size_t size, IPluginFactory* pluginFactory) noexcept
{
    RuntimeObject& r = objectOf(*this);
    if (pluginFactory) {
        r.reporter.error(invalidArgument("deserializeCudaEngine: pluginFactory must be null"));
        return nullptr;
    }
    return deserializeCudaEngine(blob, size);
}

void IRuntime::setDLACore(int32_t dlaCore) noexcept
{
    guardedVoid(objectOf(*this), [&](RuntimeObject& r) -> Result<void> {
        int const cores = dla::coresOf(r.environment.dla);
        if (cores == 0)
            return {}; // as documented
        if (dlaCore < 0 || dlaCore >= cores)
            return invalidArgument("setDLACore: core {} does not exist (allowed: 0..{})", dlaCore, cores - 1);
        r.dlaCore = dlaCore;
        return {};
    });
}
TW_GETTER(IRuntime, int32_t, getDLACore, self.dlaCore)
TW_GETTER(IRuntime, int32_t, getNbDLACores, dla::coresOf(self.environment.dla))
TW_SETTER(IRuntime, IGpuAllocator*, setGpuAllocator, self.allocator = value)
TW_OBJECT_METHODS(IRuntime)

} // namespace nvinfer1

extern "C" void* createInferRuntime_INTERNAL(void* logger, int32_t version) noexcept
{
    using tw::safety::Purpose, tw::safety::kVersionsOfAPurpose;
    int32_t const purpose = version / kVersionsOfAPurpose;
    bool const isPrivate = purpose == int32_t(Purpose::kSafe) || purpose == int32_t(Purpose::kCheck);
    auto* const runtime = static_cast<nvinfer1::IRuntime*>(createObject<nvinfer1::IRuntime, RuntimeObject>(
        logger, isPrivate ? version % kVersionsOfAPurpose : version, "createInferRuntime"));
    if (runtime && isPrivate)
        objectOf(*runtime).purpose = Purpose(purpose);
    return runtime;
}
