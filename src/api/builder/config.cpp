// SPDX-License-Identifier: Apache-2.0
#include "api/builder/config.h"

#include <unistd.h>

#include "api/builder/dla.h"
#include "api/network/network.h"
#include "api/report.h"

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
    size_t const defaults[] = {device.memoryBytes, dla::sramBytesOf(device.dla), dla::kLocalDramBytes,
                               dla::kGlobalDramBytes};
    size_t const i = static_cast<size_t>(pool);
    return i < poolLimits.size() ? poolLimits[i].value_or(defaults[i]) : 0;
}

} // namespace tw::api

namespace nvinfer1 {

namespace {

template <class Enum>
Result<void> checkExists(Enum value, char const* what)
{
    int const number = static_cast<int>(value);
    if (number < 0 || number >= EnumMax<Enum>())
        return invalidArgument("{}: value {} does not exist (allowed: 0..{})", what, number, EnumMax<Enum>() - 1);
    return {};
}

template <class Enum>
Result<void> checkMask(uint32_t mask, char const* what)
{
    if ((mask >> EnumMax<Enum>()) != 0)
        return invalidArgument("{}: mask {} has bits that do not exist ({} bits are defined)", what, mask,
                               EnumMax<Enum>());
    return {};
}

template <class Enum>
constexpr uint32_t bit(Enum value)
{
    return 1u << static_cast<int>(value);
}

Result<void> checkIterations(int32_t value, char const* what)
{
    if (value < 1)
        return invalidArgument("{}: {} iterations; at least 1 is needed", what, value);
    return {};
}

// One bit of a mask.
template <class Enum>
void setBit(BuilderConfigObject& c, uint32_t& mask, Enum which, bool isOn, char const* method) noexcept
{
    guardedVoid(c.reporter, [&]() -> Result<void> {
        TW_TRY(checkExists(which, method));
        mask = isOn ? mask | bit(which) : mask & ~bit(which);
        return {};
    });
}
template <class Enum>
bool hasBit(BuilderConfigObject const& c, uint32_t mask, Enum which, char const* method) noexcept
{
    return guarded<bool>(c.reporter, false, [&]() -> Result<bool> {
        TW_TRY(checkExists(which, method));
        return (mask & bit(which)) != 0;
    });
}

} // namespace

TW_PROPERTY(IBuilderConfig, int32_t, setMinTimingIterations, getMinTimingIterations, minTimingIterations,
            checkIterations(value, "setMinTimingIterations"))
TW_PROPERTY(IBuilderConfig, int32_t, setAvgTimingIterations, getAvgTimingIterations, avgTimingIterations,
            checkIterations(value, "setAvgTimingIterations"))

void IBuilderConfig::setEngineCapability(EngineCapability capability) noexcept
{
    guardedVoid(objectOf(*this), [&](BuilderConfigObject& c) -> Result<void> {
        TW_TRY(checkExists(capability, "setEngineCapability"));
        c.engineCapability = capability;
        return {};
    });
}
TW_GETTER(IBuilderConfig, EngineCapability, getEngineCapability, self.engineCapability)

TW_PROPERTY(IBuilderConfig, IInt8Calibrator*, setInt8Calibrator, getInt8Calibrator, int8Calibrator)

void IBuilderConfig::setMaxWorkspaceSize(std::size_t workspaceSize) noexcept
{
    setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, workspaceSize);
}
TW_GETTER(IBuilderConfig, std::size_t, getMaxWorkspaceSize, self.poolLimit(MemoryPoolType::kWORKSPACE))

TW_SETTER(IBuilderConfig, BuilderFlags, setFlags,
          setField(self, self.flags, value, [&] { return checkMask<BuilderFlag>(value, "setFlags"); }))
TW_GETTER(IBuilderConfig, BuilderFlags, getFlags, self.flags)
TW_SETTER(IBuilderConfig, BuilderFlag, clearFlag, setBit(self, self.flags, value, false, "clearFlag"))
TW_SETTER(IBuilderConfig, BuilderFlag, setFlag, setBit(self, self.flags, value, true, "setFlag"))
bool IBuilderConfig::getFlag(BuilderFlag builderFlag) const noexcept
{
    BuilderConfigObject const& c = objectOf(*this);
    return hasBit(c, c.flags, builderFlag, "getFlag");
}

