// SPDX-License-Identifier: Apache-2.0
// x as matrices, each with columns side by side and the elements of a column one below the other: of [n, inner, k] a
// column is n elements, and k columns are a set; of a contiguous row each kLanes-th element is in the same column, and all
// columns are a set. Statistics of a few rows at a time, in float, are joined in double:
//   of a and b together  mean = mean_a + d n_b / n,  squares = squares_a + squares_b + d^2 n_a n_b / n,  d = mean_b - mean_a
#include <algorithm>
#include <cmath>

#include "base/round.h"
#include "families/elementwise/jit_end.h"
#include "kernels/cpu/jit/norm_columns_kernel.h"
#include "ops/layer_norm/layout.h"

namespace tw::ops::layer_norm {

namespace columns {
namespace {

using kernels::jit::ColumnApplyKernel;
using kernels::jit::ColumnMomentsKernel;

constexpr int64_t kLanes = 64;           // columns that a contiguous row is cut into
constexpr int64_t kRowsAtOnce = 128;     // sums in float are no longer
constexpr int64_t kTileFloats = 1 << 17; // of a matrix, which a worker reads three times: half of L2
constexpr int64_t kLeastColumns = 16, kMostColumns = 1024;

using Weights = Layout::Weights;

// Whether the kernel is emitted for numbers that lie along n.
bool isByRows(Layout const& layout)
{
    return !layout.isRows() && layout.weights() == Weights::kN;
}

// Statistics of columns, and then y = (x - partMean) * scale + shift, where partMean is the mean as a float and shift has
// what it lacks.
struct Scratch
{
    double *mean, *squares;
    float *partMean, *partSquares, *scale, *shift;

    static int64_t bytesFor(int64_t columns) { return columns * int64_t(2 * sizeof(double) + 4 * sizeof(float)); }
    Scratch(void* memory, int64_t columns)
    {
        mean = static_cast<double*>(memory);
        squares = mean + columns;
        partMean = reinterpret_cast<float*>(squares + columns);
        partSquares = partMean + columns;
        scale = partSquares + columns;
        shift = scale + columns;
    }
};

class ColumnsKernel final : public Kernel
{
public:
    ColumnsKernel(Attrs const& attrs, Layout const& layout, int threads, ColumnMomentsKernel moments,
                  ColumnApplyKernel apply)
        : a_(attrs), layout_(layout), threads_(threads), moments_(std::move(moments)), apply_(std::move(apply))
    {}
    int64_t workspaceBytes(std::span<TensorRef const> inputs, std::span<TensorRef const>) const override
    {
        Layout::Sizes const s = layout_.sizes(inputs[0].dims);
        return threads_ * scratchBytes(s);
    }
    Result<void> run(RunArgs& args) const override
    {
        TensorRef const& x = args.inputs[0];
        Layout::Sizes const s = layout_.sizes(x.dims);
        if (s.all() == 0)
            return {};
        if (layout_.isRows())
            runRows(args, s);
        else
            runMatrices(args, s);
        return {};
    }

private:
    // Columns of a tile: whole sets, as many as the cache has room for and workers are given.
    static int64_t tileOf(Layout::Sizes const& s, int64_t workers)
    {
        int64_t const columns = s.inner * s.k;
        int64_t wanted = std::clamp(kTileFloats / std::max<int64_t>(s.n, 1), int64_t(64), kMostColumns);
        if (s.outer * divideUp(columns, wanted) < 2 * workers)
            wanted = std::max(columns * s.outer / (2 * workers), kLeastColumns);
        return std::min(roundUp(wanted, s.k), columns);
    }
    void set(Scratch const& s, int64_t c, double mean, double factor, float const* gamma, float const* beta,
             int64_t weight) const
    {
        double const scale = factor * (gamma ? double(gamma[weight]) : 1);
        s.partMean[c] = float(mean);
        s.scale[c] = float(scale);
        s.shift[c] = float((beta ? double(beta[weight]) : 0) - (mean - double(s.partMean[c])) * scale);
    }
    int64_t scratchBytes(Layout::Sizes const& s) const
    {
        int64_t const columns = layout_.isRows() ? kLanes : std::max(kMostColumns, kLeastColumns) + s.k;
        return roundUp(Scratch::bytesFor(columns), 64);
    }
    Scratch scratchOf(RunArgs& args, Layout::Sizes const& s, int worker) const
    {
        int64_t const bytes = scratchBytes(s);
        return {static_cast<std::byte*>(args.workspace) + worker * bytes, bytes / Scratch::bytesFor(1)};
    }

