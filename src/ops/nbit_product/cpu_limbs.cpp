// SPDX-License-Identifier: Apache-2.0
// Weights are packed when they are loaded, as the kernel reads them. x is split into limbs at each run: three of FP32, two of
// narrower floats, whose own rounding is coarser, and one where x may be rounded to that. Where several rows cost less by floats,
// x stays what it is.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/round.h"
#include "device/large_pages.h"
#include "kernels/cpu/casts.h"
#include "kernels/cpu/jit/nbit_kernel.h"
#include "kernels/cpu/limbs.h"
#include "ops/nbit_product/op.h"
#include "ops/nbit_product/tactics.h"

namespace tw::ops::nbit_product {

namespace {

using kernels::jit::Factors;
using kernels::jit::Isa;
using kernels::jit::NbitForm;
using kernels::jit::NbitKernel;

constexpr int64_t kMostBlock = 256; // whose sums of integers fit
// Of weights and x: what a group reads of a piece, so that x stays in L1 from group to group. Weights lie in the order in
// which they are read: pieces of k, in each the groups of columns.
constexpr int64_t kPieceBytes = 26 << 10;
// Whether rows cost less by floats. Pairs of bytes take three instructions for four products of a limb, twice where weights have 8 bits.
// In their time (Zen 4, 4 and 8 bits, 1 to 16 rows) floats take 4.5 for a block's weights and 1.7 a row.
bool takesFloats(Factors factors, NbitForm const& form, int64_t rows)
{
    double const pairs = form.limbs * (form.bits == 8 ? 2 : 1);
    return factors == Factors::kBytePairs && form.limbs > 1 && double(rows) * (pairs - 1.7) > 4.5;
}

constexpr int kNowhere = -1;         // behind the last number of a block
constexpr int64_t kMostColumns = 32; // of a group

// Every weight at its place: blocks of the kernel, each of numbers that share a scale.
struct Blocks
{
    int64_t each = 0;            // numbers
    std::vector<int32_t> scales; // of each block: which of a column's
    std::vector<int32_t> order;  // [blocks, each] numbers of x, or kNowhere; empty: as they come
    int64_t count() const { return int64_t(scales.size()); }
};

Blocks blocksOf(Attrs const& a, Blob const* groups)
{
    Blocks b;
    b.each = std::gcd(a.block, kMostBlock);
    if (!groups) {
        for (int64_t p = 0; p < a.k; p += b.each)
            b.scales.push_back(int32_t(p / a.block));
        return b;
    }
    std::vector<std::vector<int32_t>> members(size_t(a.blocks()));
    for (int64_t p = 0; p < a.k; ++p)
        members[size_t(a.group(groups->as<int32_t>(), p))].push_back(int32_t(p));
    for (size_t g = 0; g < members.size(); ++g)
        for (size_t i = 0; i < members[g].size(); ++i) {
            if (i % size_t(b.each) == 0) {
                b.scales.push_back(int32_t(g));
                b.order.resize(b.order.size() + size_t(b.each), kNowhere);
            }
            b.order[b.order.size() - size_t(b.each) + i % size_t(b.each)] = members[g][i];
        }
    return b;
}

// Numbers of `bits` in order, the lowest first, as a lane of the kernel has them.
uint32_t laneOf(uint32_t word, int64_t bits)
{
    auto const apart = [](uint32_t four, int by) { // four numbers, a byte for each
        four = (four | four << (2 * by)) & (by == 4 ? 0x00ff00ffU : 0x000f000fU);
        return (four | four << by) & (by == 4 ? 0x0f0f0f0fU : 0x03030303U);
    };
    if (bits == 4)
        return apart(word & 0xffff, 4) | apart(word >> 16, 4) << 4;
    if (bits == 8)
        return word;
    uint32_t lane = 0;
    for (int part = 0; part < 4; ++part)
        lane |= apart(word >> (8 * part) & 0xff, 6) << (2 * part);
    return lane;
}

bool fitsHalf(float v)
{
    return halfToFloat(floatToHalf(v)) == v;
}

struct Packed
{
    NbitForm form;
    Blocks blocks;
    int64_t blockBytes = 0, groups = 0;
    int64_t piece = 0; // blocks
    device::PackedFloats memory;

