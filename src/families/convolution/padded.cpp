// SPDX-License-Identifier: Apache-2.0
// Convolution by the matrix micro-kernel over a copy of the image with its padding: no tap ever falls off, so that any
// window of any size is a list of pointers, one for each of its elements. Rows of a tile are output columns, columns
// are output channels; after each pointer the sum runs over the channels of the group. In one group with dilation 1
// the elements of a filter row follow each other with their channels, and are one pointer together. Where nothing is
// outside and pixels lie dense, the image is read where it is. Weights that are no constants are packed in each run.
// With factors in BF16 (kernels/cpu/bf16.h) the copy is what rounds the image: there is always one, of those pixels
// alone that are read, and a window of one element makes one row of all of them.
#include <algorithm>
#include <cmath>

#include "device/large_pages.h"
#include "families/convolution/padded_parts.h"
#include "kernels/cpu/bf16.h"
#include "kernels/cpu/jit/gemm_kernel.h"

namespace tw::ops {

namespace padded {
namespace {

using convolution::Geometry;
using kernels::jit::EpilogueOp;
using kernels::jit::Factors;
using kernels::jit::GemmArgs;
using kernels::jit::GemmKernel;
using kernels::jit::GemmKernelSpec;
using kernels::jit::Isa;

constexpr int64_t kStepsAtOnce = 8; // of emitted code
constexpr int64_t kLeastTileChannels = 16;

// How the sum for one output runs through the image, in elements: pairs, where factors are, in whole tiles.
struct Sum
{
    bool joined = false;  // the elements of a filter row are one run
    int64_t channels = 0; // of a group
    int64_t pointers = 0, run = 0;
    Sum(Geometry const& g, Factors factors)
        : joined(g.groups == 1 && (g.dilation[2] == 1 || g.window[2] == 1)),
          channels(isPairs(factors) ? roundUp((g.c / g.groups + 1) / 2, elementsOfStep(factors)) : g.c / g.groups),
          pointers(g.window[0] * g.window[1] * (joined ? 1 : g.window[2])), run(channels * (joined ? g.window[2] : 1))
    {}
    int64_t depth() const { return pointers * run; }
};

int64_t windowOf(Geometry const& g)
{
    return g.window[0] * g.window[1] * g.window[2];
}

// From one element of an axis that is copied to the next: rounded copies leave out what no window reads.
int64_t copyStep(Geometry const& g, int axis, Factors factors)
{
    return isPairs(factors) && g.window[axis] == 1 ? g.stride[axis] : 1;
}
int64_t strideRead(Geometry const& g, int axis, Factors factors)
{
    return g.stride[axis] / copyStep(g, axis, factors);
}

// Elements along an axis of what the outputs read, those of the padding included.
int64_t extentRead(Geometry const& g, int axis, Factors factors)
{
    return (g.out[axis] - 1) * strideRead(g, axis, factors) + (g.window[axis] - 1) * g.dilation[axis] + 1;
}

struct PaddedPrepared final : PaddedShapes<GemmKernel>
{
    Sum sum;
    PaddedPrepared(Geometry const& geometry, Factors factors) : PaddedShapes(geometry), sum(geometry, factors) {}
};

class PaddedConvolution final : public Kernel
{
public:
    PaddedConvolution(Problem const& problem, Isa isa, Factors factors, Config const& config)
        : node_(*problem.node), isa_(isa), factors_(factors), threads_(std::max(problem.threads, 1)),
          end_(jitEnd(*problem.node)), blocks_(problem, isa, config),
          hasBias_(problem.inputs.size() > 2 && problem.inputs[2].present)
    {}

