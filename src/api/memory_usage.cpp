// SPDX-License-Identifier: Apache-2.0
#include "api/memory_usage.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "device/cuda/device.h"

namespace tw::api {

namespace {

// A line of /proc/self/status in bytes; 0 when it is not there.
int64_t statusBytes(char const* key)
{
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> const file(std::fopen("/proc/self/status", "re"), std::fclose);
    char line[256];
    long long kib = 0;
    while (file && std::fgets(line, sizeof line, file.get()))
        if (std::strncmp(line, key, std::strlen(key)) == 0 && std::sscanf(line + std::strlen(key), "%lld", &kib) == 1)
            return kib << 10;
    return 0;
}

int64_t mebibytes(int64_t bytes)
{
    return bytes / (1 << 20); // towards zero
}

std::string withSign(int64_t number)
{
    return fmt::format("{}{}", number < 0 ? "" : "+", number);
}

} // namespace

MemoryUsage MemoryUsage::now(cuda::Target const* gpu)
{
    MemoryUsage usage;
    usage.cpuBytes = statusBytes("VmRSS:");
    size_t available = 0, total = 0;
    if (gpu && gpu->device) {
        cuda::Current const current(*gpu->device);
        if (gpu->device->driver().cuMemGetInfo(&available, &total) == cuda::kSuccess)
            usage.gpuBytes = int64_t(total - available);
    }
    return usage;
}

void MemoryChange::finish(Reporter& log, char const* what, cuda::Target const* gpu) const
{
    MemoryUsage const after = MemoryUsage::now(gpu);
    int64_t const cpu = mebibytes(after.cpuBytes), onGpu = mebibytes(after.gpuBytes);
    log.info("[MemUsageChange] {}: CPU {}, GPU {}, now: CPU {}, GPU {} (MiB)", what,
             withSign(cpu - mebibytes(before_.cpuBytes)), withSign(knowsGpu_ ? onGpu - mebibytes(before_.gpuBytes) : 0),
             cpu, onGpu);
}

MemoryPeak::MemoryPeak(cuda::Target const* gpu)
    : isGpu_(gpu != nullptr), resident_(statusBytes("VmRSS:")), highest_(statusBytes("VmHWM:"))
{
    if (isGpu_)
        cuda::forgetMostBytesInBuffers();
}

void MemoryPeak::finish(Reporter& log) const
{
    // The process' highest mark tells of this build only where it has risen; else the build stayed below it.
    int64_t const mark = statusBytes("VmHWM:");
    int64_t const top = mark > highest_ ? mark : std::max(statusBytes("VmRSS:"), resident_);
    log.info("[MemUsageStats] Peak memory usage of TRT CPU/GPU memory allocators: CPU {} MiB, GPU {} MiB",
             mebibytes(top - resident_), mebibytes(isGpu_ ? cuda::mostBytesInBuffers() : 0));
}

} // namespace tw::api
