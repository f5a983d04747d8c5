// SPDX-License-Identifier: Apache-2.0
// Convolution of i8 by the micro-kernel over a copy of the image with its padding, as padded.cpp does it with floats.
// Pixels of the copy lie dense. A transposed convolution with stride S is one with stride 1, its window turned round,
// over an image with S - 1 zeros between elements. Sums run over four bytes at a time: what is read beyond the last channel of a run is
// multiplied by zeros.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "device/large_pages.h"
#include "families/convolution/padded_parts.h"

namespace tw::ops {

namespace int8_padded {
namespace {

using convolution::Geometry;
using kernels::jit::Factors;
using kernels::jit::GemmArgs;
using kernels::jit::GemmKernel;
using kernels::jit::GemmKernelSpec;
using kernels::jit::Isa;

constexpr int64_t kQuadsAtOnce = 8;  // of emitted code
constexpr int64_t kFewChannels = 16; // that linear images have

// How the sum for one output runs through the image.
struct Int8Sum
{
    bool joined = false; // the elements of a filter row are one run
    int64_t pointers = 0, run = 0, quads = 0;
    explicit Int8Sum(Geometry const& g)
        : joined(g.groups == 1 && (g.dilation[2] == 1 || g.window[2] == 1)),
          pointers(g.window[0] * g.window[1] * (joined ? 1 : g.window[2])),
          run(g.c / g.groups * (joined ? g.window[2] : 1)), quads(divideUp(run, 4))
    {}
};

// As the loops have it; `spread`: how far elements of x are from each other in what it is read as.
struct Spread
{
    Geometry g;
    int64_t spread[3]{1, 1, 1}, in[3]{1, 1, 1}; // in: of x
    bool transposed = false;
    Spread(ir::Node const& node, Extents const& x, Extents const& w, Extents const& y)
        : g(convolutionGeometry(node, x, w, y)), transposed(isTransposed(node))
    {
        for (int i = 0; i < 3; ++i) {
            in[i] = g.in[i];
            if (!transposed)
                continue;
            spread[i] = g.stride[i];
            g.in[i] = std::max<int64_t>(g.in[i] - 1, 0) * g.stride[i] + std::min<int64_t>(g.in[i], 1);
            g.before[i] = (g.window[i] - 1) * g.dilation[i] - g.before[i];
            g.stride[i] = 1;
        }
    }
};

// Input elements along an axis that the outputs read, those of the padding included.
int64_t extentRead(Geometry const& g, int axis)
{
    return (g.out[axis] - 1) * g.stride[axis] + (g.window[axis] - 1) * g.dilation[axis] + 1;
}

struct Int8PaddedPrepared final : PaddedShapes<GemmKernel>
{
    Spread spread;
    Int8Sum sum;
    explicit Int8PaddedPrepared(Spread const& s) : PaddedShapes(s.g), spread(s), sum(s.g) {}
};

class Int8PaddedConvolution final : public Kernel
{
public:
    Int8PaddedConvolution(Problem const& problem, Isa isa, Config const& config)
        : node_(*problem.node), ends_(int8Ends(problem, isa)), isa_(isa), factors_(byteFactors(isa)),
          threads_(std::max(problem.threads, 1)), blocks_(problem, isa, config)
    {}

