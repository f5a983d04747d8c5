// SPDX-License-Identifier: Apache-2.0
#include "ops/pooling/cuda_planes.h"

#include <algorithm>

#include "ops/pooling/cuda_cells.h"
#include "ops/pooling/op.h"

namespace tw::ops::pooling {

namespace {

constexpr int kThreads = 128;
constexpr int64_t kMostWords = 96; // of x that a thread loads: more are slow to compile and do not fit into registers

// A config's numbers.
enum Place
{
    kColumns, // outputs of a row of each thread
    kRows,    // outputs, one below the other
    kUnitX,   // elements of an access to x
    kUnitY,
    kPlaces,
};

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    uint64_t count = 0; // threads with work
    cuda::Div wide, groups;
    int32_t h = 0, w = 0, outH = 0, outW = 0, padH = 0, afterH = 0, afterW = 0, pad = 0;
};

// Cells to y.
constexpr char const* kOfPairs = R"(
constexpr Cell NONE = NOTHING;
template <int N> TW_INLINE void put(Pack<T, N>& y, int i, Cell v, float, float)
{
    y.v[i].bits = (unsigned short)v;
    y.v[i + 1].bits = (unsigned short)(v >> 16);
}
)";
constexpr char const* kOfSingles = R"(
#define NONE __uint_as_float(NOTHING)
template <int N> TW_INLINE void put(Pack<T, N>& y, int i, Cell v, float byH, float byW)
{
    y.v[i] = store<T>(AVERAGES ? v * byH * byW : v);
}
)";

