// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/cuda_strips.h"

#include <algorithm>

#include "kernels/cuda/common/generate.h"
#include "ops/resize/cuda_scale.h"

namespace tw::ops::resize {

namespace {

constexpr int kThreads = 128;

// A config's numbers.
enum Place
{
    kColumns, // of y, of a strip
    kRows,    // of y, at most, of a strip
    kAhead,   // rows of x that are on their way
    kPlaces,
};

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    int64_t strips = 0;             // of a band of rows, in all images
    int64_t pixelX = 0, pixelY = 0; // bytes; more than the channels take where a tensor is a part of another
};

constexpr char const* kHalves = R"(
constexpr int V = 8;
TW_INLINE float valueOf(Unit const& u, int i)
{
    f16 one;
    one.bits = (unsigned short)(i % 2 ? u.v[i / 2] >> 16 : u.v[i / 2]);
    return halfToFloat(one);
}
TW_INLINE Unit unitOf(float const (&v)[V])
{
    Unit u;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        u32 pair;
        float const low = v[2 * i], high = v[2 * i + 1];
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
        u.v[i] = pair;
    }
    return u;
}
)";
constexpr char const* kFloats = R"(
constexpr int V = 4;
TW_INLINE float valueOf(Unit const& u, int i) { return __uint_as_float(u.v[i]); }
TW_INLINE Unit unitOf(float const (&v)[V])
{
    Unit u;
#pragma unroll
    for (int i = 0; i < V; ++i) u.v[i] = __float_as_uint(v[i]);
    return u;
}
)";

// What is mixed along a row of x, of the columns of a strip.
constexpr char const* kLinear = R"(
struct Mixed { float v[COLUMNS][V]; };
TW_INLINE void across(Strip const& s, Unit const (&raw)[SEEN_W], Mixed& m)
{
#pragma unroll
    for (int e = 0; e < COLUMNS; ++e) {
        int const first = firstOf(e), second = REPEATS && isWholeOf(e) ? first : first + 1;
        float const weight = REPEATS ? isWholeOf(e) ? 0.5f : weightOf(e) : s.weight;
#pragma unroll
        for (int i = 0; i < V; ++i)
            m.v[e][i] = mixed(valueOf(raw[first], i), valueOf(raw[second], i), weight, REPEATS);
    }
}
TW_INLINE Unit between(Mixed const& a, Mixed const& b, int e, float weight)
{
    float v[V];
#pragma unroll
    for (int i = 0; i < V; ++i) v[i] = mixed(a.v[e][i], b.v[e][i], weight, IS_PERIODIC);
    return unitOf(v);
}
)";
constexpr char const* kNearestText = R"(
struct Mixed { Unit v[COLUMNS]; };
TW_INLINE void across(Strip const&, Unit const (&raw)[SEEN_W], Mixed& m)
{
#pragma unroll
    for (int e = 0; e < COLUMNS; ++e) m.v[e] = raw[firstOf(e)];
}
TW_INLINE Unit between(Mixed const&, Mixed const& b, int e, float) { return b.v[e]; }
)";

