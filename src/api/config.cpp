// SPDX-License-Identifier: Apache-2.0
#include "api/config.h"

#include <unistd.h>

#include "api/network.h"
#include "api/stubs.h"

using namespace tw;
using namespace tw::api;

namespace tw::api {

namespace {

size_t machineMemoryBytes()
{
    long const pages = sysconf(_SC_PHYS_PAGES);
    long const pageBytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && pageBytes > 0 ? size_t(pages) * size_t(pageBytes) : size_t(1) << 32;
}

ConfigDevice withMemory(ConfigDevice d)
{
    if (d.memoryBytes == 0)
        d.memoryBytes = machineMemoryBytes();
    return d;
}

} // namespace

BuilderConfigObject::BuilderConfigObject(Reporter const& r, ConfigDevice d)
    : reporter(r), device(withMemory(std::move(d)))
{}

size_t BuilderConfigObject::poolLimit(nvinfer1::MemoryPoolType pool) const
{
    // In the order of MemoryPoolType: workspace, DLA's managed SRAM, local DRAM and global DRAM.
    size_t const defaults[] = {device.memoryBytes, size_t(1) << 20, size_t(1) << 30, size_t(512) << 20};
    size_t const i = static_cast<size_t>(pool);
    return i < poolLimits.size() ? poolLimits[i].value_or(defaults[i]) : 0;
}

} // namespace tw::api

namespace nvinfer1 {

namespace {

BuilderConfigObject& self(IBuilderConfig* c)
{
    return objectOf(*c);
}
BuilderConfigObject const& self(IBuilderConfig const* c)
{
    return objectOf(*c);
}

template <class Enum>
Result<void> checkExists(Enum value, char const* what)
{
    int const number = static_cast<int>(value);
    if (number < 0 || number >= EnumMax<Enum>())
        return invalidArgument(std::string(what) + ": value " + std::to_string(number) +
                               " does not exist (allowed: 0.." + std::to_string(EnumMax<Enum>() - 1) + ")");
    return {};
}

template <class Enum>
Result<void> checkMask(uint32_t mask, char const* what)
{
    if ((mask >> EnumMax<Enum>()) != 0)
        return invalidArgument(std::string(what) + ": mask " + std::to_string(mask) + " has bits that do not exist (" +
                               std::to_string(EnumMax<Enum>()) + " bits are defined)");
    return {};
}

template <class Enum>
constexpr uint32_t bit(Enum value)
{
    return 1u << static_cast<int>(value);
}

Result<void> setIterations(int32_t& field, int32_t value, char const* what)
{
    if (value < 1)
        return invalidArgument(std::string(what) + ": " + std::to_string(value) + " iterations; at least 1 is needed");
    field = value;
    return {};
}

// Takes what no engine of ours can promise out of `flags`: safety, with an error.
BuilderFlags withoutMissing(Reporter& reporter, BuilderFlags flags)
{
    if (flags & bit(BuilderFlag::kSAFETY_SCOPE)) {
        reportStub(reporter, Stub::safety_IBuilderConfig_setFlag, "kSAFETY_SCOPE");
        flags &= ~bit(BuilderFlag::kSAFETY_SCOPE);
    }
    return flags;
}

} // namespace

void IBuilderConfig::setMinTimingIterations(int32_t minTiming) noexcept
{
    guardedVoid(self(this).reporter,
                [&] { return setIterations(self(this).minTimingIterations, minTiming, "setMinTimingIterations"); });
}
int32_t IBuilderConfig::getMinTimingIterations() const noexcept
{
    return self(this).minTimingIterations;
}
void IBuilderConfig::setAvgTimingIterations(int32_t avgTiming) noexcept
{
    guardedVoid(self(this).reporter,
                [&] { return setIterations(self(this).avgTimingIterations, avgTiming, "setAvgTimingIterations"); });
}
int32_t IBuilderConfig::getAvgTimingIterations() const noexcept
{
    return self(this).avgTimingIterations;
}

void IBuilderConfig::setEngineCapability(EngineCapability capability) noexcept
{
    BuilderConfigObject& c = self(this);
    guardedVoid(c.reporter, [&]() -> Result<void> {
        TW_TRY(checkExists(capability, "setEngineCapability"));
        if (capability == EngineCapability::kSAFETY)
            reportStub(c.reporter, Stub::safety_IBuilderConfig_setEngineCapability, "kSAFETY");
        else if (capability == EngineCapability::kDLA_STANDALONE)
            reportStub(c.reporter, Stub::dla_IBuilderConfig_setEngineCapability, "kDLA_STANDALONE");
        else
            c.engineCapability = capability;
        return {};
    });
}
EngineCapability IBuilderConfig::getEngineCapability() const noexcept
{
    return self(this).engineCapability;
}

void IBuilderConfig::setInt8Calibrator(IInt8Calibrator* calibrator) noexcept
{
    self(this).int8Calibrator = calibrator;
}
IInt8Calibrator* IBuilderConfig::getInt8Calibrator() const noexcept
{
    return self(this).int8Calibrator;
}

void IBuilderConfig::setMaxWorkspaceSize(std::size_t workspaceSize) noexcept
{
    setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, workspaceSize);
}
std::size_t IBuilderConfig::getMaxWorkspaceSize() const noexcept
{
    return self(this).poolLimit(MemoryPoolType::kWORKSPACE);
}