    int64_t blocksOf(int64_t first) const { return std::min(piece, blocks.count() - first); } // of the piece from there
    std::byte* at(int64_t first, int64_t group) const
    {
        return reinterpret_cast<std::byte*>(memory.data()) + (first * groups + group * blocksOf(first)) * blockBytes;
    }
};
using PackedPtr = std::shared_ptr<Packed const>;

TensorRef constantOf(TensorSpec const& spec)
{
    return {spec.type, spec.dims, const_cast<void*>(spec.constant->data())};
}
bool isGiven(Problem const& p, size_t i)
{
    return i < p.inputs.size() && p.inputs[i].present;
}

NbitForm formOf(Problem const& p, Attrs const& a, Blocks const& blocks, int vectors)
{
    NbitForm f;
    f.bits = int(a.bits);
    f.block = int(blocks.each);
    f.vectors = vectors;
    f.limbs = a.roundsX ? 1 : isNarrowFloat(p.inputs[kX].type) ? 2 : 3;
    TensorRef const scales = constantOf(p.inputs[kScales]);
    f.halfScales = true;
    for (int64_t i = 0; f.halfScales && i < scales.count(); ++i)
        f.halfScales = fitsHalf(float(scales.get(i)));
    if (isGiven(p, kZeros)) {
        TensorRef const zeros = constantOf(p.inputs[kZeros]);
        for (int64_t i = 0; i < zeros.count(); ++i) {
            double const z = zeros.get(i);
            if (!(z >= 0 && z <= 255 && z == std::floor(z)))
                f.zeros = NbitForm::kFloats;
            else if (z != a.middle() && f.zeros == NbitForm::kMiddle)
                f.zeros = NbitForm::kBytes;
        }
    }
    return f;
}

void packBlock(Problem const& p, Attrs const& a, Packed const& to, int64_t first, int64_t lanes, int64_t block,
               std::byte* at)
{
    NbitForm const& f = to.form;
    int64_t const steps = f.block * f.bits / 32, perWord = 32 / f.bits;
    std::byte* const zeros = at + f.scaleBytes() * lanes;
    std::byte* const words = zeros + f.zeroBytes() * lanes;
    TensorRef const scales = constantOf(p.inputs[kScales]);
    auto const* const weights = p.inputs[kWeights].constant->as<int32_t>();
    for (int64_t lane = 0; lane < std::min(lanes, scales.dims[0] - first); ++lane) {
        int64_t const j = first + lane, scale = j * a.blocks() + to.blocks.scales[size_t(block)];
        TensorRef{f.halfScales ? DataType::kHalf : DataType::kFloat, {lanes}, at}.set(lane, scales.get(scale));
        if (f.zeros != NbitForm::kMiddle)
            TensorRef{f.zeros == NbitForm::kBytes ? DataType::kUInt8 : DataType::kFloat, {lanes}, zeros}.set(
                lane, constantOf(p.inputs[kZeros]).get(scale));
        for (int64_t s = 0; s < steps; ++s) {
            uint32_t word = 0;
            if (to.blocks.order.empty()) {
                int64_t const first = (block * f.block + s * perWord) * f.bits / 32;
                word = uint32_t(weights[j * a.blocks() * a.words() + first]);
            } else {
                for (int64_t i = 0; i < perWord; ++i)
                    if (int64_t const of = to.blocks.order[size_t(block * f.block + s * perWord + i)]; of != kNowhere)
                        word |= uint32_t(a.quantized(weights, j, of)) << (i * f.bits);
            }
            word = laneOf(word, f.bits);
            std::memcpy(words + (s * lanes + lane) * 4, &word, 4);
        }
    }
}

Result<PackedPtr> pack(Problem const& p, int64_t lanes, int vectors, PackedConstants& packed)
{
    auto const& a = p.node->attrsAs<Attrs>();
    Blocks blocks = blocksOf(a, isGiven(p, kGroups) ? p.inputs[kGroups].constant : nullptr);
    NbitForm const form = formOf(p, a, blocks, vectors);
    auto const address = [&](size_t i) {
        return isGiven(p, i) ? int64_t(reinterpret_cast<uintptr_t>(p.inputs[i].constant->data())) : 0;
    };
    Recipe const recipe{"weights of few bits",
                        {a.k, a.bits, a.block, lanes, form.limbs, address(kScales), address(kZeros), address(kGroups),
                         int64_t(p.inputs[kScales].type)}};
    return packed.get<Packed>(*p.inputs[kWeights].constant, recipe, [&]() -> Result<Packed> {
        Packed made{form, std::move(blocks), form.columnBytes() * lanes, divideUp(p.inputs[kScales].dims[0], lanes), 0,
                    {}};
        made.piece = std::max<int64_t>(kPieceBytes / (made.blockBytes + form.rowBytes()), 1);
        int64_t const count = made.blocks.count(), sizeBytes = made.groups * count * made.blockBytes;
        made.memory = device::PackedFloats(sizeBytes / 4);
        if (!made.memory.data())
            return failedAllocation("no memory for {} bytes of packed weights", sizeBytes);
        for (int64_t first = 0; first < count; first += made.piece)
            for (int64_t group = 0; group < made.groups; ++group)
                for (int64_t block = 0; block < made.blocksOf(first); ++block)
                    packBlock(p, a, made, group * lanes, lanes, first + block,
                              made.at(first, group) + block * made.blockBytes);
        return made;
    });
}

// Rows are cut into tiles of one height, but for the last one.
struct LimbsPrepared final : Prepared
{
    int64_t rows = 0, height = 0;
    NbitForm form; // of the packed weights, with what x is
    NbitKernel kernel, last;
};

class LimbsKernel final : public Kernel
{
public:
    LimbsKernel(Problem const& p, Isa isa, Factors factors, PackedPtr packed)
        : attrs_(p.node->attrsAs<Attrs>()), isa_(isa), factors_(factors), packed_(std::move(packed))
    {}
    bool readsConstant(size_t i) const override { return i == kX || i == kBias; }
    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const>) const override
    {
        int64_t const rows = in[kX].count() / attrs_.k;
        return rowsBytes(formOf(rows), rows) + packed_->groups * heightOf(rows) * columns() * int64_t(sizeof(float));
    }
    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const>) const override
    {
        auto made = std::make_shared<LimbsPrepared>();
        made->rows = in[kX].count() / attrs_.k;
        if (made->rows > 0) {
            made->height = heightOf(made->rows);
            made->form = formOf(made->rows);
            int64_t const last = made->rows - (divideUp(made->rows, made->height) - 1) * made->height;
            TW_ASSIGN(made->kernel, NbitKernel::emit(isa_, factors_, made->form, int(made->height)));
            TW_ASSIGN(made->last, NbitKernel::emit(isa_, factors_, made->form, int(last)));
        }
        return std::shared_ptr<Prepared const>(std::move(made));
    }
    Result<void> run(RunArgs& args) const override
    {
        auto const& prepared = *static_cast<LimbsPrepared const*>(args.prepared);
        TensorRef const &x = args.inputs[kX], &y = args.outputs[0];
        int64_t const rows = prepared.rows, n = y.dims[y.dims.rank - 1];
        if (rows == 0 || n == 0)
            return {};
        auto* const limbs = static_cast<std::byte*>(args.workspace);
        constexpr int64_t kAlone = 1 << 14; // numbers that one worker splits faster than several
        if (x.count() < kAlone)
            for (int64_t row = 0; row < rows; ++row)
                split(x, row, prepared, limbs);
        else
            args.workers->run(rows, [&](int64_t row, int) { split(x, row, prepared, limbs); });
        // A part has neighbouring groups of columns: of many rows as many as L2 keeps from tile to tile, of few rows so many
        // that they are worth the splits of their work, yet few enough that a worker that is done waits a moment only.
        constexpr int64_t kTilesBytes = 256 << 10, kStreamBytes = 128 << 10, kLeastBytes = 32 << 10;
        int64_t const groups = packed_->groups, workers = args.workers->count();
        int64_t const bytes = groups * packed_->blocks.count() * packed_->blockBytes;
        int64_t const most = divideUp(bytes, rows > prepared.height ? kTilesBytes : kStreamBytes);
        int64_t const parts = std::clamp(std::max(most, workers), int64_t(1),
                                         std::min(groups, std::max<int64_t>(bytes * rows / kLeastBytes, 1)));
        TensorRef const bias = args.inputs.size() > kBias ? args.inputs[kBias] : TensorRef{};
        auto* const sums = reinterpret_cast<float*>(limbs + rowsBytes(prepared.form, rows));
        args.workers->run(parts, [&](int64_t part, int) {
            for (int64_t row = 0; row < rows; row += prepared.height)
                tile(prepared, row, groups * part / parts, groups * (part + 1) / parts, limbs, sums, bias, y);
        });
        return {};
    }

private:
    int64_t columns() const { return packed_->form.vectors * kernels::jit::vectorWidth(isa_); } // of a group
    int64_t rowBytes(NbitForm const& f) const { return packed_->blocks.count() * f.rowBytes(); }
    int64_t rowsBytes(NbitForm const& f, int64_t rows) const { return roundUp(rows * rowBytes(f), 64); }
    NbitForm formOf(int64_t rows) const
    {
        NbitForm form = packed_->form;
        if (takesFloats(factors_, form, rows))
            form.limbs = 0;
        return form;
    }
    int64_t heightOf(int64_t rows) const // of tiles
    {
        int64_t const tiles = divideUp(rows, NbitKernel::mostRows(isa_, factors_, formOf(rows)));
        return tiles == 0 ? 0 : divideUp(rows, tiles);
    }

