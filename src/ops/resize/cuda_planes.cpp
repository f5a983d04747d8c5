// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/cuda_planes.h"

#include <algorithm>

#include "kernels/cuda/common/generate.h"
#include "ops/resize/cuda_lanes.h"
#include "ops/resize/cuda_scale.h"

namespace tw::ops::resize {

namespace {

constexpr int64_t kMostShared = 64 * 1024; // bytes of a block
constexpr int64_t kFewShared = 28 * 1024;  // so that several blocks share a multiprocessor
constexpr int64_t kMostKnown = 256;        // rows of y times pairs of columns that have code of their own
constexpr int64_t kMostFloat = 1 << 24;    // whole numbers that a float holds

// A config's numbers.
enum Place
{
    kThreads, // of a block
    kPairs,   // of columns, that a thread walks down with
    kRows,    // of y, at most, for a block
    kPlaces,
};

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    int64_t elements = 0; // of x
    int64_t planes = 0;
};

constexpr char const* kText = R"(
struct Params { void const* x; void* y; i64 elements, planes; };
typedef $t$ T;
constexpr int LOAD = 16 / sizeof(T);
constexpr int SLOTS = (WIDE + 1) / 2; // pairs of columns: neighbours, or half a row apart
constexpr int TURN = IN_WARPS ? (SLOTS + 31) / 32 * 32 : SLOTS; // threads for a plane's
constexpr int UNITS = (SEEN * WIDE_X + 2 * (LOAD - 1)) / LOAD, PART = UNITS * LOAD; // of a plane's rows of x
constexpr int STORE = LOAD, OUT_UNITS = (ROWS * WIDE + 2 * (STORE - 1)) / STORE;       // of a plane's rows of y
constexpr bool EVEN = WIDE % 2 == 0, STAGED = !EVEN;
// Pairs that lie a whole number of columns of x apart are mixed alike.
constexpr bool REPEATS = EVEN && 2 * TIMES_W % BY_W == 0;
constexpr int APART = EVEN ? 1 : SLOTS;
typedef Pack<u32, 4> Load;
TW_INLINE constexpr int lanesFor(int n) { return n >= THREADS ? THREADS : n <= 1 ? 1 : 2 * lanesFor((n + 1) / 2); }
constexpr int LANES = lanesFor(OUT_UNITS); // that share a plane's stores
extern __shared__ unit16 shared[];
)";
// Values are what is computed with, cells what stands in shared memory.
constexpr char const* kMixed = R"(
typedef float Value;
TW_INLINE Value valueOf(f16 c) { return load<float>(c); }
TW_INLINE Value valueOf(f32 c) { return c; }
TW_INLINE T elementOf(Value v) { return store<T>(v); }
)";
constexpr char const* kMoved = R"(
typedef T Value;
TW_INLINE Value valueOf(T c) { return c; }
TW_INLINE T elementOf(Value v) { return v; }
TW_INLINE Value mixed(Value, Value b, float, bool) { return b; }
)";
constexpr char const* kFromHalves = R"(
typedef float Cell;
TW_INLINE void putCells(Cell* to, Load const& l)
{
    Pack<Cell, 4> c[2];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        f16 h;
        h.bits = (unsigned short)(i % 2 ? l.v[i / 2] >> 16 : l.v[i / 2]);
        c[i / 4].v[i % 4] = halfToFloat(h);
    }
    reinterpret_cast<Pack<Cell, 4>*>(to)[0] = c[0];
    reinterpret_cast<Pack<Cell, 4>*>(to)[1] = c[1];
}
)";
constexpr char const* kAsTheyAre = R"(
typedef T Cell;
TW_INLINE void putCells(Cell* to, Load const& l) { *reinterpret_cast<Load*>(to) = l; }
)";
constexpr char const* kHalfPair = R"(
typedef u32 Pair;
TW_INLINE Pair pairOf(Value low, Value high)
{
    u32 pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
)";
constexpr char const* kAnyPair = R"(
typedef Pack<T, 2> Pair;
TW_INLINE Pair pairOf(Value low, Value high)
{
    Pair p;
    p.v[0] = elementOf(low);
    p.v[1] = elementOf(high);
    return p;
}
)";

