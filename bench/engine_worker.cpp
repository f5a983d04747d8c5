// SPDX-License-Identifier: Apache-2.0
// This engine as one process of bench/cpu_peers.py, a client of the public headers only.
//
//   engine_worker build MODEL.onnx PLAN CACHE [NAME=1x3x224x224...]
//                                             builds PLAN, with the timing cache in CACHE (made if missing, updated); shapes
//                                             for inputs that the model leaves open
//   engine_worker run PLAN [NAME=FILE...]     loads PLAN and runs it on raw inputs from files
//
// `run` answers lines on standard input with lines on standard output: first "ready {json}" after the first inference;
// then "run N" -> "times s s ...", "memory" -> "memory KB" (VmHWM), "outputs PREFIX" -> "outputs name name ..." with
// the values in PREFIX0, PREFIX1, ... as FP32 numbers; "clock cpu" -> "clock cpu", and from there on times are those that
// the process took of the CPU; "quit". Threads: TENSORWRIGHT_NUM_THREADS.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <NvInfer.h>
#include <NvInferPlugin.h>
#include <NvOnnxParser.h>
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using nvinfer1::DataType;

class Logger : public nvinfer1::ILogger
{
public:
    void log(Severity severity, char const* message) noexcept override
    {
        if (severity <= Severity::kERROR)
            std::fprintf(stderr, "engine_worker: %s\n", message);
    }
};

