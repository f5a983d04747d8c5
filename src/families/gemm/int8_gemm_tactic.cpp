// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "families/elementwise/jit_end.h"
#include "families/gemm/tactics.h"
#include "kernels/cpu/int8_gemm.h"

namespace tw::ops {

namespace int8_gemm {
namespace {

using kernels::Int8Gemm;
using kernels::Int8GemmOptions;
using kernels::jit::Factors;
using kernels::jit::Isa;
using matrix_multiply::Geometry;

bool hasContiguousRows(Geometry const& g)
{
    return g.aColumn == 1 || g.k <= 1;
}

// Matrices of a known b, packed once.
struct PackedInt8
{
    device::PackedFloats memory;
    int64_t each = 0; // bytes of one
};
using PackedInt8Ptr = std::shared_ptr<PackedInt8 const>;

Result<PackedInt8Ptr> packInt8(Int8GemmOptions const& o, Geometry const& g, Blob const& b, PackedConstants& packed)
{
    Recipe const recipe{"panels of i8 matrices",
                        {int64_t(o.isa), offsetsBytes(o.factors), o.vectors, g.n, g.k, g.bRow, g.bColumn}};
    return packed.get<PackedInt8>(b, recipe, [&]() -> Result<PackedInt8> {
        PackedInt8 made;
        made.each = Int8Gemm::packedBytes(o, g.n, g.k);
        int64_t const matrix = g.k * g.n, count = matrix > 0 ? int64_t(b.sizeBytes()) / matrix : 1;
        made.memory = device::PackedFloats(count * made.each / 4);
        if (!made.memory.data())
            return Error{ErrorCode::kFailedAllocation,
                         "no memory for " + std::to_string(count * made.each) + " bytes of packed weights"};
        auto* const to = reinterpret_cast<int8_t*>(made.memory.data());
        for (int64_t i = 0; i < count; ++i)
            Int8Gemm::packB(o, shapeOf(g), b.as<int8_t>() + i * matrix, to + i * made.each);
        return made;
    });
}

struct Int8GemmPrepared final : Prepared
{
    Int8Gemm gemm;
};

class Int8GemmKernel final : public Kernel
{
public:
    Int8GemmKernel(ir::Node const& node, Int8GemmOptions const& options, JitEnd const& ends, PackedInt8Ptr packed)
        : node_(node), options_(options), ends_(ends), packed_(std::move(packed))
    {}
    bool readsConstant(size_t i) const override { return i != 1 || !packed_; }

    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const>) const override
    {
        Geometry const g = mergedGeometry(node_, in[0].dims, in[1].dims);
        return Int8Gemm::workspaceBytes(options_, g.m, g.n, g.k);
    }

    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const>) const override
    {
        Geometry const g = mergedGeometry(node_, in[0].dims, in[1].dims);
        Int8GemmOptions o = options_;
        o.end.oneScale = in[Epilogue::kScale].dims.volume() == 1;
        std::vector<kernels::Int8Offsets> offsets;
        for (kernels::GemmOffsets const& each : offsetsOf(g, packed_ ? packed_->each : 0))
            offsets.push_back({each.a, each.b});
        auto prepared = std::make_shared<Int8GemmPrepared>();
        TW_ASSIGN(prepared->gemm, Int8Gemm::make(o, shapeOf(g), std::move(offsets)));
        return std::shared_ptr<Prepared const>(std::move(prepared));
    }

