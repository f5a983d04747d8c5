// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/launch.h"
#include "ops/recurrence/cuda_products.h"
#include "ops/recurrence/tactics.h"

namespace tw::ops::recurrence::persistent {

namespace {

using cuda::ceilDiv;

constexpr int64_t kThreads = 256, kWarps = kThreads / 32, kMostBatch = 256, kAlign = 256;
constexpr size_t kMostConfigs = 3; // of a kind
constexpr int64_t kMostCluster = 16;
constexpr int64_t kSmall = 64; // hidden units of a layer whose launches and barriers take all the time

int64_t aligned(int64_t bytes)
{
    return ceilDiv(bytes, kAlign) * kAlign;
}

// What the source and the launch share; sizes as in recurrence_persistent.cuh.
struct Plan
{
    int64_t hidden = 1, units = 8, sideBySide = 1, batch = 1, gates = 1, directions = 1, elementBytes = 4;
    int64_t groups = 1; // of sequences
    bool resetsState = false, isCluster = false;

    int64_t groupSize(int64_t sequences) const { return std::max<int64_t>(1, ceilDiv(sequences, groups)); }
    int64_t buffers() const { return resetsState ? 3 : 2; }
    int64_t blocks() const { return ceilDiv(hidden, units); } // of a direction
    int64_t part() const { return 64 / elementBytes; }
    int64_t parts() const { return ceilDiv(hidden, part()); }
    int64_t padded() const { return parts() * part(); }
    int64_t stride() const { return parts() * 64 + (parts() % 2 ? 0 : 64); }
    // Groups of 8 sequences at once: sums of a thread and of all warps are limited.
    int64_t columns() const
    {
        int64_t const size = groupSize(batch), wanted = size <= 8 ? 1 : size <= 16 ? 2 : 4;
        return std::min(wanted, std::max<int64_t>(1, 16 / ceilDiv(gates * units, 16)));
    }
    int64_t rowWarps() const
    {
        int64_t const tiles = ceilDiv((resetsState ? 1 : gates) * units, 16);
        return !isCluster || tiles < 2 ? 1 : tiles < 4 ? 2 : tiles < 8 ? 4 : 8;
    }
    int64_t sharedBytes(int64_t sequences) const
    {
        int64_t const size = groupSize(sequences);
        int64_t const sums = std::min(parts(), kWarps / rowWarps()) * gates * units * (columns() * 8 + 1) * 4;
        int64_t const own = gates * units * stride() + sums + size * (units * 8 + 4);
        return isCluster ? ceilDiv(own, 16) * 16 + buffers() * size * stride() : own;
    }
    int64_t barriers() const { return directions * groups; }
    int64_t exchangeBytes(int64_t sequences) const
    {
        return isCluster ? 0 : barriers() * buffers() * groupSize(sequences) * padded() * elementBytes;
    }
};

Plan planOf(Problem const& p, Config const& config)
{
    auto const& a = p.node->attrsAs<Attrs>();
    Plan out{.hidden = a.hidden,
             .units = config[0],
             .sideBySide = config[1],
             .batch = std::max<int64_t>(1, sizesOf(a, p.inputs[kX].maxDims).batch),
             .gates = gatesOf(a.cell),
             .directions = directionsOf(a),
             .elementBytes = sizeOf(p.inputs[kX].type),
             .groups = config[2],
             .resetsState = a.cell == Cell::kGru && !a.linearBeforeReset,
             .isCluster = config[3] != 0};
    return out;
}

// Whether all blocks find a multiprocessor each.
bool fits(Plan const& plan, cuda::Target const& target)
{
    bool const hasClusters = target.capability >= 90 && cuda::sharedLimitOf(target.capability) == cuda::kSharedLimit;
    return (!plan.isCluster || (hasClusters && plan.blocks() <= kMostCluster)) &&
           plan.blocks() * plan.sideBySide * plan.groups <= target.multiprocessors &&
           plan.sharedBytes(plan.batch) <= cuda::sharedLimitOf(target.capability);
}

// Clusters have the faster barrier; few units first: more blocks share the work.
std::vector<Config> configs(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    int64_t const batch = sizesOf(a, p.inputs[kX].maxDims).batch;
    std::vector<Config> list;
    // At most so many, for groups of `size` sequences.
    auto add = [&](bool isCluster, int64_t size, size_t most) {
        for (int64_t units : {4, 8, 16, 32, 64})
            for (int64_t side = directionsOf(a); side > 0; --side) {
                Config const config{units, side, std::max<int64_t>(1, ceilDiv(batch, size)), isCluster};
                if (most > 0 && fits(planOf(p, config), *p.target.cuda) &&
                    std::find(list.begin(), list.end(), config) == list.end()) {
                    list.push_back(config);
                    --most;
                }
            }
    };
    bool const isSecond = registers::kF16.supports(p).ok; // little is left to win
    size_t const most = a.hidden < kSmall || isSecond ? 1 : kMostConfigs;
    for (int64_t size = 8; size <= kMostBatch && list.size() < most; size *= 2)
        add(true, size, std::min(most - list.size(), most / 2 + 1));
    bool const hasClusters = !list.empty();
    if (!isSecond || !hasClusters)
        add(false, kMostBatch, hasClusters ? 1 : most);
    if (batch > 16 && !hasClusters)
        add(false, 16, most / 2 + 1);
    return list;
}

Support supportsSizes(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    Sizes const most = sizesOf(a, p.inputs[kX].maxDims);
    if (most.batch > kMostBatch)
        return Support::no(fmt::format("takes batches of up to {} sequences", kMostBatch));
    if (configs(p).empty())
        return Support::no("the recurrent weights do not fit into the multiprocessors' shared memory");
    return InputProducts::supports(p);
}

Support supportsType(Problem const& p, DataType type)
{
    if (!p.target.cuda || p.target.cuda->capability < 80)
        return Support::no("needs compute capability 8.0");
    if (p.target.cuda->device && !p.target.cuda->device->driver().cuLaunchKernelEx)
        return Support::no("needs a driver of CUDA 12, for cooperative launches");
    if (p.inputs[kX].type != type)
        return Support::no(std::string("computes in ") + nameOf(type) + ", x is " + nameOf(p.inputs[kX].type));
    return supportsSizes(p);
}
template <DataType type>
Support supports(Problem const& p)
{
    return supportsType(p, type);
}

class PersistentKernels final : public CudaKernels
{
public:
    PersistentKernels(Problem const& p, Config const& config)
        : CudaKernels(sourceOf(p, planOf(p, config))), attrs_(p.node->attrsAs<Attrs>()), plan_(planOf(p, config)),
          products_(p)
    {}
    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const>) const override
    {
        return placesOf(sizesOf(attrs_, in[kX].dims)).end;
    }
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override;

private:
    // Bytes, in the workspace; counters are in front.
    struct Places
    {
        int64_t exchange, products, end;
    };
    static CudaSource sourceOf(Problem const& p, Plan const& plan);
    Places placesOf(Sizes const& s) const
    {
        Places at{};
        at.exchange = aligned(plan_.barriers() * kCounterWords * int64_t(sizeof(uint32_t)));
        at.products = at.exchange + aligned(plan_.exchangeBytes(s.batch));
        at.end = at.products + products_.bytes(s);
        return at;
    }
    PersistentParams paramsOf(Sizes const& s, RunArgs const& args) const;
    Result<void> clear(CudaLaunch const& launch, Sizes const& s, PersistentParams const& p) const;

