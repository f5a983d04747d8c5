// SPDX-License-Identifier: Apache-2.0
// Named ranges for profilers (NVTX): nothing is linked, and without a profiler nothing happens. Profilers name a
// library in NVTX_INJECTION64_PATH; it is opened as NVTX 3 does, and asks for the places that its functions belong in.
#pragma once

#include <string>

namespace tw::device {

class Nvtx
{
public:
    // Ranges of a thread nest.
    virtual void push(char const* name) const = 0;
    virtual void pop() const = 0;

protected:
    ~Nvtx() = default;
};

// The process's; null: no profiler asks for ranges. `injection` counts at the first call; `why` then says what was
// wrong with it, if anything.
Nvtx const* processNvtx(std::string const& injection, std::string& why);

} // namespace tw::device
