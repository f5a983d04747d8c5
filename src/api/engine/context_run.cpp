// SPDX-License-Identifier: Apache-2.0
// Runs of an execution context: what is checked before, what a stream (or a captured graph) keeps of a run, profiling.
#include <algorithm>
#include <cstring>
#include <optional>

#include "api/engine/cuda_driver.h"
#include "api/engine/engine.h"
#include "api/engine/layer_observers.h"
#include "api/engine/stream.h"
#include "api/engine/tensor_records.h"
#include "device/thread_pool.h"
#include "runtime/execute_cuda.h"
#include "runtime/loop_guards.h"

using namespace tw;
using namespace tw::api;

namespace tw::api {

namespace {

// One run, as it is handed to a stream: everything it needs, so that a captured graph can replay it.
struct Request
{
    std::weak_ptr<ContextObject*> context;
    std::shared_ptr<EngineState> state;
    std::shared_ptr<runtime::Instance> instance;
    std::vector<TensorRef> inputs, outputs; // graph order
    std::vector<int> lateOutputs;           // position in io of outputs whose size only the run tells; else -1
    void* arena = nullptr;
    std::shared_ptr<DeviceMemory> extraArena; // when the shapes need more than was planned
    CUstream_st* stream = nullptr;
    bool isCaptured = false;    // on it, in a client's CUDA graph
    std::optional<Error> error; // of the run, when the call that submitted it reports it
    bool isSubmitting = false;
};

// While it lives, this thread may allocate and free memory although a stream, here or in another thread, is captured in
// the mode that forbids it: a run with new shapes allocates, and would end that capture.
class AllowedInCaptures
{
public:
    explicit AllowedInCaptures(cuda::Driver const& driver) : driver_(driver) { exchange(); }
    ~AllowedInCaptures() { exchange(); }
    AllowedInCaptures(AllowedInCaptures const&) = delete;
    AllowedInCaptures& operator=(AllowedInCaptures const&) = delete;

private:
    void exchange()
    {
        if (driver_.cuThreadExchangeStreamCaptureMode)
            driver_.cuThreadExchangeStreamCaptureMode(&mode_);
    }
    cuda::Driver const& driver_;
    int mode_ = cuda::kCaptureRelaxed; // of the thread meanwhile; then what was before
};

// Memory for an output from its allocator. The order of calls is reallocateOutput, then notifyShape.
Result<void*> allocateOutput(ContextObject::Io& io, plan::IoTensor const& tensor, TensorRef const& t)
{
    uint64_t const bytes = uint64_t(std::max<int64_t>(t.sizeBytes(), 1)); // empty tensors have an address too
    void* const current = io.allocated ? io.allocated : io.address;
    std::string const& name = tensor.name;
    void* const memory = io.allocator->reallocateOutput(name.c_str(), current, bytes, kDeviceAlignment);
    if (!memory)
        return failedAllocation("output '{}': its IOutputAllocator gave no memory for {} bytes (shape {})", name, bytes,
                                t.dims.str());
    io.allocated = memory;
    bool const isLayout = tensor.dlaLayout != dla::Layout::kNone; // t is its memory
    io.allocator->notifyShape(name.c_str(), toPublic(isLayout ? tensor.dlaDims : t.dims));
    return memory;
}

Result<void> copyOutput(Request const& r, void* to, TensorRef const& from)
{
    if (from.sizeBytes() == 0)
        return {};
    if (cuda::Target const* gpu = r.state->core->cuda())
        TW_CUDA(gpu->device->driver(),
                cuMemcpyDtoDAsync(cuda::addressOf(to), cuda::addressOf(from.data), size_t(from.sizeBytes()), r.stream));
    else
        std::memcpy(to, from.data, size_t(from.sizeBytes()));
    return {};
}

// On a GPU: its context is current.
Result<void> runRequest(Request& r, ContextObject& c)
{
    runtime::Engine const& core = *r.state->core;
    cuda::Target const* const gpu = core.cuda();
    LayerTimes times;
    std::optional<GpuLayerTimes> gpuTimes;
    std::vector<TensorRef> outputs = r.outputs;
    bool const profile = c.profiler != nullptr && !r.isCaptured;
    std::shared_ptr<GpuLayerTimes> graphTimes;
    Observers observers;
    std::optional<LayerRanges> ranges;
    if (r.state->nvtx && c.nvtxVerbosity != nvinfer1::ProfilingVerbosity::kNONE)
        observers.add(ranges.emplace(*r.state->nvtx, c.nvtxVerbosity == nvinfer1::ProfilingVerbosity::kDETAILED));
    runtime::ExecuteArgs args{r.arena, r.inputs,
                              outputs, c.context.randomState(),
                              nullptr, &device::processThreadPool().workers(r.state->core->threads())};
    args.stream = r.stream;
    if (gpu) {
        args.device = &gpu->device;
        args.late = c.late;
        if (profile)
            observers.add(gpuTimes.emplace(*gpu->device, r.stream));
        if (c.profiler && r.isCaptured && GpuLayerTimes::canCapture(*gpu->device)) {
            graphTimes = std::make_shared<GpuLayerTimes>(*gpu->device, r.stream, true);
            observers.add(*graphTimes);
        }
    } else if (profile) {
        observers.add(times);
    }
    std::optional<TensorRecords> records;
    if (!r.state->recordFolder.empty() && !r.isCaptured)
        observers.add(
            records.emplace(r.state->recordFolder, core, *r.instance, gpu ? gpu->device.get() : nullptr, r.stream));
    args.observer = observers.get();
    TW_TRY(runtime::execute(*r.instance, args));
    if (records)
        TW_TRY(records->finish());
    for (size_t i = 0; i < outputs.size(); ++i) {
        int const late = r.lateOutputs[i];
        if (late < 0)
            continue;
        if (!c.io[size_t(late)].allocator)
            return invalidState("output '{}' has lost its IOutputAllocator", core.ioValue(late).name);
        TW_ASSIGN(void* to, allocateOutput(c.io[size_t(late)], core.contents().io[size_t(late)], outputs[i]));
        TW_TRY(copyOutput(r, to, outputs[i]));
    }
    if (graphTimes) {
        c.graphTimes.push_back({std::move(graphTimes), r.instance});
        c.isGraphMeant = true;
    }
    if (profile) {
        c.isGraphMeant = false;
        c.keepProfile(gpuTimes ? gpuTimes->ofLayers(*r.instance->block) : times.ofLayers(*r.instance->block));
        if (c.emitsProfile)
            for (auto const& [layer, ms] : c.lastProfile)
                c.profiler->reportLayerTime(layer.c_str(), ms);
    }
    return {};
}

// An error, in time, when the client captures the stream and the run cannot be part of a CUDA graph. The client's
// capture ends with an error then, as 8.5 documents; the context can be used on.
Result<void> checkCapture(cuda::Device const& device, ContextObject& context, Request& r, CUstream_st* stream)
{
    constexpr uint64_t kMostAlignment = 16;
    cuda::Driver const& driver = device.driver();
    int status = 0;
    if (driver.cuStreamIsCapturing(stream, &status) != cuda::kSuccess || status == 0)
        return {};
    r.isCaptured = true;
    std::string why =
        runtime::whyNotCaptured(*r.instance, runtime::hasDecisionsOnDevice(*r.instance) && device.conditionalNodes());
    ir::Graph const& g = *r.instance->block->graph;
    auto check = [&](std::vector<TensorRef> const& tensors, std::vector<ir::Value*> const& values) {
        for (size_t i = 0; i < tensors.size() && why.empty(); ++i)
            if (!values[i]->host && cuda::addressOf(tensors[i].data) % kMostAlignment != 0)
                why = fmt::format("the address of tensor '{}' is no multiple of {}", values[i]->name, kMostAlignment);
    };
    check(r.inputs, g.inputs);
    check(r.outputs, g.outputs);
    if (why.empty()) {
        context.captured.insert(r.instance);
        return {};
    }
    driver.cuStreamSynchronize(stream); // not allowed there: the capture ends with an error
    return invalidState("the run cannot be captured in a CUDA graph: {}; call enqueueV3() without a capture", why);
}

// Nothing may be thrown through the stream.
std::optional<Error> errorOf(Request& r, ContextObject& context)
{
    try {
        auto done = runRequest(r, context);
        return done.ok() ? std::nullopt : std::optional(std::move(done).error());
    } catch (std::bad_alloc const&) {
        return failedAllocation("out of memory");
    } catch (std::exception const& e) {
        return internalError(e.what());
    }
}

void runRequestOnStream(void* arg)
{
    Request& r = **static_cast<std::shared_ptr<Request>*>(arg);
    auto const context = r.context.lock();
    if (!context)
        return; // a graph that was captured from a context that is gone
    if (r.isSubmitting) {
        r.error = errorOf(r, **context);
        return;
    }
    guardedVoid((*context)->reporter, [&] { return runRequest(r, **context); }); // a graph's launch
}

void destroyRequest(void* arg)
{
    delete static_cast<std::shared_ptr<Request>*>(arg);
}

} // namespace

Result<void> ContextObject::submit(std::vector<void*> const& addresses, cudaStream_t stream, cudaEvent_t consumed,
                                   bool useAllocators)
{
    cuda::Target const* const gpu = state->core->cuda();
    TwHostCudaTable const* cuda = gpu ? nullptr : hostCudaOf(stream);
    // An output with an allocator lies where that says; the address of an earlier run may be gone.
    auto const counts = [&](int i) {
        return addresses[size_t(i)] && (inputPosition(i) >= 0 || !useAllocators || !io[size_t(i)].allocator);
    };
    // A CPU engine with the real CUDA: the run waits for the stream, then takes place here and now.
    std::unique_ptr<CudaDriver> const driver = gpu || cuda ? nullptr : CudaDriver::ofProcess();
    if (!gpu && !cuda && !driver && stream)
        return needsHostCuda("a stream");
    if (!gpu && !cuda && !driver && consumed)
        return needsHostCuda("an event");
    if (driver) {
        for (int i = 0; i < state->ioCount(); ++i)
            if (counts(i))
                TW_TRY(driver->checkReachable(addresses[size_t(i)], state->core->ioValue(i).name));
        TW_TRY(driver->finish(stream));
    }
    runtime::Engine const& core = *state->core;
    ir::Graph const& g = core.graph();
    std::optional<cuda::Current> current; // also for the client's allocators
    std::optional<AllowedInCaptures> allowed;
    if (gpu) {
        current.emplace(*gpu->device);
        allowed.emplace(gpu->device->driver());
        for (int i = 0; i < state->ioCount(); ++i)
            if (counts(i) && !core.ioValue(i).host)
                TW_TRY(checkOnGpu(*gpu->device, addresses[size_t(i)], "tensor", core.ioValue(i).name));
            else if (counts(i) && inputPosition(i) < 0)
                TW_TRY(checkOnHost(*gpu->device, addresses[size_t(i)], core.ioValue(i).name));
    }
    auto request = std::make_shared<Request>();
    TW_ASSIGN(request->instance, prepare());
    runtime::Instance const& inst = *request->instance;
    auto stateOf = [&](ir::Value const& v) -> runtime::ValueState const& {
        return inst.values[size_t(core.block().indexOf(&v))];
    };
    if (!ownsMemory && !given && inst.arenaBytes > 0)
        return invalidState("the context was created without device memory: call setDeviceMemory() first");
    request->context = alive;
    request->state = state;
    request->inputs.resize(g.inputs.size());
    request->outputs.resize(g.outputs.size());
    request->lateOutputs.resize(g.outputs.size(), -1);
    for (int i = 0; i < state->ioCount(); ++i) { // everything is checked before the first allocator is called
        ir::Value const& v = core.ioValue(i);
        void* address = addresses[size_t(i)];
        if (int const in = inputPosition(i); in >= 0) {
            runtime::ValueState const& s = stateOf(v);
            if (s.hasContents) // the values that the shapes were computed from, also when a graph is replayed
                address = const_cast<std::byte*>(static_cast<std::byte const*>(s.contents.data()));
            if (!address)
                return invalidState("input '{}' has no address: call setTensorAddress()", v.name);
            request->inputs[size_t(in)] = TensorRef{v.type, context.inputShape(in), address, v.format};
            continue;
        }
        size_t const out = size_t(std::ranges::find(g.outputs, &v) - g.outputs.begin());
        request->outputs[out] = TensorRef{v.type, stateOf(v).dims, address, v.format};
        bool const allocates = useAllocators && io[size_t(i)].allocator;
        if (!address && !allocates && (useAllocators || core.contents().io[size_t(i)].isExecution))
            return invalidState(
                "output '{}' has no address and no allocator: call setTensorAddress() or setOutputAllocator()", v.name);
    }
    for (int i = 0; i < state->ioCount(); ++i) {
        ir::Value const& v = core.ioValue(i);
        if (inputPosition(i) >= 0 || !useAllocators || !io[size_t(i)].allocator)
            continue;
        size_t const out = size_t(std::ranges::find(g.outputs, &v) - g.outputs.begin());
        request->outputs[out].data = nullptr;
        if (stateOf(v).exact) {
            TW_ASSIGN(request->outputs[out].data,
                      allocateOutput(io[size_t(i)], core.contents().io[size_t(i)], request->outputs[out]));
        } else {
            request->lateOutputs[out] = i;
        }
    }
    request->arena = ownsMemory ? own.data() : given;
    if (inst.arenaBytes > core.arenaBytes()) {
        if (!extra || extra->sizeBytes() < inst.arenaBytes) {
            extra = std::make_shared<DeviceMemory>();
            TW_TRY(extra->allocate(inst.arenaBytes, temporary ? temporary : state->allocator, gpu));
        }
        request->extraArena = extra;
        request->arena = extra->data();
    }
    if (gpu) {
        request->stream = stream;
        allowed.reset(); // what ends the client's capture shall end it
        TW_TRY(checkCapture(*gpu->device, *this, *request, stream));
        allowed.emplace(gpu->device->driver());
        last = request->instance;
        TW_TRY(runRequest(*request, *this));
        if (consumed)
            TW_CUDA(gpu->device->driver(), cuEventRecord(consumed, stream));
        return {};
    }
    request->stream = stream;
    if (!cuda) {
        TW_TRY(runRequest(*request, *this));
        return driver && consumed ? driver->record(consumed, stream) : Result<void>();
    }
    request->isSubmitting = true;
    int const status = cuda->enqueue(stream, runRequestOnStream, new std::shared_ptr<Request>(request), destroyRequest);
    request->isSubmitting = false; // later runs are launches of a graph
    if (status)
        return cudaFailed("the stream took no work", status);
    if (request->error)
        return *std::move(request->error);
    if (consumed)
        if (int const failed = cuda->recordEvent(consumed, stream))
            return cudaFailed("the event for consumed inputs was not recorded", failed);
    return {};
}

Result<bool> ContextObject::finish()
{
    if (cuda::Target const* gpu = state->core->cuda()) {
        cuda::Current const current(*gpu->device);
        TW_CUDA(gpu->device->driver(), cuStreamSynchronize(nullptr));
        if (auto const instance = last.lock(); instance && instance->guards)
            TW_TRY(instance->guards->check());
        return !hadLateError.exchange(false);
    }
    if (TwHostCudaTable const* cuda = hostCudaOf(nullptr))
        if (int const status = cuda->synchronize(nullptr))
            return cudaFailed("the null stream did not finish", status);
    return true;
}

Result<std::vector<void*>> ContextObject::fromBindings(void* const* bindings) const
{
    if (!bindings)
        return invalidArgument("the array of bindings is a null pointer");
    TW_TRY(needProfile());
    size_t const count = size_t(state->ioCount()), base = count * size_t(context.profile());
    std::vector<void*> addresses(bindings + base, bindings + base + count);
    for (size_t i = 0; i < count; ++i) {
        if (!addresses[i] && base > 0 && bindings[i]) { // given at profile 0's place
            addresses[i] = bindings[i];
            reporter.warning("binding '{}' is null; the address at profile 0's place is used",
                             state->bindingNames[base + i]);
        }
        if (!addresses[i] && state->core->contents().io[i].isExecution)
            return invalidArgument("binding {} ('{}') is a null pointer; empty tensors need an address too", base + i,
                                   state->bindingNames[base + i]);
    }
    return addresses;
}

} // namespace tw::api

