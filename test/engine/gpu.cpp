// SPDX-License-Identifier: Apache-2.0
// An engine on a GPU in a program that uses the CUDA runtime: streams, events, capture, allocators, profiler, contexts
// side by side. Exit status 77, with the reason: there is no GPU, so nothing could be tried.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <NvInfer.h>
#include <cuda_runtime_api.h>

#include "gpu_loops.h"

namespace {

using namespace nvinfer1;

class Logger : public ILogger
{
public:
    void log(Severity severity, char const* message) noexcept override
    {
        if (severity <= Severity::kWARNING)
            std::printf("  log: %s\n", message);
    }
};

class Allocator : public IGpuAllocator
{
public:
    void* allocate(uint64_t size, uint64_t, AllocatorFlags) noexcept override
    {
        void* p = nullptr;
        cudaMalloc(&p, size);
        live += p != nullptr;
        ++calls;
        return p;
    }
    void free(void* p) noexcept override
    {
        live -= p != nullptr;
        cudaFree(p);
    }
    int live = 0, calls = 0;
};

class Profiler : public IProfiler
{
public:
    void reportLayerTime(char const* layer, float ms) noexcept override
    {
        layers += std::string(layer) + ";";
        total += ms;
    }
    std::string layers;
    float total = 0;
};

int failures = 0;

void expect(bool good, char const* what)
{
    std::printf("%s: %s\n", good ? "ok" : "FAILED", what);
    failures += !good;
}

constexpr int kBatch = 4, kChannels = 3, kSize = 8, kFilters = 16;
constexpr int kIn = kBatch * kChannels * kSize * kSize, kOut = kBatch * kFilters;

// relu(conv 3x3) -> maximum over the picture, one number for each filter.
struct Network
{
    std::vector<float> weights = std::vector<float>(kFilters * kChannels * 9), bias = std::vector<float>(kFilters);

