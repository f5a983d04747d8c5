// SPDX-License-Identifier: Apache-2.0
// Runtime, engine and context objects behind the public classes.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "api/entry.h"
#include "api/environment.h"
#include "api/gpu.h"
#include "api/property.h"
#include "base/blob.h"
#include "base/result.h"
#include "base/safety.h"
#include "device/nvtx.h"
#include "runtime/context.h"
#include "runtime/engine.h"

namespace tw::api {

// Where an engine's plan comes from, and how to get its bytes again.

// The engine reads from data() while it is loaded; then close() gives the memory back where the bytes can be had again.
// Clients that map a plan file read-only pay for its pages once at most: the file is opened here again, and pages are
// dropped as they have been packed; large tables that kernels read as they are (embeddings) and weights in the order of
// their kernels stay in the file, so it may be replaced or removed while the engine lives, but not changed or shortened
// in place. Other memory is copied, since the caller may free it, and the copy is kept.
class PlanSource : public PageKeeper
{
public:
    // `copied`: also what lies in a file.
    static Result<std::shared_ptr<PlanSource>> of(void const* bytes, size_t sizeBytes, bool copied = false);

    // 256-byte aligned, as sections of a plan expect; null after close().
    virtual void const* data() const = 0;
    virtual size_t sizeBytes() const = 0;
    virtual void close() = 0;
    // A constant in data() for use after close(), without a copy; null where a copy is better. `self` is this source.
    virtual BlobPtr keep(Blob const& constant, std::shared_ptr<PlanSource const> const& self) const = 0;
    // The plan's bytes, at any time. An error when its file has changed since.
    virtual Result<std::string> bytes() const = 0;

protected:
    bool holds(Blob const& constant) const
    {
        auto const begin = reinterpret_cast<uintptr_t>(data()), at = reinterpret_cast<uintptr_t>(constant.data());
        return begin != 0 && at >= begin && at - begin <= sizeBytes() &&
               constant.sizeBytes() <= sizeBytes() - (at - begin);
    }
};

class GpuLayerTimes;
class PluginObject;

struct RuntimeObject final : nvinfer1::IRuntime
{
    RuntimeObject(nvinfer1::ILogger* logger, Environment const& e, std::shared_ptr<cuda::Target const> device)
        : reporter(logger), use(logger), environment(e), gpu(std::move(device))
    {}
    mutable Reporter reporter;
    LoggerUse use;
    Environment environment;
    std::shared_ptr<cuda::Target const> gpu; // null: the CPU
    nvinfer1::IGpuAllocator* allocator = nullptr;
    int32_t maxThreads = 0; // 0: not set, the whole pool
    int32_t dlaCore = 0;
    safety::Purpose purpose = safety::Purpose::kStandard;
};

// What an engine and its contexts share: it outlives the engine object while contexts exist.
struct EngineState
{
    std::shared_ptr<runtime::Engine> core;
    std::vector<std::string> bindingNames; // nbIO per profile, suffixed " [profile K]" from 1 on
    std::vector<std::string> formatTexts;  // of each tensor, for people
    std::vector<ir::SymbolTable> ranges;   // of each profile
    nvinfer1::IGpuAllocator* allocator = nullptr;
    device::Nvtx const* nvtx = nullptr; // null: no profiler wants ranges
    std::string recordFolder;           // Environment::recordFolder
    std::mutex mutex;
    std::set<int> profilesInUse; // of contexts, only for dynamic engines
    int liveContexts = 0;

