// SPDX-License-Identifier: Apache-2.0
// The two ways in which the tool ends early. Both carry one complete line for the user.
#pragma once

#include <stdexcept>
#include <string>

namespace tw::trtexec {

// The command line cannot be used: the tool prints the line, the help text and fails.
class UsageError : public std::runtime_error
{
    using std::runtime_error::runtime_error;
};

// A step could not be done: the tool prints the line and fails.
class Failure : public std::runtime_error
{
    using std::runtime_error::runtime_error;
};

// The library could not do a step: the tool adds the library's last error line (or warning), which is the reason.
class LibraryFailure : public Failure
{
public:
    explicit LibraryFailure(std::string const& what, bool isWarning = false) : Failure(what), isWarning_(isWarning) {}
    bool isWarning() const { return isWarning_; }

private:
    bool isWarning_;
};

} // namespace tw::trtexec
