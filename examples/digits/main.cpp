// SPDX-License-Identifier: Apache-2.0
// Reads handwritten digits with a TensorRT engine: a plain client of the 8.5 API, C++11, public headers only.
//
//   digits <folder>          parses <folder>/digits.onnx, builds an engine and runs it
//   digits <folder> <plan>   runs a saved engine instead
//
// Shows each <folder>/<digit>.pgm with what the engine reads in it, then counts how many of the held-back pictures
// (<folder>/heldback_images.bin, heldback_labels.bin) it reads right, all of them in one batch.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "cuda_runtime_api.h"

namespace {

int const kSide = 8;               // pixels along each axis
int const kPixels = kSide * kSide; // of one picture
int const kClasses = 10;
int const kMaxInk = 16; // a pixel is 0..16; the network takes pixel / 16
int const kMaxBatch = 360;

class Logger : public nvinfer1::ILogger
{
public:
    void log(Severity severity, char const* text) noexcept override
    {
        if (severity <= Severity::kWARNING)
            std::fprintf(stderr, "%s\n", text);
    }
};

void require(bool holds, std::string const& what)
{
    if (!holds)
        throw std::runtime_error(what);
}

void requireCuda(cudaError_t status, char const* call)
{
    require(status == cudaSuccess, std::string(call) + ": " + cudaGetErrorString(status));
}

std::vector<char> readFile(std::string const& path)
{
    std::ifstream file(path.c_str(), std::ios::binary);
    require(file.good(), path + ": cannot be opened");
    return std::vector<char>(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

// The pixels of a binary PGM as train.py writes it: "P5", 8, 8, 16, one white space, then one byte for each pixel.
std::vector<uint8_t> readPicture(std::string const& path)
{
    std::vector<char> const bytes = readFile(path);
    std::string const header = "P5\n8 8\n16\n";
    require(bytes.size() == header.size() + kPixels && std::equal(header.begin(), header.end(), bytes.begin()),
            path + ": not a binary PGM of 8x8 pixels with values up to 16");
    return std::vector<uint8_t>(bytes.begin() + header.size(), bytes.end());
}

// Device memory of a fixed size, freed with its owner.
class DeviceBuffer
{
public:
    explicit DeviceBuffer(size_t sizeBytes) { requireCuda(cudaMalloc(&data_, sizeBytes), "cudaMalloc"); }
    ~DeviceBuffer() { cudaFree(data_); }
    DeviceBuffer(DeviceBuffer const&) = delete;
    DeviceBuffer& operator=(DeviceBuffer const&) = delete;
    void* data() const { return data_; }

private:
    void* data_ = nullptr;
};

class Stream
{
public:
    Stream() { requireCuda(cudaStreamCreate(&stream_), "cudaStreamCreate"); }
    ~Stream() { cudaStreamDestroy(stream_); }
    Stream(Stream const&) = delete;
    Stream& operator=(Stream const&) = delete;
    cudaStream_t get() const { return stream_; }

private:
    cudaStream_t stream_ = nullptr;
};

// A serialized engine for 1 to kMaxBatch pictures.
std::vector<char> buildPlan(std::string const& onnxPath, nvinfer1::ILogger& logger)
{
    std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
    require(builder != nullptr, "no builder");
    uint32_t const flags = 1U << static_cast<uint32_t>(nvinfer1::NetworkDefinitionCreationFlag::kEXPLICIT_BATCH);
    std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(flags));
    std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
    require(parser->parseFromFile(onnxPath.c_str(), static_cast<int>(nvinfer1::ILogger::Severity::kWARNING)),
            onnxPath + ": cannot be imported");

    nvinfer1::IOptimizationProfile* profile = builder->createOptimizationProfile();
    profile->setDimensions("image", nvinfer1::OptProfileSelector::kMIN, nvinfer1::Dims4(1, 1, kSide, kSide));
    profile->setDimensions("image", nvinfer1::OptProfileSelector::kOPT, nvinfer1::Dims4(1, 1, kSide, kSide));
    profile->setDimensions("image", nvinfer1::OptProfileSelector::kMAX, nvinfer1::Dims4(kMaxBatch, 1, kSide, kSide));
    std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
    config->addOptimizationProfile(profile);

    std::unique_ptr<nvinfer1::IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    require(plan != nullptr, onnxPath + ": the engine cannot be built");
    char const* bytes = static_cast<char const*>(plan->data());
    return std::vector<char>(bytes, bytes + plan->size());
}

class Reader
{
public:
    Reader(std::vector<char> const& plan, nvinfer1::ILogger& logger)
        : runtime_(nvinfer1::createInferRuntime(logger)), image_(sizeof(float) * kMaxBatch * kPixels),
          logits_(sizeof(float) * kMaxBatch * kClasses)
    {
        require(runtime_ != nullptr, "no runtime");
        engine_.reset(runtime_->deserializeCudaEngine(plan.data(), plan.size()));
        require(engine_ != nullptr, "the engine cannot be loaded");
        context_.reset(engine_->createExecutionContext());
        require(context_ != nullptr, "no execution context");
        require(context_->setTensorAddress("image", image_.data()) &&
                    context_->setTensorAddress("logits", logits_.data()),
                "the engine has no tensors 'image' and 'logits'");
    }

    // pictures: [count, 8, 8] of 0..16. Returns the logits, [count, 10].
    std::vector<float> read(std::vector<uint8_t> const& pictures)
    {
        int const count = static_cast<int>(pictures.size()) / kPixels;
        require(count >= 1 && count <= kMaxBatch, "1 to 360 pictures at once");
        std::vector<float> image(pictures.size());
        std::transform(pictures.begin(), pictures.end(), image.begin(),
                       [](uint8_t ink) { return static_cast<float>(ink) / kMaxInk; });
        std::vector<float> logits(static_cast<size_t>(count) * kClasses);

        require(context_->setInputShape("image", nvinfer1::Dims4(count, 1, kSide, kSide)),
                "the engine does not take this batch");
        requireCuda(cudaMemcpyAsync(image_.data(), image.data(), sizeof(float) * image.size(), cudaMemcpyHostToDevice,
                                    stream_.get()),
                    "cudaMemcpyAsync");
        require(context_->enqueueV3(stream_.get()), "the engine cannot be run");
        requireCuda(cudaMemcpyAsync(logits.data(), logits_.data(), sizeof(float) * logits.size(),
                                    cudaMemcpyDeviceToHost, stream_.get()),
                    "cudaMemcpyAsync");
        requireCuda(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
        return logits;
    }

private:
    // In this order: a context goes before its engine, an engine before its runtime.
    std::unique_ptr<nvinfer1::IRuntime> runtime_;
    std::unique_ptr<nvinfer1::ICudaEngine> engine_;
    std::unique_ptr<nvinfer1::IExecutionContext> context_;
    DeviceBuffer image_;
    DeviceBuffer logits_;
    Stream stream_;
};

int largest(float const* logits)
{
    return static_cast<int>(std::max_element(logits, logits + kClasses) - logits);
}

// The softmax of one entry.
double probability(float const* logits, int which)
{
    double sum = 0;
    for (int i = 0; i < kClasses; ++i)
        sum += std::exp(static_cast<double>(logits[i]) - logits[which]);
    return 1 / sum;
}

void show(std::vector<uint8_t> const& picture)
{
    char const shades[] = " .:-=+*#@"; // by two steps of ink
    for (int y = 0; y < kSide; ++y) {
        std::fputs("    ", stdout);
        for (int x = 0; x < kSide; ++x) {
            char const shade = shades[std::min<int>(picture[y * kSide + x], kMaxInk) / 2];
            std::printf("%c%c", shade, shade);
        }
        std::fputs("\n", stdout);
    }
}

void run(std::string const& folder, std::vector<char> const& plan, nvinfer1::ILogger& logger)
{
    Reader reader(plan, logger);
    for (int digit = 0; digit < kClasses; ++digit) {
        std::string const name = std::to_string(digit) + ".pgm";
        std::vector<uint8_t> const picture = readPicture(folder + "/" + name);
        std::vector<float> const logits = reader.read(picture);
        int const guess = largest(logits.data());
        show(picture);
        std::printf("%s: reads %d (%.1f %%)%s\n\n", name.c_str(), guess, 100 * probability(logits.data(), guess),
                    guess == digit ? "" : ", WRONG");
    }

    std::vector<char> const images = readFile(folder + "/heldback_images.bin");
    std::vector<char> const labels = readFile(folder + "/heldback_labels.bin");
    require(!labels.empty() && images.size() == labels.size() * kPixels,
            folder + ": heldback_images.bin and heldback_labels.bin do not belong together");
    std::vector<float> const logits = reader.read(std::vector<uint8_t>(images.begin(), images.end()));
    int right = 0;
    for (size_t i = 0; i < labels.size(); ++i)
        right += largest(&logits[i * kClasses]) == labels[i];
    std::printf("held-back pictures read right: %d of %d (%.2f %%)\n", right, static_cast<int>(labels.size()),
                100.0 * right / static_cast<double>(labels.size()));
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 2 && argc != 3) {
        std::fprintf(stderr, "usage: %s <folder> [<plan>]\n", argv[0]);
        return 2;
    }
    try {
        Logger logger;
        std::string const folder = argv[1];
        run(folder, argc == 3 ? readFile(argv[2]) : buildPlan(folder + "/digits.onnx", logger), logger);
    } catch (std::exception const& error) {
        std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
        return 1;
    }
    return 0;
}