    Network()
    {
        for (size_t i = 0; i < weights.size(); ++i)
            weights[i] = std::sin(float(i) * 0.7F);
        for (size_t i = 0; i < bias.size(); ++i)
            bias[i] = std::cos(float(i));
    }
    void define(INetworkDefinition& n) const
    {
        ITensor* x = n.addInput("x", DataType::kFLOAT, Dims4{-1, kChannels, kSize, kSize});
        auto* conv =
            n.addConvolutionNd(*x, kFilters, DimsHW{3, 3}, {DataType::kFLOAT, weights.data(), int64_t(weights.size())},
                               {DataType::kFLOAT, bias.data(), int64_t(bias.size())});
        conv->setPaddingNd(DimsHW{1, 1});
        auto* relu = n.addActivation(*conv->getOutput(0), ActivationType::kRELU);
        auto* more = n.addPoolingNd(*relu->getOutput(0), PoolingType::kMAX, DimsHW{2, 2}); // the maximum stays
        more->setStrideNd(DimsHW{2, 2});
        auto* top = n.addReduce(*more->getOutput(0), ReduceOperation::kMAX, 12, false);
        top->getOutput(0)->setName("y");
        n.markOutput(*top->getOutput(0));
    }
    std::vector<float> expected(std::vector<float> const& x, int batch) const
    {
        std::vector<float> y(size_t(batch * kFilters), 0.0F);
        for (int n = 0; n < batch; ++n)
            for (int k = 0; k < kFilters; ++k)
                for (int i = 0; i < kSize; ++i)
                    for (int j = 0; j < kSize; ++j) {
                        double sum = bias[size_t(k)];
                        for (int c = 0; c < kChannels; ++c)
                            for (int r = 0; r < 3; ++r)
                                for (int s = 0; s < 3; ++s) {
                                    int const a = i + r - 1, b = j + s - 1;
                                    if (a >= 0 && a < kSize && b >= 0 && b < kSize)
                                        sum += double(x[size_t(((n * kChannels + c) * kSize + a) * kSize + b)]) *
                                               weights[size_t(((k * kChannels + c) * 3 + r) * 3 + s)];
                                }
                        float& to = y[size_t(n * kFilters + k)];
                        to = std::max(to, float(sum));
                    }
        return y;
    }
};

// y = relu(x) in FP32: x in vectors of 32 channels, y pixel by pixel.
bool runsInFormats(ILogger& logger)
{
    constexpr int kN = 2, kC = 37, kPixels = 12, kVectors = 2;
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(1U));
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims4{kN, kC, 3, 4});
    x->setAllowedFormats(1U << int(TensorFormat::kCHW32));
    ITensor* y = network->addActivation(*x, ActivationType::kRELU)->getOutput(0);
    y->setName("y");
    network->markOutput(*y);
    y->setAllowedFormats(1U << int(TensorFormat::kHWC));
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    std::unique_ptr<ICudaEngine> engine(builder->buildEngineWithConfig(*network, *config));
    std::unique_ptr<IExecutionContext> context(engine ? engine->createExecutionContext() : nullptr);
    if (!context || engine->getTensorFormat("x") != TensorFormat::kCHW32)
        return false;
    std::vector<float> in(size_t(kN) * kVectors * kPixels * 32, 1e9F), out(size_t(kN) * kPixels * kC);
    auto value = [](int n, int c, int p) { return float((n * kC + c) * kPixels + p) - 300; };
    for (int n = 0; n < kN; ++n)
        for (int c = 0; c < kC; ++c)
            for (int p = 0; p < kPixels; ++p)
                in[size_t(((n * kVectors + c / 32) * kPixels + p) * 32 + c % 32)] = value(n, c, p);
    void *from = nullptr, *to = nullptr;
    cudaMalloc(&from, in.size() * sizeof(float));
    cudaMalloc(&to, out.size() * sizeof(float));
    cudaMemcpy(from, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice);
    context->setTensorAddress("x", from);
    context->setTensorAddress("y", to);
    bool good = context->enqueueV3(nullptr) && cudaDeviceSynchronize() == cudaSuccess;
    cudaMemcpy(out.data(), to, out.size() * sizeof(float), cudaMemcpyDeviceToHost);
    for (int n = 0; n < kN; ++n)
        for (int c = 0; c < kC; ++c)
            for (int p = 0; p < kPixels; ++p)
                good = good && out[size_t((n * kPixels + p) * kC + c)] == std::max(value(n, c, p), 0.0F);
    cudaFree(from);
    cudaFree(to);
    return good;
}

// y = relu(x) in FP16 from and to `format`, with no reformat allowed in between (kDIRECT_IO). Null: not built.
std::unique_ptr<ICudaEngine> buildDirect(ILogger& logger, TensorFormat format, int channels)
{
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(1U));
    ITensor* x = network->addInput("x", DataType::kHALF, Dims4{2, channels, 3, 4});
    x->setAllowedFormats(1U << int(format));
    IActivationLayer* relu = network->addActivation(*x, ActivationType::kRELU);
    relu->setName("only");
    ITensor* y = relu->getOutput(0);
    y->setName("y");
    network->markOutput(*y);
    y->setType(DataType::kHALF);
    y->setAllowedFormats(1U << int(format));
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    config->setFlag(BuilderFlag::kFP16);
    config->setFlag(BuilderFlag::kDIRECT_IO);
    return std::unique_ptr<ICudaEngine>(builder->buildEngineWithConfig(*network, *config));
}

