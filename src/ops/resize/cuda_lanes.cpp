// SPDX-License-Identifier: Apache-2.0
// Planes mixed linearly whose rows begin anywhere: a lane of a warp makes a row of y, so that all lanes are at the same
// column, whose weights and neighbours are constants.
#include <algorithm>
#include <numeric>

#include "kernels/cuda/common/generate.h"
#include "ops/resize/cuda_scale.h"
#include "ops/resize/resize_params.h"

namespace tw::ops::resize {

namespace lanes {
namespace {

constexpr int64_t kMostShared = 100 * 1024; // bytes of a block
constexpr int64_t kMostWide = 512;          // columns of y: each has code of its own
constexpr int64_t kMostTall = 1 << 16;      // rows of y: each is asked what it sees
constexpr int64_t kEdge = 128;              // bytes: y's piece lies alike in both memories, else it leaves in parts

// A config's numbers.
enum ConfigField
{
    kRows,  // of y, for a block: a lane each
    kParts, // of a row: as many warps share it
    kLate,  // elements, at most, that are read before the first row of x
    kConfigFields,
};

// What is settled when the text is written.
struct Plan : ImagePlan
{
    int64_t parts = 1, late = 0, cells = 0, bytes = 0;

    Plan(Problem const& p, Config const& config) : ImagePlan(p)
    {
        bands.rows = config[kRows];
        parts = config[kParts];
        late = config[kLate];
        bands.seen = seen();
        int64_t const size = sizeOf(p.outputs[0].type);
        cells = cuda::ceilDiv((bands.seen * wide.in + late + 2) * 4, kEdge) * (kEdge / 4);
        bytes = cells * 4 + bands.rows * wide.out * size;
    }
    // Rows of x at most that as many rows of y see, wherever in a plane they begin.
    int64_t seen() const
    {
        auto row = [&](int64_t r, int64_t more) {
            int64_t const plane = r / tall.out, q = (r % tall.out * tall.times + tall.plus) / int64_t(tall.by.d);
            return plane * tall.in + std::clamp<int64_t>(q - 1 + more, 0, tall.in - 1);
        };
        int64_t most = 1;
        for (int64_t r = 0; r < tall.out; ++r)
            most = std::max(most, row(r + bands.rows - 1, 1) - row(r, 0) + 1);
        return most;
    }
};

bool isShape(Config const& c)
{
    return isConfig(c, kConfigFields, 1, 128) && c[kRows] % 32 == 0 && c[kLate] % 4 == 0 && c[kParts] <= 8 &&
           c[kRows] * c[kParts] <= 512;
}

Config const kShapes[] = {{64, 3, 64}, {64, 2, 64}, {64, 8, 32}, {32, 4, 4}}; // the last takes least memory

Support supports(Problem const& p)
{
    TW_SUPPORTS(supportsKnown(p));
    auto const& a = p.node->attrsAs<Attrs>();
    Extents const &x = p.inputs[0].dims, &y = p.outputs[0].dims;
    int64_t const wide = y[y.rank - 1];
    if (a.mode != Mode::kLinear)
        return Support::no("mixes linearly");
    if (wide % 2 == 0 || std::gcd(x[x.rank - 1], int64_t(32)) > 2)
        return Support::no("takes rows of an odd number of elements, which spread over shared memory's banks");
    if (y[y.rank - 2] > kMostTall)
        return Support::no(fmt::format("takes planes of at most {} rows", kMostTall));
    if (wide > kMostWide || x[x.rank - 1] > 2 * wide)
        return Support::no("has code for every column");
    if (Plan(p, kShapes[3]).bytes > kMostShared)
        return Support::no("rows do not fit into shared memory");
    return Support::yes();
}

std::vector<Config> configs(Problem const& p)
{
    std::vector<Config> list;
    for (Config const& c : kShapes)
        if (Plan(p, c).bytes <= kMostShared)
            list.push_back(c);
    return list;
}

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config)
{
    bool const isKnown = isShape(config) && Plan(problem, config).bytes <= kMostShared;
    Plan const plan(problem, isKnown ? config : kShapes[3]);
    CudaSource source = {.text = sizeConstants(plan.tall, plan.wide, plan.bands, false) +
                                 cuda::constant("PARTS", plan.parts) + cuda::constant("EDGE", plan.late) +
                                 cuda::constant("CELLS", plan.cells) +
                                 cuda::type("T", cuda::storageOf(problem.outputs[0].type)) +
                                 cuda::include("ops/resize/resize_lanes.cuh"),
                         .names = {"resize_lanes"},
                         .isDependent = true,
                         .alignment = 16,
                         .sharedBytes = plan.bytes};
    return kernelsOf(std::move(source),
                     [rows = plan.bands.rows, threads = plan.bands.rows * plan.parts,
                      bytes = plan.bytes](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
                         TensorRef const &x = args.inputs[0], &y = args.outputs[0];
                         LaneParams const p{.x = x.data,
                                            .y = y.data,
                                            .elements = x.dims.volume(),
                                            .rows = y.dims.volume(0, y.dims.rank - 1)};
                         return launch(0, cuda::ceilDiv(p.rows, rows), int(threads), p, bytes);
                     });
}

} // namespace
} // namespace lanes

constinit CudaTactic const kLanes{"resize_any_lanes_sm80", 1, lanes::generate, lanes::supports, lanes::configs};

} // namespace tw::ops::resize
