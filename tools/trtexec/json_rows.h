// SPDX-License-Identifier: Apache-2.0
// JSON as 8.5 writes it: an array of flat objects, one on each line.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace tw::trtexec {

using Json = nlohmann::ordered_json;

// Whole numbers without a point, others with the nine digits that a float needs; NaN and infinity become null.
Json jsonNumber(double value);

// Bytes that are not UTF-8 become U+FFFD.
std::string jsonRows(std::vector<Json> const& rows);

} // namespace tw::trtexec
