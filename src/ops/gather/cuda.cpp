// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "families/copy/cuda_words.h"
#include "ops/gather/cuda_ring.h"
#include "ops/gather/cuda_staged.h"
#include "ops/gather/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::gather {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostUnit = 16, kStoreBytes = 4, kRowStoreBytes = 8;
constexpr int kEach = 4;         // units for a thread, in flight together
constexpr int64_t kWaves = 4096; // threads of a multiprocessor, about: with fewer of them a thread moves one unit

// Every mode: the coordinates of y give an offset in j and one in x; `indices` neighbours from j's offset on say the
// rest of x's.
struct Params
{
    void const *x = nullptr, *j = nullptr;
    void* y = nullptr;
    uint64_t count = 0;
    cuda::Loop<2> loop; // over y: x, j
    int64_t size[kMaxRank] = {}, stride[kMaxRank] = {};
    int32_t indices = 1, first = 0, each = 1, pad = 0; // first: the first dimension that counts
    Stretch words;                                     // around x
};

constexpr char const* kText = R"(
struct Params {
    void const *x, *j; void* y; u64 count; Loop<2> loop; i64 size[8], stride[8]; i32 indices, first, each, pad;
    void const* words; i64 wordsAt, wordsBegin, wordsSpan;
};
typedef $unit$ Element;
constexpr int kEach = 4, kPerStore = 4 / sizeof(Element), kPerRowStore = 8 / sizeof(Element);
struct Place { off x; i32 const* j; };
// From what the dimensions up to kLast count.
template <int kLast = 7> TW_INLINE Place placeOf(Params const& p, idx i)
{
    off x = 0, j = 0;
#pragma unroll
    for (int r = kLast; r >= 0; --r) {
        bool const isFirst = r == 0 || r <= p.first;
        idx const q = isFirst ? 0 : divide(i, p.loop.dim[r]), c = isFirst ? i : i - q * idx(p.loop.dim[r].d);
        x += off(c) * off(p.loop.stride[0][r]);
        j += off(c) * off(p.loop.stride[1][r]);
        if (isFirst) break;
        i = q;
    }
    return {x, static_cast<i32 const*>(p.j) + j};
}
// `index`: the first one. False: one of them lies outside.
TW_INLINE bool follow(Params const& p, Place& at, i64 index)
{
    bool inside = true;
    for (int k = 0;;) {
        index = index < 0 ? index + p.size[k] : index;
        inside = inside && index >= 0 && index < p.size[k];
        at.x += off(index * p.stride[k]);
        if (++k >= p.indices) return inside;
        index = at.j[k];
    }
}
template <class U, int N, class Out> TW_INLINE void gather(Params const& p, Out&& out)
{
    releaseDependents();
    idx const begin = idx(blockIdx.x) * idx(p.each) * 256 + threadIdx.x;
    Place at[kEach][N];
    i32 index[kEach][N];
    auto isThere = [&](int k, int e) { return k < p.each && (begin + k * 256) * N + e < p.count; };
#pragma unroll
    for (int k = 0; k < kEach; ++k)
#pragma unroll
        for (int e = 0; e < N; ++e)
            if (isThere(k, e)) at[k][e] = placeOf(p, (begin + k * 256) * N + e);
    waitForPrevious();
#pragma unroll
    for (int k = 0; k < kEach; ++k)
#pragma unroll
        for (int e = 0; e < N; ++e)
            if (isThere(k, e)) index[k][e] = p.indices > 0 ? *at[k][e].j : 0;
    U v[kEach][N];
#pragma unroll
    for (int k = 0; k < kEach; ++k)
#pragma unroll
        for (int e = 0; e < N; ++e) {
            v[k][e] = U{};
            if (isThere(k, e) && (p.indices == 0 || follow(p, at[k][e], index[k][e])))
                v[k][e] = static_cast<U const*>(p.x)[at[k][e].x];
        }
#pragma unroll
    for (int k = 0; k < kEach; ++k)
        if (k < p.each) out((begin + k * 256) * N, v[k]);
}
template <class U> TW_INLINE void gatherUnits(Params const& p)
{
    gather<U, 1>(p, [&](idx i, U const (&v)[1]) { if (i < p.count) static_cast<U*>(p.y)[i] = v[0]; });
}
// 4 bytes of y at a time, elements from anywhere.
TW_KERNEL __launch_bounds__(256) gather_scattered(const __grid_constant__ Params p)
{
    gather<Element, kPerStore>(p, [&](idx i, Element const (&v)[kPerStore]) {
        Element* const y = static_cast<Element*>(p.y) + i;
        Pack<Element, kPerStore> pack;
#pragma unroll
        for (int e = 0; e < kPerStore; ++e) pack.v[e] = v[e];
        if (i + kPerStore <= p.count) *reinterpret_cast<Pack<Element, kPerStore>*>(y) = pack;
        else
#pragma unroll
            for (int e = 0; e < kPerStore; ++e)
                if (i + e < p.count) y[e] = v[e];
    });
}
// The same where an index stands for a whole row of y.
struct Row { Place at; idx column; bool inside; };
TW_INLINE Row rowOf(Params const& p, idx i)
{
    idx const columns = idx(p.loop.dim[7].d), row = p.first == 7 ? 0 : divide(i, p.loop.dim[7]);
    Row r = {placeOf(p, row * columns), i - row * columns, true};
    r.inside = p.indices == 0 || follow(p, r.at, *r.at.j);
    return r;
}
TW_KERNEL __launch_bounds__(256) gather_scattered_rows(const __grid_constant__ Params p)
{
    releaseDependents();
    idx const i = threadIndex() * kPerRowStore, columns = idx(p.loop.dim[7].d);
    if (i >= p.count) return;
    waitForPrevious();
    Element const* const x = static_cast<Element const*>(p.x);
    off const step = off(p.loop.stride[0][7]);
    Row r = rowOf(p, i);
    Pack<Element, kPerRowStore> pack;
#pragma unroll
    for (int e = 0; e < kPerRowStore; ++e) {
        pack.v[e] = Element{};
        if (r.column == columns) {
            if (i + e >= p.count) break;
            r = rowOf(p, i + e);
        }
        if (r.inside) pack.v[e] = x[r.at.x + off(r.column) * step];
        ++r.column;
    }
    Element* const y = static_cast<Element*>(p.y) + i;
    if (i + kPerRowStore <= p.count) *reinterpret_cast<Pack<Element, kPerRowStore>*>(y) = pack;
    else
#pragma unroll
        for (int e = 0; e < kPerRowStore; ++e)
            if (i + e < p.count) y[e] = pack.v[e];
}
// Long rows, by words.
struct GatheredRows {
    struct Spot { Place at; idx column, end; i32 index; };
    static constexpr bool kClips = true;
    Params const& p;
    TW_INLINE Whole fill() const { return {}; }
    TW_INLINE Spot spot(idx i) const
    {
        idx const columns = idx(p.loop.dim[7].d), row = divide(i, p.loop.dim[7]), begin = row * columns;
        Place const at = placeOf<6>(p, row);
        return {at, i - begin, begin + columns, p.indices > 0 ? *at.j : 0};
    }
    TW_INLINE Spot next(Spot const& at) const { return spot(at.end); }
    TW_INLINE Piece piece(Spot const& spot) const
    {
        Place at = spot.at;
        bool const inside = p.indices == 0 || follow(p, at, spot.index);
        idx const left = idx(p.loop.dim[7].d) - spot.column;
        return {p.words, off(p.wordsAt) + at.x + off(spot.column), off(p.wordsBegin), idx(p.wordsSpan), left, 0,
                inside ? off(left) : 0};
    }
    TW_INLINE idx segment(idx i) const { return divide(i, p.loop.dim[7]); }
    TW_INLINE idx end(idx row) const { return (row + 1) * idx(p.loop.dim[7].d); }
};
TW_KERNEL __launch_bounds__(256) gather_words(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    copyWords<sizeof(Element)>(GatheredRows{p}, p.y, idx(p.count), p.each);
}
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

