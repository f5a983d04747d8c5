// SPDX-License-Identifier: Apache-2.0
#include "calibrate/text_lines.h"

#include <algorithm>
#include <set>

namespace tw::calibrate {

namespace {

constexpr std::string_view kBegin = "TRT-";

Result<void> readFirst(std::string_view line, char const* what, TextLines& out)
{
    constexpr size_t kMostName = 64;
    size_t const dash = line.find('-', kBegin.size());
    out.kind = dash == line.npos ? std::string_view() : line.substr(dash + 1);
    bool const isKind = !out.kind.empty() && out.kind.size() <= kMostName &&
                        std::ranges::all_of(out.kind, [](char c) { return c > 0x20 && c < 0x7f; });
    if (!line.starts_with(kBegin) || !isKind ||
        !parseNumber(line.substr(kBegin.size(), dash - kBegin.size()), out.version) || out.version < 0)
        return badLine(what, 1, line, "is not TRT-<version>-<kind>");
    return {};
}

} // namespace

Error badLine(char const* what, size_t number, std::string_view line, std::string const& why)
{
    constexpr size_t kMostShown = 80;
    std::string shown(line.substr(0, kMostShown));
    for (char& c : shown)
        c = c >= 0x20 && c < 0x7f ? c : '?';
    return invalidArgument("{}, line {}: '{}' {}; without the cache the network is calibrated anew", what, number,
                           shown, why);
}

std::string firstLine(int version, std::string const& kind)
{
    return fmt::format("{}{}-{}\n", kBegin, version, kind);
}

Result<TextLines> splitText(std::string_view text, char const* what)
{
    TextLines out;
    std::set<std::string_view> names;
    size_t number = 0;
    if (!text.empty() && text.back() == '\0')
        text.remove_suffix(1);
    out.endsWithLine = text.ends_with('\n');
    for (size_t begin = 0; begin < text.size();) {
        size_t const end = std::min(text.find('\n', begin), text.size());
        std::string_view line = text.substr(begin, end - begin);
        begin = end + 1;
        if (!line.empty() && line.back() == '\r')
            line.remove_suffix(1);
        if (++number == 1) {
            TW_TRY(readFirst(line, what, out));
            continue;
        }
        size_t const colon = line.rfind(": ");
        if (colon == line.npos)
            return badLine(what, number, line, "is not <tensor>: <numbers>");
        out.lines.push_back({number, line.substr(0, colon), line.substr(colon + 2)});
        if (!names.insert(out.lines.back().name).second)
            return badLine(what, number, line, "is about a tensor that stands above already");
    }
    if (number == 0)
        return invalidArgument("{}: it is empty", what);
    return out;
}

} // namespace tw::calibrate
