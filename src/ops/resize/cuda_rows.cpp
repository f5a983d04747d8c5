// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/cuda_rows.h"

#include <algorithm>

#include "kernels/cuda/common/generate.h"
#include "ops/resize/cuda_scale.h"

namespace tw::ops::resize {

namespace {

constexpr int kThreads = 256;
constexpr int kSpans = 3; // between neighbouring rows of x, for a thread

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    uint64_t count = 0;
    cuda::Div inner, groups, vectors;                   // threads of a row, groups of rows, 16 bytes of a pixel
    int64_t xImage = 0, yImage = 0, xRow = 0, yRow = 0; // elements
    int64_t xPixel = 0, yPixel = 0;                     // by pixels
    Scale scale[2];                                     // rows, columns
};

constexpr char const* kText = R"(
struct Params {
    void const* x; void* y; u64 count; Div inner, groups, vectors; i64 xImage, yImage, xRow, yRow, xPixel, yPixel; Scale scale[2];
};
constexpr int kRows = $rows$;          // of y, for a thread
constexpr int kWide = $wide$;          // elements of such a row
constexpr bool kPixels = $pixels$;     // they are channels of one pixel, else columns
typedef $t$ T;
typedef Pack<T, kWide> Unit;
constexpr int kColumns = kPixels ? 1 : kWide;
TW_INLINE float mixed(float a, float b, float weight) { return a * (1.0f - weight) + b * weight; }
struct Raw { T first[kWide], second[kWide]; };
TW_INLINE void fetch(T const* row, int const (&first)[kColumns], int const (&second)[kColumns], Raw& raw)
{
    if constexpr (kPixels) {
        *reinterpret_cast<Unit*>(raw.first) = *reinterpret_cast<Unit const*>(row + first[0]);
        if constexpr (!kNearest) *reinterpret_cast<Unit*>(raw.second) = *reinterpret_cast<Unit const*>(row + second[0]);
    } else {
#pragma unroll
        for (int c = 0; c < kWide; ++c) raw.first[c] = row[first[c]];
        if constexpr (!kNearest)
#pragma unroll
            for (int c = 0; c < kWide; ++c) raw.second[c] = row[second[c]];
    }
}
)";
constexpr char const* kLinear = R"(
typedef float Value;
TW_INLINE void settle(Raw const& raw, int const (&first)[kColumns], int const (&second)[kColumns],
                      float const (&weight)[kColumns], Value (&v)[kWide])
{
#pragma unroll
    for (int c = 0; c < kWide; ++c) {
        int const k = kPixels ? 0 : c;
        float const a = load<float>(raw.first[c]), b = load<float>(raw.second[c]);
        v[c] = first[k] == second[k] ? a : mixed(a, b, weight[k]);
    }
}
TW_INLINE T valueOf(Value a, Value b, Taps const& h) { return store<T>(h.first == h.second ? a : mixed(a, b, h.weight)); }
)";
constexpr char const* kNearest = R"(
typedef T Value;
TW_INLINE void settle(Raw const& raw, int const (&)[kColumns], int const (&)[kColumns], float const (&)[kColumns],
                      Value (&v)[kWide])
{
#pragma unroll
    for (int c = 0; c < kWide; ++c) v[c] = raw.first[c];
}
TW_INLINE T valueOf(Value a, Value, Taps const&) { return a; }
)";
// Where a thread works, whatever it does along the rows.
constexpr char const* kShared = R"(
struct Spot { T const* x; T* y; int group, column; int first[kColumns], second[kColumns]; float weight[kColumns]; };
template <class N> TW_INLINE Spot spotOf(Params const& p, idx i)
{
    idx const rest = divide(i, p.inner), image = divide(rest, p.groups);
    int const at = int(i - rest * idx(p.inner.d)), wide = int(p.scale[1].out);
    int const column = kPixels ? int(divide(at, p.vectors)) : at * kWide,
              channel = kPixels ? (at - column * int(p.vectors.d)) * kWide : 0;
    Spot s;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
        Taps const w = tapsOf<N>(p.scale[1], column + c < wide ? column + c : wide - 1);
        s.first[c] = kPixels ? w.first * int(p.xPixel) + channel : w.first;
        s.second[c] = kPixels ? w.second * int(p.xPixel) + channel : w.second;
        s.weight[c] = w.weight;
    }
    s.group = int(rest - image * idx(p.groups.d));
    s.column = column;
    s.x = static_cast<T const*>(p.x) + i64(image) * p.xImage;
    s.y = static_cast<T*>(p.y) + i64(image) * p.yImage + (kPixels ? column * p.yPixel + channel : column);
    return s;
}
TW_INLINE void put(T* y, int left, Unit const& out) // left: columns of the row
{
    if (kPixels || (kWide <= left && reinterpret_cast<u64>(y) % sizeof(Unit) == 0)) {
        *reinterpret_cast<Unit*>(y) = out;
    } else {
#pragma unroll
        for (int c = 0; c < kWide; ++c)
            if (c < left) y[c] = out.v[c];
    }
}
)";
constexpr char const* kBody = R"(
template <class N> TW_INLINE void resizeRows(Params const& p)
{
    idx const i = threadIndex();
    if (i >= p.count) return;
    Spot const s = spotOf<N>(p, i);
    int const row0 = s.group * kRows, tall = int(p.scale[0].out), left = int(p.scale[1].out) - s.column;
    T* y = s.y + row0 * p.yRow;
    waitForPrevious();
    releaseDependents();
    int have0 = -1, have1 = -1; // rows of x
    Value v0[kWide], v1[kWide];
#pragma unroll
    for (int r = 0; r < kRows; ++r, y += p.yRow) {
        if (row0 + r >= tall) break;
        Taps const h = tapsOf<N>(p.scale[0], row0 + r);
        bool want0 = h.first != have0, want1 = !kNearest && h.second != h.first && h.second != have1;
        if (want0 && h.first == have1) {
#pragma unroll
            for (int c = 0; c < kWide; ++c) v0[c] = v1[c];
            want0 = false;
        }
        Raw raw0, raw1;
        if (want0) fetch(s.x + h.first * p.xRow, s.first, s.second, raw0);
        if (want1) fetch(s.x + h.second * p.xRow, s.first, s.second, raw1);
        if (want0) settle(raw0, s.first, s.second, s.weight, v0);
        if (want1) settle(raw1, s.first, s.second, s.weight, v1), have1 = h.second;
        have0 = h.first;
        Unit out;
#pragma unroll
        for (int c = 0; c < kWide; ++c) out.v[c] = valueOf(v0[c], v1[c], h);
        put(y, left, out);
    }
}
)";
// Rows of y that lie between a few neighbours of x, which are all read first.
constexpr char const* kBetween = R"(
constexpr int kSpans = 3;
template <class N> TW_INLINE void resizeRows(Params const& p)
{
    idx const i = threadIndex();
    if (i >= p.count) return;
    Spot const s = spotOf<N>(p, i);
    Scale const& rows = p.scale[0];
    int const from = s.group * kSpans - 1, last = int(rows.in) - 1, tall = int(rows.out),
              left = int(p.scale[1].out) - s.column; // from: the row in front, -1 for what lies outside
    N const times = N(rows.times), plus = N(rows.plus), by = N(rows.by.d), need = N(from + 1) * by;
    int o = need <= plus ? 0 : times == 0 ? tall : int(quotient(N(need - plus + times - 1), rows.step));
    waitForPrevious();
    releaseDependents();
    if (o >= tall) return;
    Raw raw[kSpans + 1];
    Value v[kSpans + 1][kWide];
#pragma unroll
    for (int k = 0; k <= kSpans; ++k) {
        int const row = from + k < 0 ? 0 : from + k > last ? last : from + k;
        fetch(s.x + row * p.xRow, s.first, s.second, raw[k]);
    }
#pragma unroll
    for (int k = 0; k <= kSpans; ++k) settle(raw[k], s.first, s.second, s.weight, v[k]);
    T* y = s.y + o * p.yRow;
#pragma unroll
    for (int k = 0; k < kSpans; ++k)
        for (; o < tall; ++o, y += p.yRow) {
            N const n = N(o) * times + plus, q = quotient(n, rows.by);
            int const base = int(q) - 1 > last ? last : int(q) - 1;
            if (base != from + k) break;
            N const rest = n - q * by;
            Taps h = {0, 1, float(rest) * rows.inverse};
            if (base == last || rest == 0) h.second = 0;
            Unit out;
#pragma unroll
            for (int c = 0; c < kWide; ++c) out.v[c] = base < 0 ? store<T>(v[k + 1][c]) : valueOf(v[k][c], v[k + 1][c], h);
            put(y, left, out);
        }
}
)";
constexpr char const* kKernels = R"(
TW_KERNEL __launch_bounds__(256) resize_rows(const __grid_constant__ Params p) { resizeRows<u32>(p); }
TW_KERNEL __launch_bounds__(256) resize_rows_long(const __grid_constant__ Params p) { resizeRows<u64>(p); }
)";

