// SPDX-License-Identifier: Apache-2.0
// Reductions of short rows, whatever their length: 7x7 pixels of a channel, 64 elements of a head.
#include <algorithm>
#include <bit>

#include "families/elementwise/cuda_pointwise.h"
#include "ops/reduce/cuda_arithmetic.h"
#include "ops/reduce/reduce_params.h"

namespace tw::ops::reduce {

namespace short_rows {
namespace {

constexpr int64_t kThreads = 256, kLeastRows = 16, kMostRows = 1024; // rows of a block are whole packs, of any type
constexpr int64_t kMostRowBytes = 1024, kMostBlockBytes = 32 * 1024;

// Elements of a row, at the most.
int64_t lengthOf(Problem const& problem)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    Extents const& x = problem.inputs[0].maxDims;
    int64_t n = 1;
    for (int d = 0; d < x.rank; ++d)
        n *= a.has(d) ? x[d] : 1;
    return n;
}

Support supports(Problem const& problem)
{
    int64_t const n = lengthOf(problem), bytes = n * sizeOf(problem.inputs[0].type);
    if (n < 2 || bytes > kMostRowBytes)
        return Support::no("takes rows of two elements to " + std::to_string(kMostRowBytes) + " bytes");
    return rows::supports(problem);
}

// {rows of a block}: of about 8 KiB, of twice as much
std::vector<Config> configs(Problem const& problem)
{
    int64_t const row = lengthOf(problem) * sizeOf(problem.inputs[0].type);
    std::vector<Config> list;
    for (int64_t bytes : {8 * 1024, 16 * 1024}) {
        int64_t const fit = std::max<int64_t>(bytes / std::max<int64_t>(row, 1), 1);
        Config const config{std::clamp(int64_t(std::bit_floor(uint64_t(fit))), kLeastRows, kMostRows)};
        if (list.empty() || list.back() != config)
            list.push_back(config);
    }
    return list;
}

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config)
{
    bool const isKnown = isConfig(config, 1, kLeastRows, kMostRows) && std::has_single_bit(uint64_t(config[0])) &&
                         config[0] * lengthOf(problem) * sizeOf(problem.inputs[0].type) <= kMostBlockBytes;
    int64_t const rows = isKnown ? config[0] : kLeastRows;
    CudaSource source = {.text = arithmeticOf(problem.node->attrsAs<Attrs>(), problem.inputs[0].type) +
                                 cuda::constant("N", lengthOf(problem)) + cuda::constant("ROWS", rows) +
                                 cuda::flag("EXACT", isStatic(problem)) +
                                 cuda::include("ops/reduce/reduce_short_rows.cuh"),
                         .names = {"reduce_short_rows_packs", "reduce_short_rows"},
                         .wide = isWide(problem),
                         .isDependent = true};
    return kernelsOf(std::move(source), [rows](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        ShortRowsParams const p{
            .x = x.data, .y = y.data, .results = uint64_t(y.count()), .count = uint64_t(x.count() / y.count())};
        bool const packs = cuda::addressOf(x.data) % 16 == 0;
        return launch(packs ? 0 : 1, blocksFor(y.count(), int(rows)), int(kThreads), p);
    });
}

} // namespace
} // namespace short_rows

constinit CudaTactic const kShortRows{"reduce_any_short_rows_sm80", 1, short_rows::generate, short_rows::supports,
                                      short_rows::configs};

} // namespace tw::ops::reduce
