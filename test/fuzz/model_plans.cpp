// SPDX-License-Identifier: Apache-2.0
// usage: fuzz_model_plans <folder> model.onnx...
// Builds each model that can be imported with its dynamic dimensions at 1 and writes its plan: seeds for fuzz_plan.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "NvInfer.h"
#include "NvOnnxParser.h"

namespace {

class Logger final : public nvinfer1::ILogger
{
public:
    void log(Severity severity, char const* message) noexcept override
    {
        if (severity <= Severity::kERROR)
            std::printf("  %s\n", message);
    }
};

} // namespace

int main(int argc, char** argv)
{
    using namespace nvinfer1;
    namespace fs = std::filesystem;
    Logger logger;
    int written = 0;
    for (int i = 2; i < argc; ++i) {
        std::printf("%s\n", argv[i]);
        std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
        std::unique_ptr<INetworkDefinition> network(
            builder->createNetworkV2(1u << uint32_t(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH)));
        std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
        if (!parser->parseFromFile(argv[i], 0))
            continue;
        std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
        config->setFlag(BuilderFlag::kENABLE_TACTIC_HEURISTIC);
        IOptimizationProfile* profile = builder->createOptimizationProfile();
        for (int k = 0; k < network->getNbInputs(); ++k) {
            Dims d = network->getInput(k)->getDimensions();
            for (int j = 0; j < d.nbDims; ++j)
                d.d[j] = d.d[j] < 0 ? 1 : d.d[j];
            for (OptProfileSelector s : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
                profile->setDimensions(network->getInput(k)->getName(), s, d);
        }
        config->addOptimizationProfile(profile);
        std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
        if (!plan)
            continue;
        fs::create_directories(argv[1]);
        std::string const name = fs::path(argv[i]).parent_path().filename().string();
        std::ofstream(fs::path(argv[1]) / (name + ".plan"), std::ios::binary)
            .write(static_cast<char const*>(plan->data()), std::streamsize(plan->size()));
        ++written;
    }
    std::printf("%d of %d models became plans\n", written, argc - 2);
    return written > 0 ? 0 : 1;
}
