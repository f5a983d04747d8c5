// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "base/round.h"
#include "ops/scatter/op.h"
#include "ops/scatter/scatter_params.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::scatter {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kEach = 4; // units of the copy for a thread, in flight together

// Number of the kernel for units of so many bytes, of those that begin with the one for elements.
int kernelOf(int first, int64_t bytes, int64_t unit)
{
    return first + std::countr_zero(uint64_t(unit / bytes));
}

int64_t slotsOf(Attrs const& a, Extents const& indices, Extents const& y)
{
    return a.mode == Mode::kNd ? y.volume(0, int(indices[indices.rank - 1])) : y.volume();
}

// Kernels: the one that chooses, those that copy units of each size, those that write them.
CudaSource sourceOf(Problem const& problem)
{
    int64_t const bytes = sizeOf(problem.outputs[0].type);
    CudaSource out{.text = cuda::type("Element", cuda::unitOf(bytes)) + cuda::constant("kEach", kEach) +
                           cuda::include("ops/scatter/scatter.cuh"),
                   .names = {"scatter_choose"},
                   .wide = isWide(problem),
                   .isDependent = true};
    for (std::string const what : {"copy", "write"})
        out.addUnits("scatter_" + what, "tw::ops::scatter::" + what, "tw::ops::scatter::Params", bytes, kThreads);
    return out;
}

// What both kinds of kernels are told of the tuples.
Params paramsOf(Attrs const& a, RunArgs const& args)
{
    TensorRef const &x = args.inputs[0], &j = args.inputs[1], &u = args.inputs[2], &y = args.outputs[0];
    Params p{.x = x.data, .j = j.data, .u = u.data, .y = y.data, .slots = uint64_t(slotsOf(a, j.dims, y.dims))};
    if (a.mode == Mode::kNd) {
        p.indices = int32_t(j.dims[j.dims.rank - 1]);
        for (int k = 0; k < p.indices; ++k) {
            p.size[k] = y.dims[k];
            p.stride[k] = y.dims.volume(k + 1, p.indices);
        }
    } else {
        Extents strides = stridesOf(y.dims);
        p.isElement = 1;
        p.size[0] = y.dims[int(a.axis)];
        p.stride[0] = strides[int(a.axis)];
        strides[int(a.axis)] = 0;
        p.loop.set(u.dims);
        p.loop.setStrides(0, strides);
    }
    return p;
}

std::string reductionText(Problem const& problem)
{
    DataType const t = problem.outputs[0].type;
    bool const isInteger = t == DataType::kInt32;
    return cuda::type("Element", cuda::storageOf(t)) + cuda::type("Number", isInteger ? "int" : "float") +
           cuda::flag("kIsInteger", isInteger) +
           cuda::constant("kReduction", int64_t(problem.node->attrsAs<Attrs>().reduction));
}

CudaSource reductionSourceOf(Problem const& problem)
{
    return {.text = reductionText(problem) + cuda::include("ops/scatter/scatter_reduction.cuh"),
            .names = {"scatter_begin", "scatter_reduce", "scatter_end"},
            .wide = isWide(problem),
            .isDependent = true};
}

std::unique_ptr<CudaKernels> reductionKernels(Problem const& problem)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    return kernelsOf(
        reductionSourceOf(problem),
        [&attrs](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            TensorRef const &u = args.inputs[2], &y = args.outputs[0];
            if (y.count() == 0)
                return {};
            Params p = paramsOf(attrs, args);
            p.last = isNarrowFloat(y.type) ? args.workspace : nullptr;
            p.units = uint64_t(y.count());
            p.count = uint64_t(u.count());
            p.block = cuda::divBy(tuplesOf(attrs, y.dims, args.inputs[1].dims).block);
            TW_TRY(launch(0, blocksFor(y.count(), kThreads), kThreads, p));
            if (u.count() > 0)
                TW_TRY(launch(1, blocksFor(u.count(), kThreads), kThreads, p));
            return p.last ? launch(2, blocksFor(y.count(), kThreads), kThreads, p) : Result<void>{};
        },
        [](std::span<TensorRef const>, std::span<TensorRef const> outputs) {
            return isNarrowFloat(outputs[0].type) ? outputs[0].count() * int64_t(sizeof(float)) : 0;
        });
}

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    CudaSource source = sourceOf(problem);
    int const kernelsOfUnits = int(source.names.size() - 1) / 2;
    int64_t const slotBytes = source.wide ? sizeof(uint64_t) : sizeof(uint32_t);
    return kernelsOf(
        std::move(source),
        [&attrs, kernelsOfUnits](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            TensorRef const &x = args.inputs[0], &u = args.inputs[2], &y = args.outputs[0];
            int64_t const bytes = sizeOf(y.type);
            if (y.count() == 0)
                return {};
            Params p = paramsOf(attrs, args);
            int64_t const slice = tuplesOf(attrs, y.dims, args.inputs[1].dims).block; // elements
            p.tuples = uint64_t(u.count() / slice);
            p.last = p.tuples > 1 ? args.workspace : nullptr;
            int64_t const copied = widestUnit(bytes, cuda::addressOf(x.data) | cuda::addressOf(y.data));
            bool const isInPlace = x.data == y.data;
            p.units = isInPlace ? 0 : uint64_t(y.count() * bytes / copied);
            p.tail = isInPlace ? 0 : uint64_t(y.count() * bytes % copied / bytes);
            int64_t const threads = std::max<int64_t>(int64_t(p.units), p.last ? int64_t(p.slots) : !isInPlace);
            if (threads > 0)
                TW_TRY(launch(kernelOf(1, bytes, copied), blocksFor(threads, kThreads * kEach), kThreads, p));
            if (p.last)
                TW_TRY(launch(0, blocksFor(int64_t(p.tuples), kThreads), kThreads, p));
            int64_t const unit = widestUnit(bytes, cuda::addressOf(u.data) | cuda::addressOf(y.data) |
                                                       uint64_t(slice) * uint64_t(bytes));
            p.block = cuda::divBy(slice * bytes / unit);
            p.count = uint64_t(u.count() * bytes / unit);
            return launch(kernelOf(1 + kernelsOfUnits, bytes, unit), blocksFor(int64_t(p.count), kThreads), kThreads,
                          p);
        },
        [&attrs, slotBytes](std::span<TensorRef const> in, std::span<TensorRef const> outputs) {
            return slotsOf(attrs, in[1].dims, outputs[0].dims) * slotBytes;
        });
}

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const&)
{
    if (problem.node->attrsAs<Attrs>().reduction != Reduction::kNone)
        return reductionKernels(problem);
    return plainKernels(problem);
}