    Result<void> run(RunArgs& args) const override
    {
        auto const* const b =
            packed_ ? reinterpret_cast<int8_t const*>(packed_->memory.data()) : args.inputs[1].as<int8_t>();
        kernels::jit::GemmArgs first;
        ends_.set(first, args, 0);
        static_cast<Int8GemmPrepared const*>(args.prepared)
            ->gemm.run(args.inputs[0].as<int8_t>(), b, first, args.workspace, *args.workers);
        return {};
    }

private:
    ir::Node const& node_;
    Int8GemmOptions options_;
    JitEnd ends_;
    PackedInt8Ptr packed_; // null: b is not known
};

Support supports(CpuTactic const& t, Problem const& p)
{
    if (!isQuantized(p.inputs[0].type))
        return Support::no(std::string("multiplies i8, the inputs are ") + nameOf(p.inputs[0].type));
    device::CpuInfo const& cpu = thisCpu();
    if (t.variant<Factors>() == Factors::kByteDots && kernels::jit::byteFactors(cpu, t.isa()) != Factors::kByteDots)
        return Support::no(t.isa() == Isa::kAvx512 ? "needs a CPU with AVX512-VNNI" : "needs a CPU with AVX-VNNI");
    if (!cpu.f16c)
        return Support::no("needs a CPU with F16C");
    return Support::yes();
}

std::vector<Config> configs(CpuTactic const& t, Problem const& p)
{
    auto const factors = t.variant<Factors>();
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
                                                  thisCpu().l1DataBytes);
        bool const mayCopy = g.m > 1 && g.n > 2 * vectors * width && (offsetsBytes(factors) || thrashes);
        if (hasContiguousRows(g))
            list.push_back({vectors, 0});
        if (!hasContiguousRows(g) || mayCopy)
            list.push_back({vectors, 1});
    }
    return list;
}

double estimate(CpuTactic const& t, Problem const& p, Config const& config)
{
    auto const factors = t.variant<Factors>();
    Geometry const g = mergedGeometry(*p.node, p.inputs[0].dims, p.inputs[1].dims);
    double const most = kernels::jit::gemmMaxRows(t.isa(), int(config[0]), factors);
    double const tiles = std::max(std::ceil(double(g.m) / most), 1.), rows = double(g.m) / tiles;
    double const columns = std::ceil(double(g.n) / kernels::jit::vectorWidth(t.isa())),
                 panels = std::ceil(columns / double(config[0]));
    // Cycles of a step (four k) of a tile: dot products (two of 32 bytes each, or up to two of 64; in words four
    // instructions for one), two loads each, and what the latency of four cycles leaves; a tenth of the loads shows.
    // 20 ns a call, 3 GHz.
    double const products = rows * columns / panels, loads = rows + columns / panels;
    double const rate = (t.isa() == Isa::kAvx512 ? 1.5 : 2.) / (factors == Factors::kByteWords ? 3. : 1.);
    double const step = std::max(products / rate, std::max(loads / 2, 4.)) + loads / 20;
    double const copied = config[1] != 0 ? double(g.m) * double(g.k) / 16 / 3000 : 0;
    double const product = tiles * panels * (step * std::ceil(double(g.k) / 4) / 3000. + 0.02) + copied;
    return double(g.batch.volume()) * product / std::max(p.threads, 1);
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& p, Config const& config, PackedConstants& packed)
{
    if (config.size() != 2 || config[0] < 1 || config[0] > 4 || config[1] < 0 || config[1] > 1)
        return t.wrongConfig("{1..4, 0..1}");
    Int8GemmOptions o;
    o.isa = t.isa();
    o.factors = t.variant<Factors>();
    o.vectors = int(config[0]);
    Geometry const whole = mergedGeometry(*p.node, p.inputs[0].maxDims, p.inputs[1].maxDims);
    o.packA = config[1] != 0 || !hasContiguousRows(whole);
    o.packedBefore = p.inputs[1].constant != nullptr;
    o.l2Bytes = thisCpu().l2Bytes;
    o.threads = std::max(p.threads, 1);
    JitEnd const ends(p, p.node->attrsAs<matrix_multiply::Attrs>().epilogue, double(whole.k), t.isa());
    o.end = ends.ofIntegers();
    PackedInt8Ptr matrices;
    if (Blob const* b = p.inputs[1].constant) {
        Geometry const g = mergedGeometry(*p.node, p.inputs[0].dims, p.inputs[1].dims);
        TW_ASSIGN(matrices, packInt8(o, g, *b, packed));
    }
    return makeKernel<Int8GemmKernel>(*p.node, o, ends, std::move(matrices));
}

} // namespace
} // namespace int8_gemm

constexpr CpuFunctions kInt8Gemm{.supports = int8_gemm::supports,
                                 .configs = int8_gemm::configs,
                                 .estimate = int8_gemm::estimate,
                                 .load = int8_gemm::load};

} // namespace tw::ops
