// SPDX-License-Identifier: Apache-2.0
#include "tactic/blocks.h"

#include <algorithm>

namespace tw::ops {

float const* loadFloats(DataType type, void const* data, int64_t offset, int64_t stride, int64_t n, float* buffer)
{
    int64_t const distinct = stride == 0 ? 1 : n;
    if (type == DataType::kFloat) {
        auto const* from = static_cast<float const*>(data) + offset;
        if (stride != 0)
            return from;
        buffer[0] = *from;
    } else if (type == DataType::kHalf) {
        auto const* from = static_cast<uint16_t const*>(data) + offset;
        for (int64_t i = 0; i < distinct; ++i)
            buffer[i] = halfToFloat(from[i]);
    } else if (type == DataType::kInt32) {
        auto const* from = static_cast<int32_t const*>(data) + offset;
        for (int64_t i = 0; i < distinct; ++i)
            buffer[i] = float(from[i]);
    } else if (type == DataType::kInt8) {
        auto const* from = static_cast<int8_t const*>(data) + offset;
        for (int64_t i = 0; i < distinct; ++i)
            buffer[i] = float(from[i]);
    } else {
        auto const* from = static_cast<uint8_t const*>(data) + offset;
        for (int64_t i = 0; i < distinct; ++i)
            buffer[i] = type == DataType::kBool ? float(from[i] != 0) : float(from[i]);
    }
    if (stride == 0)
        std::fill(buffer, buffer + n, buffer[0]);
    return buffer;
}

int32_t const* loadInts(DataType type, void const* data, int64_t offset, int64_t stride, int64_t n, int32_t* buffer)
{
    int64_t const distinct = stride == 0 ? 1 : n;
    if (type == DataType::kInt32) {
        auto const* from = static_cast<int32_t const*>(data) + offset;
        if (stride != 0)
            return from;
        buffer[0] = *from;
    } else if (type == DataType::kInt8) {
        auto const* from = static_cast<int8_t const*>(data) + offset;
        for (int64_t i = 0; i < distinct; ++i)
            buffer[i] = from[i];
    } else {
        auto const* from = static_cast<uint8_t const*>(data) + offset;
        for (int64_t i = 0; i < distinct; ++i)
            buffer[i] = type == DataType::kBool ? from[i] != 0 : from[i];
    }
    if (stride == 0)
        std::fill(buffer, buffer + n, buffer[0]);
    return buffer;
}

uint8_t const* loadBytes(void const* data, int64_t offset, int64_t stride, int64_t n, uint8_t* buffer)
{
    auto const* from = static_cast<uint8_t const*>(data) + offset;
    if (stride != 0)
        return from;
    std::fill(buffer, buffer + n, *from);
    return buffer;
}

float* floatsAt(DataType type, void* data, int64_t offset, float* buffer)
{
    return type == DataType::kFloat ? static_cast<float*>(data) + offset : buffer;
}

void storeFloats(DataType type, void* data, int64_t offset, int64_t n, float const* from)
{
    if (type == DataType::kHalf) {
        auto* to = static_cast<uint16_t*>(data) + offset;
        for (int64_t i = 0; i < n; ++i)
            to[i] = floatToHalf(from[i]);
    } else if (type == DataType::kInt8) {
        auto* to = static_cast<int8_t*>(data) + offset;
        for (int64_t i = 0; i < n; ++i)
            to[i] = saturateToInt8(from[i]);
    }
}

int32_t* intsAt(DataType type, void* data, int64_t offset, int32_t* buffer)
{
    return type == DataType::kInt32 ? static_cast<int32_t*>(data) + offset : buffer;
}

void storeInts(DataType type, void* data, int64_t offset, int64_t n, int32_t const* from)
{
    if (type != DataType::kInt8)
        return;
    auto* to = static_cast<int8_t*>(data) + offset;
    for (int64_t i = 0; i < n; ++i)
        to[i] = int8_t(std::clamp(from[i], -128, 127));
}

} // namespace tw::ops
