// SPDX-License-Identifier: Apache-2.0
// ICudaEngine. Queries by name (8.5) and by binding index (deprecated) answer from the same list: binding index =
// profile * number of tensors + position.
#include "api/engine/engine.h"

#include <algorithm>

#include "api/host_memory.h"
#include "api/memory_usage.h"
#include "api/network/network.h"
#include "runtime/generation.h"

using namespace tw;
using namespace tw::api;

namespace tw::api {

Result<int> EngineState::ioOf(char const* tensor, char const* method) const
{
    int const i = tensor ? core->ioIndex(tensor) : -1;
    if (i < 0)
        return invalidArgument("{}: the engine has no tensor named '{}'", method, tensor ? tensor : "(null)");
    return i;
}

Result<int> EngineState::ioOf(int32_t binding, char const* method) const
{
    int const count = int(bindingNames.size());
    if (binding < 0 || binding >= count)
        return invalidArgument("{}: binding index {} is out of range (the engine has {} bindings)", method, binding,
                               count);
    return binding % ioCount();
}

} // namespace tw::api

namespace nvinfer1 {

namespace {

Result<void> checkProfile(EngineObject const& e, int32_t profile, char const* method)
{
    size_t const count = e.contents().profiles.size();
    if (profile >= 0 && size_t(profile) < count)
        return {};
    return invalidArgument("{}: optimization profile {} does not exist; the engine has {}", method, profile, count);
}
Result<void> checkSelect(OptProfileSelector select, char const* method)
{
    int const number = static_cast<int>(select);
    if (number >= 0 && number < EnumMax<OptProfileSelector>())
        return {};
    return invalidArgument("{}: selector {} does not exist", method, number);
}
// Whether a binding is of this profile, or of profile 0, whose bindings stand for those of every profile.
Result<void> checkBinding(EngineObject const& e, int32_t binding, int32_t profile, char const* method)
{
    TW_TRY(checkProfile(e, profile, method));
    int const of = binding / e.state->ioCount();
    if (of == 0 || of == profile)
        return {};
    return invalidArgument("{}: binding index {} belongs to optimization profile {}, not to {}", method, binding, of,
                           profile);
}

template <class T>
T const& chosen(OptProfileSelector select, T const& min, T const& opt, T const& max)
{
    return select == OptProfileSelector::kMIN ? min : select == OptProfileSelector::kOPT ? opt : max;
}

Result<Dims> profileShape(EngineObject const& e, int io, int32_t profile, OptProfileSelector select, char const* method)
{
    TW_TRY(checkProfile(e, profile, method));
    TW_TRY(checkSelect(select, method));
    plan::IoTensor const& t = e.contents().io[size_t(io)];
    if (!t.isInput)
        return invalidArgument("{}: '{}' is no input", method, t.name);
    auto const& inputs = e.contents().profiles[size_t(profile)].inputs;
    auto it = inputs.find(t.name);
    if (it == inputs.end() || !it->second.hasShape)
        return e.state->dimsOf(io, profile); // static: all three are the same
    plan::ProfileRange const& r = it->second;
    return toPublic(chosen(select, r.min, r.opt, r.max), e.contents().implicitBatch ? 1 : 0);
}

// Of kLINEAR and the other formats without vectors: -1.
int vectorOrNone(EngineObject const& e, int io)
{
    int const vector = vectorOf(e.core().ioValue(io).format);
    return vector > 1 ? vector : -1;
}
int vectorDim(EngineObject const& e, int io)
{
    ir::Value const& v = e.core().ioValue(io);
    return vectorOf(v.format) > 1 ? channelAxis(v.format, v.rank()) - (e.contents().implicitBatch ? 1 : 0) : -1;
}
} // namespace

// `none`: where there is no such tensor; else `answer`, of position `i` in io of the engine `self`. `which`: a name or the
// index of a binding.
#define TW_QUERY(Type, method, Which, none, answer)                                                                    \
    Type ICudaEngine::method(Which which) const noexcept                                                               \
    {                                                                                                                  \
        return ask<Type>(                                                                                              \
            *this, which, #method, none,                                                                               \
            [&]([[maybe_unused]] EngineObject const& self, [[maybe_unused]] int i) -> Type { return answer; });        \
    }
#define TW_TENSOR_QUERY(Type, byName, byIndex, none, answer)                                                           \
    TW_QUERY(Type, byName, char const*, none, answer)                                                                  \
    TW_QUERY(Type, byIndex, int32_t, none, answer)

// ---- tensors by name

TW_GETTER(ICudaEngine, int32_t, getNbIOTensors, self.state->ioCount())
char const* ICudaEngine::getIOTensorName(int32_t index) const noexcept
{
    return guarded<char const*>(objectOf(*this), nullptr, [&](EngineObject const& e) -> Result<char const*> {
        if (index < 0 || index >= e.state->ioCount())
            return invalidArgument("getIOTensorName: index {} is out of range ({} tensors)", index, e.state->ioCount());
        return e.contents().io[size_t(index)].name.c_str();
    });
}
TW_QUERY(Dims, getTensorShape, char const*, noDims(), self.state->dimsOf(i, -1))
TW_QUERY(TensorIOMode, getTensorIOMode, char const*, TensorIOMode::kNONE,
         self.contents().io[size_t(i)].isInput ? TensorIOMode::kINPUT : TensorIOMode::kOUTPUT)
Dims ICudaEngine::getProfileShape(char const* tensorName, int32_t profileIndex,
                                  OptProfileSelector select) const noexcept
{
    return ask(*this, tensorName, "getProfileShape", noDims(), [&](EngineObject const& e, int i) {
        return profileShape(e, i, profileIndex, select, "getProfileShape");
    });
}

// ---- bindings by index

TW_GETTER(ICudaEngine, int32_t, getNbBindings, int32_t(self.state->bindingNames.size()))
int32_t ICudaEngine::getBindingIndex(char const* name) const noexcept
{
    auto const& names = objectOf(*this).state->bindingNames;
    auto it = name ? std::ranges::find(names, name) : names.end();
    return it == names.end() ? -1 : int32_t(it - names.begin());
}
TW_QUERY(char const*, getBindingName, int32_t, nullptr, self.state->bindingNames[size_t(which)].c_str())
TW_QUERY(bool, bindingIsInput, int32_t, false, self.contents().io[size_t(i)].isInput)
TW_QUERY(Dims, getBindingDimensions, int32_t, noDims(), self.state->dimsOf(i, which / self.state->ioCount()))
Dims ICudaEngine::getProfileDimensions(int32_t bindingIndex, int32_t profileIndex,
                                       OptProfileSelector select) const noexcept
{
    constexpr char const* kMethod = "getProfileDimensions";
    return ask(*this, bindingIndex, kMethod, noDims(), [&](EngineObject const& e, int i) -> Result<Dims> {
        TW_TRY(checkBinding(e, bindingIndex, profileIndex, kMethod));
        return profileShape(e, i, profileIndex, select, kMethod);
    });
}
int32_t const* ICudaEngine::getProfileShapeValues(int32_t profileIndex, int32_t inputIndex,
                                                  OptProfileSelector select) const noexcept
{
    constexpr char const* kMethod = "getProfileShapeValues";
    using Values = int32_t const*;
    return ask<Values>(*this, inputIndex, kMethod, nullptr, [&](EngineObject const& e, int i) -> Result<Values> {
        TW_TRY(checkBinding(e, inputIndex, profileIndex, kMethod));
        TW_TRY(checkSelect(select, kMethod));
        std::string const& name = e.contents().io[size_t(i)].name;
        auto const& profile = e.contents().profiles[size_t(profileIndex)];
        auto it = profile.inputs.find(name);
        if (it == profile.inputs.end() || it->second.optValues.empty())
            return invalidArgument("{}: '{}' is no input shape tensor", kMethod, name);
        plan::ProfileRange const& r = it->second;
        return chosen(select, r.minValues, r.optValues, r.maxValues).data();
    });
}
TW_QUERY(bool, isExecutionBinding, int32_t, false, self.contents().io[size_t(i)].isExecution)

// ---- tensors by either

TW_TENSOR_QUERY(DataType, getTensorDataType, getBindingDataType, DataType::kFLOAT,
                toPublic(self.core().ioValue(i).type))
TW_TENSOR_QUERY(bool, isShapeInferenceIO, isShapeBinding, false, self.contents().io[size_t(i)].isShapeTensor)
TW_TENSOR_QUERY(TensorLocation, getTensorLocation, getLocation, TensorLocation::kDEVICE,
                self.contents().io[size_t(i)].isShapeTensor ? TensorLocation::kHOST : TensorLocation::kDEVICE)
TW_TENSOR_QUERY(int32_t, getTensorBytesPerComponent, getBindingBytesPerComponent, -1,
                int32_t(sizeOf(self.core().ioValue(i).type)))
TW_TENSOR_QUERY(int32_t, getTensorComponentsPerElement, getBindingComponentsPerElement, -1, vectorOrNone(self, i))
TW_TENSOR_QUERY(int32_t, getTensorVectorizedDim, getBindingVectorizedDim, -1, vectorDim(self, i))
TW_TENSOR_QUERY(TensorFormat, getTensorFormat, getBindingFormat, TensorFormat::kLINEAR, self.state->formatOf(i))
TW_TENSOR_QUERY(char const*, getTensorFormatDesc, getBindingFormatDesc, "", self.state->formatTexts[size_t(i)].c_str())

// ---- the engine

TW_GETTER(ICudaEngine, int32_t, getMaxBatchSize, self.contents().implicitBatch ? self.contents().maxBatchSize : 1)
TW_GETTER(ICudaEngine, int32_t, getNbLayers, self.state->layerCount())
IHostMemory* ICudaEngine::serialize() const noexcept
{
    return guarded<IHostMemory*>(objectOf(*this), nullptr, [&](EngineObject const& e) -> Result<IHostMemory*> {
        TW_ASSIGN(std::string bytes, e.plan->bytes());
        if (auto const now = e.core().generation(); now->recipes) { // as if built with the weights of now
            TW_ASSIGN(plan::Contents contents, plan::read(bytes.data(), bytes.size()));
            runtime::takeWeights(contents, *now);
            TW_ASSIGN(bytes, plan::write(contents));
        }
        return static_cast<IHostMemory*>(new HostMemoryObject(std::move(bytes)));
    });
}
IExecutionContext* ICudaEngine::createExecutionContext() noexcept
{
    return guarded<IExecutionContext*>(objectOf(*this), nullptr, [&](EngineObject& e) -> Result<IExecutionContext*> {
        MemoryChange const change(e.core().cuda());
        auto c = std::make_unique<ContextObject>(e.reporter, e, e.state);
        TW_TRY(c->context.makeStates());
        TW_TRY(c->makeErrors());
        TW_TRY(c->own.allocate(e.core().arenaBytes(), e.state->allocator, e.core().cuda()));
        change.finish(e.reporter, "TensorRT-managed allocation in IExecutionContext creation", e.core().cuda());
        return static_cast<IExecutionContext*>(c.release());
    });
}
IExecutionContext* ICudaEngine::createExecutionContextWithoutDeviceMemory() noexcept
{
    return guarded<IExecutionContext*>(objectOf(*this), nullptr, [&](EngineObject& e) -> Result<IExecutionContext*> {
        auto c = std::make_unique<ContextObject>(e.reporter, e, e.state);
        TW_TRY(c->context.makeStates());
        TW_TRY(c->makeErrors());
        c->ownsMemory = false;
        return static_cast<IExecutionContext*>(c.release());
    });
}
TW_GETTER(ICudaEngine, size_t, getDeviceMemorySize, size_t(self.core().arenaBytes()))
TW_GETTER(ICudaEngine, bool, isRefittable, self.contents().refittable)
TW_GETTER(ICudaEngine, char const*, getName, self.contents().engineName.c_str())
TW_GETTER(ICudaEngine, int32_t, getNbOptimizationProfiles,
          int32_t(std::max<size_t>(self.contents().profiles.size(), 1)))
TW_GETTER(ICudaEngine, EngineCapability, getEngineCapability,
          static_cast<EngineCapability>(self.contents().engineCapability))
TW_RECORDER_METHODS(ICudaEngine)
TW_GETTER(ICudaEngine, bool, hasImplicitBatchDimension, self.contents().implicitBatch)
TW_GETTER(ICudaEngine, TacticSources, getTacticSources, self.contents().tacticSources)
TW_GETTER(ICudaEngine, ProfilingVerbosity, getProfilingVerbosity,
          static_cast<ProfilingVerbosity>(self.contents().profilingVerbosity))
IEngineInspector* ICudaEngine::createEngineInspector() const noexcept
{
    return guarded<IEngineInspector*>(objectOf(*this), nullptr,
                                      [&](EngineObject const& e) -> Result<IEngineInspector*> {
                                          return static_cast<IEngineInspector*>(new InspectorObject(e.reporter, e));
                                      });
}

} // namespace nvinfer1
