// SPDX-License-Identifier: Apache-2.0
// libnvinfer_safe: the classes of nvinfer1::safe on libnvinfer, for development. They have the stricter rules of the safe runtime for
// arguments; nothing of it is certified for any use.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "NvInferSafeRuntime.h"
#include "base/result.h"
#include "base/safety.h"

namespace tw::safety {

namespace {

using nvinfer1::AsciiChar;
using nvinfer1::DataType;
using nvinfer1::Dims;
using nvinfer1::IErrorRecorder;
using nvinfer1::ILogger;
using nvinfer1::TensorFormat;
using nvinfer1::TensorIOMode;

// With the terminator, as the rule for all strings of the safe runtime has it.
constexpr size_t kMostBytesOfAName = 1024;
constexpr uintptr_t kAlignment = 256;

// Where an object reports: its recorder, and the logger of its runtime.
class Errors
{
public:
    explicit Errors(ILogger& logger) : logger_(logger) {}
    Errors(Errors const& other) : logger_(other.logger_) { set(other.get()); }
    Errors& operator=(Errors const&) = delete;
    ~Errors() { set(nullptr); }

    void set(IErrorRecorder* recorder) noexcept
    {
        if (recorder)
            recorder->incRefCount();
        if (recorder_)
            recorder_->decRefCount();
        recorder_ = recorder;
    }
    IErrorRecorder* get() const noexcept { return recorder_; }

    void report(Error const& e) const noexcept
    {
        logger_.log(ILogger::Severity::kERROR, e.message.c_str());
        if (recorder_)
            recorder_->reportError(static_cast<nvinfer1::ErrorCode>(e.code), e.message.c_str());
    }
    ILogger& logger() const noexcept { return logger_; }

private:
    ILogger& logger_;
    IErrorRecorder* recorder_ = nullptr;
};

// body() gives a T or an Error; exceptions and errors are reported.
template <class T, class Body>
T guarded(Errors const& errors, T none, Body&& body) noexcept
{
    try {
        Result<T> result = body();
        if (result.ok())
            return std::move(result).value();
        errors.report(result.error());
    } catch (std::bad_alloc const&) {
        errors.report(failedAllocation("there is no memory"));
    } catch (std::exception const& e) {
        errors.report(internalError("{}", e.what()));
    }
    return none;
}

Dims noDims()
{
    Dims d{};
    d.nbDims = -1;
    return d;
}

class Engine final : public nvinfer1::safe::ICudaEngine
{
public:
    Engine(std::unique_ptr<nvinfer1::ICudaEngine> engine, Errors const& errors)
        : inner_(std::move(engine)), errors_(errors)
    {
        for (int32_t i = 0; i < inner_->getNbIOTensors(); ++i)
            if (char const* name = inner_->getIOTensorName(i); !isErrorCount(name))
                names_.push_back(name);
    }

    nvinfer1::ICudaEngine& inner() const { return *inner_; }
    std::vector<char const*> const& names() const { return names_; }
    Errors const& errors() const { return errors_; }

    // "getTensorShape: there is no tensor 'x' ..." unless the name is one of the engine's.
    Result<char const*> nameOf(AsciiChar const* name, char const* method) const
    {
        if (!name)
            return invalidArgument("{}: the tensor's name is a null pointer", method);
        if (strnlen(name, kMostBytesOfAName) == kMostBytesOfAName)
            return invalidArgument("{}: the tensor's name has {} bytes or more", method, kMostBytesOfAName);
        for (char const* own : names_)
            if (!std::strcmp(own, name))
                return own;
        std::string all;
        for (char const* own : names_)
            all += fmt::format("{}'{}'", all.empty() ? "" : ", ", own);
        return invalidArgument("{}: the engine has no tensor '{}'; it has {}", method, name, all);
    }
    Result<char const*> nameOf(int32_t binding, char const* method) const
    {
        if (binding < 0 || size_t(binding) >= names_.size())
            return invalidArgument("{}: binding {} must be in 0..{}", method, binding, int(names_.size()) - 1);
        return names_[size_t(binding)];
    }
    template <class T, class Which, class Answer>
    T ask(Which which, char const* method, T none, Answer&& answer) const noexcept
    {
        return guarded<T>(errors_, none, [&]() -> Result<T> {
            Result<char const*> const name = nameOf(which, method);
            if (!name.ok())
                return name.error();
            return T(answer(*name));
        });
    }

