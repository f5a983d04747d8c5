// SPDX-License-Identifier: Apache-2.0
// Along the innermost axis: rows of x wait in shared memory for their indices.
#include "ops/gather/gather_params.h"
#include "ops/gather/op.h"
#include "ops/gather/tactics.h"

namespace tw::ops::gather {

namespace {

constexpr int kStagedThreads = 512;
constexpr int64_t kShared = 96 << 10,
                  kMostShared = 200 << 10; // bytes of a row: two blocks fit a multiprocessor, or one
constexpr int64_t kLeastTaken = 8; // of so many elements one is taken at least: else reading rows whole is a waste

Support supportsStaged(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    TensorSpec const &x = p.inputs[0], &j = p.inputs[1];
    if (!a.isPlain() || x.maxDims.rank == 0 || a.axis != x.maxDims.rank - 1)
        return Support::no("gathers along the innermost axis only");
    int64_t const length = x.maxDims[x.maxDims.rank - 1];
    if (length * sizeOf(x.type) > kMostShared)
        return Support::no("holds rows of " + std::to_string(kMostShared) + " bytes at most");
    if (length * sizeOf(x.type) > kShared && (!p.cuda || p.cuda->capability < 90))
        return Support::no("holds so long rows on GPUs of capability 9.0 on");
    if (j.maxDims.volume() >= INT32_MAX / 2)
        return Support::no("counts in 32 bits");
    if (j.maxDims.volume() * kLeastTaken < length)
        return Support::no("takes few elements of a row");
    return Support::yes();
}

std::unique_ptr<CudaKernels> generateStaged(Problem const& problem, Config const&)
{
    TensorSpec const& x = problem.inputs[0];
    bool const isLong = x.maxDims[x.maxDims.rank - 1] * sizeOf(x.type) > kShared;
    int const threads = isLong ? 2 * kStagedThreads : kStagedThreads;
    CudaSource source = {.text = cuda::type("Element", cuda::unitOf(sizeOf(problem.inputs[0].type))) +
                                 cuda::constant("kThreads", threads) + cuda::include("ops/gather/gather_staged.cuh"),
                         .names = {"gather_staged"},
                         .isDependent = true,
                         .sharedBytes = isLong ? kMostShared : kShared};
    return kernelsOf(std::move(source), [threads](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &j = args.inputs[1], &y = args.outputs[0];
        int const last = x.dims.rank - 1;
        StagedParams const p{x.data, j.data, y.data, x.dims[last], j.count()};
        return launch(0, x.dims.volume(0, last), threads, p, (p.length * sizeOf(x.type) + 15) / 16 * 16);
    });
}

} // namespace

constinit CudaTactic const kStaged{"gather_any_staged_cuda", 1, generateStaged, supportsStaged};

} // namespace tw::ops::gather
