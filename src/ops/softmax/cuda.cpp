// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/softmax/op.h"
#include "ops/softmax/softmax_params.h"
#include "ops/softmax/tactics.h"

namespace tw::ops::softmax {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kWarpUpTo = 1024; // longer slices get a whole block

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    CudaSource source = {.text = cuda::type("T", cuda::storageOf(problem.outputs[0].type)) +
                                 cuda::flag("LOG", problem.node->attrsAs<Attrs>().log) +
                                 cuda::include("ops/softmax/softmax.cuh"),
                         .names = {"softmax_threads", "softmax_warps", "softmax_blocks"},
                         .wide = isWide(problem)};
    return kernelsOf(
        std::move(source),
        [axis = int(problem.node->attrsAs<Attrs>().axis)](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            TensorRef const &x = args.inputs[0], &y = args.outputs[0];
            int64_t const inner = x.dims.volume(axis + 1, x.dims.rank), slices = x.dims.volume(0, axis) * inner;
            Params const p{.x = x.data,
                           .y = y.data,
                           .slices = uint64_t(slices),
                           .n = uint64_t(x.dims[axis]),
                           .inner = cuda::divBy(inner)};
            if (inner >= 32)
                return launch(0, blocksFor(slices, kThreads), kThreads, p);
            if (x.dims[axis] <= kWarpUpTo)
                return launch(1, blocksFor(slices * 32, kThreads), kThreads, p);
            return launch(2, slices, kThreads, p);
        });
}

constexpr int64_t kMostPacks = 4; // of a thread: 32 halves in registers

// How a row of n elements is distributed: threads for each row, packs for each thread.
struct RowShares
{
    int64_t row = 1, packs = 1;
};
RowShares rowSharesOf(int64_t n, int64_t width)
{
    // Threads of a warp: two packs each, so that loads overlap; then 128 or 512.
    RowShares s;
    for (; s.row < 32 && s.row * width * 2 < n; s.row *= 2)
        ;
    for (; s.row >= 32 && s.row < 512 && s.row * width * kMostPacks < n; s.row *= 4)
        ;
    s.packs = std::max<int64_t>((n + s.row * width - 1) / (s.row * width), 1);
    return s;
}

int64_t widthOf(DataType t)
{
    return 16 / sizeOf(t);
}

Support supportsRows(Problem const& problem)
{
    TensorSpec const& x = problem.inputs[0];
    int const axis = int(problem.node->attrsAs<Attrs>().axis);
    if (x.maxDims.volume(axis + 1, x.maxDims.rank) > 1)
        return Support::no("takes the innermost axis only");
    if (rowSharesOf(x.maxDims[axis], widthOf(x.type)).packs > kMostPacks)
        return Support::no("takes rows of at most " + std::to_string(512 * kMostPacks * widthOf(x.type)) +
                           " elements, this one has " + std::to_string(x.maxDims[axis]));
    return Support::yes();
}

std::unique_ptr<CudaKernels> rowKernels(Problem const& problem, Config const&)
{
    constexpr int64_t kRowThreads = 128; // of blocks that hold several rows
    auto const& a = problem.node->attrsAs<Attrs>();
    int const axis = int(a.axis);
    int64_t const width = widthOf(problem.inputs[0].type); // elements of a pack
    RowShares const shares = rowSharesOf(problem.inputs[0].maxDims[axis], width);
    int64_t const row = shares.row, threads = std::max(row, kRowThreads);
    CudaSource source = {.text = cuda::type("T", cuda::storageOf(problem.inputs[0].type)) + cuda::flag("LOG", a.log) +
                                 cuda::constant("THREADS", threads) + cuda::constant("ROW", row) +
                                 cuda::constant("WIDTH", width) + cuda::constant("PACKS", shares.packs) +
                                 cuda::include("ops/softmax/softmax_rows.cuh"),
                         .names = {"softmax_packs", "softmax_edges", "softmax_elements"},
                         .wide = isWide(problem),
                         .isDependent = true};
    return kernelsOf(
        std::move(source), [axis, width, row, threads](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            TensorRef const &in = args.inputs[0], &y = args.outputs[0];
            Params const p{
                .x = in.data, .y = y.data, .slices = uint64_t(in.dims.volume(0, axis)), .n = uint64_t(in.dims[axis])};
            bool const isAligned = (cuda::addressOf(in.data) | cuda::addressOf(y.data)) % 16 == 0;
            int const kernel = !isAligned || row < width ? 2 : in.dims[axis] % width == 0 ? 0 : 1;
            return launch(kernel, blocksFor(int64_t(p.slices), int(threads / row)), int(threads), p);
        });
}

constexpr CudaTactic kRows{"softmax_any_rows_cuda", 3, rowKernels, supportsRows};
constexpr CudaTactic kPlain{"softmax_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kRows, kShortRows, kColumns, kPlain>;

} // namespace tw::ops::softmax
