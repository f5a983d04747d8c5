// SPDX-License-Identifier: Apache-2.0
// Softmax of short rows that begin anywhere, by blocks of rows in shared memory.
#include <algorithm>
#include <bit>

#include "kernels/cuda/common/generate.h"
#include "ops/softmax/op.h"
#include "ops/softmax/softmax_params.h"
#include "ops/softmax/tactics.h"

namespace tw::ops::softmax {

namespace {

using cuda::ceilDiv;

constexpr int64_t kMostWords = 26;        // of 4 bytes, of a lane
constexpr int64_t kMostBytes = 40 * 1024; // of a block's rows

int64_t rowLengthOf(Problem const& p)
{
    return p.inputs[0].maxDims[int(p.node->attrsAs<Attrs>().axis)];
}

int64_t wordsOf(Problem const& p)
{
    return std::max<int64_t>(ceilDiv(rowLengthOf(p) * sizeOf(p.inputs[0].type), 4), 1);
}

bool fits(Problem const& p, int64_t lanes, int64_t threads)
{
    int64_t const bytes = threads / std::max<int64_t>(lanes, 1) * rowLengthOf(p) * sizeOf(p.inputs[0].type);
    return (threads == 128 || threads == 256) && lanes >= 1 && lanes <= 32 && std::has_single_bit(uint64_t(lanes)) &&
           ceilDiv(wordsOf(p), lanes) <= kMostWords && bytes <= kMostBytes && bytes % 16 == 0;
}

std::unique_ptr<CudaKernels> shortRowKernels(Problem const& problem, int64_t lanes, int64_t threads)
{
    CudaSource source = {.text = cuda::type("T", cuda::storageOf(problem.inputs[0].type)) + cuda::flag("LOG", false) +
                                 cuda::constant("N", rowLengthOf(problem)) + cuda::constant("LANES", lanes) +
                                 cuda::constant("THREADS", threads) +
                                 cuda::include("ops/softmax/softmax_short_rows.cuh"),
                         .names = {"softmax_short_rows"},
                         .wide = isWide(problem),
                         .isDependent = true,
                         .alignment = 16};
    return kernelsOf(
        std::move(source),
        [length = rowLengthOf(problem), lanes, threads](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            TensorRef const &in = args.inputs[0], &y = args.outputs[0];
            ShortRowsParams const p{.x = in.data, .y = y.data, .rows = uint64_t(in.count() / length)};
            return launch(0, blocksFor(int64_t(p.rows), int(threads / lanes)), int(threads), p);
        });
}

// {threads of a row, of a block}
std::vector<Config> configsOfShortRows(Problem const& problem)
{
    std::vector<Config> list;
    for (auto const& [most, threads] :
         {std::pair{kMostWords, 128}, {kMostWords / 2, 128}, {kMostWords / 4, 128}, {kMostWords, 256}}) {
        int64_t lanes = 1;
        while (lanes < 32 && ceilDiv(wordsOf(problem), lanes) > most)
            lanes *= 2;
        Config const config{lanes, threads};
        if (fits(problem, lanes, threads) && std::find(list.begin(), list.end(), config) == list.end())
            list.push_back(config);
    }
    return list;
}

Support supportsShortRows(Problem const& problem)
{
    TensorSpec const& x = problem.inputs[0];
    int const axis = int(problem.node->attrsAs<Attrs>().axis);
    if (problem.node->attrsAs<Attrs>().log)
        return Support::no("gives no logarithms");
    if (x.maxDims.volume(axis + 1, x.maxDims.rank) > 1)
        return Support::no("takes the innermost axis only");
    if (!problem.node->inputs[0]->shape[size_t(axis)].isConst())
        return Support::no("needs to know the length of a row");
    if (rowLengthOf(problem) * sizeOf(x.type) % 16 == 0)
        return Support::no("leaves rows of whole packs to others");
    if (problem.cuda && problem.cuda->capability < 80)
        return Support::no("needs a GPU of compute capability 8.0 or later");
    if (configsOfShortRows(problem).empty())
        return Support::no("takes rows of at most " + std::to_string(32 * kMostWords * 4) + " bytes");
    return Support::yes();
}

std::unique_ptr<CudaKernels> generateShortRows(Problem const& problem, Config const& config)
{
    if (!isConfig(config, 2, 1, 256) || !fits(problem, config[0], config[1]))
        return noKernels(unsupported("rows do not fit into a block"));
    return shortRowKernels(problem, config[0], config[1]);
}

} // namespace

constinit CudaTactic const kShortRows{"softmax_any_short_rows_sm80", 1, generateShortRows, supportsShortRows,
                                      configsOfShortRows};

} // namespace tw::ops::softmax