class Stopwatch
{
public:
    double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

double secondsOf(clockid_t clock)
{
    timespec time = {};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void require(bool condition, std::string const& what)
{
    if (!condition)
        throw std::runtime_error(what);
}
void check(cudaError_t status)
{
    require(status == cudaSuccess, cudaGetErrorString(status));
}

// A file mapped for reading: the plan's pages are the kernel's own, as for a peer that maps its model.
class MappedFile
{
public:
    explicit MappedFile(std::string const& path)
    {
        int const file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        struct stat facts = {};
        require(file >= 0 && fstat(file, &facts) == 0 && facts.st_size > 0, "cannot read " + path);
        size_ = static_cast<size_t>(facts.st_size);
        data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
        close(file);
        require(data_ != MAP_FAILED, "cannot map " + path);
    }
    ~MappedFile() { munmap(data_, size_); }
    MappedFile(MappedFile const&) = delete;
    MappedFile& operator=(MappedFile const&) = delete;

    void const* data() const { return data_; }
    size_t size() const { return size_; }

private:
    void* data_ = nullptr;
    size_t size_ = 0;
};

void writeFile(std::string const& path, void const* data, size_t size)
{
    std::FILE* file = std::fopen(path.c_str(), "wb");
    require(file != nullptr, "cannot write " + path);
    bool const written = std::fwrite(data, 1, size, file) == size;
    require(std::fclose(file) == 0 && written, "cannot write " + path);
}

// NAME=VALUE; a name may hold '=', a value not.
using Pairs = std::map<std::string, std::string>;
Pairs pairsOf(std::vector<std::string> const& args, size_t first)
{
    Pairs pairs;
    for (size_t i = first; i < args.size(); ++i) {
        size_t const equals = args[i].rfind('=');
        require(equals != std::string::npos, "expected NAME=VALUE, not " + args[i]);
        pairs[args[i].substr(0, equals)] = args[i].substr(equals + 1);
    }
    return pairs;
}

nvinfer1::Dims dimsOf(std::string const& text)
{
    nvinfer1::Dims dims = {};
    for (char const* at = text.c_str(); *at != 0;) {
        char* end = nullptr;
        long const extent = std::strtol(at, &end, 10);
        require(end != at && extent >= 0 && extent <= INT32_MAX && dims.nbDims < nvinfer1::Dims::MAX_DIMS &&
                    (*end == 0 || *end == 'x'),
                "not a shape: " + text);
        dims.d[dims.nbDims++] = static_cast<int32_t>(extent);
        at = *end == 'x' ? end + 1 : end;
    }
    return dims;
}

// One profile in which each of `shapes` is the only one.
void fixShapes(nvinfer1::IBuilder& builder, nvinfer1::IBuilderConfig& config, Pairs const& shapes)
{
    if (shapes.empty())
        return;
    using nvinfer1::OptProfileSelector;
    nvinfer1::IOptimizationProfile* profile = builder.createOptimizationProfile();
    for (auto const& [name, text] : shapes)
        for (auto selector : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
            require(profile->setDimensions(name.c_str(), selector, dimsOf(text)), name + ": bad shape " + text);
    require(config.addOptimizationProfile(profile) == 0, "the builder refuses the shapes");
}

int build(std::string const& model, std::string const& plan, std::string const& cacheFile, Pairs const& shapes)
{
    Logger logger;
    Stopwatch const total;
    std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
    require(builder != nullptr, "createInferBuilder failed");
    require(initLibNvInferPlugins(&logger, ""), "initLibNvInferPlugins failed");
    auto const flags = 1U << static_cast<uint32_t>(nvinfer1::NetworkDefinitionCreationFlag::kEXPLICIT_BATCH);
    std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(flags));
    std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
    require(parser->parseFromFile(model.c_str(), static_cast<int>(nvinfer1::ILogger::Severity::kERROR)),
            "cannot parse " + model);
    double const parsed = total.seconds();

    std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
    config->setFlag(nvinfer1::BuilderFlag::kINT8); // for networks in Q/DQ form; others have no ranges
    fixShapes(*builder, *config, shapes);
    std::unique_ptr<nvinfer1::ITimingCache> cache;
    if (access(cacheFile.c_str(), R_OK) == 0) {
        MappedFile const bytes(cacheFile);
        cache.reset(config->createTimingCache(bytes.data(), bytes.size()));
    }
    bool const warm = cache != nullptr;
    if (!cache)
        cache.reset(config->createTimingCache(nullptr, 0));
    require(cache && config->setTimingCache(*cache, false), "no timing cache");
    std::unique_ptr<nvinfer1::IHostMemory> bytes(builder->buildSerializedNetwork(*network, *config));
    require(bytes != nullptr, "the build failed");
    double const built = total.seconds(), cpuTime = secondsOf(CLOCK_PROCESS_CPUTIME_ID);

    writeFile(plan, bytes->data(), bytes->size());
    std::unique_ptr<nvinfer1::IHostMemory> timings(config->getTimingCache()->serialize());
    require(timings != nullptr, "the timing cache cannot be saved");
    writeFile(cacheFile, timings->data(), timings->size());
    std::printf("built {\"parse_s\": %.6f, \"total_s\": %.6f, \"cpu_s\": %.6f, \"plan_bytes\": %zu, \"cache\": %s}\n",
                parsed, built, cpuTime, bytes->size(), warm ? "true" : "false");
    return 0;
}

struct Binding
{
    std::string name;
    DataType type;
    void* memory;
    size_t bytes;
};

size_t sizeOf(DataType type)
{
    switch (type) {
    case DataType::kFLOAT:
    case DataType::kINT32:
        return 4;
    case DataType::kHALF:
        return 2;
    default:
        return 1;
    }
}

std::vector<float> floatsOf(Binding const& tensor)
{
    std::vector<float> values(tensor.bytes / sizeOf(tensor.type));
    auto const copy = [&](auto const* from) { std::copy(from, from + values.size(), values.begin()); };
    switch (tensor.type) {
    case DataType::kFLOAT:
        copy(static_cast<float const*>(tensor.memory));
        break;
    case DataType::kHALF:
        copy(static_cast<_Float16 const*>(tensor.memory));
        break;
    case DataType::kINT32:
        copy(static_cast<int32_t const*>(tensor.memory));
        break;
    case DataType::kINT8:
        copy(static_cast<int8_t const*>(tensor.memory));
        break;
    default:
        copy(static_cast<uint8_t const*>(tensor.memory));
        break;
    }
    return values;
}

// One loaded engine with buffers of its own for every tensor.
class Session
{
public:
    Session(std::string const& plan, Pairs const& inputs)
    {
        Stopwatch const total;
        runtime_.reset(nvinfer1::createInferRuntime(logger_));
        require(runtime_ != nullptr, "createInferRuntime failed");
        {
            MappedFile const bytes(plan);
            engine_.reset(runtime_->deserializeCudaEngine(bytes.data(), bytes.size()));
        }
        require(engine_ != nullptr, "the plan does not load");
        double const loaded = total.seconds();
        context_.reset(engine_->createExecutionContext());
        require(context_ != nullptr, "no execution context");
        double const created = total.seconds();
        check(cudaStreamCreate(&stream_));
        for (int32_t i = 0; i < engine_->getNbIOTensors(); ++i)
            bind(engine_->getIOTensorName(i), inputs);
        run();
        std::printf("ready {\"load_s\": %.6f, \"context_s\": %.6f, \"total_s\": %.6f}\n", loaded, created - loaded,
                    total.seconds());
    }

    double run()
    {
        double const begin = secondsOf(clock_);
        require(context_->enqueueV3(stream_), "enqueueV3 failed");
        check(cudaStreamSynchronize(stream_));
        return secondsOf(clock_) - begin;
    }

    void countCpuTime() { clock_ = CLOCK_PROCESS_CPUTIME_ID; }

    void writeOutputs(std::string const& prefix) const
    {
        std::printf("outputs");
        for (size_t i = 0; i < outputs_.size(); ++i) {
            std::vector<float> const values = floatsOf(outputs_[i]);
            writeFile(prefix + std::to_string(i), values.data(), values.size() * sizeof(float));
            std::printf(" %s", outputs_[i].name.c_str());
        }
        std::printf("\n");
    }

private:
    void bind(char const* name, Pairs const& inputs)
    {
        nvinfer1::Dims const dims = context_->getTensorShape(name);
        size_t count = 1;
        for (int32_t d = 0; d < dims.nbDims; ++d) {
            require(dims.d[d] >= 0, std::string(name) + ": the shape is not fixed");
            count *= static_cast<size_t>(dims.d[d]);
        }
        DataType const type = engine_->getTensorDataType(name);
        Binding b{name, type, nullptr, count * sizeOf(type)};
        check(cudaMalloc(&b.memory, b.bytes > 0 ? b.bytes : 1));
        require(context_->setTensorAddress(name, b.memory), "setTensorAddress failed");
        if (engine_->getTensorIOMode(name) != nvinfer1::TensorIOMode::kINPUT) {
            outputs_.push_back(b);
            return;
        }
        auto const file = inputs.find(name);
        require(file != inputs.end(), std::string("no file for input ") + name);
        MappedFile const bytes(file->second);
        if (bytes.size() == b.bytes) {
            std::memcpy(b.memory, bytes.data(), b.bytes);
            return;
        }
        // 8.5 has no 64-bit integers: such inputs are INT32 here.
        require(engine_->getTensorDataType(name) == DataType::kINT32 && bytes.size() == 2 * b.bytes,
                std::string(name) + ": the file has another size than the input");
        auto const* wide = static_cast<int64_t const*>(bytes.data());
        for (size_t i = 0; i < count; ++i)
            static_cast<int32_t*>(b.memory)[i] = static_cast<int32_t>(wide[i]);
    }

    Logger logger_;
    std::unique_ptr<nvinfer1::IRuntime> runtime_;
    std::unique_ptr<nvinfer1::ICudaEngine> engine_;
    std::unique_ptr<nvinfer1::IExecutionContext> context_;
    std::vector<Binding> outputs_;
    cudaStream_t stream_ = nullptr;
    clockid_t clock_ = CLOCK_MONOTONIC;
};

// The largest resident size since the process began, in KiB.
long peakMemory()
{
    long kib = -1;
    char line[256];
    std::FILE* file = std::fopen("/proc/self/status", "r");
    while (file && std::fgets(line, sizeof line, file)) {
        if (std::sscanf(line, "VmHWM: %ld", &kib) == 1)
            break;
    }
    if (file)
        std::fclose(file);
    return kib;
}

int serve(std::string const& plan, Pairs const& inputs)
{
    Session session(plan, inputs);
    std::fflush(stdout);
    char line[4096];
    int count = 0;
    while (std::fgets(line, sizeof line, stdin)) {
        line[std::strcspn(line, "\n")] = 0;
        if (std::sscanf(line, "run %d", &count) == 1) {
            std::vector<double> times;
            for (int i = 0; i < count; ++i)
                times.push_back(session.run());
            std::printf("times");
            for (double t : times)
                std::printf(" %.9f", t);
            std::printf("\n");
        } else if (std::strcmp(line, "clock cpu") == 0) {
            session.countCpuTime();
            std::printf("clock cpu\n");
        } else if (std::strcmp(line, "memory") == 0) {
            std::printf("memory %ld\n", peakMemory());
        } else if (std::strncmp(line, "outputs ", 8) == 0) {
            session.writeOutputs(line + 8);
        } else {
            break;
        }
        std::fflush(stdout);
    }
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    std::vector<std::string> const args(argv + 1, argv + argc);
    try {
        if (args.size() >= 4 && args[0] == "build")
            return build(args[1], args[2], args[3], pairsOf(args, 4));
        if (args.size() >= 2 && args[0] == "run")
            return serve(args[1], pairsOf(args, 2));
        std::fprintf(
            stderr,
            "usage: engine_worker build MODEL.onnx PLAN CACHE [NAME=1x3x224x224...] | run PLAN [NAME=FILE...]\n");
        return 2;
    } catch (std::exception const& e) {
        std::fprintf(stderr, "engine_worker: %s\n", e.what());
        return 1;
    }
}
