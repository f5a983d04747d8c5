// SPDX-License-Identifier: Apache-2.0
// Direct convolution by the matrix micro-kernel: rows of a tile are output columns, or any pixels where the window is
// one element; columns are output channels; the sum runs over the filter rows that lie in the image (a pointer each),
// and in them over channels and taps.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/jit/gemm_kernel.h"
#include "ops/convolution_tactics.h"
#include "ops/jit_support.h"

namespace tw::ops {

namespace {

using convolution::Geometry;
using kernels::jit::EpilogueOp;
using kernels::jit::GemmArgs;
using kernels::jit::GemmKernel;
using kernels::jit::GemmKernelSpec;
using kernels::jit::GemmStep;
using kernels::jit::Isa;

constexpr int kMaxTaps = 64;           // of a filter row
constexpr int64_t kMaxRows = 64;       // of a filter
constexpr int64_t kMaxBorder = 512;    // columns of padding, and of a window: every one may need a kernel of its own
constexpr int64_t kMaxSteps = 128;     // of emitted code
constexpr int64_t kMaxNextLines = 64;  // that a run of the kernel's loop fetches
constexpr int64_t kMaxPlanes = 16;     // input channels when they lie apart
constexpr int64_t kPartsPerThread = 4; // so that threads end at about the same time

// Channels per run of the kernel's loop: about 32 steps of code.
int64_t channelsAtOnce(int64_t taps)
{
    return taps == 1 ? 8 : std::clamp<int64_t>(32 / taps, 1, 4);
}

// n things in `parts` parts as even as can be: where part i begins.
int64_t evenBegin(int64_t n, int64_t parts, int64_t i)
{
    return n / parts * i + std::min(i, n % parts);
}

// A row of outputs cut into tiles, for blocks of one number of vectors.
struct Tiling
{
    int vectors = 0; // 0: no such blocks
    int64_t tiles = 0;
    std::vector<int> kernelOf; // [tiles]
    std::vector<GemmKernel> kernels;
};

// Output channels of a group in blocks of vectors: the first `wide` have one more than the others.
struct Blocks
{
    int64_t vectors = 0, count = 0;
    Blocks(int64_t vectorsOfGroup, int64_t most)
        : vectors(vectorsOfGroup), count(std::max<int64_t>((vectorsOfGroup + most - 1) / most, 1))
    {}
    int64_t begin(int64_t i) const { return evenBegin(vectors, count, i); } // in vectors
    int64_t size(int64_t i) const { return begin(i + 1) - begin(i); }
};

struct DirectPrepared final : Prepared
{
    Geometry g;            // of the loops: a window of one element makes one row of all pixels
    Tiling tilings[2];     // of blocks with most vectors, and with one less
    int64_t imageRows = 0; // batch * output rows
    int64_t xPixel = 0, yPixel = 0, residualPixel = 0;
    int64_t pixelBlocks = 1, blockParts = 1; // parts of the work
    bool prefetch = false;                   // what is written lies behind L2
    bool fetchNext = false;                  // so does what is read, and tiles read it in one piece each
    std::vector<FilterRows> rows;            // of each output row
};

class DirectConvolution final : public Kernel
{
public:
    DirectConvolution(ir::Node const& node, Isa isa, DirectTactic::Input input, Config const& config, int threads,
                      std::optional<kernels::jit::Activation> activation, Extents const& w, int64_t groups)
        : node_(node), isa_(isa), input_(input), smallBlocks_(config[1] != 0), threads_(std::max(threads, 1)),
          activation_(activation), width_(kernels::jit::vectorWidth(isa)), groups_(groups), groupK_(w[0] / groups),
          groupC_(w[1]), blocks_((groupK_ + width_ - 1) / width_, config[0])
    {}

