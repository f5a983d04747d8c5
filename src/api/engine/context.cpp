// SPDX-License-Identifier: Apache-2.0
// IExecutionContext: shapes, addresses and allocators. Its runs: context_run.cpp; its settings: context_settings.cpp.
#include <cstring>

#include "api/builder/parts.h"
#include "api/engine/engine.h"
#include "api/engine/layer_observers.h"
#include "api/engine/stream.h"

using namespace tw;
using namespace tw::api;

namespace nvinfer1 {

namespace {

// Elements of a value that are known without a run; null data when they are not.
TensorRef contentsOf(ContextObject const& c, runtime::Instance const& inst, ir::Value const& v)
{
    runtime::ValueState const& s = inst.values[size_t(c.state->core->block().indexOf(&v))];
    if (v.isConstant())
        return TensorRef{v.type, s.dims, const_cast<void*>(v.constant->data->data())};
    return s.hasContents ? s.contents.ref() : TensorRef{};
}

Result<void> checkInt32(ir::Value const& v, char const* method)
{
    if (v.type == tw::DataType::kInt32)
        return {};
    return invalidArgument("{}: '{}' is {}, no kINT32 shape tensor; use setTensorAddress()", method, v.name,
                           nameOf(v.type));
}

Result<void> checkOutput(ContextObject const& c, int io, char const* method)
{
    if (c.inputPosition(io) < 0)
        return {};
    return invalidArgument("{}: '{}' is an input", method, c.state->core->ioValue(io).name);
}

Result<bool> setShape(ContextObject& c, int io, Dims const& dims, char const* method)
{
    int const in = c.inputPosition(io);
    std::string const what = std::string(method) + ": '" + c.state->core->ioValue(io).name + "'";
    if (in < 0)
        return invalidArgument("{} is no input", what);
    if (dims.nbDims < 0 || dims.nbDims > Dims::MAX_DIMS)
        return invalidArgument("{}: nbDims {} must be in 0..{}", what, dims.nbDims, int(Dims::MAX_DIMS));
    Extents e;
    if (c.state->core->contents().implicitBatch)
        return invalidState("{}: the engine has an implicit batch dimension; its shapes are fixed", method);
    for (int i = 0; i < dims.nbDims; ++i) {
        if (dims.d[i] < 0)
            return invalidArgument("{}: dimension {} is {}; run-time dimensions must not be negative", what, i,
                                   dims.d[i]);
        e.push(dims.d[i]);
    }
    if (c.state->isLayout(io)) {
        Extents const& only = c.state->core->contents().io[size_t(io)].dlaDims;
        if (e != only)
            return invalidArgument("{}: DLA takes the shape of the build alone, {}, not {}", what, only.str(), e.str());
        return true;
    }
    TW_TRY(c.context.setInputShape(in, e));
    return true;
}

void setAddress(ContextObject& c, int io, void* data)
{
    c.io[size_t(io)].address = data;
    c.io[size_t(io)].allocated = nullptr;
    // Values that were read at the address before, or set by setInputShapeBinding(), are no longer meant.
    if (int const in = c.inputPosition(io); in >= 0)
        c.context.forgetInputContents(in);
}

Dims currentShape(ContextObject& c, int io)
{
    runtime::Engine const& core = *c.state->core;
    auto toDims = [&](Extents const& e) { return toPublic(e, core.contents().implicitBatch ? 1 : 0); };
    Dims const known = c.state->dimsOf(io, c.context.profile());
    if (c.state->isLayout(io))
        return known;
    if (int const in = c.inputPosition(io); in >= 0)
        return c.context.hasInputShape(in) && !core.contents().implicitBatch ? toDims(c.context.inputShape(in)) : known;
    if (core.contents().implicitBatch || isStatic(core.ioValue(io).shape))
        return known;
    for (size_t i = 0; i < core.graph().inputs.size(); ++i)
        if (!c.context.hasInputShape(int(i)))
            return known;
    auto inst = c.prepare();
    if (!inst.ok()) {
        // Missing values of shape tensors leave wildcards; inputs that do not fit together are an error.
        if (inst.error().code == tw::ErrorCode::kInvalidState)
            return known;
        c.reporter.error(inst.error());
        return noDims();
    }
    runtime::ValueState const& s = (*inst)->values[size_t(core.block().indexOf(&core.ioValue(io)))];
    return s.exact ? toDims(s.dims) : known;
}

} // namespace

// ---- shapes

bool IExecutionContext::setOptimizationProfile(int32_t profileIndex) noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](ContextObject& c) -> Result<bool> {
        TW_TRY(c.chooseProfile(profileIndex));
        return true;
    });
}
bool IExecutionContext::setOptimizationProfileAsync(int32_t profileIndex, cudaStream_t) noexcept
{
    return setOptimizationProfile(profileIndex); // nothing is copied on the CPU
}
TW_GETTER(IExecutionContext, int32_t, getOptimizationProfile, self.context.profile())
bool IExecutionContext::setBindingDimensions(int32_t bindingIndex, Dims dimensions) noexcept
{
    return ask(*this, bindingIndex, "setBindingDimensions", false,
               [&](ContextObject& c, int io) { return setShape(c, io, dimensions, "setBindingDimensions"); });
}
bool IExecutionContext::setInputShape(char const* tensorName, Dims const& dims) noexcept
{
    return ask(*this, tensorName, "setInputShape", false,
               [&](ContextObject& c, int io) { return setShape(c, io, dims, "setInputShape"); });
}
Dims IExecutionContext::getBindingDimensions(int32_t bindingIndex) const noexcept
{
    return ask(*this, bindingIndex, "getBindingDimensions", noDims(), currentShape);
}
Dims IExecutionContext::getTensorShape(char const* tensorName) const noexcept
{
    return ask(*this, tensorName, "getTensorShape", noDims(), currentShape);
}

