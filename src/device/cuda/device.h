// SPDX-License-Identifier: Apache-2.0
// One GPU: its facts and the context that we work in: the primary one, which every runtime client in the process
// shares, or one of the client's own making, so that its streams, events and addresses are ours too. Modules, memory
// and timing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/cuda/driver.h"

namespace tw::cuda {

class ConditionalNodes;

struct DeviceInfo
{
    int ordinal = 0;
    std::string name;
    int major = 0, minor = 0; // compute capability
    int multiprocessors = 0;
    int64_t memoryBytes = 0, l2Bytes = 0, sharedBytes = 0; // shared: the most that a block can ask for

    int capability() const { return major * 10 + minor; } // 90
    // What kernels are compiled for: "sm_90a" (the GPU's own instructions) from 9.0 on, else "sm_80".
    std::string architecture() const;
    // Of timing caches and plans: "NVIDIA H200 sm_90 132".
    std::string fingerprint() const;
};

// Gives device memory in the driver's place. Called with the device's context current.
class Allocator
{
public:
    virtual ~Allocator() = default;
    virtual void* allocate(uint64_t sizeBytes, uint64_t alignment) = 0; // null: there is none
    virtual void free(void* memory) = 0;
};

class Device
{
public:
    ~Device();
    Device(Device const&) = delete;
    Device& operator=(Device const&) = delete;
    // An error when there is no such GPU, or it is older than compute capability 8.0. `own`: a context of that GPU that
    // the client has made (cuCtxCreate), and that has to live as long as the device; null: the primary one.
    static Result<std::shared_ptr<Device const>> open(std::shared_ptr<Driver const> driver, int ordinal,
                                                      std::shared_ptr<Allocator> allocator = nullptr,
                                                      CUctx_st* own = nullptr);

    Driver const& driver() const { return *driver_; }
    std::shared_ptr<Driver const> const& sharedDriver() const { return driver_; }
    Allocator* allocator() const { return allocator_.get(); } // of all Buffers; null: the driver
    DeviceInfo const& info() const { return info_; }
    CUctx_st* context() const { return context_; }
    CUctx_st* clientContext() const { return isPrimary_ ? nullptr : context_; } // null: the primary one is used
    // Null: the driver has none. Made when they are first asked for.
    ConditionalNodes const* conditionalNodes() const;

private:
    Device() = default;
    std::shared_ptr<Driver const> driver_;
    DeviceInfo info_;
    int device_ = 0;
    CUctx_st* context_ = nullptr;
    bool isPrimary_ = true;
    std::shared_ptr<Allocator> allocator_;
    mutable std::once_flag nodesOnce_;
    mutable std::shared_ptr<ConditionalNodes const> nodes_;
};

// Makes the device's context current in this thread for as long as it lives.
class Current
{
public:
    explicit Current(Device const& device);
    ~Current();
    Current(Current const&) = delete;
    Current& operator=(Current const&) = delete;

private:
    Driver const& driver_;
    bool pushed_;
};

// Device memory of our own; 256-byte aligned. Never empty: also 0 bytes have an address.
class Buffer
{
public:
    static Result<Buffer> allocate(std::shared_ptr<Device const> device, int64_t sizeBytes);
    void* data() const { return memory_.get(); }
    int64_t sizeBytes() const { return memory_ ? memory_.get_deleter().sizeBytes : 0; }
    void reset() { memory_.reset(); }

private:
    struct Free
    {
        std::shared_ptr<Device const> device;
        int64_t sizeBytes;
        void operator()(void* memory) const;
    };
    std::unique_ptr<void, Free> memory_;
};

// Loaded device code.
class Module
{
public:
    ~Module();
    Module(Module const&) = delete;
    Module& operator=(Module const&) = delete;
    static Result<std::shared_ptr<Module const>> load(std::shared_ptr<Device const> device, std::string const& cubin);
    Result<CUfunc_st*> function(char const* name) const;
    // The same, and lets the kernel have that much dynamic shared memory.
    Result<CUfunc_st*> function(char const* name, int64_t sharedBytes) const;
    Device const& device() const { return *device_; }

private:
    Module() = default;
    std::shared_ptr<Device const> device_;
    CUmod_st* module_ = nullptr;
};

// A stream of our own, for builds and tests: non-blocking.
class Stream
{
public:
    ~Stream();
    Stream(Stream const&) = delete;
    Stream& operator=(Stream const&) = delete;
    static Result<std::unique_ptr<Stream>> create(std::shared_ptr<Device const> device);
    CUstream_st* handle() const { return stream_; }
    Result<void> synchronize() const;

private:
    Stream() = default;
    std::shared_ptr<Device const> device_;
    CUstream_st* stream_ = nullptr;
};

// Two events on a stream.
class Timer
{
public:
    ~Timer();
    Timer(Timer const&) = delete;
    Timer& operator=(Timer const&) = delete;
    static Result<std::unique_ptr<Timer>> create(std::shared_ptr<Device const> device);
    Result<void> begin(CUstream_st* stream);
    Result<void> end(CUstream_st* stream);
    // Waits for the end.
    Result<double> milliseconds();

private:
    Timer() = default;
    std::shared_ptr<Device const> device_;
    CUevent_st *begin_ = nullptr, *end_ = nullptr;
};

inline uint64_t addressOf(void const* p)
{
    return uint64_t(reinterpret_cast<uintptr_t>(p));
}

// Libraries load a kernel when it is first launched, which a client's capture in a CUDA graph may forbid.

// Has `work` put its launches into a graph that nobody runs: the kernels are loaded then, no address is read or
// written. What fails here is found out when it is run. The device's context is current.
void warmUp(std::shared_ptr<Device const> const& device, std::function<Result<void>(CUstream_st*)> const& work);

// An address for it: nothing lies there.
inline void* nowhere()
{
    return reinterpret_cast<void*>(uintptr_t(1) << 20);
}

// From the host to the GPU, there when the call returns. cuMemcpyHtoD alone may return while pageable memory is still
// on its way from the driver's own buffer, and streams of ours and of clients do not wait for the default stream.

// The device's context is current; not while it captures.
inline Result<void> upload(Driver const& driver, void const* to, void const* from, size_t sizeBytes)
{
    if (sizeBytes == 0)
        return {};
    TW_CUDA(driver, cuMemcpyHtoD(addressOf(to), from, sizeBytes));
    TW_CUDA(driver, cuStreamSynchronize(nullptr));
    return {};
}

// How much memory of GPUs this process holds in Buffers, builds and engines together: for the log.

// The most at one time since the last forgetMostBytesInBuffers().
int64_t mostBytesInBuffers();
void forgetMostBytesInBuffers();

} // namespace tw::cuda