constexpr char const* kText = R"(
struct Params {
    void const* x; void* y; u64 count; Div wide, groups; i32 h, w, outH, outW, padH, afterH, afterW, pad;
};
constexpr int R = $r$, S = $s$, STEP_H = $strideH$, STEP_W = $strideW$, PAD_W = $padW$;
constexpr int ROWS = $rows$, COLUMNS = $columns$, UNIT_X = $unitX$, UNIT_Y = $unitY$;
constexpr int SEEN = (ROWS - 1) * STEP_H + R;              // rows of x
constexpr int IN = COLUMNS * STEP_W, WORDS = IN * int(sizeof(T)) / 4; // columns of x that are this thread's own
constexpr int BEYOND = S - STEP_W - PAD_W > 0 ? S - STEP_W - PAD_W : 0;
// Cells of the left neighbour, own, of the right neighbour.
constexpr int LEFT = (PAD_W + PER - 1) / PER, OWN = IN / PER, RIGHT = (BEYOND + PER - 1) / PER;
constexpr int CELLS = LEFT + OWN + RIGHT;
typedef unsigned short u16;
TW_INLINE u32 elementAt(T const* row, int column, int w, bool inside)
{
    if (!inside || u32(column) >= u32(w)) return NOTHING & (sizeof(T) == 2 ? 0xFFFFu : 0xFFFFFFFFu);
    if constexpr (sizeof(T) == 2) return reinterpret_cast<u16 const*>(row)[column];
    else return reinterpret_cast<u32 const*>(row)[column];
}
TW_INLINE Cell cellAt(T const* row, int column, int w, bool inside)
{
    u32 words[1] = {elementAt(row, column, w, inside)};
    if constexpr (PER == 2) words[0] |= elementAt(row, column + 1, w, inside) << 16;
    return cellOf(words, 0);
}
TW_INLINE void takeRow(T const* row, int column, int w, bool inside, u32 (&words)[WORDS])
{
    if constexpr (UNIT_X * sizeof(T) == 2) {
#pragma unroll
        for (int i = 0; i < WORDS; ++i)
            words[i] = elementAt(row, column + i * 2, w, inside) | elementAt(row, column + i * 2 + 1, w, inside) << 16;
    } else {
        constexpr int N = UNIT_X * int(sizeof(T)) > 4 ? UNIT_X * int(sizeof(T)) / 4 : 1;
#pragma unroll
        for (int i = 0; i < WORDS; i += N) {
            Pack<u32, N> v;
#pragma unroll
            for (int k = 0; k < N; ++k) v.v[k] = NOTHING;
            int const from = column + i * 4 / int(sizeof(T));
            if (inside && from < w) v = *reinterpret_cast<Pack<u32, N> const*>(row + from);
#pragma unroll
            for (int k = 0; k < N; ++k) words[i + k] = v.v[k];
        }
    }
}
// 1 over the positions of a window along one axis that count for the average; 0 where it sees none.
TW_INLINE float shareOf(int start, int window, int in, int after)
{
    int const stop = start + window, seen = min(stop, in) - max(start, 0);
    int const count = $excludes$ ? seen : min(stop, in + after) - start;
    float by;
    asm("rcp.approx.f32 %0, %1;" : "=f"(by) : "f"(float(count)));
    return seen > 0 ? by : 0.0f;
}
TW_KERNEL __launch_bounds__($threads$) pooling(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    // Threads without work repeat the last one's: whole warps exchange.
    bool const works = threadIndex() < p.count;
    idx const i = works ? threadIndex() : idx(p.count) - 1;
    idx const groups = divide(i, p.wide), plane = divide(groups, p.groups);
    int const part = int(i - groups * idx(p.wide.d)), q0 = part * COLUMNS, w0 = part * IN;
    int const o0 = int(groups - plane * idx(p.groups.d)) * ROWS, h0 = o0 * STEP_H - p.padH;
    T const* const x = static_cast<T const*>(p.x) + i64(plane) * p.h * p.w;
    int const lane = threadIdx.x & 31;
    bool const isFirst = part == 0, isLast = part + 1 == int(p.wide.d);
    bool const takesLeft = !isFirst && lane == 0, takesRight = isLast || lane == 31;
    Cell all[ROWS][CELLS];
#pragma unroll
    for (int j = 0; j < ROWS; ++j)
#pragma unroll
        for (int c = 0; c < CELLS; ++c) all[j][c] = NONE;
    // Loads of AHEAD rows go out before the first is used.
    constexpr int FIT = 40 / (WORDS + LEFT + RIGHT), AHEAD = FIT >= SEEN ? SEEN : FIT > 1 ? FIT : 1;
#pragma unroll
    for (int r0 = 0; r0 < SEEN; r0 += AHEAD) {
        u32 words[AHEAD][WORDS];
        Cell left[AHEAD][LEFT + 1], right[AHEAD][RIGHT + 1];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            int const h = h0 + r0 + k;
            bool const inside = u32(h) < u32(p.h) && r0 + k < SEEN;
            T const* const row = x + i64(h) * p.w;
            takeRow(row, w0, p.w, inside, words[k]);
#pragma unroll
            for (int c = 0; c < LEFT; ++c)
                left[k][c] = cellAt(row, w0 - (LEFT - c) * PER, p.w, inside && takesLeft);
#pragma unroll
            for (int c = 0; c < RIGHT; ++c) right[k][c] = cellAt(row, w0 + IN + c * PER, p.w, inside && takesRight);
        }
#pragma unroll
        for (int k = 0; k < AHEAD; ++k)
#pragma unroll
            for (int j = 0; j < ROWS; ++j)
                if (r0 + k >= j * STEP_H && r0 + k < j * STEP_H + R) {
#pragma unroll
                    for (int c = 0; c < LEFT; ++c) all[j][c] = join(all[j][c], left[k][c]);
#pragma unroll
                    for (int c = 0; c < OWN; ++c) all[j][LEFT + c] = join(all[j][LEFT + c], cellOf(words[k], c));
#pragma unroll
                    for (int c = 0; c < RIGHT; ++c)
                        all[j][LEFT + OWN + c] = join(all[j][LEFT + OWN + c], right[k][c]);
                }
    }
#pragma unroll
    for (int j = 0; j < ROWS; ++j) {
        Cell fromLeft[LEFT + 1], fromRight[RIGHT + 1];
#pragma unroll
        for (int c = 0; c < LEFT; ++c) fromLeft[c] = __shfl_up_sync(0xffffffffu, all[j][OWN + c], 1);
#pragma unroll
        for (int c = 0; c < RIGHT; ++c) fromRight[c] = __shfl_down_sync(0xffffffffu, all[j][LEFT + c], 1);
#pragma unroll
        for (int c = 0; c < LEFT; ++c)
            if (!isFirst && !takesLeft) all[j][c] = fromLeft[c];
#pragma unroll
        for (int c = 0; c < RIGHT; ++c)
            if (!takesRight) all[j][LEFT + OWN + c] = fromRight[c];
    }
    if (!works) return;
    float byW[COLUMNS] = {};
