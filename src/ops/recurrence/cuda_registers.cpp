// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/launch.h"
#include "ops/recurrence/cuda_products.h"
#include "ops/recurrence/tactics.h"

namespace tw::ops::recurrence::registers {

namespace {

using cuda::ceilDiv;

constexpr int64_t kMostBatch = 256, kMostCluster = 16, kMostThreads = 512, kAlign = 256;
constexpr size_t kMostConfigs = 5, kMostOfKind = 3; // of a way that states go
constexpr int64_t kFewBytes = 8192;
constexpr int64_t kSmall = 64; // hidden units of a layer whose launches take all the time

enum Exchange : int64_t // as kExchange of recurrence_registers.cuh
{
    kInBlock = 0,
    kInCluster = 1,
    kInMemory = 2,
};

// What the source and the launch share; sizes as in recurrence_registers.cuh.
struct Plan
{
    int64_t exchange = kInBlock, warpUnits = 8, unitWarps = 1, partWarps = 1, groups = 1, sideBySide = 1;
    int64_t hidden = 1, batch = 1, gates = 1, directions = 1;
    bool waitsForOne = false;

    int64_t groupSize(int64_t sequences) const { return std::max<int64_t>(1, ceilDiv(sequences, groups)); }
    int64_t columns() const
    {
        int64_t const size = groupSize(batch);
        return size <= 8 ? 1 : size <= 16 ? 2 : 4;
    }
    int64_t units() const { return warpUnits * unitWarps; }
    int64_t blocks() const { return ceilDiv(hidden, units()); } // of a direction and group
    int64_t warps() const { return unitWarps * partWarps; }
    int64_t threads() const { return warps() * 32; }
    int64_t tiles() const { return warpUnits == 16 ? gates : ceilDiv(gates, 2); }
    int64_t parts() const { return ceilDiv(hidden, 32); }
    int64_t warpParts() const { return ceilDiv(parts(), partWarps); }
    int64_t items() const { return warpUnits / 8 * columns() * 2; }
    int64_t own() const { return ceilDiv(items(), partWarps); }
    int64_t rowBytes() const { return parts() * 64; }
    // Many bytes for each block in each step: see kWaitsForOne in recurrence_registers.cuh.
    bool mayWaitForOne() const
    {
        return exchange == kInMemory && unitWarps * groupSize(batch) * rowBytes() > kFewBytes;
    }
    int64_t sharedBytes() const
    {
        int64_t const buffers = exchange == kInMemory ? 0 : 2 * parts() * columns() * 512;
        int64_t const sums =
            partWarps > 1 ? (exchange == kInMemory ? 2 : 1) * unitWarps * items() * partWarps * 512 : 0;
        int64_t const stage = exchange == kInBlock ? 0 : warps() * own() * 64;
        return buffers + sums + stage + (gates + 1) * units() * 4 + 16;
    }
    int64_t exchangeBytes(Sizes const& s) const
    {
        return exchange == kInMemory ? directions * groups * s.steps * groupSize(s.batch) * rowBytes() : 0;
    }
    // About what a thread needs: weights, sums, states on their way, what belongs to its items, addresses.
    int64_t registers() const
    {
        int64_t const tileRegisters = warpUnits == 16 ? gates * 8 : gates * 4;
        int64_t const ahead = exchange == kInMemory ? warpParts() * columns() * 4 : 8;
        return warpParts() * tileRegisters + tiles() * columns() * 4 + ahead + own() * (2 * gates + 2) + 28;
    }
    bool fits(cuda::Target const& target) const
    {
        int64_t const most = threads() <= 256 ? 255 : threads() <= 384 ? 168 : 128;
        return threads() <= kMostThreads && (partWarps == 1 || unitWarps < 16) && registers() <= most &&
               sharedBytes() <= cuda::sharedLimitOf(target.capability) && (exchange != kInBlock || blocks() == 1) &&
               (exchange != kInCluster || (blocks() > 1 && blocks() <= kMostCluster)) &&
               (exchange != kInMemory || blocks() * groups * sideBySide <= target.multiprocessors);
    }
    // Of a step, in about cycles.
    double guess(cuda::Target const& target) const
    {
        double const size = double(groupSize(batch)), all = double(blocks() * groups * sideBySide);
        // A product of matrices takes a quarter of a multiprocessor 8 cycles, and 33 until its sum can be added to.
        double const products = double(warps() * warpParts() * 2 * tiles() * columns()) / 4 * 8;
        double const chain = double(warpParts() * 2) * 33;
        double const live = std::max(1.0, std::ceil(size / 4) * double(warpUnits / 8) / double(partWarps));
        double const functions = 150 + live * double(gates * 14 + 20) * std::ceil(double(warps()) / 4);
        double const sums = partWarps > 1 ? 60 + size / 4 * double(warpUnits / 8 * warps()) * 8 : 0;
        double const stateBytes = double(unitWarps * hidden * 2) * size;
        double const read = exchange == kInMemory ? stateBytes * std::max(1.0 / 40, all / 3200) : stateBytes / 128;
        double const exchanged = exchange == kInBlock ? 80
                                 : exchange == kInCluster
                                     ? 450 + 3.5 * double(ceilDiv(hidden, 8)) * size // each chunk is counted
                                     : 1900;
        double const waves = std::ceil(all / target.multiprocessors) * double(ceilDiv(directions, sideBySide));
        return waves * (std::max(products, chain) + (exchange == kInMemory ? read : 0) + functions + sums + exchanged);
    }
};

Plan planOf(Problem const& p, Config const& config)
{
    auto const& a = p.node->attrsAs<Attrs>();
    Plan out{.exchange = config[0],
             .warpUnits = config[1],
             .unitWarps = config[2],
             .partWarps = config[3],
             .groups = config[4],
             .sideBySide = config[5],
             .hidden = a.hidden,
             .batch = std::max<int64_t>(1, sizesOf(a, p.inputs[kX].maxDims).batch),
             .gates = gatesOf(a.cell),
             .directions = directionsOf(a),
             .waitsForOne = config[6] != 0};
    return out;
}

// Those that the model takes for the fastest, best first; what an exchange takes is its weakest figure.
std::vector<Config> configs(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    int64_t const batch = std::max<int64_t>(1, sizesOf(a, p.inputs[kX].maxDims).batch);
    std::vector<cuda::Guess<Config>> all;
    auto add = [&](Exchange exchange, int64_t units) {
        for (int64_t warpUnits : {8, 16})
            for (int64_t partWarps = 1; partWarps <= 16; partWarps *= 2)
                for (int64_t size = 4; size == 4 || (size < 2 * batch && size <= 32); size *= 2)
                    for (int64_t side = directionsOf(a); side > 0; --side) {
                        if (partWarps > ceilDiv(a.hidden, 32) || ceilDiv(units, 8) % (warpUnits / 8))
                            continue;
                        for (int64_t waitsForOne : {1, 0}) {
                            Config const config{
                                exchange, warpUnits,  ceilDiv(units, warpUnits), partWarps, ceilDiv(batch, size),
                                side,     waitsForOne};
                            Plan const plan = planOf(p, config);
                            auto const same = [&](auto const& other) { return other.spec == config; };
                            if (plan.fits(*p.target.cuda) && (!waitsForOne || plan.mayWaitForOne()) &&
                                std::none_of(all.begin(), all.end(), same))
                                all.push_back({plan.guess(*p.target.cuda), config});
                        }
                    }
    };
    add(kInBlock, ceilDiv(a.hidden, 16) * 16);
    add(kInBlock, ceilDiv(a.hidden, 8) * 8);
    for (int64_t blocks = 2; blocks <= kMostCluster; blocks *= 2)
        add(kInCluster, ceilDiv(ceilDiv(a.hidden, blocks), 8) * 8);
    for (int64_t units : {8, 16, 32})
        add(kInMemory, units);
    cuda::sortGuesses(all);
    std::vector<Config> list;
    size_t ofKind[3] = {};
    for (auto const& guess : all)
        if (list.size() < (a.hidden < kSmall ? 1 : kMostConfigs) && ofKind[guess.spec[0]]++ < kMostOfKind)
            list.push_back(guess.spec);
    return list;
}

Support supports(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    if (!p.target.cuda || p.target.cuda->capability < 90 ||
        cuda::sharedLimitOf(p.target.cuda->capability) != cuda::kSharedLimit)
        return Support::no("needs compute capability 9.0 or 10.0");
    if (p.target.cuda->device && !p.target.cuda->device->driver().cuLaunchKernelEx)
        return Support::no("needs a driver of CUDA 12, for clusters and cooperative launches");
    if (p.inputs[kX].type != DataType::kHalf)
        return Support::no(std::string("computes in f16, x is ") + nameOf(p.inputs[kX].type));
    if (a.cell == Cell::kGru && !a.linearBeforeReset)
        return Support::no("takes GRU cells that multiply states before the reset gate acts");
    if (sizesOf(a, p.inputs[kX].maxDims).batch > kMostBatch)
        return Support::no(fmt::format("takes batches of up to {} sequences", kMostBatch));
    if (configs(p).empty())
        return Support::no("the recurrent weights do not fit into the multiprocessors' registers");
    return InputProducts::supports(p);
}

// Whether no kernel before writes an input.
bool isKnown(Problem const& p, size_t input)
{
    return p.inputs.size() <= input || !p.inputs[input].present || p.inputs[input].constant;
}

class RegistersKernels final : public CudaKernels
{
public:
    RegistersKernels(Problem const& p, Config const& config)
        : CudaKernels(sourceOf(p, planOf(p, config))), attrs_(p.node->attrsAs<Attrs>()), plan_(planOf(p, config)),
          products_(p)
    {}
    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const>) const override
    {
        Sizes const s = sizesOf(attrs_, in[kX].dims);
        return productsAt(s) + products_.bytes(s);
    }
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override;

private:
    static CudaSource sourceOf(Problem const& p, Plan const& plan);
    // Behind the exchanged states.
    int64_t productsAt(Sizes const& s) const { return ceilDiv(plan_.exchangeBytes(s), kAlign) * kAlign; }

