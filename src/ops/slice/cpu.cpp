// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <span>

#include "families/copy/cpu_pixels.h"
#include "ops/slice/cpu_index.h"

namespace tw::ops::slice {

namespace {

// What blocks of a row of y come from: consecutive ones of x, one of x again and again, or nowhere (fill).
struct Run
{
    int64_t from, step, length; // in blocks; from: kOutside for fill; step: 0 or 1
};

// The runs of a row whose block j is block at[j] of x; returns their number, at most n.
int64_t runsOf(int64_t const* at, int64_t n, Run* runs)
{
    int64_t count = 0;
    for (int64_t j = 0; j < n;) {
        int64_t end = j + 1;
        int64_t const step = end < n && at[j] >= 0 && at[end] == at[j] + 1 ? 1 : 0;
        while (end < n && at[end] == at[j] + step * (end - j))
            ++end;
        runs[count++] = Run{at[j], step, end - j};
        j = end;
    }
    return count;
}

// A row of y: its runs, and the block of x after each of its blocks (none where the runs alone say it).
struct Row
{
    std::span<Run const> runs;
    std::span<int64_t const> at;
};

template <class T>
void copyRow(T const* x, T* y, Row const& row, int64_t block, T fill)
{
    constexpr size_t kFewBlocks = 4; // a copy of fewer elements costs more than loops over them
    if (block == 1 && row.runs.size() * kFewBlocks > row.at.size() && !row.at.empty()) {
        for (int64_t at : row.at)
            *y++ = at < 0 ? fill : x[at];
        return;
    }
    for (Run const& r : row.runs) {
        int64_t const elements = r.length * block;
        if (r.from < 0)
            std::fill_n(y, elements, fill);
        else if (r.step == 1 || r.length == 1)
            std::memcpy(y, x + r.from * block, size_t(elements) * sizeof(T));
        else if (block == 1)
            std::fill_n(y, elements, x[r.from]);
        else
            for (int64_t j = 0; j < r.length; ++j)
                std::memcpy(y + j * block, x + r.from * block, size_t(block) * sizeof(T));
        y += elements;
    }
}

// `table`: for each dimension of y, the coordinate of x (or kOutside) of each of its coordinates; then the runs.
template <class T>
void sliceElements(TensorRef const& x, TensorRef const& y, int64_t* table, Steps const& steps, Mode mode, T fill,
                   Workers& workers)
{
    int const rank = x.dims.rank;
    int64_t* row[kMaxRank + 1] = {table};
    for (int d = 0; d < rank; ++d) {
        for (int64_t i = 0; i < y.dims[d]; ++i)
            row[d][i] = sourceIndex(mode, steps.start[d] + i * steps.stride[d], x.dims[d]);
        row[d + 1] = row[d] + y.dims[d];
    }
    auto whole = [&](int d) { return x.dims[d] == y.dims[d] && steps.start[d] == 0 && steps.stride[d] == 1; };
    int last = rank - 1; // the innermost dimension that is cut; those inside it form one block
    int64_t block = 1;
    for (; last > 0 && whole(last); --last)
        block *= x.dims[last];
    T const* px = x.as<T>();
    T* py = y.as<T>();
    if (last < 0) {
        *py = *px;
        return;
    }
    Extents const strides = stridesOf(x.dims);
    auto* runs = reinterpret_cast<Run*>(row[rank]);
    int64_t const count = runsOf(row[last], y.dims[last], runs);
    int64_t n = y.dims[last];
    Row one{{runs, size_t(count)}, {row[last], size_t(n)}};
    // A row that repeats one element, and so do the dimensions around it: one longer row.
    auto repeats = [&](int d) {
        return std::all_of(row[d], row[d] + y.dims[d], [&](int64_t p) { return p >= 0 && p == row[d][0]; });
    };
    if (block == 1 && count == 1 && repeats(last))
        for (; last > 0 && repeats(last - 1); --last) {
            px += row[last - 1][0] * strides[last - 1];
            n = runs[0].length *= y.dims[last - 1];
            one.at = {}; // of the shorter row
        }
    int64_t const rowLength = n * block, height = last > 0 ? y.dims[last - 1] : 1; // rows that differ in one dimension
    int64_t const step = last > 0 ? strides[last - 1] : 0, only = 0;
    int64_t const* const heights = last > 0 ? row[last - 1] : &only;
    inPieces(workers, y.dims.volume(0, last), 2 * y.sizeBytes(), [&](int64_t begin, int64_t end) {
        T* to = py + begin * rowLength;
        for (int64_t r = begin; r < end;) {
            int64_t from = 0, rest = r / height;
            bool inside = true;
            for (int d = last - 2; d >= 0; --d) {
                int64_t const p = row[d][rest % y.dims[d]];
                rest /= y.dims[d];
                inside = inside && p >= 0;
                from += p * strides[d];
            }
            int64_t const first = r % height, rows = std::min(height - first, end - r);
            for (int64_t i = first; i < first + rows; ++i, to += rowLength)
                if (inside && heights[i] >= 0)
                    copyRow(px + from + heights[i] * step, to, one, block, fill);
                else
                    std::fill_n(to, rowLength, fill);
            r += rows;
        }
    });
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    if (y.count() == 0)
        return {};
    auto input = [&](size_t i) { return i < args.inputs.size() ? args.inputs[i] : TensorRef{}; };
    Steps const steps = stepsOf(a, input(1), input(3), x.dims.rank);
    void const* fill = input(4).data;
    auto* table = static_cast<int64_t*>(args.workspace);
    switch (sizeOf(x.type)) {
    case 4:
        sliceElements<uint32_t>(x, y, table, steps, a.mode, fill ? *static_cast<uint32_t const*>(fill) : 0,
                                *args.workers);
        break;
    case 2:
        sliceElements<uint16_t>(x, y, table, steps, a.mode, fill ? *static_cast<uint16_t const*>(fill) : 0,
                                *args.workers);
        break;
    default:
        sliceElements<uint8_t>(x, y, table, steps, a.mode, fill ? *static_cast<uint8_t const*>(fill) : 0,
                               *args.workers);
        break;
    }
    return {};
}

int64_t workspace(ir::Node const&, std::span<TensorRef const>, std::span<TensorRef const> out)
{
    int64_t entries = 0;
    for (int64_t d : out[0].dims)
        entries += d;
    return entries * int64_t(sizeof(int64_t) + sizeof(Run));
}

constexpr PlainTactic kPlain{"slice_any_plain_cpu", 1, run, workspace};

// ---- Channels-last: runs of channels that begin on a cache line, of pixels at any places inside x.

Support supportsNhwc(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    for (size_t i = 1; i < p.inputs.size(); ++i)
        if (p.inputs[i].present)
            return Support::no("takes bounds from attributes only");
    if (a.mode != Mode::kStrict)
        return Support::no("takes strict bounds only");
    if (isFullFloat(p.inputs[0].type) && a.start[1] % 16 != 0)
        return Support::no("needs channels from a multiple of 16 on");
    return a.stride[1] == 1 ? Support::yes() : Support::no("needs channels in a row");
}

template <class T>
Result<void> runNhwc(ir::Node const& node, ChannelsLastKernels const& k, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int const rank = x.dims.rank, last = rank - 1;
    int64_t const yStep = y.pixelStride(), width = y.dims[last], rows = y.dims[0] * pixelsOf(y) / width;
    int64_t steps[kMaxRank]; // elements of x from one to the next
    int64_t step = x.pixelStride();
    for (int d = last; d >= 2; step *= x.dims[d], --d)
        steps[d] = step;
    steps[0] = step;
    eachInPieces(*args.workers, rows, 2 * y.sizeBytes(), [&](int64_t row) {
        int64_t rest = row, from = a.start[1] + a.start[size_t(last)] * steps[last];
        for (int d = last - 1; d >= 0; --d) {
            if (d == 1)
                continue;
            from += (a.start[size_t(d)] + rest % y.dims[d] * a.stride[size_t(d)]) * steps[d];
            rest /= y.dims[d];
        }
        copyPixels(k, x.as<T>() + from, a.stride[size_t(last)] * steps[last], y.as<T>() + row * width * yStep, yStep,
                   y.dims[1], width);
    });
    return {};
}

using kernels::jit::Isa;
constexpr VectorTactic kInt8{"slice_i8_nhwc_avx2", 1,       Isa::kAvx2,     runNhwc<int8_t>, supportsNhwc,
                             onlyChannelsLast,     nullptr, DataType::kInt8};
constexpr VectorTactic kAvx512{"slice_f32_nhwc_avx512", 1, Isa::kAvx512, runNhwc<float>, supportsNhwc,
                               onlyChannelsLast};
constexpr VectorTactic kAvx2{"slice_f32_nhwc_avx2", 1, Isa::kAvx2, runNhwc<float>, supportsNhwc, onlyChannelsLast};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx512, kAvx2, kInt8, kEdges, kEdgesInt8, kPlain>;

} // namespace tw::ops::slice