#pragma unroll
    for (int o = 0; o < COLUMNS; ++o)
        if (AVERAGES) byW[o] = shareOf((q0 + o) * STEP_W - PAD_W, S, p.w, p.afterW);
    T* const y = static_cast<T*>(p.y) + (i64(plane) * p.outH + o0) * p.outW + q0;
#pragma unroll
    for (int j = 0; j < ROWS; ++j) {
        if (o0 + j >= p.outH) break;
        float const byH = AVERAGES ? shareOf(h0 + j * STEP_H, R, p.h, p.afterH) : 0.0f;
        Pack<T, COLUMNS> out;
#pragma unroll
        for (int o = 0; o < COLUMNS; o += PER) {
            constexpr int FIRST = LEFT * PER - PAD_W;
            Cell v = pick(all[j], FIRST + o * STEP_W, FIRST + o * STEP_W + (PER - 1) * STEP_W);
#pragma unroll
            for (int s = 1; s < S; ++s)
                v = join(v, pick(all[j], FIRST + o * STEP_W + s, FIRST + o * STEP_W + s + (PER - 1) * STEP_W));
            put(out, o, v, byH, byW[o]);
        }
#pragma unroll
        for (int o = 0; o < COLUMNS; o += UNIT_Y)
            if (q0 + o < p.outW) {
                Pack<T, UNIT_Y> part;
#pragma unroll
                for (int k = 0; k < UNIT_Y; ++k) part.v[k] = out.v[o + k];
                *reinterpret_cast<Pack<T, UNIT_Y>*>(y + i64(j) * p.outW + o) = part;
            }
    }
}
)";

// The largest power of two up to `most` that divides a row, which must be known; 1 where it is not.
int64_t unitOf(ir::Value const& v, int64_t width, int64_t most)
{
    if (!v.shape.back().isConst())
        return 1;
    int64_t unit = 1;
    while (unit * 2 <= most && width % (unit * 2) == 0)
        unit *= 2;
    return unit;
}

bool isSame(PaddingMode mode)
{
    return mode == PaddingMode::kSameUpper || mode == PaddingMode::kSameLower;
}

int64_t elementsOf(Problem const& p) // of 16 bytes
{
    return 16 / sizeOf(p.inputs[0].type);
}

// Why a thread cannot have so many outputs; null when it can.
char const* misfit(Problem const& p, Config const& config)
{
    if (!isConfig(config, kPlaces, 1, 16))
        return "a config has other numbers";
    auto const& a = p.node->attrsAs<Attrs>();
    Geometry const g = geometryOf(a, p.inputs[0].maxDims, p.outputs[0].maxDims);
    int64_t const columns = config[kColumns], rows = config[kRows], in = columns * g.stride[2],
                  size = sizeOf(p.inputs[0].type);
    if (columns % (4 / size) != 0 || in % config[kUnitX] != 0 || columns % config[kUnitY] != 0 ||
        std::max(config[kUnitX], config[kUnitY]) * size > 16)
        return "accesses do not divide what a thread has";
    if (((config[kUnitX] - 1) & config[kUnitX]) != 0 || ((config[kUnitY] - 1) & config[kUnitY]) != 0)
        return "accesses are of powers of two";
    if (g.before[2] >= in || g.window[2] - g.stride[2] - g.before[2] >= in)
        return "windows reach farther than the neighbour";
    if (((rows - 1) * g.stride[1] + g.window[1]) * in * size / 4 > kMostWords)
        return "a thread would load too much";
    return nullptr;
}

} // namespace

Support supportsPlanesOnCuda(Problem const& p)
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
    constexpr int64_t kLimit = int64_t(1) << 15;
    Geometry const g = geometryOf(a, p.inputs[0].maxDims, p.outputs[0].maxDims);
    for (int i = 1; i < 3; ++i)
        if (std::max({g.window[i], g.stride[i], g.before[i], g.after[i], g.in[i], g.out[i]}) >= kLimit)
            return Support::no("takes windows and sizes below 32768");
    if (isSame(a.paddingMode) && !p.node->inputs[0]->shape.back().isConst())
        return Support::no("needs to know the padding");
    if (isWide(p))
        return Support::no("counts in 32 bits");
    return configsOfPlanes(p).empty() ? Support::no("the window is too large") : Support::yes();
}

