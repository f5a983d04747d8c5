// SPDX-License-Identifier: Apache-2.0
// Sets that are contiguous and too long for one block.
#include "ops/layer_norm/layout.h"

namespace tw::ops::layer_norm {

namespace chunks {
namespace {

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
        return Support::no("leaves sets of less than " + std::to_string(kLeast) + " elements to others");
    if (s.sets() * chunksOf(s.setSize(), chunkOf(problem, 1)) > kMostBlocks)
        return Support::no("takes at most 2^30 chunks");
    return Support::yes();
}

// {packs of a thread}: small chunks reach every multiprocessor when there is little to do, large ones read less twice.
std::vector<Config> configs(Problem const& problem)
{
    Layout::Sizes const s = layoutOf(problem).sizes(problem.inputs[0].dims);
    auto blocks = [&](int64_t packs) { return s.sets() * chunksOf(s.setSize(), chunkOf(problem, packs)); };
    int64_t const many = problem.cuda ? int64_t(problem.cuda->multiprocessors) * 4 : 1;
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

} // namespace
} // namespace chunks

constinit CudaTactic const kChunks{"layer_norm_any_chunks_cuda", 2, chunks::generate, chunks::supports,
                                   chunks::configs};

} // namespace tw::ops::layer_norm
