// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "network.h"
#include "precision_edit.h"

namespace tw::trtexec {

namespace {

using nvinfer1::BuilderFlag;
using nvinfer1::DataType;
using nvinfer1::IBuilderConfig;
using nvinfer1::INetworkDefinition;

void setFlag(Log& log, IBuilderConfig& config, BuilderFlag flag, std::string const& option)
{
    libraryStep(log, option, [&] { config.setFlag(flag); });
    if (!config.getFlag(flag))
        throw Failure(option + ": the library does not take this builder flag");
}

IoFormat const& formatAt(std::vector<IoFormat> const& formats, int32_t index)
{
    return formats[formats.size() == 1 ? 0 : static_cast<size_t>(index)];
}

void checkCount(char const* option, size_t given, int32_t tensors)
{
    if (given > 1 && given != static_cast<size_t>(tensors))
        throw Failure(
            fmt::format("{}: {} entries for {} tensors (allowed: 1, or one for each)", option, given, tensors));
}

constexpr uint32_t kLinearOnly = 1u << static_cast<int32_t>(nvinfer1::TensorFormat::kLINEAR);

size_t poolBytes(double mib)
{
    return static_cast<size_t>(mib * (1 << 20));
}

void applyPools(Log& log, IBuilderConfig& config, BuildOptions const& build)
{
    using nvinfer1::MemoryPoolType;
    std::pair<MemoryPoolType, double> const pools[] = {{MemoryPoolType::kWORKSPACE, build.workspaceMiB},
                                                       {MemoryPoolType::kDLA_MANAGED_SRAM, build.dlaSramMiB},
                                                       {MemoryPoolType::kDLA_LOCAL_DRAM, build.dlaLocalDramMiB},
                                                       {MemoryPoolType::kDLA_GLOBAL_DRAM, build.dlaGlobalDramMiB}};
    for (auto const& [pool, mib] : pools)
        if (mib >= 0)
            libraryStep(log, "--memPoolSize",
                        [&, pool = pool, mib = mib] { config.setMemoryPoolLimit(pool, poolBytes(mib)); });
}

void applyPrecisionFlags(Log& log, IBuilderConfig& config, BuildOptions const& build)
{
    if (!build.tf32)
        libraryStep(log, "--noTF32", [&] { config.clearFlag(BuilderFlag::kTF32); });
    if (build.fp16)
        setFlag(log, config, BuilderFlag::kFP16, "--fp16");
    if (build.int8)
        setFlag(log, config, BuilderFlag::kINT8, "--int8");
    if (build.constraints == PrecisionConstraints::kObey)
        setFlag(log, config, BuilderFlag::kOBEY_PRECISION_CONSTRAINTS, "--precisionConstraints=obey");
    if (build.constraints == PrecisionConstraints::kPrefer)
        setFlag(log, config, BuilderFlag::kPREFER_PRECISION_CONSTRAINTS, "--precisionConstraints=prefer");
}

void applySafety(Log& log, IBuilderConfig& config, BuildOptions const& build, SystemOptions const& system)
{
    using nvinfer1::EngineCapability;
    if (build.restricted)
        setFlag(log, config, BuilderFlag::kSAFETY_SCOPE, "--restricted");
    if (!build.safe)
        return;
    EngineCapability const capability =
        system.dlaCore >= 0 ? EngineCapability::kDLA_STANDALONE : EngineCapability::kSAFETY;
    libraryStep(log, "--safe", [&] { config.setEngineCapability(capability); });
    if (config.getEngineCapability() != capability)
        throw Failure("--safe: the library does not take this engine capability");
}

void applyTacticSources(Log& log, IBuilderConfig& config, BuildOptions const& build)
{
    if (build.tacticSourcesOn == 0 && build.tacticSourcesOff == 0)
        return;
    uint32_t const sources = (config.getTacticSources() | build.tacticSourcesOn) & ~build.tacticSourcesOff;
    libraryStep(log, "--tacticSources", [&] {
        if (!config.setTacticSources(sources))
            throw Failure("--tacticSources: the library refuses this set");
    });
}

void applyDla(Log& log, int32_t cores, IBuilderConfig& config, BuildOptions const& build, SystemOptions const& system)
{
    if (system.dlaCore < 0)
        return;
    checkDlaCore(system, cores);
    libraryStep(log, "--useDLACore", [&] {
        config.setDefaultDeviceType(nvinfer1::DeviceType::kDLA);
        config.setDLACore(system.dlaCore);
    });
    setFlag(log, config, BuilderFlag::kPREFER_PRECISION_CONSTRAINTS, "--useDLACore");
    if (system.gpuFallback)
        setFlag(log, config, BuilderFlag::kGPU_FALLBACK, "--allowGPUFallback");
    else
        setFlag(log, config, BuilderFlag::kDIRECT_IO, "--useDLACore");
    if (!build.int8)
        setFlag(log, config, BuilderFlag::kFP16, "--useDLACore");
}

// The last entry that names the layer, else the last "*".
template <class T>
T const* entryFor(std::vector<std::pair<std::string, T>> const& entries, std::string const& layer)
{
    T const* star = nullptr;
    T const* own = nullptr;
    for (auto const& [name, value] : entries) {
        if (name == "*")
            star = &value;
        if (name == layer)
            own = &value;
    }
    return own ? own : star;
}

template <class T>
void warnUnmatched(Log& log, INetworkDefinition const& network, char const* option,
                   std::vector<std::pair<std::string, T>> const& entries)
{
    for (auto const& [name, value] : entries) {
        bool found = name == "*";
        for (int32_t i = 0; i < network.getNbLayers() && !found; ++i)
            found = name == network.getLayer(i)->getName();
        if (!found)
            log.warning(std::string(option) + ": the network has no layer '" + name + "'");
    }
}

// A layer whose values are shapes or indices stays in INT32: "*" is meant for the arithmetic of the model.
bool keepsItsType(nvinfer1::ILayer const& layer)
{
    using nvinfer1::LayerType;
    LayerType const type = layer.getType();
    if (type == LayerType::kSHAPE || type == LayerType::kCONSTANT || type == LayerType::kPLUGIN ||
        type == LayerType::kPLUGIN_V2)
        return true;
    for (int32_t i = 0; i < layer.getNbOutputs(); ++i) {
        nvinfer1::ITensor const* out = layer.getOutput(i);
        if (out && (out->getType() == DataType::kINT32 || out->getType() == DataType::kBOOL))
            return true;
    }
    return false;
}

void applyLayerConstraints(Log& log, INetworkDefinition& network, IBuilderConfig& config, BuildOptions const& build)
{
    warnUnmatched(log, network, "--layerPrecisions", build.layerPrecisions);
    warnUnmatched(log, network, "--layerOutputTypes", build.layerOutputTypes);
    warnUnmatched(log, network, "--layerDeviceTypes", build.layerDevices);
    for (int32_t i = 0; i < network.getNbLayers(); ++i) {
        nvinfer1::ILayer* layer = network.getLayer(i);
        std::string const name = layer->getName();
        auto const named = [&](auto const& entries) {
            return std::any_of(entries.begin(), entries.end(), [&](auto const& e) { return e.first == name; });
        };
        TensorType const* precision = entryFor(build.layerPrecisions, name);
        if (precision && (named(build.layerPrecisions) || !keepsItsType(*layer)))
            libraryStep(log, "--layerPrecisions for '" + name + "'",
                        [&] { layer->setPrecision(static_cast<DataType>(*precision)); });
        std::vector<TensorType> const* types = entryFor(build.layerOutputTypes, name);
        if (types && (named(build.layerOutputTypes) || !keepsItsType(*layer))) {
            int32_t const outputs = layer->getNbOutputs();
            if (types->size() > 1 && types->size() != static_cast<size_t>(outputs))
                throw Failure(fmt::format("--layerOutputTypes: {} types for layer '{}' with {} output(s)",
                                          types->size(), name, outputs));
            for (int32_t k = 0; k < outputs; ++k) {
                TensorType const type = (*types)[types->size() == 1 ? 0 : static_cast<size_t>(k)];
                libraryStep(log, "--layerOutputTypes for '" + name + "'",
                            [&] { layer->setOutputType(k, static_cast<DataType>(type)); });
            }
        }
        if (LayerDevice const* device = entryFor(build.layerDevices, name))
            libraryStep(log, "--layerDeviceTypes for '" + name + "'",
                        [&] { config.setDeviceType(layer, static_cast<nvinfer1::DeviceType>(*device)); });
    }
}

// INT8 without a calibration cache: dummy ranges, good for timing and for nothing else.
void applyDummyRanges(Log& log, INetworkDefinition& network)
{
    constexpr float kInputRange = 2;
    constexpr float kOutputRange = 4;
    log.info(
        "INT8 without --calib and without Q/DQ layers: every tensor gets a dummy dynamic range, so that results say "
        "nothing about accuracy");
    auto const give = [](nvinfer1::ITensor* tensor, float range) {
        if (tensor && !tensor->dynamicRangeIsSet())
            tensor->setDynamicRange(-range, range);
    };
    libraryStep(log, "Setting dynamic ranges", [&] {
        for (int32_t i = 0; i < network.getNbLayers(); ++i) {
            nvinfer1::ILayer* layer = network.getLayer(i);
            for (int32_t k = 0; k < layer->getNbInputs(); ++k)
                give(layer->getInput(k), kInputRange);
            for (int32_t k = 0; k < layer->getNbOutputs(); ++k)
                give(layer->getOutput(k), kOutputRange);
        }
    });
}

} // namespace

void checkDlaCore(SystemOptions const& system, int32_t cores)
{
    if (system.dlaCore >= cores)
        throw Failure(
            fmt::format("--useDLACore={}: there are {} DLA cores{}", system.dlaCore, cores,
                        cores > 0 ? "" : " here; --dlaModel=orin or xavier models a DLA on the present device"));
}

void applyIoFormats(INetworkDefinition& network, BuildOptions const& build)
{
    checkCount("--inputIOFormats", build.inputFormats.size(), network.getNbInputs());
    checkCount("--outputIOFormats", build.outputFormats.size(), network.getNbOutputs());
    for (int32_t i = 0; i < network.getNbInputs(); ++i) {
        nvinfer1::ITensor* input = network.getInput(i);
        if (!build.inputFormats.empty()) {
            IoFormat const& format = formatAt(build.inputFormats, i);
            input->setType(static_cast<DataType>(format.type));
            input->setAllowedFormats(format.formats);
            continue;
        }
        if (input->getType() == DataType::kINT8)
            input->setType(DataType::kFLOAT);
        input->setAllowedFormats(kLinearOnly);
    }
    for (int32_t i = 0; i < network.getNbOutputs(); ++i) {
        nvinfer1::ITensor* output = network.getOutput(i);
        if (build.outputFormats.empty()) {
            output->setAllowedFormats(kLinearOnly);
            continue;
        }
        IoFormat const& format = formatAt(build.outputFormats, i);
        output->setType(static_cast<DataType>(format.type));
        output->setAllowedFormats(format.formats);
    }
}

void applyBuildOptions(Log& log, ParsedNetwork& parsed, nvinfer1::IBuilder& builder, IBuilderConfig& config,
                       BuildOptions const& build, SystemOptions const& system)
{
    INetworkDefinition& network = *parsed.network;
    if (network.hasImplicitBatchDimension())
        libraryStep(log, "--maxBatch", [&] { builder.setMaxBatchSize(build.maxBatch); });
    applyPools(log, config, build);
    libraryStep(log, "--minTiming", [&] { config.setMinTimingIterations(build.minTiming); });
    libraryStep(log, "--avgTiming", [&] { config.setAvgTimingIterations(build.avgTiming); });
    libraryStep(log, "--profilingVerbosity",
                [&] { config.setProfilingVerbosity(static_cast<nvinfer1::ProfilingVerbosity>(build.profiling)); });
    applyPrecisionFlags(log, config, build);
    if (build.refit)
        setFlag(log, config, BuilderFlag::kREFIT, "--refit");
    if (build.sparsity != Sparsity::kDisable)
        setFlag(log, config, BuilderFlag::kSPARSE_WEIGHTS, "--sparsity");
    if (build.sparsity == Sparsity::kForce)
        forceSparseWeights(log, parsed);
    if (build.directIo)
        setFlag(log, config, BuilderFlag::kDIRECT_IO, "--directIO");
    if (build.heuristic)
        setFlag(log, config, BuilderFlag::kENABLE_TACTIC_HEURISTIC, "--heuristic");
    if (build.timingCacheMode == TimingCacheMode::kDisable)
        setFlag(log, config, BuilderFlag::kDISABLE_TIMING_CACHE, "--noBuilderCache");
    applySafety(log, config, build, system);
    applyTacticSources(log, config, build);
    for (auto const& [feature, on] : build.previewFeatures)
        libraryStep(log, "--preview", [&, feature = feature, on = on] {
            config.setPreviewFeature(static_cast<nvinfer1::PreviewFeature>(feature), on);
        });
    applyDla(log, builder.getNbDLACores(), config, build, system);
    applyLayerConstraints(log, network, config, build);
    if (build.int8 && build.calibration.empty() && !hasExplicitQuantization(network))
        applyDummyRanges(log, network);
}

} // namespace tw::trtexec
