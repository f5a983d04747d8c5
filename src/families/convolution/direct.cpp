// SPDX-License-Identifier: Apache-2.0
// Direct convolution over two or three axes by the matrix micro-kernel: rows of a tile are output columns, or any
// pixels where the window is one element; columns are output channels; the sum runs over the filter rows that lie in
// the image (a pointer each), and in them over channels and taps. Over three axes a filter row outside the image is a
// row of zeros, so that the rows of all planes of the filter follow each other. A transposed convolution is one of
// these for each phase of its outputs: output o = phase + q stride takes those filter elements f for which phase +
// padding - f dilation is a multiple of the stride, and they read inputs at fixed distances from q.
//
// Of i8, over two axes, four channels are one element: those that make no whole four are read with what follows them,
// and multiplied by zeros. Sums begin with what the filter rows in use say, which is worked out for each set of them.
#include "families/convolution/direct_tiling.h"
#include "kernels/cpu/int8_pixels.h"
#include "tactic/vector_tactic.h"

namespace tw::ops {

namespace direct {
namespace {

using convolution::Geometry;
using kernels::jit::Factors;
using kernels::jit::GemmArgs;
using kernels::jit::GemmKernel;
using kernels::jit::GemmKernelSpec;
using kernels::jit::Isa;
using Input = DirectInput;

constexpr int64_t kMaxSteps = 128; // of emitted code
constexpr int64_t kMaxPlanes = 16; // input channels when they lie apart
constexpr int kMostTileRows = 12;  // with signs

// --- what is made for a set of shapes ---

struct RowPhase
{
    Phase axis;
    std::vector<TapRange> inside; // [axis.count]
    // Of i8: where sums begin, for each set of filter rows in use.
    std::vector<size_t> startOf;                           // [axis.count]
    std::vector<std::vector<std::vector<int32_t>>> starts; // [set][column phase][channel]
};
struct DirectPrepared final : DirectShapes
{
    using DirectShapes::DirectShapes;
    std::vector<RowPhase> planes, rows;
    std::vector<float> zeros; // a row of x, where the window has several planes
};

// --- the kernel ---

class DirectConvolution final : public Kernel
{
public:
    DirectConvolution(Problem const& problem, Isa isa, Factors factors, Input input, Config const& config)
        : filters(problem, isa, factors, input, config[0]), node_(*problem.node), end_(jitEnd(problem, isa)), isa_(isa),
          input_(input), transposed_(isTransposed(node_)), bytes_(isBytes(factors)),
          l2Bytes_(problem.target.cpu->l2Bytes),
          blockBytes_(config[1] != 0 ? problem.target.cpu->l1DataBytes : l2Bytes_),
          threads_(std::max(problem.threads, 1)), computed_(!problem.inputs[1].constant)
    {}

    DirectFilters filters;

