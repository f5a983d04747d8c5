// SPDX-License-Identifier: Apache-2.0
// Sets whose elements lie below each other and fit into the registers of a block, such as channels of NCHW.
#include <algorithm>
#include <bit>

#include "ops/layer_norm/layout.h"

namespace tw::ops::layer_norm {

namespace columns {
namespace {

constexpr int64_t kLeastLanes = 2, kMostLanes = 32, kMostThreads = 512;
constexpr int64_t kMostPacks = 16; // of a thread, in registers

// Columns that a thread has side by side.
int64_t widthOf(Problem const& problem)
{
    int64_t const inner = layoutOf(problem).sizes(problem.inputs[0].dims).inner;
    int64_t width = 16 / sizeOf(problem.inputs[0].type);
    while (inner % width != 0)
        width /= 2;
    return width;
}
// Large blocks have half the registers.
int64_t mostPacks(Problem const& problem, int64_t width, int64_t threads)
{
    return width * sizeOf(problem.inputs[0].type) == 16 && threads == kMostThreads ? kMostPacks / 2 : kMostPacks;
}
int64_t longestSet(Problem const& problem)
{
    return layoutOf(problem).sizes(problem.inputs[0].maxDims).n;
}
int64_t packsFor(int64_t n, int64_t threads, int64_t lanes)
{
    int64_t const rows = threads / lanes;
    return std::max<int64_t>((n + rows - 1) / rows, 1);
}

Support supports(Problem const& problem)
{
    if (problem.node->attrsAs<Attrs>().integers)
        return Support::no("makes no integers");
    Layout const layout = layoutOf(problem);
    if (!layout.isColumns() || layout.isRows())
        return Support::no("takes sets along neighbouring dimensions with others behind them");
    if (layout.weights() == Layout::Weights::kOther)
        return Support::no("takes gamma and beta along a set or across sets");
    Layout::Sizes const s = layout.sizes(problem.inputs[0].maxDims);
    if (layout.weights() == Layout::Weights::kN && s.count != s.n)
        return Support::no("takes gamma and beta with a number for each element of a set");
    int64_t const most = kMostThreads / kLeastLanes * mostPacks(problem, widthOf(problem), kMostThreads);
    if (s.n > most)
        return Support::no(fmt::format("takes sets of at most {} elements, this one has {}", most, s.n));
    return Support::yes();
}

// {threads, lanes}: lanes for whole sectors of memory, fewer where sets are long or few.
std::vector<Config> configs(Problem const& problem)
{
    Layout::Sizes const s = layoutOf(problem).sizes(problem.inputs[0].maxDims);
    int64_t const width = widthOf(problem), columns = s.sets() / width,
                  processors = problem.target.cuda ? problem.target.cuda->multiprocessors : 1;
    std::vector<Config> list;
    // The widest blocks that reach every multiprocessor, with few elements of a set in a thread.
    constexpr int64_t kFew = 4;
    for (int64_t lanes : {16, 8, 4, 2}) {
        if (list.size() >= 3 || (lanes > 4 && (columns + lanes - 1) / lanes < processors))
            continue;
        for (int64_t threads : {128, 256, 512})
            if (packsFor(s.n, threads, lanes) <=
                (threads == kMostThreads ? mostPacks(problem, width, threads) : kFew)) {
                list.push_back({threads, lanes});
                break;
            }
    }
    return list;
}

std::unique_ptr<CudaKernels> columnKernels(Problem const& problem, int threads, int lanes)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    CudaSource source{.text = constantsOf(problem) +
                              cuda::flag("kByRow", layoutOf(problem).weights() == Layout::Weights::kN) +
                              cuda::constant("kThreads", threads) + cuda::constant("kLanes", lanes) +
                              cuda::constant("kWidth", widthOf(problem)) +
                              cuda::constant("kPacks", packsFor(longestSet(problem), threads, lanes)) +
                              cuda::include("ops/layer_norm/layer_norm_columns.cuh"),
                      .names = {"layer_norm_column_packs", "layer_norm_columns"},
                      .wide = isWide(problem),
                      .isDependent = true};
    return kernelsOf(std::move(source),
                     [&attrs, layout = layoutOf(problem), width = widthOf(problem), threads,
                      lanes](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
                         Layout::Sizes const s = layout.sizes(args.inputs[0].dims);
                         ColumnParams p;
                         setTensors(attrs, args, p);
                         int64_t const by = s.inner % width == 0 && isAligned(p) ? width : 1;
                         p.set(s.outer, s.n, s.inner, by);
                         p.tail = cuda::divBy(std::max<int64_t>(s.tail, 1));
                         p.count = cuda::divBy(std::max<int64_t>(s.count, 1));
                         return launch(by == width ? 0 : 1, s.n == 0 ? 0 : blocksFor(int64_t(p.packs), lanes), threads,
                                       p);
                     });
}

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config)
{
    bool const isKnown = isConfig(config, 2, 2, kMostThreads) && config[0] >= 128 &&
                         std::has_single_bit(uint64_t(config[0])) && std::has_single_bit(uint64_t(config[1])) &&
                         config[1] <= kMostLanes;
    if (!isKnown ||
        packsFor(longestSet(problem), config[0], config[1]) > mostPacks(problem, widthOf(problem), config[0]))
        return noKernels(invalidArgument("the plan's configuration of a layer norm names no kernel"));
    return columnKernels(problem, int(config[0]), int(config[1]));
}

} // namespace
} // namespace columns

constinit CudaTactic const kColumns{"layer_norm_any_columns_cuda", 1, columns::generate, columns::supports,
                                    columns::configs};

} // namespace tw::ops::layer_norm
