// SPDX-License-Identifier: Apache-2.0
// A tactic: one way to compute an op (or fused op) on one backend. Three steps kept apart: supports (yes, or no with a
// reason), build (bytes for the plan), load (a kernel that only runs).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/permissions.h"
#include "base/result.h"
#include "base/tensor.h"
#include "base/workers.h"
#include "ir/graph.h"

namespace tw::cuda {
struct Target;
}
namespace tw::device {
struct CpuInfo;
}

namespace tw::ops {

enum class Backend : int
{
    kCpu,
    kCuda,
};

// Whose kernels a tactic runs. A network may be built without those of a library (IBuilderConfig::setTacticSources).
enum class Source : int
{
    kOwn,
    kCublasLt,
    kCudnn,
};

// How the numbers of a tactic differ from sums of products in the tensors' own types. Those that round factors of FP32
// products sum in FP32, are candidates only where the user permits it, and are compared with the reference within
// toleranceFor() (tactic/rounded_factors.h).
enum class Rounding : int
{
    kPlain,
    kTf32,        // factors to 10 bits of mantissa: BuilderFlag::kTF32
    kBf16,        // factors to 7 bits: TENSORWRIGHT_CPU_BF16
    kHalfWeights, // weights alone, to FP16: BuilderFlag::kFP16
    kWinograd,    // sums of transformed elements; TENSORWRIGHT_WINOGRAD=0 keeps it out of new engines
};

// What a tactic says of itself; its name is for people and as an identity, and nobody takes it apart.
struct Traits
{
    Rounding rounding = Rounding::kPlain;
    bool isSparse = false; // computes with weights that follow 2:4 (tactic/sparsity.h): BuilderFlag::kSPARSE_WEIGHTS
    char const* isa = "";  // the CPU instruction set that is the last part of its name
    DataType type = DataType::kFloat; // of tensors: said by tactics that may be for a type of our own

    // What the user must have permitted.
    constexpr Permissions needs() const
    {
        Permissions p;
        p.set(Permission::kTf32, rounding == Rounding::kTf32);
        p.set(Permission::kBf16Factors, rounding == Rounding::kBf16);
        p.set(Permission::kHalfWeights, rounding == Rounding::kHalfWeights);
        p.set(Permission::kWinograd, rounding == Rounding::kWinograd);
        p.set(Permission::kSparse, isSparse);
        if (!*numberType(type).published) // tensors of other types are there without permission, if the client has them
            p.give(needsOf(type));
        return p;
    }
};

// One input or output of the region that is being tuned.
struct TensorSpec
{
    DataType type = DataType::kFloat;
    Extents dims;                   // at the profile's optimum
    Extents maxDims;                // at its maximum: tactics must run for every shape up to it
    Blob const* constant = nullptr; // contents, when known at build time
    TensorRef contents;             // elements of a shape tensor at the optimum; null data: not known
    bool present = false;           // false: optional input that is not given
    Format format = Format::kLinear;
};

// The CPU that the process runs on, probed once: the instruction is slow in virtual machines, and its answer does not change.
device::CpuInfo const& thisCpu();

// The machine that kernels are chosen, built and loaded for.
struct Target
{
    device::CpuInfo const* cpu = &thisCpu(); // never null: engines for GPUs have steps on the host
    cuda::Target const* cuda = nullptr;      // where CUDA tactics are built for it and loaded on it
};

struct Problem
{
    ir::Node const* node = nullptr;
    std::vector<TensorSpec> inputs;
    std::vector<TensorSpec> outputs;
    int threads = 1; // workers that run() may be given
    Target target;
};

// One combination of formats, for each input (linear where none is given) and output.
struct Formats
{
    std::vector<Format> inputs, outputs;
    bool operator==(Formats const&) const = default;
};
Formats linearFormats(Problem const& problem);
// Every input and output of rank 3 and up that is no constant in `format`, one by pixels, the others linear.
Formats channelsLastFormats(Problem const& problem, Format format = Format::kChannelsLast);
Formats formatsOf(Problem const& problem);
void setFormats(Problem& problem, Formats const& formats);

struct Support
{
    bool ok = true;
    std::string reason; // why not, in words for the user