    // Filters, and of floats the bias, are packed.
    bool readsConstant(size_t i) const override { return bytes_ ? i != 1 : i > 2; }
    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const>) const override
    {
        if (hasSigns())
            return in[0].dims[0] * in[0].dims.volume(2, in[0].dims.rank) * filters.groups * int64_t(sizeof(int32_t));
        return computed_ ? filters.packedCount() * int64_t(sizeof(float)) : 0;
    }

    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const> out) const override
    {
        TensorRef const &x = in[0], &y = out[0];
        auto p = std::make_shared<DirectPrepared>(convolutionGeometry(node_, x.dims, in[1].dims, y.dims));
        Geometry& g = p->g;
        if (y.count() == 0)
            return std::shared_ptr<Prepared const>(std::move(p));
        int64_t const each = sizeOf(x.type);
        p->xPixel = (input_ == Input::kNchw ? 1 : x.pixelStride()) * each;
        p->yPixel = y.pixelStride() * end_.yBytes();
        p->residualPixel = end_.hasResidual() ? in[Epilogue::kResidual].pixelStride() * end_.residualBytes() : 0;
        p->pixelsAlone = input_ != Input::kNchw && joinPixels(g);
        p->fetchNext = input_ != Input::kNchw && x.sizeBytes() > l2Bytes_ / 2;
        TW_TRY(checkRow(node_, g, p->xPixel / each, bytes_ ? "256 MiB" : "1 GiB"));
        p->planes = phasesAlong(g, 0, transposed_, filters.planeClasses);
        p->rows = phasesAlong(g, 1, transposed_, filters.rowClasses);
        if (g.window[0] > 1) // planar kernels step from channel to channel there, too
            p->zeros.assign(size_t(input_ == Input::kNchw ? (filters.groupC - 1) * g.in[0] * g.in[1] * g.in[2] + g.in[2]
                                                          : g.in[2] * p->xPixel / each),
                            0.0F);
        TW_TRY(cutColumns(
            *p, transposed_, filters.columnClasses, filters.blocks,
            [&](int vectors) { return kernels::jit::gemmMaxRows(isa_, vectors, filters.factors); },
            [&](Phase const& axis, int vectors, TileKind const& kind) {
                return GemmKernel::emit(isa_, specOf(*p, axis, vectors, kind));
            }));
        for (RowPhase& r : p->rows)
            if (bytes_)
                addStarts(*p, r);
        p->divide(filters.groupC * each, blockBytes_, filters.groups,
                  int64_t(p->planes.size() * p->rows.size() * p->columns.size()),
                  p->planes[0].axis.count * p->rows[0].axis.count, filters.blocks.count, threads_);
        return std::shared_ptr<Prepared const>(std::move(p));
    }

    Result<void> run(RunArgs& args) const override
    {
        auto const& p = *static_cast<DirectPrepared const*>(args.prepared);
        if (args.outputs[0].count() == 0)
            return {};
        int64_t const columns = int64_t(p.columns.size()), rows = int64_t(p.rows.size());
        if (computed_)
            filters.packInto(static_cast<float*>(args.workspace), args.inputs[1].data, *args.workers);
        if (hasSigns())
            sumNegatives(p, args);
        p.forEachBlock(*args.workers, filters.groups, columns * rows * int64_t(p.planes.size()), filters.blocks,
                       [&](int64_t phase, int64_t group, int64_t block, int64_t pixelBlock) {
                           runBlock(p, args, p.planes[size_t(phase / columns / rows)],
                                    p.rows[size_t(phase / columns % rows)], size_t(phase % columns), group, block,
                                    pixelBlock);
                       });
        return {};
    }

private:
    bool hasSigns() const { return filters.factors == Factors::kByteSigns; }

    // The sums of -a over the negative a of each pixel that kernels read, [pixel][group].
    void sumNegatives(DirectPrepared const& p, RunArgs& args) const
    {
        TensorRef const& x = args.inputs[0];
        int64_t const pixels = x.dims[0] * x.dims.volume(2, x.dims.rank), read = roundUp(filters.groupC, 4);
        auto* const sums = static_cast<int32_t*>(args.workspace);
        inPieces(*args.workers, pixels, pixels * p.xPixel, [&](int64_t begin, int64_t end) {
            if (filters.groups == 1)
                return avx2::negativeSums(x.as<int8_t>() + begin * p.xPixel, end - begin, read, p.xPixel, sums + begin);
            for (int64_t i = begin; i < end; ++i)
                avx2::negativeSums(x.as<int8_t>() + i * p.xPixel, filters.groups, read, filters.groupC,
                                   sums + i * filters.groups);
        });
    }

    // Where the sums of outputs [begin, end) of a row start: at the sums of all pixels under the window, whose rows begin at the
    // pixels `under`.
    int32_t const* rowStarts(int32_t const* sums, std::span<int64_t const> under, Phase const& axis, int64_t group,
                             int64_t begin, int64_t end, int32_t* buffer) const
    {
        int64_t const groups = filters.groups;
        if (under.size() == 1 && axis.offsets.size() == 1 && axis.stride == 1 && groups == 1 &&
            begin + axis.offsets[0] >= 0 && end + axis.offsets[0] <= axis.in)
            return sums + under[0] + begin + axis.offsets[0];
        for (int64_t q = begin; q < end; ++q) {
            TapRange const inside = tapsInside(axis, q);
            int32_t sum = 0;
            for (int64_t const row : under)
                for (int64_t t = inside.first; t < inside.first + inside.count; ++t)
                    sum += sums[(row + q * axis.stride + axis.offsets[size_t(t)]) * groups + group];
            buffer[q - begin] = sum;
        }
        return buffer;
    }

