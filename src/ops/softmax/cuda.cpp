// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/softmax/cuda_columns.h"
#include "ops/softmax/cuda_short_rows.h"
#include "ops/softmax/op.h"
#include "ops/softmax/softmax_params.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::softmax {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kWarpUpTo = 1024; // longer slices get a whole block

KernelBag generate(Problem const& problem, Config const&)
{
    KernelBag out;
    out.wide = isWide(problem);
    out.names = {"softmax_threads", "softmax_warps", "softmax_blocks"};
    out.source = cuda::type("T", cuda::storageOf(problem.outputs[0].type)) + cuda::include("ops/softmax/softmax.cuh");
    out.run = [axis = int(problem.node->attrsAs<Attrs>().axis)](CudaLaunch const& launch,
                                                                RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        int64_t const inner = x.dims.volume(axis + 1, x.dims.rank), slices = x.dims.volume(0, axis) * inner;
        Params p;
        p.x = x.data;
        p.y = y.data;
        p.slices = uint64_t(slices);
        p.n = uint64_t(x.dims[axis]);
        p.inner = cuda::divBy(inner);
        if (inner >= 32)
            return launch(0, blocksFor(slices, kThreads), kThreads, p);
        if (x.dims[axis] <= kWarpUpTo)
            return launch(1, blocksFor(slices * 32, kThreads), kThreads, p);
        return launch(2, slices, kThreads, p);
    };
    return out;
}

constexpr int64_t kMostPacks = 4; // of a thread: 32 halves in registers

// How a row of n elements is distributed: threads for each row, packs for each thread.
struct Shares
{
    int64_t row = 1, packs = 1;
};
Shares sharesOf(int64_t n, int64_t width)
{
    // Threads of a warp: two packs each, so that loads overlap; then 128 or 512.
    Shares s;
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
    if (sharesOf(x.maxDims[axis], widthOf(x.type)).packs > kMostPacks)
        return Support::no("takes rows of at most " + std::to_string(512 * kMostPacks * widthOf(x.type)) +
                           " elements, this one has " + std::to_string(x.maxDims[axis]));
    return Support::yes();
}

KernelBag generateRows(Problem const& problem, Config const&)
{
    constexpr int64_t kRowThreads = 128; // of blocks that hold several rows
    TensorSpec const& x = problem.inputs[0];
    int const axis = int(problem.node->attrsAs<Attrs>().axis);
    int64_t const width = widthOf(x.type);
    Shares const s = sharesOf(x.maxDims[axis], width);
    int64_t const threads = std::max(s.row, kRowThreads);
    KernelBag out;
    out.wide = isWide(problem);
    out.isDependent = true;
    out.names = {"softmax_packs", "softmax_edges", "softmax_elements"};
    out.source = cuda::type("T", cuda::storageOf(x.type)) + cuda::constant("THREADS", threads) +
                 cuda::constant("ROW", s.row) + cuda::constant("WIDTH", width) + cuda::constant("PACKS", s.packs) +
                 cuda::include("ops/softmax/softmax_rows.cuh");
    out.run = [axis, width, threads, row = s.row](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &in = args.inputs[0], &y = args.outputs[0];
        Params p;
        p.x = in.data;
        p.y = y.data;
        p.slices = uint64_t(in.dims.volume(0, axis));
        p.n = uint64_t(in.dims[axis]);
        bool const isAligned = (cuda::addressOf(in.data) | cuda::addressOf(y.data)) % 16 == 0;
        int const kernel = !isAligned || row < width ? 2 : in.dims[axis] % width == 0 ? 0 : 1;
        return launch(kernel, blocksFor(int64_t(p.slices), int(threads / row)), int(threads), p);
    };
    return out;
}

constexpr CudaTactic kRows{"softmax_any_rows_cuda", 3, generateRows, supportsRows};
constexpr CudaTactic kShortRows{"softmax_any_short_rows_sm80", 1, generateShortRows, supportsShortRows,
                                configsOfShortRows};
constexpr CudaTactic kColumns{"softmax_any_columns_cuda", 5, generateColumns, supportsColumns, configsOfColumns};
constexpr CudaTactic kPlain{"softmax_any_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kRows, &kShortRows, &kColumns, &kPlain};
    return kList;
}

} // namespace tw::ops::softmax
