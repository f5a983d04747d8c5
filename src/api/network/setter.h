// SPDX-License-Identifier: Apache-2.0
// What most setters of layers are: check a value, keep it, lower the layer again. A check says in words what is wrong
// with a value, or nothing.
#pragma once

#include <cmath>
#include <concepts>
#include <initializer_list>
#include <string>

#include "api/network/network.h"

namespace tw::api {

// What a check said, as an error of the layer.
inline Result<void> refusal(LayerState const& layer, std::string const& why)
{
    return why.empty() ? Result<void>() : layer.error(why);
}

// Whether body(layer) refuses nothing: it has changed the layer then.
template <class Layer, class Body>
bool change(Layer& layer, Body&& body) noexcept
{
    return guarded<bool>(layer, false, [&](Layer&) -> Result<bool> {
        TW_TRY(body(layer));
        layer.changed();
        return true;
    });
}

// Keeps `value` where `check()` refuses nothing.
template <std::derived_from<LayerState> Layer, class T, class Value, class Check>
void setField(Layer& layer, T& field, Value const& value, Check&& check) noexcept
{
    change(layer, [&](Layer&) -> Result<void> {
        TW_TRY(check());
        field = value;
        return {};
    });
}
template <std::derived_from<LayerState> Layer, class T>
void setField(Layer& layer, T& field, T const& value) noexcept
{
    setField(layer, field, value, [] { return Result<void>(); });
}

// For creators: the first of the checks that refuses something, as an error.
inline Result<void> checkAll(std::string const& where, std::initializer_list<std::string> checks)
{
    for (std::string const& why : checks)
        if (!why.empty())
            return invalidArgument("{}: {}", where, why);
    return {};
}

// ---- checks

template <class E>
std::string checkEnum(E value, char const* what)
{
    int const number = static_cast<int>(value);
    if (number >= 0 && number < nvinfer1::EnumMax<E>())
        return {};
    return fmt::format("{} {} does not exist (allowed: 0..{})", what, number, nvinfer1::EnumMax<E>() - 1);
}
inline std::string checkFinite(double value, char const* what)
{
    return std::isfinite(value) ? "" : fmt::format("{} {} must be finite", what, value);
}
// `beside` continues the list of what is allowed.
inline std::string checkRange(int32_t value, int32_t least, int32_t most, char const* what, char const* beside = "")
{
    if (value >= least && value <= most)
        return {};
    return fmt::format("{} {} is out of range (allowed: {}..{}{})", what, value, least, most, beside);
}
inline std::string checkPositive(int32_t value, char const* what)
{
    return value >= 1 ? "" : fmt::format("{} {} must be at least 1", what, value);
}
// Whether a mask names exactly one dimension.
inline std::string checkOneAxis(uint32_t axes)
{
    if (axes != 0 && (axes & (axes - 1)) == 0)
        return {};
    return fmt::format("the axes mask {} must have exactly one bit set", axes);
}
inline int axisOfMask(uint32_t axes)
{
    int axis = 0;
    while (axis < 31 && (axes >> axis & 1) == 0)
        ++axis;
    return axis;
}

} // namespace tw::api
