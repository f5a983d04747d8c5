// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/depthwise.h"

#include <algorithm>

#include "device/large_pages.h"
#include "families/convolution/depthwise_bands.h"
#include "families/convolution/window_phases.h"
#include "families/elementwise/jit_end.h"

namespace tw::ops {

namespace depthwise {
namespace {

using convolution::Geometry;
using kernels::jit::DepthwiseArgs;
using kernels::jit::DepthwiseKernel;
using kernels::jit::DepthwiseSpec;
using kernels::jit::Isa;

// A transposed convolution with stride S is S along an axis, one for each phase of its outputs, with every S-th tap.
struct RowPhase : Phase
{
    std::vector<TapRange> inside; // of each output
    // Of output q the input that its first tap in the image reads; 0: there is none.
    int64_t firstOf(int64_t q) const
    {
        TapRange const& r = inside[size_t(q)];
        return r.count > 0 ? q * stride + offsets[size_t(r.first)] : 0;
    }
};
struct ColumnPhase : Phase
{
    DepthwiseKernel kernel, lastKernel; // last: of a block with fewer vectors
};
struct DepthwisePrepared final : DepthwiseShapes
{
    std::vector<RowPhase> planes, rows;
    std::vector<ColumnPhase> columns;
    int64_t fullBlocks = 0;
};

// From tap to tap, in inputs.
int64_t distanceOf(Phase const& p)
{
    return p.offsets.size() > 1 ? p.offsets[1] - p.offsets[0] : 1;
}

// A row of the outputs of one phase. Without taps the kernel is one for rows of which none is read.
kernels::jit::DepthwiseRow rowOf(DepthwiseShapes const& p, Phase const& phase, bool prefetch)
{
    return {int(std::max<size_t>(phase.offsets.size(), 1)),
            p.g.in[2],
            phase.count,
            phase.stride,
            distanceOf(phase),
            phase.offsets.empty() ? 0 : -phase.offsets[0],
            p.xPixel,
            phase.step * p.yPixel,
            phase.step * p.residualPixel,
            prefetch};
}

// The filter's elements by their classes of planes, rows and columns.
class TapOrder
{
public:
    TapOrder(bool transposed, Geometry const& g)
    {
        for (int axis = 0; axis < 3; ++axis)
            classes_[axis] = classesOf(transposed, g.window[axis], g.stride[axis], g.dilation[axis]);
        for (auto const& planes : classes_[0])
            for (auto const& rows : classes_[1])
                for (auto const& columns : classes_[2]) {
                    first_.push_back(int64_t(order_.size()));
                    for (int64_t t : planes)
                        for (int64_t r : rows)
                            for (int64_t s : columns)
                                order_.push_back((t * g.window[1] + r) * g.window[2] + s);
                }
    }
    Classes const& classes(int axis) const { return classes_[axis]; }
    int64_t at(int64_t i) const { return order_[size_t(i)]; } // in the filter
    int64_t firstOf(Phase const& plane, Phase const& row, Phase const& column) const
    {
        return first_[(plane.tapClass * classes_[1].size() + row.tapClass) * classes_[2].size() + column.tapClass];
    }

private:
    Classes classes_[3];
    std::vector<int64_t> order_, first_; // first_: of each combination of classes
};

class DepthwiseConvolution final : public Kernel
{
public:
    DepthwiseConvolution(ir::Node const& node, TapOrder order, Isa isa, Config const& config, int threads,
                         kernels::jit::SumEnd end)
        : node_(node), order_(std::move(order)), isa_(isa), vectors_(int(config[0])), prefetch_(config[1] != 0),
          threads_(std::max(threads, 1)), end_(std::move(end))
    {}

    // w [channels, group, t, r, s] to [block][t, r, s in the order of phases][group][lanes of the block], zero after the
    // last channel.
    Result<void> pack(Extents const& dims, Blob const& w, float const* bias, PackedConstants& packed)
    {
        int64_t const width = kernels::jit::vectorWidth(isa_), group = dims[1], window = windowOf(dims);
        int64_t const block = vectors_ * width, channels = roundUp(dims[0], width);
        Error const noMemory{ErrorCode::kFailedAllocation,
                             fmt::format("no memory for {} bytes of packed weights", channels * window * 4)};
        Recipe recipe{"depthwise filters", {block, width, dims[0], group, window}};
        for (int64_t i = 0; i < window / std::max<int64_t>(group, 1) && isTransposed(node_); ++i)
            recipe.numbers.push_back(order_.at(i));
        TW_ASSIGN(weights_, packed.get<device::PackedFloats>(w, recipe, [&]() -> Result<device::PackedFloats> {
            device::PackedFloats weights(channels * window);
            float* const to = weights.data();
            if (!to)
                return noMemory;
            packInto(to, w.as<float>(), dims);
            return weights;
        }));
        bias_ = device::PackedFloats(channels);
        if (!bias_.data())
            return noMemory;
        if (bias)
            std::copy_n(bias, dims[0], bias_.data());
        return {};
    }

