// SPDX-License-Identifier: Apache-2.0
#include "families/copy/cuda_move_rows.h"

#include <algorithm>
#include <numeric>

#include "base/round.h"
#include "kernels/cuda/common/generate.h"

namespace tw::ops {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kWordBytes = 4, kPackBytes = 16, kSectorBytes = 32, kLineBytes = 128;
constexpr int64_t kLeastRow = 32, kMostRow = 1 << 10; // bytes
constexpr int64_t kTileBytes = 26 << 10;              // about

// Dimensions: b lies side by side in x, a in y; a step of a in x, of b in y. Positions in elements from addresses that
// are multiples of 128 bytes.
struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    int64_t xBegin = 0, xEnd = 0; // what may be read
    int64_t xAt = 0, yAt = 0;
    int64_t aStep = 0, bStep = 0;
    int32_t a = 0, b = 0, tileA = 1, tileB = 1;
    int32_t pitch = 0, isOne = 0;                   // shared memory from a to a; a tile is one stretch of x
    int32_t step = 1;                               // rows of b from one that a thread writes to to the next
    cuda::Div length, tilesA, tilesB, packs, words; // of a row; of a stretch of x; of one of y, at most
    cuda::Loop<2> others;
};

// A tile has stretches of x, rows of b, which lie in shared memory as they came; of y, rows of a, words are put
// together from elements. A thread has the same word of several rows of b: they differ by a constant on both sides.
constexpr char const* kText = R"(
struct RowParams {
    void const* x; void* y; i64 xBegin, xEnd, xAt, yAt, aStep, bStep; i32 a, b, tileA, tileB, pitch, isOne, step;
    Div length, tilesA, tilesB, packs, words; Loop<2> others;
};
TW_INLINE u32 sideOf(Element const* s, int const (&from)[kSide])
{
    u32 v = 0;
#pragma unroll
    for (int i = 0; i < kSide; ++i) v |= u32(s[from[i]].v) << i * kSize * 8 % 32;
    return v;
}
TW_KERNEL __launch_bounds__(256, 6) move_rows(const __grid_constant__ RowParams p)
{
    idx i = divide(blockIdx.x, p.tilesB), rest = divide(i, p.tilesA);
    int const b0 = int(blockIdx.x - i * idx(p.tilesB.d)) * p.tileB, a0 = int(i - rest * idx(p.tilesA.d)) * p.tileA;
    off at[2];
    locateBox(p.others, rest, at);
    int const na = p.a - a0 < p.tileA ? p.a - a0 : p.tileA, nb = p.b - b0 < p.tileB ? p.b - b0 : p.tileB, n = int(p.length.d);
    off const xRow = off(p.xAt) + at[0] + a0 * off(p.aStep) + off(b0) * n, lineStep = p.isOne ? 0 : off(p.aStep);
    waitForPrevious();
    releaseDependents();
    {
        int const packs = int(p.packs.d), lines = p.isOne ? 1 : na, length = p.isOne ? na * nb * n : nb * n;
        for (int v = threadIdx.x; v < lines * packs; v += 256) {
            int const line = int(divide(v, p.packs)), q = v - line * packs;
            off const begin = xRow + line * lineStep, shift = begin & (kPack - 1), e = begin - shift + q * kPack;
            if (q * kPack >= int(shift) + length) continue;
            Element const* const from = static_cast<Element const*>(p.x) + e;
            Whole* const to = shared + line * (p.pitch / kPack) + q;
            if (e >= off(p.xBegin) && e + kPack <= off(p.xEnd)) {
#if __CUDA_ARCH__ >= 800
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(u32(__cvta_generic_to_shared(to))), "l"(from) : "memory");
#else
                *to = *reinterpret_cast<Whole const*>(from);
#endif
            } else {
                for (int k = 0; k < kPack; ++k)
                    reinterpret_cast<Element*>(to)[k] = e + k >= off(p.xBegin) && e + k < off(p.xEnd) ? from[k] : Element{};
            }
        }
    }
    copiesDone();
    Element const* const s = reinterpret_cast<Element const*>(shared);
    int const words = int(p.words.d), length = na * n, step = p.step;
    for (int v = threadIdx.x; v < words * step; v += 256) {
        int const b = int(divide(v, p.words));
        if (b >= nb) break;
        off const to = off(p.yAt) + at[1] + (b0 + b) * off(p.bStep) + off(a0) * n;
        int const o = (v - b * words) * kSide - (int(to) & (128 / kSize - 1));
        if (o <= -kSide || o >= length) continue;
        int from[kSide];
        int const r0 = o < 0 ? 0 : int(divide(o, p.length));
#pragma unroll
        for (int k = 0; k < kSide; ++k) {
            int const r = o + k >= (r0 + 1) * n ? r0 + 1 : r0;
            from[k] = r * p.pitch + int((xRow + r * lineStep) & (kPack - 1)) + (o + k - r * n) + b * n;
        }
        Element* y = static_cast<Element*>(p.y) + to + o;
        i64 const yStep = i64(step) * p.bStep;
        if (o >= 0 && o + kSide <= length) {
#pragma unroll 4
            for (int h = b; h < nb; h += step, y += yStep) {
                *reinterpret_cast<u32*>(y) = sideOf(s, from);
#pragma unroll
                for (int k = 0; k < kSide; ++k) from[k] += step * n;
            }
        } else {
            for (int h = b; h < nb; h += step, y += yStep)
#pragma unroll
                for (int k = 0; k < kSide; ++k) {
                    if (o + k >= 0 && o + k < length) y[k] = s[from[k]];
                    from[k] += step * n;
                }
        }
    }
}
)";

