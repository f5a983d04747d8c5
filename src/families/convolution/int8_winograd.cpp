// SPDX-License-Identifier: Apache-2.0
// 3x3 convolutions of i8 by Winograd's F(2 x 2, 3x3) on words (kernels/cpu/word_tiles.h): 2.25 times fewer products than there are, and
// words multiply at twice the rate of floats; the sums are the exact ones. For each block of tiles:
//   V [16][tiles][C]   = transformed tiles of x, words
//   M [16][tiles][K]   = V[p] U[p] for each position p, exact sums modulo 2^32
//   y                  = the end of (transformed M) / 4, pixel by pixel
// U, the transformed filters, [16][block of columns][C / 2][columns][2] words, are packed at load.
#include <algorithm>
#include <cstring>

#include "device/large_pages.h"
#include "families/convolution/tactics.h"
#include "kernels/cpu/word_tiles.h"

namespace tw::ops {

namespace int8_winograd {
namespace {

using convolution::Geometry;
using kernels::jit::Factors;
using kernels::jit::GemmArgs;
using kernels::jit::GemmKernel;
using kernels::jit::GemmKernelSpec;
using kernels::jit::Isa;

constexpr int kPositions = kernels::kWordTilePositions;
constexpr Isa kIsa = Isa::kAvx2;
constexpr int kPanelVectors = 2, kEndVectors = 4;
constexpr int64_t kWidth = 8, kPanel = kPanelVectors * kWidth, kEnd = kEndVectors * kWidth; // columns
constexpr int64_t kUnroll = 8; // pairs of channels per turn of the matrix kernel's loop
constexpr int64_t kMostTiles = 48, kLeastChannels = 16;

// Elements from position to position: an odd number of cache lines, so that those of one tile lie in different sets.
int64_t positionStride(int64_t elements, int64_t elementBytes)
{
    int64_t const lines = divideUp(elements * elementBytes, kCacheLine);
    return (lines + (lines % 2 == 0)) * kCacheLine / elementBytes;
}

// What a thread holds of a block of so many tiles: V, M, and the sums of one tile.
struct Scratch
{
    int64_t vPosition = 0, mPosition = 0; // elements
    int64_t vBytes = 0, mBytes = 0, sumBytes = 0;

    // Channels and columns as rows of V and M have them.
    Scratch(int64_t tiles, int64_t channels, int64_t columns)
        : vPosition(positionStride(tiles * channels, 2)), mPosition(positionStride(tiles * columns, 4)),
          vBytes(kPositions * vPosition * 2), mBytes(kPositions * mPosition * 4),
          sumBytes(roundUp(4 * columns * 4, kCacheLine))
    {}
    int64_t bytes() const { return vBytes + mBytes + sumBytes; }
};

struct Layout
{
    int64_t tilesY = 0, tilesX = 0, tiles = 0, blocks = 0, blockTiles = 0;
    int64_t channels = 0, columns = 0; // rounded up, of rows of V and M

    Layout(Geometry const& g, int64_t most, int64_t threads)
        : tilesY(divideUp(g.out[1], 2)), tilesX(divideUp(g.out[2], 2)), tiles(g.batch * tilesY * tilesX),
          channels(roundUp(g.c, 16)), columns(roundUp(g.k, kPanel))
    {
        if (tiles == 0)
            return;
        blocks = std::min(roundUp(divideUp(tiles, most), threads), tiles);
        blockTiles = divideUp(tiles, blocks);
    }
    int64_t begin(int64_t block) const { return block * tiles / blocks; }
    Scratch scratch(int64_t ofTiles) const { return {ofTiles, channels, columns}; }
};

struct Int8WinogradPrepared final : Prepared
{
    Int8WinogradPrepared(Geometry const& geometry, Layout const& l)
        : g(geometry), layout(l), scratch(l.scratch(l.blockTiles))
    {}

