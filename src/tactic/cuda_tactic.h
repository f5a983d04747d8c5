// SPDX-License-Identifier: Apache-2.0
// CUDA tactics whose kernels are text: what is compiled for a problem, and how it is launched, are a class each.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "device/cuda/device.h"
#include "device/cuda/driver.h"
#include "device/cuda/target.h"
#include "kernels/cuda/common/params.h"
#include "kernels/cuda/common/prelude.h"
#include "kernels/cuda/common/source.h"
#include "kernels/cuda/common/tensor_map.h"
#include "tactic/packed_constants.h"
#include "tactic/tactic.h"

namespace tw::ops {

// Launches the loaded kernels of one tactic on the run's stream; the device's context is current.
class CudaLaunch
{
public:
    // `isDependent`: the kernels wait for the one before themselves (waitForPrevious()) and may begin before it ends.
    CudaLaunch(cuda::Device const& device, CUfunc_st* const* functions, std::span<void const* const> packed,
               bool isDependent, CUstream_st* stream, std::unique_ptr<Kept>* kept = nullptr)
        : device_(&device), multiprocessors_(device.info().multiprocessors), functions_(functions), packed_(packed),
          isDependent_(isDependent), stream_(stream), kept_(kept)
    {}
    // Launches nothing: notes which kernels would be, in a list as long as that of their names.
    CudaLaunch(std::vector<bool>& noted, int multiprocessors) : multiprocessors_(multiprocessors), noted_(&noted) {}
    // One struct is all that a kernel takes. No blocks: nothing is launched.
    template <class Params>
    Result<void> operator()(int kernel, int64_t blocks, int threads, Params const& params,
                            int64_t sharedBytes = 0) const
    {
        return grid(kernel, blocks, 1, 1, threads, params, sharedBytes);
    }
    // A thread for each of `items`, in blocks of 256.
    template <class Params>
    Result<void> each(int kernel, int64_t items, Params const& params) const
    {
        return (*this)(kernel, (items + 255) / 256, 256, params);
    }
    template <class Params>
    Result<void> grid(int kernel, int64_t x, int64_t y, int64_t z, int threads, Params const& params,
                      int64_t sharedBytes = 0) const
    {
        cuda::LaunchGeometry g;
        g.grid = x;
        g.gridY = y;
        g.gridZ = z;
        g.block = threads;
        g.sharedBytes = sharedBytes;
        return withGeometry(kernel, g, {&params});
    }
    // Any parameters, in the kernel's order, and clusters.
    Result<void> withGeometry(int kernel, cuda::LaunchGeometry const& geometry,
                              std::initializer_list<void const*> params) const
    {
        return withGeometry(kernel, geometry, std::span<void const* const>(params));
    }
    Result<void> withGeometry(int kernel, cuda::LaunchGeometry const& geometry,
                              std::span<void const* const> params) const;
    // The map of data at an address of the run. What was encoded in the last run is kept, by the order of the calls.
    Result<cuda::TensorMap> encode(cuda::TensorMapSpec const& spec, void const* address) const;
    // What CudaKernels::pack() made, in GPU memory.
    void const* packed(int i) const { return packed_[size_t(i)]; }
    // The same with kernels from the one at `first` on.
    CudaLaunch from(int first) const
    {
        CudaLaunch out = *this;
        out.first_ += first;
        return out;
    }
    // Whether run() has to take CudaSource::general, for what it took before is not there.
    bool isGeneral() const { return isGeneral_; }
    CudaLaunch generally() const
    {
        CudaLaunch out = *this;
        out.isGeneral_ = true;
        out.lackedKernel_ = false;
        return out;
    }
    bool lackedKernel() const { return lackedKernel_; }
    Result<void> copy(void* to, void const* from, int64_t bytes) const;
    int multiprocessors() const { return multiprocessors_; }
    cuda::Device const& device() const { return *device_; }
    CUstream_st* stream() const { return stream_; }

private:
    cuda::Device const* device_ = nullptr;
    int multiprocessors_ = 1;
    CUfunc_st* const* functions_ = nullptr;
    std::span<void const* const> packed_;
    bool isDependent_ = false;
    CUstream_st* stream_ = nullptr;
    std::unique_ptr<Kept>* kept_ = nullptr;
    std::vector<bool>* noted_ = nullptr;
    int first_ = 0; // is kernel 0
    bool isGeneral_ = false;
    mutable bool lackedKernel_ = false;
    mutable size_t encoded_ = 0; // calls of encode()
};

// Bytes that a thread moves at a time, at most.
constexpr int64_t kMostUnit = 16;
// The most of them that `all`, sizes and addresses joined by |, are multiples of: `bytes` times a power of 2, or `bytes`.
int64_t widestUnit(int64_t bytes, uint64_t all);

// What is compiled for one problem and config, and what holds for all of its kernels.
struct CudaSource
{
    std::string text;               // after the prelude; it may include files (kernels/cuda/common/source.h)
    std::vector<std::string> names; // of kernels; CudaLaunch takes positions in this list
    bool isWhole = false;           // no prelude: the text is all
    bool wide = false;              // 64-bit indices
    bool isDependent = false;       // every kernel calls waitForPrevious() before it touches what others write or read
    int64_t alignment = 1;          // bytes, of the addresses of inputs and outputs; see Kernel::alignment()
    int64_t sharedBytes = 0;        // the most dynamic shared memory of a launch
    // The kernel that does the work of each of the others, more slowly: which of them run() launches depends on shapes
    // and addresses alone. Where shapes are fixed, those that it does not need are not compiled. -1: all are.
    int general = -1;
    std::vector<std::string> added; // texts of the kernels that add() was given, by position; those of others are empty

