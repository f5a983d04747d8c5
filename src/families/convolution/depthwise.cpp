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

struct DepthwisePrepared final : DepthwiseShapes
{
    DepthwiseKernel kernel, lastKernel; // last: of a block with fewer vectors
    int64_t fullBlocks = 0;
    std::vector<TapRange> planes, rows; // of each output plane and row
};

class DepthwiseConvolution final : public Kernel
{
public:
    DepthwiseConvolution(ir::Node const& node, Isa isa, Config const& config, int threads, kernels::jit::SumEnd end)
        : node_(node), isa_(isa), vectors_(int(config[0])), prefetch_(config[1] != 0), threads_(std::max(threads, 1)),
          end_(std::move(end))
    {}

    // w [channels, group, t, r, s] to [block][t][r][s][group][lanes of the block], zero after the last channel.
    Result<void> pack(Extents const& dims, Blob const& w, float const* bias, PackedConstants& packed)
    {
        int64_t const width = kernels::jit::vectorWidth(isa_), group = dims[1],
                      window = dims.volume() / std::max<int64_t>(dims[0], 1);
        int64_t const block = vectors_ * width, channels = roundUp(dims[0], width);
        Error const noMemory{ErrorCode::kFailedAllocation,
                             fmt::format("no memory for {} bytes of packed weights", channels * window * 4)};
        Recipe const recipe{"depthwise filters", {block, width, dims[0], group, window}};
        TW_ASSIGN(weights_, packed.get<device::PackedFloats>(w, recipe, [&]() -> Result<device::PackedFloats> {
            device::PackedFloats weights(channels * window);
            float* const to = weights.data();
            if (!to)
                return noMemory;
            for (int64_t c = 0; c < dims[0]; ++c) {
                int64_t const first = c / block * block, lanes = std::min(block, channels - first);
                for (int64_t i = 0; i < window; ++i) { // in the packed order
                    int64_t const from = i % group * (window / group) + i / group;
                    to[first * window + i * lanes + c % block] = w.as<float>()[c * window + from];
                }
            }
            return weights;
        }));
        bias_ = device::PackedFloats(channels);
        if (!bias_.data())
            return noMemory;
        if (bias)
            std::copy_n(bias, dims[0], bias_.data());
        return {};
    }

    bool readsConstant(size_t i) const override { return i > 2; } // filters and bias are packed

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
        DepthwiseSpec spec{rowOf(*p, prefetch_), end_, vectors_, int(in[1].dims[1]), residual, p->g.window[0] > 1};
        if (p->fullBlocks > 0) {
            TW_ASSIGN(p->kernel, DepthwiseKernel::emit(isa_, spec));
        }
        if (p->fullBlocks < p->bands.blocks) {
            spec.vectors = int(vectors % vectors_);
            TW_ASSIGN(p->lastKernel, DepthwiseKernel::emit(isa_, spec));
        }
        p->planes = tapsOf(p->g, 0);
        p->rows = tapsOf(p->g, 1);
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
        p.bands.share(*args.workers, [&](int64_t n, int64_t row, int64_t end, int64_t block, int64_t endBlock) {
            for (; block < endBlock; ++block)
                runBlock(p, n, row, end, block, x, residual, y);
        });
        return {};
    }