    // ---- bindings by number
    int32_t getNbBindings() const noexcept override { return int32_t(names_.size()); }
    int32_t getBindingIndex(AsciiChar const* name) const noexcept override
    {
        return ask(name, "getBindingIndex", int32_t(-1), [&](char const* own) {
            return int32_t(std::find(names_.begin(), names_.end(), own) - names_.begin());
        });
    }
    AsciiChar const* getBindingName(int32_t i) const noexcept override { return getIOTensorName(i); }
    bool bindingIsInput(int32_t i) const noexcept override
    {
        return ask(i, "bindingIsInput", false,
                   [&](char const* t) { return inner_->getTensorIOMode(t) == TensorIOMode::kINPUT; });
    }
    Dims getBindingDimensions(int32_t i) const noexcept override
    {
        return ask(i, "getBindingDimensions", noDims(), [&](char const* t) { return inner_->getTensorShape(t); });
    }
    DataType getBindingDataType(int32_t i) const noexcept override
    {
        return ask(i, "getBindingDataType", DataType::kFLOAT,
                   [&](char const* t) { return inner_->getTensorDataType(t); });
    }
    int32_t getBindingBytesPerComponent(int32_t i) const noexcept override
    {
        return ask(i, "getBindingBytesPerComponent", int32_t(-1),
                   [&](char const* t) { return inner_->getTensorBytesPerComponent(t); });
    }
    int32_t getBindingComponentsPerElement(int32_t i) const noexcept override
    {
        return ask(i, "getBindingComponentsPerElement", int32_t(-1),
                   [&](char const* t) { return inner_->getTensorComponentsPerElement(t); });
    }
    TensorFormat getBindingFormat(int32_t i) const noexcept override
    {
        return ask(i, "getBindingFormat", TensorFormat::kLINEAR,
                   [&](char const* t) { return inner_->getTensorFormat(t); });
    }
    int32_t getBindingVectorizedDim(int32_t i) const noexcept override
    {
        return ask(i, "getBindingVectorizedDim", int32_t(-1),
                   [&](char const* t) { return inner_->getTensorVectorizedDim(t); });
    }

    // ---- tensors by name
    int32_t getNbIOTensors() const noexcept override { return int32_t(names_.size()); }
    AsciiChar const* getIOTensorName(int32_t i) const noexcept override
    {
        return ask(i, "getIOTensorName", static_cast<AsciiChar const*>(nullptr), [](char const* t) { return t; });
    }
    Dims getTensorShape(AsciiChar const* name) const noexcept override
    {
        return ask(name, "getTensorShape", noDims(), [&](char const* t) { return inner_->getTensorShape(t); });
    }
    DataType getTensorDataType(AsciiChar const* name) const noexcept override
    {
        return ask(name, "getTensorDataType", DataType::kFLOAT,
                   [&](char const* t) { return inner_->getTensorDataType(t); });
    }
    TensorIOMode getTensorIOMode(AsciiChar const* name) const noexcept override
    {
        return ask(name, "getTensorIOMode", TensorIOMode::kNONE,
                   [&](char const* t) { return inner_->getTensorIOMode(t); });
    }
    int32_t getTensorBytesPerComponent(AsciiChar const* name) const noexcept override
    {
        return ask(name, "getTensorBytesPerComponent", int32_t(-1),
                   [&](char const* t) { return inner_->getTensorBytesPerComponent(t); });
    }
    int32_t getTensorComponentsPerElement(AsciiChar const* name) const noexcept override
    {
        return ask(name, "getTensorComponentsPerElement", int32_t(-1),
                   [&](char const* t) { return inner_->getTensorComponentsPerElement(t); });
    }
    TensorFormat getTensorFormat(AsciiChar const* name) const noexcept override
    {
        return ask(name, "getTensorFormat", TensorFormat::kLINEAR,
                   [&](char const* t) { return inner_->getTensorFormat(t); });
    }
    int32_t getTensorVectorizedDim(AsciiChar const* name) const noexcept override
    {
        return ask(name, "getTensorVectorizedDim", int32_t(-1),
                   [&](char const* t) { return inner_->getTensorVectorizedDim(t); });
    }

