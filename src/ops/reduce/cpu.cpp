// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "base/round.h"
#include "kernels/cpu/rows.h"
#include "ops/reduce/loops.h"
#include "tactic/tactic.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::reduce {

namespace {

constexpr PlainTactic kPlain{"reduce_any_plain_cpu", 1, runPlain};

// ---- Sums and averages of f32 in vectors: rows of linear tensors, and all pixels of channels-last ones.

bool isSum(Attrs const& a)
{
    return a.kind == Kind::kSum || a.kind == Kind::kAvg;
}

float finished(Attrs const& a, double v, int64_t count)
{
    double const y = a.kind == Kind::kAvg ? v / double(count) : v; // 0 / 0 is NaN
    return float(a.after == After::kSqrt ? std::sqrt(y) : a.after == After::kLog ? std::log(y) : y);
}

// Rows in the middle of nothing else: [outer, n], n reduced; their number, or 0.
int64_t rowsOf(Attrs const& a, Extents const& x)
{
    int first = x.rank;
    while (first > 0 && a.has(first - 1))
        --first;
    for (int i = 0; i < first; ++i)
        if (a.has(i) && x[i] != 1)
            return 0;
    return first == x.rank ? 0 : x.volume(0, first);
}

Support supportsRows(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    if (!isSum(a) || a.before != Before::kNothing)
        return Support::no("sums and averages of elements as they are only");
    bool inner = false, outer = false;
    int const rank = p.inputs[0].dims.rank;
    for (int i = rank - 1; i >= 0; --i) {
        inner = inner || (i == rank - 1 && a.has(i));
        outer = outer || (a.has(i) && i + 1 < rank && !a.has(i + 1));
    }
    return inner && !outer ? Support::yes() : Support::no("reduces the last axes only");
}

Result<void> runRows(ir::Node const& node, kernels::ChannelsLastKernels const& k, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int64_t const rows = rowsOf(a, x.dims), n = rows > 0 ? x.count() / rows : 0;
    eachInPieces(*args.workers, rows, x.sizeBytes(), [&](int64_t i) {
        double sum = 0; // of pieces that are short enough for float
        for (int64_t at = 0; at < n; at += kPiece)
            sum += double(k.sumRow(x.as<float>() + i * n + at, std::min(kPiece, n - at)));
        y.as<float>()[i] = finished(a, sum, n);
    });
    return {};
}

Support supportsNhwc(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    int const rank = p.inputs[0].dims.rank;
    if (!a.isBare())
        return Support::no("has nothing in front of the sum or behind it");
    if (!isSum(a) || a.axes != (int64_t(1) << rank) - 4)
        return Support::no("sums and averages of all axes behind the channels only");
    return Support::yes();
}

std::vector<Formats> pixelFormats(Problem const& problem)
{
    int const rank = problem.inputs[0].dims.rank;
    if (rank < 3 || problem.inputs[0].constant)
        return {};
    std::vector<Formats> list{Formats{{Format::kChannelsLast}, {Format::kLinear}}};
    if (problem.outputs[0].dims.rank >= 3)
        list.insert(list.begin(), Formats{{Format::kChannelsLast}, {Format::kChannelsLast}});
    return list;
}

Result<void> runNhwc(ir::Node const& node, kernels::ChannelsLastKernels const& k, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    constexpr int64_t kChannels = 64;
    int64_t const channels = x.dims[1], pixels = pixelsOf(x), blocks = divideUp(channels, kChannels);
    float const scale = a.kind == Kind::kAvg ? 1 / float(pixels) : 1; // no pixel: the kernel makes 0 * infinity
    int64_t const yStep = y.format == Format::kChannelsLast ? y.pixelStride() : channels;
    eachInPieces(*args.workers, x.dims[0] * blocks, x.sizeBytes(), [&](int64_t i) {
        int64_t const n = i / blocks, c = i % blocks * kChannels, count = std::min(kChannels, channels - c);
        float const* from = imageOf(x, n) + c;
        float* to = y.as<float>() + n * yStep + c;
        if (y.format == Format::kChannelsLast || count % 16 == 0) {
            k.sum(from, x.pixelStride(), count, pixels, scale, to);
        } else { // the kernel writes whole cache lines
            float line[kChannels];
            k.sum(from, x.pixelStride(), count, pixels, scale, line);
            std::copy_n(line, count, to);
        }
    });
    return {};
}

// ---- f32 over any axes in vectors: runs of reduced elements are joined into one, runs of kept ones into each other.

using kernels::Join;
using kernels::RowKernels;

Support supportsAxes(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    Loops const loops(a, p.inputs[0].dims);
    if (a.kind == Kind::kProd && (!loops.innerReduced || a.before != Before::kNothing))
        return Support::no("takes products of the last axes, of elements as they are only");
    if (a.isLogSumExp())
        return Support::no("leaves exponentials to others");
    if (a.before != Before::kNothing && !isSum(a) && (a.kind != Kind::kMax || a.before != Before::kAbs))
        return Support::no("takes absolute values for sums, averages and maxima, squares for sums and averages only");
    return Support::yes();
}

// How results are joined.
Join joinOf(Kind kind)
{
    return kind == Kind::kMax ? Join::kMax : kind == Kind::kMin ? Join::kMin : Join::kSum;
}
// How elements are.
Join joinOf(Attrs const& a)
{
    if (a.before == Before::kNothing)
        return joinOf(a.kind);
    return a.before == Before::kSquare ? Join::kSumSquares : a.kind == Kind::kMax ? Join::kMaxAbs : Join::kSumAbs;
}

double joined(Join join, double a, double b)
{
    if (join == Join::kSum)
        return a + b;
    return b != b || (join == Join::kMax ? b > a : b < a) ? b : a;
}

// A run of any length.
double joinRun(RowKernels const& k, Attrs const& a, float const* x, int64_t n)
{
    if (a.kind == Kind::kProd)
        return k.productRow(x, n);
    auto const row = k.joinRow[int(joinOf(a))];
    if (n <= kPiece || !isSum(a))
        return double(row(x, n));
    double sum = 0;
    for (int64_t at = 0; at < n; at += kPiece)
        sum += double(row(x + at, std::min(kPiece, n - at)));
    return sum;
}

// Rows of so few elements that a call for each, and to work out where it lies, takes longer than they do.
constexpr int64_t kShortRow = 8;

template <class Value, class Two>
void joinShort(Attrs const& a, float const* x, int64_t n, int64_t rows, float* y, Value const& value, Two const& two)
{
    for (int64_t i = 0; i < rows; ++i, x += n) {
        double acc = value(double(x[0]));
        for (int64_t j = 1; j < n; ++j)
            acc = two(acc, value(double(x[j])));
        y[i] = finished(a, acc, n);
    }
}
void joinShort(Attrs const& a, float const* x, int64_t n, int64_t rows, float* y)
{
    auto const of = [&](auto const& value) {
        if (a.kind == Kind::kProd)
            joinShort(a, x, n, rows, y, value, [](double u, double v) { return u * v; });
        else if (a.kind == Kind::kMax)
            joinShort(a, x, n, rows, y, value, [](double u, double v) { return joined(Join::kMax, u, v); });
        else if (a.kind == Kind::kMin)
            joinShort(a, x, n, rows, y, value, [](double u, double v) { return joined(Join::kMin, u, v); });
        else
            joinShort(a, x, n, rows, y, value, [](double u, double v) { return u + v; });
    };
    if (a.before == Before::kSquare)
        of([](double v) { return v * v; });
    else if (a.before == Before::kAbs)
        of([](double v) { return std::fabs(v); });
    else
        of([](double v) { return v; });
}

void joinInner(RowKernels const& k, Attrs const& a, Loops const& loops, TensorRef const& x, float* y, Workers& workers)
{
    constexpr int64_t kParts = 64;
    int64_t const outputs = loops.kept.volume();
    auto const join = [&](double u, double v) { return a.kind == Kind::kProd ? u * v : joined(joinOf(a.kind), u, v); };
    if (outputs == 1 && loops.reduced.rank == 0 && loops.inner > kParts * kPiece) {
        double parts[kParts];
        eachInPieces(workers, kParts, x.sizeBytes(), [&](int64_t i) {
            int64_t const at = loops.inner * i / kParts;
            parts[i] = joinRun(k, a, x.as<float>() + at, loops.inner * (i + 1) / kParts - at);
        });
        for (int64_t i = 1; i < kParts; ++i)
            parts[0] = join(parts[0], parts[i]);
        y[0] = finished(a, parts[0], loops.count);
        return;
    }
    if (loops.inner <= kShortRow && loops.reduced.rank == 0 && outputs * loops.inner == x.count()) { // dense
        inPieces(workers, outputs, x.sizeBytes(), [&](int64_t begin, int64_t end) {
            joinShort(a, x.as<float>() + begin * loops.inner, loops.inner, end - begin, y + begin);
        });
        return;
    }
    eachInPieces(workers, outputs, x.sizeBytes(), [&](int64_t i) {
        float const* from = x.as<float>() + keptOffset(loops, i);
        Counter reduced(loops.reduced);
        double acc = joinRun(k, a, from, loops.inner);
        while (reduced.next())
            acc = join(acc, joinRun(k, a, from + reduced.offset(loops.reducedStrides), loops.inner));
        y[i] = finished(a, acc, loops.count);
    });
}

// Results of one kept index after the other are `yStep` apart.
void joinOuter(RowKernels const& k, Attrs const& a, Loops loops, TensorRef const& x, float* y, int64_t yStep,
               Workers& workers)
{
    constexpr int64_t kColumns = 512; // of accumulators and eight rows, 18 KiB, in L1
    constexpr int64_t kRun = 512;     // rows that are summed apart, which bounds the error
    Join const join = joinOf(a), results = joinOf(a.kind);
    float const first = results == Join::kMax   ? -std::numeric_limits<float>::infinity()
                        : results == Join::kMin ? std::numeric_limits<float>::infinity()
                                                : 0.f;
    // The last reduced axis makes the rows of a call.
    int64_t rows = 1, step = 0;
    if (loops.reduced.rank > 0) {
        rows = loops.reduced[--loops.reduced.rank];
        step = loops.reducedStrides[--loops.reducedStrides.rank];
    }
    int64_t const n = loops.inner, kept = loops.kept.volume();
    int64_t const wanted = workers.count() > kept ? (workers.count() + kept - 1) / kept : 1; // blocks of columns
    int64_t const even = roundUp(divideUp(n, wanted), 16), width = std::min(kColumns, even);
    int64_t const blocks = divideUp(n, width);
    inPieces(workers, kept * blocks, x.sizeBytes(), [&](int64_t begin, int64_t end) {
        float acc[kColumns], run[kColumns];
        for (int64_t i = begin; i < end; ++i) {
            int64_t const column = i % blocks * width, columns = std::min(width, n - column);
            float const* from = x.as<float>() + keptOffset(loops, i / blocks) + column;
            std::fill_n(acc, columns, first);
            Counter reduced(loops.reduced);
            do {
                float const* at = from + reduced.offset(loops.reducedStrides);
                if (results != Join::kSum || rows < 8) {
                    k.joinRows[int(join)](at, step, rows, columns, acc);
                    continue;
                }
                for (int64_t r = 0; r < rows; r += kRun) {
                    std::fill_n(run, columns, 0.f);
                    k.joinRows[int(join)](at + r * step, step, std::min(kRun, rows - r), columns, run);
                    k.joinRows[int(results)](run, 0, 1, columns, acc);
                }
            } while (reduced.next());
            float* to = y + i / blocks * yStep + column;
            float const count = float(loops.count);
            for (int64_t c = 0; c < columns; ++c)
                to[c] = a.kind == Kind::kAvg ? acc[c] / count : acc[c];
            if (a.after != After::kNothing)
                for (int64_t c = 0; c < columns; ++c)
                    to[c] = a.after == After::kSqrt ? std::sqrt(to[c]) : std::log(to[c]);
        }
    });
}

template <RowKernels const& k>
Result<void> runAxes(ir::Node const& node, kernels::ChannelsLastKernels const&, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    Loops const loops(a, x.dims);
    if (loops.count == 0 || (a.kind == Kind::kProd && !loops.innerReduced)) // this shape's axes of one element
        return runPlain(node, args);
    if (loops.innerReduced)
        joinInner(k, a, loops, x, y.as<float>(), *args.workers);
    else
        joinOuter(k, a, loops, x, y.as<float>(), loops.inner, *args.workers);
    return {};
}

// ---- The same of all pixels of channels-last tensors, channels being the columns.

Support supportsPixels(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    TW_SUPPORTS(supportsAxes(p));
    if (a.kind == Kind::kProd || a.axes != (int64_t(1) << p.inputs[0].dims.rank) - 4)
        return Support::no("takes all axes behind the channels only, and no products");
    return a.isBare() && isSum(a) ? Support::no("leaves sums of elements as they are to others") : Support::yes();
}

template <RowKernels const& k>
Result<void> runPixels(ir::Node const& node, kernels::ChannelsLastKernels const&, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int64_t const channels = x.dims[1], pixels = pixelsOf(x), step = x.pixelStride();
    Loops loops(node.attrsAs<Attrs>(), {x.dims[0], channels});
    loops.kept = Extents{x.dims[0]};
    loops.keptStrides = Extents{pixels * step};
    loops.reduced = Extents{pixels};
    loops.reducedStrides = Extents{step};
    loops.inner = channels;
    loops.count = pixels;
    int64_t const yStep = y.format == Format::kChannelsLast ? y.pixelStride() : channels;
    joinOuter(k, node.attrsAs<Attrs>(), loops, x, y.as<float>(), yStep, *args.workers);
    return {};
}

// ---- The logarithm of sums of exponentials, f32 over any axes: the largest element of each sum, then its sum.

Support supportsLogSumExp(Problem const& p)
{
    return p.node->attrsAs<Attrs>().isLogSumExp() ? Support::yes() : Support::no("takes sums of exponentials only");
}

using kernels::Join;
using kernels::RowKernels;

constexpr float kLowest = -std::numeric_limits<float>::infinity();

float finished(float most, double sum)
{
    return std::isfinite(most) ? float(double(most) + std::log(sum)) : most;
}

float largest(float a, float b)
{
    return b != b || b > a ? b : a;
}

double powersOf(RowKernels const& k, float const* x, int64_t n, float most)
{
    double sum = 0;
    for (int64_t at = 0; at < n; at += kPiece)
        sum += double(k.sumOfPowers(x + at, std::min(kPiece, n - at), most));
    return sum;
}

// Runs of reduced elements, of which there may be several for a result.
void ofRuns(RowKernels const& k, Loops const& loops, TensorRef const& x, float* y, Workers& workers)
{
    eachInPieces(workers, loops.kept.volume(), x.sizeBytes(), [&](int64_t i) {
        float const* from = x.as<float>() + keptOffset(loops, i);
        auto each = [&](auto const& with) {
            Counter reduced(loops.reduced);
            do
                with(from + reduced.offset(loops.reducedStrides));
            while (reduced.next());
        };
        float most = kLowest;
        each([&](float const* run) { most = largest(most, k.joinRow[int(Join::kMax)](run, loops.inner)); });
        double sum = 0;
        if (std::isfinite(most))
            each([&](float const* run) { sum += powersOf(k, run, loops.inner, most); });
        y[i] = finished(most, sum);
    });
}

// Columns: neighbours are kept, a block of them at a time.
void ofColumns(RowKernels const& k, Loops loops, TensorRef const& x, float* y, Workers& workers)
{
    constexpr int64_t kColumns = 256, kRun = 512; // rows that are summed apart, which bounds the error
    // The last reduced axis makes the rows of a call.
    int64_t rows = 1, step = 0;
    if (loops.reduced.rank > 0) {
        rows = loops.reduced[--loops.reduced.rank];
        step = loops.reducedStrides[--loops.reducedStrides.rank];
    }
    int64_t const n = loops.inner, blocks = divideUp(n, kColumns);
    inPieces(workers, loops.kept.volume() * blocks, x.sizeBytes(), [&](int64_t begin, int64_t end) {
        float most[kColumns], sum[kColumns], run[kColumns];
        for (int64_t i = begin; i < end; ++i) {
            int64_t const column = i % blocks * kColumns, columns = std::min(kColumns, n - column);
            float const* from = x.as<float>() + keptOffset(loops, i / blocks) + column;
            auto each = [&](auto const& with) {
                Counter reduced(loops.reduced);
                do
                    for (int64_t r = 0; r < rows; r += kRun)
                        with(from + reduced.offset(loops.reducedStrides) + r * step, std::min(kRun, rows - r));
                while (reduced.next());
            };
            std::fill_n(most, columns, kLowest);
            std::fill_n(sum, columns, 0.f);
            each([&](float const* at, int64_t count) { k.joinRows[int(Join::kMax)](at, step, count, columns, most); });
            each([&](float const* at, int64_t count) {
                std::fill_n(run, columns, 0.f);
                k.addPowers(at, step, count, columns, most, run);
                k.joinRows[int(Join::kSum)](run, 0, 1, columns, sum);
            });
            for (int64_t c = 0; c < columns; ++c)
                y[i / blocks * n + column + c] = finished(most[c], double(sum[c]));
        }
    });
}

// y = m + log(sum of exp(x - m)), m the largest element of each sum; there are elements.
void logSumExp(RowKernels const& k, Loops loops, TensorRef const& x, float* y, Workers& workers)
{
    if (loops.innerReduced)
        ofRuns(k, loops, x, y, workers);
    else
        ofColumns(k, loops, x, y, workers);
}

template <RowKernels const& k>
Result<void> runLogSumExp(ir::Node const& node, kernels::ChannelsLastKernels const&, RunArgs& args)
{
    Loops const loops(node.attrsAs<Attrs>(), args.inputs[0].dims);
    if (loops.count == 0)
        return runPlain(node, args);
    logSumExp(k, loops, args.inputs[0], args.outputs[0].as<float>(), *args.workers);
    return {};
}

using kernels::jit::Isa;
constexpr VectorTactic kLogSumExpAvx512{
    "reduce_f32_log_sum_exp_avx512", 1, Isa::kAvx512, runLogSumExp<avx512::kRows>, supportsLogSumExp, onlyLinear};
constexpr VectorTactic kLogSumExpAvx2{
    "reduce_f32_log_sum_exp_avx2", 1, Isa::kAvx2, runLogSumExp<avx2::kRows>, supportsLogSumExp, onlyLinear};
constexpr VectorTactic kAxesAvx512{
    "reduce_f32_axes_avx512", 1, Isa::kAvx512, runAxes<avx512::kRows>, supportsAxes, onlyLinear};
constexpr VectorTactic kAxesAvx2{"reduce_f32_axes_avx2", 1, Isa::kAvx2, runAxes<avx2::kRows>, supportsAxes, onlyLinear};
constexpr VectorTactic kPixelsAvx512{
    "reduce_f32_nhwc_axes_avx512", 1, Isa::kAvx512, runPixels<avx512::kRows>, supportsPixels, pixelFormats};
constexpr VectorTactic kPixelsAvx2{
    "reduce_f32_nhwc_axes_avx2", 1, Isa::kAvx2, runPixels<avx2::kRows>, supportsPixels, pixelFormats};
constexpr VectorTactic kRowsAvx512{"reduce_f32_rows_avx512", 1, Isa::kAvx512, runRows, supportsRows, onlyLinear};
constexpr VectorTactic kRowsAvx2{"reduce_f32_rows_avx2", 1, Isa::kAvx2, runRows, supportsRows, onlyLinear};
constexpr VectorTactic kAvx512{"reduce_f32_nhwc_avx512", 1, Isa::kAvx512, runNhwc, supportsNhwc, pixelFormats};
constexpr VectorTactic kAvx2{"reduce_f32_nhwc_avx2", 1, Isa::kAvx2, runNhwc, supportsNhwc, pixelFormats};

} // namespace

extern constinit TacticList const cpuTactics =
    kTactics<kAvx512, kAvx2, kPixelsAvx512, kPixelsAvx2, kRowsAvx512, kRowsAvx2, kAxesAvx512, kAxesAvx2,
             kLogSumExpAvx512, kLogSumExpAvx2, kPlain>;

} // namespace tw::ops::reduce
