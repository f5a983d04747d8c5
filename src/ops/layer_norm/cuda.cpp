// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/layer_norm/layout.h"

namespace tw::ops::layer_norm {

namespace {

// ---- Sets that are contiguous and too long for one block.

namespace chunks {

constexpr int kThreads = 256;

int64_t chunkOf(Problem const& problem, int64_t packs)
{
    return kThreads * packs * packWidth(problem);
}

int64_t chunksOf(int64_t n, int64_t chunk)
{
    return (n + chunk - 1) / chunk;
}

Support supports(Problem const& problem)
{
    constexpr int64_t kLeast = 2048, kMostBlocks = int64_t(1) << 30; // shorter sets have one block each
    if (problem.node->attrsAs<Attrs>().integers)
        return Support::no("makes no integers");
    Layout const layout = layoutOf(problem);
    if (!layout.isRows())
        return Support::no("takes sets that are contiguous");
    Layout::Sizes const s = layout.sizes(problem.inputs[0].maxDims);
    if (s.setSize() < kLeast)
        return Support::no(fmt::format("leaves sets of less than {} elements to others", kLeast));
    if (s.sets() * chunksOf(s.setSize(), chunkOf(problem, 1)) > kMostBlocks)
        return Support::no("takes at most 2^30 chunks");
    return Support::yes();
}

// {packs of a thread}: small chunks reach every multiprocessor when there is little to do, large ones read less twice.
std::vector<Config> configs(Problem const& problem)
{
    Layout::Sizes const s = layoutOf(problem).sizes(problem.inputs[0].dims);
    auto blocks = [&](int64_t packs) { return s.sets() * chunksOf(s.setSize(), chunkOf(problem, packs)); };
    int64_t const many = problem.target.cuda ? int64_t(problem.target.cuda->multiprocessors) * 4 : 1;
    if (blocks(4) >= many)
        return {{4}, {2}};
    return blocks(2) >= many ? std::vector<Config>{{2}, {1}} : std::vector<Config>{{1}, {2}};
}

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config)
{
    if (!isConfig(config, 1, 1, 4) || config[0] == 3)
        return noKernels(invalidArgument("the plan's configuration of a layer norm names no kernel"));
    int64_t const packs = config[0];
    auto const& attrs = problem.node->attrsAs<Attrs>();
    CudaSource source{.text = rowConstantsOf(problem, layoutOf(problem), packWidth(problem)) +
                              cuda::constant("kThreads", kThreads) + cuda::constant("kWidth", packWidth(problem)) +
                              cuda::constant("kPacks", packs) + cuda::include("ops/layer_norm/layer_norm_chunks.cuh"),
                      .names = {"measure_packs", "normalize_packs", "measure_elements", "normalize_elements"},
                      .wide = isWide(problem),
                      .isDependent = true};
    return kernelsOf(
        std::move(source),
        [&attrs, layout = layoutOf(problem), width = packWidth(problem),
         chunk = chunkOf(problem, packs)](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            RowParams p;
            setTensors(attrs, args, p);
            setRows(layout.sizes(args.inputs[0].dims), args, p);
            p.parts = args.workspace;
            int64_t const chunks = chunksOf(int64_t(p.n), chunk), blocks = int64_t(p.sets) * chunks;
            p.chunks = cuda::divBy(std::max<int64_t>(chunks, 1));
            int const first = p.n % uint64_t(width) == 0 && isAligned(p) ? 0 : 2;
            TW_TRY(launch(first, blocks, kThreads, p));
            return launch(first + 1, blocks, kThreads, p);
        },
        [layout = layoutOf(problem), chunk = chunkOf(problem, packs)](std::span<TensorRef const> in,
                                                                      std::span<TensorRef const>) {
            Layout::Sizes const s = layout.sizes(in[0].dims);
            return s.sets() * chunksOf(s.setSize(), chunk) * int64_t(2 * sizeof(float));
        });
}

} // namespace chunks

constexpr CudaTactic kChunks{"layer_norm_any_chunks_cuda", 2, chunks::generate, chunks::supports, chunks::configs};

// ---- Sets that are contiguous and fit into the registers of a warp or a block.

namespace rows {

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
        return Support::no(fmt::format("takes sets of at most {} elements, this one has {}", most, n));
    return Support::yes();
}

// {threads for a row, threads of a block}: the fewest threads that hold a row, in blocks of one row, which reach every
// multiprocessor when rows are few, or of several; and more threads for a row.
std::vector<Config> configs(Problem const& problem)
{
    constexpr int64_t kBlock = 128;
    int64_t const width = packWidth(problem), n = longestRow(problem);
    int64_t const rows = layoutOf(problem).sizes(problem.inputs[0].dims).sets();
    bool const few = problem.target.cuda && rows <= int64_t(problem.target.cuda->multiprocessors) * 8;
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

} // namespace rows

constexpr CudaTactic kRows{"layer_norm_any_rows_cuda", 5, rows::generate, rows::supports, rows::configs, withPixels};

// ---- Everything else.

constexpr int kThreads = 256;

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    CudaSource source = {.text = constantsOf(problem) + cuda::include("ops/layer_norm/layer_norm_plain.cuh"),
                         .names = {"layer_norm"},
                         .wide = isWide(problem)};
    return kernelsOf(std::move(source), [&attrs](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Walk const w = walkOf(attrs, args.inputs[0].dims);
        AnyParams p;
        setTensors(attrs, args, p);
        p.n = uint64_t(w.within.volume());
        p.sets.set(w.sets);
        p.sets.setStrides(0, w.setStrides);
        p.sets.setStrides(1, w.setWeights);
        p.within.set(w.within);
        p.within.setStrides(0, w.withinStrides);
        p.within.setStrides(1, w.withinWeights);
        return launch(0, p.n == 0 ? 0 : w.sets.volume(), kThreads, p);
    });
}

constexpr CudaTactic kPlain{"layer_norm_any_plain_cuda", 4, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kRows, kChunks, kColumns, kHeldPixels, kPixels, kPlain>;

} // namespace tw::ops::layer_norm