// A block makes ROWS rows of PER_BLOCK planes. Their rows of x go to shared memory as they lie in x, as cells: a
// plane's part begins as many cells late as its first element lies behind a load's boundary. Rows of an even number of
// elements leave in pairs; others, which begin off every boundary, through shared memory in whole stores.
constexpr char const* kBody = R"(
struct Where { int plane0, planes, r0, base; u32 phase; }; // base: the row of x that stands first, -1 above the first
TW_INLINE u32 startX(Where const& w, int n) { return u32((w.plane0 + n) * (TALL_X * WIDE_X) + w.base * WIDE_X); }
TW_INLINE u32 startY(Where const& w, int n) { return u32((w.plane0 + n) * (TALL * WIDE) + w.r0 * WIDE); }
TW_INLINE u32 wordOf(T const* x, u32 at, u32 last)
{
    if constexpr (sizeof(T) == 4) return reinterpret_cast<u32 const*>(x)[min(at, last)];
    unsigned short const* const halves = reinterpret_cast<unsigned short const*>(x);
    return halves[min(at, last)] | u32(halves[min(at + 1, last)]) << 16;
}
TW_INLINE void stage(Params const& p, Where const& w, Cell* cells)
{
    constexpr int STEPS = (PER_BLOCK * UNITS + THREADS - 1) / THREADS, AHEAD = STEPS < 6 ? STEPS : 4;
    int const first = max(0, -w.base) * WIDE_X, last = min(SEEN, TALL_X - w.base) * WIDE_X; // what there is
    T const* const x = static_cast<T const*>(p.x);
#pragma unroll 1
    for (int s0 = 0; s0 < STEPS; s0 += AHEAD) {
        Load v[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            u32 const u = threadIdx.x + (s0 + k) * THREADS, n = u / UNITS, start = startX(w, int(n));
            int const late = int(start % LOAD), at = int(u - n * UNITS) * LOAD - late;
            u32 const from = start + u32(at);
            if (int(n) < w.planes && at + LOAD > first && at < last) {
                if (IS_WHOLE || from + LOAD <= p.elements) {
                    v[k] = *reinterpret_cast<Load const*>(x + from);
                } else {
                    u32 const last = u32(p.elements) - 1;
#pragma unroll
                    for (int i = 0; i < 4; ++i) v[k].v[i] = wordOf(x, from + i * LOAD / 4, last);
                }
            }
        }
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            u32 const u = threadIdx.x + (s0 + k) * THREADS;
            if (u >= PER_BLOCK * UNITS) break;
            putCells(cells + u * LOAD, v[k]);
        }
    }
    __syncthreads();
    if (w.base >= 0 && w.base + SEEN <= TALL_X) return;
    for (int i = threadIdx.x; i < PER_BLOCK * WIDE_X; i += THREADS) { // edges are repeated
        int const n = i / WIDE_X;
        Cell* const column = cells + n * PART + startX(w, n) % LOAD + (i - n * WIDE_X);
        for (int k = 0; k < first; k += WIDE_X) column[k] = column[first];
        for (int k = last; k < SEEN * WIDE_X; k += WIDE_X) column[k] = column[last - WIDE_X];
    }
    __syncthreads();
}
// The pairs of columns of one thread.
struct Columns {
    Cell const* at[PAIRS][2][2]; // what is mixed, in the first row of x
    float weight[PAIRS][2];
    T *low[PAIRS], *high[PAIRS]; // in y, or where it is staged; the same one when a column stands alone
    bool works[PAIRS];           // where no pair does, the thread has left
};
TW_INLINE void across(Columns const& c, int row, Value (&v)[PAIRS][2])
{
#pragma unroll
    for (int k = 0; k < PAIRS; ++k)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            v[k][e] = valueOf(c.at[k][e][0][row * WIDE_X]);
            if constexpr (!kNearest) v[k][e] = mixed(v[k][e], valueOf(c.at[k][e][1][row * WIDE_X]), c.weight[k][e], REPEATS);
        }
}
TW_INLINE void copy(Value (&to)[PAIRS][2], Value const (&from)[PAIRS][2])
{
#pragma unroll
    for (int k = 0; k < PAIRS; ++k) to[k][0] = from[k][0], to[k][1] = from[k][1];
}
// Row r of y from a row of x and the one in front.
TW_INLINE void put(Columns const& c, int r, Value const (&a)[PAIRS][2], Value const (&b)[PAIRS][2], float weight, bool isKnown)
{
#pragma unroll
    for (int k = 0; k < PAIRS; ++k) {
        if (PAIRS > 1 && !c.works[k]) continue;
        Value const low = mixed(a[k][0], b[k][0], weight, isKnown), high = mixed(a[k][1], b[k][1], weight, isKnown);
        if constexpr (EVEN) {
            *reinterpret_cast<Pair*>(c.low[k] + r * WIDE) = pairOf(low, high);
        } else {
            c.low[k][r * WIDE] = elementOf(low);
            c.high[k][r * WIDE] = elementOf(high);
        }
    }
}
// Bands that lie alike, or band K: weights and distances are constants.
template <int K> TW_INLINE void walkKnown(Columns const& c, int rows)
{
    // How far row r of y lies behind a row of x: the one in front of row i, or (nearest) row i itself.
    constexpr u32 PHASE = (u32(K) * ROWS * TIMES + PLUS) % BY + (kNearest ? 0 : BY);
    Value v[2][PAIRS][2]; // of a row of x and of the one in front, by turns
#pragma unroll
    for (int i = 0; i < SEEN; ++i) {
        Value(&a)[PAIRS][2] = v[(i + 1) % 2], (&b)[PAIRS][2] = v[i % 2];
        across(c, i, b);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            u32 const m = u32(r) * TIMES + PHASE, behind = m - u32(i) * BY;
            if (m < u32(i) * BY || behind > LAST || (!kNearest && i > 0 && behind == 0)) continue;
            if (IS_PERIODIC ? TALL % ROWS != 0 && r >= rows : K * ROWS + r >= TALL) continue;
            if (!kNearest && behind == BY) copy(a, b);
            put(c, r, a, b, !kNearest && behind == BY ? 0.5f : float(behind) * INVERSE, true);
        }
    }
}
template <int K> TW_INLINE void walkBand(Columns const& c, int band, int rows)
{
    if (IS_PERIODIC || band == K) walkKnown<K>(c, rows);
    else if constexpr (K + 1 < BANDS) walkBand<K + 1>(c, band, rows);
}
// Bands of too many kinds. Distances are whole numbers that a float holds.
TW_INLINE void walk(Columns& c, u32 phase, int rows)
{
    constexpr float MOST = float(LAST), STEP = float(TIMES), SPAN = float(BY);
    Value v[2][PAIRS][2];
    float behind = float(phase + (kNearest ? 0 : BY));
    int r = 0;
#pragma unroll
    for (int i = 0; i < SEEN; ++i) {
        Value(&a)[PAIRS][2] = v[(i + 1) % 2], (&b)[PAIRS][2] = v[i % 2];
        across(c, i, b);
#pragma unroll 1
        for (; behind <= MOST && r < rows; ++r, behind += STEP) {
            float weight = behind * INVERSE;
            if (!kNearest && behind == SPAN) copy(a, b), weight = 0.5f;
            put(c, 0, a, b, weight, false);
#pragma unroll
            for (int k = 0; k < PAIRS; ++k) c.low[k] += WIDE, c.high[k] += WIDE;
        }
        behind -= SPAN;
    }
}
TW_INLINE void putPart(T* to, Load const& v, int i)
{
    if constexpr (sizeof(T) == 4) *reinterpret_cast<u32*>(to) = v.v[i];
    else *reinterpret_cast<unsigned short*>(to) = (unsigned short)(v.v[i / 2] >> (i % 2 * 16));
}
TW_INLINE void flush(Params const& p, Where const& w, T const* staged)
{
    __syncthreads();
    int const length = min(ROWS, TALL - w.r0) * WIDE;
    for (int n = threadIdx.x / LANES; n < w.planes; n += THREADS / LANES) {
        u32 const start = startY(w, n);
        int const late = int(start % STORE);
        T* const to = static_cast<T*>(p.y) + (start - late);
        for (int at = threadIdx.x % LANES * STORE; at < late + length; at += LANES * STORE) {
            Pack<u32, 4> const v = *reinterpret_cast<Pack<u32, 4> const*>(staged + n * (OUT_UNITS * STORE) + at);
            if (at >= late && at + STORE <= late + length) {
                *reinterpret_cast<Pack<u32, 4>*>(to + at) = v;
            } else {
#pragma unroll
                for (int i = 0; i < STORE; ++i)
                    if (at + i >= late && at + i < late + length)
                        putPart(to + at + i, v, i);
            }
        }
    }
}
TW_KERNEL __launch_bounds__($threads$) resize_planes(const __grid_constant__ Params p)
{
    Where w;
    bool const isFlat = !IS_KNOWN || IS_PERIODIC;
    int const group = isFlat ? int(blockIdx.x) / BANDS : int(blockIdx.x), band = isFlat ? int(blockIdx.x) - group * BANDS : int(blockIdx.y);
    w.plane0 = group * PER_BLOCK;
    w.planes = min(PER_BLOCK, int(p.planes) - w.plane0);
    w.r0 = band * ROWS;
    u32 const n0 = u32(w.r0) * TIMES + PLUS;
    w.base = min(int(n0 / BY) - 1, TALL_X - 1);
    w.phase = n0 % BY;
    int const rows = min(ROWS, TALL - w.r0);
    Cell* const cells = reinterpret_cast<Cell*>(shared);
    T* const staged = reinterpret_cast<T*>(cells + PER_BLOCK * PART);
    waitForPrevious();
    releaseDependents();
    stage(p, w, cells);
#pragma unroll 1
    for (int slot0 = threadIdx.x; slot0 < w.planes * TURN; slot0 += THREADS * PAIRS) {
        Columns c;
        bool any = false;
#pragma unroll
        for (int k = 0; k < PAIRS; ++k) {
            int const slot = slot0 + k * THREADS, plane = slot / TURN, n = min(plane, w.planes - 1),
                      j = min(slot - plane * TURN, SLOTS - 1), column = EVEN ? 2 * j : j;
            c.works[k] = plane < w.planes && slot - plane * TURN < SLOTS;
            any = any || c.works[k];
            int const apart = column + APART < WIDE ? APART : 0;
            Cell const* const x = cells + n * PART + startX(w, n) % LOAD;
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                u32 const m = (REPEATS ? e : column + e * apart) * TIMES_W + PLUS_W;
                int const first = int(m / BY_W) - 1 + (REPEATS ? j * int(2 * TIMES_W / BY_W) : 0);
                c.at[k][e][0] = x + max(min(first, WIDE_X - 1), 0);
                c.at[k][e][1] = m % BY_W == 0 ? c.at[k][e][0] : x + max(min(first + 1, WIDE_X - 1), 0);
                // An element of weight zero takes no part: an infinity times zero were NaN.
                c.weight[k][e] = m % BY_W == 0 ? 0.5f : float(m % BY_W) * INVERSE_W;
            }
            c.low[k] = (STAGED ? staged + n * (OUT_UNITS * STORE) + startY(w, n) % STORE
                               : static_cast<T*>(p.y) + startY(w, n)) + column;
            c.high[k] = c.low[k] + apart;
        }
        if (!any) continue;
        if constexpr (IS_KNOWN) walkBand<0>(c, band, rows);
        else walk(c, w.phase, rows);
    }
    if constexpr (STAGED) flush(p, w, staged);
}
)";