    Result<void> pack(Problem const& p, PackedConstants& packed)
    {
        Blob const* const w = p.inputs[1].constant;
        if (!w)
            return {};
        Geometry const g = convolutionGeometry(node_, p.inputs[0].dims, p.inputs[1].dims, p.outputs[0].dims);
        bool const joined = Sum(g, factors_).joined;
        Extents const& dims = p.inputs[1].dims;
        Recipe recipe{
            "filters of padded images",
            {blocks_.width, blocks_.most, blocks_.groups, joined, isPairs(factors_) ? elementsOfStep(factors_) : 0}};
        recipe.numbers.insert(recipe.numbers.end(), dims.begin(), dims.end());
        TW_ASSIGN(packed_, packed.get<device::PackedFloats>(*w, recipe, [&]() -> Result<device::PackedFloats> {
            int64_t const floats = packedFloats(g);
            device::PackedFloats weights(floats);
            if (!weights.data())
                return Error{ErrorCode::kFailedAllocation,
                             "no memory for " + std::to_string(floats * 4) + " bytes of packed weights"};
            for (int64_t i = 0; i < blocks_.groups * blocks_.count; ++i)
                packBlock(g, w->as<float>(), i / blocks_.count, i % blocks_.count, weights.data());
            return weights;
        }));
        return {};
    }

    bool readsConstant(size_t i) const override { return i != 1 || !packed_; }

    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const override
    {
        Geometry const g = convolutionGeometry(node_, in[0].dims, in[1].dims, out[0].dims);
        return (copiedFloats(g) + (packed_ ? 0 : packedFloats(g))) * 4;
    }

    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const> out) const override
    {
        TensorRef const &x = in[0], &y = out[0];
        auto p = std::make_shared<PaddedPrepared>(convolutionGeometry(node_, x.dims, in[1].dims, y.dims), factors_);
        if (y.count() == 0)
            return std::shared_ptr<Prepared const>(std::move(p));
        Geometry const& g = p->g;
        bool const residual = in.size() > 3 && in[3].dims.rank == x.dims.rank;
        p->yPixel = y.pixelStride();
        p->residualPixel = residual ? in[3].pixelStride() : 0;
        p->copies = isPairs(factors_) || (p->sum.joined && g.window[2] > 1 && x.pixelStride() != g.c);
        for (int i = 0; i < 3; ++i)
            p->copies = p->copies || g.before[i] != 0 || extentRead(g, i, factors_) > g.in[i];
        p->xPixel = p->copies ? p->sum.channels * blocks_.groups : x.pixelStride();
        p->layOut(
            p->sum.joined, [&](int i) { return extentRead(g, i, factors_); },
            [&](int i) { return strideRead(g, i, factors_); });
        if (isPairs(factors_) && windowOf(g) == 1) {
            p->out[2] *= g.batch * g.out[0] * g.out[1];
            p->batch = p->out[0] = p->out[1] = 1;
        }
        TW_TRY(p->cut(kernels::jit::gemmMaxRows(isa_, int(blocks_.most), factors_),
                      [&](int rows, bool last) { return emit(*p, rows, last); }));
        return std::shared_ptr<Prepared const>(std::move(p));
    }

    Result<void> run(RunArgs& args) const override
    {
        auto const& p = *static_cast<PaddedPrepared const*>(args.prepared);
        if (p.tiles == 0)
            return {};
        auto* const copy = static_cast<float*>(args.workspace);
        float* const packs = packed_ ? nullptr : copy + copiedFloats(p.g);
        float const *x = p.copies ? copy : args.inputs[0].as<float>(), *w = packs ? packs : packed_->data();
        p.share(
            *args.workers, threads_, blocks_, packs != nullptr,
            [&](int64_t row) { copyRow(p, args.inputs[0], row, copy); },
            [&](int64_t group, int64_t block) { packBlock(p.g, args.inputs[1].as<float>(), group, block, packs); },
            [&](int64_t group, int64_t block, int64_t tile, int64_t end) {
                kernels::jit::TileScope const scope(factors_);
                runBlock(p, args, x, w, group, block, tile, end);
            });
        return {};
    }

private:
    // In whole cache lines; for images that are read in place, too.
    int64_t copiedFloats(Geometry const& g) const
    {
        int64_t const pixel = Sum(g, factors_).channels * blocks_.groups;
        int64_t floats = g.batch * pixel;
        for (int i = 0; i < 3; ++i)
            floats *= std::max<int64_t>(extentRead(g, i, factors_), 0);
        // What a tile reads behind its last row.
        int64_t const behind = kernels::jit::gemmRowsRead(factors_, 1) - 1;
        return roundUp(floats + behind * pixel * strideRead(g, 2, factors_), 16);
    }
    int64_t depth(Geometry const& g) const { return Sum(g, factors_).depth(); }
    int64_t packedFloats(Geometry const& g) const { return blocks_.lanesOfAll() * depth(g); }

