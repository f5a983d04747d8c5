// SPDX-License-Identifier: Apache-2.0
// Every flag with its help line. options_parse.cpp gives each its meaning, but those that set a variable; a test keeps the two lists equal.
#pragma once

#include <span>
#include <string_view>

namespace tw::trtexec {

enum class FlagGroup
{
    kModel,
    kBuild,
    kInference,
    kReporting,
    kSystem,
    kHelp
};

struct Flag
{
    FlagGroup group;
    std::string_view name;
    std::string_view syntax;        // what follows the name, "=<...>", or nothing for a switch
    std::string_view help;          // lines separated by \n; empty: a deprecated spelling, left out of the help text
    char const* variable = nullptr; // of a switch that stands for a variable of the library's environment, and ...
    char const* value = nullptr;    // ... what it sets
};

std::span<Flag const> allFlags();

} // namespace tw::trtexec