    Geometry g;
    Layout layout;
    Scratch scratch;
    int64_t xPixel = 0, yPixel = 0, residualPixel = 0; // bytes
    std::vector<GemmKernel> products;                  // by rows
    GemmKernel end, lastEnd;                           // of kEnd columns, of the others
    std::vector<int8_t> zeros;                         // a pixel
};

class Int8WinogradConvolution final : public Kernel
{
public:
    Int8WinogradConvolution(Problem const& p, Config const& config)
        : node_(*p.node), end_(jitEnd(p, kIsa)), most_(config[0]), threads_(std::max(p.threads, 1)),
          channels_(p.inputs[1].dims[1]), filters_(p.inputs[1].dims[0]), pairs_(divideUp(channels_, 2))
    {}

    Result<void> pack(Problem const& p, PackedConstants& packed)
    {
        Blob const& w = *p.inputs[1].constant;
        Recipe const recipe{"winograd filters of words", {filters_, channels_}};
        TW_ASSIGN(packed_, packed.get<device::PackedFloats>(w, recipe, [&]() -> Result<device::PackedFloats> {
            int64_t const floats = kPositions * panels() * pairs_ * kPanel;
            device::PackedFloats to(floats);
            if (!to.data())
                return failedAllocation("no memory for {} bytes of packed weights", floats * 4);
            auto* const words = reinterpret_cast<int16_t*>(to.data());
            int16_t u[kPositions];
            for (int64_t k = 0; k < filters_; ++k)
                for (int64_t c = 0; c < channels_; ++c) {
                    kernels::wordTileFilter(w.as<int8_t>() + (k * channels_ + c) * 9, u);
                    for (int position = 0; position < kPositions; ++position)
                        words[2 * (panelAt(position, k / kPanel) + c / 2 * kPanel + k % kPanel) + c % 2] = u[position];
                }
            return to;
        }));
        return {};
    }

    bool readsConstant(size_t i) const override { return i != 1; }

    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const override
    {
        Geometry const g = convolutionGeometry(node_, in[0].dims, in[1].dims, out[0].dims);
        Layout const l(g, most_, threads_);
        // Fewer pixels may make larger blocks.
        return threads_ * l.scratch(std::min(most_, std::max<int64_t>(l.tiles, 1))).bytes();
    }

    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const> out) const override
    {
        TensorRef const &x = in[0], &y = out[0];
        Geometry const g = convolutionGeometry(node_, x.dims, in[1].dims, y.dims);
        auto p = std::make_shared<Int8WinogradPrepared>(g, Layout(g, most_, threads_));
        if (y.count() == 0)
            return std::shared_ptr<Prepared const>(std::move(p));
        p->xPixel = x.pixelStride();
        p->yPixel = y.pixelStride() * end_.yBytes();
        p->residualPixel = end_.hasResidual() ? in[Epilogue::kResidual].pixelStride() * end_.residualBytes() : 0;
        p->zeros.assign(size_t(p->layout.channels), 0);
        int const rows = int(std::min<int64_t>(maxRows(), p->layout.blockTiles));
        p->products.resize(size_t(rows) + 1);
        for (int r = 1; r <= rows; ++r) {
            GemmKernelSpec s = spec(r, kPanelVectors, kUnroll);
            s.storesSums = true;
            TW_ASSIGN(p->products[size_t(r)], GemmKernel::emit(kIsa, s));
        }
        if (filters_ >= kEnd) {
            TW_SET(p->end, endOf(kEnd));
        }
        if (filters_ % kEnd != 0) {
            TW_SET(p->lastEnd, endOf(filters_ % kEnd));
        }
        return std::shared_ptr<Prepared const>(std::move(p));
    }

