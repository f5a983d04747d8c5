// SPDX-License-Identifier: Apache-2.0
// One layer in blocks of tiles and of output channels ("columns"), its input channels in pieces. For each block, with
// P = (m + 2)^2 positions:
//   V [pieces][P][tiles][piece]  = transformed tiles of x
//   M [P][tiles][columns]        = sum over the pieces of V[p] times U[p], for each position p
//   y                            = transformed M + bias + residual, activation
// A window over three axes has the pieces of each of its planes one plane after the other, as if C were d C; those of
// planes outside the image for all tiles of a block are left out.
// U, the transformed weights: packed at load as [column block][P][panel of the matrix kernel][C][panel's columns], or
// made from [column block][panel][C][3][3][panel's columns] for one column block and piece at a time, in scratch
// memory: [P][panel][piece][panel's columns].
#include "families/convolution/winograd_kernel.h"

#include <algorithm>

#include "base/round.h"
#include "device/large_pages.h"
#include "kernels/cpu/gemm_parts.h"
#include "kernels/cpu/jit/gemm_kernel.h"
#include "kernels/cpu/jit/winograd.h"

namespace tw::ops {

namespace {

namespace jit = kernels::jit;
using jit::GemmKernel;
using jit::WinogradFilter;
using jit::WinogradInput;
using jit::WinogradOutput;

constexpr int kPanelVectors = 2; // of the matrix kernel's tile; the last panel may have one
constexpr int kUnroll = 4;       // channels per turn of the matrix kernel's loop
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

    WinogradLayout layout;
    WinogradInput inside, border;
    WinogradFilter filter[kPanelVectors + 1];
    jit::StepsKernel steps;
    WinogradOutput output[4][4];                        // for rows - 1, columns - 1 pixels
    std::vector<GemmKernel> gemm[kPanelVectors + 1][2]; // by vectors, first or later piece of the channels, rows
};

class WinogradKernel final : public Kernel
{
public:
    WinogradKernel(WinogradSpec const& s, bool bias) : s_(s), width_(jit::vectorWidth(s.isa)), hasBias_(bias)
    {
        for (int64_t k = 0; k < paddedK(); k += s.columns)
            columnBlocks_.push_back({k, std::min(s.columns, paddedK() - k)});
    }

    // panels, of kernels in place: the filters in winogradPanels(); null: they are in w, and `packed` shares copies.
    Result<void> pack(Blob const& w, float const* bias, BlobPtr const& panels, PackedConstants* packed)
    {
        zeros_ = Tensor(DataType::kFloat, {roundUp(s_.c, kLineFloats)});
        bias_ = device::PackedFloats(hasBias_ ? paddedK() : 0);
        if (!zeros_.data() || !bias_.data())
            return noMemory();
        if (bias)
            std::copy(bias, bias + s_.k, static_cast<float*>(bias_.data()));
        if (panels) {
            panels_ = panels;
            taps_ = panels->as<float>();
            return {};
        }
        // In place, blocks of columns only decide where panels begin.
        Recipe const recipe{"winograd filters",
                            {width_, s_.inPlace ? 0 : s_.m, s_.c, s_.depth.window, s_.k, columnBlocks_[0].columns}};
        TW_ASSIGN(weights_, packed->get<device::PackedFloats>(w, recipe, [&] { return packedFilters(w.as<float>()); }));
        taps_ = weights_->data();
        return {};
    }

    Result<device::PackedFloats> packedFilters(float const* w) const
    {
        device::PackedFloats weights((s_.inPlace ? 9 : s_.positions()) * s_.c * paddedK());
        if (!weights.data())
            return noMemory();
        std::vector<float> panelTaps;
        for (ColumnBlock const& b : columnBlocks_) {
            WinogradFilter filter[kPanelVectors + 1];
            for (int64_t at = 0; at < b.columns; at += panelColumns()) {
                int64_t const columns = std::min(panelColumns(), b.columns - at), k = b.begin + at;
                float* to = s_.inPlace ? weights.data() + s_.c * 9 * k : nullptr;
                if (!s_.inPlace) {
                    panelTaps.resize(size_t(s_.c * 9 * columns));
                    to = panelTaps.data();
                }
                gatherTaps(w, k, std::min(columns, s_.k - k), columns, to);
                if (s_.inPlace)
                    continue;
                WinogradFilter& f = filter[columns / width_];
                if (!f) {
                    jit::WinogradFilterSpec const spec{s_.m, int(columns / width_), bytes(s_.c * b.columns)};
                    TW_ASSIGN(f, WinogradFilter::emit(s_.isa, spec));
                }
                f(jit::WinogradFilterArgs{to, weights.data() + placeOf(b, 0, at), s_.c});
            }
        }
        return weights;
    }
    static Error noMemory() { return {ErrorCode::kFailedAllocation, "no memory for transformed weights"}; }

