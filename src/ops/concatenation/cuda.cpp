// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "base/format.h"
#include "families/copy/cuda_segments.h"
#include "families/copy/cuda_strided_copy.h"
#include "families/elementwise/cuda_pointwise.h"
#include "ops/concatenation/concatenation_params.h"
#include "ops/concatenation/op.h"

namespace tw::ops::concatenation {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kStoreBytes = 8;
constexpr int kFirstOdd = 5, kOddKernels = 3; // of units of 1, 2 and 4 bytes
constexpr int kFirstWhole = kFirstOdd + kOddKernels;
constexpr int kFirstVec16 = kFirstWhole + 5; // of units of 1 and 2 bytes
constexpr int64_t kShortRowBytes = 1024;
constexpr int64_t kLaunchBytes = int64_t(2) << 20; // are moved in the time of a launch, about
constexpr int64_t kShortRow = 8;                   // units: shorter rows are all ends

// All inputs at once: y is one span.

// The same by words. Segments: inputs, and the gap after them.
constexpr int kEach = 4;         // words for a thread, in flight together
constexpr int64_t kWaves = 4096; // threads of a multiprocessor, about: with fewer of them a thread moves one word

// Bytes of a row, from row to row, and rows.
struct Rows
{
    int64_t bytes, step, count;
};

Rows rowsOf(TensorRef const& t, int axis)
{
    int64_t const size = sizeOf(t.type);
    if (isPixelVectors(t.format)) // channels of a pixel
        return {t.dims[axis] * size, t.pixelStride() * size,
                t.dims.volume(0, axis) * t.dims.volume(axis + 1, t.dims.rank)};
    int64_t const bytes = t.dims.volume(axis, t.dims.rank) * size;
    return {bytes, bytes, t.dims.volume(0, axis)};
}

// Of an input whose row begins at `begin` in that of y. The last one takes its gap with it where it fits that of y.
Rows rowsOfInput(RunArgs const& args, size_t i, int axis, int64_t begin)
{
    TensorRef const& y = args.outputs[0];
    Rows rows = rowsOf(args.inputs[i], axis);
    if (isPixelVectors(y.format) && y.stride == 0 && i + 1 == args.inputs.size() &&
        begin % (vectorOf(y.format) * sizeOf(y.type)) == 0)
        rows.bytes = rowsOf(y, axis).step - begin;
    return rows;
}

int unitShift(uint64_t all)
{
    return std::countr_zero(uint64_t(widestUnit(1, all)));
}

// Where rows are short, begin anywhere or move in less time than a launch for each input takes, no input lies in its
// place and y is nobody's part. -1: not so, else the unit.
int wholeShift(int axis, RunArgs const& args)
{
    TensorRef const& y = args.outputs[0];
    Rows const whole = rowsOf(y, axis);
    if (args.inputs.size() > size_t(kMostInputs) || y.stride != 0 || cuda::addressOf(y.data) % 16 != 0)
        return -1;
    uint64_t all = uint64_t(whole.step);
    int64_t begin = 0;
    for (size_t i = 0; i < args.inputs.size(); ++i) {
        TensorRef const& x = args.inputs[i];
        Rows const rows = rowsOfInput(args, i, axis, begin);
        if (rows.bytes * rows.count > 0 && x.as<char>() == y.as<char>() + begin)
            return -1;
        all |= cuda::addressOf(x.data) | uint64_t(rows.bytes | rows.step);
        begin += rows.bytes;
    }
    int const shift = unitShift(all);
    bool const isLarge = whole.step * whole.count > kLaunchBytes * int64_t(args.inputs.size() - 1);
    return shift >= kOddKernels && whole.step >= kShortRowBytes && isLarge ? -1 : shift;
}

Result<void> runVec16(int axis, int shift, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const& y = args.outputs[0];
    Rows const whole = rowsOf(y, axis);
    int64_t const unit = int64_t(1) << shift, words = (whole.step * whole.count + kVec16Bytes - 1) / kVec16Bytes;
    Vec16Params p{
        .y = y.data, .count = uint64_t(whole.step * whole.count) >> shift, .columns = cuda::divBy(whole.step >> shift)};
    int64_t end = 0;
    for (size_t i = 0; i < args.inputs.size(); ++i) {
        TensorRef const& x = args.inputs[i];
        Rows const rows = rowsOfInput(args, i, axis, end << shift);
        if (rows.bytes * rows.count == 0)
            continue;
        size_t const k = size_t(p.inputs++);
        p.end[k] = end += rows.bytes >> shift;
        p.step[k] = rows.step >> shift;
        p.x[k] = contiguousSpan(x.data, 0, (rows.step * (rows.count - 1) + rows.bytes) >> shift, unit);
    }
    int64_t segments = p.inputs;
    if (end < whole.step >> shift)
        p.end[segments++] = whole.step >> shift;
    p.segments = cuda::divBy(segments);
    p.each = words < kWaves * launch.multiprocessors() ? 1 : kEach;
    return launch(kFirstVec16 + shift, blocksFor(words, int(kVec16Threads * p.each)), kVec16Threads, p);
}

// Whether words of one segment are what counts.
bool isLong(int axis, RunArgs const& args)
{
    Rows const whole = rowsOf(args.outputs[0], axis);
    return whole.step >= kLeastSegmentBytes * int64_t(args.inputs.size());
}

Result<void> runWhole(int axis, int shift, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const& y = args.outputs[0];
    Rows const whole = rowsOf(y, axis);
    WholeParams p{
        .y = y.data, .count = uint64_t(whole.step * whole.count) >> shift, .columns = cuda::divBy(whole.step >> shift)};
    int64_t end = 0;
    for (size_t i = 0; i < args.inputs.size(); ++i) {
        TensorRef const& x = args.inputs[i];
        Rows const rows = rowsOfInput(args, i, axis, end << shift);
        size_t const k = size_t(p.inputs++);
        p.x[k] = x.data;
        p.end[k] = end += rows.bytes >> shift;
        p.step[k] = rows.step >> shift;
    }
    int64_t const stores = (whole.step * whole.count + 15) / 16;
    return launch(kFirstWhole + shift, blocksFor(stores, kThreads), kThreads, p);
}

// One by one. Inputs that lie in their place already (aliases) are left alone.
Result<void> runInputs(int axis, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const& y = args.outputs[0];
    Rows const whole = rowsOf(y, axis);
    int64_t begin = 0;
    for (size_t i = 0; i < args.inputs.size(); ++i) {
        TensorRef const& x = args.inputs[i];
        Rows const rows = rowsOfInput(args, i, axis, begin);
        char const* const place = y.as<char>() + begin;
        if (rows.bytes * rows.count > 0 && (x.as<char>() != place || rows.step != whole.step)) {
            int kernel = launch.isGeneral() ? 0
                                            : unitShift(cuda::addressOf(x.data) | cuda::addressOf(y.data) |
                                                        uint64_t(rows.bytes | rows.step | whole.step | begin));
            RowParams p{.x = x.data,
                        .y = y.data,
                        .count = uint64_t(rows.bytes * rows.count) >> kernel,
                        .row = cuda::divBy(rows.bytes >> kernel),
                        .xRow = rows.step >> kernel,
                        .yRow = whole.step >> kernel,
                        .yBegin = begin >> kernel,
                        .length = rows.bytes >> kernel};
            if (!launch.isGeneral() && kernel < kOddKernels && p.length > kShortRow) {
                int64_t const each = kStoreBytes >> kernel, stores = (p.length + each - 2) / each + 1;
                p.row = cuda::divBy(stores);
                p.count = uint64_t(stores * rows.count);
                kernel += kFirstOdd;
            }
            TW_TRY(launch(kernel, blocksFor(int64_t(p.count), kThreads), kThreads, p));
        }
        begin += rows.bytes;
    }
    return {};
}

std::vector<Formats> formats(Problem const& p)
{
    std::vector<Formats> list{linearFormats(p)};
    int const rank = p.outputs[0].dims.rank;
    bool const anyConstant =
        std::any_of(p.inputs.begin(), p.inputs.end(), [](TensorSpec const& t) { return t.constant != nullptr; });
    DataType const type = p.outputs[0].type;
    if (isReal(type) && !anyConstant)
        for (Format const pixels : {pixelVectorsOf(type), Format::kDHWC8})
            if (fitsRank(pixels, rank) && p.node->attrsAs<Attrs>().axis == channelAxis(pixels, rank))
                list.push_back(channelsLastFormats(p, pixels));
    return list;
}

CudaSource sourceOf(Problem const& problem)
{
    // Counted in bytes when nothing is aligned.
    TensorSpec const& y = problem.outputs[0];
    CudaSource out{.text = cuda::include("ops/concatenation/concatenation.cuh") +
                           cuda::include("ops/concatenation/concatenation_vec16.cuh"),
                   .names = {},
                   .wide = storageCount(y.format, y.type, y.maxDims) >= INT32_MAX / sizeOf(y.type),
                   .isDependent = true,
                   .general = 0};
    std::string const space = "tw::ops::concatenation::";
    out.addUnits("concatenation", space + "copyRows", space + "RowParams", 1);
    for (std::string const unit : {"1", "2", "4"})
        out.add("concatenation_odd_" + unit, space + "copyOddRows<unit" + unit + ">", space + "RowParams");
    out.addUnits("concatenation_whole", space + "copyWhole", space + "WholeParams", 1, kThreads);
    for (std::string const unit : {"1", "2"})
        out.add("concatenation_vec16_" + unit, space + "copyVec16Rows<" + unit + ">", space + "Vec16Params",
                kVec16Threads);
    return out;
}

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    return kernelsOf(
        sourceOf(problem),
        [axis = int(problem.node->attrsAs<Attrs>().axis)](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            int const shift = launch.isGeneral() ? -1 : wholeShift(axis, args);
            if (shift < 0)
                return runInputs(axis, launch, args);
            bool const joins =
                1 << shift <= kMostJoinedBytes && isLong(axis, args) && args.inputs.size() <= size_t(kMostJoined);
            return joins ? runVec16(axis, shift, launch, args) : runWhole(axis, shift, launch, args);
        });
}