    static std::vector<RowPhase> phasesAlong(Geometry const& g, int i, bool transposed, Classes const& classes)
    {
        std::vector<RowPhase> list;
        for (Phase& axis : phasesOf(g, i, transposed, classes)) {
            RowPhase r;
            for (int64_t q = 0; q < axis.count; ++q)
                r.inside.push_back(tapsInside(axis, q));
            r.axis = std::move(axis);
            list.push_back(std::move(r));
        }
        return list;
    }

    void addStarts(DirectPrepared const& p, RowPhase& r) const
    {
        std::vector<TapRange> known;
        for (TapRange const& range : r.inside) {
            size_t i = 0;
            while (i < known.size() && !(known[i].first == range.first && known[i].count == range.count))
                ++i;
            r.startOf.push_back(i);
            if (i < known.size())
                continue;
            known.push_back(range);
            r.starts.emplace_back();
            for (ColumnPhase const& c : p.columns)
                r.starts.back().push_back(filters.starts(r.axis.tapClass, c.axis.tapClass, range));
        }
    }

    GemmKernelSpec specOf(DirectPrepared const& p, Phase const& axis, int vectors, TileKind const& kind) const
    {
        int64_t const taps = int64_t(axis.offsets.size()), rowBytes = vectors * filters.width * 4;
        GemmKernelSpec s;
        s.rows = kind[0];
        s.vectors = vectors;
        s.factors = filters.factors;
        auto loop = [&](int64_t steps, int64_t apart) { // that follow each other at distance `apart`
            return tapSteps(axis, kind, steps, p.xPixel, apart, rowBytes);
        };
        int64_t const atOnce = filters.stepsAtOnce(taps);
        if (input_ == Input::kNchw) {
            s.body = loop(filters.depth, p.g.in[0] * p.g.in[1] * p.g.in[2] * 4);
        } else {
            s.body = loop(atOnce, 4);
            if (bytes_ ? filters.depth % atOnce != 0 : atOnce > 1)
                s.tail = loop(1, 4);
        }
        int64_t const runs = input_ == Input::kNchw ? 1 : filters.depth / atOnce; // of the loop, for a filter row
        if (p.fetchNext && runs > 0)
            s.nextLines = p.linesAhead(s.rows, axis, p.xPixel, runs);
        s.nextFromA = !p.pixelsAlone;
        s.prefetchC = runs == 0;
        if (runs > 0 && !bytes_) {
            int64_t const all =
                runs * std::max<int64_t>(p.g.window[0] * p.g.window[1] / 2, 1); // as many as border rows have
            s.rowsPerRun = int(divideUp(s.rows, all));
        }
        s.masked = (bytes_ || filters.groups > 1) && filters.groupK % filters.width != 0;
        end_.add(s);
        return s;
    }

