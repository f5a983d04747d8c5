// SPDX-License-Identifier: Apache-2.0
// Sets that are contiguous and fit into the registers of a warp or a block.
#include <algorithm>

#include "ops/layer_norm/layout.h"

namespace tw::ops::layer_norm {

namespace rows {
namespace {

constexpr int64_t kMostPacks = 4; // of a thread: 32 halves in registers
constexpr int64_t kRowThreads[] = {8, 16, 32, 128, 512};
constexpr int64_t kShortPacks = 2; // of a thread, where a set has less than a warp

int64_t longestRow(Problem const& problem)
{
    return layoutOf(problem).sizes(problem.inputs[0].maxDims).setSize();
}

Support supports(Problem const& problem)
{
    if (!layoutOf(problem).isRows())
        return Support::no("takes sets that are contiguous");
    int64_t const most = 512 * kMostPacks * packWidth(problem), n = longestRow(problem);
    if (n > most)
        return Support::no("takes sets of at most " + std::to_string(most) + " elements, this one has " +
                           std::to_string(n));
    return Support::yes();
}

// {threads for a row, threads of a block}: the fewest threads that hold a row, in blocks of one row, which reach every
// multiprocessor when rows are few, or of several; and more threads for a row.
std::vector<Config> configs(Problem const& problem)
{
    constexpr int64_t kBlock = 128;
    int64_t const width = packWidth(problem), n = longestRow(problem);
    int64_t const rows = layoutOf(problem).sizes(problem.inputs[0].dims).sets();
    bool const few = problem.cuda && rows <= int64_t(problem.cuda->multiprocessors) * 8;
    std::vector<Config> list;
    for (int64_t row : kRowThreads) {
        if (row * width * (row < 32 ? kShortPacks : kMostPacks) < n)
            continue;
        if (!list.empty() && (row - kBlock) * width >= n) // too many of them idle
            break;
        if (row < kBlock && few)
            list.push_back({row, std::max<int64_t>(row, 32)});
        list.push_back({row, std::max(row, kBlock)});
        if (list.size() >= 2)
            break;
    }
    return list;
}

CudaSource sourceOf(Problem const& problem, int64_t row, int64_t threads)
{
    int64_t const width = packWidth(problem), n = longestRow(problem),
                  packs = std::max<int64_t>((n + row * width - 1) / (row * width), 1);
    bool early = true;
    for (size_t i = 1; i < problem.inputs.size(); ++i)
        early = early && problem.inputs[i].constant;
    return {.text = rowConstantsOf(problem, layoutOf(problem), width) + cuda::flag("kEarly", early) +
                    cuda::constant("kRow", row) + cuda::constant("kThreads", threads) +
                    cuda::constant("kWidth", width) + cuda::constant("kPacks", packs) +
                    cuda::include("ops/layer_norm/layer_norm_rows.cuh"),
            .names = {"layer_norm_packs", "layer_norm_elements"},
            .wide = isWide(problem),
            .isDependent = true};
}

std::unique_ptr<CudaKernels> rowKernels(Problem const& problem, int64_t row, int64_t threads)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    return kernelsOf(sourceOf(problem, row, threads),
                     [&attrs, layout = layoutOf(problem), width = packWidth(problem), row,
                      threads](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
                         RowParams p;
                         setTensors(attrs, args, p);
                         setRows(layout.sizes(args.inputs[0].dims), args, p);
                         uint64_t const lengths = p.n | p.xPitch | p.yPitch;
                         bool const packed = lengths % uint64_t(width) == 0 && isAligned(p);
                         int64_t const blocks = p.n == 0 ? 0 : blocksFor(int64_t(p.sets), int(threads / row));
                         return launch(packed ? 0 : 1, blocks, int(threads), p);
                     });
}

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config)
{
    if (!isConfig(config, 2, 8, 512) || config[1] % 32 != 0 ||
        std::find(kRowThreads, std::end(kRowThreads), config[0]) == std::end(kRowThreads) || config[1] % config[0] != 0)
        return noKernels(invalidArgument("the plan's configuration of a layer norm names no kernel"));
    return rowKernels(problem, config[0], config[1]);
}

} // namespace
} // namespace rows

constinit CudaTactic const kRows{
    "layer_norm_any_rows_cuda", 5, rows::generate, rows::supports, rows::configs, withPixels};

} // namespace tw::ops::layer_norm
