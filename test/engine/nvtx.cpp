// SPDX-License-Identifier: Apache-2.0
// Ranges for profilers, in a process of their own: which profiler there is counts once. usage: test_engine_nvtx
// PROFILER. Built twice: the engine is the CPU's, or a GPU's (TW_NVTX_ON_GPU; needs the CUDA runtime; status 77: no
// GPU).
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <dlfcn.h>

#include "NvInfer.h"
#ifdef TW_NVTX_ON_GPU
#include <cuda_runtime_api.h>
#endif

namespace {

using namespace nvinfer1;

class Logger final : public ILogger
{
public:
    void log(Severity severity, char const* message) noexcept override
    {
        if (severity <= Severity::kWARNING)
            std::printf("  log: %s\n", message);
    }
};

int failures = 0;

void expectEqual(std::string const& got, std::string const& want, char const* what)
{
    std::printf("%s: %s\n", got == want ? "ok" : "FAILED", what);
    if (got != want)
        std::printf("got:\n%swanted:\n%s", got.c_str(), want.c_str());
    failures += got != want;
}

std::unique_ptr<ICudaEngine> build(Logger& logger, ProfilingVerbosity verbosity)
{
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(1U));
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims4{1, 2, 4, 4});
    ILayer* soft = network->addSoftMax(*x);
    soft->setName("soft");
    IPoolingLayer* pool = network->addPoolingNd(*soft->getOutput(0), PoolingType::kMAX, DimsHW{2, 2});
    pool->setName("pool");
    network->markOutput(*pool->getOutput(0));
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    config->setProfilingVerbosity(verbosity);
    return std::unique_ptr<ICudaEngine>(builder->buildEngineWithConfig(*network, *config));
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 2)
        return 2;
#ifdef TW_NVTX_ON_GPU
    setenv("TENSORWRIGHT_DEVICE", "cuda", 1);
    int gpus = 0;
    cudaError_t const status = cudaGetDeviceCount(&gpus);
    if (status != cudaSuccess || gpus == 0) {
        std::printf("SKIP: no GPU that the CUDA runtime can use (%s)\n", cudaGetErrorString(status));
        return 77;
    }
    void* bindings[2] = {};
    for (void*& memory : bindings)
        if (cudaMalloc(&memory, 32 * sizeof(float)) != cudaSuccess)
            return 1;
#else
    setenv("TENSORWRIGHT_DEVICE", "cpu", 1);
    std::vector<float> x(32, 1), y(18, 0);
    void* bindings[] = {x.data(), y.data()};
#endif
    setenv("NVTX_INJECTION64_PATH", argv[1], 1);
    Logger logger;
    void* const profiler = dlopen(argv[1], RTLD_NOW);
    auto const recorded = profiler ? reinterpret_cast<char const* (*)()>(dlsym(profiler, "recordedRanges")) : nullptr;
    if (!recorded) {
        std::printf("FAILED: %s\n", dlerror());
        return 1;
    }
    auto run = [&](IExecutionContext& c) {
        recorded();
        failures += !c.executeV2(bindings);
        return std::string(recorded());
    };
    auto const names = build(logger, ProfilingVerbosity::kLAYER_NAMES_ONLY);
    auto const detailed = build(logger, ProfilingVerbosity::kDETAILED);
    auto const none = build(logger, ProfilingVerbosity::kNONE);
    if (!names || !detailed || !none)
        return 1;
    std::unique_ptr<IExecutionContext> c(names->createExecutionContext());
    expectEqual(run(*c), "soft\n/\npool\n/\n", "a range for each layer");
    c->setNvtxVerbosity(ProfilingVerbosity::kNONE);
    expectEqual(run(*c), "", "no ranges when the context wants none");
    expectEqual(c->setNvtxVerbosity(ProfilingVerbosity::kDETAILED) ? "set" : "refused", "refused",
                "not more than the engine was built with");
    c.reset(detailed->createExecutionContext());
    std::string const text = run(*c);
    bool const hasTactics = text.rfind("soft (softmax, ", 0) == 0 && text.find("pool (pooling, ") != std::string::npos;
    expectEqual(hasTactics ? "" : text, "", "detailed ranges tell op and tactic");
    c->setNvtxVerbosity(ProfilingVerbosity::kLAYER_NAMES_ONLY);
    expectEqual(run(*c), "soft\n/\npool\n/\n", "less than the engine was built with");
    c.reset(none->createExecutionContext());
    expectEqual(run(*c), "", "an engine without names");
    std::printf("%d failures\n", failures);
    return failures != 0;
}