    // Filters and bias are packed, or read in each run.
    bool readsConstant(size_t i) const override { return !weights_ || i > 2; }
    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const>) const override
    {
        return weights_ ? 0 : channelsOf(in[1].dims) * (windowOf(in[1].dims) + 1) * int64_t(sizeof(float));
    }

    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const> out) const override
    {
        auto p = std::make_shared<DepthwisePrepared>();
        TensorRef const &x = in[0], &y = out[0];
        p->g = convolutionGeometry(node_, x.dims, in[1].dims, y.dims);
        if (y.count() == 0)
            return std::shared_ptr<Prepared const>(std::move(p));
        bool const residual = in.size() > 3 && in[3].dims.rank == y.dims.rank;
        p->xPixel = x.pixelStride() * 4;
        p->yPixel = y.pixelStride() * 4;
        p->residualPixel = residual ? in[3].pixelStride() * 4 : 0;
        int64_t const width = kernels::jit::vectorWidth(isa_), vectors = divideUp(p->g.k, width);
        p->bands = DepthwiseBands(p->g, divideUp(vectors, vectors_), threads_);
        p->fullBlocks = vectors / vectors_;
        p->planes = rowPhases(p->g, 0);
        p->rows = rowPhases(p->g, 1);
        for (Phase& phase : phasesOf(p->g, 2, isTransposed(node_), order_.classes(2))) {
            ColumnPhase c{std::move(phase), {}, {}};
            DepthwiseSpec spec{rowOf(*p, c, prefetch_), end_,     vectors_,
                               int(in[1].dims[1]),      residual, p->g.window[0] > 1};
            if (p->fullBlocks > 0) {
                TW_ASSIGN(c.kernel, DepthwiseKernel::emit(isa_, spec));
            }
            if (p->fullBlocks < p->bands.blocks) {
                spec.vectors = int(vectors % vectors_);
                TW_ASSIGN(c.lastKernel, DepthwiseKernel::emit(isa_, spec));
            }
            p->columns.push_back(std::move(c));
        }
        return std::shared_ptr<Prepared const>(std::move(p));
    }