    Attrs const attrs_;
    Plan const plan_;
    InputProducts const products_;
};

CudaSource PersistentKernels::sourceOf(Problem const& p, Plan const& plan)
{
    CudaSource out;
    out.text = attrsText(p, plan.elementBytes == 2) + cuda::constant("kHidden", plan.hidden) +
               cuda::constant("kUnits", plan.units) + cuda::constant("kColumns", plan.columns()) +
               cuda::flag("kCluster", plan.isCluster) + cuda::flag("TF32X3", true) +
               cuda::include("ops/recurrence/recurrence_persistent.cuh");
    out.names = {"recurrence_persistent"};
    out.sharedBytes = plan.sharedBytes(plan.batch);
    out.alignment = 16;
    InputProducts(p).addTo(out);
    return out;
}

PersistentParams PersistentKernels::paramsOf(Sizes const& s, RunArgs const& args) const
{
    PersistentParams p;
    static_cast<Params&>(p) = recurrence::paramsOf(attrs_, args);
    auto* const workspace = static_cast<std::byte*>(args.workspace);
    Places const at = placesOf(s);
    p.counters = static_cast<cuda::u32*>(args.workspace);
    p.exchange = workspace + at.exchange;
    products_.describe(p, s, workspace + at.products);
    p.blocks = int(plan_.blocks());
    p.groups = int(plan_.groups);
    p.groupSize = int(plan_.groupSize(s.batch));
    return p;
}

// Counters; states too where rows end in numbers that no block writes.
Result<void> PersistentKernels::clear(CudaLaunch const& launch, Sizes const& s, PersistentParams const& p) const
{
    Places const at = placesOf(s);
    int64_t const bytes = plan_.padded() == plan_.hidden ? at.exchange : at.products;
    auto const& driver = launch.device().driver();
    return driver.check(driver.cuMemsetD8Async(cuda::addressOf(p.counters), 0, size_t(bytes), launch.stream()),
                        "cuMemsetD8Async");
}

Result<void> PersistentKernels::run(CudaLaunch const& launch, RunArgs& args) const
{
    Sizes const s = sizesOf(attrs_, args.inputs[kX].dims);
    PersistentParams p = paramsOf(s, args);
    TW_TRY(clear(launch, s, p));
    TW_TRY(products_.run(launch, s, p));
    cuda::LaunchGeometry g;
    g.grid = plan_.blocks() * plan_.sideBySide * plan_.groups;
    g.block = int(kThreads);
    g.cluster = plan_.isCluster ? int(plan_.blocks()) : cuda::kWholeGrid;
    g.sharedBytes = plan_.sharedBytes(s.batch);
    for (; p.firstDirection < plan_.directions; p.firstDirection += int(plan_.sideBySide))
        TW_TRY(launch.withGeometry(0, g, {&p}));
    return {};
}

// Microseconds, as measured on an H200: a barrier, the products of a block, the product of x.
double estimate(Problem const& p, Config const& config)
{
    Plan const plan = planOf(p, config);
    Sizes const s = sizesOf(p.node->attrsAs<Attrs>(), p.inputs[kX].dims);
    double const rate = plan.elementBytes == 2 ? 2.8e5 : 6.5e4, barrier = plan.isCluster ? 1.5 : 2.5;
    double const columns = double(plan.gates * plan.hidden), rows = double(s.steps * s.batch);
    double const step = barrier + double(plan.gates * plan.units * plan.hidden * plan.groupSize(s.batch)) / rate;
    return 6 + double(s.steps * (plan.directions / plan.sideBySide)) * step * (plan.resetsState ? 1.3 : 1) +
           2 * rows * double(s.inputs * plan.directions) * columns / (plan.elementBytes == 2 ? 4e8 : 4e7);
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config)
{
    std::vector<Config> const list = configs(p);
    if (std::find(list.begin(), list.end(), config) == list.end())
        return noKernels(invalidArgument("the plan's configuration of a recurrent layer names no kernel"));
    return std::make_unique<PersistentKernels>(p, config);
}

} // namespace

constinit CudaTactic const kF16{
    "recurrence_f16_persistent_sm80", 3, generate, supports<DataType::kHalf>, configs, nullptr, estimate};
constinit CudaTactic const kF32{
    "recurrence_f32_persistent_sm80", 3, generate, supports<DataType::kFloat>, configs, nullptr, estimate};

} // namespace tw::ops::recurrence::persistent
