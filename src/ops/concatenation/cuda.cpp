// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "families/copy/cuda_runs.h"
#include "families/copy/cuda_words.h"
#include "families/elementwise/cuda_pointwise.h"
#include "ops/concatenation/op.h"

namespace tw::ops::concatenation {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kStoreBytes = 8;
constexpr int kFirstOdd = 5, kOddKernels = 3; // of units of 1, 2 and 4 bytes
constexpr int kFirstWhole = kFirstOdd + kOddKernels;
constexpr int kFirstWords = kFirstWhole + 5; // of units of 1 and 2 bytes
constexpr int64_t kShortRowBytes = 1024;
constexpr int64_t kShortRow = 8; // units: shorter rows are all ends

// Rows of one input to rows of y; all counts in units.
struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    uint64_t count = 0;
    cuda::Div row;                                      // units of x in a row
    int64_t xRow = 0, yRow = 0, yBegin = 0, length = 0; // length: of a row of x
};

constexpr char const* kText = R"(
struct Params { void const* x; void* y; u64 count; Div row; i64 xRow, yRow, yBegin, length; };
template <class U> TW_INLINE void copyRows(Params const& p)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count) return;
    idx const r = divide(i, p.row);
    off const at = off(i - r * idx(p.row.d));
    static_cast<U*>(p.y)[off(r) * off(p.yRow) + off(p.yBegin) + at] =
        static_cast<U const*>(p.x)[off(r) * off(p.xRow) + at];
}
// Rows that begin anywhere: aligned stores of 8 bytes, units at the ends of rows. p.row: stores of a row.
template <class U> TW_INLINE void copyOddRows(Params const& p)
{
    constexpr int kPerStore = 8 / sizeof(U);
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count) return;
    idx const r = divide(i, p.row);
    U const* const x = static_cast<U const*>(p.x) + off(r) * off(p.xRow);
    U* const y = static_cast<U*>(p.y) + off(r) * off(p.yRow) + off(p.yBegin);
    off const at = off(i - r * idx(p.row.d)) * kPerStore - off(reinterpret_cast<u64>(y) / sizeof(U) % kPerStore),
              length = off(p.length);
    if (at >= 0 && at + kPerStore <= length) {
        Pack<U, kPerStore> v;
#pragma unroll
        for (int e = 0; e < kPerStore; ++e) v.v[e] = x[at + e];
        *reinterpret_cast<Pack<U, kPerStore>*>(y + at) = v;
    } else {
#pragma unroll
        for (int e = 0; e < kPerStore; ++e)
            if (at + e >= 0 && at + e < length) y[at + e] = x[at + e];
    }
}
TW_KERNEL concatenation_odd_1(const __grid_constant__ Params p) { copyOddRows<unit1>(p); }
TW_KERNEL concatenation_odd_2(const __grid_constant__ Params p) { copyOddRows<unit2>(p); }
TW_KERNEL concatenation_odd_4(const __grid_constant__ Params p) { copyOddRows<unit4>(p); }
TW_KERNEL concatenation_1(const __grid_constant__ Params p) { copyRows<unit1>(p); }
TW_KERNEL concatenation_2(const __grid_constant__ Params p) { copyRows<unit2>(p); }
TW_KERNEL concatenation_4(const __grid_constant__ Params p) { copyRows<unit4>(p); }
TW_KERNEL concatenation_8(const __grid_constant__ Params p) { copyRows<unit8>(p); }
TW_KERNEL concatenation_16(const __grid_constant__ Params p) { copyRows<unit16>(p); }
)";

// All inputs at once: y is one stretch.
constexpr int kMostInputs = 8;
struct WholeParams
{
    void* y = nullptr;
    uint64_t count = 0; // units of y
    cuda::Div columns;  // of a row of y
    int64_t inputs = 0;
    void const* x[kMostInputs] = {};
    int64_t end[kMostInputs] = {}, step[kMostInputs] = {}; // columns of y; units from row to row of an input
};