namespace nvinfer1 {

bool IExecutionContext::execute(int32_t batchSize, void* const* bindings) noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](ContextObject& c) -> Result<bool> {
        c.hadLateError = false;
        if (!enqueue(batchSize, bindings, nullptr, nullptr))
            return false;
        return c.finish();
    });
}

bool IExecutionContext::enqueue(int32_t batchSize, void* const* bindings, cudaStream_t stream,
                                cudaEvent_t* inputConsumed) noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](ContextObject& c) -> Result<bool> {
        plan::Contents const& contents = c.state->core->contents();
        if (!contents.implicitBatch)
            return invalidState(
                "the engine has an explicit batch dimension: use executeV2(), enqueueV2() or enqueueV3()");
        if (batchSize < 1 || batchSize > contents.maxBatchSize)
            return invalidArgument("batch size {} is outside 1..{} (IBuilder::setMaxBatchSize)", batchSize,
                                   contents.maxBatchSize);
        if (contents.dlaModel != dla::Model::kNone && batchSize != contents.maxBatchSize)
            return invalidArgument("batch size {}: an engine with layers on DLA runs the batch of the build alone, {}",
                                   batchSize, contents.maxBatchSize);
        auto const& inputs = c.state->core->graph().inputs;
        for (size_t i = 0; i < inputs.size(); ++i) {
            Extents e;
            for (ir::Dim const& d : inputs[i]->shape)
                e.push(d.isConst() ? d.value() : batchSize);
            TW_TRY(c.context.setInputShape(int(i), e));
        }
        TW_ASSIGN(auto addresses, c.fromBindings(bindings));
        TW_TRY(c.submit(addresses, stream, inputConsumed ? *inputConsumed : nullptr, false));
        return true;
    });
}

