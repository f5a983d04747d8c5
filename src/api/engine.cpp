// SPDX-License-Identifier: Apache-2.0
// ICudaEngine. Queries by name (8.5) and by binding index (deprecated) answer from the same list: binding index =
// profile * number of tensors + position.
#include "api/engine.h"

#include <algorithm>

#include "api/host_memory.h"
#include "api/inspector.h"
#include "api/memory_usage.h"
#include "api/network.h"
#include "runtime/refit.h"

using namespace tw;
using namespace tw::api;

namespace tw::api {

int EngineObject::ioIndex(char const* name, char const* method) const
{
    int const i = name ? core().ioIndex(name) : -1;
    if (i < 0)
        reporter.error(invalidArgument(std::string(method) + ": the engine has no tensor named '" +
                                       (name ? name : "(null)") + "'"));
    return i;
}

int EngineObject::ioOfBinding(int32_t binding, char const* method) const
{
    int const count = int(state->bindingNames.size());
    if (binding < 0 || binding >= count) {
        reporter.error(invalidArgument(std::string(method) + ": binding index " + std::to_string(binding) +
                                       " is out of range (the engine has " + std::to_string(count) + " bindings)"));
        return -1;
    }
    return binding % state->ioCount();
}

} // namespace tw::api

namespace nvinfer1 {

namespace {

EngineObject& self(ICudaEngine* e)
{
    return objectOf(*e);
}
EngineObject const& self(ICudaEngine const* e)
{
    return objectOf(*e);
}
Dims toDims(Extents const& e, bool implicitBatch)
{
    Dims d{};
    for (int i = implicitBatch ? 1 : 0; i < e.rank; ++i)
        d.d[d.nbDims++] = int32_t(e[i]);
    return d;
}

bool checkProfile(EngineObject const& e, int32_t profile, char const* method)
{
    size_t const count = e.contents().profiles.size();
    if (profile >= 0 && size_t(profile) < count)
        return true;
    e.reporter.error(invalidArgument(std::string(method) + ": optimization profile " + std::to_string(profile) +
                                     " does not exist; the engine has " + std::to_string(count)));
    return false;
}
bool checkSelect(EngineObject const& e, OptProfileSelector select, char const* method)
{
    int const number = static_cast<int>(select);
    if (number >= 0 && number < EnumMax<OptProfileSelector>())
        return true;
    e.reporter.error(invalidArgument(std::string(method) + ": selector " + std::to_string(number) + " does not exist"));
    return false;
}
// Position in io of a binding of this profile, or of profile 0, whose bindings stand for those of every profile.
int ioOfProfile(EngineObject const& e, int32_t binding, int32_t profile, char const* method)
{
    int const i = e.ioOfBinding(binding, method);
    if (i < 0 || !checkProfile(e, profile, method))
        return -1;
    int const of = binding / e.state->ioCount();
    if (of == 0 || of == profile)
        return i;
    e.reporter.error(invalidArgument(std::string(method) + ": binding index " + std::to_string(binding) +
                                     " belongs to optimization profile " + std::to_string(of) + ", not to " +
                                     std::to_string(profile)));
    return -1;
}

Dims profileShape(EngineObject const& e, int io, int32_t profile, OptProfileSelector select, char const* method)
{
    auto const& profiles = e.contents().profiles;
    if (!checkProfile(e, profile, method) || !checkSelect(e, select, method))
        return noDims();
    plan::IoTensor const& t = e.contents().io[size_t(io)];
    if (!t.isInput) {
        e.reporter.error(invalidArgument(std::string(method) + ": '" + t.name + "' is no input"));
        return noDims();
    }
    auto it = profiles[size_t(profile)].inputs.find(t.name);
    if (it == profiles[size_t(profile)].inputs.end() || !it->second.hasShape)
        return e.state->dimsOf(io, profile); // static: all three are the same
    plan::ProfileRange const& r = it->second;
    return toDims(select == OptProfileSelector::kMIN   ? r.min
                  : select == OptProfileSelector::kOPT ? r.opt
                                                       : r.max,
                  e.contents().implicitBatch);
}

// Of kLINEAR and the other formats without vectors: none.
int vectorDim(EngineObject const& e, int io)
{
    ir::Value const& v = e.core().ioValue(io);
    return vectorOf(v.format) > 1 ? channelAxis(v.format, v.rank()) - (e.contents().implicitBatch ? 1 : 0) : -1;
}
int componentsPerElement(EngineObject const& e, int io)
{
    Format const f = e.core().ioValue(io).format;
    return vectorOf(f) > 1 ? vectorOf(f) : -1;
}
TensorFormat formatOf(EngineObject const& e, int io)
{
    return static_cast<TensorFormat>(e.core().ioValue(io).format);
}

} // namespace

// ---- tensors by name

int32_t ICudaEngine::getNbIOTensors() const noexcept
{
    return self(this).state->ioCount();
}
char const* ICudaEngine::getIOTensorName(int32_t index) const noexcept
{
    EngineObject const& e = self(this);
    if (index < 0 || index >= e.state->ioCount()) {
        e.reporter.error(invalidArgument("getIOTensorName: index " + std::to_string(index) + " is out of range (" +
                                         std::to_string(e.state->ioCount()) + " tensors)"));
        return nullptr;
    }
    return e.contents().io[size_t(index)].name.c_str();
}
Dims ICudaEngine::getTensorShape(char const* tensorName) const noexcept
{
    int const i = self(this).ioIndex(tensorName, "getTensorShape");
    return i < 0 ? noDims() : self(this).state->dimsOf(i, -1);
}
DataType ICudaEngine::getTensorDataType(char const* tensorName) const noexcept
{
    int const i = self(this).ioIndex(tensorName, "getTensorDataType");
    return i < 0 ? DataType::kFLOAT : static_cast<DataType>(self(this).core().ioValue(i).type);
}
TensorLocation ICudaEngine::getTensorLocation(char const* tensorName) const noexcept
{
    int const i = self(this).ioIndex(tensorName, "getTensorLocation");
    return i >= 0 && self(this).contents().io[size_t(i)].isShapeTensor ? TensorLocation::kHOST
                                                                       : TensorLocation::kDEVICE;
}
bool ICudaEngine::isShapeInferenceIO(char const* tensorName) const noexcept
{
    int const i = self(this).ioIndex(tensorName, "isShapeInferenceIO");
    return i >= 0 && self(this).contents().io[size_t(i)].isShapeTensor;
}
TensorIOMode ICudaEngine::getTensorIOMode(char const* tensorName) const noexcept
{
    int const i = self(this).ioIndex(tensorName, "getTensorIOMode");
    if (i < 0)
        return TensorIOMode::kNONE;
    return self(this).contents().io[size_t(i)].isInput ? TensorIOMode::kINPUT : TensorIOMode::kOUTPUT;
}
int32_t ICudaEngine::getTensorBytesPerComponent(char const* tensorName) const noexcept
{
    int const i = self(this).ioIndex(tensorName, "getTensorBytesPerComponent");
    return i < 0 ? -1 : int32_t(sizeOf(self(this).core().ioValue(i).type));
}
int32_t ICudaEngine::getTensorComponentsPerElement(char const* tensorName) const noexcept
{
    int const i = self(this).ioIndex(tensorName, "getTensorComponentsPerElement");
    return i < 0 ? -1 : componentsPerElement(self(this), i);
}
TensorFormat ICudaEngine::getTensorFormat(char const* tensorName) const noexcept
{
    int const i = self(this).ioIndex(tensorName, "getTensorFormat");
    return i < 0 ? TensorFormat::kLINEAR : formatOf(self(this), i);
}
char const* ICudaEngine::getTensorFormatDesc(char const* tensorName) const noexcept
{
    int const i = self(this).ioIndex(tensorName, "getTensorFormatDesc");
    return i < 0 ? "" : self(this).state->formatTexts[size_t(i)].c_str();
}
int32_t ICudaEngine::getTensorVectorizedDim(char const* tensorName) const noexcept
{
    int const i = self(this).ioIndex(tensorName, "getTensorVectorizedDim");
    return i < 0 ? -1 : vectorDim(self(this), i);
}
Dims ICudaEngine::getProfileShape(char const* tensorName, int32_t profileIndex,
                                  OptProfileSelector select) const noexcept
{
    int const i = self(this).ioIndex(tensorName, "getProfileShape");
    return i < 0 ? noDims() : profileShape(self(this), i, profileIndex, select, "getProfileShape");
}

// ---- bindings by index

int32_t ICudaEngine::getNbBindings() const noexcept
{
    return int32_t(self(this).state->bindingNames.size());
}
int32_t ICudaEngine::getBindingIndex(char const* name) const noexcept
{
    auto const& names = self(this).state->bindingNames;
    auto it = name ? std::find(names.begin(), names.end(), name) : names.end();
    return it == names.end() ? -1 : int32_t(it - names.begin());
}
char const* ICudaEngine::getBindingName(int32_t bindingIndex) const noexcept
{
    EngineObject const& e = self(this);
    return e.ioOfBinding(bindingIndex, "getBindingName") < 0 ? nullptr
                                                             : e.state->bindingNames[size_t(bindingIndex)].c_str();
}
bool ICudaEngine::bindingIsInput(int32_t bindingIndex) const noexcept
{
    int const i = self(this).ioOfBinding(bindingIndex, "bindingIsInput");
    return i >= 0 && self(this).contents().io[size_t(i)].isInput;
}
Dims ICudaEngine::getBindingDimensions(int32_t bindingIndex) const noexcept
{
    int const i = self(this).ioOfBinding(bindingIndex, "getBindingDimensions");
    return i < 0 ? noDims() : self(this).state->dimsOf(i, bindingIndex / self(this).state->ioCount());
}
DataType ICudaEngine::getBindingDataType(int32_t bindingIndex) const noexcept
{
    int const i = self(this).ioOfBinding(bindingIndex, "getBindingDataType");
    return i < 0 ? DataType::kFLOAT : static_cast<DataType>(self(this).core().ioValue(i).type);
}
TensorLocation ICudaEngine::getLocation(int32_t bindingIndex) const noexcept
{
    int const i = self(this).ioOfBinding(bindingIndex, "getLocation");
    return i >= 0 && self(this).contents().io[size_t(i)].isShapeTensor ? TensorLocation::kHOST
                                                                       : TensorLocation::kDEVICE;
}
int32_t ICudaEngine::getBindingBytesPerComponent(int32_t bindingIndex) const noexcept
{
    int const i = self(this).ioOfBinding(bindingIndex, "getBindingBytesPerComponent");
    return i < 0 ? -1 : int32_t(sizeOf(self(this).core().ioValue(i).type));
}
int32_t ICudaEngine::getBindingComponentsPerElement(int32_t bindingIndex) const noexcept
{
    int const i = self(this).ioOfBinding(bindingIndex, "getBindingComponentsPerElement");
    return i < 0 ? -1 : componentsPerElement(self(this), i);
}
TensorFormat ICudaEngine::getBindingFormat(int32_t bindingIndex) const noexcept
{
    int const i = self(this).ioOfBinding(bindingIndex, "getBindingFormat");
    return i < 0 ? TensorFormat::kLINEAR : formatOf(self(this), i);
}
char const* ICudaEngine::getBindingFormatDesc(int32_t bindingIndex) const noexcept
{
    int const i = self(this).ioOfBinding(bindingIndex, "getBindingFormatDesc");
    return i < 0 ? "" : self(this).state->formatTexts[size_t(i)].c_str();
}
int32_t ICudaEngine::getBindingVectorizedDim(int32_t bindingIndex) const noexcept
{
    int const i = self(this).ioOfBinding(bindingIndex, "getBindingVectorizedDim");
    return i < 0 ? -1 : vectorDim(self(this), i);
}
Dims ICudaEngine::getProfileDimensions(int32_t bindingIndex, int32_t profileIndex,
                                       OptProfileSelector select) const noexcept
{
    int const i = ioOfProfile(self(this), bindingIndex, profileIndex, "getProfileDimensions");
    return i < 0 ? noDims() : profileShape(self(this), i, profileIndex, select, "getProfileDimensions");
}
int32_t const* ICudaEngine::getProfileShapeValues(int32_t profileIndex, int32_t inputIndex,
                                                  OptProfileSelector select) const noexcept
{
    EngineObject const& e = self(this);
    int const i = ioOfProfile(e, inputIndex, profileIndex, "getProfileShapeValues");
    if (i < 0 || !checkSelect(e, select, "getProfileShapeValues"))
        return nullptr;
    std::string const& name = e.contents().io[size_t(i)].name;
    auto const& profile = e.contents().profiles[size_t(profileIndex)];
    auto it = profile.inputs.find(name);
    if (it == profile.inputs.end() || it->second.optValues.empty()) {
        e.reporter.error(invalidArgument("getProfileShapeValues: '" + name + "' is no input shape tensor"));
        return nullptr;
    }
    plan::ProfileRange const& r = it->second;
    return (select == OptProfileSelector::kMIN   ? r.minValues
            : select == OptProfileSelector::kOPT ? r.optValues
                                                 : r.maxValues)
        .data();
}
bool ICudaEngine::isShapeBinding(int32_t bindingIndex) const noexcept
{
    int const i = self(this).ioOfBinding(bindingIndex, "isShapeBinding");
    return i >= 0 && self(this).contents().io[size_t(i)].isShapeTensor;
}
bool ICudaEngine::isExecutionBinding(int32_t bindingIndex) const noexcept
{
    int const i = self(this).ioOfBinding(bindingIndex, "isExecutionBinding");
    return i >= 0 && self(this).contents().io[size_t(i)].isExecution;
}

// ---- the engine

int32_t ICudaEngine::getMaxBatchSize() const noexcept
{
    return self(this).contents().implicitBatch ? self(this).contents().maxBatchSize : 1;
}
int32_t ICudaEngine::getNbLayers() const noexcept
{
    return self(this).state->layerCount();
}
IHostMemory* ICudaEngine::serialize() const noexcept
{
    EngineObject const& e = self(this);
    return guarded<IHostMemory*>(e.reporter, nullptr, [&]() -> Result<IHostMemory*> {
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
    EngineObject& e = self(this);
    return guarded<IExecutionContext*>(e.reporter, nullptr, [&]() -> Result<IExecutionContext*> {
        MemoryChange const change(e.core().cuda());
        auto c = std::make_unique<ContextObject>(e.reporter, e, e.state);
        TW_TRY(c->context.makeStates());
        TW_TRY(c->own.allocate(e.core().arenaBytes(), e.state->allocator, e.core().cuda()));
        change.finish(e.reporter, "TensorRT-managed allocation in IExecutionContext creation", e.core().cuda());
        return static_cast<IExecutionContext*>(c.release());
    });
}
IExecutionContext* ICudaEngine::createExecutionContextWithoutDeviceMemory() noexcept
{
    EngineObject& e = self(this);
    return guarded<IExecutionContext*>(e.reporter, nullptr, [&]() -> Result<IExecutionContext*> {
        auto c = std::make_unique<ContextObject>(e.reporter, e, e.state);
        TW_TRY(c->context.makeStates());
        c->ownsMemory = false;
        return static_cast<IExecutionContext*>(c.release());
    });
}
size_t ICudaEngine::getDeviceMemorySize() const noexcept
{
    return size_t(self(this).core().arenaBytes());
}
bool ICudaEngine::isRefittable() const noexcept
{
    return self(this).contents().refittable;
}
char const* ICudaEngine::getName() const noexcept
{
    return self(this).contents().engineName.c_str();
}
int32_t ICudaEngine::getNbOptimizationProfiles() const noexcept
{
    return int32_t(std::max<size_t>(self(this).contents().profiles.size(), 1));
}
EngineCapability ICudaEngine::getEngineCapability() const noexcept
{
    return static_cast<EngineCapability>(self(this).contents().engineCapability);
}
void ICudaEngine::setErrorRecorder(IErrorRecorder* recorder) noexcept
{
    self(this).reporter.setRecorder(recorder);
}
IErrorRecorder* ICudaEngine::getErrorRecorder() const noexcept
{
    return self(this).reporter.recorder();
}
bool ICudaEngine::hasImplicitBatchDimension() const noexcept
{
    return self(this).contents().implicitBatch;
}
TacticSources ICudaEngine::getTacticSources() const noexcept
{
    return self(this).contents().tacticSources;
}
ProfilingVerbosity ICudaEngine::getProfilingVerbosity() const noexcept
{
    return static_cast<ProfilingVerbosity>(self(this).contents().profilingVerbosity);
}
IEngineInspector* ICudaEngine::createEngineInspector() const noexcept
{
    EngineObject const& e = self(this);
    return guarded<IEngineInspector*>(e.reporter, nullptr, [&]() -> Result<IEngineInspector*> {
        return static_cast<IEngineInspector*>(new InspectorObject(e.reporter, e));
    });
}

} // namespace nvinfer1
