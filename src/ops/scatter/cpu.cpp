// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/element.h"
#include "ops/scatter/op.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::scatter {

namespace {

constexpr int64_t kOutside = -1;

// Where index i of a dimension of `size` elements points.
int64_t resolve(int32_t i, int64_t size)
{
    int64_t const p = i < 0 ? i + size : i;
    return p >= 0 && p < size ? p : kOutside;
}

// The slice of y that `k` indices name.
int64_t sliceAt(int32_t const* index, int k, Extents const& dims)
{
    int64_t at = 0;
    for (int d = 0; d < k; ++d) {
        int64_t const p = resolve(index[d], dims[d]);
        if (p == kOutside)
            return kOutside;
        at = at * dims[d] + p;
    }
    return at;
}

// ---- Scatters that reduce. What never meets in y goes to different workers: columns of the slices, lines along the axis.
// Narrow floats are reduced in FP32, in the workspace.

auto numberOf(auto v)
{
    return loadElement(v);
}
int32_t numberOf(int32_t v)
{
    return v;
}

template <Reduction R>
float reduced(float a, float b)
{
    if constexpr (R == Reduction::kAdd)
        return a + b;
    else if constexpr (R == Reduction::kMul)
        return a * b;
    else if (std::isnan(a) || std::isnan(b))
        return a + b;
    else
        return R == Reduction::kMin ? std::min(a, b) : std::max(a, b);
}
template <Reduction R>
int32_t reduced(int32_t a, int32_t b)
{
    if constexpr (R == Reduction::kAdd)
        return int32_t(uint32_t(a) + uint32_t(b));
    else if constexpr (R == Reduction::kMul)
        return int32_t(uint32_t(a) * uint32_t(b));
    else
        return R == Reduction::kMin ? std::min(a, b) : std::max(a, b);
}

// y: the numbers that updates of type T are reduced into.
template <Reduction R, class T, class Number>
void reduceSlices(Attrs const& a, RunArgs& args, Number* y)
{
    TensorRef const &x = args.inputs[0], &j = args.inputs[1], &u = args.inputs[2];
    int const k = int(j.dims[j.dims.rank - 1]);
    auto const [tuples, block] = tuplesOf(a, x.dims, j.dims);
    inPieces(*args.workers, block, u.count() * int64_t(sizeof(T)),
             [&, tuples = tuples, block = block](int64_t begin, int64_t end) {
                 auto const* index = j.as<int32_t>();
                 T const* from = u.as<T>();
                 for (int64_t t = 0; t < tuples; ++t, index += k, from += block)
                     if (int64_t const slice = sliceAt(index, k, x.dims); slice != kOutside)
                         for (int64_t c = begin; c < end; ++c)
                             y[slice * block + c] = reduced<R>(y[slice * block + c], numberOf(from[c]));
             });
}

template <Reduction R, class T, class Number>
void reduceElements(Attrs const& a, RunArgs& args, Number* y)
{
    TensorRef const &x = args.inputs[0], &j = args.inputs[1], &u = args.inputs[2];
    int const axis = int(a.axis);
    Extents const strides = stridesOf(x.dims);
    int64_t const along = u.dims[axis], inner = u.dims.volume(axis + 1, u.dims.rank);
    eachInPieces(*args.workers, u.count() / along, u.count() * int64_t(sizeof(T)), [&](int64_t line) {
        int64_t const first = line / inner * along * inner + line % inner;
        int64_t to = 0, rest = line;
        for (int d = x.dims.rank - 1; d >= 0; --d) {
            to += d == axis ? 0 : rest % u.dims[d] * strides[d];
            rest /= d == axis ? 1 : u.dims[d];
        }
        for (int64_t i = first; i < first + along * inner; i += inner)
            if (int64_t const p = resolve(j.as<int32_t>()[i], x.dims[axis]); p != kOutside)
                y[to + p * strides[axis]] = reduced<R>(y[to + p * strides[axis]], numberOf(u.as<T>()[i]));
    });
}

template <Reduction R, class T, class Number>
void reduceInto(Attrs const& a, RunArgs& args, Number* y)
{
    if (args.inputs[2].count() == 0)
        return;
    if (a.mode == Mode::kNd)
        reduceSlices<R, T>(a, args, y);
    else
        reduceElements<R, T>(a, args, y);
}

template <class T, class Number>
void reduceBy(Attrs const& a, RunArgs& args, Number* y)
{
    if (a.reduction == Reduction::kAdd)
        reduceInto<Reduction::kAdd, T>(a, args, y);
    else if (a.reduction == Reduction::kMul)
        reduceInto<Reduction::kMul, T>(a, args, y);
    else if (a.reduction == Reduction::kMin)
        reduceInto<Reduction::kMin, T>(a, args, y);
    else
        reduceInto<Reduction::kMax, T>(a, args, y);
}

int64_t reductionBytes(ir::Node const& node, std::span<TensorRef const>, std::span<TensorRef const> out)
{
    bool const isReduced = node.attrsAs<Attrs>().reduction != Reduction::kNone;
    return isReduced && isNarrowFloat(out[0].type) ? out[0].count() * int64_t(sizeof(float)) : 0;
}

Result<void> runReduction(Attrs const& a, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    if (y.count() == 0)
        return {};
    if (isNarrowFloat(y.type)) {
        auto* const sums = static_cast<float*>(args.workspace);
        withNarrow(y.type, [&](auto element) {
            using T = decltype(element);
            for (int64_t i = 0; i < y.count(); ++i)
                sums[i] = loadElement(x.as<T>()[i]);
            reduceBy<T>(a, args, sums);
            for (int64_t i = 0; i < y.count(); ++i)
                storeElement(y.as<T>()[i], sums[i]);
        });
        return {};
    }
    if (y.data != x.data)
        std::memcpy(y.data, x.data, size_t(y.count() * sizeOf(y.type)));
    if (isFullFloat(y.type))
        reduceBy<float>(a, args, y.as<float>());
    else
        reduceBy<int32_t>(a, args, y.as<int32_t>());
    return {};
}

// ---- The others.

// Every piece owns a range of y: it copies x there, then writes what of the updates falls into it. No two workers
// touch one byte, and updates of one place come in their order.
void scatterSlices(RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &j = args.inputs[1], &u = args.inputs[2], &y = args.outputs[0];
    int const k = int(j.dims[j.dims.rank - 1]);
    int64_t const total = y.count() * sizeOf(y.type), block = y.dims.volume(k, y.dims.rank) * sizeOf(y.type);
    int64_t const tuples = u.count() == 0 ? 0 : j.count() / k;
    auto* to = y.as<std::byte>();
    bool const isCopied = x.data != y.data;
    inPieces(*args.workers, total, isCopied ? total : u.count() * sizeOf(y.type), [&](int64_t begin, int64_t end) {
        if (isCopied)
            std::memcpy(to + begin, x.as<std::byte>() + begin, size_t(end - begin));
        auto const* index = j.as<int32_t>();
        for (int64_t t = 0; t < tuples; ++t, index += k) {
            int64_t const slice = sliceAt(index, k, y.dims);
            int64_t const first = std::max(begin, slice * block), last = std::min(end, (slice + 1) * block);
            if (slice != kOutside && first < last)
                std::memcpy(to + first, u.as<std::byte>() + t * block + (first - slice * block), size_t(last - first));
        }
    });
}

// Single elements, in one pass: a piece for each worker would read all indices.
template <class T>
void scatterTuples(RunArgs& args)
{
    TensorRef const &j = args.inputs[1], &u = args.inputs[2], &y = args.outputs[0];
    int const k = int(j.dims[j.dims.rank - 1]); // below the rank where dimensions of 1 follow
    auto const* index = j.as<int32_t>();
    for (int64_t end = u.count(), t = 0; t < end; ++t, index += k)
        if (int64_t const at = sliceAt(index, k, y.dims); at != kOutside)
            y.as<T>()[at] = u.as<T>()[t];
}

// u as lines along the axis, which never meet in y: neighbours of them, after the axis, are written row by row.
template <class T>
void scatterElements(Attrs const& a, RunArgs& args)
{
    TensorRef const &j = args.inputs[1], &u = args.inputs[2], &y = args.outputs[0];
    int const axis = int(a.axis), last = y.dims.rank - 1;
    Extents const yStrides = stridesOf(y.dims), uStrides = stridesOf(u.dims);
    int64_t const size = y.dims[axis], step = yStrides[axis], along = u.dims[axis], uStep = uStrides[axis];
    int64_t const columns = axis == last ? 1 : u.dims[last]; // lines that lie side by side
    inPieces(*args.workers, u.count() / along, u.count() * int64_t(sizeof(T)), [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end;) {
            int64_t const column = line % columns, count = std::min(columns - column, end - line);
            int64_t yAt = column, uAt = column;
            int64_t rest = line / columns;
            for (int d = axis == last ? last : last - 1; d >= 0; --d) {
                if (d == axis)
                    continue;
                yAt += rest % u.dims[d] * yStrides[d];
                uAt += rest % u.dims[d] * uStrides[d];
                rest /= u.dims[d];
            }
            T* const to = y.as<T>() + yAt;
            for (int64_t i = 0; i < along; ++i) {
                int32_t const* const index = j.as<int32_t>() + uAt + i * uStep;
                T const* const from = u.as<T>() + uAt + i * uStep;
                for (int64_t c = 0; c < count; ++c)
                    if (int64_t const p = resolve(index[c], size); p != kOutside)
                        to[p * step + c] = from[c];
            }
            line += count;
        }
    });
}