    // w [K, C, r, s] to [group][block][r][channels by the loop's number][s][channel of the loop][lanes of the block],
    // zero behind the last channel of the group.
    Result<void> pack(Extents const& dims, float const* w, float const* bias)
    {
        int64_t const r = dims[2], s = dims[3], lanes = blocks_.vectors * width_;
        hasBias_ = bias != nullptr;
        weights_ = Tensor(DataType::kFloat, {groups_ * lanes, groupC_ * r * s});
        bias_ = Tensor(DataType::kFloat, {groups_ * lanes});
        if (!weights_.data() || !bias_.data())
            return Error{ErrorCode::kFailedAllocation,
                         "no memory for " + std::to_string(weights_.ref().sizeBytes()) + " bytes of packed weights"};
        int64_t const depth = groupC_ * r * s;
        std::vector<int64_t> places; // of element (c, r, s), in rows of lanes
        for (int64_t c = 0; c < groupC_; ++c)
            for (int64_t i = 0; i < r; ++i)
                for (int64_t j = 0; j < s; ++j)
                    places.push_back(place(c, i, j, s));
        for (int64_t group = 0; group < groups_; ++group)
            for (int64_t block = 0; block < blocks_.count; ++block) {
                int64_t const first = blocks_.begin(block) * width_, blockLanes = blocks_.size(block) * width_;
                float* to = weights_.ref().as<float>() + (group * lanes + first) * depth;
                int64_t const exist = std::min(blockLanes, groupK_ - first);
                for (int64_t k = 0; k < exist; ++k) {
                    float const* from = w + (group * groupK_ + first + k) * depth;
                    for (int64_t i = 0; i < depth; ++i)
                        to[places[size_t(i)] * blockLanes + k] = from[i];
                }
                if (bias)
                    std::copy_n(bias + group * groupK_ + first, exist, bias_.ref().as<float>() + group * lanes + first);
            }
        return {};
    }

    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const> out) const override
    {
        auto p = std::make_shared<DirectPrepared>();
        TensorRef const &x = in[0], &y = out[0];
        Geometry& g = p->g;
        g = convolutionGeometry(node_, x.dims, in[1].dims, y.dims);
        if (y.count() == 0)
            return std::shared_ptr<Prepared const>(std::move(p));
        bool const residual = in.size() > 3 && in[3].dims.rank == 4;
        p->xPixel = input_ == DirectTactic::kPlanes ? 1 : x.pixelStride();
        p->yPixel = y.pixelStride();
        p->residualPixel = residual ? in[3].pixelStride() : 0;
        bool const pixelsAlone = g.window[1] * g.window[2] == 1 && g.stride[1] * g.stride[2] == 1 && g.before[1] == 0 &&
                                 g.before[2] == 0 && g.in[1] == g.out[1] && g.in[2] == g.out[2];
        if (pixelsAlone && input_ == DirectTactic::kPixels) {
            g.in[2] = g.out[2] = g.batch * g.out[1] * g.out[2];
            g.batch = g.in[1] = g.out[1] = 1;
            p->fetchNext = x.sizeBytes() > thisCpu().l2Bytes / 2;
        }
        if (((g.window[2] - 1) * g.dilation[2] + 1) * p->xPixel >= int64_t(1) << 28)
            return unsupported(std::string(node_.name) + ": a row of the window is wider than 1 GiB");
        p->imageRows = g.batch * g.out[1];
        p->prefetch = y.sizeBytes() + (residual ? in[3].sizeBytes() : 0) > thisCpu().l2Bytes / 2;
        for (int64_t o = 0; o < g.out[1]; ++o)
            p->rows.push_back(filterRows(g, o));
        int64_t const most = blocks_.size(0), least = blocks_.size(blocks_.count - 1);
        TW_TRY(tile(*p, p->tilings[0], int(most)));
        if (least != most)
            TW_TRY(tile(*p, p->tilings[1], int(least)));
        divide(*p);
        return std::shared_ptr<Prepared const>(std::move(p));
    }

    Result<void> run(RunArgs& args) const override
    {
        auto const& p = *static_cast<DirectPrepared const*>(args.prepared);
        if (p.imageRows == 0)
            return {};
        args.workers->run(groups_ * p.pixelBlocks * p.blockParts, [&](int64_t part, int) {
            int64_t const blockPart = part % p.blockParts, rest = part / p.blockParts;
            int64_t const pixelBlock = rest % p.pixelBlocks, group = rest / p.pixelBlocks;
            int64_t const end = evenBegin(blocks_.count, p.blockParts, blockPart + 1);
            for (int64_t b = evenBegin(blocks_.count, p.blockParts, blockPart); b < end; ++b)
                runBlock(p, args, group, b, pixelBlock);
        });
        return {};
    }

private:
    int64_t place(int64_t c, int64_t i, int64_t j, int64_t s) const
    {
        if (input_ == DirectTactic::kPlanes)
            return (i * s + j) * groupC_ + c;
        int64_t const u = channelsAtOnce(s), whole = groupC_ / u * u, row = i * groupC_ * s;
        return c < whole ? row + (c / u * s + j) * u + c % u : row + c * s + j;
    }

