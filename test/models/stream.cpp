// SPDX-License-Identifier: Apache-2.0
// Runs a streaming network frame after frame, each with the state that the one before gave, through the public API.
//   model_stream model.onnx frames.bin state.bin out.bin FRAME:1x576 STATE:2x1x128 [NAME=VALUE]
// frames.bin: float32 frames one after another; state.bin: the first frame's state. FRAME and STATE are the inputs' names
// with their shapes; a NAME is a scalar integer input. out.bin: output 0 of every frame, then the last state (output 1).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <NvInfer.h>
#include <NvOnnxParser.h>

namespace {

using namespace nvinfer1;

class Logger : public ILogger
{
public:
    void log(Severity severity, char const* message) noexcept override
    {
        if (severity <= Severity::kERROR)
            std::fprintf(stderr, "%s\n", message);
    }
};

std::vector<char> readFile(char const* path)
{
    std::ifstream f(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(f), std::istreambuf_iterator<char>()};
}

size_t floatBytes(Dims const& d)
{
    size_t v = sizeof(float);
    for (int i = 0; i < d.nbDims; ++i)
        v *= size_t(d.d[i]);
    return v;
}

// NAME:1x2x3
struct Shaped
{
    std::string name;
    Dims dims{};

    explicit Shaped(std::string const& text) : name(text.substr(0, text.rfind(':')))
    {
        for (size_t at = text.rfind(':'); at != std::string::npos; at = text.find('x', at + 1))
            dims.d[dims.nbDims++] = std::atoi(text.c_str() + at + 1);
    }
};

} // namespace

int main(int argc, char** argv)
{
    if (argc < 7)
        return 2;
    Logger logger;
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> network(
        builder->createNetworkV2(1u << static_cast<int>(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH)));
    std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
    if (!parser->parseFromFile(argv[1], static_cast<int>(ILogger::Severity::kERROR)))
        return 1;
    Shaped const frame(argv[5]), state(argv[6]);
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    IOptimizationProfile* profile = builder->createOptimizationProfile();
    for (Shaped const& s : {frame, state})
        for (auto selector : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
            profile->setDimensions(s.name.c_str(), selector, s.dims);
    config->addOptimizationProfile(profile);
    std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
    std::unique_ptr<ICudaEngine> engine(plan ? runtime->deserializeCudaEngine(plan->data(), plan->size()) : nullptr);
    std::unique_ptr<IExecutionContext> context(engine ? engine->createExecutionContext() : nullptr);
    if (!context || !context->setInputShape(frame.name.c_str(), frame.dims) ||
        !context->setInputShape(state.name.c_str(), state.dims))
        return 1;

    std::vector<char> frames = readFile(argv[2]), first = readFile(argv[3]);
    size_t const frameBytes = floatBytes(frame.dims), stateBytes = floatBytes(state.dims);
    std::string const output = network->getOutput(0)->getName(), next = network->getOutput(1)->getName();
    size_t const outputBytes = floatBytes(context->getTensorShape(output.c_str()));
    if (frames.empty() || frames.size() % frameBytes != 0 || first.size() != stateBytes ||
        floatBytes(context->getTensorShape(next.c_str())) != stateBytes)
        return 1;
    std::vector<char> out(outputBytes), states[2] = {first, first};
    std::map<std::string, int32_t> scalars;
    for (int i = 7; i < argc; ++i)
        if (char const* value = std::strchr(argv[i], '='))
            scalars[std::string(argv[i], size_t(value - argv[i]))] = std::atoi(value + 1);
    std::ofstream file(argv[4], std::ios::binary);
    for (size_t i = 0; i < frames.size() / frameBytes; ++i) {
        std::vector<void*> bindings;
        for (int b = 0; b < engine->getNbIOTensors(); ++b) {
            std::string const name = engine->getIOTensorName(b);
            bindings.push_back(name == frame.name   ? frames.data() + i * frameBytes
                               : name == state.name ? states[i % 2].data()
                               : name == output     ? out.data()
                               : name == next       ? states[(i + 1) % 2].data()
                                                    : static_cast<void*>(&scalars[name]));
        }
        if (!context->executeV2(bindings.data()))
            return 1;
        file.write(out.data(), std::streamsize(out.size()));
        first = states[(i + 1) % 2];
    }
    file.write(first.data(), std::streamsize(first.size()));
    return file.good() ? 0 : 1;
}
