// SPDX-License-Identifier: Apache-2.0
// Direct convolution of i8 by the micro-kernel, as direct.cpp does it with floats: rows of a tile are output columns, or
// any pixels where the window is one element; columns are output channels; the sum runs over the filter rows that lie
// in the image (a pointer each), and in them over quads of channels and taps. A transposed convolution is one of these
// for each phase of its outputs. Sums begin with what the filter rows in use say, which is worked out for each set of
// them. Channels that make no whole quad are read with what follows them, and multiplied by zeros.
#include <algorithm>
#include <cmath>

#include "families/convolution/int8_filters.h"

namespace tw::ops {

namespace int8_direct {
namespace {

using convolution::Geometry;
using kernels::jit::Int8Args;
using kernels::jit::Int8Kernel;
using kernels::jit::Int8KernelSpec;
using kernels::jit::Isa;

// A row of outputs cut into tiles, for blocks of one number of vectors.
struct Int8Tiling
{
    int vectors = 0; // 0: no such blocks
    int64_t tiles = 0;
    std::vector<int64_t> begins; // [tiles + 1] columns
    std::vector<int> kernelOf;   // [tiles]
    std::vector<Int8Kernel> kernels;
};

struct Int8ColumnPhase
{
    Phase axis;
    Int8Tiling tilings[2]; // of blocks with most vectors, and with one less
};

struct Int8RowPhase
{
    Phase axis;
    std::vector<TapRange> ranges;                          // sets of filter rows in use
    std::vector<size_t> rangeOf;                           // [axis.count]
    std::vector<std::vector<std::vector<int32_t>>> starts; // [range][column phase][channel]
};

struct Int8DirectPrepared final : Prepared
{
    Geometry g; // of the loops: a window of one element makes one row of all pixels
    std::vector<Int8RowPhase> rows;
    std::vector<Int8ColumnPhase> columns;
    int64_t xPixel = 0, yPixel = 0, residualPixel = 0; // bytes
    int64_t pixelBlocks = 1, blockParts = 1;           // parts of the work
    bool pixelsAlone = false;                          // tiles read one piece after the other
    bool fetchNext = false; // what is read lies behind L2: the next piece, or the same columns of the next rows
};

class Int8DirectConvolution final : public Kernel
{
public:
    Int8DirectConvolution(Problem const& problem, Isa isa, Config const& config)
        : filters(problem, isa, config[0]), node_(*problem.node), ends_(int8Ends(problem, isa)), isa_(isa),
          transposed_(isTransposed(node_)), smallBlocks_(config[1] != 0), threads_(std::max(problem.threads, 1))
    {}

    Int8Filters filters;

    bool readsConstant(size_t i) const override { return i != 1; } // filters are packed

    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const> out) const override
    {
        auto p = std::make_shared<Int8DirectPrepared>();
        TensorRef const &x = in[0], &y = out[0];
        Geometry& g = p->g;
        g = convolutionGeometry(node_, x.dims, in[1].dims, y.dims);
        if (y.count() == 0)
            return std::shared_ptr<Prepared const>(std::move(p));
        p->xPixel = x.pixelStride();
        p->yPixel = y.pixelStride() * ends_.yBytes();
        p->residualPixel = ends_.hasResidual() ? in[Epilogue::kResidual].pixelStride() * ends_.residualBytes() : 0;
        p->pixelsAlone = filters.window == 1;
        for (int i = 0; i < 3; ++i)
            p->pixelsAlone = p->pixelsAlone && g.stride[i] == 1 && g.before[i] == 0 && g.in[i] == g.out[i];
        p->fetchNext = x.sizeBytes() > thisCpu().l2Bytes / 2;
        if (p->pixelsAlone) {
            g.in[2] = g.out[2] = g.batch * g.out[1] * g.out[2];
            g.batch = g.in[1] = g.out[1] = 1;
        }
        if (((g.window[2] - 1) * g.dilation[2] + 1 + std::abs(g.before[2])) * p->xPixel >= int64_t(1) << 28)
            return unsupported(std::string(node_.name) + ": a row of the window is wider than 256 MiB");
        int64_t const most = filters.blocks.size(0), least = filters.blocks.size(filters.blocks.count - 1);
        for (Phase& axis : phasesOf(g, 2, transposed_, filters.columnClasses)) {
            Int8ColumnPhase c;
            c.axis = std::move(axis);
            TW_TRY(tile(*p, c.axis, c.tilings[0], int(most)));
            if (least != most)
                TW_TRY(tile(*p, c.axis, c.tilings[1], int(least)));
            p->columns.push_back(std::move(c));
        }
        for (Phase& axis : phasesOf(g, 1, transposed_, filters.rowClasses))
            p->rows.push_back(rowPhase(*p, std::move(axis)));
        divide(*p);
        return std::shared_ptr<Prepared const>(std::move(p));
    }

