// SPDX-License-Identifier: Apache-2.0
#include "calibrate/table.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "calibrate/text_lines.h"

namespace tw::calibrate {

namespace {

constexpr char const* kCalibrationCache = "calibration cache";

// Of a file that was cut within the last number, the digits that are left make another one. Numbers without a line end
// must have all digits, or be 0.
Result<float> readScale(TextLine const& line, bool hasEnd)
{
    constexpr size_t kDigits = 8;
    auto const shown = [&] { return fmt::format("{}: {}", line.name, line.rest); };
    uint32_t bits = 0;
    if (line.rest.empty() || line.rest.size() > kDigits || !parseNumber(line.rest, bits, 16))
        return badLine(kCalibrationCache, line.number, shown(), "is not <tensor>: <1 to 8 hexadecimal digits>");
    if (!hasEnd && line.rest.size() < kDigits && bits != 0)
        return badLine(kCalibrationCache, line.number, shown(),
                       fmt::format("is where the text ends, with {} of {} digits and no line end: it has been cut",
                                   line.rest.size(), kDigits));
    float const scale = std::bit_cast<float>(bits);
    if (!(scale == 0 || std::isnormal(scale)) || std::signbit(scale))
        return badLine(kCalibrationCache, line.number, shown(),
                       fmt::format("gives the scale {}, which must be a positive normal number or 0", scale));
    return scale;
}

} // namespace

char const* nameOf(Algorithm a)
{
    constexpr char const* kNames[kAlgorithms] = {"LegacyCalibration", "EntropyCalibration", "EntropyCalibration2",
                                                 "MinMaxCalibration"};
    return kNames[int(a)];
}

std::string writeTable(Table const& table)
{
    std::string text = firstLine(table.version, table.algorithm);
    for (auto const& [name, scale] : table.scales) {
        char digits[8];
        char* const end = std::to_chars(digits, digits + sizeof digits, std::bit_cast<uint32_t>(scale), 16).ptr;
        text += name + ": " + std::string(digits, end) + "\n";
    }
    return text;
}

Result<Table> readTable(std::string_view text)
{
    TW_ASSIGN(TextLines const lines, splitText(text, kCalibrationCache));
    Table table{lines.version, std::string(lines.kind), {}};
    for (TextLine const& line : lines.lines) {
        TW_ASSIGN(float const scale, readScale(line, lines.endsWithLine || &line != &lines.lines.back()));
        table.scales.emplace_back(std::string(line.name), scale);
    }
    return table;
}

bool isWritable(std::string const& name)
{
    return name.find_first_of(std::string_view("\n\r\0", 3)) == name.npos;
}

} // namespace tw::calibrate
