// SPDX-License-Identifier: Apache-2.0
// TW_CHECK: for our own bugs only, never for inputs. The handler throws CheckFailed, which the API guard turns into
// kINTERNAL_ERROR; tests see it as an exception.
#pragma once

#include <stdexcept>
#include <string>

#include <fmt/core.h>

namespace tw {

struct CheckFailed : std::logic_error
{
    using std::logic_error::logic_error;
};

[[noreturn]] inline void checkFailed(char const* condition, char const* file, int line)
{
    throw CheckFailed(fmt::format("internal check failed: {} at {}:{}", condition, file, line));
}

} // namespace tw

#define TW_CHECK(cond) ((cond) ? void(0) : ::tw::checkFailed(#cond, __FILE__, __LINE__))
