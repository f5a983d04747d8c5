// SPDX-License-Identifier: Apache-2.0
// This engine as a library of plain C functions, for bench/gpu_peers.py: torch and the engine share one process, one
// GPU and torch's streams and memory. A client of the public headers only; links no CUDA.
//
// Functions that can fail return 0 or a null pointer and write the reason, with what the library logged, into
// `message`.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <NvInfer.h>
#include <NvOnnxParser.h>

#define TW_BENCH_API extern "C" __attribute__((visibility("default")))

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start)
{
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Keeps errors and warnings until somebody asks.
class Logger : public nvinfer1::ILogger
{
public:
    void log(Severity severity, char const* message) noexcept override
    {
        if (severity > Severity::kWARNING || text_.size() > kMost)
            return;
        text_ += severity <= Severity::kERROR ? "[E] " : "[W] ";
        text_ += message;
        text_ += '\n';
    }
    std::string const& text() const { return text_; }

private:
    static constexpr size_t kMost = 1 << 16;
    std::string text_;
};

void require(bool condition, std::string const& what)
{
    if (!condition)
        throw std::runtime_error(what);
}

std::vector<char> readFile(char const* path)
{
    std::vector<char> bytes;
    std::FILE* file = std::fopen(path, "rb");
    require(file != nullptr, std::string("cannot read ") + path);
    char block[1 << 16];
    while (size_t const got = std::fread(block, 1, sizeof block, file))
        bytes.insert(bytes.end(), block, block + got);
    std::fclose(file);
    return bytes;
}

void writeFile(char const* path, void const* data, size_t size)
{
    std::FILE* file = std::fopen(path, "wb");
    require(file != nullptr, std::string("cannot write ") + path);
    bool const written = std::fwrite(data, 1, size, file) == size;
    require(std::fclose(file) == 0 && written, std::string("cannot write ") + path);
}

struct Engine
{
    Logger logger; // before what logs into it: members are destroyed last to first
    std::unique_ptr<nvinfer1::IRuntime> runtime;
    std::unique_ptr<nvinfer1::ICudaEngine> engine;
    std::unique_ptr<nvinfer1::IExecutionContext> context;
    double buildSeconds = 0;
    size_t planBytes = 0;
};

// Bits of `flags`.
constexpr uint32_t kFp16 = 1;   // FP16 arithmetic is allowed
constexpr uint32_t kHalfIo = 2; // floating-point inputs and outputs of the network are FP16
constexpr uint32_t kNoTf32 = 4; // FP32 arithmetic stays FP32

void setHalf(nvinfer1::ITensor& tensor)
{
    if (tensor.getType() == nvinfer1::DataType::kFLOAT)
        tensor.setType(nvinfer1::DataType::kHALF);
}

std::unique_ptr<Engine> build(char const* model, char const* cacheIn, char const* cacheOut, uint32_t flags,
                              Logger& logger)
{
    using nvinfer1::BuilderFlag;
    auto out = std::make_unique<Engine>();
    auto const start = Clock::now();
    std::unique_ptr<nvinfer1::IHostMemory> plan;
    {
        std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
        require(builder != nullptr, "createInferBuilder failed");
        auto const batch = 1U << static_cast<uint32_t>(nvinfer1::NetworkDefinitionCreationFlag::kEXPLICIT_BATCH);
        std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(batch));
        std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
        require(parser->parseFromFile(model, static_cast<int>(nvinfer1::ILogger::Severity::kERROR)),
                std::string("cannot parse ") + model);
        if (flags & kHalfIo) {
            for (int32_t i = 0; i < network->getNbInputs(); ++i)
                setHalf(*network->getInput(i));
            for (int32_t i = 0; i < network->getNbOutputs(); ++i)
                setHalf(*network->getOutput(i));
        }
        std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
        if (flags & kFp16)
            config->setFlag(BuilderFlag::kFP16);
        if (flags & kNoTf32)
            config->clearFlag(BuilderFlag::kTF32);
        std::vector<char> const known = cacheIn ? readFile(cacheIn) : std::vector<char>();
        std::unique_ptr<nvinfer1::ITimingCache> cache(config->createTimingCache(known.data(), known.size()));
        require(cache && config->setTimingCache(*cache, false), "no timing cache");
        plan.reset(builder->buildSerializedNetwork(*network, *config));
        require(plan != nullptr, "the build failed");
        out->buildSeconds = secondsSince(start);
        if (cacheOut) {
            std::unique_ptr<nvinfer1::IHostMemory> timings(config->getTimingCache()->serialize());
            require(timings != nullptr, "the timing cache cannot be saved");
            writeFile(cacheOut, timings->data(), timings->size());
        }
    }
    out->planBytes = plan->size();
    out->runtime.reset(nvinfer1::createInferRuntime(out->logger));
    require(out->runtime != nullptr, "createInferRuntime failed");
    out->engine.reset(out->runtime->deserializeCudaEngine(plan->data(), plan->size()));
    require(out->engine != nullptr, "the plan does not load\n" + out->logger.text());
    out->context.reset(out->engine->createExecutionContext());
    require(out->context != nullptr, "no execution context\n" + out->logger.text());
    return out;
}

