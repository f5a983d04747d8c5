// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/device.h"

#include <algorithm>
#include <atomic>

#include "device/cuda/conditional_nodes.h"

namespace tw::cuda {

namespace {

constexpr int kOldestCapability = 80;
constexpr uint64_t kBufferAlignment = 256; // what cudaMalloc promises

} // namespace

std::string DeviceInfo::architecture() const
{
    return major == 9 && minor == 0 ? "sm_90a" : major > 9 ? fmt::format("sm_{}", capability()) : "sm_80";
}

std::string DeviceInfo::fingerprint() const
{
    return fmt::format("{} sm_{} {}", name, capability(), multiprocessors);
}

Device::~Device()
{
    if (nodes_) {
        Current const current(*this);
        nodes_.reset();
    }
    if (context_ && isPrimary_)
        driver_->cuDevicePrimaryCtxRelease(device_);
}

Result<std::shared_ptr<Device const>> Device::open(std::shared_ptr<Driver const> driver, int ordinal,
                                                   std::shared_ptr<Allocator> allocator, CUctx_st* own)
{
    Driver const& d = *driver;
    if (ordinal < 0 || ordinal >= d.deviceCount())
        return failedInitialization("there is no GPU {}; this machine has GPUs 0..{}", ordinal, d.deviceCount() - 1);
    std::shared_ptr<Device> device(new Device);
    device->driver_ = driver;
    device->allocator_ = std::move(allocator);
    DeviceInfo& info = device->info_;
    info.ordinal = ordinal;
    TW_CUDA(d, cuDeviceGet(&device->device_, ordinal));
    char name[256] = {};
    TW_CUDA(d, cuDeviceGetName(name, int(sizeof(name)) - 1, device->device_));
    info.name = name;
    auto read = [&](int attribute) {
        int value = 0;
        return d.cuDeviceGetAttribute(&value, attribute, device->device_) == kSuccess ? value : 0;
    };
    info.major = read(kAttributeMajor);
    info.minor = read(kAttributeMinor);
    info.multiprocessors = std::max(read(kAttributeMultiprocessors), 1);
    info.l2Bytes = read(kAttributeL2Bytes);
    info.sharedBytes = read(kAttributeSharedBytesOptIn);
    size_t bytes = 0;
    TW_CUDA(d, cuDeviceTotalMem(&bytes, device->device_));
    info.memoryBytes = int64_t(bytes);
    if (info.capability() < kOldestCapability)
        return failedInitialization("GPU {} ({}) has compute capability {}.{}, 8.0 is the lowest that is supported; "
                                    "set TENSORWRIGHT_DEVICE=cpu to run on the CPU",
                                    ordinal, info.name, info.major, info.minor);
    device->isPrimary_ = !own;
    device->context_ = own;
    if (!own)
        TW_CUDA(d, cuDevicePrimaryCtxRetain(&device->context_, device->device_));
    return std::shared_ptr<Device const>(std::move(device));
}

ConditionalNodes const* Device::conditionalNodes() const
{
    std::call_once(nodesOnce_, [this] {
        Current const current(*this);
        nodes_ = ConditionalNodes::create(*driver_, context_);
    });
    return nodes_.get();
}

Current::Current(Device const& device)
    : driver_(device.driver()), pushed_(driver_.cuCtxPushCurrent(device.context()) == kSuccess)
{}

Current::~Current()
{
    CUctx_st* previous = nullptr;
    if (pushed_)
        driver_.cuCtxPopCurrent(&previous);
}

namespace {

std::atomic<int64_t> heldBytes{0}, highestBytes{0};

void count(int64_t bytes)
{
    int64_t const held = heldBytes += bytes;
    int64_t highest = highestBytes;
    while (highest < held && !highestBytes.compare_exchange_weak(highest, held)) {
    }
}

} // namespace

int64_t mostBytesInBuffers()
{
    return highestBytes;
}

void forgetMostBytesInBuffers()
{
    highestBytes = heldBytes.load();
}

Result<Buffer> Buffer::allocate(std::shared_ptr<Device const> device, int64_t sizeBytes)
{
    Current const current(*device);
    uint64_t address = 0;
    size_t const bytes = size_t(std::max<int64_t>(sizeBytes, 1));
    if (Allocator* const allocator = device->allocator()) {
        address = addressOf(allocator->allocate(bytes, kBufferAlignment));
        if (address % kBufferAlignment != 0)
            allocator->free(reinterpret_cast<void*>(uintptr_t(address)));
        if (address == 0 || address % kBufferAlignment != 0)
            return failedAllocation("the IGpuAllocator gave no memory for {} bytes{}", bytes,
                                    address == 0 ? "" : fmt::format(" that is aligned to {}", kBufferAlignment));
    } else if (auto done = device->driver().check(device->driver().cuMemAlloc(&address, bytes), "cuMemAlloc");
               !done.ok()) {
        return std::move(done).error().in(fmt::format("no GPU memory for {} bytes", sizeBytes));
    }
    Buffer b;
    b.memory_ = {reinterpret_cast<void*>(uintptr_t(address)), {std::move(device), sizeBytes}};
    count(sizeBytes);
    return b;
}

void Buffer::Free::operator()(void* memory) const
{
    Current const current(*device);
    if (device->allocator())
        device->allocator()->free(memory);
    else
        device->driver().cuMemFree(addressOf(memory));
    count(-sizeBytes);
}

Module::~Module()
{
    if (!module_)
        return;
    Current const current(*device_);
    device_->driver().cuModuleUnload(module_);
}

Result<std::shared_ptr<Module const>> Module::load(std::shared_ptr<Device const> device, std::string const& cubin)
{
    std::shared_ptr<Module> m(new Module);
    m->device_ = std::move(device);
    Current const current(*m->device_);
    Driver const& driver = m->device_->driver();
    auto loaded = driver.check(driver.cuModuleLoadData(&m->module_, cubin.data()), "cuModuleLoadData");
    if (!loaded.ok() && loaded.error().code != ErrorCode::kFailedAllocation) {
        Error why = std::move(loaded).error();
        why.message +=
            fmt::format("; the code is for another GPU, or a newer NVRTC made it than this driver, for CUDA {}.{}, can "
                        "load: update the driver, or name an NVRTC of its version by TENSORWRIGHT_NVRTC",
                        driver.version() / 1000, driver.version() % 1000 / 10);
        return why;
    }
    TW_TRY(std::move(loaded));
    return std::shared_ptr<Module const>(std::move(m));
}

Result<CUfunc_st*> Module::function(char const* name) const
{
    Current const current(*device_);
    CUfunc_st* f = nullptr;
    auto done =
        device_->driver().check(device_->driver().cuModuleGetFunction(&f, module_, name), "cuModuleGetFunction");
    if (!done.ok())
        return std::move(done).error().in(std::string("kernel '") + name + "'");
    return f;
}

Result<CUfunc_st*> Module::function(char const* name, int64_t sharedBytes) const
{
    TW_ASSIGN(CUfunc_st * f, function(name));
    Current const current(*device_);
    if (sharedBytes > 48 * 1024)
        TW_CUDA(device_->driver(), cuFuncSetAttribute(f, kFunctionDynamicSharedBytes, int(sharedBytes)));
    return f;
}

Stream::~Stream()
{
    if (!stream_)
        return;
    Current const current(*device_);
    device_->driver().cuStreamDestroy(stream_);
}

Result<std::unique_ptr<Stream>> Stream::create(std::shared_ptr<Device const> device)
{
    std::unique_ptr<Stream> s(new Stream);
    s->device_ = std::move(device);
    Current const current(*s->device_);
    TW_CUDA(s->device_->driver(), cuStreamCreate(&s->stream_, kStreamNonBlocking));
    return s;
}

Result<void> Stream::synchronize() const
{
    Current const current(*device_);
    return device_->driver().check(device_->driver().cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

Timer::~Timer()
{
    Current const current(*device_);
    for (CUevent_st* e : {begin_, end_})
        if (e)
            device_->driver().cuEventDestroy(e);
}

Result<std::unique_ptr<Timer>> Timer::create(std::shared_ptr<Device const> device)
{
    std::unique_ptr<Timer> t(new Timer);
    t->device_ = std::move(device);
    Current const current(*t->device_);
    TW_CUDA(t->device_->driver(), cuEventCreate(&t->begin_, 0));
    TW_CUDA(t->device_->driver(), cuEventCreate(&t->end_, 0));
    return t;
}

Result<void> Timer::begin(CUstream_st* stream)
{
    Current const current(*device_);
    return device_->driver().check(device_->driver().cuEventRecord(begin_, stream), "cuEventRecord");
}

Result<void> Timer::end(CUstream_st* stream)
{
    Current const current(*device_);
    return device_->driver().check(device_->driver().cuEventRecord(end_, stream), "cuEventRecord");
}

Result<double> Timer::milliseconds()
{
    Current const current(*device_);
    Driver const& d = device_->driver();
    TW_CUDA(d, cuEventSynchronize(end_));
    float ms = 0;
    TW_CUDA(d, cuEventElapsedTime(&ms, begin_, end_));
    return double(ms);
}

void warmUp(std::shared_ptr<Device const> const& device, std::function<Result<void>(CUstream_st*)> const& work)
{
    Driver const& d = device->driver();
    if (!d.cuStreamBeginCapture || !d.cuStreamEndCapture || !d.cuGraphDestroy)
        return;
    auto const stream = Stream::create(device);
    if (!stream.ok() || d.cuStreamBeginCapture((*stream)->handle(), kCaptureRelaxed) != kSuccess)
        return;
    (void)work((*stream)->handle()).ok();
    void* graph = nullptr;
    d.cuStreamEndCapture((*stream)->handle(), &graph);
    if (graph)
        d.cuGraphDestroy(graph);
}

} // namespace tw::cuda