// What is settled when the text is written.
struct Plan
{
    Scale tall, wide;
    Bands bands;
    int64_t threads = 256, pairs = 1, perBlock = 1, bytes = 0; // perBlock: planes
    bool isStaged = false;                                     // rows of y leave through shared memory
    bool isConverted = false;                                  // FP16 stands in shared memory as floats
    bool isInWarps = false;                                    // planes have warps of their own

    Plan(Problem const& p, Config const& config)
    {
        auto const& a = p.node->attrsAs<Attrs>();
        Extents const &x = p.inputs[0].dims, &y = p.outputs[0].dims;
        tall = scaleOf(a, axisOf(a, x, y, y.rank - 2));
        wide = scaleOf(a, axisOf(a, x, y, y.rank - 1));
        threads = config[kThreads];
        pairs = config[kPairs];
        DataType const t = p.outputs[0].type;
        bool const isNearest = a.mode == Mode::kNearest;
        isStaged = wide.out % 2 != 0;
        isConverted = !isStaged && !isNearest && t == DataType::kHalf;
        int64_t const slots = cuda::ceilDiv(wide.out, 2), work = threads * pairs,
                      most = std::max<int64_t>(work / slots, 1);
        isInWarps = work / (cuda::ceilDiv(slots, 32) * 32) == most;
        for (perBlock = most;; perBlock = (perBlock + 1) / 2)
            for (int64_t want = config[kRows];; want = (want + 1) / 2) {
                setRows(want, t, isNearest);
                if (bytes <= kFewShared || (perBlock == 1 && (want == 1 || (want <= 4 && bytes <= kMostShared))))
                    return;
                if (want <= 4 && perBlock > 1)
                    break;
            }
    }
    void setRows(int64_t want, DataType t, bool isNearest)
    {
        bands = bandsOf(tall, want, isNearest);
        int64_t const load = 16 / sizeOf(t), cell = isConverted ? 4 : sizeOf(t);
        bytes = perBlock * ((bands.seen * wide.in + 2 * (load - 1)) / load * load * cell +
                            (isStaged ? (bands.rows * wide.out + 2 * (load - 1)) / load * 16 : 0));
    }
};

} // namespace

