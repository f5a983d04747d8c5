// SPDX-License-Identifier: Apache-2.0
#include "ops/pooling/cuda_bands.h"

#include <algorithm>

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"
#include "ops/pooling/cuda_cells.h"
#include "ops/pooling/op.h"

namespace tw::ops::pooling {

namespace {

using cuda::ceilDiv;

constexpr int64_t kMostThreads = 512;
constexpr int64_t kMostShared = 47 * 1024;
constexpr double kLeastBytes = 6 * 1024, kMostBytes = 16 * 1024; // of x, of a block
constexpr int64_t kMostWindow = 7;                               // of either axis: rows of a window stay in registers
constexpr int64_t kSlack = 320; // bytes round a band, which threads at its ends read and do not use

// A config's numbers.
enum Place
{
    kColumns, // outputs of a row of each thread
    kRows,    // outputs, one below the other
    kGroups,  // of so many rows, of a band
    kPlanes,  // of a block, where a band is a plane
    kPlaces,
};

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    uint64_t countX = 0;
    cuda::Div bands; // of a plane
    int32_t planes = 0, h = 0, outH = 0, padH = 0, afterH = 0, afterW = 0;
};

// A word of y from its cells.
constexpr char const* kOfPairs = R"(
TW_INLINE u32 wordOf(Cell v, Cell) { return v; }
)";
constexpr char const* kOfSingles = R"(
TW_INLINE u32 wordOf(Cell low, Cell high)
{
    if constexpr (sizeof(T) == 4) return __float_as_uint(low);
    u32 pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
)";

