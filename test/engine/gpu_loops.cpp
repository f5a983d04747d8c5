// SPDX-License-Identifier: Apache-2.0
// Loops on a GPU as a client sees them: stacks with lengths of loops that make no trip, and loops that want to go on where
// a tensor ends, in runs that the host leads, that are replayed, and that a client has captured.
#include "gpu_loops.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

namespace {

using namespace nvinfer1;

class Recorder final : public IErrorRecorder
{
public:
    int32_t getNbErrors() const noexcept override
    {
        std::lock_guard const lock(mutex_);
        return int32_t(errors_.size());
    }
    ErrorCode getErrorCode(int32_t) const noexcept override { return ErrorCode::kFAILED_EXECUTION; }
    ErrorDesc getErrorDesc(int32_t i) const noexcept override
    {
        std::lock_guard const lock(mutex_);
        return errors_[size_t(i)].c_str();
    }
    bool hasOverflowed() const noexcept override { return false; }
    void clear() noexcept override
    {
        std::lock_guard const lock(mutex_);
        errors_.clear();
    }
    bool reportError(ErrorCode, ErrorDesc what) noexcept override
    {
        std::lock_guard const lock(mutex_);
        errors_.emplace_back(what);
        return true;
    }
    RefCount incRefCount() noexcept override { return ++uses_; }
    RefCount decRefCount() noexcept override { return --uses_; }
    // Whether there is one error, of these words; it is gone then.
    bool takes(std::string const& a, std::string const& b)
    {
        std::lock_guard const lock(mutex_);
        bool const good =
            errors_.size() == 1 && errors_[0].find(a) != std::string::npos && errors_[0].find(b) != std::string::npos;
        for (std::string const& e : errors_)
            std::printf("  recorded: %s\n", e.c_str());
        errors_.clear();
        return good;
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::string> errors_;
    std::atomic<int> uses_{0};
};

class Silent final : public ILogger
{
public:
    void log(Severity, char const*) noexcept override {}
};

constexpr int kRows = 5, kColumns = 4, kLength = 7;
constexpr size_t kAll = size_t(kLength) * kColumns;

// While s < limit: s + 1, x + row, with all x in a stack of 7, in order and from its end; there are five rows. The builder
// makes a count of s and limit when they are INT32.
class Sums
{
public:
    Sums(ILogger& logger, DataType type) : type_(type)
    {
        std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
        std::unique_ptr<INetworkDefinition> n(builder->createNetworkV2(1U));
        ITensor* rows = n->addInput("rows", DataType::kFLOAT, Dims2{kRows, kColumns});
        ITensor* x0 = n->addInput("x", DataType::kFLOAT, dims({kColumns}));
        ITensor* limit = n->addInput("limit", type, dims({}));
        float const one = 1;
        int32_t const zero = 0, oneInteger = 1, length = kLength;
        auto constant = [&](DataType of, void const* v) {
            return n->addConstant(dims({}), Weights{of, v, 1})->getOutput(0);
        };
        auto binary = [&](ITensor* a, ITensor* b, ElementWiseOperation o) {
            return n->addElementWise(*a, *b, o)->getOutput(0);
        };
        ILoop* loop = n->addLoop();
        loop->setName("sums");
        IRecurrenceLayer* s = loop->addRecurrence(*constant(type, &zero)); // the same bits
        IRecurrenceLayer* x = loop->addRecurrence(*x0);
        ITensor* row = loop->addIterator(*rows)->getOutput(0);
        loop->addTripLimit(*binary(s->getOutput(0), limit, ElementWiseOperation::kLESS), TripLimit::kWHILE);
        ITensor* sum = binary(x->getOutput(0), row, ElementWiseOperation::kSUM);
        s->setInput(1,
                    *binary(s->getOutput(0), constant(type, isInteger() ? static_cast<void const*>(&oneInteger) : &one),
                            ElementWiseOperation::kSUM));
        x->setInput(1, *sum);
        char const* const names[] = {"last", "all", "reversed"};
        for (auto const kind : {LoopOutput::kLAST_VALUE, LoopOutput::kCONCATENATE, LoopOutput::kREVERSE}) {
            bool const isLast = kind == LoopOutput::kLAST_VALUE;
            ILoopOutputLayer* out = loop->addLoopOutput(isLast ? *x->getOutput(0) : *sum, kind);
            if (!isLast)
                out->setInput(1, *constant(DataType::kINT32, &length));
            out->getOutput(0)->setName(names[int(kind)]);
            n->markOutput(*out->getOutput(0));
        }
        std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
        engine_.reset(builder->buildEngineWithConfig(*n, *config));
        context_.reset(engine_ ? engine_->createExecutionContext() : nullptr);
        if (!context_)
            return;
        context_->setErrorRecorder(&recorder);
        std::vector<float> first(kColumns, 100), each;
        for (int i = 0; i < kRows * kColumns; ++i)
            each.push_back(float(i / kColumns + 1));
        give("rows", each);
        give("x", first);
        limit_ = give("limit", {0});
        outputs_ = {give("last", first), give("all", std::vector<float>(kAll)),
                    give("reversed", std::vector<float>(kAll))};
        cudaStreamCreate(&stream);
    }
    ~Sums()
    {
        context_.reset();
        for (void* p : memory_)
            cudaFree(p);
        if (stream)
            cudaStreamDestroy(stream);
    }
    Sums(Sums const&) = delete;
    Sums& operator=(Sums const&) = delete;

