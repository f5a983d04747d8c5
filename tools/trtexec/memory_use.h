// SPDX-License-Identifier: Apache-2.0
// The highest memory use of a part of the tool's work.
#pragma once

#include <cstdint>
#include <string>

namespace tw::trtexec {

// Resident memory of this process from the making of the object on, in bytes. The kernel keeps one highest mark for the
// life of a process. Where an earlier part has set it, the memory in use when it is asked for stands for it: the mark is not
// taken back (/proc/self/clear_refs), because who watches the tool from outside would no longer see the peak of its build.
class HostPeak
{
public:
    HostPeak();
    uint64_t highest() const;
    uint64_t rise() const; // above what was in use at first

private:
    uint64_t first_ = 0, mark_ = 0;
};

// "host 512.3 MiB (498.0 MiB more than before), device 281.0 MiB"
std::string memoryText(HostPeak const& host, uint64_t deviceBytes);

} // namespace tw::trtexec