// A block copies the rows of x that a band of y needs, which lie together in memory, to shared memory in packs wherever
// they begin; a thread goes down ROWS outputs of COLUMNS columns and keeps what R rows of x have come to; y leaves
// through shared memory as x came.
constexpr char const* kText = R"(
struct Params { void const* x; void* y; u64 countX; Div bands; i32 planes, h, outH, padH, afterH, afterW; };
constexpr int R = $r$, S = $s$, STEP_H = $strideH$, STEP_W = $strideW$, PAD_W = $padW$, W = $w$, OUT_W = $outW$;
constexpr int ROWS = $rows$, COLUMNS = $columns$, GROUPS = $groups$, PLANES = $planes$, THREADS = $threads$;
constexpr int BAND = ROWS * GROUPS, WIDE = (OUT_W + COLUMNS - 1) / COLUMNS, UNITS = WIDE * GROUPS * PLANES;
typedef unsigned short u16;
constexpr int SIZE = sizeof(T), SIDE = 4 / SIZE, V = 16 / SIZE, LINE = 128 / SIZE; // elements of a word, a pack, 128 bytes
// Words of a row that a thread reads: left of its own columns, those, right of them.
constexpr int IN = COLUMNS * STEP_W, BEYOND = S - STEP_W - PAD_W > 0 ? S - STEP_W - PAD_W : 0;
constexpr int LEFT = (PAD_W + SIDE - 1) / SIDE, OWN = IN / SIDE, RIGHT = (BEYOND + SIDE - 1) / SIDE;
constexpr int WORDS = LEFT + OWN + RIGHT, CELLS = WORDS * SIDE / PER, SLOTS = COLUMNS / PER;
constexpr bool ODD = W % SIDE != 0; // rows may begin within a word
// Elements of an access to shared memory: a power of two.
__device__ constexpr int lowestBit(int v) { return v & -v; }
constexpr int UNIT_X = lowestBit(W | IN | V), UNIT_Y = lowestBit(OUT_W | COLUMNS | V), OWN_WORDS = UNIT_X < SIDE ? 1 : UNIT_X / SIDE;
constexpr int FRONT = LINE; // elements of shared memory before those of x
// 1 over the positions of a window along one axis that count for the average; 0 where it sees none.
TW_INLINE float shareOf(int start, int window, int in, int after)
{
    int const stop = start + window, seen = min(stop, in) - max(start, 0);
    int const count = $excludes$ ? seen : min(stop, in + after) - start;
    float by;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(by) : "f"(float(count)));
    return seen > 0 ? by : 0.0f;
}
TW_INLINE void takeRow(u32 const* at, int shift, u32 (&words)[WORDS])
{
    if constexpr (ODD) {
        constexpr int NEED = (LEFT * 2 + IN + BEYOND + 2) / 2;
        u32 raw[WORDS + 1];
#pragma unroll
        for (int c = 0; c <= WORDS; ++c) raw[c] = c < NEED ? at[c] : 0;
#pragma unroll
        for (int c = 0; c < WORDS; ++c) words[c] = __funnelshift_r(raw[c], raw[c + 1], shift);
    } else {
#pragma unroll
        for (int c = 0; c < LEFT; ++c) words[c] = at[c];
#pragma unroll
        for (int c = 0; c < OWN; c += OWN_WORDS) {
            Pack<u32, OWN_WORDS> const v = *reinterpret_cast<Pack<u32, OWN_WORDS> const*>(at + LEFT + c);
#pragma unroll
            for (int k = 0; k < OWN_WORDS; ++k) words[LEFT + c + k] = v.v[k];
        }
#pragma unroll
        for (int c = 0; c < RIGHT; ++c) words[LEFT + OWN + c] = at[LEFT + OWN + c];
    }
}
TW_INLINE void putRow(T* to, int q, Cell const (&v)[SLOTS])
{
    u32 words[COLUMNS / SIDE];
#pragma unroll
    for (int o = 0; o < COLUMNS; o += SIDE) words[o / SIDE] = wordOf(v[o / PER], v[o / PER + (PER == 1 ? SIDE - 1 : 0)]);
#pragma unroll
    for (int o = 0; o < COLUMNS; o += UNIT_Y) {
        if (OUT_W % COLUMNS != 0 && q + o >= OUT_W) break;
        if constexpr (UNIT_Y < SIDE) reinterpret_cast<u16*>(to)[o] = u16(words[o / 2] >> o % 2 * 16);
        else {
            constexpr int N = UNIT_Y < SIDE ? 1 : UNIT_Y / SIDE;
            Pack<u32, N> part;
#pragma unroll
            for (int k = 0; k < N; ++k) part.v[k] = words[o / SIDE + k];
            *reinterpret_cast<Pack<u32, N>*>(to + o) = part;
        }
    }
}
TW_KERNEL __launch_bounds__(THREADS) pooling(const __grid_constant__ Params p)
{
    __shared__ alignas(128) u32 data[$wordsX$];
    __shared__ alignas(128) u32 staged[$wordsY$];
    __shared__ float shares[BAND];
    waitForPrevious();
    releaseDependents();
    int const group = int(divide(blockIdx.x, p.bands)), band = int(blockIdx.x) - group * int(p.bands.d);
    int const plane0 = group * PLANES, planes = min(PLANES, p.planes - plane0), o0 = band * BAND;
    // Of x rows [h0, stop), of all planes where there are several; of y rows from o0 on.
    int const h0 = PLANES > 1 ? 0 : max(o0 * STEP_H - p.padH, 0);
    int const stop = PLANES > 1 ? p.h : min((o0 + BAND - 1) * STEP_H - p.padH + R, p.h);
    int const firstX = (plane0 * p.h + h0) * W, shiftX = firstX & (LINE - 1), x0 = firstX - shiftX;
    int const elements = shiftX + (PLANES > 1 ? planes * p.h : stop - h0) * W;
    T const* const x = static_cast<T const*>(p.x) + x0;
    T* const in = reinterpret_cast<T*>(data) + FRONT;
    // What lies behind x is not read: packs up to there, then elements. Lines stay lines in shared memory: a copy of 32
    // bytes that ends in two of them reads memory twice.
    int const whole = u64(x0) + u32(elements + V - 1) <= p.countX ? elements : int((p.countX - x0) / V) * V;
    u32 const to = sharedAddress(in);
#pragma unroll 4
    for (int k = threadIdx.x * V; k < whole; k += THREADS * V)
        if (k + V > shiftX) copyAsync16(to + k * SIZE, x + k, true);
    copyCommit();
    if (whole < elements)
#pragma unroll 1
        for (int k = whole + threadIdx.x; k < elements; k += THREADS) in[k] = x[k];
    if (AVERAGES)
#pragma unroll 1
        for (int i = threadIdx.x; i < BAND; i += THREADS) shares[i] = shareOf((o0 + i) * STEP_H - p.padH, R, p.h, p.afterH);
    int const firstY = (plane0 * p.outH + o0) * OUT_W, shiftY = firstY & (LINE - 1);
    int const rowsY = PLANES > 1 ? planes * p.outH : min(BAND, p.outH - o0);
    int const unit = threadIdx.x, q = unit % WIDE * COLUMNS, plane = unit / WIDE % PLANES, o = unit / (WIDE * PLANES) * ROWS;
    int const w = q * STEP_W - LEFT * SIDE; // column of the first word
    // Parts of words that lie outside of x.
    u32 mask[WORDS];
    bool isEdge[WORDS];
#pragma unroll
    for (int c = 0; c < WORDS; ++c) {
        int const column = w + c * SIDE;
        isEdge[c] = c < LEFT || (WIDE - 1) * IN + (c - LEFT + 1) * SIDE > W;
        mask[c] = (u32(column) < W ? 0xFFFFu : 0) | (u32(column + SIDE - 1) < W ? 0xFFFF0000u : 0);
    }
    float byW[COLUMNS] = {};
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i)
        if (AVERAGES) byW[i] = shareOf((q + i) * STEP_W - PAD_W, S, W, p.afterW);
    copyWait<0>();
    __syncthreads();
    int const rows = min(ROWS, p.outH - o0 - o);
    if (unit < UNITS && plane < planes && rows > 0) {
        int const h = (o0 + o) * STEP_H - p.padH, place = FRONT + shiftX + (plane * p.h + h - h0) * W + w;
        T* const row = reinterpret_cast<T*>(staged) + shiftY + (plane * p.outH + o) * OUT_W + q;
        // Of even and of odd rows of the strip.
        u32 const *const even = data + (place >> (SIDE - 1)), *const odd = data + ((place + W) >> (SIDE - 1));
        Cell seen[R][SLOTS];
#pragma unroll
        for (int k = 0; k < (ROWS - 1) * STEP_H + R; ++k) {
            if (k % STEP_H >= R) continue;
            u32 words[WORDS];
            if (u32(h + k) < u32(p.h))
                takeRow(ODD && k % 2 ? odd + (k - 1) * W / SIDE : even + k * W / SIDE, ((place + k * W) & 1) * 16, words);
            else
#pragma unroll
                for (int c = 0; c < WORDS; ++c) words[c] = NOTHING;
            Cell cells[CELLS];
#pragma unroll
            for (int c = 0; c < WORDS; ++c)
                if (isEdge[c]) words[c] = (words[c] & mask[c]) | (NOTHING & ~mask[c]);
#pragma unroll
            for (int c = 0; c < CELLS; ++c) cells[c] = cellOf(words, c);
#pragma unroll
            for (int i = 0; i < SLOTS; ++i) {
                constexpr int FIRST = LEFT * SIDE - PAD_W;
                int const at = FIRST + i * PER * STEP_W;
                Cell v = pick(cells, at, at + STEP_W);
#pragma unroll
                for (int s = 1; s < S; ++s) v = join(v, pick(cells, at + s, at + s + STEP_W));
                seen[k % R][i] = v;
            }
            int const j = (k - R + 1) / STEP_H;
            if (k < R - 1 || (k - R + 1) % STEP_H != 0) continue;
            Cell all[SLOTS];
            float const byH = AVERAGES ? shares[o + j] : 0.0f;
#pragma unroll
            for (int i = 0; i < SLOTS; ++i) {
                all[i] = seen[0][i];
#pragma unroll
                for (int r = 1; r < R; ++r) all[i] = join(all[i], seen[r][i]);
                if constexpr (AVERAGES) all[i] *= byH * byW[i];
            }
            if (j < rows) putRow(row + j * OUT_W, q, all);
        }
    }
    __syncthreads();
    T* const y = static_cast<T*>(p.y) + (firstY - shiftY);
    T const* const out = reinterpret_cast<T const*>(staged);
    int const end = shiftY + rowsY * OUT_W, begin = (shiftY + V - 1) / V * V, last = end / V * V;