    Result<void> run(RunArgs& args) const override
    {
        auto const& p = *static_cast<Int8WinogradPrepared const*>(args.prepared);
        Layout const& l = p.layout;
        if (l.tiles == 0)
            return {};
        args.workers->run(l.blocks, [&](int64_t block, int worker) {
            char* const scratch = static_cast<char*>(args.workspace) + worker * p.scratch.bytes();
            auto* const v = reinterpret_cast<int16_t*>(scratch);
            auto* const m = reinterpret_cast<int32_t*>(scratch + p.scratch.vBytes);
            auto* const sums = reinterpret_cast<int32_t*>(scratch + p.scratch.vBytes + p.scratch.mBytes);
            int64_t const begin = l.begin(block), end = l.begin(block + 1);
            for (int64_t t = begin; t < end; ++t)
                readTile(p, args, t, v + (t - begin) * l.channels);
            multiply(p, v, m, end - begin);
            for (int64_t t = begin; t < end; ++t) {
                avx2::wordTileOutput(m + (t - begin) * l.columns, p.scratch.mPosition, roundUp(filters_, kWidth), sums,
                                     l.columns);
                writeTile(p, args, t, sums);
            }
        });
        return {};
    }

private:
    int64_t panels() const { return divideUp(filters_, kPanel); }
    // In pairs.
    int64_t panelAt(int64_t position, int64_t panel) const { return (position * panels() + panel) * pairs_ * kPanel; }
    static int maxRows() { return kernels::jit::gemmMaxRows(kIsa, kPanelVectors, Factors::kWordPairs); }

    static GemmKernelSpec spec(int rows, int vectors, int64_t unroll)
    {
        GemmKernelSpec s;
        s.rows = rows;
        s.vectors = vectors;
        s.factors = Factors::kWordPairs;
        s.body = kernels::jit::contiguousLoop(kIsa, vectors, int(unroll), s.factors);
        s.tail = kernels::jit::contiguousLoop(kIsa, vectors, 1, s.factors);
        return s;
    }

    Result<GemmKernel> endOf(int64_t columns) const
    {
        GemmKernelSpec s = spec(1, int(divideUp(columns, kWidth)), 1);
        s.masked = columns % kWidth != 0;
        end_.add(s);
        return GemmKernel::emit(kIsa, s);
    }

    static int64_t xOfTile(Int8WinogradPrepared const& p, int64_t t) { return 2 * (t % p.layout.tilesX); }
    static int64_t yOfTile(Int8WinogradPrepared const& p, int64_t t)
    {
        return 2 * (t / p.layout.tilesX % p.layout.tilesY);
    }
    static int64_t imageOf(Int8WinogradPrepared const& p, int64_t t) { return t / p.layout.tilesX / p.layout.tilesY; }

    void readTile(Int8WinogradPrepared const& p, RunArgs const& args, int64_t t, int16_t* v) const
    {
        Geometry const& g = p.g;
        int8_t const* const x = args.inputs[0].as<int8_t>() + imageOf(p, t) * g.in[1] * g.in[2] * p.xPixel;
        int8_t const* pixels[kPositions];
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j) {
                int64_t const h = yOfTile(p, t) - g.before[1] + i, w = xOfTile(p, t) - g.before[2] + j;
                bool const isInside = h >= 0 && h < g.in[1] && w >= 0 && w < g.in[2];
                pixels[4 * i + j] = isInside ? x + (h * g.in[2] + w) * p.xPixel : p.zeros.data();
            }
        avx2::wordTileInput(pixels, p.layout.channels, v, p.scratch.vPosition);
    }

    void multiply(Int8WinogradPrepared const& p, int16_t const* v, int32_t* m, int64_t tiles) const
    {
        alignas(64) static constexpr int32_t kZeros[kPanel]{};
        Layout const& l = p.layout;
        GemmArgs a;
        a.ldaBytes = l.channels * 2;
        a.ldcBytes = l.columns * 4;
        a.bodyCount = pairs_ / kUnroll;
        a.tailCount = pairs_ % kUnroll;
        a.start = kZeros;
        for (int64_t position = 0; position < kPositions; ++position)
            for (int64_t panel = 0; panel < panels(); ++panel) {
                a.b = packed_->data() + panelAt(position, panel);
                for (int64_t row = 0; row < tiles;) {
                    int64_t const rows = std::min<int64_t>(int64_t(p.products.size()) - 1, tiles - row);
                    void const* const from = v + position * p.scratch.vPosition + row * l.channels;
                    a.a = &from;
                    a.c = m + position * p.scratch.mPosition + row * l.columns + panel * kPanel;
                    p.products[size_t(rows)](a);
                    row += rows;
                }
            }
    }

