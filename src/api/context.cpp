// SPDX-License-Identifier: Apache-2.0
// IExecutionContext: addresses, streams, allocators and profiling around a runtime::Context.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "api/engine.h"
#include "hostcuda/host_cuda_table.h"

using namespace tw;
using namespace tw::api;

namespace tw::api {

// ---- memory

Result<void> DeviceMemory::allocate(int64_t sizeBytes, nvinfer1::IGpuAllocator* allocator)
{
    constexpr uint64_t kAlignment = 256;
    reset();
    if (sizeBytes <= 0)
        return {};
    uint64_t const rounded = (uint64_t(sizeBytes) + kAlignment - 1) / kAlignment * kAlignment;
    data_ = allocator ? allocator->allocate(rounded, kAlignment, 0) : std::aligned_alloc(kAlignment, rounded);
    if (!data_)
        return Error{ErrorCode::kFailedAllocation,
                     "no memory for " + std::to_string(rounded) + " bytes of activations"};
    allocator_ = allocator;
    size_ = sizeBytes;
    return {};
}

void DeviceMemory::reset()
{
    if (data_ && allocator_)
        allocator_->deallocate(data_);
    else
        std::free(data_);
    data_ = nullptr;
    size_ = 0;
}

// ---- the client's CUDA runtime

namespace {

// Our stand-in in this process, or null.
TwHostCudaTable const* hostCuda()
{
    auto const* table = static_cast<TwHostCudaTable const*>(dlsym(RTLD_DEFAULT, "twHostCuda"));
    bool const fits = table && table->version == kTwHostCudaVersion && table->sizeBytes >= sizeof(TwHostCudaTable);
    return fits ? table : nullptr;
}

Error noStream(char const* what)
{
    return unsupported(std::string(what) + " needs the CUDA runtime of this project: the engine runs on the CPU, and "
                                           "the process has no lib/hostcuda/libcudart"
                                           " (link it instead of the real one on machines without a GPU)");
}

// Times the steps of one run.
class LayerTimes final : public runtime::StepObserver
{
public:
    void before(runtime::LoadedStep const&) override { begin_ = std::chrono::steady_clock::now(); }
    void after(runtime::LoadedStep const& step) override
    {
        std::chrono::duration<float, std::milli> const d = std::chrono::steady_clock::now() - begin_;
        times.emplace_back(step.node->name, d.count());
    }
    std::vector<std::pair<std::string, float>> times;

private:
    std::chrono::steady_clock::time_point begin_;
};

} // namespace

// ---- ContextObject

ContextObject::ContextObject(Reporter const& r, nvinfer1::ICudaEngine const& e, std::shared_ptr<EngineState> s)
    : reporter(r), engine(&e), state(s), context(s->core), io(size_t(s->ioCount()))
{
    // The first context has profile 0 without asking; with static shapes every context does.
    std::lock_guard lock(state->mutex);
    bool const first = !state->firstContextMade;
    state->firstContextMade = true;
    if (!state->isDynamic()) {
        context.setProfile(0);
    } else if (first) {
        context.setProfile(0);
        state->profilesInUse.insert(0);
    }
}

ContextObject::~ContextObject()
{
    std::lock_guard lock(state->mutex);
    if (state->isDynamic() && context.profile() >= 0)
        if (auto it = state->profilesInUse.find(context.profile()); it != state->profilesInUse.end())
            state->profilesInUse.erase(it);
}

Result<void> ContextObject::chooseProfile(int profile)
{
    int const count = int(std::max<size_t>(state->core->contents().profiles.size(), 1));
    if (profile < 0 || profile >= count)
        return invalidArgument("optimization profile " + std::to_string(profile) + " does not exist; the engine has " +
                               std::to_string(count));
    if (profile == context.profile())
        return {};
    std::lock_guard lock(state->mutex);
    if (state->isDynamic()) {
        if (state->profilesInUse.contains(profile))
            return invalidState("optimization profile " + std::to_string(profile) +
                                " is in use by another execution context; each context needs a profile of its own");
        if (auto it = state->profilesInUse.find(context.profile()); it != state->profilesInUse.end())
            state->profilesInUse.erase(it);
        state->profilesInUse.insert(profile);
    }
    context.setProfile(profile);
    return {};
}

int ContextObject::ioIndex(char const* tensor, char const* method) const
{
    int const i = tensor ? state->core->ioIndex(tensor) : -1;
    if (i < 0)
        reporter.error(invalidArgument(std::string(method) + ": the engine has no tensor named '" +
                                       (tensor ? tensor : "(null)") + "'"));
    return i;
}

int ContextObject::inputPosition(int index) const
{
    auto const& inputs = state->core->graph().inputs;
    auto it = std::find(inputs.begin(), inputs.end(), &state->core->ioValue(index));
    return it == inputs.end() ? -1 : int(it - inputs.begin());
}

Result<std::shared_ptr<runtime::Instance>> ContextObject::prepare()
{
    for (int i = 0; i < state->ioCount(); ++i) {
        int const in = inputPosition(i);
        if (in < 0 || !context.needsContents(in) || !context.hasInputShape(in))
            continue;
        if (io[size_t(i)].address) {
            ir::Value const& v = state->core->ioValue(i);
            TW_TRY(context.setInputContents(in, TensorRef{v.type, context.inputShape(in), io[size_t(i)].address}));
        } else if (!context.hasInputContents(in)) {
            return invalidState("shape tensor '" + state->core->ioValue(i).name +
                                "' has no values: call setTensorAddress() or setInputShapeBinding()");
        }
    }
    return context.instance();
}

namespace {

// One run, as it is handed to a stream: everything it needs, by value, so that a captured graph can replay it.
struct Request
{
    ContextObject* context = nullptr;
    std::shared_ptr<EngineState> state;
    std::shared_ptr<runtime::Instance> instance;
    std::vector<TensorRef> inputs, outputs;              // graph order
    std::vector<nvinfer1::IOutputAllocator*> allocators; // of outputs whose size only the run tells; else null
    std::vector<std::string> outputNames;
    void* arena = nullptr;
    std::shared_ptr<DeviceMemory> extraArena; // when the shapes need more than was planned
    bool failed = false;
};

Result<void> runRequest(Request& r)
{
    LayerTimes times;
    std::vector<TensorRef> outputs = r.outputs;
    bool const profile = r.context->profiler != nullptr;
    runtime::ExecuteArgs args{r.arena, r.inputs, outputs, r.context->context.randomState(), profile ? &times : nullptr};
    TW_TRY(runtime::execute(*r.instance, args));
    for (size_t i = 0; i < outputs.size(); ++i) {
        if (!r.allocators[i])
            continue;
        uint64_t const bytes = uint64_t(outputs[i].sizeBytes());
        void* to =
            r.allocators[i]->reallocateOutput(r.outputNames[i].c_str(), nullptr, std::max<uint64_t>(bytes, 1), 256);
        if (!to && bytes > 0)
            return Error{ErrorCode::kFailedAllocation, "output '" + r.outputNames[i] +
                                                           "': its IOutputAllocator gave no memory for " +
                                                           std::to_string(bytes) + " bytes"};
        if (bytes > 0)
            std::memcpy(to, outputs[i].data, bytes);
        nvinfer1::Dims d{};
        for (int64_t v : outputs[i].dims)
            d.d[d.nbDims++] = int32_t(v);
        r.allocators[i]->notifyShape(r.outputNames[i].c_str(), d);
    }
    if (profile) {
        r.context->lastProfile = std::move(times.times);
        if (r.context->emitsProfile)
            for (auto const& [layer, ms] : r.context->lastProfile)
                r.context->profiler->reportLayerTime(layer.c_str(), ms);
    }
    return {};
}

void runRequestOnStream(void* arg)
{
    Request& r = **static_cast<std::shared_ptr<Request>*>(arg);
    r.failed = !guarded<bool>(r.context->reporter, false, [&]() -> Result<bool> {
        TW_TRY(runRequest(r));
        return true;
    });
}

void destroyRequest(void* arg)
{
    delete static_cast<std::shared_ptr<Request>*>(arg);
}

} // namespace

Result<void> ContextObject::submit(std::vector<void*> const& addresses, cudaStream_t stream, bool useAllocators)
{
    runtime::Engine const& core = *state->core;
    ir::Graph const& g = core.graph();
    auto request = std::make_shared<Request>();
    TW_ASSIGN(request->instance, prepare());
    runtime::Instance const& inst = *request->instance;
    request->context = this;
    request->state = state;
    request->inputs.resize(g.inputs.size());
    request->outputs.resize(g.outputs.size());
    request->allocators.resize(g.outputs.size(), nullptr);
    request->outputNames.resize(g.outputs.size());
    for (int i = 0; i < state->ioCount(); ++i) {
        ir::Value const& v = core.ioValue(i);
        void* address = addresses[size_t(i)];
        if (int const in = inputPosition(i); in >= 0) {
            if (!address && context.inputContents(in))
                address = context.inputContents(in)->data();
            if (!address)
                return invalidState("input '" + v.name + "' has no address: call setTensorAddress()");
            request->inputs[size_t(in)] = TensorRef{v.type, context.inputShape(in), address};
            continue;
        }
        size_t const out = size_t(std::find(g.outputs.begin(), g.outputs.end(), &v) - g.outputs.begin());
        runtime::ValueState const& s = inst.values[size_t(core.block().indexOf(&v))];
        request->outputNames[out] = v.name;
        nvinfer1::IOutputAllocator* allocator = useAllocators ? io[size_t(i)].allocator : nullptr;
        if (allocator && !s.exact) {
            request->allocators[out] = allocator;
            address = nullptr;
        } else if (allocator) {
            uint64_t const bytes = uint64_t(TensorRef{v.type, s.dims, nullptr}.sizeBytes());
            address = allocator->reallocateOutput(v.name.c_str(), address, std::max<uint64_t>(bytes, 1), 256);
            if (!address)
                return Error{ErrorCode::kFailedAllocation, "output '" + v.name +
                                                               "': its IOutputAllocator gave no memory for " +
                                                               std::to_string(bytes) + " bytes"};
            nvinfer1::Dims d{};
            for (int64_t k : s.dims)
                d.d[d.nbDims++] = int32_t(k);
            allocator->notifyShape(v.name.c_str(), d);
        } else if (!address) {
            return invalidState("output '" + v.name +
                                "' has no address and no allocator: call setTensorAddress() or "
                                "setOutputAllocator()");
        }
        request->outputs[out] = TensorRef{v.type, s.dims, address};
    }
    request->arena = ownsMemory ? own.data() : given;
    if (!ownsMemory && !given && inst.arenaBytes > 0)
        return invalidState("the context was created without device memory: call setDeviceMemory() first");
    if (inst.arenaBytes > core.arenaBytes()) {
        request->extraArena = std::make_shared<DeviceMemory>();
        TW_TRY(request->extraArena->allocate(inst.arenaBytes, temporary ? temporary : state->allocator));
        request->arena = request->extraArena->data();
    }
    TwHostCudaTable const* cuda = hostCuda();
    if (!cuda) {
        if (stream)
            return noStream("a stream");
        return runRequest(*request);
    }
    int const status = cuda->enqueue(stream, runRequestOnStream, new std::shared_ptr<Request>(request), destroyRequest);
    if (status != 0)
        return Error{ErrorCode::kFailedExecution, "the stream took no work: CUDA error " + std::to_string(status)};
    if (request->failed)
        return Error{ErrorCode::kFailedExecution, "the run failed; the line before says why"};
    return {};
}

Result<std::vector<void*>> ContextObject::fromBindings(void* const* bindings) const
{
    if (!bindings)
        return invalidArgument("the array of bindings is a null pointer");
    if (context.profile() < 0)
        return invalidState("the context has no optimization profile: call setOptimizationProfileAsync() first");
    size_t const count = size_t(state->ioCount()), base = count * size_t(context.profile());
    std::vector<void*> addresses(bindings + base, bindings + base + count);
    for (size_t i = 0; i < count; ++i) {
        if (!addresses[i] && base > 0 && bindings[i]) { // given at profile 0's place
            addresses[i] = bindings[i];
            reporter.warning("binding '" + state->bindingNames[base + i] +
                             "' is null; the address at profile 0's place is used");
        }
        if (!addresses[i])
            return invalidArgument("binding " + std::to_string(base + i) + " ('" + state->bindingNames[base + i] +
                                   "') is a null pointer; empty tensors need an address too");
    }
    return addresses;
}

} // namespace tw::api

