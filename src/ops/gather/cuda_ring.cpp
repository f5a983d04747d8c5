// SPDX-License-Identifier: Apache-2.0
// Along the innermost axis of long rows: TMA brings rows into a ring of shared memory while elements of the
// row before are taken; registers hold the indices, which are the same for all rows.
#include <algorithm>

#include "families/elementwise/cuda_pointwise.h"
#include "ops/gather/gather_params.h"
#include "ops/gather/op.h"
#include "ops/gather/tactics.h"

namespace tw::ops::gather {

namespace {

constexpr int kRingThreads = 1024;
constexpr int64_t kOwn = 32 << 10;        // columns of y whose indices a block keeps
constexpr int64_t kRingBytes = 224 << 10; // after it the barriers
constexpr int64_t kBarriers = 16;         // a row each
constexpr int64_t kRingShared = kRingBytes + kBarriers * 8;
constexpr int64_t kLeastRow =
    kRingBytes / (kBarriers - 2) / 16 * 16 + 16; // bytes: no more rows are in the ring at a time

Support supportsRing(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    TensorSpec const &x = p.inputs[0], &j = p.inputs[1];
    if (!a.isPlain() || x.maxDims.rank == 0 || a.axis != x.maxDims.rank - 1)
        return Support::no("gathers along the innermost axis only");
    if (!p.cuda || p.cuda->capability < 90 || p.cuda->capability >= 100)
        return Support::no("runs on GPUs of capability 9.0");
    if (!isStatic(p))
        return Support::no("is for shapes that are known");
    int64_t const size = sizeOf(x.type), length = x.maxDims[x.maxDims.rank - 1], bytes = length * size,
                  count = j.maxDims.volume();
    if (size > 4 || bytes % 16 != 0 || count * size % 16 != 0 || count % 4 != 0)
        return Support::no("is for rows of multiples of 16 bytes");
    if (bytes < kLeastRow || bytes > kRingBytes || length > UINT16_MAX)
        return Support::no("is for rows of " + std::to_string(kLeastRow) + " to " + std::to_string(kRingBytes) +
                           " bytes and 65535 elements at most");
    if (count < length || count >= INT32_MAX / 2)
        return Support::no("takes fewer elements than a row has, or 2^30 and more");
    return Support::yes();
}

std::unique_ptr<CudaKernels> generateRing(Problem const& problem, Config const&)
{
    CudaSource source = {.text = cuda::type("Element", cuda::unitOf(sizeOf(problem.inputs[0].type))) +
                                 cuda::constant("kThreads", kRingThreads) + cuda::constant("kOwn", kOwn) +
                                 cuda::constant("kRing", kRingBytes) + cuda::constant("kBarriers", kBarriers) +
                                 cuda::include("ops/gather/gather_ring.cuh"),
                         .names = {"gather_ring"},
                         .isDependent = true,
                         .alignment = 16,
                         .sharedBytes = kRingShared};
    return kernelsOf(std::move(source), [](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &j = args.inputs[1], &y = args.outputs[0];
        int const last = x.dims.rank - 1;
        RingParams p{x.data, j.data, y.data, x.dims.volume(0, last), x.dims[last], j.count()};
        int64_t const chunks = (p.count + kOwn - 1) / kOwn;
        if (p.rows == 0 || chunks == 0)
            return {};
        p.chunks = int32_t(chunks);
        p.step = int32_t(std::clamp<int64_t>(launch.multiprocessors() / chunks, 1, p.rows));
        return launch(0, chunks * p.step, kRingThreads, p, kRingShared);
    });
}

} // namespace

constinit CudaTactic const kRing{"gather_any_ring_sm90a", 1, generateRing, supportsRing};

} // namespace tw::ops::gather