#pragma unroll 4
    for (int k = threadIdx.x * V; k < last; k += THREADS * V)
        if (k >= begin) *reinterpret_cast<Pack<u32, 4>*>(y + k) = *reinterpret_cast<Pack<u32, 4> const*>(out + k);
    if (threadIdx.x < V) { // before the first pack and behind the last one
        int const k = shiftY + threadIdx.x, behind = max(last, begin) + threadIdx.x;
        if (k < min(begin, end)) y[k] = out[k];
        if (behind < end) y[behind] = out[behind];
    }
}
)";

struct Sizes
{
    int64_t threads, wordsX, wordsY; // 4 bytes each, of shared memory
};
Sizes sizesOf(Geometry const& g, Config const& c, int64_t elementBytes)
{
    int64_t const band = c[kRows] * c[kGroups],
                  rows =
                      c[kPlanes] > 1 ? c[kPlanes] * g.in[1] : std::min(g.in[1], (band - 1) * g.stride[1] + g.window[1]),
                  outs = c[kPlanes] > 1 ? c[kPlanes] * g.out[1] : band;
    return {ceilDiv(ceilDiv(g.out[2], c[kColumns]) * c[kGroups] * c[kPlanes], 32) * 32,
            ceilDiv((rows * g.in[2] + 2 * g.stride[2] * c[kColumns]) * elementBytes + kSlack, 16) * 4,
            ceilDiv(outs * g.out[2] * elementBytes + 144, 16) * 4};
}

