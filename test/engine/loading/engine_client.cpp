// SPDX-License-Identifier: Apache-2.0
// A library that uses libnvinfer, as an extension module of Python does: whoever loads it gets plain C functions.
#include <cstdio>
#include <memory>
#include <string>

#include "NvInfer.h"
#include "api/client.h"

using namespace nvinfer1;

namespace {

tw::test::KeepingLogger& logger()
{
    static tw::test::KeepingLogger& instance = *new tw::test::KeepingLogger;
    return instance;
}

ICudaEngine* makeEngine()
{
    std::unique_ptr<IBuilder> const builder(createInferBuilder(logger()));
    std::unique_ptr<INetworkDefinition> const network(builder->createNetworkV2(1));
    std::unique_ptr<IBuilderConfig> const config(builder->createBuilderConfig());
    ITensor* const x = network->addInput("x", DataType::kFLOAT, Dims2(1, 4));
    ITensor* const y = network->addActivation(*x, ActivationType::kRELU)->getOutput(0);
    y->setName("y");
    network->markOutput(*y);
    return builder->buildEngineWithConfig(*network, *config);
}

} // namespace

#define TW_EXPORTED extern "C" __attribute__((visibility("default")))

// y = max(x, 0) of four floats on the stream; an event that is not null is recorded when x is consumed. 0: done.
TW_EXPORTED int clientRelu(float* x, float* y, void* stream, void* consumed)
{
    static ICudaEngine* const engine = makeEngine();
    if (!engine)
        return 1;
    std::unique_ptr<IExecutionContext> const context(engine->createExecutionContext());
    void* bindings[] = {x, y};
    auto event = static_cast<cudaEvent_t>(consumed);
    return context->enqueueV2(bindings, static_cast<cudaStream_t>(stream), consumed ? &event : nullptr) ? 0 : 2;
}

TW_EXPORTED char const* clientLastError()
{
    static std::string said;
    said = logger().lastError();
    return said.c_str();
}

// 1: the choice of the device went as far as asking for a GPU's driver.
TW_EXPORTED int clientAskedForGpu()
{
    tw::test::KeepingLogger own;
    std::unique_ptr<IRuntime> const runtime(createInferRuntime(own));
    for (auto const& line : own.lines)
        if (tw::test::contains(line.text, "PU is used: "))
            return 1;
    return 0;
}