constexpr char const* kWholeText = R"(
struct WholeParams { void* y; u64 count; Div columns; i64 inputs; void const* x[8]; i64 end[8], step[8]; };
// 16 bytes of y for a thread. Behind the last input, in the gap of a pixel: zeros.
template <class U> TW_INLINE void copyWhole(WholeParams const& p)
{
    constexpr int kPerStore = 16 / sizeof(U);
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex() * kPerStore;
    if (i >= p.count) return;
    int const inputs = int(p.inputs);
    idx row = divide(i, p.columns);
    off const columns = off(p.columns.d);
    off column = off(i - row * idx(p.columns.d)), end = 0;
    int k = 0;
    U const* x = nullptr;
    auto enter = [&] { // the input that the column belongs to
        for (k = 0; k < inputs && column >= off(p.end[k]); ++k) {}
        end = k < inputs ? off(p.end[k]) : columns;
        if (k < inputs)
            x = static_cast<U const*>(p.x[k]) + off(row) * off(p.step[k]) + (column - (k > 0 ? off(p.end[k - 1]) : 0));
    };
    enter();
    Pack<U, kPerStore> v;
#pragma unroll
    for (int e = 0; e < kPerStore; ++e) {
        if (column == end) {
            if (column == columns) column = 0, ++row;
            if (i + e < p.count) enter();
        }
        v.v[e] = U{};
        if (i + e < p.count && k < inputs) v.v[e] = *x++;
        ++column;
    }
    U* const y = static_cast<U*>(p.y) + i;
    if (i + kPerStore <= p.count) *reinterpret_cast<Pack<U, kPerStore>*>(y) = v;
    else
#pragma unroll
        for (int e = 0; e < kPerStore; ++e)
            if (i + e < p.count) y[e] = v.v[e];
}
TW_KERNEL __launch_bounds__(256) concatenation_whole_1(const __grid_constant__ WholeParams p) { copyWhole<unit1>(p); }
TW_KERNEL __launch_bounds__(256) concatenation_whole_2(const __grid_constant__ WholeParams p) { copyWhole<unit2>(p); }
TW_KERNEL __launch_bounds__(256) concatenation_whole_4(const __grid_constant__ WholeParams p) { copyWhole<unit4>(p); }
TW_KERNEL __launch_bounds__(256) concatenation_whole_8(const __grid_constant__ WholeParams p) { copyWhole<unit8>(p); }
TW_KERNEL __launch_bounds__(256) concatenation_whole_16(const __grid_constant__ WholeParams p) { copyWhole<unit16>(p); }
)";

// The same by words. Segments: inputs, and the gap behind them.
constexpr int kEach = 4;         // words for a thread, in flight together
constexpr int64_t kWaves = 4096; // threads of a multiprocessor, about: with fewer of them a thread moves one word
struct WordsParams
{
    void* y = nullptr;
    uint64_t count = 0; // units of y
    cuda::Div columns, segments;
    int64_t inputs = 0, each = 1;
    int64_t end[kMostInputs + 1] = {}, step[kMostInputs] = {}; // as above
    Stretch x[kMostInputs];
};

