// SPDX-License-Identifier: Apache-2.0
// Convolution by the matrix micro-kernel over a copy of the image with its padding: no tap ever falls off, so that any
// window of any size is a list of pointers, one for each of its elements. Rows of a tile are output columns, columns
// are output channels; after each pointer the sum runs over the channels of the group. In one group with dilation 1
// the elements of a filter row follow each other with their channels, and are one pointer together. Where nothing is
// outside and pixels lie dense, the image is read where it is. Weights that are no constants are packed in each run.
// With factors in BF16 (kernels/cpu/casts.h) the copy is what rounds the image: there is always one, of those pixels
// alone that are read, and a window of one element makes one row of all of them.
// Of i8, sums run over four bytes at a time: what is read beyond the last channel of a run is multiplied by zeros. Few
// channels with signs (pictures) are copied as words where products of bytes would have to take signs apart. A
// transposed convolution with stride S is one with stride 1, its window turned round, over an image with S - 1 zeros
// between elements.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "device/large_pages.h"
#include "families/convolution/padded_parts.h"
#include "kernels/cpu/casts.h"

namespace tw::ops {

namespace padded {
namespace {

using kernels::jit::GemmArgs;
using kernels::jit::GemmKernel;
using kernels::jit::GemmKernelSpec;
using kernels::jit::Isa;

constexpr int64_t kLeastTileChannels = 16;
constexpr int64_t kFewChannels = 16; // that linear images of i8 have

struct PaddedPrepared final : PaddedShapes
{
    Spread spread;
    Sum sum;
    PaddedPrepared(Spread const& s, Factors factors) : PaddedShapes(s.g), spread(s), sum(s.g, factors) {}
};

class PaddedConvolution final : public Kernel
{
public:
    PaddedConvolution(Problem const& problem, Isa isa, Factors factors, Config const& config)
        : node_(*problem.node), isa_(isa), factors_(factors), each_(isBytes(factors) ? 1 : 4),
          copied_(bytesRead(factors)), threads_(std::max(problem.threads, 1)), end_(jitEnd(problem, isa)),
          blocks_(problem, isa, config)
    {}

    Result<void> pack(Problem const& p, PackedConstants& packed)
    {
        Blob const* const w = p.inputs[1].constant;
        if (!w)
            return {};
        Geometry const g = Spread(node_, p.inputs[0].dims, p.inputs[1].dims, p.outputs[0].dims).g;
        Extents const& dims = p.inputs[1].dims;
        Recipe recipe{"filters of padded images",
                      {blocks_.width, blocks_.most, blocks_.groups, Sum(g, factors_).joined,
                       isPairs(factors_) ? elementsOfStep(factors_) : 0, isTransposed(node_),
                       isBytes(factors_) ? int64_t(factors_) : 0}};
        recipe.numbers.insert(recipe.numbers.end(), dims.begin(), dims.end());
        TW_ASSIGN(packed_, packed.get<device::PackedFloats>(*w, recipe, [&]() -> Result<device::PackedFloats> {
            int64_t const floats = packedBytes(g) / 4;
            device::PackedFloats weights(floats);
            if (!weights.data())
                return failedAllocation("no memory for {} bytes of packed weights", floats * 4);
            for (int64_t i = 0; i < blocks_.groups * blocks_.count; ++i)
                packBlock(g, w->data(), i / blocks_.count, i % blocks_.count, weights.data());
            return weights;
        }));
        return {};
    }

