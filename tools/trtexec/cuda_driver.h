// SPDX-License-Identifier: Apache-2.0
// The CUDA driver as the tool uses it: opened at the first use, never linked.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tw::trtexec {

struct CudaContext; // the driver's

// What the tool needs of the driver. Statuses are 0 for success.
struct Gpu
{
    int (*init)(unsigned) = nullptr;
    int (*getCount)(int*) = nullptr;
    int (*getDevice)(int*, int) = nullptr;
    int (*retain)(CudaContext**, int) = nullptr;
    int (*setCurrent)(CudaContext*) = nullptr;
    int (*allocate)(uint64_t*, size_t) = nullptr;
    int (*allocateManaged)(uint64_t*, size_t, unsigned) = nullptr;
    int (*release)(uint64_t) = nullptr;
    int (*allocateHost)(void**, size_t, unsigned) = nullptr;
    int (*releaseHost)(void*) = nullptr;
    int (*toDevice)(uint64_t, void const*, size_t, void*) = nullptr;
    int (*toHost)(void*, uint64_t, size_t, void*) = nullptr;
    int (*clear)(uint64_t, unsigned char, size_t) = nullptr;
    int (*synchronize)(void*) = nullptr;
    int (*createStream)(void**, unsigned) = nullptr;
    int (*destroyStream)(void*) = nullptr;
    int (*createEvent)(void**, unsigned) = nullptr;
    int (*destroyEvent)(void*) = nullptr;
    int (*recordEvent)(void*, void*) = nullptr;
    int (*streamWaits)(void*, void*, unsigned) = nullptr;
    int (*callOnHost)(void*, void (*)(void*), void*) = nullptr;
    int (*waitForEvent)(void*) = nullptr;
    int (*elapsed)(float*, void*, void*) = nullptr;
    int (*beginCapture)(void*, int) = nullptr;
    int (*endCapture)(void*, void**) = nullptr;
    int (*instantiate)(void**, void*, unsigned long long) = nullptr;
    int (*destroyGraph)(void*) = nullptr;
    int (*destroyExecutable)(void*) = nullptr;
    int (*launchGraph)(void*, void*) = nullptr;
    int (*memoryInfo)(size_t*, size_t*) = nullptr;
    int (*getName)(char*, int, int) = nullptr;
    int (*getAttribute)(int*, int, int) = nullptr;
    int (*getPciBusId)(char*, int, int) = nullptr;                 // null: this driver has none
    int (*startProfiler)() = nullptr, (*stopProfiler)() = nullptr; // null: this driver has none
    int device = 0;
    CudaContext* context = nullptr; // null: the CPU device. Every use makes it current in its own thread.
    bool isComplete = false;
    bool allocatesManaged = false;
};

Gpu& gpu();
// A Failure that names what was done, for a status that is not 0.
void checkDriver(int status, char const* what);
// Makes the GPU's context that of the calling thread.
void useGpuHere();

} // namespace tw::trtexec