constexpr char const* kWordsKernels = R"(
struct Stretch { void const* x; i64 at, begin, span; };
struct WordsParams { void* y; u64 count; Div columns, segments; i64 inputs, each; i64 end[9], step[8]; Stretch x[8]; };
struct JoinedRows {
    struct Spot { idx row, column; int k; };
    static constexpr bool kClips = true; // the gap
    WordsParams const& p;
    TW_INLINE Whole fill() const { return {}; }
    TW_INLINE idx begin(int k) const { return k > 0 ? idx(p.end[k - 1]) : 0; }
    TW_INLINE Spot spot(idx i) const
    {
        idx const row = divide(i, p.columns), column = i - row * idx(p.columns.d);
        int k = 0;
        while (column >= idx(p.end[k])) ++k;
        return {row, column, k};
    }
    TW_INLINE Spot next(Spot at) const
    {
        at.column = idx(p.end[at.k]);
        if (++at.k == int(p.segments.d)) at = {at.row + 1, 0, 0};
        return at;
    }
    TW_INLINE Piece piece(Spot const& at) const
    {
        idx const left = idx(p.end[at.k]) - at.column;
        if (at.k >= int(p.inputs)) return {nullptr, 0, 0, 0, left, 0, 0};
        Stretch const& x = p.x[at.k];
        return {x.x, off(x.at) + off(at.row) * off(p.step[at.k]) + off(at.column - begin(at.k)), off(x.begin), idx(x.span),
                left, 0, off(left)};
    }
    TW_INLINE idx segment(idx i) const
    {
        Spot const at = spot(i);
        return at.row * idx(p.segments.d) + at.k;
    }
    TW_INLINE idx end(idx segment) const
    {
        idx const row = divide(segment, p.segments);
        return row * idx(p.columns.d) + idx(p.end[segment - row * idx(p.segments.d)]);
    }
};
template <int S> TW_INLINE void copyByWords(WordsParams const& p)
{
    waitForPrevious();
    releaseDependents();
    copyWords<S>(JoinedRows{p}, p.y, idx(p.count), int(p.each));
}
TW_KERNEL __launch_bounds__(256) concatenation_words_1(const __grid_constant__ WordsParams p) { copyByWords<1>(p); }
TW_KERNEL __launch_bounds__(256) concatenation_words_2(const __grid_constant__ WordsParams p) { copyByWords<2>(p); }
)";

// Bytes of a row, from row to row, and rows.
struct Rows
{
    int64_t bytes, step, count;
};

Rows rowsOf(TensorRef const& t, int axis)
{
    int64_t const size = sizeOf(t.type);
    if (t.format == Format::kHWC8) // channels of a pixel
        return {t.dims[axis] * size, t.pixelStride() * size,
                t.dims.volume(0, axis) * t.dims.volume(axis + 1, t.dims.rank)};
    int64_t const bytes = t.dims.volume(axis, t.dims.rank) * size;
    return {bytes, bytes, t.dims.volume(0, axis)};
}

// Of an input whose row begins at `begin` in that of y. The last one takes its gap with it where it fits that of y.
Rows rowsOfInput(RunArgs const& args, size_t i, int axis, int64_t begin)
{
    TensorRef const& y = args.outputs[0];
    Rows rows = rowsOf(args.inputs[i], axis);
    if (y.format == Format::kHWC8 && y.stride == 0 && i + 1 == args.inputs.size() &&
        begin % (vectorOf(Format::kHWC8) * sizeOf(y.type)) == 0)
        rows.bytes = rowsOf(y, axis).step - begin;
    return rows;
}

// The widest unit, as a power of 2, that divides all these bytes.
int unitShift(uint64_t all)
{
    int shift = 4;
    while (shift > 0 && all % (uint64_t(1) << shift) != 0)
        --shift;
    return shift;
}

// Where rows are short or begin anywhere, no input lies in its place and y is nobody's part. -1: not so, else the unit.
int wholeShift(int axis, RunArgs const& args)
{
    TensorRef const& y = args.outputs[0];
    Rows const whole = rowsOf(y, axis);
    if (args.inputs.size() > size_t(kMostInputs) || y.stride != 0 || cuda::addressOf(y.data) % 16 != 0)
        return -1;
    uint64_t all = uint64_t(whole.step);
    int64_t begin = 0;
    for (size_t i = 0; i < args.inputs.size(); ++i) {
        TensorRef const& x = args.inputs[i];
        Rows const rows = rowsOfInput(args, i, axis, begin);
        if (rows.bytes * rows.count > 0 && x.as<char>() == y.as<char>() + begin)
            return -1;
        all |= cuda::addressOf(x.data) | uint64_t(rows.bytes | rows.step);
        begin += rows.bytes;
    }
    int const shift = unitShift(all);
    return shift >= kOddKernels && whole.step >= kShortRowBytes ? -1 : shift;
}

