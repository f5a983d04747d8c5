// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "ops/topk/op.h"
#include "ops/topk/topk_params.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::topk {

namespace {

constexpr int64_t kEach = 16; // keys of a thread

// Where the levels' kernels stand. Slices of one segment have the first one alone.
enum SelectKernel
{
    kOnly,
    kFirst,
    kLast,
    kNext,
};

// Threads of a block: as few as hold a short slice, else several times the keys that its block leaves.
int threadsFor(int64_t n, int64_t k)
{
    constexpr int kFewest = 32, kMiddle = 256, kMost = 1024;
    if (n <= kFewest * kEach)
        return kFewest;
    return n <= kMiddle * kEach || 4 * k <= kMiddle * kEach ? kMiddle : kMost;
}

// What each slice is at a level of the selection: n elements, or keys that the level before left, in segments.
struct Level
{
    int64_t n, segments;
};

// The last has one segment.
std::vector<Level> levelsOf(int64_t n, int64_t k, int threads)
{
    std::vector<Level> levels;
    do {
        levels.push_back({n, blocksFor(n, int(threads * kEach))});
        n = levels.back().segments * k;
    } while (levels.back().segments > 1);
    return levels;
}

struct Slices
{
    int64_t count, n, inner;
};

Slices slicesOf(TensorRef const& x, Attrs const& attrs)
{
    int const axis = int(attrs.axis);
    int64_t const inner = x.dims.volume(axis + 1, x.dims.rank);
    return {x.dims.volume(0, axis) * inner, x.dims[axis], inner};
}

std::string commonText(Problem const& problem)
{
    return cuda::type("T", cuda::storageOf(problem.inputs[0].type)) +
           cuda::flag("kLargest", problem.node->attrsAs<Attrs>().kind == Kind::kMax);
}

Support supportsSelect(Problem const& p)
{
    int64_t const n = p.inputs[0].maxDims[int(p.node->attrsAs<Attrs>().axis)];
    if (n > INT32_MAX)
        return Support::no("has indices of 32 bits");
    return Support::yes();
}

Result<void> runSelect(Attrs const& attrs, int threads, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const& x = args.inputs[0];
    Slices const slices = slicesOf(x, attrs);
    if (slices.count == 0)
        return {};
    auto* keys = static_cast<cuda::u64*>(args.workspace);
    SelectParams p{.x = x.data,
                   .values = args.outputs[0].data,
                   .indices = args.outputs[1].data,
                   .axis = uint64_t(slices.n),
                   .k = attrs.k,
                   .inner = cuda::divBy(slices.inner)};
    for (Level const& level : levelsOf(slices.n, attrs.k, threads)) {
        p.n = uint64_t(level.n);
        p.segments = cuda::divBy(level.segments);
        p.to = keys;
        int const kernel = level.segments == 1 ? (p.from ? kLast : kOnly) : (p.from ? kNext : kFirst);
        TW_TRY(launch(kernel, slices.count * level.segments, threads, p));
        p.from = keys;
        keys += slices.count * level.segments * attrs.k;
    }
    return {};
}

int64_t keyBytes(Attrs const& attrs, int threads, std::span<TensorRef const> in)
{
    Slices const slices = slicesOf(in[0], attrs);
    int64_t keys = 0;
    for (Level const& level : levelsOf(slices.n, attrs.k, threads))
        if (level.segments > 1)
            keys += slices.count * level.segments * attrs.k;
    return keys * int64_t(sizeof(cuda::u64));
}

std::unique_ptr<CudaKernels> selectKernels(Problem const& problem, Config const&)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    int const threads = threadsFor(problem.inputs[0].maxDims[int(attrs.axis)], attrs.k);
    CudaSource source{.text =
                          commonText(problem) + cuda::constant("kThreads", threads) + cuda::constant("kEach", kEach) +
                          cuda::constant("kSorted", int64_t(std::bit_ceil(uint64_t(std::max<int64_t>(attrs.k, 2))))) +
                          cuda::include("ops/topk/topk_select.cuh"),
                      .names = {},
                      .wide = isWide(problem),
                      .isDependent = true};
    std::string const space = "tw::ops::topk::";
    auto const add = [&](char const* name, char const* levels) {
        source.add(name, space + "select<" + levels + ">", space + "SelectParams", threads);
    };
    add("topk_select_only", "false, true");
    if (problem.inputs[0].maxDims[int(attrs.axis)] > threads * kEach) {
        add("topk_select_first", "false, false");
        add("topk_select_last", "true, true");
        add("topk_select_next", "true, false");
    }
    return kernelsOf(
        std::move(source),
        [&attrs, threads](CudaLaunch const& launch, RunArgs& args) { return runSelect(attrs, threads, launch, args); },
        [&attrs, threads](std::span<TensorRef const> in, std::span<TensorRef const>) {
            return keyBytes(attrs, threads, in);
        });
}

Support supportsColumns(Problem const& p)
{
    constexpr int64_t kMostFound = 4, kLeastColumns = 8;
    TW_SUPPORTS(supportsSelect(p));
    auto const& attrs = p.node->attrsAs<Attrs>();
    Extents const& x = p.inputs[0].maxDims;
    if (attrs.k > kMostFound)
        return Support::no(fmt::format("finds at most {} of a slice", kMostFound));
    if (x.volume(int(attrs.axis) + 1, x.rank) < kLeastColumns)
        return Support::no(fmt::format("takes {} slices side by side or more", kLeastColumns));
    return Support::yes();
}

std::unique_ptr<CudaKernels> columnKernels(Problem const& problem, Config const&)
{
    constexpr int kThreads = 128;
    auto const& attrs = problem.node->attrsAs<Attrs>();
    CudaSource source{.text = commonText(problem) + cuda::constant("kMost", attrs.k) +
                              cuda::include("ops/topk/topk_columns.cuh"),
                      .names = {},
                      .wide = isWide(problem),
                      .isDependent = true};
    source.add("topk_columns", "tw::ops::topk::columns", "tw::ops::topk::ColumnParams", kThreads);
    return kernelsOf(std::move(source), [&attrs](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Slices const slices = slicesOf(args.inputs[0], attrs);
        ColumnParams const p{.x = args.inputs[0].data,
                             .values = args.outputs[0].data,
                             .indices = args.outputs[1].data,
                             .slices = uint64_t(slices.count),
                             .n = uint64_t(slices.n),
                             .inner = cuda::divBy(slices.inner)};
        return launch(0, blocksFor(slices.count, kThreads), kThreads, p);
    });
}

constexpr CudaTactic kColumns{"topk_any_columns_cuda", 1, columnKernels, supportsColumns};
constexpr CudaTactic kPlain{"topk_any_plain_cuda", 2, selectKernels, supportsSelect};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kColumns, kPlain>;

} // namespace tw::ops::topk