    // w [K, C, window] to [group][block][pointer][run][lanes of the block], zero after the group's last channel.
    void packBlock(Geometry const& g, float const* w, int64_t group, int64_t block, float* packed) const
    {
        Sum const sum(g, factors_);
        int64_t const lanes = blocks_.lanes(block), first = blocks_.first(block), channels = g.c / blocks_.groups;
        int64_t const exist = std::min(lanes, blocks_.groupK - first), window = windowOf(g), perK = channels * window;
        float* to = packed + blocks_.lane(group, block) * sum.depth();
        float const* const from = w + (group * blocks_.groupK + first) * perK;
        for (int64_t tap = 0; isPairs(factors_) && tap < window; ++tap)
            kernels::roundColumnPairs(isa_, to + tap * sum.channels * lanes, lanes, lanes, sum.channels, from + tap,
                                      channels, exist, window, perK);
        if (isPairs(factors_))
            return;
        for (int64_t f = 0; f < sum.pointers; ++f)
            for (int64_t i = 0; i < sum.run; ++i, to += lanes) {
                int64_t const tap = sum.joined ? f * g.window[2] + i / channels : f;
                float const* const filter = from + i % channels * window + tap;
                for (int64_t k = 0; k < exist; ++k)
                    to[k] = filter[k * perK];
                std::fill(to + exist, to + lanes, 0.F);
            }
    }

    Result<GemmKernel> emit(PaddedPrepared const& p, int rows, bool last) const
    {
        GemmKernelSpec s;
        s.rows = rows;
        s.vectors = int(blocks_.lanes(last ? blocks_.count - 1 : 0) / blocks_.width);
        s.factors = factors_;
        s.body = contiguousLoop(isa_, s.vectors, int(stepsAtOnce(p.sum)), factors_);
        s.tail = contiguousLoop(isa_, s.vectors, 1, factors_);
        s.masked = blocks_.isMasked(last);
        if (hasBias_)
            s.epilogue.push_back(EpilogueOp::kBias);
        addEnd(s, end_, p.residualPixel > 0);
        return GemmKernel::emit(isa_, s);
    }

    int64_t stepsOf(Sum const& sum) const { return sum.run / elementsOfStep(factors_); }
    int64_t stepsAtOnce(Sum const& sum) const { return std::clamp<int64_t>(stepsOf(sum), 1, kStepsAtOnce); }

    // Row `i` of the copies of all images, with zeros round what lies in the image.
    void copyRow(PaddedPrepared const& p, TensorRef const& x, int64_t i, float* copy) const
    {
        Geometry const& g = p.g;
        int64_t const plane = i / p.extent[1], n = plane / p.extent[0], pixel = x.pixelStride(), each = p.xPixel;
        int64_t const d = plane % p.extent[0] * copyStep(g, 0, factors_) - g.before[0];
        int64_t const h = i % p.extent[1] * copyStep(g, 1, factors_) - g.before[1], step = copyStep(g, 2, factors_);
        float* const to = copy + i * p.pitch[1];
        if (d < 0 || d >= g.in[0] || h < 0 || h >= g.in[1]) {
            std::fill_n(to, p.pitch[1], 0.F);
            return;
        }
        // Columns [begin, end) of the copy lie in the image.
        int64_t const begin = std::clamp<int64_t>(divideUp(g.before[2], step), 0, p.extent[2]);
        int64_t const end = std::clamp<int64_t>(divideUp(g.before[2] + g.in[2], step), begin, p.extent[2]);
        float const* from =
            x.as<float>() + (((n * g.in[0] + d) * g.in[1] + h) * g.in[2] + begin * step - g.before[2]) * pixel;
        std::fill_n(to, begin * each, 0.F);
        if (isPairs(factors_))
            roundPixels(p, from, end - begin, step * pixel, to + begin * each);
        else if (pixel == each)
            std::copy_n(from, (end - begin) * each, to + begin * each);
        else
            for (int64_t column = begin; column < end; ++column, from += pixel)
                std::copy_n(from, each, to + column * each);
        std::fill(to + end * each, to + p.pitch[1], 0.F);
    }