    int stepCount() const { return int(core->block().steps.size()); }
    // Clients see the layers once for each profile, those of profile 0 first.
    int layerCount() const { return stepCount() * int(ranges.size()); }
    static std::string ofProfile(std::string const& name, int profile)
    {
        return profile > 0 ? fmt::format("{} [profile {}]", name, profile) : name;
    }
    int ioCount() const { return int(core->contents().io.size()); }
    bool isDynamic() const;
    // Public dimensions of a tensor under a profile: -1 for those that it leaves open, without an implicit batch.
    // Profile -1: numbers that all profiles share.
    nvinfer1::Dims dimsOf(int io, int profile) const;
    // Positions in io of a tensor by its name, and of a binding of any profile; errors begin with `method`.
    Result<int> ioOf(char const* tensor, char const* method) const;
    Result<int> ioOf(int32_t binding, char const* method) const;
    // In a format that only DLA has: its dimensions and format are not those of the graph's value.
    bool isLayout(int io) const { return core->contents().io[size_t(io)].dlaLayout != dla::Layout::kNone; }
    nvinfer1::TensorFormat formatOf(int io) const
    {
        return static_cast<nvinfer1::TensorFormat>(isLayout(io) ? int32_t(core->contents().io[size_t(io)].dlaLayout)
                                                                : int32_t(core->ioValue(io).format));
    }
};

struct EngineObject final : nvinfer1::ICudaEngine
{
    EngineObject(Reporter const& r, std::shared_ptr<EngineState> s) : reporter(r), state(std::move(s)) {}
    mutable Reporter reporter;
    std::shared_ptr<EngineState> state;
    std::shared_ptr<PlanSource> plan;

    runtime::Engine const& core() const { return *state->core; }
    plan::Contents const& contents() const { return state->core->contents(); }
    template <class Which>
    Result<int> ioOf(Which which, char const* method) const
    {
        return state->ioOf(which, method);
    }
};

// Of device memory: what cudaMalloc promises.
inline constexpr uint64_t kDeviceAlignment = 256;

// Memory through the client's allocator, or of the GPU, or aligned host memory.
class DeviceMemory
{
public:
    DeviceMemory() = default;
    ~DeviceMemory() { reset(); }
    DeviceMemory(DeviceMemory const&) = delete;
    DeviceMemory& operator=(DeviceMemory const&) = delete;
    // `gpu`: null for the CPU.
    Result<void> allocate(int64_t sizeBytes, nvinfer1::IGpuAllocator* allocator, cuda::Target const* gpu);
    void reset();
    void* data() const { return data_; }
    int64_t sizeBytes() const { return size_; }

private:
    void* data_ = nullptr;
    int64_t size_ = 0;
    nvinfer1::IGpuAllocator* allocator_ = nullptr;
    bool large_ = false;                         // data_ is of mapLargePages()
    cuda::Buffer buffer_;                        // holds data_ when it is of the GPU and our own
    std::shared_ptr<cuda::Device const> device_; // of data_ when the client's allocator gave it on a GPU
};

struct ContextObject final : nvinfer1::IExecutionContext
{
    ContextObject(Reporter const& r, nvinfer1::ICudaEngine const& e, std::shared_ptr<EngineState> s);
    ~ContextObject() noexcept override;

    struct Io
    {
        void* address = nullptr; // of the client
        nvinfer1::IOutputAllocator* allocator = nullptr;
        void* allocated = nullptr; // what the allocator returned last
    };

    mutable Reporter reporter;
    nvinfer1::ICudaEngine const* engine;
    std::shared_ptr<EngineState> state;
    mutable runtime::Context context;
    std::vector<Io> io; // as contents().io
    std::string name;
    bool ownsMemory = true;
    DeviceMemory own;                    // arena
    DeviceMemory errors;                 // of a safety engine: its counts, until the client has a place for them
    std::shared_ptr<DeviceMemory> extra; // a larger one, for shapes that need more than was planned
    void* given = nullptr;               // setDeviceMemory
    nvinfer1::IProfiler* profiler = nullptr;
    nvinfer1::IGpuAllocator* temporary = nullptr;
    cudaEvent_t inputConsumed = nullptr;
    bool debugSync = false, emitsProfile = true;
    size_t persistentCacheLimit = 0;
    nvinfer1::ProfilingVerbosity nvtxVerbosity = nvinfer1::ProfilingVerbosity::kLAYER_NAMES_ONLY;
    std::vector<std::pair<std::string, float>> lastProfile; // layer, ms
    void keepProfile(std::vector<std::pair<std::string, float>> times)
    {
        lastProfile = std::move(times);
        for (auto& [layer, ms] : lastProfile)
            layer = EngineState::ofProfile(layer, context.profile());
    }
    // Of runs that were captured on a GPU with a profiler; the client's graphs record into all of them. The last one is
    // meant by reportToProfiler(), until a run is not captured.
    struct GraphTimes
    {
        std::shared_ptr<GpuLayerTimes const> times;
        std::shared_ptr<runtime::Instance const> of;
    };
    std::vector<GraphTimes> graphTimes;
    // Of runs that the client has captured on a GPU: its graphs go on to use their memory.
    std::set<std::shared_ptr<runtime::Instance const>> captured;
    bool isGraphMeant = false;
    // Runs that a CUDA graph keeps hold a weak reference: a launch after the context is gone does nothing.
    std::shared_ptr<ContextObject*> alive;
    // runtime::ExecuteArgs::late of all runs: a report, as of any other error.
    std::shared_ptr<std::function<void(Error const&)> const> late;
    std::atomic<bool> hadLateError{false};
    std::weak_ptr<runtime::Instance> last; // that ran

