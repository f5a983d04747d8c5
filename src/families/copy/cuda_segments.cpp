// SPDX-License-Identifier: Apache-2.0
#include "families/copy/cuda_segments.h"

#include <algorithm>
#include <numeric>

#include "base/round.h"
#include "families/copy/copy_params.h"
#include "families/elementwise/cuda_pointwise.h"
#include "kernels/cuda/common/generate.h"

namespace tw::ops {

namespace {

constexpr size_t kMostSources = 8;
constexpr int64_t kPack = 16;
constexpr int64_t kLeastRow = 32, kMostRow = 1024; // bytes: below all are ends, above words of one row are what counts
constexpr int64_t kLeastRows = 4096;               // fewer are too few for all the blocks
constexpr int64_t kBarrierBytes = 128;             // before the rest
constexpr int64_t kLine = 128, kMostUnrolled = 64;

bool isFlat(Segments const& r)
{
    int64_t covered = 0;
    for (SegmentSource const& s : r.sources)
        covered += s.length;
    return r.lines == r.rows && r.low == 0 && r.high == r.lines && covered == r.columns;
}

// What a block does: rows of about so many bytes of y.
struct BlockShape
{
    int64_t bytes;
    int warps;
};
constexpr BlockShape kBlockShapes[] = {{8192, 8}, {4096, 4}, {16384, 16}};

BlockShape const& blockShapeOf(Config const& config)
{
    return kBlockShapes[isConfig(config, 1, 0, std::size(kBlockShapes) - 1) ? size_t(config[0]) : 0];
}

struct Shape
{
    int64_t rows = 0, in = 0, out = 0; // rows of y; bytes of shared memory
    std::vector<int64_t> at;           // of sources there
    int64_t sharedBytes() const { return kBarrierBytes + in + out; }
};

Shape shapeOf(Segments const& r, BlockShape const& block)
{
    int64_t const size = r.elementBytes, row = r.columns * size;
    int64_t unit = std::max<int64_t>(kPack / std::gcd(kPack, row), block.warps); // powers of 2
    for (SegmentSource const& s : r.sources)
        unit = std::max(unit, kPack / std::gcd(kPack, s.lineStep * size));
    int64_t const whole = std::max(unit, kLine / std::gcd(kLine, row)); // and y's chunks are whole lines
    if (whole * row <= block.bytes * 3 / 2)
        unit = whole;
    Shape shape;
    shape.rows = unit * std::max<int64_t>(1, (block.bytes + unit * row / 2) / (unit * row));
    shape.out = shape.rows * row;
    for (SegmentSource const& s : r.sources) {
        int64_t const planes = (shape.rows + r.lines - 2) / r.lines,
                      apart = std::max<int64_t>(0, s.planeStep - r.lines * s.lineStep),
                      length = (shape.rows - 1) * s.lineStep + planes * apart + s.length;
        shape.at.push_back(shape.in);
        shape.in += roundUp(roundUp(length * size, kPack) + kPack, kLine);
    }
    return shape;
}

// The array kSources.
std::string placesOf(Segments const& r, Shape const& shape)
{
    std::string list;
    for (size_t k = 0; k < r.sources.size(); ++k) {
        SegmentSource const& s = r.sources[k];
        list += "    {";
        for (int64_t elements : {s.count, s.first, s.planeStep, s.lineStep})
            list += fmt::format("{}, ", elements * r.elementBytes);
        list += fmt::format("{}, {}, {}}},\n", s.column, s.length, shape.at[k]);
    }
    return cuda::include("families/copy/copy_params.h") + "constexpr tw::ops::RunPlace kSources[] = {\n" + list +
           "};\n";
}

int64_t chunksOf(Segments const& r, Shape const& shape)
{
    return cuda::ceilDiv(r.rows, shape.rows);
}

CudaSource sourceOf(Segments const& r, BlockShape const& block, Shape const& shape)
{
    int64_t const size = r.elementBytes, chunks = chunksOf(r, shape);
    int64_t pieces = 0; // that a warp moves of a row
    for (SegmentSource const& s : r.sources)
        pieces += cuda::ceilDiv(s.length, 32);
    using cuda::constant;
    return {.text = placesOf(r, shape) + constant("kSourceCount", int64_t(r.sources.size())) + constant("kSize", size) +
                    constant("kRows", shape.rows) + constant("kColumns", r.columns) + constant("kIn", shape.in) +
                    constant("kOut", shape.out) + constant("kWarps", block.warps) +
                    constant("kOwnRows", shape.rows / block.warps) + constant("kBarrierBytes", kBarrierBytes) +
                    cuda::flag("kIsFlat", isFlat(r)) + constant("kLow", r.low) + constant("kHigh", r.high) +
                    constant("kLines", r.lines) + constant("kAllRows", r.rows) + constant("kChunks", chunks) +
                    constant("kLastBytes", (r.rows - (chunks - 1) * shape.rows) * r.columns * size) +
                    constant("kUnrolledRows", std::max<int64_t>(1, kMostUnrolled / pieces)) +
                    cuda::include("families/copy/cuda_segments.cuh"),
            .names = {"copy_segments"},
            .isDependent = true,
            .alignment = kPack,
            .sharedBytes = shape.sharedBytes()};
}

} // namespace

Segments segmentsOf(Box const& whole, int64_t xCount, int64_t first)
{
    Box const b = simplified(whole);
    Segments r;
    int const rank = b.dims.rank, last = rank - 1;
    bool const bordered = b.low.rank > 0;
    r.fits = rank >= 2 && rank <= 3 && b.dims.volume() > 0 && b.from[last] == 1 && b.elementBytes <= 4;
    int64_t dense = 1;
    for (int d = last; d >= 0; --d) {
        r.fits = r.fits && b.to[d] == dense;
        dense *= b.dims[d];
    }
    if (!r.fits)
        return r;
    auto low = [&](int d) { return bordered ? b.low[d] : 0; };
    auto high = [&](int d) { return bordered ? b.high[d] : b.dims[d]; };
    r.elementBytes = b.elementBytes;
    r.columns = b.dims[last];
    r.lines = b.dims[last - 1];
    r.rows = b.dims.volume() / r.columns;
    r.low = low(last - 1);
    r.high = high(last - 1);
    SegmentSource s;
    s.count = xCount;
    s.first = first;
    s.lineStep = b.from[last - 1];
    s.planeStep = rank == 3 ? b.from[0] : r.lines * s.lineStep;
    s.column = low(last);
    s.length = high(last) - low(last);
    int64_t const real = r.high - r.low, planes = r.rows / r.lines,
                  span = (planes - 1) * s.planeStep + (real - 1) * s.lineStep + s.length;
    // Runs go forward, and most of them is used.
    r.fits = real > 0 && s.length > 0 && s.lineStep >= s.length && (rank < 3 || (low(0) == 0 && high(0) == planes)) &&
             s.planeStep >= (real - 1) * s.lineStep + s.length && first >= 0 && first + span <= xCount &&
             span / 4 <= planes * real * s.length / 3;
    r.sources.push_back(s);
    return r;
}

Support supportsSegments(Problem const& p, Segments const& segments)
{
    if (!p.target.cuda || p.target.cuda->capability < 90)
        return Support::no("runs on GPUs of capability 9.0 and up");
    int64_t const row = segments.columns * segments.elementBytes;
    if (!segments.fits || segments.sources.empty() || segments.sources.size() > kMostSources)
        return Support::no("takes rows of y from runs of memory, of elements of up to 4 bytes");
    if (row < kLeastRow || row > kMostRow || segments.rows < kLeastRows || segments.rows > INT32_MAX)
        return Support::no(fmt::format("is for {} rows and more, of {} to {} bytes", kLeastRows, kLeastRow, kMostRow));
    bool aligned = row % kPack == 0;
    for (SegmentSource const& s : segments.sources)
        aligned = aligned && s.lineStep * segments.elementBytes % kPack == 0 &&
                  s.first * segments.elementBytes % kPack == 0 && s.column * segments.elementBytes % kPack == 0;
    if (aligned)
        return Support::no("is for rows off 16-byte boundaries");
    if (configsOfSegments(segments).empty())
        return Support::no("has too little shared memory for such rows");
    return Support::yes();
}

std::vector<Config> configsOfSegments(Segments const& segments)
{
    std::vector<Config> list;
    for (int64_t i = 0; i < int64_t(std::size(kBlockShapes)); ++i)
        if (shapeOf(segments, kBlockShapes[i]).sharedBytes() <= cuda::kSharedLimit)
            list.push_back({i});
    return list;
}

std::unique_ptr<CudaKernels> segmentKernels(Segments const& r, Config const& config, int fillInput)
{
    BlockShape const& block = blockShapeOf(config);
    Shape const shape = shapeOf(r, block);
    std::vector<size_t> inputs; // of each source
    for (SegmentSource const& s : r.sources)
        inputs.push_back(size_t(s.input));
    auto const run = [inputs, fillInput, chunks = chunksOf(r, shape), threads = block.warps * 32,
                      shared = shape.sharedBytes()](CudaLaunch const& launch, RunArgs& args) {
        RunParams p;
        for (size_t k = 0; k < inputs.size(); ++k)
            p.x[k] = args.inputs[inputs[k]].data;
        if (fillInput >= 0 && fillInput < int(args.inputs.size()))
            p.fill = args.inputs[size_t(fillInput)].data;
        p.y = args.outputs[0].data;
        return launch(0, chunks, threads, p, shared); // a block for each chunk
    };
    return kernelsOf(sourceOf(r, block, shape), run);
}

} // namespace tw::ops