    bool readsConstant(size_t i) const override { return i > 2; } // filters and bias are packed

    int64_t workspaceBytes(std::span<TensorRef const>, std::span<TensorRef const> out) const override
    {
        WinogradLayout const l(s_, out[0].dims, true);
        int64_t const vCopies = s_.shared ? 1 : s_.threads;
        return int64_t(sizeof(float)) * (vCopies * l.vFloats + s_.threads * (l.mFloats + l.uFloats));
    }

    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const> out) const override
    {
        TensorRef const &x = in[0], &y = out[0];
        auto p = std::make_shared<WinogradPrepared>(s_, y.dims);
        WinogradLayout const& l = p->layout;
        if (l.tiles == 0)
            return std::shared_ptr<Prepared const>(std::move(p));
        jit::WinogradInputSpec input{s_.m, false, bytes(x.pixelStride()), bytes(l.vPosition)};
        TW_ASSIGN(p->inside, WinogradInput::emit(s_.isa, input));
        input.table = true;
        TW_ASSIGN(p->border, WinogradInput::emit(s_.isa, input));
        TW_TRY(emitOutput(*p, y, in.size() > 3 && in[3].dims.rank == x.dims.rank ? &in[3] : nullptr));
        for (int vectors = 1; vectors <= kPanelVectors; ++vectors) {
            bool const used = vectors == kPanelVectors ? paddedK() >= panelColumns() : paddedK() % panelColumns() != 0;
            if (!used)
                continue;
            if (l.uFloats > 0) {
                TW_ASSIGN(p->filter[vectors], WinogradFilter::emit(s_.isa, {s_.m, vectors, bytes(l.uPosition)}));
            }
            for (auto& list : p->gemm[vectors])
                list.resize(size_t(maxRows()) + 1);
            for (int64_t i = 0; i < l.blocks; ++i)
                TW_TRY(emitGemm(*p, vectors, l.blockBegin(i + 1) - l.blockBegin(i)));
        }
        return std::shared_ptr<Prepared const>(std::move(p));
    }

    Result<void> run(RunArgs& args) const override
    {
        auto const& p = static_cast<WinogradPrepared const&>(*args.prepared);
        WinogradLayout const& l = p.layout;
        auto* const workspace = static_cast<float*>(args.workspace);
        if (l.tiles == 0)
            return {};
        if (!s_.shared) {
            args.workers->run(l.blocks, [&](int64_t part, int worker) {
                float* const v = workspace + worker * (l.vFloats + l.mFloats + l.uFloats);
                Block const tiles{l.blockBegin(part), l.blockBegin(part + 1)};
                transformInput(p, args, tiles, tiles.begin, tiles.end, v);
                for (ColumnBlock const& b : columnBlocks_)
                    block(p, args, b, tiles, v, v + l.vFloats);
            });
            return {};
        }
        for (int64_t i = 0; i < l.blocks; ++i) {
            Block const tiles{l.blockBegin(i), l.blockBegin(i + 1)};
            int64_t const count = tiles.end - tiles.begin, parts = std::min<int64_t>(count, s_.threads * 4);
            args.workers->run(parts, [&](int64_t part, int) {
                transformInput(p, args, tiles, tiles.begin + part * count / parts,
                               tiles.begin + (part + 1) * count / parts, workspace);
            });
            args.workers->run(int64_t(columnBlocks_.size()), [&](int64_t part, int worker) {
                block(p, args, columnBlocks_[size_t(part)], tiles, workspace,
                      workspace + l.vFloats + worker * (l.mFloats + l.uFloats));
            });
        }
        return {};
    }

private:
    struct ColumnBlock
    {
        int64_t begin, columns; // columns: a multiple of the vector width
    };
    struct Block // of tiles
    {
        int64_t begin, end;
    };

