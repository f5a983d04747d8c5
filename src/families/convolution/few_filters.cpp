// SPDX-License-Identifier: Apache-2.0
// Convolutions to up to four channels from many, as decoders and networks that draw pictures end with: a product of matrices
// would leave most lanes of its columns empty. Here lanes are input channels (kernels/cpu/few_filters.h). Columns whose
// window reaches beyond the image are summed one by one, over the taps inside.
#include "kernels/cpu/few_filters.h"

#include <algorithm>

#include "device/large_pages.h"
#include "families/convolution/tactics.h"

namespace tw::ops {

namespace few_filters {
namespace {

using convolution::Geometry;
using kernels::FewFilters;
using kernels::FewFiltersTile;
using kernels::jit::GemmArgs;
using kernels::jit::GemmKernel;
using kernels::jit::GemmKernelSpec;
using kernels::jit::Isa;

FewFilters const& filtersOf(Isa isa, int64_t filters)
{
    return (isa == Isa::kAvx512 ? avx512::kFewFilters : avx2::kFewFilters)[filters - 1];
}

struct FewFiltersPrepared final : Prepared
{
    Geometry g;
    int64_t xPixel = 0, yPixel = 0, residualPixel = 0; // floats
    GemmKernel ends[FewFilters::kSizes];
};

class FewFiltersConvolution final : public Kernel
{
public:
    FewFiltersConvolution(Problem const& p, Isa isa)
        : node_(*p.node), isa_(isa), threads_(std::max(p.threads, 1)), end_(jitEnd(p, isa))
    {}

    // w [k, c, r, s] to [r][s][k][c].
    Result<void> pack(Problem const& p, PackedConstants& packed)
    {
        Extents const& d = p.inputs[1].dims;
        int64_t const filters = d[0], channels = d[1], window = d[2] * d[3];
        Blob const& blob = *p.inputs[1].constant;
        Recipe const recipe{"few filters", {filters, channels, window}};
        TW_ASSIGN(packed_, packed.get<device::PackedFloats>(blob, recipe, [&]() -> Result<device::PackedFloats> {
            device::PackedFloats weights(d.volume());
            if (!weights.data())
                return failedAllocation("no memory for {} bytes of packed weights", d.volume() * 4);
            auto const* from = blob.as<float>();
            for (int64_t k = 0; k < filters; ++k)
                for (int64_t c = 0; c < channels; ++c)
                    for (int64_t i = 0; i < window; ++i)
                        weights.data()[(i * filters + k) * channels + c] = *from++;
            return weights;
        }));
        return {};
    }

    bool readsConstant(size_t i) const override { return i != 1; }

    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const> out) const override
    {
        auto p = std::make_shared<FewFiltersPrepared>();
        p->g = convolutionGeometry(node_, in[0].dims, in[1].dims, out[0].dims);
        p->xPixel = in[0].pixelStride();
        p->yPixel = out[0].pixelStride();
        p->residualPixel = end_.hasResidual() ? in[Epilogue::kResidual].pixelStride() : 0;
        for (int size = 0; size < FewFilters::kSizes; ++size) {
            GemmKernelSpec s;
            s.rows = filtersOf(isa_, p->g.k).outputs[size];
            s.fromSums = s.masked = true;
            end_.add(s);
            TW_ASSIGN(p->ends[size], GemmKernel::emit(isa_, s));
        }
        return std::shared_ptr<Prepared const>(std::move(p));
    }

    Result<void> run(RunArgs& args) const override
    {
        auto const& p = *static_cast<FewFiltersPrepared const*>(args.prepared);
        int64_t const lines = args.outputs[0].count() == 0 ? 0 : p.g.batch * p.g.out[1];
        int64_t const parts = std::min(lines, threads_ > 1 ? kPartsPerThread * threads_ : 1);
        args.workers->run(parts, [&](int64_t i, int) {
            for (int64_t line = lines * i / parts; line < lines * (i + 1) / parts; ++line)
                runLine(p, args, line / p.g.out[1], line % p.g.out[1]);
        });
        return {};
    }

private:
    // Indices i in [0, window) with 0 <= at + i * dilation < in: [first, end).
    struct Inside
    {
        int64_t first, end;
        Inside(int64_t at, int64_t window, int64_t dilation, int64_t in)
            : first(at < 0 ? std::min(divideUp(-at, dilation), window) : 0),
              end(std::max(first, std::min(window, divideUp(std::max<int64_t>(in - at, 0), dilation))))
        {}
    };