    Result<void> pack(Problem const& p, PackedConstants& packed)
    {
        Blob const* const w = p.inputs[1].constant;
        if (!w)
            return {};
        Geometry const g = Spread(node_, p.inputs[0].dims, p.inputs[1].dims, p.outputs[0].dims).g;
        Extents const& dims = p.inputs[1].dims;
        Recipe recipe{
            "filters of padded images of i8",
            {blocks_.width, blocks_.most, blocks_.groups, Int8Sum(g).joined, isTransposed(node_), int64_t(factors_)}};
        recipe.numbers.insert(recipe.numbers.end(), dims.begin(), dims.end());
        TW_ASSIGN(packed_, packed.get<device::PackedFloats>(*w, recipe, [&]() -> Result<device::PackedFloats> {
            int64_t const bytes = packedBytes(g);
            device::PackedFloats weights(divideUp(bytes, 4));
            if (!weights.data())
                return Error{ErrorCode::kFailedAllocation,
                             "no memory for " + std::to_string(bytes) + " bytes of packed weights"};
            for (int64_t i = 0; i < blocks_.groups * blocks_.count; ++i)
                packBlock(g, w->as<int8_t>(), i / blocks_.count, i % blocks_.count,
                          reinterpret_cast<int8_t*>(weights.data()));
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
        auto p = std::make_shared<Int8PaddedPrepared>(Spread(node_, x.dims, in[1].dims, y.dims));
        if (y.count() == 0)
            return std::shared_ptr<Prepared const>(std::move(p));
        Geometry const& g = p->g;
        bool const isLinear = x.format == Format::kLinear;
        p->yPixel = y.pixelStride() * ends_.yBytes();
        p->residualPixel = ends_.hasResidual() ? in[Epilogue::kResidual].pixelStride() * ends_.residualBytes() : 0;
        // What is read beyond the channels lies in the pixel's gap.
        int64_t const read = (g.groups - 1) * (g.c / g.groups) + 4 * p->sum.quads;
        p->copies = isLinear || (p->sum.joined && g.window[2] > 1) || read > x.pixelStride();
        for (int i = 0; i < 3; ++i)
            p->copies = p->copies || p->spread.spread[i] > 1 || g.before[i] != 0 || extentRead(g, i) > g.in[i];
        p->xPixel = p->copies ? g.c : x.pixelStride();
        p->layOut(
            p->sum.joined, [&](int i) { return extentRead(g, i); }, [&](int i) { return g.stride[i]; });
        TW_TRY(p->cut(kernels::jit::gemmMaxRows(isa_, int(blocks_.most), factors_),
                      [&](int rows, bool last) { return emit(*p, rows, last); }));
        return std::shared_ptr<Prepared const>(std::move(p));
    }

    Result<void> run(RunArgs& args) const override
    {
        auto const& p = *static_cast<Int8PaddedPrepared const*>(args.prepared);
        if (p.tiles == 0)
            return {};
        auto* const copy = static_cast<int8_t*>(args.workspace);
        int8_t* const packs = packed_ ? nullptr : copy + copiedBytes(p.g);
        auto const* const x = p.copies ? copy : args.inputs[0].as<int8_t>();
        auto const* const w = packs ? packs : reinterpret_cast<int8_t const*>(packed_->data());
        p.share(
            *args.workers, threads_, blocks_, packs != nullptr,
            [&](int64_t row) { copyRow(p, args.inputs[0], row, copy); },
            [&](int64_t group, int64_t block) { packBlock(p.g, args.inputs[1].as<int8_t>(), group, block, packs); },
            [&](int64_t group, int64_t block, int64_t tile, int64_t end) {
                runBlock(p, args, x, w, group, block, tile, end);
            });
        return {};
    }

private:
    // In whole cache lines, with room for what is read beyond the last pixel; for images that are read in place, too.
    static int64_t copiedBytes(Geometry const& g)
    {
        int64_t bytes = g.batch * g.c;
        for (int i = 0; i < 3; ++i)
            bytes *= std::max<int64_t>(extentRead(g, i), 0);
        return roundUp(bytes + 4, kCacheLine);
    }
    int64_t blockDepth(Geometry const& g) const { return Int8Sum(g).pointers * Int8Sum(g).quads * 4; }
    // Filters, then the start of each sum.
    int64_t packedBytes(Geometry const& g) const { return blocks_.lanesOfAll() * (blockDepth(g) + 4); }
    int32_t* starts(Geometry const& g, int8_t* packed) const
    {
        return reinterpret_cast<int32_t*>(packed + blocks_.lanesOfAll() * blockDepth(g));
    }

    // w [K, C, window] (transposed: [C, K, window]) to [group][block][pointer][quad][lanes of the block][4], zero after the group's last channel.
    void packBlock(Geometry const& g, int8_t const* w, int64_t group, int64_t block, int8_t* packed) const
    {
        Int8Sum const sum(g);
        int64_t const lanes = blocks_.lanes(block), first = blocks_.first(block), channels = g.c / blocks_.groups;
        int64_t const groupK = blocks_.groupK, exist = std::min(lanes, groupK - first), at = blocks_.lane(group, block);
        int64_t const window = g.window[0] * g.window[1] * g.window[2];
        bool const transposed = isTransposed(node_);
        int64_t const perK = transposed ? window : channels * window, perC = transposed ? groupK * window : window;
        int8_t* const begin = packed + at * blockDepth(g);
        int8_t* to = begin;
        int8_t const* const from = w + (transposed ? group * channels * perC : group * groupK * perK) + first * perK;
        for (int64_t f = 0; f < sum.pointers; ++f)
            for (int64_t i = 0; i < sum.quads; ++i, to += 4 * lanes) {
                std::memset(to, 0, size_t(4 * lanes));
                for (int64_t u = 4 * i; u < std::min(4 * i + 4, sum.run); ++u) {
                    int64_t const tap = sum.joined ? f * g.window[2] + u / channels : f;
                    int8_t const* const filter = from + u % channels * perC + (transposed ? window - 1 - tap : tap);
                    for (int64_t k = 0; k < exist; ++k)
                        to[4 * k + u % 4] = filter[k * perK];
                }
            }
        int32_t* const start = starts(g, packed) + at;
        std::fill(start, start + lanes, 0);
        kernels::jit::integerStart(factors_, begin, sum.pointers * sum.quads, lanes, start);
    }

    Result<GemmKernel> emit(Int8PaddedPrepared const& p, int rows, bool last) const
    {
        GemmKernelSpec s;
        s.rows = rows;
        s.vectors = int(blocks_.lanes(last ? blocks_.count - 1 : 0) / blocks_.width);
        s.body = kernels::jit::contiguousLoop(isa_, s.vectors, int(stepsAtOnce(p.sum)));
        s.tail = kernels::jit::contiguousLoop(isa_, s.vectors, 1);
        s.factors = factors_;
        s.masked = blocks_.isMasked(last);
        addEnd(s, ends_.end());
        return GemmKernel::emit(isa_, s);
    }
    static int64_t stepsAtOnce(Int8Sum const& sum) { return std::min(kQuadsAtOnce, sum.quads); }

    // to[i][c] = from[c][i] for i < count; planes are `plane` bytes apart.
    static void joinPlanes(int8_t const* from, int64_t plane, int64_t channels, int64_t count, int8_t* to)
    {
        int64_t done = 0;
        if (channels == 3) { // each pixel with a byte that the next one overwrites
            auto const *r = reinterpret_cast<uint8_t const*>(from), *g = r + plane, *b = g + plane;
            for (; done + 1 < count; ++done) {
                uint32_t const pixel = uint32_t(r[done]) | uint32_t(g[done]) << 8 | uint32_t(b[done]) << 16;
                std::memcpy(to + 3 * done, &pixel, sizeof(pixel));
            }
        }
        for (int64_t c = 0; c < channels; ++c)
            for (int64_t i = done; i < count; ++i)
                to[i * channels + c] = from[c * plane + i];
    }

    // Row `i` of the copies of all images: a row of the image with zeros round it, and between its elements.
    static void copyRow(Int8PaddedPrepared const& p, TensorRef const& x, int64_t i, int8_t* copy)
    {
        Geometry const& g = p.g;
        int64_t const *in = p.spread.in, *apart = p.spread.spread;
        int64_t const h = i % p.extent[1] - g.before[1], d = i / p.extent[1] % p.extent[0] - g.before[0];
        int64_t const n = i / p.extent[1] / p.extent[0];
        int8_t* const to = copy + i * p.pitch[1];
        if (d < 0 || d >= g.in[0] || h < 0 || h >= g.in[1] || d % apart[0] != 0 || h % apart[1] != 0) {
            std::memset(to, 0, size_t(p.pitch[1]));
            return;
        }
        int64_t const plane = in[0] * in[1] * in[2], row = (d / apart[0] * in[1] + h / apart[1]) * in[2];
        if (apart[2] > 1) {
            std::memset(to, 0, size_t(p.pitch[1]));
            for (int64_t w = 0; w < in[2]; ++w)
                if (int64_t const column = g.before[2] + w * apart[2]; column >= 0 && column < p.extent[2])
                    for (int64_t c = 0; c < g.c; ++c)
                        to[column * g.c + c] = x.format == Format::kLinear
                                                   ? x.as<int8_t>()[(n * g.c + c) * plane + row + w]
                                                   : x.as<int8_t>()[(n * plane + row + w) * x.pixelStride() + c];
            return;
        }
        // Columns [begin, end) of the copy lie in the image.
        int64_t const begin = std::clamp<int64_t>(g.before[2], 0, p.extent[2]);
        int64_t const end = std::clamp<int64_t>(g.before[2] + g.in[2], begin, p.extent[2]);
        std::memset(to, 0, size_t(begin * g.c));
        std::memset(to + end * g.c, 0, size_t(p.pitch[1] - end * g.c));
        int64_t const first = row + begin - g.before[2];
        if (x.format == Format::kLinear) {
            joinPlanes(x.as<int8_t>() + n * g.c * plane + first, plane, g.c, end - begin, to + begin * g.c);
            return;
        }
        int64_t const pixel = x.pixelStride();
        int8_t const* from = x.as<int8_t>() + (n * plane + first) * pixel;
        for (int64_t column = begin; column < end; ++column, from += pixel)
            std::memcpy(to + column * g.c, from, size_t(g.c));
    }

    // Tiles [tile, end) of all images' output rows, for the channels of one block.
    void runBlock(Int8PaddedPrepared const& p, RunArgs& args, int8_t const* x, int8_t const* w, int64_t group,
                  int64_t block, int64_t tile, int64_t end) const
    {
        Geometry const& g = p.g;
        int64_t const lane = blocks_.lane(group, block);
        bool const last = block == blocks_.count - 1;
        void const* pointers[kMaxPointers];
        GemmArgs a;
        a.a = pointers;
        a.pointers = p.sum.pointers;
        a.ldaBytes = g.stride[2] * p.pitch[2];
        a.b = w + lane * blockDepth(g);
        a.start = starts(g, const_cast<int8_t*>(w)) + lane;
        a.bodyCount = p.sum.quads / stepsAtOnce(p.sum);
        a.tailCount = p.sum.quads % stepsAtOnce(p.sum);
        ends_.set(a, args, group * blocks_.groupK + blocks_.first(block));
        a.ldcBytes = p.yPixel;
        a.ldrBytes = p.residualPixel;
        a.lastColumns = blocks_.lastColumns(block);
        auto* const y = static_cast<char*>(a.c);
        auto const* const residual = static_cast<char const*>(a.residual);
        p.forTiles(tile, end, [&](int64_t from, int64_t pixel, bool more) {
            for (int64_t f = 0; f < p.sum.pointers; ++f)
                pointers[f] = x + from + group * (g.c / blocks_.groups) + p.offsets[size_t(f)];
            a.c = y + pixel * p.yPixel;
            a.residual = residual ? residual + pixel * p.residualPixel : nullptr;
            p.kernels[more][last](a);
        });
    }

    ir::Node const& node_;
    Int8Ends ends_;
    Isa isa_;
    Factors factors_;
    int threads_;
    PaddedBlocks blocks_;
    std::shared_ptr<device::PackedFloats const> packed_;
};

Support supports(CpuTactic const&, Problem const& p)
{
    TW_SUPPORTS(supportsInt8Convolution(p, 3, Weights::kAny));
    Geometry const g = Spread(*p.node, p.inputs[0].maxDims, p.inputs[1].dims, p.outputs[0].maxDims).g;
    if (Int8Sum(g).pointers > kMaxPointers)
        return Support::no("takes windows of up to " + std::to_string(kMaxPointers) + " elements");
    // The copy of an image that is mostly padding.
    constexpr double kMostBytes = double(1 << 30);
    double bytes = double(g.batch) * double(g.c);
    for (int i = 0; i < 3; ++i)
        bytes *= double(extentRead(g, i));
    if (bytes > kMostBytes)
        return Support::no("with its padding, the input takes more than 1 GiB");
    return Support::yes();
}

std::vector<Formats> formats(CpuTactic const&, Problem const& p)
{
    Formats f = channelsLastFormats(p);
    f.inputs[1] = Format::kLinear;
    std::vector<Formats> list{f};
    Extents const& x = p.inputs[0].dims;
    if (x.rank >= 3 && x[1] <= kFewChannels && f.inputs[0] != Format::kLinear) {
        f.inputs[0] = Format::kLinear;
        list.push_back(f);
    }
    return list;
}

std::vector<Config> configs(CpuTactic const& t, Problem const& p)
{
    int64_t const vectors = vectorsOfGroup(p, t.isa());
    std::vector<Config> list;
    for (int64_t v : int8TileVectors(t.isa(), vectors))
        list.push_back({v});
    return list;
}

double estimate(CpuTactic const& t, Problem const& p, Config const& config)
{
    Geometry const g = Spread(*p.node, p.inputs[0].dims, p.inputs[1].dims, p.outputs[0].dims).g;
    double const width = kernels::jit::vectorWidth(t.isa()), vectors = double(config[0]);
    double const most = kernels::jit::gemmMaxRows(t.isa(), int(config[0]), byteFactors(t.isa()));
    double const rowTiles = std::ceil(double(g.out[2]) / most), rows = double(g.out[2]) / std::max(rowTiles, 1.);
    double const tiles = double(g.batch * g.out[0] * g.out[1] * g.groups) * rowTiles;
    double const groupVectors = std::ceil(double(g.k / g.groups) / width), blocks = std::ceil(groupVectors / vectors);
    // A product a cycle at 3 GHz, a pointer to write for each part of a sum, 30 ns a call and its epilogue, and the
    // copy at 10 bytes a nanosecond.
    double const perStep = std::max(rows * groupVectors / blocks, 4.);
    Int8Sum const sum(g);
    double copied = double(g.batch) * double(g.c);
    for (int i = 0; i < 3; ++i)
        copied *= double(extentRead(g, i));
    double const call = perStep * (double(sum.pointers * sum.quads) + 6) / 3000 + 0.03 + 0.001 * double(sum.pointers);
    return (tiles * blocks * call + copied * 2 / 10000) / p.threads;
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& p, Config const& config, PackedConstants& packed)
{
    if (config.size() != 1 || config[0] < 1 || config[0] > 4)
        return t.wrongConfig("{1..4}");
    auto kernel = std::make_unique<Int8PaddedConvolution>(p, t.isa(), config);
    TW_TRY(kernel->pack(p, packed));
    return std::unique_ptr<Kernel>(std::move(kernel));
}

} // namespace
} // namespace int8_padded

constexpr CpuFunctions kInt8PaddedConvolution{.supports = int8_padded::supports,
                                              .formats = int8_padded::formats,
                                              .configs = int8_padded::configs,
                                              .estimate = int8_padded::estimate,
                                              .load = int8_padded::load};

} // namespace tw::ops