    // Kernels for every kind of tile in a row of outputs.
    Result<void> tile(DirectPrepared const& p, Tiling& t, int vectors) const
    {
        Geometry const& g = p.g;
        t.vectors = vectors;
        int64_t const most = kernels::jit::gemmMaxRows(isa_, vectors);
        t.tiles = (g.out[2] + most - 1) / most;
        std::vector<std::vector<int>> known; // rows, then begin and end for each tap
        for (int64_t i = 0; i < t.tiles; ++i) {
            int64_t const at = evenBegin(g.out[2], t.tiles, i), rows = evenBegin(g.out[2], t.tiles, i + 1) - at;
            std::vector<int> kind{int(rows)};
            for (int64_t s = 0; s < g.window[2]; ++s) {
                int64_t const shift = at * g.stride[2] - g.before[2] + s * g.dilation[2]; // column of row 0
                int64_t const begin = shift >= 0 ? 0 : (-shift + g.stride[2] - 1) / g.stride[2];
                int64_t const end = shift >= g.in[2] ? 0 : (g.in[2] - 1 - shift) / g.stride[2] + 1;
                kind.push_back(int(std::min(begin, rows)));
                kind.push_back(int(std::clamp<int64_t>(end, 0, rows)));
            }
            size_t k = size_t(std::find(known.begin(), known.end(), kind) - known.begin());
            if (k == known.size()) {
                TW_ASSIGN(GemmKernel kernel, GemmKernel::emit(isa_, specOf(p, vectors, kind)));
                t.kernels.push_back(std::move(kernel));
                known.push_back(std::move(kind));
            }
            t.kernelOf.push_back(int(k));
        }
        return {};
    }

    GemmKernelSpec specOf(DirectPrepared const& p, int vectors, std::vector<int> const& kind) const
    {
        Geometry const& g = p.g;
        int64_t const taps = g.window[2], rowBytes = vectors * width_ * 4;
        GemmKernelSpec s;
        s.rows = kind[0];
        s.vectors = vectors;
        // `channels` elements that follow each other at distance `apart`, for each tap.
        auto loop = [&](int64_t channels, int64_t apart) {
            kernels::jit::GemmLoop l;
            for (int64_t j = 0; j < taps; ++j)
                for (int64_t u = 0; u < channels; ++u)
                    l.steps.push_back({int32_t((j * g.dilation[2] * p.xPixel + u * apart) * 4),
                                       int32_t((j * channels + u) * rowBytes), kind[size_t(1 + 2 * j)],
                                       kind[size_t(2 + 2 * j)]});
            l.aAdvance = int32_t(channels * 4);
            l.bAdvance = int32_t(taps * channels * rowBytes);
            return l;
        };
        if (input_ == DirectTactic::kPlanes) {
            s.body = loop(groupC_, g.in[1] * g.in[2]);
        } else {
            s.body = loop(channelsAtOnce(taps), 1);
            if (channelsAtOnce(taps) > 1)
                s.tail = loop(1, 1);
        }
        s.prefetchC = p.prefetch;
        if (int64_t const runs = groupC_ / channelsAtOnce(taps); p.fetchNext && runs > 0)
            s.nextLines = int(std::min((s.rows * p.xPixel * 4 / 64 + runs - 1) / runs, kMaxNextLines));
        s.masked = groups_ > 1 && groupK_ % width_ != 0;
        if (hasBias_)
            s.epilogue.push_back(EpilogueOp::kBias);
        if (p.residualPixel > 0)
            s.epilogue.push_back(EpilogueOp::kResidual);
        if (activation_)
            s.epilogue.push_back(*activation_);
        return s;
    }

    // How much is done with one block of weights: pixels whose inputs take half of L2, or of L1.
    void divide(DirectPrepared& p) const
    {
        Geometry const& g = p.g;
        int64_t const cache = smallBlocks_ ? thisCpu().l1DataBytes : thisCpu().l2Bytes;
        // Rows and columns that a step leaves out are not read.
        int64_t const inputBytes = g.batch * std::min(g.in[1], g.out[1] * g.window[1]) *
                                   std::min(g.in[2], g.out[2] * g.window[2]) * groupC_ * 4;
        int64_t const tiles = p.imageRows * p.tilings[0].tiles;
        p.pixelBlocks = std::clamp<int64_t>((2 * inputBytes + cache - 1) / cache, 1, tiles);
        int64_t const wanted = threads_ > 1 ? kPartsPerThread * threads_ : 1;
        int64_t const have = groups_ * p.pixelBlocks;
        if (have >= wanted)
            return;
        // Whichever axis cuts into more even parts.
        p.blockParts = std::min(blocks_.count, (wanted + have - 1) / have);
        if (have * p.blockParts < wanted)
            p.pixelBlocks = std::min(tiles, (wanted + groups_ * p.blockParts - 1) / (groups_ * p.blockParts));
    }

