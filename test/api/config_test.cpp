// SPDX-License-Identifier: Apache-2.0
#include "api/builder/config.h"

#include <gtest/gtest.h>

#include "api/client.h"

using namespace nvinfer1;
using namespace tw::test;

namespace {

struct Config : testing::Test
{
    KeepingLogger logger;
    CountingRecorder recorder;
    tw::api::Reporter reporter{&logger, &recorder};
    tw::api::BuilderConfigObject object{reporter, {"cpu: test", size_t(7) << 30}};
    IBuilderConfig& config = object;
};

TEST_F(Config, Defaults)
{
    EXPECT_EQ(config.getMinTimingIterations(), 1);
    EXPECT_EQ(config.getAvgTimingIterations(), 1);
    EXPECT_EQ(config.getEngineCapability(), EngineCapability::kSTANDARD);
    EXPECT_EQ(config.getInt8Calibrator(), nullptr);
    EXPECT_EQ(config.getFlags(), 1u << int(BuilderFlag::kTF32));
    EXPECT_TRUE(config.getFlag(BuilderFlag::kTF32));
    EXPECT_FALSE(config.getFlag(BuilderFlag::kFP16));
    EXPECT_EQ(config.getDLACore(), -1);
    EXPECT_EQ(config.getDefaultDeviceType(), DeviceType::kGPU);
    EXPECT_EQ(config.getProfileStream(), nullptr);
    EXPECT_EQ(config.getNbOptimizationProfiles(), 0);
    EXPECT_EQ(config.getProfilingVerbosity(), ProfilingVerbosity::kLAYER_NAMES_ONLY);
    EXPECT_EQ(config.getAlgorithmSelector(), nullptr);
    EXPECT_EQ(config.getCalibrationProfile(), nullptr);
    EXPECT_EQ(config.getQuantizationFlags(), 0u);
    EXPECT_EQ(config.getTimingCache(), nullptr);
    EXPECT_EQ(config.getMemoryPoolLimit(MemoryPoolType::kWORKSPACE), size_t(7) << 30);
    EXPECT_EQ(config.getMaxWorkspaceSize(), size_t(7) << 30);
    EXPECT_EQ(config.getMemoryPoolLimit(MemoryPoolType::kDLA_MANAGED_SRAM), size_t(1) << 20);
    EXPECT_EQ(config.getMemoryPoolLimit(MemoryPoolType::kDLA_LOCAL_DRAM), size_t(1) << 30);
    EXPECT_EQ(config.getMemoryPoolLimit(MemoryPoolType::kDLA_GLOBAL_DRAM), size_t(512) << 20);
    EXPECT_FALSE(config.getPreviewFeature(PreviewFeature::kDISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805));
    EXPECT_TRUE(logger.lines.empty());
}

TEST_F(Config, DefaultWorkspaceIsTheMachinesMemory)
{
    tw::api::BuilderConfigObject other(reporter);
    EXPECT_GT(static_cast<IBuilderConfig&>(other).getMemoryPoolLimit(MemoryPoolType::kWORKSPACE), size_t(64) << 20);
}

TEST_F(Config, Flags)
{
    config.setFlag(BuilderFlag::kFP16);
    EXPECT_TRUE(config.getFlag(BuilderFlag::kFP16));
    config.clearFlag(BuilderFlag::kTF32);
    EXPECT_EQ(config.getFlags(), 1u << int(BuilderFlag::kFP16));
    config.setFlags(1u << int(BuilderFlag::kINT8));
    EXPECT_FALSE(config.getFlag(BuilderFlag::kFP16));
    EXPECT_TRUE(config.getFlag(BuilderFlag::kINT8));
    EXPECT_TRUE(logger.lines.empty());

    config.setFlag(static_cast<BuilderFlag>(15));
    config.setFlag(static_cast<BuilderFlag>(-1));
    config.setFlags(1u << 15);
    EXPECT_FALSE(config.getFlag(static_cast<BuilderFlag>(40)));
    EXPECT_EQ(logger.errors(), 4);
    EXPECT_EQ(recorder.getNbErrors(), 4);
    EXPECT_EQ(recorder.getErrorCode(0), ErrorCode::kINVALID_ARGUMENT);
    EXPECT_EQ(config.getFlags(), 1u << int(BuilderFlag::kINT8));
}

TEST_F(Config, EveryFlagIsKept)
{
    for (int i = 0; i < EnumMax<BuilderFlag>(); ++i) {
        config.setFlag(BuilderFlag(i));
        EXPECT_TRUE(config.getFlag(BuilderFlag(i))) << i;
    }
    EXPECT_TRUE(logger.lines.empty());
}

TEST_F(Config, MemoryPools)
{
    config.setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, 12345);
    EXPECT_EQ(config.getMaxWorkspaceSize(), 12345u);
    config.setMaxWorkspaceSize(0);
    EXPECT_EQ(config.getMemoryPoolLimit(MemoryPoolType::kWORKSPACE), 0u);
    config.setMemoryPoolLimit(MemoryPoolType::kDLA_LOCAL_DRAM, 8192);
    EXPECT_EQ(config.getMemoryPoolLimit(MemoryPoolType::kDLA_LOCAL_DRAM), 8192u);
    EXPECT_EQ(logger.errors(), 0);
    // Only loadables of DLAs need powers of two: the build of one says so.
    config.setMemoryPoolLimit(MemoryPoolType::kDLA_GLOBAL_DRAM, 8193);
    EXPECT_EQ(config.getMemoryPoolLimit(MemoryPoolType::kDLA_GLOBAL_DRAM), 8193u);
    EXPECT_EQ(logger.errors(), 0);
    config.setMemoryPoolLimit(static_cast<MemoryPoolType>(4), 4096);
    EXPECT_EQ(config.getMemoryPoolLimit(static_cast<MemoryPoolType>(4)), 0u);
    EXPECT_EQ(logger.errors(), 2);
    EXPECT_EQ(config.getMemoryPoolLimit(MemoryPoolType::kDLA_LOCAL_DRAM), 8192u);
}