// Why a block cannot have such a band; null when it can.
char const* misfit(Problem const& p, Config const& config)
{
    if (!isConfig(config, kPlaces, 1, 512) || config[kColumns] > 16 || config[kRows] > 32)
        return "a config has other numbers";
    auto const& a = p.node->attrsAs<Attrs>();
    Geometry const g = geometryOf(a, p.inputs[0].maxDims, p.outputs[0].maxDims);
    int64_t const columns = config[kColumns];
    if (columns * sizeOf(p.inputs[0].type) % 4 != 0)
        return "a thread has whole words only";
    if (g.before[2] >= 8 || g.window[2] - g.stride[2] - g.before[2] >= columns * g.stride[2])
        return "windows reach too far";
    if (config[kPlanes] > 1 && config[kRows] * config[kGroups] < g.out[1])
        return "several planes are whole ones";
    Sizes const s = sizesOf(g, config, sizeOf(p.inputs[0].type));
    if (s.threads > kMostThreads || (s.wordsX + s.wordsY + config[kRows] * config[kGroups]) * 4 > kMostShared)
        return "a block would hold too much";
    return nullptr;
}

} // namespace

Support supportsBandsOnCuda(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    if (p.inputs[0].type != DataType::kHalf && p.inputs[0].type != DataType::kFloat)
        return Support::no("takes f16 and f32 only");
    if (a.kind == Kind::kMaxAverageBlend)
        return Support::no("does not blend maximum and average");
    if (a.window.size() != 2)
        return Support::no("takes 2-D windows only");
    if (p.cuda && p.cuda->capability < 80)
        return Support::no("needs a GPU of compute capability 8.0 or later");
    if (std::max(a.window[0], a.window[1]) > kMostWindow)
        return Support::no("takes windows of at most " + std::to_string(kMostWindow) + " rows and columns");
    constexpr int64_t kLimit = int64_t(1) << 15;
    Geometry const g = geometryOf(a, p.inputs[0].maxDims, p.outputs[0].maxDims);
    for (int i = 1; i < 3; ++i)
        if (std::max({g.window[i], g.stride[i], g.before[i], g.after[i], g.in[i], g.out[i]}) >= kLimit)
            return Support::no("takes windows and sizes below 32768");
    if (!p.node->inputs[0]->shape.back().isConst())
        return Support::no("needs to know the width");
    if (isWide(p))
        return Support::no("counts in 32 bits");
    return configsOfBands(p).empty() ? Support::no("no band fits") : Support::yes();
}

