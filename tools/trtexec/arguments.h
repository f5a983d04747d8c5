// SPDX-License-Identifier: Apache-2.0
// The command line as a list of names and values from which each option takes its own; what is left is unknown.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tw::trtexec {

struct Argument
{
    std::string name; // with its dashes
    std::string value;
    bool hasValue = false;
};

class Arguments
{
public:
    Arguments(int argc, char const* const* argv);

    // True when the flag is present; a value on it is ignored. Takes the first occurrence only.
    bool takeFlag(std::string_view name);
    // The value of the first occurrence; an absent or empty value throws UsageError.
    std::optional<std::string> takeText(std::string_view name);
    std::optional<int32_t> takeInteger(std::string_view name, int32_t low,
                                       int32_t high = std::numeric_limits<int32_t>::max());
    std::optional<double> takeNumber(std::string_view name, double low,
                                     double high = std::numeric_limits<double>::max());
    std::vector<std::string> takeEach(std::string_view name); // every occurrence, in order

    std::vector<Argument> const& rest() const { return args_; }

private:
    std::optional<Argument> takeFirst(std::string_view name);
    std::vector<Argument> args_;
};

} // namespace tw::trtexec
