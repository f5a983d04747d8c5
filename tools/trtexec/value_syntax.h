// SPDX-License-Identifier: Apache-2.0
// The grammars of option values. `option` is the flag's name, for the error text; each throws UsageError.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "options.h"

namespace tw::trtexec {

int32_t parseInteger(std::string_view option, std::string_view text, int32_t low, int32_t high);
// Finite decimal number; the text must be used up to its end.
double parseNumber(std::string_view option, std::string_view text, double low, double high);

// Splits at the separator, but not inside single quotes. Empty pieces are an error.
std::vector<std::string> splitList(std::string_view option, std::string_view text, char separator);
// Splits at the last colon and removes single quotes round the name: 'Input:0':1x3 -> Input:0, 1x3.
std::pair<std::string, std::string> splitPair(std::string_view option, std::string_view text);

Shape parseShape(std::string_view option, std::string_view text);
std::map<std::string, Shape> parseShapes(std::string_view option, std::string_view text);
TensorType parseTensorType(std::string_view option, std::string_view text);
std::vector<IoFormat> parseIoFormats(std::string_view option, std::string_view text);

std::string shapeText(Shape const& shape);
std::string typeText(TensorType type);
// chw, chw2+hwc8, ...: the names of the formats whose bits are set.
std::string formatsText(uint32_t formats);
std::string numberText(double value); // shortest form with up to 6 significant digits

} // namespace tw::trtexec
