// SPDX-License-Identifier: Apache-2.0
#include "api/engine/cuda_driver.h"

#include <atomic>

#include <dlfcn.h>

#include "hostcuda/modules.h"

namespace tw::api {

namespace {

// Numbers of the CUDA driver API.
constexpr int kSuccess = 0, kInvalidValue = 1, kInvalidContext = 201;
constexpr int kAttributeMemoryType = 2, kAttributeIsManaged = 8;
constexpr unsigned kMemoryTypeDevice = 2;

Error failed(char const* what, int status)
{
    return failedExecution("{}: CUDA driver error {}", what, status);
}

} // namespace

std::unique_ptr<CudaDriver> CudaDriver::ofProcess()
{
    // For a library that is not loaded dlopen() searches the disk, a dozen system calls: not again before another has been loaded.
    static std::atomic<uint64_t> loadsWithoutOne = UINT64_MAX;
    uint64_t const loads = hostcuda::countOfLoads();
    if (loadsWithoutOne.load(std::memory_order_relaxed) == loads)
        return nullptr;
    void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!library) {
        loadsWithoutOne.store(loads, std::memory_order_relaxed);
        return nullptr;
    }
    auto find = [&](auto& function, char const* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    };
    std::unique_ptr<CudaDriver> d(new CudaDriver);
    int (*count)(int*) = nullptr;
    find(count, "cuDeviceGetCount");
    find(d->pointerAttribute_, "cuPointerGetAttribute");
    find(d->synchronize_, "cuStreamSynchronize");
    find(d->isCapturing_, "cuStreamIsCapturing");
    find(d->record_, "cuEventRecord");
    int gpus = 0;
    bool const usable = count && d->pointerAttribute_ && d->synchronize_ && d->isCapturing_ && d->record_ &&
                        count(&gpus) == kSuccess && gpus > 0;
    dlclose(library); // the client's own reference keeps it
    return usable ? std::move(d) : nullptr;
}

Result<void> CudaDriver::checkReachable(void const* address, std::string const& tensor) const
{
    unsigned type = 0;
    int status = pointerAttribute_(&type, kAttributeMemoryType, reinterpret_cast<unsigned long long>(address));
    if (status == kInvalidValue || (status == kSuccess && type != kMemoryTypeDevice))
        return {}; // plain host memory, or pinned
    if (status != kSuccess)
        return failed("cuPointerGetAttribute", status);
    unsigned managed = 0;
    status = pointerAttribute_(&managed, kAttributeIsManaged, reinterpret_cast<unsigned long long>(address));
    if (status == kSuccess && managed)
        return {};
    return invalidArgument(
        "tensor '{}' lies in GPU memory, and the engine runs on the CPU: give it host, pinned or managed memory",
        tensor);
}

Result<void> CudaDriver::finish(CUstream_st* stream) const
{
    int capturing = 0;
    int status = isCapturing_(stream, &capturing);
    if (status != kSuccess && status != kInvalidContext)
        return failed("cuStreamIsCapturing", status);
    if (capturing)
        return unsupported("an engine that runs on the CPU cannot be captured in a graph of the real CUDA runtime");
    status = synchronize_(stream);
    if (status != kSuccess && status != kInvalidContext) // no context: nothing was ever given to a stream
        return failed("cuStreamSynchronize", status);
    return {};
}

Result<void> CudaDriver::record(CUevent_st* event, CUstream_st* stream) const
{
    int const status = record_(event, stream);
    if (status != kSuccess)
        return failed("cuEventRecord", status);
    return {};
}

} // namespace tw::api