    WinogradSpec s_;
    int width_;
    bool hasBias_;
    std::vector<ColumnBlock> columnBlocks_;
    std::shared_ptr<device::PackedFloats const> weights_;
    device::PackedFloats bias_;
    BlobPtr panels_;              // filters that another keeps
    float const* taps_ = nullptr; // of kernels in place: in weights_ or panels_
    Tensor zeros_;

    int64_t paddedK() const { return roundUp(s_.k, width_); }
    int64_t panelColumns() const { return kPanelVectors * width_; }
    int maxRows() const { return jit::gemmMaxRows(s_.isa, kPanelVectors); }
    // In packed filters.
    int64_t placeOf(ColumnBlock const& b, int64_t position, int64_t column) const
    {
        return s_.c * (s_.positions() * b.begin + position * b.columns + column);
    }
    float* packed(ColumnBlock const& b, int64_t position, int64_t column) const
    {
        return weights_->data() + placeOf(b, position, column);
    }
    float const* taps(ColumnBlock const& b, int64_t column) const { return taps_ + s_.c * 9 * (b.begin + column); }

    // to [d][C][9][columns] := filters k, k + 1, ...; zeros after the last one.
    void gatherTaps(float const* w, int64_t k, int64_t filters, int64_t columns, float* to) const
    {
        int64_t const planes = s_.depth.window, channels = s_.c / planes;
        if (planes == 1) {
            kernels::copyMatrix(to, columns, columns, w + k * s_.c * 9, s_.c * 9, filters, 1, s_.c * 9);
            return;
        }
        for (int64_t d = 0; d < planes; ++d)
            for (int64_t c = 0; c < channels; ++c, to += 9 * columns)
                kernels::copyMatrix(to, columns, columns, w + (k * s_.c + c * planes + d) * 9, 9, filters, 1, s_.c * 9);
    }

    Result<void> emitOutput(WinogradPrepared& p, TensorRef const& y, TensorRef const* residual) const
    {
        jit::WinogradOutputSpec output;
        output.m = s_.m;
        output.positionBytes = bytes(p.layout.mPosition);
        output.pixelBytes = bytes(y.pixelStride());
        output.bias = hasBias_;
        TW_ASSIGN(p.steps, jit::StepsKernel::emit(s_.isa, s_.steps, residual != nullptr));
        static_cast<jit::SumEnd&>(output) = s_;
        output.residual = residual != nullptr && !p.steps;
        output.residualPixelBytes = residual ? bytes(residual->pixelStride()) : 0;
        Extents const dims = winogradPlanes(y.dims);
        for (int rows : {s_.m, int((dims[2] - 1) % s_.m) + 1})
            for (int columns : {s_.m, int((dims[3] - 1) % s_.m) + 1}) {
                WinogradOutput& kernel = p.output[rows - 1][columns - 1];
                output.rows = rows;
                output.columns = columns;
                if (!kernel) {
                    TW_ASSIGN(kernel, WinogradOutput::emit(s_.isa, output));
                }
            }
        return {};
    }

