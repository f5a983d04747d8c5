// SPDX-License-Identifier: Apache-2.0
// One layer in blocks of tiles and of output channels ("columns"). For each block, with P = (m + 2)^2 positions:
//   V [P][tiles][C]              = transformed tiles of x
//   M [P][tiles][columns]        = V[p] times U[p], for each position p
//   y                            = transformed M + bias + residual, activation
// U, the transformed weights, is packed at load: [column block][P][panel of the matrix kernel][C][panel's columns].
#include "ops/winograd_kernel.h"

#include <algorithm>
#include <map>

#include "kernels/avx2_winograd.h"
#include "kernels/jit/gemm_kernel.h"
#include "kernels/jit/winograd.h"

namespace tw::ops {

namespace {

namespace jit = kernels::jit;
using jit::GemmKernel;
using jit::WinogradInput;
using jit::WinogradOutput;

constexpr int kPanelVectors = 2; // of the matrix kernel's tile; the last panel may have one
// Sums over the channels are cut into pieces of about this many: their errors grow with the root of a piece's length.
constexpr int64_t kPiece = 256;
constexpr int kUnroll = 4; // channels per turn of the matrix kernel's loop
constexpr int64_t kLineFloats = kCacheLine / int64_t(sizeof(float));

int64_t roundUp(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}
int64_t divideUp(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}
// Floats from row to row: whole lines, and not a multiple of 1 KiB, since those compete for few sets of the cache.
int64_t rowStride(int64_t columns)
{
    int64_t const lines = divideUp(columns, kLineFloats);
    return (lines + (lines % 16 == 0)) * kLineFloats;
}
// From position to position: an odd number of lines, so that the lines of one tile lie in different sets.
int64_t positionStride(int64_t tiles, int64_t row)
{
    int64_t const lines = tiles * row / kLineFloats;
    return (lines + (lines % 2 == 0)) * kLineFloats;
}

// How tiles and columns are cut up, from the shapes alone.
struct Layout
{
    int64_t batch = 0, tilesY = 0, tilesX = 0, tiles = 0;
    int64_t blocks = 0, blockTiles = 0; // block i: tiles [i * tiles / blocks, (i + 1) * tiles / blocks)
    int64_t vRow = 0, vPosition = 0, mRow = 0, mPosition = 0; // floats
    int64_t vFloats = 0, mFloats = 0;

    Layout(WinogradSpec const& s, Extents const& y)
    {
        batch = y[0];
        tilesY = divideUp(y[2], s.m);
        tilesX = divideUp(y[3], s.m);
        tiles = batch * tilesY * tilesX;
        if (tiles == 0)
            return;
        blocks = divideUp(tiles, s.tiles);
        if (!s.shared)
            blocks = std::min(roundUp(blocks, s.threads), tiles);
        blockTiles = divideUp(tiles, blocks);
        vRow = rowStride(s.c);
        vPosition = positionStride(blockTiles, vRow);
        mRow = rowStride(std::min(s.columns, roundUp(s.k, kLineFloats)));
        mPosition = positionStride(blockTiles, mRow);
        vFloats = s.positions() * vPosition;
        mFloats = s.positions() * mPosition;
    }
    int64_t blockBegin(int64_t i) const { return i * tiles / blocks; }
};

// Rows of the matrix kernel's tiles for `tiles` rows: as few as possible, as equal as possible.
struct RowGroups
{
    int64_t count, small, larger; // `larger` groups of small + 1, then the others of small

    RowGroups(int64_t tiles, int maxRows) : count(divideUp(tiles, maxRows)), small(tiles / count), larger(tiles % count)
    {}
    int64_t rows(int64_t group) const { return small + (group < larger); }
};

struct WinogradPrepared final : Prepared
{
    WinogradPrepared(WinogradSpec const& s, Extents const& y) : layout(s, y) {}