    Result<void> run(RunArgs& args) const override
    {
        auto const& p = *static_cast<DepthwisePrepared const*>(args.prepared);
        if (p.bands.blocks == 0)
            return {};
        float const *x = args.inputs[0].as<float>(),
                    *residual = p.residualPixel > 0 ? args.inputs[3].as<float>() : nullptr;
        float* y = args.outputs[0].as<float>();
        Filters const f = weights_ ? Filters{weights_->data(), bias_.data()} : packAtRun(args);
        p.bands.share(*args.workers, [&](int64_t n, int64_t row, int64_t end, int64_t block, int64_t endBlock) {
            for (; block < endBlock; ++block)
                runBlock(p, f, n, row, end, block, x, residual, y);
        });
        return {};
    }

private:
    struct Filters
    {
        float const *weights, *bias;
    };
    static int64_t windowOf(Extents const& w) { return w.volume() / std::max<int64_t>(w[0], 1); }
    int64_t channelsOf(Extents const& w) const { return roundUp(w[0], kernels::jit::vectorWidth(isa_)); }
    // What lies behind the last channel stays as it is.
    void packInto(float* to, float const* w, Extents const& dims) const
    {
        int64_t const group = dims[1], window = windowOf(dims);
        int64_t const block = vectors_ * kernels::jit::vectorWidth(isa_), channels = channelsOf(dims);
        for (int64_t c = 0; c < dims[0]; ++c) {
            int64_t const first = c / block * block, lanes = std::min(block, channels - first);
            for (int64_t i = 0; i < window; ++i) { // in the packed order
                int64_t const from = i % group * (window / group) + order_.at(i / group);
                to[first * window + i * lanes + c % block] = w[c * window + from];
            }
        }
    }
    // Filters that are no constants, into the workspace.
    Filters packAtRun(RunArgs& args) const
    {
        TensorRef const& w = args.inputs[1];
        int64_t const count = channelsOf(w.dims) * windowOf(w.dims);
        auto* const weights = static_cast<float*>(args.workspace);
        std::fill_n(weights, count + channelsOf(w.dims), 0.0F);
        packInto(weights, w.as<float>(), w.dims);
        if (args.inputs.size() > 2 && args.inputs[2].data)
            std::copy_n(args.inputs[2].as<float>(), w.dims[0], weights + count);
        return {weights, weights + count};
    }
    std::vector<RowPhase> rowPhases(Geometry const& g, int axis) const
    {
        std::vector<RowPhase> phases;
        for (Phase& p : phasesOf(g, axis, isTransposed(node_), order_.classes(axis))) {
            RowPhase& r = phases.emplace_back(RowPhase{std::move(p), {}});
            for (int64_t q = 0; q < r.count; ++q)
                r.inside.push_back(tapsInside(r, q));
        }
        return phases;
    }
    // Rows `row` to `end` of all planes of image n.
    void runBlock(DepthwisePrepared const& p, Filters const& filters, int64_t n, int64_t row, int64_t end,
                  int64_t block, float const* x, float const* residual, float* y) const
    {
        Geometry const& g = p.g;
        int64_t const width = kernels::jit::vectorWidth(isa_), lanes = vectors_ * width, channel = block * lanes;
        int64_t const xRow = g.in[2] * p.xPixel / 4, xPlane = g.in[1] * xRow; // floats
        bool const last = block >= p.fullBlocks;
        int64_t const kernelLanes = last ? roundUp(g.k - channel, width) : lanes;
        int64_t const tap = (isTransposed(node_) ? 1 : g.c / g.groups) * kernelLanes;
        float const* const w = filters.weights + block * lanes * g.window[0] * g.window[1] * g.window[2] *
                                                     (isTransposed(node_) ? 1 : g.c / g.groups);
        DepthwiseArgs a;
        a.bias = filters.bias + channel;
        for (int64_t o = row; o < end; ++o) {
            int64_t const plane = o / g.out[1], line = o % g.out[1];
            RowPhase const &planes = p.planes[size_t(plane % p.planes[0].step)],
                           &rows = p.rows[size_t(line % p.rows[0].step)];
            int64_t const qPlane = plane / planes.step, qRow = line / rows.step;
            TapRange const &t = planes.inside[size_t(qPlane)], &r = rows.inside[size_t(qRow)];
            a.x = x + (n * g.in[0] + planes.firstOf(qPlane)) * xPlane + rows.firstOf(qRow) * xRow + channel;
            a.xRowBytes = distanceOf(rows) * xRow * 4;
            a.xPlaneBytes = distanceOf(planes) * xPlane * 4;
            a.planes = t.count;
            int64_t const outRow = (n * g.out[0] * g.out[1] + o) * g.out[2];
            for (ColumnPhase const& c : p.columns) {
                int64_t const filterRow = int64_t(c.offsets.size()) * tap;
                a.rows = t.count > 0 && filterRow > 0 ? r.count : 0;
                a.w = w + order_.firstOf(planes, rows, c) * tap +
                      (t.first * int64_t(rows.offsets.size()) + r.first) * filterRow;
                a.wPlaneSkip = (int64_t(rows.offsets.size()) - r.count) * filterRow * 4;
                a.y = y + (outRow + c.first) * p.yPixel / 4 + channel;
                if (residual)
                    a.residual = residual + (outRow + c.first) * p.residualPixel / 4 + channel;
                (last ? c.lastKernel : c.kernel)(a);
            }
        }
    }