void tell(char* message, size_t size, std::string const& text)
{
    if (message && size > 0)
        std::snprintf(message, size, "%s", text.c_str());
}

} // namespace

// An engine with its context for the network of an ONNX file whose shapes are fixed. cacheIn and cacheOut name files of
// timing caches and may be null. On success `message` holds the builder's warnings.
TW_BENCH_API Engine* twBuild(char const* model, char const* cacheIn, char const* cacheOut, uint32_t flags,
                             char* message, size_t size)
{
    Logger logger;
    try {
        auto engine = build(model, cacheIn, cacheOut, flags, logger);
        tell(message, size, logger.text());
        return engine.release();
    } catch (std::exception const& e) {
        tell(message, size, std::string(e.what()) + "\n" + logger.text());
        return nullptr;
    }
}

TW_BENCH_API void twFree(Engine* engine)
{
    delete engine;
}

TW_BENCH_API double twBuildSeconds(Engine const* engine)
{
    return engine->buildSeconds;
}

TW_BENCH_API size_t twPlanBytes(Engine const* engine)
{
    return engine->planBytes;
}

TW_BENCH_API int32_t twTensors(Engine const* engine)
{
    return engine->engine->getNbIOTensors();
}

TW_BENCH_API char const* twName(Engine const* engine, int32_t index)
{
    return engine->engine->getIOTensorName(index);
}

TW_BENCH_API int32_t twIsInput(Engine const* engine, char const* name)
{
    return engine->engine->getTensorIOMode(name) == nvinfer1::TensorIOMode::kINPUT;
}

// nvinfer1::DataType as a number.
TW_BENCH_API int32_t twType(Engine const* engine, char const* name)
{
    return static_cast<int32_t>(engine->engine->getTensorDataType(name));
}

// The rank; `dims` has room for 8 extents.
TW_BENCH_API int32_t twShape(Engine const* engine, char const* name, int64_t* dims)
{
    nvinfer1::Dims const shape = engine->context->getTensorShape(name);
    for (int32_t i = 0; i < shape.nbDims; ++i)
        dims[i] = shape.d[i];
    return shape.nbDims;
}

TW_BENCH_API int32_t twBind(Engine* engine, char const* name, void* address)
{
    return engine->context->setTensorAddress(name, address);
}

TW_BENCH_API int32_t twEnqueue(Engine* engine, void* stream, char* message, size_t size)
{
    if (engine->context->enqueueV3(static_cast<cudaStream_t>(stream)))
        return 1;
    tell(message, size, "enqueueV3 failed\n" + engine->logger.text());
    return 0;
}

// Seconds that enqueueV3 took on the host, or a negative number when it failed. In C, so that the interpreter's own
// time stays out.
TW_BENCH_API double twEnqueueSeconds(Engine* engine, void* stream)
{
    auto const start = Clock::now();
    bool const done = engine->context->enqueueV3(static_cast<cudaStream_t>(stream));
    double const seconds = secondsSince(start);
    return done ? seconds : -1;
}
