// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>

#include "families/elementwise/jit_end.h"
#include "families/gemm/tactics.h"
#include "ir/signs.h"

namespace tw::ops {

namespace {

using kernels::GemmJit;
using kernels::GemmJitOptions;
using kernels::GemmOffsets;
using kernels::GemmShape;
using kernels::jit::Factors;
using kernels::jit::Isa;
using matrix_multiply::Geometry;

// Byte offsets within the emitted code have 32 bits.
constexpr int64_t kMaxElements = int64_t(1) << 28;

} // namespace

GemmShape shapeOf(Geometry const& g)
{
    return {g.m, g.n, g.k, g.aRow, g.aColumn, g.bRow, g.bColumn};
}

Geometry mergedGeometry(ir::Node const& node, Extents const& a, Extents const& b)
{
    Geometry g = matrix_multiply::geometryOf(node, a, b);
    int64_t rows = g.m, stride = g.aRow;
    for (int d = g.batch.rank; d-- > 0;) {
        if (g.batch[d] == 1)
            continue;
        if (rows == 1)
            stride = g.aBatch[d];
        if (g.bBatch[d] != 0 || g.aBatch[d] != rows * stride)
            return g;
        rows *= g.batch[d];
    }
    g.m = rows;
    g.aRow = stride;
    g.batch = g.aBatch = g.bBatch = {};
    return g;
}

std::vector<GemmOffsets> offsetsOf(Geometry const& g, int64_t packedFloats)
{
    std::vector<GemmOffsets> list;
    if (g.batch.volume() == 0)
        return list;
    int64_t const matrix = g.k * g.n;
    Counter c(g.batch);
    do {
        int64_t const b = c.offset(g.bBatch);
        list.push_back({c.offset(g.aBatch), packedFloats > 0 && matrix > 0 ? b / matrix * packedFloats : b});
    } while (c.next());
    return list;
}

Support supportsProducts(Problem const& p)
{
    if (matrix_multiply::hasNorm(*p.node) || matrix_multiply::hasFirstNorm(*p.node))
        return Support::no("does not normalize rows");
    if (!isFullFloat(p.inputs[0].type))
        return Support::no(std::string("computes in f32, the inputs are ") + nameOf(p.inputs[0].type));
    for (TensorSpec const* t : {&p.inputs[0], &p.inputs[1], &p.outputs[0]})
        if (t->maxDims.volume() > kMaxElements)
            return Support::no(
                fmt::format("a tensor of shape {} has more than {} elements", t->maxDims.str(), kMaxElements));
    return Support::yes();
}

Result<PackedMatricesPtr> packMatrices(GemmJitOptions const& options, Geometry const& g, Blob const& b,
                                       PackedConstants& packed)
{
    Recipe const recipe{"panels of matrices",
                        {int64_t(options.isa), options.vectors, g.n, g.k, g.bRow, g.bColumn, options.gated,
                         isPairs(options.factors) ? elementsOfStep(options.factors) : 0, isBytes(options.factors),
                         offsetsBytes(options.factors)}};
    int64_t const number = isBytes(options.factors) ? 1 : 4; // bytes
    return packed.get<PackedMatrices>(b, recipe, [&]() -> Result<PackedMatrices> {
        PackedMatrices made;
        made.each = GemmJit::packedFloats(options, g.n, g.k);
        int64_t const matrix = g.k * g.n * number;
        int64_t const count = matrix > 0 ? int64_t(b.sizeBytes()) / matrix : isBytes(options.factors) ? 1 : 0;
        made.floats = device::PackedFloats(count * made.each);
        if (!made.floats.data())
            return failedAllocation("no memory for {} bytes of packed weights", count * made.each * 4);
        for (int64_t i = 0; i < count; ++i)
            GemmJit::packB(options, shapeOf(g), b.as<std::byte>() + i * matrix, made.floats.data() + i * made.each);
        return made;
    });
}

namespace gemm {
namespace {

struct GemmPrepared final : Prepared
{
    GemmJit gemm;
};

class GemmKernel final : public Kernel
{
public:
    GemmKernel(ir::Node const& node, GemmJitOptions const& options, JitEnd const& end)
        : node_(node), options_(options), end_(end)
    {}

    // b is known: it is packed once.
    Result<void> pack(Blob const& b, Geometry const& g, PackedConstants& packed)
    {
        options_.b = GemmJitOptions::kPackedBefore;
        TW_ASSIGN(packed_, packMatrices(options_, g, b, packed));
        return {};
    }