    Result<void> run(RunArgs& args) const override
    {
        auto const& p = *static_cast<Int8DirectPrepared const*>(args.prepared);
        int64_t const columns = int64_t(p.columns.size()), phases = columns * int64_t(p.rows.size());
        args.workers->run(filters.groups * phases * p.pixelBlocks * p.blockParts, [&](int64_t part, int) {
            int64_t const blockPart = part % p.blockParts, pixelBlock = part / p.blockParts % p.pixelBlocks;
            int64_t const phase = part / p.blockParts / p.pixelBlocks % phases;
            int64_t const group = part / p.blockParts / p.pixelBlocks / phases;
            int64_t const end = evenBegin(filters.blocks.count, p.blockParts, blockPart + 1);
            for (int64_t b = evenBegin(filters.blocks.count, p.blockParts, blockPart); b < end; ++b)
                runBlock(p, args, p.rows[size_t(phase / columns)], size_t(phase % columns), group, b, pixelBlock);
        });
        return {};
    }

private:
    Int8RowPhase rowPhase(Int8DirectPrepared const& p, Phase axis) const
    {
        Int8RowPhase r;
        for (int64_t q = 0; q < axis.count; ++q) {
            TapRange const range = tapsInside(axis, q);
            size_t i = 0;
            while (i < r.ranges.size() && !(r.ranges[i].first == range.first && r.ranges[i].count == range.count))
                ++i;
            if (i == r.ranges.size()) {
                r.ranges.push_back(range);
                r.starts.emplace_back();
                for (Int8ColumnPhase const& c : p.columns)
                    r.starts.back().push_back(filters.starts(axis.tapClass, c.axis.tapClass, range));
            }
            r.rangeOf.push_back(i);
        }
        r.axis = std::move(axis);
        return r;
    }

    // Kernels for every kind of tile in a row of outputs.
    Result<void> tile(Int8DirectPrepared const& p, Phase const& axis, Int8Tiling& t, int vectors) const
    {
        t.vectors = vectors;
        int64_t const most = kernels::jit::int8MaxRows(isa_, filters.dots, vectors);
        t.tiles = (axis.count + most - 1) / most;
        std::vector<std::vector<int>> known; // rows, then begin and end for each tap
        for (int64_t i = 0; i < t.tiles; ++i) {
            int64_t const at = evenBegin(axis.count, t.tiles, i), rows = evenBegin(axis.count, t.tiles, i + 1) - at;
            std::vector<int> kind{int(rows)};
            for (int64_t offset : axis.offsets) {
                int64_t const shift = at * axis.stride + offset; // column that row 0 reads
                int64_t const begin = shift >= 0 ? 0 : (-shift + axis.stride - 1) / axis.stride;
                int64_t const end = shift >= axis.in ? 0 : (axis.in - 1 - shift) / axis.stride + 1;
                kind.push_back(int(std::min(begin, rows)));
                kind.push_back(int(std::clamp<int64_t>(end, 0, rows)));
            }
            size_t k = size_t(std::find(known.begin(), known.end(), kind) - known.begin());
            if (k == known.size()) {
                TW_ASSIGN(Int8Kernel kernel, Int8Kernel::emit(isa_, filters.dots, specOf(p, axis, vectors, kind)));
                t.kernels.push_back(std::move(kernel));
                known.push_back(std::move(kind));
            }
            t.kernelOf.push_back(int(k));
            t.begins.push_back(at);
        }
        t.begins.push_back(axis.count);
        return {};
    }