    static Support yes() { return {}; }
    static Support no(std::string why) { return Support{false, std::move(why)}; }
};
// Returns the answer of a Support expression that is no, else goes on.
#define TW_SUPPORTS(...)                                                                                               \
    do {                                                                                                               \
        if (::tw::ops::Support support_ = (__VA_ARGS__); !support_.ok)                                                 \
            return support_;                                                                                           \
    } while (0)
// Of a tactic whose first `inputs` inputs have this type, those that are given.
Support takesOnly(DataType type, Problem const& problem, size_t inputs = 1);
// `given`, if it is a narrow floating type, else `type`: what a kernel takes whose text is that of all such types.
constexpr DataType narrowOr(DataType type, DataType given)
{
    return isNarrowFloat(given) ? given : type;
}

// Tile sizes and such; what the numbers mean is the tactic's own matter. Stored in plan and cache.
using Config = std::vector<int64_t>;

// What a kernel works out once for a set of shapes: loop bounds, code for them.
class Prepared
{
public:
    virtual ~Prepared() = default;
};

// What a kernel keeps of one step of one context from run to run, such as addresses in the form that the device wants.
class Kept
{
public:
    virtual ~Kept() = default;
};

struct RunArgs
{
    std::span<TensorRef const> inputs; // null data: optional input that is not given
    std::span<TensorRef> outputs;      // a kernel with data-dependent sizes lowers outputs[i].dims
    void* workspace = nullptr;         // workspaceBytes() bytes, 64-byte aligned
    uint64_t* randomState = nullptr;   // of the execution context
    Workers* workers = &serialWorkers();
    Prepared const* prepared = nullptr;    // what Kernel::prepare() made for these shapes
    void* stream = nullptr;                // CUDA: the CUstream that run() puts its work on
    std::unique_ptr<Kept>* kept = nullptr; // the kernel's own; null: it cannot keep anything
};

// Loaded and ready; shared by all contexts of an engine, so run() keeps nothing in the object.
class Kernel
{
public:
    virtual ~Kernel() = default;
    // For inputs and outputs of these shapes; monotonic in every dimension.
    virtual int64_t workspaceBytes(std::span<TensorRef const> /*inputs*/, std::span<TensorRef const> /*outputs*/) const
    {
        return 0;
    }
    // Called once for a set of shapes (addresses are not known yet), before run() with them; the result may be shared
    // by contexts. Null: the kernel needs nothing.
    virtual Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> /*inputs*/,
                                                            std::span<TensorRef const> /*outputs*/) const
    {
        return std::shared_ptr<Prepared const>();
    }
    // Whether run() reads the elements of constant input `i`; false when load() has packed or copied them, so that the
    // engine need not keep them.
    virtual bool readsConstant(size_t /*i*/) const { return true; }
    // CUDA: the same of the copy of constant input `i` in GPU memory.
    virtual bool readsOnDevice(size_t /*i*/) const { return true; }
    // CUDA: bytes that the addresses of all inputs and outputs are multiples of in every run; the engine sees to it.
    virtual int64_t alignment() const { return 1; }
    // Does not allocate, lock, throw or read the environment. An error is one the data caused.
    virtual Result<void> run(RunArgs& args) const = 0;
};

class Tactic
{
public:
    constexpr Tactic(char const* name, int version, Backend backend) : name_(name), version_(version), backend_(backend)
    {}

    // The name is the identity in logs, cache, plans, tests and profiles, such as "softmax_any_plain_cpu".
    char const* name() const { return name_; }
    // Raised when results or the meaning of configs or images change.
    int version() const { return version_; }
    Backend backend() const { return backend_; }
    uint64_t id() const; // hash of name and version

    virtual Source source() const { return Source::kOwn; }
    virtual Traits traits() const { return {}; }

    // In any of formats(); the problem's specs say which. All that a tactic asks of constants, it asks here: a kernel that
    // load() makes of these is not refused for their elements.
    virtual Support supports(Problem const&) const { return Support::yes(); }
    // The formats it can work in, best first; those of the problem are not looked at.
    virtual std::vector<Formats> formats(Problem const& problem) const { return {linearFormats(problem)}; }
    virtual std::vector<Config> configs(Problem const&) const { return {Config{}}; }
    // Expected time in microseconds, only to order and prune; 0 when unknown.
    virtual double estimate(Problem const&, Config const&) const { return 0; }
    // Bytes for the plan (device code, recipes); empty for what is emitted at load.
    virtual Result<std::string> build(Problem const&, Config const&) const { return std::string(); }
    // `problem.node` outlives the kernel. Constant inputs may be packed here; where they lie now, they do not stay.
    virtual Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const& config,
                                                 std::string const& image) const = 0;

protected:
    ~Tactic() =
        default; // tactics are constants (or owned by their provider under their own type): never deleted through this

private:
    char const* name_;
    int version_;
    Backend backend_;
};

// Whether the tactic works in the problem's formats and supports it.
Support supportsFormats(Tactic const& tactic, Problem const& problem);

// A tactic that is one function: the plain one that closes every list.
class PlainTactic final : public Tactic
{
public:
    using Run = Result<void> (*)(ir::Node const&, RunArgs&);
    using Workspace = int64_t (*)(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const> out);

    constexpr PlainTactic(char const* name, int version, Run run, Workspace workspace = nullptr)
        : Tactic(name, version, Backend::kCpu), run_(run), workspace_(workspace)
    {}
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const&, std::string const&) const override;

private:
    Run run_;
    Workspace workspace_;
};
// A kernel that is run(args); `workspace`: null where it needs none.
std::unique_ptr<Kernel> kernelOf(ir::Node const& node, std::function<Result<void>(RunArgs&)> run,
                                 PlainTactic::Workspace workspace);

// A list of these, as an op has it.
template <auto const&... tactics>
inline constexpr Tactic const* kTactics[] = {&tactics...};

// Tactics from outside the op folders (plugins); asked after the op's own list.
class TacticProvider
{
public:
    virtual ~TacticProvider() = default;
    virtual void tactics(ir::Node const& node, Backend backend, std::vector<Tactic const*>& out) const = 0;
};

// Tactics of the user's own code. What it computes is the user's matter and running it may have effects: the tuner takes
// the first of them that works in the formats, without a run.
class UntunedTactic
{
protected:
    ~UntunedTactic() = default;
};

} // namespace tw::ops
