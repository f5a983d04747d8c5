// SPDX-License-Identifier: Apache-2.0
#include "ops/pooling/cuda_pixels.h"

#include <algorithm>
#include <bit>

#include "kernels/cuda/common/generate.h"
#include "ops/pooling/op.h"

namespace tw::ops::pooling {

namespace {

using cuda::ceilDiv;

constexpr int kThreads = 256, kStripThreads = 128;
constexpr int64_t kMostUnrolled = 64; // positions of x that a thread sees
constexpr int64_t kMostColumns = 16;
constexpr int64_t kMostRing = 5; // rows of a window that a thread keeps

// A config is {rows of a thread} for windows of any size, or has these numbers.
enum Place
{
    kRows,    // outputs, one below the other
    kSlice,   // vectors of neighbouring threads
    kAhead,   // rows of x, loaded before the first is used
    kColumns, // outputs side by side
    kPlaces,
};

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    uint64_t count = 0;              // threads with work
    cuda::Div vectors, wide, groups; // 16 bytes of channels, columns, ROWS rows
    cuda::Div slices;                // of channels
    int64_t pixelX = 0, pixelY = 0;
    int32_t h = 0, w = 0, outH = 0, outW = 0, padH = 0, padW = 0, afterH = 0, afterW = 0;
};

// 16 bytes of FP16 or FP32.
constexpr char const* kHalves = R"(
constexpr int V = 8;
typedef f16 T;
typedef Pack<u32, 4> Unit;
TW_INLINE u32 larger(u32 a, u32 b) // of each half; NaN wins
{
    u32 v;
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
    return v;
}
TW_INLINE f16 halfOf(u32 v, int which)
{
    f16 h;
    h.bits = (unsigned short)(which ? v >> 16 : v);
    return h;
}
TW_INLINE float valueOf(Unit const& x, int i) { return halfToFloat(halfOf(x.v[i / 2], i % 2)); }
TW_INLINE u32 wordOf(float const* v, float by)
{
    u32 pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(v[1] * by), "f"(v[0] * by));
    return pair;
}
constexpr u32 LOWEST = 0xFC00FC00u;
)";
constexpr char const* kFloats = R"(
constexpr int V = 4;
typedef float T;
typedef Pack<u32, 4> Unit;
TW_INLINE u32 larger(u32 a, u32 b) // NaN wins
{
    float v;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(v) : "f"(__uint_as_float(a)), "f"(__uint_as_float(b)));
    return __float_as_uint(v);
}
TW_INLINE float valueOf(Unit const& x, int i) { return __uint_as_float(x.v[i]); }
TW_INLINE u32 wordOf(float const* v, float by) { return __float_as_uint(v[0] * by); }
constexpr u32 LOWEST = 0xFF800000u;
)";

// Each thread has V channels of ROWS outputs, one below the other: windows that overlap share what it loads.
constexpr char const* kText = R"(
struct Params {
    void const* x; void* y; u64 count; Div vectors, wide, groups, slices; i64 pixelX, pixelY;
    i32 h, w, outH, outW, padH, padW, afterH, afterW;
};
constexpr int R = $r$, S = $s$, STEP_H = $strideH$, STEP_W = $strideW$, ROWS = $rows$;
constexpr int SEEN = (ROWS - 1) * STEP_H + R; // rows of x
struct Largest {
    u32 v[4];
    static TW_INLINE Unit nothing() { return Unit{{LOWEST, LOWEST, LOWEST, LOWEST}}; }
    TW_INLINE void clear() { for (int i = 0; i < 4; ++i) v[i] = LOWEST; }
    TW_INLINE void set(Unit const& x) { for (int i = 0; i < 4; ++i) v[i] = x.v[i]; }
    TW_INLINE void add(Unit const& x) { for (int i = 0; i < 4; ++i) v[i] = larger(v[i], x.v[i]); }
    TW_INLINE void add(Largest const& x) { for (int i = 0; i < 4; ++i) v[i] = larger(v[i], x.v[i]); }
    TW_INLINE Unit result(float) const { return Unit{{v[0], v[1], v[2], v[3]}}; }
};
struct Sum {
    float v[V];
    static TW_INLINE Unit nothing() { return Unit{}; }
    TW_INLINE void clear() { for (int i = 0; i < V; ++i) v[i] = 0; }
    TW_INLINE void set(Unit const& x) { for (int i = 0; i < V; ++i) v[i] = valueOf(x, i); }
    TW_INLINE void add(Unit const& x) { for (int i = 0; i < V; ++i) v[i] += valueOf(x, i); }
    TW_INLINE void add(Sum const& x) { for (int i = 0; i < V; ++i) v[i] += x.v[i]; }
    TW_INLINE Unit result(float count) const
    {
        float by;
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(by) : "f"(count));
        if (!(count > 0)) by = 0;
        Unit y;
        for (int i = 0; i < 4; ++i) y.v[i] = wordOf(&v[i * V / 4], by);
        return y;
    }
};
typedef $joined$ Joined;
// Positions of a window along one axis that count for the average.
TW_INLINE int counted(int start, int window, int in, int after)
{
    int const stop = start + window;
    return $excludes$ ? max(min(stop, in) - max(start, 0), 0) : min(stop, in + after) - start;
}
TW_INLINE bool seesAny(int start, int window, int in) { return min(start + window, in) > max(start, 0); }
)";