    // Statistics of a matrix' columns.
    void measure(float const* x, int64_t rows, int64_t columns, int64_t stride, Scratch const& to) const
    {
        for (int64_t at = 0; at < rows; at += kRowsAtOnce) {
            int64_t const some = std::min(kRowsAtOnce, rows - at);
            moments_({x + at * stride, to.partMean, to.partSquares, some, columns, stride * int64_t(sizeof(float)),
                      float(1 / double(some))});
            if (at == 0) {
                for (int64_t c = 0; c < columns; ++c) {
                    to.mean[c] = a_.rms ? 0 : double(to.partMean[c]);
                    to.squares[c] = double(to.partSquares[c]);
                }
                continue;
            }
            double const share = double(some) / double(at + some), both = double(at) * share;
            for (int64_t c = 0; c < columns; ++c) {
                double const d = a_.rms ? 0 : double(to.partMean[c]) - to.mean[c];
                to.mean[c] += d * share;
                to.squares[c] += double(to.partSquares[c]) + d * d * both;
            }
        }
    }
    // `columns` of `rows` elements each, joined: their mean; their squares are returned.
    static double join(double const* mean, double const* squares, int64_t columns, int64_t rows, double& all)
    {
        double sum = 0, total = 0, away = 0;
        for (int64_t c = 0; c < columns; ++c)
            sum += mean[c];
        all = sum / double(columns);
        for (int64_t c = 0; c < columns; ++c) {
            total += squares[c];
            away += (mean[c] - all) * (mean[c] - all);
        }
        return total + away * double(rows);
    }
    // The last `count` elements of a row that was measured but for them.
    void add(float const* x, int64_t count, int64_t before, double& mean, double& squares) const
    {
        for (int64_t i = 0; i < count; ++i) {
            double const d = double(x[i]) - mean, share = 1 / double(before + i + 1);
            mean += a_.rms ? 0 : d * share;
            squares += a_.rms ? double(x[i]) * double(x[i]) : d * d * double(before + i) * share;
        }
    }
    double factorOf(double squares, int64_t n) const { return 1 / std::sqrt(squares / double(n) + a_.epsilon); }

    void runRows(RunArgs& args, Layout::Sizes const& s) const
    {
        float const* const gamma = a_.hasGamma ? args.inputs[size_t(a_.gammaInput())].as<float>() : nullptr;
        float const* const beta = a_.hasBeta ? args.inputs[size_t(a_.betaInput())].as<float>() : nullptr;
        int64_t const n = s.setSize(), part = layout_.weights() == Weights::kNone ? n : std::min(n, s.tail);
        args.workers->run(s.sets(), [&](int64_t row, int worker) {
            Scratch const scratch = scratchOf(args, s, worker);
            float const* const x = args.inputs[0].as<float>() + row * n;
            float* const y = args.outputs[0].as<float>() + row * n;
            int64_t const rows = n / kLanes, tail = n - rows * kLanes;
            double mean = 0, squares = 0;
            if (rows > 0) {
                measure(x, rows, kLanes, kLanes, scratch);
                squares = join(scratch.mean, scratch.squares, kLanes, rows, mean);
            }
            add(x + rows * kLanes, tail, rows * kLanes, mean, squares);
            double const factor = factorOf(squares, n);
            for (int64_t at = 0; at < n; at += part) {
                int64_t const weight = (row * n + at) / s.tail % s.count;
                set(scratch, 0, mean, factor, gamma, beta, weight);
                for (float* all : {scratch.partMean, scratch.scale, scratch.shift})
                    std::fill_n(all + 1, kLanes - 1, all[0]);
                applyRow(x + at, y + at, part, scratch);
            }
        });
    }
    void applyRow(float const* x, float* y, int64_t n, Scratch const& by) const
    {
        int64_t const rows = n / kLanes, tail = n - rows * kLanes, step = kLanes * int64_t(sizeof(float));
        if (rows > 0)
            apply_({x, y, by.partMean, by.scale, by.shift, nullptr, nullptr, rows, kLanes, step, step});
        if (tail > 0)
            apply_({x + rows * kLanes, y + rows * kLanes, by.partMean, by.scale, by.shift, nullptr, nullptr, 1, tail,
                    step, step});
    }

