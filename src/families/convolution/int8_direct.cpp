// SPDX-License-Identifier: Apache-2.0
// Direct convolution of i8 by the micro-kernel, as direct.cpp does it with floats: rows of a tile are output columns, or
// any pixels where the window is one element; columns are output channels; the sum runs over the filter rows that lie
// in the image (a pointer each), and in them over quads of channels and taps. A transposed convolution is one of these
// for each phase of its outputs. Sums begin with what the filter rows in use say, which is worked out for each set of
// them. Channels that make no whole quad are read with what follows them, and multiplied by zeros.
#include "families/convolution/direct_tiling.h"
#include "families/convolution/int8_filters.h"

namespace tw::ops {

namespace int8_direct {
namespace {

using convolution::Geometry;
using kernels::jit::GemmArgs;
using kernels::jit::GemmKernel;
using kernels::jit::GemmKernelSpec;
using kernels::jit::Isa;

struct Int8RowPhase
{
    Phase axis;
    std::vector<TapRange> ranges;                          // sets of filter rows in use
    std::vector<size_t> rangeOf;                           // [axis.count]
    std::vector<std::vector<std::vector<int32_t>>> starts; // [range][column phase][channel]
};

struct Int8DirectPrepared final : DirectShapes<GemmKernel>
{
    using DirectShapes::DirectShapes;
    std::vector<Int8RowPhase> rows;
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
        TensorRef const &x = in[0], &y = out[0];
        auto p = std::make_shared<Int8DirectPrepared>(convolutionGeometry(node_, x.dims, in[1].dims, y.dims));
        Geometry& g = p->g;
        if (y.count() == 0)
            return std::shared_ptr<Prepared const>(std::move(p));
        p->xPixel = x.pixelStride();
        p->yPixel = y.pixelStride() * ends_.yBytes();
        p->residualPixel = ends_.hasResidual() ? in[Epilogue::kResidual].pixelStride() * ends_.residualBytes() : 0;
        p->pixelsAlone = joinPixels(g);
        p->fetchNext = x.sizeBytes() > thisCpu().l2Bytes / 2;
        TW_TRY(checkRow(node_, g, p->xPixel, "256 MiB"));
        TW_TRY(cutColumns(
            *p, transposed_, filters.columnClasses, filters.blocks,
            [&](int vectors) { return kernels::jit::gemmMaxRows(isa_, vectors, filters.factors); },
            [&](Phase const& axis, int vectors, TileKind const& kind) {
                return GemmKernel::emit(isa_, specOf(*p, axis, vectors, kind));
            }));
        for (Phase& axis : phasesOf(g, 1, transposed_, filters.rowClasses))
            p->rows.push_back(rowPhase(*p, std::move(axis)));
        p->divide(filters.groupC, smallBlocks_ ? thisCpu().l1DataBytes : thisCpu().l2Bytes, filters.groups,
                  int64_t(p->rows.size() * p->columns.size()), p->rows[0].axis.count, filters.blocks.count, threads_);
        return std::shared_ptr<Prepared const>(std::move(p));
    }

    Result<void> run(RunArgs& args) const override
    {
        auto const& p = *static_cast<Int8DirectPrepared const*>(args.prepared);
        int64_t const columns = int64_t(p.columns.size());
        p.forEachBlock(*args.workers, filters.groups, columns * int64_t(p.rows.size()), filters.blocks,
                       [&](int64_t phase, int64_t group, int64_t block, int64_t pixelBlock) {
                           runBlock(p, args, p.rows[size_t(phase / columns)], size_t(phase % columns), group, block,
                                    pixelBlock);
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
                for (auto const& c : p.columns)
                    r.starts.back().push_back(filters.starts(axis.tapClass, c.axis.tapClass, range));
            }
            r.rangeOf.push_back(i);
        }
        r.axis = std::move(axis);
        return r;
    }

    GemmKernelSpec specOf(Int8DirectPrepared const& p, Phase const& axis, int vectors, TileKind const& kind) const
    {
        int64_t const taps = int64_t(axis.offsets.size()), rowBytes = vectors * filters.width * 4;
        GemmKernelSpec s;
        s.rows = kind[0];
        s.vectors = vectors;
        auto loop = [&](int64_t quads) { return tapSteps(axis, kind, quads, p.xPixel, 4, rowBytes); };
        int64_t const atOnce = filters.quadsAtOnce(taps), runs = filters.quads / atOnce; // of a filter row
        s.body = loop(atOnce);
        if (filters.quads % atOnce != 0)
            s.tail = loop(1);
        if (p.fetchNext)
            s.nextLines = p.linesAhead(s.rows, axis, p.xPixel, runs);
        s.nextFromA = !p.pixelsAlone;
        s.factors = filters.factors;
        s.masked = filters.groupK % filters.width != 0;
        addEnd(s, ends_.end());
        return s;
    }

    void runBlock(Int8DirectPrepared const& p, RunArgs& args, Int8RowPhase const& rows, size_t columnPhase,
                  int64_t group, int64_t block, int64_t pixelBlock) const
    {
        Geometry const& g = p.g;
        ColumnPhase<GemmKernel> const& columns = p.columns[columnPhase];
        int64_t const first = filters.blocks.begin(block) * filters.width,
                      blockLanes = filters.blocks.size(block) * filters.width;
        RowTiling<GemmKernel> const& t = columns.tiling(filters.blocks.size(block));
        // Addresses as numbers: row 0 of a tile may lie before the image, where no step reads.
        uintptr_t const x = reinterpret_cast<uintptr_t>(args.inputs[0].data) + uintptr_t(group * filters.groupC);
        int64_t const rowBytes = g.in[2] * p.xPixel, imageBytes = g.in[1] * rowBytes;
        void const* pointers[kMaxRows];
        GemmArgs a;
        a.a = pointers;
        a.ldaBytes = columns.axis.stride * p.xPixel;
        int64_t const atOnce = filters.quadsAtOnce(int64_t(columns.axis.offsets.size()));
        a.bodyCount = filters.quads / atOnce;
        a.tailCount = filters.quads % atOnce;
        ends_.set(a, args, group * filters.groupK + first);
        a.ldcBytes = columns.axis.step * p.yPixel;
        a.ldrBytes = columns.axis.step * p.residualPixel;
        a.lastColumns = std::min(filters.groupK - first, blockLanes) - (blockLanes - filters.width);
        auto* const y = static_cast<char*>(a.c);
        auto const* const residual = static_cast<char const*>(a.residual);
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
                a.c = y + at * p.yPixel;
                a.residual = residual ? residual + at * p.residualPixel : nullptr;
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

Support supports(CpuTactic const&, Problem const& p)
{
    TW_SUPPORTS(supportsInt8Convolution(p, 2, Weights::kConstant));
    Geometry const g = convolutionGeometry(*p.node, p.inputs[0].maxDims, p.inputs[1].dims, p.outputs[0].maxDims);
    TW_SUPPORTS(supportsDirectWindow(g, isTransposed(*p.node)));
    int64_t const groupC = g.c / g.groups;
    if (g.c - groupC + roundUp(groupC, 4) > pixelStrideOf(Format::kChannelsLast, DataType::kInt8, g.c))
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
    int64_t const quads = divideUp(p.inputs[0].dims[1] / p.node->attrsAs<KernelWindowAttrs>().groups, 4);
    return estimateDirect(p, t.isa(), config, kernels::jit::gemmMaxRows(t.isa(), int(config[0]), byteFactors(t.isa())),
                          quads, 1, 6);
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
