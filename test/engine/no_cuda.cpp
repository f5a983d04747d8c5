// SPDX-License-Identifier: Apache-2.0
// A program that links no CUDA runtime: the null stream works, other streams and events are refused with the cure.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "NvInfer.h"
#include "api/client.h"

using namespace nvinfer1;

namespace {

int failures = 0;

void check(bool condition, char const* what)
{
    if (!condition)
        std::printf("FAIL: %s\n", what), ++failures;
}

} // namespace

int main()
{
    setenv("TENSORWRIGHT_DEVICE", "cpu", 1); // also where there is a GPU
    tw::test::KeepingLogger logger;
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(1));
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(1, 4));
    ITensor* y = network->addActivation(*x, ActivationType::kRELU)->getOutput(0);
    y->setName("y");
    network->markOutput(*y);
    std::unique_ptr<ICudaEngine> engine(builder->buildEngineWithConfig(*network, *config));
    check(engine != nullptr, "an engine is built");
    if (!engine)
        return 1;
    std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
    float in[4] = {-1, 2, -3, 4}, out[4] = {9, 9, 9, 9};
    void* bindings[] = {in, out};
    check(context->executeV2(bindings), "executeV2");
    check(out[0] == 0 && out[1] == 2 && out[2] == 0 && out[3] == 4, "its output");
    check(context->enqueueV2(bindings, nullptr, nullptr), "enqueueV2 on the null stream");
    context->setTensorAddress("x", in);
    context->setTensorAddress("y", out);
    check(context->enqueueV3(nullptr), "enqueueV3 on the null stream");
    check(logger.errors() == 0, "no error so far");

    int someStream = 0;
    auto* stream = reinterpret_cast<cudaStream_t>(&someStream);
    auto* event = reinterpret_cast<cudaEvent_t>(&someStream);
    out[1] = 9;
    check(!context->enqueueV3(stream), "a stream is refused");
    check(tw::test::contains(logger.lastError(), "lib/hostcuda"), "the error names lib/hostcuda");
    check(!context->enqueueV2(bindings, stream, nullptr), "a stream is refused by enqueueV2");
    check(!context->enqueueV2(bindings, nullptr, &event), "an event is refused");
    check(tw::test::contains(logger.lastError(), "lib/hostcuda"), "the error names lib/hostcuda");
    check(logger.errors() == 3, "one error each");
    check(out[1] == 9, "nothing was run");
    check(context->executeV2(bindings) && out[1] == 2, "the context still works");

    setenv("TENSORWRIGHT_DEVICE", "cuda:99", 1);
    check(createInferRuntime(logger) == nullptr && createInferBuilder(logger) == nullptr, "a GPU that is not there");
    check(tw::test::contains(logger.lastError(), "TENSORWRIGHT_DEVICE asks for a GPU: "), "the error says why");
    std::printf(failures ? "%d checks failed\n" : "passed\n", failures);
    return failures != 0;
}