    bool isThere() const { return context_ != nullptr; }
    bool isInteger() const { return type_ == DataType::kINT32; }
    bool hasLimitOnGpu() const { return engine_->getTensorLocation("limit") == TensorLocation::kDEVICE; }
    void prepare(float trips) const
    {
        int32_t const integer = int32_t(trips);
        cudaMemcpyAsync(limit_, isInteger() ? static_cast<void const*>(&integer) : &trips, sizeof(float),
                        cudaMemcpyHostToDevice, stream);
        for (float* out : outputs_)
            cudaMemsetAsync(out, 0x7f, sizeof(float) * (out == outputs_[0] ? size_t(kColumns) : kAll), stream);
    }
    bool wait() const { return cudaStreamSynchronize(stream) == cudaSuccess; }
    bool enqueue(float trips)
    {
        prepare(trips);
        return context_->enqueueV3(stream) && wait();
    }
    bool execute(float trips)
    {
        prepare(trips);
        std::vector<void*> bindings(memory_);
        return wait() && context_->executeV2(bindings.data());
    }
    IExecutionContext& context() { return *context_; }
    // What comes out is right for so many trips.
    bool isFor(int trips) const
    {
        std::vector<float> got(kAll);
        bool good = true;
        auto sumOf = [](int n) { return 100 + float(n * (n + 1)) / 2; };
        for (size_t o = 0; o < outputs_.size(); ++o) {
            cudaMemcpy(got.data(), outputs_[o], sizeof(float) * (o == 0 ? size_t(kColumns) : kAll),
                       cudaMemcpyDeviceToHost);
            for (int i = 0; i < (o == 0 ? 1 : kLength); ++i) {
                int const trip = o == 0 ? trips : o == 1 ? i + 1 : kLength - i;
                float const want = trip <= trips ? sumOf(trip) : 0;
                for (int c = 0; c < kColumns; ++c)
                    good = good && got[size_t(i * kColumns + c)] == want;
            }
        }
        return good;
    }

