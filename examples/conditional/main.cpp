// SPDX-License-Identifier: Apache-2.0
// A conditional: a signal is smoothed only if it is louder than a threshold. IIfConditional::addInput() marks where the
// branches begin: what depends on it runs only when its branch is taken. The program runs both and compares.
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <memory>

#include <NvInfer.h>
#include <cuda_runtime_api.h>

namespace {

constexpr int kSize = 8, kWindow = 2;
constexpr float kThreshold = 1;

class Logger : public nvinfer1::ILogger
{
public:
    void log(Severity severity, char const* message) noexcept override
    {
        if (severity <= Severity::kWARNING)
            std::fprintf(stderr, "%s\n", message);
    }
};

// y = mean(|x|) > threshold ? averages of neighbours : x
void addFilter(nvinfer1::INetworkDefinition& network)
{
    using namespace nvinfer1;
    static float const threshold = kThreshold, window[kWindow] = {0.5F, 0.5F};
    ITensor* x = network.addInput("x", DataType::kFLOAT, Dims{4, {1, 1, 1, kSize}});
    ITensor* loudness =
        network.addReduce(*network.addUnary(*x, UnaryOperation::kABS)->getOutput(0), ReduceOperation::kAVG, 0xF, false)
            ->getOutput(0);
    ITensor* limit = network.addConstant(Dims{0, {}}, Weights{DataType::kFLOAT, &threshold, 1})->getOutput(0);
    ITensor* isLoud = network.addElementWise(*loudness, *limit, ElementWiseOperation::kGREATER)->getOutput(0);

    IIfConditional* choice = network.addIfConditional();
    choice->setName("smooth if loud");
    choice->setCondition(*isLoud);
    ITensor* in = choice->addInput(*x)->getOutput(0);
    IConvolutionLayer* smooth =
        network.addConvolutionNd(*in, 1, Dims{2, {1, kWindow}}, Weights{DataType::kFLOAT, window, kWindow},
                                 Weights{DataType::kFLOAT, nullptr, 0});
    smooth->setPrePadding(Dims{2, {0, 1}});
    ITensor* y = choice->addOutput(*smooth->getOutput(0), *in)->getOutput(0);
    y->setName("y");
    network.markOutput(*y);
}

// Memory that a CPU engine and a GPU engine reach alike.
struct Buffer
{
    float* data = nullptr;
    explicit Buffer(size_t count) { cudaMallocManaged(reinterpret_cast<void**>(&data), count * sizeof(float)); }
    ~Buffer() { cudaFree(data); }
    Buffer(Buffer const&) = delete;
    Buffer& operator=(Buffer const&) = delete;
};

bool near(float a, float b)
{
    return std::fabs(a - b) <= 1e-5F * (1 + std::fabs(b));
}

} // namespace

int main()
{
    using namespace nvinfer1;
    Logger logger;
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> network(
        builder->createNetworkV2(1U << static_cast<uint32_t>(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH)));
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    addFilter(*network);
    std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
    std::unique_ptr<ICudaEngine> engine(plan ? runtime->deserializeCudaEngine(plan->data(), plan->size()) : nullptr);
    std::unique_ptr<IExecutionContext> context(engine ? engine->createExecutionContext() : nullptr);
    if (!context)
        return 1;

    Buffer x(kSize), y(kSize);
    context->setTensorAddress("x", x.data);
    context->setTensorAddress("y", y.data);
    cudaStream_t stream = nullptr;
    cudaStreamCreate(&stream);
    bool equal = true;
    for (float scale : {0.1F, 10.0F}) {
        float loudness = 0;
        for (int i = 0; i < kSize; ++i) {
            x.data[i] = scale * static_cast<float>(i % 3 - 1);
            loudness += std::fabs(x.data[i]) / kSize;
        }
        equal = equal && context->enqueueV3(stream);
        cudaStreamSynchronize(stream);
        std::printf("loudness %g: %s\n", loudness, loudness > kThreshold ? "smoothed" : "as it is");
        for (int i = 0; i < kSize; ++i) {
            float const before = i > 0 ? x.data[i - 1] : 0.0F;
            equal = equal && near(y.data[i], loudness > kThreshold ? (before + x.data[i]) / 2 : x.data[i]);
        }
    }
    cudaStreamDestroy(stream);
    std::printf("%s\n", equal ? "as computed by hand" : "NOT as computed by hand");
    return equal ? 0 : 1;
}
