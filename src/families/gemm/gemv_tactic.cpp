// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "families/elementwise/jit_end.h"
#include "families/gemm/tactics.h"
#include "kernels/cpu/casts.h"
#include "kernels/cpu/gemv_jit.h"

namespace tw::ops {

using kernels::GemmJitOptions;
using kernels::GemvJit;
using kernels::GemvJitOptions;
using kernels::jit::GemvWeights;
using kernels::jit::Isa;
using matrix_multiply::Geometry;

namespace gemv {
namespace {

constexpr int64_t kMostVectors = 8;

// Panels of packed matrices are read two at once.
int streamsOf(Problem const& p)
{
    return p.inputs[1].constant ? 2 : 1;
}

// Whether columns of b and rows of a are contiguous.
bool byColumns(Geometry const& g)
{
    return g.bRow == 1 && g.aColumn == 1;
}

// More rows go in blocks, panel by panel, of which L2 holds what they read again: where b has half the bytes, that may be
// faster than a product of floats up to here; of floats it is slower.
int64_t mostRows(GemvWeights weights)
{
    constexpr int64_t kBlocks = 4;
    return kernels::jit::kGemvMaxRows * (weights == GemvWeights::kFloat ? 1 : kBlocks);
}

bool fits(Problem const& p, CpuTactic const& t, int64_t rows, int64_t vectors)
{
    int const block = int(std::clamp<int64_t>(rows, 1, kernels::jit::kGemvMaxRows));
    auto const within = [&](int streams, bool masked) {
        return kernels::jit::gemvFits(t.isa(), block, int(vectors), streams, masked, t.variant<GemvWeights>());
    };
    return vectors > 0 && vectors <= kMostVectors && within(streamsOf(p), false) && within(1, true);
}

Support fitHalf(Blob const& weights)
{
    constexpr float kMostHalf = 65504;
    float const* const values = weights.as<float>();
    for (int64_t i = 0; i < int64_t(weights.sizeBytes()) / 4; ++i)
        if (std::isfinite(values[i]) && std::fabs(values[i]) > kMostHalf)
            return Support::no(fmt::format("weight {} is {}, beyond FP16's range of {}", i, values[i], int(kMostHalf)));
    return Support::yes();
}

} // namespace
} // namespace gemv

bool isHeldBy(Blob const& weights, Isa isa, GemvWeights type)
{
    constexpr int64_t kBlock = 4096;
    kernels::CastKernels const& casts = kernels::castsOf(isa);
    bool const isHalf = type == GemvWeights::kHalf;
    auto const narrow = isHalf ? casts.floatToHalf : casts.floatToBfloat16;
    auto const widen = isHalf ? casts.halfToFloat : casts.bfloat16ToFloat;
    float const* const x = weights.as<float>();
    int64_t const count = int64_t(weights.sizeBytes()) / 4;
    std::vector<uint16_t> bits(kBlock);
    std::vector<float> again(kBlock);
    for (int64_t at = 0; at < count; at += kBlock) {
        int64_t const n = std::min(kBlock, count - at);
        narrow(x + at, bits.data(), n);
        widen(bits.data(), again.data(), n);
        if (std::memcmp(x + at, again.data(), size_t(n) * sizeof(float)) != 0)
            return false;
    }
    return true;
}

Support supportsKept(CpuTactic const& t, Problem const& p, GemvWeights as)
{
    constexpr int64_t kSmall = 256 << 10; // bytes, of floats, that may be kept in several ways
    Blob const* const b = p.inputs[1].constant;
    if (!b || int64_t(b->sizeBytes()) < kSmall || !p.target.cpu->f16c)
        return Support::yes();
    if (as != GemvWeights::kFloat)
        return t.isa() == Isa::kAvx2 && kernels::jit::isaOf(*p.target.cpu) == Isa::kAvx512
                   ? Support::no("large weights of 16 bits are kept in panels of AVX-512 here, once")
                   : Support::yes();
    for (auto weights : {GemvWeights::kHalf, GemvWeights::kBfloat16})
        if (isHeldBy(*b, t.isa(), weights))
            return Support::no("its weights are numbers of 16 bits, as which they are kept");
    return Support::yes();
}

namespace gemv {
namespace {

Support fitNarrow(CpuTactic const& t, Problem const& p)
{
    Blob const& weights = *p.inputs[1].constant;
    auto const type = t.variant<GemvWeights>();
    if (t.traits().rounding != Rounding::kPlain)
        return type == GemvWeights::kHalf ? fitHalf(weights) : Support::yes();
    return isHeldBy(weights, t.isa(), type)
               ? supportsKept(t, p, type)
               : Support::no(type == GemvWeights::kHalf ? "its weights are no numbers of FP16"
                                                        : "its weights are no numbers of BF16");
}

GemmJitOptions layoutOf(GemvJitOptions const& options)
{
    GemmJitOptions o;
    o.isa = options.isa;
    o.vectors = options.vectors;
    return o;
}

} // namespace
} // namespace gemv

Result<PackedMatricesPtr> packNarrow(GemmJitOptions const& options, GemvWeights weights, Geometry const& g,
                                     Blob const& b, PackedConstants& packed)
{
    Recipe const recipe{
        "panels of matrices in 16 bits",
        {int64_t(options.isa), options.vectors, g.n, g.k, g.bRow, g.bColumn, options.gated, int64_t(weights)}};
    return packed.get<PackedMatrices>(b, recipe, [&]() -> Result<PackedMatrices> {
        PackedConstants alone;
        TW_ASSIGN(PackedMatricesPtr const wide, packMatrices(options, g, b, alone));
        int64_t const matrix = g.k * g.n, count = matrix > 0 ? int64_t(b.sizeBytes()) / 4 / matrix : 0;
        PackedMatrices made;
        made.each = wide->each;
        made.floats = device::PackedFloats((count * made.each + 1) / 2);
        if (!made.floats.data())
            return failedAllocation("no memory for {} bytes of packed weights", count * made.each * 2);
        kernels::CastKernels const& casts = kernels::castsOf(options.isa);
        (weights == GemvWeights::kHalf ? casts.floatToHalf : casts.floatToBfloat16)(
            wide->floats.data(), reinterpret_cast<uint16_t*>(made.floats.data()), count * made.each);
        return made;
    });
}

namespace gemv {
namespace {

struct GemvPrepared final : Prepared
{
    GemvJit gemv;
};

class GemvKernel final : public Kernel
{
public:
    GemvKernel(ir::Node const& node, GemvJitOptions const& options, PackedMatricesPtr packed)
        : node_(node), options_(options), packed_(std::move(packed))
    {}
    bool readsConstant(size_t i) const override { return i != 1 || options_.b != GemvJitOptions::kPacked; }
    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const>) const override
    {
        Geometry const g = mergedGeometry(node_, in[0].dims, in[1].dims);
        auto prepared = std::make_shared<GemvPrepared>();
        GemvJitOptions o = options_;
        if (o.b != GemvJitOptions::kPacked && g.bColumn != 1)
            o.b = GemvJitOptions::kColumns;
        TW_ASSIGN(prepared->gemv, GemvJit::make(o, shapeOf(g), offsetsOf(g, packed_ ? packed_->each : 0)));
        return std::shared_ptr<Prepared const>(std::move(prepared));
    }
    Result<void> run(RunArgs& args) const override
    {
        float const* bias = options_.bias ? args.inputs[2].as<float>() : nullptr;
        float const* residual = options_.residual ? args.inputs[3].as<float>() : nullptr;
        void const* b = options_.b == GemvJitOptions::kPacked ? packed_->floats.data() : args.inputs[1].as<float>();
        static_cast<GemvPrepared const*>(args.prepared)
            ->gemv.run(args.inputs[0].as<float>(), b, bias, residual, args.outputs[0].as<float>(), *args.workers);
        return {};
    }

private:
    ir::Node const& node_;
    GemvJitOptions options_;
    PackedMatricesPtr packed_; // null: b is not known
};

Support supports(CpuTactic const& t, Problem const& p)
{
    auto const weights = t.variant<GemvWeights>();
    TW_SUPPORTS(supportsProducts(p));
    if (matrix_multiply::isGated(*p.node))
        return Support::no("does not gate columns");
    if (t.traits().rounding != Rounding::kPlain && jumps(jitEnd(p.node->attrsAs<matrix_multiply::Attrs>().epilogue)))
        return Support::no(kJumps);
    if (weights != GemvWeights::kFloat && !p.inputs[1].constant)
        return Support::no("rounds input 1 when the engine is loaded, but it is not known then");
    if (weights == GemvWeights::kHalf && !p.target.cpu->f16c)
        return Support::no("needs a CPU with F16C");
    Geometry const g = mergedGeometry(*p.node, p.inputs[0].maxDims, p.inputs[1].maxDims);
    if (g.m > mostRows(weights))
        return Support::no(fmt::format("has {} rows, more than {}", g.m, mostRows(weights)));
    if (2 * g.n < kernels::jit::vectorWidth(t.isa()))
        return Support::no(fmt::format("its {} columns fill less than half a vector", g.n));
    if (!p.inputs[1].constant && g.k == 1)
        return Support::no("the sums have one element"); // which order its strides have does not show
    if (!p.inputs[1].constant && g.bColumn != 1 && !byColumns(g))
        return Support::no("input 1 is not known, so not packed, and neither its rows nor the columns of it and the "
                           "rows of input 0 are contiguous");
    return weights == GemvWeights::kFloat ? supportsKept(t, p, weights) : fitNarrow(t, p);
}

std::vector<Config> configs(CpuTactic const& t, Problem const& p)
{
    Geometry const g = mergedGeometry(*p.node, p.inputs[0].maxDims, p.inputs[1].maxDims);
    int64_t const width = kernels::jit::vectorWidth(t.isa());
    std::vector<Config> list;
    if (!p.inputs[1].constant && g.bColumn != 1)
        return {{1}};
    // Where b is not packed, wide panels use more of each row of it at once.
    // Weights that 16 bits hold lie in the panels that products of many rows read, too.
    std::vector<int> const widths =
        t.variant<GemvWeights>() != GemvWeights::kFloat && t.traits().rounding == Rounding::kPlain ? std::vector{2}
        : streamsOf(p) == 2                                                                        ? std::vector{2, 4}
                            : std::vector{8, 4, 2};
    for (int64_t vectors : widths)
        if (g.n > (vectors - 1) * width && fits(p, t, g.m, vectors))
            list.push_back({vectors});
    // Narrow ones where there would be too few for all threads.
    if (list.empty() || g.n < 2 * 2 * width * p.threads)
        list.push_back({1});
    return list;
}

double estimate(CpuTactic const& t, Problem const& p, Config const& config)
{
    Geometry const g = mergedGeometry(*p.node, p.inputs[0].dims, p.inputs[1].dims);
    double const columns = std::ceil(double(g.n) / kernels::jit::vectorWidth(t.isa())),
                 panels = std::ceil(columns / double(config[0]));
    // Cycles of a vector of b: its load, or the products. 20 ns a call, 3 GHz.
    double const load = t.variant<GemvWeights>() == GemvWeights::kFloat ? 1 : 0.5;
    double const step = std::max(load, double(g.m) / (t.isa() == Isa::kAvx512 ? 1.5 : 2.));
    return double(g.batch.volume()) * (columns * step * double(g.k) / 3000. + panels * 0.02) / std::max(p.threads, 1);
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& p, Config const& config, PackedConstants& packed)
{
    Geometry const g = mergedGeometry(*p.node, p.inputs[0].maxDims, p.inputs[1].maxDims);
    if (config.size() != 1 || !fits(p, t, g.m, config[0]))
        return invalidArgument("{}: the plan's configuration is no panel width for {} rows", t.name(), g.m);
    GemvJitOptions o;
    o.isa = t.isa();
    o.vectors = int(config[0]);
    o.weights = t.variant<GemvWeights>();
    o.b = p.inputs[1].constant ? GemvJitOptions::kPacked : GemvJitOptions::kRows;
    o.threads = std::max(p.threads, 1);
    o.bias = p.inputs.size() > 2 && p.inputs[2].present;
    o.residual = p.inputs.size() > 3 && p.inputs[3].present;
    static_cast<kernels::jit::SumEnd&>(o) = jitEnd(p.node->attrsAs<matrix_multiply::Attrs>().epilogue);
    PackedMatricesPtr matrices;
    if (o.weights != GemvWeights::kFloat) {
        TW_ASSIGN(matrices, packNarrow(layoutOf(o), o.weights, g, *p.inputs[1].constant, packed));
    } else if (o.b == GemvJitOptions::kPacked) {
        TW_ASSIGN(matrices, packMatrices(layoutOf(o), g, *p.inputs[1].constant, packed));
    }
    return makeKernel<GemvKernel>(*p.node, o, std::move(matrices));
}

} // namespace
} // namespace gemv

constexpr CpuFunctions kGemv{
    .supports = gemv::supports, .configs = gemv::configs, .estimate = gemv::estimate, .load = gemv::load};

} // namespace tw::ops
