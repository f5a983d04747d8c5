// SPDX-License-Identifier: Apache-2.0
// What the two caches have in common: a first line TRT-<version>-<kind>, then lines "<name>: <rest>", each name once.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tw::calibrate {

struct TextLine
{
    size_t number = 0; // from 1
    std::string_view name, rest;
};
struct TextLines
{
    int version = 0;
    std::string_view kind;
    std::vector<TextLine> lines;
    bool endsWithLine = true; // false: the last line has no end, and may have been cut
};

// Of a cache that errors call `what`. Line ends are "\n" or "\r\n"; a zero byte at the very end is left out: strings are
// often given with their terminator.
Result<TextLines> splitText(std::string_view text, char const* what);
std::string firstLine(int version, std::string const& kind);
Error badLine(char const* what, size_t number, std::string_view line, std::string const& why);

// All of the text as a number; false: it is none.
template <class T>
bool parseNumber(std::string_view text, T& number, int base = 10)
{
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    return error == std::errc() && end == text.data() + text.size();
}

} // namespace tw::calibrate