void IBuilderConfig::setFlags(BuilderFlags builderFlags) noexcept
{
    BuilderConfigObject& c = self(this);
    guardedVoid(c.reporter, [&]() -> Result<void> {
        TW_TRY(checkMask<BuilderFlag>(builderFlags, "setFlags"));
        c.flags = withoutMissing(c.reporter, builderFlags);
        return {};
    });
}
BuilderFlags IBuilderConfig::getFlags() const noexcept
{
    return self(this).flags;
}
void IBuilderConfig::clearFlag(BuilderFlag builderFlag) noexcept
{
    guardedVoid(self(this).reporter, [&]() -> Result<void> {
        TW_TRY(checkExists(builderFlag, "clearFlag"));
        self(this).flags &= ~bit(builderFlag);
        return {};
    });
}
void IBuilderConfig::setFlag(BuilderFlag builderFlag) noexcept
{
    BuilderConfigObject& c = self(this);
    guardedVoid(c.reporter, [&]() -> Result<void> {
        TW_TRY(checkExists(builderFlag, "setFlag"));
        c.flags = withoutMissing(c.reporter, c.flags | bit(builderFlag));
        return {};
    });
}
bool IBuilderConfig::getFlag(BuilderFlag builderFlag) const noexcept
{
    BuilderConfigObject const& c = self(this);
    return guarded<bool>(c.reporter, false, [&]() -> Result<bool> {
        TW_TRY(checkExists(builderFlag, "getFlag"));
        return c.has(builderFlag);
    });
}

void IBuilderConfig::setDeviceType(ILayer const* layer, DeviceType deviceType) noexcept
{
    BuilderConfigObject& c = self(this);
    guardedVoid(c.reporter, [&]() -> Result<void> {
        if (!layer)
            return invalidArgument("setDeviceType: the layer is a null pointer");
        TW_TRY(checkExists(deviceType, "setDeviceType"));
        if (deviceType == DeviceType::kDLA)
            reportStub(c.reporter, Stub::dla_IBuilderConfig_setDeviceType,
                       "kDLA for layer '" + stateOf(*layer).name + "'");
        else
            c.deviceTypes[layer] = deviceType;
        return {};
    });
}
DeviceType IBuilderConfig::getDeviceType(ILayer const* layer) const noexcept
{
    auto const it = self(this).deviceTypes.find(layer);
    return it == self(this).deviceTypes.end() ? self(this).defaultDeviceType : it->second;
}
bool IBuilderConfig::isDeviceTypeSet(ILayer const* layer) const noexcept
{
    return self(this).deviceTypes.contains(layer);
}
void IBuilderConfig::resetDeviceType(ILayer const* layer) noexcept
{
    self(this).deviceTypes.erase(layer);
}
bool IBuilderConfig::canRunOnDLA(ILayer const*) const noexcept
{
    return false; // there is none: IBuilder::getNbDLACores() is 0
}