Support supportsPlanes(Problem const& p)
{
    Support const known = supportsKnown(p);
    if (!known.ok)
        return known;
    int const rank = p.inputs[0].dims.rank;
    // Three rows of x and one of y.
    if (3 * (p.inputs[0].dims[rank - 1] + 8) * 4 + (p.outputs[0].dims[rank - 1] + 8) * 4 > kMostShared)
        return Support::no("rows do not fit into shared memory");
    Scale const tall = scaleOf(p.node->attrsAs<Attrs>(),
                               axisOf(p.node->attrsAs<Attrs>(), p.inputs[0].dims, p.outputs[0].dims, rank - 2));
    if (tall.times + 2 * int64_t(tall.by.d) > kMostFloat)
        return Support::no("keeps distances between rows in floats");
    return Support::yes();
}

std::vector<Formats> formatsOfPlanes(Problem const& p)
{
    return {linearFormats(p)};
}

std::vector<Config> configsOfPlanes(Problem const& p)
{
    if (supportsLanes(p).ok) // which is faster
        return {{128, 1, 32}};
    if (p.outputs[0].dims[p.outputs[0].dims.rank - 1] % 2 != 0)
        return {{128, 1, 32}, {128, 1, 16}, {256, 1, 16}};
    return {{256, 1, 32}, {256, 1, 16}, {128, 1, 16}};
}