    void runLine(FewFiltersPrepared const& p, RunArgs& args, int64_t n, int64_t row) const
    {
        Geometry const& g = p.g;
        int64_t const top = row * g.stride[1] - g.before[1];
        Inside const rows(top, g.window[1], g.dilation[1], g.in[1]);
        FewFiltersTile t;
        t.rows = rows.end - rows.first;
        t.rowStep = g.dilation[1] * g.in[2] * p.xPixel;
        t.rowWeights = g.window[2] * g.k * g.c;
        t.tapStep = g.dilation[2] * p.xPixel;
        t.pixelStep = g.stride[2] * p.xPixel;
        t.channels = g.c;
        float const* const x =
            args.inputs[0].as<float>() + (n * g.in[1] + top + rows.first * g.dilation[1]) * g.in[2] * p.xPixel;
        float const* const w = packed_->data() + rows.first * t.rowWeights;
        FewFilters const& use = filtersOf(isa_, g.k);
        for (int64_t column = 0; column < g.out[2];) {
            int64_t const left = column * g.stride[2] - g.before[2];
            Inside const taps(left, g.window[2], g.dilation[2], g.in[2]);
            t.taps = taps.end - taps.first;
            t.x = x + (left + taps.first * g.dilation[2]) * p.xPixel;
            t.w = w + taps.first * g.k * g.c;
            int size = 0;
            for (; size + 1 < FewFilters::kSizes; ++size) // that ends within the row, with whole windows
                if (int64_t const last =
                        (use.outputs[size] - 1) * g.stride[2] + left + (g.window[2] - 1) * g.dilation[2];
                    left >= 0 && last < g.in[2] && column + use.outputs[size] <= g.out[2])
                    break;
            runTile(p, args, t, size, (n * g.out[1] + row) * g.out[2] + column);
            column += use.outputs[size];
        }
    }

    void runTile(FewFiltersPrepared const& p, RunArgs& args, FewFiltersTile& t, int size, int64_t pixel) const
    {
        alignas(64) float sums[16 * 16] = {};
        t.sums = sums;
        filtersOf(isa_, p.g.k).run[size](t);
        GemmArgs a;
        end_.set(a, args, 0);
        a.b = sums;
        a.c = static_cast<float*>(a.c) + pixel * p.yPixel;
        a.ldcBytes = 4 * p.yPixel;
        a.residual = a.residual ? static_cast<float const*>(a.residual) + pixel * p.residualPixel : nullptr;
        a.ldrBytes = 4 * p.residualPixel;
        a.lastColumns = p.g.k;
        p.ends[size](a);
    }

    ir::Node const& node_;
    Isa isa_;
    int threads_;
    JitEnd end_;
    std::shared_ptr<device::PackedFloats const> packed_;
};

Support supports(CpuTactic const& t, Problem const& p)
{
    if (isTransposed(*p.node))
        return Support::no("takes no transposed convolutions");
    TW_SUPPORTS(supportsConvolution(p, 2));
    int64_t const width = kernels::jit::vectorWidth(t.isa()), channels = p.inputs[0].maxDims[1];
    if (p.inputs[1].dims.rank != 4 || p.node->attrsAs<KernelWindowAttrs>().groups != 1)
        return Support::no("takes windows of two dimensions in one group");
    if (p.outputs[0].maxDims[1] > kernels::kMostFewFilters || channels % width != 0)
        return Support::no(
            fmt::format("takes up to {} filters of multiples of {} channels", kernels::kMostFewFilters, width));
    return Support::yes();
}

// A product a cycle at 3 GHz, or two of half as many numbers, and the end of each output.
double estimate(CpuTactic const& t, Problem const& p, Config const&)
{
    double const perCycle = t.isa() == Isa::kAvx512 ? 16. : 14., end = 30;
    double const products = double(p.inputs[1].dims.volume()) / perCycle;
    return double(p.outputs[0].dims.volume() / p.outputs[0].dims[1]) * (products + end) / 3000. /
           std::max(p.threads, 1);
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& p, Config const& config, PackedConstants& packed)
{
    if (!config.empty())
        return t.wrongConfig("{}");
    auto kernel = std::make_unique<FewFiltersConvolution>(p, t.isa());
    TW_TRY(kernel->pack(p, packed));
    return std::unique_ptr<Kernel>(std::move(kernel));
}

} // namespace
} // namespace few_filters

constexpr CpuFunctions kFewFiltersConvolution{few_filters::supports, allChannelsLast, nullptr, few_filters::estimate,
                                              few_filters::load};

} // namespace tw::ops