    Int8KernelSpec specOf(Int8DirectPrepared const& p, Phase const& axis, int vectors,
                          std::vector<int> const& kind) const
    {
        int64_t const taps = int64_t(axis.offsets.size()), rowBytes = kernels::jit::int8Row(isa_, vectors);
        Int8KernelSpec s;
        s.rows = kind[0];
        s.vectors = vectors;
        auto loop = [&](int64_t quads) {
            kernels::jit::Int8Loop l;
            for (int64_t j = 0; j < taps; ++j)
                for (int64_t u = 0; u < quads; ++u)
                    l.steps.push_back({.aBytes = int32_t(axis.offsets[size_t(j)] * p.xPixel + 4 * u),
                                       .bBytes = int32_t((j * quads + u) * rowBytes),
                                       .rowBegin = kind[size_t(1 + 2 * j)],
                                       .rowEnd = kind[size_t(2 + 2 * j)]});
            l.aAdvance = int32_t(4 * quads);
            l.bAdvance = int32_t(taps * quads * rowBytes);
            return l;
        };
        int64_t const atOnce = filters.quadsAtOnce(taps), runs = filters.quads / atOnce; // of a filter row
        s.body = loop(atOnce);
        if (filters.quads % atOnce != 0)
            s.tail = loop(1);
        if (p.fetchNext)
            s.nextLines = int(std::min((s.rows * axis.stride * p.xPixel / 64 + runs - 1) / runs, kMaxNextLines));
        s.nextFromA = !p.pixelsAlone;
        s.epilogue = ends_.epilogue(filters.groupK % filters.width != 0);
        return s;
    }

    // How much is done with one block of weights: pixels whose inputs take half of L2, or of L1.
    void divide(Int8DirectPrepared& p) const
    {
        Geometry const& g = p.g;
        int64_t const cache = smallBlocks_ ? thisCpu().l1DataBytes : thisCpu().l2Bytes;
        // Rows and columns that a step leaves out are not read.
        int64_t inputBytes = g.batch * filters.groupC;
        for (int i = 0; i < 3; ++i)
            inputBytes *= std::min(g.in[i], g.out[i] * g.window[i]);
        int64_t const tiles = g.batch * p.rows[0].axis.count * p.columns[0].tilings[0].tiles;
        p.pixelBlocks = std::clamp<int64_t>((2 * inputBytes + cache - 1) / cache, 1, tiles);
        int64_t const wanted = threads_ > 1 ? kPartsPerThread * threads_ : 1;
        int64_t const apart = filters.groups * int64_t(p.rows.size() * p.columns.size()), have = apart * p.pixelBlocks;
        if (have >= wanted)
            return;
        p.blockParts = std::min(filters.blocks.count, (wanted + have - 1) / have);
        if (have * p.blockParts < wanted)
            p.pixelBlocks = std::min(tiles, (wanted + apart * p.blockParts - 1) / (apart * p.blockParts));
    }