Dims IExecutionContext::getTensorStrides(char const* tensorName) const noexcept
{
    ContextObject& c = objectOf(*this);
    Dims const shape = getTensorShape(tensorName);
    int const io = tensorName ? c.state->core->ioIndex(tensorName) : -1;
    if (io < 0 || shape.nbDims < 0)
        return shape;
    if (c.state->isLayout(io)) {
        runtime::Engine const& core = *c.state->core;
        dla::Layout const layout = core.contents().io[size_t(io)].dlaLayout;
        return toPublic(dla::stridesOf(layout, ir::extentsOf(core.ioValue(io).shape)),
                        core.contents().implicitBatch ? 1 : 0);
    }
    // Those of the batch, in implicit batch mode, are nobody's: the rest counts from the end.
    Extents dims;
    for (int i = 0; i < shape.nbDims; ++i)
        dims.push(shape.d[i]);
    return stridesOf(c.state->core->ioValue(io).format, dims);
}
Dims IExecutionContext::getStrides(int32_t bindingIndex) const noexcept
{
    return ask(*this, bindingIndex, "getStrides", noDims(), [&](ContextObject& c, int io) {
        return getTensorStrides(c.state->core->contents().io[size_t(io)].name.c_str());
    });
}

bool IExecutionContext::setInputShapeBinding(int32_t bindingIndex, int32_t const* data) noexcept
{
    constexpr char const* kMethod = "setInputShapeBinding";
    return ask(*this, bindingIndex, kMethod, false, [&](ContextObject& c, int io) -> Result<bool> {
        int const in = c.inputPosition(io);
        ir::Value const& v = c.state->core->ioValue(io);
        if (in < 0 || !c.context.needsContents(in))
            return invalidArgument("setInputShapeBinding: '{}' is no input shape tensor", v.name);
        if (!data)
            return invalidArgument("setInputShapeBinding: data is a null pointer");
        TW_TRY(checkInt32(v, kMethod));
        TW_TRY(c.context.setInputContents(in, TensorRef{v.type, c.context.inputShape(in), const_cast<int32_t*>(data)}));
        c.io[size_t(io)].address = nullptr; // the last setting counts
        return true;
    });
}
bool IExecutionContext::getShapeBinding(int32_t bindingIndex, int32_t* data) const noexcept
{
    constexpr char const* kMethod = "getShapeBinding";
    return ask(*this, bindingIndex, kMethod, false, [&](ContextObject& c, int io) -> Result<bool> {
        if (!data)
            return invalidArgument("getShapeBinding: data is a null pointer");
        ir::Value const& v = c.state->core->ioValue(io);
        if (!c.state->core->contents().io[size_t(io)].isShapeTensor)
            return invalidArgument("getShapeBinding: '{}' is no shape tensor", v.name);
        TW_TRY(checkInt32(v, kMethod));
        if (int const in = c.inputPosition(io); in >= 0) {
            TW_TRY(c.readContents(io));
            if (!c.context.hasInputContents(in))
                return invalidState("getShapeBinding: '{}' has no values yet: call setInputShapeBinding()", v.name);
            std::memcpy(data, c.context.inputContents(in)->data(),
                        size_t(c.context.inputContents(in)->ref().sizeBytes()));
            return true;
        }
        TW_ASSIGN(auto inst, c.prepare());
        TensorRef const t = contentsOf(c, *inst, v);
        if (!t.data)
            return invalidState("getShapeBinding: the values of '{}' are not known before a run", v.name);
        std::memcpy(data, t.data, size_t(t.sizeBytes()));
        return true;
    });
}

