// SPDX-License-Identifier: Apache-2.0
// TW_CHECK: for our own bugs only, never for inputs. The handler throws CheckFailed, which the API guard turns into
// kINTERNAL_ERROR; tests see it as an exception.
#pragma once

#include <stdexcept>
#include <string>

namespace tw {

struct CheckFailed : std::logic_error
{
    using std::logic_error::logic_error;
};

[[noreturn]] inline void checkFailed(char const* condition, char const* file, int line)
{
    throw CheckFailed(std::string("internal check failed: ") + condition + " at " + file + ":" + std::to_string(line));
}

} // namespace tw

#define TW_CHECK(cond) ((cond) ? void(0) : ::tw::checkFailed(#cond, __FILE__, __LINE__))