    void runBlock(DirectPrepared const& p, RunArgs& args, int64_t group, int64_t block, int64_t pixelBlock) const
    {
        Geometry const& g = p.g;
        bool const planes = input_ == DirectTactic::kPlanes;
        int64_t const lanes = blocks_.vectors * width_, first = blocks_.begin(block) * width_;
        int64_t const blockLanes = blocks_.size(block) * width_, depth = groupC_ * g.window[1] * g.window[2];
        Tiling const& t = p.tilings[blocks_.size(block) == p.tilings[0].vectors ? 0 : 1];
        float const* x = args.inputs[0].as<float>() + (planes ? 0 : group * groupC_);
        float const* w = weights_.ref().as<float>() + (group * lanes + first) * depth;
        float const* residual = p.residualPixel > 0 ? args.inputs[3].as<float>() + group * groupK_ + first : nullptr;
        float* y = args.outputs[0].as<float>() + group * groupK_ + first;
        int64_t const rowFloats = g.in[2] * p.xPixel, imageFloats = g.in[1] * rowFloats * (planes ? groupC_ : 1);
        void const* pointers[kMaxRows];
        GemmArgs a;
        a.a = pointers;
        a.ldaBytes = g.stride[2] * p.xPixel * 4;
        a.ldcBytes = p.yPixel * 4;
        a.ldrBytes = p.residualPixel * 4;
        a.bias = bias_.ref().as<float>() + group * lanes + first;
        a.lastColumns = std::min(groupK_ - first, blockLanes) - (blockLanes - width_);
        int64_t const u = channelsAtOnce(g.window[2]);
        a.bodyCount = planes ? 1 : groupC_ / u;
        a.tailCount = planes || u == 1 ? 0 : groupC_ % u;
        int64_t const total = p.imageRows * t.tiles;
        int64_t const end = evenBegin(total, p.pixelBlocks, pixelBlock + 1);
        for (int64_t i = evenBegin(total, p.pixelBlocks, pixelBlock); i < end; ++i) {
            int64_t const row = i / t.tiles, tile = i % t.tiles, n = row / g.out[1], o = row % g.out[1];
            FilterRows const& r = p.rows[size_t(o)];
            int64_t const column = evenBegin(g.out[2], t.tiles, tile);
            int64_t const left = column * g.stride[2] - g.before[2];
            int64_t const top = o * g.stride[1] - g.before[1];
            // Addresses as numbers: the first tap may lie before the row, where its steps read nothing.
            uintptr_t const base = reinterpret_cast<uintptr_t>(x);
            int64_t count = 0;
            for (int64_t f = r.first; f < r.first + r.count; ++f) {
                int64_t const h = top + f * g.dilation[1];
                pointers[count++] = reinterpret_cast<void const*>(
                    base + uintptr_t((n * imageFloats + h * rowFloats + left * p.xPixel) * 4));
            }
            a.pointers = count;
            if (p.fetchNext)
                a.next = reinterpret_cast<void const*>(
                    base + uintptr_t(evenBegin(g.out[2], t.tiles, tile + 1) * p.xPixel * 4));
            a.b = w + r.first * groupC_ * g.window[2] * blockLanes;
            int64_t const pixel = row * g.out[2] + column;
            a.c = y + pixel * p.yPixel;
            a.residual = residual ? residual + pixel * p.residualPixel : nullptr;
            t.kernels[size_t(t.kernelOf[size_t(tile)])](a);
        }
    }

    ir::Node const& node_;
    Isa isa_;
    DirectTactic::Input input_;
    bool smallBlocks_;
    int threads_;
    std::optional<kernels::jit::Activation> activation_;
    int64_t width_, groups_, groupK_, groupC_;
    Blocks blocks_;
    bool hasBias_ = false;
    Tensor weights_, bias_;
};

} // namespace

