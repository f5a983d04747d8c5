// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/cuda_tactic.h"
#include "ops/gather/op.h"

namespace tw::ops::gather {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kPackBytes = 16;

// Every mode: the coordinates of y give an offset in j and one in x; `indices` neighbours from j's offset on say the
// rest of x's.
struct Params
{
    void const *x = nullptr, *j = nullptr;
    void* y = nullptr;
    uint64_t count = 0;
    cuda::Loop<2> loop; // over y: x, j
    int64_t size[kMaxRank] = {}, stride[kMaxRank] = {};
    int32_t indices = 1, pad = 0;
};

constexpr char const* kText = R"(
struct Params {
    void const *x, *j; void* y; u64 count; Loop<2> loop; i64 size[8], stride[8]; i32 indices, pad;
};
template <class U> TW_INLINE void gather(Params const& p)
{
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count) return;
    off at[2];
    locate<$rank$>(p.loop, i, at);
    waitForPrevious();
    i32 const* const j = static_cast<i32 const*>(p.j) + at[1];
    off from = at[0];
    bool inside = true;
    for (int k = 0; k < p.indices; ++k) {
        i64 index = j[k];
        index = index < 0 ? index + p.size[k] : index;
        inside = inside && index >= 0 && index < p.size[k];
        from += off(index * p.stride[k]);
    }
    U v = {};
    if (inside) v = static_cast<U const*>(p.x)[from];
    static_cast<U*>(p.y)[i] = v;
}
TW_KERNEL gather_elements(const __grid_constant__ Params p) { gather<$unit$>(p); }
TW_KERNEL gather_packs(const __grid_constant__ Params p) { gather<unit16>(p); }
)";

// Strides of x and j along the dimensions of y, and what the indices step over.
void describe(Attrs const& a, Extents const& x, Extents const& j, Extents const& y, Params& p, Extents& xAlong,
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

Result<void> run(Attrs const& a, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &j = args.inputs[1], &y = args.outputs[0];
    Params p;
    p.x = x.data;
    p.j = j.data;
    p.y = y.data;
    Extents dims = y.dims, xAlong, jAlong;
    describe(a, x.dims, j.dims, y.dims, p, xAlong, jAlong);
    // Rows that are moved whole go in packs.
    int64_t const pack = kPackBytes / sizeOf(x.type);
    int const last = dims.rank - 1;
    bool packs = last >= 0 && xAlong[last] == 1 && jAlong[last] == 0 && dims[last] % pack == 0 &&
                 (cuda::addressOf(x.data) | cuda::addressOf(y.data)) % kPackBytes == 0;
    for (int d = 0; d < last; ++d)
        packs = packs && xAlong[d] % pack == 0;
    for (int k = 0; k < p.indices; ++k)
        packs = packs && p.stride[k] % pack == 0;
    if (packs) {
        dims[last] /= pack;
        for (int d = 0; d < last; ++d)
            xAlong[d] /= pack;
        for (int k = 0; k < p.indices; ++k)
            p.stride[k] /= pack;
    }
    p.loop.set(dims);
    p.loop.setStrides(0, xAlong);
    p.loop.setStrides(1, jAlong);
    p.count = uint64_t(dims.volume());
    return launch(packs ? 1 : 0, blocksFor(dims.volume(), kThreads), kThreads, p);
}

CudaKernels generate(Problem const& problem, Config const&)
{
    CudaKernels out;
    out.wide = isWide(problem);
    out.isDependent = true;
    out.names = {"gather_elements", "gather_packs"};
    out.source = cuda::expand(kText, {{"unit", cuda::unitOf(sizeOf(problem.outputs[0].type))},
                                      {"rank", std::to_string(std::max(problem.outputs[0].dims.rank, 1))}}) +
                 cuda::sizeCheck<Params>();
    out.run = [&a = problem.node->attrsAs<Attrs>()](CudaLaunch const& launch, RunArgs& args) {
        return run(a, launch, args);
    };
    return out;
}

constexpr CudaTactic kPlain{"gather_plain_cuda", 2, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::gather