std::vector<Config> configsOfPlanes(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    if (a.window.size() != 2 || !isFloating(p.inputs[0].type))
        return {};
    Geometry const g = geometryOf(a, p.inputs[0].dims, p.outputs[0].dims);
    int64_t const most = elementsOf(p), step = std::min<int64_t>(g.stride[2], most);
    std::vector<Config> list;
    auto add = [&](int64_t columns, int64_t rows) {
        int64_t const in = columns * g.stride[2];
        Config c(kPlaces);
        c[kColumns] = columns;
        c[kRows] = rows;
        auto largest = [](int64_t most, int64_t divides) { // power of two
            int64_t unit = 1;
            while (unit * 2 <= most && divides % (unit * 2) == 0)
                unit *= 2;
            return unit;
        };
        c[kUnitX] = largest(unitOf(*p.node->inputs[0], g.in[2], most), in);
        c[kUnitY] = largest(unitOf(*p.node->outputs[0], g.out[2], most), columns);
        if (!misfit(p, c) && std::find(list.begin(), list.end(), c) == list.end())
            list.push_back(c);
    };
    // Rows of whole packs: as many columns as give packs of x, or of y. Others: few, which lie closer together.
    int64_t const narrow = std::max<int64_t>(most / step, 2), unit = unitOf(*p.node->inputs[0], g.in[2], most);
    bool const overlaps = g.window[1] > g.stride[1], isWhole = unit == most;
    for (int64_t columns :
         {isWhole ? narrow : std::max<int64_t>(std::min(unit, narrow / 2), 2), isWhole ? most : narrow}) {
        add(columns, overlaps ? 2 : 1);
        add(columns, overlaps ? 4 : 2);
    }
    if (overlaps)
        add(narrow, 1);
    return list;
}

CudaKernels generatePlanes(Problem const& p, Config const& config)
{
    if (char const* const why = misfit(p, config))
        return noKernels(unsupported(why));
    auto const& a = p.node->attrsAs<Attrs>();
    Geometry const g = geometryOf(a, p.inputs[0].dims, p.outputs[0].dims);
    int64_t const columns = config[kColumns], rows = config[kRows], unitX = config[kUnitX], unitY = config[kUnitY];
    DataType const type = p.inputs[0].type;
    bool const averages = a.kind == Kind::kAverage;
    CudaKernels out;
    out.isDependent = true;
    out.alignment = std::max(unitX, unitY) * sizeOf(type);
    out.names = {"pooling"};
    auto text = [](int64_t v) { return std::to_string(v); };
    out.source = cellsText(type, averages) +
                 cuda::expand(std::string(hasPairs(type, averages) ? kOfPairs : kOfSingles) + kText,
                              {{"excludes", a.excludePadding ? "true" : "false"},
                               {"r", text(g.window[1])},
                               {"s", text(g.window[2])},
                               {"strideH", text(g.stride[1])},
                               {"strideW", text(g.stride[2])},
                               {"padW", text(g.before[2])},
                               {"rows", text(rows)},
                               {"columns", text(columns)},
                               {"unitX", text(unitX)},
                               {"unitY", text(unitY)},
                               {"threads", text(kThreads)}}) +
                 cuda::sizeCheck<Params>();
    out.run = [&a, columns, rows, unitX, unitY, padW = g.before[2]](CudaLaunch const& launch,
                                                                    RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        Geometry const g = geometryOf(a, x.dims, y.dims);
        if (g.before[2] != padW || g.in[2] % unitX != 0 || g.out[2] % unitY != 0)
            return unsupported("the kernel was built for rows of another width");
        int64_t const wide = (g.out[2] + columns - 1) / columns, groups = (g.out[1] + rows - 1) / rows;
        Params q;
        q.x = x.data;
        q.y = y.data;
        q.wide = cuda::divBy(wide);
        q.groups = cuda::divBy(groups);
        q.count = uint64_t(g.batch * groups * wide);
        q.h = int32_t(g.in[1]);
        q.w = int32_t(g.in[2]);
        q.outH = int32_t(g.out[1]);
        q.outW = int32_t(g.out[2]);
        q.padH = int32_t(g.before[1]);
        q.afterH = int32_t(g.after[1]);
        q.afterW = int32_t(g.after[2]);
        return launch(0, blocksFor(int64_t(q.count), kThreads), kThreads, q);
    };
    return out;
}

} // namespace tw::ops::pooling
