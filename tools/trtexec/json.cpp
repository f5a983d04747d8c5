// SPDX-License-Identifier: Apache-2.0
#include "json.h"

#include <cmath>
#include <cstdio>

namespace tw::trtexec {

namespace {

// Length of the UTF-8 sequence at the start of `text`, or 0 when there is none.
size_t sequenceLength(std::string_view text)
{
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    const size_t length = lead < 0x80                   ? 1
                          : lead >= 0xc2 && lead < 0xe0 ? 2
                          : lead >= 0xe0 && lead < 0xf0 ? 3
                          : lead >= 0xf0 && lead < 0xf5 ? 4
                                                        : 0;
    if (length == 0 || length > text.size())
        return 0;
    for (size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xc0) != 0x80)
            return 0;
    // Overlong forms, surrogates and numbers past U+10FFFF.
    if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) >= 0xa0) || (lead == 0xf0 && byte(1) < 0x90) ||
        (lead == 0xf4 && byte(1) >= 0x90))
        return 0;
    return length;
}

} // namespace

std::string jsonString(std::string_view text)
{
    std::string out = "\"";
    while (!text.empty()) {
        const size_t length = sequenceLength(text);
        const unsigned char c = static_cast<unsigned char>(text[0]);
        if (length == 0) {
            out += "\\ufffd";
        } else if (c == '"' || c == '\\') {
            out += '\\';
            out += static_cast<char>(c);
        } else if (c < 0x20) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", c);
            out += escape;
        } else {
            out += text.substr(0, length);
        }
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return out + "\"";
}

std::string jsonNumber(double value)
{
    if (!std::isfinite(value))
        return "null";
    char text[32];
    // Integers are written whole: an INT32 value may need ten digits.
    const bool whole = std::abs(value) < 1e15 && value == std::floor(value) && !std::signbit(value == 0 ? value : 1.0);
    std::snprintf(text, sizeof text, whole ? "%.0f" : "%.9g", value);
    return text;
}

void JsonRows::beginRow()
{
    text_ += rowOpen_ ? " },\n  {" : "  {";
    rowOpen_ = true;
    rowEmpty_ = true;
}

void JsonRows::key(std::string_view key)
{
    text_ += rowEmpty_ ? " " : ", ";
    rowEmpty_ = false;
    text_ += jsonString(key) + " : ";
}

void JsonRows::number(std::string_view name, double value)
{
    key(name);
    text_ += jsonNumber(value);
}

void JsonRows::text(std::string_view name, std::string_view value)
{
    key(name);
    text_ += jsonString(value);
}

void JsonRows::raw(std::string_view name, std::string_view json)
{
    key(name);
    text_ += json;
}

std::string JsonRows::finish() &&
{
    return "[\n" + std::move(text_) + (rowOpen_ ? " }\n]\n" : "]\n");
}

} // namespace tw::trtexec