    Result<void> emitGemm(WinogradPrepared& p, int vectors, int64_t tiles) const
    {
        RowGroups const groups(tiles, maxRows());
        for (int later = 0; later < (p.layout.pieces > 1 ? 2 : 1); ++later)
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

    // The input plane that plane `tap` of the window meets for this tile; outside the image: less than 0.
    int64_t inputPlane(WinogradLayout const& l, TensorRef const& x, TensorRef const& y, int64_t tile, int64_t tap) const
    {
        bool const deep = x.dims.rank == 5;
        int64_t const plane = tile / (l.tilesY * l.tilesX), out = deep ? y.dims[2] : 1, in = deep ? x.dims[2] : 1;
        int64_t const z = plane % out * s_.depth.stride - s_.depth.before + tap * s_.depth.dilation;
        return z >= 0 && z < in ? plane / out * in + z : -1;
    }
    // Planes [begin, end) of the window that meet the image for some tile of the block; one at least, so that there is
    // a sum.
    Block planesInside(WinogradLayout const& l, RunArgs const& args, Block const& tiles) const
    {
        Block planes{s_.depth.window, 0};
        for (int64_t tap = 0; tap < s_.depth.window; ++tap)
            for (int64_t tile = tiles.begin; tile < tiles.end;
                 tile += l.tilesY * l.tilesX - tile % (l.tilesY * l.tilesX))
                if (inputPlane(l, args.inputs[0], args.outputs[0], tile, tap) >= 0)
                    planes = {std::min(planes.begin, tap), tap + 1};
        return planes.begin < planes.end ? planes : Block{0, 1};
    }

    // Tiles [begin, end) of a block.
    void transformInput(WinogradPrepared const& p, RunArgs const& run, Block const& tiles, int64_t begin, int64_t end,
                        float* v) const
    {
        WinogradLayout const& l = p.layout;
        TensorRef const& x = run.inputs[0];
        for (int64_t tile = begin; tile < end; ++tile)
            for (int64_t tap = 0; tap < s_.depth.window; ++tap)
                transformTile(l, p, x, inputPlane(l, x, run.outputs[0], tile, tap), tile,
                              v + tap * l.planePieces * l.vPiece + (tile - tiles.begin) * l.vRow);
    }

    // All channels of one tile in one plane of x; zeros for a plane outside.
    void transformTile(WinogradLayout const& l, WinogradPrepared const& p, TensorRef const& x, int64_t plane,
                       int64_t tile, float* v) const
    {
        int const t = s_.m + 2;
        int64_t const height = x.dims[x.dims.rank - 2], width = x.dims[x.dims.rank - 1], pixel = x.pixelStride();
        float const* pixels[36];
        auto const* const zeros = static_cast<float const*>(zeros_.data());
        jit::WinogradInputArgs args;
        args.rowBytes = width * pixel * int64_t(sizeof(float));
        args.pixels = pixels;
        int64_t const top = tile / l.tilesX % l.tilesY * s_.m - s_.before[0];
        int64_t const left = tile % l.tilesX * s_.m - s_.before[1];
        float const* const from = x.as<float>() + std::max<int64_t>(plane, 0) * height * width * pixel;
        bool const inside = plane >= 0 && top >= 0 && left >= 0 && top + t <= height && left + t <= width;
        if (inside)
            args.x = from + (top * width + left) * pixel;
        for (int i = 0; i < t && !inside; ++i)
            for (int j = 0; j < t; ++j) {
                int64_t const row = top + i, column = left + j;
                bool const in = plane >= 0 && row >= 0 && row < height && column >= 0 && column < width;
                pixels[i * t + j] = in ? from + (row * width + column) * pixel : zeros;
            }
        for (int64_t piece = 0; piece < l.planePieces; ++piece) {
            args.offsetBytes = piece * l.piece * int64_t(sizeof(float));
            args.vectors = divideUp(l.count(piece), width_);
            args.v = v + piece * l.vPiece;
            (inside ? p.inside : p.border)(args);
        }
    }

    // Tiles whose V is ready, and the columns of b. scratch: M, then U where it is made here.
    void block(WinogradPrepared const& p, RunArgs const& args, ColumnBlock const& b, Block const& tiles, float const* v,
               float* scratch) const
    {
        WinogradLayout const& l = p.layout;
        float *const m = scratch, *const u = scratch + l.mFloats;
        Block const planes = planesInside(l, args, tiles);
        int64_t const begin = planes.begin * l.planePieces, end = planes.end * l.planePieces;
        if (l.uFloats == 0) {
            for (int64_t position = 0; position < s_.positions(); ++position)
                for (int64_t at = 0; at < b.columns; at += panelColumns())
                    for (int64_t piece = begin; piece < end; ++piece)
                        multiply(p, b, tiles, position, at, piece, piece > begin, v,
                                 packed(b, position, at) + l.begin(piece) * std::min(panelColumns(), b.columns - at),
                                 m);
        } else {
            for (int64_t piece = begin; piece < end; ++piece) {
                for (int64_t at = 0; at < b.columns; at += panelColumns()) {
                    int64_t const columns = std::min(panelColumns(), b.columns - at);
                    p.filter[columns / width_](
                        {taps(b, at) + l.begin(piece) * 9 * columns, u + l.piece * at, l.count(piece)});
                }
                for (int64_t position = 0; position < s_.positions(); ++position)
                    for (int64_t at = 0; at < b.columns; at += panelColumns())
                        multiply(p, b, tiles, position, at, piece, piece > begin, v,
                                 u + position * l.uPosition + l.piece * at, m);
            }
        }
        transformOutput(p, args, b, tiles, m);
    }

    // One piece of the channels times one panel of weights, for one position; later: added to what is there.
    void multiply(WinogradPrepared const& p, ColumnBlock const& b, Block const& tiles, int64_t position, int64_t at,
                  int64_t piece, bool later, float const* v, float const* weights, float* m) const
    {
        WinogradLayout const& l = p.layout;
        RowGroups const groups(tiles.end - tiles.begin, maxRows());
        int64_t const vectors = std::min(panelColumns(), b.columns - at) / width_;
        int64_t const channels = l.count(piece);
        float const* a = v + piece * l.vPiece + position * l.vPosition;
        void const* list = nullptr;
        jit::GemmArgs g;
        g.a = &list;
        g.ldaBytes = bytes(l.vRow);
        g.b = weights;
        g.bodyCount = channels / kUnroll;
        g.tailCount = channels % kUnroll;
        float* to = m + position * l.mPosition + at;
        g.ldcBytes = bytes(l.mRow);
        for (int64_t group = 0; group < groups.count; ++group) {
            int64_t const rows = groups.rows(group);
            list = a;
            g.c = to;
            p.gemm[vectors][later][size_t(rows)](g);
            a += rows * l.vRow;
            to += rows * l.mRow;
        }
    }

    void transformOutput(WinogradPrepared const& p, RunArgs const& args, ColumnBlock const& b, Block const& tiles,
                         float const* m) const
    {
        WinogradLayout const& l = p.layout;
        TensorRef const& y = args.outputs[0];
        TensorRef const residual = args.inputs.size() > 3 ? args.inputs[3] : TensorRef{};
        int64_t const height = y.dims[y.dims.rank - 2], width = y.dims[y.dims.rank - 1], pixel = y.pixelStride();
        int64_t const residualPixel = residual.data ? residual.pixelStride() : 0;
        jit::WinogradOutputArgs o;
        o.rowBytes = width * pixel * int64_t(sizeof(float));
        o.residualRowBytes = width * residualPixel * int64_t(sizeof(float));
        o.bias = bias_.data() + b.begin;
        o.vectors = b.columns / width_;
        for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
            int64_t const image = tile / (l.tilesY * l.tilesX);
            int64_t const top = tile / l.tilesX % l.tilesY * s_.m, left = tile % l.tilesX * s_.m;
            int64_t const at = (image * height + top) * width + left;
            o.m = m + (tile - tiles.begin) * l.mRow;
            o.y = y.as<float>() + at * pixel + b.begin;
            if (residual.data)
                o.residual = residual.as<float>() + at * residualPixel + b.begin;
            int64_t const rows = std::min<int64_t>(s_.m, height - top), columns = std::min<int64_t>(s_.m, width - left);
            p.output[rows - 1][columns - 1](o);
            for (int64_t row = 0; p.steps && row < rows; ++row)
                p.steps(o.y + row * width * pixel, pixel * 4,
                        residual.data ? o.residual + row * width * residualPixel : nullptr, residualPixel * 4, columns,
                        b.columns);
        }
    }
};

} // namespace

