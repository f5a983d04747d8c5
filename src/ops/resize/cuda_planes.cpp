// SPDX-License-Identifier: Apache-2.0
// Resizing of planes of FP16 and FP32 in linear tensors: nearest, and linear mixes of 2 x 2 elements; a block makes the
// same few rows of several planes from rows of x in shared memory.
#include <algorithm>

#include "kernels/cuda/common/generate.h"
#include "ops/resize/cuda_scale.h"
#include "ops/resize/resize_params.h"

namespace tw::ops::resize {

namespace planes {
namespace {

constexpr int64_t kMostShared = 64 * 1024; // bytes of a block
constexpr int64_t kFewShared = 28 * 1024;  // so that several blocks share a multiprocessor
constexpr int64_t kMostKnown = 256;        // rows of y times pairs of columns that have code of their own
constexpr int64_t kMostFloat = 1 << 24;    // whole numbers that a float holds

// A config's numbers.
enum ConfigField
{
    kThreads, // of a block
    kPairs,   // of columns, that a thread walks down with
    kRows,    // of y, at most, for a block
    kConfigFields,
};

// What is settled when the text is written.
struct Plan : ImagePlan
{
    int64_t threads = 256, pairs = 1, perBlock = 1, bytes = 0; // perBlock: planes
    bool isStaged = false;                                     // rows of y leave through shared memory
    bool isConverted = false;                                  // FP16 stands in shared memory as floats
    bool isInWarps = false;                                    // planes have warps of their own

    Plan(Problem const& p, Config const& config) : ImagePlan(p)
    {
        auto const& a = p.node->attrsAs<Attrs>();
        threads = config[kThreads];
        pairs = config[kPairs];
        DataType const t = p.outputs[0].type;
        bool const isNearest = a.mode == Mode::kNearest;
        isStaged = wide.out % 2 != 0;
        isConverted = !isStaged && !isNearest && isNarrowFloat(t);
        int64_t const slots = cuda::ceilDiv(wide.out, 2), work = threads * pairs,
                      most = std::max<int64_t>(work / slots, 1);
        isInWarps = work / (cuda::ceilDiv(slots, 32) * 32) == most;
        for (perBlock = most;; perBlock = (perBlock + 1) / 2)
            for (int64_t want = config[kRows];; want = (want + 1) / 2) {
                setRows(want, t, isNearest);
                if (bytes <= kFewShared || (perBlock == 1 && (want == 1 || (want <= 4 && bytes <= kMostShared))))
                    return;
                if (want <= 4 && perBlock > 1)
                    break;
            }
    }
    // Every band has its own code where they differ.
    bool isKnown() const { return bands.isPeriodic || tall.out * pairs <= kMostKnown; }
    void setRows(int64_t want, DataType t, bool isNearest)
    {
        bands = bandsOf(tall, want, isNearest);
        int64_t const load = 16 / sizeOf(t), cell = isConverted ? 4 : sizeOf(t);
        bytes = perBlock * ((bands.seen * wide.in + 2 * (load - 1)) / load * load * cell +
                            (isStaged ? (bands.rows * wide.out + 2 * (load - 1)) / load * 16 : 0));
    }
};

CudaSource sourceOf(Problem const& problem, Plan const& plan)
{
    DataType const t = problem.outputs[0].type;
    bool const isNearest = problem.node->attrsAs<Attrs>().mode == Mode::kNearest;
    char const* const element = isNearest ? cuda::unitOf(sizeOf(t)) : cuda::storageOf(t);
    bool const isWhole = plan.tall.in * plan.wide.in * sizeOf(t) % 16 == 0; // every load ends within x
    using cuda::constant;
    return {.text = sizeConstants(plan.tall, plan.wide, plan.bands, isNearest) + constant("THREADS", plan.threads) +
                    constant("PAIRS", plan.pairs) + constant("PER_BLOCK", plan.perBlock) +
                    cuda::flag("IS_KNOWN", plan.isKnown()) + cuda::flag("IN_WARPS", plan.isInWarps) +
                    cuda::flag("IS_WHOLE", isWhole) + cuda::type("T", element) +
                    cuda::type("Value", isNearest ? "T" : "float") +
                    cuda::type("Cell", plan.isConverted ? "float" : "T") +
                    cuda::include("ops/resize/resize_planes.cuh"),
            .names = {"resize_planes"},
            .isDependent = true,
            .alignment = 16,
            .sharedBytes = plan.bytes};
}

Support supports(Problem const& p)
{
    TW_SUPPORTS(supportsKnown(p));
    int const rank = p.inputs[0].dims.rank;
    // Three rows of x and one of y.
    if (3 * (p.inputs[0].dims[rank - 1] + 8) * 4 + (p.outputs[0].dims[rank - 1] + 8) * 4 > kMostShared)
        return Support::no("rows do not fit into shared memory");
    Scale const tall = scaleOf(p.node->attrsAs<Attrs>(),
                               axisOf(p.node->attrsAs<Attrs>(), p.inputs[0].dims, p.outputs[0].dims, rank - 2));
    if (tall.times + 2 * int64_t(tall.by.d) > kMostFloat)
        return Support::no("keeps distances between rows in floats");
    return Support::yes();
}

std::vector<Config> configs(Problem const& p)
{
    if (kLanes.supports(p).ok) // which is faster
        return {{128, 1, 32}};
    if (p.outputs[0].dims[p.outputs[0].dims.rank - 1] % 2 != 0)
        return {{128, 1, 32}, {128, 1, 16}, {256, 1, 16}};
    return {{256, 1, 32}, {256, 1, 16}, {128, 1, 16}};
}

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config)
{
    bool const isKnown = isConfig(config, kConfigFields, 1, 1024) &&
                         (config[kThreads] == 128 || config[kThreads] == 256) && config[kPairs] <= 4 &&
                         config[kRows] <= 64;
    Plan const plan(problem, isKnown ? config : Config{256, 1, 16});
    return kernelsOf(sourceOf(problem, plan), [plan](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        PlaneParams const p{
            .x = x.data, .y = y.data, .elements = x.dims.volume(), .planes = y.dims.volume(0, y.dims.rank - 2)};
        int64_t const groups = cuda::ceilDiv(p.planes, plan.perBlock);
        if (plan.isKnown() && !plan.bands.isPeriodic)
            return launch.grid(0, groups, plan.bands.count, 1, int(plan.threads), p, plan.bytes);
        return launch(0, plan.bands.count * groups, int(plan.threads), p, plan.bytes);
    });
}

} // namespace
} // namespace planes

constinit CudaTactic const kPlanes{"resize_any_planes_cuda", 1, planes::generate, planes::supports, planes::configs};

} // namespace tw::ops::resize
