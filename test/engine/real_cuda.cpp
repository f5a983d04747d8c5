// SPDX-License-Identifier: Apache-2.0
// A CPU engine in a process with the real CUDA runtime and a GPU: which memory it takes, how it keeps the order of a
// stream, what it refuses. Exit status 77, with the reason: there is no GPU, so nothing could be tried.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <NvInfer.h>
#include <cuda_runtime_api.h>

namespace {

class Logger : public nvinfer1::ILogger
{
public:
    void log(Severity severity, char const* message) noexcept override
    {
        if (severity <= Severity::kERROR)
            errors += std::string(message) + "\n";
    }
    std::string errors;
};

int failures = 0;

void expect(bool good, char const* what)
{
    std::printf("%s: %s\n", good ? "ok" : "FAILED", what);
    failures += !good;
}

} // namespace

int main()
{
    using namespace nvinfer1;
    setenv("TENSORWRIGHT_DEVICE", "cpu", 1);
    int gpus = 0;
    cudaError_t const status = cudaGetDeviceCount(&gpus);
    if (status != cudaSuccess || gpus == 0) {
        std::printf("SKIP: no GPU that the CUDA runtime can use (%s)\n", cudaGetErrorString(status));
        return 77;
    }
    constexpr int kCount = 1 << 20;
    Logger logger;
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(1U));
    Dims d{};
    d.nbDims = 1;
    d.d[0] = kCount;
    ITensor* x = network->addInput("x", DataType::kFLOAT, d);
    ITensor* y = network->addElementWise(*x, *x, ElementWiseOperation::kSUM)->getOutput(0);
    y->setName("y");
    network->markOutput(*y);
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
    std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());

    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
    cudaStreamCreate(&stream);
    cudaEventCreate(&event);
    size_t const bytes = kCount * sizeof(float);
    std::vector<float> plain(kCount, 1.0F);
    float *device = nullptr, *pinned = nullptr, *managed = nullptr;
    cudaMalloc(reinterpret_cast<void**>(&device), bytes);
    cudaMallocHost(reinterpret_cast<void**>(&pinned), bytes);
    cudaMallocManaged(reinterpret_cast<void**>(&managed), bytes, cudaMemAttachGlobal);

    context->setTensorAddress("x", device);
    context->setTensorAddress("y", plain.data());
    expect(!context->enqueueV3(stream) && logger.errors.find("tensor 'x' lies in GPU memory") != std::string::npos,
           "an input in GPU memory is refused by name");
    logger.errors.clear();

    // The input is what a copy on the stream brings: the run must wait for it.
    std::vector<float> three(kCount, 3.0F);
    cudaMemcpy(device, three.data(), bytes, cudaMemcpyHostToDevice);
    std::memset(pinned, 0, bytes);
    for (int i = 0; i < 20; ++i)
        cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost, stream);
    context->setTensorAddress("x", pinned);
    context->setTensorAddress("y", managed);
    context->setInputConsumedEvent(event);
    expect(context->enqueueV3(stream), "pinned input, managed output");
    expect(managed[0] == 6.0F && managed[kCount - 1] == 6.0F, "the run waits for the stream");
    expect(cudaEventSynchronize(event) == cudaSuccess, "the event for consumed inputs is recorded");
    context->setInputConsumedEvent(nullptr);

    void* bindings[] = {pinned, plain.data()};
    expect(context->executeV2(bindings) && plain[7] == 6.0F, "plain host memory, null stream");

    cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    expect(!context->enqueueV3(stream) && logger.errors.find("cannot be captured") != std::string::npos,
           "capture is refused");
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream, &graph);
    expect(context->enqueueV3(stream), "the context is usable after it");
    std::printf("%d failures\n", failures);
    return failures != 0;
}
