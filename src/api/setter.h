// SPDX-License-Identifier: Apache-2.0
// What most setters of layers are: check a value, keep it, lower the layer again.
#pragma once

#include <string>

#include "api/network.h"

namespace tw::api {

// `check(value)` says in words what is wrong with the value, or nothing; then the field stays as it was.
template <class Layer, class T, class Check>
void setField(Layer& layer, T& field, T const& value, Check&& check) noexcept
{
    guardedVoid(layer.reporter(), [&]() -> Result<void> {
        if (std::string why = check(value); !why.empty())
            return layer.error(why);
        field = value;
        layer.changed();
        return {};
    });
}
template <class Layer, class T>
void setField(Layer& layer, T& field, T const& value) noexcept
{
    setField(layer, field, value, [](T const&) { return std::string(); });
}

// Empty when the enumerator exists.
template <class E>
std::string checkEnum(E value, char const* what)
{
    int const number = static_cast<int>(value);
    if (number >= 0 && number < nvinfer1::EnumMax<E>())
        return {};
    return std::string(what) + " " + std::to_string(number) + " does not exist (allowed: 0.." +
           std::to_string(nvinfer1::EnumMax<E>() - 1) + ")";
}

// Empty when a mask names exactly one dimension.
inline std::string checkOneAxis(uint32_t axes)
{
    if (axes != 0 && (axes & (axes - 1)) == 0)
        return {};
    return "the axes mask " + std::to_string(axes) + " must have exactly one bit set";
}
inline int axisOfMask(uint32_t axes)
{
    int axis = 0;
    while (axis < 31 && (axes >> axis & 1) == 0)
        ++axis;
    return axis;
}

} // namespace tw::api
