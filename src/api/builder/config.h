// SPDX-License-Identifier: Apache-2.0
// IBuilderConfig: a plain struct of settings, read by the builder.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "api/builder/profile.h"
#include "api/property.h"
#include "dla/model.h"
#include "tune/timing_cache.h"

namespace tw::api {

struct TimingCacheObject final : nvinfer1::ITimingCache
{
    TimingCacheObject(Reporter const& r, std::shared_ptr<tune::TimingCache> c) : reporter(r), cache(std::move(c)) {}
    mutable Reporter reporter;
    std::shared_ptr<tune::TimingCache> cache; // never null; the builder adds to it, although 8.5 passes it as const
};

TW_OBJECT(nvinfer1::ITimingCache, TimingCacheObject)

// Every setting with its documented default.
struct ConfigSettings
{
    int32_t minTimingIterations = 1;
    int32_t avgTimingIterations = 1;
    nvinfer1::EngineCapability engineCapability = nvinfer1::EngineCapability::kSTANDARD;
    nvinfer1::IInt8Calibrator* int8Calibrator = nullptr;
    nvinfer1::IAlgorithmSelector* algorithmSelector = nullptr;
    nvinfer1::BuilderFlags flags = 1u << static_cast<int>(nvinfer1::BuilderFlag::kTF32);
    // Bytes by MemoryPoolType; unset pools have their default.
    std::array<std::optional<size_t>, 4> poolLimits;
    std::map<nvinfer1::ILayer const*, nvinfer1::DeviceType> deviceTypes;
    nvinfer1::DeviceType defaultDeviceType = nvinfer1::DeviceType::kGPU;
    int32_t dlaCore = -1;
    cudaStream_t profileStream = nullptr;
    std::vector<OptimizationProfileObject const*> profiles; // owned by the builder
    OptimizationProfileObject const* calibrationProfile = nullptr;
    nvinfer1::ProfilingVerbosity profilingVerbosity = nvinfer1::ProfilingVerbosity::kLAYER_NAMES_ONLY;
    nvinfer1::QuantizationFlags quantizationFlags = 0;
    nvinfer1::TacticSources tacticSources = (1u << nvinfer1::EnumMax<nvinfer1::TacticSource>()) - 1;
    TimingCacheObject const* timingCache = nullptr; // the user's; null: the builder makes one for itself
    uint32_t previewFeatures = 0;                   // bit i: PreviewFeature i

    bool has(nvinfer1::BuilderFlag f) const { return (flags >> static_cast<int>(f) & 1) != 0; }
};

// What a config knows of the device that the builder builds for.
struct ConfigDevice
{
    std::string fingerprint; // of timing caches
    size_t memoryBytes = 0;  // 0: all memory of this machine
    dla::Model dla = dla::Model::kNone;
};

struct BuilderConfigObject final : nvinfer1::IBuilderConfig, ConfigSettings
{
    explicit BuilderConfigObject(Reporter const& r, ConfigDevice d = {});
    size_t poolLimit(nvinfer1::MemoryPoolType pool) const;

    mutable Reporter reporter;
    ConfigDevice const device;
};

TW_OBJECT(nvinfer1::IBuilderConfig, BuilderConfigObject)

} // namespace tw::api
