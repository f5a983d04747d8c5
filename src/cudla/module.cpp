// SPDX-License-Identifier: Apache-2.0
#include "cudla/module.h"

#include <algorithm>
#include <cstring>

#include "dla/layout.h"

namespace tw::cudla {

using nvinfer1::DataType; // of the two that are in sight here

void Logger::log(Severity severity, nvinfer1::AsciiChar const* message) noexcept
{
    nvinfer1::ILogger* const process = getLogger();
    if (process && process != this && severity <= Severity::kERROR)
        process->log(severity, message);
}

namespace {

// Bytes of a tensor of the engine, padding included; 0: not known.
int64_t sizeOf(nvinfer1::ICudaEngine const& engine, nvinfer1::IExecutionContext const& context, char const* name)
{
    nvinfer1::Dims const d = context.getTensorShape(name), strides = context.getTensorStrides(name);
    if (d.nbDims < 1 || strides.nbDims != d.nbDims)
        return 0;
    int64_t reach = 0;
    for (int i = 0; i < d.nbDims; ++i) {
        if (d.d[i] < 1 || strides.d[i] < 0)
            return 0;
        reach = std::max(reach, int64_t(strides.d[i]) * d.d[i]);
    }
    // Strides of vectors count these; the channels' own dimension is the count of channels, not of vectors.
    int const vector = engine.getTensorComponentsPerElement(name), axis = engine.getTensorVectorizedDim(name);
    if (vector > 1 && axis >= 0) {
        reach = int64_t(strides.d[axis]) * divideUp(d.d[axis], vector);
        for (int i = 0; i < axis; ++i)
            reach = std::max(reach, int64_t(strides.d[i]) * d.d[i]);
    }
    int64_t const batch = engine.hasImplicitBatchDimension() ? engine.getMaxBatchSize() : 1;
    return batch * reach * std::max(vector, 1) * engine.getTensorBytesPerComponent(name);
}

} // namespace

Result<std::unique_ptr<Module>> Module::load(nvinfer1::IRuntime& runtime, void const* bytes, size_t sizeBytes)
{
    TW_ASSIGN(dla::Loadable loadable, dla::unpack(bytes, sizeBytes));
    auto module = std::make_unique<Module>();
    module->tensors_ = std::move(loadable.tensors);
    module->engine_.reset(runtime.deserializeCudaEngine(loadable.plan.data(), loadable.plan.size()));
    if (!module->engine_)
        return failedInitialization("the engine inside the loadable is refused");
    module->context_.reset(module->engine_->createExecutionContext());
    if (!module->context_)
        return failedInitialization("the engine inside the loadable has no context");
    TW_TRY(module->checkTensors());
    return module;
}

// What clients are told must be what the engine reads and writes.
Result<void> Module::checkTensors() const
{
    if (int(tensors_.size()) != engine_->getNbIOTensors())
        return failedInitialization("the loadable lists {} tensors, its engine has {}", tensors_.size(),
                                    engine_->getNbIOTensors());
    for (size_t i = 0; i < tensors_.size(); ++i) {
        dla::LoadableTensor const& t = tensors_[i];
        for (size_t k = 0; k < i; ++k)
            if (tensors_[k].name == t.name)
                return failedInitialization("the loadable lists tensor '{}' twice", t.name);
        char const* const name = t.name.c_str();
        bool isThere = false;
        for (int k = 0; k < engine_->getNbIOTensors(); ++k)
            isThere = isThere || t.name == engine_->getIOTensorName(k);
        using nvinfer1::TensorIOMode;
        if (!isThere || (engine_->getTensorIOMode(name) == TensorIOMode::kINPUT) != t.isInput ||
            engine_->getTensorDataType(name) != static_cast<DataType>(t.type) ||
            engine_->getTensorFormat(name) != static_cast<nvinfer1::TensorFormat>(t.format) ||
            engine_->isShapeInferenceIO(name) || sizeOf(*engine_, *context_, name) != t.sizeBytes)
            return failedInitialization("tensor '{}' of the loadable is not what its engine has", t.name);
    }
    return {};
}

std::vector<dla::LoadableTensor const*> Module::side(bool isInput) const
{
    std::vector<dla::LoadableTensor const*> list;
    for (dla::LoadableTensor const& t : tensors_)
        if (t.isInput == isInput)
            list.push_back(&t);
    return list;
}

bool Module::enqueue(std::vector<void*> const& addresses, cudaStream_t stream)
{
    if (engine_->hasImplicitBatchDimension()) {
        std::vector<void*> bindings(addresses.size());
        for (size_t i = 0; i < tensors_.size(); ++i)
            bindings[size_t(engine_->getBindingIndex(tensors_[i].name.c_str()))] = addresses[i];
        return context_->enqueue(engine_->getMaxBatchSize(), bindings.data(), stream, nullptr);
    }
    for (size_t i = 0; i < tensors_.size(); ++i)
        if (!context_->setTensorAddress(tensors_[i].name.c_str(), addresses[i]))
            return false;
    return context_->enqueueV3(stream);
}

cudlaModuleTensorDescriptor describe(dla::LoadableTensor const& t)
{
    cudlaModuleTensorDescriptor d;
    std::memset(&d, 0, sizeof d);
    std::memcpy(d.name, t.name.data(), std::min<size_t>(t.name.size(), CUDLA_RUNTIME_TENSOR_DESC_NAME_MAX_LEN));
    d.size = uint64_t(t.sizeBytes);
    d.n = uint64_t(t.n);
    d.c = uint64_t(t.c);
    d.h = uint64_t(t.h);
    d.w = uint64_t(t.w);
    bool const isHalf = static_cast<DataType>(t.type) == DataType::kHALF;
    d.dataType = isHalf                                             ? CUDLA_DATA_TYPE_HALF
                 : static_cast<DataType>(t.type) == DataType::kINT8 ? CUDLA_DATA_TYPE_INT8
                                                                    : CUDLA_DATA_TYPE_UNKNOWN;
    d.pixelMapping = CUDLA_PIXEL_MAPPING_PITCH_LINEAR;
    if (t.format == int32_t(dla::Layout::kHwc4)) {
        d.dataFormat = CUDLA_DATA_FORMAT_NHWC;
        d.dataCategory = CUDLA_DATA_CATEGORY_IMAGE;
        d.pixelFormat = t.c == 1 ? (isHalf ? CUDLA_PIXEL_FORMAT_R16_F : CUDLA_PIXEL_FORMAT_R8)
                                 : (isHalf ? CUDLA_PIXEL_FORMAT_A16B16G16R16_F : CUDLA_PIXEL_FORMAT_A8B8G8R8);
    } else {
        bool const isPlanar = t.format == int32_t(dla::Layout::kLinear);
        d.dataFormat = isPlanar ? CUDLA_DATA_FORMAT_NCHW : CUDLA_DATA_FORMAT_NCxHWx;
        d.dataCategory = isPlanar ? CUDLA_DATA_CATEGORY_PLANAR : CUDLA_DATA_CATEGORY_FEATURE;
        d.pixelFormat = isPlanar ? CUDLA_PIXEL_FORMAT_UNKNOWN : CUDLA_PIXEL_FORMAT_FEATURE;
    }
    for (size_t i = 0; i < t.strideBytes.size(); ++i)
        d.stride[i] = uint32_t(t.strideBytes[i]);
    return d;
}

} // namespace tw::cudla