    // A row of x into its tile.
    void split(TensorRef const& x, int64_t row, LimbsPrepared const& prepared, std::byte* to) const
    {
        NbitForm const& f = prepared.form;
        bool const isWide = isa_ == Isa::kAvx512;
        kernels::CastKernels const& casts = isWide ? avx512::kCasts : avx2::kCasts;
        auto const splitBlock = (isWide ? avx512::kLimbs : avx2::kLimbs).split;
        int64_t const in = row % prepared.height, first = row - in,
                      height = std::min(prepared.height, prepared.rows - first);
        float const factor = f.zeros == NbitForm::kMiddle ? float(attrs_.middle()) : 1.F;
        to += first * rowBytes(f);
        float numbers[kMostBlock];
        for (int64_t b = 0; b < packed_->blocks.count(); ++b, to += height * f.rowBytes()) {
            float const* from = numbers;
            if (!packed_->blocks.order.empty()) {
                int32_t const* const order = packed_->blocks.order.data() + b * f.block;
                for (int64_t i = 0; i < f.block; ++i)
                    numbers[i] = order[i] == kNowhere ? 0 : float(x.get(row * attrs_.k + order[i]));
            } else {
                int64_t const at = row * attrs_.k + b * f.block,
                              count = std::min<int64_t>(f.block, attrs_.k - b * f.block);
                if (isNarrowFloat(x.type))
                    (x.type == DataType::kBf16 ? casts.bfloat16ToFloat : casts.halfToFloat)(x.as<uint16_t>() + at,
                                                                                            numbers, count);
                else if (count == f.block)
                    from = x.as<float>() + at;
                else
                    std::copy_n(x.as<float>() + at, count, numbers);
                std::fill(numbers + count, numbers + f.block, 0.F);
            }
            if (f.limbs == 0) {
                float* const floats = reinterpret_cast<float*>(to) + in;
                for (int64_t i = 0; i < f.block; ++i)
                    floats[i * height] = from[i];
                continue;
            }
            float pair[2];
            splitBlock(from, f.block, f.limbs, factor,
                       reinterpret_cast<int8_t*>(to + height * 8 + in * f.limbs * f.block), pair);
            std::memcpy(to + in * 8, pair, sizeof pair);
        }
    }