struct Shape
{
    int rows, wide; // rows 0: those between neighbours of x
    bool pixels;
};

Result<void> run(Attrs const& a, Shape const& shape, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int const axis = y.dims.rank - 2;
    Params p;
    p.x = x.data;
    p.y = y.data;
    for (int i = 0; i < 2; ++i)
        p.scale[i] = scaleOf(a, axisOf(a, x.dims, y.dims, axis + i));
    Scale const &rows = p.scale[0], &columns = p.scale[1];
    int64_t images = y.dims.volume(0, axis), inner = (columns.out + shape.wide - 1) / shape.wide;
    p.xPixel = p.yPixel = 1;
    if (shape.pixels) {
        int64_t const channels = y.dims[axis - 1], vectors = (channels + shape.wide - 1) / shape.wide;
        images = y.dims.volume(0, axis - 1);
        inner = columns.out * vectors;
        p.vectors = cuda::divBy(vectors);
        p.xPixel = x.pixelStride();
        p.yPixel = y.pixelStride();
    }
    p.xRow = columns.in * p.xPixel;
    p.yRow = columns.out * p.yPixel;
    p.xImage = p.xRow * rows.in;
    p.yImage = p.yRow * rows.out;
    int64_t const groups =
        shape.rows == 0 ? (rows.in + 1 + kSpans - 1) / kSpans : (rows.out + shape.rows - 1) / shape.rows;
    p.inner = cuda::divBy(inner);
    p.groups = cuda::divBy(groups);
    p.count = uint64_t(images * groups * inner);
    return launch(isLong(rows) || isLong(columns) ? 1 : 0, blocksFor(int64_t(p.count), kThreads), kThreads, p);
}