void IBuilderConfig::setDLACore(int32_t dlaCore) noexcept
{
    self(this).dlaCore = dlaCore; // no layer runs there: setDeviceType() and setDefaultDeviceType() say so
}
int32_t IBuilderConfig::getDLACore() const noexcept
{
    return self(this).dlaCore;
}
void IBuilderConfig::setDefaultDeviceType(DeviceType deviceType) noexcept
{
    BuilderConfigObject& c = self(this);
    guardedVoid(c.reporter, [&]() -> Result<void> {
        TW_TRY(checkExists(deviceType, "setDefaultDeviceType"));
        if (deviceType == DeviceType::kDLA)
            reportStub(c.reporter, Stub::dla_IBuilderConfig_setDefaultDeviceType, "kDLA");
        else
            c.defaultDeviceType = deviceType;
        return {};
    });
}
DeviceType IBuilderConfig::getDefaultDeviceType() const noexcept
{
    return self(this).defaultDeviceType;
}

void IBuilderConfig::reset() noexcept
{
    static_cast<ConfigSettings&>(self(this)) = ConfigSettings();
}

void IBuilderConfig::setProfileStream(cudaStream_t const stream) noexcept
{
    self(this).profileStream = stream;
}
cudaStream_t IBuilderConfig::getProfileStream() const noexcept
{
    return self(this).profileStream;
}

int32_t IBuilderConfig::addOptimizationProfile(IOptimizationProfile const* profile) noexcept
{
    BuilderConfigObject& c = self(this);
    return guarded<int32_t>(c.reporter, -1, [&]() -> Result<int32_t> {
        if (!profile)
            return invalidArgument("addOptimizationProfile: the profile is a null pointer");
        TW_TRY(objectOf(*profile).validate());
        c.profiles.push_back(&objectOf(*profile));
        return int32_t(c.profiles.size()) - 1;
    });
}
int32_t IBuilderConfig::getNbOptimizationProfiles() const noexcept
{
    return int32_t(self(this).profiles.size());
}

void IBuilderConfig::setProfilingVerbosity(ProfilingVerbosity verbosity) noexcept
{
    guardedVoid(self(this).reporter, [&]() -> Result<void> {
        TW_TRY(checkExists(verbosity, "setProfilingVerbosity"));
        self(this).profilingVerbosity = verbosity;
        return {};
    });
}
ProfilingVerbosity IBuilderConfig::getProfilingVerbosity() const noexcept
{
    return self(this).profilingVerbosity;
}

void IBuilderConfig::setAlgorithmSelector(IAlgorithmSelector* selector) noexcept
{
    self(this).algorithmSelector = selector;
}
IAlgorithmSelector* IBuilderConfig::getAlgorithmSelector() const noexcept
{
    return self(this).algorithmSelector;
}

bool IBuilderConfig::setCalibrationProfile(IOptimizationProfile const* profile) noexcept
{
    BuilderConfigObject& c = self(this);
    return guarded<bool>(c.reporter, false, [&]() -> Result<bool> {
        if (profile)
            TW_TRY(objectOf(*profile).validate());
        c.calibrationProfile = profile ? &objectOf(*profile) : nullptr; // null: the first of the build
        return true;
    });
}
IOptimizationProfile const* IBuilderConfig::getCalibrationProfile() noexcept
{
    return self(this).calibrationProfile;
}

void IBuilderConfig::setQuantizationFlags(QuantizationFlags flags) noexcept
{
    guardedVoid(self(this).reporter, [&]() -> Result<void> {
        TW_TRY(checkMask<QuantizationFlag>(flags, "setQuantizationFlags"));
        self(this).quantizationFlags = flags;
        return {};
    });
}
QuantizationFlags IBuilderConfig::getQuantizationFlags() const noexcept
{
    return self(this).quantizationFlags;
}
void IBuilderConfig::clearQuantizationFlag(QuantizationFlag flag) noexcept
{
    guardedVoid(self(this).reporter, [&]() -> Result<void> {
        TW_TRY(checkExists(flag, "clearQuantizationFlag"));
        self(this).quantizationFlags &= ~bit(flag);
        return {};
    });
}
void IBuilderConfig::setQuantizationFlag(QuantizationFlag flag) noexcept
{
    guardedVoid(self(this).reporter, [&]() -> Result<void> {
        TW_TRY(checkExists(flag, "setQuantizationFlag"));
        self(this).quantizationFlags |= bit(flag);
        return {};
    });
}
bool IBuilderConfig::getQuantizationFlag(QuantizationFlag flag) const noexcept
{
    BuilderConfigObject const& c = self(this);
    return guarded<bool>(c.reporter, false, [&]() -> Result<bool> {
        TW_TRY(checkExists(flag, "getQuantizationFlag"));
        return (c.quantizationFlags & bit(flag)) != 0;
    });
}