// Channels-last pixels of 21 channels in 24 go through without a copy, and the same numbers come out.
bool runsDirectly(ILogger& logger)
{
    constexpr int kC = 21, kRounded = 24, kPixels = 2 * 12;
    std::unique_ptr<ICudaEngine> engine = buildDirect(logger, TensorFormat::kHWC8, kC);
    std::unique_ptr<IExecutionContext> context(engine ? engine->createExecutionContext() : nullptr);
    if (!context || engine->getTensorFormat("x") != TensorFormat::kHWC8 || engine->getTensorVectorizedDim("y") != 1)
        return false;
    std::vector<_Float16> in(size_t(kPixels) * kRounded, _Float16(0)), out(in.size());
    auto value = [](int p, int c) { return float(p * kC + c) - 250; };
    for (int p = 0; p < kPixels; ++p)
        for (int c = 0; c < kC; ++c)
            in[size_t(p * kRounded + c)] = _Float16(value(p, c));
    void *x = nullptr, *y = nullptr;
    size_t const bytes = in.size() * sizeof(_Float16);
    cudaMalloc(&x, bytes);
    cudaMalloc(&y, bytes);
    cudaMemcpy(x, in.data(), bytes, cudaMemcpyHostToDevice);
    context->setTensorAddress("x", x);
    context->setTensorAddress("y", y);
    bool good = context->enqueueV3(nullptr) && cudaDeviceSynchronize() == cudaSuccess;
    cudaMemcpy(out.data(), y, bytes, cudaMemcpyDeviceToHost);
    for (int p = 0; p < kPixels; ++p)
        for (int c = 0; c < kC; ++c)
            good = float(out[size_t(p * kRounded + c)]) == std::max(value(p, c), 0.0F) && good;
    cudaFree(x);
    cudaFree(y);
    return good;
}

bool same(std::vector<float> const& got, std::vector<float> const& want)
{
    for (size_t i = 0; i < want.size(); ++i)
        if (!(std::fabs(got[i] - want[i]) <= 1e-4F * std::max(1.0F, std::fabs(want[i]))))
            return false;
    return true;
}

std::vector<float> input(float seed)
{
    std::vector<float> x(kIn);
    for (size_t i = 0; i < x.size(); ++i)
        x[i] = std::sin(float(i) * 0.13F + seed);
    return x;
}

} // namespace

namespace {

// Runs with the same addresses, so that later ones are replayed; new weights in between.
bool refits(ILogger& logger)
{
    Network net;
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(1U));
    net.define(*network);
    network->getLayer(0)->setName("conv");
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    config->clearFlag(BuilderFlag::kTF32);
    config->setFlag(BuilderFlag::kREFIT);
    IOptimizationProfile* profile = builder->createOptimizationProfile();
    for (auto const select : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
        profile->setDimensions("x", select, Dims4{kBatch, kChannels, kSize, kSize});
    config->addOptimizationProfile(profile);
    std::unique_ptr<ICudaEngine> engine(builder->buildEngineWithConfig(*network, *config));
    std::unique_ptr<IExecutionContext> context(engine ? engine->createExecutionContext() : nullptr);
    std::unique_ptr<IRefitter> refitter(engine ? createInferRefitter(*engine, logger) : nullptr);
    if (!context || !refitter)
        return false;
    std::vector<float> const in = input(0);
    std::vector<float> got(kOut);
    float *x = nullptr, *y = nullptr;
    cudaMalloc(reinterpret_cast<void**>(&x), kIn * sizeof(float));
    cudaMalloc(reinterpret_cast<void**>(&y), kOut * sizeof(float));
    cudaMemcpy(x, in.data(), kIn * sizeof(float), cudaMemcpyHostToDevice);
    context->setTensorAddress("x", x);
    context->setTensorAddress("y", y);
    cudaStream_t stream = nullptr;
    cudaStreamCreate(&stream);
    bool good = true;
    for (int round = 0; round < 3; ++round) {
        for (int run = 0; run < 4; ++run) {
            cudaMemsetAsync(y, 0, kOut * sizeof(float), stream);
            good = context->enqueueV3(stream) && good;
            cudaMemcpyAsync(got.data(), y, kOut * sizeof(float), cudaMemcpyDeviceToHost, stream);
            good = cudaStreamSynchronize(stream) == cudaSuccess && same(got, net.expected(in, kBatch)) && good;
        }
        for (float& w : net.weights)
            w = std::cos(w * 3 + float(round));
        Weights const weights{DataType::kFLOAT, net.weights.data(), int64_t(net.weights.size())};
        good = refitter->setWeights("conv", WeightsRole::kKERNEL, weights) && refitter->refitCudaEngine() && good;
    }
    context.reset();
    cudaStreamDestroy(stream);
    cudaFree(x);
    cudaFree(y);
    return good;
}

} // namespace

