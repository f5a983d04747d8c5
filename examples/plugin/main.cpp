// SPDX-License-Identifier: Apache-2.0
// Loads the plugin library, builds y = roll(2 x) for rows of any number, and runs it.
//   roll <libroll_plugin.so> [<plan to write>]
#include <cstdio>
#include <fstream>
#include <memory>
#include <vector>

#include <dlfcn.h>

#include "NvInfer.h"
#include "cuda_runtime_api.h"

namespace {

using namespace nvinfer1;

class Logger final : public ILogger
{
    void log(Severity severity, char const* text) noexcept override
    {
        if (severity <= Severity::kWARNING)
            std::fprintf(stderr, "%s\n", text);
    }
};

struct Destroy
{
    void operator()(IPluginV2* p) const { p->destroy(); }
};

std::unique_ptr<IHostMemory> build(Logger& logger, int32_t shift)
{
    std::unique_ptr<IBuilder> const builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> const network(
        builder->createNetworkV2(1U << uint32_t(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH)));
    std::unique_ptr<IBuilderConfig> const config(builder->createBuilderConfig());
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(-1, 5));
    ITensor* sum = network->addElementWise(*x, *x, ElementWiseOperation::kSUM)->getOutput(0);

    IPluginCreator* creator = getPluginRegistry()->getPluginCreator("Roll", "1", "");
    if (!creator)
        return nullptr;
    PluginField const field{"shift", &shift, PluginFieldType::kINT32, 1};
    PluginFieldCollection const fields{1, &field};
    std::unique_ptr<IPluginV2, Destroy> const plugin(creator->createPlugin("roll", &fields));
    if (!plugin)
        return nullptr;
    IPluginV2Layer* layer = network->addPluginV2(&sum, 1, *plugin); // takes a clone
    layer->setName("roll");
    layer->getOutput(0)->setName("y");
    network->markOutput(*layer->getOutput(0));

    IOptimizationProfile* profile = builder->createOptimizationProfile();
    profile->setDimensions("x", OptProfileSelector::kMIN, Dims2(1, 5));
    profile->setDimensions("x", OptProfileSelector::kOPT, Dims2(2, 5));
    profile->setDimensions("x", OptProfileSelector::kMAX, Dims2(8, 5));
    config->addOptimizationProfile(profile);
    return std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config));
}

// 2 x rolled by `shift`, by the engine.
bool run(ICudaEngine& engine, std::vector<float> const& x, std::vector<float>& y)
{
    size_t const bytes = x.size() * sizeof(float);
    void *in = nullptr, *out = nullptr;
    cudaStream_t stream = nullptr;
    std::unique_ptr<IExecutionContext> const context(engine.createExecutionContext());
    bool const ok = context && cudaMalloc(&in, bytes) == cudaSuccess && cudaMalloc(&out, bytes) == cudaSuccess &&
                    cudaStreamCreate(&stream) == cudaSuccess &&
                    cudaMemcpyAsync(in, x.data(), bytes, cudaMemcpyHostToDevice, stream) == cudaSuccess &&
                    context->setInputShape("x", Dims2(int32_t(x.size() / 5), 5)) &&
                    context->setTensorAddress("x", in) && context->setTensorAddress("y", out) &&
                    context->enqueueV3(stream) &&
                    cudaMemcpyAsync(y.data(), out, bytes, cudaMemcpyDeviceToHost, stream) == cudaSuccess &&
                    cudaStreamSynchronize(stream) == cudaSuccess;
    cudaFree(in);
    cudaFree(out);
    if (stream)
        cudaStreamDestroy(stream);
    return ok;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc < 2 || !dlopen(argv[1], RTLD_NOW)) { // its static registrar runs here
        std::fprintf(stderr, "usage: roll <libroll_plugin.so> [<plan to write>]\n");
        return 1;
    }
    Logger logger;
    int32_t const shift = 2;
    std::unique_ptr<IHostMemory> const plan = build(logger, shift);
    if (!plan)
        return 1;
    if (argc > 2)
        std::ofstream(argv[2], std::ios::binary).write(static_cast<char const*>(plan->data()), int64_t(plan->size()));
    std::unique_ptr<IRuntime> const runtime(createInferRuntime(logger));
    std::unique_ptr<ICudaEngine> const engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    std::vector<float> x(15), y(15);
    for (size_t i = 0; i < x.size(); ++i)
        x[i] = float(i);
    if (!engine || !run(*engine, x, y))
        return 1;
    for (size_t i = 0; i < y.size(); ++i) {
        std::printf("%g%c", double(y[i]), i % 5 == 4 ? '\n' : ' ');
        if (y[i / 5 * 5 + (i % 5 + size_t(shift)) % 5] != 2 * x[i])
            return 2;
    }
    return 0;
}