template <class T>
void scatterUnits(Attrs const& a, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int64_t const total = y.count() * int64_t(sizeof(T));
    if (x.data != y.data)
        inPieces(*args.workers, total, total, [&](int64_t begin, int64_t end) {
            std::memcpy(y.as<std::byte>() + begin, x.as<std::byte>() + begin, size_t(end - begin));
        });
    if (args.inputs[2].count() == 0)
        return;
    if (a.mode == Mode::kNd)
        scatterTuples<T>(args);
    else
        scatterElements<T>(a, args);
}

Result<void> runShared(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &j = args.inputs[1], &y = args.outputs[0];
    if (y.count() == 0)
        return {};
    if (a.reduction != Reduction::kNone)
        return runReduction(a, args);
    int64_t const block = a.mode == Mode::kNd ? y.dims.volume(int(j.dims[j.dims.rank - 1]), y.dims.rank) : 1;
    if (block > 1)
        scatterSlices(args);
    else if (sizeOf(y.type) == 4)
        scatterUnits<uint32_t>(a, args);
    else if (sizeOf(y.type) == 2)
        scatterUnits<uint16_t>(a, args);
    else
        scatterUnits<uint8_t>(a, args);
    return {};
}

constexpr PlainTactic kShared{"scatter_any_parallel_cpu", 2, runShared, reductionBytes};

// On one thread.
Result<void> runPlain(ir::Node const& node, RunArgs& args)
{
    RunArgs alone = args;
    alone.workers = &serialWorkers();
    return runShared(node, alone);
}

constexpr PlainTactic kPlain{"scatter_any_plain_cpu", 2, runPlain, reductionBytes};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kShared, kPlain>;

} // namespace tw::ops::scatter
