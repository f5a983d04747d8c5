// SPDX-License-Identifier: Apache-2.0
// setMaxThreads() and getMaxThreads() of the objects that have them. A field of 0: the client has set nothing.
#pragma once

#include <algorithm>
#include <string>

#include "api/report.h"

namespace tw::api {

inline bool setMaxThreads(Reporter& reporter, int32_t& field, int32_t maxThreads)
{
    if (maxThreads < 1) {
        reporter.error(
            invalidArgument("setMaxThreads: " + std::to_string(maxThreads) + " threads; at least 1 is needed"));
        return false;
    }
    field = maxThreads;
    return true;
}
inline int32_t getMaxThreads(int32_t field)
{
    return std::max(1, field);
}

} // namespace tw::api
