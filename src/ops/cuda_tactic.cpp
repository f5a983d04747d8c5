// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda_tactic.h"

#include <algorithm>
#include <cstring>

namespace tw::ops {

namespace {

// An image: magic, architecture (16 bytes, zeros behind), hash of the code, the code.
constexpr char kMagic[8] = {'T', 'W', 'C', 'U', 'B', 'I', 'N', '1'};
constexpr size_t kArchitectureBytes = 16, kHeaderBytes = sizeof(kMagic) + kArchitectureBytes + sizeof(uint64_t);

std::string packImage(std::string const& architecture, std::string const& cubin)
{
    std::string image(kMagic, sizeof(kMagic));
    image += architecture.substr(0, kArchitectureBytes);
    image.resize(sizeof(kMagic) + kArchitectureBytes, '\0');
    uint64_t const hash = hashBytes(cubin.data(), cubin.size());
    image.append(reinterpret_cast<char const*>(&hash), sizeof(hash));
    return image + cubin;
}

Result<std::string> unpackImage(std::string const& image, std::string const& architecture)
{
    if (image.size() <= kHeaderBytes || std::memcmp(image.data(), kMagic, sizeof(kMagic)) != 0)
        return invalidArgument("its device code is damaged");
    std::string const made = image.substr(sizeof(kMagic), kArchitectureBytes).c_str();
    if (made != architecture)
        return unsupported("its device code is for " + made + ", this GPU takes " + architecture);
    uint64_t hash;
    std::memcpy(&hash, image.data() + kHeaderBytes - sizeof(hash), sizeof(hash));
    std::string cubin = image.substr(kHeaderBytes);
    if (hashBytes(cubin.data(), cubin.size()) != hash)
        return invalidArgument("its device code is damaged: the hash differs");
    return cubin;
}

class GeneratedKernel final : public Kernel
{
public:
    GeneratedKernel(CudaKernels kernels, std::shared_ptr<cuda::Module const> module, std::vector<CUfunc_st*> functions)
        : kernels_(std::move(kernels)), module_(std::move(module)), functions_(std::move(functions))
    {
        kernels_.source.clear();
    }
    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const override
    {
        return kernels_.workspace ? kernels_.workspace(in, out) : 0;
    }
    // The engine has put constants into GPU memory.
    bool readsConstant(size_t) const override { return false; }
    Result<void> run(RunArgs& args) const override
    {
        bool const nothing =
            std::all_of(args.outputs.begin(), args.outputs.end(), [](TensorRef const& t) { return t.count() == 0; });
        if (nothing)
            return {};
        CudaLaunch const launch(module_->device(), functions_.data(), static_cast<CUstream_st*>(args.stream));
        return kernels_.run(launch, args);
    }

private:
    CudaKernels kernels_;
    std::shared_ptr<cuda::Module const> module_;
    std::vector<CUfunc_st*> functions_;
};

} // namespace

Result<void> CudaLaunch::launch(int kernel, int64_t x, int64_t y, int64_t z, int threads, void const* params,
                                int64_t sharedBytes) const
{
    constexpr int64_t kMostX = INT32_MAX, kMostYZ = 65535;
    if (x <= 0 || y <= 0 || z <= 0)
        return {};
    if (x > kMostX || y > kMostYZ || z > kMostYZ)
        return Error{ErrorCode::kFailedExecution, "a grid of " + std::to_string(x) + " x " + std::to_string(y) + " x " +
                                                      std::to_string(z) + " blocks is too large for a GPU"};
    void* list[] = {const_cast<void*>(params)};
    return device_.driver().check(device_.driver().cuLaunchKernel(functions_[kernel], unsigned(x), unsigned(y),
                                                                  unsigned(z), unsigned(threads), 1, 1,
                                                                  unsigned(sharedBytes), stream_, list, nullptr),
                                  "cuLaunchKernel");
}

Result<void> CudaLaunch::launchExtended(int kernel, cuda::LaunchConfig config, void const* params) const
{
    if (!device_.driver().cuLaunchKernelEx)
        return unsupported("the CUDA driver has no cuLaunchKernelEx: it is older than CUDA 12");
    config.stream = stream_;
    void* list[] = {const_cast<void*>(params)};
    return device_.driver().check(device_.driver().cuLaunchKernelEx(&config, functions_[kernel], list, nullptr),
                                  "cuLaunchKernelEx");
}

Support CudaTactic::supports(Problem const& problem) const
{
    return supports_ ? supports_(problem) : Support::yes();
}

std::vector<Formats> CudaTactic::formats(Problem const& problem) const
{
    return formats_ ? formats_(problem) : std::vector<Formats>{linearFormats(problem)};
}

std::vector<Config> CudaTactic::configs(Problem const& problem) const
{
    return configs_ ? configs_(problem) : std::vector<Config>{Config{}};
}

Result<std::string> CudaTactic::build(Problem const& problem, Config const& config) const
{
    if (!problem.cuda)
        return internalError(std::string("tactic ") + name() + " is built without a CUDA target");
    cuda::Target const& target = *problem.cuda;
    auto const compiler = target.compiler->get();
    if (!compiler.ok())
        return Error{compiler.error().code, "it has to be compiled: " + compiler.error().message};
    CudaKernels const kernels = generate_(problem, config);
    TW_ASSIGN(auto compiled,
              (*compiler)->compile(name(), cuda::prelude(kernels.wide) + kernels.source, target.architecture));
    return packImage(target.architecture, compiled->cubin);
}

Result<std::unique_ptr<Kernel>> CudaTactic::load(Problem const& problem, Config const& config,
                                                 std::string const& image) const
{
    if (!problem.cuda || !problem.cuda->device)
        return internalError(std::string("tactic ") + name() + " is loaded without a GPU");
    TW_ASSIGN(std::string const cubin, unpackImage(image, problem.cuda->architecture));
    CudaKernels kernels = generate_(problem, config);
    TW_ASSIGN(auto module, cuda::Module::load(problem.cuda->device, cubin));
    std::vector<CUfunc_st*> functions;
    for (std::string const& kernel : kernels.names) {
        TW_ASSIGN(CUfunc_st * f, module->function(kernel.c_str(), kernels.sharedBytes));
        functions.push_back(f);
    }
    return std::unique_ptr<Kernel>(
        std::make_unique<GeneratedKernel>(std::move(kernels), std::move(module), std::move(functions)));
}

bool isWide(Problem const& problem)
{
    auto large = [](TensorSpec const& t) { return t.present && t.maxDims.volume() >= INT32_MAX; };
    return std::any_of(problem.inputs.begin(), problem.inputs.end(), large) ||
           std::any_of(problem.outputs.begin(), problem.outputs.end(), large);
}

} // namespace tw::ops