    void runBlock(Int8DirectPrepared const& p, RunArgs& args, Int8RowPhase const& rows, size_t columnPhase,
                  int64_t group, int64_t block, int64_t pixelBlock) const
    {
        Geometry const& g = p.g;
        Int8ColumnPhase const& columns = p.columns[columnPhase];
        int64_t const first = filters.blocks.begin(block) * filters.width,
                      blockLanes = filters.blocks.size(block) * filters.width;
        Int8Tiling const& t = columns.tilings[filters.blocks.size(block) == columns.tilings[0].vectors ? 0 : 1];
        // Addresses as numbers: row 0 of a tile may lie before the image, where no step reads.
        uintptr_t const x = reinterpret_cast<uintptr_t>(args.inputs[0].data) + uintptr_t(group * filters.groupC);
        int64_t const rowBytes = g.in[2] * p.xPixel, imageBytes = g.in[1] * rowBytes;
        void const* pointers[kMaxRows];
        Int8Args a;
        a.a = pointers;
        a.ldaBytes = columns.axis.stride * p.xPixel;
        int64_t const atOnce = filters.quadsAtOnce(int64_t(columns.axis.offsets.size()));
        a.bodyCount = filters.quads / atOnce;
        a.tailCount = filters.quads % atOnce;
        a.output = ends_.output(args, group * filters.groupK + first);
        a.output.ldcBytes = columns.axis.step * p.yPixel;
        a.output.ldrBytes = columns.axis.step * p.residualPixel;
        a.output.lastColumns = std::min(filters.groupK - first, blockLanes) - (blockLanes - filters.width);
        auto* const y = static_cast<char*>(a.output.c);
        auto const* const residual = static_cast<char const*>(a.output.residual);
        int64_t const total = g.batch * rows.axis.count * t.tiles;
        int64_t const begin = evenBegin(total, p.pixelBlocks, pixelBlock);
        int64_t left = evenBegin(total, p.pixelBlocks, pixelBlock + 1) - begin, tile = begin % t.tiles;
        if (!p.pixelsAlone)
            a.next = reinterpret_cast<void const*>(uintptr_t(rows.axis.stride * rowBytes));
        for (int64_t row = begin / t.tiles; left > 0; ++row, tile = 0) {
            int64_t const q = row % rows.axis.count, n = row / rows.axis.count;
            uintptr_t const image = x + uintptr_t(n * imageBytes);
            int64_t const rowY = rows.axis.first + q * rows.axis.step,
                          pixel = (n * g.out[1] + rowY) * g.out[2] + columns.axis.first;
            size_t const range = rows.rangeOf[size_t(q)];
            TapRange const r = rows.ranges[range];
            a.pointers = r.count;
            a.b = filters.data(group, block, rows.axis.tapClass, columns.axis.tapClass, r.first);
            a.start = rows.starts[range][columnPhase].data() + group * filters.lanes() + first;
            for (; tile < t.tiles && left > 0; ++tile, --left) {
                int64_t const column = t.begins[size_t(tile)];
                for (int64_t f = 0; f < r.count; ++f) {
                    int64_t const h = q * rows.axis.stride + rows.axis.offsets[size_t(r.first + f)];
                    pointers[f] = reinterpret_cast<void const*>(image + uintptr_t(h * rowBytes + column * a.ldaBytes));
                }
                if (p.pixelsAlone)
                    a.next = reinterpret_cast<void const*>(x + uintptr_t(t.begins[size_t(tile) + 1] * a.ldaBytes));
                int64_t const at = pixel + column * columns.axis.step;
                a.output.c = y + at * p.yPixel;
                a.output.residual = residual ? residual + at * p.residualPixel : nullptr;
                t.kernels[size_t(t.kernelOf[size_t(tile)])](a);
            }
        }
    }