bool IExecutionContext::allInputDimensionsSpecified() const noexcept
{
    ContextObject& c = objectOf(*this);
    for (size_t i = 0; i < c.state->core->graph().inputs.size(); ++i)
        if (!c.context.hasInputShape(int(i)) && !c.state->core->contents().implicitBatch)
            return false;
    return true;
}
bool IExecutionContext::allInputShapesSpecified() const noexcept
{
    ContextObject& c = objectOf(*this);
    for (int i = 0; i < c.state->ioCount(); ++i) {
        int const in = c.inputPosition(i);
        if (in >= 0 && c.context.needsContents(in) && !c.context.hasInputContents(in) && !c.io[size_t(i)].address)
            return false;
    }
    return true;
}

int32_t IExecutionContext::inferShapes(int32_t nbMaxNames, char const** tensorNames) noexcept
{
    return guarded<int32_t>(objectOf(*this), -1, [&](ContextObject& c) -> Result<int32_t> {
        if (nbMaxNames < 0 || (nbMaxNames > 0 && !tensorNames))
            return invalidArgument("inferShapes: no room for {} names was given", nbMaxNames);
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
        // Output shape tensors whose memory is known are written at once.
        for (int i = 0; i < c.state->ioCount(); ++i) {
            ir::Value const& v = c.state->core->ioValue(i);
            if (c.inputPosition(i) >= 0 || !c.state->core->contents().io[size_t(i)].isShapeTensor ||
                !c.io[size_t(i)].address)
                continue;
            if (TensorRef const t = contentsOf(c, *inst, v); t.data)
                std::memcpy(c.io[size_t(i)].address, t.data, size_t(t.sizeBytes()));
        }
        return 0;
    });
}

// ---- addresses and allocators