    ir::Node const& node_;
    TapOrder order_;
    Isa isa_;
    int vectors_;
    bool prefetch_;
    int threads_;
    kernels::jit::SumEnd end_;
    std::shared_ptr<device::PackedFloats const> weights_;
    device::PackedFloats bias_;
};

constexpr int64_t kMostPhases = 16; // of a transposed convolution along an axis, each with code of its own

Support supports(CpuTactic const& t, Problem const& p)
{
    TW_SUPPORTS(supportsConvolution(p, 3, Weights::kAny));
    Geometry const g = convolutionGeometry(*p.node, p.inputs[0].maxDims, p.inputs[1].dims, p.outputs[0].maxDims);
    int64_t const group = p.inputs[1].dims[1];
    bool const transposed = isTransposed(*p.node);
    if (transposed && std::max({g.stride[0], g.stride[1], g.stride[2]}) > kMostPhases)
        return Support::no("takes transposed convolutions with strides up to 16");
    if (g.k != g.c || g.c == 0 || (group != 1 && (transposed || (group != 2 && group != 4))))
        return Support::no("takes one filter for each channel, in groups of 1, 2 or 4 channels, transposed of 1");
    DepthwiseShapes shapes;
    shapes.g = g;
    shapes.xPixel = shapes.yPixel = pixelStrideOf(Format::kChannelsLast, DataType::kFloat, g.c) * 4;
    for (Phase const& c : phasesOf(g, 2, transposed, TapOrder(transposed, g).classes(2)))
        if (char const* why = kernels::jit::depthwiseMisfit(
                t.isa(), {rowOf(shapes, c, false), {}, 2, int(group), false, g.window[0] > 1}))
            return Support::no(why);
    return Support::yes();
}

std::vector<Formats> formats(CpuTactic const&, Problem const& p)
{
    Formats f = channelsLastFormats(p);
    f.inputs[1] = Format::kLinear; // filters, where they are computed
    return {f};
}

std::vector<Config> configs(CpuTactic const& t, Problem const& p)
{
    Extents const& x = p.inputs[0].dims;
    bool const manyVectors = x[1] > kernels::jit::vectorWidth(t.isa());
    int64_t const pixels = x.volume() / std::max<int64_t>(x[0] * x[1], 1);
    bool const large =
        pixels * pixelStrideOf(Format::kChannelsLast, DataType::kFloat, x[1]) * 4 > p.target.cpu->l2Bytes / 2;
    std::vector<Config> list;
    for (int64_t prefetch : {1, 0})
        for (int64_t vectors : {2, 1})
            if ((vectors == 1 ||
                 (manyVectors && (t.isa() == Isa::kAvx512 || p.inputs[1].dims[p.inputs[1].dims.rank - 1] <= 3))) &&
                (prefetch == 0 || large))
                list.push_back({vectors, prefetch});
    return list;
}

double estimate(CpuTactic const& t, Problem const& p, Config const&)
{
    TensorSpec const &x = p.inputs[0], &w = p.inputs[1], &y = p.outputs[0];
    double const vectors = double(divideUp(y.dims[1], kernels::jit::vectorWidth(t.isa())));
    double const pixels = double(y.dims.volume()) / double(std::max<int64_t>(y.dims[1], 1));
    double taps = double(w.dims.volume()) / double(std::max<int64_t>(w.dims[0], 1));
    if (isTransposed(*p.node)) // each output takes those of one phase
        for (int64_t stride : p.node->attrsAs<KernelWindowAttrs>().strides)
            taps /= double(std::max<int64_t>(stride, 1));
    // Two 32-byte products a cycle at 3 GHz, or twice that; what is written costs about as much as three products; 40
    // GB/s from memory behind L2.
    double const products = pixels * vectors * (taps + 3) / (t.isa() == Isa::kAvx512 ? 1.4 : 1.9) / 3000;
    double const bytes = 4 * double(x.dims.volume() + y.dims.volume());
    return std::max(products, bytes > double(p.target.cpu->l2Bytes) ? bytes / 40000 : 0) / p.threads;
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& p, Config const& config, PackedConstants& packed)
{
    if (config.size() != 2 || config[0] < 1 || config[0] > 2)
        return t.wrongConfig("{1..2, 0..1}");
    Geometry const g = convolutionGeometry(*p.node, p.inputs[0].maxDims, p.inputs[1].dims, p.outputs[0].maxDims);
    auto kernel = std::make_unique<DepthwiseConvolution>(*p.node, TapOrder(isTransposed(*p.node), g), t.isa(), config,
                                                         p.threads, jitEnd(*p.node));
    Blob const* bias = p.inputs.size() > 2 && p.inputs[2].present ? p.inputs[2].constant : nullptr;
    if (p.inputs[1].constant && (!bias == !(p.inputs.size() > 2 && p.inputs[2].present)))
        TW_TRY(kernel->pack(p.inputs[1].dims, *p.inputs[1].constant, bias ? bias->as<float>() : nullptr, packed));
    return std::unique_ptr<Kernel>(std::move(kernel));
}

} // namespace
} // namespace depthwise

constexpr CpuFunctions kDepthwiseConvolution{depthwise::supports, depthwise::formats, depthwise::configs,
                                             depthwise::estimate, depthwise::load};

} // namespace tw::ops