    Layout layout;
    WinogradInput inside, border;
    WinogradOutput output[4][4];                        // for rows - 1, columns - 1 pixels
    std::vector<GemmKernel> gemm[kPanelVectors + 1][2]; // by vectors, first or later piece of the channels, rows
};

class WinogradKernel final : public Kernel
{
public:
    WinogradKernel(WinogradSpec const& s, float const* w, float const* bias)
        : s_(s), width_(jit::vectorWidth(s.isa)), hasBias_(bias), pieces_(divideUp(s.c, kPiece))
    {
        int64_t const kPadded = roundUp(s.k, width_);
        for (int64_t k = 0; k < kPadded; k += s.columns)
            columnBlocks_.push_back({k, std::min(s.columns, kPadded - k)});
        zeros_ = Tensor(DataType::kFloat, {roundUp(s.c, kLineFloats)});
        if (bias) {
            bias_ = Tensor(DataType::kFloat, {kPadded});
            if (bias_.data())
                std::copy(bias, bias + s.k, static_cast<float*>(bias_.data()));
        }
        weights_ = Tensor(DataType::kFloat, {s.positions() * s.c * kPadded});
        if (!weights_.data())
            return;
        for (ColumnBlock const& b : columnBlocks_)
            for (int64_t at = 0; at < b.columns; at += panelColumns()) {
                int64_t const columns = std::min(panelColumns(), b.columns - at);
                int64_t const k = b.begin + at, filters = std::min(columns, s.k - k);
                for (int64_t c = 0; c < s.c; ++c)
                    avx2::winogradFilters(jit::winogradFilterMatrix(s.m), s.m + 2, w + (k * s.c + c) * 9, s.c * 9,
                                          int(filters), int(columns), panel(b, 0, at) + c * columns, s.c * b.columns);
            }
    }
    bool hasMemory() const { return weights_.data() && zeros_.data() && (bias_.data() || !hasBias_); }

    bool readsConstant(size_t i) const override { return i > 2; } // filters and bias are packed

    int64_t workspaceBytes(std::span<TensorRef const>, std::span<TensorRef const> out) const override
    {
        // For blocks as large as they can get: the true ones depend on the number of tiles in no monotonic way.
        WinogradSpec s = s_;
        s.threads = 1;
        s.shared = true;
        Layout const l(s, out[0].dims);
        if (l.tiles == 0)
            return 0;
        int64_t const tiles = std::min(s.tiles, l.tiles);
        int64_t const v = s.positions() * positionStride(tiles, l.vRow);
        int64_t const m = s.positions() * positionStride(tiles, l.mRow);
        return int64_t(sizeof(float)) * ((s_.shared ? 1 : s_.threads) * v + s_.threads * m);
    }

    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const> out) const override
    {
        TensorRef const &x = in[0], &y = out[0];
        auto p = std::make_shared<WinogradPrepared>(s_, y.dims);
        Layout const& l = p->layout;
        if (l.tiles == 0)
            return std::shared_ptr<Prepared const>(std::move(p));
        jit::WinogradInputSpec input{s_.m, false, bytes(x.pixelStride()), bytes(l.vPosition)};
        TW_ASSIGN(p->inside, WinogradInput::emit(s_.isa, input));
        input.table = true;
        TW_ASSIGN(p->border, WinogradInput::emit(s_.isa, input));
        jit::WinogradOutputSpec output;
        output.m = s_.m;
        output.positionBytes = bytes(l.mPosition);
        output.pixelBytes = bytes(y.pixelStride());
        output.bias = hasBias_;
        output.residual = in.size() > 3 && in[3].dims.rank == 4;
        output.residualPixelBytes = output.residual ? bytes(in[3].pixelStride()) : 0;
        output.activation = s_.activation;
        for (int rows : {s_.m, int((y.dims[2] - 1) % s_.m) + 1})
            for (int columns : {s_.m, int((y.dims[3] - 1) % s_.m) + 1}) {
                WinogradOutput& kernel = p->output[rows - 1][columns - 1];
                output.rows = rows;
                output.columns = columns;
                if (!kernel) {
                    TW_ASSIGN(kernel, WinogradOutput::emit(s_.isa, output));
                }
            }
        int64_t const kPadded = roundUp(s_.k, width_);
        for (int vectors = 1; vectors <= kPanelVectors; ++vectors) {
            for (auto& list : p->gemm[vectors])
                list.resize(size_t(maxRows()) + 1);
            if (vectors == kPanelVectors ? kPadded >= panelColumns() : kPadded % panelColumns() != 0)
                for (int64_t i = 0; i < l.blocks; ++i)
                    TW_TRY(emitGemm(*p, vectors, l.blockBegin(i + 1) - l.blockBegin(i)));
        }
        return std::shared_ptr<Prepared const>(std::move(p));
    }

