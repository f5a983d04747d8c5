// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/core.h>

#include "bindings.h"

namespace tw::trtexec {

using nvinfer1::DataType;

int64_t Layout::count() const
{
    return batch * volumeOf(dims, "tensor");
}

int64_t Layout::elements() const
{
    if (linear)
        return count();
    int64_t largest = dims.nbDims == 0 ? 1 : 0;
    for (int32_t i = 0; i < dims.nbDims; ++i) {
        int64_t const extent = i == vectorDim ? (dims.d[i] + components - 1) / components : dims.d[i];
        largest = std::max(largest, extent * strides.d[i]);
    }
    return batch * largest * components;
}

int64_t Layout::place(int64_t index) const
{
    if (linear)
        return index;
    int64_t vectors = 0;
    int64_t inVector = 0;
    for (int32_t i = dims.nbDims - 1; i >= 0; --i) {
        int64_t const at = index % dims.d[i];
        index /= dims.d[i];
        if (i == vectorDim) {
            vectors += at / components * strides.d[i];
            inVector = at % components;
        } else {
            vectors += at * strides.d[i];
        }
    }
    return index * batchStride + vectors * components + inVector;
}

double Binding::value(int64_t index) const
{
    std::byte const* at = host.data() + layout.place(index) * static_cast<int64_t>(bytesPerElement(type));
    switch (type) {
    case DataType::kFLOAT: {
        float v;
        std::memcpy(&v, at, sizeof v);
        return v;
    }
    case DataType::kHALF: {
        uint16_t v;
        std::memcpy(&v, at, sizeof v);
        return halfToDouble(v);
    }
    case DataType::kINT32: {
        int32_t v;
        std::memcpy(&v, at, sizeof v);
        return v;
    }
    case DataType::kINT8:
        return static_cast<int8_t>(std::to_integer<uint8_t>(*at));
    case DataType::kBOOL:
        return *at != std::byte{0} ? 1 : 0;
    case DataType::kUINT8:
        return std::to_integer<uint8_t>(*at);
    }
    return 0;
}

void Binding::setValue(int64_t index, double value)
{
    std::byte* at = host.data() + layout.place(index) * static_cast<int64_t>(bytesPerElement(type));
    auto const whole = [&](double low, double high) {
        if (!(value >= low && value <= high))
            throw Failure(fmt::format("input '{}': the value {} at index {} does not fit {}", name, value, index,
                                      dataTypeText(type)));
        return static_cast<int64_t>(value);
    };
    switch (type) {
    case DataType::kFLOAT: {
        float const v = static_cast<float>(value);
        std::memcpy(at, &v, sizeof v);
        return;
    }
    case DataType::kHALF: {
        uint16_t const v = doubleToHalf(value);
        std::memcpy(at, &v, sizeof v);
        return;
    }
    case DataType::kINT32: {
        int32_t const v =
            static_cast<int32_t>(whole(std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
        std::memcpy(at, &v, sizeof v);
        return;
    }
    case DataType::kINT8:
        *at = static_cast<std::byte>(whole(-128, 127));
        return;
    case DataType::kBOOL:
        *at = value != 0 ? std::byte{1} : std::byte{0};
        return;
    case DataType::kUINT8:
        *at = static_cast<std::byte>(whole(0, 255));
        return;
    }
}

void* GrowingOutput::reallocateOutput(char const*, void* currentMemory, uint64_t size, uint64_t alignment) noexcept
{
    if (currentMemory && currentMemory == buffer_.data() && size <= buffer_.size())
        return currentMemory;
    if (alignment > kDeviceAlignment)
        return nullptr;
    try {
        if (!buffer_.data() || size > buffer_.size())
            buffer_ = DeviceBuffer(size);
        return buffer_.data();
    } catch (Failure const&) {
        return nullptr;
    }
}

} // namespace tw::trtexec
