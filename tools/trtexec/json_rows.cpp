// SPDX-License-Identifier: Apache-2.0
#include "json_rows.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace tw::trtexec {

Json jsonNumber(double value)
{
    if (!std::isfinite(value))
        return nullptr;
    // An INT32 value may need ten digits; -0 keeps its sign.
    if (std::abs(value) < 1e15 && value == std::floor(value) && !(value == 0 && std::signbit(value)))
        return static_cast<int64_t>(value);
    // The number that these digits name is written with no more of them.
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return std::strtod(text, nullptr);
}

std::string jsonRows(std::vector<Json> const& rows)
{
    std::string text = "[\n";
    for (size_t i = 0; i < rows.size(); ++i)
        text +=
            "  " + rows[i].dump(-1, ' ', false, Json::error_handler_t::replace) + (i + 1 < rows.size() ? ",\n" : "\n");
    return text + "]\n";
}

} // namespace tw::trtexec
