// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "ops/cache_update/cache_update_params.h"
#include "ops/cache_update/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::cache_update {

namespace {

constexpr int kThreads = 256;

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    int64_t const bytes = sizeOf(problem.outputs[0].type);
    CudaSource source{.text = cuda::flag("kCircular", a.circular) + cuda::flag("kInPages", a.pages) +
                              cuda::include("ops/cache_update/cache_update.cuh"),
                      .wide = isWide(problem),
                      .isDependent = true};
    for (std::string const what : {"merge", "write"})
        source.addUnits("cache_update_" + what, "tw::ops::cache_update::" + what, "tw::ops::cache_update::Params",
                        bytes, kThreads);
    int const kinds = int(source.names.size()) / 2;
    return kernelsOf(std::move(source), [&a, kinds, bytes](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &u = args.inputs[1], &y = args.outputs[0];
        Layout const at(a, x.dims, u.dims);
        auto const* const update = u.as<char>() + at.offset * bytes;
        int64_t const unit = widestUnit(bytes, cuda::addressOf(x.data) | cuda::addressOf(update) |
                                                   cuda::addressOf(y.data) |
                                                   uint64_t((at.inner | at.rowStride | at.groupStride) * bytes)),
                      row = at.inner * bytes / unit;
        Params p{.x = x.data, .u = update, .y = y.data};
        p.capacity = uint64_t(at.capacity);
        p.row = cuda::divBy(std::max<int64_t>(row, 1));
        p.rowStride = uint64_t(at.rowStride * bytes / unit);
        p.groupStride = uint64_t(at.groupStride * bytes / unit);
        p.imageStride = uint64_t(at.imageStride * bytes / unit);
        p.image = cuda::divBy(std::max<int64_t>(at.groups, 1));
        // The kernel goes through rows of y, or of u.
        auto run = [&](bool isInPlace) -> Result<void> {
            int64_t const written = isInPlace ? at.images * at.groups * at.rows * at.inner : y.count();
            if (written == 0)
                return {};
            p.count = uint64_t(written * bytes / unit);
            p.group = cuda::divBy(isInPlace ? at.rows : at.capacity);
            int const kernel = (isInPlace ? kinds : 0) + std::countr_zero(uint64_t(unit / bytes));
            return launch(kernel, blocksFor(int64_t(p.count), kThreads), kThreads, p);
        };
        if (a.pages && x.data != y.data)
            TW_TRY(run(false)); // nothing is new yet
        p.index = args.inputs.size() > 2 ? args.inputs[2].as<int32_t>() : nullptr;
        p.rows = uint64_t(at.rows);
        if (a.pages) {
            p.pages = args.inputs[3].as<int32_t>();
            p.pageCount = uint64_t(args.inputs[3].dims[1]);
            p.blocks = uint64_t(at.blocks);
        }
        return run(a.pages || x.data == y.data);
    });
}

constexpr CudaTactic kPlain{"cache_update_any_plain_cuda", 3, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::cache_update