    Result<void> run(RunArgs& args) const override
    {
        auto const& p = static_cast<WinogradPrepared const&>(*args.prepared);
        Layout const& l = p.layout;
        auto* const workspace = static_cast<float*>(args.workspace);
        if (l.tiles == 0)
            return {};
        if (!s_.shared) {
            args.workers->run(l.blocks, [&](int64_t part, int worker) {
                float* const v = workspace + worker * (l.vFloats + l.mFloats);
                int64_t const begin = l.blockBegin(part), end = l.blockBegin(part + 1);
                transformInput(p, args.inputs[0], begin, begin, end, v);
                for (ColumnBlock const& b : columnBlocks_)
                    block(p, args, b, begin, end, v, v + l.vFloats);
            });
            return {};
        }
        for (int64_t i = 0; i < l.blocks; ++i) {
            int64_t const begin = l.blockBegin(i), end = l.blockBegin(i + 1);
            int64_t const parts = std::min<int64_t>(end - begin, s_.threads * 4);
            args.workers->run(parts, [&](int64_t part, int) {
                transformInput(p, args.inputs[0], begin, begin + part * (end - begin) / parts,
                               begin + (part + 1) * (end - begin) / parts, workspace);
            });
            args.workers->run(int64_t(columnBlocks_.size()), [&](int64_t part, int worker) {
                block(p, args, columnBlocks_[size_t(part)], begin, end, workspace,
                      workspace + l.vFloats + worker * l.mFloats);
            });
        }
        return {};
    }

private:
    struct ColumnBlock
    {
        int64_t begin, columns; // columns: a multiple of the vector width
    };

    WinogradSpec s_;
    int width_;
    bool hasBias_;
    int64_t pieces_; // of the channels
    std::vector<ColumnBlock> columnBlocks_;
    Tensor weights_, bias_, zeros_;

    static int32_t bytes(int64_t floats) { return int32_t(floats * int64_t(sizeof(float))); }
    int64_t panelColumns() const { return kPanelVectors * width_; }
    int maxRows() const { return jit::gemmMaxRows(s_.isa, kPanelVectors); }
    float* panel(ColumnBlock const& b, int64_t position, int64_t column) const
    {
        return static_cast<float*>(weights_.data()) + s_.c * (s_.positions() * b.begin + position * b.columns + column);
    }

    Result<void> emitGemm(WinogradPrepared& p, int vectors, int64_t tiles) const
    {
        RowGroups const groups(tiles, maxRows());
        for (int later = 0; later < (pieces_ > 1 ? 2 : 1); ++later)
            for (int64_t rows : {groups.rows(0), groups.rows(groups.count - 1)}) {
                GemmKernel& kernel = p.gemm[vectors][later][size_t(rows)];
                if (kernel)
                    continue;
                jit::GemmKernelSpec spec;
                spec.rows = int(rows);
                spec.vectors = vectors;
                spec.body = jit::contiguousLoop(s_.isa, vectors, kUnroll);
                spec.tail = jit::contiguousLoop(s_.isa, vectors, 1);
                if (later != 0)
                    spec.epilogue.push_back(jit::EpilogueOp::kAddC);
                TW_ASSIGN(kernel, GemmKernel::emit(s_.isa, spec));
            }
        return {};
    }

    // Tiles [begin, end) of a block that begins at `blockBegin`.
    void transformInput(WinogradPrepared const& p, TensorRef const& x, int64_t blockBegin, int64_t begin, int64_t end,
                        float* v) const
    {
        Layout const& l = p.layout;
        int const t = s_.m + 2;
        int64_t const height = x.dims[2], width = x.dims[3], pixel = x.pixelStride();
        float const* pixels[36];
        auto const* const zeros = static_cast<float const*>(zeros_.data());
        jit::WinogradInputArgs args;
        args.rowBytes = width * pixel * int64_t(sizeof(float));
        args.pixels = pixels;
        args.vectors = divideUp(s_.c, width_);
        for (int64_t tile = begin; tile < end; ++tile) {
            int64_t const image = tile / (l.tilesY * l.tilesX);
            int64_t const top = tile / l.tilesX % l.tilesY * s_.m - s_.before[0];
            int64_t const left = tile % l.tilesX * s_.m - s_.before[1];
            float const* const from = x.as<float>() + image * height * width * pixel;
            args.v = v + (tile - blockBegin) * l.vRow;
            if (top >= 0 && left >= 0 && top + t <= height && left + t <= width) {
                args.x = from + (top * width + left) * pixel;
                p.inside(args);
                continue;
            }
            for (int i = 0; i < t; ++i)
                for (int j = 0; j < t; ++j) {
                    int64_t const row = top + i, column = left + j;
                    bool const in = row >= 0 && row < height && column >= 0 && column < width;
                    pixels[i * t + j] = in ? from + (row * width + column) * pixel : zeros;
                }
            p.border(args);
        }
    }