constexpr int kMostWide = 4, kMostRows = 16;

} // namespace

Support supportsRows(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    TensorSpec const& x = p.inputs[0];
    if (a.mode == Mode::kCubic)
        return Support::no("does not mix by cubic weights");
    if (a.mode == Mode::kLinear && !isFloating(x.type))
        return Support::no(std::string("mixes no ") + nameOf(x.type));
    if (x.dims.rank < 3)
        return Support::no("resizes images");
    return supportsLastAxes(p);
}

std::vector<Formats> formatsOfRows(Problem const& p)
{
    std::vector<Formats> list{linearFormats(p)};
    if (p.outputs[0].dims.rank >= 3 && !p.inputs[0].constant && isFloating(p.outputs[0].type)) {
        list.push_back(linearFormats(p));
        list.back().inputs[0] = list.back().outputs[0] = Format::kHWC8;
    }
    return list;
}

// Rows of y for a thread, and columns of planes.
std::vector<Config> configsOfRows(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    int const rank = p.outputs[0].dims.rank;
    bool const pixels = p.outputs[0].format == Format::kHWC8,
               grows = a.mode == Mode::kLinear && p.outputs[0].dims[rank - 2] > p.inputs[0].dims[rank - 2];
    std::vector<Config> list;
    if (grows)
        list = pixels ? std::vector<Config>{{0, 1}} : std::vector<Config>{{0, 4}, {0, 2}};
    for (int64_t rows : {4, 2})
        list.push_back({rows, pixels ? 1 : 4});
    if (!pixels)
        list.push_back({8, 4});
    if (supportsKnown(p).ok) // kernels that know the sizes are faster
        list.resize(1);
    return list;
}

CudaKernels generateRows(Problem const& problem, Config const& config)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    DataType const t = problem.outputs[0].type;
    Shape shape{4, 1, problem.outputs[0].format == Format::kHWC8};
    if (isConfig(config, 2, 0, kMostRows)) {
        shape.rows = int(config[0]);
        shape.wide = int(config[1] >= kMostWide ? 4 : config[1] >= 2 ? 2 : 1);
    }
    if (shape.pixels)
        shape.wide = int(16 / sizeOf(t));
    bool const isNearest = a.mode == Mode::kNearest;
    if (isNearest)
        shape.rows = std::max(shape.rows, 1);
    CudaKernels out;
    out.isDependent = true;
    out.alignment = shape.pixels ? 16 : 1;
    out.names = {"resize_rows", "resize_rows_long"};
    auto flag = [](bool b) { return std::string(b ? "true" : "false"); };
    out.source = cuda::expand(std::string(kScaleText) + kText,
                              {{"rows", std::to_string(std::max(shape.rows, 1))},
                               {"wide", std::to_string(shape.wide)},
                               {"pixels", flag(shape.pixels)},
                               {"nearest", flag(isNearest)},
                               {"excludeOutside", flag(a.excludeOutside)},
                               {"t", isNearest ? cuda::unitOf(sizeOf(t)) : cuda::storageOf(t)}}) +
                 (isNearest ? kNearest : kLinear) + kShared + (shape.rows == 0 ? kBetween : kBody) + kKernels +
                 cuda::sizeCheck<Params>();
    out.run = [&a, shape](CudaLaunch const& launch, RunArgs& args) { return run(a, shape, launch, args); };
    return out;
}

} // namespace tw::ops::resize