    void roundPixels(PaddedPrepared const& p, float const* from, int64_t count, int64_t apart, float* to) const
    {
        int64_t const channels = p.g.c / blocks_.groups, elements = p.sum.channels;
        if (blocks_.groups == 1 && channels == 2 * elements && apart == channels)
            return kernels::roundPairs(isa_, to, 0, count * elements, from, 1, count * channels, 0, 1);
        for (int64_t group = 0; group < blocks_.groups; ++group)
            kernels::roundPairs(isa_, to + group * elements, p.xPixel, elements, from + group * channels, count,
                                channels, apart, 1);
    }

    // Tiles [tile, end) of all images' output rows, for the channels of one block.
    void runBlock(PaddedPrepared const& p, RunArgs& args, float const* x, float const* w, int64_t group, int64_t block,
                  int64_t tile, int64_t end) const
    {
        int64_t const first = group * blocks_.groupK + blocks_.first(block);
        bool const last = block == blocks_.count - 1;
        void const* pointers[kMaxPointers];
        GemmArgs a;
        a.a = pointers;
        a.pointers = p.sum.pointers;
        a.ldaBytes = p.stride[2] * p.pitch[2] * 4;
        a.ldcBytes = p.yPixel * 4;
        a.ldrBytes = p.residualPixel * 4;
        a.bodyCount = stepsOf(p.sum) / stepsAtOnce(p.sum);
        a.tailCount = stepsOf(p.sum) % stepsAtOnce(p.sum);
        a.b = w + blocks_.lane(group, block) * p.sum.depth();
        a.bias = hasBias_ ? args.inputs[2].as<float>() + first : nullptr;
        a.lastColumns = blocks_.lastColumns(block);
        float const* const residual = p.residualPixel > 0 ? args.inputs[3].as<float>() + first : nullptr;
        float* const y = args.outputs[0].as<float>() + first;
        p.forTiles(tile, end, [&](int64_t from, int64_t pixel, bool more) {
            for (int64_t f = 0; f < p.sum.pointers; ++f)
                pointers[f] = x + from + group * p.sum.channels + p.offsets[size_t(f)];
            a.c = y + pixel * p.yPixel;
            a.residual = residual ? residual + pixel * p.residualPixel : nullptr;
            p.kernels[more][last](a);
        });
    }