TEST_F(Config, IterationsAndEnumerators)
{
    config.setAvgTimingIterations(8);
    config.setAvgTimingIterations(0);
    config.setMinTimingIterations(-3);
    EXPECT_EQ(config.getAvgTimingIterations(), 8);
    EXPECT_EQ(config.getMinTimingIterations(), 1);
    config.setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    config.setProfilingVerbosity(static_cast<ProfilingVerbosity>(9));
    EXPECT_EQ(config.getProfilingVerbosity(), ProfilingVerbosity::kDETAILED);
    EXPECT_EQ(logger.errors(), 3);
    EXPECT_TRUE(config.setTacticSources(1u << int(TacticSource::kCUDNN)));
    EXPECT_FALSE(config.setTacticSources(1u << 5));
    EXPECT_EQ(config.getTacticSources(), 1u << int(TacticSource::kCUDNN));
    config.setQuantizationFlag(QuantizationFlag::kCALIBRATE_BEFORE_FUSION);
    EXPECT_TRUE(config.getQuantizationFlag(QuantizationFlag::kCALIBRATE_BEFORE_FUSION));
    config.clearQuantizationFlag(QuantizationFlag::kCALIBRATE_BEFORE_FUSION);
    EXPECT_EQ(config.getQuantizationFlags(), 0u);
    config.setPreviewFeature(PreviewFeature::kFASTER_DYNAMIC_SHAPES_0805, true);
    EXPECT_TRUE(config.getPreviewFeature(PreviewFeature::kFASTER_DYNAMIC_SHAPES_0805));
    config.setPreviewFeature(PreviewFeature::kFASTER_DYNAMIC_SHAPES_0805, false);
    EXPECT_FALSE(config.getPreviewFeature(PreviewFeature::kFASTER_DYNAMIC_SHAPES_0805));
    config.setPreviewFeature(static_cast<PreviewFeature>(7), true);
    EXPECT_EQ(logger.errors(), 5);
}

TEST_F(Config, ThereIsNoDla)
{
    // What is asked for is kept: the build says that there is none.
    config.setDefaultDeviceType(DeviceType::kDLA);
    EXPECT_EQ(config.getDefaultDeviceType(), DeviceType::kDLA);
    EXPECT_EQ(config.getDeviceType(nullptr), DeviceType::kDLA);
    config.setDefaultDeviceType(static_cast<DeviceType>(2));
    EXPECT_EQ(logger.errors(), 1);
    config.setDLACore(0); // does nothing, as documented
    EXPECT_EQ(config.getDLACore(), -1);
    config.setEngineCapability(EngineCapability::kSAFETY);
    EXPECT_EQ(config.getEngineCapability(), EngineCapability::kSAFETY);
    config.setEngineCapability(EngineCapability::kDLA_STANDALONE);
    EXPECT_EQ(config.getEngineCapability(), EngineCapability::kDLA_STANDALONE);
    EXPECT_EQ(logger.errors(), 1);
    config.setDeviceType(nullptr, DeviceType::kGPU);
    EXPECT_EQ(logger.errors(), 2);
    config.reset();
    EXPECT_EQ(config.getDefaultDeviceType(), DeviceType::kGPU);
    EXPECT_EQ(config.getEngineCapability(), EngineCapability::kSTANDARD);
    EXPECT_FALSE(config.canRunOnDLA(nullptr));
    EXPECT_FALSE(config.isDeviceTypeSet(nullptr));
    config.resetDeviceType(nullptr);
    EXPECT_EQ(config.getDeviceType(nullptr), DeviceType::kGPU);
}