    // Rows from `row` on by the groups [begin, end), whose sums have places of their own.
    void tile(LimbsPrepared const& prepared, int64_t row, int64_t begin, int64_t end, std::byte const* limbs,
              float* sums, TensorRef const& bias, TensorRef const& y) const
    {
        int64_t const height = std::min(prepared.height, prepared.rows - row), lanes = columns();
        NbitKernel const& kernel = height == prepared.height ? prepared.kernel : prepared.last;
        sums += begin * prepared.height * lanes;
        std::byte const* const x = limbs + row * rowBytes(prepared.form);
        for (int64_t first = 0; first < packed_->blocks.count(); first += packed_->piece)
            kernel({packed_->at(first, begin), x + first * height * prepared.form.rowBytes(), sums,
                    packed_->blocksOf(first), end - begin, first});
        for (int64_t group = begin; group < end; ++group, sums += height * lanes)
            store(row, height, group * lanes, sums, bias, y);
    }

    // A group's sums into its columns, from `first` on.
    void store(int64_t row, int64_t height, int64_t first, float const* sums, TensorRef const& bias,
               TensorRef const& y) const
    {
        int64_t const lanes = columns(), n = y.dims[y.dims.rank - 1], count = std::min(lanes, n - first);
        float added[kMostColumns] = {};
        for (int64_t j = 0; bias.data && j < count; ++j)
            added[j] = float(bias.get(first + j));
        withFloat(y.type, [&](auto element) {
            for (int64_t i = 0; i < height; ++i)
                for (int64_t j = 0; j < count; ++j)
                    storeElement(y.as<decltype(element)>()[(row + i) * n + first + j], sums[i * lanes + j] + added[j]);
        });
    }

