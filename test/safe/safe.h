// SPDX-License-Identifier: Apache-2.0
// What tests of safety engines share: networks, builds, memory where engines run.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "NvInfer.h"
#include "NvInferConsistency.h"
#include "NvInferSafeRuntime.h"
#include "api/client.h"

namespace tw::test {

using nvinfer1::BuilderFlag;
using nvinfer1::DataType;
using nvinfer1::EngineCapability;
using nvinfer1::INetworkDefinition;
using nvinfer1::ITensor;

// Makes networks and plans of them; keeps what was logged.
struct Maker
{
    KeepingLogger logger;
    std::unique_ptr<nvinfer1::IBuilder> builder{nvinfer1::createInferBuilder(logger)};
    std::unique_ptr<INetworkDefinition> network{builder->createNetworkV2(1)};
    std::unique_ptr<nvinfer1::IBuilderConfig> config{builder->createBuilderConfig()};

    explicit Maker(EngineCapability capability = EngineCapability::kSAFETY)
    {
        config->setFlag(BuilderFlag::kFP16);
        config->setEngineCapability(capability);
    }
    ITensor& input(std::vector<int32_t> const& shape, DataType type = DataType::kFLOAT, char const* name = "x")
    {
        return *network->addInput(name, type, dims(shape));
    }
    void output(ITensor& t, char const* name = "y")
    {
        t.setName(name);
        network->markOutput(t);
    }
    ITensor& relu(ITensor& x) { return *network->addActivation(x, nvinfer1::ActivationType::kRELU)->getOutput(0); }
    // y = x * x / x, which is x but for what has no such number.
    void around()
    {
        ITensor& x = input({2, 3, 4, 5});
        ITensor& square = *network->addElementWise(x, x, nvinfer1::ElementWiseOperation::kPROD)->getOutput(0);
        output(*network->addElementWise(square, x, nvinfer1::ElementWiseOperation::kDIV)->getOutput(0));
    }
    // Empty where the build is refused.
    std::string plan()
    {
        std::unique_ptr<nvinfer1::IHostMemory> const m(builder->buildSerializedNetwork(*network, *config));
        return m ? std::string(static_cast<char const*>(m->data()), m->size()) : std::string();
    }
    std::string errors() const
    {
        std::string all;
        for (auto const& l : logger.lines)
            if (l.severity <= nvinfer1::ILogger::Severity::kERROR)
                all += l.text + "\n";
        return all;
    }
};

// Where engines run, zeroed.
class Memory
{
public:
    explicit Memory(size_t sizeBytes) : size_(sizeBytes)
    {
        EXPECT_EQ(cudaMalloc(&data_, sizeBytes + 256), cudaSuccess);
        EXPECT_EQ(cudaMemset(data_, 0, sizeBytes + 256), cudaSuccess);
    }
    ~Memory() { cudaFree(data_); }
    Memory(Memory const&) = delete;
    Memory& operator=(Memory const&) = delete;

    void* data() const { return data_; }
    template <class T>
    void put(std::vector<T> const& values)
    {
        EXPECT_EQ(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
    }
    template <class T>
    std::vector<T> get() const
    {
        std::vector<T> values(size_ / sizeof(T));
        EXPECT_EQ(cudaMemcpy(values.data(), data_, values.size() * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
        return values;
    }

private:
    void* data_ = nullptr;
    size_t size_;
};

// A safe runtime with what it needs.
struct Safe
{
    KeepingLogger logger;
    CountingRecorder recorder;
    std::unique_ptr<nvinfer1::safe::IRuntime> runtime{nvinfer1::safe::createInferRuntime(logger)};

    Safe() { runtime->setErrorRecorder(&recorder); }
    std::unique_ptr<nvinfer1::safe::ICudaEngine> engine(std::string const& plan)
    {
        return std::unique_ptr<nvinfer1::safe::ICudaEngine>(runtime->deserializeCudaEngine(plan.data(), plan.size()));
    }
};

} // namespace tw::test
