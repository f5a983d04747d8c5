// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda_move_tiles.h"

#include <algorithm>

namespace tw::ops {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kPackBytes = 16;
constexpr int64_t kShortBytes = 256; // rows up to this are taken whole
constexpr int64_t kMostShared = 72 << 10;
constexpr int kLanes = 8; // threads that write 16 bytes each to rows side by side

// a: the dimension y is dense in, b: the one x is. Positions in elements, from addresses that are multiples of 16
// bytes.
struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    int64_t xBegin = 0, xEnd = 0; // what may be read
    int64_t xAt = 0, yAt = 0;
    int64_t a = 0, b = 0, aStep = 0, bStep = 0; // sizes; step of a in x, of b in y
    int32_t tileA = 1, tileB = 1;
    int32_t pitch = 0, skew = 0; // of shared memory: from a to a, and more behind each pack's worth of them
    int32_t isFlat = 0, pad = 0; // a tile is one stretch of x
    cuda::Div tilesA, tilesB, xPacks, yPacks, width; // packs of a row; elements of a row of y that is taken whole
    cuda::Loop<2> others;
};

// Rows begin anywhere: x is read in aligned packs, and what lies in front of a row's first element goes along into
// shared memory; y is written in aligned packs, and by elements at the ends of a tile's rows.
constexpr char const* kText = R"(
struct TileParams {
    void const* x; void* y; i64 xBegin, xEnd, xAt, yAt, a, b, aStep, bStep; i32 tileA, tileB, pitch, skew, isFlat, pad;
    Div tilesA, tilesB, xPacks, yPacks, width; Loop<2> others;
};
constexpr int kPack = 16 / sizeof(Element);
typedef Pack<Element, kPack> Whole;
extern __shared__ Whole shared[];
TW_INLINE Whole packAt(TileParams const& p, i64 e)
{
    Element const* const x = static_cast<Element const*>(p.x) + e;
    if (e >= p.xBegin && e + kPack <= p.xEnd) return *reinterpret_cast<Whole const*>(x);
    Whole v = {};
#pragma unroll
    for (int i = 0; i < kPack; ++i)
        if (e + i >= p.xBegin && e + i < p.xEnd) v.v[i] = x[i];
    return v;
}
// kX: rows of x begin at packs. kY: rows of y do (0), do not (1), or are taken whole and follow one another (2).
template <bool kX, int kY> TW_INLINE void moveTiles(TileParams const& p)
{
    idx const rest = divide(blockIdx.x, p.tilesB), other = divide(rest, p.tilesA);
    i64 const b0 = i64(blockIdx.x - rest * idx(p.tilesB.d)) * p.tileB, a0 = i64(rest - other * idx(p.tilesA.d)) * p.tileA;
    off at[2];
    locate<$others$>(p.others, other, at);
    int const na = int(p.a - a0 < p.tileA ? p.a - a0 : p.tileA), nb = int(p.b - b0 < p.tileB ? p.b - b0 : p.tileB);
    i64 const xRow = p.xAt + at[0] + a0 * p.aStep + b0, yRow = p.yAt + at[1] + b0 * p.bStep + a0;
    bool const isFlat = p.isFlat;
    waitForPrevious();
    releaseDependents();
    {
        int const packs = int(p.xPacks.d), total = isFlat ? packs : na * packs;
        i64 const length = isFlat ? na * nb : nb;
        for (int begin = threadIdx.x; begin < total; begin += 4 * 256) {
            Whole v[4];
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                int const w = begin + k * 256, row = isFlat ? 0 : int(divide(w, p.xPacks));
                i64 const start = xRow + row * p.aStep, e = start - (kX ? 0 : start & (kPack - 1)) + (w - row * packs) * kPack;
                v[k] = Whole{};
                if (w < total && e < start + length) v[k] = packAt(p, e);
            }
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                int const w = begin + k * 256, row = isFlat ? 0 : int(divide(w, p.xPacks));
                if (w < total) shared[(row * p.pitch + row / kPack * p.skew) / kPack + (w - row * packs)] = v[k];
            }
        }
    }
    __syncthreads();
    int const firstShift = int(xRow & (kPack - 1)), stepShift = isFlat ? 0 : int(p.aStep & (kPack - 1));
    auto element = [&](int a, int b) {
        int const shift = kX ? 0 : (firstShift + a * stepShift) & (kPack - 1);
        return reinterpret_cast<Element const*>(shared)[a * p.pitch + a / kPack * p.skew + b + shift];
    };
    Element* const y = static_cast<Element*>(p.y);
    if constexpr (kY == 2) {
        int const length = na * nb, m = int(yRow & (kPack - 1));
        for (int v = threadIdx.x; v * kPack < length + m; v += 256) {
            int const o = v * kPack - m, first = o < 0 ? 0 : o;
            int b = int(divide(first, p.width)), a = first - b * int(p.width.d);
            Whole out = {};
#pragma unroll
            for (int i = 0; i < kPack; ++i)
                if (o + i >= 0 && o + i < length) {
                    out.v[i] = element(a, b);
                    if (++a == na) a = 0, ++b;
                }
            Element* const to = y + yRow + o;
            if (o >= 0 && o + kPack <= length) *reinterpret_cast<Whole*>(to) = out;
            else
#pragma unroll
                for (int i = 0; i < kPack; ++i)
                    if (o + i >= 0 && o + i < length) to[i] = out.v[i];
        }
    } else {
        int const packs = int(p.yPacks.d), total = (nb + 7) / 8 * 8 * packs;
        for (int v = threadIdx.x; v < total; v += 256) {
            int const group = int(divide(v / 8, p.yPacks)), b = group * 8 + v % 8;
            i64 const row = yRow + b * p.bStep;
            int const o = (v / 8 - group * packs) * kPack - (kY == 0 ? 0 : int(row & (kPack - 1)));
            if (b >= nb || o >= na) continue;
            Element* const to = y + row + o;
            if ((kY == 0 || o >= 0) && o + kPack <= na) {
                Whole out;
#pragma unroll
                for (int i = 0; i < kPack; ++i) out.v[i] = element(o + i, b);
                *reinterpret_cast<Whole*>(to) = out;
            } else {
                for (int i = o < 0 ? -o : 0; i < kPack && o + i < na; ++i) to[i] = element(o + i, b);
            }
        }
    }
}
)";

} // namespace

