// SPDX-License-Identifier: Apache-2.0
#include "cuda_driver.h"

#include <string>
#include <type_traits>

#include <dlfcn.h>
#include <fmt/core.h>

#include "failure.h"

namespace tw::trtexec {

namespace {

Gpu openDriver()
{
    Gpu g;
    void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!driver)
        return g;
    bool complete = true;
    auto const find = [&](auto& function, char const* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(driver, name));
        complete = complete && function;
    };
    find(g.init, "cuInit");
    find(g.getCount, "cuDeviceGetCount");
    find(g.getDevice, "cuDeviceGet");
    find(g.retain, "cuDevicePrimaryCtxRetain");
    find(g.setCurrent, "cuCtxSetCurrent");
    find(g.allocate, "cuMemAlloc_v2");
    find(g.allocateManaged, "cuMemAllocManaged");
    find(g.release, "cuMemFree_v2");
    find(g.allocateHost, "cuMemHostAlloc");
    find(g.releaseHost, "cuMemFreeHost");
    find(g.toDevice, "cuMemcpyHtoDAsync_v2");
    find(g.toHost, "cuMemcpyDtoHAsync_v2");
    find(g.clear, "cuMemsetD8_v2");
    find(g.synchronize, "cuStreamSynchronize");
    find(g.createStream, "cuStreamCreate");
    find(g.destroyStream, "cuStreamDestroy_v2");
    find(g.createEvent, "cuEventCreate");
    find(g.destroyEvent, "cuEventDestroy_v2");
    find(g.recordEvent, "cuEventRecord");
    find(g.waitForEvent, "cuEventSynchronize");
    find(g.streamWaits, "cuStreamWaitEvent");
    find(g.callOnHost, "cuLaunchHostFunc");
    find(g.elapsed, "cuEventElapsedTime");
    find(g.beginCapture, "cuStreamBeginCapture_v2");
    find(g.endCapture, "cuStreamEndCapture");
    find(g.instantiate, "cuGraphInstantiateWithFlags");
    find(g.destroyGraph, "cuGraphDestroy");
    find(g.destroyExecutable, "cuGraphExecDestroy");
    find(g.launchGraph, "cuGraphLaunch");
    find(g.memoryInfo, "cuMemGetInfo_v2");
    find(g.getName, "cuDeviceGetName");
    find(g.getAttribute, "cuDeviceGetAttribute");
    g.isComplete = complete && g.init(0) == 0;
    find(g.getPciBusId, "cuDeviceGetPCIBusId");
    find(g.startProfiler, "cuProfilerStart");
    find(g.stopProfiler, "cuProfilerStop");
    return g;
}

} // namespace

Gpu& gpu()
{
    static Gpu opened = openDriver();
    return opened;
}

void checkDriver(int status, char const* what)
{
    if (status != 0)
        throw Failure(fmt::format("{}: CUDA driver error {}", what, status));
}

void useGpuHere()
{
    checkDriver(gpu().setCurrent(gpu().context), "using the GPU");
}

} // namespace tw::trtexec