    bool readsConstant(size_t i) const override { return i != 1 || !packed_; }

    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const override
    {
        Geometry const g = Spread(node_, in[0].dims, in[1].dims, out[0].dims).g;
        return copiedBytes(g) + (packed_ ? 0 : packedBytes(g));
    }

    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const> out) const override
    {
        TensorRef const &x = in[0], &y = out[0];
        auto p = std::make_shared<PaddedPrepared>(Spread(node_, x.dims, in[1].dims, y.dims), factors_);
        if (y.count() == 0)
            return std::shared_ptr<Prepared const>(std::move(p));
        Geometry const& g = p->g;
        bool const isLinear = x.format == Format::kLinear;
        p->yPixel = y.pixelStride() * end_.yBytes();
        p->residualPixel = end_.hasResidual() ? in[Epilogue::kResidual].pixelStride() * end_.residualBytes() : 0;
        p->copies =
            isPairs(factors_) || (p->sum.joined && g.window[2] > 1 && (isBytes(factors_) || x.pixelStride() != g.c));
        // What is read beyond the channels lies in the pixel's gap.
        if (isBytes(factors_))
            p->copies = p->copies || isLinear || factors_ == Factors::kWordPairs ||
                        (g.groups - 1) * p->sum.channels + 4 * p->sum.steps > x.pixelStride();
        for (int i = 0; i < 3; ++i)
            p->copies =
                p->copies || p->spread.spread[i] > 1 || g.before[i] != 0 || extentRead(g, i, factors_) > g.in[i];
        p->xPixel = p->copies ? p->sum.channels * blocks_.groups * copied_ : x.pixelStride() * each_;
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
        auto* const copy = static_cast<char*>(args.workspace);
        float* const packs = packed_ ? nullptr : reinterpret_cast<float*>(copy + copiedBytes(p.g));
        char const* const x = p.copies ? copy : args.inputs[0].as<char>();
        float const* const w = packs ? packs : packed_->data();
        p.share(
            *args.workers, threads_, blocks_, packs != nullptr,
            [&](int64_t row) { copyRow(p, args.inputs[0], row, copy); },
            [&](int64_t group, int64_t block) { packBlock(p.g, args.inputs[1].data, group, block, packs); },
            [&](int64_t group, int64_t block, int64_t tile, int64_t end) {
                kernels::jit::TileScope const scope(factors_);
                runBlock(p, args, x, w, group, block, tile, end);
            });
        return {};
    }

private:
    // In whole cache lines, with what a tile reads behind its last row, and four bytes at a time beyond the last pixel;
    // for images that are read in place, too.
    int64_t copiedBytes(Geometry const& g) const
    {
        int64_t const pixel = Sum(g, factors_).channels * blocks_.groups;
        int64_t elements = g.batch * pixel;
        for (int i = 0; i < 3; ++i)
            elements *= std::max<int64_t>(extentRead(g, i, factors_), 0);
        int64_t const behind = kernels::jit::gemmRowsRead(factors_, 1) - 1;
        return roundUp((elements + behind * pixel * strideRead(g, 2, factors_)) * copied_ + (isBytes(factors_) ? 4 : 0),
                       kCacheLine);
    }
    // Rows of lanes of a block.
    int64_t depth(Geometry const& g) const
    {
        Sum const sum(g, factors_);
        return sum.pointers * (isBytes(factors_) ? sum.steps : sum.run);
    }
    // Filters, then, of i8, the start of each sum.
    int64_t packedBytes(Geometry const& g) const
    {
        return blocks_.lanesOfAll() * (depth(g) + (isBytes(factors_) ? 1 : 0)) * 4;
    }

