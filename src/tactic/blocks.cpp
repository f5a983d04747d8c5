// SPDX-License-Identifier: Apache-2.0
#include "tactic/blocks.h"

#include <algorithm>

#include "base/element.h"
#include "device/cpu.h"
#include "kernels/cpu/casts.h"

namespace tw::ops {

namespace {

// Of narrow floats, in vectors; null: this CPU has none.
kernels::CastKernels const* casts()
{
    static kernels::CastKernels const* const table = [] {
        device::CpuInfo const cpu = device::probeCpu();
        return cpu.avx2 && cpu.fma && cpu.f16c ? &avx2::kCasts : nullptr;
    }();
    return table;
}

} // namespace

float const* loadFloats(DataType type, void const* data, int64_t offset, int64_t stride, int64_t n, float* buffer)
{
    if (isFullFloat(type) && stride != 0)
        return static_cast<float const*>(data) + offset;
    if (isNarrowFloat(type) && stride != 0 && casts()) {
        auto const convert = type == DataType::kBf16 ? casts()->bfloat16ToFloat : casts()->halfToFloat;
        convert(static_cast<uint16_t const*>(data) + offset, buffer, n);
        return buffer;
    }
    auto load = [&](auto element, auto const& convert) {
        auto const* from = static_cast<decltype(element) const*>(data) + offset;
        for (int64_t i = 0, distinct = stride == 0 ? 1 : n; i < distinct; ++i)
            buffer[i] = convert(from[i]);
    };
    if (isReal(type))
        withReal(type, [&](auto element) { load(element, [](auto v) { return loadElement(v); }); });
    else if (type == DataType::kInt32)
        load(int32_t(), [](int32_t v) { return float(v); });
    else if (type == DataType::kBool)
        load(uint8_t(), [](uint8_t v) { return float(v != 0); });
    else
        load(uint8_t(), [](uint8_t v) { return float(v); });
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
    } else if (isQuantized(type)) {
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
    return isFullFloat(type) ? static_cast<float*>(data) + offset : buffer;
}

void storeFloats(DataType type, void* data, int64_t offset, int64_t n, float const* from)
{
    if (!isReal(type) || isFullFloat(type))
        return;
    if (isNarrowFloat(type) && casts()) {
        auto const convert = type == DataType::kBf16 ? casts()->floatToBfloat16 : casts()->floatToHalf;
        return convert(from, static_cast<uint16_t*>(data) + offset, n);
    }
    withReal(type, [&](auto element) {
        auto* to = static_cast<decltype(element)*>(data) + offset;
        for (int64_t i = 0; i < n; ++i)
            storeElement(to[i], from[i]);
    });
}

int32_t* intsAt(DataType type, void* data, int64_t offset, int32_t* buffer)
{
    return type == DataType::kInt32 ? static_cast<int32_t*>(data) + offset : buffer;
}

void storeInts(DataType type, void* data, int64_t offset, int64_t n, int32_t const* from)
{
    if (!isQuantized(type))
        return;
    auto* to = static_cast<int8_t*>(data) + offset;
    for (int64_t i = 0; i < n; ++i)
        to[i] = int8_t(std::clamp(from[i], -128, 127));
}

} // namespace tw::ops