constexpr char const* kText = R"(
struct Params { void const* x; void* y; i64 strips, pixelX, pixelY; };
typedef Pack<u32, 4> Unit;
// Strips that lie a whole number of columns of x apart are mixed alike; others are one column wide.
constexpr bool REPEATS = COLUMNS * TIMES_W % BY_W == 0;
struct Strip { int at[SEEN_W]; float weight; }; // at: bytes from a row's start
TW_INLINE constexpr u32 placeOf(int e) { return (u32(e) - SHIFT) * TIMES_W + PLUS_W; }
TW_INLINE constexpr int firstOf(int e) { return int(placeOf(e) / BY_W) - int(placeOf(0) / BY_W); }
TW_INLINE constexpr bool isWholeOf(int e) { return placeOf(e) % BY_W == 0; }
TW_INLINE float weightOf(int e) { return float(placeOf(e) % BY_W) * INVERSE_W; }
)";
constexpr char const* kBody = R"(
// DENSE: x and y are whole tensors.
template <bool DENSE> TW_INLINE void strips(Params const& p)
{
    int const pixelX = DENSE ? PIXEL_X : int(p.pixelX), pixelY = DENSE ? PIXEL_Y : int(p.pixelY);
    u32 const band = blockIdx.x % BANDS, strip = blockIdx.x / BANDS * $threads$ + threadIdx.x;
    if (strip >= p.strips) return;
    u32 const place = strip / VECTORS, vector = strip - place * VECTORS, image = place / GROUPS, group = place - image * GROUPS;
    int const r0 = int(band) * ROWS, rows = min(ROWS, TALL - r0), column = int(group) * COLUMNS - SHIFT;
    u32 const n0 = u32(r0) * TIMES + PLUS;
    int const base = min(int(n0 / BY) - 1, TALL_X - 1);
    Strip s;
    s.weight = 0.5f; // an element of weight zero takes no part: an infinity times zero were NaN
    u32 const m = REPEATS ? placeOf(0) : u32(column) * TIMES_W + PLUS_W;
    int const first = int(m / BY_W) - 1 + (REPEATS ? int(group * (COLUMNS * TIMES_W / BY_W)) : 0);
#pragma unroll
    for (int d = 0; d < SEEN_W; ++d) s.at[d] = max(min(first + d, WIDE_X - 1), 0) * pixelX;
    if constexpr (!REPEATS && !kNearest) {
        if (m % BY_W == 0) s.at[SEEN_W - 1] = s.at[0];
        else s.weight = float(m % BY_W) * INVERSE_W;
    }
    u8 const* const x = static_cast<u8 const*>(p.x) + i64(image) * (i64(TALL_X) * WIDE_X * pixelX) + vector * 16;
    u8* y = static_cast<u8*>(p.y) + ((i64(image) * TALL + r0) * WIDE + column) * pixelY + vector * 16;
    waitForPrevious();
    releaseDependents();
    Unit raw[AHEAD + 1][SEEN_W];
    auto fetch = [&](int i) {
        u8 const* const row = x + i64(max(min(base + i, TALL_X - 1), 0)) * (WIDE_X * pixelX);
#pragma unroll
        for (int d = 0; d < SEEN_W; ++d)
            raw[i % (AHEAD + 1)][d] = *reinterpret_cast<Unit const*>(row + s.at[d]);
    };
#pragma unroll
    for (int i = 0; i < AHEAD && i < SEEN; ++i) fetch(i);
    Mixed v[2]; // of a row of x and of the one in front, by turns
    int r = 0;
    // How far row r of y lies behind a row of x: the one in front of row i, or (nearest) row i itself.
    u32 rest = n0 % BY + (kNearest ? 0 : BY);
#pragma unroll
    for (int i = 0; i < SEEN; ++i) {
        Mixed &a = v[(i + 1) % 2], &b = v[i % 2];
        if (i + AHEAD < SEEN) fetch(i + AHEAD);
        across(s, raw[i % (AHEAD + 1)], b);
        auto emit = [&](int r, u32 rest) {
            if (!kNearest && rest == BY) a = b;
            float const weight = !kNearest && rest == BY ? 0.5f : float(rest) * INVERSE;
#pragma unroll
            for (int e = 0; e < COLUMNS; ++e) {
                Unit const u = between(a, b, e, weight);
                if (GROUPS * COLUMNS == WIDE || u32(column + e) < u32(WIDE))
                    *reinterpret_cast<Unit*>(y + (r * WIDE + e) * pixelY) = u;
            }
        };
        if constexpr (IS_PERIODIC) {
#pragma unroll
            for (int k = 0; k < ROWS; ++k) {
                u32 const m = u32(k) * TIMES + PLUS % BY + (kNearest ? 0 : BY), behind = m - u32(i) * BY;
                if (m >= u32(i) * BY && behind <= LAST && (kNearest || i == 0 || behind > 0) &&
                    (TALL % ROWS == 0 || k < rows))
                    emit(k, behind);
            }
        } else {
#pragma unroll 1
            for (; rest <= LAST && r < rows; ++r, rest += TIMES, y += WIDE * pixelY) emit(0, rest);
            rest -= BY;
        }
    }
}
TW_KERNEL __launch_bounds__($threads$) resize_strips(const __grid_constant__ Params p) { strips<true>(p); }
TW_KERNEL __launch_bounds__($threads$) resize_strips_of_parts(const __grid_constant__ Params p) { strips<false>(p); }
)";

// What is settled when the text is written.
struct Plan
{
    Scale tall, wide;
    Bands bands;
    int64_t columns = 1, shift = 0, groups = 1, seenWide = 1; // seenWide: columns of x