    Result<void> packNarrow(Blob const& b, kernels::jit::GemvWeights weights, Geometry const& g,
                            PackedConstants& packed)
    {
        options_.b = GemmJitOptions::kNarrowBefore;
        options_.bfloat16 = weights == kernels::jit::GemvWeights::kBfloat16;
        TW_ASSIGN(packed_, ops::packNarrow(options_, weights, g, b, packed));
        return {};
    }

    // Of a gated product.
    Result<void> packBias(Blob const& bias, int64_t n)
    {
        packedBias_ = device::PackedFloats(GemmJit::packedFloats(options_, n, 1));
        if (!packedBias_.data())
            return failedAllocation("no memory for a packed bias");
        GemmJit::packBias(options_, n, bias.as<float>(), packedBias_.data());
        return {};
    }

    bool readsConstant(size_t i) const override { return i == 1 ? !packed_ : i != 2 || !options_.gated; }

    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const>) const override
    {
        Geometry const g = mergedGeometry(node_, in[0].dims, in[1].dims);
        return GemmJit::workspaceBytes(options_, g.m, g.n, g.k);
    }

    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const>) const override
    {
        Geometry const g = mergedGeometry(node_, in[0].dims, in[1].dims);
        GemmJitOptions o = options_;
        if (isBytes(o.factors))
            o.integers.oneScale = in[Epilogue::kScale].dims.volume() == 1;
        auto prepared = std::make_shared<GemmPrepared>();
        TW_ASSIGN(prepared->gemm, GemmJit::make(o, shapeOf(g), offsetsOf(g, packed_ ? packed_->each : 0)));
        return std::shared_ptr<Prepared const>(std::move(prepared));
    }