    // Tiles [begin, end), whose V is ready, and the columns of b.
    void block(WinogradPrepared const& p, RunArgs const& args, ColumnBlock const& b, int64_t begin, int64_t end,
               float const* v, float* m) const
    {
        Layout const& l = p.layout;
        RowGroups const groups(end - begin, maxRows());
        jit::GemmArgs g;
        void const* a = nullptr;
        g.a = &a;
        g.ldaBytes = bytes(l.vRow);
        g.ldcBytes = bytes(l.mRow);
        for (int64_t position = 0; position < s_.positions(); ++position)
            for (int64_t at = 0; at < b.columns; at += panelColumns()) {
                int64_t const vectors = std::min(panelColumns(), b.columns - at) / width_;
                float const* const weights = panel(b, position, at);
                for (int64_t group = 0, row = 0; group < groups.count; row += groups.rows(group), ++group) {
                    g.c = m + position * l.mPosition + row * l.mRow + at;
                    for (int64_t piece = 0; piece < pieces_; ++piece) {
                        int64_t const first = piece * (s_.c / kUnroll) / pieces_ * kUnroll;
                        int64_t const last = (piece + 1) * (s_.c / kUnroll) / pieces_ * kUnroll;
                        a = v + position * l.vPosition + row * l.vRow + first;
                        g.b = weights + first * vectors * width_;
                        g.bodyCount = (last - first) / kUnroll;
                        g.tailCount = piece + 1 == pieces_ ? s_.c % kUnroll : 0;
                        p.gemm[vectors][piece > 0][size_t(groups.rows(group))](g);
                    }
                }
            }
        transformOutput(p, args, b, begin, end, m);
    }

    void transformOutput(WinogradPrepared const& p, RunArgs const& args, ColumnBlock const& b, int64_t begin,
                         int64_t end, float const* m) const
    {
        Layout const& l = p.layout;
        TensorRef const& y = args.outputs[0];
        TensorRef const residual = args.inputs.size() > 3 ? args.inputs[3] : TensorRef{};
        int64_t const height = y.dims[2], width = y.dims[3], pixel = y.pixelStride();
        int64_t const residualPixel = residual.data ? residual.pixelStride() : 0;
        jit::WinogradOutputArgs o;
        o.rowBytes = width * pixel * int64_t(sizeof(float));
        o.residualRowBytes = width * residualPixel * int64_t(sizeof(float));
        o.bias = hasBias_ ? static_cast<float const*>(bias_.data()) + b.begin : nullptr;
        o.vectors = b.columns / width_;
        for (int64_t tile = begin; tile < end; ++tile) {
            int64_t const image = tile / (l.tilesY * l.tilesX);
            int64_t const top = tile / l.tilesX % l.tilesY * s_.m, left = tile % l.tilesX * s_.m;
            int64_t const at = (image * height + top) * width + left;
            o.m = m + (tile - begin) * l.mRow;
            o.y = y.as<float>() + at * pixel + b.begin;
            if (residual.data)
                o.residual = residual.as<float>() + at * residualPixel + b.begin;
            int64_t const rows = std::min<int64_t>(s_.m, height - top), columns = std::min<int64_t>(s_.m, width - left);
            p.output[rows - 1][columns - 1](o);
        }
    }
};

} // namespace

int64_t winogradTiles(int m, Extents const& y)
{
    return y[0] * divideUp(y[2], m) * divideUp(y[3], m);
}

Result<std::unique_ptr<Kernel>> makeWinogradKernel(WinogradSpec const& spec, float const* w, float const* bias)
{
    auto kernel = std::make_unique<WinogradKernel>(spec, w, bias);
    if (!kernel->hasMemory())
        return Error{ErrorCode::kFailedAllocation, "no memory for transformed weights"};
    return std::unique_ptr<Kernel>(std::move(kernel));
}

} // namespace tw::ops