    void writeTile(Int8WinogradPrepared const& p, RunArgs& args, int64_t t, int32_t const* sums) const
    {
        Geometry const& g = p.g;
        int64_t const image = imageOf(p, t) * g.out[1];
        for (int i = 0; i < 4; ++i) {
            int64_t const h = yOfTile(p, t) + i / 2, w = xOfTile(p, t) + i % 2;
            if (h >= g.out[1] || w >= g.out[2])
                continue;
            int64_t const pixel = (image + h) * g.out[2] + w;
            for (int64_t k = 0; k < filters_; k += kEnd) {
                GemmArgs a;
                void const* const none = sums; // no products
                a.a = &none;
                a.b = packed_->data();
                end_.set(a, args, k);
                a.c = static_cast<char*>(a.c) + pixel * p.yPixel;
                if (a.residual)
                    a.residual = static_cast<char const*>(a.residual) + pixel * p.residualPixel;
                a.start = sums + i * p.layout.columns + k;
                int64_t const columns = std::min(kEnd, filters_ - k);
                a.lastColumns = (columns - 1) % kWidth + 1;
                (columns == kEnd ? p.end : p.lastEnd)(a);
            }
        }
    }

    ir::Node const& node_;
    JitEnd end_;
    int64_t most_; // tiles of a block
    int threads_;
    int64_t channels_, filters_, pairs_;
    std::shared_ptr<device::PackedFloats const> packed_;
};

Support supports(CpuTactic const&, Problem const& p)
{
    TW_SUPPORTS(supportsInt8Convolution(p, 2, Weights::kConstant));
    if (isTransposed(*p.node))
        return Support::no("takes no transposed convolutions");
    auto const& a = p.node->attrsAs<KernelWindowAttrs>();
    Extents const& w = p.inputs[1].dims;
    auto const isOne = [](int64_t v) { return v == 1; };
    if (w.rank != 4 || w[2] != 3 || w[3] != 3 || a.groups != 1 || !std::ranges::all_of(a.strides, isOne) ||
        !std::ranges::all_of(a.dilations, isOne))
        return Support::no("takes 3x3 windows with strides and dilations of 1 and one group only");
    if (w[1] < kLeastChannels || w[1] > kernels::kMostWordTileChannels || w[0] < kLeastChannels)
        return Support::no(fmt::format("takes {} to {} channels, to {} and more", kLeastChannels,
                                       kernels::kMostWordTileChannels, kLeastChannels));
    return Support::yes();
}

// What lies in the second-level cache at a time, half of it; few tiles read weights more often.
std::vector<Config> configs(CpuTactic const&, Problem const& p)
{
    Extents const& w = p.inputs[1].dims;
    int64_t const tileBytes = kPositions * (2 * roundUp(w[1], 16) + 4 * roundUp(w[0], kPanel));
    int64_t const rows = kernels::jit::gemmMaxRows(kIsa, kPanelVectors, Factors::kWordPairs);
    int64_t const tiles = std::clamp(p.target.cpu->l2Bytes / 2 / tileBytes / rows * rows, 2 * rows, kMostTiles);
    return {{tiles}};
}

double estimate(CpuTactic const&, Problem const& p, Config const&)
{
    Extents const &w = p.inputs[1].dims, &y = p.outputs[0].dims;
    double const tiles = double(y[0] * divideUp(y[2], 2) * divideUp(y[3], 2)), c = double(w[1]),
                 k = double(roundUp(w[0], kPanel));
    double const products = kPositions * tiles * c * k / 16 / 1.6;
    double const transforms = tiles * (c / 16 * 80 + k / 8 * 100);
    return (products + transforms) / 3000 / p.threads;
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& p, Config const& config, PackedConstants& packed)
{
    if (config.size() != 1 || config[0] < 1 || config[0] > kMostTiles)
        return t.wrongConfig(fmt::format("{{1..{}}}", kMostTiles));
    auto kernel = std::make_unique<Int8WinogradConvolution>(p, config);
    TW_TRY(kernel->pack(p, packed));
    return std::unique_ptr<Kernel>(std::move(kernel));
}

} // namespace
} // namespace int8_winograd

constexpr CpuFunctions kInt8WinogradConvolution{int8_winograd::supports, allChannelsLast, int8_winograd::configs,
                                                int8_winograd::estimate, int8_winograd::load};

} // namespace tw::ops
