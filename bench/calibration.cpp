// SPDX-License-Identifier: Apache-2.0
// usage: bench_calibration MODEL.onnx [batch=10] [pictures=500] [verbose]
// What it takes to calibrate a network: a client of the API whose calibrator gives random pictures. Dimensions of inputs
// that are not fixed are the batch. Prints seconds of the calibration alone, CPU time (of use while others
// work on the machine) and the cache's hash.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "NvOnnxParser.h"

namespace {

using namespace nvinfer1;

bool isVerbose = false;

class Logger final : public ILogger
{
public:
    void log(Severity severity, AsciiChar const* text) noexcept override
    {
        if (severity <= Severity::kWARNING || isVerbose)
            std::fprintf(stderr, "%s\n", text);
    }
};

double now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class RandomPictures final : public IInt8EntropyCalibrator2
{
public:
    RandomPictures(std::vector<std::pair<std::string, size_t>> const& inputs, int batches) : left_(batches)
    {
        std::mt19937 random(1);
        std::normal_distribution<float> normal;
        for (auto const& [name, count] : inputs) {
            names_.push_back(name);
            data_.emplace_back(count);
            for (float& x : data_.back())
                x = normal(random);
        }
    }
    int32_t getBatchSize() const noexcept override { return 1; }
    bool getBatch(void* bindings[], char const* names[], int32_t count) noexcept override
    {
        if (begin == 0) {
            begin = now();
            cpu = std::clock();
        }
        if (left_-- == 0)
            return false;
        for (int32_t i = 0; i < count; ++i)
            for (size_t k = 0; k < names_.size(); ++k)
                if (names_[k] == names[i]) {
                    bindings[i] = data_[k].data();
                    // Other pictures each time, for nothing: the same numbers, moved on.
                    std::rotate(data_[k].begin(), data_[k].begin() + 12345 % data_[k].size(), data_[k].end());
                }
        return true;
    }
    void const* readCalibrationCache(std::size_t& length) noexcept override
    {
        length = 0;
        return nullptr;
    }
    void writeCalibrationCache(void const* bytes, std::size_t length) noexcept override
    {
        end = now();
        cpu = std::clock() - cpu;
        cache.assign(static_cast<char const*>(bytes), length);
    }
    double begin = 0, end = 0;
    std::clock_t cpu = 0; // of all threads
    std::string cache;

private:
    int left_;
    std::vector<std::string> names_;
    std::vector<std::vector<float>> data_;
};

} // namespace

int main(int argc, char** argv)
{
    if (argc < 2) {
        std::fprintf(stderr, "usage: bench_calibration MODEL.onnx [batch=10] [pictures=500] [verbose]\n");
        return 2;
    }
    int const batch = argc > 2 ? std::atoi(argv[2]) : 10, pictures = argc > 3 ? std::atoi(argv[3]) : 500;
    isVerbose = argc > 4;
    Logger logger;
    std::unique_ptr<IBuilder> const builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> const network(builder->createNetworkV2(1));
    std::unique_ptr<nvonnxparser::IParser> const parser(nvonnxparser::createParser(*network, logger));
    if (batch < 1 || pictures < batch || !parser->parseFromFile(argv[1], int(ILogger::Severity::kWARNING)))
        return 2;
    std::unique_ptr<IBuilderConfig> const config(builder->createBuilderConfig());
    IOptimizationProfile* const profile = builder->createOptimizationProfile();
    std::vector<std::pair<std::string, size_t>> inputs;
    for (int32_t i = 0; i < network->getNbInputs(); ++i) {
        ITensor& t = *network->getInput(i);
        Dims d = t.getDimensions();
        for (int32_t k = 0; k < d.nbDims; ++k)
            d.d[k] = d.d[k] < 0 ? batch : d.d[k];
        size_t count = 1;
        for (int32_t k = 0; k < d.nbDims; ++k)
            count *= size_t(d.d[k]);
        inputs.emplace_back(t.getName(), count);
        for (OptProfileSelector s : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
            profile->setDimensions(t.getName(), s, d);
    }
    config->addOptimizationProfile(profile);
    config->setFlag(BuilderFlag::kINT8);
    config->setFlag(BuilderFlag::kENABLE_TACTIC_HEURISTIC); // the engine is thrown away
    RandomPictures calibrator(inputs, pictures / batch);
    config->setInt8Calibrator(&calibrator);
    double const begin = now();
    std::unique_ptr<IHostMemory> const plan(builder->buildSerializedNetwork(*network, *config));
    if (calibrator.end == 0)
        return 1;
    std::printf("%s: %d batches of %d: %.2f s for the batches (%.2f s of CPU time), %.2f s before the first (kernels), "
                "cache %zu bytes, hash "
                "%016zx\n",
                argv[1], pictures / batch, batch, calibrator.end - calibrator.begin,
                double(calibrator.cpu) / CLOCKS_PER_SEC, calibrator.begin - begin, calibrator.cache.size(),
                std::hash<std::string>()(calibrator.cache));
    return plan ? 0 : 1;
}
