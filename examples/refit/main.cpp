// SPDX-License-Identifier: Apache-2.0
// Learns while it serves: y = w x + b is built once as a refittable engine; every step of gradient descent puts new
// weights into that engine, which goes on with the context that it has. Ends when it has found the line that the samples
// lie on; fails when it has not.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <NvInfer.h>
#include <cuda_runtime_api.h>

namespace {

class Logger : public nvinfer1::ILogger
{
public:
    void log(Severity severity, char const* message) noexcept override
    {
        if (severity <= Severity::kWARNING)
            std::fprintf(stderr, "%s\n", message);
    }
};

void require(bool condition, char const* what)
{
    if (condition)
        return;
    std::fprintf(stderr, "%s\n", what);
    std::exit(1);
}

constexpr int kSamples = 64;
constexpr float kSlope = 3, kOffset = -0.5F; // of the line to be found

std::unique_ptr<nvinfer1::ICudaEngine> build(Logger& logger)
{
    using namespace nvinfer1;
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> network(
        builder->createNetworkV2(1U << static_cast<uint32_t>(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH)));
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    config->setFlag(BuilderFlag::kREFIT);
    float const zero = 0;
    Weights const start{DataType::kFLOAT, &zero, 1};
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims4(kSamples, 1, 1, 1));
    IFullyConnectedLayer* line = network->addFullyConnected(*x, 1, start, start);
    line->setName("line");
    line->getOutput(0)->setName("y");
    network->markOutput(*line->getOutput(0));
    std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    require(plan != nullptr, "the engine cannot be built");
    std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
    return std::unique_ptr<ICudaEngine>(runtime->deserializeCudaEngine(plan->data(), plan->size()));
}

void refit(nvinfer1::ICudaEngine& engine, Logger& logger, float slope, float offset)
{
    using namespace nvinfer1;
    std::unique_ptr<IRefitter> refitter(createInferRefitter(engine, logger));
    require(refitter != nullptr, "the engine cannot be refitted");
    // The memory is read by refitCudaEngine().
    require(refitter->setWeights("line", WeightsRole::kKERNEL, Weights{DataType::kFLOAT, &slope, 1}) &&
                refitter->setWeights("line", WeightsRole::kBIAS, Weights{DataType::kFLOAT, &offset, 1}),
            "the weights do not fit");
    // What else must be given since it depends on these; nothing, in engines that know all their weights.
    require(refitter->getMissing(0, nullptr, nullptr) == 0, "weights are missing");
    require(refitter->refitCudaEngine(), "the refit failed");
}

} // namespace

int main()
{
    Logger logger;
    std::unique_ptr<nvinfer1::ICudaEngine> engine = build(logger);
    require(engine != nullptr, "the engine cannot be loaded");
    std::unique_ptr<nvinfer1::IExecutionContext> context(engine->createExecutionContext());
    std::vector<float> x(kSamples), y(kSamples);
    for (int i = 0; i < kSamples; ++i)
        x[static_cast<size_t>(i)] = static_cast<float>(i) / kSamples * 2 - 1;
    size_t const bytes = kSamples * sizeof(float);
    void *onDeviceX = nullptr, *onDeviceY = nullptr;
    require(cudaMalloc(&onDeviceX, bytes) == cudaSuccess && cudaMalloc(&onDeviceY, bytes) == cudaSuccess &&
                cudaMemcpy(onDeviceX, x.data(), bytes, cudaMemcpyHostToDevice) == cudaSuccess,
            "no device memory");
    context->setTensorAddress("x", onDeviceX);
    context->setTensorAddress("y", onDeviceY);
    float slope = 0, offset = 0, worst = 0;
    for (int step = 0; step < 100; ++step) {
        refit(*engine, logger, slope, offset);
        require(context->enqueueV3(nullptr) &&
                    cudaMemcpy(y.data(), onDeviceY, bytes, cudaMemcpyDeviceToHost) == cudaSuccess,
                "the run failed");
        float bySlope = 0, byOffset = 0;
        worst = 0;
        for (size_t i = 0; i < x.size(); ++i) {
            float const error = y[i] - (kSlope * x[i] + kOffset);
            worst = std::fmax(worst, std::fabs(error));
            bySlope += error * x[i] / kSamples;
            byOffset += error / kSamples;
        }
        if (step % 20 == 0)
            std::printf("step %3d: y = %6.3f x + %6.3f, largest error %.4f\n", step, static_cast<double>(slope),
                        static_cast<double>(offset), static_cast<double>(worst));
        slope -= bySlope;
        offset -= byOffset;
    }
    cudaFree(onDeviceX);
    cudaFree(onDeviceY);
    require(worst < 1e-3F, "the line was not found");
    std::printf("found y = %.3f x + %.3f\n", static_cast<double>(slope), static_cast<double>(offset));
    return 0;
}
