// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/cuda_tactic.h"
#include "ops/shuffle/op.h"

namespace tw::ops::shuffle {

namespace {

constexpr int kThreads = 256;

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    uint64_t count = 0;
    cuda::Loop<1> second, first; // over y, with strides of the reshaped tensor; over that, with strides of x
};

constexpr char const* kText = R"(
struct Params { void const* x; void* y; u64 count; Loop<1> second, first; };
TW_KERNEL shuffle(const __grid_constant__ Params p)
{
    idx const i = threadIndex();
    if (i >= p.count) return;
    off at[1], from[1];
    locate<$secondRank$>(p.second, i, at);
    locate<$firstRank$>(p.first, idx(at[0]), from);
    static_cast<$unit$*>(p.y)[i] = static_cast<$unit$ const*>(p.x)[from[0]];
}
)";

bool isIdentity(std::vector<int64_t> const& permutation)
{
    return std::is_sorted(permutation.begin(), permutation.end());
}

// Walks a tensor of `dims` in the order of its permutation.
void setLoop(cuda::Loop<1>& loop, Extents const& dims, std::vector<int64_t> const& permutation)
{
    if (isIdentity(permutation)) {
        loop.set(Extents{dims.volume()});
        loop.setStrides(0, Extents{1});
        return;
    }
    Extents const strides = stridesOf(dims);
    Extents from;
    for (int64_t p : permutation)
        from.push(strides[int(p)]);
    loop.set(permuted(dims, permutation));
    loop.setStrides(0, from);
}

CudaKernels generate(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    CudaKernels out;
    out.wide = isWide(problem);
    out.names = {"shuffle"};
    auto rank = [](std::vector<int64_t> const& permutation) {
        return std::to_string(isIdentity(permutation) ? 1 : permutation.size());
    };
    out.source = cuda::expand(kText, {{"unit", cuda::unitOf(sizeOf(problem.outputs[0].type))},
                                      {"secondRank", rank(a.secondTranspose)},
                                      {"firstRank", rank(a.firstTranspose)}}) +
                 cuda::sizeCheck<Params>();
    out.run = [&a](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        Params p;
        p.x = x.data;
        p.y = y.data;
        p.count = uint64_t(y.count());
        setLoop(p.second, unpermuted(y.dims, a.secondTranspose), a.secondTranspose);
        setLoop(p.first, x.dims, a.firstTranspose);
        return launch(0, blocksFor(y.count(), kThreads), kThreads, p);
    };
    return out;
}

// One transpose, as loops over y: sizes, and the step in x of each; without dimensions of size 1, neighbours merged
// that are neighbours in x too.
struct Loops
{
    Extents dims, from;
};
Loops loopsOf(Extents const& x, std::vector<int64_t> const& permutation)
{
    Extents const strides = stridesOf(x);
    Loops l;
    for (int i = 0; i < x.rank; ++i) {
        int const p = permutation.empty() ? i : int(permutation[size_t(i)]);
        int const last = l.dims.rank - 1;
        if (x[p] == 1)
            continue;
        if (last >= 0 && l.from[last] == strides[p] * x[p]) {
            l.dims[last] *= x[p];
            l.from[last] = strides[p];
        } else {
            l.dims.push(x[p]);
            l.from.push(strides[p]);
        }
    }
    return l;
}

struct TileParams
{
    void const* x = nullptr;
    void* y = nullptr;
    uint64_t count = 0;           // rows: packs in all
    int64_t a = 0, b = 0;         // tiles: sizes along y's last dimension and along the one that x is dense in
    int64_t aStep = 0, bStep = 0; // of a in x, of b in y
    cuda::Div tilesA, tilesB;
    cuda::Loop<2> others; // offsets in x and y
};