    void runMatrices(RunArgs& args, Layout::Sizes const& s) const
    {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        float const* const gamma = a_.hasGamma ? args.inputs[size_t(a_.gammaInput())].as<float>() : nullptr;
        float const* const beta = a_.hasBeta ? args.inputs[size_t(a_.betaInput())].as<float>() : nullptr;
        bool const byRows = isByRows(layout_), pixels = isByPixel(x.format);
        int64_t const columns = s.inner * s.k, tile = tileOf(s, std::min<int64_t>(args.workers->count(), threads_)),
                      tiles = divideUp(columns, tile);
        int64_t const xStride = pixels ? x.pixelStride() : columns, yStride = pixels ? y.pixelStride() : columns;
        args.workers->run(s.outer * tiles, [&](int64_t part, int worker) {
            int64_t const o = part / tiles, first = part % tiles * tile, some = std::min(tile, columns - first);
            Scratch const scratch = scratchOf(args, s, worker);
            float const* const from = x.as<float>() + o * s.n * xStride + first;
            measure(from, s.n, some, xStride, scratch);
            for (int64_t group = 0; group < some; group += s.k) {
                double mean = 0;
                double const squares = join(scratch.mean + group, scratch.squares + group, s.k, s.n, mean);
                double const factor = factorOf(squares, s.setSize());
                for (int64_t c = group; c < group + s.k; ++c) {
                    int64_t const weight = (o * s.n * columns + first + c) / s.tail % s.count;
                    set(scratch, c, mean, factor, byRows ? nullptr : gamma, byRows ? nullptr : beta, weight);
                }
            }
            apply_({from, y.as<float>() + o * s.n * yStride + first, scratch.partMean, scratch.scale, scratch.shift,
                    byRows ? gamma : nullptr, byRows ? beta : nullptr, s.n, some, xStride * int64_t(sizeof(float)),
                    yStride * int64_t(sizeof(float))});
        });
    }

    Attrs a_;
    Layout layout_;
    int threads_;
    ColumnMomentsKernel moments_;
    ColumnApplyKernel apply_;
};

Support supports(CpuTactic const&, Problem const& p)
{
    TW_SUPPORTS(takesOnly(DataType::kFloat, p));
    if (p.node->attrsAs<Attrs>().integers)
        return Support::no("makes no integers");
    Layout const layout = layoutOf(p).byChannels();
    if (!layout.exists())
        return Support::no("takes normalized dimensions in at most two runs, others between them");
    Layout::Sizes const s = layout.sizes(p.inputs[0].maxDims);
    bool const isOwn = layout.isRows()    ? layout.weights() == Weights::kNone || s.tail > 1
                       : isByRows(layout) ? s.count == s.n
                                          : layout.weights() != Weights::kOther;
    return isOwn ? Support::yes() : Support::no("takes gamma and beta with a number for each set or channel");
}

std::vector<Formats> formats(CpuTactic const&, Problem const& p)
{
    std::vector<Formats> list{linearFormats(p)};
    auto const& a = p.node->attrsAs<Attrs>();
    // Channels one beside the other are columns.
    int const rank = p.inputs[0].dims.rank;
    bool const isBare = a.channel < 0 && !a.hasGamma && !a.hasBeta && a.isNormalized(rank - 1);
    if (rank >= 3 && (a.channel == 1 || isBare) && a.axis > 0)
        list.push_back(channelsLastFormats(p));
    return list;
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& p, Config const&, PackedConstants&)
{
    auto const& a = p.node->attrsAs<Attrs>();
    Layout const layout = layoutOf(p).byChannels();
    bool const byRows = isByRows(layout);
    TW_ASSIGN(auto moments, ColumnMomentsKernel::emit(t.isa(), a.rms));
    TW_ASSIGN(auto apply, ColumnApplyKernel::emit(
                              t.isa(), {byRows && a.hasGamma, byRows && a.hasBeta, jitActivation(a.activation)}));
    return makeKernel<ColumnsKernel>(a, layout, p.threads, std::move(moments), std::move(apply));
}

} // namespace
} // namespace columns

constexpr CpuFunctions kColumnsCpu{.supports = columns::supports, .formats = columns::formats, .load = columns::load};

} // namespace tw::ops::layer_norm