void addTileKernels(CudaKernels& out)
{
    out.source += cuda::expand(kText, {{"others", std::to_string(kMaxRank - 2)}});
    for (int x = 0; x < 2; ++x)
        for (int y = 0; y < 3; ++y) {
            std::string const name = "move_tiles_" + std::to_string(x) + std::to_string(y);
            out.names.push_back(name);
            out.source += "TW_KERNEL __launch_bounds__(256) " + name +
                          "(const __grid_constant__ TileParams p) { moveTiles<" + (x ? "true" : "false") + ", " +
                          std::to_string(y) + ">(p); }\n";
        }
    out.source +=
        "static_assert(sizeof(TileParams) == " + std::to_string(sizeof(Params)) + ", \"layout of TileParams\");\n";
    out.sharedBytes = kMostShared;
}

Result<void> moveTiles(CudaLaunch const& launch, int first, Box const& box, int dense, TileShape const& shape)
{
    int const last = box.dims.rank - 1;
    int64_t const pack = kPackBytes / box.elementBytes,
                  most = std::clamp<int64_t>(shape.bytes, 4 << 10, kMostShared / 2) / box.elementBytes,
                  brief = kShortBytes / box.elementBytes;
    Params p;
    uint64_t const x = cuda::addressOf(box.x), y = cuda::addressOf(box.y);
    p.x = reinterpret_cast<void const*>(x / kPackBytes * kPackBytes);
    p.y = reinterpret_cast<void*>(y / kPackBytes * kPackBytes);
    p.xAt = int64_t(x % kPackBytes) / box.elementBytes;
    p.yAt = int64_t(y % kPackBytes) / box.elementBytes;
    p.xBegin = p.xAt;
    p.xEnd = p.xAt + 1;
    p.a = box.dims[last];
    p.b = box.dims[dense];
    p.aStep = box.from[last];
    p.bStep = box.to[dense];
    Extents dims, xSteps, ySteps;
    bool evenX = p.xAt == 0, evenY = p.yAt == 0 && p.bStep % pack == 0;
    for (int d = 0; d <= last; ++d) {
        int64_t const reach = (box.dims[d] - 1) * box.from[d];
        (reach < 0 ? p.xBegin : p.xEnd) += reach;
        if (d == dense || d == last)
            continue;
        dims.push(box.dims[d]);
        xSteps.push(box.from[d]);
        ySteps.push(box.to[d]);
        evenX = evenX && box.from[d] % pack == 0;
        evenY = evenY && box.to[d] % pack == 0;
    }
    auto multiple = [pack](int64_t n) { return std::max(n / pack, int64_t(1)) * pack; };
    bool const flatX = p.b <= brief && p.aStep == p.b, flatY = !flatX && p.a <= brief && p.bStep == p.a;
    int64_t tileA = std::min(p.a, std::clamp(shape.runBytes / box.elementBytes, pack, brief)),
            tileB = multiple(most / tileA);
    if (flatX) {
        tileB = p.b;
        tileA = std::min(p.a, multiple(most / p.b));
        p.isFlat = 1;
    } else if (flatY) {
        tileA = p.a;
        tileB = multiple(most / p.a);
    } else if (p.b < tileB) {
        tileB = p.b;
        tileA = std::min(p.a, multiple(most / ((tileB + pack - 1) / pack * pack + pack)));
    }
    tileB = std::min(tileB, (p.b + pack - 1) / pack * pack);
    int64_t const tilesA = (p.a + tileA - 1) / tileA, tilesB = (p.b + tileB - 1) / tileB;
    // Tiles begin at packs where rows do.
    evenX = evenX && (flatX ? tilesA == 1 || tileA * p.b % pack == 0
                            : p.aStep % pack == 0 && (tilesB == 1 || tileB % pack == 0));
    evenY = evenY && (tilesA == 1 || tileA % pack == 0);
    p.tileA = int32_t(tileA);
    p.tileB = int32_t(tileB);
    int64_t const xPacks = flatX ? (tileA * p.b + pack - 1) / pack + 1 : (tileB + pack - 1) / pack + (evenX ? 0 : 1);
    p.pitch = int32_t(flatX ? p.b : xPacks * pack);
    // Packs of a warp come from rows that lie 16 bytes (2 of 4 elements: 32) further, in banks of their own.
    p.skew = int32_t(flatX ? 0 : std::max(pack, (kLanes + pack - 1) / pack * pack));
    p.tilesA = cuda::divBy(tilesA);
    p.tilesB = cuda::divBy(tilesB);
    p.xPacks = cuda::divBy(xPacks);
    p.yPacks = cuda::divBy((tileA + pack - 1) / pack + (evenY ? 0 : 1));
    p.width = cuda::divBy(p.a);
    p.others.set(dims);
    p.others.setStrides(0, xSteps);
    p.others.setStrides(1, ySteps);
    int64_t const elements = flatX ? xPacks * pack : tileA * p.pitch + (tileA / pack + 1) * p.skew;
    int const kernel = first + (evenX ? 3 : 0) + (flatY ? 2 : evenY ? 0 : 1);
    return launch(kernel, tilesA * tilesB * dims.volume(), kThreads, p, elements * box.elementBytes);
}

} // namespace tw::ops
