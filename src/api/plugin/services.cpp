// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <optional>
#include <string>

#include <dlfcn.h>

#include "api/engine/engine.h"
#include "api/plugin/kernel.h"

namespace tw::api {

PluginAllocator::~PluginAllocator()
{
    for (auto const& [memory, buffer] : buffers_)
        if (!buffer.data())
            std::free(memory);
}

void* PluginAllocator::allocate(uint64_t size, uint64_t alignment, nvinfer1::AllocatorFlags) noexcept
try {
    constexpr uint64_t kMost = uint64_t(1) << 48; // no memory is so large
    if (size == 0 || size > kMost || alignment > kDeviceAlignment)
        return nullptr;
    std::optional<cuda::Current> current;
    cuda::Buffer buffer;
    void* memory = nullptr;
    if (device_) {
        current.emplace(*device_);
        auto made = cuda::Buffer::allocate(device_, int64_t(size));
        if (!made.ok())
            return nullptr;
        buffer = std::move(*made);
        memory = buffer.data();
    } else {
        memory =
            std::aligned_alloc(kDeviceAlignment, (size + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment);
    }
    std::lock_guard const lock(mutex_);
    if (memory)
        buffers_.emplace(memory, std::move(buffer));
    return memory;
} catch (std::exception const&) {
    return nullptr;
}

bool PluginAllocator::deallocate(void* memory) noexcept
{
    std::lock_guard const lock(mutex_);
    auto const at = buffers_.find(memory);
    if (at == buffers_.end())
        return memory == nullptr;
    if (!at->second.data())
        std::free(memory);
    buffers_.erase(at);
    return true;
}

namespace {

// A library that the process has already, which is the one that its plugins are linked with; else the newest.
void* openFirst(std::initializer_list<char const*> names)
{
    for (int const flags : {RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL})
        for (char const* name : names)
            if (void* const library = dlopen(name, flags))
                return library; // stays: such libraries have threads and exit handlers of their own
    return nullptr;
}

// A handle by the library's two functions; none where it is missing or refuses.
template <class Handle>
void create(Handle& out, void* library, char const* make, char const* destroy)
{
    if (!library)
        return;
    auto const creates = reinterpret_cast<int (*)(void**)>(dlsym(library, make));
    auto const destroys = reinterpret_cast<int (*)(void*)>(dlsym(library, destroy));
    void* handle = nullptr;
    if (creates && destroys && creates(&handle) == 0 && handle)
        out = Handle{handle, destroys};
}

} // namespace

void PluginHandles::open(bool wantsCudnn, bool wantsCublas)
{
    if (wantsCudnn)
        create(cudnn_, openFirst({"libcudnn.so.9", "libcudnn.so.8"}), "cudnnCreate", "cudnnDestroy");
    if (wantsCublas)
        create(cublas_, openFirst({"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"}), "cublasCreate_v2",
               "cublasDestroy_v2");
}

PluginHandles::~PluginHandles()
{
    for (Handle const& h : {cudnn_, cublas_})
        if (h.handle)
            h.destroy(h.handle);
}

std::shared_ptr<PluginHandles> PluginServices::handles()
{
    auto has = [&](nvinfer1::TacticSource s) { return (tacticSources >> int(s) & 1) != 0; };
    bool const wantsCudnn = has(nvinfer1::TacticSource::kCUDNN), wantsCublas = has(nvinfer1::TacticSource::kCUBLAS);
    std::optional<cuda::Current> current;
    if (gpu)
        current.emplace(*gpu->device);
    // They bind to a GPU: the last owner may let go of them anywhere.
    std::shared_ptr<PluginHandles> made(new PluginHandles, [device = device()](PluginHandles* h) {
        std::optional<cuda::Current> there;
        if (device)
            there.emplace(*device);
        delete h;
    });
    if (gpu)
        made->open(wantsCudnn, wantsCublas);
    std::string missing = wantsCudnn && !made->cudnn() ? "cuDNN" : "";
    if (wantsCublas && !made->cublas())
        missing += missing.empty() ? "cuBLAS" : " and cuBLAS";
    if (!missing.empty() && !hasWarned_.exchange(true))
        reporter.warning("plugins get null in IPluginV2Ext::attachToContext() for the handles of {}{}", missing,
                         gpu ? ", which cannot be opened here; install it if a plugin uses it"
                             : ": the engine runs on the CPU");
    return made;
}

} // namespace tw::api
