// SPDX-License-Identifier: Apache-2.0
#include "calibrate/histogram_text.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "calibrate/text_lines.h"

namespace tw::calibrate {

namespace {

constexpr char const *kHistogramCache = "histogram cache", *kKind = "CalibrationHistograms-";
constexpr int kMostDoublings = 256; // from the smallest range to the largest float
constexpr uint64_t kMostCount = uint64_t(1) << 60;

std::string hex(float x)
{
    char digits[8];
    return {digits, std::to_chars(digits, digits + sizeof digits, std::bit_cast<uint32_t>(x), 16).ptr};
}

// Takes the text up to the next space off `rest`.
std::string_view next(std::string_view& rest)
{
    size_t const end = std::min(rest.find(' '), rest.size());
    std::string_view const word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return word;
}

bool parseFloat(std::string_view word, float& x)
{
    uint32_t bits = 0;
    bool const isRead = parseNumber(word, bits, 16);
    x = std::bit_cast<float>(bits);
    return isRead && std::isfinite(x) && !std::signbit(x);
}

bool parseHistogram(std::string_view rest, Histogram& h)
{
    int finite = 0;
    if (!parseFloat(next(rest), h.first) || !parseNumber(next(rest), h.doublings) || h.doublings < 0 ||
        h.doublings > kMostDoublings || !parseFloat(next(rest), h.largest) || !parseNumber(next(rest), h.zeros) ||
        h.zeros > kMostCount || !parseNumber(next(rest), finite) || (finite != 0 && finite != 1))
        return false;
    h.isFinite = finite == 1;
    int last = -1;
    while (!rest.empty()) {
        std::string_view const word = next(rest);
        size_t const colon = std::min(word.find(':'), word.size());
        int bin = 0;
        uint64_t count = 0;
        if (colon == word.size() || !parseNumber(word.substr(0, colon), bin) || bin <= last || bin >= kBins ||
            !parseNumber(word.substr(colon + 1), count) || count == 0 || count > kMostCount)
            return false;
        h.bins[size_t(bin)] = count;
        last = bin;
    }
    // What add() makes: bins come with a range, which holds the largest value.
    return (h.first == 0) == (last < 0) && double(h.largest) <= h.range();
}

} // namespace

std::string writeHistograms(NamedHistograms const& list, int version)
{
    std::string text = firstLine(version, kKind + std::to_string(list.size()));
    for (auto const& [name, h] : list) {
        text += name + ": " + hex(h.first) + " " + std::to_string(h.doublings) + " " + hex(h.largest) + " " +
                std::to_string(h.zeros) + " " + (h.isFinite ? "1" : "0");
        for (int b = 0; b < kBins; ++b)
            if (h.bins[size_t(b)] != 0)
                text += " " + std::to_string(b) + ":" + std::to_string(h.bins[size_t(b)]);
        text += "\n";
    }
    return text;
}

Result<NamedHistograms> readHistograms(std::string_view text)
{
    TW_ASSIGN(TextLines const lines, splitText(text, kHistogramCache));
    size_t count = 0;
    if (!lines.kind.starts_with(kKind) || !parseNumber(lines.kind.substr(std::strlen(kKind)), count))
        return invalidArgument(std::string(kHistogramCache) + ": it holds '" + std::string(lines.kind) + "', not " +
                               kKind + "<number of tensors>");
    if (lines.lines.size() != count || !lines.endsWithLine)
        return invalidArgument(std::string(kHistogramCache) + ": it has been cut: there are " +
                               std::to_string(lines.lines.size()) + " of " + std::to_string(count) + " tensors" +
                               (lines.endsWithLine ? "" : ", the last line without its end") +
                               "; without the cache the network is calibrated anew");
    NamedHistograms list;
    for (TextLine const& line : lines.lines) {
        list.emplace_back(std::string(line.name), Histogram());
        if (!parseHistogram(line.rest, list.back().second))
            return badLine(kHistogramCache, line.number, std::string(line.name) + ": " + std::string(line.rest),
                           "is no histogram");
    }
    return list;
}

} // namespace tw::calibrate