constexpr char const* kTileText = R"(
struct Params {
    void const* x; void* y; u64 count; i64 a, b, aStep, bStep; Div tilesA, tilesB; Loop<2> others;
};
// Rows that are dense on both sides, in packs.
TW_KERNEL shuffle_rows(const __grid_constant__ Params p)
{
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count) return;
    off at[2];
    locate<8>(p.others, i, at);
    waitForPrevious();
    static_cast<unit16*>(p.y)[i] = static_cast<unit16 const*>(p.x)[at[0]];
}
// Squares of 32 x 32 through shared memory: dense reads along b, dense writes along a.
TW_KERNEL shuffle_tiles(const __grid_constant__ Params p)
{
    __shared__ $unit$ tile[32][33]; // [a, b]
    idx const block = blockIdx.x, rest = divide(block, p.tilesA), other = divide(rest, p.tilesB);
    off at[2];
    locate<8>(p.others, other, at);
    off const a0 = off(block - rest * idx(p.tilesA.d)) * 32, b0 = off(rest - other * idx(p.tilesB.d)) * 32;
    off const tx = threadIdx.x % 32, ty = threadIdx.x / 32, a = off(p.a), b = off(p.b);
    $unit$ const* const x = static_cast<$unit$ const*>(p.x) + at[0];
    $unit$* const y = static_cast<$unit$*>(p.y) + at[1];
    releaseDependents();
    waitForPrevious();
#pragma unroll
    for (int r = 0; r < 32; r += 8)
        if (a0 + ty + r < a && b0 + tx < b) tile[ty + r][tx] = x[(a0 + ty + r) * off(p.aStep) + b0 + tx];
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 32; r += 8)
        if (b0 + ty + r < b && a0 + tx < a) y[(b0 + ty + r) * off(p.bStep) + a0 + tx] = tile[tx][ty + r];
}
)";

constexpr int64_t kTile = 32, kPackBytes = 16;

Result<void> runTiles(Attrs const& a, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    bool const isSecond = isIdentity(a.firstTranspose);
    Loops l = loopsOf(isSecond ? unpermuted(y.dims, a.secondTranspose) : x.dims,
                      isSecond ? a.secondTranspose : a.firstTranspose);
    int const last = l.dims.rank - 1;
    cuda::Driver const& driver = launch.device().driver();
    if (last <= 0) { // all in one piece
        TW_CUDA(driver, cuMemcpyDtoDAsync(cuda::addressOf(y.data), cuda::addressOf(x.data), size_t(y.sizeBytes()),
                                          launch.stream()));
        return {};
    }
    TileParams p;
    p.x = x.data;
    p.y = y.data;
    int64_t const pack = kPackBytes / sizeOf(y.type);
    bool packs = l.from[last] == 1 && l.dims[last] % pack == 0 &&
                 (cuda::addressOf(x.data) | cuda::addressOf(y.data)) % kPackBytes == 0;
    for (int d = 0; d < last; ++d)
        packs = packs && l.from[d] % pack == 0;
    if (packs) {
        Extents from = l.from;
        l.dims[last] /= pack;
        for (int d = 0; d < last; ++d)
            from[d] /= pack;
        p.others.set(l.dims);
        p.others.setStrides(0, from);
        p.count = uint64_t(l.dims.volume());
        return launch(0, blocksFor(l.dims.volume(), kThreads), kThreads, p);
    }
    int dense = last; // the dimension that is dense in x
    while (dense > 0 && l.from[dense] != 1)
        --dense;
    Extents const strides = stridesOf(l.dims);
    Extents dims, xStrides, yStrides;
    for (int d = 0; d < last; ++d)
        if (d != dense) {
            dims.push(l.dims[d]);
            xStrides.push(l.from[d]);
            yStrides.push(strides[d]);
        }
    p.others.set(dims);
    p.others.setStrides(0, xStrides);
    p.others.setStrides(1, yStrides);
    p.a = l.dims[last];
    p.aStep = l.from[last];
    p.b = dense == last ? 1 : l.dims[dense];
    p.bStep = dense == last ? 0 : strides[dense];
    int64_t const tilesA = blocksFor(p.a, kTile), tilesB = blocksFor(p.b, kTile);
    p.tilesA = cuda::divBy(tilesA);
    p.tilesB = cuda::divBy(tilesB);
    return launch(1, tilesA * tilesB * dims.volume(), kThreads, p);
}

Support supportsTiles(Problem const& problem)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    if (!isIdentity(a.firstTranspose) && !isIdentity(a.secondTranspose))
        return Support::no("takes one transpose, not two");
    return Support::yes();
}

CudaKernels generateTiles(Problem const& problem, Config const&)
{
    CudaKernels out;
    out.wide = isWide(problem);
    out.isDependent = true;
    out.names = {"shuffle_rows", "shuffle_tiles"};
    out.source = cuda::expand(kTileText, {{"unit", cuda::unitOf(sizeOf(problem.outputs[0].type))}}) +
                 cuda::sizeCheck<TileParams>();
    out.run = [&a = problem.node->attrsAs<Attrs>()](CudaLaunch const& launch, RunArgs& args) {
        return runTiles(a, launch, args);
    };
    return out;
}

constexpr CudaTactic kTiles{"shuffle_tiles_cuda", 2, generateTiles, supportsTiles};
constexpr CudaTactic kPlain{"shuffle_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kTiles, &kPlain};
    return kList;
}

} // namespace tw::ops::shuffle