Support DirectTactic::supports(Problem const& p) const
{
    if (Support s = supportsConvolution(p, isa_); !s.ok)
        return s;
    Geometry const g = convolutionGeometry(*p.node, p.inputs[0].maxDims, p.inputs[1].dims, p.outputs[0].maxDims);
    if (g.groups == g.c && g.c == g.k && g.c > 1)
        return Support::no("one filter for each channel is depthwise convolution");
    if (input_ == kPlanes && (g.c > kMaxPlanes || g.groups > 1 || g.c * g.window[2] > kMaxSteps))
        return Support::no("takes up to " + std::to_string(kMaxPlanes) + " input channels in one group, and up to " +
                           std::to_string(kMaxSteps) + " of their elements in a row of the window");
    if (input_ == kPlanes && g.in[1] * g.in[2] > (int64_t(1) << 29) / 4 / g.c)
        return Support::no("an image of " + p.inputs[0].maxDims.str() + " takes more than 512 MiB");
    if (g.window[2] > kMaxTaps || g.window[1] > kMaxRows)
        return Support::no("takes windows of up to 64 x 64 elements");
    if (g.window[2] * g.dilation[2] > kMaxBorder || g.before[2] > kMaxBorder)
        return Support::no("takes windows and padding of up to " + std::to_string(kMaxBorder) + " columns");
    return Support::yes();
}

std::vector<Formats> DirectTactic::formats(Problem const& p) const
{
    Formats f = channelsLastFormats(p);
    if (input_ == kPlanes)
        f.inputs[0] = Format::kLinear;
    return {f};
}

std::vector<Config> DirectTactic::configs(Problem const& p) const
{
    Geometry const g = convolutionGeometry(*p.node, p.inputs[0].dims, p.inputs[1].dims, p.outputs[0].dims);
    int64_t const width = kernels::jit::vectorWidth(isa_), vectors = (g.k / g.groups + width - 1) / width;
    std::vector<Config> list;
    for (int64_t v : {2, 3, 1})
        if (v <= vectors && (v > 1 || vectors % 2 == 1))
            for (int64_t small : {0, 1})
                list.push_back({v, small});
    return list;
}

double DirectTactic::estimate(Problem const& p, Config const& config) const
{
    Geometry const g = convolutionGeometry(*p.node, p.inputs[0].dims, p.inputs[1].dims, p.outputs[0].dims);
    double const width = kernels::jit::vectorWidth(isa_), vectors = double(config[0]);
    double const most = kernels::jit::gemmMaxRows(isa_, int(config[0]));
    bool const pixelsAlone = g.window[1] * g.window[2] * g.stride[1] * g.stride[2] == 1;
    double const rowsOfOutputs = pixelsAlone ? 1 : double(g.batch * g.out[1]);
    double const columns = pixelsAlone ? double(g.batch * g.out[1] * g.out[2]) : double(g.out[2]);
    double const tiles = rowsOfOutputs * std::ceil(columns / most) * double(g.groups);
    double const rows = columns / std::ceil(columns / most);
    double const groupVectors = std::ceil(double(g.k / g.groups) / width), blocks = std::ceil(groupVectors / vectors);
    // Two 32-byte products a cycle at 3 GHz, or twice that less what hides it; four cycles until a sum can be used
    // again; 20 ns a call.
    double const perStep = std::max(rows * groupVectors / blocks / (isa_ == Isa::kAvx512 ? 1.5 : 2.), 4.);
    double const depth = double(g.c / g.groups * g.window[1] * g.window[2]);
    return tiles * blocks * (perStep * depth / 3000 + 0.02) / p.threads;
}

Result<std::unique_ptr<Kernel>> DirectTactic::load(Problem const& p, Config const& config, std::string const&) const
{
    if (config.size() != 2 || config[0] < 1 || config[0] > 4)
        return invalidArgument(std::string(name()) + ": the plan's configuration is not {1..4, 0..1}");
    auto kernel = std::make_unique<DirectConvolution>(*p.node, isa_, input_, config, p.threads,
                                                      activationOf_ ? jitActivation(activationOf_(*p.node))
                                                                    : std::optional<kernels::jit::Activation>(),
                                                      p.inputs[1].dims, p.node->attrsAs<convolution::Attrs>().groups);
    Blob const* bias = p.inputs.size() > 2 && p.inputs[2].present ? p.inputs[2].constant : nullptr;
    TW_TRY(kernel->pack(p.inputs[1].dims, p.inputs[1].constant->as<float>(), bias ? bias->as<float>() : nullptr));
    return std::unique_ptr<Kernel>(std::move(kernel));
}

} // namespace tw::ops
