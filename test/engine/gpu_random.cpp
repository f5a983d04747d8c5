// SPDX-License-Identifier: Apache-2.0
// Random networks on the GPU beside the same on the CPU: loops and conditionals, recurrent layers, Q/DQ, refit. Each runs
// with several inputs, three times each at the same addresses, so that the runs are led by the host, captured and
// replayed; where the CPU's run is an error, the GPU's is one, too.
// usage: test_engine_gpu_random [KIND...] [--seed FIRST] [--count N] [--seconds N] [--jobs N]
// kinds: flow recurrence quantized refit; --jobs 0: in this process, for a debugger; --seconds: nothing is begun after them
// Seeds begin with the day's when none is given. A process each for several seeds: one that crashes or hangs is a failure
// by its seed. Exit status 77, with the reason: there is no GPU.
#include "gpu_random.h"

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpu_random {

namespace {

using namespace nvinfer1;

constexpr int kRounds = 3, kRuns = 3;
constexpr unsigned kSecondsForOne = 120;

std::vector<Kind> const& kinds()
{
    static std::vector<Kind> const list{
        {"flow", defineFlow, 150, 2e-4, 0, 2e-4},
        {"recurrence", defineRecurrence, 40, 2e-4, 0, 2e-4},
        // A value between two steps may be rounded to either.
        {"quantized", defineQuantized, 40, 1e-3, 0.03, 0.06},
        {"refit", nullptr, 40, 2e-4, 0, 2e-4, defineRefitted},
    };
    return list;
}

class Messages final : public ILogger
{
public:
    void log(Severity severity, char const* message) noexcept override
    {
        std::lock_guard const lock(mutex_);
        if (severity <= Severity::kERROR)
            errors_ += std::string(errors_.empty() ? "" : " | ") + message;
    }
    std::string take()
    {
        std::lock_guard const lock(mutex_);
        return std::exchange(errors_, "");
    }

private:
    std::mutex mutex_;
    std::string errors_;
};

struct Memory
{
    void* data = nullptr;
    bool isOnGpu;
    Memory(size_t bytes, bool onGpu) : isOnGpu(onGpu)
    {
        if ((onGpu ? cudaMalloc(&data, bytes) : cudaMallocHost(&data, bytes)) != cudaSuccess)
            data = nullptr;
    }
    ~Memory() { isOnGpu ? cudaFree(data) : cudaFreeHost(data); }
    Memory(Memory const&) = delete;
    Memory& operator=(Memory const&) = delete;
};

constexpr size_t kMostBytes = size_t(1) << 22; // of a tensor

class Output final : public IOutputAllocator
{
public:
    explicit Output(bool onGpu) : memory(kMostBytes, onGpu) {}
    void* reallocateOutput(char const*, void*, uint64_t bytes, uint64_t) noexcept override
    {
        return bytes <= kMostBytes ? memory.data : nullptr;
    }
    void notifyShape(char const*, Dims const& d) noexcept override { dims = d; }
    Memory memory;
    Dims dims{};
};

// What a run gives: values of each output, or nothing and the reason.
struct Values
{
    std::map<std::string, std::vector<float>> of;
    std::map<std::string, std::vector<int>> dims;
    std::string error;
};

class Engine
{
public:
    Engine(Kind const& kind, uint64_t seed, bool onGpu, std::set<std::string> const& renewed = {}) : isOnGpu_(onGpu)
    {
        setenv("TENSORWRIGHT_DEVICE", onGpu ? "cuda" : "cpu", 1);
        std::unique_ptr<IBuilder> const builder(createInferBuilder(messages_));
        if (!builder)
            return;
        std::unique_ptr<INetworkDefinition> const network(builder->createNetworkV2(1U));
        std::unique_ptr<IBuilderConfig> const config(builder->createBuilderConfig());
        config->clearFlag(BuilderFlag::kTF32);
        Maker maker(*network, *config, seed, renewed);
        if (kind.define)
            kind.define(maker);
        else
            refitted_ = kind.defineRefitted(maker);
        inputs_ = maker.inputs;
        IOptimizationProfile* const profile = builder->createOptimizationProfile();
        bool hasShapes = false;
        for (int i = 0; i < network->getNbInputs(); ++i) {
            ITensor const& t = *network->getInput(i);
            if (!t.isShapeTensor())
                continue;
            hasShapes = true;
            for (auto const select : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX}) {
                Input const& in = inputs_[size_t(i)];
                std::vector<int32_t> const values(size_t(in.count),
                                                  int32_t(select == OptProfileSelector::kMIN ? in.low : in.high));
                profile->setShapeValues(t.getName(), select, values.data(), int(in.count));
            }
        }
        if (hasShapes)
            config->addOptimizationProfile(profile);
        engine_.reset(builder->buildEngineWithConfig(*network, *config));
        context_.reset(engine_ ? engine_->createExecutionContext() : nullptr);
        if (!context_)
            return;
        cudaStreamCreate(&stream_);
        for (Input const& in : inputs_) {
            bool const isRead = engine_->getBindingIndex(in.name.c_str()) >= 0;
            bool const isShape = isRead && engine_->getTensorLocation(in.name.c_str()) == TensorLocation::kHOST;
            memory_.push_back(
                std::make_unique<Memory>(size_t(std::max<int64_t>(in.count, 1)) * 4, isOnGpu_ && !isShape));
            if (isRead)
                context_->setTensorAddress(in.name.c_str(), memory_.back()->data);
        }
        for (int i = 0; i < engine_->getNbIOTensors(); ++i) {
            char const* const name = engine_->getIOTensorName(i);
            if (engine_->getTensorIOMode(name) == TensorIOMode::kOUTPUT)
                context_->setOutputAllocator(name, (outputs_[name] = std::make_unique<Output>(onGpu)).get());
        }
    }
    ~Engine()
    {
        context_.reset();
        if (stream_)
            cudaStreamDestroy(stream_);
    }
    Engine(Engine const&) = delete;
    Engine& operator=(Engine const&) = delete;

    bool isThere() const { return context_ != nullptr; }
    std::string errors() { return messages_.take(); }
    std::vector<Refitted> const& refitted() const { return refitted_; }
    void give(uint64_t seed)
    {
        Draw draw(seed);
        for (size_t i = 0; i < inputs_.size(); ++i) {
            Input const& in = inputs_[i];
            std::vector<float> floats;
            std::vector<int32_t> integers;
            bool const isFloat = in.type == DataType::kFLOAT;
            for (int64_t k = 0; k < in.count; ++k)
                if (isFloat)
                    floats.push_back(draw.real(in.low, in.high));
                else
                    integers.push_back(draw.chance(30) ? int(in.low) : draw.from(int(in.low), int(in.high)));
            cudaMemcpy(memory_[i]->data, isFloat ? static_cast<void*>(floats.data()) : integers.data(),
                       size_t(in.count) * 4, cudaMemcpyDefault);
        }
    }
    Values run()
    {
        for (auto& [name, out] : outputs_)
            isOnGpu_ ? cudaMemset(out->memory.data, 0x7f, kMostBytes) : 0;
        bool const enqueued = context_->enqueueV3(stream_);
        cudaError_t const status = cudaStreamSynchronize(stream_);
        Values v;
        v.error = messages_.take();
        if (status != cudaSuccess)
            v.error += std::string(" CUDA: ") + cudaGetErrorString(status);
        if (!enqueued && v.error.empty())
            v.error = "enqueueV3 is false without a message";
        for (auto& [name, out] : outputs_) {
            if (!v.error.empty())
                break;
            v.dims[name] = std::vector<int>(out->dims.d, out->dims.d + out->dims.nbDims);
            std::vector<float>& to = v.of[name];
            to.resize(size_t(volume(out->dims)));
            cudaMemcpy(to.data(), out->memory.data, to.size() * sizeof(float), cudaMemcpyDefault);
        }
        return v;
    }
    // Other numbers for the weights of these names.
    bool refit(uint64_t seed, std::set<std::string> const& names)
    {
        std::unique_ptr<IRefitter> const refitter(createInferRefitter(*engine_, messages_));
        std::deque<std::vector<float>> numbers;
        bool good = refitter != nullptr;
        for (Refitted const& r : refitted_)
            if (good && names.count(r.weights)) {
                numbers.push_back(numbersOf(seed, r.weights, true, r.count, r.low, r.high));
                good = refitter->setWeights(r.layer.c_str(), r.role,
                                            Weights{DataType::kFLOAT, numbers.back().data(), r.count});
            }
        return good && refitter->refitCudaEngine();
    }

private:
    Messages messages_;
    bool isOnGpu_;
    std::vector<Input> inputs_;
    std::vector<Refitted> refitted_;
    std::unique_ptr<ICudaEngine> engine_;
    std::unique_ptr<IExecutionContext> context_;
    std::vector<std::unique_ptr<Memory>> memory_;
    std::map<std::string, std::unique_ptr<Output>> outputs_;
    cudaStream_t stream_ = nullptr;
};

std::string describe(std::vector<int> const& dims)
{
    std::string s = "[";
    for (int d : dims)
        s += (s.size() > 1 ? "," : "") + std::to_string(d);
    return s + "]";
}

// Empty, or how they differ.
std::string differ(Kind const& kind, Values const& got, Values const& want)
{
    if (!got.error.empty() || !want.error.empty())
        return !got.error.empty() && !want.error.empty() ? ""
               : got.error.empty()                       ? "no error on the GPU; on the CPU: " + want.error
                                                         : "an error on the GPU alone: " + got.error;
    for (auto const& [name, values] : want.of) {
        if (got.dims.at(name) != want.dims.at(name))
            return name + " is " + describe(got.dims.at(name)) + " on the GPU, " + describe(want.dims.at(name)) +
                   " on the CPU";
        double largest = 1;
        for (float v : values)
            largest = std::max(largest, double(std::fabs(v)));
        size_t off = 0, first = 0;
        double most = 0;
        for (size_t i = 0; i < values.size(); ++i) {
            double const apart = std::fabs(double(got.of.at(name)[i]) - double(values[i]));
            if (apart <= kind.near * largest)
                continue;
            first = off++ ? first : i;
            most = std::isfinite(apart) ? std::max(most, apart) : INFINITY;
        }
        // One of the few may always be.
        if (most > kind.far * largest ||
            (kind.outliers == 0 ? off > 0 : double(off) > 1 + kind.outliers * double(values.size())))
            return name + describe(want.dims.at(name)) + ": " + std::to_string(off) + " of " +
                   std::to_string(values.size()) + " differ, by " + std::to_string(most) + " at most; element " +
                   std::to_string(first) + " is " + std::to_string(got.of.at(name)[first]) + " on the GPU, " +
                   std::to_string(values[first]) + " on the CPU";
    }
    return "";
}

// Empty, "-" where neither builds the network, or what is wrong.
std::string runSeed(Kind const& kind, uint64_t seed)
{
    Engine gpu(kind, seed, true);
    auto cpu = std::make_unique<Engine>(kind, seed, false);
    if (!gpu.isThere() && !cpu->isThere()) {
        std::printf("refused %s --seed %llu: %s\n", kind.name, static_cast<unsigned long long>(seed),
                    cpu->errors().substr(0, 300).c_str());
        return "-";
    }
    if (!gpu.isThere() || !cpu->isThere())
        return (gpu.isThere() ? "not built on the CPU: " : "not built on the GPU: ") + gpu.errors() + cpu->errors();
    std::set<std::string> renewed;
    for (int round = 0; round < kRounds; ++round) {
        gpu.give(seed * kRounds + uint64_t(round));
        cpu->give(seed * kRounds + uint64_t(round));
        Values const want = cpu->run();
        for (int run = 0; run < kRuns; ++run)
            if (std::string why = differ(kind, gpu.run(), want); !why.empty())
                return "inputs " + std::to_string(round) + ", run " + std::to_string(run) + ": " + why;
        if (gpu.refitted().empty() || round + 1 == kRounds)
            continue;
        std::set<std::string> names;
        Draw draw(seed + uint64_t(round));
        for (Refitted const& r : gpu.refitted())
            if (!renewed.count(r.weights) && draw.chance(50))
                names.insert(r.weights);
        if (!gpu.refit(seed, names))
            return "no refit: " + gpu.errors();
        renewed.insert(names.begin(), names.end());
        cpu = std::make_unique<Engine>(kind, seed, false, renewed);
        if (!cpu->isThere())
            return "not built on the CPU with other weights: " + cpu->errors();
    }
    return "";
}

struct Work
{
    Kind const* kind;
    uint64_t seed;
};

// What a process tells the one that has started it.
struct Told
{
    std::atomic<size_t> next;
    std::atomic<int> passed[4], failed[4], refused[4];
};

// Every `jobs`th of the list, from `told.next` on; none is begun after `end`.
void runAll(std::vector<Work> const& list, size_t jobs, std::time_t end, Told& told)
{
    for (; told.next < list.size() && std::time(nullptr) < end; told.next += jobs) {
        Work const& w = list[told.next];
        alarm(kSecondsForOne);
        std::string const why = runSeed(*w.kind, w.seed);
        size_t const k = size_t(w.kind - kinds().data());
        ++(why.empty() ? told.passed : why == "-" ? told.refused : told.failed)[k];
        if (!why.empty() && why != "-") {
            std::printf("FAILED %s --seed %llu: %s\n", w.kind->name, static_cast<unsigned long long>(w.seed),
                        why.substr(0, 600).c_str());
            std::fflush(stdout);
        }
    }
}

struct Options
{
    std::vector<std::string> names;
    uint64_t seed = uint64_t(std::time(nullptr) / (24 * 60 * 60));
    int count = 0; // 0: each kind's own
    std::time_t seconds = 24 * 60 * 60;
    size_t jobs = size_t(std::max<long>(1, std::min<long>(sysconf(_SC_NPROCESSORS_ONLN), 12)));
};

int run(Options const& options)
{
    // Kinds in turns, so that what has no time is of all of them.
    std::time_t const end = std::time(nullptr) + options.seconds;
    std::vector<Work> list;
    for (int i = 0, most = 1; i < most; ++i)
        for (Kind const& kind : kinds()) {
            int const count = options.count > 0 ? options.count : kind.count;
            if (!options.names.empty() && !std::count(options.names.begin(), options.names.end(), kind.name))
                continue;
            most = std::max(most, count);
            if (i < count)
                list.push_back({&kind, options.seed + uint64_t(i)});
        }
    auto* const told = static_cast<Told*>(
        mmap(nullptr, (options.jobs + 1) * sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (options.jobs == 0) {
        runAll(list, 1, end, *told);
        return 0;
    }
    std::map<pid_t, size_t> running;
    auto start = [&](size_t job) {
        pid_t const pid = fork();
        if (pid == 0) {
            runAll(list, options.jobs, end, told[job]);
            std::fflush(stdout);
            _exit(0);
        }
        running[pid] = job;
    };
    for (size_t job = 0; job < options.jobs; ++job) {
        told[job].next = job;
        start(job);
    }
    while (!running.empty()) {
        int status = 0;
        pid_t const pid = wait(&status);
        auto const it = running.find(pid);
        if (it == running.end())
            continue;
        size_t const job = it->second;
        running.erase(it);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        if (told[job].next < list.size()) {
            Work const& w = list[told[job].next];
            std::printf("FAILED %s --seed %llu: %s %d\n", w.kind->name, static_cast<unsigned long long>(w.seed),
                        WIFSIGNALED(status) ? "the process died by signal" : "the process ended with",
                        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            std::fflush(stdout);
            ++told[job].failed[w.kind - kinds().data()];
            told[job].next += options.jobs;
        }
        start(job);
    }
    int failures = 0;
    for (size_t k = 0; k < kinds().size(); ++k) {
        int passed = 0, failed = 0, refused = 0;
        for (size_t job = 0; job < options.jobs; ++job) {
            passed += told[job].passed[k];
            failed += told[job].failed[k];
            refused += told[job].refused[k];
        }
        failures += failed;
        if (passed + failed + refused > 0)
            std::printf("%s: %d passed, %d failed, %d refused by both; seeds from %llu\n", kinds()[k].name, passed,
                        failed, refused, static_cast<unsigned long long>(options.seed));
    }
    std::printf("%d failures\n", failures);
    return failures != 0;
}

// In a process of its own: one that has used the GPU cannot share it with those that it starts.
bool hasGpu()
{
    pid_t const pid = fork();
    if (pid == 0) {
        int gpus = 0;
        _exit(cudaGetDeviceCount(&gpus) == cudaSuccess && gpus > 0 ? 0 : 1);
    }
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

} // namespace
} // namespace gpu_random

int main(int argc, char** argv)
{
    using namespace gpu_random;
    Options options;
    for (int i = 1; i < argc; ++i) {
        std::string const arg = argv[i];
        uint64_t const value = arg.rfind("--", 0) == 0 && i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0;
        if (arg == "--seed") {
            options.seed = value;
        } else if (arg == "--count") {
            options.count = int(value);
        } else if (arg == "--seconds") {
            options.seconds = std::time_t(value);
        } else if (arg == "--jobs") {
            options.jobs = size_t(value);
        } else if (std::any_of(kinds().begin(), kinds().end(), [&](Kind const& k) { return arg == k.name; })) {
            options.names.push_back(arg);
        } else {
            std::fprintf(
                stderr,
                "usage: %s [flow|recurrence|quantized|refit]... [--seed FIRST] [--count N] [--seconds N] [--jobs N]\n",
                argv[0]);
            return 2;
        }
    }
    if (options.jobs > 0 && !hasGpu()) {
        std::printf("SKIP: no GPU that the CUDA runtime can use\n");
        return 77;
    }
    return run(options);
}