constexpr char const* kWindows = R"(
TW_KERNEL __launch_bounds__($threads$) pooling(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count) return;
    idx const pixels = divide(i, p.vectors), groups = divide(pixels, p.wide), image = divide(groups, p.groups);
    int const c = int(i - pixels * idx(p.vectors.d)) * V, q = int(pixels - groups * idx(p.wide.d));
    int const o0 = int(groups - image * idx(p.groups.d)) * ROWS, h0 = o0 * STEP_H - p.padH, w0 = q * STEP_W - p.padW;
    T const* const x = static_cast<T const*>(p.x) + i64(image) * p.h * p.w * p.pixelX + c;
    Joined all[ROWS];
#pragma unroll
    for (int j = 0; j < ROWS; ++j) all[j].clear();
    // Loads of AHEAD rows go out before the first is used.
    constexpr int AHEAD = SEEN * S <= 16 ? SEEN : 2 * S <= 16 ? 2 : 1;
$unroll$
    for (int r0 = 0; r0 < SEEN; r0 += AHEAD) {
        Unit v[AHEAD][S];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            int const h = h0 + r0 + k;
            bool const inside = u32(h) < u32(p.h) && r0 + k < SEEN;
            T const* const row = x + i64(h) * p.w * p.pixelX;
#pragma unroll
            for (int s = 0; s < S; ++s) {
                v[k][s] = Joined::nothing();
                if (inside && u32(w0 + s) < u32(p.w))
                    v[k][s] = *reinterpret_cast<Unit const*>(row + i64(w0 + s) * p.pixelX);
            }
        }
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            Joined joined;
            joined.clear();
#pragma unroll
            for (int s = 0; s < S; ++s) joined.add(v[k][s]);
#pragma unroll
            for (int j = 0; j < ROWS; ++j)
                if (r0 + k >= j * STEP_H && r0 + k < j * STEP_H + R) all[j].add(joined);
        }
    }
#pragma unroll
    for (int j = 0; j < ROWS; ++j) {
        if (o0 + j >= p.outH) break;
        int const start = h0 + j * STEP_H;
        bool const any = seesAny(start, R, p.h) && seesAny(w0, S, p.w);
        float const count = any ? float(counted(start, R, p.h, p.afterH)) * float(counted(w0, S, p.w, p.afterW)) : 0.0f;
        i64 const to = ((i64(image) * p.outH + o0 + j) * i64(p.wide.d) + q) * p.pixelY + c;
        auto const out = all[j].result(count);
        *reinterpret_cast<Unit*>(static_cast<T*>(p.y) + to) = *reinterpret_cast<Unit const*>(&out);
    }
}
)";

// Each thread goes down ROWS outputs of COLUMNS neighbours and V channels: what a row of x comes to is kept until the
// last window that it is part of. A block has few channels of many neighbours, which share most of what they load.
constexpr char const* kStrips = R"(
constexpr int SLICE = $slice$, AHEAD = $ahead$, COLUMNS = $columns$, IN = (COLUMNS - 1) * STEP_W + S;
TW_INLINE void takeRow(T const* row, i64 pixel, bool inside, bool const (&isColumn)[IN], Unit (&v)[IN])
{
#pragma unroll
    for (int s = 0; s < IN; ++s) {
        v[s] = Joined::nothing();
        if (inside && isColumn[s]) v[s] = *reinterpret_cast<Unit const*>(row);
        row += pixel;
    }
}
// What each of a thread's columns sees of a row.
TW_INLINE void joinRow(Unit const (&v)[IN], Joined (&to)[COLUMNS])
{
    if constexpr (COLUMNS == 2 && STEP_W == 1 && S > 1) { // most of both
        Joined both;
        both.set(v[1]);
#pragma unroll
        for (int s = 2; s < S; ++s) both.add(v[s]);
        to[0] = to[1] = both;
        to[0].add(v[0]);
        to[1].add(v[S]);
    } else
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            to[c].set(v[c * STEP_W]);
#pragma unroll
            for (int s = 1; s < S; ++s) to[c].add(v[c * STEP_W + s]);
        }
}
TW_KERNEL __launch_bounds__($threads$) pooling(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count) return;
    idx const pixels = i / SLICE, groups = divide(pixels, p.wide), slices = divide(groups, p.groups), image = divide(slices, p.slices);
    idx const vector = (slices - image * idx(p.slices.d)) * SLICE + i % SLICE;
    if (vector >= p.vectors.d) return;
    int const c = int(vector) * V, q = int(pixels - groups * idx(p.wide.d)) * COLUMNS;
    int const o0 = int(groups - slices * idx(p.groups.d)) * ROWS, h0 = o0 * STEP_H - p.padH, w0 = q * STEP_W - p.padW;
    T const* x = static_cast<T const*>(p.x) + ((i64(image) * p.h + h0) * p.w + w0) * p.pixelX + c;
    i64 const rowX = i64(p.w) * p.pixelX;
    T* y = static_cast<T*>(p.y) + ((i64(image) * p.outH + o0) * p.outW + q) * p.pixelY + c;
    i64 const rowY = i64(p.outW) * p.pixelY;
    bool isColumn[IN];