    // ---- the rest
    nvinfer1::safe::IExecutionContext* createExecutionContext() noexcept override
    {
        return context(inner_->createExecutionContext());
    }
    nvinfer1::safe::IExecutionContext* createExecutionContextWithoutDeviceMemory() noexcept override
    {
        return context(inner_->createExecutionContextWithoutDeviceMemory());
    }
    size_t getDeviceMemorySize() const noexcept override { return inner_->getDeviceMemorySize(); }
    AsciiChar const* getName() const noexcept override { return inner_->getName(); }
    void setErrorRecorder(IErrorRecorder* recorder) noexcept override
    {
        std::lock_guard const lock(mutex_);
        errors_.set(recorder);
        inner_->setErrorRecorder(recorder);
    }
    IErrorRecorder* getErrorRecorder() const noexcept override { return errors_.get(); }

private:
    nvinfer1::safe::IExecutionContext* context(nvinfer1::IExecutionContext* made) noexcept; // takes it over

    std::unique_ptr<nvinfer1::ICudaEngine> inner_;
    Errors errors_;
    std::vector<char const*> names_; // the engine's
    std::mutex mutex_;
};

class Context final : public nvinfer1::safe::IExecutionContext
{
public:
    using Counts = nvinfer1::safe::FloatingPointErrorInformation;

    Context(Engine const& engine, std::unique_ptr<nvinfer1::IExecutionContext> context)
        : engine_(engine), inner_(std::move(context)), errors_(engine.errors())
    {
        unused_ = const_cast<void*>(inner_->getTensorAddress(kErrorsBefore));
        inner_->setEnqueueEmitsProfile(false);
    }

    nvinfer1::safe::ICudaEngine const& getEngine() const noexcept override { return engine_; }
    void setName(AsciiChar const* name) noexcept override
    {
        guarded<bool>(errors_, false, [&]() -> Result<bool> {
            if (!name || strnlen(name, kMostBytesOfAName) == kMostBytesOfAName)
                return invalidArgument("setName: the name is a null pointer or has {} bytes or more",
                                       kMostBytesOfAName);
            inner_->setName(name);
            return true;
        });
    }
    AsciiChar const* getName() const noexcept override { return inner_->getName(); }
    void setDeviceMemory(void* memory) noexcept override
    {
        guarded<bool>(errors_, false, [&]() -> Result<bool> {
            if (engine_.getDeviceMemorySize() > 0)
                if (auto const bad = trouble(memory); !bad.empty())
                    return invalidArgument("setDeviceMemory: {}", bad);
            inner_->setDeviceMemory(memory);
            return true;
        });
    }
    void setErrorRecorder(IErrorRecorder* recorder) noexcept override
    {
        errors_.set(recorder);
        inner_->setErrorRecorder(recorder);
    }
    IErrorRecorder* getErrorRecorder() const noexcept override { return errors_.get(); }

