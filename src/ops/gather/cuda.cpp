// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "families/copy/cuda_strided_copy.h"
#include "families/elementwise/cuda_pointwise.h"
#include "ops/gather/gather_params.h"
#include "ops/gather/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::gather {

namespace {

// ---- Along the innermost axis of long rows: TMA brings rows into a ring of shared memory while elements of the
// row before are taken; registers hold the indices, which are the same for all rows.

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
    if (!p.target.cuda || p.target.cuda->capability < 90 || p.target.cuda->capability >= 100)
        return Support::no("runs on GPUs of capability 9.0");
    if (!isStatic(p))
        return Support::no("is for shapes that are known");
    int64_t const size = sizeOf(x.type), length = x.maxDims[x.maxDims.rank - 1], bytes = length * size,
                  count = j.maxDims.volume();
    if (size > 4 || bytes % 16 != 0 || count * size % 16 != 0 || count % 4 != 0)
        return Support::no("is for rows of multiples of 16 bytes");
    if (bytes < kLeastRow || bytes > kRingBytes || length > UINT16_MAX)
        return Support::no(
            fmt::format("is for rows of {} to {} bytes and 65535 elements at most", kLeastRow, kRingBytes));
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

constexpr CudaTactic kRing{"gather_any_ring_sm90a", 1, generateRing, supportsRing};

// ---- Along the innermost axis: rows of x wait in shared memory for their indices.

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
        return Support::no(fmt::format("holds rows of {} bytes at most", kMostShared));
    if (length * sizeOf(x.type) > kShared && (!p.target.cuda || p.target.cuda->capability < 90))
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

constexpr CudaTactic kStaged{"gather_any_staged_cuda", 1, generateStaged, supportsStaged};

// ---- Everything else.

constexpr int kThreads = 256;
constexpr int64_t kStoreBytes = 4, kRowStoreBytes = 8;
constexpr int kEach = 4;         // units for a thread, in flight together
constexpr int64_t kWaves = 4096; // threads of a multiprocessor, about: with fewer of them a thread moves one unit

// Strides of x and j along the dimensions of y, and what the indices step over.
void describe(Attrs const& a, Extents const& x, Extents const& j, Extents const& y, GatherParams& p, Extents& xAlong,
              Extents& jAlong)
{
    Extents const xs = stridesOf(x), js = stridesOf(j);
    int const n = int(a.elementWiseDims), axis = int(a.axis), q = j.rank;
    xAlong.rank = jAlong.rank = y.rank;
    if (a.mode == Mode::kElement) {
        for (int d = 0; d < y.rank; ++d) {
            jAlong[d] = js[d];
            xAlong[d] = d == axis ? 0 : xs[d];
        }
    } else if (a.mode == Mode::kDefault) {
        for (int d = 0; d < y.rank; ++d) {
            bool const ofIndex = d >= axis && d < axis + q - n;
            jAlong[d] = ofIndex ? js[n + d - axis] : d < n && j[d] != 1 ? js[d] : 0;
            xAlong[d] = d < axis ? (x[d] == 1 ? 0 : xs[d]) : ofIndex ? 0 : xs[d - (q - n) + 1];
        }
    } else {
        int const k = int(j[q - 1]);
        for (int d = 0; d < y.rank; ++d) {
            jAlong[d] = d < q - 1 ? js[d] : 0;
            xAlong[d] = d < n ? xs[d] : d >= q - 1 ? xs[d - (q - 1) + n + k] : 0;
        }
        p.indices = k;
        for (int t = 0; t < k; ++t) {
            p.size[t] = x[n + t];
            p.stride[t] = xs[n + t];
        }
        return;
    }
    p.size[0] = x[axis];
    p.stride[0] = xs[axis];
}

// Bytes that everything is a multiple of where rows are moved whole.
int64_t unitBytes(GatherParams const& p, int64_t bytes, Extents const& dims, Extents const& xSteps,
                  Extents const& jSteps)
{
    int const last = dims.rank - 1;
    if (xSteps[last] != 1 || jSteps[last] != 0)
        return bytes;
    uint64_t all = uint64_t(dims[last]);
    for (int d = 0; d < last; ++d)
        all |= uint64_t(xSteps[d]);
    for (int k = 0; k < p.indices; ++k)
        all |= uint64_t(p.stride[k]);
    return widestUnit(bytes, all * uint64_t(bytes) | cuda::addressOf(p.x) | cuda::addressOf(p.y));
}

CudaSource sourceOf(Problem const& problem)
{
    int64_t const bytes = sizeOf(problem.outputs[0].type);
    CudaSource out{.text = cuda::type("Element", cuda::unitOf(bytes)) + cuda::include("ops/gather/gather.cuh"),
                   .names = {"gather_scattered", "gather_scattered_rows", "gather_words"},
                   .wide = isWide(problem),
                   .isDependent = true};
    out.addUnits("gather", "tw::ops::gather::gatherUnits", "tw::ops::gather::GatherParams", bytes, kThreads);
    return out;
}

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    return kernelsOf(sourceOf(problem), [&attrs](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &j = args.inputs[1], &y = args.outputs[0];
        GatherParams p{.x = x.data, .j = j.data, .y = y.data};
        Extents dims = y.dims, xAlong, jAlong;
        describe(attrs, x.dims, j.dims, y.dims, p, xAlong, jAlong);
        // Neighbours merged where x and j permit it.
        Extents merged, xs, js;
        for (int d = 0; d < dims.rank; ++d) {
            int const last = merged.rank - 1;
            if (dims[d] == 1)
                continue;
            if (last >= 0 && xs[last] == xAlong[d] * dims[d] && js[last] == jAlong[d] * dims[d]) {
                merged[last] *= dims[d];
                xs[last] = xAlong[d];
                js[last] = jAlong[d];
            } else {
                merged.push(dims[d]);
                xs.push(xAlong[d]);
                js.push(jAlong[d]);
            }
        }
        if (merged.rank == 0) {
            merged.push(1);
            xs.push(0);
            js.push(0);
        }
        int64_t const bytes = sizeOf(x.type), unit = unitBytes(p, bytes, merged, xs, js);
        bool const byRows = js[merged.rank - 1] == 0;
        int64_t const store = byRows ? kRowStoreBytes : kStoreBytes;
        bool const scattered = unit < store && cuda::addressOf(y.data) % uint64_t(store) == 0;
        bool const words = byRows && unit < kVec16Bytes && xs[merged.rank - 1] == 1 &&
                           cuda::addressOf(y.data) % uint64_t(kVec16Bytes) == 0 && bytes <= 4 &&
                           merged[merged.rank - 1] * bytes >= kLeastSegmentBytes;
        int64_t const wide = scattered || words ? 1 : unit / bytes;
        int const last = merged.rank - 1;
        if (wide > 1) {
            for (int d = 0; d < last; ++d)
                xs[d] /= wide;
            merged[last] /= wide;
            for (int k = 0; k < p.indices; ++k)
                p.stride[k] /= wide;
        }
        p.loop.set(merged);
        p.loop.setStrides(0, xs);
        p.loop.setStrides(1, js);
        p.first = kMaxRank - merged.rank;
        p.count = uint64_t(merged.volume());
        if (words) {
            int64_t const packs = (y.count() * bytes + kVec16Bytes - 1) / kVec16Bytes;
            p.words = contiguousSpan(x.data, 0, x.count(), bytes);
            p.each = packs < kWaves * launch.multiprocessors() ? 1 : kEach;
            return launch(2, blocksFor(packs, kVec16Threads * p.each), kVec16Threads, p);
        }
        int64_t const stores = scattered ? (int64_t(p.count) * bytes + store - 1) / store : int64_t(p.count);
        p.each = (scattered && byRows) || stores < kWaves * launch.multiprocessors() ? 1 : kEach;
        int const kernel = !scattered ? 3 + std::countr_zero(uint64_t(unit / bytes)) : byRows ? 1 : 0;
        return launch(kernel, blocksFor(stores, kThreads * p.each), kThreads, p);
    });
}

constexpr CudaTactic kPlain{"gather_any_plain_cuda", 4, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kRing, kStaged, kPlain>;

} // namespace tw::ops::gather
