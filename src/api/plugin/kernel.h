// SPDX-License-Identifier: Apache-2.0
// Plugins as kernels: of a build, for which each kernel has a clone, and of an engine, whose plugin all contexts clone or
// share.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "NvInfer.h"
#include "api/plugin/object.h"
#include "api/report.h"
#include "device/cuda/target.h"
#include "tactic/per_context.h"

namespace tw::api {

// What an engine's plugins are given: device, memory, handles of libraries.

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
    bool checksPlugins = false; // what a plan says of them, by their IPluginChecker
    PluginAllocator own;
    nvinfer1::IGpuAllocator* allocator;

private:
    std::atomic<bool> hasWarned_{false};
};

using PluginPtr = std::shared_ptr<PluginObject>;
using PluginList = std::vector<PluginPtr>;
using ServicesPtr = std::shared_ptr<PluginServices>;

// What a plugin is told of its tensors in a problem's types and formats.
PluginTensors tensorsOf(ops::Problem const& problem);
// The same of a node of a finished graph.
PluginTensors tensorsOf(ir::Node const& node);
// Sets types and formats that the plugin takes, of the types that each tensor may have; false: there are none. The first
// of each list is preferred.
bool settleTypes(PluginObject const& plugin, PluginTensors& tensors, std::vector<std::vector<DataType>> const& types);

// In a network that is defined, before its device is known: a place for the plugin.
class NetworkPlugin final : public ops::plugin::Object
{
public:
    explicit NetworkPlugin(PluginPtr p) : plugin(std::move(p)) {}
    bool isOnHost() const override { return true; }
    std::vector<ops::Formats> formats(ops::Problem const&) const override { return {}; }
    Result<std::unique_ptr<ops::Kernel>> load(ops::Problem const& problem) const override;
    PluginPtr const plugin;
};

class BuildPlugin final : public ops::plugin::Object
{
public:
    BuildPlugin(PluginPtr p, ServicesPtr s) : plugin(std::move(p)), services_(std::move(s)) {}
    bool isOnHost() const override { return !services_->gpu; }
    std::vector<ops::Formats> formats(ops::Problem const& problem) const override;
    Result<std::unique_ptr<ops::Kernel>> load(ops::Problem const& problem) const override;
    PluginPtr const plugin; // of the network: configured by nobody

private:
    ServicesPtr services_;
};

class EnginePlugin final : public ops::plugin::Object
{
public:
    EnginePlugin(PluginPtr p, ServicesPtr s) : plugin_(std::move(p)), services_(std::move(s)) {}
    bool isOnHost() const override { return !services_->gpu; }
    std::vector<ops::Formats> formats(ops::Problem const& problem) const override; // the plan's
    Result<std::unique_ptr<ops::Kernel>> load(ops::Problem const& problem) const override;

private:
    PluginPtr plugin_; // initialized
    ServicesPtr services_;
};

} // namespace tw::api