    void runBlock(DirectPrepared const& p, RunArgs& args, RowPhase const& planes, RowPhase const& rows,
                  size_t columnPhase, int64_t group, int64_t block, int64_t pixelBlock) const
    {
        Geometry const& g = p.g;
        bool const isNchw = input_ == Input::kNchw;
        ColumnPhase const& columns = p.columns[columnPhase];
        int64_t const first = filters.blocks.begin(block) * filters.width, lane = group * filters.lanes() + first;
        int64_t const blockLanes = filters.blocks.size(block) * filters.width,
                      taps = int64_t(columns.axis.offsets.size());
        RowTiling const& t = columns.tiling(filters.blocks.size(block));
        float const* w = filters.data(group, block, planes.axis.tapClass, rows.axis.tapClass, columns.axis.tapClass,
                                      computed_ ? static_cast<float const*>(args.workspace) : nullptr);
        // Addresses as numbers: row 0 of a tile may lie before the image, where no step reads.
        uintptr_t const x = reinterpret_cast<uintptr_t>(args.inputs[0].data) +
                            uintptr_t(isNchw ? 0 : group * filters.groupC * sizeOf(args.inputs[0].type));
        int64_t const rowBytes = g.in[2] * p.xPixel, planeBytes = g.in[1] * rowBytes,
                      imageBytes = g.in[0] * planeBytes * (isNchw ? filters.groupC : 1);
        void const* pointers[kMaxRows];
        int64_t under[kMaxRows];    // rows of x under the filter: numbers of their first pixels,
        uintptr_t starts[kMaxRows]; // and where they lie
        int32_t rowStartBuffer[kMostTileRows];
        GemmArgs a;
        a.a = pointers;
        a.ldaBytes = columns.axis.stride * p.xPixel;
        end_.set(a, args, group * filters.groupK + first);
        if (!bytes_)
            a.bias = filters.bias() + lane;
        a.ldcBytes = columns.axis.step * p.yPixel;
        a.ldrBytes = columns.axis.step * p.residualPixel;
        a.lastColumns = std::min(filters.groupK - first, blockLanes) - (blockLanes - filters.width);
        auto* const y = static_cast<char*>(a.c);
        auto const* const residual = static_cast<char const*>(a.residual);
        int64_t const u = filters.stepsAtOnce(taps);
        a.bodyCount = isNchw ? 1 : filters.depth / u;
        a.tailCount = isNchw ? 0 : filters.depth % u;
        int64_t const total = g.batch * planes.axis.count * rows.axis.count * t.tiles;
        int64_t const begin = evenBegin(total, p.pixelBlocks, pixelBlock);
        int64_t left = evenBegin(total, p.pixelBlocks, pixelBlock + 1) - begin, tile = begin % t.tiles;
        if (!p.pixelsAlone)
            a.next = reinterpret_cast<void const*>(uintptr_t(rows.axis.stride * rowBytes));
        for (int64_t row = begin / t.tiles; left > 0; ++row, tile = 0) {
            int64_t const q = row % rows.axis.count, plane = row / rows.axis.count;
            int64_t const n = plane / planes.axis.count, qd = plane % planes.axis.count;
            uintptr_t const image = x + uintptr_t(n * imageBytes);
            int64_t const rowY = rows.axis.first + q * rows.axis.step,
                          planeY = planes.axis.first + qd * planes.axis.step;
            int64_t const pixel = ((n * g.out[0] + planeY) * g.out[1] + rowY) * g.out[2] + columns.axis.first;
            // Rows of zeros stand for those outside where they lie between others.
            TapRange const inside = rows.inside[size_t(q)], d = planes.inside[size_t(qd)];
            int64_t const tapRows = int64_t(rows.axis.offsets.size());
            TapRange const r = p.zeros.empty() ? inside : TapRange{0, tapRows};
            a.pointers = inside.count > 0 ? d.count * r.count : 0;
            a.b = w + (d.first * tapRows + r.first) * filters.depth * taps * blockLanes;
            size_t rowsUnder = 0;
            for (int64_t i = d.first; i < d.first + d.count; ++i)
                for (int64_t tap = r.first; tap < r.first + r.count; ++tap) {
                    int64_t const z = qd * planes.axis.stride + planes.axis.offsets[size_t(i)];
                    int64_t const h = q * rows.axis.stride + rows.axis.offsets[size_t(tap)];
                    bool const isZero = tap < inside.first || tap >= inside.first + inside.count;
                    under[rowsUnder] = ((n * g.in[0] + z) * g.in[1] + h) * g.in[2];
                    starts[rowsUnder++] = isZero ? reinterpret_cast<uintptr_t>(p.zeros.data())
                                                 : image + uintptr_t(z * planeBytes + h * rowBytes);
                }
            if (bytes_)
                a.start = rows.starts[rows.startOf[size_t(q)]][columnPhase].data() + lane;
            for (; tile < t.tiles && left > 0; ++tile, --left) {
                int64_t const column = t.begins[size_t(tile)];
                for (size_t i = 0; i < rowsUnder; ++i)
                    pointers[i] = reinterpret_cast<void const*>(starts[i] + uintptr_t(column * a.ldaBytes));
                if (p.pixelsAlone)
                    a.next = reinterpret_cast<void const*>(x + uintptr_t(t.begins[size_t(tile) + 1] * a.ldaBytes));
                int64_t const at = pixel + column * columns.axis.step;
                a.c = y + at * p.yPixel;
                a.residual = residual ? residual + at * p.residualPixel : nullptr;
                if (hasSigns())
                    a.rowStart = rowStarts(static_cast<int32_t const*>(args.workspace), {under, rowsUnder},
                                           columns.axis, group, column, t.begins[size_t(tile) + 1], rowStartBuffer);
                t.kernels[size_t(t.kernelOf[size_t(tile)])](a);
            }
        }
    }

