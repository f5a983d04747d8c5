// SPDX-License-Identifier: Apache-2.0
#include "value_syntax.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include <fmt/core.h>

#include "failure.h"

namespace tw::trtexec {

namespace {

[[noreturn]] void bad(std::string_view option, std::string_view text, std::string_view wanted)
{
    throw UsageError(std::string(option) + ": '" + std::string(text) + "' is not " + std::string(wanted));
}

// Position in the list is the number in nvinfer1::TensorFormat. hwc16 has a number but cannot be asked for.
constexpr char const* kFormatNames[] = {"chw",   "chw2",   "hwc8", "chw4",       "chw16",    "chw32",
                                        "dhwc8", "cdhw32", "hwc",  "dla_linear", "dla_hwc4", "hwc16"};
constexpr uint32_t kFormatCount = std::size(kFormatNames);
constexpr uint32_t kAskableFormats = kFormatCount - 1;

constexpr char const* kTypeNames[] = {"fp32", "fp16", "int8", "int32"};

} // namespace

int32_t parseInteger(std::string_view option, std::string_view text, int32_t low, int32_t high)
{
    int32_t value = 0;
    char const* end = text.data() + text.size();
    auto const [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end)
        bad(option, text, "an integer");
    if (value < low || value > high) {
        bool const bounded = high != std::numeric_limits<int32_t>::max();
        throw UsageError(fmt::format("{}: {} is out of range (allowed: {}{})", option, text, low,
                                     bounded ? fmt::format(" to {}", high) : std::string(" or more")));
    }
    return value;
}

double parseNumber(std::string_view option, std::string_view text, double low, double high)
{
    double value = 0;
    char const* end = text.data() + text.size();
    auto const [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end || !std::isfinite(value))
        bad(option, text, "a number");
    if (value < low || value > high) {
        bool const bounded = high != std::numeric_limits<double>::max();
        throw UsageError(std::string(option) + ": " + std::string(text) + " is out of range (allowed: " +
                         numberText(low) + (bounded ? " to " + numberText(high) : std::string(" or more")) + ")");
    }
    return value;
}

std::vector<std::string> splitList(std::string_view option, std::string_view text, char separator)
{
    std::vector<std::string> pieces;
    std::string piece;
    bool quoted = false;
    for (char const c : text) {
        if (c == '\'')
            quoted = !quoted;
        if (c == separator && !quoted) {
            pieces.push_back(std::move(piece));
            piece.clear();
        } else {
            piece += c;
        }
    }
    if (quoted)
        throw UsageError(std::string(option) + ": a single quote in '" + std::string(text) + "' is not closed");
    pieces.push_back(std::move(piece));
    for (std::string const& p : pieces)
        if (p.empty())
            throw UsageError(std::string(option) + ": empty entry in '" + std::string(text) + "'");
    return pieces;
}

std::pair<std::string, std::string> splitPair(std::string_view option, std::string_view text)
{
    size_t const colon = text.rfind(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size())
        bad(option, text, "of the form <name>:<value>");
    std::string_view name = text.substr(0, colon);
    std::string_view const value = text.substr(colon + 1);
    if (name.size() >= 2 && name.front() == '\'' && name.back() == '\'')
        name = name.substr(1, name.size() - 2);
    if (name.empty() || value.find('\'') != std::string_view::npos)
        bad(option, text, "of the form <name>:<value>");
    return {std::string(name), std::string(value)};
}

Shape parseShape(std::string_view option, std::string_view text)
{
    Shape shape;
    for (std::string const& dim : splitList(option, text, 'x'))
        shape.push_back(
            parseInteger(option, dim, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
    return shape;
}

std::map<std::string, Shape> parseShapes(std::string_view option, std::string_view text)
{
    std::map<std::string, Shape> shapes;
    for (std::string const& entry : splitList(option, text, ',')) {
        auto const [name, value] = splitPair(option, entry);
        if (!shapes.emplace(name, parseShape(option, value)).second)
            throw UsageError(std::string(option) + ": tensor '" + name + "' stands there twice");
    }
    return shapes;
}

TensorType parseTensorType(std::string_view option, std::string_view text)
{
    for (size_t i = 0; i < std::size(kTypeNames); ++i)
        if (text == kTypeNames[i])
            return static_cast<TensorType>(i);
    bad(option, text, "a data type (fp32, fp16, int8, int32)");
}

std::vector<IoFormat> parseIoFormats(std::string_view option, std::string_view text)
{
    std::vector<IoFormat> result;
    for (std::string const& entry : splitList(option, text, ',')) {
        auto const [type, formats] = splitPair(option, entry);
        IoFormat io{parseTensorType(option, type), 0};
        for (std::string const& name : splitList(option, formats, '+')) {
            uint32_t i = 0;
            while (i < kAskableFormats && name != kFormatNames[i])
                ++i;
            if (i == kAskableFormats)
                bad(option, name,
                    "a tensor format (chw, chw2, chw4, hwc8, chw16, chw32, dhwc8, cdhw32, hwc, dla_linear, dla_hwc4)");
            io.formats |= 1u << i;
        }
        result.push_back(io);
    }
    return result;
}

std::string shapeText(Shape const& shape)
{
    std::string text;
    for (size_t i = 0; i < shape.size(); ++i)
        text += fmt::format("{}{}", i ? "x" : "", shape[i]);
    return text;
}

std::string typeText(TensorType type)
{
    return kTypeNames[static_cast<int32_t>(type)];
}

std::string formatsText(uint32_t formats)
{
    std::string text;
    for (uint32_t i = 0; i < kFormatCount; ++i)
        if (formats >> i & 1)
            text += std::string(text.empty() ? "" : "+") + kFormatNames[i];
    return text;
}

std::string numberText(double value)
{
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%g", value);
    return buffer;
}

} // namespace tw::trtexec
