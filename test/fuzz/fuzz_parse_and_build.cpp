// SPDX-License-Identifier: Apache-2.0
// ONNX model from untrusted bytes to a plan, through the public API: a plan that can be loaded, or an error.
#include <cstdint>
#include <cstdlib>

#include "NvInferPlugin.h"
#include "onnx_client.h"

namespace {

using namespace nvinfer1;

// Larger networks are not built: a fuzzer wants many short runs.
constexpr int64_t kMaxElements = 8192;
constexpr int32_t kMaxLayers = 64;

bool isSmall(ITensor const& t)
{
    Dims const d = t.getDimensions();
    int64_t n = 1;
    for (int i = 0; i < d.nbDims; ++i) {
        n *= d.d[i] < 0 ? 3 : d.d[i];
        if (n > kMaxElements)
            return false;
    }
    return true;
}

bool isSmall(INetworkDefinition const& network)
{
    if (network.getNbLayers() > kMaxLayers || network.getNbInputs() > 16)
        return false;
    for (int i = 0; i < network.getNbInputs(); ++i)
        if (!isSmall(*network.getInput(i)))
            return false;
    for (int i = 0; i < network.getNbLayers(); ++i)
        for (int k = 0; k < network.getLayer(i)->getNbOutputs(); ++k)
            if (!isSmall(*network.getLayer(i)->getOutput(k)))
                return false;
    return true;
}

bool hasPairs(INetworkDefinition const& network)
{
    for (int i = 0; i < network.getNbLayers(); ++i)
        if (LayerType const type = network.getLayer(i)->getType();
            type == LayerType::kQUANTIZE || type == LayerType::kDEQUANTIZE)
            return true;
    return false;
}

// Dynamic dimensions range over 1..3, values of shape tensors over 1..2.
void addProfile(IBuilder& builder, INetworkDefinition const& network, IBuilderConfig& config)
{
    IOptimizationProfile* profile = builder.createOptimizationProfile();
    OptProfileSelector const at[] = {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX};
    for (int i = 0; i < network.getNbInputs(); ++i) {
        ITensor& t = *network.getInput(i);
        for (int s = 0; s < 3; ++s) {
            Dims d = t.getDimensions();
            for (int k = 0; k < d.nbDims; ++k)
                d.d[k] = d.d[k] < 0 ? s + 1 : d.d[k];
            profile->setDimensions(t.getName(), at[s], d);
            int32_t values[64];
            int32_t const count = d.nbDims == 0 ? 1 : d.nbDims == 1 ? d.d[0] : 0;
            if (!t.isShapeTensor() || count > 64)
                continue;
            for (int k = 0; k < count; ++k)
                values[k] = s == 0 ? 1 : 2;
            profile->setShapeValues(t.getName(), at[s], values, count);
        }
    }
    config.addOptimizationProfile(profile);
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***)
{
    setenv("TENSORWRIGHT_MAX_MEMORY_MB", "64", 1);
    return initLibNvInferPlugins(nullptr, "") ? 0 : 1;
}

extern "C" int LLVMFuzzerTestOneInput(uint8_t const* data, size_t size)
{
    tw::fuzz::Client client;
    if (!client.parse(data, size) || !isSmall(*client.network))
        return 0;
    std::unique_ptr<IBuilderConfig> config(client.builder->createBuilderConfig());
    config->setFlag(BuilderFlag::kENABLE_TACTIC_HEURISTIC);
    if (hasPairs(*client.network))
        config->setFlag(BuilderFlag::kINT8);
    addProfile(*client.builder, *client.network, *config);
    client.logger.errors = 0;
    std::unique_ptr<IHostMemory> plan(client.builder->buildSerializedNetwork(*client.network, *config));
    if (!plan) {
        if (client.logger.errors == 0)
            client.logger.finding("no plan, and no error");
        return 0;
    }
    std::unique_ptr<IRuntime> runtime(createInferRuntime(client.logger));
    std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    if (!engine)
        client.logger.finding("the plan cannot be loaded");
    return 0;
}