Result<void> runWords(int axis, int shift, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const& y = args.outputs[0];
    Rows const whole = rowsOf(y, axis);
    int64_t const unit = int64_t(1) << shift, words = (whole.step * whole.count + kWordBytes - 1) / kWordBytes;
    WordsParams p;
    p.y = y.data;
    p.columns = cuda::divBy(whole.step >> shift);
    p.count = uint64_t(whole.step * whole.count) >> shift;
    int64_t end = 0;
    for (size_t i = 0; i < args.inputs.size(); ++i) {
        TensorRef const& x = args.inputs[i];
        Rows const rows = rowsOfInput(args, i, axis, end << shift);
        if (rows.bytes * rows.count == 0)
            continue;
        size_t const k = size_t(p.inputs++);
        p.end[k] = end += rows.bytes >> shift;
        p.step[k] = rows.step >> shift;
        p.x[k] = stretchOf(x.data, 0, (rows.step * (rows.count - 1) + rows.bytes) >> shift, unit);
    }
    int64_t segments = p.inputs;
    if (end < whole.step >> shift)
        p.end[segments++] = whole.step >> shift;
    p.segments = cuda::divBy(segments);
    p.each = words < kWaves * launch.multiprocessors() ? 1 : kEach;
    return launch(kFirstWords + shift, blocksFor(words, int(kWordThreads * p.each)), kWordThreads, p);
}

// Whether words of one segment are what counts.
bool isLong(int axis, RunArgs const& args)
{
    Rows const whole = rowsOf(args.outputs[0], axis);
    return whole.step >= kLeastSegmentBytes * int64_t(args.inputs.size());
}

Result<void> runWhole(int axis, int shift, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const& y = args.outputs[0];
    Rows const whole = rowsOf(y, axis);
    WholeParams p;
    p.y = y.data;
    p.columns = cuda::divBy(whole.step >> shift);
    p.count = uint64_t(whole.step * whole.count) >> shift;
    int64_t end = 0;
    for (size_t i = 0; i < args.inputs.size(); ++i) {
        TensorRef const& x = args.inputs[i];
        Rows const rows = rowsOfInput(args, i, axis, end << shift);
        size_t const k = size_t(p.inputs++);
        p.x[k] = x.data;
        p.end[k] = end += rows.bytes >> shift;
        p.step[k] = rows.step >> shift;
    }
    int64_t const stores = (whole.step * whole.count + 15) / 16;
    return launch(kFirstWhole + shift, blocksFor(stores, kThreads), kThreads, p);
}

// Inputs that lie in their place already (aliases) are left alone.
Result<void> run(int axis, CudaLaunch const& launch, RunArgs& args)
{
    if (int const shift = wholeShift(axis, args); shift >= 0)
        return 1 << shift <= kMostJoinedBytes && isLong(axis, args) ? runWords(axis, shift, launch, args)
                                                                    : runWhole(axis, shift, launch, args);
    TensorRef const& y = args.outputs[0];
    Rows const whole = rowsOf(y, axis);
    int64_t begin = 0;
    for (size_t i = 0; i < args.inputs.size(); ++i) {
        TensorRef const& x = args.inputs[i];
        Rows const rows = rowsOfInput(args, i, axis, begin);
        char const* const place = y.as<char>() + begin;
        if (rows.bytes * rows.count > 0 && (x.as<char>() != place || rows.step != whole.step)) {
            int kernel = unitShift(cuda::addressOf(x.data) | cuda::addressOf(y.data) |
                                   uint64_t(rows.bytes | rows.step | whole.step | begin));
            Params p;
            p.x = x.data;
            p.y = y.data;
            p.row = cuda::divBy(rows.bytes >> kernel);
            p.length = rows.bytes >> kernel;
            p.xRow = rows.step >> kernel;
            p.yRow = whole.step >> kernel;
            p.yBegin = begin >> kernel;
            p.count = uint64_t(rows.bytes * rows.count) >> kernel;
            if (kernel < kOddKernels && p.length > kShortRow) {
                int64_t const each = kStoreBytes >> kernel, stores = (p.length + each - 2) / each + 1;
                p.row = cuda::divBy(stores);
                p.count = uint64_t(stores * rows.count);
                kernel += kFirstOdd;
            }
            TW_TRY(launch(kernel, blocksFor(int64_t(p.count), kThreads), kThreads, p));
        }
        begin += rows.bytes;
    }
    return {};
}