    Attrs const& attrs_;
    Isa isa_;
    Factors factors_;
    PackedPtr packed_;
};

Support supports(CpuTactic const& t, Problem const& p)
{
    auto const& cpu = *p.target.cpu;
    if (!cpu.f16c)
        return Support::no("needs a CPU with F16C");
    bool const hasDots = t.isa() == Isa::kAvx512 ? cpu.avx512vnni : cpu.avxVnni;
    if (t.variant<Factors>() == Factors::kByteDots && !hasDots)
        return Support::no(t.isa() == Isa::kAvx512 ? "needs a CPU with AVX512-VNNI" : "needs a CPU with AVX-VNNI");
    for (size_t i : {size_t(kWeights), size_t(kScales), size_t(kZeros), size_t(kGroups)})
        if (isGiven(p, i) && !p.inputs[i].constant)
            return Support::no(fmt::format("packs input {} when the engine is loaded, but it is not known then", i));
    return Support::yes();
}

std::vector<Config> configs(CpuTactic const&, Problem const&) // {vectors of a group}
{
    return {{2}, {1}};
}

double estimate(CpuTactic const& t, Problem const& p, Config const&)
{
    auto const& a = p.node->attrsAs<Attrs>();
    double const rows = double(p.inputs[kX].dims.volume()) / double(a.k), n = double(p.inputs[kScales].dims[0]);
    // Cycles at 3 GHz: of a vector of four products a lane, by limbs; pairs need three instructions for one.
    double const dots = (a.roundsX ? 1. : 3.) * (t.variant<Factors>() == Factors::kByteDots ? 1. : 3.);
    double const vectors = n * double(a.k) / 4 / kernels::jit::vectorWidth(t.isa());
    return vectors * (1 + rows * dots) / 3000 / std::max(p.threads, 1);
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& p, Config const& config, PackedConstants& packed)
{
    if (config.size() != 1 || config[0] < 1 || config[0] > 2)
        return t.wrongConfig("{1..2}");
    int const vectors = int(config[0]);
    TW_ASSIGN(PackedPtr weights, pack(p, vectors * kernels::jit::vectorWidth(t.isa()), vectors, packed));
    return makeKernel<LimbsKernel>(p, t.isa(), t.variant<Factors>(), std::move(weights));
}

} // namespace

constexpr CpuFunctions kLimbs{.supports = supports, .configs = configs, .estimate = estimate, .load = load};

} // namespace tw::ops::nbit_product
