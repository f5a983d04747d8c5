// SPDX-License-Identifier: Apache-2.0
// An INT8 engine for the digits of examples/digits, by calibration: C++11, public headers only.
//
//   calibrate <folder of digits.onnx and heldback_*.bin> <cache>
//
// The first 60 held-back pictures are what the network is calibrated on, in batches of 20; <cache> is written, and read
// by the next run, which needs no pictures. Then FP32 and INT8 read the other 300, and the program fails where INT8
// reads more than one of them less.
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

int const kPixels = 8 * 8;
int const kClasses = 10;
float const kMaxInk = 16; // a pixel is 0..16; the network takes pixel / 16
int const kPictures = 360, kCalibrated = 60, kBatch = 20, kJudged = kPictures - kCalibrated;

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

std::vector<char> readFile(std::string const& path)
{
    std::ifstream file(path.c_str(), std::ios::binary);
    return std::vector<char>(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

class DeviceBuffer
{
public:
    explicit DeviceBuffer(size_t floats)
    {
        require(cudaMalloc(&data_, floats * sizeof(float)) == cudaSuccess, "cudaMalloc");
    }
    ~DeviceBuffer() { cudaFree(data_); }
    DeviceBuffer(DeviceBuffer const&) = delete;
    DeviceBuffer& operator=(DeviceBuffer const&) = delete;
    void* data() const { return data_; }
    void fill(std::vector<float> const& from, size_t begin, size_t count)
    {
        require(cudaMemcpy(data_, from.data() + begin, count * sizeof(float), cudaMemcpyHostToDevice) == cudaSuccess,
                "cudaMemcpy");
    }

private:
    void* data_ = nullptr;
};

// Batches of pictures; the cache is a file.
class Calibrator : public nvinfer1::IInt8EntropyCalibrator2
{
public:
    Calibrator(std::vector<float> const& pictures, std::string const& path)
        : pictures_(pictures), path_(path), batch_(kBatch * kPixels)
    {}
    int32_t getBatchSize() const noexcept override { return 1; } // the shapes say it all
    bool getBatch(void* bindings[], char const* names[], int32_t count) noexcept override
    {
        if (next_ + kBatch > kCalibrated || count != 1 || std::string(names[0]) != "image")
            return false;
        batch_.fill(pictures_, size_t(next_) * kPixels, size_t(kBatch) * kPixels);
        bindings[0] = batch_.data();
        next_ += kBatch;
        return true;
    }
    void const* readCalibrationCache(std::size_t& length) noexcept override
    {
        cache_ = readFile(path_);
        length = cache_.size();
        return cache_.empty() ? nullptr : cache_.data();
    }
    void writeCalibrationCache(void const* bytes, std::size_t length) noexcept override
    {
        std::ofstream(path_.c_str(), std::ios::binary).write(static_cast<char const*>(bytes), std::streamsize(length));
    }

private:
    std::vector<float> const& pictures_;
    std::string path_;
    DeviceBuffer batch_;
    int next_ = 0;
    std::vector<char> cache_;
};

// `calibrator`: null for FP32.
std::unique_ptr<nvinfer1::ICudaEngine> build(std::string const& onnxPath, nvinfer1::IInt8Calibrator* calibrator,
                                             Logger& logger)
{
    using namespace nvinfer1;
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> network(
        builder->createNetworkV2(1U << static_cast<uint32_t>(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH)));
    std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
    require(parser->parseFromFile(onnxPath.c_str(), static_cast<int>(ILogger::Severity::kWARNING)),
            onnxPath + ": cannot be imported");
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    IOptimizationProfile* run = builder->createOptimizationProfile();
    IOptimizationProfile* calibration = builder->createOptimizationProfile();
    for (OptProfileSelector s : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX}) {
        run->setDimensions("image", s, Dims4(kJudged, 1, 8, 8));
        calibration->setDimensions("image", s, Dims4(kBatch, 1, 8, 8));
    }
    config->addOptimizationProfile(run);
    if (calibrator) {
        config->setFlag(BuilderFlag::kINT8);
        config->setInt8Calibrator(calibrator);
        config->setCalibrationProfile(calibration);
    }
    std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    require(plan != nullptr, "the engine cannot be built");
    std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
    return std::unique_ptr<ICudaEngine>(runtime->deserializeCudaEngine(plan->data(), plan->size()));
}

// How many of the judged pictures it reads right.
int countRight(nvinfer1::ICudaEngine& engine, std::vector<float> const& pictures, std::vector<char> const& labels)
{
    std::unique_ptr<nvinfer1::IExecutionContext> context(engine.createExecutionContext());
    DeviceBuffer image(size_t(kJudged) * kPixels), logits(size_t(kJudged) * kClasses);
    image.fill(pictures, size_t(kCalibrated) * kPixels, size_t(kJudged) * kPixels);
    context->setInputShape("image", nvinfer1::Dims4(kJudged, 1, 8, 8));
    context->setTensorAddress("image", image.data());
    context->setTensorAddress("logits", logits.data());
    require(context->enqueueV3(nullptr), "enqueueV3");
    std::vector<float> out(size_t(kJudged) * kClasses);
    require(cudaMemcpy(out.data(), logits.data(), out.size() * sizeof(float), cudaMemcpyDeviceToHost) == cudaSuccess,
            "cudaMemcpy");
    int right = 0;
    for (int i = 0; i < kJudged; ++i) {
        int best = 0;
        for (int c = 1; c < kClasses; ++c)
            best = out[size_t(i * kClasses + c)] > out[size_t(i * kClasses + best)] ? c : best;
        right += best == labels[size_t(kCalibrated + i)];
    }
    return right;
}

void run(std::string const& folder, std::string const& cache)
{
    std::vector<char> const bytes = readFile(folder + "/heldback_images.bin"),
                            labels = readFile(folder + "/heldback_labels.bin");
    require(bytes.size() == size_t(kPictures) * kPixels && labels.size() == size_t(kPictures),
            folder + ": heldback_images.bin or heldback_labels.bin is not there or of another size");
    std::vector<float> pictures;
    for (char b : bytes)
        pictures.push_back(float(uint8_t(b)) / kMaxInk);
    Logger logger;
    Calibrator calibrator(pictures, cache);
    std::string const onnx = folder + "/digits.onnx";
    std::unique_ptr<nvinfer1::ICudaEngine> const fp32 = build(onnx, nullptr, logger),
                                                 int8 = build(onnx, &calibrator, logger);
    require(fp32 && int8, "an engine cannot be loaded");
    int const before = countRight(*fp32, pictures, labels), after = countRight(*int8, pictures, labels);
    std::printf("of %d pictures FP32 reads %d, INT8 %d\n", kJudged, before, after);
    require(before > kJudged * 9 / 10, "FP32 reads hardly anything");
    require(after >= before - 1, "INT8 loses more than one picture");
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 3) {
        std::fprintf(stderr, "usage: calibrate <folder of examples/digits> <cache>\n");
        return 2;
    }
    try {
        run(argv[1], argv[2]);
    } catch (std::exception const& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
    return 0;
}