std::vector<Formats> formats(Problem const& p)
{
    std::vector<Formats> list{linearFormats(p)};
    int const rank = p.outputs[0].dims.rank;
    bool const anyConstant =
        std::any_of(p.inputs.begin(), p.inputs.end(), [](TensorSpec const& t) { return t.constant != nullptr; });
    if (isFloating(p.outputs[0].type) && rank >= 3 && !anyConstant &&
        p.node->attrsAs<Attrs>().axis == channelAxis(Format::kHWC8, rank))
        list.push_back(channelsLastFormats(p, Format::kHWC8));
    return list;
}

CudaKernels generate(Problem const& problem, Config const&)
{
    CudaKernels out;
    // Counted in bytes when nothing is aligned.
    TensorSpec const& y = problem.outputs[0];
    out.wide = storageCount(y.format, y.type, y.maxDims) >= INT32_MAX / sizeOf(y.type);
    out.isDependent = true;
    out.names = {"concatenation_1",  "concatenation_2",     "concatenation_4",     "concatenation_8",
                 "concatenation_16", "concatenation_odd_1", "concatenation_odd_2", "concatenation_odd_4"};
    for (int unit = 1; unit <= 16; unit *= 2)
        out.names.push_back("concatenation_whole_" + std::to_string(unit));
    for (int unit = 1; unit <= kMostJoinedBytes; unit *= 2)
        out.names.push_back("concatenation_words_" + std::to_string(unit));
    out.source =
        std::string(kText) + kWholeText + kWordsText + kWordsKernels + cuda::sizeCheck<Params>() +
        "static_assert(sizeof(WholeParams) == " + std::to_string(sizeof(WholeParams)) +
        ", \"layout of WholeParams\");\nstatic_assert(sizeof(WordsParams) == " + std::to_string(sizeof(WordsParams)) +
        ", \"layout of WordsParams\");\n";
    out.run = [axis = int(problem.node->attrsAs<Attrs>().axis)](CudaLaunch const& launch, RunArgs& args) {
        return run(axis, launch, args);
    };
    return out;
}

Runs runsOf(Problem const& p)
{
    TensorSpec const& y = p.outputs[0];
    int const axis = int(p.node->attrsAs<Attrs>().axis), rank = y.dims.rank;
    if (!isStatic(p) || y.format != Format::kLinear || axis < 0 || axis >= rank)
        return {};
    Runs r;
    r.elementBytes = sizeOf(y.type);
    r.rows = r.lines = r.high = y.dims.volume(0, axis);
    r.columns = y.dims.volume(axis, rank);
    r.fits = r.elementBytes <= 4;
    int64_t column = 0;
    for (size_t i = 0; i < p.inputs.size(); ++i) {
        TensorSpec const& x = p.inputs[i];
        int64_t const length = x.dims.volume(axis, rank);
        r.fits = r.fits && x.format == Format::kLinear;
        if (length > 0)
            r.sources.push_back({int(i), r.rows * length, 0, r.rows * length, length, column, length});
        column += length;
    }
    return r;
}

constexpr CudaTactic kRuns = runsTactic<runsOf>("concatenation_runs_cuda");
constexpr CudaTactic kPlain{"concatenation_plain_cuda", 4, generate, nullptr, nullptr, formats};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kRuns, &kPlain};
    return kList;
}

} // namespace tw::ops::concatenation
