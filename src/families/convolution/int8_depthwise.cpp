// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/int8_depthwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "device/large_pages.h"
#include "families/convolution/depthwise_bands.h"

namespace tw::ops {

namespace int8_depthwise {
namespace {

using convolution::Geometry;
using kernels::jit::Factors;
using kernels::jit::Int8DepthwiseArgs;
using kernels::jit::Int8DepthwiseKernel;
using kernels::jit::Int8DepthwiseSpec;
using kernels::jit::Isa;

Int8DepthwiseSpec specOf(DepthwiseShapes const& p, JitEnd const& end, bool prefetch, int64_t lanes, int64_t channels)
{
    return {rowOf(p, prefetch), int(p.g.window[1]), int(lanes), int(channels), end.ofIntegers()};
}

// Of all blocks, in the kernel's order of channels; zeros where there is no channel.
struct Packed
{
    device::PackedFloats filters; // [block][bytes of one]
    std::vector<int32_t> starts;  // [block][lanes]
};

struct Int8DepthwisePrepared final : DepthwiseShapes
{
    Int8DepthwiseKernel kernel, lastKernel; // last: of a block with fewer channels
    std::vector<int8_t> zeros;              // a row of x
};

// Kernels with signs take weights above -128.
Factors factorsOf(Problem const& p, Isa isa)
{
    Factors const factors = byteFactors(p, isa);
    Blob const& w = *p.inputs[1].constant;
    bool const hasLeast = std::memchr(w.data(), 0x80, w.sizeBytes()) != nullptr;
    return factors == Factors::kByteSigns && hasLeast ? Factors::kByteWords : factors;
}

class Int8DepthwiseConvolution final : public Kernel
{
public:
    Int8DepthwiseConvolution(Problem const& problem, Isa isa, bool prefetch)
        : node_(*problem.node), end_(jitEnd(problem, isa)), isa_(isa), factors_(factorsOf(problem, isa)),
          prefetch_(prefetch), threads_(std::max(problem.threads, 1)), channels_(problem.outputs[0].dims[1]),
          lanes_(kernels::jit::int8DepthwiseLanes(isa)), blocks_(divideUp(channels_, lanes_))
    {}

    Result<void> pack(Problem const& p, PackedConstants& packed)
    {
        Extents const& dims = p.inputs[1].dims;
        Blob const& w = *p.inputs[1].constant;
        int const rows = int(dims[2]), taps = int(dims[3]);
        filterBytes_ = kernels::jit::int8DepthwiseWeightBytes(int(lanes_), factors_, rows, taps);
        Recipe const recipe{"depthwise filters of i8", {int64_t(isa_), int64_t(factors_), dims[0], rows, taps}};
        TW_ASSIGN(packed_, packed.get<Packed>(w, recipe, [&]() -> Result<Packed> {
            Packed to{device::PackedFloats(blocks_ * filterBytes_ / 4), std::vector<int32_t>(size_t(blocks_ * lanes_))};
            if (!to.filters.data())
                return failedAllocation("no memory for {} bytes of packed weights", blocks_ * filterBytes_);
            for (int64_t c = 0; c < dims[0]; ++c)
                kernels::jit::int8DepthwisePack(
                    int(lanesOf(c / lanes_)), factors_, rows, taps, int(c % lanes_), w.as<int8_t>() + c * rows * taps,
                    to.filters.data() + c / lanes_ * filterBytes_ / 4, to.starts.data() + c / lanes_ * lanes_);
            return to;
        }));
        Blob const* const bias = p.inputs[Epilogue::kBias].present ? p.inputs[Epilogue::kBias].constant : nullptr;
        scale_ = inOrder(*p.inputs[Epilogue::kScale].constant, p.inputs[Epilogue::kScale].dims.volume() == 1);
        if (bias)
            bias_ = inOrder(*bias, false);
        return {};
    }