namespace nvinfer1 {

namespace {

ContextObject& self(IExecutionContext* c)
{
    return objectOf(*c);
}
// Queries may have to compute shapes first.
ContextObject& self(IExecutionContext const* c)
{
    return const_cast<ContextObject&>(objectOf(*c));
}
Dims noDims()
{
    Dims d{};
    d.nbDims = -1;
    return d;
}

// Position in io of a binding, which should belong to the context's profile: bindings of profile 0 are taken for it.
int ioOfBinding(ContextObject& c, int32_t binding, char const* method)
{
    int const count = c.state->ioCount();
    int const total = int(c.state->bindingNames.size());
    if (binding < 0 || binding >= total) {
        c.reporter.error(invalidArgument(std::string(method) + ": binding index " + std::to_string(binding) +
                                         " is out of range (the engine has " + std::to_string(total) + " bindings)"));
        return -1;
    }
    int const profile = binding / count;
    if (c.context.profile() >= 0 && profile != c.context.profile()) {
        if (profile != 0) {
            c.reporter.error(invalidArgument(std::string(method) + ": binding '" +
                                             c.state->bindingNames[size_t(binding)] +
                                             "' belongs to optimization profile " + std::to_string(profile) +
                                             ", the context uses profile " + std::to_string(c.context.profile())));
            return -1;
        }
        c.reporter.warning(std::string(method) + ": binding index " + std::to_string(binding) +
                           " belongs to profile 0 and was corrected to " +
                           std::to_string(binding + count * c.context.profile()));
    }
    return binding % count;
}

bool setShape(ContextObject& c, int io, Dims const& dims, char const* method)
{
    return guarded<bool>(c.reporter, false, [&]() -> Result<bool> {
        int const in = c.inputPosition(io);
        std::string const& name = c.state->core->ioValue(io).name;
        if (in < 0)
            return invalidArgument(std::string(method) + ": '" + name + "' is no input");
        if (dims.nbDims < 0 || dims.nbDims > Dims::MAX_DIMS)
            return invalidArgument(std::string(method) + ": '" + name + "': nbDims " + std::to_string(dims.nbDims) +
                                   " must be in 0.." + std::to_string(int(Dims::MAX_DIMS)));
        Extents e;
        if (c.state->core->contents().implicitBatch)
            return invalidState(std::string(method) +
                                ": the engine has an implicit batch dimension; its shapes are fixed");
        for (int i = 0; i < dims.nbDims; ++i) {
            if (dims.d[i] < 0)
                return invalidArgument(std::string(method) + ": '" + name + "': dimension " + std::to_string(i) +
                                       " is " + std::to_string(dims.d[i]) +
                                       "; run-time dimensions must not be negative");
            e.push(dims.d[i]);
        }
        TW_TRY(c.context.setInputShape(in, e));
        return true;
    });
}

Dims currentShape(ContextObject& c, int io)
{
    runtime::Engine const& core = *c.state->core;
    auto toDims = [&](Extents const& e) {
        Dims d{};
        for (int i = core.contents().implicitBatch ? 1 : 0; i < e.rank; ++i)
            d.d[d.nbDims++] = int32_t(e[i]);
        return d;
    };
    if (int const in = c.inputPosition(io); in >= 0)
        return c.context.hasInputShape(in) && !core.contents().implicitBatch ? toDims(c.context.inputShape(in))
                                                                             : c.state->dimsOf(io);
    if (core.contents().implicitBatch || isStatic(core.ioValue(io).shape))
        return c.state->dimsOf(io);
    for (size_t i = 0; i < core.graph().inputs.size(); ++i)
        if (!c.context.hasInputShape(int(i)))
            return c.state->dimsOf(io);
    auto inst = c.prepare();
    if (!inst.ok()) {
        // Missing values of shape tensors leave wildcards; inputs that do not fit together are an error.
        if (inst.error().code == tw::ErrorCode::kInvalidState)
            return c.state->dimsOf(io);
        c.reporter.error(inst.error());
        return noDims();
    }
    runtime::ValueState const& s = (*inst)->values[size_t(core.block().indexOf(&core.ioValue(io)))];
    Dims d = c.state->dimsOf(io);
    return s.exact ? toDims(s.dims) : d;
}

} // namespace

bool IExecutionContext::execute(int32_t batchSize, void* const* bindings) noexcept
{
    ContextObject& c = self(this);
    return guarded<bool>(c.reporter, false, [&]() -> Result<bool> {
        if (!enqueue(batchSize, bindings, nullptr, nullptr))
            return false;
        if (TwHostCudaTable const* cuda = hostCuda())
            cuda->synchronize(nullptr);
        return true;
    });
}

bool IExecutionContext::enqueue(int32_t batchSize, void* const* bindings, cudaStream_t stream,
                                cudaEvent_t* inputConsumed) noexcept
{
    ContextObject& c = self(this);
    return guarded<bool>(c.reporter, false, [&]() -> Result<bool> {
        plan::Contents const& contents = c.state->core->contents();
        if (!contents.implicitBatch)
            return invalidState(
                "the engine has an explicit batch dimension: use executeV2(), enqueueV2() or enqueueV3()");
        if (batchSize < 1 || batchSize > contents.maxBatchSize)
            return invalidArgument("batch size " + std::to_string(batchSize) + " is outside 1.." +
                                   std::to_string(contents.maxBatchSize) + " (IBuilder::setMaxBatchSize)");
        auto const& inputs = c.state->core->graph().inputs;
        for (size_t i = 0; i < inputs.size(); ++i) {
            Extents e;
            for (ir::Dim const& d : inputs[i]->shape)
                e.push(d.isConst() ? d.value() : batchSize);
            TW_TRY(c.context.setInputShape(int(i), e));
        }
        TW_ASSIGN(auto addresses, c.fromBindings(bindings));
        TW_TRY(c.submit(addresses, stream, false));
        if (inputConsumed && *inputConsumed)
            if (TwHostCudaTable const* cuda = hostCuda())
                cuda->recordEvent(*inputConsumed, stream);
        return true;
    });
}

bool IExecutionContext::executeV2(void* const* bindings) noexcept
{
    ContextObject& c = self(this);
    return guarded<bool>(c.reporter, false, [&]() -> Result<bool> {
        if (c.state->core->contents().implicitBatch)
            return invalidState("the engine has an implicit batch dimension: use execute()");
        TW_ASSIGN(auto addresses, c.fromBindings(bindings));
        TW_TRY(c.submit(addresses, nullptr, false));
        if (TwHostCudaTable const* cuda = hostCuda())
            cuda->synchronize(nullptr);
        return true;
    });
}

bool IExecutionContext::enqueueV2(void* const* bindings, cudaStream_t stream, cudaEvent_t* inputConsumed) noexcept
{
    ContextObject& c = self(this);
    return guarded<bool>(c.reporter, false, [&]() -> Result<bool> {
        if (c.state->core->contents().implicitBatch)
            return invalidState("the engine has an implicit batch dimension: use enqueue()");
        TW_ASSIGN(auto addresses, c.fromBindings(bindings));
        TW_TRY(c.submit(addresses, stream, false));
        if (inputConsumed && *inputConsumed)
            if (TwHostCudaTable const* cuda = hostCuda())
                cuda->recordEvent(*inputConsumed, stream);
        return true;
    });
}

bool IExecutionContext::enqueueV3(cudaStream_t stream) noexcept
{
    ContextObject& c = self(this);
    return guarded<bool>(c.reporter, false, [&]() -> Result<bool> {
        if (c.state->core->contents().implicitBatch)
            return invalidState("the engine has an implicit batch dimension: use enqueue()");
        std::vector<void*> addresses;
        for (auto const& io : c.io)
            addresses.push_back(io.address);
        TW_TRY(c.submit(addresses, stream, true));
        if (c.inputConsumed)
            if (TwHostCudaTable const* cuda = hostCuda())
                cuda->recordEvent(c.inputConsumed, stream);
        return true;
    });
}

// ---- shapes

bool IExecutionContext::setOptimizationProfile(int32_t profileIndex) noexcept
{
    ContextObject& c = self(this);
    return guarded<bool>(c.reporter, false, [&]() -> Result<bool> {
        TW_TRY(c.chooseProfile(profileIndex));
        return true;
    });
}
bool IExecutionContext::setOptimizationProfileAsync(int32_t profileIndex, cudaStream_t) noexcept
{
    return setOptimizationProfile(profileIndex); // nothing is copied on the CPU
}
int32_t IExecutionContext::getOptimizationProfile() const noexcept
{
    return self(this).context.profile();
}
bool IExecutionContext::setBindingDimensions(int32_t bindingIndex, Dims dimensions) noexcept
{
    ContextObject& c = self(this);
    int const io = ioOfBinding(c, bindingIndex, "setBindingDimensions");
    return io >= 0 && setShape(c, io, dimensions, "setBindingDimensions");
}
bool IExecutionContext::setInputShape(char const* tensorName, Dims const& dims) noexcept
{
    ContextObject& c = self(this);
    int const io = c.ioIndex(tensorName, "setInputShape");
    return io >= 0 && setShape(c, io, dims, "setInputShape");
}
Dims IExecutionContext::getBindingDimensions(int32_t bindingIndex) const noexcept
{
    ContextObject& c = self(this);
    int const io = ioOfBinding(c, bindingIndex, "getBindingDimensions");
    return io < 0 ? noDims()
                  : guarded<Dims>(c.reporter, noDims(), [&]() -> Result<Dims> { return currentShape(c, io); });
}
Dims IExecutionContext::getTensorShape(char const* tensorName) const noexcept
{
    ContextObject& c = self(this);
    int const io = c.ioIndex(tensorName, "getTensorShape");
    return io < 0 ? noDims()
                  : guarded<Dims>(c.reporter, noDims(), [&]() -> Result<Dims> { return currentShape(c, io); });
}
Dims IExecutionContext::getTensorStrides(char const* tensorName) const noexcept
{
    Dims const shape = getTensorShape(tensorName);
    Dims strides = shape;
    int64_t step = 1;
    for (int i = shape.nbDims - 1; i >= 0; --i) {
        strides.d[i] = step < 0 ? -1 : int32_t(step);
        step = shape.d[i] < 0 || step < 0 ? -1 : step * shape.d[i];
    }
    return strides;
}
Dims IExecutionContext::getStrides(int32_t bindingIndex) const noexcept
{
    ContextObject& c = self(this);
    int const io = ioOfBinding(c, bindingIndex, "getStrides");
    return io < 0 ? noDims() : getTensorStrides(c.state->core->contents().io[size_t(io)].name.c_str());
}

bool IExecutionContext::setInputShapeBinding(int32_t bindingIndex, int32_t const* data) noexcept
{
    ContextObject& c = self(this);
    int const io = ioOfBinding(c, bindingIndex, "setInputShapeBinding");
    return io >= 0 && guarded<bool>(c.reporter, false, [&]() -> Result<bool> {
               int const in = c.inputPosition(io);
               if (in < 0 || !c.context.needsContents(in))
                   return invalidArgument("setInputShapeBinding: '" + c.state->core->ioValue(io).name +
                                          "' is no input shape tensor");
               if (!data)
                   return invalidArgument("setInputShapeBinding: data is a null pointer");
               ir::Value const& v = c.state->core->ioValue(io);
               TW_TRY(c.context.setInputContents(
                   in, TensorRef{v.type, c.context.inputShape(in), const_cast<int32_t*>(data)}));
               return true;
           });
}
bool IExecutionContext::getShapeBinding(int32_t bindingIndex, int32_t* data) const noexcept
{
    ContextObject& c = self(this);
    int const io = ioOfBinding(c, bindingIndex, "getShapeBinding");
    return io >= 0 && guarded<bool>(c.reporter, false, [&]() -> Result<bool> {
               if (!data)
                   return invalidArgument("getShapeBinding: data is a null pointer");
               ir::Value const& v = c.state->core->ioValue(io);
               if (int const in = c.inputPosition(io); in >= 0) {
                   if (!c.context.hasInputContents(in))
                       return false;
                   std::memcpy(data, c.context.inputContents(in)->data(),
                               size_t(c.context.inputContents(in)->ref().sizeBytes()));
                   return true;
               }
               TW_ASSIGN(auto inst, c.prepare());
               runtime::ValueState const& s = inst->values[size_t(c.state->core->block().indexOf(&v))];
               if (v.isConstant())
                   std::memcpy(data, v.constant->data->data(), size_t(TensorRef{v.type, s.dims, nullptr}.sizeBytes()));
               else if (s.hasContents)
                   std::memcpy(data, s.contents.data(), size_t(s.contents.ref().sizeBytes()));
               else
                   return false;
               return true;
           });
}

bool IExecutionContext::allInputDimensionsSpecified() const noexcept
{
    ContextObject& c = self(this);
    for (size_t i = 0; i < c.state->core->graph().inputs.size(); ++i)
        if (!c.context.hasInputShape(int(i)) && !c.state->core->contents().implicitBatch)
            return false;
    return true;
}
bool IExecutionContext::allInputShapesSpecified() const noexcept
{
    ContextObject& c = self(this);
    for (int i = 0; i < c.state->ioCount(); ++i) {
        int const in = c.inputPosition(i);
        if (in >= 0 && c.context.needsContents(in) && !c.context.hasInputContents(in) && !c.io[size_t(i)].address)
            return false;
    }
    return true;
}

int32_t IExecutionContext::inferShapes(int32_t nbMaxNames, char const** tensorNames) noexcept
{
    ContextObject& c = self(this);
    return guarded<int32_t>(c.reporter, -1, [&]() -> Result<int32_t> {
        if (nbMaxNames < 0 || (nbMaxNames > 0 && !tensorNames))
            return invalidArgument("inferShapes: no room for " + std::to_string(nbMaxNames) + " names was given");
        int32_t missing = 0;
        for (int i = 0; i < c.state->ioCount(); ++i) {
            int const in = c.inputPosition(i);
            if (in < 0)
                continue;
            bool const lacksValues =
                c.context.needsContents(in) && !c.context.hasInputContents(in) && !c.io[size_t(i)].address;
            if (c.context.hasInputShape(in) && !lacksValues)
                continue;
            if (missing < nbMaxNames)
                tensorNames[missing] = c.state->core->contents().io[size_t(i)].name.c_str();
            ++missing;
        }
        if (missing > 0)
            return missing;
        TW_ASSIGN(auto inst, c.prepare());
        return 0;
    });
}

// ---- addresses and allocators

bool IExecutionContext::setTensorAddress(char const* tensorName, void* data) noexcept
{
    ContextObject& c = self(this);
    int const io = c.ioIndex(tensorName, "setTensorAddress");
    if (io < 0)
        return false;
    c.io[size_t(io)].address = data;
    return true;
}
void const* IExecutionContext::getTensorAddress(char const* tensorName) const noexcept
{
    int const io = self(this).ioIndex(tensorName, "getTensorAddress");
    return io < 0 ? nullptr : self(this).io[size_t(io)].address;
}
bool IExecutionContext::setInputTensorAddress(char const* tensorName, void const* data) noexcept
{
    ContextObject& c = self(this);
    int const io = c.ioIndex(tensorName, "setInputTensorAddress");
    if (io < 0)
        return false;
    if (c.inputPosition(io) < 0) {
        c.reporter.error(invalidArgument("setInputTensorAddress: '" + std::string(tensorName) + "' is no input"));
        return false;
    }
    c.io[size_t(io)].address = const_cast<void*>(data);
    return true;
}
void* IExecutionContext::getOutputTensorAddress(char const* tensorName) const noexcept
{
    ContextObject& c = self(this);
    int const io = c.ioIndex(tensorName, "getOutputTensorAddress");
    return io < 0 || c.inputPosition(io) >= 0 ? nullptr : c.io[size_t(io)].address;
}
bool IExecutionContext::setOutputAllocator(char const* tensorName, IOutputAllocator* outputAllocator) noexcept
{
    ContextObject& c = self(this);
    int const io = c.ioIndex(tensorName, "setOutputAllocator");
    if (io < 0)
        return false;
    if (c.inputPosition(io) >= 0) {
        c.reporter.error(invalidArgument("setOutputAllocator: '" + std::string(tensorName) + "' is an input"));
        return false;
    }
    c.io[size_t(io)].allocator = outputAllocator;
    return true;
}
IOutputAllocator* IExecutionContext::getOutputAllocator(char const* tensorName) const noexcept
{
    int const io = self(this).ioIndex(tensorName, "getOutputAllocator");
    return io < 0 ? nullptr : self(this).io[size_t(io)].allocator;
}
int64_t IExecutionContext::getMaxOutputSize(char const* tensorName) const noexcept
{
    ContextObject& c = self(this);
    int const io = c.ioIndex(tensorName, "getMaxOutputSize");
    if (io < 0 || c.inputPosition(io) >= 0)
        return -1;
    return guarded<int64_t>(c.reporter, -1, [&]() -> Result<int64_t> {
        TW_ASSIGN(auto inst, c.prepare());
        ir::Value const& v = c.state->core->ioValue(io);
        runtime::ValueState const& s = inst->values[size_t(c.state->core->block().indexOf(&v))];
        return s.known ? TensorRef{v.type, s.dims, nullptr}.sizeBytes() : int64_t(-1);
    });
}
bool IExecutionContext::setTemporaryStorageAllocator(IGpuAllocator* allocator) noexcept
{
    self(this).temporary = allocator;
    return true;
}
IGpuAllocator* IExecutionContext::getTemporaryStorageAllocator() const noexcept
{
    return self(this).temporary;
}
void IExecutionContext::setDeviceMemory(void* memory) noexcept
{
    ContextObject& c = self(this);
    if (c.ownsMemory)
        c.reporter.error(invalidState("setDeviceMemory: the context was created with device memory of its own; use "
                                      "createExecutionContextWithoutDeviceMemory()"));
    else
        c.given = memory;
}
bool IExecutionContext::setInputConsumedEvent(cudaEvent_t event) noexcept
{
    self(this).inputConsumed = event;
    return true;
}
cudaEvent_t IExecutionContext::getInputConsumedEvent() const noexcept
{
    return self(this).inputConsumed;
}

// ---- the rest

void IExecutionContext::setDebugSync(bool sync) noexcept
{
    self(this).debugSync = sync;
}
bool IExecutionContext::getDebugSync() const noexcept
{
    return self(this).debugSync;
}
void IExecutionContext::setProfiler(IProfiler* profiler) noexcept
{
    self(this).profiler = profiler;
}
IProfiler* IExecutionContext::getProfiler() const noexcept
{
    return self(this).profiler;
}
ICudaEngine const& IExecutionContext::getEngine() const noexcept
{
    return *self(this).engine;
}
void IExecutionContext::setName(char const* name) noexcept
{
    ContextObject& c = self(this);
    if (!name)
        c.reporter.error(invalidArgument("IExecutionContext::setName: the name is a null pointer"));
    else
        guardedVoid(c.reporter, [&]() -> Result<void> {
            c.name = name;
            return {};
        });
}
char const* IExecutionContext::getName() const noexcept
{
    return self(this).name.c_str();
}
void IExecutionContext::setErrorRecorder(IErrorRecorder* recorder) noexcept
{
    self(this).reporter.setRecorder(recorder);
}
IErrorRecorder* IExecutionContext::getErrorRecorder() const noexcept
{
    return self(this).reporter.recorder();
}
void IExecutionContext::setEnqueueEmitsProfile(bool enqueueEmitsProfile) noexcept
{
    self(this).emitsProfile = enqueueEmitsProfile;
}
bool IExecutionContext::getEnqueueEmitsProfile() const noexcept
{
    return self(this).emitsProfile;
}
bool IExecutionContext::reportToProfiler() const noexcept
{
    ContextObject& c = self(this);
    if (!c.profiler || c.lastProfile.empty())
        return false;
    for (auto const& [layer, ms] : c.lastProfile)
        c.profiler->reportLayerTime(layer.c_str(), ms);
    return true;
}
void IExecutionContext::setPersistentCacheLimit(size_t size) noexcept
{
    self(this).persistentCacheLimit = size;
}
size_t IExecutionContext::getPersistentCacheLimit() const noexcept
{
    return self(this).persistentCacheLimit;
}
bool IExecutionContext::setNvtxVerbosity(ProfilingVerbosity verbosity) noexcept
{
    ContextObject& c = self(this);
    auto const rank = [](ProfilingVerbosity v) {
        return v == ProfilingVerbosity::kNONE ? 0 : v == ProfilingVerbosity::kLAYER_NAMES_ONLY ? 1 : 2;
    };
    if (rank(verbosity) > rank(static_cast<ProfilingVerbosity>(c.state->core->contents().profilingVerbosity)))
        return false;
    c.nvtxVerbosity = verbosity;
    return true;
}
ProfilingVerbosity IExecutionContext::getNvtxVerbosity() const noexcept
{
    return self(this).nvtxVerbosity;
}

} // namespace nvinfer1
