// SPDX-License-Identifier: Apache-2.0
#include "tactic/cuda_tactic.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"
#include "base/round.h"
#include "kernels/cuda/common/launch.h"
#include "kernels/cuda/common/source.h"

namespace tw::ops {

namespace {

// An image: magic, architecture (16 bytes, zeros after), hash of the source that it was compiled from, hash of the
// code, the code. Images of version 1 have no hash of the source, those of
// version 2 other hashes.
constexpr char kMagic[8] = {'T', 'W', 'C', 'U', 'B', 'I', 'N', '3'};
constexpr size_t kArchitectureBytes = 16, kHashBytes = sizeof(uint64_t);
constexpr size_t kSourceAt = sizeof(kMagic) + kArchitectureBytes, kCodeHashAt = kSourceAt + kHashBytes,
                 kHeaderBytes = kCodeHashAt + kHashBytes;

void putHash(std::string& image, std::string const& text)
{
    uint64_t const hash = hashBytes(text.data(), text.size());
    image.append(reinterpret_cast<char const*>(&hash), kHashBytes);
}
bool hasHash(std::string const& image, size_t at, std::string const& text)
{
    uint64_t const hash = hashBytes(text.data(), text.size());
    return std::memcmp(image.data() + at, &hash, kHashBytes) == 0;
}

std::string packImage(std::string const& architecture, std::string const& source, std::string const& cubin)
{
    std::string image(kMagic, sizeof(kMagic));
    image += architecture.substr(0, kArchitectureBytes);
    image.resize(sizeof(kMagic) + kArchitectureBytes, '\0');
    putHash(image, source);
    putHash(image, cubin);
    return image + cubin;
}

Result<std::string> unpackImage(std::string const& image, std::string const& source, std::string const& architecture)
{
    constexpr size_t kVersionAt = sizeof(kMagic) - 1;
    if (image.size() > kVersionAt && std::memcmp(image.data(), kMagic, kVersionAt) == 0 &&
        image[kVersionAt] != kMagic[kVersionAt])
        return unsupported("its device code is of another version of this library");
    if (image.size() <= kHeaderBytes || std::memcmp(image.data(), kMagic, sizeof(kMagic)) != 0)
        return invalidArgument("its device code is damaged");
    std::string const made = image.substr(sizeof(kMagic), kArchitectureBytes).c_str();
    if (made != architecture)
        return unsupported("its device code is for " + made + ", this GPU takes " + architecture);
    std::string cubin = image.substr(kHeaderBytes);
    if (!hasHash(image, kCodeHashAt, cubin))
        return invalidArgument("its device code is damaged: the hash differs");
    if (!hasHash(image, kSourceAt, source))
        return unsupported("its device code was compiled from another source: it is that of another layer, or of "
                           "another version of this library");
    return cubin;
}

class GeneratedKernel final : public Kernel
{
public:
    GeneratedKernel(std::unique_ptr<CudaKernels> kernels, std::shared_ptr<cuda::Module const> module,
                    std::vector<CUfunc_st*> functions)
        : kernels_(std::move(kernels)), module_(std::move(module)), functions_(std::move(functions))
    {
        kernels_->dropText();
    }
    // The device's context is current.
    Result<void> pack(Problem const& problem, PackedConstants& packed)
    {
        TW_ASSIGN(std::vector<std::string> const parts, kernels_->pack(problem));
        for (std::string const& part : parts) {
            TW_ASSIGN(DeviceBytes bytes, uploadPacked(part, problem.target.cuda->device, packed));
            packed_.push_back(bytes->data()); // allocations are aligned to 256
            memory_.push_back(std::move(bytes));
        }
        return {};
    }
    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const override
    {
        return kernels_->workspaceBytes(in, out);
    }
    // The engine has put constants into GPU memory.
    bool readsConstant(size_t) const override { return false; }
    bool readsOnDevice(size_t i) const override { return kernels_->readsOnDevice(i); }
    int64_t alignment() const override { return kernels_->source().alignment; }
    Result<void> run(RunArgs& args) const override
    {
        bool const nothing =
            std::all_of(args.outputs.begin(), args.outputs.end(), [](TensorRef const& t) { return t.count() == 0; });
        if (nothing)
            return {};
        CudaLaunch const launch(module_->device(), functions_.data(), packed_, kernels_->source().isDependent,
                                static_cast<CUstream_st*>(args.stream), args.kept);
        auto done = kernels_->run(launch, args);
        if (!launch.lackedKernel())
            return done;
        return kernels_->run(launch.generally(), args);
    }

private:
    std::unique_ptr<CudaKernels> kernels_;
    std::shared_ptr<cuda::Module const> module_;
    std::vector<CUfunc_st*> functions_;
    std::vector<DeviceBytes> memory_;
    std::vector<void const*> packed_; // in memory_
};

struct EncodedMaps final : Kept
{
    struct Entry
    {
        cuda::TensorMapSpec spec;
        void const* address = nullptr;
        cuda::TensorMap map;
    };
    std::vector<Entry> entries;
};

// The line that says what `Narrow` is, where it is not f16.
std::string narrowLine(Problem const& problem)
{
    for (auto const* specs : {&problem.inputs, &problem.outputs})
        for (TensorSpec const& t : *specs)
            if (std::string const name = cuda::storageOf(t.type); isNarrowFloat(t.type) && name != "f16")
                return "#define TW_NARROW " + name + "\n";
    return {};
}

std::string fullText(CudaSource const& source, Problem const& problem)
{
    std::string text = narrowLine(problem) +
                       cuda::withIncludes(source.isWhole ? source.text : cuda::prelude(source.wide) + source.text);
    for (size_t i = 0; i < source.added.size(); ++i)
        text += source.names[i].empty() ? "" : source.added[i];
    return text;
}

} // namespace

Result<void> CudaLaunch::withGeometry(int kernel, cuda::LaunchGeometry const& g,
                                      std::span<void const* const> params) const
{
    constexpr int64_t kMostX = INT32_MAX, kMostYZ = 65535;
    constexpr size_t kMostParams = 8;
    if (g.grid <= 0 || g.gridY <= 0 || g.gridZ <= 0)
        return {};
    if (noted_) {
        (*noted_)[size_t(first_ + kernel)] = true;
        return {};
    }
    lackedKernel_ = lackedKernel_ || !functions_[first_ + kernel];
    if (lackedKernel_)
        return {};
    cuda::Driver const& driver = device_->driver();
    if (g.grid > kMostX || g.gridY > kMostYZ || g.gridZ > kMostYZ)
        return failedExecution("a grid of {} x {} x {} blocks is too large for a GPU", g.grid, g.gridY, g.gridZ);
    TW_CHECK(params.size() <= kMostParams);
    void* list[kMostParams];
    std::transform(params.begin(), params.end(), list, [](void const* p) { return const_cast<void*>(p); });
    bool const isDependent = isDependent_ && device_->info().capability() >= 90 && driver.cuLaunchKernelEx;
    return cuda::launchKernel(driver, functions_[first_ + kernel], g, list, isDependent, stream_);
}

Result<cuda::TensorMap> CudaLaunch::encode(cuda::TensorMapSpec const& spec, void const* address) const
{
    if (noted_)
        return cuda::TensorMap{};
    if (!kept_)
        return cuda::encodeMap(device_->driver(), spec, address);
    if (!*kept_)
        *kept_ = std::make_unique<EncodedMaps>();
    auto& entries = static_cast<EncodedMaps&>(**kept_).entries;
    size_t const i = encoded_++;
    if (i < entries.size() && entries[i].address == address && entries[i].spec == spec)
        return entries[i].map;
    TW_ASSIGN(cuda::TensorMap const map, cuda::encodeMap(device_->driver(), spec, address));
    entries.resize(std::max(entries.size(), i + 1));
    entries[i] = {spec, address, map};
    return map;
}

Result<void> CudaLaunch::copy(void* to, void const* from, int64_t bytes) const
{
    if (noted_)
        return {};
    cuda::Driver const& driver = device_->driver();
    TW_CUDA(driver, cuMemcpyDtoDAsync(cuda::addressOf(to), cuda::addressOf(from), size_t(bytes), stream_));
    return {};
}

int64_t widestUnit(int64_t bytes, uint64_t all)
{
    while (bytes < kMostUnit && all % uint64_t(2 * bytes) == 0)
        bytes *= 2;
    return bytes;
}

void CudaSource::add(std::string const& name, std::string const& function, std::string const& params, int threads,
                     int blocks)
{
    std::string const bounds = blocks    ? fmt::format("__launch_bounds__({}, {}) ", threads, blocks)
                               : threads ? fmt::format("__launch_bounds__({}) ", threads)
                                         : std::string();
    added.resize(names.size());
    names.push_back(name);
    added.push_back("TW_KERNEL " + bounds + name + "(const __grid_constant__ " + params + " p) { " + function +
                    "(p); }\n");
}

void CudaSource::addUnits(std::string const& name, std::string const& function, std::string const& params,
                          int64_t bytes, int threads)
{
    for (; bytes <= kMostUnit; bytes *= 2) {
        std::string const unit = std::to_string(bytes);
        add(name + "_" + unit, function + "<unit" + unit + ">", params, threads);
    }
}

void CudaSource::append(CudaSource const& other)
{
    text += other.text;
    added.resize(names.size());
    added.insert(added.end(), other.added.begin(), other.added.end());
    names.insert(names.end(), other.names.begin(), other.names.end());
}

CudaSource wholeSource(char const* name, std::string text, int64_t sharedBytes)
{
    CudaSource out;
    out.isWhole = true;
    out.isDependent = true;
    out.alignment = 16;
    out.names = {name};
    out.text = std::move(text);
    out.sharedBytes = sharedBytes;
    return out;
}

std::unique_ptr<CudaKernels> kernelsOf(CudaSource source, CudaRun run, CudaWorkspace workspace, CudaPack pack,
                                       std::vector<size_t> replaced)
{
    struct Kernels final : CudaKernels
    {
        using CudaKernels::CudaKernels;
        Result<void> run(CudaLaunch const& launch, RunArgs& args) const override { return run_(launch, args); }
        int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const override
        {
            return workspace_ ? workspace_(in, out) : 0;
        }
        PackedParts pack(Problem const& p) const override { return pack_ ? pack_(p) : CudaKernels::pack(p); }
        bool readsOnDevice(size_t i) const override
        {
            return std::find(replaced_.begin(), replaced_.end(), i) == replaced_.end();
        }
        CudaRun run_;
        CudaWorkspace workspace_;
        CudaPack pack_;
        std::vector<size_t> replaced_;
    };
    auto kernels = std::make_unique<Kernels>(std::move(source));
    kernels->run_ = std::move(run);
    kernels->workspace_ = std::move(workspace);
    kernels->pack_ = std::move(pack);
    kernels->replaced_ = std::move(replaced);
    return kernels;
}

std::unique_ptr<CudaKernels> noKernels(Error const& why)
{
    return kernelsOf({}, [why](CudaLaunch const&, RunArgs&) -> Result<void> { return why; });
}

bool isConfig(Config const& config, size_t numbers, int64_t least, int64_t most)
{
    return config.size() == numbers &&
           std::all_of(config.begin(), config.end(), [&](int64_t v) { return v >= least && v <= most; });
}

Result<std::string> CudaTactic::build(Problem const& problem, Config const& config) const
{
    if (!problem.target.cuda)
        return internalError(std::string("tactic ") + name() + " is built without a CUDA target");
    cuda::Target const& target = *problem.target.cuda;
    auto const own = kernels(problem, config);
    auto const compiler = target.compiler->get();
    if (!compiler.ok())
        return Error{compiler.error().code, "it has to be compiled: " + compiler.error().message};
    std::string const source = fullText(own->source(), problem);
    TW_ASSIGN(auto compiled, (*compiler)->compile(name(), source, target.architecture));
    return packImage(target.architecture, source, compiled->cubin);
}

Result<std::unique_ptr<Kernel>> CudaTactic::load(Problem const& problem, Config const& config,
                                                 std::string const& image) const
{
    PackedConstants alone;
    return loadShared(problem, config, image, alone);
}

Result<std::unique_ptr<Kernel>> CudaTactic::loadShared(Problem const& problem, Config const& config,
                                                       std::string const& image, PackedConstants& packed) const
{
    if (!problem.target.cuda || !problem.target.cuda->device)
        return internalError(std::string("tactic ") + name() + " is loaded without a GPU");
    auto own = kernels(problem, config);
    TW_ASSIGN(std::string const cubin,
              unpackImage(image, fullText(own->source(), problem), problem.target.cuda->architecture));
    TW_ASSIGN(auto module, cuda::Module::load(problem.target.cuda->device, cubin));
    std::vector<CUfunc_st*> functions;
    for (std::string const& kernel : own->source().names) {
        functions.push_back(nullptr); // left out
        if (!kernel.empty()) {
            TW_ASSIGN(functions.back(), module->function(kernel.c_str(), own->source().sharedBytes));
        }
    }
    auto kernel = std::make_unique<GeneratedKernel>(std::move(own), std::move(module), std::move(functions));
    cuda::Current const current(*problem.target.cuda->device);
    TW_TRY(kernel->pack(problem, packed));
    return std::unique_ptr<Kernel>(std::move(kernel));
}

Result<void> copyPixels(cuda::Driver const& driver, TensorRef const& from, TensorRef const& to, CUstream_st* stream)
{
    int64_t const channels = to.dims[channelAxis(to.format, to.dims.rank)];
    size_t const size = size_t(sizeOf(to.type));
    cuda::CopyRows copy;
    copy.from = cuda::addressOf(from.data);
    copy.fromPitch = size_t(from.pixelStride()) * size;
    copy.to = cuda::addressOf(to.data);
    copy.toPitch = size_t(to.pixelStride()) * size;
    copy.rowBytes = size_t(channels) * size;
    copy.rows = size_t(to.count() / channels);
    TW_CUDA(driver, cuMemcpy2DAsync(&copy, stream));
    return {};
}

Result<DeviceBytes> uploadPacked(std::string const& bytes, std::shared_ptr<cuda::Device const> const& device,
                                 PackedConstants& packed)
{
    constexpr int64_t kStep = 256;
    Blob const anyConstant(nullptr, 0);
    // 128 bits tell parts of one engine apart.
    Hash128 const h = hashBytes128(bytes.data(), bytes.size());
    Recipe const recipe{"bytes on the device", {int64_t(h.low), int64_t(h.high)}};
    return packed.get<cuda::Buffer>(anyConstant, recipe, [&]() -> Result<cuda::Buffer> {
        // Kernels may read whole vectors at the end.
        TW_ASSIGN(cuda::Buffer memory, cuda::Buffer::allocate(device, roundUp(int64_t(bytes.size()), kStep)));
        TW_TRY(cuda::upload(device->driver(), memory.data(), bytes.data(), bytes.size()));
        return memory;
    });
}

bool isWide(Problem const& problem)
{
    auto large = [](TensorSpec const& t) { return t.present && t.maxDims.volume() >= INT32_MAX; };
    return std::any_of(problem.inputs.begin(), problem.inputs.end(), large) ||
           std::any_of(problem.outputs.begin(), problem.outputs.end(), large);
}

bool isStatic(Problem const& problem)
{
    auto isOpen = [](ir::Value const* v) { return v && !tw::ir::isStatic(v->shape); };
    return std::ranges::none_of(problem.node->inputs, isOpen) && std::ranges::none_of(problem.node->outputs, isOpen);
}

} // namespace tw::ops
