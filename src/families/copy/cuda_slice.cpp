// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/format.h"
#include "families/copy/copy_params.h"
#include "families/copy/cuda_segments.h"
#include "families/copy/cuda_strided_copy.h"
#include "families/elementwise/cuda_pointwise.h"

namespace tw::ops {

namespace {

constexpr int kSliceThreads = 256;

// [low, high) of i in [0, n) for which start + i * step lies in [0, size).
struct Inside
{
    int64_t low, high;
};
Inside insideOf(int64_t n, int64_t start, int64_t step, int64_t size)
{
    auto up = [](int64_t a, int64_t b) { return a <= 0 ? 0 : (a - 1) / b + 1; }; // the first i with i * b >= a
    Inside in{0, n};
    if (step > 0)
        in = {up(-start, step), up(size - start, step)};
    else if (step < 0)
        in = {up(start - size + 1, -step), up(start + 1, -step)};
    else if (start < 0 || start >= size)
        in.high = 0;
    in.high = std::min(in.high, n);
    in.low = std::min(in.low, in.high);
    return in;
}

// Sizes of x, and where y comes from: dimensions in the order of memory.
struct Walk
{
    Extents x, y, xSteps, ySteps;
    slice::Steps steps;
};
Walk walkOf(TensorRef const& x, TensorRef const& y, slice::Steps const& steps)
{
    Walk w{x.dims, y.dims, stridesOf(x.dims), stridesOf(y.dims), steps};
    if (!isPixelVectors(y.format))
        return w;
    // [..., h, w, c], gaps after the channels with them where x has as many.
    int const c = y.dims.rank - 3;
    int64_t const stored = pixelStrideOf(x.format, x.type, x.dims[c]),
                  whole = pixelStrideOf(y.format, y.type, y.dims[c]);
    w.x[c] = stored;
    Inside const in = insideOf(whole, steps.start[c], steps.stride[c], stored);
    if (in.low == 0 && in.high == whole)
        w.y[c] = whole;
    for (int64_t* list : {w.x.d.data(), w.y.d.data(), w.steps.start, w.steps.stride})
        std::rotate(list + c, list + c + 1, list + c + 3);
    auto lay = [](Extents& steps, Extents const& dims, int64_t pixel) {
        int64_t step = 1;
        for (int d = dims.rank - 1; d >= 0; --d) {
            steps[d] = step;
            step = d == dims.rank - 1 ? pixel : step * dims[d];
        }
    };
    lay(w.xSteps, w.x, x.pixelStride());
    lay(w.ySteps, w.y, y.pixelStride());
    return w;
}

// Elements that a thread moves.
int64_t movedTogether(DataType type, Format format)
{
    return isPixelVectors(format) ? kMostUnit / sizeOf(type) : 1;
}

// Of y's elements one by one, or of vectors of channels in formats that have these, for what repeats x.
Result<void> runElements(CudaLaunch const& launch, int kernel, Walk w, TensorRef const& x, TensorRef const& y)
{
    int const last = w.y.rank - 1;
    if (int64_t const together = movedTogether(y.type, y.format); together > 1) {
        w.x[last] /= together;
        w.y[last] /= together;
        for (Extents* steps : {&w.xSteps, &w.ySteps})
            for (int d = 0; d < last; ++d)
                (*steps)[d] /= together;
    }
    SliceParams p;
    p.row = last > 0 ? w.ySteps[last - 1] : 0;
    p.x = x.data;
    p.y = y.data;
    for (int d = 0; d < kMaxRank; ++d)
        p.size[d] = 1;
    for (int d = 0, to = kMaxRank - w.y.rank; d < w.y.rank; ++d, ++to) {
        p.dim[to] = cuda::divBy(w.y[d]);
        p.size[to] = w.x[d];
        p.start[to] = w.steps.start[d];
        p.step[to] = w.steps.stride[d];
        p.stride[to] = w.xSteps[d];
    }
    p.count = uint64_t(w.y.volume());
    return launch(kernel, blocksFor(w.y.volume(), kSliceThreads), kSliceThreads, p);
}

// The box that y is, and the element of x that its x is.
struct Taken
{
    Box box;
    int64_t first = 0;
    bool isInside = true, isAnything = true; // all of y comes from x, some does
};
Taken takenOf(Walk const& w, int64_t elementBytes)
{
    Taken t;
    t.box.elementBytes = elementBytes;
    for (int d = 0; d < w.y.rank; ++d) {
        int64_t const step = w.steps.stride[d];
        Inside const in = insideOf(w.y[d], w.steps.start[d], step, w.x[d]);
        t.isInside = t.isInside && in.low == 0 && in.high == w.y[d];
        t.isAnything = t.isAnything && in.low < in.high;
        t.first += t.isAnything ? (w.steps.start[d] + in.low * step) * w.xSteps[d] : 0;
        t.box.add(w.y[d], step * w.xSteps[d], w.ySteps[d]);
        t.box.low.push(in.low);
        t.box.high.push(in.high);
    }
    return t;
}

TensorRef refOf(TensorSpec const& t)
{
    return {t.type, t.dims, nullptr, t.format};
}

bool fills(slice::Mode mode)
{
    return mode == slice::Mode::kFill;
}
bool repeats(slice::Mode mode)
{
    return !fills(mode) && mode != slice::Mode::kStrict;
}

CudaSource sourceOf(Problem const& problem, slice::Mode mode)
{
    TensorSpec const& largest = problem.outputs[0];
    CudaSource out =
        stridedCopySource(sizeOf(largest.type), fills(mode) ? StridedCopies::kBordered : StridedCopies::kPlain);
    out.wide = isWide(problem) || storageCount(largest.format, largest.type, largest.maxDims) >= INT32_MAX;
    if (!repeats(mode))
        return out;
    out.names.push_back("slice_elements"); // the last
    int64_t const moved = movedTogether(largest.type, largest.format) * sizeOf(largest.type);
    out.text += cuda::type("Moved", cuda::unitOf(moved)) + cuda::constant("kRank", std::max(largest.dims.rank, 1)) +
                cuda::flag("kWraps", mode == slice::Mode::kWrap) + cuda::flag("kClamps", mode == slice::Mode::kClamp) +
                cuda::flag("kReflects", mode == slice::Mode::kReflect) + cuda::include("families/copy/cuda_slice.cuh");
    return out;
}

} // namespace

Segments segmentsOfSlice(Problem const& problem, slice::Mode mode, slice::Steps const& steps)
{
    TensorRef const x = refOf(problem.inputs[0]), y = refOf(problem.outputs[0]);
    if (!isStatic(problem) || x.format != Format::kLinear || y.format != Format::kLinear)
        return {};
    Taken const t = takenOf(walkOf(x, y, steps), sizeOf(y.type));
    if (!t.isAnything || (!t.isInside && mode != slice::Mode::kFill))
        return {};
    return segmentsOf(t.box, x.count(), t.first);
}

std::unique_ptr<CudaKernels> sliceKernels(Problem const& problem, slice::Mode mode, int fillInput, StepsOfRun stepsOf)
{
    CudaSource source = sourceOf(problem, mode);
    for (size_t i = 1; i < problem.inputs.size(); ++i)
        if (problem.inputs[i].present && int(i) != fillInput)
            source.general = -1; // where y begins is read when it runs
    int const ofElements = int(source.names.size()) - 1;
    return kernelsOf(std::move(source),
                     [&node = *problem.node, mode, fillInput, stepsOf, ofElements](CudaLaunch const& launch,
                                                                                   RunArgs& args) -> Result<void> {
                         TensorRef const &x = args.inputs[0], &y = args.outputs[0];
                         Walk const w = walkOf(x, y, stepsOf(node, args));
                         Taken taken = takenOf(w, sizeOf(y.type));
                         Box& box = taken.box;
                         box.y = y.data;
                         if (repeats(mode) && !taken.isInside)
                             return runElements(launch, ofElements, w, x, y);
                         if (!fills(mode) && !taken.isInside)
                             return invalidArgument("it begins at coordinates outside its input " + x.dims.str() +
                                                    ", which its mode does not permit");
                         box.x = taken.isAnything ? x.as<char>() + taken.first * box.elementBytes : x.data;
                         if (fillInput >= 0 && fillInput < int(args.inputs.size()))
                             box.fill = args.inputs[size_t(fillInput)].data;
                         return stridedCopy(launch, box);
                     });
}

} // namespace tw::ops