    Plan(Problem const& p, Config const& config)
    {
        auto const& a = p.node->attrsAs<Attrs>();
        Extents const &x = p.inputs[0].dims, &y = p.outputs[0].dims;
        tall = scaleOf(a, axisOf(a, x, y, y.rank - 2));
        wide = scaleOf(a, axisOf(a, x, y, y.rank - 1));
        bool const isNearest = a.mode == Mode::kNearest;
        bands = bandsOf(tall, config[kRows], isNearest);
        // Strips of two columns where those repeat, beginning where they need fewer columns of x.
        int64_t const byWide = int64_t(wide.by.d);
        seenWide = isNearest ? 1 : 2;
        if (config[kColumns] == 2 && wide.times > 0 && 2 * wide.times % byWide == 0) {
            columns = 2;
            auto seenFrom = [&](int64_t from) {
                return (wide.plus + (from + 1) * wide.times) / byWide - (wide.plus + from * wide.times) / byWide;
            };
            shift = wide.plus >= wide.times && seenFrom(-1) < seenFrom(0) ? 1 : 0;
            seenWide += seenFrom(-shift);
        }
        groups = cuda::ceilDiv(wide.out + shift, columns);
    }
};

} // namespace

Support supportsStrips(Problem const& p)
{
    int const rank = p.inputs[0].dims.rank;
    if (rank < 3 || !p.node->outputs[0]->shape[size_t(rank - 3)].isConst())
        return Support::no("resizes images of a known number of channels");
    return supportsKnown(p);
}

std::vector<Formats> formatsOfStrips(Problem const& p)
{
    if (p.outputs[0].dims.rank < 3 || p.inputs[0].constant)
        return {};
    Formats f = linearFormats(p);
    f.inputs[0] = f.outputs[0] = Format::kHWC8;
    return {f};
}

std::vector<Config> configsOfStrips(Problem const&)
{
    return {{1, 4, 4}, {2, 8, 4}, {1, 8, 4}};
}

CudaKernels generateStrips(Problem const& problem, Config const& config)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    DataType const t = problem.outputs[0].type;
    bool const isNearest = a.mode == Mode::kNearest;
    Config shape{1, 8, 2};
    if (isConfig(config, kPlaces, 1, 64) && config[kColumns] <= 2 && config[kAhead] <= 8)
        shape = config;
    Plan const plan(problem, shape);
    Extents const &x = problem.inputs[0].dims, &y = problem.outputs[0].dims;
    int const axis = y.rank - 3;
    int64_t const size = sizeOf(t), vectors = cuda::ceilDiv(y[axis] * size, 16),
                  pixelX = pixelStrideOf(problem.inputs[0].format, t, x[axis]) * size,
                  pixelY = pixelStrideOf(problem.outputs[0].format, t, y[axis]) * size;
    CudaKernels out;
    out.isDependent = true;
    out.alignment = 16;
    out.names = {"resize_strips", "resize_strips_of_parts"};
    using cuda::constant;
    out.source = sizesText(plan.tall, plan.wide, plan.bands, isNearest) + constant("COLUMNS", plan.columns) +
                 constant("SHIFT", plan.shift) + constant("GROUPS", plan.groups) + constant("SEEN_W", plan.seenWide) +
                 constant("AHEAD", shape[kAhead]) + constant("VECTORS", vectors) + constant("PIXEL_X", pixelX) +
                 constant("PIXEL_Y", pixelY) + kText + (t == DataType::kHalf ? kHalves : kFloats) +
                 (isNearest ? kNearestText : kLinear) + cuda::expand(kBody, {{"threads", std::to_string(kThreads)}}) +
                 cuda::sizeCheck<Params>();
    out.run = [plan, vectors, axis, size, pixelX, pixelY](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        Params p;
        p.x = x.data;
        p.y = y.data;
        p.strips = y.dims.volume(0, axis) * plan.groups * vectors;
        p.pixelX = x.pixelStride() * size;
        p.pixelY = y.pixelStride() * size;
        bool const isDense = p.pixelX == pixelX && p.pixelY == pixelY;
        return launch(isDense ? 0 : 1, plan.bands.count * blocksFor(p.strips, kThreads), kThreads, p);
    };
    return out;
}

} // namespace tw::ops::resize
