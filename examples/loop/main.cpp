// SPDX-License-Identifier: Apache-2.0
// A recurrent cell written as a loop: a smoothed sequence, y[t] = a * y[t-1] + (1 - a) * x[t] for each channel, from
// the layers of INetworkDefinition::addLoop(). The program runs it, does the same by hand, and compares.
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include <NvInfer.h>
#include <cuda_runtime_api.h>

namespace {

constexpr int kSteps = 6, kChannels = 3;
constexpr float kKeep = 0.75F;

class Logger : public nvinfer1::ILogger
{
public:
    void log(Severity severity, char const* message) noexcept override
    {
        if (severity <= Severity::kWARNING)
            std::fprintf(stderr, "%s\n", message);
    }
};

// All steps, and the state after the last.
void addSmoothing(nvinfer1::INetworkDefinition& network)
{
    using namespace nvinfer1;
    static float const zeros[kChannels] = {}, keep[kChannels] = {kKeep, kKeep, kKeep},
                       take[kChannels] = {1 - kKeep, 1 - kKeep, 1 - kKeep};
    static int32_t const steps = kSteps;
    Dims const channels{1, {kChannels}};
    auto constant = [&](float const* v) {
        return network.addConstant(channels, Weights{DataType::kFLOAT, v, kChannels})->getOutput(0);
    };
    auto combine = [&](ITensor* a, ITensor* b, ElementWiseOperation op) {
        return network.addElementWise(*a, *b, op)->getOutput(0);
    };
    ITensor* x = network.addInput("x", DataType::kFLOAT, Dims{2, {kSteps, kChannels}});
    ITensor* count = network.addConstant(Dims{0, {}}, Weights{DataType::kINT32, &steps, 1})->getOutput(0);

    ILoop* loop = network.addLoop();
    loop->setName("smoothing");
    loop->addTripLimit(*count, TripLimit::kCOUNT);
    ITensor* now = loop->addIterator(*x)->getOutput(0); // x[t]
    IRecurrenceLayer* state = loop->addRecurrence(*constant(zeros));
    ITensor* kept = combine(state->getOutput(0), constant(keep), ElementWiseOperation::kPROD);
    ITensor* taken = combine(now, constant(take), ElementWiseOperation::kPROD);
    ITensor* next = combine(kept, taken, ElementWiseOperation::kSUM);
    state->setInput(1, *next);

    ILoopOutputLayer* all = loop->addLoopOutput(*next, LoopOutput::kCONCATENATE);
    all->setInput(1, *count);
    ITensor* last = loop->addLoopOutput(*state->getOutput(0), LoopOutput::kLAST_VALUE)->getOutput(0);
    all->getOutput(0)->setName("all");
    last->setName("last");
    network.markOutput(*all->getOutput(0));
    network.markOutput(*last);
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
    addSmoothing(*network);
    std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
    std::unique_ptr<ICudaEngine> engine(plan ? runtime->deserializeCudaEngine(plan->data(), plan->size()) : nullptr);
    std::unique_ptr<IExecutionContext> context(engine ? engine->createExecutionContext() : nullptr);
    if (!context)
        return 1;

    Buffer x(kSteps * kChannels), all(kSteps * kChannels), last(kChannels);
    for (int i = 0; i < kSteps * kChannels; ++i)
        x.data[i] = static_cast<float>((i * 7) % 11);
    context->setTensorAddress("x", x.data);
    context->setTensorAddress("all", all.data);
    context->setTensorAddress("last", last.data);
    cudaStream_t stream = nullptr;
    cudaStreamCreate(&stream);
    bool const ran = context->enqueueV3(stream);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    if (!ran)
        return 1;

    bool equal = true;
    std::vector<float> state(kChannels, 0.0F);
    for (int t = 0; t < kSteps; ++t) {
        for (int c = 0; c < kChannels; ++c) {
            state[c] = kKeep * state[c] + (1 - kKeep) * x.data[t * kChannels + c];
            equal = equal && near(all.data[t * kChannels + c], state[c]);
        }
        std::printf("step %d: %g %g %g\n", t, all.data[t * kChannels], all.data[t * kChannels + 1],
                    all.data[t * kChannels + 2]);
    }
    for (int c = 0; c < kChannels; ++c)
        equal = equal && near(last.data[c], state[c]);
    std::printf("%s\n", equal ? "as computed by hand" : "NOT as computed by hand");
    return equal ? 0 : 1;
}