    // One more kernel: it calls what the text has as a function (template arguments and all) of one struct.
    // `threads` of its blocks at most, and how many blocks a multiprocessor shall hold at least; 0: not said.
    void add(std::string const& name, std::string const& function, std::string const& params, int threads = 0,
             int blocks = 0);
    // The same of functions of a unit's type, for units of `bytes` to kMostUnit: name_1, function<unit1>.
    void addUnits(std::string const& name, std::string const& function, std::string const& params, int64_t bytes,
                  int threads = 0);
    // The texts and kernels of another one, behind its own.
    void append(CudaSource const& other);
};
// A kernel whose text is all there is: dependent, on addresses aligned to 16 bytes.
CudaSource wholeSource(char const* name, std::string text, int64_t sharedBytes);

using PackedParts = Result<std::vector<std::string>>;

// The host's side of a tactic for one problem and config: what is compiled, and how it is launched. Its members are
// what was settled then; it is made when the tactic is built and again when a plan is loaded.
class CudaKernels
{
public:
    explicit CudaKernels(CudaSource source) : source_(std::move(source)) {}
    virtual ~CudaKernels() = default;
    CudaSource const& source() const { return source_; }
    void dropText() // when it is compiled
    {
        source_.text = {};
        source_.added = {};
    }
    // Leaves out what problems of fixed shapes do not need, by CudaSource::general: it has no name, and is not compiled.
    void leaveOutUnneeded(Problem const& problem);