struct Calibrator final : IInt8EntropyCalibrator2
{
    int32_t getBatchSize() const noexcept override { return 1; }
    bool getBatch(void**, char const**, int32_t) noexcept override { return false; }
    void const* readCalibrationCache(std::size_t&) noexcept override { return nullptr; }
    void writeCalibrationCache(void const*, std::size_t) noexcept override {}
};
struct Selector final : IAlgorithmSelector
{
    int32_t selectAlgorithms(IAlgorithmContext const&, IAlgorithm const* const*, int32_t, int32_t*) noexcept override
    {
        return 0;
    }
    void reportAlgorithms(IAlgorithmContext const* const*, IAlgorithm const* const*, int32_t) noexcept override {}
};

TEST_F(Config, CalibratorAndSelectorAreKept)
{
    Calibrator calibrator;
    config.setInt8Calibrator(&calibrator);
    EXPECT_EQ(config.getInt8Calibrator(), &calibrator);
    EXPECT_EQ(logger.warnings(), 0);
    EXPECT_EQ(logger.errors(), 0);
    config.setInt8Calibrator(nullptr);
    EXPECT_EQ(config.getInt8Calibrator(), nullptr);
    Selector selector;
    config.setAlgorithmSelector(&selector);
    EXPECT_EQ(config.getAlgorithmSelector(), &selector);
    config.setAlgorithmSelector(nullptr);
    EXPECT_EQ(config.getAlgorithmSelector(), nullptr);
    EXPECT_EQ(logger.errors(), 0);
}

TEST_F(Config, Profiles)
{
    tw::api::OptimizationProfileObject first(reporter), second(reporter);
    EXPECT_EQ(config.addOptimizationProfile(&first), 0);
    IOptimizationProfile& half = second;
    EXPECT_TRUE(half.setDimensions("x", OptProfileSelector::kOPT, Dims2(1, 1)));
    EXPECT_EQ(config.addOptimizationProfile(&second), -1);
    EXPECT_TRUE(contains(logger.lastError(), "input 'x': kMIN is not set")) << logger.lastError();
    EXPECT_EQ(config.addOptimizationProfile(nullptr), -1);
    EXPECT_FALSE(config.setCalibrationProfile(&second));
    EXPECT_TRUE(config.setCalibrationProfile(&first));
    EXPECT_EQ(config.getCalibrationProfile(), &first);
    EXPECT_TRUE(config.setCalibrationProfile(nullptr));
    EXPECT_EQ(config.getCalibrationProfile(), nullptr);
    EXPECT_TRUE(config.setCalibrationProfile(&first));
    EXPECT_EQ(config.getNbOptimizationProfiles(), 1);
    config.reset();
    EXPECT_EQ(config.getNbOptimizationProfiles(), 0);
    EXPECT_EQ(config.getCalibrationProfile(), nullptr);
}

TEST_F(Config, ResetGoesBackToTheDefaults)
{
    config.setFlag(BuilderFlag::kDEBUG);
    config.setMaxWorkspaceSize(1);
    config.setAvgTimingIterations(4);
    config.reset();
    EXPECT_EQ(config.getFlags(), 1u << int(BuilderFlag::kTF32));
    EXPECT_EQ(config.getMaxWorkspaceSize(), size_t(7) << 30);
    EXPECT_EQ(config.getAvgTimingIterations(), 1);
}

TEST_F(Config, RecorderIsCountedWhileTheConfigLives)
{
    int32_t const before = recorder.references;
    auto* other = new tw::api::BuilderConfigObject(reporter);
    EXPECT_EQ(recorder.references, before + 1);
    static_cast<IBuilderConfig*>(other)->destroy();
    EXPECT_EQ(recorder.references, before);
    IBuilderConfig* third = new tw::api::BuilderConfigObject(reporter);
    delete third;
    EXPECT_EQ(recorder.references, before);
}

} // namespace