Segments segmentsOf(Problem const& p)
{
    TensorSpec const& y = p.outputs[0];
    int const axis = int(p.node->attrsAs<Attrs>().axis), rank = y.dims.rank;
    if (!isStatic(p) || y.format != Format::kLinear || axis < 0 || axis >= rank)
        return {};
    Segments r;
    r.elementBytes = sizeOf(y.type);
    r.rows = r.lines = r.high = y.dims.volume(0, axis);
    r.columns = y.dims.volume(axis, rank);
    r.fits = r.elementBytes <= 4;
    int64_t column = 0;
    for (size_t i = 0; i < p.inputs.size(); ++i) {
        TensorSpec const& x = p.inputs[i];
        int64_t const length = x.dims.volume(axis, rank);
        r.fits = r.fits && x.format == Format::kLinear;
        if (length > 0)
            r.sources.push_back({int(i), r.rows * length, 0, r.rows * length, length, column, length});
        column += length;
    }
    return r;
}

constexpr CudaTactic kSegments = segmentsTactic<segmentsOf>("concatenation_any_segments_sm90");
constexpr CudaTactic kPlain{"concatenation_any_plain_cuda", 4, plainKernels, nullptr, nullptr, formats};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kSegments, kPlain>;

} // namespace tw::ops::concatenation