#pragma unroll
    for (int s = 0; s < IN; ++s) isColumn[s] = u32(w0 + s) < u32(p.w);
    float wide[COLUMNS];
#pragma unroll
    for (int o = 0; o < COLUMNS; ++o) {
        int const start = w0 + o * STEP_W;
        wide[o] = seesAny(start, S, p.w) ? float(counted(start, S, p.w, p.afterW)) : 0.0f;
    }
    Unit v[AHEAD][IN];
    Joined seen[R][COLUMNS];
#pragma unroll
    for (int k = 0; k < AHEAD && k < SEEN; ++k) {
        takeRow(x, p.pixelX, u32(h0 + k) < u32(p.h), isColumn, v[k]);
        x += rowX;
    }
#pragma unroll
    for (int k = 0; k < SEEN; ++k) {
        joinRow(v[k % AHEAD], seen[k % R]);
        if (k + AHEAD < SEEN) {
            takeRow(x, p.pixelX, u32(h0 + k + AHEAD) < u32(p.h), isColumn, v[k % AHEAD]);
            x += rowX;
        }
        int const j = (k - R + 1) / STEP_H, start = h0 + j * STEP_H;
        if (k < R - 1 || (k - R + 1) % STEP_H != 0) continue;
        float const tall = seesAny(start, R, p.h) ? float(counted(start, R, p.h, p.afterH)) : 0.0f;
#pragma unroll
        for (int o = 0; o < COLUMNS; ++o) {
            Joined all = seen[0][o];
#pragma unroll
            for (int r = 1; r < R; ++r) all.add(seen[r][o]);
            Unit const out = all.result(tall * wide[o]);
            if (o0 + j < p.outH && (COLUMNS == 1 || q + o < p.outW)) *reinterpret_cast<Unit*>(y + o * p.pixelY) = out;
        }
        y += rowY;
    }
}
)";

} // namespace

namespace {

Support supports(Problem const& p, DataType type)
{
    auto const& a = p.node->attrsAs<Attrs>();
    if (p.inputs[0].type != type)
        return Support::no(std::string("takes ") + nameOf(type) + " only");
    if (a.kind == Kind::kMaxAverageBlend)
        return Support::no("does not blend maximum and average");
    if (a.window.size() != 2 || p.inputs[0].dims.rank < 3)
        return Support::no("takes 2-D windows behind channels only");
    if (p.cuda && p.cuda->capability < 80)
        return Support::no("needs a GPU of compute capability 8.0 or later");
    constexpr int64_t kLimit = int64_t(1) << 15;
    Geometry const g = geometryOf(a, p.inputs[0].maxDims, p.outputs[0].maxDims);
    for (int i = 1; i < 3; ++i)
        if (std::max({g.window[i], g.stride[i], g.before[i], g.after[i], g.in[i], g.out[i]}) >= kLimit)
            return Support::no("takes windows and sizes below 32768");
    if (a.window[1] > kMostColumns)
        return Support::no("takes windows of at most " + std::to_string(kMostColumns) + " columns");
    return isWide(p) ? Support::no("counts in 32 bits") : Support::yes();
}

} // namespace

Support supportsPixelsOnCuda(Problem const& p)
{
    return supports(p, DataType::kHalf);
}
Support supportsPixels32OnCuda(Problem const& p)
{
    return supports(p, DataType::kFloat);
}