// The dimension whose rows lie side by side in x; -1: there is none.
int sideOf(Box const& box)
{
    int const last = box.dims.rank - 1;
    for (int d = 0; d < last - 1; ++d)
        if (box.from[d] == box.dims[last] && box.dims[d] > 1)
            return d;
    return -1;
}

} // namespace

void addRowKernels(CudaKernels& out)
{
    out.source += std::string(kText) + "static_assert(sizeof(RowParams) == " + std::to_string(sizeof(Params)) +
                  ", \"layout of RowParams\");\n";
    out.names.push_back("move_rows");
}

bool areMovedRows(Box const& box)
{
    int const last = box.dims.rank - 1;
    int64_t const row = box.dims[last] * box.elementBytes;
    constexpr int64_t kLimit = int64_t(1) << 24;
    return last >= 2 && box.low.rank == 0 && box.from[last] == 1 && box.to[last] == 1 && row >= kLeastRow &&
           row <= kMostRow && box.to[last - 1] == box.dims[last] && box.from[last - 1] > 0 && sideOf(box) >= 0 &&
           std::max(box.dims[last - 1], box.dims[sideOf(box)]) < kLimit;
}

Result<void> moveRows(CudaLaunch const& launch, int kernel, Box const& box)
{
    int const last = box.dims.rank - 1, side = sideOf(box);
    int64_t const size = box.elementBytes, pack = kPackBytes / size, length = box.dims[last], row = length * size;
    Params p;
    uint64_t const x = cuda::addressOf(box.x), y = cuda::addressOf(box.y);
    p.x = reinterpret_cast<void const*>(x / kLineBytes * kLineBytes);
    p.y = reinterpret_cast<void*>(y / kLineBytes * kLineBytes);
    p.xAt = int64_t(x % kLineBytes) / size;
    p.yAt = int64_t(y % kLineBytes) / size;
    p.xBegin = p.xAt;
    p.xEnd = p.xAt + length;
    Extents dims, xSteps, ySteps;
    for (int d = 0; d < last; ++d) {
        int64_t const reach = (box.dims[d] - 1) * box.from[d];
        (reach < 0 ? p.xBegin : p.xEnd) += reach;
        if (d == side || d == last - 1)
            continue;
        dims.push(box.dims[d]);
        xSteps.push(box.from[d]);
        ySteps.push(box.to[d]);
    }
    p.others.set(dims);
    p.others.setStrides(0, xSteps);
    p.others.setStrides(1, ySteps);
    p.a = int32_t(box.dims[last - 1]);
    p.b = int32_t(box.dims[side]);
    p.aStep = box.from[last - 1];
    p.bStep = box.to[side];
    // As many rows of a as make whole sectors of y, where there are so many.
    int64_t const whole = std::min<int64_t>(kSectorBytes / std::gcd(kSectorBytes, row), p.a), most = kTileBytes / row,
                  tilesB = cuda::ceilDiv(p.b, std::clamp<int64_t>(most / whole, 1, p.b)),
                  tileB = cuda::ceilDiv(p.b, tilesB), wanted = std::max<int64_t>(most / tileB / whole, 1) * whole,
                  tileA = std::min<int64_t>(p.a, wanted);
    p.tileA = int32_t(tileA);
    p.tileB = int32_t(tileB);
    p.isOne = tileB == p.b && p.aStep == p.b * length;
    int64_t const stretch = (p.isOne ? tileA * tileB : tileB) * length, held = roundUp(stretch + pack - 1, pack);
    p.pitch = int32_t(p.isOne ? p.aStep : held);
    p.length = cuda::divBy(length);
    p.tilesA = cuda::divBy(cuda::ceilDiv(p.a, tileA));
    p.tilesB = cuda::divBy(cuda::ceilDiv(p.b, tileB));
    p.packs = cuda::divBy(held / pack);
    p.words = cuda::divBy(cuda::ceilDiv(tileA * row + kLineBytes - size, kWordBytes));
    // Rows of b that begin at the same place of a sector; enough of them for all threads.
    int64_t const alike = kSectorBytes / std::gcd(kSectorBytes, p.bStep * size),
                  least = cuda::ceilDiv(kThreads, int64_t(p.words.d));
    p.step = int32_t(std::min(roundUp(least, alike), tileB));
    int64_t const bytes = held * size * (p.isOne ? 1 : tileA);
    return launch(kernel, int64_t(p.tilesA.d * p.tilesB.d) * dims.volume(), kThreads, p, bytes);
}

} // namespace tw::ops