    ir::Node const& node_;
    Int8Ends ends_;
    Isa isa_;
    bool transposed_;
    bool smallBlocks_;
    int threads_;
};

Support supports(CpuTactic const& t, Problem const& p)
{
    if (Support s = supportsInt8Convolution(p, t.isa(), 2, Weights::kConstant); !s.ok)
        return s;
    bool const transposed = isTransposed(*p.node);
    Geometry const g = convolutionGeometry(*p.node, p.inputs[0].maxDims, p.inputs[1].dims, p.outputs[0].maxDims);
    if (transposed && std::max(g.stride[1], g.stride[2]) > kMaxPhases)
        return Support::no("takes strides of up to " + std::to_string(kMaxPhases));
    if (g.window[2] > kMaxTaps || g.window[1] > kMaxRows)
        return Support::no("takes windows of up to " + std::to_string(kMaxRows) + " rows of up to " +
                           std::to_string(kMaxTaps) + " elements");
    if (g.window[2] * g.dilation[2] > kMaxBorder || g.before[2] > kMaxBorder)
        return Support::no("takes windows and padding of up to " + std::to_string(kMaxBorder) + " columns");
    int64_t const groupC = g.c / g.groups;
    if (g.c - groupC + (groupC + 3) / 4 * 4 > pixelStrideOf(Format::kChannelsLast, DataType::kInt8, g.c))
        return Support::no("the last of " + std::to_string(g.c) + " channels in groups of " + std::to_string(groupC) +
                           " are read four at a time, beyond the pixel");
    return Support::yes();
}

std::vector<Config> configs(CpuTactic const& t, Problem const& p)
{
    int64_t const vectors = vectorsOfGroup(p, t.isa());
    int64_t const inputBytes = p.inputs[0].dims.volume() / p.node->attrsAs<KernelWindowAttrs>().groups;
    std::vector<Config> list;
    for (int64_t v : int8TileVectors(t.isa(), vectors))
        for (int64_t small : {0, 1})
            if (small == 0 || inputBytes > thisCpu().l1DataBytes / 2)
                list.push_back({v, small});
    return list;
}

double estimate(CpuTactic const& t, Problem const& p, Config const& config)
{
    bool const transposed = isTransposed(*p.node);
    Geometry const g = convolutionGeometry(*p.node, p.inputs[0].dims, p.inputs[1].dims, p.outputs[0].dims);
    double const width = kernels::jit::vectorWidth(t.isa()), vectors = double(config[0]);
    double const most = kernels::jit::int8MaxRows(t.isa(), dotsOfThisCpu(t.isa()), int(config[0]));
    bool const pixelsAlone = g.window[1] * g.window[2] * g.stride[1] * g.stride[2] == 1;
    double const phases[2] = {transposed ? double(g.stride[1]) : 1, transposed ? double(g.stride[2]) : 1};
    double const lines = pixelsAlone ? 1 : double(g.batch * g.out[1]);
    double const columns = (pixelsAlone ? double(g.batch * g.out[1] * g.out[2]) : double(g.out[2])) / phases[1];
    double const tiles = lines * std::ceil(columns / most) * phases[1] * double(g.groups);
    double const rows = columns / std::max(std::ceil(columns / most), 1.);
    double const groupVectors = std::ceil(double(g.k / g.groups) / width), blocks = std::ceil(groupVectors / vectors);
    // A product a cycle at 3 GHz; four cycles until a sum can be used again; what follows the sums costs about as much
    // as six of its products; 20 ns a call.
    double const perStep = std::max(rows * groupVectors / blocks, 4.);
    double const depth = double((g.c / g.groups + 3) / 4 * g.window[1] * g.window[2]) / phases[0] / phases[1];
    return tiles * blocks * (perStep * (depth + 6) / 3000 + 0.02) / p.threads;
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& p, Config const& config, PackedConstants& packed)
{
    if (config.size() != 2 || config[0] < 1 || config[0] > 4)
        return t.wrongConfig("{1..4, 0..1}");
    auto kernel = std::make_unique<Int8DirectConvolution>(p, t.isa(), config);
    TW_TRY(kernel->filters.pack(p.inputs[1].dims, *p.inputs[1].constant, packed));
    return std::unique_ptr<Kernel>(std::move(kernel));
}

} // namespace
} // namespace int8_direct

constexpr CpuFunctions kInt8DirectConvolution{.supports = int8_direct::supports,
                                              .formats = allChannelsLast,
                                              .configs = int8_direct::configs,
                                              .estimate = int8_direct::estimate,
                                              .load = int8_direct::load};

} // namespace tw::ops