std::vector<Config> configsOfBands(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    if (a.window.size() != 2 || !isFloating(p.inputs[0].type))
        return {};
    Geometry const g = geometryOf(a, p.inputs[0].maxDims, p.outputs[0].maxDims);
    int64_t const size = sizeOf(p.inputs[0].type), row = g.in[2] * size; // bytes
    std::vector<Config> list;
    if (std::min({row, g.in[1], g.out[1], g.out[2]}) < 1)
        return {};
    // Of all bands that fit, one whose threads and rows are busiest, with the fewest rows of x read twice.
    auto add = [&](int64_t columns, int64_t wantedRows) {
        int64_t const rows = ceilDiv(g.out[1], ceilDiv(g.out[1], wantedRows)), groups = ceilDiv(g.out[1], rows);
        Config best;
        double most = 0;
        auto consider = [&](int64_t of, int64_t planes) {
            Config const c{columns, rows, of, planes};
            if (misfit(p, c))
                return;
            double const units = double(ceilDiv(g.out[2], columns) * of * planes), bands = double(ceilDiv(groups, of)),
                         band = double(of * rows * g.stride[1]);
            double const busy = units / double(sizesOf(g, c, size).threads) * double(g.out[1]) /
                                (bands * double(of * rows)),
                         read = of < groups ? band / (band - double(g.stride[1] - g.window[1])) : 1,
                         bytes =
                             double(row) * (planes > 1 ? double(g.in[1] * planes) : std::min(band, double(g.in[1])));
            // Blocks of a few KiB: enough of them share a multiprocessor, and none is over before it has begun.
            double const score = busy * read * std::min(1.0, bytes / kLeastBytes) * std::min(1.0, kMostBytes / bytes);
            if (score > most * 1.01) {
                most = score;
                best = c;
            }
        };
        for (int64_t of = 1; of <= groups; ++of)
            consider(of, 1);
        for (int64_t planes = 2; planes <= std::min<int64_t>(g.batch, 32); ++planes)
            consider(groups, planes);
        if (!best.empty() && std::find(list.begin(), list.end(), best) == list.end())
            list.push_back(best);
    };
    add(4, 8);
    add(4, 14);
    add(4, 5);
    add(2, 14);
    add(2, 5);
    return list;
}

CudaKernels generateBands(Problem const& p, Config const& config)
{
    if (char const* const why = misfit(p, config))
        return noKernels(unsupported(why));
    auto const& a = p.node->attrsAs<Attrs>();
    Geometry const g = geometryOf(a, p.inputs[0].maxDims, p.outputs[0].maxDims);
    DataType const type = p.inputs[0].type;
    bool const averages = a.kind == Kind::kAverage;
    Sizes const sizes = sizesOf(g, config, sizeOf(p.inputs[0].type));
    CudaKernels out;
    out.isDependent = true;
    out.alignment = 16;
    out.names = {"pooling"};
    auto text = [](int64_t v) { return std::to_string(v); };
    out.source = cuda::include("kernels/cuda/common/async_copies.cuh") + cellsText(type, averages) +
                 cuda::expand(std::string(hasPairs(type, averages) ? kOfPairs : kOfSingles) + kText,
                              {{"excludes", a.excludePadding ? "true" : "false"},
                               {"r", text(g.window[1])},
                               {"s", text(g.window[2])},
                               {"strideH", text(g.stride[1])},
                               {"strideW", text(g.stride[2])},
                               {"padW", text(g.before[2])},
                               {"w", text(g.in[2])},
                               {"outW", text(g.out[2])},
                               {"rows", text(config[kRows])},
                               {"columns", text(config[kColumns])},
                               {"groups", text(config[kGroups])},
                               {"planes", text(config[kPlanes])},
                               {"threads", text(sizes.threads)},
                               {"wordsX", text(sizes.wordsX)},
                               {"wordsY", text(sizes.wordsY)}}) +
                 cuda::sizeCheck<Params>();
    out.run = [&a, config, widthX = g.in[2], widthY = g.out[2]](CudaLaunch const& launch,
                                                                RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        Geometry const g = geometryOf(a, x.dims, y.dims);
        if (g.in[2] != widthX || g.out[2] != widthY)
            return unsupported("the kernel was built for rows of another width");
        int64_t const planes = config[kPlanes], bands = ceilDiv(g.out[1], config[kRows] * config[kGroups]),
                      columns = config[kColumns];
        Params q;
        q.x = x.data;
        q.y = y.data;
        q.countX = uint64_t(x.count());
        q.bands = cuda::divBy(bands);
        q.planes = int32_t(g.batch);
        q.h = int32_t(g.in[1]);
        q.outH = int32_t(g.out[1]);
        q.padH = int32_t(g.before[1]);
        q.afterH = int32_t(g.after[1]);
        q.afterW = int32_t(g.after[2]);
        int64_t const threads = ceilDiv(ceilDiv(g.out[2], columns) * config[kGroups] * planes, 32) * 32;
        return launch(0, ceilDiv(g.batch, planes) * bands, int(threads), q);
    };
    return out;
}

} // namespace tw::ops::pooling
