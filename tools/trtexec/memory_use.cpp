// SPDX-License-Identifier: Apache-2.0
#include "memory_use.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include <fmt/core.h>

namespace tw::trtexec {

namespace {

// A line of /proc/self/status in bytes; 0 when it is not there.
uint64_t statusBytes(char const* key)
{
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> const file(std::fopen("/proc/self/status", "re"), std::fclose);
    char line[256];
    unsigned long long kib = 0;
    while (file && std::fgets(line, sizeof line, file.get()))
        if (std::strncmp(line, key, std::strlen(key)) == 0 && std::sscanf(line + std::strlen(key), "%llu", &kib) == 1)
            return kib << 10;
    return 0;
}

double mebibytes(uint64_t bytes)
{
    return static_cast<double>(bytes) / (1 << 20);
}

} // namespace

HostPeak::HostPeak() : first_(statusBytes("VmRSS:")), mark_(statusBytes("VmHWM:")) {}

uint64_t HostPeak::highest() const
{
    uint64_t const mark = statusBytes("VmHWM:");
    return std::max(mark > mark_ ? mark : statusBytes("VmRSS:"), first_);
}

uint64_t HostPeak::rise() const
{
    return highest() - first_;
}

std::string memoryText(HostPeak const& host, uint64_t deviceBytes)
{
    return fmt::format("host {:.1f} MiB ({:.1f} MiB more than before), device {:.1f} MiB", mebibytes(host.highest()),
                       mebibytes(host.rise()), mebibytes(deviceBytes));
}

} // namespace tw::trtexec