Extents winogradPlanes(Extents const& dims)
{
    return dims.rank == 5 ? Extents{dims[0] * dims[2], dims[1], dims[3], dims[4]} : dims;
}

int64_t winogradTiles(int m, Extents const& output)
{
    Extents const y = winogradPlanes(output);
    return y[0] * divideUp(y[2], m) * divideUp(y[3], m);
}

std::optional<PanelOrder> winogradPanels(jit::Isa isa, int64_t k, int64_t c, int64_t columns)
{
    int64_t const width = jit::vectorWidth(isa);
    if (k % width != 0)
        return std::nullopt;
    PanelOrder order;
    order.channels = int32_t(c * 9);
    for (int64_t at = 0; at < k; at += columns)
        for (int32_t panel : panelsOf(std::min(columns, k - at), kPanelVectors * width))
            order.panels.push_back(panel);
    return order;
}

Result<std::unique_ptr<Kernel>> makeWinogradKernel(WinogradSpec const& spec, Blob const& w, float const* bias,
                                                   BlobPtr const& panels, PackedConstants* packed)
{
    auto kernel = std::make_unique<WinogradKernel>(spec, bias != nullptr);
    TW_TRY(kernel->pack(w, bias, panels, packed));
    return std::unique_ptr<Kernel>(std::move(kernel));
}

} // namespace tw::ops
