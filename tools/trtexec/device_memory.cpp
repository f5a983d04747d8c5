// SPDX-License-Identifier: Apache-2.0
#include "device_memory.h"

#include "failure.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <string>
#include <type_traits>

namespace tw::trtexec {

namespace {

struct Context; // CUDA's

// What the tool needs of the driver. Statuses are 0 for success.
struct Gpu
{
    int (*init)(unsigned) = nullptr;
    int (*getCount)(int*) = nullptr;
    int (*getDevice)(int*, int) = nullptr;
    int (*retain)(Context**, int) = nullptr;
    int (*setCurrent)(Context*) = nullptr;
    int (*allocate)(uint64_t*, size_t) = nullptr;
    int (*allocateManaged)(uint64_t*, size_t, unsigned) = nullptr;
    int (*release)(uint64_t) = nullptr;
    int (*toDevice)(uint64_t, const void*, size_t) = nullptr;
    int (*toHost)(void*, uint64_t, size_t) = nullptr;
    int (*clear)(uint64_t, unsigned char, size_t) = nullptr;
    int (*synchronize)(void*) = nullptr;
    int (*createStream)(void**, unsigned) = nullptr;
    int (*destroyStream)(void*) = nullptr;
    int (*createEvent)(void**, unsigned) = nullptr;
    int (*destroyEvent)(void*) = nullptr;
    int (*recordEvent)(void*, void*) = nullptr;
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
    int (*startProfiler)() = nullptr, (*stopProfiler)() = nullptr; // null: this driver has none
    int device = 0;
    Context* context = nullptr; // null: the CPU device. Every use makes it current in its own thread.
    bool isComplete = false;
    bool allocatesManaged = false;
};

Gpu openDriver()
{
    Gpu g;
    void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!driver)
        return g;
    bool complete = true;
    const auto find = [&](auto& function, const char* name) {
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
    find(g.toDevice, "cuMemcpyHtoD_v2");
    find(g.toHost, "cuMemcpyDtoH_v2");
    find(g.clear, "cuMemsetD8_v2");
    find(g.synchronize, "cuStreamSynchronize");
    find(g.createStream, "cuStreamCreate");
    find(g.destroyStream, "cuStreamDestroy_v2");
    find(g.createEvent, "cuEventCreate");
    find(g.destroyEvent, "cuEventDestroy_v2");
    find(g.recordEvent, "cuEventRecord");
    find(g.waitForEvent, "cuEventSynchronize");
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
    find(g.startProfiler, "cuProfilerStart");
    find(g.stopProfiler, "cuProfilerStop");
    return g;
}

Gpu& gpu()
{
    static Gpu opened = openDriver();
    return opened;
}

uint64_t address(const void* p)
{
    return reinterpret_cast<uintptr_t>(p);
}

void check(int status, const char* what)
{
    if (status != 0)
        throw Failure(std::string(what) + ": CUDA driver error " + std::to_string(status));
}

} // namespace

int32_t countGpus()
{
    int count = 0;
    return gpu().isComplete && gpu().getCount(&count) == 0 && count > 0 ? count : 0;
}

void useGpu(int32_t ordinal)
{
    check(gpu().getDevice(&gpu().device, ordinal), "finding the GPU");
    check(gpu().retain(&gpu().context, gpu().device), "starting the GPU");
    check(gpu().setCurrent(gpu().context), "starting the GPU");
}

void useManagedMemory()
{
    gpu().allocatesManaged = true;
}

GpuFacts gpuFacts()
{
    const auto attribute = [](int number) { // the driver's numbers
        int value = 0;
        return gpu().getAttribute(&value, number, gpu().device) == 0 ? value : 0;
    };
    GpuFacts f;
    char name[256] = {};
    if (gpu().getName(name, sizeof(name) - 1, gpu().device) == 0)
        f.name = name;
    f.clockKHz = attribute(13);
    f.multiprocessors = attribute(16);
    f.hasEcc = attribute(32) != 0;
    f.memoryClockKHz = attribute(36);
    f.busBits = attribute(37);
    f.major = attribute(75);
    f.minor = attribute(76);
    f.sharedKiB = attribute(81) / 1024;
    f.persistingL2Bytes = static_cast<size_t>(attribute(108));
    return f;
}

bool usesGpu()
{
    return gpu().context != nullptr;
}

DeviceQueue::DeviceQueue()
{
    constexpr unsigned kNonBlocking = 1;
    if (!usesGpu())
        return;
    check(gpu().setCurrent(gpu().context), "using the GPU");
    check(gpu().createStream(&stream_, kNonBlocking), "creating a stream");
    check(gpu().createEvent(&begin_, 0), "creating an event");
    check(gpu().createEvent(&end_, 0), "creating an event");
}

DeviceQueue::~DeviceQueue()
{
    if (!stream_)
        return;
    gpu().setCurrent(gpu().context);
    if (graph_)
        gpu().destroyExecutable(graph_);
    if (begin_)
        gpu().destroyEvent(begin_);
    if (end_)
        gpu().destroyEvent(end_);
    gpu().destroyStream(stream_);
}

void DeviceQueue::begin()
{
    if (!stream_)
        return;
    check(gpu().setCurrent(gpu().context), "using the GPU");
    check(gpu().recordEvent(begin_, stream_), "recording an event");
}

void DeviceQueue::end()
{
    if (stream_)
        check(gpu().recordEvent(end_, stream_), "recording an event");
}

double DeviceQueue::milliseconds()
{
    if (!stream_)
        return 0;
    float ms = 0;
    check(gpu().waitForEvent(end_), "waiting for the GPU");
    check(gpu().elapsed(&ms, begin_, end_), "reading an event");
    return ms;
}

void DeviceQueue::synchronize()
{
    if (!stream_)
        return;
    check(gpu().setCurrent(gpu().context), "using the GPU");
    check(gpu().synchronize(stream_), "waiting for the GPU");
}

bool DeviceQueue::beginCapture()
{
    constexpr int kThreadLocal = 1;
    if (!stream_ || gpu().setCurrent(gpu().context) != 0)
        return false;
    captureError_ = gpu().beginCapture(stream_, kThreadLocal);
    return captureError_ == 0;
}

bool DeviceQueue::endCapture()
{
    void* captured = nullptr;
    captureError_ = gpu().endCapture(stream_, &captured);
    if (captureError_ != 0 || !captured)
        return false;
    captureError_ = gpu().instantiate(&graph_, captured, 0);
    if (captureError_ != 0)
        graph_ = nullptr;
    gpu().destroyGraph(captured);
    return graph_ != nullptr;
}

bool DeviceQueue::launch()
{
    return gpu().launchGraph(graph_, stream_) == 0;
}

DeviceBuffer::DeviceBuffer(size_t sizeBytes) : sizeBytes_(sizeBytes)
{
    if (usesGpu()) {
        uint64_t at = 0;
        check(gpu().setCurrent(gpu().context), "using the GPU");
        constexpr unsigned kByAnyStream = 1;
        const size_t bytes = sizeBytes > 0 ? sizeBytes : 1;
        check(gpu().allocatesManaged ? gpu().allocateManaged(&at, bytes, kByAnyStream) : gpu().allocate(&at, bytes),
              "allocating GPU memory");
        data_ = reinterpret_cast<void*>(static_cast<uintptr_t>(at));
        check(gpu().clear(at, 0, sizeBytes > 0 ? sizeBytes : 1), "clearing GPU memory");
        check(gpu().synchronize(nullptr), "clearing GPU memory");
        return;
    }
    constexpr size_t kLargest = ~size_t{0} / 2;
    const size_t rounded = sizeBytes <= kLargest ? (sizeBytes / kDeviceAlignment + 1) * kDeviceAlignment : 0;
    data_ = rounded ? std::aligned_alloc(kDeviceAlignment, rounded) : nullptr;
    if (!data_)
        throw Failure("cannot allocate a buffer of " + std::to_string(sizeBytes) + " bytes");
    std::memset(data_, 0, rounded);
}

DeviceBuffer::~DeviceBuffer()
{
    if (data_ && usesGpu()) {
        gpu().setCurrent(gpu().context);
        gpu().release(address(data_));
    } else {
        std::free(data_);
    }
}

ProfiledRange::ProfiledRange()
{
    if (usesGpu() && gpu().startProfiler && gpu().setCurrent(gpu().context) == 0)
        gpu().startProfiler();
}

ProfiledRange::~ProfiledRange()
{
    if (usesGpu() && gpu().stopProfiler && gpu().setCurrent(gpu().context) == 0)
        gpu().stopProfiler();
}

void copyToDevice(void* device, const void* host, size_t sizeBytes)
{
    if (sizeBytes == 0)
        return;
    if (usesGpu()) {
        check(gpu().setCurrent(gpu().context), "using the GPU");
        // It may return while the copy is on its way, and the queue's stream does not wait for the default stream.
        check(gpu().toDevice(address(device), host, sizeBytes), "copying to the GPU");
        check(gpu().synchronize(nullptr), "copying to the GPU");
    } else {
        std::memcpy(device, host, sizeBytes);
    }
}

void copyFromDevice(void* host, const void* device, size_t sizeBytes)
{
    if (sizeBytes == 0)
        return;
    if (usesGpu()) {
        check(gpu().setCurrent(gpu().context), "using the GPU");
        check(gpu().toHost(host, address(device), sizeBytes), "copying from the GPU");
    } else {
        std::memcpy(host, device, sizeBytes);
    }
}

DeviceMemoryState deviceMemoryState()
{
    DeviceMemoryState state;
    if (usesGpu()) {
        size_t available = 0, total = 0;
        if (gpu().setCurrent(gpu().context) == 0 && gpu().memoryInfo(&available, &total) == 0) {
            state.freeBytes = available;
            state.totalBytes = total;
        }
        return state;
    }
    std::ifstream file("/proc/meminfo");
    std::string key;
    uint64_t kib = 0;
    std::string unit;
    while (file >> key >> kib && std::getline(file, unit)) {
        if (key == "MemTotal:")
            state.totalBytes = kib * 1024;
        if (key == "MemAvailable:")
            state.freeBytes = kib * 1024;
    }
    return state;
}

} // namespace tw::trtexec