    Recorder recorder;
    cudaStream_t stream = nullptr;

private:
    static Dims dims(std::vector<int> const& list)
    {
        Dims d{};
        for (int v : list)
            d.d[d.nbDims++] = v;
        return d;
    }
    float* give(char const* name, std::vector<float> const& values)
    {
        void* p = nullptr;
        cudaMalloc(&p, values.size() * sizeof(float));
        cudaMemcpy(p, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice);
        context_->setTensorAddress(name, p);
        memory_.push_back(p); // in the order of bindings: inputs, then outputs, as they were added
        return static_cast<float*>(p);
    }
    std::unique_ptr<ICudaEngine> engine_;
    std::unique_ptr<IExecutionContext> context_;
    std::vector<void*> memory_;
    std::vector<float*> outputs_;
    float* limit_ = nullptr;
    DataType type_;
};

char const *const kLayer = "layer 'sums'", *const kPast = "iteration 5 is past the extent 5";

using Expect = std::function<void(bool, char const*)>;

void checkStacks(ILogger& logger, DataType type, Expect const& expect)
{
    for (int first : {0, 2, 5}) { // led by the host, captured, replayed
        Sums sums(logger, type);
        expect(sums.isThere() && sums.hasLimitOnGpu(), "a loop is built, and what ends it is data");
        if (!sums.isThere())
            return;
        bool good = true;
        for (int trips : {first, first, first, 0, 1, 5, 0})
            good = sums.enqueue(float(trips)) && sums.isFor(trips) && good;
        expect(good && sums.recorder.getNbErrors() == 0,
               "stacks are zero behind the last trip, also where there is none");
    }
}

void checkPastTheEnd(DataType type, Expect const& expect)
{
    Silent silent;
    Sums sums(silent, type);
    expect(!sums.enqueue(6) && sums.recorder.takes(kLayer, kPast),
           "a loop past its tensor: the run by the host says so");
    bool good = true;
    for (int trips : {3, 5, 4})
        good = sums.enqueue(float(trips)) && sums.isFor(trips) && good;
    expect(good, "and the context goes on");
    // The graph ends the loop; whoever has waited for the stream knows.
    expect(sums.enqueue(6) && sums.isFor(5) && sums.recorder.takes(kLayer, kPast),
           "a replayed run past the tensor is recorded when the stream is waited for");
    expect(sums.enqueue(9) && sums.isFor(5) && sums.recorder.takes(kLayer, kPast), "and the next one like it");
    expect(sums.enqueue(2) && sums.isFor(2) && sums.recorder.getNbErrors() == 0, "and a good one behind it is good");
    // The same addresses as bindings.
    expect(sums.execute(4) && sums.isFor(4), "executeV2");
    expect(!sums.execute(6) && sums.recorder.takes(kLayer, kPast), "executeV2 past the tensor is false");
    expect(sums.execute(0) && sums.isFor(0) && sums.recorder.getNbErrors() == 0, "and good again");

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    good = cudaStreamBeginCapture(sums.stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess;
    good = sums.context().enqueueV3(sums.stream) && good;
    good = cudaStreamEndCapture(sums.stream, &graph) == cudaSuccess && good;
    good = good && cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess;
    expect(good, "a client captures the loop");
    auto launch = [&](float trips) {
        sums.prepare(trips);
        return cudaGraphLaunch(exec, sums.stream) == cudaSuccess && sums.wait();
    };
    expect(good && launch(3) && sums.isFor(3) && sums.recorder.getNbErrors() == 0, "its graph makes three trips");
    expect(good && launch(6) && sums.isFor(5) && sums.recorder.takes(kLayer, kPast), "its graph past the tensor");
    expect(good && launch(0) && sums.isFor(0) && sums.recorder.getNbErrors() == 0, "its graph makes none");
    if (exec)
        cudaGraphExecDestroy(exec);
    if (graph)
        cudaGraphDestroy(graph);
}

// A loop with nothing but numbers: the next call knows that the GPU has given up.
void checkEndless(Expect const& expect)
{
    Silent silent;
    std::unique_ptr<IBuilder> builder(createInferBuilder(silent));
    std::unique_ptr<INetworkDefinition> n(builder->createNetworkV2(1U));
    Dims const scalar{};
    ITensor* limit = n->addInput("limit", DataType::kFLOAT, scalar);
    float const zero = 0, one = 1;
    auto constant = [&](float const& v) {
        return n->addConstant(scalar, Weights{DataType::kFLOAT, &v, 1})->getOutput(0);
    };
    ILoop* loop = n->addLoop();
    loop->setName("endless");
    IRecurrenceLayer* s = loop->addRecurrence(*constant(zero));
    loop->addTripLimit(*n->addElementWise(*s->getOutput(0), *limit, ElementWiseOperation::kLESS)->getOutput(0),
                       TripLimit::kWHILE);
    s->setInput(1, *n->addElementWise(*s->getOutput(0), *constant(one), ElementWiseOperation::kSUM)->getOutput(0));
    ITensor* y = loop->addLoopOutput(*s->getOutput(0), LoopOutput::kLAST_VALUE)->getOutput(0);
    y->setName("y");
    n->markOutput(*y);
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    std::unique_ptr<ICudaEngine> engine(builder->buildEngineWithConfig(*n, *config));
    std::unique_ptr<IExecutionContext> context(engine ? engine->createExecutionContext() : nullptr);
    expect(context != nullptr, "a loop of numbers is built");
    if (!context)
        return;
    Recorder recorder;
    context->setErrorRecorder(&recorder);
    float* memory = nullptr;
    cudaMalloc(reinterpret_cast<void**>(&memory), 1024);
    void* bindings[] = {memory, memory + 128};
    auto run = [&](float trips) {
        float got = -1;
        cudaMemcpy(memory, &trips, sizeof(trips), cudaMemcpyHostToDevice);
        bool const good = context->executeV2(bindings);
        cudaMemcpy(&got, memory + 128, sizeof(got), cudaMemcpyDeviceToHost);
        return good && got == trips;
    };
    char const* const given = "did not end after 1000000 iterations";
    expect(run(3) && run(7) && run(2), "a loop of numbers");
    expect(!run(1e30F) && recorder.takes("layer 'endless'", given), "executeV2 of an endless loop is false");
    context->setTensorAddress("limit", memory);
    context->setTensorAddress("y", memory + 128);
    float const forever = 1e30F;
    cudaMemcpy(memory, &forever, sizeof(forever), cudaMemcpyHostToDevice);
    expect(context->enqueueV3(nullptr) && cudaDeviceSynchronize() == cudaSuccess, "enqueueV3 of one is not yet");
    expect(!run(5) && recorder.takes("layer 'endless'", given), "but the next call is");
    expect(run(5) && recorder.getNbErrors() == 0, "and the context goes on");
    context.reset();
    cudaFree(memory);
}

// Its elements decide a shape, so the host reads them; the shape is an output, too, which the host writes.
void checkShapeTensor(Expect const& expect)
{
    Silent silent;
    std::unique_ptr<IBuilder> builder(createInferBuilder(silent));
    std::unique_ptr<INetworkDefinition> n(builder->createNetworkV2(1U));
    Dims one{};
    one.nbDims = 1;
    one.d[0] = 1;
    ITensor* x = n->addInput("x", DataType::kFLOAT, Dims2{2, 2});
    ITensor* shape = n->addInput("shape", DataType::kINT32, one);
    IShuffleLayer* flat = n->addShuffle(*x);
    flat->setInput(1, *shape);
    flat->getOutput(0)->setName("y");
    n->markOutput(*flat->getOutput(0));
    ITensor* result = n->addShape(*flat->getOutput(0))->getOutput(0);
    result->setName("result");
    n->markOutputForShapes(*result);
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    IOptimizationProfile* profile = builder->createOptimizationProfile();
    int32_t const four = 4;
    for (auto const select : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
        profile->setShapeValues("shape", select, &four, 1);
    config->addOptimizationProfile(profile);
    std::unique_ptr<ICudaEngine> engine(builder->buildEngineWithConfig(*n, *config));
    std::unique_ptr<IExecutionContext> context(engine ? engine->createExecutionContext() : nullptr);
    expect(context != nullptr, "a network with a shape tensor is built");
    if (!context)
        return;
    Recorder recorder;
    context->setErrorRecorder(&recorder);
    void* memory = nullptr;
    cudaMalloc(&memory, 64);
    cudaMemcpy(memory, &four, sizeof(four), cudaMemcpyHostToDevice);
    context->setTensorAddress("x", memory);
    context->setTensorAddress("y", memory);
    context->setTensorAddress("shape", memory);
    int32_t size = 0;
    context->setTensorAddress("result", &size);
    expect(!context->enqueueV3(nullptr) && recorder.takes("shape tensor 'shape'", "GPU memory"),
           "a shape tensor in GPU memory is refused by name");
    context->setTensorAddress("shape", const_cast<int32_t*>(&four));
    context->setTensorAddress("result", memory);
    expect(!context->enqueueV3(nullptr) && recorder.takes("shape tensor 'result'", "GPU memory"),
           "and so is one that the host writes");
    context->setTensorAddress("result", &size);
    expect(context->enqueueV3(nullptr) && cudaDeviceSynchronize() == cudaSuccess && size == 4,
           "both go in host memory");
    context.reset();
    cudaFree(memory);
}

// A shape that is data to the client: it lies on the GPU, as getTensorLocation() says.
void checkShapeAsData(Expect const& expect)
{
    Silent silent;
    std::unique_ptr<IBuilder> builder(createInferBuilder(silent));
    std::unique_ptr<INetworkDefinition> n(builder->createNetworkV2(1U));
    ITensor* x = n->addInput("x", DataType::kFLOAT, Dims2{-1, 4});
    Dims two{};
    two.nbDims = 1;
    two.d[0] = 2;
    int32_t const oneLess[] = {0, 1};
    ITensor* less = n->addConstant(two, Weights{DataType::kINT32, oneLess, 2})->getOutput(0);
    ITensor* size = n->addElementWise(*n->addShape(*x)->getOutput(0), *less, ElementWiseOperation::kSUB)->getOutput(0);
    ISliceLayer* slice = n->addSlice(*x, Dims2{0, 0}, Dims2{1, 1}, Dims2{1, 1});
    slice->setInput(2, *size);
    size->setName("size");
    n->markOutput(*size);
    slice->getOutput(0)->setName("y");
    n->markOutput(*slice->getOutput(0));
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    IOptimizationProfile* profile = builder->createOptimizationProfile();
    profile->setDimensions("x", OptProfileSelector::kMIN, Dims2{1, 4});
    profile->setDimensions("x", OptProfileSelector::kOPT, Dims2{4, 4});
    profile->setDimensions("x", OptProfileSelector::kMAX, Dims2{8, 4});
    config->addOptimizationProfile(profile);
    std::unique_ptr<ICudaEngine> engine(builder->buildEngineWithConfig(*n, *config));
    std::unique_ptr<IExecutionContext> context(engine ? engine->createExecutionContext() : nullptr);
    expect(context && engine->getTensorLocation("size") == TensorLocation::kDEVICE, "a shape that is data is built");
    if (!context)
        return;
    int32_t* memory = nullptr;
    cudaMalloc(reinterpret_cast<void**>(&memory), 4096);
    context->setTensorAddress("x", memory);
    context->setTensorAddress("y", memory + 256);
    context->setTensorAddress("size", memory + 512);
    bool good = true;
    for (int32_t const rows : {3, 3, 3, 8, 1}) {
        int32_t got[2] = {};
        cudaMemset(memory + 512, 0xff, 8);
        context->setInputShape("x", Dims2{rows, 4});
        good = context->enqueueV3(nullptr) && cudaDeviceSynchronize() == cudaSuccess && good;
        cudaMemcpy(got, memory + 512, 8, cudaMemcpyDeviceToHost);
        good = got[0] == rows && got[1] == 3 && good;
    }
    expect(good, "and comes out on the GPU");
    context.reset();
    cudaFree(memory);
}

} // namespace

void checkLoops(ILogger& logger, Expect const& expect)
{
    for (auto const type : {DataType::kFLOAT, DataType::kINT32}) {
        checkStacks(logger, type, expect);
        checkPastTheEnd(type, expect);
    }
    checkEndless(expect);
    checkShapeTensor(expect);
    checkShapeAsData(expect);
}