int main()
{
    setenv("TENSORWRIGHT_DEVICE", "cuda", 1);
    int gpus = 0;
    cudaError_t const status = cudaGetDeviceCount(&gpus);
    if (status != cudaSuccess || gpus == 0) {
        std::printf("SKIP: no GPU that the CUDA runtime can use (%s)\n", cudaGetErrorString(status));
        return 77;
    }
    Logger logger;
    Network net;
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    expect(builder != nullptr, "a builder on the GPU");
    if (!builder)
        return 1;
    std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(1U));
    net.define(*network);
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    config->clearFlag(BuilderFlag::kTF32); // compared with exact sums
    IOptimizationProfile* profile = builder->createOptimizationProfile();
    profile->setDimensions("x", OptProfileSelector::kMIN, Dims4{1, kChannels, kSize, kSize});
    profile->setDimensions("x", OptProfileSelector::kOPT, Dims4{kBatch, kChannels, kSize, kSize});
    profile->setDimensions("x", OptProfileSelector::kMAX, Dims4{kBatch, kChannels, kSize, kSize});
    config->addOptimizationProfile(profile);
    config->addOptimizationProfile(profile);
    std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    expect(plan != nullptr, "the engine is built");
    if (!plan)
        return 1;

    Allocator allocator;
    std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
    runtime->setGpuAllocator(&allocator);
    std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    expect(engine != nullptr, "the plan loads");
    if (!engine)
        return 1;
    expect(allocator.calls > 0, "weights come from the IGpuAllocator");
    int const callsForWeights = allocator.calls;
    std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
    expect(context && allocator.calls > callsForWeights, "device memory comes from the IGpuAllocator");

    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
    cudaStreamCreate(&stream);
    cudaEventCreate(&event);
    float *x = nullptr, *y = nullptr;
    cudaMalloc(reinterpret_cast<void**>(&x), kIn * sizeof(float));
    cudaMalloc(reinterpret_cast<void**>(&y), kOut * sizeof(float));
    std::vector<float> const first = input(0), second = input(1);
    std::vector<float> got(kOut);
    auto fetch = [&] {
        cudaMemcpyAsync(got.data(), y, kOut * sizeof(float), cudaMemcpyDeviceToHost, stream);
        return cudaStreamSynchronize(stream) == cudaSuccess;
    };

    context->setInputShape("x", Dims4{kBatch, kChannels, kSize, kSize});
    context->setTensorAddress("x", x);
    context->setTensorAddress("y", y);
    context->setInputConsumedEvent(event);
    cudaMemcpyAsync(x, first.data(), kIn * sizeof(float), cudaMemcpyHostToDevice, stream);
    expect(context->enqueueV3(stream) && fetch() && same(got, net.expected(first, kBatch)), "enqueueV3 on a stream");
    expect(cudaEventSynchronize(event) == cudaSuccess, "the event for consumed inputs is recorded");
    context->setInputConsumedEvent(nullptr);

    // Again and again with the same addresses: replayed from the third run on.
    bool again = true;
    for (int i = 0; i < 5; ++i) {
        std::vector<float> const next = input(float(i) + 2);
        cudaMemcpyAsync(x, next.data(), kIn * sizeof(float), cudaMemcpyHostToDevice, stream);
        cudaMemsetAsync(y, 0, kOut * sizeof(float), stream);
        again = context->enqueueV3(stream) && fetch() && same(got, net.expected(next, kBatch)) && again;
    }
    expect(again, "runs with the same addresses and other numbers");

    void* bindings[] = {x, y, nullptr, nullptr};
    cudaMemcpy(x, second.data(), kIn * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemset(y, 0, kOut * sizeof(float));
    expect(context->executeV2(bindings) && fetch() && same(got, net.expected(second, kBatch)), "executeV2");
    context->setBindingDimensions(0, Dims4{1, kChannels, kSize, kSize});
    expect(context->enqueueV2(bindings, stream, nullptr) && fetch() && same(got, net.expected(second, 1)),
           "another batch size, enqueueV2");
    context->setInputShape("x", Dims4{kBatch, kChannels, kSize, kSize});

    // Captured once, replayed with other inputs.
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    bool captured = context->enqueueV3(stream);
    captured = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess && captured;
    captured = context->enqueueV3(stream) && captured;
    captured = cudaStreamEndCapture(stream, &graph) == cudaSuccess && captured;
    captured = captured && cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess;
    expect(captured, "enqueueV3 is captured in a CUDA graph");
    cudaMemcpyAsync(x, first.data(), kIn * sizeof(float), cudaMemcpyHostToDevice, stream);
    expect(captured && cudaGraphLaunch(exec, stream) == cudaSuccess && fetch() &&
               same(got, net.expected(first, kBatch)),
           "the graph replays");

    // What cannot be captured: the client's capture fails, the context can be used on.
    float* odd = nullptr;
    cudaMalloc(reinterpret_cast<void**>(&odd), (kIn + 1) * sizeof(float));
    context->setTensorAddress("x", odd + 1);
    bool refused = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess;
    refused = !context->enqueueV3(stream) && refused;
    refused = cudaStreamEndCapture(stream, &graph) != cudaSuccess && refused;
    cudaGetLastError();
    expect(refused, "a run that needs copies of its own is refused in a capture");
    cudaMemcpyAsync(odd + 1, second.data(), kIn * sizeof(float), cudaMemcpyHostToDevice, stream);
    expect(context->enqueueV3(stream) && fetch() && same(got, net.expected(second, kBatch)),
           "and runs outside of one, on addresses that are not aligned");
    context->setTensorAddress("x", x);

    // Plain host memory: refused, or used where the system shares it with the GPU.
    context->setTensorAddress("x", const_cast<float*>(second.data()));
    bool const used = context->enqueueV3(stream);
    expect(cudaStreamSynchronize(stream) == cudaSuccess &&
               (!used || (fetch() && same(got, net.expected(second, kBatch)))),
           "plain host memory does no harm");
    std::printf("  plain host memory is %s\n", used ? "used" : "refused");
    context->setTensorAddress("x", x);

    Profiler profiler;
    context->setProfiler(&profiler);
    expect(context->enqueueV3(stream) && fetch() && !profiler.layers.empty() && profiler.total > 0,
           "the profiler gets times of layers");
    // Captured with a profiler: the graph times its layers.
    cudaGraph_t timed = nullptr;
    cudaGraphExec_t timedExec = nullptr;
    bool isTimed = cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess;
    isTimed = context->enqueueV3(stream) && isTimed;
    isTimed = cudaStreamEndCapture(stream, &timed) == cudaSuccess && isTimed;
    isTimed = isTimed && cudaGraphInstantiate(&timedExec, timed, 0) == cudaSuccess;
    profiler.total = 0;
    isTimed = isTimed && !context->reportToProfiler() && profiler.total == 0; // it has not run
    cudaMemsetAsync(y, 0, kOut * sizeof(float), stream);
    isTimed = isTimed && cudaGraphLaunch(timedExec, stream) == cudaSuccess && fetch() &&
              same(got, net.expected(first, kBatch));
    expect(isTimed && context->reportToProfiler() && profiler.total > 0, "a captured run is profiled");
    context->setProfiler(nullptr);

    // Two contexts on two streams, each with a profile of its own.
    {
        std::unique_ptr<IExecutionContext> other(engine->createExecutionContextWithoutDeviceMemory());
        void* memory = nullptr;
        cudaMalloc(&memory, engine->getDeviceMemorySize() + 1);
        cudaStream_t stream2 = nullptr;
        cudaStreamCreate(&stream2);
        float *x2 = nullptr, *y2 = nullptr;
        cudaMalloc(reinterpret_cast<void**>(&x2), kIn * sizeof(float));
        cudaMalloc(reinterpret_cast<void**>(&y2), kOut * sizeof(float));
        cudaMemcpy(x2, second.data(), kIn * sizeof(float), cudaMemcpyHostToDevice);
        other->setDeviceMemory(memory);
        other->setOptimizationProfileAsync(1, stream2);
        other->setInputShape("x", Dims4{kBatch, kChannels, kSize, kSize});
        other->setTensorAddress("x", x2);
        other->setTensorAddress("y", y2);
        bool good = true;
        for (int i = 0; i < 50; ++i)
            good = context->enqueueV3(stream) && other->enqueueV3(stream2) && good;
        std::vector<float> got2(kOut);
        cudaMemcpyAsync(got2.data(), y2, kOut * sizeof(float), cudaMemcpyDeviceToHost, stream2);
        expect(good && fetch() && cudaStreamSynchronize(stream2) == cudaSuccess &&
                   same(got, net.expected(first, kBatch)) && same(got2, net.expected(second, kBatch)),
               "two contexts on two streams, one with setDeviceMemory");
    }
    // The GPU that is current when the plan is loaded, whichever the runtime was made on.
    if (gpus > 1) {
        cudaSetDevice(1);
        std::unique_ptr<ICudaEngine> there(runtime->deserializeCudaEngine(plan->data(), plan->size()));
        std::unique_ptr<IExecutionContext> c(there ? there->createExecutionContext() : nullptr);
        float *x1 = nullptr, *y1 = nullptr;
        cudaMalloc(reinterpret_cast<void**>(&x1), kIn * sizeof(float));
        cudaMalloc(reinterpret_cast<void**>(&y1), kOut * sizeof(float));
        cudaMemcpy(x1, second.data(), kIn * sizeof(float), cudaMemcpyHostToDevice);
        bool good = c && c->setInputShape("x", Dims4{kBatch, kChannels, kSize, kSize}) &&
                    c->setTensorAddress("x", x1) && c->setTensorAddress("y", y1);
        cudaSetDevice(0); // the engine keeps its GPU
        good = good && c->enqueueV3(nullptr);
        cudaSetDevice(1);
        good = cudaDeviceSynchronize() == cudaSuccess && good;
        cudaMemcpy(got.data(), y1, kOut * sizeof(float), cudaMemcpyDeviceToHost);
        expect(good && same(got, net.expected(second, kBatch)), "an engine on the second GPU");
        c.reset();
        there.reset();
        cudaFree(x1);
        cudaFree(y1);
        cudaSetDevice(0);
    } else {
        std::printf("  one GPU: an engine on the second one was not tried\n");
    }
    context.reset();
    engine.reset();
    expect(allocator.live == 0, "all memory goes back to the IGpuAllocator");
    expect(runsInFormats(logger), "inputs and outputs in formats of their own");
    expect(runsDirectly(logger), "kDIRECT_IO: channels-last FP16 goes in and out without a copy");
    expect(!buildDirect(logger, TensorFormat::kCHW4, 21), "kDIRECT_IO: a format that needs a copy is refused");
    checkLoops(logger, expect);
    expect(refits(logger), "a refit between runs that are replayed, with the context that was there");
    std::printf("%d failures\n", failures);
    return failures != 0;
}