std::vector<Config> configsOfPixels(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    std::vector<Config> list;
    list.push_back({1});
    if (a.strides[0] < a.window[0] && (a.strides[0] + a.window[0]) * a.window[1] <= kMostUnrolled)
        list.push_back({2});
    if (p.outputs[0].dims.volume() == 0 || a.window[0] < a.strides[0] || a.window[0] > kMostRing)
        return list;
    Extents const& y = p.outputs[0].dims;
    int64_t const out = y[y.rank - 2], vectors = ceilDiv(y[y.rank - 3], 16 / sizeOf(p.outputs[0].type));
    // 128 contiguous bytes, but that channels fill; 64 where x is narrow in any case.
    auto waste = [&](int64_t slice) { return ceilDiv(vectors, slice) * slice - vectors; };
    int64_t const slice = waste(8) * 4 <= vectors   ? 8
                          : waste(4) * 4 <= vectors ? 4
                                                    : std::min<int64_t>(int64_t(std::bit_ceil(uint64_t(vectors))), 4);
    auto add = [&](int64_t wanted, int64_t ahead, int64_t columns) {
        int64_t const rows = ceilDiv(out, ceilDiv(out, wanted)), seen = (rows - 1) * a.strides[0] + a.window[0];
        Config const config{rows, slice, ahead, columns};
        if (seen * a.window[1] <= kMostUnrolled && std::find(list.begin(), list.end(), config) == list.end())
            list.push_back(config);
    };
    add(4, 2, 2);
    add(4, 4, 1);
    add(8, 2, 1);
    add(8, 4, 1);
    return list;
}

std::vector<Formats> formatsOfPixels(Problem const& p)
{
    if (p.inputs[0].dims.rank < 3)
        return {};
    return {channelsLastFormats(p, Format::kHWC8)};
}

CudaKernels generatePixels(Problem const& p, Config const& config)
{
    auto const& a = p.node->attrsAs<Attrs>();
    bool const isStrip = isConfig(config, kPlaces, 1, 16) && config[kAhead] <= 4 && config[kColumns] <= 2 &&
                         a.window[0] <= kMostRing && a.window[0] >= a.strides[0] &&
                         ((config[kRows] - 1) * a.strides[0] + a.window[0]) * a.window[1] <= kMostUnrolled;
    int64_t const rows = isStrip || isConfig(config, 1, 1, 8) ? config[kRows] : 1, slice = isStrip ? config[kSlice] : 1,
                  ahead = isStrip ? config[kAhead] : 1, columns = isStrip ? config[kColumns] : 1;
    bool const unrolls = ((rows - 1) * a.strides[0] + a.window[0]) * a.window[1] <= kMostUnrolled;
    CudaKernels out;
    out.isDependent = true;
    out.alignment = 16;
    out.names = {"pooling"};
    auto text = [](int64_t v) { return std::to_string(v); };
    bool const isHalf = p.inputs[0].type == DataType::kHalf;
    out.source = (isHalf ? kHalves : kFloats) +
                 cuda::expand(std::string(kText) + (isStrip ? kStrips : kWindows),
                              {{"r", text(a.window[0])},
                               {"s", text(a.window[1])},
                               {"strideH", text(a.strides[0])},
                               {"strideW", text(a.strides[1])},
                               {"rows", text(rows)},
                               {"joined", a.kind == Kind::kMax ? "Largest" : "Sum"},
                               {"excludes", a.excludePadding ? "true" : "false"},
                               {"unroll", unrolls ? "#pragma unroll" : "#pragma unroll 1"},
                               {"slice", text(slice)},
                               {"ahead", text(ahead)},
                               {"columns", text(columns)},
                               {"threads", text(isStrip ? kStripThreads : kThreads)}}) +
                 cuda::sizeCheck<Params>();
    out.run = [&a, rows, slice, columns, isStrip, vector = isHalf ? 8 : 4](CudaLaunch const& launch,
                                                                           RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        Geometry const g = geometryOf(a, x.dims, y.dims);
        int64_t const channels = x.dims[x.dims.rank - 3], vectors = (channels + vector - 1) / vector,
                      groups = (g.out[1] + rows - 1) / rows, images = x.dims.volume(0, x.dims.rank - 3);
        Params q;
        q.x = x.data;
        q.y = y.data;
        q.vectors = cuda::divBy(vectors);
        int64_t const wide = (g.out[2] + columns - 1) / columns;
        q.wide = cuda::divBy(wide);
        q.groups = cuda::divBy(groups);
        q.slices = cuda::divBy((vectors + slice - 1) / slice);
        q.count = uint64_t(images * groups * wide * (isStrip ? (vectors + slice - 1) / slice * slice : vectors));
        q.pixelX = x.pixelStride();
        q.pixelY = y.pixelStride();
        q.h = int32_t(g.in[1]);
        q.w = int32_t(g.in[2]);
        q.outH = int32_t(g.out[1]);
        q.outW = int32_t(g.out[2]);
        q.padH = int32_t(g.before[1]);
        q.padW = int32_t(g.before[2]);
        q.afterH = int32_t(g.after[1]);
        q.afterW = int32_t(g.after[2]);
        int const threads = isStrip ? kStripThreads : kThreads;
        return launch(0, blocksFor(int64_t(q.count), threads), threads, q);
    };
    return out;
}

} // namespace tw::ops::pooling
