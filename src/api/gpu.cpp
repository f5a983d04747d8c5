// SPDX-License-Identifier: Apache-2.0
#include "api/gpu.h"

#include <algorithm>
#include <fstream>

#include <dlfcn.h>
#include <unistd.h>

#include "api/engine/stream.h"
#include "device/cpu.h"
#include "device/cuda/kernel_cache.h"
#include "device/cuda/libraries.h"
#include "device/cuda/search_path.h"

namespace tw::api {

namespace {

// The folder that libnvinfer was loaded from; empty when that is not known.
std::string libraryFolder()
{
    Dl_info info{};
    if (!dladdr(reinterpret_cast<void const*>(&libraryFolder), &info) || !info.dli_fname)
        return {};
    std::string const file = info.dli_fname;
    size_t const slash = file.rfind('/');
    return slash == std::string::npos ? std::string() : file.substr(0, slash);
}

// The Python that this process is, when it is one: the file of the program, and what it was called.
std::vector<std::string> runningPython(std::string const& path)
{
    std::string file(4096, 0), command;
    ssize_t const length = readlink("/proc/self/exe", file.data(), file.size());
    file.resize(size_t(std::max<ssize_t>(length, 0)));
    std::ifstream line("/proc/self/cmdline", std::ios::binary);
    std::getline(line, command, '\0');
    return cuda::pythonPrefixes(file, command, path);
}

// What the client has made current in this thread.
struct ClientContext
{
    int ordinal = -1;        // of the GPU; -1: nothing
    CUctx_st* own = nullptr; // made by the client; null: the GPU's primary context
};

ClientContext currentContext(cuda::Driver const& driver)
{
    CUctx_st *context = nullptr, *primary = nullptr;
    int device = 0; // CUdevice handles are ordinals
    if (driver.cuCtxGetCurrent(&context) != cuda::kSuccess || !context ||
        driver.cuCtxGetDevice(&device) != cuda::kSuccess)
        return {};
    // Not made for this question alone: it takes hundreds of megabytes.
    unsigned flags = 0;
    int isActive = 1;
    if (driver.cuDevicePrimaryCtxGetState(device, &flags, &isActive) == cuda::kSuccess && !isActive)
        return {device, context};
    if (driver.cuDevicePrimaryCtxRetain(&primary, device) == cuda::kSuccess)
        driver.cuDevicePrimaryCtxRelease(device);
    return {device, primary && primary != context ? context : nullptr};
}

class ClientAllocator final : public cuda::Allocator
{
public:
    explicit ClientAllocator(nvinfer1::IGpuAllocator& client) : client_(client) {}
    void* allocate(uint64_t sizeBytes, uint64_t alignment) override
    {
        return client_.allocate(sizeBytes, alignment, 0);
    }
    void free(void* memory) override { client_.deallocate(memory); }

private:
    nvinfer1::IGpuAllocator& client_; // lives longer than what it allocates, as 8.5 demands
};

Result<std::shared_ptr<cuda::Target const>> targetOn(std::shared_ptr<cuda::Target const> const& like,
                                                     ClientContext const& where,
                                                     std::shared_ptr<cuda::Allocator> allocator)
{
    TW_ASSIGN(auto device,
              cuda::Device::open(like->device->sharedDriver(), where.ordinal, std::move(allocator), where.own));
    return std::shared_ptr<cuda::Target const>(
        std::make_shared<cuda::Target>(cuda::Target::of(std::move(device), like->compiler, like->libraries)));
}

} // namespace

Result<std::shared_ptr<cuda::Target const>> chooseGpu(Environment const& environment, Reporter& log)
{
    std::shared_ptr<cuda::Target const> const cpu;
    bool const wanted = environment.device == RequestedDevice::kCuda;
    if (environment.device == RequestedDevice::kCpu)
        return cpu;
    if (HostCuda const found = hostCuda(); found.table && !found.isBesideAnother) {
        if (wanted)
            return failedInitialization(
                "TENSORWRIGHT_DEVICE asks for a GPU, but this process uses lib/hostcuda/libcudart, the CUDA "
                "runtime for machines without one; link NVIDIA's, or set TENSORWRIGHT_DEVICE=cpu");
        return cpu;
    }
    auto none = [&](Error error) -> Result<std::shared_ptr<cuda::Target const>> {
        if (wanted)
            return std::move(error).in("TENSORWRIGHT_DEVICE asks for a GPU");
        log.verbose("The CPU is used: {}", error.message);
        return cpu;
    };
    auto driver = cuda::Driver::open();
    if (!driver.ok())
        return none(driver.error());
    ClientContext where = currentContext(**driver);
    if (where.ordinal < 0 || (environment.gpu >= 0 && environment.gpu != where.ordinal))
        where = {std::max(environment.gpu, 0), nullptr};
    auto device = cuda::Device::open(*driver, where.ordinal, nullptr, where.own);
    if (!device.ok())
        return none(device.error());
    log.verbose("The GPU is used: {}", (*device)->info().fingerprint());
    std::vector<std::string> prefixes = runningPython(environment.path);
    prefixes.push_back(environment.virtualEnvironment);
    prefixes.push_back(environment.condaPrefix);
    auto pathOf = [&](std::string const& given, std::initializer_list<char const*> packages) {
        return cuda::searchPathFor({given, libraryFolder(), prefixes}, packages);
    };
    return std::shared_ptr<cuda::Target const>(std::make_shared<cuda::Target>(cuda::Target::of(
        *device,
        std::make_shared<cuda::LazyCompiler>(pathOf(environment.nvrtc, {"cu13/lib", "cuda_nvrtc/lib"}),
                                             std::make_shared<cuda::KernelCache>(environment.kernelCache)),
        std::make_shared<cuda::Libraries>(pathOf(environment.cublasLt, {"cu13/lib", "cublas/lib"}),
                                          pathOf(environment.cudnn, {"cudnn/lib", "cu13/lib"})))));
}

Result<std::shared_ptr<cuda::Target const>> withAllocator(std::shared_ptr<cuda::Target const> gpu,
                                                          nvinfer1::IGpuAllocator* allocator)
{
    if (!gpu || !allocator)
        return gpu;
    return targetOn(gpu, {gpu->device->info().ordinal, gpu->device->clientContext()},
                    std::make_shared<ClientAllocator>(*allocator));
}

Result<std::shared_ptr<cuda::Target const>> currentGpu(std::shared_ptr<cuda::Target const> gpu,
                                                       Environment const& environment)
{
    if (!gpu)
        return gpu;
    ClientContext const where = currentContext(gpu->device->driver());
    bool const isAllowed = where.ordinal >= 0 && (environment.gpu < 0 || environment.gpu == where.ordinal);
    bool const isThere = where.ordinal == gpu->device->info().ordinal && where.own == gpu->device->clientContext();
    return !isAllowed || isThere ? gpu : targetOn(gpu, where, nullptr);
}

Result<void> checkOnGpu(cuda::Device const& device, void const* address, char const* kind, std::string const& name)
{
    constexpr int kPageableMemoryAccess = 88; // a device attribute
    unsigned type = 0;
    int shared = 0;
    cuda::Driver const& driver = device.driver();
    if (driver.cuPointerGetAttribute(&type, cuda::kPointerMemoryType, cuda::addressOf(address)) == cuda::kSuccess ||
        (driver.cuDeviceGetAttribute(&shared, kPageableMemoryAccess, device.info().ordinal) == cuda::kSuccess &&
         shared))
        return {};
    return invalidArgument("{}{} lies in host memory, and the engine runs on {}: give it GPU, pinned or managed "
                           "memory, or set TENSORWRIGHT_DEVICE=cpu",
                           kind, name.empty() ? name : " '" + name + "'", device.info().name);
}

Result<void> checkOnHost(cuda::Device const& device, void const* address, std::string const& name)
{
    constexpr int kPointerIsManaged = 8; // cuPointerGetAttribute
    unsigned type = 0, managed = 0;
    cuda::Current const current(device);
    cuda::Driver const& driver = device.driver();
    uint64_t const at = cuda::addressOf(address);
    if (driver.cuPointerGetAttribute(&type, cuda::kPointerMemoryType, at) != cuda::kSuccess ||
        type != cuda::kMemoryTypeDevice ||
        (driver.cuPointerGetAttribute(&managed, kPointerIsManaged, at) == cuda::kSuccess && managed))
        return {};
    return invalidArgument("shape tensor '{}' lies in GPU memory, and it belongs to the host: give it host, pinned or "
                           "managed memory, as getTensorLocation() says",
                           name);
}

std::string fingerprintOf(cuda::Target const* gpu)
{
    return gpu ? gpu->device->info().fingerprint() : device::probeCpu().fingerprint();
}

} // namespace tw::api