// Bytes that everything is a multiple of where rows are moved whole.
int64_t unitBytes(Params const& p, int64_t bytes, Extents const& dims, Extents const& xSteps, Extents const& jSteps)
{
    int const last = dims.rank - 1;
    if (xSteps[last] != 1 || jSteps[last] != 0)
        return bytes;
    uint64_t all = uint64_t(dims[last]);
    for (int d = 0; d < last; ++d)
        all |= uint64_t(xSteps[d]);
    for (int k = 0; k < p.indices; ++k)
        all |= uint64_t(p.stride[k]);
    all = all * uint64_t(bytes) | cuda::addressOf(p.x) | cuda::addressOf(p.y);
    int64_t unit = bytes;
    while (unit < kMostUnit && all % uint64_t(2 * unit) == 0)
        unit *= 2;
    return unit;
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
    bool const words = byRows && unit < kWordBytes && xs[merged.rank - 1] == 1 &&
                       cuda::addressOf(y.data) % uint64_t(kWordBytes) == 0 && bytes <= 4 &&
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
        int64_t const packs = (y.count() * bytes + kWordBytes - 1) / kWordBytes;
        p.words = stretchOf(x.data, 0, x.count(), bytes);
        p.each = packs < kWaves * launch.multiprocessors() ? 1 : kEach;
        return launch(2, blocksFor(packs, kWordThreads * p.each), kWordThreads, p);
    }
    int64_t const stores = scattered ? (int64_t(p.count) * bytes + store - 1) / store : int64_t(p.count);
    p.each = (scattered && byRows) || stores < kWaves * launch.multiprocessors() ? 1 : kEach;
    int kernel = byRows ? 1 : 0;
    if (!scattered)
        for (int64_t b = bytes, k = 3; b <= unit; b *= 2)
            kernel = int(k++);
    return launch(kernel, blocksFor(stores, kThreads * p.each), kThreads, p);
}

CudaKernels generate(Problem const& problem, Config const&)
{
    int64_t const bytes = sizeOf(problem.outputs[0].type);
    CudaKernels out;
    out.wide = isWide(problem);
    out.isDependent = true;
    out.names = {"gather_scattered", "gather_scattered_rows", "gather_words"};
    out.source = kWordsText + cuda::expand(kText, {{"unit", cuda::unitOf(bytes)}}) + cuda::sizeCheck<Params>();
    for (int64_t unit = bytes; unit <= kMostUnit; unit *= 2) {
        std::string const n = std::to_string(unit);
        out.names.push_back("gather_" + n);
        out.source += "TW_KERNEL __launch_bounds__(256) gather_" + n +
                      "(const __grid_constant__ Params p) { gatherUnits<unit" + n + ">(p); }\n";
    }
    out.run = [&a = problem.node->attrsAs<Attrs>()](CudaLaunch const& launch, RunArgs& args) {
        return run(a, launch, args);
    };
    return out;
}

constexpr CudaTactic kRing{"gather_ring_cuda", 1, generateRing, supportsRing};
constexpr CudaTactic kStaged{"gather_staged_cuda", 1, generateStaged, supportsStaged};
constexpr CudaTactic kPlain{"gather_plain_cuda", 4, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kRing, &kStaged, &kPlain};
    return kList;
}

} // namespace tw::ops::gather