CudaKernels generatePlanes(Problem const& problem, Config const& config)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    DataType const t = problem.outputs[0].type;
    bool const isNearest = a.mode == Mode::kNearest;
    Config shape{256, 1, 16};
    if (isConfig(config, kPlaces, 1, 1024) && (config[kThreads] == 128 || config[kThreads] == 256) &&
        config[kPairs] <= 4 && config[kRows] <= 64)
        shape = config;
    Plan const plan(problem, shape);
    Scale const &tall = plan.tall, &wide = plan.wide;
    // Every band has its own code where they differ.
    bool const isKnown = plan.bands.isPeriodic || tall.out * plan.pairs <= kMostKnown,
               isMixedHalf = !isNearest && t == DataType::kHalf;
    CudaKernels out;
    out.isDependent = true;
    out.alignment = 16;
    out.names = {"resize_planes"};
    out.sharedBytes = plan.bytes;
    using cuda::constant;
    out.source = sizesText(tall, wide, plan.bands, isNearest) + constant("THREADS", plan.threads) +
                 constant("PAIRS", plan.pairs) + constant("PER_BLOCK", plan.perBlock) +
                 cuda::flag("IS_KNOWN", isKnown) + cuda::flag("IN_WARPS", plan.isInWarps) +
                 cuda::flag("IS_WHOLE", tall.in * wide.in * sizeOf(t) % 16 == 0) + // every load ends within x
                 cuda::expand(kText, {{"t", isNearest ? cuda::unitOf(sizeOf(t)) : cuda::storageOf(t)}}) +
                 (isNearest ? kMoved : kMixed) + (plan.isConverted ? kFromHalves : kAsTheyAre) +
                 (isMixedHalf ? kHalfPair : kAnyPair) +
                 cuda::expand(kBody, {{"threads", std::to_string(plan.threads)}}) + cuda::sizeCheck<Params>();
    out.run = [plan, isKnown](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        Params p;
        p.x = x.data;
        p.y = y.data;
        p.elements = x.dims.volume();
        p.planes = y.dims.volume(0, y.dims.rank - 2);
        int64_t const groups = cuda::ceilDiv(p.planes, plan.perBlock);
        if (isKnown && !plan.bands.isPeriodic)
            return launch.grid(0, groups, plan.bands.count, 1, int(plan.threads), p, plan.bytes);
        return launch(0, plan.bands.count * groups, int(plan.threads), p, plan.bytes);
    };
    return out;
}

} // namespace tw::ops::resize