    // The same, but that the binding should be of the context's profile: bindings of profile 0 are taken for it.
    Result<int> ioOf(char const* tensor, char const* method) const { return state->ioOf(tensor, method); }
    Result<int> ioOf(int32_t binding, char const* method) const;
    Result<void> chooseProfile(int profile);
    // Memory for the counts of a safety engine; nothing for others.
    Result<void> makeErrors();
    // Positions among graph inputs; -1 for outputs.
    int inputPosition(int ioIndex) const;
    Result<void> needProfile() const;
    // The contents of a shape tensor from its address, if it has one: as they are there now.
    Result<void> readContents(int index);
    // Those of all shape tensors, then everything that follows.
    Result<std::shared_ptr<runtime::Instance>> prepare();
    // Runs now, or is recorded into the stream's capture; then records `consumed`, if any. Addresses: one for each of
    // contents().io.
    Result<void> submit(std::vector<void*> const& addresses, cudaStream_t stream, cudaEvent_t consumed,
                        bool useAllocators);
    // After a run of the null stream: all of it is done. Whether it went well: what went wrong behind the call that
    // submitted it has been reported.
    Result<bool> finish();
    // Addresses from bindings of this context's profile.
    Result<std::vector<void*>> fromBindings(void* const* bindings) const;
};

TW_OBJECT(nvinfer1::IRuntime, RuntimeObject)
TW_OBJECT(nvinfer1::ICudaEngine, EngineObject)
// Queries, too, may have to compute shapes first.
inline ContextObject& objectOf(nvinfer1::IExecutionContext const& c)
{
    return const_cast<ContextObject&>(static_cast<ContextObject const&>(c));
}

// Of a tensor of an engine or a context, by its name or a binding: answer(object, position in io); `none` where something is
// refused.
template <class T, class Public, class Which, class Answer>
T ask(Public const& of, Which which, char const* method, T none, Answer&& answer) noexcept
{
    return guarded<T>(objectOf(of), none, [&](auto& object) -> Result<T> {
        TW_ASSIGN(int const io, object.ioOf(which, method));
        return answer(object, io);
    });
}

// An engine object from a plan in memory, which is copied: what deserializeCudaEngine and buildEngineWithConfig share.
// `gpu`: where it runs; null: on the CPU. `plugins`: those of the build that has just made the plan, which need no creators.
// `purpose`: what the runtime is for; nothing: it is the builder's, which takes any engine.
Result<EngineObject*> makeEngine(Reporter const& reporter, void const* plan, size_t sizeBytes,
                                 Environment const& environment, nvinfer1::IGpuAllocator* allocator,
                                 std::shared_ptr<cuda::Target const> gpu, int maxThreads,
                                 std::vector<std::shared_ptr<PluginObject>> const& plugins = {},
                                 std::optional<safety::Purpose> purpose = {});

struct InspectorObject final : nvinfer1::IEngineInspector
{
    InspectorObject(Reporter const& r, EngineObject const& e) : reporter(r), state(e.state) {}
    mutable Reporter reporter;
    std::shared_ptr<EngineState> state;
    nvinfer1::IExecutionContext const* context = nullptr;
    mutable std::string layerText, engineText;

    std::string layer(int index, bool json) const;
};
TW_OBJECT(nvinfer1::IEngineInspector, InspectorObject)

} // namespace tw::api