void IBuilderConfig::setDeviceType(ILayer const* layer, DeviceType deviceType) noexcept
{
    guardedVoid(objectOf(*this), [&](BuilderConfigObject& c) -> Result<void> {
        if (!layer)
            return invalidArgument("setDeviceType: the layer is a null pointer");
        TW_TRY(checkExists(deviceType, "setDeviceType"));
        c.deviceTypes[layer] = deviceType;
        return {};
    });
}
DeviceType IBuilderConfig::getDeviceType(ILayer const* layer) const noexcept
{
    auto const it = objectOf(*this).deviceTypes.find(layer);
    return it == objectOf(*this).deviceTypes.end() ? objectOf(*this).defaultDeviceType : it->second;
}
bool IBuilderConfig::isDeviceTypeSet(ILayer const* layer) const noexcept
{
    return objectOf(*this).deviceTypes.contains(layer);
}
void IBuilderConfig::resetDeviceType(ILayer const* layer) noexcept
{
    objectOf(*this).deviceTypes.erase(layer);
}
bool IBuilderConfig::canRunOnDLA(ILayer const* layer) const noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](BuilderConfigObject const& c) -> Result<bool> {
        if (!layer || c.device.dla == dla::Model::kNone)
            return false;
        dla::Verdict const verdict = verdictOf(*layer, c);
        for (dla::Finding const& f : verdict.findings)
            c.reporter.verbose(wordsOf(*layer, f));
        return verdict.canRun();
    });
}

void IBuilderConfig::setDLACore(int32_t dlaCore) noexcept
{
    guardedVoid(objectOf(*this), [&](BuilderConfigObject& c) -> Result<void> {
        int const cores = dla::coresOf(c.device.dla);
        if (cores == 0)
            return {}; // as documented
        if (dlaCore < -1 || dlaCore >= cores)
            return invalidArgument("setDLACore: core {} does not exist (allowed: 0..{}, or -1 for none)", dlaCore,
                                   cores - 1);
        c.dlaCore = dlaCore;
        return {};
    });
}
TW_GETTER(IBuilderConfig, int32_t, getDLACore, self.dlaCore)
void IBuilderConfig::setDefaultDeviceType(DeviceType deviceType) noexcept
{
    guardedVoid(objectOf(*this), [&](BuilderConfigObject& c) -> Result<void> {
        TW_TRY(checkExists(deviceType, "setDefaultDeviceType"));
        c.defaultDeviceType = deviceType;
        return {};
    });
}
TW_GETTER(IBuilderConfig, DeviceType, getDefaultDeviceType, self.defaultDeviceType)

void IBuilderConfig::reset() noexcept
{
    static_cast<ConfigSettings&>(objectOf(*this)) = ConfigSettings();
}

TW_SETTER(IBuilderConfig, cudaStream_t const, setProfileStream, self.profileStream = value)
TW_GETTER(IBuilderConfig, cudaStream_t, getProfileStream, self.profileStream)

int32_t IBuilderConfig::addOptimizationProfile(IOptimizationProfile const* profile) noexcept
{
    return guarded<int32_t>(objectOf(*this), -1, [&](BuilderConfigObject& c) -> Result<int32_t> {
        if (!profile)
            return invalidArgument("addOptimizationProfile: the profile is a null pointer");
        TW_TRY(objectOf(*profile).validate());
        c.profiles.push_back(&objectOf(*profile));
        return int32_t(c.profiles.size()) - 1;
    });
}
TW_GETTER(IBuilderConfig, int32_t, getNbOptimizationProfiles, int32_t(self.profiles.size()))

TW_PROPERTY(IBuilderConfig, ProfilingVerbosity, setProfilingVerbosity, getProfilingVerbosity, profilingVerbosity,
            checkExists(value, "setProfilingVerbosity"))
TW_PROPERTY(IBuilderConfig, IAlgorithmSelector*, setAlgorithmSelector, getAlgorithmSelector, algorithmSelector)