    // ---- addresses
    bool setInputTensorAddress(AsciiChar const* name, void const* data) noexcept override
    {
        return set(name, const_cast<void*>(data), TensorIOMode::kINPUT, "setInputTensorAddress");
    }
    bool setOutputTensorAddress(AsciiChar const* name, void* data) noexcept override
    {
        return set(name, data, TensorIOMode::kOUTPUT, "setOutputTensorAddress");
    }
    void const* getInputTensorAddress(AsciiChar const* name) const noexcept override
    {
        return get(name, TensorIOMode::kINPUT, "getInputTensorAddress");
    }
    void* getOutputTensorAddress(AsciiChar const* name) const noexcept override
    {
        return get(name, TensorIOMode::kOUTPUT, "getOutputTensorAddress");
    }
    Dims getTensorStrides(AsciiChar const* name) const noexcept override
    {
        return engine_.ask(name, "getTensorStrides", noDims(),
                           [&](char const* t) { return inner_->getTensorStrides(t); });
    }
    Dims getStrides(int32_t binding) const noexcept override
    {
        return engine_.ask(binding, "getStrides", noDims(), [&](char const* t) { return inner_->getTensorStrides(t); });
    }

    // ---- runs
    void setErrorBuffer(Counts* buffer) noexcept override
    {
        guarded<bool>(errors_, false, [&]() -> Result<bool> {
            if (reinterpret_cast<uintptr_t>(buffer) % alignof(Counts) != 0)
                return invalidArgument("setErrorBuffer: the address is no multiple of {}", alignof(Counts));
            void* const counts = buffer ? buffer : unused_;
            inner_->setTensorAddress(kErrorsBefore, counts);
            inner_->setTensorAddress(kErrorsAfter, counts);
            buffer_ = buffer;
            return true;
        });
    }
    Counts* getErrorBuffer() const noexcept override { return buffer_; }
    bool setInputConsumedEvent(cudaEvent_t event) noexcept override { return inner_->setInputConsumedEvent(event); }
    cudaEvent_t getInputConsumedEvent() const noexcept override { return inner_->getInputConsumedEvent(); }
    bool enqueueV2(void* const* bindings, cudaStream_t stream, cudaEvent_t const* inputConsumed) noexcept override
    {
        return guarded<bool>(errors_, false, [&]() -> Result<bool> {
            if (!bindings)
                return invalidArgument("enqueueV2: the bindings are a null pointer");
            std::vector<void*> all;
            size_t next = 0;
            nvinfer1::ICudaEngine const& engine = engine_.inner();
            for (int32_t i = 0; i < engine.getNbIOTensors(); ++i) {
                char const* const name = engine.getIOTensorName(i);
                if (isErrorCount(name)) {
                    all.push_back(const_cast<void*>(inner_->getTensorAddress(name)));
                    continue;
                }
                all.push_back(bindings[next++]);
                if (auto const bad = trouble(all.back()); !bad.empty())
                    return invalidArgument("enqueueV2: binding {} ('{}'): {}", next - 1, name, bad);
            }
            return inner_->enqueueV2(all.data(), stream, const_cast<cudaEvent_t*>(inputConsumed));
        });
    }
    bool enqueueV3(cudaStream_t stream) noexcept override
    {
        return guarded<bool>(errors_, false, [&]() -> Result<bool> {
            for (char const* name : engine_.names())
                if (!inner_->getTensorAddress(name))
                    return invalidState("enqueueV3: tensor '{}' has no address; call {}", name,
                                        engine_.inner().getTensorIOMode(name) == TensorIOMode::kINPUT
                                            ? "setInputTensorAddress()"
                                            : "setOutputTensorAddress()");
            return inner_->enqueueV3(stream);
        });
    }

private:
    static std::string trouble(void const* address)
    {
        if (!address)
            return "the address is a null pointer";
        if (reinterpret_cast<uintptr_t>(address) % kAlignment != 0)
            return fmt::format("the address is no multiple of {} bytes", kAlignment);
        return {};
    }
    Result<char const*> nameOf(AsciiChar const* name, TensorIOMode mode, char const* method) const
    {
        Result<char const*> own = engine_.nameOf(name, method);
        if (own.ok() && engine_.inner().getTensorIOMode(*own) != mode)
            return invalidArgument("{}: '{}' is an {}", method, *own,
                                   mode == TensorIOMode::kINPUT ? "output" : "input");
        return own;
    }
    bool set(AsciiChar const* name, void* data, TensorIOMode mode, char const* method) noexcept
    {
        return guarded<bool>(errors_, false, [&]() -> Result<bool> {
            Result<char const*> const own = nameOf(name, mode, method);
            if (!own.ok())
                return own.error();
            if (auto const bad = trouble(data); !bad.empty())
                return invalidArgument("{}: '{}': {}", method, *own, bad);
            return inner_->setTensorAddress(*own, data);
        });
    }
    void* get(AsciiChar const* name, TensorIOMode mode, char const* method) const noexcept
    {
        return guarded<void*>(errors_, nullptr, [&]() -> Result<void*> {
            Result<char const*> const own = nameOf(name, mode, method);
            if (!own.ok())
                return own.error();
            return const_cast<void*>(inner_->getTensorAddress(*own));
        });
    }