    // Filters, scale and bias are packed.
    bool readsConstant(size_t i) const override
    {
        return i != 1 && i != size_t(Epilogue::kBias) && i != size_t(Epilogue::kScale);
    }

    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const> out) const override
    {
        auto p = std::make_shared<Int8DepthwisePrepared>();
        TensorRef const &x = in[0], &y = out[0];
        p->g = convolutionGeometry(node_, x.dims, in[1].dims, y.dims);
        if (y.count() == 0)
            return std::shared_ptr<Prepared const>(std::move(p));
        p->xPixel = x.pixelStride();
        p->yPixel = y.pixelStride() * end_.yBytes();
        p->residualPixel = end_.hasResidual() ? in[Epilogue::kResidual].pixelStride() : 0;
        p->zeros.assign(size_t(p->g.in[2] * p->xPixel), 0);
        int64_t const last = channels_ - (blocks_ - 1) * lanes_;
        TW_ASSIGN(p->lastKernel, emit(*p, lanesOf(blocks_ - 1), last));
        if (last != lanes_ && blocks_ > 1) {
            TW_ASSIGN(p->kernel, emit(*p, lanes_, lanes_));
        } else {
            p->kernel = p->lastKernel;
        }
        p->bands = DepthwiseBands(p->g, blocks_, threads_);
        return std::shared_ptr<Prepared const>(std::move(p));
    }

    Result<void> run(RunArgs& args) const override
    {
        auto const& p = *static_cast<Int8DepthwisePrepared const*>(args.prepared);
        if (args.outputs[0].count() == 0)
            return {};
        p.bands.share(*args.workers, [&](int64_t n, int64_t row, int64_t end, int64_t first, int64_t endBlock) {
            for (; row < end; ++row) // all of a pixel while it is at hand
                for (int64_t block = first; block < endBlock; ++block)
                    runRow(p, args, n, row, block);
        });
        return {};
    }

private:
    std::vector<float> inOrder(Blob const& values, bool isOne) const
    {
        std::vector<float> to(size_t(blocks_ * lanes_));
        auto const* from = values.as<float>();
        for (int64_t block = 0; block < blocks_; ++block)
            for (int64_t i = 0, width = lanesOf(block) / 4; i < 4 * width; ++i) {
                int64_t const c = block * lanes_ + kernels::jit::int8DepthwiseChannel(int(i / width), int(i % width));
                to[size_t(block * lanes_ + i)] = c < channels_ ? from[isOne ? 0 : c] : 0;
            }
        return to;
    }
    // Few channels are a small block.
    int64_t lanesOf(int64_t block) const { return channels_ - block * lanes_ <= 32 ? 32 : lanes_; }
    Result<Int8DepthwiseKernel> emit(Int8DepthwisePrepared const& p, int64_t lanes, int64_t channels) const
    {
        return Int8DepthwiseKernel::emit(isa_, factors_, specOf(p, end_, prefetch_, lanes, channels));
    }

    void runRow(Int8DepthwisePrepared const& p, RunArgs& args, int64_t n, int64_t o, int64_t block) const
    {
        constexpr int64_t kMostRows = 64; // as int8DepthwiseMisfit() has it
        Geometry const& g = p.g;
        int64_t const channel = block * lanes_, xRow = g.in[2] * p.xPixel;
        kernels::jit::GemmArgs out;
        end_.set(out, args, channel);
        void const* rows[kMostRows];
        Int8DepthwiseArgs a;
        a.x = rows;
        a.w = packed_->filters.data() + block * filterBytes_ / 4;
        a.start = packed_->starts.data() + channel;
        a.scale = scale_.data() + channel;
        a.bias = bias_.empty() ? nullptr : bias_.data() + channel;
        a.numbers = out.numbers;
        int8_t const* const x = args.inputs[0].as<int8_t>() + n * g.in[1] * xRow + channel;
        for (int64_t r = 0; r < g.window[1]; ++r) {
            int64_t const h = o * g.stride[1] - g.before[1] + r * g.dilation[1];
            rows[r] = h >= 0 && h < g.in[1] ? x + h * xRow : p.zeros.data();
        }
        a.xRowBytes = xRow;
        a.next = static_cast<char const*>(rows[g.window[1] - 1]) + xRow;
        int64_t const pixel = (n * g.out[1] + o) * g.out[2];
        a.y = static_cast<char*>(out.c) + pixel * p.yPixel;
        if (out.residual)
            a.residual = static_cast<char const*>(out.residual) + pixel * p.residualPixel;
        (block == blocks_ - 1 ? p.lastKernel : p.kernel)(a);
    }