    // w [K, C, window] (transposed: [C, K, window]) to [group][block][pointer][run][lanes of the block], zero after the
    // group's last channel.
    void packBlock(Geometry const& g, void const* w, int64_t group, int64_t block, float* packed) const
    {
        Sum const sum(g, factors_);
        int64_t const lanes = blocks_.lanes(block), first = blocks_.first(block), channels = g.c / blocks_.groups;
        int64_t const groupK = blocks_.groupK, exist = std::min(lanes, groupK - first), window = windowOf(g);
        bool const transposed = isTransposed(node_);
        int64_t const perK = transposed ? window : channels * window, perC = transposed ? groupK * window : window;
        int64_t const at = (transposed ? group * channels * perC : group * groupK * perK) + first * perK;
        float* to = packed + blocks_.lane(group, block) * depth(g);
        if (isBytes(factors_))
            return packBytes(g, static_cast<int8_t const*>(w) + at, exist, lanes, perK, perC, to,
                             packed + blocks_.lanesOfAll() * depth(g) + blocks_.lane(group, block));
        float const* const from = static_cast<float const*>(w) + at;
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

    void packBytes(Geometry const& g, int8_t const* from, int64_t exist, int64_t lanes, int64_t perK, int64_t perC,
                   float* packed, float* starts) const
    {
        Sum const sum(g, factors_);
        int64_t const window = windowOf(g);
        auto* to = reinterpret_cast<int8_t*>(packed);
        int64_t const each = kernels::jit::bytesOfStep(factors_);
        for (int64_t f = 0; f < sum.pointers; ++f)
            for (int64_t i = 0; i < sum.steps; ++i, to += 4 * lanes) {
                std::memset(to, 0, size_t(4 * lanes));
                for (int64_t u = each * i; u < std::min(each * (i + 1), sum.run); ++u) {
                    int64_t const tap = sum.joined ? f * g.window[2] + u / sum.channels : f;
                    int8_t const* const filter =
                        from + u % sum.channels * perC + (isTransposed(node_) ? window - 1 - tap : tap);
                    for (int64_t k = 0; k < exist; ++k)
                        if (each == 4)
                            to[4 * k + u % 4] = filter[k * perK];
                        else
                            reinterpret_cast<int16_t*>(to)[2 * k + u % 2] = filter[k * perK];
                }
            }
        auto* const start = reinterpret_cast<int32_t*>(starts);
        std::fill_n(start, lanes, 0);
        kernels::jit::integerStart(factors_, reinterpret_cast<int8_t const*>(packed), sum.pointers * sum.steps, lanes,
                                   start);
    }

    Result<GemmKernel> emit(PaddedPrepared const& p, int rows, bool last) const
    {
        GemmKernelSpec s;
        s.rows = rows;
        s.vectors = int(blocks_.lanes(last ? blocks_.count - 1 : 0) / blocks_.width);
        s.factors = factors_;
        s.body = contiguousLoop(isa_, s.vectors, int(p.sum.stepsAtOnce()), factors_);
        s.tail = contiguousLoop(isa_, s.vectors, 1, factors_);
        s.masked = blocks_.isMasked(last);
        end_.add(s);
        return GemmKernel::emit(isa_, s);
    }

    // to[i][c] = from[c][i] for i < count; planes are `plane` bytes apart.
    template <class Number>
    static void joinPlanes(int8_t const* from, int64_t plane, int64_t channels, int64_t count, Number* to)
    {
        int64_t done = 0;
        if (channels == 3) { // each pixel with a number that the next one overwrites
            using Unsigned = std::make_unsigned_t<Number>;
            using Four = std::conditional_t<sizeof(Number) == 1, uint32_t, uint64_t>;
            constexpr int kBits = 8 * sizeof(Number);
            int8_t const *r = from, *g = r + plane, *b = g + plane;
            auto one = [](int8_t v) { return Four(Unsigned(Number(v))); };
            for (; done + 1 < count; ++done) {
                Four const pixel = one(r[done]) | one(g[done]) << kBits | one(b[done]) << 2 * kBits;
                std::memcpy(to + 3 * done, &pixel, sizeof(pixel));
            }
        }
        for (int64_t c = 0; c < channels; ++c)
            for (int64_t i = done; i < count; ++i)
                to[i * channels + c] = from[c * plane + i];
    }

    // Row `i` of the copies of all images: a row of the image with zeros round it, and between its elements.
    void copyRow(PaddedPrepared const& p, TensorRef const& x, int64_t i, char* copy) const
    {
        Geometry const& g = p.g;
        int64_t const *in = p.spread.in, *spread = p.spread.spread;
        int64_t const plane = i / p.extent[1], n = plane / p.extent[0], step = copyStep(g, 2, factors_);
        int64_t const d = plane % p.extent[0] * copyStep(g, 0, factors_) - g.before[0];
        int64_t const h = i % p.extent[1] * copyStep(g, 1, factors_) - g.before[1];
        char* const to = copy + i * p.pitch[1];
        bool const isOutside =
            d < 0 || d >= g.in[0] || h < 0 || h >= g.in[1] || d % spread[0] != 0 || h % spread[1] != 0;
        if (isOutside || spread[2] > 1)
            std::memset(to, 0, size_t(p.pitch[1]));
        if (isOutside)
            return;
        bool const isLinear = isBytes(factors_) && x.format == Format::kLinear;
        int64_t const row = (d / spread[0] * in[1] + h / spread[1]) * in[2], planeBytes = in[0] * in[1] * in[2];
        char const* const image = x.as<char>() + n * planeBytes * (isLinear ? g.c : x.pixelStride() * each_);
        if (spread[2] > 1) { // of i8
            for (int64_t w = 0; w < in[2]; ++w)
                if (int64_t const column = g.before[2] + w * spread[2]; column >= 0 && column < p.extent[2])
                    for (int64_t c = 0; c < g.c; ++c)
                        to[column * g.c + c] =
                            image[isLinear ? c * planeBytes + row + w : (row + w) * x.pixelStride() + c];
            return;
        }
        // Columns [begin, end) of the copy lie in the image.
        int64_t const begin = std::clamp<int64_t>(divideUp(g.before[2], step), 0, p.extent[2]);
        int64_t const end = std::clamp<int64_t>(divideUp(g.before[2] + g.in[2], step), begin, p.extent[2]);
        int64_t const first = row + begin * step - g.before[2], pixel = x.pixelStride() * each_, each = p.xPixel;
        std::memset(to, 0, size_t(begin * each));
        std::memset(to + end * each, 0, size_t(p.pitch[1] - end * each));
        char* const inside = to + begin * each;
        char const* from = image + first * pixel;
        if (isLinear) {
            auto const* const planes = reinterpret_cast<int8_t const*>(image) + first;
            factors_ == Factors::kWordPairs
                ? joinPlanes(planes, planeBytes, g.c, end - begin, reinterpret_cast<int16_t*>(inside))
                : joinPlanes(planes, planeBytes, g.c, end - begin, reinterpret_cast<int8_t*>(inside));
        } else if (factors_ == Factors::kWordPairs) {
            for (int64_t column = 0; column < end - begin; ++column)
                std::copy_n(reinterpret_cast<int8_t const*>(from) + column * pixel, g.c,
                            reinterpret_cast<int16_t*>(inside) + column * g.c);
        } else if (isPairs(factors_)) {
            roundPixels(p, reinterpret_cast<float const*>(from), end - begin, step * x.pixelStride(),
                        reinterpret_cast<float*>(inside));
        } else if (pixel == each) {
            std::memcpy(inside, from, size_t((end - begin) * each));
        } else {
            for (int64_t column = 0; column < end - begin; ++column)
                std::memcpy(inside + column * each, from + column * pixel, size_t(each));
        }
    }

    void roundPixels(PaddedPrepared const& p, float const* from, int64_t count, int64_t apart, float* to) const
    {
        int64_t const channels = p.g.c / blocks_.groups, elements = p.sum.channels;
        if (blocks_.groups == 1 && channels == 2 * elements && apart == channels)
            return kernels::roundPairs(isa_, to, 0, count * elements, from, 1, count * channels, 0, 1);
        for (int64_t group = 0; group < blocks_.groups; ++group)
            kernels::roundPairs(isa_, to + group * elements, p.xPixel / 4, elements, from + group * channels, count,
                                channels, apart, 1);
    }

    // Tiles [tile, end) of all images' output rows, for the channels of one block.
    void runBlock(PaddedPrepared const& p, RunArgs& args, char const* x, float const* w, int64_t group, int64_t block,
                  int64_t tile, int64_t end) const
    {
        int64_t const lane = blocks_.lane(group, block);
        bool const last = block == blocks_.count - 1;
        void const* pointers[kMaxPointers];
        GemmArgs a;
        a.a = pointers;
        a.pointers = p.sum.pointers;
        a.ldaBytes = p.stride[2] * p.pitch[2];
        a.bodyCount = p.sum.steps / p.sum.stepsAtOnce();
        a.tailCount = p.sum.steps % p.sum.stepsAtOnce();
        a.b = w + lane * depth(p.g);
        if (isBytes(factors_))
            a.start = reinterpret_cast<int32_t const*>(w + blocks_.lanesOfAll() * depth(p.g)) + lane;
        end_.set(a, args, group * blocks_.groupK + blocks_.first(block));
        a.ldcBytes = p.yPixel;
        a.ldrBytes = p.residualPixel;
        a.lastColumns = blocks_.lastColumns(block);
        auto* const y = static_cast<char*>(a.c);
        auto const* const residual = static_cast<char const*>(a.residual);
        p.forTiles(tile, end, [&](int64_t from, int64_t pixel, bool more) {
            for (int64_t f = 0; f < p.sum.pointers; ++f)
                pointers[f] = x + from + group * p.sum.channels * (p.copies ? copied_ : each_) + p.offsets[size_t(f)];
            a.c = y + pixel * p.yPixel;
            a.residual = residual ? residual + pixel * p.residualPixel : nullptr;
            p.kernels[more][last](a);
        });
    }

    ir::Node const& node_;
    Isa isa_;
    Factors factors_;
    int64_t each_, copied_; // bytes of an element of x, and of its copy
    int threads_;
    JitEnd end_;
    PaddedBlocks blocks_;
    std::shared_ptr<device::PackedFloats const> packed_;
};

Factors factorsOf(CpuTactic const& t, Problem const& p)
{
    if (!isQuantized(p.inputs[0].type))
        return t.variant<Factors>();
    Factors const factors = byteFactors(p, t.isa());
    if (factors != Factors::kByteSigns && factors != Factors::kByteWords)
        return factors;
    // With signs the sums of each pixel would begin with another value.
    return p.inputs[0].maxDims[1] <= kFewChannels && !isTransposed(*p.node) ? Factors::kWordPairs : Factors::kByteWords;
}

Support supportsSizes(Problem const& p, Factors factors)
{
    Geometry const g = Spread(*p.node, p.inputs[0].maxDims, p.inputs[1].dims, p.outputs[0].maxDims).g;
    Sum const sum(g, factors);
    if (sum.pointers > kMaxPointers)
        return Support::no(fmt::format("takes windows of up to {} elements", kMaxPointers));
    // The copy of an image that is mostly padding.
    constexpr double kMostBytes = double(1 << 30);
    double bytes = double(g.batch) * double(sum.channels * g.groups) * double(bytesRead(factors));
    for (int i = 0; i < 3; ++i)
        bytes *= double(extentRead(g, i, factors));
    if (bytes > kMostBytes)
        return Support::no("with its padding, the input takes more than 1 GiB");
    return Support::yes();
}

Support supports(CpuTactic const& t, Problem const& p)
{
    auto const factors = t.variant<Factors>();
    if (isTransposed(*p.node))
        return Support::no("takes no transposed convolutions");
    Weights const weights = isPairs(factors) ? Weights::kConstant : Weights::kAny; // rounded when they are packed
    TW_SUPPORTS(supportsConvolution(p, 3, weights));
    TW_SUPPORTS(supportsFactors(*p.target.cpu, t.isa(), factors));
    if (isPairs(factors) && jumps(jitEnd(*p.node)))
        return Support::no(kJumps);
    int64_t const channels = p.inputs[0].maxDims[1] / p.node->attrsAs<KernelWindowAttrs>().groups;
    if (factors == Factors::kBf16Tiles && channels < kLeastTileChannels)
        return Support::no(fmt::format("would multiply zeros: tiles take 32 channels, a group has {}", channels));
    return supportsSizes(p, factors);
}

Support supportsBytes(CpuTactic const& t, Problem const& p)
{
    TW_SUPPORTS(supportsInt8Convolution(p, 3, Weights::kAny));
    return supportsSizes(p, factorsOf(t, p));
}

std::vector<Formats> formats(CpuTactic const&, Problem const& p)
{
    Formats f = channelsLastFormats(p);
    f.inputs[1] = Format::kLinear;
    std::vector<Formats> list{f};
    Extents const& x = p.inputs[0].dims;
    if (isQuantized(p.inputs[0].type) && x.rank >= 3 && x[1] <= kFewChannels && f.inputs[0] != Format::kLinear) {
        f.inputs[0] = Format::kLinear;
        list.push_back(f);
    }
    return list;
}

std::vector<Config> configs(CpuTactic const& t, Problem const& p)
{
    int64_t const vectors = vectorsOfGroup(p, t.isa());
    std::vector<Config> list;
    if (isQuantized(p.inputs[0].type)) {
        for (int64_t v : int8TileVectors(p, t.isa(), vectors))
            list.push_back({v});
        return list;
    }
    for (int64_t v : {2, 3, 1, 4})
        if (v <= vectors)
            list.push_back({v});
    return list;
}

double estimate(CpuTactic const& t, Problem const& p, Config const& config)
{
    Factors const factors = factorsOf(t, p);
    bool const bytes = isBytes(factors);
    Geometry const g = Spread(*p.node, p.inputs[0].dims, p.inputs[1].dims, p.outputs[0].dims).g;
    double const width = kernels::jit::vectorWidth(t.isa()), vectors = double(config[0]);
    double const most = kernels::jit::gemmMaxRows(t.isa(), int(config[0]), factors);
    bool const inOneRow = isPairs(factors) && windowOf(g) == 1;
    double const lines = double(g.batch * g.out[0] * g.out[1]);
    double const columns = double(g.out[2]) * (inOneRow ? lines : 1);
    double const rowTiles = std::ceil(columns / most), rows = columns / std::max(rowTiles, 1.);
    double const tiles = (inOneRow ? 1 : lines) * double(g.groups) * rowTiles;
    double const groupVectors = std::ceil(double(g.k / g.groups) / width), blocks = std::ceil(groupVectors / vectors);
    // As of direct convolutions, with a pointer to write for each part of a sum, and the copy at 10 bytes a nanosecond.
    double const perCycle = bytes ? factors == Factors::kWordPairs ? 2. : 1. : t.isa() == Isa::kAvx512 ? 1.5 : 2.;
    double perStep = std::max(rows * groupVectors / blocks / perCycle, 4.);
    // By pairs: an instruction each, or two with what takes pairs apart, or 16 of them in 16 cycles for 16 rows.
    if (factors == Factors::kBf16Shifts)
        perStep *= 2.4;
    else if (factors == Factors::kBf16Tiles)
        perStep = std::ceil(rows / 16) * groupVectors / blocks;
    Sum const sum(g, factors);
    double copied = double(g.batch) * double(sum.channels * g.groups) * double(bytesRead(factors));
    for (int i = 0; i < 3; ++i)
        copied *= double(extentRead(g, i, factors));
    // The end of sums of i8 is as long as six steps.
    double const steps = bytes ? double(sum.pointers * sum.steps) + 6 : double(sum.pointers * sum.run);
    double const call = perStep * steps / 3000 + (bytes ? 0.03 : 0.02) + 0.001 * double(sum.pointers);
    return (tiles * blocks * call + copied * 2 / 10000) / p.threads;
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& p, Config const& config, PackedConstants& packed)
{
    if (config.size() != 1 || config[0] < 1 || config[0] > 4)
        return t.wrongConfig("{1..4}");
    auto kernel = std::make_unique<PaddedConvolution>(p, t.isa(), factorsOf(t, p), config);
    TW_TRY(kernel->pack(p, packed));
    return std::unique_ptr<Kernel>(std::move(kernel));
}

} // namespace
} // namespace padded

constexpr CpuFunctions kPaddedConvolution{padded::supports, padded::formats, padded::configs, padded::estimate,
                                          padded::load};
constexpr CpuFunctions kInt8PaddedConvolution{padded::supportsBytes, padded::formats, padded::configs, padded::estimate,
                                              padded::load};

} // namespace tw::ops
