// SPDX-License-Identifier: Apache-2.0
// Scatters that reduce. What never meets in y goes to different workers: columns of the slices, lines along the axis.
// Narrow floats are reduced in FP32, in the workspace.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/element.h"
#include "ops/scatter/cpu_slots.h"
#include "ops/scatter/op.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::scatter {

namespace {

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

} // namespace

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
    std::memcpy(y.data, x.data, size_t(y.count() * sizeOf(y.type)));
    if (isFullFloat(y.type))
        reduceBy<float>(a, args, y.as<float>());
    else
        reduceBy<int32_t>(a, args, y.as<int32_t>());
    return {};
}

} // namespace tw::ops::scatter