bool IExecutionContext::setTensorAddress(char const* tensorName, void* data) noexcept
{
    return ask(*this, tensorName, "setTensorAddress", false, [&](ContextObject& c, int io) {
        setAddress(c, io, data);
        return true;
    });
}
void const* IExecutionContext::getTensorAddress(char const* tensorName) const noexcept
{
    return ask<void const*>(*this, tensorName, "getTensorAddress", nullptr,
                            [](ContextObject& c, int io) { return c.io[size_t(io)].address; });
}
bool IExecutionContext::setInputTensorAddress(char const* tensorName, void const* data) noexcept
{
    return ask(*this, tensorName, "setInputTensorAddress", false, [&](ContextObject& c, int io) -> Result<bool> {
        if (c.inputPosition(io) < 0)
            return invalidArgument("setInputTensorAddress: '{}' is no input", tensorName);
        setAddress(c, io, const_cast<void*>(data));
        return true;
    });
}
void* IExecutionContext::getOutputTensorAddress(char const* tensorName) const noexcept
{
    constexpr char const* kMethod = "getOutputTensorAddress";
    return ask<void*>(*this, tensorName, kMethod, nullptr, [](ContextObject& c, int io) -> Result<void*> {
        TW_TRY(checkOutput(c, io, kMethod));
        return c.io[size_t(io)].address;
    });
}
bool IExecutionContext::setOutputAllocator(char const* tensorName, IOutputAllocator* outputAllocator) noexcept
{
    constexpr char const* kMethod = "setOutputAllocator";
    return ask(*this, tensorName, kMethod, false, [&](ContextObject& c, int io) -> Result<bool> {
        TW_TRY(checkOutput(c, io, kMethod));
        if (c.io[size_t(io)].allocator != outputAllocator)
            c.io[size_t(io)].allocated = nullptr;
        c.io[size_t(io)].allocator = outputAllocator;
        return true;
    });
}
IOutputAllocator* IExecutionContext::getOutputAllocator(char const* tensorName) const noexcept
{
    return ask<IOutputAllocator*>(*this, tensorName, "getOutputAllocator", nullptr,
                                  [](ContextObject& c, int io) { return c.io[size_t(io)].allocator; });
}
int64_t IExecutionContext::getMaxOutputSize(char const* tensorName) const noexcept
{
    constexpr char const* kMethod = "getMaxOutputSize";
    return ask<int64_t>(*this, tensorName, kMethod, -1, [](ContextObject& c, int io) -> Result<int64_t> {
        TW_TRY(checkOutput(c, io, kMethod));
        TW_ASSIGN(auto inst, c.prepare());
        ir::Value const& v = c.state->core->ioValue(io);
        runtime::ValueState const& s = inst->values[size_t(c.state->core->block().indexOf(&v))];
        return s.known ? TensorRef{v.type, s.dims, nullptr, v.format}.sizeBytes() : int64_t(-1);
    });
}

bool IExecutionContext::setTemporaryStorageAllocator(IGpuAllocator* allocator) noexcept
{
    ContextObject& c = objectOf(*this);
    if (c.temporary != allocator)
        c.extra.reset();
    c.temporary = allocator;
    return true;
}
TW_GETTER(IExecutionContext, IGpuAllocator*, getTemporaryStorageAllocator, self.temporary)
void IExecutionContext::setDeviceMemory(void* memory) noexcept
{
    guardedVoid(objectOf(*this), [&](ContextObject& c) -> Result<void> {
        cuda::Target const* const gpu = c.state->core->cuda();
        if (c.ownsMemory)
            return invalidState("setDeviceMemory: the context was created with device memory of its own; use "
                                "createExecutionContextWithoutDeviceMemory()");
        if (reinterpret_cast<uintptr_t>(memory) % kDeviceAlignment != 0)
            return invalidArgument("setDeviceMemory: the address must be a multiple of {}, as cudaMalloc gives it",
                                   kDeviceAlignment);
        if (gpu && memory) {
            cuda::Current const current(*gpu->device);
            TW_TRY(checkOnGpu(*gpu->device, memory, "setDeviceMemory: the memory"));
        }
        c.given = memory;
        return {};
    });
}

bool IExecutionContext::setInputConsumedEvent(cudaEvent_t event) noexcept
{
    objectOf(*this).inputConsumed = event;
    return true;
}
TW_GETTER(IExecutionContext, cudaEvent_t, getInputConsumedEvent, self.inputConsumed)

} // namespace nvinfer1