bool IBuilderConfig::setTacticSources(TacticSources tacticSources) noexcept
{
    BuilderConfigObject& c = self(this);
    return guarded<bool>(c.reporter, false, [&]() -> Result<bool> {
        TW_TRY(checkMask<TacticSource>(tacticSources, "setTacticSources"));
        c.tacticSources = tacticSources;
        return true;
    });
}
TacticSources IBuilderConfig::getTacticSources() const noexcept
{
    return self(this).tacticSources;
}

ITimingCache* IBuilderConfig::createTimingCache(void const* blob, std::size_t size) const noexcept
{
    BuilderConfigObject const& c = self(this);
    return guarded<ITimingCache*>(c.reporter, nullptr, [&]() -> Result<ITimingCache*> {
        TW_ASSIGN(auto loaded, tune::TimingCache::deserialize(blob, size, c.device.fingerprint));
        if (!loaded.warning.empty())
            c.reporter.warning(loaded.warning);
        return new TimingCacheObject(c.reporter, std::move(loaded.cache));
    });
}
bool IBuilderConfig::setTimingCache(ITimingCache const& cache, bool ignoreMismatch) noexcept
{
    BuilderConfigObject& c = self(this);
    return guarded<bool>(c.reporter, false, [&]() -> Result<bool> {
        std::string const from = objectOf(cache).cache->fingerprint();
        if (from != c.device.fingerprint && !ignoreMismatch) {
            // No error: the build goes on and measures anew.
            c.reporter.warning("setTimingCache: the cache was measured on '" + from + "', this device is '" +
                               c.device.fingerprint + "'; it is not used (ignoreMismatch would add to it)");
            return false;
        }
        c.timingCache = &objectOf(cache);
        return true;
    });
}
ITimingCache const* IBuilderConfig::getTimingCache() const noexcept
{
    return self(this).timingCache;
}

void IBuilderConfig::setMemoryPoolLimit(MemoryPoolType pool, std::size_t poolSize) noexcept
{
    BuilderConfigObject& c = self(this);
    guardedVoid(c.reporter, [&]() -> Result<void> {
        TW_TRY(checkExists(pool, "setMemoryPoolLimit"));
        c.poolLimits[static_cast<size_t>(pool)] = poolSize;
        return {};
    });
}
std::size_t IBuilderConfig::getMemoryPoolLimit(MemoryPoolType pool) const noexcept
{
    BuilderConfigObject const& c = self(this);
    return guarded<size_t>(c.reporter, 0, [&]() -> Result<size_t> {
        TW_TRY(checkExists(pool, "getMemoryPoolLimit"));
        return c.poolLimit(pool);
    });
}

void IBuilderConfig::setPreviewFeature(PreviewFeature feature, bool enable) noexcept
{
    BuilderConfigObject& c = self(this);
    guardedVoid(c.reporter, [&]() -> Result<void> {
        TW_TRY(checkExists(feature, "setPreviewFeature"));
        c.previewFeatures = enable ? c.previewFeatures | bit(feature) : c.previewFeatures & ~bit(feature);
        return {};
    });
}
bool IBuilderConfig::getPreviewFeature(PreviewFeature feature) const noexcept
{
    BuilderConfigObject const& c = self(this);
    return guarded<bool>(c.reporter, false, [&]() -> Result<bool> {
        TW_TRY(checkExists(feature, "getPreviewFeature"));
        return (c.previewFeatures & bit(feature)) != 0;
    });
}

} // namespace nvinfer1