constexpr CudaTactic kPlain{"scatter_any_plain_cuda", 1, generate};

// ---- Reductions into whole rows, each by one block: see scatter_rows.cuh.

constexpr int64_t kLeastColumns = 16;
constexpr int64_t kMostScanned = 16 << 20; // indices that all rows together read, where no lists are made

Support supportsRows(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    if (a.mode != Mode::kNd || a.reduction == Reduction::kNone)
        return Support::no("reduces rows");
    if (isWide(p))
        return Support::no("takes tensors of fewer than 2^31 elements");
    Extents const &x = p.inputs[0].maxDims, &j = p.inputs[1].maxDims;
    if (int64_t const columns = tuplesOf(a, x, j).block; columns < kLeastColumns)
        return Support::no(fmt::format("takes rows of {} elements and more", kLeastColumns));
    return Support::yes();
}

// Pieces of the workspace, in elements of 32 bits.
struct Lists
{
    Lists(int64_t slots, int64_t tuples)
        : slices(divideUp(slots, kSlice)), counts(0), offsets(slots), places(2 * slots), order(places + tuples),
          sums(order + tuples), isScanned(tuples <= kMostScanned / std::max<int64_t>(slots, 1))
    {}
    int64_t bytes() const { return isScanned ? 0 : (sums + slices) * int64_t(sizeof(uint32_t)); }
    int64_t slices, counts, offsets, places, order, sums;
    bool isScanned;
};

std::unique_ptr<CudaKernels> generateRows(Problem const& problem, Config const&)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    int64_t const columns = tuplesOf(attrs, problem.inputs[0].maxDims, problem.inputs[1].maxDims).block;
    int const listLanes = columns <= 128 ? 32 : 128;
    enum
    {
        kScan,
        kList,
        kClear,
        kCount,
        kSum,
        kOffset,
        kPlace
    };
    CudaSource source{.text = reductionText(problem) + cuda::constant("kListLanes", listLanes) +
                              cuda::include("ops/scatter/scatter_rows.cuh"),
                      .names = {"scatter_scan_rows", "scatter_list_rows", "scatter_clear", "scatter_count",
                                "scatter_sum", "scatter_offset", "scatter_place"},
                      .isDependent = true};
    return kernelsOf(
        std::move(source),
        [&attrs, listLanes](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            TensorRef const &j = args.inputs[1], &y = args.outputs[0];
            if (y.count() == 0)
                return {};
            Tuples const tuples = tuplesOf(attrs, y.dims, j.dims);
            RowParams p{.scatter = paramsOf(attrs, args)};
            p.scatter.tuples = uint64_t(tuples.count);
            p.scatter.block = cuda::divBy(tuples.block);
            auto const slots = int64_t(p.scatter.slots);
            auto rows = [&](int kernel, int lanes) {
                int64_t const chunk = lanes * int64_t(kColumns);
                return launch.grid(kernel, slots, divideUp(tuples.block, chunk), 1, lanes, p);
            };
            Lists const lists(slots, tuples.count);
            if (lists.isScanned)
                return rows(kScan, int(kScanLanes));
            auto* const memory = static_cast<uint32_t*>(args.workspace);
            p.counts = memory + lists.counts;
            p.offsets = memory + lists.offsets;
            p.places = memory + lists.places;
            p.order = memory + lists.order;
            p.sums = memory + lists.sums;
            TW_TRY(launch.each(kClear, slots, p));
            TW_TRY(launch.each(kCount, tuples.count, p));
            TW_TRY(launch(kSum, lists.slices, int(kSliceLanes), p));
            TW_TRY(launch(kOffset, lists.slices, int(kSliceLanes), p));
            TW_TRY(launch.each(kPlace, tuples.count, p));
            return rows(kList, listLanes);
        },
        [&attrs](std::span<TensorRef const> in, std::span<TensorRef const> outputs) {
            return Lists(slotsOf(attrs, in[1].dims, outputs[0].dims),
                         tuplesOf(attrs, outputs[0].dims, in[1].dims).count)
                .bytes();
        });
}

constexpr CudaTactic kRows{"scatter_any_rows_cuda", 1, generateRows, supportsRows};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kRows, kPlain>;

} // namespace tw::ops::scatter