    Result<void> run(RunArgs& args) const override
    {
        kernels::jit::GemmArgs first;
        end_.set(first, args, 0);
        if (options_.gated && options_.bias)
            first.bias = packedBias_.data();
        void const* const b = packed_ ? packed_->floats.data() : args.inputs[1].data;
        static_cast<GemmPrepared const*>(args.prepared)
            ->gemm.run(args.inputs[0].data, b, first, args.workspace, *args.workers);
        return {};
    }

private:
    ir::Node const& node_;
    GemmJitOptions options_;
    JitEnd end_;
    PackedMatricesPtr packed_; // null: b is not known
    device::PackedFloats packedBias_;
};

Support supportsWith(CpuTactic const& t, Problem const& p, Factors factors)
{
    TW_SUPPORTS(supportsProducts(p));
    TW_SUPPORTS(supportsFactors(*p.target.cpu, t.isa(), factors));
    if (isPairs(factors) && jumps(jitEnd(p.node->attrsAs<matrix_multiply::Attrs>().epilogue)))
        return Support::no(kJumps);
    if (isPairs(factors) && !p.inputs[1].constant)
        return Support::no("rounds input 1 when the engine is loaded, but it is not known then");
    for (bool const most : {false, true}) {
        auto dims = [&](size_t i) -> Extents const& { return most ? p.inputs[i].maxDims : p.inputs[i].dims; };
        if (matrix_multiply::isGated(*p.node) && mergedGeometry(*p.node, dims(0), dims(1)).batch.volume() != 1)
            return Support::no("columns that are gated by others, in collections with their own second operands");
    }
    if (matrix_multiply::isGated(*p.node) && !p.inputs[1].constant)
        return Support::no("columns that are gated by others are packed, but input 1 is not known");
    if (matrix_multiply::isGated(*p.node) && p.inputs.size() > 2 && p.inputs[2].present && !p.inputs[2].constant)
        return Support::no("columns that are gated by others have a bias that is not known");
    return Support::yes();
}

Support supports(CpuTactic const& t, Problem const& p)
{
    return supportsWith(t, p, t.variant<Factors>());
}

std::vector<Config> configs(CpuTactic const& t, Problem const& p)
{
    Geometry const g = mergedGeometry(*p.node, p.inputs[0].maxDims, p.inputs[1].maxDims);
    int64_t const width = kernels::jit::vectorWidth(t.isa());
    std::vector<Config> list;
    if (matrix_multiply::isGated(*p.node)) {
        if (g.n > 2 * width)
            list.push_back({4});
        list.push_back({2});
        return list;
    }
    if (t.variant<Factors>() == Factors::kBf16Tiles) {
        // Two vectors by 32 rows, or where there are fewer rows four by 16.
        if (g.m <= 16 && g.n > 2 * width)
            list.push_back({4});
        list.push_back({g.n > width ? 2 : 1});
        return list;
    }
    for (int64_t vectors : {3, 4, 2}) // one vector: slower than two wherever there are columns for two
        if (g.n > (vectors - 1) * width)
            list.push_back({vectors});
    if (list.empty())
        list.push_back({1});
    return list;
}

double estimateWith(CpuTactic const& t, Problem const& p, Config const& config, Factors factors)
{
    Geometry const g = mergedGeometry(*p.node, p.inputs[0].dims, p.inputs[1].dims);
    double const vectors = double(config[0]), most = kernels::jit::gemmMaxRows(t.isa(), int(config[0]), factors);
    double const tiles = std::max(std::ceil(double(g.m) / most), 1.), rows = double(g.m) / tiles;
    double const columns = std::ceil(double(g.n) / kernels::jit::vectorWidth(t.isa())),
                 panels = std::ceil(columns / vectors);
    // Cycles of a step of a tile: multiply-adds (two of 32 bytes each, or up to two of 64), two loads each, and what
    // the latency of four cycles leaves; a tenth of the loads shows. 20 ns a call, 3 GHz.
    double const products = rows * columns / panels, loads = rows + columns / panels;
    double step = std::max(products / (t.isa() == Isa::kAvx512 ? 1.5 : 2.), std::max(loads / 2, 4.)) + loads / 20;
    // Of a product of a pair by one instruction, by two with what takes pairs apart, or of 32 elements in 16 cycles for
    // 16 rows of a tile, whole or not.
    if (factors == Factors::kBf16Dots)
        step /= 2;
    else if (factors == Factors::kBf16Shifts)
        step *= 1.2;
    else if (factors == Factors::kBf16Tiles)
        step = std::ceil(rows / 16) * columns / panels / 2;
    return double(g.batch.volume()) * tiles * panels * (step * double(g.k) / 3000. + 0.02) / std::max(p.threads, 1);
}

double estimate(CpuTactic const& t, Problem const& p, Config const& config)
{
    return estimateWith(t, p, config, t.variant<Factors>());
}

GemmJitOptions optionsOf(CpuTactic const& t, Problem const& p, Config const& config, Factors factors)
{
    GemmJitOptions o;
    o.isa = t.isa();
    o.factors = factors;
    o.vectors = int(config[0]);
    o.l2Bytes = p.target.cpu->l2Bytes;
    o.threads = std::max(p.threads, 1);
    return o;
}

JitEnd endOf(CpuTactic const& t, Problem const& p, Geometry const& whole)
{
    return {p, p.node->attrsAs<matrix_multiply::Attrs>().epilogue, double(whole.k), t.isa()};
}

// narrow: as which b is kept.
CpuFunctions::Loaded loadWith(CpuTactic const& t, Problem const& p, Config const& config, Factors factors,
                              std::optional<kernels::jit::GemvWeights> narrow, PackedConstants& packed)
{
    bool const gated = matrix_multiply::isGated(*p.node);
    if (config.size() != 1 || config[0] < 1 || config[0] > 4 || (gated && config[0] % 2 != 0))
        return t.wrongConfig("{1..4}");
    Geometry const g = mergedGeometry(*p.node, p.inputs[0].dims, p.inputs[1].dims);
    Geometry const whole = matrix_multiply::geometryOf(*p.node, p.inputs[0].maxDims, p.inputs[1].maxDims);
    GemmJitOptions o = optionsOf(t, p, config, factors);
    o.bias = p.inputs.size() > 2 && p.inputs[2].present;
    o.residual = p.inputs.size() > 3 && p.inputs[3].present;
    o.gated = gated;
    static_cast<kernels::jit::SumEnd&>(o) = jitEnd(p.node->attrsAs<matrix_multiply::Attrs>().epilogue);
    int const rows = kernels::jit::gemmMaxRows(t.isa(), o.vectors);
    // A copy of a pays when several panels of b use it. One of b, made anew in each run, does not: in place it runs at
    // 0 to 10 % less than packed before, with the copy at 3 to 20 % less. Columns that are not contiguous have to be
    // copied.
    o.packA = g.n > 4 * o.vectors * kernels::jit::vectorWidth(t.isa()) && g.m > 1 &&
              (g.aColumn != 1 || kernels::thrashesL1(4 * g.aRow, rows, p.target.cpu->l1DataBytes));
    bool const contiguous = whole.bColumn == 1 || whole.n == 1;
    o.b = contiguous ? GemmJitOptions::kDirect : GemmJitOptions::kPacked;
    auto kernel = std::make_unique<GemmKernel>(*p.node, o, endOf(t, p, whole));
    if (Blob const* b = p.inputs[1].constant)
        TW_TRY(narrow ? kernel->packNarrow(*b, *narrow, g, packed) : kernel->pack(*b, g, packed));
    if (o.gated && o.bias)
        TW_TRY(kernel->packBias(*p.inputs[2].constant, g.n));
    return std::unique_ptr<Kernel>(std::move(kernel));
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& p, Config const& config, PackedConstants& packed)
{
    return loadWith(t, p, config, t.variant<Factors>(), std::nullopt, packed);
}

Support supportsOrKept(CpuTactic const& t, Problem const& p)
{
    TW_SUPPORTS(supports(t, p));
    return supportsKept(t, p, kernels::jit::GemvWeights::kFloat);
}

// --- of weights in 16 bits ---

Support supportsNarrow(CpuTactic const& t, Problem const& p)
{
    auto const weights = t.variant<kernels::jit::GemvWeights>();
    TW_SUPPORTS(supportsWith(t, p, Factors::kFloat));
    if (!p.target.cpu->f16c)
        return Support::no("needs a CPU with F16C");
    if (!p.inputs[1].constant)
        return Support::no("keeps input 1 in 16 bits, but it is not known when the engine is loaded");
    return isHeldBy(*p.inputs[1].constant, t.isa(), weights)
               ? supportsKept(t, p, weights)
               : Support::no(weights == kernels::jit::GemvWeights::kHalf ? "its weights are no numbers of FP16"
                                                                         : "its weights are no numbers of BF16");
}

// The panels of few rows (gemv_tactic.cpp).
std::vector<Config> configsNarrow(CpuTactic const& t, Problem const& p)
{
    Geometry const g = mergedGeometry(*p.node, p.inputs[0].maxDims, p.inputs[1].maxDims);
    return {{matrix_multiply::isGated(*p.node) || g.n > kernels::jit::vectorWidth(t.isa()) ? 2 : 1}};
}

double estimateNarrow(CpuTactic const& t, Problem const& p, Config const& config)
{
    return estimateWith(t, p, config, Factors::kFloat);
}

CpuFunctions::Loaded loadNarrow(CpuTactic const& t, Problem const& p, Config const& config, PackedConstants& packed)
{
    return loadWith(t, p, config, Factors::kFloat, t.variant<kernels::jit::GemvWeights>(), packed);
}

// --- of i8 ---

bool hasContiguousRows(Geometry const& g)
{
    return g.aColumn == 1 || g.k <= 1;
}

Support supportsBytes(CpuTactic const& t, Problem const& p)
{
    if (!isQuantized(p.inputs[0].type))
        return Support::no(std::string("multiplies i8, the inputs are ") + nameOf(p.inputs[0].type));
    device::CpuInfo const& cpu = *p.target.cpu;
    if (t.variant<Factors>() == Factors::kByteDots && kernels::jit::byteFactors(cpu, t.isa()) != Factors::kByteDots)
        return Support::no(t.isa() == Isa::kAvx512 ? "needs a CPU with AVX512-VNNI" : "needs a CPU with AVX-VNNI");
    if (!cpu.f16c)
        return Support::no("needs a CPU with F16C");
    return Support::yes();
}

// Of a CPU without dot products by the signs of input 0.
Factors byteFactors(CpuTactic const& t, Problem const& p)
{
    auto const factors = t.variant<Factors>();
    return factors == Factors::kByteDots
               ? factors
               : kernels::jit::byteFactors(t.isa(), ir::Signs().isNonNegative(*p.node->inputs[0]));
}

std::vector<Config> configsOfBytes(CpuTactic const& t, Problem const& p)
{
    Factors const factors = byteFactors(t, p);
    Geometry const g = mergedGeometry(*p.node, p.inputs[0].maxDims, p.inputs[1].maxDims);
    int64_t const width = kernels::jit::vectorWidth(t.isa());
    std::vector<Config> list;
    for (int64_t vectors : {4, 2, 3, 1}) {
        if (vectors > 1 && g.n <= (vectors - 1) * width)
            continue;
        if (vectors == 1 && g.n > width && g.n > 2 * width * p.threads) // only where there are few panels
            continue;
        // A copy costs about as much as four columns of products.
        bool const thrashes = kernels::thrashesL1(g.aRow, kernels::jit::gemmMaxRows(t.isa(), int(vectors), factors),
                                                  p.target.cpu->l1DataBytes);
        bool const mayCopy = g.m > 1 && g.n > 2 * vectors * width &&
                             (offsetsBytes(factors) || factors == Factors::kByteSigns || thrashes);
        if (hasContiguousRows(g))
            list.push_back({vectors, 0});
        if (!hasContiguousRows(g) || mayCopy)
            list.push_back({vectors, 1});
    }
    return list;
}

double estimateBytes(CpuTactic const& t, Problem const& p, Config const& config)
{
    Factors const factors = byteFactors(t, p);
    Geometry const g = mergedGeometry(*p.node, p.inputs[0].dims, p.inputs[1].dims);
    double const most = kernels::jit::gemmMaxRows(t.isa(), int(config[0]), factors);
    double const tiles = std::max(std::ceil(double(g.m) / most), 1.), rows = double(g.m) / tiles;
    double const columns = std::ceil(double(g.n) / kernels::jit::vectorWidth(t.isa())),
                 panels = std::ceil(columns / double(config[0]));
    // Cycles of a step (four k) of a tile: dot products (two of 32 bytes each, or up to two of 64; in words, or
    // pairs with signs, four instructions for one, in pairs three), two loads each, and what the latency of four cycles leaves; a tenth of the loads shows.
    // 20 ns a call, 3 GHz.
    double const products = rows * columns / panels, loads = rows + columns / panels;
    double const rate = (t.isa() == Isa::kAvx512 ? 1.5 : 2.) / (factors == Factors::kByteDots    ? 1.
                                                                : factors == Factors::kBytePairs ? 2.
                                                                : factors == Factors::kByteSigns ? 2.5
                                                                                                 : 3.4);
    double const step = std::max(products / rate, std::max(loads / 2, 4.)) + loads / 20;
    double const copied = config[1] != 0 ? double(g.m) * double(g.k) / 16 / 3000 : 0;
    double const product = tiles * panels * (step * std::ceil(double(g.k) / 4) / 3000. + 0.02) + copied;
    return double(g.batch.volume()) * product / std::max(p.threads, 1);
}

CpuFunctions::Loaded loadBytes(CpuTactic const& t, Problem const& p, Config const& config, PackedConstants& packed)
{
    if (config.size() != 2 || config[0] < 1 || config[0] > 4 || config[1] < 0 || config[1] > 1)
        return t.wrongConfig("{1..4, 0..1}");
    GemmJitOptions o = optionsOf(t, p, config, t.variant<Factors>());
    Geometry const whole = mergedGeometry(*p.node, p.inputs[0].maxDims, p.inputs[1].maxDims);
    o.packA = config[1] != 0 || !hasContiguousRows(whole);
    JitEnd const end = endOf(t, p, whole);
    o.factors = byteFactors(t, p);
    o.integers = end.ofIntegers();
    auto kernel = std::make_unique<GemmKernel>(*p.node, o, end);
    if (Blob const* b = p.inputs[1].constant)
        TW_TRY(kernel->pack(*b, mergedGeometry(*p.node, p.inputs[0].dims, p.inputs[1].dims), packed));
    return std::unique_ptr<Kernel>(std::move(kernel));
}

} // namespace
} // namespace gemm

constexpr CpuFunctions kGemm{
    .supports = gemm::supports, .configs = gemm::configs, .estimate = gemm::estimate, .load = gemm::load};
constexpr CpuFunctions kFloatGemm{
    .supports = gemm::supportsOrKept, .configs = gemm::configs, .estimate = gemm::estimate, .load = gemm::load};
constexpr CpuFunctions kNarrowGemm{.supports = gemm::supportsNarrow,
                                   .configs = gemm::configsNarrow,
                                   .estimate = gemm::estimateNarrow,
                                   .load = gemm::loadNarrow};
constexpr CpuFunctions kInt8Gemm{gemm::supportsBytes, nullptr, gemm::configsOfBytes, gemm::estimateBytes,
                                 gemm::loadBytes};

} // namespace tw::ops
