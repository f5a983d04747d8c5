// SPDX-License-Identifier: Apache-2.0
#include "library.h"

#include <algorithm>
#include <limits>

#include <dlfcn.h>
#include <fmt/core.h>

namespace tw::trtexec {

using nvinfer1::DataType;

static_assert(static_cast<int32_t>(DataType::kFLOAT) == static_cast<int32_t>(TensorType::kFloat));
static_assert(static_cast<int32_t>(DataType::kHALF) == static_cast<int32_t>(TensorType::kHalf));
static_assert(static_cast<int32_t>(DataType::kINT8) == static_cast<int32_t>(TensorType::kInt8));
static_assert(static_cast<int32_t>(DataType::kINT32) == static_cast<int32_t>(TensorType::kInt32));
static_assert(static_cast<int32_t>(nvinfer1::ILogger::Severity::kVERBOSE) == static_cast<int32_t>(Level::kVerbose));
static_assert(static_cast<int32_t>(nvinfer1::ProfilingVerbosity::kDETAILED) ==
              static_cast<int32_t>(ProfilingDetail::kDetailed));
static_assert(static_cast<int32_t>(nvinfer1::DeviceType::kDLA) == static_cast<int32_t>(LayerDevice::kDla));

void* openLibrary(std::string const& path, std::string const& option)
{
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library)
        return library;
    char const* const reason = dlerror();
    throw Failure(fmt::format("{}: cannot load '{}': {}", option, path, reason ? reason : "unknown reason"));
}

std::string dimsText(nvinfer1::Dims const& dims)
{
    std::string text;
    for (int32_t i = 0; i < dims.nbDims; ++i)
        text += fmt::format("{}{}", i ? "x" : "", dims.d[i]);
    return text;
}

nvinfer1::Dims dimsOf(Shape const& shape, std::string const& what)
{
    if (shape.size() > static_cast<size_t>(nvinfer1::Dims::MAX_DIMS))
        throw Failure(
            fmt::format("{}: a shape of rank {} (allowed: up to {})", what, shape.size(), nvinfer1::Dims::MAX_DIMS));
    nvinfer1::Dims dims{};
    dims.nbDims = static_cast<int32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), dims.d);
    return dims;
}

bool hasDynamicDim(nvinfer1::Dims const& dims)
{
    for (int32_t i = 0; i < dims.nbDims; ++i)
        if (dims.d[i] < 0)
            return true;
    return false;
}

int64_t volumeOf(nvinfer1::Dims const& dims, std::string const& what)
{
    if (dims.nbDims < 0 || hasDynamicDim(dims))
        throw Failure(what + ": its shape is not known");
    int64_t volume = 1;
    for (int32_t i = 0; i < dims.nbDims; ++i)
        if (__builtin_mul_overflow(volume, int64_t{dims.d[i]}, &volume))
            throw Failure(what + ": shape " + dimsText(dims) + " is too large");
    return volume;
}

size_t bytesPerElement(DataType type)
{
    switch (type) {
    case DataType::kFLOAT:
    case DataType::kINT32:
        return 4;
    case DataType::kHALF:
        return 2;
    case DataType::kINT8:
    case DataType::kBOOL:
    case DataType::kUINT8:
        return 1;
    }
    return 0;
}

char const* dataTypeText(DataType type)
{
    switch (type) {
    case DataType::kFLOAT:
        return "fp32";
    case DataType::kHALF:
        return "fp16";
    case DataType::kINT8:
        return "int8";
    case DataType::kINT32:
        return "int32";
    case DataType::kBOOL:
        return "bool";
    case DataType::kUINT8:
        return "uint8";
    }
    return "unknown";
}

} // namespace tw::trtexec
