// SPDX-License-Identifier: Apache-2.0
// What an engine's plugins are given: device, memory, handles of libraries.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "NvInfer.h"
#include "api/report.h"
#include "device/cuda/target.h"

namespace tw::api {

// The allocator of clients that brought none.
class PluginAllocator final : public nvinfer1::IGpuAllocator
{
public:
    explicit PluginAllocator(std::shared_ptr<cuda::Device const> device) : device_(std::move(device)) {}
    ~PluginAllocator() noexcept override;
    PluginAllocator(PluginAllocator const&) = delete;
    PluginAllocator& operator=(PluginAllocator const&) = delete;
    void* allocate(uint64_t size, uint64_t alignment, nvinfer1::AllocatorFlags flags) noexcept override;
    void free(void* memory) noexcept override { deallocate(memory); }
    bool deallocate(void* memory) noexcept override;

private:
    std::shared_ptr<cuda::Device const> device_; // null: host memory
    std::mutex mutex_;
    std::map<void*, cuda::Buffer> buffers_; // empty ones for host memory
};

// cuDNN and cuBLAS handles of one execution context; null where the library is not there.
class PluginHandles
{
public:
    PluginHandles() = default;
    ~PluginHandles();
    PluginHandles(PluginHandles const&) = delete;
    PluginHandles& operator=(PluginHandles const&) = delete;
    void open(bool wantsCudnn, bool wantsCublas);
    cudnnContext* cudnn() const { return static_cast<cudnnContext*>(cudnn_.handle); }
    cublasContext* cublas() const { return static_cast<cublasContext*>(cublas_.handle); }

private:
    struct Handle
    {
        void* handle = nullptr;
        int (*destroy)(void*) = nullptr;
    };
    Handle cudnn_, cublas_;
};

struct PluginServices
{
    PluginServices(Reporter const& r, std::shared_ptr<cuda::Target const> target, nvinfer1::IGpuAllocator* client,
                   uint32_t sources)
        : reporter(r), gpu(std::move(target)), tacticSources(sources), own(device()), allocator(client ? client : &own)
    {}
    std::shared_ptr<cuda::Device const> device() const { return gpu ? gpu->device : nullptr; }
    // For a new context; warns, once, of a library that the engine may use and that is not there.
    std::shared_ptr<PluginHandles> handles();

    Reporter reporter;
    std::shared_ptr<cuda::Target const> gpu; // null: the CPU
    uint32_t tacticSources;
    PluginAllocator own;
    nvinfer1::IGpuAllocator* allocator;

private:
    std::atomic<bool> hasWarned_{false};
};

} // namespace tw::api
