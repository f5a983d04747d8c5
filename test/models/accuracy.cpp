// SPDX-License-Identifier: Apache-2.0
// Counts how many pictures a classifier reads right, through the public API.
//   model_accuracy model.onnx inputs.bin labels.bin [float|entropy|minmax COUNT]
// inputs.bin: float32 pictures one after another, each of the model's input size; labels.bin: one byte each.
// With COUNT the engine runs in FP32, or in INT8 as calibrated on the first COUNT pictures, which are not judged then.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <NvInfer.h>
#include <NvOnnxParser.h>

namespace {

class Logger : public nvinfer1::ILogger
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

int64_t volume(nvinfer1::Dims const& d)
{
    int64_t v = 1;
    for (int i = 0; i < d.nbDims; ++i)
        v *= d.d[i];
    return v;
}

// Pictures one by one.
template <class Interface>
struct Pictures final : Interface
{
    int32_t getBatchSize() const noexcept override { return 1; }
    bool getBatch(void* bindings[], char const*[], int32_t) noexcept override
    {
        bindings[0] = at;
        at += bytes;
        return left-- > 0;
    }
    void const* readCalibrationCache(std::size_t& length) noexcept override
    {
        length = 0;
        return nullptr;
    }
    void writeCalibrationCache(void const*, std::size_t) noexcept override {}
    char* at = nullptr;
    size_t bytes = 0, left = 0;
};

} // namespace

int main(int argc, char** argv)
{
    if (argc != 4 && argc != 6)
        return 2;
    std::string const kind = argc > 4 ? argv[4] : "";
    size_t const calibrated = argc > 5 ? std::stoul(argv[5]) : 0;
    using namespace nvinfer1;
    Logger logger;
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> network(
        builder->createNetworkV2(1u << static_cast<int>(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH)));
    std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
    if (!parser->parseFromFile(argv[1], static_cast<int>(ILogger::Severity::kERROR)))
        return 1;
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    if (kind != "float") // for models with quantize and dequantize layers; without them, or ranges, nothing changes
        config->setFlag(BuilderFlag::kINT8);
    ITensor* input = network->getInput(0);
    Dims dims = input->getDimensions();
    if (dims.d[0] == -1) {
        dims.d[0] = 1;
        IOptimizationProfile* profile = builder->createOptimizationProfile();
        for (auto s : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
            profile->setDimensions(input->getName(), s, dims);
        config->addOptimizationProfile(profile);
    }
    std::vector<char> inputs = readFile(argv[2]);
    std::vector<char> const labels = readFile(argv[3]);
    size_t const bytes = size_t(volume(dims)) * sizeof(float);
    if (labels.size() <= calibrated || inputs.size() != labels.size() * bytes)
        return 1;
    Pictures<IInt8EntropyCalibrator2> entropy;
    Pictures<IInt8MinMaxCalibrator> largest;
    auto calibrate = [&](auto& calibrator) {
        calibrator.at = inputs.data();
        calibrator.bytes = bytes;
        calibrator.left = calibrated;
        config->setInt8Calibrator(&calibrator);
    };
    if (kind == "entropy")
        calibrate(entropy);
    if (kind == "minmax")
        calibrate(largest);
    std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
    std::unique_ptr<ICudaEngine> engine(plan ? runtime->deserializeCudaEngine(plan->data(), plan->size()) : nullptr);
    std::unique_ptr<IExecutionContext> context(engine ? engine->createExecutionContext() : nullptr);
    if (!context || !context->setInputShape(engine->getIOTensorName(0), dims))
        return 1;
    std::vector<float> scores(size_t(volume(context->getTensorShape(engine->getIOTensorName(1)))));
    size_t right = 0;
    for (size_t i = calibrated; i < labels.size(); ++i) {
        void* bindings[] = {inputs.data() + i * bytes, scores.data()};
        if (!context->executeV2(bindings))
            return 1;
        right += size_t(std::max_element(scores.begin(), scores.end()) - scores.begin()) == size_t(labels[i]);
    }
    std::printf("right %zu of %zu\n", right, labels.size() - calibrated);
    return 0;
}
