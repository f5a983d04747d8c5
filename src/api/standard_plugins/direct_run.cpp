// SPDX-License-Identifier: Apache-2.0
#include "api/standard_plugins/direct_run.h"

#include "api/entry.h"
#include "api/network/network.h"

namespace tw::api {

namespace {

std::string nameOf(size_t i, bool isInput)
{
    return fmt::format("{}{}", isInput ? "x" : "y", i);
}

std::string keyOf(std::vector<DirectTensor> const& tensors)
{
    std::string key;
    for (DirectTensor const& t : tensors)
        key += fmt::format("{},{},{},{};", int(t.desc.type), int(t.desc.format), str(t.desc.dims), t.desc.scale);
    return key;
}

// Of clients that brought none.
class Silent final : public nvinfer1::ILogger
{
    void log(Severity, nvinfer1::AsciiChar const*) noexcept override {}
};

} // namespace

struct DirectRun::Engine
{
    std::unique_ptr<nvinfer1::IRuntime> runtime;
    std::unique_ptr<nvinfer1::ICudaEngine> engine;
    std::unique_ptr<nvinfer1::IExecutionContext> context;
};

DirectRun::DirectRun() = default;
DirectRun::~DirectRun() = default;

Result<std::unique_ptr<DirectRun::Engine>> DirectRun::build(nvinfer1::IPluginV2& plugin,
                                                            std::vector<DirectTensor> const& inputs,
                                                            std::vector<DirectTensor> const& outputs) const
{
    static Silent silent;
    nvinfer1::ILogger& logger = getLogger() ? *getLogger() : silent;
    Error const failed = invalidState("enqueue() of plugin '" + std::string(plugin.getPluginType()) +
                                      "': no engine could be built for its tensors; the log says why");
    std::unique_ptr<nvinfer1::IBuilder> const builder(nvinfer1::createInferBuilder(logger));
    if (!builder)
        return failed;
    std::unique_ptr<nvinfer1::INetworkDefinition> const network(
        builder->createNetworkV2(1U << uint32_t(nvinfer1::NetworkDefinitionCreationFlag::kEXPLICIT_BATCH)));
    std::unique_ptr<nvinfer1::IBuilderConfig> const config(builder->createBuilderConfig());
    std::vector<nvinfer1::ITensor*> tensors;
    auto const settle = [&](nvinfer1::ITensor& t, nvinfer1::PluginTensorDesc const& d) {
        t.setAllowedFormats(1U << uint32_t(d.format));
        if (d.type == nvinfer1::DataType::kHALF)
            config->setFlag(nvinfer1::BuilderFlag::kFP16);
        if (d.type == nvinfer1::DataType::kINT8) {
            config->setFlag(nvinfer1::BuilderFlag::kINT8);
            t.setDynamicRange(-127 * d.scale, 127 * d.scale);
        }
    };
    for (size_t i = 0; i < inputs.size(); ++i) {
        nvinfer1::PluginTensorDesc const& d = inputs[i].desc;
        nvinfer1::ITensor* const t = network->addInput(nameOf(i, true).c_str(), d.type, d.dims);
        if (!t)
            return failed;
        settle(*t, d);
        tensors.push_back(t);
    }
    nvinfer1::IPluginV2Layer* const layer = network->addPluginV2(tensors.data(), int32_t(tensors.size()), plugin);
    if (!layer || size_t(layer->getNbOutputs()) != outputs.size())
        return failed;
    for (size_t i = 0; i < outputs.size(); ++i) {
        nvinfer1::ITensor& t = *layer->getOutput(int32_t(i));
        t.setName(nameOf(i, false).c_str());
        network->markOutput(t);
        t.setType(outputs[i].desc.type);
        settle(t, outputs[i].desc);
    }
    std::unique_ptr<nvinfer1::IHostMemory> const plan(builder->buildSerializedNetwork(*network, *config));
    auto made = std::make_unique<Engine>();
    made->runtime.reset(nvinfer1::createInferRuntime(logger));
    if (!plan || !made->runtime)
        return failed;
    made->engine.reset(made->runtime->deserializeCudaEngine(plan->data(), plan->size()));
    if (made->engine)
        made->context.reset(made->engine->createExecutionContext());
    return made->context ? Result<std::unique_ptr<Engine>>(std::move(made)) : failed;
}

Result<void> DirectRun::run(nvinfer1::IPluginV2& plugin, std::vector<DirectTensor> const& inputs,
                            std::vector<DirectTensor> const& outputs, cudaStream_t stream)
{
    std::lock_guard lock(mutex_);
    auto& engine = engines_[keyOf(inputs) + '>' + keyOf(outputs)];
    if (!engine) {
        TW_ASSIGN(engine, build(plugin, inputs, outputs));
    }
    nvinfer1::IExecutionContext& context = *engine->context;
    bool ok = true;
    for (size_t i = 0; i < inputs.size(); ++i)
        ok = context.setTensorAddress(nameOf(i, true).c_str(), const_cast<void*>(inputs[i].data)) && ok;
    for (size_t i = 0; i < outputs.size(); ++i)
        ok = context.setTensorAddress(nameOf(i, false).c_str(), const_cast<void*>(outputs[i].data)) && ok;
    if (!ok || !context.enqueueV3(stream))
        return invalidState("enqueue() of plugin '" + std::string(plugin.getPluginType()) +
                            "' failed; the log says why");
    return {};
}

} // namespace tw::api