    Attrs const attrs_;
    Plan const plan_;
    InputProducts const products_;
};

CudaSource RegistersKernels::sourceOf(Problem const& p, Plan const& plan)
{
    CudaSource out;
    out.text = attrsText(p, true) + cuda::constant("kHidden", plan.hidden) +
               cuda::constant("kExchange", plan.exchange) + cuda::constant("kWarpUnits", plan.warpUnits) +
               cuda::constant("kUnitWarps", plan.unitWarps) + cuda::constant("kPartWarps", plan.partWarps) +
               cuda::constant("kColumns", plan.columns()) + cuda::flag("kWaitsForOne", plan.waitsForOne) +
               cuda::flag("kKnownWeights", isKnown(p, kR) && isKnown(p, kBias)) +
               cuda::include("ops/recurrence/recurrence_registers.cuh");
    out.names = {"recurrence_registers"};
    out.sharedBytes = plan.sharedBytes();
    out.alignment = 16;
    out.isDependent = plan.exchange != kInMemory; // nor are cooperative launches
    InputProducts(p).addTo(out);
    return out;
}

Result<void> RegistersKernels::run(CudaLaunch const& launch, RunArgs& args) const
{
    Sizes const s = sizesOf(attrs_, args.inputs[kX].dims);
    PersistentParams p;
    static_cast<Params&>(p) = recurrence::paramsOf(attrs_, args);
    auto* const workspace = static_cast<std::byte*>(args.workspace);
    p.exchange = workspace;
    p.blocks = int(plan_.blocks());
    p.groups = int(plan_.groups);
    p.groupSize = int(plan_.groupSize(s.batch));
    products_.describe(p, s, workspace + productsAt(s));
    auto const& driver = launch.device().driver();
    // The kernel's kEmpty everywhere.
    if (int64_t const bytes = plan_.exchangeBytes(s); bytes > 0)
        TW_TRY(driver.check(driver.cuMemsetD8Async(cuda::addressOf(p.exchange), 0xFF, size_t(bytes), launch.stream()),
                            "cuMemsetD8Async"));
    TW_TRY(products_.run(launch, s, p));
    cuda::LaunchGeometry g;
    g.grid = plan_.blocks() * plan_.sideBySide * plan_.groups;
    g.block = int(plan_.threads());
    g.cluster = plan_.exchange == kInMemory ? cuda::kWholeGrid : int(plan_.blocks());
    g.sharedBytes = plan_.sharedBytes();
    for (; p.firstDirection < plan_.directions; p.firstDirection += int(plan_.sideBySide))
        TW_TRY(launch.withGeometry(0, g, {&p}));
    return {};
}

// Microseconds.
double estimate(Problem const& p, Config const& config)
{
    constexpr double kCycles = 1700, kOperations = 4e8; // of a microsecond
    Sizes const s = sizesOf(p.node->attrsAs<Attrs>(), p.inputs[kX].dims);
    double const columns = double(s.directions * s.gates * s.hidden);
    return 6 + double(s.steps) * planOf(p, config).guess(*p.target.cuda) / kCycles +
           2 * double(s.steps * s.batch * s.inputs) * columns / kOperations;
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config)
{
    std::vector<Config> const list = configs(p);
    if (std::find(list.begin(), list.end(), config) == list.end())
        return noKernels(invalidArgument("the plan's configuration of a recurrent layer names no kernel"));
    return std::make_unique<RegistersKernels>(p, config);
}

} // namespace

constinit CudaTactic const kF16{"recurrence_f16_registers_sm90", 1, generate, supports, configs, nullptr, estimate};

} // namespace tw::ops::recurrence::registers