    ir::Node const& node_;
    JitEnd end_;
    Isa isa_;
    Input input_;
    bool transposed_, bytes_;
    int64_t l2Bytes_, blockBytes_; // of the cache; of the input that a block of the work reads
    int threads_;
    bool computed_; // filters, by the network: packed at each run
};

Support supports(CpuTactic const& t, Problem const& p)
{
    TW_SUPPORTS(supportsConvolution(p, 3, Weights::kAny));
    if (p.inputs.size() > 2 && p.inputs[2].present && !p.inputs[2].constant)
        return Support::no("the bias is not constant");
    bool const transposed = isTransposed(*p.node), isNchw = t.variant<Input>() == Input::kNchw;
    Geometry const g = convolutionGeometry(*p.node, p.inputs[0].maxDims, p.inputs[1].dims, p.outputs[0].maxDims);
    if (isNchw && transposed)
        return Support::no("takes no transposed convolutions");
    if (!transposed && g.groups == g.c && g.c == g.k && g.c > 1)
        return Support::no("one filter for each channel is depthwise convolution");
    if (isNchw && (g.c > kMaxPlanes || g.groups > 1 || g.c * g.window[2] > kMaxSteps))
        return Support::no(fmt::format(
            "takes up to {} input channels in one group, and up to {} of their elements in a row of the window",
            kMaxPlanes, kMaxSteps));
    if (isNchw && g.in[0] * g.in[1] * g.in[2] > (int64_t(1) << 29) / 4 / g.c)
        return Support::no("an image of " + p.inputs[0].maxDims.str() + " takes more than 512 MiB");
    constexpr int64_t kMostZeros = 4 << 20;
    if (isNchw && g.window[0] > 1 && g.c * g.in[0] * g.in[1] * g.in[2] > kMostZeros)
        return Support::no("an image of " + p.inputs[0].maxDims.str() + " takes more than 16 MiB");
    return supportsDirectWindow(g, transposed);
}

std::vector<Formats> formats(CpuTactic const& t, Problem const& p)
{
    Formats f = channelsLastFormats(p);
    f.inputs[1] = Format::kLinear; // filters, where they are computed
    if (t.variant<Input>() == Input::kNchw)
        f.inputs[0] = Format::kLinear;
    return {f};
}

std::vector<Config> configs(CpuTactic const& t, Problem const& p)
{
    int64_t const vectors = vectorsOfGroup(p, t.isa());
    std::vector<Config> list;
    // Few pixels: wide tiles, to have sums enough to hide the latency of one.
    Extents const& y = p.outputs[0].dims;
    Extents const& w = p.inputs[1].dims;
    bool const alone = w.volume(2, w.rank) == 1;
    if ((alone ? y[0] * y.volume(2, y.rank) : y[y.rank - 1]) <= kernels::jit::gemmMaxRows(t.isa(), 4) && vectors > 3)
        list.push_back({4, 0});
    for (int64_t v : {2, 3, 1})
        if (v <= vectors && (v > 1 || vectors % 2 == 1))
            for (int64_t small : {0, 1})
                list.push_back({v, small});
    return list;
}

double estimate(CpuTactic const& t, Problem const& p, Config const& config)
{
    int64_t const channels = p.inputs[0].dims[1] / p.node->attrsAs<KernelWindowAttrs>().groups;
    // Two 32-byte products a cycle, or twice that less what hides it.
    return estimateDirect(p, t.isa(), config, kernels::jit::gemmMaxRows(t.isa(), int(config[0])), channels,
                          t.isa() == Isa::kAvx512 ? 1.5 : 2., 0);
}

bool isDirectConfig(Config const& config)
{
    return config.size() == 2 && config[0] >= 1 && config[0] <= 4;
}

// Of filters in panels, or packed ones.
CpuFunctions::Loaded make(CpuTactic const& t, Problem const& p, Config const& config, BlobPtr const& panels,
                          PackedConstants* packed)
{
    if (!isDirectConfig(config))
        return t.wrongConfig("{1..4, 0..1}");
    bool const bytes = isQuantized(p.inputs[0].type);
    auto kernel = std::make_unique<DirectConvolution>(p, t.isa(), bytes ? byteFactors(p, t.isa()) : Factors::kFloat,
                                                      t.variant<Input>(), config);
    Blob const* bias = !bytes && p.inputs.size() > 2 && p.inputs[2].present ? p.inputs[2].constant : nullptr;
    float const* const biases = bias ? bias->as<float>() : nullptr;
    if (panels)
        TW_TRY(kernel->filters.takePanels(panels, biases));
    else if (!p.inputs[1].constant)
        TW_TRY(kernel->filters.packAtRun(biases));
    else
        TW_TRY(kernel->filters.pack(p.inputs[1].dims, *p.inputs[1].constant, biases, *packed));
    return std::unique_ptr<Kernel>(std::move(kernel));
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& p, Config const& config, PackedConstants& packed)
{
    return make(t, p, config, nullptr, &packed);
}

std::optional<PanelOrder> panelOrder(CpuTactic const& t, Problem const& p, Config const& config)
{
    return isDirectConfig(config) ? DirectFilters::panelOrder(p, t.isa(), t.variant<Input>(), config) : std::nullopt;
}

CpuFunctions::Loaded loadPanels(CpuTactic const& t, Problem const& p, Config const& config, BlobPtr const& panels)
{
    return make(t, p, config, panels, nullptr);
}

// --- of i8 ---

Support supportsBytes(CpuTactic const&, Problem const& p)
{
    TW_SUPPORTS(supportsInt8Convolution(p, 2, Weights::kConstant));
    Geometry const g = convolutionGeometry(*p.node, p.inputs[0].maxDims, p.inputs[1].dims, p.outputs[0].maxDims);
    TW_SUPPORTS(supportsDirectWindow(g, isTransposed(*p.node)));
    int64_t const groupC = g.c / g.groups;
    if (g.c - groupC + roundUp(groupC, 4) > pixelStrideOf(Format::kChannelsLast, DataType::kInt8, g.c))
        return Support::no(fmt::format(
            "the last of {} channels in groups of {} are read four at a time, beyond the pixel", g.c, groupC));
    return Support::yes();
}

std::vector<Config> configsOfBytes(CpuTactic const& t, Problem const& p)
{
    int64_t const vectors = vectorsOfGroup(p, t.isa());
    int64_t const inputBytes = p.inputs[0].dims.volume() / p.node->attrsAs<KernelWindowAttrs>().groups;
    std::vector<Config> list;
    for (int64_t v : int8TileVectors(p, t.isa(), vectors))
        for (int64_t small : {0, 1})
            if (small == 0 || inputBytes > p.target.cpu->l1DataBytes / 2)
                list.push_back({v, small});
    return list;
}

double estimateBytes(CpuTactic const& t, Problem const& p, Config const& config)
{
    int64_t const quads = divideUp(p.inputs[0].dims[1] / p.node->attrsAs<KernelWindowAttrs>().groups, 4);
    return estimateDirect(p, t.isa(), config,
                          kernels::jit::gemmMaxRows(t.isa(), int(config[0]), byteFactors(p, t.isa())), quads, 1, 6);
}

} // namespace
} // namespace direct

constexpr CpuFunctions kDirectConvolution{direct::supports, direct::formats,    direct::configs,   direct::estimate,
                                          direct::load,     direct::panelOrder, direct::loadPanels};
constexpr CpuFunctions kInt8DirectConvolution{direct::supportsBytes, allChannelsLast, direct::configsOfBytes,
                                              direct::estimateBytes, direct::load};

} // namespace tw::ops
