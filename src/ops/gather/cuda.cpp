// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "families/copy/cuda_strided_copy.h"
#include "ops/gather/gather_params.h"
#include "ops/gather/op.h"
#include "ops/gather/tactics.h"

namespace tw::ops::gather {

namespace {

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