private:
    static std::vector<TapRange> tapsOf(Geometry const& g, int axis)
    {
        Phase const outputs = phasesOf(g, axis, false, classesOf(false, g.window[axis], 1, 1))[0];
        std::vector<TapRange> taps;
        for (int64_t o = 0; o < outputs.count; ++o)
            taps.push_back(tapsInside(outputs, o));
        return taps;
    }
    // Rows `row` to `end` of all planes of image n.
    void runBlock(DepthwisePrepared const& p, int64_t n, int64_t row, int64_t end, int64_t block, float const* x,
                  float const* residual, float* y) const
    {
        Geometry const& g = p.g;
        int64_t const width = kernels::jit::vectorWidth(isa_), lanes = vectors_ * width, channel = block * lanes;
        int64_t const xRow = g.in[2] * p.xPixel / 4, xPlane = g.in[1] * xRow, yPixel = p.yPixel / 4,
                      residualPixel = p.residualPixel / 4; // floats
        bool const last = block >= p.fullBlocks;
        DepthwiseKernel const& kernel = last ? p.lastKernel : p.kernel;
        int64_t const kernelLanes = last ? roundUp(g.k - channel, width) : lanes;
        int64_t const filterRow = g.window[2] * (g.c / g.groups); // of one channel
        float const* w = weights_->data() + block * lanes * g.window[0] * g.window[1] * filterRow;
        DepthwiseArgs a;
        a.xRowBytes = g.dilation[1] * xRow * 4;
        a.xPlaneBytes = g.dilation[0] * xPlane * 4;
        a.bias = bias_.data() + channel;
        for (int64_t o = row; o < end; ++o) {
            TapRange const &t = p.planes[size_t(o / g.out[1])], &r = p.rows[size_t(o % g.out[1])];
            a.planes = t.count;
            a.rows = t.count > 0 ? r.count : 0;
            a.x = x + n * g.in[0] * xPlane + firstOf(g, 0, o / g.out[1], t) * xPlane +
                  firstOf(g, 1, o % g.out[1], r) * xRow + channel;
            a.w = w + (t.first * g.window[1] + r.first) * filterRow * kernelLanes;
            a.wPlaneSkip = (g.window[1] - r.count) * filterRow * kernelLanes * 4;
            a.y = y + (n * g.out[0] * g.out[1] + o) * g.out[2] * yPixel + channel;
            if (residual)
                a.residual = residual + (n * g.out[0] * g.out[1] + o) * g.out[2] * residualPixel + channel;
            kernel(a);
        }
    }
    // The input that the first tap of output o reads along an axis; 0: all its taps lie outside.
    static int64_t firstOf(Geometry const& g, int axis, int64_t o, TapRange const& taps)
    {
        return taps.count > 0 ? o * g.stride[axis] - g.before[axis] + taps.first * g.dilation[axis] : 0;
    }

    ir::Node const& node_;
    Isa isa_;
    int vectors_;
    bool prefetch_;
    int threads_;
    kernels::jit::SumEnd end_;
    std::shared_ptr<device::PackedFloats const> weights_;
    device::PackedFloats bias_;
};

Support supports(CpuTactic const& t, Problem const& p)
{
    if (isTransposed(*p.node))
        return Support::no("takes no transposed convolutions");
    TW_SUPPORTS(supportsConvolution(p, 3));
    Geometry const g = convolutionGeometry(*p.node, p.inputs[0].maxDims, p.inputs[1].dims, p.outputs[0].maxDims);
    int64_t const group = p.inputs[1].dims[1];
    if (g.k != g.c || g.c == 0 || (group != 1 && group != 2 && group != 4))
        return Support::no("takes one filter for each channel, in groups of 1, 2 or 4 channels");
    DepthwiseShapes shapes;
    shapes.g = g;
    shapes.xPixel = shapes.yPixel = pixelStrideOf(Format::kChannelsLast, DataType::kFloat, g.c) * 4;
    DepthwiseSpec const spec{rowOf(shapes, false), {}, 2, int(group), false, g.window[0] > 1};
    if (char const* why = kernels::jit::depthwiseMisfit(t.isa(), spec))
        return Support::no(why);
    return Support::yes();
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
    double const pixels = double(y.dims.volume()) / double(std::max<int64_t>(y.dims[1], 1)),
                 taps = double(w.dims.volume()) / double(std::max<int64_t>(w.dims[0], 1));
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
    auto kernel = std::make_unique<DepthwiseConvolution>(*p.node, t.isa(), config, p.threads, jitEnd(*p.node));
    Blob const* bias = p.inputs.size() > 2 && p.inputs[2].present ? p.inputs[2].constant : nullptr;
    TW_TRY(kernel->pack(p.inputs[1].dims, *p.inputs[1].constant, bias ? bias->as<float>() : nullptr, packed));
    return std::unique_ptr<Kernel>(std::move(kernel));
}

} // namespace
} // namespace depthwise

constexpr CpuFunctions kDepthwiseConvolution{depthwise::supports, allChannelsLast, depthwise::configs,
                                             depthwise::estimate, depthwise::load};

} // namespace tw::ops
