// SPDX-License-Identifier: Apache-2.0
// The log lines about memory that scripts read: "[MemUsageChange] ..." and "[MemUsageStats] ...", in MiB. What they tell is
// measured: resident memory of this process, and memory of the GPU in use, by whomever; 0 on the CPU device.
#pragma once

#include <cstdint>

#include "api/report.h"
#include "device/cuda/target.h"

namespace tw::api {

struct MemoryUsage
{
    int64_t cpuBytes = 0, gpuBytes = 0;
    static MemoryUsage now(cuda::Target const* gpu);
};

// From its making to finish(): "[MemUsageChange] <what>: CPU +535, GPU +0, now: CPU 547, GPU 1293 (MiB)".
class MemoryChange
{
public:
    explicit MemoryChange(cuda::Target const* gpu) : before_(MemoryUsage::now(gpu)), knowsGpu_(gpu != nullptr) {}
    // `gpu` may be known only now; then its change is not, and 0 is told.
    void finish(Reporter& log, char const* what, cuda::Target const* gpu) const;

private:
    MemoryUsage before_;
    bool knowsGpu_;
};

// Over a build: "[MemUsageStats] Peak memory usage of TRT CPU/GPU memory allocators: CPU 18 MiB, GPU 281 MiB".
class MemoryPeak
{
public:
    explicit MemoryPeak(cuda::Target const* gpu);
    void finish(Reporter& log) const;

private:
    bool isGpu_ = false;
    int64_t resident_ = 0, highest_ = 0; // at the beginning
};

} // namespace tw::api