bool IExecutionContext::executeV2(void* const* bindings) noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](ContextObject& c) -> Result<bool> {
        if (c.state->core->contents().implicitBatch)
            return invalidState("the engine has an implicit batch dimension: use execute()");
        TW_ASSIGN(auto addresses, c.fromBindings(bindings));
        c.hadLateError = false;
        TW_TRY(c.submit(addresses, nullptr, nullptr, false));
        return c.finish();
    });
}

bool IExecutionContext::enqueueV2(void* const* bindings, cudaStream_t stream, cudaEvent_t* inputConsumed) noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](ContextObject& c) -> Result<bool> {
        if (c.state->core->contents().implicitBatch)
            return invalidState("the engine has an implicit batch dimension: use enqueue()");
        TW_ASSIGN(auto addresses, c.fromBindings(bindings));
        TW_TRY(c.submit(addresses, stream, inputConsumed ? *inputConsumed : nullptr, false));
        return true;
    });
}

bool IExecutionContext::enqueueV3(cudaStream_t stream) noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](ContextObject& c) -> Result<bool> {
        if (c.state->core->contents().implicitBatch)
            return invalidState("the engine has an implicit batch dimension: use enqueue()");
        auto addresses = mapped<void*>(c.io, [&](auto const& io) { return io.address; });
        TW_TRY(c.submit(addresses, stream, c.inputConsumed, true));
        return true;
    });
}

} // namespace nvinfer1
