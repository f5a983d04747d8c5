// SPDX-License-Identifier: Apache-2.0
// Evaluates a node whose inputs are constants (or, for Shape and Size, have static dimensions), so that shape
// arithmetic written as nodes still gives importers the initializers that they need.
#pragma once

#include <cstring>

#include "onnx/importer.h"
#include "onnx/weights.h"

namespace tw::onnx {

// True when all outputs of the node were set. False: the operator is not folded, or its inputs are not known; the
// importer then does the work and reports what is wrong.
bool fold(ImportContext& ctx);

// Thrown by a rule that cannot compute the node, which stays in the network then.
struct Stays
{};
inline void staysIf(bool cannot)
{
    if (cannot)
        throw Stays();
}

// What the rules of fold.cpp and fold_arithmetic.cpp share: constants read through an index map.
using Coordinates = std::vector<int64_t>;

// Rearranging copies the data; above this size the network does it at run time instead.
constexpr int64_t kMaxRearranged = 1 << 24;

// Arithmetic is folded for shapes, not for weights, which keep their names for refitting.
constexpr int64_t kMaxComputed = 4096;

inline void* dataOf(Constant& c)
{
    return const_cast<void*>(c.values);
}
std::vector<int64_t> stridesOf(Dims const& d);
Dims broadcastDims(Dims const& a, Dims const& b);
// x broadcast to dims.
Constant expanded(ImportContext& ctx, Constant const& x, Dims const& dims);

// y[p] = x[source(p)] for every position p of `dims`, unless a source index is outside x.
template <class Source>
Constant rearrange(ImportContext& ctx, Constant const& x, Dims const& dims, Source source)
{
    int64_t const n = volume(dims);
    staysIf(n < 0 || n > kMaxRearranged);
    Constant y = ctx.newConstant(x.type, dims);
    int64_t const size = sizeOf(x.type);
    Coordinates p(size_t(dims.nbDims), 0);
    for (int64_t i = 0; i < n; ++i) {
        int64_t const from = source(p);
        staysIf(from < 0 || from >= x.count);
        std::memcpy(static_cast<char*>(dataOf(y)) + i * size, static_cast<char const*>(x.values) + from * size,
                    size_t(size));
        for (int a = dims.nbDims - 1; a >= 0 && ++p[size_t(a)] == dims.d[a]; --a)
            p[size_t(a)] = 0;
    }
    return y;
}

// Rules of fold_arithmetic.cpp.
Constant foldUnary(ImportContext& ctx);
Constant foldBinary(ImportContext& ctx);
Constant foldWhere(ImportContext& ctx);
Constant foldReduce(ImportContext& ctx);
// Scatter of constants.
Constant foldScatter(ImportContext& ctx);

} // namespace tw::onnx