bool IBuilderConfig::setCalibrationProfile(IOptimizationProfile const* profile) noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](BuilderConfigObject& c) -> Result<bool> {
        if (profile)
            TW_TRY(objectOf(*profile).validate());
        c.calibrationProfile = profile ? &objectOf(*profile) : nullptr; // null: the first of the build
        return true;
    });
}
IOptimizationProfile const* IBuilderConfig::getCalibrationProfile() noexcept
{
    return objectOf(*this).calibrationProfile;
}

TW_PROPERTY(IBuilderConfig, QuantizationFlags, setQuantizationFlags, getQuantizationFlags, quantizationFlags,
            checkMask<QuantizationFlag>(value, "setQuantizationFlags"))
TW_SETTER(IBuilderConfig, QuantizationFlag, clearQuantizationFlag,
          setBit(self, self.quantizationFlags, value, false, "clearQuantizationFlag"))
TW_SETTER(IBuilderConfig, QuantizationFlag, setQuantizationFlag,
          setBit(self, self.quantizationFlags, value, true, "setQuantizationFlag"))
bool IBuilderConfig::getQuantizationFlag(QuantizationFlag flag) const noexcept
{
    BuilderConfigObject const& c = objectOf(*this);
    return hasBit(c, c.quantizationFlags, flag, "getQuantizationFlag");
}

bool IBuilderConfig::setTacticSources(TacticSources tacticSources) noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](BuilderConfigObject& c) -> Result<bool> {
        TW_TRY(checkMask<TacticSource>(tacticSources, "setTacticSources"));
        c.tacticSources = tacticSources;
        return true;
    });
}
TW_GETTER(IBuilderConfig, TacticSources, getTacticSources, self.tacticSources)

ITimingCache* IBuilderConfig::createTimingCache(void const* blob, std::size_t size) const noexcept
{
    return guarded<ITimingCache*>(objectOf(*this), nullptr, [&](BuilderConfigObject const& c) -> Result<ITimingCache*> {
        TW_ASSIGN(auto loaded, tune::TimingCache::deserialize(blob, size, c.device.fingerprint));
        if (!loaded.warning.empty())
            c.reporter.warning(loaded.warning);
        return new TimingCacheObject(c.reporter, std::move(loaded.cache));
    });
}
bool IBuilderConfig::setTimingCache(ITimingCache const& cache, bool ignoreMismatch) noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](BuilderConfigObject& c) -> Result<bool> {
        std::string const from = objectOf(cache).cache->fingerprint();
        if (from != c.device.fingerprint && !ignoreMismatch) {
            // No error: the build goes on and measures anew.
            c.reporter.warning("setTimingCache: the cache was measured on '{}', this device is '{}'; it is not used "
                               "(ignoreMismatch would add to it)",
                               from, c.device.fingerprint);
            return false;
        }
        c.timingCache = &objectOf(cache);
        return true;
    });
}
TW_GETTER(IBuilderConfig, ITimingCache const*, getTimingCache, self.timingCache)

void IBuilderConfig::setMemoryPoolLimit(MemoryPoolType pool, std::size_t poolSize) noexcept
{
    guardedVoid(objectOf(*this), [&](BuilderConfigObject& c) -> Result<void> {
        TW_TRY(checkExists(pool, "setMemoryPoolLimit"));
        c.poolLimits[static_cast<size_t>(pool)] = poolSize;
        return {};
    });
}
std::size_t IBuilderConfig::getMemoryPoolLimit(MemoryPoolType pool) const noexcept
{
    return guarded<size_t>(objectOf(*this), 0, [&](BuilderConfigObject const& c) -> Result<size_t> {
        TW_TRY(checkExists(pool, "getMemoryPoolLimit"));
        return c.poolLimit(pool);
    });
}

void IBuilderConfig::setPreviewFeature(PreviewFeature feature, bool enable) noexcept
{
    BuilderConfigObject& c = objectOf(*this);
    setBit(c, c.previewFeatures, feature, enable, "setPreviewFeature");
}
bool IBuilderConfig::getPreviewFeature(PreviewFeature feature) const noexcept
{
    BuilderConfigObject const& c = objectOf(*this);
    return hasBit(c, c.previewFeatures, feature, "getPreviewFeature");
}

} // namespace nvinfer1