    ir::Node const& node_;
    Isa isa_;
    Factors factors_;
    int threads_;
    kernels::jit::SumEnd end_;
    PaddedBlocks blocks_;
    bool hasBias_;
    std::shared_ptr<device::PackedFloats const> packed_;
};

Support supports(CpuTactic const& t, Problem const& p)
{
    auto const factors = t.variant<Factors>();
    if (isTransposed(*p.node))
        return Support::no("takes no transposed convolutions");
    Weights const weights = isPairs(factors) ? Weights::kConstant : Weights::kAny; // rounded when they are packed
    TW_SUPPORTS(supportsConvolution(p, 3, weights));
    TW_SUPPORTS(supportsFactors(t.isa(), factors));
    Geometry const g = convolutionGeometry(*p.node, p.inputs[0].maxDims, p.inputs[1].dims, p.outputs[0].maxDims);
    if (isPairs(factors) && jumps(jitEnd(*p.node)))
        return Support::no(kJumps);
    if (factors == Factors::kBf16Tiles && g.c / g.groups < kLeastTileChannels)
        return Support::no("would multiply zeros: tiles take 32 channels, a group has " +
                           std::to_string(g.c / g.groups));
    if (Sum(g, factors).pointers > kMaxPointers)
        return Support::no("takes windows of up to " + std::to_string(kMaxPointers) + " elements");
    // The copy of an image that is mostly padding.
    constexpr double kMostFloats = double(1 << 28);
    double floats = double(g.batch) * double(Sum(g, factors).channels * g.groups);
    for (int i = 0; i < 3; ++i)
        floats *= double(extentRead(g, i, factors));
    if (floats > kMostFloats)
        return Support::no("with its padding, the input takes more than 1 GiB");
    return Support::yes();
}

std::vector<Formats> formats(CpuTactic const&, Problem const& p)
{
    Formats f = channelsLastFormats(p);
    f.inputs[1] = Format::kLinear;
    return {f};
}

std::vector<Config> configs(CpuTactic const& t, Problem const& p)
{
    int64_t const vectors = vectorsOfGroup(p, t.isa());
    std::vector<Config> list;
    for (int64_t v : {2, 3, 1, 4})
        if (v <= vectors)
            list.push_back({v});
    return list;
}

double estimate(CpuTactic const& t, Problem const& p, Config const& config)
{
    auto const factors = t.variant<Factors>();
    Geometry const g = convolutionGeometry(*p.node, p.inputs[0].dims, p.inputs[1].dims, p.outputs[0].dims);
    double const width = kernels::jit::vectorWidth(t.isa()), vectors = double(config[0]);
    double const most = kernels::jit::gemmMaxRows(t.isa(), int(config[0]), factors);
    bool const inOneRow = isPairs(factors) && windowOf(g) == 1;
    double const lines = double(g.batch * g.out[0] * g.out[1]);
    double const columns = double(g.out[2]) * (inOneRow ? lines : 1);
    double const rowTiles = std::ceil(columns / most), rows = columns / std::max(rowTiles, 1.);
    double const tiles = (inOneRow ? 1 : lines) * double(g.groups) * rowTiles;
    double const groupVectors = std::ceil(double(g.k / g.groups) / width), blocks = std::ceil(groupVectors / vectors);
    // As of direct convolutions, with a pointer to write for each part of a sum, and the copy at 10 bytes a nanosecond.
    double perStep = std::max(rows * groupVectors / blocks / (t.isa() == Isa::kAvx512 ? 1.5 : 2.), 4.);
    // By pairs: an instruction each, or two with what takes pairs apart, or 16 of them in 16 cycles for 16 rows.
    if (factors == Factors::kBf16Shifts)
        perStep *= 2.4;
    else if (factors == Factors::kBf16Tiles)
        perStep = std::ceil(rows / 16) * groupVectors / blocks;
    Sum const sum(g, factors);
    double copied = double(g.batch) * double(sum.channels * g.groups);
    for (int i = 0; i < 3; ++i)
        copied *= double(extentRead(g, i, factors));
    double const call = perStep * double(sum.pointers * sum.run) / 3000 + 0.02 + 0.001 * double(sum.pointers);
    return (tiles * blocks * call + copied * 8 / 10000) / p.threads;
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& p, Config const& config, PackedConstants& packed)
{
    if (config.size() != 1 || config[0] < 1 || config[0] > 4)
        return t.wrongConfig("{1..4}");
    auto kernel = std::make_unique<PaddedConvolution>(p, t.isa(), t.variant<Factors>(), config);
    TW_TRY(kernel->pack(p, packed));
    return std::unique_ptr<Kernel>(std::move(kernel));
}

} // namespace
} // namespace padded

constexpr CpuFunctions kPaddedConvolution{.supports = padded::supports,
                                          .formats = padded::formats,
                                          .configs = padded::configs,
                                          .estimate = padded::estimate,
                                          .load = padded::load};

} // namespace tw::ops