    ir::Node const& node_;
    JitEnd end_;
    Isa isa_;
    Factors factors_;
    bool prefetch_;
    int threads_;
    int64_t channels_, lanes_, blocks_, filterBytes_ = 0;
    std::shared_ptr<Packed const> packed_;
    std::vector<float> scale_, bias_; // in the kernel's order
};

Support supports(CpuTactic const& t, Problem const& p)
{
    TW_SUPPORTS(supportsInt8Convolution(p, 2, Weights::kConstant));
    if (isTransposed(*p.node))
        return Support::no("takes no transposed convolutions");
    for (int i : {Epilogue::kBias, Epilogue::kScale})
        if (p.inputs[size_t(i)].present && !p.inputs[size_t(i)].constant)
            return Support::no(i == Epilogue::kBias ? "the bias is not constant" : "the scale is not constant");
    Geometry const g = convolutionGeometry(*p.node, p.inputs[0].maxDims, p.inputs[1].dims, p.outputs[0].maxDims);
    if (g.groups != g.c || g.k != g.c)
        return Support::no("takes one filter for each channel only");
    DepthwiseShapes shapes;
    shapes.g = g;
    shapes.xPixel = pixelStrideOf(Format::kChannelsLast, DataType::kInt8, g.c);
    shapes.yPixel = pixelStrideOf(Format::kChannelsLast, p.outputs[0].type, g.c) * sizeOf(p.outputs[0].type);
    int64_t const lanes = kernels::jit::int8DepthwiseLanes(t.isa());
    if (char const* why =
            kernels::jit::int8DepthwiseMisfit(t.isa(), specOf(shapes, jitEnd(p, t.isa()), false, lanes, g.c)))
        return Support::no(why);
    return Support::yes();
}

std::vector<Config> configs(CpuTactic const&, Problem const& p)
{
    Extents const& x = p.inputs[0].dims;
    int64_t const bytes = x[2] * x[3] * pixelStrideOf(Format::kChannelsLast, DataType::kInt8, x[1]);
    return bytes > p.target.cpu->l2Bytes / 2 ? std::vector<Config>{{1}, {0}} : std::vector<Config>{{0}};
}

double estimate(CpuTactic const& t, Problem const& p, Config const&)
{
    TensorSpec const &y = p.outputs[0], &w = p.inputs[1];
    double const lanes = kernels::jit::int8DepthwiseLanes(t.isa());
    double const blocks = std::ceil(double(y.dims[1]) / lanes), pixels = double(y.dims[0] * y.dims[2] * y.dims[3]);
    double const quads = double(divideUp(w.dims[2], 4) * w.dims[3]);
    // Four dot products a quad and about as many cycles to interleave its bytes, 20 for the end, at 3 GHz.
    return pixels * blocks * (quads * 8 + 20) / 3000 / p.threads;
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& p, Config const& config, PackedConstants& packed)
{
    if (config.size() != 1)
        return t.wrongConfig("{0..1}");
    auto kernel = std::make_unique<Int8DepthwiseConvolution>(p, t.isa(), config[0] != 0);
    TW_TRY(kernel->pack(p, packed));
    return std::unique_ptr<Kernel>(std::move(kernel));
}

} // namespace
} // namespace int8_depthwise

constexpr CpuFunctions kInt8DepthwiseConvolution{int8_depthwise::supports, allChannelsLast, int8_depthwise::configs,
                                                 int8_depthwise::estimate, int8_depthwise::load};

} // namespace tw::ops
