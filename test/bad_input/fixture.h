// SPDX-License-Identifier: Apache-2.0
// A client with logger and recorder that checks what it is told when it is refused.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "api/client.h"

namespace tw::test {

struct BadInput : testing::Test
{
    KeepingLogger logger;
    CountingRecorder recorder;
    std::unique_ptr<nvinfer1::IBuilder> builder{nvinfer1::createInferBuilder(logger)};
    std::unique_ptr<nvinfer1::IRuntime> runtime{nvinfer1::createInferRuntime(logger)};
    std::vector<float> weights = std::vector<float>(64, 0.5F);

    BadInput()
    {
        builder->setErrorRecorder(&recorder);
        runtime->setErrorRecorder(&recorder);
    }

    std::unique_ptr<nvinfer1::INetworkDefinition> newNetwork()
    {
        return std::unique_ptr<nvinfer1::INetworkDefinition>(builder->createNetworkV2(
            1U << static_cast<uint32_t>(nvinfer1::NetworkDefinitionCreationFlag::kEXPLICIT_BATCH)));
    }
    std::string lastError() const
    {
        std::string last;
        for (auto const& l : logger.lines)
            if (l.severity <= nvinfer1::ILogger::Severity::kERROR)
                last = l.text;
        return last;
    }
    // One or more errors since the last call, in the log and in the recorder, the last with `part` in it.
    void expectRefused(char const* part)
    {
        EXPECT_GT(logger.errors(), 0) << "nothing in the log; expected: " << part;
        EXPECT_GT(recorder.getNbErrors(), 0) << "nothing in the recorder; expected: " << part;
        EXPECT_TRUE(contains(lastError(), part)) << lastError() << "\n  expected: " << part;
        // Recorders take the beginning of a message, without the number and name of its code.
        std::string const recorded = recorder.entries.empty() ? "" : recorder.entries.back().text;
        EXPECT_FALSE(recorded.empty());
        EXPECT_TRUE(contains(lastError(), recorded.c_str())) << recorded;
        forget();
    }
    void expectQuiet()
    {
        EXPECT_EQ(logger.errors(), 0) << lastError();
        forget();
    }
    void forget()
    {
        logger.lines.clear();
        recorder.clear();
    }
    nvinfer1::IHostMemory* build(nvinfer1::INetworkDefinition& network)
    {
        std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
        config->setFlag(nvinfer1::BuilderFlag::kENABLE_TACTIC_HEURISTIC);
        return builder->buildSerializedNetwork(network, *config);
    }
    // y = relu(conv(x)), x [N,1,4,4] with N 1..3, as a plan.
    std::unique_ptr<nvinfer1::IHostMemory> goodPlan()
    {
        using namespace nvinfer1;
        auto n = newNetwork();
        ITensor* x = n->addInput("x", DataType::kFLOAT, Dims4(-1, 1, 4, 4));
        ILayer* conv = n->addConvolutionNd(*x, 1, Dims2(3, 3), Weights{DataType::kFLOAT, weights.data(), 9},
                                           Weights{DataType::kFLOAT, nullptr, 0});
        ILayer* relu = n->addActivation(*conv->getOutput(0), ActivationType::kRELU);
        relu->getOutput(0)->setName("y");
        n->markOutput(*relu->getOutput(0));
        std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
        IOptimizationProfile* p = builder->createOptimizationProfile();
        p->setDimensions("x", OptProfileSelector::kMIN, Dims4(1, 1, 4, 4));
        p->setDimensions("x", OptProfileSelector::kOPT, Dims4(2, 1, 4, 4));
        p->setDimensions("x", OptProfileSelector::kMAX, Dims4(3, 1, 4, 4));
        config->addOptimizationProfile(p);
        return std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*n, *config));
    }
};

} // namespace tw::test