    Engine const& engine_;
    std::unique_ptr<nvinfer1::IExecutionContext> inner_;
    Errors errors_;
    Counts* buffer_ = nullptr;
    void* unused_; // counts that nobody asks for
};

nvinfer1::safe::IExecutionContext* Engine::context(nvinfer1::IExecutionContext* made) noexcept
{
    std::unique_ptr<nvinfer1::IExecutionContext> owned(made);
    if (!owned)
        return nullptr;
    std::lock_guard const lock(mutex_); // contexts may be made by several threads
    return guarded<nvinfer1::safe::IExecutionContext*>(
        errors_, nullptr,
        [&]() -> Result<nvinfer1::safe::IExecutionContext*> { return new Context(*this, std::move(owned)); });
}

class Runtime final : public nvinfer1::safe::IRuntime
{
public:
    Runtime(ILogger& logger, std::unique_ptr<nvinfer1::IRuntime> runtime) : inner_(std::move(runtime)), errors_(logger)
    {}

    nvinfer1::safe::ICudaEngine* deserializeCudaEngine(void const* blob, std::size_t size) noexcept override
    {
        return guarded<nvinfer1::safe::ICudaEngine*>(errors_, nullptr, [&]() -> Result<nvinfer1::safe::ICudaEngine*> {
            if (!errors_.get())
                return invalidState(
                    "deserializeCudaEngine: the safe runtime has no error recorder; call setErrorRecorder() first");
            if (!blob || size == 0)
                return invalidArgument("deserializeCudaEngine: the engine is a null pointer or has no bytes");
            std::unique_ptr<nvinfer1::ICudaEngine> engine(inner_->deserializeCudaEngine(blob, size));
            if (!engine)
                return nullptr; // libnvinfer has reported why
            return new Engine(std::move(engine), errors_);
        });
    }
    void setGpuAllocator(nvinfer1::IGpuAllocator* allocator) noexcept override { inner_->setGpuAllocator(allocator); }
    void setErrorRecorder(IErrorRecorder* recorder) noexcept override
    {
        errors_.set(recorder);
        inner_->setErrorRecorder(recorder);
    }
    IErrorRecorder* getErrorRecorder() const noexcept override { return errors_.get(); }

private:
    std::unique_ptr<nvinfer1::IRuntime> inner_;
    Errors errors_;
};

} // namespace

} // namespace tw::safety

namespace nvinfer1::safe {

IRuntime* createInferRuntime(ILogger& logger) noexcept
{
    using namespace tw::safety;
    std::unique_ptr<nvinfer1::IRuntime> inner(static_cast<nvinfer1::IRuntime*>(
        createInferRuntime_INTERNAL(&logger, versionFor(Purpose::kSafe, NV_TENSORRT_VERSION))));
    if (!inner)
        return nullptr;
    logger.log(ILogger::Severity::kINFO,
               "the safe runtime is a proxy for development: it is not certified for any use");
    return new (std::nothrow) Runtime(logger, std::move(inner));
}

extern "C" IPluginRegistry* getSafePluginRegistry() noexcept
{
    return getBuilderPluginRegistry(EngineCapability::kSAFETY);
}

} // namespace nvinfer1::safe
