// SPDX-License-Identifier: Apache-2.0
// Reads handwritten digits with a TensorRT engine: a plain client of the 8.5 API, C++11, public headers only.
//
//   digits <folder>          parses <folder>/digits.onnx, builds an engine and runs it
//   digits <folder> <plan>   runs a saved engine instead
//
// Shows each <folder>/<digit>.pgm with what the engine reads in it, then counts how many of the held-back pictures
// (<folder>/heldback_images.bin, heldback_labels.bin) it reads right, all of them in one batch.
#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "cuda_runtime_api.h"

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

namespace {

const int kSide = 8;               // pixels along each axis
const int kPixels = kSide * kSide; // of one picture
const int kClasses = 10;
const int kMaxInk = 16; // a pixel is 0..16; the network takes pixel / 16
const int kMaxBatch = 360;

class Logger : public nvinfer1::ILogger
{
public:
    void log(Severity severity, const char* text) noexcept override
    {
        if (severity <= Severity::kWARNING)
            std::fprintf(stderr, "%s\n", text);
    }
};

void require(bool holds, const std::string& what)
{
    if (!holds)
        throw std::runtime_error(what);
}

void requireCuda(cudaError_t status, const char* call)
{
    require(status == cudaSuccess, std::string(call) + ": " + cudaGetErrorString(status));
}

std::vector<char> readFile(const std::string& path)
{
    std::ifstream file(path.c_str(), std::ios::binary);
    require(file.good(), path + ": cannot be opened");
    return std::vector<char>(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

// The pixels of a binary PGM as train.py writes it: "P5", 8, 8, 16, one white space, then one byte for each pixel.
std::vector<uint8_t> readPicture(const std::string& path)
{
    const std::vector<char> bytes = readFile(path);
    const std::string header = "P5\n8 8\n16\n";
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
    DeviceBuffer(const DeviceBuffer&) = delete;
    DeviceBuffer& operator=(const DeviceBuffer&) = delete;
    void* data() const { return data_; }

private:
    void* data_ = nullptr;
};

class Stream
{
public:
    Stream() { requireCuda(cudaStreamCreate(&stream_), "cudaStreamCreate"); }
    ~Stream() { cudaStreamDestroy(stream_); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    cudaStream_t get() const { return stream_; }

private:
    cudaStream_t stream_ = nullptr;
};

// A serialized engine for 1 to kMaxBatch pictures.
std::vector<char> buildPlan(const std::string& onnxPath, nvinfer1::ILogger& logger)
{
    std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
    require(builder != nullptr, "no builder");
    const uint32_t flags = 1U << static_cast<uint32_t>(nvinfer1::NetworkDefinitionCreationFlag::kEXPLICIT_BATCH);
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
    const char* bytes = static_cast<const char*>(plan->data());
    return std::vector<char>(bytes, bytes + plan->size());
}

class Reader
{
public:
    Reader(const std::vector<char>& plan, nvinfer1::ILogger& logger)
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
    std::vector<float> read(const std::vector<uint8_t>& pictures)
    {
        const int count = static_cast<int>(pictures.size()) / kPixels;
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

int largest(const float* logits)
{
    return static_cast<int>(std::max_element(logits, logits + kClasses) - logits);
}

// The softmax of one entry.
double probability(const float* logits, int which)
{
    double sum = 0;
    for (int i = 0; i < kClasses; ++i)
        sum += std::exp(static_cast<double>(logits[i]) - logits[which]);
    return 1 / sum;
}

void show(const std::vector<uint8_t>& picture)
{
    const char shades[] = " .:-=+*#@"; // by two steps of ink
    for (int y = 0; y < kSide; ++y) {
        std::fputs("    ", stdout);
        for (int x = 0; x < kSide; ++x) {
            const char shade = shades[std::min<int>(picture[y * kSide + x], kMaxInk) / 2];
            std::printf("%c%c", shade, shade);
        }
        std::fputs("\n", stdout);
    }
}

void run(const std::string& folder, const std::vector<char>& plan, nvinfer1::ILogger& logger)
{
    Reader reader(plan, logger);
    for (int digit = 0; digit < kClasses; ++digit) {
        const std::string name = std::to_string(digit) + ".pgm";
        const std::vector<uint8_t> picture = readPicture(folder + "/" + name);
        const std::vector<float> logits = reader.read(picture);
        const int guess = largest(logits.data());
        show(picture);
        std::printf("%s: reads %d (%.1f %%)%s\n\n", name.c_str(), guess, 100 * probability(logits.data(), guess),
                    guess == digit ? "" : ", WRONG");
    }

    const std::vector<char> images = readFile(folder + "/heldback_images.bin");
    const std::vector<char> labels = readFile(folder + "/heldback_labels.bin");
    require(!labels.empty() && images.size() == labels.size() * kPixels,
            folder + ": heldback_images.bin and heldback_labels.bin do not belong together");
    const std::vector<float> logits = reader.read(std::vector<uint8_t>(images.begin(), images.end()));
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
        const std::string folder = argv[1];
        run(folder, argc == 3 ? readFile(argv[2]) : buildPlan(folder + "/digits.onnx", logger), logger);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
        return 1;
    }
    return 0;
}
