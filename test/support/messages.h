// SPDX-License-Identifier: Apache-2.0
// What the log got.
#pragma once

#include <string>

#include "base/log.h"

namespace tw::test {

struct Messages final : Log
{
    void write(Severity severity, std::string const& message) override
    {
        text += message + "\n";
        if (severity == Severity::kWarning)
            warnings += message + "\n";
    }
    std::string text, warnings;
};

} // namespace tw::test