    virtual Result<void> run(CudaLaunch const& launch, RunArgs& args) const = 0;
    virtual int64_t workspaceBytes(std::span<TensorRef const> /*inputs*/, std::span<TensorRef const> /*outputs*/) const
    {
        return 0;
    }
    // Constants as the kernels want them, bytes for GPU memory, each aligned to 256; called once, while the problem's
    // constants are there. Equal parts of an engine's kernels lie there once.
    virtual PackedParts pack(Problem const& /*problem*/) const { return std::vector<std::string>(); }
    // Whether run() reads constant input `i` where the engine put it: no, where it reads what pack() made of it.
    virtual bool readsOnDevice(size_t /*input*/) const { return true; }

private:
    CudaSource source_;
};

// What is compiled of `source` and launched by run(launch, args), with the functions of CudaKernels that are given.
// `replaced`: inputs that run() reads as pack() made them. What they capture is what was settled for the problem and
// config.
using CudaRun = std::function<Result<void>(CudaLaunch const&, RunArgs&)>;
using CudaWorkspace = std::function<int64_t(std::span<TensorRef const>, std::span<TensorRef const>)>;
using CudaPack = std::function<PackedParts(Problem const&)>;
std::unique_ptr<CudaKernels> kernelsOf(CudaSource source, CudaRun run, CudaWorkspace workspace = {}, CudaPack pack = {},
                                       std::vector<size_t> replaced = {});
// Kernels of a config that there is none for, such as one of a damaged plan: running them is the error.
std::unique_ptr<CudaKernels> noKernels(Error const& why);
// Whether a config has so many numbers, each in these bounds: plans come from outside.
bool isConfig(Config const& config, size_t numbers, int64_t least, int64_t most);
// Puts its numbers into these in order, from the one at `at` on.
template <class... Numbers>
void readConfig(Config const& config, size_t at, Numbers&... to)
{
    ((to = Numbers(config[at++])), ...);
}

class CudaTactic final : public Tactic, public PackingTactic
{
public:
    using Generate = std::unique_ptr<CudaKernels> (*)(Problem const&, Config const&);
    using Supports = Support (*)(Problem const&);
    using Configs = std::vector<Config> (*)(Problem const&);
    using FormatsOf = std::vector<Formats> (*)(Problem const&);
    using Estimate = double (*)(Problem const&, Config const&);

    constexpr CudaTactic(char const* name, int version, Generate generate, Supports supports = nullptr,
                         Configs configs = nullptr, FormatsOf formats = nullptr, Estimate estimate = nullptr,
                         Traits traits = {})
        : Tactic(name, version, Backend::kCuda), generate_(generate), supports_(supports), configs_(configs),
          formats_(formats), estimate_(estimate), traits_(traits)
    {}
    Traits traits() const override { return traits_; }
    std::unique_ptr<CudaKernels> kernels(Problem const& p, Config const& c) const
    {
        auto out = generate_(p, c);
        out->leaveOutUnneeded(p);
        return out;
    }
    Support supports(Problem const& p) const override { return supports_ ? supports_(p) : Tactic::supports(p); }
    std::vector<Formats> formats(Problem const& p) const override
    {
        return formats_ ? formats_(p) : Tactic::formats(p);
    }
    std::vector<Config> configs(Problem const& p) const override { return configs_ ? configs_(p) : Tactic::configs(p); }
    double estimate(Problem const& p, Config const& c) const override { return estimate_ ? estimate_(p, c) : 0; }
    // The compiled kernels: a cubin after a hash.
    Result<std::string> build(Problem const& problem, Config const& config) const override;
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const& config,
                                         std::string const& image) const override;
    Result<std::unique_ptr<Kernel>> loadShared(Problem const& problem, Config const& config, std::string const& image,
                                               PackedConstants& packed) const override;

private:
    Generate generate_;
    Supports supports_;
    Configs configs_;
    FormatsOf formats_;
    Estimate estimate_;
    Traits traits_;
};

// Whether any tensor of the problem can have 2^31 elements or more: kernels then count in 64 bits.
bool isWide(Problem const& problem);
// Whether every shape of the problem is fixed.
bool isStatic(Problem const& problem);

// Blocks of `threads` that give each of `items` a thread.
inline int64_t blocksFor(int64_t items, int threads)
{
    return (items + threads - 1) / threads;
}

// Kernels of kernels/cuda that are one text, which a Spec describes: source(spec), and sharedBytes() of a block.
template <class Spec>
CudaSource wholeSource(char const* name, Spec const& spec)
{
    return wholeSource(name, source(spec), spec.sharedBytes());
}

// Copies of tensors by pixels between memories where those lie differently far apart (tactic/parts.h).

// Tensors of one type, format and shape; neither may be empty.
Result<void> copyPixels(cuda::Driver const& driver, TensorRef const& from, TensorRef const& to, CUstream_st* stream);

// Bytes that kernels have made of constants, in GPU memory: what kernels of an engine make alike lies there once.

using DeviceBytes = std::shared_ptr<cuda::Buffer const>;

// Found again by what they are, since several constants may go into one part. The device's context is current.
Result<DeviceBytes> uploadPacked(std::string const& bytes, std::shared_ptr<cuda::Device const> const& device,
                                 PackedConstants& packed);

} // namespace tw::ops
